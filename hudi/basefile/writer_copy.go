package basefile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	pq "github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/sluicelake/sluice/hudi/schema"
)

// copiedGroup is a row group of the new file that was copied: its metadata with offsets in the new file, alone in a FileMetaData,
// and its page indexes, one entry for each column, nil where there is none.
type copiedGroup struct {
	after   int // row groups of our own before it
	rows    int64
	md      *metadata.FileMetaData
	indexes []pageIndex
}

// pageIndex is the pair of indexes of one column chunk: the offsets in it are those of the new file.
type pageIndex struct{ column, offset []byte }

// groupCopier copies row groups of an old file whose columns lie just as those of the new file.
type groupCopier struct {
	w        *Writer
	old      *parquetFile
	name     string // for _hoodie_file_name; empty: copied as well
	nameLeaf int
	read     *source
}

// newGroupCopier gives nil where row groups can't be copied.
func newGroupCopier(w *Writer, old File, o RewriteOptions) *groupCopier {
	f, ok := old.(*parquetFile)
	if !ok || len(o.Scan.Names) > 0 || f.oldWriter() {
		return nil
	}
	want := pq.NewSchema(w.columns.root)
	have := f.md.Schema
	if want.NumColumns() != have.NumColumns() {
		return nil
	}
	c := &groupCopier{w: w, old: f, name: o.FileName, nameLeaf: -1}
	for i := range want.NumColumns() {
		if !sameLeaf(want.Column(i), have.Column(i)) {
			return nil
		}
		if want.Column(i).Path() == schema.FileName {
			c.nameLeaf = i
		}
	}
	return c
}

// oldWriter: readers look at the statistics of some old writers with distrust, which they would not know to do in a file of ours.
func (f *parquetFile) oldWriter() bool {
	return f.md.WriterVersion().LessThan(metadata.NewAppVersionExplicit("parquet-mr", 1, 10, 0))
}

// sameLeaf: the bytes of a column chunk mean the same in both files.
func sameLeaf(a, b *pq.Column) bool {
	fixed := a.PhysicalType() == parquet.Types.FixedLenByteArray
	if a.PhysicalType() != b.PhysicalType() || fixed && a.TypeLength() != b.TypeLength() || a.Path() != b.Path() || !sameMeaning(a.LogicalType(), b.LogicalType()) {
		return false
	}
	x, y := a.SchemaNode(), b.SchemaNode()
	for range a.ColumnPath() {
		if x.RepetitionType() != y.RepetitionType() {
			return false
		}
		x, y = x.Parent(), y.Parent()
	}
	return true
}

// sameMeaning compares annotations without the marks of how they were written.
func sameMeaning(a, b pq.LogicalType) bool {
	switch x := a.(type) {
	case pq.TimestampLogicalType:
		y, ok := b.(pq.TimestampLogicalType)
		return ok && x.IsAdjustedToUTC() == y.IsAdjustedToUTC() && x.TimeUnit() == y.TimeUnit()
	case pq.NoLogicalType, pq.UnknownLogicalType:
		return b == nil || b.IsNone() || !b.IsValid()
	}
	return a.Equals(b)
}

// copy appends row group g of the old file to the new one.
func (c *groupCopier) copy(ctx context.Context, g int) error {
	if err := c.w.start(nil, nil); err != nil {
		return err
	}
	if err := c.w.endGroup(); err != nil {
		return err
	}
	rows := c.old.md.RowGroups[g].NumRows
	if err := c.noteKeys(ctx, g); err != nil {
		return err
	}
	sub, err := c.old.md.Subset([]int{g})
	if err != nil {
		return err
	}
	group := *sub.RowGroups[0]
	group.Columns = slices.Clone(group.Columns)
	sub.RowGroups[0] = &group
	part := copiedGroup{after: len(c.w.shifts), rows: rows, md: sub, indexes: make([]pageIndex, len(group.Columns))}
	start := c.w.sink.at
	total := int64(0)
	for i := range group.Columns {
		chunk := *group.Columns[i]
		meta := *chunk.MetaData
		chunk.MetaData, group.Columns[i] = &meta, &chunk
		meta.BloomFilterOffset, meta.BloomFilterLength, meta.IndexPageOffset = nil, nil, nil
		if i == c.nameLeaf && c.name != "" {
			one, data, index, err := c.nameChunk(rows)
			if err != nil {
				return err
			}
			from := one.RowGroups[0].Columns[0]
			meta = *from.MetaData
			shift := c.w.sink.at - chunkStart(meta.DataPageOffset, meta.DictionaryPageOffset)
			moveOffsets(&meta.DataPageOffset, &meta.DictionaryPageOffset, shift)
			if _, err := c.w.sink.Write(data); err != nil {
				return err
			}
			part.indexes[i], err = index.moved(shift)
			if err != nil {
				return err
			}
		} else {
			first := chunkStart(meta.DataPageOffset, meta.DictionaryPageOffset)
			shift := c.w.sink.at - first
			if part.indexes[i], err = c.readIndex(ctx, chunk.ColumnIndexOffset, chunk.ColumnIndexLength, chunk.OffsetIndexOffset, chunk.OffsetIndexLength, shift); err != nil {
				return err
			}
			if err := c.copyBytes(ctx, first, meta.TotalCompressedSize); err != nil {
				return err
			}
			moveOffsets(&meta.DataPageOffset, &meta.DictionaryPageOffset, shift)
		}
		chunk.FileOffset = chunkStart(meta.DataPageOffset, meta.DictionaryPageOffset)
		total += meta.TotalCompressedSize
	}
	group.FileOffset, group.TotalCompressedSize = &start, &total
	c.w.copied += c.w.sink.at - start
	c.w.parts = append(c.w.parts, part)
	c.w.rows += rows
	return nil
}

// noteKeys reads the record keys of a row group for the bloom filter and the key range.
func (c *groupCopier) noteKeys(ctx context.Context, g int) error {
	if c.w.keys.filter == nil {
		return nil
	}
	key := c.w.columns.schema.Field(c.w.keys.column)
	first := c.w.rows
	for batch, err := range c.old.ScanRows(ctx, ScanOptions{Columns: arrow.NewSchema([]arrow.Field{key}, nil), RowGroups: []int{g}, Alloc: c.w.options.Alloc}) {
		if err != nil {
			return err
		}
		err = c.w.keys.addColumn(batch.Column(0).(*array.String), 0, int(batch.NumRows()), first)
		first += batch.NumRows()
		batch.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// chunkStart is the first byte of a column chunk: that of its dictionary, where it has one.
func chunkStart(data int64, dictionary *int64) int64 {
	if dictionary != nil && *dictionary > 0 && *dictionary < data {
		return *dictionary
	}
	return data
}

func moveOffsets(data *int64, dictionary **int64, by int64) {
	if d := *dictionary; d != nil {
		if *d > 0 && *d < *data {
			moved := *d + by
			*dictionary = &moved
		} else {
			*dictionary = nil // some writers leave a zero
		}
	}
	*data += by
}

// copyBlock is read and written at once.
const copyBlock = 1 << 20

func (c *groupCopier) copyBytes(ctx context.Context, from, n int64) error {
	if c.read == nil {
		c.read = &source{obj: c.old.obj, tail: c.old.tail}
	}
	c.read.ctx = ctx
	buf := make([]byte, min(n, copyBlock))
	for n > 0 {
		part := buf[:min(n, copyBlock)]
		if got, err := c.read.ReadAt(part, from); got < len(part) {
			return &Error{File: c.old.name, Offset: from, Err: errors.Join(io.ErrUnexpectedEOF, err)}
		}
		if _, err := c.w.sink.Write(part); err != nil {
			return err
		}
		from, n = from+int64(len(part)), n-int64(len(part))
	}
	return nil
}

// maxIndexBytes bounds a page index that is carried along; a larger one is left out.
const maxIndexBytes = 16 << 20

// readIndex reads the page indexes of a chunk, moved to its new place. Indexes are for speed: one that can't be read right is left out.
func (c *groupCopier) readIndex(ctx context.Context, columnAt *int64, columnLength *int32, offsetAt *int64, offsetLength *int32, shift int64) (pageIndex, error) {
	if offsetAt == nil || offsetLength == nil {
		return pageIndex{}, nil
	}
	var x pageIndex
	var err error
	if x.offset, err = c.piece(ctx, *offsetAt, int64(*offsetLength)); err != nil || x.offset == nil {
		return pageIndex{}, err
	}
	if columnAt != nil && columnLength != nil {
		if x.column, err = c.piece(ctx, *columnAt, int64(*columnLength)); err != nil {
			return pageIndex{}, err
		}
	}
	moved, err := x.moved(shift)
	if err != nil {
		return pageIndex{}, nil //nolint:nilerr // a page index that is damaged is worth nothing to the new file
	}
	return moved, nil
}

func (c *groupCopier) piece(ctx context.Context, at, n int64) ([]byte, error) {
	if at < 0 || n <= 0 || n > maxIndexBytes || at > c.old.obj.Size()-n {
		return nil, nil
	}
	data := make([]byte, n)
	s := &source{ctx: ctx, obj: c.old.obj, tail: c.old.tail}
	if got, err := s.ReadAt(data, at); got < len(data) {
		return nil, &Error{File: c.old.name, Offset: at, Err: errors.Join(io.ErrUnexpectedEOF, err)}
	}
	return data, nil
}

// moved is the index with every page offset moved. An OffsetIndex is, in Thrift's compact form, a structure whose field 1 is a list
// of structures {1: i64 offset, 2: i32 size, 3: i64 first row}; what follows is kept.
func (x pageIndex) moved(by int64) (pageIndex, error) {
	if x.offset == nil {
		return pageIndex{}, nil
	}
	s := skimmer{b: x.offset}
	if b, err := s.byte(); err != nil || b != 0x19 { // field 1, a list
		return x, errors.Join(err, errors.New("no offset index"))
	}
	head, err := s.byte()
	if err != nil || head&0x0f != thriftStruct {
		return x, errors.Join(err, errors.New("no offset index"))
	}
	n := uint64(head >> 4)
	if n == 15 {
		if n, err = s.varint(); err != nil {
			return x, err
		}
	}
	if n > uint64(len(x.offset)) {
		return x, errTooLarge
	}
	out := append(make([]byte, 0, len(x.offset)+int(n)*4), x.offset[:s.at]...)
	for range n {
		if b, err := s.byte(); err != nil || b != 0x16 { // field 1, an i64
			return x, errors.Join(err, errors.New("no page offset"))
		}
		v, err := s.varint()
		if err != nil {
			return x, err
		}
		rest := s.at
		place := int64(v>>1) ^ -int64(v&1) + by
		out = append(out, 0x16)
		out = binary.AppendUvarint(out, uint64(place<<1)^uint64(place>>63))
		// The rest of the structure goes on with field ids relative to 1, as it was.
		if err := s.structure(1); err != nil {
			return x, err
		}
		out = append(out, x.offset[rest:s.at]...)
	}
	return pageIndex{column: x.column, offset: append(out, x.offset[s.at:]...)}, nil
}

// nameChunk is a column chunk with the new file's name in every row: a Parquet file of that one column, of which the chunk is taken.
func (c *groupCopier) nameChunk(rows int64) (md *metadata.FileMetaData, chunk []byte, index pageIndex, err error) {
	defer recovered(&err)
	node := c.w.columns.root.Field(c.w.columns.root.FieldIndexByName(schema.FileName))
	leaf, ok := node.(*pq.PrimitiveNode)
	if !ok {
		return nil, nil, index, fmt.Errorf("%s is no text", schema.FileName)
	}
	again, err := pq.NewPrimitiveNodeLogical(leaf.Name(), leaf.RepetitionType(), leaf.LogicalType(), leaf.PhysicalType(), -1, -1)
	if err != nil {
		return nil, nil, index, err
	}
	root, err := pq.NewGroupNode(c.w.columns.message, parquet.Repetitions.Required, pq.FieldList{again}, -1)
	if err != nil {
		return nil, nil, index, err
	}
	o := c.w.options
	o.PlainOnly = false // one value
	props, err := o.properties(c.w.columns.message, nil)
	if err != nil {
		return nil, nil, index, err
	}
	var buf bytes.Buffer
	w, err := file.NewParquetWriterWithError(&buf, root, file.WithWriterProps(props))
	if err != nil {
		return nil, nil, index, err
	}
	if err := writeConstant(w, c.name, rows); err != nil {
		return nil, nil, index, err
	}
	if err := w.Close(); err != nil {
		return nil, nil, index, err
	}
	own, md, err := takeApart(buf.Bytes(), 0)
	if err != nil {
		return nil, nil, index, err
	}
	meta := md.RowGroups[0].Columns[0].MetaData
	start := chunkStart(meta.DataPageOffset, meta.DictionaryPageOffset)
	return md, buf.Bytes()[start : start+meta.TotalCompressedSize], own[0][0], nil
}

func writeConstant(w *file.Writer, text string, rows int64) error {
	group, err := w.AppendRowGroupChecked()
	if err != nil {
		return err
	}
	chunk, err := group.NextColumn()
	if err != nil {
		return err
	}
	to := chunk.(*file.ByteArrayColumnChunkWriter)
	values := make([]parquet.ByteArray, min(rows, sliceRows))
	for i := range values {
		values[i] = parquet.ByteArray(text)
	}
	var def []int16
	if to.Descr().MaxDefinitionLevel() > 0 {
		def = appendLevel(nil, 1, len(values))
	}
	for rows > 0 {
		n := min(rows, int64(len(values)))
		levels := def
		if def != nil {
			levels = def[:n]
		}
		if _, err := to.WriteBatch(values[:n], levels, nil); err != nil {
			return err
		}
		rows -= n
	}
	return group.Close()
}

// takeApart finds the footer of a Parquet file whose end is at hand, and in it the page indexes of every chunk, by row group. The
// first byte of end is byte base of the file, and no index lies before it.
func takeApart(end []byte, base int64) ([][]pageIndex, *metadata.FileMetaData, error) {
	n := len(end)
	if n < 8 {
		return nil, nil, errTooLarge
	}
	length := int(binary.LittleEndian.Uint32(end[n-8:]))
	if length > n-8 {
		return nil, nil, errTooLarge
	}
	md, err := parseFooter(end[n-8-length : n-8])
	if err != nil {
		return nil, nil, err
	}
	cut := func(at *int64, size *int32) []byte {
		if at == nil || size == nil || *at < base || *at-base > int64(n) || int64(*size) > int64(n)-(*at-base) {
			return nil
		}
		return end[*at-base : *at-base+int64(*size)]
	}
	out := make([][]pageIndex, len(md.RowGroups))
	for g, rg := range md.RowGroups {
		for _, c := range rg.Columns {
			out[g] = append(out[g], pageIndex{column: cut(c.ColumnIndexOffset, c.ColumnIndexLength), offset: cut(c.OffsetIndexOffset, c.OffsetIndexLength)})
		}
	}
	return out, md, nil
}

// endCopied ends a file between whose row groups others were copied. The Parquet library counts only the bytes that passed through
// it: its end of the file is caught, and written with every offset put right and the copied row groups in their places.
func (w *Writer) endCopied() error {
	own := w.sink.at - w.copied
	var caught bytes.Buffer
	w.sink.capture = &caught
	err := w.file.Close()
	w.sink.capture = nil
	if err != nil {
		return err
	}
	indexes, md, err := takeApart(caught.Bytes(), own)
	if err != nil {
		return err
	}
	groups, all := md.RowGroups[:0:0], make([][]pageIndex, 0, len(indexes)+len(w.parts))
	parts := w.parts
	for g := 0; g <= len(md.RowGroups); g++ {
		for len(parts) > 0 && parts[0].after == g {
			groups, all = append(groups, parts[0].md.RowGroups[0]), append(all, parts[0].indexes)
			parts = parts[1:]
		}
		if g == len(md.RowGroups) {
			break
		}
		rg := md.RowGroups[g]
		if rg.FileOffset != nil {
			*rg.FileOffset += w.shifts[g]
		}
		for i, c := range rg.Columns {
			moveOffsets(&c.MetaData.DataPageOffset, &c.MetaData.DictionaryPageOffset, w.shifts[g])
			c.FileOffset = chunkStart(c.MetaData.DataPageOffset, c.MetaData.DictionaryPageOffset)
			if indexes[g][i], err = indexes[g][i].moved(w.shifts[g]); err != nil {
				return err
			}
		}
		groups, all = append(groups, rg), append(all, indexes[g])
	}
	md.RowGroups, md.NumRows = groups, w.rows
	for g, rg := range groups {
		ordinal := int16(g)
		rg.Ordinal = &ordinal
	}
	if err := w.writeIndexes(md, all); err != nil {
		return err
	}
	n, err := md.WriteTo(w.sink, nil)
	if err != nil {
		return err
	}
	tail := binary.LittleEndian.AppendUint32(nil, uint32(n))
	_, err = w.sink.Write(append(tail, magic...))
	return err
}

// writeIndexes writes all column indexes and then all offset indexes, and notes where they are.
func (w *Writer) writeIndexes(md *metadata.FileMetaData, all [][]pageIndex) error {
	place := func(data []byte, at **int64, size **int32) error {
		*at, *size = nil, nil
		if data == nil {
			return nil
		}
		start, n := w.sink.at, int32(len(data))
		*at, *size = &start, &n
		_, err := w.sink.Write(data)
		return err
	}
	for g, rg := range md.RowGroups {
		for i, c := range rg.Columns {
			if err := place(all[g][i].column, &c.ColumnIndexOffset, &c.ColumnIndexLength); err != nil {
				return err
			}
		}
	}
	for g, rg := range md.RowGroups {
		for i, c := range rg.Columns {
			if err := place(all[g][i].offset, &c.OffsetIndexOffset, &c.OffsetIndexLength); err != nil {
				return err
			}
		}
	}
	return nil
}
