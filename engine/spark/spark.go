// Package spark runs tasks on the executors of a Spark cluster: spark-submit starts a small driver that is embedded here, the
// driver ships this program to the executors, and each task goes through `sluice task` there, a line of JSON in and a line
// of JSON out. Spark places the tasks and runs again what was lost with a process, an executor or a machine. Planning and
// committing stay in this process.
//
// Needed are Spark 3 or later and a Python 3 on this machine, and nothing but Spark on the others.
package spark

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/engine/worker"
)

//go:embed driver.py
var driver string

// Options of a cluster.
type Options struct {
	// Submit is the spark-submit to start; empty means the one of SPARK_HOME, or else of PATH.
	Submit string
	// Master as spark-submit takes it; empty leaves it to Args and to spark-defaults.conf.
	Master string
	// Args are flags of spark-submit: --conf, --queue, --num-executors …
	Args []string
	// Worker is the program that executors run; empty means this one. It must be built for their system and processor.
	Worker string
	// WorkerArgs are its arguments; nil means those of `sluice task` with Memory.
	WorkerArgs []string
	// Memory in bytes for each task; 0 means worker.DefaultMemory. Where containers are killed for what they hold, executors
	// are asked for so much more for each of their cores.
	Memory int64
	// PerProcess is how many tasks one worker process runs, one after the other; 0 leaves it to the number of tasks.
	PerProcess int
	// Attempts of a task that fails, the first one included; 0 means DefaultAttempts. What is lost with a process or a
	// machine is run again by Spark itself, spark.task.maxFailures times.
	Attempts int
	TempDir  string          // of this machine; empty means the system's
	Observe  engine.Observer // may be nil
}

// DefaultAttempts of a task.
const DefaultAttempts = 3

// maxProcesses is how many worker processes a job is cut into before one runs several tasks: beyond it their start would be
// felt (15 ms for each), below it what is lost with one is small.
const maxProcesses = 2000

// Cluster is an engine.Engine on Spark.
type Cluster struct{ opts Options }

// New checks the options. Nothing is started before Run.
func New(opts Options) (*Cluster, error) {
	if opts.Attempts <= 0 {
		opts.Attempts = DefaultAttempts
	}
	if opts.Memory <= 0 {
		opts.Memory = worker.DefaultMemory
	}
	if opts.Observe == nil {
		opts.Observe = func(engine.Event) {}
	}
	if opts.WorkerArgs == nil {
		opts.WorkerArgs = []string{"task", "--failures", "report", "--memory", fmt.Sprint(opts.Memory)}
	}
	var err error
	if opts.Master, opts.Args, err = master(opts.Master, opts.Args); err != nil {
		return nil, err
	}
	if opts.Worker == "" {
		if opts.Worker, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("spark: which program am I: %w", err)
		}
	}
	if info, err := os.Stat(opts.Worker); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return nil, fmt.Errorf("spark: the program for executors, %s, is no file that can be executed: %w", opts.Worker, cmp.Or(err, os.ErrInvalid))
	}
	if opts.Submit == "" {
		opts.Submit = "spark-submit"
		if home := os.Getenv("SPARK_HOME"); home != "" {
			opts.Submit = filepath.Join(home, "bin", "spark-submit")
		}
	}
	return &Cluster{opts: opts}, nil
}

// master finds the master among the flags of spark-submit, and refuses flags that would take the driver away from this
// machine.
func master(given string, args []string) (found string, rest []string, err error) {
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		valued := joined || i+1 == len(args)
		if !valued {
			value = args[i+1]
		}
		switch {
		case name == "--deploy-mode" && value != "client",
			name == "--conf" && strings.HasPrefix(value, "spark.submit.deployMode=") && value != "spark.submit.deployMode=client":
			return "", nil, errors.New("spark: the driver has to run here, beside the planner: leave the deploy mode at client")
		case name == "--master" && given != "":
			return "", nil, fmt.Errorf("spark: two masters, %s and %s", given, value)
		case name == "--master":
			given = value
			if !joined {
				i++
			}
			continue
		case !strings.HasPrefix(name, "-") && (i == 0 || !strings.HasPrefix(args[i-1], "-") || strings.Contains(args[i-1], "=")):
			return "", nil, fmt.Errorf("spark: %q is no flag of spark-submit; only flags can stand behind --", args[i])
		}
		rest = append(rest, args[i])
	}
	return given, rest, nil
}

// Ready looks whether there is a spark-submit.
func (c *Cluster) Ready() error {
	if _, err := exec.LookPath(c.opts.Submit); err != nil {
		return notStarted(err)
	}
	return nil
}

// Master is the one that the options or the flags of spark-submit name; empty when spark-defaults.conf decides.
func (c *Cluster) Master() string { return c.opts.Master }

// Local tells whether all of a master's executors are on this machine and see its files.
func Local(master string) bool {
	return master == "local" || strings.HasPrefix(master, "local[") || strings.HasPrefix(master, "local-cluster[")
}

// Run executes the tasks, the most expensive first, and calls each when all of a round are done: Spark gives results at the
// end. Tasks that failed and may succeed at another time go into another round.
func (c *Cluster) Run(ctx context.Context, tasks []engine.Task, each func(engine.Result) error) error {
	pending := slices.Clone(tasks)
	slices.SortStableFunc(pending, func(a, b engine.Task) int { return cmp.Compare(b.Cost, a.Cost) })
	for attempt := 1; len(pending) > 0; attempt++ {
		results, err := c.round(ctx, pending)
		if err != nil {
			return err
		}
		var again []engine.Task
		for i, res := range results {
			if f := res.Failure; f != nil {
				if f.Refused || attempt >= c.opts.Attempts {
					c.opts.Observe(engine.TaskDone{Result: res})
					return fmt.Errorf("task %s: %w", res.ID, f)
				}
				c.opts.Observe(engine.Retried{Task: pending[i], Attempt: attempt, Err: f})
				again = append(again, pending[i])
				continue
			}
			c.opts.Observe(engine.TaskDone{Result: res})
			if err := each(res); err != nil {
				return err
			}
		}
		pending = again
	}
	return ctx.Err()
}

// settings are what the driver is told.
type settings struct {
	Name       string   `json:"name"`
	Tasks      string   `json:"tasks"`
	Results    string   `json:"results"`
	Worker     string   `json:"worker"`
	Arguments  []string `json:"arguments"`
	Partitions int      `json:"partitions"`
	Environ    []string `json:"environ"` // names; the driver takes the values from its own environment
	Memory     int64    `json:"memory"`
	Planner    int      `json:"planner"` // process id
}

// round submits tasks once and gives their results in the order of the tasks.
func (c *Cluster) round(ctx context.Context, tasks []engine.Task) (results []engine.Result, err error) {
	dir, err := os.MkdirTemp(c.opts.TempDir, "sluice-job-") // for this user alone
	if err != nil {
		return nil, fmt.Errorf("spark: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := settings{
		Name: "sluice", Tasks: filepath.Join(dir, "tasks"), Results: filepath.Join(dir, "results"), Worker: filepath.Join(dir, "sluice-worker"),
		Arguments: c.opts.WorkerArgs, Environ: Passed(os.Environ()), Memory: c.opts.Memory, Planner: os.Getpid(),
		Partitions: partitions(len(tasks), c.opts.PerProcess),
	}
	if err := link(c.opts.Worker, s.Worker); err != nil {
		return nil, fmt.Errorf("spark: %w", err)
	}
	if err := writeTasks(s.Tasks, spread(tasks, s.Partitions)); err != nil {
		return nil, fmt.Errorf("spark: %w", err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	script, config := filepath.Join(dir, "driver.py"), filepath.Join(dir, "settings.json")
	for name, text := range map[string][]byte{script: []byte(driver), config: text} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			return nil, fmt.Errorf("spark: %w", err)
		}
	}
	if err := c.submit(ctx, c.command(script, config), total(tasks)); err != nil {
		return nil, err
	}
	return readResults(s.Results, tasks)
}

// link gives a program another name, which executors know it by: Spark follows symbolic links and takes the name behind them.
func link(program, name string) error {
	program, err := filepath.EvalSymlinks(program)
	if err != nil {
		return err
	}
	if os.Link(program, name) == nil {
		return nil
	}
	from, err := os.Open(program) // on another file system
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // read only: nothing to lose
	to, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// command is the whole command line. What has to be so stands behind the user's flags: the last one counts.
func (c *Cluster) command(script, config string) []string {
	out := append([]string{c.opts.Submit}, c.opts.Args...)
	if c.opts.Master != "" {
		out = append(out, "--master", patient(c.opts.Master))
	}
	return append(out, "--deploy-mode", "client", script, config)
}

// patient gives a master in one process the attempts that clusters have: there Spark takes one unless the master says more.
func patient(master string) string {
	const attempts = ",4]"
	threads, ok := strings.CutPrefix(master, "local[")
	switch {
	case master == "local":
		return "local[1" + attempts
	case ok && !strings.Contains(threads, ","):
		return strings.TrimSuffix(master, "]") + attempts
	}
	return master
}

func total(tasks []engine.Task) (bytes int64) {
	for _, t := range tasks {
		bytes += t.Cost
	}
	return bytes
}

// partitions is the number of worker processes for n tasks.
func partitions(n, perProcess int) int {
	if perProcess > 0 {
		return (n + perProcess - 1) / perProcess
	}
	return min(n, maxProcesses)
}

// spread orders tasks so that Spark, which cuts the list into runs of nearly equal length, deals them out like cards: each
// process gets expensive and cheap ones. A run begins at i*len/n.
func spread(tasks []engine.Task, n int) []engine.Task {
	out := make([]engine.Task, 0, len(tasks))
	hands := make([][]engine.Task, n)
	rest := tasks
	for card := 0; len(rest) > 0; card++ {
		for i := 0; i < n && len(rest) > 0; i++ {
			if card < (i+1)*len(tasks)/n-i*len(tasks)/n {
				hands[i] = append(hands[i], rest[0])
				rest = rest[1:]
			}
		}
	}
	for _, h := range hands {
		out = append(out, h...)
	}
	return out
}

func writeTasks(path string, tasks []engine.Task) error {
	var text []byte
	for _, t := range tasks {
		line, err := worker.Line(t)
		if err != nil {
			return err
		}
		text = append(text, line...)
	}
	return os.WriteFile(path, text, 0o600)
}

// readResults gives one result for each task, in their order.
func readResults(path string, tasks []engine.Task) ([]engine.Result, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("spark: the driver ended without results: %w", err)
	}
	defer func() { _ = f.Close() }() // read only: nothing to lose
	index := map[string]int{}
	for i, t := range tasks {
		index[t.ID] = i
	}
	results, found := make([]engine.Result, len(tasks)), make([]bool, len(tasks))
	lines, missing := worker.NewLines(f), len(tasks)
	for {
		var res engine.Result
		err := lines.Next(&res)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("spark: results of the driver: %w", err)
		}
		i, ok := index[res.ID]
		if !ok {
			return nil, fmt.Errorf("spark: a result for task %q, which was not asked for", res.ID)
		}
		if !found[i] {
			results[i], found[i] = res, true
			missing--
		}
	}
	if missing > 0 {
		i := slices.Index(found, false)
		return nil, fmt.Errorf("spark: %d of %d tasks have no result, %s is the first: its worker ended without a word", missing, len(tasks), tasks[i].ID)
	}
	return results, nil
}
