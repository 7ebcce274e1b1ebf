//go:build interop

package interop_test

import (
	"testing"

	"github.com/sluicelake/sluice/interop/python"
	"github.com/sluicelake/sluice/interop/rows"
	"github.com/sluicelake/sluice/interop/spark"
)

// The peers themselves: both Sparks write a table that all readers read alike. When this fails, nothing else here says
// anything about Sluice.
func TestPeersAgree(t *testing.T) {
	for _, release := range []string{spark.Hudi0, spark.Hudi1} {
		t.Run(release, func(t *testing.T) {
			s := spark.Hudi(t, release)
			table := t.TempDir()
			err := s.Write(table, spark.Write{
				Columns: "id int, price float, amount decimal(8,2), at timestamp, tags array<string>, props map<string,bigint>, ts bigint",
				Rows: [][]any{
					{1, 1.1, "1.50", "2024-02-29T12:34:56.000123Z", []string{"a", "b"}, map[string]int{"x": 1}, 1},
					{2, nil, nil, nil, nil, nil, 1},
				},
				Options: spark.Options{"hoodie.table.name": "peers", "hoodie.datasource.write.recordkey.field": "id",
					"hoodie.datasource.write.precombine.field": "ts", "hoodie.datasource.write.partitionpath.field": ""},
			})
			if err != nil {
				t.Fatal(err)
			}
			want, err := s.Read(table, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(want.Rows) != 2 || len(want.Columns) != 5+7 {
				t.Fatalf("%d rows, %d columns", len(want.Rows), len(want.Columns))
			}
			got, err := python.Readers(t).HudiRS(table, nil)
			check(t, "hudi-rs", want, got, err)
			got, err = python.Readers(t).DuckDB("from read_parquet('" + table + "/*.parquet')")
			check(t, "DuckDB", want, got, err)
			got, err = s.ReadFiles("parquet", table+"/*.parquet", nil)
			check(t, "Spark, plain Parquet", want, got, err)
		})
	}
}

func check(t *testing.T, who string, want, got rows.Set, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", who, err)
		return
	}
	if d := rows.Diff(want, got, rows.Options{}); d != "" {
		t.Errorf("%s: %s", who, d)
	}
}
