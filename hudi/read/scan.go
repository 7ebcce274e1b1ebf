package read

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/orcfile"
	"github.com/sluicelake/sluice/hudi/predicate"
	"github.com/sluicelake/sluice/hudi/schema"
)

// ScanOptions say what comes out of a scan. The zero value is every column of every row.
type ScanOptions struct {
	// Columns by name, in this order; nil means all, meta columns first. Letter case is ignored where it is unambiguous.
	Columns []string
	// Filter drops rows for which it is not true. It also prunes partitions, row groups and pages, as far as merging allows.
	Filter predicate.Expr
	// Alloc makes every buffer; nil means memory.DefaultAllocator.
	Alloc memory.Allocator
	// Memory that the log side of one slice may hold, in bytes; above it is spilled. 0 means DefaultMemory.
	Memory int64
	// TempDir is a local folder for spilled data; empty means the system's.
	TempDir string
	// BatchRows fixes the rows of a batch; 0 leaves it to the reader of base files.
	BatchRows int
	// Readers are slices read at once by Plan.Scan; 0 and 1 mean one after the other. Rows come in the same order.
	Readers int
	// Progress, when set, is told input bytes as slices are finished. Safe for concurrent use.
	Progress func(bytes int64)
	// Warn, when set, is told what a person should know about a file.
	Warn func(text string)
	// RepairMillis reads columns that a release labelled as microseconds by mistake as the milliseconds that they are.
	RepairMillis bool
}

// DefaultMemory of one slice's log records.
const DefaultMemory = 256 << 20

// scan is one compiled set of options for a plan.
type scan struct {
	plan   *Plan
	opts   ScanOptions
	output *arrow.Schema     // what comes out
	read   *arrow.Schema     // output, plus what the filter and the range look at
	filter *predicate.Filter // bound to read; nil when there is none
}

// formats are the base file formats beside Parquet.
func formats() map[string]basefile.Format {
	return map[string]basefile.Format{orcfile.Ext: orcfile.Format{}}
}

// Reader scans slices of a plan under one set of options. It is safe for concurrent use.
type Reader struct{ s *scan }

// Reader compiles options: it refuses columns that the table lacks and filters that make no sense.
func (p *Plan) Reader(opts ScanOptions) (*Reader, error) {
	if opts.Alloc == nil {
		opts.Alloc = memory.DefaultAllocator
	}
	if opts.Memory <= 0 {
		opts.Memory = DefaultMemory
	}
	s := &scan{plan: p, opts: opts}
	if err := s.bind(); err != nil {
		return nil, err
	}
	return &Reader{s}, nil
}

// Schema of the batches that come out.
func (r *Reader) Schema() *arrow.Schema { return r.s.output }

func (s *scan) bind() error {
	all := s.plan.columns
	s.output = all
	if s.opts.Columns != nil {
		fields := make([]arrow.Field, 0, len(s.opts.Columns))
		for _, name := range s.opts.Columns {
			i, err := column(all, name)
			if err != nil {
				return err
			}
			fields = append(fields, all.Field(i))
		}
		s.output = arrow.NewSchema(fields, nil)
	}
	need := map[string]bool{}
	for _, f := range s.output.Fields() {
		need[f.Name] = true
	}
	if s.opts.Filter != nil {
		for _, name := range predicate.Roots(s.opts.Filter) {
			i, err := column(all, name)
			if err != nil {
				return err
			}
			need[all.Field(i).Name] = true
		}
	}
	if s.plan.rows != nil {
		need[schema.CommitTime] = true
	}
	fields := make([]arrow.Field, 0, len(need))
	for _, f := range all.Fields() {
		if need[f.Name] {
			fields = append(fields, f)
		}
	}
	s.read = arrow.NewSchema(fields, nil)
	if s.opts.Filter != nil {
		var err error
		if s.filter, err = predicate.Bind(s.opts.Filter, s.read); err != nil {
			return err
		}
	}
	return nil
}

// Slices of the plan that can hold a row that passes the filter, judged by their partition.
func (r *Reader) Slices() []filegroup.Slice {
	if r.s.filter == nil {
		return r.s.plan.slices
	}
	var out []filegroup.Slice
	for _, sl := range r.s.plan.slices {
		if r.s.plan.path.canMatch(sl.Partition, r.s.filter) {
			out = append(out, sl)
		}
	}
	return out
}

// Scan yields the rows of one slice. Whoever receives a batch releases it.
func (r *Reader) Scan(ctx context.Context, sl filegroup.Slice) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for batch, err := range r.s.slice(ctx, sl) {
			if err != nil {
				yield(nil, fmt.Errorf("partition %q, file group %s: %w", sl.Partition, sl.FileID, err))
				return
			}
			out, err := r.s.finish(ctx, sl, batch)
			batch.Release()
			if err != nil {
				yield(nil, err)
				return
			}
			if out.NumRows() == 0 {
				out.Release()
				continue
			}
			if !yield(out, nil) {
				return
			}
		}
		if r.s.opts.Progress != nil {
			r.s.opts.Progress(sl.Bytes())
		}
	}
}

// slice yields the merged rows of a slice in the columns of s.read, not filtered.
func (s *scan) slice(ctx context.Context, sl filegroup.Slice) iter.Seq2[arrow.RecordBatch, error] {
	if len(sl.Logs) == 0 && sl.Base == nil {
		return func(func(arrow.RecordBatch, error) bool) {}
	}
	rows := s.merged
	if len(sl.Logs) == 0 {
		rows = func(ctx context.Context, sl filegroup.Slice) iter.Seq2[arrow.RecordBatch, error] {
			return s.base(ctx, sl, s.plan.path.fileColumns(sl.Partition, s.read), s.pushable(sl.Partition))
		}
	}
	return func(yield func(arrow.RecordBatch, error) bool) {
		for batch, err := range rows(ctx, sl) {
			if err != nil {
				yield(nil, err)
				return
			}
			out, err := s.plan.path.fill(s.opts.Alloc, sl.Partition, s.read, batch)
			batch.Release()
			if !yield(out, err) || err != nil {
				return
			}
		}
	}
}

// pushable is the filter by which a base file without logs may skip row groups and pages: all of it, unless it looks at a
// column whose values are not those of the file.
func (s *scan) pushable(partition string) predicate.Expr {
	if s.filter == nil {
		return nil
	}
	values := s.plan.path.values(partition)
	for _, name := range predicate.Roots(s.opts.Filter) {
		i, err := column(s.plan.columns, name)
		if err != nil {
			return nil
		}
		f := s.plan.columns.Field(i)
		raw := s.plan.path.raw.FieldIndices(f.Name)
		if values[f.Name] != nil || len(raw) == 0 || !arrow.TypeEqual(f.Type, s.plan.path.raw.Field(raw[0]).Type) {
			return nil
		}
	}
	return s.opts.Filter
}

// base yields the rows of a slice's base file in the given columns, which have the types of files.
func (s *scan) base(ctx context.Context, sl filegroup.Slice, columns *arrow.Schema, filter predicate.Expr) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for batch, err := range s.baseRows(ctx, sl, columns, filter) {
			if !yield(batch.RecordBatch, err) || err != nil {
				return
			}
		}
	}
}

// baseRows is base with the number of each batch's first row in the file.
func (s *scan) baseRows(ctx context.Context, sl filegroup.Slice, columns *arrow.Schema, filter predicate.Expr) iter.Seq2[basefile.Batch, error] {
	return func(yield func(basefile.Batch, error) bool) {
		f, err := basefile.Open(ctx, s.plan.src.Store, sl.Base.Name, basefile.Options{Alloc: s.opts.Alloc, Warn: s.opts.Warn, Formats: formats(), RepairMillis: s.opts.RepairMillis})
		if err != nil {
			yield(basefile.Batch{}, err)
			return
		}
		defer func() { _ = f.Close() }()
		opts := basefile.ScanOptions{
			Columns: columns, Table: s.plan.table, Filter: filter, BatchRows: s.opts.BatchRows,
			Names: s.plan.history.names(sl.Base.Instant), SchemaOnRead: s.plan.history != nil || s.plan.path.times,
		}
		for batch, err := range f.ScanRows(ctx, opts) {
			if !yield(batch, err) || err != nil {
				return
			}
		}
	}
}

// finish drops the rows that do not belong in the answer and the columns that were read only to decide that.
func (s *scan) finish(ctx context.Context, sl filegroup.Slice, batch arrow.RecordBatch) (arrow.RecordBatch, error) {
	mask, err := s.mask(batch)
	if err != nil {
		return nil, err
	}
	columns := make([]arrow.Array, s.output.NumFields())
	for i, f := range s.output.Fields() {
		at := batch.Schema().FieldIndices(f.Name)
		if len(at) == 0 {
			return nil, fmt.Errorf("column %s is missing from file group %s", f.Name, sl.FileID)
		}
		columns[i] = batch.Column(at[0])
	}
	out := array.NewRecordBatch(s.output, columns, batch.NumRows())
	if mask == nil {
		return out, nil
	}
	defer out.Release()
	defer mask.Release()
	return compute.FilterRecordBatch(compute.WithAllocator(ctx, s.opts.Alloc), out, mask, compute.DefaultFilterOptions())
}

// mask says which rows of a batch stay; nil when all do.
func (s *scan) mask(batch arrow.RecordBatch) (*array.Boolean, error) {
	var mask *array.Boolean
	if s.filter != nil {
		mask = s.filter.Eval(s.opts.Alloc, batch)
	}
	if s.plan.rows == nil {
		return mask, nil
	}
	if mask != nil {
		defer mask.Release()
	}
	return s.rangeMask(batch, mask)
}

// rangeMask says which rows were written in the range of an incremental query; with a mask, which of its rows.
func (s *scan) rangeMask(batch arrow.RecordBatch, mask *array.Boolean) (*array.Boolean, error) {
	at := batch.Schema().FieldIndices(schema.CommitTime)
	times, ok := batch.Column(at[0]).(*array.String)
	if !ok {
		return nil, fmt.Errorf("column %s is no text", schema.CommitTime)
	}
	b := array.NewBooleanBuilder(s.opts.Alloc)
	defer b.Release()
	for i := range times.Len() {
		keep := !times.IsNull(i) && s.plan.rows.contains(times.Value(i)) &&
			(mask == nil || mask.Value(i))
		b.Append(keep)
	}
	return b.NewBooleanArray(), nil
}

// All yields the rows of every slice, in the order of Slices. With Readers above 1 so many slices are read ahead.
func (r *Reader) All(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
	slices := r.Slices()
	if r.s.opts.Readers > 1 && len(slices) > 1 {
		return r.ahead(ctx, slices)
	}
	return func(yield func(arrow.RecordBatch, error) bool) {
		for _, sl := range slices {
			for batch, err := range r.Scan(ctx, sl) {
				if !yield(batch, err) || err != nil {
					return
				}
			}
		}
	}
}

// item is a batch or an error on its way from a reader.
type item struct {
	batch arrow.RecordBatch
	err   error
}

// ahead reads several slices at once into short queues and hands their batches out in order.
func (r *Reader) ahead(ctx context.Context, slices []filegroup.Slice) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		queues := make([]chan item, len(slices))
		for i := range queues {
			queues[i] = make(chan item, 2)
		}
		slots := make(chan struct{}, r.s.opts.Readers)
		go func() {
			for i, sl := range slices {
				select {
				case slots <- struct{}{}:
				case <-ctx.Done():
					for _, q := range queues[i:] {
						close(q)
					}
					return
				}
				go func() {
					defer func() { close(queues[i]); <-slots }()
					for batch, err := range r.Scan(ctx, sl) {
						select {
						case queues[i] <- item{batch, err}:
						case <-ctx.Done():
							if batch != nil {
								batch.Release()
							}
							return
						}
					}
				}()
			}
		}()
		defer func() {
			cancel()
			for _, q := range queues {
				for it := range q {
					if it.batch != nil {
						it.batch.Release()
					}
				}
			}
		}()
		for _, q := range queues {
			for it := range q {
				if !yield(it.batch, it.err) || it.err != nil {
					return
				}
			}
		}
		if err := context.Cause(ctx); err != nil {
			yield(nil, err)
		}
	}
}
