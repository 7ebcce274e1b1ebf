package sparksql

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

const microsPerDay = 86400 * 1000000

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func timeOf(micros int64) time.Time {
	s := floorDiv(micros, 1000000)
	return time.Unix(s, (micros-s*1000000)*1000).UTC()
}

// daysOf is the day number of a date, and whether there is such a date.
func daysOf(year, month, day int) (int64, bool) {
	if month < 1 || month > 12 || day < 1 || day > 31 {
		return 0, false
	}
	t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if t.Day() != day || t.Year() != year {
		return 0, false
	}
	return floorDiv(t.Unix(), 86400), true
}

func yearText(y int) string {
	switch {
	case y < 0:
		return fmt.Sprintf("-%04d", -y)
	case y > 9999:
		return "+" + strconv.Itoa(y)
	}
	return fmt.Sprintf("%04d", y)
}

func dateText(days int64) string {
	t := time.Unix(days*86400, 0).UTC()
	return fmt.Sprintf("%s-%02d-%02d", yearText(t.Year()), t.Month(), t.Day())
}

// timestampText has as many fraction digits as it needs.
func timestampText(micros int64) string {
	t := timeOf(micros)
	s := fmt.Sprintf("%s-%02d-%02d %02d:%02d:%02d", yearText(t.Year()), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second())
	if us := t.Nanosecond() / 1000; us != 0 {
		s += strings.TrimRight(fmt.Sprintf(".%06d", us), "0")
	}
	return s
}

// trimAll drops white space and control characters, as Spark does before it reads a value.
func trimAll(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

// scanner reads a text from the left.
type scanner struct {
	s  string
	at int
}

func (r *scanner) done() bool { return r.at >= len(r.s) }

func (r *scanner) take(chars string) bool {
	if !r.done() && strings.IndexByte(chars, r.s[r.at]) >= 0 {
		r.at++
		return true
	}
	return false
}

// number reads low to high digits.
func (r *scanner) number(low, high int) (n int, ok bool) {
	from := r.at
	for !r.done() && r.at-from < high && r.s[r.at] >= '0' && r.s[r.at] <= '9' {
		n = n*10 + int(r.s[r.at]-'0')
		r.at++
	}
	return n, r.at-from >= low
}

// date reads yyyy, yyyy-m, yyyy-m-d; whole tells the last of these.
func (r *scanner) date() (days int64, whole, ok bool) {
	sign := 1
	if r.take("-") {
		sign = -1
	} else {
		r.take("+")
	}
	year, ok := r.number(4, 7)
	if !ok {
		return 0, false, false
	}
	month, day := 1, 1
	if r.take("-") {
		if month, ok = r.number(1, 2); !ok {
			return 0, false, false
		}
		if r.take("-") {
			if day, ok = r.number(1, 2); !ok {
				return 0, false, false
			}
			whole = true
		}
	}
	days, ok = daysOf(sign*year, month, day)
	return days, whole, ok
}

// parseDate reads a text as CAST(… AS DATE) does: yyyy, yyyy-[m]m, yyyy-[m]m-[d]d, the last one also before " …" and "T…".
func parseDate(s string) (days int64, ok bool) {
	r := &scanner{s: trimAll(s)}
	days, whole, ok := r.date()
	if !ok || !r.done() && (!whole || !r.take(" T")) {
		return 0, false
	}
	return days, true
}

// parseTimestamp reads a text as CAST(… AS TIMESTAMP) does: a date, then " " or "T" and h:m:s.fraction with a zone, UTC where
// there is none. zoned tells that there was one.
func parseTimestamp(s string) (micros int64, zoned, ok bool) {
	r := &scanner{s: trimAll(s)}
	days, whole, ok := r.date()
	if !ok {
		return 0, false, false
	}
	if r.done() {
		return days * microsPerDay, false, true
	}
	if !whole || !r.take(" T") {
		return 0, false, false
	}
	var clock [3]int
	for i := range clock {
		if i > 0 && !r.take(":") {
			break
		}
		if clock[i], ok = r.number(1, 2); !ok {
			if i == 0 && r.done() {
				break
			}
			return 0, false, false
		}
	}
	fraction := 0
	if r.take(".") {
		scale := 100000
		for !r.done() && r.s[r.at] >= '0' && r.s[r.at] <= '9' {
			fraction += int(r.s[r.at]-'0') * scale
			scale /= 10
			r.at++
		}
	}
	if clock[0] > 23 || clock[1] > 59 || clock[2] > 59 {
		return 0, false, false
	}
	local := days*microsPerDay + (int64(clock[0])*3600+int64(clock[1])*60+int64(clock[2]))*1000000 + int64(fraction)
	zone := strings.TrimSpace(r.s[r.at:])
	if zone == "" {
		return local, false, true
	}
	loc, ok := parseZone(zone)
	if !ok {
		return 0, false, false
	}
	return toUTC(local, loc), true, true
}

// toUTC reads a wall clock in a zone.
func toUTC(local int64, loc *time.Location) int64 {
	w := timeOf(local)
	t := time.Date(w.Year(), w.Month(), w.Day(), w.Hour(), w.Minute(), w.Second(), w.Nanosecond(), loc)
	return t.UnixMicro()
}

// fromUTC is the wall clock in a zone.
func fromUTC(micros int64, loc *time.Location) int64 {
	_, offset := timeOf(micros).In(loc).Zone()
	return micros + int64(offset)*1000000
}

// parseZone reads Z, UTC, +1, +01:30, GMT+1, Europe/Paris.
func parseZone(s string) (*time.Location, bool) {
	rest := s
	for _, prefix := range []string{"UTC", "GMT", "UT"} {
		if cut, ok := strings.CutPrefix(rest, prefix); ok && (cut == "" || cut[0] == '+' || cut[0] == '-') {
			rest = cut
			break
		}
	}
	if rest == "" || rest == "Z" {
		return time.UTC, true
	}
	if rest[0] != '+' && rest[0] != '-' {
		loc, err := time.LoadLocation(s)
		return loc, err == nil && s != "Local"
	}
	r := &scanner{s: rest, at: 1}
	h, ok := r.number(1, 2)
	if !ok {
		return nil, false
	}
	var m, sec int
	if colon := r.take(":"); colon || !r.done() {
		if m, ok = r.number(1, 2); !ok {
			return nil, false
		}
		if r.take(":") {
			if sec, ok = r.number(1, 2); !ok {
				return nil, false
			}
		}
	}
	if !r.done() || h > 18 || m > 59 || sec > 59 {
		return nil, false
	}
	offset := h*3600 + m*60 + sec
	if rest[0] == '-' {
		offset = -offset
	}
	return time.FixedZone(s, offset), true
}

// pattern is a compiled date pattern of Java's DateTimeFormatter, in English and UTC.
type pattern []patternItem

type patternItem struct {
	letter byte // 0: text
	count  int
	text   string
	inner  pattern // an optional part in [ ]
}

// The letters that both directions know; Spark refuses the others or they need what a timestamp in UTC hasn't.
const patternLetters = "GyuMLdDHhkKmsSaEQqXxZzVO"

func compilePattern(text string) (pattern, error) {
	p, rest, err := patternItems(text, false)
	if err == nil && rest != "" {
		err = fmt.Errorf("a ] without [")
	}
	if err != nil {
		return nil, fmt.Errorf("date pattern %q: %w", text, err)
	}
	return p, nil
}

func patternItems(s string, optional bool) (p pattern, rest string, err error) {
	literal := func(t string) {
		if n := len(p); n > 0 && p[n-1].letter == 0 && p[n-1].inner == nil {
			p[n-1].text += t
		} else {
			p = append(p, patternItem{text: t})
		}
	}
	for s != "" {
		c := s[0]
		switch {
		case c == '\'':
			end := 1
			var b strings.Builder
			closed := false
			for ; end < len(s); end++ {
				if s[end] == '\'' {
					if end+1 < len(s) && s[end+1] == '\'' {
						end++
					} else {
						closed = true
						break
					}
				}
				b.WriteByte(s[end])
			}
			if !closed {
				return nil, "", fmt.Errorf("a quote is not closed")
			}
			if end == 1 {
				b.WriteByte('\'')
			}
			literal(b.String())
			s = s[end+1:]
		case c == '[':
			inner, after, err := patternItems(s[1:], true)
			if err != nil {
				return nil, "", err
			}
			p = append(p, patternItem{inner: inner})
			s = after
		case c == ']':
			if !optional {
				return nil, s, nil
			}
			return p, s[1:], nil
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			n := 1
			for n < len(s) && s[n] == c {
				n++
			}
			if strings.IndexByte(patternLetters, c) < 0 || !letterFits(c, n) {
				return nil, "", fmt.Errorf("%s isn't known", s[:n])
			}
			p = append(p, patternItem{letter: c, count: n})
			s = s[n:]
		case c == '#' || c == '{' || c == '}':
			return nil, "", fmt.Errorf("%c is reserved", c)
		default:
			literal(s[:1])
			s = s[1:]
		}
	}
	if optional {
		return nil, "", fmt.Errorf("a [ is not closed")
	}
	return p, "", nil
}

func letterFits(c byte, n int) bool {
	switch c {
	case 'y', 'u':
		return n <= 6
	case 'M', 'L', 'E', 'Q', 'q', 'z', 'G':
		return n <= 4
	case 'D':
		return n <= 3
	case 'S':
		return n <= 9
	case 'a':
		return n == 1
	case 'X', 'x', 'Z':
		return n <= 5
	case 'V':
		return n == 2
	case 'O':
		return n == 1 || n == 4
	}
	return n <= 2
}

func (p pattern) format(micros int64) string {
	t := timeOf(micros)
	var b strings.Builder
	p.write(&b, t)
	return b.String()
}

func (p pattern) write(b *strings.Builder, t time.Time) {
	pad := func(v, n int) {
		var room [20]byte
		text := strconv.AppendInt(room[:0], int64(v), 10)
		if v < 0 {
			b.WriteByte('-')
			text = text[1:]
			n--
		}
		for n -= len(text); n > 0; n-- {
			b.WriteByte('0')
		}
		b.Write(text)
	}
	for _, it := range p {
		switch it.letter {
		case 0:
			b.WriteString(it.text)
			it.inner.write(b, t)
		case 'G':
			b.WriteString(map[bool]string{true: "Anno Domini", false: "AD"}[it.count == 4])
		case 'y', 'u':
			switch {
			case it.count == 2:
				pad(((t.Year()%100)+100)%100, 2)
			case t.Year() > 9999 && it.count >= 4 && it.count < 5:
				b.WriteString("+" + strconv.Itoa(t.Year()))
			default:
				pad(t.Year(), it.count)
			}
		case 'M', 'L':
			switch it.count {
			case 3:
				b.WriteString(t.Month().String()[:3])
			case 4:
				b.WriteString(t.Month().String())
			default:
				pad(int(t.Month()), it.count)
			}
		case 'd':
			pad(t.Day(), it.count)
		case 'D':
			pad(t.YearDay(), it.count)
		case 'H':
			pad(t.Hour(), it.count)
		case 'k':
			pad((t.Hour()+23)%24+1, it.count)
		case 'K':
			pad(t.Hour()%12, it.count)
		case 'h':
			pad((t.Hour()+11)%12+1, it.count)
		case 'm':
			pad(t.Minute(), it.count)
		case 's':
			pad(t.Second(), it.count)
		case 'S':
			b.WriteString(fmt.Sprintf("%09d", t.Nanosecond())[:it.count])
		case 'a':
			b.WriteString(map[bool]string{true: "AM", false: "PM"}[t.Hour() < 12])
		case 'E':
			if it.count == 4 {
				b.WriteString(t.Weekday().String())
			} else {
				b.WriteString(t.Weekday().String()[:3])
			}
		case 'Q', 'q':
			q := (int(t.Month())-1)/3 + 1
			switch it.count {
			case 3:
				fmt.Fprintf(b, "Q%d", q)
			case 4:
				b.WriteString([]string{"1st", "2nd", "3rd", "4th"}[q-1] + " quarter")
			default:
				pad(q, it.count)
			}
		case 'X':
			b.WriteByte('Z')
		case 'x':
			b.WriteString([]string{"+00", "+0000", "+00:00", "+0000", "+00:00"}[it.count-1])
		case 'Z':
			b.WriteString([]string{"+0000", "+0000", "+0000", "GMT", "Z"}[it.count-1])
		case 'z':
			b.WriteString(map[bool]string{true: "Coordinated Universal Time", false: "UTC"}[it.count == 4])
		case 'V':
			b.WriteString("UTC")
		case 'O':
			b.WriteString("GMT")
		}
	}
}

// fields are what a text says of a time.
type fields struct {
	year, month, day, yearDay, hour, hour12, minute, second, nano int
	half                                                          int // 1 AM, 2 PM
	loc                                                           *time.Location
}

// parse reads a whole text by the pattern; what the pattern leaves out is 1970-01-01 00:00.
func (p pattern) parse(s string) (micros int64, ok bool) {
	f := fields{year: 1970, month: 1, day: 1, yearDay: -1, hour: -1, hour12: -1}
	r := &scanner{s: s}
	if !p.read(r, &f) || !r.done() {
		return 0, false
	}
	if f.hour < 0 {
		f.hour = 0
		if f.hour12 >= 0 {
			if f.half == 0 {
				return 0, false
			}
			f.hour = f.hour12%12 + 12*(f.half-1)
		}
	}
	var days int64
	if f.yearDay > 0 {
		if days, ok = daysOf(f.year, 1, 1); ok {
			days += int64(f.yearDay - 1)
			ok = timeOf(days*microsPerDay).Year() == f.year
		}
	} else {
		days, ok = daysOf(f.year, f.month, f.day)
	}
	if !ok || f.hour > 23 || f.minute > 59 || f.second > 59 {
		return 0, false
	}
	micros = days*microsPerDay + int64(f.hour*3600+f.minute*60+f.second)*1000000 + int64(f.nano/1000)
	if f.loc != nil {
		micros = toUTC(micros, f.loc)
	}
	return micros, true
}

// width of a number in a text: fixed ones give room to a longer one before them.
func (it patternItem) width() (low, high int) {
	switch it.letter {
	case 'y', 'u':
		if it.count == 2 || it.count >= 4 {
			return it.count, it.count
		}
		return it.count, 7
	case 'S':
		return 1, it.count
	case 'M', 'L', 'd', 'H', 'k', 'K', 'h', 'm', 's':
		if it.count == 1 {
			return 1, 2
		}
		return it.count, it.count
	case 'D':
		return it.count, 3
	}
	return 0, 0
}

func (p pattern) read(r *scanner, f *fields) bool {
	for i, it := range p {
		if it.letter == 0 {
			if it.inner != nil {
				from, saved := r.at, *f
				if !it.inner.read(r, f) {
					r.at, *f = from, saved
				}
				continue
			}
			if end := r.at + len(it.text); end > len(r.s) || !strings.EqualFold(r.s[r.at:end], it.text) {
				return false
			}
			r.at += len(it.text)
			continue
		}
		if low, high := it.width(); high > 0 && (it.letter != 'M' && it.letter != 'L' || it.count < 3) {
			if low != high && i+1 < len(p) && p[i+1].letter != 0 { // leave the digits of fixed numbers behind it
				digits := 0
				for r.at+digits < len(r.s) && r.s[r.at+digits] >= '0' && r.s[r.at+digits] <= '9' {
					digits++
				}
				for _, after := range p[i+1:] {
					l, h := after.width()
					if l != h || h == 0 {
						break
					}
					digits -= h
				}
				high = max(min(high, digits), low)
			}
			from := r.at
			n, ok := r.number(low, high)
			if !ok || !f.set(it, n, r.at-from) {
				return false
			}
			continue
		}
		if !f.readName(it, r) {
			return false
		}
	}
	return true
}

func (f *fields) set(it patternItem, n, digits int) bool {
	switch it.letter {
	case 'y', 'u':
		if it.count == 2 {
			n += 2000
		}
		f.year = n
	case 'M', 'L':
		f.month = n
		return n >= 1 && n <= 12
	case 'd':
		f.day = n
		return n >= 1 && n <= 31
	case 'D':
		f.yearDay = n
		return n >= 1 && n <= 366
	case 'H':
		f.hour = n
		return n <= 23
	case 'k':
		f.hour = n % 24
		return n >= 1 && n <= 24
	case 'K':
		f.hour12 = n
		return n <= 11
	case 'h':
		f.hour12 = n % 12
		return n >= 1 && n <= 12
	case 'm':
		f.minute = n
		return n <= 59
	case 's':
		f.second = n
		return n <= 59
	case 'S':
		for ; digits < 9; digits++ {
			n *= 10
		}
		f.nano = n
	}
	return true
}

func (f *fields) readName(it patternItem, r *scanner) bool {
	one := func(names ...string) int {
		for i, n := range names {
			if end := r.at + len(n); end <= len(r.s) && strings.EqualFold(r.s[r.at:end], n) {
				r.at = end
				return i
			}
		}
		return -1
	}
	switch it.letter {
	case 'M', 'L':
		names := make([]string, 12)
		for i := range names {
			names[i] = time.Month(i + 1).String()
			if it.count == 3 {
				names[i] = names[i][:3]
			}
		}
		i := one(names...)
		f.month = i + 1
		return i >= 0
	case 'E':
		names := make([]string, 7)
		for i := range names {
			names[i] = time.Weekday(i).String()
			if it.count < 4 {
				names[i] = names[i][:3]
			}
		}
		return one(names...) >= 0
	case 'a':
		i := one("AM", "PM")
		f.half = i + 1
		return i >= 0
	case 'G':
		return one("Anno Domini", "AD") >= 0
	case 'X', 'x', 'Z', 'z', 'V', 'O':
		end := r.at
		for end < len(r.s) && r.s[end] != ' ' && r.s[end] != ']' && r.s[end] != ')' {
			end++
		}
		text := r.s[r.at:end]
		if it.letter == 'X' && (text == "Z" || text == "z") {
			text = "UTC"
		} else if strings.IndexByte("XxZ", it.letter) >= 0 && it.count < 4 && (text == "" || text[0] != '+' && text[0] != '-') {
			return false
		}
		loc, ok := parseZone(text)
		f.loc = loc
		r.at = end
		return ok
	}
	return false
}
