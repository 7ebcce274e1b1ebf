package keygen

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"
)

// record is where the evaluation takes its values from: key fields first, then partition fields.
type record interface {
	read(i int, d *Datum)
}

// work is the memory of one evaluation.
type work struct {
	datum Datum
	time  timeState
	value []byte
}

// appendKey adds the record key (key generation 6).
func (k *Keygen) appendKey(dst []byte, r record, w *work) ([]byte, *Error) {
	if k.keyFail != nil {
		return dst, k.keyFail
	}
	switch k.form {
	case formSingle:
		return k.appendSingle(dst, r, w)
	case formNamed:
		return k.appendNamed(dst, r, w)
	case formAuto:
		return strconv.AppendInt(append(dst, k.autoPrefix...), k.rows.Add(1)-1, 10), nil
	case formRandom:
		return appendUUID(dst), nil
	}
	return dst, nil
}

func (k *Keygen) appendSingle(dst []byte, r record, w *work) ([]byte, *Error) {
	d := &w.datum
	r.read(0, d)
	if err := k.checkFound(d, k.keys[0], StageKey, false); err != nil {
		return dst, err
	}
	from := len(dst)
	if !d.missing() {
		var err *Error
		if dst, err = k.keyTexts.append(dst, d); err != nil {
			return dst, at(err, StageKey, k.keys[0])
		}
	}
	if len(dst) == from {
		shown := ""
		if d.missing() {
			shown = "null"
		}
		return dst, &Error{Class: classKey, Stage: StageKey, Field: k.keys[0], Hint: "give every row a key, or drop such rows before the write",
			Message: "recordKey value: \"" + shown + "\" for field: \"" + k.keys[0] + "\" cannot be null or empty."}
	}
	return dst, nil
}

// Placeholders in named keys.
const (
	nullPart  = "__null__"
	emptyPart = "__empty__"
)

func (k *Keygen) appendNamed(dst []byte, r record, w *work) ([]byte, *Error) {
	start := len(dst)
	real := 0
	d := &w.datum
	for i, field := range k.keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, field...)
		dst = append(dst, ':')
		r.read(i, d)
		if err := k.checkFound(d, field, StageKey, k.strictKeys); err != nil {
			return dst, err
		}
		if d.missing() {
			dst = append(dst, nullPart...)
			continue
		}
		from := len(dst)
		var err *Error
		if dst, err = k.keyTexts.append(dst, d); err != nil {
			return dst, at(err, StageKey, field)
		}
		if len(dst) == from {
			dst = append(dst, emptyPart...)
			continue
		}
		real++
	}
	if real == 0 || k.wholeKeys && real < len(k.keys) {
		return dst, k.allNull(string(dst[start:]))
	}
	return dst, nil
}

func (k *Keygen) allNull(text string) *Error {
	fields := "[" + strings.Join(k.keys, ", ") + "]"
	e := &Error{Class: classKey, Stage: StageKey, Field: strings.Join(k.keys, ","), Hint: "give every row a key, or drop such rows before the write",
		Message: "recordKey values: \"" + text + "\" for fields: " + fields + " cannot be entirely null or empty."}
	if k.keyPath != PathAvro {
		e.Message = "All of the values for (" + fields + ") were either null or empty"
	}
	return e
}

func at(err *Error, stage Stage, field string) *Error {
	copied := *err
	if copied.Stage == "" {
		copied.Stage = stage
	}
	if copied.Field == "" {
		copied.Field = field
	}
	return &copied
}

// checkFound decides whether a value that is not there is an error or null (key generation 4).
func (k *Keygen) checkFound(d *Datum, field string, stage Stage, strict bool) *Error {
	if d.Kind == Null || d.Kind > ParentScalar {
		return nil
	}
	hint := "name a column of the records, with dots for nested fields"
	path := k.path
	if stage == StageKey {
		path = k.keyPath
	}
	switch {
	case path != PathAvro && k.lenient:
		e := &Error{Class: classHoodie, Stage: stage, Field: field, Hint: hint, Message: field + " not found in the schema of the rows, or inside a null"}
		if stage == StageKey {
			e.Cause = classNoElement
		}
		return e
	case path != PathAvro:
		return nil
	case strict:
		return &Error{Class: classKey, Stage: stage, Field: field, Hint: hint, Message: "Record key field '" + field + "' does not exist in the input record"}
	case k.lenient || d.Kind == ParentNull:
		return nil
	case d.Kind == ParentScalar:
		return &Error{Class: classHoodie, Stage: stage, Field: field, Hint: hint, Message: "Cannot find a record at part value :" + field}
	}
	return &Error{Class: classAvro, Stage: stage, Field: field, Hint: hint, Message: "Not a valid schema field: " + field}
}

// appendPartition adds the partition path (key generation 7).
func (k *Keygen) appendPartition(dst []byte, r record, w *work) ([]byte, *Error) {
	if k.partFail != nil {
		return dst, k.partFail
	}
	start := len(dst)
	if k.path != PathAvro && k.lenient && k.typ != Custom { // rows resolve all their fields first
		for i := range k.targets {
			r.read(len(k.keys)+i, &w.datum)
			if err := k.checkFound(&w.datum, k.targets[i].field, StagePartition, false); err != nil {
				return dst, err
			}
		}
	}
	for i := range k.targets {
		if i > 0 {
			dst = append(dst, '/')
		}
		d := &w.datum
		r.read(len(k.keys)+i, d)
		var err *Error
		if dst, err = k.appendTarget(dst, &k.targets[i], d, w); err != nil {
			return dst, err
		}
	}
	if k.sql != nil {
		return k.appendSQL(dst, start)
	}
	if k.guardPath {
		return dst, k.checkPath(dst[start:])
	}
	return dst, nil
}

func (k *Keygen) checkPath(path []byte) *Error {
	text := bytesAsString(path)
	if k.guard {
		if why := unsafePath(text); why != "" {
			return &Error{Class: classRefused, Stage: StagePartition, Message: "partition path " + strconv.Quote(text) + " " + why,
				Hint: "correct the value in the source; for a new table " + KeyURLEncode + "=true keeps such values in one folder"}
		}
		return nil
	}
	if hasParent(text) {
		return parentInPath(string(path))
	}
	return nil
}

// appendTarget adds one segment, or several where the value holds slashes.
func (k *Keygen) appendTarget(dst []byte, t *target, d *Datum, w *work) ([]byte, *Error) {
	if err := k.checkFound(d, t.field, StagePartition, false); err != nil {
		return dst, err
	}
	if k.hive {
		dst = append(dst, t.name...)
		dst = append(dst, '=')
	}
	if t.time {
		dst, err := k.times.append(dst, d, &w.time, &k.texts)
		if err != nil {
			return dst, at(err, StagePartition, t.field)
		}
		return dst, nil
	}
	slash := t.slash
	if slash && k.path != PathAvro {
		if slash = !k.hive; slash && (k.path == PathInternalRow || len(k.targets) == 1 || k.typ == Custom) {
			return k.appendRowSlash(dst, d)
		}
	}
	from := len(dst)
	if !d.missing() {
		var err *Error
		if dst, err = k.texts.append(dst, d); err != nil {
			return dst, at(err, StagePartition, t.field)
		}
	}
	switch {
	case len(dst) == from:
		return append(dst, k.marker...), nil
	case k.encode:
		w.value = append(w.value[:0], dst[from:]...)
		dst = appendEscaped(dst[:from], w.value)
	}
	if slash {
		slashDate(dst[from:], k.guardSlash)
	}
	return dst, nil
}

// appendRowSlash: slash separated dates on Spark rows are broken in 1.2.0 (key generation 7.4); this imitates how. With Hive
// style rows leave the dates alone.
func (k *Keygen) appendRowSlash(dst []byte, d *Datum) ([]byte, *Error) {
	switch {
	case d.missing() && (len(k.targets) == 1 || k.typ == Custom):
		return dst, &Error{Class: classNull, Stage: StagePartition, Message: "null value with slash separated dates on a Spark row"}
	case k.path == PathInternalRow:
		return dst, &Error{Class: classCast, Stage: StagePartition, Message: "slash separated dates on an InternalRow"}
	}
	from := len(dst)
	dst, err := k.texts.append(dst, d)
	slashDate(dst[from:], k.guardSlash)
	return dst, err
}

// appendUUID adds a random UUID of version 4.
func appendUUID(dst []byte) []byte {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	for i, part := range [5][2]int{{0, 4}, {4, 6}, {6, 8}, {8, 10}, {10, 16}} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, b[part[0]:part[1]])
	}
	return dst
}
