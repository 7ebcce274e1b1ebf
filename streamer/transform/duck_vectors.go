//go:build cgo && !nocgo

package transform

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	mapping "github.com/duckdb/duckdb-go-bindings"
	"github.com/sluicelake/sluice/streamer/transform/sparksql"
)

// filler writes Arrow batches into chunks of DuckDB.
type filler struct {
	columns []*sparksql.Type
	types   []mapping.LogicalType
	chunk   mapping.DataChunk
}

func newFiller(columns []*sparksql.Type) (*filler, error) {
	f := &filler{columns: columns, types: []mapping.LogicalType{mapping.CreateLogicalType(mapping.TypeBoolean)}}
	for _, t := range columns {
		f.types = append(f.types, logicalType(t))
	}
	if f.chunk = mapping.CreateDataChunk(f.types); f.chunk.Ptr == nil {
		f.close()
		return nil, errors.New("SQL: DuckDB makes no chunk for the rows")
	}
	return f, nil
}

func (f *filler) close() {
	if f.chunk.Ptr != nil {
		mapping.DestroyDataChunk(&f.chunk)
	}
	for i := range f.types {
		mapping.DestroyLogicalType(&f.types[i])
	}
}

// batch appends the used columns of a batch.
func (f *filler) batch(appender mapping.Appender, batch arrow.RecordBatch, uses []int) error {
	size := int(mapping.VectorSize())
	for from := 0; from < int(batch.NumRows()); from += size {
		n := min(size, int(batch.NumRows())-from)
		mapping.DataChunkReset(f.chunk)
		clear(unsafe.Slice((*byte)(mapping.VectorGetData(mapping.DataChunkGetVector(f.chunk, 0))), n))
		for i, index := range uses {
			v := mapping.DataChunkGetVector(f.chunk, mapping.IdxT(i+1))
			if err := fillVector(v, f.columns[i], batch.Column(index), from, n); err != nil {
				return fmt.Errorf("column %s: %w", batch.ColumnName(index), err)
			}
		}
		mapping.DataChunkSetSize(f.chunk, mapping.IdxT(n))
		if mapping.AppendDataChunk(appender, f.chunk) == mapping.StateError {
			return errors.New("SQL: loading rows: " + mapping.AppenderError(appender))
		}
	}
	return nil
}

// fillVector writes n values of an array, from one on, to the start of a vector. A vector's memory is laid out by its type
// alone: each case writes elements of the width that logicalType gives the kind.
func fillVector(v mapping.Vector, t *sparksql.Type, a arrow.Array, from, n int) error {
	if n == 0 {
		return nil
	}
	if a.NullN() > 0 || a.DataType().ID() == arrow.NULL {
		valid := writableValidity(v, 0, n)
		for i := range valid {
			valid[i] = ^uint64(0)
		}
		for i := range n {
			if a.IsNull(from + i) {
				valid[i/64] &^= 1 << (i % 64)
			}
		}
	}
	data := mapping.VectorGetData(v)
	switch a := a.(type) {
	case *array.Null:
	case *array.Boolean:
		for i := range n {
			put(data, i, a.Value(from+i))
		}
	case *array.Int8:
		copy(unsafe.Slice((*int8)(data), n), a.Int8Values()[from:])
	case *array.Int16:
		copy(unsafe.Slice((*int16)(data), n), a.Int16Values()[from:])
	case *array.Int32:
		copy(unsafe.Slice((*int32)(data), n), a.Int32Values()[from:])
	case *array.Int64:
		copy(unsafe.Slice((*int64)(data), n), a.Int64Values()[from:])
	case *array.Uint8:
		for i := range n {
			put(data, i, int16(a.Value(from+i)))
		}
	case *array.Uint16:
		for i := range n {
			put(data, i, int32(a.Value(from+i)))
		}
	case *array.Uint32:
		for i := range n {
			put(data, i, int64(a.Value(from+i)))
		}
	case *array.Uint64:
		for i := range n {
			put(data, i, decimal128.FromU64(a.Value(from+i)))
		}
	case *array.Float32:
		copy(unsafe.Slice((*float32)(data), n), a.Float32Values()[from:])
	case *array.Float64:
		copy(unsafe.Slice((*float64)(data), n), a.Float64Values()[from:])
	case *array.Date32:
		copy(unsafe.Slice((*arrow.Date32)(data), n), a.Date32Values()[from:])
	case *array.Timestamp:
		return fillTimes(data, a, from, n)
	case *array.Time32:
		for i := range n {
			put(data, i, int64(a.Value(from+i))*1000)
			if a.DataType().(*arrow.Time32Type).Unit == arrow.Second {
				put(data, i, int64(a.Value(from+i))*1000000)
			}
		}
	case *array.Time64:
		for i := range n {
			x := int64(a.Value(from + i))
			if a.DataType().(*arrow.Time64Type).Unit == arrow.Nanosecond {
				x /= 1000
			}
			put(data, i, x)
		}
	case *array.Decimal128:
		return fillDecimals(data, t, a, from, n)
	case *array.String:
		return fillTexts(v, data, from, n, a.IsValid, a.Value, true)
	case *array.LargeString:
		return fillTexts(v, data, from, n, a.IsValid, a.Value, true)
	case *array.Binary:
		return fillTexts(v, data, from, n, a.IsValid, a.ValueString, false)
	case *array.LargeBinary:
		return fillTexts(v, data, from, n, a.IsValid, a.ValueString, false)
	case *array.FixedSizeBinary:
		return fillTexts(v, data, from, n, a.IsValid, func(i int) string {
			b := a.Value(i)
			return unsafe.String(unsafe.SliceData(b), len(b))
		}, false)
	case *array.Dictionary:
		return fillDictionary(v, t, a, from, n)
	case *array.Struct:
		for i, f := range t.Fields {
			if err := fillVector(mapping.StructVectorGetChild(v, mapping.IdxT(i)), f.Type, a.Field(i), from, n); err != nil {
				return fmt.Errorf("%s: %w", f.Name, err)
			}
		}
	case *array.Map:
		return fillMap(v, data, t, a, from, n)
	case array.ListLike:
		child, first, count, err := listEntries(v, data, a, from, n)
		if err != nil {
			return err
		}
		return fillVector(child, t.Fields[0].Type, a.ListValues(), first, count)
	default:
		return fmt.Errorf("columns of type %s can't be used in SQL", a.DataType())
	}
	return nil
}

func fillTimes(data unsafe.Pointer, a *array.Timestamp, from, n int) error {
	out := unsafe.Slice((*int64)(data), n)
	values := a.TimestampValues()[from : from+n]
	factor := int64(1)
	switch a.DataType().(*arrow.TimestampType).Unit {
	case arrow.Microsecond:
		copy(unsafe.Slice((*arrow.Timestamp)(data), n), values)
		return nil
	case arrow.Nanosecond: // down, also before 1970
		for i, x := range values {
			out[i] = int64(x) / 1000
			if x < 0 && x%1000 != 0 {
				out[i]--
			}
		}
		return nil
	case arrow.Millisecond:
		factor = 1000
	case arrow.Second:
		factor = 1000000
	}
	for i, x := range values {
		if out[i] = int64(x) * factor; out[i]/factor != int64(x) {
			if a.IsNull(from + i) {
				out[i] = 0
				continue
			}
			return fmt.Errorf("timestamp %d is out of the range of microseconds", x)
		}
	}
	return nil
}

// fillDecimals writes decimals in the width that DuckDB gives their precision: 2, 4, 8 or 16 bytes.
func fillDecimals(data unsafe.Pointer, t *sparksql.Type, a *array.Decimal128, from, n int) error {
	scale := a.DataType().(*arrow.Decimal128Type).Scale
	for i := range n {
		if a.IsNull(from + i) {
			continue
		}
		x := a.Value(from + i)
		if scale < 0 {
			x = x.IncreaseScaleBy(-scale)
		}
		if !x.FitsInPrecision(int32(t.Precision)) {
			return fmt.Errorf("the value %s has more digits than %s", x.BigInt(), t)
		}
		switch {
		case t.Precision <= 4:
			put(data, i, int16(x.LowBits()))
		case t.Precision <= 9:
			put(data, i, int32(x.LowBits()))
		case t.Precision <= 18:
			put(data, i, int64(x.LowBits()))
		default: // both are 8 low bytes, then 8 high ones
			put(data, i, [2]uint64{x.LowBits(), uint64(x.HighBits())})
		}
	}
	return nil
}

func fillTexts(v mapping.Vector, data unsafe.Pointer, from, n int, isValid func(int) bool, value func(int) string, text bool) error {
	for i := range n {
		if !isValid(from + i) {
			put(data, i, [16]byte{})
			continue
		}
		s := value(from + i)
		if text && !utf8.ValidString(s) {
			s = strings.ToValidUTF8(s, "\ufffd") // what Java makes of such bytes
		}
		putText(v, data, i, s)
	}
	return nil
}

func fillDictionary(v mapping.Vector, t *sparksql.Type, a *array.Dictionary, from, n int) error {
	values, ok := a.Dictionary().(*array.String)
	if !ok {
		return fmt.Errorf("dictionaries of %s can't be used in SQL", a.Dictionary().DataType())
	}
	if values.NullN() > 0 {
		return errors.New("a dictionary with a null value can't be used in SQL")
	}
	data := mapping.VectorGetData(v)
	return fillTexts(v, data, from, n, a.IsValid, func(i int) string { return values.Value(a.GetValueIndex(i)) }, true)
}

type listEntry struct{ offset, length uint64 }

// listEntries writes where each list's elements are, and makes room for them: count from the array's first one on.
func listEntries(v mapping.Vector, data unsafe.Pointer, a array.ListLike, from, n int) (child mapping.Vector, first, count int, err error) {
	low, _ := a.ValueOffsets(from)
	high := low
	for i := range n {
		start, end := a.ValueOffsets(from + i)
		if start < low || end < start {
			return child, 0, 0, fmt.Errorf("the offsets of a list go back at row %d", from+i)
		}
		high = max(high, end)
		put(data, i, listEntry{uint64(start - low), uint64(end - start)})
	}
	count = int(high - low)
	if mapping.ListVectorReserve(v, mapping.IdxT(count)) == mapping.StateError || mapping.ListVectorSetSize(v, mapping.IdxT(count)) == mapping.StateError {
		return child, 0, 0, errors.New("DuckDB has no room for the elements of a list")
	}
	return mapping.ListVectorGetChild(v), int(low), count, nil
}

func fillMap(v mapping.Vector, data unsafe.Pointer, t *sparksql.Type, a *array.Map, from, n int) error {
	child, first, count, err := listEntries(v, data, a, from, n)
	if err != nil {
		return err
	}
	if err := fillVector(mapping.StructVectorGetChild(child, 0), t.Fields[0].Type, a.Keys(), first, count); err != nil {
		return fmt.Errorf("key: %w", err)
	}
	if err := fillVector(mapping.StructVectorGetChild(child, 1), t.Fields[1].Type, a.Items(), first, count); err != nil {
		return fmt.Errorf("value: %w", err)
	}
	return nil
}

// readVector appends values [from, from+n) of a flat vector to a builder. Values of which parent (by index from 0) is false are
// null whatever the vector says: members of a null struct.
func readVector(v mapping.Vector, t *sparksql.Type, from, n int, parent []bool, b array.Builder) error {
	d := vectorData{mapping.VectorGetData(v), mapping.VectorGetValidity(v)}
	valid := parent
	if d.validity != nil {
		valid = make([]bool, n)
		for i := range n {
			valid[i] = (parent == nil || parent[i]) && d.isValid(from+i)
		}
	}
	ok := func(i int) bool { return valid == nil || valid[i] }
	switch b := b.(type) {
	case *array.BooleanBuilder:
		for i := range n {
			if ok(i) {
				b.Append(at[bool](d.data, from+i))
			} else {
				b.AppendNull()
			}
		}
	case *array.Int8Builder:
		b.AppendValues(values[int8](d, from, n), valid)
	case *array.Int16Builder:
		b.AppendValues(values[int16](d, from, n), valid)
	case *array.Int32Builder:
		b.AppendValues(values[int32](d, from, n), valid)
	case *array.Int64Builder:
		b.AppendValues(values[int64](d, from, n), valid)
	case *array.Float32Builder:
		b.AppendValues(values[float32](d, from, n), valid)
	case *array.Float64Builder:
		b.AppendValues(values[float64](d, from, n), valid)
	case *array.Date32Builder:
		b.AppendValues(values[arrow.Date32](d, from, n), valid)
	case *array.TimestampBuilder:
		b.AppendValues(values[arrow.Timestamp](d, from, n), valid)
	case *array.Time64Builder:
		b.AppendValues(values[arrow.Time64](d, from, n), valid)
	case *array.Time32Builder:
		for i, x := range values[int64](d, from, n) {
			if ok(i) {
				b.Append(arrow.Time32(x / 1000))
			} else {
				b.AppendNull()
			}
		}
	case *array.Decimal128Builder:
		for i := range n {
			if ok(i) {
				b.Append(decimalAt(d.data, t.Precision, from+i))
			} else {
				b.AppendNull()
			}
		}
	case *array.StringBuilder:
		for i := range n {
			if ok(i) {
				b.Append(textAt(d.data, from+i))
			} else {
				b.AppendNull()
			}
		}
	case *array.BinaryBuilder:
		for i := range n {
			if ok(i) {
				b.AppendString(textAt(d.data, from+i))
			} else {
				b.AppendNull()
			}
		}
	case *array.StructBuilder:
		own := valid // Append(false) would give the members a null of their own
		if own == nil {
			own = slices.Repeat([]bool{true}, n)
		}
		b.AppendValues(own)
		for i, f := range t.Fields {
			if err := readVector(mapping.StructVectorGetChild(v, mapping.IdxT(i)), f.Type, from, n, valid, b.FieldBuilder(i)); err != nil {
				return fmt.Errorf("%s: %w", f.Name, err)
			}
		}
	case *array.MapBuilder:
		return readLists(v, d, from, n, ok, b.Append, b.AppendNull, func(child mapping.Vector, from, n int) error {
			if err := readVector(mapping.StructVectorGetChild(child, 0), t.Fields[0].Type, from, n, nil, b.KeyBuilder()); err != nil {
				return err
			}
			return readVector(mapping.StructVectorGetChild(child, 1), t.Fields[1].Type, from, n, nil, b.ItemBuilder())
		})
	case *array.ListBuilder:
		return readLists(v, d, from, n, ok, b.Append, b.AppendNull, func(child mapping.Vector, from, n int) error {
			return readVector(child, t.Fields[0].Type, from, n, nil, b.ValueBuilder())
		})
	default:
		return fmt.Errorf("a %s can't be read", t)
	}
	return nil
}

func values[T any](d vectorData, from, n int) []T {
	return unsafe.Slice((*T)(d.data), from+n)[from:]
}

func decimalAt(data unsafe.Pointer, precision, row int) decimal128.Num {
	switch {
	case precision <= 4:
		return decimal128.FromI64(int64(at[int16](data, row)))
	case precision <= 9:
		return decimal128.FromI64(int64(at[int32](data, row)))
	case precision <= 18:
		return decimal128.FromI64(at[int64](data, row))
	}
	x := at[[2]uint64](data, row)
	return decimal128.New(int64(x[1]), x[0])
}

// readLists appends lists; elements are read in runs, as long as one list begins where the last one ended.
func readLists(v mapping.Vector, d vectorData, from, n int, ok func(int) bool, appendList func(bool), appendNull func(), elements func(child mapping.Vector, from, n int) error) error {
	child := mapping.ListVectorGetChild(v)
	size := uint64(mapping.ListVectorGetSize(v))
	for i := range n {
		if !ok(i) {
			appendNull()
			continue
		}
		e := at[listEntry](d.data, from+i)
		if e.offset > size || e.length > size-e.offset {
			return fmt.Errorf("a list's elements %d+%d are beyond its %d", e.offset, e.length, size)
		}
		appendList(true)
		if e.length > 0 {
			if err := elements(child, int(e.offset), int(e.length)); err != nil {
				return err
			}
		}
	}
	return nil
}
