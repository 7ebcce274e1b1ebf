package orc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

const (
	// chunkHeader is the size of the header of each compressed chunk: its length, doubled, plus one where the bytes are stored
	// as they are; three bytes, little endian (specification, "Compression").
	chunkHeader = 3
	// maxChunk is the longest chunk that the header can describe.
	maxChunk = 1<<23 - 1
)

// putChunkHeader writes the header of a chunk of n bytes.
func putChunkHeader(b []byte, n int, original bool) {
	h := uint32(n) << 1
	if original {
		h |= 1
	}
	b[0], b[1], b[2] = byte(h), byte(h>>8), byte(h>>16)
}

func chunkLength(b []byte) (n int, original bool) {
	h := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
	return int(h >> 1), h&1 == 1
}

// decompressor decodes chunks one at a time; its state serves every stream of one scan. The zero value with a kind is ready.
type decompressor struct {
	kind     Compression
	inflater *inflater
	zstd     *zstd.Decoder
}

// decode writes the chunk src into dst, whose length is the file's chunk size, and returns how much of dst it filled.
func (d *decompressor) decode(dst, src []byte) (int, error) {
	switch d.kind {
	case Zlib:
		// A raw deflate stream: ORC's zlib has no zlib header.
		if d.inflater == nil {
			d.inflater = new(inflater)
		}
		return d.inflater.decode(dst, src)
	case Snappy:
		n, err := snappy.DecodedLen(src)
		if err != nil {
			return 0, err
		}
		if n > len(dst) {
			return 0, tooLong(n, len(dst))
		}
		out, err := snappy.Decode(dst[:n], src)
		return len(out), err
	case LZ4:
		return lz4.UncompressBlock(src, dst)
	case LZO:
		return lzoDecode(dst, src)
	case ZSTD:
		if d.zstd == nil {
			var err error
			if d.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true)); err != nil {
				return 0, err
			}
		}
		out, err := d.zstd.DecodeAll(src, dst[:0:len(dst)])
		return len(out), err
	}
	return 0, fmt.Errorf("%w: %s", ErrUnsupported, d.kind)
}

func tooLong(n, block int) error {
	return fmt.Errorf("a chunk of %d bytes or more, longer than the file's chunk size of %d", n, block)
}

func (d *decompressor) close() {
	if d.zstd != nil {
		d.zstd.Close()
	}
}

// compressor encodes chunks.
type compressor struct {
	kind  Compression
	flate *flate.Writer
	sink  bytes.Buffer
	zstd  *zstd.Encoder
	lz4   lz4.Compressor
	dst   []byte
}

// The levels of the codecs that have any: where more effort begins to cost much time for few bytes.
const (
	flateLevel = 3
	zstdLevel  = zstd.SpeedFastest
)

func newCompressor(kind Compression) (*compressor, error) {
	c := &compressor{kind: kind}
	var err error
	switch kind {
	case None, Snappy, LZ4:
	case Zlib:
		c.flate, err = flate.NewWriter(&c.sink, flateLevel)
	case ZSTD:
		c.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstdLevel), zstd.WithEncoderCRC(false))
	default:
		return nil, fmt.Errorf("%w: writing with %s; choose none, zlib, snappy, lz4 or zstd", ErrUnsupported, kind)
	}
	return c, err
}

// appendChunk appends src, at most the block size, as one chunk with its header: compressed, or as it is where that is no longer.
func (c *compressor) appendChunk(to, src []byte) ([]byte, error) {
	packed, err := c.encode(src)
	if err != nil {
		return to, fmt.Errorf("orc: compressing %d bytes with %s: %w", len(src), c.kind, err)
	}
	original := packed == nil || len(packed) >= len(src)
	if original {
		packed = src
	}
	var h [chunkHeader]byte
	putChunkHeader(h[:], len(packed), original)
	return append(append(to, h[:]...), packed...), nil
}

// encode returns the compressed form of src, valid until the next call, or nil where the codec gave up.
func (c *compressor) encode(src []byte) ([]byte, error) {
	switch c.kind {
	case Zlib:
		c.sink.Reset()
		c.flate.Reset(&c.sink)
		if _, err := c.flate.Write(src); err != nil {
			return nil, err
		}
		err := c.flate.Close()
		return c.sink.Bytes(), err
	case Snappy:
		c.room(snappy.MaxEncodedLen(len(src)))
		return snappy.Encode(c.dst, src), nil
	case LZ4:
		c.room(lz4.CompressBlockBound(len(src)))
		n, err := c.lz4.CompressBlock(src, c.dst)
		return c.dst[:n:n], err
	case ZSTD:
		c.dst = c.zstd.EncodeAll(src, c.dst[:0])
		return c.dst, nil
	}
	return nil, nil
}

// room gives dst a length of n at least.
func (c *compressor) room(n int) {
	if cap(c.dst) < n {
		c.dst = make([]byte, n)
	}
	c.dst = c.dst[:cap(c.dst)]
}

var errLZO = errors.New("damaged LZO data")

// lzoDecode decodes LZO1X, the LZO of Hadoop. The rules of the instructions are in the Linux kernel's "LZO stream format".
func lzoDecode(dst, src []byte) (int, error) {
	in, out := 0, 0
	literals := 0 // how many the last instruction copied, 4 for "four or more"
	byteAt := func() int {
		if in >= len(src) {
			in++
			return 0
		}
		in++
		return int(src[in-1])
	}
	// length reads the continuation of a length whose bits in the instruction are all zero.
	length := func(base int) int {
		for in < len(src) && src[in] == 0 {
			in, base = in+1, base+255
		}
		return base + byteAt()
	}
	copyLiterals := func(n int) bool {
		if n > len(src)-in || n > len(dst)-out {
			return false
		}
		out += copy(dst[out:], src[in:in+n])
		in += n
		literals = min(n, 4)
		return true
	}
	copyMatch := func(distance, n int) bool {
		if distance > out || n > len(dst)-out {
			return false
		}
		for ; n > 0; n-- {
			dst[out] = dst[out-distance]
			out++
		}
		return true
	}
	first := true
	for in < len(src) {
		if first && src[in] > 17 { // a block may begin with a run of literals of a form of its own
			in++
			if !copyLiterals(int(src[in-1]) - 17) {
				return out, errLZO
			}
			first = false
			continue
		}
		first = false
		c := byteAt()
		var distance, n, tail int
		switch {
		case c >= 64: // MMMP PPLL
			n, distance, tail = c>>5+1, (c>>2&7)|byteAt()<<3, c&3
			distance++
		case c >= 32: // 001M MMMM, distance of 14 bits
			if n = c & 31; n == 0 {
				n = length(31)
			}
			t := byteAt() | byteAt()<<8
			n, distance, tail = n+2, t>>2+1, t&3
		case c >= 16: // 0001 HMMM, distance above 16 KiB; a distance of exactly that ends the block
			if n = c & 7; n == 0 {
				n = length(7)
			}
			t := byteAt() | byteAt()<<8
			n, distance, tail = n+2, 0x4000+(c&8)<<11+t>>2, t&3
			if distance == 0x4000 {
				if in > len(src) {
					return out, errLZO
				}
				literals, first = 0, true
				continue // another block may follow
			}
		case literals == 0: // 0000 LLLL, four literals or more
			if n = c; n == 0 {
				n = length(15)
			}
			if !copyLiterals(n + 3) {
				return out, errLZO
			}
			continue
		case literals < 4:
			n, distance, tail = 2, (c>>2)|byteAt()<<2, c&3
			distance++
		default:
			n, distance, tail = 3, (c>>2)|byteAt()<<2, c&3
			distance += 2049
		}
		if in > len(src) || !copyMatch(distance, n) || !copyLiterals(tail) {
			return out, errLZO
		}
	}
	return out, nil
}

// leUint64 reads word i of a sequence of little-endian 64-bit words.
func leUint64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
