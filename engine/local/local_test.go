package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/engine/enginetest"
	"github.com/sluicelake/sluice/engine/local"
)

func tasks(n int) []engine.Task {
	out := make([]engine.Task, n)
	for i := range out {
		out[i] = engine.Task{ID: fmt.Sprint(i), Kind: "square", Cost: int64(i), Spec: json.RawMessage(fmt.Sprint(i))}
	}
	return out
}

func square(_ context.Context, t engine.Task, _ engine.Scope) (json.RawMessage, engine.Stats, error) {
	var n int
	if err := json.Unmarshal(t.Spec, &n); err != nil {
		return nil, engine.Stats{}, err
	}
	return json.RawMessage(fmt.Sprint(n * n)), engine.Stats{Rows: 1}, nil
}

func TestConformance(t *testing.T) {
	enginetest.Run(t, enginetest.Suite{
		New: func(_ *testing.T, observe engine.Observer) engine.Engine {
			return local.New(enginetest.Handlers(), local.Options{Workers: 4, Observe: observe})
		},
		Kill:   enginetest.Nowhere,
		Shared: func(t *testing.T) string { return t.TempDir() },
	})
}

func TestWorkersShareTheBudget(t *testing.T) {
	var memory atomic.Int64
	h := engine.Handlers{"square": func(ctx context.Context, task engine.Task, s engine.Scope) (json.RawMessage, engine.Stats, error) {
		memory.Store(s.Memory)
		return square(ctx, task, s)
	}}
	pool := local.New(h, local.Options{Workers: 4, Memory: 400})
	if err := pool.Run(t.Context(), tasks(8), func(engine.Result) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if memory.Load() != 100 {
		t.Fatalf("a task may hold %d bytes, want a quarter of 400", memory.Load())
	}
}

func TestAFailedTaskRunsAgainAndARefusedOneDoesNot(t *testing.T) {
	broken := errors.New("link lost")
	for _, c := range []struct {
		name  string
		err   error
		fails int64
		runs  int64
		want  error
	}{
		{"recovers", broken, 1, 2, nil},
		{"fails for good", broken, 9, 2, broken},
		{"refused", fmt.Errorf("%w: table version 10", engine.ErrRefused), 9, 1, engine.ErrRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			var runs atomic.Int64
			h := engine.Handlers{"square": func(ctx context.Context, task engine.Task, s engine.Scope) (json.RawMessage, engine.Stats, error) {
				if runs.Add(1) <= c.fails {
					return nil, engine.Stats{}, c.err
				}
				return square(ctx, task, s)
			}}
			err := local.New(h, local.Options{Workers: 1}).Run(t.Context(), tasks(1), func(engine.Result) error { return nil })
			if !errors.Is(err, c.want) || runs.Load() != c.runs {
				t.Fatalf("%d runs, error %v; want %d and %v", runs.Load(), err, c.runs, c.want)
			}
		})
	}
}

func TestAnErrorStopsTheRest(t *testing.T) {
	var runs atomic.Int64
	h := engine.Handlers{"square": func(ctx context.Context, task engine.Task, s engine.Scope) (json.RawMessage, engine.Stats, error) {
		runs.Add(1)
		return square(ctx, task, s)
	}}
	full := errors.New("disk full")
	err := local.New(h, local.Options{Workers: 1}).Run(t.Context(), tasks(50), func(engine.Result) error { return full })
	if !errors.Is(err, full) || runs.Load() != 1 {
		t.Fatalf("%d tasks ran after the error %v", runs.Load(), err)
	}
}

func TestAnUnknownKindIsRefused(t *testing.T) {
	err := local.New(engine.Handlers{}, local.Options{}).Run(t.Context(), tasks(1), func(engine.Result) error { return nil })
	if !errors.Is(err, engine.ErrRefused) {
		t.Fatal(err)
	}
}
