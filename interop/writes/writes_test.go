//go:build interop

// Package writes_test holds histories of writes against Apache Hudi: the plain model of package lakemodel against Spark alone, and
// tables that Sluice wrote against every reader, and against Spark writing on them.
package writes_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/sluicelake/sluice/internal/lakemodel"
	"github.com/sluicelake/sluice/interop/rows"
	"github.com/sluicelake/sluice/interop/spark"
	"github.com/sluicelake/sluice/storage/local"
)

var (
	seeds      = flag.Int("seeds", 20, "random histories that Sluice writes")
	modelSeeds = flag.Int("model-seeds", 2, "random histories that Apache Hudi 0.15.0 writes, to prove the model")
)

// save writes the rows of a step as a Parquet file, which is how Spark gets them.
func save(t *testing.T, path string, s lakemodel.Step) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := pqarrow.NewFileWriter(lakemodel.Arrow(s.Columns), f, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	for b, err := range s.Batches(memory.DefaultAllocator, 1000) {
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// write lets Spark do a step on the table in dir.
func write(t *testing.T, s *spark.Session, dir string, h *lakemodel.History, step lakemodel.Step) error {
	t.Helper()
	query := "select 1 as id where 1 = 0"
	if len(step.Rows) > 0 {
		file := filepath.Join(t.TempDir(), "rows.parquet")
		save(t, file, step)
		query = fmt.Sprintf("select * from parquet.`%s`", file)
	}
	o := spark.Options(h.Options(step))
	o["hoodie.datasource.write.row.writer.enable"] = "false" // the row writer lets rows through that are marked as deleted
	if s.Release == spark.Hudi1 {
		o["hoodie.write.auto.upgrade"] = "false"
	}
	return s.Write(dir, spark.Write{Query: query, Options: o})
}

var others = []string{"_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"}

// differ says how rows that Spark read differ from the model's.
func differ(t *testing.T, h *lakemodel.History, table *lakemodel.Table, got rows.Set) string {
	t.Helper()
	want, err := table.Set()
	if err != nil {
		t.Fatal(err)
	}
	ignore := append(h.Config.PathColumns(), others...)
	if len(h.Config.Keys) == 0 {
		ignore = append(ignore, "_hoodie_record_key")
	}
	return rows.Diff(want, rows.Set{Rows: clone(got.Rows)}, rows.Options{Ignore: ignore, Key: []string{"_hoodie_partition_path", "id", "shop"}})
}

// clone, since a comparison takes columns out of rows.
func clone(all []rows.Row) []rows.Row {
	out := make([]rows.Row, len(all))
	for i, r := range all {
		out[i] = maps.Clone(r)
	}
	return out
}

// The model is what Sluice is held against, so it is held against Apache Hudi 0.15.0 first: Spark does the same steps. The other
// readers are held against tables that Sluice did not write, to know what they make of those.
//
//	go test -tags interop ./interop/writes -run 'TestModel/seed=7$' -v
func TestModel(t *testing.T) {
	s := spark.Hudi(t, spark.Hudi0)
	s.SetHadoop(t, spark.Options{"parquet.avro.write-old-list-structure": "false"}) // two levels hold no null elements
	for seed := range uint64(*modelSeeds) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			h := lakemodel.Generate(seed)
			h.Config.BareComplex = true // 0.15.0 knows no other
			t.Log(h)
			table := lakemodel.NewTable(&h.Config)
			dir := filepath.Join(t.TempDir(), h.Config.Name)
			for n, step := range h.Steps {
				table.Apply(step)
				if err := write(t, s, dir, h, step); err != nil {
					t.Fatalf("step %d, %s: %v", n, step, err)
				}
				got, err := s.Read(dir, nil)
				if err != nil {
					t.Fatalf("after step %d, %s: %v", n, step, err)
				}
				if d := differ(t, h, table, got); d != "" {
					t.Fatalf("after step %d, %s: %s", n, step, d)
				}
			}
			store, err := local.New(dir, local.Options{})
			if err != nil {
				t.Fatal(err)
			}
			everyone(t, lakemodel.Follow(store, h, table), dir, "Apache Hudi's own table")
		})
	}
}
