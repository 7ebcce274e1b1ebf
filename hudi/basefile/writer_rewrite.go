package basefile

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/sluicelake/sluice/hudi/merge"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/storage"
)

// Change replaces or deletes rows of the old file in a [Rewrite].
type Change struct {
	// Rows are numbers of rows of the old file, from 0, ascending and each once, over all changes of a rewrite.
	Rows []int64
	// Batch holds one new row for each of Rows, meta columns included. Nil deletes them.
	Batch arrow.RecordBatch
}

// RewriteOptions of [Rewrite].
type RewriteOptions struct {
	WriterOptions
	// FileName becomes the _hoodie_file_name of every row. Empty leaves the column as it is, for tables without meta fields.
	FileName string
	// Scan says how old rows come to the new schema; of it Table, Names and SchemaOnRead are looked at.
	Scan ScanOptions
	// Meet decides what becomes of rows that a Change gives new ones for; see [merge.Rule.Meet]. Nil: the new ones take their places.
	Meet func(stored, changes arrow.RecordBatch, met []merge.Meeting) (outcome []int32, fresh arrow.RecordBatch, err error)
	// CopyBytes is the smallest row group that is copied as it lies; smaller ones are put together anew, so that many small
	// updates don't leave many small row groups. 0 is DefaultCopyBytes, negative copies none.
	CopyBytes int64
}

// DefaultCopyBytes is the smallest row group that is copied without decoding.
const DefaultCopyBytes = 1 << 20

// Rewrite makes the next base file of a file group, the copy-on-write update: the rows of old in their order, with those of
// changes replaced or left out, then the appended rows. Rows that are not touched keep all their columns but _hoodie_file_name.
//
// A row group without a touched row is not decoded when the old file stores its columns just as the new one would: the
// compressed column chunks are copied, and only that of _hoodie_file_name is written anew.
//
// The bloom filter and the key range are those of all keys of the new file. While every changed row keeps its key, they go on from
// those of the old file, where that has the same options; else they are made from the keys.
//
// Rewrite releases the batches that it receives. It holds one row group of the new file, compressed, and a few batches.
func Rewrite(ctx context.Context, old File, store storage.Store, name string, changes iter.Seq2[Change, error], appended iter.Seq2[arrow.RecordBatch, error],
	o RewriteOptions,
) (storage.Info, Summary, error) {
	w, err := Create(ctx, store, name, o.WriterOptions)
	if err != nil {
		return storage.Info{}, Summary{}, err
	}
	defer w.Abort()
	r := &rewriting{w: w, old: old, o: o, at: w.columns.schema.FieldIndices(schema.FileName)}
	if o.FileName != "" && len(r.at) != 1 {
		return storage.Info{}, Summary{}, w.wrap(fmt.Errorf("the schema lacks %s", schema.FileName))
	}
	if changes == nil {
		changes = func(func(Change, error) bool) {}
	}
	r.changes.pull, r.changes.stop = iter.Pull2(changes)
	defer r.changes.close()
	w.keys.inherit(old)
	if err := r.oldRows(ctx); err != nil {
		return storage.Info{}, Summary{}, w.wrap(err)
	}
	w.keys.inherited = false // appended keys are new
	if appended != nil {
		for batch, err := range appended {
			if err != nil {
				return storage.Info{}, Summary{}, err
			}
			if err := r.append(batch); err != nil {
				return storage.Info{}, Summary{}, err
			}
		}
	}
	return w.Close()
}

type rewriting struct {
	w       *Writer
	old     File
	o       RewriteOptions
	at      []int // of _hoodie_file_name
	changes changeCursor
	copier  *groupCopier // nil: no row group of the old file can be copied
}

func (r *rewriting) append(batch arrow.RecordBatch) error {
	defer batch.Release()
	if err := r.w.columns.check(batch.Schema()); err != nil {
		return r.w.fail(err)
	}
	named := r.named(batch)
	defer named.Release()
	return r.w.Write(named)
}

// named is the batch with the new file's name in every row.
func (r *rewriting) named(batch arrow.RecordBatch) arrow.RecordBatch {
	if r.o.FileName == "" {
		batch.Retain()
		return batch
	}
	return r.nameAt(batch, slices.Delete(batch.Schema().Fields(), r.at[0], r.at[0]+1), slices.Delete(slices.Clone(batch.Columns()), r.at[0], r.at[0]+1))
}

// withName is a batch that lacks the column of the file's name with that of the new file.
func (r *rewriting) withName(batch arrow.RecordBatch) arrow.RecordBatch {
	return r.nameAt(batch, batch.Schema().Fields(), slices.Clone(batch.Columns()))
}

func (r *rewriting) nameAt(batch arrow.RecordBatch, fields []arrow.Field, columns []arrow.Array) arrow.RecordBatch {
	name := Constant(r.w.options.Alloc, r.o.FileName, int(batch.NumRows()))
	defer name.Release()
	fields = slices.Insert(fields, r.at[0], arrow.Field{Name: schema.FileName, Type: name.DataType(), Nullable: true})
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), slices.Insert(columns, r.at[0], name), batch.NumRows())
}

// oldRows writes what remains of the old file.
func (r *rewriting) oldRows(ctx context.Context) error {
	limit := r.o.CopyBytes
	if limit == 0 {
		limit = DefaultCopyBytes
	}
	if limit > 0 {
		r.copier = newGroupCopier(r.w, r.old, r.o)
	}
	for g, group := range r.old.RowGroups() {
		next, ok, err := r.changes.peek()
		if err != nil {
			return err
		}
		untouched := !ok || next >= group.FirstRow+group.Rows
		if untouched && r.copier != nil && group.Bytes >= limit {
			err = r.copier.copy(ctx, g)
		} else {
			err = r.decode(ctx, g)
		}
		if err != nil {
			return err
		}
	}
	if next, ok, err := r.changes.peek(); err != nil || ok {
		return errors.Join(err, fmt.Errorf("a change of row %d, but the old file has %d rows", next, r.old.Rows()))
	}
	return nil
}

// decode writes one row group of the old file with its changes.
func (r *rewriting) decode(ctx context.Context, g int) error {
	o := ScanOptions{Columns: r.w.columns.schema, Table: r.o.Scan.Table, Names: r.o.Scan.Names, SchemaOnRead: r.o.Scan.SchemaOnRead, RowGroups: []int{g}, Alloc: r.w.options.Alloc}
	if r.o.FileName != "" { // not read, and put in as a constant
		fields := o.Columns.Fields()
		o.Columns = arrow.NewSchema(slices.Delete(fields, r.at[0], r.at[0]+1), nil)
	}
	for batch, err := range r.old.ScanRows(ctx, o) {
		if err != nil {
			return err
		}
		if r.o.FileName != "" {
			whole := r.withName(batch.RecordBatch)
			batch.Release()
			batch.RecordBatch = whole
		}
		if err := r.merge(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// touch is a row of a batch of the old file that a change names.
type touch struct {
	row       int64 // of the batch
	batch, at int   // the change's row: of one of the batches that are being put together; 0 is none, the row goes
	keep      bool
}

// merge writes one batch of the old file with its changes. Nothing is put together: the writer takes runs of rows.
func (r *rewriting) merge(ctx context.Context, batch Batch) error {
	batches := []arrow.RecordBatch{batch.RecordBatch}
	defer func() {
		for _, b := range batches {
			b.Release()
		}
	}()
	touched, err := r.touched(batch, &batches)
	if err != nil {
		return err
	}
	if r.o.Meet != nil {
		if err := r.meet(touched, &batches); err != nil {
			return err
		}
	}
	if r.w.keys.inherited && !r.keysStay(touched, batches) {
		if err := r.disinherit(ctx, batch.FirstRow); err != nil {
			return err
		}
	}
	var runs []rowRun
	at := int64(0)
	for _, t := range touched {
		if t.keep {
			continue
		}
		runs = appendRun(runs, rowRun{row: at, rows: t.row - at})
		if t.batch > 0 {
			runs = appendRun(runs, rowRun{batch: t.batch, row: int64(t.at), rows: 1})
		}
		at = t.row + 1
	}
	runs = appendRun(runs, rowRun{row: at, rows: batch.NumRows() - at})
	return r.w.writeRuns(rowSet{batches: batches, runs: runs})
}

// touched takes the changes of a batch's rows; their batches are appended to batches.
func (r *rewriting) touched(batch Batch, batches *[]arrow.RecordBatch) ([]touch, error) {
	var out []touch
	var taken arrow.RecordBatch
	for {
		row, ok, err := r.changes.peek()
		if err != nil {
			return nil, err
		}
		if !ok || row >= batch.FirstRow+batch.NumRows() {
			return out, nil
		}
		if row < batch.FirstRow {
			return nil, fmt.Errorf("the change of row %d comes after that of a later row", row)
		}
		t := touch{row: row - batch.FirstRow}
		if c := r.changes.now; c.Batch != nil {
			if taken != c.Batch {
				if err := r.w.columns.check(c.Batch.Schema()); err != nil {
					return nil, err
				}
				*batches = append(*batches, r.named(c.Batch))
				taken = c.Batch
			}
			t.batch, t.at = len(*batches)-1, r.changes.at
		}
		out = append(out, t)
		r.changes.advance()
	}
}

// meet lets the rows of changes meet the stored ones, batch of changes by batch of changes.
func (r *rewriting) meet(touched []touch, batches *[]arrow.RecordBatch) error {
	var met []merge.Meeting
	for from := 0; from < len(touched); {
		to := from
		met = met[:0]
		for ; to < len(touched) && touched[to].batch == touched[from].batch; to++ {
			met = append(met, merge.Meeting{Old: int32(touched[to].row), New: int32(touched[to].at)})
		}
		if touched[from].batch > 0 {
			outcome, fresh, err := r.o.Meet((*batches)[0], (*batches)[touched[from].batch], met)
			if err != nil {
				return err
			}
			if fresh != nil {
				*batches = append(*batches, r.named(fresh))
				fresh.Release()
			}
			for i, o := range outcome {
				t := &touched[from+i]
				switch {
				case o == merge.KeepOld:
					t.keep = true
				case o == merge.Remove:
					t.batch = 0
				case o >= 0:
					t.batch, t.at = len(*batches)-1, int(o)
				}
			}
		}
		from = to
	}
	return nil
}

// keysStay says whether every touched row has its old key still.
func (r *rewriting) keysStay(touched []touch, batches []arrow.RecordBatch) bool {
	old, ok := batches[0].Column(r.w.keys.column).(*array.String)
	for _, t := range touched {
		if t.keep {
			continue
		}
		if t.batch == 0 || !ok {
			return false
		}
		now, ok := batches[t.batch].Column(r.w.keys.column).(*array.String)
		if !ok || old.IsNull(int(t.row)) || now.IsNull(t.at) || old.Value(int(t.row)) != now.Value(t.at) {
			return false
		}
	}
	return true
}

// disinherit makes the filter from the keys after all: first those of the old rows before end, which were kept and written.
func (r *rewriting) disinherit(ctx context.Context, end int64) error {
	if err := r.w.keys.restart(); err != nil || end == 0 {
		return err
	}
	o := ScanOptions{Table: r.o.Scan.Table, Names: r.o.Scan.Names, SchemaOnRead: r.o.Scan.SchemaOnRead, Alloc: r.w.options.Alloc}
	return r.w.keys.addOld(ctx, r.old, o, 0, end)
}

// appendRun joins a run to the last one where it goes on.
func appendRun(runs []rowRun, r rowRun) []rowRun {
	if r.rows == 0 {
		return runs
	}
	if n := len(runs); n > 0 && runs[n-1].batch == r.batch && runs[n-1].row+runs[n-1].rows == r.row {
		runs[n-1].rows += r.rows
		return runs
	}
	return append(runs, r)
}

// changeCursor walks the changes row by row.
type changeCursor struct {
	pull func() (Change, error, bool)
	stop func()
	now  Change
	at   int // in now.Rows
	last int64
	any  bool
}

// peek gives the row of the next change.
func (c *changeCursor) peek() (row int64, ok bool, err error) {
	for c.at >= len(c.now.Rows) {
		c.release()
		next, err, ok := c.pull()
		if err != nil {
			return 0, false, err
		}
		if !ok {
			return math.MaxInt64, false, nil
		}
		if next.Batch != nil && next.Batch.NumRows() != int64(len(next.Rows)) {
			defer next.Batch.Release()
			return 0, false, fmt.Errorf("a change of %d rows with %d new ones", len(next.Rows), next.Batch.NumRows())
		}
		c.now, c.at = next, 0
	}
	row = c.now.Rows[c.at]
	if row < 0 || c.any && row <= c.last {
		return 0, false, fmt.Errorf("the change of row %d comes after that of row %d", row, c.last)
	}
	return row, true, nil
}

func (c *changeCursor) advance() {
	c.last, c.any = c.now.Rows[c.at], true
	c.at++
}

func (c *changeCursor) release() {
	if c.now.Batch != nil {
		c.now.Batch.Release()
	}
	c.now, c.at = Change{}, 0
}

func (c *changeCursor) close() {
	c.release()
	c.stop()
}
