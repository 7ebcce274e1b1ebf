package index

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/bloom"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/predicate"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/storage"
	"golang.org/x/sync/errgroup"
)

const (
	defaultParallel = 4
	defaultMemory   = 256 << 20
	// What looking into one file takes: a footer with its filter, a batch of keys, read buffers; from a remote store the
	// compressed key column of a row group is fetched ahead.
	localFileBytes  = 8 << 20
	remoteFileBytes = 48 << 20
	// batchRows keys are read at once.
	batchRows = 16 << 10
	// fewKeys are given one by one to the filter that skips row groups and pages; more as a range.
	fewKeys = 32
)

type lookup struct {
	store  storage.Store
	slices []filegroup.Slice
	o      Options
	set    *keySet

	mu    sync.Mutex
	found [][]match // for each slice
	stats Stats
}

// match is a stored row with an asked key: the first row of the batch that has it.
type match struct {
	head int32
	row  int64
}

// files looks into the base files of all slices whose partition is asked about.
func (l *lookup) files(ctx context.Context) (*Tags, error) {
	if l.set.keys.Len() == 0 {
		return &Tags{}, nil
	}
	bloomed := l.o.Kind == Bloom || l.o.Kind == GlobalBloom
	l.set.sortHeads()
	var asked []task
	for i := range l.slices {
		if home, ok := l.set.homeOf(l.slices[i].Partition); ok && l.slices[i].Base != nil {
			asked = append(asked, task{slice: i, home: home, rows: l.set.heads[home], bloom: bloomed})
		}
	}
	if err := l.run(ctx, asked); err != nil {
		return nil, err
	}
	if l.o.Logged != nil {
		for i := range l.slices {
			if home, ok := l.set.homeOf(l.slices[i].Partition); ok && len(l.slices[i].Logs) > 0 {
				if err := l.logged(ctx, i, home); err != nil {
					return nil, err
				}
			}
		}
	}
	return l.tags(), nil
}

// logged adds the keys that log files have brought into a file group.
func (l *lookup) logged(ctx context.Context, slice int, home int32) (err error) {
	columns := keyColumn()
	if l.o.Virtual != nil {
		if columns, err = l.virtualColumns(); err != nil {
			return err
		}
	}
	known := newRowSet(l.set.keys.Len(), nil)
	for _, m := range l.found[slice] {
		known.add(m.head)
	}
	for batch, err := range l.o.Logged(ctx, l.slices[slice], columns) {
		if err != nil {
			return err
		}
		keys, release, err := l.keysOf(batch)
		if err != nil {
			batch.Release()
			return err
		}
		for i := range keys.Len() {
			if head := l.set.find(keys.Value(i), home); head >= 0 && !known.has(head) {
				known.add(head)
				l.found[slice] = append(l.found[slice], match{head: head, row: InLog})
			}
		}
		release()
		batch.Release()
	}
	return nil
}

// task is one base file to look into for the keys in rows (first rows of their keys, sorted by key).
type task struct {
	slice int
	home  int32
	rows  []int32
	bloom bool
}

func (l *lookup) run(ctx context.Context, tasks []task) error {
	l.found = make([][]match, len(l.slices))
	l.stats.Files = len(tasks)
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(l.parallel())
	for _, t := range tasks {
		g.Go(func() error {
			if err := inner.Err(); err != nil {
				return err
			}
			return l.file(inner, t)
		})
	}
	return g.Wait()
}

func (l *lookup) parallel() int {
	n, budget, each := l.o.Parallel, l.o.Memory, int64(localFileBytes)
	if n <= 0 {
		n = defaultParallel
	}
	if budget <= 0 {
		budget = defaultMemory
	}
	if !l.store.Traits().Dirs {
		each = remoteFileBytes
	}
	return max(min(n, int(budget/each)), 1)
}

func (l *lookup) file(ctx context.Context, t task) (err error) {
	f, err := basefile.Open(ctx, l.store, l.slices[t.slice].Base.Name, l.o.Base)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if t.bloom {
		if t.rows, err = l.candidates(f, t); err != nil || len(t.rows) == 0 {
			return err
		}
	}
	matches, rows, err := l.read(ctx, f, t)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found[t.slice] = matches
	l.stats.Read++
	l.stats.Rows += rows
	return nil
}

// candidates are the keys that the footer does not exclude.
func (l *lookup) candidates(f basefile.File, t task) ([]int32, error) {
	footer, rows := f.KeyValue(), t.rows
	low, has := footer[basefile.FooterMinKey]
	high, too := footer[basefile.FooterMaxKey]
	if has && too && !l.o.NoRanges && !l.set.high && !hasHigh(low) && !hasHigh(high) {
		rows = l.set.within(rows, low, high)
	}
	if len(rows) == 0 {
		l.count(&l.stats.ByRange)
		return nil, nil
	}
	filter, ok, err := bloom.FromFooter(footer)
	if err != nil {
		return nil, fmt.Errorf("base file %s: %w", l.slices[t.slice].Base.Name, err)
	}
	if !ok {
		return rows, nil
	}
	if rows = filter.TestRows(l.set.keys, rows, nil); len(rows) == 0 {
		l.count(&l.stats.ByFilter)
	}
	return rows, nil
}

func (l *lookup) count(n *int) {
	l.mu.Lock()
	*n++
	l.mu.Unlock()
}

// read finds the rows of a file that have one of the keys asked for.
func (l *lookup) read(ctx context.Context, f basefile.File, t task) (out []match, rows int64, err error) {
	wanted := newRowSet(l.set.keys.Len(), t.rows)
	o := basefile.ScanOptions{BatchRows: batchRows, Columns: keyColumn()}
	if l.o.Virtual != nil {
		if o.Columns, err = l.virtualColumns(); err != nil {
			return nil, 0, err
		}
	} else {
		o.Filter = l.filter(t.rows)
	}
	for batch, err := range f.ScanRows(ctx, o) {
		if err != nil {
			return nil, 0, err
		}
		keys, release, err := l.keysOf(batch.RecordBatch)
		if err != nil {
			batch.Release()
			return nil, 0, fmt.Errorf("base file %s: %w", l.slices[t.slice].Base.Name, err)
		}
		for i := range keys.Len() {
			if keys.IsNull(i) {
				continue
			}
			if head := l.set.find(keys.Value(i), t.home); head >= 0 && wanted.has(head) {
				out = append(out, match{head: head, row: batch.FirstRow + int64(i)})
			}
		}
		rows += batch.NumRows()
		release()
		batch.Release()
	}
	return out, rows, nil
}

func keyColumn() *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{{Name: schema.RecordKey, Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
}

func (l *lookup) virtualColumns() (*arrow.Schema, error) {
	record, partition := l.o.Virtual.Fields()
	var fields []arrow.Field
	seen := map[string]bool{}
	for _, path := range append(append([]string(nil), record...), partition...) {
		i := rootOf(l.o.Table, path)
		if i < 0 {
			return nil, fmt.Errorf("index: the key field %s is no column of the table", path)
		}
		if f := l.o.Table.Field(i); !seen[f.Name] {
			seen[f.Name] = true
			fields = append(fields, f)
		}
	}
	return arrow.NewSchema(fields, nil), nil
}

// rootOf finds the column of a path with dots.
func rootOf(s *arrow.Schema, path string) int {
	for end := len(path); end > 0; {
		if at := s.FieldIndices(path[:end]); len(at) == 1 {
			return at[0]
		}
		for end--; end > 0 && path[end] != '.'; end-- { //nolint:revive // walks back to a dot
		}
	}
	return -1
}

func (l *lookup) keysOf(batch arrow.RecordBatch) (keys *array.String, release func(), err error) {
	if l.o.Virtual == nil {
		return batch.Column(0).(*array.String), func() {}, nil
	}
	made, partitions, err := l.o.Virtual.Keys(batch)
	if err != nil {
		return nil, nil, err
	}
	release = func() {
		made.Release()
		partitions.Release()
	}
	keys, ok := made.(*array.String)
	if !ok {
		release()
		return nil, nil, fmt.Errorf("keys of type %s", made.DataType())
	}
	return keys, release, nil
}

// filter lets a scan skip row groups and pages: rows are sorted by key.
func (l *lookup) filter(rows []int32) predicate.Expr {
	key := func(i int) string { return l.set.keys.Value(int(rows[i])) }
	if len(rows) > fewKeys {
		return predicate.And(predicate.Ge(schema.RecordKey, key(0)), predicate.Le(schema.RecordKey, key(len(rows)-1)))
	}
	values := make([]any, len(rows))
	for i := range rows {
		values[i] = key(i)
	}
	return predicate.In(schema.RecordKey, values...)
}

// rowSet is a set of rows of the batch.
type rowSet []uint64

func newRowSet(n int, rows []int32) rowSet {
	s := make(rowSet, (n+63)/64)
	for _, r := range rows {
		s.add(r)
	}
	return s
}

func (s rowSet) add(r int32) { s[r/64] |= 1 << (r % 64) }

func (s rowSet) has(r int32) bool { return s[r/64]&(1<<(r%64)) != 0 }

// tags puts the matches in order: by key, slice and row. Matches of a slice are in the order of its rows, so counting is sorting.
func (l *lookup) tags() *Tags {
	starts := make([]int, l.set.keys.Len()+1)
	l.each(func(key int32, _ int, _ int64) { starts[key+1]++ })
	for i := 1; i < len(starts); i++ {
		starts[i] += starts[i-1]
	}
	n := starts[len(starts)-1]
	t := &Tags{Key: make([]int32, n), Slice: make([]int32, n), Row: make([]int64, n), Stats: l.stats}
	l.each(func(key int32, slice int, row int64) {
		at := starts[key]
		starts[key]++
		t.Key[at], t.Slice[at], t.Row[at] = key, int32(slice), row
	})
	return t
}

// each gives every match of every row of the batch.
func (l *lookup) each(f func(key int32, slice int, row int64)) {
	for slice, matches := range l.found {
		for _, m := range matches {
			for key := m.head; key >= 0; key = l.set.next[key] {
				f(key, slice, m.row)
			}
		}
	}
}
