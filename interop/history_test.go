//go:build interop

package interop_test

import (
	"flag"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/sluicelake/sluice/interop/history"
	"github.com/sluicelake/sluice/interop/rows"
	"github.com/sluicelake/sluice/interop/spark"
)

var (
	seeds    = flag.Int("seeds", 10, "random histories for each release of Apache Hudi")
	oneSeed  = flag.Uint64("seed", 0, "run the history of this seed alone")
	keepPath = flag.String("keep", "", "a folder in which the tables of random histories are left")
)

var metaColumns = []string{"_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"}

// Tables with random histories, made on the spot by Apache Hudi: every view that Spark has of them, Sluice has too, row
// for row. Where the plain model of the history claims to know the snapshot, Spark must agree with it first: a history
// that went another way than we think would prove little.
func TestRandomHistories(t *testing.T) {
	from, to := uint64(1), uint64(*seeds)
	if *oneSeed != 0 {
		from, to = *oneSeed, *oneSeed
	}
	for _, release := range []string{spark.Hudi0, spark.Hudi1} {
		for seed := from; seed <= to; seed++ {
			t.Run(fmt.Sprintf("%s/seed=%d", release, seed), func(t *testing.T) {
				s := spark.Hudi(t, release)
				parent := *keepPath
				if parent == "" {
					parent = t.TempDir()
				}
				table, err := history.Make(s, filepath.Join(parent, fmt.Sprintf("%s_%d", release, seed)), seed)
				t.Log(table)
				if err != nil {
					t.Fatal(err)
				}
				if steps := len(table.Steps) - table.Refused; table.Refused*2 > steps {
					t.Errorf("%d of %d steps were refused: the history says little", table.Refused, steps)
				}
				for _, q := range table.Queries() {
					t.Run(q.Name, func(t *testing.T) { compareHistory(t, s, table, q) })
				}
			})
		}
	}
}

func compareHistory(t *testing.T, s *spark.Session, table *history.Table, q history.Query) {
	want, err := s.Read(table.Path, q.Spark())
	if q.Name == "snapshot" {
		if err != nil {
			t.Fatal(err)
		}
		if model, known := table.Expected(); known {
			model.Columns = want.Columns
			if d := rows.Diff(model, want, rows.Options{Ignore: metaColumns, Key: []string{"id"}}); d != "" {
				t.Errorf("Spark and the model differ: %s", d)
			}
		}
	}
	if err != nil {
		t.Logf("Spark: %v", err)
	}
}
