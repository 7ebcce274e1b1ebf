//go:build interop

package interop_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/splice"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/interop/python"
	"github.com/sluicelake/sluice/interop/rows"
	"github.com/sluicelake/sluice/interop/sluice"
	"github.com/sluicelake/sluice/interop/spark"
	"github.com/sluicelake/sluice/storage/local"
)

// Base files that Apache Hudi wrote, without their meta columns, are what Spark read in them, whoever reads them: nested types,
// lists of two and of three levels, all codecs, several row groups, old releases.
func TestSplicedFilesAreReadByPeers(t *testing.T) {
	for _, name := range []string{
		"cow_types_row_writer_1.2.0", "cow_types_1.2.0", "cow_types_0.14.0", "cow_array_null_elements_1.2.0", "cow_timestamp_ntz_1.2.0",
		"cow_compressions_0.15.0", "cow_compressions_1.2.0", "cow_row_groups_1.2.0", "old_cow_0.9.0", "mor_legacy_lists_0.15.0",
	} {
		t.Run(name, func(t *testing.T) {
			source, _ := fixture.Spark(t, name)
			for i, file := range parquetFiles(t, source) {
				want, err := spark.Hudi(t, spark.Hudi1).ReadFiles("parquet", file, nil)
				if err != nil {
					t.Fatal(err)
				}
				readByAll(t, spliced(t, file, fmt.Sprintf("%d.parquet", i), isMeta), withoutColumns(want, isMeta))
			}
		})
	}
}

// Files of Spark with every codec, page indexes and bloom filters: filters that use them find the same rows as in the whole
// file.
func TestSplicedIndexesServePeers(t *testing.T) {
	s := spark.Hudi(t, spark.Hudi1)
	query := `select id, cast(id % 7 as string) as gone, concat('name ', id * 2) as name, if(id % 3 = 0, null, cast(id / 8 as decimal(12, 3))) as price,
		named_struct('a', id, 'b', if(id % 5 = 0, null, array(id, id + 1))) as st, map('k', id) as m, timestamp_seconds(id * 1000) as at from range(0, 20000, 1, 1)`
	for _, codec := range []string{"snappy", "gzip", "zstd", "none"} {
		t.Run(codec, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "in")
			err := s.Save(dir, query, "parquet", spark.Options{
				"compression": codec, "parquet.block.size": "200000", "parquet.page.size": "10000", "parquet.page.row.count.limit": "500",
				"parquet.bloom.filter.enabled#name": "true", "parquet.bloom.filter.expected.ndv#name": "20000", "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
			}, 1)
			if err != nil {
				t.Fatal(err)
			}
			file := parquetFiles(t, dir)[0]
			gone := func(name string) bool { return name == "gone" || name == "at" } // Spark's timestamps are INT96
			out := spliced(t, file, "out.parquet", gone)
			want, err := s.ReadFiles("parquet", file, nil)
			if err != nil {
				t.Fatal(err)
			}
			readByAll(t, out, withoutColumns(want, gone))
			for _, where := range []string{"id = 12345", "name = 'name 31998'", "name = 'name 31999'", "price is null and id between 100 and 130", "id >= 19990"} {
				columns := "id, name, price"
				want, err := s.SQL(fmt.Sprintf("select %s from parquet.`%s` where %s", columns, file, where))
				if err != nil {
					t.Fatal(err)
				}
				got, err := s.SQL(fmt.Sprintf("select %s from parquet.`%s` where %s", columns, out, where))
				check(t, "Spark, "+where, want, got, err)
				got, err = python.Readers(t).DuckDB(fmt.Sprintf("select %s from read_parquet('%s') where %s", columns, out, where))
				check(t, "DuckDB, "+where, want, got, err)
			}
		})
	}
}

// Tables that Apache Hudi wrote with each of its codecs, nested types and many pages in each chunk, exported without being decoded:
// every reader finds the table's rows in them, whole and by filters that page indexes serve. What no reader but some knows is
// decoded.
func TestExportOfEveryCodec(t *testing.T) {
	s := spark.Hudi(t, spark.Hudi1)
	query := `select id, id as ts, concat('name ', id * 2) as name, if(id % 3 = 0, null, cast(id / 8 as decimal(12, 3))) as price,
		named_struct('a', id, 'b', if(id % 5 = 0, null, array(id, id + 1)), 'c', named_struct('d', cast(id as string))) as st, map('k', id, 'l', null) as m,
		array(named_struct('e', id), null) as list, timestamp_micros(id * 1000001) as at, date_add(date'2020-01-01', cast(id % 1000 as int)) as day from range(0, 6000, 1, 1)`
	for codec, copied := range map[string]bool{"gzip": true, "snappy": true, "zstd": true, "uncompressed": true, "lz4_raw": false} {
		t.Run(codec, func(t *testing.T) {
			table := filepath.Join(t.TempDir(), "table")
			err := s.Save(table, query, "hudi", spark.Options{
				"hoodie.table.name": "codecs", "hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.precombine.field": "ts",
				"hoodie.datasource.write.operation": "bulk_insert", "hoodie.parquet.compression.codec": codec,
				"hoodie.parquet.page.size": "4000", "hoodie.parquet.block.size": "200000",
			}, 1)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := s.Read(table, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := withoutColumns(whole, isMeta)
			target := export(t, table, "parquet", "--verify")
			plan, err := sluice.Run(t, "export", "--source-base-path", table, "--target-output-path", target+"2", "--output-format", "parquet", "--dry-run", "--verbose", "-o", "json")
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(string(plan), `"decoded": {}`) || !strings.Contains(string(plan), `"decoded"`); got != copied {
				t.Errorf("copied as bytes: %v, want %v\n%s", got, copied, plan)
			}
			readByAll(t, parquetFiles(t, target)[0], want)
			some := export(t, table, "parquet", "--columns", "st,id")
			gone := func(name string) bool { return name != "st" && name != "id" }
			got, err := spark.Hudi(t, spark.Hudi1).ReadFiles("parquet", some, nil)
			check(t, "Spark, some columns", withoutColumns(want, gone), got, err)
			for _, where := range []string{"id = 4321", "name = 'name 8642'", "name = 'name 8643'", "price is null and id between 100 and 130", "id >= 5990"} {
				want, err := s.SQL(fmt.Sprintf("select id, name, price from parquet.`%s` where %s", parquetFiles(t, table)[0], where))
				if err != nil {
					t.Fatal(err)
				}
				got, err := s.SQL(fmt.Sprintf("select id, name, price from parquet.`%s` where %s", target, where))
				check(t, "Spark, "+where, want, got, err)
				got, err = python.Readers(t).DuckDB(fmt.Sprintf("select id, name, price from read_parquet('%s/*.parquet') where %s", target, where))
				check(t, "DuckDB, "+where, want, got, err)
			}
		})
	}
}

func readByAll(t *testing.T, file string, want rows.Set) {
	t.Helper()
	got, err := spark.Hudi(t, spark.Hudi1).ReadFiles("parquet", file, nil)
	check(t, "Spark", want, got, err)
	checkTypes(t, "Spark", want, got)
	got, err = python.Readers(t).DuckDB(fmt.Sprintf("from read_parquet('%s')", file))
	check(t, "DuckDB", want, got, err)
	got, err = python.Readers(t).PyArrow("parquet", file)
	check(t, "PyArrow", want, got, err)
}

// spliced copies the columns of a file that are not gone, and gives the new file.
func spliced(t *testing.T, file, name string, gone func(string) bool) string {
	t.Helper()
	store, err := local.New(filepath.Dir(file), local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	obj, err := store.Open(t.Context(), filepath.Base(file))
	if err != nil {
		t.Fatal(err)
	}
	f, err := splice.Open(t.Context(), file, obj, basefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var keep []arrow.Field
	for _, c := range f.Schema().Fields() {
		if !gone(c.Name) {
			keep = append(keep, c)
		}
	}
	p, why := splice.CanCopy(f, splice.Want{Columns: arrow.NewSchema(keep, nil)})
	if why != "" {
		t.Fatal(why)
	}
	target := filepath.Join(t.TempDir(), name)
	out, err := os.Create(target)
	if err != nil {
		t.Fatal(err)
	}
	w := splice.NewWriter(out, splice.WriterOptions{})
	if err := w.Append(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return target
}

func withoutColumns(in rows.Set, gone func(string) bool) rows.Set {
	out := rows.Set{}
	for _, c := range in.Columns {
		if !gone(c.Name) {
			out.Columns = append(out.Columns, c)
		}
	}
	for _, r := range in.Rows {
		kept := rows.Row{}
		for name, v := range r {
			if !gone(name) {
				kept[name] = v
			}
		}
		out.Rows = append(out.Rows, kept)
	}
	return out
}

func parquetFiles(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == ".hoodie" {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".parquet") && !strings.HasPrefix(filepath.Base(path), ".") {
			out = append(out, path)
		}
		return err
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("Parquet files of %s: %v, %v", dir, out, err)
	}
	return out
}
