package predicate_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/sluicelake/sluice/hudi/predicate"
)

func testSchema() *arrow.Schema {
	null := func(name string, dt arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: dt, Nullable: true}
	}
	return arrow.NewSchema([]arrow.Field{
		null("qty", arrow.PrimitiveTypes.Int32), null("n", arrow.PrimitiveTypes.Int64), null("region", arrow.BinaryTypes.String), null("deleted", arrow.FixedWidthTypes.Boolean),
		null("price", &arrow.Decimal128Type{Precision: 10, Scale: 2}), null("ratio", arrow.PrimitiveTypes.Float64), null("f", arrow.PrimitiveTypes.Float32),
		null("day", arrow.FixedWidthTypes.Date32), null("at", &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}), null("local", &arrow.TimestampType{Unit: arrow.Microsecond}),
		null("order id", arrow.BinaryTypes.Binary), null("tod", arrow.FixedWidthTypes.Time64us),
		null("a", arrow.StructOf(null("city", arrow.BinaryTypes.String), null("geo", arrow.StructOf(null("x", arrow.PrimitiveTypes.Int32))))),
		null("l", arrow.ListOf(arrow.PrimitiveTypes.Int32)),
	}, nil)
}

const testRows = `[
{"qty":1,"n":10,"region":"eu","deleted":false,"price":"1.25","ratio":0.5,"f":0.5,"day":"2024-02-29","at":"2024-02-29T12:34:56.789Z","local":"2024-02-29T12:34:56.789012","order id":"AP8=","tod":"12:00:00.000001","a":{"city":"Berlin","geo":{"x":1}},"l":[1]},
{"qty":6,"n":-5,"region":"us","deleted":true,"price":"-0.05","ratio":-2.5,"f":1.5,"day":"1969-12-31","at":"1969-12-31T23:59:59.999Z","local":"1969-12-31T23:59:59.999999","order id":"","tod":"00:00:00","a":{"city":null,"geo":null},"l":null},
{"qty":null,"n":null,"region":null,"deleted":null,"price":null,"ratio":null,"f":null,"day":null,"at":null,"local":null,"order id":null,"tod":null,"a":null,"l":[]},
{"qty":7,"n":7,"region":"asia","deleted":null,"price":"99.00","ratio":1e300,"f":2.0,"day":"0001-01-01","at":"2024-02-29T12:34:56.790Z","local":null,"order id":"YQ==","tod":null,"a":{"city":"Bern","geo":{"x":null}},"l":null}]`

func batch(t testing.TB, mem memory.Allocator) arrow.RecordBatch {
	t.Helper()
	b, _, err := array.RecordFromJSON(mem, testSchema(), strings.NewReader(testRows))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Three-valued logic over four rows, one of them all null: which rows pass.
func TestEval(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	b := batch(t, mem)
	defer b.Release()
	padded := b.NewSlice(1, 4) // offsets must not matter
	defer padded.Release()
	for _, c := range []struct{ filter, want string }{
		{"qty > 5", "-x-x"}, {"5 < qty", "-x-x"}, {"qty > 5.5", "-x-x"}, {"qty >= 6", "-x-x"}, {"qty < 6.5 and qty > 5.5", "-x--"}, {"qty = 6.5", "----"}, {"qty <> 6.5", "xx-x"}, {"qty < 99999999999", "xx-x"}, {"qty > -99999999999", "xx-x"}, {"qty = 1e0", "x---"},
		{"not qty > 5", "x---"}, {"qty > 5 or n = 10", "xx-x"}, {"n <> 7", "xx--"}, {"n = null", "----"}, {"not (n = null)", "----"}, {"qty is null", "--x-"}, {"qty is not null", "xx-x"},
		{"region in ('eu', 'us')", "xx--"}, {"region not in ('eu', 'us')", "---x"}, {"region not in ('eu', null)", "----"}, {"region in ('eu', null)", "x---"}, {"qty in (1, 2, 3, 7, 6.5)", "x--x"}, {"n in (10, -5)", "xx--"},
		{"region < 'f'", "x--x"}, {"region like 'e%'", "x---"}, {"region like 'eu'", "x---"}, {"starts_with(region, 'a')", "---x"}, {"region not like 'e%'", "-x-x"}, {"region like '%'", "xx-x"},
		{"deleted", "-x--"}, {"not deleted", "x---"}, {"deleted = false", "x---"}, {"deleted is true", "-x--"}, {"deleted is not true", "x-xx"}, {"deleted <> true", "x---"}, {"deleted < true", "x---"},
		{"price > 0", "x--x"}, {"price = '1.25'", "x---"}, {"price = 1.250", "x---"}, {"price = 1.251", "----"}, {"price < -0.049", "-x--"}, {"price <= -0.051", "----"}, {"price between -1 and 1.25", "xx--"}, {"price < 1e30", "xx-x"}, {"price in (99, 1.25)", "x--x"},
		{"ratio > 0.4", "x--x"}, {"ratio < 'Infinity'", "xx-x"}, {"ratio < 'NaN'", "xx-x"}, {"f = 1.5", "-x--"}, {"f <= 1.5", "xx--"},
		{"day = '2024-02-29'", "x---"}, {"day < date '1970-01-01'", "-x-x"}, {"at = '2024-02-29T12:34:56.789Z'", "x---"}, {"at > '2024-02-29 12:34:56.789'", "---x"}, {"at > '2024-02-29 12:34:56.7895'", "---x"}, {"at = '2024-02-29 12:34:56.7895'", "----"},
		{"at >= timestamp '2024-02-29 14:34:56.789+02:00'", "x--x"}, {"at < '1970-01-01'", "-x--"}, {"local = '2024-02-29T12:34:56.789012'", "x---"}, {"tod > '12:00'", "x---"},
		{`"order id" = x'00ff'`, "x---"}, {"`order id` = 'a'", "---x"}, {"a.city like 'Ber%'", "x--x"}, {"a.city is null", "-xx-"}, {"a.geo.x = 1", "x---"}, {"a.geo.x is null", "-xxx"}, {"a is null", "--x-"}, {"l is null", "-x-x"},
		{"QTY = 1", "x---"}, {"true", "xxxx"}, {"false", "----"}, {"not false and (qty > 5 or true)", "xxxx"}, {"qty > 5 and false", "----"}, {"((qty = 1))", "x---"},
	} {
		e, err := predicate.Parse(c.filter)
		if err != nil {
			t.Error(err)
			continue
		}
		again, err := predicate.Parse(e.String())
		if err != nil || again.String() != e.String() {
			t.Errorf("%s is written %s, which is read as %v (%v)", c.filter, e, again, err)
		}
		f, err := predicate.Bind(e, b.Schema())
		if err != nil {
			t.Errorf("%s: %v", c.filter, err)
			continue
		}
		if got := mask(mem, f, b); got != c.want {
			t.Errorf("%s: %s, want %s", c.filter, got, c.want)
		}
		if got := mask(mem, f, padded); got != c.want[1:] {
			t.Errorf("%s of a slice: %s, want %s", c.filter, got, c.want[1:])
		}
	}
}

func mask(mem memory.Allocator, f *predicate.Filter, b arrow.RecordBatch) string {
	m := f.Eval(mem, b)
	defer m.Release()
	out := make([]byte, m.Len())
	for i := range out {
		out[i] = '-'
		if m.Value(i) {
			out[i] = 'x'
		}
	}
	return string(out)
}

// As in Spark, NaN equals NaN and is above every number; zeros are equal.
func TestFloats(t *testing.T) {
	mem := memory.NewGoAllocator()
	s := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.PrimitiveTypes.Float64}}, nil)
	b := array.NewRecordBuilder(mem, s)
	b.Field(0).(*array.Float64Builder).AppendValues([]float64{math.NaN(), math.Inf(1), 0, math.Copysign(0, -1), math.Inf(-1)}, nil)
	rec := b.NewRecordBatch()
	for filter, want := range map[string]string{"v = 'NaN'": "x----", "v > 'Infinity'": "x----", "v = 0": "--xx-", "v < 0": "----x", "v >= '-Infinity'": "xxxxx", "v <> 'NaN'": "-xxxx"} {
		e, err := predicate.Parse(filter)
		if err != nil {
			t.Fatal(err)
		}
		f, err := predicate.Bind(e, s)
		if err != nil {
			t.Fatal(err)
		}
		if got := mask(mem, f, rec); got != want {
			t.Errorf("%s: %s, want %s", filter, got, want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, part := range map[string]string{
		"": "ends", "qty >": "constant", "qty > 5 and": "column or constant", "(qty > 5": ")", "qty > 'x": "not closed", "qty ! 5": "'!'", "qty between 1 or 2": "AND", "qty in ()": "constant", "region like 'a%b'": "prefix",
		"qty is 5": "NULL", "x'0g' = a": "byte", "5": "comparison", "qty = qty2": "constant", "a..b = 1": "column", "qty > 5 qty": "end", "and = 1": "column", strings.Repeat("(", 5000): "nested", "qty not 5": "IN", "é § 1": "'§'", `"" = 1`: "empty",
	} {
		_, err := predicate.Parse(text)
		if !errors.Is(err, predicate.ErrPredicate) || !strings.Contains(err.Error(), part) {
			t.Errorf("%.40q: %v (want %q)", text, err, part)
		}
	}
}

func TestBindErrors(t *testing.T) {
	for filter, parts := range map[string][]string{
		"nope = 1": {"nope", "qty"}, "qty = 'x'": {"qty", "int32", "'x'"}, "region = 5": {"region", "single quotes"}, "deleted = 1": {"deleted", "1"}, "day = 5": {"day", "2024-02-29"}, "day = '2024-13-01'": {"day"},
		"at = 5": {"at", "timestamp"}, "local = '2024-01-01T00:00Z'": {"zone"}, "l = 1": {"l", "null"}, "a = 1": {"null"}, "a.nope = 1": {"a.nope"}, "qty.x = 1": {"qty", "member"}, "starts_with(qty, 'a')": {"text"}, "price = 'abc'": {"number"}, "ratio = true": {"number"},
	} {
		e, err := predicate.Parse(filter)
		if err != nil {
			t.Fatal(err)
		}
		_, err = predicate.Bind(e, testSchema())
		if !errors.Is(err, predicate.ErrPredicate) {
			t.Errorf("%s: %v", filter, err)
			continue
		}
		for _, p := range parts {
			if !strings.Contains(err.Error(), p) {
				t.Errorf("%s: %v lacks %q", filter, err, p)
			}
		}
	}
}

func TestColumns(t *testing.T) {
	e, err := predicate.Parse(`qty > 5 and (a.city = 'x' or not "order id" is null) and qty < 9`)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(predicate.Columns(e), predicate.Roots(e)); got != "[qty a.city order id] [qty a order id]" {
		t.Error(got)
	}
}

// What a group with n between 10 and 20 (2 nulls of 8 rows), region from "de" to "fr" and so on can match.
func TestCanMatch(t *testing.T) {
	stats := map[string]predicate.ColumnStats{
		"n":      {Min: predicate.Int(10), Max: predicate.Int(20), Nulls: 2, Rows: 8},
		"qty":    {Nulls: 8, Rows: 8},
		"region": {Min: predicate.Bytes([]byte("de")), Max: predicate.Bytes([]byte("fr")), Nulls: 0, Rows: 8},
		"price":  {Min: predicate.Decimal(big.NewInt(-500)), Max: predicate.Decimal(big.NewInt(-500)), Nulls: -1, Rows: 8},
		"ratio":  {Min: predicate.Float(1), Max: predicate.Float(2), Nulls: 0, Rows: 8},
		"f":      {Min: predicate.Float(math.NaN()), Max: predicate.Float(2), Nulls: 0, Rows: 8},
		"day":    {Max: predicate.Int(100), Nulls: -1, Rows: -1},
	}
	for filter, want := range map[string]bool{
		"n = 15": true, "n = 9": false, "n > 20": false, "n >= 20": true, "n < 10": false, "n <= 10": true, "n <> 15": true, "n is null": true, "n is not null": true, "not (n > 5)": false, "not (n > 15)": true, "n in (1, 2, 30)": false, "n in (1, 12)": true, "n > 20.5": false, "n < 10.5": true, "n = 10.5": false,
		"qty = 1": false, "qty is null": true, "qty is not null": false, "not (qty = 1)": false, "qty <> 1": false,
		"region = 'eu'": true, "region = 'a'": false, "region like 'd%'": true, "region like 'e%'": true, "region like 'g%'": false, "region like 'fra%'": false, "region like 'dd%'": false, "region is null": false, "region not in ('x')": true,
		"price <> -5": false, "price = -5.00": true, "price > -5": false, "price is null": true, "not (price = -5)": false,
		"ratio < 1": false, "ratio > 2": true, "ratio = 'NaN'": true, "not (ratio >= 1)": false, "ratio <= 0.5": false, "f < -100": true, "f <= 3": true,
		"day > '1980-01-01'": false, "day < '1900-01-01'": true,
		"deleted": true, "deleted and n = 9": false, "n = 9 or region = 'eu'": true, "n = 9 or region = 'x'": false, "true": true, "false": false, "n = null": false, "n not in (15, null)": false,
	} {
		e, err := predicate.Parse(filter)
		if err != nil {
			t.Fatal(err)
		}
		f, err := predicate.Bind(e, testSchema())
		if err != nil {
			t.Fatal(err)
		}
		if got := f.CanMatch(func(c string) (predicate.ColumnStats, bool) { s, ok := stats[c]; return s, ok }); got != want {
			t.Errorf("%s: %v, want %v", filter, got, want)
		}
	}
}

// Whatever the filter: where a row passes, the statistics of its batch must say that one can.
func FuzzFilter(f *testing.F) {
	for _, s := range []string{"qty > 5 and region in ('eu','us') and not deleted", "not (price <= 1.25 or ratio > 1)", "day between '1960-01-01' and date '2024-02-29'", `a.city like 'B%' or "order id" = x'00ff'`, "n in (1,2,3,4,10) or f <> 'NaN'"} {
		f.Add(s)
	}
	mem := memory.NewGoAllocator()
	b := batch(f, mem)
	stats := map[string]predicate.ColumnStats{}
	for i, field := range b.Schema().Fields() {
		col := b.Column(i)
		st := predicate.ColumnStats{Nulls: int64(col.NullN()), Rows: b.NumRows()}
		stats[field.Name] = st
		if id := field.Type.ID(); id == arrow.INT32 || id == arrow.INT64 {
			lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
			for _, v := range map[string][]int64{"qty": {1, 6, 7}, "n": {10, -5, 7}}[field.Name] {
				lo, hi = min(lo, v), max(hi, v)
			}
			st.Min, st.Max = predicate.Int(lo), predicate.Int(hi)
			stats[field.Name] = st
		}
	}
	stats["region"] = predicate.ColumnStats{Min: predicate.Bytes([]byte("asia")), Max: predicate.Bytes([]byte("us")), Nulls: 1, Rows: 4}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := predicate.Parse(text)
		if err != nil {
			return
		}
		again, err := predicate.Parse(e.String())
		if err != nil || again.String() != e.String() {
			t.Fatalf("%q is written %q: %v", text, e, err)
		}
		bound, err := predicate.Bind(e, b.Schema())
		if err != nil {
			return
		}
		can := bound.CanMatch(func(c string) (predicate.ColumnStats, bool) { s, ok := stats[c]; return s, ok })
		if m := mask(mem, bound, b); strings.Contains(m, "x") && !can {
			t.Fatalf("%s passes rows %s, but the statistics say none can", e, m)
		}
	})
}

func BenchmarkEval(b *testing.B) {
	mem := memory.NewGoAllocator()
	s := arrow.NewSchema([]arrow.Field{{Name: "qty", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "region", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	rb := array.NewRecordBuilder(mem, s)
	const n = 1 << 16
	for i := range n {
		rb.Field(0).(*array.Int64Builder).Append(int64(i % 1000))
		rb.Field(1).(*array.StringBuilder).Append([]string{"eu", "us", "asia"}[i%3])
	}
	rec := rb.NewRecordBatch()
	e, err := predicate.Parse("qty > 500 and region in ('eu', 'us')")
	if err != nil {
		b.Fatal(err)
	}
	f, err := predicate.Bind(e, s)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		f.Eval(mem, rec).Release()
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
