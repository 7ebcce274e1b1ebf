package basefile_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/scalar"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	pq "github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/predicate"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/local"
	"github.com/sluicelake/sluice/storage/mem"
)

// ids scans one int column beside the position of each row.
func ids(t *testing.T, f basefile.File, o basefile.ScanOptions, column string) (values, positions []int64) {
	t.Helper()
	for b, err := range f.ScanRows(context.Background(), o) {
		if err != nil {
			t.Fatal(err)
		}
		at := b.Schema().FieldIndices(column)
		for i := range int(b.NumRows()) {
			switch c := b.Column(at[0]).(type) {
			case *array.Int64:
				values = append(values, c.Value(i))
			case *array.Int32:
				values = append(values, int64(c.Value(i)))
			}
			positions = append(positions, b.FirstRow+int64(i))
		}
		b.Release()
	}
	return values, positions
}

// A filter leaves out row groups and pages of a file that Apache Hudi wrote with small ones; what it reads are whole rows at
// their right positions, and all rows that pass are among them.
func TestFilterSkipsRowGroupsAndPages(t *testing.T) {
	dir, e := fixture.Spark(t, "cow_row_groups_1.2.0")
	store, err := local.New(dir, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	names := newest(t, dir, e.Instants)
	f, err := basefile.Open(context.Background(), store, names[0], basefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if len(f.RowGroups()) < 2 {
		t.Fatalf("%d row groups", len(f.RowGroups()))
	}
	all, positions := ids(t, f, basefile.ScanOptions{}, "id")
	if len(all) != e.Snapshot.Count || positions[len(positions)-1] != f.Rows()-1 {
		t.Fatal(len(all))
	}
	for _, filter := range []string{"id = 777", "id between 300 and 310", "id > 1490 or id < 3", "_hoodie_record_key = '42'", "not (id <> 5)", "v like 'cfcd208495d%'", "id in (1, 1000)"} {
		expr, err := predicate.Parse(filter)
		if err != nil {
			t.Fatal(err)
		}
		got, at := ids(t, f, basefile.ScanOptions{Filter: expr}, "id")
		for i, p := range at {
			if all[p] != got[i] {
				t.Fatalf("%s: row at %d is %d, not %d", filter, p, got[i], all[p])
			}
		}
		exact := 0
		for b, err := range f.Scan(context.Background(), basefile.ScanOptions{Filter: expr, Exact: true, Columns: arrow.NewSchema([]arrow.Field{{Name: "ts", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)}) {
			if err != nil {
				t.Fatal(err)
			}
			if b.NumCols() != 1 {
				t.Errorf("%s: %d columns", filter, b.NumCols())
			}
			exact += int(b.NumRows())
			b.Release()
		}
		want := map[string]int{"id = 777": 1, "id between 300 and 310": 11, "id > 1490 or id < 3": 12, "_hoodie_record_key = '42'": 1, "not (id <> 5)": 1, "v like 'cfcd208495d%'": 1, "id in (1, 1000)": 2}[filter]
		if exact != want {
			t.Errorf("%s: %d rows pass, want %d", filter, exact, want)
		}
		t.Logf("%s: %d of %d rows read", filter, len(got), len(all))
	}
}

// Pages are skipped inside one large row group, for nested columns too, and rows stay whole.
func TestFilterSkipsPages(t *testing.T) {
	n := 20000
	id, name := make([]int64, n), make([]parquet.ByteArray, n)
	var list chunk
	var elements []int32
	for i := range n {
		id[i], name[i] = int64(i), parquet.ByteArray(fmt.Sprintf("name-%06d", i))
		for j := range i % 3 {
			elements = append(elements, int32(i))
			list.defs, list.reps = append(list.defs, 1), append(list.reps, int16(min(j, 1)))
		}
		if i%3 == 0 {
			list.defs, list.reps = append(list.defs, 0), append(list.reps, 0)
		}
	}
	list.values = elements
	props := parquet.NewWriterProperties(parquet.WithPageIndexEnabled(true), parquet.WithDataPageSize(8000), parquet.WithBatchSize(200), parquet.WithDictionaryDefault(false), parquet.WithDataPageVersion(parquet.DataPageV2))
	data := write(t, props, []pq.Node{leaf("id", required, parquet.Types.Int64, nil, 0), leaf("name", required, parquet.Types.ByteArray, pq.StringLogicalType{}, -1), leaf("l", repeated, parquet.Types.Int32, nil, 0)},
		chunk{id, nil, nil}, chunk{name, nil, nil}, list)
	f, err := basefile.OpenBytes(context.Background(), "f.parquet", data, basefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, filter := range []string{"id = 15000", "id > 3000 and id < 3010 or name = 'name-019999'", "id < 10"} {
		expr, err := predicate.Parse(filter)
		if err != nil {
			t.Fatal(err)
		}
		read := 0
		for b, err := range f.ScanRows(context.Background(), basefile.ScanOptions{Filter: expr}) {
			if err != nil {
				t.Fatal(err)
			}
			lists := b.Column(2).(*array.List)
			for i := range int(b.NumRows()) {
				row := b.FirstRow + int64(i)
				from, to := lists.ValueOffsets(i)
				ok := b.Column(0).(*array.Int64).Value(i) == row && b.Column(1).(*array.String).Value(i) == fmt.Sprintf("name-%06d", row) && to-from == row%3
				for j := from; j < to; j++ {
					ok = ok && int64(lists.ListValues().(*array.Int32).Value(int(j))) == row
				}
				if !ok {
					t.Fatalf("%s: row %d is not whole", filter, row)
				}
				read++
			}
			b.Release()
		}
		if read == 0 || read > n/4 {
			t.Errorf("%s: %d of %d rows were read", filter, read, n)
		}
	}
}

// C079: v is an int in this file and a double in the table; statistics become doubles before they decide.
func TestFilterOverWidenedColumn(t *testing.T) {
	data := write(t, parquet.NewWriterProperties(), []pq.Node{leaf("v", optional, parquet.Types.Int32, nil, 0)}, chunk{[]int32{30, 31}, []int16{1, 1}, nil})
	o := basefile.ScanOptions{Columns: arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.PrimitiveTypes.Float64, Nullable: true}}, nil), Exact: true}
	for filter, want := range map[string]string{"v > 30.5": `{"v":31}`, "v >= 31": `{"v":31}`, "v > 31": "", "v < 30": "", "v is null": "", "v <= 30": `{"v":30}`} {
		o.Filter, _ = predicate.Parse(filter)
		got, err := lines(t, data, o, basefile.Options{})
		if err != nil || got != want {
			t.Errorf("%s: %q %v, want %q", filter, got, err, want)
		}
	}
}

// Partition values from the path take the place of columns, and decide about the whole file before it is read.
func TestConstants(t *testing.T) {
	data := write(t, parquet.NewWriterProperties(), []pq.Node{leaf("id", required, parquet.Types.Int32, nil, 0), leaf("dt", optional, parquet.Types.ByteArray, pq.StringLogicalType{}, -1)},
		chunk{[]int32{1, 2}, nil, nil}, chunk{texts("in file", "in file"), []int16{1, 1}, nil})
	s := arrow.NewSchema([]arrow.Field{{Name: "dt", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "id", Type: arrow.PrimitiveTypes.Int32}, {Name: "p", Type: arrow.FixedWidthTypes.Date32, Nullable: true}}, nil)
	o := basefile.ScanOptions{Columns: s, Constants: map[string]scalar.Scalar{"dt": scalar.NewStringScalar("path"), "p": scalar.MakeNullScalar(arrow.FixedWidthTypes.Date32)}}
	check(t, data, o, `{"dt":"path","id":1,"p":null}`+"\n"+`{"dt":"path","id":2,"p":null}`)
	o.Filter = predicate.Eq("dt", "in file")
	check(t, data, o, "")
	o.Filter = predicate.And(predicate.Eq("dt", "path"), predicate.IsNull("p"))
	check(t, data, o, `{"dt":"path","id":1,"p":null}`+"\n"+`{"dt":"path","id":2,"p":null}`)
}

// A scan of no columns counts rows without reading any.
func TestNoColumns(t *testing.T) {
	f, err := basefile.OpenBytes(context.Background(), "f.parquet", smallFile(t), basefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	for b, err := range f.Scan(context.Background(), basefile.ScanOptions{Columns: arrow.NewSchema(nil, nil)}) {
		if err != nil {
			t.Fatal(err)
		}
		n += b.NumRows()
		b.Release()
	}
	if n != 3 {
		t.Error(n)
	}
}

// Two columns of one name are an error when that name is asked for, and only then.
func TestColumnNames(t *testing.T) {
	i32 := parquet.Types.Int32
	data := write(t, parquet.NewWriterProperties(), []pq.Node{leaf("A", required, i32, nil, 0), leaf("a", required, i32, nil, 0), leaf("B", required, i32, nil, 0), leaf("Cc", required, i32, nil, 0), leaf("cC", required, i32, nil, 0)},
		chunk{[]int32{1}, nil, nil}, chunk{[]int32{2}, nil, nil}, chunk{[]int32{3}, nil, nil}, chunk{[]int32{4}, nil, nil}, chunk{[]int32{5}, nil, nil})
	want := func(names ...string) basefile.ScanOptions {
		var fields []arrow.Field
		for _, n := range names {
			fields = append(fields, arrow.Field{Name: n, Type: arrow.PrimitiveTypes.Int32, Nullable: true})
		}
		return basefile.ScanOptions{Columns: arrow.NewSchema(fields, nil)}
	}
	check(t, data, want("a", "b", "A"), `{"a":2,"b":3,"A":1}`)
	if _, err := lines(t, data, want("cc"), basefile.Options{}); err == nil || !strings.Contains(err.Error(), "differ") {
		t.Error(err)
	}
}

// An empty file, with no row group at all, has its schema and no rows.
func TestNoRowGroups(t *testing.T) {
	var out bytes.Buffer
	root := pq.MustGroup(pq.NewGroupNode("t", parquet.Repetitions.Required, []pq.Node{leaf("id", required, parquet.Types.Int32, nil, 0)}, -1))
	w := newWriter(&out, root)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := basefile.OpenBytes(context.Background(), "f.parquet", out.Bytes(), basefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f.Rows() != 0 || len(f.RowGroups()) != 0 || f.Schema().NumFields() != 1 {
		t.Error(f.Rows(), f.RowGroups(), f.Schema())
	}
	check(t, out.Bytes(), basefile.ScanOptions{}, "")
}

// The footer of a file that Apache Hudi wrote: its Avro schema, bloom filter and key range.
func TestFooterOfApacheHudi(t *testing.T) {
	dir, e := fixture.Spark(t, "cow_bloom_dynamic_1.2.0")
	store, err := local.New(dir, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := basefile.Open(context.Background(), store, newest(t, dir, e.Instants)[0], basefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	kv := f.KeyValue()
	if kv["hoodie_bloom_filter_type_code"] != "DYNAMIC_V0" || kv["hoodie_min_record_key"] > kv["hoodie_max_record_key"] || len(kv["org.apache.hudi.bloomfilter"]) < 1000 {
		t.Errorf("%q %q %q", kv["hoodie_bloom_filter_type_code"], kv["hoodie_min_record_key"], kv["hoodie_max_record_key"])
	}
	avro, err := f.AvroSchema()
	if err != nil {
		t.Fatal(err)
	}
	table, _ := tableSchema(t, e)
	if avro.String() != table.String() {
		t.Errorf("%s\nwant\n%s", avro, table)
	}
}

// remote is a store that looks like an object store and counts requests.
type remote struct {
	storage.Store
	reads atomic.Int64
}

type remoteObject struct {
	storage.Object
	r *remote
}

func (r *remote) Traits() storage.Traits { return storage.Traits{} }
func (r *remote) Open(ctx context.Context, name string) (storage.Object, error) {
	o, err := r.Store.Open(ctx, name)
	return remoteObject{o, r}, err
}
func (o remoteObject) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	o.r.reads.Add(1)
	return o.Object.ReadAt(ctx, p, off)
}

// From an object store a file costs one request for its end and few for each row group, however many columns and pages.
func TestRemoteRequests(t *testing.T) {
	store := &remote{Store: mem.New("t")}
	ctx := context.Background()
	data := ordersFile(t, 60000, 30000, compress.Codecs.Snappy)
	if _, err := store.Put(ctx, "f.parquet", bytes.NewReader(data), storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	f, err := basefile.Open(ctx, store, "f.parquet", basefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, _ := ids(t, f, basefile.ScanOptions{Columns: pick(ordersSchema(), schema.RecordKey, "id", "note")}, "id"); len(got) != 60000 {
		t.Error(len(got))
	}
	if n := store.reads.Load(); n > 8 {
		t.Errorf("%d requests", n)
	}
}
