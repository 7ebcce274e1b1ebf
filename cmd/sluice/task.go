package main

import (
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicelake/sluice/engine/folder"
	"github.com/sluicelake/sluice/engine/worker"
	"github.com/sluicelake/sluice/export"
	"github.com/sluicelake/sluice/storage/open"
)

func (a *app) taskCommand() *cobra.Command {
	failures, exchange := "exit", ""
	index, of := 0, 1
	wait := 2 * time.Minute
	cmd := &cobra.Command{
		Use:   "task",
		Short: "Run tasks of a job that another process plans: a line of JSON in, a line of JSON out",
		Long: `Run tasks that come as lines of JSON on standard input, one after the other, and write the result of each as a line of JSON to standard
output; what happens goes to standard error. This is what --engine process and --engine spark start. Storage settings come from the
environment.

With --exchange the tasks come from the folder of --engine folder and the results go there: of N workers, told apart by --index, each
takes every N-th task that has no result yet. A Kubernetes indexed job runs it so.

A task that is refused, because it would fail again in the same way, gives a result that says so. One that fails otherwise ends the
command with exit code 1 and gives no result, so that who started it does so again; with --failures report it gives a result too.
The command also ends when the process that started it does.

` + exitHelp,
		Example: `  sluice task < tasks.jsonl > results.jsonl
  sluice task --exchange s3://lake/exchange --index "$JOB_COMPLETION_INDEX" --of 50`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if failures != "exit" && failures != "report" {
				return usagef("--failures %q: use exit or report", failures)
			}
			if index < 0 || index >= of {
				return usagef("--index %d of %d: workers are counted from 0", index, of)
			}
			memory, err := a.budget()
			if err != nil {
				return err
			}
			ctx, stop := worker.UntilOrphaned(cmd.Context())
			defer stop()
			opts := worker.Options{Memory: memory, TempDir: a.tempDir, Report: failures == "report"}
			if !a.quiet {
				opts.Log = slog.New(slog.NewTextHandler(a.err, nil))
			}
			if exchange != "" {
				store, err := open.Store(ctx, exchange, open.Options{})
				if err != nil {
					return err
				}
				return folder.Work(ctx, store, index, of, wait, export.Handlers(), opts)
			}
			return worker.Serve(ctx, a.in, a.out, export.Handlers(), opts)
		},
	}
	f := cmd.Flags()
	f.StringVar(&exchange, "exchange", "", "take the tasks from this folder of --engine folder, and put the results there")
	f.IntVar(&index, "index", 0, "which worker of --exchange this is, from 0")
	f.IntVar(&of, "of", 1, "how many workers of --exchange there are")
	f.DurationVar(&wait, "wait", wait, "how long to wait for tasks in --exchange")
	f.StringVar(&failures, "failures", failures, "what becomes of a task that fails and may succeed another time: exit (with code 1) or report (as a result)")
	return cmd
}
