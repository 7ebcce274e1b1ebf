package keygen

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
)

// Generator makes the keys of a batch: one key for each row, and one partition path, "" where the table has no partitions.
// Keys are utf8, partition paths are dictionary<int32, utf8> or utf8. The caller releases both. A Generator is safe for
// concurrent use.
type Generator interface {
	Keys(batch arrow.RecordBatch) (keys, partitions arrow.Array, err error)
}

// keyForm is how a record key is written.
type keyForm uint8

const (
	formSingle keyForm = iota // the value (key generation 6.1)
	formNamed                 // field:value,field:value (6.2)
	formAuto                  // instant_task_row (11.1)
	formRandom                // UUID (11.2)
	formEmpty                 // rows without a key field on Spark's NonPartitioned class
	formBroken                // fails with every record
)

// target is one partition field.
type target struct {
	field string
	name  string // in front of the value with Hive style
	time  bool
	slash bool
}

// Keygen is a compiled configuration. It is safe for concurrent use, but automatic keys count the rows in the order of the
// calls: one Keygen for each task.
type Keygen struct {
	typ      Type
	class    string
	form     keyForm
	keyFail  *Error // formBroken, or what the first record brings
	keys     []string
	targets  []target
	partFail *Error // the reference's error of the first record's partition path

	marker     string
	hive       bool
	encode     bool
	strictKeys bool
	lenient    bool
	guard      bool
	path       Path
	keyPath    Path // of record keys: Custom turns an InternalRow into an Avro record for them
	guardSlash bool
	guardPath  bool
	wholeKeys  bool // NonPartitioned on rows: no part of a key may be null or empty
	slashOn    bool
	texts      texts
	keyTexts   texts
	times      *timeRule
	sql        []string // column types of the Spark SQL wrapper
	sqlNames   []string

	autoPrefix string
	rows       atomic.Int64

	config   *setup
	encoding string // of one-field complex keys, for the table property
	states   sync.Pool
}

// New compiles a configuration. What the reference would only notice with the first record is refused here.
func New(o Options) (*Keygen, error) {
	c, err := newConfig(o)
	if err != nil {
		return nil, err
	}
	t, class, err := c.generatorType()
	if err != nil {
		return nil, err
	}
	auto := strings.TrimSpace(c.props[KeyRecordFields]) == "" && c.release.autoKeys()
	k, err := c.build(t, class, auto)
	if err != nil {
		return nil, err
	}
	if !o.Imitate {
		if err := k.checkReady(); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// checkReady refuses what would fail with the first record.
func (k *Keygen) checkReady() *Error {
	for _, e := range []*Error{k.keyFail, k.partFail} {
		if e != nil {
			copied := *e
			copied.Stage, copied.Row = StageConstruct, -1
			return &copied
		}
	}
	if r := k.times; r != nil {
		for _, e := range []*Error{r.inputErr, r.outputErr, r.nullErr} {
			if e != nil {
				copied := *e
				copied.Stage, copied.Row = StageConstruct, -1
				return &copied
			}
		}
	}
	return nil
}

// build makes the generator of one type. auto wraps it for automatic keys.
func (c *setup) build(t Type, class string, auto bool) (*Keygen, *Error) {
	outer := t
	if t == SparkSQL || t == SparkSQLMerge {
		t = c.sqlOrigin()
	}
	switch t {
	case UserProvided, MetadataType:
		return nil, c.foreign(t, class)
	}
	k := &Keygen{typ: outer, class: class, marker: c.marker, hive: c.hive, encode: c.encode, guard: c.guard, path: c.path, config: c,
		strictKeys: c.release.strictKeys(), lenient: c.release.lenientLookup(), guardSlash: c.release.guarded(), guardPath: c.release.guarded() || c.guard,
		slashOn: c.slash}
	k.texts = texts{path: c.path, consistent: c.consistent, hexBytes: c.release.hexBytes(), oldFloats: !c.ShortestFloats, zone: c.java}
	k.keyPath, k.keyTexts = k.path, k.texts
	if t == Custom && c.path == PathInternalRow {
		k.keyPath = PathAvro
		k.keyTexts.path, k.keyTexts.micros = PathAvro, true
	}
	k.states.New = func() any { return newState(k) }
	if err := k.readKeys(c, t, auto); err != nil {
		return nil, err
	}
	if err := k.readTargets(c, t); err != nil {
		return nil, err
	}
	if outer == SparkSQL || outer == SparkSQLMerge || outer == SparkSQLUUID {
		k.readSQLSchema(c)
	}
	if c.guard {
		return k, k.checkTargets(c)
	}
	return k, nil
}

// foreign refuses generators that only a JVM can run (key generation 11.4).
func (c *setup) foreign(t Type, class string) *Error {
	if t == MetadataType {
		return c.refuse(KeyType, "the generator of the metadata table makes no keys of rows", "open the data table instead")
	}
	return &Error{Class: classIO, Stage: StageConstruct, Row: -1, Field: KeyClass, Message: "Could not load key generator class " + class, Source: c.source(KeyClass),
		Hint: "register a Go generator under this name, or give its rule as " + KeyExpression + "; reading needs neither"}
}

// readKeys decides about the record key.
func (k *Keygen) readKeys(c *setup, t Type, auto bool) *Error {
	text, given := c.get(KeyRecordFields)
	if !given && !c.release.autoKeys() {
		return c.missing(KeyRecordFields)
	}
	if t == SparkSQLUUID {
		k.form = formRandom
		return nil
	}
	if auto {
		return k.readAuto(c)
	}
	k.keys = SplitFields(text)
	switch t {
	case Simple, Timestamp:
		return k.readOneKey(c, text, given)
	case GlobalDelete:
		k.form = formNamed
		if !c.release.autoKeys() {
			k.keys = strings.Split(text, ",") // 0.9 doesn't trim here
		}
		if c.path != PathAvro && len(k.keys) == 1 && c.release.bareComplex() {
			k.form = formSingle // the regression of one-field complex keys reached rows here, too
		}
	case Complex:
		k.form = formNamed
		if len(k.keys) == 1 {
			prefixed, err := c.prefixed()
			if err != nil {
				return err
			}
			if prefixed, err = c.decideEncoding(k.keys[0], prefixed); err != nil {
				return err
			}
			if k.encoding = FieldPrefixed; !prefixed {
				k.form, k.encoding = formSingle, ValueOnly
			}
		} else if _, err := c.prefixed(); err != nil {
			return err
		}
	case Custom, NonPartition:
		if t == Custom && len(k.keys) == 1 {
			return k.readOneKey(c, text, given) // it has a Simple generator do it
		}
		k.form = formNamed
		if len(k.keys) == 1 {
			k.form = formSingle
		}
		k.wholeKeys = t == NonPartition && c.path != PathAvro
	}
	if len(k.keys) == 0 {
		k.noKeys(c, t)
	}
	return nil
}

// readOneKey: Simple and Timestamp, and Custom with one field, take the option as one name. The reference doesn't trim it,
// so that a blank or a comma around it makes it the name of no field; the guards take that for what is meant.
func (k *Keygen) readOneKey(c *setup, text string, given bool) *Error {
	k.form = formSingle
	if len(k.keys) > 1 && c.guard || !c.guard && c.sparkClass(k.class) && strings.Contains(text, ",") {
		return &Error{Class: classArgument, Stage: StageConstruct, Row: -1, Field: KeyRecordFields, Source: c.source(KeyRecordFields),
			Message: "Single record-key field is expected; provided (" + text + ")", Hint: "use the COMPLEX generator for several key fields"}
	}
	if !given || text == "" {
		k.form = formBroken
		class, message := "IndexOutOfBoundsException", "Index 0 out of bounds for length 0"
		if c.path != PathAvro {
			class = "ArrayIndexOutOfBoundsException"
		}
		k.keyFail = &Error{Class: class, Stage: StageKey, Message: message, Field: KeyRecordFields, Hint: "set " + KeyRecordFields}
		return nil
	}
	if !c.guard || len(k.keys) == 0 {
		k.keys = []string{text}
	}
	return nil
}

// sparkClass reports whether it is the Spark twin of a generator that is imitated; it checks lists of fields, the
// engine-neutral one doesn't.
func (c *setup) sparkClass(class string) bool {
	return c.release.lenientLookup() && (c.path != PathAvro || class != "" && !strings.HasSuffix(classes[class], "_AVRO"))
}

// noKeys: what the generators do with an empty list of key fields, each in its own way.
func (k *Keygen) noKeys(c *setup, t Type) {
	k.form = formBroken
	e := &Error{Class: classKey, Stage: StageKey, Field: KeyRecordFields, Hint: "set " + KeyRecordFields,
		Message: "recordKey values: \"\" for fields: [] cannot be entirely null or empty."}
	switch {
	case t == Custom:
		e.Message = "Unable to find field names for record key in cfg"
	case t == NonPartition && c.path != PathAvro:
		k.form = formEmpty
		return
	case c.release == Release{0, 14, 0}:
		e.Class, e.Message = "StringIndexOutOfBoundsException", "index -1, length 0"
	}
	k.keyFail = e
}

// readAuto: keys are counted (11.1).
func (k *Keygen) readAuto(c *setup) *Error {
	k.form = formAuto
	instant, task := c.Instant, c.Task
	if instant == "" {
		instant = c.props[KeyAutoInstant]
	}
	if task == "" {
		task = c.props[KeyAutoTask]
	}
	for _, m := range [2][2]string{{KeyAutoInstant, instant}, {KeyAutoTask, task}} {
		if m[1] == "" {
			e := &Error{Class: classArgument, Stage: StageKey, Row: -1, Field: m[0], Message: "Property " + m[0] + " not found", Source: c.source(KeyRecordFields),
				Hint: "set " + KeyRecordFields + ", or give the writer's instant and task, of which automatic keys are made"}
			if c.release == (Release{0, 14, 0}) {
				e.Stage = StageConstruct
				return e
			}
			k.keyFail = e
			return nil
		}
	}
	k.autoPrefix = instant + "_" + task + "_"
	return nil
}

// readTargets decides about the partition path.
func (k *Keygen) readTargets(c *setup, t Type) *Error {
	text, given := c.get(KeyPartitionFields)
	switch t {
	case NonPartition, GlobalDelete:
		return nil
	case SparkSQLUUID:
		t = Simple
		if len(SplitFields(text)) != 1 {
			t = Complex
		}
	}
	if !given {
		return c.missing(KeyPartitionFields)
	}
	switch t {
	case Simple:
		if c.guard {
			list := SplitFields(text)
			if len(list) != 1 {
				return c.oneTarget(list)
			}
			text = list[0]
		}
		k.targets = []target{{field: text, name: text, slash: c.slash}}
	case Timestamp:
		list := SplitFields(text)
		if c.guard && len(list) != 1 || len(list) > 1 && c.sparkClass(k.class) {
			return c.oneTarget(list)
		}
		if c.guard {
			text = list[0]
		}
		k.targets = []target{{field: text, name: text, time: true}}
		var err *Error
		k.times, err = newTimeRule(c)
		return err
	case Complex:
		list := SplitFields(text)
		for _, f := range list {
			k.targets = append(k.targets, target{field: f, name: f, slash: c.slash && (len(list) == 1 || c.path != PathAvro)})
		}
	case Custom:
		return k.readCustom(c, text)
	}
	return nil
}

func (c *setup) oneTarget(list []string) *Error {
	return &Error{Class: classArgument, Stage: StageConstruct, Row: -1, Field: KeyPartitionFields, Source: c.source(KeyPartitionFields),
		Message: "Single partition-path field is expected; provided (" + strings.Join(list, ", ") + ")",
		Hint:    "use COMPLEX for several partition fields, CUSTOM for several with times, NON_PARTITION for none"}
}

// readCustom reads field:type entries (key generation 10).
func (k *Keygen) readCustom(c *setup, text string) *Error {
	if text == "" {
		return nil
	}
	fail := func(e *Error) *Error {
		e.Field, e.Source = KeyPartitionFields, c.source(KeyPartitionFields)
		e.Hint = "write " + KeyPartitionFields + " as field:SIMPLE or field:TIMESTAMP entries, separated by commas"
		if !c.release.earlyCustom() {
			e.Stage = StagePartition
			k.partFail = e
			return nil
		}
		e.Stage, e.Row = StageConstruct, -1
		return e
	}
	for _, entry := range SplitFields(text) {
		parts := javaSplitColon(entry)
		if len(parts) != 2 {
			class := classKey
			if c.release.since(1, 0, 0) {
				class = classKeyGenerator
			}
			return fail(&Error{Class: class, Message: "Unable to find field names for partition path in proper format. Please specify the partition field names in format `field1:type1,field2:type2`. Example: `country:simple,ts:timestamp`, but found " + strconv.Quote(entry)})
		}
		tg := target{field: parts[0], name: parts[0], slash: c.slash}
		switch typ := strings.ToUpper(parts[1]); typ {
		case "SIMPLE":
		case "TIMESTAMP":
			tg.time, tg.slash = true, false
			if k.times == nil {
				if err := k.readCustomTimes(c); err != nil {
					return err
				}
			}
		default:
			return fail(&Error{Class: classArgument, Message: "No enum constant org.apache.hudi.keygen.CustomAvroKeyGenerator.PartitionKeyType." + typ})
		}
		k.targets = append(k.targets, tg)
	}
	return nil
}

func (k *Keygen) readCustomTimes(c *setup) *Error {
	var err *Error
	if k.times, err = newTimeRule(c); err == nil {
		return nil
	}
	wrapped := *err
	if err.Class == classIO {
		wrapped.Class, wrapped.Cause = classKeyGenerator, classIO
		wrapped.Message = "Unable to initialise TimestampBasedKeyGenerator class: " + err.Message
	}
	if c.release.earlyCustom() {
		return &wrapped
	}
	wrapped.Stage = StagePartition
	k.partFail = &wrapped
	return nil
}

// javaSplitColon is String.split(":").
func javaSplitColon(text string) []string {
	list := strings.Split(text, ":")
	for len(list) > 0 && list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return list
}

// checkTargets refuses combinations that the reference documents as impossible but takes (key generation 7.4).
func (k *Keygen) checkTargets(c *setup) *Error {
	if !c.slash {
		return nil
	}
	switch {
	case k.hive:
		return c.refuse(KeySlashDates, KeySlashDates+" and "+KeyHiveStyle+" exclude each other: Apache Hudi's own write paths disagree about the result", "switch one of them off")
	case len(k.targets) > 1:
		return c.refuse(KeySlashDates, KeySlashDates+" needs exactly one partition field", "name one partition field")
	}
	return nil
}

// Type of the generator.
func (k *Keygen) Type() Type { return k.typ }

// Encoding of one-field complex keys, [FieldPrefixed] or [ValueOnly]; empty for all other keys. A writer records it in the
// table property hoodie.table.complex.keygen.encoding under the table lock.
func (k *Keygen) Encoding() string { return k.encoding }

// Fields are the columns that keys and partition paths are made of.
func (k *Keygen) Fields() (record, partition []string) {
	for _, t := range k.targets {
		partition = append(partition, t.field)
	}
	return slices.Clone(k.keys), partition
}

// Warnings name what is legal but harmful, or not understood.
func (k *Keygen) Warnings() []string {
	w := slices.Clone(k.config.warnings)
	if k.times != nil {
		w = append(w, k.times.warnings...)
	}
	if len(k.targets) > 0 && !k.encode && !k.hive {
		return w
	}
	return w
}

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
	if k.path != PathAvro && k.lenient { // rows resolve all their fields first
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
		return CheckPath(string(path)).(*Error)
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
