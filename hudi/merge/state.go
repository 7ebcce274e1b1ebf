package merge

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cespare/xxhash/v2"

	"github.com/sluicelake/sluice/internal/gather"
)

// source is the place of one value or row: a chunk and a row in it.
type source struct{ chunk, row int32 }

// entry is what the logs say about one key.
type entry struct {
	hash    uint64
	at      source // the winning version: its key, its ordering value and, without parts, its columns
	parts   int32  // 1 + number of its stretch of state.parts when put together from several versions; else 0
	set     int32  // present columns
	dead    bool
	bare    bool
	alone   bool // the stored record is hidden
	matched bool // a base row met it
}

// state holds the merged log of one slice, or of one part of it, in memory.
type state struct {
	r     *Rule
	l     *layout
	mem   memory.Allocator
	phase Phase

	merger
	entries []entry
	slots   []int32 // open addressing by hash: 1 + entry, 0 is free
	parts   []source
	spare   []int32 // stretches of parts that are free again
	over    map[int32]Value
	srcs    [][]arrow.Array // per column, per chunk
	rows    int             // rows in chunks
	held    int64           // bytes of chunks
	scratch []source
	hashes  []uint64
	met     []meeting
}

func newState(r *Rule, mem memory.Allocator, phase Phase) *state {
	st := &state{r: r, l: r.layout, mem: mem, phase: phase}
	st.merger = merger{l: r.layout, chunks: []*chunk{nil}, registry: newRegistry()}
	st.slots = make([]int32, 1024)
	st.srcs = make([][]arrow.Array, r.layout.schema.NumFields())
	for i := range st.srcs {
		st.srcs[i] = []arrow.Array{nil}
	}
	st.scratch = make([]source, len(st.srcs))
	return st
}

func (st *state) release() {
	for _, c := range st.chunks {
		if c != nil {
			c.release()
		}
	}
	st.chunks, st.srcs, st.entries, st.slots, st.parts = nil, nil, nil, nil, nil
}

// size is the memory that the state holds, in bytes.
func (st *state) size() int64 {
	const entrySize, overSize = 32, 128
	return st.held + int64(cap(st.entries))*entrySize + int64(len(st.slots))*4 + int64(cap(st.parts))*8 +
		int64(len(st.over))*overSize + int64(len(st.chunks)*len(st.srcs))*16
}

// setID numbers a set of present columns.
func (r *registry) setID(present []bool) int32 {
	all := true
	var key strings.Builder
	for _, p := range present {
		all = all && p
		key.WriteByte('0' + byte(boolToInt(p)))
	}
	if all {
		return 0
	}
	id, ok := r.ids[key.String()]
	if !ok {
		id = int32(len(r.sets))
		r.sets = append(r.sets, present)
		r.ids[key.String()] = id
	}
	return id
}

var errNoKey = errors.New("a log record without a record key")

// find gives the entry of a key, or -1. Equal hashes are told apart by the key itself.
func (st *state) find(hash uint64, key []byte) int32 {
	mask := uint64(len(st.slots) - 1)
	for pos := hash & mask; ; pos = (pos + 1) & mask {
		e := st.slots[pos]
		if e == 0 {
			return -1
		}
		if en := &st.entries[e-1]; en.hash == hash && st.hasKey(en, key) {
			return e - 1
		}
	}
}

func (st *state) insert(e entry) {
	if len(st.entries)*2 >= len(st.slots) {
		st.grow(len(st.slots) * 2)
	}
	st.entries = append(st.entries, e)
	st.place(e.hash, int32(len(st.entries)))
}

func (st *state) place(hash uint64, ref int32) {
	mask := uint64(len(st.slots) - 1)
	pos := hash & mask
	for st.slots[pos] != 0 {
		pos = (pos + 1) & mask
	}
	st.slots[pos] = ref
}

func (st *state) grow(n int) {
	st.slots = make([]int32, n)
	for i := range st.entries {
		st.place(st.entries[i].hash, int32(i+1))
	}
}

// attach takes a chunk over and gives its number.
func (st *state) attach(c *chunk) int32 {
	st.chunks = append(st.chunks, c)
	st.rows += c.n
	st.held += c.bytes
	for i := range st.srcs {
		var a arrow.Array
		if c.cols != nil {
			a = c.cols[i]
		}
		st.srcs[i] = append(st.srcs[i], a)
	}
	return int32(len(st.chunks) - 1)
}

// add takes a chunk over and merges its rows, in order, into what is there.
func (st *state) add(c *chunk) error {
	at := st.attach(c)
	for row := range c.n {
		key, ok := c.keys.at(row)
		if !ok {
			return errNoKey
		}
		hash := xxhash.Sum64(key)
		fresh := c.side(row)
		if e := st.find(hash, key); e >= 0 {
			st.meet(e, &fresh, source{at, int32(row)})
			continue
		}
		en := entry{hash: hash, at: source{at, int32(row)}, set: fresh.set, dead: fresh.dead, bare: fresh.bare}
		en.alone = c.marks != nil && c.marks[row]&rowAlone != 0
		st.insert(en)
		if fresh.over != nil {
			st.setOver(int32(len(st.entries)-1), fresh.over)
		}
	}
	return nil
}

func (st *state) setOver(e int32, v *Value) {
	if v == nil {
		if st.over != nil {
			delete(st.over, e)
		}
		return
	}
	if st.over == nil {
		st.over = map[int32]Value{}
	}
	st.over[e] = *v
}

// side views one row of a chunk as a version.
func (c *chunk) side(row int) side {
	s := side{c: c, row: row, set: c.set}
	if c.sets != nil {
		s.set = c.sets[row]
	}
	s.bare = c.cols == nil || c.marks != nil && c.marks[row]&rowBlock != 0
	s.dead = s.bare || c.dead != nil && c.dead[row]
	if !s.bare && c.has != nil && c.has[row] {
		s.over = &c.ords[row]
	}
	return s
}

// entrySide views an entry as a version.
func (st *state) entrySide(i int32) side {
	e := &st.entries[i]
	s := side{c: st.chunks[e.at.chunk], row: int(e.at.row), set: e.set, dead: e.dead, bare: e.bare}
	if e.parts != 0 {
		s.cols = st.partsOf(e.parts)
	}
	if st.over != nil {
		if v, ok := st.over[i]; ok {
			s.over = &v
		}
	}
	return s
}

func (st *state) partsOf(ref int32) []source {
	n := len(st.srcs)
	return st.parts[int(ref-1)*n : int(ref)*n]
}

// meet lets a newer version meet what the entry holds.
func (st *state) meet(i int32, fresh *side, at source) {
	old := st.entrySide(i)
	var v verdict
	if st.phase == Within {
		v = st.r.engine.within(&st.merger, &old, fresh)
	} else {
		v = st.r.engine.scan(&st.merger, &old, fresh)
	}
	e := &st.entries[i]
	switch v {
	case keepOld:
	case takeNew, takeAlone:
		st.free(e)
		e.at, e.set, e.dead, e.bare = at, fresh.set, fresh.dead, fresh.bare
		e.alone = e.alone || v == takeAlone
		if st.over != nil || fresh.over != nil {
			st.setOver(i, fresh.over)
		}
	default:
		st.blendInto(i, &old, fresh, at, v == blendNew)
	}
}

func (st *state) free(e *entry) {
	if e.parts != 0 {
		st.spare = append(st.spare, e.parts)
		e.parts = 0
	}
}

// blendInto puts an entry together from what it held and a newer version.
func (st *state) blendInto(i int32, old, fresh *side, at source, newStrong bool) {
	e := &st.entries[i]
	oldAt := st.entryAt(e, old)
	freshAt := func(int) source { return at }
	strong, weak, strongAt, weakAt := old, fresh, oldAt, freshAt
	if newStrong {
		strong, weak, strongAt, weakAt = fresh, old, freshAt, oldAt
	}
	st.blend(fresh, strong, weak, st.scratch, strongAt, weakAt)
	set := st.union(old.set, fresh.set)
	if newStrong {
		e.at = at
		if st.over != nil || fresh.over != nil {
			st.setOver(i, fresh.over)
		}
	}
	if e.parts == 0 {
		e.parts = st.stretch()
	}
	copy(st.partsOf(e.parts), st.scratch)
	e.set, e.bare = set, false
	if st.l.recheck {
		whole := side{c: st.chunks[e.at.chunk], row: int(e.at.row), cols: st.partsOf(e.parts)}
		e.dead = st.deadColumns(&whole)
	}
}

// entryAt gives the place of each column's value of an entry, or of a base row.
func (st *state) entryAt(e *entry, s *side) func(int) source {
	if s.cols != nil {
		cols := s.cols
		return func(i int) source { return cols[i] }
	}
	at := e.at
	return func(int) source { return at }
}

// stretch gives room for the parts of one version.
func (st *state) stretch() int32 {
	if n := len(st.spare); n > 0 {
		ref := st.spare[n-1]
		st.spare = st.spare[:n-1]
		return ref
	}
	st.parts = append(st.parts, st.scratch...)
	return int32(len(st.parts) / len(st.scratch))
}

func (st *state) union(a, b int32) int32 {
	if a == b {
		return a
	}
	if a == 0 || b == 0 {
		return 0
	}
	both := make([]bool, len(st.sets[a]))
	for i := range both {
		both[i] = st.sets[a][i] || st.sets[b][i]
	}
	return st.setID(both)
}

// assembly collects the rows of one output batch: runs of whole rows, and rows put together from parts.
type assembly struct {
	runs  []gather.Run
	parts []source // per row with parts, one stretch
	at    []int32  // for each run: 1 + number of its stretch in parts, 0 for whole rows
	any   bool
}

func (a *assembly) reset() {
	a.runs, a.parts, a.at, a.any = a.runs[:0], a.parts[:0], a.at[:0], false
}

func (a *assembly) row(src, row int32) {
	if n := len(a.runs); n > 0 {
		if last := &a.runs[n-1]; last.Src == src && last.Row+last.N == row && a.at[n-1] == 0 {
			last.N++
			return
		}
	}
	a.runs = append(a.runs, gather.Run{Src: src, Row: row, N: 1})
	a.at = append(a.at, 0)
}

func (a *assembly) stretch(src, row, n int32) {
	if n == 0 {
		return
	}
	if k := len(a.runs); k > 0 {
		if last := &a.runs[k-1]; last.Src == src && last.Row+last.N == row && a.at[k-1] == 0 {
			last.N += n
			return
		}
	}
	a.runs = append(a.runs, gather.Run{Src: src, Row: row, N: n})
	a.at = append(a.at, 0)
}

func (a *assembly) composed(parts []source) {
	a.parts = append(a.parts, parts...)
	a.runs = append(a.runs, gather.Run{Src: 0, Row: 0, N: 1})
	a.at = append(a.at, int32(len(a.parts)/len(parts)))
	a.any = true
}

// column gives the runs of one column.
func (a *assembly) column(i, width int, buf []gather.Run) []gather.Run {
	if !a.any {
		return a.runs
	}
	buf = buf[:0]
	for k, r := range a.runs {
		if p := a.at[k]; p != 0 {
			s := a.parts[int(p-1)*width+i]
			r = gather.Run{Src: s.chunk, Row: s.row, N: 1}
		}
		if n := len(buf); n > 0 {
			if last := &buf[n-1]; last.Src == r.Src && last.Row+last.N == r.Row {
				last.N += r.N
				continue
			}
		}
		buf = append(buf, r)
	}
	return buf
}

// build makes the batches of an assembly: one, or more where a column would exceed 2 GiB.
func (st *state) build(a *assembly) ([]arrow.RecordBatch, error) {
	batch, err := st.buildOne(a)
	if err == nil {
		return []arrow.RecordBatch{batch}, nil
	}
	if !errors.Is(err, gather.ErrTooBig) {
		return nil, err
	}
	lo, hi := a.halve()
	if hi == nil {
		return nil, fmt.Errorf("merge: one row holds more than 2 GiB in a column: %w", err)
	}
	first, err := st.build(lo)
	if err != nil {
		return nil, err
	}
	second, err := st.build(hi)
	if err != nil {
		for _, b := range first {
			b.Release()
		}
		return nil, err
	}
	return append(first, second...), nil
}

// halve splits an assembly in two of about the same number of rows; hi is nil when there is one row only.
func (a *assembly) halve() (lo, hi *assembly) {
	want := gather.Total(a.runs) / 2
	if want == 0 {
		return a, nil
	}
	n, k := 0, 0
	for n+int(a.runs[k].N) <= want {
		n += int(a.runs[k].N)
		k++
	}
	lo = &assembly{runs: append([]gather.Run(nil), a.runs[:k]...), at: append([]int32(nil), a.at[:k]...), parts: a.parts, any: a.any}
	hi = &assembly{runs: append([]gather.Run(nil), a.runs[k:]...), at: append([]int32(nil), a.at[k:]...), parts: a.parts, any: a.any}
	if cut := int32(want - n); cut > 0 {
		r := a.runs[k]
		lo.runs, lo.at = append(lo.runs, gather.Run{Src: r.Src, Row: r.Row, N: cut}), append(lo.at, a.at[k])
		hi.runs[0] = gather.Run{Src: r.Src, Row: r.Row + cut, N: r.N - cut}
	}
	return lo, hi
}

func (st *state) buildOne(a *assembly) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, 0, len(st.srcs))
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	var buf []gather.Run
	for i := range st.srcs {
		runs := a.column(i, len(st.srcs), buf)
		if a.any {
			buf = runs
		}
		c, err := gather.Array(st.mem, st.l.schema.Field(i).Type, st.srcs[i], runs)
		if err != nil {
			return nil, err
		}
		cols = append(cols, c)
	}
	return array.NewRecordBatch(st.l.schema, cols, int64(gather.Total(a.runs))), nil
}

// setBase makes a chunk the current base batch.
func (st *state) setBase(c *chunk) {
	st.chunks[0] = c
	for i := range st.srcs {
		if c == nil {
			st.srcs[i][0] = nil
		} else {
			st.srcs[i][0] = c.cols[i]
		}
	}
}

// meeting is a base row and the entry of its key.
type meeting struct{ row, entry int32 }

// meetings finds the base rows that have an entry. Keys are hashed in bulk first: most rows end at the filter.
func (st *state) meetings(base *chunk, f *filter) []meeting {
	st.hashes = base.keys.hash(st.hashes[:0], base.n)
	st.met = st.met[:0]
	mask := uint64(len(st.slots) - 1)
	for row, hash := range st.hashes { // loads of slots that do not wait for each other
		if f.may(hash) {
			if ref := st.slots[hash&mask]; ref != 0 {
				st.met = append(st.met, meeting{int32(row), ref - 1})
			}
		}
	}
	n := 0
	for _, m := range st.met {
		key, ok := base.keys.at(int(m.row))
		if !ok {
			continue
		}
		hash := st.hashes[m.row]
		if en := &st.entries[m.entry]; en.hash != hash || !st.hasKey(en, key) {
			if m.entry = st.find(hash, key); m.entry < 0 {
				continue
			}
		}
		st.met[n] = m
		n++
	}
	return st.met[:n]
}

// hasKey compares the key itself: equal hashes prove nothing.
func (st *state) hasKey(e *entry, key []byte) bool {
	k, _ := st.chunks[e.at.chunk].keys.at(int(e.at.row))
	return bytes.Equal(k, key)
}

// hash appends the hash of every key; that of a null means nothing.
func (t *text) hash(out []uint64, n int) []uint64 {
	if t.off32 == nil {
		for row := range n {
			key, _ := t.at(row)
			out = append(out, xxhash.Sum64(key))
		}
		return out
	}
	offs := t.off32[:n+1]
	from := offs[0]
	for _, to := range offs[1:] {
		out = append(out, xxhash.Sum64(t.data[from:to]))
		from = to
	}
	return out
}

// mergeBase merges one base batch with the entries of its keys. It reports false when nothing changed.
func (st *state) mergeBase(base *chunk, met []meeting, a *assembly) bool {
	a.reset()
	changed := false
	from := int32(0)
	for _, m := range met {
		e := &st.entries[m.entry]
		if e.matched && !st.r.everyTwin {
			continue
		}
		e.matched = true
		old := base.side(int(m.row))
		old.base, old.dead = true, false // a stored record is a record, whatever its flag column says (trap 23)
		fresh := st.entrySide(m.entry)
		v := takeNew
		if !e.alone {
			v = st.r.engine.base(&st.merger, &old, &fresh)
		}
		if v == keepOld {
			continue
		}
		changed = true
		a.stretch(0, from, m.row-from)
		from = m.row + 1
		st.emit(a, v, e, &old, &fresh)
	}
	if changed {
		a.stretch(0, from, int32(base.n)-from)
	}
	return changed
}

// emit appends the outcome of a base row and an entry.
func (st *state) emit(a *assembly, v verdict, e *entry, old, fresh *side) {
	if v == takeNew || v == takeAlone {
		if !e.dead {
			st.emitEntry(a, e)
		}
		return
	}
	baseAt := func(int) source { return source{0, int32(old.row)} }
	freshAt := st.entryAt(e, fresh)
	if v == blendNew {
		st.blend(fresh, fresh, old, st.scratch, freshAt, baseAt)
	} else {
		st.blend(fresh, old, fresh, st.scratch, baseAt, freshAt)
	}
	a.composed(st.scratch)
}

func (st *state) emitEntry(a *assembly, e *entry) {
	if e.parts != 0 {
		a.composed(st.partsOf(e.parts))
		return
	}
	a.row(e.at.chunk, e.at.row)
}
