package orc

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// textColumn is string, varchar, char and binary in direct encoding: lengths, and the bytes of all values in a row.
type textColumn struct {
	base
	lengths *intDecoder
	values  *input
}

func (c *textColumn) read(n int, where *bitmap) (*array.Data, error) {
	v, set, err := c.validity(n, where)
	if err != nil {
		return nil, err
	}
	offsets, total, err := c.offsets(n, v, set, c.lengths)
	if err != nil {
		v.release()
		return nil, err
	}
	buf, err := c.buffer(total)
	if err == nil {
		if err = c.values.readFull(buf.Bytes()); err != nil {
			buf.Release()
		}
	}
	if err != nil {
		v.release()
		offsets.Release()
		return nil, err
	}
	return c.data(n, v, set, offsets, buf), nil
}

func (c *textColumn) skip(n int) error {
	n, err := c.skipPresent(n)
	if err != nil {
		return err
	}
	total, err := sumLengths(c.lengths, n)
	if err != nil {
		return err
	}
	return c.values.skip(total)
}

func (c *textColumn) seek(p *positions) error {
	if err := c.seekPresent(p); err != nil {
		return err
	}
	if err := p.input(c.values); err != nil {
		return err
	}
	return p.ints(c.lengths)
}

// overcopy is how many bytes a short value is copied with at once, whatever its length.
const overcopy = 16

// dictColumn is string, varchar and char in dictionary encoding: references to the entries of a dictionary, which is read
// whole before the first value.
type dictColumn struct {
	base
	refs    *intDecoder
	lengths *intDecoder // of the entries
	values  *input      // of the entries
	size    int

	loaded  bool
	entries []byte  // with overcopy bytes behind
	offsets []int32 // size+1
	ids     []int32 // scratch
}

// loadStep is how many entries' lengths are read before more memory is asked for.
const loadStep = 1 << 16

func (c *dictColumn) load() error {
	if c.loaded {
		return nil
	}
	c.loaded = true
	if err := c.scan.mem.grow(4, "a dictionary"); err != nil {
		return err
	}
	c.offsets = append(c.offsets, 0)
	total := int64(0)
	var lengths []int32
	for left := c.size; left > 0; {
		k := min(left, loadStep)
		if err := c.scan.mem.grow(int64(k)*4, "the dictionary of column "+c.node.path); err != nil {
			return err
		}
		if lengths == nil {
			lengths = make([]int32, k)
		}
		if err := readLengths(c.lengths, lengths[:k]); err != nil {
			return err
		}
		for _, l := range lengths[:k] {
			if total += int64(l); total > maxOffset {
				return fmt.Errorf("%w: the dictionary of column %s is longer than 2 GiB", ErrUnsupported, c.node.path)
			}
			c.offsets = append(c.offsets, int32(total))
		}
		left -= k
	}
	if err := c.scan.mem.grow(total, "the dictionary of column "+c.node.path); err != nil {
		return err
	}
	c.entries = make([]byte, total+overcopy)
	return c.values.readFull(c.entries[:total])
}

func (c *dictColumn) read(n int, where *bitmap) (*array.Data, error) {
	if err := c.load(); err != nil {
		return nil, err
	}
	v, set, err := c.validity(n, where)
	if err != nil {
		return nil, err
	}
	ids, offsets, total, err := c.references(n, v, set)
	if err != nil {
		v.release()
		return nil, err
	}
	buf, err := c.buffer(total + overcopy)
	if err != nil {
		v.release()
		offsets.Release()
		return nil, err
	}
	c.gather(buf.Bytes(), ids)
	buf.ResizeNoShrink(total)
	return c.data(n, v, set, offsets, buf), nil
}

// references reads set references and makes the offsets of n slots from the lengths of the entries.
func (c *dictColumn) references(n int, v *bitmap, set int) (ids []int32, buf *memory.Buffer, total int, err error) {
	if cap(c.ids) < set {
		if err := c.scan.mem.grow(int64(set-cap(c.ids))*4, "column "+c.node.path); err != nil {
			return nil, nil, 0, err
		}
		c.ids = make([]int32, set)
	}
	ids = c.ids[:set]
	if err := readLengths(c.refs, ids); err != nil {
		return nil, nil, 0, err
	}
	if buf, err = c.buffer((n + 1) * 4); err != nil {
		return nil, nil, 0, err
	}
	out := arrow.Int32Traits.CastFromBytes(buf.Bytes())
	for i, id := range ids {
		if int(id) >= c.size {
			buf.Release()
			return nil, nil, 0, c.refs.in.damaged("a reference to entry %d of a dictionary of %d", id, c.size)
		}
		out[i] = c.offsets[id+1] - c.offsets[id]
	}
	expand(out[:n], v)
	sum := int64(0)
	for i, l := range out[:n] {
		out[i] = int32(sum)
		sum += int64(l)
	}
	if sum > maxOffset-overcopy {
		buf.Release()
		return nil, nil, 0, fmt.Errorf("%w: column %s: the values of %d rows take more than the 2 GiB of one Arrow array", errBatch, c.node.path, n)
	}
	out[n] = int32(sum)
	return ids, buf, int(sum), nil
}

// gather copies the entries one behind the other. Both sides have overcopy bytes to spare.
func (c *dictColumn) gather(to []byte, ids []int32) {
	at := 0
	for _, id := range ids {
		from, end := int(c.offsets[id]), int(c.offsets[id+1])
		if end-from <= overcopy {
			*(*[overcopy]byte)(to[at:]) = *(*[overcopy]byte)(c.entries[from:])
		} else {
			copy(to[at:], c.entries[from:end])
		}
		at += end - from
	}
}

func (c *dictColumn) skip(n int) error {
	n, err := c.skipPresent(n)
	if err != nil {
		return err
	}
	return c.refs.skip(n)
}

func (c *dictColumn) seek(p *positions) error {
	if err := c.seekPresent(p); err != nil {
		return err
	}
	return p.ints(c.refs)
}
