package source

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"github.com/sluicelake/sluice/storage"
)

const (
	chunkBytes  = 2 << 20   // of text that are decoded as one piece
	maxRecord   = 128 << 20 // longest record of a text file
	maxSnappy   = 64 << 20  // largest block of Hadoop's snappy
	ioBuffer    = 1 << 20
	smallObject = 4 << 20 // files up to this size are one piece of work
)

// openText opens a file and decompresses it. Its name and its first bytes say how it is compressed: gzip, zstd, bzip2, snappy
// (framed, or in the blocks of Hadoop's codec) and deflate.
func openText(ctx context.Context, store storage.Store, info storage.Info) (io.ReadCloser, error) {
	obj, err := store.Open(ctx, info.Name)
	if err != nil {
		return nil, err
	}
	file := storage.ReaderAt(ctx, obj)
	r, err := decompress(bufio.NewReaderSize(file, bufferFor(info.Size)), info.Name)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &textFile{Reader: r, file: file}, nil
}

type textFile struct {
	io.Reader
	file io.Closer
}

func (t *textFile) Close() error {
	if c, ok := t.Reader.(*zstd.Decoder); ok {
		c.Close()
	}
	return t.file.Close()
}

func decompress(r *bufio.Reader, name string) (io.Reader, error) {
	head, err := r.Peek(10)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	ext := strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return gzip.NewReader(r)
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30))
	case bytes.HasPrefix(head, []byte("BZh")):
		return bzip2.NewReader(r), nil
	case bytes.HasPrefix(head, []byte("\xff\x06\x00\x00sNaPpY")):
		return snappy.NewReader(r), nil
	case ext == "snappy":
		return &hadoopSnappy{r: r}, nil
	case ext == "deflate" || ext == "zlib":
		return zlib.NewReader(r)
	case ext == "gz" || ext == "gzip" || ext == "zst" || ext == "bz2":
		return nil, fmt.Errorf("the name says %s, the bytes do not: was the file written whole?", ext)
	case ext == "lz4" || ext == "lzo" || ext == "xz":
		return nil, fmt.Errorf("files compressed with %s are not read; gzip, zstd, bzip2, snappy and deflate are", ext)
	}
	return r, nil
}

// hadoopSnappy reads the blocks of Hadoop's SnappyCodec: the length of the data, then chunks, each with its own length in
// front, until that many bytes came out. Lengths are four bytes, big-endian.
type hadoopSnappy struct {
	r    io.Reader
	left int // bytes of the block to come
	out  []byte
	in   []byte
}

func (h *hadoopSnappy) Read(p []byte) (int, error) {
	for len(h.out) == 0 {
		if err := h.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, h.out)
	h.out = h.out[n:]
	return n, nil
}

func (h *hadoopSnappy) next() error {
	if h.left == 0 {
		n, err := h.length()
		if err != nil {
			return err // io.EOF between blocks is the end
		}
		h.left = n
		return nil
	}
	n, err := h.length()
	if err == nil {
		h.in = grow(h.in, n)
		_, err = io.ReadFull(h.r, h.in)
	}
	if err != nil {
		return errors.Join(errors.New("snappy block is cut"), io.ErrUnexpectedEOF)
	}
	size, err := snappy.DecodedLen(h.in)
	if err != nil || size > h.left {
		return errors.New("snappy block is damaged")
	}
	h.out, err = snappy.Decode(nil, h.in)
	h.left -= len(h.out)
	return err
}

func (h *hadoopSnappy) length() (int, error) {
	var b [4]byte
	if _, err := io.ReadFull(h.r, b[:]); err != nil {
		return 0, err
	}
	n := binary.BigEndian.Uint32(b[:])
	if n > maxSnappy {
		return 0, fmt.Errorf("snappy block of %d bytes", n)
	}
	return int(n), nil
}

func grow(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

// chunk is a part of a text file that holds whole records.
type chunk struct {
	file  string
	line  int64 // of its first byte, from 1
	first bool  // of its file
	text  []byte
}

// decodeChunk reads the records of a chunk and sends them.
type decodeChunk func(o Options, c chunk, send func(item) error) error

// textFormat is a format of text files. open says how a file is cut and read; it is given the first bytes of the text.
type textFormat interface {
	recode(r io.Reader) io.Reader
	open(head []byte) (splitter, decodeChunk, error)
}

// readText starts the pieces of text files, in order.
func readText(ctx context.Context, store storage.Store, files []storage.Info, f textFormat, o Options, start func(work) error) error {
	for _, info := range files {
		if info.Size <= smallObject {
			err := start(func(ctx context.Context, send func(item) error) error {
				return readOneText(ctx, store, info, f, func(decode decodeChunk, c chunk) error { return decode(o, c, send) })
			})
			if err != nil {
				return err
			}
			continue
		}
		err := readOneText(ctx, store, info, f, func(decode decodeChunk, c chunk) error {
			return start(func(_ context.Context, send func(item) error) error { return decode(o, c, send) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func readOneText(ctx context.Context, store storage.Store, info storage.Info, f textFormat, each func(decodeChunk, chunk) error) error {
	file := storage.Join(store.URL(), info.Name)
	r, err := openText(ctx, store, info)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	defer r.Close()
	text := bufio.NewReaderSize(f.recode(r), bufferFor(16*info.Size))
	head, err := text.Peek(text.Size())
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", file, err)
	}
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) { // the mark that some editors put in front of UTF-8
		head = head[3:]
		if _, err := text.Discard(3); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	split, decode, err := f.open(head)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return chunks(text, file, bufferFor(16*info.Size), split, func(c chunk) error { return each(decode, c) })
}

// splitter finds the end of the last whole record in text; 0: there is none. At the end of the file all of it is to be whole.
type splitter func(text []byte, end bool) (int, error)

// lines ends records at line ends.
func lines(text []byte, end bool) (int, error) {
	if end {
		return len(text), nil
	}
	return bytes.LastIndexByte(text, '\n') + 1, nil
}

// bufferFor is a buffer for a text of some bytes: small files must not cost as much memory as large ones.
func bufferFor(size int64) int { return int(min(max(size, 4<<10), ioBuffer)) }

// chunks cuts a text into parts of whole records. Each part's bytes are its own. first is about half of the first one's size.
func chunks(r io.Reader, file string, first int, split splitter, each func(chunk) error) error {
	buf, line, begins := make([]byte, 0, min(2*first, chunkBytes)), int64(1), true
	for end := false; !end; {
		var err error
		if buf, err = fill(r, buf); errors.Is(err, io.EOF) {
			end = true
		} else if err != nil {
			return fmt.Errorf("%s: line %d: reading on: %w", file, line+int64(bytes.Count(buf, []byte{'\n'})), err)
		}
		at, err := split(buf, end)
		if err != nil {
			return &RecordError{File: file, Line: line, Text: string(buf[:min(len(buf), 200)]), Err: err}
		}
		if at == 0 && !end {
			if len(buf) > maxRecord {
				return &RecordError{File: file, Line: line, Text: string(buf[:200]), Err: fmt.Errorf("a record of more than %d MiB", maxRecord>>20)}
			}
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
			continue
		}
		var next []byte
		if !end {
			next = append(make([]byte, 0, max(chunkBytes, len(buf)-at+chunkBytes/2)), buf[at:]...)
		}
		if at > 0 {
			if err := each(chunk{file: file, line: line, first: begins, text: buf[:at]}); err != nil {
				return err
			}
			begins = false
		}
		line += int64(bytes.Count(buf[:at], []byte{'\n'}))
		buf = next
	}
	return nil
}

// fill reads until buf is full or the text ends, which is io.EOF alone: compressed texts that are cut say something else.
func fill(r io.Reader, buf []byte) ([]byte, error) {
	for len(buf) < cap(buf) {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err != nil {
			return buf, err
		}
	}
	return buf, nil
}
