package timeline

import "strings"

// Visibility answers which instants are committed, from the active timeline alone (table format 4.2): one that has completed,
// and one that is older than the timeline's start and not pending, because archival never removes a failed write. Build it
// once per view; safe for use by several goroutines.
type Visibility struct {
	start     string
	completed map[string]bool // completed writes
	pending   map[string]bool
}

// Visibility of the timeline as it stands.
func (t Timeline) Visibility() Visibility {
	v := Visibility{completed: map[string]bool{}, pending: map[string]bool{}}
	saved := map[string]bool{}
	for _, i := range t.instants {
		if i.Action == Savepoint {
			saved[i.Time] = true
		}
	}
	for _, i := range t.instants {
		switch {
		case !i.Action.Completes().IsWrite():
		case i.State != Completed:
			v.pending[i.Time] = true
		default:
			v.completed[i.Time] = true
			if v.start == "" && !saved[i.Time] {
				v.start = i.Time // instants are in order
			}
		}
	}
	return v
}

// Start is the smallest completed write of the active timeline that no savepoint protects; empty when there is none, and then
// nothing is older than it. Pending instants do not count: a write that died long ago may be older than commits that were
// archived since (C089).
func (v Visibility) Start() string { return v.start }

// IsCommitted reports whether what the instant wrote may be seen. A pending instant never is, whatever its age (C089).
func (v Visibility) IsCommitted(at string) bool {
	return v.completed[at] || !v.pending[at] && v.start != "" && strings.Compare(at, v.start) < 0
}

// IsPending reports whether the instant is a write that has not completed.
func (v Visibility) IsPending(at string) bool { return v.pending[at] && !v.completed[at] }
