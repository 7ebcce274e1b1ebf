//go:build interop

package writes_test

import (
	"testing"

	"github.com/sluicelake/sluice/internal/foreign"
	"github.com/sluicelake/sluice/interop/rows"
	"github.com/sluicelake/sluice/interop/spark"
)

// cut are the tables of which Spark can't say what a row's partition column was: it takes the value out of the path, which has lost
// a part of it, or fails to.
var cut = map[string]bool{
	"spark/cow_partitions_custom_keygen_0.15.0": true, "spark/cow_partitions_datestring_keygen_0.15.0": true,
	"spark/cow_partitions_timestamp_keygen_0.15.0": true, "public/sample_table_cow_v6_timebasedkeygen_nonhivestyle": true,
}

// Tables of every kind that Apache Hudi wrote and we wrote again, row by row, are read by Apache Hudi: by 0.15.0 and 1.2.0 in turns.
func TestTablesWrittenAgain(t *testing.T) {
	read := 0
	for _, f := range foreign.Tables(t) {
		t.Run(f.Name, func(t *testing.T) {
			dir := f.Open(t)
			reached, want := foreign.Rewrite(t, f.Name, dir)
			if reached == foreign.Refused || cut[f.Name] || t.Failed() {
				return
			}
			release := []string{spark.Hudi0, spark.Hudi1}[read%2]
			read++
			got, err := spark.Hudi(t, release).Read(dir, nil)
			if err != nil {
				t.Fatalf("%s: %v", release, err)
			}
			if d := rows.Diff(rows.Set{Columns: got.Columns, Rows: want}, got, rows.Options{Ignore: foreign.Times}); d != "" {
				t.Errorf("%s: %s", release, d)
			}
		})
	}
	if read < 110 {
		t.Errorf("Apache Hudi read %d tables", read)
	}
}
