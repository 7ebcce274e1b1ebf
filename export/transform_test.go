package export_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/engine/local"
	"github.com/sluicelake/sluice/export"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/streamer/transform"
)

// A query sees the rows of all file groups at once, meta columns among them (tools A.1, flags of release 1.0): what it counts are
// the rows that Apache Hudi reads. Its columns make the folders. Workers in other processes write the same.
func TestTransformedBySQL(t *testing.T) {
	dir, expect := fixture.Spark(t, "mor_basic_1.2.0")
	type sum struct {
		rows int
		last string
	}
	sums := map[string]sum{}
	for _, r := range expect.Snapshot.Rows {
		dt := fmt.Sprint(r["dt"])
		s := sums[dt]
		sums[dt] = sum{s.rows + 1, max(s.last, fmt.Sprint(r["_hoodie_record_key"]))}
	}
	if len(sums) < 2 {
		t.Fatalf("%v: the table has one partition", sums)
	}
	var want []string
	for dt, s := range sums {
		want = append(want, fmt.Sprintf("dt=%s %d,%s", dt, s.rows, s.last))
	}
	slices.Sort(want)
	query := "SELECT count(*) AS n, max(_hoodie_record_key) AS last, dt FROM <SRC> GROUP BY dt"
	for _, c := range []export.Config{
		{Transformers: []string{"org.apache.hudi.utilities.transform.SqlQueryBasedTransformer"}, TransformerSQL: query},
		{Transformers: []string{"sql-file"}, TransformerStatements: "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT * FROM <SRC>;\n" + strings.Replace(query, "<SRC>", "v", 1) + ";\n"},
		{Transformers: []string{"sql"}, TransformerSQL: query, Columns: []string{"n", "LAST"}},
		{Transformers: []string{"sql"}, TransformerSQL: query, Engine: &crowd{t: t}},
	} {
		c.Source, c.Target, c.Format, c.Rows, c.PartitionField, c.Verify = dir, filepath.Join(t.TempDir(), "out"), export.CSV, export.Snapshot, "dt", true
		done, err := export.Run(t.Context(), c, local.Options{})
		if errors.Is(err, transform.ErrNoSQL) {
			t.Log("this build has no SQL:", err)
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		header, got := csvLines(t, c.Target)
		if header != "n,last" || !slices.Equal(got, want) || done.Stats.Rows != int64(len(want)) {
			t.Errorf("%v: %d rows\n%s\n%q, want\n%q", c.Transformers, done.Stats.Rows, header, got, want)
		}
	}
}

// A transformer that looks at rows one by one needs them not all at once: the meta columns go as ever, the others keep their values.
func TestTransformedRowByRow(t *testing.T) {
	dir, expect := fixture.Spark(t, "cow_basic_1.2.0")
	c := export.Config{Source: dir, Target: filepath.Join(t.TempDir(), "out"), Format: export.CSV, Rows: export.Snapshot, Filter: "id <> 1",
		Transformers: []string{"FlatteningTransformer", "AWSDmsTransformer"}, PartitionField: "Op"}
	if _, err := export.Run(t.Context(), c, local.Options{Workers: 3}); err != nil {
		t.Fatal(err)
	}
	columns := []string{"id", "name", "price", "ts", "dt"}
	want := picked(expect.Snapshot, func(r map[string]any) bool { return fmt.Sprint(r["id"]) != "1" }, columns...)
	for i := range want { // AWSDmsTransformer adds an empty Op to rows that have none (tools C.9)
		want[i] = "Op=__HIVE_DEFAULT_PARTITION__ " + want[i]
	}
	if header, got := csvLines(t, c.Target); header != strings.Join(columns, ",") || !slices.Equal(got, want) {
		t.Errorf("%s\n%q, want\n%q", header, got, want)
	}
}

func TestTransformersThatAreRefused(t *testing.T) {
	dir, _ := fixture.Spark(t, "cow_basic_1.2.0")
	sql := []string{"SqlQueryBasedTransformer"}
	for _, c := range []struct {
		config export.Config
		text   string
	}{
		{export.Config{Format: export.JSON, Transformers: sql}, "--transformer-sql"},
		{export.Config{Format: export.JSON, Transformers: []string{"SqlFileBasedTransformer"}, TransformerSQL: "select 1"}, "--transformer-sql-file"},
		{export.Config{Format: export.JSON, TransformerSQL: "select 1"}, "--transformer-class SqlQueryBasedTransformer"},
		{export.Config{Format: export.Hudi, Transformers: []string{"dms"}}, "choose parquet"},
		{export.Config{Format: export.JSON, Transformers: []string{"com.example.Own"}}, "Unable to load class: com.example.Own"},
		{export.Config{Format: export.JSON, Transformers: sql, TransformerSQL: "SELECT nope FROM <SRC>"}, "`nope` cannot be resolved"},
		{export.Config{Format: export.JSON, Transformers: sql, TransformerSQL: "SELECT id, name AS ID FROM <SRC>"}, "two columns named ID"},
		{export.Config{Format: export.JSON, Transformers: sql, TransformerSQL: "SELECT id FROM <SRC>", Columns: []string{"name"}}, `"name"; the table has id`},
	} {
		c.config.Source, c.config.Target = dir, filepath.Join(t.TempDir(), "out")
		_, err := export.Run(t.Context(), c.config, local.Options{})
		if errors.Is(err, transform.ErrNoSQL) {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v: %v", c.config, err)
		}
		if _, err := os.Stat(c.config.Target); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%+v: something was written", c.config)
		}
	}
}
