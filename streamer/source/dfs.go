package source

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sluicelake/sluice/hudi/orcfile"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/storage"
)

// Format of files.
type Format string

// The formats.
const (
	JSON    Format = "json"
	CSV     Format = "csv"
	Avro    Format = "avro"
	Parquet Format = "parquet"
	ORC     Format = "orc"
)

// ErrNoSchema: a source whose files do not say what their columns are got no schema. The text is the original's.
var ErrNoSchema = errors.New("Please provide a valid schema provider class!") //nolint:revive,staticcheck // the original's text

// Files reads new files of a folder.
type Files struct {
	Format   Format
	Selector Selector
	// Schema of the records: needed for JSON, the reader schema of Avro, the columns of CSV. Parquet and ORC have their own.
	Schema *schema.Type
	// Engine has JSON read by the rules of the original's engine, as it is under a transformer.
	Engine bool
	CSV    CSVOptions
	Options
}

// Fetch is Source.Fetch.
func (f *Files) Fetch(ctx context.Context, from Cursor, limit int64) (*Input, error) {
	sel, err := f.Selector.Select(ctx, from, limit)
	if err != nil {
		return nil, err
	}
	in := &Input{Next: sel.Next, Bytes: sel.Bytes, Waiting: sel.Waiting, Left: sel.Left, Late: sel.Late}
	return in, f.open(ctx, in, sel.Files)
}

// Read gives the rows of these files of the selector's store, in the order given, whatever was read before.
func (f *Files) Read(ctx context.Context, files []storage.Info) (*Input, error) {
	in := &Input{}
	for _, info := range files {
		in.Bytes += info.Size
	}
	return in, f.open(ctx, in, files)
}

// open makes the input of files.
func (f *Files) open(ctx context.Context, in *Input, files []storage.Info) error {
	in.Fresh, in.Files, in.Batches = len(files) > 0, len(files), nothing
	if f.Schema != nil && f.Format != Parquet && f.Format != ORC {
		t := f.Schema
		if f.Engine && f.Format == JSON {
			t = engineSchema(t)
		}
		want, err := shapeOf(t)
		if err != nil {
			return err
		}
		in.Avro, in.Schema = want.avro, want.arrow
	}
	switch {
	case !in.Fresh:
		return nil
	case f.Format == JSON && f.Schema == nil:
		return ErrNoSchema
	}
	return f.read(ctx, in, files)
}

func nothing(func(arrow.RecordBatch, error) bool) {}

// read sets up the reading of files; the columns are known when it returns.
func (f *Files) read(ctx context.Context, in *Input, files []storage.Info) error {
	store := f.Selector.Store
	if f.Format == JSON || f.Format == CSV {
		return f.readText(ctx, in, files)
	}
	var format columnar = avroFiles{}
	switch f.Format {
	case Parquet:
		format = tableFiles{".parquet"}
	case ORC:
		format = tableFiles{orcfile.Ext}
	}
	t, absent, err := describeAll(ctx, store, files, format)
	if err != nil {
		return err
	}
	if in.Avro == nil {
		in.Absent = absent
		want, err := shapeOf(t)
		if err != nil {
			return err
		}
		in.Avro, in.Schema = want.avro, want.arrow
	}
	want := shape{in.Avro, in.Schema}
	in.Batches = ordered(ctx, f.Options, in, func(_ context.Context, start func(work) error) error {
		return readColumnar(store, files, format, want, f.Options, start)
	})
	return nil
}

func (f *Files) readText(ctx context.Context, in *Input, files []storage.Info) error {
	store, inferred := f.Selector.Store, in.Avro == nil
	if inferred {
		t, err := inferCSV(ctx, store, files, f.CSV, f.Options)
		if err != nil {
			return err
		}
		want, err := shapeOf(t)
		if err != nil {
			return err
		}
		in.Avro, in.Schema = want.avro, want.arrow
	}
	want := shape{in.Avro, in.Schema}
	if f.Format == JSON {
		in.Batches = ordered(ctx, f.Options, in, func(ctx context.Context, start func(work) error) error {
			return readText(ctx, store, files, &jsonFormat{avro: want.avro, shape: want.arrow, engine: f.Engine}, f.Options, start)
		})
		return nil
	}
	format := &csvFormat{CSVOptions: f.CSV, shape: want, inferred: inferred}
	in.Batches = f.told(format, ordered(ctx, f.Options, in, func(ctx context.Context, start func(work) error) error {
		return readText(ctx, store, files, format, f.Options, start)
	}))
	return nil
}

// told says at the end what the CSV reader did to values and records that it could not read.
func (f *Files) told(format *csvFormat, batches iter.Seq2[arrow.RecordBatch, error]) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for batch, err := range batches {
			if !yield(batch, err) || err != nil {
				return
			}
		}
		if n := format.nulls.Load(); n > 0 {
			f.note("csv: %d records had values that do not fit their column; those are null (hoodie.streamer.csv.mode=FAILFAST refuses them)", n)
		}
		if n := format.dropped.Load(); n > 0 {
			f.note("csv: %d malformed records were dropped (hoodie.streamer.csv.mode=DROPMALFORMED)", n)
		}
		if n := format.unclosed.Load(); n > 0 {
			f.note("csv: %d quotes are left open and end with their line; where values have line ends in them, set hoodie.streamer.csv.multiLine=true", n)
		}
		if format.moved.Load() {
			f.note("csv: a header has the columns in another order than the schema; columns were taken by name (hoodie.streamer.csv.enforceSchema=true goes by position)")
		}
	}
}

// ParseFormat reads the name of a format.
func ParseFormat(text string) (Format, error) {
	switch f := Format(text); f {
	case JSON, CSV, Avro, Parquet, ORC:
		return f, nil
	}
	return "", fmt.Errorf("no format %q; there are json, csv, avro, parquet and orc", text)
}
