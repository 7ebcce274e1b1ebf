// Command write measures writing beside Spark with Apache Hudi 0.15.0 and, as the limit of the hardware, DuckDB's partitioned COPY,
// in one run on one machine: bulk insert of many rows, upserts of one and of ten percent, a delete of one percent.
//
//	make bench-write                                  # 10 million rows of 12 columns in 16 partitions
//	make bench-write ARGS="-rows 1000000 -no-spark"
//
// Everyone reads the same Parquet files and writes Snappy. Spark runs local[2] in one session: "cold" is from the start of its
// process, "warm" the same operation once more, on a second table. After the last operation all tables must hold the same
// number of rows and the same sums.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/sluicelake/sluice/hudi"
)

type bench struct {
	rows            int
	repeat          int
	noSpark         bool
	memory, sluice  string
	python, jar     string
	scripts, folder string
	out             *tabwriter.Writer
}

func main() {
	b := &bench{python: os.Getenv("SLUICE_INTEROP_PYTHON"), jar: os.Getenv("SLUICE_INTEROP_HUDI_JAR_0_15"), scripts: "bench/write"}
	flag.IntVar(&b.rows, "rows", 10_000_000, "rows of the bulk insert")
	flag.IntVar(&b.repeat, "repeat", 2, "runs of Sluice and of DuckDB; the best counts")
	flag.BoolVar(&b.noSpark, "no-spark", false, "leave Spark out")
	flag.StringVar(&b.memory, "memory", "512MiB", "Sluice's --memory")
	flag.StringVar(&b.sluice, "sluice", "bin/sluice", "the program")
	flag.Parse()
	if err := b.run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (b *bench) run() error {
	cache := os.Getenv("SLUICE_CACHE")
	if b.python == "" || b.jar == "" || cache == "" {
		return errors.New(`run "make bench-write", which sets the peers' places`)
	}
	var err error
	if b.sluice, err = filepath.Abs(b.sluice); err != nil {
		return err
	}
	if b.folder, err = filepath.Abs(filepath.Join(cache, "bench", "write-"+strconv.Itoa(b.rows))); err != nil {
		return err
	}
	if err := os.MkdirAll(b.folder, 0o755); err != nil {
		return err
	}
	if err := b.python3("source", b.folder, strconv.Itoa(b.rows)); err != nil {
		return err
	}
	b.out = tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(b.out, "OPERATION\tWHO\tSECONDS\tROWS/S\tCPU S\tPEAK MIB\tMIB READ\tMIB WRITTEN\tTIMES SLUICE'S")
	ours, best, err := b.ours()
	if err != nil {
		return err
	}
	if err := b.duckdb(best["bulk_insert"]); err != nil {
		return err
	}
	if !b.noSpark {
		if err := b.spark(best, ours); err != nil {
			return err
		}
	}
	return b.out.Flush()
}

func (b *bench) python3(args ...string) error {
	cmd := exec.Command(b.python, append([]string{filepath.Join(b.scripts, "peers.py")}, args...)...)
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// task is one operation and the rows that it names.
type task struct {
	name, op, file string
	rows           int
}

func (b *bench) tasks() []task {
	return []task{
		{"bulk_insert", "bulk_insert", "all.parquet", b.rows},
		{"upsert 1 % (newest)", "upsert", "recent.parquet", b.rows / 100},
		{"upsert 10 % (uniform)", "upsert", "uniform.parquet", b.rows / 10},
		{"delete 1 %", "delete", "gone.parquet", b.rows / 100},
	}
}

// measure is what one process took.
type measure struct {
	seconds, cpu        float64
	peak, read, written int64 // MiB
}

// timed runs a program and looks at what it took; bytes are those of its own reads and writes, cached or not.
func timed(name string, args ...string) (measure, error) {
	cmd := exec.Command(name, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return measure{}, err
	}
	stop := make(chan struct{})
	done := make(chan measure)
	go func() {
		var m measure
		for {
			if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", cmd.Process.Pid)); err == nil {
				for line := range strings.Lines(string(data)) {
					key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
					n, _ := strconv.ParseInt(value, 10, 64)
					switch key {
					case "rchar":
						m.read = n >> 20
					case "wchar":
						m.written = n >> 20
					}
				}
			}
			select {
			case <-stop:
				done <- m
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	err := cmd.Wait()
	wall := time.Since(begun)
	close(stop)
	m := <-done
	if err != nil {
		return m, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, errs.String())
	}
	u := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	m.seconds, m.peak = wall.Seconds(), u.Maxrss>>10
	m.cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	return m, nil
}

func (b *bench) print(t task, who string, m measure, ours float64) {
	ratio := ""
	if ours > 0 {
		ratio = fmt.Sprintf("%.1f", m.seconds/ours)
	}
	extra := "\t\t\t"
	if m.cpu > 0 {
		extra = fmt.Sprintf("%.1f\t%d\t%d\t%d", m.cpu, m.peak, m.read, m.written)
	} else if m.peak > 0 { // of a session
		extra = fmt.Sprintf("\t%d\t\t", m.peak)
	}
	fmt.Fprintf(b.out, "%s\t%s\t%.2f\t%.0f\t%s\t%s\n", t.name, who, m.seconds, float64(t.rows)/m.seconds, extra, ratio)
	_ = b.out.Flush()
}

// ours runs all operations one after the other, on a table of its own for each repetition.
func (b *bench) ours() (sums, map[string]float64, error) {
	best := map[string]measure{}
	var last sums
	for range b.repeat {
		table := filepath.Join(b.folder, "sluice")
		if err := os.RemoveAll(table); err != nil {
			return last, nil, err
		}
		for _, t := range b.tasks() {
			m, err := timed(b.sluice, "write", table, filepath.Join(b.folder, t.file), "--quiet", "--memory", b.memory, "--op", t.op, "--key", "id", "--partition", "region",
				"--ordering", "ts", "--hoodie-conf", "hoodie.parquet.compression.codec=snappy")
			if err != nil {
				return last, nil, err
			}
			if was, ok := best[t.name]; !ok || m.seconds < was.seconds {
				best[t.name] = m
			}
		}
		var err error
		if last, err = sum(table); err != nil {
			return last, nil, err
		}
	}
	seconds := map[string]float64{}
	for _, t := range b.tasks() {
		seconds[t.name] = best[t.name].seconds
		b.print(t, "sluice", best[t.name], 0)
	}
	return last, seconds, nil
}

func (b *bench) duckdb(ours float64) error {
	var best measure
	for i := range b.repeat {
		target := filepath.Join(b.folder, "duckdb")
		if err := os.RemoveAll(target); err != nil {
			return err
		}
		m, err := timed(b.python, filepath.Join(b.scripts, "peers.py"), "copy", filepath.Join(b.folder, "all.parquet"), target)
		if err != nil {
			return err
		}
		if i == 0 || m.seconds < best.seconds {
			best = m
		}
	}
	b.print(b.tasks()[0], "duckdb COPY", best, ours)
	return nil
}

// spark runs all operations in one session, on two tables.
func (b *bench) spark(ours map[string]float64, want sums) error {
	cold, warm := filepath.Join(b.folder, "spark1"), filepath.Join(b.folder, "spark2")
	for _, dir := range []string{cold, warm} {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	cmd := exec.Command(b.python, filepath.Join(b.scripts, "peers.py"), "spark", b.jar, b.folder, cold, warm)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(pipe)
	first := true
	for lines.Scan() {
		var r struct {
			Task, Table string
			Seconds     float64
			Peak        int64
		}
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue
		}
		for _, t := range b.tasks() {
			if t.name != r.Task {
				continue
			}
			who := "spark warm"
			if r.Table == "cold" {
				who = "spark first"
			}
			if first {
				r.Seconds, who, first = time.Since(begun).Seconds(), "spark cold", false
			}
			b.print(t, who, measure{seconds: r.Seconds, peak: r.Peak}, ours[t.name])
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("spark: %w\n%s", err, errs.String())
	}
	got, err := sum(warm)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("the tables differ: Sluice has %+v, Spark %+v", want, got)
	}
	fmt.Fprintf(b.out, "all tables hold %d rows with the same sums\n", got.rows)
	return nil
}

// sums tell whether tables hold the same.
type sums struct{ rows, qty, customer int64 }

func sum(table string) (sums, error) {
	ctx := context.Background()
	var s sums
	t, err := hudi.Open(ctx, table, hudi.Options{})
	if err != nil {
		return s, err
	}
	snap, err := t.Snapshot(ctx, hudi.Query{})
	if err != nil {
		return s, err
	}
	for b, err := range snap.Scan(ctx, hudi.Scan{Columns: []string{"qty", "customer"}, Readers: 2}) {
		if err != nil {
			return s, err
		}
		s.rows += b.NumRows()
		for _, v := range b.Column(0).(*array.Int32).Int32Values() {
			s.qty += int64(v)
		}
		for _, v := range b.Column(1).(*array.Int64).Int64Values() {
			s.customer += v
		}
		b.Release()
	}
	return s, nil
}
