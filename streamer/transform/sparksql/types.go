package sparksql

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/sluicelake/sluice/hudi/schema"
)

// Kind is a type of Spark SQL without its parameters.
type Kind uint8

// The kinds. Time is no type of Spark: such columns pass through and compare, nothing else.
const (
	Null Kind = iota
	Boolean
	Byte
	Short
	Int
	Long
	Float
	Double
	Decimal
	String
	Binary
	Date
	Timestamp
	TimestampNTZ
	Time
	Interval
	Array
	Map
	Struct
)

var kindNames = [...]string{"void", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "string", "binary", "date", "timestamp", "timestamp_ntz", "time", "interval", "array", "map", "struct"}

// Type of a column or expression.
type Type struct {
	Kind Kind
	// Precision and Scale of a decimal. Scale of a time: 3 for milliseconds, 6 for microseconds.
	Precision, Scale int
	// Fields of a struct; the element of an array; key and value of a map.
	Fields []Field
}

// Field is a named type.
type Field struct {
	Name     string
	Type     *Type
	Nullable bool
}

// maxPrecision of decimals, in Spark, Hudi and DuckDB.
const maxPrecision = 38

func simple(k Kind) *Type           { return &Type{Kind: k} }
func decimalType(p, s int) *Type    { return &Type{Kind: Decimal, Precision: p, Scale: s} }
func arrayOf(t *Type, n bool) *Type { return &Type{Kind: Array, Fields: []Field{{"element", t, n}}} }

func (t *Type) elem() *Type { return t.Fields[len(t.Fields)-1].Type }

// boundedDecimal is the decimal of a precision and scale, kept within 38 digits at the cost of the scale, of which at least six
// digits are kept (Spark's rule under spark.sql.decimalOperations.allowPrecisionLoss).
func boundedDecimal(p, s int) *Type {
	if p <= maxPrecision {
		return decimalType(p, s)
	}
	whole := p - s
	return decimalType(maxPrecision, max(maxPrecision-whole, min(s, 6)))
}

// String is the type as Spark writes it: decimal(10,2), array<string>, struct<a:int>.
func (t *Type) String() string {
	switch t.Kind {
	case Decimal:
		return fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale)
	case Array:
		return "array<" + t.elem().String() + ">"
	case Map:
		return "map<" + t.Fields[0].Type.String() + "," + t.Fields[1].Type.String() + ">"
	case Struct:
		parts := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			parts[i] = f.Name + ":" + f.Type.String()
		}
		return "struct<" + strings.Join(parts, ",") + ">"
	}
	return kindNames[t.Kind]
}

// Duck is the type in DuckDB. Members of structs are called f0, f1, … there: DuckDB's names know no case and must differ, ours
// may be anything. Both kinds of timestamp are DuckDB's plain one, in UTC.
func (t *Type) Duck() string {
	switch t.Kind {
	case Null:
		return "INTEGER"
	case Boolean:
		return "BOOLEAN"
	case Byte:
		return "TINYINT"
	case Short:
		return "SMALLINT"
	case Int:
		return "INTEGER"
	case Long, Time:
		return "BIGINT"
	case Float:
		return "FLOAT"
	case Double:
		return "DOUBLE"
	case Decimal:
		return fmt.Sprintf("DECIMAL(%d,%d)", t.Precision, t.Scale)
	case String:
		return "VARCHAR"
	case Binary:
		return "BLOB"
	case Date:
		return "DATE"
	case Timestamp, TimestampNTZ:
		return "TIMESTAMP"
	case Interval:
		return "INTERVAL"
	case Array:
		return t.elem().Duck() + "[]"
	case Map:
		return "MAP(" + t.Fields[0].Type.Duck() + ", " + t.Fields[1].Type.Duck() + ")"
	}
	parts := make([]string, len(t.Fields))
	for i, f := range t.Fields {
		parts[i] = "f" + strconv.Itoa(i) + " " + f.Type.Duck()
	}
	return "STRUCT(" + strings.Join(parts, ", ") + ")"
}

// Equal compares types; names of fields count, nullability doesn't.
func (t *Type) Equal(o *Type) bool {
	if t.Kind != o.Kind || t.Precision != o.Precision || t.Scale != o.Scale || len(t.Fields) != len(o.Fields) {
		return false
	}
	for i, f := range t.Fields {
		if t.Kind == Struct && f.Name != o.Fields[i].Name || !f.Type.Equal(o.Fields[i].Type) {
			return false
		}
	}
	return true
}

// FromArrow gives the type of an Arrow column as Spark reads it: small unsigned integers are the next wider signed ones, uint64
// a decimal(20,0), timestamps of every unit have microseconds, dictionaries are their values.
func FromArrow(dt arrow.DataType) (*Type, error) {
	switch d := dt.(type) {
	case *arrow.NullType:
		return simple(Null), nil
	case *arrow.BooleanType:
		return simple(Boolean), nil
	case *arrow.Int8Type:
		return simple(Byte), nil
	case *arrow.Int16Type, *arrow.Uint8Type:
		return simple(Short), nil
	case *arrow.Int32Type, *arrow.Uint16Type:
		return simple(Int), nil
	case *arrow.Int64Type, *arrow.Uint32Type:
		return simple(Long), nil
	case *arrow.Uint64Type:
		return decimalType(20, 0), nil
	case *arrow.Float32Type:
		return simple(Float), nil
	case *arrow.Float64Type:
		return simple(Double), nil
	case *arrow.StringType, *arrow.LargeStringType:
		return simple(String), nil
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.FixedSizeBinaryType:
		return simple(Binary), nil
	case *arrow.Date32Type:
		return simple(Date), nil
	case *arrow.TimestampType:
		if d.TimeZone == "" {
			return simple(TimestampNTZ), nil
		}
		return simple(Timestamp), nil
	case *arrow.Time32Type:
		return &Type{Kind: Time, Scale: 3}, nil
	case *arrow.Time64Type:
		return &Type{Kind: Time, Scale: 6}, nil
	case *arrow.Decimal128Type:
		// A negative scale is a number of digits before the point that are always zero: Spark reads such a value at scale 0.
		if d.Scale < 0 {
			if int(d.Precision)-int(d.Scale) > maxPrecision {
				return nil, fmt.Errorf("decimal(%d,%d) has more than %d digits", d.Precision, d.Scale, maxPrecision)
			}
			return decimalType(int(d.Precision-d.Scale), 0), nil
		}
		if d.Precision > maxPrecision || d.Precision < 1 || d.Scale > d.Precision {
			return nil, fmt.Errorf("decimal(%d,%d) is none that SQL has", d.Precision, d.Scale)
		}
		return decimalType(int(d.Precision), int(d.Scale)), nil
	case *arrow.DictionaryType:
		return FromArrow(d.ValueType)
	case *arrow.ListType:
		return listFromArrow(d.ElemField())
	case *arrow.LargeListType:
		return listFromArrow(d.ElemField())
	case *arrow.MapType:
		key, err := FromArrow(d.KeyType())
		if err != nil {
			return nil, err
		}
		value, err := FromArrow(d.ItemType())
		if err != nil {
			return nil, err
		}
		return &Type{Kind: Map, Fields: []Field{{"key", key, false}, {"value", value, d.ItemField().Nullable}}}, nil
	case *arrow.StructType:
		t := &Type{Kind: Struct}
		for _, f := range d.Fields() {
			ft, err := FromArrow(f.Type)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
			t.Fields = append(t.Fields, Field{f.Name, ft, f.Nullable})
		}
		if len(t.Fields) == 0 {
			return nil, fmt.Errorf("a struct without members is nothing that SQL has")
		}
		return t, nil
	}
	return nil, fmt.Errorf("columns of type %s can't be used in SQL", dt)
}

func listFromArrow(elem arrow.Field) (*Type, error) {
	t, err := FromArrow(elem.Type)
	if err != nil {
		return nil, err
	}
	return arrayOf(t, elem.Nullable), nil
}

// Arrow is the type of a result's column. It fails on what no table can hold.
func (t *Type) Arrow() (arrow.DataType, error) {
	switch t.Kind {
	case Null:
		return nil, fmt.Errorf("its type is void: cast the NULL to the type that the table shall have, as in CAST(NULL AS STRING)")
	case Boolean:
		return arrow.FixedWidthTypes.Boolean, nil
	case Byte:
		return arrow.PrimitiveTypes.Int8, nil
	case Short:
		return arrow.PrimitiveTypes.Int16, nil
	case Int:
		return arrow.PrimitiveTypes.Int32, nil
	case Long:
		return arrow.PrimitiveTypes.Int64, nil
	case Float:
		return arrow.PrimitiveTypes.Float32, nil
	case Double:
		return arrow.PrimitiveTypes.Float64, nil
	case Decimal:
		return &arrow.Decimal128Type{Precision: int32(t.Precision), Scale: int32(t.Scale)}, nil
	case String:
		return arrow.BinaryTypes.String, nil
	case Binary:
		return arrow.BinaryTypes.Binary, nil
	case Date:
		return arrow.FixedWidthTypes.Date32, nil
	case Timestamp:
		return &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: schema.UTC}, nil
	case TimestampNTZ:
		return &arrow.TimestampType{Unit: arrow.Microsecond}, nil
	case Time:
		if t.Scale == 3 {
			return arrow.FixedWidthTypes.Time32ms, nil
		}
		return arrow.FixedWidthTypes.Time64us, nil
	case Array:
		e, err := t.elem().Arrow()
		if err != nil {
			return nil, err
		}
		return arrow.ListOfField(arrow.Field{Name: "element", Type: e, Nullable: t.Fields[0].Nullable}), nil
	case Map:
		k, err := t.Fields[0].Type.Arrow()
		if err != nil {
			return nil, err
		}
		v, err := t.Fields[1].Type.Arrow()
		if err != nil {
			return nil, err
		}
		m := arrow.MapOf(k, v)
		m.SetItemNullable(t.Fields[1].Nullable)
		return m, nil
	case Struct:
		fields := make([]arrow.Field, len(t.Fields))
		for i, f := range t.Fields {
			ft, err := f.Type.Arrow()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
			fields[i] = arrow.Field{Name: f.Name, Type: ft, Nullable: f.Nullable}
		}
		return arrow.StructOf(fields...), nil
	}
	return nil, fmt.Errorf("a column of type %s can't be written to a table", t)
}

func (t *Type) integral() bool   { return t.Kind >= Byte && t.Kind <= Long }
func (t *Type) numeric() bool    { return t.Kind >= Byte && t.Kind <= Decimal }
func (t *Type) fractional() bool { return t.Kind == Float || t.Kind == Double }
func (t *Type) atTime() bool     { return t.Kind == Timestamp || t.Kind == TimestampNTZ }

// digits of a number as a decimal: what holds every value of an integer type.
func (t *Type) digits() *Type {
	switch t.Kind {
	case Byte:
		return decimalType(3, 0)
	case Short:
		return decimalType(5, 0)
	case Int:
		return decimalType(10, 0)
	case Long:
		return decimalType(20, 0)
	case Float:
		return decimalType(14, 7)
	case Double:
		return decimalType(30, 15)
	}
	return t
}

// common is the type that values of two types take side by side (CASE, COALESCE, IN, UNION, array): nil when there is none.
func common(a, b *Type) *Type {
	switch {
	case a.Equal(b):
		return a
	case a.Kind == Null:
		return b
	case b.Kind == Null:
		return a
	case a.numeric() && b.numeric():
		return commonNumber(a, b)
	case a.Kind == String && stringable(b):
		return a
	case b.Kind == String && stringable(a):
		return b
	case a.Kind == Date && b.atTime(), a.Kind == TimestampNTZ && b.Kind == Timestamp:
		return b
	case b.Kind == Date && a.atTime(), b.Kind == TimestampNTZ && a.Kind == Timestamp:
		return a
	case a.Kind == b.Kind && len(a.Fields) == len(b.Fields) && len(a.Fields) > 0:
		fields := make([]Field, len(a.Fields))
		for i, f := range a.Fields {
			g := b.Fields[i]
			t := common(f.Type, g.Type)
			if t == nil || a.Kind == Struct && !strings.EqualFold(f.Name, g.Name) {
				return nil
			}
			fields[i] = Field{f.Name, t, f.Nullable || g.Nullable || !t.Equal(f.Type)}
		}
		return &Type{Kind: a.Kind, Fields: fields}
	}
	return nil
}

func stringable(t *Type) bool {
	return t.numeric() || t.Kind == Date || t.atTime() || t.Kind == String
}

func commonNumber(a, b *Type) *Type {
	if a.Kind != Decimal && b.Kind != Decimal {
		return simple(max(a.Kind, b.Kind))
	}
	if a.fractional() || b.fractional() {
		return simple(Double)
	}
	x, y := a.digits(), b.digits()
	scale := max(x.Scale, y.Scale)
	whole := max(x.Precision-x.Scale, y.Precision-y.Scale)
	return decimalType(min(whole+scale, maxPrecision), min(scale, maxPrecision))
}
