package operation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/keygen"
	"github.com/sluicelake/sluice/hudi/merge"
	"github.com/sluicelake/sluice/hudi/read"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/hudi/write"
	"github.com/sluicelake/sluice/hudi/write/lock"
	"github.com/sluicelake/sluice/storage"
)

// ErrDuplicate: a row to insert has a key that is stored, and hoodie.datasource.insert.dup.policy says fail.
var ErrDuplicate = errors.New("a row of this key is stored already")

// Run does one operation on the table at the root of store, whole or not at all.
//
// It fails with config.ErrUnsupported, and writes nothing, for tables and options that Sluice does not write; with
// schema.ErrReconcile for rows whose columns don't fit the table; with a *keygen.Error for a row that has no key; and with the
// errors of write.Begin and write.Txn.Commit.
func Run(ctx context.Context, store storage.Store, kind Kind, rows Rows, o Options) (*Result, error) {
	s, err := newSettings(kind, o)
	if err != nil {
		return nil, err
	}
	cfg, err := config.Load(ctx, store)
	if err != nil {
		return nil, err
	}
	j := &job{settings: s, store: store, cfg: cfg, rows: rows, inPart: map[int32][]int32{}, listed: map[string]bool{}, stats: &collector{}}
	if err := j.begin(ctx); err != nil {
		if errors.Is(err, errNothing) {
			return &j.result, nil
		}
		return nil, err
	}
	err = j.run(ctx)
	if err == nil {
		return &j.result, nil
	}
	if undo := j.txn.Abort(context.WithoutCancel(ctx)); undo != nil && !errors.Is(undo, write.ErrDone) {
		err = errors.Join(err, fmt.Errorf("and the write could not be undone now, the next one will do it: %w", undo))
	}
	return nil, err
}

// errNothing: the write would change nothing, and the caller wants no commit then.
var errNothing = errors.New("nothing to do")

// job is one run of an operation.
type job struct {
	*settings
	store storage.Store
	cfg   *config.Table
	rows  Rows
	txn   *write.Txn
	view  *filegroup.View

	data   *schema.Type  // columns of the table after the write, without meta columns
	stored *schema.Type  // columns of its files: meta columns in front, without partition columns where the table drops them
	full   *arrow.Schema // of stored
	slim   *arrow.Schema // of the rows on their way; see prepare
	keys   *keyMaker
	within *merge.Rule // rows of one key in the input; nil where they are not combined
	base   *merge.Rule // rows of the input against stored ones

	paths  paths
	slots  []slot
	inPart map[int32][]int32 // slots by partition
	listed map[string]bool   // partitions whose slots are known
	fenced map[filegroup.Group]string
	merged *read.Plan // the table as it is, logs merged; nil until a slice with log files is looked into

	stats  *collector
	result Result
}

func (j *job) stepTo(e write.Event) {
	if j.Event != nil {
		j.Event(Protocol{e})
	}
}

func (j *job) tell(e Event) {
	if j.Event != nil {
		j.Event(e)
	}
}

// begin checks what can be checked without the lock, and takes it.
func (j *job) begin(ctx context.Context) error {
	if err := j.refuse(); err != nil {
		return err
	}
	if err := unambiguous(j.rows.Schema); err != nil {
		return err
	}
	if err := j.checkKeys(ctx); err != nil {
		return err
	}
	action := timeline.Commit
	if j.cfg.Type == config.MergeOnRead {
		action = timeline.DeltaCommit
	}
	if j.kind.replaces() {
		action = timeline.ReplaceCommit
	}
	var err error
	j.txn, err = write.Begin(ctx, j.store, write.Options{
		Action: action, Operation: j.kind.stored(), Conf: j.Conf, Reconcile: j.schemaAfter,
		Lock: j.Lock, Zone: j.Zone, Now: j.Now, Event: j.stepTo,
	})
	if err != nil {
		return err
	}
	j.cfg = j.txn.Config()
	j.warn()
	return nil
}

// warn says when a row can get a second identity: its partition value changes, and the index looks for it in the new partition alone.
func (j *job) warn() {
	if j.kind != Upsert || j.index.Kind.Global() {
		return
	}
	var loose []string
	for _, f := range j.cfg.PartitionFields {
		if !slices.Contains(j.cfg.RecordKeyFields, f) {
			loose = append(loose, f)
		}
	}
	if len(loose) > 0 {
		j.tell(Warned{fmt.Sprintf("a row whose %s changes is stored in both partitions, as the index %s looks in the row's own partition alone; hoodie.index.type=GLOBAL_SIMPLE moves it", strings.Join(loose, ", "), j.index.Kind)})
	}
}

// refuse names what this operation does not do on this table.
func (j *job) refuse() error {
	if err := write.CheckWritable(j.cfg); err != nil {
		return err
	}
	changes := j.kind == Upsert || j.kind == Delete || j.kind == Insert
	if j.cfg.CDCEnabled && changes {
		return &config.UnsupportedError{Table: j.cfg.Path, Property: "hoodie.table.cdc.enabled", Value: "true",
			Hint: fmt.Sprintf("an %s would have to record its changes, which Sluice does not do yet; bulk_insert, the overwrites and delete_partition work", j.kind)}
	}
	if j.cfg.Type == config.MergeOnRead && j.kind == Delete {
		return j.noLogs()
	}
	return nil
}

func (j *job) noLogs() error {
	return &config.UnsupportedError{Table: j.cfg.Path, Property: "hoodie.table.type", Value: string(config.MergeOnRead),
		Hint: "updates and deletes of this table go to log files, which Sluice does not write yet; inserts, the overwrites and delete_partition work"}
}

// schemaAfter decides, under the lock, what columns the table has after the write, and gives what the commit stores.
func (j *job) schemaAfter(table *schema.Type) (*schema.Type, error) {
	if j.kind == Delete || j.kind == DeletePartition {
		if table == nil {
			return nil, errNothing
		}
		j.data = table
		return j.withoutDropped(table), nil
	}
	given, err := j.rowsSchema()
	if err != nil {
		return nil, err
	}
	if j.rows.Avro == nil && j.given == nil {
		given = inMicros(given, table)
	}
	j.reconcile.NoLogs = j.cfg.Type == config.CopyOnWrite
	if j.data, err = schema.Reconcile(table, given, j.reconcile); err != nil {
		return nil, err
	}
	for _, change := range schema.Changes(table, j.data) {
		j.tell(Warned{"column " + change})
	}
	return j.withoutDropped(j.data), nil
}

// rowsSchema is the Avro schema of the rows that come, without meta columns.
func (j *job) rowsSchema() (*schema.Type, error) {
	if j.given != nil {
		return schema.WithoutMeta(j.given), nil
	}
	if j.rows.Avro != nil {
		return schema.WithoutMeta(j.rows.Avro), nil
	}
	if j.rows.Schema == nil {
		return nil, errors.New("the rows have no schema")
	}
	var fields []arrow.Field
	for _, f := range j.rows.Schema.Fields() {
		if !schema.IsMeta(f.Name) {
			fields = append(fields, f)
		}
	}
	return schema.FromArrow(arrow.NewSchema(fields, nil), schema.RecordName(j.cfg.Name))
}

// inMicros makes timestamps of milliseconds those of microseconds, which alone Spark knows: 0.15.0 takes milliseconds for
// microseconds when it rewrites a file, and 1.2.0 refuses to write. Columns that the table has stay for Reconcile to compare.
func inMicros(t, table *schema.Type) *schema.Type {
	out := *t
	out.Fields = slices.Clone(t.Fields)
	for i, f := range out.Fields {
		if table != nil {
			if _, ok := table.Field(f.Name); ok {
				continue
			}
		}
		out.Fields[i].Type = microsOf(f.Type)
	}
	return &out
}

func microsOf(t *schema.Type) *schema.Type {
	out := *t
	switch t.Logical {
	case schema.TimestampMillis:
		out.Logical = schema.TimestampMicros
	case schema.LocalTimestampMillis:
		out.Logical = schema.LocalTimestampMicros
	}
	if t.Items != nil {
		out.Items = microsOf(t.Items)
	}
	out.Branches = slices.Clone(t.Branches)
	for i, b := range out.Branches {
		out.Branches[i] = microsOf(b)
	}
	out.Fields = slices.Clone(t.Fields)
	for i, f := range out.Fields {
		out.Fields[i].Type = microsOf(f.Type)
	}
	return &out
}

// withoutDropped leaves out the partition columns where the table does not store them (table format 1.4).
func (j *job) withoutDropped(t *schema.Type) *schema.Type {
	if !j.cfg.DropPartitionColumns {
		return t
	}
	out := *t
	out.Fields = slices.DeleteFunc(slices.Clone(t.Fields), func(f schema.Field) bool { return slices.Contains(j.cfg.PartitionFields, f.Name) })
	return &out
}

func (j *job) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-j.txn.Lost():
			cancel(lock.ErrLost)
		case <-ctx.Done():
		}
	}()
	err := j.work(ctx)
	if err != nil && errors.Is(err, context.Canceled) && context.Cause(ctx) != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	return err
}

func (j *job) work(ctx context.Context) error {
	if err := j.compile(ctx); err != nil {
		return err
	}
	var replaced map[string][]string
	var err error
	switch j.kind {
	case Upsert, Insert, Delete:
		err = j.change(ctx)
	case BulkInsert:
		err = j.bulk(ctx)
	case InsertOverwrite, InsertOverwriteTable:
		replaced, err = j.overwrite(ctx)
	case DeletePartition:
		replaced, err = j.deletePartitions(ctx)
	}
	if err != nil {
		return err
	}
	return j.commit(ctx, replaced)
}

// commit completes the write, or takes it back where it changed nothing and nobody wants an empty commit.
func (j *job) commit(ctx context.Context, replaced map[string][]string) error {
	stats := j.stats.list()
	if j.SkipEmpty && len(stats) == 0 && len(replaced) == 0 {
		return j.txn.Abort(ctx)
	}
	meta, err := j.txn.Commit(ctx, stats, j.extra(), replaced)
	if err != nil {
		return err
	}
	j.result.Instant, j.result.Commit = j.txn.Instant(), meta
	for _, s := range stats {
		j.result.Inserted += s.NumInserts
		j.result.Updated += s.NumUpdateWrites
		j.result.Deleted += s.NumDeletes
		j.result.Bytes += s.FileSizeInBytes
	}
	j.result.Files = len(stats)
	return nil
}

// compile makes the parts that the operation needs, now that the instant and the schema are known.
func (j *job) compile(ctx context.Context) (err error) {
	if j.view, err = filegroup.Open(ctx, j.store, j.cfg, j.txn.Timeline()); err != nil {
		return err
	}
	if j.fenced, err = j.readFenced(ctx); err != nil {
		return err
	}
	j.stored = schema.WithMeta(j.withoutDropped(j.data))
	if j.full, err = j.stored.Arrow(); err != nil {
		return err
	}
	j.writer.Schema = j.stored
	if !j.cfg.PopulateMetaFields {
		j.writer.Bloom = nil
	}
	j.slim = slimSchema(j.full, j.kind == Delete || j.kind == DeletePartition)
	if j.kind == DeletePartition && len(j.partitions) > 0 {
		return nil
	}
	if j.keys, err = j.newKeyMaker(ctx); err != nil {
		return err
	}
	if j.kind == Delete || j.kind == DeletePartition {
		return nil // nothing meets
	}
	return j.compileRules()
}

func (j *job) compileRules() (err error) {
	o := merge.Options{
		TableVersion: j.cfg.Version, PayloadClass: j.payload, OrderingFields: j.ordering, Props: j.mergeProps, Schema: j.stored, Arrow: j.slim,
	}
	if o.PayloadClass == "" {
		o.PayloadClass = j.cfg.PayloadClass
	}
	if len(o.OrderingFields) == 0 {
		o.OrderingFields = j.cfg.OrderingFields
	}
	for k, v := range j.cfg.RecordMergeProps {
		if _, ok := o.Props[k]; !ok {
			o.Props[k] = v
		}
	}
	if o.OrderingFields, err = j.checkOrdering(o.OrderingFields); err != nil {
		return err
	}
	j.ordering = o.OrderingFields
	if j.within, err = merge.Compile(o); err != nil {
		return err
	}
	o.Arrow = j.full
	j.base, err = merge.Compile(o)
	return err
}

// checkOrdering: an ordering field that was asked for must be there when rows are combined by it; the table's own may be missing.
func (j *job) checkOrdering(fields []string) ([]string, error) {
	var out []string
	for _, f := range fields {
		if _, ok := findPath(j.slim, f); ok {
			out = append(out, f)
			continue
		}
		if j.combine && j.orderGiven {
			return nil, fmt.Errorf("%s(Part -%s) field not found in record. Acceptable fields were :[%s]: name one that is there as %s", f, f, strings.Join(columnNames(j.data), ", "), optOrdering)
		}
	}
	return out, nil
}

func columnNames(t *schema.Type) []string {
	out := make([]string, len(t.Fields))
	for i, f := range t.Fields {
		out[i] = f.Name
	}
	return out
}

// checkKeys compiles the key generator once before anything is written, so that contradictions in the options end the write early.
func (j *job) checkKeys(ctx context.Context) error {
	if j.kind == DeletePartition && len(j.partitions) > 0 || j.kind == Delete && j.keyed() {
		return nil
	}
	_, err := keygen.Open(j.keyOptions(ctx, "00000000000000000"))
	return err
}
