package export_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/engine/local"
	"github.com/sluicelake/sluice/engine/worker"
	"github.com/sluicelake/sluice/export"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/open"
	"github.com/sluicelake/sluice/storage/s3/s3test"
)

// crowd is an engine whose workers get every task twice, and which believes the second answer. Between planning and working
// something may happen, and a worker may be late.
type crowd struct {
	t      *testing.T
	before func()          // the first task runs
	warm   engine.Handlers // of the worker that ran the tasks
	late   []byte          // lines of tasks that are done when the export has ended
}

func (c *crowd) Run(ctx context.Context, tasks []engine.Task, each func(engine.Result) error) error {
	var lines []byte
	for _, t := range tasks {
		line, err := worker.Line(t)
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), line...)
	}
	c.late = append(c.late, lines...)
	if c.before != nil {
		c.before()
		c.before = nil
	}
	if c.warm == nil {
		c.warm = export.Handlers()
	}
	seen := map[string]bool{}
	for _, res := range serve(ctx, c.t, c.warm, lines) {
		if res.Failure != nil {
			return res.Failure
		}
		if !seen[res.ID] {
			seen[res.ID] = true
			continue
		}
		if err := each(res); err != nil {
			return err
		}
	}
	return nil
}

// serve is a worker.
func serve(ctx context.Context, t *testing.T, handlers engine.Handlers, in []byte) []engine.Result {
	t.Helper()
	var out bytes.Buffer
	if err := worker.Serve(ctx, bytes.NewReader(in), &out, handlers, worker.Options{Report: true}); err != nil {
		t.Fatal(err)
	}
	var results []engine.Result
	lines := worker.NewLines(&out)
	for {
		var r engine.Result
		switch err := lines.Next(&r); {
		case errors.Is(err, io.EOF):
			return results
		case err != nil:
			t.Fatal(err)
		}
		results = append(results, r)
	}
}

// filesOf are the files of a folder by name, the token of the run taken out.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		rel = shapes([]string{rel})[0]
		if d.IsDir() {
			out[rel+"/"] = ""
			return nil
		}
		text, err := os.ReadFile(p)
		if d.Name() == "hoodie.properties" { // the second line is the time at which it was written
			lines := bytes.SplitN(text, []byte("\n"), 3)
			text = lines[2]
		}
		if _, twice := out[rel]; twice {
			t.Errorf("%s is there twice", rel)
		}
		out[rel] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func sameFiles(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if held, ok := got[name]; !ok {
			t.Errorf("%s is missing", name)
		} else if held != text {
			t.Errorf("%s has %d bytes, others than the %d of the local export", name, len(held), len(text))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is left", name)
		}
	}
}

// remoteTables have what a worker must see as the planner does: logs, schema history, replaced groups, odd folders, layouts.
var remoteTables = []string{
	"cow_basic_0.15.0", "mor_basic_0.15.0", "mor_basic_1.2.0", "cow_clustered_1.2.0", "cow_schema_on_read_0.15.0", "mor_log_only_bucket_1.0.2",
	"cow_partitions_urlencoded_0.15.0", "mor_pending_compaction_0.15.0", "cow_types_1.0.2",
}

// What workers write that know the table from the order alone is, byte for byte, what a pool writes, although every task ran
// twice; nothing else stays.
func TestWorkersWriteWhatAPoolWrites(t *testing.T) {
	for _, name := range remoteTables {
		dir, _ := fixture.Spark(t, name)
		for _, c := range []export.Config{
			{Format: export.Parquet}, {Format: export.JSON, Rows: export.Snapshot, Compression: "none"}, {Format: export.Hudi, Rows: export.Snapshot},
			{Format: export.CSV, Rows: export.Snapshot, Partitioner: "hoodie-partition-path"},
			{Format: export.JSON, Rows: export.Snapshot, Compression: "none", Begin: "000"},
		} {
			t.Run(name+" "+string(c.Format)+c.Begin, func(t *testing.T) {
				c.Source, c.Parallelism = dir, 8
				c.Target = filepath.Join(t.TempDir(), "pool")
				want, err := export.Run(t.Context(), c, local.Options{})
				if err != nil {
					t.Fatal(err)
				}
				whole := filesOf(t, c.Target)

				c.Target, c.Engine = filepath.Join(t.TempDir(), "crowd"), &crowd{t: t}
				got, err := export.Run(t.Context(), c, local.Options{})
				if err != nil {
					t.Fatal(err)
				}
				sameFiles(t, filesOf(t, c.Target), whole)
				got.Stats.Elapsed = want.Stats.Elapsed
				if got.Stats != want.Stats || got.Copied != want.Copied || len(got.Files) != len(want.Files) {
					t.Errorf("got %+v\nwant %+v", got, want)
				}
			})
		}
	}
}

// The table goes on while an export runs: its properties and its timeline are gone before the first task. Workers export the
// instant that was planned.
func TestWorkersSeeTheTableAsThePlannerDid(t *testing.T) {
	for _, name := range []string{"mor_basic_0.15.0", "cow_clustered_1.2.0", "cow_schema_on_read_0.15.0"} {
		dir, _ := fixture.Spark(t, name)
		c := export.Config{Source: dir, Target: filepath.Join(t.TempDir(), "pool"), Format: export.JSON, Rows: export.Snapshot, Compression: "none", Parallelism: 8}
		if _, err := export.Run(t.Context(), c, local.Options{}); err != nil {
			t.Fatal(err)
		}
		want := filesOf(t, c.Target)
		c.Target = filepath.Join(t.TempDir(), "crowd")
		c.Engine = &crowd{t: t, before: func() {
			if err := os.RemoveAll(filepath.Join(dir, ".hoodie")); err != nil {
				t.Fatal(err)
			}
		}}
		if _, err := export.Run(t.Context(), c, local.Options{}); err != nil {
			t.Fatal(err)
		}
		sameFiles(t, filesOf(t, c.Target), want)
	}
}

// A worker that nobody waits for any more, because its machine was cut off, leaves nothing in an export that is whole, nor
// where one was given up; on a disk and on S3.
func TestALateWorkerLeavesNothing(t *testing.T) {
	dir, _ := fixture.Spark(t, "mor_basic_0.15.0")
	server := s3test.Start(t)
	server.Setenv(t)
	remote := server.Store(t)
	for _, target := range []string{filepath.Join(t.TempDir(), "out"), storage.Join(remote.URL(), "out")} {
		for _, format := range []export.Format{export.Parquet, export.Hudi} {
			c := export.Config{Source: dir, Target: target, Format: format, Rows: export.Snapshot, Overwrite: true}
			late := &crowd{t: t}
			c.Engine = late
			if _, err := export.Run(t.Context(), c, local.Options{}); err != nil {
				t.Fatal(err)
			}
			store, err := openTarget(t, target)
			if err != nil {
				t.Fatal(err)
			}
			before := names(t, store, "")
			for worker, handlers := range map[string]engine.Handlers{"new": export.Handlers(), "busy": late.warm} {
				results := serve(t.Context(), t, handlers, late.late)
				for _, r := range results {
					if r.Failure == nil || !strings.Contains(r.Failure.Message, "has ended") {
						t.Errorf("%s: late task %s of a %s worker: %+v", target, r.ID, worker, r.Failure)
					}
				}
				if len(results) == 0 || !slices.Equal(names(t, store, ""), before) {
					t.Errorf("%s: %d late tasks of a %s worker left %q of %q", target, len(results), worker, names(t, store, ""), before)
				}
			}
			if !slices.Contains(before, export.Successful) || strings.Contains(strings.Join(before, " "), "_sluice") {
				t.Errorf("%s holds %q", target, before)
			}
		}
	}
}

// A worker that reports what it did not write, or wrote elsewhere, does not make an export.
func TestAFileThatOnlyTheWorkerSees(t *testing.T) {
	dir, _ := fixture.Spark(t, "cow_basic_0.15.0")
	target := filepath.Join(t.TempDir(), "out")
	c := export.Config{Source: dir, Target: target, Format: export.Parquet, Engine: engineFunc(func(_ context.Context, tasks []engine.Task, each func(engine.Result) error) error {
		for _, task := range tasks {
			if err := each(engine.Result{ID: task.ID, Out: json.RawMessage(`{"out":{"files":[{"name":"part-00000-elsewhere.parquet","size":1}]}}`)}); err != nil {
				return err
			}
		}
		return nil
	})}
	_, err := export.Run(t.Context(), c, local.Options{})
	if err == nil || !strings.Contains(err.Error(), "part-00000-elsewhere.parquet") {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(target, export.Successful)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("_SUCCESS: %v", err)
	}
}

type engineFunc func(context.Context, []engine.Task, func(engine.Result) error) error

func (f engineFunc) Run(ctx context.Context, tasks []engine.Task, each func(engine.Result) error) error {
	return f(ctx, tasks, each)
}

func openTarget(t *testing.T, url string) (storage.Store, error) {
	return open.Store(t.Context(), url, open.Options{})
}
