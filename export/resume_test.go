package export_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/engine/local"
	"github.com/sluicelake/sluice/export"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/fault"
	disk "github.com/sluicelake/sluice/storage/local"
	"github.com/sluicelake/sluice/storage/mem"
)

// killed leaves an export of the small table in /out that died at its n-th write.
func killed(t *testing.T, c export.Config, n int) (storage.Store, export.Config) {
	t.Helper()
	dir, _ := fixture.Spark(t, "mor_basic_0.15.0")
	world := mem.New("world")
	upload(t, dir, world, "source")
	c.Source, c.Target, c.Lease, c.Patience = "/source", "/out", time.Hour, time.Millisecond
	c.SetPack(1)
	f := fault.New(world, fault.CrashAt(n, fault.After))
	c.Open = below(f)
	if _, err := export.Run(t.Context(), c, local.Options{Workers: 1, Attempts: 1}); err == nil || !f.Crashed() {
		t.Fatalf("not killed: %v", err)
	}
	c.Open = below(world)
	return world, c
}

func nextStep(err error) string {
	var hinted interface{ NextStep() string }
	if errors.As(err, &hinted) {
		return hinted.NextStep()
	}
	return ""
}

// What an export with other arguments left is neither finished nor replaced, but with --overwrite.
func TestOtherArgumentsDoNotFinishAnExport(t *testing.T) {
	base := export.Config{Format: export.JSON, Rows: export.Snapshot}
	for name, change := range map[string]func(*export.Config){
		`--output-format was "json", is "csv"`:                func(c *export.Config) { c.Format = export.CSV },
		`--query-type was "snapshot", is "read_optimized"`:    func(c *export.Config) { c.Rows = export.ReadOptimized },
		`--as-of was "", is "2030-01-01"`:                     func(c *export.Config) { c.AsOf = "2030-01-01" },
		`--output-partition-field was "", is "dt"`:            func(c *export.Config) { c.PartitionField = "dt" },
		`--compression was "", is "none"`:                     func(c *export.Config) { c.Compression = "none" },
		`--timezone was "UTC", is "Europe/Berlin"`:            func(c *export.Config) { c.Zone, _ = time.LoadLocation("Europe/Berlin") },
		`--output-partitioner was "", is "fields:dt"`:         func(c *export.Config) { c.Partitioner = "fields:dt" },
		`--begin-instant was "", is "000"; --end-instant was`: func(c *export.Config) { c.Begin, c.End = "000", "2030" },
	} {
		t.Run(name, func(t *testing.T) {
			world, c := killed(t, base, 6)
			before := contents(t, world, "out")
			change(&c)
			_, err := export.Run(t.Context(), c, local.Options{Workers: 1})
			if !errors.Is(err, export.ErrTargetExists) || !strings.Contains(nextStep(err), name) {
				t.Errorf("%v, next: %s", err, nextStep(err))
			}
			if !maps.Equal(before, contents(t, world, "out")) {
				t.Error("the refusal changed the target")
			}
			c.Overwrite = true
			sum, err := export.Run(t.Context(), c, local.Options{Workers: 1})
			if err != nil {
				t.Fatal(err)
			}
			want := append(slices.Clone(sum.Files), export.Successful)
			slices.Sort(want)
			if got := names(t, world, "out"); !slices.Equal(got, want) || sum.Kept != 0 {
				t.Errorf("%q in the target, %q were written, %d kept", got, want, sum.Kept)
			}
		})
	}
}

// A killed export goes on at its own instant, also when the table has newer ones; --overwrite takes the newest.
func TestResumeKeepsTheInstant(t *testing.T) {
	dir, expect := fixture.Spark(t, "cow_basic_1.2.0")
	all, err := os.ReadDir(filepath.Join(dir, ".hoodie", "timeline"))
	if err != nil {
		t.Fatal(err)
	}
	// The table as it was before its last commit, and the last commit's files, which come later.
	var last string
	for _, e := range all {
		if strings.HasSuffix(e.Name(), ".commit") || strings.HasSuffix(e.Name(), ".deltacommit") {
			last = e.Name()[:17]
		}
	}
	world := mem.New("world")
	upload(t, dir, world, "whole")
	for _, name := range names(t, world, "whole") {
		if !strings.Contains(name, "timeline/"+last) {
			if err := world.Copy(t.Context(), "whole/"+name, "source/"+name); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := export.Config{Source: "/source", Target: "/out", Format: export.Parquet, Lease: time.Hour, Patience: time.Millisecond, Open: below(world), SmallRowGroup: -1}
	c.SetPack(1)
	before := c
	before.Target = "/before"
	old, err := export.Run(t.Context(), before, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := fault.New(world, fault.CrashAt(5, fault.Before))
	dying := c
	dying.Open = below(f)
	if _, err := export.Run(t.Context(), dying, local.Options{Workers: 1}); !f.Crashed() {
		t.Fatal(err)
	}
	for _, name := range names(t, world, "whole") {
		if strings.Contains(name, "timeline/"+last) {
			if err := world.Copy(t.Context(), "whole/"+name, "source/"+name); err != nil {
				t.Fatal(err)
			}
		}
	}
	sum, err := export.Run(t.Context(), c, local.Options{})
	if err != nil || sum.Instant != old.Instant || sum.Kept == 0 || sum.Stats.Rows != old.Stats.Rows {
		t.Errorf("%v: instant %s with %d rows, %d tasks kept; before the last commit it was %s with %d", err, sum.Instant, sum.Stats.Rows, sum.Kept, old.Instant, old.Stats.Rows)
	}
	c.Overwrite = true
	sum, err = export.Run(t.Context(), c, local.Options{})
	if err != nil || sum.Instant != last || sum.Stats.Rows != int64(expect.Snapshot.Count) {
		t.Errorf("%v: overwritten with %s, %d rows, want %s with %d", err, sum.Instant, sum.Stats.Rows, last, expect.Snapshot.Count)
	}
}

// On a disk a killed process leaves the file that it was at under another name; that goes too.
func TestNothingIsLeftOfAKilledRunOnDisk(t *testing.T) {
	dir, _ := fixture.Spark(t, "cow_basic_1.2.0")
	for _, overwrite := range []bool{false, true} {
		root := t.TempDir()
		world, err := disk.New(root, disk.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := export.Config{Source: dir, Target: filepath.Join(root, "out"), Format: export.JSON, PartitionField: "dt", Lease: time.Hour, Patience: time.Millisecond}
		c.SetPack(1)
		dying := c
		f := fault.New(world, fault.CrashAt(5, fault.Before))
		dying.Open = func(ctx context.Context, url string) (storage.Store, error) {
			if rest, ok := strings.CutPrefix(url, root); ok {
				return storage.Sub(f, strings.Trim(rest, "/"))
			}
			return disk.New(url, disk.Options{})
		}
		if _, err := export.Run(t.Context(), dying, local.Options{Workers: 1}); !f.Crashed() {
			t.Fatal(err)
		}
		folder := filepath.Join(root, "out", "dt=2024-01-02")
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, ".sluice-put-ABCDEFGHIJKLMNOPQRSTUVWXYZ"), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		if overwrite {
			c.Format, c.Overwrite = export.CSV, true
		}
		sum, err := export.Run(t.Context(), c, local.Options{Workers: 1})
		if err != nil || (sum.Kept > 0) == overwrite {
			t.Fatalf("%v, %d kept", err, sum.Kept)
		}
		want := append(slices.Clone(sum.Files), export.Successful)
		err = filepath.WalkDir(filepath.Join(root, "out"), func(p string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				if d.Name() == "_sluice_export" {
					t.Errorf("%s is left", p)
				}
				return err
			}
			if rel, _ := filepath.Rel(filepath.Join(root, "out"), p); !slices.Contains(want, filepath.ToSlash(rel)) {
				t.Errorf("%s is left", p)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// slow lets an export wait in the middle of its work until it may go on.
type slow struct {
	storage.Store
	reached chan struct{}
	once    sync.Once
	goOn    chan struct{}
}

func (s *slow) Put(ctx context.Context, name string, body io.Reader, o storage.PutOptions) (storage.Info, error) {
	if strings.Contains(name, "part-") {
		s.once.Do(func() { close(s.reached); <-s.goOn })
	}
	return s.Store.Put(ctx, name, body, o)
}

// While an export shows life a second one into its target is refused, whatever its arguments; the first one ends well.
func TestTwoExportsIntoOneTarget(t *testing.T) {
	dir, _ := fixture.Spark(t, "cow_basic_1.2.0")
	world := mem.New("world")
	upload(t, dir, world, "source")
	held := &slow{Store: world, reached: make(chan struct{}), goOn: make(chan struct{})}
	c := export.Config{Source: "/source", Target: "/out", Format: export.JSON, Lease: 10 * time.Millisecond, Patience: 500 * time.Millisecond}
	first := c
	first.Open = below(held)
	result := make(chan error)
	go func() {
		_, err := export.Run(context.Background(), first, local.Options{})
		result <- err
	}()
	<-held.reached
	for _, overwrite := range []bool{false, true} {
		second := c
		second.Open, second.Overwrite = below(world), overwrite
		if _, err := export.Run(t.Context(), second, local.Options{}); !errors.Is(err, export.ErrBusy) {
			t.Errorf("overwrite %v: %v", overwrite, err)
		}
	}
	close(held.goOn)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	got := names(t, world, "out")
	if len(got) < 2 || got[0] != export.Successful || strings.HasPrefix(got[1], "_") {
		t.Errorf("%q in the target", got)
	}
}

// Many at once: one wins and the target is whole.
func TestManyExportsIntoOneTarget(t *testing.T) {
	dir, _ := fixture.Spark(t, "mor_basic_0.15.0")
	for _, format := range []export.Format{export.Parquet, export.Hudi} {
		world := mem.New("world")
		upload(t, dir, world, "source")
		c := export.Config{Source: "/source", Target: "/whole", Format: format, Rows: export.Snapshot, Open: below(world), Lease: 10 * time.Millisecond, Patience: time.Second}
		c.SetPack(1)
		if _, err := export.Run(t.Context(), c, local.Options{}); err != nil {
			t.Fatal(err)
		}
		c.Target = "/out"
		errs := make([]error, 6)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { _, errs[i] = export.Run(t.Context(), c, local.Options{}) })
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			switch {
			case err == nil:
				won++
			case !errors.Is(err, export.ErrBusy) && !errors.Is(err, export.ErrTargetExists):
				t.Errorf("%s: %v", format, err)
			}
		}
		if got := contents(t, world, "out"); won == 0 || !maps.Equal(got, contents(t, world, "whole")) {
			t.Errorf("%s: %d won, %q in the target", format, won, slices.Sorted(maps.Keys(got)))
		}
	}
}

// A run that was taken for dead and wakes up writes nothing more, and leaves what the other one made.
func TestARunThatWasTakenOverStops(t *testing.T) {
	dir, _ := fixture.Spark(t, "cow_basic_1.2.0")
	world := mem.New("world")
	upload(t, dir, world, "source")
	held := &slow{Store: world, reached: make(chan struct{}), goOn: make(chan struct{})}
	c := export.Config{Source: "/source", Target: "/out", Format: export.JSON, Lease: 20 * time.Millisecond, Patience: time.Millisecond}
	first := c
	first.Open = below(held)
	result := make(chan error)
	go func() {
		_, err := export.Run(context.Background(), first, local.Options{})
		result <- err
	}()
	<-held.reached
	second := c
	second.Open, second.Overwrite, second.Compression = below(world), true, "none"
	sum, err := export.Run(t.Context(), second, local.Options{})
	for errors.Is(err, export.ErrBusy) { // a sign of life fell into the short watch
		sum, err = export.Run(t.Context(), second, local.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // the first one notices
	close(held.goOn)
	if err := <-result; err == nil || !strings.Contains(err.Error(), "took the target over") {
		t.Errorf("the first: %v", err)
	}
	want := append(slices.Clone(sum.Files), export.Successful)
	slices.Sort(want)
	if got := names(t, world, "out"); !slices.Equal(got, want) {
		t.Errorf("%q in the target, want %q", got, want)
	}
}

// cleaning removes objects of the source while it is copied.
type cleaning struct {
	storage.Store
	gone  func(name string) bool
	times int // an object is missing; below 0: for ever
	mu    sync.Mutex
}

func (s *cleaning) Open(ctx context.Context, name string) (storage.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.times != 0 && s.gone(name) {
		s.times--
		return nil, &storage.Error{Op: "open", URL: s.URL(), Name: name, Err: storage.ErrNotExist}
	}
	return s.Store.Open(ctx, name)
}

func (s *cleaning) Stat(ctx context.Context, name string) (storage.Info, error) {
	if s.times < 0 && s.gone(name) {
		return storage.Info{}, &storage.Error{Op: "stat", URL: s.URL(), Name: name, Err: storage.ErrNotExist}
	}
	return s.Store.Stat(ctx, name)
}

// Files of the source that a cleaner removes under our hands: the export is never short. One that comes back is waited for
// once; otherwise the refusal says which file, which instant and what to do, and nothing stays.
func TestSourceCleanedWhileItIsExported(t *testing.T) {
	dir, expect := fixture.Spark(t, "cow_basic_1.2.0")
	for _, format := range []export.Format{export.Hudi, export.Parquet, export.JSON} {
		for _, asOf := range []string{"", "2090-01-01"} {
			world := mem.New("world")
			upload(t, dir, world, "source")
			var base string
			for _, n := range names(t, world, "source") {
				if strings.HasSuffix(n, ".parquet") && !strings.Contains(n, ".hoodie") {
					base = n
				}
			}
			c := export.Config{Source: "/source", Target: "/out", Format: format, AsOf: asOf, Open: below(&cleaning{Store: world, times: -1, gone: func(n string) bool { return strings.HasSuffix(n, base) }})}
			_, err := export.Run(t.Context(), c, local.Options{})
			hint := map[bool]string{true: "hoodie.cleaner.commits.retained", false: "newer instant"}[asOf == ""]
			if !errors.Is(err, engine.ErrRefused) || !strings.Contains(err.Error(), base) || !strings.Contains(err.Error(), "not whole any more") || !strings.Contains(nextStep(err), hint) {
				t.Errorf("%s: %v\nnext: %s", format, err, nextStep(err))
			}
			if left := names(t, world, "out"); len(left) > 0 {
				t.Errorf("%s: %q stays", format, left)
			}
			c.Open = below(&cleaning{Store: world, times: 2, gone: func(n string) bool { return strings.HasSuffix(n, base) }})
			sum, err := export.Run(t.Context(), c, local.Options{})
			if err != nil || format != export.Hudi && sum.Stats.Rows != int64(expect.Snapshot.Count) {
				t.Errorf("%s: %v, %d rows, want %d", format, err, sum.Stats.Rows, expect.Snapshot.Count)
			}
		}
	}
}

// late removes a base file and completes a clean after the timeline was read and before the files are listed.
type late struct {
	storage.Store
	strike func()
	once   sync.Once
}

func (s *late) List(ctx context.Context, prefix string, o storage.ListOptions) iter.Seq2[storage.Info, error] {
	if !strings.Contains(prefix, ".hoodie") {
		s.once.Do(s.strike)
	}
	return s.Store.List(ctx, prefix, o)
}

// A cleaner that works between our look at the timeline and our list of the files must not cost a file group.
func TestCleanerBetweenTimelineAndList(t *testing.T) {
	dir, expect := fixture.Spark(t, "cow_basic_1.2.0")
	world := mem.New("world")
	upload(t, dir, world, "whole")
	// An older state: without the last commit and with all older files.
	var last string
	for _, n := range names(t, world, "whole") {
		if strings.HasPrefix(n, ".hoodie/timeline/") && strings.HasSuffix(n, ".commit") {
			last = strings.TrimPrefix(n, ".hoodie/timeline/")[:17]
		}
	}
	newer := func(n string) bool { return strings.Contains(n, last) }
	for _, n := range names(t, world, "whole") {
		if !newer(n) {
			if err := world.Copy(t.Context(), "whole/"+n, "source/"+n); err != nil {
				t.Fatal(err)
			}
		}
	}
	strike := func() {
		written := map[string]bool{} // file groups of the last commit
		for _, n := range names(t, world, "whole") {
			if newer(n) {
				if strings.HasSuffix(n, ".parquet") {
					written[filepath.Base(n)[:36]] = true
				}
				if err := world.Copy(t.Context(), "whole/"+n, "source/"+n); err != nil {
					t.Error(err)
				}
			}
		}
		for _, n := range names(t, world, "source") {
			if strings.HasSuffix(n, ".parquet") && !strings.Contains(n, ".hoodie") && !newer(n) && written[filepath.Base(n)[:36]] {
				if err := world.Delete(t.Context(), "source/"+n); err != nil {
					t.Error(err)
				}
			}
		}
		for _, suffix := range []string{".clean.requested", ".clean.inflight"} {
			if _, err := world.Put(t.Context(), "source/.hoodie/timeline/29990101000000000"+suffix, strings.NewReader(""), storage.PutOptions{}); err != nil {
				t.Error(err)
			}
		}
	}
	c := export.Config{Source: "/source", Target: "/out", Format: export.JSON, Open: below(&late{Store: world, strike: strike})}
	sum, err := export.Run(t.Context(), c, local.Options{})
	if err != nil || sum.Instant != last || sum.Stats.Rows != int64(expect.Snapshot.Count) {
		t.Errorf("%v: instant %s with %d rows, want %s with %d", err, sum.Instant, sum.Stats.Rows, last, expect.Snapshot.Count)
	}
}

// full is a store with room for so many bytes of data.
type full struct {
	storage.Store
	mu   sync.Mutex
	room int64
}

func (s *full) Put(ctx context.Context, name string, body io.Reader, o storage.PutOptions) (storage.Info, error) {
	text, err := io.ReadAll(body)
	if err != nil {
		return storage.Info{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Contains(name, "_sluice") {
		return s.Store.Put(ctx, name, strings.NewReader(string(text)), o)
	}
	if int64(len(text)) > s.room {
		return storage.Info{}, &storage.Error{Op: "put", URL: s.URL(), Name: name, Err: storage.ErrNoSpace}
	}
	s.room -= int64(len(text))
	return s.Store.Put(ctx, name, strings.NewReader(string(text)), o)
}

// A target that is full half way: a clear error, what is complete stays, and with room the export goes on.
func TestFullTarget(t *testing.T) {
	dir, expect := fixture.Spark(t, "mor_basic_0.15.0")
	for _, format := range []export.Format{export.Parquet, export.ORC, export.JSON, export.CSV, export.Hudi} {
		world := mem.New("world")
		upload(t, dir, world, "source")
		c := export.Config{Source: "/source", Target: "/whole", Format: format, Rows: export.Snapshot, Open: below(world), Lease: time.Hour, Patience: time.Hour}
		c.SetPack(1)
		whole, err := export.Run(t.Context(), c, local.Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		c.Target = "/out"
		c.Open = below(&full{Store: world, room: whole.Stats.BytesWritten * 3 / 4})
		_, err = export.Run(t.Context(), c, local.Options{Workers: 1})
		if !errors.Is(err, storage.ErrNoSpace) || !strings.Contains(nextStep(err), "make room") {
			t.Fatalf("%s: %v, next: %s, %q of %d bytes", format, err, nextStep(err), names(t, world, "out"), whole.Stats.BytesWritten)
		}
		c.Open = below(world)
		sum, err := export.Run(t.Context(), c, local.Options{Workers: 1})
		if err != nil || sum.Kept == 0 || format != export.Hudi && sum.Stats.Rows != int64(expect.Snapshot.Count) {
			t.Errorf("%s: %v, %d kept, %d rows", format, err, sum.Kept, sum.Stats.Rows)
		}
		if got, want := contents(t, world, "out"), contents(t, world, "whole"); !maps.Equal(got, want) {
			t.Errorf("%s: %q, want %q", format, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
}
