package export

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/klauspost/compress/gzip"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/engine/local"
	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/merge"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/replay"
)

// An export whose tasks run in other processes puts an order into the target, from which any process can make the same job:
// what was asked for, and everything that the source's store answered while the job was planned, so that all workers see the
// table in the very state in which the planner saw it. Tasks name the order. It is their licence as well: what a worker
// writes appears only while the order is there, and it goes before the export looks what has been written.

// orderPrefix begins their names, in the folder of the state.
const orderPrefix = "order-"

// order is the content of one, compressed with gzip.
type order struct {
	Config    Config         `json:"config"` // as it was given, with whole URLs
	Zone      string         `json:"zone"`
	TableZone string         `json:"tableZone"`
	Token     string         `json:"token"`
	Pinned    *plan          `json:"pinned,omitempty"` // of the run that this one finishes
	Source    replay.Answers `json:"source"`
}

// maxOrder bounds an order, unpacked, in bytes: a table of a million files has some 200 MB.
const maxOrder = 2 << 30

// errand is the spec of a task that is sent to another process.
type errand struct {
	Target string          `json:"target"`
	Order  string          `json:"order"`
	Spec   json.RawMessage `json:"spec"`
}

// report is what it gives back.
type report struct {
	Out   json.RawMessage `json:"out"`
	Notes []string        `json:"notes,omitempty"` // that a person should see
}

// remote is the engine of a job whose tasks run in other processes.
type remote struct {
	job    *job
	asked  Config
	below  engine.Engine
	here   engine.Engine // in this process
	source *replay.Recorder
	order  string // name of the order, once it is there
}

// farAway makes the engine of a job that has one; nil for others.
func farAway(j *job, asked Config, opts local.Options) (*remote, error) {
	if asked.Engine == nil {
		return nil, nil
	}
	if _, ok := asked.Partitioners[asked.Partitioner]; ok {
		return nil, &UsageError{fmt.Errorf("output partitioner %q is a function of this program, which other processes do not have: choose the local engine", asked.Partitioner)}
	}
	here := local.New(engine.Handlers{taskRows: j.rowsTask, taskCopy: j.copyTask}, local.Options{Memory: opts.Memory, TempDir: opts.TempDir, Observe: opts.Observe})
	return &remote{job: j, asked: asked, below: asked.Engine, here: here}, nil
}

// record begins to keep what the source's store answers.
func (r *remote) record(source storage.Store) storage.Store {
	if r == nil {
		return source
	}
	r.source = replay.Record(source)
	return r.source
}

// Run sends the tasks away. Those of a second round, the timeline of a copied table, are few and small: they run here.
func (r *remote) Run(ctx context.Context, tasks []engine.Task, each func(engine.Result) error) error {
	if r.order != "" {
		return r.here.Run(ctx, tasks, each)
	}
	if err := r.give(ctx); err != nil {
		return err
	}
	sent := make([]engine.Task, len(tasks))
	for i, t := range tasks {
		spec, err := json.Marshal(errand{Target: r.job.target.URL(), Order: r.order, Spec: t.Spec})
		if err != nil {
			return err
		}
		sent[i] = t
		sent[i].Spec = spec
	}
	noted := map[string]bool{}
	return r.below.Run(ctx, sent, func(res engine.Result) error {
		var rep report
		if err := json.Unmarshal(res.Out, &rep); err != nil {
			return fmt.Errorf("result of task %s: %w", res.ID, err)
		}
		for _, text := range rep.Notes {
			if !noted[text] {
				noted[text] = true
				r.job.observe(engine.Noted{Text: text})
			}
		}
		res.Out = rep.Out
		return each(res)
	})
}

// give puts the order, after it has withdrawn those of runs that ended before.
func (r *remote) give(ctx context.Context) error {
	if err := r.withdraw(ctx); err != nil {
		return err
	}
	o := order{Config: r.asked, Zone: r.job.cfg.Zone.String(), Token: r.job.plan.Token, Source: r.source.Stop()}
	if r.job.resumed {
		o.Pinned = r.job.plan
	}
	o.Config.Source, o.Config.Target = r.source.URL(), r.job.target.URL()
	if r.asked.TableZone != nil {
		o.TableZone = r.asked.TableZone.String()
	}
	var body bytes.Buffer
	z := gzip.NewWriter(&body)
	if err := errors.Join(json.NewEncoder(z).Encode(o), z.Close()); err != nil {
		return err
	}
	name := path.Join(state, orderPrefix+uuid.NewString())
	if err := putBytes(ctx, r.job.target, name, body.Bytes()); err != nil {
		return err
	}
	r.order = name
	return nil
}

// withdraw removes all orders: from here on nothing more of what workers write appears.
func (r *remote) withdraw(ctx context.Context) error {
	if r == nil {
		return nil
	}
	target := r.job.target
	var names []string
	for info, err := range target.List(ctx, state, storage.ListOptions{Recursive: true}) {
		if err != nil {
			return err
		}
		if strings.HasPrefix(path.Base(info.Name), orderPrefix) {
			names = append(names, info.Name)
		}
	}
	for _, name := range names {
		if err := target.Delete(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// Handlers run the tasks of exports that other processes plan, with the storage settings of this process's environment.
func Handlers() engine.Handlers {
	w := &workshop{}
	return engine.Handlers{taskRows: w.handler((*job).rowsTask), taskCopy: w.handler((*job).copyTask)}
}

// workshop keeps the job of the last order: a process is given several tasks of one.
type workshop struct {
	mu     sync.Mutex
	target string
	order  string
	job    *job
}

func (w *workshop) handler(run func(*job, context.Context, engine.Task, engine.Scope) (json.RawMessage, engine.Stats, error)) engine.Handler {
	return func(ctx context.Context, task engine.Task, scope engine.Scope) (json.RawMessage, engine.Stats, error) {
		var e errand
		if err := json.Unmarshal(task.Spec, &e); err != nil {
			return nil, engine.Stats{}, fmt.Errorf("%w: spec of task %s: %w", engine.ErrRefused, task.ID, err)
		}
		whole, err := w.open(ctx, e)
		if err != nil {
			return nil, engine.Stats{}, refusal(err)
		}
		var notes struct {
			sync.Mutex
			report
		}
		attempt := *whole
		attempt.observe = func(e engine.Event) {
			if n, ok := e.(engine.Noted); ok {
				notes.Lock()
				notes.Notes = append(notes.Notes, n.Text)
				notes.Unlock()
			}
		}
		own := *whole.plan
		if own.Token, err = attemptToken(whole.plan.Token); err != nil {
			return nil, engine.Stats{}, err
		}
		attempt.plan = &own
		task.Spec = e.Spec
		out, stats, err := run(&attempt, ctx, task, scope)
		if err != nil {
			return nil, stats, refusal(err)
		}
		notes.Out = out
		raw, err := json.Marshal(notes.report)
		return raw, stats, err
	}
}

// tokenStem is how many characters of a job's token begin those of its attempts.
const tokenStem = 24

// attemptToken keeps the files of two attempts of a task apart: it begins as the job's token does and ends in 48 random bits.
func attemptToken(job string) (string, error) {
	var b [6]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return job[:tokenStem] + hex.EncodeToString(b[:]), nil
}

// refusal marks what another try can't change, so that it is known on the other side of a process border too.
func refusal(err error) error {
	if errors.Is(err, config.ErrUnsupported) || errors.Is(err, merge.ErrUnsupported) {
		return fmt.Errorf("%w: %w", engine.ErrRefused, err)
	}
	return err
}

// open makes the job of an order.
func (w *workshop) open(ctx context.Context, e errand) (*job, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.job != nil && w.target == e.Target && w.order == e.Order {
		return w.job, nil
	}
	j := &job{observe: func(engine.Event) {}}
	target, err := openURL(ctx, e.Target)
	if err != nil {
		return nil, err
	}
	o, err := readOrder(ctx, target, e.Order)
	if err != nil {
		return nil, err
	}
	j.target = replay.Fenced(target, e.Order)
	j.cfg = o.Config
	if j.cfg.Zone, err = time.LoadLocation(o.Zone); err != nil {
		return nil, err
	}
	if j.cfg.TableZone, err = time.LoadLocation(o.TableZone); err != nil { // "" is UTC
		return nil, err
	}
	if err := j.cfg.setDefaults(); err != nil {
		return nil, err
	}
	source, err := openURL(ctx, j.cfg.Source)
	if err != nil {
		return nil, err
	}
	j.source, j.plan = replay.Replay(source, o.Source), o.Pinned
	if err := j.planSource(ctx); err != nil {
		return nil, err
	}
	if j.plan == nil {
		j.plan = &plan{Token: o.Token}
	}
	w.job, w.target, w.order = j, e.Target, e.Order
	return j, nil
}

func readOrder(ctx context.Context, target storage.Store, name string) (*order, error) {
	packed, err := storage.ReadAll(ctx, target, name, maxOrder)
	if errors.Is(err, storage.ErrNotExist) {
		return nil, fmt.Errorf("%w: the export that this task is of has ended, or this machine does not see its target: %w", engine.ErrRefused, err)
	}
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", storage.Join(target.URL(), name), err)
	}
	o := &order{}
	if err := json.NewDecoder(io.LimitReader(z, maxOrder)).Decode(o); err != nil {
		return nil, fmt.Errorf("%s: %w", storage.Join(target.URL(), name), err)
	}
	if len(o.Token) != len(uuid.Nil.String()) {
		return nil, fmt.Errorf("%s: token %q", storage.Join(target.URL(), name), o.Token)
	}
	return o, nil
}
