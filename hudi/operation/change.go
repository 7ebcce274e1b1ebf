package operation

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/util"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/index"
	"github.com/sluicelake/sluice/hudi/keygen"
	"github.com/sluicelake/sluice/hudi/read"
	"github.com/sluicelake/sluice/internal/gather"
	"github.com/sluicelake/sluice/internal/shuffle"
)

// home is where a row that is added belongs: a partition, one bucket of it that has no file group yet, or a file group.
type home struct {
	partition int32
	bucket    string
	slot      int32 // -1: none
}

// routed are the rows of an upsert, insert or delete, on their way to file groups.
type routed struct {
	j       *job
	bucket  keygen.BucketRule
	updates *shuffle.Store // by slot; the last column is the row in the base file
	gone    map[int32][]int64
	inserts *shuffle.Store // by home
	homes   []home
	homeOf  map[home]int32

	take func(arrow.RecordBatch) error // where set: rows whose key is not stored go there, and nothing else happens

	window      []arrow.RecordBatch
	windowRows  int64
	windowBytes int64
}

// rowColumn follows the slim columns in updates: the number of the row in the base file.
const rowColumn = "#row"

// windowMost is how many rows are looked up at once.
const windowMost = 8 << 20

// change is upsert, insert and delete.
func (j *job) change(ctx context.Context) error {
	r, err := j.newRouted()
	if err != nil {
		return err
	}
	defer r.close()
	if err := j.combined(ctx, func(batch arrow.RecordBatch) error { return r.add(ctx, batch) }); err != nil {
		return err
	}
	if err := r.lookup(ctx); err != nil {
		return err
	}
	tasks, err := r.pack(ctx)
	if err != nil {
		return err
	}
	if j.SkipEmpty && len(tasks) == 0 {
		return nil
	}
	if err := j.txn.Inflight(ctx, r.profile(tasks)); err != nil {
		return err
	}
	return r.execute(ctx, tasks)
}

func (j *job) newRouted() (*routed, error) {
	r := &routed{j: j, gone: map[int32][]int64{}, homeOf: map[home]int32{}}
	if j.index.Kind == index.Bucket {
		rule, ok, err := keygen.NewBucketRule(keygen.Options{Properties: j.Conf, Table: keygen.PropertiesOf(j.cfg)})
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("hoodie.index.type=BUCKET needs hoodie.bucket.index.num.buckets")
		}
		r.bucket, j.index.Bucket = rule, rule
	}
	if !j.cfg.PopulateMetaFields {
		if gen, ok := j.keys.gen.(*keygen.Keygen); ok {
			j.index.Virtual, j.index.Table = gen, j.full
		}
	}
	j.index.Base.Alloc = j.Alloc
	if j.cfg.Type == config.MergeOnRead {
		j.index.Logged = j.logged
	}
	fields := append(slices.Clone(j.slim.Fields()), arrow.Field{Name: rowColumn, Type: arrow.PrimitiveTypes.Int64})
	r.inserts = shuffle.New(j.slim, r.options(false))
	r.updates = shuffle.New(arrow.NewSchema(fields, nil), r.options(true))
	return r, nil
}

// logged reads the rows of a slice with log files. Apache Hudi's indexes of base files do not see keys that are in log files alone: a
// row of such a key would get a second identity.
func (j *job) logged(ctx context.Context, s filegroup.Slice, columns *arrow.Schema) iter.Seq2[arrow.RecordBatch, error] {
	failed := func(err error) iter.Seq2[arrow.RecordBatch, error] {
		return func(yield func(arrow.RecordBatch, error) bool) { yield(nil, err) }
	}
	if j.merged == nil {
		src, err := read.Load(ctx, j.store, read.Options{Zone: j.Zone})
		if err != nil {
			return failed(err)
		}
		if j.merged, err = src.Plan(ctx, read.Query{Mode: filegroup.Snapshot}); err != nil {
			return failed(err)
		}
	}
	o := read.ScanOptions{Alloc: j.Alloc, Memory: j.Memory / 6, TempDir: j.TempDir}
	for _, f := range columns.Fields() {
		o.Columns = append(o.Columns, f.Name)
	}
	r, err := j.merged.Reader(o)
	if err != nil {
		return failed(err)
	}
	return r.Scan(ctx, s)
}

// options of the two stores: updates are sorted by the row that they are for.
func (r *routed) options(updates bool) shuffle.Options {
	return shuffle.Options{Alloc: r.j.Alloc, Memory: r.j.Memory / 6, Dir: r.j.TempDir, Sorted: updates, Column: r.j.slim.NumFields()}
}

func (r *routed) close() {
	r.updates.Close()
	r.inserts.Close()
	r.drop()
}

func (r *routed) drop() {
	for _, b := range r.window {
		b.Release()
	}
	r.window, r.windowRows, r.windowBytes = nil, 0, 0
}

// tags reports whether rows are looked up: an insert takes them as they come, unless something hangs on where they belong.
func (r *routed) tags() bool {
	return r.j.kind == Upsert || r.j.kind == Delete || r.j.duplicates != dupNone || r.j.index.Kind == index.Bucket
}

func (r *routed) add(ctx context.Context, batch arrow.RecordBatch) error {
	if !r.tags() {
		return r.insertAll(batch)
	}
	batch.Retain()
	r.window = append(r.window, batch)
	r.windowRows += batch.NumRows()
	r.windowBytes += util.TotalRecordSize(batch)
	if r.windowRows >= windowMost || r.windowBytes >= r.j.Memory/4 {
		return r.lookup(ctx)
	}
	return nil
}

func (r *routed) home(h home) int32 {
	if id, ok := r.homeOf[h]; ok {
		return id
	}
	id := int32(len(r.homes))
	r.homes = append(r.homes, h)
	r.homeOf[h] = id
	return id
}

func partitionsOf(batch arrow.RecordBatch) []int32 {
	return batch.Column(slimPartition).(*array.Int32).Int32Values()
}

// insertAll takes the rows for new ones.
func (r *routed) insertAll(batch arrow.RecordBatch) error {
	targets := make([]int32, batch.NumRows())
	last, at := int32(-1), int32(-1)
	for i, p := range partitionsOf(batch) {
		if p != last {
			last, at = p, r.home(home{partition: p, slot: -1})
		}
		targets[i] = at
	}
	return r.insert(batch, targets)
}

// insert adds rows to their homes, those left out that are deletes.
func (r *routed) insert(batch arrow.RecordBatch, targets []int32) error {
	gone, err := r.j.within.Gone(batch)
	if err != nil {
		return err
	}
	for i, dead := range gone {
		if dead && targets[i] >= 0 {
			targets[i] = -1
			r.j.result.Dropped++
		}
	}
	return r.inserts.Add(batch, targets)
}

// lookup finds the file groups of the rows in the window and sends each row on.
func (r *routed) lookup(ctx context.Context) error {
	defer r.drop()
	if r.windowRows == 0 {
		return nil
	}
	slots, err := r.candidates(ctx)
	if err != nil {
		return err
	}
	slices := make([]filegroup.Slice, len(slots))
	for i, id := range slots {
		slices[i] = r.j.slots[id].Slice
	}
	return r.lookupIn(ctx, slots, slices)
}

func (r *routed) lookupIn(ctx context.Context, slots []int32, slices []filegroup.Slice) error {
	keys, err := r.windowKeys()
	if err != nil {
		return err
	}
	defer keys.Release()
	o := r.j.index
	o.NoRows = o.Kind == index.Bucket && r.j.kind != Upsert && r.j.kind != Delete && r.j.duplicates == dupNone
	tags, err := index.Lookup(ctx, r.j.store, slices, keys, o)
	if err != nil {
		return err
	}
	at, next := int32(0), 0
	for _, batch := range r.window {
		end := at + int32(batch.NumRows())
		from := next
		for next < tags.Len() && tags.Key[next] < end {
			next++
		}
		if err := r.send(ctx, batch, at, tags, from, next, slots); err != nil {
			return err
		}
		at = end
	}
	return nil
}

// candidates are the slots in which rows of the window may be stored.
func (r *routed) candidates(ctx context.Context) ([]int32, error) {
	j := r.j
	if j.kind == InsertOverwrite || j.kind == InsertOverwriteTable { // what is stored goes away
		return nil, nil
	}
	if j.index.Kind.Global() {
		if _, err := j.listTable(ctx); err != nil {
			return nil, err
		}
		all := make([]int32, len(j.slots))
		for i := range all {
			all[i] = int32(i)
		}
		return all, nil
	}
	seen := make([]bool, len(j.paths.names))
	var names []string
	for _, b := range r.window {
		for _, p := range partitionsOf(b) {
			if !seen[p] {
				seen[p] = true
				names = append(names, j.paths.names[p])
			}
		}
	}
	if err := j.listAll(ctx, names); err != nil {
		return nil, err
	}
	var out []int32
	for i := range j.slots {
		if p := j.slots[i].partition; int(p) < len(seen) && seen[p] {
			out = append(out, int32(i))
		}
	}
	return out, nil
}

// windowKeys is a batch of all record keys and partition paths of the window.
func (r *routed) windowKeys() (arrow.RecordBatch, error) {
	s := arrow.NewSchema([]arrow.Field{r.j.slim.Field(slimPartition), r.j.slim.Field(slimKey)}, nil)
	runs := make([]gather.Run, len(r.window))
	srcs := make([]arrow.RecordBatch, len(r.window))
	for i, b := range r.window {
		runs[i] = gather.Run{Src: int32(i), N: int32(b.NumRows())}
		srcs[i] = b
	}
	both, err := gather.Batch(r.j.Alloc, s, srcs, runs)
	if err != nil {
		return nil, err
	}
	defer both.Release()
	names := array.NewStringBuilder(r.j.Alloc)
	defer names.Release()
	names.AppendValues(r.j.paths.names, nil)
	dictionary := names.NewArray()
	defer dictionary.Release()
	dt := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
	parts := array.NewDictionaryArray(dt, both.Column(slimPartition), dictionary)
	defer parts.Release()
	out := arrow.NewSchema([]arrow.Field{{Name: "key", Type: arrow.BinaryTypes.String}, {Name: "partition", Type: dt}}, nil)
	return array.NewRecordBatch(out, []arrow.Array{both.Column(slimKey), parts}, both.NumRows()), nil
}

// send gives the rows of a batch, whose first is number first of the window, to the file groups that tags[from:to] name.
func (r *routed) send(ctx context.Context, batch arrow.RecordBatch, first int32, tags *index.Tags, from, to int, slots []int32) error {
	if r.j.kind == Delete {
		return r.sendDeletes(batch.NumRows(), tags, from, to, slots)
	}
	places := make([]int32, batch.NumRows()) // home of each row to insert, or -1
	for i := range places {
		places[i] = fresh
	}
	var hits hits
	for t := from; t < to; t++ {
		row, id := tags.Key[t]-first, slots[tags.Slice[t]]
		if tags.Row[t] < 0 { // its bucket's file group
			places[row] = r.home(home{partition: r.j.slots[id].partition, slot: id})
			continue
		}
		places[row] = -1
		hits.add(row, id, tags.Row[t])
	}
	if r.j.duplicates != dupNone {
		return r.sendUnknown(batch, places, len(hits.rows))
	}
	if err := r.move(ctx, batch, places, &hits); err != nil {
		return err
	}
	if err := r.update(batch, &hits); err != nil {
		return err
	}
	return r.sendInserts(batch, places)
}

// fresh marks rows whose home is not known yet.
const fresh int32 = -2

// hits are rows of a batch that are stored, with their places.
type hits struct {
	rows, slots []int32
	at          []int64
}

func (h *hits) add(row, slot int32, at int64) {
	h.rows, h.slots, h.at = append(h.rows, row), append(h.slots, slot), append(h.at, at)
}

func (r *routed) sendDeletes(rows int64, tags *index.Tags, from, to int, slots []int32) error {
	last := int32(-1)
	r.j.result.Absent += rows
	for t := from; t < to; t++ {
		if tags.Row[t] < 0 {
			continue
		}
		if tags.Key[t] != last { // a key may be stored more than once
			last = tags.Key[t]
			r.j.result.Absent--
		}
		id := slots[tags.Slice[t]]
		if err := r.changeable(id); err != nil {
			return err
		}
		r.gone[id] = append(r.gone[id], tags.Row[t])
	}
	return nil
}

// changeable refuses what may not be rewritten.
func (r *routed) changeable(id int32) error {
	if r.j.cfg.Type == config.MergeOnRead {
		return r.j.noLogs()
	}
	return r.j.free(id)
}

// sendUnknown inserts the rows whose key is not stored.
func (r *routed) sendUnknown(batch arrow.RecordBatch, places []int32, stored int) error {
	if stored > 0 && r.j.duplicates == dupFail {
		for i, p := range places {
			if p == -1 {
				key := batch.Column(slimKey).(*array.String).Value(i)
				return fmt.Errorf("%w: %s, in partition %q", ErrDuplicate, key, r.j.paths.names[partitionsOf(batch)[i]])
			}
		}
	}
	var unknown []gather.Run
	for i, p := range places {
		switch n := len(unknown); {
		case p == -1:
			r.j.result.Dropped++
		case n > 0 && unknown[n-1].Row+unknown[n-1].N == int32(i):
			unknown[n-1].N++
		default:
			unknown = append(unknown, gather.Run{Row: int32(i), N: 1})
		}
	}
	switch {
	case r.take == nil:
		return r.sendInserts(batch, places)
	case len(unknown) == 0:
		return nil
	}
	rows, err := gather.Batch(r.j.Alloc, r.j.slim, []arrow.RecordBatch{batch}, unknown)
	if err != nil {
		return err
	}
	defer rows.Release()
	return r.take(rows)
}

// sendInserts finds the homes that are still open.
func (r *routed) sendInserts(batch arrow.RecordBatch, places []int32) error {
	parts := partitionsOf(batch)
	keys := batch.Column(slimKey).(*array.String)
	last, at := int32(-1), int32(-1)
	for i, p := range places {
		switch {
		case p != fresh:
		case r.j.index.Kind == index.Bucket:
			bucket, err := r.bucket.Of(keys.Value(i))
			if err != nil {
				return err
			}
			places[i] = r.home(home{partition: parts[i], bucket: bucket, slot: -1})
		default:
			if parts[i] != last {
				last, at = parts[i], r.home(home{partition: parts[i], slot: -1})
			}
			places[i] = at
		}
	}
	return r.insert(batch, places)
}

// update sends rows to the file groups that hold their keys; a row whose key is stored more than once goes to each place.
func (r *routed) update(batch arrow.RecordBatch, h *hits) error {
	if len(h.rows) == 0 {
		return nil
	}
	runs := make([]gather.Run, 0, len(h.rows))
	for i, row := range h.rows {
		if err := r.changeable(h.slots[i]); err != nil {
			return err
		}
		if n := len(runs); n > 0 && runs[n-1].Row+runs[n-1].N == row {
			runs[n-1].N++
			continue
		}
		runs = append(runs, gather.Run{Row: row, N: 1})
	}
	rows, err := gather.Batch(r.j.Alloc, r.j.slim, []arrow.RecordBatch{batch}, runs)
	if err != nil {
		return err
	}
	defer rows.Release()
	at := array.NewInt64Builder(r.j.Alloc)
	defer at.Release()
	at.AppendValues(h.at, nil)
	column := at.NewArray()
	defer column.Release()
	full := array.NewRecordBatch(r.updates.Schema(), append(slices.Clone(rows.Columns()), column), rows.NumRows())
	defer full.Release()
	return r.updates.Add(full, h.slots)
}
