// Command bench measures reading and exporting beside the programs that people use today, in one run on one machine, and
// prints a table: time, rows/s, bytes/s, rows per second of processor time, peak memory, and the ratio to Sluice.
//
//	make bench                                   # everything; the table is made once and kept in the cache folder
//	make bench ARGS="-rows 400000 -updates 40000 -only scan"
//
// Every measurement is a process of its own, started cold but with the files in the page cache. Where a task gives rows,
// all contenders must give the same number of rows and the same sum of a column; one that does not is reported as wrong,
// not as fast. The best of -repeat runs counts.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

type options struct {
	rows, updates, groups, repeat int
	only                          string
	sluice                        string
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "streamer" {
		exit(streamerBench(os.Args[2:]))
		return
	}
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "scan":
			exit(scan(os.Args[2:]))
			return
		case "orc":
			exit(readORC(os.Args[2]))
			return
		case "requests":
			exit(requests(os.Args[2]))
			return
		}
	}
	var o options
	flag.IntVar(&o.rows, "rows", 10_000_000, "rows in base files")
	flag.IntVar(&o.updates, "updates", 400_000, "of them updated in log files")
	flag.IntVar(&o.groups, "groups", 16, "file groups")
	flag.IntVar(&o.repeat, "repeat", 3, "runs of each contender; the best counts (Spark runs once)")
	flag.StringVar(&o.only, "only", "", "only tasks whose name holds this")
	flag.StringVar(&o.sluice, "sluice", "bin/sluice", "the program")
	flag.Parse()
	exit(run(o))
}

// exit ends the program where there is an error.
func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	b, err := newBench(o)
	if err != nil {
		return err
	}
	defer os.RemoveAll(b.out)
	if strings.Contains("plans of many files", o.only) {
		if err := b.many(context.Background()); err != nil {
			return err
		}
		if o.only != "" {
			return nil
		}
	}
	table, err := b.table()
	if err != nil {
		return err
	}
	if table.orc, err = b.orcFile(table); err != nil {
		return err
	}
	for _, task := range b.tasks(table) {
		if !strings.Contains(task.name, o.only) {
			continue
		}
		fmt.Printf("\n%s\n", task.name)
		if err := b.measure(task); err != nil {
			return err
		}
	}
	return nil
}

// bench is the place where things are: the interpreter, the scripts, this program itself.
type bench struct {
	options
	self, python, jar, scripts, cache, out string
}

func newBench(o options) (*bench, error) {
	b := &bench{options: o, scripts: "bench", python: os.Getenv("SLUICE_INTEROP_PYTHON"), jar: os.Getenv("SLUICE_INTEROP_HUDI_JAR"),
		cache: os.Getenv("SLUICE_CACHE")}
	if b.python == "" || b.jar == "" || b.cache == "" {
		return nil, errors.New(`run "make bench", which sets the peers' places`)
	}
	var err error
	if b.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if b.options.sluice, err = filepath.Abs(o.sluice); err != nil {
		return nil, err
	}
	// Targets lie beside the table: the same disk for everyone.
	if err := os.MkdirAll(filepath.Join(b.cache, "bench"), 0o755); err != nil {
		return nil, err
	}
	b.out, err = os.MkdirTemp(filepath.Join(b.cache, "bench"), "out-")
	return b, err
}

// table is a made table with what is known of it.
type table struct {
	path                string
	baseBytes, allBytes int64
	sliceLogBytes       int64 // log bytes of the greatest file group
	orc                 orcFile
}

// orcFile holds eight columns of the base files' rows, as PyArrow writes them.
type orcFile struct {
	path  string
	bytes int64
}

func (b *bench) orcFile(t table) (orcFile, error) {
	f := orcFile{path: t.path + ".orc"}
	if _, err := os.Stat(f.path); errors.Is(err, os.ErrNotExist) {
		part := f.path + ".part"
		cmd := exec.Command(b.python, filepath.Join(b.scripts, "peers.py"), "orc_pyarrow", t.path, part)
		if out, err := cmd.CombinedOutput(); err != nil {
			return f, fmt.Errorf("making %s: %w\n%s", f.path, err, out)
		}
		if err := os.Rename(part, f.path); err != nil {
			return f, err
		}
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return f, err
	}
	f.bytes = info.Size()
	return f, touch(f.path)
}

// table makes the table once for each size and version of the program that makes it.
func (b *bench) table() (table, error) {
	script := filepath.Join(b.scripts, "make_table.py")
	path := filepath.Join(b.cache, "bench", fmt.Sprintf("mor-%d-%d-%d", b.rows, b.updates, b.groups))
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(os.Stderr, "making %s (once; some minutes)\n", path)
		part := path + ".part"
		if err := os.RemoveAll(part); err != nil {
			return table{}, err
		}
		cmd := exec.Command(b.python, script, "--jar", b.jar, "--rows", strconv.Itoa(b.rows), "--updates", strconv.Itoa(b.updates),
			"--groups", strconv.Itoa(b.groups), "--out", part)
		var log bytes.Buffer
		cmd.Stdout, cmd.Stderr = &log, &log
		if err := cmd.Run(); err != nil {
			return table{}, fmt.Errorf("%s: %w\n%s", script, err, log.Bytes())
		}
		if err := os.Rename(part, path); err != nil {
			return table{}, err
		}
	}
	return weigh(path)
}

// weigh adds up the sizes of the table's files, and brings them into the page cache.
func weigh(path string) (table, error) {
	t := table{path: path}
	logs := map[string]int64{}
	entries, err := os.ReadDir(path)
	if err != nil {
		return t, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return t, err
		}
		name := e.Name()
		switch {
		case strings.HasSuffix(name, ".parquet"):
			t.baseBytes += info.Size()
		case strings.Contains(name, ".log.") && !strings.HasSuffix(name, ".crc"):
			logs[name[1:37]] += info.Size()
		default:
			continue
		}
		t.allBytes += info.Size()
		if err := touch(filepath.Join(path, name)); err != nil {
			return t, err
		}
	}
	for _, n := range logs {
		t.sliceLogBytes = max(t.sliceLogBytes, n)
	}
	return t, nil
}

func touch(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(io.Discard, f)
	return err
}

// task is one thing to do, and who does it. The first contender is the one that the others are compared with.
type task struct {
	name       string
	bytes      int64 // read from the table
	contenders []contender
}

type contender struct {
	name  string
	argv  []string
	once  bool // too slow to repeat
	heard bool // prints {"rows", "qty"}
}

func (b *bench) tasks(t table) []task {
	scan := func(name string, args ...string) contender {
		return contender{name: name, argv: append([]string{b.self, "scan"}, append(args, t.path)...), heard: true}
	}
	peer := func(name, task string, target ...string) contender {
		argv := append([]string{b.python, filepath.Join(b.scripts, "peers.py"), task, t.path}, target...)
		return contender{name: name, argv: argv, once: strings.Contains(name, "Spark"), heard: !strings.Contains(name, "Spark") && target == nil}
	}
	target := filepath.Join(b.out, "target")
	export := func(name, format, view string, args ...string) contender {
		argv := append([]string{b.options.sluice, "export", "-q", "--source-base-path", t.path, "--target-output-path", target,
			"--output-format", format, "--query-type", view}, args...)
		return contender{name: name, argv: argv}
	}
	shell := func(name, line string) contender { return contender{name: name, argv: []string{"sh", "-c", line}} }
	quarter := max(t.sliceLogBytes/4, 1<<20)
	return []task{
		{"scan, base files alone (read optimized)", t.baseBytes, []contender{
			scan("sluice", "-view", "read_optimized"),
			scan("sluice, one reader", "-view", "read_optimized", "-readers", "1"),
			peer("DuckDB", "scan_duckdb"),
			peer("PyArrow", "scan_pyarrow"),
			peer("hudi-rs", "scan_hudi_rs_base"),
		}},
		{"scan, logs merged (snapshot)", t.allBytes, []contender{
			scan("sluice"),
			scan("sluice, one reader", "-readers", "1"),
			scan(fmt.Sprintf("sluice, budget %s", size(quarter)), "-readers", "1", "-memory", strconv.FormatInt(quarter, 10)),
			peer("hudi-rs", "scan_hudi_rs"),
			peer("Spark with Apache Hudi, cold", "scan_spark"),
		}},
		{"export to Parquet, base files alone", t.baseBytes, []contender{
			export("sluice", "parquet", "read_optimized"),
			shell("cp of the base files", "mkdir -p "+target+" && cp "+t.path+"/*.parquet "+target),
			peer("DuckDB", "parquet_duckdb", target),
			peer("PyArrow", "parquet_pyarrow", target),
			peer("Spark with Apache Hudi, cold", "parquet_spark_base", target),
		}},
		{"export to Parquet, logs merged", t.allBytes, []contender{
			export("sluice", "parquet", "snapshot"),
			peer("Spark with Apache Hudi, cold", "parquet_spark", target),
		}},
		{"export to JSON Lines (gzip), base files alone", t.baseBytes, []contender{
			export("sluice", "json", "read_optimized"),
			peer("DuckDB", "json_duckdb", target),
		}},
		{"export to JSON Lines (gzip), logs merged", t.allBytes, []contender{
			export("sluice", "json", "snapshot"),
			peer("Spark with Apache Hudi, cold", "json_spark", target),
		}},
		{"export to CSV, base files alone", t.baseBytes, []contender{
			export("sluice", "csv", "read_optimized"),
			peer("DuckDB", "csv_duckdb", target),
		}},
		{"read ORC, 8 columns, one thread", t.orc.bytes, []contender{
			{name: "sluice", argv: []string{b.self, "orc", t.orc.path}, heard: true},
			{name: "PyArrow", argv: []string{b.python, filepath.Join(b.scripts, "peers.py"), "scan_orc_pyarrow", t.orc.path}, heard: true},
		}},
		{"export to ORC (snappy), one thread, base files alone", t.baseBytes, []contender{
			export("sluice", "orc", "read_optimized", "--parallelism", "1"),
			peer("PyArrow", "orc_all_pyarrow", target),
		}},
		{"export to Parquet in 2 folders, base files alone", t.baseBytes, []contender{
			export("sluice", "parquet", "read_optimized", "--output-partition-field", "open"),
			peer("DuckDB", "folders_duckdb", target, "open"),
		}},
		{"export to Parquet in 1,000 folders, base files alone", t.baseBytes, []contender{
			export("sluice", "parquet", "read_optimized", "--output-partition-field", "shop"),
			peer("DuckDB", "folders_duckdb", target, "shop"),
		}},
		{"export to Hudi (files as they are)", t.allBytes, []contender{
			export("sluice", "hudi", "snapshot"),
			shell("cp -r of the table", "cp -r "+t.path+" "+target),
		}},
	}
}

// result is the best run of one contender.
type result struct {
	contender
	wall, cpu time.Duration
	peak      int64 // bytes
	said      answer
	err       error
}

type answer struct {
	Rows int64 `json:"rows"`
	Qty  int64 `json:"qty"`
}

func (b *bench) measure(t task) error {
	var results []result
	for _, c := range t.contenders {
		var best result
		for i := range b.repeat {
			r := b.once(c)
			if i == 0 || r.err == nil && r.wall < best.wall {
				best = r
			}
			if c.once || r.err != nil {
				break
			}
		}
		fmt.Fprintf(os.Stderr, "  %-32s %8.2fs\n", c.name, best.wall.Seconds())
		results = append(results, best)
	}
	return b.print(t, results)
}

// once runs one contender in a process of its own.
func (b *bench) once(c contender) (r result) {
	r.contender = c
	if r.err = os.RemoveAll(filepath.Join(b.out, "target")); r.err != nil {
		return r
	}
	cmd := exec.Command(c.argv[0], c.argv[1:]...)
	// OpenBLAS settings of the machine may choose slow kernels for NumPy and Arrow; a benchmark wants their own choice.
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "OPENBLAS_") }),
		"TZ=UTC", "PYTHONDONTWRITEBYTECODE=1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	start := time.Now()
	err := cmd.Start()
	if err == nil && c.once {
		stop := watchMemory(cmd.Process.Pid)
		defer func() { r.peak = max(r.peak, stop()) }()
	}
	if err == nil {
		err = cmd.Wait()
	}
	r.wall = time.Since(start)
	if err != nil {
		r.err = fmt.Errorf("%w: %s", err, lastLines(errs.String()))
		return r
	}
	r.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.peak = max(r.peak, usage.Maxrss*1024) // kilobytes on Linux
	}
	if c.heard {
		r.err = json.Unmarshal(out.Bytes(), &r.said)
	}
	return r
}

// watchMemory samples the resident memory of a process and its children, for peers that work in a child: Spark's JVM is
// one, and the system counts it for nobody. What it returns stops it and gives the greatest sample.
func watchMemory(pid int) (stop func() int64) {
	done, peak := make(chan struct{}), make(chan int64)
	go func() {
		var most int64
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				peak <- most
				return
			case <-tick.C:
				most = max(most, resident(pid))
			}
		}
	}()
	return func() int64 { close(done); return <-peak }
}

// resident sums the resident bytes of a process tree, from /proc; 0 where there is none.
func resident(pid int) int64 {
	dir := "/proc/" + strconv.Itoa(pid)
	statm, err := os.ReadFile(dir + "/statm")
	if err != nil {
		return 0
	}
	var total int64
	if f := strings.Fields(string(statm)); len(f) > 1 {
		if pages, err := strconv.ParseInt(f[1], 10, 64); err == nil {
			total = pages * int64(os.Getpagesize())
		}
	}
	children, err := filepath.Glob(dir + "/task/*/children")
	if err != nil {
		return total
	}
	for _, file := range children {
		list, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for _, child := range strings.Fields(string(list)) {
			if n, err := strconv.Atoi(child); err == nil {
				total += resident(n)
			}
		}
	}
	return total
}

func (b *bench) print(t task, results []result) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tseconds\trows/s\tMB/s\trows/CPU-s\tpeak memory\ttime, sluice = 1\t")
	var wrong error
	var first answer
	for _, r := range results {
		if r.err != nil {
			fmt.Fprintf(w, "%s\tfailed: %s\t\t\t\t\t\t\n", r.name, strings.TrimSpace(r.err.Error()))
			if r.name == results[0].name {
				wrong = r.err
			}
			continue
		}
		if r.heard && first == (answer{}) {
			first = r.said
		}
		if r.heard && r.said != first {
			fmt.Fprintf(w, "%s\twrong: %+v, not %+v\t\t\t\t\t\t\n", r.name, r.said, first)
			continue
		}
		seconds := r.wall.Seconds()
		cpu := "" // a JVM's children are not in the sum
		if !r.once {
			cpu = count(float64(b.rows) / r.cpu.Seconds())
		}
		fmt.Fprintf(w, "%s\t%.2f\t%s\t%.0f\t%s\t%s\t%.2f\t\n", r.name, seconds, count(float64(b.rows)/seconds),
			float64(t.bytes)/seconds/1e6, cpu, size(r.peak), seconds/results[0].wall.Seconds())
	}
	return errors.Join(w.Flush(), wrong)
}

func count(f float64) string {
	switch {
	case f >= 1e6:
		return fmt.Sprintf("%.2fM", f/1e6)
	case f >= 1e3:
		return fmt.Sprintf("%.0fk", f/1e3)
	}
	return fmt.Sprintf("%.0f", f)
}

func size(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
}

func lastLines(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-2):], " | ")
}
