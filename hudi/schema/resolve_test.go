package schema_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/sluicelake/sluice/hudi/schema"
)

func one(dt arrow.DataType) *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{{Name: "v", Type: dt, Nullable: true}}, nil)
}

// resolve brings a JSON array of values from one type to another, whole and as a slice of a longer batch.
func resolve(t *testing.T, from, to arrow.DataType, values string, o schema.ResolveOptions) (string, error) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	r, err := schema.Resolve(one(from), one(to), o)
	if err != nil {
		return "", err
	}
	apply := func(values string, skip int64) (string, error) {
		in, _, err := array.FromJSON(mem, from, strings.NewReader(values))
		if err != nil {
			t.Fatal(err)
		}
		defer in.Release()
		batch := array.NewRecordBatch(one(from), []arrow.Array{in}, int64(in.Len()))
		defer batch.Release()
		slice := batch.NewSlice(skip, batch.NumRows())
		defer slice.Release()
		out, err := r.Batch(mem, slice)
		if err != nil {
			return "", err
		}
		defer out.Release()
		text, err := out.Column(0).MarshalJSON()
		return strings.ReplaceAll(string(text), "\n", ""), err
	}
	whole, err := apply(values, 0)
	if err != nil {
		return "", err
	}
	longer, err := apply(strings.Replace(values, "[", "[null,"+firstOf(values)+",", 1), 2)
	if err != nil {
		return "", err
	}
	if whole != longer {
		t.Errorf("%s of a slice: %s, whole: %s", values, longer, whole)
	}
	return whole, nil
}

// firstOf is the first element of a JSON array.
func firstOf(values string) string {
	depth, text := 0, false
	for i, c := range values[1:] {
		switch {
		case c == '"':
			text = !text
		case text:
		case c == '[' || c == '{':
			depth++
		case (c == ']' || c == ',') && depth == 0:
			return values[1 : i+1]
		case c == ']' || c == '}':
			depth--
		}
	}
	return "null"
}

func dec(p, s int32) arrow.DataType { return &arrow.Decimal128Type{Precision: p, Scale: s} }

func ts(u arrow.TimeUnit, zone string) arrow.DataType {
	return &arrow.TimestampType{Unit: u, TimeZone: zone}
}

func TestPromotions(t *testing.T) {
	i32, i64, f32, f64, str, bin := arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, arrow.BinaryTypes.String, arrow.BinaryTypes.Binary
	date := arrow.FixedWidthTypes.Date32
	for _, c := range []struct {
		from, to     arrow.DataType
		values, want string
		onRead       bool
	}{
		{i32, i64, `[1,null,-3]`, `[1,null,-3]`, false},
		{i32, f64, `[1,null,-3]`, `[1,null,-3]`, false},
		{i64, f32, `[16777217,null]`, `[16777216,null]`, false},
		// Apache Hudi widens a float by its text, so 1.1 stays 1.1.
		{f32, f64, `[1.1,null,0.1,-3.4e38,0.5]`, `[1.1,null,0.1,-3.4e+38,0.5]`, false},
		{str, bin, `["a",null]`, `["YQ==",null]`, false},
		{bin, str, `["YQ==",null]`, `["a",null]`, false},
		{dec(5, 2), dec(10, 2), `["1.25",null,"-0.05"]`, `["1.25",null,"-0.05"]`, false},
		{dec(5, 2), dec(10, 4), `["1.25",null,"-0.05"]`, `["1.25",null,"-0.05"]`, false},
		{dec(5, 2), &arrow.Decimal256Type{Precision: 40, Scale: 2}, `["1.25",null,"-0.05"]`, `["1.25",null,"-0.05"]`, false},
		{i32, dec(20, 2), `[7,null,-7]`, `["7",null,"-7"]`, false},
		{ts(arrow.Millisecond, "UTC"), ts(arrow.Microsecond, "UTC"), `["1969-12-31T23:59:59.999Z",null]`, `["1969-12-31T23:59:59.999Z",null]`, false},
		{ts(arrow.Microsecond, "UTC"), ts(arrow.Millisecond, "UTC"), `["1969-12-31T23:59:59.999999Z",null]`, `["1969-12-31T23:59:59.999Z",null]`, false},
		{i64, ts(arrow.Millisecond, "UTC"), `[-1,null]`, `["1969-12-31T23:59:59.999Z",null]`, false},
		{i32, date, `[-1,null]`, `["1969-12-31",null]`, false},
		{arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64us, `["12:34:56.123",null]`, `["12:34:56.123",null]`, false},
		{arrow.Null, i64, `[null,null]`, `[null,null]`, false},
		{arrow.PrimitiveTypes.Int8, i32, `[-1,null]`, `[-1,null]`, false},
		{arrow.BinaryTypes.LargeString, str, `["a",null,""]`, `["a",null,""]`, false},
		{i32, str, `[1,null,-3]`, `["1",null,"-3"]`, false},
		{f64, str, `[1,null,1e10,0.0001]`, `["1.0",null,"1.0E10","1.0E-4"]`, false},
		{dec(5, 2), str, `["1.20",null,"-0.05"]`, `["1.20",null,"-0.05"]`, true},
		{date, str, `["2024-02-29",null]`, `["2024-02-29",null]`, true},
		{str, date, `["2024-02-29",null,"0001-01-01"]`, `["2024-02-29",null,"0001-01-01"]`, true},
		{str, dec(5, 2), `["1.2",null,"-12e-2"]`, `["1.2",null,"-0.12"]`, true},
		{arrow.ListOf(i32), arrow.ListOf(f64), `[[1,null],null,[]]`, `[[1,null],null,[]]`, false},
		{arrow.MapOf(str, i32), arrow.MapOf(str, i64), `[[{"key":"a","value":1}],null]`, `[[{"key":"a","value":1}],null]`, false},
		{arrow.StructOf(arrow.Field{Name: "b", Type: i32, Nullable: true}, arrow.Field{Name: "A", Type: str, Nullable: true}),
			arrow.StructOf(arrow.Field{Name: "a", Type: str, Nullable: true}, arrow.Field{Name: "c", Type: i32, Nullable: true}, arrow.Field{Name: "b", Type: i64, Nullable: true}),
			`[{"b":1,"A":"x"},null]`, `[{"a":"x","b":1,"c":null},null]`, false},
	} {
		got, err := resolve(t, c.from, c.to, c.values, schema.ResolveOptions{SchemaOnRead: c.onRead})
		if err != nil || got != c.want {
			t.Errorf("%s to %s: %s %v, want %s", c.from, c.to, got, err, c.want)
		}
		if c.onRead {
			if _, err := resolve(t, c.from, c.to, c.values, schema.ResolveOptions{}); !errors.Is(err, schema.ErrEvolution) || !strings.Contains(err.Error(), "schema.on.read") {
				t.Errorf("%s to %s without schema on read: %v", c.from, c.to, err)
			}
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	i32, i64, str := arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String
	o := schema.ResolveOptions{File: "p/f1.parquet", SchemaOnRead: true}
	for _, c := range []struct {
		from, to arrow.DataType
		values   string
	}{
		{i64, i32, `[1]`}, {arrow.PrimitiveTypes.Float64, i64, `[1]`}, {str, i32, `["1"]`}, {arrow.ListOf(i32), i32, `[[1]]`}, {i32, arrow.ListOf(i32), `[1]`},
		{arrow.FixedWidthTypes.Boolean, i32, `[true]`},
		{dec(5, 2), dec(3, 2), `["123.45"]`}, {dec(5, 2), dec(5, 1), `["1.25"]`}, {i32, dec(2, 0), `[123]`}, {str, dec(5, 2), `["x"]`}, {str, arrow.FixedWidthTypes.Date32, `["x"]`},
		{ts(arrow.Millisecond, "UTC"), ts(arrow.Microsecond, "UTC"), `["292278000-01-01T00:00:00.000Z"]`},
	} {
		if c.from.ID() == arrow.TIMESTAMP {
			continue // such a year has no text
		}
		got, err := resolve(t, c.from, c.to, c.values, o)
		if !errors.Is(err, schema.ErrEvolution) || !strings.Contains(err.Error(), "p/f1.parquet") || !strings.Contains(err.Error(), "column v") || !strings.Contains(err.Error(), c.from.String()) || !strings.Contains(err.Error(), c.to.String()) {
			t.Errorf("%s to %s: %s %v", c.from, c.to, got, err)
		}
	}
}

// A column that the file lacks takes the default of the table's schema, at every level.
func TestDefaults(t *testing.T) {
	table := parse(t, `{"type":"record","name":"r","fields":[{"name":"v","type":"int"},
		{"name":"i","type":"int","default":7},{"name":"s","type":["string","null"],"default":"x"},{"name":"d","type":{"type":"int","logicalType":"date"},"default":1},
		{"name":"b","type":"bytes","default":"\u00ff"},{"name":"f","type":"double","default":1.5},{"name":"l","type":{"type":"array","items":"int"},"default":[1,2]},
		{"name":"m","type":{"type":"map","values":"string"},"default":{}},{"name":"r2","type":{"type":"record","name":"r2","fields":[{"name":"a","type":"int"},{"name":"c","type":["null","int"],"default":null}]},"default":{"a":3}},
		{"name":"n","type":["null","long"],"default":null},{"name":"o","type":["null","long"]}]}`)
	to, err := table.Arrow()
	if err != nil {
		t.Fatal(err)
	}
	from := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.PrimitiveTypes.Int32}}, nil)
	r, err := schema.Resolve(from, to, schema.ResolveOptions{Table: table})
	if err != nil {
		t.Fatal(err)
	}
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	in, _, err := array.RecordFromJSON(mem, from, strings.NewReader(`[{"v":1},{"v":2}]`))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Release()
	out, err := r.Batch(mem, in)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Release()
	text, err := out.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	row := `"i":7,"s":"x","d":"1970-01-02","b":"/w==","f":1.5,"l":[1,2],"m":[],"r2":{"a":3,"c":null},"n":null,"o":null`
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n]"), "\n") {
		for _, part := range strings.Split(row, `,"`) {
			if !strings.Contains(line, strings.TrimPrefix(part, `"`)) {
				t.Errorf("row %d: %s lacks %s", i, line, part)
			}
		}
	}
	required := arrow.NewSchema(append(from.Fields(), arrow.Field{Name: "need", Type: arrow.PrimitiveTypes.Int32}), nil)
	if _, err := schema.Resolve(from, required, schema.ResolveOptions{File: "f"}); !errors.Is(err, schema.ErrEvolution) || !strings.Contains(err.Error(), "need") {
		t.Error(err)
	}
	relaxed, err := schema.Resolve(from, required, schema.ResolveOptions{NullForRequired: true})
	if err != nil || !relaxed.Schema().Field(1).Nullable {
		t.Error(err)
	}
}

// A null in a column that the table requires is an error, but not where the struct around it is null.
func TestRequired(t *testing.T) {
	i32 := arrow.PrimitiveTypes.Int32
	st := func(null bool) arrow.DataType {
		return arrow.StructOf(arrow.Field{Name: "a", Type: i32, Nullable: null})
	}
	if got, err := resolve(t, st(true), st(false), `[{"a":1},null]`, schema.ResolveOptions{}); err != nil || got != `[{"a":1},null]` {
		t.Error(got, err)
	}
	if got, err := resolve(t, st(true), st(false), `[{"a":1},{"a":null}]`, schema.ResolveOptions{}); !errors.Is(err, schema.ErrEvolution) || !strings.Contains(err.Error(), "v.a") {
		t.Error(got, err)
	}
}

func TestSameIsShared(t *testing.T) {
	s := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true}}, nil)
	r, err := schema.Resolve(s, s, schema.ResolveOptions{})
	if err != nil || !r.Same() {
		t.Error(r, err)
	}
}

func TestJavaFloats(t *testing.T) {
	for _, c := range []struct {
		v    float64
		bits int
		want string
	}{{1, 64, "1.0"}, {1e10, 64, "1.0E10"}, {1e7, 64, "1.0E7"}, {9999999, 64, "9999999.0"}, {0.001, 64, "0.001"}, {0.0001, 64, "1.0E-4"}, {0, 64, "0.0"}, {123456789.5, 64, "1.234567895E8"},
		{float64(float32(1.1)), 32, "1.1"}, {1e300, 64, "1.0E300"}, {4.9e-324, 64, "5.0E-324"}} {
		if got := string(schema.AppendJavaFloat(nil, c.v, c.bits)); got != c.want {
			t.Errorf("%v: %s, want %s", c.v, got, c.want)
		}
	}
}
