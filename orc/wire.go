package orc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// The wire form of protocol buffers, as far as the messages of ORC need it.

const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

var errWire = errors.New("damaged protocol buffer")

// fields walks the fields of one message. Unknown fields are for the caller to ignore: next has consumed them.
type fields struct {
	b   []byte
	num int
	typ int
	u   uint64 // the value of a varint or fixed field
	v   []byte // the value of a length-delimited field
}

// next moves to the next field; false at the end of the message.
func (f *fields) next() (bool, error) {
	if len(f.b) == 0 {
		return false, nil
	}
	tag, n := binary.Uvarint(f.b)
	if n <= 0 || tag>>3 == 0 || tag>>3 > math.MaxInt32 {
		return false, fmt.Errorf("%w: bad field tag", errWire)
	}
	f.b = f.b[n:]
	f.num, f.typ, f.v = int(tag>>3), int(tag&7), nil
	switch f.typ {
	case wireVarint:
		if f.u, n = binary.Uvarint(f.b); n <= 0 {
			return false, fmt.Errorf("%w: field %d: bad varint", errWire, f.num)
		}
		f.b = f.b[n:]
	case wireFixed64:
		if len(f.b) < 8 {
			return false, fmt.Errorf("%w: field %d: %d bytes of 8", errWire, f.num, len(f.b))
		}
		f.u, f.b = binary.LittleEndian.Uint64(f.b), f.b[8:]
	case wireFixed32:
		if len(f.b) < 4 {
			return false, fmt.Errorf("%w: field %d: %d bytes of 4", errWire, f.num, len(f.b))
		}
		f.u, f.b = uint64(binary.LittleEndian.Uint32(f.b)), f.b[4:]
	case wireBytes:
		size, n := binary.Uvarint(f.b)
		if n <= 0 || size > uint64(len(f.b)-n) {
			return false, fmt.Errorf("%w: field %d: length past the end of its message", errWire, f.num)
		}
		f.v, f.b = f.b[n:n+int(size)], f.b[n+int(size):]
	default:
		return false, fmt.Errorf("%w: field %d: wire type %d", errWire, f.num, f.typ)
	}
	return true, nil
}

// each calls fn for every field of message b.
func each(b []byte, fn func(*fields) error) error {
	f := fields{b: b}
	for {
		ok, err := f.next()
		if err != nil || !ok {
			return err
		}
		if err := fn(&f); err != nil {
			return err
		}
	}
}

// uints appends the values of a repeated integer field, packed or not.
func (f *fields) uints(to []uint64) ([]uint64, error) {
	if f.typ != wireBytes {
		return append(to, f.u), nil
	}
	for b := f.v; len(b) > 0; {
		u, n := binary.Uvarint(b)
		if n <= 0 {
			return to, fmt.Errorf("%w: field %d: bad packed varint", errWire, f.num)
		}
		to, b = append(to, u), b[n:]
	}
	return to, nil
}

func (f *fields) sint() int64     { return unzigzag(f.u) }
func (f *fields) double() float64 { return math.Float64frombits(f.u) }
func zigzag(v int64) uint64       { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(u uint64) int64     { return int64(u>>1) ^ -int64(u&1) }
func (f *fields) uint32() uint32  { return uint32(min(f.u, math.MaxUint32)) }
func (f *fields) length() int64   { return int64(min(f.u, math.MaxInt64)) }
func (f *fields) text() string    { return string(f.v) }
func (f *fields) isTrue() bool    { return f.u != 0 }
func tagOf(num, typ int) uint64   { return uint64(num)<<3 | uint64(typ) }

// message builds one message.
type message []byte

func (m *message) uint(num int, v uint64) {
	*m = binary.AppendUvarint(binary.AppendUvarint(*m, tagOf(num, wireVarint)), v)
}

func (m *message) sint(num int, v int64) { m.uint(num, zigzag(v)) }

func (m *message) double(num int, v float64) {
	*m = binary.LittleEndian.AppendUint64(binary.AppendUvarint(*m, tagOf(num, wireFixed64)), math.Float64bits(v))
}

func (m *message) bytes(num int, v []byte) {
	*m = append(binary.AppendUvarint(binary.AppendUvarint(*m, tagOf(num, wireBytes)), uint64(len(v))), v...)
}

func (m *message) text(num int, v string) {
	*m = append(binary.AppendUvarint(binary.AppendUvarint(*m, tagOf(num, wireBytes)), uint64(len(v))), v...)
}

func (m *message) packed(num int, v []uint64) {
	if len(v) == 0 {
		return
	}
	var b []byte
	for _, u := range v {
		b = binary.AppendUvarint(b, u)
	}
	m.bytes(num, b)
}
