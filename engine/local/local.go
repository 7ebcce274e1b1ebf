// Package local runs tasks on a pool of goroutines within one memory budget.
package local

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/sluicelake/sluice/engine"
)

// DefaultMemory is the budget of a pool: enough for two tasks with the row groups of Apache Hudi's default files, and
// small beside what a machine that runs data jobs has.
const DefaultMemory = 512 << 20

// DefaultAttempts of a task, the first one included: storage errors were retried below already, so a second try covers
// what is left and a third would hide a fault.
const DefaultAttempts = 2

// Options of a pool.
type Options struct {
	Workers  int   // tasks at once; 0 means one for each CPU
	Memory   int64 // bytes for all tasks together; 0 means DefaultMemory
	Attempts int   // tries of a task; 0 means DefaultAttempts
	TempDir  string
	Observe  engine.Observer // may be nil
}

// Pool is an engine.Engine in this process.
type Pool struct {
	handlers engine.Handlers
	opts     Options
}

// New makes a pool that can run the kinds of task in handlers.
func New(handlers engine.Handlers, opts Options) *Pool {
	if opts.Workers <= 0 {
		opts.Workers = runtime.GOMAXPROCS(0)
	}
	if opts.Memory <= 0 {
		opts.Memory = DefaultMemory
	}
	if opts.Attempts <= 0 {
		opts.Attempts = DefaultAttempts
	}
	if opts.Observe == nil {
		opts.Observe = func(engine.Event) {}
	}
	return &Pool{handlers: handlers, opts: opts}
}

// Workers is how many tasks run at once.
func (p *Pool) Workers() int { return p.opts.Workers }

// Run executes the tasks, the most expensive first so that the last ones to finish are short.
func (p *Pool) Run(ctx context.Context, tasks []engine.Task, each func(engine.Result) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	order := slices.Clone(tasks)
	slices.SortStableFunc(order, func(a, b engine.Task) int { return cmp.Compare(b.Cost, a.Cost) })
	workers := max(1, min(p.opts.Workers, len(order)))
	scope := engine.Scope{
		Memory:   p.opts.Memory / int64(workers),
		TempDir:  p.opts.TempDir,
		Progress: func(rows, bytes int64) { p.opts.Observe(engine.Advanced{Rows: rows, Bytes: bytes}) },
	}

	queue := make(chan engine.Task, len(order))
	for _, t := range order {
		queue <- t
	}
	close(queue)
	var (
		wg sync.WaitGroup
		mu sync.Mutex
	)
	for range workers {
		wg.Go(func() {
			for task := range queue {
				if ctx.Err() != nil {
					return
				}
				res := p.attempt(ctx, task, scope)
				mu.Lock()
				err := p.deliver(res, each)
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

func (p *Pool) deliver(res engine.Result, each func(engine.Result) error) error {
	p.opts.Observe(engine.TaskDone{Result: res})
	if res.Failure != nil {
		return res.Failure
	}
	return each(res)
}

func (p *Pool) attempt(ctx context.Context, task engine.Task, scope engine.Scope) engine.Result {
	for n := 1; ; n++ {
		res := p.handlers.Run(ctx, task, scope)
		if res.Failure == nil || res.Failure.Refused || n >= p.opts.Attempts || ctx.Err() != nil ||
			errors.Is(res.Failure, context.Canceled) {
			return res
		}
		p.opts.Observe(engine.Retried{Task: task, Attempt: n, Err: res.Failure})
	}
}
