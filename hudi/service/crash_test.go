package service_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/hudi/service"
	"github.com/sluicelake/sluice/hudi/write/lock"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/fault"
	"github.com/sluicelake/sluice/storage/mem"
)

// inMemory copies a folder into a store in memory.
func inMemory(t *testing.T, dir string) *mem.Store {
	t.Helper()
	s := mem.New("table")
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		_, err = s.Put(context.Background(), filepath.ToSlash(rel(t, dir, p)), bytes.NewReader(data), storage.PutOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// keysOf reads the keys and commit times of a table.
func keysOf(s storage.Store, asOf string) ([]string, error) {
	ctx := context.Background()
	table, err := hudi.Open(ctx, s.URL(), hudi.Options{Store: s})
	if err != nil {
		return nil, err
	}
	snap, err := table.Snapshot(ctx, hudi.Query{AsOf: asOf})
	if err != nil {
		return nil, err
	}
	var out []string
	for batch, err := range snap.Scan(ctx, hudi.Scan{Columns: []string{"_hoodie_record_key", "_hoodie_commit_time"}}) {
		if err != nil {
			return nil, err
		}
		for i := range int(batch.NumRows()) {
			out = append(out, batch.Column(0).ValueStr(i)+" "+batch.Column(1).ValueStr(i))
		}
		batch.Release()
	}
	slices.Sort(out)
	return out, nil
}

// The rollback of a completed write, by a process that dies before and after every storage operation, and once with that
// object torn: readers see the table with the write or without it, and the next rollback finishes what was begun.
func TestCrashInRollbackOfACompletedWrite(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"cow_no_metadata_table_0.15.0", "mor_nonpartitioned_no_metadata_table_0.15.0"} {
		dir, _ := fixture.Spark(t, name)
		done, _ := writes(t, dir)
		last, before := done[len(done)-1].Time, done[len(done)-2].Time
		with, err := keysOf(inMemory(t, dir), "")
		if err != nil {
			t.Fatal(err)
		}
		without, err := keysOf(inMemory(t, dir), before)
		if err != nil || slices.Equal(with, without) {
			t.Fatal(with, without, err)
		}
		points := 0
		for _, do := range []fault.Action{fault.Before, fault.After, fault.Torn} {
			for n := 1; ; n++ {
				left := inMemory(t, dir)
				op := fault.Any
				if do == fault.Torn {
					op = fault.Put
				}
				f := fault.New(left, fault.Rule{Op: op, At: n, Do: do, Keep: 9, Crash: true})
				_, err := service.Rollback(ctx, f, service.RollbackOptions{Instant: last})
				if !f.Crashed() {
					if err != nil {
						t.Fatalf("%s: without a crash: %v", name, err)
					}
					break
				}
				points++
				ops := f.Operations()
				at := ops[len(ops)-1]
				got, err := keysOf(left, "")
				if err != nil || !slices.Equal(got, with) && !slices.Equal(got, without) {
					t.Errorf("%s: killed at %s: between the states: %v, %v", name, at, got, err)
					continue
				}
				later := func() time.Time { return time.Now().Add(10 * time.Minute) }
				o := service.RollbackOptions{Lock: &lock.Options{Now: later, Wait: -1}, Now: later}
				if _, err := service.Rollback(ctx, left, o); err != nil {
					t.Errorf("%s: killed at %s: the next one: %v", name, at, err)
					continue
				}
				again, err := keysOf(left, "")
				r, checkErr := service.Validate(ctx, left, service.ValidateOptions{Zone: time.UTC, Now: now})
				if err := errors.Join(err, checkErr); err != nil || !slices.Equal(again, with) && !slices.Equal(again, without) || slices.Equal(got, without) && !slices.Equal(again, without) {
					t.Errorf("%s: killed at %s: after the next one: %v, %v", name, at, again, err)
					continue
				}
				for _, f := range r.Findings {
					torn := at.Done == fault.Torn && f.Code == service.TimelineUnreadable && f.Where == at.Name // told, and harmless
					if f.Severity != service.Info && !torn {
						t.Errorf("%s: killed at %s: %v", name, at, f)
					}
				}
			}
		}
		t.Logf("%s: %d points", name, points)
	}
}
