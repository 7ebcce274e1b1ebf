package sparksql

import (
	"strconv"
	"strings"
)

// expression reads by precedence: OR, AND, NOT, predicates, then values.
func (p *parser) expression() node {
	p.enter()
	defer p.leave()
	left := p.conjunction()
	for t := p.peek(); p.take("or"); t = p.peek() {
		left = node{binaryExpr{"or", left, p.conjunction()}, t.pos}
	}
	return left
}

func (p *parser) conjunction() node {
	left := p.negation()
	for t := p.peek(); p.take("and"); t = p.peek() {
		left = node{binaryExpr{"and", left, p.negation()}, t.pos}
	}
	return left
}

func (p *parser) negation() node {
	if t := p.peek(); p.take("not") || p.take("!") {
		p.enter()
		defer p.leave()
		return node{unaryExpr{"not", p.negation()}, t.pos}
	}
	return p.predicate()
}

func (p *parser) predicate() node {
	left := p.value(0)
	for {
		t := p.peek()
		not := p.take("not")
		switch {
		case p.take("between"):
			b := betweenExpr{x: left, not: not, low: p.value(0)}
			p.need("and")
			b.high = p.value(0)
			left = node{b, t.pos}
		case p.take("in"):
			left = node{p.in(left, not), t.pos}
		case p.is("like"), p.is("ilike"), p.is("rlike"), p.is("regexp"):
			left = node{p.like(left, not), t.pos}
		case not:
			fail(p.peek().pos, "BETWEEN, IN, LIKE or RLIKE is expected after NOT, not %s", p.peek().show())
		case p.take("is"):
			left = p.isWhat(left, t.pos)
		case t.mark("=") || t.mark("==") || t.mark("<>") || t.mark("!=") || t.mark("<") || t.mark("<=") || t.mark(">") || t.mark(">=") || t.mark("<=>"):
			p.next()
			op := map[string]string{"==": "=", "!=": "<>"}[t.text]
			if op == "" {
				op = t.text
			}
			left = node{binaryExpr{op, left, p.value(0)}, t.pos}
		default:
			return left
		}
	}
}

func (p *parser) in(left node, not bool) inExpr {
	in := inExpr{x: left, not: not}
	p.need("(")
	if p.peek().word("select", "with") {
		in.query = p.query()
	} else {
		for {
			in.list = append(in.list, p.expression())
			if !p.take(",") {
				break
			}
		}
	}
	p.need(")")
	return in
}

func (p *parser) like(left node, not bool) likeExpr {
	l := likeExpr{x: left, not: not, op: strings.ToLower(p.next().text)}
	if l.op == "regexp" {
		l.op = "rlike"
	}
	if p.is("any") || p.is("some") || p.is("all") {
		if l.quantifier = strings.ToLower(p.next().text); l.quantifier == "some" {
			l.quantifier = "any"
		}
		p.need("(")
		for {
			l.list = append(l.list, p.value(0))
			if !p.take(",") {
				break
			}
		}
		p.need(")")
		return l
	}
	l.pattern = p.value(0)
	l.escape = `\`
	if p.take("escape") {
		t := p.next()
		if t.kind != tokText || len([]rune(t.text)) != 1 {
			fail(t.pos, "ESCAPE needs a string of one character")
		}
		l.escape = t.text
	}
	return l
}

func (p *parser) isWhat(left node, pos int) node {
	not := p.take("not")
	t := p.peek()
	switch {
	case p.take("null"), p.take("true"), p.take("false"):
		return node{isExpr{left, strings.ToLower(t.text), not}, pos}
	case p.take("unknown"):
		return node{isExpr{left, "null", not}, pos}
	case p.take("distinct", "from"):
		return node{distinctFrom{left, p.value(0), not}, pos}
	}
	fail(t.pos, "NULL, TRUE, FALSE or DISTINCT FROM is expected after IS, not %s", t.show())
	return node{}
}

// levels of the operators between values, the loosest first.
var levels = [][]string{{"|"}, {"^"}, {"&"}, {"+", "-", "||"}, {"*", "/", "%", "div"}}

func (p *parser) value(level int) node {
	if level == len(levels) {
		return p.unary()
	}
	left := p.value(level + 1)
	for {
		t := p.peek()
		op := ""
		for _, o := range levels[level] {
			if t.mark(o) || o == "div" && t.word(o) {
				op = o
			}
		}
		if op == "" {
			return left
		}
		p.next()
		left = node{binaryExpr{op, left, p.value(level + 1)}, t.pos}
	}
}

func (p *parser) unary() node {
	t := p.peek()
	if t.mark("-") || t.mark("+") || t.mark("~") {
		p.next()
		p.enter()
		defer p.leave()
		if n := p.peek(); t.mark("-") && n.kind == tokNumber {
			p.tokens[p.at].text = "-" + n.text // -128Y and -9223372036854775808 are numbers of their own
			return p.unary()
		}
		x := p.unary()
		if t.mark("+") {
			return x
		}
		return node{unaryExpr{t.text, x}, t.pos}
	}
	return p.postfix(p.primary())
}

func (p *parser) postfix(x node) node {
	for {
		t := p.peek()
		switch {
		case p.take("["):
			x = node{indexExpr{x, p.value(0)}, t.pos}
			p.need("]")
		case t.mark(".") && p.ahead(1).kind != tokMark && p.ahead(1).kind != tokEnd:
			p.next()
			x = node{fieldExpr{x, p.name()}, t.pos}
		case p.take("::"):
			x = node{castExpr{x: x, typ: p.typeName()}, t.pos}
		default:
			return x
		}
	}
}

func (p *parser) primary() node {
	t := p.peek()
	switch t.kind {
	case tokText:
		text := ""
		for p.peek().kind == tokText { // 'a' 'b' is one string
			text += p.next().text
		}
		return node{textLit{text}, t.pos}
	case tokNumber:
		p.next()
		return node{numLit{t.text}, t.pos}
	case tokQuoted:
		return p.reference()
	case tokWord:
		return p.word(t)
	}
	switch {
	case p.take("*"):
		return node{starRef{}, t.pos}
	case p.take("("):
		return p.bracket(t.pos)
	}
	fail(t.pos, "an expression is expected, not %s", t.show())
	return node{}
}

// bracket reads what stands in brackets: a lambda's parameters, a subquery, a tuple or an expression.
func (p *parser) bracket(pos int) node {
	if p.peek().word("select", "with", "values") || p.peek().mark("(") && p.bracketedQuery() {
		mark := p.at
		q := p.query()
		if p.take(")") {
			return node{subquery{q}, pos}
		}
		p.at = mark
	}
	var list []node
	for {
		x := p.expression()
		if p.take("as") { // (expr AS name): the name is not needed here
			p.name()
		}
		list = append(list, x)
		if !p.take(",") {
			break
		}
	}
	p.need(")")
	if p.is("->") {
		l := lambdaExpr{}
		for _, x := range list {
			ref, ok := x.expr.(nameRef)
			if !ok || len(ref.parts) != 1 {
				fail(x.pos, "a lambda's parameters are names")
			}
			l.params = append(l.params, ref.parts[0])
		}
		p.next()
		l.body = p.expression()
		return node{l, pos}
	}
	if len(list) == 1 {
		return list[0]
	}
	return node{tupleExpr{list}, pos}
}

// word reads what begins with a word: a literal, a special form, a call or a column.
func (p *parser) word(t token) node {
	next := p.ahead(1)
	switch {
	case t.word("null"):
		p.next()
		return node{nullLit{}, t.pos}
	case t.word("true"), t.word("false"):
		p.next()
		return node{boolLit{t.word("true")}, t.pos}
	case t.word("case"):
		return p.caseExpr()
	case t.word("interval") && (next.kind == tokNumber || next.kind == tokText || next.mark("-") || next.mark("(")):
		return p.interval()
	case t.word("date", "timestamp", "timestamp_ntz", "timestamp_ltz", "x") && next.kind == tokText:
		p.next()
		return node{typedLit{strings.ToLower(t.text), p.next().text}, t.pos}
	case t.word("exists") && next.mark("(") && p.ahead(2).word("select", "with"):
		p.next()
		p.next()
		q := p.query()
		p.need(")")
		return node{existsExpr{q}, t.pos}
	case t.word("cast", "try_cast") && next.mark("("):
		p.next()
		p.next()
		x := p.expression()
		p.need("as")
		typ := p.typeName()
		p.need(")")
		return node{castExpr{x, typ, t.word("try_cast")}, t.pos}
	case next.mark("->"):
		p.next()
		p.next()
		return node{lambdaExpr{[]string{t.text}, p.expression()}, t.pos}
	case next.mark("("):
		p.next()
		return p.call(t.text, t.pos)
	case t.word("current_date", "current_timestamp", "localtimestamp", "current_user"):
		p.next()
		return node{callExpr{name: strings.ToLower(t.text)}, t.pos}
	case t.word("from", "where", "then", "when", "else", "end", "and", "or", "on", "select", "group", "order", "having", "union"):
		fail(t.pos, "an expression is expected, not %s", t.show())
	}
	return p.reference()
}

func (p *parser) reference() node {
	t := p.peek()
	parts := []string{p.name()}
	for p.peek().mark(".") {
		if p.ahead(1).mark("*") {
			p.next()
			p.next()
			return node{starRef{parts}, t.pos}
		}
		p.next()
		parts = append(parts, p.name())
	}
	return node{nameRef{parts}, t.pos}
}

func (p *parser) caseExpr() node {
	t := p.next()
	var c caseExpr
	if !p.is("when") {
		c.operand = ptr(p.expression())
	}
	for p.take("when") {
		c.when = append(c.when, p.expression())
		p.need("then")
		c.then = append(c.then, p.expression())
	}
	if len(c.when) == 0 {
		fail(p.peek().pos, "WHEN is expected, not %s", p.peek().show())
	}
	if p.take("else") {
		c.other = ptr(p.expression())
	}
	p.need("end")
	return node{c, t.pos}
}

func (p *parser) interval() node {
	t := p.next()
	var v intervals
	for {
		n := p.peek()
		if n.kind != tokNumber && n.kind != tokText && !n.mark("-") && !n.mark("(") {
			break
		}
		if n.kind == tokText && p.ahead(1).kind != tokWord || n.kind == tokText && p.ahead(1).word(stops...) || n.kind == tokText && strings.ContainsAny(n.text, " ") {
			// INTERVAL '1 day 2 hours'
			p.next()
			words := strings.Fields(n.text)
			if len(words) == 0 || len(words)%2 != 0 {
				fail(n.pos, "interval %q is not NUMBER UNIT …", n.text)
			}
			for i := 0; i < len(words); i += 2 {
				v.parts = append(v.parts, intervalPart{node{numLit{words[i]}, n.pos}, words[i+1]})
			}
			continue
		}
		x := p.unary()
		if s, ok := x.expr.(textLit); ok {
			x.expr = numLit{strings.TrimSpace(s.s)}
		}
		v.parts = append(v.parts, intervalPart{x, p.name()})
	}
	for i, part := range v.parts {
		unit := strings.TrimSuffix(strings.ToLower(part.unit), "s")
		switch unit {
		case "year", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond":
		default:
			fail(t.pos, "interval unit %s is not known", part.unit)
		}
		v.parts[i].unit = unit
		if n, ok := part.value.expr.(numLit); ok {
			if _, err := strconv.ParseFloat(n.s, 64); err != nil {
				fail(t.pos, "%q is no number of %ss", n.s, unit)
			}
		}
	}
	return node{v, t.pos}
}

// call reads the arguments of a function, with the forms that have words between them.
func (p *parser) call(name string, pos int) node {
	c := callExpr{name: strings.ToLower(name)}
	p.need("(")
	switch {
	case p.take(")"):
		return p.afterCall(c, pos)
	case p.is("*", ")") && c.name == "count":
		p.next()
		c.star = true
	case c.name == "extract" && p.ahead(1).word("from"):
		t := p.next()
		p.next()
		c.name = "date_part"
		c.args = []node{{textLit{t.text}, t.pos}, p.expression()}
	case c.name == "trim" && (p.is("both") || p.is("leading") || p.is("trailing")):
		side := p.next()
		c.name = map[string]string{"both": "btrim", "leading": "ltrim", "trailing": "rtrim"}[strings.ToLower(side.text)]
		var what *node
		if !p.is("from") {
			what = ptr(p.expression())
		}
		p.need("from")
		c.args = []node{p.expression()}
		if what != nil {
			c.args = append(c.args, *what)
		}
	case c.name == "timestampadd" || c.name == "timestampdiff" || c.name == "dateadd" || c.name == "date_diff" || c.name == "datediff" && p.peek().kind == tokWord && p.ahead(1).mark(","):
		if t := p.peek(); t.kind == tokWord && p.ahead(1).mark(",") && intervalUnit(t.text) {
			p.next()
			c.args = append(c.args, node{textLit{strings.ToLower(t.text)}, t.pos})
			p.need(",")
		}
		p.arguments(&c)
	default:
		if p.take("distinct") {
			c.distinct = true
		} else {
			p.take("all")
		}
		p.arguments(&c)
		if c.name == "struct" {
			c.name = "named_struct"
		}
	}
	if p.take("ignore", "nulls") {
		c.ignoreNulls = true
	} else {
		p.take("respect", "nulls")
	}
	p.need(")")
	return p.afterCall(c, pos)
}

func intervalUnit(s string) bool {
	switch strings.ToLower(s) {
	case "year", "quarter", "month", "week", "day", "dayofyear", "hour", "minute", "second", "millisecond", "microsecond":
		return true
	}
	return false
}

func (p *parser) arguments(c *callExpr) {
	if c.name == "position" {
		c.args = []node{p.value(0)}
		if p.take("in") {
			c.args = append(c.args, p.value(0))
			return
		}
		p.need(",")
	}
	for {
		x := p.expression()
		switch {
		case (c.name == "substring" || c.name == "substr") && len(c.args) == 0 && p.take("from"):
			c.args = append(c.args, x, p.expression())
			if p.take("for") {
				c.args = append(c.args, p.expression())
			}
			return
		case c.name == "trim" && len(c.args) == 0 && p.take("from"):
			c.name = "btrim"
			c.args = append(c.args, p.expression(), x)
			return
		case c.name == "struct":
			c.args = append(c.args, node{textLit{p.memberName(x, len(c.args)/2)}, x.pos})
		}
		c.args = append(c.args, x)
		if !p.take(",") {
			return
		}
	}
}

// memberName is what struct(a, b AS c, d + 1) calls a member: a, c, col3.
func (p *parser) memberName(x node, i int) string {
	if p.take("as") {
		return p.name()
	}
	switch e := x.expr.(type) {
	case nameRef:
		return e.parts[len(e.parts)-1]
	case fieldExpr:
		return e.name
	}
	return "col" + strconv.Itoa(i+1)
}

// afterCall reads FILTER, IGNORE NULLS and OVER.
func (p *parser) afterCall(c callExpr, pos int) node {
	if p.take("filter", "(") {
		p.need("where")
		c.filter = ptr(p.expression())
		p.need(")")
	}
	if p.take("ignore", "nulls") {
		c.ignoreNulls = true
	} else {
		p.take("respect", "nulls")
	}
	if p.take("over") {
		c.over = p.window()
	}
	return node{c, pos}
}

// typeName reads a type: decimal(10,2), array<string>, struct<a: int>.
func (p *parser) typeName() *Type {
	p.enter()
	defer p.leave()
	t := p.next()
	number := func() int {
		n := p.next()
		v, err := strconv.Atoi(n.text)
		if err != nil {
			fail(n.pos, "a number is expected, not %s", n.show())
		}
		return v
	}
	switch name := strings.ToLower(t.text); name {
	case "boolean":
		return simple(Boolean)
	case "tinyint", "byte":
		return simple(Byte)
	case "smallint", "short":
		return simple(Short)
	case "int", "integer":
		return simple(Int)
	case "bigint", "long":
		return simple(Long)
	case "float", "real":
		return simple(Float)
	case "double":
		return simple(Double)
	case "string":
		return simple(String)
	case "varchar", "char", "character":
		p.need("(")
		number()
		p.need(")")
		return simple(String) // as Spark casts to it: the length is not looked at
	case "binary":
		return simple(Binary)
	case "date":
		return simple(Date)
	case "timestamp", "timestamp_ltz":
		return simple(Timestamp)
	case "timestamp_ntz":
		return simple(TimestampNTZ)
	case "void":
		return simple(Null)
	case "decimal", "dec", "numeric":
		d := decimalType(10, 0)
		if p.take("(") {
			d.Precision = number()
			if p.take(",") {
				d.Scale = number()
			}
			p.need(")")
		}
		if d.Precision < 1 || d.Precision > maxPrecision || d.Scale < 0 || d.Scale > d.Precision {
			fail(t.pos, "there is no %s", d)
		}
		return d
	case "array":
		p.need("<")
		e := p.typeName()
		p.closeAngle()
		return arrayOf(e, true)
	case "map":
		p.need("<")
		k := p.typeName()
		p.need(",")
		v := p.typeName()
		p.closeAngle()
		return &Type{Kind: Map, Fields: []Field{{"key", k, false}, {"value", v, true}}}
	case "struct":
		p.need("<")
		s := &Type{Kind: Struct}
		for {
			f := Field{Name: p.name(), Nullable: true}
			p.take(":")
			f.Type = p.typeName()
			if p.take("not", "null") {
				f.Nullable = false
			}
			s.Fields = append(s.Fields, f)
			if !p.take(",") {
				break
			}
		}
		p.closeAngle()
		return s
	}
	fail(t.pos, "type %s is not known", t.show())
	return nil
}

// closeAngle reads one ">", also of what was read as ">=" or the like.
func (p *parser) closeAngle() {
	if t := p.peek(); t.kind == tokMark && t.text == ">=" {
		p.tokens[p.at].text = "="
		return
	}
	p.need(">")
}
