package keygen

import (
	"fmt"
	"math/big"
	"strings"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"

	"github.com/sluicelake/sluice/hudi/schema"
)

// column reads one field of a batch, through the records that hold it.
type column struct {
	kind    Kind
	parents []*array.Struct
	leaf    arrow.Array
	scale   int32
	width   int // bytes of a decimal in Avro

	// The leaf by type, so that reading is one switch.
	text   *array.String
	i64    []int64
	i32    []int32
	nulls  bool
	avro   *schema.Type // of nested values, where known
	nested bool
}

// bind finds a field in a batch (key generation 4). A field that is not there gives a column of Absent.
func bind(batch arrow.RecordBatch, path string, avro *schema.Type) (*column, error) {
	names := splitPath(path)
	c := &column{kind: Absent}
	if len(names) == 0 {
		return c, nil
	}
	at := batch.Schema().FieldIndices(names[0])
	if len(at) == 0 {
		return c, nil
	}
	leaf := batch.Column(at[0])
	avro = avroField(avro, names[0])
	for _, name := range names[1:] {
		s, ok := leaf.(*array.Struct)
		if !ok {
			c.kind = ParentScalar
			c.leaf = leaf
			return c, nil
		}
		c.parents = append(c.parents, s)
		i, ok := s.DataType().(*arrow.StructType).FieldIdx(name)
		if !ok {
			return c, nil
		}
		leaf = s.Field(i)
		avro = avroField(avro, name)
	}
	if err := c.set(leaf, avro); err != nil {
		return nil, fmt.Errorf("column %s: %w", path, err)
	}
	return c, nil
}

// splitPath is String.split("\\."): empty parts at the end vanish.
func splitPath(path string) []string {
	names := strings.Split(path, ".")
	for len(names) > 0 && names[len(names)-1] == "" {
		names = names[:len(names)-1]
	}
	return names
}

func avroField(t *schema.Type, name string) *schema.Type {
	if t == nil {
		return nil
	}
	if t, _ = t.Optional(); t.Kind != schema.Record {
		return nil
	}
	f, ok := t.Field(name)
	if !ok {
		return nil
	}
	inner, _ := f.Type.Optional()
	return inner
}

func (c *column) set(leaf arrow.Array, avro *schema.Type) error {
	kind, err := kindOf(leaf.DataType(), avro)
	if err != nil {
		return err
	}
	c.kind, c.leaf, c.avro, c.nulls = kind, leaf, avro, hasNulls(leaf)
	switch a := leaf.(type) {
	case *array.String:
		c.text = a
	case *array.Int64:
		c.i64 = a.Int64Values()
	case *array.Int32:
		c.i32 = a.Int32Values()
	case *array.Timestamp:
		values := a.TimestampValues()
		c.i64 = unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(values))), len(values))
	case *array.Date32:
		values := a.Date32Values()
		c.i32 = unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(values))), len(values))
	}
	if t, ok := leaf.DataType().(arrow.DecimalType); ok {
		c.scale = t.GetScale()
		c.width = decimalWidth(t.GetPrecision())
	}
	c.nested = kind == Array || kind == Map || kind == Record
	return nil
}

// hasNulls counts anew: Arrow's own count is remembered in the array, and a batch may be shared.
func hasNulls(leaf arrow.Array) bool {
	bits := leaf.NullBitmapBytes()
	return len(bits) > 0 && bitutil.CountSetBits(bits, leaf.Data().Offset(), leaf.Len()) < leaf.Len()
}

// decimalWidth is the size of the fixed that Avro keeps a decimal in.
func decimalWidth(precision int32) int {
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)
	return limit.Sub(limit, big.NewInt(1)).BitLen()/8 + 1
}

// kindOf tells what an Arrow type is in Avro. Types without an exact counterpart are refused: their text would depend on
// how a writer casts them.
func kindOf(dt arrow.DataType, avro *schema.Type) (Kind, error) {
	if avro != nil && avro.Kind == schema.Union && dt.ID() != arrow.INT64 {
		return Absent, fmt.Errorf("a union of several types has no certain text: choose another column")
	}
	switch dt.ID() {
	case arrow.NULL:
		return Null, nil
	case arrow.BOOL:
		return Boolean, nil
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.UINT8, arrow.UINT16:
		return Int, nil
	case arrow.INT64, arrow.UINT32:
		return Long, nil
	case arrow.FLOAT32:
		return Float, nil
	case arrow.FLOAT64:
		return Double, nil
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
		if avro != nil && avro.Kind == schema.Enum {
			return Enum, nil
		}
		return String, nil
	case arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW:
		return Bytes, nil
	case arrow.FIXED_SIZE_BINARY:
		return Fixed, nil
	case arrow.DECIMAL32, arrow.DECIMAL64, arrow.DECIMAL128, arrow.DECIMAL256:
		return Decimal, nil
	case arrow.DATE32:
		return Date, nil
	case arrow.TIMESTAMP:
		return timestampKind(dt.(*arrow.TimestampType))
	case arrow.LIST, arrow.LARGE_LIST, arrow.FIXED_SIZE_LIST:
		return Array, nil
	case arrow.MAP:
		return Map, nil
	case arrow.STRUCT:
		return Record, nil
	case arrow.DICTIONARY:
		return kindOf(dt.(*arrow.DictionaryType).ValueType, avro)
	case arrow.TIME32:
		if dt.(*arrow.Time32Type).Unit == arrow.Millisecond {
			return TimeMillis, nil
		}
	case arrow.TIME64:
		if dt.(*arrow.Time64Type).Unit == arrow.Microsecond {
			return TimeMicros, nil
		}
	}
	return Absent, fmt.Errorf("type %s has no form in Apache Hudi: cast the column to one that a table can hold", dt)
}

func timestampKind(t *arrow.TimestampType) (Kind, error) {
	kinds := map[arrow.TimeUnit][2]Kind{arrow.Millisecond: {TimestampMillis, LocalMillis}, arrow.Microsecond: {TimestampMicros, LocalMicros}, arrow.Nanosecond: {TimestampNanos, LocalNanos}}
	pair, ok := kinds[t.Unit]
	switch {
	case !ok:
		return Absent, fmt.Errorf("type %s has no form in Apache Hudi: cast the column to milli- or microseconds", t)
	case t.TimeZone == "":
		return pair[1], nil
	}
	return pair[0], nil
}

// read takes the value of one row.
func (c *column) read(row int, d *Datum) {
	for _, p := range c.parents {
		if p.IsNull(row) {
			d.Kind = ParentNull
			return
		}
	}
	if c.kind == Absent {
		d.Kind = Absent
		return
	}
	if c.nulls && c.leaf.IsNull(row) {
		d.Kind = Null
		return
	}
	d.Kind = c.kind
	switch {
	case c.text != nil:
		d.S = c.text.Value(row)
	case c.i64 != nil:
		d.I = c.i64[row]
	case c.i32 != nil:
		d.I = int64(c.i32[row])
	case c.nested:
		*d = nestedValue(c.leaf, row, c.kind, c.avro)
	case c.kind != ParentScalar:
		c.readOther(c.leaf, row, d)
	}
}

func (c *column) readOther(leaf arrow.Array, row int, d *Datum) {
	d.Kind, d.Big, d.Scale = c.kind, nil, c.scale
	switch a := leaf.(type) {
	case *array.String:
		d.S = a.Value(row)
	case *array.LargeString:
		d.S = a.Value(row)
	case *array.StringView:
		d.S = a.Value(row)
	case *array.Binary:
		d.B = a.Value(row)
	case *array.LargeBinary:
		d.B = a.Value(row)
	case *array.BinaryView:
		d.B = a.Value(row)
	case *array.FixedSizeBinary:
		d.B = a.Value(row)
	case *array.Boolean:
		d.I = 0
		if a.Value(row) {
			d.I = 1
		}
	case *array.Float32:
		d.F = float64(a.Value(row))
	case *array.Float64:
		d.F = a.Value(row)
	case *array.Decimal128:
		readDecimal128(a.Value(row), d)
	case *array.Decimal256:
		readDecimal256(a.Value(row), d)
	case *array.Decimal32:
		d.I = int64(a.Value(row))
	case *array.Decimal64:
		d.I = int64(a.Value(row))
	case *array.Dictionary:
		if i := a.GetValueIndex(row); a.Dictionary().IsNull(i) {
			d.Kind = Null
		} else {
			c.readOther(a.Dictionary(), i, d)
		}
	case *array.Null:
		d.Kind = Null
	default:
		readInteger(leaf, row, d)
	}
}

func readInteger(leaf arrow.Array, row int, d *Datum) {
	switch a := leaf.(type) {
	case *array.Int8:
		d.I = int64(a.Value(row))
	case *array.Int16:
		d.I = int64(a.Value(row))
	case *array.Int32:
		d.I = int64(a.Value(row))
	case *array.Int64:
		d.I = a.Value(row)
	case *array.Uint8:
		d.I = int64(a.Value(row))
	case *array.Uint16:
		d.I = int64(a.Value(row))
	case *array.Uint32:
		d.I = int64(a.Value(row))
	case *array.Time32:
		d.I = int64(a.Value(row))
	case *array.Time64:
		d.I = int64(a.Value(row))
	case *array.Date32:
		d.I = int64(a.Value(row))
	case *array.Timestamp:
		d.I = int64(a.Value(row))
	}
}

func readDecimal128(v decimal128.Num, d *Datum) {
	low := int64(v.LowBits())
	if v.HighBits() == low>>63 {
		d.I = low
		return
	}
	d.Big = v.BigInt()
}

func readDecimal256(v decimal256.Num, d *Datum) {
	b := v.BigInt()
	if b.IsInt64() {
		d.I = b.Int64()
		return
	}
	d.Big = b
}

// nestedValue copies a collection. It is the slow way, for values that should not be keys at all.
func nestedValue(leaf arrow.Array, row int, kind Kind, avro *schema.Type) Datum {
	d := Datum{Kind: kind}
	var items *schema.Type
	if avro != nil && avro.Items != nil {
		items, _ = avro.Items.Optional()
	}
	switch a := leaf.(type) {
	case *array.Map:
		from, to := a.ValueOffsets(row)
		for i := int(from); i < int(to); i++ {
			d.Names = append(d.Names, a.Keys().ValueStr(i))
			d.Items = append(d.Items, item(a.Items(), i, items))
		}
	case array.ListLike:
		from, to := a.ValueOffsets(row)
		for i := int(from); i < int(to); i++ {
			d.Items = append(d.Items, item(a.ListValues(), i, items))
		}
	case *array.Struct:
		t := a.DataType().(*arrow.StructType)
		for i := range a.NumField() {
			d.Names = append(d.Names, t.Field(i).Name)
			d.Items = append(d.Items, item(a.Field(i), row, avroField(avro, t.Field(i).Name)))
		}
	}
	return d
}

func item(leaf arrow.Array, row int, avro *schema.Type) Datum {
	if leaf.IsNull(row) {
		return Datum{Kind: Null}
	}
	var c column
	if err := c.set(leaf, avro); err != nil {
		return Datum{Kind: String, S: leaf.ValueStr(row)}
	}
	var d Datum
	c.read(row, &d)
	if d.Kind == Decimal {
		d.F = float64(c.width)
	}
	return d
}

func bytesAsString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
