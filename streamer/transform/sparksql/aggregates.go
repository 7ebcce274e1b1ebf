package sparksql

import (
	"fmt"
	"strings"
)

// aggregate writes one aggregate function of DuckDB with what the call adds: DISTINCT, FILTER, OVER. where is a condition of
// ours on the rows.
func (a *args) aggregate(name, arguments, where string) string {
	if a.call.distinct {
		arguments = "DISTINCT " + arguments
	}
	sql := name + "(" + arguments + ")"
	if a.call.filter != nil {
		f := a.c.condition(*a.call.filter, a.s, "FILTER")
		if where != "" {
			where += " AND "
		}
		where += f
	}
	if where != "" {
		sql += " FILTER (WHERE " + where + ")"
	}
	return sql + a.over()
}

func (a *args) over() string {
	w := a.call.over
	if w == nil {
		return ""
	}
	w = a.window(w)
	var parts []string
	if len(w.partition) > 0 {
		keys := make([]string, len(w.partition))
		for i, x := range w.partition {
			keys[i] = a.c.expr(x, a.s).sql
		}
		parts = append(parts, "PARTITION BY "+strings.Join(keys, ", "))
	}
	if len(w.order) > 0 {
		keys := make([]string, len(w.order))
		for i, it := range w.order {
			keys[i] = a.c.orderKey(a.c.expr(it.x, a.s), it.x.pos) + direction(it)
		}
		parts = append(parts, "ORDER BY "+strings.Join(keys, ", "))
	}
	if w.frame != "" {
		parts = append(parts, w.frame)
	}
	return " OVER (" + strings.Join(parts, " ") + ")"
}

// window follows the name of a WINDOW clause.
func (a *args) window(w *window) *window {
	for range 10 {
		if w.name == "" {
			return w
		}
		named, ok := a.s.windows[w.name]
		if !ok {
			fail(w.pos, "window %s is not known", w.name)
		}
		merged := *named
		if w.partition != nil {
			merged.partition = w.partition
		}
		if w.order != nil {
			merged.order = w.order
		}
		if w.frame != "" {
			merged.frame = w.frame
		}
		w = &merged
	}
	fail(w.pos, "windows that name one another")
	return nil
}

// one makes an aggregate of one argument that is null when no row has a value.
func one(k Kind, format, name string, kinds ...Kind) builtin {
	return builtin{len(kinds), len(kinds), func(a *args) val {
		list := make([]val, len(kinds))
		for i, kind := range kinds {
			list[i] = a.as(i, kind)
		}
		arguments := make([]string, len(list))
		for i, v := range list {
			arguments[i] = v.sql
		}
		return val{sql: fmt.Sprintf(format, a.aggregate(name, strings.Join(arguments, ", "), "")), t: simple(k), null: true}
	}}
}

// number is the argument of sum and avg: a number, a text read as a double.
func (a *args) number() val {
	if v := a.v[0]; v.t.numeric() {
		return v
	}
	return a.dbl(0)
}

func (a *args) sum() val {
	v := a.number()
	switch {
	case v.t.integral(): // wraps around, as in Spark
		return val{sql: fmt.Sprintf(wrapLong("CAST(%s AS HUGEINT)"), a.aggregate("sum", v.sql, "")), t: simple(Long), null: true}
	case v.t.Kind == Decimal:
		t := boundedDecimal(min(v.t.Precision+10, maxPrecision), v.t.Scale)
		return val{sql: "TRY_CAST(" + a.aggregate("sum", v.sql, "") + " AS " + t.Duck() + ")", t: t, null: true}
	}
	return val{sql: a.aggregate("sum", "CAST("+v.sql+" AS DOUBLE)", ""), t: simple(Double), null: true}
}

func (a *args) avg() val {
	v := a.number()
	if v.t.Kind == Decimal {
		t := boundedDecimal(min(v.t.Precision+4, maxPrecision), min(v.t.Scale+4, maxPrecision))
		sum := val{sql: a.aggregate("sum", v.sql, ""), t: decimalType(maxPrecision, v.t.Scale), null: true}
		n := val{sql: a.aggregate("count", v.sql, ""), t: simple(Long)}
		return a.c.decimalOp("/", t, sum, n)
	}
	return val{sql: a.aggregate("avg", "CAST("+v.sql+" AS DOUBLE)", ""), t: simple(Double), null: true}
}

func (a *args) counted() val {
	t := simple(Long)
	switch {
	case a.call.star || len(a.v) == 1 && a.v[0].number != nil:
		distinct := a.call.distinct
		a.call.distinct = false
		sql := a.aggregate("count", "*", "")
		if distinct {
			sql = "least(" + sql + ", 1)"
		}
		return val{sql: sql, t: t}
	case len(a.v) == 0:
		fail(a.pos, "count needs an argument")
	case len(a.v) == 1:
		return val{sql: a.aggregate("count", a.v[0].sql, ""), t: t}
	}
	// Rows in which no argument is null.
	conditions := make([]string, len(a.v))
	for i, v := range a.v {
		conditions[i] = v.sql + " IS NOT NULL"
	}
	return val{sql: a.aggregate("count", "row("+list(a.v)+")", strings.Join(conditions, " AND ")), t: t}
}

// gathered is collect_list and collect_set: without nulls, empty and not null where there is no row.
func (a *args) gathered(set bool) val {
	if set {
		a.call.distinct = true
	}
	v := a.v[0]
	sql := a.aggregate("list", v.sql, v.sql+" IS NOT NULL")
	t := arrayOf(v.t, false)
	return val{sql: "coalesce(" + sql + ", CAST([] AS " + t.Duck() + "))", t: t}
}

// edge is first, last, first_value, last_value: the second argument or IGNORE NULLS skips nulls.
func (a *args) edge(name string) val {
	ignore := a.call.ignoreNulls
	if a.has(1) {
		if ignore = a.v[1].sql == "TRUE"; !ignore && a.v[1].sql != "FALSE" {
			fail(a.pos, "%s takes TRUE or FALSE", a.call.name)
		}
	}
	v := a.v[0]
	if a.call.over != nil {
		sql := name + "_value(" + v.sql
		if ignore {
			sql += " IGNORE NULLS"
		}
		return val{sql: sql + ")" + a.over(), t: v.t, null: true}
	}
	if ignore {
		return val{sql: a.aggregate(name, v.sql, v.sql+" IS NOT NULL"), t: v.t, null: true}
	}
	return val{sql: a.aggregate(name, v.sql, ""), t: v.t, null: true}
}

func aggregateFunctions() map[string]builtin {
	typed := func(name string) builtin {
		return builtin{1, 1, func(a *args) val {
			if a.call.name == "max" || a.call.name == "min" {
				a.call.distinct = false
			}
			if nested(a.v[0].t) {
				return val{sql: "struct_extract(" + a.aggregate("arg_"+name, "struct_pack(v := "+a.v[0].sql+"), "+a.c.orderKey(a.v[0], a.pos), a.v[0].sql+" IS NOT NULL") + ", 'v')", t: a.v[0].t, null: true}
			}
			return val{sql: a.aggregate(name, a.v[0].sql, ""), t: a.v[0].t, null: true}
		}}
	}
	by := func(name string) builtin {
		return builtin{2, 2, func(a *args) val {
			// A null value may win; a null key can't.
			return val{sql: "struct_extract(" + a.aggregate(name, "struct_pack(v := "+a.v[0].sql+"), "+a.c.orderKey(a.v[1], a.pos), a.v[1].sql+" IS NOT NULL") + ", 'v')", t: a.v[0].t, null: true}
		}}
	}
	edge := func(name string) builtin { return builtin{1, 2, func(a *args) val { return a.edge(name) }} }
	return map[string]builtin{
		"count": {0, many, func(a *args) val { return a.counted() }},
		"count_if": {1, 1, func(a *args) val {
			return val{sql: "CAST(" + a.aggregate("count", a.as(0, Boolean).sql, a.as(0, Boolean).sql) + " AS BIGINT)", t: simple(Long)}
		}},
		"sum":      {1, 1, func(a *args) val { return a.sum() }},
		"avg mean": {1, 1, func(a *args) val { return a.avg() }},
		"max":      typed("max"), "min": typed("min"),
		"max_by": by("arg_max"), "min_by": by("arg_min"),
		"first first_value": edge("first"), "last last_value": edge("last"), "any_value": edge("first"),
		"collect_list array_agg": {1, 1, func(a *args) val { return a.gathered(false) }},
		"collect_set":            {1, 1, func(a *args) val { return a.gathered(true) }},
		"stddev std stddev_samp": one(Double, "%s", "stddev_samp", Double), "stddev_pop": one(Double, "%s", "stddev_pop", Double),
		"variance var_samp": one(Double, "%s", "var_samp", Double), "var_pop": one(Double, "%s", "var_pop", Double),
		"corr": one(Double, "%s", "corr", Double, Double), "covar_pop": one(Double, "%s", "covar_pop", Double, Double), "covar_samp": one(Double, "%s", "covar_samp", Double, Double),
		"skewness": one(Double, "%s", "skewness", Double), "median": one(Double, "%s", "median", Double),
		"bool_and every": one(Boolean, "%s", "bool_and", Boolean), "bool_or some any": one(Boolean, "%s", "bool_or", Boolean),
		"percentile": {2, 2, func(a *args) val {
			if a.v[1].number == nil {
				fail(a.pos, "percentile takes one literal number")
			}
			return val{sql: a.aggregate("quantile_cont", a.dbl(0).sql+", "+*a.v[1].number, ""), t: simple(Double), null: true}
		}},
		"bit_and": typed("bit_and"), "bit_or": typed("bit_or"), "bit_xor": typed("bit_xor"),
		"grouping": {1, 1, func(a *args) val {
			return val{sql: "CAST(grouping(" + a.v[0].sql + ") AS TINYINT)", t: simple(Byte)}
		}},
	}
}

func windowFunctions() map[string]builtin {
	ranking := func(name string, k Kind) builtin {
		return builtin{0, 0, func(a *args) val {
			return val{sql: "CAST(" + name + "()" + a.over() + " AS " + simple(k).Duck() + ")", t: simple(k)}
		}}
	}
	shift := func(name string) builtin {
		return builtin{1, 3, func(a *args) val {
			v := a.v[0]
			n := a.optional(1, Long, intLit(1))
			text := v.sql + ", " + n.sql
			t := v.t
			if a.has(2) {
				vals, common := a.c.alike([]val{v, a.v[2]}, a.pos, a.call.name)
				t = common
				text = vals[0].sql + ", " + n.sql + ", " + vals[1].sql
			}
			if a.call.ignoreNulls {
				text += " IGNORE NULLS"
			}
			return val{sql: name + "(" + text + ")" + a.over(), t: t, null: true}
		}}
	}
	return map[string]builtin{
		"row_number": ranking("row_number", Int), "rank": ranking("rank", Int), "dense_rank": ranking("dense_rank", Int),
		"percent_rank": ranking("percent_rank", Double), "cume_dist": ranking("cume_dist", Double),
		"ntile": {1, 1, func(a *args) val {
			return val{sql: "CAST(ntile(" + a.long(0).sql + ")" + a.over() + " AS INTEGER)", t: simple(Int)}
		}},
		"lag": shift("lag"), "lead": shift("lead"),
		"nth_value": {2, 2, func(a *args) val {
			return val{sql: "nth_value(" + a.v[0].sql + ", " + a.long(1).sql + ")" + a.over(), t: a.v[0].t, null: true}
		}},
	}
}
