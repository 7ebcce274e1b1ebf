package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/spf13/cobra"

	"github.com/sluicelake/sluice/export"
	"github.com/sluicelake/sluice/hudi"
)

// order is a row of the orders table of MySQL, and what happened to it.
type order struct {
	op               string // of change files: I, U or D
	id, qty          int32
	customer         string
	updated, created string // time of day
}

// The files that AWS DMS leaves of the table: the full load, and two files of changes.
var dmsFiles = []struct {
	name, what string
	changes    bool
	rows       []order
}{
	{"LOAD00000001.parquet", "The full load: two orders.", false, []order{
		{"", 1, 10, "victor", "20:12:31", "20:12:31"}, {"", 2, 10, "peter", "20:12:22", "20:12:22"},
	}},
	{"20200120-211124123.parquet", "In MySQL: an order of sandy is inserted, and peter now wants 20.", true, []order{
		{"I", 3, 30, "sandy", "21:11:24", "21:11:24"}, {"U", 2, 20, "peter", "21:11:47", "20:12:22"},
	}},
	{"20200120-212249456.parquet", "In MySQL: peter's order is deleted, barry and nathan order.", true, []order{
		{"D", 2, 20, "peter", "21:11:47", "20:12:22"}, {"I", 4, 40, "barry", "21:22:49", "21:22:49"}, {"I", 5, 50, "nathan", "21:23:00", "21:23:00"},
	}},
}

func (a *app) demoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo [FOLDER]",
		Short: "The orders walk: DMS files of a MySQL table become a table, round by round",
		Long: `Make the files that AWS DMS leaves of an orders table (a full load, then inserts, updates and deletes), apply them with the streamer in three
rounds, look at the table after each, travel in time, read what changed, and export it. Every step is a command that can be typed.
Without FOLDER, which must be empty or absent, a temporary one is used and removed.

` + exitHelp,
		Example: "  sluice demo\n  sluice demo /tmp/orders-walk",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			folder := ""
			if len(args) > 0 {
				folder = args[0]
			}
			return a.demo(cmd.Context(), folder)
		},
	}
	return cmd
}

func (a *app) demo(ctx context.Context, folder string) error {
	if folder == "" {
		made, err := os.MkdirTemp("", "sluice-demo-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(made) }() // the system cleans its folder up too
		folder = made
	} else if entries, err := os.ReadDir(folder); err == nil && len(entries) > 0 {
		return usagef("%s is not empty", folder)
	}
	d := &demo{ctx: ctx, out: a.out, console: a.console, table: filepath.Join(folder, "orders"), dms: filepath.Join(folder, "dms", "shop", "orders"), folder: folder}
	return d.walk()
}

// demo runs commands of this program and shows them as a person would type them.
type demo struct {
	ctx                context.Context
	out                io.Writer
	console            console
	folder, table, dms string
}

func (d *demo) walk() error {
	if err := os.MkdirAll(d.dms, 0o777); err != nil {
		return err
	}
	var instants []string
	for i, f := range dmsFiles {
		d.say("%s DMS writes %s.", f.what, f.name)
		if err := writeDMS(filepath.Join(d.dms, f.name), f.changes, f.rows); err != nil {
			return err
		}
		if err := d.run(d.streamer(i == 0)...); err != nil {
			return err
		}
		if err := d.run("read", d.table, "--columns", "order_id,order_qty,customer_name,Op,_hoodie_commit_time", "-o", "table"); err != nil {
			return err
		}
		at, err := newest(d.ctx, d.table)
		if err != nil {
			return err
		}
		instants = append(instants, at)
	}
	d.say("The order that was deleted is gone; rows that nobody touched keep their commit time. The table as it was after the first round:")
	if err := d.run("read", d.table, "--as-of", instants[0], "--no-meta", "-o", "table"); err != nil {
		return err
	}
	d.say("What was written since then:")
	if err := d.run("read", d.table, "--query-type", "incremental", "--begin-instant", instants[0], "--columns", "order_id,order_qty,customer_name,Op", "-o", "json"); err != nil {
		return err
	}
	d.say("And the table for those who read Parquet or JSON:")
	for _, format := range []string{"parquet", "json"} {
		if err := d.run("export", "--source-base-path", d.table, "--target-output-path", filepath.Join(d.folder, "out-"+format), "--output-format", format); err != nil {
			return err
		}
	}
	d.say("Is it sound?")
	return d.run("table", "validate", d.table)
}

// streamer is the command line of DeltaStreamer; the key is stored with the table, and need not be said again.
func (d *demo) streamer(first bool) []string {
	args := []string{
		"streamer", "--table-type", "COPY_ON_WRITE", "--target-base-path", d.table, "--target-table", "orders",
		"--source-class", "org.apache.hudi.utilities.sources.ParquetDFSSource", "--source-ordering-field", "updated_at",
		"--transformer-class", "org.apache.hudi.utilities.transform.AWSDmsTransformer", "--payload-class", "org.apache.hudi.common.model.AWSDmsAvroPayload",
		"--hoodie-conf", "hoodie.streamer.source.dfs.root=" + d.dms,
	}
	if first {
		args = append(args, "--hoodie-conf", "hoodie.datasource.write.recordkey.field=order_id", "--hoodie-conf", "hoodie.datasource.write.partitionpath.field=customer_name")
	}
	return args
}

func (d *demo) say(format string, args ...any) {
	_, _ = fmt.Fprintf(d.out, "\n# "+format+"\n", args...)
}

func (d *demo) run(args ...string) error {
	shown := make([]string, len(args))
	for i, arg := range args {
		if shown[i] = strings.ReplaceAll(arg, d.folder+string(filepath.Separator), ""); strings.ContainsAny(arg, " '\"") {
			shown[i] = "'" + shown[i] + "'"
		}
	}
	_, _ = fmt.Fprintf(d.out, "$ sluice %s\n", strings.Join(shown, " "))
	if code := run(d.ctx, args, d.console); code != exitDone {
		return fmt.Errorf("sluice %s ended with %d", args[0], code)
	}
	return nil
}

func newest(ctx context.Context, table string) (string, error) {
	t, err := hudi.Open(ctx, table, hudi.Options{})
	if err != nil {
		return "", err
	}
	s, err := t.Snapshot(ctx, hudi.Query{})
	if err != nil {
		return "", err
	}
	return s.Instant(), nil
}

// writeDMS writes rows as DMS does: in change files the column Op comes first, times are in microseconds.
func writeDMS(path string, changes bool, rows []order) error {
	text := func(name string) arrow.Field {
		return arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: true}
	}
	number := func(name string) arrow.Field {
		return arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int32, Nullable: true}
	}
	at := func(name string) arrow.Field {
		return arrow.Field{Name: name, Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Nullable: true}
	}
	fields := []arrow.Field{number("order_id"), number("order_qty"), text("customer_name"), at("updated_at"), at("created_at")}
	if changes {
		fields = append([]arrow.Field{text("Op")}, fields...)
	}
	s := arrow.NewSchema(fields, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	for _, r := range rows {
		i := 0
		next := func() array.Builder { i++; return b.Field(i - 1) }
		if changes {
			next().(*array.StringBuilder).Append(r.op)
		}
		next().(*array.Int32Builder).Append(r.id)
		next().(*array.Int32Builder).Append(r.qty)
		next().(*array.StringBuilder).Append(r.customer)
		for _, clock := range []string{r.updated, r.created} {
			t, err := time.Parse("2006-01-02 15:04:05", "2020-01-20 "+clock)
			if err != nil {
				return err
			}
			next().(*array.TimestampBuilder).Append(arrow.Timestamp(t.UnixMicro()))
		}
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	out, err := export.NewParquet(f, s, export.ParquetOptions{Compression: "snappy"})
	if err == nil {
		if err = out.Write(batch); err == nil {
			err = out.Close()
		}
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
