package sparksql

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// builtin is one function of Spark.
type builtin struct {
	low, high int // how many arguments
	make      func(a *args) val
}

// args are a call's arguments, compiled, with what it takes to make a value of them.
type args struct {
	c    *compiler
	s    *scope
	call callExpr
	v    []val
	pos  int
}

const many = 1 << 20

// call compiles a call. Functions with lambdas compile their arguments themselves.
func (c *compiler) call(e callExpr, s *scope, pos int) val {
	if isGenerator(e.name) {
		fail(pos, "%s stands in a SELECT list by itself, or in LATERAL VIEW", e.name)
	}
	a := &args{c: c, s: s, call: e, pos: pos}
	if f, ok := c.library.aggregates[e.name]; ok {
		a.compile()
		a.count(f.low, f.high)
		return f.make(a)
	}
	if f, ok := c.library.windows[e.name]; ok {
		a.compile()
		a.count(f.low, f.high)
		if e.over == nil {
			fail(pos, "%s needs OVER", e.name)
		}
		return f.make(a)
	}
	if e.over != nil || e.distinct || e.filter != nil {
		if a.known() {
			fail(pos, "%s is no aggregate function", e.name)
		}
	}
	if f, ok := c.library.lambdas[e.name]; ok && slices.ContainsFunc(e.args, func(x node) bool { _, ok := x.expr.(lambdaExpr); return ok }) {
		a.count(f.low, f.high)
		return f.make(a)
	}
	f, ok := c.library.scalars[e.name]
	if !ok {
		fail(pos, "function %s isn't known", e.name)
	}
	a.compile()
	a.count(f.low, f.high)
	return f.make(a)
}

func (a *args) known() bool {
	_, scalar := a.c.library.scalars[a.call.name]
	_, lambda := a.c.library.lambdas[a.call.name]
	return scalar || lambda
}

func (a *args) compile() {
	for _, x := range a.call.args {
		a.v = append(a.v, a.c.expr(x, a.s))
	}
}

func (a *args) count(low, high int) {
	if n := len(a.call.args); n < low || n > high {
		if a.call.star {
			return
		}
		fail(a.pos, "function %s isn't known with %d arguments", a.call.name, n)
	}
}

// has reports that the call has an i-th argument.
func (a *args) has(i int) bool { return i < len(a.v) }

// The arguments as values of a type, by Spark's implicit casts.
func (a *args) as(i int, k Kind) val {
	v := a.v[i]
	if v.t.Kind != k && (len(v.t.Fields) > 0 || v.t.Kind == Interval || v.t.Kind == Time) {
		fail(a.pos, "argument %d of %s is a %s, not a %s", i+1, a.call.name, v.t, kindNames[k])
	}
	return a.c.cast(v, simple(k), a.pos)
}

func (a *args) str(i int) val  { return a.as(i, String) }
func (a *args) int(i int) val  { return a.as(i, Int) }
func (a *args) long(i int) val { return a.as(i, Long) }
func (a *args) dbl(i int) val  { return a.as(i, Double) }

func (a *args) date(i int) val {
	if a.v[i].t.numeric() || a.v[i].t.Kind == Boolean {
		fail(a.pos, "argument %d of %s is a %s, not a date", i+1, a.call.name, a.v[i].t)
	}
	return a.as(i, Date)
}

func (a *args) time(i int) val {
	if a.v[i].t.Kind == TimestampNTZ {
		return a.v[i]
	}
	return a.as(i, Timestamp)
}

func (a *args) bytes(i int) val { return a.as(i, Binary) }

// text is a string literal that must stand there.
func (a *args) text(i int) string {
	if !a.has(i) || a.v[i].text == nil {
		fail(a.pos, "argument %d of %s must be a literal text", i+1, a.call.name)
	}
	return *a.v[i].text
}

// optional is the i-th argument, or a default.
func (a *args) optional(i int, k Kind, other val) val {
	if a.has(i) {
		return a.as(i, k)
	}
	return other
}

func (a *args) array(i int) val {
	if a.v[i].t.Kind != Array {
		fail(a.pos, "argument %d of %s is a %s, not an array", i+1, a.call.name, a.v[i].t)
	}
	return a.v[i]
}

func (a *args) mapping(i int) val {
	if a.v[i].t.Kind != Map {
		fail(a.pos, "argument %d of %s is a %s, not a map", i+1, a.call.name, a.v[i].t)
	}
	return a.v[i]
}

// udf calls one of [Functions].
func (a *args) udf(name string, t *Type, list ...val) val {
	return made(t, a.c.function(name)+"("+strings.TrimSuffix(strings.Repeat("%s, ", len(list)), ", ")+")", list...)
}

// fixed makes a function of DuckDB's text: one %s for each argument, brought to the kinds.
func fixed(k Kind, format string, kinds ...Kind) builtin {
	return builtin{len(kinds), len(kinds), func(a *args) val {
		list := make([]val, len(kinds))
		for i, kind := range kinds {
			switch kind {
			case Date:
				list[i] = a.date(i)
			case Timestamp:
				list[i] = a.time(i)
			default:
				list[i] = a.as(i, kind)
			}
		}
		return made(simple(k), format, list...)
	}}
}

// nulling is fixed for a function that can give null for what isn't.
func nulling(k Kind, format string, kinds ...Kind) builtin {
	f := fixed(k, format, kinds...)
	return builtin{f.low, f.high, func(a *args) val { return maybe(f.make(a)) }}
}

func double(format string) builtin { return nulling(Double, format, Double) }

// concat is || and concat(): texts, or arrays.
func (c *compiler) concat(vals []val, pos int) val {
	if slices.ContainsFunc(vals, func(v val) bool { return v.t.Kind == Array }) {
		vals, t := c.alike(vals, pos, "concat")
		if len(vals) == 1 {
			return vals[0]
		}
		// DuckDB's list_concat takes a null list for an empty one; Spark's result is null.
		conditions := make([]string, len(vals))
		out := val{sql: vals[0].sql, t: t}
		for i, v := range vals {
			conditions[i] = v.sql + " IS NOT NULL"
			out.null = out.null || v.null
			if i > 0 {
				out.sql = "list_concat(" + out.sql + ", " + v.sql + ")"
			}
		}
		out.sql = "CASE WHEN " + strings.Join(conditions, " AND ") + " THEN " + out.sql + " END"
		return out
	}
	binary := len(vals) > 0
	for _, v := range vals {
		binary = binary && v.t.Kind == Binary
	}
	kind := String
	if binary {
		kind = Binary
	}
	texts := make([]string, len(vals))
	out := val{t: simple(kind)}
	for i, v := range vals {
		if len(v.t.Fields) > 0 {
			fail(pos, "concat of a %s", v.t)
		}
		v = c.cast(v, simple(kind), pos)
		texts[i] = v.sql
		out.null = out.null || v.null
	}
	if len(texts) == 0 {
		return textVal("")
	}
	out.sql = "(" + strings.Join(texts, " || ") + ")"
	return out
}

// truncUnit is the unit of trunc and date_trunc.
func truncUnit(text string) (string, bool) {
	switch strings.ToLower(text) {
	case "year", "yyyy", "yy":
		return "year", true
	case "quarter":
		return "quarter", true
	case "month", "mon", "mm":
		return "month", true
	case "week":
		return "week", true
	case "day", "dd":
		return "day", true
	case "hour", "minute", "second", "millisecond", "microsecond":
		return strings.ToLower(text), true
	}
	return "", false
}

// part is one field of a date or timestamp.
func (a *args) part(unit string, v val) val {
	i := simple(Int)
	switch strings.ToLower(unit) {
	case "year", "y", "years", "yr", "yrs":
		return made(i, "CAST(year(%s) AS INTEGER)", v)
	case "quarter", "qtr":
		return made(i, "CAST(quarter(%s) AS INTEGER)", v)
	case "month", "mon", "mons", "months":
		return made(i, "CAST(month(%s) AS INTEGER)", v)
	case "week", "w", "weeks":
		return made(i, "CAST(week(%s) AS INTEGER)", v)
	case "day", "d", "days":
		return made(i, "CAST(day(%s) AS INTEGER)", v)
	case "dayofweek", "dow":
		return made(i, "CAST(dayofweek(%s) + 1 AS INTEGER)", v)
	case "dayofweek_iso", "dow_iso":
		return made(i, "CAST(isodow(%s) AS INTEGER)", v)
	case "doy":
		return made(i, "CAST(dayofyear(%s) AS INTEGER)", v)
	case "hour", "h", "hours", "hr", "hrs":
		return made(i, "CAST(hour(%s) AS INTEGER)", v)
	case "minute", "m", "min", "mins", "minutes":
		return made(i, "CAST(minute(%s) AS INTEGER)", v)
	case "second", "s", "sec", "secs", "seconds":
		return made(decimalType(8, 6), "CAST((microsecond(%s) * CAST(0.000001 AS DECIMAL(7,6))) AS DECIMAL(8,6))", v)
	}
	fail(a.pos, "date part %s isn't known", unit)
	return val{}
}

// rounded is round, bround, ceil or floor of a number to some digits.
func (a *args) rounded(even bool) val {
	digits := 0
	if a.has(1) {
		n := a.v[1].number
		var err error
		if n == nil {
			fail(a.pos, "the digits of %s must be a literal number", a.call.name)
		} else if digits, err = strconv.Atoi(*n); err != nil || digits < -100 || digits > 100 {
			fail(a.pos, "%s to %s digits", a.call.name, *n)
		}
	}
	v := a.v[0]
	if v.t.Kind == String || v.t.Kind == Null {
		v = a.c.cast(v, simple(Double), a.pos)
	}
	flag := intLit(0)
	if even {
		flag = intLit(1)
	}
	switch {
	case v.t.fractional():
		out := a.udf("spk_round", simple(Double), a.c.cast(v, simple(Double), a.pos), intLit(int64(digits)), flag)
		return maybe(a.c.cast(out, v.t, a.pos))
	case v.t.integral():
		if digits >= 0 {
			return v
		}
		text := made(simple(String), "CAST(%s AS VARCHAR)", v)
		out := a.udf("spk_round_whole", simple(Long), text, intLit(int64(digits)), flag)
		return narrow(out, v.t)
	case v.t.Kind == Decimal:
		p, s := v.t.Precision, v.t.Scale
		if digits >= s {
			return maybe(made(boundedDecimal(p+1, s), "TRY_CAST(%s AS "+boundedDecimal(p-s+digits+1, s).Duck()+")", v))
		}
		scale := max(digits, 0)
		t := boundedDecimal(min(p-s+scale+1, maxPrecision), scale)
		if digits >= 0 && !even {
			return maybe(made(t, "TRY_CAST(%s AS "+t.Duck()+")", v))
		}
		out := a.udf("spk_round_decimal", simple(String), made(simple(String), "CAST(%s AS VARCHAR)", v), intLit(int64(digits)), flag)
		return maybe(made(t, "TRY_CAST(%s AS "+t.Duck()+")", out))
	}
	fail(a.pos, "%s of a %s", a.call.name, v.t)
	return val{}
}

// whole is floor or ceil.
func (a *args) whole(name string) val {
	v := a.v[0]
	if a.has(1) {
		fail(a.pos, "%s with digits isn't known", a.call.name)
	}
	switch {
	case v.t.integral():
		return a.c.cast(v, simple(Long), a.pos)
	case v.t.Kind == Decimal:
		t := boundedDecimal(v.t.Precision-v.t.Scale+1, 0)
		return made(t, "CAST("+name+"(%s) AS "+t.Duck()+")", v)
	}
	return a.udf("spk_double_long", simple(Long), made(simple(Double), name+"(%s)", a.dbl(0)))
}

// pick is greatest or least: nulls don't count.
func (a *args) pick(name string) val {
	vals, t := a.c.alike(a.v, a.pos, a.call.name)
	if nested(t) {
		fail(a.pos, "%s of a %s isn't supported", a.call.name, t)
	}
	out := val{sql: name + "(" + list(vals) + ")", t: t, null: true}
	for _, v := range vals {
		out.null = out.null && v.null
	}
	return out
}

func (a *args) hash(v, seed val) val {
	i := simple(Int)
	var h val
	switch {
	case v.t.Kind == Boolean || v.t.Kind == Byte || v.t.Kind == Short || v.t.Kind == Int:
		h = a.udf("spk_hash_int", i, a.c.cast(v, simple(Long), a.pos), seed)
	case v.t.Kind == Date:
		h = a.udf("spk_hash_int", i, made(simple(Long), "CAST(%s - DATE '1970-01-01' AS BIGINT)", v), seed)
	case v.t.Kind == Long:
		h = a.udf("spk_hash_long", i, v, seed)
	case v.t.atTime():
		h = a.udf("spk_hash_long", i, made(simple(Long), "epoch_us(%s)", v), seed)
	case v.t.Kind == String || v.t.Kind == Binary:
		h = a.udf("spk_hash_bytes", i, a.c.cast(v, simple(Binary), a.pos), seed)
	default:
		fail(a.pos, "hash of a %s isn't supported", v.t)
	}
	// A null leaves the hash as it is.
	if v.null {
		return val{sql: "coalesce(" + h.sql + ", " + seed.sql + ")", t: i}
	}
	return h
}

// library is every function that a statement can call, by lower-case name.
type library struct{ scalars, aggregates, windows, lambdas map[string]builtin }

func newLibrary() *library {
	return &library{
		scalars:    mergeTables(generalFunctions(), numberFunctions(), stringFunctions(), dateFunctions(), collectionFunctions()),
		aggregates: mergeTables(aggregateFunctions()),
		windows:    mergeTables(windowFunctions()),
		lambdas:    mergeTables(lambdaFunctions()),
	}
}

func mergeTables(tables ...map[string]builtin) map[string]builtin {
	all := map[string]builtin{}
	for _, t := range tables {
		for name, f := range t {
			for _, one := range strings.Split(name, " ") { // names of one function
				all[one] = f
			}
		}
	}
	return all
}

func generalFunctions() map[string]builtin {
	return map[string]builtin{
		"coalesce":   {1, many, func(a *args) val { return a.c.coalesce(a.v, a.pos) }},
		"nvl ifnull": {2, 2, func(a *args) val { return a.c.coalesce(a.v, a.pos) }},
		"nvl2": {3, 3, func(a *args) val {
			return a.c.choose([]string{"(" + a.v[0].sql + " IS NOT NULL)"}, a.v[1:], a.pos, "nvl2")
		}},
		"nullif": {2, 2, func(a *args) val {
			eq := a.c.compare("=", a.v[0], a.v[1], a.pos)
			return val{sql: "CASE WHEN " + eq.sql + " THEN NULL ELSE " + a.v[0].sql + " END", t: a.v[0].t, null: true}
		}},
		"if iff": {3, 3, func(a *args) val {
			return a.c.choose([]string{a.as(0, Boolean).sql}, a.v[1:], a.pos, "if")
		}},
		"decode": {2, many, func(a *args) val {
			if len(a.v) == 2 {
				if !strings.EqualFold(a.text(1), "utf-8") {
					fail(a.pos, "decode from %s isn't supported, UTF-8 is", a.text(1))
				}
				return a.udf("spk_utf8", simple(String), a.bytes(0))
			}
			results := []val{}
			var whens []string
			for i := 1; i+1 < len(a.v); i += 2 {
				whens = append(whens, a.c.compare("<=>", a.v[0], a.v[i], a.pos).sql)
				results = append(results, a.v[i+1])
			}
			if len(a.v)%2 == 0 {
				results = append(results, a.v[len(a.v)-1])
			} else {
				results = append(results, val{sql: "NULL", t: simple(Null), null: true})
			}
			return a.c.choose(whens, results, a.pos, "decode")
		}},
		"encode": {2, 2, func(a *args) val {
			if !strings.EqualFold(a.text(1), "utf-8") {
				fail(a.pos, "encode to %s isn't supported, UTF-8 is", a.text(1))
			}
			return a.c.cast(a.str(0), simple(Binary), a.pos)
		}},
		"isnull":    {1, 1, func(a *args) val { return val{sql: "(" + a.v[0].sql + " IS NULL)", t: simple(Boolean)} }},
		"isnotnull": {1, 1, func(a *args) val { return val{sql: "(" + a.v[0].sql + " IS NOT NULL)", t: simple(Boolean)} }},
		"isnan": {1, 1, func(a *args) val {
			return val{sql: "coalesce(isnan(" + a.dbl(0).sql + "), FALSE)", t: simple(Boolean)}
		}},
		"nanvl": {2, 2, func(a *args) val {
			x := a.dbl(0)
			return made(simple(Double), "CASE WHEN isnan(%[1]s) THEN %[2]s ELSE %[1]s END", x, a.dbl(1))
		}},
		"greatest": {2, many, func(a *args) val { return a.pick("greatest") }},
		"least":    {2, many, func(a *args) val { return a.pick("least") }},
		"typeof":   {1, 1, func(a *args) val { return textVal(a.v[0].t.String()) }},
		"string":   castTo(String), "boolean": castTo(Boolean), "tinyint": castTo(Byte), "smallint": castTo(Short), "int": castTo(Int), "bigint": castTo(Long),
		"float": castTo(Float), "double": castTo(Double), "date": castTo(Date), "timestamp": castTo(Timestamp), "binary": castTo(Binary),
		"decimal": {1, 1, func(a *args) val { return a.c.explicitCast(a.v[0], decimalType(10, 0), a.pos) }},
		"hash": {1, many, func(a *args) val {
			h := val{sql: "CAST(42 AS INTEGER)", t: simple(Int)}
			for _, v := range a.v {
				h = a.hash(v, h)
			}
			return h
		}},
		"uuid":        {0, 0, func(*args) val { return val{sql: "CAST(uuid() AS VARCHAR)", t: simple(String)} }},
		"rand random": {0, 0, func(*args) val { return val{sql: "random()", t: simple(Double)} }},
		"current_date curdate": {0, 0, func(*args) val {
			return val{sql: "CAST(CAST(get_current_timestamp() AS TIMESTAMP) AS DATE)", t: simple(Date)}
		}},
		"current_timestamp now": {0, 0, func(*args) val { return val{sql: "CAST(get_current_timestamp() AS TIMESTAMP)", t: simple(Timestamp)} }},
		"localtimestamp": {0, 0, func(*args) val {
			return val{sql: "CAST(get_current_timestamp() AS TIMESTAMP)", t: simple(TimestampNTZ)}
		}},
		"monotonically_increasing_id": {0, 0, func(*args) val { return val{sql: "(row_number() OVER () - 1)", t: simple(Long)} }},
	}
}

func castTo(k Kind) builtin {
	return builtin{1, 1, func(a *args) val { return a.c.explicitCast(a.v[0], simple(k), a.pos) }}
}

func numberFunctions() map[string]builtin {
	domain := func(format string) builtin { return nulling(Double, format, Double) }
	return map[string]builtin{
		"abs": {1, 1, func(a *args) val {
			v := a.v[0]
			if !v.t.numeric() {
				v = a.dbl(0)
			}
			if v.t.integral() { // the smallest number has no positive one: it stays, as in Spark
				t := v.t
				return narrow(made(simple(Long), wrapLong("abs(CAST(%s AS HUGEINT))"), v), t)
			}
			return made(v.t, "abs(%s)", v)
		}},
		"round":        {1, 2, func(a *args) val { return a.rounded(false) }},
		"bround":       {1, 2, func(a *args) val { return a.rounded(true) }},
		"floor":        {1, 2, func(a *args) val { return a.whole("floor") }},
		"ceil ceiling": {1, 2, func(a *args) val { return a.whole("ceil") }},
		"mod":          {2, 2, func(a *args) val { return a.c.arithmetic("%", a.v[0], a.v[1], a.pos) }},
		"pmod": {2, 2, func(a *args) val {
			m := a.c.arithmetic("%", a.v[0], a.v[1], a.pos)
			sum := a.c.arithmetic("%", a.c.arithmetic("+", m, a.v[1], a.pos), a.v[1], a.pos)
			return maybe(val{sql: "CASE WHEN " + m.sql + " < 0 THEN " + sum.sql + " ELSE " + m.sql + " END", t: m.t})
		}},
		"negative":  {1, 1, func(a *args) val { return a.c.arithmetic("-", number("0", a.pos), a.v[0], a.pos) }},
		"positive":  {1, 1, func(a *args) val { return a.v[0] }},
		"div":       {2, 2, func(a *args) val { return a.c.arithmetic("div", a.v[0], a.v[1], a.pos) }},
		"power pow": fixed(Double, "pow(%s, %s)", Double, Double),
		"sqrt":      double("CASE WHEN %[1]s < 0 THEN CAST('NaN' AS DOUBLE) ELSE sqrt(%[1]s) END"),
		"cbrt":      double("cbrt(%s)"), "exp": double("exp(%s)"), "sin": double("sin(%s)"), "cos": double("cos(%s)"), "tan": double("tan(%s)"),
		"atan": double("atan(%s)"), "sinh": double("sinh(%s)"), "cosh": double("cosh(%s)"), "tanh": double("tanh(%s)"),
		"degrees": double("degrees(%s)"), "radians": double("radians(%s)"),
		"atan2": fixed(Double, "atan2(%s, %s)", Double, Double),
		"ln":    domain("CASE WHEN %[1]s > 0 THEN ln(%[1]s) END"), "log10": domain("CASE WHEN %[1]s > 0 THEN log10(%[1]s) END"),
		"log2": domain("CASE WHEN %[1]s > 0 THEN log2(%[1]s) END"), "log1p": domain("CASE WHEN %[1]s > -1 THEN ln(1 + %[1]s) END"),
		"log": {1, 2, func(a *args) val {
			if len(a.v) == 1 {
				return maybe(made(simple(Double), "CASE WHEN %[1]s > 0 THEN ln(%[1]s) END", a.dbl(0)))
			}
			return maybe(made(simple(Double), "CASE WHEN %[1]s > 0 AND %[2]s > 0 THEN ln(%[2]s) / ln(%[1]s) END", a.dbl(0), a.dbl(1)))
		}},
		"pi":          {0, 0, func(*args) val { return val{sql: "pi()", t: simple(Double)} }},
		"e":           {0, 0, func(*args) val { return val{sql: "exp(1)", t: simple(Double)} }},
		"sign signum": {1, 1, func(a *args) val { return made(simple(Double), "CAST(sign(%s) AS DOUBLE)", a.dbl(0)) }},
		"factorial":   nulling(Long, "CASE WHEN %[1]s BETWEEN 0 AND 20 THEN CAST(factorial(%[1]s) AS BIGINT) END", Int),
		"shiftleft":   {2, 2, func(a *args) val { return a.shift("spk_shift_left") }},
		"shiftright":  {2, 2, func(a *args) val { return a.shift("spk_shift_right") }},
		"bit_count":   {1, 1, func(a *args) val { return made(simple(Int), "CAST(bit_count(%s) AS INTEGER)", a.long(0)) }},
		"conv":        {3, 3, func(a *args) val { return maybe(a.udf("spk_conv", simple(String), a.str(0), a.long(1), a.long(2))) }},
		"format_number": {2, 2, func(a *args) val {
			return maybe(a.udf("spk_format_number", simple(String), a.str(0), a.long(1)))
		}},
		"width_bucket": nulling(Long, "CASE WHEN %[4]s > 0 AND %[2]s < %[3]s THEN CASE WHEN %[1]s < %[2]s THEN 0 WHEN %[1]s >= %[3]s THEN CAST(%[4]s AS BIGINT) + 1 ELSE CAST(floor((%[1]s - %[2]s) / (%[3]s - %[2]s) * %[4]s) AS BIGINT) + 1 END END", Double, Double, Double, Long),
	}
}

func (a *args) shift(name string) val {
	v := a.v[0]
	if v.t.Kind != Long {
		v = a.int(0)
	}
	bits := intLit(32)
	if v.t.Kind == Long {
		bits = intLit(64)
	}
	return narrow(a.udf(name, simple(Long), a.c.cast(v, simple(Long), a.pos), a.long(1), bits), v.t)
}

func stringFunctions() map[string]builtin {
	trim := func(side int64) builtin {
		return builtin{1, 2, func(a *args) val {
			chars := textVal(" ")
			s := a.str(0)
			if a.has(1) {
				if a.call.name == "ltrim" || a.call.name == "rtrim" || a.call.name == "btrim" || a.call.name == "trim" {
					chars = a.str(1)
				}
			}
			return a.udf("spk_trim", simple(String), s, chars, intLit(side))
		}}
	}
	pad := func(left int64) builtin {
		return builtin{2, 3, func(a *args) val {
			return a.udf("spk_pad", simple(String), a.str(0), a.long(1), a.optional(2, String, textVal(" ")), intLit(left))
		}}
	}
	return map[string]builtin{
		"upper ucase": {1, 1, func(a *args) val { return a.udf("spk_upper", simple(String), a.str(0)) }},
		"lower lcase": {1, 1, func(a *args) val { return a.udf("spk_lower", simple(String), a.str(0)) }},
		"length char_length character_length len": {1, 1, func(a *args) val {
			if a.v[0].t.Kind == Binary {
				return made(simple(Int), "CAST(octet_length(%s) AS INTEGER)", a.v[0])
			}
			return made(simple(Int), "CAST(length(%s) AS INTEGER)", a.str(0))
		}},
		"octet_length": fixed(Int, "CAST(octet_length(%s) AS INTEGER)", Binary),
		"bit_length":   fixed(Int, "CAST(octet_length(%s) * 8 AS INTEGER)", Binary),
		"concat":       {0, many, func(a *args) val { return a.c.concat(a.v, a.pos) }},
		"concat_ws": {1, many, func(a *args) val {
			sep := a.str(0)
			vals := []val{sep}
			for i := 1; i < len(a.v); i++ {
				if v := a.v[i]; v.t.Kind == Array {
					e := a.c.cast(v, arrayOf(simple(String), true), a.pos)
					l := a.c.fresh("x")
					// A null list or an empty one gives nothing, no separator either.
					vals = append(vals, val{sql: fmt.Sprintf("CASE WHEN len(list_filter(%[1]s, lambda %[2]s: %[2]s IS NOT NULL)) > 0 THEN array_to_string(list_filter(%[1]s, lambda %[2]s: %[2]s IS NOT NULL), %[3]s) END", e.sql, l, sep.sql), t: simple(String), null: true})
				} else {
					vals = append(vals, a.str(i))
				}
			}
			if len(vals) == 1 {
				vals = append(vals, textVal(""))
			}
			return val{sql: "concat_ws(" + list(vals) + ")", t: simple(String), null: sep.null}
		}},
		"substring substr": {2, 3, func(a *args) val {
			n := a.optional(2, Long, intLit(1<<31-1))
			if a.v[0].t.Kind == Binary {
				fail(a.pos, "substring of bytes isn't supported")
			}
			return a.udf("spk_substring", simple(String), a.str(0), a.long(1), n)
		}},
		"left": {2, 2, func(a *args) val { return a.udf("spk_substring", simple(String), a.str(0), intLit(1), a.long(1)) }},
		"right": {2, 2, func(a *args) val {
			s := a.str(0)
			n := a.long(1)
			return made(simple(String), "CASE WHEN %[2]s <= 0 THEN '' ELSE "+a.c.function("spk_substring")+"(%[1]s, - least(%[2]s, CAST(length(%[1]s) AS BIGINT)), %[2]s) END", s, n)
		}},
		"substring_index": {3, 3, func(a *args) val { return a.udf("spk_substring_index", simple(String), a.str(0), a.str(1), a.long(2)) }},
		"trim":            trim(0), "btrim": trim(0), "ltrim": trim(1), "rtrim": trim(2),
		"lpad": pad(1), "rpad": pad(0),
		"initcap": {1, 1, func(a *args) val { return a.udf("spk_initcap", simple(String), a.str(0)) }},
		"reverse": {1, 1, func(a *args) val {
			if a.v[0].t.Kind == Array {
				return made(a.v[0].t, "list_reverse(%s)", a.v[0])
			}
			return made(simple(String), "reverse(%s)", a.str(0))
		}},
		"repeat": fixed(String, "repeat(%s, greatest(%s, 0))", String, Long),
		"space":  {1, 1, func(a *args) val { return made(simple(String), "repeat(' ', greatest(%s, 0))", a.long(0)) }},
		"replace": {2, 3, func(a *args) val {
			what := a.str(1)
			return made(simple(String), "replace(%s, %s, %s)", a.str(0), what, a.optional(2, String, textVal("")))
		}},
		"translate": {3, 3, func(a *args) val { return a.udf("spk_translate", simple(String), a.str(0), a.str(1), a.str(2)) }},
		"overlay": {3, 4, func(a *args) val {
			if !a.has(3) {
				return made(simple(String), "("+a.c.function("spk_substring")+"(%[1]s, 1, %[3]s - 1) || %[2]s || spk_substring(%[1]s, %[3]s + length(%[2]s), 2147483647))", a.str(0), a.str(1), a.long(2))
			}
			return made(simple(String), "("+a.c.function("spk_substring")+"(%[1]s, 1, %[3]s - 1) || %[2]s || spk_substring(%[1]s, %[3]s + %[4]s, 2147483647))", a.str(0), a.str(1), a.long(2), a.long(3))
		}},
		"instr":                     {2, 2, func(a *args) val { return a.position(a.str(1), a.str(0), intLit(1)) }},
		"locate position charindex": {2, 3, func(a *args) val { return a.position(a.str(0), a.str(1), a.optional(2, Long, intLit(1))) }},
		"contains":                  fixed(Boolean, "contains(%s, %s)", String, String),
		"startswith":                fixed(Boolean, "starts_with(%s, %s)", String, String),
		"endswith":                  fixed(Boolean, "ends_with(%s, %s)", String, String),
		"like":                      {2, 2, func(a *args) val { return made(simple(Boolean), `(%s LIKE %s ESCAPE '\')`, a.str(0), a.str(1)) }},
		"rlike regexp regexp_like": {2, 2, func(a *args) val {
			a.c.checkRegex(a.v[1], a.pos)
			return a.udf("spk_rlike", simple(Boolean), a.str(0), a.str(1))
		}},
		"regexp_replace": {3, 3, func(a *args) val {
			a.c.checkRegex(a.v[1], a.pos)
			return a.udf("spk_regexp_replace", simple(String), a.str(0), a.str(1), a.str(2))
		}},
		"regexp_extract": {2, 3, func(a *args) val {
			a.c.checkRegex(a.v[1], a.pos)
			return a.udf("spk_regexp_extract", simple(String), a.str(0), a.str(1), a.optional(2, Long, intLit(1)))
		}},
		"split": {2, 3, func(a *args) val {
			a.c.checkRegex(a.v[1], a.pos)
			if a.has(2) && (a.v[2].number == nil || *a.v[2].number != "-1" && *a.v[2].number != "0") {
				fail(a.pos, "split with a limit isn't supported")
			}
			if a.text(1) == "" {
				return made(arrayOf(simple(String), false), "CASE WHEN %[1]s = '' THEN [''] ELSE string_split(%[1]s, '') END", a.str(0))
			}
			return made(arrayOf(simple(String), false), "string_split_regex(%s, %s)", a.str(0), a.str(1))
		}},
		"ascii":    fixed(Int, "CASE WHEN %[1]s = '' THEN 0 ELSE CAST(unicode(%[1]s) AS INTEGER) END", String),
		"chr char": fixed(String, "CASE WHEN %[1]s < 0 THEN '' ELSE chr(CAST(%[1]s & 255 AS INTEGER)) END", Long),
		"hex": {1, 1, func(a *args) val {
			if a.v[0].t.numeric() {
				return made(simple(String), "printf('%%X', %s)", a.long(0))
			}
			return made(simple(String), "hex(%s)", a.bytes(0))
		}},
		"unhex":       nulling(Binary, "CASE WHEN regexp_full_match(%[1]s, '([0-9A-Fa-f]{2})*') THEN from_hex(%[1]s) WHEN regexp_full_match(%[1]s, '[0-9A-Fa-f]+') THEN from_hex('0' || %[1]s) END", String),
		"base64":      fixed(String, "to_base64(%s)", Binary),
		"unbase64":    fixed(Binary, "from_base64(%s)", String),
		"md5":         fixed(String, "md5(%s)", Binary),
		"sha sha1":    fixed(String, "sha1(%s)", Binary),
		"sha2":        {2, 2, func(a *args) val { return maybe(a.udf("spk_sha2", simple(String), a.bytes(0), a.long(1))) }},
		"crc32":       {1, 1, func(a *args) val { return a.udf("spk_crc32", simple(Long), a.bytes(0)) }},
		"levenshtein": {2, 2, func(a *args) val { return a.udf("spk_levenshtein", simple(Int), a.str(0), a.str(1)) }},
		"get_json_object": {2, 2, func(a *args) val {
			if strings.Contains(a.text(1), "*") {
				fail(a.pos, "get_json_object with * in its path isn't supported")
			}
			return maybe(a.udf("spk_json", simple(String), a.str(0), a.str(1)))
		}},
	}
}

func (a *args) position(part, s, from val) val {
	return a.c.cast(a.udf("spk_locate", simple(Long), part, s, from), simple(Int), a.pos)
}
