package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicelake/sluice/engine/local"
)

// version is set by the build: -ldflags "-X main.version=v0.2.0".
var version = "devel"

// app is what all commands share: the console and the flags of the root.
type app struct {
	console
	memory  string
	tempDir string
	zone    string
	quiet   bool
}

// run is the whole program but for the process around it: tests call it.
func run(ctx context.Context, args []string, c console) int {
	a := &app{console: c}
	root := a.root()
	args, err := pasted(root, args)
	if err != nil {
		report(c.err, "sluice streamer", err)
		return exitUsage
	}
	root.SetArgs(javaFlags(root, args))
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	cmd, err := root.ExecuteContextC(ctx)
	code := exitCode(ctx, err)
	if err != nil && !errors.Is(err, errNothing) {
		report(c.err, cmd.CommandPath(), err)
	}
	return code
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "sluice",
		Short: "Apache Hudi tables without a JVM: read, write, stream into, export and look after them",
		Long: `Sluice works on Apache Hudi tables of table versions 1 to 6, 8 and 9 (Apache Hudi 0.6 to 1.2), on local disks, S3,
Google Cloud Storage, Azure and HDFS, and writes tables of version 6.
Paths are folders or URLs: /data/orders, file:///data/orders, s3://lake/orders, gs://lake/orders, abfss://lake@account.dfs.core.windows.net/orders.

Data goes to standard output, everything else to standard error.

` + exitHelp,
		Example: `  sluice demo
  sluice write /data/orders orders.parquet --key id --partition region --ordering ts
  sluice read s3://lake/orders --limit 10
  sluice export --source-base-path s3://lake/orders --target-output-path /backup/orders --output-format parquet`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.memory, "memory", "512MiB", "memory budget for data; what does not fit is spilled to --temp-dir")
	flags.StringVar(&a.tempDir, "temp-dir", os.TempDir(), "local folder for spilled data")
	flags.StringVar(&a.zone, "table-timezone", "UTC", "zone in which the table's instants are dates, where its properties say LOCAL")
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "no progress and no summary")
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return a.limitMemory() }
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageError{nearestFlag(cmd, err)} })
	root.AddCommand(a.readCommand(), a.exportCommand(), a.copyCommand(), a.writeCommand(), a.streamerCommand(), a.tableCommand(), a.keysCommand(), a.taskCommand(), a.demoCommand(), a.versionCommand())
	usageErrors(root)
	return root
}

// usageErrors makes mistakes in the arguments of every command exit with the code for wrong usage.
func usageErrors(cmd *cobra.Command) {
	if args := cmd.Args; args != nil {
		cmd.Args = func(cmd *cobra.Command, in []string) error {
			if err := args(cmd, in); err != nil {
				return usageError{err}
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		usageErrors(sub)
	}
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version and what it reads and writes",
		Long:    "Print the version of the program and the table versions that it knows.\n\n" + exitHelp,
		Example: "  sluice version\n  sluice version | head -1",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.out, "sluice %s\nreads table versions 1 to 6, 8 and 9 (timeline layouts 1 and 2), writes version 6\n", version)
			return err
		},
	}
}

// limitMemory lets the garbage collector work harder before the process is half as large again as its budget for data. GOMEMLIMIT
// wins.
func (a *app) limitMemory() error {
	n, err := a.budget()
	if err == nil && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(n + n/2)
	}
	return err
}

// budget parses --memory.
func (a *app) budget() (int64, error) {
	n, err := parseSize(a.memory)
	if err != nil {
		return 0, usagef("--memory: %w", err)
	}
	if n < 16<<20 {
		return 0, usagef("--memory %s: at least 16MiB is needed", a.memory)
	}
	return n, nil
}

// parseSize reads a number of bytes with a unit: 512MiB, 1g, 1073741824.
func parseSize(text string) (int64, error) {
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is no size; write it like 512MiB or 2GiB", text)
	}
	shift := map[string]uint{"": 0, "b": 0, "k": 10, "kb": 10, "kib": 10, "m": 20, "mb": 20, "mib": 20, "g": 30, "gb": 30, "gib": 30, "t": 40, "tib": 40}
	s, ok := shift[strings.ToLower(strings.TrimSpace(text[len(digits):]))]
	if !ok || n > 1<<62>>s {
		return 0, fmt.Errorf("%q is no size; write it like 512MiB or 2GiB", text)
	}
	return n << s, nil
}

func (a *app) tableZone() (*time.Location, error) {
	zone, err := time.LoadLocation(a.zone)
	if err != nil {
		return nil, usagef("--table-timezone %q: no such time zone; write it like Europe/Berlin", a.zone)
	}
	return zone, nil
}

// pasted takes spark-submit, its flags and the jar away where a whole line was pasted behind a verb that allows it.
func pasted(root *cobra.Command, args []string) ([]string, error) {
	cmd, _, err := root.Find(args)
	at := slices.Index(args, cmd.Name())
	if err != nil || cmd.Annotations[sparkLine] == "" || at < 0 {
		return args, nil //nolint:nilerr // cobra will say it better
	}
	rest, class, err := cutSpark(args[at+1:])
	cmd.Annotations["class"] = class
	return slices.Concat(args[:at+1], rest), err
}

// javaFlags rewrites the one-dash long flags of the Java tools (-pl, -bp …), which the flag library would take for a row
// of short ones, to the names of ours. Each command lists its own in an annotation.
func javaFlags(root *cobra.Command, args []string) []string {
	cmd, _, err := root.Find(args)
	if err != nil || cmd.Annotations[javaAliases] == "" {
		return args
	}
	out := slices.Clone(args)
	for pair := range strings.SplitSeq(cmd.Annotations[javaAliases], " ") {
		from, to, _ := strings.Cut(pair, "=")
		for i, arg := range out {
			if arg == from {
				out[i] = to
			}
		}
	}
	return out
}

const javaAliases = "java-aliases"

// once refuses a flag that is given twice, in the words of the Java tools.
type once struct {
	pflag.Value
	name string
	set  bool
}

func (o *once) Set(text string) error {
	if o.set {
		return fmt.Errorf("Can only specify option --%s once.", o.name) //nolint:revive,staticcheck // the original's text
	}
	o.set = true
	return o.Value.Set(text)
}

// onlyOnce wraps every flag of a command that takes one value.
func onlyOnce(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Value.Type() != "bool" && f.Value.Type() != "stringArray" {
			f.Value = &once{Value: f.Value, name: f.Name}
		}
	})
}

// required refuses missing flags with the text of the Java tools.
func required(cmd *cobra.Command, names ...string) error {
	var missing []string
	for _, n := range names {
		if !cmd.Flags().Changed(n) {
			missing = append(missing, "[--"+n+"]")
		}
	}
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return usagef("The following option is required: %s", missing[0])
	}
	return usagef("The following options are required: %s", strings.Join(missing, ", "))
}

// nearestFlag adds the flag that was probably meant to the error of an unknown one.
func nearestFlag(cmd *cobra.Command, err error) error {
	name, ok := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !ok {
		return err
	}
	best, distance := "", 4
	seen := func(f *pflag.Flag) {
		if d := levenshtein(name, f.Name); d < distance {
			best, distance = f.Name, d
		}
	}
	cmd.Flags().VisitAll(seen)
	cmd.InheritedFlags().VisitAll(seen)
	if best == "" {
		return err
	}
	return fmt.Errorf("%w; did you mean --%s?", err, best)
}

func levenshtein(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diag, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diag+cost)
		}
	}
	return row[len(b)]
}

// pool options from the root's flags.
func (a *app) pool(parallelism int, p *progress) (local.Options, error) {
	memory, err := a.budget()
	if err != nil {
		return local.Options{}, err
	}
	return local.Options{Workers: parallelism, Memory: memory, TempDir: a.tempDir, Observe: p.observe}, nil
}
