package read

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/logfile"
	"github.com/sluicelake/sluice/hudi/merge"
	"github.com/sluicelake/sluice/hudi/schema"
)

// mergeColumns adds to the wanted columns what merging looks at: the record key and the columns of the rule. Filters are
// not pushed below a merge, projections are.
func (s *scan) mergeColumns(want *arrow.Schema) (*arrow.Schema, *merge.Rule, error) {
	raw := s.plan.path.raw
	whole, err := merge.Compile(s.mergeOptions(raw))
	if err != nil {
		return nil, nil, err
	}
	need := map[string]bool{schema.RecordKey: true}
	for _, name := range whole.Columns() {
		need[name] = true
	}
	for _, name := range s.plan.keyColumns() {
		need[name] = true
	}
	for _, f := range want.Fields() {
		need[f.Name] = true
	}
	fields := make([]arrow.Field, 0, len(need))
	for _, f := range raw.Fields() {
		if need[f.Name] {
			fields = append(fields, f)
		}
	}
	columns := arrow.NewSchema(fields, nil)
	rule, err := merge.Compile(s.mergeOptions(columns))
	return columns, rule, err
}

func (s *scan) mergeOptions(columns *arrow.Schema) merge.Options {
	cfg := s.plan.src.Config
	return merge.Options{
		TableVersion: cfg.Version, PayloadClass: cfg.PayloadClass, LegacyPayload: cfg.LegacyPayload, MergeMode: cfg.MergeMode,
		StrategyID: cfg.MergeStrategy, PartialUpdateMode: cfg.PartialUpdateMode, OrderingFields: cfg.OrderingFields,
		Props: cfg.RecordMergeProps, Schema: s.plan.table, Arrow: columns,
	}
}

// merged yields the rows of a slice with logs: the log blocks that count, merged with each other and then over the base
// file. Its columns have the types of files.
func (s *scan) merged(ctx context.Context, sl filegroup.Slice) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		log, columns, keys, err := s.openLogs(ctx, sl)
		if err != nil {
			yield(nil, err)
			return
		}
		defer log.Close()
		var base iter.Seq2[merge.Keyed, error] = func(func(merge.Keyed, error) bool) {}
		if sl.Base != nil {
			base = s.keyedBase(ctx, sl, columns, keys)
		}
		for batch, err := range log.OverKeyed(ctx, base) {
			if !yield(batch, err) || err != nil {
				return
			}
		}
	}
}

// openLogs reads a slice's log files into the log side of a merge. Records meet by their positions in the base file where
// every block says them, which tells twins of one key apart, and by their keys otherwise (table format 6.5).
func (s *scan) openLogs(ctx context.Context, sl filegroup.Slice) (log *merge.Log, columns *arrow.Schema, keys keySource, err error) {
	refs, err := s.blocks(ctx, sl)
	if err != nil {
		return nil, nil, nil, err
	}
	columns, rule, err := s.mergeColumns(s.plan.path.fileColumns(sl.Partition, s.read))
	if err != nil {
		return nil, nil, nil, err
	}
	if keys, err = s.plan.recordKeys(); err != nil {
		return nil, nil, nil, err
	}
	fill := func(keys keySource) (*merge.Log, error) {
		log := rule.NewLog(merge.LogOptions{Alloc: s.opts.Alloc, Budget: s.opts.Memory, SpillDir: s.opts.TempDir})
		for _, ref := range refs {
			if err := s.readBlock(ctx, ref, columns, keys, log); err != nil {
				log.Close()
				return nil, err
			}
		}
		return log, nil
	}
	if havePositions(sl, refs) {
		log, err = fill(positionKeys{})
		if !errors.Is(err, errPositions) {
			return log, columns, positionKeys{}, err
		}
	}
	log, err = fill(keys)
	return log, columns, keys, err
}

// blocks finds the log blocks of a slice that count, oldest first.
func (s *scan) blocks(ctx context.Context, sl filegroup.Slice) ([]logfile.Ref, error) {
	files := make([]string, len(sl.Logs))
	for i, l := range sl.Logs {
		files[i] = l.Path
	}
	refs, stats, err := logfile.Scan(ctx, s.plan.src.Store, files, logfile.ScanOptions{
		Committed: func(instant string) bool { return s.plan.view.Committed(instant, s.plan.instant) },
		Latest:    s.plan.instant, InRange: s.plan.inRange,
	})
	if err == nil && stats.Corrupt > 0 && s.opts.Warn != nil {
		s.opts.Warn(fmt.Sprintf("partition %q, file group %s: %d damaged log blocks were passed over", sl.Partition, sl.FileID, stats.Corrupt))
	}
	return refs, err
}

func (s *scan) readBlock(ctx context.Context, ref logfile.Ref, columns *arrow.Schema, keys keySource, log *merge.Log) error {
	of, err := keys.block(ref)
	if err != nil {
		return err
	}
	if ref.Type != logfile.Delete {
		if err := s.readRecords(ctx, ref, columns, of, log); err != nil {
			return err
		}
	}
	if err := s.readDeletes(ctx, ref, of, log); err != nil {
		return err
	}
	return of.end()
}

func (s *scan) readRecords(ctx context.Context, ref logfile.Ref, columns *arrow.Schema, keys blockKeys, log *merge.Log) error {
	names := make([]string, columns.NumFields())
	for i, f := range columns.Fields() {
		names[i] = f.Name
	}
	present, partial, err := ref.PartialColumns()
	if err != nil {
		return err
	}
	rows := ref.Records(ctx, logfile.RecordOptions{
		Reader: s.plan.table, Columns: names, Alloc: s.opts.Alloc,
		Names: s.plan.history.names(ref.Header.InstantTime), SchemaOnRead: s.plan.history != nil || s.plan.path.times,
	})
	for batch, err := range rows {
		if err != nil {
			return err
		}
		var opts merge.AddOptions
		if partial {
			opts.Columns = slices.DeleteFunc(slices.Clone(present), func(n string) bool { return !columns.HasField(n) })
		}
		if opts.Keys, err = keys.of(batch); err == nil {
			err = log.Add(batch, opts)
		}
		if opts.Keys != nil {
			opts.Keys.Release()
		}
		batch.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// readDeletes adds the removed keys of a block in packs.
func (s *scan) readDeletes(ctx context.Context, ref logfile.Ref, of blockKeys, log *merge.Log) error {
	const pack = 8192
	keys := array.NewStringBuilder(s.opts.Alloc)
	defer keys.Release()
	var ordering []merge.Value
	flush := func() error {
		stored := keys.NewArray()
		defer stored.Release()
		in, err := of.deleted(stored.Len())
		if err != nil {
			return err
		}
		if in == nil {
			err = log.AddDeletes(stored, ordering)
		} else {
			err = log.AddDeletes(in, ordering)
			in.Release()
		}
		ordering = ordering[:0]
		return err
	}
	for d, err := range ref.Deletes(ctx) {
		if err != nil {
			return err
		}
		keys.Append(d.Key)
		ordering = append(ordering, orderingValue(d.Ordering))
		if len(ordering) == pack {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// orderingValue gives a delete's ordering value as the merge compares it.
func orderingValue(o logfile.Ordering) merge.Value {
	switch o.Kind {
	case logfile.OrderingBool:
		return merge.BoolOrdering(o.Int != 0)
	case logfile.OrderingInt:
		return merge.IntOrdering(int32(o.Int))
	case logfile.OrderingLong:
		return merge.LongOrdering(o.Int)
	case logfile.OrderingFloat:
		return merge.FloatOrdering(float32(o.Float))
	case logfile.OrderingDouble:
		return merge.DoubleOrdering(o.Float)
	case logfile.OrderingBytes:
		return merge.BytesOrdering([]byte(o.Text))
	case logfile.OrderingString:
		return merge.TextOrdering(o.Text)
	case logfile.OrderingDate:
		return merge.DateOrdering(int32(o.Int))
	case logfile.OrderingDecimal:
		return merge.DecimalOrdering(o.Decimal.BigInt(), logfile.DecimalScale)
	case logfile.OrderingTimeMicros:
		return merge.TimeMicrosOrdering(o.Int)
	case logfile.OrderingTimestampMicros:
		return merge.TimestampMicrosOrdering(o.Int)
	case logfile.OrderingArray:
		items := make([]merge.Value, len(o.Items))
		for i, it := range o.Items {
			items[i] = orderingValue(it)
		}
		return merge.TupleOrdering(items...)
	}
	return merge.NoOrdering()
}
