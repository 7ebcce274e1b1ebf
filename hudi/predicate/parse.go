package predicate

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxText  = 1 << 20
	maxDepth = 256
)

// Parse reads a condition as in a WHERE clause:
//
//	qty > 5 and region in ('eu', 'us') and not deleted
//	address.city like 'Ber%' or day between date '2024-01-01' and '2024-01-31'
//	"order id" is not null and price >= 10.50 and at < '2024-02-29 12:00:00'
//
// Comparisons = <> != < <= > >= stand between a column and a constant, in either order; further IN, BETWEEN, LIKE (a prefix
// and % alone), IS NULL, their NOT forms, starts_with(column, 'text'), a boolean column alone, AND, OR, NOT and brackets.
// Names may be quoted with " or `, nested names are joined by dots. Texts stand in single quotes (doubled inside), bytes as
// x'00ff', dates and timestamps as text, which the column's type gives its meaning.
func Parse(text string) (Expr, error) {
	p := parser{text: text}
	e, err := p.parse()
	if err != nil {
		return nil, fmt.Errorf("%w: %w in %q", ErrPredicate, err, shortened(text))
	}
	return e, nil
}

func shortened(s string) string {
	if len(s) > 200 {
		return strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}

func (p *parser) parse() (Expr, error) {
	if len(p.text) > maxText {
		return nil, fmt.Errorf("text longer than %d bytes", maxText)
	}
	if err := p.next(); err != nil {
		return nil, err
	}
	e, err := p.or(0)
	if err != nil {
		return nil, err
	}
	if p.tok.kind != endToken {
		return nil, p.unexpected("the end")
	}
	return e, nil
}

type tokenKind uint8

const (
	endToken tokenKind = iota
	nameToken
	quotedNameToken
	numberToken
	textToken
	bytesToken
	signToken
)

type token struct {
	kind tokenKind
	text string
	at   int
}

type parser struct {
	text string
	pos  int
	tok  token
}

func (p *parser) unexpected(want string) error {
	if p.tok.kind == endToken {
		return fmt.Errorf("it ends where %s should stand", want)
	}
	return fmt.Errorf("%q at byte %d where %s should stand", p.tok.text, p.tok.at, want)
}

// word tells whether the token is this keyword, in any case.
func (p *parser) word(w string) bool {
	return p.tok.kind == nameToken && strings.EqualFold(p.tok.text, w)
}

func (p *parser) sign(s string) bool { return p.tok.kind == signToken && p.tok.text == s }

// accept takes the keyword if it is there.
func (p *parser) accept(w string) (bool, error) {
	if !p.word(w) {
		return false, nil
	}
	return true, p.next()
}

func (p *parser) expectSign(s string) error {
	if !p.sign(s) {
		return p.unexpected(s)
	}
	return p.next()
}

func (p *parser) or(depth int) (Expr, error)  { return p.junction(depth, "or", p.and) }
func (p *parser) and(depth int) (Expr, error) { return p.junction(depth, "and", p.not) }

func (p *parser) junction(depth int, word string, part func(int) (Expr, error)) (Expr, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	first, err := part(depth + 1)
	if err != nil || !p.word(word) {
		return first, err
	}
	j := &Junction{Or: word == "or", Parts: []Expr{first}}
	for p.word(word) {
		if err := p.next(); err != nil {
			return nil, err
		}
		e, err := part(depth + 1)
		if err != nil {
			return nil, err
		}
		j.Parts = append(j.Parts, e)
	}
	return j, nil
}

func (p *parser) not(depth int) (Expr, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	yes, err := p.accept("not")
	if err != nil {
		return nil, err
	}
	if yes {
		e, err := p.not(depth + 1)
		return Not(e), err
	}
	if p.sign("(") {
		if err := p.next(); err != nil {
			return nil, err
		}
		e, err := p.or(depth + 1)
		if err != nil {
			return nil, err
		}
		return e, p.expectSign(")")
	}
	return p.term()
}

// term is one test, or a boolean constant or column.
func (p *parser) term() (Expr, error) {
	if p.tok.kind == nameToken || p.tok.kind == quotedNameToken {
		if lit, ok, err := p.literal(); ok || err != nil {
			if err != nil {
				return nil, err
			}
			if op, ok := p.operator(); ok {
				return p.reversed(lit, op)
			}
			if lit.Kind == BoolLiteral {
				return &Junction{Or: lit.Text == "false"}, nil
			}
			return nil, p.unexpected("a comparison")
		}
		if p.word("starts_with") || p.word("startswith") {
			return p.startsWith()
		}
		column, err := p.column()
		if err != nil {
			return nil, err
		}
		return p.test(column)
	}
	lit, ok, err := p.literal()
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, p.unexpected("a column or constant")
	}
	op, ok := p.operator()
	if !ok {
		return nil, p.unexpected("a comparison")
	}
	return p.reversed(lit, op)
}

func (p *parser) reversed(lit Literal, op Op) (Expr, error) {
	if err := p.next(); err != nil {
		return nil, err
	}
	column, err := p.column()
	if err != nil {
		return nil, err
	}
	return &Comparison{Column: column, Op: op.mirrored(), Value: lit}, nil
}

func (p *parser) startsWith() (Expr, error) {
	save := *p
	name := p.tok.text
	if err := p.next(); err != nil {
		return nil, err
	}
	if !p.sign("(") { // a column of that name
		*p = save
		if err := p.next(); err != nil {
			return nil, err
		}
		return p.test([]string{name})
	}
	if err := p.next(); err != nil {
		return nil, err
	}
	column, err := p.column()
	if err != nil {
		return nil, err
	}
	if err := p.expectSign(","); err != nil {
		return nil, err
	}
	if p.tok.kind != textToken {
		return nil, p.unexpected("a text")
	}
	e := &Prefix{Column: column, Text: p.tok.text}
	if err := p.next(); err != nil {
		return nil, err
	}
	return e, p.expectSign(")")
}

func (p *parser) column() ([]string, error) {
	var path []string
	for {
		if p.tok.kind != nameToken && p.tok.kind != quotedNameToken || p.reserved() {
			return nil, p.unexpected("a column")
		}
		path = append(path, p.tok.text)
		if err := p.next(); err != nil {
			return nil, err
		}
		if !p.sign(".") {
			return path, nil
		}
		if err := p.next(); err != nil {
			return nil, err
		}
	}
}

// reserved words must be quoted to be columns.
func (p *parser) reserved() bool {
	if p.tok.kind != nameToken {
		return false
	}
	switch strings.ToLower(p.tok.text) {
	case "and", "or", "not", "in", "is", "null", "true", "false", "like", "between":
		return true
	}
	return false
}

// test is what follows a column; nothing at all is a boolean column.
func (p *parser) test(column []string) (Expr, error) {
	if op, ok := p.operator(); ok {
		if err := p.next(); err != nil {
			return nil, err
		}
		lit, err := p.constant()
		return &Comparison{Column: column, Op: op, Value: lit}, err
	}
	if yes, err := p.accept("is"); yes || err != nil {
		if err != nil {
			return nil, err
		}
		return p.isNull(column)
	}
	negate, err := p.accept("not")
	if err != nil {
		return nil, err
	}
	var e Expr
	switch {
	case p.word("in"):
		e, err = p.in(column)
	case p.word("between"):
		e, err = p.between(column)
	case p.word("like"):
		e, err = p.like(column)
	case negate:
		return nil, p.unexpected("IN, BETWEEN or LIKE")
	default:
		return &Comparison{Column: column, Op: EQ, Value: Literal{BoolLiteral, "true"}}, nil
	}
	if err != nil {
		return nil, err
	}
	if negate {
		e = Not(e)
	}
	return e, nil
}

func (p *parser) isNull(column []string) (Expr, error) {
	negate, err := p.accept("not")
	if err != nil {
		return nil, err
	}
	var e Expr
	switch {
	case p.word("null"):
		e = &NullTest{Column: column}
	case p.word("true"), p.word("false"):
		// IS TRUE is never unknown: unknown is not true.
		e = And(Not(&NullTest{Column: column}), &Comparison{Column: column, Op: EQ, Value: Literal{BoolLiteral, strings.ToLower(p.tok.text)}})
	default:
		return nil, p.unexpected("NULL")
	}
	if negate {
		e = Not(e)
	}
	return e, p.next()
}

func (p *parser) in(column []string) (Expr, error) {
	if err := p.next(); err != nil {
		return nil, err
	}
	if err := p.expectSign("("); err != nil {
		return nil, err
	}
	m := &Membership{Column: column}
	for {
		lit, err := p.constant()
		if err != nil {
			return nil, err
		}
		m.Values = append(m.Values, lit)
		if !p.sign(",") {
			return m, p.expectSign(")")
		}
		if err := p.next(); err != nil {
			return nil, err
		}
	}
}

func (p *parser) between(column []string) (Expr, error) {
	if err := p.next(); err != nil {
		return nil, err
	}
	from, err := p.constant()
	if err != nil {
		return nil, err
	}
	yes, err := p.accept("and")
	if err != nil {
		return nil, err
	}
	if !yes {
		return nil, p.unexpected("AND")
	}
	to, err := p.constant()
	return And(&Comparison{Column: column, Op: GE, Value: from}, &Comparison{Column: column, Op: LE, Value: to}), err
}

func (p *parser) like(column []string) (Expr, error) {
	if err := p.next(); err != nil {
		return nil, err
	}
	if p.tok.kind != textToken {
		return nil, p.unexpected("a text")
	}
	text, open := strings.CutSuffix(p.tok.text, "%")
	if strings.ContainsAny(text, `%_\`) {
		return nil, fmt.Errorf("LIKE %q: only a prefix with %% at its end is supported", p.tok.text)
	}
	if err := p.next(); err != nil {
		return nil, err
	}
	if !open {
		return &Comparison{Column: column, Op: EQ, Value: Literal{TextLiteral, text}}, nil
	}
	return &Prefix{Column: column, Text: text}, nil
}

func (p *parser) operator() (Op, bool) {
	if p.tok.kind != signToken {
		return 0, false
	}
	switch p.tok.text {
	case "=", "==":
		return EQ, true
	case "<>", "!=":
		return NE, true
	case "<":
		return LT, true
	case "<=":
		return LE, true
	case ">":
		return GT, true
	case ">=":
		return GE, true
	}
	return 0, false
}

func (p *parser) constant() (Literal, error) {
	lit, ok, err := p.literal()
	if err == nil && !ok {
		err = p.unexpected("a constant")
	}
	return lit, err
}

// literal takes a constant if one is there.
func (p *parser) literal() (lit Literal, ok bool, err error) {
	switch p.tok.kind {
	case numberToken:
		lit = Literal{NumberLiteral, p.tok.text}
	case textToken:
		lit = Literal{TextLiteral, p.tok.text}
	case bytesToken:
		lit = Literal{BytesLiteral, p.tok.text}
	case signToken:
		if !p.sign("-") && !p.sign("+") {
			return lit, false, nil
		}
		minus := p.tok.text
		if err := p.next(); err != nil {
			return lit, false, err
		}
		if p.tok.kind != numberToken {
			return lit, false, p.unexpected("a number")
		}
		lit = Literal{NumberLiteral, strings.TrimPrefix(minus, "+") + p.tok.text}
	case nameToken:
		switch strings.ToLower(p.tok.text) {
		case "true", "false":
			lit = Literal{BoolLiteral, strings.ToLower(p.tok.text)}
		case "null":
		case "date", "timestamp", "timestamp_ntz", "decimal", "time":
			return p.typedLiteral()
		default:
			return lit, false, nil
		}
	default:
		return lit, false, nil
	}
	return lit, true, p.next()
}

// typedLiteral is DATE '…' and its like; without a text behind it the word is a column's name.
func (p *parser) typedLiteral() (lit Literal, ok bool, err error) {
	save := *p
	word := strings.ToLower(p.tok.text)
	if err := p.next(); err != nil {
		return lit, false, err
	}
	if p.tok.kind != textToken {
		*p = save
		return lit, false, nil
	}
	kind := TextLiteral
	switch word {
	case "date":
		kind = DateLiteral
	case "timestamp", "timestamp_ntz":
		kind = TimestampLiteral
	}
	lit = Literal{kind, p.tok.text}
	return lit, true, p.next()
}

// next reads the next token.
func (p *parser) next() error {
	for p.pos < len(p.text) {
		r, n := utf8.DecodeRuneInString(p.text[p.pos:])
		if !unicode.IsSpace(r) {
			break
		}
		p.pos += n
	}
	start := p.pos
	p.tok = token{at: start}
	if start == len(p.text) {
		return nil
	}
	rest := p.text[start:]
	switch c := rest[0]; {
	case c == '\'':
		return p.quotedToken('\'', textToken)
	case c == '"' || c == '`':
		return p.quotedToken(c, quotedNameToken)
	case (c == 'x' || c == 'X') && len(rest) > 1 && rest[1] == '\'':
		return p.hexToken()
	case c >= '0' && c <= '9' || c == '.' && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9':
		p.pos += numberLength(rest)
		p.tok.kind = numberToken
	case isNameStart(rest):
		p.pos += nameLength(rest)
		p.tok.kind = nameToken
	default:
		p.tok.kind = signToken
		p.pos++
		if len(rest) > 1 {
			switch rest[:2] {
			case "<=", ">=", "<>", "!=", "==":
				p.pos++
			}
		}
		if !strings.ContainsRune("()=<>!,.-+", rune(c)) || rest[:p.pos-start] == "!" {
			r, _ := utf8.DecodeRuneInString(rest)
			return fmt.Errorf("character %q at byte %d", r, start)
		}
	}
	p.tok.text = p.text[start:p.pos]
	return nil
}

func isNameStart(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return r == '_' || r != utf8.RuneError && unicode.IsLetter(r)
}

func nameLength(s string) int {
	for i, r := range s {
		if r != '_' && r != '$' && !unicode.IsLetter(r) && !unicode.IsDigit(r) || r == utf8.RuneError {
			return i
		}
	}
	return len(s)
}

func numberLength(s string) int {
	i := 0
	digits := func() {
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
	}
	digits()
	if i < len(s) && s[i] == '.' {
		i++
		digits()
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		save := i
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		from := i
		if digits(); i == from {
			i = save
		}
	}
	return i
}

// quotedToken reads up to the closing quote; a doubled one inside stands for itself.
func (p *parser) quotedToken(q byte, kind tokenKind) error {
	var b strings.Builder
	for i := p.pos + 1; i < len(p.text); i++ {
		if p.text[i] != q {
			b.WriteByte(p.text[i])
			continue
		}
		if i+1 < len(p.text) && p.text[i+1] == q {
			b.WriteByte(q)
			i++
			continue
		}
		p.pos = i + 1
		p.tok.kind, p.tok.text = kind, b.String()
		if kind == quotedNameToken && p.tok.text == "" {
			return fmt.Errorf("empty name at byte %d", p.tok.at)
		}
		return nil
	}
	return fmt.Errorf("quote at byte %d is not closed", p.tok.at)
}

func (p *parser) hexToken() error {
	p.pos++
	if err := p.quotedToken('\'', bytesToken); err != nil {
		return err
	}
	b, err := hex.DecodeString(p.tok.text)
	if err != nil {
		return fmt.Errorf("bytes at byte %d: %w", p.tok.at, err)
	}
	p.tok.text = string(b)
	return nil
}
