package read

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/encode"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/logfile"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/hudi/timeline"
)

// ErrNoCDC says that a table does not record changes.
var ErrNoCDC = errors.New("change data capture is not enabled")

// ChangeSchema is what a change feed yields, whatever the table's logging mode: op is i, u or d; ts_ms the instant of the
// change; before and after the row as a JSON object of the table's columns, null where there is none.
var ChangeSchema = arrow.NewSchema([]arrow.Field{
	{Name: "op", Type: arrow.BinaryTypes.String},
	{Name: "ts_ms", Type: arrow.BinaryTypes.String},
	{Name: "before", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "after", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

// Feed is the changes of a range of instants, planned.
type Feed struct {
	src   *Source
	plan  *Plan // gives the columns of images
	steps []feedStep
	mode  string // hoodie.table.cdc.supplemental.logging.mode
}

// feedStep is one file group of one commit.
type feedStep struct {
	instant  timeline.Instant
	group    filegroup.Group
	cdc      []string // change files that the writer left; empty: the changes are found by comparing slices
	deletes  bool     // the commit removed rows of the group
	replaced bool     // the commit replaced the whole group
}

// ChangeFeed plans the changes of a range (begin exclusive, end inclusive, as Range has it) of a table that records them.
//
// Where a commit left change files they are read; images that they do not hold (modes OP_KEY_ONLY and DATA_BEFORE) come from
// the slices before and after the commit. Where it left none (merge-on-read logs, new file groups, replaced ones) the two
// slices are compared. Compaction and clustering change nothing.
func (s *Source) ChangeFeed(ctx context.Context, r Range) (*Feed, error) {
	if !s.Config.CDCEnabled {
		return nil, &rangeError{ErrNoCDC, s.Store.URL(), "read the changes with an incremental query, or set hoodie.table.cdc.enabled=true on the table: later commits are then recorded"}
	}
	r = r.normal()
	instants, err := s.instantsIn(ctx, r)
	if err != nil {
		return nil, err
	}
	f := &Feed{src: s, mode: s.Config.CDCMode, plan: &Plan{src: s, view: s.View}}
	f.plan.instant, _ = s.View.Latest()
	if err := f.plan.resolveSchema(ctx, f.plan.instant, false); err != nil {
		return nil, err
	}
	for _, in := range instants {
		if err := f.addCommit(ctx, in); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *Feed) addCommit(ctx context.Context, in timeline.Instant) error {
	meta, err := f.src.Commit(ctx, in)
	if err != nil {
		return err
	}
	switch meta.OperationType {
	case "CLUSTER", "COMPACT", "LOG_COMPACT", "INDEX", "ALTER_SCHEMA":
		return nil
	}
	if meta.Compacted {
		return nil
	}
	steps := map[filegroup.Group]*feedStep{}
	for partition, stats := range meta.PartitionToWriteStats {
		for _, st := range stats {
			g := filegroup.Group{Partition: partition, FileID: st.FileID}
			if steps[g] == nil {
				steps[g] = &feedStep{instant: in, group: g}
			}
			steps[g].deletes = steps[g].deletes || st.NumDeletes > 0
			for file := range st.CDCStats {
				steps[g].cdc = append(steps[g].cdc, file)
			}
		}
	}
	for partition, ids := range meta.PartitionToReplaceFileIDs {
		for _, id := range ids {
			g := filegroup.Group{Partition: partition, FileID: id}
			steps[g] = &feedStep{instant: in, group: g, replaced: true}
		}
	}
	sorted := make([]feedStep, 0, len(steps))
	for _, s := range steps {
		slices.Sort(s.cdc)
		sorted = append(sorted, *s)
	}
	slices.SortFunc(sorted, func(a, b feedStep) int {
		return cmp.Or(strings.Compare(a.group.Partition, b.group.Partition), strings.Compare(a.group.FileID, b.group.FileID))
	})
	f.steps = append(f.steps, sorted...)
	return nil
}

// All yields the changes, commit by commit in the order of the range. Whoever receives a batch releases it.
func (f *Feed) All(ctx context.Context, opts ScanOptions) iter.Seq2[arrow.RecordBatch, error] {
	if opts.Alloc == nil {
		opts.Alloc = memory.DefaultAllocator
	}
	return func(yield func(arrow.RecordBatch, error) bool) {
		out := &changes{b: array.NewRecordBuilder(opts.Alloc, ChangeSchema), yield: yield}
		defer out.b.Release()
		for _, st := range f.steps {
			w := &stepReader{f: f, step: st, opts: opts, out: out}
			if err := w.run(ctx); err != nil {
				if !out.stopped {
					yield(nil, fmt.Errorf("changes of instant %s, partition %q, file group %s: %w", st.instant.Time, st.group.Partition, st.group.FileID, err))
				}
				return
			}
			if out.stopped {
				return
			}
		}
		out.flush()
	}
}

// changes builds batches of changes.
type changes struct {
	b       *array.RecordBuilder
	n       int
	yield   func(arrow.RecordBatch, error) bool
	stopped bool
}

// changeRows bounds a batch: images are text, often of some hundred bytes.
const changeRows = 4096

func (c *changes) add(op, at string, before, after []byte) {
	if c.stopped {
		return
	}
	c.b.Field(0).(*array.StringBuilder).Append(op)
	c.b.Field(1).(*array.StringBuilder).Append(at)
	for i, image := range [][]byte{before, after} {
		b := c.b.Field(2 + i).(*array.StringBuilder)
		if image == nil {
			b.AppendNull()
		} else {
			b.BinaryBuilder.Append(image)
		}
	}
	if c.n++; c.n == changeRows {
		c.flush()
	}
}

func (c *changes) flush() {
	if c.n == 0 || c.stopped {
		return
	}
	c.n = 0
	c.stopped = !c.yield(c.b.NewRecordBatch(), nil)
}

// stepReader finds the changes of one file group in one commit.
type stepReader struct {
	f    *Feed
	step feedStep
	opts ScanOptions
	out  *changes
}

func (w *stepReader) run(ctx context.Context) error {
	switch {
	case w.step.replaced:
		return w.rows(ctx, w.before, func(_ string, _ string, image []byte) { w.out.add("d", w.step.instant.Time, image, nil) })
	case len(w.step.cdc) > 0:
		return w.recorded(ctx)
	}
	return w.compared(ctx)
}

// sliceAt gives the group's slice in a view, and whether there is one.
func (w *stepReader) sliceAt(ctx context.Context, view *filegroup.View) (*Plan, bool, error) {
	files, err := w.f.src.Files(ctx)
	if err != nil {
		return nil, false, err
	}
	all, err := view.Slices(ctx, w.step.group.Partition, files.In(w.step.group.Partition), "99999999999999999", filegroup.Snapshot)
	if err != nil {
		return nil, false, err
	}
	for _, sl := range all {
		if sl.FileID == w.step.group.FileID {
			p := *w.f.plan
			p.view, p.instant, p.slices = view, "99999999999999999", []filegroup.Slice{sl}
			return &p, true, nil
		}
	}
	return nil, false, nil
}

// earlier reports whether an instant was done before the step's.
func (w *stepReader) earlier(instant string) bool {
	if !w.f.src.View.Committed(instant, "99999999999999999") {
		return false
	}
	if w.f.src.Config.Layout == 1 {
		return instant < w.step.instant.Time
	}
	done, ok := w.f.src.View.CompletedAt(instant)
	if !ok { // archived: before everything that the active timeline has
		return instant < w.step.instant.Time
	}
	return done < w.step.instant.Completion
}

func (w *stepReader) before(ctx context.Context) (*Plan, bool, error) {
	return w.sliceAt(ctx, w.f.src.View.Only(w.earlier))
}

func (w *stepReader) after(ctx context.Context) (*Plan, bool, error) {
	at := w.step.instant.Time
	return w.sliceAt(ctx, w.f.src.View.Only(func(instant string) bool { return instant == at || w.earlier(instant) }))
}

// rows calls each with record key, commit time and image of every row of a slice.
func (w *stepReader) rows(ctx context.Context, slice func(context.Context) (*Plan, bool, error), each func(key, commit string, image []byte)) error {
	p, ok, err := slice(ctx)
	if err != nil || !ok {
		return err
	}
	r, err := p.Reader(w.opts)
	if err != nil {
		return err
	}
	user := p.UserColumns()
	images, err := encode.NewJSON(imageSchema(p.columns, user), encode.Options{})
	if err != nil {
		return err
	}
	keyAt, timeAt := p.columns.FieldIndices(schema.RecordKey)[0], p.columns.FieldIndices(schema.CommitTime)[0]
	for batch, err := range r.All(ctx) {
		if err != nil {
			return err
		}
		keys, times := batch.Column(keyAt).(*array.String), batch.Column(timeAt).(*array.String)
		rows := imageBatch(batch, user)
		for i := range int(batch.NumRows()) {
			one := rows.NewSlice(int64(i), int64(i)+1)
			image := images.Append(nil, one)
			one.Release()
			each(keys.Value(i), times.Value(i), image[:len(image)-1]) // without the line's end
		}
		rows.Release()
		batch.Release()
	}
	return nil
}

func imageSchema(all *arrow.Schema, user []string) *arrow.Schema {
	fields := make([]arrow.Field, len(user))
	for i, name := range user {
		fields[i] = all.Field(all.FieldIndices(name)[0])
	}
	return arrow.NewSchema(fields, nil)
}

func imageBatch(batch arrow.RecordBatch, user []string) arrow.RecordBatch {
	s := imageSchema(batch.Schema(), user)
	columns := make([]arrow.Array, len(user))
	for i, name := range user {
		columns[i] = batch.Column(batch.Schema().FieldIndices(name)[0])
	}
	return array.NewRecordBatch(s, columns, batch.NumRows())
}

// compared finds changes by the slices before and after: rows whose commit time is the instant's were inserted or updated,
// keys that are gone were deleted.
func (w *stepReader) compared(ctx context.Context) error {
	at := w.step.instant.Time
	changed, kept := map[string][]byte{}, map[string]bool{}
	err := w.rows(ctx, w.after, func(key, commit string, image []byte) {
		if commit == at {
			changed[key] = image
		}
		if w.step.deletes {
			kept[key] = true
		}
	})
	if err != nil {
		return err
	}
	updated := map[string]bool{}
	err = w.rows(ctx, w.before, func(key, _ string, image []byte) {
		after, ok := changed[key]
		switch {
		case ok:
			updated[key] = true
			w.out.add("u", at, image, after)
		case w.step.deletes && !kept[key]:
			w.out.add("d", at, image, nil)
		}
	})
	if err != nil {
		return err
	}
	for _, key := range sortedKeys(changed) {
		if !updated[key] {
			w.out.add("i", at, nil, changed[key])
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// change is one record of a change file.
type change struct {
	op, key       string
	before, after []byte
}

// recorded reads the change files of the group.
func (w *stepReader) recorded(ctx context.Context) error {
	var all []change
	for _, file := range w.step.cdc {
		in, err := w.changeFile(ctx, file)
		if err != nil {
			return err
		}
		all = append(all, in...)
	}
	if err := w.lookUp(ctx, all); err != nil {
		return err
	}
	for _, c := range all {
		w.out.add(c.op, w.step.instant.Time, c.before, c.after)
	}
	return nil
}

// lookUp fills the images that the table's logging mode leaves out.
func (w *stepReader) lookUp(ctx context.Context, all []change) error {
	if w.f.mode == "DATA_BEFORE_AFTER" {
		return nil
	}
	byKey := make(map[string]*change, len(all))
	for i := range all {
		byKey[all[i].key] = &all[i]
	}
	err := w.rows(ctx, w.after, func(key, _ string, image []byte) {
		if c := byKey[key]; c != nil && c.op != "d" {
			c.after = image
		}
	})
	if err != nil || w.f.mode == "DATA_BEFORE" {
		return err
	}
	return w.rows(ctx, w.before, func(key, _ string, image []byte) {
		if c := byKey[key]; c != nil && c.op != "i" {
			c.before = image
		}
	})
}

func (w *stepReader) changeFile(ctx context.Context, file string) ([]change, error) {
	if dir := path.Dir(file); dir != w.step.group.Partition && !(dir == "." && w.step.group.Partition == "") {
		return nil, fmt.Errorf("change file %s is listed under another partition", file)
	}
	refs, _, err := logfile.Scan(ctx, w.f.src.Store, []string{file}, logfile.ScanOptions{CDC: true})
	if err != nil {
		return nil, err
	}
	var out []change
	for _, ref := range refs {
		for batch, err := range ref.Records(ctx, logfile.RecordOptions{Alloc: w.opts.Alloc}) {
			if err != nil {
				return nil, err
			}
			in, err := changeRowsOf(batch)
			batch.Release()
			if err != nil {
				return nil, fmt.Errorf("change file %s: %w", file, err)
			}
			out = append(out, in...)
		}
	}
	return out, nil
}

// changeRowsOf reads the records of a change block: op, record_key, before and after, as far as the logging mode has them.
func changeRowsOf(batch arrow.RecordBatch) ([]change, error) {
	out := make([]change, batch.NumRows())
	for i, f := range batch.Schema().Fields() {
		switch col := batch.Column(i).(type) {
		case *array.String:
			for row := range out {
				if col.IsNull(row) {
					continue
				}
				switch f.Name {
				case "op":
					out[row].op = col.Value(row)
				case "record_key":
					out[row].key = col.Value(row)
				}
			}
		case *array.Struct:
			images, err := structImages(col)
			if err != nil {
				return nil, err
			}
			for row := range out {
				switch f.Name {
				case "before":
					out[row].before = images[row]
				case "after":
					out[row].after = images[row]
				}
			}
		}
	}
	return out, nil
}

// structImages is the JSON of each record of a struct column, nil for null.
func structImages(col *array.Struct) ([][]byte, error) {
	dt := col.DataType().(*arrow.StructType)
	s := arrow.NewSchema(dt.Fields(), nil)
	w, err := encode.NewJSON(s, encode.Options{})
	if err != nil {
		return nil, err
	}
	fields := make([]arrow.Array, col.NumField())
	for i := range fields {
		fields[i] = col.Field(i)
	}
	batch := array.NewRecordBatch(s, fields, int64(col.Len()))
	defer batch.Release()
	out := make([][]byte, col.Len())
	for i := range out {
		if col.IsNull(i) {
			continue
		}
		one := batch.NewSlice(int64(i), int64(i)+1)
		image := w.Append(nil, one)
		one.Release()
		out[i] = image[:len(image)-1]
	}
	return out, nil
}
