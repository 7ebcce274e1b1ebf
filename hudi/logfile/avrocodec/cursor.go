package avrocodec

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sluicelake/sluice/hudi/schema"
)

// cursor reads one record. The first failure stays; from then on every read gives zero values and consumes nothing, so plans
// need not look at errors after each value.
type cursor struct {
	buf   []byte
	pos   int
	key   []byte
	depth int // of records that are skipped
	free  int // array elements that took no bytes
	err   error
}

const (
	// maxFree bounds array elements without bytes (nulls, empty records) in one record: a count of theirs costs nothing to
	// forge.
	maxFree = 1 << 16
	// maxDepth bounds the nesting of recursive records, which are only ever skipped.
	maxDepth = 128
	// maxValues bounds what a schema expands to: records that are used by name may multiply at every level.
	maxValues = 1 << 16
)

func (c *cursor) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: byte %d: %s", ErrData, c.pos, fmt.Sprintf(format, args...))
	}
	c.buf, c.pos = nil, 0
}

// long reads a zigzag number.
func (c *cursor) long() int64 {
	if c.pos < len(c.buf) {
		if b := c.buf[c.pos]; b < 0x80 {
			c.pos++
			return int64(b>>1) ^ -int64(b&1)
		}
	}
	return c.longSlow()
}

func (c *cursor) longSlow() int64 {
	v, n := binary.Uvarint(c.buf[c.pos:])
	if n <= 0 {
		c.fail("number is cut or too long")
		return 0
	}
	c.pos += n
	return int64(v>>1) ^ -int64(v&1)
}

func (c *cursor) int() int32 {
	v := c.long()
	if v < math.MinInt32 || v > math.MaxInt32 {
		c.fail("%d is no int", v)
		return 0
	}
	return int32(v)
}

func (c *cursor) boolean() bool {
	v := c.take(1)
	if v == nil {
		return false
	}
	if v[0] > 1 {
		c.fail("%d is no boolean", v[0])
		return false
	}
	return v[0] == 1
}

func (c *cursor) float() float32 {
	if v := c.take(4); v != nil {
		return math.Float32frombits(binary.LittleEndian.Uint32(v))
	}
	return 0
}

func (c *cursor) double() float64 {
	if v := c.take(8); v != nil {
		return math.Float64frombits(binary.LittleEndian.Uint64(v))
	}
	return 0
}

// bytes reads a length and as many bytes, which are the record's own memory.
func (c *cursor) bytes() []byte {
	n := c.long()
	if n < 0 || n > int64(len(c.buf)-c.pos) {
		c.fail("%d bytes where %d are left", n, len(c.buf)-c.pos)
		return nil
	}
	v := c.buf[c.pos : c.pos+int(n)]
	c.pos += int(n)
	return v
}

// take reads n bytes; nil after a failure.
func (c *cursor) take(n int) []byte {
	if n > len(c.buf)-c.pos {
		c.fail("%d bytes where %d are left", n, len(c.buf)-c.pos)
		return nil
	}
	v := c.buf[c.pos : c.pos+n]
	c.pos += n
	return v
}

// decimal cuts superfluous sign bytes so that at most that many remain.
func (c *cursor) decimal(v []byte, most int) []byte {
	if c.err != nil {
		return nil
	}
	if len(v) == 0 {
		c.fail("a decimal without bytes")
		return nil
	}
	for len(v) > most {
		if sign := v[0]; sign != 0 && sign != 0xff || (v[1] >= 0x80) != (sign == 0xff) {
			c.fail("a decimal of %d bytes", len(v))
			return nil
		}
		v = v[1:]
	}
	return v
}

// blocks runs item for every element of an array or map: blocks of a count and as many elements, the last one of count 0; a
// negative count is followed by the block's bytes. least is the least size of an element.
func (c *cursor) blocks(least int, item func()) {
	for {
		n, _ := c.block(least)
		if n == 0 {
			return
		}
		for ; n > 0 && c.err == nil; n-- {
			item()
		}
	}
}

// block reads the count of a block, and its size in bytes where it is given, else -1.
func (c *cursor) block(least int) (n, size int64) {
	n, size = c.long(), -1
	if n < 0 {
		n = -n
		if size = c.long(); size < 0 || size > int64(len(c.buf)-c.pos) {
			c.fail("block of %d bytes where %d are left", size, len(c.buf)-c.pos)
			return 0, 0
		}
	}
	left := int64(len(c.buf) - c.pos)
	switch {
	case n < 0, least > 0 && n > left/int64(least):
		c.fail("block of %d elements where %d bytes are left", n, left)
		return 0, 0
	case least == 0:
		if n > int64(maxFree-c.free) {
			c.fail("block of %d elements without bytes", n)
			return 0, 0
		}
		c.free += int(n)
	}
	return n, size
}

// minSize is the least number of bytes that a value takes. Inside a recursive record it is a lower bound.
func (bd *binder) minSize(t *schema.Type) int {
	switch t.Kind {
	case schema.Null:
		return 0
	case schema.Float:
		return 4
	case schema.Double:
		return 8
	case schema.Fixed:
		return t.Size
	case schema.Record:
		n, known := bd.sizes[t]
		if known {
			return n
		}
		bd.sizes[t] = 0
		for i := range t.Fields {
			n = min(n+bd.minSize(t.Fields[i].Type), 1<<20)
		}
		bd.sizes[t] = n
		return n
	}
	return 1
}

// skip gives the step that passes over a value.
func (bd *binder) skip(t *schema.Type) step {
	switch t.Kind {
	case schema.Null:
		return func(*cursor) {}
	case schema.Boolean:
		return func(c *cursor) { c.take(1) }
	case schema.Int, schema.Long, schema.Enum:
		return func(c *cursor) { c.long() }
	case schema.Float:
		return func(c *cursor) { c.take(4) }
	case schema.Double:
		return func(c *cursor) { c.take(8) }
	case schema.Bytes, schema.String:
		return func(c *cursor) { c.bytes() }
	case schema.Fixed:
		return func(c *cursor) { c.take(t.Size) }
	case schema.Array:
		return skipBlocks(bd.skip(t.Items), bd.minSize(t.Items))
	case schema.Map:
		item := bd.skip(t.Items)
		return skipBlocks(func(c *cursor) { c.bytes(); item(c) }, 1+bd.minSize(t.Items))
	case schema.Record:
		return bd.skipRecord(t)
	}
	steps := make([]step, len(t.Branches))
	for i, br := range t.Branches {
		steps[i] = bd.skip(br)
	}
	return func(c *cursor) {
		i := c.long()
		if i < 0 || i >= int64(len(steps)) {
			c.fail("branch %d of a union of %d", i, len(steps))
		}
		if c.err == nil {
			steps[i](c)
		}
	}
}

func skipBlocks(item step, least int) step {
	return func(c *cursor) {
		for {
			n, size := c.block(least)
			if n == 0 || c.err != nil {
				return
			}
			if size >= 0 {
				c.take(int(size))
				continue
			}
			for ; n > 0 && c.err == nil; n-- {
				item(c)
			}
		}
	}
}

// skipRecord may meet itself again in a recursive record, hence the pointer that is filled last.
func (bd *binder) skipRecord(t *schema.Type) step {
	known, ok := bd.skips[t]
	if !ok {
		known = new(step)
		bd.skips[t] = known
		steps := make([]step, len(t.Fields))
		for i := range t.Fields {
			steps[i] = bd.skip(t.Fields[i].Type)
		}
		*known = func(c *cursor) {
			if c.depth++; c.depth > maxDepth {
				c.fail("records nested deeper than %d", maxDepth)
				return
			}
			for _, s := range steps {
				if s(c); c.err != nil {
					return // else a recursive schema goes on without bytes
				}
			}
			c.depth--
		}
	}
	return func(c *cursor) { (*known)(c) }
}
