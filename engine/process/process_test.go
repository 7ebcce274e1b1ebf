package process_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/engine/enginetest"
	"github.com/sluicelake/sluice/engine/process"
	"github.com/sluicelake/sluice/engine/worker"
)

// The test's own program is the worker, when it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "work" {
		ctx, stop := worker.UntilOrphaned(context.Background())
		defer stop()
		err := worker.Serve(ctx, os.Stdin, os.Stdout, enginetest.Handlers(), worker.Options{Report: true, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestConformance(t *testing.T) {
	enginetest.Run(t, enginetest.Suite{
		New: func(t *testing.T, observe engine.Observer) engine.Engine {
			pool, err := process.New(process.Options{Args: []string{"work"}, Workers: 3, Observe: observe})
			if err != nil {
				t.Fatal(err)
			}
			return pool
		},
		Kill:   0,
		Shared: func(t *testing.T) string { return t.TempDir() },
	})
}
