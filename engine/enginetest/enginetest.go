// Package enginetest is the suite that every engine passes: tasks that crash, fail, are refused or slow, and the results that
// a pool in one process gives for them.
package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/storage"
)

// Nowhere is a Suite.Kill of engines whose tasks run in the process of the test.
const Nowhere = -1

// Suite says what is special about an engine.
type Suite struct {
	// New makes the engine, whose workers know Handlers.
	New func(t *testing.T, observe engine.Observer) engine.Engine
	// Kill is which process a task kills: 0 the worker that runs it, 1 the one that started that, 2 the one above; or Nowhere.
	// What starts the workers has to survive a part of it.
	Kill int
	// Shared gives a folder that the test and all workers see.
	Shared func(t *testing.T) string
}

// order is the spec of the suite's tasks.
type order struct {
	N       int    `json:"n"`
	Text    string `json:"text"`
	Dir     string `json:"dir"` // shared
	Trouble string `json:"trouble,omitempty"`
	Kill    int    `json:"kill"`
}

// answer is what they give back.
type answer struct {
	Square int    `json:"square"`
	Text   string `json:"text"`
	File   string `json:"file"` // that this attempt wrote
}

// kind of the suite's tasks.
const kind = "enginetest"

// Handlers run the tasks of the suite.
func Handlers() engine.Handlers { return engine.Handlers{kind: handle} }

func handle(ctx context.Context, task engine.Task, scope engine.Scope) (json.RawMessage, engine.Stats, error) {
	var o order
	if err := json.Unmarshal(task.Spec, &o); err != nil {
		return nil, engine.Stats{}, err
	}
	if scope.Memory <= 0 {
		return nil, engine.Stats{}, errors.New("no memory for the task")
	}
	if err := o.trouble(ctx); err != nil {
		return nil, engine.Stats{}, err
	}
	a := answer{Square: o.N * o.N, Text: o.Text, File: fmt.Sprintf("out-%03d-%s", o.N, storage.NewToken())}
	if err := os.WriteFile(filepath.Join(o.Dir, a.File), []byte(o.Text), 0o666); err != nil {
		return nil, engine.Stats{}, err
	}
	out, err := json.Marshal(a)
	return out, engine.Stats{Rows: 1, BytesWritten: int64(len(o.Text)), Files: 1}, err
}

// first tells whether this is the first attempt of a task, on any machine.
func (o order) first() (bool, error) {
	f, err := os.OpenFile(filepath.Join(o.Dir, fmt.Sprintf("tried-%03d", o.N)), os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Close()
}

var errOnce = errors.New("it works the next time")

func (o order) trouble(ctx context.Context) error {
	switch o.Trouble {
	case "":
		return nil
	case "refused":
		f, err := os.CreateTemp(o.Dir, "refused-")
		if err != nil {
			return err
		}
		return errors.Join(fmt.Errorf("%w: no such table version", engine.ErrRefused), f.Close())
	case "slow":
		time.Sleep(3 * time.Second)
		return nil
	case "wait":
		if err := os.WriteFile(filepath.Join(o.Dir, "waits"), []byte(fmt.Sprint(os.Getpid())), 0o666); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}
	first, err := o.first()
	if err != nil || !first {
		return err
	}
	switch {
	case o.Trouble == "kill" && o.Kill != Nowhere:
		return kill(o.Kill)
	case o.Trouble == "exit" && o.Kill != Nowhere:
		os.Exit(3)
	}
	return errOnce
}

// KillAncestors kills, with SIGKILL, this process and so many generations above it.
func KillAncestors(generations int) error { return kill(generations) }

func (s Suite) tasks(t *testing.T, dir string, n int, troubles map[int]string) []engine.Task {
	t.Helper()
	out := make([]engine.Task, n)
	for i := range out {
		spec, err := json.Marshal(order{N: i, Text: text(i), Dir: dir, Trouble: troubles[i], Kill: s.Kill})
		if err != nil {
			t.Fatal(err)
		}
		out[i] = engine.Task{ID: fmt.Sprintf("task-%03d", i), Kind: kind, Cost: int64(i % 7), Spec: spec}
	}
	return out
}

// text that not every character set has.
func text(n int) string { return fmt.Sprintf("dt=%d/région \"北\"\t𝄞\u2028", n) }

// Run runs the suite.
func Run(t *testing.T, s Suite) {
	t.Run("troubles", s.troubles)
	t.Run("refused", s.refused)
	t.Run("canceled", s.canceled)
}

// troubles: of 100 tasks one kills its executor, one its process, one fails once and one is slow. The results are those that
// tasks without trouble give, each once, and name files that hold what they should.
func (s Suite) troubles(t *testing.T) {
	const n = 100
	dir := s.Shared(t)
	var bytes atomic.Int64
	e := s.New(t, func(e engine.Event) {
		if a, ok := e.(engine.Advanced); ok {
			bytes.Add(a.Bytes)
		}
	})
	tasks := s.tasks(t, dir, n, map[int]string{17: "kill", 41: "exit", 63: "fail", 88: "slow"})
	got := map[string]answer{}
	var inside atomic.Bool
	var stats engine.Stats
	err := e.Run(t.Context(), tasks, func(r engine.Result) error {
		if !inside.CompareAndSwap(false, true) {
			t.Error("two results are delivered at once")
		}
		defer inside.Store(false)
		var a answer
		if err := json.Unmarshal(r.Out, &a); err != nil {
			return err
		}
		if _, twice := got[r.ID]; twice {
			t.Errorf("%s has two results", r.ID)
		}
		got[r.ID] = a
		stats.Add(r.Stats)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != n || stats.Rows != n || stats.Files != n {
		t.Errorf("%d results, %d rows, %d files of %d", len(got), stats.Rows, stats.Files, n)
	}
	for i := range n {
		a := got[fmt.Sprintf("task-%03d", i)]
		if a.Square != i*i || a.Text != text(i) {
			t.Errorf("task %d: %+v", i, a)
		}
		if held, err := os.ReadFile(filepath.Join(dir, a.File)); err != nil || string(held) != text(i) {
			t.Errorf("task %d: its file holds %q, %v", i, held, err)
		}
	}
	if tried, _ := filepath.Glob(filepath.Join(dir, "tried-*")); len(tried) != 3 {
		t.Errorf("tasks that had trouble: %q", tried)
	}
}

// refused: a task that can't be done ends the job with its reason, and is not tried again.
func (s Suite) refused(t *testing.T) {
	dir := s.Shared(t)
	err := s.New(t, func(engine.Event) {}).Run(t.Context(), s.tasks(t, dir, 20, map[int]string{11: "refused"}), func(engine.Result) error { return nil })
	if !errors.Is(err, engine.ErrRefused) || !strings.Contains(err.Error(), "no such table version") {
		t.Errorf("the error is %v", err)
	}
	if runs, _ := filepath.Glob(filepath.Join(dir, "refused-*")); len(runs) != 1 {
		t.Errorf("the refused task ran %d times", len(runs))
	}
}

// canceled: when the job is given up its workers end.
func (s Suite) canceled(t *testing.T) {
	dir := s.Shared(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waits := filepath.Join(dir, "waits")
	go func() {
		for ctx.Err() == nil {
			if text, err := os.ReadFile(waits); err == nil && len(text) > 0 {
				cancel()
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	err := s.New(t, func(engine.Event) {}).Run(ctx, s.tasks(t, dir, 1, map[int]string{0: "wait"}), func(engine.Result) error { return nil })
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("the error is %v", err)
	}
	text, err := os.ReadFile(waits)
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); pid != os.Getpid() && alive(pid); {
		if time.Now().After(deadline) {
			t.Fatalf("worker %d still runs", pid)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
