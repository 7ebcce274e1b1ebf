package main

import (
	"context"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/spf13/cobra"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/export"
	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/hudi/encode"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/predicate"
	"github.com/sluicelake/sluice/hudi/read"
)

// readFlags are the flags of "read".
type readFlags struct {
	queryType, asOf    string
	begin, end         string
	inclusiveBegin     bool
	fullScan           string
	skipHoles          bool
	columns            []string
	filter             string
	limit              int64
	noMeta             bool
	to, format         string
	readers, batchRows int
	failEmpty          bool
	repairMillis       bool
}

func (a *app) readCommand() *cobra.Command {
	var f readFlags
	cmd := &cobra.Command{
		Use:   "read PATH",
		Short: "Print or save the rows of a table: newest, as of an instant, or what changed",
		Long: `Print rows of a table, or save them to a file with --to.

Query types: snapshot (the default) merges base and log files; read_optimized reads base files only; incremental gives the newest
state of the rows that were written after --begin-instant (exclusive) up to --end-instant (inclusive); cdc gives every change in such a
range with the images before and after, of tables that record changes. For table versions 8 and 9 the range is one of completion times.

--as-of takes 20261129100000, 20261129100000123, "2026-11-29", "2026-11-29 10:00:00", "2026-11-29 10:00:00.123" or RFC 3339.

--filter takes SQL: comparisons, in, like 'x%', is null, between, and, or, not; text and dates in single quotes.

Output: table for a person; json prints JSON Lines, one object per row; csv; parquet and arrow (an IPC file) need --to or a pipe.

` + exitHelp,
		Example: `  sluice read s3://lake/orders --columns id,qty --filter "region = 'eu' and qty > 5" --limit 20
  sluice read /data/orders --query-type incremental --begin-instant 20261129100000000 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.read(cmd.Context(), args[0], f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.queryType, "query-type", "snapshot", "snapshot, read_optimized, incremental, cdc")
	flags.StringVar(&f.asOf, "as-of", "", "instant or date")
	flags.StringVar(&f.begin, "begin-instant", "", "incremental: rows written after this instant; earliest means all")
	flags.StringVar(&f.end, "end-instant", "", "incremental: up to and including this instant; default the newest")
	flags.BoolVar(&f.inclusiveBegin, "inclusive-begin", false, "incremental: the commit at exactly the begin counts too (as Apache Hudi 1.0 had it)")
	flags.StringVar(&f.fullScan, "full-scan-fallback", "auto", "incremental, when files of the range were cleaned: yes, no, or auto (yes from table version 9 on)")
	flags.BoolVar(&f.skipHoles, "stop-at-hole", false, "incremental: end before the first write that is still pending, instead of refusing")
	flags.StringSliceVar(&f.columns, "columns", nil, "columns in this order, comma-separated; default all")
	flags.StringVar(&f.filter, "filter", "", "only rows for which this is true")
	flags.Int64Var(&f.limit, "limit", -1, "at most so many rows")
	flags.BoolVar(&f.noMeta, "no-meta", false, "without the _hoodie_ meta columns")
	flags.StringVar(&f.to, "to", "", "file to save the rows in; its ending chooses the format unless -o does")
	flags.StringVarP(&f.format, "output", "o", "", "table, json, csv, parquet, arrow (default table)")
	flags.IntVar(&f.readers, "readers", runtime.GOMAXPROCS(0), "file groups read at once")
	flags.IntVar(&f.batchRows, "batch-rows", 0, "rows of a batch; 0 chooses by size")
	flags.BoolVar(&f.repairMillis, "repair-timestamps", false, "read millisecond columns that a file labels as microseconds as milliseconds")
	flags.BoolVar(&f.failEmpty, "fail-if-empty", false, "exit with 3 when there is no row")
	return cmd
}

func (f *readFlags) query() (read.Query, error) {
	switch strings.ToLower(f.queryType) {
	case "incremental", "cdc":
		if f.begin == "" {
			return read.Query{}, usagef("an incremental query needs --begin-instant; earliest means from the first instant")
		}
		r := &read.Range{Begin: f.begin, End: f.end, ClosedBegin: f.inclusiveBegin, SkipHoles: f.skipHoles}
		switch f.fullScan {
		case "auto":
		case "yes", "true":
			r.FullScan = read.FullScanAllowed
		case "no", "false":
			r.FullScan = read.FullScanNever
		default:
			return read.Query{}, usagef("--full-scan-fallback %q: use yes, no or auto", f.fullScan)
		}
		if f.asOf != "" {
			return read.Query{}, usagef("--as-of and an incremental query exclude each other; use --end-instant")
		}
		if strings.EqualFold(f.queryType, "cdc") && (f.columns != nil || f.filter != "" || f.noMeta) {
			return read.Query{}, usagef("a change feed has the columns op, ts_ms, before and after: --columns, --filter and --no-meta do not go with it")
		}
		return read.Query{Range: r}, nil
	}
	if f.begin != "" || f.end != "" {
		return read.Query{}, usagef("--begin-instant and --end-instant belong to --query-type incremental")
	}
	mode, err := parseMode(f.queryType)
	return read.Query{Mode: mode, AsOf: f.asOf}, err
}

func (f *readFlags) outputFormat() (string, error) {
	format := strings.ToLower(f.format)
	if format == "" && f.to != "" {
		format = map[string]string{".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv", ".parquet": "parquet", ".arrow": "arrow"}[strings.ToLower(filepath.Ext(f.to))]
	}
	switch format {
	case "":
		return "table", nil
	case "table", "json", "csv", "parquet", "arrow":
		return format, nil
	}
	return "", usagef("-o %s: use table, json, csv, parquet or arrow", f.format)
}

func (a *app) read(ctx context.Context, url string, f readFlags) error {
	q, err := f.query()
	if err != nil {
		return err
	}
	format, err := f.outputFormat()
	if err != nil {
		return err
	}
	memory, err := a.budget()
	if err != nil {
		return err
	}
	var filter predicate.Expr
	if f.filter != "" {
		if filter, err = predicate.Parse(f.filter); err != nil {
			return usagef("--filter: %w", err)
		}
	}
	t, err := a.open(ctx, url)
	if err != nil {
		return err
	}
	if strings.EqualFold(f.queryType, "cdc") {
		return a.readChanges(ctx, t, *q.Range, f, format, memory)
	}
	plan, err := t.Source().Plan(ctx, q)
	if err != nil {
		return err
	}
	columns := f.columns
	if columns == nil && f.noMeta {
		columns = plan.UserColumns()
	}
	p := newProgress(a.err, a.quiet || f.to == "")
	readers := max(1, f.readers)
	r, err := plan.Reader(read.ScanOptions{
		Columns: columns, Filter: filter, Memory: memory / int64(readers) / 2, TempDir: a.tempDir, Readers: readers, BatchRows: f.batchRows,
		Progress: func(bytes int64) { p.observe(engine.Advanced{Bytes: bytes}) },
		Warn:     func(text string) { a.note("%s", text) }, RepairMillis: f.repairMillis,
	})
	if err != nil {
		return err
	}
	a.warnReadOptimized(plan, t.Config().Type == "MERGE_ON_READ")
	start := time.Now()
	p.observe(engine.Planned{Job: "read " + t.Config().Name, Tasks: len(r.Slices()), Bytes: bytesOf(r.Slices())})
	rows, bytes, err := a.save(rowSource{r.Schema(), r.All(ctx)}, f, format, p)
	p.observe(engine.Finished{Job: "read " + t.Config().Name, Stats: engine.Stats{Rows: rows, BytesWritten: bytes, Files: 1}, Wall: time.Since(start), Err: err})
	if err == nil && rows == 0 && f.failEmpty {
		return errNothing
	}
	return err
}

// readChanges prints or saves a change feed.
func (a *app) readChanges(ctx context.Context, t *hudi.Table, r read.Range, f readFlags, format string, memory int64) error {
	feed, err := t.ChangeFeed(ctx, r)
	if err != nil {
		return err
	}
	p := newProgress(a.err, a.quiet || f.to == "")
	start := time.Now()
	rows, bytes, err := a.save(rowSource{read.ChangeSchema, feed.All(ctx, read.ScanOptions{Memory: memory / 2, TempDir: a.tempDir})}, f, format, p)
	p.observe(engine.Finished{Job: "changes of " + t.Config().Name, Stats: engine.Stats{Rows: rows, BytesWritten: bytes, Files: 1}, Wall: time.Since(start), Err: err})
	if err == nil && rows == 0 && f.failEmpty {
		return errNothing
	}
	return err
}

func bytesOf(slices []filegroup.Slice) (n int64) {
	for _, s := range slices {
		n += s.Bytes()
	}
	return n
}

// warnReadOptimized tells whoever asked for the read-optimized view of a table with logs what the view is.
func (a *app) warnReadOptimized(plan *read.Plan, mor bool) {
	if plan.Mode() == filegroup.ReadOptimized && mor {
		a.note("read-optimized view: base files only; rows in log files that no compaction has merged are not in it")
	}
}

// save writes the rows to standard output or to a file, which appears whole or not at all.
func (a *app) save(r rowSource, f readFlags, format string, p *progress) (rows, bytes int64, err error) {
	if f.to == "" {
		if (format == "parquet" || format == "arrow") && isTerminal(a.out) {
			return 0, 0, usagef("-o %s is no text: give --to FILE or a pipe", format)
		}
		out := &counting{w: a.out}
		rows, err = writeRows(out, r, format, f.limit, func(n int64) {})
		return rows, out.n, err
	}
	tmp, err := os.CreateTemp(filepath.Dir(f.to), "."+filepath.Base(f.to)+".*")
	if err != nil {
		return 0, 0, err
	}
	defer func() {
		if err != nil {
			_ = tmp.Close()
			_ = os.Remove(tmp.Name())
		}
	}()
	out := &counting{w: tmp}
	if rows, err = writeRows(out, r, format, f.limit, func(n int64) { p.observe(engine.Advanced{Rows: n}) }); err != nil {
		return 0, 0, err
	}
	if err = tmp.Chmod(0o644); err != nil {
		return 0, 0, err
	}
	if err = tmp.Close(); err != nil {
		return 0, 0, err
	}
	return rows, out.n, os.Rename(tmp.Name(), f.to)
}

// counting counts the bytes that pass.
type counting struct {
	w io.Writer
	n int64
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// rowSource is what save and writeRows take rows from.
type rowSource struct {
	schema *arrow.Schema
	all    iter.Seq2[arrow.RecordBatch, error]
}

// writeRows writes at most limit rows (all when negative) of the source in a format.
func writeRows(w io.Writer, r rowSource, format string, limit int64, done func(rows int64)) (rows int64, err error) {
	out, err := newRowWriter(w, r.schema, format)
	if err != nil {
		return 0, err
	}
	for batch, err := range r.all {
		if err != nil {
			return rows, err
		}
		batch = cut(batch, limit-rows, limit >= 0)
		err := out.Write(batch)
		rows += batch.NumRows()
		done(batch.NumRows())
		batch.Release()
		if err != nil {
			return rows, err
		}
		if limit >= 0 && rows >= limit {
			break
		}
	}
	return rows, out.Close()
}

// cut shortens a batch to what a limit leaves.
func cut(batch arrow.RecordBatch, left int64, limited bool) arrow.RecordBatch {
	if !limited || batch.NumRows() <= left {
		return batch
	}
	short := batch.NewSlice(0, max(left, 0))
	batch.Release()
	return short
}

// rowWriter writes batches in one format. Close completes the output and leaves the writer below open.
type rowWriter interface {
	Write(arrow.RecordBatch) error
	Close() error
}

// newRowWriter starts an output in one of the formats of "read".
func newRowWriter(w io.Writer, schema *arrow.Schema, format string) (rowWriter, error) {
	switch format {
	case "json":
		return export.NewJSON(w, schema, encode.Options{})
	case "csv":
		return export.NewCSV(w, schema, encode.Options{})
	case "parquet":
		return export.NewParquet(w, schema, export.ParquetOptions{Compression: "snappy"})
	case "arrow":
		return ipc.NewFileWriter(w, ipc.WithSchema(schema))
	}
	t, err := encode.NewTable(w, schema, encode.TableOptions{})
	return tableWriter{t}, err
}

// tableWriter prints batches for a person.
type tableWriter struct{ *encode.Table }

func (t tableWriter) Write(batch arrow.RecordBatch) error { return t.Add(batch) }
