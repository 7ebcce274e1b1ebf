package source

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/orcfile"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/storage"
)

// recordName is how the original calls rows that come without an Avro schema (tools C.8).
const recordName = "hoodie.source.hoodie_source"

// describeAtOnce is how many files are opened at once to see their columns.
const describeAtOnce = 8

// shape is what the rows of a round look like.
type shape struct {
	avro  *schema.Type
	arrow *arrow.Schema
}

func shapeOf(t *schema.Type) (shape, error) {
	s, err := t.Arrow()
	return shape{avro: t, arrow: s}, err
}

// columnar is a format whose files say what their columns are.
type columnar interface {
	// describe gives the columns of a file. An error means that the file is no whole file of the format.
	describe(ctx context.Context, store storage.Store, info storage.Info) (*schema.Type, error)
	// read sends the rows of a file as batches of the wanted shape.
	read(ctx context.Context, store storage.Store, info storage.Info, want shape, o Options, send func(item) error) error
}

// describeAll unites the columns of all files: a column that one file has and another has not is null for the other's rows, and
// of two number types the wider counts.
//
// absent names, for each column that some file has not, the first such file.
func describeAll(ctx context.Context, store storage.Store, files []storage.Info, f columnar) (all *schema.Type, absent map[string]string, err error) {
	types := make([]*schema.Type, len(files))
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(describeAtOnce)
	for i, info := range files {
		g.Go(func() error {
			var err error
			if types[i], err = f.describe(inner, store, info); err != nil {
				return fmt.Errorf("%s: %w", storage.Join(store.URL(), info.Name), err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	all = types[0]
	for i, t := range types[1:] {
		if all, err = unite(all, t); err != nil {
			return nil, nil, fmt.Errorf("%s does not go together with the files before it: %w", storage.Join(store.URL(), files[i+1].Name), err)
		}
	}
	absent = map[string]string{}
	for i := len(types) - 1; i >= 0; i-- {
		for _, f := range all.Fields {
			if _, ok := types[i].Field(f.Name); !ok {
				absent[f.Name] = storage.Join(store.URL(), files[i].Name)
			}
		}
	}
	return all, absent, nil
}

func readColumnar(store storage.Store, files []storage.Info, f columnar, want shape, o Options, start func(work) error) error {
	for _, info := range files {
		err := start(func(ctx context.Context, send func(item) error) error {
			if err := f.read(ctx, store, info, want, o, send); err != nil {
				return fmt.Errorf("%s: %w", storage.Join(store.URL(), info.Name), err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// tableFiles are Parquet and ORC files. Their columns are all nullable, as Spark reads files.
type tableFiles struct{ ext string }

func (t tableFiles) openFile(ctx context.Context, store storage.Store, info storage.Info, o basefile.Options) (basefile.File, error) {
	if t.ext == orcfile.Ext {
		return orcfile.Format{}.Open(ctx, store, info.Name, o)
	}
	obj, err := store.Open(ctx, info.Name)
	if err != nil {
		return nil, err
	}
	return basefile.OpenObject(ctx, info.Name, obj, o) // whatever the name ends in
}

func (t tableFiles) describe(ctx context.Context, store storage.Store, info storage.Info) (*schema.Type, error) {
	f, err := t.openFile(ctx, store, info, basefile.Options{})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	at, err := schema.FromArrow(f.Schema(), recordName)
	if err != nil {
		return nil, err
	}
	return relax(at), nil
}

func (t tableFiles) read(ctx context.Context, store storage.Store, info storage.Info, want shape, o Options, send func(item) error) error {
	f, err := t.openFile(ctx, store, info, basefile.Options{Alloc: o.Alloc})
	if err != nil {
		return err
	}
	defer f.Close()
	row := int64(1)
	file := storage.Join(store.URL(), info.Name)
	for batch, err := range f.Scan(ctx, basefile.ScanOptions{Columns: want.arrow, Table: want.avro}) {
		if err != nil {
			return err
		}
		at := []mark{{file: file, line: row}}
		row += batch.NumRows()
		if err := send(item{batch: batch, at: at}); err != nil {
			return err
		}
	}
	return nil
}
