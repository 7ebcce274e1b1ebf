// Package rollback undoes a write: one that failed and was left pending, by us or by Apache Hudi, or the newest one that
// completed. A rollback is an instant of its own with a plan, so that whoever comes next finishes it when we die over it
// (table format 7.3).
//
// The order makes every step safe: the plan is published, the write leaves the completed ones, its files go, the rollback is
// published, and only then the pending files of the write go from the timeline. A reader sees the write whole or not at all.
package rollback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/hudi/write/marker"
	"github.com/sluicelake/sluice/storage"
)

// Table is what a rollback works on. The caller holds the table's lock, and has dealt with the metadata table.
type Table struct {
	Store  storage.Store
	Config *config.Table // layout 1
	Clock  *timeline.Clock
}

// Done is a rollback that completed.
type Done struct {
	Instant  string // of the rollback
	Metadata *timeline.RollbackMetadata
}

// Run rolls a write back under a new instant.
func Run(ctx context.Context, t Table, target timeline.Instant) (*Done, error) {
	plan, err := planOf(ctx, t, target)
	if err != nil {
		return nil, fmt.Errorf("plan the rollback of %s: %w", target.Time, err)
	}
	body, err := timeline.Encode(plan, t.Config.Layout, t.Store.URL())
	if err != nil {
		return nil, err
	}
	r, err := timeline.Begin(ctx, t.Store, t.Config, t.Clock, timeline.Rollback, body)
	if err != nil {
		return nil, fmt.Errorf("publish the rollback of %s: %w", target.Time, err)
	}
	return execute(ctx, t, r, plan)
}

// Resume finishes a rollback that was begun, by us or by Apache Hudi. A plan that was cut off while it was written, so that
// nothing can have been done by it, is removed; then both results are nil.
func Resume(ctx context.Context, t Table, r timeline.Instant) (*Done, error) {
	plan, err := timeline.ReadRollbackPlan(ctx, t.Store, r)
	if err == nil && plan.Instant == nil {
		err = fmt.Errorf("%w: the plan names no instant", timeline.ErrCorrupt)
	}
	if errors.Is(err, timeline.ErrCorrupt) && r.State == timeline.Requested {
		return nil, t.Store.Delete(ctx, r.File)
	}
	if err != nil {
		return nil, fmt.Errorf("resume rollback %s: %w", r.Time, err)
	}
	return execute(ctx, t, r, plan)
}

// Pending are the rollbacks that were begun and not finished, oldest first.
func Pending(tl timeline.Timeline) []timeline.Instant {
	return tl.Filter(func(i timeline.Instant) bool { return i.Action == timeline.Rollback && i.Pending() }).Instants()
}

// Failed are the writes that an eager writer rolls back before it begins, newest first: every pending commit, delta commit and
// replace commit, but no plans of compaction and clustering, which wait for their turn (table format 7.3).
func Failed(ctx context.Context, store storage.Store, tl timeline.Timeline) ([]timeline.Instant, error) {
	var out []timeline.Instant
	for _, in := range slices.Backward(tl.Instants()) {
		if !in.Pending() || !in.Action.IsWrite() {
			continue
		}
		if in.Action == timeline.ReplaceCommit {
			clustering, err := isClustering(ctx, store, in)
			if err != nil {
				return nil, err
			}
			if clustering {
				continue
			}
		}
		out = append(out, in)
	}
	return out, nil
}

// isClustering looks into the plan of a pending replace commit. A plan that can't be read before anything was done by it may
// be rolled back whatever it was.
func isClustering(ctx context.Context, store storage.Store, in timeline.Instant) (bool, error) {
	plan, err := timeline.ReadReplacePlan(ctx, store, in)
	switch {
	case err == nil:
		return plan.Clustering != nil, nil
	case in.State == timeline.Requested && errors.Is(err, timeline.ErrCorrupt), errors.Is(err, storage.ErrNotExist):
		return false, nil
	}
	return false, fmt.Errorf("pending %s %s may be a clustering, its plan can't be read: %w", in.Action, in.Time, err)
}

func execute(ctx context.Context, t Table, r timeline.Instant, plan *timeline.RollbackPlan) (*Done, error) {
	began := time.Now()
	inflight := timeline.FileName{Time: r.Time, Action: timeline.Rollback, State: timeline.Inflight}
	if _, err := timeline.Publish(ctx, t.Store, t.Config, inflight, nil); err != nil && !errors.Is(err, storage.ErrExist) {
		return nil, fmt.Errorf("rollback %s: %w", r.Time, err)
	}
	of := plan.Instant.Time
	target, found, err := find(ctx, t, of)
	if err != nil {
		return nil, err
	}
	if found {
		if err := unpublish(ctx, t, target); err != nil {
			return nil, fmt.Errorf("rollback %s: take %s from the completed writes: %w", r.Time, of, err)
		}
	}
	meta := &timeline.RollbackMetadata{
		StartTime: r.Time, Commits: []string{of}, Version: 1,
		Instants:   []timeline.InstantInfo{*plan.Instant},
		Partitions: map[string]timeline.RollbackPartition{},
	}
	if err := undo(ctx, t, r.Time, plan, meta); err != nil {
		return nil, fmt.Errorf("rollback %s of %s: %w", r.Time, of, err)
	}
	meta.Millis = time.Since(began).Milliseconds()
	if err := publish(ctx, t, r.Time, meta); err != nil {
		return nil, fmt.Errorf("rollback %s of %s: %w", r.Time, of, err)
	}
	if err := forget(ctx, t, of, target, found); err != nil {
		return nil, fmt.Errorf("rollback %s of %s: remove what is left of it: %w", r.Time, of, err)
	}
	return &Done{Instant: r.Time, Metadata: meta}, nil
}

// find gives the write with this time as the timeline has it now.
func find(ctx context.Context, t Table, at string) (timeline.Instant, bool, error) {
	tl, err := timeline.Load(ctx, t.Store, t.Config)
	if err != nil {
		return timeline.Instant{}, false, err
	}
	for _, in := range tl.Instants() {
		if in.Time == at && in.Action.Completes().IsWrite() {
			return in, true, nil
		}
	}
	return timeline.Instant{}, false, nil
}

// unpublish takes a completed write back to pending: from this moment readers do not see it. Where no earlier file of it is
// left, a requested one is put there first, so that it is pending and not archived.
func unpublish(ctx context.Context, t Table, target timeline.Instant) error {
	if target.Pending() {
		return nil
	}
	if len(target.Files) == 1 {
		f := timeline.FileName{Time: target.Time, Action: target.Action, State: timeline.Requested}
		if _, err := timeline.Publish(ctx, t.Store, t.Config, f, nil); err != nil && !errors.Is(err, storage.ErrExist) {
			return err
		}
	}
	return t.Store.Delete(ctx, target.File)
}

func publish(ctx context.Context, t Table, at string, meta *timeline.RollbackMetadata) error {
	body, err := timeline.Encode(meta, t.Config.Layout, t.Store.URL())
	if err != nil {
		return err
	}
	f := timeline.FileName{Time: at, Action: timeline.Rollback, State: timeline.Completed}
	if _, err := timeline.Publish(ctx, t.Store, t.Config, f, body); err != nil && !errors.Is(err, storage.ErrExist) {
		return err
	}
	return nil
}

// forget removes the write from the timeline, its requested file last, then its markers and its heartbeat. The plan of a
// compaction stays: it can be run again.
func forget(ctx context.Context, t Table, of string, target timeline.Instant, found bool) error {
	if found {
		files, keep := stateFiles(t.Config.Layout, target)
		for _, name := range files {
			if keep(name) {
				continue
			}
			if err := t.Store.Delete(ctx, name); err != nil {
				return err
			}
		}
	}
	if err := t.Store.Delete(ctx, Heartbeat(of)); err != nil {
		return err
	}
	return marker.Remove(ctx, t.Store, of)
}

// stateFiles lists the files of an instant below completed, inflight before requested, and tells which are to stay.
func stateFiles(layout int, in timeline.Instant) (files []string, keep func(string) bool) {
	parsed := map[string]timeline.FileName{}
	for _, name := range in.Files {
		if f, ok := timeline.ParseFileName(layout, name[lastSlash(name)+1:]); ok && f.State != timeline.Completed {
			parsed[name] = f
			files = append(files, name)
		}
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Compare(parsed[b].State, parsed[a].State) })
	return files, func(name string) bool {
		f := parsed[name]
		return f.State == timeline.Requested && (f.Action == timeline.Compaction || f.Action == timeline.LogCompaction)
	}
}

func lastSlash(name string) int {
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '/' {
			return i
		}
	}
	return -1
}

// Heartbeat is the file that tells others that the writer of an instant is alive.
func Heartbeat(instant string) string { return ".hoodie/.heartbeat/" + instant }
