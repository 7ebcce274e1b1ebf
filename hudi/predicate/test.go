package predicate

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// compareTest compiles column op constant for a column type.
func compareTest(dt arrow.DataType, op Op, lit Literal) (test, error) {
	if lit.Kind == NullLiteral {
		return constTest(unknown), nil
	}
	switch dt := dt.(type) {
	case *arrow.BooleanType:
		v, err := boolConstant(lit)
		return &boolTest{op, v}, err
	case *arrow.Int32Type, *arrow.Int64Type:
		n, err := numberConstant(lit)
		return integerTest(dt, op, n, 0), err
	case *arrow.Date32Type:
		n, err := dateConstant(lit)
		return integerTest(dt, op, n, 0), err
	case *arrow.Time32Type:
		n, err := timeConstant(lit)
		return integerTest(dt, op, n, unitDigits(dt.Unit)), err
	case *arrow.Time64Type:
		n, err := timeConstant(lit)
		return integerTest(dt, op, n, unitDigits(dt.Unit)), err
	case *arrow.TimestampType:
		n, err := timestampConstant(lit, dt.TimeZone != "")
		return integerTest(dt, op, n, unitDigits(dt.Unit)), err
	case *arrow.Float32Type, *arrow.Float64Type:
		v, err := floatConstant(lit)
		return &floatTest{op, v}, err
	case arrow.DecimalType:
		n, err := numberConstant(lit)
		if err != nil {
			return nil, err
		}
		return newDecimalTest(dt, op, n), nil
	case *arrow.StringType:
		if lit.Kind != TextLiteral {
			return nil, fmt.Errorf("the constant %s is no text; write it in single quotes", lit)
		}
		return &bytesTest{op, lit.Text}, nil
	case *arrow.BinaryType, *arrow.FixedSizeBinaryType:
		if lit.Kind != TextLiteral && lit.Kind != BytesLiteral {
			return nil, fmt.Errorf("the constant %s is no bytes; write x'00ff'", lit)
		}
		return &bytesTest{op, lit.Text}, nil
	}
	return nil, errors.New("columns of this type can only be tested for null")
}

// memberTest is IN: one set for integers and texts, else one comparison after the other.
func memberTest(dt arrow.DataType, values []Literal) (test, error) {
	m := &anyTest{}
	for _, v := range values {
		if v.Kind == NullLiteral {
			m.null = true
			continue
		}
		t, err := compareTest(dt, EQ, v)
		if err != nil {
			return nil, err
		}
		m.tests = append(m.tests, t)
	}
	m.index()
	return m, nil
}

// number is an exact decimal constant: unscaled / 10^scale.
type number struct {
	unscaled *big.Int
	scale    int64
}

// at gives the greatest integer n with n/10^digits <= the number, and whether it is equal.
func (n number) at(digits int64) (*big.Int, bool) {
	diff := digits - n.scale
	if diff >= 0 {
		return new(big.Int).Mul(n.unscaled, pow10(diff)), true
	}
	q, r := new(big.Int).DivMod(n.unscaled, pow10(-diff), new(big.Int)) // Euclidean: floor for a positive divisor
	return q, r.Sign() == 0
}

func pow10(n int64) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil) }

func unitDigits(u arrow.TimeUnit) int64 { return int64(u) * 3 } // s, ms, us, ns

// onGrid turns a comparison with a constant between two values of the type into one with the lower of them, or says that all
// values answer alike.
func onGrid(op Op, exact bool) (Op, *truth) {
	if exact {
		return op, nil
	}
	answer := no
	switch op {
	case EQ:
		return op, &answer
	case NE:
		answer = yes
		return op, &answer
	case LT, LE:
		return LE, nil
	}
	return GT, nil
}

// beyond is the answer of every value to a comparison with a constant above (or below) all values of the type.
func beyond(op Op, above bool) constTest {
	switch op {
	case EQ:
		return constTest(no)
	case NE:
		return constTest(yes)
	case LT, LE:
		if above {
			return constTest(yes)
		}
		return constTest(no)
	}
	if above {
		return constTest(no)
	}
	return constTest(yes)
}

func integerTest(dt arrow.DataType, op Op, n number, digits int64) test {
	if n.unscaled == nil { // the caller has an error
		return nil
	}
	v, exact := n.at(digits)
	op, answer := onGrid(op, exact)
	if answer != nil {
		return constTest(*answer)
	}
	if !v.IsInt64() {
		return beyond(op, v.Sign() > 0)
	}
	wide := true
	switch dt.ID() {
	case arrow.INT32, arrow.DATE32, arrow.TIME32:
		wide = false
		if i := v.Int64(); i > math.MaxInt32 || i < math.MinInt32 {
			return beyond(op, i > 0)
		}
	}
	return &intTest{op, v.Int64(), wide}
}

// constTest is the same for every value that is not null.
type constTest truth

func (t constTest) rows(_ arrow.Array, out []truth) {
	for i := range out {
		out[i] = truth(t)
	}
}
func (t constTest) outcomes(ColumnStats) outcomes {
	return outcomes{yes: truth(t) == yes, no: truth(t) == no}
}

type intTest struct {
	op   Op
	v    int64
	wide bool
}

func (t *intTest) rows(a arrow.Array, out []truth) {
	if t.wide {
		compareAll(arrow.GetValues[int64](a.Data(), 1), t.op, t.v, out)
	} else {
		compareAll(arrow.GetValues[int32](a.Data(), 1), t.op, int32(t.v), out)
	}
}

func (t *intTest) outcomes(s ColumnStats) outcomes {
	against := func(b Value) int { return cmp.Compare(b.i, t.v) }
	return between(t.op, order(s.Min, intValue, against), order(s.Max, intValue, against))
}

func compareAll[T int32 | int64](v []T, op Op, c T, out []truth) {
	v = v[:len(out)]
	switch op {
	case EQ:
		for i, x := range v {
			out[i] = truthOf(x == c)
		}
	case NE:
		for i, x := range v {
			out[i] = truthOf(x != c)
		}
	case LT:
		for i, x := range v {
			out[i] = truthOf(x < c)
		}
	case LE:
		for i, x := range v {
			out[i] = truthOf(x <= c)
		}
	case GT:
		for i, x := range v {
			out[i] = truthOf(x > c)
		}
	case GE:
		for i, x := range v {
			out[i] = truthOf(x >= c)
		}
	}
}

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// holds tells whether a comparison is true for a value that is so ordered against the constant.
func (o Op) holds(order int) bool {
	switch o {
	case EQ:
		return order == 0
	case NE:
		return order != 0
	case LT:
		return order < 0
	case LE:
		return order <= 0
	case GT:
		return order > 0
	}
	return order >= 0
}

type boolTest struct {
	op Op
	v  bool
}

func (t *boolTest) rows(a arrow.Array, out []truth) {
	b := a.(*array.Boolean)
	whenTrue, whenFalse := truthOf(t.op.holds(1-b2i(t.v))), truthOf(t.op.holds(0-b2i(t.v)))
	for i := range out {
		if b.Value(i) {
			out[i] = whenTrue
		} else {
			out[i] = whenFalse
		}
	}
}

func (t *boolTest) outcomes(s ColumnStats) outcomes {
	against := func(b Value) int { return cmp.Compare(b.i, int64(b2i(t.v))) }
	return between(t.op, order(s.Min, intValue, against), order(s.Max, intValue, against))
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

type floatTest struct {
	op Op
	v  float64
}

// compareFloats orders as Spark does: NaN equals NaN and is above everything; zeros are equal.
func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	}
	return b2i(a != a) - b2i(b != b)
}

func (t *floatTest) rows(a arrow.Array, out []truth) {
	if a, ok := a.(*array.Float32); ok {
		for i, v := range a.Float32Values()[:len(out)] {
			out[i] = truthOf(t.op.holds(compareFloats(float64(v), t.v)))
		}
		return
	}
	for i, v := range a.(*array.Float64).Float64Values()[:len(out)] {
		out[i] = truthOf(t.op.holds(compareFloats(v, t.v)))
	}
}

func (t *floatTest) outcomes(s ColumnStats) outcomes {
	against := func(b Value) int { return compareFloats(b.f, t.v) }
	o := between(t.op, order(s.Min, floatValue, against), order(s.Max, floatValue, against))
	// Statistics leave NaN out, and a NaN may be among the values.
	if t.op.holds(compareFloats(math.NaN(), t.v)) {
		o.yes = true
	} else {
		o.no = true
	}
	return o
}

type decimalTest struct {
	op    Op
	v     *big.Int
	small decimal128.Num
}

func newDecimalTest(dt arrow.DecimalType, op Op, n number) test {
	v, exact := n.at(int64(dt.GetScale()))
	op, answer := onGrid(op, exact)
	if answer != nil {
		return constTest(*answer)
	}
	t := &decimalTest{op: op, v: v}
	if dt.ID() == arrow.DECIMAL128 {
		if v.BitLen() > 126 {
			return beyond(op, v.Sign() > 0)
		}
		t.small = decimal128.FromBigInt(v)
	}
	return t
}

func (t *decimalTest) rows(a arrow.Array, out []truth) {
	if a, ok := a.(*array.Decimal128); ok {
		for i, v := range a.Values()[:len(out)] {
			out[i] = truthOf(t.op.holds(v.Cmp(t.small)))
		}
		return
	}
	for i, v := range a.(*array.Decimal256).Values()[:len(out)] {
		out[i] = truthOf(t.op.holds(v.BigInt().Cmp(t.v)))
	}
}

func (t *decimalTest) outcomes(s ColumnStats) outcomes {
	against := func(b Value) int { return b.d.Cmp(t.v) }
	return between(t.op, order(s.Min, decimalValue, against), order(s.Max, decimalValue, against))
}

type bytesTest struct {
	op Op
	v  string
}

func (t *bytesTest) rows(a arrow.Array, out []truth) {
	switch t.op {
	case EQ:
		eachBytes(a, out, func(v string) bool { return v == t.v })
	case NE:
		eachBytes(a, out, func(v string) bool { return v != t.v })
	default:
		eachBytes(a, out, func(v string) bool { return t.op.holds(strings.Compare(v, t.v)) })
	}
}

func eachBytes(a arrow.Array, out []truth, f func(string) bool) {
	switch a := a.(type) {
	case *array.String:
		for i := range out {
			out[i] = truthOf(f(a.Value(i)))
		}
	case *array.Binary:
		for i := range out {
			out[i] = truthOf(f(string(a.Value(i))))
		}
	case *array.FixedSizeBinary:
		for i := range out {
			out[i] = truthOf(f(string(a.Value(i))))
		}
	}
}

func (t *bytesTest) outcomes(s ColumnStats) outcomes {
	against := func(b Value) int { return strings.Compare(b.s, t.v) }
	return between(t.op, order(s.Min, bytesValue, against), order(s.Max, bytesValue, against))
}

type prefixTest string

func (t prefixTest) rows(a arrow.Array, out []truth) {
	eachBytes(a, out, func(v string) bool { return strings.HasPrefix(v, string(t)) })
}

func (t prefixTest) outcomes(s ColumnStats) outcomes {
	head := func(b Value) int {
		return bytes.Compare([]byte(b.s)[:min(len(b.s), len(t))], []byte(t))
	}
	lo, hi := order(s.Min, bytesValue, head), order(s.Max, bytesValue, head)
	// The lower bound's head may be at most the prefix, the upper bound's at least; equal heads at both ends leave no others.
	return outcomes{yes: (lo == 2 || lo <= 0) && (hi == 2 || hi >= 0), no: lo != 0 || hi != 0}
}

// anyTest is IN.
type anyTest struct {
	tests []test
	null  bool // a NULL among the constants: no match is unknown
	ints  map[int64]struct{}
	texts map[string]struct{}
}

// index makes a set where all constants are integers or texts.
func (t *anyTest) index() {
	if len(t.tests) < 4 {
		return
	}
	ints, texts := map[int64]struct{}{}, map[string]struct{}{}
	for _, one := range t.tests {
		switch one := one.(type) {
		case *intTest:
			ints[one.v] = struct{}{}
		case *bytesTest:
			texts[one.v] = struct{}{}
		case constTest: // a constant that no value equals
		default:
			return
		}
	}
	if len(ints) > 0 {
		t.ints = ints
	} else if len(texts) > 0 {
		t.texts = texts
	}
}

func (t *anyTest) rows(a arrow.Array, out []truth) {
	switch {
	case t.ints != nil:
		in := func(v int64) truth { _, ok := t.ints[v]; return truthOf(ok) }
		switch a.DataType().(arrow.FixedWidthDataType).BitWidth() {
		case 32:
			for i, v := range arrow.GetValues[int32](a.Data(), 1)[:len(out)] {
				out[i] = in(int64(v))
			}
		default:
			for i, v := range arrow.GetValues[int64](a.Data(), 1)[:len(out)] {
				out[i] = in(v)
			}
		}
	case t.texts != nil:
		eachBytes(a, out, func(v string) bool { _, ok := t.texts[v]; return ok })
	default:
		clear(out)
		one := make([]truth, len(out))
		for _, each := range t.tests {
			each.rows(a, one)
			for i, v := range one {
				out[i] |= v
			}
		}
	}
	if t.null {
		for i, v := range out {
			if v == no {
				out[i] = unknown
			}
		}
	}
}

func (t *anyTest) outcomes(s ColumnStats) outcomes {
	o := outcomes{no: true}
	for _, each := range t.tests {
		e := each.outcomes(s)
		o.yes = o.yes || e.yes
		o.no = o.no && e.no
	}
	if t.null {
		o.no = false
	}
	return o
}

func boolConstant(lit Literal) (bool, error) {
	if lit.Kind == BoolLiteral || lit.Kind == TextLiteral {
		switch strings.ToLower(lit.Text) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
	}
	return false, fmt.Errorf("the constant %s is neither true nor false", lit)
}

// numberConstant reads digits with point and exponent, exactly.
func numberConstant(lit Literal) (number, error) {
	bad := fmt.Errorf("the constant %s is no number", lit)
	if lit.Kind != NumberLiteral && lit.Kind != TextLiteral || len(lit.Text) > 1000 {
		return number{}, bad
	}
	text := strings.TrimSpace(lit.Text)
	exp := int64(0)
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		e, err := strconv.ParseInt(text[i+1:], 10, 32)
		if err != nil || e > 400 || e < -400 {
			return number{}, bad
		}
		text, exp = text[:i], e
	}
	whole, fraction, _ := strings.Cut(text, ".")
	digits := whole + fraction
	if body := strings.TrimLeft(digits, "+-"); body == "" || len(digits)-len(body) > 1 || strings.Trim(body, "0123456789") != "" {
		return number{}, bad
	}
	v, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return number{}, bad
	}
	scale := int64(len(fraction)) - exp
	if scale < 0 {
		v.Mul(v, pow10(-scale))
		scale = 0
	}
	return number{v, scale}, nil
}

func floatConstant(lit Literal) (float64, error) {
	if lit.Kind == NumberLiteral || lit.Kind == TextLiteral {
		v, err := strconv.ParseFloat(strings.TrimSpace(lit.Text), 64)
		if err == nil || errors.Is(err, strconv.ErrRange) { // too large is an infinity, as a cast makes it
			return v, nil
		}
	}
	return 0, fmt.Errorf("the constant %s is no number", lit)
}

func dateConstant(lit Literal) (number, error) {
	if lit.Kind == DateLiteral || lit.Kind == TextLiteral {
		if t, err := time.Parse(time.DateOnly, strings.TrimSpace(lit.Text)); err == nil {
			days := t.Unix() / 86400
			if t.Unix()%86400 < 0 {
				days--
			}
			return number{big.NewInt(days), 0}, nil
		}
	}
	return number{}, fmt.Errorf("the constant %s is no date; write '2024-02-29'", lit)
}

func timeConstant(lit Literal) (number, error) {
	if lit.Kind == TextLiteral {
		for _, layout := range []string{"15:04:05.999999999", "15:04"} {
			if t, err := time.Parse(layout, strings.TrimSpace(lit.Text)); err == nil {
				ns := int64(t.Hour()*3600+t.Minute()*60+t.Second())*1e9 + int64(t.Nanosecond())
				return number{big.NewInt(ns), 9}, nil
			}
		}
	}
	return number{}, fmt.Errorf("the constant %s is no time of day; write '12:34:56.000123'", lit)
}

// timestampConstant reads a date with or without a time of day, and for instants with or without a zone (UTC).
func timestampConstant(lit Literal, zoned bool) (number, error) {
	if lit.Kind != TextLiteral && lit.Kind != TimestampLiteral && lit.Kind != DateLiteral {
		return number{}, fmt.Errorf("the constant %s is no timestamp; write '2024-02-29T12:34:56.000123Z'", lit)
	}
	text := strings.Replace(strings.TrimSpace(lit.Text), " ", "T", 1)
	layouts := []string{"2006-01-02T15:04:05.999999999", "2006-01-02T15:04", time.DateOnly}
	for i, layout := range layouts {
		t, err := time.Parse(layout, text)
		if err != nil && i < 2 {
			if t, err = time.Parse(layout+"Z07:00", text); err == nil && !zoned {
				return number{}, fmt.Errorf("the constant %s has a zone, the column has none", lit)
			}
		}
		if err == nil {
			ns := new(big.Int).Mul(big.NewInt(t.Unix()), big.NewInt(1e9))
			return number{ns.Add(ns, big.NewInt(int64(t.Nanosecond()))), 9}, nil
		}
	}
	return number{}, fmt.Errorf("the constant %s is no timestamp; write '2024-02-29T12:34:56.000123Z'", lit)
}
