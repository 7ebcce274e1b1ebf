package orc

import (
	"fmt"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TimestampView says what a timestamp column is taken for. ORC's plain timestamp is the reading of a wall clock in the
// writer's time zone; Spark and Hive write moments into it all the same.
type TimestampView uint8

const (
	// WallClock gives plain timestamps as timestamps without zone, which read as they read where they were written.
	WallClock TimestampView = iota
	// Instants gives plain timestamps as moments, in UTC, as Spark sees them: the clock is read in ReaderOptions.SessionZone.
	Instants
)

// Defaults of ReaderOptions.
const (
	// DefaultBatchRows keeps the batch of an ordinary table within a processor's cache.
	DefaultBatchRows = 8192
	// DefaultMaxMemory has room for the streams of an ordinary stripe and its dictionaries.
	DefaultMaxMemory = 128 << 20
	// minMemory is what even a small file takes.
	minMemory = 1 << 20
)

// ReaderOptions are the choices of a reader; the zero value is good.
type ReaderOptions struct {
	// Alloc gives the memory of batches. Default: Go's heap.
	Alloc memory.Allocator
	// BatchRows is the most rows of a batch. Batches have fewer at the end of a stripe, and where rows are large.
	// Default: DefaultBatchRows.
	BatchRows int
	// MaxMemory is the most bytes that opening the file, and then each scan, takes, the batch that it makes included.
	// Default: DefaultMaxMemory.
	MaxMemory int64
	// Timestamps says what plain timestamps are taken for.
	Timestamps TimestampView
	// SessionZone is the zone in which Instants reads the clock. Default: the writer's own, so that the moments are those
	// that were written.
	SessionZone *time.Location
	// DefaultZone is the writer's zone of files that name none, as old ones do. Default: UTC.
	DefaultZone *time.Location
	// Nanoseconds gives timestamps in nanoseconds, whose range is the years 1677 to 2262; a value outside it is an error.
	// Otherwise they are in microseconds, and what is finer is cut off, as Hudi and Spark do.
	Nanoseconds bool
}

func (o *ReaderOptions) unit() arrow.TimeUnit {
	if o.Nanoseconds {
		return arrow.Nanosecond
	}
	return arrow.Microsecond
}

func (o *ReaderOptions) setDefaults() {
	if o.Alloc == nil {
		o.Alloc = memory.DefaultAllocator
	}
	if o.BatchRows <= 0 {
		o.BatchRows = DefaultBatchRows
	}
	if o.MaxMemory <= 0 {
		o.MaxMemory = DefaultMaxMemory
	}
	o.MaxMemory = max(o.MaxMemory, minMemory)
	if o.DefaultZone == nil {
		o.DefaultZone = time.UTC
	}
}

// magic begins every file and ends every postscript.
const magic = "ORC"

// Reader is an open file. Its methods may be called at the same time from several goroutines.
type Reader struct {
	opts   ReaderOptions
	file   file
	ps     postScript
	footer footer
	root   *node
	schema *arrow.Schema
	held   int64 // bytes of MaxMemory that the footer takes
	tail   int64 // file offset of the metadata section
}

// NewReader opens the file of the given size behind r. It reads the tail alone. Errors are ErrFormat, ErrUnsupported (an
// encrypted file, an unknown codec, type or version), ErrMemory, or those of r.
func NewReader(r io.ReaderAt, size int64, opts ReaderOptions) (*Reader, error) {
	opts.setDefaults()
	rd := &Reader{opts: opts, file: file{r: r, size: size}}
	if err := rd.open(); err != nil {
		return nil, fmt.Errorf("orc: opening: %w", err)
	}
	return rd, nil
}

// guess is how much of the tail is read at once, in the hope that it holds everything.
const guess = 16 << 10

func (r *Reader) open() error {
	n := min(r.file.size, guess)
	if n <= int64(len(magic)) {
		return fmt.Errorf("%w: %d bytes", ErrFormat, r.file.size)
	}
	tail := make([]byte, n)
	if err := r.file.readAt(tail, r.file.size-n); err != nil {
		return err
	}
	psLen := int64(tail[n-1])
	if psLen+1 > n {
		return fmt.Errorf("%w: a postscript of %d bytes in a file of %d", ErrFormat, psLen, r.file.size)
	}
	var err error
	if r.ps, err = parsePostScript(tail[n-1-psLen : n-1]); err != nil {
		return fmt.Errorf("%w: postscript at file offset %d: %w", ErrFormat, r.file.size-1-psLen, err)
	}
	if err := r.checkPostScript(psLen); err != nil {
		return err
	}
	mem := &budget{limit: r.opts.MaxMemory}
	d := &decompressor{kind: r.ps.compression}
	defer d.close()
	at := r.file.size - 1 - psLen - r.ps.footerLength
	raw, err := r.section(d, mem, at, r.ps.footerLength, "the footer")
	if err != nil {
		return err
	}
	if r.footer, err = parseFooter(raw, mem); err != nil {
		return fmt.Errorf("%w: footer at file offset %d: %w", ErrFormat, at, err)
	}
	r.tail = at - r.ps.metadataLength
	if err := r.checkFooter(); err != nil {
		return err
	}
	if r.root, err = buildTree(r.footer.types, mem); err != nil {
		return err
	}
	r.schema = r.root.arrowSchema(&r.opts)
	r.held = mem.used
	return nil
}

func (r *Reader) checkPostScript(psLen int64) error {
	if r.ps.magic != magic { // the earliest files have the magic at the front alone
		var front [len(magic)]byte
		if err := r.file.readAt(front[:], 0); err != nil {
			return err
		}
		if string(front[:]) != magic {
			return fmt.Errorf("%w: neither the postscript nor the front of the file says %q", ErrFormat, magic)
		}
	}
	if r.ps.compression > ZSTD {
		return fmt.Errorf("%w: the file is compressed with %s", ErrUnsupported, r.ps.compression)
	}
	if len(r.ps.version) > 0 && r.ps.version[0] > 1 {
		return fmt.Errorf("%w: the file is of format version %d", ErrUnsupported, r.ps.version)
	}
	if r.ps.compression != None {
		if r.ps.blockSize == 0 {
			r.ps.blockSize = defaultBlockSize // what the first writers left out
		}
		if r.ps.blockSize > maxChunk+1 || r.ps.blockSize > r.opts.MaxMemory/8 {
			return fmt.Errorf("%w: chunks of %d bytes, of at most %d", ErrMemory, r.ps.blockSize, min(maxChunk+1, r.opts.MaxMemory/8))
		}
		r.file.blockSize = int(r.ps.blockSize)
	}
	left := r.file.size - 1 - psLen
	if r.ps.footerLength > left || r.ps.metadataLength > left-r.ps.footerLength {
		return fmt.Errorf("%w: a footer of %d bytes and metadata of %d in a file of %d", ErrFormat, r.ps.footerLength, r.ps.metadataLength, r.file.size)
	}
	return nil
}

// defaultBlockSize is the chunk size of files that do not name it.
const defaultBlockSize = 256 << 10

func (r *Reader) checkFooter() error {
	if r.footer.encrypted {
		return fmt.Errorf("%w: the file has encrypted columns", ErrUnsupported)
	}
	rows := int64(0)
	for i := range r.footer.stripes {
		s := &r.footer.stripes[i]
		end := s.offset
		for _, n := range []int64{s.indexLength, s.dataLength, s.footerLength} {
			if n > r.tail || end > r.tail {
				break
			}
			end += n
		}
		if end > r.tail || s.end() != end {
			return fmt.Errorf("%w: stripe %d reaches past the end of the file's body, %d", ErrFormat, i, r.tail)
		}
		if s.rows > r.footer.rows-rows {
			return fmt.Errorf("%w: the stripes have more rows than the file's %d", ErrFormat, r.footer.rows)
		}
		rows += s.rows
	}
	if rows != r.footer.rows {
		return fmt.Errorf("%w: the stripes have %d rows, the file says %d", ErrFormat, rows, r.footer.rows)
	}
	return nil
}

// section reads and decompresses a part of the file that is one protocol buffer.
func (r *Reader) section(d *decompressor, mem *budget, at, length int64, what string) ([]byte, error) {
	if err := mem.grow(length, what); err != nil {
		return nil, err
	}
	raw := make([]byte, length)
	if err := r.file.readAt(raw, at); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if r.ps.compression == None {
		return raw, nil
	}
	out, err := r.chunks(d, mem, raw, what)
	if err != nil {
		return nil, fmt.Errorf("%w: %s at file offset %d: %w", ErrFormat, what, at, err)
	}
	return out, nil
}

// chunks decompresses a whole sequence of chunks.
func (r *Reader) chunks(d *decompressor, mem *budget, raw []byte, what string) (out []byte, err error) {
	block := make([]byte, r.file.blockSize)
	for len(raw) > 0 {
		if len(raw) < chunkHeader {
			return nil, errShort
		}
		n, original := chunkLength(raw)
		if n > len(raw)-chunkHeader {
			return nil, errShort
		}
		body := raw[chunkHeader : chunkHeader+n]
		raw = raw[chunkHeader+n:]
		if !original {
			k, err := d.decode(block, body)
			if err != nil {
				return nil, err
			}
			body = block[:k]
		}
		if err := mem.grow(int64(len(body)), what); err != nil {
			return nil, err
		}
		out = append(out, body...)
	}
	return out, nil
}

// Schema gives the schema of whole rows, as described in the package documentation.
func (r *Reader) Schema() *arrow.Schema { return r.schema }

// Type gives the file's type in ORC's own notation, such as struct<id:bigint,name:varchar(20)>.
func (r *Reader) Type() string { return r.root.String() }

// Rows counts the rows of the file.
func (r *Reader) Rows() int64 { return r.footer.rows }

// Stripe is one stripe: Rows rows in the Bytes bytes from Offset of the file, footer and indexes included.
type Stripe struct {
	Offset, Bytes, Rows int64
}

// Stripes lists the stripes in their order.
func (r *Reader) Stripes() []Stripe {
	list := make([]Stripe, len(r.footer.stripes))
	for i := range list {
		s := &r.footer.stripes[i]
		list[i] = Stripe{Offset: s.offset, Bytes: s.end() - s.offset, Rows: s.rows}
	}
	return list
}

// Metadata gives the user metadata, in a map of the caller's own.
func (r *Reader) Metadata() map[string][]byte {
	m := make(map[string][]byte, len(r.footer.metadata))
	for _, u := range r.footer.metadata {
		m[u.name] = append([]byte{}, u.value...)
	}
	return m
}

// Compression gives the file's codec.
func (r *Reader) Compression() Compression { return r.ps.compression }

// hybrid tells files whose days before 1582 are of the Julian calendar: Java's writers, unless they say otherwise.
func (r *Reader) hybrid() bool {
	return r.footer.calendar != calendarProleptic && (r.footer.calendar != calendarUnknown || r.footer.writer == writerJava)
}
