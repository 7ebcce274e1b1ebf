package basefile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	pq "github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/bloom"
	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/predicate"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/local"
	"github.com/sluicelake/sluice/storage/mem"
)

// bloomOf gives the options that made the filter of a file of Apache Hudi.
func bloomOf(table string) *basefile.BloomOptions {
	switch {
	case strings.HasPrefix(table, "cow_bloom_simple"):
		return &basefile.BloomOptions{Kind: bloom.Simple, Entries: 2500, FPP: 1e-4}
	case strings.HasPrefix(table, "cow_bloom_dynamic"):
		return &basefile.BloomOptions{Kind: bloom.DynamicV0, Entries: 500, FPP: 1e-6, Limit: 1500}
	}
	return basefile.DefaultBloom()
}

// The rows of every base file of Apache Hudi, written by us under the Avro schema of its footer, are the rows that Spark reads
// from that table, and the footer is the one that Apache Hudi wrote, word for word: schema, filter, its kind, key range.
func TestWrittenAgain(t *testing.T) {
	ctx := context.Background()
	for _, name := range fixture.SparkNames(t, "cow_types*", "cow_array_null_elements*", "cow_timestamp_ntz*", "cow_row_groups*", "cow_compressions*", "cow_schema_evolution*",
		"cow_basic*", "cow_all_deleted*", "cow_composite_key*", "cow_bloom*", "many_files*", "cow_duplicates*") {
		t.Run(name, func(t *testing.T) {
			dir, e := fixture.Spark(t, name)
			from, err := local.New(dir, local.Options{})
			if err != nil {
				t.Fatal(err)
			}
			out := t.TempDir()
			to, err := local.New(out, local.Options{})
			if err != nil {
				t.Fatal(err)
			}
			files := newest(t, dir, e.Instants)
			for _, f := range files {
				writeAgain(ctx, t, from, to, f, bloomOf(name))
			}
			avro, s := tableSchema(t, e)
			e.Snapshot.Check(t, readAll(t, out, files, basefile.ScanOptions{Columns: s, Table: avro}, nil))
		})
	}
}

func writeAgain(ctx context.Context, t *testing.T, from, to storage.Store, name string, filter *basefile.BloomOptions) {
	t.Helper()
	alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer alloc.AssertSize(t, 0)
	f, err := basefile.Open(ctx, from, name, basefile.Options{Alloc: alloc})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	avro, err := f.AvroSchema()
	if err != nil {
		t.Fatal(err)
	}
	columns, err := avro.Arrow()
	if err != nil {
		t.Fatal(err)
	}
	w, err := basefile.Create(ctx, to, name, basefile.WriterOptions{Schema: avro, Bloom: filter, Alloc: alloc, Parallel: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for batch, err := range f.Scan(ctx, basefile.ScanOptions{Columns: columns, BatchRows: 7}) {
		if err != nil {
			t.Fatal(err)
		}
		err := w.Write(batch)
		batch.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
	info, sum, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if info.Size == 0 || sum.Rows != f.Rows() {
		t.Errorf("%s: %d bytes, %d rows of %d", name, info.Size, sum.Rows, f.Rows())
	}
	again, err := basefile.Open(ctx, to, name, basefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	old, now := f.KeyValue(), again.KeyValue()
	for key := range old {
		if strings.HasPrefix(key, "org.apache.spark.") { // of the row writer
			delete(old, key)
			old[basefile.FooterAvro], old[basefile.FooterModel] = now[basefile.FooterAvro], "avro"
		}
	}
	if len(old) != len(now) || sum.MinKey != old[basefile.FooterMinKey] || sum.MaxKey != old[basefile.FooterMaxKey] {
		t.Errorf("%s: footer keys %d, want %d; keys from %q to %q", name, len(now), len(old), sum.MinKey, sum.MaxKey)
	}
	for key, want := range old {
		if now[key] != want {
			t.Errorf("%s: footer %s is %.300q, want %.300q", name, key, now[key], want)
		}
	}
}

// A schema with a column of every type gives the message that Java's Avro writer gives (AvroSchemaConverter with
// parquet.avro.write-old-list-structure=false), but for enums, which are strings.
func TestParquetSchema(t *testing.T) {
	avro, err := schema.ParseString(`{"type":"record","name":"t_record","namespace":"hoodie.t","fields":[
		{"name":"b","type":"boolean"},{"name":"i","type":["null","int"]},{"name":"l","type":["long","null"]},{"name":"f","type":"float"},{"name":"d","type":"double"},
		{"name":"s","type":["null","string"]},{"name":"y","type":"bytes"},{"name":"x","type":{"type":"fixed","name":"x4","size":4}},
		{"name":"e","type":{"type":"enum","name":"e1","symbols":["A","B"]}},{"name":"u","type":{"type":"string","logicalType":"uuid"}},
		{"name":"dec","type":{"type":"fixed","name":"d9","size":9,"logicalType":"decimal","precision":18,"scale":2}},
		{"name":"decb","type":["null",{"type":"bytes","logicalType":"decimal","precision":10,"scale":3}]},
		{"name":"date","type":{"type":"int","logicalType":"date"}},{"name":"tm","type":{"type":"int","logicalType":"time-millis"}},
		{"name":"tu","type":{"type":"long","logicalType":"time-micros"}},{"name":"tsm","type":{"type":"long","logicalType":"timestamp-millis"}},
		{"name":"tsu","type":{"type":"long","logicalType":"timestamp-micros"}},{"name":"lsm","type":{"type":"long","logicalType":"local-timestamp-millis"}},
		{"name":"arr","type":["null",{"type":"array","items":["null","int"]}]},{"name":"arr2","type":{"type":"array","items":{"type":"array","items":"string"}}},
		{"name":"map","type":{"type":"map","values":["null",{"type":"record","name":"r1","fields":[{"name":"p","type":["null","double"]}]}]}}]}`)
	if err != nil {
		t.Fatal(err)
	}
	const want = `required group field_id=-1 hoodie.t.t_record {
  required boolean field_id=-1 b;
  optional int32 field_id=-1 i;
  optional int64 field_id=-1 l;
  required float field_id=-1 f;
  required double field_id=-1 d;
  optional byte_array field_id=-1 s (String);
  required byte_array field_id=-1 y;
  required fixed_len_byte_array field_id=-1 x;
  required byte_array field_id=-1 e (String);
  required byte_array field_id=-1 u (String);
  required fixed_len_byte_array field_id=-1 dec (Decimal(precision=18, scale=2));
  optional byte_array field_id=-1 decb (Decimal(precision=10, scale=3));
  required int32 field_id=-1 date (Date);
  required int32 field_id=-1 tm (Time(isAdjustedToUTC=true, timeUnit=milliseconds));
  required int64 field_id=-1 tu (Time(isAdjustedToUTC=true, timeUnit=microseconds));
  required int64 field_id=-1 tsm (Timestamp(isAdjustedToUTC=true, timeUnit=milliseconds));
  required int64 field_id=-1 tsu (Timestamp(isAdjustedToUTC=true, timeUnit=microseconds));
  required int64 field_id=-1 lsm (Timestamp(isAdjustedToUTC=false, timeUnit=milliseconds));
  optional group field_id=-1 arr (List) {
    repeated group field_id=-1 list {
      optional int32 field_id=-1 element;
    }
  }
  required group field_id=-1 arr2 (List) {
    repeated group field_id=-1 list {
      required group field_id=-1 element (List) {
        repeated group field_id=-1 list {
          required byte_array field_id=-1 element (String);
        }
      }
    }
  }
  required group field_id=-1 map (Map) {
    repeated group field_id=-1 key_value {
      required byte_array field_id=-1 key (String);
      optional group field_id=-1 value {
        optional double field_id=-1 p;
      }
    }
  }
}
`
	data, _ := writtenBy(t, basefile.WriterOptions{Schema: avro}, nil)
	f, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	pq.PrintSchema(f.MetaData().Schema.Root(), &b, 2)
	got := plainSchema(b.String())
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// plainSchema drops what the printer says about how annotations were written.
func plainSchema(s string) string {
	return strings.NewReplacer(", is_from_converted_type=false, force_set_converted_type=false", "").Replace(s)
}

func writtenBy(t testing.TB, o basefile.WriterOptions, batches []arrow.RecordBatch) ([]byte, basefile.Summary) {
	t.Helper()
	return filledBy(t, o, func(w *basefile.Writer) error {
		for _, b := range batches {
			if err := w.Write(b); err != nil {
				return err
			}
		}
		return nil
	})
}

func filledBy(t testing.TB, o basefile.WriterOptions, fill func(*basefile.Writer) error) ([]byte, basefile.Summary) {
	t.Helper()
	ctx := context.Background()
	store := mem.New("written")
	w, err := basefile.Create(ctx, store, "f.parquet", o)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if err := fill(w); err != nil {
		t.Fatal(err)
	}
	_, sum, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	data, err := storage.ReadAll(ctx, store, "f.parquet", 0)
	if err != nil {
		t.Fatal(err)
	}
	return data, sum
}

// nestedAvro is a table with the meta columns and columns nested in every way.
const nestedAvro = `{"type":"record","name":"n_record","namespace":"hoodie.n","fields":[
	{"name":"id","type":"string"},{"name":"ok","type":["null","boolean"],"default":null},
	{"name":"price","type":["null",{"type":"fixed","name":"p","size":5,"logicalType":"decimal","precision":10,"scale":2}],"default":null},
	{"name":"big","type":["null",{"type":"bytes","logicalType":"decimal","precision":30,"scale":4}],"default":null},
	{"name":"at","type":["null",{"type":"long","logicalType":"timestamp-micros"}],"default":null},
	{"name":"l","type":["null",{"type":"array","items":["null","string"]}],"default":null},
	{"name":"ll","type":["null",{"type":"array","items":["null",{"type":"array","items":["null","int"]}]}],"default":null},
	{"name":"m","type":["null",{"type":"map","values":["null",{"type":"record","name":"mr","fields":[{"name":"a","type":["null","long"],"default":null},{"name":"b","type":["null",{"type":"array","items":["null","double"]}],"default":null}]}]}],"default":null},
	{"name":"s","type":["null",{"type":"record","name":"sr","fields":[{"name":"x","type":"int"},{"name":"deep","type":["null",{"type":"record","name":"dr","fields":[{"name":"y","type":["null","bytes"],"default":null}]}],"default":null}]}],"default":null}]}`

func nestedType(t testing.TB) (*schema.Type, *arrow.Schema) {
	t.Helper()
	avro, err := schema.ParseString(nestedAvro)
	if err != nil {
		t.Fatal(err)
	}
	avro = schema.WithMeta(avro)
	s, err := avro.Arrow()
	if err != nil {
		t.Fatal(err)
	}
	return avro, s
}

// randomBatch makes n rows of nestedType whose keys count on from first.
func randomBatch(t testing.TB, r *rand.Rand, first, n int, file string) arrow.RecordBatch {
	t.Helper()
	_, s := nestedType(t)
	var b strings.Builder
	null := func(p int, v string) string {
		if r.IntN(p) == 0 {
			return "null"
		}
		return v
	}
	list := func(most int, one func() string) string {
		var parts []string
		for range r.IntN(most) {
			parts = append(parts, one())
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	for i := range n {
		mr := func() string {
			return null(4, fmt.Sprintf(`{"a":%s,"b":%s}`, null(3, fmt.Sprint(r.Int64()>>8)), null(3, list(4, func() string { return null(4, fmt.Sprint(r.Float64())) }))))
		}
		var pairs []string
		for k := range r.IntN(4) {
			pairs = append(pairs, fmt.Sprintf(`{"key":"k%d","value":%s}`, k, mr()))
		}
		fmt.Fprintf(&b, `{"_hoodie_commit_time":"1","_hoodie_commit_seqno":"1_0_%d","_hoodie_record_key":"key-%06d","_hoodie_partition_path":"","_hoodie_file_name":%q,"id":"key-%06d",`, first+i, first+i, file, first+i)
		fmt.Fprintf(&b, `"ok":%s,"price":%s,"big":%s,"at":%s,`, null(3, fmt.Sprint(r.IntN(2) == 0)), null(3, fmt.Sprintf(`"%d.%02d"`, r.IntN(20000000)-10000000, r.IntN(100))),
			null(3, fmt.Sprintf(`"%d.%04d"`, r.Int64()-1<<62, r.IntN(10000))), null(3, fmt.Sprintf(`"2024-05-06T07:08:09.%06dZ"`, r.IntN(1000000))))
		fmt.Fprintf(&b, `"l":%s,"ll":%s,"m":%s,"s":%s}`+"\n", null(4, list(4, func() string { return null(4, fmt.Sprintf(`"t%d"`, r.IntN(50))) })),
			null(4, list(4, func() string {
				return null(4, list(3, func() string { return null(4, fmt.Sprint(r.IntN(100))) }))
			})), null(4, "["+strings.Join(pairs, ",")+"]"),
			null(4, fmt.Sprintf(`{"x":%d,"deep":%s}`, r.IntN(100), null(3, fmt.Sprintf(`{"y":%s}`, null(3, `"AQID"`))))))
	}
	batch, _, err := array.RecordFromJSON(memory.NewGoAllocator(), s, strings.NewReader(b.String()), array.WithMultipleDocs())
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

// Random nested rows, written from slices of arrays with offsets in many row groups and pages, read back the same by ourselves and
// by the reader of arrow-go, which shares no code with ours above the pages.
func TestNestedRows(t *testing.T) {
	avro, s := nestedType(t)
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		whole := randomBatch(t, r, 0, 700, "f")
		var batches []arrow.RecordBatch
		for at := int64(0); at < whole.NumRows(); {
			n := min(1+r.Int64N(200), whole.NumRows()-at)
			batches = append(batches, whole.NewSlice(at, at+n))
			at += n
		}
		o := basefile.WriterOptions{Schema: avro, Bloom: basefile.DefaultBloom(), Codec: []string{"gzip", "snappy", "zstd", "uncompressed"}[seed%4], PlainOnly: seed%3 == 1, Parallel: int(seed % 3)}
		if seed%2 == 0 {
			o.PageBytes, o.RowGroupBytes = 300, 8000
		}
		data, sum := writtenBy(t, o, batches)
		if sum.Rows != 700 || sum.MinKey != "key-000000" || sum.MaxKey != "key-000699" {
			t.Errorf("%+v", sum)
		}
		f := opened(t, data)
		if seed%2 == 0 && len(f.RowGroups()) < 3 {
			t.Errorf("%d row groups", len(f.RowGroups()))
		}
		got := together(t, f, s)
		if !array.RecordEqual(whole, got) {
			t.Fatalf("seed %d: other rows", seed)
		}
		other := readByArrow(t, data)
		for i, c := range other {
			if want := texted(whole.Column(i)); c != want {
				t.Fatalf("seed %d: column %s, read by arrow-go:\n%s\nwant\n%s", seed, s.Field(i).Name, c, want)
			}
		}
	}
}

func opened(t testing.TB, data []byte) basefile.File {
	t.Helper()
	f, err := basefile.OpenBytes(context.Background(), "f.parquet", data, basefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// together reads a file into one batch.
func together(t testing.TB, f basefile.File, s *arrow.Schema) arrow.RecordBatch {
	t.Helper()
	columns := make([][]arrow.Array, s.NumFields())
	rows := int64(0)
	for b, err := range f.Scan(context.Background(), basefile.ScanOptions{Columns: s}) {
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range b.Columns() {
			columns[i] = append(columns[i], c)
		}
		rows += b.NumRows()
	}
	out := make([]arrow.Array, len(columns))
	for i, parts := range columns {
		if len(parts) == 0 {
			b := array.NewBuilder(memory.DefaultAllocator, s.Field(i).Type)
			out[i] = b.NewArray()
			continue
		}
		var err error
		if out[i], err = array.Concatenate(parts, memory.DefaultAllocator); err != nil {
			t.Fatal(err)
		}
	}
	return array.NewRecordBatch(s, out, rows)
}

// readByArrow gives each column as text, as the reader of arrow-go has it.
func readByArrow(t testing.TB, data []byte) []string {
	t.Helper()
	f, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	table, err := r.ReadTable(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range int(table.NumCols()) {
		whole, err := array.Concatenate(table.Column(i).Data().Chunks(), memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, texted(whole))
	}
	return out
}

func texted(a arrow.Array) string {
	var b strings.Builder
	for i := range a.Len() {
		b.WriteString(a.ValueStr(i) + "\n")
	}
	return b.String()
}

// A rewrite gives the rows that a plain model has, whether row groups are copied as they lie or decoded, over several generations:
// files with copied row groups are old files in their turn. Pages are then skipped by the indexes that were carried along.
func TestRewrites(t *testing.T) {
	ctx := context.Background()
	avro, s := nestedType(t)
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 7))
		store := mem.New("rewrites")
		o := basefile.WriterOptions{Schema: avro, Bloom: &basefile.BloomOptions{Kind: bloom.DynamicV0, Entries: 300, FPP: 1e-6, Limit: 1000}, Codec: []string{"snappy", "gzip"}[seed%2], PageBytes: 400, RowGroupBytes: 12000}
		first := randomBatch(t, r, 0, 800, "f0.parquet")
		model := []arrow.RecordBatch{}
		for i := range first.NumRows() {
			model = append(model, first.NewSlice(i, i+1))
		}
		put(t, store, "f0.parquet", o, first)
		copied := int64(0)
		next := 800
		for generation := 1; generation < 5; generation++ {
			old, err := basefile.Open(ctx, store, fmt.Sprintf("f%d.parquet", generation-1), basefile.Options{})
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("f%d.parquet", generation)
			changes, after := randomChanges(t, r, model)
			var appended []arrow.RecordBatch
			if r.IntN(3) > 0 {
				b := randomBatch(t, r, next, 1+r.IntN(60), "to be replaced")
				next += int(b.NumRows())
				appended = append(appended, b)
				for i := range b.NumRows() {
					after = append(after, b.NewSlice(i, i+1))
				}
			}
			var sums []basefile.Summary
			for _, limit := range []int64{-1, 1} {
				_, sum, err := basefile.Rewrite(ctx, old, store, name, each(changes), eachBatch(appended), basefile.RewriteOptions{WriterOptions: o, FileName: name, CopyBytes: limit})
				if err != nil {
					t.Fatal(err)
				}
				sums = append(sums, sum)
				checkModel(t, store, name, s, after)
			}
			if sums[0].CopiedRows != 0 || sums[0].Rows != sums[1].Rows || sums[0].MinKey != sums[1].MinKey || sums[0].MaxKey != sums[1].MaxKey {
				t.Errorf("%+v", sums)
			}
			copied += sums[1].CopiedRows
			model = after
			if err := old.Close(); err != nil {
				t.Error(err)
			}
		}
		if copied == 0 {
			t.Errorf("seed %d: no row was copied", seed)
		}
	}
}

func put(t testing.TB, store storage.Store, name string, o basefile.WriterOptions, batches ...arrow.RecordBatch) {
	t.Helper()
	w, err := basefile.Create(context.Background(), store, name, o)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, b := range batches {
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// randomChanges touches a few neighbouring rows, so that some row groups have none, and gives the model's rows after them.
func randomChanges(t testing.TB, r *rand.Rand, model []arrow.RecordBatch) (changes []basefile.Change, after []arrow.RecordBatch) {
	t.Helper()
	around, wide := r.IntN(len(model)), 1+r.IntN(200)
	for i := 0; i < len(model); {
		if i < around || i >= around+wide || r.IntN(3) > 0 {
			after = append(after, model[i])
			i++
			continue
		}
		n := min(1+r.IntN(4), len(model)-i)
		c := basefile.Change{}
		for k := range n {
			c.Rows = append(c.Rows, int64(i+k))
		}
		if r.IntN(3) > 0 {
			c.Batch = randomBatch(t, r, 100000+r.IntN(100000), n, "to be replaced")
			for k := range int64(n) {
				after = append(after, c.Batch.NewSlice(k, k+1))
			}
		}
		changes = append(changes, c)
		i += n
	}
	return changes, after
}

func each(changes []basefile.Change) func(func(basefile.Change, error) bool) {
	return func(yield func(basefile.Change, error) bool) {
		for _, c := range changes {
			if c.Batch != nil {
				c.Batch.Retain()
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

func eachBatch(batches []arrow.RecordBatch) func(func(arrow.RecordBatch, error) bool) {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for _, b := range batches {
			b.Retain()
			if !yield(b, nil) {
				return
			}
		}
	}
}

func checkModel(t *testing.T, store storage.Store, name string, s *arrow.Schema, model []arrow.RecordBatch) {
	t.Helper()
	ctx := context.Background()
	data, err := storage.ReadAll(ctx, store, name, 0)
	if err != nil {
		t.Fatal(err)
	}
	basefile.CheckLayout(t, data)
	f := opened(t, data)
	got := together(t, f, s)
	if got.NumRows() != int64(len(model)) {
		t.Fatalf("%s: %d rows, want %d", name, got.NumRows(), len(model))
	}
	nameAt := s.FieldIndices(schema.FileName)[0]
	byArrow := readByArrow(t, data)
	filter, ok, err := bloom.FromFooter(f.KeyValue())
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	keys := make([]string, len(model))
	for c := range s.NumFields() {
		lines := strings.SplitAfter(byArrow[c], "\n")
		for i, row := range model {
			want := row.Column(c)
			if c == nameAt {
				want = text(name)
			}
			if !array.SliceEqual(want, 0, 1, got.Column(c), int64(i), int64(i)+1) {
				t.Fatalf("%s: row %d, column %s: %s, want %s", name, i, s.Field(c).Name, got.Column(c).ValueStr(i), want.ValueStr(0))
			}
			if lines[i] != want.ValueStr(0)+"\n" {
				t.Fatalf("%s: row %d, column %s: arrow-go reads %s, want %s", name, i, s.Field(c).Name, lines[i], want.ValueStr(0))
			}
			if s.Field(c).Name == schema.RecordKey {
				keys[i] = want.ValueStr(0)
				if ok, err := filter.Test([]byte(keys[i])); !ok || err != nil {
					t.Fatal("the filter lacks", keys[i], err)
				}
			}
		}
	}
	if len(keys) == 0 {
		return
	}
	kv := f.KeyValue()
	if kv[basefile.FooterMinKey] != slices.Min(keys) || kv[basefile.FooterMaxKey] != slices.Max(keys) {
		t.Errorf("keys from %s to %s, want %s to %s", kv[basefile.FooterMinKey], kv[basefile.FooterMaxKey], slices.Min(keys), slices.Max(keys))
	}
	for _, at := range []int{0, len(keys) / 2, len(keys) - 1} { // found by page indexes, at its place
		found := false
		for b, err := range f.ScanRows(ctx, basefile.ScanOptions{Columns: arrow.NewSchema([]arrow.Field{s.Field(2)}, nil), Filter: predicate.Eq(schema.RecordKey, keys[at])}) {
			if err != nil {
				t.Fatal(err)
			}
			for i := range int(b.NumRows()) {
				found = found || b.Column(0).ValueStr(i) == keys[at] && b.FirstRow+int64(i) == int64(at)
			}
			b.Release()
		}
		if !found {
			t.Errorf("%s: row %d is not found through the page indexes", name, at)
		}
	}
}

func text(s string) arrow.Array {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	b.Append(s)
	return b.NewArray()
}

// A file of Apache Hudi whose columns lie as ours do is copied too.
func TestRewriteOfApacheHudi(t *testing.T) {
	ctx := context.Background()
	for _, name := range fixture.SparkNames(t, "cow_basic_*", "cow_row_groups_*", "cow_types_1.2.0", "cow_types_row_writer_*", "cow_bloom_simple_*") {
		t.Run(name, func(t *testing.T) {
			dir, e := fixture.Spark(t, name)
			from, err := local.New(dir, local.Options{})
			if err != nil {
				t.Fatal(err)
			}
			avro, s := tableSchema(t, e)
			out := t.TempDir()
			to, err := local.New(out, local.Options{})
			if err != nil {
				t.Fatal(err)
			}
			files := newest(t, dir, e.Instants)
			copied := int64(0)
			for _, f := range files {
				old, err := basefile.Open(ctx, from, f, basefile.Options{})
				if err != nil {
					t.Fatal(err)
				}
				o := basefile.RewriteOptions{WriterOptions: basefile.WriterOptions{Schema: avro, Bloom: bloomOf(name)}, FileName: path.Base(f), Scan: basefile.ScanOptions{Table: avro}, CopyBytes: 1}
				_, sum, err := basefile.Rewrite(ctx, old, to, f, nil, nil, o)
				if err != nil {
					t.Fatal(err)
				}
				copied += sum.CopiedRows
				again, err := basefile.Open(ctx, to, f, basefile.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if got, want := again.KeyValue()[bloom.FooterFilter], old.KeyValue()[bloom.FooterFilter]; got != want {
					t.Error("another filter")
				}
				if err := errors.Join(old.Close(), again.Close()); err != nil {
					t.Error(err)
				}
			}
			if lists := name == "cow_types_1.2.0" || name == "cow_types_row_writer_0.15.0"; (copied == 0) != lists { // lists of two levels, and Spark's legacy ones
				t.Errorf("%d rows copied", copied)
			}
			e.Snapshot.Check(t, readAll(t, out, files, basefile.ScanOptions{Columns: s, Table: avro}, nil))
		})
	}
}

func TestWriterRefuses(t *testing.T) {
	ctx := context.Background()
	avro, s := nestedType(t)
	r := rand.New(rand.NewPCG(1, 1))
	good := randomBatch(t, r, 0, 5, "f")
	replaced := func(column int, a arrow.Array) arrow.RecordBatch {
		columns := append([]arrow.Array(nil), good.Columns()...)
		columns[column] = a
		return array.NewRecordBatch(s, columns, 5)
	}
	five := func(one func(b array.Builder)) func(int) arrow.Array {
		return func(column int) arrow.Array {
			b := array.NewBuilder(memory.DefaultAllocator, s.Field(column).Type)
			for range 5 {
				one(b)
			}
			return b.NewArray()
		}
	}
	nulls := five(func(b array.Builder) { b.AppendNull() })
	for want, batch := range map[string]arrow.RecordBatch{
		"without key": replaced(2, nulls(2)),
		"null where":  replaced(5, nulls(5)),
		"more than 10": func() arrow.RecordBatch {
			// the type of the builder takes more digits than the column's
			b := array.NewDecimal128Builder(memory.DefaultAllocator, &arrow.Decimal128Type{Precision: 12, Scale: 2})
			for range 5 {
				if err := b.AppendValueFromString("1234567890.12"); err != nil {
					t.Fatal(err)
				}
			}
			a := b.NewArray()
			return replaced(7, array.NewDecimal128Data(array.NewData(s.Field(7).Type, 5, a.Data().Buffers(), nil, 0, 0)))
		}(),
		"columns for a schema": array.NewRecordBatch(arrow.NewSchema(s.Fields()[:3], nil), good.Columns()[:3], 5),
	} {
		store := mem.New("refused")
		w, err := basefile.Create(ctx, store, "f.parquet", basefile.WriterOptions{Schema: avro, Bloom: basefile.DefaultBloom()})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(good); err != nil {
			t.Fatal(err)
		}
		err = w.Write(batch)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "f.parquet") {
			t.Errorf("%v, want %s", err, want)
		}
		if _, _, again := w.Close(); !errors.Is(again, err) {
			t.Errorf("%v after %v", again, err)
		}
		w.Abort()
		if _, err := store.Stat(ctx, "f.parquet"); !errors.Is(err, storage.ErrNotExist) {
			t.Errorf("a file is there: %v", err)
		}
	}
	for _, text := range []string{`{"type":"record","name":"r","fields":[{"name":"u","type":["null","int","string"]}]}`, `{"type":"record","name":"r","fields":[{"name":"n","type":"null"}]}`,
		`{"type":"record","name":"r","fields":[{"name":"e","type":{"type":"record","name":"e","fields":[]}}]}`, `{"type":"record","name":"r","fields":[{"name":"e","type":{"type":"fixed","name":"e","size":16,"logicalType":"uuid"}}]}`} {
		avro, err := schema.ParseString(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := basefile.Create(ctx, mem.New("x"), "f.parquet", basefile.WriterOptions{Schema: avro}); !errors.Is(err, basefile.ErrUnsupported) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := basefile.Create(ctx, mem.New("x"), "f.parquet", basefile.WriterOptions{Schema: avro, Codec: "lzo"}); !errors.Is(err, basefile.ErrUnsupported) {
		t.Error(err)
	}
}

// Whatever goes wrong in a rewrite, no file appears, and every batch is given back.
func TestRewriteRefuses(t *testing.T) {
	ctx := context.Background()
	avro, _ := nestedType(t)
	r := rand.New(rand.NewPCG(1, 1))
	store := mem.New("refused")
	o := basefile.WriterOptions{Schema: avro, Bloom: basefile.DefaultBloom()}
	put(t, store, "old.parquet", o, randomBatch(t, r, 0, 50, "old.parquet"))
	old, err := basefile.Open(ctx, store, "old.parquet", basefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	for want, changes := range map[string][]basefile.Change{
		"comes after": {{Rows: []int64{5, 3}}}, "old file has 50": {{Rows: []int64{3, 50}}}, "of 2 rows with 1": {{Rows: []int64{1, 2}, Batch: randomBatch(t, r, 0, 1, "")}}, "of row -1": {{Rows: []int64{-1}}},
	} {
		_, _, err := basefile.Rewrite(ctx, old, store, "new.parquet", each(changes), nil, basefile.RewriteOptions{WriterOptions: o, FileName: "new.parquet"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	_, _, err = basefile.Rewrite(ctx, old, store, "new.parquet", func(yield func(basefile.Change, error) bool) { yield(basefile.Change{}, broken) }, nil, basefile.RewriteOptions{WriterOptions: o, FileName: "new.parquet"})
	if !errors.Is(err, broken) {
		t.Error(err)
	}
	_, _, err = basefile.Rewrite(ctx, old, store, "new.parquet", nil, func(yield func(arrow.RecordBatch, error) bool) { yield(nil, broken) }, basefile.RewriteOptions{WriterOptions: o, FileName: "new.parquet"})
	if !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err := store.Stat(ctx, "new.parquet"); !errors.Is(err, storage.ErrNotExist) {
		t.Error("a file is there")
	}
	if _, err := storage.ReadAll(ctx, store, "old.parquet", 0); err != nil || errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func TestWriterOptionsOfApacheHudi(t *testing.T) {
	props := config.NewProperties()
	var o basefile.WriterOptions
	if err := o.Set(props); err != nil {
		t.Fatal(err)
	}
	if o.Codec != "gzip" || o.RowGroupBytes != 125829120 || o.PageBytes != 1048576 || o.PlainOnly || *o.Bloom != (basefile.BloomOptions{Kind: bloom.DynamicV0, Entries: 60000, FPP: 1e-9, Limit: 100000}) {
		t.Errorf("%+v %+v", o, o.Bloom)
	}
	for k, v := range map[string]string{"hoodie.parquet.compression.codec": "ZSTD", "hoodie.parquet.block.size": "1000", "hoodie.parquet.page.size": "10", "hoodie.parquet.dictionary.enabled": "false",
		"hoodie.bloom.index.filter.type": "SIMPLE", "hoodie.index.bloom.num_entries": "7", "hoodie.index.bloom.fpp": "0.5"} {
		props.Set(k, v)
	}
	if err := o.Set(props); err != nil {
		t.Fatal(err)
	}
	if o.Codec != "zstd" || o.RowGroupBytes != 1000 || o.PageBytes != 10 || !o.PlainOnly || o.Bloom.Kind != bloom.Simple || o.Bloom.Entries != 7 || o.Bloom.FPP != 0.5 {
		t.Errorf("%+v %+v", o, o.Bloom)
	}
	props.Set("hoodie.populate.meta.fields", "false")
	if err := o.Set(props); err != nil || o.Bloom != nil {
		t.Error(err, o.Bloom)
	}
	props.Set("hoodie.parquet.page.size", "x")
	if err := o.Set(props); err == nil || !strings.Contains(err.Error(), "page.size") {
		t.Error(err)
	}
}

// The writer holds one row group, compressed, and a slice of rows, however long the file gets.
func TestWriterMemory(t *testing.T) {
	peak := &peakAllocator{Allocator: memory.NewGoAllocator()}
	avro, batch := wideBatch(t, 0, 20000)
	defer batch.Release()
	w, err := basefile.Create(context.Background(), mem.New("memory"), "f.parquet", basefile.WriterOptions{Schema: avro, Codec: "snappy", RowGroupBytes: 4 << 20, Alloc: peak})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	var first int64
	for i := range 30 {
		if err := w.Write(batch); err != nil {
			t.Fatal(err)
		}
		if i == 9 {
			first = peak.peak.Load()
		}
	}
	if size := w.Size(); size < 12<<20 {
		t.Errorf("%d bytes so far", size)
	}
	_, sum, err := w.Close()
	if err != nil || sum.Rows != 600000 {
		t.Fatal(sum, err)
	}
	if all := peak.peak.Load(); all > first+first/4 || all > 48<<20 {
		t.Errorf("peak of %d KiB after ten batches, of %d after thirty", first>>10, all>>10)
	}
	if now := peak.now.Load(); now != 0 {
		t.Errorf("%d bytes are not given back", now)
	}
}

// The order of keys is that of Java's strings (java.lang.String.compareTo), not that of bytes.
func TestCompareKeys(t *testing.T) {
	sorted := []string{"", "a", "aa", "b", "é", "\u07ff", "\u0800", "\ud7ff", "\U00010000", "\U0001f600", "\U0010ffff", "\ue000", "\uffff"}
	for i, a := range sorted {
		for k, b := range sorted {
			got := basefile.CompareKeys("x"+a, "x"+b)
			if (got < 0) != (i < k) || (got > 0) != (i > k) {
				t.Errorf("%q with %q: %d", a, b, got)
			}
		}
	}
}

// A column whose values repeat keeps its dictionary, one whose values all differ gets none, as the first batch tells; and a page ends near
// its size although its values are long.
func TestDictionariesAndPages(t *testing.T) {
	avro, s := nestedType(t)
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	for i := range 9000 {
		for c, v := range []string{"1", fmt.Sprint(i), fmt.Sprintf("key-%06d", i), "", "f", fmt.Sprint("some text ", i)} {
			b.Field(c).(*array.StringBuilder).Append(v)
		}
		for c := 6; c < s.NumFields(); c++ {
			b.Field(c).AppendNull()
		}
	}
	at := s.FieldIndices("l")[0]
	l := array.NewListBuilderWithField(memory.DefaultAllocator, s.Field(at).Type.(*arrow.ListType).ElemField())
	for i := range 9000 {
		l.Append(true)
		l.ValueBuilder().(*array.StringBuilder).Append(strings.Repeat(fmt.Sprint(i%3000), 200))
	}
	columns := append([]arrow.Array(nil), b.NewRecordBatch().Columns()...)
	columns[at] = l.NewArray()
	batch := array.NewRecordBatch(s, columns, 9000)
	data, _ := writtenBy(t, basefile.WriterOptions{Schema: avro, Codec: "uncompressed", PageBytes: 100 << 10}, []arrow.RecordBatch{batch})
	f, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for i, dictionary := range map[int]bool{0: true, 1: false, 2: false, 3: true, 4: true, 5: false} {
		chunk, err := f.MetaData().RowGroup(0).ColumnChunk(i)
		if err != nil {
			t.Fatal(err)
		}
		if chunk.HasDictionaryPage() != dictionary {
			t.Errorf("%s: dictionary %v", s.Field(i).Name, chunk.HasDictionaryPage())
		}
	}
	pages, err := f.RowGroup(0).GetColumnPageReader(at)
	if err != nil {
		t.Fatal(err)
	}
	for pages.Next() {
		if n := len(pages.Page().Data()); n > 400<<10 {
			t.Errorf("a page of %d bytes", n)
		}
	}
	if err := pages.Err(); err != nil {
		t.Error(err)
	}
}
