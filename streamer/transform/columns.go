package transform

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/expr-lang/expr/vm"

	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/internal/formula"
)

// AddColumns appends columns made by expressions in the language of expr-lang, with no need of SQL:
//
//	sluice.add.columns = total double = price * (qty ?? 0); region string = upper(country)
//
// A column of the same name is replaced at its place. Expressions see the columns of the rows that came in. Numbers, text and
// booleans are themselves, timestamps and dates a time in UTC, decimals their text, bytes a text of those bytes, arrays a list,
// structs and maps with text keys a map, null is nil. The type is one of boolean, int, long, float, double, string, date,
// timestamp; nil makes null.
type AddColumns struct {
	columns []added
	mem     memory.Allocator
}

type added struct {
	name, text string
	typ        arrow.DataType
	program    *vm.Program
	uses       []string
}

func newAddColumns(props properties, o Options) (Transformer, error) {
	text, err := props.need(KeyAddColumns)
	if err != nil {
		return nil, err
	}
	return NewAddColumns(text, o.Allocator)
}

// NewAddColumns compiles "name type = expression; …". Errors wrap [ErrConfig]. A nil allocator is Go's heap.
func NewAddColumns(text string, mem memory.Allocator) (*AddColumns, error) {
	if mem == nil {
		mem = memory.DefaultAllocator
	}
	t := &AddColumns{mem: mem}
	formulas, err := formula.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrConfig, KeyAddColumns, err)
	}
	for _, f := range formulas {
		c, err := columnOf(f)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %q: %w", ErrConfig, KeyAddColumns, f.Head+" = "+f.Text, err)
		}
		for _, other := range t.columns {
			if strings.EqualFold(other.name, c.name) {
				return nil, fmt.Errorf("%w: %s: the column %s stands twice", ErrConfig, KeyAddColumns, c.name)
			}
		}
		t.columns = append(t.columns, c)
	}
	if len(t.columns) == 0 {
		return nil, fmt.Errorf("%w: %s names no column; write: total double = price * qty", ErrConfig, KeyAddColumns)
	}
	return t, nil
}

func columnOf(f formula.Formula) (c added, err error) {
	words := strings.Fields(f.Head)
	if len(words) != 2 {
		return c, fmt.Errorf("it is not NAME TYPE = EXPRESSION")
	}
	c = added{name: words[0], text: f.Text, uses: f.Uses, program: f.Program}
	switch strings.ToLower(words[1]) {
	case "boolean":
		c.typ = arrow.FixedWidthTypes.Boolean
	case "int":
		c.typ = arrow.PrimitiveTypes.Int32
	case "long", "bigint":
		c.typ = arrow.PrimitiveTypes.Int64
	case "float":
		c.typ = arrow.PrimitiveTypes.Float32
	case "double":
		c.typ = arrow.PrimitiveTypes.Float64
	case "string":
		c.typ = arrow.BinaryTypes.String
	case "date":
		c.typ = arrow.FixedWidthTypes.Date32
	case "timestamp":
		c.typ = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: schema.UTC}
	default:
		return c, fmt.Errorf("type %s is none of boolean, int, long, float, double, string, date, timestamp", words[1])
	}
	return c, nil
}

// Apply implements [Transformer].
func (t *AddColumns) Apply(ctx context.Context, in *arrow.Schema, rows iter.Seq2[arrow.RecordBatch, error]) (*arrow.Schema, iter.Seq2[arrow.RecordBatch, error], error) {
	fields := in.Fields()
	fields = fields[:len(fields):len(fields)]
	at := make([]int, len(t.columns))
	var used []int
	for i, c := range t.columns {
		for _, name := range c.uses {
			index := in.FieldIndices(name)
			if len(index) == 0 {
				return nil, nil, fmt.Errorf("%w: %s: the expression of %s uses %s, which is no column; there are %s", ErrConfig, KeyAddColumns, c.name, name, columnNames(in))
			}
			used = append(used, index[0])
		}
		f := arrow.Field{Name: c.name, Type: c.typ, Nullable: true}
		at[i] = len(fields)
		for j, old := range fields {
			if strings.EqualFold(old.Name, c.name) {
				at[i] = j
			}
		}
		if at[i] < len(fields) {
			fields = append([]arrow.Field(nil), fields...)
			fields[at[i]] = f
		} else {
			fields = append(fields, f)
		}
	}
	md := in.Metadata()
	out := arrow.NewSchema(fields, &md)
	first := int64(0)
	return out, each(ctx, in, rows, func(batch arrow.RecordBatch) (arrow.RecordBatch, error) {
		columns := make([]arrow.Array, len(fields))
		copy(columns, batch.Columns())
		made, err := t.compute(batch, used, first)
		if err != nil {
			return nil, err
		}
		for i, a := range made {
			columns[at[i]] = a
			defer a.Release()
		}
		first += batch.NumRows()
		return array.NewRecordBatch(out, columns, batch.NumRows()), nil
	}), nil
}

// compute gives the new columns of one batch, whose first row is the given one of the round.
func (t *AddColumns) compute(batch arrow.RecordBatch, used []int, first int64) (made []arrow.Array, err error) {
	builders := make([]array.Builder, len(t.columns))
	for i, c := range t.columns {
		builders[i] = array.NewBuilder(t.mem, c.typ)
		defer builders[i].Release()
	}
	env := map[string]any{}
	var machine vm.VM
	for row := range int(batch.NumRows()) {
		for _, i := range used {
			env[batch.ColumnName(i)] = exprValue(batch.Column(i), row)
		}
		for i, c := range t.columns {
			v, err := machine.Run(c.program, env)
			if err == nil {
				err = appendValue(builders[i], v)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: column %s = %s, row %d of the round: %w", KeyAddColumns, c.name, c.text, first+int64(row)+1, err)
			}
		}
	}
	for _, b := range builders {
		made = append(made, b.NewArray())
	}
	return made, nil
}

func columnNames(s *arrow.Schema) string {
	names := make([]string, s.NumFields())
	for i, f := range s.Fields() {
		names[i] = f.Name
	}
	return strings.Join(names, ", ")
}

// exprValue is what a value is in an expression.
func exprValue(a arrow.Array, row int) any {
	if a.IsNull(row) {
		return nil
	}
	switch a := a.(type) {
	case *array.Boolean:
		return a.Value(row)
	case *array.Int8:
		return int(a.Value(row))
	case *array.Int16:
		return int(a.Value(row))
	case *array.Int32:
		return int(a.Value(row))
	case *array.Int64:
		return int(a.Value(row))
	case *array.Uint8:
		return int(a.Value(row))
	case *array.Uint16:
		return int(a.Value(row))
	case *array.Uint32:
		return int(a.Value(row))
	case *array.Time32:
		return int(a.Value(row))
	case *array.Time64:
		return int(a.Value(row))
	case *array.Float32:
		return float64(a.Value(row))
	case *array.Float64:
		return a.Value(row)
	case *array.String:
		return strings.Clone(a.Value(row))
	case *array.LargeString:
		return strings.Clone(a.Value(row))
	case *array.Binary:
		return string(a.Value(row))
	case *array.FixedSizeBinary:
		return string(a.Value(row))
	case *array.Date32:
		return time.Unix(int64(a.Value(row))*86400, 0).UTC()
	case *array.Timestamp:
		return a.Value(row).ToTime(a.DataType().(*arrow.TimestampType).Unit).UTC()
	case *array.Dictionary:
		return exprValue(a.Dictionary(), a.GetValueIndex(row))
	case *array.Struct:
		m := map[string]any{}
		for i, f := range a.DataType().(*arrow.StructType).Fields() {
			m[f.Name] = exprValue(a.Field(i), row)
		}
		return m
	case *array.Map:
		m := map[string]any{}
		from, to := a.ValueOffsets(row)
		for i := from; i < to; i++ {
			m[fmt.Sprint(exprValue(a.Keys(), int(i)))] = exprValue(a.Items(), int(i))
		}
		return m
	case array.ListLike:
		from, to := a.ValueOffsets(row)
		list := make([]any, 0, to-from)
		for i := from; i < to; i++ {
			list = append(list, exprValue(a.ListValues(), int(i)))
		}
		return list
	}
	return a.ValueStr(row)
}

// appendValue adds what an expression gave. A number goes into another kind of number where it keeps its value.
func appendValue(b array.Builder, v any) error {
	if v == nil {
		b.AppendNull()
		return nil
	}
	misfit := fmt.Errorf("it gives %v (%T), not a %s", v, v, b.Type())
	var whole int64
	var isWhole bool
	switch x := v.(type) {
	case int:
		whole, isWhole = int64(x), true
	case int64:
		whole, isWhole = x, true
	case float64:
		if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
			whole, isWhole = int64(x), true
		}
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		x, ok := v.(bool)
		if !ok {
			return misfit
		}
		b.Append(x)
	case *array.Int32Builder:
		if !isWhole || whole != int64(int32(whole)) {
			return misfit
		}
		b.Append(int32(whole))
	case *array.Int64Builder:
		if !isWhole {
			return misfit
		}
		b.Append(whole)
	case *array.Float32Builder:
		x, ok := toFloat(v)
		if !ok {
			return misfit
		}
		b.Append(float32(x))
	case *array.Float64Builder:
		x, ok := toFloat(v)
		if !ok {
			return misfit
		}
		b.Append(x)
	case *array.StringBuilder:
		x, ok := v.(string)
		if !ok {
			return misfit
		}
		b.Append(x)
	case *array.Date32Builder:
		x, ok := v.(time.Time)
		if !ok {
			return misfit
		}
		b.Append(arrow.Date32FromTime(x.UTC()))
	case *array.TimestampBuilder:
		x, ok := v.(time.Time)
		if !ok {
			return misfit
		}
		b.Append(arrow.Timestamp(x.UnixMicro()))
	default:
		return misfit
	}
	return nil
}

func toFloat(v any) (float64, bool) {
	switch x := v.(type) {
	case int:
		return float64(x), true
	case int64:
		return float64(x), true
	case float64:
		return x, true
	}
	return 0, false
}
