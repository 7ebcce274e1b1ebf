package basefile

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
)

const (
	// maxPage is the largest page, compressed or not.
	maxPage = 256 << 20
	// maxPageHeader bounds a page header: statistics of wide text are in it.
	maxPageHeader = 16 << 20
	firstHeader   = 256
)

// The kinds of pages, by their number in the format.
const (
	dataPage       = 0
	indexPage      = 1
	dictionaryPage = 2
	dataPageV2     = 3
)

// pageHeader is what is needed of a Parquet page header.
type pageHeader struct {
	kind                     int64
	uncompressed, compressed int64
	crc                      int64
	hasCRC                   bool
	values, nulls, rows      int64
	encoding                 int64
	defEncoding, repEncoding int64
	defLength, repLength     int64
	plainV2                  bool // is_compressed is false
}

// pages gives the pages of one column chunk, decompressed, to the library's decoders. It checks every length and the page's
// checksum (where the writer left one) before anything is decoded or allocated.
type pages struct {
	src      *source
	mem      memory.Allocator
	codecs   *codecs
	codec    compress.Compression
	off, end int64 // of the chunk in the file; off moves on
	left     int64 // values that are not yet given
	window   int64 // bytes that one read asks for

	buf    []byte // bytes of the file from bufOff on
	bufOff int64

	data, dict *memory.Buffer
	page       file.Page
	at         int64 // place of the page that was read last
	dictAt     int64 // place of the dictionary that was given, 0: none yet
	first      int64 // row with which the next data page begins, -1 unknown
	locations  []pageLocation
	values     int64
	start      int64
	sought     bool
	name       string
	err        error
}

// pageLocation is an entry of the offset index.
type pageLocation struct{ off, first int64 }

func newPages(s *scan, g, column int) *pages {
	start, size := s.chunkAt(g, column)
	m := s.f.md.RowGroups[g].Columns[column].MetaData
	return &pages{
		src: s.src, mem: s.mem, codecs: &s.codecs, codec: compress.Compression(m.Codec), off: start, start: start, end: start + size, name: s.f.name,
		left: m.NumValues, values: m.NumValues, window: s.window, data: memory.NewResizableBuffer(s.mem), dict: memory.NewResizableBuffer(s.mem),
	}
}

func (p *pages) SetMaxPageHeaderSize(int) {}
func (p *pages) Page() file.Page          { return p.page }
func (p *pages) Err() error               { return p.err }

func (p *pages) Reset(parquet.BufferedReader, int64, compress.Compression, *file.CryptoContext) {
	p.err = errors.New("a column chunk's pages can't be reset")
}

func (p *pages) Close() error {
	p.drop()
	for _, b := range []**memory.Buffer{&p.data, &p.dict} {
		if *b != nil {
			(*b).Release()
			*b = nil
		}
	}
	p.buf = nil
	return nil
}

func (p *pages) drop() {
	if p.page != nil {
		p.page.Release()
		p.page = nil
	}
}

// Next reads the next page that holds values or a dictionary.
func (p *pages) Next() bool {
	p.drop()
	for p.left > 0 && p.err == nil {
		if p.off >= p.end {
			if !p.sought {
				p.err = &Error{File: p.name, Offset: p.end, Err: fmt.Errorf("%w: %d values are missing at the end of the column chunk", ErrDamaged, p.left)}
			}
			return false
		}
		at := p.off
		if p.page, p.err = p.read(); p.err != nil {
			p.page = nil
			p.err = &Error{File: p.name, Offset: at, Where: "page", Err: p.err}
			return false
		}
		if p.page != nil {
			return true
		}
	}
	return false
}

// read reads one page; nil for kinds that hold no values.
func (p *pages) read() (file.Page, error) {
	h, body, err := p.body()
	if err != nil {
		return nil, err
	}
	switch h.kind {
	case dictionaryPage:
		return p.dictionaryOf(h, body)
	case dataPage:
		buf, err := p.unpack(p.data, h, body, 0)
		if err != nil {
			return nil, err
		}
		cfg := p.config(h)
		return file.NewDataPageV1WithConfig(buf, parquet.Encoding(h.defEncoding), parquet.Encoding(h.repEncoding), cfg), nil
	case dataPageV2:
		levels := h.defLength + h.repLength
		if h.defLength < 0 || h.repLength < 0 || levels > h.compressed || levels > h.uncompressed {
			return nil, fmt.Errorf("%w: levels of %d and %d bytes in a page of %d", ErrDamaged, h.repLength, h.defLength, h.compressed)
		}
		buf, err := p.unpack(p.data, h, body, levels)
		if err != nil {
			return nil, err
		}
		cfg := p.config(h)
		return file.NewDataPageV2WithConfig(buf, int32(h.nulls), int32(h.rows), int32(h.defLength), int32(h.repLength), !h.plainV2, cfg), nil
	}
	return nil, nil
}

// config counts a data page's values and gives what the library wants to know of it.
func (p *pages) config(h *pageHeader) file.DataPageConfig {
	cfg := file.DataPageConfig{Num: int32(h.values), Encoding: parquet.Encoding(h.encoding), UncompressedSize: int32(h.uncompressed), FirstRowIndex: p.first}
	p.left -= h.values
	p.first = -1
	return cfg
}

func (p *pages) dictionaryOf(h *pageHeader, body []byte) (file.Page, error) {
	if p.dictAt == p.at {
		return nil, nil // read again after a seek to the start: the decoder has it
	}
	if p.dictAt != 0 {
		return nil, fmt.Errorf("%w: a second dictionary in one column chunk", ErrDamaged)
	}
	buf, err := p.unpack(p.dict, h, body, 0)
	if err != nil {
		return nil, err
	}
	p.dictAt = p.at
	return file.NewDictionaryPage(buf, int32(h.values), parquet.Encoding(h.encoding)), nil
}

// GetDictionaryPage gives the dictionary at the start of the chunk to a reader that has jumped over it.
func (p *pages) GetDictionaryPage() (*file.DictionaryPage, error) {
	save := p.off
	defer func() { p.off = save }()
	p.off = p.start
	h, body, err := p.body()
	if err != nil || h.kind != dictionaryPage {
		return nil, err
	}
	page, err := p.dictionaryOf(h, body)
	if page == nil {
		return nil, err
	}
	return page.(*file.DictionaryPage), err
}

// SeekToPageWithRow reads the page that begins with the row, or holds it, by the locations.
func (p *pages) SeekToPageWithRow(row int64) error {
	p.drop()
	at := -1
	for i, l := range p.locations {
		if l.first <= row {
			at = i
		}
	}
	if at < 0 || p.locations[at].off < p.start || p.locations[at].off >= p.end {
		return fmt.Errorf("%w: no page for row %d in the offset index", ErrDamaged, row)
	}
	p.off, p.err = p.locations[at].off, nil
	p.left, p.sought = p.values, true // how many are left is not known; the end of the chunk tells
	p.first = p.locations[at].first
	p.Next()
	return p.err
}

// body reads the header of the page at off, and gives its bytes as they lie in the file. off moves behind it.
func (p *pages) body() (*pageHeader, []byte, error) {
	var h *pageHeader
	var size int64
	for ask := int64(firstHeader); ; ask *= 4 {
		view, err := p.view(p.off, min(ask, p.end-p.off))
		if err != nil {
			return nil, nil, err
		}
		var n int
		if h, n, err = parsePageHeader(view); err == nil {
			size = int64(n)
			break
		}
		if !errors.Is(err, errCut) && !errors.Is(err, errTooLarge) || ask >= p.end-p.off || ask > maxPageHeader {
			return nil, nil, fmt.Errorf("%w: page header: %w", ErrDamaged, err)
		}
	}
	if err := p.check(h, p.end-p.off-size); err != nil {
		return nil, nil, err
	}
	body, err := p.view(p.off+size, h.compressed)
	if err != nil {
		return nil, nil, err
	}
	if h.hasCRC && crc32.ChecksumIEEE(body) != uint32(h.crc) {
		return nil, nil, fmt.Errorf("%w: the page's checksum differs", ErrDamaged)
	}
	p.at = p.off
	p.off += size + h.compressed
	return h, body, nil
}

func (p *pages) check(h *pageHeader, room int64) error {
	switch {
	case h.compressed < 0 || h.compressed > room || h.compressed > maxPage:
		return fmt.Errorf("%w: page of %d bytes where %d are left", ErrDamaged, h.compressed, room)
	case h.uncompressed < 0 || h.uncompressed > maxPage || h.uncompressed > h.compressed*greatestRatio(p.codec)+64:
		return fmt.Errorf("%w: page of %d bytes that claims to become %d", ErrDamaged, h.compressed, h.uncompressed)
	case h.values < 0 || h.values > math.MaxInt32 || h.nulls < 0 || h.nulls > math.MaxInt32 || h.rows < 0 || h.rows > math.MaxInt32:
		return fmt.Errorf("%w: page of %d values", ErrDamaged, h.values)
	}
	return nil
}

// unpack decompresses a page into buf but for its first plain bytes, which are copied.
func (p *pages) unpack(buf *memory.Buffer, h *pageHeader, body []byte, plain int64) (*memory.Buffer, error) {
	buf.ResizeNoShrink(int(h.uncompressed))
	dst := buf.Bytes()[:h.uncompressed]
	copy(dst, body[:plain])
	codec := p.codec
	if h.kind == dataPageV2 && h.plainV2 {
		codec = compress.Codecs.Uncompressed
	}
	if err := p.codecs.decode(codec, dst[plain:], body[plain:]); err != nil {
		if errors.Is(err, ErrUnsupported) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, codec, err)
	}
	return memory.NewBufferBytes(dst), nil
}

// view gives n bytes of the file at off; they are good until the next call.
func (p *pages) view(off, n int64) ([]byte, error) {
	if have := off - p.bufOff; have >= 0 && have+n <= int64(len(p.buf)) {
		return p.buf[have : have+n], nil
	}
	if b, ok := p.src.resident(off, n); ok {
		return b, nil
	}
	// Keep what is there of the wanted bytes, read the rest and what fits behind it.
	want := min(max(n, p.window), p.end-off)
	next := p.buf
	if int64(cap(next)) < want {
		next = make([]byte, 0, want)
	}
	kept := int64(0)
	if have := off - p.bufOff; have >= 0 && have < int64(len(p.buf)) {
		kept = int64(copy(next[:cap(next)], p.buf[have:]))
	}
	next = next[:want]
	p.buf = next[:0]
	got, err := p.src.ReadAt(next[kept:], off+kept)
	if int64(got) < want-kept {
		if err == nil || errors.Is(err, io.EOF) {
			err = fmt.Errorf("%w: the file ends at byte %d", ErrDamaged, off+kept+int64(got))
		}
		return nil, err
	}
	p.buf, p.bufOff = next, off
	return next[:n], nil
}

// parsePageHeader reads a Thrift compact PageHeader and gives its length.
func parsePageHeader(b []byte) (*pageHeader, int, error) {
	h := &pageHeader{kind: -1}
	s := skimmer{b: b}
	err := s.fields(0, func(id int, kind byte) (bool, error) {
		switch id {
		case 1:
			return s.integer(kind, &h.kind)
		case 2:
			return s.integer(kind, &h.uncompressed)
		case 3:
			return s.integer(kind, &h.compressed)
		case 4:
			h.hasCRC = true
			return s.integer(kind, &h.crc)
		case 5:
			return h.members(&s, kind, []*int64{&h.values, &h.encoding, &h.defEncoding, &h.repEncoding})
		case 7:
			return h.members(&s, kind, []*int64{&h.values, &h.encoding})
		case 8:
			return h.members(&s, kind, []*int64{&h.values, &h.nulls, &h.rows, &h.encoding, &h.defLength, &h.repLength})
		}
		return false, nil
	})
	return h, s.at, err
}

// members reads the integers of an inner header, numbered from 1; member 7 is is_compressed.
func (h *pageHeader) members(s *skimmer, kind byte, into []*int64) (bool, error) {
	if kind != thriftStruct {
		return false, nil
	}
	return true, s.fields(1, func(id int, kind byte) (bool, error) {
		if id == 7 && kind == thriftFalse {
			h.plainV2 = true
		}
		if id >= 1 && id <= len(into) {
			return s.integer(kind, into[id-1])
		}
		return false, nil
	})
}
