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
