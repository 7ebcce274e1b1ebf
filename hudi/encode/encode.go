// Package encode writes rows as text: JSON Lines, CSV, and tables for terminals. It is the one place that knows how a value of
// each type is written:
//
// Integers are numbers, 64-bit ones too. Floats and doubles are the shortest number that reads back equal; "NaN", "Infinity"
// and "-Infinity" are strings. A decimal is a string with its scale kept. A date is "2024-02-29", a timestamp with zone
// "2024-02-29T12:34:56.000123Z" with three digits for milliseconds, six for microseconds, nine for nanoseconds; a local
// timestamp is the same without Z; a time of day is "12:34:56.000123". Bytes are base64. A map is an object, or a list of
// {"key":…,"value":…} where keys are no strings; a struct is an object; null is null.
package encode

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/sluicelake/sluice/hudi/schema"
)

// ErrType is wrapped by errors about columns that have no text form.
var ErrType = errors.New("no text form")

// Style is a set of rules for values.
type Style uint8

const (
	// Plain is the form above.
	Plain Style = iota
	// Spark is what Spark writes by default, which the snapshot exporter promises: nulls of rows and structs are left out,
	// decimals are numbers (written plainly: 0.0000001, where Java may write 1E-7), doubles are Java's (1.0, 1.0E10),
	// timestamps have milliseconds, cut, and the offset of the zone, map keys are their internal text (days, microseconds).
	Spark
)

// Options of the writers.
type Options struct {
	Style Style
	// Zone of timestamps in Spark style; nil is UTC.
	Zone *time.Location
}

// appender appends the value at i; the value is not null.
type appender func(dst []byte, i int) []byte

// binder makes the appender of one array. It is compiled once per column and bound once per batch.
type binder func(arrow.Array) appender

// compiler makes binders for types. Texts come without quotes where bare is set (CSV, map keys, tables).
type compiler struct {
	Options
	bare bool
}

func (c *compiler) quote(b binder) binder {
	if c.bare {
		return b
	}
	return func(a arrow.Array) appender {
		inner := b(a)
		return func(dst []byte, i int) []byte {
			dst = append(dst, '"')
			dst = inner(dst, i)
			return append(dst, '"')
		}
	}
}

func (c *compiler) compile(dt arrow.DataType) (binder, error) {
	switch dt := dt.(type) {
	case *arrow.NullType:
		return func(arrow.Array) appender { return func(dst []byte, _ int) []byte { return append(dst, "null"...) } }, nil
	case *arrow.BooleanType:
		return func(a arrow.Array) appender {
			b := a.(*array.Boolean)
			return func(dst []byte, i int) []byte { return strconv.AppendBool(dst, b.Value(i)) }
		}, nil
	case *arrow.Int8Type:
		return integers[int8](), nil
	case *arrow.Int16Type:
		return integers[int16](), nil
	case *arrow.Int32Type:
		return integers[int32](), nil
	case *arrow.Int64Type:
		return integers[int64](), nil
	case *arrow.Uint8Type:
		return integers[uint8](), nil
	case *arrow.Uint16Type:
		return integers[uint16](), nil
	case *arrow.Uint32Type:
		return integers[uint32](), nil
	case *arrow.Uint64Type:
		return func(a arrow.Array) appender {
			v := a.(*array.Uint64).Uint64Values()
			return func(dst []byte, i int) []byte { return strconv.AppendUint(dst, v[i], 10) }
		}, nil
	case *arrow.Float32Type:
		return func(a arrow.Array) appender {
			v := a.(*array.Float32).Float32Values()
			return func(dst []byte, i int) []byte { return c.float(dst, float64(v[i]), 32) }
		}, nil
	case *arrow.Float64Type:
		return func(a arrow.Array) appender {
			v := a.(*array.Float64).Float64Values()
			return func(dst []byte, i int) []byte { return c.float(dst, v[i], 64) }
		}, nil
	case *arrow.StringType:
		return func(a arrow.Array) appender {
			s := a.(*array.String)
			return func(dst []byte, i int) []byte { return c.text(dst, s.Value(i)) }
		}, nil
	case *arrow.LargeStringType:
		return func(a arrow.Array) appender {
			s := a.(*array.LargeString)
			return func(dst []byte, i int) []byte { return c.text(dst, s.Value(i)) }
		}, nil
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.FixedSizeBinaryType:
		return c.quote(func(a arrow.Array) appender {
			v := a.(interface{ Value(int) []byte })
			return func(dst []byte, i int) []byte { return base64.StdEncoding.AppendEncode(dst, v.Value(i)) }
		}), nil
	case arrow.DecimalType:
		return c.decimal(dt)
	case *arrow.DictionaryType:
		return c.dictionary(dt)
	}
	if b := c.temporal(dt); b != nil {
		return c.quote(b), nil
	}
	return c.nested(dt)
}

func integers[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32]() binder {
	return func(a arrow.Array) appender {
		v := arrow.GetValues[T](a.Data(), 1)
		return func(dst []byte, i int) []byte { return strconv.AppendInt(dst, int64(v[i]), 10) }
	}
}

func (c *compiler) float(dst []byte, v float64, bits int) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		if c.bare {
			return schema.AppendJavaFloat(dst, v, bits)
		}
		return append(schema.AppendJavaFloat(append(dst, '"'), v, bits), '"')
	}
	if c.Style == Spark {
		return schema.AppendJavaFloat(dst, v, bits)
	}
	return appendShortest(dst, v, bits)
}

// appendShortest writes plain digits for usual magnitudes and an exponent without padding for others.
func appendShortest(dst []byte, v float64, bits int) []byte {
	if a := math.Abs(v); a == 0 || a >= 1e-6 && a < 1e21 {
		return strconv.AppendFloat(dst, v, 'f', -1, bits)
	}
	dst = strconv.AppendFloat(dst, v, 'e', -1, bits)
	if n := len(dst); dst[n-4] == 'e' && dst[n-2] == '0' { // e-09, e+05
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

func (c *compiler) text(dst []byte, s string) []byte {
	if c.bare {
		return append(dst, s...)
	}
	return appendString(dst, s)
}

const hexDigits = "0123456789ABCDEF"

// appendString writes a JSON string with the escapes that JSON demands and no others. What is no UTF-8 becomes U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		ch := s[i]
		if ch >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[start:i]...), "\uFFFD"...)
				i++
				start = i
				continue
			}
			i += n
			continue
		}
		if ch >= ' ' && ch != '"' && ch != '\\' {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		switch ch {
		case '"', '\\':
			dst = append(dst, '\\', ch)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[ch>>4], hexDigits[ch&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

func (c *compiler) decimal(dt arrow.DecimalType) (binder, error) {
	scale := dt.GetScale()
	var b binder
	switch dt.ID() {
	case arrow.DECIMAL128:
		b = func(a arrow.Array) appender {
			v := a.(*array.Decimal128)
			return func(dst []byte, i int) []byte {
				n := v.Value(i)
				if lo := int64(n.LowBits()); n.HighBits() == lo>>63 { // it fits into 64 bits
					return appendScaled(dst, lo, int(scale))
				}
				return schema.AppendDecimal(dst, n.BigInt(), scale)
			}
		}
	case arrow.DECIMAL256:
		b = func(a arrow.Array) appender {
			v := a.(*array.Decimal256)
			return func(dst []byte, i int) []byte { return schema.AppendDecimal(dst, v.Value(i).BigInt(), scale) }
		}
	default:
		return nil, fmt.Errorf("%w: %s", ErrType, dt)
	}
	if c.Style == Spark {
		return b, nil
	}
	return c.quote(b), nil
}

// appendScaled writes v / 10^scale with all digits of the scale.
func appendScaled(dst []byte, v int64, scale int) []byte {
	if scale <= 0 || scale > 40 {
		if scale == 0 {
			return strconv.AppendInt(dst, v, 10)
		}
		return schema.AppendDecimal(dst, bigInt(v), int32(scale))
	}
	u := uint64(v)
	if v < 0 {
		dst = append(dst, '-')
		u = -u
	}
	var buf [64]byte
	at := len(buf)
	for digits := 0; u > 0 || digits <= scale; digits++ {
		if digits == scale {
			at--
			buf[at] = '.'
		}
		at--
		buf[at] = byte('0' + u%10)
		u /= 10
	}
	return append(dst, buf[at:]...)
}

func (c *compiler) dictionary(dt *arrow.DictionaryType) (binder, error) {
	values, err := c.compile(dt.ValueType)
	if err != nil {
		return nil, err
	}
	return func(a arrow.Array) appender {
		d := a.(*array.Dictionary)
		inner := nullSafe(d.Dictionary(), values)
		return func(dst []byte, i int) []byte { return inner(dst, d.GetValueIndex(i)) }
	}, nil
}

// nullSafe writes null where the array is null.
func nullSafe(a arrow.Array, b binder) appender {
	inner := b(a)
	if a.NullN() == 0 && a.DataType().ID() != arrow.NULL {
		return inner
	}
	return func(dst []byte, i int) []byte {
		if a.IsNull(i) {
			return append(dst, "null"...)
		}
		return inner(dst, i)
	}
}
