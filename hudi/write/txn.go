package write

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/hudi/write/lock"
	"github.com/sluicelake/sluice/hudi/write/marker"
	"github.com/sluicelake/sluice/hudi/write/rollback"
	"github.com/sluicelake/sluice/storage"
)

// Txn is a write between Begin and Commit or Abort. Files may be announced by several goroutines; the other methods are for
// one.
type Txn struct {
	*Files
	table  rollback.Table
	o      Options
	lock   *lock.Lock
	in     timeline.Instant
	start  timeline.Timeline // as it was when the write began
	schema string

	inflight bool
	ended    bool
	stopBeat func()
}

// Config is the table's.
func (t *Txn) Config() *config.Table { return t.table.Config }

// Timeline is the one that the write builds on: failed writes are rolled back, and the write itself is not on it.
func (t *Txn) Timeline() timeline.Timeline { return t.start }

// Schema is the Avro schema that the commit will carry, without meta columns.
func (t *Txn) Schema() string { return t.schema }

// Lost is closed when the table's lock was lost: the write can't be committed any more.
func (t *Txn) Lost() <-chan struct{} { return t.lock.Lost() }

// Inflight publishes that the write is under way, with its workload profile: for each partition one stat with an empty file
// id for the inserts, and one for each file group that takes updates (table format 2.3). nil is an empty profile.
func (t *Txn) Inflight(ctx context.Context, profile *timeline.CommitMetadata) error {
	if t.ended {
		return ErrDone
	}
	var body []byte
	if profile != nil {
		p := *profile
		p.OperationType = t.o.Operation
		body = timeline.EncodeCommitJSON(&p)
	}
	f := timeline.FileName{Time: t.in.Time, Action: t.in.Action, State: timeline.Inflight}
	if _, err := timeline.Publish(ctx, t.table.Store, t.table.Config, f, body); err != nil {
		return fmt.Errorf("publish that %s is under way: %w", t.in.Time, err)
	}
	t.inflight = true
	t.o.event(Event{Step: Started, Instant: t.in.Time})
	return nil
}

// Commit makes the write visible, in one step, and gives the lock back. The stats say what each data file holds; replaced
// names the file groups, by partition, that a replace commit puts out of sight. Files that were announced and that no stat
// names, left by repeated tasks, are deleted before.
//
// When it fails the write is not visible, except with ErrUncertain. After ErrConflict, lock.ErrLost and other failures call
// Abort.
func (t *Txn) Commit(ctx context.Context, stats []timeline.WriteStat, extra map[string]string, replaced map[string][]string) (*timeline.CommitMetadata, error) {
	if t.ended {
		return nil, ErrDone
	}
	if (t.in.Action == timeline.ReplaceCommit) != (replaced != nil) {
		return nil, fmt.Errorf("a replace commit, and no other, says what it replaces: this is a %s", t.in.Action)
	}
	if !t.inflight {
		if err := t.Inflight(ctx, nil); err != nil {
			return nil, err
		}
	}
	if err := t.verify(ctx, stats); err != nil {
		return nil, err
	}
	if err := t.reconcile(ctx, stats); err != nil {
		return nil, err
	}
	meta := t.metadata(stats, extra, replaced)
	if err := t.lock.Regain(ctx); err != nil {
		return nil, err
	}
	if err := t.unchanged(ctx); err != nil {
		return nil, err
	}
	if err := t.publish(ctx, timeline.EncodeCommitJSON(meta)); err != nil {
		return nil, err
	}
	t.ended = true
	t.o.event(Event{Step: Committed, Instant: t.in.Time, Count: len(stats)})
	t.tidy(context.WithoutCancel(ctx))
	return meta, nil
}

// checkers bounds how many files are looked at, or deleted, at once.
const checkers = 16

// verify makes sure that every file that a stat names is there with its size: a commit must never name what is not.
func (t *Txn) verify(ctx context.Context, stats []timeline.WriteStat) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(checkers)
	for _, s := range stats {
		if err := storage.CheckName(s.Path); err != nil {
			return err
		}
		if dir := strings.TrimSuffix(strings.TrimSuffix(s.Path, path.Base(s.Path)), "/"); dir != s.PartitionPath {
			return fmt.Errorf("stat of %s says partition %q", s.Path, s.PartitionPath)
		}
		g.Go(func() error {
			info, err := t.table.Store.Stat(gctx, s.Path)
			if err != nil {
				return fmt.Errorf("a file of the write is missing: %w", err)
			}
			if info.Size != s.FileSizeInBytes {
				return fmt.Errorf("%s has %d bytes, its stat says %d", s.Path, info.Size, s.FileSizeInBytes)
			}
			return nil
		})
	}
	return g.Wait()
}

// reconcile deletes the files that were announced and not named. Every object is written once and whole, log files too, so
// what was announced for this instant is of this write alone.
func (t *Txn) reconcile(ctx context.Context, stats []timeline.WriteStat) error {
	named := map[string]bool{}
	for _, s := range stats {
		named[s.Path] = true
		for cdc := range s.CDCStats {
			named[cdc] = true
		}
	}
	markers, _, err := marker.List(ctx, t.table.Store, t.in.Time)
	if err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(checkers)
	extra := 0
	for _, m := range markers {
		if named[m.Path] {
			continue
		}
		extra++
		g.Go(func() error {
			if err := t.table.Store.Delete(gctx, m.Path); err != nil {
				return fmt.Errorf("delete %s, which a repeated task left: %w", m.Path, err)
			}
			if _, err := t.table.Store.Stat(gctx, m.Path); !errors.Is(err, storage.ErrNotExist) {
				return errors.Join(fmt.Errorf("%s, which a repeated task left, is still there", m.Path), err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if extra > 0 {
		t.o.event(Event{Step: Reconciled, Instant: t.in.Time, Count: extra})
	}
	return nil
}

func (t *Txn) metadata(stats []timeline.WriteStat, extra map[string]string, replaced map[string][]string) *timeline.CommitMetadata {
	meta := &timeline.CommitMetadata{
		PartitionToWriteStats: map[string][]timeline.WriteStat{}, OperationType: t.o.Operation,
		ExtraMetadata: map[string]string{"schema": t.schema}, PartitionToReplaceFileIDs: replaced,
	}
	maps.Copy(meta.ExtraMetadata, extra)
	for _, s := range stats {
		meta.PartitionToWriteStats[s.PartitionPath] = append(meta.PartitionToWriteStats[s.PartitionPath], s)
	}
	for _, list := range meta.PartitionToWriteStats {
		slices.SortStableFunc(list, func(a, b timeline.WriteStat) int { return strings.Compare(a.Path, b.Path) })
	}
	return meta
}

// unchanged makes sure, right before the commit, that the table is what the write was built on: our instant is still under
// way, and nobody has completed or planned anything since. The lock sees to that; this is for writers that do not look at it.
func (t *Txn) unchanged(ctx context.Context) error {
	now, err := timeline.Load(ctx, t.table.Store, t.table.Config)
	if err != nil {
		return err
	}
	if in, ok := now.Find(t.in.Time, t.in.Action); !ok || in.State != timeline.Inflight || !slices.Contains(in.Files, t.in.File) {
		return fmt.Errorf("%w: %s %s is not under way any more, it was rolled back or ended by somebody else", ErrConflict, t.in.Action, t.in.Time)
	}
	for _, in := range t.start.Completed().Writes().Instants() {
		if then, ok := now.Find(in.Time, in.Action); !ok || then.Pending() {
			return fmt.Errorf("%w: %s %s, on which %s builds, is not there any more", ErrConflict, in.Action, in.Time, t.in.Time)
		}
	}
	was := map[string]timeline.State{}
	key := func(i timeline.Instant) string { return i.Time + "." + string(i.Action) }
	for _, in := range t.start.Instants() {
		was[key(in)] = in.State
	}
	for _, in := range now.Instants() {
		state, known := was[key(in)]
		if in.Time == t.in.Time || known && state == in.State || in.Action == timeline.Savepoint {
			continue
		}
		if in.Action.Completes().IsWrite() && (in.State == timeline.Completed || !in.Action.IsWrite()) || in.Action == timeline.Restore {
			return fmt.Errorf("%w: %s %s is %s, and was not when %s began", ErrConflict, in.Action, in.Time, in.State, t.in.Time)
		}
	}
	return nil
}

// publish puts the commit. An answer that was lost is settled by a look at what is there.
func (t *Txn) publish(ctx context.Context, body []byte) error {
	ctx = context.WithoutCancel(ctx) // between here and the answer nobody knows
	f := timeline.FileName{Time: t.in.Time, Action: t.in.Action, State: timeline.Completed}
	name, err := timeline.Publish(ctx, t.table.Store, t.table.Config, f, body)
	if err == nil {
		return nil
	}
	there, readErr := storage.ReadAll(ctx, t.table.Store, storage.Join(t.table.Config.TimelinePath, f.String()), int64(len(body))+1)
	switch {
	case readErr == nil && bytes.Equal(there, body):
		return nil
	case errors.Is(err, storage.ErrExist):
		return fmt.Errorf("%w: %s was completed by somebody else", ErrConflict, name)
	case errors.Is(readErr, storage.ErrNotExist) && !errors.Is(err, storage.ErrTemporary):
		return fmt.Errorf("commit %s: %w", t.in.Time, err)
	}
	t.ended = true
	t.halt()
	return fmt.Errorf("%w: %s: %w", ErrUncertain, t.in.Time, errors.Join(err, readErr))
}

// tidy removes what the write needs no more. Whatever fails here the next writer does.
func (t *Txn) tidy(ctx context.Context) {
	t.halt()
	err := marker.Remove(ctx, t.table.Store, t.in.Time)
	if t.o.lazy() {
		err = errors.Join(err, t.table.Store.Delete(ctx, rollback.Heartbeat(t.in.Time)))
	}
	if err = errors.Join(err, t.lock.Release(ctx)); err != nil {
		t.o.event(Event{Step: Leftover, Instant: t.in.Time, Err: err})
	}
}

// Abort gives the write up: it is rolled back, and the lock is given back. Where the lock was lost the next writer does it.
// After Commit it does nothing and returns ErrDone.
func (t *Txn) Abort(ctx context.Context) error {
	if t.ended {
		return ErrDone
	}
	t.ended = true
	t.halt()
	ctx = context.WithoutCancel(ctx)
	if err := t.lock.Regain(ctx); err != nil {
		return errors.Join(fmt.Errorf("give %s up, which the next writer rolls back: %w", t.in.Time, err), t.lock.Release(ctx))
	}
	tl, err := timeline.Load(ctx, t.table.Store, t.table.Config)
	if err == nil {
		if in, ok := tl.Find(t.in.Time, t.in.Action); ok && in.Pending() {
			_, err = rollback.Run(ctx, t.table, in)
		}
	}
	return errors.Join(err, t.lock.Release(ctx))
}

// startHeartbeat shows other writers, where they roll back lazily, that this one is alive.
func (t *Txn) startHeartbeat(ctx context.Context) error {
	t.stopBeat = func() {}
	if !t.o.lazy() {
		return nil
	}
	beat := func(ctx context.Context) error {
		_, err := t.table.Store.Put(ctx, rollback.Heartbeat(t.in.Time), bytes.NewReader(nil), storage.PutOptions{})
		return err
	}
	if err := beat(ctx); err != nil {
		return fmt.Errorf("heartbeat: %w", err)
	}
	interval, _ := t.o.beat()
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-running.Done():
				return
			case <-tick.C:
				_ = beat(running) // the next one may succeed; two may be missed
			}
		}
	}()
	t.stopBeat = sync.OnceFunc(func() { cancel(); <-done })
	return nil
}

func (t *Txn) halt() { t.stopBeat() }
