package export_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/engine/local"
	"github.com/sluicelake/sluice/export"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/fault"
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

// An export dies before, after and in the middle of every operation that writes. Whoever waits for _SUCCESS never sees a
// part; the next run with --overwrite gives the whole export and leaves nothing of the first.
func TestKilledAtAnyOperation(t *testing.T) {
	dir, _ := fixture.Spark(t, "mor_basic_0.15.0")
	for _, format := range []export.Format{export.Hudi, export.Parquet, export.JSON} {
		world := mem.New("world")
		upload(t, dir, world, "source")
		config := export.Config{Source: "/source", Target: "/out/snap", Format: format, Rows: export.Snapshot, Compression: ""}
		whole := config
		whole.Target, whole.Open = "/out/whole", below(world)
		if _, err := export.Run(t.Context(), whole, local.Options{Workers: 1, Attempts: 1}); err != nil {
			t.Fatal(err)
		}
		want := shapes(names(t, world, "out/whole"))
		points := 0
		for _, action := range []fault.Action{fault.Before, fault.After, fault.Torn} {
			for n := 1; ; n++ {
				f := fault.New(world, fault.CrashAt(n, action))
				c := config
				c.Open = below(f)
				_, err := export.Run(t.Context(), c, local.Options{Workers: 1, Attempts: 1})
				if !f.Crashed() {
					if err != nil {
						t.Fatal(err)
					}
					break
				}
				points++
				left := names(t, world, "out/snap")
				if slices.Contains(left, export.Successful) && !slices.Equal(shapes(left), want) && !onlyMarkMore(left, want) {
					t.Fatalf("%s, %s operation %d: _SUCCESS stands beside %q, whole is %q", format, action, n, left, want)
				}
				c.Open = below(world)
				if _, err := export.Run(t.Context(), c, local.Options{Workers: 1}); len(left) > 0 && !errors.Is(err, export.ErrTargetExists) {
					t.Fatalf("%s, %s operation %d: the next run without overwrite: %v", format, action, n, err)
				}
				c.Overwrite = true
				if _, err := export.Run(t.Context(), c, local.Options{Workers: 1}); err != nil {
					t.Fatalf("%s, %s operation %d: the next run: %v", format, action, n, err)
				}
				if got := shapes(names(t, world, "out/snap")); !slices.Equal(got, want) {
					t.Fatalf("%s, %s operation %d: the next run gives %q, want %q", format, action, n, got, want)
				}
				if err := storage.RemoveAll(t.Context(), world, "out/snap"); err != nil {
					t.Fatal(err)
				}
			}
			if err := storage.RemoveAll(t.Context(), world, "out/snap"); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%s: killed at %d points", format, points)
		if points < 9 {
			t.Errorf("%s: only %d points", format, points)
		}
	}
}

// onlyMarkMore: the export is whole, and died before it removed the mark of its work.
func onlyMarkMore(left, want []string) bool {
	rest := slices.DeleteFunc(slices.Clone(left), func(n string) bool { return strings.HasPrefix(n, "_sluice") })
	return slices.Equal(shapes(rest), want)
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
