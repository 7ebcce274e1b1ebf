package source

import (
	"bytes"
	"errors"
)

// csvDialect says how the fields of a record are told apart, by the rules of the parser that Spark uses.
type csvDialect struct {
	sep       []byte
	quote     byte // 0: none
	escape    byte // in front of a quote inside of quotes; 0: none
	escapeEsc byte // in front of an escape; 0: none
	comment   byte // at the start of a line that is none; 0: none
	trimLeft  bool // blanks in front of a field that is not in quotes
	trimRight bool
	multiLine bool // line ends inside of quotes belong to the value
	crlf      bool // with multiLine: lines end in \r\n, and such an end inside of quotes is read as \n
}

// csvField is one value of a record. Its text is valid until the next record.
type csvField struct {
	text   []byte
	quoted bool
	open   bool // the closing quote is missing
}

var errOpenQuote = errors.New("a quote is left open; where values have line ends in them, set hoodie.streamer.csv.multiLine=true")

// csvReader walks over the records of a text.
type csvReader struct {
	csvDialect
	text   []byte
	pos    int
	fields []csvField
	buf    []byte // unescaped values of the record
}

// next reads a record. ok is false at the end. Empty lines and comments are skipped. The text of the record is
// r.text[start:r.pos], and lines is how many line ends were passed before it.
func (r *csvReader) next() (start, lines int, ok bool, err error) {
	for r.pos < len(r.text) {
		start = r.pos
		end := r.lineEnd(start)
		line := r.text[start:end]
		if blank := len(bytes.TrimSpace(line)) == 0; blank || r.comment != 0 && line[0] == r.comment {
			lines++
			r.pos = r.after(end)
			continue
		}
		r.fields, r.buf = r.fields[:0], r.buf[:0]
		stop := end
		if r.multiLine {
			stop = len(r.text)
		}
		if err = r.record(stop); err != nil {
			r.pos = r.after(end)
		}
		return start, lines, true, err
	}
	return 0, lines, false, nil
}

// lineEnd is where the line that starts at i ends, its line end not counted.
func (r *csvReader) lineEnd(i int) int {
	n := bytes.IndexByte(r.text[i:], '\n')
	if n < 0 {
		return len(bytes.TrimSuffix(r.text, []byte{'\r'}))
	}
	if n > 0 && r.text[i+n-1] == '\r' {
		n--
	}
	return i + n
}

// after is the start of the line behind a line end at i.
func (r *csvReader) after(i int) int {
	if i < len(r.text) && r.text[i] == '\r' {
		i++
	}
	if i < len(r.text) && r.text[i] == '\n' {
		i++
	}
	return i
}

// record reads fields up to a line end or to stop, and goes behind the line end.
func (r *csvReader) record(stop int) error {
	for {
		f, i, err := r.field(r.pos, stop)
		if err != nil {
			return err
		}
		r.fields = append(r.fields, f)
		if i < stop && bytes.HasPrefix(r.text[i:stop], r.sep) {
			r.pos = i + len(r.sep)
			continue
		}
		r.pos = r.after(i)
		return nil
	}
}

// ends reports whether a field ends at i.
func (r *csvReader) ends(i, stop int) bool {
	if i >= stop {
		return true
	}
	c := r.text[i]
	if c == '\n' || c == '\r' && i+1 < len(r.text) && r.text[i+1] == '\n' {
		return true
	}
	return c == r.sep[0] && bytes.HasPrefix(r.text[i:stop], r.sep)
}

func isBlank(c byte) bool { return c <= ' ' && c != '\n' && c != '\r' }

// field reads one field at i and gives the place behind it.
func (r *csvReader) field(i, stop int) (csvField, int, error) {
	start := i
	for i < stop && isBlank(r.text[i]) && !r.ends(i, stop) {
		i++
	}
	if r.quote != 0 && i < stop && r.text[i] == r.quote && (i == start || r.trimLeft) {
		return r.inQuotes(i, stop)
	}
	if !r.trimLeft {
		i = start
	}
	begin := i
	for !r.ends(i, stop) {
		i++
	}
	end := i
	for r.trimRight && end > begin && isBlank(r.text[end-1]) {
		end--
	}
	return csvField{text: r.text[begin:end]}, i, nil
}

// inQuotes reads a field whose opening quote stands at open. A quote inside that is not escaped makes the field one without
// quotes that ends at the next separator, its quotes kept, as Spark has it (STOP_AT_DELIMITER). Without multiLine a quote that is
// left open ends with its line.
func (r *csvReader) inQuotes(open, stop int) (csvField, int, error) {
	from := len(r.buf)
	for i := open + 1; i < stop; {
		c := r.text[i]
		switch {
		case r.escapeEsc != 0 && c == r.escapeEsc && i+1 < stop && r.text[i+1] == r.escape && r.escape != r.quote:
			r.buf = append(r.buf, r.escape)
			i += 2
		case c == r.escape && r.escape != 0 && i+1 < stop && r.text[i+1] == r.quote:
			r.buf = append(r.buf, r.quote)
			i += 2
		case c == '\r' && r.crlf && i+1 < stop && r.text[i+1] == '\n':
			i++
		case c != r.quote:
			r.buf = append(r.buf, c)
			i++
		default:
			// Further quotes right behind the closing one belong to the value, where the value ends behind them.
			end := i + 1
			for end < stop && r.text[end] == r.quote && r.escape != r.quote {
				end++
			}
			more := end - i - 1
			for end < stop && isBlank(r.text[end]) && !r.ends(end, stop) {
				end++
			}
			if r.ends(end, stop) {
				r.buf = append(r.buf, r.text[i:i+more]...)
				return csvField{text: r.buf[from:len(r.buf):len(r.buf)], quoted: true}, end, nil
			}
			for !r.ends(end, stop) {
				end++
			}
			inner := append([]byte{r.quote}, r.buf[from:]...)
			return csvField{text: append(inner, r.text[i:end]...)}, end, nil
		}
	}
	if !r.multiLine { // Spark parses line by line: the value goes up to the line's end
		return csvField{text: r.buf[from:len(r.buf):len(r.buf)], quoted: true, open: true}, stop, nil
	}
	return csvField{}, 0, errOpenQuote
}

// endsIn finds out how the lines of a file end that starts like this, by its first line end.
func (d csvDialect) endsIn(head []byte) csvDialect {
	i := bytes.IndexAny(head, "\r\n")
	d.crlf = d.multiLine && i >= 0 && bytes.HasPrefix(head[i:], []byte("\r\n"))
	return d
}

// split finds the end of the last whole record of a text in which values may hold line ends.
func (d csvDialect) split(text []byte, end bool) (int, error) {
	if end || !d.multiLine {
		return lines(text, end)
	}
	// The last line may be cut, and so may the record that it belongs to.
	r := csvReader{csvDialect: d, text: text[:bytes.LastIndexByte(text, '\n')+1]}
	whole := 0
	for {
		_, _, ok, err := r.next()
		if !ok || errors.Is(err, errOpenQuote) {
			return whole, nil
		}
		whole = r.pos
	}
}
