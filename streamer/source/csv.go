package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
)

// CSVOptions are Spark's options of its CSV reader, which the streamer takes as hoodie.streamer.csv.<name>.
type CSVOptions struct {
	// RefuseOpenQuotes makes a quote that is left open an error; Spark has it end with its line.
	RefuseOpenQuotes bool

	dialect     csvDialect
	header      bool
	enforce     bool // the header is not looked at
	strict      bool // it must have the names of the schema
	mode        string
	null, empty string
	nan         string
	infinity    [2]string // positive, negative
	day         []string  // layouts; nil: Spark's cast
	moment      []string
	olderDay    *regexp.Regexp // what Spark's older parser takes
	olderMoment *regexp.Regexp
	corrupt     string // column for records that can't be read
	encoding    encoding.Encoding
	zone        *time.Location
}

// ErrCSVOption is wrapped by the errors of options that are not known, or not with this value, and that the original does not hand to
// its reader either.
var ErrCSVOption = errors.New("not an option that the CSV reader gets")

// The modes.
const (
	permissive    = "PERMISSIVE"
	dropMalformed = "DROPMALFORMED"
	failFast      = "FAILFAST"
)

// ParseCSVOptions reads options by their names, which are compared without regard to case. An error that wraps [ErrCSVOption] is about
// options that may be left alone: the others count.
func ParseCSVOptions(options map[string]string) (CSVOptions, error) {
	o := CSVOptions{
		dialect: csvDialect{sep: []byte{','}, quote: '"', escape: '\\'},
		mode:    permissive, nan: "NaN", infinity: [2]string{"Inf", "-Inf"}, corrupt: "_corrupt_record", zone: time.UTC,
		olderDay: olderDay, olderMoment: olderMoment,
	}
	escapeEsc, hasEscapeEsc := byte(0), false
	var strange error
	for _, name := range slices.Sorted(maps.Keys(options)) {
		v := options[name]
		err := o.set(strings.ToLower(name), v, &escapeEsc, &hasEscapeEsc)
		switch {
		case errors.Is(err, ErrCSVOption):
			strange = errors.Join(strange, fmt.Errorf("hoodie.streamer.csv.%s=%s: %w", name, v, err))
		case err != nil:
			return o, fmt.Errorf("hoodie.streamer.csv.%s=%s: %w", name, v, err)
		}
	}
	d := &o.dialect
	if d.escapeEsc = escapeEsc; !hasEscapeEsc && d.escape != d.quote {
		d.escapeEsc = d.escape
	}
	return o, strange
}

func (o *CSVOptions) set(name, v string, escapeEsc *byte, hasEscapeEsc *bool) (err error) {
	d := &o.dialect
	switch name {
	case "sep", "delimiter":
		d.sep, err = separator(v)
	case "quote":
		d.quote, err = oneByte(v)
	case "escape":
		d.escape, err = oneByte(v)
	case "chartoescapequoteescaping":
		*hasEscapeEsc = true
		*escapeEsc, err = oneByte(v)
	case "comment":
		d.comment, err = oneByte(v)
	case "header":
		o.header, err = yes(v)
	case "enforceschema":
		o.enforce, err = yes(v)
		o.strict = !o.enforce
	case "inferschema":
		_, err = yes(v) // inference is on exactly when there is no schema, whatever this says
	case "ignoreleadingwhitespace":
		d.trimLeft, err = yes(v)
	case "ignoretrailingwhitespace":
		d.trimRight, err = yes(v)
	case "multiline", "wholefile":
		d.multiLine, err = yes(v)
	case "nullvalue":
		o.null = v
	case "emptyvalue":
		o.empty = v
	case "nanvalue":
		o.nan = v
	case "positiveinf":
		o.infinity[0] = v
	case "negativeinf":
		o.infinity[1] = v
	case "dateformat":
		o.olderDay = olderForm(v)
		o.day, err = goLayouts(v)
	case "timestampformat":
		o.olderMoment = olderForm(v)
		o.moment, err = goLayouts(v)
	case "mode":
		if o.mode = strings.ToUpper(v); o.mode != permissive && o.mode != dropMalformed && o.mode != failFast {
			err = fmt.Errorf("the modes are %s, %s and %s", permissive, dropMalformed, failFast)
		}
	case "columnnameofcorruptrecord":
		o.corrupt = v
	case "encoding", "charset":
		if e := strings.ToUpper(v); e != "UTF-8" && e != "UTF8" {
			o.encoding, err = htmlindex.Get(v)
		}
	case "timezone":
		o.zone, err = time.LoadLocation(v)
	case "linesep":
		if v != "\n" && v != "\\n" && v != "\r\n" && v != "\\r\\n" {
			err = fmt.Errorf("%w: lines end in \\n or \\r\\n", ErrCSVOption)
		}
	case "locale":
		if !strings.EqualFold(strings.ReplaceAll(v, "_", "-"), "en-US") {
			err = fmt.Errorf("%w: numbers are read as in en-US", ErrCSVOption)
		}
	case "samplingratio", "maxcolumns", "maxcharspercolumn", "preferdate", "enabledatetimeparsingfallback", "unescapedquotehandling":
		if name == "unescapedquotehandling" && !strings.EqualFold(v, "STOP_AT_DELIMITER") {
			err = fmt.Errorf("%w: there is only STOP_AT_DELIMITER", ErrCSVOption)
		}
	default:
		err = ErrCSVOption
	}
	return err
}

func yes(v string) (bool, error) {
	switch strings.ToLower(v) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("true or false was expected")
}

func oneByte(v string) (byte, error) {
	switch {
	case v == "" || v == `\u0000` || v == "\x00":
		return 0, nil
	case v == `\t`:
		return '\t', nil
	case v == `\\`:
		return '\\', nil
	case len(v) > 1 || v[0] >= 0x80:
		return 0, errors.New("one character of ASCII was expected")
	}
	return v[0], nil
}

// separator undoes the escapes that Spark knows in a separator.
func separator(v string) ([]byte, error) {
	v = strings.NewReplacer(`\t`, "\t", `\\`, `\`, `\b`, "\b", `\f`, "\f", `\"`, `"`, `\'`, "'", `\u0000`, "\x00", `\u0001`, "\x01").Replace(v)
	if v == "" || strings.ContainsAny(v, "\n\r") {
		return nil, errors.New("a separator was expected")
	}
	return []byte(v), nil
}

// csvFormat reads CSV files whose columns are known.
type csvFormat struct {
	CSVOptions
	shape
	inferred bool         // the columns come from the files
	nulls    atomic.Int64 // values that could not be read and became null
	dropped  atomic.Int64 // records
	unclosed atomic.Int64 // quotes
	moved    atomic.Bool  // a header had the columns in another order
}

func (f *csvFormat) recode(r io.Reader) io.Reader { return f.recodeText(r) }

// recodeText turns the characters of a text into UTF-8.
func (o *CSVOptions) recodeText(r io.Reader) io.Reader {
	if o.encoding == nil {
		return r
	}
	return o.encoding.NewDecoder().Reader(r)
}

// data are the columns of the schema that a file holds: all but the one for corrupt records.
func (f *csvFormat) data() []int {
	var at []int
	for i, c := range f.arrow.Fields() {
		if c.Name != f.corrupt {
			at = append(at, i)
		}
	}
	return at
}

func (f *csvFormat) open(head []byte) (splitter, decodeChunk, error) {
	columns := f.data()
	if f.header {
		names, err := f.names(head)
		if err != nil {
			return nil, nil, err
		}
		if columns, err = f.place(names, columns); err != nil {
			return nil, nil, err
		}
	}
	d := f.dialect.endsIn(head)
	return d.split, func(o Options, c chunk, send func(item) error) error { return f.decode(o, c, d, columns, send) }, nil
}

// names reads the header.
func (f *csvFormat) names(head []byte) ([]string, error) {
	return csvHeader(f.dialect, head)
}

func csvHeader(d csvDialect, head []byte) ([]string, error) {
	r := csvReader{csvDialect: d, text: head}
	_, _, ok, err := r.next()
	if err != nil || !ok {
		return nil, err
	}
	seen := map[string]int{}
	names := make([]string, len(r.fields))
	for _, v := range r.fields {
		seen[strings.ToLower(string(v.text))]++
	}
	for i, v := range r.fields {
		switch name := string(v.text); {
		case name == "":
			names[i] = fmt.Sprintf("_c%d", i)
		case seen[strings.ToLower(name)] > 1:
			names[i] = fmt.Sprintf("%s%d", name, i)
		default:
			names[i] = name
		}
	}
	return names, nil
}

// place says which column of the schema each column of a file is. Spark goes by position, whatever the header says; where that would
// mix up columns that the header names, the names count.
func (f *csvFormat) place(names []string, columns []int) ([]int, error) {
	switch {
	case names == nil || f.enforce:
		return columns, nil
	case f.strict:
		return columns, f.conforms(names, columns)
	}
	byName, found, apart := make([]int, len(names)), 0, false
	for i, n := range names {
		byName[i] = -1
		for at, column := range columns {
			if strings.EqualFold(n, f.arrow.Field(column).Name) {
				byName[i] = column
				found++
				apart = apart || at != i
			}
		}
	}
	switch {
	case f.inferred && found == len(names):
		return byName, nil
	case !apart:
		return columns, nil
	case found == len(names) || found == len(columns):
		f.moved.Store(true)
		return byName, nil
	}
	return nil, fmt.Errorf("the header %s does not match the columns %s; set hoodie.streamer.csv.enforceSchema=true to go by position",
		strings.Join(names, ","), strings.Join(fieldNames(f.arrow), ","))
}

// conforms is what Spark asks of a header under enforceSchema=false.
func (f *csvFormat) conforms(names []string, columns []int) error {
	want := make([]string, len(columns))
	for i, column := range columns {
		want[i] = f.arrow.Field(column).Name
	}
	if len(names) != len(want) {
		return fmt.Errorf("Number of column in CSV header is not equal to number of fields in the schema: header length: %d, schema size: %d", len(names), len(want)) //nolint:revive,staticcheck // Spark's text
	}
	for i, n := range names {
		if !strings.EqualFold(n, want[i]) {
			return fmt.Errorf("CSV header does not conform to the schema. Header: %s Schema: %s Expected: %s but found: %s", strings.Join(names, ", "), strings.Join(want, ", "), want[i], n) //nolint:revive,staticcheck // Spark's text
		}
	}
	return nil
}

func fieldNames(s *arrow.Schema) []string {
	names := make([]string, s.NumFields())
	for i := range names {
		names[i] = s.Field(i).Name
	}
	return names
}

func (f *csvFormat) decode(o Options, c chunk, d csvDialect, columns []int, send func(item) error) error {
	b := array.NewRecordBuilder(o.alloc(), f.arrow)
	defer b.Release()
	row, err := f.bind(b, columns)
	if err != nil {
		return err
	}
	r := csvReader{csvDialect: d, text: c.text}
	rows := rowWriter{send: send, file: c.file, batch: func() arrow.RecordBatch { return b.NewRecordBatch() }}
	line := c.line
	for first := c.first && f.header; ; first = false {
		start, skipped, ok, err := r.next()
		if !ok {
			break
		}
		line += int64(skipped)
		text := bytes.TrimRight(r.text[start:r.pos], "\r\n")
		at := line
		line += int64(bytes.Count(r.text[start:r.pos], []byte{'\n'}))
		if first {
			continue
		}
		bad, err := row.append(r.fields, text, err)
		if bad && f.mode == dropMalformed && !errors.As(err, &olderError{}) {
			f.dropped.Add(1)
			rows.skip()
			continue
		}
		rows.add(at, text, err)
	}
	return rows.finish()
}

// csvRow appends records to columns.
type csvRow struct {
	f       *csvFormat
	columns []csvColumn
	at      []int // column of each field of a record; -1: none
	corrupt *array.StringBuilder
}

type csvColumn struct {
	name     string
	nullable bool
	b        array.Builder
	parse    func(text string, quoted bool) error
	filled   bool
}

func (f *csvFormat) bind(b *array.RecordBuilder, columns []int) (*csvRow, error) {
	row := &csvRow{f: f, columns: make([]csvColumn, len(b.Fields())), at: columns}
	for i, fb := range b.Fields() {
		field := f.arrow.Field(i)
		if field.Name == f.corrupt {
			text, ok := fb.(*array.StringBuilder)
			if !ok || !field.Nullable {
				return nil, fmt.Errorf("column %s, for records that can't be read, must be a nullable string", f.corrupt)
			}
			row.corrupt = text
			continue
		}
		parse, err := f.parser(fb)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", field.Name, err)
		}
		row.columns[i] = csvColumn{name: field.Name, nullable: field.Nullable, b: fb, parse: parse}
	}
	return row, nil
}

// append appends one row. bad reports a malformed record; the error is set when the row must not go on.
func (r *csvRow) append(fields []csvField, text []byte, err error) (bad bool, _ error) {
	for i := range r.columns {
		r.columns[i].filled = false
	}
	if err != nil {
		fields = nil
	} else if len(fields) != len(r.at) {
		bad = true
		if r.f.mode == failFast {
			err = fmt.Errorf("%d values for %d columns", len(fields), len(r.at))
		}
	}
	for i, v := range fields {
		if v.open {
			r.f.unclosed.Add(1)
			if r.f.RefuseOpenQuotes && err == nil {
				err = errOpenQuote
			}
		}
		if i >= len(r.at) || r.at[i] < 0 {
			continue
		}
		valid, valueErr := r.value(&r.columns[r.at[i]], v)
		bad = bad || !valid
		if err == nil {
			err = valueErr
		}
	}
	for i := range r.columns {
		c := &r.columns[i]
		if c.filled || c.b == nil {
			continue
		}
		c.b.AppendNull()
		if !c.nullable && err == nil {
			err = fmt.Errorf("null value for (non-nullable) column %s", c.name)
		}
	}
	r.note(bad || err != nil, text)
	return bad || err != nil, err
}

func (r *csvRow) note(bad bool, text []byte) {
	switch {
	case r.corrupt == nil:
	case bad:
		r.corrupt.BinaryBuilder.Append(text)
	default:
		r.corrupt.AppendNull()
	}
}

// value appends one value. What can't be read as the column's type is null, and an error in FAILFAST mode.
func (r *csvRow) value(c *csvColumn, v csvField) (valid bool, err error) {
	if c.filled { // two fields of one name
		return true, nil
	}
	c.filled = true
	text := string(v.text)
	if v.quoted && text == "" {
		text = r.f.empty
	}
	isNull := !v.quoted && len(v.text) == 0 || text == r.f.null
	if !isNull {
		before := c.b.Len()
		if err = c.parse(text, v.quoted); err == nil {
			return true, nil
		}
		if c.b.Len() > before {
			return false, fmt.Errorf("column %s: %w", c.name, err)
		}
	}
	c.b.AppendNull()
	switch {
	case err != nil && r.f.mode == failFast, err != nil && !c.nullable, errors.As(err, &olderError{}):
		return false, fmt.Errorf("column %s: %w", c.name, err)
	case err != nil:
		if r.f.mode == permissive {
			r.f.nulls.Add(1)
		}
		return false, nil
	case !c.nullable:
		return false, fmt.Errorf("null value for (non-nullable) column %s", c.name)
	}
	return true, nil
}

// parser reads texts as the type of a column (Spark's UnivocityParser). It appends only what it could read.
func (f *csvFormat) parser(b array.Builder) (func(text string, quoted bool) error, error) {
	switch b := b.(type) {
	case *array.StringBuilder:
		return func(text string, _ bool) error { b.Append(strings.ToValidUTF8(text, "\uFFFD")); return nil }, nil
	case *array.BinaryBuilder:
		return func(text string, _ bool) error { b.Append([]byte(text)); return nil }, nil
	case *array.BooleanBuilder:
		return func(text string, _ bool) error {
			v, err := yes(text)
			if err == nil {
				b.Append(v)
			}
			return err
		}, nil
	case *array.Int32Builder:
		return func(text string, _ bool) error {
			v, err := javaInt(text, 32)
			if err == nil {
				b.Append(int32(v))
			}
			return err
		}, nil
	case *array.Int64Builder:
		return func(text string, _ bool) error {
			v, err := javaInt(text, 64)
			if err == nil {
				b.Append(v)
			}
			return err
		}, nil
	case *array.Float32Builder:
		return func(text string, _ bool) error {
			v, err := f.float(text, 32)
			if err == nil {
				b.Append(float32(v))
			}
			return err
		}, nil
	case *array.Float64Builder:
		return func(text string, _ bool) error {
			v, err := f.float(text, 64)
			if err == nil {
				b.Append(v)
			}
			return err
		}, nil
	case *array.Decimal128Builder, *array.Decimal256Builder:
		t := b.Type().(arrow.DecimalType)
		return func(text string, _ bool) error {
			v, err := roundedDecimal(strings.ReplaceAll(text, ",", ""), t.GetScale())
			if err == nil && digitsOf(v) > int(t.GetPrecision()) {
				err = fmt.Errorf("%q does not fit %s", text, t)
			}
			if err != nil {
				return err
			}
			return appendDecimal(b, v)
		}, nil
	case *array.Date32Builder:
		return func(text string, _ bool) error {
			d, err := f.date(text)
			if err == nil {
				b.Append(d)
			}
			return orOlder(err, text, f.olderDay)
		}, nil
	case *array.TimestampBuilder:
		unit := b.Type().(*arrow.TimestampType).Unit
		return func(text string, _ bool) error {
			m, err := f.timestamp(text)
			if err == nil {
				b.Append(ticks(m, unit))
			}
			return orOlder(err, text, f.olderMoment)
		}, nil
	}
	return nil, fmt.Errorf("type %s can't be read from CSV", b.Type())
}

func (o *CSVOptions) float(text string, bits int) (float64, error) {
	switch text {
	case o.nan:
		text = "NaN"
	case o.infinity[0]:
		text = "Infinity"
	case o.infinity[1]:
		text = "-Infinity"
	}
	return javaFloat(text, bits)
}

func (o *CSVOptions) date(text string) (arrow.Date32, error) {
	if o.day == nil {
		return parseDay(text)
	}
	t, err := parseAny(text, o.day, "date of the given form")
	return arrow.Date32FromTime(t), err
}

func (o *CSVOptions) timestamp(text string) (time.Time, error) {
	layouts := o.moment
	if layouts == nil {
		layouts, text = momentLayouts, strings.TrimSpace(text)
	}
	for _, l := range layouts {
		if t, err := time.ParseInLocation(l, text, o.zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no timestamp", text)
}

// roundedDecimal reads a number as an unscaled value, rounded half up where it has more digits behind the point.
func roundedDecimal(text string, scale int32) (*big.Int, error) {
	if len(text) > 1000 {
		return nil, errors.New("a number of more than 1000 digits")
	}
	mantissa, exponent := text, int64(0)
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		var err error
		if exponent, err = javaInt(text[i+1:], 32); err != nil || exponent > 1000 || exponent < -1000 {
			return nil, fmt.Errorf("%q is no number", text)
		}
		mantissa = text[:i]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits, ok := new(big.Int).SetString(whole+fraction, 10)
	if !ok || strings.Contains(text, "_") || strings.Trim(fraction, "0123456789") != "" {
		return nil, fmt.Errorf("%q is no number", text)
	}
	shift := int64(scale) - int64(len(fraction)) + exponent
	ten := big.NewInt(10)
	if shift >= 0 {
		return digits.Mul(digits, new(big.Int).Exp(ten, big.NewInt(shift), nil)), nil
	}
	unit := new(big.Int).Exp(ten, big.NewInt(-shift), nil)
	rest := new(big.Int)
	digits.QuoRem(digits, unit, rest)
	if rest.Abs(rest).Lsh(rest, 1).Cmp(unit) >= 0 {
		step := big.NewInt(1)
		if strings.HasPrefix(text, "-") {
			step.Neg(step)
		}
		digits.Add(digits, step)
	}
	return digits, nil
}
