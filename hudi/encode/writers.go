package encode

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/mattn/go-runewidth"
)

// JSON writes rows as JSON Lines: one object a row, members in the order of the columns, "\n" after each.
// It is safe for concurrent use.
type JSON struct {
	compiler
	members []member
}

// NewJSON compiles a writer for batches of a schema. An error wraps [ErrType].
func NewJSON(s *arrow.Schema, o Options) (*JSON, error) {
	j := &JSON{compiler: compiler{Options: o}}
	var err error
	j.members, err = j.compiler.members(s.Fields())
	return j, err
}

// Append appends the lines of a batch.
func (j *JSON) Append(dst []byte, b arrow.RecordBatch) []byte {
	o := j.object(j.members, b.Columns())
	for i := range int(b.NumRows()) {
		dst = append(o.append(dst, i), '\n')
	}
	return dst
}

// CSV writes rows as comma-separated values with the quoting of RFC 4180. A null is nothing, an empty text is "". Nested
// values are their JSON. It is safe for concurrent use.
type CSV struct {
	compiler
	names  []string
	values []binder
	quote  []bool // the column's texts may need quotes
}

// NewCSV compiles a writer for batches of a schema. An error wraps [ErrType].
func NewCSV(s *arrow.Schema, o Options) (*CSV, error) {
	c := &CSV{compiler: compiler{Options: o, bare: true}}
	for _, f := range s.Fields() {
		b, err := c.compile(f.Type)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
		c.names, c.values = append(c.names, f.Name), append(c.values, b)
		c.quote = append(c.quote, needsQuotes(f.Type))
	}
	return c, nil
}

func needsQuotes(dt arrow.DataType) bool {
	return arrow.IsNested(dt.ID()) || dt.ID() == arrow.STRING || dt.ID() == arrow.LARGE_STRING || dt.ID() == arrow.DICTIONARY
}

// AppendHeader appends the line of column names.
func (c *CSV) AppendHeader(dst []byte) []byte {
	for i, n := range c.names {
		if i > 0 {
			dst = append(dst, ',')
		}
		at := len(dst)
		dst = quoteFrom(append(dst, n...), at)
	}
	return append(dst, '\n')
}

// Append appends the lines of a batch.
func (c *CSV) Append(dst []byte, b arrow.RecordBatch) []byte {
	values := make([]appender, len(c.values))
	for i, v := range c.values {
		values[i] = v(b.Column(i))
	}
	for row := range int(b.NumRows()) {
		for i, value := range values {
			if i > 0 {
				dst = append(dst, ',')
			}
			if col := b.Column(i); col.IsNull(row) || col.DataType().ID() == arrow.NULL {
				continue
			}
			at := len(dst)
			dst = value(dst, row)
			if c.quote[i] {
				dst = quoteFrom(dst, at)
			}
		}
		dst = append(dst, '\n')
	}
	return dst
}

// quoteFrom puts what stands from at on in quotes where RFC 4180 asks for it, or where it is empty and must not look null.
func quoteFrom(dst []byte, at int) []byte {
	field := dst[at:]
	if len(field) > 0 && !bytes.ContainsAny(field, ",\"\r\n") {
		return dst
	}
	inner := bytes.ReplaceAll(field, []byte(`"`), []byte(`""`))
	dst = append(dst[:at], '"')
	return append(append(dst, inner...), '"')
}

// TableOptions of [NewTable].
type TableOptions struct {
	Options
	// MaxCell is the widest a column gets, in character cells; longer values are cut with "…". 0 is 60, below 0 no limit.
	MaxCell int
}

// tableSection is the number of rows after which widths are settled anew.
const tableSection = 1000

// Table prints rows for people: aligned columns under their names, numbers to the right, control characters made visible.
// Rows are kept until there are 1000, or Close; then they are printed below a header of their own.
type Table struct {
	w      io.Writer
	o      TableOptions
	names  []string
	values []binder
	right  []bool
	rows   [][]string
	// printed: a header stands already.
	printed bool
	err     error
}

// NewTable makes a printer for batches of a schema. An error wraps [ErrType].
func NewTable(w io.Writer, s *arrow.Schema, o TableOptions) (*Table, error) {
	if o.MaxCell == 0 {
		o.MaxCell = 60
	}
	t := &Table{w: w, o: o}
	c := compiler{Options: o.Options, bare: true}
	for _, f := range s.Fields() {
		b, err := c.compile(f.Type)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
		id := f.Type.ID()
		t.names, t.values = append(t.names, t.cell(f.Name)), append(t.values, b)
		t.right = append(t.right, arrow.IsInteger(id) || arrow.IsFloating(id) || arrow.IsDecimal(id))
	}
	return t, nil
}

// Add takes the rows of a batch. It gives the first error of the writer.
func (t *Table) Add(b arrow.RecordBatch) error {
	values := make([]appender, len(t.values))
	for i, v := range t.values {
		values[i] = v(b.Column(i))
	}
	var buf []byte
	for row := range int(b.NumRows()) {
		cells := make([]string, len(values))
		for i, value := range values {
			if b.Column(i).IsNull(row) {
				cells[i] = "null"
				continue
			}
			buf = value(buf[:0], row)
			cells[i] = t.cell(string(buf))
		}
		if t.rows = append(t.rows, cells); len(t.rows) >= tableSection {
			t.flush()
		}
	}
	return t.err
}

// Close prints what is left, and the header when there was no row at all.
func (t *Table) Close() error {
	t.flush()
	return t.err
}

// cell makes control characters visible, so that no value can move the cursor of a terminal, and cuts long texts.
func (t *Table) cell(s string) string {
	var b strings.Builder
	width := 0
	for _, r := range s {
		text := string(r)
		switch {
		case r == '\n':
			text = `\n`
		case r == '\t':
			text = `\t`
		case unicode.IsControl(r) || unicode.In(r, unicode.Cf):
			text = fmt.Sprintf(`\u%04X`, r)
		}
		w := runewidth.StringWidth(text)
		if t.o.MaxCell > 0 && width+w > t.o.MaxCell-1 && runewidth.StringWidth(s) > t.o.MaxCell {
			b.WriteString("…")
			break
		}
		width += w
		b.WriteString(text)
	}
	return b.String()
}

func (t *Table) flush() {
	if t.err != nil || len(t.rows) == 0 && t.printed {
		return
	}
	t.printed = true
	widths := make([]int, len(t.names))
	for i, n := range t.names {
		widths[i] = runewidth.StringWidth(n)
	}
	for _, row := range t.rows {
		for i, c := range row {
			widths[i] = max(widths[i], runewidth.StringWidth(c))
		}
	}
	var b strings.Builder
	line := func(cells []string) {
		for i, c := range cells {
			if i > 0 {
				b.WriteString(" | ")
			}
			pad := strings.Repeat(" ", widths[i]-runewidth.StringWidth(c))
			switch {
			case t.right[i]:
				b.WriteString(pad + c)
			case i+1 < len(cells):
				b.WriteString(c + pad)
			default:
				b.WriteString(c)
			}
		}
		b.WriteByte('\n')
	}
	line(t.names)
	for i, w := range widths {
		if i > 0 {
			b.WriteString("-+-")
		}
		b.WriteString(strings.Repeat("-", w))
	}
	b.WriteByte('\n')
	for _, row := range t.rows {
		line(row)
	}
	t.rows = nil
	_, t.err = io.WriteString(t.w, b.String())
}
