package keygen

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // zones must not depend on the machine
)

const msPerDay = 86400000

// zone is a time zone as Joda-Time sees it.
type zone struct {
	id    string
	loc   *time.Location // nil for a fixed offset
	fixed int64          // ms east of Greenwich
}

var (
	utcZone = &zone{id: "UTC"}
	utcJava = javaZone{zone: utcZone}
)

// offset of the zone at an instant, in ms.
func (z *zone) offset(ms int64) int64 {
	if z.loc == nil {
		return z.fixed
	}
	_, o := time.Unix(floorDiv(ms, 1000), 0).In(z.loc).Zone()
	return int64(o) * 1000
}

// span is a stretch of time in which a zone's offset doesn't change: the memory of one worker.
type span struct {
	start, end, offset int64 // ms
}

// at is offset with a memory.
func (z *zone) at(ms int64, s *span) int64 {
	if z.loc == nil {
		return z.fixed
	}
	if ms >= s.start && ms < s.end {
		return s.offset
	}
	t := time.Unix(floorDiv(ms, 1000), 0).In(z.loc)
	_, o := t.Zone()
	s.offset = int64(o) * 1000
	s.start, s.end = ms, ms+1
	// Beyond these years the bounds don't fit into milliseconds or the rules repeat for ever.
	if y := t.Year(); y > -200000000 && y < 200000000 {
		start, end := t.ZoneBounds()
		if !start.IsZero() {
			s.start = start.UnixMilli()
		}
		if !end.IsZero() {
			s.end = end.UnixMilli()
		}
	}
	return s.offset
}

// toInstant turns a local time into an instant. In an overlap the earlier instant is taken; inside a gap there is none.
func (z *zone) toInstant(local int64, s *span) (int64, bool) {
	if z.loc == nil {
		return local - z.fixed, true
	}
	// The offsets in force around local are those a day before and a day after: zones don't change twice in two days.
	first, second := z.at(local-msPerDay, s), z.at(local+msPerDay, s)
	found, best := false, int64(0)
	for _, o := range [2]int64{first, second} {
		if instant := local - o; z.at(instant, s) == o && (!found || instant < best) {
			found, best = true, instant
		}
	}
	return best, found
}

//go:embed zones.txt
var zoneList string

// zoneIDs maps the ids that Java 17 knows to those of Joda-Time (key generation 9.4).
var zoneIDs = sync.OnceValue(func() map[string]string {
	ids := make(map[string]string, 640)
	for line := range strings.Lines(zoneList) {
		id, joda, other := strings.Cut(strings.TrimSpace(line), " ")
		if !other {
			joda = id
		}
		ids[id] = joda
	}
	return ids
})

// resolveZone finds the zone that the reference uses for an id: Java's look-up, in which everything unknown silently is
// GMT, and Joda's reading of old three-letter ids. known is false where the id was not understood.
func resolveZone(id string) (z *zone, known bool, err error) {
	if joda, ok := zoneIDs()[id]; ok {
		z, err = loadZone(joda)
		return z, true, err
	}
	if ms, ok := customZone(id); ok {
		if ms == 0 {
			return utcZone, true, nil
		}
		return fixedZone(ms), true, nil
	}
	return utcZone, false, nil
}

// javaZone is a time zone as java.util.TimeZone sees it, which texts of timestamps are written in. It differs from Joda-Time's:
// three old ids are fixed offsets, and before 1900 the zone's present standard time counts.
type javaZone struct {
	*zone
	standard int64 // ms
}

const instantOf1900 = -2208988800000

func resolveJavaZone(id string) (javaZone, error) {
	switch id {
	case "EST", "MST", "HST":
		z, err := loadZone(id)
		return javaZone{z, z.fixed}, err
	}
	z, _, err := resolveZone(id)
	if err != nil {
		return javaZone{}, err
	}
	j := javaZone{z, z.fixed}
	if z.loc != nil {
		year := time.Now().Year()
		_, winter := time.Date(year, time.January, 1, 0, 0, 0, 0, z.loc).Zone()
		_, summer := time.Date(year, time.July, 1, 0, 0, 0, 0, z.loc).Zone()
		j.standard = int64(min(winter, summer)) * 1000 // Java knows no negative daylight saving
	}
	return j, nil
}

func (j javaZone) offset(ms int64) int64 {
	if ms < instantOf1900 {
		return j.standard
	}
	return j.zone.offset(ms)
}

func loadZone(joda string) (*zone, error) {
	switch joda {
	case "UTC":
		return utcZone, nil
	case "EST", "MST", "HST": // fixed, in Joda's own names
		return &zone{id: joda, fixed: map[string]int64{"EST": -5, "MST": -7, "HST": -10}[joda] * 3600000}, nil
	}
	loc, err := time.LoadLocation(joda)
	if err != nil {
		return nil, fmt.Errorf("time zone %s: %w", joda, err)
	}
	return &zone{id: joda, loc: loc}, nil
}

func fixedZone(ms int64) *zone {
	id := appendOffset(nil, ms, true)
	if rest := ms % 60000; rest != 0 {
		if rest < 0 {
			rest = -rest
		}
		id = append(id, ':')
		id = appendPadded(id, rest/1000, 2)
		if rest%1000 != 0 {
			id = append(id, '.')
			id = appendPadded(id, rest%1000, 3)
		}
	}
	return &zone{id: string(id), fixed: ms}
}

// customZone reads GMT, a sign, one or two digits of hours and two of minutes, the colon being optional.
func customZone(id string) (ms int64, ok bool) {
	if len(id) < 5 || id[:3] != "GMT" || id[3] != '+' && id[3] != '-' {
		return 0, false
	}
	hours, num, digits, colon := 0, 0, 0, false
	for _, c := range []byte(id[4:]) {
		switch {
		case c == ':':
			if colon || digits > 2 {
				return 0, false
			}
			hours, num, digits, colon = num, 0, 0, true
		case c >= '0' && c <= '9' && digits < 6:
			num = num*10 + int(c-'0')
			digits++
		default:
			return 0, false
		}
	}
	switch {
	case colon && digits != 2:
		return 0, false
	case !colon && digits <= 2:
		hours, num = num, 0
	case !colon:
		hours, num = num/100, num%100
	}
	if hours > 23 || num > 59 {
		return 0, false
	}
	ms = int64(hours*60+num) * 60000
	if id[3] == '-' {
		ms = -ms
	}
	return ms, true
}

// appendOffset writes +hhmm or +hh:mm.
func appendOffset(dst []byte, ms int64, colon bool) []byte {
	if ms < 0 {
		dst = append(dst, '-')
		ms = -ms
	} else {
		dst = append(dst, '+')
	}
	dst = appendPadded(dst, ms/3600000, 2)
	if colon {
		dst = append(dst, ':')
	}
	return appendPadded(dst, ms/60000%60, 2)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// civil turns days since 1970-01-01 into a date of the proleptic ISO calendar.
func civil(days int64) (year, month, day int64) {
	// Counted from 1 March of year 0 in cycles of 400 years, so that the leap day comes last.
	z := days + 719468
	era := floorDiv(z, 146097)
	inEra := z - era*146097
	yearOfEra := (inEra - inEra/1460 + inEra/36524 - inEra/146096) / 365
	dayOfYear := inEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	m := (5*dayOfYear + 2) / 153
	day = dayOfYear - (153*m+2)/5 + 1
	month = m + 3
	year = yearOfEra + era*400
	if month > 12 {
		month -= 12
		year++
	}
	return year, month, day
}

// daysOf is the way back.
func daysOf(year, month, day int64) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	era := floorDiv(year, 400)
	yearOfEra := year - era*400
	dayOfYear := (153*(month-3)+2)/5 + day - 1
	return era*146097 + yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear - 719468
}

func isLeap(y int64) bool { return y%4 == 0 && (y%100 != 0 || y%400 == 0) }

func daysInMonth(y, m int64) int64 {
	switch m {
	case 2:
		if isLeap(y) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

func daysInYear(y int64) int64 {
	if isLeap(y) {
		return 366
	}
	return 365
}
