package orc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

var codecs = []Compression{None, Zlib, Snappy, LZ4, ZSTD}

// everyType is a schema of every type that the writer takes and the reader gives back as it is.
func everyType() *arrow.Schema {
	micros := &arrow.TimestampType{Unit: arrow.Microsecond}
	point := arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, arrow.Field{Name: "tags", Type: listOf(arrow.BinaryTypes.String), Nullable: true})
	types := []arrow.DataType{
		arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, arrow.BinaryTypes.String, arrow.BinaryTypes.String, arrow.BinaryTypes.Binary,
		arrow.FixedWidthTypes.Date32, micros, &arrow.Decimal128Type{Precision: 9, Scale: 2}, &arrow.Decimal128Type{Precision: 38, Scale: 38},
		listOf(arrow.PrimitiveTypes.Int32), arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Float64), point, listOf(listOf(point)),
	}
	fields := make([]arrow.Field, len(types))
	for i, dt := range types {
		fields[i] = arrow.Field{Name: fmt.Sprintf("c%d", i), Type: dt, Nullable: true}
	}
	return arrow.NewSchema(fields, nil)
}

func listOf(dt arrow.DataType) arrow.DataType {
	return arrow.ListOfField(arrow.Field{Name: elementName, Type: dt, Nullable: true})
}

// appendRandom appends n random values; share of them are null, and texts have the given number of forms.
func appendRandom(r *rand.Rand, b array.Builder, n int, share float64, forms int) {
	for range n {
		if r.Float64() < share {
			b.AppendNull()
			continue
		}
		switch b := b.(type) {
		case *array.BooleanBuilder:
			b.Append(r.IntN(3) == 0)
		case *array.Int8Builder:
			b.Append(int8(r.Uint32()))
		case *array.Int16Builder:
			b.Append(int16(r.Uint32()))
		case *array.Int32Builder:
			b.Append(int32(r.Uint32()) >> r.IntN(32))
		case *array.Int64Builder:
			b.Append(int64(r.Uint64()) >> r.IntN(64))
		case *array.Float32Builder:
			b.Append(float32(r.NormFloat64()))
		case *array.Float64Builder:
			b.Append(r.NormFloat64())
		case *array.StringBuilder:
			b.Append(strings.Repeat(fmt.Sprint(r.IntN(forms)), r.IntN(4)))
		case *array.BinaryBuilder:
			b.Append(bytes.Repeat([]byte{byte(r.Uint32())}, r.IntN(20)))
		case *array.Date32Builder:
			b.Append(arrow.Date32(r.IntN(3_000_000) - 800_000))
		case *array.TimestampBuilder:
			v := r.Int64N(6e17) - 3e17
			if v < 0 && v >= -1e6 {
				v = 0
			}
			b.Append(arrow.Timestamp(v / pow10[r.IntN(7)]))
		case *array.Decimal128Builder:
			digits := min(b.Type().(*arrow.Decimal128Type).Precision, 38)
			v := decimal128.FromI64(int64(r.Uint64()) >> (r.IntN(30) + 35))
			if digits > 20 {
				v = decimal128.New(int64(r.Uint64())>>(r.IntN(60)+3), r.Uint64())
			}
			b.Append(v)
		case *array.ListBuilder:
			b.Append(true)
			appendRandom(r, b.ValueBuilder(), r.IntN(4), share, forms)
		case *array.MapBuilder:
			b.Append(true)
			k := r.IntN(4)
			appendRandom(r, b.KeyBuilder(), k, 0, forms)
			appendRandom(r, b.ItemBuilder(), k, share, forms)
		case *array.StructBuilder:
			b.Append(true)
			for i := range b.NumField() {
				appendRandom(r, b.FieldBuilder(i), 1, share, forms)
			}
		default:
			panic(fmt.Sprintf("no random values of %s", b.Type()))
		}
	}
}

func randomBatch(r *rand.Rand, mem memory.Allocator, schema *arrow.Schema, rows int) arrow.RecordBatch {
	b := array.NewRecordBuilder(mem, schema)
	defer b.Release()
	shares := []float64{0, 0.01, 0.5, 1}
	for i := range schema.NumFields() {
		appendRandom(r, b.Field(i), rows, shares[r.IntN(len(shares))], []int{3, 1 << 30}[r.IntN(2)])
	}
	return b.NewRecordBatch()
}

// writeFile writes batches, each in slices of a random length, and gives the file and its rows.
func writeFile(t *testing.T, schema *arrow.Schema, batches []arrow.RecordBatch, o WriterOptions) ([]byte, []string) {
	t.Helper()
	var buf bytes.Buffer
	w, err := NewWriter(&buf, schema, o)
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, b := range batches {
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, batchRows(b)...)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes(), rows
}

// What is written comes back, whatever the options; and so does any part of it that the row index leads to.
func TestRoundTripUnderEveryOption(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	schema := everyType()
	for i := range 60 {
		o := WriterOptions{
			Compression: codecs[i%len(codecs)], StripeBytes: []int64{1, 30_000, 1 << 20}[r.IntN(3)], RowIndexStride: []int{-1, 100, 1000}[r.IntN(3)],
			BlockSize: []int{64, 1000, 1 << 18}[r.IntN(3)], DictionaryShare: []float64{-1, 0.5, 1}[r.IntN(3)],
			UserMetadata: map[string]string{"a": "1", "b": strings.Repeat("x", 300)},
		}
		t.Run(fmt.Sprintf("%d_%s", i, o.Compression), func(t *testing.T) {
			var batches []arrow.RecordBatch
			for range r.IntN(4) {
				whole := randomBatch(r, mem, schema, r.IntN(900))
				from := r.IntN(int(whole.NumRows()) + 1)
				batches = append(batches, whole.NewSlice(int64(from), whole.NumRows())) // arrays with an offset
				whole.Release()
			}
			data, want := writeFile(t, schema, batches, o)
			for _, b := range batches {
				b.Release()
			}
			got := scanRows(t, data, ReaderOptions{BatchRows: 1 + r.IntN(500)}, ScanOptions{})
			if !slices.Equal(got, want) {
				t.Fatalf("%+v: %s", o, firstDifference(got, want))
			}
			keepsParts(t, r, data, want, ReaderOptions{BatchRows: 77})
		})
	}
}

// keepsParts reads random row groups and compares each with its part of the rows.
func keepsParts(t *testing.T, r *rand.Rand, data []byte, want []string, o ReaderOptions) {
	t.Helper()
	var kept []string
	inStripe := map[int]bool{}
	keep := func(s *Span) bool {
		if !inStripe[s.Stripe] { // the first question is about the stripe
			inStripe[s.Stripe] = true
			return true
		}
		if r.IntN(3) > 0 {
			return false
		}
		kept = append(kept, want[s.Row:s.Row+s.Rows]...)
		return true
	}
	if rd := open(t, data, ReaderOptions{}); rd.footer.rowIndexStride == 0 {
		return
	}
	got := scanRows(t, data, o, ScanOptions{Keep: keep})
	if !slices.Equal(got, kept) {
		t.Fatalf("row groups: %s", firstDifference(got, kept))
	}
}

func firstDifference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("row %d\n got %s\nwant %s", i, got[i], want[i])
		}
	}
	return fmt.Sprintf("%d rows, want %d", len(got), len(want))
}

func open(t testing.TB, data []byte, o ReaderOptions) *Reader {
	t.Helper()
	r, err := NewReader(bytes.NewReader(data), int64(len(data)), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFileDescribesItself(t *testing.T) {
	schema := everyType()
	mem := memory.DefaultAllocator
	b := randomBatch(rand.New(rand.NewPCG(1, 1)), mem, schema, 500)
	defer b.Release()
	data, _ := writeFile(t, schema, []arrow.RecordBatch{b, b}, WriterOptions{Compression: ZSTD, StripeBytes: 1, UserMetadata: map[string]string{"org.apache.hudi.key": "v"}})
	r := open(t, data, ReaderOptions{})
	if !r.Schema().Equal(schema) {
		t.Errorf("schema %s\nwant %s", r.Schema(), schema)
	}
	want := "struct<c0:boolean,c1:tinyint,c2:smallint,c3:int,c4:bigint,c5:float,c6:double,c7:string,c8:string,c9:binary,c10:date,c11:timestamp,c12:decimal(9,2)," +
		"c13:decimal(38,38),c14:array<int>,c15:map<string,double>,c16:struct<x:bigint,tags:array<string>>,c17:array<array<struct<x:bigint,tags:array<string>>>>>"
	if r.Type() != want {
		t.Errorf("type %s\nwant %s", r.Type(), want)
	}
	if r.Rows() != 1000 || len(r.Stripes()) != 2 || r.Stripes()[0].Rows != 500 || r.Stripes()[0].Offset != 3 || r.Compression() != ZSTD {
		t.Errorf("%d rows, stripes %v, %s", r.Rows(), r.Stripes(), r.Compression())
	}
	if m := r.Metadata(); len(m) != 1 || string(m["org.apache.hudi.key"]) != "v" {
		t.Errorf("metadata %q", m)
	}
}

func TestProjectionAndOrderOfColumns(t *testing.T) {
	schema := everyType()
	b := randomBatch(rand.New(rand.NewPCG(2, 1)), memory.DefaultAllocator, schema, 300)
	defer b.Release()
	data, _ := writeFile(t, schema, []arrow.RecordBatch{b}, WriterOptions{Compression: LZ4})
	var want []string
	for i := range int(b.NumRows()) {
		want = append(want, canonical([]any{jsonValue(b.Column(16), i), jsonValue(b.Column(3), i)}))
	}
	if got := scanRows(t, data, ReaderOptions{}, ScanOptions{Columns: []string{"c16", "c3"}}); !slices.Equal(got, want) {
		t.Error(firstDifference(got, want))
	}
	if got := scanRows(t, data, ReaderOptions{}, ScanOptions{Columns: []string{}}); len(got) != 300 || got[0] != "[]" {
		t.Errorf("without columns: %d rows", len(got))
	}
	if _, err := tryScan(t, data, ReaderOptions{}, ScanOptions{Columns: []string{"no"}}); err == nil || !strings.Contains(err.Error(), `"no"`) {
		t.Errorf("a column that is not there: %v", err)
	}
}

func TestFormsThatAreReadAsOthers(t *testing.T) {
	mem := memory.DefaultAllocator
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	fields := []arrow.Field{
		{Name: "u8", Type: arrow.PrimitiveTypes.Uint8, Nullable: true}, {Name: "u16", Type: arrow.PrimitiveTypes.Uint16}, {Name: "u32", Type: arrow.PrimitiveTypes.Uint32},
		{Name: "large", Type: arrow.BinaryTypes.LargeString, Nullable: true}, {Name: "view", Type: arrow.BinaryTypes.StringView}, {Name: "lbin", Type: arrow.BinaryTypes.LargeBinary},
		{Name: "fixed", Type: &arrow.FixedSizeBinaryType{ByteWidth: 2}}, {Name: "d64", Type: arrow.FixedWidthTypes.Date64}, {Name: "t32", Type: arrow.FixedWidthTypes.Time32ms},
		{Name: "t64", Type: arrow.FixedWidthTypes.Time64us}, {Name: "dict", Type: dict, Nullable: true}, {Name: "flist", Type: arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int8)},
		{Name: "llist", Type: arrow.LargeListOf(arrow.PrimitiveTypes.Int8)}, {Name: "sec", Type: arrow.FixedWidthTypes.Timestamp_s}, {Name: "ms", Type: arrow.FixedWidthTypes.Timestamp_ms},
		{Name: "ns", Type: arrow.FixedWidthTypes.Timestamp_ns},
	}
	schema := arrow.NewSchema(fields, nil)
	values := `[{"u8":255,"u16":65535,"u32":4294967295,"large":"l","view":"v","lbin":"AQ==","fixed":"AQI=","d64":"1969-12-31","t32":"00:00:01","t64":"00:00:02","dict":"x",
		"flist":[1,2],"llist":[3],"sec":"1900-01-01 00:00:01Z","ms":"1969-12-31 23:59:58.5Z","ns":"1969-12-31 23:59:58.123456789Z"},
		{"u8":null,"u16":0,"u32":0,"large":null,"view":"","lbin":"","fixed":"AAA=","d64":"2024-02-29","t32":"00:00:00","t64":"00:00:00","dict":null,
		"flist":[5,6],"llist":[],"sec":"2500-01-01 00:00:00Z","ms":"2024-02-29 12:00:00.001Z","ns":"2015-01-01 00:00:00.000000001Z"}]`
	b, _, err := array.RecordFromJSON(mem, schema, strings.NewReader(values))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	var buf bytes.Buffer
	w, err := NewWriter(&buf, schema, WriterOptions{InstantTimestamps: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(b), w.Close()); err != nil {
		t.Fatal(err)
	}
	at := func(s string) int64 {
		v, err := time.Parse("2006-01-02 15:04:05.999999999", s)
		if err != nil {
			t.Fatal(err)
		}
		return v.Unix()*1e6 + int64(v.Nanosecond()/1000)
	}
	row := func(v ...any) string { return canonical(v) }
	want := []string{
		row(255, 65535, 4294967295, "l", "v", "01", "0102", -1, 1000, 2000000, "x", []any{1, 2}, []any{3},
			at("1900-01-01 00:00:01")*1000, at("1969-12-31 23:59:58.5")*1000, at("1969-12-31 23:59:58.123456")*1000),
		row(nil, 0, 0, nil, "", "", "0000", 19782, 0, 0, nil, []any{5, 6}, []any{}, json.Number("16725225600000000000"), at("2024-02-29 12:00:00.001")*1000, at("2015-01-01 00:00:00")*1000),
	}
	r := open(t, buf.Bytes(), ReaderOptions{})
	i := 0
	for got, err := range r.Scan(context.Background(), ScanOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range batchRows(got) {
			if g != want[i] {
				t.Errorf("row %d\n got %s\nwant %s", i, g, want[i])
			}
			i++
		}
		got.Release()
	}
	if kind := r.root.children[15].kind; kind != kindTimestampInstant {
		t.Errorf("a moment is written as %s", kindNames[kind])
	}
}

func TestTypesThatAreRefused(t *testing.T) {
	for _, dt := range []arrow.DataType{
		arrow.PrimitiveTypes.Uint64, arrow.FixedWidthTypes.Float16, &arrow.Decimal256Type{Precision: 40}, arrow.Null, arrow.FixedWidthTypes.Duration_s,
		listOf(arrow.PrimitiveTypes.Uint64), &arrow.Decimal128Type{Precision: 5, Scale: -1},
	} {
		_, err := NewWriter(&bytes.Buffer{}, arrow.NewSchema([]arrow.Field{{Name: "bad", Type: dt}}, nil), WriterOptions{})
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "bad") {
			t.Errorf("%s: %v", dt, err)
		}
	}
	if _, err := NewWriter(&bytes.Buffer{}, everyType(), WriterOptions{Compression: LZO}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("LZO: %v", err)
	}
}

// ORC's readers take a second off where a moment before 1970 has a fraction of a millisecond or more; the moments of the
// last second before 1970 would come back a second late (ORC-763), so they are refused rather than moved.
func TestTheSecondBefore1970(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "t", Type: &arrow.TimestampType{Unit: arrow.Nanosecond}}}, nil)
	write := func(ns int64) ([]byte, error) {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		defer b.Release()
		b.Field(0).(*array.TimestampBuilder).Append(arrow.Timestamp(ns))
		batch := b.NewRecordBatch()
		defer batch.Release()
		var buf bytes.Buffer
		w, err := NewWriter(&buf, schema, WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		err = w.Write(batch)
		if cerr := w.Close(); err == nil && cerr != nil || err != nil && cerr == nil {
			t.Fatalf("%d: writing gives %v, closing %v", ns, err, cerr)
		}
		return buf.Bytes(), err
	}
	for _, ns := range []int64{-1e9, -1e9 + 999_999, -1e9 - 1, -2e9 + 1, -2e9 + 1e6, -5e8 - 1e9, 0, 1, 999_999_999, 1e6, -1e6 - 1e9, math.MinInt64 / 2} {
		data, err := write(ns)
		if err != nil {
			t.Errorf("%d: %v", ns, err)
			continue
		}
		if got := scanRows(t, data, ReaderOptions{Nanoseconds: true}, ScanOptions{}); got[0] != fmt.Sprintf("[%d]", ns) {
			t.Errorf("%d came back as %s", ns, got[0])
		}
	}
	for _, ns := range []int64{-1, -5e8, -1e9 + 1e6, -999_000_000} {
		if _, err := write(ns); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%d: %v", ns, err)
		}
	}
}

// Moments keep their value in every writer's zone, over changes of the clock, old local times and the old calendar.
func TestMomentsInOtherZones(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "t", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: utc}}}, nil)
	r := rand.New(rand.NewPCG(4, 4))
	var moments []int64
	for range 2000 {
		moments = append(moments, (r.Int64N(2e10)-1.2e10)*1e6)
	}
	for s := int64(1_699_160_400); s < 1_699_182_000; s += 600 { // New York's clock goes back on 2023-11-05
		moments = append(moments, s*1e6)
	}
	for _, name := range []string{"America/New_York", "Asia/Kathmandu", "Europe/Amsterdam", "Pacific/Apia"} {
		loc, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for _, m := range moments {
			b.Field(0).(*array.TimestampBuilder).Append(arrow.Timestamp(m))
		}
		batch := b.NewRecordBatch()
		data, _ := writeFile(t, schema, []arrow.RecordBatch{batch}, WriterOptions{Zone: loc})
		batch.Release()
		b.Release()
		for i, g := range scanRows(t, data, ReaderOptions{Timestamps: Instants}, ScanOptions{}) {
			if g != fmt.Sprintf("[%d000]", moments[i]) {
				t.Errorf("%s: %d000 came back as %s", name, moments[i], g)
			}
		}
		for i, g := range scanRows(t, data, ReaderOptions{}, ScanOptions{}) {
			at := time.UnixMicro(moments[i]).In(loc)
			_, off := at.Zone()
			if g != fmt.Sprintf("[%d000000000]", at.Unix()+int64(off)) {
				t.Errorf("%s: the clock at %s reads %s", name, at, g)
			}
		}
	}
}

func TestTenMillionRows(t *testing.T) {
	const rows, batchRows = 10_000_000, 100_000
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil)
	var buf bytes.Buffer
	w, err := NewWriter(&buf, schema, WriterOptions{Compression: Snappy, StripeBytes: 1 << 14})
	if err != nil {
		t.Fatal(err)
	}
	for from := int64(0); from < rows; from += batchRows {
		b := array.NewInt64Builder(memory.DefaultAllocator)
		for i := range int64(batchRows) {
			b.Append((from + i) * 3)
		}
		a := b.NewArray()
		batch := array.NewRecordBatch(schema, []arrow.Array{a}, batchRows)
		if err := w.Write(batch); err != nil {
			t.Fatal(err)
		}
		batch.Release()
		a.Release()
		b.Release()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := open(t, buf.Bytes(), ReaderOptions{})
	next := int64(0)
	for b, err := range r.Scan(context.Background(), ScanOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range b.Column(0).(*array.Int64).Int64Values() {
			if v != next*3 {
				t.Fatalf("row %d is %d", next, v)
			}
			next++
		}
		b.Release()
	}
	if next != rows || r.Rows() != rows || len(r.Stripes()) < 2 {
		t.Fatalf("%d rows, %d in the footer, in %d stripes", next, r.Rows(), len(r.Stripes()))
	}
}
