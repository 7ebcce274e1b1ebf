package hfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
)

// Scan yields every entry in key order. It fails when the file holds fewer or more than the trailer promises, so a caller
// that got no error has seen them all.
func (r *Reader) Scan(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		var n int64
		c := cursor{r: r, w: window{src: r.src, ahead: scanRead}, next: r.trailer.firstData}
		for {
			e, ok, err := c.entry(ctx)
			if err == nil && (!ok && n < r.trailer.entries || ok && n == r.trailer.entries) {
				err = fmt.Errorf("%w: the trailer promises %d entries, found %d", ErrFormat, r.trailer.entries, n)
			}
			if err != nil {
				yield(Entry{}, fmt.Errorf("hfile scan: %w", err))
				return
			}
			if !ok || !yield(e, nil) {
				return
			}
			n++
		}
	}
}

// Seek yields the entries from the first one whose key is not smaller than key.
func (r *Reader) Seek(ctx context.Context, key []byte) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		c := cursor{r: r, w: window{src: r.src, ahead: seekRead}}
		e, ok, err := c.seek(ctx, key)
		for ; ok && err == nil; e, ok, err = c.entry(ctx) {
			if !yield(e, nil) {
				return
			}
			c.w.ahead = scanRead
		}
		if err != nil {
			yield(Entry{}, fmt.Errorf("hfile seek: %w", err))
		}
	}
}

// Prefix yields the entries whose key begins with prefix.
func (r *Reader) Prefix(ctx context.Context, prefix []byte) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for e, err := range r.Seek(ctx, prefix) {
			if err == nil && !bytes.HasPrefix(e.Key, prefix) {
				return
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Get yields the entries of the given keys, which must ascend by bytes; a key that is not there yields nothing. A key that
// stands several times yields each of its entries. Only blocks that may hold a key are read, each once.
func (r *Reader) Get(ctx context.Context, keys [][]byte) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		c := cursor{r: r, w: window{src: r.src, ahead: seekRead}}
		var held Entry // first entry that is not smaller than the last key
		more := false
		for i, key := range keys {
			if i > 0 && bytes.Compare(keys[i-1], key) > 0 {
				yield(Entry{}, fmt.Errorf("hfile get: keys must ascend, %q follows %q", key, keys[i-1]))
				return
			}
			var err error
			if i == 0 || more && bytes.Compare(held.Key, key) < 0 {
				held, more, err = c.seek(ctx, key)
			}
			for ; more && err == nil && bytes.Equal(held.Key, key); held, more, err = c.entry(ctx) {
				if !yield(held, nil) {
					return
				}
			}
			if err != nil {
				yield(Entry{}, fmt.Errorf("hfile get: %w", err))
				return
			}
			if !more {
				return
			}
		}
	}
}

// cursor walks over the data blocks.
type cursor struct {
	r    *Reader
	w    window
	next int64 // offset of the block after the current one
	at   int64 // offset of the current block
	rest []byte
	last []byte // key of the entry before
}

// seek puts the cursor behind the first entry not smaller than key and gives that entry. It stays in the current block
// when the key is there.
func (c *cursor) seek(ctx context.Context, key []byte) (Entry, bool, error) {
	off, size, ok, err := c.r.find(ctx, &c.w, key)
	if err != nil || !ok {
		return Entry{}, false, err
	}
	if c.rest == nil || off != c.at {
		c.next, c.last = off, nil
		if err := c.load(ctx, int(size)); err != nil {
			return Entry{}, false, err
		}
	}
	for {
		e, ok, err := c.entry(ctx)
		if err != nil || !ok || bytes.Compare(e.Key, key) >= 0 {
			return e, ok, err
		}
	}
}

// entry gives the next entry; false at the end of the file.
func (c *cursor) entry(ctx context.Context) (Entry, bool, error) {
	for len(c.rest) == 0 {
		if c.r.trailer.entries == 0 || c.next > c.r.trailer.lastData {
			return Entry{}, false, nil
		}
		if err := c.load(ctx, 0); err != nil {
			return Entry{}, false, err
		}
	}
	e, rest, err := c.r.parseEntry(c.rest)
	if err == nil && bytes.Compare(c.last, e.Key) > 0 {
		err = fmt.Errorf("key %q follows %q", e.Key, c.last)
	}
	if err != nil {
		return Entry{}, false, fmt.Errorf("%w: block at offset %d: %w", ErrFormat, c.at, err)
	}
	c.rest, c.last = rest, e.Key
	return e, true, nil
}

// load reads the next block. Index and bloom blocks among the data blocks leave the cursor empty.
func (c *cursor) load(ctx context.Context, hint int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b, err := c.r.readBlock(ctx, &c.w, c.next, hint)
	if err != nil {
		return err
	}
	c.at = c.next
	c.next += b.onDisk
	c.rest = nil
	if b.magic == magicData {
		c.rest = b.data
	}
	return nil
}

// parseEntry reads int32 key length, int32 value length, key, value, tags where the file has them, version number.
func (r *Reader) parseEntry(b []byte) (Entry, []byte, error) {
	if len(b) < 8 {
		return Entry{}, nil, fmt.Errorf("%d bytes left, too few for an entry", len(b))
	}
	k, v := int64(int32(binary.BigEndian.Uint32(b))), int64(int32(binary.BigEndian.Uint32(b[4:])))
	b = b[8:]
	if k < 0 || v < 0 || k+v > int64(len(b)) {
		return Entry{}, nil, fmt.Errorf("key of %d and value of %d bytes where %d are left", k, v, len(b))
	}
	row, err := rowOf(b[:k])
	if err != nil {
		return Entry{}, nil, err
	}
	e := Entry{Key: row[:len(row):len(row)], Value: b[k : k+v : k+v]}
	b = b[k+v:]
	if r.tags {
		if len(b) < 2 || int(binary.BigEndian.Uint16(b)) > len(b)-2 {
			return Entry{}, nil, fmt.Errorf("tags are cut")
		}
		b = b[2+int(binary.BigEndian.Uint16(b)):]
	}
	if r.mvcc {
		_, used, ok := vint(b)
		if !ok {
			return Entry{}, nil, fmt.Errorf("version number is cut")
		}
		b = b[used:]
	}
	return e, b, nil
}
