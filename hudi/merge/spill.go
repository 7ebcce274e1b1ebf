package merge

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/util"
	"github.com/cespare/xxhash/v2"

	"github.com/sluicelake/sluice/internal/gather"
)

// A log above its budget is cut in parts by key hash. Every part keeps the history of its keys in order, in a file. Base
// rows whose key may be in the log go to a file of the same part, the others pass at once. Then the parts are merged one
// after the other in memory; a part that is still too big is cut again by further bits of the hash. So the memory needed
// depends neither on the number of keys nor on the size of the log.
const (
	fanBits   = 5
	fan       = 1 << fanBits
	maxLevel  = 10       // hash bits are used up; keys that still share a part share nearly all of a 64-bit hash
	maxQueued = 32 << 20 // bytes of rows on their way to disk
)

// Marks of spilled rows, beside rowBlock and rowAlone.
const rowOver uint8 = 1 << 2 // an ordering value replaces that of the columns

// spill is one level of parts.
type spill struct {
	log    *Log
	level  int
	schema *arrow.Schema
	parts  [fan]struct{ logs, base spillFile }
	queue  spillQueue
	filter *filter
}

// spillQueue gathers chunks until there is enough to cut in parts.
type spillQueue struct {
	chunks []*chunk
	bytes  int64
}

// spillFile is a temporary file of Arrow IPC stream messages.
type spillFile struct {
	f   *os.File
	buf *bufio.Writer
	w   *ipc.Writer
}

func newSpill(l *Log, level int) (*spill, error) {
	fields := append([]arrow.Field(nil), l.r.layout.schema.Fields()...)
	for i := range fields {
		fields[i].Nullable = true
	}
	fields = append(fields,
		arrow.Field{Name: "#key", Type: arrow.BinaryTypes.Binary},
		arrow.Field{Name: "#mark", Type: arrow.PrimitiveTypes.Uint8},
		arrow.Field{Name: "#order", Type: arrow.BinaryTypes.Binary, Nullable: true},
		arrow.Field{Name: "#set", Type: arrow.PrimitiveTypes.Int32})
	s := &spill{log: l, level: level, schema: arrow.NewSchema(fields, nil)}
	if level == 0 {
		s.filter = newFilter(int(min(l.opts.Budget/8, 1<<24)))
	}
	return s, nil
}

func (s *spill) part(hash uint64) int {
	return int(hash >> (64 - fanBits*(s.level+1)) & (fan - 1))
}

// takeOver moves the chunks of a state to disk, oldest first. The state is empty afterwards.
func (s *spill) takeOver(st *state) error {
	chunks := st.chunks[1:]
	st.chunks = nil
	s.log.st = nil
	defer st.release()
	for i, c := range chunks {
		if err := s.add(c); err != nil {
			for _, left := range chunks[i+1:] {
				left.release()
			}
			return err
		}
	}
	return nil
}

func (s *spill) limit() int64 { return max(min(s.log.opts.Budget/4, maxQueued), 64<<10) }

// add takes a chunk over and queues it.
func (s *spill) add(c *chunk) error {
	s.queue.chunks = append(s.queue.chunks, c)
	s.queue.bytes += c.bytes
	if s.queue.bytes < s.limit() {
		return nil
	}
	return s.flush(false)
}

func (s *spill) addBase(c *chunk) error {
	s.queue.chunks = append(s.queue.chunks, c)
	s.queue.bytes += c.bytes
	if s.queue.bytes < s.limit() {
		return nil
	}
	return s.flush(true)
}

// flush cuts the queued rows in parts and writes each part's rows as one message.
func (s *spill) flush(base bool) error {
	q := &s.queue
	defer q.drop()
	if len(q.chunks) == 0 {
		return nil
	}
	var runs [fan]assembly
	for ci, c := range q.chunks {
		for row := range c.n {
			key, ok := c.keys.at(row)
			if !ok {
				return errNoKey
			}
			hash := xxhash.Sum64(key)
			if s.filter != nil && !base {
				s.filter.add(hash)
			}
			runs[s.part(hash)].row(int32(ci), int32(row))
		}
	}
	srcs, done := q.sources(s)
	defer done()
	for p := range runs {
		if len(runs[p].runs) == 0 {
			continue
		}
		file := &s.parts[p].logs
		if base {
			file = &s.parts[p].base
		}
		if err := s.write(file, q.chunks, srcs, runs[p].runs); err != nil {
			return err
		}
	}
	return nil
}

func (q *spillQueue) drop() {
	for _, c := range q.chunks {
		c.release()
	}
	q.chunks, q.bytes = nil, 0
}

// sources gives the arrays of every column by chunk, with nulls for DELETE blocks.
func (q *spillQueue) sources(s *spill) (srcs [][]arrow.Array, done func()) {
	l := s.log.r.layout
	longest := 0
	for _, c := range q.chunks {
		if c.cols == nil {
			longest = max(longest, c.n)
		}
	}
	srcs = make([][]arrow.Array, l.schema.NumFields())
	var nulls []arrow.Array
	for i := range srcs {
		var none arrow.Array
		if longest > 0 {
			none = nullColumn(s.log.opts.Alloc, l.schema.Field(i).Type, longest)
			nulls = append(nulls, none)
		}
		srcs[i] = make([]arrow.Array, len(q.chunks))
		for j, c := range q.chunks {
			if srcs[i][j] = none; c.cols != nil {
				srcs[i][j] = c.cols[i]
			}
		}
	}
	return srcs, func() {
		for _, a := range nulls {
			a.Release()
		}
	}
}

// write appends rows to a file, halving them where a column would exceed 2 GiB.
func (s *spill) write(file *spillFile, chunks []*chunk, srcs [][]arrow.Array, runs []gather.Run) error {
	batch, err := s.message(chunks, srcs, runs)
	if errors.Is(err, gather.ErrTooBig) && gather.Total(runs) > 1 {
		lo, hi := (&assembly{runs: runs, at: make([]int32, len(runs))}).halve()
		if err := s.write(file, chunks, srcs, lo.runs); err != nil {
			return err
		}
		return s.write(file, chunks, srcs, hi.runs)
	}
	if err != nil {
		return err
	}
	defer batch.Release()
	if err := file.open(s); err != nil {
		return err
	}
	if err := file.w.Write(batch); err != nil {
		return fmt.Errorf("merge: write spill file in %s: %w", s.log.dir(), err)
	}
	return nil
}

func (l *Log) dir() string {
	if l.opts.SpillDir == "" {
		return os.TempDir()
	}
	return l.opts.SpillDir
}

func (s *spill) message(chunks []*chunk, srcs [][]arrow.Array, runs []gather.Run) (arrow.RecordBatch, error) {
	mem, l := s.log.opts.Alloc, s.log.r.layout
	cols := make([]arrow.Array, 0, len(srcs)+4)
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	for i := range srcs {
		c, err := gather.Array(mem, l.schema.Field(i).Type, srcs[i], runs)
		if err != nil {
			return nil, err
		}
		cols = append(cols, c)
	}
	keys, marks := array.NewBinaryBuilder(mem, arrow.BinaryTypes.Binary), array.NewUint8Builder(mem)
	orders, sets := array.NewBinaryBuilder(mem, arrow.BinaryTypes.Binary), array.NewInt32Builder(mem)
	builders := []array.Builder{keys, marks, orders, sets}
	defer func() {
		for _, b := range builders {
			b.Release()
		}
	}()
	var buf []byte
	for _, r := range runs {
		c := chunks[r.Src]
		for row := int(r.Row); row < int(r.Row+r.N); row++ {
			key, _ := c.keys.at(row)
			keys.Append(key)
			v := c.side(row)
			mark := uint8(0)
			if c.marks != nil {
				mark = c.marks[row] & rowAlone
			}
			switch {
			case v.bare:
				mark |= rowBlock
				buf = appendValue(buf[:0], c.ords[row])
				orders.Append(buf)
			case v.over != nil:
				mark |= rowOver
				buf = appendValue(buf[:0], *v.over)
				orders.Append(buf)
			default:
				orders.AppendNull()
			}
			marks.Append(mark)
			sets.Append(v.set)
		}
	}
	for _, b := range builders {
		cols = append(cols, b.NewArray())
	}
	return array.NewRecordBatch(s.schema, cols, int64(gather.Total(runs))), nil
}

func (f *spillFile) open(s *spill) error {
	if f.w != nil {
		return nil
	}
	file, err := os.CreateTemp(s.log.opts.SpillDir, "sluice-merge-*.arrow")
	if err != nil {
		return fmt.Errorf("merge: no temporary file for a log above its budget; make room or name another folder: %w", err)
	}
	_ = os.Remove(file.Name()) // where the system allows it; close removes it otherwise
	f.f, f.buf = file, bufio.NewWriterSize(file, 64<<10)
	f.w = ipc.NewWriter(f.buf, ipc.WithSchema(s.schema), ipc.WithAllocator(s.log.opts.Alloc))
	return nil
}

func (f *spillFile) close() {
	if f.f == nil {
		return
	}
	if f.w != nil {
		_ = f.w.Close() // nothing reads the file any more
	}
	_ = f.f.Close()
	_ = os.Remove(f.f.Name())
	*f = spillFile{}
}

// rewind ends writing, so that the file can be read from its start, more than once.
func (f *spillFile) rewind() error {
	if f.w != nil {
		if err := errors.Join(f.w.Close(), f.buf.Flush()); err != nil {
			return fmt.Errorf("merge: write spill file: %w", err)
		}
		f.w = nil
	}
	_, err := f.f.Seek(0, io.SeekStart)
	return err
}

// chunks reads the file back. Whoever receives a chunk owns it.
func (f *spillFile) chunks(s *spill) iter.Seq2[*chunk, error] {
	return func(yield func(*chunk, error) bool) {
		if f.f == nil {
			return
		}
		if err := f.rewind(); err != nil {
			yield(nil, err)
			return
		}
		r, err := ipc.NewReader(bufio.NewReaderSize(f.f, 64<<10), ipc.WithAllocator(s.log.opts.Alloc), ipc.WithSchema(s.schema))
		if err != nil {
			yield(nil, fmt.Errorf("merge: read spill file: %w", err))
			return
		}
		defer r.Release()
		for r.Next() {
			c, err := s.chunk(r.RecordBatch())
			if !yield(c, err) || err != nil {
				return
			}
		}
		if err := r.Err(); err != nil {
			yield(nil, fmt.Errorf("merge: read spill file: %w", err))
		}
	}
}

// chunk is the inverse of message.
func (s *spill) chunk(b arrow.RecordBatch) (*chunk, error) {
	l, n := s.log.r.layout, int(b.NumRows())
	w := l.schema.NumFields()
	c := &chunk{l: l, n: n, bytes: util.TotalRecordSize(b), own: b.Column(w)}
	var err error
	if c.keys, err = textOf(c.own); err != nil {
		return nil, err
	}
	marks, orders := b.Column(w+1).(*array.Uint8).Uint8Values(), b.Column(w+2).(*array.Binary)
	c.sets = append([]int32(nil), b.Column(w+3).(*array.Int32).Int32Values()...)
	c.marks = append([]uint8(nil), marks...)
	if orders.NullN() < n {
		c.ords, c.has = make([]Value, n), make([]bool, n)
		c.bytes += int64(n) * valueSize
		for i := range n {
			if orders.IsNull(i) {
				continue
			}
			if c.ords[i], _, err = readValue(orders.Value(i), 0); err != nil {
				return nil, err
			}
			c.has[i] = true
		}
	}
	c.bytes += int64(n) * 6
	c.cols = make([]arrow.Array, w)
	for i := range c.cols {
		c.cols[i] = b.Column(i)
		c.cols[i].Retain()
	}
	c.own.Retain()
	c.ord = l.ordColumns(c.cols)
	c.dead = l.deadRows(c.cols, n)
	return c, nil
}

// over merges all parts over the base file.
func (s *spill) over(ctx context.Context, base iter.Seq2[Keyed, error], yield sink) error {
	if err := s.flush(false); err != nil {
		return err
	}
	a := &assembly{}
	for k, err := range base {
		if err != nil {
			return err
		}
		if err := s.cutBase(ctx, k, a, yield); err != nil {
			return err
		}
	}
	if err := s.flush(true); err != nil {
		return err
	}
	return s.merge(ctx, yield)
}

// cutBase passes base rows without a log record and queues the others.
func (s *spill) cutBase(ctx context.Context, k Keyed, a *assembly, yield sink) error {
	defer k.release()
	if err := ctx.Err(); err != nil {
		return err
	}
	st := newState(s.log.r, s.log.opts.Alloc, Base)
	c, err := st.l.newChunk(k.Batch, k.Keys)
	if err != nil {
		return fmt.Errorf("base file: %w", err)
	}
	defer c.release()
	st.setBase(c)
	defer st.setBase(nil)
	a.reset()
	hits := &assembly{}
	for row := range c.n {
		key, ok := c.keys.at(row)
		if ok && s.filter.may(xxhash.Sum64(key)) {
			hits.row(0, int32(row))
		} else {
			a.row(0, int32(row))
		}
	}
	if len(hits.runs) == 0 {
		k.Batch.Retain()
		return pass(yield, k.Batch)
	}
	if err := s.queueHits(st, c, hits); err != nil {
		return err
	}
	return st.yield(a, yield)
}

// queueHits copies the rows that may have a log record, so that the rest of the batch can go.
func (s *spill) queueHits(st *state, c *chunk, hits *assembly) error {
	keys, err := gather.Array(s.log.opts.Alloc, c.own.DataType(), []arrow.Array{c.own}, hits.runs)
	if err != nil {
		return err
	}
	defer keys.Release()
	batches, err := st.build(hits)
	if err != nil {
		return err
	}
	defer func() {
		for _, b := range batches {
			b.Release()
		}
	}()
	at := int64(0)
	for _, b := range batches {
		part := array.NewSlice(keys, at, at+b.NumRows())
		at += b.NumRows()
		h, err := st.l.newChunk(b, part)
		part.Release()
		if err != nil {
			return err
		}
		if err := s.addBase(h); err != nil {
			return err
		}
	}
	return nil
}

// merge merges part after part.
func (s *spill) merge(ctx context.Context, yield sink) error {
	for p := range s.parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.mergePart(ctx, p, yield); err != nil {
			return err
		}
		s.parts[p].logs.close()
		s.parts[p].base.close()
	}
	return nil
}

func (s *spill) mergePart(ctx context.Context, p int, yield sink) error {
	part := &s.parts[p]
	st := s.log.newState()
	defer func() { st.release() }()
	for c, err := range part.logs.chunks(s) {
		if err != nil {
			return err
		}
		if err := st.add(c); err != nil {
			return err
		}
		if st.size() <= s.log.opts.Budget {
			continue
		}
		if err := st.compactIfWorth(); err != nil {
			return err
		}
		if st.size() > s.log.opts.Budget*3/4 && s.level < maxLevel && len(st.entries) > 1 {
			st.release()
			return s.cutAgain(ctx, p, yield)
		}
	}
	return s.mergeRows(ctx, st, p, yield)
}

func (s *spill) mergeRows(ctx context.Context, st *state, p int, yield sink) error {
	f := newFilter(len(st.entries))
	for i := range st.entries {
		f.add(st.entries[i].hash)
	}
	a := &assembly{}
	for c, err := range s.parts[p].base.chunks(s) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			if c != nil {
				c.release()
			}
			return err
		}
		whole := array.NewRecordBatch(st.l.schema, c.cols, int64(c.n))
		st.setBase(c)
		err = st.overChunk(c, f, a, yield, whole)
		st.setBase(nil)
		whole.Release()
		c.release()
		if err != nil {
			return err
		}
	}
	return st.rest(ctx, s.log.opts, a, yield)
}

// cutAgain cuts one part by the next bits of the hash.
func (s *spill) cutAgain(ctx context.Context, p int, yield sink) error {
	sub, err := newSpill(s.log, s.level+1)
	if err != nil {
		return err
	}
	defer sub.close()
	for _, step := range []struct {
		file *spillFile
		base bool
	}{{&s.parts[p].logs, false}, {&s.parts[p].base, true}} {
		for c, err := range step.file.chunks(s) {
			if err != nil {
				return err
			}
			if step.base {
				err = sub.addBase(c)
			} else {
				err = sub.add(c)
			}
			if err != nil {
				return err
			}
		}
		if err := sub.flush(step.base); err != nil {
			return err
		}
		step.file.close()
	}
	return sub.merge(ctx, yield)
}

func (s *spill) close() {
	s.queue.drop()
	for p := range s.parts {
		s.parts[p].logs.close()
		s.parts[p].base.close()
	}
}
