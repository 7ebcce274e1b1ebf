// Package hfile reads HFile version 3 as Apache Hudi writes it: base files and log blocks of the metadata table, by its
// HBase based writer (up to 1.0) and by its native one (since 1.1). See table format 9.6.
//
// An HFile is a sorted list of (key, value) in compressed blocks under a tree of index blocks. Here a key is the row alone,
// which is Hudi's record key in UTF-8; the rest of an HBase key (family, timestamp, type) is constant and is left out, so
// that files of both writers compare alike (trap 31). Keys ascend by unsigned bytes.
package hfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/sluicelake/sluice/storage"
)

// ErrFormat is wrapped by every error about bytes that are no HFile, or a damaged one.
var ErrFormat = errors.New("invalid HFile")

// ErrUnsupported is wrapped when the file is sound but of a kind that Hudi does not write: another codec, encryption.
var ErrUnsupported = errors.New("unsupported HFile")

// Entry is one key with its value. Both stay valid, and share the memory of the block that they came from.
type Entry struct {
	Key   []byte
	Value []byte // empty: the key was removed (metadata table)
}

// Reader of one file. Safe for use by several goroutines.
type Reader struct {
	src     source
	trailer trailer
	root    []indexEntry
	meta    []indexEntry
	info    map[string][]byte
	mvcc    bool // each entry ends with a version number
	tags    bool // each entry has tags behind its value

	mu    sync.Mutex
	nodes map[int64][]indexEntry // index blocks below the root that were read
}

// source is what a Reader reads from.
type source struct {
	readAt func(ctx context.Context, p []byte, off int64) (int, error)
	size   int64
}

// whole reads a small file at once, as most log blocks of a metadata table are.
func (s source) whole(ctx context.Context) (source, error) {
	data := make([]byte, s.size)
	if n, err := s.readAt(ctx, data, 0); n < len(data) {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return source{}, fmt.Errorf("%d bytes at offset 0: %w", len(data), err)
	}
	all := bytes.NewReader(data)
	return source{size: s.size, readAt: func(_ context.Context, p []byte, off int64) (int, error) { return all.ReadAt(p, off) }}, nil
}

// Open reads the trailer, the root index and the file info: at most two range reads. A file up to 256 KiB is read whole.
func Open(ctx context.Context, r io.ReaderAt, size int64) (*Reader, error) {
	return open(ctx, source{size: size, readAt: func(ctx context.Context, p []byte, off int64) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.ReadAt(p, off)
	}})
}

// OpenObject is Open for an object of a store. The caller closes the object when the Reader is done with.
func OpenObject(ctx context.Context, obj storage.Object) (*Reader, error) {
	return open(ctx, source{size: obj.Size(), readAt: obj.ReadAt})
}

func open(ctx context.Context, src source) (*Reader, error) {
	if src.size <= wholeRead {
		var err error
		if src, err = src.whole(ctx); err != nil {
			return nil, fmt.Errorf("hfile: %w", err)
		}
	}
	r := &Reader{src: src, nodes: map[int64][]indexEntry{}}
	w := window{src: src, ahead: tailRead}
	if err := r.readTrailer(ctx, &w); err != nil {
		return nil, fmt.Errorf("hfile trailer: %w", err)
	}
	if err := r.readLoadOnOpen(ctx, &w); err != nil {
		return nil, fmt.Errorf("hfile index: %w", err)
	}
	return r, nil
}

// Entries is the number of entries that the trailer promises; Scan checks it.
func (r *Reader) Entries() int64 { return r.trailer.entries }

// Info gives an entry of the file info section: "schema", "minRecordKey", "maxRecordKey", "hfile.LASTKEY", …
func (r *Reader) Info(name string) ([]byte, bool) {
	v, ok := r.info[name]
	return v, ok
}

// Schema is the Avro schema of the values, as text; empty when the file info has none.
func (r *Reader) Schema() string { return string(r.info["schema"]) }

// LastKey is the greatest key, and false for an empty file.
func (r *Reader) LastKey() ([]byte, bool) {
	last := r.info["hfile.LASTKEY"]
	if r.trailer.entries == 0 || len(last) == 0 {
		return nil, false
	}
	row, err := rowOf(last)
	return row, err == nil
}

// FirstKey is the smallest key, and false for an empty file. It reads the first data block.
func (r *Reader) FirstKey(ctx context.Context) ([]byte, bool, error) {
	for e, err := range r.Seek(ctx, nil) {
		return e.Key, err == nil, err
	}
	return nil, false, nil
}

// Meta gives the content of a meta block, such as "bloomFilter" (table format 5.4), and whether the file has it.
func (r *Reader) Meta(ctx context.Context, name string) ([]byte, bool, error) {
	for _, m := range r.meta {
		if string(m.key) != name {
			continue
		}
		b, err := r.readBlock(ctx, &window{src: r.src}, m.offset, int(m.size))
		if err == nil && b.magic != magicMeta {
			err = fmt.Errorf("%w: offset %d: a %q block where the meta block %q should be", ErrFormat, m.offset, b.magic, name)
		}
		if err != nil {
			return nil, false, fmt.Errorf("hfile meta block %s: %w", name, err)
		}
		return b.data, true, nil
	}
	return nil, false, nil
}

// trailer is the fixed part at the end of the file.
type trailer struct {
	fileInfo, loadOnOpen int64
	dataIndexCount       int64
	metaIndexCount       int64
	entries              int64
	levels               int64
	firstData, lastData  int64
	codec                codec
}

const (
	trailerSize  = 4096
	trailerMagic = `TRABLK"$`
	// tailRead is what Open reads from the end of a file in its first request: enough for the indexes of most files.
	tailRead = 64 << 10
	// wholeRead is the size up to which a file is kept in memory.
	wholeRead = 256 << 10
	// seekRead is the least that a look-up reads: the usual size of a block.
	seekRead = 64 << 10
	// scanRead is how far Scan reads ahead.
	scanRead = 1 << 20
)

func (r *Reader) readTrailer(ctx context.Context, w *window) error {
	if r.src.size < trailerSize {
		return fmt.Errorf("%w: %d bytes are too few for a trailer", ErrFormat, r.src.size)
	}
	start := r.src.size - trailerSize
	if _, err := w.bytes(ctx, max(0, r.src.size-tailRead), int(min(tailRead, r.src.size))); err != nil {
		return err
	}
	b, err := w.bytes(ctx, start, trailerSize)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(b, []byte(trailerMagic)) {
		return fmt.Errorf("%w: offset %d: no trailer magic", ErrFormat, start)
	}
	if major := int(b[trailerSize-3])<<16 | int(b[trailerSize-2])<<8 | int(b[trailerSize-1]); major != 3 {
		return fmt.Errorf("%w: version %d, only 3 can be read", ErrUnsupported, major)
	}
	p := proto(b[len(trailerMagic) : trailerSize-4])
	msg, ok := p.delimited()
	if !ok {
		return fmt.Errorf("%w: offset %d: trailer message is cut", ErrFormat, start)
	}
	if err := r.trailer.parse(msg); err != nil {
		return fmt.Errorf("%w: offset %d: %w", ErrFormat, start, err)
	}
	t := &r.trailer
	if t.codec != codecNone && t.codec != codecGzip {
		return fmt.Errorf("%w: compression codec %s; rewrite the file with GZ or NONE", ErrUnsupported, t.codec)
	}
	if t.loadOnOpen < 0 || t.loadOnOpen > start || t.fileInfo < t.loadOnOpen || t.fileInfo > start || t.entries < 0 {
		return fmt.Errorf("%w: offset %d: trailer points outside the file", ErrFormat, start)
	}
	if t.entries > 0 && (t.firstData < 0 || t.lastData < t.firstData || t.lastData > t.loadOnOpen) {
		return fmt.Errorf("%w: offset %d: data blocks from %d to %d in a file of %d bytes", ErrFormat, start, t.firstData, t.lastData, r.src.size)
	}
	if t.levels < 0 || t.levels > maxLevels {
		return fmt.Errorf("%w: offset %d: %d index levels", ErrFormat, start, t.levels)
	}
	return nil
}

func (t *trailer) parse(p proto) error {
	t.codec = codecNone
	for len(p) > 0 {
		field, n, text, ok := p.field()
		if !ok {
			return errors.New("trailer message is damaged")
		}
		v := int64(n)
		switch field {
		case 1:
			t.fileInfo = v
		case 2:
			t.loadOnOpen = v
		case 5:
			t.dataIndexCount = v
		case 6:
			t.metaIndexCount = v
		case 7:
			t.entries = v
		case 8:
			t.levels = v
		case 9:
			t.firstData = v
		case 10:
			t.lastData = v
		case 12:
			t.codec = codec(v)
		case 13:
			if len(text) > 0 {
				return errors.New("the file is encrypted")
			}
		}
	}
	return nil
}

// readLoadOnOpen reads root index, meta index and file info, which follow one another.
func (r *Reader) readLoadOnOpen(ctx context.Context, w *window) error {
	end := r.src.size - trailerSize
	if _, err := w.bytes(ctx, r.trailer.loadOnOpen, int(min(end-r.trailer.loadOnOpen, maxBlock))); err != nil {
		return err
	}
	root, err := r.readBlock(ctx, w, r.trailer.loadOnOpen, 0)
	if err != nil {
		return err
	}
	if root.magic != magicRoot {
		return fmt.Errorf("%w: offset %d: a %q block where the root index should be", ErrFormat, r.trailer.loadOnOpen, root.magic)
	}
	if r.root, err = parseRoot(root.data, r.trailer.dataIndexCount); err != nil {
		return fmt.Errorf("%w: offset %d: root index: %w", ErrFormat, r.trailer.loadOnOpen, err)
	}
	if err := checkRows(r.root); err != nil {
		return fmt.Errorf("%w: offset %d: root index: %w", ErrFormat, r.trailer.loadOnOpen, err)
	}
	if next := r.trailer.loadOnOpen + root.onDisk; next < r.trailer.fileInfo {
		meta, err := r.readBlock(ctx, w, next, 0)
		if err != nil {
			return err
		}
		if r.meta, err = parseRoot(meta.data, r.trailer.metaIndexCount); err != nil || meta.magic != magicRoot {
			return fmt.Errorf("%w: offset %d: meta index: %w", ErrFormat, next, err)
		}
	}
	info, err := r.readBlock(ctx, w, r.trailer.fileInfo, 0)
	if err != nil {
		return err
	}
	if info.magic != magicInfo {
		return fmt.Errorf("%w: offset %d: a %q block where the file info should be", ErrFormat, r.trailer.fileInfo, info.magic)
	}
	return r.parseInfo(info.data)
}

func (r *Reader) parseInfo(b []byte) error {
	damaged := fmt.Errorf("%w: offset %d: file info is damaged", ErrFormat, r.trailer.fileInfo)
	rest, ok := bytes.CutPrefix(b, []byte("PBUF"))
	if !ok {
		return damaged
	}
	p := proto(rest)
	msg, ok := p.delimited()
	if !ok {
		return damaged
	}
	r.info = map[string][]byte{}
	for len(msg) > 0 {
		field, _, pair, ok := msg.field()
		if !ok {
			return damaged
		}
		if field != 1 {
			continue
		}
		var kv [3][]byte
		for pair := proto(pair); len(pair) > 0; {
			f, _, text, ok := pair.field()
			if !ok {
				return damaged
			}
			if f == 1 || f == 2 {
				kv[f] = text
			}
		}
		r.info[string(kv[1])] = kv[2]
	}
	version := r.info["KEY_VALUE_VERSION"]
	r.mvcc = len(version) == 4 && binary.BigEndian.Uint32(version) == 1
	_, r.tags = r.info["MAX_TAGS_LEN"]
	return nil
}

// proto walks a protobuf message: only varints and byte strings occur.
type proto []byte

func (p *proto) uvarint() (uint64, bool) {
	v, n := binary.Uvarint(*p)
	if n <= 0 {
		return 0, false
	}
	*p = (*p)[n:]
	return v, true
}

func (p *proto) delimited() (proto, bool) {
	n, ok := p.uvarint()
	if !ok || n > uint64(len(*p)) {
		return nil, false
	}
	out := (*p)[:n]
	*p = (*p)[n:]
	return out, true
}

func (p *proto) field() (field uint64, n uint64, text []byte, ok bool) {
	tag, ok := p.uvarint()
	if !ok {
		return 0, 0, nil, false
	}
	switch tag & 7 {
	case 0:
		n, ok = p.uvarint()
		return tag >> 3, n, nil, ok
	case 2:
		text, ok := p.delimited()
		return tag >> 3, 0, text, ok
	}
	return 0, 0, nil, false
}
