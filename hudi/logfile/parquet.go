package logfile

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/storage"
)

// parquetRecords reads a block whose content is a whole Parquet file.
func (r Ref) parquetRecords(ctx context.Context, obj storage.Object, o RecordOptions, yield func(arrow.RecordBatch) bool) error {
	f, err := basefile.OpenObject(ctx, r.File, sectionObject{obj, r.ContentOffset, r.ContentLength}, basefile.Options{Alloc: o.Alloc})
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	var writer *schema.Type
	if o.Reader == nil {
		if writer, err = r.WriterSchema(); err != nil {
			return err
		}
	}
	wanted, err := o.wanted(writer)
	if err != nil {
		return err
	}
	columns := wanted
	if r.Header.IsPartial() {
		if columns, err = present(f.Schema(), wanted, o.Names); err != nil {
			return err
		}
	}
	resolve, err := r.resolution(columns, wanted, o)
	if err != nil {
		return err
	}
	scan := basefile.ScanOptions{Columns: columns, Table: o.Reader, Names: o.Names, SchemaOnRead: o.SchemaOnRead, BatchRows: o.BatchRows, Alloc: o.Alloc}
	for batch, err := range f.Scan(ctx, scan) {
		if err != nil {
			return err
		}
		out, err := resolve.Batch(o.Alloc, batch)
		batch.Release()
		if err != nil {
			return err
		}
		if !yield(out) {
			return nil
		}
	}
	return nil
}

// present keeps the wanted columns that the file has.
func present(file, wanted *arrow.Schema, names map[string]string) (*arrow.Schema, error) {
	var fields []arrow.Field
	for _, f := range wanted.Fields() {
		name := f.Name
		if of, renamed := names[f.Name]; renamed {
			name = of
		}
		at, err := schema.FindField(file.Fields(), name)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
		if at >= 0 {
			fields = append(fields, f)
		}
	}
	return arrow.NewSchema(fields, nil), nil
}

// sectionObject is a part of an object as an object of its own. Closing it leaves the whole open.
type sectionObject struct {
	storage.Object
	off, size int64
}

func (s sectionObject) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 || off > s.size {
		return 0, fmt.Errorf("%w: offset %d of a section of %d bytes", ErrFormat, off, s.size)
	}
	short := int64(len(p)) > s.size-off
	if short {
		p = p[:s.size-off]
	}
	n, err := s.Object.ReadAt(ctx, p, s.off+off)
	if short && err == nil {
		err = io.EOF
	}
	return n, err
}

func (s sectionObject) Size() int64  { return s.size }
func (s sectionObject) Close() error { return nil }
