package splice

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"

	"github.com/sluicelake/sluice/storage"
)

const magic = "PAR1"

// CreatedBy is the writer's name in footers, in the form that parquet-mr parses. The chunks that are copied under it are of
// writers for whose files readers know no exceptions.
const CreatedBy = "sluice version 1.0.0"

// WriterOptions of [NewWriter]. The zero value is good for local files.
type WriterOptions struct {
	// Block is the size of a read in bytes; 0 is 256 KiB, which stays in a processor's cache until it is written, or 4 MiB with
	// read-ahead.
	Block int
	// ReadAhead is how many blocks are read at once while earlier ones are written: 4 hides the time that a remote store takes
	// to answer. 0 and 1: one after the other. A writer holds Block times ReadAhead bytes.
	ReadAhead int
	// Checksums demands that pages are held against their checksums, also where that takes reading what a file system would copy
	// by itself.
	Checksums bool
	// Progress, when set, is told the bytes of column chunks that were copied, as they come.
	Progress func(bytes int64)
}

// Writer makes one Parquet file out of row groups of other files. It is for one goroutine.
type Writer struct {
	w       io.Writer
	o       WriterOptions
	pos     int64
	shape   *Projection // of the first file
	groups  []fields
	rows    int64
	version int64
	indexes []chunkIndexes // in the order of groups and their columns
	buffers [][]byte
	err     error
}

// chunkIndexes are the indexes of a chunk of the output, with the places of its pages already those of the output.
type chunkIndexes struct{ column, offset []byte }

// ErrShape: a projection whose columns have another physical form or codec than those that are in the file already.
var ErrShape = errors.New("the columns of the file have another form")

// NewWriter starts a Parquet file on w, which stays open when the file is closed.
func NewWriter(w io.Writer, o WriterOptions) *Writer {
	if o.Block <= 0 {
		o.Block = 256 << 10
		if o.ReadAhead > 1 {
			o.Block = 4 << 20
		}
	}
	if o.Progress == nil {
		o.Progress = func(int64) {}
	}
	return &Writer{w: w, o: o, version: 1}
}

// Rows that were appended.
func (w *Writer) Rows() int64 { return w.rows }

// Append copies the row groups of a projection. The first one says what the columns are; one that does not fit it gives
// ErrShape, and nothing is written. After any other error the writer gives the same error again.
func (w *Writer) Append(ctx context.Context, p *Projection) error {
	if w.err != nil {
		return w.err
	}
	if w.shape == nil {
		w.shape = p
	} else if !w.shape.Fits(p) {
		return ErrShape
	}
	w.version = max(w.version, min(p.file.version, 2))
	w.err = w.append(ctx, p)
	return w.err
}

func (w *Writer) append(ctx context.Context, p *Projection) error {
	if w.pos == 0 {
		if err := w.write([]byte(magic)); err != nil {
			return err
		}
	}
	idx, err := readIndexes(ctx, p)
	if err != nil {
		return err
	}
	for g := range p.file.groups {
		if p.file.groups[g].rows == 0 {
			continue
		}
		if err := w.rowGroup(ctx, p, g, idx); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) write(b []byte) error {
	n, err := w.w.Write(b)
	w.pos += int64(n)
	return err
}

// A file system copies whole pages of memory faster than parts of two, so row groups of some size begin at the same place of a page
// as they did. parquet-java pads row groups too, up to the blocks of HDFS.
const (
	pageOfMemory = 4 << 10
	alignFrom    = 1 << 20
)

// align writes zeros up to where an offset of the input lies in a page of memory, before so many bytes.
func (w *Writer) align(off, bytes int64) error {
	if bytes < alignFrom {
		return nil
	}
	return w.write(make([]byte, ((off-w.pos)%pageOfMemory+pageOfMemory)%pageOfMemory))
}

// bytes of some chunks.
func (g *rowGroup) bytes(columns []int) (n int64) {
	for _, c := range columns {
		n += g.columns[c].size
	}
	return n
}

// rowGroup copies the chunks of a row group and then its bloom filters.
func (w *Writer) rowGroup(ctx context.Context, p *Projection, g int, idx *indexes) error {
	rg := &p.file.groups[g]
	if err := w.align(rg.columns[p.leaves[0]].start, rg.bytes(p.leaves)); err != nil {
		return err
	}
	start := w.pos
	walks, err := w.copyChunks(ctx, p, rg, idx != nil)
	if err != nil {
		return err
	}
	columns := make([]fields, len(p.leaves))
	var uncompressed, compressed int64
	at := start
	for i, column := range p.leaves {
		c := &rg.columns[column]
		meta := c.moved(p.file.leaves[column], p.paths[i], at)
		if bloom, err := p.file.bloom(ctx, c); err != nil {
			return err
		} else if bloom != nil {
			meta = meta.setI64(metaBloom, w.pos).setI32(metaBloom+1, int64(len(bloom)))
			if err := w.write(bloom); err != nil {
				return err
			}
		}
		columns[i] = fields{}.setI64(chunkOffset, 0).setStruct(chunkMeta, meta)
		w.indexes = append(w.indexes, idx.moved(c, p.file.leaves[column], &walks[i], at-c.start, rg.rows))
		uncompressed += c.meta.number(metaUncompressed, 0)
		compressed += c.size
		at += c.size
	}
	out := fields{}.setStructs(groupColumns, columns).setI64(groupBytes, uncompressed).setI64(groupRows, rg.rows).
		setI64(groupOffset, start).setI64(groupCompressed, compressed)
	if sorting := rg.sortedBy(p.leaves); len(sorting) > 0 {
		out = out.setStructs(groupSorting, sorting)
	}
	if n := len(w.groups); n <= math.MaxInt16 {
		out = out.setI16(groupOrdinal, int64(n))
	}
	w.groups = append(w.groups, out)
	w.rows += rg.rows
	return nil
}

// moved is the chunk's metadata for a place in the output.
func (c *chunk) moved(leaf *element, path []string, at int64) fields {
	delta := at - c.start
	meta := c.meta.without(metaKeyValue, metaIndexPage, metaBloom, metaBloom+1, metaGeospatial)
	meta = meta.setI64(metaDataPage, c.meta.number(metaDataPage, 0)+delta)
	if d := c.meta.number(metaDictionary, 0); d > 0 {
		meta = meta.setI64(metaDictionary, d+delta)
	} else {
		meta = meta.without(metaDictionary)
	}
	names := make([][]byte, len(path))
	for i, name := range path {
		names[i] = append(binary.AppendUvarint(nil, uint64(len(name))), name...)
	}
	meta = meta.setList(metaPath, kindBinary, names)
	// The old minimum and maximum have no defined order. The new ones have one if the footer says so, which ours does.
	stats := c.stats.without(statsMax, statsMin)
	if !leaf.hasOrder() {
		stats = stats.without(statsMaxValue, statsMinValue, statsMaxExact, statsMinExact)
	}
	if len(stats) == 0 {
		return meta.without(metaStatistics)
	}
	return meta.setStruct(metaStatistics, stats)
}

func (e *element) hasOrder() bool { return e.ordered && e.physical != int96 }

// sortedBy gives the sorting columns as far as they are in the output: rows are sorted by the first ones also without the
// later ones.
func (g *rowGroup) sortedBy(leaves []int) (out []fields) {
	for _, s := range g.sorting {
		at := -1
		for i, column := range leaves {
			if int64(column) == s.number(sortingColumn, -1) {
				at = i
			}
		}
		if at < 0 {
			break
		}
		out = append(out, s.setI32(sortingColumn, int64(at)))
	}
	return out
}

// Close writes the indexes and the footer. It fails when nothing was appended: there would be no columns.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	if w.shape == nil {
		return errors.New("a Parquet file of no columns")
	}
	w.err = w.finish()
	return w.err
}

func (w *Writer) finish() error {
	groups, err := w.writeIndexes()
	if err != nil {
		return err
	}
	order := fields{}.setStruct(typeDefinedOrder, nil)
	orders := make([]fields, len(w.shape.leaves))
	for i := range orders {
		orders[i] = order
	}
	md := fields{}.setI32(fileVersion, w.version).setStructs(fileSchema, w.shape.schema).setI64(fileRows, w.rows).
		setStructs(fileRowGroups, groups).setText(fileCreatedBy, CreatedBy).setStructs(fileOrders, orders)
	text := md.append(nil)
	if len(text) > math.MaxInt32 {
		return fmt.Errorf("a footer of %d bytes", len(text))
	}
	text = binary.LittleEndian.AppendUint32(text, uint32(len(text)))
	return w.write(append(text, magic...))
}

// copyChunks copies the wanted chunks of a row group, in the order of the output, and gives what was seen of their pages.
func (w *Writer) copyChunks(ctx context.Context, p *Projection, rg *rowGroup, keepPages bool) ([]walker, error) {
	walks := make([]walker, len(p.leaves))
	var runs []storage.Range // chunks that lie one behind the other are one run
	for i, column := range p.leaves {
		c := &rg.columns[column]
		walks[i] = newWalker(c, keepPages)
		if n := len(runs); n > 0 && runs[n-1].Off+runs[n-1].Len == c.start {
			runs[n-1].Len += c.size
		} else {
			runs = append(runs, storage.Range{Off: c.start, Len: c.size})
		}
	}
	move := storage.RangesOf(w.w, p.file.obj)
	var err error
	if move == nil || w.o.Checksums {
		err = w.pumpRuns(ctx, p, runs, walks)
	} else {
		err = w.moveRuns(ctx, p, runs, walks, move)
	}
	if err != nil {
		return nil, err
	}
	for i := range walks {
		if err := walks[i].close(); err != nil {
			return nil, p.damaged(i, walks[i].end, err)
		}
	}
	return walks, nil
}

// damaged says that something is wrong with the chunk of a leaf.
func (p *Projection) damaged(leaf int, at int64, err error) error {
	return p.file.damaged(at, "column "+strings.Join(p.paths[leaf], "."), err)
}

// moveRuns has the store of the output copy the runs, and reads the page headers alone.
func (w *Writer) moveRuns(ctx context.Context, p *Projection, runs []storage.Range, walks []walker, move func(context.Context, storage.Range) error) error {
	for _, run := range runs {
		if err := move(ctx, run); err != nil {
			return err
		}
		w.pos += run.Len
		w.o.Progress(run.Len)
	}
	head := make([]byte, headerGuess)
	for i := range walks {
		for v := &walks[i]; v.at < v.end; {
			head := head[:min(headerGuess, v.end-v.at)]
			if err := p.file.readAt(ctx, head, v.at); err != nil {
				return err
			}
			if err := v.skip(head); err != nil {
				return p.damaged(i, v.at, err)
			}
		}
	}
	return nil
}

// pumpRuns reads and writes the runs, and sees every byte of their pages.
func (w *Writer) pumpRuns(ctx context.Context, p *Projection, runs []storage.Range, walks []walker) error {
	at := 0 // the chunk that the next byte is of
	return w.pump(ctx, p.file, runs, func(block []byte) error {
		w.o.Progress(int64(len(block)))
		for rest := block; len(rest) > 0; {
			for walks[at].at == walks[at].end {
				at++
			}
			v := &walks[at]
			n := min(int64(len(rest)), v.end-v.at)
			if err := v.write(rest[:n]); err != nil {
				return p.damaged(at, v.at, err)
			}
			rest = rest[n:]
		}
		return w.write(block)
	})
}

// block is a read that is on its way.
type block struct {
	buf  []byte
	done chan error
}

// pump reads runs of a file in blocks, some ahead, and hands them on in order.
func (w *Writer) pump(ctx context.Context, f *File, runs []storage.Range, each func([]byte) error) error {
	ahead := max(w.o.ReadAhead, 1)
	for len(w.buffers) < ahead {
		w.buffers = append(w.buffers, make([]byte, w.o.Block))
	}
	free := append([][]byte{}, w.buffers...)
	var flying []*block
	var reads sync.WaitGroup
	defer reads.Wait() // a read into a buffer must not outlive the call
	land := func() error {
		b := flying[0]
		flying = flying[1:]
		if err := <-b.done; err != nil {
			return err
		}
		free = append(free, b.buf[:cap(b.buf)])
		return each(b.buf)
	}
	for _, r := range runs {
		for at := r.Off; at < r.Off+r.Len; {
			if len(free) == 0 {
				if err := land(); err != nil {
					return err
				}
			}
			buf := free[len(free)-1]
			free = free[:len(free)-1]
			b := &block{buf: buf[:min(int64(len(buf)), r.Off+r.Len-at)], done: make(chan error, 1)}
			flying = append(flying, b)
			if ahead == 1 {
				b.done <- f.readAt(ctx, b.buf, at)
			} else {
				off := at
				reads.Go(func() { b.done <- f.readAt(ctx, b.buf, off) })
			}
			at += int64(len(b.buf))
		}
	}
	for len(flying) > 0 {
		if err := land(); err != nil {
			return err
		}
	}
	return nil
}

// readAt fills p.
func (f *File) readAt(ctx context.Context, p []byte, off int64) error {
	n, err := f.obj.ReadAt(ctx, p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return f.damaged(off, "", fmt.Errorf("read %d of %d bytes", n, len(p)))
	}
	return err
}
