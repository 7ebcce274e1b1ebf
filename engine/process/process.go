// Package process runs tasks in child processes of this one, several at once: a task that crashes or eats up all memory takes
// its own process along and nothing else. It is the smallest engine that speaks the protocol of package worker.
package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/engine/local"
	"github.com/sluicelake/sluice/engine/worker"
)

// DefaultAttempts of a task, the first one included. One more than in a pool: what kills a process may be its neighbours' use
// of memory.
const DefaultAttempts = 3

// Options of a pool of processes.
type Options struct {
	Program  string   // empty means this one
	Args     []string // nil means those of `sluice task` with a share of Memory
	Workers  int      // processes; 0 means one for each CPU
	Memory   int64    // bytes for all together; 0 means local.DefaultMemory
	TempDir  string   // for spilled data; empty means the system's
	Attempts int      // tries of a task; 0 means DefaultAttempts
	Observe  engine.Observer
}

// Pool is an engine.Engine of child processes.
type Pool struct{ opts Options }

// New makes a pool. Nothing is started before Run.
func New(opts Options) (*Pool, error) {
	if opts.Workers <= 0 {
		opts.Workers = runtime.GOMAXPROCS(0)
	}
	if opts.Memory <= 0 {
		opts.Memory = local.DefaultMemory
	}
	if opts.Attempts <= 0 {
		opts.Attempts = DefaultAttempts
	}
	if opts.Observe == nil {
		opts.Observe = func(engine.Event) {}
	}
	if opts.Program == "" {
		var err error
		if opts.Program, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("which program am I: %w", err)
		}
	}
	return &Pool{opts}, nil
}

// Workers is how many tasks run at once.
func (p *Pool) Workers() int { return p.opts.Workers }

// Run executes the tasks, the most expensive first so that the last ones to finish are short.
func (p *Pool) Run(ctx context.Context, tasks []engine.Task, each func(engine.Result) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	order := slices.Clone(tasks)
	slices.SortStableFunc(order, func(a, b engine.Task) int { return cmp.Compare(b.Cost, a.Cost) })
	queue := make(chan engine.Task, len(order))
	for _, t := range order {
		queue <- t
	}
	close(queue)
	workers := max(1, min(p.opts.Workers, len(order)))
	args := p.args(workers)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range workers {
		wg.Go(func() {
			seat := &seat{program: p.opts.Program, args: args}
			defer func() { seat.leave() }()
			for task := range queue {
				if ctx.Err() != nil {
					return
				}
				res := p.attempt(ctx, seat, task)
				mu.Lock()
				err := p.deliver(ctx, task, res, each)
				mu.Unlock()
				if err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// leastMemory is what `sluice task` asks for at least.
const leastMemory = 16 << 20

func (p *Pool) args(workers int) []string {
	if p.opts.Args != nil {
		return p.opts.Args
	}
	args := []string{"task", "--failures", "report", "--memory", fmt.Sprint(max(leastMemory, p.opts.Memory/int64(workers)))}
	if p.opts.TempDir != "" {
		args = append(args, "--temp-dir", p.opts.TempDir)
	}
	return args
}

func (p *Pool) deliver(ctx context.Context, task engine.Task, res engine.Result, each func(engine.Result) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.opts.Observe(engine.Advanced{Rows: res.Stats.Rows, Bytes: task.Cost})
	p.opts.Observe(engine.TaskDone{Result: res})
	if res.Failure != nil {
		return fmt.Errorf("task %s: %w", task.ID, res.Failure)
	}
	return each(res)
}

// attempt runs a task until it is done, refused, or has failed too often.
func (p *Pool) attempt(ctx context.Context, s *seat, task engine.Task) engine.Result {
	for n := 1; ; n++ {
		res, err := s.run(ctx, task)
		if err != nil {
			res = engine.Result{ID: task.ID, Failure: engine.Fail(err)}
		}
		if res.Failure == nil || res.Failure.Refused || n >= p.opts.Attempts || ctx.Err() != nil {
			return res
		}
		p.opts.Observe(engine.Retried{Task: task, Attempt: n, Err: res.Failure})
	}
}

// seat is where one child process after the other sits.
type seat struct {
	program string
	args    []string

	child  *exec.Cmd
	in     io.WriteCloser
	out    *worker.Lines
	stderr tail
}

// run gives one task to the child and waits for its result. An error means that the child is gone.
func (s *seat) run(ctx context.Context, task engine.Task) (res engine.Result, err error) {
	if err := ctx.Err(); err != nil {
		return res, err
	}
	if s.child == nil {
		if err := s.fill(); err != nil {
			return res, err
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = s.child.Process.Kill() })
	defer stop()
	line, err := worker.Line(task)
	if err != nil {
		return res, fmt.Errorf("%w: %w", engine.ErrRefused, err)
	}
	if _, err = s.in.Write(line); err == nil {
		err = s.out.Next(&res)
	}
	if err == nil && res.ID != task.ID {
		err = fmt.Errorf("it answered for task %q", res.ID)
	}
	if err != nil {
		return res, s.gone(err)
	}
	return res, nil
}

func (s *seat) fill() error {
	cmd := exec.Command(s.program, s.args...)
	s.stderr = tail{}
	cmd.Stderr = &s.stderr
	cmd.WaitDelay = time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w: start a worker: %w", engine.ErrRefused, err)
	}
	s.child, s.in, s.out = cmd, in, worker.NewLines(out)
	return nil
}

// gone says how the child ended.
func (s *seat) gone(why error) error {
	_ = s.child.Process.Kill() // in case that it lives
	err := s.child.Wait()
	s.child = nil
	var exit *exec.ExitError
	if errors.As(err, &exit) && errors.Is(why, io.EOF) {
		why = exit
	}
	if said := strings.TrimSpace(string(s.stderr)); said != "" {
		return fmt.Errorf("worker process: %w; its last words: %s", why, said)
	}
	return fmt.Errorf("worker process: %w", why)
}

// leave ends the child, which has nothing more to do.
func (s *seat) leave() {
	if s.child == nil {
		return
	}
	_ = s.in.Close()
	_ = s.child.Wait() // it has given all its results
}

// tail keeps the end of what is written to it.
type tail []byte

func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	if extra := len(*t) - 2000; extra > 0 {
		*t = append((*t)[:0], (*t)[extra:]...)
	}
	return len(p), nil
}
