package keygen

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/sluicelake/sluice/hudi/config"
)

// Value is one partition column's value, as a partition path tells it.
type Value struct {
	Column string
	// Text is the value, unescaped; "" when IsNull.
	Text   string
	IsNull bool
	// InFile says that the path doesn't tell the column's value: a time was cut to its partition, or the segments can't be
	// told apart. The column of the data files counts; Text is all there is where the table dropped the column.
	InFile bool
}

// PathRule reads the partition paths of one table. It is immutable.
type PathRule struct {
	columns []pathColumn
	hive    bool
	slash   bool
	old     bool // the null marker of tables below version 5 counts, too
	dropped bool
}

type pathColumn struct {
	name     string
	time     bool
	segments int // 0 unknown
}

// PropertiesOf gives a table's properties for [Options.Table].
func PropertiesOf(t *config.Table) map[string]string {
	p := make(map[string]string, t.Props.Len())
	for _, k := range t.Props.Keys() {
		p[k], _ = t.Props.Get(k)
	}
	return p
}

// NewPathRule compiles the rule of a table.
func NewPathRule(t *config.Table) *PathRule {
	props := PropertiesOf(t)
	typ, _ := storedType(props)
	r := &PathRule{hive: t.HiveStyle, slash: t.SlashDates && len(t.PartitionFields) == 1, old: t.Version < 5, dropped: t.DropPartitionColumns}
	format, _ := firstIn(props, timePrefix+timeOutput, oldTimePrefix+timeOutput)
	for i, name := range t.PartitionFields {
		c := pathColumn{name: name, segments: 1}
		switch {
		case typ == Timestamp, i < len(t.PartitionTypes) && strings.EqualFold(t.PartitionTypes[i], "TIMESTAMP"):
			c.time = true
			if !t.URLEncode {
				c.segments = 0
				if p, err := compilePattern(format); err == nil {
					c.segments = 1 + p.slashes()
				}
			}
		case typ == Custom && t.PartitionTypes == nil:
			c.time, c.segments = true, 0 // types are not stored below version 8: only the file is sure
		case typ == UserProvided:
			c.time, c.segments = true, 0
		}
		r.columns = append(r.columns, c)
	}
	return r
}

// slashes counts the levels that a pattern makes.
func (p *pattern) slashes() int {
	n := 0
	for i := range p.parts {
		n += strings.Count(p.parts[i].literal, "/")
	}
	return n
}

// PartitionValues gives the partition columns' values of a path, in the order of the partition fields.
//
// Apache Hudi's readers take the values from the path, unescaped even where the table doesn't escape; the null marker and an
// empty text are null; the parts of a slash separated date are one date again (table format 4.5, key generation 7, 13).
func PartitionValues(t *config.Table, path string) ([]Value, error) {
	return NewPathRule(t).Values(path)
}

// Values reads one path.
func (r *PathRule) Values(path string) ([]Value, error) {
	if len(r.columns) == 0 {
		if path != "" {
			return nil, fmt.Errorf("partition path %q in a table without partition fields: the table's property %s is missing", path, TablePartitionFields)
		}
		return nil, nil
	}
	values := make([]Value, len(r.columns))
	pieces, ok := r.split(path)
	for i, c := range r.columns {
		v := &values[i]
		v.Column = c.name
		if !ok {
			v.IsNull, v.InFile = true, true
			continue
		}
		text := pieces[i]
		if r.hive {
			text = strings.TrimPrefix(text, c.name+"=")
		}
		r.fill(v, c, text)
	}
	return values, nil
}

func (r *PathRule) fill(v *Value, c pathColumn, text string) {
	v.InFile = c.time
	switch text = Unescape(text); {
	case text == NullPartition || text == "":
		v.IsNull = true
	case r.old && text == OldNullPartition:
		v.IsNull = true
		v.InFile = true // unless it is the word itself
	case r.slash && isSlashDate(text):
		v.Text = strings.ReplaceAll(text, "/", "-")
	default:
		v.Text = text
	}
}

// isSlashDate: three levels of digits, of which the first has four.
func isSlashDate(text string) bool {
	parts := strings.Split(text, "/")
	if len(parts) != 3 || len(parts[0]) < 4 || len(parts[1]) != 2 || len(parts[2]) != 2 {
		return false
	}
	for _, p := range parts {
		if _, err := strconv.ParseUint(p, 10, 32); err != nil {
			return false
		}
	}
	return true
}

// split gives each column its part of the path. One column has all of it. With Hive style the names tell the parts; else
// each column has as many segments as it is known to have, and at most one has an unknown number.
func (r *PathRule) split(path string) ([]string, bool) {
	if len(r.columns) == 1 {
		return []string{path}, true
	}
	segments := strings.Split(path, "/")
	if r.hive {
		return r.splitNamed(segments)
	}
	unknown, known := -1, 0
	for i, c := range r.columns {
		if c.segments == 0 {
			if unknown >= 0 {
				return nil, false
			}
			unknown = i
		}
		known += c.segments
	}
	rest := len(segments) - known
	if unknown < 0 && rest != 0 || unknown >= 0 && rest < 1 {
		return nil, false
	}
	pieces := make([]string, len(r.columns))
	for i, c := range r.columns {
		n := c.segments
		if i == unknown {
			n = rest
		}
		pieces[i] = strings.Join(segments[:n], "/")
		segments = segments[n:]
	}
	return pieces, true
}

func (r *PathRule) splitNamed(segments []string) ([]string, bool) {
	pieces := make([]string, 0, len(r.columns))
	for _, s := range segments {
		if n := len(pieces); n < len(r.columns) && strings.HasPrefix(s, r.columns[n].name+"=") {
			pieces = append(pieces, s)
			continue
		}
		if len(pieces) == 0 {
			return nil, false
		}
		pieces[len(pieces)-1] += "/" + s
	}
	return pieces, len(pieces) == len(r.columns)
}

// Columns gives the types in which a reader sees the partition columns whose values come from the path. declared are the
// types of the table's schema by name. Columns of a time generator and dropped columns are text: what the path holds is no
// number any more (key generation 13).
func (r *PathRule) Columns(declared func(column string) (arrow.DataType, bool)) []arrow.Field {
	fields := make([]arrow.Field, len(r.columns))
	for i, c := range r.columns {
		fields[i] = arrow.Field{Name: c.name, Type: arrow.BinaryTypes.String, Nullable: true}
		if dt, ok := declared(c.name); ok && !c.time && !r.dropped {
			fields[i].Type = dt
		}
	}
	return fields
}

// Typed turns a value of a path into a column's type. It fails on a text that is none of that type's.
func (v Value) Typed(dt arrow.DataType) (scalar.Scalar, error) {
	if v.IsNull {
		return scalar.MakeNullScalar(dt), nil
	}
	s, err := typedScalar(v.Text, dt)
	if err != nil {
		return nil, fmt.Errorf("partition column %s: %q is no %s: %w", v.Column, v.Text, dt, err)
	}
	return s, nil
}

func typedScalar(text string, dt arrow.DataType) (scalar.Scalar, error) {
	switch t := dt.(type) {
	case *arrow.StringType:
		return scalar.NewStringScalar(text), nil
	case *arrow.BooleanType:
		switch text {
		case "true", "false":
			return scalar.NewBooleanScalar(text == "true"), nil
		}
		return nil, strconv.ErrSyntax
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Int64Type:
		n, err := strconv.ParseInt(text, 10, dt.(arrow.FixedWidthDataType).BitWidth())
		if err != nil {
			return nil, err
		}
		return scalar.MakeIntegerScalar(n, dt.(arrow.FixedWidthDataType).BitWidth())
	case *arrow.Float32Type:
		f, err := strconv.ParseFloat(text, 32)
		return scalar.NewFloat32Scalar(float32(f)), err
	case *arrow.Float64Type:
		f, err := strconv.ParseFloat(text, 64)
		return scalar.NewFloat64Scalar(f), err
	case *arrow.Date32Type:
		days, err := parseISODate(text)
		return scalar.NewDate32Scalar(arrow.Date32(days)), err
	case *arrow.TimestampType:
		n, err := parseTimestampText(text, t)
		return scalar.NewTimestampScalar(arrow.Timestamp(n), t), err
	case *arrow.Decimal128Type:
		n, err := parseDecimal(text, t.Precision, t.Scale)
		if err != nil {
			return nil, err
		}
		return scalar.NewDecimal128Scalar(decimal128.FromBigInt(n), t), nil
	case *arrow.Decimal256Type:
		n, err := parseDecimal(text, t.Precision, t.Scale)
		if err != nil {
			return nil, err
		}
		return scalar.NewDecimal256Scalar(decimal256.FromBigInt(n), t), nil
	case *arrow.Time32Type:
		n, err := strconv.ParseInt(text, 10, 32)
		return scalar.NewTime32Scalar(arrow.Time32(n), t), err
	case *arrow.Time64Type:
		n, err := strconv.ParseInt(text, 10, 64)
		return scalar.NewTime64Scalar(arrow.Time64(n), t), err
	}
	return nil, fmt.Errorf("a path can't hold this type")
}

// parseISODate reads what appendDate writes.
func parseISODate(text string) (int64, error) {
	var b bucket
	ms, _, err := formats{isoDate()}.parse(&b, text, utcZone, &span{}, 2000)
	return floorDiv(ms, msPerDay), err
}

func isoDate() *pattern {
	p, _ := compilePattern("yyyy-MM-dd") // a valid pattern
	return p
}

// parseTimestampText reads a number in the column's unit, as the Avro path writes it, or a text, as Spark's rows and SQL do;
// texts stand in UTC.
func parseTimestampText(text string, t *arrow.TimestampType) (int64, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	head, fraction, _ := strings.Cut(strings.Replace(text, "T", " ", 1), ".")
	if !strings.Contains(head, ":") {
		head += " 00:00:00"
	} else if strings.Count(head, ":") == 1 {
		head += ":00"
	}
	p, err := compilePattern("yyyy-MM-dd HH:mm:ss")
	if err != nil {
		return 0, err
	}
	var b bucket
	ms, _, err := formats{p}.parse(&b, head, utcZone, &span{}, 2000)
	if err != nil {
		return 0, err
	}
	for len(fraction) < 9 {
		fraction += "0"
	}
	nanos, err := strconv.ParseUint(fraction[:9], 10, 32)
	if err != nil {
		return 0, err
	}
	unit := int64(t.Unit.Multiplier()) // ns
	return floorDiv(ms, 1000)*(1e9/unit) + int64(nanos)/unit, nil
}

// parseDecimal reads what appendDecimal writes; more digits than the type has are an error.
func parseDecimal(text string, precision, scale int32) (*big.Int, error) {
	mantissa, exponent, _ := strings.Cut(strings.ToUpper(text), "E")
	shift := int64(scale)
	if exponent != "" {
		e, err := strconv.ParseInt(exponent, 10, 16)
		if err != nil {
			return nil, err
		}
		shift += e
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	shift -= int64(len(fraction))
	n, ok := new(big.Int).SetString(whole+fraction, 10)
	if !ok || len(mantissa) > 100 || shift > 100 || shift < -100 {
		return nil, strconv.ErrSyntax
	}
	ten := big.NewInt(10)
	if shift >= 0 {
		n.Mul(n, new(big.Int).Exp(ten, big.NewInt(shift), nil))
	} else {
		rest := new(big.Int)
		n.QuoRem(n, new(big.Int).Exp(ten, big.NewInt(-shift), nil), rest)
		if rest.Sign() != 0 {
			return nil, fmt.Errorf("more than %d digits behind the point", scale)
		}
	}
	if new(big.Int).Abs(n).Cmp(new(big.Int).Exp(ten, big.NewInt(int64(precision)), nil)) >= 0 {
		return nil, fmt.Errorf("more than %d digits", precision)
	}
	return n, nil
}

// Partition makes the partition path of constants, for pruning: a filter "column = constant" holds only in the partition of
// that constant. It must not be used for ranges, see [Keygen.Ordered].
func (k *Keygen) Partition(fields Fields) (string, error) {
	path, err := k.appendPartition(nil, &looseRecord{k: k, fields: fields}, &work{})
	if err != nil {
		return "", inRow(err, 0)
	}
	return string(path), nil
}

// Ordered reports whether the partition texts of a time column sort as its times do, so that a range can be pruned: years
// of four digits first, then fixed-width fields from larger to smaller, 24 hours, no zone. Compare with <= where the filter
// says <, and only for years 0 to 9999.
func (k *Keygen) Ordered() bool {
	if k.times == nil || k.times.output == nil {
		return false
	}
	order := "yMdHmsS"
	at := 0
	for _, p := range k.times.output.parts {
		if p.letter == 0 {
			continue
		}
		i := strings.IndexByte(order, p.letter)
		width := 2
		switch {
		case i == 0:
			width = 4
		case i == 6:
			width = p.min
		}
		if i != at || p.min != width || p.two {
			return false
		}
		at++
	}
	return at > 0
}
