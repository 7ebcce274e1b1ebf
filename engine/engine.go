// Package engine runs tasks. A job plans tasks and commits their results; between the two, an Engine decides how many run
// at once, where, with how much memory and how often again. Nothing above this package knows which engine runs, and no
// engine knows what a task means.
package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Task is one unit of work: small, serialisable, and safe to run again or twice at once. Its outputs carry deterministic
// names under a token of the attempt, and a commit trusts only the files that results name.
type Task struct {
	ID   string          `json:"id"`
	Kind string          `json:"kind"` // names the Handler
	Cost int64           `json:"cost"` // bytes of input, for order and progress
	Spec json.RawMessage `json:"spec"`
}

// Result is what became of one task: Out or Failure.
type Result struct {
	ID      string          `json:"id"`
	Out     json.RawMessage `json:"out,omitempty"`
	Failure *Failure        `json:"failure,omitempty"`
	Stats   Stats           `json:"stats"`
}

// Failure is a task's error in a form that crosses processes.
type Failure struct { //nolint:errname // it is the failure of a Result, not an error of this package's functions
	Message string `json:"message"`
	Refused bool   `json:"refused,omitempty"` // will fail again in the same way: no retry
	Next    string `json:"next,omitempty"`    // what a person can do, where the error knows

	err error // the error itself, where it did not cross a process border
}

func (f *Failure) Error() string { return f.Message }

// Unwrap gives the error itself when the task ran in this process, and of one that was refused elsewhere ErrRefused.
func (f *Failure) Unwrap() error {
	if f.err == nil && f.Refused {
		return ErrRefused
	}
	return f.err
}

// NextStep for a person.
func (f *Failure) NextStep() string { return f.Next }

// Fail makes a Failure of an error.
func Fail(err error) *Failure {
	f := &Failure{Message: err.Error(), Refused: errors.Is(err, ErrRefused), err: err}
	var hinted interface{ NextStep() string }
	if errors.As(err, &hinted) {
		f.Next = hinted.NextStep()
	}
	return f
}

// ErrRefused marks errors that a retry can't change.
var ErrRefused = errors.New("refused")

// Stats count what a task did.
type Stats struct {
	Rows         int64         `json:"rows"`
	BytesRead    int64         `json:"bytesRead"`
	BytesWritten int64         `json:"bytesWritten"`
	Files        int64         `json:"files"` // written
	Elapsed      time.Duration `json:"elapsed"`
}

// Add sums up counts. Elapsed adds as well: it is the time of tasks, not of the clock on the wall.
func (s *Stats) Add(o Stats) {
	s.Rows += o.Rows
	s.BytesRead += o.BytesRead
	s.BytesWritten += o.BytesWritten
	s.Files += o.Files
	s.Elapsed += o.Elapsed
}

// Scope is what a running task may use.
type Scope struct {
	// Memory in bytes that this task may hold beside small change; what does not fit spills to TempDir.
	Memory int64
	// TempDir is a local folder for spilled data; empty means the system's.
	TempDir string
	// Progress reports rows and input bytes done since the last call. Safe for concurrent use, never nil.
	Progress func(rows, bytes int64)
}

// Handler executes tasks of one kind.
type Handler func(ctx context.Context, task Task, scope Scope) (out json.RawMessage, stats Stats, err error)

// Handlers are the kinds of task that a process can run.
type Handlers map[string]Handler

// Run executes one task in this process and never returns an error: what went wrong is in the Result.
func (h Handlers) Run(ctx context.Context, task Task, scope Scope) Result {
	start := time.Now()
	res := Result{ID: task.ID}
	handler, ok := h[task.Kind]
	if !ok {
		res.Failure = Fail(fmt.Errorf("%w: no handler for tasks of kind %q: the program and its workers differ in version", ErrRefused, task.Kind))
		return res
	}
	out, stats, err := handler(ctx, task, scope)
	stats.Elapsed = time.Since(start)
	res.Out, res.Stats = out, stats
	if err != nil {
		res.Out, res.Failure = nil, Fail(err)
	}
	return res
}

// Engine runs all tasks and calls each once per finished task, never concurrently. It returns the first failure after
// stopping the rest, or the error of each. It never commits: what it returns a result for may have run more than once, and
// an attempt that nobody waits for any more may still be running somewhere.
type Engine interface {
	Run(ctx context.Context, tasks []Task, each func(Result) error) error
}

// Event is something that a job or an engine wants to be known: progress bars, log lines and metrics are made of events.
type Event interface{ event() }

// Observer receives events, possibly from several goroutines at once; it must not block for long.
type Observer func(Event)

// Planned is sent once, when a job knows its tasks.
type Planned struct {
	Job   string // "export orders"
	Tasks int
	Bytes int64
}

// Advanced reports rows and input bytes done since the last one.
type Advanced struct{ Rows, Bytes int64 }

// TaskDone is sent for each finished task.
type TaskDone struct{ Result Result }

// Retried is sent before a failed task runs again.
type Retried struct {
	Task    Task
	Attempt int // the one that failed, from 1
	Err     error
}

// Noted is a remark that a person should see: something was skipped, or left as it was.
type Noted struct{ Text string }

// Finished is sent once, at the end of a job.
type Finished struct {
	Job   string
	Stats Stats
	Wall  time.Duration
	Err   error
}

func (Planned) event()  {}
func (Advanced) event() {}
func (TaskDone) event() {}
func (Retried) event()  {}
func (Noted) event()    {}
func (Finished) event() {}
