package index_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/bloom"
	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/index"
	"github.com/sluicelake/sluice/hudi/keygen"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/local"
	"github.com/sluicelake/sluice/storage/mem"
)

// asked is one key with its partition.
type asked struct{ key, partition string }

func batchOf(keys []asked) arrow.RecordBatch {
	k, p := array.NewStringBuilder(memory.DefaultAllocator), array.NewStringBuilder(memory.DefaultAllocator)
	for _, a := range keys {
		k.Append(a.key)
		p.Append(a.partition)
	}
	return twoColumns(k.NewArray(), p.NewArray())
}

func twoColumns(k, p arrow.Array) arrow.RecordBatch {
	s := arrow.NewSchema([]arrow.Field{{Name: "key", Type: k.DataType()}, {Name: "partition", Type: p.DataType()}}, nil)
	return array.NewRecordBatch(s, []arrow.Array{k, p}, int64(k.Len()))
}

// tableOf opens a table's newest slices.
func tableOf(ctx context.Context, t testing.TB, dir string) (storage.Store, *config.Table, []filegroup.Slice) {
	t.Helper()
	store, err := local.New(dir, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	tl, err := timeline.Load(ctx, store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	view, err := filegroup.Open(ctx, store, cfg, tl)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filegroup.List(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	at, _ := view.Latest()
	var out []filegroup.Slice
	for _, p := range files.Partitions() {
		s, err := view.Slices(ctx, p, files.In(p), at, filegroup.Snapshot)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s...)
	}
	return store, cfg, out
}

// Every record of a table of Apache Hudi is found in the file that Spark reads it from (_hoodie_file_name), once for each of its
// copies, and what is not in the table is not found, by every index.
func TestTablesOfApacheHudi(t *testing.T) {
	ctx := context.Background()
	for _, name := range fixture.SparkNames(t, "cow_basic*", "cow_nonpartitioned*", "cow_composite_key*", "cow_duplicates*", "cow_partitions_raw*", "cow_partitions_t[wy]*", "cow_partitions_urlencoded*", "cow_partitions_timestamp*", "cow_partitions_datestring*", "cow_types*", "cow_all_deleted*", "cow_cleaned*",
		"cow_insert_overwrite*", "cow_delete_partition*", "cow_bucket_composite*", "cow_archived_0*", "cow_complex*") {
		t.Run(name, func(t *testing.T) {
			dir, e := fixture.Spark(t, name)
			store, _, slices := tableOf(ctx, t, dir)
			var keys []asked
			var want []string
			for _, r := range e.Snapshot.Rows {
				a := asked{r[schema.RecordKey].(string), r[schema.PartitionPath].(string)}
				file := r[schema.FileName].(string)
				keys = append(keys, a)
				want = append(want, fmt.Sprintf("%s|%s|%s", a.key, a.partition, file[:strings.IndexByte(file, '_')]))
			}
			keys = append(keys, asked{"no such key", ""}, asked{"0", "dt=nowhere"})
			for _, k := range []index.Kind{index.Simple, index.Bloom, index.GlobalSimple, index.GlobalBloom} {
				checkFound(ctx, t, store, slices, keys, want, k)
			}
		})
	}
}

// checkFound asks for different keys and holds the answer against want: "key|partition|file id" for each stored copy.
func checkFound(ctx context.Context, t *testing.T, store storage.Store, all []filegroup.Slice, keys []asked, want []string, kind index.Kind) {
	t.Helper()
	alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer alloc.AssertSize(t, 0)
	var different []asked
	seen := map[asked]bool{}
	for _, k := range keys {
		if kind.Global() {
			k.partition = "elsewhere"
		}
		if !seen[k] {
			seen[k] = true
			different = append(different, k)
		}
	}
	tags, err := index.Lookup(ctx, store, all, batchOf(different), index.Options{Kind: kind, Base: basefile.Options{Alloc: alloc}})
	if err != nil {
		t.Fatal(kind, err)
	}
	var got []string
	for i := range tags.Len() {
		loc := tags.Location(i, all)
		key := different[tags.Key[i]].key
		got = append(got, fmt.Sprintf("%s|%s|%s", key, loc.Partition, loc.FileID))
		if stored := keyAt(ctx, t, store, all[tags.Slice[i]].Base.Name, loc.Row); stored != key {
			t.Errorf("%v: row %d of %s holds %q, not %q", kind, loc.Row, loc.FileID, stored, key)
		}
		if loc.Instant != all[tags.Slice[i]].Base.Instant {
			t.Errorf("instant %s of a base file of %s", loc.Instant, all[tags.Slice[i]].Base.Instant)
		}
	}
	slices.Sort(got)
	want = slices.Clone(want)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%v found\n%s\nwant\n%s", kind, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func keyAt(ctx context.Context, t *testing.T, store storage.Store, name string, row int64) string {
	t.Helper()
	f, err := basefile.Open(ctx, store, name, basefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	s := arrow.NewSchema([]arrow.Field{{Name: schema.RecordKey, Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	for b, err := range f.ScanRows(ctx, basefile.ScanOptions{Columns: s}) {
		if err != nil {
			t.Fatal(err)
		}
		if at := row - b.FirstRow; at >= 0 && at < b.NumRows() {
			return b.Column(0).(*array.String).Value(int(at))
		}
	}
	t.Fatal("no row", row)
	return ""
}

// A table with a bucket index: every record's bucket is the file group that Spark reads it from, and a record that is in logs alone, or
// not yet stored, belongs to the same file group, with row -1.
func TestBucketsOfApacheHudi(t *testing.T) {
	ctx := context.Background()
	for _, name := range fixture.SparkNames(t, "mor_bucket_index*", "cow_bucket_composite*", "mor_log_only_bucket_*") {
		t.Run(name, func(t *testing.T) {
			dir, e := fixture.Spark(t, name)
			store, cfg, all := tableOf(ctx, t, dir)
			o := index.Options{Kind: index.Bucket}
			n := map[string]string{"mor_bucket_i": "4", "cow_bucket_c": "8", "mor_log_only": "4"}[name[:12]]
			fields := map[string]string{"mor_bucket_i": "id", "cow_bucket_c": "a,b", "mor_log_only": "id"}[name[:12]]
			release, err := keygen.ParseRelease(e.Hudi)
			if err != nil {
				t.Fatal(err)
			}
			var ok bool
			o.Bucket, ok, err = keygen.NewBucketRule(keygen.Options{Table: keygen.PropertiesOf(cfg), Release: release, Properties: map[string]string{
				"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": n, "hoodie.bucket.index.hash.field": fields}})
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			var keys []asked
			var want []string
			for _, r := range e.Snapshot.Rows {
				keys = append(keys, asked{r[schema.RecordKey].(string), r[schema.PartitionPath].(string)})
				file, _, _ := strings.Cut(r[schema.FileName].(string), "_")
				want = append(want, file)
			}
			for _, noRows := range []bool{false, true} {
				o.NoRows = noRows
				tags, err := index.Lookup(ctx, store, all, batchOf(keys), o)
				if err != nil {
					t.Fatal(err)
				}
				if tags.Len() != len(keys) {
					t.Fatalf("%d of %d", tags.Len(), len(keys))
				}
				for i := range tags.Len() {
					loc := tags.Location(i, all)
					if int(tags.Key[i]) != i || loc.FileID != want[i] || loc.Partition != keys[i].partition {
						t.Errorf("%s is in %+v, want %s", keys[i].key, loc, want[i])
					}
					if base := all[tags.Slice[i]].Base; loc.Row >= 0 && (noRows || keyAt(ctx, t, store, base.Name, loc.Row) != keys[i].key) {
						t.Errorf("%s is not in row %d", keys[i].key, loc.Row)
					}
				}
			}
			// The same bucket twice, and a bucket that the rule does not have.
			if len(all) > 0 {
				if _, err := index.Lookup(ctx, store, append(slices.Clone(all), all[0]), batchOf(keys), o); !errors.Is(err, index.ErrBuckets) {
					t.Error(err)
				}
				o.Bucket.Buckets = 1
				if _, err := index.Lookup(ctx, store, all, batchOf(keys), o); len(all) > 1 && !errors.Is(err, index.ErrBuckets) {
					t.Error(err)
				}
			}
		})
	}
}

// stored is one row of the model's table.
type stored struct {
	asked
	slice int
	row   int64
}

// randomTable writes files of ours with random keys, some of them twice, in several partitions.
func randomTable(t testing.TB, r *rand.Rand, store storage.Store, files int, filter *basefile.BloomOptions) (all []filegroup.Slice, rows []stored) {
	t.Helper()
	avro, err := schema.ParseString(`{"type":"record","name":"t_record","namespace":"hoodie.t","fields":[{"name":"v","type":"int"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	avro = schema.WithMeta(avro)
	columns, err := avro.Arrow()
	if err != nil {
		t.Fatal(err)
	}
	for f := range files {
		partition := []string{"", "p=1", "p=2/q=ü"}[r.IntN(3)]
		id := fmt.Sprintf("%08d-0000-0000-0000-00000000000%d-0", f, f%10)
		name := storage.Join(partition, id+"_0-1-1_20240101000000000.parquet")
		b := array.NewRecordBuilder(memory.DefaultAllocator, columns)
		var keys []string
		for range r.IntN(300) {
			keys = append(keys, randomKey(r))
		}
		if r.IntN(2) == 0 {
			slices.Sort(keys)
		}
		for i, k := range keys {
			for c, v := range []string{"20240101000000000", fmt.Sprint(i), k, partition, name} {
				b.Field(c).(*array.StringBuilder).Append(v)
			}
			b.Field(5).(*array.Int32Builder).Append(int32(i))
			rows = append(rows, stored{asked{k, partition}, f, int64(i)})
		}
		o := basefile.WriterOptions{Schema: avro, Bloom: filter, Codec: "snappy", PageBytes: 500, RowGroupBytes: int64(2000 + r.IntN(20000))}
		w, err := basefile.Create(context.Background(), store, name, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(b.NewRecordBatch()); err != nil {
			t.Fatal(err)
		}
		info, _, err := w.Close()
		if err != nil {
			t.Fatal(err)
		}
		parsed, ok := filegroup.ParseBaseName(name[strings.LastIndexByte(name, '/')+1:])
		if !ok {
			t.Fatal(name)
		}
		all = append(all, filegroup.Slice{Partition: partition, FileID: id, Instant: parsed.Instant, Base: &filegroup.BaseFile{BaseName: parsed, Name: name, Size: info.Size}})
	}
	all = append(all, filegroup.Slice{Partition: "p=1", FileID: "00000099-0000-0000-0000-000000000000-0", Instant: "20240101000000001"}) // logs alone
	return all, rows
}

// randomKey is of a small space, so that keys repeat, with characters on which the orders of Java and of bytes differ.
func randomKey(r *rand.Rand) string {
	return []string{"key-", "", "ключ", "\U0001f600", "\ue001"}[r.IntN(40)/9] + fmt.Sprintf("%04d", r.IntN(2000))
}

// Every index agrees with looking through all rows of the table, whatever is asked for: keys once and twice, present and absent, in
// slices of arrays, with partitions as text and as dictionary.
func TestAgainstModel(t *testing.T) {
	ctx := context.Background()
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 5))
		store := mem.New("table")
		filter := &basefile.BloomOptions{Kind: bloom.Kind(seed % 2), Entries: 50, FPP: 0.05, Limit: 150}
		if seed == 3 {
			filter = basefile.DefaultBloom()
		}
		all, rows := randomTable(t, r, store, 1+r.IntN(8), filter)
		var keys []asked
		for range r.IntN(600) {
			k := asked{randomKey(r), []string{"", "p=1", "p=2/q=ü", "p=3"}[r.IntN(4)]}
			if seed%3 == 0 && hasHigh(k.key) {
				k.key = "x" + k.key[len(k.key)-4:]
			}
			keys = append(keys, k)
		}
		batch := batchOf(append([]asked{{"in front", ""}}, keys...)).NewSlice(1, int64(len(keys)+1))
		if seed%2 == 1 {
			batch = withDictionary(batch)
		}
		for _, o := range []index.Options{{Kind: index.Simple}, {Kind: index.Bloom}, {Kind: index.Bloom, NoRanges: true, Parallel: 1}, {Kind: index.GlobalSimple}, {Kind: index.GlobalBloom, Memory: 1}} {
			tags, err := index.Lookup(ctx, store, all, batch, o)
			if err != nil {
				t.Fatal(err)
			}
			var got, want []string
			for i := range tags.Len() {
				got = append(got, fmt.Sprint(tags.Key[i], tags.Slice[i], tags.Row[i]))
			}
			for i, k := range keys {
				for _, s := range rows {
					if s.key == k.key && (o.Kind.Global() || s.partition == k.partition) {
						want = append(want, fmt.Sprint(i, s.slice, s.row))
					}
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, %v: %d entries, want %d", seed, o.Kind, len(got), len(want))
			}
			if st := tags.Stats; st.ByRange+st.ByFilter+st.Read > st.Files || o.Kind == index.Simple && st.Read != st.Files {
				t.Errorf("%v: %+v", o.Kind, st)
			}
		}
	}
}

func hasHigh(s string) bool { return strings.ContainsAny(s, "\U0001f600\ue001") }

func withDictionary(b arrow.RecordBatch) arrow.RecordBatch {
	d := array.NewDictionaryBuilder(memory.DefaultAllocator, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}).(*array.BinaryDictionaryBuilder)
	p := b.Column(1).(*array.String)
	for i := range p.Len() {
		if err := d.AppendString(p.Value(i)); err != nil {
			panic(err)
		}
	}
	return twoColumns(b.Column(0), d.NewDictionaryArray())
}

// Key ranges and filters keep files closed: of a hundred files with keys in order, a batch of recent keys reads the last alone, and keys
// that are nowhere read none.
func TestFilesThatAreNotRead(t *testing.T) {
	ctx := context.Background()
	store, all := orderedTable(t, 20, 500)
	ask := func(kind index.Kind, format string, from, to int) index.Stats {
		var keys []asked
		for i := from; i < to; i++ {
			keys = append(keys, asked{fmt.Sprintf(format, i), ""})
		}
		tags, err := index.Lookup(ctx, store, all, batchOf(keys), index.Options{Kind: kind})
		if err != nil {
			t.Fatal(err)
		}
		return tags.Stats
	}
	if got := ask(index.Bloom, "key-%08d", 9900, 10100); got != (index.Stats{Files: 20, ByRange: 19, Read: 1, Rows: got.Rows}) || got.Rows > 500 {
		t.Errorf("%+v", got)
	}
	if got := ask(index.Bloom, "key-%08d-", 0, 9000); got.Read != 0 || got.ByRange+got.ByFilter != 20 || got.ByFilter < 18 {
		t.Errorf("%+v", got)
	}
	if got := ask(index.GlobalSimple, "key-%08d", 0, 1); got.Rows >= 20*500/2 { // row groups and pages are skipped by their statistics
		t.Errorf("%+v", got)
	}
}

// orderedTable has files of n keys each, in order over all files.
func orderedTable(t testing.TB, files, n int) (storage.Store, []filegroup.Slice) {
	t.Helper()
	store, err := local.New(t.TempDir(), local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	avro := schema.WithMeta(&schema.Type{Kind: schema.Record, Name: "hoodie.t.t_record", Fields: []schema.Field{{Name: "v", Type: &schema.Type{Kind: schema.Int}}}})
	columns, err := avro.Arrow()
	if err != nil {
		t.Fatal(err)
	}
	var all []filegroup.Slice
	for f := range files {
		b := array.NewRecordBuilder(memory.DefaultAllocator, columns)
		id := fmt.Sprintf("%08d-0000-0000-0000-000000000000-0", f)
		name := id + "_0-1-1_20240101000000000.parquet"
		for i := range n {
			for c, v := range []string{"20240101000000000", "s", fmt.Sprintf("key-%08d", f*n+i), "", name} {
				b.Field(c).(*array.StringBuilder).Append(v)
			}
			b.Field(5).(*array.Int32Builder).Append(int32(i))
		}
		w, err := basefile.Create(context.Background(), store, name, basefile.WriterOptions{Schema: avro, Bloom: basefile.DefaultBloom(), Codec: "snappy", PageBytes: 64 << 10})
		if err != nil {
			t.Fatal(err)
		}
		batch := b.NewRecordBatch()
		if err := w.Write(batch); err != nil {
			t.Fatal(err)
		}
		batch.Release()
		if _, _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		parsed, _ := filegroup.ParseBaseName(name)
		all = append(all, filegroup.Slice{FileID: id, Instant: parsed.Instant, Base: &filegroup.BaseFile{BaseName: parsed, Name: name}})
	}
	return store, all
}

// A table without meta fields has its keys in its own columns.
func TestVirtualKeys(t *testing.T) {
	ctx := context.Background()
	for _, name := range fixture.SparkNames(t, "cow_no_meta_fields*") {
		dir, e := fixture.Spark(t, name)
		store, cfg, all := tableOf(ctx, t, dir)
		avro, err := schema.Parse(e.Schema)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := avro.Arrow()
		if err != nil {
			t.Fatal(err)
		}
		k, err := keygen.New(keygen.Options{Table: keygen.PropertiesOf(cfg), Schema: avro})
		if err != nil {
			t.Fatal(err)
		}
		var keys []asked
		for _, r := range e.Snapshot.Rows {
			keys = append(keys, asked{fmt.Sprint(r["id"]), "dt=" + r["dt"].(string)})
		}
		tags, err := index.Lookup(ctx, store, all, batchOf(append(keys, asked{"77", "dt=x"})), index.Options{Kind: index.Simple, Virtual: k, Table: columns})
		if err != nil {
			t.Fatal(err)
		}
		if tags.Len() != len(keys) || len(keys) == 0 {
			t.Errorf("%s: %d of %d keys found", name, tags.Len(), len(keys))
		}
		for i := range tags.Len() {
			if got := all[tags.Slice[i]].Partition; int(tags.Key[i]) != i || got != keys[i].partition {
				t.Errorf("%s: %v found in %s", name, keys[i], got)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	ctx := context.Background()
	store, all := orderedTable(t, 1, 10)
	b := array.NewStringBuilder(memory.DefaultAllocator)
	b.Append("a")
	b.AppendNull()
	nulls := b.NewArray()
	b.AppendValues([]string{"a", "b"}, nil)
	good := b.NewArray()
	for want, batch := range map[string]arrow.RecordBatch{"no record key": twoColumns(nulls, good), "null": twoColumns(good, nulls)} {
		if _, err := index.Lookup(ctx, store, all, batch, index.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if tags, err := index.Lookup(ctx, store, all, batchOf(nil), index.Options{}); err != nil || tags.Len() != 0 {
		t.Error(tags, err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := index.Lookup(cancelled, store, all, twoColumns(good, good), index.Options{Kind: index.GlobalSimple}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	missing := slices.Clone(all)
	missing[0].Base = &filegroup.BaseFile{Name: "gone.parquet"}
	if _, err := index.Lookup(ctx, store, missing, twoColumns(good, good), index.Options{Kind: index.GlobalSimple}); !errors.Is(err, storage.ErrNotExist) {
		t.Error(err)
	}
	props := config.NewProperties()
	var o index.Options
	if err := o.Set(props); err != nil || o.Kind != index.Simple || o.NoRanges {
		t.Error(o, err)
	}
	props.Set("hoodie.index.type", "global_bloom")
	props.Set("hoodie.bloom.index.prune.by.ranges", "false")
	if err := o.Set(props); err != nil || o.Kind != index.GlobalBloom || !o.NoRanges {
		t.Error(o, err)
	}
	props.Set("hoodie.index.type", "RECORD_INDEX")
	if err := o.Set(props); !errors.Is(err, config.ErrUnsupported) {
		t.Error(err)
	}
}

func BenchmarkLookup(b *testing.B) {
	const files, each = 20, 50000
	store, all := orderedTable(b, files, each)
	r := rand.New(rand.NewPCG(1, 1))
	recent, uniform := make([]asked, 10000), make([]asked, 100000)
	for i := range recent {
		recent[i] = asked{fmt.Sprintf("key-%08d", files*each-20000+i*3), ""}
	}
	for i := range uniform {
		uniform[i] = asked{fmt.Sprintf("key-%08d", r.IntN(files*each)), ""}
	}
	for _, c := range []struct {
		name string
		keys []asked
		kind index.Kind
	}{{"bloom/recent", recent, index.Bloom}, {"bloom/uniform", uniform, index.Bloom}, {"simple/uniform", uniform, index.Simple}} {
		batch := batchOf(c.keys)
		b.Run(c.name, func(b *testing.B) {
			rows := int64(0)
			for range b.N {
				tags, err := index.Lookup(context.Background(), store, all, batch, index.Options{Kind: c.kind})
				if err != nil {
					b.Fatal(err)
				}
				rows = tags.Stats.Rows
			}
			b.ReportMetric(float64(len(c.keys))*float64(b.N)/b.Elapsed().Seconds(), "lookups/s")
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "stored-keys/s")
		})
	}
}
