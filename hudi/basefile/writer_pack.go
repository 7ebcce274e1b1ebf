package basefile

import (
	"bytes"
	"fmt"
	"math"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// packer puts a page together and compresses it. Its buffers serve one page after the other, of any column.
type packer struct {
	codec compress.Compression
	level int
	body  []byte // levels and values
	out   []byte
	gzip  *gzip.Writer
	zstd  *zstd.Encoder
}

// pack gives the compressed body, good until the next page.
func (p *packer) pack() ([]byte, error) {
	if len(p.body) > math.MaxInt32 {
		return nil, fmt.Errorf("%w: a page of %d bytes, as one row has that much; Parquet takes %d", ErrUnsupported, len(p.body), math.MaxInt32)
	}
	switch p.codec {
	case compress.Codecs.Snappy:
		if n := s2.MaxEncodedLen(len(p.body)); n < 0 {
			return nil, fmt.Errorf("%w: a page of %d bytes is too large for snappy", ErrUnsupported, len(p.body))
		} else if n > cap(p.out) {
			p.out = make([]byte, n+n/4)
		}
		return s2.EncodeSnappy(p.out[:cap(p.out)], p.body), nil
	case compress.Codecs.Gzip:
		return p.packGzip()
	case compress.Codecs.Zstd:
		if p.zstd == nil {
			var err error
			if p.zstd, err = zstd.NewWriter(nil, zstd.WithZeroFrames(true), zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(p.level)), zstd.WithEncoderConcurrency(1)); err != nil {
				return nil, err
			}
		}
		p.out = p.zstd.EncodeAll(p.body, p.out[:0])
		return p.out, nil
	}
	return p.body, nil
}

func (p *packer) packGzip() ([]byte, error) {
	to := bytes.NewBuffer(p.out[:0])
	if p.gzip == nil {
		var err error
		if p.gzip, err = gzip.NewWriterLevel(to, p.level); err != nil {
			return nil, err
		}
	} else {
		p.gzip.Reset(to)
	}
	if _, err := p.gzip.Write(p.body); err != nil {
		return nil, err
	}
	if err := p.gzip.Close(); err != nil {
		return nil, err
	}
	p.out = to.Bytes()
	return p.out, nil
}

// blockSize is the unit in which compressed pages are held. Small, as every column of a wide table has an open block.
const blockSize = 16 << 10

// maxScratch is how much a buffer may keep for the next page.
const maxScratch = 8 << 20

// workshop is what the columns of a writer share: packers, and blocks of memory for the compressed pages of the open row group.
// It is safe for goroutines.
type workshop struct {
	alloc     memory.Allocator
	codec     compress.Compression
	level     int
	pageBytes int

	mu      sync.Mutex
	packers []*packer
	blocks  [][]byte // free ones
}

func (w *workshop) packer() *packer {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.packers); n > 0 {
		p := w.packers[n-1]
		w.packers = w.packers[:n-1]
		return p
	}
	return &packer{codec: w.codec, level: w.level}
}

func (w *workshop) giveBack(p *packer) {
	if cap(p.body) > maxScratch || cap(p.out) > maxScratch { // of an uncommonly large row
		p.body, p.out = nil, nil
	}
	w.mu.Lock()
	w.packers = append(w.packers, p)
	w.mu.Unlock()
}

func (w *workshop) block() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.blocks); n > 0 {
		b := w.blocks[n-1]
		w.blocks = w.blocks[:n-1]
		return b[:0]
	}
	return w.alloc.Allocate(blockSize)[:0]
}

func (w *workshop) free(blocks [][]byte) {
	w.mu.Lock()
	w.blocks = append(w.blocks, blocks...)
	w.mu.Unlock()
}

// close gives all memory back. Spools must have been reset.
func (w *workshop) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.blocks {
		w.alloc.Free(b[:cap(b)])
	}
	for _, p := range w.packers {
		if p.zstd != nil {
			_ = p.zstd.Close() // it has written to memory
		}
	}
	w.blocks, w.packers = nil, nil
}

// spool holds the compressed pages of a column chunk.
type spool struct {
	from   *workshop
	blocks [][]byte
	size   int64
}

func (s *spool) write(p []byte) {
	s.size += int64(len(p))
	for len(p) > 0 {
		last := len(s.blocks) - 1
		if last < 0 || len(s.blocks[last]) == blockSize {
			s.blocks = append(s.blocks, s.from.block())
			last++
		}
		b := s.blocks[last]
		n := copy(b[len(b):blockSize], p)
		s.blocks[last], p = b[:len(b)+n], p[n:]
	}
}

func (s *spool) writeTo(to *sink) error {
	for _, b := range s.blocks {
		if _, err := to.Write(b); err != nil {
			return err
		}
	}
	return nil
}

func (s *spool) reset() {
	if len(s.blocks) > 0 {
		s.from.free(s.blocks)
	}
	s.blocks, s.size = s.blocks[:0], 0
}
