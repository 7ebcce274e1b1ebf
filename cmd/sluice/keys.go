package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/spf13/cobra"

	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/keygen"
	"github.com/sluicelake/sluice/hudi/schema"
)

// keysFlags are the flags of "keys".
type keysFlags struct {
	props           []string
	conf            []string
	table, check    string
	schema, release string
	format, input   string
	zone            string
	sample          int64
}

func (a *app) keysCommand() *cobra.Command {
	var f keysFlags
	cmd := &cobra.Command{
		Use:   "keys [FILE...]",
		Short: "The record key and partition path that a configuration gives for sample records",
		Long: `Print record key, partition path and (with a bucket index) the bucket of sample records, or the exact error. The configuration comes
from --props and --hoodie-conf, in the names of the Spark datasource and of the streamer, or from a table.

Records come from files or, without any, from standard input: JSON (one object a line), CSV or Parquet, by --input or the file's ending.
JSON and CSV have the types of --schema (an Avro schema file); without it whole numbers are long, others double.

--check TABLE compares the stored keys of a table with what its own configuration gives, shows the first differences, and names the
variation of the configuration with which every row would agree. It exits with 1 where keys differ.

` + exitHelp,
		Example: `  echo '{"id": 7, "ts": 1700000000000}' | sluice keys --hoodie-conf hoodie.datasource.write.recordkey.field=id \
      --hoodie-conf hoodie.datasource.write.partitionpath.field=ts --hoodie-conf hoodie.datasource.write.keygenerator.type=TIMESTAMP \
      --hoodie-conf hoodie.keygen.timebased.timestamp.type=EPOCHMILLISECONDS --hoodie-conf hoodie.keygen.timebased.output.dateformat=yyyy/MM/dd
  sluice keys --check s3://lake/orders --sample 100000`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.check != "" {
				if len(args) > 0 || f.table != "" {
					return usagef("--check takes the records of the table: no files and no --table beside it")
				}
				return a.checkKeys(cmd.Context(), f)
			}
			return a.explainKeys(cmd.Context(), f, args)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.props, "props", nil, "properties file; given again, later files win")
	flags.StringArrayVar(&f.conf, "hoodie-conf", nil, "key=value, given again for more; wins over --props")
	flags.StringVar(&f.table, "table", "", "table whose properties give the configuration")
	flags.StringVar(&f.check, "check", "", "table whose stored keys are compared")
	flags.StringVar(&f.schema, "schema", "", "file with the Avro schema of the records")
	flags.StringVar(&f.release, "release", "", "release of Apache Hudi whose results are wanted: 0.9.0 to 1.2.0; default the newest")
	flags.StringVar(&f.input, "input", "", "json, csv or parquet; default by the file's ending, json for standard input")
	flags.StringVar(&f.zone, "jvm-timezone", "UTC", "zone of the Java process, on which some texts of times depend")
	flags.Int64Var(&f.sample, "sample", 0, "with --check: at most so many rows; 0 means all")
	flags.StringVarP(&f.format, "output", "o", "table", "table or json")
	return cmd
}

// keyOptions gathers the configuration: files, then single options, over the table's own.
func (a *app) keyOptions(f keysFlags, cfg *config.Table) (keygen.Options, error) {
	o := keygen.Options{Properties: map[string]string{}, Zone: f.zone}
	origin := map[string]string{}
	for _, name := range f.props {
		text, err := os.ReadFile(name)
		if err != nil {
			return o, usagef("--props: %w", err)
		}
		props, err := config.ParseProperties(text)
		if err != nil {
			return o, usagef("--props %s: %w", name, err)
		}
		for _, key := range props.Keys() {
			o.Properties[key], _ = props.Get(key)
			origin[key] = name
		}
	}
	for _, pair := range f.conf {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return o, usagef("--hoodie-conf %q: write key=value", pair)
		}
		o.Properties[strings.TrimSpace(key)] = value
		origin[strings.TrimSpace(key)] = "--hoodie-conf"
	}
	o.Origin = func(key string) string { return origin[key] }
	if f.release != "" {
		r, err := keygen.ParseRelease(f.release)
		if err != nil {
			return o, usagef("--release: %w", err)
		}
		o.Release = r
	}
	if cfg != nil {
		o.Table = keygen.PropertiesOf(cfg)
	}
	return o, nil
}

// ofTable completes the options of a table: its schema, and a sample of its keys where they decide an encoding.
func (a *app) ofTable(ctx context.Context, f keysFlags, url string) (keygen.Options, *hudi.Snapshot, error) {
	t, err := a.open(ctx, url)
	if err != nil {
		return keygen.Options{}, nil, err
	}
	o, err := a.keyOptions(f, t.Config())
	if err != nil {
		return o, nil, err
	}
	s, err := t.Snapshot(ctx, hudi.Query{Stored: true})
	if err != nil {
		return o, nil, err
	}
	o.HasCommits = s.Instant() != ""
	o.Schema = s.Avro()
	if o.HasCommits && t.Config().PopulateMetaFields && keygen.NeedsStoredKeys(o.Table) {
		o.StoredKeys, err = sampleKeys(ctx, s)
	}
	return o, s, err
}

// keySample is how many stored keys decide an encoding.
const keySample = 500

func sampleKeys(ctx context.Context, s *hudi.Snapshot) ([]string, error) {
	var out []string
	for batch, err := range s.Scan(ctx, hudi.Scan{Columns: []string{schema.RecordKey}}) {
		if err != nil {
			return nil, err
		}
		keys := batch.Column(0).(*array.String)
		for i := range keys.Len() {
			if len(out) < keySample && keys.IsValid(i) {
				out = append(out, strings.Clone(keys.Value(i)))
			}
		}
		batch.Release()
		if len(out) >= keySample {
			break
		}
	}
	return out, nil
}

func (a *app) explainKeys(ctx context.Context, f keysFlags, files []string) error {
	o, err := a.keyOptions(f, nil)
	if err == nil && f.table != "" {
		o, _, err = a.ofTable(ctx, f, f.table)
	}
	if err != nil {
		return err
	}
	if f.schema != "" {
		text, err := os.ReadFile(f.schema)
		if err != nil {
			return usagef("--schema: %w", err)
		}
		if o.Schema, err = schema.Parse(text); err != nil {
			return usagef("--schema %s: %w", f.schema, err)
		}
	}
	g := &grid{head: []string{"row", "record key", "partition path", "bucket", "error"}}
	docs := []keygen.Explanation{}
	warned := map[string]bool{}
	err = a.records(ctx, files, f.input, o.Schema, func(batch arrow.RecordBatch) error {
		list, warnings, err := keygen.Explain(o, batch)
		if err != nil {
			return err
		}
		for _, w := range warnings {
			if !warned[w] {
				warned[w] = true
				a.note("%s", w)
			}
		}
		for _, e := range list {
			e.Row = len(docs)
			docs = append(docs, e)
			g.add(e.Row, cmp.Or(e.Key, "-"), e.Partition, cmp.Or(e.Bucket, "-"), cmp.Or(e.Error, "-"))
		}
		return nil
	})
	if err != nil {
		return err
	}
	g.doc = docs
	return g.print(a.out, f.format)
}

func (a *app) checkKeys(ctx context.Context, f keysFlags) error {
	o, s, err := a.ofTable(ctx, f, f.check)
	if err != nil {
		return err
	}
	if !s.Schema().HasField(schema.RecordKey) {
		return fmt.Errorf("the table keeps no record keys (hoodie.populate.meta.fields=false): there is nothing to compare")
	}
	c, err := keygen.NewChecker(o)
	if err != nil {
		return err
	}
	left := f.sample
	for batch, err := range s.Scan(ctx, hudi.Scan{}) {
		if err != nil {
			return err
		}
		batch = cut(batch, left, f.sample > 0)
		left -= batch.NumRows()
		err = c.Add(batch)
		batch.Release()
		if err != nil {
			return err
		}
		if f.sample > 0 && left <= 0 {
			break
		}
	}
	return a.printReport(c.Report(), f.format)
}

func (a *app) printReport(r keygen.Report, format string) error {
	g := &grid{doc: struct {
		Rows     int64               `json:"rows"`
		Differ   int64               `json:"differ"`
		First    []keygen.Difference `json:"first"`
		Agreeing []string            `json:"agreeing"`
	}{r.Rows, r.Differ, r.First, list(r.Agreeing)}}
	g.add(fmt.Sprintf("%d rows, %d differ from what the configuration gives", r.Rows, r.Differ))
	for _, d := range r.First {
		g.add(fmt.Sprintf("row %d", d.Row), fmt.Sprintf("stored %q %q", d.StoredKey, d.StoredPartition), fmt.Sprintf("configured %q %q", d.Key, d.Partition), d.Error)
	}
	for _, name := range r.Agreeing {
		g.add("every row agrees with: " + name)
	}
	if err := g.print(a.out, format); err != nil {
		return err
	}
	if r.Differ > 0 {
		return fmt.Errorf("%d of %d stored keys differ from what the table's configuration gives", r.Differ, r.Rows)
	}
	return nil
}
