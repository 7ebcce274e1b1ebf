// Package read turns a table's files into rows: which instant a query is pinned to, which slices it opens, how base files
// and logs of a slice become one stream of record batches, and which rows an incremental query returns. Snapshot,
// read-optimized, time-travel and incremental queries share one path, so that they can't disagree.
package read

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/storage"
)

// Source is a table as readers see it: its properties and its active timeline, loaded once. It is immutable and safe for
// concurrent use; load another one to see newer commits.
type Source struct {
	Store    storage.Store
	Config   *config.Table
	Timeline timeline.Timeline
	View     *filegroup.View

	zone *time.Location

	list    sync.Mutex
	listed  *filegroup.Files
	cleaned func() (string, error) // earliest retained commit, read at most once
}

// Options of Load.
type Options struct {
	// Zone in which the table's instants were formatted, for tables whose properties say LOCAL; nil means UTC. Only
	// as-of texts that are dates need it.
	Zone *time.Location
}

// Load reads a table's properties and timeline. The store is rooted at the table's base path.
func Load(ctx context.Context, store storage.Store, opts Options) (*Source, error) {
	cfg, err := config.Load(ctx, store)
	if err != nil {
		return nil, err
	}
	tl, err := loadTimeline(ctx, store, cfg)
	if err != nil {
		return nil, err
	}
	view, err := filegroup.Open(ctx, store, cfg, tl)
	if err != nil {
		return nil, err
	}
	s := &Source{Store: store, Config: cfg, Timeline: tl, View: view, zone: opts.Zone}
	if s.zone == nil || cfg.TimelineZone == "UTC" {
		s.zone = time.UTC
	}
	s.cleaned = sync.OnceValues(func() (string, error) { return s.readEarliestRetained(ctx) })
	return s, nil
}

// Zone is the zone in which the table's instants are read as dates.
func (s *Source) Zone() *time.Location { return s.zone }

// Files lists the table's partitions and files, once for all queries of this source. Partitions are the folders with a
// marker file and, beside them, those that a commit on the timeline names although their marker is missing: a writer that
// failed to make the marker must not hide its rows.
func (s *Source) Files(ctx context.Context) (*filegroup.Files, error) {
	s.list.Lock()
	defer s.list.Unlock()
	if s.listed != nil {
		return s.listed, nil
	}
	files, err := filegroup.List(ctx, s.Store)
	if err != nil {
		return nil, err
	}
	if len(files.Unmarked()) > 0 {
		named, err := s.namedPartitions(ctx, files.Unmarked())
		if err != nil {
			return nil, err
		}
		files = files.Adopt(named)
	}
	s.listed = files
	return files, nil
}

// namedPartitions gives those of the unmarked folders that commits on the active timeline wrote to.
func (s *Source) namedPartitions(ctx context.Context, unmarked map[string][]storage.Info) ([]string, error) {
	var out []string
	for _, in := range s.Timeline.Completed().Instants() {
		if !in.Action.IsWrite() {
			continue
		}
		meta, err := s.Commit(ctx, in)
		if err != nil {
			return nil, err
		}
		for partition := range meta.PartitionToWriteStats {
			if _, ok := unmarked[partition]; ok && !slices.Contains(out, partition) {
				out = append(out, partition)
			}
		}
	}
	return out, nil
}

// Commit reads what a completed write says of itself, archived ones too.
func (s *Source) Commit(ctx context.Context, in timeline.Instant) (*timeline.CommitMetadata, error) {
	return timeline.ReadCommit(ctx, s.Store, in)
}

// emptyFor is how long a completed commit may be empty before a reader calls it damaged: a store that shows a file
// before its content has it within this time.
const emptyFor = 2 * time.Second

// loadTimeline loads the timeline and waits a moment for completed commits that have no content yet. To take such a commit
// for one that wrote nothing would hide its rows.
func loadTimeline(ctx context.Context, store storage.Store, cfg *config.Table) (timeline.Timeline, error) {
	for deadline := time.Now().Add(emptyFor); ; {
		tl, err := timeline.Load(ctx, store, cfg)
		if err != nil {
			return tl, err
		}
		empty := tl.Filter(func(i timeline.Instant) bool {
			return i.State == timeline.Completed && i.Action.IsWrite() && i.Size == 0
		})
		in, some := empty.Last()
		if !some {
			return tl, nil
		}
		if time.Now().After(deadline) {
			return tl, &emptyError{storage.Join(store.URL(), in.File)}
		}
		select {
		case <-ctx.Done():
			return tl, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// emptyError refuses a table with a completed commit that has no content.
type emptyError struct{ file string }

func (e *emptyError) Error() string {
	return fmt.Sprintf("completed commit %s is empty: what it wrote can't be known", e.file)
}

// NextStep for a person.
func (e *emptyError) NextStep() string {
	return "restore the file from a backup, or delete it so that its inflight instant is rolled back by the next write; its rows are then gone"
}

// ErrCleaned is wrapped when a query asks for a time whose files the cleaner may have removed.
var ErrCleaned = errors.New("the cleaner removed files that this query needs")

// CleanedError says which instant can't be read any more and what can.
type CleanedError struct {
	Asked    string // instant, or begin of the range
	Earliest string // oldest instant that is still whole
}

func (e *CleanedError) Error() string {
	return fmt.Sprintf("%v: asked for %s, but only instants from %s on are retained", ErrCleaned, e.Asked, e.Earliest)
}

// Unwrap makes errors.Is(err, ErrCleaned) true.
func (e *CleanedError) Unwrap() error { return ErrCleaned }

// NextStep for a person.
func (e *CleanedError) NextStep() string {
	return fmt.Sprintf("ask for %s or later; to keep more history raise hoodie.clean.commits.retained (hoodie.cleaner.commits.retained) on the writers, or set a savepoint", e.Earliest)
}

// checkRetained refuses a time-travel instant that the cleaner has passed, as Apache Hudi 0.14 and later do: below the
// earliest retained commit of the last clean or, where the cleaner counts versions and names none, below the first
// completed write of the active timeline.
func (s *Source) checkRetained(at string) error {
	earliest, err := s.cleaned()
	if err != nil {
		return err
	}
	if earliest == "" || earliest <= at {
		return nil
	}
	return &CleanedError{Asked: at, Earliest: earliest}
}

func (s *Source) readEarliestRetained(ctx context.Context) (string, error) {
	cleans := s.Timeline.Completed().Filter(func(i timeline.Instant) bool { return i.Action == timeline.Clean })
	last, ok := cleans.Last()
	if !ok {
		return "", nil
	}
	meta, err := timeline.ReadClean(ctx, s.Store, last)
	if err != nil {
		return "", err
	}
	if meta.EarliestToRetain != "" {
		return meta.EarliestToRetain, nil
	}
	for _, in := range s.Timeline.Instants() {
		if in.State == timeline.Completed && in.Action.IsWrite() {
			return in.Time, nil
		}
	}
	return "", nil
}
