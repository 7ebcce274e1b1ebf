package splice

import (
	"context"
	"fmt"

	"github.com/sluicelake/sluice/storage"
)

const (
	// maxIndex bounds the column or offset index of one chunk.
	maxIndex = 64 << 20
	// maxBloom bounds a bloom filter; writers stop at 128 MiB.
	maxBloom = 128 << 20
	// bloomHead is more than the header of a bloom filter takes.
	bloomHead = 64
)

// Fields of OffsetIndex, PageLocation, ColumnIndex and BloomFilterHeader.
const (
	offsetLocations  = 1
	locationOffset   = 1
	locationSize     = 2
	locationFirstRow = 3
	columnNullPages  = 1
	bloomBytes       = 1
)

// indexes reads the page indexes of a file, fetched in few requests.
type indexes struct {
	file *File
	ctx  context.Context //nolint:containedctx // lives for one Append
	near storage.Object
}

// indexRange is where an index of a chunk lies; field is chunkOffsetIndex or chunkColumnIndex.
func (c *chunk) indexRange(field int16, size int64) (storage.Range, bool) {
	off, n := c.head.number(field, 0), c.head.number(field+1, 0)
	return storage.Range{Off: off, Len: n}, off > 0 && n > 0 && n <= maxIndex && off < size && n <= size-off
}

// readIndexes fetches the indexes of all wanted chunks; nil where there are none.
func readIndexes(ctx context.Context, p *Projection) (*indexes, error) {
	var ranges []storage.Range
	size := p.file.obj.Size()
	for g := range p.file.groups {
		for _, column := range p.leaves {
			for _, field := range []int16{chunkOffsetIndex, chunkColumnIndex} {
				if r, ok := p.file.groups[g].columns[column].indexRange(field, size); ok {
					ranges = append(ranges, r)
				}
			}
		}
	}
	if len(ranges) == 0 {
		return nil, nil
	}
	near, err := storage.Prefetch(ctx, p.file.obj, ranges, storage.PrefetchOptions{})
	if err != nil {
		return nil, err
	}
	return &indexes{file: p.file, ctx: ctx, near: near}, nil
}

// moved gives the indexes of a chunk whose bytes moved by delta. An offset index must tell the pages that were seen, or there
// is none; a column index needs it.
func (x *indexes) moved(c *chunk, leaf *element, seen *walker, delta, rows int64) chunkIndexes {
	if x == nil {
		return chunkIndexes{}
	}
	offset := x.parsed(c, chunkOffsetIndex)
	places, err := offset.structures(offsetLocations)
	if err != nil || len(places) == 0 || len(places) != len(seen.pages) {
		return chunkIndexes{}
	}
	first := int64(-1)
	for i, place := range places {
		row := place.number(locationFirstRow, -1)
		if place.number(locationOffset, -1) != seen.pages[i].at || place.number(locationSize, -1) != seen.pages[i].size ||
			row <= first || row >= rows || i == 0 && row != 0 {
			return chunkIndexes{}
		}
		first = row
		places[i] = place.setI64(locationOffset, seen.pages[i].at+delta)
	}
	out := chunkIndexes{offset: offset.setStructs(offsetLocations, places).append(nil)}
	if column := x.parsed(c, chunkColumnIndex); column != nil && leaf.hasOrder() {
		if nulls, err := column.list(columnNullPages); err == nil && len(nulls) == len(places) {
			out.column = column.append(nil)
		}
	}
	return out
}

// parsed gives an index of a chunk; nil where it has none that is whole.
func (x *indexes) parsed(c *chunk, field int16) fields {
	r, ok := c.indexRange(field, x.file.obj.Size())
	if !ok {
		return nil
	}
	text := make([]byte, r.Len)
	if n, _ := x.near.ReadAt(x.ctx, text, r.Off); n < len(text) {
		return nil
	}
	out, n, err := parseFields(text)
	if err != nil || n != len(text) {
		return nil
	}
	return out
}

// bloom reads a chunk's bloom filter, header and bits; nil where it has none.
func (f *File) bloom(ctx context.Context, c *chunk) ([]byte, error) {
	at := c.meta.number(metaBloom, 0)
	size := f.obj.Size()
	if at <= 0 || at >= size {
		return nil, nil
	}
	head := make([]byte, min(bloomHead, size-at))
	if err := f.readAt(ctx, head, at); err != nil {
		return nil, err
	}
	n, ok := bloomSize(head)
	if !ok || n > size-at { // not the one kind of filter that there is: readers do without
		return nil, nil
	}
	out := make([]byte, n)
	if err := f.readAt(ctx, out, at); err != nil {
		return nil, fmt.Errorf("bloom filter: %w", err)
	}
	return out, nil
}

// bloomSize gives the bytes of a bloom filter with its header.
func bloomSize(head []byte) (int64, bool) {
	h, n, err := parseFields(head)
	bits := h.number(bloomBytes, -1)
	return int64(n) + bits, err == nil && bits > 0 && bits <= maxBloom && bits%32 == 0
}

// writeIndexes writes all column indexes, then all offset indexes, and gives the row groups that know them.
func (w *Writer) writeIndexes() ([]fields, error) {
	columns := len(w.shape.leaves)
	groups := make([]fields, len(w.groups))
	heads := make([]fields, len(w.indexes))
	for g, rg := range w.groups {
		in, err := rg.structures(groupColumns)
		if err != nil {
			return nil, err
		}
		copy(heads[g*columns:], in)
	}
	place := func(field int16, text func(chunkIndexes) []byte) error {
		for i, x := range w.indexes {
			b := text(x)
			if len(b) == 0 {
				continue
			}
			heads[i] = heads[i].setI64(field, w.pos).setI32(field+1, int64(len(b)))
			if err := w.write(b); err != nil {
				return err
			}
		}
		return nil
	}
	if err := place(chunkColumnIndex, func(x chunkIndexes) []byte { return x.column }); err != nil {
		return nil, err
	}
	if err := place(chunkOffsetIndex, func(x chunkIndexes) []byte { return x.offset }); err != nil {
		return nil, err
	}
	for g, rg := range w.groups {
		groups[g] = rg.setStructs(groupColumns, heads[g*columns:(g+1)*columns])
	}
	return groups, nil
}
