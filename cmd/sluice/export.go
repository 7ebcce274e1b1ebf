package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicelake/sluice/engine/local"
	"github.com/sluicelake/sluice/export"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/count"
	"github.com/sluicelake/sluice/storage/open"
	"github.com/sluicelake/sluice/streamer/transform"
)

func (a *app) exportCommand() *cobra.Command {
	var c export.Config
	var format, rows, prefix, zone, timestamps, parallelism, sqlFile string
	var on engineFlags
	var dry dryRun
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Copy a table out at one instant: as a Hudi table, Parquet, ORC, JSON or CSV",
		Long: `Export a snapshot of a table. The flags are those of HoodieSnapshotExporter, so a spark-submit line can be pasted behind the verb;
the folder of the target must not exist, and _SUCCESS in it comes last.

Rows: --query-type read_optimized (the default, as the original) takes base files only and says how many file groups have log files
that it left out; --query-type snapshot takes every row of the instant, logs merged.

Formats: hudi copies the table's own files; parquet, orc, json (JSON Lines) and csv hold the table's columns without the _hoodie_ meta
columns. Partition values and nulls are written as Spark writes them.

An export that was killed, or failed, goes on where it was when the same command is run again, at the same instant. One with other
arguments is refused, and so is one into a target where another is at work. --overwrite begins anew where the table has changed.

` + engineHelp + `
` + exitHelp,
		Example: `  sluice export --source-base-path s3://lake/orders --target-output-path /backup/orders --output-format parquet
  sluice export --source-base-path /data/orders --target-output-path /out/orders --output-format json \
      --output-partition-field region --query-type snapshot --as-of "2026-11-29 10:00:00"
  sluice export --source-base-path /data/orders --target-output-path /out/orders --output-format parquet \
      --columns id,qty,at --filter "qty > 5" --output-partitioner 'expr:date = _hoodie_partition_path' --verify --manifest target
  sluice export --source-base-path /data/orders --target-output-path /out/totals --output-format csv \
      --transformer-class SqlQueryBasedTransformer --transformer-sql "SELECT region, sum(qty) AS qty FROM <SRC> GROUP BY region"
  sluice export --source-base-path s3://lake/orders --target-output-path s3://backup/orders --output-format parquet \
      --engine spark --master yarn -- --num-executors 20 --conf spark.executor.cores=2`,
		Args:        on.words(noWords),
		Annotations: map[string]string{javaAliases: "-pl=--parallelism -sp=--snapshot-prefix -tbp=--target-base-path"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "target-output-path", "output-format", "source-base-path"); err != nil {
				return err
			}
			var err error
			if c.Format, err = export.ParseFormat(format); err != nil {
				return usageError{err}
			}
			c.Rows, c.Timestamps = export.Rows(strings.ToLower(rows)), export.Timestamps(timestamps)
			if c.Rows == "read-optimized" {
				c.Rows = export.ReadOptimized
			}
			if prefix != "" {
				c.Target = export.Join(c.Target, prefix)
			}
			if c.Zone, err = time.LoadLocation(zone); err != nil {
				return usagef("--timezone %q: no such time zone; write it like Europe/Berlin", zone)
			}
			if c.Parallelism, err = strconv.Atoi(parallelism); err != nil {
				return usagef(`"-pl": couldn't convert %q to an integer`, parallelism)
			}
			if sqlFile != "" {
				text, err := open.ReadFile(cmd.Context(), sqlFile, transform.MaxSQLFile)
				if err != nil {
					return fmt.Errorf("--transformer-sql-file: %w", err)
				}
				c.TransformerStatements = string(text)
			}
			return a.runExport(cmd.Context(), c, on, dry)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Source, "source-base-path", "", "base path of the table (required)")
	f.StringVar(&c.Target, "target-output-path", "", "folder of this snapshot; must not exist (required)")
	f.StringVar(&format, "output-format", "", "hudi, parquet, orc, json or csv (required)")
	f.StringSliceVar(&c.Columns, "columns", nil, "columns of the files in this order, comma-separated; default all but the meta columns")
	f.StringVar(&c.Filter, "filter", "", "only rows for which this is true, in SQL: comparisons, in, like 'x%', is null, between, and, or, not")
	f.BoolVar(&c.KeepMeta, "keep-meta", false, "keep the _hoodie_ meta columns, in front of the others")
	f.StringSliceVar(&c.Transformers, "transformer-class", nil, "change the rows first, as in sluice streamer: SqlQueryBasedTransformer, SqlFileBasedTransformer, FlatteningTransformer, AWSDmsTransformer, several comma-separated; they see the meta columns too, and a query sees all rows at once")
	f.StringVar(&c.TransformerSQL, "transformer-sql", "", "query of SqlQueryBasedTransformer, in Spark's SQL; the table is <SRC>")
	f.StringVar(&sqlFile, "transformer-sql-file", "", "file of SqlFileBasedTransformer: statements, separated by semicolons, of which the last gives the rows")
	f.StringVar(&c.PartitionField, "output-partition-field", "", "columns, comma-separated, by whose values the files are put into folders <column>=<value>")
	f.StringVar(&c.Partitioner, "output-partitioner", "", "hoodie-partition-path[:<column>] keeps the table's own partitions; fields:<a>,<b> takes several columns; expr:<name> = <expression> computes (columns and meta columns are variables)")
	f.StringVar(&parallelism, "parallelism", "0", "tasks at once (-pl); 0 means one for each CPU")
	f.StringVar(&rows, "query-type", string(export.ReadOptimized), "read_optimized or snapshot: see above")
	f.StringVar(&c.AsOf, "as-of", "", "instant or date; default the newest completed write")
	f.StringVar(&c.Begin, "begin-instant", "", "only rows changed after this instant (completion time from table version 8 on)")
	f.StringVar(&c.End, "end-instant", "", "only rows changed up to and including this instant")
	f.StringVar(&c.Compression, "compression", "", "parquet: snappy, zstd, gzip, none; orc: snappy, zlib, zstd, lz4, none; json: gzip, zstd, none; csv: none, gzip, zstd (the first is the default)")
	f.StringVar(&timestamps, "parquet-timestamps", string(export.Int64), "int64 (microseconds) or int96 (as Spark's default)")
	f.StringVar(&zone, "timezone", "UTC", "zone in which json and csv print timestamps")
	f.StringVar(&prefix, "snapshot-prefix", "", "sub-folder of the target for this snapshot (-sp)")
	f.BoolVar(&c.Overwrite, "overwrite", false, "replace a target that holds an earlier export")
	copyFlags(cmd, &c, &dry)
	f.BoolVar(&c.Explain, "verbose", false, "say of each base file that was decoded why its column chunks could not be copied as they are")
	on.add(f)
	onlyOnce(cmd)
	f.SetNormalizeFunc(alias("target-base-path", "target-output-path"))
	return cmd
}

func (a *app) copyCommand() *cobra.Command {
	c := export.Config{Format: export.Hudi, Copier: true}
	var datePartitioned, fromMetadata bool
	var on engineFlags
	var dry dryRun
	cmd := &cobra.Command{
		Use:   "copy",
		Short: "Copy a table's newest snapshot as a Hudi table (the older snapshot copier)",
		Long: `Copy the newest snapshot of a table as a Hudi table, with the flags of HoodieSnapshotCopier. A table without a completed commit is
no error: nothing is written and the exit code is 0. A target that exists is refused unless --overwrite is given.

` + engineHelp + `
` + exitHelp,
		Example: `  sluice copy --base-path s3://lake/orders --output-path /backup/orders
  sluice copy -bp /data/orders -op /backup/orders --overwrite`,
		Args:        on.words(noWords),
		Annotations: map[string]string{javaAliases: "-bp=--base-path -op=--output-path -dp=--date-partitioned"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "base-path", "output-path"); err != nil {
				return err
			}
			err := a.runExport(cmd.Context(), c, on, dry)
			if errors.Is(err, export.ErrNoCommits) {
				a.note("no commits present in %s: nothing to copy", c.Source)
				return nil
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Source, "base-path", "", "base path of the table (-bp, required)")
	f.StringVar(&c.Target, "output-path", "", "folder of the copy (-op, required)")
	f.BoolVar(&c.Overwrite, "overwrite", false, "replace a target that exists")
	f.BoolVar(&datePartitioned, "date-partitioned", false, "accepted for old command lines (-dp); partitions are found by their marker files")
	f.BoolVar(&fromMetadata, "use-file-listing-from-metadata", false, "accepted for old command lines; partitions are listed from storage")
	copyFlags(cmd, &c, &dry)
	on.add(f)
	onlyOnce(cmd)
	return cmd
}

// copyFlags are those that both commands have.
func copyFlags(cmd *cobra.Command, c *export.Config, dry *dryRun) {
	f := cmd.Flags()
	f.BoolVar(&c.Verify, "verify", false, "read again what was written, sizes and rows, before _SUCCESS comes; check the checksums of copied Parquet pages")
	f.StringVar(&c.Manifest, "manifest", "", "put a list of the files with rows and bytes there, as JSON: a file or URL; target means _manifest.json in the target")
	f.BoolVar(&c.WithArchive, "with-archive", false, "format hudi: copy the archived timeline too")
	f.BoolVar(&c.WithMetadata, "with-metadata", false, "format hudi: copy the metadata table too")
	f.BoolVar(&dry.on, "dry-run", false, "print what would be done, and write nothing; with --verbose footers are read to tell what can be copied as bytes")
	f.StringVarP(&dry.format, "output", "o", "table", "of --dry-run: table or json")
}

func (a *app) note(format string, args ...any) {
	p := newProgress(a.err, a.quiet)
	p.printf(format+"\n", args...)
}

func (a *app) runExport(ctx context.Context, c export.Config, on engineFlags, dry dryRun) error {
	var err error
	if c.TableZone, err = a.tableZone(); err != nil {
		return err
	}
	p := newProgress(a.err, a.quiet)
	opts, err := a.pool(c.Parallelism, p)
	if err != nil {
		return err
	}
	if c.Engine, opts.Workers, err = on.engine(ctx, opts, c.Source, c.Target); err != nil {
		return err
	}
	if dry.on {
		err = a.dryRun(ctx, c, opts, dry.format)
	} else {
		_, err = export.Run(ctx, c, opts)
	}
	var usage *export.UsageError
	if errors.As(err, &usage) {
		return usageError{err}
	}
	return err
}

// dryRun says whether an export is planned only, and how that is printed.
type dryRun struct {
	on     bool
	format string
}

func (a *app) dryRun(ctx context.Context, c export.Config, opts local.Options, format string) error {
	if format != "table" && format != "json" {
		return usagef("-o %s: use table or json", format)
	}
	var requests count.Counter
	c.Open = func(ctx context.Context, url string) (storage.Store, error) {
		return open.Store(ctx, url, open.Options{Count: &requests})
	}
	p, err := export.Plan(ctx, c, opts)
	if err != nil {
		return err
	}
	g := &grid{doc: struct {
		export.Preview
		Requests int64 `json:"requests"`
	}{p, requests.Stats().Requests()}}
	g.add("source", p.Source)
	g.add("target", p.Target)
	g.add("format", p.Format)
	g.add("instant", p.Instant)
	switch {
	case p.Resumes:
		g.add("begun before", fmt.Sprintf("yes; %d tasks are done", p.Kept))
	case p.Replaces:
		g.add("in the target", "is replaced")
	}
	g.add("tasks", p.Tasks)
	g.add("read", amount(p.Read))
	if len(p.Columns) > 0 {
		g.add("columns", strings.Join(p.Columns, ", "))
	}
	if len(p.Folders) > 0 {
		g.add("folders", strings.Join(p.Folders, "=…/")+"=…")
	}
	g.add("copied as bytes", amount(p.Copied))
	for _, why := range slices.Sorted(maps.Keys(p.Decoded)) {
		g.add("decoded", amount(p.Decoded[why])+": "+why)
	}
	if p.Timeline > 0 {
		g.add("timeline", fmt.Sprintf("%d files", p.Timeline))
	}
	g.add("storage requests", fmt.Sprintf("%d for this plan (%s)", requests.Stats().Requests(), requests.Stats()))
	return g.print(a.out, format)
}

func amount(n export.Amount) string { return fmt.Sprintf("%d files, %s", n.Files, size(n.Bytes)) }
