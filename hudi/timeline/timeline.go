// Package timeline reads the log of everything that was ever done to a table: instants, their states, and the metadata
// that each completed action left. Two layouts (1: tables of version 1 to 6, 2: versions 8 and 9) stand behind one [Load].
package timeline

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Action is the logical action of an instant. A compaction that completes becomes a Commit on storage, a log compaction a
// DeltaCommit, a clustering a ReplaceCommit; an Instant of a completed compaction therefore has Action Commit.
type Action string

// The actions.
const (
	Commit        Action = "commit"
	DeltaCommit   Action = "deltacommit"
	ReplaceCommit Action = "replacecommit"
	Clustering    Action = "clustering" // pending only, layout 2; layout 1 plans clustering as a ReplaceCommit
	Compaction    Action = "compaction" // pending only
	LogCompaction Action = "logcompaction"
	Clean         Action = "clean"
	Rollback      Action = "rollback"
	Savepoint     Action = "savepoint"
	Restore       Action = "restore"
	Indexing      Action = "indexing"
	SchemaCommit  Action = "schemacommit"
)

// IsWrite reports whether a completed instant of this action put data files in place.
func (a Action) IsWrite() bool { return a == Commit || a == DeltaCommit || a == ReplaceCommit }

// State of an instant.
type State uint8

// The states, in the order in which an instant passes through them.
const (
	Requested State = iota
	Inflight
	Completed
)

func (s State) String() string { return [...]string{"REQUESTED", "INFLIGHT", "COMPLETED"}[s] }

// Instant is one action on the timeline in the highest state that was found.
type Instant struct {
	Time   string // requested time: 17 digits, 14 in old tables, longer in metadata tables; compared as text
	Action Action
	State  State
	// Completion is the completion time. Layout 2: from the file name, or the modification time of a legacy file. Layout 1:
	// the file's modification time, formatted in UTC as 17 digits, for information only. Empty while pending.
	Completion string
	// File is the name of the file of this state below the table's base path; empty for an archived instant.
	File string
	Size int64 // bytes of File
	// Files are the names of all state files of the instant that were found, this state's among them.
	Files    []string
	Modified time.Time
	Archived bool

	archive *archived    // where the bodies of an archived instant lie
	schemas *schemaCache // shared by the instants of one load
}

// Pending reports whether the instant has not completed.
func (i Instant) Pending() bool { return i.State != Completed }

// Timeline is an immutable list of instants in order of (Time, Action).
type Timeline struct {
	layout   int
	instants []Instant
}

// New makes a timeline of the given layout (1 or 2) from instants in any order.
func New(layout int, instants []Instant) Timeline {
	instants = slices.Clone(instants)
	slices.SortStableFunc(instants, func(a, b Instant) int {
		return cmp.Or(strings.Compare(a.Time, b.Time), strings.Compare(string(a.Action), string(b.Action)))
	})
	return Timeline{layout: layout, instants: instants}
}

// Layout is 1 or 2.
func (t Timeline) Layout() int { return t.layout }

// Instants are all instants, oldest first. Do not change the slice.
func (t Timeline) Instants() []Instant { return t.instants }

// Len is the number of instants.
func (t Timeline) Len() int { return len(t.instants) }

// Filter keeps the instants that keep accepts.
func (t Timeline) Filter(keep func(Instant) bool) Timeline {
	var out []Instant
	for _, i := range t.instants {
		if keep(i) {
			out = append(out, i)
		}
	}
	return Timeline{layout: t.layout, instants: out}
}

// Completed keeps what has completed.
func (t Timeline) Completed() Timeline {
	return t.Filter(func(i Instant) bool { return i.State == Completed })
}

// Pending keeps what has not completed.
func (t Timeline) Pending() Timeline { return t.Filter(Instant.Pending) }

// Writes keeps commits, delta commits and replace commits (compaction and clustering among them) of any state.
func (t Timeline) Writes() Timeline {
	return t.Filter(func(i Instant) bool {
		return i.Action.IsWrite() || i.Action == Compaction || i.Action == LogCompaction || i.Action == Clustering
	})
}

// Last is the newest instant, and whether there is one.
func (t Timeline) Last() (Instant, bool) {
	if len(t.instants) == 0 {
		return Instant{}, false
	}
	return t.instants[len(t.instants)-1], true
}

// Find gives the instant with exactly this requested time and action.
func (t Timeline) Find(at string, action Action) (Instant, bool) {
	i, ok := slices.BinarySearchFunc(t.instants, at, func(in Instant, at string) int { return strings.Compare(in.Time, at) })
	for ; ok && i < len(t.instants) && t.instants[i].Time == at; i++ {
		if t.instants[i].Action == action {
			return t.instants[i], true
		}
	}
	return Instant{}, false
}
