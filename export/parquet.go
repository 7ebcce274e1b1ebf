package export

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// ParquetOptions of NewParquet.
type ParquetOptions struct {
	Compression string // snappy, zstd, gzip, none
	Int96       bool   // timestamps as INT96, as Spark's default is
	// RowGroupRows bounds the rows of a row group; 0 means DefaultRowGroupRows.
	RowGroupRows int64
}

// DefaultRowGroupRows keeps what a writer holds of a row group at some tens of megabytes with common rows, and gives readers
// groups that are worth skipping.
const DefaultRowGroupRows = 1 << 20

// rowGroupBytes closes a row group that has grown this large in memory, whatever its rows: the bound of what is held.
const rowGroupBytes = 32 << 20

// ParquetFile writes batches as a Parquet file that Spark, Hive, DuckDB and PyArrow read: all columns optional, decimals as
// INT32, INT64 or fixed bytes by precision, timestamps INT64 microseconds in UTC, lists of three levels.
type ParquetFile struct {
	w      *pqarrow.FileWriter
	schema *arrow.Schema
	begun  bool
}

// NewParquet starts a file on w, which stays open when the file is closed.
func NewParquet(w io.Writer, schema *arrow.Schema, o ParquetOptions) (*ParquetFile, error) {
	codec := map[string]compress.Compression{
		"snappy": compress.Codecs.Snappy, "zstd": compress.Codecs.Zstd, "gzip": compress.Codecs.Gzip, "none": compress.Codecs.Uncompressed,
	}
	c, ok := codec[o.Compression]
	if !ok {
		return nil, fmt.Errorf("parquet compression %q: use snappy, zstd, gzip or none", o.Compression)
	}
	if o.RowGroupRows == 0 {
		o.RowGroupRows = DefaultRowGroupRows
	}
	optional := optionalSchema(schema)
	props := parquet.NewWriterProperties(parquet.WithCompression(c), parquet.WithMaxRowGroupLength(o.RowGroupRows),
		parquet.WithStoreDecimalAsInteger(true), parquet.WithCreatedBy("sluice"), parquet.WithRootName("spark_schema"))
	arrowProps := pqarrow.NewArrowWriterProperties(pqarrow.WithCoerceTimestamps(arrow.Microsecond), pqarrow.WithDeprecatedInt96Timestamps(o.Int96))
	fw, err := pqarrow.NewFileWriter(optional, nopCloser{w}, props, arrowProps)
	if err != nil {
		return nil, err
	}
	return &ParquetFile{w: fw, schema: optional}, nil
}

// Write appends a batch.
func (f *ParquetFile) Write(batch arrow.RecordBatch) error {
	same := array.NewRecordBatch(f.schema, batch.Columns(), batch.NumRows())
	defer same.Release()
	if f.begun && f.w.RowGroupTotalBytesWritten() > rowGroupBytes {
		f.w.NewBufferedRowGroup()
	}
	f.begun = true
	return f.w.WriteBuffered(same)
}

// Close completes the file.
func (f *ParquetFile) Close() error { return f.w.Close() }

// nopCloser keeps the Parquet writer from closing what it writes to.
type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// optionalSchema makes all columns nullable, as Spark does when it writes.
func optionalSchema(s *arrow.Schema) *arrow.Schema {
	fields := make([]arrow.Field, s.NumFields())
	for i, f := range s.Fields() {
		fields[i] = arrow.Field{Name: f.Name, Type: f.Type, Nullable: true}
	}
	return arrow.NewSchema(fields, nil)
}
