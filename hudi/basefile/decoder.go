package basefile

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
)

// pageReader is the typed face of a column chunk. Values of byte types are good until the next call.
type pageReader[T any] interface {
	ReadBatchInPage(n int64, values []T, defs, reps []int16) (int64, int, error)
}

// buffer is an Arrow buffer seen as values.
type buffer[T any] struct {
	mem memory.Allocator
	buf *memory.Buffer
	v   []T // the whole capacity
}

// ensure makes room for n values in all, keeping those that are there.
func (b *buffer[T]) ensure(n int) {
	if n <= len(b.v) {
		return
	}
	var t T
	size := int(unsafe.Sizeof(t))
	if b.buf == nil {
		b.buf = memory.NewResizableBuffer(b.mem)
	} else {
		n = max(n, 2*len(b.v))
	}
	b.buf.ResizeNoShrink(n * size)
	bytes := b.buf.Bytes()
	b.v = unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(bytes))), len(bytes)/size) // Arrow buffers are aligned to 64 bytes
}

// detach hands the first n values out and leaves an empty buffer.
func (b *buffer[T]) detach(n int) *memory.Buffer {
	if b.buf == nil {
		b.ensure(1)
	}
	var t T
	out := b.buf
	out.ResizeNoShrink(n * int(unsafe.Sizeof(t)))
	b.buf, b.v = nil, nil
	return out
}

func (b *buffer[T]) release() {
	if b.buf != nil {
		b.buf.Release()
		b.buf, b.v = nil, nil
	}
}

// fixedDecoder: values of type T become values of a fixed size U, through convert or as they are.
type fixedDecoder[T, U any] struct {
	in      pageReader[T]
	out     buffer[U]
	convert func(dst []U, src []T) error
	scratch []T
}

func newFixed[T, U any](mem memory.Allocator, convert func([]U, []T) error) *fixedDecoder[T, U] {
	d := &fixedDecoder[T, U]{out: buffer[U]{mem: mem}, convert: convert}
	if convert != nil {
		d.scratch = make([]T, pageStep)
	}
	return d
}

func (d *fixedDecoder[T, U]) open(chunk file.ColumnChunkReader) error {
	var ok bool
	if d.in, ok = chunk.(pageReader[T]); !ok {
		return fmt.Errorf("%w: column chunk of type %s", ErrDamaged, chunk.Type())
	}
	return nil
}

func (d *fixedDecoder[T, U]) reserve(n int) { d.out.ensure(max(n, 1)) }

func (d *fixedDecoder[T, U]) read(l *leafReader, n, at int) (entries, values, slots int, err error) {
	d.out.ensure(at + n)
	dst := d.out.v[at : at+n]
	src := d.scratch
	if d.convert == nil {
		src = unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(dst))), n) // U is T
	}
	got, values, err := d.in.ReadBatchInPage(int64(n), src[:n], l.defsFor(n), l.repsFor(n))
	if err != nil {
		return 0, 0, 0, damaged(err)
	}
	entries = int(got)
	if values > n || entries > n {
		return entries, values, 0, nil // the caller refuses it
	}
	if d.convert != nil {
		if err := d.convert(dst[:values], src[:values]); err != nil {
			return 0, 0, 0, err
		}
	}
	slots = l.slotsOf(entries)
	if values < slots {
		spread(dst, values, slots, l.scratchDefs[:entries], l.maxDef, l.node.slotDef)
	}
	return entries, values, slots, nil
}

func (d *fixedDecoder[T, U]) take(n, total int) []*memory.Buffer {
	left := append([]U(nil), d.out.v[n:total]...)
	buf := d.out.detach(n)
	if len(left) > 0 {
		d.out.ensure(len(left))
		copy(d.out.v, left)
	}
	return []*memory.Buffer{buf}
}

func (d *fixedDecoder[T, U]) release() { d.out.release() }

// varDecoder: values of bytes become strings or binaries.
type varDecoder[T ~[]byte] struct {
	in      pageReader[T]
	offsets buffer[int32]
	data    buffer[byte]
	used    int // bytes of data
	text    func(dst []byte, v T) []byte
	scratch []T
	perSlot int // bytes of a slot in the batch before, to size the next
}

func newVar[T ~[]byte](mem memory.Allocator, text func([]byte, T) []byte) *varDecoder[T] {
	return &varDecoder[T]{offsets: buffer[int32]{mem: mem}, data: buffer[byte]{mem: mem}, text: text, scratch: make([]T, pageStep), perSlot: 8}
}

func (d *varDecoder[T]) open(chunk file.ColumnChunkReader) error {
	var ok bool
	if d.in, ok = chunk.(pageReader[T]); !ok {
		return fmt.Errorf("%w: column chunk of type %s", ErrDamaged, chunk.Type())
	}
	return nil
}

func (d *varDecoder[T]) reserve(n int) {
	d.offsets.ensure(n + 1)
	d.data.ensure(max(n*d.perSlot, 1))
}

func (d *varDecoder[T]) read(l *leafReader, n, at int) (entries, values, slots int, err error) {
	got, values, err := d.in.ReadBatchInPage(int64(n), d.scratch[:n], l.defsFor(n), l.repsFor(n))
	if err != nil {
		return 0, 0, 0, damaged(err)
	}
	entries = int(got)
	if values > n || entries > n {
		return entries, values, 0, nil
	}
	slots = l.slotsOf(entries)
	if values > slots {
		return entries, values, slots, nil
	}
	d.offsets.ensure(at + slots + 1)
	if at == 0 {
		d.offsets.v[0] = 0
	}
	size := 0
	for _, v := range d.scratch[:values] {
		size += len(v)
	}
	if d.text != nil {
		size = values * 40
	}
	if d.used+size > math.MaxInt32 {
		return 0, 0, 0, fmt.Errorf("more than %d bytes of text in one batch: ask for fewer rows in a batch", math.MaxInt32)
	}
	if need := d.used + size; need > len(d.data.v) {
		d.data.ensure(max(need, need+need/4))
	}
	if values == slots {
		d.appendDense(d.offsets.v[at+1:at+slots+1], values)
	} else {
		d.appendSpread(d.offsets.v[at+1:at+slots+1], l.scratchDefs[:entries], l.maxDef, l.node.slotDef)
	}
	return entries, values, slots, nil
}

func (d *varDecoder[T]) appendDense(offsets []int32, values int) {
	used, data := d.used, d.data.v
	if d.text != nil {
		for i, v := range d.scratch[:values] {
			used = len(d.text(data[:used], v))
			offsets[i] = int32(used)
		}
	} else {
		for i, v := range d.scratch[:values] {
			used += copy(data[used:], v)
			offsets[i] = int32(used)
		}
	}
	d.used = used
}

func (d *varDecoder[T]) appendSpread(offsets []int32, defs []int16, maxDef, slotDef int16) {
	used, data := d.used, d.data.v
	value, slot := 0, 0
	for _, def := range defs {
		switch {
		case def == maxDef:
			if d.text != nil {
				used = len(d.text(data[:used], d.scratch[value]))
			} else {
				used += copy(data[used:], d.scratch[value])
			}
			value++
		case def < slotDef:
			continue
		}
		offsets[slot] = int32(used)
		slot++
	}
	d.used = used
}

func (d *varDecoder[T]) take(n, total int) []*memory.Buffer {
	if total == 0 {
		d.offsets.ensure(1)
		d.offsets.v[0] = 0
	}
	end := int(d.offsets.v[n])
	leftOffsets := append([]int32(nil), d.offsets.v[n:total+1]...)
	var leftData []byte
	if total > n {
		leftData = append(leftData, d.data.v[end:d.used]...)
	}
	if n > 0 {
		d.perSlot = end/n + end/(n*8) + 1
	}
	out := []*memory.Buffer{d.offsets.detach(n + 1), d.data.detach(end)}
	d.used = len(leftData)
	if total > n {
		d.offsets.ensure(len(leftOffsets))
		for i, o := range leftOffsets {
			d.offsets.v[i] = o - int32(end)
		}
		d.data.ensure(max(len(leftData), 1))
		copy(d.data.v, leftData)
	}
	return out
}

func (d *varDecoder[T]) release() {
	d.offsets.release()
	d.data.release()
}

// readSlots reads up to n entries into scratch, one value for each slot. More values than slots are damage, which the caller
// of read reports.
func readSlots[T any](in pageReader[T], scratch []T, l *leafReader, n int) (entries, values, slots int, err error) {
	got, values, err := in.ReadBatchInPage(int64(n), scratch[:n], l.defsFor(n), l.repsFor(n))
	if err != nil {
		return 0, 0, 0, damaged(err)
	}
	entries = int(got)
	if values > n || entries > n {
		return entries, values, 0, nil
	}
	slots = l.slotsOf(entries)
	if values < slots {
		spread(scratch, values, slots, l.scratchDefs[:entries], l.maxDef, l.node.slotDef)
	}
	return entries, values, slots, nil
}

// wideDecoder: fixed-length bytes stay fixed-length bytes.
type wideDecoder struct {
	in      pageReader[parquet.FixedLenByteArray]
	mem     memory.Allocator
	width   int
	out     buffer[byte]
	scratch []parquet.FixedLenByteArray
}

func (d *wideDecoder) open(chunk file.ColumnChunkReader) error {
	var ok bool
	if d.in, ok = chunk.(pageReader[parquet.FixedLenByteArray]); !ok {
		return fmt.Errorf("%w: column chunk of type %s", ErrDamaged, chunk.Type())
	}
	d.out.mem = d.mem
	d.scratch = make([]parquet.FixedLenByteArray, pageStep)
	return nil
}

func (d *wideDecoder) reserve(n int) { d.out.ensure(max(n*d.width, 1)) }

func (d *wideDecoder) read(l *leafReader, n, at int) (entries, values, slots int, err error) {
	entries, values, slots, err = readSlots(d.in, d.scratch, l, n)
	if err != nil || values > slots {
		return entries, values, slots, err
	}
	d.out.ensure((at + slots) * d.width)
	for i, v := range d.scratch[:slots] {
		place := d.out.v[(at+i)*d.width : (at+i+1)*d.width]
		if copy(place, v) < d.width {
			clear(place) // null
		}
	}
	return entries, values, slots, nil
}

func (d *wideDecoder) take(n, total int) []*memory.Buffer {
	d.out.mem = d.mem
	left := append([]byte(nil), d.out.v[n*d.width:total*d.width]...)
	buf := d.out.detach(n * d.width)
	if len(left) > 0 {
		d.out.ensure(len(left))
		copy(d.out.v, left)
	}
	return []*memory.Buffer{buf}
}

func (d *wideDecoder) release() { d.out.release() }

// boolDecoder packs booleans into bits.
type boolDecoder struct {
	in      pageReader[bool]
	mem     memory.Allocator
	out     buffer[byte]
	scratch []bool
}

func (d *boolDecoder) open(chunk file.ColumnChunkReader) error {
	var ok bool
	if d.in, ok = chunk.(pageReader[bool]); !ok {
		return fmt.Errorf("%w: column chunk of type %s", ErrDamaged, chunk.Type())
	}
	d.out.mem = d.mem
	d.scratch = make([]bool, pageStep)
	return nil
}

func (d *boolDecoder) reserve(n int) { d.out.ensure(int(bitutil.BytesForBits(int64(n))) + 1) }

func (d *boolDecoder) read(l *leafReader, n, at int) (entries, values, slots int, err error) {
	entries, values, slots, err = readSlots(d.in, d.scratch, l, n)
	if err != nil || values > slots {
		return entries, values, slots, err
	}
	d.out.ensure(int(bitutil.BytesForBits(int64(at + slots))))
	for i, v := range d.scratch[:slots] {
		bitutil.SetBitTo(d.out.v, at+i, v)
	}
	return entries, values, slots, nil
}

func (d *boolDecoder) take(n, total int) []*memory.Buffer {
	d.out.mem = d.mem
	bytes := int(bitutil.BytesForBits(int64(n)))
	left := make([]byte, bitutil.BytesForBits(int64(total-n)))
	if total > n {
		bitutil.CopyBitmap(d.out.v, n, total-n, left, 0)
	}
	buf := d.out.detach(bytes)
	if total > n {
		d.out.ensure(len(left))
		copy(d.out.v, left)
	}
	return []*memory.Buffer{buf}
}

func (d *boolDecoder) release() { d.out.release() }
