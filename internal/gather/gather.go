// Package gather copies rows of several Arrow arrays or batches into new ones, run by run.
package gather

import (
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Run is a stretch of rows of one source: rows Row to Row+N-1 of source Src.
type Run struct{ Src, Row, N int32 }

// ErrTooBig: the rows do not fit in one array of 32-bit offsets. The caller makes two batches of them.
var ErrTooBig = errors.New("more than 2 GiB in one column of a batch")

// Array copies runs of rows from several arrays of one layout into one new array of type dt. Sources that no run names may be nil.
// Nothing is boxed: fixed-width
// values, offsets and bytes are copied run by run.
func Array(mem memory.Allocator, dt arrow.DataType, srcs []arrow.Array, runs []Run) (arrow.Array, error) {
	datas := make([]arrow.ArrayData, len(srcs))
	used := make([]bool, len(srcs))
	for _, r := range runs {
		used[r.Src] = true
	}
	for i, a := range srcs {
		if used[i] {
			datas[i] = a.Data()
		}
	}
	d, err := gatherData(mem, dt, datas, runs)
	if err != nil {
		return nil, err
	}
	defer d.Release()
	return array.MakeFromData(d), nil
}

// Total is the number of rows of runs.
func Total(runs []Run) int {
	n := 0
	for _, r := range runs {
		n += int(r.N)
	}
	return n
}

func gatherData(mem memory.Allocator, dt arrow.DataType, srcs []arrow.ArrayData, runs []Run) (arrow.ArrayData, error) {
	n := Total(runs)
	if ext, ok := dt.(arrow.ExtensionType); ok {
		d, err := gatherData(mem, ext.StorageType(), srcs, runs)
		if err != nil {
			return nil, err
		}
		defer d.Release()
		return array.NewData(dt, n, d.Buffers(), d.Children(), d.NullN(), 0), nil
	}
	g := &gatherer{mem: mem, srcs: srcs, runs: runs, n: n}
	switch dt.ID() {
	case arrow.NULL:
		return array.NewData(dt, n, []*memory.Buffer{nil}, nil, n, 0), nil
	case arrow.BOOL:
		return g.finish(dt, []*memory.Buffer{g.bits(1)}, nil)
	case arrow.STRING, arrow.BINARY:
		return g.bytes(dt)
	case arrow.LARGE_STRING, arrow.LARGE_BINARY:
		return g.largeBytes(dt)
	case arrow.STRUCT:
		return g.structs(dt.(*arrow.StructType))
	case arrow.LIST, arrow.MAP:
		return g.lists(dt)
	case arrow.FIXED_SIZE_LIST:
		return g.fixedLists(dt.(*arrow.FixedSizeListType))
	}
	if fw, ok := dt.(arrow.FixedWidthDataType); ok && fw.BitWidth()%8 == 0 && dt.ID() != arrow.DICTIONARY {
		return g.finish(dt, []*memory.Buffer{g.fixed(fw.BitWidth() / 8)}, nil)
	}
	return g.slices(dt)
}

type gatherer struct {
	mem  memory.Allocator
	srcs []arrow.ArrayData
	runs []Run
	n    int
}

// finish adds the validity bitmap and hands the buffers over to the array.
func (g *gatherer) finish(dt arrow.DataType, buffers []*memory.Buffer, children []arrow.ArrayData) (arrow.ArrayData, error) {
	valid, nulls := g.validity()
	all := append([]*memory.Buffer{valid}, buffers...)
	d := array.NewData(dt, g.n, all, children, nulls, 0)
	for _, b := range all {
		if b != nil {
			b.Release()
		}
	}
	for _, c := range children {
		c.Release()
	}
	return d, nil
}

func (g *gatherer) buffer(size int) *memory.Buffer {
	b := memory.NewResizableBuffer(g.mem)
	b.Resize(size)
	return b
}

func (g *gatherer) validity() (*memory.Buffer, int) {
	some := false
	for _, d := range g.srcs {
		if d != nil && d.NullN() != 0 {
			some = true
			break
		}
	}
	if !some {
		return nil, 0
	}
	b := g.bits(0)
	nulls := g.n - bitutil.CountSetBits(b.Bytes(), 0, g.n)
	if nulls == 0 {
		b.Release()
		return nil, 0
	}
	return b, nulls
}

// bits copies one bit per row from buffer at of every source; a source without that buffer counts as all ones.
func (g *gatherer) bits(at int) *memory.Buffer {
	b := g.buffer(int(bitutil.BytesForBits(int64(g.n))))
	dst, pos := b.Bytes(), 0
	clear(dst)
	for _, r := range g.runs {
		d := g.srcs[r.Src]
		src := d.Buffers()[at]
		switch {
		case src == nil || at == 0 && d.NullN() == 0:
			bitutil.SetBitsTo(dst, int64(pos), int64(r.N), true)
		case r.N == 1:
			bitutil.SetBitTo(dst, pos, bitutil.BitIsSet(src.Bytes(), d.Offset()+int(r.Row)))
		default:
			bitutil.CopyBitmap(src.Bytes(), d.Offset()+int(r.Row), int(r.N), dst, pos)
		}
		pos += int(r.N)
	}
	return b
}

func (g *gatherer) fixed(width int) *memory.Buffer {
	b := g.buffer(g.n * width)
	dst, pos := b.Bytes(), 0
	switch width {
	case 8:
		copyRuns(g, arrow.Uint64Traits.CastFromBytes(dst), arrow.Uint64Traits.CastFromBytes)
	case 4:
		copyRuns(g, arrow.Uint32Traits.CastFromBytes(dst), arrow.Uint32Traits.CastFromBytes)
	default:
		for _, r := range g.runs {
			d := g.srcs[r.Src]
			from := (d.Offset() + int(r.Row)) * width
			pos += copy(dst[pos:], d.Buffers()[1].Bytes()[from:from+int(r.N)*width])
		}
	}
	return b
}

// copyRuns copies fixed-width values.
func copyRuns[T uint32 | uint64](g *gatherer, out []T, cast func([]byte) []T) {
	var src []T
	last, pos := int32(-1), 0
	for _, r := range g.runs {
		if r.Src != last {
			d := g.srcs[r.Src]
			src, last = cast(d.Buffers()[1].Bytes())[d.Offset():], r.Src
		}
		if r.N == 1 {
			out[pos] = src[r.Row]
			pos++
			continue
		}
		pos += copy(out[pos:], src[r.Row:r.Row+r.N])
	}
}

func bufferBytes(b *memory.Buffer) []byte {
	if b == nil {
		return nil
	}
	return b.Bytes()
}

// offsets32 gives the offsets of a source from its first row on; empty for an array without rows.
func offsets32(d arrow.ArrayData) []int32 {
	b := bufferBytes(d.Buffers()[1])
	if len(b) == 0 {
		return nil
	}
	return arrow.Int32Traits.CastFromBytes(b)[d.Offset():]
}

func (g *gatherer) bytes(dt arrow.DataType) (arrow.ArrayData, error) {
	offs := g.sourceOffsets()
	size := 0
	for _, r := range g.runs {
		o := offs[r.Src]
		size += int(o[r.Row+r.N] - o[r.Row])
	}
	if size > math.MaxInt32 {
		return nil, ErrTooBig
	}
	ob, vb := g.buffer((g.n+1)*4), g.buffer(size)
	out, dst := arrow.Int32Traits.CastFromBytes(ob.Bytes()), vb.Bytes()
	out[0] = 0
	pos, at := int32(0), 1
	var o []int32
	var src []byte
	last := int32(-1)
	for _, r := range g.runs {
		if r.Src != last {
			o, src, last = offs[r.Src], bufferBytes(g.srcs[r.Src].Buffers()[2]), r.Src
		}
		if r.N == 1 {
			from, to := o[r.Row], o[r.Row+1]
			pos += int32(copy(dst[pos:], src[from:to]))
			out[at] = pos
			at++
			continue
		}
		part := o[r.Row : r.Row+r.N+1]
		delta := pos - part[0]
		for _, v := range part[1:] {
			out[at] = v + delta
			at++
		}
		pos += int32(copy(dst[pos:], src[part[0]:part[len(part)-1]]))
	}
	return g.finish(dt, []*memory.Buffer{ob, vb}, nil)
}

func (g *gatherer) sourceOffsets() [][]int32 {
	offs := make([][]int32, len(g.srcs))
	for i, d := range g.srcs {
		if d != nil {
			offs[i] = offsets32(d)
		}
	}
	return offs
}

func (g *gatherer) largeBytes(dt arrow.DataType) (arrow.ArrayData, error) {
	size := int64(0)
	for _, r := range g.runs {
		d := g.srcs[r.Src]
		o := arrow.Int64Traits.CastFromBytes(d.Buffers()[1].Bytes())[d.Offset():]
		size += o[r.Row+r.N] - o[r.Row]
	}
	ob, vb := g.buffer((g.n+1)*8), g.buffer(int(size))
	out, dst := arrow.Int64Traits.CastFromBytes(ob.Bytes()), vb.Bytes()
	out[0] = 0
	pos, at := int64(0), 1
	for _, r := range g.runs {
		d := g.srcs[r.Src]
		o := arrow.Int64Traits.CastFromBytes(d.Buffers()[1].Bytes())[d.Offset()+int(r.Row):][:r.N+1]
		delta := pos - o[0]
		for _, v := range o[1:] {
			out[at] = v + delta
			at++
		}
		pos += int64(copy(dst[pos:], bufferBytes(d.Buffers()[2])[o[0]:o[len(o)-1]]))
	}
	return g.finish(dt, []*memory.Buffer{ob, vb}, nil)
}

// structs gathers every member; the offset of a struct shifts its members.
func (g *gatherer) structs(dt *arrow.StructType) (arrow.ArrayData, error) {
	children := make([]arrow.ArrayData, 0, dt.NumFields())
	for i := range dt.NumFields() {
		srcs, runs := make([]arrow.ArrayData, len(g.srcs)), make([]Run, len(g.runs))
		for j, d := range g.srcs {
			if d != nil {
				srcs[j] = d.Children()[i]
			}
		}
		for j, r := range g.runs {
			runs[j] = Run{r.Src, r.Row + int32(g.srcs[r.Src].Offset()), r.N}
		}
		c, err := gatherData(g.mem, dt.Field(i).Type, srcs, runs)
		if err != nil {
			releaseAll(children)
			return nil, err
		}
		children = append(children, c)
	}
	return g.finish(dt, nil, children)
}

func releaseAll(ds []arrow.ArrayData) {
	for _, d := range ds {
		d.Release()
	}
}

// lists gathers lists and maps: the offsets, then the elements that they span.
func (g *gatherer) lists(dt arrow.DataType) (arrow.ArrayData, error) {
	offs := g.sourceOffsets()
	inner := make([]Run, 0, len(g.runs))
	srcs := make([]arrow.ArrayData, len(g.srcs))
	for i, d := range g.srcs {
		if d != nil {
			srcs[i] = d.Children()[0]
		}
	}
	ob := g.buffer((g.n + 1) * 4)
	out := arrow.Int32Traits.CastFromBytes(ob.Bytes())
	out[0] = 0
	pos, at := int64(0), 1
	for _, r := range g.runs {
		o := offs[r.Src][r.Row : r.Row+r.N+1]
		delta := pos - int64(o[0])
		for _, v := range o[1:] {
			out[at] = int32(int64(v) + delta)
			at++
		}
		if span := o[len(o)-1] - o[0]; span > 0 {
			inner = append(inner, Run{r.Src, o[0], span})
			pos += int64(span)
		}
	}
	if pos > math.MaxInt32 {
		ob.Release()
		return nil, ErrTooBig
	}
	var elem arrow.DataType
	switch t := dt.(type) {
	case *arrow.MapType:
		elem = t.Elem()
	case arrow.ListLikeType:
		elem = t.Elem()
	}
	child, err := gatherData(g.mem, elem, srcs, inner)
	if err != nil {
		ob.Release()
		return nil, err
	}
	return g.finish(dt, []*memory.Buffer{ob}, []arrow.ArrayData{child})
}

func (g *gatherer) fixedLists(dt *arrow.FixedSizeListType) (arrow.ArrayData, error) {
	width := dt.Len()
	srcs, inner := make([]arrow.ArrayData, len(g.srcs)), make([]Run, len(g.runs))
	for i, d := range g.srcs {
		if d != nil {
			srcs[i] = d.Children()[0]
		}
	}
	for i, r := range g.runs {
		inner[i] = Run{r.Src, (r.Row + int32(g.srcs[r.Src].Offset())) * width, r.N * width}
	}
	child, err := gatherData(g.mem, dt.Elem(), srcs, inner)
	if err != nil {
		return nil, err
	}
	return g.finish(dt, nil, []arrow.ArrayData{child})
}

// slices is the way for types without a copy of their own: dictionaries, unions, views.
func (g *gatherer) slices(dt arrow.DataType) (arrow.ArrayData, error) {
	parts := make([]arrow.Array, 0, len(g.runs))
	defer func() {
		for _, p := range parts {
			p.Release()
		}
	}()
	for _, r := range g.runs {
		d := array.NewSliceData(g.srcs[r.Src], int64(r.Row), int64(r.Row+r.N))
		parts = append(parts, array.MakeFromData(d))
		d.Release()
	}
	if len(parts) == 0 {
		a := array.MakeArrayOfNull(g.mem, dt, 0)
		defer a.Release()
		a.Data().Retain()
		return a.Data(), nil
	}
	a, err := array.Concatenate(parts, g.mem)
	if err != nil {
		return nil, fmt.Errorf("column of type %s: %w", dt, err)
	}
	defer a.Release()
	a.Data().Retain()
	return a.Data(), nil
}

// Batch copies runs of rows of batches that have the columns of s.
func Batch(mem memory.Allocator, s *arrow.Schema, srcs []arrow.RecordBatch, runs []Run) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, 0, s.NumFields())
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	arrays := make([]arrow.Array, len(srcs))
	for i, f := range s.Fields() {
		for k, b := range srcs {
			arrays[k] = b.Column(i)
		}
		c, err := Array(mem, f.Type, arrays, runs)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
		cols = append(cols, c)
	}
	return array.NewRecordBatch(s, cols, int64(Total(runs))), nil
}

// Plain gives run-end encoded text as plain text.
func Plain(mem memory.Allocator, a *array.RunEndEncoded) arrow.Array {
	b := array.NewStringBuilder(mem)
	defer b.Release()
	b.Reserve(a.Len())
	values := a.Values().(*array.String)
	for i := range a.Len() {
		if at := a.GetPhysicalIndex(i); values.IsNull(at) {
			b.AppendNull()
		} else {
			b.Append(values.Value(at))
		}
	}
	return b.NewArray()
}
