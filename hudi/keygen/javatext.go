package keygen

import (
	"encoding/hex"
	"math"
	"math/big"
	"strconv"
	"unicode/utf8"
)

// Path is the code path of the reference whose texts are wanted (key generation 14).
type Path uint8

// The paths: an Avro record (upsert, and what Sluice writes), a Spark Row, a Spark InternalRow (bulk insert).
const (
	PathAvro Path = iota
	PathRow
	PathInternalRow
)

func (p Path) String() string { return [...]string{"avro", "spark_row", "spark_internal_row"}[p] }

// ParsePath reads the name that String gives.
func ParsePath(name string) (Path, bool) {
	for p := PathAvro; p <= PathInternalRow; p++ {
		if p.String() == name {
			return p, true
		}
	}
	return PathAvro, name == ""
}

// texts turns values into the text that Java gives them (key generation 5).
type texts struct {
	path       Path
	micros     bool // the Avro record was made of a Spark row, which keeps times in microseconds and fixed as bytes
	consistent bool // logical timestamps as text on the Avro path, too
	hexBytes   bool
	oldFloats  bool     // texts of Java 18 and before
	zone       javaZone // of the process, for timestamps as text
}

// instantsOf1582 is 15 October 1582 in epoch milliseconds: before it, java.sql.Timestamp prints Julian dates.
const instantOf1582 = -12219292800000

// append adds the text of d. It fails on values that have no stable text.
func (t *texts) append(dst []byte, d *Datum) ([]byte, *Error) {
	switch d.Kind {
	case String, Enum:
		return append(dst, d.S...), nil
	case Boolean:
		return strconv.AppendBool(dst, d.I != 0), nil
	case Int, Long, TimeMillis, TimeMicros:
		return strconv.AppendInt(dst, d.I, 10), nil
	case Float:
		return appendFloat(dst, d.F, 32, t.oldFloats), nil
	case Double:
		return appendFloat(dst, d.F, 64, t.oldFloats), nil
	case Decimal:
		return appendDecimal(dst, d), nil
	case Bytes, Fixed:
		return t.appendBytes(dst, d)
	case Date:
		return t.appendDate(dst, d.I), nil
	case TimestampMillis, TimestampMicros, TimestampNanos:
		return t.appendTimestamp(dst, d)
	case LocalMillis, LocalMicros, LocalNanos:
		return t.appendLocal(dst, d), nil
	}
	switch t.path {
	case PathRow:
		return t.appendRowCollection(dst, d)
	case PathInternalRow:
		return t.appendInternalCollection(dst, d)
	}
	return appendAvro(dst, d, t.oldFloats), nil
}

// appendBytes: what rows make of bytes can't be told, so it never equals a stored key.
func (t *texts) appendBytes(dst []byte, d *Datum) ([]byte, *Error) {
	switch {
	case t.path != PathAvro:
		return append(dst, "[B@?"...), nil // the identity of a Java object, another one in every run
	case d.Kind == Fixed && !t.micros:
		return appendSigned(dst, d.B), nil
	case t.hexBytes:
		return hex.AppendEncode(dst, d.B), nil
	}
	return appendBuffer(dst, d.B), nil
}

// appendSigned is Arrays.toString of signed bytes.
func appendSigned(dst, b []byte) []byte {
	dst = append(dst, '[')
	for i, c := range b {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = strconv.AppendInt(dst, int64(int8(c)), 10)
	}
	return append(dst, ']')
}

// appendBuffer is the text of a Java byte buffer, which doesn't tell its bytes.
func appendBuffer(dst, b []byte) []byte {
	n := int64(len(b))
	dst = append(dst, "java.nio.HeapByteBuffer[pos=0 lim="...)
	dst = strconv.AppendInt(dst, n, 10)
	dst = append(dst, " cap="...)
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, ']')
}

// appendDate is java.time.LocalDate's text; on a Row that of java.sql.Date, whose year has four digits and no more.
func (t *texts) appendDate(dst []byte, days int64) []byte {
	y, m, d := civil(days)
	if t.path == PathRow {
		dst = appendPadded(dst, y%10000, 4)
	} else {
		dst = appendISOYear(dst, y)
	}
	dst = append(dst, '-')
	dst = appendPadded(dst, m, 2)
	dst = append(dst, '-')
	return appendPadded(dst, d, 2)
}

// appendISOYear: four digits at least, a sign above 9999 and below 0.
func appendISOYear(dst []byte, y int64) []byte {
	if y > 9999 {
		dst = append(dst, '+')
	}
	return appendPadded(dst, y, 4)
}

func (t *texts) appendTimestamp(dst []byte, d *Datum) ([]byte, *Error) {
	if t.path == PathAvro && !t.consistent || d.Kind == TimestampNanos {
		v := d.I
		if t.micros && d.Kind == TimestampMillis {
			v *= 1000
		}
		return strconv.AppendInt(dst, v, 10), nil
	}
	ms, micros := d.I, int64(0)
	if d.Kind == TimestampMicros {
		ms = d.I / 1000 // towards zero, as the reference does: -1 microsecond is 0 ms
		if t.path == PathRow {
			ms = floorDiv(d.I, 1000)
			micros = d.I - ms*1000
		}
	}
	if ms < instantOf1582 {
		return dst, &Error{Class: classRefused, Message: "timestamp " + strconv.FormatInt(d.I, 10) + " lies before 15 October 1582, where Java prints dates of the Julian calendar",
			Hint: "write the column as text or date, or switch off " + KeyConsistent}
	}
	local := ms + t.zone.offset(ms)
	days := floorDiv(local, msPerDay)
	inDay := local - days*msPerDay
	y, mo, da := civil(days)
	dst = appendPadded(dst, y, 4)
	dst = append(dst, '-')
	dst = appendPadded(dst, mo, 2)
	dst = append(dst, '-')
	dst = appendPadded(dst, da, 2)
	dst = append(dst, ' ')
	dst = appendClock(dst, inDay/1000)
	dst = append(dst, '.')
	fraction := inDay%1000*1000 + micros
	if fraction == 0 {
		return append(dst, '0'), nil
	}
	dst = appendPadded(dst, fraction, 6)
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst, nil
}

func appendClock(dst []byte, seconds int64) []byte {
	dst = appendPadded(dst, seconds/3600, 2)
	dst = append(dst, ':')
	dst = appendPadded(dst, seconds/60%60, 2)
	dst = append(dst, ':')
	return appendPadded(dst, seconds%60, 2)
}

// appendLocal: the raw number, on a Row the text of java.time.LocalDateTime, on an InternalRow always microseconds.
func (t *texts) appendLocal(dst []byte, d *Datum) []byte {
	if t.path == PathAvro && !t.micros {
		return strconv.AppendInt(dst, d.I, 10)
	}
	micros := d.I
	switch d.Kind {
	case LocalMillis:
		micros *= 1000
	case LocalNanos:
		micros = floorDiv(d.I, 1000)
	}
	if t.path != PathRow {
		return strconv.AppendInt(dst, micros, 10)
	}
	days := floorDiv(micros, msPerDay*1000)
	inDay := micros - days*msPerDay*1000
	y, mo, da := civil(days)
	dst = appendISOYear(dst, y)
	dst = append(dst, '-')
	dst = appendPadded(dst, mo, 2)
	dst = append(dst, '-')
	dst = appendPadded(dst, da, 2)
	dst = append(dst, 'T')
	seconds, fraction := inDay/1e6, inDay%1e6
	dst = appendClock(dst, seconds)
	switch {
	case fraction%1000 != 0:
		dst = append(dst, '.')
		dst = appendPadded(dst, fraction, 6)
	case fraction != 0:
		dst = append(dst, '.')
		dst = appendPadded(dst, fraction/1000, 3)
	case seconds%60 == 0:
		dst = dst[:len(dst)-3] // no seconds
	}
	return dst
}

// appendDecimal is BigDecimal.toString (key generation 5.4).
func appendDecimal(dst []byte, d *Datum) []byte {
	var room [24]byte
	var digits []byte
	negative := d.I < 0
	if d.Big != nil {
		negative = d.Big.Sign() < 0
		digits = new(big.Int).Abs(d.Big).Append(nil, 10)
	} else {
		u := uint64(d.I)
		if negative {
			u = -u
		}
		digits = strconv.AppendUint(room[:0], u, 10)
	}
	if negative {
		dst = append(dst, '-')
	}
	scale := int(d.Scale)
	if scale == 0 {
		return append(dst, digits...)
	}
	adjusted := len(digits) - 1 - scale
	if scale > 0 && adjusted >= -6 {
		if pad := scale - len(digits); pad >= 0 {
			dst = append(dst, "0."...)
			for range pad {
				dst = append(dst, '0')
			}
			return append(dst, digits...)
		}
		dst = append(dst, digits[:len(digits)-scale]...)
		dst = append(dst, '.')
		return append(dst, digits[len(digits)-scale:]...)
	}
	dst = append(dst, digits[0])
	if len(digits) > 1 {
		dst = append(dst, '.')
		dst = append(dst, digits[1:]...)
	}
	if adjusted != 0 {
		dst = append(dst, 'E')
		if adjusted > 0 {
			dst = append(dst, '+')
		}
		dst = strconv.AppendInt(dst, int64(adjusted), 10)
	}
	return dst
}

// appendAvro is toString of a value inside an Avro collection: arrays and maps as Java collections print themselves, records
// as Avro's JSON. Logical types don't count in here.
func appendAvro(dst []byte, d *Datum, oldFloats bool) []byte {
	switch d.Kind {
	case Array:
		dst = append(dst, '[')
		for i := range d.Items {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = appendAvro(dst, &d.Items[i], oldFloats)
		}
		return append(dst, ']')
	case Map:
		dst = append(dst, '{')
		for i := range d.Items {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = append(dst, d.Names[i]...)
			dst = append(dst, '=')
			dst = appendAvro(dst, &d.Items[i], oldFloats)
		}
		return append(dst, '}')
	case Record:
		return appendAvroJSON(dst, d, oldFloats)
	case Bytes:
		return appendBuffer(dst, d.B)
	}
	return appendAvroScalar(dst, d, oldFloats)
}

func appendAvroScalar(dst []byte, d *Datum, oldFloats bool) []byte {
	switch d.Kind {
	case String, Enum:
		return append(dst, d.S...)
	case Boolean:
		return strconv.AppendBool(dst, d.I != 0)
	case Float:
		return appendFloat(dst, d.F, 32, oldFloats)
	case Double:
		return appendFloat(dst, d.F, 64, oldFloats)
	case Fixed:
		return appendSigned(dst, d.B)
	case Decimal:
		return appendSigned(dst, unscaledBytes(d))
	case Null, Absent, ParentNull, ParentScalar:
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, d.I, 10)
}

// unscaledBytes is the value of a decimal as Avro stores it in a fixed: two's complement, big endian, d.F bytes wide when
// the width is known.
func unscaledBytes(d *Datum) []byte {
	v := d.Big
	if v == nil {
		v = big.NewInt(d.I)
	}
	width := int(d.F)
	if width == 0 {
		width = v.BitLen()/8 + 1
	}
	if v.Sign() < 0 {
		v = new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), uint(width)*8))
	}
	b := make([]byte, width)
	return v.FillBytes(b)
}

// appendAvroJSON is GenericData.toString: the text of a record and of everything in it.
func appendAvroJSON(dst []byte, d *Datum, oldFloats bool) []byte {
	switch d.Kind {
	case Record, Map:
		dst = append(dst, '{')
		for i := range d.Items {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = appendAvroQuoted(dst, d.Names[i])
			dst = append(dst, ": "...)
			dst = appendAvroJSON(dst, &d.Items[i], oldFloats)
		}
		return append(dst, '}')
	case Array:
		dst = append(dst, '[')
		for i := range d.Items {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = appendAvroJSON(dst, &d.Items[i], oldFloats)
		}
		return append(dst, ']')
	case String, Enum:
		return appendAvroQuoted(dst, d.S)
	case Bytes:
		latin := make([]rune, len(d.B))
		for i, c := range d.B {
			latin[i] = rune(c)
		}
		return appendAvroQuoted(dst, string(latin))
	case Float, Double:
		if math.IsNaN(d.F) || math.IsInf(d.F, 0) {
			dst = append(dst, '"')
			dst = appendAvroScalar(dst, d, oldFloats)
			return append(dst, '"')
		}
	}
	return appendAvroScalar(dst, d, oldFloats)
}

// appendAvroQuoted escapes by UTF-16 unit, as Java does.
func appendAvroQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch r {
		case '"':
			dst = append(dst, `\"`...)
		case '\\':
			dst = append(dst, `\\`...)
		case '\b':
			dst = append(dst, `\b`...)
		case '\f':
			dst = append(dst, `\f`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			if r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0x2000 && r <= 0x20ff {
				dst = append(dst, '\\', 'u', upperHex[r>>12&15], upperHex[r>>8&15], upperHex[r>>4&15], upperHex[r&15])
			} else {
				dst = utf8.AppendRune(dst, r)
			}
		}
	}
	return append(dst, '"')
}

// appendRowCollection: how Scala prints the values of a Spark Row.
func (t *texts) appendRowCollection(dst []byte, d *Datum) ([]byte, *Error) {
	opening, closing, between := "[", "]", ","
	switch d.Kind {
	case Null:
		return append(dst, "null"...), nil
	case Array:
		opening, closing, between = "WrappedArray(", ")", ", "
	case Map:
		opening, closing, between = "Map(", ")", ", "
	case Record:
	default:
		return t.append(dst, d)
	}
	dst = append(dst, opening...)
	var err *Error
	for i := range d.Items {
		if i > 0 {
			dst = append(dst, between...)
		}
		if d.Kind == Map {
			dst = append(dst, d.Names[i]...)
			dst = append(dst, " -> "...)
		}
		if dst, err = t.appendRowCollection(dst, &d.Items[i]); err != nil {
			return dst, err
		}
	}
	return append(dst, closing...), nil
}

// appendInternalCollection: how Spark prints the parts of an InternalRow, where logical types are plain numbers.
func (t *texts) appendInternalCollection(dst []byte, d *Datum) ([]byte, *Error) {
	switch d.Kind {
	case Map:
		dst = append(dst, "keys: ["...)
		for i, k := range d.Names {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, k...)
		}
		dst = append(dst, "], values: "...)
		return t.appendInternalCollection(dst, &Datum{Kind: Array, Items: d.Items})
	case Array, Record:
		dst = append(dst, '[')
		var err *Error
		for i := range d.Items {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = t.appendInternalCollection(dst, &d.Items[i]); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	case Null:
		return append(dst, "null"...), nil
	case Date:
		return strconv.AppendInt(dst, d.I, 10), nil
	case TimestampMillis:
		return strconv.AppendInt(dst, d.I*1000, 10), nil
	case TimestampMicros:
		return strconv.AppendInt(dst, d.I, 10), nil
	}
	return t.append(dst, d)
}

// appendPadded writes v with at least width digits; a sign doesn't count.
func appendPadded(dst []byte, v int64, width int) []byte {
	u := uint64(v)
	if v < 0 {
		dst = append(dst, '-')
		u = -u
	}
	if u < 100 && width == 2 {
		return append(dst, byte('0'+u/10), byte('0'+u%10))
	}
	if u < 10000 && width == 4 {
		return append(dst, byte('0'+u/1000), byte('0'+u/100%10), byte('0'+u/10%10), byte('0'+u%10))
	}
	var room [20]byte
	digits := strconv.AppendUint(room[:0], u, 10)
	for range width - len(digits) {
		dst = append(dst, '0')
	}
	return append(dst, digits...)
}
