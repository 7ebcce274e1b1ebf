package sparksql

import (
	"fmt"
	"strconv"
	"strings"
)

// function notes that the statement calls one of [Functions], and gives its name.
func (c *compiler) function(name string) string {
	c.functions[name] = true
	return name
}

// explicitCast is CAST as it was written: Spark refuses some pairs of types.
func (c *compiler) explicitCast(v val, to *Type, pos int) val {
	if v.t.Kind != Null && !castable(v.t, to) {
		fail(pos, "cannot cast %s to %s", v.t, to)
	}
	return c.cast(v, to, pos)
}

func castable(from, to *Type) bool {
	if from.Kind == to.Kind && len(from.Fields) == len(to.Fields) {
		for i := range from.Fields {
			if !castable(from.Fields[i].Type, to.Fields[i].Type) {
				return false
			}
		}
		return true
	}
	special := func(t *Type) bool { return nested(t) || t.Kind == Interval || t.Kind == Time }
	switch {
	case from.Kind == Null:
		return true
	case special(from) || special(to):
		return false
	case to.Kind == String || from.Kind == String:
		return true
	case from.Kind == Binary:
		return false
	case to.Kind == Binary:
		return from.integral()
	case from.Kind == Date:
		return to.atTime() || to.numeric() || to.Kind == Boolean
	case to.Kind == Date:
		return from.atTime()
	case from.Kind == TimestampNTZ || to.Kind == TimestampNTZ:
		return from.atTime() && to.atTime()
	}
	return true
}

// cast gives a value another type as Spark does outside of ANSI mode: what can't be read is null, never an error.
func (c *compiler) cast(v val, to *Type, pos int) val {
	switch {
	case v.t.Equal(to):
		return v
	case v.t.Kind == Null:
		return val{sql: "CAST(" + v.sql + " AS " + to.Duck() + ")", t: to, null: true}
	case len(to.Fields) > 0:
		return c.castNested(v, to, pos)
	}
	out := c.castPlain(v, to, pos)
	out.text, out.number = nil, nil
	return out
}

func (c *compiler) castPlain(v val, to *Type, pos int) val {
	switch to.Kind {
	case String:
		return c.castText(v, pos)
	case Boolean:
		switch {
		case v.t.Kind == String:
			return maybe(made(to, c.function("spk_boolean")+"(%s)", v))
		case v.t.numeric():
			return made(to, "(%s <> 0)", v)
		case v.t.atTime():
			return made(to, "(epoch_us(%s) <> 0)", v)
		case v.t.Kind == Date:
			return val{sql: "CAST(NULL AS BOOLEAN)", t: to, null: true}
		}
	case Byte, Short, Int, Long, Float, Double, Decimal:
		return c.castNumber(v, to, pos)
	case Binary:
		switch v.t.Kind {
		case String:
			return made(to, "encode(%s)", v)
		case Byte, Short, Int, Long:
			width := map[Kind]int{Byte: 2, Short: 4, Int: 8, Long: 16}[v.t.Kind]
			return made(to, "from_hex(right(printf('%%016x', CAST(%s AS BIGINT)), "+strconv.Itoa(width)+"))", v)
		}
	case Date:
		switch {
		case v.t.Kind == String:
			return maybe(made(to, c.function("spk_date")+"(%s)", v))
		case v.t.atTime():
			return made(to, "CAST(%s AS DATE)", v)
		}
	case Timestamp, TimestampNTZ:
		return c.castTimestamp(v, to, pos)
	}
	fail(pos, "a %s is no %s", v.t, to)
	return val{}
}

// castText writes a value as Spark's cast does.
func (c *compiler) castText(v val, pos int) val {
	t := simple(String)
	switch v.t.Kind {
	case Float:
		return made(t, c.function("spk_float_text")+"(CAST(%s AS DOUBLE))", v)
	case Double:
		return made(t, c.function("spk_double_text")+"(%s)", v)
	case Decimal:
		if v.t.Scale > 6 { // small values have an exponent: 1E-8
			return made(t, c.function("spk_decimal_text")+"(CAST(%s AS VARCHAR))", v)
		}
	case Binary:
		return made(t, c.function("spk_utf8")+"(%s)", v)
	case Timestamp, TimestampNTZ:
		return made(t, c.function("spk_timestamp_text")+"(%s)", v)
	case Date:
		return made(t, c.function("spk_date_text")+"(%s)", v)
	case Array, Map, Struct, Interval, Time:
		fail(pos, "a %s as text isn't supported; take its parts", v.t)
	}
	return made(t, "CAST(%s AS VARCHAR)", v)
}

func (c *compiler) castNumber(v val, to *Type, pos int) val {
	switch {
	case v.t.Kind == String:
		return c.parseNumber(v, to)
	case v.t.Kind == Boolean:
		if to.Kind == Decimal {
			return maybe(made(to, "TRY_CAST(CAST(%s AS INTEGER) AS "+to.Duck()+")", v))
		}
		return made(to, "CAST(%s AS "+to.Duck()+")", v)
	case v.t.Kind == Date:
		return val{sql: "CAST(NULL AS " + to.Duck() + ")", t: to, null: true}
	case v.t.atTime():
		if to.fractional() || to.Kind == Decimal {
			seconds := made(decimalType(20, 6), "(CAST(epoch_us(%s) AS DECIMAL(20,0)) * CAST(0.000001 AS DECIMAL(7,6)))", v)
			seconds.sql = "CAST(" + seconds.sql + " AS DECIMAL(20,6))"
			return c.castNumber(seconds, to, pos)
		}
		return c.castNumber(made(simple(Long), c.function("spk_seconds")+"(%s)", v), to, pos)
	case !v.t.numeric():
		fail(pos, "a %s is no %s", v.t, to)
	}
	if v.t.Equal(to) {
		return v
	}
	switch {
	case to.Kind == Double || to.Kind == Float:
		if v.t.Kind == Decimal && v.t.Precision > 15 { // by the text: DuckDB's division rounds twice
			return made(to, "CAST(CAST(%s AS VARCHAR) AS "+to.Duck()+")", v)
		}
		return made(to, "CAST(%s AS "+to.Duck()+")", v)
	case to.Kind == Decimal:
		return c.toDecimal(v, to)
	case v.t.fractional():
		name := "spk_double_long"
		if to.Kind != Long {
			name = "spk_double_int"
		}
		out := made(simple(Long), c.function(name)+"(CAST(%s AS DOUBLE))", v)
		return narrow(out, to)
	case v.t.Kind == Decimal:
		whole := made(simple(Long), wrapLong("CAST(trunc(%s) AS HUGEINT)"), v)
		return narrow(whole, to)
	}
	return narrow(v, to)
}

// narrow brings a whole number to another width; a shorter one keeps the low bits.
func narrow(v val, to *Type) val {
	if v.t.Kind <= to.Kind {
		if v.t.Kind == to.Kind {
			v.t = to
			return v
		}
		return made(to, "CAST(%s AS "+to.Duck()+")", v)
	}
	low := map[Kind][2]string{Byte: {"128", "255"}, Short: {"32768", "65535"}, Int: {"2147483648", "4294967295"}}[to.Kind]
	x := "CAST(%s AS BIGINT)"
	// The low bits first: the largest BIGINT plus anything would not fit.
	return made(to, fmt.Sprintf("CAST(((((%s & %s) + %s) & %s) - %s) AS %s)", x, low[1], low[0], low[1], low[0], to.Duck()), v)
}

func (c *compiler) parseNumber(v val, to *Type) val {
	switch to.Kind {
	case Double:
		return maybe(made(to, c.function("spk_double")+"(%s)", v))
	case Float:
		return maybe(made(to, "CAST("+c.function("spk_float")+"(%s) AS FLOAT)", v))
	case Decimal:
		return maybe(made(to, fmt.Sprintf("CAST(%s(%%s, %d, %d) AS %s)", c.function("spk_decimal"), to.Precision, to.Scale, to.Duck()), v))
	}
	bits := map[Kind]string{Byte: "8", Short: "16", Int: "32", Long: "64"}[to.Kind]
	return maybe(made(to, "CAST("+c.function("spk_whole")+"(%s, "+bits+") AS "+to.Duck()+")", v))
}

func (c *compiler) toDecimal(v val, to *Type) val {
	if v.t.fractional() {
		text := "spk_double_text"
		if v.t.Kind == Float {
			text = "spk_float_text"
		}
		return maybe(made(to, fmt.Sprintf("CAST(%s(%s(CAST(%%s AS DOUBLE)), %d, %d) AS %s)", c.function("spk_decimal"), c.function(text), to.Precision, to.Scale, to.Duck()), v))
	}
	from := v.t.digits()
	if to.Precision-to.Scale >= from.Precision-from.Scale && to.Scale >= from.Scale {
		return made(to, "CAST(%s AS "+to.Duck()+")", v)
	}
	return maybe(made(to, "TRY_CAST(%s AS "+to.Duck()+")", v))
}

func (c *compiler) castTimestamp(v val, to *Type, pos int) val {
	switch {
	case v.t.Kind == String:
		return maybe(made(to, c.function("spk_timestamp")+"(%s)", v))
	case v.t.Kind == Date:
		return made(to, "CAST(%s AS TIMESTAMP)", v)
	case v.t.atTime():
		v.t = to
		return v
	case v.t.integral():
		return maybe(made(to, c.function("spk_from_seconds")+"(CAST(%s AS BIGINT))", v))
	case v.t.fractional():
		return maybe(made(to, c.function("spk_from_double")+"(CAST(%s AS DOUBLE))", v))
	case v.t.Kind == Decimal:
		return maybe(made(to, "make_timestamp(CAST(trunc(CAST(%s AS DECIMAL(38,10)) * 1000000) AS BIGINT))", v))
	case v.t.Kind == Boolean:
		return made(to, "make_timestamp(CAST(%s AS BIGINT))", v)
	}
	fail(pos, "a %s is no %s", v.t, to)
	return val{}
}

// castNested casts the parts of arrays, maps and structs.
func (c *compiler) castNested(v val, to *Type, pos int) val {
	if v.t.Kind != to.Kind || len(v.t.Fields) != len(to.Fields) {
		fail(pos, "a %s is no %s", v.t, to)
	}
	same := true
	for i := range to.Fields {
		same = same && v.t.Fields[i].Type.Duck() == to.Fields[i].Type.Duck() && v.t.Fields[i].Type.Equal(to.Fields[i].Type)
	}
	if same { // names alone differ
		v.t = to
		return v
	}
	x := c.fresh("x")
	switch to.Kind {
	case Array:
		e := c.cast(val{sql: x, t: v.t.elem(), null: true}, to.elem(), pos)
		return val{sql: fmt.Sprintf("list_transform(%s, lambda %s: %s)", v.sql, x, e.sql), t: to, null: v.null}
	case Map:
		k := c.cast(val{sql: "struct_extract(" + x + ", 'key')", t: v.t.Fields[0].Type}, to.Fields[0].Type, pos)
		e := c.cast(val{sql: "struct_extract(" + x + ", 'value')", t: v.t.Fields[1].Type, null: true}, to.Fields[1].Type, pos)
		return val{sql: fmt.Sprintf("map_from_entries(list_transform(map_entries(%s), lambda %s: struct_pack(k := %s, v := %s)))", v.sql, x, k.sql, e.sql), t: to, null: v.null}
	}
	// A lambda over a list of one gives the struct a name, so that its text stands once.
	parts := make([]string, len(to.Fields))
	for i, f := range v.t.Fields {
		m := c.cast(val{sql: fmt.Sprintf("struct_extract(%s, 'f%d')", x, i), t: f.Type, null: true}, to.Fields[i].Type, pos)
		parts[i] = fmt.Sprintf("f%d := %s", i, m.sql)
	}
	return val{sql: fmt.Sprintf("list_extract(list_transform([%s], lambda %s: CASE WHEN %s IS NOT NULL THEN struct_pack(%s) END), 1)", v.sql, x, x, strings.Join(parts, ", ")), t: to, null: v.null}
}
