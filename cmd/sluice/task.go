package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/sluicelake/sluice/engine/worker"
	"github.com/sluicelake/sluice/export"
)

func (a *app) taskCommand() *cobra.Command {
	failures := "exit"
	cmd := &cobra.Command{
		Use:   "task",
		Short: "Run tasks of a job that another process plans: a line of JSON in, a line of JSON out",
		Long: `Run tasks that come as lines of JSON on standard input, one after the other, and write the result of each as a line of JSON to standard
output; what happens goes to standard error. This is what --engine process and --engine spark start, and what a Kubernetes indexed
job can run. Storage settings come from the environment.

A task that is refused, because it would fail again in the same way, gives a result that says so. One that fails otherwise ends the
command with exit code 1 and gives no result, so that who started it does so again; with --failures report it gives a result too.
The command also ends when the process that started it does.

` + exitHelp,
		Example: `  sluice task < tasks.jsonl > results.jsonl
  sed -n "$((JOB_COMPLETION_INDEX + 1))p" tasks.jsonl | sluice task --memory 1GiB`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if failures != "exit" && failures != "report" {
				return usagef("--failures %q: use exit or report", failures)
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
			return worker.Serve(ctx, a.in, a.out, export.Handlers(), opts)
		},
	}
	cmd.Flags().StringVar(&failures, "failures", failures, "what becomes of a task that fails and may succeed another time: exit (with code 1) or report (as a result)")
	return cmd
}
