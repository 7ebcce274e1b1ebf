// Package predicate holds conditions over columns: written as text or built by calls, bound to a schema once, then evaluated
// on Arrow batches with SQL's three-valued logic, or asked whether a file, row group, page or partition can hold any row that
// passes.
package predicate

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrPredicate is wrapped by every error about a condition: its text, its columns, its constants.
var ErrPredicate = errors.New("invalid filter")

// Expr is a condition. Its String is text that [Parse] reads back as the same condition.
type Expr interface {
	fmt.Stringer
	// visit calls f with the path of every column.
	visit(f func(path []string))
}

// Columns names the columns that a condition looks at, each once, in order of appearance. A nested one is its path joined by
// dots.
func Columns(e Expr) []string {
	var out []string
	e.visit(func(path []string) {
		if name := strings.Join(path, "."); !slices.Contains(out, name) {
			out = append(out, name)
		}
	})
	return out
}

// Roots names the top-level columns that a condition looks at, each once.
func Roots(e Expr) []string {
	var out []string
	e.visit(func(path []string) {
		if !slices.Contains(out, path[0]) {
			out = append(out, path[0])
		}
	})
	return out
}

// Op is a comparison.
type Op uint8

// The comparisons.
const (
	EQ Op = iota
	NE
	LT
	LE
	GT
	GE
)

func (o Op) String() string { return [...]string{"=", "<>", "<", "<=", ">", ">="}[o] }

// mirrored is the comparison with its sides changed.
func (o Op) mirrored() Op { return [...]Op{EQ, NE, GT, GE, LT, LE}[o] }

// Comparison is column op constant. It is unknown (null) where the column is null.
type Comparison struct {
	Column []string
	Op     Op
	Value  Literal
}

// Membership is column IN (constants). As in SQL, no match among constants of which one is null is unknown.
type Membership struct {
	Column []string
	Values []Literal
}

// NullTest is column IS NULL. It is never unknown.
type NullTest struct{ Column []string }

// Prefix is column LIKE 'text%' for a text without other wildcards.
type Prefix struct {
	Column []string
	Text   string
}

// Junction is the AND (or OR) of its parts; without parts AND is true and OR is false.
type Junction struct {
	Or    bool
	Parts []Expr
}

// Negation is NOT; not unknown is unknown.
type Negation struct{ Inner Expr }

// Eq, Ne, Lt, Le, Gt and Ge compare a column with a Go value: nil, bool, integers, floats, string, []byte, time.Time,
// *big.Int or a Literal. The column is a path with dots for nested names.
func Eq(column string, value any) Expr { return compare(column, EQ, value) }

// Ne is column <> value.
func Ne(column string, value any) Expr { return compare(column, NE, value) }

// Lt is column < value.
func Lt(column string, value any) Expr { return compare(column, LT, value) }

// Le is column <= value.
func Le(column string, value any) Expr { return compare(column, LE, value) }

// Gt is column > value.
func Gt(column string, value any) Expr { return compare(column, GT, value) }

// Ge is column >= value.
func Ge(column string, value any) Expr { return compare(column, GE, value) }

// In is column IN (values).
func In(column string, values ...any) Expr {
	m := &Membership{Column: strings.Split(column, ".")}
	for _, v := range values {
		m.Values = append(m.Values, LiteralOf(v))
	}
	return m
}

// IsNull is column IS NULL.
func IsNull(column string) Expr { return &NullTest{Column: strings.Split(column, ".")} }

// NotNull is column IS NOT NULL.
func NotNull(column string) Expr { return Not(IsNull(column)) }

// StartsWith is column LIKE 'prefix%'.
func StartsWith(column, prefix string) Expr {
	return &Prefix{Column: strings.Split(column, "."), Text: prefix}
}

// And is true where all parts are.
func And(parts ...Expr) Expr { return &Junction{Parts: parts} }

// Or is true where one part is.
func Or(parts ...Expr) Expr { return &Junction{Or: true, Parts: parts} }

// Not turns true and false around.
func Not(e Expr) Expr { return &Negation{Inner: e} }

func compare(column string, op Op, value any) Expr {
	return &Comparison{Column: strings.Split(column, "."), Op: op, Value: LiteralOf(value)}
}

func (c *Comparison) visit(f func([]string)) { f(c.Column) }
func (m *Membership) visit(f func([]string)) { f(m.Column) }
func (n *NullTest) visit(f func([]string))   { f(n.Column) }
func (p *Prefix) visit(f func([]string))     { f(p.Column) }
func (n *Negation) visit(f func([]string))   { n.Inner.visit(f) }
func (j *Junction) visit(f func([]string)) {
	for _, p := range j.Parts {
		p.visit(f)
	}
}

func (c *Comparison) String() string {
	return pathText(c.Column) + " " + c.Op.String() + " " + c.Value.String()
}
func (n *NullTest) String() string { return pathText(n.Column) + " IS NULL" }
func (p *Prefix) String() string {
	return "starts_with(" + pathText(p.Column) + ", " + quoted(p.Text, '\'') + ")"
}
func (n *Negation) String() string { return "NOT (" + n.Inner.String() + ")" }

func (m *Membership) String() string {
	var b strings.Builder
	b.WriteString(pathText(m.Column) + " IN (")
	for i, v := range m.Values {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(v.String())
	}
	return b.String() + ")"
}

func (j *Junction) String() string {
	if len(j.Parts) == 0 {
		return strconv.FormatBool(!j.Or)
	}
	word := " AND "
	if j.Or {
		word = " OR "
	}
	parts := make([]string, len(j.Parts))
	for i, p := range j.Parts {
		parts[i] = p.String()
		if _, ok := p.(*Junction); ok {
			parts[i] = "(" + parts[i] + ")"
		}
	}
	return strings.Join(parts, word)
}

func pathText(path []string) string {
	out := make([]string, len(path))
	for i, p := range path {
		out[i] = quoted(p, '"')
	}
	return strings.Join(out, ".")
}

func quoted(s string, q byte) string {
	return string(q) + strings.ReplaceAll(s, string(q), string([]byte{q, q})) + string(q)
}

// LiteralKind is the form in which a constant was written.
type LiteralKind uint8

// The forms of constants. Only binding to a column's type gives a constant its value.
const (
	NullLiteral LiteralKind = iota
	BoolLiteral
	NumberLiteral
	TextLiteral
	BytesLiteral
	DateLiteral
	TimestampLiteral
)

// Literal is a constant as written.
type Literal struct {
	Kind LiteralKind
	Text string // digits of a number, the text, bytes, "true"
}

func (l Literal) String() string {
	switch l.Kind {
	case NullLiteral:
		return "NULL"
	case TextLiteral:
		return quoted(l.Text, '\'')
	case BytesLiteral:
		return "x'" + hex.EncodeToString([]byte(l.Text)) + "'"
	case DateLiteral:
		return "DATE " + quoted(l.Text, '\'')
	case TimestampLiteral:
		return "TIMESTAMP " + quoted(l.Text, '\'')
	}
	return l.Text
}

// LiteralOf makes a constant of a Go value. Values of other types become their text.
func LiteralOf(v any) Literal {
	switch v := v.(type) {
	case nil:
		return Literal{}
	case Literal:
		return v
	case bool:
		return Literal{BoolLiteral, strconv.FormatBool(v)}
	case string:
		return Literal{TextLiteral, v}
	case []byte:
		return Literal{BytesLiteral, string(v)}
	case float64:
		return floatLiteral(v, 64)
	case float32:
		return floatLiteral(float64(v), 32)
	case time.Time:
		return Literal{TimestampLiteral, v.UTC().Format("2006-01-02T15:04:05.999999999Z")}
	case *big.Int:
		return Literal{NumberLiteral, v.String()}
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return Literal{NumberLiteral, fmt.Sprint(v)}
	}
	return Literal{TextLiteral, fmt.Sprint(v)}
}

func floatLiteral(v float64, bits int) Literal {
	if v-v != 0 { // NaN or an infinity
		return Literal{TextLiteral, strings.Replace(strconv.FormatFloat(v, 'g', -1, bits), "Inf", "Infinity", 1)}
	}
	return Literal{NumberLiteral, strconv.FormatFloat(v, 'g', -1, bits)}
}
