// Package service holds the table services that no write needs: undoing a write by name, and checking a table from end to
// end.
package service

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/logfile"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/hudi/write"
	"github.com/sluicelake/sluice/hudi/write/lock"
	"github.com/sluicelake/sluice/hudi/write/rollback"
	"github.com/sluicelake/sluice/storage"
)

// RollbackOptions of Rollback.
type RollbackOptions struct {
	// Instant of the write to undo. Empty: only what failed is rolled back.
	Instant string
	// Conf are hoodie.* options: of the lock, and hoodie.metadata.enable.
	Conf map[string]string
	// Lock, Zone, Now and Event are those of write.Options.
	Lock  *lock.Options
	Zone  *time.Location
	Now   func() time.Time
	Event func(write.Event)
}

// Undone is a write that was rolled back.
type Undone struct {
	Instant string `json:"instant"`
	Files   int    `json:"filesDeleted"`
}

// CannotUndoError says why a write can't be rolled back.
type CannotUndoError struct {
	Instant string
	Why     string
	Next    string
}

func (e *CannotUndoError) Error() string {
	return fmt.Sprintf("%s can't be rolled back: %s", e.Instant, e.Why)
}

// NextStep says what a person can do.
func (e *CannotUndoError) NextStep() string { return e.Next }

// Rollback undoes writes, under the table's lock: rollbacks that were begun are finished, failed writes of any writer are
// rolled back, and then, where an instant is named, that one: a pending write, compaction or clustering, or the newest write
// that completed. A completed write is undone only where the table of before is still there: no savepoint holds it, nothing
// was written after it, and the files that it took the place of were not cleaned. It fails with a *CannotUndoError otherwise.
func Rollback(ctx context.Context, store storage.Store, o RollbackOptions) (undone []Undone, err error) {
	cfg, err := config.Load(ctx, store)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(write.CheckWritable(cfg), write.CheckMetadata(cfg, o.Conf)); err != nil {
		return nil, err
	}
	w := write.Options{Conf: o.Conf, Lock: o.Lock, Zone: o.Zone, Now: o.Now}
	w.Event = func(e write.Event) {
		if e.Step == write.RolledBack {
			undone = append(undone, Undone{Instant: e.Instant, Files: e.Count})
		}
		if o.Event != nil {
			o.Event(e)
		}
	}
	lockOptions, err := write.LockOptions(cfg.Path, &w)
	if err != nil {
		return nil, err
	}
	if o.Instant != "" {
		if _, err := named(ctx, store, cfg, o.Instant); err != nil {
			return nil, err
		}
	}
	held, err := lock.Acquire(ctx, store, lockOptions)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, held.Release(context.WithoutCancel(ctx))) }()
	table, tl, err := write.Prepare(ctx, store, &w)
	if err != nil {
		return undone, err
	}
	if o.Instant == "" || slices.ContainsFunc(undone, func(u Undone) bool { return u.Instant == o.Instant }) {
		return undone, nil
	}
	target, err := named(ctx, store, table.Config, o.Instant)
	if err != nil {
		return undone, err
	}
	if !target.Pending() {
		if err := undoable(ctx, table, tl, target); err != nil {
			return undone, err
		}
	}
	if err := held.Check(ctx); err != nil {
		return undone, err
	}
	done, err := rollback.Run(ctx, table, target)
	if err != nil {
		return undone, err
	}
	w.Event(write.Event{Step: write.RolledBack, Instant: target.Time, Count: done.Metadata.FilesDeleted})
	return undone, nil
}

// named finds the write of an instant.
func named(ctx context.Context, store storage.Store, cfg *config.Table, at string) (timeline.Instant, error) {
	tl, err := timeline.Load(ctx, store, cfg)
	if err != nil {
		return timeline.Instant{}, err
	}
	for _, in := range tl.Instants() {
		if in.Time == at && in.Action.Completes().IsWrite() {
			return in, nil
		}
	}
	return timeline.Instant{}, &CannotUndoError{at, "no write of this instant is on the active timeline", "list the writes: sluice table commits " + store.URL()}
}

// undoable makes sure that the table before a completed write can be had back (Apache Hudi checks the savepoint and the
// order; that the files are still there it leaves to the person who asks).
func undoable(ctx context.Context, table rollback.Table, tl timeline.Timeline, target timeline.Instant) error {
	cannot := func(next, why string, args ...any) error {
		return &CannotUndoError{target.Time, fmt.Sprintf(why, args...), next}
	}
	older := false
	for _, in := range tl.Instants() {
		switch {
		case in.Action == timeline.Savepoint && in.Time == target.Time:
			return cannot("delete the savepoint first", "a savepoint holds it")
		case in.Action.Completes().IsWrite() && in.Time > target.Time:
			return cannot("roll back the newer ones first, the newest to begin with", "%s %s (%s) is newer", in.Action, in.Time, in.State)
		case in.Action == timeline.Restore && in.Time > target.Time:
			return cannot("restore to an older savepoint", "restore %s is newer", in.Time)
		}
		older = older || in.Action.IsWrite() && !in.Pending() && in.Time < target.Time
	}
	files, err := filegroup.List(ctx, table.Store)
	if err != nil {
		return err
	}
	there := index(files)
	if !older && there.oldest < target.Time {
		return cannot("write something small first, so that the archived writes stay known as committed", "all writes before it are archived, and without it nothing would say that they were committed")
	}
	meta, err := timeline.ReadCommit(ctx, table.Store, target)
	if errors.Is(err, timeline.ErrCorrupt) || errors.Is(err, timeline.ErrEmptyCommit) {
		meta, err = &timeline.CommitMetadata{}, nil // nobody can read what it wrote; a listing finds its files
	}
	if err != nil {
		return err
	}
	const cleaned = "keep the table as it is; the state before it can't be had back"
	for partition, stats := range meta.PartitionToWriteStats {
		for _, s := range stats {
			prev := s.PrevCommit
			if prev == "" || prev == "null" || strings.Contains(path.Base(s.Path), ".log.") {
				continue
			}
			if !there.bases[groupAt{partition, s.FileID, prev}] && !there.logs[groupAt{partition, s.FileID, prev}] {
				return cannot(cleaned, "file group %s of partition %q had a file of %s, which the cleaner removed", s.FileID, partition, prev)
			}
		}
	}
	for partition, ids := range meta.PartitionToReplaceFileIDs {
		for _, id := range ids {
			if !there.groups[filegroup.Group{Partition: partition, FileID: id}] {
				return cannot(cleaned, "it replaced file group %s of partition %q, whose files the cleaner removed", id, partition)
			}
		}
	}
	return nil
}

type groupAt struct{ partition, id, instant string }

// present tells which file groups have files of which instants.
type present struct {
	bases, logs map[groupAt]bool
	groups      map[filegroup.Group]bool
	oldest      string // instant of a base file
}

func index(files *filegroup.Files) present {
	p := present{bases: map[groupAt]bool{}, logs: map[groupAt]bool{}, groups: map[filegroup.Group]bool{}, oldest: "~"}
	for _, partition := range files.Partitions() {
		for _, f := range files.In(partition) {
			name := path.Base(f.Name)
			if log, ok := logfile.ParseName(name); ok {
				p.logs[groupAt{partition, log.FileID, log.Instant}] = true
				p.groups[filegroup.Group{Partition: partition, FileID: log.FileID}] = true
			} else if b, ok := filegroup.ParseBaseName(name); ok {
				p.bases[groupAt{partition, b.FileID, b.Instant}] = true
				p.groups[filegroup.Group{Partition: partition, FileID: b.FileID}] = true
				p.oldest = min(p.oldest, b.Instant)
			}
		}
	}
	return p
}
