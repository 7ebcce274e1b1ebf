package merge

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Kind is the type of one ordering value, in the terms of the wrappers of a DELETE block (table format 6.2).
type Kind uint8

// The kinds. Unset is "no ordering value given"; a Null value was given as null. Both order before everything.
const (
	Unset Kind = iota
	Null
	Bool
	Int
	Long
	Float
	Double
	Bytes
	Text
	Date
	Decimal
	TimeMicros
	TimestampMicros
	Tuple
)

// Value is one ordering value. The zero Value is "none". Values are immutable.
type Value struct {
	kind  Kind
	scale int32
	i     int64 // Bool (0, 1), Int, Long, Date (days), TimeMicros, TimestampMicros
	f     float64
	s     string // Bytes, Text
	big   *big.Int
	list  []Value
}

// NoOrdering is the value of an entry that has none.
func NoOrdering() Value { return Value{} }

// NullOrdering is a value that is null.
func NullOrdering() Value { return Value{kind: Null} }

// BoolOrdering is a boolean.
func BoolOrdering(b bool) Value {
	v := Value{kind: Bool}
	if b {
		v.i = 1
	}
	return v
}

// IntOrdering is a 32-bit integer. On a delete the Int 0 means "no ordering" (table format 6.2).
func IntOrdering(i int32) Value { return Value{kind: Int, i: int64(i)} }

// LongOrdering is a 64-bit integer. Unlike Int 0, Long 0 is an ordinary value (table format 6.6).
func LongOrdering(i int64) Value { return Value{kind: Long, i: i} }

// FloatOrdering is a single-precision number.
func FloatOrdering(f float32) Value { return Value{kind: Float, f: float64(f)} }

// DoubleOrdering is a double-precision number.
func DoubleOrdering(f float64) Value { return Value{kind: Double, f: f} }

// BytesOrdering is a byte string; bytes compare as signed numbers, as a Java ByteBuffer does.
func BytesOrdering(b []byte) Value { return Value{kind: Bytes, s: string(b)} }

// TextOrdering is text; it compares by its UTF-8 bytes.
func TextOrdering(s string) Value { return Value{kind: Text, s: s} }

// DateOrdering is a date in days since 1970-01-01.
func DateOrdering(days int32) Value { return Value{kind: Date, i: int64(days)} }

// TimeMicrosOrdering is a time of day in microseconds.
func TimeMicrosOrdering(micros int64) Value { return Value{kind: TimeMicros, i: micros} }

// TimestampMicrosOrdering is a point in time in microseconds since 1970.
func TimestampMicrosOrdering(micros int64) Value { return Value{kind: TimestampMicros, i: micros} }

// DecimalOrdering is unscaled × 10^-scale. The number must not be changed afterwards.
func DecimalOrdering(unscaled *big.Int, scale int32) Value {
	return Value{kind: Decimal, big: unscaled, scale: scale}
}

// TupleOrdering is the value of several ordering fields, compared one after the other.
func TupleOrdering(vs ...Value) Value { return Value{kind: Tuple, list: vs} }

// Kind of the value.
func (v Value) Kind() Kind { return v.kind }

// None reports whether a delete with this value has no ordering: nothing given, null, or the Int 0.
func (v Value) None() bool {
	return v.kind == Unset || v.kind == Null || v.kind == Int && v.i == 0
}

func (v Value) String() string {
	switch v.kind {
	case Unset:
		return "none"
	case Null:
		return "null"
	case Bool:
		return fmt.Sprint(v.i == 1)
	case Float, Double:
		return fmt.Sprint(v.f)
	case Bytes:
		return fmt.Sprintf("%x", v.s)
	case Text:
		return v.s
	case Decimal:
		return fmt.Sprintf("%se-%d", v.big, v.scale)
	case Tuple:
		parts := make([]string, len(v.list))
		for i, e := range v.list {
			parts[i] = e.String()
		}
		return "(" + strings.Join(parts, ",") + ")"
	}
	return fmt.Sprint(v.i)
}

// Compare orders two values: nulls first, numbers by number whatever their width, text by UTF-8 bytes, several fields one
// after the other. Values of unrelated types, which Java refuses to compare, order by type so that reading never fails.
func Compare(a, b Value) int {
	if a.kind <= Null || b.kind <= Null {
		return cmp.Compare(max(a.kind, Null), max(b.kind, Null))
	}
	if a.kind == Tuple || b.kind == Tuple {
		return compareTuples(a, b)
	}
	ra, rb := a.rank(), b.rank()
	if ra != rb {
		return cmp.Compare(ra, rb)
	}
	switch ra {
	case rankNumber:
		return compareNumbers(a, b)
	case rankBytes:
		return compareSigned(a.s, b.s)
	}
	return strings.Compare(a.s, b.s)
}

// Families of kinds that compare with each other.
const (
	rankNumber = iota
	rankBytes
	rankText
)

func (v Value) rank() int {
	switch v.kind {
	case Bytes:
		return rankBytes
	case Text:
		return rankText
	}
	return rankNumber
}

func compareTuples(a, b Value) int {
	la, lb := a.fields(), b.fields()
	for i := range min(len(la), len(lb)) {
		if c := Compare(la[i], lb[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(la), len(lb))
}

func (v Value) fields() []Value {
	if v.kind == Tuple {
		return v.list
	}
	return []Value{v}
}

func compareNumbers(a, b Value) int {
	switch {
	case a.kind == Decimal || b.kind == Decimal:
		return compareDecimals(a, b)
	case a.isFloat() || b.isFloat():
		return compareFloats(a.float(), b.float())
	}
	return cmp.Compare(a.i, b.i)
}

func (v Value) isFloat() bool { return v.kind == Float || v.kind == Double }

func (v Value) float() float64 {
	if v.isFloat() {
		return v.f
	}
	return float64(v.i)
}

// compareFloats is Java's order of doubles: -0.0 before 0.0, NaN after everything.
func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	if na, nb := math.IsNaN(a), math.IsNaN(b); na || nb {
		return boolToInt(na) - boolToInt(nb)
	}
	return boolToInt(math.Signbit(b)) - boolToInt(math.Signbit(a))
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func compareDecimals(a, b Value) int {
	if a.isFloat() || b.isFloat() {
		return compareFloats(a.decimalFloat(), b.decimalFloat())
	}
	x, sx := a.decimal()
	y, sy := b.decimal()
	if sx < sy {
		x = new(big.Int).Mul(x, pow10(sy-sx))
	} else if sy < sx {
		y = new(big.Int).Mul(y, pow10(sx-sy))
	}
	return x.Cmp(y)
}

func pow10(n int32) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

func (v Value) decimal() (*big.Int, int32) {
	if v.kind == Decimal {
		return v.big, v.scale
	}
	return big.NewInt(v.i), 0
}

func (v Value) decimalFloat() float64 {
	if v.kind != Decimal {
		return v.float()
	}
	f, _ := new(big.Rat).SetFrac(v.big, pow10(v.scale)).Float64()
	return f
}

func compareSigned(a, b string) int {
	for i := range min(len(a), len(b)) {
		if c := cmp.Compare(int8(a[i]), int8(b[i])); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// sameClass reports whether Java holds both values in the same class: it lets a delete win over a logged record whose
// ordering value has another class, without comparing them (table format 6.6).
func sameClass(a, b Value) bool {
	if a.kind == Tuple && b.kind == Tuple {
		if len(a.list) != len(b.list) {
			return false
		}
		for i := range a.list {
			if !sameClass(a.list[i], b.list[i]) {
				return false
			}
		}
		return true
	}
	return a.class() == b.class()
}

// class folds the kinds that a column and a DELETE block may name differently for the same column.
func (v Value) class() Kind {
	switch v.kind {
	case Date, Unset, Null:
		return Int // days are an Int in Avro; an absent value is the Int 0
	case TimeMicros, TimestampMicros:
		return Long
	}
	return v.kind
}

// columnValue reads one ordering value from an Arrow column.
func columnValue(arr arrow.Array, row int) Value {
	if arr.IsNull(row) {
		return Value{kind: Null}
	}
	switch a := arr.(type) {
	case *array.Int64:
		return LongOrdering(a.Value(row))
	case *array.Int32:
		return IntOrdering(a.Value(row))
	case *array.String:
		return TextOrdering(a.Value(row))
	case *array.LargeString:
		return TextOrdering(a.Value(row))
	case *array.Timestamp:
		return TimestampMicrosOrdering(toMicros(int64(a.Value(row)), a.DataType().(*arrow.TimestampType).Unit))
	case *array.Date32:
		return DateOrdering(int32(a.Value(row)))
	case *array.Float64:
		return DoubleOrdering(a.Value(row))
	case *array.Float32:
		return FloatOrdering(a.Value(row))
	case *array.Boolean:
		return BoolOrdering(a.Value(row))
	case *array.Int16:
		return IntOrdering(int32(a.Value(row)))
	case *array.Int8:
		return IntOrdering(int32(a.Value(row)))
	case *array.Time64:
		return TimeMicrosOrdering(toMicros(int64(a.Value(row)), a.DataType().(*arrow.Time64Type).Unit))
	case *array.Time32:
		return TimeMicrosOrdering(toMicros(int64(a.Value(row)), a.DataType().(*arrow.Time32Type).Unit))
	case *array.Decimal128:
		return DecimalOrdering(a.Value(row).BigInt(), a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.Decimal256:
		return DecimalOrdering(a.Value(row).BigInt(), a.DataType().(*arrow.Decimal256Type).Scale)
	case *array.Binary:
		return BytesOrdering(a.Value(row))
	case *array.LargeBinary:
		return BytesOrdering(a.Value(row))
	case *array.FixedSizeBinary:
		return BytesOrdering(a.Value(row))
	}
	return TextOrdering(arr.ValueStr(row))
}

// toMicros keeps nanoseconds apart by truncation only: Hudi has no ordering of finer than microseconds in its log.
func toMicros(v int64, unit arrow.TimeUnit) int64 {
	switch unit {
	case arrow.Second:
		return v * 1_000_000
	case arrow.Millisecond:
		return v * 1000
	case arrow.Nanosecond:
		return v // compared with values of the same column only
	}
	return v
}

// appendValue encodes a value for a spill file; readValue is its inverse.
func appendValue(b []byte, v Value) []byte {
	b = append(b, byte(v.kind))
	switch v.kind {
	case Unset, Null:
	case Float, Double:
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(v.f))
	case Bytes, Text:
		b = binary.AppendUvarint(b, uint64(len(v.s)))
		b = append(b, v.s...)
	case Decimal:
		text := v.big.Append(nil, 62)
		b = binary.AppendVarint(b, int64(v.scale))
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	case Tuple:
		b = binary.AppendUvarint(b, uint64(len(v.list)))
		for _, e := range v.list {
			b = appendValue(b, e)
		}
	default:
		b = binary.AppendVarint(b, v.i)
	}
	return b
}

var errSpill = errors.New("damaged spill file")

// maxScale bounds the scale of a decimal that is read back, and with it the work of comparing.
const maxScale = 1000

func readValue(b []byte, depth int) (v Value, rest []byte, err error) {
	if len(b) == 0 || depth > 8 || Kind(b[0]) > Tuple {
		return v, nil, errSpill
	}
	v.kind, b = Kind(b[0]), b[1:]
	switch v.kind {
	case Unset, Null:
	case Float, Double:
		if len(b) < 8 {
			return v, nil, errSpill
		}
		v.f, b = math.Float64frombits(binary.BigEndian.Uint64(b)), b[8:]
	case Bytes, Text:
		var s []byte
		if s, b, err = readBytes(b); err != nil {
			return v, nil, err
		}
		v.s = string(s)
	case Decimal:
		scale, n := binary.Varint(b)
		if n <= 0 || scale < -maxScale || scale > maxScale {
			return v, nil, errSpill
		}
		var s []byte
		if s, b, err = readBytes(b[n:]); err != nil {
			return v, nil, err
		}
		var ok bool
		v.scale = int32(scale)
		if v.big, ok = new(big.Int).SetString(string(s), 62); !ok {
			return v, nil, errSpill
		}
	case Tuple:
		n, w := binary.Uvarint(b)
		if w <= 0 || n > uint64(len(b)) {
			return v, nil, errSpill
		}
		b = b[w:]
		v.list = make([]Value, n)
		for i := range v.list {
			if v.list[i], b, err = readValue(b, depth+1); err != nil {
				return v, nil, err
			}
		}
	default:
		i, n := binary.Varint(b)
		if n <= 0 {
			return v, nil, errSpill
		}
		v.i, b = i, b[n:]
	}
	return v, b, nil
}

func readBytes(b []byte) (s, rest []byte, err error) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return nil, nil, errSpill
	}
	b = b[w:]
	return bytes.Clone(b[:n]), b[n:], nil
}

// twosComplement reads a big-endian signed number, as Avro stores the unscaled part of a decimal.
func twosComplement(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(b))*8))
	}
	return n
}
