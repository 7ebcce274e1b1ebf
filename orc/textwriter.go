package orc

import (
	"bytes"
	"hash/maphash"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// textWriter is string and binary: with a dictionary as long as that pays, and direct otherwise.
type textWriter struct {
	*columnWriter
	data    *output // of direct encoding
	lengths *intEncoder

	direct  bool    // this stripe has no dictionary
	share   float64 // WriterOptions.DictionaryShare; negative where dictionaries are not allowed
	dict    dictionary
	refs    *intEncoder
	entries *output
	ids     []uint32 // of the stripe's values so far
	ends    []int    // of the row groups, in ids
}

// checkAfter is how many values tell whether a dictionary pays.
const checkAfter = 4096

// maxDictionary is how many bytes of entries are held at most.
const maxDictionary = 16 << 20

func (w *Writer) textWriter(n *node, c *columnWriter) *textWriter {
	t := &textWriter{columnWriter: c, data: w.output(), lengths: w.ints(false), share: w.opts.DictionaryShare}
	if n.kind == kindBinary || t.share < 0 {
		t.share = -1
		t.direct = true
		return t
	}
	t.refs, t.entries = w.ints(false), w.output()
	t.dict.init()
	return t
}

func (c *textWriter) write(a arrow.Array, where []span) error {
	if d, ok := plainStorage(a).(*array.Dictionary); ok {
		if entries, ok := d.Dictionary().(*array.String); ok && entries.NullN() == 0 {
			c.validity(d, where, func(from, to int) {
				for i := from; i < to; i++ {
					c.value([]byte(entries.Value(d.GetValueIndex(i))))
				}
			})
			return nil
		}
	}
	a, done, err := unwrap(a)
	if err != nil {
		return err
	}
	defer done()
	var value func(i int) []byte
	switch a := a.(type) {
	case *array.String:
		c.flat(a, where, a.ValueOffsets())
		return nil
	case *array.Binary:
		c.flat(a, where, a.ValueOffsets())
		return nil
	case *array.LargeString:
		value = func(i int) []byte { return []byte(a.Value(i)) }
	case *array.LargeBinary:
		value = a.Value
	case *array.StringView:
		value = func(i int) []byte { return []byte(a.Value(i)) }
	case *array.BinaryView:
		value = a.Value
	case *array.FixedSizeBinary:
		value = a.Value
	default:
		return wrongArray(c.node, a)
	}
	c.validity(a, where, func(from, to int) {
		for i := from; i < to; i++ {
			c.value(value(i))
		}
	})
	return nil
}

// flat writes an array with 32-bit offsets.
func (c *textWriter) flat(a arrow.Array, where []span, offsets []int32) {
	var data []byte
	if b := a.Data().Buffers()[2]; b != nil {
		data = b.Bytes()
	}
	bounds := c.node.kind == kindString
	c.validity(a, where, func(from, to int) {
		if !c.direct {
			for i := from; i < to; i++ {
				c.value(data[offsets[i]:offsets[i+1]])
			}
			return
		}
		for i := from; i < to; i++ {
			c.lengths.write(int64(offsets[i+1] - offsets[i]))
			if bounds {
				c.group.text(data[offsets[i]:offsets[i+1]])
			}
		}
		if from < to {
			if !bounds {
				c.group.bytes += int64(offsets[to] - offsets[from])
			}
			c.data.write(data[offsets[from]:offsets[to]])
		}
	})
}

func (c *textWriter) value(b []byte) {
	if c.node.kind == kindString {
		c.group.text(b)
	} else {
		c.group.bytes += int64(len(b))
	}
	if c.direct {
		c.lengths.write(int64(len(b)))
		c.data.write(b)
		return
	}
	c.ids = append(c.ids, c.dict.id(b))
	if len(c.ids)%checkAfter == 0 && !c.pays() || len(c.dict.bytes) > maxDictionary {
		c.giveUp()
	}
}

// pays tells whether the values so far repeat enough.
func (c *textWriter) pays() bool { return float64(c.dict.len()) <= c.share*float64(len(c.ids)) }

// giveUp turns what there is of the stripe into direct encoding.
func (c *textWriter) giveUp() {
	c.direct = true
	c.positions[0] = c.position(nil)
	// The positions that were noted for the groups so far were those of the dictionary's references.
	group := 0
	for i, id := range c.ids {
		for group < len(c.ends) && c.ends[group] == i {
			group++
			c.positions[group] = c.position(nil)
		}
		b := c.dict.entry(id)
		c.lengths.write(int64(len(b)))
		c.data.write(b)
	}
	for group < len(c.ends) {
		group++
		c.positions[group] = c.position(nil)
	}
	c.forget()
}

func (c *textWriter) forget() {
	c.ids, c.ends = c.ids[:0], c.ends[:0]
	c.dict.reset()
}

func (c *textWriter) position(to []uint64) []uint64 {
	if !c.direct {
		return c.refs.position(to)
	}
	return c.lengths.position(c.data.position(to))
}

func (c *textWriter) endGroup() {
	if !c.direct {
		c.ends = append(c.ends, len(c.ids))
	}
}

func (c *textWriter) size() int64 {
	if c.direct {
		return c.data.size() + c.lengths.out.size()
	}
	return int64(len(c.ids))*2 + int64(len(c.dict.bytes))
}

func (c *textWriter) finish() []streamBytes {
	if !c.direct && (len(c.ids) == 0 || !c.pays()) {
		c.giveUp()
	}
	if c.direct {
		c.lengths.flush()
		c.encoding = columnEncoding{kind: encDirectV2}
		c.direct = c.share < 0 // the next stripe tries a dictionary again
		return []streamBytes{{streamInfo{kind: streamData}, c.data}, {streamInfo{kind: streamLength}, c.lengths.out}}
	}
	rank := c.sorted()
	group := 0
	for i, id := range c.ids {
		for group < len(c.ends) && c.ends[group] == i {
			group++
			c.positions[group] = c.refs.position(nil)
		}
		c.refs.write(int64(rank[id]))
	}
	for group < len(c.ends) {
		group++
		c.positions[group] = c.refs.position(nil)
	}
	c.refs.flush()
	c.lengths.flush()
	c.encoding = columnEncoding{kind: encDictionaryV2, dictionarySize: uint32(c.dict.len())}
	c.forget()
	return []streamBytes{
		{streamInfo{kind: streamData}, c.refs.out},
		{streamInfo{kind: streamLength}, c.lengths.out}, {streamInfo{kind: streamDictionaryData}, c.entries},
	}
}

// sorted writes the entries in order and returns the place of each.
func (c *textWriter) sorted() []uint32 {
	order := make([]uint32, c.dict.len())
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return bytes.Compare(c.dict.entry(a), c.dict.entry(b)) })
	rank := make([]uint32, len(order))
	for place, id := range order {
		rank[id] = uint32(place)
		b := c.dict.entry(id)
		c.lengths.write(int64(len(b)))
		c.entries.write(b)
	}
	return rank
}

// dictionary numbers distinct values in the order that they come.
type dictionary struct {
	seed    maphash.Seed
	table   []uint32 // id + 1, by hash, open addressing
	hashes  []uint32 // by id
	bytes   []byte
	offsets []uint32
}

func (d *dictionary) init() {
	d.seed = maphash.MakeSeed()
	d.table = make([]uint32, 1024)
	d.offsets = []uint32{0}
}

func (d *dictionary) len() int { return len(d.hashes) }

func (d *dictionary) entry(id uint32) []byte { return d.bytes[d.offsets[id]:d.offsets[id+1]] }

func (d *dictionary) id(b []byte) uint32 {
	h := uint32(maphash.Bytes(d.seed, b))
	mask := uint32(len(d.table) - 1)
	at := h & mask
	for d.table[at] != 0 {
		id := d.table[at] - 1
		if d.hashes[id] == h && string(d.entry(id)) == string(b) {
			return id
		}
		at = (at + 1) & mask
	}
	id := uint32(len(d.hashes))
	d.table[at] = id + 1
	d.hashes = append(d.hashes, h)
	d.bytes = append(d.bytes, b...)
	d.offsets = append(d.offsets, uint32(len(d.bytes)))
	if 2*len(d.hashes) > len(d.table) {
		d.grow()
	}
	return id
}

func (d *dictionary) grow() {
	d.table = make([]uint32, 2*len(d.table))
	mask := uint32(len(d.table) - 1)
	for id, h := range d.hashes {
		at := h & mask
		for d.table[at] != 0 {
			at = (at + 1) & mask
		}
		d.table[at] = uint32(id) + 1
	}
}

func (d *dictionary) reset() {
	clear(d.table)
	d.hashes, d.bytes, d.offsets = d.hashes[:0], d.bytes[:0], d.offsets[:1]
}
