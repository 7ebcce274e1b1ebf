// Package shuffle groups rows by target. Batches go in in any order; the rows of one target come out together, in the order in
// which they came or sorted by a text column. What does not fit in memory lies in one temporary file.
package shuffle

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/util"

	"github.com/sluicelake/sluice/internal/gather"
)

// Options of New. The zero value keeps everything in memory.
type Options struct {
	Alloc  memory.Allocator
	Memory int64  // bytes of rows that are held before they go to the file; 0 means no limit
	Dir    string // of the temporary file; empty means the system's
	// Sorted sorts the rows of each target by column Column, which is text or int64; equal rows keep their order. Compare orders
	// texts; nil means by bytes.
	Sorted  bool
	Column  int
	Compare func(a, b string) int
}

// Rows and bytes of the batches that come out, about.
const (
	outRows  = 32 << 10
	outBytes = 8 << 20
)

// Store holds the rows. Add is for one goroutine, and comes before all reading; then several may read at once. Close it.
type Store struct {
	schema *arrow.Schema
	o      Options
	held   []heldBatch
	bytes  int64
	width  float64 // bytes of a row, about
	rows   map[int32]int64
	total  int64 // of rows
	file   *os.File
	at     int64
	disk   map[int32][]section
	next   []int32 // scratch of Add
}

// heldBatch is a batch in memory: order has the numbers of its rows target by target, and parts says where each target begins.
type heldBatch struct {
	batch arrow.RecordBatch
	order []int32
	parts []part
}

type part struct {
	target   int32
	from, to int32 // in order
}

// section is a piece of the file: rows of one target, as one stream of Arrow IPC.
type section struct {
	at, size, rows int64
}

// New makes an empty store for rows of a schema.
func New(s *arrow.Schema, o Options) *Store {
	if o.Alloc == nil {
		o.Alloc = memory.DefaultAllocator
	}
	if o.Compare == nil {
		o.Compare = strings.Compare
	}
	return &Store{schema: s, o: o, rows: map[int32]int64{}, disk: map[int32][]section{}}
}

// Schema of the rows.
func (s *Store) Schema() *arrow.Schema { return s.schema }

// Add takes the rows of a batch, each for its target; a negative one leaves the row out. The caller keeps its reference.
func (s *Store) Add(batch arrow.RecordBatch, targets []int32) error {
	if len(targets) != int(batch.NumRows()) {
		return fmt.Errorf("shuffle: %d targets for %d rows", len(targets), batch.NumRows())
	}
	h := heldBatch{batch: batch}
	most := int32(-1)
	for _, t := range targets {
		most = max(most, t)
	}
	if most < 0 {
		return nil
	}
	if int(most) < 4*len(targets)+1024 {
		h.order, h.parts = s.dense(targets, most)
	} else {
		h.order, h.parts = s.sparse(targets)
	}
	for _, c := range batch.Columns() {
		settle(c)
	}
	batch.Retain()
	s.held = append(s.held, h)
	s.total += int64(len(h.order))
	size := util.TotalRecordSize(batch)
	s.bytes += size + int64(len(h.order))*4
	s.width = max(s.width, float64(size)/float64(batch.NumRows()))
	if s.o.Memory > 0 && s.bytes > s.o.Memory {
		return s.flush()
	}
	return nil
}

// dense sorts rows by target with a count for each target.
func (s *Store) dense(targets []int32, most int32) (order []int32, parts []part) {
	if len(s.next) <= int(most) {
		s.next = make([]int32, int(most)+1+int(most)/2)
	}
	next := s.next[:most+1]
	clear(next)
	for _, t := range targets {
		if t >= 0 {
			next[t]++
		}
	}
	at := int32(0)
	for t, n := range next {
		if n > 0 {
			parts = append(parts, part{int32(t), at, at + n})
			s.rows[int32(t)] += int64(n)
		}
		next[t] = at
		at += n
	}
	order = make([]int32, at)
	for row, t := range targets {
		if t >= 0 {
			order[next[t]] = int32(row)
			next[t]++
		}
	}
	return order, parts
}

// sparse is for few rows of targets with large numbers.
func (s *Store) sparse(targets []int32) (order []int32, parts []part) {
	for row, t := range targets {
		if t >= 0 {
			order = append(order, int32(row))
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(targets[a], targets[b]) })
	for i, row := range order {
		if t := targets[row]; len(parts) == 0 || parts[len(parts)-1].target != t {
			parts = append(parts, part{t, int32(i), int32(i)})
		}
		parts[len(parts)-1].to++
		s.rows[targets[row]]++
	}
	return order, parts
}

// Rows of a target.
func (s *Store) Rows(target int32) int64 { return s.rows[target] }

// Total is the number of rows of all targets.
func (s *Store) Total() int64 { return s.total }

// Groups is the number of targets that have rows.
func (s *Store) Groups() int { return len(s.rows) }

// Targets that have rows, ascending.
func (s *Store) Targets() []int32 {
	out := make([]int32, 0, len(s.rows))
	for t := range s.rows {
		out = append(out, t)
	}
	slices.Sort(out)
	return out
}

// Spilled reports whether rows lie in a file.
func (s *Store) Spilled() bool { return s.file != nil }

// Close releases the memory and removes the file.
func (s *Store) Close() {
	for _, h := range s.held {
		h.batch.Release()
	}
	s.held, s.bytes = nil, 0
	if s.file != nil {
		_ = s.file.Close() // nothing reads it any more
		_ = os.Remove(s.file.Name())
		s.file = nil
	}
}

// flush moves the rows in memory to the file, target by target.
func (s *Store) flush() error {
	if s.file == nil {
		f, err := os.CreateTemp(s.o.Dir, "sluice-rows-*.arrow")
		if err != nil {
			return fmt.Errorf("no temporary file for rows beyond the memory that was granted; make room, or name another folder: %w", err)
		}
		_ = os.Remove(f.Name()) // where the system allows it; Close removes it otherwise
		s.file = f
	}
	to := bufio.NewWriterSize(&fileEnd{s.file, s.at}, 1<<20)
	for _, t := range s.heldTargets() {
		var buf bytes.Buffer
		w := ipc.NewWriter(&buf, ipc.WithSchema(s.schema), ipc.WithAllocator(s.o.Alloc))
		rows := int64(0)
		for batch, err := range s.gathered(s.inMemory(t)) {
			if err != nil {
				return err
			}
			err = w.Write(batch)
			rows += batch.NumRows()
			batch.Release()
			if err != nil {
				return fmt.Errorf("temporary file: %w", err)
			}
		}
		if err := w.Close(); err != nil {
			return fmt.Errorf("temporary file: %w", err)
		}
		n, err := to.Write(buf.Bytes())
		if err != nil {
			return fmt.Errorf("write rows beyond the memory that was granted to %s: make room, or name another folder: %w", s.file.Name(), err)
		}
		s.disk[t] = append(s.disk[t], section{s.at, int64(n), rows})
		s.at += int64(n)
	}
	if err := to.Flush(); err != nil {
		return fmt.Errorf("write rows beyond the memory that was granted to %s: make room, or name another folder: %w", s.file.Name(), err)
	}
	for _, h := range s.held {
		h.batch.Release()
	}
	s.held, s.bytes = nil, 0
	return nil
}

// fileEnd appends to a file that others read by position.
type fileEnd struct {
	f  *os.File
	at int64
}

func (w *fileEnd) Write(p []byte) (int, error) {
	n, err := w.f.WriteAt(p, w.at)
	w.at += int64(n)
	return n, err
}

func (s *Store) heldTargets() []int32 {
	seen := map[int32]bool{}
	for _, h := range s.held {
		for _, p := range h.parts {
			seen[p.target] = true
		}
	}
	out := make([]int32, 0, len(seen))
	for t := range seen {
		out = append(out, t)
	}
	slices.Sort(out)
	return out
}

// ref is a row in memory.
type ref struct{ batch, row int32 }

// refs are the rows of a target in memory, in their order.
func (s *Store) refs(target int32) []ref {
	var out []ref
	for i, h := range s.held {
		p, ok := slices.BinarySearchFunc(h.parts, target, func(p part, t int32) int { return cmp.Compare(p.target, t) })
		if !ok {
			continue
		}
		for _, row := range h.order[h.parts[p].from:h.parts[p].to] {
			out = append(out, ref{int32(i), row})
		}
	}
	if s.o.Sorted {
		s.sort(out)
	}
	return out
}

func (s *Store) sort(refs []ref) {
	if s.schema.Field(s.o.Column).Type.ID() == arrow.INT64 {
		columns := make([][]int64, len(s.held))
		for i, h := range s.held {
			columns[i] = h.batch.Column(s.o.Column).(*array.Int64).Int64Values()
		}
		sortBy(refs, func(r ref) int64 { return columns[r.batch][r.row] }, cmp.Compare[int64])
		return
	}
	texts := make([]*array.String, len(s.held))
	for i, h := range s.held {
		texts[i] = h.batch.Column(s.o.Column).(*array.String)
	}
	sortBy(refs, func(r ref) string { return texts[r.batch].Value(int(r.row)) }, s.o.Compare)
}

func sortBy[K any](refs []ref, key func(ref) K, compare func(a, b K) int) {
	type keyed struct {
		ref
		key K
	}
	all := make([]keyed, len(refs))
	for i, r := range refs {
		all[i] = keyed{r, key(r)}
	}
	slices.SortStableFunc(all, func(a, b keyed) int { return compare(a.key, b.key) })
	for i := range all {
		refs[i] = all[i].ref
	}
}

// inMemory yields the rows of a target that are in memory.
func (s *Store) inMemory(target int32) iter.Seq2[[]Part, error] {
	if s.o.Sorted {
		return s.whole(s.sorted(target))
	}
	return s.inOrder(target)
}

// sorted yields the rows of a target that are in memory in the order of their column.
func (s *Store) sorted(target int32) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		refs := s.refs(target)
		step := s.step()
		for from := 0; from < len(refs); from += step {
			batch, err := s.build(refs[from:min(from+step, len(refs))])
			if !yield(batch, err) || err != nil {
				return
			}
		}
	}
}

// whole makes a part of each batch, and releases it.
func (s *Store) whole(batches iter.Seq2[arrow.RecordBatch, error]) iter.Seq2[[]Part, error] {
	return func(yield func([]Part, error) bool) {
		for batch, err := range batches {
			if err != nil {
				yield(nil, err)
				return
			}
			more := yield([]Part{{Batch: batch}}, nil)
			batch.Release()
			if !more {
				return
			}
		}
	}
}

// gathered makes batches of parts. Whoever receives a batch releases it.
func (s *Store) gathered(all iter.Seq2[[]Part, error]) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		var srcs []arrow.RecordBatch
		var runs []gather.Run
		for parts, err := range all {
			if err != nil {
				yield(nil, err)
				return
			}
			if len(parts) == 1 && parts[0].Rows == nil {
				parts[0].Batch.Retain()
				if !yield(parts[0].Batch, nil) {
					return
				}
				continue
			}
			srcs, runs = srcs[:0], runs[:0]
			for _, p := range parts {
				srcs = append(srcs, p.Batch)
				runs = appendRows(runs, int32(len(srcs)-1), p.Rows)
			}
			batch, err := gather.Batch(s.o.Alloc, s.schema, srcs, runs)
			if !yield(batch, err) || err != nil {
				return
			}
		}
	}
}

// inOrder yields the rows of a target in the order of their arrival, batch of the memory by batch.
func (s *Store) inOrder(target int32) iter.Seq2[[]Part, error] {
	return func(yield func([]Part, error) bool) {
		step := s.step()
		var parts []Part
		rows := 0
		for _, h := range s.held {
			p, ok := slices.BinarySearchFunc(h.parts, target, func(p part, t int32) int { return cmp.Compare(p.target, t) })
			if !ok {
				continue
			}
			order := h.order[h.parts[p].from:h.parts[p].to]
			for len(order) > 0 {
				n := min(step-rows, len(order))
				parts = append(parts, Part{h.batch, order[:n:n]})
				rows += n
				order = order[n:]
				if rows == step {
					if !yield(parts, nil) {
						return
					}
					parts, rows = parts[:0], 0
				}
			}
		}
		if rows > 0 {
			yield(parts, nil)
		}
	}
}

// appendRows adds rows of one source, joined where they follow each other.
func appendRows(runs []gather.Run, src int32, rows []int32) []gather.Run {
	for i := 0; i < len(rows); {
		from := i
		for i++; i < len(rows) && rows[i] == rows[i-1]+1; i++ {
		}
		runs = append(runs, gather.Run{Src: src, Row: rows[from], N: int32(i - from)})
	}
	return runs
}

func (s *Store) step() int {
	return int(max(min(float64(outBytes)/max(s.width, 1), outRows), 1))
}

func (s *Store) build(refs []ref) (arrow.RecordBatch, error) {
	var srcs []arrow.RecordBatch
	index := map[int32]int32{}
	runs := make([]gather.Run, 0, len(refs))
	for _, r := range refs {
		src, ok := index[r.batch]
		if !ok {
			src = int32(len(srcs))
			index[r.batch] = src
			srcs = append(srcs, s.held[r.batch].batch)
		}
		if n := len(runs); n > 0 && runs[n-1].Src == src && runs[n-1].Row+runs[n-1].N == r.row {
			runs[n-1].N++
			continue
		}
		runs = append(runs, gather.Run{Src: src, Row: r.row, N: 1})
	}
	return gather.Batch(s.o.Alloc, s.schema, srcs, runs)
}

// Part is rows of one batch: those that Rows names, or all when it is nil. Other goroutines may read the batch at the same time.
type Part struct {
	Batch arrow.RecordBatch
	Rows  []int32
}

// Len is the number of rows.
func (p Part) Len() int64 {
	if p.Rows == nil {
		return p.Batch.NumRows()
	}
	return int64(len(p.Rows))
}

// Read yields rows from on of a target, n of them, or all that follow when n is negative. Whoever receives a batch releases it.
func (s *Store) Read(ctx context.Context, target int32, from, n int64) iter.Seq2[arrow.RecordBatch, error] {
	return s.gathered(s.Parts(ctx, target, from, n))
}

// Parts yields the same rows as they lie in memory, without putting them together: about as many at once. They are good until the next
// ones are asked for.
func (s *Store) Parts(ctx context.Context, target int32, from, n int64) iter.Seq2[[]Part, error] {
	if n < 0 {
		n = s.rows[target] - from
	}
	return func(yield func([]Part, error) bool) {
		skip := from
		for parts, err := range s.all(ctx, target, &skip) {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(nil, err)
				return
			}
			var cut []Part
			for _, p := range parts {
				first := min(skip, p.Len())
				take := min(n, p.Len()-first)
				skip, n = skip-first, n-take
				if take > 0 {
					cut = append(cut, p.slice(first, first+take))
				}
			}
			more := len(cut) == 0 || yield(cut, nil)
			for _, p := range cut {
				p.Batch.Release()
			}
			if !more || n <= 0 {
				return
			}
		}
	}
}

// slice gives some of the rows, with a reference to the batch of their own.
func (p Part) slice(from, to int64) Part {
	if p.Rows == nil {
		return Part{Batch: p.Batch.NewSlice(from, to)}
	}
	p.Batch.Retain()
	return Part{p.Batch, p.Rows[from:to:to]}
}

// all yields every row of a target but for some of the first *skip, which it then takes off.
func (s *Store) all(ctx context.Context, target int32, skip *int64) iter.Seq2[[]Part, error] {
	if s.o.Sorted && len(s.disk[target]) > 0 {
		return s.whole(s.merged(ctx, target))
	}
	return func(yield func([]Part, error) bool) {
		for _, sec := range s.disk[target] {
			if *skip >= sec.rows { // nobody wants these
				*skip -= sec.rows
				continue
			}
			for parts, err := range s.whole(s.onDisk(sec)) {
				if !yield(parts, err) || err != nil {
					return
				}
			}
		}
		for parts, err := range s.inMemory(target) {
			if !yield(parts, err) || err != nil {
				return
			}
		}
	}
}

func (s *Store) onDisk(sec section) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		r, err := ipc.NewReader(bufio.NewReaderSize(io.NewSectionReader(s.file, sec.at, sec.size), 256<<10), ipc.WithAllocator(s.o.Alloc), ipc.WithSchema(s.schema))
		if err != nil {
			yield(nil, fmt.Errorf("read a temporary file back: %w", err))
			return
		}
		defer r.Release()
		for r.Next() {
			b := r.RecordBatch()
			b.Retain()
			if !yield(b, nil) {
				return
			}
		}
		if err := r.Err(); err != nil && !errors.Is(err, io.EOF) {
			yield(nil, fmt.Errorf("read a temporary file back: %w", err))
		}
	}
}

// Bytes of rows that are held in memory, about.
func (s *Store) Bytes() int64 { return s.bytes }
