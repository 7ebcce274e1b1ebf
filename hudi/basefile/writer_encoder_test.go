package basefile_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	pq "github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/storage/mem"
)

// allAvro has a column of every type that is written, once nullable and once not, and nested ones.
func allAvro(t testing.TB) (*schema.Type, *arrow.Schema) {
	t.Helper()
	types := []string{`"boolean"`, `"int"`, `"long"`, `"float"`, `"double"`, `"string"`, `"bytes"`, `{"type":"fixed","name":"fN","size":3}`, `{"type":"enum","name":"eN","symbols":["A","B"]}`,
		`{"type":"fixed","name":"dN","size":5,"logicalType":"decimal","precision":10,"scale":2}`, `{"type":"fixed","name":"wN","size":16,"logicalType":"decimal","precision":38,"scale":2}`,
		`{"type":"bytes","logicalType":"decimal","precision":30,"scale":0}`, `{"type":"int","logicalType":"date"}`, `{"type":"long","logicalType":"timestamp-micros"}`,
		`{"type":"array","items":["null","long"]}`, `{"type":"map","values":"string"}`, `{"type":"record","name":"rN","fields":[{"name":"x","type":["null","string"]},{"name":"l","type":{"type":"array","items":"int"}}]}`}
	var fields []string
	for i, text := range types {
		for k, form := range []string{`["null",%s]`, `%s`} {
			one := strings.Replace(text, `N"`, fmt.Sprintf(`%d_%d"`, i, k), 1)
			fields = append(fields, fmt.Sprintf(`{"name":"c%d_%d","type":`+form+`}`, i, k, one))
		}
	}
	avro, err := schema.ParseString(`{"type":"record","name":"all","fields":[` + strings.Join(fields, ",") + `]}`)
	if err != nil {
		t.Fatal(err)
	}
	s, err := avro.Arrow()
	if err != nil {
		t.Fatal(err)
	}
	return avro, s
}

// filler appends random values: few or many different ones, in runs or not, with few, many or no nulls.
type filler struct {
	*rand.Rand
	kinds, run int // how many different values; how long one stays
	nulls      int // one in so many; 0: none, 1: all
	long       int // of texts
	last       uint64
}

func newFiller(r *rand.Rand) *filler {
	return &filler{Rand: r, kinds: []int{1, 3, 300, 1 << 40}[r.IntN(4)], run: []int{1, 1, 10, 500}[r.IntN(4)], nulls: []int{0, 1, 2, 15, 400}[r.IntN(5)], long: []int{3, 20, 300}[r.IntN(3)]}
}

func (f *filler) number() uint64 {
	if f.IntN(f.run) == 0 {
		f.last = uint64(f.IntN(f.kinds)) * 0x9e3779b97f4a7c15
	}
	return f.last
}

func (f *filler) fill(b array.Builder, nullable bool) {
	if nullable && f.nulls > 0 && f.IntN(f.nulls) == 0 {
		b.AppendNull()
		return
	}
	x := f.number()
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(x>>40&1 == 0)
	case *array.Int32Builder:
		b.Append(int32(x >> 20))
	case *array.Int64Builder:
		b.Append(int64(x))
	case *array.Float32Builder:
		b.Append([]float32{float32(x>>60) - 8, float32(math.Copysign(0, -1)), 0, float32(math.NaN())}[max(int(x>>50&255)-252, 0)])
	case *array.Float64Builder:
		b.Append([]float64{math.Float64frombits(x >> 3), math.Copysign(0, -1), 0, math.NaN()}[max(int(x>>50&1023)-1020, 0)])
	case *array.StringBuilder:
		b.Append(strings.Repeat(fmt.Sprint(x), f.long/10+1)[:x>>50%uint64(f.long)])
	case *array.BinaryBuilder:
		b.Append(bytes.Repeat(binary.BigEndian.AppendUint64(nil, x), f.long/8+1)[:x>>45%uint64(f.long)])
	case *array.FixedSizeBinaryBuilder:
		b.Append(binary.BigEndian.AppendUint64(nil, x)[:b.Type().(*arrow.FixedSizeBinaryType).ByteWidth])
	case *array.Decimal128Builder:
		b.Append(decimal128.FromI64(int64(x) % 9999999999))
	case *array.Date32Builder:
		b.Append(arrow.Date32(x >> 48))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(x >> 10))
	case *array.ListBuilder:
		b.Append(true)
		for range x >> 40 % 4 {
			f.fill(b.ValueBuilder(), b.Type().(*arrow.ListType).ElemField().Nullable)
		}
	case *array.MapBuilder:
		b.Append(true)
		for i := range x >> 40 % 3 {
			b.KeyBuilder().(*array.StringBuilder).Append(fmt.Sprint("key ", i))
			f.fill(b.ItemBuilder(), false)
		}
	case *array.StructBuilder:
		b.Append(true)
		for i := range b.NumField() {
			f.fill(b.FieldBuilder(i), b.Type().(*arrow.StructType).Field(i).Nullable)
		}
	default:
		panic(fmt.Sprintf("no values for %s", b.Type()))
	}
}

func allBatch(r *rand.Rand, s *arrow.Schema, rows int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	for c, f := range s.Fields() {
		fill := newFiller(r)
		for range rows {
			fill.fill(b.Field(c), f.Nullable)
		}
	}
	return b.NewRecordBatch()
}

// checkRoundTrip writes rows in slices, reads them back by our reader and by that of arrow-go, and holds the statistics and page
// indexes against the values.
func checkRoundTrip(t *testing.T, o basefile.WriterOptions, s *arrow.Schema, r *rand.Rand, whole arrow.RecordBatch) {
	t.Helper()
	alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer alloc.AssertSize(t, 0)
	o.Alloc = alloc
	var batches []arrow.RecordBatch
	for at := int64(0); at < whole.NumRows(); {
		n := min(1+r.Int64N(900), whole.NumRows()-at)
		batches = append(batches, whole.NewSlice(at, at+n))
		at += n
	}
	data, sum := writtenBy(t, o, batches)
	if sum.Rows != whole.NumRows() {
		t.Fatalf("%d rows", sum.Rows)
	}
	basefile.CheckLayout(t, data)
	got := together(t, opened(t, data), s)
	for i := range s.NumFields() { // array.Equal has NaN differ from itself
		if texted(got.Column(i)) != texted(whole.Column(i)) {
			t.Fatalf("column %s %s has other values", s.Field(i).Name, s.Field(i).Type)
		}
	}
	if whole.NumRows() > 0 {
		for i, c := range readByArrow(t, data) {
			if c != texted(whole.Column(i)) {
				t.Fatalf("column %s %s has other values by arrow-go", s.Field(i).Name, s.Field(i).Type)
			}
		}
	}
	checkStatistics(t, data)
}

// entry is a value of a leaf, or a null, and whether a row begins with it.
type entry struct {
	value any // nil: null; int64, float64, string or *big.Int
	row   bool
}

func leafEntries(t *testing.T, chunk file.ColumnChunkReader, n int64) []entry {
	t.Helper()
	d := chunk.Descriptor()
	def, rep := make([]int16, n), make([]int16, n)
	var values []any
	decode := func(b []byte) any { return bound(d, bytes.Clone(b)) }
	read := func(batch func(int64) (int64, int, error)) {
		for at := int64(0); at < n; {
			got, _, err := batch(at)
			if err != nil || got == 0 {
				t.Fatal(got, err)
			}
			at += got
		}
	}
	switch c := chunk.(type) {
	case *file.BooleanColumnChunkReader:
		read(func(at int64) (int64, int, error) {
			v := make([]bool, n)
			got, k, err := c.ReadBatch(n-at, v, def[at:], rep[at:])
			for _, x := range v[:k] {
				values = append(values, map[bool]any{false: int64(0), true: int64(1)}[x])
			}
			return got, k, err
		})
	case *file.Int32ColumnChunkReader:
		read(func(at int64) (int64, int, error) {
			v := make([]int32, n)
			got, k, err := c.ReadBatch(n-at, v, def[at:], rep[at:])
			for _, x := range v[:k] {
				values = append(values, int64(x))
			}
			return got, k, err
		})
	case *file.Int64ColumnChunkReader:
		read(func(at int64) (int64, int, error) {
			v := make([]int64, n)
			got, k, err := c.ReadBatch(n-at, v, def[at:], rep[at:])
			for _, x := range v[:k] {
				values = append(values, x)
			}
			return got, k, err
		})
	case *file.Float32ColumnChunkReader:
		read(func(at int64) (int64, int, error) {
			v := make([]float32, n)
			got, k, err := c.ReadBatch(n-at, v, def[at:], rep[at:])
			for _, x := range v[:k] {
				values = append(values, float64(x))
			}
			return got, k, err
		})
	case *file.Float64ColumnChunkReader:
		read(func(at int64) (int64, int, error) {
			v := make([]float64, n)
			got, k, err := c.ReadBatch(n-at, v, def[at:], rep[at:])
			for _, x := range v[:k] {
				values = append(values, x)
			}
			return got, k, err
		})
	case *file.ByteArrayColumnChunkReader:
		read(func(at int64) (int64, int, error) {
			v := make([]parquet.ByteArray, n)
			got, k, err := c.ReadBatch(n-at, v, def[at:], rep[at:])
			for _, x := range v[:k] {
				values = append(values, decode(x))
			}
			return got, k, err
		})
	case *file.FixedLenByteArrayColumnChunkReader:
		read(func(at int64) (int64, int, error) {
			v := make([]parquet.FixedLenByteArray, n)
			got, k, err := c.ReadBatch(n-at, v, def[at:], rep[at:])
			for _, x := range v[:k] {
				values = append(values, decode(x))
			}
			return got, k, err
		})
	}
	out := make([]entry, n)
	for i := range out {
		out[i].row = d.MaxRepetitionLevel() == 0 || rep[i] == 0
		if d.MaxDefinitionLevel() == 0 || def[i] == d.MaxDefinitionLevel() {
			out[i].value, values = values[0], values[1:]
		}
	}
	return out
}

// bound decodes a value of a statistic.
func bound(d *pq.Column, b []byte) any {
	switch d.PhysicalType() {
	case parquet.Types.Boolean:
		return int64(b[0])
	case parquet.Types.Int32:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	case parquet.Types.Int64:
		return int64(binary.LittleEndian.Uint64(b))
	case parquet.Types.Float:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case parquet.Types.Double:
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	if _, ok := d.LogicalType().(pq.DecimalLogicalType); ok {
		x := new(big.Int).SetBytes(b)
		if b[0]&0x80 != 0 {
			x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
		return x
	}
	return string(b)
}

func less(a, b any) bool {
	switch a := a.(type) {
	case int64:
		return a < b.(int64)
	case float64:
		return a < b.(float64)
	case string:
		return a < b.(string)
	}
	return a.(*big.Int).Cmp(b.(*big.Int)) < 0
}

// extremes of some values; known is false without values, or with a NaN.
func extremes(entries []entry) (low, high any, nulls int64, known bool) {
	nan := false
	for _, e := range entries {
		switch x := e.value.(type) {
		case nil:
			nulls++
			continue
		case float64:
			nan = nan || math.IsNaN(x)
		}
		if low == nil || less(e.value, low) {
			low = e.value
		}
		if high == nil || less(high, e.value) {
			high = e.value
		}
	}
	return low, high, nulls, low != nil && !nan
}

func sameBound(d *pq.Column, b []byte, want any, zero float64) bool {
	got := bound(d, b)
	if x, ok := got.(float64); ok && x == 0 && math.Signbit(x) != math.Signbit(zero) {
		return false // the smaller end must be -0, the larger +0
	}
	return !less(got, want) && !less(want, got)
}

func checkStatistics(t *testing.T, data []byte) {
	t.Helper()
	f, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for g := range f.NumRowGroups() {
		indexes, err := f.GetPageIndexReader().RowGroup(g)
		if err != nil {
			t.Fatal(err)
		}
		for c := range f.MetaData().Schema.NumColumns() {
			d := f.MetaData().Schema.Column(c)
			md, err := f.MetaData().RowGroup(g).ColumnChunk(c)
			if err != nil {
				t.Fatal(err)
			}
			chunk, err := f.RowGroup(g).Column(c)
			if err != nil {
				t.Fatal(err)
			}
			entries := leafEntries(t, chunk, md.NumValues())
			low, high, nulls, known := extremes(entries)
			st, err := md.Statistics()
			if err != nil {
				t.Fatal(err)
			}
			if st.NullCount() != nulls || st.HasMinMax() != known {
				t.Fatalf("%s: %d nulls, want %d; bounds %v, want %v", d.Path(), st.NullCount(), nulls, st.HasMinMax(), known)
			}
			if known && (!sameBound(d, st.EncodeMin(), low, math.Copysign(0, -1)) || !sameBound(d, st.EncodeMax(), high, 0)) {
				t.Fatalf("%s: from %x to %x, want %v to %v", d.Path(), st.EncodeMin(), st.EncodeMax(), low, high)
			}
			places, err := indexes.GetOffsetIndex(c)
			if err != nil {
				t.Fatal(err)
			}
			starts := []int{} // of pages, in entries
			row := int64(-1)
			for i, e := range entries {
				if e.row {
					row++
					if k := len(starts); k < len(places.GetPageLocations()) && places.GetPageLocations()[k].FirstRowIndex == row {
						starts = append(starts, i)
					}
				}
			}
			if len(starts) != len(places.GetPageLocations()) {
				t.Fatalf("%s: %d of %d pages begin with a row", d.Path(), len(starts), len(places.GetPageLocations()))
			}
			starts = append(starts, len(entries))
			of, err := indexes.GetColumnIndex(c)
			if err != nil {
				t.Fatal(err)
			}
			some := known || nulls == int64(len(entries))
			if (of != nil) != some {
				t.Fatalf("%s: a column index is there: %v", d.Path(), of != nil)
			}
			if of == nil {
				continue
			}
			index := of.(interface {
				GetMinValues() [][]byte
				GetMaxValues() [][]byte
			})
			for p := range len(starts) - 1 {
				low, high, nulls, known := extremes(entries[starts[p]:starts[p+1]])
				if of.GetNullPages()[p] == known || of.GetNullCounts()[p] != nulls {
					t.Fatalf("%s, page %d: nulls", d.Path(), p)
				}
				if known && (!sameBound(d, index.GetMinValues()[p], low, math.Copysign(0, -1)) || !sameBound(d, index.GetMaxValues()[p], high, 0)) {
					t.Fatalf("%s, page %d: from %x to %x, want %v to %v", d.Path(), p, index.GetMinValues()[p], index.GetMaxValues()[p], low, high)
				}
			}
		}
	}
}

// Every type, with dictionaries of every size that are kept, given up at once or in the middle of a chunk, nulls at the borders of
// pages, runs and none.
func TestEveryTypeRoundTrips(t *testing.T) {
	avro, s := allAvro(t)
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 5))
		o := basefile.WriterOptions{Schema: avro, Codec: []string{"snappy", "gzip", "zstd", "uncompressed"}[seed%4], PlainOnly: seed == 6}
		o.PageBytes = []int64{100, 1500, 5000, 0}[r.IntN(4)]
		o.RowGroupBytes = []int64{100000, 0}[seed%2]
		checkRoundTrip(t, o, s, r, allBatch(r, s, []int{0, 1, 900, 2500, 3000, 5000, 2000, 1500}[seed]))
	}
}

func FuzzWriter(f *testing.F) {
	f.Add(uint64(1), uint16(100), uint16(50), uint8(0))
	f.Add(uint64(2), uint16(1500), uint16(3000), uint8(5))
	f.Fuzz(func(t *testing.T, seed uint64, rows, page uint16, flags uint8) {
		avro, s := allAvro(t)
		r := rand.New(rand.NewPCG(seed, 9))
		o := basefile.WriterOptions{Schema: avro, Codec: []string{"snappy", "uncompressed", "zstd", "gzip"}[flags&3], PlainOnly: flags&4 != 0, PageBytes: int64(page), Parallel: int(flags >> 3 & 1)}
		if flags&16 != 0 {
			o.RowGroupBytes = 10000
		}
		checkRoundTrip(t, o, s, r, allBatch(r, s, int(rows%3000)))
	})
}

// textFile is a batch of one nullable text column.
func textBatch(t testing.TB, values ...string) (*schema.Type, arrow.RecordBatch) {
	t.Helper()
	avro, err := schema.ParseString(`{"type":"record","name":"r","fields":[{"name":"v","type":["null","string"]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	s, err := avro.Arrow()
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	for _, v := range values {
		b.Field(0).(*array.StringBuilder).Append(v)
	}
	return avro, b.NewRecordBatch()
}

// A dictionary that grows too large in the middle of a chunk ends: pages of indexes, then plain ones, in one chunk.
func TestDictionaryOverflow(t *testing.T) {
	var values []string
	for i := range 40000 {
		v := i % 100
		if i > 20000 {
			v = i
		}
		values = append(values, fmt.Sprintf("value %06d", v))
	}
	avro, batch := textBatch(t, values...)
	data, _ := writtenBy(t, basefile.WriterOptions{Schema: avro, Codec: "snappy", PageBytes: 32 << 10}, []arrow.RecordBatch{batch})
	f, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	md, err := f.MetaData().RowGroup(0).ColumnChunk(0)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[parquet.Encoding]int{}
	for _, e := range md.EncodingStats() {
		kinds[e.Encoding]++
	}
	if !md.HasDictionaryPage() || kinds[parquet.Encodings.Plain] != 1 || kinds[parquet.Encodings.PlainDict] != 2 { // the dictionary's page too
		t.Errorf("%+v", md.EncodingStats())
	}
	if got := texted(together(t, opened(t, data), batch.Schema()).Column(0)); got != texted(batch.Column(0)) {
		t.Error("other values")
	}
	if got := readByArrow(t, data)[0]; got != texted(batch.Column(0)) {
		t.Error("other values by arrow-go")
	}
	checkStatistics(t, data)
}

// Rows of a megabyte make pages of about one, and bounds that are as long are left out, those of the pages too.
func TestLargeValues(t *testing.T) {
	var values []string
	for i := range 12 {
		values = append(values, strings.Repeat(fmt.Sprint(i%5), 1<<20))
	}
	avro, batch := textBatch(t, values...)
	data, _ := writtenBy(t, basefile.WriterOptions{Schema: avro, Codec: "snappy"}, []arrow.RecordBatch{batch})
	if len(data) > 1<<20 {
		t.Errorf("%d bytes", len(data))
	}
	f, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := f.RowGroup(0).GetColumnPageReader(0)
	if err != nil {
		t.Fatal(err)
	}
	for pages.Next() {
		if n := len(pages.Page().Data()); n > 3<<20 {
			t.Errorf("a page of %d bytes", n)
		}
	}
	md, err := f.MetaData().RowGroup(0).ColumnChunk(0)
	if err != nil {
		t.Fatal(err)
	}
	st, err := md.Statistics()
	if err != nil || st.HasMinMax() || st.NullCount() != 0 {
		t.Error(st, err)
	}
	if got := texted(together(t, opened(t, data), batch.Schema()).Column(0)); got != texted(batch.Column(0)) {
		t.Error("other values")
	}
}

// Constant columns and numbered rows are the rows that plain arrays of texts make, byte for byte.
func TestWithMeta(t *testing.T) {
	avro, full := wideBatch(t, 95, 1000)
	alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer alloc.AssertSize(t, 0)
	user := array.NewRecordBatch(arrow.NewSchema(full.Schema().Fields()[5:], nil), full.Columns()[5:], full.NumRows())
	m := basefile.Meta{CommitTime: "20240418173551906", SeqnoPrefix: "20240418173551906_0_", FirstSeqno: 95, Keys: full.Column(2).(*array.String), Partition: "region=eu",
		FileName: "a079bdb3-731c-4894-b855-abfcd6921007-0_0-203-274_20240418173551906.parquet"}
	batch, err := basefile.WithMeta(alloc, user, m)
	if err != nil {
		t.Fatal(err)
	}
	defer batch.Release()
	parts := []arrow.RecordBatch{batch.NewSlice(0, 17), batch.NewSlice(17, 400), batch.NewSlice(400, 1000)}
	for _, o := range []basefile.WriterOptions{{}, {PlainOnly: true, PageBytes: 1000}} {
		o.Schema, o.Bloom, o.Alloc = avro, basefile.DefaultBloom(), alloc
		want, _ := writtenBy(t, o, []arrow.RecordBatch{full.NewSlice(0, 17), full.NewSlice(17, 400), full.NewSlice(400, 1000)})
		got, _ := writtenBy(t, o, parts)
		if !bytes.Equal(got, want) {
			t.Errorf("%d bytes, want %d", len(got), len(want))
		}
		if rows := together(t, opened(t, got), full.Schema()); !array.RecordEqual(rows, full) {
			t.Error("other rows")
		}
	}
	for _, p := range parts {
		p.Release()
	}
	m.Keys = nil
	if _, err := basefile.WithMeta(alloc, user, m); err == nil {
		t.Error("a batch without keys")
	}
	for _, name := range []string{schema.RecordKey, "qty"} { // a key is no constant, and a number no text
		fields, columns := full.Schema().Fields(), append([]arrow.Array(nil), full.Columns()...)
		at := full.Schema().FieldIndices(name)[0]
		columns[at] = basefile.Constant(memory.DefaultAllocator, "x", 1000)
		fields[at].Type = columns[at].DataType()
		w, err := basefile.Create(context.Background(), mem.New("meta"), "f.parquet", basefile.WriterOptions{Schema: avro})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, 1000)); err == nil {
			t.Errorf("%s as a constant is taken", name)
		}
		w.Abort()
	}
}
