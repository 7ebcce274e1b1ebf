package basefile

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/sluicelake/sluice/hudi/schema"
)

// The record key of most tables is one of their text columns as it stands, and then the arrays of both are the same ones. A leaf like
// that encodes nothing: its column chunk gets the pages of the keys.

// findTwins notes the leaf of the record keys, and those whose pages would be the same for the same values.
func (c *writeColumns) findTwins() {
	at := slices.IndexFunc(c.leaves, func(l *leafWriter) bool { return c.schema.Field(l.column).Name == schema.RecordKey })
	if at < 0 || !c.leaves[at].flatText() {
		return
	}
	c.keys = c.leaves[at]
	for i, l := range c.leaves {
		if i != at && l.flatText() && l.chunk.maxDef == c.keys.chunk.maxDef && c.schema.Field(l.column).Type.ID() == arrow.STRING {
			c.twins = append(c.twins, l)
		}
	}
}

func (l *leafWriter) flatText() bool {
	v, ok := l.chunk.values.(*texts)
	return ok && len(l.way) == 1 && !v.signed
}

// follow looks, before a set of rows is written, which leaves have the arrays of the keys. One that had them for the rows before, and no
// longer has, gets what was encoded so far.
func (c *writeColumns) follow(set *rowSet) {
	for _, l := range c.twins {
		same := c.sameAsKeys(l, set)
		switch {
		case l.follows && !same:
			l.follows = false
			l.chunk.copyFrom(&c.keys.chunk)
		case same && !l.follows && c.keys.chunk.empty() && l.chunk.empty():
			l.follows = true
		}
	}
}

func (c *writeColumns) sameAsKeys(l *leafWriter, set *rowSet) bool {
	keys, own := set.place(c.keys.column), set.place(l.column)
	if keys < 0 || own < 0 {
		return false
	}
	for i := range set.runs {
		b := set.batches[set.runs[i].batch]
		if !sameTexts(b.Column(keys), b.Column(own)) {
			return false
		}
	}
	return true
}

// sameTexts says whether two arrays have the same memory.
func sameTexts(a, b arrow.Array) bool {
	x, ok := a.(*array.String)
	y, too := b.(*array.String)
	if !ok || !too {
		return false
	}
	d, e := x.Data(), y.Data()
	return d == e || d.Len() == e.Len() && d.Offset() == e.Offset() && slices.Equal(d.Buffers(), e.Buffers())
}

// encoder of the pages of a leaf.
func (c *writeColumns) encoder(l *leafWriter) *chunkEncoder {
	if l.follows {
		return &c.keys.chunk
	}
	return &l.chunk
}

// newChunk begins the next column chunk of every leaf, or gives the memory of the open one back.
func (c *writeColumns) newChunk() {
	for _, l := range c.leaves {
		l.chunk.newChunk()
		l.follows = false
	}
}

// empty: nothing was encoded since the chunk began.
func (c *chunkEncoder) empty() bool { return len(c.notes) == 0 && c.def.n == 0 }

// copyFrom makes an empty encoder of texts go on where another is.
func (c *chunkEncoder) copyFrom(o *chunkEncoder) {
	c.def.copyFrom(&o.def)
	c.rows, c.nulls = o.rows, o.nulls
	for _, b := range o.pages.blocks {
		c.pages.write(b)
	}
	c.notes = append(c.notes[:0], o.notes...)
	c.entries, c.allRows, c.unpack = o.entries, o.allRows, o.unpack
	c.values.(*texts).copyFrom(o.values.(*texts))
}

// copyFrom: record keys have no dictionary.
func (v *texts) copyFrom(keys *texts) {
	v.on = false
	v.plain = append(v.plain[:0], keys.plain...)
	v.low, v.high, v.any = append(v.low[:0], keys.low...), append(v.high[:0], keys.high...), keys.any
}

func (s *sequence[T]) copyFrom(o *sequence[T]) {
	s.n, s.same, s.rest = o.n, o.same, append(s.rest[:0], o.rest...)
}
