package source

import (
	"bytes"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sluicelake/sluice/hudi/schema"
)

// jsonFormat reads files of JSON objects: one a line, or one array of them, which is told by the first character.
type jsonFormat struct {
	avro   *schema.Type
	shape  *arrow.Schema
	engine bool // by the rules of the engine's reader
}

func (f *jsonFormat) recode(r io.Reader) io.Reader { return r }

func (f *jsonFormat) open(head []byte) (splitter, decodeChunk, error) {
	if c := bytes.TrimLeft(head, " \t\r\n"); len(c) > 0 && c[0] == '[' {
		return (&arraySplitter{}).split, f.decoder(f.elements), nil
	}
	return lines, f.decoder(f.lines), nil
}

func (f *jsonFormat) decoder(read func(*jsonDecoder, chunk, *rowWriter) error) decodeChunk {
	return func(o Options, c chunk, send func(item) error) error {
		d, err := newJSONDecoder(f.avro, f.shape, f.engine, o.alloc())
		if err != nil {
			return err
		}
		defer d.release()
		rows := rowWriter{send: send, file: c.file, what: "Failed to convert schema from json to avro", batch: d.batch}
		if err := read(d, c, &rows); err != nil {
			return err
		}
		return rows.finish()
	}
}

func (f *jsonFormat) lines(d *jsonDecoder, c chunk, rows *rowWriter) error {
	for text, line := c.text, c.line; len(text) > 0; line++ {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			end = len(text) - 1
		}
		one := bytes.TrimRight(text[:end+1], "\r\n")
		text = text[end+1:]
		if f.engine && len(bytes.TrimSpace(one)) == 0 {
			continue
		}
		rows.add(line, one, d.object(one))
	}
	return nil
}

// elements reads objects with commas between them. Brackets and commas were checked when the text was cut.
func (f *jsonFormat) elements(d *jsonDecoder, c chunk, rows *rowWriter) error {
	s := scanner{text: c.text}
	if s.space(); c.first {
		s.pos++ // the opening bracket
	}
	for line, counted := c.line, 0; ; {
		s.space()
		if s.pos < len(c.text) && c.text[s.pos] == ',' {
			s.pos++
			s.space()
		}
		if s.pos >= len(c.text) || c.text[s.pos] == ']' {
			return nil
		}
		line += int64(bytes.Count(c.text[counted:s.pos], []byte{'\n'}))
		counted = s.pos
		one, err := s.value(0)
		if err != nil {
			return &RecordError{File: c.file, Line: line, Text: string(c.text[counted:min(len(c.text), counted+200)]), Err: err}
		}
		rows.add(line, one, d.object(one))
	}
}

// arraySplitter cuts an array behind the commas between its elements.
type arraySplitter struct{ opened, closed bool }

func (a *arraySplitter) split(text []byte, end bool) (int, error) {
	s, whole := scanner{text: text}, 0
	if s.space(); !a.opened && s.pos < len(text) {
		s.pos++ // the bracket that chose this splitter
		s.space()
		if s.pos < len(text) && text[s.pos] == ']' {
			s.pos++
			a.closed = true
		}
	}
	for !a.closed {
		_, err := s.value(0)
		s.space()
		switch {
		case (errors.Is(err, errShort) || err == nil && s.pos >= len(text)) && end:
			return 0, errors.New("the array is not closed: was the file written whole?")
		case errors.Is(err, errShort), err == nil && s.pos >= len(text):
			a.opened = a.opened || whole > 0
			return whole, nil
		case err != nil && s.pos > len(text)-16 && !end: // a word that is cut
			a.opened = a.opened || whole > 0
			return whole, nil
		case err != nil:
			return 0, err
		case text[s.pos] == ',':
			s.pos++
			whole = s.pos
		case text[s.pos] == ']':
			s.pos++
			a.closed = true
		default:
			return 0, s.errorf("a comma or ] was expected, not %q", text[s.pos])
		}
	}
	if s.space(); s.pos < len(text) {
		return 0, s.errorf("%q follows the array", text[s.pos])
	}
	return len(text), nil
}
