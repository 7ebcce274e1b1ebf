package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicelake/sluice/engine"
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
)

// engineFlags say where the tasks of a job run.
type engineFlags struct {
	name   string
	master string
	submit string
	worker string
	shared bool
	rest   []string // behind --: flags of spark-submit
}

const engineHelp = `Engines: --engine local runs the tasks in this process and process in child processes. spark sends them to a Spark cluster by
spark-submit, whose own flags can stand behind --; planning and committing stay here, and nothing but Spark is needed on the cluster.
Files of this machine are refused there unless --shared-files says that all machines see them at the same path.
`

func (e *engineFlags) add(f *pflag.FlagSet) {
	f.StringVar(&e.name, "engine", engineLocal, "where tasks run: local, process or spark")
	f.StringVar(&e.master, "master", "", "master of the Spark cluster: spark://host:7077, yarn, k8s://…, local[2]; default that of spark-defaults.conf")
	f.StringVar(&e.submit, "spark-submit", "", "the spark-submit to start; default that of SPARK_HOME, or else of PATH")
	f.StringVar(&e.worker, "worker", "", "the program that workers run, where their machines need another build of Sluice than this one")
	f.BoolVar(&e.shared, "shared-files", false, "all machines of the cluster see the files of this one at the same path (NFS and the like)")
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
func (e *engineFlags) engine(opts local.Options, urls ...string) (engine.Engine, int, error) {
	if e.name != engineSpark {
		for flag, set := range map[string]bool{"master": e.master != "", "spark-submit": e.submit != "", "shared-files": e.shared} {
			if set {
				return nil, 0, usagef("--%s is for --engine spark", flag)
			}
		}
	}
	switch e.name {
	case engineLocal:
		if e.worker != "" {
			return nil, 0, usagef("--worker is for --engine process and --engine spark")
		}
		return nil, opts.Workers, nil
	case engineProcess:
		pool, err := process.New(process.Options{Program: e.worker, Workers: opts.Workers, Memory: opts.Memory, TempDir: opts.TempDir, Observe: opts.Observe})
		if err != nil {
			return nil, 0, err
		}
		return pool, pool.Workers(), nil
	case engineSpark:
		cluster, err := spark.New(spark.Options{Submit: e.submit, Master: e.master, Args: e.rest, Worker: e.worker, Memory: opts.Memory,
			TempDir: opts.TempDir, Observe: opts.Observe})
		if err != nil {
			return nil, 0, usageError{err}
		}
		noteFiles(cluster.Master(), opts.Observe)
		for _, url := range urls {
			if err := e.reachable(cluster.Master(), url); err != nil {
				return nil, 0, err
			}
		}
		if err := cluster.Ready(); err != nil {
			return nil, 0, err
		}
		return cluster, cmp.Or(opts.Workers, widePlan), nil
	}
	return nil, 0, usagef("--engine %q: use local, process or spark", e.name)
}

// reachable refuses a place that only this machine sees.
func (e *engineFlags) reachable(master, url string) error {
	scheme := open.Scheme(url)
	if spark.Local(master) && scheme != "mem" || scheme != "" && scheme != "file" && scheme != "mem" || e.shared && scheme != "mem" {
		return nil
	}
	where := "of the cluster that spark-defaults.conf names"
	if master != "" {
		where = "of " + master
	}
	return &unreachableError{fmt.Sprintf("%v: %s is on this machine, and the executors %s may be on others", engine.ErrRefused, url, where)}
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
func noteFiles(master string, observe engine.Observer) {
	if spark.Local(master) {
		return
	}
	for _, name := range []string{"AWS_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"GOOGLE_APPLICATION_CREDENTIALS", "AZURE_FEDERATED_TOKEN_FILE"} {
		if value := os.Getenv(name); value != "" {
			observe(engine.Noted{Text: fmt.Sprintf("%s=%s is about a file of this machine: the executors need the same file at the same place", name, value)})
		}
	}
}
