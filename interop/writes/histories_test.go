//go:build interop

package writes_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/internal/lakemodel"
	"github.com/sluicelake/sluice/interop/python"
	"github.com/sluicelake/sluice/interop/rows"
	"github.com/sluicelake/sluice/interop/spark"
	"github.com/sluicelake/sluice/storage/local"
)

// Random histories, written by Sluice, read by everyone; then Apache Hudi changes the table, Sluice changes it again, and everyone
// reads it again: always the rows of the plain model. Even seeds are changed by 0.15.0, odd ones by 1.2.0 in table version 6; seeds
// whose lists hold nulls with lists of three levels, which Java's Avro writer is told to write, the others with its default, lists
// of two levels. A failure names its seed:
//
//	go test -tags interop ./interop/writes -run 'TestHistories/.*/seed=7$' -v
func TestHistories(t *testing.T) {
	for parity, release := range []string{spark.Hudi0, spark.Hudi1} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			for seed := parity; seed < *seeds; seed += 2 {
				t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { oneHistory(t, uint64(seed)) })
			}
		})
	}
}

func oneHistory(t *testing.T, seed uint64) {
	h, more := lakemodel.GenerateWith(seed)
	t.Log(h)
	dir := filepath.Join(t.TempDir(), h.Config.Name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	store, err := local.New(dir, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := lakemodel.Start(t.Context(), store, h)
	if err != nil {
		t.Fatal(err)
	}
	for n, s := range h.Steps {
		if err := w.Do(t.Context(), s); err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
		if err := w.Verify(t.Context()); err != nil { // it also learns from the table what the model leaves open
			t.Fatalf("after step %d: %v", n, err)
		}
	}
	everyone(t, w, dir, "after our history")

	if why := h.Foreign(); why == "" {
		theirTurn(t, w, dir, more.ForeignTurn())
		everyone(t, w, dir, "after Spark's turn")
	} else {
		t.Logf("no turn of Spark's: %s", why)
	}

	for _, s := range more.Turn() {
		if err := w.Do(t.Context(), s); err != nil {
			t.Fatalf("our turn after Spark's: %v", err)
		}
	}
	everyone(t, w, dir, "after our second turn")
}

// theirTurn lets Spark do steps. On every other pair of seeds it makes a metadata table, which our next write has to remove.
func theirTurn(t *testing.T, w *lakemodel.Writer, dir string, steps []lakemodel.Step) {
	t.Helper()
	h := w.History
	s := spark.Hudi(t, h.Release())
	if h.Config.NullElements {
		s.SetHadoop(t, spark.Options{"parquet.avro.write-old-list-structure": "false"})
	}
	for _, step := range steps {
		if h.Seed%4 < 2 {
			step.Conf["hoodie.metadata.enable"] = "true"
		}
		t.Logf("Spark %s: %s", s.Release, step)
		if err := write(t, s, dir, h, step); err != nil {
			t.Fatalf("Spark %s, %s: %v", s.Release, step, err)
		}
		w.Table.Apply(step)
	}
	w.Foreign = true
}

// everyone reads the table: Apache Hudi in both releases with and without the metadata table, hudi-rs, and Sluice.
func everyone(t *testing.T, w *lakemodel.Writer, dir, when string) {
	t.Helper()
	check := func(who string, got rows.Set, err error) {
		t.Helper()
		if err != nil && w.History.PathsForNumbers() && strings.Contains(err.Error(), "Failed to cast value") {
			t.Logf("%s, %s takes partition paths for numbers: %v", when, who, err)
		} else if err != nil {
			t.Errorf("%s, %s: %v", when, who, err)
		} else if d := differ(t, w.History, w.Table, got); d != "" {
			t.Errorf("%s, %s: %s", when, who, d)
		}
	}
	for _, release := range []string{spark.Hudi0, spark.Hudi1} {
		for _, metadata := range []string{"true", "false"} {
			got, err := spark.Hudi(t, release).Read(dir, spark.Options{"hoodie.metadata.enable": metadata})
			check("Spark "+release+" with metadata "+metadata, got, err)
		}
	}
	got, err := python.Readers(t).HudiRS(dir, nil)
	check("hudi-rs", got, err)
	if err := w.Verify(t.Context()); err != nil {
		t.Errorf("%s, Sluice: %v", when, err)
	}
}
