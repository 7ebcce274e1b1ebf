package write_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/hudi/write"
	"github.com/sluicelake/sluice/hudi/write/marker"
	"github.com/sluicelake/sluice/hudi/write/rollback"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/internal/racing"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/fault"
	"github.com/sluicelake/sluice/storage/mem"
)

// crashes runs a job on copies of a table once for each storage operation that it makes, and kills it there: before the
// operation, after it, and, where the operation writes an object, with a part of the object written. check gets what is left.
func crashes(t *testing.T, start *mem.Store, job func(storage.Store) error, check func(left *mem.Store, at fault.Record) error) int {
	t.Helper()
	points := 0
	for _, do := range []fault.Action{fault.Before, fault.After, fault.Torn} {
		for n := 1; ; n += racing.Step {
			left := clone(t, start)
			op := fault.Any
			if do == fault.Torn {
				op = fault.Put
			}
			f := fault.New(left, fault.Rule{Op: op, At: n, Do: do, Keep: 9, Crash: true})
			err := job(f)
			if !f.Crashed() {
				if err != nil {
					t.Fatalf("without a crash: %v", err)
				}
				break
			}
			points++
			var at fault.Record
			for _, r := range f.Operations() {
				if r.Done != "" {
					at = r
				}
			}
			if err := check(left, at); err != nil {
				t.Errorf("killed at %s: %v", at, err)
			}
		}
	}
	return points
}

// oneOf reads the table, which must be in one of the states, and then lets the next writer come and go: it leaves the state
// alone and tidies up.
func oneOf(left storage.Store, o write.Options, states ...[]string) error {
	ctx := context.Background()
	got, err := rows(left)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if !slices.ContainsFunc(states, func(s []string) bool { return slices.Equal(s, got) }) {
		return fmt.Errorf("between the states: %v", got)
	}
	txn, err := write.Begin(ctx, left, o)
	if err != nil {
		return fmt.Errorf("the next writer: %w", err)
	}
	if err := txn.Abort(ctx); err != nil {
		return fmt.Errorf("the next writer gives up: %w", err)
	}
	again, err := rows(left)
	if err != nil {
		return fmt.Errorf("read after the repair: %w", err)
	}
	return errors.Join(same(got, again), tidy(left))
}

// soundOptions are those of a process that dies; the next one comes later, when its lease has run out.
func soundOptions() write.Options {
	o := options()
	l := *o.Lock
	l.Now = nil
	o.Lock, o.Now = &l, nil
	return o
}

func TestCrashInCommit(t *testing.T) {
	ctx := context.Background()
	start := load(t, source)
	before := mustRows(t, start)
	whole := clone(t, start)
	if _, err := change(ctx, whole, soundOptions()); err != nil {
		t.Fatal(err)
	}
	after := mustRows(t, whole)
	n := crashes(t, start,
		func(s storage.Store) error { _, err := change(ctx, s, soundOptions()); return err },
		func(left *mem.Store, at fault.Record) error {
			if at.Done == fault.Torn && strings.HasSuffix(at.Name, ".commit") {
				return tornCommit(left, before)
			}
			return oneOf(left, options(), before, after)
		})
	t.Logf("commit of two files: %d points", n)
}

// The same on a disk, where folders exist by themselves.
func TestCrashInCommitOnADisk(t *testing.T) {
	ctx := context.Background()
	dir, _ := fixture.Spark(t, source)
	before := mustRows(t, open(t, dir))
	if _, err := change(ctx, open(t, dir), soundOptions()); err != nil {
		t.Fatal(err)
	}
	after := mustRows(t, open(t, dir))
	points := 0
	for _, do := range []fault.Action{fault.Before, fault.After} {
		for n := 1; ; n += racing.Step {
			dir, _ := fixture.Spark(t, source)
			f := fault.New(open(t, dir), fault.CrashAt(n, do))
			if _, err := change(ctx, f, soundOptions()); !f.Crashed() {
				if err != nil {
					t.Fatal(err)
				}
				break
			}
			points++
			if err := oneOf(open(t, dir), options(), before, after); err != nil {
				t.Errorf("killed at write %d, %s: %v", n, do, err)
			}
		}
	}
	t.Logf("commit of two files on a disk: %d points", points)
}

// No sound store tears a commit. Where one does, nobody may read or write on as if nothing was, and a rollback helps.
func tornCommit(left *mem.Store, before []string) error {
	ctx := context.Background()
	if got, err := rows(left); err == nil {
		return fmt.Errorf("a commit that is no JSON was read: %v", got)
	}
	if _, err := write.Begin(ctx, left, options()); err == nil || !strings.Contains(err.Error(), "rollback") {
		return fmt.Errorf("the next writer: %w", err)
	}
	cfg, err := config.Load(ctx, left)
	if err != nil {
		return err
	}
	tl, err := timeline.Load(ctx, left, cfg)
	if err != nil {
		return err
	}
	last, _ := tl.Last()
	table := rollback.Table{Store: left, Config: cfg, Clock: timeline.NewClock(timeline.Zone(cfg), tl)}
	if _, err := rollback.Run(ctx, table, last); err != nil {
		return err
	}
	return oneOf(left, options(), before)
}

func TestCrashInRollback(t *testing.T) {
	ctx := context.Background()
	start := load(t, source)
	before := mustRows(t, start)
	f := fault.New(start, fault.Rule{Op: fault.Put, Name: ".commit", At: 2, Crash: true}) // the first is .commit.requested
	if _, err := change(ctx, f, soundOptions()); err == nil || !f.Crashed() {
		t.Fatal("the write was to die before its commit")
	}
	n := crashes(t, start,
		func(s storage.Store) error {
			txn, err := write.Begin(ctx, s, options())
			if err != nil {
				return err
			}
			return txn.Abort(ctx)
		},
		func(left *mem.Store, _ fault.Record) error {
			o := options()
			return oneOf(left, muchLater(o), before)
		})
	t.Logf("rollback: %d points", n)
}

// Writes of Apache Hudi that failed: the log blocks of a delta commit, and, with the metadata table that must go first, a commit.
func TestCrashInRollbackOfSparksWrites(t *testing.T) {
	for _, name := range []string{"failed_write_mor_0.15.0", "failed_write_cow_0.15.0"} {
		ctx := context.Background()
		start := load(t, name)
		before := mustRows(t, start)
		o := options()
		o.Conf = map[string]string{"hoodie.metadata.enable": "false"}
		if strings.Contains(name, "mor") {
			o.Action = timeline.DeltaCommit
		}
		n := crashes(t, start,
			func(s storage.Store) error {
				txn, err := write.Begin(ctx, s, o)
				if err != nil {
					return err
				}
				return txn.Abort(ctx)
			},
			func(left *mem.Store, _ fault.Record) error { return oneOf(left, muchLater(o), before) })
		t.Logf("%s: %d points", name, n)
	}
}

func TestCrashInRemovalOfTheMetadataTable(t *testing.T) {
	ctx := context.Background()
	start := load(t, "cow_basic_0.15.0")
	before := mustRows(t, start)
	o := options()
	o.Conf = map[string]string{"hoodie.metadata.enable": "false"}
	n := crashes(t, start,
		func(s storage.Store) error {
			txn, err := write.Begin(ctx, s, o)
			if err != nil {
				return err
			}
			return txn.Abort(ctx)
		},
		func(left *mem.Store, _ fault.Record) error {
			if err := oneOf(left, muchLater(o), before); err != nil {
				return err
			}
			for _, name := range names(t, left) {
				if strings.HasPrefix(name, ".hoodie/metadata") || strings.HasSuffix(name, ".backup") {
					return fmt.Errorf("left behind: %s", name)
				}
			}
			return nil
		})
	t.Logf("removal of the metadata table: %d points", n)
}

func TestCrashInCreate(t *testing.T) {
	ctx := context.Background()
	spec := write.Spec{Name: "orders", RecordKeyFields: []string{"id"}, PartitionFields: []string{"dt"},
		Schema: `{"type":"record","name":"r","fields":[{"name":"id","type":"long"},{"name":"dt","type":"string"},{"name":"name","type":"string"}]}`}
	create := func(s storage.Store) error { _, err := write.CreateTable(ctx, s, spec); return err }
	n := crashes(t, mem.New("orders"), create, func(left *mem.Store, at fault.Record) error {
		cfg, err := config.Load(ctx, left)
		switch {
		case err == nil && cfg.Name == "orders" && len(cfg.PartitionFields) == 1:
			if err := create(left); !errors.Is(err, write.ErrTableExists) {
				return fmt.Errorf("create again: %w", err)
			}
		case errors.Is(err, config.ErrNotTable), at.Done == fault.Torn && errors.Is(err, config.ErrInvalid):
			if err := create(left); err != nil {
				return fmt.Errorf("create again: %w", err)
			}
		default:
			return fmt.Errorf("%+v, %w", cfg, err)
		}
		return oneOf(left, options(), nil)
	})
	// A properties file that was cut off anywhere is no table.
	whole := mem.New("orders")
	if err := create(whole); err != nil {
		t.Fatal(err)
	}
	text, err := storage.ReadAll(ctx, whole, config.File, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for keep := range len(text) - 1 {
		left := mem.New("orders")
		f := fault.New(left, fault.Rule{Op: fault.Put, Do: fault.Torn, Keep: keep, Crash: true})
		if err := create(f); err == nil {
			t.Fatal("it was to die")
		}
		// What config.Load tests before it waits for another process: no whole file, no table.
		cut, err := config.ParseProperties(text[:keep])
		if _, named := lookup(cut, config.TableName); err == nil && named && cut.ValidChecksum() {
			t.Errorf("cut off after %d bytes the properties look whole", keep)
		}
		if keep%101 == 0 {
			if err := create(left); err != nil {
				t.Errorf("create again after %d bytes: %v", keep, err)
			}
		}
		n++
	}
	t.Logf("create: %d points", n)
}

func lookup(p *config.Properties, key string) (string, bool) {
	if p == nil {
		return "", false
	}
	return p.Get(key)
}

// muchLater is a time at which the leases of later have run out.
func muchLater(o write.Options) write.Options {
	l := *o.Lock
	l.Now = func() time.Time { return later().Add(10 * time.Minute) }
	l.Wait, l.Claim = 5*time.Second, time.Nanosecond // a waiter that died over its claim is waited for
	o.Lock, o.Now = &l, l.Now
	return o
}

// What a killed process left of a file that it had begun goes with the rollback of its write.
func TestStagingFilesGo(t *testing.T) {
	ctx := context.Background()
	dir, _ := fixture.Spark(t, source)
	s := open(t, dir)
	txn, err := write.Begin(ctx, s, soundOptions())
	if err != nil {
		t.Fatal(err)
	}
	if err := txn.Inflight(ctx, nil); err != nil {
		t.Fatal(err)
	}
	f, err := txn.New(ctx, "p", write.NewFileID(0), ".parquet", marker.Create)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(ctx, f.Path, strings.NewReader("half"), storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, "p", ".sluice-put-ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	if err := os.WriteFile(left, []byte("begun"), 0o666); err != nil {
		t.Fatal(err)
	}
	next, err := write.Begin(ctx, s, options())
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Abort(ctx); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "p")); err == nil && len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
}
