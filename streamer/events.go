package streamer

import (
	"time"

	"github.com/sluicelake/sluice/hudi/operation"
)

// Event is something that a person may want to see: a Note, a Began, a Wrote or a Round.
type Event interface{ event() }

// Note is a text for a person.
type Note struct{ Table, Text string }

// Began is sent when a round found something to read.
type Began struct {
	Table string
	Round int
	From  string // checkpoint
	Files int
	Bytes int64
	Left  int // files that the source limit leaves for later rounds
}

// Wrote passes on what a write tells.
type Wrote struct {
	Table string
	operation.Event
}

// Round is what one round did.
type Round struct {
	Table      string
	Number     int    // from 1
	From       string // checkpoint that it began at; empty: from the beginning
	Checkpoint string // for the next round
	Instant    string // of the commit; empty: there was nothing to do
	Files      int
	Bytes      int64
	Waiting    int // files that were too young to be read
	Left       int // files that the source limit left
	Late       int // files that came under a time that was read before
	Rejected   int64
	Result     *operation.Result // nil where nothing was written
	Took       time.Duration
}

func (Note) event()  {}
func (Began) event() {}
func (Wrote) event() {}
func (Round) event() {}

// Summary is what a run did.
type Summary struct {
	Rounds   int // all of them
	Commits  int
	Files    int
	Bytes    int64
	Read     int64 // rows
	Inserted int64
	Updated  int64
	Deleted  int64
	Rejected int64
	Rewrote  int    // files written
	Last     string // checkpoint
	Took     time.Duration
	Failed   []string // tables of a multi-table run
	Stopped  string   // why a continuous run ended
}

func (s *Summary) add(r Round) {
	s.Rounds++
	s.Files += r.Files
	s.Bytes += r.Bytes
	s.Rejected += r.Rejected
	s.Last = r.Checkpoint
	if r.Instant != "" {
		s.Commits++
	}
	if r.Result != nil {
		s.Read += r.Result.Read
		s.Inserted += r.Result.Inserted
		s.Updated += r.Result.Updated
		s.Deleted += r.Result.Deleted
		s.Rewrote += r.Result.Files
	}
}

func (s *Summary) join(o Summary) {
	s.Rounds += o.Rounds
	s.Commits += o.Commits
	s.Files += o.Files
	s.Bytes += o.Bytes
	s.Read += o.Read
	s.Inserted += o.Inserted
	s.Updated += o.Updated
	s.Deleted += o.Deleted
	s.Rejected += o.Rejected
	s.Rewrote += o.Rewrote
	s.Failed = append(s.Failed, o.Failed...)
}
