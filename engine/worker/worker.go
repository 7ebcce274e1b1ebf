// Package worker is the far end of engines that run tasks in processes of their own: each line that comes in is a task, each
// line that goes out the result of one. Child processes of this machine, Spark executors and Kubernetes jobs all speak it.
package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/sluicelake/sluice/engine"
)

// maxLine bounds one line in bytes: a task of a table with very many files per slice has some hundred thousand.
const maxLine = 64 << 20

// Options of Serve.
type Options struct {
	Memory  int64  // bytes for the task that runs; 0 means DefaultMemory
	TempDir string // for spilled data; empty means the system's
	// Report turns the failure of a task that may succeed at another time into a result too, and goes on. Without it Serve
	// ends with the failure and its process is to exit with another code than 0, so that who started it does so again.
	// Refused tasks are results in both cases: another try can't help them.
	Report bool
	// Log takes what a person may want to know; nil is silence. It must not write where results go.
	Log *slog.Logger
}

// DefaultMemory of a task.
const DefaultMemory = 512 << 20

// Serve runs the tasks that come in, one after the other, and writes a result for each. Empty lines are ignored.
func Serve(ctx context.Context, in io.Reader, out io.Writer, handlers engine.Handlers, opts Options) error {
	if opts.Memory <= 0 {
		opts.Memory = DefaultMemory
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	scope := engine.Scope{Memory: opts.Memory, TempDir: opts.TempDir, Progress: func(rows, bytes int64) {}}
	lines := NewLines(in)
	for {
		var task engine.Task
		switch err := lines.Next(&task); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("tasks on standard input: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		res := handlers.Run(ctx, task, scope)
		switch f := res.Failure; {
		case f == nil:
			opts.Log.Info("task done", "task", task.ID, "rows", res.Stats.Rows, "bytes", res.Stats.BytesRead, "elapsed", res.Stats.Elapsed)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !f.Refused && !opts.Report:
			return fmt.Errorf("task %s: %w", task.ID, f)
		default:
			opts.Log.Error("task failed", "task", task.ID, "refused", f.Refused, "error", f.Message)
		}
		line, err := Line(res)
		if err != nil {
			return fmt.Errorf("result of task %s: %w", task.ID, err)
		}
		if _, err := out.Write(line); err != nil {
			return fmt.Errorf("result of task %s: %w", task.ID, err)
		}
	}
}

// Line is a value as one line of JSON in ASCII, with its line break. What lies between two processes may decode and encode
// text in whatever character set its machine has; in ASCII nothing is lost.
func Line(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Grow(len(text) + 1)
	for len(text) > 0 {
		if text[0] < utf8.RuneSelf {
			b.WriteByte(text[0])
			text = text[1:]
			continue
		}
		r, n := utf8.DecodeRune(text)
		if r1, r2 := utf16.EncodeRune(r); r1 != utf8.RuneError {
			fmt.Fprintf(&b, `\u%04x\u%04x`, r1, r2)
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[n:]
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// Lines reads values that Line wrote.
type Lines struct {
	in     *bufio.Reader
	number int
}

// NewLines reads from in.
func NewLines(in io.Reader) *Lines { return &Lines{in: bufio.NewReader(in)} }

// Next decodes the next line that is not empty, and returns io.EOF when there is none.
func (l *Lines) Next(v any) error {
	for {
		line, err := l.line()
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if err := json.Unmarshal(line, v); err != nil {
				return fmt.Errorf("line %d: %w", l.number, err)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (l *Lines) line() ([]byte, error) {
	l.number++
	var line []byte
	for {
		part, err := l.in.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return nil, fmt.Errorf("line %d is longer than %d bytes", l.number, maxLine)
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// ErrOrphaned is the cause of a context that ended because the process that started this one is gone.
var ErrOrphaned = errors.New("the process that started this worker is gone: nobody waits for its results")

// lookEvery is how long a worker may outlive the one who started it.
const lookEvery = time.Second

// UntilOrphaned gives a context that ends when the parent process does. A worker that went on would write files that
// nobody waits for.
func UntilOrphaned(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	parent := os.Getppid()
	go func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if os.Getppid() != parent {
					cancel(ErrOrphaned)
					return
				}
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}
