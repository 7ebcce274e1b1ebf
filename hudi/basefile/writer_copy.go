package basefile

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/parquet"
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
	want := w.end.schema
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
	part := copiedGroup{after: len(c.w.end.pages), rows: rows, md: sub, indexes: make([]pageIndex, len(group.Columns))}
	start := c.w.sink.at
	packed, unpacked := int64(0), int64(0)
	for i := range group.Columns {
		if i == c.nameLeaf && c.name != "" {
			named := metadata.NewColumnChunkMetaDataBuilder(c.w.props, c.w.end.schema.Column(i))
			if part.indexes[i], err = c.nameChunk(rows, named); err != nil {
				return err
			}
			group.Columns[i] = named.Contents()
		} else {
			chunk := *group.Columns[i]
			meta := *chunk.MetaData
			chunk.MetaData, group.Columns[i] = &meta, &chunk
			meta.BloomFilterOffset, meta.BloomFilterLength, meta.IndexPageOffset = nil, nil, nil
			first := chunkStart(meta.DataPageOffset, meta.DictionaryPageOffset)
			shift := c.w.sink.at - first
			if part.indexes[i], err = c.readIndex(ctx, chunk.ColumnIndexOffset, chunk.ColumnIndexLength, chunk.OffsetIndexOffset, chunk.OffsetIndexLength, shift); err != nil {
				return err
			}
			if err := c.copyBytes(ctx, first, meta.TotalCompressedSize); err != nil {
				return err
			}
			moveOffsets(&meta.DataPageOffset, &meta.DictionaryPageOffset, shift)
			chunk.FileOffset = chunkStart(meta.DataPageOffset, meta.DictionaryPageOffset)
		}
		packed += group.Columns[i].MetaData.TotalCompressedSize
		unpacked += group.Columns[i].MetaData.TotalUncompressedSize
	}
	group.FileOffset, group.TotalCompressedSize, group.TotalByteSize = &start, &packed, unpacked
	c.w.end.parts = append(c.w.end.parts, part)
	c.w.rows += rows
	return nil
}

// noteKeys reads the record keys of a row group for the bloom filter and the key range.
func (c *groupCopier) noteKeys(ctx context.Context, g int) error {
	if c.w.keys.filter == nil || c.w.keys.inherited {
		return nil
	}
	return c.w.keys.addOld(ctx, c.old, ScanOptions{RowGroups: []int{g}, Alloc: c.w.options.Alloc}, c.w.rows, math.MaxInt64)
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

// nameChunk writes a column chunk with the new file's name in every row.
func (c *groupCopier) nameChunk(rows int64, md *metadata.ColumnChunkMetaDataBuilder) (index pageIndex, err error) {
	defer recovered(&err)
	column := c.w.end.schema.Column(c.nameLeaf)
	v := newTexts(false)
	chunk := chunkEncoder{values: v, maxDef: uint8(column.MaxDefinitionLevel())}
	chunk.open(c.w.shop, true) // one value
	defer chunk.newChunk()
	v.from = textView{offsets: []int32{0, int32(len(c.name))}, bytes: []byte(c.name)}
	if err := chunk.repeated(v, 0, int(rows)); err != nil {
		return index, err
	}
	return chunk.end(c.w.sink, column, md)
}
