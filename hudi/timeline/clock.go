package timeline

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sluicelake/sluice/hudi/config"
)

// Special instants (table format 2.1, 9.3).
const (
	BeforeEverything  = "00000000000000"
	MetadataBootstrap = "00000000000001"
	FullBootstrap     = "00000000000002"
)

// ErrTime: a text is no instant time with a date.
var ErrTime = errors.New("not an instant time")

// Zone is the zone in which a table's instant times are written: UTC, or this machine's where the table says LOCAL. The
// table does not record which zone LOCAL was for its writer (table format 11, trap 1).
func Zone(cfg *config.Table) *time.Location {
	if cfg.TimelineZone == "UTC" {
		return time.UTC
	}
	return time.Local
}

// ParseTime gives the moment that an instant time of 14, 17 or more digits stands for in a zone. 14 digits mean the last
// millisecond of the second; of more than 17 digits the first 17 count. Special instants, other lengths and impossible dates
// are errors, which callers must survive: such times are valid on a timeline, they are no dates (table format 2.1).
//
// Where clocks are put forward, times inside the gap are read with the offset before it; where they are put back, the first
// of the two moments counts. So does Java.
func ParseTime(text string, zone *time.Location) (time.Time, error) {
	digits := text
	if len(text) == 14 {
		digits += "999"
	}
	if len(digits) > 17 {
		digits = digits[:17]
	}
	if len(digits) < 17 || !allDigits(digits) {
		return time.Time{}, fmt.Errorf("%w: %q, want yyyyMMddHHmmss or yyyyMMddHHmmssSSS", ErrTime, text)
	}
	number := func(from, to int) (n int) {
		for _, c := range digits[from:to] {
			n = n*10 + int(c-'0')
		}
		return n
	}
	year, month, day := number(0, 4), number(4, 6), number(6, 8)
	hour, minute, second, milli := number(8, 10), number(10, 12), number(12, 14), number(14, 17)
	if year == 0 || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, fmt.Errorf("%w: %q is no date", ErrTime, text)
	}
	day = min(day, time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()) // 30 February is the last of February
	return inZone(time.Date(year, time.Month(month), day, hour, minute, second, milli*int(time.Millisecond), time.UTC), zone), nil
}

// inZone takes the wall clock of a UTC time into another zone.
func inZone(wall time.Time, zone *time.Location) time.Time {
	offset := func(at time.Time) time.Duration {
		_, seconds := at.In(zone).Zone()
		return time.Duration(seconds) * time.Second
	}
	before, after := offset(wall.Add(-24*time.Hour)), offset(wall.Add(24*time.Hour))
	first := wall.Add(-before)
	if offset(first) != before {
		if second := wall.Add(-after); offset(second) == after {
			return second.In(zone)
		}
	}
	return first.In(zone)
}

// FormatTime is the instant time of a moment: 17 digits in the zone. From the year 10000 on it is no instant time any more: a
// "+" stands in front, as in Java.
func FormatTime(at time.Time, zone *time.Location) string {
	at = at.In(zone)
	sign := ""
	if at.Year() > 9999 {
		sign = "+"
	}
	return sign + at.Format("20060102150405") + fmt.Sprintf("%03d", at.Nanosecond()/int(time.Millisecond))
}

// Clock makes instant times that grow: none is given twice, and none lies at or below a time that it has seen, even when the
// machine's clock goes back. Safe for use by several goroutines. (C119; table format 2.1)
type Clock struct {
	mu   sync.Mutex
	zone *time.Location
	now  func() time.Time
	last string
}

// NewClock starts a clock in a zone behind every requested and completion time of the timelines.
func NewClock(zone *time.Location, seen ...Timeline) *Clock { return newClock(zone, time.Now, seen...) }

func newClock(zone *time.Location, now func() time.Time, seen ...Timeline) *Clock {
	c := &Clock{zone: zone, now: now}
	for _, t := range seen {
		for _, i := range t.instants {
			c.last = max(c.last, i.Time)
			if t.layout == 2 {
				c.last = max(c.last, i.Completion)
			}
		}
	}
	return c
}

// Observe tells the clock of a time that others have used: the next ones are greater.
func (c *Clock) Observe(instant string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last, instant)
}

// Now gives the next instant time, 17 digits. It fails when the newest time that was seen is no date, or the last one that 17
// digits can write.
func (c *Clock) Now() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := FormatTime(c.now(), c.zone)
	if next <= c.last {
		// Plain calendar arithmetic: in a zone whose clock was put back the moment itself would not help.
		at, err := ParseTime(c.last, time.UTC)
		if err != nil {
			return "", fmt.Errorf("no instant time after %q: %w", c.last, err)
		}
		if next = FormatTime(at.Add(time.Millisecond), time.UTC); next <= c.last || len(next) != 17 {
			return "", fmt.Errorf("%w: no instant time after %q", ErrTime, c.last)
		}
	}
	c.last = next
	return next, nil
}

// AsOf brings a time as people write it to the form in which instants are compared:
//
//	yyyyMMddHHmmss, yyyyMMddHHmmssSSS       as they are
//	yyyy-MM-dd                              midnight
//	yyyy-MM-dd HH:mm:ss                     up to the end of that second (.999)
//	yyyy-MM-dd HH:mm:ss.SSS                 that millisecond
//	the same with T, and Z or +hh:mm at the end: that moment, in the zone
//
// The result has 17 digits, or 14 where 14 were given: instants compare as text, and "20220920044733" lies before
// "20220920044733123" (C087).
func AsOf(text string, zone *time.Location) (string, error) {
	text = strings.TrimSpace(text)
	bad := fmt.Errorf("%w: %q; write yyyy-MM-dd, yyyy-MM-dd HH:mm:ss[.SSS], yyyy-MM-ddTHH:mm:ss[.SSS]Z, yyyyMMddHHmmss or yyyyMMddHHmmssSSS", ErrTime, text)
	if allDigits(text) {
		if len(text) == 14 || len(text) == 17 {
			return text, nil
		}
		return "", bad
	}
	if len(text) > 35 {
		return "", bad
	}
	seconds := func(at time.Time, fraction bool) time.Time {
		if !fraction {
			at = at.Add(999 * time.Millisecond)
		}
		return at
	}
	wall := strings.Replace(text, "T", " ", 1)
	for _, form := range []string{"2006-01-02", "2006-01-02 15:04:05", "2006-01-02 15:04:05.000"} {
		if at, err := time.Parse(form, wall); err == nil && len(wall) == len(form) {
			return FormatTime(seconds(at, len(form) != 19), time.UTC), nil // the wall clock itself
		}
	}
	at, err := time.Parse(time.RFC3339, strings.Replace(text, " ", "T", 1))
	if err != nil {
		return "", bad
	}
	return FormatTime(seconds(at, strings.Contains(text, ".")), zone), nil
}

// MetadataTime is the time of an action that the metadata table of 0.x takes on its own, after the data table's instant that
// caused it: three digits more (table format 9.3). Actions without such a time give false.
func MetadataTime(of string, action Action) (string, bool) {
	suffix, ok := map[Action]string{Compaction: "001", Clean: "002", Restore: "003", Indexing: "004", LogCompaction: "005", Rollback: "006"}[action]
	return of + suffix, ok
}

// MetadataInit is the time of the n-th commit that initialises a metadata table, n from 0: "00000000000000010" in layout 1,
// "00000000000000000" in layout 2.
func MetadataInit(layout, n int) string {
	if layout == 1 {
		n += 10
	}
	return fmt.Sprintf("%s%03d", BeforeEverything, n)
}
