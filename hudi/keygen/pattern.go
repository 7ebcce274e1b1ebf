package keygen

import (
	"strings"
	"unicode/utf8"
)

// pattern is a compiled date pattern of Joda-Time (key generation 9.6). It prints and parses; both are safe for concurrent
// use, as all state is with the caller.
type pattern struct {
	text  string
	parts []part
	// fine is the finest unit that the printed text depends on, in ms of local time; 0 when the text depends on the zone,
	// too. Two times in the same such unit print alike.
	fine int64
}

// part is one element of a pattern.
type part struct {
	letter  byte // 0 for literal text
	min     int  // least digits printed; number of letters
	max     int  // most digits read
	signed  bool
	two     bool // two-digit year
	lenient bool // two-digit year that reads other lengths as they are
	literal string
}

// patternError is a pattern that the reference refuses, or that Sluice can't print.
type patternError struct{ message string }

func (e *patternError) Error() string { return e.message }

// compilePattern reads a pattern. The error texts are those of the reference.
func compilePattern(text string) (*pattern, error) {
	if text == "" {
		return nil, &patternError{"Invalid pattern specification"}
	}
	tokens := splitPattern(text)
	p := &pattern{text: text, fine: msPerDay * 1e6}
	for i, token := range tokens {
		if token[0] == '\'' {
			if literal := token[1:]; literal != "" {
				p.parts = append(p.parts, part{literal: literal})
			}
			continue
		}
		numberNext := i+1 < len(tokens) && isNumber(tokens[i+1])
		e, fine, ok := compileField(token, numberNext)
		if !ok {
			return nil, &patternError{"Illegal pattern component: " + token}
		}
		if fine == 0 || p.fine == 0 {
			p.fine = 0
		} else {
			p.fine = min(p.fine, fine)
		}
		p.parts = append(p.parts, e)
	}
	if len(p.parts) == 0 {
		return nil, &patternError{"Both printing and parsing not supported"}
	}
	return p, nil
}

// splitPattern cuts a pattern into runs of one letter and literal texts; a literal carries a leading quote.
func splitPattern(text string) []string {
	var tokens []string
	for i := 0; i < len(text); {
		if isLetter(text[i]) {
			j := i + 1
			for j < len(text) && text[j] == text[i] {
				j++
			}
			tokens = append(tokens, text[i:j])
			i = j
			continue
		}
		var b strings.Builder
		b.WriteByte('\'')
		quoted := false
		for ; i < len(text); i++ {
			c := text[i]
			if c == '\'' {
				if i+1 < len(text) && text[i+1] == '\'' {
					b.WriteByte(c)
					i++
				} else {
					quoted = !quoted
				}
				continue
			}
			if !quoted && isLetter(c) {
				break
			}
			b.WriteByte(c)
		}
		tokens = append(tokens, b.String())
	}
	return tokens
}

func isLetter(c byte) bool { return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' }

// isNumber reports whether a run of letters reads digits, so that the field before it must not take more than its share.
func isNumber(token string) bool {
	return strings.IndexByte("cCxyYdhHmsSeDFwWkK", token[0]) >= 0 || token[0] == 'M' && len(token) <= 2
}

// Finest units of the fields, in ms of local time.
const (
	fineMinute = 60000
	fineHour   = 3600000
)

func compileField(token string, numberNext bool) (e part, fine int64, ok bool) {
	n := len(token)
	e = part{letter: token[0], min: n, max: n}
	fine = msPerDay
	switch token[0] {
	case 'G', 'E':
	case 'C':
		e.signed = true
	case 'x', 'y', 'Y':
		if n == 2 {
			e.two, e.lenient = true, !numberNext
			if token[0] == 'Y' {
				e.letter = 'y'
			}
			break
		}
		if !numberNext {
			e.max = max(9, n)
		}
		e.signed = token[0] != 'Y'
	case 'M':
		if n <= 2 {
			e.max = 2
		}
	case 'd', 'w':
		e.max = max(2, n)
	case 'D':
		e.max = max(3, n)
	case 'e':
	case 'a', 'H', 'k', 'K', 'h':
		e.max, fine = max(2, n), fineHour
	case 'm':
		e.max, fine = max(2, n), fineMinute
	case 's':
		e.max, fine = max(2, n), 1000
	case 'S':
		e.min, e.max, fine = min(n, 18), min(n, 18), 1
	case 'z', 'Z':
		fine = 0
	default:
		return e, 0, false
	}
	return e, fine, true
}

// prefersShort reports whether a text field is printed short.
func (e *part) prefersShort() bool { return e.min < 4 }

var (
	monthNames = [...]string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
	dayNames   = [...]string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}
)

// calendar is a local time taken apart, as far as a pattern asks.
type calendar struct {
	local            int64 // ms
	day              int64 // days since 1970-01-01
	inDay            int64 // ms
	year, month, dom int64
}

func (c *calendar) set(local int64) {
	day := floorDiv(local, msPerDay)
	c.local, c.inDay = local, local-day*msPerDay
	if day != c.day || c.month == 0 {
		c.day = day
		c.year, c.month, c.dom = civil(day)
	}
}

// weekday is 1 for Monday to 7 for Sunday.
func weekday(day int64) int64 { return day + 3 - floorDiv(day+3, 7)*7 + 1 }

// weekday of the local time. At the lower end of time the reference's subtraction overflows.
func (c *calendar) weekday() int64 {
	if ms := c.local; ms < 0 && ms-(msPerDay-1) > 0 {
		return weekday((ms - (msPerDay - 1)) / msPerDay)
	}
	return weekday(c.day)
}

// weekYear of the local time. At the ends of time the first week of a year overflows, and what the reference
// makes of it is part of its keys.
func (c *calendar) weekYear() (weekyear, week int64) {
	if c.year > minYear && c.year < maxYear {
		return weekYear(c.day, c.year)
	}
	const msPerWeek = 7 * msPerDay
	start := func(year int64) int64 { // of week 1, in ms that wrap around
		jan := daysOf(year, 1, 1) * msPerDay
		dow := weekday(floorDiv(jan, msPerDay))
		if dow > 4 {
			dow -= 7
		}
		return jan - (dow-1)*msPerDay
	}
	switch first, next := start(c.year), start(c.year+1); {
	case c.local < first:
		week = (first - start(c.year-1)) / msPerWeek
	case c.local >= next:
		week = 1
	default:
		week = (c.local-first)/msPerWeek + 1
	}
	shifted := c.local
	switch {
	case week == 1:
		shifted += msPerWeek
	case week > 51:
		shifted -= 2 * msPerWeek
	}
	weekyear, _, _ = civil(floorDiv(shifted, msPerDay))
	return weekyear, week
}

func dayOfYear(day, year int64) int64 { return day - daysOf(year, 1, 1) + 1 }

// firstWeek is the Monday of ISO week 1.
func firstWeek(year int64) int64 {
	fourth := daysOf(year, 1, 4)
	return fourth - weekday(fourth) + 1
}

func weekYear(day, year int64) (weekyear, week int64) {
	switch {
	case day >= firstWeek(year+1):
		year++
	case day < firstWeek(year):
		year--
	}
	return year, (day-firstWeek(year))/7 + 1
}

func weeksInYear(year int64) int64 { return (firstWeek(year+1) - firstWeek(year)) / 7 }

// print appends the text of an instant in a zone. It fails only on zone names (letter z) that Java takes from its locale
// data.
func (p *pattern) print(dst []byte, ms int64, z *zone, s *span, c *calendar) ([]byte, error) {
	offset := z.at(ms, s)
	local := ms + offset
	if (ms^local) < 0 && (ms^offset) >= 0 { // overflow: the reference goes back to UTC
		z, offset, local = utcZone, 0, ms
	}
	c.set(local)
	for i := range p.parts {
		e := &p.parts[i]
		switch e.letter {
		case 0:
			dst = append(dst, e.literal...)
		case 'z':
			name, ok := zoneName(z, offset, e.prefersShort())
			if !ok {
				return dst, &patternError{"pattern letter z of " + p.text + ": the name of zone " + z.id + " depends on the Java runtime; use Z, ZZ or ZZZ"}
			}
			dst = append(dst, name...)
		case 'Z':
			if e.min > 2 {
				dst = append(dst, z.id...)
			} else {
				dst = appendOffset(dst, offset, e.min == 2)
			}
		default:
			dst = e.print(dst, c)
		}
	}
	return dst, nil
}

func (e *part) print(dst []byte, c *calendar) []byte {
	switch e.letter {
	case 'G':
		if c.year > 0 {
			return append(dst, "AD"...)
		}
		return append(dst, "BC"...)
	case 'C':
		return appendPadded(dst, abs(c.year)/100, e.min)
	case 'y', 'Y', 'x':
		year := c.year
		switch e.letter {
		case 'x':
			year, _ = c.weekYear()
		case 'Y':
			if year <= 0 {
				year = 1 - year
			}
		}
		if e.two {
			return appendPadded(dst, abs(year)%100, 2)
		}
		return appendPadded(dst, year, e.min)
	case 'M':
		if e.min > 2 {
			return appendName(dst, monthNames[c.month-1], e.prefersShort())
		}
		return appendPadded(dst, c.month, e.min)
	case 'd':
		return appendPadded(dst, c.dom, e.min)
	case 'D':
		return appendPadded(dst, dayOfYear(c.day, c.year), e.min)
	case 'w':
		_, week := c.weekYear()
		return appendPadded(dst, week, e.min)
	case 'e':
		return appendPadded(dst, c.weekday(), e.min)
	case 'E':
		return appendName(dst, dayNames[c.weekday()-1], e.prefersShort())
	}
	return e.printTime(dst, c.inDay)
}

func (e *part) printTime(dst []byte, inDay int64) []byte {
	hour := inDay / fineHour
	switch e.letter {
	case 'a':
		if hour < 12 {
			return append(dst, "AM"...)
		}
		return append(dst, "PM"...)
	case 'H':
		return appendPadded(dst, hour, e.min)
	case 'k':
		return appendPadded(dst, (hour+23)%24+1, e.min)
	case 'K':
		return appendPadded(dst, hour%12, e.min)
	case 'h':
		return appendPadded(dst, (hour+11)%12+1, e.min)
	case 'm':
		return appendPadded(dst, inDay/fineMinute%60, e.min)
	case 's':
		return appendPadded(dst, inDay/1000%60, e.min)
	}
	return appendFraction(dst, inDay%1000, e.min)
}

// appendFraction writes n digits of a fraction of a second. The reference's numbers end at 15 digits, unless all are zero.
func appendFraction(dst []byte, ms int64, n int) []byte {
	if ms == 0 {
		for range n {
			dst = append(dst, '0')
		}
		return dst
	}
	digits := [3]byte{byte('0' + ms/100), byte('0' + ms/10%10), byte('0' + ms%10)}
	for i := range min(n, 15) {
		if i < 3 {
			dst = append(dst, digits[i])
		} else {
			dst = append(dst, '0')
		}
	}
	return dst
}

func appendName(dst []byte, name string, short bool) []byte {
	if short {
		name = name[:3]
	}
	return append(dst, name...)
}

func abs(v int64) int64 {
	if v < 0 {
		return -v
	}
	return v
}

// zoneName knows the names that don't differ between Java runtimes: UTC, fixed offsets and the zones of the United States
// whose short names the reference reads, too.
func zoneName(z *zone, offset int64, short bool) (string, bool) {
	if z.loc == nil {
		switch {
		case z.id == "UTC" && !short:
			return "Coordinated Universal Time", true
		case z.id == "EST" || z.id == "MST" || z.id == "HST":
			return "", false
		}
		return z.id, true
	}
	for _, n := range zoneNames {
		if n.id == z.id && n.offset == offset {
			if short {
				return n.short, true
			}
			return n.long, true
		}
	}
	return "", false
}

// zoneNames are the names that pattern letter z reads, besides UTC, UT and GMT.
var zoneNames = [...]struct {
	short, long, id string
	offset          int64
}{
	{"EST", "Eastern Standard Time", "America/New_York", -5 * fineHour},
	{"EDT", "Eastern Daylight Time", "America/New_York", -4 * fineHour},
	{"CST", "Central Standard Time", "America/Chicago", -6 * fineHour},
	{"CDT", "Central Daylight Time", "America/Chicago", -5 * fineHour},
	{"MST", "Mountain Standard Time", "America/Denver", -7 * fineHour},
	{"MDT", "Mountain Daylight Time", "America/Denver", -6 * fineHour},
	{"PST", "Pacific Standard Time", "America/Los_Angeles", -8 * fineHour},
	{"PDT", "Pacific Daylight Time", "America/Los_Angeles", -7 * fineHour},
}

// equalFold compares a literal as the reference does: unit by unit, upper and lower case alike.
func hasPrefixFold(text, prefix string) bool {
	if len(text) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if text[i] != prefix[i] {
			a, b := text[i], prefix[i]
			if a >= utf8.RuneSelf || b >= utf8.RuneSelf || lower(a) != lower(b) {
				return false
			}
		}
	}
	return true
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
