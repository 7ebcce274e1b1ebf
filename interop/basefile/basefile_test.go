//go:build interop

// Package basefile_test gives base files that Sluice wrote to Apache Hudi as its own: read, updated, deleted from, compacted, and
// rewritten by Sluice again.
package basefile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/bloom"
	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/encode"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/index"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/interop/rows"
	"github.com/sluicelake/sluice/interop/spark"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/local"
)

// columns are of every type that Spark can write to a table, nested in every way. A list of decimals is left out: Apache Hudi names
// the Avro type of its element after the Parquet field, as that of a list of structs, and fails on its own files that have both.
func columns(nulls bool) *arrow.Schema {
	text, integer := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32
	list := func(dt arrow.DataType) arrow.DataType {
		return arrow.ListOfField(arrow.Field{Name: "element", Type: dt, Nullable: true})
	}
	structure := func(pairs ...any) arrow.DataType {
		var fields []arrow.Field
		for i := 0; i < len(pairs); i += 2 {
			fields = append(fields, arrow.Field{Name: pairs[i].(string), Type: pairs[i+1].(arrow.DataType), Nullable: true})
		}
		return arrow.StructOf(fields...)
	}
	var fields []arrow.Field
	for _, m := range schema.MetaColumns {
		fields = append(fields, arrow.Field{Name: m, Type: text, Nullable: true})
	}
	add := func(name string, dt arrow.DataType) {
		fields = append(fields, arrow.Field{Name: name, Type: dt, Nullable: true})
	}
	add("id", text)
	add("v", arrow.PrimitiveTypes.Int64)
	add("c_bool", arrow.FixedWidthTypes.Boolean)
	add("c_int", integer)
	add("c_float", arrow.PrimitiveTypes.Float32)
	add("c_double", arrow.PrimitiveTypes.Float64)
	add("c_dec", &arrow.Decimal128Type{Precision: 10, Scale: 2})
	add("c_dec38", &arrow.Decimal128Type{Precision: 38, Scale: 18})
	add("c_date", arrow.FixedWidthTypes.Date32)
	add("c_ts", &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"})
	add("c_str", text)
	add("c_bin", arrow.BinaryTypes.Binary)
	add("c_arr", list(integer))
	add("c_arr_arr", list(list(text)))
	add("c_map", arrow.MapOf(text, arrow.PrimitiveTypes.Int64))
	add("c_struct", structure("a", integer, "b", text))
	if nulls {
		add("c_arr_one", list(structure("x", integer))) // a list of structs of one field: two-level readers take it for something else
	}
	add("c_arr_struct", list(structure("x", integer, "y", list(text))))
	add("c_map_struct", arrow.MapOf(text, structure("p", arrow.PrimitiveTypes.Float64, "q", list(text))))
	add("c_deep", structure("n1", structure("n2", list(arrow.MapOf(text, integer)))))
	return arrow.NewSchema(fields, nil)
}

// userRows are rows in JSON, without meta columns: extremes, nulls at every place, empty and null lists.
var userRows = []string{
	`{"id":"a","v":1,"c_bool":true,"c_int":-2147483648,"c_float":1.5,"c_double":-0.1,"c_dec":"-12345678.90","c_dec38":"12345678901234567890.123456789012345678","c_date":"1969-12-31","c_ts":"1969-12-31T23:59:59.999999Z","c_str":"ключ 😀","c_bin":"AAH/","c_arr":[1,null,3],"c_arr_arr":[["x",null],null,[]],"c_map":[{"key":"k","value":1},{"key":"n","value":null}],"c_struct":{"a":1,"b":null},"c_arr_one":[{"x":1},null,{"x":null}],"c_arr_struct":[{"x":1,"y":["p",null]},null,{"x":null,"y":null}],"c_map_struct":[{"key":"m","value":{"p":0.5,"q":["1.5",null]}},{"key":"z","value":null}],"c_deep":{"n1":{"n2":[[{"key":"d","value":7}],null,[]]}}}`,
	`{"id":"b","v":2,"c_arr":[],"c_arr_arr":[],"c_map":[],"c_struct":{"a":null,"b":null},"c_arr_one":[],"c_arr_struct":[],"c_map_struct":[],"c_deep":{"n1":null}}`,
	`{"id":"c","v":3}`,
	`{"id":"d","v":4,"c_bool":false,"c_int":2147483647,"c_float":-0.25,"c_double":1e300,"c_dec":"0.01","c_dec38":"-0.000000000000000001","c_date":"9999-12-31","c_ts":"2024-02-29T12:34:56.000001Z","c_str":"","c_bin":"","c_arr":[null],"c_arr_arr":[[null]],"c_map":[{"key":"","value":-9223372036854775808}],"c_struct":{"a":-1,"b":""},"c_arr_one":[null],"c_arr_struct":[{"x":2,"y":[]}],"c_map_struct":[{"key":"e","value":{"p":null,"q":null}}],"c_deep":{"n1":{"n2":[]}}}`,
	`{"id":"e\ue000","v":5,"c_arr":[5],"c_arr_one":[{"x":5}],"c_deep":{"n1":{"n2":[[{"key":"x","value":null}]]}}}`,
	`{"id":"e😀","v":6,"c_arr":[6,7],"c_struct":{"a":6,"b":"six"}}`,
}

// plainRows have no null elements in lists, which Apache Hudi's default, lists of two levels, can't write.
var plainRows = []string{
	`{"id":"a","v":1,"c_bool":true,"c_int":5,"c_float":1.5,"c_double":-0.1,"c_dec":"-12345678.90","c_dec38":"12345678901234567890.123456789012345678","c_date":"1969-12-31","c_ts":"1969-12-31T23:59:59.999999Z","c_str":"ключ","c_bin":"AAH/","c_arr":[1,3],"c_arr_arr":[["x"],[]],"c_map":[{"key":"k","value":1},{"key":"n","value":null}],"c_struct":{"a":1,"b":null},"c_arr_struct":[{"x":1,"y":["p"]},{"x":null,"y":null}],"c_map_struct":[{"key":"m","value":{"p":0.5,"q":["1"]}},{"key":"z","value":null}],"c_deep":{"n1":{"n2":[[{"key":"d","value":7}],[]]}}}`,
	`{"id":"b","v":2,"c_arr":[],"c_arr_arr":[],"c_map":[],"c_struct":{"a":null,"b":null},"c_arr_struct":[],"c_map_struct":[],"c_deep":{"n1":null}}`,
	`{"id":"c","v":3}`,
	`{"id":"e\ue000","v":5,"c_arr":[5],"c_arr_struct":[{"x":5,"y":[]}],"c_deep":{"n1":{"n2":[[{"key":"x","value":null}]]}}}`,
	`{"id":"e😀","v":6,"c_arr":[6,7],"c_struct":{"a":6,"b":"six"}}`,
}

// table is a table whose files and timeline are made by hand.
type table struct {
	t     *testing.T
	name  string
	dir   string
	store storage.Store
	avro  *schema.Type
	arrow *arrow.Schema
	mor   bool
}

func newTable(t *testing.T, mor, nulls bool) *table {
	t.Helper()
	k := &table{t: t, name: "handmade", dir: filepath.Join(t.TempDir(), "handmade"), mor: mor, arrow: columns(nulls)}
	if err := os.Mkdir(k.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	if k.store, err = local.New(k.dir, local.Options{}); err != nil {
		t.Fatal(err)
	}
	if k.avro, err = schema.FromArrow(k.arrow, "hoodie.handmade.handmade_record"); err != nil {
		t.Fatal(err)
	}
	typ := "COPY_ON_WRITE"
	if mor {
		typ = "MERGE_ON_READ"
	}
	props := config.NewProperties()
	for _, kv := range [][2]string{
		{"hoodie.table.name", k.name}, {"hoodie.table.type", typ}, {"hoodie.table.version", "6"}, {"hoodie.timeline.layout.version", "1"},
		{"hoodie.table.recordkey.fields", "id"}, {"hoodie.table.precombine.field", "v"}, {"hoodie.table.keygenerator.class", "org.apache.hudi.keygen.NonpartitionedKeyGenerator"},
		{"hoodie.table.base.file.format", "PARQUET"}, {"hoodie.archivelog.folder", "archived"}, {"hoodie.table.timeline.timezone", "UTC"},
		{"hoodie.datasource.write.hive_style_partitioning", "false"}, {"hoodie.datasource.write.partitionpath.urlencode", "false"}, {"hoodie.datasource.write.drop.partition.columns", "false"},
		{"hoodie.table.create.schema", schema.WithoutMeta(k.avro).String()},
	} {
		props.Set(kv[0], kv[1])
	}
	if mor { // which 0.15.0 does not compact without
		props.Set("hoodie.compaction.payload.class", "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload")
	}
	if _, err := config.Create(t.Context(), k.store, props); err != nil {
		t.Fatal(err)
	}
	k.put(".hoodie_partition_metadata", "#partition metadata\n#Mon Jan 01 00:00:00 UTC 2024\ncommitTime=20240101000000000\npartitionDepth=0\n")
	return k
}

func (k *table) put(name, body string) {
	k.t.Helper()
	if _, err := k.store.Put(k.t.Context(), name, strings.NewReader(body), storage.PutOptions{}); err != nil {
		k.t.Fatal(err)
	}
}

// batch gives rows with meta columns.
func (k *table) batch(instant, file string, user ...string) arrow.RecordBatch {
	k.t.Helper()
	var b strings.Builder
	for i, row := range user {
		var id struct{ ID string }
		if err := json.Unmarshal([]byte(row), &id); err != nil {
			k.t.Fatal(err)
		}
		key, err := json.Marshal(id.ID)
		if err != nil {
			k.t.Fatal(err)
		}
		fmt.Fprintf(&b, `{"_hoodie_commit_time":%q,"_hoodie_commit_seqno":"%s_0_%d","_hoodie_record_key":%s,"_hoodie_partition_path":"","_hoodie_file_name":%q,%s`+"\n", instant, instant, i, key, file, row[1:])
	}
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, k.arrow, strings.NewReader(b.String()), array.WithMultipleDocs())
	if err != nil {
		k.t.Fatal(err)
	}
	return rec
}

func (k *table) options() basefile.WriterOptions {
	return basefile.WriterOptions{Schema: k.avro, Bloom: basefile.DefaultBloom()}
}

// insert makes a commit of one new file.
func (k *table) insert(instant, fileID string, user ...string) {
	k.t.Helper()
	name := fileID + "_0-1-1_" + instant + ".parquet"
	w, err := basefile.Create(k.t.Context(), k.store, name, k.options())
	if err != nil {
		k.t.Fatal(err)
	}
	defer w.Abort()
	if err := w.Write(k.batch(instant, name, user...)); err != nil {
		k.t.Fatal(err)
	}
	info, sum, err := w.Close()
	if err != nil {
		k.t.Fatal(err)
	}
	k.commit(instant, timeline.WriteStat{FileID: fileID, Path: name, PrevCommit: "null", NumWrites: sum.Rows, NumInserts: sum.Rows, TotalWriteBytes: info.Size, FileSizeInBytes: info.Size})
}

func (k *table) commit(instant string, stats ...timeline.WriteStat) {
	action, inflight := "commit", "inflight"
	if k.mor {
		action, inflight = "deltacommit", "deltacommit.inflight"
	}
	k.put(".hoodie/"+instant+"."+action+".requested", "")
	k.put(".hoodie/"+instant+"."+inflight, "")
	body := timeline.EncodeCommitJSON(&timeline.CommitMetadata{PartitionToWriteStats: map[string][]timeline.WriteStat{"": stats}, OperationType: "UPSERT",
		ExtraMetadata: map[string]string{"schema": schema.WithoutMeta(k.avro).String()}})
	k.put(".hoodie/"+instant+"."+action, string(body))
}

// slices are the newest slices, and the instant of the newest commit.
func (k *table) slices() (all []filegroup.Slice, at string) {
	k.t.Helper()
	ctx := k.t.Context()
	cfg, err := config.Load(ctx, k.store)
	if err != nil {
		k.t.Fatal(err)
	}
	tl, err := timeline.Load(ctx, k.store, cfg)
	if err != nil {
		k.t.Fatal(err)
	}
	view, err := filegroup.Open(ctx, k.store, cfg, tl)
	if err != nil {
		k.t.Fatal(err)
	}
	files, err := filegroup.List(ctx, k.store)
	if err != nil {
		k.t.Fatal(err)
	}
	at, _ = view.Latest()
	if all, err = view.Slices(ctx, "", files.In(""), at, filegroup.Snapshot); err != nil {
		k.t.Fatal(err)
	}
	return all, at
}

// ours are the rows of the newest base files, read by Sluice.
func (k *table) ours() []rows.Row {
	k.t.Helper()
	var text []byte
	all, _ := k.slices()
	for _, s := range all {
		f, err := basefile.Open(k.t.Context(), k.store, s.Base.Name, basefile.Options{})
		if err != nil {
			k.t.Fatal(err)
		}
		for b, err := range f.Scan(k.t.Context(), basefile.ScanOptions{Columns: k.arrow, Table: k.avro}) {
			if err != nil {
				k.t.Fatal(err)
			}
			w, err := encode.NewJSON(b.Schema(), encode.Options{})
			if err != nil {
				k.t.Fatal(err)
			}
			text = w.Append(text, b)
			b.Release()
		}
		if err := f.Close(); err != nil {
			k.t.Error(err)
		}
	}
	out, err := rows.Decode(bytes.NewReader(text))
	if err != nil {
		k.t.Fatal(err)
	}
	return out
}

// expect holds what Spark reads against rows.
func (k *table) expect(s *spark.Session, what string, want []rows.Row, ignore ...string) {
	k.t.Helper()
	got, err := s.Read(k.dir, spark.Options{"hoodie.metadata.enable": "false"})
	if err != nil {
		k.t.Fatalf("%s: %v", what, err)
	}
	if d := rows.Diff(rows.Set{Columns: got.Columns, Rows: want}, got, rows.Options{Ignore: ignore}); d != "" {
		k.t.Errorf("%s: %s", what, d)
	}
}

// upsert lets Spark write rows that are made by a query over our own file, which it reads as plain Parquet.
func (k *table) upsert(s *spark.Session, query string, more spark.Options) {
	k.t.Helper()
	o := spark.Options{"hoodie.table.name": k.name, "hoodie.datasource.write.operation": "upsert", "hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.precombine.field": "v",
		"hoodie.datasource.write.partitionpath.field": "", "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator", "hoodie.metadata.enable": "false",
		"hoodie.datasource.write.hive_style_partitioning": "false", "hoodie.datasource.write.table.type": "COPY_ON_WRITE"}
	if k.mor {
		o["hoodie.datasource.write.table.type"] = "MERGE_ON_READ"
	}
	for key, v := range more {
		o[key] = v
	}
	if err := s.Write(k.dir, spark.Write{Query: query, Options: o}); err != nil {
		k.t.Fatal(err)
	}
}

// changed is a SELECT of our file's user columns with another v and c_int.
func (k *table) changed(file, where string) string {
	var names []string
	for _, f := range k.arrow.Fields() {
		switch {
		case schema.IsMeta(f.Name):
		case f.Name == "v":
			names = append(names, "v + 100 as v")
		case f.Name == "c_int":
			names = append(names, "77 as c_int")
		default:
			names = append(names, f.Name)
		}
	}
	return fmt.Sprintf("select %s from parquet.`%s` where %s", strings.Join(names, ", "), filepath.Join(k.dir, file), where)
}

func change(rs []rows.Row, ids ...string) {
	for _, r := range rs {
		if slices.Contains(ids, r["id"].(string)) {
			n, _ := r["v"].(json.Number).Int64()
			r["v"], r["c_int"] = json.Number(fmt.Sprint(n+100)), json.Number("77")
		}
	}
}

const first, second, third = "20240101000000000", "20240102000000000", "20240103000000000"

func id(n int) string { return fmt.Sprintf("%08d-1111-4222-8333-444444444444-0", n) }

// Files of ours are read by Spark with every type and every null, then updated and deleted from by Apache Hudi, through our bloom
// filters and key ranges or by a join of keys, and on merge-on-read compacted; then a file of Apache Hudi is rewritten by us. Rows
// with null elements need the setting of Java's Avro writer that they always need.
func TestApacheHudiTakesOurFiles(t *testing.T) {
	for _, release := range []string{spark.Hudi0, spark.Hudi1} {
		for _, mor := range []bool{false, true} {
			for _, nulls := range []bool{false, true} {
				for _, kind := range []string{"BLOOM", "SIMPLE"} {
					t.Run(fmt.Sprintf("%s/mor=%v/nulls=%v/%s", release, mor, nulls, kind), func(t *testing.T) { oneTable(t, release, mor, nulls, kind) })
				}
			}
		}
	}
}

func oneTable(t *testing.T, release string, mor, nulls bool, kind string) {
	s := spark.Hudi(t, release)
	k := newTable(t, mor, nulls)
	user := plainRows
	if nulls {
		user = userRows
		s.SetHadoop(t, spark.Options{"parquet.avro.write-old-list-structure": "false"})
	}
	k.insert(first, id(1), user...)
	model := k.ours()
	if len(model) != len(user) {
		t.Fatal(len(model))
	}
	k.expect(s, "our file", model)

	with := spark.Options{"hoodie.index.type": kind, "hoodie.parquet.small.file.limit": "104857600"}
	if mor {
		with["hoodie.compact.inline"], with["hoodie.compact.inline.max.delta.commits"] = "true", "1"
	}
	file := id(1) + "_0-1-1_" + first + ".parquet"
	k.upsert(s, k.changed(file, "id in ('a', 'e😀', 'e\ue000')"), with)
	change(model, "a", "e😀", "e\ue000")
	k.expect(s, "after an upsert by Apache Hudi", model, schema.MetaColumns[:]...)
	all, _ := k.slices()
	if len(all) != 1 {
		t.Fatalf("%d file groups: keys were not found where they are", len(all))
	}
	with["hoodie.datasource.write.operation"] = "delete"
	k.upsert(s, k.changed(file, "id = 'b'"), with)
	model = slices.DeleteFunc(model, func(r rows.Row) bool { return r["id"] == "b" })
	k.expect(s, "after a delete by Apache Hudi", model, schema.MetaColumns[:]...)
	if release == spark.Hudi1 {
		return // which has upgraded the table to version 9
	}
	k.rewrite(s, model)
}

// rewrite is a commit of ours over the newest file of Apache Hudi: one row goes, one changes, one comes.
func (k *table) rewrite(s *spark.Session, model []rows.Row) {
	t := k.t
	all, at := k.slices()
	if len(all) != 1 || len(all[0].Logs) > 0 {
		t.Fatalf("%+v", all)
	}
	year := fmt.Sprint(time.Now().Year() + 1)
	instant := year + "0101000000000" // after those of Apache Hudi
	name := all[0].FileID + "_0-9-9_" + instant + ".parquet"
	old, err := basefile.Open(t.Context(), k.store, all[0].Base.Name, basefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	keys := k.keys("a", "c")
	tags, err := index.Lookup(t.Context(), k.store, all, keys, index.Options{Kind: index.Bloom})
	if err != nil || tags.Len() != 2 {
		t.Fatal(tags, err)
	}
	replaced := `{"id":"a","v":500,"c_arr":[null,9]}`
	changes := []basefile.Change{{Rows: tags.Row[:1], Batch: k.batch(instant, "x", replaced)}, {Rows: tags.Row[1:]}}
	if tags.Row[0] > tags.Row[1] {
		slices.Reverse(changes)
	}
	info, sum, err := basefile.Rewrite(t.Context(), old, k.store, name, values(changes), values([]arrow.RecordBatch{k.batch(instant, "x", `{"id":"new","v":9,"c_arr_struct":[null,{"x":1}]}`)}),
		basefile.RewriteOptions{WriterOptions: k.options(), FileName: name, Scan: basefile.ScanOptions{Table: k.avro}})
	if err := errors.Join(err, old.Close()); err != nil {
		t.Fatal(err)
	}
	k.commit(instant, timeline.WriteStat{FileID: all[0].FileID, Path: name, PrevCommit: at, NumWrites: sum.Rows, NumInserts: 1, NumUpdateWrites: 1, NumDeletes: 1, TotalWriteBytes: info.Size, FileSizeInBytes: info.Size})
	k.expect(s, "after a rewrite by us", k.ours())
	got := map[string]bool{}
	for _, r := range k.ours() {
		got[r["id"].(string)] = true
		if r[schema.FileName] != name {
			t.Errorf("file name %v", r[schema.FileName])
		}
	}
	if len(got) != len(model) || got["c"] || !got["new"] {
		t.Errorf("%v", got)
	}
}

func values[T any](all []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range all {
			if !yield(v, nil) {
				return
			}
		}
	}
}

func (k *table) keys(ids ...string) arrow.RecordBatch {
	a, b := array.NewStringBuilder(memory.DefaultAllocator), array.NewStringBuilder(memory.DefaultAllocator)
	for _, id := range ids {
		a.Append(id)
		b.Append("")
	}
	s := arrow.NewSchema([]arrow.Field{{Name: "key", Type: arrow.BinaryTypes.String}, {Name: "partition", Type: arrow.BinaryTypes.String}}, nil)
	return array.NewRecordBatch(s, []arrow.Array{a.NewArray(), b.NewArray()}, int64(len(ids)))
}

// A key that is stored several times, within a file and across files, is updated by Apache Hudi in every file that our lookup names, and
// in no other.
func TestEveryCopyIsTagged(t *testing.T) {
	for _, release := range []string{spark.Hudi0, spark.Hudi1} {
		for _, kind := range []index.Kind{index.Bloom, index.Simple, index.GlobalBloom, index.GlobalSimple} {
			t.Run(fmt.Sprintf("%s/%v", release, kind), func(t *testing.T) {
				s := spark.Hudi(t, release)
				k := newTable(t, false, false)
				twin := func(key string, v int) string { return fmt.Sprintf(`{"id":%q,"v":%d,"c_str":"old"}`, key, v) }
				k.insert(first, id(1), twin("a", 1), twin("b", 2), twin("a", 3), twin("c", 4))
				k.insert(second, id(2), twin("d", 5), twin("a", 6))
				k.insert(third, id(3), twin("e", 7), twin("b", 8))
				all, before := k.slices()
				tags, err := index.Lookup(t.Context(), k.store, all, k.keys("a", "nobody"), index.Options{Kind: kind})
				if err != nil {
					t.Fatal(err)
				}
				var named []string
				touched := map[string]bool{}
				for i := range tags.Len() {
					loc := tags.Location(i, all)
					named = append(named, fmt.Sprintf("%s:%d", loc.FileID[:8], loc.Row))
					touched[loc.FileID] = true
				}
				if want := []string{"00000001:0", "00000001:2", "00000002:1"}; !slices.Equal(named, want) {
					t.Fatalf("%v, want %v", named, want)
				}
				model := k.ours()
				k.upsert(s, k.changed(id(2)+"_0-1-1_"+second+".parquet", "id = 'a'"), spark.Options{"hoodie.index.type": kind.String(), "hoodie.parquet.small.file.limit": "0"})
				for _, r := range model {
					// 1.2.0 rewrites a file with the first of the rows of a key replaced, 0.15.0 with all of them, as Sluice does.
					if r["id"] == "a" && (release == spark.Hudi0 || r["v"] != json.Number("3")) {
						r["v"], r["c_int"] = json.Number("106"), json.Number("77")
					}
				}
				k.expect(s, "after an upsert", model, schema.MetaColumns[:]...)
				after, _ := k.slices()
				for _, slice := range after {
					if rewritten := slice.Base.Instant > before; rewritten != touched[slice.FileID] {
						t.Errorf("file group %s rewritten: %v", slice.FileID, rewritten)
					}
				}
			})
		}
	}
}

// The key range of a footer is in the order of Java's strings, whoever writes it: U+1F600 before U+E000. Apache Hudi's own file of
// such keys has the range that ours has.
func TestKeyRangeOfApacheHudi(t *testing.T) {
	for _, release := range []string{spark.Hudi0, spark.Hudi1} {
		t.Run(release, func(t *testing.T) {
			s := spark.Hudi(t, release)
			dir := filepath.Join(t.TempDir(), "ranges")
			err := s.Write(dir, spark.Write{Columns: "id string, v bigint", Rows: [][]any{{"\ue000", 1}, {"😀", 2}, {"z", 3}}, Options: spark.Options{
				"hoodie.table.name": "ranges", "hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.precombine.field": "v", "hoodie.datasource.write.operation": "insert",
				"hoodie.datasource.write.partitionpath.field": "", "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator", "hoodie.metadata.enable": "false"}})
			if err != nil {
				t.Fatal(err)
			}
			store, err := local.New(dir, local.Options{})
			if err != nil {
				t.Fatal(err)
			}
			names, err := filepath.Glob(filepath.Join(dir, "*.parquet"))
			if err != nil || len(names) != 1 {
				t.Fatal(names, err)
			}
			f, err := basefile.Open(context.Background(), store, filepath.Base(names[0]), basefile.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			kv := f.KeyValue()
			if kv[basefile.FooterMinKey] != "z" || kv[basefile.FooterMaxKey] != "\ue000" {
				t.Errorf("from %+q to %+q", kv[basefile.FooterMinKey], kv[basefile.FooterMaxKey])
			}
			if filter, ok, err := bloom.FromFooter(kv); err != nil || !ok || filter.Kind() != bloom.DynamicV0 {
				t.Error(filter, ok, err)
			}
		})
	}
}
