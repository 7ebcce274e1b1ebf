package basefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// codecs decompress pages into buffers of the size that the page header gives, and never beyond: a few bytes of a damaged
// page can claim gigabytes. They belong to one scan and are safe for its goroutines.
type codecs struct {
	zstdOnce sync.Once
	zstd     *zstd.Decoder
	zstdErr  error
	gzip     sync.Pool
	brotli   sync.Pool
}

func (c *codecs) close() {
	if c.zstd != nil {
		c.zstd.Close()
	}
}

// greatestRatio is how many bytes one compressed byte can become at most.
func greatestRatio(codec compress.Compression) int64 {
	switch codec {
	case compress.Codecs.Uncompressed:
		return 1
	case compress.Codecs.Snappy:
		return 64
	case compress.Codecs.Lz4, compress.Codecs.Lz4Raw:
		return 256
	case compress.Codecs.Gzip:
		return 1040
	}
	return 1 << 17 // zstd repeats 128 KiB from 4 bytes; brotli is alike in practice
}

// decode fills dst from src, or fails.
func (c *codecs) decode(codec compress.Compression, dst, src []byte) error {
	if len(dst) == 0 && len(src) == 0 {
		return nil // some writers compress nothing to nothing
	}
	switch codec {
	case compress.Codecs.Uncompressed:
		if len(src) != len(dst) {
			return fmt.Errorf("%d bytes where the header says %d", len(src), len(dst))
		}
		copy(dst, src)
		return nil
	case compress.Codecs.Snappy:
		n, err := snappy.DecodedLen(src)
		if err != nil {
			return err
		}
		if n != len(dst) {
			return fmt.Errorf("%d bytes where the header says %d", n, len(dst))
		}
		_, err = snappy.Decode(dst, src)
		return err
	case compress.Codecs.Gzip:
		return c.gunzip(dst, src)
	case compress.Codecs.Zstd:
		return c.unzstd(dst, src)
	case compress.Codecs.Brotli:
		r, ok := c.brotli.Get().(*brotli.Reader)
		if !ok {
			r = brotli.NewReader(nil)
		}
		defer c.brotli.Put(r)
		if err := r.Reset(bytes.NewReader(src)); err != nil {
			return err
		}
		return fill(r, dst)
	case compress.Codecs.Lz4Raw:
		n, err := lz4.UncompressBlock(src, dst)
		if err == nil && n != len(dst) {
			err = fmt.Errorf("%d bytes where the header says %d", n, len(dst))
		}
		return err
	case compress.Codecs.Lz4:
		return hadoopLZ4(dst, src)
	}
	return fmt.Errorf("codec %s: %w", codec, ErrUnsupported)
}

// fill reads exactly dst.
func fill(r io.Reader, dst []byte) error {
	if _, err := io.ReadFull(r, dst); err != nil {
		return err
	}
	var more [1]byte
	switch n, err := io.ReadFull(r, more[:]); {
	case n > 0:
		return fmt.Errorf("more than the %d bytes of the header", len(dst))
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

func (c *codecs) gunzip(dst, src []byte) error {
	r, ok := c.gzip.Get().(*gzip.Reader)
	if !ok {
		r = new(gzip.Reader)
	}
	defer c.gzip.Put(r)
	if err := r.Reset(bytes.NewReader(src)); err != nil {
		return err
	}
	return fill(r, dst)
}

func (c *codecs) unzstd(dst, src []byte) error {
	c.zstdOnce.Do(func() {
		c.zstd, c.zstdErr = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(1<<30))
	})
	if c.zstdErr != nil {
		return c.zstdErr
	}
	out, err := c.zstd.DecodeAll(src, dst[:0:len(dst)])
	if err == nil && len(out) != len(dst) {
		err = fmt.Errorf("%d bytes where the header says %d", len(out), len(dst))
	}
	return err
}

// hadoopLZ4 is the deprecated LZ4: blocks with two big-endian lengths in front, uncompressed and compressed.
func hadoopLZ4(dst, src []byte) error {
	for len(src) > 0 {
		if len(src) < 8 {
			return errors.New("LZ4 block without lengths")
		}
		whole, packed := binary.BigEndian.Uint32(src), binary.BigEndian.Uint32(src[4:])
		src = src[8:]
		if int64(whole) > int64(len(dst)) || int64(packed) > int64(len(src)) {
			return fmt.Errorf("LZ4 block of %d and %d bytes", whole, packed)
		}
		n, err := lz4.UncompressBlock(src[:packed], dst[:whole])
		if err != nil {
			return err
		}
		if n != int(whole) {
			return fmt.Errorf("LZ4 block of %d bytes where its header says %d", n, whole)
		}
		dst, src = dst[whole:], src[packed:]
	}
	if len(dst) > 0 {
		return fmt.Errorf("%d bytes are missing", len(dst))
	}
	return nil
}
