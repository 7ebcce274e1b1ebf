package source

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"

	"github.com/sluicelake/sluice/hudi/logfile/avrocodec"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/storage"
)

// ErrAvroFile is wrapped by every error about bytes that are no Avro object container file.
var ErrAvroFile = errors.New("invalid Avro file")

const (
	avroMagic      = "Obj\x01"
	maxAvroHeader  = 64 << 20
	maxAvroBlock   = 256 << 20 // stored bytes of a block
	maxAvroPlain   = 1 << 30   // bytes of a block that was decompressed
	avroBatchRows  = 32 << 10
	avroBatchBytes = 8 << 20
)

// container reads an Avro object container file: a header with the schema and the codec, then blocks of records, each followed
// by the file's mark (Avro specification 1.11, "Object Container Files").
type container struct {
	r      *bufio.Reader
	pos    int64
	schema *schema.Type
	codec  string
	mark   [16]byte
	zstd   *zstd.Decoder
	block  []byte
	plain  []byte
}

func newContainer(r io.Reader) (*container, error) {
	c := &container{r: bufio.NewReaderSize(r, ioBuffer)}
	if err := c.header(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *container) fail(format string, args ...any) error {
	return fmt.Errorf("%w at byte %d: %w", ErrAvroFile, c.pos, fmt.Errorf(format, args...))
}

func (c *container) header() error {
	magic := make([]byte, len(avroMagic))
	if err := c.full(magic); err != nil {
		return err
	}
	if string(magic) != avroMagic {
		return c.fail("it does not begin with %q", avroMagic)
	}
	meta, err := c.metadata()
	if err != nil {
		return err
	}
	if err := c.full(c.mark[:]); err != nil {
		return err
	}
	if c.codec = string(meta["avro.codec"]); c.codec == "" {
		c.codec = "null"
	}
	if c.schema, err = schema.Parse(meta["avro.schema"]); err != nil {
		return c.fail("%w", err)
	}
	if c.schema.Kind != schema.Record {
		return c.fail("its schema is a %s, not a record", c.schema.Kind)
	}
	return nil
}

func (c *container) metadata() (map[string][]byte, error) {
	meta, left := map[string][]byte{}, int64(maxAvroHeader)
	for {
		n, err := c.long()
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return meta, nil
		}
		if n < 0 { // a block whose bytes are counted too
			if _, err = c.long(); err != nil {
				return nil, err
			}
			n = -n
		}
		for ; n > 0; n-- {
			key, err := c.text(&left)
			if err != nil {
				return nil, err
			}
			if meta[string(key)], err = c.text(&left); err != nil {
				return nil, err
			}
		}
	}
}

func (c *container) text(left *int64) ([]byte, error) {
	n, err := c.long()
	if err != nil {
		return nil, err
	}
	if n < 0 || n > *left {
		return nil, c.fail("a header entry of %d bytes", n)
	}
	*left -= n + 1
	return c.take(int(n), nil)
}

// take reads n bytes. Memory grows with what is there, not with what a length claims.
func (c *container) take(n int, buf []byte) ([]byte, error) {
	const step = 1 << 20
	buf = buf[:0]
	for len(buf) < n {
		more := min(n-len(buf), step)
		at := len(buf)
		if cap(buf)-at < more {
			buf = append(make([]byte, 0, max(2*cap(buf), at+more)), buf...)
		}
		buf = buf[:at+more]
		if err := c.full(buf[at:]); err != nil {
			return nil, err
		}
	}
	return buf, nil
}

func (c *container) full(p []byte) error {
	n, err := io.ReadFull(c.r, p)
	c.pos += int64(n)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return c.fail("the file is cut: was it written whole?")
	}
	return err
}

func (c *container) long() (int64, error) {
	var v uint64
	for shift := uint(0); shift < 64; shift += 7 {
		b, err := c.r.ReadByte()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return 0, c.fail("the file is cut: was it written whole?")
			}
			return 0, err
		}
		c.pos++
		if v |= uint64(b&0x7f) << shift; b < 0x80 {
			return int64(v>>1) ^ -int64(v&1), nil
		}
	}
	return 0, c.fail("a number of more than ten bytes")
}

// next gives the records of the next block, io.EOF behind the last. They are valid until the next call.
func (c *container) next() (records []byte, n int64, err error) {
	if _, err := c.r.Peek(1); err != nil {
		return nil, 0, err // io.EOF at the end
	}
	if n, err = c.long(); err != nil {
		return nil, 0, err
	}
	size, err := c.long()
	if err != nil {
		return nil, 0, err
	}
	if n < 0 || size < 0 || size > maxAvroBlock {
		return nil, 0, c.fail("a block of %d records in %d bytes", n, size)
	}
	if c.block, err = c.take(int(size), c.block); err != nil {
		return nil, 0, err
	}
	var mark [16]byte
	if err := c.full(mark[:]); err != nil {
		return nil, 0, err
	}
	if mark != c.mark {
		return nil, 0, c.fail("the mark behind a block is not the file's")
	}
	records, err = c.decompress()
	if err == nil && n > int64(len(records))+1<<16 { // only records without a byte could be more, and nobody writes those
		err = fmt.Errorf("%d records in %d bytes", n, len(records))
	}
	if err != nil {
		return nil, 0, c.fail("%s block: %w", c.codec, err)
	}
	return records, n, nil
}

func (c *container) decompress() ([]byte, error) {
	switch c.codec {
	case "null":
		return c.block, nil
	case "deflate":
		r := flate.NewReader(bytes.NewReader(c.block))
		defer r.Close()
		return c.read(r)
	case "bzip2":
		return c.read(bzip2.NewReader(bytes.NewReader(c.block)))
	case "zstandard":
		if c.zstd == nil {
			var err error
			if c.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxAvroPlain)); err != nil {
				return nil, err
			}
		}
		var err error
		c.plain, err = c.zstd.DecodeAll(c.block, c.plain[:0])
		return c.plain, err
	case "snappy":
		return c.snappy()
	}
	return nil, errors.New("the codec is not known; null, deflate, snappy, zstandard and bzip2 are")
}

// snappy is followed by the check sum of the data.
func (c *container) snappy() ([]byte, error) {
	if len(c.block) < 4 {
		return nil, errors.New("no check sum")
	}
	body, sum := c.block[:len(c.block)-4], binary.BigEndian.Uint32(c.block[len(c.block)-4:])
	n, err := snappy.DecodedLen(body)
	if err != nil || n > maxAvroPlain || n > 64*len(body)+64 {
		return nil, errors.New("damaged")
	}
	if c.plain, err = snappy.Decode(c.plain[:cap(c.plain)], body); err != nil {
		return nil, err
	}
	if crc32.ChecksumIEEE(c.plain) != sum {
		return nil, errors.New("wrong check sum")
	}
	return c.plain, nil
}

func (c *container) read(r io.Reader) ([]byte, error) {
	b := bytes.NewBuffer(c.plain[:0])
	n, err := b.ReadFrom(io.LimitReader(r, maxAvroPlain+1))
	if err == nil && n > maxAvroPlain {
		err = fmt.Errorf("more than %d MiB", maxAvroPlain>>20)
	}
	c.plain = b.Bytes()
	return c.plain, err
}

func (c *container) close() {
	if c.zstd != nil {
		c.zstd.Close()
	}
}

// avroFiles reads Avro object container files.
type avroFiles struct{}

func (avroFiles) describe(ctx context.Context, store storage.Store, info storage.Info) (*schema.Type, error) {
	obj, err := store.Open(ctx, info.Name)
	if err != nil {
		return nil, err
	}
	file := storage.ReaderAt(ctx, obj)
	defer file.Close()
	c, err := newContainer(file)
	if err != nil {
		return nil, err
	}
	defer c.close()
	return c.schema, nil
}

func (avroFiles) read(ctx context.Context, store storage.Store, info storage.Info, want shape, o Options, send func(item) error) error {
	obj, err := store.Open(ctx, info.Name)
	if err != nil {
		return err
	}
	file := storage.ReaderAt(ctx, obj)
	defer file.Close()
	c, err := newContainer(file)
	if err != nil {
		return err
	}
	defer c.close()
	plan, err := avrocodec.Compile(c.schema, avrocodec.Options{Columns: want.arrow})
	if err != nil {
		return err
	}
	res, err := schema.Resolve(plan.Schema(), want.arrow, schema.ResolveOptions{File: info.Name, Table: want.avro})
	if err != nil {
		return err
	}
	builder := plan.NewBuilder(o.alloc())
	defer builder.Release()
	app, err := plan.Bind(builder)
	if err != nil {
		return err
	}
	b := avroBatches{app: app, res: res, o: o, send: send, file: storage.Join(store.URL(), info.Name), row: 1}
	for {
		records, n, err := c.next()
		if errors.Is(err, io.EOF) {
			return b.flush()
		}
		if err == nil {
			err = b.add(records, n)
		}
		if err != nil {
			return fmt.Errorf("block before byte %d: %w", c.pos, err)
		}
	}
}

// avroBatches collects the records of blocks into batches.
type avroBatches struct {
	app   *avrocodec.Appender
	res   *schema.Resolution
	o     Options
	send  func(item) error
	file  string
	row   int64 // number in the file of the first row of the batch
	bytes int
}

func (b *avroBatches) add(records []byte, n int64) error {
	for ; n > 0; n-- {
		before := len(records)
		var err error
		if records, err = b.app.AppendNext(records); err != nil {
			return err
		}
		b.bytes += before - len(records)
		if b.app.Rows() >= avroBatchRows || b.bytes >= avroBatchBytes {
			if err := b.flush(); err != nil {
				return err
			}
		}
	}
	if len(records) > 0 {
		return fmt.Errorf("%w: %d bytes behind the last record of a block", ErrAvroFile, len(records))
	}
	return nil
}

func (b *avroBatches) flush() error {
	if b.app.Rows() == 0 {
		return nil
	}
	raw := b.app.NewBatch()
	defer raw.Release()
	b.bytes = 0
	batch, err := b.res.Batch(b.o.alloc(), raw)
	if err != nil {
		return err
	}
	at := []mark{{file: b.file, line: b.row}}
	b.row += batch.NumRows()
	return b.send(item{batch: batch, at: at})
}
