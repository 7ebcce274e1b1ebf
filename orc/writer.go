package orc

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Defaults of WriterOptions.
const (
	// DefaultStripeBytes is the stripe size that readers of large files are tuned for.
	DefaultStripeBytes = 64 << 20
	// DefaultRowIndexStride is the row group of all writers.
	DefaultRowIndexStride = 10_000
	// DefaultBlockSize is the chunk size of Java's writers.
	DefaultBlockSize = 256 << 10
	// DefaultDictionaryShare is the share of distinct values up to which a dictionary pays.
	DefaultDictionaryShare = 0.5
)

// WriterOptions are the choices of a writer; the zero value writes without compression.
type WriterOptions struct {
	// Compression is the codec: None, Zlib, Snappy, LZ4 or ZSTD.
	Compression Compression
	// StripeBytes is about how many bytes a stripe has, and so what the writer holds. Default: DefaultStripeBytes.
	StripeBytes int64
	// RowIndexStride is how many rows an entry of the row index stands for; negative writes no index.
	// Default: DefaultRowIndexStride.
	RowIndexStride int
	// BlockSize is how many bytes are compressed at once, at most 8 MiB - 1. Default: DefaultBlockSize.
	BlockSize int
	// DictionaryShare is the greatest share of distinct values among a stripe's values of a text column for which a
	// dictionary is written; negative writes none. Default: DefaultDictionaryShare.
	DictionaryShare float64
	// InstantTimestamps writes timestamps with a zone, which are moments, as "timestamp with local time zone". Spark (3.5) and
	// older readers cannot open such a file, so that otherwise they are plain timestamps, the reading of a clock in Zone, as
	// Spark and Hudi write them.
	InstantTimestamps bool
	// Zone is the writer's time zone, for plain timestamps. Default: UTC, in which every reading of a clock exists.
	Zone *time.Location
	// UserMetadata goes into the footer.
	UserMetadata map[string]string
}

func (o *WriterOptions) setDefaults() error {
	if o.StripeBytes <= 0 {
		o.StripeBytes = DefaultStripeBytes
	}
	if o.RowIndexStride == 0 {
		o.RowIndexStride = DefaultRowIndexStride
	}
	o.RowIndexStride = max(o.RowIndexStride, 0)
	if o.BlockSize <= 0 {
		o.BlockSize = DefaultBlockSize
	}
	if o.BlockSize > maxChunk {
		return fmt.Errorf("chunks of %d bytes; the most are %d", o.BlockSize, maxChunk)
	}
	if o.DictionaryShare == 0 {
		o.DictionaryShare = DefaultDictionaryShare
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	if o.Zone == time.Local {
		return errors.New("the zone must have a name that readers on other machines know, not Local")
	}
	return nil
}

// Writer writes one file. It is not safe for use by several goroutines at once.
type Writer struct {
	w      io.Writer
	opts   WriterOptions
	schema *arrow.Schema
	codec  *compressor
	root   *node
	zone   *zone
	tree   *structWriter
	all    []*columnWriter // by column id

	at      int64 // bytes written
	rows    int64 // in the stripe
	inGroup int   // rows in the row group
	footer  footer
	stripes [][][]byte // statistics of each stripe's columns
	err     error      // the first failure; everything after it fails too
	closed  bool
}

// software goes into the footer's description of the writer.
const software = "sluice"

// NewWriter begins a file of the given schema: the inverse of the table in the package documentation. Beyond it,
//
//	uint8 uint16 uint32             smallint int bigint
//	large and view forms            as the ordinary ones
//	fixed-size binary               binary
//	date64                          date
//	time32 time64                   int bigint, the count of the unit
//	fixed-size and large lists      array
//	dictionaries                    as their values
//	extension types                 as their storage
//
// Other types (uint64, float16, decimal256, intervals, unions, null, run-end encoded) are refused with ErrUnsupported.
func NewWriter(w io.Writer, schema *arrow.Schema, opts WriterOptions) (*Writer, error) {
	if err := opts.setDefaults(); err != nil {
		return nil, fmt.Errorf("orc: writing: %w", err)
	}
	codec, err := newCompressor(opts.Compression)
	if err != nil {
		return nil, fmt.Errorf("orc: writing: %w", err)
	}
	wr := &Writer{w: w, opts: opts, schema: schema, codec: codec, zone: newZone(opts.Zone, true)}
	b := treeBuilder{opts: &wr.opts}
	if wr.root, err = b.root(schema); err != nil {
		return nil, fmt.Errorf("orc: writing: %w", err)
	}
	wr.footer.types = b.types
	cols, err := wr.columns(wr.root, arrow.StructOf(schema.Fields()...))
	if err != nil {
		return nil, fmt.Errorf("orc: writing: %w", err)
	}
	wr.tree = cols.(*structWriter)
	return wr, wr.write([]byte(magic))
}

// treeBuilder makes the ORC type of an Arrow schema.
type treeBuilder struct {
	opts  *WriterOptions
	types []typeMessage
}

func (b *treeBuilder) root(schema *arrow.Schema) (*node, error) {
	return b.node(arrow.StructOf(schema.Fields()...), "", 0)
}

func (b *treeBuilder) node(dt arrow.DataType, path string, depth int) (*node, error) {
	kind, children, err := b.kind(dt)
	if err != nil {
		return nil, fmt.Errorf("%w: column %q of type %s", err, path, dt)
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: column %q is nested deeper than %d levels", ErrUnsupported, path, maxDepth)
	}
	n := &node{id: len(b.types), kind: kind, path: path}
	b.types = append(b.types, typeMessage{kind: kind})
	t := typeMessage{kind: kind}
	if d, ok := storage(dt).(arrow.DecimalType); ok {
		n.precision, n.scale = d.GetPrecision(), d.GetScale()
		t.precision, t.scale = uint32(n.precision), uint32(n.scale)
	}
	for i, f := range children {
		name := f.Name
		if kind != kindStruct {
			name = (&typeMessage{kind: kind}).childName(i)
		} else {
			t.names = append(t.names, f.Name)
		}
		child, err := b.node(f.Type, joinPath(path, name), depth+1)
		if err != nil {
			return nil, err
		}
		n.children = append(n.children, child)
		t.subtypes = append(t.subtypes, uint64(child.id))
	}
	n.names = t.names
	b.types[n.id] = t
	return n, nil
}

// storage looks through dictionaries and extension types.
func storage(dt arrow.DataType) arrow.DataType {
	for {
		switch t := dt.(type) {
		case *arrow.DictionaryType:
			dt = t.ValueType
		case arrow.ExtensionType:
			dt = t.StorageType()
		default:
			return dt
		}
	}
}

// kind gives the ORC kind of an Arrow type, and its children.
func (b *treeBuilder) kind(dt arrow.DataType) (typeKind, []arrow.Field, error) {
	switch t := storage(dt).(type) {
	case *arrow.BooleanType:
		return kindBoolean, nil, nil
	case *arrow.Int8Type:
		return kindByte, nil, nil
	case *arrow.Int16Type, *arrow.Uint8Type:
		return kindShort, nil, nil
	case *arrow.Int32Type, *arrow.Uint16Type, *arrow.Time32Type:
		return kindInt, nil, nil
	case *arrow.Int64Type, *arrow.Uint32Type, *arrow.Time64Type:
		return kindLong, nil, nil
	case *arrow.Float32Type:
		return kindFloat, nil, nil
	case *arrow.Float64Type:
		return kindDouble, nil, nil
	case *arrow.StringType, *arrow.LargeStringType, *arrow.StringViewType:
		return kindString, nil, nil
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.BinaryViewType, *arrow.FixedSizeBinaryType:
		return kindBinary, nil, nil
	case *arrow.Date32Type, *arrow.Date64Type:
		return kindDate, nil, nil
	case *arrow.TimestampType:
		if t.TimeZone != "" && b.opts.InstantTimestamps {
			return kindTimestampInstant, nil, nil
		}
		return kindTimestamp, nil, nil
	case *arrow.Decimal128Type:
		if t.Scale < 0 || t.Scale > t.Precision || t.Precision < 1 || t.Precision > maxPrecision {
			break
		}
		return kindDecimal, nil, nil
	case *arrow.MapType:
		return kindMap, []arrow.Field{t.KeyField(), t.ItemField()}, nil
	case *arrow.StructType:
		return kindStruct, t.Fields(), nil
	case arrow.ListLikeType:
		switch t.(type) {
		case *arrow.ListType, *arrow.LargeListType, *arrow.FixedSizeListType:
			return kindList, []arrow.Field{t.ElemField()}, nil
		}
	}
	return 0, nil, ErrUnsupported
}

// Write appends the rows of a batch, whose columns have the types of the schema. The batch stays the caller's. After an
// error the file is lost.
func (w *Writer) Write(batch arrow.RecordBatch) error {
	if w.closed {
		return errors.New("orc: writing to a closed file")
	}
	if w.err != nil {
		return w.err
	}
	if w.err = w.append(batch); w.err != nil {
		w.err = fmt.Errorf("orc: writing rows from %d on: %w", w.footer.rows+w.rows, w.err)
	}
	return w.err
}

func (w *Writer) append(batch arrow.RecordBatch) error {
	if int(batch.NumCols()) != w.schema.NumFields() {
		return fmt.Errorf("a batch of %d columns for a schema of %d", batch.NumCols(), w.schema.NumFields())
	}
	for i, f := range w.schema.Fields() {
		if dt := batch.Column(i).DataType(); !arrow.TypeEqual(dt, f.Type) {
			return fmt.Errorf("column %q is %s, the schema says %s", f.Name, dt, f.Type)
		}
	}
	rows := int(batch.NumRows())
	for from := 0; from < rows; {
		n := rows - from
		if stride := w.opts.RowIndexStride; stride > 0 {
			n = min(n, stride-w.inGroup)
		} else {
			n = min(n, DefaultRowIndexStride) // to look at the size now and then
		}
		if err := w.appendRows(batch, from, from+n); err != nil {
			return err
		}
		from += n
	}
	return nil
}

func (w *Writer) appendRows(batch arrow.RecordBatch, from, to int) error {
	if w.rows == 0 {
		for _, c := range w.all {
			c.begin()
		}
	}
	where := []span{{int64(from), int64(to)}}
	w.tree.notNull(to - from)
	for i, child := range w.tree.children {
		if err := child.write(batch.Column(i), where); err != nil {
			return err
		}
	}
	w.rows += int64(to - from)
	w.inGroup += to - from
	if w.inGroup == w.opts.RowIndexStride {
		w.endGroup()
	}
	size := int64(0)
	for _, c := range w.all {
		size += c.size()
	}
	if size >= w.opts.StripeBytes {
		return w.endStripe()
	}
	return nil
}

// endGroup ends the row group, and begins the next one.
func (w *Writer) endGroup() {
	w.inGroup = 0
	for _, c := range w.all {
		c.endGroup()
	}
}

// endStripe writes the stripe.
func (w *Writer) endStripe() error {
	if w.rows == 0 {
		return nil
	}
	if w.inGroup > 0 {
		w.endGroup()
	}
	info := stripeInformation{offset: w.at, rows: w.rows}
	sf := stripeFooter{zone: zoneName(w.opts.Zone)}
	statistics := make([][]byte, len(w.all))
	var streams []streamBytes
	for i, c := range w.all {
		list, err := c.finish()
		if err != nil {
			return err
		}
		streams = append(streams, list...)
		sf.encodings = append(sf.encodings, c.encoding)
		statistics[i] = c.stripe.marshal(c.node)
	}
	if w.opts.RowIndexStride > 0 {
		for _, c := range w.all {
			index := &output{codec: w.codec, limit: w.opts.BlockSize}
			index.write(c.rowIndex())
			index.spill()
			if index.err != nil {
				return index.err
			}
			sf.streams = append(sf.streams, streamInfo{kind: streamRowIndex, column: uint32(c.node.id), length: int64(len(index.out))})
			info.indexLength += int64(len(index.out))
			if err := w.write(index.out); err != nil {
				return err
			}
		}
	}
	for _, s := range streams {
		sf.streams = append(sf.streams, s.streamInfo)
		info.dataLength += s.length
		if err := w.write(s.out.out); err != nil {
			return err
		}
		s.out.reset()
	}
	n, err := w.section(sf.marshal())
	if err != nil {
		return err
	}
	info.footerLength = n
	w.footer.stripes = append(w.footer.stripes, info)
	w.footer.rows += w.rows
	w.stripes = append(w.stripes, statistics)
	for _, c := range w.all {
		c.endStripe()
	}
	w.rows = 0
	return nil
}

// zoneName is how the stripe names the writer's zone.
func zoneName(loc *time.Location) string {
	if loc == time.UTC {
		return "UTC"
	}
	return loc.String()
}

// section writes a protocol buffer, compressed.
func (w *Writer) section(b []byte) (int64, error) {
	o := &output{codec: w.codec, limit: w.opts.BlockSize}
	o.write(b)
	o.spill()
	if o.err != nil {
		return 0, o.err
	}
	return int64(len(o.out)), w.write(o.out)
}

func (w *Writer) write(b []byte) error {
	n, err := w.w.Write(b)
	w.at += int64(n)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("at file offset %d: %w", w.at, err)
	}
	return nil
}

// Close writes the last stripe and the file's tail. It does not close the io.Writer.
func (w *Writer) Close() error {
	if w.closed {
		return w.err
	}
	w.closed = true
	if w.codec.zstd != nil {
		defer w.codec.zstd.Close()
	}
	if w.err != nil {
		return w.err
	}
	if w.err = w.finish(); w.err != nil {
		w.err = fmt.Errorf("orc: ending the file: %w", w.err)
	}
	return w.err
}

func (w *Writer) finish() error {
	if err := w.endStripe(); err != nil {
		return err
	}
	w.footer.contentLength = w.at
	var metadata message
	for _, columns := range w.stripes {
		var m message
		for _, c := range columns {
			m.bytes(1, c)
		}
		metadata.bytes(1, m)
	}
	ps := postScript{
		compression: w.opts.Compression, blockSize: int64(w.opts.BlockSize), version: []uint64{0, 12},
		writerVersion: writerVersion, magic: magic,
	}
	var err error
	if ps.metadataLength, err = w.section(metadata); err != nil {
		return err
	}
	for _, c := range w.all {
		w.footer.statistics = append(w.footer.statistics, c.file.marshal(c.node))
	}
	for name, value := range w.opts.UserMetadata {
		w.footer.metadata = append(w.footer.metadata, userMetadata{name, []byte(value)})
	}
	slices.SortFunc(w.footer.metadata, func(a, b userMetadata) int { return cmp.Compare(a.name, b.name) })
	w.footer.rowIndexStride = uint32(w.opts.RowIndexStride)
	w.footer.writer, w.footer.calendar, w.footer.software = writerOurs, calendarProleptic, software
	if ps.footerLength, err = w.section(w.footer.marshal()); err != nil {
		return err
	}
	tail := ps.marshal()
	return w.write(append(tail, byte(len(tail))))
}

// Rows counts the rows written so far.
func (w *Writer) Rows() int64 { return w.footer.rows + w.rows }

// plainStorage looks through extension arrays.
func plainStorage(a arrow.Array) arrow.Array {
	for {
		e, ok := a.(array.ExtensionArray)
		if !ok {
			return a
		}
		a = e.Storage()
	}
}

func utcZone() *time.Location { return time.UTC }

// takeDictionary makes the plain array of a dictionary array.
func takeDictionary(d *array.Dictionary) (arrow.Array, error) {
	values := d.Dictionary()
	parts := make([]arrow.Array, 0, d.Len())
	defer func() {
		for _, p := range parts {
			p.Release()
		}
	}()
	var null arrow.Array
	for i := 0; i < d.Len(); i++ {
		if d.IsNull(i) {
			if null == nil {
				null = array.MakeArrayOfNull(memory.DefaultAllocator, values.DataType(), 1)
				defer null.Release()
			}
			null.Retain()
			parts = append(parts, null)
			continue
		}
		at := int64(d.GetValueIndex(i))
		parts = append(parts, array.NewSlice(values, at, at+1))
	}
	if len(parts) == 0 {
		return array.NewSlice(values, 0, 0), nil
	}
	return array.Concatenate(parts, memory.DefaultAllocator)
}
