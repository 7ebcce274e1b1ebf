package export

import (
	"bufio"
	"errors"
	"io"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// heap keeps the rows of many folders until the end of a task, when each folder is written as one file after the other. Above
// its budget it goes to local files, sorted by folder, and the folders are merged from there.
type heap struct {
	dir    string // of local files; empty is the system's
	budget int64
	schema *arrow.Schema

	runs  []*run // in memory, in the order of arrival
	bytes int64
	spans map[int32]int64 // rows of each folder, wherever they are
	file  *os.File        // of all that was spilled
	end   int64
	files []*spilled
}

// run is a batch whose rows are sorted by folder.
type run struct {
	batch arrow.RecordBatch
	parts []part // ascending by folder
	next  int    // the first part that was not taken
}

// part is what a folder has of a run: rows [from, to).
type part struct {
	id       int32
	from, to int64
}

// add takes over a batch.
func (h *heap) add(batch arrow.RecordBatch, parts []part) error {
	h.schema = batch.Schema()
	h.runs = append(h.runs, &run{batch: batch, parts: parts})
	h.bytes += batchBytes(batch)
	for _, p := range parts {
		h.spans[p.id] += p.to - p.from
	}
	if h.bytes <= h.budget {
		return nil
	}
	return h.spill()
}

// batchBytes is about what a batch holds in memory. Slices count their share.
func batchBytes(b arrow.RecordBatch) (n int64) {
	for _, c := range b.Columns() {
		n += arrayBytes(c.Data())
	}
	return n
}

func arrayBytes(d arrow.ArrayData) (n int64) {
	for i, b := range d.Buffers() {
		if b == nil {
			continue
		}
		switch {
		case d.DataType().Layout().Buffers[i].Kind == arrow.KindFixedWidth:
			n += int64(d.DataType().Layout().Buffers[i].ByteWidth) * int64(d.Len())
		case d.DataType().Layout().Buffers[i].Kind == arrow.KindBitmap:
			n += int64(d.Len()) / 8
		default: // values of variable length: as if the whole array were meant, unless offsets tell
			n += variableBytes(d, b)
		}
	}
	for _, c := range d.Children() {
		n += arrayBytes(c)
	}
	return n
}

func variableBytes(d arrow.ArrayData, values *memory.Buffer) int64 {
	switch d.DataType().ID() {
	case arrow.STRING, arrow.BINARY:
		offsets := arrow.Int32Traits.CastFromBytes(d.Buffers()[1].Bytes())
		if d.Offset()+d.Len() < len(offsets) {
			return int64(offsets[d.Offset()+d.Len()] - offsets[d.Offset()])
		}
	}
	return int64(values.Len())
}

// spillRows are the rows of a batch in a local file: of each file one is in memory while folders are merged.
const spillRows = 4096

// spilled is a section of the local file: batches, sorted by folder.
type spilled struct {
	bytes  *io.SectionReader
	reader *ipc.Reader
	parts  []part // rows counted over the whole file
	next   int

	batch arrow.RecordBatch
	first int64 // number of its first row
}

// spill writes all runs to the local file.
func (h *heap) spill() (err error) {
	if h.file == nil {
		if h.file, err = os.CreateTemp(h.dir, "sluice-export-*"); err != nil {
			return err
		}
		// Where the system can, nothing stays behind when the process is killed.
		_ = os.Remove(h.file.Name())
	}
	s := &spilled{}
	out := io.NewOffsetWriter(h.file, h.end)
	buffered := bufio.NewWriterSize(out, 1<<20)
	w := ipc.NewWriter(buffered, ipc.WithSchema(h.schema))
	var pieces []arrow.RecordBatch
	var rows, total int64
	flush := func() error {
		if rows == 0 {
			return nil
		}
		batch, err := joinBatches(pieces)
		releaseAll(pieces)
		pieces, rows = nil, 0
		if err != nil {
			return err
		}
		defer batch.Release()
		return w.Write(batch)
	}
	defer func() { releaseAll(pieces) }()
	for id, ok := h.lowest(); ok; id, ok = h.lowest() {
		from := total
		for piece := range h.inMemory(id) {
			for at := int64(0); at < piece.NumRows(); {
				n := min(piece.NumRows()-at, spillRows-rows)
				pieces = append(pieces, piece.NewSlice(at, at+n))
				at, rows, total = at+n, rows+n, total+n
				if rows == spillRows {
					if err := flush(); err != nil {
						piece.Release()
						return err
					}
				}
			}
			piece.Release()
		}
		s.parts = append(s.parts, part{id, from, total})
	}
	if err := flush(); err != nil {
		return err
	}
	if err := errors.Join(w.Close(), buffered.Flush()); err != nil {
		return err
	}
	h.dropRuns()
	n, err := out.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	s.bytes = io.NewSectionReader(h.file, h.end, n)
	h.end += n
	h.files = append(h.files, s)
	return nil
}

// lowest gives the lowest folder that runs in memory still have rows of.
func (h *heap) lowest() (id int32, ok bool) {
	for _, r := range h.runs {
		if r.next < len(r.parts) && (!ok || r.parts[r.next].id < id) {
			id, ok = r.parts[r.next].id, true
		}
	}
	return id, ok
}

// inMemory takes the rows that runs in memory have of a folder. The caller releases what it gets.
func (h *heap) inMemory(id int32) func(yield func(arrow.RecordBatch) bool) {
	return func(yield func(arrow.RecordBatch) bool) {
		for _, r := range h.runs {
			if r.next == len(r.parts) || r.parts[r.next].id != id {
				continue
			}
			p := r.parts[r.next]
			r.next++
			if !yield(r.batch.NewSlice(p.from, p.to)) {
				return
			}
		}
	}
}

func (h *heap) dropRuns() {
	for _, r := range h.runs {
		r.batch.Release()
	}
	h.runs, h.bytes = nil, 0
}

// rows gives the rows of a folder, in the order in which they came, as batches that the caller releases. Folders are asked for
// in ascending order.
func (h *heap) rows(id int32, each func(arrow.RecordBatch) error) error {
	for _, f := range h.files {
		if err := f.rows(id, each); err != nil {
			return err
		}
	}
	for piece := range h.inMemory(id) {
		if err := each(piece); err != nil {
			return err
		}
	}
	return nil
}

func (f *spilled) rows(id int32, each func(arrow.RecordBatch) error) error {
	if f.next == len(f.parts) || f.parts[f.next].id != id {
		return nil
	}
	p := f.parts[f.next]
	f.next++
	for at := p.from; at < p.to; {
		if err := f.seek(at); err != nil {
			return err
		}
		to := min(p.to, f.first+f.batch.NumRows())
		if err := each(f.batch.NewSlice(at-f.first, to-f.first)); err != nil {
			return err
		}
		at = to
	}
	return nil
}

// seek reads on to the batch that holds a row.
func (f *spilled) seek(row int64) (err error) {
	if f.reader == nil {
		if f.reader, err = ipc.NewReader(bufio.NewReaderSize(f.bytes, 64<<10)); err != nil {
			return err
		}
	}
	for f.batch == nil || row >= f.first+f.batch.NumRows() {
		if f.batch != nil {
			f.first += f.batch.NumRows()
			f.batch.Release()
			f.batch = nil
		}
		if !f.reader.Next() {
			return errors.Join(errors.New("a local file of spilled rows ended too early"), f.reader.Err())
		}
		f.batch = f.reader.RecordBatch()
		f.batch.Retain()
	}
	return nil
}

// close lets go of memory and files.
func (h *heap) close() (err error) {
	h.dropRuns()
	for _, f := range h.files {
		if f.batch != nil {
			f.batch.Release()
		}
		if f.reader != nil {
			f.reader.Release()
		}
	}
	h.files = nil
	if h.file == nil {
		return nil
	}
	err = h.file.Close()
	if removeErr := os.Remove(h.file.Name()); removeErr != nil && !errors.Is(removeErr, os.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	h.file = nil
	return err
}

func releaseAll(batches []arrow.RecordBatch) {
	for _, b := range batches {
		b.Release()
	}
}

// joinBatches makes one batch of several; of one it is that one.
func joinBatches(in []arrow.RecordBatch) (arrow.RecordBatch, error) {
	if len(in) == 1 {
		in[0].Retain()
		return in[0], nil
	}
	columns := make([]arrow.Array, in[0].NumCols())
	defer func() {
		for _, c := range columns {
			if c != nil {
				c.Release()
			}
		}
	}()
	var rows int64
	for _, b := range in {
		rows += b.NumRows()
	}
	parts := make([]arrow.Array, len(in))
	for i := range columns {
		for k, b := range in {
			parts[k] = b.Column(i)
		}
		var err error
		if columns[i], err = array.Concatenate(parts, memory.DefaultAllocator); err != nil {
			return nil, err
		}
	}
	return array.NewRecordBatch(in[0].Schema(), columns, rows), nil
}
