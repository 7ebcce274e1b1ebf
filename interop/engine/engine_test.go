//go:build interop

package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/engine/enginetest"
	"github.com/sluicelake/sluice/engine/spark"
	"github.com/sluicelake/sluice/engine/worker"
	"github.com/sluicelake/sluice/export"
	"github.com/sluicelake/sluice/internal/quicksnappy"
	cluster "github.com/sluicelake/sluice/interop/engine"
	"github.com/sluicelake/sluice/interop/sluice"
	hudi "github.com/sluicelake/sluice/interop/spark"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/local"
	"github.com/sluicelake/sluice/storage/s3/s3test"
)

// killing names, in the environment of a worker, a folder: the first worker that has written what task killingTask is about,
// and has not told yet, kills its executor and the worker daemon above that. SLUICE_* reaches executors.
const (
	killing     = "SLUICE_INTEROP_KILL"
	killingTask = "rows-00010"
)

// The program of the tests is shipped to executors as the worker: it knows the tasks of the suite, and those of exports.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "task" {
		os.Exit(work())
	}
	os.Exit(m.Run())
}

func work() int {
	handlers := export.Handlers()
	maps.Copy(handlers, enginetest.Handlers())
	if dir := os.Getenv(killing); dir != "" {
		rows := handlers["export.rows"]
		handlers["export.rows"] = func(ctx context.Context, task engine.Task, scope engine.Scope) (json.RawMessage, engine.Stats, error) {
			out, stats, err := rows(ctx, task, scope)
			if err == nil && task.ID == killingTask {
				err = killOnce(dir)
			}
			return out, stats, err
		}
	}
	if err := quicksnappy.Use(); err != nil { // as the program that plans
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, stop := worker.UntilOrphaned(context.Background())
	defer stop()
	err := worker.Serve(ctx, os.Stdin, os.Stdout, handlers, worker.Options{Report: true, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func killOnce(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, "killed"), os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), enginetest.KillAncestors(2))
}

func suite(t *testing.T, kill int, opts spark.Options) enginetest.Suite {
	return enginetest.Suite{
		New: func(t *testing.T, observe engine.Observer) engine.Engine {
			o := opts
			o.Observe = func(e engine.Event) {
				if n, ok := e.(engine.Noted); ok {
					t.Log(n.Text)
				}
				observe(e)
			}
			c, err := spark.New(o)
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		Kill:   kill,
		Shared: func(t *testing.T) string { return t.TempDir() },
	}
}

// In local mode the executor is the driver: only a worker can be killed.
func TestConformanceOfSparkInOneProcess(t *testing.T) {
	cluster.UseSpark(t)
	enginetest.Run(t, suite(t, 0, spark.Options{Master: "local[2]"}))
}

// Executors are processes of their own, which a task kills.
func TestConformanceOfSparkLocalCluster(t *testing.T) {
	cluster.UseSpark(t)
	enginetest.Run(t, suite(t, 1, spark.Options{Master: "local-cluster[2,2,1024]", PerProcess: 3}))
}

// A master and two workers: a task kills its executor and the worker daemon, which is a machine that is lost.
func TestConformanceOfASparkCluster(t *testing.T) {
	c := cluster.Standalone(t, 2)
	enginetest.Run(t, suite(t, 2, spark.Options{Master: c.Master, Args: []string{"--conf", "spark.executor.memory=512m", "--conf", "spark.executor.cores=1"}}))
	if n := c.Workers(t); n != 1 && !t.Failed() {
		t.Errorf("%d workers live: none was killed", n)
	}
	if t.Failed() {
		t.Log(c.Logs())
	}
}

// slices makes a merge-on-read table of 24 file slices with base files and logs, in partitions whose names no ASCII holds.
func slices(t *testing.T) string {
	t.Helper()
	table := t.TempDir()
	s := hudi.Hudi(t, hudi.Hudi1)
	options := hudi.Options{
		"hoodie.table.name": "slices", "hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.datasource.write.recordkey.field": "id",
		"hoodie.datasource.write.precombine.field": "ts", "hoodie.datasource.write.partitionpath.field": "dt", "hoodie.metadata.enable": "false",
	}
	const row = "cast(id as int) id, concat('näme-', id) name, id / 7.0 price, cast(%d as bigint) ts, concat('région 北 ', id %% 24) dt from range(%d)"
	for _, w := range []hudi.Write{{Query: fmt.Sprintf("select "+row, 1, 4800)}, {Query: fmt.Sprintf("select "+row, 2, 480)}} {
		w.Options = options
		if err := s.Write(table, w); err != nil {
			t.Fatal(err)
		}
	}
	return table
}

func exportTo(t *testing.T, source, target, format string, args ...string) error {
	t.Helper()
	_, err := sluice.Run(t, append([]string{"export", "--source-base-path", source, "--target-output-path", target, "--output-format", format,
		"--query-type", "snapshot", "--parallelism", "24"}, args...)...)
	return err
}

// files are the contents of a folder by name; tokens of runs and the date in hoodie.properties are taken out.
func files(t *testing.T, s storage.Store, prefix string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for info, err := range s.List(t.Context(), prefix, storage.ListOptions{Recursive: true}) {
		if err != nil {
			t.Fatal(err)
		}
		text, err := storage.ReadAll(t.Context(), s, info.Name, 0)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(info.Name, prefix+"/")
		switch dir, file := filepath.Split(name); {
		case strings.HasPrefix(file, "part-"):
			name = dir + file[:10] + file[47:]
		case file == "hoodie.properties":
			text = []byte(strings.SplitN(string(text), "\n", 3)[2])
		}
		if _, twice := out[name]; twice {
			t.Errorf("%s is there twice", info.Name)
		}
		out[name] = string(text)
	}
	return out
}

func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	s, err := local.New(dir, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return files(t, s, "")
}

func same(t *testing.T, want, got map[string]string) {
	t.Helper()
	if maps.Equal(want, got) {
		return
	}
	for name, text := range want {
		if held, ok := got[name]; !ok || held != text {
			t.Errorf("%s: %d bytes, there: %v; the local export has %d", name, len(held), ok, len(text))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is left", name)
		}
	}
}

// An export of 24 slices on a cluster of a master and two workers gives the very bytes of a local one, in every format, and
// loses nothing when a worker daemon is killed in the middle of it.
func TestExportOnASparkCluster(t *testing.T) {
	source := slices(t)
	out := t.TempDir()
	want := map[string]map[string]string{}
	for _, format := range []string{"parquet", "json", "hudi"} {
		target := filepath.Join(out, "local-"+format)
		if err := exportTo(t, source, target, format); err != nil {
			t.Fatal(err)
		}
		want[format] = folder(t, target)
	}
	if n := len(want["parquet"]); n != 25 { // and _SUCCESS
		t.Fatalf("%d files, want 24 and _SUCCESS", n)
	}

	c := cluster.Standalone(t, 2)
	onCluster := func(more ...string) []string {
		args := append([]string{"--engine", "spark", "--master", c.Master, "--shared-files"}, more...)
		return append(args, "--", "--conf", "spark.executor.memory=512m", "--conf", "spark.executor.cores=1")
	}
	for _, format := range []string{"json", "hudi"} {
		target := filepath.Join(out, "spark-"+format)
		if err := exportTo(t, source, target, format, onCluster()...); err != nil {
			t.Fatalf("%v\n%s", err, c.Logs())
		}
		same(t, want[format], folder(t, target))
	}

	t.Run("S3, with keys that executors have from the driver alone", func(t *testing.T) { onS3(t, source, want["json"], onCluster()) })

	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Setenv(killing, dir)
	target := filepath.Join(out, "spark-killed")
	if err := exportTo(t, source, target, "parquet", onCluster("--worker", self)...); err != nil {
		t.Fatalf("%v\n%s", err, c.Logs())
	}
	same(t, want["parquet"], folder(t, target))
	if _, err := os.Stat(filepath.Join(dir, "killed")); err != nil || c.Workers(t) != 1 {
		t.Errorf("no worker daemon was killed: %v, %d live", err, c.Workers(t))
	}
}

func onS3(t *testing.T, source string, want map[string]string, args []string) {
	server := s3test.Start(t)
	server.Setenv(t)
	store := server.Store(t)
	err := filepath.WalkDir(source, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		rel, err := filepath.Rel(source, p)
		if err != nil {
			return err
		}
		_, err = store.Put(t.Context(), "table/"+filepath.ToSlash(rel), f, storage.PutOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string(nil), args...)
	for i, a := range args {
		if a == "--shared-files" { // not needed: a bucket is shared
			args = append(args[:i], args[i+1:]...)
			break
		}
	}
	if err := exportTo(t, storage.Join(store.URL(), "table"), storage.Join(store.URL(), "out"), "json", args...); err != nil {
		t.Fatal(err)
	}
	same(t, want, files(t, store, "out"))
}

// A worker that executors can't run is an error that says so.
func TestAWorkerForAnotherProcessor(t *testing.T) {
	cluster.UseSpark(t)
	// An ELF header of a processor that no machine of ours has (EM_SPARCV9, big-endian), and nothing behind it.
	header := append([]byte("\x7fELF\x02\x02\x01"), make([]byte, 57)...)
	copy(header[16:], []byte{0, 2, 0, 43, 0, 0, 0, 1})
	program := filepath.Join(t.TempDir(), "sluice")
	if err := os.WriteFile(program, header, 0o777); err != nil {
		t.Fatal(err)
	}
	c, err := spark.New(spark.Options{Master: "local[1]", Worker: program})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Run(t.Context(), []engine.Task{{ID: "a", Kind: "enginetest", Spec: []byte("{}")}}, func(engine.Result) error { return nil })
	var e *spark.Error
	if !errors.As(err, &e) || !strings.Contains(e.Next, "--worker") {
		t.Errorf("%v", err)
	}
}
