package lakemodel

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sluicelake/sluice/interop/rows"
)

// Column is a column of incoming rows.
type Column struct {
	Name string
	Type arrow.DataType
}

// Arrow gives the schema of rows with these columns. Every column and everything nested can be null.
func Arrow(columns []Column) *arrow.Schema {
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = arrow.Field{Name: c.Name, Type: c.Type, Nullable: true}
	}
	return arrow.NewSchema(fields, nil)
}

// Declared gives the columns with the type names by which package rows compares values.
func Declared(columns []Column) ([]rows.Column, error) {
	lines := make([]string, len(columns))
	for i, c := range columns {
		name, err := sparkType(c.Type)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.Name, err)
		}
		lines[i] = c.Name + " " + name
	}
	return rows.ParseColumns(lines)
}

// sparkType names a type as Spark does once the column is in a table: small integers have become int.
func sparkType(dt arrow.DataType) (string, error) {
	switch dt := dt.(type) {
	case *arrow.BooleanType:
		return "boolean", nil
	case *arrow.Int16Type, *arrow.Int32Type:
		return "int", nil
	case *arrow.Int64Type:
		return "bigint", nil
	case *arrow.Float32Type:
		return "float", nil
	case *arrow.Float64Type:
		return "double", nil
	case *arrow.StringType:
		return "string", nil
	case *arrow.BinaryType:
		return "binary", nil
	case *arrow.Date32Type:
		return "date", nil
	case *arrow.TimestampType:
		return "timestamp", nil
	case *arrow.Decimal128Type:
		return fmt.Sprintf("decimal(%d,%d)", dt.Precision, dt.Scale), nil
	case *arrow.MapType:
		item, err := sparkType(dt.ItemType())
		return "map<string," + item + ">", err
	case *arrow.ListType:
		item, err := sparkType(dt.Elem())
		return "array<" + item + ">", err
	case *arrow.StructType:
		parts := make([]string, dt.NumFields())
		for i, f := range dt.Fields() {
			name, err := sparkType(f.Type)
			if err != nil {
				return "", err
			}
			parts[i] = f.Name + ":" + name
		}
		return "struct<" + strings.Join(parts, ",") + ">", nil
	}
	return "", fmt.Errorf("no name for type %s", dt)
}

var (
	text    arrow.DataType = arrow.BinaryTypes.String
	boolean arrow.DataType = arrow.FixedWidthTypes.Boolean
	integer arrow.DataType = arrow.PrimitiveTypes.Int32
	long    arrow.DataType = arrow.PrimitiveTypes.Int64
	double  arrow.DataType = arrow.PrimitiveTypes.Float64
	micros  arrow.DataType = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	millis  arrow.DataType = &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}
)

func list(of arrow.DataType) arrow.DataType {
	return arrow.ListOfField(arrow.Field{Name: "element", Type: of, Nullable: true})
}

func structure(pairs ...any) arrow.DataType {
	var fields []arrow.Field
	for i := 0; i < len(pairs); i += 2 {
		fields = append(fields, arrow.Field{Name: pairs[i].(string), Type: pairs[i+1].(arrow.DataType), Nullable: true})
	}
	return arrow.StructOf(fields...)
}

func decimal(precision, scale int32) arrow.DataType {
	return &arrow.Decimal128Type{Precision: precision, Scale: scale}
}

// dataColumns are those that a history may have beside the ones that keys, partitions and ordering need. A list of decimals
// is not among them: Apache Hudi names the Avro type of its elements as that of a list of structs, and fails on its own files
// that have both; nor is a struct of one field inside a list, on which 1.2.0 fails (table format 11).
func dataColumns() []Column {
	return []Column{
		{"c_flag", boolean},
		{"c_small", arrow.PrimitiveTypes.Int16},
		{"c_int", integer},
		{"c_long", long},
		{"c_float", arrow.PrimitiveTypes.Float32},
		{"c_double", double},
		{"c_text", text},
		{"c_bytes", arrow.BinaryTypes.Binary},
		{"c_dec_small", decimal(9, 2)},
		{"c_dec", decimal(20, 2)},
		{"c_dec_wide", decimal(38, 18)},
		{"c_date", arrow.FixedWidthTypes.Date32},
		{"c_micros", micros},
		{"c_millis", millis},
		{"c_list", list(integer)},
		{"c_texts", list(text)},
		{"c_map", arrow.MapOf(text, long)},
		{"c_map_struct", arrow.MapOf(text, structure("p", double, "q", list(text)))},
		{"c_struct", structure("a", integer, "b", text)},
		{"c_structs", list(structure("x", integer, "y", list(text), "z", decimal(12, 3)))},
		{"c_grid", list(list(double))},
		{"c_deep", structure("n1", structure("n2", list(arrow.MapOf(text, integer)), "n3", boolean), "n4", micros)},
	}
}

var texts = []string{"", "plain", "it's", `say "hi"`, "ünï 日本 😀", "tab\there", `back\slash`, "a/b", "50%", "new\nline", "x", " blank ", "null"}

// values makes values of any type, in the encoding of package rows.
type values struct {
	*rand.Rand
	nullElements bool // lists and maps may hold nulls
}

// of gives a value, now and then null.
func (v values) of(dt arrow.DataType) any {
	if v.IntN(6) == 0 {
		return nil
	}
	return v.some(dt)
}

func (v values) element(dt arrow.DataType) any {
	if v.nullElements {
		return v.of(dt)
	}
	return v.some(dt)
}

// some gives a value that is not null.
func (v values) some(dt arrow.DataType) any {
	switch dt := dt.(type) {
	case *arrow.BooleanType:
		return v.IntN(2) == 0
	case *arrow.Int16Type:
		return number(pick(v.Rand, []int64{0, -32768, 32767, v.Int64N(100)}))
	case *arrow.Int32Type:
		return number(pick(v.Rand, []int64{0, -1, -2147483648, 2147483647, v.Int64N(1000)}))
	case *arrow.Int64Type:
		return number(pick(v.Rand, []int64{0, -1, 9223372036854775807, -9223372036854775808, v.Int64N(1 << 40)}))
	case *arrow.Float32Type:
		return json.Number(pick(v.Rand, []string{"0.5", "-1.25", "0.1", "1024.0", "3.4028235e38", strconv.FormatFloat(float64(v.Float32()), 'g', -1, 32)}))
	case *arrow.Float64Type:
		return pick(v.Rand, []any{json.Number("0.1"), json.Number("-0.0"), json.Number("1e300"), json.Number("2.5"), "NaN", "-Infinity",
			json.Number(strconv.FormatFloat(v.Float64(), 'g', -1, 64))})
	case *arrow.StringType:
		if v.IntN(20) == 0 {
			return strings.Repeat(pick(v.Rand, []string{"long ", "läng"}), 50+v.IntN(200))
		}
		return pick(v.Rand, texts)
	case *arrow.BinaryType:
		return base64.StdEncoding.EncodeToString(pick(v.Rand, [][]byte{{}, {0, 255, 16}, []byte("text"), {0xc3, 0xa9}}))
	case *arrow.Date32Type:
		return pick(v.Rand, []string{"1969-12-31", "2024-02-29", "1900-01-01", "9999-12-31", "2026-11-30"})
	case *arrow.Decimal128Type:
		return v.decimal(int(dt.Precision), int(dt.Scale))
	case *arrow.TimestampType:
		return v.timestamp(dt)
	case *arrow.MapType:
		return v.pairs(dt)
	case *arrow.ListType:
		out := []any{}
		for range v.IntN(4) {
			out = append(out, v.element(dt.Elem()))
		}
		return out
	case *arrow.StructType:
		out := map[string]any{}
		for _, f := range dt.Fields() {
			out[f.Name] = v.of(f.Type)
		}
		return out
	}
	panic(fmt.Sprintf("lakemodel: no values of type %s", dt))
}

// decimal gives one to all of the digits that the type has room for.
func (v values) decimal(precision, scale int) string {
	digits := make([]byte, 1+v.IntN(precision))
	for i := range digits {
		digits[i] = byte('0' + v.IntN(10))
	}
	sign := pick(v.Rand, []string{"", "", "-"})
	if strings.Trim(string(digits), "0") == "" {
		sign = ""
	}
	return sign + point(string(digits), scale)
}

// point puts the decimal point scale digits from the right, without leading zeros.
func point(digits string, scale int) string {
	digits = strings.TrimLeft(digits, "0")
	if len(digits) <= scale {
		digits = strings.Repeat("0", scale+1-len(digits)) + digits
	}
	return digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
}

func (v values) timestamp(dt *arrow.TimestampType) string {
	if v.IntN(8) == 0 && dt.Unit == arrow.Microsecond {
		return "1969-12-31T23:59:59.999999Z"
	}
	text := fmt.Sprintf("20%02d-%02d-%02dT%02d:%02d:%02d", v.IntN(60), 1+v.IntN(12), 1+v.IntN(28), v.IntN(24), v.IntN(60), v.IntN(60))
	if dt.Unit == arrow.Millisecond {
		return fmt.Sprintf("%s.%03dZ", text, v.IntN(1000))
	}
	return fmt.Sprintf("%s.%06dZ", text, v.IntN(1000000))
}

func (v values) pairs(dt *arrow.MapType) any {
	out := []any{}
	keys := []string{"k", "ключ", "", "a/b", "q\"uote"}
	for _, i := range v.Perm(len(keys))[:v.IntN(4)] {
		// The values of a map may be null in every layout (table format 11).
		out = append(out, map[string]any{"key": keys[i], "value": v.of(dt.ItemType())})
	}
	return out
}

func number(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }
