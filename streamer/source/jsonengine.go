package source

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/sluicelake/sluice/hudi/schema"
)

// Under a transformer the original has JSON read by its engine (Spark 3.4: spark.read.schema(…).json), which has rules of its own: what
// does not fit its type is null and no error, a text is no number, a number is a moment in seconds, bytes are base64, every column
// may be null and defaults do not count, blank lines are skipped. A line that is no JSON is an error here, as there, where it becomes
// a row of nulls without a key.

// engineValue reads values of one type: take reports why one does not fit, put appends the one that take accepted last.
type engineValue struct {
	take func(raw []byte) error
	put  func(raw []byte) error
}

// engineSchema is what the engine makes of a schema: everything in it may be null.
func engineSchema(t *schema.Type) *schema.Type {
	inner, _ := t.Optional()
	out := *inner
	out.Fields = nil
	for _, f := range inner.Fields {
		f.Type, f.Default = nullable(engineSchema(f.Type)), []byte("null")
		out.Fields = append(out.Fields, f)
	}
	if inner.Items != nil {
		out.Items = nullable(engineSchema(inner.Items))
	}
	return &out
}

// engineAppender is a value that may be missing or not fit.
func engineAppender(t *schema.Type, path string, b array.Builder) (appender, error) {
	v, err := compileEngine(t, path, b)
	if err != nil {
		return nil, err
	}
	return func(raw []byte) error {
		if err := v.append(b, raw); errors.As(err, &olderError{}) {
			return fmt.Errorf("field %s: %w", path, err)
		}
		return nil
	}, nil
}

// append appends a value, or null with the reason why it does not fit.
func (v engineValue) append(b array.Builder, raw []byte) error {
	if raw == nil || raw[0] == 'n' {
		b.AppendNull()
		return nil
	}
	if err := v.take(raw); err != nil {
		b.AppendNull()
		return err
	}
	return v.put(raw)
}

// fits is take for what may be null.
func (v engineValue) fits(raw []byte) error {
	if raw[0] == 'n' {
		return nil
	}
	return v.take(raw)
}

func compileEngine(t *schema.Type, path string, b array.Builder) (engineValue, error) {
	t, _ = t.Optional()
	if t.Kind == schema.Union {
		return engineValue{}, fmt.Errorf("field %s: a union of several types can't be read from JSON; give the schema one of them", path)
	}
	switch b := b.(type) {
	case *array.StructBuilder:
		return engineStruct(t, path, b)
	case *array.ListBuilder:
		return engineList(t, path, b)
	case *array.MapBuilder:
		return engineMap(t, path, b)
	}
	v, ok := engineScalar(b)
	if !ok {
		return v, fmt.Errorf("field %s: type %s can't be read from JSON", path, b.Type())
	}
	return v, nil
}

// engineStruct: a field that does not fit is null, the others stay.
func engineStruct(t *schema.Type, path string, b *array.StructBuilder) (engineValue, error) {
	r, err := compileFields(t, path, b.FieldBuilder, engineAppender)
	return engineValue{
		take: func(raw []byte) error { return misfit(raw[0] == '{') },
		put: func(raw []byte) error {
			b.Append(true)
			if err := r.scan(&scanner{text: raw, names: true}, 0); err != nil {
				return r.fill(err)
			}
			return r.append()
		},
	}, err
}

// engineList: an element that does not fit makes the list null.
func engineList(t *schema.Type, path string, b *array.ListBuilder) (engineValue, error) {
	item, err := compileEngine(t.Items, path+"[]", b.ValueBuilder())
	return engineValue{
		take: func(raw []byte) error {
			if raw[0] != '[' {
				return errMisfit
			}
			s := scanner{text: raw, names: true}
			return s.elements(0, item.fits)
		},
		put: listOf(b, func(raw []byte) error { return item.append(b.ValueBuilder(), raw) }),
	}, err
}

func engineMap(t *schema.Type, path string, b *array.MapBuilder) (engineValue, error) {
	item, err := compileEngine(t.Items, path+"{}", b.ItemBuilder())
	return engineValue{
		take: func(raw []byte) error {
			if raw[0] != '{' {
				return errMisfit
			}
			s := scanner{text: raw, names: true}
			return s.members(0, func(_, one []byte) error { return item.fits(one) })
		},
		put: mapOf(b, func(raw []byte) error { return item.append(b.ItemBuilder(), raw) }),
	}, err
}

var errMisfit = errors.New("a value does not fit its type")

func misfit(fits bool) error {
	if fits {
		return nil
	}
	return errMisfit
}

// engineOf keeps what read gives until put asks for it.
func engineOf[T any](read func(raw []byte) (T, error), add func(T)) (engineValue, bool) {
	var kept T
	return engineValue{
		take: func(raw []byte) (err error) { kept, err = read(raw); return err },
		put:  func([]byte) error { add(kept); return nil },
	}, true
}

func engineScalar(b array.Builder) (engineValue, bool) {
	switch b := b.(type) {
	case *array.BooleanBuilder:
		return engineOf(func(raw []byte) (bool, error) { return raw[0] == 't', misfit(raw[0] == 't' || raw[0] == 'f') }, b.Append)
	case *array.Int32Builder:
		return engineOf(func(raw []byte) (int32, error) { v, err := strconv.ParseInt(string(raw), 10, 32); return int32(v), err }, b.Append)
	case *array.Int64Builder:
		return engineOf(engineLong, b.Append)
	case *array.Time32Builder: // a number to the engine
		return engineOf(func(raw []byte) (arrow.Time32, error) {
			v, err := strconv.ParseInt(string(raw), 10, 32)
			return arrow.Time32(v), err
		}, b.Append)
	case *array.Time64Builder:
		return engineOf(func(raw []byte) (arrow.Time64, error) { v, err := engineLong(raw); return arrow.Time64(v), err }, b.Append)
	case *array.Float32Builder:
		return engineOf(func(raw []byte) (float32, error) { v, err := engineDouble(raw); return float32(v), err }, b.Append)
	case *array.Float64Builder:
		return engineOf(engineDouble, b.Append)
	case *array.StringBuilder:
		return engineOf(func(raw []byte) ([]byte, error) {
			if raw[0] == '"' {
				return appendText(nil, raw[1:len(raw)-1])
			}
			return compactJSON(nil, raw, 0)
		}, b.BinaryBuilder.Append)
	case *array.BinaryBuilder:
		return engineOf(engineBytes, b.Append)
	case *array.FixedSizeBinaryBuilder:
		return engineOf(func(raw []byte) ([]byte, error) {
			v, err := engineBytes(raw)
			return v, errors.Join(err, misfit(len(v) == b.Type().(*arrow.FixedSizeBinaryType).ByteWidth))
		}, b.Append)
	case *array.Decimal128Builder, *array.Decimal256Builder:
		dt := b.Type().(arrow.DecimalType)
		return engineOf(func(raw []byte) (*big.Int, error) { return engineDecimal(raw, dt) }, func(v *big.Int) { _ = appendDecimal(b, v) }) //nolint:errcheck // it fits
	case *array.Date32Builder:
		return engineOf(func(raw []byte) (arrow.Date32, error) {
			text, err := engineText(raw)
			if err != nil {
				return 0, err
			}
			d, err := parseDay(text)
			return d, orOlder(err, text, olderDay)
		}, b.Append)
	case *array.TimestampBuilder:
		unit := b.Type().(*arrow.TimestampType).Unit
		return engineOf(func(raw []byte) (arrow.Timestamp, error) { return engineMoment(raw, unit) }, b.Append)
	}
	return engineValue{}, false
}

// engineText is what stands in a text that is not empty.
func engineText(raw []byte) (string, error) {
	if raw[0] != '"' || len(raw) == 2 {
		return "", errMisfit
	}
	text, err := appendText(nil, raw[1:len(raw)-1])
	return string(text), err
}

func engineBytes(raw []byte) ([]byte, error) {
	if string(raw) == `""` {
		return []byte{}, nil
	}
	text, err := engineText(raw)
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(text)
}

func engineLong(raw []byte) (int64, error) { return strconv.ParseInt(string(raw), 10, 64) }

func isNumber(raw []byte) bool { return raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' }

func engineDouble(raw []byte) (float64, error) {
	if isNumber(raw) || raw[0] == 'N' || raw[0] == 'I' {
		v, err := strconv.ParseFloat(string(raw), 64)
		if err != nil && !isRange(err) {
			return 0, err
		}
		return v, nil
	}
	text, err := engineText(raw)
	if err != nil {
		return 0, err
	}
	switch text {
	case "NaN":
		return math.NaN(), nil
	case "+INF", "Infinity", "+Infinity":
		return math.Inf(1), nil
	case "-INF", "-Infinity":
		return math.Inf(-1), nil
	}
	return 0, errMisfit
}

func engineDecimal(raw []byte, t arrow.DecimalType) (*big.Int, error) {
	text := string(raw)
	if !isNumber(raw) {
		var err error
		if text, err = engineText(raw); err != nil {
			return nil, err
		}
		text = strings.ReplaceAll(text, ",", "")
	}
	v, err := roundedDecimal(text, t.GetScale())
	if err == nil && digitsOf(v) > int(t.GetPrecision()) {
		err = errMisfit
	}
	return v, err
}

func engineMoment(raw []byte, unit arrow.TimeUnit) (arrow.Timestamp, error) {
	if isNumber(raw) {
		seconds, err := engineLong(raw)
		if err == nil && seconds != seconds*1e6/1e6 {
			err = errMisfit
		}
		if unit == arrow.Millisecond {
			return arrow.Timestamp(seconds * 1e3), err
		}
		return arrow.Timestamp(seconds * 1e6), err
	}
	text, err := engineText(raw)
	if err != nil {
		return 0, err
	}
	m, err := parseMoment(text)
	return ticks(m, unit), orOlder(err, text, olderMoment)
}

// compactJSON writes a value as Java's JSON writer copies it: without blanks, numbers with a point as Java prints doubles.
func compactJSON(b, raw []byte, depth int) ([]byte, error) {
	if depth >= maxJSONDepth {
		return b, fmt.Errorf("nested more than %d levels", maxJSONDepth)
	}
	switch c := raw[0]; {
	case c == '"':
		text, err := appendText(nil, raw[1:len(raw)-1])
		return appendQuoted(b, text), err
	case isNumber(raw):
		return javaText(b, raw, depth)
	case c != '{' && c != '[':
		return append(b, raw...), nil
	}
	s, n := scanner{text: raw, names: true}, 0
	comma := func() {
		if n++; n > 1 {
			b = append(b, ',')
		}
	}
	var err error
	if raw[0] == '[' {
		b = append(b, '[')
		err = s.elements(depth, func(one []byte) error {
			comma()
			var err error
			b, err = compactJSON(b, one, depth+1)
			return err
		})
		return append(b, ']'), err
	}
	b = append(b, '{')
	err = s.members(depth, func(key, one []byte) error {
		comma()
		text, err := appendText(nil, key)
		if err != nil {
			return err
		}
		b = append(appendQuoted(b, text), ':')
		b, err = compactJSON(b, one, depth+1)
		return err
	})
	return append(b, '}'), err
}

// appendQuoted writes a text of JSON in which only what must be is escaped.
func appendQuoted(b, text []byte) []byte {
	const hex = "0123456789ABCDEF"
	b = append(b, '"')
	for _, c := range text {
		switch at := bytes.IndexByte([]byte("\"\\\b\t\n\f\r"), c); {
		case at >= 0:
			b = append(b, '\\', "\"\\btnfr"[at])
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
