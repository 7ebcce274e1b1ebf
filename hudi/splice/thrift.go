package splice

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A Parquet footer is edited here without being understood: a structure is its fields, and a field that nobody looks at
// stays the bytes that it was. So what a newer writer knows and Sluice does not comes through, and an absent number does not
// become a zero (a null count of zero where the writer left none would make readers skip rows).

// The types of the Thrift compact protocol.
const (
	kindTrue   = 1
	kindFalse  = 2
	kindByte   = 3
	kindI16    = 4
	kindI32    = 5
	kindI64    = 6
	kindDouble = 7
	kindBinary = 8
	kindList   = 9
	kindSet    = 10
	kindStruct = 12
)

// maxNesting bounds structures in structures.
const maxNesting = 32

var (
	errOrder    = errors.New("fields out of order")
	errCut      = errors.New("it ends too early")
	errTooDeep  = errors.New("nested too deeply")
	errTooLarge = errors.New("a length that reaches beyond the end")
)

// fields is a structure, its fields in ascending order of their numbers.
type fields []field

// field is one field: raw is its value as it is encoded, nothing for booleans, whose kind is the value.
type field struct {
	id   int16
	kind byte
	raw  []byte
}

// parseFields reads a structure that starts with b and gives its length. Every writer puts fields in ascending order; that
// no field is there twice is what lets others read the same values as we do.
func parseFields(b []byte) (fields, int, error) {
	var out fields
	ordered := true
	r := reader{b: b}
	n, err := r.structure(0, func(id int16, kind byte, raw []byte) {
		ordered = ordered && (len(out) == 0 || id > out[len(out)-1].id)
		out = append(out, field{id, kind, raw})
	})
	if err == nil && !ordered {
		err = errOrder
	}
	return out, n, err
}

// reader walks bytes without trusting a length.
type reader struct {
	b  []byte
	at int
}

func (r *reader) structure(depth int, each func(id int16, kind byte, raw []byte)) (int, error) {
	if depth > maxNesting {
		return r.at, errTooDeep
	}
	id := int16(0)
	for {
		head, err := r.byte()
		if err != nil || head == 0 {
			return r.at, err
		}
		kind := head & 0x0f
		if delta := int16(head >> 4); delta != 0 {
			id += delta
		} else { // long form: the field's number follows
			v, err := r.varint()
			if err != nil {
				return r.at, err
			}
			id = int16(zigzag(v))
		}
		from := r.at
		if kind != kindTrue && kind != kindFalse {
			if err := r.value(kind, depth); err != nil {
				return r.at, err
			}
		}
		if each != nil {
			each(id, kind, r.b[from:r.at:r.at])
		}
	}
}

func (r *reader) byte() (byte, error) {
	if r.at >= len(r.b) {
		return 0, errCut
	}
	r.at++
	return r.b[r.at-1], nil
}

func (r *reader) varint() (uint64, error) {
	v, n := binary.Uvarint(r.b[r.at:])
	if n == 0 {
		return 0, errCut
	}
	if n < 0 {
		return 0, errTooLarge
	}
	r.at += n
	return v, nil
}

func (r *reader) skip(n uint64) error {
	if n > uint64(len(r.b)-r.at) {
		return errCut
	}
	r.at += int(n)
	return nil
}

func (r *reader) value(kind byte, depth int) error {
	switch kind {
	case kindTrue, kindFalse, kindByte: // booleans have a byte in lists
		return r.skip(1)
	case kindI16, kindI32, kindI64:
		_, err := r.varint()
		return err
	case kindDouble:
		return r.skip(8)
	case kindBinary:
		n, err := r.varint()
		if err != nil {
			return err
		}
		return r.skip(n)
	case kindList, kindSet:
		return r.list(depth, nil)
	case kindStruct:
		_, err := r.structure(depth+1, nil)
		return err
	}
	return fmt.Errorf("unknown Thrift type %d", kind) // Parquet has no maps
}

func (r *reader) list(depth int, each func(kind byte, raw []byte)) error {
	if depth > maxNesting {
		return errTooDeep
	}
	head, err := r.byte()
	if err != nil {
		return err
	}
	n := uint64(head >> 4)
	if n == 15 {
		if n, err = r.varint(); err != nil {
			return err
		}
	}
	if n > uint64(len(r.b)-r.at) {
		return errCut
	}
	for range n {
		from := r.at
		if err := r.value(head&0x0f, depth+1); err != nil {
			return err
		}
		if each != nil {
			each(head&0x0f, r.b[from:r.at:r.at])
		}
	}
	return nil
}

func zigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

func (f fields) find(id int16) *field {
	for i := range f {
		if f[i].id == id {
			return &f[i]
		}
	}
	return nil
}

func (f fields) has(id int16) bool { return f.find(id) != nil }

// integer gives an i8, i16, i32 or i64.
func (f fields) integer(id int16) (int64, bool) {
	e := f.find(id)
	switch {
	case e == nil:
		return 0, false
	case e.kind == kindByte && len(e.raw) == 1:
		return int64(int8(e.raw[0])), true
	case e.kind >= kindI16 && e.kind <= kindI64:
		v, n := binary.Uvarint(e.raw)
		return zigzag(v), n > 0
	}
	return 0, false
}

// number is integer with a default.
func (f fields) number(id int16, absent int64) int64 {
	if v, ok := f.integer(id); ok {
		return v
	}
	return absent
}

// binary gives the bytes of a text or binary field; nil where it is absent, else never nil.
func (f fields) binary(id int16) []byte {
	e := f.find(id)
	if e == nil || e.kind != kindBinary {
		return nil
	}
	r := reader{b: e.raw}
	if _, err := r.varint(); err != nil {
		return nil
	}
	return append([]byte{}, e.raw[r.at:]...)
}

// structure gives the fields of an inner structure; none where it is absent.
func (f fields) structure(id int16) (fields, error) {
	e := f.find(id)
	if e == nil {
		return nil, nil
	}
	if e.kind != kindStruct {
		return nil, fmt.Errorf("field %d is no structure", id)
	}
	out, _, err := parseFields(e.raw)
	return out, err
}

// list gives the encoded elements of a list; none where it is absent.
func (f fields) list(id int16) (items [][]byte, err error) {
	e := f.find(id)
	if e == nil {
		return nil, nil
	}
	if e.kind != kindList {
		return nil, fmt.Errorf("field %d is no list", id)
	}
	r := reader{b: e.raw}
	err = r.list(0, func(_ byte, raw []byte) { items = append(items, raw) })
	return items, err
}

// structures gives the elements of a list of structures.
func (f fields) structures(id int16) ([]fields, error) {
	items, err := f.list(id)
	if err != nil {
		return nil, err
	}
	out := make([]fields, len(items))
	for i, raw := range items {
		if out[i], _, err = parseFields(raw); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// set puts a field in its place; the fields that f had are not touched.
func (f fields) set(id int16, kind byte, raw []byte) fields {
	out := make(fields, 0, len(f)+1)
	done := false
	for _, e := range f {
		if !done && e.id >= id {
			out, done = append(out, field{id, kind, raw}), true
		}
		if e.id != id {
			out = append(out, e)
		}
	}
	if !done {
		out = append(out, field{id, kind, raw})
	}
	return out
}

func (f fields) setI16(id int16, v int64) fields { return f.set(id, kindI16, appendVarint(nil, v)) }
func (f fields) setI32(id int16, v int64) fields { return f.set(id, kindI32, appendVarint(nil, v)) }
func (f fields) setI64(id int16, v int64) fields { return f.set(id, kindI64, appendVarint(nil, v)) }
func (f fields) setText(id int16, s string) fields {
	return f.set(id, kindBinary, append(binary.AppendUvarint(nil, uint64(len(s))), s...))
}
func (f fields) setStruct(id int16, in fields) fields { return f.set(id, kindStruct, in.append(nil)) }
func (f fields) setBool(id int16, v bool) fields {
	if v {
		return f.set(id, kindTrue, nil)
	}
	return f.set(id, kindFalse, nil)
}

func (f fields) setList(id int16, kind byte, items [][]byte) fields {
	raw := appendListHead(nil, kind, len(items))
	for _, it := range items {
		raw = append(raw, it...)
	}
	return f.set(id, kindList, raw)
}

func (f fields) setStructs(id int16, in []fields) fields {
	raw := appendListHead(nil, kindStruct, len(in))
	for _, s := range in {
		raw = s.append(raw)
	}
	return f.set(id, kindList, raw)
}

// without leaves fields out.
func (f fields) without(ids ...int16) fields {
	out := make(fields, 0, len(f))
next:
	for _, e := range f {
		for _, id := range ids {
			if e.id == id {
				continue next
			}
		}
		out = append(out, e)
	}
	return out
}

// append encodes the structure.
func (f fields) append(dst []byte) []byte {
	last := int16(0)
	for _, e := range f {
		if delta := int(e.id) - int(last); delta > 0 && delta <= 15 {
			dst = append(dst, byte(delta)<<4|e.kind)
		} else {
			dst = appendVarint(append(dst, e.kind), int64(e.id))
		}
		dst = append(dst, e.raw...)
		last = e.id
	}
	return append(dst, 0)
}

func appendVarint(dst []byte, v int64) []byte {
	return binary.AppendUvarint(dst, uint64(v<<1)^uint64(v>>63))
}

func appendListHead(dst []byte, kind byte, n int) []byte {
	if n < 15 {
		return append(dst, byte(n)<<4|kind)
	}
	return binary.AppendUvarint(append(dst, 0xf0|kind), uint64(n))
}
