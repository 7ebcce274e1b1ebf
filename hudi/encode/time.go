package encode

import (
	"math/big"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

func bigInt(v int64) *big.Int { return big.NewInt(v) }

// temporal gives the binder of dates and times, without quotes; nil for other types.
func (c *compiler) temporal(dt arrow.DataType) binder {
	switch dt := dt.(type) {
	case *arrow.Date32Type:
		return func(a arrow.Array) appender {
			v := a.(*array.Date32).Date32Values()
			return func(dst []byte, i int) []byte { return appendDate(dst, int64(v[i])) }
		}
	case *arrow.Date64Type:
		return func(a arrow.Array) appender {
			v := a.(*array.Date64).Date64Values()
			return func(dst []byte, i int) []byte { return appendDate(dst, floorDiv(int64(v[i]), 86400000)) }
		}
	case *arrow.Time32Type:
		return func(a arrow.Array) appender {
			v := a.(*array.Time32).Time32Values()
			return func(dst []byte, i int) []byte { return appendClock(dst, int64(v[i]), dt.Unit) }
		}
	case *arrow.Time64Type:
		return func(a arrow.Array) appender {
			v := a.(*array.Time64).Time64Values()
			return func(dst []byte, i int) []byte { return appendClock(dst, int64(v[i]), dt.Unit) }
		}
	case *arrow.TimestampType:
		return c.timestamp(dt)
	}
	return nil
}

func (c *compiler) timestamp(dt *arrow.TimestampType) binder {
	zoned := dt.TimeZone != ""
	perDay := 86400 * (int64(time.Second) / int64(dt.Unit.Multiplier()))
	if c.Style == Spark {
		return func(a arrow.Array) appender {
			v := a.(*array.Timestamp).TimestampValues()
			return func(dst []byte, i int) []byte { return c.sparkTimestamp(dst, int64(v[i]), dt.Unit, zoned) }
		}
	}
	return func(a arrow.Array) appender {
		v := a.(*array.Timestamp).TimestampValues()
		return func(dst []byte, i int) []byte {
			days := floorDiv(int64(v[i]), perDay)
			dst = append(appendDate(dst, days), 'T')
			dst = appendClock(dst, int64(v[i])-days*perDay, dt.Unit)
			if zoned {
				dst = append(dst, 'Z')
			}
			return dst
		}
	}
}

// sparkTimestamp is yyyy-MM-dd'T'HH:mm:ss.SSSXXX in the session's zone, or without XXX for local timestamps.
func (c *compiler) sparkTimestamp(dst []byte, v int64, unit arrow.TimeUnit, zoned bool) []byte {
	per := int64(time.Second) / int64(unit.Multiplier())
	sec := floorDiv(v, per)
	millis := (v - sec*per) * 1000 / per
	offset := 0
	if zoned && c.Zone != nil {
		_, offset = time.Unix(sec, 0).In(c.Zone).Zone()
		sec += int64(offset)
	}
	days := floorDiv(sec, 86400)
	dst = append(appendDate(dst, days), 'T')
	dst = appendClock(dst, (sec-days*86400)*1000+millis, arrow.Millisecond)
	switch {
	case !zoned:
		return dst
	case offset == 0:
		return append(dst, 'Z')
	case offset < 0:
		dst = append(dst, '-')
		offset = -offset
	default:
		dst = append(dst, '+')
	}
	dst = appendDigits(dst, int64(offset/3600), 2)
	return appendDigits(append(dst, ':'), int64(offset/60%60), 2)
}

// appendDate writes the date of days since 1970-01-01 in the proleptic Gregorian calendar; years beyond four digits have a
// sign, as ISO 8601 and Java have it.
func appendDate(dst []byte, days int64) []byte {
	year, month, day := civil(days)
	switch {
	case year > 9999:
		dst = append(dst, '+')
		dst = strconv.AppendInt(dst, year, 10)
	case year < 0:
		dst = append(dst, '-')
		dst = appendDigits(dst, -year, 4)
	default:
		dst = appendDigits(dst, year, 4)
	}
	dst = appendDigits(append(dst, '-'), month, 2)
	return appendDigits(append(dst, '-'), day, 2)
}

// civil turns days since 1970-01-01 into year, month and day, counting years from March so that leap days come last.
func civil(days int64) (year, month, day int64) {
	z := days + 719468
	era := floorDiv(z, 146097)
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day = doy - (153*mp+2)/5 + 1
	month = mp + 3
	if month > 12 {
		month -= 12
	}
	year = yoe + era*400
	if month <= 2 {
		year++
	}
	return year, month, day
}

// appendClock writes a time of day with the digits of its unit.
func appendClock(dst []byte, v int64, unit arrow.TimeUnit) []byte {
	per := int64(time.Second) / int64(unit.Multiplier())
	sec := floorDiv(v, per)
	fraction := v - sec*per
	dst = appendDigits(dst, sec/3600, 2)
	dst = appendDigits(append(dst, ':'), sec/60%60, 2)
	dst = appendDigits(append(dst, ':'), sec%60, 2)
	if digits := int(unit) * 3; digits > 0 {
		dst = appendDigits(append(dst, '.'), fraction, digits)
	}
	return dst
}

// appendDigits writes v with at least n digits.
func appendDigits(dst []byte, v int64, n int) []byte {
	var buf [20]byte
	at := len(buf)
	for ; v > 0 || n > 0; n-- {
		at--
		buf[at] = byte('0' + v%10)
		v /= 10
	}
	return append(dst, buf[at:]...)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
