//go:build interop

package interop_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/interop/python"
	"github.com/sluicelake/sluice/interop/rows"
	"github.com/sluicelake/sluice/interop/spark"
	"github.com/sluicelake/sluice/storage/local"
)

// Rows that Spark made, encoded by us in many pages and row groups with every codec, are the same rows to Spark (of both releases),
// DuckDB and PyArrow; and filters, for which they look at statistics, page indexes and dictionaries, find the same rows as in Spark's file.
// Dictionaries are kept, given up at once and given up in the middle of a chunk; texts are longer than a page; NaN and both zeros are there.
func TestWrittenPagesServePeers(t *testing.T) {
	s := spark.Hudi(t, spark.Hudi1)
	query := `select id, concat('name ', id * 2) as name, if(id % 3 = 0, null, cast(id / 8 - 1000 as decimal(12, 3))) as price, cast(id * 1e20 - 5e23 as decimal(38, 2)) as wide,
		if(id < 9000, concat('kind ', id % 10), concat('kind ', id)) as kind, if(id % 1000 = 7, repeat(cast(id as string), 3000), 'short') as note, 'one' as same,
		if(id > 5000 and id < 9000, null, id % 4 = 0) as flag, date_add(date'2020-01-01', cast(id % 400 as int)) as day, cast(id % 50 as int) as small,
		case when id = 11111 then double('NaN') when id % 2 = 0 then -0D else id / 7D end as d, cast(id as binary) as bin,
		named_struct('a', id, 'b', if(id % 5 = 0, null, array(id, id + 1))) as st, map('k', id) as m, if(id % 11 = 0, array(), array(cast(id as string), null)) as l from range(0, 20000, 1, 1)`
	dir := filepath.Join(t.TempDir(), "in")
	if err := s.Save(dir, query, "parquet", spark.Options{"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}, 1); err != nil {
		t.Fatal(err)
	}
	file := parquetFiles(t, dir)[0]
	want, err := s.ReadFiles("parquet", file, nil)
	if err != nil {
		t.Fatal(err)
	}
	const zeros = "d = 0 and id < 30"
	filters := []string{"id = 12345", "name = 'name 31998'", "name = 'name 31999'", "price is null and id between 100 and 130", "price < -999.5", "wide < 0 and id < 20", "kind = 'kind 3' and id > 8900",
		"kind = 'kind 15000'", "same > 'one'", "flag is null and id > 8990", "small = 49 and day = date'2020-06-18'", "d > 2850", zeros, "note > '7' and note < 's'", "st.a = 777"}
	selected := func(file, where string) string {
		return fmt.Sprintf("select id, name, price from %s where %s", file, where)
	}
	found := map[string]rows.Set{}
	for _, where := range filters {
		as := where
		if where == zeros { // Spark looks for +0 in the dictionary of its own file, and misses the rows with -0
			as = "id % 2 = 0 and id < 30"
		}
		if found[where], err = s.SQL(selected("parquet.`"+file+"`", as)); err != nil {
			t.Fatal(err)
		}
	}
	for _, codec := range []string{"snappy", "gzip", "zstd", "uncompressed"} {
		t.Run(codec, func(t *testing.T) {
			out := written(t, file, basefile.WriterOptions{Codec: codec, PageBytes: 8 << 10, RowGroupBytes: 1 << 20})
			readByAll(t, out, want)
			for _, where := range filters {
				got, err := python.Readers(t).DuckDB(selected("read_parquet('"+out+"')", where))
				check(t, "DuckDB, "+where, found[where], got, err)
			}
			if codec != "snappy" { // pages are found before they are unpacked
				return
			}
			got, err := spark.Hudi(t, spark.Hudi0).ReadFiles("parquet", out, nil)
			check(t, "the older Spark", want, got, err)
			for _, where := range filters {
				got, err := s.SQL(selected("parquet.`"+out+"`", where))
				check(t, "Spark, "+where, found[where], got, err)
			}
		})
	}
}

// written is a file encoded anew by us.
func written(t *testing.T, file string, o basefile.WriterOptions) string {
	t.Helper()
	ctx := t.Context()
	from, err := local.New(filepath.Dir(file), local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := basefile.Open(ctx, from, filepath.Base(file), basefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if o.Schema, err = f.AvroSchema(); err != nil {
		t.Fatal(err)
	}
	columns, err := o.Schema.Arrow()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	to, err := local.New(dir, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := basefile.Create(ctx, to, "out.parquet", o)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for batch, err := range f.Scan(ctx, basefile.ScanOptions{Columns: columns}) {
		if err != nil {
			t.Fatal(err)
		}
		err := w.Write(batch)
		batch.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "out.parquet")
}
