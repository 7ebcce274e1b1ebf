package basefile

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	pq "github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/sluicelake/sluice/hudi/bloom"
	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/storage"
	"golang.org/x/sync/errgroup"
)

// The keys of WriterOptions.Set, all below "hoodie.".
const (
	keyCodec        = "hoodie.parquet.compression.codec"
	keyBlockSize    = "hoodie.parquet.block.size"
	keyPageSize     = "hoodie.parquet.page.size"
	keyDictionary   = "hoodie.parquet.dictionary.enabled"
	keyBloomKind    = "hoodie.bloom.index.filter.type"
	keyBloomEntries = "hoodie.index.bloom.num_entries"
	keyBloomFPP     = "hoodie.index.bloom.fpp"
	keyBloomLimit   = "hoodie.bloom.index.filter.dynamic.max.entries"
	keyMetaFields   = "hoodie.populate.meta.fields"
)

// The defaults of Apache Hudi.
const (
	DefaultRowGroupBytes = 120 << 20
	DefaultPageBytes     = 1 << 20
)

// createdBy has the form that Java readers take apart. It is no parquet-mr, so they don't look for that one's old bugs.
const createdBy = "sluice version 1.0.0"

// WriterOptions of [Create]. Schema alone is needed.
type WriterOptions struct {
	// Schema is the Avro record of the rows with the meta columns in front (schema.WithMeta): it names the columns, says which
	// may be null, and goes into the footer.
	Schema *schema.Type
	// Codec of the pages: "gzip" (which "" is), "snappy", "zstd", "uncompressed". Level is the codec's own, 0 its default here.
	Codec string
	Level int
	// RowGroupBytes is the size at which a row group is closed, PageBytes that of a page and of a dictionary; 0 for the defaults.
	// A row group is held in memory, compressed, until it is closed.
	RowGroupBytes int64
	PageBytes     int64
	// PlainOnly switches dictionaries off.
	PlainOnly bool
	// Bloom is the filter over the record keys. Nil leaves the filter and the key range out of the footer, as Apache Hudi does
	// for tables without meta fields.
	Bloom *BloomOptions
	// Stamp makes the meta columns, for [Writer.WritePicked]; nil: rows bring theirs along.
	Stamp *Stamp
	// Parallel columns are encoded at once; 0 and 1: one after the other. Files are the better unit of parallel work.
	Parallel int
	// Alloc makes the buffers; nil is memory.DefaultAllocator.
	Alloc memory.Allocator
}

// BloomOptions are the arguments of [bloom.New].
type BloomOptions struct {
	Kind    bloom.Kind
	Entries int
	FPP     float64
	Limit   int
}

// DefaultBloom is the filter that Apache Hudi makes without options.
func DefaultBloom() *BloomOptions {
	return &BloomOptions{Kind: bloom.DynamicV0, Entries: bloom.DefaultEntries, FPP: bloom.DefaultFPP, Limit: bloom.DefaultMaxEntries}
}

// Set takes the options that a writer of Apache Hudi looks at from a write configuration: hoodie.parquet.*, the bloom filter's,
// and hoodie.populate.meta.fields. Options that are absent take the defaults of Apache Hudi.
func (o *WriterOptions) Set(props *config.Properties) error {
	r := optionReader{props: props}
	o.Codec = r.text(keyCodec, "gzip")
	o.RowGroupBytes = r.integer(keyBlockSize, DefaultRowGroupBytes)
	o.PageBytes = r.integer(keyPageSize, DefaultPageBytes)
	o.PlainOnly = r.text(keyDictionary, "true") == "false"
	o.Bloom = nil
	if r.text(keyMetaFields, "true") != "false" {
		b := DefaultBloom()
		b.Entries = int(r.integer(keyBloomEntries, int64(b.Entries)))
		b.Limit = int(r.integer(keyBloomLimit, int64(b.Limit)))
		b.FPP = r.float(keyBloomFPP, b.FPP)
		var err error
		if b.Kind, err = bloom.ParseKind(strings.ToUpper(r.text(keyBloomKind, "DYNAMIC_V0"))); err != nil {
			r.err = errors.Join(r.err, fmt.Errorf("%s: %w", keyBloomKind, err))
		}
		o.Bloom = b
	}
	return r.err
}

type optionReader struct {
	props *config.Properties
	err   error
}

func (r *optionReader) text(key, absent string) string {
	if v, ok := config.LookupValue(r.props, key); ok && strings.TrimSpace(v) != "" {
		return strings.ToLower(strings.TrimSpace(v))
	}
	return absent
}

func (r *optionReader) integer(key string, absent int64) int64 {
	v, err := strconv.ParseInt(r.text(key, strconv.FormatInt(absent, 10)), 10, 64)
	if err == nil && v <= 0 {
		err = errors.New("must be above 0")
	}
	if err != nil {
		r.err = errors.Join(r.err, fmt.Errorf("%s: %w", key, err))
	}
	return v
}

func (r *optionReader) float(key string, absent float64) float64 {
	v, err := strconv.ParseFloat(r.text(key, strconv.FormatFloat(absent, 'g', -1, 64)), 64)
	if err != nil {
		r.err = errors.Join(r.err, fmt.Errorf("%s: %w", key, err))
	}
	return v
}

// Summary describes the rows of a file that was written.
type Summary struct {
	Rows int64
	// MinKey and MaxKey are the record keys at both ends, in the order of Java's strings; empty without rows or keys.
	MinKey, MaxKey string
	// CopiedRows of Rows were copied as they lay compressed in the old file ([Rewrite]).
	CopiedRows int64
}

// Writer writes one base file that Apache Hudi accepts as its own: see [Create]. It is for one goroutine.
type Writer struct {
	name    string
	options WriterOptions
	columns *writeColumns
	keys    keyNotes
	stamped *stamped // nil: rows bring their meta columns along
	put     *storage.Writer
	sink    *sink
	shop    *workshop
	props   *parquet.WriterProperties
	end     fileEnd
	rows    int64

	// Of the open row group, and what a row takes in it: the group ends near its wanted size.
	groupRows, groupBytes int64
	rowBytes              float64

	closed bool
	err    error
}

// Create begins the base file name, which appears whole when Close returns nil. Always defer Abort.
//
// The file has the message name of the Avro record, three-level lists (which alone hold null elements and survive every
// release, table format 11), maps of key_value, decimals in the fixed of their schema, and the footer keys of Apache Hudi's own Avro
// writer (table format 5.2).
func Create(ctx context.Context, store storage.Store, name string, o WriterOptions) (*Writer, error) {
	w := &Writer{name: name, options: o}
	if err := w.prepare(); err != nil {
		return nil, w.wrap(err)
	}
	w.put = storage.Create(ctx, store, name, storage.PutOptions{})
	w.sink = &sink{to: bufio.NewWriterSize(w.put, 256<<10)}
	if _, err := w.sink.Write([]byte(magic)); err != nil {
		return nil, w.fail(err)
	}
	return w, nil
}

func (w *Writer) prepare() error {
	if w.options.RowGroupBytes <= 0 {
		w.options.RowGroupBytes = DefaultRowGroupBytes
	}
	if w.options.PageBytes <= 0 {
		w.options.PageBytes = DefaultPageBytes
	}
	if w.options.Alloc == nil {
		w.options.Alloc = memory.DefaultAllocator
	}
	codec, level, err := codecOf(w.options.Codec, w.options.Level)
	if err != nil {
		return err
	}
	if w.columns, err = newWriteColumns(w.options.Schema); err != nil {
		return err
	}
	w.shop = &workshop{alloc: w.options.Alloc, codec: codec, level: level, pageBytes: int(min(w.options.PageBytes, math.MaxInt32/2))}
	for _, l := range w.columns.leaves {
		l.chunk.open(w.shop, w.options.dictionary(w.columns.schema.Field(l.column).Name))
	}
	w.props = w.options.properties(codec)
	w.end.schema = pq.NewSchema(w.columns.root)
	w.end.own = metadata.NewFileMetadataBuilder(w.end.schema, w.props, nil)
	if w.options.Stamp != nil {
		w.stamped = newStamped(w.options.Alloc, w.columns.schema, *w.options.Stamp)
	}
	return w.keys.init(w.columns.schema, w.options.Bloom)
}

// properties are what the Parquet library has to know to make the footer.
func (o *WriterOptions) properties(codec compress.Compression) *parquet.WriterProperties {
	return parquet.NewWriterProperties(parquet.WithAllocator(o.Alloc), parquet.WithVersion(parquet.V1_0), parquet.WithCreatedBy(createdBy),
		parquet.WithCompression(codec), parquet.WithDictionaryDefault(!o.PlainOnly))
}

// The levels that are taken when none is asked for: gzip's fastest makes files some eight in a hundred larger than its middle, in
// three quarters of the time.
const (
	gzipLevel = 1
	zstdLevel = 3
)

func codecOf(name string, level int) (compress.Compression, int, error) {
	switch strings.ToLower(name) {
	case "", "gzip":
		if level == 0 {
			level = gzipLevel
		}
		if level < 1 || level > 9 {
			return 0, 0, fmt.Errorf("gzip has levels from 1 to 9, not %d", level)
		}
		return compress.Codecs.Gzip, level, nil
	case "zstd":
		if level == 0 {
			level = zstdLevel
		}
		return compress.Codecs.Zstd, level, nil
	case "snappy":
		return compress.Codecs.Snappy, compress.DefaultCompressionLevel, nil
	case "uncompressed", "none":
		return compress.Codecs.Uncompressed, compress.DefaultCompressionLevel, nil
	}
	return 0, 0, fmt.Errorf("compression codec %q: %w; gzip, snappy, zstd and uncompressed are written", name, ErrUnsupported)
}

// Write adds the rows of a batch whose columns are those of the schema, meta columns first, in the types that
// schema.Type.Arrow gives; texts but record keys may be run-end encoded (see [Constant] and [WithMeta]). The caller keeps the batch and may release it when Write returns.
func (w *Writer) Write(batch arrow.RecordBatch) error {
	if w.err != nil {
		return w.err
	}
	if err := w.columns.check(batch.Schema()); err != nil {
		return w.fail(err)
	}
	return w.writeRuns(rowSet{batches: []arrow.RecordBatch{batch}, runs: []rowRun{{rows: batch.NumRows()}}})
}

// Picked is rows of a batch: those that Rows names, in its order, or all when it is nil.
type Picked struct {
	Batch arrow.RecordBatch
	Rows  []int32
}

// WritePicked adds rows of several batches, one after the other, and makes their meta columns (see [WriterOptions]). The batches have
// the record key, under its name, and the user's columns, in one place in all of them; further columns are left away. The caller keeps
// the batches and may release them when WritePicked returns.
func (w *Writer) WritePicked(rows []Picked) error {
	if w.err != nil {
		return w.err
	}
	if w.stamped == nil {
		return w.fail(errors.New("a writer without a stamp makes no meta columns"))
	}
	set := rowSet{batches: make([]arrow.RecordBatch, len(rows)), runs: make([]rowRun, len(rows))}
	for i, r := range rows {
		if err := w.stamped.check(w.columns.schema, r.Batch.Schema()); err != nil {
			return w.fail(err)
		}
		set.batches[i] = r.Batch
		set.runs[i] = rowRun{batch: i, rows: r.Batch.NumRows(), pick: r.Rows}
		if r.Rows != nil {
			set.runs[i].rows = int64(len(r.Rows))
		}
	}
	set.places = w.stamped.places
	return w.writeRuns(set)
}

// rowRun is a run of rows of one of several batches: those from row on, or, of those that pick names, the ones from row on.
type rowRun struct {
	batch     int
	row, rows int64
	pick      []int32
}

// at is the row of the batch that the i-th row of the run is.
func (r *rowRun) at(i int) int {
	if r.pick != nil {
		return int(r.pick[int(r.row)+i])
	}
	return int(r.row) + i
}

// rowSet is rows of several batches, in the order of the runs.
type rowSet struct {
	batches []arrow.RecordBatch
	runs    []rowRun
	places  []int         // of the file's columns in the batches, -1: not there; nil: each in its own place
	made    []arrow.Array // the columns that are not there, with a value for each row of the set, or more
}

func (s *rowSet) rows() (n int64) {
	for i := range s.runs {
		n += s.runs[i].rows
	}
	return n
}

// place of a column of the file in the batches.
func (s *rowSet) place(column int) int {
	if s.places == nil {
		return column
	}
	return s.places[column]
}

// sliceRows are encoded at most, and firstSlice in a new file, between two looks at the size of the row group.
const (
	sliceRows  = 16 << 10
	firstSlice = 1024
)

// slice is how many rows to encode before the next look: what the row group still takes by the size of the rows so far.
func (w *Writer) slice() int64 {
	if w.rowBytes <= 0 {
		return firstSlice
	}
	return max(min(int64(float64(w.options.RowGroupBytes-w.groupBytes)/w.rowBytes), sliceRows), 32)
}

// writeRuns adds the rows of a set without putting them together first.
func (w *Writer) writeRuns(set rowSet) error {
	if w.err != nil {
		return w.err
	}
	for runs := set.runs; len(runs) > 0; {
		set.runs, runs = cutRuns(runs, w.slice())
		if err := w.writeSlice(set); err != nil {
			return w.fail(err)
		}
	}
	return nil
}

// cutRuns takes about n rows off the front.
func cutRuns(runs []rowRun, n int64) (now, rest []rowRun) {
	for i := range runs {
		if n -= runs[i].rows; n < 0 {
			first, second := runs[i], runs[i]
			first.rows += n
			second.row, second.rows = first.row+first.rows, -n
			now = append(runs[:i:i], first)
			return now, append([]rowRun{second}, runs[i+1:]...)
		}
		if n == 0 {
			return runs[:i+1], runs[i+1:]
		}
	}
	return runs, nil
}

func (w *Writer) writeSlice(set rowSet) error {
	rows := set.rows()
	if rows == 0 {
		return nil
	}
	if set.places != nil {
		var err error
		if set.made, err = w.stamped.columns(w.rows, int(rows)); err != nil {
			return err
		}
		defer w.stamped.done()
	}
	if err := w.encode(set); err != nil {
		return err
	}
	w.rows += rows
	w.groupRows += rows
	w.groupBytes = w.buffered()
	w.rowBytes = float64(w.groupBytes) / float64(w.groupRows)
	if w.groupBytes < w.options.RowGroupBytes {
		return nil
	}
	return w.endGroup()
}

// encode gives a slice of rows to the columns, and its keys to the filter.
func (w *Writer) encode(set rowSet) error {
	if w.options.Parallel <= 1 {
		if err := w.keys.add(&set, w.rows); err != nil {
			return err
		}
		return w.columns.write(&set, 1, w.rows)
	}
	var g errgroup.Group
	g.Go(func() error { return w.keys.add(&set, w.rows) })
	err := w.columns.write(&set, w.options.Parallel, w.rows)
	return errors.Join(g.Wait(), err)
}

// buffered is about how many bytes the open row group would have.
func (w *Writer) buffered() (total int64) {
	for _, l := range w.columns.leaves {
		total += w.columns.encoder(l).buffered()
	}
	return total
}

// Size is about how many bytes the file would have if it were closed now: what hoodie.parquet.max.file.size is held against.
func (w *Writer) Size() int64 { return w.sink.at + w.buffered() }

// Rows that were written so far.
func (w *Writer) Rows() int64 { return w.rows }

// Close writes the footer and stores the file.
func (w *Writer) Close() (storage.Info, Summary, error) {
	if w.err != nil {
		return storage.Info{}, Summary{}, w.err
	}
	if w.closed {
		return storage.Info{}, Summary{}, w.wrap(errors.New("closed twice"))
	}
	w.closed = true
	if err := w.finish(); err != nil {
		return storage.Info{}, Summary{}, w.fail(err)
	}
	if err := w.put.Close(); err != nil {
		return storage.Info{}, Summary{}, w.fail(err)
	}
	s := Summary{Rows: w.rows, MinKey: w.keys.min, MaxKey: w.keys.max}
	for _, p := range w.end.parts {
		s.CopiedRows += p.rows
	}
	return w.put.Info(), s, nil
}

func (w *Writer) finish() error {
	if err := w.endGroup(); err != nil {
		return err
	}
	w.release()
	if err := w.writeEnd(); err != nil {
		return err
	}
	return w.sink.to.Flush()
}

// Abort gives the file up, unless it was closed: it does not appear. It may be called always, and again.
func (w *Writer) Abort() {
	if w.err == nil && !w.closed {
		w.err = w.wrap(errors.New("the writer was aborted"))
	}
	w.release()
	w.put.Abort()
}

func (w *Writer) fail(err error) error {
	w.err = w.wrap(err)
	w.release()
	w.put.Abort()
	return w.err
}

// release gives the memory of the open row group back.
func (w *Writer) release() {
	w.columns.newChunk()
	w.shop.close()
	if w.stamped != nil {
		w.stamped.release()
	}
}

func (w *Writer) wrap(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return &Error{File: w.name, Offset: -1, Where: "writing", Err: err}
}

// sink counts the bytes of the file.
type sink struct {
	to *bufio.Writer
	at int64
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	s.at += int64(n)
	return n, err
}
