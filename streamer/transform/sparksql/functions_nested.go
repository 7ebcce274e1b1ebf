package sparksql

import (
	"fmt"
	"strings"
)

func collectionFunctions() map[string]builtin {
	element := func(format string) builtin { // of an array and something like its elements
		return builtin{2, 2, func(a *args) val {
			arr, x := a.withElement()
			return made(arr.t, format, arr, x)
		}}
	}
	sets := func(of func(a *args, l, r val) val) builtin { // of two arrays: null where one is
		return builtin{2, 2, func(a *args) val {
			vals, _ := a.c.alike([]val{a.array(0), a.array(1)}, a.pos, a.call.name)
			out := of(a, vals[0], vals[1])
			out.sql = "CASE WHEN " + vals[0].sql + " IS NOT NULL AND " + vals[1].sql + " IS NOT NULL THEN " + out.sql + " END"
			out.null = vals[0].null || vals[1].null
			return out
		}}
	}
	pick := func(format string) builtin {
		return builtin{1, 1, func(a *args) val {
			if nested(a.array(0).t.elem()) {
				fail(a.pos, "%s of a %s isn't supported", a.call.name, a.v[0].t)
			}
			return maybe(made(a.v[0].t.elem(), format, a.v[0]))
		}}
	}
	return map[string]builtin{
		"array": {0, many, func(a *args) val {
			if len(a.v) == 0 {
				return val{sql: "CAST([] AS VARCHAR[])", t: arrayOf(simple(String), false)}
			}
			vals, t := a.c.alike(a.v, a.pos, "array")
			out := val{sql: "[" + list(vals) + "]", t: arrayOf(t, false)}
			for _, v := range vals {
				out.t.Fields[0].Nullable = out.t.Fields[0].Nullable || v.null
			}
			return out
		}},
		"named_struct": {2, many, func(a *args) val {
			if len(a.v)%2 != 0 {
				fail(a.pos, "named_struct takes names and values")
			}
			t := &Type{Kind: Struct}
			var parts []string
			for i := 0; i < len(a.v); i += 2 {
				name, v := a.text(i), a.v[i+1]
				parts = append(parts, fmt.Sprintf("f%d := %s", i/2, v.sql))
				t.Fields = append(t.Fields, Field{name, v.t, v.null})
			}
			return val{sql: "struct_pack(" + strings.Join(parts, ", ") + ")", t: t}
		}},
		"map": {0, many, func(a *args) val {
			if len(a.v)%2 != 0 || len(a.v) == 0 {
				fail(a.pos, "map takes keys and values")
			}
			var keys, values []val
			for i := 0; i < len(a.v); i += 2 {
				keys, values = append(keys, a.v[i]), append(values, a.v[i+1])
			}
			keys, kt := a.c.alike(keys, a.pos, "map")
			values, vt := a.c.alike(values, a.pos, "map")
			null := false
			for _, v := range values {
				null = null || v.null
			}
			return val{sql: "map([" + list(keys) + "], [" + list(values) + "])", t: &Type{Kind: Map, Fields: []Field{{"key", kt, false}, {"value", vt, null}}}}
		}},
		"map_from_arrays": {2, 2, func(a *args) val {
			k, v := a.array(0), a.array(1)
			return made(&Type{Kind: Map, Fields: []Field{{"key", k.t.elem(), false}, {"value", v.t.elem(), v.t.Fields[0].Nullable}}}, "map(%s, %s)", k, v)
		}},
		"map_keys": {1, 1, func(a *args) val { return made(arrayOf(a.mapping(0).t.Fields[0].Type, false), "map_keys(%s)", a.v[0]) }},
		"map_values": {1, 1, func(a *args) val {
			return made(arrayOf(a.mapping(0).t.Fields[1].Type, a.v[0].t.Fields[1].Nullable), "map_values(%s)", a.v[0])
		}},
		"map_contains_key": {2, 2, func(a *args) val {
			return made(simple(Boolean), "list_contains(map_keys(%s), %s)", a.mapping(0), a.c.cast(a.v[1], a.v[0].t.Fields[0].Type, a.pos))
		}},
		"size cardinality": {1, 1, func(a *args) val { // of null: -1
			if a.v[0].t.Kind == Map {
				return val{sql: "coalesce(CAST(cardinality(" + a.v[0].sql + ") AS INTEGER), -1)", t: simple(Int)}
			}
			return val{sql: "coalesce(CAST(len(" + a.array(0).sql + ") AS INTEGER), -1)", t: simple(Int)}
		}},
		"array_size": {1, 1, func(a *args) val { return made(simple(Int), "CAST(len(%s) AS INTEGER)", a.array(0)) }},
		"array_contains": {2, 2, func(a *args) val {
			arr, x := a.withElement()
			l := a.c.fresh("x")
			// Null where the value isn't there but a null is.
			return maybe(made(simple(Boolean), "CASE WHEN %[2]s IS NULL OR %[1]s IS NULL THEN NULL WHEN list_contains(%[1]s, %[2]s) THEN TRUE WHEN len(list_filter(%[1]s, lambda "+l+": "+l+" IS NULL)) > 0 THEN NULL ELSE FALSE END", arr, x))
		}},
		"array_position": {2, 2, func(a *args) val {
			arr, x := a.withElement()
			return made(simple(Long), "CASE WHEN %[1]s IS NOT NULL AND %[2]s IS NOT NULL THEN coalesce(CAST(list_position(%[1]s, %[2]s) AS BIGINT), 0) END", arr, x)
		}},
		"array_remove": {2, 2, func(a *args) val {
			arr, x := a.withElement()
			l := a.c.fresh("x")
			return made(arr.t, "CASE WHEN %[2]s IS NOT NULL THEN list_filter(%[1]s, lambda "+l+": "+l+" IS DISTINCT FROM %[2]s) END", arr, x)
		}},
		"array_append":   element("list_append(%s, %s)"),
		"array_distinct": {1, 1, func(a *args) val { return a.distinct(a.array(0)) }},
		"array_compact": {1, 1, func(a *args) val {
			l := a.c.fresh("x")
			return made(a.array(0).t, "list_filter(%s, lambda "+l+": "+l+" IS NOT NULL)", a.v[0])
		}},
		"array_max": pick("list_max(%s)"), "array_min": pick("list_min(%s)"),
		"array_join": {2, 3, func(a *args) val {
			v := a.c.cast(a.array(0), arrayOf(simple(String), true), a.pos)
			l := a.c.fresh("x")
			if a.has(2) {
				return made(simple(String), "array_to_string(list_transform(%[1]s, lambda "+l+": coalesce("+l+", %[3]s)), %[2]s)", v, a.str(1), a.str(2))
			}
			return made(simple(String), "array_to_string(list_filter(%s, lambda "+l+": "+l+" IS NOT NULL), %s)", v, a.str(1))
		}},
		"sort_array array_sort": {1, 2, func(a *args) val {
			order := "'ASC', 'NULLS FIRST'"
			if a.call.name == "array_sort" {
				order = "'ASC', 'NULLS LAST'"
			}
			if a.has(1) {
				switch {
				case a.v[1].sql == "FALSE":
					order = "'DESC', 'NULLS LAST'"
				case a.v[1].sql != "TRUE":
					fail(a.pos, "sort_array takes TRUE or FALSE")
				}
			}
			if nested(a.array(0).t.elem()) {
				fail(a.pos, "%s of a %s isn't supported", a.call.name, a.v[0].t)
			}
			return made(a.v[0].t, "list_sort(%s, "+order+")", a.v[0])
		}},
		"array_repeat": {2, 2, func(a *args) val {
			return made(arrayOf(a.v[0].t, a.v[0].null), "list_transform(range(greatest(%[2]s, 0)), lambda "+a.c.fresh("x")+": %[1]s)", val{sql: a.v[0].sql, t: a.v[0].t}, a.long(1))
		}},
		"array_union":     sets(func(a *args, l, r val) val { return a.distinct(made(l.t, "list_concat(%s, %s)", l, r)) }),
		"array_intersect": sets(func(a *args, l, r val) val { return a.distinct(a.holding(l, r, "IS NOT NULL")) }),
		"array_except":    sets(func(a *args, l, r val) val { return a.distinct(a.holding(l, r, "IS NULL")) }),
		"arrays_overlap": {2, 2, func(a *args) val {
			vals, _ := a.c.alike([]val{a.array(0), a.array(1)}, a.pos, "arrays_overlap")
			return maybe(made(simple(Boolean), "CASE WHEN list_has_any(%[1]s, %[2]s) THEN TRUE WHEN len(%[1]s) > 0 AND len(%[2]s) > 0 AND (list_count(%[1]s) < len(%[1]s) OR list_count(%[2]s) < len(%[2]s)) THEN NULL WHEN %[1]s IS NULL OR %[2]s IS NULL THEN NULL ELSE FALSE END", vals...))
		}},
		"slice": {3, 3, func(a *args) val {
			return made(a.array(0).t, "CASE WHEN %[2]s > 0 THEN list_slice(%[1]s, %[2]s, %[2]s + %[3]s - 1) WHEN %[2]s < 0 AND - %[2]s <= len(%[1]s) THEN list_slice(%[1]s, len(%[1]s) + %[2]s + 1, len(%[1]s) + %[2]s + %[3]s) ELSE list_slice(%[1]s, 2, 1) END", a.v[0], a.long(1), a.long(2))
		}},
		"flatten": {1, 1, func(a *args) val {
			v := a.array(0)
			if v.t.elem().Kind != Array {
				fail(a.pos, "flatten of a %s", v.t)
			}
			l := a.c.fresh("x")
			return maybe(made(v.t.elem(), "CASE WHEN len(list_filter(%[1]s, lambda "+l+": "+l+" IS NULL)) = 0 THEN flatten(%[1]s) END", v))
		}},
		"element_at try_element_at": {2, 2, func(a *args) val {
			if a.v[0].t.Kind == Map {
				return a.c.index(a.v[0], a.v[1], a.pos)
			}
			return maybe(made(a.array(0).t.elem(), "list_extract(%s, %s)", a.v[0], a.long(1)))
		}},
		"get": {2, 2, func(a *args) val { return a.c.index(a.array(0), a.v[1], a.pos) }},
		"sequence": {2, 3, func(a *args) val {
			if !a.v[0].t.integral() || !a.v[1].t.integral() {
				fail(a.pos, "sequence of %s isn't supported, of whole numbers it is", a.v[0].t)
			}
			t := commonInts(a.v[0], a.v[1], "sequence", a.pos)
			from, to := a.long(0), a.long(1)
			step := made(simple(Long), "CASE WHEN %s <= %s THEN 1 ELSE -1 END", from, to)
			if a.has(2) {
				step = a.long(2)
			}
			out := made(arrayOf(simple(Long), false), "generate_series(%s, %s, %s)", from, to, step)
			return a.c.cast(out, arrayOf(t, false), a.pos)
		}},
	}
}

// distinct keeps the first of equal elements, in order; nulls are equal.
func (a *args) distinct(v val) val {
	e, i := a.c.fresh("x"), a.c.fresh("x")
	return made(v.t, "list_filter(%[1]s, lambda "+e+", "+i+": list_position(%[1]s, "+e+") = "+i+")", v)
}

// holding keeps the elements of l whose place in r is so.
func (a *args) holding(l, r val, is string) val {
	e := a.c.fresh("x")
	return made(l.t, "list_filter(%s, lambda "+e+": list_position(%s, "+e+") "+is+")", l, r)
}

// withElement gives an array and a value as one of its elements, both brought to one type.
func (a *args) withElement() (arr, x val) {
	t := common(a.array(0).t.elem(), a.v[1].t)
	if t == nil {
		fail(a.pos, "%s of %s and %s", a.call.name, a.v[0].t, a.v[1].t)
	}
	arr = a.c.cast(a.v[0], arrayOf(t, a.v[0].t.Fields[0].Nullable || a.v[1].null), a.pos)
	return arr, a.c.cast(a.v[1], t, a.pos)
}

// lambda compiles a lambda whose parameters are of the given types.
func (a *args) lambda(i int, params ...val) (names string, body val) {
	l, ok := a.call.args[i].expr.(lambdaExpr)
	if !ok || len(l.params) > len(params) {
		fail(a.pos, "argument %d of %s is a lambda of at most %d parameters", i+1, a.call.name, len(params))
	}
	inner := *a.s
	inner.lambda = map[string]val{}
	inner.outer = a.s
	inner.columns, inner.aliases = nil, nil
	list := make([]string, len(l.params))
	for j, p := range l.params {
		v := params[j]
		list[j] = a.c.fresh("x")
		v.sql = list[j]
		inner.lambda[strings.ToLower(p)] = v
	}
	return strings.Join(list, ", "), a.c.expr(l.body, &inner)
}

// lambdaFunctions are the functions that take a lambda.
func lambdaFunctions() map[string]builtin {
	over := func(make func(a *args, arr val, names string, body val) val) builtin {
		return builtin{2, 2, func(a *args) val {
			a.v = []val{a.c.expr(a.call.args[0], a.s)}
			arr := a.array(0)
			e := val{t: arr.t.elem(), null: arr.t.Fields[0].Nullable}
			i := val{t: simple(Int)}
			names, body := a.lambda(1, e, i)
			if n := strings.Split(names, ", "); len(n) == 2 { // Spark's index is from 0
				body.sql = replaceName(body.sql, n[1], "CAST("+n[1]+" - 1 AS INTEGER)")
			}
			return make(a, arr, names, body)
		}}
	}
	condition := func(a *args, body val) val { return a.c.cast(body, simple(Boolean), a.pos) }
	return map[string]builtin{
		"transform": over(func(a *args, arr val, names string, body val) val {
			return val{sql: fmt.Sprintf("list_transform(%s, lambda %s: %s)", arr.sql, names, body.sql), t: arrayOf(body.t, body.null), null: arr.null}
		}),
		"filter": over(func(a *args, arr val, names string, body val) val {
			return val{sql: fmt.Sprintf("list_filter(%s, lambda %s: coalesce(%s, FALSE))", arr.sql, names, condition(a, body).sql), t: arr.t, null: arr.null}
		}),
		"exists": over(func(a *args, arr val, names string, body val) val {
			l := fmt.Sprintf("list_transform(%s, lambda %s: %s)", arr.sql, names, condition(a, body).sql)
			return val{sql: fmt.Sprintf("CASE WHEN %[1]s IS NULL THEN NULL WHEN list_contains(%[1]s, TRUE) THEN TRUE WHEN list_count(%[1]s) < len(%[1]s) THEN NULL ELSE FALSE END", l), t: simple(Boolean), null: true}
		}),
		"forall": over(func(a *args, arr val, names string, body val) val {
			l := fmt.Sprintf("list_transform(%s, lambda %s: %s)", arr.sql, names, condition(a, body).sql)
			return val{sql: fmt.Sprintf("CASE WHEN %[1]s IS NULL THEN NULL WHEN list_contains(%[1]s, FALSE) THEN FALSE WHEN list_count(%[1]s) < len(%[1]s) THEN NULL ELSE TRUE END", l), t: simple(Boolean), null: true}
		}),
		"aggregate": reduction(), "reduce": reduction(),
	}
}

func reduction() builtin {
	return builtin{3, 4, func(a *args) val {
		a.v = []val{a.c.expr(a.call.args[0], a.s), a.c.expr(a.call.args[1], a.s)}
		arr, start := a.array(0), a.v[1]
		acc := val{t: start.t, null: true}
		names, body := a.lambda(2, acc, val{t: arr.t.elem(), null: true})
		body = a.c.cast(body, start.t, a.pos)
		// DuckDB's reduce needs elements of the type of what it gathers: both in structs.
		if !arr.t.elem().Equal(start.t) {
			fail(a.pos, "aggregate of %s from a %s isn't supported: cast them to one type", arr.t, start.t)
		}
		out := val{sql: fmt.Sprintf("list_reduce(%s, lambda %s: %s, %s)", arr.sql, names, body.sql, start.sql), t: start.t, null: true}
		if len(a.call.args) == 4 {
			fin, result := a.lambda(3, out)
			result.sql = fmt.Sprintf("list_extract(list_transform([%s], lambda %s: %s), 1)", out.sql, fin, result.sql)
			return maybe(result)
		}
		return out
	}}
}

// replaceName puts a text for a generated name, which stands nowhere inside of another word.
func replaceName(sql, name, with string) string {
	var b strings.Builder
	for {
		i := strings.Index(sql, name)
		if i < 0 {
			return b.String() + sql
		}
		end := i + len(name)
		b.WriteString(sql[:i])
		if end < len(sql) && sql[end] >= '0' && sql[end] <= '9' {
			b.WriteString(name)
		} else {
			b.WriteString(with)
		}
		sql = sql[end:]
	}
}
