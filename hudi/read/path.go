package read

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/keygen"
	"github.com/sluicelake/sluice/hudi/predicate"
)

// nullPartition stands in a path for a null or empty value.
const nullPartition = "__HIVE_DEFAULT_PARTITION__"

// pathColumns knows which columns take their values from the partition path. Apache Hudi's Spark readers (0.14 to 1.2) do
// so for every partition column that a plain key generator wrote: the text of the path segment, unescaped whatever the
// table's encoding says, null where the path has the null marker. Incremental queries of tables below version 8 take them
// from the file. Columns of a timestamp key generator always come from the file, as the path has lost a part of them (0.15.0
// returns that path); from version 8 on whole numbers among them read as text, as in 1.2.0. Columns that the table drops from
// its files come from the path as text.
type pathColumns struct {
	output *arrow.Schema // every column as a reader sees it
	raw    *arrow.Schema // every column as the files have it
	fields []string      // partition columns from the path, in path order; nil when paths are not read
	hive   bool
}

func newPathColumns(cfg *config.Table, columns *arrow.Schema, incremental bool) *pathColumns {
	p := &pathColumns{output: columns, raw: columns, hive: cfg.HiveStyle}
	if !cfg.IsPartitioned() {
		return p
	}
	fields := slices.Clone(columns.Fields())
	index := func(name string) int {
		return slices.IndexFunc(fields, func(f arrow.Field) bool { return f.Name == name })
	}
	kind := keyGenerator(cfg)
	switch {
	case cfg.DropPartitionColumns:
		for _, name := range cfg.PartitionFields {
			text := arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: true}
			if i := index(name); i >= 0 {
				fields[i] = text
			} else {
				fields = append(fields, text)
			}
		}
		p.fields = cfg.PartitionFields
		p.raw = arrow.NewSchema(fields, nil)
	case kind == timestampKeys && cfg.Version >= 8:
		for _, name := range cfg.PartitionFields {
			if i := index(name); i >= 0 && arrow.IsInteger(fields[i].Type.ID()) {
				fields[i].Type = arrow.BinaryTypes.String
			}
		}
	case kind == plainKeys && (cfg.Version >= 8 || !incremental):
		p.fields = cfg.PartitionFields
	}
	p.output = arrow.NewSchema(fields, nil)
	return p
}

// keyKind sorts key generators by what a path says about the columns.
type keyKind uint8

const (
	plainKeys     keyKind = iota // the path holds the values
	timestampKeys                // the path holds dates made of the values
	otherKeys                    // custom ones: only the files are sure
)

func keyGenerator(cfg *config.Table) keyKind {
	name := strings.TrimPrefix(cfg.KeyGenerator, "org.apache.hudi.keygen.")
	if cfg.SlashDates || slices.Contains(cfg.PartitionTypes, "TIMESTAMP") {
		return otherKeys
	}
	switch name {
	case "", "SIMPLE", "SIMPLE_AVRO", "COMPLEX", "COMPLEX_AVRO", "NON_PARTITION", "NON_PARTITION_AVRO",
		"SimpleKeyGenerator", "SimpleAvroKeyGenerator", "ComplexKeyGenerator", "ComplexAvroKeyGenerator":
		return plainKeys
	case "TIMESTAMP", "TIMESTAMP_AVRO", "TimestampBasedKeyGenerator", "TimestampBasedAvroKeyGenerator":
		return timestampKeys
	}
	return otherKeys
}

// values parses a partition path. A column whose text does not fit its type, and every column of a path with another
// number of segments than the table has fields, is left to the file.
func (p *pathColumns) values(partition string) map[string]scalar.Scalar {
	if len(p.fields) == 0 {
		return nil
	}
	segments := []string{partition}
	if len(p.fields) > 1 {
		segments = strings.Split(partition, "/")
	}
	out := make(map[string]scalar.Scalar, len(p.fields))
	if len(segments) != len(p.fields) {
		return out
	}
	for i, name := range p.fields {
		text, ok := segments[i], true
		if p.hive {
			text, ok = strings.CutPrefix(text, name+"=")
		}
		at := p.output.FieldIndices(name)
		if !ok || len(at) == 0 {
			continue
		}
		if v, err := typed(keygen.Unescape(text), p.output.Field(at[0]).Type); err == nil {
			out[name] = v
		}
	}
	return out
}

// typed gives the value of a path's text in a column's type.
func typed(text string, dt arrow.DataType) (scalar.Scalar, error) {
	if text == nullPartition || text == "" {
		return scalar.MakeNullScalar(dt), nil
	}
	switch t := dt.(type) {
	case *arrow.StringType:
		return scalar.NewStringScalar(text), nil
	case *arrow.BooleanType:
		v, err := strconv.ParseBool(text)
		return scalar.NewBooleanScalar(v), err
	case *arrow.Int32Type:
		v, err := strconv.ParseInt(text, 10, 32)
		return scalar.NewInt32Scalar(int32(v)), err
	case *arrow.Int64Type:
		v, err := strconv.ParseInt(text, 10, 64)
		return scalar.NewInt64Scalar(v), err
	case *arrow.Float32Type:
		v, err := strconv.ParseFloat(text, 32)
		return scalar.NewFloat32Scalar(float32(v)), err
	case *arrow.Float64Type:
		v, err := strconv.ParseFloat(text, 64)
		return scalar.NewFloat64Scalar(v), err
	case *arrow.Date32Type:
		v, err := time.Parse(time.DateOnly, text)
		return scalar.NewDate32Scalar(arrow.Date32FromTime(v)), err
	case *arrow.Decimal128Type:
		v, err := decimal128.FromString(text, t.Precision, t.Scale)
		return scalar.NewDecimal128Scalar(v, t), err
	}
	return nil, fmt.Errorf("no partition value of type %s is made of text", dt)
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
