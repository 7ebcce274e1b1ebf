package sparksql

import (
	"slices"
	"strings"
)

type parser struct {
	tokens []token
	at     int
	depth  int
}

// maxDepth of nested expressions and queries: what is deeper is no statement that a person wrote.
const maxDepth = 200

// parseStatement reads one statement of Spark SQL.
func parseStatement(text string) (s statement, err error) {
	defer recovered(text, &err)
	p := &parser{tokens: lex(text)}
	s = p.statement()
	p.take(";")
	if t := p.peek(); t.kind != tokEnd {
		fail(t.pos, "%s is not expected here", t.show())
	}
	return s, nil
}

func (t token) show() string {
	switch t.kind {
	case tokEnd:
		return "the end of the statement"
	case tokText:
		return "'" + t.text + "'"
	}
	return t.text
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) ahead(n int) token { return p.tokens[min(p.at+n, len(p.tokens)-1)] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if p.at < len(p.tokens)-1 {
		p.at++
	}
	return t
}

func (t token) word(words ...string) bool {
	return t.kind == tokWord && slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, t.text) })
}

func (t token) mark(text string) bool { return t.kind == tokMark && t.text == text }

// is reports that the next words or marks are these.
func (p *parser) is(items ...string) bool {
	for i, item := range items {
		if t := p.ahead(i); !t.word(item) && !t.mark(item) {
			return false
		}
	}
	return true
}

// take reads these words or marks when they are next.
func (p *parser) take(items ...string) bool {
	if !p.is(items...) {
		return false
	}
	p.at = min(p.at+len(items), len(p.tokens)-1)
	return true
}

func (p *parser) need(item string) token {
	t := p.peek()
	if !t.word(item) && !t.mark(item) {
		fail(t.pos, "%s is expected, not %s", item, t.show())
	}
	return p.next()
}

func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		fail(p.peek().pos, "the statement is nested more than %d deep", maxDepth)
	}
}

func (p *parser) leave() { p.depth-- }

func (p *parser) name() string {
	t := p.peek()
	if t.kind != tokWord && t.kind != tokQuoted {
		fail(t.pos, "a name is expected, not %s", t.show())
	}
	return p.next().text
}

func (p *parser) names() (list []string) {
	p.need("(")
	for {
		list = append(list, p.name())
		if !p.take(",") {
			p.need(")")
			return list
		}
	}
}

func (p *parser) statement() (s statement) {
	switch t := p.peek(); {
	case t.word("create"):
		p.next()
		p.take("or", "replace")
		p.take("global")
		if !p.take("temporary") && !p.take("temp") {
			fail(p.peek().pos, "a transformer can create temporary views alone")
		}
		p.need("view")
		p.take("if", "not", "exists")
		s.view = p.name()
		var columns []string
		if p.is("(") {
			columns = p.names()
		}
		p.need("as")
		s.query = p.query()
		if columns != nil {
			s.query = &query{pos: t.pos, body: &selectBody{pos: t.pos, items: []selectItem{{x: node{starRef{}, t.pos}}},
				from: []relation{{query: s.query, alias: s.view, columns: columns, pos: t.pos}}}}
		}
	case t.word("set", "cache", "uncache", "refresh", "drop", "clear"):
		for p.peek().kind != tokEnd && !p.is(";") {
			p.next()
		}
	case t.word("select", "with", "values", "from", "table") || t.mark("("):
		s.query = p.query()
	default:
		fail(t.pos, "a transformer runs SELECT, WITH, VALUES and CREATE TEMPORARY VIEW, not %s", t.show())
	}
	return s
}

func (p *parser) query() *query {
	p.enter()
	defer p.leave()
	q := &query{pos: p.peek().pos}
	if p.take("with") {
		for {
			c := cte{name: p.name()}
			if p.is("(") {
				c.columns = p.names()
			}
			p.take("as")
			p.need("(")
			c.query = p.query()
			p.need(")")
			q.with = append(q.with, c)
			if !p.take(",") {
				break
			}
		}
	}
	q.body = p.setOperation(0)
	for {
		switch {
		case p.take("order", "by"):
			q.order = p.orderItems()
		case p.is("sort", "by") || p.is("distribute", "by") || p.is("cluster", "by"):
			// These say where Spark's tasks put rows; the answer's rows are the same.
			sorted := p.is("sort")
			p.next()
			p.next()
			if items := p.orderItems(); sorted {
				q.order = items
			}
		case p.take("limit"):
			if p.take("all") {
				break
			}
			q.limit = ptr(p.expression())
		case p.take("offset"):
			q.offset = ptr(p.expression())
		default:
			return q
		}
	}
}

func ptr[T any](v T) *T { return &v }

// setOperation: INTERSECT binds closer than UNION and EXCEPT.
func (p *parser) setOperation(level int) queryBody {
	p.enter()
	defer p.leave()
	var left queryBody
	if level == 0 {
		left = p.setOperation(1)
	} else {
		left = p.queryTerm()
	}
	for {
		t := p.peek()
		var op string
		switch {
		case level == 0 && t.word("union"):
			op = "UNION"
		case level == 0 && t.word("except", "minus"):
			op = "EXCEPT"
		case level == 1 && t.word("intersect"):
			op = "INTERSECT"
		default:
			return left
		}
		p.next()
		all := p.take("all")
		if !all {
			p.take("distinct")
		}
		var right queryBody
		if level == 0 {
			right = p.setOperation(1)
		} else {
			right = p.queryTerm()
		}
		left = &setBody{op: op, all: all, left: left, right: right, pos: t.pos}
	}
}

func (p *parser) queryTerm() queryBody {
	t := p.peek()
	switch {
	case p.take("("):
		q := p.query()
		p.need(")")
		return q
	case t.word("values"):
		p.next()
		v := &valuesBody{pos: t.pos}
		for {
			x := p.expression()
			if tuple, ok := x.expr.(tupleExpr); ok {
				v.rows = append(v.rows, tuple.list)
			} else {
				v.rows = append(v.rows, []node{x})
			}
			if !p.take(",") {
				return v
			}
		}
	case p.take("table"):
		return &selectBody{pos: t.pos, items: []selectItem{{x: node{starRef{}, t.pos}}}, from: []relation{p.relation()}}
	case t.word("from"): // FROM t SELECT …
		p.next()
		s := &selectBody{pos: t.pos}
		p.from(s)
		p.need("select")
		p.selectRest(s, false)
		return s
	case t.word("select"):
		p.next()
		s := &selectBody{pos: t.pos}
		p.selectRest(s, true)
		return s
	}
	fail(t.pos, "SELECT is expected, not %s", t.show())
	return nil
}

func (p *parser) selectRest(s *selectBody, from bool) {
	if p.take("distinct") {
		s.distinct = true
	} else {
		p.take("all")
	}
	for {
		s.items = append(s.items, p.selectItem())
		if !p.take(",") {
			break
		}
	}
	if from && p.take("from") {
		p.from(s)
	}
	if p.take("where") {
		s.where = ptr(p.expression())
	}
	if t := p.peek(); p.take("group", "by") {
		s.group = p.grouping(t.pos)
	}
	if p.take("having") {
		s.having = ptr(p.expression())
	}
	if p.take("window") {
		s.windows = map[string]*window{}
		for {
			name := strings.ToLower(p.name())
			p.need("as")
			s.windows[name] = p.window()
			if !p.take(",") {
				break
			}
		}
	}
}

func (p *parser) from(s *selectBody) {
	for {
		s.from = append(s.from, p.relation())
		for p.is("lateral", "view") {
			s.views = append(s.views, p.lateralView())
		}
		if !p.take(",") {
			return
		}
	}
}

// stops are the words that end an expression, so are no alias without AS.
var stops = []string{"from", "where", "group", "having", "order", "sort", "distribute", "cluster", "limit", "offset", "union", "except", "minus", "intersect", "lateral", "window",
	"join", "inner", "left", "right", "full", "cross", "semi", "anti", "natural", "on", "using", "as", "and", "or", "when", "then", "else", "end", "tablesample", "pivot", "unpivot", "select"}

func (p *parser) selectItem() (it selectItem) {
	it.x = p.expression()
	switch {
	case p.take("as"):
		if p.is("(") {
			it.aliases = p.names()
			return it
		}
		it.alias = p.aliasName()
	case p.peek().kind == tokQuoted || p.peek().kind == tokWord && !p.peek().word(stops...):
		it.alias = p.name()
	}
	return it
}

func (p *parser) aliasName() string {
	if t := p.peek(); t.kind == tokText {
		return p.next().text
	}
	return p.name()
}

func (p *parser) grouping(pos int) *grouping {
	g := &grouping{pos: pos}
	if p.take("all") {
		g.all = true
		return g
	}
	sets := func() {
		p.need("(")
		for {
			x := p.expressionOrEmpty()
			if tuple, ok := x.expr.(tupleExpr); ok {
				g.of = append(g.of, tuple.list)
			} else {
				g.of = append(g.of, []node{x})
			}
			if !p.take(",") {
				break
			}
		}
		p.need(")")
	}
	switch {
	case p.take("grouping", "sets"):
		g.sets = "GROUPING SETS"
		sets()
		return g
	case p.is("rollup", "(") || p.is("cube", "("):
		g.sets = strings.ToUpper(p.next().text)
		sets()
		return g
	}
	for {
		g.list = append(g.list, p.expression())
		if !p.take(",") {
			break
		}
	}
	if p.take("with", "rollup") {
		g.sets = "ROLLUP"
	} else if p.take("with", "cube") {
		g.sets = "CUBE"
	}
	if g.sets != "" {
		for _, x := range g.list {
			g.of = append(g.of, []node{x})
		}
		g.list = nil
	}
	return g
}

func (p *parser) expressionOrEmpty() node {
	if t := p.peek(); p.take("(", ")") {
		return node{tupleExpr{}, t.pos}
	}
	return p.expression()
}

func (p *parser) relation() relation {
	r := p.relationPrimary()
	for {
		j := join{kind: "inner", pos: p.peek().pos}
		j.natural = p.take("natural")
		switch {
		case p.take("join"), p.take("inner", "join"):
		case p.take("cross", "join"):
			j.kind = "cross"
		case p.take("left", "semi", "join"), p.take("semi", "join"):
			j.kind = "semi"
		case p.take("left", "anti", "join"), p.take("anti", "join"):
			j.kind = "anti"
		case p.take("left", "outer", "join"), p.take("left", "join"):
			j.kind = "left"
		case p.take("right", "outer", "join"), p.take("right", "join"):
			j.kind = "right"
		case p.take("full", "outer", "join"), p.take("full", "join"):
			j.kind = "full"
		default:
			if j.natural {
				fail(p.peek().pos, "JOIN is expected, not %s", p.peek().show())
			}
			return r
		}
		j.right = p.relationPrimary()
		if p.take("on") {
			j.on = ptr(p.expression())
		} else if p.take("using") {
			j.using = p.names()
		}
		r.joins = append(r.joins, j)
	}
}

func (p *parser) relationPrimary() relation {
	p.enter()
	defer p.leave()
	r := relation{pos: p.peek().pos}
	r.lateral = !p.is("lateral", "view") && p.take("lateral")
	switch {
	case p.is("("):
		if t := p.ahead(1); t.word("select", "with", "values", "from", "table") || t.mark("(") && p.bracketedQuery() {
			p.next()
			r.query = p.query()
			p.need(")")
		} else { // a join in brackets
			p.next()
			inner := p.relation()
			p.need(")")
			r.query = &selectBody{pos: r.pos, items: []selectItem{{x: node{starRef{}, r.pos}}}, from: []relation{inner}}
			fail(r.pos, "joins in brackets are not supported; write the joins one after the other, or a subquery with an alias")
		}
	case p.is("values"):
		r.query = p.queryTerm()
	default:
		for {
			r.name = append(r.name, p.name())
			if !p.take(".") {
				break
			}
		}
		if len(r.name) == 1 && p.is("(") {
			c := p.call(r.name[0], r.pos)
			call, ok := c.expr.(callExpr)
			if !ok {
				fail(r.pos, "%s is no function that gives rows", r.name[0])
			}
			r.call = &call
		}
	}
	if p.is("tablesample") || p.is("pivot") || p.is("unpivot") {
		fail(p.peek().pos, "%s is not supported", strings.ToUpper(p.peek().text))
	}
	if p.take("as") || p.peek().kind == tokQuoted || p.peek().kind == tokWord && !p.peek().word(stops...) {
		r.alias = p.name()
		if p.is("(") {
			r.columns = p.names()
		}
	}
	return r
}

// bracketedQuery looks past opening brackets for a query.
func (p *parser) bracketedQuery() bool {
	i := 0
	for p.ahead(i).mark("(") {
		i++
	}
	return p.ahead(i).word("select", "with", "values", "from", "table")
}

func (p *parser) lateralView() (v lateralView) {
	v.pos = p.peek().pos
	p.next()
	p.next()
	v.outer = p.take("outer")
	t := p.peek()
	call, ok := p.call(p.name(), t.pos).expr.(callExpr)
	if !ok {
		fail(t.pos, "LATERAL VIEW needs a function such as explode")
	}
	v.call = call
	if t := p.peek(); !t.word("as") && (t.kind == tokQuoted || t.kind == tokWord && !t.word(stops...)) {
		v.alias = p.name()
	}
	if p.take("as") || p.peek().kind == tokQuoted || p.peek().kind == tokWord && !p.peek().word(stops...) {
		for {
			v.columns = append(v.columns, p.name())
			if !p.is(",") || p.ahead(1).kind != tokWord && p.ahead(1).kind != tokQuoted || p.ahead(2).mark(".") || p.ahead(1).word("lateral") {
				break
			}
			p.next()
		}
	}
	return v
}

func (p *parser) orderItems() (list []orderItem) {
	for {
		o := orderItem{x: p.expression()}
		if p.take("desc") {
			o.desc = true
		} else {
			p.take("asc")
		}
		o.nullsFirst = !o.desc // Spark's rule: nulls are the smallest
		if p.take("nulls", "first") {
			o.nullsFirst = true
		} else if p.take("nulls", "last") {
			o.nullsFirst = false
		}
		list = append(list, o)
		if !p.take(",") {
			return list
		}
	}
}

func (p *parser) window() *window {
	w := &window{pos: p.peek().pos}
	if !p.is("(") {
		w.name = strings.ToLower(p.name())
		return w
	}
	p.next()
	if t := p.peek(); t.kind != tokEnd && !t.word("partition", "order", "rows", "range", "distribute", "sort") && !t.mark(")") {
		w.name = strings.ToLower(p.name())
	}
	if p.take("partition", "by") || p.take("distribute", "by") {
		for {
			w.partition = append(w.partition, p.expression())
			if !p.take(",") {
				break
			}
		}
	}
	if p.take("order", "by") || p.take("sort", "by") {
		w.order = p.orderItems()
	}
	if t := p.peek(); t.word("rows", "range") {
		p.next()
		w.frame = strings.ToUpper(t.text) + " "
		if p.take("between") {
			low := p.bound()
			p.need("and")
			w.frame += "BETWEEN " + low + " AND " + p.bound()
		} else {
			w.frame += "BETWEEN " + p.bound() + " AND CURRENT ROW"
		}
	}
	p.need(")")
	return w
}

func (p *parser) bound() string {
	switch {
	case p.take("unbounded", "preceding"):
		return "UNBOUNDED PRECEDING"
	case p.take("unbounded", "following"):
		return "UNBOUNDED FOLLOWING"
	case p.take("current", "row"):
		return "CURRENT ROW"
	}
	t := p.next()
	if t.kind != tokNumber || strings.Trim(t.text, "0123456789") != "" {
		fail(t.pos, "a frame's bound is UNBOUNDED, CURRENT ROW or a number, not %s", t.show())
	}
	if p.take("preceding") {
		return t.text + " PRECEDING"
	}
	p.need("following")
	return t.text + " FOLLOWING"
}
