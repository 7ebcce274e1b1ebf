package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/sluicelake/sluice/hudi/encode"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/read"
	"github.com/sluicelake/sluice/orc"
	"github.com/sluicelake/sluice/storage"
)

// maxOpen bounds the output files that one task holds open. Beyond it the one that was written to least recently is
// completed, and its folder gets another file when more rows come for it.
const maxOpen = 64

// sink spreads the rows of one task over its output files: one, or one for each partition folder.
type sink struct {
	ctx    context.Context
	job    *job
	number int
	open   map[string]*output // by folder
	recent []string           // folders of open, least recently written first
	parts  map[string]int     // files begun in each folder
	done   []wrote
}

// output is one file on its way to the target.
type output struct {
	file rowFile
	body *storage.Writer
	rows int64
}

func (o *output) write(batch arrow.RecordBatch) error {
	o.rows += batch.NumRows()
	return o.file.Write(batch)
}

// rowFile writes batches in one format. Close completes what it wrote and leaves the writer below open.
type rowFile interface {
	Write(arrow.RecordBatch) error
	Close() error
}

func newSink(ctx context.Context, j *job, number int) *sink {
	return &sink{ctx: ctx, job: j, number: number, open: map[string]*output{}, parts: map[string]int{}}
}

// drain writes all rows of the slices and returns the files. After an error nothing that is open stays.
func (s *sink) drain(r *read.Reader, slices []filegroup.Slice, rows func(int64)) (files []wrote, err error) {
	defer func() {
		if err != nil {
			for _, o := range s.open {
				o.body.Abort()
			}
		}
	}()
	for _, sl := range slices {
		for batch, err := range r.Scan(s.ctx, sl) {
			if err != nil {
				return nil, err
			}
			err = s.write(batch)
			rows(batch.NumRows())
			batch.Release()
			if err != nil {
				return nil, err
			}
		}
	}
	if len(s.parts) == 0 && len(s.job.layout.fields) == 0 { // no row: the file still says what the columns are
		if _, err := s.output("", r.Schema()); err != nil {
			return nil, err
		}
	}
	for dir := range s.open {
		if err := s.finish(dir); err != nil {
			return nil, err
		}
	}
	slicesByName(s.done)
	return s.done, nil
}

func slicesByName(in []wrote) {
	slices.SortFunc(in, func(a, b wrote) int { return strings.Compare(a.Name, b.Name) })
}

func (s *sink) write(batch arrow.RecordBatch) error {
	if len(s.job.layout.fields) == 0 {
		o, err := s.output("", batch.Schema())
		if err != nil {
			return err
		}
		return o.write(batch)
	}
	keep := len(s.job.layout.keep)
	folders := s.folders(batch, keep)
	rest := columnsUpTo(batch, keep)
	defer rest.Release()
	for _, dir := range sortedKeys(folders) {
		if err := s.writeFolder(dir, rest, folders[dir]); err != nil {
			return err
		}
	}
	return nil
}

// folders sorts the rows of a batch by output folder: row numbers in order.
func (s *sink) folders(batch arrow.RecordBatch, keep int) map[string][]int32 {
	out := map[string][]int32{}
	var b strings.Builder
	for row := range int(batch.NumRows()) {
		b.Reset()
		for i, name := range s.job.layout.names {
			if i > 0 {
				b.WriteByte('/')
			}
			folder(&b, name, batch.Column(keep+i), row, s.job.cfg.Zone)
		}
		out[b.String()] = append(out[b.String()], int32(row))
	}
	return out
}

func columnsUpTo(batch arrow.RecordBatch, n int) arrow.RecordBatch {
	schema := arrow.NewSchema(batch.Schema().Fields()[:n], nil)
	return array.NewRecordBatch(schema, batch.Columns()[:n], batch.NumRows())
}

func sortedKeys(m map[string][]int32) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func (s *sink) writeFolder(dir string, batch arrow.RecordBatch, rows []int32) error {
	o, err := s.output(dir, batch.Schema())
	if err != nil {
		return err
	}
	if len(rows) == int(batch.NumRows()) {
		return o.write(batch)
	}
	b := array.NewInt32Builder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendValues(rows, nil)
	indices := b.NewArray()
	defer indices.Release()
	columns := make([]arrow.Array, batch.NumCols())
	defer func() {
		for _, c := range columns {
			if c != nil {
				c.Release()
			}
		}
	}()
	for i, c := range batch.Columns() {
		if columns[i], err = compute.TakeArray(s.ctx, c, indices); err != nil {
			return fmt.Errorf("column %s: %w", batch.ColumnName(i), err)
		}
	}
	part := array.NewRecordBatch(batch.Schema(), columns, int64(len(rows)))
	defer part.Release()
	return o.write(part)
}

// output gives the open file of a folder.
func (s *sink) output(dir string, schema *arrow.Schema) (*output, error) {
	if o := s.open[dir]; o != nil {
		s.touch(dir)
		return o, nil
	}
	if len(s.open) >= maxOpen {
		if err := s.finish(s.recent[0]); err != nil {
			return nil, err
		}
	}
	body := storage.Create(s.ctx, s.job.target, s.next(dir, s.job.cfg.Compression), storage.PutOptions{})
	file, err := newRowFile(&s.job.cfg, schema, body)
	if err != nil {
		body.Abort()
		return nil, err
	}
	o := &output{file: file, body: body}
	s.open[dir] = o
	s.touch(dir)
	return o, nil
}

// next names the next file of a folder.
func (s *sink) next(dir, compression string) string {
	name := s.job.fileName(dir, s.number, s.parts[dir], compression)
	s.parts[dir]++
	return name
}

func (s *sink) touch(dir string) {
	if n := len(s.recent); n > 0 && s.recent[n-1] == dir {
		return
	}
	s.recent = append(slices.DeleteFunc(s.recent, func(d string) bool { return d == dir }), dir)
}

// finish completes the open file of a folder.
func (s *sink) finish(dir string) error {
	o := s.open[dir]
	delete(s.open, dir)
	s.recent = slices.DeleteFunc(s.recent, func(d string) bool { return d == dir })
	if err := o.file.Close(); err != nil {
		o.body.Abort()
		return err
	}
	if err := o.body.Close(); err != nil {
		return err
	}
	s.done = append(s.done, wrote{Name: o.body.Info().Name, Size: o.body.Info().Size, Rows: o.rows})
	return nil
}

// newRowFile starts a file of the export's format on a writer.
func newRowFile(c *Config, schema *arrow.Schema, w io.Writer) (rowFile, error) {
	opts := encode.Options{Style: encode.Spark, Zone: c.Zone}
	switch c.Format {
	case Parquet:
		return NewParquet(w, schema, ParquetOptions{Compression: c.Compression, Int96: c.Timestamps == Int96})
	case ORC:
		return newORC(w, schema, c.Compression)
	case JSON:
		return compressed(c.Compression, w, func(w io.Writer) (rowFile, error) { return NewJSON(w, schema, opts) })
	case CSV:
		return compressed(c.Compression, w, func(w io.Writer) (rowFile, error) { return NewCSV(w, schema, opts) })
	}
	return nil, fmt.Errorf("format %s has no files of rows", c.Format)
}

// orcStripe bounds what an ORC file on its way holds: with the reading side beside it some 150 MiB for each task.
const orcStripe = 32 << 20

// newORC starts an ORC file with the timestamps that Spark and Hive read: plain ones, a clock in UTC.
func newORC(w io.Writer, schema *arrow.Schema, codec string) (rowFile, error) {
	codecs := map[string]orc.Compression{"snappy": orc.Snappy, "zlib": orc.Zlib, "lz4": orc.LZ4, "zstd": orc.ZSTD, "none": orc.None}
	return orc.NewWriter(w, optionalSchema(schema), orc.WriterOptions{Compression: codecs[codec], StripeBytes: orcStripe})
}

// squeezed is a row file with a compressor between it and the writer.
type squeezed struct {
	rowFile
	z io.Closer
}

func (s squeezed) Close() error { return errors.Join(s.rowFile.Close(), s.z.Close()) }

func compressed(codec string, w io.Writer, file func(io.Writer) (rowFile, error)) (rowFile, error) {
	var z io.WriteCloser
	switch codec {
	case "gzip":
		z = gzip.NewWriter(w)
	case "zstd":
		var err error
		if z, err = zstd.NewWriter(w); err != nil {
			return nil, err
		}
	default:
		return file(w)
	}
	f, err := file(z)
	if err != nil {
		return nil, err
	}
	return squeezed{f, z}, nil
}
