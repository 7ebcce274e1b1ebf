package keygen

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// parseError is a text that gives no instant.
type parseError struct {
	class   string // the reference's exception
	message string
}

func (e *parseError) Error() string { return e.message }

// field is what a parsed number stands for. The order is that in which the reference sets fields: the longest range first,
// then the longest duration.
type field uint8

const (
	fEra field = iota
	fCentury
	fYear
	fYearOfEra
	fWeekyear
	fMonth
	fWeek
	fDayOfYear
	fDayOfMonth
	fDayOfWeek
	fHalfday
	fHour
	fClockHour
	fHourOfHalf
	fClockHourOfHalf
	fMinute
	fSecond
	fMilli
)

// ranks puts fields that the reference sorts alike on one step.
var ranks = [...]uint8{fEra: 0, fCentury: 1, fYear: 2, fYearOfEra: 2, fWeekyear: 2, fMonth: 3, fWeek: 4, fDayOfYear: 5, fDayOfMonth: 6,
	fDayOfWeek: 7, fHalfday: 8, fHour: 9, fClockHour: 9, fHourOfHalf: 10, fClockHourOfHalf: 10, fMinute: 11, fSecond: 12, fMilli: 13}

var fieldNames = [...]string{"era", "centuryOfEra", "year", "yearOfEra", "weekyear", "monthOfYear", "weekOfWeekyear", "dayOfYear",
	"dayOfMonth", "dayOfWeek", "halfdayOfDay", "hourOfDay", "clockhourOfDay", "hourOfHalfday", "clockhourOfHalfday", "minuteOfHour",
	"secondOfMinute", "millisOfSecond"}

type saved struct {
	field field
	value int64
}

// bucket holds what was read from a text.
type bucket struct {
	fields []saved
	room   [16]saved
	zone   *zone // from the text
	fail   error // a number that Java can't hold
}

func (b *bucket) reset() { b.fields, b.zone, b.fail = b.room[:0], nil, nil }

func (b *bucket) save(f field, v int64) { b.fields = append(b.fields, saved{f, v}) }

// match reads the whole text and reports how far it got; ok when all of it fits the pattern's shape. Values are not
// checked yet.
func (p *pattern) match(b *bucket, text string, year int64) (pos int, ok bool) {
	b.reset()
	for i := range p.parts {
		n := p.parts[i].read(b, text[pos:], year)
		if n < 0 || b.fail != nil {
			return pos, false
		}
		pos += n
	}
	return pos, pos == len(text)
}

// read gives the number of bytes that the part takes, -1 when the text doesn't fit.
func (e *part) read(b *bucket, text string, year int64) int {
	switch e.letter {
	case 0:
		if !hasPrefixFold(text, e.literal) {
			return -1
		}
		return len(e.literal)
	case 'G':
		return readName(b, fEra, text, [][2]string{{"BC", "BCE"}, {"AD", "CE"}}, 0)
	case 'a':
		return readName(b, fHalfday, text, [][2]string{{"AM", "AM"}, {"PM", "PM"}}, 0)
	case 'E':
		return readNames(b, fDayOfWeek, text, dayNames[:])
	case 'M':
		if e.min > 2 {
			return readNames(b, fMonth, text, monthNames[:])
		}
		return e.readNumber(b, fMonth, text)
	case 'S':
		return e.readFraction(b, text)
	case 'Z':
		if e.min > 2 {
			return readZoneID(b, text)
		}
		return readOffset(b, text)
	case 'z':
		if !e.prefersShort() {
			return -1 // long zone names are never read
		}
		return readZoneName(b, text)
	}
	f := numberFields[e.letter]
	if e.two {
		return e.readTwoDigits(b, f, text, year)
	}
	return e.readNumber(b, f, text)
}

var numberFields = [128]field{'C': fCentury, 'y': fYear, 'Y': fYearOfEra, 'x': fWeekyear, 'd': fDayOfMonth, 'D': fDayOfYear, 'w': fWeek,
	'e': fDayOfWeek, 'H': fHour, 'k': fClockHour, 'K': fHourOfHalf, 'h': fClockHourOfHalf, 'm': fMinute, 's': fSecond}

func isDigit(text string, i int) bool { return i < len(text) && text[i] >= '0' && text[i] <= '9' }

// readNumber takes up to max digits; a sign doesn't count.
func (e *part) readNumber(b *bucket, f field, text string) int {
	start, negative := 0, false
	if e.signed && e.max > 0 && len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		if e.max < 2 || !isDigit(text, 1) {
			return -1
		}
		negative, start = text[0] == '-', 1
	}
	end, v := start, int64(0)
	for end < start+e.max && isDigit(text, end) {
		if v < math.MaxInt64/20 {
			v = v*10 + int64(text[end]-'0')
		}
		end++
	}
	if end == start {
		return -1
	}
	if negative {
		v = -v
	}
	if v > math.MaxInt32 || v < math.MinInt32 {
		b.fail = &parseError{classNumber, "For input string: \"" + text[:end] + "\""}
	}
	b.save(f, v)
	return end
}

// readTwoDigits reads exactly two digits into the window of 80 years back and 19 years on; where no number follows, any
// other length is taken as it is.
func (e *part) readTwoDigits(b *bucket, f field, text string, year int64) int {
	if e.lenient {
		start, negative := 0, false
		if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
			negative, start = text[0] == '-', 1
		}
		end, v := start, int64(0)
		for isDigit(text, end) {
			if v < math.MaxInt64/20 {
				v = v*10 + int64(text[end]-'0')
			}
			end++
		}
		if end == start {
			return -1
		}
		if start == 1 || end != 2 {
			if negative {
				v = -v
			}
			if v > math.MaxInt32 || v < math.MinInt32 {
				b.fail = &parseError{classNumber, "For input string: \"" + text[:end] + "\""}
			}
			b.save(f, v)
			return end
		}
	}
	if !isDigit(text, 0) || !isDigit(text, 1) {
		return -1
	}
	v := int64(text[0]-'0')*10 + int64(text[1]-'0')
	low := year - 80
	t := low % 100
	v += low - t
	if v < low {
		v += 100
	}
	b.save(f, v)
	return 2
}

// readFraction takes up to max digits; what lies beyond milliseconds is dropped.
func (e *part) readFraction(b *bucket, text string) int {
	n, v, unit := 0, int64(0), int64(100)
	for n < e.max && isDigit(text, n) {
		v += int64(text[n]-'0') * unit
		unit /= 10
		n++
	}
	if n == 0 {
		return -1
	}
	b.save(fMilli, v)
	return n
}

// readNames reads a long or a short English name, the longest that fits.
func readNames(b *bucket, f field, text string, names []string) int {
	for i, name := range names {
		if n := prefixCase(text, name); n > 0 {
			b.save(f, int64(i)+1)
			return n
		}
	}
	for i, name := range names {
		if n := prefixCase(text, name[:3]); n > 0 {
			b.save(f, int64(i)+1)
			return n
		}
	}
	return -1
}

func readName(b *bucket, f field, text string, names [][2]string, first int64) int {
	for _, form := range [2]int{1, 0} {
		for i, n := range names {
			if l := prefixCase(text, n[form]); l > 0 {
				b.save(f, int64(i)+first)
				return l
			}
		}
	}
	return -1
}

// prefixCase: names are read as they are, in lower case and in upper case, but not in mixed case.
func prefixCase(text, name string) int {
	if len(text) < len(name) {
		return -1
	}
	head := text[:len(name)]
	if head == name || hasPrefixFold(head, name) && (head == strings.ToUpper(name) || head == strings.ToLower(name)) {
		return len(name)
	}
	return -1
}

// readOffset reads Z, +hh, +hhmm, +hh:mm, seconds and a fraction of them.
func readOffset(b *bucket, text string) int {
	if text != "" && lower(text[0]) == 'z' {
		b.zone = fixedOrUTC(0)
		return 1
	}
	if len(text) < 2 || text[0] != '+' && text[0] != '-' {
		return -1
	}
	pos := 1
	two := func(limit int64) (int64, bool) {
		if !isDigit(text, pos) || !isDigit(text, pos+1) {
			return 0, false
		}
		v := int64(text[pos]-'0')*10 + int64(text[pos+1]-'0')
		pos += 2
		return v, v <= limit
	}
	hours, ok := two(23)
	if !ok {
		return -1
	}
	ms := hours * fineHour
	colon := pos < len(text) && text[pos] == ':'
	for _, unit := range [2]int64{fineMinute, 1000} {
		if colon {
			if pos >= len(text) || text[pos] != ':' {
				break
			}
			pos++
		} else if !isDigit(text, pos) {
			return b.offset(text, ms, pos)
		}
		v, ok := two(59)
		if !ok {
			return -1
		}
		ms += v * unit
		if unit == 1000 {
			return readOffsetFraction(b, text, ms, pos, colon)
		}
	}
	return b.offset(text, ms, pos)
}

func readOffsetFraction(b *bucket, text string, ms int64, pos int, colon bool) int {
	if pos >= len(text) {
		return b.offset(text, ms, pos)
	}
	if colon {
		if text[pos] != '.' && text[pos] != ',' {
			return b.offset(text, ms, pos)
		}
		pos++
		if !isDigit(text, pos) {
			return -1
		}
	}
	for unit := int64(100); unit > 0 && isDigit(text, pos); unit /= 10 {
		ms += int64(text[pos]-'0') * unit
		pos++
	}
	return b.offset(text, ms, pos)
}

func (b *bucket) offset(text string, ms int64, pos int) int {
	if text[0] == '-' {
		ms = -ms
	}
	b.zone = fixedOrUTC(ms)
	return pos
}

func fixedOrUTC(ms int64) *zone {
	if ms == 0 {
		return utcZone
	}
	return fixedZone(ms)
}

// readZoneID reads the longest id that Joda knows. A slash among the first characters means that the id has one, so that
// in "UTC/2020" no id is found.
func readZoneID(b *bucket, text string) int {
	const longestArea = len("Antarctica/")
	withSlash := strings.IndexByte(text[:min(len(text), longestArea)], '/')
	for n := min(len(text), 40); n > 0; n-- {
		id := text[:n]
		if withSlash >= 0 && n <= withSlash {
			break
		}
		joda, ok := zoneIDs()[id]
		switch id {
		case "EST", "MST", "HST":
			joda = id // its own zone here, unlike in an option
		case "GMT":
			joda = "Etc/GMT"
		case "GMT+0", "GMT-0", "ROC":
			joda, ok = id, true
		default:
			// Java's other three-letter ids are none of Joda's.
			ok = ok && (joda == id || len(id) != 3 || isJodaShort(id))
		}
		if !ok {
			continue
		}
		z, err := loadZone(joda)
		if err != nil {
			continue
		}
		b.zone = z
		return n
	}
	return -1
}

func isJodaShort(id string) bool {
	switch id {
	case "UTC", "UCT", "GMT", "CET", "EET", "MET", "WET", "PRC", "ROK":
		return true
	}
	return false
}

// readZoneName reads the names of letter z.
func readZoneName(b *bucket, text string) int {
	for _, n := range zoneNames {
		if strings.HasPrefix(text, n.short) {
			z, err := loadZone(n.id)
			if err != nil {
				return -1
			}
			b.zone = z
			return len(n.short)
		}
	}
	for _, n := range [3]string{"UTC", "GMT", "UT"} {
		if strings.HasPrefix(text, n) {
			b.zone = utcZone
			return len(n)
		}
	}
	return -1
}

// instant turns what was read into epoch ms; in is the zone for texts without one.
func (b *bucket) instant(in *zone, s *span) (int64, error) {
	local, err := b.local()
	if err != nil {
		return 0, err
	}
	z := in
	if b.zone != nil {
		z = b.zone
		s = &span{}
	}
	ms, ok := z.toInstant(local, s)
	if !ok {
		return 0, &parseError{classInstant, "Illegal instant due to time zone offset transition (" + z.id + ")"}
	}
	return ms, nil
}

// local sets the fields one after the other on 1970-01-01, as the reference does; where the largest is a month, a week or a
// day, on 2000-01-01, so that 29 February works.
func (b *bucket) local() (int64, error) {
	if ms, ok := b.plain(); ok {
		return ms, nil
	}
	b.sort()
	if len(b.fields) > 0 && b.fields[0].field >= fMonth && b.fields[0].field <= fDayOfWeek {
		b.save(fYear, 2000)
		b.sort()
	}
	ms := int64(0)
	var err error
	// In the first round every field cuts off what is smaller, in the second only the last does: a field may move one that
	// was set before it.
	for _, f := range b.fields {
		if ms, err = f.set(ms); err != nil {
			return 0, err
		}
		ms = f.floor(ms)
	}
	for i, f := range b.fields {
		if ms, err = f.set(ms); err != nil {
			return 0, err
		}
		if i == len(b.fields)-1 {
			ms = f.floor(ms)
		}
	}
	return ms, nil
}

// sort is stable and short: patterns have few fields, mostly in order.
func (b *bucket) sort() {
	for i := 1; i < len(b.fields); i++ {
		for j := i; j > 0 && ranks[b.fields[j-1].field] > ranks[b.fields[j].field]; j-- {
			b.fields[j-1], b.fields[j] = b.fields[j], b.fields[j-1]
		}
	}
}

// plain is the short way for the usual: year, month, day and a time of day, each at most once and in range. Everything else
// is left to the long way, errors too.
func (b *bucket) plain() (int64, bool) {
	const date = 1<<fYear | 1<<fMonth | 1<<fDayOfMonth
	var seen uint32
	var v [fMilli + 1]int64
	for _, f := range b.fields {
		if seen>>f.field&1 != 0 {
			return 0, false
		}
		seen |= 1 << f.field
		v[f.field] = f.value
	}
	if seen&date != date || seen&^(date|1<<fHour|1<<fMinute|1<<fSecond|1<<fMilli) != 0 {
		return 0, false
	}
	y, m, d := v[fYear], v[fMonth], v[fDayOfMonth]
	if y < -1e6 || y > 1e6 || m < 1 || m > 12 || d < 1 || d > daysInMonth(y, m) || v[fHour] > 23 || v[fMinute] > 59 || v[fSecond] > 59 {
		return 0, false
	}
	return daysOf(y, m, d)*msPerDay + v[fHour]*fineHour + v[fMinute]*fineMinute + v[fSecond]*1000 + v[fMilli], true
}

// The years that epoch milliseconds reach.
const (
	minYear = -292275054
	maxYear = 292278993
)

func (f saved) check(low, high int64) error {
	if f.value >= low && f.value <= high {
		return nil
	}
	return &parseError{classFieldValue, fmt.Sprintf("Value %d for %s must be in the range [%d,%d]", f.value, fieldNames[f.field], low, high)}
}

// set gives the time with one field changed.
func (f saved) set(ms int64) (int64, error) {
	day := floorDiv(ms, msPerDay)
	inDay := ms - day*msPerDay
	year, month, dom := civil(day)
	switch f.field {
	case fEra:
		if (year > 0) != (f.value == 1) {
			return setYear(ms, -year), nil
		}
		return ms, nil
	case fCentury:
		if err := f.check(0, maxYear/100); err != nil {
			return 0, err
		}
		y := f.value*100 + abs(year)%100
		if year < 0 {
			y = -y
		}
		return setYear(ms, y), nil
	case fYear:
		return setYear(ms, f.value), f.check(minYear-1, maxYear+1)
	case fYearOfEra:
		y := f.value
		if year <= 0 {
			y = 1 - y
		}
		return setYear(ms, y), f.check(1, maxYear)
	case fWeekyear:
		return setWeekyear(ms, f.value), f.check(minYear, maxYear)
	case fMonth:
		if err := f.check(1, 12); err != nil {
			return 0, err
		}
		return daysOf(year, f.value, min(dom, daysInMonth(year, f.value)))*msPerDay + inDay, nil
	case fWeek:
		wy, week := weekYear(day, year)
		high := int64(52)
		if f.value > 52 {
			high = weeksInYear(wy)
		}
		return ms + (f.value-week)*7*msPerDay, f.check(1, high)
	case fDayOfYear:
		return ms + (f.value-dayOfYear(day, year))*msPerDay, f.check(1, daysInYear(year))
	case fDayOfMonth:
		return ms + (f.value-dom)*msPerDay, f.check(1, daysInMonth(year, month))
	case fDayOfWeek:
		return ms + (f.value-weekday(day))*msPerDay, f.check(1, 7)
	}
	return f.setTime(ms, inDay)
}

func (f saved) setTime(ms, inDay int64) (int64, error) {
	hour := inDay / fineHour
	v := f.value
	switch f.field {
	case fHalfday:
		return ms + (v-hour/12)*12*fineHour, nil
	case fHour:
		return ms + (v-hour)*fineHour, f.check(0, 23)
	case fClockHour:
		return ms + (v%24-hour)*fineHour, f.check(1, 24)
	case fHourOfHalf:
		return ms + (v-hour%12)*fineHour, f.check(0, 11)
	case fClockHourOfHalf:
		return ms + (v%12-hour%12)*fineHour, f.check(1, 12)
	case fMinute:
		return ms + (v-inDay/fineMinute%60)*fineMinute, f.check(0, 59)
	case fSecond:
		return ms + (v-inDay/1000%60)*1000, f.check(0, 59)
	}
	return ms + v - inDay%1000, nil
}

// setYear keeps the day of the year, as counted from 1 March in a leap year.
func setYear(ms, year int64) int64 {
	day := floorDiv(ms, msPerDay)
	inDay := ms - day*msPerDay
	from, _, _ := civil(day)
	doy := dayOfYear(day, from)
	if doy > 31+28 {
		switch {
		case isLeap(from) && !isLeap(year):
			doy--
		case !isLeap(from) && isLeap(year):
			doy++
		}
	}
	return (daysOf(year, 1, 1)+doy-1)*msPerDay + inDay
}

// setWeekyear keeps week and weekday as far as the year has them.
func setWeekyear(ms, weekyear int64) int64 {
	day := floorDiv(ms, msPerDay)
	inDay := ms - day*msPerDay
	year, _, _ := civil(day)
	from, week := weekYear(day, year)
	if from == weekyear {
		return ms
	}
	week = min(week, weeksInYear(from), weeksInYear(weekyear))
	return (firstWeek(weekyear)+(week-1)*7+weekday(day)-1)*msPerDay + inDay
}

// floor cuts off what is smaller than the field.
func (f saved) floor(ms int64) int64 {
	unit := int64(1)
	switch f.field {
	case fHalfday:
		unit = 12 * fineHour
	case fHour, fClockHour, fHourOfHalf, fClockHourOfHalf:
		unit = fineHour
	case fMinute:
		unit = fineMinute
	case fSecond:
		unit = 1000
	case fMilli:
	default:
		return f.floorDate(ms)
	}
	return floorDiv(ms, unit) * unit
}

func (f saved) floorDate(ms int64) int64 {
	day := floorDiv(ms, msPerDay)
	year, month, _ := civil(day)
	switch f.field {
	case fEra:
		if year > 0 {
			return daysOf(1, 1, 1) * msPerDay
		}
		return math.MinInt64
	case fCentury:
		c := abs(year) / 100 * 100
		if year < 0 {
			c = -c
		}
		day = daysOf(c, 1, 1)
	case fYear, fYearOfEra:
		day = daysOf(year, 1, 1)
	case fWeekyear:
		wy, _ := weekYear(day, year)
		day = firstWeek(wy)
	case fMonth:
		day = daysOf(year, month, 1)
	case fWeek:
		day -= weekday(day) - 1
	}
	return day * msPerDay
}

// formats is a list of input patterns; the first that fits the whole text wins (key generation 9.5).
type formats []*pattern

// parse gives the instant of a text and the zone that stood in it, if one did. in is the zone for texts without one. year
// is the current year, for two-digit ones.
func (l formats) parse(b *bucket, text string, in *zone, s *span, year int64) (ms int64, found *zone, err error) {
	furthest := 0
	for _, p := range l {
		pos, ok := p.match(b, text, year)
		switch {
		case b.fail != nil: // the reference gives up at once, other formats or not
			return 0, nil, b.fail
		case ok:
			ms, err = b.instant(in, s)
			return ms, b.zone, err
		}
		furthest = max(furthest, pos)
	}
	message := "Invalid format: " + strconv.Quote(text)
	switch {
	case furthest >= len(text):
		message += " is too short"
	case furthest > 0:
		message += " is malformed at " + strconv.Quote(text[furthest:])
	}
	return 0, nil, &parseError{classArgument, message}
}
