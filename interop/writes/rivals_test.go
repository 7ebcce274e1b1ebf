//go:build interop

package writes_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sluicelake/sluice/interop/rows"
	"github.com/sluicelake/sluice/interop/sluice"
	"github.com/sluicelake/sluice/interop/spark"
)

// The program itself, started several times at once on a table that nobody has made yet: every run that ended well has its rows in
// the table, every other one said why and has none, and Apache Hudi reads what is there.
func TestRivals(t *testing.T) {
	for _, processes := range []int{2, 6} {
		t.Run(fmt.Sprint(processes), func(t *testing.T) {
			dir := t.TempDir()
			table := filepath.Join(dir, "rivals")
			errs := make([]error, processes)
			var all sync.WaitGroup
			sluice.Binary(t) // built before the start
			for n := range processes {
				var lines strings.Builder
				for i := range 20 {
					fmt.Fprintf(&lines, `{"id":"w%d-%d","region":"%s","ts":1,"who":%d}`+"\n", n, i, []string{"eu", "us"}[i%2], n)
				}
				file := filepath.Join(dir, fmt.Sprintf("%d.json", n))
				if err := os.WriteFile(file, []byte(lines.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				all.Go(func() {
					_, errs[n] = sluice.Run(t, "write", table, file, "--op", "upsert", "--key", "id", "--partition", "region", "--ordering", "ts",
						"--hoodie-conf", "hoodie.index.bloom.num_entries=100")
				})
			}
			all.Wait()
			var want rows.Set
			for n, err := range errs {
				var said *sluice.Error
				switch {
				case errors.As(err, &said):
					t.Logf("%d was refused: %s", n, said.Stderr)
					if said.Code == 2 || strings.TrimSpace(said.Stderr) == "" {
						t.Errorf("%d: exit code %d, %q", n, said.Code, said.Stderr)
					}
					continue
				case err != nil:
					t.Fatal(err)
				}
				for i := range 20 {
					want.Rows = append(want.Rows, rows.Row{"id": fmt.Sprintf("w%d-%d", n, i), "region": []string{"eu", "us"}[i%2], "ts": json.Number("1"), "who": json.Number(fmt.Sprint(n))})
				}
			}
			if len(want.Rows) == 0 {
				t.Fatal("nobody wrote")
			}
			meta := []string{"_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"}
			got, err := sluice.Read(t, table)
			if err != nil {
				t.Fatal(err)
			}
			if d := rows.Diff(want, got, rows.Options{Ignore: meta, Key: []string{"id"}}); d != "" {
				t.Errorf("Sluice: %s", d)
			}
			if got, err = spark.Hudi(t, spark.Hudi0).Read(table, nil); err != nil {
				t.Fatal(err)
			}
			if d := rows.Diff(want, got, rows.Options{Ignore: meta, Key: []string{"id"}}); d != "" {
				t.Errorf("Spark: %s", d)
			}
		})
	}
}
