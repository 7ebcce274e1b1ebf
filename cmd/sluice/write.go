package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/spf13/cobra"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/operation"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/hudi/write"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/open"
	"github.com/sluicelake/sluice/streamer/source"
)

// writeFlags of "write".
type writeFlags struct {
	confFlags
	op, mode, input, types, name, tableType, format string
	keys, partitions, ordering                      []string
	recordKeys                                      []string
	inPartition                                     string
}

func (a *app) writeCommand() *cobra.Command {
	var f writeFlags
	cmd := &cobra.Command{
		Use:   "write PATH [FILE...]",
		Short: "Upsert, insert or delete rows, whole or not at all; makes the table when it is absent",
		Long: `Do one operation on a table with the rows of files (Parquet, JSON, CSV, Avro, ORC; compressed text too; standard
input, as JSON Lines, without any).

Operations: upsert (rows replace stored rows of their key), insert, bulk_insert (new files, fastest), delete (rows need the columns
of the key and the partition, or _hoodie_record_key and _hoodie_partition_path), insert_overwrite (replaces the partitions that the
rows are in), insert_overwrite_table, delete_partition (of the rows, or those that hoodie.datasource.write.partitions.to.delete names,
with * for any text).

Everything can be said with options of the Spark datasource (--hoodie-conf, --props); the flags are short for some of them and win.
--mode says what happens where the table is there already: append (the default) writes on, error refuses, ignore does nothing,
overwrite deletes the folder and begins anew, as Spark's save modes do.

` + exitHelp,
		Example: `  sluice write /data/orders orders.parquet --key id --partition region --ordering ts
  sluice write /data/orders changes.json --op upsert
  sluice write s3://lake/orders gone.csv --op delete
  sluice write s3://lake/orders --op delete --record-keys 17,23 --hoodie-conf hoodie.index.type=GLOBAL_SIMPLE
  sluice write /data/orders --op delete_partition --hoodie-conf "hoodie.datasource.write.partitions.to.delete=region=eu*"`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.write(cmd.Context(), args[0], args[1:], f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.op, "op", "", "upsert (the default; bulk_insert for a table without record key), insert, bulk_insert, delete, insert_overwrite, insert_overwrite_table, delete_partition")
	flags.StringVar(&f.mode, "mode", "append", "append, overwrite, error or ignore: what to do where the table is there already")
	flags.StringVar(&f.input, "input", "", "parquet, json, csv, avro or orc; default the files' endings, json for standard input")
	flags.StringVar(&f.types, "schema", "", "file with the Avro schema of the rows; default what the files tell")
	flags.StringVar(&f.name, "name", "", "name of a new table; default the last part of PATH")
	flags.StringVar(&f.tableType, "type", "", "of a new table: COPY_ON_WRITE (the default) or MERGE_ON_READ")
	flags.StringSliceVar(&f.keys, "key", nil, "columns that identify a row")
	flags.StringSliceVar(&f.partitions, "partition", nil, "columns that rows are partitioned by")
	flags.StringSliceVar(&f.ordering, "ordering", nil, "columns that say which of two rows of one key is newer")
	flags.StringSliceVar(&f.recordKeys, "record-keys", nil, "delete these record keys, as they are stored, instead of those of files")
	flags.StringVar(&f.inPartition, "in-partition", "", "the partition path in which --record-keys are; without it a global index is needed")
	flags.StringVarP(&f.format, "output", "o", "table", "table or json")
	f.register(cmd)
	return cmd
}

// conf joins the options and the flags that are short for some.
func (a *app) writeConf(f writeFlags) (map[string]string, error) {
	options, err := a.options(f.confFlags)
	if err != nil {
		return nil, err
	}
	for key, value := range map[string]string{
		"hoodie.table.name": f.name, "hoodie.datasource.write.table.type": f.tableType, "hoodie.datasource.write.operation": f.op,
		"hoodie.datasource.write.recordkey.field": strings.Join(f.keys, ","), "hoodie.datasource.write.partitionpath.field": strings.Join(f.partitions, ","),
		"hoodie.datasource.write.precombine.field": strings.Join(f.ordering, ","),
	} {
		if value != "" {
			options[key] = value
		}
	}
	return options, nil
}

func (a *app) write(ctx context.Context, url string, files []string, f writeFlags) error {
	begun := time.Now()
	options, err := a.writeConf(f)
	if err != nil {
		return err
	}
	op := strings.TrimSpace(options["hoodie.datasource.write.operation"])
	keyless := options["hoodie.datasource.write.recordkey.field"] == "" && options["hoodie.table.recordkey.fields"] == ""
	store, err := a.store(ctx, url)
	if err != nil {
		return err
	}
	cfg, err := config.Load(ctx, store)
	switch {
	case err == nil:
		keyless = len(cfg.RecordKeyFields) == 0
	case !errors.Is(err, config.ErrNotTable):
		return err
	}
	if op == "" {
		if op = string(operation.Upsert); keyless {
			op = string(operation.BulkInsert)
		}
	}
	kind, err := operation.ParseKind(op)
	if err != nil {
		return usageError{err}
	}
	ready, err := a.prepareTable(ctx, store, cfg, kind, options, f.mode)
	if err != nil || !ready {
		return err
	}
	rows, err := a.rowsOf(ctx, files, f, kind, options)
	if err != nil {
		return err
	}
	budget, err := a.budget()
	if err != nil {
		return err
	}
	zone, err := a.tableZone()
	if err != nil {
		return err
	}
	show := &writeProgress{a: a, last: time.Now()}
	result, err := operation.Run(ctx, store, kind, rows, operation.Options{Conf: options, Memory: budget, TempDir: a.tempDir, Zone: zone, Event: show.observe})
	if err != nil {
		return err
	}
	return a.printWrite(store.URL(), kind, result, time.Since(begun), f.format)
}

// prepareTable obeys the save mode and makes the table where there is none. It reports whether there is anything to write.
func (a *app) prepareTable(ctx context.Context, store storage.Store, cfg *config.Table, kind operation.Kind, options map[string]string, mode string) (bool, error) {
	switch strings.ToLower(mode) {
	case "append":
	case "error", "errorifexists":
		if cfg != nil {
			return false, fmt.Errorf("hoodie table at %s already exists.", store.URL()) //nolint:revive,staticcheck // the original's words
		}
	case "ignore":
		if cfg != nil {
			if !a.quiet {
				_, _ = fmt.Fprintf(a.err, "%s is there already: nothing was written\n", store.URL())
			}
			return false, nil
		}
	case "overwrite":
		if kind == operation.Delete || kind == operation.DeletePartition {
			return false, usagef("Append is the only save mode applicable for %s operation", kind)
		}
		if cfg != nil && kind != operation.InsertOverwriteTable {
			if err := removeTable(ctx, store); err != nil {
				return false, err
			}
			cfg = nil
		}
	default:
		return false, usagef("--mode %q: there are append, overwrite, error and ignore", mode)
	}
	if cfg != nil {
		if name := options["hoodie.table.name"]; name != "" && name != cfg.Name {
			return false, usagef("hoodie table with name %s already exists at %s, can not append data to the table with another name %s.", cfg.Name, store.URL(), name)
		}
		if given, have := options["hoodie.datasource.write.precombine.field"], strings.Join(cfg.OrderingFields, ","); given != "" && have != "" && given != have {
			return false, usagef("Config conflict(key\tcurrent value\texisting value):\nPreCombineKey:\t%s\t%s", given, have)
		}
		return true, nil
	}
	if kind == operation.Delete || kind == operation.DeletePartition {
		return false, fmt.Errorf("%w: %s, so there is nothing to delete", config.ErrNotTable, store.URL())
	}
	return true, a.makeTable(ctx, store, options)
}

func (a *app) makeTable(ctx context.Context, store storage.Store, options map[string]string) error {
	if options["hoodie.table.name"] == "" && options["hoodie.datasource.write.table.name"] == "" {
		options["hoodie.table.name"] = path.Base(strings.TrimRight(filepath.ToSlash(store.URL()), "/"))
	}
	spec, err := write.SpecFromOptions(options)
	if err != nil {
		return usageError{err}
	}
	if len(spec.RecordKeyFields) == 0 {
		spec.Keyless = true
		if !a.quiet {
			_, _ = fmt.Fprintln(a.err, "the new table has no record key: rows can be added, but not updated or deleted by key (--key names the columns)")
		}
	}
	a.notes(spec.Notes())
	_, err = write.CreateTable(ctx, store, spec)
	var wrong *write.SpecError
	if errors.As(err, &wrong) {
		return usageError{err}
	}
	return err
}

// notes prints what a person should know.
func (a *app) notes(texts []string) {
	for _, text := range texts {
		if !a.quiet {
			_, _ = fmt.Fprintf(a.err, "note: %s\n", text)
		}
	}
}

// removeTable deletes everything in the table's folder: the properties first, so that nobody reads half of it.
func removeTable(ctx context.Context, store storage.Store) error {
	if err := store.Delete(ctx, config.File); err != nil {
		return err
	}
	for info, err := range store.List(ctx, "", storage.ListOptions{Recursive: true}) {
		if err != nil {
			return err
		}
		if err := store.Delete(ctx, info.Name); err != nil {
			return err
		}
	}
	return nil
}

// rowsOf are the rows of the files. All are read as they are written, but JSON without a schema, whose columns only the whole tells.
func (a *app) rowsOf(ctx context.Context, files []string, f writeFlags, kind operation.Kind, options map[string]string) (operation.Rows, error) {
	if len(files) == 0 && kind == operation.DeletePartition {
		return operation.Rows{}, nil
	}
	if len(f.recordKeys) > 0 {
		if kind != operation.Delete || len(files) > 0 {
			return operation.Rows{}, usagef("--record-keys is for --op delete without files")
		}
		return keyRows(f), nil
	}
	var types *schema.Type
	if f.types != "" {
		text, err := os.ReadFile(f.types)
		if err != nil {
			return operation.Rows{}, usagef("--schema: %w", err)
		}
		if types, err = schema.Parse(text); err != nil {
			return operation.Rows{}, usagef("--schema %s: %w", f.types, err)
		}
	}
	format, err := formatOf(files, f.input)
	if err != nil {
		return operation.Rows{}, err
	}
	switch {
	case format == source.Parquet:
		return parquetRows(ctx, files, types)
	case len(files) > 0 && (format != source.JSON || types != nil):
		return a.sourceRows(ctx, files, format, types, options)
	}
	var batches []arrow.RecordBatch
	err = a.records(ctx, files, string(format), types, func(b arrow.RecordBatch) error {
		b.Retain()
		batches = append(batches, b)
		return nil
	})
	if err != nil {
		return operation.Rows{}, err
	}
	if len(batches) == 0 {
		return operation.Rows{}, errors.New("the input has no rows")
	}
	rows := operation.Rows{Schema: batches[0].Schema(), Avro: types}
	for _, b := range batches[1:] {
		if !b.Schema().Equal(rows.Schema) {
			return operation.Rows{}, fmt.Errorf("the files have different columns (%s and %s): write one after the other, or give --schema", rows.Schema, b.Schema())
		}
	}
	rows.Batches = func(yield func(arrow.RecordBatch, error) bool) {
		for _, b := range batches {
			if !yield(b, nil) {
				return
			}
		}
	}
	return rows, nil
}

// keyRows are the rows of --record-keys.
func keyRows(f writeFlags) operation.Rows {
	fields := []arrow.Field{{Name: schema.RecordKey, Type: arrow.BinaryTypes.String}}
	if f.inPartition != "" {
		fields = append(fields, arrow.Field{Name: schema.PartitionPath, Type: arrow.BinaryTypes.String})
	}
	s := arrow.NewSchema(fields, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	for _, key := range f.recordKeys {
		b.Field(0).(*array.StringBuilder).Append(key)
		if f.inPartition != "" {
			b.Field(1).(*array.StringBuilder).Append(f.inPartition)
		}
	}
	batch := b.NewRecordBatch()
	return operation.Rows{Schema: s, Batches: func(yield func(arrow.RecordBatch, error) bool) { yield(batch, nil) }}
}

// formatOf is the one format of the files: that of their names, compression left aside, unless --input says it.
func formatOf(files []string, input string) (source.Format, error) {
	if input != "" {
		format, err := source.ParseFormat(input)
		if err != nil {
			return "", usagef("--input: %w", err)
		}
		return format, nil
	}
	found := source.Format("")
	for _, name := range files {
		ext := strings.ToLower(filepath.Ext(name))
		switch ext {
		case ".gz", ".zst", ".zstd", ".bz2", ".snappy":
			ext = strings.ToLower(filepath.Ext(strings.TrimSuffix(name, filepath.Ext(name))))
		}
		switch ext {
		case ".jsonl", ".ndjson":
			ext = ".json"
		}
		format, err := source.ParseFormat(strings.TrimPrefix(ext, "."))
		if err != nil {
			return "", usagef("the format of %s can't be told from its name; give --input json, csv, parquet, avro or orc", name)
		}
		if found != "" && format != found {
			return "", usagef("files of %s and of %s in one write: write one after the other", found, format)
		}
		found = format
	}
	return cmp.Or(found, source.JSON), nil
}

// sourceRows reads files as the streamer does. The options of Spark's CSV reader are those that it takes, hoodie.streamer.csv.*; the
// first line of a file names the columns unless they say otherwise.
func (a *app) sourceRows(ctx context.Context, names []string, format source.Format, types *schema.Type, options map[string]string) (operation.Rows, error) {
	store, files, err := inputFiles(ctx, names)
	if err != nil {
		return operation.Rows{}, err
	}
	csv := map[string]string{"header": "true"}
	if types == nil {
		csv["inferSchema"] = "true"
	}
	for k, v := range options {
		for _, prefix := range []string{"hoodie.streamer.csv.", "hoodie.deltastreamer.csv."} {
			if name, ok := strings.CutPrefix(k, prefix); ok {
				csv[name] = v
			}
		}
	}
	src := &source.Files{Format: format, Selector: source.Selector{Store: store}, Schema: types}
	if src.CSV, err = source.ParseCSVOptions(csv); err != nil {
		return operation.Rows{}, usageError{err}
	}
	src.CSV.RefuseOpenQuotes = true
	in, err := src.Read(ctx, files)
	if err != nil {
		return operation.Rows{}, err
	}
	return operation.Rows{Schema: in.Schema, Avro: in.Avro, Batches: in.Batches}, nil
}

// inputFiles finds files that are all in one store: this machine's disks, or one folder of another.
func inputFiles(ctx context.Context, names []string) (storage.Store, []storage.Info, error) {
	var store storage.Store
	root := ""
	var out []storage.Info
	for _, name := range names {
		folder, base, err := open.Split(name)
		if err != nil {
			return nil, nil, err
		}
		if open.Scheme(name) == "" {
			full, err := filepath.Abs(name)
			if err != nil {
				return nil, nil, err
			}
			folder, base = "/", strings.TrimPrefix(filepath.ToSlash(full), "/")
		}
		if store == nil {
			root = folder
			if store, err = open.Store(ctx, folder, open.Options{}); err != nil {
				return nil, nil, err
			}
		}
		if folder != root {
			return nil, nil, usagef("%s is not in %s: write the files of one folder at a time", name, root)
		}
		info, err := store.Stat(ctx, base)
		if err != nil {
			return nil, nil, err
		}
		out = append(out, info)
	}
	return store, out, nil
}

// parquetRows reads Parquet files one after the other.
func parquetRows(ctx context.Context, names []string, types *schema.Type) (operation.Rows, error) {
	var rows operation.Rows
	if types != nil {
		want, err := schema.WithoutMeta(types).Arrow()
		if err != nil {
			return rows, err
		}
		rows.Schema, rows.Avro = want, types
	}
	for _, name := range names {
		file, err := openParquet(ctx, name)
		if err != nil {
			return rows, err
		}
		have := file.Schema()
		_ = file.Close() // it was only read
		switch {
		case rows.Schema == nil:
			rows.Schema = have
		case rows.Avro == nil && !have.Equal(rows.Schema):
			return rows, fmt.Errorf("%s has other columns than %s: write one after the other, or give --schema", name, names[0])
		}
	}
	rows.Batches = func(yield func(arrow.RecordBatch, error) bool) {
		for _, name := range names {
			for batch, err := range scanParquet(ctx, name, rows) {
				if !yield(batch, err) || err != nil {
					return
				}
			}
		}
	}
	return rows, nil
}

func scanParquet(ctx context.Context, name string, rows operation.Rows) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		file, err := openParquet(ctx, name)
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = file.Close() }() // it was only read
		o := basefile.ScanOptions{}
		if rows.Avro != nil {
			o.Columns, o.Table = rows.Schema, rows.Avro
		}
		for batch, err := range file.Scan(ctx, o) {
			if err == nil && rows.Avro == nil {
				same := array.NewRecordBatch(rows.Schema, batch.Columns(), batch.NumRows())
				batch.Release()
				batch = same
			}
			if !yield(batch, err) || err != nil {
				return
			}
		}
	}
}

// writeProgress prints a line now and then.
type writeProgress struct {
	a    *app
	mu   sync.Mutex
	last time.Time
	operation.Progress
	planned operation.Planned
}

func (p *writeProgress) observe(e operation.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := e.(type) {
	case operation.Protocol:
		p.a.tell(e.Event)
	case operation.Planned:
		p.planned = e
	case operation.Warned:
		p.a.notes([]string{e.Text})
	case operation.Progress:
		p.Read += e.Read
		p.Written += e.Written
		p.Files += e.Files
		p.Bytes += e.Bytes
	}
	if !p.a.quiet && time.Since(p.last) >= lineEvery {
		p.last = time.Now()
		of := ""
		if n := p.planned.Creates + p.planned.Updated; n > 0 {
			of = fmt.Sprintf(" of %d", n)
		}
		_, _ = fmt.Fprintf(p.a.err, "%d rows read; %d files%s written, %d rows, %s\n", p.Read, p.Files, of, p.Written, size(p.Bytes))
	}
}

func (a *app) printWrite(url string, kind operation.Kind, r *operation.Result, wall time.Duration, format string) error {
	doc := map[string]any{
		"path": url, "operation": kind, "instant": r.Instant, "read": r.Read, "combined": r.Combined, "dropped": r.Dropped, "inserted": r.Inserted,
		"updated": r.Updated, "deleted": r.Deleted, "absent": r.Absent, "files": r.Files, "bytes": r.Bytes, "seconds": wall.Seconds(),
	}
	replaced := 0
	if r.Commit != nil {
		for _, ids := range r.Commit.PartitionToReplaceFileIDs {
			replaced += len(ids)
		}
		doc["replacedFileGroups"] = replaced
	}
	g := &grid{head: []string{"INSTANT", "OPERATION", "READ", "INSERTED", "UPDATED", "DELETED", "REPLACED GROUPS", "FILES", "SIZE", "TIME"}, doc: doc}
	g.add(cmp.Or(r.Instant, "-"), string(kind), r.Read, r.Inserted, r.Updated, r.Deleted, replaced, r.Files, size(r.Bytes), wall.Round(time.Millisecond))
	return g.print(a.out, format)
}

// openParquet opens a file at a path or URL.
func openParquet(ctx context.Context, name string) (basefile.File, error) {
	folder, base, err := open.Split(name)
	if err != nil {
		return nil, err
	}
	store, err := open.Store(ctx, folder, open.Options{})
	if err != nil {
		return nil, err
	}
	obj, err := store.Open(ctx, base)
	if err != nil {
		return nil, err
	}
	return basefile.OpenObject(ctx, name, obj, basefile.Options{})
}
