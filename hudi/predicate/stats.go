package predicate

import (
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// ColumnStats is what is known about one column of a group of rows.
type ColumnStats struct {
	// Min and Max bound the values that are not null: no value is below or above. They need not be values that occur (text is
	// often cut). No bound is the zero Value. Bounds of floats say nothing about NaN.
	Min, Max Value
	// Nulls is the number of nulls, -1 where unknown.
	Nulls int64
	// Rows is the number of rows, -1 where unknown.
	Rows int64
}

// Value is a bound in the column's own type: booleans, integers, dates, times and timestamps as the integer that Arrow holds
// (in the column's unit), floats as a double, decimals as the unscaled integer at the column's scale, texts and bytes as
// bytes. The zero Value is no bound.
type Value struct {
	kind valueKind
	i    int64
	f    float64
	s    string
	d    *big.Int
}

type valueKind uint8

const (
	noValue valueKind = iota
	intValue
	floatValue
	bytesValue
	decimalValue
)

// Int is the bound of a boolean (0, 1), integer, date, time or timestamp column.
func Int(v int64) Value { return Value{kind: intValue, i: v} }

// Float is the bound of a float or double column. NaN is no bound.
func Float(v float64) Value {
	if v != v {
		return Value{}
	}
	return Value{kind: floatValue, f: v}
}

// Bytes is the bound of a text or binary column.
func Bytes(v []byte) Value { return Value{kind: bytesValue, s: string(v)} }

// Decimal is the bound of a decimal column: the unscaled value at the column's scale.
func Decimal(unscaled *big.Int) Value { return Value{kind: decimalValue, d: unscaled} }

// ValueAt is the value of an array as a bound, none where it is null or of a type that has no order here.
func ValueAt(a arrow.Array, i int) Value {
	if a.IsNull(i) {
		return Value{}
	}
	switch a := a.(type) {
	case *array.Boolean:
		if a.Value(i) {
			return Int(1)
		}
		return Int(0)
	case *array.Int32:
		return Int(int64(a.Value(i)))
	case *array.Date32:
		return Int(int64(a.Value(i)))
	case *array.Time32:
		return Int(int64(a.Value(i)))
	case *array.Int64:
		return Int(a.Value(i))
	case *array.Time64:
		return Int(int64(a.Value(i)))
	case *array.Timestamp:
		return Int(int64(a.Value(i)))
	case *array.Float32:
		return Float(float64(a.Value(i)))
	case *array.Float64:
		return Float(a.Value(i))
	case *array.Decimal128:
		return Decimal(a.Value(i).BigInt())
	case *array.Decimal256:
		return Decimal(a.Value(i).BigInt())
	case *array.String:
		return Bytes([]byte(a.Value(i)))
	case *array.Binary:
		return Bytes(a.Value(i))
	case *array.FixedSizeBinary:
		return Bytes(a.Value(i))
	}
	return Value{}
}

// between gives the outcomes of a comparison with a constant that stands so towards the bounds: lo is the order of the lower
// bound against it (-1 below, 0 equal, 1 above, 2 no bound), hi that of the upper.
func between(op Op, lo, hi int) outcomes {
	canLess := lo == 2 || lo < 0
	canMore := hi == 2 || hi > 0
	canEqual := (lo == 2 || lo <= 0) && (hi == 2 || hi >= 0)
	switch op {
	case EQ:
		return outcomes{yes: canEqual, no: canLess || canMore}
	case NE:
		return outcomes{yes: canLess || canMore, no: canEqual}
	case LT:
		return outcomes{yes: canLess, no: canEqual || canMore}
	case LE:
		return outcomes{yes: canLess || canEqual, no: canMore}
	case GT:
		return outcomes{yes: canMore, no: canLess || canEqual}
	}
	return outcomes{yes: canMore || canEqual, no: canLess}
}

// order compares a bound with a constant; 2 where there is no bound of that kind.
func order(bound Value, kind valueKind, compare func(Value) int) int {
	if bound.kind != kind {
		return 2
	}
	return compare(bound)
}
