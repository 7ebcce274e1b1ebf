package export

import (
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sluicelake/sluice/hudi/encode"
)

// flushAt is the size at which text goes to the writer below: large enough that a write costs nothing beside its bytes.
const flushAt = 256 << 10

// TextFile writes batches as text with one of encode's writers.
type TextFile struct {
	w      io.Writer
	append func(dst []byte, b arrow.RecordBatch) []byte
	buf    []byte
}

// NewJSON starts JSON Lines on w, which stays open when the file is closed.
func NewJSON(w io.Writer, schema *arrow.Schema, o encode.Options) (*TextFile, error) {
	j, err := encode.NewJSON(schema, o)
	if err != nil {
		return nil, err
	}
	return &TextFile{w: w, append: j.Append}, nil
}

// NewCSV starts CSV with a header line on w, which stays open when the file is closed.
func NewCSV(w io.Writer, schema *arrow.Schema, o encode.Options) (*TextFile, error) {
	c, err := encode.NewCSV(schema, o)
	if err != nil {
		return nil, err
	}
	return &TextFile{w: w, append: c.Append, buf: c.AppendHeader(nil)}, nil
}

// textRows is how many rows are made to text before the buffer is looked at.
const textRows = 1024

// Write appends a batch.
func (f *TextFile) Write(batch arrow.RecordBatch) error {
	for from := int64(0); from < batch.NumRows(); from += textRows {
		part := batch.NewSlice(from, min(from+textRows, batch.NumRows()))
		f.buf = f.append(f.buf, part)
		part.Release()
		if len(f.buf) >= flushAt {
			if err := f.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *TextFile) flush() error {
	_, err := f.w.Write(f.buf)
	f.buf = f.buf[:0]
	return err
}

// Close writes what is left.
func (f *TextFile) Close() error { return f.flush() }
