// Package filegroup answers one question: which files are visible at an instant. Readers, writers, the exporter and the
// table services all ask it here. It opens no data file; where two rules of Apache Hudi's table versions differ (layout 1
// puts a log file in a slice by its name, layout 2 by its completion time) both stand side by side in this package.
package filegroup

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/logfile"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/storage"
)

// BaseFile is one base file of a file group.
type BaseFile struct {
	BaseName
	Name string // relative to the table
	Size int64  // bytes
}

// LogFile is one log file of a file group.
type LogFile struct {
	logfile.Name
	Path string // relative to the table
	Size int64  // bytes
}

// Slice is what a reader opens of one file group: at most one base file, and the log files to merge over it in order.
// Whether each block of a log file counts is for the log reader to say.
type Slice struct {
	Partition string
	FileID    string
	Instant   string // of the base file, or of the oldest log of a slice that has no base file
	Base      *BaseFile
	Logs      []LogFile
}

// Bytes is the size of all files of the slice.
func (s Slice) Bytes() int64 {
	var n int64
	if s.Base != nil {
		n = s.Base.Size
	}
	for _, l := range s.Logs {
		n += l.Size
	}
	return n
}

// Mode says which files of a slice a query wants.
type Mode uint8

const (
	// Snapshot wants the newest state: base file and logs.
	Snapshot Mode = iota
	// ReadOptimized wants the newest base file of each group; groups that have only logs give nothing.
	ReadOptimized
)

// Group identifies a file group. A file id alone does not: with non-blocking concurrency control it is the same in
// every partition.
type Group struct{ Partition, FileID string }

// View is the state of a table's timeline, prepared for asking which files are visible. It is immutable and safe for
// concurrent use.
type View struct {
	cfg   *config.Table
	store storage.Store
	tl    timeline.Timeline
	vis   timeline.Visibility

	// replaced maps a group to the earliest completed instant that replaced it.
	replaced map[Group]string
	// compacting holds the times of compactions that are planned but not done.
	compacting map[string]bool
	// completed maps requested to completion time (layout 2).
	completed map[string]string
	// only, when set, says which instants' files exist for this view.
	only func(instant string) bool
	// history gives the completion times of archived instants, read at most once and only when a log needs one.
	history func() (map[string]string, error)
}

// readers bounds how many timeline files are read at once.
const readers = 16

// Open prepares a view of the active timeline tl. It reads the replace commits of the timeline and nothing else.
func Open(ctx context.Context, store storage.Store, cfg *config.Table, tl timeline.Timeline) (*View, error) {
	v := &View{
		cfg: cfg, store: store, tl: tl, vis: tl.Visibility(),
		replaced: map[Group]string{}, compacting: map[string]bool{}, completed: map[string]string{},
	}
	v.history = sync.OnceValues(func() (map[string]string, error) { return v.readHistory(context.WithoutCancel(ctx)) })
	var replaces []timeline.Instant
	for _, in := range tl.Instants() {
		switch {
		case in.Action == timeline.Compaction && in.Pending():
			v.compacting[in.Time] = true
		case in.State == timeline.Completed && in.Action.IsWrite():
			v.completed[in.Time] = in.Completion
		}
		if in.Action == timeline.ReplaceCommit && in.State == timeline.Completed {
			replaces = append(replaces, in)
		}
	}
	return v, v.readReplaced(ctx, replaces)
}

func (v *View) readReplaced(ctx context.Context, replaces []timeline.Instant) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	var mu sync.Mutex
	for _, in := range replaces {
		g.Go(func() error {
			meta, err := timeline.ReadCommit(gctx, v.store, in)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			for partition, ids := range meta.PartitionToReplaceFileIDs {
				for _, id := range ids {
					key := Group{partition, id}
					if old, ok := v.replaced[key]; !ok || in.Time < old {
						v.replaced[key] = in.Time
					}
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// Timeline is the active timeline that the view was made of.
func (v *View) Timeline() timeline.Timeline { return v.tl }

// Only gives the view in which nothing but the files of some completed instants exists, and in which only they replaced file
// groups: the view of an incremental query, or of the moment before an instant.
func (v *View) Only(exists func(instant string) bool) *View {
	out := *v
	out.only = exists
	out.replaced = map[Group]string{}
	for g, t := range v.replaced {
		if exists(t) {
			out.replaced[g] = t
		}
	}
	return &out
}

// Committed reports whether what an instant wrote counts for a reader at the instant at (table format 4.2).
func (v *View) Committed(instant, at string) bool {
	if v.only != nil {
		return instant <= at && v.only(instant)
	}
	return instant <= at && v.vis.IsCommitted(instant)
}

// CompletedAt is when a write of the active timeline completed; false for others.
func (v *View) CompletedAt(instant string) (string, bool) {
	c, ok := v.completed[instant]
	return c, ok && c != ""
}

// ReplacedAt is the instant at which a group was replaced; empty when it never was.
func (v *View) ReplacedAt(g Group) string { return v.replaced[g] }

// Latest is the requested time of the newest completed write, which is what a snapshot is pinned to; false when nothing
// was ever completed.
func (v *View) Latest() (string, bool) {
	for _, in := range slices.Backward(v.tl.Instants()) {
		if in.State == timeline.Completed && in.Action.IsWrite() {
			return in.Time, true
		}
	}
	return "", false
}

// Slices gives the visible slice of each file group of a partition at an instant, in order of file id. The files are
// those that a listing, or the metadata table, found in that partition.
func (v *View) Slices(ctx context.Context, partition string, files []storage.Info, at string, mode Mode) ([]Slice, error) {
	groups := v.group(files)
	ids := make([]string, 0, len(groups))
	for id := range groups {
		if r := v.replaced[Group{partition, id}]; r != "" && r <= at {
			continue
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	out := make([]Slice, 0, len(ids))
	for _, id := range ids {
		s, ok, err := v.slice(ctx, groups[id], at, mode)
		if err == nil && s.Base != nil && s.Base.Instant == metadataBootstrap {
			err = v.skeleton()
		}
		if err != nil {
			return nil, fmt.Errorf("partition %q, file group %s: %w", partition, id, err)
		}
		if ok {
			s.Partition, s.FileID = partition, id
			out = append(out, s)
		}
	}
	return out, nil
}

// metadataBootstrap is the instant of base files that hold nothing but the meta columns of rows that lie in the folder
// where the table was bootstrapped from.
const metadataBootstrap = "00000000000001"

func (v *View) skeleton() error {
	return &config.UnsupportedError{
		Table: v.store.URL(), Property: "hoodie.bootstrap.base.path", Value: v.cfg.BootstrapBasePath,
		Hint: "this file group was bootstrapped by metadata only, its rows lie outside of the table; rewrite the table with Apache Hudi (clustering, or a full-record bootstrap)",
	}
}

// members are all files of one group, visible or not.
type members struct {
	bases []BaseFile
	logs  []LogFile
}

func (v *View) group(files []storage.Info) map[string]*members {
	groups := map[string]*members{}
	get := func(id string) *members {
		m := groups[id]
		if m == nil {
			m = &members{}
			groups[id] = m
		}
		return m
	}
	for _, f := range files {
		name := path.Base(f.Name)
		if log, ok := logfile.ParseName(name); ok {
			if !log.CDC { // change data is no part of a snapshot
				m := get(log.FileID)
				m.logs = append(m.logs, LogFile{Name: log, Path: f.Name, Size: f.Size})
			}
			continue
		}
		if base, ok := ParseBaseName(name); ok && isBaseExt(base.Ext) {
			m := get(base.FileID)
			m.bases = append(m.bases, BaseFile{BaseName: base, Name: f.Name, Size: f.Size})
		}
	}
	return groups
}

func isBaseExt(ext string) bool {
	switch ext {
	case ".parquet", ".orc", ".hfile":
		return true
	}
	return false
}

func (v *View) slice(ctx context.Context, m *members, at string, mode Mode) (Slice, bool, error) {
	bases, err := v.visibleBases(ctx, m.bases, at)
	if err != nil {
		return Slice{}, false, err
	}
	if mode == ReadOptimized {
		if len(bases) == 0 {
			return Slice{}, false, nil
		}
		newest := bases[len(bases)-1]
		return Slice{Instant: newest.Instant, Base: &newest}, true, nil
	}
	if v.tl.Layout() == 1 {
		s, ok := v.sliceByName(bases, m.logs, at)
		return s, ok, nil
	}
	return v.sliceByCompletion(ctx, bases, m.logs, at)
}

// visibleBases keeps the committed base files, oldest first, one for each instant.
func (v *View) visibleBases(ctx context.Context, all []BaseFile, at string) ([]BaseFile, error) {
	var out []BaseFile
	for _, b := range all {
		if v.Committed(b.Instant, at) {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b BaseFile) int {
		return cmp.Or(strings.Compare(a.Instant, b.Instant), strings.Compare(a.Token, b.Token))
	})
	for i := 1; i < len(out); i++ {
		if out[i].Instant != out[i-1].Instant {
			continue
		}
		keep, err := v.survivor(ctx, out[i-1], out[i])
		if err != nil {
			return nil, err
		}
		out[i] = keep
		out = slices.Delete(out, i-1, i)
		i--
	}
	return out, nil
}

// survivor picks, of two base files of one group and instant (a task ran twice and its first file was left behind), the
// one that the commit names (table format 4.4). Where the commit is archived the later attempt is taken.
func (v *View) survivor(ctx context.Context, a, b BaseFile) (BaseFile, error) {
	for _, action := range []timeline.Action{timeline.Commit, timeline.DeltaCommit, timeline.ReplaceCommit} {
		in, ok := v.tl.Find(a.Instant, action)
		if !ok || in.Pending() {
			continue
		}
		meta, err := timeline.ReadCommit(ctx, v.store, in)
		if err != nil {
			return b, err
		}
		for _, stats := range meta.PartitionToWriteStats {
			for _, s := range stats {
				switch path.Base(s.Path) {
				case path.Base(a.Name):
					return a, nil
				case path.Base(b.Name):
					return b, nil
				}
			}
		}
	}
	return b, nil
}

// sliceByName builds the newest slice of layout 1, where the middle of a log's name is the base instant of its slice. A
// slice that a pending compaction opened has logs but no base file yet: its logs go on top of the slice before.
func (v *View) sliceByName(bases []BaseFile, logs []LogFile, at string) (Slice, bool) {
	byBase := map[string][]LogFile{}
	for _, l := range logs {
		if l.Instant <= at {
			byBase[l.Instant] = append(byBase[l.Instant], l)
		}
	}
	instants := make([]string, 0, len(byBase)+len(bases))
	baseAt := map[string]*BaseFile{}
	for i := range bases {
		baseAt[bases[i].Instant] = &bases[i]
		instants = append(instants, bases[i].Instant)
	}
	for t := range byBase {
		if baseAt[t] == nil {
			instants = append(instants, t)
		}
	}
	slices.Sort(instants)
	var out Slice
	for i, t := range slices.Backward(instants) {
		out.Instant = t
		out.Base = baseAt[t]
		out.Logs = append(sorted(byBase[t]), out.Logs...)
		if out.Base != nil || !v.compacting[t] || i == 0 {
			return out, true
		}
	}
	return out, false
}

func sorted(logs []LogFile) []LogFile {
	slices.SortFunc(logs, func(a, b LogFile) int { return logfile.Compare(a.Name, b.Name) })
	return logs
}

// sliceByCompletion builds the newest slice of layout 2: a log belongs to the slice with the greatest base instant that is
// not after the log's completion (table format 4.3).
func (v *View) sliceByCompletion(ctx context.Context, bases []BaseFile, logs []LogFile, at string) (Slice, bool, error) {
	var out Slice
	if n := len(bases); n > 0 {
		out.Base, out.Instant = &bases[n-1], bases[n-1].Instant
	}
	for _, l := range logs {
		if !v.Committed(l.Instant, at) {
			continue
		}
		done, err := v.completion(ctx, l.Instant)
		if err != nil {
			return out, false, err
		}
		if out.Base == nil || done >= out.Base.Instant {
			out.Logs = append(out.Logs, l)
		}
	}
	out.Logs = sorted(out.Logs)
	if out.Base == nil {
		if len(out.Logs) == 0 {
			return out, false, nil
		}
		out.Instant = out.Logs[0].Instant
	}
	return out, true, nil
}

// completion is when a committed instant completed: from the active timeline, else from the history, else at itself.
func (v *View) completion(ctx context.Context, instant string) (string, error) {
	if c, ok := v.completed[instant]; ok && c != "" {
		return c, nil
	}
	done, err := v.history()
	if err != nil {
		return "", err
	}
	if c, ok := done[instant]; ok {
		return c, nil
	}
	return instant, nil
}

func (v *View) readHistory(ctx context.Context) (map[string]string, error) {
	old, err := timeline.Archive(ctx, v.store, v.cfg, "", "")
	if err != nil {
		return nil, err
	}
	done := make(map[string]string, old.Len())
	for _, in := range old.Instants() {
		if in.State == timeline.Completed && in.Completion != "" {
			done[in.Time] = in.Completion
		}
	}
	return done, nil
}
