package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/sluicelake/sluice/hudi"
)

// streamerOptions of "bench streamer": rounds of upserts from change files, beside the original streamer where it is there.
//
//	bench streamer -original "$SLUICE_ORIGINAL_STREAMER" -sluice bin/sluice
//
// Each contender first loads the base file. Then it runs continuously, one change file a round. A round is timed from one completed
// commit to the next, so that the first, which holds the start of the process, does not count: rounds are warm for both.
type streamerOptions struct {
	rows, changes, files, idle int
	formats                    string
	sluice, original, python   string
	dir                        string
}

func streamerBench(args []string) error {
	var o streamerOptions
	f := flag.NewFlagSet("streamer", flag.ExitOnError)
	f.IntVar(&o.rows, "rows", 1_000_000, "rows of the base file")
	f.IntVar(&o.changes, "changes", 200_000, "rows of each change file")
	f.IntVar(&o.files, "files", 5, "change files")
	f.IntVar(&o.idle, "idle", 100_000, "old files of the idle round; 0 leaves it out")
	f.StringVar(&o.formats, "formats", "parquet,json,csv", "formats of the change files")
	f.StringVar(&o.sluice, "sluice", "bin/sluice", "the program")
	f.StringVar(&o.original, "original", os.Getenv("SLUICE_ORIGINAL_STREAMER"), "folder that interop/streamer/install.sh made; empty leaves the original out")
	f.StringVar(&o.python, "python", os.Getenv("SLUICE_INTEROP_PYTHON"), "interpreter with pyarrow")
	if err := f.Parse(args); err != nil {
		return err
	}
	var err error
	if o.sluice, err = filepath.Abs(o.sluice); err != nil {
		return err
	}
	if o.dir, err = os.MkdirTemp("", "streamer-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(o.dir)
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintf(w, "upsert rounds, %d rows into a table of %d\twarm round\trows/s\tpeak memory\tSluice is\n", o.changes, o.rows)
	for format := range strings.SplitSeq(o.formats, ",") {
		if err := o.rounds(w, format); err != nil {
			return err
		}
	}
	if o.idle > 0 {
		return o.idleRound(w)
	}
	return nil
}

// streamed is what one contender did.
type streamed struct {
	round time.Duration // median
	peak  int64
	rows  int64
	qty   int64
}

func (o streamerOptions) rounds(w *tabwriter.Writer, format string) error {
	in := filepath.Join(o.dir, format)
	cmd := exec.Command(o.python, "bench/make_changes.py", in, format, fmt.Sprint(o.rows), fmt.Sprint(o.changes), fmt.Sprint(o.files))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("making change files: %w\n%s", err, out)
	}
	names := []string{"sluice"}
	if o.original != "" {
		names = append(names, "original")
	}
	results := map[string]streamed{}
	for _, name := range names {
		r, err := o.stream(name, in, format)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", name, format, err)
		}
		results[name] = r
	}
	for _, name := range names {
		r := results[name]
		times := ""
		if name == "original" {
			times = fmt.Sprintf("%.1f times as fast", float64(r.round)/float64(results["sluice"].round))
			if s := results["sluice"]; s.rows != r.rows || s.qty != r.qty {
				times = "WRONG: other rows"
			}
		}
		fmt.Fprintf(w, "%s, %s\t%.2fs\t%.0f\t%s\t%s\n", format, name, r.round.Seconds(), float64(o.changes)/r.round.Seconds(), size(r.peak), times)
	}
	return w.Flush()
}

// stream loads the base and then runs the rounds.
func (o streamerOptions) stream(who, in, format string) (r streamed, err error) {
	root := filepath.Join(o.dir, who+"-"+format)
	source, table := filepath.Join(root, "in"), filepath.Join(root, "table")
	if err := os.MkdirAll(source, 0o777); err != nil {
		return r, err
	}
	class := map[string]string{"parquet": "Parquet", "json": "Json", "csv": "Csv"}[format]
	args := []string{"--target-base-path", table, "--target-table", "orders", "--table-type", "COPY_ON_WRITE", "--source-ordering-field", "ts",
		"--source-class", "org.apache.hudi.utilities.sources." + class + "DFSSource",
		"--hoodie-conf", "hoodie.datasource.write.recordkey.field=order_id", "--hoodie-conf", "hoodie.datasource.write.partitionpath.field=region",
		"--hoodie-conf", "hoodie.streamer.source.dfs.root=" + source, "--hoodie-conf", "hoodie.metadata.enable=false", "--hoodie-conf", "hoodie.embed.timeline.server=false",
		"--hoodie-conf", "hoodie.upsert.shuffle.parallelism=4", "--hoodie-conf", "hoodie.insert.shuffle.parallelism=4"}
	if format != "parquet" {
		args = append(args, "--schemaprovider-class", "org.apache.hudi.utilities.schema.FilebasedSchemaProvider", "--hoodie-conf", "hoodie.streamer.schemaprovider.source.schema.file="+filepath.Join(in, "schema.avsc"))
	}
	if err := link(in, source, "base."+format); err != nil {
		return r, err
	}
	if _, err := o.process(who, args); err != nil {
		return r, err
	}
	largest := int64(0)
	for n := range o.files {
		name := fmt.Sprintf("change%d.%s", n+1, format)
		if err := link(in, source, name); err != nil {
			return r, err
		}
		info, err := os.Stat(filepath.Join(source, name))
		if err != nil {
			return r, err
		}
		largest = max(largest, info.Size())
	}
	args = append(args, "--source-limit", fmt.Sprint(largest+1), "--continuous", "--hoodie-conf", "max.rounds.without.new.data.to.shutdown=1",
		"--post-write-termination-strategy-class", "org.apache.hudi.utilities.streamer.NoNewDataTerminationStrategy")
	if r.peak, err = o.process(who, args); err != nil {
		return r, err
	}
	if r.round, err = medianRound(table, o.files); err != nil {
		return r, err
	}
	r.rows, r.qty, err = contents(table)
	return r, errors.Join(err, os.RemoveAll(root))
}

func link(from, to, name string) error {
	return os.Link(filepath.Join(from, name), filepath.Join(to, name))
}

// process runs a contender and gives its greatest resident memory.
func (o streamerOptions) process(who string, args []string) (int64, error) {
	argv := append([]string{o.sluice, "streamer", "-q"}, args...)
	env := os.Environ()
	if who == "original" {
		found, err := filepath.Glob(filepath.Join(o.original, "venv", "lib", "python*", "site-packages", "pyspark"))
		if err != nil || len(found) != 1 {
			return 0, fmt.Errorf("no pyspark in %s", o.original)
		}
		jars, err := filepath.Glob(filepath.Join(o.original, "lib", "*.jar"))
		if err != nil {
			return 0, err
		}
		env = append(env, "SPARK_HOME="+found[0])
		argv = append([]string{filepath.Join(found[0], "bin", "spark-submit"), "--master", "local[*]", "--driver-memory", "4g", "--conf", "spark.driver.extraClassPath=" + strings.Join(jars, ":"),
			"--conf", "spark.ui.enabled=false", "--conf", "spark.sql.session.timeZone=UTC", "--conf", "spark.driver.extraJavaOptions=-Duser.timezone=UTC",
			"--conf", "spark.serializer=org.apache.spark.serializer.KryoSerializer", "--class", "org.apache.hudi.utilities.streamer.HoodieStreamer",
			filepath.Join(o.original, "lib", "utilities-relocated.jar")}, args...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = env
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	stop := watchMemory(cmd.Process.Pid)
	err := cmd.Wait()
	peak := stop()
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, lastLines(errs.String()))
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		peak = max(peak, usage.Maxrss*1024)
	}
	return peak, nil
}

// medianRound is the median time between the completions of the last commits, the first of the run left out.
func medianRound(table string, files int) (time.Duration, error) {
	names, err := filepath.Glob(filepath.Join(table, ".hoodie", "*.commit"))
	if err != nil {
		return 0, err
	}
	slices.Sort(names)
	if len(names) != files+1 {
		return 0, fmt.Errorf("%d commits of %d files", len(names), files+1)
	}
	var done []time.Time
	for _, n := range names[1:] {
		info, err := os.Stat(n)
		if err != nil {
			return 0, err
		}
		done = append(done, info.ModTime())
	}
	var rounds []time.Duration
	for i := 1; i < len(done); i++ {
		rounds = append(rounds, done[i].Sub(done[i-1]))
	}
	slices.Sort(rounds)
	return rounds[len(rounds)/2], nil
}

// contents is the number of rows and the sum of a column: both contenders must have the same.
func contents(table string) (rows, qty int64, err error) {
	ctx := context.Background()
	t, err := hudi.Open(ctx, table, hudi.Options{})
	if err != nil {
		return 0, 0, err
	}
	s, err := t.Snapshot(ctx, hudi.Query{})
	if err != nil {
		return 0, 0, err
	}
	for batch, err := range s.Scan(ctx, hudi.Scan{Columns: []string{"qty"}}) {
		if err != nil {
			return 0, 0, err
		}
		column := batch.Column(0).(*array.Int32)
		for _, v := range column.Int32Values() {
			qty += int64(v)
		}
		rows += batch.NumRows()
		batch.Release()
	}
	return rows, qty, nil
}

// idleRound times a whole run, process and all, that finds nothing new among many old files.
func (o streamerOptions) idleRound(w *tabwriter.Writer) error {
	in, table := filepath.Join(o.dir, "idle"), filepath.Join(o.dir, "idle-table")
	schema := filepath.Join(o.dir, "idle.avsc")
	if err := os.WriteFile(schema, []byte(`{"type":"record","name":"e","fields":[{"name":"id","type":"long"}]}`), 0o666); err != nil {
		return err
	}
	old := time.UnixMilli(1579550000000)
	for i := range o.idle {
		dir := filepath.Join(in, fmt.Sprint(i%100))
		if i < 100 {
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return err
			}
		}
		name := filepath.Join(dir, fmt.Sprintf("f%d.json", i))
		if err := os.WriteFile(name, fmt.Appendf(nil, `{"id":%d}`, i), 0o666); err != nil {
			return err
		}
		if err := os.Chtimes(name, old, old); err != nil {
			return err
		}
	}
	args := []string{"--target-base-path", table, "--target-table", "t", "--table-type", "COPY_ON_WRITE", "--source-ordering-field", "id", "--source-class", "JsonDFSSource", "--schemaprovider-class", "FilebasedSchemaProvider",
		"--hoodie-conf", "hoodie.datasource.write.recordkey.field=id", "--hoodie-conf", "hoodie.streamer.source.dfs.root=" + in, "--hoodie-conf", "hoodie.streamer.schemaprovider.source.schema.file=" + schema}
	begun := time.Now()
	if _, err := o.process("sluice", args); err != nil {
		return err
	}
	first := time.Since(begun)
	best := time.Hour
	for range 5 {
		begun := time.Now()
		if _, err := o.process("sluice", args); err != nil {
			return err
		}
		best = min(best, time.Since(begun))
	}
	fmt.Fprintf(w, "idle round, %d old files (a whole process)\t%.2fs\n", o.idle, best.Seconds())
	fmt.Fprintf(w, "the first round over them\t%.2fs\t%.0f\n", first.Seconds(), float64(o.idle)/first.Seconds())
	return w.Flush()
}
