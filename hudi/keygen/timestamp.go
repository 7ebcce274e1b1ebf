package keygen

import (
	"errors"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Types of time values (key generation 2.2). They are case sensitive.
const (
	typeUnix       = "UNIX_TIMESTAMP"
	typeMillis     = "EPOCHMILLISECONDS"
	typeMicros     = "EPOCHMICROSECONDS"
	typeDateString = "DATE_STRING"
	typeMixed      = "MIXED"
	typeScalar     = "SCALAR"
)

// Units of scalar times, in nanoseconds.
var scalarUnits = map[string]int64{"NANOSECONDS": 1, "MICROSECONDS": 1e3, "MILLISECONDS": 1e6, "SECONDS": 1e9, "MINUTES": 60e9, "HOURS": 3600e9, "DAYS": 86400e9}

// NullPolicy says where rows without a time value go.
type NullPolicy uint8

// The policies: the partition of the epoch, as in the reference; the null marker; an error.
const (
	NullEpoch NullPolicy = iota
	NullMarker
	NullError
)

// timeRule makes partition values of times (key generation 9).
type timeRule struct {
	typ        string
	unit       int64 // ns; 0 for text types
	inputs     formats
	firstInput string // untrimmed, for null values
	output     *pattern
	// Configuration errors that the reference raises with the first record.
	inputErr, outputErr, nullErr *Error
	in, out                      *zone // nil where none is set
	process                      *zone
	year                         int64
	consistent                   bool
	path                         Path
	oldDates                     bool // 0.9: dates are an error
	markers                      bool // the text of the null marker counts as null
	nulls                        NullPolicy
	null                         Datum // what stands for null: the number 1, or a text
	encode                       bool
	warnings                     []string
}

// newTimeRule reads the time options. Errors are those that the reference raises in the constructor.
func newTimeRule(c *setup) (*timeRule, *Error) {
	r := &timeRule{process: c.zone, consistent: c.consistent, path: c.path, oldDates: !c.release.lenientLookup(),
		markers: c.path == PathRow && c.release.hiveMarker(),
		nulls:   c.nulls, encode: c.encode, year: c.year}
	if err := r.readType(c); err != nil {
		return nil, err
	}
	if err := r.readZones(c); err != nil {
		return nil, err
	}
	r.readInput(c)
	text, _ := c.timeOption(timeOutput)
	var err error
	if r.output, err = compilePattern(text); err != nil {
		r.outputErr = c.timeError(timeOutput, text, err)
	}
	r.readNull()
	return r, nil
}

func (r *timeRule) readType(c *setup) *Error {
	for _, o := range [2]string{timeType, timeOutput} {
		if _, ok := c.timeOption(o); !ok {
			name := c.timeName(o)
			return &Error{Class: classIO, Cause: classHoodie, Stage: StageConstruct, Row: -1, Field: name,
				Message: "Could not load date time parser class org.apache.hudi.keygen.parser.HoodieDateTimeParser", CauseMessage: "Required property " + name + " is missing",
				Source: c.source(name), Hint: "set " + name}
		}
	}
	if class, ok := c.firstOf(keyParserClass, keyOldParserClass); ok && !strings.HasPrefix(class, "org.apache.hudi.keygen.parser.HoodieDateTimeParser") &&
		!strings.HasPrefix(class, "org.apache.hudi.keygen.parser.BaseHoodieDateTimeParser") {
		return &Error{Class: classIO, Stage: StageConstruct, Row: -1, Field: keyParserClass, Message: "Could not load date time parser class " + class,
			Source: c.source(keyParserClass), Hint: "a Java class can't run here: remove the option, or register a generator of your own"}
	}
	r.typ, _ = c.timeOption(timeType)
	name := c.timeName(timeType)
	switch r.typ {
	case typeUnix:
		r.unit = 1e9
	case typeMillis:
		r.unit = 1e6
	case typeMicros:
		r.unit = 1e3
	case typeScalar:
		unit, ok := c.timeOption(timeUnit)
		if !ok {
			unit = "SECONDS"
		}
		if r.unit, ok = scalarUnits[strings.ToUpper(unit)]; !ok {
			name = c.timeName(timeUnit)
			return &Error{Class: classArgument, Stage: StageConstruct, Row: -1, Field: name, Message: "No enum constant java.util.concurrent.TimeUnit." + strings.ToUpper(unit),
				Source: c.source(name), Hint: "NANOSECONDS, MICROSECONDS, MILLISECONDS, SECONDS, MINUTES, HOURS or DAYS"}
		}
	case typeDateString, typeMixed:
	default:
		r.typ = "?" + r.typ
	}
	if r.typ[0] == '?' || r.typ == typeMicros && !c.release.micros() {
		typ, _ := c.timeOption(timeType)
		return &Error{Class: classArgument, Stage: StageConstruct, Row: -1, Field: name,
			Message: "No enum constant org.apache.hudi.keygen.TimestampBasedAvroKeyGenerator.TimestampType." + typ,
			Source:  c.source(name), Hint: "one of UNIX_TIMESTAMP, DATE_STRING, MIXED, EPOCHMILLISECONDS, EPOCHMICROSECONDS, SCALAR, in capitals"}
	}
	return nil
}

// readZones: the common option, even when empty, rules both sides (9.4).
func (r *timeRule) readZones(c *setup) *Error {
	resolve := func(option string) (*zone, *Error) {
		id, ok := c.timeOption(option)
		if !ok || strings.TrimSpace(id) == "" {
			return nil, nil
		}
		name := c.timeName(option)
		z, known, err := resolveZone(id)
		if err != nil {
			return nil, &Error{Class: classArgument, Stage: StageConstruct, Row: -1, Field: name, Message: err.Error(), Source: c.source(name), Hint: "use a region id such as Europe/Berlin"}
		}
		if !known {
			r.warnings = append(r.warnings, name+"="+id+": Java doesn't know this zone and silently takes GMT; so does Sluice")
		}
		return z, nil
	}
	input, output := timeInputZone, timeOutputZone
	if _, ok := c.timeOption(timeZone); ok {
		input, output = timeZone, timeZone
	}
	var err *Error
	if r.in, err = resolve(input); err != nil {
		return err
	}
	if r.out, err = resolve(output); err != nil {
		return err
	}
	if r.out == nil && r.unit != 0 {
		r.warnings = append(r.warnings, "no output time zone is set: Java takes that of its process, here "+r.process.id)
	}
	return nil
}

func (r *timeRule) isText() bool { return r.typ == typeDateString || r.typ == typeMixed }

func (r *timeRule) readInput(c *setup) {
	name := c.timeName(timeInput)
	text, ok := c.timeOption(timeInput)
	if !r.isText() {
		return
	}
	switch {
	case !ok:
		r.inputErr = c.timeFault(timeInput, classNotSupported, "Required property "+name+" is missing")
		r.nullErr = &Error{Class: classArgument, Stage: StagePartition, Message: "Property " + name + " not found", Field: name, Hint: "set " + name}
		return
	case text == "":
		r.inputErr = c.timeFault(timeInput, classArgument, name+" configuration is required")
	}
	delimiter, _ := c.timeOption(timeDelimiter)
	if delimiter = strings.TrimSpace(delimiter); delimiter == "" {
		delimiter = ","
	}
	re, err := regexp.Compile(delimiter)
	if err != nil {
		r.inputErr = c.timeFault(timeDelimiter, classArgument, "delimiter "+strconv.Quote(delimiter)+": "+err.Error())
		r.nullErr = r.inputErr
		return
	}
	list := javaSplit(re, text)
	if len(list) == 0 {
		r.inputErr = c.timeFault(timeInput, classArgument, "No parsers supplied")
		r.nullErr = r.inputErr
		return
	}
	r.firstInput = list[0]
	for _, f := range list {
		p, err := compilePattern(javaTrim(f))
		if err != nil {
			if r.inputErr == nil {
				r.inputErr = c.timeError(timeInput, f, err)
			}
			return
		}
		r.inputs = append(r.inputs, p)
	}
}

// javaTrim is String.trim: everything up to the blank goes.
func javaTrim(s string) string { return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' }) }

// javaSplit is String.split: empty parts at the end vanish, and a match of no width at the start gives none.
func javaSplit(re *regexp.Regexp, text string) []string {
	matches := re.FindAllStringIndex(text, -1)
	var list []string
	from := 0
	for _, m := range matches {
		if m[1] == 0 || m[0] == len(text) && m[1] == m[0] {
			continue
		}
		list = append(list, text[from:m[0]])
		from = m[1]
	}
	if from == 0 && len(list) == 0 {
		return []string{text}
	}
	list = append(list, text[from:])
	for len(list) > 0 && list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return list
}

// readNull prepares the value that stands for null: the number 1, or for texts instant 1 ms in the first input format (9.3).
func (r *timeRule) readNull() {
	r.null = Datum{Kind: Long, I: 1}
	if !r.isText() || r.nullErr != nil {
		return
	}
	p, err := compilePattern(r.firstInput)
	if err == nil {
		z := r.in
		if z == nil {
			z = r.out
		}
		if z == nil {
			z = utcZone
		}
		var text []byte
		if text, err = p.print(nil, 1, z, &span{}, &calendar{}); err == nil {
			r.null = Datum{Kind: String, S: string(text)}
			return
		}
	}
	r.nullErr = &Error{Class: classArgument, Stage: StagePartition, Message: err.Error(), Hint: "correct the first input date format"}
}

// timeState is the memory of one worker.
type timeState struct {
	bucket   bucket
	in, out  span
	calendar calendar
}

// append adds the partition value of d, escaped where that is wanted. Null values follow the policy.
func (r *timeRule) append(dst []byte, d *Datum, st *timeState, t *texts) ([]byte, *Error) {
	if d.missing() || r.markers && d.Kind == String && d.S == NullPartition {
		switch r.nulls {
		case NullMarker:
			return append(dst, NullPartition...), nil
		case NullError:
			return dst, &Error{Class: classRefused, Stage: StagePartition, Message: "the time value is null", Hint: "fill the column, or choose another policy for null times"}
		}
		if r.nullErr != nil {
			return dst, r.nullErr
		}
		d = &r.null
	}
	ms, z, err := r.instant(d, st)
	if err == nil {
		from := len(dst)
		if dst, err = r.print(dst, ms, z, st); err == nil {
			if r.encode {
				dst = append(dst[:from], appendEscaped(nil, dst[from:])...)
			}
			return dst, nil
		}
		dst = dst[:from]
	}
	return dst, r.fail(d, t, err)
}

// print writes an instant; z is the zone found in the text, or that in which it was read.
func (r *timeRule) print(dst []byte, ms int64, z *zone, st *timeState) ([]byte, error) {
	s := &st.out
	switch {
	case r.out != nil:
		z = r.out
	case z != nil:
		s = &span{}
	default:
		z = r.process
		if ms == math.MaxInt64 || ms == math.MinInt64 {
			z = utcZone // the reference does so for the ends of time
		}
	}
	return r.output.print(dst, ms, z, s, &st.calendar)
}

var errNoUnit = errors.New("hoodie.keygen.timebased.timestamp.scalar.time.unit is not specified but scalar it supplied as time value")

// valueError carries the class of the reference's exception.
type valueError struct{ class, message string }

func (e *valueError) Error() string { return e.message }

// instant is key generation 9.1.
func (r *timeRule) instant(d *Datum, st *timeState) (ms int64, z *zone, err error) {
	switch {
	case r.inputErr != nil:
		return 0, nil, r.inputErr
	case r.outputErr != nil:
		return 0, nil, r.outputErr
	}
	switch d.Kind {
	case Int, Long, TimeMillis, TimeMicros:
		ms, err = r.scale(d.I)
	case Float, Double:
		ms, err = r.scale(javaLong(d.F))
	case Decimal:
		if r.path == PathInternalRow {
			return 0, nil, unexpected("org.apache.spark.sql.types.Decimal")
		}
		ms, err = r.scale(decimalLong(d))
	case Date:
		if r.oldDates {
			return 0, nil, unexpected("java.time.LocalDate")
		}
		if r.path == PathRow {
			return 0, nil, unexpected("java.sql.Date")
		}
		ms, err = r.scale(d.I)
	case TimestampMillis, TimestampMicros:
		return r.timestamp(d)
	case TimestampNanos:
		ms, err = r.scale(d.I)
	case LocalMillis, LocalMicros, LocalNanos:
		return r.localTimestamp(d)
	case String:
		return r.parse(d.S, st)
	case Enum:
		if r.path != PathAvro {
			return r.parse(d.S, st)
		}
		return 0, nil, unexpected("org.apache.avro.generic.GenericData$EnumSymbol")
	case Boolean:
		return 0, nil, unexpected("java.lang.Boolean")
	default:
		return 0, nil, unexpected("a value of another kind")
	}
	return ms, nil, err
}

func unexpected(class string) error {
	return &valueError{classNotSupported, "Unexpected type for partition field: " + class}
}

func (r *timeRule) timestamp(d *Datum) (int64, *zone, error) {
	if !r.consistent {
		if r.path != PathAvro {
			return 0, nil, unexpected("java.sql.Timestamp")
		}
		ms, err := r.scale(d.I)
		return ms, nil, err
	}
	if d.Kind == TimestampMicros {
		if r.path == PathRow {
			return floorDiv(d.I, 1000), nil, nil
		}
		return d.I / 1000, nil, nil
	}
	return d.I, nil, nil
}

func (r *timeRule) localTimestamp(d *Datum) (int64, *zone, error) {
	v := d.I
	switch {
	case r.path == PathRow:
		return 0, nil, unexpected("java.time.LocalDateTime")
	case r.path == PathInternalRow && d.Kind == LocalMillis:
		v *= 1000
	case r.path == PathInternalRow && d.Kind == LocalNanos:
		v = floorDiv(v, 1000)
	}
	ms, err := r.scale(v)
	return ms, nil, err
}

func (r *timeRule) parse(text string, st *timeState) (int64, *zone, error) {
	if len(r.inputs) == 0 {
		return 0, nil, &valueError{classHoodie, "Missing input formatter. Ensure " + timePrefix + timeInput + " config is set when timestampType is DATE_STRING or MIXED!"}
	}
	in := r.in
	if in == nil {
		in = r.process
	}
	ms, found, err := r.inputs.parse(&st.bucket, text, in, &st.in, r.year)
	if r.in != nil || found == nil {
		found = in
	}
	return ms, found, err
}

// scale turns a number of units into ms: towards zero, held at the ends of 64 bits.
func (r *timeRule) scale(v int64) (int64, error) {
	switch {
	case r.unit == 0:
		return 0, errNoUnit
	case r.unit < 1e6:
		return v / (1e6 / r.unit), nil
	}
	factor := r.unit / 1e6
	if v > math.MaxInt64/factor {
		return math.MaxInt64, nil
	}
	if v < math.MinInt64/factor {
		return math.MinInt64, nil
	}
	return v * factor, nil
}

// javaLong is Java's cast of a floating point number: NaN is 0, what is out of range is held at the ends.
func javaLong(f float64) int64 {
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

// decimalLong is BigDecimal.longValue: towards zero, the low 64 bits.
func decimalLong(d *Datum) int64 {
	v := d.Big
	if v == nil {
		v = big.NewInt(d.I)
	}
	if d.Scale > 0 {
		v = new(big.Int).Quo(v, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(d.Scale)), nil))
	}
	low := new(big.Int).And(v, new(big.Int).SetUint64(math.MaxUint64))
	return int64(low.Uint64())
}

// fail names the value as the reference does.
func (r *timeRule) fail(d *Datum, t *texts, cause error) *Error {
	value, _ := t.append(nil, d)
	if d.Kind == Bytes {
		value = appendBuffer(nil, d.B)
	}
	e := &Error{Class: classKeyGenerator, Stage: StagePartition, Message: "Unable to parse input partition field: " + string(value), Cause: classRuntime,
		CauseMessage: cause.Error(), Hint: "check timestamp type and input formats against the column"}
	if r.path != PathAvro {
		e.Message = "Failed to properly format partition-path (" + string(value) + ")"
	}
	var own *Error
	var parse *parseError
	var val *valueError
	var pat *patternError
	switch {
	case errors.As(cause, &own):
		e.Cause, e.CauseMessage, e.Field, e.Source, e.Hint = own.Class, own.Message, own.Field, own.Source, own.Hint
	case errors.As(cause, &parse):
		e.Cause = parse.class
	case errors.As(cause, &val):
		e.Cause = val.class
	case errors.As(cause, &pat):
		e.Cause = classArgument
	}
	return e
}

// bucketOf gives a number that tells partition values apart without printing: two times with the same number give the same
// text. ok is false where there is no such number.
func (r *timeRule) bucketOf(d *Datum, st *timeState) (n int64, ok bool) {
	if r.unit == 0 || r.output == nil || r.output.fine == 0 || r.inputErr != nil || r.outputErr != nil {
		return 0, false
	}
	ms, z, err := r.instant(d, st)
	if err != nil || z != nil || ms > math.MaxInt64/2 || ms < math.MinInt64/2 {
		return 0, false
	}
	z = r.out
	if z == nil {
		z = r.process
	}
	return floorDiv(ms+z.at(ms, &st.out), r.output.fine), true
}

// currentYear is the base of two-digit years.
func currentYear(z *zone) int64 {
	ms := time.Now().UnixMilli()
	year, _, _ := civil(floorDiv(ms+z.offset(ms), msPerDay))
	return year
}
