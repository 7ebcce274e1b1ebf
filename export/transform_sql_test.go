//go:build cgo && !nocgo

package export_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/engine/local"
	"github.com/sluicelake/sluice/export"
	"github.com/sluicelake/sluice/internal/fixture"
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
		if err != nil {
			t.Fatal(err)
		}
		header, got := csvLines(t, c.Target)
		if header != "n,last" || !slices.Equal(got, want) || done.Stats.Rows != int64(len(want)) {
			t.Errorf("%v: %d rows\n%s\n%q, want\n%q", c.Transformers, done.Stats.Rows, header, got, want)
		}
	}
}

func TestQueriesThatAreRefused(t *testing.T) {
	sql := []string{"SqlQueryBasedTransformer"}
	refused(t, []refusal{
		{export.Config{Format: export.JSON, Transformers: sql, TransformerSQL: "SELECT nope FROM <SRC>"}, "`nope` cannot be resolved"},
		{export.Config{Format: export.JSON, Transformers: sql, TransformerSQL: "SELECT id, name AS ID FROM <SRC>"}, "two columns named ID"},
		{export.Config{Format: export.JSON, Transformers: sql, TransformerSQL: "SELECT id FROM <SRC>", Columns: []string{"name"}}, `"name"; the table has id`},
	})
}
