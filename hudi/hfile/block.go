package hfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/gzip"
)

// codec is the number of a compression algorithm in the trailer.
type codec int64

const (
	codecGzip codec = 1
	codecNone codec = 2
)

func (c codec) String() string {
	names := [...]string{"LZO", "GZ", "NONE", "SNAPPY", "LZ4", "BZIP2", "ZSTD"}
	if c >= 0 && int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("%d", int64(c))
}

// The kinds of blocks, by their first eight bytes.
const (
	magicData  = "DATABLK*"
	magicMeta  = "METABLKc"
	magicRoot  = "IDXROOT2"
	magicLeaf  = "IDXLEAF2"
	magicInner = "IDXINTE2"
	magicInfo  = "FILEINF2"
)

const (
	headerSize = 33
	// maxBlock bounds one block on disk and after decompression. Hudi writes blocks of 64 KB to 1 MB, one entry may be longer.
	maxBlock = 1 << 30
	// maxRatio is more than deflate can ever reach: a block that claims more is damaged.
	maxRatio = 1100
)

// block is one block after decompression.
type block struct {
	magic  string
	data   []byte
	onDisk int64 // bytes in the file, header and checksums included
}

// readBlock reads the block at off. hint is its size on disk where an index gave one, else 0.
func (r *Reader) readBlock(ctx context.Context, w *window, off int64, hint int) (block, error) {
	if off < 0 || off > r.src.size-trailerSize-headerSize {
		return block{}, fmt.Errorf("%w: offset %d: no block fits there", ErrFormat, off)
	}
	if hint > headerSize && int64(hint) <= r.src.size-off {
		if _, err := w.bytes(ctx, off, hint); err != nil {
			return block{}, err
		}
	}
	h, err := w.bytes(ctx, off, headerSize)
	if err != nil {
		return block{}, err
	}
	b := block{magic: string(h[:8])}
	onDisk := int64(int32(binary.BigEndian.Uint32(h[8:])))
	plain := int64(int32(binary.BigEndian.Uint32(h[12:])))
	payload := int64(int32(binary.BigEndian.Uint32(h[29:]))) - headerSize
	b.onDisk = headerSize + onDisk
	if onDisk < 0 || onDisk > maxBlock || plain < 0 || plain > maxBlock || payload < 0 || payload > onDisk || b.onDisk > r.src.size-trailerSize-off {
		return block{}, fmt.Errorf("%w: offset %d: block of %d bytes, %d with checksums, does not fit", ErrFormat, off, payload, onDisk)
	}
	whole, err := w.bytes(ctx, off, int(b.onDisk))
	if err != nil {
		return block{}, err
	}
	if err := verify(whole[:headerSize+payload], whole[headerSize+payload:]); err != nil {
		return block{}, fmt.Errorf("%w: offset %d: %w", ErrFormat, off, err)
	}
	if b.data, err = r.unpack(whole[headerSize:headerSize+payload], int(plain)); err != nil {
		return block{}, fmt.Errorf("%w: offset %d: %w", ErrFormat, off, err)
	}
	return b, nil
}

// verify compares the checksums that follow a block, one for each started chunk of header and payload.
func verify(data, sums []byte) error {
	var table *crc32.Table
	switch data[24] {
	case 0: // none; the native writer leaves zero bytes
		return nil
	case 1:
		table = crc32.IEEETable
	case 2:
		table = crc32.MakeTable(crc32.Castagnoli)
	default:
		return fmt.Errorf("checksum type %d", data[24])
	}
	chunk := int(int32(binary.BigEndian.Uint32(data[25:])))
	if chunk <= 0 {
		return fmt.Errorf("checksum chunks of %d bytes", chunk)
	}
	for len(data) > 0 {
		n := min(chunk, len(data))
		if len(sums) < 4 {
			return errors.New("checksums are cut")
		}
		if crc32.Checksum(data[:n], table) != binary.BigEndian.Uint32(sums) {
			return errors.New("checksum differs: the block is damaged")
		}
		data, sums = data[n:], sums[4:]
	}
	return nil
}

// unpack gives the payload decompressed, in memory of its own.
func (r *Reader) unpack(payload []byte, size int) ([]byte, error) {
	if r.trailer.codec == codecNone || !bytes.HasPrefix(payload, []byte{0x1f, 0x8b}) {
		if len(payload) != size {
			return nil, fmt.Errorf("block holds %d bytes, its header says %d", len(payload), size)
		}
		return bytes.Clone(payload), nil
	}
	if size > len(payload)*maxRatio {
		return nil, fmt.Errorf("%d compressed bytes can't hold %d", len(payload), size)
	}
	z, err := gzip.NewReader(bytes.NewReader(payload))
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	z.Multistream(false)
	out := make([]byte, size)
	if _, err := io.ReadFull(z, out); err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	if n, err := z.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return nil, fmt.Errorf("gzip: more than the %d bytes that the header says, or a wrong checksum", size)
	}
	return out, nil
}

// window holds the part of the file that was read last, so that neighbours cost one request.
type window struct {
	src   source
	ahead int // smallest request
	buf   []byte
	off   int64
}

// bytes gives n bytes from off, valid until the next call.
func (w *window) bytes(ctx context.Context, off int64, n int) ([]byte, error) {
	if off < 0 || n < 0 || int64(n) > w.src.size-off {
		return nil, fmt.Errorf("%w: %d bytes at offset %d of %d", ErrFormat, n, off, w.src.size)
	}
	if off >= w.off && off+int64(n) <= w.off+int64(len(w.buf)) {
		at := int(off - w.off)
		return w.buf[at : at+n : at+n], nil
	}
	size := int(min(int64(max(n, w.ahead)), w.src.size-off))
	if cap(w.buf) < size {
		w.buf = make([]byte, size)
	}
	w.buf, w.off = w.buf[:size], off
	got, err := w.src.readAt(ctx, w.buf, off)
	if got < size {
		w.buf = nil
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("%d bytes at offset %d: %w", size, off, err)
	}
	return w.buf[:n:n], nil
}
