package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/engine/folder"
	"github.com/sluicelake/sluice/engine/local"
	"github.com/sluicelake/sluice/engine/process"
	"github.com/sluicelake/sluice/engine/spark"
	"github.com/sluicelake/sluice/storage/open"
)

// The engines.
const (
	engineLocal   = "local"
	engineProcess = "process"
	engineSpark   = "spark"
	engineFolder  = "folder"
)

// engineFlags say where the tasks of a job run.
type engineFlags struct {
	name   string
	master string
	submit string
	worker string
	shared bool
	folder string
	rest   []string // behind --: flags of spark-submit
}

const engineHelp = `Engines: --engine local runs the tasks in this process and process in child processes. spark sends them to a Spark cluster by
spark-submit, whose own flags can stand behind --; planning and committing stay here, and nothing but Spark is needed on the cluster.
folder puts them into a folder of a store and waits for workers that somebody else starts, such as a Kubernetes indexed job.
Files of this machine are refused there unless --shared-files says that all machines see them at the same path.
`

func (e *engineFlags) add(f *pflag.FlagSet) {
	f.StringVar(&e.name, "engine", engineLocal, "where tasks run: local, process, spark or folder")
	f.StringVar(&e.master, "master", "", "master of the Spark cluster: spark://host:7077, yarn, k8s://…, local[2]; default that of spark-defaults.conf")
	f.StringVar(&e.submit, "spark-submit", "", "the spark-submit to start; default that of SPARK_HOME, or else of PATH")
	f.StringVar(&e.worker, "worker", "", "the program that workers run, where their machines need another build of Sluice than this one")
	f.StringVar(&e.folder, "exchange", "", "for --engine folder: an empty folder of a store where tasks and results meet")
	f.BoolVar(&e.shared, "shared-files", false, "all machines that run tasks see the files of this one at the same path (NFS and the like)")
}

// words takes what stands behind -- for spark-submit, and gives every other word to the command's own check.
func (e *engineFlags) words(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		at := cmd.ArgsLenAtDash()
		if at < 0 {
			return check(cmd, args)
		}
		if e.name != engineSpark {
			return fmt.Errorf("what stands behind -- is for spark-submit, which only --engine spark starts")
		}
		e.rest = args[at:]
		return check(cmd, args[:at])
	}
}

// widePlan is for how many tasks at once a job is cut when nobody says how many a cluster runs.
const widePlan = 64

// engine makes the engine, and how many tasks at once the plan is for; nil for the pool in this process. urls are all places that
// tasks read and write.
func (e *engineFlags) engine(ctx context.Context, opts local.Options, urls ...string) (engine.Engine, int, error) {
	if err := e.foreign(); err != nil {
		return nil, 0, err
	}
	switch e.name {
	case engineLocal:
		return nil, opts.Workers, nil
	case engineProcess:
		pool, err := process.New(process.Options{Program: e.worker, Workers: opts.Workers, Memory: opts.Memory, TempDir: opts.TempDir, Observe: opts.Observe})
		if err != nil {
			return nil, 0, err
		}
		return pool, pool.Workers(), nil
	case engineSpark:
		return e.spark(opts, urls)
	case engineFolder:
		return e.exchange(ctx, opts, urls)
	}
	return nil, 0, usagef("--engine %q: use local, process, spark or folder", e.name)
}

// foreign refuses flags of another engine.
func (e *engineFlags) foreign() error {
	for _, f := range []struct {
		flag    string
		given   bool
		engines []string
	}{
		{"master", e.master != "", []string{engineSpark}},
		{"spark-submit", e.submit != "", []string{engineSpark}},
		{"shared-files", e.shared, []string{engineSpark, engineFolder}},
		{"exchange", e.folder != "", []string{engineFolder}},
		{"worker", e.worker != "", []string{engineProcess, engineSpark}},
	} {
		if f.given && !slices.Contains(f.engines, e.name) {
			return usagef("--%s is for --engine %s", f.flag, strings.Join(f.engines, " and --engine "))
		}
	}
	return nil
}

func (e *engineFlags) spark(opts local.Options, urls []string) (engine.Engine, int, error) {
	cluster, err := spark.New(spark.Options{Submit: e.submit, Master: e.master, Args: e.rest, Worker: e.worker, Memory: opts.Memory,
		TempDir: opts.TempDir, Observe: opts.Observe})
	if err != nil {
		return nil, 0, usageError{err}
	}
	where := "the executors of the cluster that spark-defaults.conf names"
	if cluster.Master() != "" {
		where = "the executors of " + cluster.Master()
	}
	if !spark.Local(cluster.Master()) {
		noteFiles(opts.Observe)
	}
	for _, url := range urls {
		if err := e.reachable(url, where, spark.Local(cluster.Master())); err != nil {
			return nil, 0, err
		}
	}
	if err := cluster.Ready(); err != nil {
		return nil, 0, err
	}
	return cluster, cmp.Or(opts.Workers, widePlan), nil
}

func (e *engineFlags) exchange(ctx context.Context, opts local.Options, urls []string) (engine.Engine, int, error) {
	if e.folder == "" {
		return nil, 0, usagef("--engine folder needs --exchange, an empty folder that all workers see")
	}
	for _, url := range append(urls, e.folder) {
		if err := e.reachable(url, "the workers of "+e.folder, false); err != nil {
			return nil, 0, err
		}
	}
	store, err := open.Store(ctx, e.folder, open.Options{})
	if err != nil {
		return nil, 0, err
	}
	return folder.New(store, folder.Options{Observe: opts.Observe}), cmp.Or(opts.Workers, widePlan), nil
}

// reachable refuses a place that only this machine sees, or only this process.
func (e *engineFlags) reachable(url, workers string, here bool) error {
	switch scheme := open.Scheme(url); {
	case scheme == "mem":
	case scheme != "" && scheme != "file", here, e.shared:
		return nil
	}
	return &unreachableError{fmt.Sprintf("%v: %s is on this machine, and %s may be on others", engine.ErrRefused, url, workers)}
}

// unreachableError refuses storage that executors can't share.
type unreachableError struct{ text string }

func (e *unreachableError) Error() string { return e.text }
func (e *unreachableError) Unwrap() error { return engine.ErrRefused }

// NextStep for a person.
func (e *unreachableError) NextStep() string {
	return "use an object store, or give --shared-files when all machines see this path (NFS and the like)"
}

// noteFiles says what works here and will not elsewhere: credentials that are in a file.
func noteFiles(observe engine.Observer) {
	for _, name := range []string{"AWS_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CA_BUNDLE",
		"GOOGLE_APPLICATION_CREDENTIALS", "AZURE_FEDERATED_TOKEN_FILE"} {
		if value := os.Getenv(name); value != "" {
			observe(engine.Noted{Text: fmt.Sprintf("%s=%s is about a file of this machine: the executors need the same file at the same place", name, value)})
		}
	}
}
