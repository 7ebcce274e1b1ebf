package basefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	pq "github.com/apache/arrow-go/v18/parquet/schema"
)

// maxPageValues bounds a page whose values take next to no room, as those of a column of few values: readers skip whole pages.
const maxPageValues = 128 << 10

// maxBound is the longest value that statistics hold. They are left out for chunks and pages with a longer one at an end.
const maxBound = 4096

// chunkEncoder encodes the column chunks of one leaf, one after the other: it gathers levels and values of a page, and holds the
// compressed pages until the row group ends.
type chunkEncoder struct {
	shop           *workshop
	values         leafValues
	maxDef, maxRep uint8

	// The open page.
	def, rep sequence[uint8]
	rows     int64 // that begin in it
	nulls    int64

	// The open chunk.
	pages   spool
	notes   []pageNote
	indexed int32 // pages of dictionary indexes
	entries int64
	allRows int64
	unpack  int64 // bytes of the pages, uncompressed, with headers
}

// pageNote is what the page indexes and the statistics tell of a page.
type pageNote struct {
	at       int64 // in the spool
	size     int32 // with its header
	firstRow int64
	entries  int64
	nulls    int64
	bounds   bounds
}

func (c *chunkEncoder) open(shop *workshop, dictionary bool) {
	c.shop, c.pages.from = shop, shop
	c.values.configure(shop.pageBytes, dictionary)
}

// valid takes values [from, to) of a flat column, one for each row.
func (c *chunkEncoder) valid(from, to int) error {
	for from < to {
		n, err := c.values.add(from, to)
		if err != nil {
			return err
		}
		c.def.repeat(c.maxDef, n)
		c.rows += int64(n)
		from += n
		if err := c.endFullPage(); err != nil {
			return err
		}
	}
	return nil
}

// picked takes rows of a flat column, none of them null.
func (c *chunkEncoder) picked(rows []int32) error {
	for len(rows) > 0 {
		n, err := c.values.take(rows)
		if err != nil {
			return err
		}
		c.def.repeat(c.maxDef, n)
		c.rows += int64(n)
		rows = rows[n:]
		if err := c.endFullPage(); err != nil {
			return err
		}
	}
	return nil
}

// pickedAmong takes n rows of a flat column of which those at the places where are not null; rows has their values. It says how many
// of the n it took: fewer when the page is full, but at least one.
func (c *chunkEncoder) pickedAmong(rows, where []int32, n int) (int, error) {
	if len(rows) == 0 {
		return n, c.absent(n)
	}
	if c.maxDef == 0 && len(rows) < n {
		return 0, errNull
	}
	valid, err := c.values.take(rows)
	if err != nil {
		return 0, err
	}
	if valid < len(rows) {
		n = int(where[valid])
	}
	if valid == n {
		c.def.repeat(c.maxDef, n)
	} else {
		levels := c.def.more(n)
		clear(levels)
		for _, at := range where[:valid] {
			levels[at] = c.maxDef
		}
		c.def.took(n)
	}
	c.rows += int64(n)
	c.nulls += int64(n - valid)
	return n, c.endFullPage()
}

// repeated takes value i of a flat column for n rows.
func (c *chunkEncoder) repeated(v *texts, i, n int) error {
	for n > 0 {
		k, err := v.repeat(i, n)
		if err != nil {
			return err
		}
		c.def.repeat(c.maxDef, k)
		c.rows += int64(k)
		n -= k
		if err := c.endFullPage(); err != nil {
			return err
		}
	}
	return nil
}

// absent takes n rows of a flat column that are null.
func (c *chunkEncoder) absent(n int) error {
	if c.maxDef == 0 {
		return errNull
	}
	c.def.repeat(0, n)
	c.rows += int64(n)
	c.nulls += int64(n)
	return c.endFullPage()
}

// emit takes the levels of one entry of a nested column; the caller adds its value, where def says that there is one, and calls
// endFullPage after each row, as pages begin with rows.
func (c *chunkEncoder) emit(rep, def uint8) {
	if rep == 0 {
		c.rows++
	}
	if c.maxRep > 0 {
		c.rep.repeat(rep, 1)
	}
	c.def.repeat(def, 1)
	if def < c.maxDef {
		c.nulls++
	}
}

// below takes values [from, to) of a nested column, without their levels.
func (c *chunkEncoder) below(from, to int) error {
	for from < to {
		n, err := c.values.add(from, to)
		if err != nil {
			return err
		}
		from += n
	}
	return nil
}

func (c *chunkEncoder) endFullPage() error {
	if _, full := c.values.size(); full || c.def.n >= maxPageValues || c.rep.n >= maxPageValues {
		return c.endPage()
	}
	return nil
}

// buffered is about how many bytes the chunk has so far.
func (c *chunkEncoder) buffered() int64 {
	n, _ := c.values.size()
	return c.pages.size + int64(n+len(c.def.rest)/8+len(c.rep.rest)/8)
}

// endPage encodes and compresses the open page: data page V1, repetition levels, definition levels, values.
func (c *chunkEncoder) endPage() error {
	entries := int64(c.def.n)
	if entries == 0 {
		return nil
	}
	p := c.shop.packer()
	defer c.shop.giveBack(p)
	p.body = appendLevels(p.body[:0], &c.rep, c.maxRep)
	p.body = appendLevels(p.body, &c.def, c.maxDef)
	var indexed bool
	note := pageNote{at: c.pages.size, firstRow: c.allRows, entries: entries, nulls: c.nulls}
	p.body, indexed, note.bounds = c.values.page(p.body)
	packed, err := p.pack()
	if err != nil {
		return err
	}
	encoding := parquet.Encodings.Plain
	if indexed {
		encoding = parquet.Encodings.PlainDict
		c.indexed++
	}
	header := appendPageHeader(nil, dataPage, len(p.body), len(packed), int(entries), encoding)
	c.pages.write(header)
	c.pages.write(packed)
	note.size = int32(len(header) + len(packed))
	if len(note.bounds.min) > maxBound || len(note.bounds.max) > maxBound {
		note.bounds = bounds{}
	}
	c.notes = append(c.notes, note)
	c.unpack += int64(len(header) + len(p.body))
	c.entries += entries
	c.allRows += c.rows
	c.def.reset()
	c.rep.reset()
	c.rows, c.nulls = 0, 0
	return nil
}

// appendLevels writes levels behind their length; leaves that can have one level alone have none.
func appendLevels(dst []byte, levels *sequence[uint8], most uint8) []byte {
	if most == 0 {
		return dst
	}
	at := len(dst)
	dst = levels.appendHybrid(append(dst, 0, 0, 0, 0), bits.Len8(most))
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

// appendPageHeader writes a PageHeader in Thrift's compact form: the kind of page, its sizes, and the header of the kind, which for
// data pages tells the encoding of levels too. Statistics are in the page indexes alone, as with parquet-mr since 1.11.
func appendPageHeader(dst []byte, kind, size, packed, values int, encoding parquet.Encoding) []byte {
	field := func(v int) { dst = binary.AppendUvarint(append(dst, 0x15), uint64(v)<<1) } // the next i32
	field(kind)
	field(size)
	field(packed)
	const inner = thriftStruct
	if kind == dataPage {
		dst = append(dst, 2<<4|inner) // field 5
		field(values)
		field(int(encoding))
		field(int(parquet.Encodings.RLE))
		field(int(parquet.Encodings.RLE))
	} else {
		dst = append(dst, 4<<4|inner) // field 7
		field(values)
		field(int(encoding))
	}
	return append(dst, 0, 0)
}

// end writes the chunk, fills in its metadata, and gives its page indexes; it may be called again, for the same values in another
// column. Call newChunk after.
func (c *chunkEncoder) end(to *sink, column *pq.Column, md *metadata.ColumnChunkMetaDataBuilder) (pageIndex, error) {
	if err := c.endPage(); err != nil {
		return pageIndex{}, err
	}
	info := metadata.ChunkMetaInfo{NumValues: c.entries, IndexPageOffset: -1, UncompressedSize: c.unpack}
	start := to.at
	encodings := metadata.EncodingStats{DictEncodingStats: map[parquet.Encoding]int32{}, DataEncodingStats: map[parquet.Encoding]int32{}}
	dictionary, values := c.values.dictionary()
	if values > 0 {
		info.DictPageOffset = start
		size, err := c.writeDictionary(to, dictionary, values)
		if err != nil {
			return pageIndex{}, err
		}
		info.UncompressedSize += size
		encodings.DictEncodingStats[parquet.Encodings.PlainDict] = 1
		encodings.DataEncodingStats[parquet.Encodings.PlainDict] = c.indexed
	}
	plain := int32(len(c.notes)) - c.indexed
	if plain > 0 {
		encodings.DataEncodingStats[parquet.Encodings.Plain] = plain
	}
	info.DataPageOffset = to.at
	if err := c.pages.writeTo(to); err != nil {
		return pageIndex{}, err
	}
	info.CompressedSize = to.at - start
	md.SetStats(c.statistics(column))
	if err := md.Finish(info, values > 0, values > 0 && plain > 0, encodings); err != nil {
		return pageIndex{}, err
	}
	return c.indexes(column, info.DataPageOffset)
}

// writeDictionary gives the bytes that the dictionary page has uncompressed.
func (c *chunkEncoder) writeDictionary(to *sink, plain []byte, values int) (int64, error) {
	p := c.shop.packer()
	defer c.shop.giveBack(p)
	p.body = append(p.body[:0], plain...)
	packed, err := p.pack()
	if err != nil {
		return 0, err
	}
	header := appendPageHeader(nil, dictionaryPage, len(plain), len(packed), values, parquet.Encodings.PlainDict)
	if _, err := to.Write(header); err != nil {
		return 0, err
	}
	_, err = to.Write(packed)
	return int64(len(header) + len(plain)), err
}

func (c *chunkEncoder) newChunk() {
	c.pages.reset()
	c.values.newChunk()
	c.notes, c.indexed, c.entries, c.allRows, c.unpack = c.notes[:0], 0, 0, 0, 0
}

// statistics of the chunk: bounds only where every page with a value has some.
func (c *chunkEncoder) statistics(column *pq.Column) metadata.EncodedStatistics {
	st := metadata.EncodedStatistics{HasNullCount: true, Signed: column.SortOrder() == pq.SortSIGNED}
	all, known := bounds{}, true
	for _, n := range c.notes {
		st.NullCount += n.nulls
		switch {
		case n.nulls == n.entries:
		case !n.bounds.known:
			known = false
		case !all.known:
			all = n.bounds
		default:
			if c.values.compare(n.bounds.min, all.min) < 0 {
				all.min = n.bounds.min
			}
			if c.values.compare(n.bounds.max, all.max) > 0 {
				all.max = n.bounds.max
			}
		}
	}
	if known && all.known {
		st.SetMin(all.min).SetMax(all.max)
	}
	return st
}

// indexes are the column index, which is left out when a page with values has no bounds, and the offset index.
func (c *chunkEncoder) indexes(column *pq.Column, start int64) (pageIndex, error) {
	if len(c.notes) == 0 {
		return pageIndex{}, nil
	}
	of := metadata.NewColumnIndexBuilder(column)
	var places metadata.OffsetIndexBuilder
	for _, n := range c.notes {
		st := metadata.EncodedStatistics{HasNullCount: true, NullCount: n.nulls, AllNullValue: n.nulls == n.entries}
		if n.bounds.known {
			st.SetMin(n.bounds.min).SetMax(n.bounds.max)
		}
		if err := of.AddPage(&st); err != nil {
			return pageIndex{}, err
		}
		if err := places.AddPage(start+n.at, n.firstRow, n.size); err != nil {
			return pageIndex{}, err
		}
	}
	if err := errors.Join(of.Finish(), places.Finish(0)); err != nil {
		return pageIndex{}, err
	}
	var columnText, offsetText bytes.Buffer
	if _, err := of.WriteTo(&columnText, nil); err != nil {
		return pageIndex{}, err
	}
	if _, err := places.WriteTo(&offsetText, nil); err != nil {
		return pageIndex{}, err
	}
	out := pageIndex{offset: offsetText.Bytes()}
	if columnText.Len() > 0 {
		out.column = columnText.Bytes()
	}
	return out, nil
}
