package basefile

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	pq "github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/sluicelake/sluice/hudi/schema"
)

// leafType is how the values of a column chunk become Arrow values.
type leafType struct {
	arrow  arrow.DataType
	form   form
	length int // bytes of a fixed-length value
}

// form is the conversion from the physical value.
type form uint8

const (
	asIs      form = iota // int32, int64, float, double of the same layout; bytes as string or binary
	asBool                //
	asDecimal             // int32, int64 or big-endian bytes
	asFixed               // fixed-length bytes
	asInt96               // 8 bytes nanoseconds of the day, 4 bytes Julian day
	asUint32              // int32 bits, widened to int64
	asUint64              // int64 bits, to decimal(20,0)
	asHalf                // two bytes, to float32
	asUUID                // 16 bytes, to text
	asNothing             // UNKNOWN: nulls only
)

func typeOfLeaf(p *pq.PrimitiveNode) (leafType, error) {
	lt, err := leafTypeOf(p)
	lt.length = p.TypeLength()
	if err == nil && p.PhysicalType() == parquet.Types.FixedLenByteArray && (lt.length <= 0 || lt.length > 1<<24) {
		err = fmt.Errorf("%w: fixed-length value of %d bytes", ErrDamaged, lt.length)
	}
	return lt, err
}

func leafTypeOf(p *pq.PrimitiveNode) (leafType, error) {
	logical := p.LogicalType()
	switch l := logical.(type) {
	case pq.DecimalLogicalType:
		return decimalLeaf(p, l)
	case pq.UnknownLogicalType, pq.NullLogicalType:
		return leafType{arrow: arrow.Null, form: asNothing}, nil
	}
	switch p.PhysicalType() {
	case parquet.Types.Boolean:
		return leafType{arrow: arrow.FixedWidthTypes.Boolean, form: asBool}, nil
	case parquet.Types.Int32:
		return int32Leaf(logical), nil
	case parquet.Types.Int64:
		return int64Leaf(logical), nil
	case parquet.Types.Int96:
		return leafType{arrow: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: schema.UTC}, form: asInt96}, nil
	case parquet.Types.Float:
		return leafType{arrow: arrow.PrimitiveTypes.Float32}, nil
	case parquet.Types.Double:
		return leafType{arrow: arrow.PrimitiveTypes.Float64}, nil
	case parquet.Types.ByteArray:
		switch logical.(type) {
		case pq.StringLogicalType, pq.EnumLogicalType, pq.JSONLogicalType:
			return leafType{arrow: arrow.BinaryTypes.String}, nil
		}
		return leafType{arrow: arrow.BinaryTypes.Binary}, nil
	case parquet.Types.FixedLenByteArray:
		switch logical.(type) {
		case pq.UUIDLogicalType:
			if p.TypeLength() == 16 {
				return leafType{arrow: arrow.BinaryTypes.String, form: asUUID}, nil
			}
		case pq.Float16LogicalType:
			if p.TypeLength() == 2 {
				return leafType{arrow: arrow.PrimitiveTypes.Float32, form: asHalf}, nil
			}
		}
		return leafType{arrow: &arrow.FixedSizeBinaryType{ByteWidth: p.TypeLength()}, form: asFixed}, nil
	}
	return leafType{}, fmt.Errorf("%w: physical type %s", ErrUnsupported, p.PhysicalType())
}

func decimalLeaf(p *pq.PrimitiveNode, l pq.DecimalLogicalType) (leafType, error) {
	precision, scale := l.Precision(), l.Scale()
	if precision < 1 || precision > 76 || scale < 0 || scale > precision {
		return leafType{}, fmt.Errorf("%w: decimal(%d,%d)", ErrUnsupported, precision, scale)
	}
	switch p.PhysicalType() {
	case parquet.Types.Int32, parquet.Types.Int64, parquet.Types.ByteArray, parquet.Types.FixedLenByteArray:
	default:
		return leafType{}, fmt.Errorf("%w: decimal stored as %s", ErrUnsupported, p.PhysicalType())
	}
	if precision <= 38 {
		return leafType{arrow: &arrow.Decimal128Type{Precision: precision, Scale: scale}, form: asDecimal}, nil
	}
	return leafType{arrow: &arrow.Decimal256Type{Precision: precision, Scale: scale}, form: asDecimal}, nil
}

func int32Leaf(logical pq.LogicalType) leafType {
	switch l := logical.(type) {
	case pq.DateLogicalType:
		return leafType{arrow: arrow.FixedWidthTypes.Date32}
	case pq.TimeLogicalType:
		return leafType{arrow: arrow.FixedWidthTypes.Time32ms}
	case pq.IntLogicalType:
		if !l.IsSigned() && l.BitWidth() == 32 {
			return leafType{arrow: arrow.PrimitiveTypes.Int64, form: asUint32}
		}
	}
	// Bytes and shorts are ints in Hudi's schemas; writers keep the value in the whole int32.
	return leafType{arrow: arrow.PrimitiveTypes.Int32}
}

func int64Leaf(logical pq.LogicalType) leafType {
	switch l := logical.(type) {
	case pq.TimeLogicalType:
		if l.TimeUnit() == pq.TimeUnitNanos {
			return leafType{arrow: arrow.FixedWidthTypes.Time64ns}
		}
		return leafType{arrow: arrow.FixedWidthTypes.Time64us}
	case pq.TimestampLogicalType:
		ts := &arrow.TimestampType{}
		if l.IsAdjustedToUTC() {
			ts.TimeZone = schema.UTC
		}
		switch l.TimeUnit() {
		case pq.TimeUnitMillis:
			ts.Unit = arrow.Millisecond
		case pq.TimeUnitNanos:
			ts.Unit = arrow.Nanosecond
		default:
			ts.Unit = arrow.Microsecond
		}
		return leafType{arrow: ts}
	case pq.IntLogicalType:
		if !l.IsSigned() && l.BitWidth() == 64 {
			return leafType{arrow: &arrow.Decimal128Type{Precision: 20}, form: asUint64}
		}
	}
	return leafType{arrow: arrow.PrimitiveTypes.Int64}
}
