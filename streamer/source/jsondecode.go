package source

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/schema"
)

// jsonDecoder turns JSON objects into columns of an Avro schema, by the rules of the original (tools C.7, JsonDFSSource): fields
// that the schema has not are dropped, missing ones are null, whatever the default; a text with a number in it is that
// number, a number is also a text, 1.9 is the long 1. Beyond that: what does not fit its type is an error instead of another
// number; decimals, dates, times and timestamps may be written as texts.
//
// It is for one goroutine.
type jsonDecoder struct {
	builder *array.RecordBuilder
	root    *jsonRecord
	engine  bool
	rows    int
}

// appender reads the text of one value and appends exactly one value to its builder, also when it fails, so that the columns
// stay equally long. A nil text is a value that is not there.
type appender func(raw []byte) error

func newJSONDecoder(t *schema.Type, shape *arrow.Schema, engine bool, alloc memory.Allocator) (*jsonDecoder, error) {
	b := array.NewRecordBuilder(alloc, shape)
	compile := compileValue
	if engine {
		compile = engineAppender
	}
	root, err := compileFields(t, t.Name, b.Field, compile)
	if err != nil {
		b.Release()
		return nil, err
	}
	return &jsonDecoder{builder: b, root: root, engine: engine}, nil
}

func (d *jsonDecoder) release() { d.builder.Release() }

// object appends one row. After an error there is a row of no meaning.
func (d *jsonDecoder) object(text []byte) error {
	d.rows++
	s := scanner{text: text, names: d.engine}
	s.space()
	if s.pos >= len(text) {
		return errors.Join(errors.New("blank line"), d.root.fill(nil))
	}
	if text[s.pos] != '{' {
		start := s.pos
		if _, err := s.value(0); err != nil {
			return errors.Join(err, d.root.nothing())
		}
		return errors.Join(fmt.Errorf("an object was expected, not %s", shorten(string(text[start:s.pos]))), d.root.nothing())
	}
	if err := d.root.scan(&s, 0); err != nil {
		return errors.Join(err, d.root.nothing())
	}
	if s.space(); s.pos < len(text) {
		return errors.Join(s.errorf("%q follows the object", text[s.pos]), d.root.nothing())
	}
	return d.root.append()
}

func (d *jsonDecoder) batch() arrow.RecordBatch {
	d.rows = 0
	return d.builder.NewRecordBatch()
}

// jsonRecord is a record type bound to its columns.
type jsonRecord struct {
	names  map[string]int
	fields []jsonField
	values [][]byte // of the object at hand
	hint   int      // the field that comes next when objects keep their order
	key    []byte
}

type jsonField struct {
	name   string
	path   string
	append appender
}

func compileRecord(t *schema.Type, path string, column func(int) array.Builder) (*jsonRecord, error) {
	return compileFields(t, path, column, compileValue)
}

func compileFields(t *schema.Type, path string, column func(int) array.Builder, compile func(*schema.Type, string, array.Builder) (appender, error)) (*jsonRecord, error) {
	r := &jsonRecord{names: map[string]int{}, values: make([][]byte, len(t.Fields))}
	for i := range t.Fields {
		f := &t.Fields[i]
		jf := jsonField{name: f.Name, path: path + "." + f.Name}
		var err error
		if jf.append, err = compile(f.Type, jf.path, column(i)); err != nil {
			return nil, err
		}
		r.fields = append(r.fields, jf)
		r.names[f.Name] = i
	}
	return r, nil
}

// scan notes where the values of an object stand. Of several members of one name the last counts.
func (r *jsonRecord) scan(s *scanner, depth int) error {
	clear(r.values)
	r.hint = 0
	return s.members(depth, func(key, value []byte) error {
		if bytes.IndexByte(key, '\\') >= 0 {
			var err error
			if r.key, err = appendText(r.key[:0], key); err != nil {
				return err
			}
			key = r.key
		}
		if r.hint < len(r.fields) && r.fields[r.hint].name == string(key) {
			r.values[r.hint] = value
			r.hint++
			return nil
		}
		if i, ok := r.names[string(key)]; ok {
			r.values[i] = value
			r.hint = i + 1
		}
		return nil
	})
}

// append appends the values that scan found.
func (r *jsonRecord) append() error {
	var first error
	for i := range r.fields {
		f := &r.fields[i]
		raw := r.values[i]
		if err := f.append(raw); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// fill appends a row of missing values.
func (r *jsonRecord) fill(err error) error {
	clear(r.values)
	_ = r.append() //nolint:errcheck // the row has no meaning
	return err
}

func (r *jsonRecord) nothing() error { return r.fill(nil) }

func compileValue(t *schema.Type, path string, b array.Builder) (appender, error) {
	inner, nullable := t.Optional()
	if inner.Kind == schema.Union {
		return nil, fmt.Errorf("field %s: a union of several types can't be read from JSON; give the schema one of them", path)
	}
	add, err := compileInner(inner, path, b)
	if err != nil {
		return nil, err
	}
	return func(raw []byte) error {
		if raw == nil || raw[0] == 'n' {
			if nullable || inner.Kind == schema.Null {
				b.AppendNull()
				return nil
			}
			b.AppendEmptyValue()
			return fmt.Errorf("null value for (non-nullable) %s at %s", inner.Kind, path)
		}
		if err := add(raw); err != nil {
			return fmt.Errorf("field %s: %w", path, err)
		}
		return nil
	}, nil
}

// compileInner reads values that are there.
func compileInner(t *schema.Type, path string, b array.Builder) (appender, error) {
	switch b := b.(type) {
	case *array.StructBuilder:
		return compileStruct(t, path, b)
	case *array.ListBuilder:
		item, err := compileValue(t.Items, path+"[]", b.ValueBuilder())
		if err != nil {
			return nil, err
		}
		return listOf(b, item), nil
	case *array.MapBuilder:
		item, err := compileValue(t.Items, path+"{}", b.ItemBuilder())
		if err != nil {
			return nil, err
		}
		return mapOf(b, item), nil
	}
	add, err := compileScalar(t, b)
	if err != nil {
		return nil, fmt.Errorf("field %s: %w", path, err)
	}
	return add, nil
}

func compileStruct(t *schema.Type, path string, b *array.StructBuilder) (appender, error) {
	r, err := compileRecord(t, path, b.FieldBuilder)
	if err != nil {
		return nil, err
	}
	return func(raw []byte) error {
		b.Append(true)
		if raw[0] != '{' {
			return r.fill(fmt.Errorf("an object was expected, not %s", shorten(string(raw))))
		}
		if err := r.scan(&scanner{text: raw, names: true}, 0); err != nil {
			return r.fill(err)
		}
		return r.append()
	}, nil
}

func listOf(b *array.ListBuilder, item appender) appender {
	return func(raw []byte) error {
		b.Append(true)
		if raw[0] != '[' {
			return fmt.Errorf("an array was expected, not %s", shorten(string(raw)))
		}
		s := scanner{text: raw, names: true}
		return s.elements(0, item)
	}
}

func mapOf(b *array.MapBuilder, item appender) appender {
	keys := b.KeyBuilder().(*array.StringBuilder)
	return func(raw []byte) error {
		b.Append(true)
		if raw[0] != '{' {
			return fmt.Errorf("an object was expected, not %s", shorten(string(raw)))
		}
		type entry struct{ key, value []byte }
		var entries []entry
		s := scanner{text: raw, names: true}
		err := s.members(0, func(key, value []byte) error {
			text, err := appendText(nil, key)
			for i := range entries { // of several members of one name the last counts
				if bytes.Equal(entries[i].key, text) {
					entries[i].value = value
					return err
				}
			}
			entries = append(entries, entry{text, value})
			return err
		})
		for _, e := range entries {
			keys.BinaryBuilder.Append(e.key)
			if itemErr := item(e.value); err == nil {
				err = itemErr
			}
		}
		return err
	}
}

func compileScalar(t *schema.Type, b array.Builder) (appender, error) {
	var buf []byte
	text := func(raw []byte) (string, error) {
		var err error
		buf, err = javaText(buf[:0], raw, 0)
		return string(buf), err
	}
	switch b := b.(type) {
	case *array.NullBuilder:
		return func([]byte) error { b.AppendNull(); return errors.New("only null is allowed") }, nil
	case *array.BooleanBuilder:
		return func(raw []byte) error {
			b.Append(raw[0] == 't')
			if raw[0] != 't' && raw[0] != 'f' {
				return fmt.Errorf("true or false was expected, not %s", shorten(string(raw)))
			}
			return nil
		}, nil
	case *array.Int32Builder:
		return func(raw []byte) error { v, err := jsonInt(raw, 32); b.Append(int32(v)); return err }, nil
	case *array.Int64Builder:
		return func(raw []byte) error { v, err := jsonInt(raw, 64); b.Append(v); return err }, nil
	case *array.Float32Builder:
		return func(raw []byte) error { v, err := jsonFloat(raw, 32); b.Append(float32(v)); return err }, nil
	case *array.Float64Builder:
		return func(raw []byte) error { v, err := jsonFloat(raw, 64); b.Append(v); return err }, nil
	case *array.StringBuilder:
		return stringAppender(t, b), nil
	case *array.BinaryBuilder:
		return func(raw []byte) error {
			v, err := jsonBytes(raw)
			b.Append(v)
			return err
		}, nil
	case *array.FixedSizeBinaryBuilder:
		return func(raw []byte) error {
			v, err := jsonBytes(raw)
			fixed := make([]byte, t.Size)
			if err == nil && copy(fixed, v) != len(v) {
				err = fmt.Errorf("%d bytes for a fixed of %d", len(v), t.Size)
			}
			b.Append(fixed)
			return err
		}, nil
	case *array.Decimal128Builder, *array.Decimal256Builder:
		scale := b.Type().(arrow.DecimalType).GetScale()
		return func(raw []byte) error {
			s, err := decimalText(raw)
			if err != nil {
				b.AppendEmptyValue()
				return err
			}
			v, err := schema.ParseDecimal(s, scale)
			if err != nil {
				b.AppendEmptyValue()
				return err
			}
			return appendDecimal(b, v)
		}, nil
	case *array.Date32Builder:
		return func(raw []byte) error {
			v, err := jsonMoment(raw, text, func(s string) (int64, error) { d, err := parseDay(s); return int64(d), err })
			b.Append(arrow.Date32(v))
			return in32(v, err)
		}, nil
	case *array.Time32Builder:
		return func(raw []byte) error {
			v, err := jsonMoment(raw, text, func(s string) (int64, error) { n, err := parseClock(s); return n / 1e6, err })
			b.Append(arrow.Time32(v))
			return in32(v, err)
		}, nil
	case *array.Time64Builder:
		return func(raw []byte) error {
			v, err := jsonMoment(raw, text, func(s string) (int64, error) { n, err := parseClock(s); return n / 1e3, err })
			b.Append(arrow.Time64(v))
			return err
		}, nil
	case *array.TimestampBuilder:
		unit := b.Type().(*arrow.TimestampType).Unit
		return func(raw []byte) error {
			v, err := jsonMoment(raw, text, func(s string) (int64, error) { m, err := parseMoment(s); return int64(ticks(m, unit)), err })
			b.Append(arrow.Timestamp(v))
			return err
		}, nil
	}
	return nil, fmt.Errorf("type %s can't be read from JSON", b.Type())
}

func stringAppender(t *schema.Type, b *array.StringBuilder) appender {
	var buf []byte
	return func(raw []byte) error {
		if raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 && t.Kind != schema.Enum {
			if inner := raw[1 : len(raw)-1]; isPlain(inner) {
				b.BinaryBuilder.Append(inner)
				return nil
			}
		}
		var err error
		buf, err = javaText(buf[:0], raw, 0)
		b.BinaryBuilder.Append(buf)
		if err == nil && t.Kind == schema.Enum && !contains(t.Symbols, buf) {
			err = fmt.Errorf("%q is none of the symbols %s", buf, strings.Join(t.Symbols, ", "))
		}
		return err
	}
}

func contains(symbols []string, v []byte) bool {
	for _, s := range symbols {
		if s == string(v) {
			return true
		}
	}
	return false
}

// isPlain reports whether a text is ASCII alone, and so needs no repair.
func isPlain(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

// jsonInt reads an integer: of a number what stands before the point, of a text the number in it.
func jsonInt(raw []byte, bits int) (int64, error) {
	switch c := raw[0]; {
	case c == '"':
		text, err := appendText(nil, raw[1:len(raw)-1])
		if err != nil {
			return 0, err
		}
		return javaInt(string(text), bits)
	case c != '-' && (c < '0' || c > '9'):
		return 0, fmt.Errorf("a number was expected, not %s", shorten(string(raw)))
	}
	if !bytes.ContainsAny(raw, ".eE") {
		n, err := strconv.ParseInt(string(raw), 10, bits)
		if err != nil {
			return 0, fmt.Errorf("%s is outside of a number of %d bits", raw, bits)
		}
		return n, nil
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	limit := math.Ldexp(1, bits-1)
	if f = math.Trunc(f); err != nil || f < -limit || f >= limit {
		return 0, fmt.Errorf("%s is outside of a number of %d bits", raw, bits)
	}
	return int64(f), nil
}

// jsonFloat reads a float as Java narrows what its JSON reader gives: whole numbers from a long, others from a double.
func jsonFloat(raw []byte, bits int) (float64, error) {
	switch c := raw[0]; {
	case c == '"':
		text, err := appendText(nil, raw[1:len(raw)-1])
		if err != nil {
			return 0, err
		}
		return javaFloat(string(text), bits)
	case c != '-' && (c < '0' || c > '9'):
		return 0, fmt.Errorf("a number was expected, not %s", shorten(string(raw)))
	}
	if bits == 32 && !bytes.ContainsAny(raw, ".eE") {
		if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
			return float64(float32(n)), nil
		}
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || bits == 32 && math.IsInf(float64(float32(f)), 0) {
		return 0, fmt.Errorf("%s is too large", raw)
	}
	return f, nil
}

// jsonBytes reads the bytes of a text, or those of an array of numbers, which is how Java's JSON writer prints a fixed.
func jsonBytes(raw []byte) ([]byte, error) {
	if raw[0] != '[' {
		return javaText(nil, raw, 0)
	}
	var out []byte
	s := scanner{text: raw, names: true}
	err := s.elements(0, func(value []byte) error {
		n, err := jsonInt(value, 32)
		if err == nil && (n < -128 || n > 255) {
			err = fmt.Errorf("%d is no byte", n)
		}
		out = append(out, byte(n))
		return err
	})
	return out, err
}

func decimalText(raw []byte) (string, error) {
	if raw[0] == '"' {
		text, err := appendText(nil, raw[1:len(raw)-1])
		return string(text), err
	}
	return string(raw), nil
}

// jsonMoment reads a number as it is, and a text by its form; a text of digits is a number.
func jsonMoment(raw []byte, text func([]byte) (string, error), parse func(string) (int64, error)) (int64, error) {
	if raw[0] != '"' {
		return jsonInt(raw, 64)
	}
	s, err := text(raw)
	if err != nil {
		return 0, err
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && len(s) != 4 {
		return n, nil
	}
	return parse(s)
}

func in32(v int64, err error) error {
	if err == nil && v != int64(int32(v)) {
		err = fmt.Errorf("%d is outside of a number of 32 bits", v)
	}
	return err
}

// parseClock reads a time of day in nanoseconds.
func parseClock(text string) (int64, error) {
	t, err := parseAny(text, clockLayouts, "time of day")
	if err != nil {
		return 0, err
	}
	midnight := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	return int64(t.Sub(midnight)), nil
}

// javaText writes a value as Java's toString does for what its JSON reader gives: texts as they are, doubles in Java's form,
// objects as {a=1, b=x}, arrays as [1, 2].
func javaText(b, raw []byte, depth int) ([]byte, error) {
	switch c := raw[0]; {
	case c == '"':
		return appendText(b, raw[1:len(raw)-1])
	case c == '{' || c == '[':
		return javaCollection(b, raw, depth)
	case c == '-' || c >= '0' && c <= '9':
		if !bytes.ContainsAny(raw, ".eE") {
			if string(raw) == "-0" {
				raw = raw[1:]
			}
			return append(b, raw...), nil
		}
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil && !isRange(err) {
			return b, err
		}
		return schema.AppendJavaFloat(b, f, 64), nil
	}
	return append(b, raw...), nil
}

func javaCollection(b, raw []byte, depth int) ([]byte, error) {
	if depth >= maxJSONDepth {
		return b, fmt.Errorf("nested more than %d levels", maxJSONDepth)
	}
	s, n := scanner{text: raw, names: true}, 0
	comma := func() {
		if n++; n > 1 {
			b = append(b, ", "...)
		}
	}
	var err error
	if raw[0] == '[' {
		b = append(b, '[')
		err = s.elements(depth, func(value []byte) error {
			comma()
			var err error
			b, err = javaText(b, value, depth+1)
			return err
		})
		return append(b, ']'), err
	}
	b = append(b, '{')
	err = s.members(depth, func(key, value []byte) error {
		comma()
		var err error
		if b, err = appendText(b, key); err != nil {
			return err
		}
		b = append(b, '=')
		b, err = javaText(b, value, depth+1)
		return err
	})
	return append(b, '}'), err
}
