package operation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/keygen"
	"github.com/sluicelake/sluice/hudi/merge"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/internal/gather"
)

// Rows on their way have a schema of their own: the number of their partition path, the record key, and the columns of the
// files without meta columns. The meta columns come on when a row is written, as most of them are the same for a whole file.
const (
	partitionColumn = "#partition"
	slimPartition   = 0
	slimKey         = 1
	slimData        = 2
)

func slimSchema(full *arrow.Schema, keysOnly bool) *arrow.Schema {
	fields := []arrow.Field{{Name: partitionColumn, Type: arrow.PrimitiveTypes.Int32}, {Name: schema.RecordKey, Type: arrow.BinaryTypes.String, Nullable: true}}
	if !keysOnly {
		fields = append(fields, full.Fields()[len(schema.MetaColumns):]...)
	}
	return arrow.NewSchema(fields, nil)
}

// paths numbers the partition paths that were seen.
type paths struct {
	ids   map[string]int32
	names []string
}

func (p *paths) id(path string) int32 {
	if id, ok := p.ids[path]; ok {
		return id
	}
	if p.ids == nil {
		p.ids = map[string]int32{}
	}
	path = strings.Clone(path)
	id := int32(len(p.names))
	p.ids[path] = id
	p.names = append(p.names, path)
	return id
}

// numbers gives the number of every row's partition path.
func (p *paths) numbers(mem memory.Allocator, col arrow.Array) (arrow.Array, error) {
	n := col.Len()
	b := array.NewInt32Builder(mem)
	defer b.Release()
	b.Reserve(n)
	switch a := col.(type) {
	case *array.Dictionary:
		values, ok := a.Dictionary().(*array.String)
		if !ok {
			return nil, fmt.Errorf("partition paths are %s", col.DataType())
		}
		known := make([]int32, values.Len())
		for i := range known {
			known[i] = -1
		}
		for i := range n {
			at := a.GetValueIndex(i)
			if known[at] < 0 {
				known[at] = p.id(values.Value(at))
			}
			b.UnsafeAppend(known[at])
		}
	case *array.String:
		for i := range n {
			b.UnsafeAppend(p.id(a.Value(i)))
		}
	default:
		return nil, fmt.Errorf("partition paths are %s", col.DataType())
	}
	return b.NewArray(), nil
}

// keyMaker brings batches that come to the slim form.
type keyMaker struct {
	j     *job
	gen   keygen.Generator // nil: keys come with the rows
	toRow *schema.Resolution
	keep  []int // columns of the resolved batch that are stored
	key   int   // with the rows: their meta columns; path is -1 where it is missing
	path  int
}

// keyed reports whether the rows to delete bring their keys along: they have _hoodie_record_key, and lack a column that the table's
// key generator needs.
func (j *job) keyed() bool {
	s := j.rows.Schema
	if s == nil || len(s.FieldIndices(schema.RecordKey)) == 0 {
		return false
	}
	for _, f := range j.cfg.RecordKeyFields {
		if _, ok := findPath(s, f); !ok {
			return true
		}
	}
	return len(j.cfg.RecordKeyFields) == 0
}

func (j *job) keyOptions(ctx context.Context, instant string) keygen.Options {
	conf := make(map[string]string, len(j.Conf))
	for k, v := range j.Conf {
		conf[k] = v
	}
	o := keygen.Options{
		Properties: conf, Table: keygen.PropertiesOf(j.cfg), Schema: j.data, Instant: instant, Task: "0", Registry: j.Registry, Delete: j.kind == Delete,
	}
	if o.Schema == nil {
		o.Schema, _ = j.rowsSchema() // an error comes up later, with the table's schema at hand
	}
	if j.kind == Delete {
		o.Schema = nil
		if t, err := j.rowsSchema(); err == nil {
			o.Schema = t
		}
	}
	if j.txn != nil {
		_, o.HasCommits = j.txn.Timeline().Completed().Writes().Last()
		if o.HasCommits && keygen.NeedsStoredKeys(o.Table) {
			o.StoredKeys = j.sampleKeys(ctx)
		}
	}
	return o
}

// sampleKeys gives keys of one base file: some settings don't tell how keys of one field are written (key generation 6.3).
func (j *job) sampleKeys(ctx context.Context) []string {
	files, err := filegroup.List(ctx, j.store)
	if err != nil {
		return nil
	}
	const enough = 200
	for _, p := range files.Partitions() {
		slots, err := j.list(ctx, p)
		if err != nil {
			return nil
		}
		for _, id := range slots {
			base := j.slots[id].Base
			if base == nil {
				continue
			}
			f, err := basefile.Open(ctx, j.store, base.Name, basefile.Options{Alloc: j.Alloc})
			if err != nil {
				return nil
			}
			keys := firstKeys(ctx, f, enough)
			_ = f.Close() // it was only read
			if len(keys) > 0 {
				return keys
			}
		}
	}
	return nil
}

func firstKeys(ctx context.Context, f basefile.File, n int) []string {
	want := arrow.NewSchema([]arrow.Field{{Name: schema.RecordKey, Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	var out []string
	for b, err := range f.Scan(ctx, basefile.ScanOptions{Columns: want, BatchRows: n}) {
		if err != nil {
			return out
		}
		if keys, ok := b.Column(0).(*array.String); ok {
			for i := 0; i < keys.Len() && len(out) < n; i++ {
				if keys.IsValid(i) {
					out = append(out, strings.Clone(keys.Value(i)))
				}
			}
		}
		b.Release()
		if len(out) > 0 {
			break
		}
	}
	return out
}

func (j *job) newKeyMaker(ctx context.Context) (*keyMaker, error) {
	k := &keyMaker{j: j, key: -1, path: -1}
	if j.rows.Schema == nil {
		return k, nil
	}
	if j.kind == Delete || j.kind == DeletePartition {
		return k, k.forKeys(ctx)
	}
	want, err := j.data.Arrow()
	if err != nil {
		return nil, err
	}
	if k.toRow, err = schema.Resolve(j.rows.Schema, want, schema.ResolveOptions{File: "the rows to write", Table: j.data, SchemaOnRead: true}); err != nil {
		return nil, err
	}
	for i, f := range want.Fields() {
		if len(j.slim.FieldIndices(f.Name)) > 0 {
			k.keep = append(k.keep, i)
		}
	}
	if k.gen, err = keygen.Open(j.keyOptions(ctx, j.txn.Instant())); err != nil {
		return nil, err
	}
	return k, nil
}

func unambiguous(s *arrow.Schema) error {
	if s == nil {
		return nil
	}
	seen := map[string]bool{}
	for _, f := range s.Fields() {
		if seen[f.Name] {
			return fmt.Errorf("the rows have two columns %q: rename one of them", f.Name)
		}
		seen[f.Name] = true
	}
	return nil
}

// forKeys: of rows to delete only the keys count.
func (k *keyMaker) forKeys(ctx context.Context) (err error) {
	j := k.j
	if j.kind == Delete && j.keyed() {
		k.key = j.rows.Schema.FieldIndices(schema.RecordKey)[0]
		if at := j.rows.Schema.FieldIndices(schema.PartitionPath); len(at) > 0 {
			k.path = at[0]
		} else if !j.index.Kind.Global() && j.cfg.IsPartitioned() {
			return fmt.Errorf("the keys to delete lack the column %s, which tells their partitions: add it, or give a global index (hoodie.index.type=GLOBAL_SIMPLE)", schema.PartitionPath)
		}
		return nil
	}
	k.toRow, err = k.withPartitionColumns()
	if err != nil {
		return err
	}
	o := j.keyOptions(ctx, j.txn.Instant())
	if o.Schema != nil {
		o.Schema = addFields(o.Schema, j.data, k.toRow.Schema())
	}
	k.gen, err = keygen.Open(o)
	return err
}

// withPartitionColumns adds partition columns that rows to delete lack: with a global index nobody asks for them.
func (k *keyMaker) withPartitionColumns() (*schema.Resolution, error) {
	j := k.j
	want := j.rows.Schema
	if j.kind == Delete && j.index.Kind.Global() {
		all, err := j.data.Arrow()
		if err != nil {
			return nil, err
		}
		fields := slices.Clone(want.Fields())
		for _, name := range j.cfg.PartitionFields {
			at := all.FieldIndices(name)
			if _, ok := findPath(want, name); !ok && len(at) > 0 {
				f := all.Field(at[0])
				f.Nullable = true
				fields = append(fields, f)
			}
		}
		want = arrow.NewSchema(fields, nil)
	}
	return schema.Resolve(j.rows.Schema, want, schema.ResolveOptions{File: "the rows to delete"})
}

// addFields adds the columns of want that t lacks, as the table has them.
func addFields(t, table *schema.Type, want *arrow.Schema) *schema.Type {
	out := *t
	out.Fields = slices.Clone(t.Fields)
	for _, f := range want.Fields() {
		if _, ok := out.Field(f.Name); ok || schema.IsMeta(f.Name) {
			continue
		}
		if have, ok := table.Field(f.Name); ok {
			out.Fields = append(out.Fields, *have)
		}
	}
	return &out
}

// findPath resolves a column name, dotted for a member of structs.
func findPath(s *arrow.Schema, name string) ([]int, bool) {
	if at := s.FieldIndices(name); len(at) > 0 {
		return at[:1], true
	}
	head, rest, nested := strings.Cut(name, ".")
	at := s.FieldIndices(head)
	if !nested || len(at) == 0 {
		return nil, false
	}
	path, dt := at[:1:1], s.Field(at[0]).Type
	for part := range strings.SplitSeq(rest, ".") {
		st, ok := dt.(*arrow.StructType)
		if !ok {
			return nil, false
		}
		i, ok := st.FieldIdx(part)
		if !ok {
			return nil, false
		}
		path, dt = append(path, i), st.Field(i).Type
	}
	return path, true
}

// each brings every batch to the slim form and hands it on; rows that have no place in the table are left out or end the write.
func (k *keyMaker) each(ctx context.Context, take func(arrow.RecordBatch) error) error {
	if k.j.rows.Batches == nil {
		return nil
	}
	for batch, err := range k.j.rows.Batches {
		if err != nil {
			return fmt.Errorf("the rows to write: %w", err)
		}
		err = ctx.Err()
		if err == nil {
			err = k.one(batch, take)
		}
		n := batch.NumRows()
		batch.Release()
		if err != nil {
			return err
		}
		k.j.result.Read += n
		k.j.tell(Progress{Read: n})
	}
	return nil
}

func (k *keyMaker) one(batch arrow.RecordBatch, take func(arrow.RecordBatch) error) error {
	if batch.NumRows() == 0 {
		return nil
	}
	slim, err := k.slim(batch)
	if err != nil {
		return err
	}
	if slim == nil {
		return nil
	}
	defer slim.Release()
	return take(slim)
}

// slim gives nil when no row is left.
func (k *keyMaker) slim(batch arrow.RecordBatch) (arrow.RecordBatch, error) {
	if k.gen == nil {
		return k.given(batch)
	}
	mem := k.j.Alloc
	rows, err := k.toRow.Batch(mem, batch)
	if err != nil {
		return nil, err
	}
	defer func() { rows.Release() }()
	if err := k.required(rows); err != nil {
		return nil, err
	}
	keys, parts, err := k.keysOf(rows)
	if err != nil {
		good, err := k.reject(batch, rows, err)
		if err != nil || good == nil {
			return nil, err
		}
		rows.Release()
		rows = good
		if keys, parts, err = k.keysOf(rows); err != nil {
			return nil, err
		}
	}
	defer keys.Release()
	defer parts.Release()
	return k.assemble(rows, keys, parts)
}

// rowError says why a row has no place in the table.
type rowError struct {
	row int
	err error
}

func (e *rowError) Error() string { return e.err.Error() }
func (e *rowError) Unwrap() error { return e.err }

// keysOf makes the keys of rows, and makes sure that rows that are to be ordered can be.
func (k *keyMaker) keysOf(rows arrow.RecordBatch) (keys, parts arrow.Array, err error) {
	if err := k.ordered(rows); err != nil {
		return nil, nil, err
	}
	keys, parts, err = k.gen.Keys(rows)
	var bad *keygen.Error
	if errors.As(err, &bad) && bad.Row >= 0 {
		err = &rowError{bad.Row, err}
	}
	return keys, parts, err
}

// ordered refuses rows without ordering value, as payload classes do.
func (k *keyMaker) ordered(rows arrow.RecordBatch) error {
	if !k.j.combine || k.j.kind == Delete {
		return nil
	}
	for _, f := range k.j.ordering {
		path, ok := findPath(rows.Schema(), f)
		if !ok {
			continue
		}
		col := rows.Column(path[0])
		for at := 0; ; at++ {
			for row := 0; col.NullN() > 0 && row < col.Len(); row++ {
				if col.IsNull(row) {
					return &rowError{row, fmt.Errorf("ordering value is null for record: column %s is null in row %d, and rows of one key are ordered by it; fill it in, or name another column with %s", f, k.j.result.Read+int64(row), optOrdering)}
				}
			}
			if at+1 == len(path) {
				break
			}
			col = col.(*array.Struct).Field(path[at+1])
		}
	}
	return nil
}

// required: a null where the table's schema allows none would make a file that no reader takes.
func (k *keyMaker) required(rows arrow.RecordBatch) error {
	for i, f := range rows.Schema().Fields() {
		if !f.Nullable && rows.Column(i).NullN() > 0 && k.j.kind != Delete {
			return fmt.Errorf("column %s has nulls, but the table requires a value: %w", f.Name, schema.ErrReconcile)
		}
	}
	return nil
}

// reject puts the rows without a place in the table aside, or fails with the first. It gives the rows that are left, nil when none is.
func (k *keyMaker) reject(batch, rows arrow.RecordBatch, cause error) (arrow.RecordBatch, error) {
	j := k.j
	var bad *rowError
	if !errors.As(cause, &bad) || j.Reject == nil {
		return nil, cause
	}
	one := func(i int64) (err error) {
		part := rows.NewSlice(i, i+1)
		defer part.Release()
		keys, parts, err := k.keysOf(part)
		if err == nil {
			keys.Release()
			parts.Release()
		}
		return err
	}
	var runs []gather.Run
	for i := range rows.NumRows() {
		err := one(i)
		if err == nil {
			if n := len(runs); n > 0 && int64(runs[n-1].Row+runs[n-1].N) == i {
				runs[n-1].N++
			} else {
				runs = append(runs, gather.Run{Row: int32(i), N: 1})
			}
			continue
		}
		j.result.Rejected++
		if err := j.Reject(Rejected{Batch: batch, Row: int(i), Count: j.result.Read + i, Err: err}); err != nil {
			return nil, err
		}
	}
	if len(runs) == 0 {
		return nil, nil
	}
	return gather.Batch(j.Alloc, rows.Schema(), []arrow.RecordBatch{rows}, runs)
}

func (k *keyMaker) assemble(rows arrow.RecordBatch, keys, parts arrow.Array) (arrow.RecordBatch, error) {
	ids, err := k.j.paths.numbers(k.j.Alloc, parts)
	if err != nil {
		return nil, err
	}
	defer ids.Release()
	columns := make([]arrow.Array, 0, k.j.slim.NumFields())
	columns = append(columns, ids, keys)
	for _, i := range k.keep {
		columns = append(columns, rows.Column(i))
	}
	return array.NewRecordBatch(k.j.slim, columns, rows.NumRows()), nil
}

// given takes the keys that come with the rows.
func (k *keyMaker) given(batch arrow.RecordBatch) (arrow.RecordBatch, error) {
	keys, ok := batch.Column(k.key).(*array.String)
	if !ok {
		return nil, fmt.Errorf("%s is %s, not text", schema.RecordKey, batch.Column(k.key).DataType())
	}
	for i := range keys.Len() {
		if keys.IsNull(i) || keys.Value(i) == "" {
			return nil, fmt.Errorf("row %d to delete has no %s", k.j.result.Read+int64(i), schema.RecordKey)
		}
	}
	var parts arrow.Array
	if k.path >= 0 {
		if parts = batch.Column(k.path); parts.NullN() > 0 {
			return nil, fmt.Errorf("rows to delete have no %s", schema.PartitionPath)
		}
		parts.Retain()
	} else {
		parts = constants(k.j.Alloc, "", int(batch.NumRows()))
	}
	defer parts.Release()
	return k.assemble(batch, keys, parts)
}

// constants is a column of one text.
func constants(mem memory.Allocator, text string, n int) arrow.Array {
	b := array.NewStringBuilder(mem)
	defer b.Release()
	b.Reserve(n)
	b.ReserveData(n * len(text))
	for range n {
		b.Append(text)
	}
	return b.NewArray()
}

// loaded gives the rows of a bulk insert or overwrite: combined, and without those whose key is stored where that is asked for.
func (j *job) loaded(ctx context.Context, take func(arrow.RecordBatch) error) error {
	if j.duplicates == dupNone {
		return j.combined(ctx, take)
	}
	r, err := j.newRouted()
	if err != nil {
		return err
	}
	defer r.close()
	r.take = take
	if err := j.combined(ctx, func(batch arrow.RecordBatch) error { return r.add(ctx, batch) }); err != nil {
		return err
	}
	return r.lookup(ctx)
}

// combined gives rows of which no two have the same key, or the same key and partition path where the index is not global.
func (j *job) combined(ctx context.Context, take func(arrow.RecordBatch) error) error {
	if !j.combine {
		return j.keys.each(ctx, take)
	}
	if j.kind == Delete {
		return j.keys.each(ctx, take) // a key that is there twice deletes the same rows
	}
	log := j.within.NewLog(merge.LogOptions{Alloc: j.Alloc, Budget: j.Memory / 3, SpillDir: j.TempDir, Batch: true, BatchRows: 32 << 10, KeepDeletes: true})
	defer log.Close()
	err := j.keys.each(ctx, func(batch arrow.RecordBatch) error {
		if j.index.Kind.Global() && (j.kind == Upsert || j.kind == Delete) {
			return log.Add(batch, merge.AddOptions{})
		}
		keys := pairKeys(j.Alloc, batch)
		defer keys.Release()
		return log.Add(batch, merge.AddOptions{Keys: keys})
	})
	if err != nil {
		return err
	}
	left := int64(0)
	for batch, err := range log.Rows(ctx) {
		if err != nil {
			return err
		}
		left += batch.NumRows()
		err = take(batch)
		batch.Release()
		if err != nil {
			return err
		}
	}
	j.result.Combined = j.result.Read - j.result.Rejected - left
	return nil
}

// pairKeys puts the number of the partition path before each key: rows of one key in two partitions are two records.
func pairKeys(mem memory.Allocator, batch arrow.RecordBatch) arrow.Array {
	ids := batch.Column(slimPartition).(*array.Int32).Int32Values()
	keys := batch.Column(slimKey).(*array.String)
	n := keys.Len()
	b := array.NewBinaryBuilder(mem, arrow.BinaryTypes.Binary)
	defer b.Release()
	b.Reserve(n)
	b.ReserveData(n*4 + len(keys.ValueBytes()))
	var buf []byte
	for i := range n {
		id := ids[i]
		buf = append(buf[:0], byte(id), byte(id>>8), byte(id>>16), byte(id>>24))
		buf = append(buf, keys.Value(i)...)
		b.Append(buf)
	}
	return b.NewArray()
}
