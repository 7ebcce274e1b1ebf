package orc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// countingReader counts the bytes that are read.
type countingReader struct {
	*bytes.Reader
	read int64
}

func (c *countingReader) ReadAt(p []byte, at int64) (int, error) {
	n, err := c.Reader.ReadAt(p, at)
	c.read += int64(n)
	return n, err
}

// numbers is a file of ids 0, 1, … and a text that sorts as they do, in stripes of 3000 rows and row groups of 1000.
func numbers(t *testing.T, rows int, c Compression) []byte {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "d", Type: arrow.PrimitiveTypes.Float64}, {Name: "m", Type: &arrow.Decimal128Type{Precision: 10, Scale: 2}},
	}, nil)
	var buf bytes.Buffer
	w, err := NewWriter(&buf, schema, WriterOptions{Compression: c, RowIndexStride: 1000, StripeBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	w.opts.StripeBytes = math.MaxInt64
	for from := 0; from < rows; from += 3000 {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for i := from; i < min(from+3000, rows); i++ {
			b.Field(0).(*array.Int64Builder).Append(int64(i))
			if i%1000 == 999 {
				b.Field(1).AppendNull()
			} else {
				b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("n%06d", i))
			}
			d := float64(i) / 2
			if i == 2500 {
				d = math.NaN()
			}
			b.Field(2).(*array.Float64Builder).Append(d)
			b.Field(3).(*array.Decimal128Builder).Append(decimal128.FromI64(int64(-i)))
		}
		batch := b.NewRecordBatch()
		if err := errors.Join(w.Write(batch), w.endStripe()); err != nil {
			t.Fatal(err)
		}
		batch.Release()
		b.Release()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestPruningByStatistics(t *testing.T) {
	for _, c := range codecs {
		data := numbers(t, 30_000, c)
		in := &countingReader{Reader: bytes.NewReader(data)}
		r, err := NewReader(in, int64(len(data)), ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		in.read = 0
		spans := 0
		keep := func(s *Span) bool {
			spans++
			st, ok := s.Statistics("id")
			if !ok || st.HasNull || st.Values != s.Rows || st.Min != s.Row || st.Max != s.Row+s.Rows-1 {
				t.Fatalf("%s: rows %d+%d: %+v", c, s.Row, s.Rows, st)
			}
			return st.Min.(int64) <= 16_500 && st.Max.(int64) >= 16_500
		}
		var ids []int64
		for b, err := range r.Scan(context.Background(), ScanOptions{Columns: []string{"id"}, Keep: keep}) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, b.Column(0).(*array.Int64).Int64Values()...)
			b.Release()
		}
		if len(ids) != 1000 || ids[0] != 16_000 || ids[999] != 16_999 {
			t.Errorf("%s: %d ids", c, len(ids))
		}
		if spans != 10+3 {
			t.Errorf("%s: asked %d times, want for 10 stripes and the 3 row groups of one", c, spans)
		}
	}
}

func TestStatisticsOfEachType(t *testing.T) {
	r := open(t, numbers(t, 3000, None), ReaderOptions{})
	for path, want := range map[string]Statistics{
		"id":   {Values: 3000, Min: int64(0), Max: int64(2999)},
		"name": {Values: 2997, HasNull: true, Min: "n000000", Max: "n002998"},
		"d":    {Values: 3000}, // a NaN is among the values
		"m":    {Values: 3000, Min: decimal128.FromI64(-2999), Max: decimal128.FromI64(0)},
	} {
		if got, ok := r.Statistics(path); !ok || got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
	if _, ok := r.Statistics("none"); ok {
		t.Error("statistics of a column that is not there")
	}
}

// The filters are those that Apache ORC for Java wrote for these columns, through Spark.
func TestBloomFiltersOfJava(t *testing.T) {
	data := readFile(t, "testdata/spark_bloom.orc")
	asked := 0
	absent := map[string]int{}
	scanRows(t, data, ReaderOptions{}, ScanOptions{Keep: func(s *Span) bool {
		if s.bloom == nil {
			return true
		}
		asked++
		for i := s.Row; i < s.Row+s.Rows; i++ {
			for _, have := range []struct {
				path  string
				value any
			}{{"i", i}, {"su", fmt.Sprintf("%d-%d", i, i*7919)}, {"sd", fmt.Sprintf("name%d", i%20)}, {"d", math.Sqrt(float64(i))}} {
				if !s.MayContain(have.path, have.value) {
					t.Fatalf("%s = %v is there, and the filter says that it is not", have.path, have.value)
				}
			}
		}
		for i := int64(1_000_000); i < 1_000_400; i++ {
			for path, value := range map[string]any{"i": i, "su": fmt.Sprint("no", i), "d": float64(i) + 0.5} {
				if !s.MayContain(path, value) {
					absent[path]++
				}
			}
		}
		if !s.MayContain("t", int64(1)) {
			t.Error("a column without filter")
		}
		return true
	}})
	if asked != 3 {
		t.Fatalf("asked about %d row groups", asked)
	}
	for _, path := range []string{"i", "su", "d"} { // the writer aims at 5 in 100 false answers, or fewer
		if absent[path] < 1200*85/100 {
			t.Errorf("%s: the filters know only %d of 1200 values to be absent", path, absent[path])
		}
	}
}

func TestTimestampViews(t *testing.T) {
	data := readFile(t, "testdata/spark_los_angeles.orc")
	wall := scanRows(t, data, ReaderOptions{}, ScanOptions{Columns: []string{"ts"}})
	moments := scanRows(t, data, ReaderOptions{Timestamps: Instants}, ScanOptions{Columns: []string{"ts"}})
	// The query in make_golden.py: the moment of row id.
	for id := range int64(400) {
		want := "[null]"
		if id%11 != 0 {
			want = fmt.Sprintf("[%d000]", (id-250)*86400000000*590+id*1234567)
		}
		if moments[id] != want {
			t.Errorf("row %d: the moment %s, want %s; the clock read %s", id, moments[id], want, wall[id])
		}
	}
	dt := open(t, data, ReaderOptions{Timestamps: Instants}).Schema().Field(14).Type
	if !arrow.TypeEqual(dt, &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: utc}) {
		t.Errorf("the type of moments is %s", dt)
	}
}

// What Apache Hudi 1.2.0 leaves in the footer of its base files.
func TestMetadataOfHudi(t *testing.T) {
	r := open(t, readFile(t, "testdata/hudi_1.orc"), ReaderOptions{})
	m := r.Metadata()
	if len(m) != 5 || string(m["hoodie_min_record_key"]) != "1" || string(m["hoodie_max_record_key"]) != "1" ||
		string(m["hoodie_bloom_filter_type_code"]) != "DYNAMIC_V0" || !strings.HasPrefix(string(m["orc.avro.schema"]), `{"type":"record","name":"orc_base_record"`) {
		t.Errorf("metadata %q", m)
	}
	want := "struct<_hoodie_commit_time:string,_hoodie_commit_seqno:string,_hoodie_record_key:string,_hoodie_partition_path:string,_hoodie_file_name:string," +
		"id:int,name:string,price:double,ts:bigint,dt:string>"
	if r.Type() != want {
		t.Errorf("type %s", r.Type())
	}
}

func TestFilesThatAreNone(t *testing.T) {
	good := readFile(t, "testdata/example_test1.orc")
	brotli := slices.Clone(good)
	ps := len(brotli) - 1 - int(brotli[len(brotli)-1])
	at := ps + bytes.Index(brotli[ps:], []byte{0x10}) // field 2 of the postscript
	brotli[at+1] = byte(Brotli)
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"empty":           {nil, ErrFormat},
		"text":            {[]byte("this is no ORC file at all"), ErrFormat},
		"magic alone":     {[]byte("ORC"), ErrFormat},
		"cut":             {good[:len(good)-20], ErrFormat},
		"without front":   {good[100:], ErrFormat},
		"brotli":          {brotli, ErrUnsupported},
		"postscript only": {good[len(good)-1-int(good[len(good)-1]):], ErrFormat},
	} {
		if _, err := tryScan(t, c.data, ReaderOptions{}, ScanOptions{}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// Any single damaged byte gives an error or other values, and nothing worse.
func TestDamagedBytes(t *testing.T) {
	for _, name := range []string{"example_test1", "pyorc_union", "pyorc_char_dictionary", "pyarrow_one_row"} {
		good := readFile(t, "testdata/"+name+".orc")
		for i := range good {
			data := slices.Clone(good)
			data[i] ^= 0x55
			_, _ = tryScan(t, data, ReaderOptions{MaxMemory: minMemory}, ScanOptions{})
		}
		for i := range good {
			if _, err := tryScan(t, good[:i], ReaderOptions{MaxMemory: minMemory}, ScanOptions{}); err == nil {
				t.Errorf("%s cut to %d bytes is read without error", name, i)
			}
		}
	}
}

// bombs are small files of values that take much memory.
func bombs(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	one := func(name string, dt arrow.DataType, fill func(array.Builder)) {
		schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: dt, Nullable: true}}, nil)
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		defer b.Release()
		fill(b.Field(0))
		batch := b.NewRecordBatch()
		defer batch.Release()
		out[name], _ = writeFileOnly(t, schema, batch, WriterOptions{Compression: ZSTD, DictionaryShare: 1})
	}
	const n = 8 << 20
	one("a list of bytes", listOf(arrow.PrimitiveTypes.Int8), func(b array.Builder) {
		b.(*array.ListBuilder).Append(true)
		b.(*array.ListBuilder).ValueBuilder().(*array.Int8Builder).AppendValues(make([]int8, n), nil)
	})
	one("a list of nothing", listOf(arrow.FixedWidthTypes.Date32), func(b array.Builder) {
		b.(*array.ListBuilder).Append(true)
		b.(*array.ListBuilder).ValueBuilder().AppendNulls(n)
	})
	one("a text", arrow.BinaryTypes.LargeString, func(b array.Builder) {
		b.(*array.LargeStringBuilder).Append(strings.Repeat("a", n))
	})
	one("a dictionary", arrow.BinaryTypes.String, func(b array.Builder) {
		long := strings.Repeat("b", n)
		for range 3 {
			b.(*array.StringBuilder).Append(long)
		}
	})
	return out
}

func writeFileOnly(t *testing.T, schema *arrow.Schema, batch arrow.RecordBatch, o WriterOptions) ([]byte, error) {
	t.Helper()
	var buf bytes.Buffer
	w, err := NewWriter(&buf, schema, o)
	if err == nil {
		err = errors.Join(w.Write(batch), w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return buf.Bytes(), err
}

func TestMemoryIsBounded(t *testing.T) {
	for name, data := range bombs(t) {
		t.Run(name, func(t *testing.T) {
			if len(data) > 64<<10 {
				t.Fatalf("the file has %d bytes: no bomb", len(data))
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := tryScan(t, data, ReaderOptions{MaxMemory: 4 << 20}, ScanOptions{})
			runtime.ReadMemStats(&after)
			if !errors.Is(err, ErrMemory) {
				t.Errorf("not refused: %v", err)
			}
			// Codecs have buffers of their own, which do not grow with the file.
			if took := after.TotalAlloc - before.TotalAlloc; took > 12<<20 {
				t.Errorf("%d bytes were allocated", took)
			}
			if _, err := tryScan(t, data, ReaderOptions{MaxMemory: 256 << 20}, ScanOptions{}); err != nil {
				t.Errorf("with enough memory: %v", err)
			}
		})
	}
}

// Where the statistics do not tell that rows are large, batches become smaller, and no row is lost.
func TestLargeRowsMakeSmallBatches(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32}, {Name: "v", Type: arrow.BinaryTypes.String}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	var want []string
	for i := range 20_000 {
		v := "small"
		if i >= 10_000 && i < 10_100 {
			v = strings.Repeat(fmt.Sprint(i%10), 100_000)
		}
		b.Field(0).(*array.Int32Builder).Append(int32(i))
		b.Field(1).(*array.StringBuilder).Append(v)
		want = append(want, fmt.Sprintf("[%d,%q]", i, v))
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	data, _ := writeFileOnly(t, schema, batch, WriterOptions{Compression: Zlib, DictionaryShare: -1})
	if got := scanRows(t, data, ReaderOptions{MaxMemory: 4 << 20}, ScanOptions{}); !slices.Equal(got, want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
}

func TestStoppingAndCancellation(t *testing.T) {
	data := numbers(t, 30_000, Zlib)
	r := open(t, data, ReaderOptions{BatchRows: 100})
	n := 0
	for b, err := range r.Scan(context.Background(), ScanOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
		if n++; n == 3 {
			break
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var last error
	for b, err := range r.Scan(ctx, ScanOptions{}) {
		if last = err; err == nil {
			b.Release()
			cancel()
		}
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("after the cancellation: %v", last)
	}
	failing := &failingReader{Reader: bytes.NewReader(data)}
	r, err := NewReader(failing, int64(len(data)), ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	failing.fail = true
	for _, err := range r.Scan(context.Background(), ScanOptions{}) {
		last = err
	}
	if !errors.Is(last, io.ErrClosedPipe) {
		t.Errorf("an error of the file: %v", last)
	}
}

type failingReader struct {
	*bytes.Reader
	fail bool
}

func (f *failingReader) ReadAt(p []byte, at int64) (int, error) {
	if f.fail {
		return 0, io.ErrClosedPipe
	}
	return f.Reader.ReadAt(p, at)
}

func FuzzReader(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.orc")
	for _, path := range files {
		if data := readFile(f, path); len(data) < 3000 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		defer mem.AssertSize(t, 0)
		r, err := NewReader(bytes.NewReader(data), int64(len(data)), ReaderOptions{MaxMemory: 2 << 20, Alloc: mem})
		if err != nil {
			return
		}
		rows, batches := int64(0), 0
		ask := func(s *Span) bool {
			for _, f := range r.Schema().Fields() {
				s.Statistics(f.Name)
				s.MayContain(f.Name, "x")
			}
			return s.Row%3 != 1
		}
		for _, o := range []ScanOptions{{}, {Keep: ask}} {
			for b, err := range r.Scan(context.Background(), o) {
				if err != nil {
					break
				}
				rows += b.NumRows()
				for _, c := range b.Columns() {
					if v, ok := c.(interface{ Validate() error }); ok {
						if err := v.Validate(); err != nil {
							t.Fatal(err)
						}
					}
				}
				b.Release()
				if batches++; rows > 1<<17 || batches > 100 { // a file may claim rows of nothing without end
					break
				}
			}
		}
	})
}
