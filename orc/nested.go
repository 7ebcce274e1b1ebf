package orc

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// structColumn is struct, and the root of every file.
type structColumn struct {
	base
	children []column
}

func (c *structColumn) read(n int, where *bitmap) (*array.Data, error) {
	v, set, err := c.validity(n, where)
	if err != nil {
		return nil, err
	}
	defer v.release()
	children := make([]arrow.ArrayData, 0, len(c.children))
	defer func() {
		for _, d := range children {
			d.Release()
		}
	}()
	for _, child := range c.children {
		d, err := child.read(n, v)
		if err != nil {
			return nil, err
		}
		children = append(children, d)
	}
	return array.NewData(c.dt, n, []*memory.Buffer{v.buffer()}, children, n-set, 0), nil
}

func (c *structColumn) skip(n int) error {
	n, err := c.skipPresent(n)
	for i := 0; err == nil && i < len(c.children); i++ {
		err = c.children[i].skip(n)
	}
	return err
}

func (c *structColumn) seek(p *positions) error { return c.seekPresent(p) }

// listColumn is array and map: lengths, and the elements of all lists in a row. A map's elements are structs in Arrow.
type listColumn struct {
	base
	lengths  *intDecoder
	children []column
	entries  arrow.DataType // of a map
}

func (c *listColumn) read(n int, where *bitmap) (*array.Data, error) {
	v, set, err := c.validity(n, where)
	if err != nil {
		return nil, err
	}
	offsets, total, err := c.offsets(n, v, set, c.lengths)
	if err != nil {
		v.release()
		return nil, err
	}
	children := make([]arrow.ArrayData, 0, 2)
	defer func() {
		for _, d := range children {
			d.Release()
		}
	}()
	for _, child := range c.children {
		var d *array.Data
		if d, err = child.read(total, nil); err != nil {
			break
		}
		children = append(children, d)
	}
	if err == nil && c.entries != nil {
		if nulls := children[0].NullN(); nulls > 0 {
			err = fmt.Errorf("%w: column %s has %d keys that are null", ErrUnsupported, c.node.path, nulls)
		} else {
			pair := array.NewData(c.entries, total, []*memory.Buffer{nil}, children, 0, 0)
			defer pair.Release()
			children = append(children, pair)
		}
	}
	if err != nil {
		v.release()
		offsets.Release()
		return nil, err
	}
	d := array.NewData(c.dt, n, []*memory.Buffer{v.buffer(), offsets}, []arrow.ArrayData{children[len(children)-1]}, n-set, 0)
	if c.entries != nil {
		children = children[:len(children)-1]
	}
	v.release()
	offsets.Release()
	return d, nil
}

// maxOffset is the most that Arrow's 32-bit offsets reach.
const maxOffset = math.MaxInt32

// offsets reads set lengths and makes the offsets of n slots from them; total is the last one.
func (c *base) offsets(n int, v *bitmap, set int, lengths *intDecoder) (buf *memory.Buffer, total int, err error) {
	if buf, err = c.buffer((n + 1) * 4); err != nil {
		return nil, 0, err
	}
	out := arrow.Int32Traits.CastFromBytes(buf.Bytes())
	if err := readLengths(lengths, out[:set]); err != nil {
		buf.Release()
		return nil, 0, err
	}
	expand(out[:n], v)
	sum := int64(0)
	for i, l := range out[:n] {
		out[i] = int32(sum)
		sum += int64(l)
		if sum > maxOffset {
			buf.Release()
			return nil, 0, fmt.Errorf("%w: column %s: the values of %d rows reach past the 2 GiB or elements of one Arrow array", errBatch, c.node.path, i+1)
		}
	}
	out[n] = int32(sum)
	return buf, int(sum), nil
}

// readLengths reads lengths, each of which must fit an Arrow offset.
func readLengths(d *intDecoder, dst []int32) error {
	for len(dst) > 0 {
		if d.pos == d.n {
			if err := d.fill(); err != nil {
				return err
			}
		}
		k := min(len(dst), d.n-d.pos)
		all := uint64(0)
		for i, v := range d.run[d.pos : d.pos+k] {
			all |= uint64(v)
			dst[i] = int32(v)
		}
		if bits.Len64(all) > 31 {
			return d.in.damaged("a length that is negative or above %d", maxOffset)
		}
		dst, d.pos = dst[k:], d.pos+k
	}
	return nil
}

func (c *listColumn) skip(n int) error {
	n, err := c.skipPresent(n)
	if err != nil {
		return err
	}
	total, err := sumLengths(c.lengths, n)
	if err != nil {
		return err
	}
	for _, child := range c.children {
		for left := total; left > 0; {
			k := int(min(left, 1<<20))
			if err := child.skip(k); err != nil {
				return err
			}
			left -= uint64(k)
		}
	}
	return nil
}

// sumLengths passes n lengths and adds them up.
func sumLengths(d *intDecoder, n int) (total uint64, err error) {
	for n > 0 {
		if d.pos == d.n {
			if err := d.fill(); err != nil {
				return 0, err
			}
		}
		k := min(n, d.n-d.pos)
		for _, v := range d.run[d.pos : d.pos+k] {
			if v < 0 || v > maxOffset {
				return 0, d.in.damaged("a length of %d", v)
			}
			total += uint64(v)
		}
		n, d.pos = n-k, d.pos+k
	}
	return total, nil
}

func (c *listColumn) seek(p *positions) error {
	if err := c.seekPresent(p); err != nil {
		return err
	}
	return p.ints(c.lengths)
}

// unionColumn is uniontype: a tag for each value, and the branches' values in columns of their own.
type unionColumn struct {
	base
	tags     *byteDecoder
	children []column
}

func (c *unionColumn) read(n int, where *bitmap) (*array.Data, error) {
	v, set, err := c.validity(n, where)
	if err != nil {
		return nil, err
	}
	defer v.release()
	tags, err := c.buffer(n)
	if err != nil {
		return nil, err
	}
	defer tags.Release()
	if err := c.tags.read(tags.Bytes()[:set]); err != nil {
		return nil, err
	}
	expand(tags.Bytes(), v)
	children := make([]arrow.ArrayData, 0, len(c.children))
	defer func() {
		for _, d := range children {
			d.Release()
		}
	}()
	known := 0
	for i, child := range c.children {
		m, err := c.branch(byte(i), tags.Bytes(), v)
		if err != nil {
			return nil, err
		}
		known += m.set
		d, err := child.read(n, m)
		m.release()
		if err != nil {
			return nil, err
		}
		children = append(children, d)
	}
	if known != set {
		return nil, c.tags.in.damaged("a union's tag is above its %d branches", len(c.children))
	}
	return array.NewData(c.dt, n, []*memory.Buffer{v.buffer()}, children, n-set, 0), nil
}

// branch makes the bitmap of the slots whose tag is i.
func (c *unionColumn) branch(i byte, tags []byte, v *bitmap) (*bitmap, error) {
	m, err := c.newBitmap(len(tags))
	if err != nil {
		return nil, err
	}
	clear(m.bits)
	for j, t := range tags {
		if t == i && (v == nil || v.bits[j>>3]>>(j&7)&1 == 1) {
			m.bits[j>>3] |= 1 << (j & 7)
			m.set++
		}
	}
	return m, nil
}

func (c *unionColumn) skip(n int) error {
	n, err := c.skipPresent(n)
	if err != nil {
		return err
	}
	counts := make([]int, 256)
	for range n {
		t, err := c.tags.next()
		if err != nil {
			return err
		}
		counts[t]++
	}
	for i, child := range c.children {
		if err := child.skip(counts[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *unionColumn) seek(p *positions) error {
	if err := c.seekPresent(p); err != nil {
		return err
	}
	return p.bytes(c.tags)
}
