package logfile

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/storage"
)

// parquetRecords reads a block whose content is a whole Parquet file.
func (r Ref) parquetRecords(ctx context.Context, obj storage.Object, o RecordOptions, yield func(arrow.RecordBatch) bool) (err error) {
	defer func() { // the Parquet library panics on some damaged files
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: parquet: %v", ErrFormat, p)
		}
	}()
	pf, err := file.NewParquetReader(r.section(ctx, obj), file.WithReadProps(parquet.NewReaderProperties(o.Alloc)))
	if err != nil {
		return fmt.Errorf("parquet: %w", err)
	}
	defer func() { _ = pf.Close() }()
	ar, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{BatchSize: int64(o.BatchRows)}, o.Alloc)
	if err != nil {
		return fmt.Errorf("parquet: %w", err)
	}
	columns, from, wanted, err := r.parquetColumns(ar, o)
	if err != nil {
		return err
	}
	resolve, err := r.resolution(from, wanted, o)
	if err != nil {
		return err
	}
	rows, err := ar.GetRecordReader(ctx, columns, nil)
	if err != nil {
		return fmt.Errorf("parquet: %w", err)
	}
	defer rows.Release()
	for rows.Next() {
		out, err := resolve.Batch(o.Alloc, rows.RecordBatch())
		if err != nil {
			return err
		}
		if !yield(out) {
			return nil
		}
	}
	return rows.Err()
}

// parquetColumns gives the leaf columns to read, the schema they make, and the wanted one.
func (r Ref) parquetColumns(ar *pqarrow.FileReader, o RecordOptions) (leaves []int, from, wanted *arrow.Schema, err error) {
	all, err := ar.Schema()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("parquet: %w", err)
	}
	var writer *schema.Type
	if o.Reader == nil {
		if writer, err = r.WriterSchema(); err != nil {
			return nil, nil, nil, err
		}
	}
	if wanted, err = o.wanted(writer); err != nil {
		return nil, nil, nil, err
	}
	return nil, all, wanted, nil
}
