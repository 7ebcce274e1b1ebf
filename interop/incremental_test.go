//go:build interop

package interop_test

import (
	"fmt"
	"testing"

	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/interop/history"
	"github.com/sluicelake/sluice/interop/spark"
)

// A range that holds a compaction: the compaction carries row a along, which is older than the range, and the range's log
// updates it. Whether the log's row meets the carried one decides what a partial update and a late row show: it does in 0.x
// and does not from 1.0 on.
func TestIncrementalOverCompaction(t *testing.T) {
	for _, release := range []string{spark.Hudi0, spark.Hudi1} {
		for _, rule := range []struct {
			payload string
			ts      int // of the row in the log
		}{{"PartialUpdateAvroPayload", 15}, {"DefaultHoodieRecordPayload", 15}, {"DefaultHoodieRecordPayload", 5}, {"OverwriteNonDefaultsWithLatestAvroPayload", 15}} {
			t.Run(fmt.Sprintf("%s %s %d", release, rule.payload, rule.ts), func(t *testing.T) {
				s := spark.Hudi(t, release)
				table := t.TempDir()
				write := func(compact bool, rows ...[]any) {
					t.Helper()
					err := s.Write(table, spark.Write{
						Columns: "id string, v int, w int, ts bigint", Rows: rows,
						Options: spark.Options{
							"hoodie.table.name": "t", "hoodie.datasource.write.table.type": "MERGE_ON_READ",
							"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.precombine.field": "ts",
							"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model." + rule.payload,
							"hoodie.compaction.payload.class":       "org.apache.hudi.common.model." + rule.payload,
							"hoodie.compact.inline":                 fmt.Sprint(compact), "hoodie.compact.inline.max.delta.commits": "1",
						},
					})
					if err != nil {
						t.Fatal(err)
					}
				}
				write(false, []any{"a", 1, 1, 10}, []any{"b", 1, 1, 10})
				write(true, []any{"b", nil, 2, 20})
				write(false, []any{"a", nil, 3, rule.ts})
				opened, err := hudi.Open(t.Context(), table, hudi.Options{})
				if err != nil {
					t.Fatal(err)
				}
				first := opened.Timeline().Instants()[0]
				q := history.Query{Type: "incremental", Begin: first.Time}
				if release != spark.Hudi0 {
					q.Begin = first.Completion
				}
				want, err := s.Read(table, q.Spark())
				checkSluice(t, table, q, want, err)
			})
		}
	}
}
