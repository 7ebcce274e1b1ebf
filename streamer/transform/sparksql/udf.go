package sparksql

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/sluicelake/sluice/hudi/keygen"
	"github.com/sluicelake/sluice/hudi/schema"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// Function is a function that DuckDB has not, or not as Spark has it. The caller of Compile registers those that a plan names.
type Function struct {
	Name string
	// In and Out are among Boolean, Int, Long, Double, String, Binary, Date and Timestamp. Where an argument is null, so is the result.
	In  []Kind
	Out Kind
	// Call computes one value; false is null. Errors end the query. It may be called from several goroutines at once. The texts of
	// arguments are valid during the call alone.
	Call func(args []Arg) (Arg, bool, error)
}

// Arg is a value by kind: S of texts and bytes, F of doubles, I of all others (days of a date, microseconds of a timestamp).
type Arg struct {
	S string
	I int64
	F float64
}

// cache keeps what is compiled from constant texts: patterns and regular expressions.
type cache[T any] struct {
	m       sync.Map
	compile func(string) (T, error)
}

func (c *cache[T]) get(s string) (T, error) {
	if v, ok := c.m.Load(s); ok {
		return v.(T), nil
	}
	s = strings.Clone(s) // arguments live no longer than their vector, what is compiled keeps parts of them
	v, err := c.compile(s)
	if err == nil {
		c.m.Store(s, v)
	}
	return v, err
}

// Functions are all functions that plans may call, by name.
func Functions() map[string]Function {
	all := map[string]Function{}
	add := func(name string, out Kind, call func([]Arg) (Arg, bool, error), in ...Kind) {
		all[name] = Function{name, in, out, call}
	}
	pure := func(name string, out Kind, call func([]Arg) (Arg, bool), in ...Kind) {
		add(name, out, func(a []Arg) (Arg, bool, error) { v, ok := call(a); return v, ok, nil }, in...)
	}
	castFunctions(pure)
	textFunctions(pure)
	timeFunctions(add, pure)
	regexFunctions(add)
	return all
}

type pureAdder func(name string, out Kind, call func([]Arg) (Arg, bool), in ...Kind)

type adder func(name string, out Kind, call func([]Arg) (Arg, bool, error), in ...Kind)

func castFunctions(pure pureAdder) {
	pure("spk_boolean", Boolean, func(a []Arg) (Arg, bool) {
		switch strings.ToLower(trimAll(a[0].S)) {
		case "t", "true", "y", "yes", "1":
			return Arg{I: 1}, true
		case "f", "false", "n", "no", "0":
			return Arg{}, true
		}
		return Arg{}, false
	}, String)
	pure("spk_whole", Long, func(a []Arg) (Arg, bool) {
		n, ok := parseWhole(trimAll(a[0].S), int(a[1].I))
		return Arg{I: n}, ok
	}, String, Long)
	pure("spk_double", Double, func(a []Arg) (Arg, bool) { f, ok := parseDouble(a[0].S, 64); return Arg{F: f}, ok }, String)
	pure("spk_float", Double, func(a []Arg) (Arg, bool) { f, ok := parseDouble(a[0].S, 32); return Arg{F: f}, ok }, String)
	pure("spk_decimal", String, func(a []Arg) (Arg, bool) {
		s, ok := decimalText(trimAll(a[0].S), int(a[1].I), int(a[2].I))
		return Arg{S: s}, ok
	}, String, Long, Long)
	pure("spk_date", Date, func(a []Arg) (Arg, bool) { d, ok := parseDate(a[0].S); return Arg{I: d}, ok }, String)
	pure("spk_timestamp", Timestamp, func(a []Arg) (Arg, bool) { t, _, ok := parseTimestamp(a[0].S); return Arg{I: t}, ok }, String)
	pure("spk_double_text", String, func(a []Arg) (Arg, bool) { return Arg{S: string(keygen.AppendFloat(nil, a[0].F, 64))}, true }, Double)
	pure("spk_float_text", String, func(a []Arg) (Arg, bool) { return Arg{S: string(keygen.AppendFloat(nil, a[0].F, 32))}, true }, Double)
	pure("spk_decimal_text", String, func(a []Arg) (Arg, bool) { return Arg{S: scientific(a[0].S)}, true }, String)
	pure("spk_utf8", String, func(a []Arg) (Arg, bool) { return Arg{S: readable(a[0].S)}, true }, Binary)
	pure("spk_timestamp_text", String, func(a []Arg) (Arg, bool) { return Arg{S: timestampText(a[0].I)}, true }, Timestamp)
	pure("spk_date_text", String, func(a []Arg) (Arg, bool) { return Arg{S: dateText(a[0].I)}, true }, Date)
	pure("spk_seconds", Long, func(a []Arg) (Arg, bool) { return Arg{I: floorDiv(a[0].I, 1000000)}, true }, Timestamp)
	pure("spk_seconds_toward_zero", Long, func(a []Arg) (Arg, bool) { return Arg{I: a[0].I / 1000000}, true }, Timestamp)
	pure("spk_from_seconds_wrapped", Timestamp, func(a []Arg) (Arg, bool) { return Arg{I: a[0].I * 1000000}, true }, Long)
	pure("spk_from_seconds", Timestamp, func(a []Arg) (Arg, bool) {
		if a[0].I > math.MaxInt64/1000000 {
			return Arg{I: math.MaxInt64 - 1}, true
		} else if a[0].I < math.MinInt64/1000000 {
			return Arg{I: -math.MaxInt64 + 1}, true
		}
		return Arg{I: a[0].I * 1000000}, true
	}, Long)
	pure("spk_from_double", Timestamp, func(a []Arg) (Arg, bool) {
		if math.IsNaN(a[0].F) || math.IsInf(a[0].F, 0) {
			return Arg{}, false
		}
		return Arg{I: saturate(a[0].F * 1000000)}, true
	}, Double)
	pure("spk_double_long", Long, func(a []Arg) (Arg, bool) { return Arg{I: saturate(a[0].F)}, true }, Double)
	pure("spk_double_int", Long, func(a []Arg) (Arg, bool) {
		return Arg{I: min(max(saturate(a[0].F), math.MinInt32), math.MaxInt32)}, true
	}, Double)
	pure("spk_decimal_op", String, func(a []Arg) (Arg, bool) {
		s, ok := decimalOperation(a[0].S, a[1].S, a[2].S, int(a[3].I), int(a[4].I))
		return Arg{S: s}, ok
	}, String, String, String, Long, Long)
	pure("spk_round_whole", Long, func(a []Arg) (Arg, bool) { return Arg{I: roundWhole(a[0].S, int(a[1].I), a[2].I != 0)}, true }, String, Long, Long)
	pure("spk_round_decimal", String, func(a []Arg) (Arg, bool) {
		n, scale, ok := unscaled(a[0].S)
		digits := int(a[1].I)
		if !ok || digits >= scale {
			return a[0], ok
		}
		n = roundTo(n, tenTo(scale-digits), a[2].I != 0)
		return Arg{S: plainText(rescale(n, digits, max(digits, 0)), max(digits, 0))}, true
	}, String, Long, Long)
	pure("spk_shift_left", Long, func(a []Arg) (Arg, bool) { return Arg{I: a[0].I << (uint64(a[1].I) % uint64(a[2].I))}, true }, Long, Long, Long)
	pure("spk_shift_right", Long, func(a []Arg) (Arg, bool) { return Arg{I: a[0].I >> (uint64(a[1].I) % uint64(a[2].I))}, true }, Long, Long, Long)
	pure("spk_round", Double, func(a []Arg) (Arg, bool) { return Arg{F: roundDouble(a[0].F, int(a[1].I), a[2].I != 0)}, true }, Double, Long, Long)
}

// roundWhole rounds a whole number to tens, hundreds …: digits is negative. What doesn't fit wraps around.
func roundWhole(text string, digits int, even bool) int64 {
	n, _, ok := unscaled(text)
	if !ok {
		return 0
	}
	n = roundTo(n, tenTo(-digits), even)
	return int64(n.Mul(n, tenTo(-digits)).Uint64()) * int64(max(n.Sign(), -1))
}

// roundTo divides and rounds half up, or half to even.
func roundTo(n, by *big.Int, even bool) *big.Int {
	q := divideHalfUp(n, by)
	if even {
		whole, r := new(big.Int).QuoRem(n, by, new(big.Int))
		if new(big.Int).Lsh(r, 1).CmpAbs(by) == 0 {
			if q = whole; whole.Bit(0) == 1 {
				q.Add(q, big.NewInt(int64(n.Sign())))
			}
		}
	}
	return q
}

// readable is text that takes each byte that is none for U+FFFD.
func readable(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

// parseWhole reads [+-]digits[.digits] and drops the fraction; false when it doesn't fit.
func parseWhole(s string, bits int) (int64, bool) {
	digits := strings.TrimPrefix(s, "-")
	if len(digits) == len(s) {
		digits = strings.TrimPrefix(s, "+")
	}
	if digits == "" {
		return 0, false
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	if strings.Trim(whole+fraction, "0123456789") != "" {
		return 0, false
	}
	if whole == "" {
		return 0, true
	}
	if s[0] == '-' {
		whole = "-" + whole
	}
	n, err := strconv.ParseInt(whole, 10, bits)
	return n, err == nil
}

// parseDouble reads what Java's Double.parseDouble reads, and Spark's names of what is no number.
func parseDouble(s string, bits int) (float64, bool) {
	s = trimAll(s)
	switch strings.ToLower(s) {
	case "inf", "+inf", "infinity", "+infinity":
		return math.Inf(1), true
	case "-inf", "-infinity":
		return math.Inf(-1), true
	case "nan":
		return math.NaN(), true
	}
	if n := len(s); n > 1 && strings.IndexByte("dDfF", s[n-1]) >= 0 && !strings.HasPrefix(strings.TrimLeft(s, "+-"), "0x") {
		s = s[:n-1]
	}
	if s == "" || strings.ContainsAny(s, "_nNiI") {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, bits)
	if err != nil && !strings.Contains(err.Error(), "out of range") {
		return 0, false
	}
	return f, true
}

// saturate is a double as a long, as Java casts it: toward zero, the nearest one where it doesn't fit, NaN is 0.
func saturate(f float64) int64 {
	switch {
	case math.IsNaN(f):
		return 0
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	}
	return int64(f)
}

// unscaled reads a decimal text: digits and their scale.
func unscaled(s string) (n *big.Int, scale int, ok bool) {
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(strings.TrimPrefix(s[i+1:], "+")); err != nil || exponent > 10000 || exponent < -10000 {
			return nil, 0, false
		}
		mantissa = s[:i]
	}
	sign := ""
	if mantissa != "" && (mantissa[0] == '-' || mantissa[0] == '+') {
		if mantissa[0] == '-' {
			sign = "-"
		}
		mantissa = mantissa[1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if digits := whole + fraction; digits == "" || len(digits) > 10000 || strings.Trim(digits, "0123456789") != "" {
		return nil, 0, false
	}
	n, ok = new(big.Int).SetString(sign+whole+fraction, 10)
	return n, len(fraction) - exponent, ok
}

func tenTo(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// rescale rounds half up (away from zero) to a scale.
func rescale(n *big.Int, from, to int) *big.Int {
	if to >= from {
		return new(big.Int).Mul(n, tenTo(to-from))
	}
	return divideHalfUp(n, tenTo(from-to))
}

func divideHalfUp(n, by *big.Int) *big.Int {
	q, r := new(big.Int).QuoRem(n, by, new(big.Int))
	if r.Abs(r).Lsh(r, 1).CmpAbs(by) >= 0 {
		q.Add(q, big.NewInt(int64(n.Sign()*by.Sign())))
	}
	return q
}

func plainText(n *big.Int, scale int) string {
	return string(schema.AppendDecimal(nil, n, int32(scale)))
}

func fits(n *big.Int, precision int) bool { return n.CmpAbs(tenTo(precision)) < 0 }

// decimalText is a text as the text of a decimal(p,s); false when it is none or too large.
func decimalText(s string, precision, scale int) (string, bool) {
	n, from, ok := unscaled(s)
	if !ok {
		return "", false
	}
	n = rescale(n, from, scale)
	return plainText(n, scale), fits(n, precision)
}

// decimalOperation computes with exact digits and rounds once; false for a division by zero or what doesn't fit.
func decimalOperation(op, l, r string, precision, scale int) (string, bool) {
	a, s1, ok1 := unscaled(l)
	b, s2, ok2 := unscaled(r)
	if !ok1 || !ok2 {
		return "", false
	}
	s := max(s1, s2)
	var n *big.Int
	switch op {
	case "+", "-", "%", "div":
		a, b = rescale(a, s1, s), rescale(b, s2, s)
		switch op {
		case "+":
			n = a.Add(a, b)
		case "-":
			n = a.Sub(a, b)
		default:
			if b.Sign() == 0 {
				return "", false
			}
			if op == "div" {
				return new(big.Int).Quo(a, b).String(), true
			}
			n = new(big.Int).Rem(a, b)
		}
		n = rescale(n, s, scale)
	case "*":
		n = rescale(a.Mul(a, b), s1+s2, scale)
	case "/":
		if b.Sign() == 0 {
			return "", false
		}
		if shift := scale - s1 + s2; shift >= 0 {
			a.Mul(a, tenTo(shift))
		} else {
			b.Mul(b, tenTo(-shift))
		}
		n = divideHalfUp(a, b)
	default:
		return "", false
	}
	return plainText(n, scale), fits(n, precision)
}

// scientific is a plain decimal text as Java's BigDecimal.toString writes it: an exponent below 1E-6.
func scientific(s string) string {
	n, scale, ok := unscaled(s)
	if !ok {
		return s
	}
	digits := new(big.Int).Abs(n).String()
	exponent := len(digits) - 1 - scale
	if scale >= 0 && exponent >= -6 {
		return s
	}
	sign := ""
	if n.Sign() < 0 {
		sign = "-"
	}
	if len(digits) > 1 {
		digits = digits[:1] + "." + digits[1:]
	}
	return fmt.Sprintf("%s%sE%+d", sign, digits, exponent)
}

// roundDouble rounds the shortest decimal text of a double: half up, or half to even.
func roundDouble(f float64, digits int, even bool) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return f
	}
	n, scale, ok := unscaled(strconv.FormatFloat(f, 'g', -1, 64))
	if !ok || scale <= digits {
		return f
	}
	by := tenTo(scale - digits)
	q := roundTo(n, by, even)
	out, _ := strconv.ParseFloat(fmt.Sprintf("%sE%d", q, -digits), 64)
	return out
}

func textFunctions(pure pureAdder) {
	text := func(name string, call func(string) string) {
		pure(name, String, func(a []Arg) (Arg, bool) { return Arg{S: call(a[0].S)}, true }, String)
	}
	pure("spk_substring", String, func(a []Arg) (Arg, bool) { return Arg{S: substring(a[0].S, a[1].I, a[2].I)}, true }, String, Long, Long)
	pure("spk_substring_index", String, func(a []Arg) (Arg, bool) { return Arg{S: substringIndex(a[0].S, a[1].S, int(a[2].I))}, true }, String, String, Long)
	text("spk_upper", func(s string) string {
		if ascii(s) {
			return strings.ToUpper(s)
		}
		return cases.Upper(language.Und).String(s) // ß is SS, as in Java
	})
	text("spk_lower", func(s string) string {
		if ascii(s) {
			return strings.ToLower(s)
		}
		return cases.Lower(language.Und).String(s)
	})
	pure("spk_levenshtein", Int, func(a []Arg) (Arg, bool) { return Arg{I: levenshtein([]rune(a[0].S), []rune(a[1].S))}, true }, String, String)
	text("spk_initcap", func(s string) string {
		var b strings.Builder
		start := true
		for _, r := range strings.ToLower(s) {
			if start {
				b.WriteString(strings.ToTitle(string(r)))
			} else {
				b.WriteRune(r)
			}
			start = r == ' '
		}
		return b.String()
	})
	pure("spk_pad", String, func(a []Arg) (Arg, bool) { return Arg{S: pad(a[0].S, int(a[1].I), a[2].S, a[3].I != 0)}, true }, String, Long, String, Long)
	pure("spk_translate", String, func(a []Arg) (Arg, bool) { return Arg{S: translate(a[0].S, a[1].S, a[2].S)}, true }, String, String, String)
	pure("spk_trim", String, func(a []Arg) (Arg, bool) {
		s := a[0].S
		if a[2].I != 2 {
			s = strings.TrimLeft(s, a[1].S)
		}
		if a[2].I != 1 {
			s = strings.TrimRight(s, a[1].S)
		}
		return Arg{S: s}, true
	}, String, String, Long)
	pure("spk_locate", Long, func(a []Arg) (Arg, bool) { return Arg{I: locate(a[0].S, a[1].S, a[2].I)}, true }, String, String, Long)
	pure("spk_sha2", String, func(a []Arg) (Arg, bool) {
		b := []byte(a[0].S)
		switch a[1].I {
		case 0, 256:
			h := sha256.Sum256(b)
			return Arg{S: hex.EncodeToString(h[:])}, true
		case 224:
			h := sha256.Sum224(b)
			return Arg{S: hex.EncodeToString(h[:])}, true
		case 384:
			h := sha512.Sum384(b)
			return Arg{S: hex.EncodeToString(h[:])}, true
		case 512:
			h := sha512.Sum512(b)
			return Arg{S: hex.EncodeToString(h[:])}, true
		}
		return Arg{}, false
	}, Binary, Long)
	pure("spk_crc32", Long, func(a []Arg) (Arg, bool) { return Arg{I: int64(crc32.ChecksumIEEE([]byte(a[0].S)))}, true }, Binary)
	pure("spk_hash_int", Int, func(a []Arg) (Arg, bool) { return Arg{I: int64(murmurInt(int32(a[0].I), int32(a[1].I)))}, true }, Long, Int)
	pure("spk_hash_long", Int, func(a []Arg) (Arg, bool) { return Arg{I: int64(murmurLong(a[0].I, int32(a[1].I)))}, true }, Long, Int)
	pure("spk_hash_bytes", Int, func(a []Arg) (Arg, bool) { return Arg{I: int64(murmurBytes(a[0].S, int32(a[1].I)))}, true }, Binary, Int)
	pure("spk_json", String, func(a []Arg) (Arg, bool) { s, ok := jsonObject(a[0].S, a[1].S); return Arg{S: s}, ok }, String, String)
	pure("spk_conv", String, func(a []Arg) (Arg, bool) { s, ok := conv(a[0].S, int(a[1].I), int(a[2].I)); return Arg{S: s}, ok }, String, Long, Long)
	pure("spk_format_number", String, func(a []Arg) (Arg, bool) { s, ok := formatNumber(a[0].S, int(a[1].I)); return Arg{S: s}, ok }, String, Long)
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// levenshtein is how many characters have to change to make one text of the other.
func levenshtein(a, b []rune) int64 {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			next := min(row[j]+1, row[j+1]+1, diagonal+1)
			if a[i] == b[j] {
				next = min(next, diagonal)
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return int64(row[len(b)])
}

// substring counts characters from 1; a negative position counts from the end, 0 is 1.
func substring(s string, pos, length int64) string {
	if length <= 0 {
		return ""
	}
	n := int64(utf8.RuneCountInString(s))
	start := pos
	if pos > 0 {
		start = pos - 1
	} else if pos < 0 {
		start = n + pos
	}
	end := start + length
	if end < start {
		end = n
	}
	start, end = max(start, 0), min(end, n)
	if start >= end {
		return ""
	}
	if int64(len(s)) == n {
		return s[start:end]
	}
	return string([]rune(s)[start:end])
}

func substringIndex(s, delimiter string, count int) string {
	if delimiter == "" || count == 0 {
		return ""
	}
	if count > 0 {
		at := 0
		for ; count > 0; count-- {
			i := strings.Index(s[at:], delimiter)
			if i < 0 {
				return s
			}
			if count == 1 {
				return s[:at+i]
			}
			at += i + 1
		}
	}
	end := len(s)
	for ; count < 0; count++ {
		i := strings.LastIndex(s[:end], delimiter)
		if i < 0 {
			return s
		}
		if count == -1 {
			return s[i+len(delimiter):]
		}
		end = i + len(delimiter) - 1
	}
	return s
}

func pad(s string, n int, with string, left bool) string {
	if n <= 0 {
		return ""
	}
	runes := []rune(s)
	if len(runes) >= n {
		return string(runes[:n])
	}
	if with == "" {
		return s
	}
	fill := []rune(with)
	var b []rune
	for len(b) < n-len(runes) {
		b = append(b, fill[len(b)%len(fill)])
	}
	if left {
		return string(b) + s
	}
	return s + string(b)
}

func translate(s, from, to string) string {
	target := []rune(to)
	m := map[rune]rune{}
	for i, r := range []rune(from) {
		if _, ok := m[r]; ok {
			continue
		}
		m[r] = -1
		if i < len(target) {
			m[r] = target[i]
		}
	}
	return strings.Map(func(r rune) rune {
		if t, ok := m[r]; ok {
			return t
		}
		return r
	}, s)
}

// locate is the place of a part in a text, from 1, searched from a place on; 0 when it isn't there.
func locate(part, s string, from int64) int64 {
	runes := []rune(s)
	if from < 1 || from-1 > int64(len(runes)) {
		return 0
	}
	rest := string(runes[from-1:])
	i := strings.Index(rest, part)
	if i < 0 {
		return 0
	}
	return from + int64(utf8.RuneCountInString(rest[:i]))
}

func conv(s string, from, to int) (string, bool) {
	s = strings.TrimSpace(s)
	if s == "" || from < 2 || from > 36 || to > 36 || to < -36 || to > -2 && to < 2 {
		return "", false
	}
	negative := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	end := 0
	for end < len(s) {
		if _, err := strconv.ParseUint(s[end:end+1], from, 64); err != nil {
			break
		}
		end++
	}
	if end == 0 {
		return "0", true
	}
	n, err := strconv.ParseUint(s[:end], from, 64)
	if err != nil {
		n = math.MaxUint64
	}
	if negative {
		n = -n
	}
	if to < 0 {
		return strings.ToUpper(strconv.FormatInt(int64(n), -to)), true
	}
	return strings.ToUpper(strconv.FormatUint(n, to)), true
}

// formatNumber writes 1234.5 as 1,234.50, rounded half to even.
func formatNumber(s string, digits int) (string, bool) {
	switch s {
	case "NaN":
		return s, digits >= 0
	case "Infinity":
		return "∞", digits >= 0
	case "-Infinity":
		return "-∞", digits >= 0
	}
	n, scale, ok := unscaled(s)
	if !ok || digits < 0 || digits > 100 {
		return "", false
	}
	if scale > digits {
		n = roundTo(n, tenTo(scale-digits), true)
	} else {
		n = rescale(n, scale, digits)
	}
	text := plainText(n, digits)
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	whole, fraction, cut := strings.Cut(text, ".")
	var b strings.Builder
	for i, d := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	if cut {
		b.WriteString("." + fraction)
	}
	return sign + b.String(), true
}

// Murmur3 of 32 bits as Spark's hash() computes it.
func mix1(k uint32) uint32 { k *= 0xcc9e2d51; k = k<<15 | k>>17; return k * 0x1b873593 }

func mix2(h, k uint32) uint32 { h ^= k; h = h<<13 | h>>19; return h*5 + 0xe6546b64 }

func finish(h, n uint32) int32 {
	h ^= n
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	h ^= h >> 16
	return int32(h)
}

func murmurInt(v, seed int32) int32 { return finish(mix2(uint32(seed), mix1(uint32(v))), 4) }

func murmurLong(v int64, seed int32) int32 {
	h := mix2(uint32(seed), mix1(uint32(v)))
	return finish(mix2(h, mix1(uint32(uint64(v)>>32))), 8)
}

func murmurBytes(s string, seed int32) int32 {
	h := uint32(seed)
	i := 0
	for ; i+4 <= len(s); i += 4 {
		h = mix2(h, mix1(uint32(s[i])|uint32(s[i+1])<<8|uint32(s[i+2])<<16|uint32(s[i+3])<<24))
	}
	for ; i < len(s); i++ { // Spark mixes each byte that is left as an int of its own
		h = mix2(h, mix1(uint32(int32(int8(s[i])))))
	}
	return finish(h, uint32(len(s)))
}

func timeFunctions(add adder, pure pureAdder) {
	patterns := &cache[pattern]{compile: compilePattern}
	zones := &cache[string]{compile: func(s string) (string, error) {
		if _, ok := parseZone(s); !ok {
			return "", fmt.Errorf("time zone %q is not known", s)
		}
		return s, nil
	}}
	add("spk_date_format", String, func(a []Arg) (Arg, bool, error) {
		p, err := patterns.get(a[1].S)
		if err != nil {
			return Arg{}, false, err
		}
		return Arg{S: p.format(a[0].I)}, true, nil
	}, Timestamp, String)
	add("spk_parse", Timestamp, func(a []Arg) (Arg, bool, error) {
		p, err := patterns.get(a[1].S)
		if err != nil {
			return Arg{}, false, err
		}
		t, ok := p.parse(a[0].S)
		return Arg{I: t}, ok, nil
	}, String, String)
	shift := func(to bool) func([]Arg) (Arg, bool, error) {
		return func(a []Arg) (Arg, bool, error) {
			if _, err := zones.get(a[1].S); err != nil {
				return Arg{}, false, err
			}
			loc, _ := parseZone(a[1].S)
			if to {
				return Arg{I: toUTC(a[0].I, loc)}, true, nil
			}
			return Arg{I: fromUTC(a[0].I, loc)}, true, nil
		}
	}
	add("spk_to_utc", Timestamp, shift(true), Timestamp, String)
	add("spk_from_utc", Timestamp, shift(false), Timestamp, String)
	pure("spk_months_between", Double, func(a []Arg) (Arg, bool) { return Arg{F: monthsBetween(a[0].I, a[1].I, a[2].I != 0)}, true }, Timestamp, Timestamp, Boolean)
	pure("spk_next_day", Date, func(a []Arg) (Arg, bool) { d, ok := nextDay(a[0].I, a[1].S); return Arg{I: d}, ok }, Date, String)
}

func monthsBetween(a, b int64, round bool) float64 {
	x, y := timeOf(a), timeOf(b)
	months := float64((x.Year()-y.Year())*12 + int(x.Month()) - int(y.Month()))
	last := func(micros int64) bool { return timeOf(micros+microsPerDay).Day() == 1 }
	if x.Day() == y.Day() || last(a) && last(b) {
		return months
	}
	seconds := func(micros int64) int64 { return floorDiv(micros-floorDiv(micros, microsPerDay)*microsPerDay, 1000000) }
	diff := months + float64(int64(x.Day()-y.Day())*86400+seconds(a)-seconds(b))/(31*86400)
	if round {
		return math.Round(diff*1e8) / 1e8
	}
	return diff
}

func nextDay(days int64, name string) (int64, bool) {
	var index int
	switch strings.ToUpper(strings.TrimSpace(name)) {
	case "SU", "SUN", "SUNDAY":
		index = 0
	case "MO", "MON", "MONDAY":
		index = 1
	case "TU", "TUE", "TUESDAY":
		index = 2
	case "WE", "WED", "WEDNESDAY":
		index = 3
	case "TH", "THU", "THURSDAY":
		index = 4
	case "FR", "FRI", "FRIDAY":
		index = 5
	case "SA", "SAT", "SATURDAY":
		index = 6
	default:
		return 0, false
	}
	today := int(timeOf(days * microsPerDay).Weekday())
	return days + int64((index-today+6)%7+1), true
}

func regexFunctions(add adder) {
	compiled := &cache[*regexp.Regexp]{compile: compileRegex}
	add("spk_rlike", Boolean, func(a []Arg) (Arg, bool, error) {
		re, err := compiled.get(a[1].S)
		if err != nil {
			return Arg{}, false, err
		}
		if re.MatchString(a[0].S) {
			return Arg{I: 1}, true, nil
		}
		return Arg{}, true, nil
	}, String, String)
	add("spk_regexp_replace", String, func(a []Arg) (Arg, bool, error) {
		re, err := compiled.get(a[1].S)
		if err != nil {
			return Arg{}, false, err
		}
		s, err := replaceAll(re, a[0].S, a[2].S)
		return Arg{S: s}, true, err
	}, String, String, String)
	add("spk_regexp_extract", String, func(a []Arg) (Arg, bool, error) {
		re, err := compiled.get(a[1].S)
		if err != nil {
			return Arg{}, false, err
		}
		if a[2].I < 0 || int(a[2].I) > re.NumSubexp() {
			return Arg{}, false, fmt.Errorf("regexp_extract: the expression %q has no group %d", a[1].S, a[2].I)
		}
		m := re.FindStringSubmatchIndex(a[0].S)
		if i := 2 * a[2].I; m != nil && m[i] >= 0 {
			return Arg{S: a[0].S[m[i]:m[i+1]]}, true, nil
		}
		return Arg{}, true, nil
	}, String, String, Long)
}

// compileRegex reads a regular expression of Java. What Go's engine hasn't (look-around, back references, possessive
// quantifiers) is an error.
func compileRegex(s string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, fmt.Errorf("regular expression %q: %w (look-around and back references of Java are not supported)", s, err)
	}
	return re, nil
}

// checkRegex refuses a bad constant expression before anything runs.
func (c *compiler) checkRegex(v val, pos int) {
	if v.text != nil {
		if _, err := compileRegex(*v.text); err != nil {
			fail(pos, "%s", err)
		}
	}
}

// replaceAll replaces every match; $1 is a group and \ takes the next character as it is, as in Java.
func replaceAll(re *regexp.Regexp, s, with string) (string, error) {
	var b strings.Builder
	last := 0
	for _, m := range re.FindAllStringSubmatchIndex(s, -1) {
		b.WriteString(s[last:m[0]])
		last = m[1]
		for i := 0; i < len(with); i++ {
			switch {
			case with[i] == '\\' && i+1 < len(with):
				i++
				b.WriteByte(with[i])
			case with[i] == '$' && i+1 < len(with) && with[i+1] >= '0' && with[i+1] <= '9':
				i++
				group := int(with[i] - '0')
				if group > re.NumSubexp() {
					return "", fmt.Errorf("regexp_replace: the expression has no group %d", group)
				}
				for i+1 < len(with) && with[i+1] >= '0' && with[i+1] <= '9' && group*10+int(with[i+1]-'0') <= re.NumSubexp() {
					i++
					group = group*10 + int(with[i]-'0')
				}
				if m[2*group] >= 0 {
					b.WriteString(s[m[2*group]:m[2*group+1]])
				}
			case with[i] == '$':
				return "", fmt.Errorf("regexp_replace: a $ in the replacement needs a group's number, or a \\ before it")
			default:
				b.WriteByte(with[i])
			}
		}
	}
	b.WriteString(s[last:])
	return b.String(), nil
}
