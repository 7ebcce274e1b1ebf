package timeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/storage"
)

// Load reads the active timeline of the table at the root of store, with one listing. What is no timeline file by its name is
// ignored: sidecars, temporary files, folders (table format 2.2, and 11 trap 36).
func Load(ctx context.Context, store storage.Store, cfg *config.Table) (Timeline, error) {
	g := grouper{layout: cfg.Layout, zone: Zone(cfg), index: map[groupKey]int{}, schemas: newSchemaCache()}
	for info, err := range store.List(ctx, cfg.TimelinePath, storage.ListOptions{}) {
		if err != nil {
			return Timeline{}, fmt.Errorf("list the timeline: %w", err)
		}
		if info.Dir {
			continue
		}
		if f, ok := ParseFileName(cfg.Layout, info.Name[strings.LastIndexByte(info.Name, '/')+1:]); ok {
			g.add(f, info)
		}
	}
	return New(cfg.Layout, g.instants), nil
}

// LoadSchemaCommits reads the timeline of schema commits in .hoodie/.schema. It is empty for most tables.
func LoadSchemaCommits(ctx context.Context, store storage.Store) (Timeline, error) {
	// The folder keeps the names of layout 1 in both layouts.
	t, err := Load(ctx, store, &config.Table{Layout: 1, TimelinePath: schemaFolder, TimelineZone: "UTC"})
	if errors.Is(err, storage.ErrNotExist) {
		return New(1, nil), nil
	}
	return t, err
}

const schemaFolder = ".hoodie/.schema"

// FileName is what a timeline file's name says.
type FileName struct {
	Time       string
	Completion string // layout 2, completed
	Action     Action // as written: a compaction's requested file says compaction, its completed one commit
	State      State
}

const maxDigits = 64 // more digits than any release writes

// ParseFileName understands the bare name of a timeline file of the layout, and reports false for every other name (table
// format 2.2).
func ParseFileName(layout int, name string) (FileName, bool) {
	at, rest, ok := strings.Cut(name, ".")
	if !ok {
		return FileName{}, false
	}
	var f FileName
	f.Time, f.Completion, ok = strings.Cut(at, "_")
	if ok && (layout == 1 || !allDigits(f.Completion)) || !allDigits(f.Time) {
		return FileName{}, false
	}
	action, state, ok := strings.Cut(rest, ".")
	f.Action, f.State = Action(action), Completed
	switch {
	case !ok && action == "inflight": // the one name without an action
		f.Action, f.State = Commit, Inflight
	case ok && state == "inflight":
		f.State = Inflight
	case ok && state == "requested":
		f.State = Requested
	case ok:
		return FileName{}, false
	}
	if f.Completion != "" && f.State != Completed {
		return FileName{}, false
	}
	return f, f.Action.known(f.State)
}

// known reports whether an action has a file of this state: compactions, log compactions and clusterings complete as others.
func (a Action) known(s State) bool {
	switch a {
	case Commit, DeltaCommit, ReplaceCommit, Clean, Rollback, Savepoint, Restore, Indexing, SchemaCommit:
		return true
	case Compaction, LogCompaction, Clustering:
		return s != Completed
	}
	return false
}

// Completes is the action under which a pending action completes.
func (a Action) Completes() Action {
	switch a {
	case Compaction:
		return Commit
	case LogCompaction:
		return DeltaCommit
	case Clustering:
		return ReplaceCommit
	}
	return a
}

func allDigits(s string) bool {
	if s == "" || len(s) > maxDigits {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// String is the bare name of the file; ParseFileName understands it.
func (f FileName) String() string {
	switch {
	case f.State == Completed && f.Completion != "":
		return f.Time + "_" + f.Completion + "." + string(f.Action)
	case f.State == Completed:
		return f.Time + "." + string(f.Action)
	case f.State == Inflight && f.Action == Commit:
		return f.Time + ".inflight"
	case f.State == Inflight:
		return f.Time + "." + string(f.Action) + ".inflight"
	}
	return f.Time + "." + string(f.Action) + ".requested"
}

type groupKey struct {
	time   string
	action Action
}

// grouper folds the files of an instant into one Instant in its highest state.
type grouper struct {
	layout   int
	zone     *time.Location
	instants []Instant
	index    map[groupKey]int
	schemas  *schemaCache
}

func (g *grouper) add(f FileName, info storage.Info) {
	key := groupKey{f.Time, f.Action.Completes()}
	at, found := g.index[key]
	if !found {
		at = len(g.instants)
		g.index[key] = at
		g.instants = append(g.instants, Instant{Time: f.Time, schemas: g.schemas})
	}
	i := &g.instants[at]
	i.Files = append(i.Files, info.Name)
	if found && (f.State < i.State || f.State == i.State && i.State != Completed) {
		return
	}
	completion := g.completion(f, info)
	if found && f.State == Completed && i.State == Completed && i.Completion <= completion {
		return // two completed files of one instant: the first one counts
	}
	i.Action, i.State, i.Completion = f.Action, f.State, completion
	i.File, i.Size, i.Modified = info.Name, info.Size, info.Modified
}

// completion of a file without a completion time in its name is its modification time: for layout 2 that is what an upgrade
// left (in the table's zone), for layout 1 it informs only.
func (g *grouper) completion(f FileName, info storage.Info) string {
	switch {
	case f.State != Completed:
		return ""
	case f.Completion != "":
		return f.Completion
	case g.layout == 1:
		return FormatTime(info.Modified, time.UTC)
	}
	return FormatTime(info.Modified, g.zone)
}
