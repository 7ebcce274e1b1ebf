package merge

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/util"
)

// maxCompacted bounds the live rows, in bytes, that are copied while the superseded ones are still held.
const maxCompacted = 32 << 20

// compactRows is the number of rows of a compacted chunk.
const compactRows = 32 << 10

// compactIfWorth copies the live rows together and drops superseded ones, where few rows are live.
func (st *state) compactIfWorth() error {
	if st.rows == 0 {
		return nil
	}
	live := st.held / int64(st.rows) * int64(len(st.entries))
	if live > st.held/4 || live > maxCompacted {
		return nil
	}
	return st.compact()
}

// compact replaces the chunks by ones with the live rows only. Entries keep their order and what they know.
func (st *state) compact() error {
	var fresh []*chunk
	over := map[int32]Value{}
	at := make([]source, len(st.entries))
	fail := func(err error) error {
		for _, c := range fresh {
			c.release()
		}
		return err
	}
	var rows, blocks []int32
	flush := func(list *[]int32, copyRows func([]int32) ([]*chunk, error)) error {
		cs, err := copyRows(*list)
		if err != nil {
			return err
		}
		n := 0
		for _, c := range cs {
			fresh = append(fresh, c)
			for row := range c.n {
				at[(*list)[n]] = source{int32(len(fresh)), int32(row)}
				n++
			}
		}
		*list = (*list)[:0]
		return nil
	}
	for i := range st.entries {
		list, copyRows := &rows, func(l []int32) ([]*chunk, error) { return st.compactData(l, over) }
		if st.entries[i].bare {
			list, copyRows = &blocks, st.compactBlocks
		}
		if *list = append(*list, int32(i)); len(*list) == compactRows {
			if err := flush(list, copyRows); err != nil {
				return fail(err)
			}
		}
	}
	if err := flush(&rows, func(l []int32) ([]*chunk, error) { return st.compactData(l, over) }); err != nil {
		return fail(err)
	}
	if err := flush(&blocks, st.compactBlocks); err != nil {
		return fail(err)
	}
	st.replace(fresh, at, over)
	return nil
}

func (st *state) replace(fresh []*chunk, at []source, over map[int32]Value) {
	for _, c := range st.chunks[1:] {
		c.release()
	}
	st.chunks = st.chunks[:1]
	for i := range st.srcs {
		st.srcs[i] = st.srcs[i][:1]
	}
	st.held, st.rows = 0, 0
	for _, c := range fresh {
		st.attach(c)
	}
	for i := range st.entries {
		e := &st.entries[i]
		e.at, e.parts = at[i], 0
	}
	st.parts, st.spare, st.over = nil, nil, nil
	if len(over) > 0 {
		st.over = over
	}
}

// keysOf copies the keys of entries.
func (st *state) keysOf(list []int32) arrow.Array {
	b := array.NewBinaryBuilder(st.mem, arrow.BinaryTypes.Binary)
	defer b.Release()
	for _, i := range list {
		e := &st.entries[i]
		k, _ := st.chunks[e.at.chunk].keys.at(int(e.at.row))
		b.Append(k)
	}
	return b.NewArray()
}

func (st *state) compactData(list []int32, over map[int32]Value) ([]*chunk, error) {
	if len(list) == 0 {
		return nil, nil
	}
	a := &assembly{}
	for _, i := range list {
		st.emitEntry(a, &st.entries[i])
	}
	batches, err := st.build(a)
	if err != nil {
		return nil, err
	}
	keys := st.keysOf(list)
	defer keys.Release()
	var out []*chunk
	from := 0
	for _, b := range batches {
		n := int(b.NumRows())
		part := array.NewSlice(keys, int64(from), int64(from+n))
		c := &chunk{l: st.l, n: n, own: part, cols: make([]arrow.Array, b.NumCols())}
		c.keys, _ = textOf(part) // binary, made above
		c.bytes = util.TotalRecordSize(b) + arraySize(part)
		for k := range c.cols {
			c.cols[k] = b.Column(k)
			c.cols[k].Retain()
		}
		b.Release()
		c.ord = st.l.ordColumns(c.cols)
		st.carry(c, list[from:from+n], over)
		out = append(out, c)
		from += n
	}
	return out, nil
}

// carry keeps what entries know beyond their columns.
func (st *state) carry(c *chunk, list []int32, over map[int32]Value) {
	c.sets, c.dead, c.marks = make([]int32, c.n), make([]bool, c.n), make([]uint8, c.n)
	for row, i := range list {
		e := &st.entries[i]
		c.sets[row], c.dead[row] = e.set, e.dead
		if e.alone {
			c.marks[row] = rowAlone
		}
		s := st.entrySide(i)
		if s.over == nil && !st.reordered(e) {
			continue
		}
		v := s.order()
		over[i] = v
		if c.has == nil {
			c.has, c.ords = make([]bool, c.n), make([]Value, c.n)
		}
		c.has[row], c.ords[row] = true, v
	}
	c.bytes += int64(c.n) * 6
}

// reordered reports whether an ordering column of an entry comes from another version than its ordering value.
func (st *state) reordered(e *entry) bool {
	if e.parts == 0 {
		return false
	}
	parts := st.partsOf(e.parts)
	for _, path := range st.l.ordering {
		if path != nil && parts[path[0]] != e.at {
			return true
		}
	}
	return false
}

func (st *state) compactBlocks(list []int32) ([]*chunk, error) {
	if len(list) == 0 {
		return nil, nil
	}
	keys := st.keysOf(list)
	c := &chunk{l: st.l, n: len(list), own: keys, ords: make([]Value, len(list)), marks: make([]uint8, len(list))}
	c.keys, _ = textOf(keys) // binary, made above
	for row, i := range list {
		s := st.entrySide(i)
		c.ords[row] = s.order()
		c.marks[row] = rowBlock
		if st.entries[i].alone {
			c.marks[row] |= rowAlone
		}
	}
	c.ord = make([]ordColumn, len(st.l.ordering))
	c.bytes = arraySize(keys) + int64(c.n)*valueSize
	return []*chunk{c}, nil
}
