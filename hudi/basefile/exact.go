package basefile

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/sluicelake/sluice/hudi/predicate"
	"github.com/sluicelake/sluice/hudi/schema"
)

// scanExact scans with the filter's columns beside the wanted ones, drops the rows that do not pass, and then those columns.
func (f *parquetFile) scanExact(ctx context.Context, o ScanOptions, yield func(arrow.RecordBatch, error) bool) {
	wanted := 0
	if o.Columns != nil {
		wanted = o.Columns.NumFields()
		o.Columns = f.withFilterColumns(o)
	}
	bindTo := o.Columns
	if bindTo == nil {
		bindTo = f.schema
	}
	filter, err := predicate.Bind(o.Filter, bindTo)
	if err != nil {
		yield(nil, f.wrap(err))
		return
	}
	mem := o.Alloc
	if mem == nil {
		mem = f.options.alloc()
	}
	for b, err := range f.ScanRows(ctx, o) {
		if err != nil {
			yield(nil, err)
			return
		}
		out, err := keepRows(ctx, mem, filter, b.RecordBatch, wanted)
		if err != nil {
			yield(nil, f.wrap(err))
			return
		}
		if out != nil && !yield(out, nil) {
			return
		}
	}
}

// withFilterColumns adds the filter's columns that are not wanted.
func (f *parquetFile) withFilterColumns(o ScanOptions) *arrow.Schema {
	fields := append([]arrow.Field(nil), o.Columns.Fields()...)
	for _, name := range predicate.Roots(o.Filter) {
		if at, err := schema.FindField(fields, name); err != nil || at >= 0 {
			continue
		}
		if at, err := schema.FindField(f.schema.Fields(), name); err == nil && at >= 0 {
			fields = append(fields, f.schema.Field(at))
		}
	}
	return arrow.NewSchema(fields, nil)
}

// keepRows releases b and gives the rows of its first columns (0: all columns) that pass, nil where none do.
func keepRows(ctx context.Context, mem memory.Allocator, filter *predicate.Filter, b arrow.RecordBatch, columns int) (arrow.RecordBatch, error) {
	defer b.Release()
	mask := filter.Eval(mem, b)
	defer mask.Release()
	passing := 0
	for i := range mask.Len() {
		if mask.Value(i) {
			passing++
		}
	}
	if passing == 0 {
		return nil, nil
	}
	if columns > 0 && columns < int(b.NumCols()) {
		narrow := array.NewRecordBatch(arrow.NewSchema(b.Schema().Fields()[:columns], nil), b.Columns()[:columns], b.NumRows())
		defer narrow.Release()
		b = narrow
	}
	if passing == int(b.NumRows()) {
		b.Retain()
		return b, nil
	}
	return compute.FilterRecordBatch(compute.WithAllocator(ctx, mem), b, mask, compute.DefaultFilterOptions())
}
