package logfile

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowmem "github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/hfile"
	"github.com/sluicelake/sluice/hudi/logfile/avrocodec"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/storage"
)

// RecordOptions of Ref.Records.
type RecordOptions struct {
	// Reader is the table's schema with meta columns, to which the block's columns are brought (schema.Resolve); nil keeps the
	// block's own columns and types.
	Reader *schema.Type
	// Columns names the wanted columns of Reader (of the block without a Reader), in the order wanted; nil is all.
	Columns []string
	// Names and SchemaOnRead: see schema.ResolveOptions.
	Names        map[string]string
	SchemaOnRead bool
	// Alloc makes the batches; nil is Go's own memory.
	Alloc arrowmem.Allocator
	// BatchRows bounds the rows of a batch (default 8192), BatchBytes the encoded bytes they came from (default 8 MiB; a batch
	// has one row at least).
	BatchRows  int
	BatchBytes int
	// Key is the text field of HFile values that holds the HFile's key (default "key").
	Key string
}

const (
	defaultBatchRows  = 8192
	defaultBatchBytes = 8 << 20
	// rowsHint is what the first batch has room for: most blocks are small.
	rowsHint = 256
)

// WriterSchema is the schema in the block's header, with meta columns.
func (r Ref) WriterSchema() (*schema.Type, error) {
	if r.Header.Schema == "" {
		return nil, r.wrap(fmt.Errorf("%w: no schema in its header", ErrFormat))
	}
	t, err := r.schemas.parse(r.Header.Schema)
	if err != nil {
		return nil, r.wrap(err)
	}
	return t, nil
}

// PartialColumns names the columns that the rows of a partial-update block have; all others keep their stored values. False:
// the block's rows are whole.
func (r Ref) PartialColumns() ([]string, bool, error) {
	if !r.Header.IsPartial() {
		return nil, false, nil
	}
	t, err := r.WriterSchema()
	if err != nil {
		return nil, true, err
	}
	names := make([]string, len(t.Fields))
	for i, f := range t.Fields {
		names[i] = f.Name
	}
	return names, true, nil
}

// Records streams a data block's rows in their order, as batches of the wanted columns; the receiver releases each. An Avro
// block's content passes through a bounded buffer. A delete block has none, and the removed keys of an HFile block come from
// Deletes. Columns that a partial-update block lacks are null.
//
// An error names file, block and record; batches before it are sound.
func (r Ref) Records(ctx context.Context, o RecordOptions) iter.Seq2[arrow.RecordBatch, error] {
	if o.Alloc == nil {
		o.Alloc = arrowmem.DefaultAllocator
	}
	if o.BatchRows <= 0 {
		o.BatchRows = defaultBatchRows
	}
	if o.BatchBytes <= 0 {
		o.BatchBytes = defaultBatchBytes
	}
	if o.Key == "" {
		o.Key = "key"
	}
	return func(yield func(arrow.RecordBatch, error) bool) {
		err := r.records(ctx, o, func(b arrow.RecordBatch) bool { return yield(b, nil) })
		if err != nil {
			yield(nil, r.wrap(err))
		}
	}
}

func (r Ref) wrap(err error) error {
	return fmt.Errorf("log file %s: %s block at offset %d: %w", r.File, r.Type, r.Offset, err)
}

func (r Ref) records(ctx context.Context, o RecordOptions, yield func(arrow.RecordBatch) bool) error {
	if r.Type == Delete {
		return nil
	}
	obj, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = obj.Close() }()
	switch r.Type {
	case AvroData, CDCData, HFileData:
		writer, err := r.WriterSchema()
		if err != nil {
			return err
		}
		a, err := newAssembler(r, writer, o, yield)
		if err != nil {
			return err
		}
		defer a.rows.Release()
		if r.Type == HFileData {
			return r.hfileRecords(ctx, obj, a)
		}
		return r.avroRecords(ctx, obj, a)
	case ParquetData:
		return r.parquetRecords(ctx, obj, o, yield)
	}
	return fmt.Errorf("%w: it holds no records", ErrUnsupported)
}

func (r Ref) open(ctx context.Context) (storage.Object, error) {
	if r.whole != nil {
		return memory{r.whole}, nil
	}
	obj, err := r.store.Open(ctx, r.File)
	if err != nil {
		return nil, err
	}
	if obj.Size() < r.End {
		_ = obj.Close()
		return nil, fmt.Errorf("%w: the file shrank to %d bytes", storage.ErrChanged, obj.Size())
	}
	return obj, nil
}

// avroRecords reads int32 version, int32 count, and for each record int32 length and Avro binary.
func (r Ref) avroRecords(ctx context.Context, obj storage.Object, a *assembler) error {
	for record, err := range r.rawRecords(ctx, obj) {
		if err != nil {
			return err
		}
		if more, err := a.add(nil, record); err != nil || !more {
			return err
		}
	}
	return a.flush()
}

// RawRecords gives the undecoded records of an Avro block, each valid until the next, to be read with WriterSchema.
func (r Ref) RawRecords(ctx context.Context) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		obj, err := r.open(ctx)
		if err != nil {
			yield(nil, r.wrap(err))
			return
		}
		defer func() { _ = obj.Close() }()
		for record, err := range r.rawRecords(ctx, obj) {
			if err != nil {
				err = r.wrap(err)
			}
			if !yield(record, err) {
				return
			}
		}
	}
}

func (r Ref) rawRecords(ctx context.Context, obj storage.Object) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if r.Type != AvroData && r.Type != CDCData {
			yield(nil, fmt.Errorf("%w: it holds no Avro records", ErrUnsupported))
			return
		}
		c := r.content(ctx, obj)
		version, err := c.int32()
		if err == nil && (version < 0 || version > 3) {
			err = fmt.Errorf("%w: version %d of the content; a newer release wrote it", ErrUnsupported, version)
		}
		var count int32
		if err == nil {
			count, err = c.int32()
		}
		if err == nil && (count < 0 || int64(count) > c.left()/4) {
			err = fmt.Errorf("%w: %d records in %d bytes", ErrFormat, count, c.left())
		}
		for i := int32(0); i < count && err == nil; i++ {
			var record []byte
			if record, err = c.sized(); err != nil {
				err = fmt.Errorf("record %d of %d: %w", i, count, err)
			} else if !yield(record, nil) {
				return
			}
		}
		if err == nil && c.left() > 0 {
			err = fmt.Errorf("%w: %d bytes behind the last of %d records", ErrFormat, c.left(), count)
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// HFile opens the content of an HFile block, for look-ups of single keys. close ends the use of the reader.
func (r Ref) HFile(ctx context.Context) (reader *hfile.Reader, closeFile func() error, err error) {
	if r.Type != HFileData {
		return nil, nil, r.wrap(fmt.Errorf("%w: it is no HFile", ErrUnsupported))
	}
	obj, err := r.open(ctx)
	if err != nil {
		return nil, nil, r.wrap(err)
	}
	h, err := r.openHFile(ctx, obj)
	if err != nil {
		_ = obj.Close()
		return nil, nil, r.wrap(err)
	}
	return h, obj.Close, nil
}

func (r Ref) openHFile(ctx context.Context, obj storage.Object) (*hfile.Reader, error) {
	return hfile.Open(ctx, r.section(ctx, obj), r.ContentLength)
}

func (r Ref) hfileRecords(ctx context.Context, obj storage.Object, a *assembler) error {
	h, err := r.openHFile(ctx, obj)
	if err != nil {
		return err
	}
	for e, err := range h.Scan(ctx) {
		if err != nil {
			return err
		}
		if len(e.Value) == 0 {
			continue // a removed key
		}
		if more, err := a.add(e.Key, e.Value); err != nil || !more {
			return err
		}
	}
	return a.flush()
}

// section is the content as a file of its own.
func (r Ref) section(ctx context.Context, obj storage.Object) *io.SectionReader {
	return io.NewSectionReader(objectAt{ctx, obj}, r.ContentOffset, r.ContentLength)
}

// objectAt lends a context to libraries that read without one.
type objectAt struct {
	ctx context.Context
	obj storage.Object
}

func (o objectAt) ReadAt(p []byte, off int64) (int, error) { return o.obj.ReadAt(o.ctx, p, off) }

// assembler turns encoded records into batches of the wanted columns.
type assembler struct {
	opts    RecordOptions
	rows    *array.RecordBuilder
	decode  *avrocodec.Appender
	resolve *schema.Resolution
	yield   func(arrow.RecordBatch) bool
	bytes   int // that the rows in the builder were decoded from
	total   int
}

func newAssembler(r Ref, writer *schema.Type, o RecordOptions, yield func(arrow.RecordBatch) bool) (*assembler, error) {
	wanted, err := o.wanted(writer)
	if err != nil {
		return nil, err
	}
	d, err := avrocodec.Compile(writer, avrocodec.Options{Columns: wanted, Names: o.Names, Key: o.Key})
	if err != nil {
		return nil, err
	}
	a := &assembler{opts: o, yield: yield}
	if a.resolve, err = r.resolution(d.Schema(), wanted, o); err != nil {
		return nil, err
	}
	a.rows = d.NewBuilder(o.Alloc)
	if a.decode, err = d.Bind(a.rows); err != nil {
		a.rows.Release()
		return nil, err
	}
	a.decode.Reserve(min(o.BatchRows, rowsHint))
	return a, nil
}

// wanted is the schema of the batches.
func (o RecordOptions) wanted(writer *schema.Type) (*arrow.Schema, error) {
	reader := o.Reader
	if reader == nil {
		reader = writer
	}
	all, err := reader.Arrow()
	if err != nil || o.Columns == nil {
		return all, err
	}
	fields := make([]arrow.Field, len(o.Columns))
	for i, name := range o.Columns {
		at := all.FieldIndices(name)
		if len(at) == 0 {
			return nil, fmt.Errorf("%w: no column %q in the schema asked for", schema.ErrEvolution, name)
		}
		fields[i] = all.Field(at[0])
	}
	return arrow.NewSchema(fields, nil), nil
}

func (r Ref) resolution(from, wanted *arrow.Schema, o RecordOptions) (*schema.Resolution, error) {
	return schema.Resolve(from, wanted, schema.ResolveOptions{
		File: r.File, Table: o.Reader, Names: o.Names, SchemaOnRead: o.SchemaOnRead, NullForRequired: r.Header.IsPartial(),
	})
}

// add decodes one record and hands out a batch when it is full. more is false when the receiver wants none.
func (a *assembler) add(key, record []byte) (more bool, err error) {
	if err := a.decode.AppendKeyed(key, record); err != nil {
		return false, fmt.Errorf("record %d: %w", a.total, err)
	}
	a.total++
	a.bytes += len(record)
	if a.decode.Rows() < a.opts.BatchRows && a.bytes < a.opts.BatchBytes {
		return true, nil
	}
	if more, err = a.emit(); more {
		a.decode.Reserve(min(a.opts.BatchRows, defaultBatchRows))
	}
	return more, err
}

// flush hands out what is left.
func (a *assembler) flush() error {
	if a.decode.Rows() == 0 {
		return nil
	}
	_, err := a.emit()
	return err
}

func (a *assembler) emit() (more bool, err error) {
	a.bytes = 0
	batch := a.decode.NewBatch()
	defer batch.Release()
	if a.resolve.Same() {
		batch.Retain()
		return a.yield(batch), nil
	}
	out, err := a.resolve.Batch(a.opts.Alloc, batch)
	if err != nil {
		return false, err
	}
	return a.yield(out), nil
}

// content streams a block's content through a buffer.
type content struct {
	ctx  context.Context
	obj  storage.Object
	next int64 // offset of what is not in the buffer yet
	end  int64
	buf  []byte // not yet taken
	room []byte // memory behind buf
}

// contentRead is the size of the content buffer, unless one record is longer.
const contentRead = 4 << 20

func (r Ref) content(ctx context.Context, obj storage.Object) *content {
	c := &content{ctx: ctx, obj: obj, next: r.ContentOffset, end: r.ContentOffset + r.ContentLength}
	if m, ok := obj.(memory); ok {
		c.buf, c.next = m.data[c.next:c.end], c.end
	}
	return c
}

func (c *content) left() int64 { return int64(len(c.buf)) + c.end - c.next }

// fill makes at least n bytes available, n being no more than left.
func (c *content) fill(n int) error {
	if n <= len(c.buf) {
		return nil
	}
	size := int(min(int64(max(n, contentRead)), c.left()))
	have := len(c.buf)
	if cap(c.room) < size {
		c.room = append(make([]byte, 0, size), c.buf...)
	} else {
		copy(c.room[:have], c.buf) // moves to the front
	}
	c.buf = c.room[:size]
	if err := readFull(c.ctx, c.obj, c.buf[have:], c.next); err != nil {
		return err
	}
	c.next += int64(size - have)
	return nil
}

// take gives the next n bytes, valid until the next call.
func (c *content) take(n int64) ([]byte, error) {
	if n < 0 || n > c.left() {
		return nil, fmt.Errorf("%w: %d bytes at offset %d where %d are left", ErrFormat, n, c.end-c.left(), c.left())
	}
	if err := c.fill(int(n)); err != nil {
		return nil, err
	}
	out := c.buf[:n:n]
	c.buf = c.buf[n:]
	return out, nil
}

func (c *content) int32() (int32, error) {
	b, err := c.take(4)
	if err != nil {
		return 0, err
	}
	return int32(binary.BigEndian.Uint32(b)), nil
}

// sized reads an int32 length and as many bytes.
func (c *content) sized() ([]byte, error) {
	n, err := c.int32()
	if err != nil {
		return nil, err
	}
	return c.take(int64(n))
}
