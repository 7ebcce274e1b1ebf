package basefile_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/encode"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/interop/rows"
	"github.com/sluicelake/sluice/storage/local"
)

// newest gives the names of the newest base file of every file group that a completed instant wrote.
func newest(t testing.TB, dir string, instants []fixture.Instant) []string {
	t.Helper()
	done := map[string]bool{}
	for _, i := range instants {
		done[i.Instant] = true
	}
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == ".hoodie" {
			return fs.SkipDir
		}
		name, parquet := strings.CutSuffix(d.Name(), ".parquet")
		parts := strings.Split(name, "_")
		if !parquet || len(parts) != 3 || !done[parts[2]] {
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		group := filepath.Dir(rel) + "/" + parts[0]
		if old := files[group]; old == "" || old[strings.LastIndexByte(old, '_'):] < rel[strings.LastIndexByte(rel, '_'):] {
			files[group] = rel
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		out = append(out, filepath.ToSlash(f))
	}
	slices.Sort(out)
	return out
}

// readAll scans files into rows by way of the JSON writer.
func readAll(t testing.TB, dir string, names []string, o basefile.ScanOptions, each func(*basefile.ScanOptions, string)) []rows.Row {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	store, err := local.New(dir, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	var text []byte
	for _, name := range names {
		f, err := basefile.Open(ctx, store, name, basefile.Options{Alloc: mem})
		if err != nil {
			t.Fatal(err)
		}
		if each != nil {
			each(&o, name)
		}
		count := int64(0)
		for b, err := range f.Scan(ctx, o) {
			if err != nil {
				t.Fatal(err)
			}
			w, err := encode.NewJSON(b.Schema(), encode.Options{})
			if err != nil {
				t.Fatal(err)
			}
			text = w.Append(text, b)
			count += b.NumRows()
			b.Release()
		}
		if count != f.Rows() && o.Filter == nil {
			t.Errorf("%s: %d rows scanned, %d in the footer", name, count, f.Rows())
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	got, err := rows.Decode(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return got
}

// tableSchema is the fixture's schema with the meta columns in front.
func tableSchema(t testing.TB, e fixture.Expect) (*schema.Type, *arrow.Schema) {
	t.Helper()
	avro, err := schema.Parse(e.Schema)
	if err != nil {
		t.Fatal(err)
	}
	avro = schema.WithMeta(schema.WithoutMeta(avro))
	s, err := avro.Arrow()
	if err != nil {
		t.Fatal(err)
	}
	return avro, s
}

// Every base file that Apache Hudi wrote reads as the rows that Apache Hudi read back, under the table's schema and under the
// file's own. The tables hold every type, all list layouts, codecs, several row groups, and files of older schemas.
func TestTablesOfApacheHudi(t *testing.T) {
	for _, name := range fixture.SparkNames(t, "cow_types*", "cow_array_null_elements*", "cow_timestamp_ntz*", "cow_row_groups*", "cow_compressions*", "cow_schema_evolution*",
		"cow_basic*", "cow_all_deleted*", "cow_composite_key*", "cow_no_meta_fields*", "cow_bloom*", "many_files*", "old_cow_0.9.0", "cow_duplicates*", "cow_complex*", "column_stats*") {
		t.Run(name, func(t *testing.T) {
			dir, e := fixture.Spark(t, name)
			if len(e.Schema) == 0 { // Apache Hudi 0.9.0 was not asked for it
				e.Snapshot.Check(t, readAll(t, dir, newest(t, dir, e.Instants), basefile.ScanOptions{}, nil))
				return
			}
			avro, s := tableSchema(t, e)
			var ignore []string
			if !slices.Contains(e.Snapshot.Columns(), schema.CommitTime) {
				ignore = schema.MetaColumns[:]
			}
			files := newest(t, dir, e.Instants)
			if len(files) == 0 && e.Snapshot.Count > 0 {
				t.Fatal("no files found")
			}
			got := readAll(t, dir, files, basefile.ScanOptions{Columns: s, Table: avro}, nil)
			e.Snapshot.Check(t, got, ignore...)
			if !strings.Contains(name, "evolution") {
				e.Snapshot.Check(t, readAll(t, dir, files, basefile.ScanOptions{BatchRows: 3, Parallel: 4}, nil), ignore...)
			}
		})
	}
}

// The read-optimized view of a merge-on-read table is its newest base files: three list layouts, one after the other in one
// table, files of the row writer (no Avro schema in the footer), of compaction, of log-only groups.
func TestReadOptimizedOfApacheHudi(t *testing.T) {
	for _, name := range fixture.SparkNames(t, "mor_types*", "mor_legacy_lists*", "mor_compacted*", "mor_basic*", "mor_schema_evolution*", "mor_log_only_compacted*", "mor_small_file*", "mor_bulk_insert*", "mor_key_types*") {
		t.Run(name, func(t *testing.T) {
			dir, e := fixture.Spark(t, name)
			avro, s := tableSchema(t, e)
			got := readAll(t, dir, newest(t, dir, e.Instants), basefile.ScanOptions{Columns: s, Table: avro}, nil)
			if e.ReadOptimized.Error != "" { // 0.15.0 can't read a member that became wider; the rows are those of 1.2.0
				if len(got) == 0 {
					t.Error("no rows")
				}
				return
			}
			e.ReadOptimized.Check(t, got)
		})
	}
}

// Under schema-on-read a column that was renamed and one that was dropped are found by their ids (expectation: the snapshot
// that Apache Hudi 0.15.0 reads; as it rewrote the file at the last update, the first file stands for the old names).
func TestSchemaOnRead(t *testing.T) {
	dir, e := fixture.Spark(t, "cow_schema_on_read_0.15.0")
	commits, err := filepath.Glob(filepath.Join(dir, ".hoodie", ".schema", "*.schemacommit"))
	if err != nil || len(commits) == 0 {
		t.Fatal(commits, err)
	}
	text, err := os.ReadFile(commits[len(commits)-1])
	if err != nil {
		t.Fatal(err)
	}
	history, err := schema.ParseInternalHistory(text)
	if err != nil {
		t.Fatal(err)
	}
	query := history[0]
	avro, s := tableSchema(t, e)
	names := func(o *basefile.ScanOptions, file string) {
		instant := strings.TrimSuffix(file[strings.LastIndexByte(file, '_')+1:], ".parquet")
		o.Names = schema.FileNames(history.At(instant), query)
	}
	o := basefile.ScanOptions{Columns: s, Table: avro, SchemaOnRead: true}
	e.Snapshot.Check(t, readAll(t, dir, newest(t, dir, e.Instants), o, names))

	first := newest(t, dir, e.Instants[:1])
	got := readAll(t, dir, first, o, names)
	var want []rows.Row
	for _, r := range []string{`{"id":1,"qty":10,"new_name":"a","ts":1,"added":null}`, `{"id":2,"qty":20,"new_name":"b","ts":1,"added":null}`, `{"id":3,"qty":30,"new_name":"c","ts":1,"added":null}`} {
		row, err := rows.Decode(strings.NewReader(r))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, row...)
	}
	set, err := e.Snapshot.Set()
	if err != nil {
		t.Fatal(err)
	}
	if d := rows.Diff(rows.Set{Columns: set.Columns, Rows: want}, rows.Set{Rows: got}, rows.Options{Ignore: schema.MetaColumns[:]}); d != "" {
		t.Error(d)
	}
}
