package orc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// ScanOptions are the choices of one scan; the zero value reads everything.
type ScanOptions struct {
	// Columns are the names of the top columns to read, in the order that the batches shall have. nil: all. Only the bytes of
	// these are read.
	Columns []string
	// Keep is asked about each stripe, and then about each row group of the stripes that it keeps, with their statistics.
	// Where it says false the rows are not read: say so only where no row of the span can matter. Kept spans are read whole.
	Keep func(*Span) bool
	// Stripes are the positions of the stripes to read, ascending. nil: all.
	Stripes []int
}

// Scan gives the rows as batches, in the order of the file. The receiver releases each batch. The first error ends the scan.
func (r *Reader) Scan(ctx context.Context, opts ScanOptions) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		s, err := r.newScan(ctx, opts)
		if err == nil {
			defer s.codec.close()
			err = s.run(yield)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, fmt.Errorf("orc: %w", err))
		}
	}
}

// errStopped says that the receiver wants no more.
var errStopped = errors.New("stopped")

// scan is the state of one pass over the file.
type scan struct {
	ctx     context.Context
	r       *Reader
	opts    ScanOptions
	file    *file
	alloc   memory.Allocator
	mem     budget
	codec   decompressor
	schema  *arrow.Schema
	columns []*node // to read, in the order of the batches
	rows    int     // of a batch, at most

	window  int    // bytes that a stream fetches at once where the stripe is not read whole
	roomy   bool   // there is room for a whole chunk for every stream
	scratch []byte // otherwise, the one place to decompress in
	fetched []byte // the streams of a stripe that was read whole

	metadata [][]byte // StripeStatistics of each stripe, not parsed, once they were asked for
}

func (r *Reader) newScan(ctx context.Context, opts ScanOptions) (*scan, error) {
	s := &scan{ctx: ctx, r: r, opts: opts, file: &r.file, alloc: r.opts.Alloc, schema: r.schema}
	s.mem = budget{limit: r.opts.MaxMemory, used: r.held + int64(r.file.blockSize)} // with scratch
	s.codec.kind = r.ps.compression
	for _, i := range opts.Stripes {
		if i < 0 || i >= len(r.footer.stripes) {
			return nil, fmt.Errorf("there is no stripe %d among %d", i, len(r.footer.stripes))
		}
	}
	switch {
	case r.root.kind != kindStruct:
		s.columns = []*node{r.root}
	default:
		s.columns = r.root.children
	}
	if opts.Columns != nil {
		if err := s.project(opts.Columns); err != nil {
			return nil, err
		}
	}
	s.rows = s.batchRows()
	return s, nil
}

func (s *scan) project(names []string) error {
	all := s.columns
	s.columns = make([]*node, len(names))
	fields := make([]arrow.Field, len(names))
	for i, name := range names {
		at := s.schema.FieldIndices(name)
		if len(at) == 0 {
			return fmt.Errorf("there is no column %q in %s", name, s.r.Type())
		}
		s.columns[i] = all[at[0]]
		fields[i] = s.schema.Field(at[0])
	}
	s.schema = arrow.NewSchema(fields, nil)
	return nil
}

// batchRows chooses how many rows fit into the batch's share of the memory, by the sizes that the statistics tell.
func (s *scan) batchRows() int {
	rows := s.r.opts.BatchRows
	total := int64(0)
	for _, c := range s.columns {
		total += s.r.estimate(c)
	}
	per := total / max(s.r.footer.rows, 1)
	if most := s.mem.limit / 8 / max(per, 1); most < int64(rows) {
		rows = int(max(most, 1))
	}
	if rows > 8 {
		rows &^= 7 // whole bytes of bitmaps
	}
	return rows
}

// estimate gives the bytes that a column's values take in memory, about.
func (r *Reader) estimate(n *node) int64 {
	st := r.fileStatistics(n)
	values := int64(min(st.values, 1<<40))
	width := int64(1)
	switch n.kind {
	case kindShort:
		width = 2
	case kindInt, kindFloat, kindDate:
		width = 4
	case kindLong, kindDouble, kindTimestamp, kindTimestampInstant:
		width = 8
	case kindDecimal:
		width = 16
	case kindString, kindVarchar, kindChar, kindBinary:
		return values*4 + min(max(st.bytes, 0), 1<<50)
	case kindList, kindMap:
		width = 4
	}
	total := values * width
	for _, c := range n.children {
		total += r.estimate(c)
	}
	return min(total, 1<<56)
}

func (s *scan) run(yield func(arrow.RecordBatch, error) bool) error {
	stripes := s.opts.Stripes
	if stripes == nil {
		for i := range s.r.footer.stripes {
			stripes = append(stripes, i)
		}
	}
	first := make([]int64, len(s.r.footer.stripes)+1)
	for i := range s.r.footer.stripes {
		first[i+1] = first[i] + s.r.footer.stripes[i].rows
	}
	for _, i := range stripes {
		if s.r.footer.stripes[i].rows == 0 {
			continue
		}
		if err := s.stripe(i, first[i], yield); err != nil {
			if errors.Is(err, errStopped) {
				return err
			}
			return fmt.Errorf("stripe %d at file offset %d: %w", i, s.r.footer.stripes[i].offset, err)
		}
	}
	return nil
}

// span is a range of rows of a stripe.
type span struct{ from, to int64 }

// stripe reads one stripe.
func (s *scan) stripe(i int, firstRow int64, yield func(arrow.RecordBatch, error) bool) error {
	if s.opts.Keep != nil && !s.keepStripe(i, firstRow) {
		return nil
	}
	held := s.mem.used
	defer func() { s.mem.used, s.mem.batch = held, 0 }()
	st, err := s.openStripe(i, firstRow)
	if err != nil {
		return err
	}
	spans, err := st.spans()
	if err != nil || len(spans) == 0 {
		return err
	}
	if err := st.fetch(); err != nil {
		return err
	}
	inStripe := s.mem.used
	if err := st.build(); err != nil {
		return err
	}
	rows := s.rows
	for _, sp := range spans {
		if err := st.goTo(sp.from); err != nil {
			return err
		}
		for at := sp.from; at < sp.to; {
			if err := s.ctx.Err(); err != nil {
				return err
			}
			n := int(min(int64(rows), sp.to-at))
			batch, err := st.batch(n)
			if errors.Is(err, errBatch) && n > 1 {
				// The rows here are larger than the statistics promised: go back and take fewer.
				rows = max(n/8, 1)
				s.mem.used = inStripe
				if err = st.build(); err == nil {
					err = st.goTo(at)
				}
				if err == nil {
					continue
				}
			}
			if err != nil {
				return fmt.Errorf("rows %d to %d: %w", at, at+int64(n), err)
			}
			if !yield(batch, nil) {
				return errStopped
			}
			at += int64(n)
		}
	}
	return nil
}

// location is where a stream lies, and its bytes where they were fetched.
type location struct {
	at, length int64
	whole      []byte
}

type streamKey struct {
	column int
	kind   streamKind
}

// stripeScan is one open stripe.
type stripeScan struct {
	*scan
	index    int
	firstRow int64
	rows     int64
	footer   stripeFooter
	streams  map[streamKey]*location
	wanted   []bool // by column id: its data is read
	writer   *zone
	root     *structColumn
	all      []rooted // every column of the tree that is read, for seeking
	at       int64    // the row that the decoders stand at
	indexes  map[int][]rowIndexEntry
	blooms   map[int][]bloomFilter
}

// rooted is a decoder with its column.
type rooted struct {
	node *node
	col  column
}

func (s *scan) openStripe(i int, firstRow int64) (*stripeScan, error) {
	info := &s.r.footer.stripes[i]
	raw, err := s.r.section(&s.codec, &s.mem, info.offset+info.indexLength+info.dataLength, info.footerLength, "the stripe's footer")
	if err != nil {
		return nil, err
	}
	st := &stripeScan{scan: s, index: i, firstRow: firstRow, rows: info.rows}
	if st.footer, err = parseStripeFooter(raw, &s.mem); err != nil {
		return nil, fmt.Errorf("%w: the stripe's footer: %w", ErrFormat, err)
	}
	if st.footer.encrypted {
		return nil, fmt.Errorf("%w: encrypted columns", ErrUnsupported)
	}
	if len(st.footer.encodings) != len(s.r.footer.types) {
		return nil, fmt.Errorf("%w: the stripe's footer has %d encodings of %d columns", ErrFormat, len(st.footer.encodings), len(s.r.footer.types))
	}
	loc := s.r.opts.DefaultZone
	if st.footer.zone != "" {
		if loc, err = loadZone(st.footer.zone); err != nil {
			return nil, err
		}
	}
	st.writer = newZone(loc, s.r.footer.writer == writerJava || s.r.footer.writer == writerOurs)
	st.wanted = make([]bool, len(s.r.footer.types))
	st.wanted[0] = true
	for _, c := range s.columns {
		c.walk(func(n *node) { st.wanted[n.id] = true })
	}
	return st, st.locate(info)
}

// walk calls fn for the type and all below it.
func (n *node) walk(fn func(*node)) {
	fn(n)
	for _, c := range n.children {
		c.walk(fn)
	}
}

// locate computes where the streams of the columns that are read, and all index streams, lie.
func (st *stripeScan) locate(info *stripeInformation) error {
	st.streams = make(map[streamKey]*location)
	at, end := info.offset, info.offset+info.indexLength+info.dataLength
	for _, s := range st.footer.streams {
		if s.length > end-at {
			return fmt.Errorf("%w: the streams reach past the stripe's data, which end at file offset %d", ErrFormat, end)
		}
		if int64(s.column) < int64(len(st.wanted)) && (st.wanted[s.column] || s.kind.isIndex()) {
			key := streamKey{int(s.column), s.kind}
			if _, twice := st.streams[key]; twice {
				return fmt.Errorf("%w: two streams of kind %d for column %d", ErrFormat, s.kind, s.column)
			}
			st.streams[key] = &location{at: at, length: s.length}
		}
		at += s.length
	}
	return nil
}

// closeBy is how far two streams may be apart to be read at once.
const closeBy = 128 << 10

// fetch reads all streams of the stripe, where they fit, in few large reads; otherwise it decides on windows.
func (st *stripeScan) fetch() error {
	var list []*location
	total := int64(0)
	for k, l := range st.streams {
		if !k.kind.isIndex() && st.wanted[k.column] && l.length > 0 {
			list = append(list, l)
			total += l.length
		}
	}
	st.roomy = int64(len(list))*int64(st.file.blockSize) <= st.mem.limit/4
	if !st.roomy && st.scratch == nil {
		st.scratch = make([]byte, st.file.blockSize)
	}
	if total > st.mem.limit/4 {
		st.window = int(min(max(st.mem.limit/4/int64(len(list)), 4<<10), 1<<20))
		return nil
	}
	slices.SortFunc(list, func(a, b *location) int { return cmp.Compare(a.at, b.at) })
	return st.fetchAll(list)
}

func (st *stripeScan) fetchAll(list []*location) error {
	size := int64(0)
	for _, g := range groups(list) {
		size += g[len(g)-1].at + g[len(g)-1].length - g[0].at + slack
	}
	if err := st.mem.grow(size, "the streams of the stripe"); err != nil {
		return err
	}
	if int64(cap(st.fetched)) < size {
		st.fetched = make([]byte, size)
	}
	buf := st.fetched[:size]
	for _, g := range groups(list) {
		n := g[len(g)-1].at + g[len(g)-1].length - g[0].at
		if err := st.file.readAt(buf[:n], g[0].at); err != nil {
			return err
		}
		for _, l := range g {
			from := l.at - g[0].at
			l.whole = buf[from : from+l.length]
		}
		buf = buf[n+slack:]
	}
	return nil
}

// groups puts streams that lie close by one another together.
func groups(list []*location) (out [][]*location) {
	for i, l := range list {
		if i > 0 && l.at-(list[i-1].at+list[i-1].length) <= closeBy {
			out[len(out)-1] = append(out[len(out)-1], l)
			continue
		}
		out = append(out, []*location{l})
	}
	return out
}

// input opens a stream. One that is absent is empty: writers leave out streams without bytes.
func (st *stripeScan) input(n *node, kind streamKind) *input {
	in := &input{scan: st.scan, name: fmt.Sprintf("column %s, stream of kind %d", n.path, kind)}
	if l := st.streams[streamKey{n.id, kind}]; l != nil {
		in.start, in.end, in.next = l.at, l.at+l.length, l.at
		if l.whole != nil {
			in.whole, in.raw, in.next = l.whole, l.whole, in.end
		}
	}
	return in
}

func (st *stripeScan) has(n *node, kind streamKind) bool {
	return st.streams[streamKey{n.id, kind}] != nil
}

// build makes the decoders, at the stripe's first row.
func (st *stripeScan) build() error {
	st.all, st.at = st.all[:0], 0
	root := &structColumn{base: st.base(st.r.root)}
	root.dt = arrow.StructOf(st.schema.Fields()...)
	if st.r.root.kind != kindStruct {
		root.present = nil
	} else {
		st.all = append(st.all, rooted{st.r.root, root})
	}
	for i, n := range st.columns {
		c, err := st.column(n, st.schema.Field(i).Type)
		if err != nil {
			return err
		}
		root.children = append(root.children, c)
	}
	st.root = root
	return nil
}

func (st *stripeScan) base(n *node) base {
	b := base{scan: st.scan, node: n}
	if st.has(n, streamPresent) {
		b.present = &boolDecoder{bytes: byteDecoder{in: st.input(n, streamPresent)}}
	}
	return b
}

func (st *stripeScan) ints(n *node, kind streamKind, signed bool) *intDecoder {
	e := st.footer.encodings[n.id].kind
	return &intDecoder{in: st.input(n, kind), signed: signed, v2: e == encDirectV2 || e == encDictionaryV2}
}

// costOfDecoder is what the decoders of one column take: up to two of integers, with a run each.
const costOfDecoder = 10 << 10

// column makes the decoder of a type whose Arrow type is dt.
func (st *stripeScan) column(n *node, dt arrow.DataType) (column, error) {
	b := st.base(n)
	b.dt = dt
	e := st.footer.encodings[n.id]
	isText := n.kind == kindString || n.kind == kindVarchar || n.kind == kindChar
	if e.kind > encDictionaryV2 || (e.kind == encDictionary || e.kind == encDictionaryV2) && !isText {
		return nil, fmt.Errorf("%w: column %s, a %s, in encoding %d", ErrUnsupported, n.path, kindNames[n.kind], e.kind)
	}
	if err := st.mem.grow(costOfDecoder, "the decoders"); err != nil {
		return nil, err
	}
	at := len(st.all)
	st.all = append(st.all, rooted{node: n})
	c, err := st.decoder(n, b, e)
	if err != nil {
		return nil, err
	}
	st.all[at].col = c
	return c, nil
}

func (st *stripeScan) decoder(n *node, b base, e columnEncoding) (column, error) {
	switch n.kind {
	case kindBoolean:
		return &boolColumn{base: b, values: &boolDecoder{bytes: byteDecoder{in: st.input(n, streamData)}}}, nil
	case kindByte:
		return &byteColumn{base: b, values: &byteDecoder{in: st.input(n, streamData)}}, nil
	case kindShort:
		return &intColumn[int16]{base: b, values: st.ints(n, streamData, true), cast: cast16}, nil
	case kindInt:
		return &intColumn[int32]{base: b, values: st.ints(n, streamData, true), cast: cast32}, nil
	case kindLong:
		return &intColumn[int64]{base: b, values: st.ints(n, streamData, true), cast: cast64}, nil
	case kindDate:
		c := &intColumn[int32]{base: b, values: st.ints(n, streamData, true), cast: cast32}
		if st.r.hybrid() {
			c.after = rebaseDays
		}
		return c, nil
	case kindFloat:
		return &floatColumn{base: b, values: st.input(n, streamData), width: 4}, nil
	case kindDouble:
		return &floatColumn{base: b, values: st.input(n, streamData), width: 8}, nil
	case kindString, kindVarchar, kindChar, kindBinary:
		return st.textDecoder(n, b, e), nil
	case kindDecimal:
		return st.decimalDecoder(n, b), nil
	case kindTimestamp, kindTimestampInstant:
		return st.timestampDecoder(n, b), nil
	case kindList, kindMap:
		return st.listDecoder(n, b)
	}
	fields := b.dt.(*arrow.StructType)
	children := make([]column, len(n.children))
	for i, child := range n.children {
		c, err := st.column(child, fields.Field(i).Type)
		if err != nil {
			return nil, err
		}
		children[i] = c
	}
	if n.kind == kindUnion {
		return &unionColumn{base: b, tags: &byteDecoder{in: st.input(n, streamData)}, children: children}, nil
	}
	return &structColumn{base: b, children: children}, nil
}

func cast16(b *memory.Buffer) []int16 { return arrow.Int16Traits.CastFromBytes(b.Bytes()) }
func cast32(b *memory.Buffer) []int32 { return arrow.Int32Traits.CastFromBytes(b.Bytes()) }
func cast64(b *memory.Buffer) []int64 { return arrow.Int64Traits.CastFromBytes(b.Bytes()) }

func (st *stripeScan) textDecoder(n *node, b base, e columnEncoding) column {
	if e.kind == encDirect || e.kind == encDirectV2 {
		return &textColumn{base: b, lengths: st.ints(n, streamLength, false), values: st.input(n, streamData)}
	}
	return &dictColumn{
		base: b, refs: st.ints(n, streamData, false), lengths: st.ints(n, streamLength, false),
		values: st.input(n, streamDictionaryData), size: int(e.dictionarySize),
	}
}

// longDecimals is the greatest precision whose values fit 64 bits.
const longDecimals = 18

func (st *stripeScan) decimalDecoder(n *node, b base) column {
	if len(st.r.ps.version) > 0 && st.r.ps.version[0] == 1 && n.precision <= longDecimals {
		return &decimalColumn{base: b, short: &intDecoder{in: st.input(n, streamData), signed: true, v2: true}}
	}
	return &decimalColumn{base: b, values: st.input(n, streamData), scales: st.ints(n, streamSecondary, true)}
}

func (st *stripeScan) timestampDecoder(n *node, b base) column {
	rule := timestampRule{writer: st.writer, hybrid: st.r.hybrid(), nanos: st.r.opts.Nanoseconds}
	switch {
	case n.kind == kindTimestampInstant:
		rule.writer = newZone(time.UTC, false)
	case st.r.opts.Timestamps == Instants:
		// The reading of the clock is what Java's old calendar made of the moment; the moment is what its new one makes of that.
		rule.instant = newZone(st.writer.loc, false)
		if z := st.r.opts.SessionZone; z != nil {
			rule.instant = newZone(z, false)
		}
	}
	rule.base = rule.writer.base2015()
	return &timestampColumn{base: b, seconds: st.ints(n, streamData, true), nanos: st.ints(n, streamSecondary, false), rule: rule}
}

func (st *stripeScan) listDecoder(n *node, b base) (column, error) {
	c := &listColumn{base: b, lengths: st.ints(n, streamLength, false)}
	types := []arrow.DataType{}
	switch dt := b.dt.(type) {
	case *arrow.ListType:
		types = append(types, dt.Elem())
	case *arrow.MapType:
		types = append(types, dt.KeyType(), dt.ItemType())
		c.entries = dt.Elem()
	}
	for i, child := range n.children {
		col, err := st.column(child, types[i])
		if err != nil {
			return nil, err
		}
		c.children = append(c.children, col)
	}
	return c, nil
}

// batch makes the batch of the next n rows.
func (st *stripeScan) batch(n int) (arrow.RecordBatch, error) {
	st.mem.batch = 0
	data, err := st.root.read(n, nil)
	if err != nil {
		return nil, err
	}
	defer data.Release()
	st.at += int64(n)
	columns := make([]arrow.Array, len(data.Children()))
	for i, d := range data.Children() {
		columns[i] = array.MakeFromData(d)
		defer columns[i].Release()
	}
	return array.NewRecordBatch(st.schema, columns, int64(n)), nil
}

// goTo moves the decoders to a row: by the row index where there is one, and then by reading on.
func (st *stripeScan) goTo(row int64) error {
	if row == st.at {
		return nil
	}
	stride := int64(st.r.footer.rowIndexStride)
	if stride > 0 && row/stride > st.at/stride || row < st.at {
		ok, err := st.seek(row, stride)
		if err != nil {
			return err
		}
		if !ok && row < st.at {
			if err := st.build(); err != nil {
				return err
			}
		}
	}
	for st.at < row {
		if err := st.ctx.Err(); err != nil {
			return err
		}
		n := int(min(row-st.at, 1<<16))
		if err := st.root.skip(n); err != nil {
			return fmt.Errorf("skipping to row %d: %w", row, err)
		}
		st.at += int64(n)
	}
	return nil
}

// seek moves all decoders to the start of the row group of row; false where a column has no index.
func (st *stripeScan) seek(row, stride int64) (bool, error) {
	if stride <= 0 {
		return false, nil
	}
	group := row / stride
	for _, c := range st.all {
		entries, err := st.rowIndex(c.node.id)
		if err != nil {
			return false, err
		}
		if group >= int64(len(entries)) || len(entries[group].positions) == 0 && st.hasData(c.node.id) {
			return false, nil
		}
	}
	for _, c := range st.all {
		p := &positions{list: st.indexes[c.node.id][group].positions, compressed: st.r.ps.compression != None, name: c.node.path}
		if err := c.col.seek(p); err != nil {
			return false, err
		}
	}
	st.at = group * stride
	return true, nil
}

// hasData tells whether any stream of the column but its index is in the stripe.
func (st *stripeScan) hasData(id int) bool {
	for k, l := range st.streams {
		if k.column == id && !k.kind.isIndex() && l.length > 0 {
			return true
		}
	}
	return false
}
