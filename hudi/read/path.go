package read

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/keygen"
	"github.com/sluicelake/sluice/hudi/predicate"
)

// pathColumns knows which columns take their values from the partition path, by the rule of package keygen. Apache Hudi's
// Spark readers (0.14 to 1.2) do so for every partition column that a plain key generator wrote; incremental queries of
// tables below version 8 take them from the file. Columns of a timestamp key generator come from the file, as the path has
// lost a part of them (0.15.0 returns that path); from version 8 on whole numbers among them read as text, as in 1.2.0.
// Columns that the table drops from its files come from the path as text.
type pathColumns struct {
	output  *arrow.Schema // every column as a reader sees it
	raw     *arrow.Schema // every column as the files have it
	rule    *keygen.PathRule
	dropped bool
	// times: a timestamp key generator. Spark sees its columns as text, and an update in Spark SQL makes that the table's
	// type, over files that hold numbers.
	times bool
}

func newPathColumns(cfg *config.Table, columns *arrow.Schema, fromFiles bool) *pathColumns {
	p := &pathColumns{output: columns, raw: columns, dropped: cfg.DropPartitionColumns,
		times: strings.Contains(strings.ToUpper(cfg.KeyGenerator), "TIMESTAMP")}
	if !cfg.IsPartitioned() || fromFiles && !p.dropped {
		return p
	}
	p.rule = keygen.NewPathRule(cfg)
	fields := slices.Clone(columns.Fields())
	for _, f := range p.rule.Columns(func(name string) (arrow.DataType, bool) {
		if at := columns.FieldIndices(name); len(at) > 0 {
			return columns.Field(at[0]).Type, true
		}
		return nil, false
	}) {
		i := slices.IndexFunc(fields, func(in arrow.Field) bool { return in.Name == f.Name })
		switch {
		case i < 0 && p.dropped:
			fields = append(fields, f)
		case i >= 0 && (p.dropped || cfg.Version >= 8 && arrow.IsInteger(fields[i].Type.ID())):
			fields[i].Type = f.Type
		}
	}
	p.output = arrow.NewSchema(fields, nil)
	if p.dropped {
		p.raw = p.output
	}
	return p
}

// values parses a partition path. A column that the path does not tell, or whose text does not fit its type, is left to
// the file.
func (p *pathColumns) values(partition string) map[string]scalar.Scalar {
	if p.rule == nil {
		return nil
	}
	parsed, err := p.rule.Values(partition)
	if err != nil {
		return nil
	}
	out := make(map[string]scalar.Scalar, len(parsed))
	for _, v := range parsed {
		at := p.output.FieldIndices(v.Column)
		if len(at) == 0 || v.InFile && !p.dropped {
			continue
		}
		if typed, err := v.Typed(p.output.Field(at[0]).Type); err == nil {
			out[v.Column] = typed
		}
	}
	return out
}

// fileColumns are those of the wanted columns that a file of the partition is asked for, in the types of files.
func (p *pathColumns) fileColumns(partition string, columns *arrow.Schema) *arrow.Schema {
	values := p.values(partition)
	fields := make([]arrow.Field, 0, columns.NumFields())
	for _, f := range columns.Fields() {
		if values[f.Name] == nil {
			at := p.raw.FieldIndices(f.Name)
			fields = append(fields, p.raw.Field(at[0]))
		}
	}
	return arrow.NewSchema(fields, nil)
}

// fill makes the wanted columns out of a batch that was read of a file of the partition: it adds the columns from the path
// and turns the numbers of a timestamp key generator to text.
func (p *pathColumns) fill(mem memory.Allocator, partition string, columns *arrow.Schema, batch arrow.RecordBatch) (arrow.RecordBatch, error) {
	values := p.values(partition)
	out := make([]arrow.Array, columns.NumFields())
	fields := columns.Fields()
	defer func() {
		for _, a := range out {
			if a != nil {
				a.Release()
			}
		}
	}()
	for i, f := range fields {
		var err error
		if v := values[f.Name]; v != nil {
			out[i], err = scalar.MakeArrayFromScalar(v, int(batch.NumRows()), mem)
			if err != nil {
				return nil, fmt.Errorf("partition column %s: %w", f.Name, err)
			}
			continue
		}
		at := batch.Schema().FieldIndices(f.Name)
		if len(at) == 0 {
			return nil, fmt.Errorf("column %s was not read", f.Name)
		}
		col := batch.Column(at[0])
		if !arrow.TypeEqual(col.DataType(), f.Type) {
			out[i] = numbersAsText(mem, col)
			continue
		}
		col.Retain()
		out[i] = col
		fields[i] = batch.Schema().Field(at[0]) // nullability as the file side resolved it
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), out, batch.NumRows()), nil
}

// canMatch reports whether a row of the partition can pass a filter, as far as its path tells.
func (p *pathColumns) canMatch(partition string, filter *predicate.Filter) bool {
	values := p.values(partition)
	if len(values) == 0 {
		return true
	}
	return filter.CanMatch(func(name string) (predicate.ColumnStats, bool) {
		v := values[name]
		if v == nil {
			return predicate.ColumnStats{}, false
		}
		if !v.IsValid() {
			return predicate.ColumnStats{Nulls: 1, Rows: 1}, true
		}
		one, err := scalar.MakeArrayFromScalar(v, 1, memory.DefaultAllocator)
		if err != nil {
			return predicate.ColumnStats{}, false
		}
		defer one.Release()
		at := predicate.ValueAt(one, 0)
		return predicate.ColumnStats{Min: at, Max: at, Rows: 1}, true
	})
}

// numbersAsText is the text column of a column of whole numbers.
func numbersAsText(mem memory.Allocator, in arrow.Array) arrow.Array {
	b := array.NewStringBuilder(mem)
	defer b.Release()
	for i := range in.Len() {
		if in.IsNull(i) {
			b.AppendNull()
		} else {
			b.Append(in.ValueStr(i))
		}
	}
	return b.NewArray()
}
