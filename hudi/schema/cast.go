package schema

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// primitive compiles the change between two types of which to is not nested; nil where the values are the same.
func (c *compiler) primitive(from, to arrow.DataType) (castFunc, error) {
	if arrow.TypeEqual(from, to) {
		return nil, nil
	}
	if from.ID() == arrow.NULL {
		return func(mem memory.Allocator, in arrow.Array) (arrow.Array, error) {
			return array.MakeArrayOfNull(mem, to, in.Len()), nil
		}, nil
	}
	if cast := promote(from, to); cast != nil {
		return cast, nil
	}
	if cast := temporal(from, to); cast != nil {
		return cast, nil
	}
	if cast := textual(from, to); cast != nil {
		return cast, nil
	}
	if to, ok := to.(arrow.DecimalType); ok {
		if cast := c.toDecimal(from, to); cast != nil {
			return cast, nil
		}
	}
	cast := viaText(from, to)
	switch {
	case cast == nil:
		return nil, incompatible(from, to)
	case c.SchemaOnRead || isNumber(from) && to.ID() == arrow.STRING:
		return cast, nil
	}
	return nil, fmt.Errorf("%w without hoodie.schema.on.read.enable", incompatible(from, to))
}

// isNumber: an Avro number, which a column of the table may have been before it became text (see [Reconcile]).
func isNumber(dt arrow.DataType) bool {
	switch dt.ID() {
	case arrow.INT32, arrow.INT64, arrow.FLOAT32, arrow.FLOAT64:
		return true
	}
	return false
}

type number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// promote is Avro's int→long→float→double, and the small and unsigned integers that other programs write.
func promote(from, to arrow.DataType) castFunc {
	switch to.ID() {
	case arrow.INT32:
		switch from.ID() {
		case arrow.INT8:
			return convert[int8, int32](to, nil)
		case arrow.INT16:
			return convert[int16, int32](to, nil)
		case arrow.UINT8:
			return convert[uint8, int32](to, nil)
		case arrow.UINT16:
			return convert[uint16, int32](to, nil)
		}
	case arrow.INT64:
		switch from.ID() {
		case arrow.INT8:
			return convert[int8, int64](to, nil)
		case arrow.INT16:
			return convert[int16, int64](to, nil)
		case arrow.INT32:
			return convert[int32, int64](to, nil)
		case arrow.UINT8:
			return convert[uint8, int64](to, nil)
		case arrow.UINT16:
			return convert[uint16, int64](to, nil)
		case arrow.UINT32:
			return convert[uint32, int64](to, nil)
		}
	case arrow.FLOAT32:
		switch from.ID() {
		case arrow.INT8:
			return convert[int8, float32](to, nil)
		case arrow.INT16:
			return convert[int16, float32](to, nil)
		case arrow.INT32:
			return convert[int32, float32](to, nil)
		case arrow.INT64:
			return convert[int64, float32](to, nil)
		case arrow.FLOAT16:
			return halfToFloat
		}
	case arrow.FLOAT64:
		switch from.ID() {
		case arrow.INT8:
			return convert[int8, float64](to, nil)
		case arrow.INT16:
			return convert[int16, float64](to, nil)
		case arrow.INT32:
			return convert[int32, float64](to, nil)
		case arrow.INT64:
			return convert[int64, float64](to, nil)
		case arrow.FLOAT32:
			return convert(to, func(v float32) (float64, error) { return widenFloat(v), nil })
		}
	}
	return nil
}

// widenFloat is the double whose shortest text is the float's: Apache Hudi widens floats through their text.
func widenFloat(v float32) float64 {
	wide := float64(v)
	if math.IsNaN(wide) || math.IsInf(wide, 0) || wide == math.Trunc(wide) && math.Abs(wide) < 1<<24 {
		return wide
	}
	var buf [32]byte
	d, err := strconv.ParseFloat(string(strconv.AppendFloat(buf[:0], wide, 'g', -1, 32)), 64)
	if err != nil {
		return wide
	}
	return d
}

func halfToFloat(mem memory.Allocator, in arrow.Array) (arrow.Array, error) {
	half := in.(*array.Float16)
	b := array.NewFloat32Builder(mem)
	defer b.Release()
	b.Reserve(half.Len())
	for i := range half.Len() {
		if half.IsNull(i) {
			b.AppendNull()
		} else {
			b.Append(half.Value(i).Float32())
		}
	}
	return b.NewArray(), nil
}

// convert applies f to every value that is not null. A nil f is the conversion of the language.
func convert[In, Out number](to arrow.DataType, f func(In) (Out, error)) castFunc {
	return func(mem memory.Allocator, in arrow.Array) (arrow.Array, error) {
		data := in.Data()
		n := data.Len()
		values := arrow.GetValues[In](data, 1)
		buf := memory.NewResizableBuffer(mem)
		defer buf.Release()
		buf.Resize(n * int(sizeOf[Out]()))
		out := arrow.GetData[Out](buf.Bytes())
		valid, nulls := validity(mem, in)
		if valid != nil {
			defer valid.Release()
		}
		for i, v := range values[:n] {
			if f == nil {
				out[i] = Out(v)
				continue
			}
			if nulls > 0 && in.IsNull(i) {
				out[i] = 0
				continue
			}
			var err error
			if out[i], err = f(v); err != nil {
				return nil, err
			}
		}
		return fixedArray(to, n, valid, buf, nulls), nil
	}
}

func sizeOf[T number]() uintptr {
	var t T
	switch any(t).(type) {
	case int8, uint8:
		return 1
	case int16, uint16:
		return 2
	case int32, uint32, float32:
		return 4
	}
	return 8
}

func fixedArray(to arrow.DataType, n int, valid, values *memory.Buffer, nulls int) arrow.Array {
	data := array.NewData(to, n, []*memory.Buffer{valid, values}, nil, nulls, 0)
	defer data.Release()
	return array.MakeFromData(data)
}

// validity gives the validity bits of an array from bit 0 on, nil where nothing is null. The caller releases it.
func validity(mem memory.Allocator, in arrow.Array) (*memory.Buffer, int) {
	nulls := in.NullN()
	if nulls == 0 || in.Data().Buffers()[0] == nil {
		return nil, 0
	}
	old := in.Data().Buffers()[0]
	off := in.Data().Offset()
	if off == 0 {
		old.Retain()
		return old, nulls
	}
	buf := memory.NewResizableBuffer(mem)
	buf.Resize(int(bitutil.BytesForBits(int64(in.Len()))))
	bitutil.CopyBitmap(old.Bytes(), off, in.Len(), buf.Bytes(), 0)
	return buf, nulls
}

// relabel shares the buffers under another type of the same layout.
func relabel(to arrow.DataType) castFunc {
	return func(_ memory.Allocator, in arrow.Array) (arrow.Array, error) {
		data := in.Data()
		out := array.NewData(to, data.Len(), data.Buffers(), nil, data.NullN(), data.Offset())
		defer out.Release()
		return array.MakeFromData(out), nil
	}
}

// temporal: a date, time or timestamp and the int or long that carries it are one value in Avro; units scale. The zone
// is a label (table format 5.2: adjusted to UTC or not).
func temporal(from, to arrow.DataType) castFunc {
	switch to.ID() {
	case arrow.INT32:
		switch from.ID() {
		case arrow.DATE32, arrow.TIME32:
			return relabel(to)
		}
	case arrow.INT64:
		switch from.ID() {
		case arrow.TIMESTAMP, arrow.TIME64:
			return relabel(to)
		}
	case arrow.DATE32:
		switch from.ID() {
		case arrow.INT32:
			return relabel(to)
		case arrow.DATE64:
			return convert(to, func(v int64) (int32, error) { return int32(floorDiv(v, 86400000)), nil })
		}
	case arrow.TIME32, arrow.TIME64:
		if from.ID() == arrow.INT32 && to.ID() == arrow.TIME32 || from.ID() == arrow.INT64 && to.ID() == arrow.TIME64 {
			return relabel(to)
		}
		return timeCast(from, to)
	case arrow.TIMESTAMP:
		if from.ID() == arrow.INT64 {
			return relabel(to)
		}
		if from, ok := from.(*arrow.TimestampType); ok {
			return rescaleTime(to, from.Unit, to.(*arrow.TimestampType).Unit)
		}
	}
	return nil
}

func timeCast(from, to arrow.DataType) castFunc {
	unit := func(dt arrow.DataType) (arrow.TimeUnit, bool) {
		switch dt := dt.(type) {
		case *arrow.Time32Type:
			return dt.Unit, true
		case *arrow.Time64Type:
			return dt.Unit, true
		}
		return 0, false
	}
	f, okFrom := unit(from)
	t, okTo := unit(to)
	if !okFrom || !okTo {
		return nil
	}
	scale := func(v int64) (int64, error) { return scaleTime(v, f, t) }
	switch {
	case from.ID() == arrow.TIME32 && to.ID() == arrow.TIME64:
		return convert(to, func(v int32) (int64, error) { return scale(int64(v)) })
	case from.ID() == arrow.TIME64 && to.ID() == arrow.TIME32:
		return convert(to, func(v int64) (int32, error) { w, err := scale(v); return int32(w), err })
	case from.ID() == arrow.TIME64:
		return convert(to, scale)
	}
	return convert(to, func(v int32) (int32, error) { w, err := scale(int64(v)); return int32(w), err })
}

func rescaleTime(to arrow.DataType, from, unit arrow.TimeUnit) castFunc {
	if from == unit {
		return relabel(to)
	}
	return convert(to, func(v int64) (int64, error) { return scaleTime(v, from, unit) })
}

func scaleTime(v int64, from, to arrow.TimeUnit) (int64, error) {
	f, t := int64(from.Multiplier()), int64(to.Multiplier())
	if f < t {
		return floorDiv(v, t/f), nil
	}
	factor := f / t
	if v > math.MaxInt64/factor || v < math.MinInt64/factor {
		return 0, fmt.Errorf("time %d %s does not fit into %s", v, from, to)
	}
	return v * factor, nil
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// textual: Avro reads string as bytes and bytes as string; large and fixed forms come from other programs.
func textual(from, to arrow.DataType) castFunc {
	if to.ID() != arrow.STRING && to.ID() != arrow.BINARY {
		return nil
	}
	switch from := from.(type) {
	case *arrow.StringType, *arrow.BinaryType:
		return relabel(to)
	case *arrow.LargeStringType, *arrow.LargeBinaryType:
		return copyBytes(to, func(in arrow.Array) func(int) []byte {
			if s, ok := in.(*array.LargeString); ok {
				return func(i int) []byte { return []byte(s.Value(i)) }
			}
			return in.(*array.LargeBinary).Value
		})
	case *arrow.FixedSizeBinaryType:
		if to.ID() == arrow.BINARY {
			return copyBytes(to, func(in arrow.Array) func(int) []byte { return in.(*array.FixedSizeBinary).Value })
		}
	case *arrow.DictionaryType:
		if id := from.ValueType.ID(); id == arrow.STRING || id == arrow.BINARY {
			return copyBytes(to, func(in arrow.Array) func(int) []byte {
				d := in.(*array.Dictionary)
				if s, ok := d.Dictionary().(*array.String); ok {
					return func(i int) []byte { return []byte(s.Value(d.GetValueIndex(i))) }
				}
				b := d.Dictionary().(*array.Binary)
				return func(i int) []byte { return b.Value(d.GetValueIndex(i)) }
			})
		}
	}
	return nil
}

func copyBytes(to arrow.DataType, values func(arrow.Array) func(int) []byte) castFunc {
	return func(mem memory.Allocator, in arrow.Array) (arrow.Array, error) {
		b := array.NewBinaryBuilder(mem, to.(arrow.BinaryDataType))
		defer b.Release()
		b.Reserve(in.Len())
		value := values(in)
		total := 0
		for i := range in.Len() {
			if in.IsNull(i) {
				b.AppendNull()
				continue
			}
			v := value(i)
			if total += len(v); total > math.MaxInt32 {
				return nil, fmt.Errorf("more than %d bytes in one batch", math.MaxInt32)
			}
			b.Append(v)
		}
		made := b.NewArray() // a Binary, whatever the type's name
		defer made.Release()
		return array.MakeFromData(made.Data()), nil
	}
}

// toDecimal: a decimal to a wider one, an integer to one that holds it. Where the types alone do not promise that every
// value fits, each value is checked.
func (c *compiler) toDecimal(from arrow.DataType, to arrow.DecimalType) castFunc {
	var read func(arrow.Array) func(int) (*big.Int, error)
	scale := int32(0)
	switch from := from.(type) {
	case arrow.DecimalType:
		scale = from.GetScale()
		if from.ID() == arrow.DECIMAL128 && to.ID() == arrow.DECIMAL128 {
			return rescale128(from, to)
		}
		read = bigDecimal
	case *arrow.Int32Type:
		read = func(in arrow.Array) func(int) (*big.Int, error) {
			return func(i int) (*big.Int, error) { return big.NewInt(int64(in.(*array.Int32).Value(i))), nil }
		}
	case *arrow.Int64Type:
		read = func(in arrow.Array) func(int) (*big.Int, error) {
			return func(i int) (*big.Int, error) { return big.NewInt(in.(*array.Int64).Value(i)), nil }
		}
	case *arrow.Uint64Type:
		read = func(in arrow.Array) func(int) (*big.Int, error) {
			return func(i int) (*big.Int, error) { return new(big.Int).SetUint64(in.(*array.Uint64).Value(i)), nil }
		}
	default:
		return nil
	}
	return func(mem memory.Allocator, in arrow.Array) (arrow.Array, error) {
		value := read(in)
		return buildDecimals(mem, to, in, func(i int) (*big.Int, int32, error) {
			v, err := value(i)
			return v, scale, err
		})
	}
}

func bigDecimal(in arrow.Array) func(int) (*big.Int, error) {
	if d, ok := in.(*array.Decimal128); ok {
		return func(i int) (*big.Int, error) { return d.Value(i).BigInt(), nil }
	}
	d := in.(*array.Decimal256)
	return func(i int) (*big.Int, error) { return d.Value(i).BigInt(), nil }
}

// rescale128 is the common case: same scale is a label (values are checked only where the precision shrinks), another scale
// multiplies.
func rescale128(from, to arrow.DecimalType) castFunc {
	fp, fs, tp, ts := from.GetPrecision(), from.GetScale(), to.GetPrecision(), to.GetScale()
	if fs == ts && tp >= fp {
		return relabel(to)
	}
	return func(mem memory.Allocator, in arrow.Array) (arrow.Array, error) {
		d := in.(*array.Decimal128)
		b := array.NewDecimal128Builder(mem, to.(*arrow.Decimal128Type))
		defer b.Release()
		b.Reserve(d.Len())
		for i := range d.Len() {
			if d.IsNull(i) {
				b.AppendNull()
				continue
			}
			v := d.Value(i)
			w, err := v.Rescale(fs, ts)
			if err != nil || !w.FitsInPrecision(tp) {
				return nil, fmt.Errorf("value %s does not fit", v.ToString(fs))
			}
			b.Append(w)
		}
		return b.NewArray(), nil
	}
}

// buildDecimals appends unscaled values of any scale, refusing what the type can't hold exactly.
func buildDecimals(mem memory.Allocator, to arrow.DecimalType, in arrow.Array, value func(int) (*big.Int, int32, error)) (arrow.Array, error) {
	b := array.NewBuilder(mem, to)
	defer b.Release()
	b.Reserve(in.Len())
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(to.GetPrecision())), nil)
	for i := range in.Len() {
		if in.IsNull(i) {
			b.AppendNull()
			continue
		}
		v, scale, err := value(i)
		if err != nil {
			return nil, err
		}
		w, exact := rescaleBig(v, scale, to.GetScale())
		if !exact || new(big.Int).Abs(w).Cmp(limit) >= 0 {
			return nil, fmt.Errorf("value %se-%d does not fit into %s", v, scale, to)
		}
		switch b := b.(type) {
		case *array.Decimal128Builder:
			b.Append(decimal128.FromBigInt(w))
		case *array.Decimal256Builder:
			b.Append(decimal256.FromBigInt(w))
		}
	}
	return b.NewArray(), nil
}

func rescaleBig(v *big.Int, from, to int32) (*big.Int, bool) {
	if from == to {
		return v, true
	}
	diff := int64(to - from)
	if diff > 0 {
		return new(big.Int).Mul(v, new(big.Int).Exp(big.NewInt(10), big.NewInt(diff), nil)), true
	}
	q, r := new(big.Int).QuoRem(v, new(big.Int).Exp(big.NewInt(10), big.NewInt(-diff), nil), new(big.Int))
	return q, r.Sign() == 0
}

// viaText are the changes that only schema-on-read has. Texts are Java's: floats and doubles as Double.toString gives them.
func viaText(from, to arrow.DataType) castFunc {
	switch to := to.(type) {
	case *arrow.StringType:
		text := textOf(from)
		if text == nil {
			return nil
		}
		return func(mem memory.Allocator, in arrow.Array) (arrow.Array, error) {
			b := array.NewStringBuilder(mem)
			defer b.Release()
			var buf []byte
			for i := range in.Len() {
				if in.IsNull(i) {
					b.AppendNull()
					continue
				}
				buf = text(buf[:0], in, i)
				b.BinaryBuilder.Append(buf)
			}
			return b.NewArray(), nil
		}
	case arrow.DecimalType:
		switch from.ID() {
		case arrow.FLOAT32, arrow.FLOAT64, arrow.STRING:
			text := textOf(from)
			return func(mem memory.Allocator, in arrow.Array) (arrow.Array, error) {
				return buildDecimals(mem, to, in, func(i int) (*big.Int, int32, error) {
					s := string(text(nil, in, i))
					v, err := ParseDecimal(s, to.GetScale())
					return v, to.GetScale(), err
				})
			}
		}
	case *arrow.Date32Type:
		if from.ID() == arrow.STRING {
			return func(mem memory.Allocator, in arrow.Array) (arrow.Array, error) {
				b := array.NewDate32Builder(mem)
				defer b.Release()
				for i := range in.Len() {
					if in.IsNull(i) {
						b.AppendNull()
						continue
					}
					s := in.(*array.String).Value(i)
					t, err := time.Parse(time.DateOnly, s)
					if err != nil {
						return nil, fmt.Errorf("text %q is no date of the form 2006-01-02", s)
					}
					b.Append(arrow.Date32(floorDiv(t.Unix(), 86400)))
				}
				return b.NewArray(), nil
			}
		}
	}
	return nil
}

func textOf(from arrow.DataType) func([]byte, arrow.Array, int) []byte {
	switch from := from.(type) {
	case *arrow.StringType:
		return func(b []byte, in arrow.Array, i int) []byte { return append(b, in.(*array.String).Value(i)...) }
	case *arrow.Int32Type:
		return func(b []byte, in arrow.Array, i int) []byte {
			return strconv.AppendInt(b, int64(in.(*array.Int32).Value(i)), 10)
		}
	case *arrow.Int64Type:
		return func(b []byte, in arrow.Array, i int) []byte {
			return strconv.AppendInt(b, in.(*array.Int64).Value(i), 10)
		}
	case *arrow.Float32Type:
		return func(b []byte, in arrow.Array, i int) []byte {
			return AppendJavaFloat(b, float64(in.(*array.Float32).Value(i)), 32)
		}
	case *arrow.Float64Type:
		return func(b []byte, in arrow.Array, i int) []byte {
			return AppendJavaFloat(b, in.(*array.Float64).Value(i), 64)
		}
	case *arrow.Date32Type:
		return func(b []byte, in arrow.Array, i int) []byte {
			return time.Unix(int64(in.(*array.Date32).Value(i))*86400, 0).UTC().AppendFormat(b, time.DateOnly)
		}
	case *arrow.Decimal128Type:
		return func(b []byte, in arrow.Array, i int) []byte {
			return AppendDecimal(b, in.(*array.Decimal128).Value(i).BigInt(), from.Scale)
		}
	}
	return nil
}

// ParseDecimal reads a plain or exponent decimal text as the unscaled value at a scale. Digits beyond the scale must be zero.
func ParseDecimal(text string, scale int32) (*big.Int, error) {
	if len(text) > 512 {
		return nil, fmt.Errorf("decimal text of %d characters", len(text))
	}
	mantissa, exp := text, int64(0)
	for i := range len(text) {
		if text[i] == 'e' || text[i] == 'E' {
			e, err := strconv.ParseInt(text[i+1:], 10, 16)
			if err != nil || e > 512 || e < -512 {
				return nil, fmt.Errorf("%q is no decimal", text)
			}
			mantissa, exp = text[:i], e
			break
		}
	}
	digits := make([]byte, 0, len(mantissa))
	fraction, point := int64(0), false
	for i := range len(mantissa) {
		ch := mantissa[i]
		switch {
		case ch >= '0' && ch <= '9':
			digits = append(digits, ch)
			if point {
				fraction++
			}
		case ch == '.' && !point:
			point = true
		case (ch == '-' || ch == '+') && i == 0:
			digits = append(digits, ch)
		default:
			return nil, fmt.Errorf("%q is no decimal", text)
		}
	}
	v, ok := new(big.Int).SetString(string(digits), 10)
	if !ok {
		return nil, fmt.Errorf("%q is no decimal", text)
	}
	w, exact := rescaleBig(v, int32(fraction-exp), scale)
	if !exact {
		return nil, fmt.Errorf("%q has more than %d digits after the point", text, scale)
	}
	return w, nil
}

// AppendDecimal writes an unscaled value plainly with its scale kept: -5 at scale 2 is "-0.05".
func AppendDecimal(b []byte, unscaled *big.Int, scale int32) []byte {
	if unscaled.Sign() < 0 {
		b = append(b, '-')
		unscaled = new(big.Int).Neg(unscaled)
	}
	start := len(b)
	b = unscaled.Append(b, 10)
	return pointAt(b, start, int(scale))
}

// pointAt sets the decimal point into the digits from start on.
func pointAt(b []byte, start, scale int) []byte {
	if scale <= 0 {
		for ; scale < 0; scale++ {
			b = append(b, '0')
		}
		return b
	}
	for len(b)-start <= scale { // one digit at least before the point
		b = append(b, 0)
		copy(b[start+1:], b[start:])
		b[start] = '0'
	}
	b = append(b, 0)
	at := len(b) - 1 - scale
	copy(b[at+1:], b[at:])
	b[at] = '.'
	return b
}

// AppendJavaFloat writes a float (bits 32) or double (64) as Java's toString does: shortest digits that read back equal,
// with a point, and an exponent below 1e-3 and from 1e7 on: 1.0, 0.001, 1.0E10, NaN, -Infinity.
func AppendJavaFloat(b []byte, v float64, bits int) []byte {
	switch {
	case math.IsNaN(v):
		return append(b, "NaN"...)
	case math.IsInf(v, 1):
		return append(b, "Infinity"...)
	case math.IsInf(v, -1):
		return append(b, "-Infinity"...)
	}
	if a := math.Abs(v); a == 0 || a >= 1e-3 && a < 1e7 {
		start := len(b)
		b = strconv.AppendFloat(b, v, 'f', -1, bits)
		for _, ch := range b[start:] {
			if ch == '.' {
				return b
			}
		}
		return append(b, ".0"...)
	}
	var buf [40]byte
	text := strconv.AppendFloat(buf[:0], v, 'e', -1, bits)
	e := len(text) - 1
	for text[e] != 'e' {
		e--
	}
	b = append(b, text[:e]...)
	digits := text[:e]
	if digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 1 {
		b = append(b, ".0"...)
	}
	b = append(b, 'E')
	exp, _ := strconv.Atoi(string(text[e+1:])) // written by AppendFloat: always a number
	return strconv.AppendInt(b, int64(exp), 10)
}

// listOffsets gives 32-bit offsets of any list-like array, at the array's own offset.
func listOffsets(mem memory.Allocator, in arrow.Array) (*memory.Buffer, func(), error) {
	data := in.Data()
	switch in := in.(type) {
	case *array.List:
		return data.Buffers()[1], func() {}, nil
	case *array.LargeList:
		wide := arrow.Int64Traits.CastFromBytes(data.Buffers()[1].Bytes())
		if last := wide[data.Offset()+data.Len()]; last > math.MaxInt32 {
			return nil, nil, fmt.Errorf("list of %d elements in one batch", last)
		}
		return narrowOffsets(mem, data.Offset()+data.Len()+1, func(i int) int32 { return int32(wide[i]) })
	case *array.FixedSizeList:
		size := int(in.DataType().(*arrow.FixedSizeListType).Len())
		if (data.Offset()+data.Len())*size > math.MaxInt32 {
			return nil, nil, fmt.Errorf("list of %d elements in one batch", data.Len()*size)
		}
		return narrowOffsets(mem, data.Offset()+data.Len()+1, func(i int) int32 { return int32(i * size) })
	}
	return nil, nil, fmt.Errorf("list of Arrow type %s", in.DataType())
}

func narrowOffsets(mem memory.Allocator, n int, at func(int) int32) (*memory.Buffer, func(), error) {
	buf := memory.NewResizableBuffer(mem)
	buf.Resize(n * 4)
	out := arrow.Int32Traits.CastFromBytes(buf.Bytes())
	for i := range out {
		out[i] = at(i)
	}
	return buf, buf.Release, nil
}
