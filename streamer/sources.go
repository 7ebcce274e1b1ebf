package streamer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/open"
	"github.com/sluicelake/sluice/streamer/source"
)

// The properties of sources.
const (
	keyRoot       = "hoodie.streamer.source.dfs.root"
	keySelector   = "hoodie.streamer.source.input.selector"
	dated         = "hoodie.streamer.source.dfs.datepartitioned."
	keyDateFormat = dated + "date.format"
	keyDateDepth  = dated + "selector.depth"
	keyDateBack   = dated + "selector.lookback.days"
	keyDateToday  = dated + "selector.currentdate"
	incr          = "hoodie.streamer.source.hoodieincr."
)

// sourcePackage is where the original keeps its sources.
const sourcePackage = "org.apache.hudi.utilities.sources"

// formats of the file sources, by class name and by short name.
func formats() map[string]source.Format {
	return map[string]source.Format{
		"JsonDFSSource": source.JSON, "CsvDFSSource": source.CSV, "AvroDFSSource": source.Avro, "ParquetDFSSource": source.Parquet, "ORCDFSSource": source.ORC,
		"json": source.JSON, "csv": source.CSV, "avro": source.Avro, "parquet": source.Parquet, "orc": source.ORC,
	}
}

// elsewhere are sources of the original that Sluice has not.
func elsewhere(name string) (string, bool) {
	hints := map[string]string{
		"Kafka": "land the messages as files and use JsonDFSSource or AvroDFSSource", "Debezium": "let AWS DMS or another tool write change files and use ParquetDFSSource",
		"Jdbc": "export the rows as files", "Sql": "write the result of the query as files, or use HoodieIncrSource with a SQL transformer",
		"S3Events": "list the folder: ParquetDFSSource with --source-strict needs no events", "GcsEvents": "list the folder: ParquetDFSSource with --source-strict needs no events",
		"HiveIncrPull": "use HoodieIncrSource", "Pulsar": "land the messages as files",
	}
	for part, hint := range hints {
		if strings.Contains(name, part) && strings.HasSuffix(name, "Source") {
			return hint, true
		}
	}
	return "", false
}

// newSource makes the source of a class.
func (c *Config) newSource(ctx context.Context, props Properties, s *schema.Type, o source.Options) (source.Source, error) {
	name := shortClass(c.SourceClass, sourcePackage)
	if name == "HoodieIncrSource" || name == "hudi" {
		return c.hudiSource(props, o)
	}
	format, ok := formats()[name]
	if !ok {
		if hint, known := elsewhere(name); known {
			return nil, &config.UnsupportedError{Table: c.TargetBasePath, Property: "--source-class", Value: c.SourceClass, Hint: hint}
		}
		return nil, configf("Could not load source class %s: Unable to load class; there are JsonDFSSource, CsvDFSSource, AvroDFSSource, ParquetDFSSource, ORCDFSSource and HoodieIncrSource", c.SourceClass)
	}
	f := &source.Files{Format: format, Schema: s, Engine: len(c.Transformers) > 0, Options: o}
	if err := c.selector(ctx, props, &f.Selector); err != nil {
		return nil, fmt.Errorf("%w: Could not load source class %s: %w", ErrConfig, c.SourceClass, err)
	}
	var err error
	if format == source.CSV {
		f.CSV, err = source.ParseCSVOptions(props.family("hoodie.streamer.csv.", "hoodie.deltastreamer.csv."))
		switch {
		case errors.Is(err, source.ErrCSVOption):
			o.Note(fmt.Sprintf("%v; ignored", err))
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrConfig, err)
		}
	}
	return f, nil
}

func (c *Config) selector(ctx context.Context, props Properties, sel *source.Selector) error {
	root := props.text(keyRoot)
	if root == "" {
		return fmt.Errorf("Required property %s is missing", keyRoot) //nolint:revive,staticcheck // the original's text
	}
	var err error
	if sel.Store, err = open.Store(ctx, root, open.Options{}); err != nil {
		if sel.Store, sel.File = single(ctx, root); sel.Store == nil {
			return err
		}
		err = nil
	}
	sel.Strict, sel.Window, sel.Settle, sel.Now = c.Strict, c.Window, c.Settle, c.Now
	switch class := lastPart(props.text(keySelector)); class {
	case "", "DFSPathSelector":
	case "DatePartitionPathSelector":
		sel.Dates, err = dates(props)
	default:
		err = fmt.Errorf("Could not load source selector class %s: there are DFSPathSelector and DatePartitionPathSelector", props.text(keySelector)) //nolint:revive,staticcheck // begins with the original's text
	}
	return err
}

// single opens the folder of a path that is a file, which the original reads alone. No store: it is none.
func single(ctx context.Context, root string) (storage.Store, string) {
	folder, name, err := open.Split(root)
	if err != nil {
		return nil, ""
	}
	store, err := open.Store(ctx, folder, open.Options{})
	if err != nil {
		return nil, ""
	}
	if info, err := store.Stat(ctx, name); err != nil || info.Dir {
		return nil, ""
	}
	return store, name
}

func dates(props Properties) (*source.Dates, error) {
	d := &source.Dates{Lookback: 2, Format: props.text(keyDateFormat)}
	for key, to := range map[string]*int{keyDateDepth: &d.Depth, keyDateBack: &d.Lookback} {
		if v := props.text(key); v != "" {
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 {
				return nil, fmt.Errorf("%s=%s: a number from 0 on was expected", key, v)
			}
			*to = n
		}
	}
	if v := props.text(keyDateToday); v != "" {
		var err error
		if d.Today, err = time.Parse(time.DateOnly, v); err != nil {
			return nil, fmt.Errorf("%s=%s: a date like 2020-02-29 was expected", keyDateToday, v)
		}
	}
	return d, nil
}

func (c *Config) hudiSource(props Properties, o source.Options) (source.Source, error) {
	s := &source.Changes{URL: props.text(incr + "path"), Open: hudi.Options{Zone: c.Zone}, Missing: props.text(incr + "missing.checkpoint.strategy"),
		DropMeta: props.flag(incr + "drop.all.meta.fields.from.source"), Options: o}
	if s.URL == "" {
		return nil, configf("Could not load source class %s: Required property %spath is missing", c.SourceClass, incr)
	}
	if props.flag("hoodie.streamer.source.hoodieincr.read_latest_on_missing_ckpt") && s.Missing == "" {
		s.Missing = source.ReadLatest
	}
	if v := props.text(incr + "num_instants"); v != "" {
		var err error
		if s.Instants, err = strconv.Atoi(v); err != nil || s.Instants < 1 {
			return nil, configf("%snum_instants=%s: a number from 1 on was expected", incr, v)
		}
	}
	return s, nil
}
