package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/hudi/encode"
	"github.com/sluicelake/sluice/orc"
	"github.com/sluicelake/sluice/storage"
)

const (
	// maxOpen bounds the output files that one task holds open. The folders that come first get one each; the rows of all
	// others are kept, in memory and beyond a budget in local files, and written at the end, a folder after the other.
	maxOpen = 16
	// pileRows are gathered for an open file before they are written: encoders want long runs.
	pileRows = 16 << 10
	// A task's memory, in shares of its budget: rows on their way to open files, rows of the other folders. The rest is for
	// readers and encoders.
	pileShare = 8
	heapShare = 4
	// minHeap is what the rows of other folders may take even of a small budget.
	minHeap = 8 << 20
)

// sink spreads the rows of one task over its output files: one, or one for each folder.
type sink struct {
	ctx    context.Context
	job    *job
	number int
	scope  engine.Scope

	groups *grouper
	ids    []int32
	counts []int32
	piles  []*pile // of the first folders, by number
	held   int64   // bytes in piles
	heap   *heap   // of the others
	plain  *output // of an export without folders
	parts  int     // files begun without folders

	// Puts whose answers are waited for, where a store is no file system: thousands of folders must not cost thousands of
	// round trips one after the other.
	puts errgroup.Group
	mu   sync.Mutex
	done []wrote
}

// putsAtOnce are the files of one task that a remote store is asked to keep at once, beside those that are open.
const putsAtOnce = 8

// pile is an open file of a folder, and the rows that are on their way to it.
type pile struct {
	out  *output
	rows int64
	wait []arrow.RecordBatch
}

// output is one file on its way to the target.
type output struct {
	file rowFile
	body *storage.Writer
	rows int64
}

func (o *output) write(batch arrow.RecordBatch) error {
	o.rows += batch.NumRows()
	return o.file.Write(batch)
}

// rowFile writes batches in one format. Close completes what it wrote and leaves the writer below open.
type rowFile interface {
	Write(arrow.RecordBatch) error
	Close() error
}

func newSink(ctx context.Context, j *job, number int, scope engine.Scope) *sink {
	s := &sink{ctx: ctx, job: j, number: number, scope: scope}
	s.puts.SetLimit(putsAtOnce)
	if len(j.layout.names) > 0 {
		s.groups = newGrouper(j.layout.names, j.cfg.Zone)
		s.heap = &heap{dir: scope.TempDir, budget: max(scope.Memory/heapShare, minHeap), spans: map[int32]int64{}}
	}
	return s
}

// drain writes all batches, which have the given columns, and returns the files. After an error nothing that is open stays.
func (s *sink) drain(columns *arrow.Schema, batches iter.Seq2[arrow.RecordBatch, error], rows func(int64)) (files []wrote, err error) {
	defer func() {
		if closeErr := s.abort(); err == nil {
			err = closeErr
		}
	}()
	for batch, err := range batches {
		if err != nil {
			return nil, err
		}
		err = s.write(batch)
		rows(batch.NumRows())
		batch.Release()
		if err != nil {
			return nil, err
		}
	}
	if s.groups == nil && s.parts == 0 { // no row: the file still says what the columns are
		if err := s.begin(columnsOf(columns, len(s.job.layout.keep))); err != nil {
			return nil, err
		}
	}
	if err := s.finish(); err != nil {
		return nil, err
	}
	return s.done, nil
}

// finish completes all files.
func (s *sink) finish() error {
	if s.plain != nil {
		o := s.plain
		s.plain = nil
		if err := s.complete(o); err != nil {
			return err
		}
	}
	for _, p := range s.piles {
		if err := s.flush(p); err != nil {
			return err
		}
		o := p.out
		p.out = nil
		if err := s.complete(o); err != nil {
			return err
		}
	}
	if s.groups != nil {
		if err := s.others(); err != nil {
			return err
		}
	}
	if err := s.puts.Wait(); err != nil {
		return err
	}
	slices.SortFunc(s.done, func(a, b wrote) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// abort lets go of everything; files that are not complete do not appear.
func (s *sink) abort() error {
	_ = s.puts.Wait() // an error was told by finish, or there is an earlier one
	if s.plain != nil {
		s.plain.body.Abort()
	}
	for _, p := range s.piles {
		releaseAll(p.wait)
		p.wait = nil
		if p.out != nil {
			p.out.body.Abort()
		}
	}
	if s.heap == nil {
		return nil
	}
	return s.heap.close()
}

func columnsOf(s *arrow.Schema, n int) *arrow.Schema { return arrow.NewSchema(s.Fields()[:n], nil) }

func (s *sink) write(batch arrow.RecordBatch) error {
	if s.groups == nil {
		if s.plain == nil {
			if err := s.begin(batch.Schema()); err != nil {
				return err
			}
		}
		return s.plain.write(batch)
	}
	if batch.NumRows() == 0 {
		return nil
	}
	keep := len(s.job.layout.keep)
	values, release, err := s.job.layout.values(batch)
	if err != nil {
		return err
	}
	defer release()
	s.ids = sized(s.ids, int(batch.NumRows()))
	s.groups.group(values, s.ids)
	rest := array.NewRecordBatch(columnsOf(batch.Schema(), keep), batch.Columns()[:keep], batch.NumRows())
	defer rest.Release()
	return s.spread(rest)
}

// spread sorts the rows of a batch by folder, and hands them on.
func (s *sink) spread(batch arrow.RecordBatch) error {
	parts, order := s.sort()
	if len(parts) == 1 {
		batch.Retain()
		return s.hand(batch, parts)
	}
	// The rows of open files and those of others part ways: a slice of one must not hold the memory of both.
	cut := 0
	for cut < len(parts) && parts[cut].id < maxOpen {
		cut++
	}
	for _, side := range [][]part{parts[:cut], parts[cut:]} {
		if len(side) == 0 {
			continue
		}
		from, to := side[0].from, side[len(side)-1].to
		sorted, err := s.take(batch, order[from:to])
		if err != nil {
			return err
		}
		for i := range side {
			side[i].from, side[i].to = side[i].from-from, side[i].to-from
		}
		if err := s.hand(sorted, side); err != nil {
			return err
		}
	}
	return nil
}

// sort gives the row numbers of a batch in the order of folders, and within one in their own.
func (s *sink) sort() (parts []part, order []int32) {
	folders := len(s.groups.dirs)
	s.counts = sized(s.counts, folders)
	clear(s.counts)
	for _, id := range s.ids {
		s.counts[id]++
	}
	at := int32(0)
	for id, n := range s.counts {
		if n > 0 {
			parts = append(parts, part{int32(id), int64(at), int64(at + n)})
		}
		s.counts[id] = at
		at += n
	}
	order = make([]int32, len(s.ids))
	for row, id := range s.ids {
		order[s.counts[id]] = int32(row)
		s.counts[id]++
	}
	return parts, order
}

func (s *sink) take(batch arrow.RecordBatch, rows []int32) (arrow.RecordBatch, error) {
	indices := array.NewInt32Data(array.NewData(arrow.PrimitiveTypes.Int32, len(rows),
		[]*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(rows))}, nil, 0, 0))
	defer indices.Release()
	columns := make([]arrow.Array, batch.NumCols())
	defer func() {
		for _, c := range columns {
			if c != nil {
				c.Release()
			}
		}
	}()
	for i, c := range batch.Columns() {
		var err error
		if columns[i], err = compute.TakeArrayOpts(s.ctx, c, indices, compute.TakeOptions{BoundsCheck: false}); err != nil {
			return nil, fmt.Errorf("column %s: %w", batch.ColumnName(i), err)
		}
	}
	return array.NewRecordBatch(batch.Schema(), columns, int64(len(rows))), nil
}

// hand takes over a batch whose rows are sorted by folder, either of open files or of others.
func (s *sink) hand(batch arrow.RecordBatch, parts []part) error {
	if parts[0].id >= maxOpen {
		return s.heap.add(batch, parts)
	}
	defer batch.Release()
	s.held += batchBytes(batch)
	for _, p := range parts {
		for int(p.id) >= len(s.piles) {
			s.piles = append(s.piles, &pile{})
		}
		q := s.piles[p.id]
		if q.out == nil {
			var err error
			if q.out, err = s.open(s.groups.dirs[p.id], batch.Schema(), 0); err != nil {
				return err
			}
		}
		q.wait = append(q.wait, batch.NewSlice(p.from, p.to))
		q.rows += p.to - p.from
		if q.rows >= pileRows {
			if err := s.flush(q); err != nil {
				return err
			}
		}
	}
	if s.held < s.scope.Memory/pileShare {
		return nil
	}
	s.held = 0
	for _, q := range s.piles {
		if err := s.flush(q); err != nil {
			return err
		}
	}
	return nil
}

// flush writes the rows of a pile.
func (s *sink) flush(p *pile) error {
	if len(p.wait) == 0 {
		return nil
	}
	batch, err := joinBatches(p.wait)
	releaseAll(p.wait)
	p.wait, p.rows = nil, 0
	if err != nil {
		return err
	}
	defer batch.Release()
	return p.out.write(batch)
}

// others writes the files of the folders that were kept, one after the other.
func (s *sink) others() error {
	for id := int32(maxOpen); int(id) < len(s.groups.dirs); id++ {
		if s.heap.spans[id] == 0 {
			continue
		}
		o, err := s.open(s.groups.dirs[id], s.heap.schema, 0)
		if err != nil {
			return err
		}
		p := &pile{out: o}
		err = s.heap.rows(id, func(batch arrow.RecordBatch) error {
			p.wait = append(p.wait, batch)
			if p.rows += batch.NumRows(); p.rows < pileRows {
				return nil
			}
			return s.flush(p)
		})
		if err == nil {
			err = s.flush(p)
		}
		if err != nil {
			releaseAll(p.wait)
			o.body.Abort()
			return err
		}
		if err := s.complete(o); err != nil {
			return err
		}
	}
	return nil
}

// begin opens the file of an export without folders.
func (s *sink) begin(schema *arrow.Schema) (err error) {
	s.plain, err = s.open("", schema, s.parts)
	s.parts++
	return err
}

// open begins a file.
func (s *sink) open(dir string, schema *arrow.Schema, part int) (*output, error) {
	c := &s.job.cfg
	body := storage.Create(s.ctx, s.job.target, s.job.fileName(dir, s.number, part, c.Compression), storage.PutOptions{})
	file, err := newRowFile(c, schema, body, s.groups != nil)
	if err != nil {
		body.Abort()
		return nil, err
	}
	return &output{file: file, body: body}, nil
}

// next names the next file of an export without folders.
func (s *sink) next(compression string) string {
	name := s.job.fileName("", s.number, s.parts, compression)
	s.parts++
	return name
}

// complete ends a file.
func (s *sink) complete(o *output) error {
	if err := o.file.Close(); err != nil {
		o.body.Abort()
		return err
	}
	keep := func() error {
		if err := o.body.Close(); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.done = append(s.done, wrote{Name: o.body.Info().Name, Size: o.body.Info().Size, Rows: o.rows})
		return nil
	}
	if s.groups == nil || s.job.target.Traits().Dirs {
		return keep()
	}
	s.puts.Go(keep)
	return nil
}

// newRowFile starts a file of the export's format on a writer. One of many holds less in memory.
func newRowFile(c *Config, schema *arrow.Schema, w io.Writer, many bool) (rowFile, error) {
	parquet := ParquetOptions{Compression: c.Compression, Int96: c.Timestamps == Int96}
	stripe := int64(orcStripe)
	if many {
		parquet.RowGroupBytes, stripe = rowGroupBytes/4, orcStripe/4
	}
	opts := encode.Options{Style: encode.Spark, Zone: c.Zone}
	switch c.Format {
	case Parquet:
		return NewParquet(w, schema, parquet)
	case ORC:
		return newORC(w, schema, c.Compression, stripe)
	case JSON:
		return compressed(c.Compression, w, func(w io.Writer) (rowFile, error) { return NewJSON(w, schema, opts) })
	case CSV:
		return compressed(c.Compression, w, func(w io.Writer) (rowFile, error) { return NewCSV(w, schema, opts) })
	}
	return nil, fmt.Errorf("format %s has no files of rows", c.Format)
}

// orcStripe bounds what an ORC file on its way holds: with the reading side beside it some 150 MiB for each task.
const orcStripe = 32 << 20

// newORC starts an ORC file with the timestamps that Spark and Hive read: plain ones, a clock in UTC.
func newORC(w io.Writer, schema *arrow.Schema, codec string, stripe int64) (rowFile, error) {
	codecs := map[string]orc.Compression{"snappy": orc.Snappy, "zlib": orc.Zlib, "lz4": orc.LZ4, "zstd": orc.ZSTD, "none": orc.None}
	return orc.NewWriter(w, optionalSchema(schema), orc.WriterOptions{Compression: codecs[codec], StripeBytes: stripe})
}

// squeezed is a row file with a compressor between it and the writer.
type squeezed struct {
	rowFile
	z io.Closer
}

func (s squeezed) Close() error { return errors.Join(s.rowFile.Close(), s.z.Close()) }

func compressed(codec string, w io.Writer, file func(io.Writer) (rowFile, error)) (rowFile, error) {
	var z io.WriteCloser
	switch codec {
	case "gzip":
		z = gzip.NewWriter(w)
	case "zstd":
		var err error
		if z, err = zstd.NewWriter(w); err != nil {
			return nil, err
		}
	default:
		return file(w)
	}
	f, err := file(z)
	if err != nil {
		return nil, err
	}
	return squeezed{f, z}, nil
}
