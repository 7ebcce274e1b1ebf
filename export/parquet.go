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
	// RowGroupBytes closes a row group that has grown this large in memory; 0 means 32 MiB.
	RowGroupBytes int64
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
	out    io.Writer
	o      ParquetOptions
	schema *arrow.Schema
}

// NewParquet starts a file on w, which stays open when the file is closed.
func NewParquet(w io.Writer, schema *arrow.Schema, o ParquetOptions) (*ParquetFile, error) {
	if _, ok := parquetCodec(o.Compression); !ok {
		return nil, fmt.Errorf("parquet compression %q: use snappy, zstd, gzip or none", o.Compression)
	}
	if o.RowGroupRows == 0 {
		o.RowGroupRows = DefaultRowGroupRows
	}
	if o.RowGroupBytes == 0 {
		o.RowGroupBytes = rowGroupBytes
	}
	f := &ParquetFile{out: w, o: o, schema: optionalSchema(schema)}
	_, err := pqarrow.ToParquet(f.schema, f.properties(nil), f.arrowProperties())
	return f, err
}

func (f *ParquetFile) arrowProperties() pqarrow.ArrowWriterProperties {
	return pqarrow.NewArrowWriterProperties(pqarrow.WithCoerceTimestamps(arrow.Microsecond), pqarrow.WithDeprecatedInt96Timestamps(f.o.Int96))
}

func parquetCodec(name string) (codec compress.Compression, ok bool) {
	codec, ok = map[string]compress.Compression{
		"snappy": compress.Codecs.Snappy, "zstd": compress.Codecs.Zstd, "gzip": compress.Codecs.Gzip, "none": compress.Codecs.Uncompressed,
	}[name]
	return codec, ok
}

// properties are those of the file. Columns in plain get no dictionary.
func (f *ParquetFile) properties(plain []string) *parquet.WriterProperties {
	codec, _ := parquetCodec(f.o.Compression)
	all := []parquet.WriterProperty{
		parquet.WithCompression(codec), parquet.WithMaxRowGroupLength(f.o.RowGroupRows), parquet.WithStoreDecimalAsInteger(true),
		parquet.WithCreatedBy("sluice"), parquet.WithRootName("spark_schema"),
	}
	for _, name := range plain {
		all = append(all, parquet.WithDictionaryFor(name, false))
	}
	return parquet.NewWriterProperties(all...)
}

// begin starts the file. The first rows tell which columns a dictionary would be of no use to: building one that is given up
// costs more than all else.
func (f *ParquetFile) begin(first arrow.RecordBatch) (err error) {
	var plain []string
	if first != nil {
		for i, c := range first.Columns() {
			if distinctive(c) {
				plain = append(plain, first.ColumnName(i))
			}
		}
	}
	f.w, err = pqarrow.NewFileWriter(f.schema, nopCloser{f.out}, f.properties(plain), f.arrowProperties())
	return err
}

// Write appends a batch.
func (f *ParquetFile) Write(batch arrow.RecordBatch) error {
	same := array.NewRecordBatch(f.schema, batch.Columns(), batch.NumRows())
	defer same.Release()
	switch {
	case f.w == nil:
		if err := f.begin(same); err != nil {
			return err
		}
	case f.w.RowGroupTotalBytesWritten() > f.o.RowGroupBytes:
		f.w.NewBufferedRowGroup()
	}
	return f.w.WriteBuffered(same)
}

// Close completes the file.
func (f *ParquetFile) Close() error {
	if f.w == nil {
		if err := f.begin(nil); err != nil {
			return err
		}
	}
	return f.w.Close()
}

const (
	// sampleRows of the first batch tell whether a column's values repeat. Fewer rows than minSample tell nothing.
	sampleRows = 4096
	minSample  = 256
)

// distinctive reports whether most values of a column occur once only.
func distinctive(col arrow.Array) bool {
	n := min(col.Len(), sampleRows)
	if n < minSample {
		return false
	}
	switch c := col.(type) {
	case *array.Int64:
		return mostDiffer(c.Int64Values()[:n])
	case *array.Int32:
		return mostDiffer(c.Int32Values()[:n])
	case *array.Float64:
		return mostDiffer(c.Float64Values()[:n])
	case *array.Float32:
		return mostDiffer(c.Float32Values()[:n])
	case *array.Timestamp:
		return mostDiffer(c.TimestampValues()[:n])
	case *array.Decimal128:
		return mostDiffer(c.Values()[:n])
	case *array.String:
		values := make([]string, n)
		for i := range values {
			values[i] = c.Value(i)
		}
		return mostDiffer(values)
	}
	return false
}

func mostDiffer[T comparable](values []T) bool {
	seen := make(map[T]struct{}, len(values))
	for _, v := range values {
		seen[v] = struct{}{}
	}
	return len(seen) > len(values)*3/4
}

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
