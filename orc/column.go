package orc

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// bitmap says which of n slots hold a value. A nil *bitmap says that all do.
type bitmap struct {
	buf  *memory.Buffer
	bits []byte
	n    int
	set  int
}

func (b *bitmap) retain() *bitmap {
	if b != nil {
		b.buf.Retain()
	}
	return b
}

func (b *bitmap) release() {
	if b != nil {
		b.buf.Release()
	}
}

// count is how many of n slots hold a value.
func (b *bitmap) count(n int) int {
	if b == nil {
		return n
	}
	return b.set
}

// buffer is the validity buffer of an array: nil where no slot is null.
func (b *bitmap) buffer() *memory.Buffer {
	if b == nil || b.set == b.n {
		return nil
	}
	return b.buf
}

// column decodes one column of one stripe.
//
// Values of a column exist only where its parent has one: n slots are asked for, and where tells which of them exist.
type column interface {
	// read makes the array of the next n slots. The caller releases it.
	read(n int, where *bitmap) (*array.Data, error)
	// skip passes n slots that exist.
	skip(n int) error
	// seek goes to a position of the row index; see positions.
	seek(p *positions) error
}

// positions hands out the numbers of a row index entry, in the order of the streams of a column.
type positions struct {
	list       []uint64
	compressed bool
	name       string
}

func (p *positions) next() (uint64, error) {
	if len(p.list) == 0 {
		return 0, fmt.Errorf("%w: column %s: the row index has too few positions", ErrFormat, p.name)
	}
	v := p.list[0]
	p.list = p.list[1:]
	return v, nil
}

// input seeks a stream.
func (p *positions) input(in *input) error {
	at, err := p.next()
	if err != nil {
		return err
	}
	if !p.compressed { // the one number is an offset in the stream
		return in.seek(at, 0)
	}
	within, err := p.next()
	if err != nil {
		return err
	}
	return in.seek(at, within)
}

func (p *positions) ints(d *intDecoder) error {
	if err := p.input(d.in); err != nil {
		return err
	}
	d.n, d.pos = 0, 0
	k, err := p.next()
	if err != nil {
		return err
	}
	return d.skip(int(min(k, math.MaxInt32)))
}

func (p *positions) bytes(d *byteDecoder) error {
	if err := p.input(d.in); err != nil {
		return err
	}
	d.left = 0
	k, err := p.next()
	if err != nil {
		return err
	}
	return d.skip(int(min(k, math.MaxInt32)))
}

func (p *positions) bools(d *boolDecoder) error {
	if err := p.bytes(&d.bytes); err != nil {
		return err
	}
	d.left = 0
	k, err := p.next()
	if err != nil || k == 0 {
		return err
	}
	_, err = d.skip(int(min(k, math.MaxInt32)))
	return err
}

// base is what all columns share: the type, the scan they belong to and the PRESENT stream.
type base struct {
	scan    *scan
	node    *node
	dt      arrow.DataType
	present *boolDecoder // nil where all values are present
}

// validity reads which of n slots hold a value, and how many do. The caller releases the bitmap.
func (c *base) validity(n int, where *bitmap) (*bitmap, int, error) {
	if c.present == nil {
		return where.retain(), where.count(n), nil
	}
	v, err := c.newBitmap(n)
	if err != nil {
		return nil, 0, err
	}
	if where == nil {
		v.set, err = c.present.read(v.bits, n)
	} else {
		err = c.spread(v, where)
	}
	if err != nil {
		v.release()
		return nil, 0, err
	}
	return v, v.set, nil
}

func (c *base) newBitmap(n int) (*bitmap, error) {
	buf, err := c.buffer((n + 7) / 8)
	if err != nil {
		return nil, err
	}
	return &bitmap{buf: buf, bits: buf.Bytes(), n: n}, nil
}

// spread reads one bit of the PRESENT stream for each slot of where that exists.
func (c *base) spread(v, where *bitmap) (err error) {
	dense := make([]byte, (where.set+7)/8+slack)
	if v.set, err = c.present.read(dense, where.set); err != nil {
		return err
	}
	at := 0
	for i := range v.bits {
		w := where.bits[i]
		if i == len(v.bits)-1 && v.n%8 != 0 {
			w &= 1<<(v.n%8) - 1
		}
		out := byte(0)
		for ; w != 0; w &= w - 1 {
			if dense[at>>3]>>(at&7)&1 == 1 {
				out |= w & -w
			}
			at++
		}
		v.bits[i] = out
	}
	return nil
}

// skipPresent passes n slots of the PRESENT stream and returns how many of them hold a value.
func (c *base) skipPresent(n int) (int, error) {
	if c.present == nil {
		return n, nil
	}
	return c.present.skip(n)
}

func (c *base) seekPresent(p *positions) error {
	if c.present == nil {
		return nil
	}
	return p.bools(c.present)
}

// buffer allocates n bytes of the batch.
func (c *base) buffer(n int) (*memory.Buffer, error) {
	if err := c.scan.mem.growBatch(int64(n)+64, "column "+c.node.path); err != nil {
		return nil, err
	}
	b := memory.NewResizableBuffer(c.scan.alloc)
	b.Resize(n)
	return b, nil
}

// data makes the array and takes over the buffers.
func (c *base) data(n int, v *bitmap, set int, buffers ...*memory.Buffer) *array.Data {
	all := append([]*memory.Buffer{v.buffer()}, buffers...)
	d := array.NewData(c.dt, n, all, nil, n-set, 0)
	v.release()
	for _, b := range buffers {
		b.Release()
	}
	return d
}

// expand moves the first set values of vals, which stand together, to the slots that hold a value, and zeroes the rest.
func expand[T any](vals []T, v *bitmap) {
	if v == nil || v.set == v.n {
		return
	}
	var zero T
	from := v.set
	for i := v.n - 1; i >= 0; i-- {
		if v.bits[i>>3]>>(i&7)&1 == 0 {
			vals[i] = zero
			continue
		}
		if from--; from == i {
			return // all slots before are filled
		}
		vals[i] = vals[from]
	}
}

// integer is what the integer columns are made of in Arrow.
type integer interface{ ~int16 | ~int32 | ~int64 }

// intColumn is smallint, int, bigint and date.
type intColumn[T integer] struct {
	base
	values *intDecoder
	cast   func(*memory.Buffer) []T
	after  func([]T) // corrects the values, where they need it
}

func (c *intColumn[T]) read(n int, where *bitmap) (*array.Data, error) {
	v, set, err := c.validity(n, where)
	if err != nil {
		return nil, err
	}
	var t T
	buf, err := c.buffer(n * int(sizeOf(t)))
	if err != nil {
		v.release()
		return nil, err
	}
	vals := c.cast(buf)
	if err := readInts(c.values, vals[:set]); err != nil {
		v.release()
		buf.Release()
		return nil, err
	}
	if c.after != nil {
		c.after(vals[:set])
	}
	expand(vals, v)
	return c.data(n, v, set, buf), nil
}

func sizeOf[T integer](t T) uintptr {
	switch any(t).(type) {
	case int16:
		return 2
	case int32, arrow.Date32:
		return 4
	}
	return 8
}

// readInts fills dst, refusing values that do not fit.
func readInts[T integer](d *intDecoder, dst []T) error {
	if wide, ok := any(dst).([]int64); ok {
		return d.read(wide)
	}
	for len(dst) > 0 {
		if d.pos == d.n {
			if err := d.fill(); err != nil {
				return err
			}
		}
		k := min(len(dst), d.n-d.pos)
		lost := int64(0)
		run := d.run[d.pos : d.pos+k]
		out := dst[:k]
		for i, v := range run {
			out[i] = T(v)
			lost |= v ^ int64(T(v))
		}
		if lost != 0 {
			return d.in.damaged("a value that does not fit the column's type")
		}
		dst, d.pos = dst[k:], d.pos+k
	}
	return nil
}

func (c *intColumn[T]) skip(n int) error {
	n, err := c.skipPresent(n)
	if err != nil {
		return err
	}
	return c.values.skip(n)
}

func (c *intColumn[T]) seek(p *positions) error {
	if err := c.seekPresent(p); err != nil {
		return err
	}
	return p.ints(c.values)
}

// boolColumn is boolean.
type boolColumn struct {
	base
	values *boolDecoder
}

func (c *boolColumn) read(n int, where *bitmap) (*array.Data, error) {
	v, set, err := c.validity(n, where)
	if err != nil {
		return nil, err
	}
	buf, err := c.buffer((n + 7) / 8)
	if err == nil {
		if _, err = c.values.read(buf.Bytes(), set); err != nil {
			buf.Release()
		}
	}
	if err != nil {
		v.release()
		return nil, err
	}
	expandBits(buf.Bytes(), v)
	return c.data(n, v, set, buf), nil
}

// expandBits is expand for bits.
func expandBits(vals []byte, v *bitmap) {
	if v == nil || v.set == v.n {
		return
	}
	from := v.set
	for i := v.n - 1; i >= 0; i-- {
		bit := byte(0)
		if v.bits[i>>3]>>(i&7)&1 == 1 {
			from--
			bit = vals[from>>3] >> (from & 7) & 1
		}
		vals[i>>3] = vals[i>>3]&^(1<<(i&7)) | bit<<(i&7)
	}
}

func (c *boolColumn) skip(n int) error {
	n, err := c.skipPresent(n)
	if err == nil {
		_, err = c.values.skip(n)
	}
	return err
}

func (c *boolColumn) seek(p *positions) error {
	if err := c.seekPresent(p); err != nil {
		return err
	}
	return p.bools(c.values)
}

// byteColumn is tinyint.
type byteColumn struct {
	base
	values *byteDecoder
}

func (c *byteColumn) read(n int, where *bitmap) (*array.Data, error) {
	v, set, err := c.validity(n, where)
	if err != nil {
		return nil, err
	}
	buf, err := c.buffer(n)
	if err == nil {
		if err = c.values.read(buf.Bytes()[:set]); err != nil {
			buf.Release()
		}
	}
	if err != nil {
		v.release()
		return nil, err
	}
	expand(buf.Bytes(), v)
	return c.data(n, v, set, buf), nil
}

func (c *byteColumn) skip(n int) error {
	n, err := c.skipPresent(n)
	if err != nil {
		return err
	}
	return c.values.skip(n)
}

func (c *byteColumn) seek(p *positions) error {
	if err := c.seekPresent(p); err != nil {
		return err
	}
	return p.bytes(c.values)
}

// floatColumn is float (width 4) and double (width 8): IEEE 754, little endian.
type floatColumn struct {
	base
	values *input
	width  int
}

func (c *floatColumn) read(n int, where *bitmap) (*array.Data, error) {
	v, set, err := c.validity(n, where)
	if err != nil {
		return nil, err
	}
	buf, err := c.buffer(n * c.width)
	if err == nil {
		if err = c.values.readFull(buf.Bytes()[:set*c.width]); err != nil {
			buf.Release()
		}
	}
	if err != nil {
		v.release()
		return nil, err
	}
	if c.width == 4 {
		vals := arrow.Uint32Traits.CastFromBytes(buf.Bytes())
		littleEndian(buf.Bytes()[:set*4], vals[:set], binary.LittleEndian.Uint32)
		expand(vals, v)
	} else {
		vals := arrow.Uint64Traits.CastFromBytes(buf.Bytes())
		littleEndian(buf.Bytes()[:set*8], vals[:set], binary.LittleEndian.Uint64)
		expand(vals, v)
	}
	return c.data(n, v, set, buf), nil
}

// littleEndian puts the bytes of each value into the order of this machine, which is nothing to do on a little-endian one.
func littleEndian[T uint32 | uint64](b []byte, vals []T, get func([]byte) T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return
	}
	width := len(b) / max(len(vals), 1)
	for i := range vals {
		vals[i] = get(b[i*width:])
	}
}

func (c *floatColumn) skip(n int) error {
	n, err := c.skipPresent(n)
	if err != nil {
		return err
	}
	return c.values.skip(uint64(n) * uint64(c.width))
}

func (c *floatColumn) seek(p *positions) error {
	if err := c.seekPresent(p); err != nil {
		return err
	}
	return p.input(c.values)
}

// decimalColumn is decimal: unbounded varints with the scale of each beside it.
type decimalColumn struct {
	base
	values *input
	scales *intDecoder
	short  *intDecoder // instead of both, in the files of writers of format 1.9999 whose precision fits 64 bits
}

func (c *decimalColumn) read(n int, where *bitmap) (*array.Data, error) {
	v, set, err := c.validity(n, where)
	if err != nil {
		return nil, err
	}
	buf, err := c.buffer(n * 16)
	if err == nil {
		if err = c.decode(decimals(buf), set); err != nil {
			buf.Release()
		}
	}
	if err != nil {
		v.release()
		return nil, err
	}
	expand(decimals(buf), v)
	return c.data(n, v, set, buf), nil
}

// skip decodes, because a varint's length is in its bytes.
func (c *decimalColumn) skip(n int) error {
	n, err := c.skipPresent(n)
	if err != nil {
		return err
	}
	if c.short != nil {
		return c.short.skip(n)
	}
	for range n {
		if _, _, err := c.values.uvarint128(); err != nil {
			return err
		}
	}
	return c.scales.skip(n)
}

func (c *decimalColumn) seek(p *positions) error {
	if err := c.seekPresent(p); err != nil {
		return err
	}
	if c.short != nil {
		return p.ints(c.short)
	}
	if err := p.input(c.values); err != nil {
		return err
	}
	return p.ints(c.scales)
}
