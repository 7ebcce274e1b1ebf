package schema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// FromArrow gives the Avro schema that Apache Hudi's Spark writer would give these columns. name is the full name of the
// record, for a table "hoodie.<table>.<table>_record".
//
// A nullable column is ["null", X] with default null. A nested record is called after its field, in the namespace that the
// enclosing record's full name makes; a decimal is a fixed of the fewest bytes called "<record>.<field>.fixed". Small and
// unsigned integers take the next wider signed type (uint64: decimal(20,0)), nanoseconds become timestamp-micros and seconds
// timestamp-millis, as no Java reader knows the others; [Resolve] brings the values along.
func FromArrow(s *arrow.Schema, name string) (*Type, error) {
	t := &Type{Kind: Record, Name: name}
	var err error
	if t.Fields, err = fromFields(s.Fields(), name, 1); err != nil {
		return nil, err
	}
	return t, nil
}

func fromFields(fields []arrow.Field, space string, depth int) ([]Field, error) {
	out := make([]Field, len(fields))
	seen := make(map[string]bool, len(fields))
	for i, f := range fields {
		if f.Name == "" || seen[f.Name] {
			return nil, fmt.Errorf("%w: column name %q is empty or stands twice in %s", ErrSchema, f.Name, space)
		}
		seen[f.Name] = true
		t, err := fromField(f.Type, f.Nullable, f.Name, space, depth)
		if err != nil {
			return nil, err
		}
		out[i] = Field{Name: f.Name, Type: t}
		if f.Nullable {
			out[i].Default = json.RawMessage("null")
		}
	}
	return out, nil
}

func fromField(dt arrow.DataType, null bool, name, space string, depth int) (*Type, error) {
	t, err := fromType(dt, name, space, depth)
	if err != nil {
		return nil, err
	}
	if null && t.Kind != Null {
		return nullable(t), nil
	}
	return t, nil
}

func fromType(dt arrow.DataType, name, space string, depth int) (*Type, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: %s.%s is nested deeper than %d levels", ErrSchema, space, name, maxDepth)
	}
	switch dt := dt.(type) {
	case *arrow.NullType:
		return &Type{Kind: Null}, nil
	case *arrow.BooleanType:
		return &Type{Kind: Boolean}, nil
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Uint8Type, *arrow.Uint16Type:
		return &Type{Kind: Int}, nil
	case *arrow.Int64Type, *arrow.Uint32Type:
		return &Type{Kind: Long}, nil
	case *arrow.Uint64Type:
		return decimalType(20, 0, name, space), nil
	case *arrow.Float16Type, *arrow.Float32Type:
		return &Type{Kind: Float}, nil
	case *arrow.Float64Type:
		return &Type{Kind: Double}, nil
	case *arrow.StringType, *arrow.LargeStringType, *arrow.StringViewType:
		return &Type{Kind: String}, nil
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.BinaryViewType:
		return &Type{Kind: Bytes}, nil
	case *arrow.FixedSizeBinaryType:
		return &Type{Kind: Fixed, Name: space + "." + name + ".fixed", Size: dt.ByteWidth}, nil
	case arrow.DecimalType:
		return decimalType(int(dt.GetPrecision()), int(dt.GetScale()), name, space), nil
	case *arrow.Date32Type, *arrow.Date64Type:
		return &Type{Kind: Int, Logical: Date}, nil
	case *arrow.Time32Type:
		return &Type{Kind: Int, Logical: TimeMillis}, nil
	case *arrow.Time64Type:
		return &Type{Kind: Long, Logical: TimeMicros}, nil
	case *arrow.TimestampType:
		return &Type{Kind: Long, Logical: timestampLogical(dt)}, nil
	case *arrow.DictionaryType:
		return fromType(dt.ValueType, name, space, depth)
	case *arrow.StructType:
		full := space + "." + name
		fields, err := fromFields(dt.Fields(), full, depth+1)
		if err != nil {
			return nil, err
		}
		return &Type{Kind: Record, Name: full, Fields: fields}, nil
	case *arrow.MapType:
		if id := dt.KeyType().ID(); id != arrow.STRING && id != arrow.LARGE_STRING {
			return nil, fmt.Errorf("%w: %s.%s is a map with keys of type %s; Avro maps have text keys", ErrSchema, space, name, dt.KeyType())
		}
		items, err := fromField(dt.ItemType(), dt.ItemField().Nullable, name, space, depth+1)
		return &Type{Kind: Map, Items: items}, err
	case arrow.ListLikeType:
		items, err := fromField(dt.Elem(), dt.ElemField().Nullable, name, space, depth+1)
		return &Type{Kind: Array, Items: items}, err
	}
	return nil, fmt.Errorf("%w: %s.%s: Arrow type %s has no Avro form", ErrSchema, space, name, dt)
}

func timestampLogical(dt *arrow.TimestampType) Logical {
	millis := dt.Unit == arrow.Second || dt.Unit == arrow.Millisecond
	switch {
	case dt.TimeZone != "" && millis:
		return TimestampMillis
	case dt.TimeZone != "":
		return TimestampMicros
	case millis:
		return LocalTimestampMillis
	}
	return LocalTimestampMicros
}

func decimalType(precision, scale int, name, space string) *Type {
	return &Type{Kind: Fixed, Logical: Decimal, Name: space + "." + name + ".fixed", Size: DecimalBytes(precision), Precision: precision, Scale: scale}
}

// DecimalBytes is the smallest number of bytes whose two's complement holds every decimal of that precision (precision 10:
// 5, 15: 7, 38: 16; table format 5.2).
func DecimalBytes(precision int) int {
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)
	return limit.Sub(limit, big.NewInt(1)).BitLen()/8 + 1
}

// RecordName is the full name of the record of a table's schema, as Apache Hudi's Spark writer makes it: characters that Avro
// names can't have become two underscores.
func RecordName(table string) string {
	var b strings.Builder
	for i, r := range table {
		switch {
		case r == '_', 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', i > 0 && '0' <= r && r <= '9':
			b.WriteRune(r)
		default:
			b.WriteString("__")
		}
	}
	return "hoodie." + b.String() + "." + b.String() + "_record"
}
