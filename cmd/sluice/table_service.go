package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicelake/sluice/hudi/service"
	"github.com/sluicelake/sluice/hudi/write"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/open"
)

// confFlags are hoodie.* options given to a verb.
type confFlags struct{ props, conf []string }

func (f *confFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.props, "props", nil, "properties file; given again, later files win")
	cmd.Flags().StringArrayVar(&f.conf, "hoodie-conf", nil, "key=value, given again for more; wins over --props")
}

func (a *app) options(f confFlags) (map[string]string, error) {
	o, err := a.keyOptions(keysFlags{props: f.props, conf: f.conf}, nil)
	return o.Properties, err
}

func (a *app) store(ctx context.Context, url string) (storage.Store, error) {
	return open.Store(ctx, url, open.Options{})
}

// tell prints what a write does besides its own work.
func (a *app) tell(e write.Event) {
	if a.quiet {
		return
	}
	switch e.Step {
	case write.Waiting:
		_, _ = fmt.Fprintf(a.err, "waiting for %s\n", e.Held)
	case write.RolledBack:
		_, _ = fmt.Fprintf(a.err, "rolled back %s: %d files deleted\n", e.Instant, e.Count)
	case write.MetadataRemoved:
		_, _ = fmt.Fprintln(a.err, "removed the metadata table")
	case write.MarkersRemoved:
		_, _ = fmt.Fprintf(a.err, "removed the markers that %s left\n", e.Instant)
	}
}

func (a *app) createCommand() *cobra.Command {
	var f confFlags
	var name, tableType, schema, format string
	var keys, partitions, ordering []string
	var keyless bool
	cmd := &cobra.Command{
		Use:   "create PATH",
		Short: "Make an empty table",
		Long: `Make an empty table of version 6, which Apache Hudi 0.14 to 1.2, Hive, Trino and Flink read and write.
Everything can be said with options of the Spark datasource (--hoodie-conf, --props); the flags are short for some of them and win.

` + exitHelp,
		Example: `  sluice table create /data/orders --name orders --key id --partition region --ordering ts
  sluice table create s3://lake/orders --props orders.properties --schema orders.avsc`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := a.options(f)
			if err != nil {
				return err
			}
			for key, value := range map[string]string{
				"hoodie.table.name": name, "hoodie.datasource.write.table.type": tableType,
				"hoodie.datasource.write.recordkey.field": strings.Join(keys, ","), "hoodie.datasource.write.partitionpath.field": strings.Join(partitions, ","),
				"hoodie.datasource.write.precombine.field": strings.Join(ordering, ","),
			} {
				if value != "" {
					options[key] = value
				}
			}
			if schema != "" {
				text, err := os.ReadFile(schema)
				if err != nil {
					return usagef("--schema: %w", err)
				}
				options["hoodie.table.create.schema"] = string(text)
			}
			spec, err := write.SpecFromOptions(options)
			if err != nil {
				return usageError{err}
			}
			spec.Keyless = keyless
			return a.createTable(cmd.Context(), args[0], spec, format)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&name, "name", "", "name of the table")
	flags.StringVar(&tableType, "type", "", "COPY_ON_WRITE or MERGE_ON_READ (default COPY_ON_WRITE)")
	flags.StringSliceVar(&keys, "key", nil, "columns that identify a row")
	flags.StringSliceVar(&partitions, "partition", nil, "columns that rows are partitioned by")
	flags.StringSliceVar(&ordering, "ordering", nil, "columns that say which of two rows of one key is newer")
	flags.StringVar(&schema, "schema", "", "file with the Avro schema of the columns; without it the first write brings one")
	flags.BoolVar(&keyless, "keyless", false, "no key columns: rows can't be updated or deleted by key")
	flags.StringVarP(&format, "output", "o", "table", "table or json")
	f.register(cmd)
	return cmd
}

func (a *app) createTable(ctx context.Context, url string, spec write.Spec, format string) error {
	store, err := a.store(ctx, url)
	if err != nil {
		return err
	}
	a.notes(spec.Notes())
	t, err := write.CreateTable(ctx, store, spec)
	var wrong *write.SpecError
	if errors.As(err, &wrong) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	doc := map[string]any{"path": t.Path, "name": t.Name, "type": t.Type, "version": t.Version, "recordKey": t.RecordKeyFields, "partition": t.PartitionFields}
	g := &grid{head: []string{"PATH", "NAME", "TYPE", "VERSION"}, doc: doc}
	g.add(t.Path, t.Name, t.Type, t.Version)
	return g.print(a.out, format)
}

func (a *app) rollbackCommand() *cobra.Command {
	var f confFlags
	var format string
	cmd := &cobra.Command{
		Use:   "rollback PATH [INSTANT]",
		Short: "Undo writes that failed, or the newest write",
		Long: `Without an instant: finish rollbacks that were begun and roll back every write that failed, of Sluice or of Apache Hudi.
With one: undo that write as well, where it is the newest one and the files of before are still there.
A table with a metadata table needs --hoodie-conf hoodie.metadata.enable=false, which removes it.

` + exitHelp,
		Example: `  sluice table rollback /data/orders
  sluice table rollback s3://lake/orders 20261129100000123`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := a.options(f)
			if err != nil {
				return err
			}
			zone, err := a.tableZone()
			if err != nil {
				return err
			}
			store, err := a.store(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			o := service.RollbackOptions{Conf: options, Zone: zone, Event: a.tell}
			if len(args) == 2 {
				o.Instant = args[1]
			}
			undone, err := service.Rollback(cmd.Context(), store, o)
			if err != nil {
				return err
			}
			g := &grid{head: []string{"INSTANT", "FILES DELETED"}, doc: append([]service.Undone{}, undone...)}
			for _, u := range undone {
				g.add(u.Instant, u.Files)
			}
			return g.print(a.out, format)
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table or json")
	f.register(cmd)
	return cmd
}

// findingsError makes validate exit with 1.
type findingsError struct{ errors, warnings int }

func (e findingsError) Error() string {
	return fmt.Sprintf("the table has %d errors and %d warnings", e.errors, e.warnings)
}

func (a *app) validateCommand() *cobra.Command {
	var format string
	var filesOnly, strict bool
	cmd := &cobra.Command{
		Use:   "validate PATH",
		Short: "Check a table from end to end",
		Long: `Check a table, whoever wrote it, and change nothing: properties, timeline, files against commits, footers, row counts, duplicate keys,
bloom filters, partition values against folders, base files that Apache Hudi is known to damage, and what lies there for nothing.
It exits with 1 when it finds errors (with --strict: or warnings).

` + exitHelp,
		Example: `  sluice table validate /data/orders
  sluice table validate s3://lake/orders --files-only -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			budget, err := a.budget()
			if err != nil {
				return err
			}
			zone, err := a.tableZone()
			if err != nil {
				return err
			}
			store, err := a.store(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			began := time.Now()
			r, err := service.Validate(cmd.Context(), store, service.ValidateOptions{FilesOnly: filesOnly, Memory: budget / 2, TempDir: a.tempDir, Zone: zone})
			if err != nil {
				return err
			}
			return a.printFindings(r, format, strict, time.Since(began))
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table or json")
	cmd.Flags().BoolVar(&filesOnly, "files-only", false, "leave the rows alone: no duplicate keys, bloom filters and partition values")
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with 1 for warnings too")
	return cmd
}

func (a *app) printFindings(r *service.Report, format string, strict bool, took time.Duration) error {
	g := &grid{doc: r}
	var found findingsError
	if len(r.Findings) > 0 {
		g.head = []string{"SEVERITY", "CODE", "WHERE", "WHAT", "DO"}
	}
	for _, f := range r.Findings {
		g.add(f.Severity, f.Code, f.Where, f.What, f.Do)
		switch f.Severity {
		case service.Error:
			found.errors++
		case service.Warning:
			found.warnings++
		}
	}
	if err := g.print(a.out, format); err != nil {
		return err
	}
	if !a.quiet {
		_, _ = fmt.Fprintf(a.err, "checked %d instants, %d files, %d slices, %d rows in %s: %d errors, %d warnings\n",
			r.Instants, r.Files, r.Slices, r.Rows, took.Round(time.Millisecond), found.errors, found.warnings)
	}
	if found.errors > 0 || strict && found.warnings > 0 {
		return found
	}
	return nil
}
