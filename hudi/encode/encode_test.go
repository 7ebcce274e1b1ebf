package encode_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/sluicelake/sluice/hudi/encode"
)

func f(name string, dt arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: dt, Nullable: true}
}

func record(t testing.TB, s *arrow.Schema, text string) arrow.RecordBatch {
	t.Helper()
	b, _, err := array.RecordFromJSON(memory.NewGoAllocator(), s, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func typesSchema() *arrow.Schema {
	str, i32 := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32
	return arrow.NewSchema([]arrow.Field{
		f("b", arrow.FixedWidthTypes.Boolean), f("l", arrow.PrimitiveTypes.Int64), f("d", arrow.PrimitiveTypes.Float64), f("dec", &arrow.Decimal128Type{Precision: 38, Scale: 18}), f("day", arrow.FixedWidthTypes.Date32),
		f("us", &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}), f("ms", &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}), f("local", &arrow.TimestampType{Unit: arrow.Microsecond}), f("tod", arrow.FixedWidthTypes.Time64us),
		f("s", str), f("bin", arrow.BinaryTypes.Binary), f("arr", arrow.ListOf(i32)), f("m", arrow.MapOf(str, i32)), f("im", arrow.MapOf(arrow.FixedWidthTypes.Date32, i32)), f("st", arrow.StructOf(f("x", i32), f("y", str))),
	}, nil)
}

const typesRows = `[
{"b":true,"l":9223372036854775807,"d":0.1,"dec":"1","day":"2024-02-29","us":"2024-02-29T12:34:56.000123Z","ms":"1969-12-31T23:59:59.999Z","local":"0001-01-03T00:00:00","tod":"12:34:56.000123","s":"a \"q\" \\ \n\t\u0001 é 😀 </x>","bin":"AP8=","arr":[1,null],"m":[{"key":"k","value":null}],"im":[{"key":"2024-02-29","value":1}],"st":{"x":1,"y":null}},
{"b":null,"l":null,"d":null,"dec":null,"day":null,"us":null,"ms":null,"local":null,"tod":null,"s":null,"bin":null,"arr":null,"m":null,"im":null,"st":null},
{"b":false,"l":-1,"d":1e300,"dec":"-99999999999999999999.999999999999999999","day":"9999-12-31","us":"9999-12-31T23:59:59.999999Z","ms":"2024-01-01T00:00:00Z","local":"2024-01-01T00:00:00","tod":"00:00:00","s":"","bin":"","arr":[],"m":[],"im":[],"st":{"x":null,"y":null}}]`

// The encodings of design.md, byte for byte.
func TestPlainJSON(t *testing.T) {
	b := record(t, typesSchema(), typesRows)
	defer b.Release()
	w, err := encode.NewJSON(b.Schema(), encode.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"b":true,"l":9223372036854775807,"d":0.1,"dec":"1.000000000000000000","day":"2024-02-29","us":"2024-02-29T12:34:56.000123Z","ms":"1969-12-31T23:59:59.999Z","local":"0001-01-03T00:00:00.000000","tod":"12:34:56.000123","s":"a \"q\" \\ \n\t\u0001 é 😀 </x>","bin":"AP8=","arr":[1,null],"m":{"k":null},"im":[{"key":"2024-02-29","value":1}],"st":{"x":1,"y":null}}
{"b":null,"l":null,"d":null,"dec":null,"day":null,"us":null,"ms":null,"local":null,"tod":null,"s":null,"bin":null,"arr":null,"m":null,"im":null,"st":null}
{"b":false,"l":-1,"d":1e+300,"dec":"-99999999999999999999.999999999999999999","day":"9999-12-31","us":"9999-12-31T23:59:59.999999Z","ms":"2024-01-01T00:00:00.000Z","local":"2024-01-01T00:00:00.000000","tod":"00:00:00.000000","s":"","bin":"","arr":[],"m":{},"im":[],"st":{"x":null,"y":null}}
`
	if got := string(w.Append(nil, b)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	slice := b.NewSlice(1, 3)
	defer slice.Release()
	if got := string(w.Append(nil, slice)); got != want[strings.Index(want, "\n")+1:] {
		t.Errorf("slice: %s", got)
	}
}

func TestSparkJSON(t *testing.T) {
	b := record(t, typesSchema(), typesRows)
	defer b.Release()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	w, err := encode.NewJSON(b.Schema(), encode.Options{Style: encode.Spark, Zone: berlin})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"b":true,"l":9223372036854775807,"d":0.1,"dec":1.000000000000000000,"day":"2024-02-29","us":"2024-02-29T13:34:56.000+01:00","ms":"1970-01-01T00:59:59.999+01:00","local":"0001-01-03T00:00:00.000","tod":"12:34:56.000123","s":"a \"q\" \\ \n\t\u0001 é 😀 </x>","bin":"AP8=","arr":[1,null],"m":{"k":null},"im":{"19782":1},"st":{"x":1}}
{}
{"b":false,"l":-1,"d":1.0E300,"dec":-99999999999999999999.999999999999999999,"day":"9999-12-31","us":"+10000-01-01T00:59:59.999+01:00","ms":"2024-01-01T01:00:00.000+01:00","local":"2024-01-01T00:00:00.000","tod":"00:00:00.000000","s":"","bin":"","arr":[],"m":{},"im":{},"st":{}}
`
	if got := string(w.Append(nil, b)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Floats are the shortest number that reads back equal, in both widths.
func TestFloats(t *testing.T) {
	s := arrow.NewSchema([]arrow.Field{f("f", arrow.PrimitiveTypes.Float32), f("d", arrow.PrimitiveTypes.Float64)}, nil)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), s)
	values := []float64{1.1, 0, math.Copysign(0, -1), 1e21, 1e-7, 123456789, 1.5e-10, math.NaN(), math.Inf(1), math.Inf(-1), 1 << 53, 3.4028234663852886e38}
	for _, v := range values {
		b.Field(0).(*array.Float32Builder).Append(float32(v))
		b.Field(1).(*array.Float64Builder).Append(v)
	}
	rec := b.NewRecordBatch()
	w, err := encode.NewJSON(s, encode.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`{"f":1.1,"d":1.1}`, `{"f":0,"d":0}`, `{"f":-0,"d":-0}`, `{"f":1e+21,"d":1e+21}`, `{"f":1e-7,"d":1e-7}`, `{"f":123456790,"d":123456789}`, `{"f":1.5e-10,"d":1.5e-10}`, `{"f":"NaN","d":"NaN"}`, `{"f":"Infinity","d":"Infinity"}`, `{"f":"-Infinity","d":"-Infinity"}`, `{"f":9007199000000000,"d":9007199254740992}`, `{"f":3.4028235e+38,"d":3.4028234663852886e+38}`}
	for i, line := range strings.Split(strings.TrimSpace(string(w.Append(nil, rec))), "\n") {
		if line != want[i] {
			t.Errorf("%v: %s, want %s", values[i], line, want[i])
		}
		if !json.Valid([]byte(line)) {
			t.Errorf("%s is no JSON", line)
		}
	}
}

// C099: the digits of a decimal are kept, also below one and negative.
func TestDecimals(t *testing.T) {
	s := arrow.NewSchema([]arrow.Field{f("v", &arrow.Decimal128Type{Precision: 5, Scale: 2}), f("w", &arrow.Decimal128Type{Precision: 38}), f("x", &arrow.Decimal256Type{Precision: 50, Scale: 10})}, nil)
	b := record(t, s, `[{"v":"-1.25","w":"-1","x":"-0.0000000001"},{"v":"-0.05","w":"99999999999999999999999999999999999999","x":"0"},{"v":"0","w":"0","x":"1.5"}]`)
	defer b.Release()
	w, err := encode.NewJSON(s, encode.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"v":"-1.25","w":"-1","x":"-0.0000000001"}
{"v":"-0.05","w":"99999999999999999999999999999999999999","x":"0.0000000000"}
{"v":"0.00","w":"0","x":"1.5000000000"}
`
	if got := string(w.Append(nil, b)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// C103: days around the epoch and at the start of the calendar; no null becomes the epoch.
func TestDates(t *testing.T) {
	s := arrow.NewSchema([]arrow.Field{f("d", arrow.FixedWidthTypes.Date32)}, nil)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), s)
	days := []int32{16436, 0, -1, -719162, -719529, 2932897, -141428, 19782}
	want := []string{"2015-01-01", "1970-01-01", "1969-12-31", "0001-01-01", "-0001-12-31", "+10000-01-01", "1582-10-14", "2024-02-29"}
	want[4] = "-0001-12-31"
	for _, d := range days {
		b.Field(0).(*array.Date32Builder).Append(arrow.Date32(d))
	}
	w, err := encode.NewCSV(s, encode.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range strings.Fields(string(w.Append(nil, b.NewRecordBatch()))) {
		if got != want[i] {
			t.Errorf("day %d: %s, want %s", days[i], got, want[i])
		}
	}
	for d := -800000; d < 800000; d += 37 { // the calendar of the standard library
		b.Field(0).(*array.Date32Builder).Append(arrow.Date32(d))
	}
	d := -800000
	for _, got := range strings.Fields(string(w.Append(nil, b.NewRecordBatch()))) {
		if t1 := time.Unix(int64(d)*86400, 0).UTC(); t1.Year() >= 0 && t1.Year() < 10000 && got != t1.Format(time.DateOnly) {
			t.Fatalf("day %d: %s, want %s", d, got, t1.Format(time.DateOnly))
		}
		d += 37
	}
}

// CSV reads back by RFC 4180; null and the empty text differ.
func TestCSV(t *testing.T) {
	b := record(t, typesSchema(), typesRows)
	defer b.Release()
	w, err := encode.NewCSV(b.Schema(), encode.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := w.Append(w.AppendHeader(nil), b)
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	want := [][]string{
		strings.Split("b,l,d,dec,day,us,ms,local,tod,s,bin,arr,m,im,st", ","),
		{"true", "9223372036854775807", "0.1", "1.000000000000000000", "2024-02-29", "2024-02-29T12:34:56.000123Z", "1969-12-31T23:59:59.999Z", "0001-01-03T00:00:00.000000", "12:34:56.000123", "a \"q\" \\ \n\t\x01 é 😀 </x>", "AP8=", "[1,null]", `{"k":null}`, `[{"key":"2024-02-29","value":1}]`, `{"x":1,"y":null}`},
		strings.Split(strings.Repeat(",", 14), ","),
	}
	for i := range want {
		if strings.Join(rows[i], "|") != strings.Join(want[i], "|") {
			t.Errorf("row %d: %q\nwant %q", i, rows[i], want[i])
		}
	}
	if !bytes.Contains(text, []byte(`00:00:00.000000,"",,[],{},[],`)) {
		t.Errorf("empty text and bytes in\n%s", text)
	}
}

// No value can move a terminal's cursor; columns line up by width in cells.
func TestTable(t *testing.T) {
	s := arrow.NewSchema([]arrow.Field{f("id", arrow.PrimitiveTypes.Int64), f("name", arrow.BinaryTypes.String), f("v", arrow.BinaryTypes.String)}, nil)
	b := record(t, s, `[{"id":1,"name":"漢字","v":"\u001b[2J\n"},{"id":12345,"name":null,"v":"`+strings.Repeat("x", 100)+`"}]`)
	defer b.Release()
	var out bytes.Buffer
	tab, err := encode.NewTable(&out, s, encode.TableOptions{MaxCell: 12})
	if err != nil {
		t.Fatal(err)
	}
	if err := tab.Add(b); err != nil {
		t.Fatal(err)
	}
	if err := tab.Close(); err != nil {
		t.Fatal(err)
	}
	want := `   id | name | v
------+------+-------------
    1 | 漢字 | \u001B[2J\n
12345 | null | xxxxxxxxxxx…
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func BenchmarkJSON(b *testing.B) {
	s := arrow.NewSchema([]arrow.Field{f("key", arrow.BinaryTypes.String), f("id", arrow.PrimitiveTypes.Int64), f("price", &arrow.Decimal128Type{Precision: 10, Scale: 2}), f("at", &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}), f("ratio", arrow.PrimitiveTypes.Float64)}, nil)
	rec := record(b, s, "["+strings.TrimSuffix(strings.Repeat(`{"key":"order-0000000001","id":123456,"price":"1234.56","at":"2024-02-29T12:34:56.000123Z","ratio":0.125},`, 10000), ",")+"]")
	w, err := encode.NewJSON(s, encode.Options{})
	if err != nil {
		b.Fatal(err)
	}
	var buf []byte
	for b.Loop() {
		buf = w.Append(buf[:0], rec)
	}
	b.SetBytes(int64(len(buf)))
	b.ReportMetric(10000*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
