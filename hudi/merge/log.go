package merge

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/schema"
)

// DefaultBudget is the memory in bytes that a Log holds before it spills, when LogOptions names none: room for the logs of
// an ordinary file group, a fraction of a small machine.
const DefaultBudget = 256 << 20

// LogOptions of Rule.NewLog.
type LogOptions struct {
	// Alloc is used for everything that the log allocates. Nil: the Go allocator.
	Alloc memory.Allocator
	// Budget in bytes for the records and the index of the log. Above it they go to disk, whatever their number; beside
	// the budget, a base batch, the batch made of it and at most 32 MiB of rows on their way to disk are held.
	Budget int64
	// SpillDir is where temporary files are made. Empty: the system's. They are removed when the log is closed and, where
	// the system allows, have no name while they are used, so that even a killed process leaves none.
	SpillDir string
	// Batch makes the log a write batch: records meet by the rule of the phase Within, not of Scan.
	Batch bool
	// BatchRows is the number of rows of the batches of rows that exist only in the log; 0 is 8192.
	BatchRows int
	// KeepDeletes lets Rows give rows that are deletes by their own columns, too: a writer turns them into deletes itself.
	KeepDeletes bool
}

// AddOptions of Log.Add.
type AddOptions struct {
	// Keys are the record keys, text or binary, one per row. Nil: column _hoodie_record_key of the batch.
	Keys arrow.Array
	// Columns are the names of the columns that the block has, for a block with IS_PARTIAL; the batch has nulls in the
	// others. Nil: all. A rule of a payload class refuses partial blocks.
	Columns []string
}

// Log gathers the records and deletes of one slice's log blocks, oldest block first, and then merges them over the base
// file. It is for one goroutine. Close it in every case.
type Log struct {
	r        *Rule
	opts     LogOptions
	st       *state
	spill    *spill    // not nil once the budget was exceeded
	registry *registry // of all states
	done     bool
	failed   error // the first failure: what the log holds is no longer whole
}

// NewLog starts an empty log.
func (r *Rule) NewLog(o LogOptions) *Log {
	if o.Alloc == nil {
		o.Alloc = memory.DefaultAllocator
	}
	if o.Budget <= 0 {
		o.Budget = DefaultBudget
	}
	if o.BatchRows <= 0 {
		o.BatchRows = 8192
	}
	l := &Log{r: r, opts: o, registry: newRegistry()}
	l.st = l.newState()
	return l
}

func (l *Log) newState() *state {
	phase := Scan
	if l.opts.Batch {
		phase = Within
	}
	st := newState(l.r, l.opts.Alloc, phase)
	st.registry = l.registry
	return st
}

var errDone = errors.New("merge: the log was already read or closed")

// Add merges the records of one data block into the log. The batch has the rule's schema. Add keeps what it needs; the
// caller still releases its batch.
func (l *Log) Add(batch arrow.RecordBatch, o AddOptions) error {
	if err := l.usable(); err != nil || batch.NumRows() == 0 {
		return err
	}
	c, err := l.r.layout.newChunk(batch, o.Keys)
	if err == nil && o.Columns != nil {
		if c.set, err = l.presentSet(o.Columns); err != nil {
			c.release()
		}
	}
	if err == nil {
		err = l.addChunk(c)
	}
	l.failed = err
	return err
}

func (l *Log) usable() error {
	switch {
	case l.failed != nil:
		return fmt.Errorf("merge: after an earlier failure: %w", l.failed)
	case l.done:
		return errDone
	}
	return nil
}

func (l *Log) presentSet(names []string) (int32, error) {
	if _, ok := l.r.engine.(*modeEngine); !ok {
		return 0, fmt.Errorf("%w: a block of partial updates in a table that merges by %s", ErrUnsupported, l.r)
	}
	present := make([]bool, l.r.layout.schema.NumFields())
	for i, f := range l.r.layout.schema.Fields() {
		present[i] = schema.IsMeta(f.Name) || slices.Contains(names, f.Name)
	}
	return l.registry.setID(present), nil
}

// AddDeletes merges the entries of one DELETE block into the log. ordering has one value per key, or is nil when no entry
// has one. AddDeletes keeps what it needs; the caller still releases keys.
func (l *Log) AddDeletes(keys arrow.Array, ordering []Value) error {
	if err := l.usable(); err != nil || keys.Len() == 0 {
		return err
	}
	if ordering != nil && len(ordering) != keys.Len() {
		return fmt.Errorf("merge: %d ordering values for %d deleted keys", len(ordering), keys.Len())
	}
	c := &chunk{l: l.r.layout, n: keys.Len(), own: keys, ords: make([]Value, keys.Len())}
	var err error
	if c.keys, err = textOf(keys); err != nil {
		l.failed = err
		return err
	}
	for i, v := range ordering {
		c.ords[i] = l.r.layout.normalise(v)
	}
	c.bytes = arraySize(keys) + int64(c.n)*valueSize
	c.ord = make([]ordColumn, len(l.r.layout.ordering))
	keys.Retain()
	l.failed = l.addChunk(c)
	return l.failed
}

func (l *Log) addChunk(c *chunk) error {
	if l.spill != nil {
		return l.spill.add(c)
	}
	if err := l.st.add(c); err != nil { // the state owns the chunk even now
		return err
	}
	if l.st.size() <= l.opts.Budget {
		return nil
	}
	return l.shrink()
}

// shrink drops superseded rows where that is enough, and otherwise moves the log to disk.
func (l *Log) shrink() error {
	if err := l.st.compactIfWorth(); err != nil || l.st.size() <= l.opts.Budget*3/4 {
		return err
	}
	s, err := newSpill(l, 0)
	if err != nil {
		return err
	}
	l.spill = s
	return s.takeOver(l.st)
}

// Spilled reports whether the log went to disk.
func (l *Log) Spilled() bool { return l.spill != nil }

// Close releases all memory and removes temporary files. It may be called more than once.
func (l *Log) Close() {
	l.done = true
	if l.st != nil {
		l.st.release()
	}
	if l.spill != nil {
		l.spill.close()
	}
	l.st, l.spill = nil, nil
}

// Rows gives the records of the log alone: a slice without base file, an incremental read, or a combined write batch. Order
// is that of the first arrival of each key, by part when the log spilled. The log is closed at the end.
func (l *Log) Rows(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
	return l.Over(ctx, func(func(arrow.RecordBatch, error) bool) {})
}

// Over merges the log over the rows of the base file: base rows first, in their order, then rows that exist only in the
// log. When the log spilled, base rows that may have a log record come later, by part. Batches of base must have the rule's
// schema and, where the table has no meta fields, come through OverKeyed instead. Over releases the batches of base; whoever
// receives a batch releases it. The log is closed at the end, also when the caller stops early.
//
// Twins, base rows of one key (table format 11, trap 11): up to table version 7 the log record meets the first twin in file
// order, from version 8 on every twin, as Spark reads them.
func (l *Log) Over(ctx context.Context, base iter.Seq2[arrow.RecordBatch, error]) iter.Seq2[arrow.RecordBatch, error] {
	return l.OverKeyed(ctx, func(yield func(Keyed, error) bool) {
		for b, err := range base {
			if !yield(Keyed{Batch: b}, err) {
				return
			}
		}
	})
}

// Keyed is a base batch with its record keys, for tables without meta fields. Nil keys: column _hoodie_record_key.
type Keyed struct {
	Batch arrow.RecordBatch
	Keys  arrow.Array
}

// OverKeyed is Over for base batches that come with their keys. It releases batches and keys.
func (l *Log) OverKeyed(ctx context.Context, base iter.Seq2[Keyed, error]) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		if err := l.usable(); err != nil {
			yield(nil, err)
			return
		}
		defer l.Close()
		l.done = true
		var err error
		if l.spill != nil {
			err = l.spill.over(ctx, base, yield)
		} else {
			err = l.overMemory(ctx, base, yield)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// errStopped: the consumer wants no more batches.
var errStopped = errors.New("stopped")

type sink = func(arrow.RecordBatch, error) bool

func (l *Log) overMemory(ctx context.Context, base iter.Seq2[Keyed, error], yield sink) error {
	f := newFilter(len(l.st.entries))
	for i := range l.st.entries {
		f.add(l.st.entries[i].hash)
	}
	a := &assembly{}
	for k, err := range base {
		if err != nil {
			return err
		}
		if err := l.overBatch(ctx, l.st, f, k, a, yield); err != nil {
			return err
		}
	}
	return l.st.rest(ctx, l.opts, a, yield)
}

// overBatch merges one base batch; it releases it.
func (l *Log) overBatch(ctx context.Context, st *state, f *filter, k Keyed, a *assembly, yield sink) error {
	defer k.release()
	if err := ctx.Err(); err != nil {
		return err
	}
	c, err := st.l.newChunk(k.Batch, k.Keys)
	if err != nil {
		return fmt.Errorf("base file: %w", err)
	}
	defer c.release()
	st.setBase(c)
	defer st.setBase(nil)
	return st.overChunk(c, f, a, yield, k.Batch)
}

func (k Keyed) release() {
	k.Batch.Release()
	if k.Keys != nil {
		k.Keys.Release()
	}
}

// overChunk merges the current base chunk and yields the result; whole is the batch to pass on when nothing changed.
func (st *state) overChunk(c *chunk, f *filter, a *assembly, yield sink, whole arrow.RecordBatch) error {
	changed := st.mergeBase(c, st.meetings(c, f), a)
	if !changed {
		whole.Retain()
		return pass(yield, whole)
	}
	return st.yield(a, yield)
}

func pass(yield sink, b arrow.RecordBatch) error {
	if b.NumRows() == 0 {
		b.Release()
		return nil
	}
	if !yield(b, nil) {
		return errStopped
	}
	return nil
}

func (st *state) yield(a *assembly, yield sink) error {
	if len(a.runs) == 0 {
		return nil
	}
	batches, err := st.build(a)
	if err != nil {
		return err
	}
	for i, b := range batches {
		if err := pass(yield, b); err != nil {
			for _, left := range batches[i+1:] {
				left.Release()
			}
			return err
		}
	}
	return nil
}

// rest yields the rows that exist only in the log.
func (st *state) rest(ctx context.Context, o LogOptions, a *assembly, yield sink) error {
	a.reset()
	n := 0
	for i := range st.entries {
		e := &st.entries[i]
		if e.matched || e.bare || e.dead && !o.KeepDeletes {
			continue
		}
		if st.l.insertMark >= 0 && !o.KeepDeletes {
			if s := st.entrySide(int32(i)); st.goneOnInsert(&s) {
				continue
			}
		}
		st.emitEntry(a, e)
		if n++; n == o.BatchRows {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := st.yield(a, yield); err != nil {
				return err
			}
			a.reset()
			n = 0
		}
	}
	return st.yield(a, yield)
}

// filter is a bitmap over key hashes: a clear bit says that no log record has the key.
type filter struct {
	bits []uint64
	mask uint64
}

// newFilter has about eight bits for each of n keys, within limits.
func newFilter(n int) *filter {
	words := 64
	for words*8 < n && words < 1<<22 {
		words *= 2
	}
	return &filter{bits: make([]uint64, words), mask: uint64(words)*64 - 1}
}

func (f *filter) add(hash uint64) {
	h := hash >> 20 & f.mask
	f.bits[h>>6] |= 1 << (h & 63)
}

func (f *filter) may(hash uint64) bool {
	h := hash >> 20 & f.mask
	return f.bits[h>>6]>>(h&63)&1 != 0
}

// Deletes says which rows of a batch are deletes by their own columns, by the rule's marks. Nil: none.
func (r *Rule) Deletes(batch arrow.RecordBatch) ([]bool, error) {
	if err := r.layout.check(batch.Schema()); err != nil {
		return nil, err
	}
	return r.layout.deadRows(batch.Columns(), int(batch.NumRows())), nil
}

// Ordering gives the ordering value of one row, as a DELETE block for it stores it.
func (r *Rule) Ordering(batch arrow.RecordBatch, row int) Value {
	c := &chunk{l: r.layout, n: int(batch.NumRows()), ord: r.layout.ordColumns(batch.Columns())}
	s := side{c: c, row: row}
	return s.order()
}

// valueSize is the memory of one ordering value, in bytes.
const valueSize = 96

func arraySize(a arrow.Array) int64 {
	n := int64(0)
	for _, b := range a.Data().Buffers() {
		if b != nil {
			n += int64(b.Len())
		}
	}
	return n
}

// nullColumn is a column of nulls for rows without columns.
func nullColumn(mem memory.Allocator, dt arrow.DataType, n int) arrow.Array {
	return array.MakeArrayOfNull(mem, dt, n)
}
