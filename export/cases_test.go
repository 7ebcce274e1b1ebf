package export_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/engine/local"
	"github.com/sluicelake/sluice/export"
	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/storage/count"
	"github.com/sluicelake/sluice/storage/mem"
)

// lines gives the rows of a JSON export, sorted.
func lines(t *testing.T, target string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(target, "*.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		for l := range strings.Lines(string(text)) {
			out = append(out, strings.TrimSpace(l))
		}
	}
	slices.Sort(out)
	return out
}

func count64(t *testing.T, s *hudi.Snapshot, err error) (n int64) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for batch, err := range s.Scan(t.Context(), hudi.Scan{}) {
		if err != nil {
			t.Fatal(err)
		}
		n += batch.NumRows()
		batch.Release()
	}
	return n
}

// C001: the copy of a table without partitions has its files directly below the target, and reads like the table.
func TestC001CopyOfATableWithoutPartitions(t *testing.T) {
	dir, expect := fixture.Spark(t, "cow_nonpartitioned_0.15.0")
	target := filepath.Join(t.TempDir(), "copy")
	if _, err := export.Run(t.Context(), export.Config{Source: dir, Target: target, Format: export.Hudi}, local.Options{}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(target)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() != ".hoodie" {
			t.Errorf("a folder %q in the copy", e.Name())
		}
	}
	if _, err := os.Stat(filepath.Join(target, ".hoodie_partition_metadata")); err != nil {
		t.Error(err)
	}
	table, err := hudi.Open(t.Context(), target, hudi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := table.Snapshot(t.Context(), hudi.Query{})
	if n := count64(t, s, err); n != int64(expect.Snapshot.Count) {
		t.Errorf("%d rows in the copy, want %d", n, expect.Snapshot.Count)
	}
}

// C003: the default is the read-optimized view, and the job says what it leaves out; the snapshot view has every row. A copy
// reads as the view that was asked for, and lists no delta commit whose log files stayed behind.
func TestC003MergeOnReadTables(t *testing.T) {
	dir, expect := fixture.Spark(t, "mor_log_only_inmemory_1.2.0")
	for _, c := range []struct {
		rows export.Rows
		want fixture.Answer
	}{{export.ReadOptimized, *expect.ReadOptimized}, {export.Snapshot, expect.Snapshot}} {
		var notes []string
		opts := local.Options{Observe: func(e engine.Event) {
			if n, ok := e.(engine.Noted); ok {
				notes = append(notes, n.Text)
			}
		}}
		target := filepath.Join(t.TempDir(), "out")
		sum, err := export.Run(t.Context(), export.Config{Source: dir, Target: target, Format: export.JSON, Rows: c.rows}, opts)
		if err != nil {
			t.Fatal(err)
		}
		if got := lines(t, target); len(got) != c.want.Count {
			t.Errorf("%s: %d rows, want %d", c.rows, len(got), c.want.Count)
		}
		warned := len(notes) == 1 && strings.Contains(notes[0], "consist of log files only")
		if warned != (c.rows == export.ReadOptimized) || c.rows == export.ReadOptimized && sum.LogOnly == 0 {
			t.Errorf("%s: notes %q, %d groups of logs only", c.rows, notes, sum.LogOnly)
		}
		copied := filepath.Join(t.TempDir(), "copy")
		if _, err := export.Run(t.Context(), export.Config{Source: dir, Target: copied, Format: export.Hudi, Rows: c.rows}, local.Options{}); err != nil {
			t.Fatal(err)
		}
		table, err := hudi.Open(t.Context(), copied, hudi.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := table.Snapshot(t.Context(), hudi.Query{})
		if n := count64(t, s, err); n != int64(c.want.Count) {
			t.Errorf("%s: the copy has %d rows, want %d", c.rows, n, c.want.Count)
		}
		for _, in := range table.Timeline().Completed().Writes().Instants() {
			meta, err := table.Source().Commit(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			mixed := false // a commit that wrote base files too must stay
			for _, stats := range meta.PartitionToWriteStats {
				for _, st := range stats {
					mixed = mixed || strings.HasSuffix(st.Path, ".parquet")
				}
			}
			if mixed {
				continue
			}
			for _, stats := range meta.PartitionToWriteStats {
				for _, st := range stats {
					if _, err := os.Stat(filepath.Join(copied, st.Path)); err != nil && strings.Contains(st.Path, ".log.") {
						t.Errorf("%s: commit %s of the copy names %s, which is not there", c.rows, in.Time, st.Path)
					}
				}
			}
		}
	}
}

// C007: what a partition field may be, and what becomes of its values. The table is the exporter's own, with the awkward
// texts; every command line is a case of the original's tests.
func TestC007PartitionFieldWithFormatHudiIsIgnoredWithANotice(t *testing.T) {
	dir, _ := fixture.Exporter(t, "cow_special_values")
	var notes []string
	opts := local.Options{Observe: func(e engine.Event) {
		if n, ok := e.(engine.Noted); ok {
			notes = append(notes, n.Text)
		}
	}}
	target := filepath.Join(t.TempDir(), "out")
	if _, err := export.Run(t.Context(), export.Config{Source: dir, Target: target, Format: export.Hudi, PartitionField: "v"}, opts); err != nil {
		t.Fatal(err)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "ignored") {
		t.Errorf("notes %q", notes)
	}
}

// C005: however many partitions and timeline files there are, the timeline's folder is listed a few times at most.
func TestC005ListsOfTheTimelineFolder(t *testing.T) {
	dir, _ := fixture.Exporter(t, "cow_hive_style_multi")
	world := mem.New("world")
	upload(t, dir, world, "source")
	var c count.Counter
	counted := count.New(world, &c)
	if _, err := export.Run(t.Context(), export.Config{Source: "/source", Target: "/out", Format: export.Hudi, Open: below(counted)}, local.Options{Workers: 4}); err != nil {
		t.Fatal(err)
	}
	stats := c.Stats()
	if n := stats[count.List].Requests; n == 0 || n > 14 {
		t.Errorf("%d lists for a table of 12 partitions: %v", n, stats)
	}
}
