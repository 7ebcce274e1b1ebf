// Package orcfile opens ORC base files for package basefile, so that tables with hoodie.table.base.file.format=ORC read as
// those of Parquet do.
package orcfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/orc"
	"github.com/sluicelake/sluice/storage"
)

// Ext is the extension of ORC base files.
const Ext = ".orc"

// avroKey is the user metadata in which Apache Hudi's ORC writer keeps the Avro schema.
const avroKey = "orc.avro.schema"

// Format is a basefile.Format.
type Format struct{}

// Open opens a file; its errors wrap the errors of package basefile.
func (Format) Open(ctx context.Context, store storage.Store, name string, o basefile.Options) (basefile.File, error) {
	obj, err := store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	r, err := orc.NewReader(readerAt{ctx, obj}, obj.Size(), orc.ReaderOptions{Alloc: o.Alloc, Timestamps: orc.Instants})
	if err != nil {
		return nil, errors.Join(wrap(name, err), obj.Close())
	}
	return &file{name: name, obj: obj, r: r, opts: o}, nil
}

func wrap(name string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &basefile.Error{File: name, Offset: -1, Err: fmt.Errorf("%w: %w", basefile.ErrDamaged, err)}
}

type readerAt struct {
	ctx context.Context
	obj storage.Object
}

func (r readerAt) ReadAt(p []byte, off int64) (int, error) { return r.obj.ReadAt(r.ctx, p, off) }

var _ io.ReaderAt = readerAt{}

type file struct {
	name string
	obj  storage.Object
	r    *orc.Reader
	opts basefile.Options
}

func (f *file) Rows() int64           { return f.r.Rows() }
func (f *file) Size() int64           { return f.obj.Size() }
func (f *file) Schema() *arrow.Schema { return f.r.Schema() }
func (f *file) Close() error          { return f.obj.Close() }

func (f *file) KeyValue() map[string]string {
	out := map[string]string{}
	for k, v := range f.r.Metadata() {
		out[k] = string(v)
	}
	return out
}

func (f *file) AvroSchema() (*schema.Type, error) {
	if text, ok := f.r.Metadata()[avroKey]; ok {
		return schema.Parse(text)
	}
	return schema.FromArrow(f.r.Schema(), "orc")
}

func (f *file) RowGroups() []basefile.RowGroup {
	var out []basefile.RowGroup
	var first int64
	for _, s := range f.r.Stripes() {
		out = append(out, basefile.RowGroup{FirstRow: first, Rows: s.Rows, Bytes: s.Bytes})
		first += s.Rows
	}
	return out
}

// Scan yields the rows of the wanted columns. Filters skip nothing here; Exact is refused.
func (f *file) Scan(ctx context.Context, o basefile.ScanOptions) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for b, err := range f.ScanRows(ctx, o) {
			if !yield(b.RecordBatch, err) || err != nil {
				return
			}
		}
	}
}

// ScanRows is Scan with the position of each batch.
func (f *file) ScanRows(ctx context.Context, o basefile.ScanOptions) iter.Seq2[basefile.Batch, error] {
	return func(yield func(basefile.Batch, error) bool) {
		if o.Exact || len(o.Constants) > 0 || o.RowGroups != nil {
			yield(basefile.Batch{}, &basefile.Error{File: f.name, Offset: -1, Err: fmt.Errorf("exact filters, constants and chosen stripes of ORC files: %w", basefile.ErrUnsupported)})
			return
		}
		res, stored, err := f.resolve(o)
		if err != nil {
			yield(basefile.Batch{}, err)
			return
		}
		var first int64
		for batch, err := range f.r.Scan(ctx, orc.ScanOptions{Columns: stored}) {
			if err != nil {
				yield(basefile.Batch{}, wrap(f.name, err))
				return
			}
			rows := batch.NumRows()
			if res != nil && !res.Same() {
				resolved, err := res.Batch(f.alloc(), batch)
				batch.Release()
				if err != nil {
					yield(basefile.Batch{}, err)
					return
				}
				batch = resolved
			}
			if !yield(basefile.Batch{RecordBatch: batch, FirstRow: first}, nil) {
				return
			}
			first += rows
		}
	}
}

// resolve compiles how the file's columns become the wanted ones, and names those of them that the file has.
func (f *file) resolve(o basefile.ScanOptions) (*schema.Resolution, []string, error) {
	if o.Columns == nil {
		return nil, nil, nil
	}
	own := f.r.Schema()
	stored := make([]string, 0, o.Columns.NumFields())
	fields := make([]arrow.Field, 0, o.Columns.NumFields())
	seen := map[string]bool{}
	for _, want := range o.Columns.Fields() {
		name := want.Name
		if renamed, ok := o.Names[name]; ok {
			name = renamed
		}
		at, err := schema.FindField(own.Fields(), name)
		if err != nil {
			return nil, nil, err
		}
		if at >= 0 && !seen[own.Field(at).Name] {
			seen[own.Field(at).Name] = true
			stored = append(stored, own.Field(at).Name)
			fields = append(fields, own.Field(at))
		}
	}
	res, err := schema.Resolve(arrow.NewSchema(fields, nil), o.Columns, schema.ResolveOptions{
		File: f.name, Table: o.Table, Names: o.Names, SchemaOnRead: o.SchemaOnRead,
	})
	return res, stored, err
}

func (f *file) alloc() memory.Allocator {
	if f.opts.Alloc != nil {
		return f.opts.Alloc
	}
	return memory.DefaultAllocator
}
