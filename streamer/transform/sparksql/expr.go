package sparksql

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// val is a compiled expression: DuckDB's text for it, with Spark's type.
type val struct {
	sql  string
	t    *Type
	null bool
	// text is the value of a string literal, number that of a literal number without its suffix.
	text   *string
	number *string
}

// made is a value computed from others by DuckDB's text; it is null where one of them is.
func made(t *Type, format string, args ...val) val {
	texts := make([]any, len(args))
	v := val{t: t}
	for i, a := range args {
		texts[i] = a.sql
		v.null = v.null || a.null
	}
	v.sql = fmt.Sprintf(format, texts...)
	return v
}

// maybe makes a value nullable whatever its arguments are.
func maybe(v val) val {
	v.null = true
	return v
}

func list(vals []val) string {
	texts := make([]string, len(vals))
	for i, v := range vals {
		texts[i] = v.sql
	}
	return strings.Join(texts, ", ")
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func intLit(n int64) val {
	s := strconv.FormatInt(n, 10)
	return val{sql: "CAST(" + s + " AS BIGINT)", t: simple(Long), number: &s}
}

func textVal(s string) val {
	// DuckDB's text ends at no zero byte, but its parser's does.
	if strings.IndexByte(s, 0) >= 0 {
		return val{sql: "decode(from_hex('" + hex.EncodeToString([]byte(s)) + "'))", t: simple(String), text: &s}
	}
	return val{sql: quote(s), t: simple(String), text: &s}
}

// use is a column's value; columns of the source are marked as read.
func (c *compiler) use(col *column, pos int) val {
	if col.use > 0 {
		if col.bad != nil {
			fail(pos, "column %s: %s", col.name, col.bad)
		}
		c.used[col.use-1] = true
	}
	return val{sql: col.sql, t: col.t, null: col.null}
}

// maxText bounds what one expression becomes: some functions repeat their arguments.
const maxText = 1 << 20

// expr compiles an expression.
func (c *compiler) expr(x node, s *scope) val {
	v := c.compile(x, s)
	if len(v.sql) > maxText {
		fail(x.pos, "the expression is too large")
	}
	return v
}

func (c *compiler) compile(x node, s *scope) val {
	switch e := x.expr.(type) {
	case textLit:
		return textVal(e.s)
	case numLit:
		return number(e.s, x.pos)
	case nullLit:
		return val{sql: "NULL", t: simple(Null), null: true}
	case boolLit:
		return val{sql: strings.ToUpper(strconv.FormatBool(e.v)), t: simple(Boolean)}
	case typedLit:
		return c.typedLiteral(e, x.pos)
	case intervals:
		return c.interval(e, s, x.pos)
	case nameRef:
		return c.reference(e, s, x.pos)
	case starRef:
		fail(x.pos, "* is a column of SELECT alone, or count(*)")
	case callExpr:
		return c.call(e, s, x.pos)
	case unaryExpr:
		return c.unary(e, s, x.pos)
	case binaryExpr:
		return c.binary(e, s, x.pos)
	case castExpr:
		return c.explicitCast(c.expr(e.x, s), e.typ, x.pos)
	case caseExpr:
		return c.caseOf(e, s, x.pos)
	case betweenExpr:
		return c.between(e, s, x.pos)
	case inExpr:
		return c.in(e, s, x.pos)
	case likeExpr:
		return c.like(e, s, x.pos)
	case isExpr:
		return c.is(e, s, x.pos)
	case distinctFrom:
		v := c.compare("<=>", c.expr(e.l, s), c.expr(e.r, s), x.pos)
		if !e.not {
			v = made(simple(Boolean), "(NOT %s)", v)
		}
		return v
	case existsExpr:
		sql, _ := c.query(e.query, s, s.env)
		return val{sql: "EXISTS (" + sql + ")", t: simple(Boolean)}
	case subquery:
		sql, columns := c.query(e.query, s, s.env)
		if len(columns) != 1 {
			fail(x.pos, "a subquery in an expression gives one column, this one %d", len(columns))
		}
		return val{sql: "(" + sql + ")", t: columns[0].Type, null: true}
	case indexExpr:
		return c.index(c.expr(e.x, s), c.expr(e.i, s), x.pos)
	case fieldExpr:
		return c.member(c.expr(e.x, s), e.name, x.pos)
	case lambdaExpr:
		fail(x.pos, "a lambda is an argument of functions such as transform and filter alone")
	case tupleExpr:
		call := callExpr{name: "named_struct"}
		for i, item := range e.list {
			call.args = append(call.args, node{textLit{"col" + strconv.Itoa(i+1)}, item.pos}, item)
		}
		return c.call(call, s, x.pos)
	}
	fail(x.pos, "an expression of no known kind")
	return val{}
}

// number types a number as Spark does: 1 int, 3000000000 bigint, 1.5 decimal(2,1), 1e3 double, and by suffix.
func number(text string, pos int) val {
	upper := strings.ToUpper(text)
	digits := strings.TrimRight(upper, "LSYDFB")
	suffix := upper[len(digits):]
	whole := strings.Trim(strings.TrimPrefix(digits, "-"), "0123456789") == ""
	lit := func(t *Type) val {
		return val{sql: "CAST(" + digits + " AS " + t.Duck() + ")", t: t, number: &digits}
	}
	sized := func(bits int, k Kind) val {
		if _, err := strconv.ParseInt(digits, 10, bits); err != nil {
			fail(pos, "%s is no %s", text, kindNames[k])
		}
		return lit(simple(k))
	}
	switch suffix {
	case "L":
		return sized(64, Long)
	case "S":
		return sized(16, Short)
	case "Y":
		return sized(8, Byte)
	case "D":
		return val{sql: "CAST('" + digits + "' AS DOUBLE)", t: simple(Double), number: &digits}
	case "F":
		return val{sql: "CAST('" + digits + "' AS FLOAT)", t: simple(Float), number: &digits}
	}
	if suffix == "" && strings.ContainsAny(digits, "E") {
		return val{sql: "CAST('" + digits + "' AS DOUBLE)", t: simple(Double), number: &digits}
	}
	if suffix == "" && whole {
		if _, err := strconv.ParseInt(digits, 10, 32); err == nil {
			return lit(simple(Int))
		}
		if _, err := strconv.ParseInt(digits, 10, 64); err == nil {
			return lit(simple(Long))
		}
	}
	// A decimal: the digits as they are written, without leading zeros.
	if strings.Contains(digits, "E") {
		fail(pos, "%s: decimals with an exponent are not supported", text)
	}
	plain := strings.TrimPrefix(digits, "-")
	before, after, _ := strings.Cut(plain, ".")
	before = strings.TrimLeft(before, "0")
	t := decimalType(max(len(before)+len(after), 1), len(after))
	if t.Precision > maxPrecision {
		fail(pos, "%s has more than %d digits", text, maxPrecision)
	}
	return val{sql: "CAST('" + digits + "' AS " + t.Duck() + ")", t: t, number: &digits}
}

func (c *compiler) typedLiteral(e typedLit, pos int) val {
	switch e.typ {
	case "x":
		if len(e.s)%2 == 1 {
			e.s = "0" + e.s
		}
		if _, err := hex.DecodeString(e.s); err != nil {
			fail(pos, "X'%s' is no hexadecimal text", e.s)
		}
		return val{sql: "from_hex('" + e.s + "')", t: simple(Binary)}
	case "date":
		days, ok := parseDate(e.s)
		if !ok {
			fail(pos, "%q is no date", e.s)
		}
		return val{sql: "DATE '" + dateText(days) + "'", t: simple(Date)}
	}
	micros, _, ok := parseTimestamp(e.s)
	if !ok {
		fail(pos, "%q is no timestamp", e.s)
	}
	t := simple(Timestamp)
	if e.typ == "timestamp_ntz" {
		t = simple(TimestampNTZ)
	}
	return val{sql: "make_timestamp(" + strconv.FormatInt(micros, 10) + ")", t: t}
}

func (c *compiler) interval(e intervals, s *scope, pos int) val {
	parts := make([]val, len(e.parts))
	for i, part := range e.parts {
		if n, ok := part.value.expr.(numLit); ok {
			parts[i] = val{sql: "INTERVAL '" + n.s + " " + part.unit + "'", t: simple(Interval)}
			continue
		}
		v := c.castNumber(c.expr(part.value, s), simple(Int), pos)
		parts[i] = made(simple(Interval), "to_"+part.unit+"s(%s)", v)
	}
	v := parts[0]
	for _, p := range parts[1:] {
		v = made(simple(Interval), "(%s + %s)", v, p)
	}
	return v
}

// reference resolves a name: a lambda's parameter, qualifier.column, a column and its members; then the aliases of the SELECT
// list, then what stands outside of a subquery. Names know no case.
func (c *compiler) reference(e nameRef, s *scope, pos int) val {
	for at := s; at != nil; at = at.outer {
		if v, ok := c.resolve(e.parts, at, pos); ok {
			return v
		}
	}
	var near []string
	for at := s; at != nil; at = at.outer {
		for _, col := range at.columns {
			near = append(near, col.name)
		}
	}
	if len(near) > 30 {
		near = append(near[:30], "…")
	}
	fail(pos, "A column, variable, or function parameter with name %s cannot be resolved; there are %s", "`"+strings.Join(e.parts, "`.`")+"`", strings.Join(near, ", "))
	return val{}
}

func (c *compiler) resolve(parts []string, s *scope, pos int) (val, bool) {
	if v, ok := s.lambda[strings.ToLower(parts[0])]; ok {
		return c.members(v, parts[1:], pos), true
	}
	if s.first {
		if i := s.aliasOf(node{nameRef{parts[:1]}, pos}); i >= 0 && len(parts) == 1 {
			return s.aliases[i].v, true
		}
	}
	if len(parts) > 1 {
		if col := find(s.columns, parts[0], parts[1], pos); col != nil {
			return c.members(c.use(col, pos), parts[2:], pos), true
		}
	}
	if col := find(s.columns, "", parts[0], pos); col != nil {
		return c.members(c.use(col, pos), parts[1:], pos), true
	}
	if i := s.aliasOf(node{nameRef{parts[:1]}, pos}); i >= 0 {
		return c.members(s.aliases[i].v, parts[1:], pos), true
	}
	return val{}, false
}

func find(columns []column, qualifier, name string, pos int) *column {
	var found *column
	for i := range columns {
		col := &columns[i]
		if !strings.EqualFold(col.name, name) || qualifier == "" && col.hidden || qualifier != "" && !strings.EqualFold(col.qualifier, qualifier) {
			continue
		}
		if found != nil {
			fail(pos, "Reference `%s` is ambiguous, could be: [`%s`.`%s`, `%s`.`%s`]", name, found.qualifier, found.name, col.qualifier, col.name)
		}
		found = col
	}
	return found
}

func (c *compiler) members(v val, names []string, pos int) val {
	for _, n := range names {
		v = c.member(v, n, pos)
	}
	return v
}

// member is struct.member, also of each struct in an array, and map.key.
func (c *compiler) member(v val, name string, pos int) val {
	switch v.t.Kind {
	case Struct:
		i := fieldIndex(v.t, name, pos)
		f := v.t.Fields[i]
		return val{sql: fmt.Sprintf("struct_extract(%s, 'f%d')", v.sql, i), t: f.Type, null: v.null || f.Nullable}
	case Array:
		if e := v.t.elem(); e.Kind == Struct {
			i := fieldIndex(e, name, pos)
			f := e.Fields[i]
			l := c.fresh("x")
			return val{sql: fmt.Sprintf("list_transform(%s, lambda %s: struct_extract(%s, 'f%d'))", v.sql, l, l, i), t: arrayOf(f.Type, f.Nullable || v.t.Fields[0].Nullable), null: v.null}
		}
	case Map:
		return c.index(v, textVal(name), pos)
	}
	fail(pos, "%s is asked of a %s, which has no members", name, v.t)
	return val{}
}

func fieldIndex(t *Type, name string, pos int) int {
	found := -1
	for i, f := range t.Fields {
		if strings.EqualFold(f.Name, name) {
			if found >= 0 {
				fail(pos, "member %s is ambiguous in %s", name, t)
			}
			found = i
		}
	}
	if found < 0 {
		fail(pos, "No such struct field %s in %s", name, t)
	}
	return found
}

// index is array[i] from 0 on, null outside; map[key], null when absent.
func (c *compiler) index(v, i val, pos int) val {
	switch v.t.Kind {
	case Array:
		if !i.t.integral() {
			fail(pos, "an array's index is a whole number, not %s", i.t)
		}
		// DuckDB counts from 1 and takes negative numbers from the end.
		return maybe(made(v.t.elem(), "list_extract(%s, CASE WHEN %s >= 0 THEN CAST(%s AS BIGINT) + 1 END)", v, i, i))
	case Map:
		key := c.cast(i, v.t.Fields[0].Type, pos)
		return maybe(made(v.t.Fields[1].Type, "list_extract(map_extract(%s, %s), 1)", v, key))
	case Struct:
		if i.text != nil {
			return c.member(v, *i.text, pos)
		}
	}
	fail(pos, "[…] is asked of a %s", v.t)
	return val{}
}

func (c *compiler) unary(e unaryExpr, s *scope, pos int) val {
	v := c.expr(e.x, s)
	switch e.op {
	case "not":
		return made(simple(Boolean), "(NOT %s)", c.cast(v, simple(Boolean), pos))
	case "-":
		if v.t.Kind == Interval {
			return made(v.t, "(- %s)", v)
		}
		if v.t.Kind == Decimal || v.t.fractional() {
			return made(v.t, "(- %s)", v)
		}
		return c.arithmetic("-", number("0", pos), v, pos)
	case "~":
		if !v.t.integral() {
			fail(pos, "~ of a %s", v.t)
		}
		return made(v.t, "(~ %s)", v)
	}
	panic("sparksql: unary operator " + e.op)
}

func (c *compiler) binary(e binaryExpr, s *scope, pos int) val {
	if e.op == "and" || e.op == "or" {
		// Chains are flat, so that a thousand conditions don't nest.
		l, r := c.cast(c.expr(e.l, s), simple(Boolean), pos), c.cast(c.expr(e.r, s), simple(Boolean), pos)
		return made(simple(Boolean), "(%s "+strings.ToUpper(e.op)+" %s)", l, r)
	}
	l, r := c.expr(e.l, s), c.expr(e.r, s)
	switch e.op {
	case "||":
		return c.concat([]val{l, r}, pos)
	case "=", "<>", "<", "<=", ">", ">=", "<=>":
		return c.compare(e.op, l, r, pos)
	case "&", "|", "^":
		t := commonInts(l, r, e.op, pos)
		format := map[string]string{"&": "(%s & %s)", "|": "(%s | %s)", "^": "xor(%s, %s)"}[e.op]
		return made(t, format, c.cast(l, t, pos), c.cast(r, t, pos))
	}
	return c.arithmetic(e.op, l, r, pos)
}

func commonInts(l, r val, op string, pos int) *Type {
	t := common(l.t, r.t)
	if t == nil || !t.integral() {
		fail(pos, "%s of %s and %s", op, l.t, r.t)
	}
	return t
}

// compare brings both sides to one type: a text is read as what it is compared with.
func (c *compiler) compare(op string, l, r val, pos int) val {
	t := comparedAs(l.t, r.t)
	if t == nil {
		fail(pos, "%s compares %s and %s", op, l.t, r.t)
	}
	l, r = c.cast(l, t, pos), c.cast(r, t, pos)
	if op == "<=>" {
		v := made(simple(Boolean), "(%s IS NOT DISTINCT FROM %s)", l, r)
		v.null = false
		return v
	}
	if op != "=" && op != "<>" {
		l.sql, r.sql = c.orderKey(l, pos), c.orderKey(r, pos)
	}
	return made(simple(Boolean), "(%s "+op+" %s)", l, r)
}

// orderKey is something that DuckDB orders as Spark orders the value. Inside of arrays and structs a null is the smallest for
// Spark and the largest for DuckDB, so each part goes behind a boolean that tells whether it is there.
func (c *compiler) orderKey(v val, pos int) string {
	part := func(x string, t *Type) string {
		return fmt.Sprintf("there := %s IS NOT NULL, v := %s", x, c.orderKey(val{sql: x, t: t}, pos))
	}
	x := c.fresh("x")
	switch v.t.Kind {
	case Array:
		return fmt.Sprintf("list_transform(%s, lambda %s: struct_pack(%s))", v.sql, x, part(x, v.t.elem()))
	case Struct:
		parts := make([]string, len(v.t.Fields))
		for i, f := range v.t.Fields {
			parts[i] = fmt.Sprintf("k%d := struct_pack(%s)", i, part(fmt.Sprintf("struct_extract(%s, 'f%d')", x, i), f.Type))
		}
		return fmt.Sprintf("list_extract(list_transform([%s], lambda %s: CASE WHEN %s IS NOT NULL THEN struct_pack(%s) END), 1)", v.sql, x, x, strings.Join(parts, ", "))
	case Map:
		fail(pos, "maps have no order")
	}
	return v.sql
}

func comparedAs(a, b *Type) *Type {
	switch {
	case a.Kind == Boolean && b.numeric():
		return b
	case b.Kind == Boolean && a.numeric():
		return a
	case a.Kind != String && b.Kind != String || a.Kind == b.Kind:
		return common(a, b)
	}
	if b.Kind == String {
		a, b = b, a
	}
	switch b.Kind { // a is the text
	case Null:
		return a
	case Decimal:
		return simple(Double)
	case Array, Map, Struct, Interval, Time:
		return nil
	}
	return b
}

// arithmetic is + - * / % div.
func (c *compiler) arithmetic(op string, l, r val, pos int) val {
	if v, ok := c.dateArithmetic(op, l, r, pos); ok {
		return v
	}
	number := func(v val) val {
		switch {
		case v.t.Kind == String:
			return c.cast(v, simple(Double), pos)
		case v.t.Kind == Null:
			return v
		case !v.t.numeric():
			fail(pos, "%s of %s and %s", op, l.t, r.t)
		}
		return v
	}
	l, r = number(l), number(r)
	switch {
	case l.t.Kind == Null && r.t.Kind == Null:
		l, r = c.cast(l, simple(Double), pos), c.cast(r, simple(Double), pos)
	case l.t.Kind == Null:
		l = c.cast(l, r.t, pos)
	case r.t.Kind == Null:
		r = c.cast(r, l.t, pos)
	}
	decimals := (l.t.Kind == Decimal || r.t.Kind == Decimal) && !l.t.fractional() && !r.t.fractional()
	switch {
	case op == "div":
		return c.integralDivide(l, r, pos)
	case decimals:
		return c.decimalArithmetic(op, l, r, pos)
	case op == "/":
		d := simple(Double)
		return maybe(made(d, "(%s / NULLIF(%s, 0))", c.cast(l, d, pos), c.cast(r, d, pos)))
	}
	t := commonNumber(l.t, r.t)
	l, r = c.cast(l, t, pos), c.cast(r, t, pos)
	if op == "%" {
		if t.fractional() {
			return maybe(made(t, "(%s %% NULLIF(%s, 0))", l, r))
		}
		return maybe(made(t, "(%s %% NULLIF(%s, 0))", l, r))
	}
	switch t.Kind {
	case Float:
		return made(t, "CAST(%s "+op+" %s AS FLOAT)", l, r)
	case Double:
		return made(t, "(%s "+op+" %s)", l, r)
	}
	return wrapped(op, l, r, t)
}

// wrapped is whole-number arithmetic as processors do it: what is too large wraps around, as in Spark; DuckDB would fail.
func wrapped(op string, l, r val, t *Type) val {
	op = strings.ReplaceAll(op, "%", "%%")
	switch t.Kind {
	case Long:
		return made(t, wrapLong("CAST(%s AS HUGEINT) "+op+" CAST(%s AS HUGEINT)"), l, r)
	case Int:
		return made(t, "CAST((((CAST(%s AS BIGINT) "+op+" CAST(%s AS BIGINT)) + 2147483648) & 4294967295) - 2147483648 AS INTEGER)", l, r)
	case Short:
		return made(t, "CAST((((CAST(%s AS BIGINT) "+op+" CAST(%s AS BIGINT)) + 32768) & 65535) - 32768 AS SMALLINT)", l, r)
	}
	return made(t, "CAST((((CAST(%s AS BIGINT) "+op+" CAST(%s AS BIGINT)) + 128) & 255) - 128 AS TINYINT)", l, r)
}

// wrapLong brings a HUGEINT text (a format) into the range of BIGINT modulo 2^64.
func wrapLong(huge string) string {
	return "CAST(((((" + huge + ") %% 18446744073709551616) + 27670116110564327424) %% 18446744073709551616) - 9223372036854775808 AS BIGINT)"
}

func (c *compiler) integralDivide(l, r val, pos int) val {
	if l.t.fractional() || r.t.fractional() {
		l, r = c.cast(l, simple(Double), pos), c.cast(r, simple(Double), pos)
		fail(pos, "div of %s and %s: it divides whole numbers and decimals", l.t, r.t)
	}
	if l.t.Kind == Decimal || r.t.Kind == Decimal {
		x := made(simple(String), c.function("spk_decimal_op")+"('div', CAST(%s AS VARCHAR), CAST(%s AS VARCHAR), 38, 0)", l, r)
		return maybe(made(simple(Long), wrapLong("CAST(%s AS HUGEINT)"), x))
	}
	return maybe(made(simple(Long), wrapLong("CAST(%s AS HUGEINT) // NULLIF(CAST(%s AS HUGEINT), 0)"), l, r))
}

// decimalArithmetic gives decimals the precision and scale that Spark gives them; what doesn't fit is null.
func (c *compiler) decimalArithmetic(op string, l, r val, pos int) val {
	l, r = c.asDecimal(l), c.asDecimal(r)
	p1, s1, p2, s2 := l.t.Precision, l.t.Scale, r.t.Precision, r.t.Scale
	var t *Type
	exact := false
	switch op {
	case "+", "-":
		scale := max(s1, s2)
		p := max(p1-s1, p2-s2) + scale + 1
		t, exact = boundedDecimal(p, scale), p <= maxPrecision
	case "*":
		t, exact = boundedDecimal(p1+p2+1, s1+s2), p1+p2+1 <= maxPrecision
	case "/":
		scale := max(6, s1+p2+1)
		t = boundedDecimal(p1-s1+s2+scale, scale)
	case "%":
		scale := max(s1, s2)
		t, exact = boundedDecimal(min(p1-s1, p2-s2)+scale, scale), false
	}
	if exact && op != "*" {
		return maybe(made(t, "CAST(CAST(%s AS "+t.Duck()+") "+op+" CAST(%s AS "+t.Duck()+") AS "+t.Duck()+")", l, r))
	}
	if exact && p1+p2 <= 18 {
		return maybe(made(t, "CAST(%s * %s AS "+t.Duck()+")", l, r))
	} else if exact { // DuckDB multiplies in 18 digits as long as both sides have no more
		wide := decimalType(maxPrecision-p2, s1)
		return maybe(made(t, "CAST(CAST(%s AS "+wide.Duck()+") * %s AS "+t.Duck()+")", l, r))
	}
	return c.decimalOp(op, t, l, r)
}

// decimalOp computes on texts, with as many digits as it takes.
func (c *compiler) decimalOp(op string, t *Type, l, r val) val {
	format := fmt.Sprintf("CAST(%s('%s', CAST(%%s AS VARCHAR), CAST(%%s AS VARCHAR), %d, %d) AS %s)", c.function("spk_decimal_op"), strings.ReplaceAll(op, "%", "%%"), t.Precision, t.Scale, t.Duck())
	return maybe(made(t, format, l, r))
}

// asDecimal is a number as a decimal; a literal has as many digits as it is written with.
func (c *compiler) asDecimal(v val) val {
	if v.t.Kind == Decimal {
		return v
	}
	t := v.t.digits()
	if v.number != nil {
		if n, ok := new(big.Int).SetString(*v.number, 10); ok {
			t = decimalType(len(n.Abs(n).String()), 0)
		}
	}
	return made(t, "CAST(%s AS "+t.Duck()+")", v)
}

// dateArithmetic is a date or timestamp plus or minus days or an interval.
func (c *compiler) dateArithmetic(op string, l, r val, pos int) (val, bool) {
	if op == "+" && (r.t.Kind == Date || r.t.atTime()) && !(l.t.Kind == Date || l.t.atTime()) {
		l, r = r, l
	}
	timed := l.t.Kind == Date || l.t.atTime()
	switch {
	case l.t.Kind == String && r.t.Kind == Interval:
		l = c.cast(l, simple(Timestamp), pos)
	case l.t.Kind == Interval && r.t.Kind == Interval && (op == "+" || op == "-"):
		return made(l.t, "(%s "+op+" %s)", l, r), true
	case timed && op == "-" && (r.t.Kind == Date || r.t.atTime()):
		fail(pos, "a difference of times is an interval, which no table holds: use datediff or unix_timestamp")
	case l.t.Kind == Date && r.t.integral() && (op == "+" || op == "-"):
		return made(l.t, "CAST(%s "+op+" CAST(%s AS INTEGER) AS DATE)", l, r), true
	case !timed:
		return val{}, false
	}
	if r.t.Kind != Interval || op != "+" && op != "-" {
		fail(pos, "%s of %s and %s", op, l.t, r.t)
	}
	if l.t.Kind == Date && !clockInterval(r.sql) {
		return made(l.t, "CAST(%s "+op+" %s AS DATE)", l, r), true
	}
	t := l.t
	if t.Kind == Date {
		t = simple(Timestamp)
	}
	return made(t, "(CAST(%s AS TIMESTAMP) "+op+" %s)", l, r), true
}

// clockInterval reports that an interval has hours or less, so that a date plus it is a timestamp.
func clockInterval(sql string) bool {
	for _, unit := range []string{"hour", "minute", "second", "milli", "micro"} {
		if strings.Contains(sql, unit) {
			return true
		}
	}
	return false
}

func (c *compiler) caseOf(e caseExpr, s *scope, pos int) val {
	var operand val
	if e.operand != nil {
		operand = c.expr(*e.operand, s)
	}
	whens := make([]string, len(e.when))
	for i, w := range e.when {
		v := c.expr(w, s)
		if e.operand != nil {
			v = c.compare("=", operand, v, w.pos)
		} else {
			v = c.cast(v, simple(Boolean), w.pos)
		}
		whens[i] = v.sql
	}
	var results []val
	for _, t := range e.then {
		results = append(results, c.expr(t, s))
	}
	if e.other != nil {
		results = append(results, c.expr(*e.other, s))
	} else {
		results = append(results, val{sql: "NULL", t: simple(Null), null: true})
	}
	return c.choose(whens, results, pos, "CASE")
}

// choose writes CASE; the last result is the one of ELSE.
func (c *compiler) choose(whens []string, results []val, pos int, what string) val {
	results, t := c.alike(results, pos, what)
	out := val{t: t}
	var b strings.Builder
	b.WriteString("CASE")
	for i, w := range whens {
		b.WriteString(" WHEN " + w + " THEN " + results[i].sql)
	}
	b.WriteString(" ELSE " + results[len(whens)].sql + " END")
	for _, r := range results {
		out.null = out.null || r.null
	}
	out.sql = b.String()
	return out
}

// alike brings values to one type.
func (c *compiler) alike(vals []val, pos int, what string) ([]val, *Type) {
	t := vals[0].t
	for _, v := range vals[1:] {
		next := common(t, v.t)
		if next == nil {
			fail(pos, "%s: there is no common type of %s and %s", what, t, v.t)
		}
		t = next
	}
	out := make([]val, len(vals))
	for i, v := range vals {
		out[i] = c.cast(v, t, pos)
	}
	return out, t
}

func (c *compiler) coalesce(vals []val, pos int) val {
	vals, t := c.alike(vals, pos, "coalesce")
	out := val{sql: "coalesce(" + list(vals) + ")", t: t, null: true}
	for _, v := range vals {
		out.null = out.null && v.null
	}
	return out
}

func (c *compiler) between(e betweenExpr, s *scope, pos int) val {
	x := c.expr(e.x, s)
	low, high := c.compare(">=", x, c.expr(e.low, s), pos), c.compare("<=", x, c.expr(e.high, s), pos)
	v := made(simple(Boolean), "(%s AND %s)", low, high)
	if e.not {
		v.sql = "(NOT " + v.sql + ")"
	}
	return v
}

func (c *compiler) in(e inExpr, s *scope, pos int) val {
	x := c.expr(e.x, s)
	word := " IN "
	if e.not {
		word = " NOT IN "
	}
	if e.query != nil {
		sql, columns := c.query(e.query, s, s.env)
		if len(columns) != 1 {
			fail(pos, "IN takes a subquery of one column, this one has %d", len(columns))
		}
		t := comparedAs(x.t, columns[0].Type)
		if t == nil {
			fail(pos, "IN compares %s and %s", x.t, columns[0].Type)
		}
		inner := c.fresh("t")
		v := c.cast(val{sql: inner + ".c0", t: columns[0].Type, null: true}, t, pos)
		return val{sql: "(" + c.cast(x, t, pos).sql + word + "(SELECT " + v.sql + " FROM (" + sql + ") AS " + inner + "))", t: simple(Boolean), null: true}
	}
	vals := []val{x}
	for _, item := range e.list {
		vals = append(vals, c.expr(item, s))
	}
	vals, _ = c.alike(vals, pos, "IN")
	v := val{t: simple(Boolean), sql: "(" + vals[0].sql + word + "(" + list(vals[1:]) + "))"}
	for _, item := range vals {
		v.null = v.null || item.null
	}
	return v
}

func (c *compiler) like(e likeExpr, s *scope, pos int) val {
	x := c.cast(c.expr(e.x, s), simple(String), pos)
	one := func(pattern val) val {
		pattern = c.cast(pattern, simple(String), pos)
		switch e.op {
		case "rlike":
			c.checkRegex(pattern, pos)
			return made(simple(Boolean), c.function("spk_rlike")+"(%s, %s)", x, pattern)
		case "ilike":
			return made(simple(Boolean), "(%s ILIKE %s ESCAPE "+strings.ReplaceAll(quote(e.escape), "%", "%%")+")", x, pattern)
		}
		return made(simple(Boolean), "(%s LIKE %s ESCAPE "+strings.ReplaceAll(quote(e.escape), "%", "%%")+")", x, pattern)
	}
	var v val
	if e.quantifier == "" {
		v = one(c.expr(e.pattern, s))
	} else {
		e.escape = `\`
		for i, p := range e.list {
			m := one(c.expr(p, s))
			if i == 0 {
				v = m
			} else if e.quantifier == "any" {
				v = made(simple(Boolean), "(%s OR %s)", v, m)
			} else {
				v = made(simple(Boolean), "(%s AND %s)", v, m)
			}
		}
	}
	if e.not {
		v.sql = "(NOT " + v.sql + ")"
	}
	return v
}

func (c *compiler) is(e isExpr, s *scope, pos int) val {
	v := c.expr(e.x, s)
	not := ""
	if e.not {
		not = "NOT "
	}
	if e.what != "null" {
		v = c.cast(v, simple(Boolean), pos)
	}
	return val{sql: "(" + v.sql + " IS " + not + strings.ToUpper(e.what) + ")", t: simple(Boolean)}
}
