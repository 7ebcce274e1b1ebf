package hfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
)

// indexEntry points at a block. key is the row for data index entries and the plain name for meta index entries. HBase may
// shorten it: it is greater than every row before the block and not greater than the first row in it.
type indexEntry struct {
	offset int64
	size   int32 // on disk
	key    []byte
}

// maxLevels bounds the depth of an index; three levels reach over terabytes.
const maxLevels = 16

var errCut = errors.New("index is cut")

// parseRoot reads count entries of int64 offset, int32 size, VInt length, key.
func parseRoot(b []byte, count int64) ([]indexEntry, error) {
	if count < 0 || count > int64(len(b))/13 {
		return nil, fmt.Errorf("%d entries in %d bytes", count, len(b))
	}
	out := make([]indexEntry, 0, count)
	for range count {
		if len(b) < 13 {
			return nil, errCut
		}
		e := indexEntry{offset: int64(binary.BigEndian.Uint64(b)), size: int32(binary.BigEndian.Uint32(b[8:]))}
		n, used, ok := vint(b[12:])
		if !ok || n < 0 || n > int64(len(b)-12-used) {
			return nil, errCut
		}
		b = b[12+used:]
		e.key, b = b[:n], b[n:]
		out = append(out, e)
	}
	return out, nil
}

// parseNode reads a leaf or intermediate block: int32 n, n+1 relative offsets, n entries of int64 offset, int32 size, key.
func parseNode(b []byte) ([]indexEntry, error) {
	if len(b) < 8 {
		return nil, errCut
	}
	n := int64(int32(binary.BigEndian.Uint32(b)))
	if n < 0 || n > int64(len(b)-8)/16 {
		return nil, fmt.Errorf("%d entries in %d bytes", n, len(b))
	}
	at := func(i int64) int64 { return int64(int32(binary.BigEndian.Uint32(b[4+4*i:]))) }
	body := b[4+4*(n+1):]
	out := make([]indexEntry, 0, n)
	for i := range n {
		from, to := at(i), at(i+1)
		if from < 0 || to < from+12 || to > int64(len(body)) {
			return nil, errCut
		}
		e := body[from:to]
		out = append(out, indexEntry{offset: int64(binary.BigEndian.Uint64(e)), size: int32(binary.BigEndian.Uint32(e[8:])), key: e[12:]})
	}
	return out, nil
}

// checkRows cuts every key to its row and demands ascending order, without which a search would miss entries.
func checkRows(entries []indexEntry) error {
	for i := range entries {
		row, err := rowOf(entries[i].key)
		if err != nil {
			return err
		}
		entries[i].key = row
		if i > 0 && bytes.Compare(entries[i-1].key, row) > 0 {
			return fmt.Errorf("keys out of order: %q before %q", entries[i-1].key, row)
		}
	}
	return nil
}

// rowOf cuts the row out of a key: int16 length, row, and in full HBase keys family, timestamp and type.
func rowOf(key []byte) ([]byte, error) {
	if len(key) < 2 {
		return nil, errors.New("key without a row length")
	}
	n := int(binary.BigEndian.Uint16(key))
	if n > 0x7fff || n > len(key)-2 {
		return nil, fmt.Errorf("row of %d bytes in a key of %d", n, len(key))
	}
	return key[2 : 2+n], nil
}

// vint is Hadoop's WritableUtils number: one byte for -112 to 127, else a byte that says sign and length.
func vint(b []byte) (v int64, used int, ok bool) {
	if len(b) == 0 {
		return 0, 0, false
	}
	first := int8(b[0])
	if first >= -112 {
		return int64(first), 1, true
	}
	n := -112 - int(first)
	negative := first < -120
	if negative {
		n = -120 - int(first)
	}
	if len(b) < 1+n {
		return 0, 0, false
	}
	for _, c := range b[1 : 1+n] {
		v = v<<8 | int64(c)
	}
	if negative {
		v = ^v
	}
	return v, 1 + n, true
}

// find gives the place of the first data block that may hold key: the last block whose index key is smaller than key, as
// twins of a key may begin before the block that the index names for it. False: the file has no data.
func (r *Reader) find(ctx context.Context, w *window, key []byte) (offset int64, size int32, ok bool, err error) {
	entries := r.root
	for level := r.trailer.levels; len(entries) > 0; level-- {
		i := sort.Search(len(entries), func(i int) bool { return bytes.Compare(entries[i].key, key) >= 0 })
		e := entries[max(0, i-1)]
		if level <= 1 {
			return e.offset, e.size, true, nil
		}
		if entries, err = r.node(ctx, w, e); err != nil {
			return 0, 0, false, err
		}
	}
	return 0, 0, false, nil
}

// node reads an index block below the root, once.
func (r *Reader) node(ctx context.Context, w *window, e indexEntry) ([]indexEntry, error) {
	r.mu.Lock()
	entries, ok := r.nodes[e.offset]
	r.mu.Unlock()
	if ok {
		return entries, nil
	}
	b, err := r.readBlock(ctx, w, e.offset, int(e.size))
	if err != nil {
		return nil, err
	}
	if b.magic != magicLeaf && b.magic != magicInner {
		return nil, fmt.Errorf("%w: offset %d: a %q block where an index block should be", ErrFormat, e.offset, b.magic)
	}
	if entries, err = parseNode(b.data); err == nil {
		err = checkRows(entries)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: offset %d: %w", ErrFormat, e.offset, err)
	}
	r.mu.Lock()
	r.nodes[e.offset] = entries
	r.mu.Unlock()
	return entries, nil
}
