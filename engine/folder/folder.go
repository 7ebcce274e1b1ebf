// Package folder hands tasks to workers that somebody else starts: a folder of a store holds the list of tasks, workers put
// their results beside it. Whatever can run one command some number of times, told apart by an index, is a cluster then: a
// Kubernetes indexed job, an array of a batch system, a loop in a shell.
//
//	tasks.jsonl               a task on each line, the most expensive first
//	results/DIGEST/000007     the result of line 7, counted from 0, of the list with this digest
package folder

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/engine/worker"
	"github.com/sluicelake/sluice/storage"
)

const (
	listName   = "tasks.jsonl"
	resultsDir = "results"
)

// maxObject bounds a list of tasks, and a result, in bytes.
const maxObject = 1 << 30

// DefaultPoll is how often the planner looks for results, and a worker for the list of tasks.
const DefaultPoll = 2 * time.Second

// Options of a folder.
type Options struct {
	Poll    time.Duration   // 0 means DefaultPoll
	Observe engine.Observer // may be nil
}

// Folder is an engine.Engine for one job at a time.
type Folder struct {
	store storage.Store
	opts  Options
}

// New makes an engine of a folder, which should be empty.
func New(store storage.Store, opts Options) *Folder {
	if opts.Poll <= 0 {
		opts.Poll = DefaultPoll
	}
	if opts.Observe == nil {
		opts.Observe = func(engine.Event) {}
	}
	return &Folder{store, opts}
}

// Run puts the tasks down and waits for a result of each, as long as it takes. Who starts the workers starts again those
// that fail. The folder is empty afterwards.
func (f *Folder) Run(ctx context.Context, tasks []engine.Task, each func(engine.Result) error) (err error) {
	tasks = slices.Clone(tasks)
	slices.SortStableFunc(tasks, func(a, b engine.Task) int { return cmp.Compare(b.Cost, a.Cost) })
	var list []byte
	for _, t := range tasks {
		line, err := worker.Line(t)
		if err != nil {
			return err
		}
		list = append(list, line...)
	}
	_, err = f.store.Put(ctx, listName, bytes.NewReader(list), storage.PutOptions{IfAbsent: true, Size: int64(len(list))})
	if errors.Is(err, storage.ErrExist) {
		return &busyError{storage.Join(f.store.URL(), listName)}
	}
	if err != nil {
		return err
	}
	defer func() {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, f.clear(after))
	}()
	f.opts.Observe(engine.Noted{Text: fmt.Sprintf("%d tasks wait in %s for workers: sluice task --exchange %s --index I --of N", len(tasks), f.store.URL(), f.store.URL())})
	return f.collect(ctx, tasks, resultsOf(list), each)
}

// busyError says that the folder is in use.
type busyError struct{ list string }

func (e *busyError) Error() string { return e.list + " is there: it is of another job" }

// NextStep for a person.
func (e *busyError) NextStep() string {
	return "choose another folder for each job, or remove the file when its job was killed"
}

// resultsOf is the folder of a list's results.
func resultsOf(list []byte) string {
	sum := sha256.Sum256(list)
	return path.Join(resultsDir, hex.EncodeToString(sum[:16]))
}

func resultName(dir string, index int) string { return path.Join(dir, fmt.Sprintf("%06d", index)) }

func (f *Folder) collect(ctx context.Context, tasks []engine.Task, dir string, each func(engine.Result) error) error {
	done := map[int]bool{}
	for {
		for info, err := range f.store.List(ctx, dir, storage.ListOptions{Recursive: true}) {
			if err != nil {
				return err
			}
			i, err := strconv.Atoi(path.Base(info.Name))
			if err != nil || i < 0 || i >= len(tasks) || done[i] {
				continue
			}
			done[i] = true
			if err := f.deliver(ctx, tasks[i], info.Name, each); err != nil {
				return err
			}
		}
		if len(done) == len(tasks) {
			return nil
		}
		if err := pause(ctx, f.opts.Poll); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

func (f *Folder) deliver(ctx context.Context, task engine.Task, name string, each func(engine.Result) error) error {
	text, err := storage.ReadAll(ctx, f.store, name, maxObject)
	if err != nil {
		return err
	}
	var res engine.Result
	if err := json.Unmarshal(text, &res); err != nil || res.ID != task.ID {
		return fmt.Errorf("%s is no result of task %s: %w", storage.Join(f.store.URL(), name), task.ID, cmp.Or(err, errors.New("it is of "+res.ID)))
	}
	f.opts.Observe(engine.Advanced{Rows: res.Stats.Rows, Bytes: task.Cost})
	f.opts.Observe(engine.TaskDone{Result: res})
	if res.Failure != nil {
		return fmt.Errorf("task %s: %w", task.ID, res.Failure)
	}
	return each(res)
}

// clear removes the list first: workers that come late find nothing to do.
func (f *Folder) clear(ctx context.Context) error {
	return errors.Join(f.store.Delete(ctx, listName), storage.RemoveAll(ctx, f.store, resultsDir))
}

// Work runs one worker's share of the tasks in a folder: those of the lines index, index+of, index+2*of …, but those that
// have a result. It waits for the list of tasks for some time. Its error means that it should be started again.
func Work(ctx context.Context, store storage.Store, index, of int, wait time.Duration, handlers engine.Handlers, opts worker.Options) error {
	list, err := await(ctx, store, wait)
	if err != nil {
		return err
	}
	out := &results{ctx: ctx, store: store, dir: resultsOf(list), names: map[string]string{}}
	var mine []byte
	for i, line := range bytes.Split(bytes.TrimSuffix(list, []byte("\n")), []byte("\n")) {
		if i%of != index {
			continue
		}
		var task engine.Task
		if err := json.Unmarshal(line, &task); err != nil {
			return fmt.Errorf("%s: line %d: %w", storage.Join(store.URL(), listName), i+1, err)
		}
		name := resultName(out.dir, i)
		switch _, err := store.Stat(ctx, name); {
		case err == nil:
			continue
		case !errors.Is(err, storage.ErrNotExist):
			return err
		}
		out.names[task.ID] = name
		mine = append(append(mine, line...), '\n')
	}
	return worker.Serve(ctx, bytes.NewReader(mine), out, handlers, opts)
}

func await(ctx context.Context, store storage.Store, wait time.Duration) ([]byte, error) {
	for deadline := time.Now().Add(wait); ; {
		list, err := storage.ReadAll(ctx, store, listName, maxObject)
		if err == nil || !errors.Is(err, storage.ErrNotExist) || time.Now().After(deadline) {
			return list, err
		}
		if err := pause(ctx, DefaultPoll); err != nil {
			return nil, err
		}
	}
}

// results is a writer of lines that puts each into the folder.
type results struct {
	ctx   context.Context
	store storage.Store
	dir   string
	names map[string]string // by task
}

var _ io.Writer = (*results)(nil)

func (r *results) Write(line []byte) (int, error) {
	var res engine.Result
	if err := json.Unmarshal(line, &res); err != nil {
		return 0, err
	}
	_, err := r.store.Put(r.ctx, r.names[res.ID], bytes.NewReader(line), storage.PutOptions{IfAbsent: true, Size: int64(len(line))})
	if err != nil && !errors.Is(err, storage.ErrExist) { // another attempt's result is as good
		return 0, err
	}
	return len(line), nil
}
