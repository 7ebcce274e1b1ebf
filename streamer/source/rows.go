package source

import (
	"github.com/apache/arrow-go/v18/arrow"
)

// rowWriter turns the rows that a decoder appended to its columns into items: batches with the lines of their rows, and the
// records that could not be read, in the order in which they stand in the file.
type rowWriter struct {
	send  func(item) error
	file  string
	what  string                   // see RecordError
	batch func() arrow.RecordBatch // what was appended since the last call

	rows  int64
	marks []mark
	line  int64 // at which the row behind the last one is expected
	cuts  []cut
}

// cut is a row of no meaning.
type cut struct {
	row int64
	bad *RecordError
}

// add tells of a row that was appended, in a state of no meaning when err is set.
func (w *rowWriter) add(line int64, text []byte, err error) {
	if err != nil {
		w.cuts = append(w.cuts, cut{w.rows, &RecordError{File: w.file, Line: line, Text: string(text[:min(len(text), maxBadText)]), What: w.what, Err: err}})
	}
	if len(w.marks) == 0 || line != w.line {
		w.marks = append(w.marks, mark{row: w.rows, file: w.file, line: line, lines: true})
	}
	w.rows++
	w.line = line + 1
}

// skip tells of a row that was appended and is to be left out.
func (w *rowWriter) skip() {
	w.cuts = append(w.cuts, cut{row: w.rows})
	w.rows++
	w.line++
}

// maxBadText is how much is kept of a record that can't be read.
const maxBadText = 1 << 20

// finish sends everything.
func (w *rowWriter) finish() error {
	if w.rows == 0 {
		return nil
	}
	batch := w.batch()
	defer batch.Release()
	from := int64(0)
	for _, c := range append(w.cuts, cut{row: w.rows}) {
		if c.row > from {
			if err := w.send(item{batch: batch.NewSlice(from, c.row), at: w.between(from, c.row)}); err != nil {
				return err
			}
		}
		from = c.row + 1
		if c.bad == nil {
			continue
		}
		if err := w.send(item{bad: c.bad}); err != nil {
			return err
		}
	}
	return nil
}

// between are the marks of the rows from one to before another, counted from the first.
func (w *rowWriter) between(from, to int64) []mark {
	var out []mark
	for i, m := range w.marks {
		end := w.rows
		if i+1 < len(w.marks) {
			end = w.marks[i+1].row
		}
		if end <= from || m.row >= to {
			continue
		}
		if m.row < from {
			m.line += from - m.row
			m.row = from
		}
		m.row -= from
		out = append(out, m)
	}
	return out
}
