package orc

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // files name their writer's zone, and not every machine has the database
)

const (
	// epoch2015 is 2015-01-01 00:00:00 UTC in seconds: timestamps count from that moment, in the writer's zone.
	epoch2015 = 1420070400
	// cutoverDay is 1582-10-15, the first day of the Gregorian calendar, in days since 1970-01-01.
	cutoverDay = -141427
	day        = 86400
	// javaZonesFrom is 1900-01-01 UTC in seconds. Before it, zones of Java's old calendar have their present standard offset.
	javaZonesFrom = -2208988800
)

// julianDay turns the day number of a date before the cutover in the hybrid calendar, which older writers use, to the number
// of the day of the same name in the proleptic Gregorian calendar. 29 February of a year that has none there is 1 March.
func julianDay(days int64) int64 {
	// The date in the Julian calendar, counted from 1 March of year -4800.
	c := days + 2440588 + 32082
	y := floorDiv(4*c+3, 1461)
	e := c - floorDiv(1461*y, 4)
	m := (5*e + 2) / 153
	d := e - (153*m+2)/5
	return gregorianMarch(y-4800, m) + d
}

// gregorianMarch is the day number of the first of a month, counted from March (0) of a year of the proleptic calendar.
func gregorianMarch(y, m int64) int64 {
	era := floorDiv(y, 400)
	ofEra := y - era*400
	return era*146097 + ofEra*365 + ofEra/4 - ofEra/100 + (153*m+2)/5 - 719468
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// rebaseDays corrects the dates of a hybrid calendar.
func rebaseDays(days []int32) {
	for i, d := range days {
		if d < cutoverDay {
			days[i] = int32(julianDay(int64(d)))
		}
	}
}

// rebaseSeconds is julianDay for a moment.
func rebaseSeconds(s int64) int64 {
	if s >= cutoverDay*day {
		return s
	}
	d := floorDiv(s, day)
	return julianDay(d)*day + s - d*day
}

// zone tells a time zone's distance from UTC, quickly for moments near one another.
type zone struct {
	loc        *time.Location
	java       bool // follow Java's old calendar before 1900
	from, to   int64
	offset     int64
	fixed      bool
	javaOffset int64
}

func newZone(loc *time.Location, java bool) *zone {
	z := &zone{loc: loc, java: java, fixed: loc == time.UTC}
	for _, month := range []time.Month{time.January, time.July} {
		if t := time.Date(2024, month, 1, 0, 0, 0, 0, loc); !t.IsDST() {
			_, off := t.Zone()
			z.javaOffset = int64(off)
		}
	}
	return z
}

// at gives the seconds to add to a moment in UTC for the wall clock.
func (z *zone) at(s int64) int64 {
	if z.fixed || s >= z.from && s < z.to {
		return z.offset
	}
	if z.java && s < javaZonesFrom {
		return z.javaOffset
	}
	t := time.Unix(s, 0).In(z.loc)
	_, off := t.Zone()
	z.offset = int64(off)
	z.from, z.to = math.MinInt64, math.MaxInt64
	start, end := t.ZoneBounds()
	if !start.IsZero() {
		z.from = start.Unix()
	}
	if z.java {
		z.from = max(z.from, javaZonesFrom)
	}
	if !end.IsZero() {
		z.to = end.Unix()
	}
	return z.offset
}

// utc gives the moment of a wall clock reading; of two, the earlier one; in a gap, the reading with the offset before it.
func (z *zone) utc(wall int64) int64 {
	if z.fixed {
		return wall
	}
	early := wall - z.at(wall-day)
	if z.at(early) == wall-early {
		return early
	}
	late := wall - z.at(early)
	if z.at(late) == wall-late {
		return late
	}
	return early
}

// base2015 is the moment that the zone's timestamps count from.
func (z *zone) base2015() int64 { return z.utc(epoch2015) }

// loadZone finds a zone by the name that a writer left in the stripe.
func loadZone(name string) (*time.Location, error) {
	switch name {
	case "UTC", "GMT", "Z", "UCT", "Zulu", "Etc/UTC", "Etc/GMT", "Universal", "Greenwich":
		return time.UTC, nil
	}
	for _, prefix := range []string{"GMT", "UTC", ""} { // Java's custom zones, such as GMT+08:00
		if rest, ok := strings.CutPrefix(name, prefix); ok && len(rest) > 1 && (rest[0] == '+' || rest[0] == '-') {
			return fixedZone(name, rest)
		}
	}
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("%w: time zone %q", ErrFormat, name)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%w: the writer's time zone %q is unknown: %w", ErrUnsupported, name, err)
	}
	return loc, nil
}

func fixedZone(name, offset string) (*time.Location, error) {
	digits := strings.ReplaceAll(offset[1:], ":", "")
	if len(digits) <= 2 {
		digits += "00"
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n/100 > 23 || n%100 > 59 {
		return nil, fmt.Errorf("%w: time zone %q", ErrFormat, name)
	}
	seconds := n/100*3600 + n%100*60
	if offset[0] == '-' {
		seconds = -seconds
	}
	return time.FixedZone(name, seconds), nil
}
