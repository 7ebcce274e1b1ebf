package orc

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
)

// slack is how many bytes beyond its end every buffer of an input can be read: unpacking loads whole words.
const slack = 8

// input gives the decompressed bytes of one stream, chunk by chunk.
//
// Compressed bytes come from raw, which is either the whole stream, read with those beside it beforehand, or a window that is
// filled from the file as needed.
type input struct {
	scan *scan // the file, the codec and the budget
	name string

	start, end int64  // of the stream in the file
	next       int64  // file offset of the byte after raw
	raw        []byte // fetched, not yet consumed
	whole      []byte // the whole stream, where it was read beforehand
	win        []byte // the window's buffer, otherwise
	buf        []byte // the decompressed chunk
	pos        int    // consumed of buf
	own        []byte // buffer behind buf, for chunks that had to be decompressed
	gathered   []byte // buffer of take
	chunkAt    int64  // file offset of the chunk in buf, for messages
}

// fail wraps what went wrong with the place.
func (in *input) fail(err error) error {
	if in.chunkAt == 0 {
		in.chunkAt = in.start
	}
	return fmt.Errorf("%s, chunk at file offset %d: %w", in.name, in.chunkAt, err)
}

func (in *input) damaged(format string, args ...any) error {
	return in.fail(fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...)))
}

var errShort = errors.New("the stream ends before its values do")

// need makes raw hold n bytes, n ≤ maxChunk + chunkHeader.
func (in *input) need(n int) error {
	if len(in.raw) >= n {
		return nil
	}
	if int64(n-len(in.raw)) > in.end-in.next {
		return in.fail(fmt.Errorf("%w: %w", ErrFormat, errShort))
	}
	size := int(min(int64(max(n, in.scan.window)), int64(len(in.raw))+in.end-in.next))
	if cap(in.win) < size+slack {
		if err := in.scan.mem.grow(int64(size), "a window of "+in.name); err != nil {
			return err
		}
		in.scan.mem.shrink(int64(cap(in.win)))
		w := make([]byte, size+slack)
		copy(w, in.raw)
		in.win = w
	} else {
		copy(in.win[:cap(in.win)], in.raw)
	}
	have := len(in.raw)
	in.raw = in.win[:size]
	if err := in.scan.file.readAt(in.raw[have:], in.next); err != nil {
		return in.fail(err)
	}
	in.next += int64(size - have)
	return nil
}

// fill moves on to the next chunk. It is called when buf is consumed.
func (in *input) fill() error {
	in.buf, in.pos = nil, 0
	in.chunkAt = in.next - int64(len(in.raw))
	if in.chunkAt >= in.end {
		return in.fail(fmt.Errorf("%w: %w", ErrFormat, errShort))
	}
	if in.scan.codec.kind == None {
		if err := in.need(1); err != nil {
			return err
		}
		in.buf, in.raw = in.raw, in.raw[len(in.raw):]
		return nil
	}
	if err := in.need(chunkHeader); err != nil {
		return err
	}
	n, original := chunkLength(in.raw)
	if err := in.need(chunkHeader + n); err != nil {
		return err
	}
	body := in.raw[chunkHeader : chunkHeader+n]
	in.raw = in.raw[chunkHeader+n:]
	if original {
		if n > in.scan.file.blockSize {
			return in.fail(fmt.Errorf("%w: %w", ErrFormat, tooLong(n, in.scan.file.blockSize)))
		}
		in.buf = body
		return nil
	}
	return in.decompress(body)
}

func (in *input) decompress(body []byte) error {
	s := in.scan
	dst := in.own
	if s.roomy {
		if dst == nil {
			if err := s.mem.grow(int64(s.file.blockSize), "a chunk of "+in.name); err != nil {
				return err
			}
			in.own = make([]byte, s.file.blockSize+slack)
			dst = in.own
		}
		dst = dst[:s.file.blockSize]
	} else {
		dst = s.scratch[:s.file.blockSize]
	}
	n, err := s.codec.decode(dst, body)
	if err != nil {
		return in.fail(fmt.Errorf("%w: %s: %w", ErrFormat, s.codec.kind, err))
	}
	if s.roomy {
		in.buf = dst[:n]
		return nil
	}
	// Many streams: each holds what its chunk has, not what a chunk may have.
	if len(in.own) < n+slack {
		if err := s.mem.grow(int64(n+slack-len(in.own)), "a chunk of "+in.name); err != nil {
			return err
		}
		in.own = make([]byte, n+slack)
	}
	copy(in.own, dst[:n])
	in.buf = in.own[:n]
	return nil
}

// seek goes to a position of a row index: a chunk's offset in the stream and an offset in the decompressed chunk; without
// compression, the one offset.
func (in *input) seek(chunk, within uint64) error {
	if chunk > uint64(in.end-in.start) {
		return in.damaged("the row index points to byte %d of %d", chunk, in.end-in.start)
	}
	in.buf, in.pos = nil, 0
	in.next, in.raw = in.start+int64(chunk), nil
	if in.whole != nil {
		in.raw, in.next = in.whole[chunk:], in.end
	}
	return in.skip(within)
}

// skip passes n bytes.
func (in *input) skip(n uint64) error {
	for n > 0 {
		if in.pos == len(in.buf) {
			if err := in.fill(); err != nil {
				return err
			}
		}
		k := min(n, uint64(len(in.buf)-in.pos))
		in.pos += int(k)
		n -= k
	}
	return nil
}

func (in *input) readByte() (byte, error) {
	for in.pos == len(in.buf) {
		if err := in.fill(); err != nil {
			return 0, err
		}
	}
	b := in.buf[in.pos]
	in.pos++
	return b, nil
}

// readFull fills p.
func (in *input) readFull(p []byte) error {
	for len(p) > 0 {
		if in.pos == len(in.buf) {
			if err := in.fill(); err != nil {
				return err
			}
		}
		n := copy(p, in.buf[in.pos:])
		p, in.pos = p[n:], in.pos+n
	}
	return nil
}

// take returns the next n bytes, valid until the next call; the slack bytes behind them can be read.
func (in *input) take(n int) ([]byte, error) {
	if n <= len(in.buf)-in.pos {
		b := in.buf[in.pos : in.pos+n]
		in.pos += n
		return b, nil
	}
	if cap(in.gathered) < n+slack {
		in.gathered = make([]byte, n+slack)
	}
	b := in.gathered[:n]
	return b, in.readFull(b)
}

// uvarint reads a base 128 varint of up to 64 bits.
func (in *input) uvarint() (uint64, error) {
	var v uint64
	for shift := uint(0); shift < 70; shift += 7 {
		b, err := in.readByte()
		if err != nil {
			return 0, err
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, nil
		}
	}
	return 0, in.damaged("a varint of more than ten bytes")
}

func (in *input) varint() (int64, error) {
	u, err := in.uvarint()
	return unzigzag(u), err
}

// uvarint128 reads a base 128 varint of up to 128 bits.
func (in *input) uvarint128() (hi, lo uint64, err error) {
	for shift := uint(0); shift < 133; shift += 7 {
		b, err := in.readByte()
		if err != nil {
			return 0, 0, err
		}
		v := uint64(b & 0x7f)
		switch {
		case shift < 64:
			lo |= v << shift
			if shift > 57 {
				hi |= v >> (64 - shift)
			}
		case bits.Len64(v)+int(shift) > 128:
			return 0, 0, in.damaged("a decimal of more than 128 bits")
		default:
			hi |= v << (shift - 64)
		}
		if b < 0x80 {
			return hi, lo, nil
		}
	}
	return 0, 0, in.damaged("a decimal of more than 128 bits")
}

// file is what every scan of a reader shares.
type file struct {
	r         io.ReaderAt
	size      int64
	blockSize int
}

// readAt fills p from offset at of the file.
func (f *file) readAt(p []byte, at int64) error {
	if at < 0 || int64(len(p)) > f.size-at {
		return fmt.Errorf("%w: bytes %d to %d of a file of %d", ErrFormat, at, at+int64(len(p)), f.size)
	}
	n, err := f.r.ReadAt(p, at)
	if n == len(p) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("orc: reading %d bytes at file offset %d: got %d: %w", len(p), at, n, err)
}
