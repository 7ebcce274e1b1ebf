package operation

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"golang.org/x/sync/errgroup"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/merge"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/hudi/write"
	"github.com/sluicelake/sluice/hudi/write/marker"
	"github.com/sluicelake/sluice/internal/shuffle"
	"github.com/sluicelake/sluice/storage"
)

const extension = ".parquet"

// collector gathers the stats of the files of one write.
type collector struct {
	mu    sync.Mutex
	stats []timeline.WriteStat
	tasks int64
}

// task numbers files, for sequence numbers that are unique in the write.
func (c *collector) task() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tasks++
	return c.tasks - 1
}

func (c *collector) add(s timeline.WriteStat) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats = append(c.stats, s)
}

func (c *collector) list() []timeline.WriteStat {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortFunc(c.stats, func(a, b timeline.WriteStat) int { return strings.Compare(a.Path, b.Path) })
	return c.stats
}

// done notes a file that was written.
func (j *job) done(f write.DataFile, info storage.Info, s timeline.WriteStat) {
	s.FileID, s.Path, s.PartitionPath = f.FileID, f.Path, f.Partition
	s.TotalWriteBytes, s.FileSizeInBytes = info.Size, info.Size
	j.stats.add(s)
	j.tell(Progress{Written: s.NumWrites, Files: 1, Bytes: info.Size})
}

// writerOptions bounds what files being written hold: a row group each, compressed, and as much again beside it.
func (j *job) writerOptions(open int) basefile.WriterOptions {
	o := j.writer
	o.RowGroupBytes = max(min(o.RowGroupBytes, j.Memory/4/int64(max(open, 1))), 1<<20)
	return o
}

// execute writes all file groups, several at once.
func (r *routed) execute(ctx context.Context, tasks []task) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(r.j.Parallel)
	spare := max(r.j.Parallel/max(len(tasks), 1), 1)
	for _, t := range tasks {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error {
			if t.slot < 0 {
				h := r.homes[t.home]
				rows := r.inserts.Parts(gctx, t.home, t.from, t.n)
				return r.j.create(gctx, r.j.paths.names[h.partition], t.fileID, h.bucket == "", spare, rows)
			}
			return r.rewrite(gctx, t, spare)
		})
	}
	return errors.Join(g.Wait(), ctx.Err())
}

// create writes new file groups with rows of one partition: the first under the id, the next ones under its next numbers, each as
// large as files may be.
func (j *job) create(ctx context.Context, partition, fileID string, roll bool, parallel int, rows iter.Seq2[[]shuffle.Part, error]) error {
	var f *newFile
	defer func() { f.abort() }()
	number := 0
	for parts, err := range rows {
		if err == nil && f == nil {
			o := j.writerOptions(j.Parallel)
			o.Parallel = parallel
			f, err = j.newFile(ctx, partition, numbered(fileID, number), o)
			number++
		}
		if err != nil {
			return err
		}
		if err := f.write(parts); err != nil {
			return err
		}
		if roll && f.out.Size() >= j.sizes.max {
			if err := f.close(); err != nil {
				return err
			}
			f = nil
		}
	}
	return f.close()
}

// numbered is the id of a further file of the same task: the text before the last dash stays.
func numbered(id string, n int) string {
	if n == 0 {
		return id
	}
	return fmt.Sprintf("%s-%d", id[:strings.LastIndexByte(id, '-')], n)
}

// newFile is a file of a new file group while it is written.
type newFile struct {
	j     *job
	at    write.DataFile
	out   *basefile.Writer
	begun time.Time
}

func (j *job) newFile(ctx context.Context, partition, fileID string, o basefile.WriterOptions) (*newFile, error) {
	at, err := j.txn.New(ctx, partition, fileID, extension, marker.Create)
	if err != nil {
		return nil, err
	}
	o.Stamp = j.newStamp(partition, at.BaseName.String())
	out, err := basefile.Create(ctx, j.store, at.Path, o)
	if err != nil {
		return nil, err
	}
	return &newFile{j: j, at: at, out: out, begun: time.Now()}, nil
}

// write takes slim rows.
func (f *newFile) write(slim []shuffle.Part) error {
	rows := make([]basefile.Picked, len(slim))
	for i, p := range slim {
		rows[i] = basefile.Picked(p)
	}
	return f.out.WritePicked(rows)
}

// close may be called on nil.
func (f *newFile) close() error {
	if f == nil {
		return nil
	}
	info, sum, err := f.out.Close()
	if err != nil {
		return err
	}
	f.j.done(f.at, info, timeline.WriteStat{
		PrevCommit: "null", NumWrites: sum.Rows, NumInserts: sum.Rows,
		RuntimeStats: &timeline.RuntimeStats{TotalCreateTime: time.Since(f.begun).Milliseconds()},
	})
	return nil
}

func (f *newFile) abort() {
	if f != nil {
		f.out.Abort()
	}
}

// rewrite makes the next base file of a file group.
func (r *routed) rewrite(ctx context.Context, t task, parallel int) error {
	j := r.j
	s := &j.slots[t.slot]
	begun := time.Now()
	old, err := basefile.Open(ctx, j.store, s.Base.Name, basefile.Options{Alloc: j.Alloc})
	if err != nil {
		return err
	}
	defer func() { _ = old.Close() }() // it was only read
	at, err := j.txn.New(ctx, s.Partition, s.FileID, extension, marker.Merge)
	if err != nil {
		return err
	}
	w := &rewriting{r: r, slot: t.slot, last: -1, wide: j.newWidener(s.Partition, at.BaseName.String())}
	if err := w.prepare(ctx, t); err != nil {
		return err
	}
	defer w.close()
	o := basefile.RewriteOptions{WriterOptions: j.writerOptions(j.Parallel), Scan: basefile.ScanOptions{Table: j.stored, SchemaOnRead: true}, Meet: w.meet}
	o.Parallel = parallel
	if j.cfg.PopulateMetaFields {
		o.FileName = at.BaseName.String()
	}
	info, sum, err := basefile.Rewrite(ctx, old, j.store, at.Path, w.changes(ctx), w.appended(ctx, t), o)
	if err != nil {
		return err
	}
	j.done(at, info, timeline.WriteStat{
		PrevCommit: s.Base.Instant, NumWrites: sum.Rows, NumDeletes: w.deleted, NumUpdateWrites: w.updated, NumInserts: w.inserted,
		RuntimeStats: &timeline.RuntimeStats{TotalUpsertTime: time.Since(begun).Milliseconds()},
	})
	return nil
}

// rewriting is what happens to one file group.
type rewriting struct {
	r    *routed
	slot int32
	wide *widener
	gone []int64 // rows to delete, ascending
	last int64   // row of the last update; -1 before the first
	own  *meeters

	updated, deleted, inserted int64
}

func (w *rewriting) prepare(ctx context.Context, t task) error {
	w.gone = w.r.gone[w.slot]
	slices.Sort(w.gone)
	w.gone = slices.Compact(w.gone)
	if t.home < 0 || !w.r.meetsInserts() {
		return nil
	}
	var err error
	w.own, err = w.r.meeters(ctx, t)
	return err
}

func (w *rewriting) close() {
	if w.own != nil {
		w.own.close()
	}
}

// changes yields the rows to replace and to delete, in their order.
func (w *rewriting) changes(ctx context.Context) iter.Seq2[basefile.Change, error] {
	return func(yield func(basefile.Change, error) bool) {
		gone := w.gone
		before := func(row int64) []int64 {
			for len(gone) > 0 && gone[0] <= w.last { // an update of the row counts
				gone = gone[1:]
			}
			n, _ := slices.BinarySearch(gone, row)
			out := gone[:n]
			gone = gone[n:]
			return out
		}
		drop := func(rows []int64) bool {
			w.deleted += int64(len(rows))
			return len(rows) == 0 || yield(basefile.Change{Rows: rows}, nil)
		}
		for batch, err := range w.updates(ctx) {
			if err != nil {
				yield(basefile.Change{}, err)
				return
			}
			ok := w.cut(batch, before, drop, yield)
			batch.Release()
			if !ok {
				return
			}
		}
		drop(before(math.MaxInt64))
	}
}

// updates yields the updates with their rows in the last column, ascending.
func (w *rewriting) updates(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
	if w.own != nil {
		return w.own.updates(ctx)
	}
	return w.r.updates.Read(ctx, w.slot, 0, -1)
}

// cut yields the rows of a batch of updates, and those to delete in between. Of several for one row, which were not combined, the
// last one counts.
func (w *rewriting) cut(batch arrow.RecordBatch, before func(int64) []int64, drop func([]int64) bool, yield func(basefile.Change, error) bool) bool {
	rows := batch.Column(int(batch.NumCols()) - 1).(*array.Int64).Int64Values()
	for from := 0; from < len(rows); {
		if from+1 < len(rows) && rows[from+1] == rows[from] {
			from++
			continue
		}
		if !drop(before(rows[from])) {
			return false
		}
		next := int64(math.MaxInt64)
		if len(w.gone) > 0 {
			if n, _ := slices.BinarySearch(w.gone, rows[from]); n < len(w.gone) {
				next = w.gone[n]
			}
		}
		to := from + 1
		for to < len(rows) && rows[to] < next && (to+1 == len(rows) || rows[to+1] != rows[to]) {
			to++
		}
		part := batch.NewSlice(int64(from), int64(to))
		wide, err := w.wide.rows(part)
		part.Release()
		if err != nil {
			yield(basefile.Change{}, err)
			return false
		}
		if !yield(basefile.Change{Rows: rows[from:to:to], Batch: wide}, nil) {
			return false
		}
		w.last = rows[to-1]
		from = to
	}
	return true
}

// meet decides what becomes of the stored rows.
func (w *rewriting) meet(stored, changes arrow.RecordBatch, met []merge.Meeting) (outcome []int32, made arrow.RecordBatch, err error) {
	rule := w.r.j.base
	if rule.Blind() {
		dead, err := rule.Deletes(changes)
		if err != nil {
			return nil, nil, err
		}
		outcome = make([]int32, len(met))
		for i, m := range met {
			outcome[i] = merge.TakeNew
			if dead != nil && dead[m.New] {
				outcome[i] = merge.Remove
			}
		}
	} else if outcome, made, err = rule.Meet(w.r.j.Alloc, stored, changes, met); err != nil {
		return nil, nil, err
	}
	for _, o := range outcome {
		switch o {
		case merge.KeepOld:
		case merge.Remove:
			w.deleted++
		default:
			w.updated++
		}
	}
	return outcome, made, nil
}

// appended yields the rows that are added to the file.
func (w *rewriting) appended(ctx context.Context, t task) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		if t.home < 0 {
			return
		}
		rows := w.r.inserts.Read(ctx, t.home, t.from, t.n)
		if w.own != nil {
			rows = w.own.strangers(ctx)
		}
		for batch, err := range rows {
			if err != nil {
				yield(nil, err)
				return
			}
			wide, err := w.wide.rows(batch)
			w.inserted += batch.NumRows()
			batch.Release()
			if !yield(wide, err) || err != nil {
				return
			}
		}
	}
}
