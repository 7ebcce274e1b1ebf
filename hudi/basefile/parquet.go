package basefile

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/storage"
)

// The footer keys under which Java writers keep the Avro schema, the newer first.
var avroKeys = [...]string{"parquet.avro.schema", "avro.schema"}

// parquetFile is an open Parquet file: its footer and tree; scans keep their own state.
type parquetFile struct {
	name    string
	obj     storage.Object
	options Options
	remote  bool
	footer
	tree   []*node
	schema *arrow.Schema
	groups []RowGroup
}

func openParquet(ctx context.Context, obj storage.Object, name string, remote bool, o Options) (File, error) {
	f := &parquetFile{name: name, obj: obj, options: o, remote: remote}
	var err error
	if f.footer, err = readFooter(ctx, obj, &o); err != nil {
		return nil, f.wrap(err)
	}
	if err := f.readTree(); err != nil {
		return nil, f.wrap(err)
	}
	first := int64(0)
	for _, rg := range f.md.RowGroups {
		g := RowGroup{FirstRow: first, Rows: rg.NumRows}
		for _, c := range rg.Columns {
			g.Bytes += c.MetaData.TotalCompressedSize
		}
		f.groups = append(f.groups, g)
		first += rg.NumRows
	}
	return f, nil
}

func (f *parquetFile) readTree() (err error) {
	defer recovered(&err)
	if f.tree, err = fileTree(f.md.Schema); err != nil {
		return err
	}
	fields := make([]arrow.Field, len(f.tree))
	for i, n := range f.tree {
		fields[i] = n.field()
	}
	f.schema = arrow.NewSchema(fields, nil)
	return nil
}

// wrap makes an error name the file, once.
func (f *parquetFile) wrap(err error) error {
	var e *Error
	if errors.As(err, &e) {
		if e.File == "" {
			e.File = f.name
		}
		return err
	}
	return &Error{File: f.name, Offset: -1, Err: err}
}

func (f *parquetFile) Rows() int64           { return f.md.NumRows }
func (f *parquetFile) Size() int64           { return f.obj.Size() }
func (f *parquetFile) Schema() *arrow.Schema { return f.schema }
func (f *parquetFile) RowGroups() []RowGroup { return append([]RowGroup(nil), f.groups...) }
func (f *parquetFile) Close() error          { return f.obj.Close() }

func (f *parquetFile) KeyValue() map[string]string { return f.keyValue() }

func (f *parquetFile) AvroSchema() (*schema.Type, error) {
	kv := f.KeyValue()
	for _, key := range avroKeys {
		if text, ok := kv[key]; ok {
			t, err := schema.ParseString(text)
			if err != nil {
				return nil, f.wrap(fmt.Errorf("footer key %s: %w", key, err))
			}
			return t, nil
		}
	}
	t, err := schema.FromArrow(f.schema, f.md.Schema.Root().Name())
	if err != nil {
		return nil, f.wrap(err)
	}
	return t, nil
}

func (f *parquetFile) Scan(ctx context.Context, o ScanOptions) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		if o.Exact && o.Filter != nil {
			f.scanExact(ctx, o, yield)
			return
		}
		for b, err := range f.ScanRows(ctx, o) {
			if !yield(b.RecordBatch, err) {
				return
			}
		}
	}
}
