package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/engine/worker"
)

type hintedError struct{}

func (hintedError) Error() string    { return "busy" }
func (hintedError) NextStep() string { return "wait" }

var handlers = engine.Handlers{
	"echo": func(_ context.Context, t engine.Task, _ engine.Scope) (json.RawMessage, engine.Stats, error) {
		return t.Spec, engine.Stats{Rows: 1}, nil
	},
	"refuse": func(context.Context, engine.Task, engine.Scope) (json.RawMessage, engine.Stats, error) {
		return nil, engine.Stats{}, fmt.Errorf("%w: version 10", engine.ErrRefused)
	},
	"fail": func(context.Context, engine.Task, engine.Scope) (json.RawMessage, engine.Stats, error) {
		return nil, engine.Stats{}, hintedError{}
	},
}

func serve(t *testing.T, in string, report bool) ([]engine.Result, error) {
	t.Helper()
	var out strings.Builder
	err := worker.Serve(t.Context(), strings.NewReader(in), &out, handlers, worker.Options{Report: report})
	var results []engine.Result
	lines := worker.NewLines(strings.NewReader(out.String()))
	for {
		var r engine.Result
		if e := lines.Next(&r); errors.Is(e, io.EOF) {
			return results, err
		} else if e != nil {
			t.Fatal(e)
		}
		results = append(results, r)
	}
}

const tasks = `{"id":"1","kind":"echo","spec":{"a":"é"}}

{"id":"2","kind":"refuse"}
{"id":"3","kind":"fail"}
{"id":"4","kind":"echo","spec":5}`

// A refused task is a result. One that may succeed another time ends the worker, so that it is started again.
func TestARetryableFailureEndsTheWorker(t *testing.T) {
	got, err := serve(t, tasks, false)
	if err == nil || !strings.Contains(err.Error(), "task 3: busy") {
		t.Error(err)
	}
	if len(got) != 2 || string(got[0].Out) != `{"a":"\u00e9"}` || got[0].Stats.Rows != 1 || !errors.Is(got[1].Failure, engine.ErrRefused) {
		t.Errorf("%+v", got)
	}
}

// Where the engine wants to know, it is a result, with what a person can do; the tasks behind it run.
func TestAReportedFailureIsAResult(t *testing.T) {
	got, err := serve(t, tasks, true)
	if err != nil || len(got) != 4 {
		t.Fatal(got, err)
	}
	if f := got[2].Failure; f == nil || f.Refused || errors.Is(f, engine.ErrRefused) || f.Error() != "busy" || f.NextStep() != "wait" {
		t.Errorf("%+v", f)
	}
	if string(got[3].Out) != "5" {
		t.Errorf("%+v", got[3])
	}
}

func TestWhatIsNoTask(t *testing.T) {
	for in, want := range map[string]string{
		"{\"id\":\"1\",\"kind\":\"echo\"}\nnonsense\n": "line 2",
		`{"id":"1","kind":"echo"`:                      "line 1",
		strings.Repeat("x", 65<<20):                    "line 1 is longer",
	} {
		if _, err := serve(t, in, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v", in, err)
		}
	}
}

func TestACanceledWorkerGivesNoResult(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := engine.Handlers{"echo": func(context.Context, engine.Task, engine.Scope) (json.RawMessage, engine.Stats, error) {
		cancel()
		return nil, engine.Stats{}, ctx.Err()
	}}
	var out strings.Builder
	err := worker.Serve(ctx, strings.NewReader(tasks), &out, h, worker.Options{Report: true})
	if !errors.Is(err, context.Canceled) || out.Len() > 0 {
		t.Errorf("%v, %q", err, out.String())
	}
}

func FuzzLine(f *testing.F) {
	for _, text := range []string{"", "a", "é北𝄞\u2028", "\xff\xfe", "\x00\n\"\\", "\U0010ffff\ue000"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		plain, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		line, err := worker.Line(text)
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range line {
			if b >= 0x80 || b < 0x20 && i != len(line)-1 {
				t.Fatalf("byte %d is %#x", i, b)
			}
		}
		var want, got string
		if err := json.Unmarshal(plain, &want); err != nil {
			t.Fatal(err)
		}
		if err := worker.NewLines(strings.NewReader(string(line))).Next(&got); err != nil || got != want {
			t.Fatalf("%q came back as %q, %v", want, got, err)
		}
	})
}
