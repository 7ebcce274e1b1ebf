package service_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/logfile"
	"github.com/sluicelake/sluice/hudi/service"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/local"
	"github.com/sluicelake/sluice/storage/mem"
)

// all reads every column of every row as text, sorted; as of an instant where one is given.
func all(t *testing.T, dir, asOf string) []string {
	t.Helper()
	ctx := context.Background()
	table, err := hudi.Open(ctx, dir, hudi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := table.Snapshot(ctx, hudi.Query{AsOf: asOf})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for batch, err := range snap.Scan(ctx, hudi.Scan{}) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(batch.NumRows()) {
			row := ""
			for c := range int(batch.NumCols()) {
				row += batch.Column(c).ValueStr(i) + "|"
			}
			out = append(out, row)
		}
		batch.Release()
	}
	slices.Sort(out)
	return out
}

func writes(t *testing.T, dir string) (completed []timeline.Instant, pending []timeline.Instant) {
	t.Helper()
	ctx := context.Background()
	s := store(t, dir)
	cfg, err := config.Load(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	tl, err := timeline.Load(ctx, s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return tl.Completed().Writes().Instants(), tl.Pending().Instants()
}

func store(t *testing.T, dir string) storage.Store {
	t.Helper()
	s, err := local.New(dir, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var noMetadata = map[string]string{"hoodie.metadata.enable": "false"}

// The newest write of tables of every kind is undone: what is read then is what time travel read before, which Apache Hudi's
// own answers hold (fixture "timeTravel").
func TestRollbackOfTheNewestWrite(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{
		"cow_no_metadata_table_0.15.0", "cow_basic_0.15.0", "cow_basic_0.14.0", "cow_nonpartitioned_0.15.0", "mor_basic_0.15.0",
		"cow_insert_overwrite_0.15.0", "cow_delete_partition_0.15.0", "mor_rollback_0.15.0", "mor_duplicates_0.15.0", "mor_compacted_0.15.0",
		"mor_nonpartitioned_no_metadata_table_0.15.0", "mor_log_only_inmemory_0.15.0", "cow_table_version_6_1.2.0", "mor_table_version_6_1.2.0",
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := fixture.Spark(t, name)
			for rounds := 0; ; rounds++ {
				done, _ := writes(t, dir)
				if len(done) < 2 {
					if rounds == 0 {
						t.Fatal("the table has one write only")
					}
					break
				}
				last, before := done[len(done)-1], done[len(done)-2]
				want := all(t, dir, before.Time)
				undone, err := service.Rollback(ctx, store(t, dir), service.RollbackOptions{Instant: last.Time, Conf: noMetadata})
				var cannot *service.CannotUndoError
				if errors.As(err, &cannot) && rounds > 0 {
					break // a clean stands before it
				}
				if err != nil || len(undone) != 1 || undone[0].Instant != last.Time {
					t.Fatalf("%s: %v, %v", last.Time, undone, err)
				}
				if got := all(t, dir, ""); !slices.Equal(got, want) {
					t.Fatalf("after the rollback of %s: %v\nwant %v", last.Time, got, want)
				}
			}
			for _, f := range validate(t, dir).Findings {
				if f.Severity != service.Info && f.Code != service.KeyDuplicate {
					t.Errorf("%v", f)
				}
			}
		})
	}
}

// Failed writes of Apache Hudi: the snapshot stays as Apache Hudi reads it, and nothing of them is left.
func TestRollbackOfSparksFailedWrites(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"failed_write_cow_0.15.0", "failed_write_mor_0.15.0"} {
		dir, expect := fixture.Spark(t, name)
		want := all(t, dir, "")
		if len(want) != expect.Snapshot.Count {
			t.Fatalf("%s: %d rows, Apache Hudi reads %d", name, len(want), expect.Snapshot.Count)
		}
		_, pending := writes(t, dir)
		if _, err := service.Rollback(ctx, store(t, dir), service.RollbackOptions{}); !errors.Is(err, config.ErrUnsupported) {
			t.Errorf("%s: with its metadata table: %v", name, err)
		}
		undone, err := service.Rollback(ctx, store(t, dir), service.RollbackOptions{Conf: noMetadata})
		if err != nil || len(undone) != 1 || undone[0].Instant != pending[0].Time {
			t.Fatalf("%s: %v, %v", name, undone, err)
		}
		if got := all(t, dir, ""); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		for _, f := range validate(t, dir).Findings {
			if f.Severity != service.Info {
				t.Errorf("%s: %v", name, f)
			}
		}
		if undone, err := service.Rollback(ctx, store(t, dir), service.RollbackOptions{}); err != nil || len(undone) != 0 {
			t.Errorf("%s: a second time: %v, %v", name, undone, err)
		}
	}
}

// The rollback block has the name, the size and the content of the one that Apache Hudi 0.15.0 wrote in mor_rollback_0.15.0,
// but for the two instants.
func TestRollbackBlockAsApacheHudiWritesIt(t *testing.T) {
	theirs, _ := fixture.Spark(t, "mor_rollback_0.15.0")
	want := read(t, glob(t, theirs, "dt=x/.*.log.3_1-0-1"))
	ours, _ := fixture.Spark(t, "failed_write_mor_0.15.0")
	if _, err := service.Rollback(context.Background(), store(t, ours), service.RollbackOptions{Conf: noMetadata}); err != nil {
		t.Fatal(err)
	}
	got := read(t, glob(t, ours, "dt=x/.*.log.2_1-0-1"))
	_ = read(t, glob(t, ours, "dt=y/.*.log.3_1-0-1"))
	if len(got) != len(want) {
		t.Errorf("%d bytes, Apache Hudi wrote %d", len(got), len(want))
	}
	frame := func(body []byte) string { // Java writes the headers in the order of a hash map
		m := mem.New("block")
		if _, err := m.Put(context.Background(), "log", bytes.NewReader(body), storage.PutOptions{}); err != nil {
			t.Fatal(err)
		}
		obj, err := m.Open(context.Background(), "log")
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for b, err := range logfile.Blocks(context.Background(), obj) {
			if err != nil {
				t.Fatal(err)
			}
			h, err := json.Marshal(b)
			if err != nil {
				t.Fatal(err)
			}
			text += instants.ReplaceAllString(string(h), "#")
		}
		return text
	}
	if g, w := frame(got), frame(want); g != w || !strings.Contains(g, `"targetInstantTime":"#"`) {
		t.Errorf("%s\nwant %s", g, w)
	}
	if left, err := filepath.Glob(filepath.Join(ours, "dt=z", "*")); err != nil || len(left) != 0 {
		t.Errorf("left in the partition that the write made: %v, %v", left, err)
	}
}

var instants = regexp.MustCompile(`\d{17}`)

func glob(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, %v", pattern, found, err)
	}
	return found[0]
}

func TestRollbackRefuses(t *testing.T) {
	ctx := context.Background()
	refused := func(name, what string, pick func([]timeline.Instant) string, spoil func(dir string)) {
		dir, _ := fixture.Spark(t, name)
		done, _ := writes(t, dir)
		if spoil != nil {
			spoil(dir)
		}
		before := all(t, dir, "")
		_, err := service.Rollback(ctx, store(t, dir), service.RollbackOptions{Instant: pick(done), Conf: noMetadata})
		var cannot *service.CannotUndoError
		if !errors.As(err, &cannot) || !strings.Contains(cannot.Why, what) || cannot.NextStep() == "" {
			t.Errorf("%s: %v, want it refused because of: %s", name, err, what)
		}
		if !slices.Equal(before, all(t, dir, "")) {
			t.Errorf("%s: refused, and rows are gone", name)
		}
	}
	first := func(in []timeline.Instant) string { return in[0].Time }
	newest := func(in []timeline.Instant) string { return in[len(in)-1].Time }
	refused("cow_basic_0.15.0", "is newer", first, nil)
	refused("cow_basic_0.15.0", "no write of this instant", func([]timeline.Instant) string { return "20200101000000000" }, nil)
	refused("cow_no_metadata_table_0.15.0", "a savepoint holds it", newest, func(dir string) {
		done, _ := writes(t, dir)
		body, err := timeline.Encode(&timeline.SavepointMetadata{By: "anna", Partitions: map[string]timeline.SavepointPartition{}, Version: 1}, 1, "")
		if err != nil {
			t.Fatal(err)
		}
		keep(t, dir, ".hoodie/"+newest(done)+".savepoint.inflight", nil)
		keep(t, dir, ".hoodie/"+newest(done)+".savepoint", body)
	})
	refused("cow_no_metadata_table_0.15.0", "the cleaner removed", newest, func(dir string) { remove(t, dir, base(t, dir, "dt=y", 0)) })
	refused("cow_no_metadata_table_0.15.0", "archived", newest, func(dir string) {
		done, _ := writes(t, dir)
		for _, f := range done[0].Files {
			if err := os.Remove(filepath.Join(dir, f)); err != nil {
				t.Fatal(err)
			}
		}
	})
	dir, _ := fixture.Spark(t, "cow_basic_1.2.0")
	if _, err := service.Rollback(ctx, store(t, dir), service.RollbackOptions{Instant: "1"}); !errors.Is(err, config.ErrUnsupported) {
		t.Error(fmt.Errorf("version 9: %w", err))
	}
}

// The same failed delta commit, whose writer left its markers, in either kind: the rollback finds by them what it finds by
// listing the table.
func TestRollbackByMarkers(t *testing.T) {
	ctx := context.Background()
	after := func(mark func(dir, at string, files []string)) []string {
		dir, _ := fixture.Spark(t, "failed_write_mor_0.15.0")
		_, pending := writes(t, dir)
		at := pending[0].Time
		appended := []string{rel(t, dir, glob(t, dir, "dt=x/.*.log.1_*")) + ".marker.APPEND", rel(t, dir, glob(t, dir, "dt=y/.*.log.2_*")) + ".marker.APPEND"}
		made := rel(t, dir, glob(t, dir, "dt=z/*.parquet"))
		// A task that died before its file, and one whose marker stands twice.
		mark(dir, at, append(appended, made+".marker.CREATE", made+".marker.MERGE", "dt=v/never-0_7-0-0_"+at+".parquet.marker.CREATE"))
		want := all(t, dir, "")
		if undone, err := service.Rollback(ctx, store(t, dir), service.RollbackOptions{Conf: noMetadata}); err != nil || len(undone) != 1 {
			t.Fatalf("%v, %v", undone, err)
		}
		if got := all(t, dir, ""); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		var names []string
		for info, err := range store(t, dir).List(ctx, "", storage.ListOptions{Recursive: true}) {
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(info.Name, ".rollback") {
				names = append(names, info.Name)
			}
		}
		return names
	}
	listed := after(func(string, string, []string) {})
	direct := after(func(dir, at string, files []string) {
		for _, f := range files {
			keep(t, dir, ".hoodie/.temp/"+at+"/"+f, nil)
		}
	})
	served := after(func(dir, at string, files []string) {
		keep(t, dir, ".hoodie/.temp/"+at+"/MARKERS.type", []byte("TIMELINE_SERVER_BASED"))
		keep(t, dir, ".hoodie/.temp/"+at+"/MARKERS0", []byte(strings.Join(files, "\n")+"\n"))
	})
	if !slices.Equal(direct, listed) || !slices.Equal(served, listed) {
		t.Errorf("left by listing: %v\nby markers: %v\nby markers of the timeline server: %v", listed, direct, served)
	}
}

func rel(t *testing.T, dir, file string) string {
	t.Helper()
	r, err := filepath.Rel(dir, file)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A commit that is empty, or no JSON: nobody can read the table until it is rolled back.
func TestRollbackOfACommitThatNobodyCanRead(t *testing.T) {
	for _, body := range []string{"", `{"partitionToWr`} {
		dir, _ := fixture.Spark(t, "cow_no_metadata_table_0.15.0")
		done, _ := writes(t, dir)
		want := all(t, dir, done[0].Time)
		keep(t, dir, done[1].File, []byte(body))
		if worst := validate(t, dir).Worst(); worst != service.Error {
			t.Errorf("%q: the worst finding is %q", body, worst)
		}
		if undone, err := service.Rollback(context.Background(), store(t, dir), service.RollbackOptions{Instant: done[1].Time}); err != nil || len(undone) != 1 {
			t.Fatalf("%q: %v, %v", body, undone, err)
		}
		if got := all(t, dir, ""); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", body, got, want)
		}
	}
}

// Duplicate keys are found within a bound of memory: a tenth of the hashes fits.
func TestDuplicatesBeyondMemory(t *testing.T) {
	dir, _ := fixture.Spark(t, "cow_row_groups_0.15.0")
	s := store(t, dir)
	ctx := context.Background()
	count := func(o service.ValidateOptions) (int64, int) {
		o.TempDir = t.TempDir()
		r, err := service.Validate(ctx, s, o)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, f := range r.Findings {
			if f.Code == service.KeyDuplicate {
				n++
			}
		}
		if left, err := os.ReadDir(o.TempDir); err != nil || len(left) > 0 {
			t.Errorf("left in the folder for spilled data: %v, %v", left, err)
		}
		return r.Rows, n
	}
	rows, none := count(service.ValidateOptions{Memory: 1})
	if none != 0 || rows < 1500 {
		t.Fatalf("%d rows, %d duplicates", rows, none)
	}
	b := base(t, dir, "", 0)
	_, rest, _ := strings.Cut(b, "_")
	keep(t, dir, filepath.Join(filepath.Dir(b), "00000000-0000-4000-8000-000000000000-0_"+rest), read(t, filepath.Join(dir, b)))
	_, spilled := count(service.ValidateOptions{Memory: 1, Limit: -1})
	_, held := count(service.ValidateOptions{Limit: -1})
	if spilled != 1001 || spilled != held { // a thousand are named, the others counted
		t.Errorf("%d duplicates with spilling, %d without", spilled, held)
	}
}
