package source

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
)

// javaInt reads what Java's Integer.valueOf and Long.valueOf read: a sign, and digits.
func javaInt(text string, bits int) (int64, error) {
	n, err := strconv.ParseInt(text, 10, bits)
	if err != nil || strings.IndexByte(text, '_') >= 0 {
		return 0, fmt.Errorf("For input string: %q", text) //nolint:revive,staticcheck // the original's text
	}
	return n, nil
}

// javaFloat reads what Java's Double.valueOf and Float.valueOf read: blanks around it, the names NaN and Infinity, a type
// letter at the end, digits with a binary exponent behind 0x.
func javaFloat(text string, bits int) (float64, error) {
	t := strings.Trim(text, "\x00\x01\x02\x03\x04\x05\x06\x07\x08\t\n\v\f\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f ")
	digits := strings.TrimLeft(t, "+-")
	if len(t)-len(digits) <= 1 && digits != "" {
		if digits == "NaN" || digits == "Infinity" {
			return strconv.ParseFloat(t, bits)
		}
		hex := len(digits) > 1 && (digits[1] == 'x' || digits[1] == 'X')
		if c := digits[len(digits)-1]; c == 'd' || c == 'D' || c == 'f' || c == 'F' {
			if !hex || strings.ContainsAny(digits, "pP") {
				t = t[:len(t)-1]
			}
		}
		// Go reads names and underscores that Java does not.
		plain := strings.Trim(digits, "0123456789.eE+-dDfF") == ""
		if plain || hex && !strings.Contains(t, "_") {
			v, err := strconv.ParseFloat(t, bits)
			if err == nil || isRange(err) { // Java gives infinities and zeros for what is too large or too small
				return v, nil
			}
		}
	}
	return 0, fmt.Errorf("For input string: %q", text) //nolint:revive,staticcheck // the original's text
}

func isRange(err error) bool {
	n, ok := err.(*strconv.NumError) //nolint:errorlint // ParseFloat gives this type
	return ok && n.Err == strconv.ErrRange
}

// appendDecimal appends an unscaled value to a decimal column, and null with an error when it has too many digits.
func appendDecimal(b array.Builder, v *big.Int) error {
	t, ok := b.Type().(arrow.DecimalType)
	if ok && v != nil && digitsOf(v) <= int(t.GetPrecision()) {
		switch b := b.(type) {
		case *array.Decimal128Builder:
			b.Append(decimal128.FromBigInt(v))
			return nil
		case *array.Decimal256Builder:
			b.Append(decimal256.FromBigInt(v))
			return nil
		}
	}
	b.AppendEmptyValue()
	return fmt.Errorf("the number does not fit %s", b.Type())
}

func digitsOf(v *big.Int) int {
	text := v.Text(10)
	return len(strings.TrimPrefix(text, "-"))
}

// The forms of moments and days that are read without a pattern, as Spark casts texts: parts at the end may be missing.
var (
	momentLayouts = []string{
		"2006-01-02T15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999Z07:00",
		"2006-01-02T15:04:05.999999999Z0700", "2006-01-02 15:04:05.999999999Z0700",
		"2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999",
		"2006-01-02T15:04", "2006-01-02 15:04",
		"2006-01-02", "2006-01", "2006", "2006-1-2", "2006-1-2 15:04:05.999999999", "2006-1-2T15:04:05.999999999",
		"2006-1-2 15:4:5.999999999", "2006-1-2T15:4:5.999999999", "2006-1-2 15:4:5.999999999Z07:00", "2006-1-2T15:4:5.999999999Z07:00", "2006-1-2 15:4", "2006-1-2T15:4",
		"2006-01-02 15:04:05.999999999 MST", "2006-01-02T15:04:05.999999999Z07", "2006-01-02 15:04:05.999999999Z07",
	}
	clockLayouts = []string{"15:04:05.999999999", "15:04"}
)

// parseMoment reads a moment, one without a zone as UTC.
func parseMoment(text string) (time.Time, error) {
	return parseAny(strings.TrimSpace(text), momentLayouts, "moment")
}

func parseAny(text string, layouts []string, what string) (time.Time, error) {
	for _, l := range layouts {
		if t, err := time.Parse(l, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no %s", text, what)
}

// parseDay reads a day as Spark casts texts to dates: year, year and month, or a day, whatever follows a T or a blank.
func parseDay(text string) (arrow.Date32, error) {
	day := strings.TrimSpace(text)
	if i := strings.IndexAny(day, "T "); i > 0 {
		day = day[:i]
	}
	t, err := parseAny(day, []string{"2006-01-02", "2006-1-2", "2006-01", "2006-1", "2006"}, "date")
	if err != nil {
		return 0, fmt.Errorf("%q is no date", text)
	}
	return arrow.Date32FromTime(t), nil
}

// ticks is a moment in units of a timestamp column. What is finer than the unit is cut.
func ticks(t time.Time, unit arrow.TimeUnit) arrow.Timestamp {
	switch unit {
	case arrow.Second:
		return arrow.Timestamp(t.Unix())
	case arrow.Millisecond:
		return arrow.Timestamp(t.UnixMilli())
	case arrow.Microsecond:
		return arrow.Timestamp(t.UnixMicro())
	}
	return arrow.Timestamp(t.UnixNano())
}
