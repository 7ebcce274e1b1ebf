package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/engine/local"
	"github.com/sluicelake/sluice/hudi/read"
	"github.com/sluicelake/sluice/storage"
)

// Summary is what an export did.
type Summary struct {
	Instant string       // that the rows are of
	Files   []string     // written, relative to the target; _SUCCESS is not among them
	Stats   engine.Stats // rows are those of the files written; a hudi copy counts none
	// Kept counts the tasks that an earlier, unfinished run had done already. What they wrote is in Files and Stats.
	Kept int
	// WithLogs and LogOnly count the file groups whose log files a read-optimized export left out.
	WithLogs, LogOnly int
	// Copied counts the base files whose column chunks were copied into Parquet files without decoding them, Decoded the
	// others, by the reason why.
	Copied  int
	Decoded map[string]int
}

// written is what a task wrote.
type written struct {
	Files   []wrote        `json:"files"`
	Copied  int            `json:"copied,omitempty"`
	Decoded map[string]int `json:"decoded,omitempty"`
}

// wrote is a file of the target.
type wrote struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	Rows int64  `json:"rows,omitempty"`
}

// Run exports a table. It checks in the order of the original: options, target, source, commits, partitions; then it writes,
// and puts _SUCCESS last.
//
// A run that fails or is killed after it has done a part leaves that part and a note of it in the target. The next run with
// the same arguments goes on from there, at the same instant; one with other arguments is refused. A run that fails before
// any part is done, or in a way in which it would fail again, removes what it wrote.
func Run(ctx context.Context, c Config, opts local.Options) (sum Summary, err error) {
	start := time.Now()
	if opts.Observe == nil {
		opts.Observe = func(engine.Event) {}
	}
	defer func() {
		opts.Observe(engine.Finished{Job: "export", Stats: sum.Stats, Wall: time.Since(start), Err: err})
	}()
	asked := c
	if err := c.setDefaults(); err != nil {
		return sum, err
	}
	if c.Parallelism > 0 {
		opts.Workers = c.Parallelism
	}
	j := &job{cfg: c, observe: opts.Observe}
	if j.remote, err = farAway(j, asked, opts); err != nil {
		return sum, err
	}
	inside := local.New(engine.Handlers{taskRows: j.rowsTask, taskCopy: j.copyTask, taskVerify: j.verifyTask}, opts)
	j.here = inside // files are verified from where they were asked for
	var pool engine.Engine = inside
	if j.remote != nil {
		pool = j.remote
	}
	if err := j.prepare(ctx, inside.Workers()); err != nil {
		return sum, err
	}
	if j.complete {
		sum.Instant = j.plan.Instant
		return sum, j.clearState(ctx)
	}
	sum.Instant, sum.WithLogs, sum.LogOnly = j.snap.Instant(), j.withLogs, j.logOnly
	return sum, j.perform(ctx, pool, &sum)
}

// prepare decides everything, and writes nothing.
func (j *job) prepare(ctx context.Context, workers int) error {
	if err := j.checkTarget(ctx); err != nil || j.complete {
		return err
	}
	if err := j.planSource(ctx); err != nil {
		return err
	}
	if j.plan == nil {
		j.plan = &plan{Version: planVersion, Arguments: j.arguments, Instant: j.snap.Instant(), End: j.end, Token: uuid.NewString()}
	}
	if err := j.makeTasks(ctx, workers); err != nil {
		return err
	}
	return j.checkEarlier()
}

// The kinds of task.
const (
	taskRows = "export.rows"
	taskCopy = "export.copy"
)

// job is one export while it runs.
type job struct {
	cfg     Config
	target  storage.Store
	parent  storage.Store // of the target's folder
	base    string        // its name in there
	observe engine.Observer

	here   engine.Engine // tasks in this process
	remote *remote       // nil: all tasks run in this process

	source    storage.Store
	arguments map[string]string
	plan      *plan // what this run does; after checkTarget that of an earlier run, or nil
	resumed   bool  // plan is that of an earlier run
	replaces  bool  // the target holds something that goes first
	complete  bool  // an earlier run died after _SUCCESS: there is nothing left but to tidy up

	snap    *read.Plan
	end     string // of a range of instants
	layout  layout
	columns []string
	tasks   []engine.Task
	late    []engine.Task // after all others: the timeline of a copy, which speaks of the data
	props   []byte        // changed hoodie.properties of a copy; nil: copied as they are

	withLogs, logOnly int
}

// perform does the work under a lease, and leaves the target whole, resumable, or as if it had never begun.
func (j *job) perform(ctx context.Context, pool engine.Engine, sum *Summary) error {
	lease, err := acquire(ctx, j.target, uuid.NewString(), j.cfg.Lease, j.cfg.Patience)
	if err != nil {
		return j.busy(err)
	}
	working := lease.keep(ctx)
	if err := j.begin(working, lease); err != nil {
		return errors.Join(err, lease.release(context.WithoutCancel(ctx)))
	}
	err = j.work(working, pool, lease, sum)
	cause := context.Cause(working)
	lease.stop()
	if err == nil {
		return nil
	}
	if errors.Is(cause, errTaken) {
		return errTaken // what is there is another run's now
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if len(sum.Files) == 0 && !j.resumed || errors.Is(err, engine.ErrRefused) || errors.Is(err, ErrVerify) {
		if errors.Is(err, storage.ErrNoSpace) {
			err = &unfinishedError{err: err, undone: true}
		}
		return errors.Join(err, j.undo(after))
	}
	return errors.Join(&unfinishedError{err: err}, lease.release(after))
}

// work writes. Only the owner of the target's lease may.
func (j *job) work(ctx context.Context, pool engine.Engine, lease *lease, sum *Summary) error {
	done := map[string]record{}
	if j.resumed {
		var err error
		if done, err = j.records(ctx); err != nil {
			return err
		}
		j.observe(engine.Noted{Text: fmt.Sprintf("going on with the export of instant %s that did not finish", j.plan.Instant)})
	}
	names, err := j.execute(ctx, pool, done, sum)
	if err != nil {
		return err
	}
	if j.cfg.Explain {
		j.explain(sum)
	}
	return j.publish(ctx, lease, names)
}

// execute runs the tasks that are not done, and gives what all of them wrote, by name.
func (j *job) execute(ctx context.Context, pool engine.Engine, done map[string]record, sum *Summary) (map[string]wrote, error) {
	var bytes int64
	for _, t := range j.tasks {
		bytes += t.Cost
	}
	j.observe(engine.Planned{Job: "export " + j.snap.Source().Config.Name, Tasks: len(j.tasks), Bytes: bytes})
	names := map[string]wrote{}
	add := func(out written, stats engine.Stats) {
		for _, f := range out.Files {
			names[f.Name] = f
		}
		sum.add(out, stats)
	}
	if err := j.runTasks(ctx, pool, func() []engine.Task { return j.tasks }, done, sum, add); err != nil {
		return nil, err
	}
	if err := j.runTasks(ctx, pool, func() []engine.Task { return j.late }, done, sum, add); err != nil {
		return nil, err
	}
	if j.props != nil {
		name := path.Join(".hoodie", "hoodie.properties")
		if err := putBytes(ctx, j.target, name, j.props); err != nil {
			return nil, err
		}
		add(written{Files: []wrote{{Name: name, Size: int64(len(j.props))}}}, engine.Stats{})
	}
	return names, nil
}

// runTasks runs those of a list of tasks that are not done. When a file of the source is gone, it looks once more.
func (j *job) runTasks(ctx context.Context, pool engine.Engine, list func() []engine.Task, done map[string]record, sum *Summary, add func(written, engine.Stats)) error {
	for attempt := 0; ; attempt++ {
		var open []engine.Task
		byID := map[string]engine.Task{}
		for _, t := range list() {
			r, ok := done[t.ID]
			switch {
			case ok && r.fresh: // of this run, and counted
			case ok && r.Spec == digest([]engine.Task{t}):
				add(r.Out, r.Stats)
				sum.Kept++
				r.fresh = true
				done[t.ID] = r
				j.observe(engine.Advanced{Rows: r.Stats.Rows, Bytes: t.Cost})
			default:
				open = append(open, t)
				byID[t.ID] = t
			}
		}
		err := pool.Run(ctx, open, func(res engine.Result) error {
			var out written
			if err := json.Unmarshal(res.Out, &out); err != nil {
				return err
			}
			if err := j.recordDone(ctx, byID[res.ID], out, res.Stats); err != nil {
				return err
			}
			done[res.ID] = record{Task: res.ID, fresh: true}
			add(out, res.Stats)
			return nil
		})
		if err == nil || !j.sourceGone(err) {
			return err
		}
		if err := j.lookAgain(ctx, err, attempt); err != nil {
			return err
		}
	}
}

func (s *Summary) add(out written, stats engine.Stats) {
	for _, f := range out.Files {
		s.Files = append(s.Files, f.Name)
	}
	s.Stats.Add(stats)
	s.Copied += out.Copied
	for why, n := range out.Decoded {
		if s.Decoded == nil {
			s.Decoded = map[string]int{}
		}
		s.Decoded[why] += n
	}
}

// explain says which base files were copied as bytes, and why others were not.
func (j *job) explain(sum *Summary) {
	if !j.splices() {
		return
	}
	j.observe(engine.Noted{Text: fmt.Sprintf("%d base files were copied without decoding them", sum.Copied)})
	for _, why := range slices.Sorted(maps.Keys(sum.Decoded)) {
		j.observe(engine.Noted{Text: fmt.Sprintf("%d base files were decoded: %s", sum.Decoded[why], why)})
	}
}

// unfinishedError is the failure of an export that can be finished, or begun again.
type unfinishedError struct {
	err    error
	undone bool
}

func (e *unfinishedError) Error() string { return e.err.Error() }
func (e *unfinishedError) Unwrap() error { return e.err }

// NextStep for a person: that of the failure itself, and that nothing has to be done twice.
func (e *unfinishedError) NextStep() string {
	again := "run the same command again to finish the export: what is complete is kept; --overwrite begins anew"
	if e.undone {
		return "make room and run the export again; what was written was removed"
	}
	var hinted interface{ NextStep() string }
	if errors.As(e.err, &hinted) && hinted.NextStep() != "" {
		return hinted.NextStep() + "; then " + again
	}
	if errors.Is(e.err, storage.ErrNoSpace) {
		return "make room, then " + again
	}
	return again
}
