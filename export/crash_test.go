package export_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicelake/sluice/engine/local"
	"github.com/sluicelake/sluice/export"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/internal/racing"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/fault"
	disk "github.com/sluicelake/sluice/storage/local"
	"github.com/sluicelake/sluice/storage/mem"
	"github.com/sluicelake/sluice/storage/s3/s3test"
)

// upload puts a table's files below a folder of a store.
func upload(t *testing.T, dir string, to storage.Store, prefix string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		_, err = to.Put(t.Context(), storage.Join(prefix, filepath.ToSlash(rel)), f, storage.PutOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, s storage.Store, prefix string) []string {
	t.Helper()
	var out []string
	for info, err := range s.List(t.Context(), prefix, storage.ListOptions{Recursive: true}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.TrimPrefix(info.Name, prefix+"/"))
	}
	slices.Sort(out)
	return out
}

// below opens "/name" as a folder of one store.
func below(world storage.Store) func(context.Context, string) (storage.Store, error) {
	return func(_ context.Context, url string) (storage.Store, error) {
		return storage.Sub(world, strings.TrimPrefix(url, "/"))
	}
}

// crashCase is an export whose every operation is killed.
type crashCase struct {
	name   string
	source string
	config export.Config
}

func crashCases() []crashCase {
	return []crashCase{
		{"hudi", "mor_basic_0.15.0", export.Config{Format: export.Hudi, Rows: export.Snapshot}},
		{"parquet, copied", "cow_basic_1.2.0", export.Config{Format: export.Parquet}},
		{"parquet, decoded", "mor_basic_0.15.0", export.Config{Format: export.Parquet, Rows: export.Snapshot}},
		{"parquet in folders", "mor_basic_0.15.0", export.Config{Format: export.Parquet, Rows: export.Snapshot, PartitionField: "dt"}},
		{"orc", "mor_basic_0.15.0", export.Config{Format: export.ORC, Rows: export.Snapshot}},
		{"json", "mor_basic_0.15.0", export.Config{Format: export.JSON, Rows: export.Snapshot}},
		{"csv", "mor_basic_0.15.0", export.Config{Format: export.CSV, Rows: export.Snapshot}},
	}
}

// An export dies before, after and in the middle of every operation that writes. Whoever waits for _SUCCESS never sees a
// part; the next run with the same arguments keeps what is done, and gives byte for byte what an undisturbed one gives.
func TestKilledAtAnyOperation(t *testing.T) {
	total := 0
	for _, c := range crashCases() {
		dir, _ := fixture.Spark(t, c.source)
		points := 0
		for _, action := range []fault.Action{fault.Before, fault.After, fault.Torn} {
			world := mem.New("world")
			upload(t, dir, world, "source")
			points += killEverywhere(t, c, world, action)
		}
		t.Logf("%s: killed at %d points", c.name, points)
		if points < 30/racing.Step {
			t.Errorf("%s: only %d points", c.name, points)
		}
		total += points
	}
	t.Logf("killed at %d points", total)
}

// The same on a file system, where folders are things of their own.
func TestKilledAtAnyOperationOnDisk(t *testing.T) {
	for _, c := range crashCases()[:4] {
		dir, _ := fixture.Spark(t, c.source)
		world, err := disk.New(t.TempDir(), disk.Options{})
		if err != nil {
			t.Fatal(err)
		}
		upload(t, dir, world, "source")
		t.Logf("%s: killed at %d points", c.name, killEverywhere(t, c, world, fault.Before))
	}
}

// killEverywhere kills an export at every operation that writes, runs it again, and gives the number of operations.
func killEverywhere(t *testing.T, c crashCase, world storage.Store, action fault.Action) (points int) {
	t.Helper()
	config := c.config
	config.Source, config.Target = "/source", "/out/snap"
	config.Lease, config.Patience = time.Hour, time.Millisecond
	config.SetPack(1)
	run := func(store storage.Store, target string, overwrite bool) (export.Summary, error) {
		config := config
		config.Open, config.Target, config.Overwrite = below(store), target, overwrite
		return export.Run(t.Context(), config, local.Options{Workers: 1, Attempts: 1})
	}
	whole, err := run(world, "/out/whole", false)
	if err != nil {
		t.Fatal(err)
	}
	want := contents(t, world, "out/whole")
	for n := 1; ; n += racing.Step {
		f := fault.New(world, fault.CrashAt(n, action))
		// Every other export replaces one that is there.
		overwrite := n%2 == 0
		if overwrite {
			if err := copyBelow(t.Context(), world, "out/whole", "out/snap"); err != nil {
				t.Fatal(err)
			}
		}
		_, err := run(f, "/out/snap", overwrite)
		if !f.Crashed() {
			if err != nil {
				t.Fatal(err)
			}
			return points
		}
		points++
		left := contents(t, world, "out/snap")
		kept := 0
		for name, text := range left {
			if strings.HasPrefix(name, "_sluice_export/done/") && text != "" {
				kept++
			}
			if strings.HasPrefix(name, "_sluice") {
				delete(left, name)
			}
		}
		if _, ok := left[export.Successful]; ok && !maps.Equal(left, want) {
			t.Fatalf("%s, %s operation %d: _SUCCESS stands beside %q", c.name, action, n, slices.Sorted(maps.Keys(left)))
		}
		sum, err := run(world, "/out/snap", overwrite)
		_, published := left[export.Successful]
		switch {
		case overwrite && err == nil:
		case published && kept == 0 && errors.Is(err, export.ErrTargetExists): // all was done
		case err != nil:
			t.Fatalf("%s, %s operation %d: the next run: %v", c.name, action, n, err)
		}
		if !published && sum.Kept != kept {
			t.Errorf("%s, %s operation %d: %d tasks were done, %d are kept", c.name, action, n, kept, sum.Kept)
		}
		if err == nil && !published && (sum.Stats.Rows != whole.Stats.Rows || len(sum.Files) != len(whole.Files)) {
			t.Errorf("%s, %s operation %d: the next run says %d rows in %d files", c.name, action, n, sum.Stats.Rows, len(sum.Files))
		}
		if got := contents(t, world, "out/snap"); !maps.Equal(got, want) {
			t.Fatalf("%s, %s operation %d: the next run gives %q, want %q", c.name, action, n, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
		if err := storage.RemoveAll(t.Context(), world, "out/snap"); err != nil {
			t.Fatal(err)
		}
	}
}

func copyBelow(ctx context.Context, world storage.Store, from, to string) error {
	var names []string
	for info, err := range world.List(ctx, from, storage.ListOptions{Recursive: true}) {
		if err != nil {
			return err
		}
		names = append(names, info.Name)
	}
	for _, name := range names {
		if err := world.Copy(ctx, name, to+strings.TrimPrefix(name, from)); err != nil {
			return err
		}
	}
	return nil
}

// contents gives the objects below a folder, without the tokens of runs in names and times in properties.
func contents(t *testing.T, s storage.Store, prefix string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range names(t, s, prefix) {
		text, err := storage.ReadAll(t.Context(), s, prefix+"/"+name, 0)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "hoodie.properties") {
			text = regexp.MustCompile("(?m)^#.*$").ReplaceAll(text, nil)
		}
		out[shapes([]string{name})[0]] = string(text)
	}
	return out
}

// shapes takes the token of a run out of file names.
func shapes(in []string) []string {
	out := slices.Clone(in)
	for i, n := range out {
		if dir, file := filepath.Split(n); strings.HasPrefix(file, "part-") {
			out[i] = fmt.Sprintf("%s%s-<token>%s", dir, file[:10], file[47:])
		}
	}
	slices.Sort(out)
	return out
}

// The same export between a local disk and a real S3 server, in every direction, with the environment's settings alone.
func TestBetweenDiskAndS3(t *testing.T) {
	dir, expect := fixture.Spark(t, "cow_basic_0.15.0") // before the server, which changes the working directory
	server := s3test.Start(t)
	server.Setenv(t)
	remote := server.Store(t)
	upload(t, dir, remote, "tables/orders")
	source := storage.Join(remote.URL(), "tables/orders")
	for name, c := range map[string]export.Config{
		"S3 to disk": {Source: source, Target: filepath.Join(t.TempDir(), "out")},
		"disk to S3": {Source: dir, Target: source + "-a"},
		"S3 to S3":   {Source: source, Target: source + "-b"},
	} {
		for _, format := range []export.Format{export.Parquet, export.Hudi} {
			t.Run(name+" "+string(format), func(t *testing.T) {
				c.Format = format
				c.Target += "-" + string(format)
				sum, err := export.Run(t.Context(), c, local.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if format == export.Parquet && sum.Stats.Rows != int64(expect.Snapshot.Count) {
					t.Errorf("%d rows, want %d", sum.Stats.Rows, expect.Snapshot.Count)
				}
				if _, err := export.Run(t.Context(), c, local.Options{}); !errors.Is(err, export.ErrTargetExists) {
					t.Errorf("a second export: %v", err)
				}
			})
		}
	}
}
