package sparksql

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// from compiles FROM with its joins and lateral views, and fills the scope.
func (c *compiler) from(b *selectBody, s *scope) string {
	if len(b.from) == 0 {
		return ""
	}
	sql := ""
	for i, r := range b.from {
		text, columns := c.relation(r, s)
		if i > 0 {
			sql += " CROSS JOIN "
		}
		sql += text
		s.columns = append(s.columns, columns...)
		for _, j := range r.joins {
			sql = c.join(sql, j, s)
		}
	}
	sql = " FROM " + sql
	for _, v := range b.views {
		sql = c.generate(s, sql, "", []lateralView{v})
	}
	return sql
}

// relation compiles one element of FROM without its joins.
func (c *compiler) relation(r relation, s *scope) (sql string, columns []column) {
	alias := c.fresh("t")
	name := r.alias
	var fields []Field
	source := false
	switch {
	case r.query != nil:
		outer := s.outer
		if r.lateral {
			outer = s
			sql = "LATERAL "
		}
		text, cols := c.body(r.query, outer, s.env)
		sql += "(" + text + ") AS " + alias
		fields = cols
	case r.call != nil:
		sql, fields = c.tableFunction(r, s, alias)
	default:
		last := r.name[len(r.name)-1]
		v := s.env.find(last)
		if v == nil || len(r.name) > 1 {
			fail(r.pos, "table %s is not known; a transformer sees the rows of its round, as <SRC>, and its own views", strings.Join(r.name, "."))
		}
		if name == "" {
			name = last
		}
		if source = v.source; source {
			sql, fields = SourceTable+" AS "+alias, c.source
		} else {
			sql, fields = v.sql+" AS "+alias, v.columns
		}
	}
	if r.columns != nil {
		fields = renamed(fields, r.columns, r.pos)
	}
	for i, f := range fields {
		col := column{qualifier: name, name: f.Name, t: f.Type, null: f.Nullable, sql: alias + ".c" + strconv.Itoa(i)}
		if source {
			col.use, col.bad = i+1, c.unusable[i]
		}
		columns = append(columns, col)
	}
	return sql, columns
}

// tableFunction is range(…) or a generator in FROM.
func (c *compiler) tableFunction(r relation, s *scope, alias string) (string, []Field) {
	if isGenerator(r.call.name) {
		g := c.generator(*r.call, s.outerOr(), false, nil, r.pos)
		items := make([]string, len(g))
		fields := make([]Field, len(g))
		for i, it := range g {
			items[i] = it.v.sql + " AS c" + strconv.Itoa(i)
			fields[i] = Field{it.name, it.v.t, it.v.null}
		}
		return "(SELECT " + strings.Join(items, ", ") + ") AS " + alias, fields
	}
	if r.call.name == "range" && len(r.call.args) >= 1 && len(r.call.args) <= 3 {
		var args []string
		for _, x := range r.call.args {
			args = append(args, c.cast(c.expr(x, s.outerOr()), simple(Long), x.pos).sql)
		}
		return "(SELECT range AS c0 FROM range(" + strings.Join(args, ", ") + ")) AS " + alias, []Field{{"id", simple(Long), false}}
	}
	fail(r.pos, "function %s isn't known as a source of rows", r.call.name)
	return "", nil
}

// outerOr is what an element of FROM sees: what stands outside of the query.
func (s *scope) outerOr() *scope {
	return &scope{outer: s.outer, env: s.env}
}

// join adds one join to a FROM text.
func (c *compiler) join(left string, j join, s *scope) string {
	text, right := c.relation(j.right, s)
	if len(j.right.joins) > 0 {
		fail(j.pos, "a join of joins")
	}
	using := j.using
	if j.natural {
		for _, l := range s.columns {
			if !l.hidden && slices.ContainsFunc(right, func(r column) bool { return strings.EqualFold(r.name, l.name) }) {
				using = append(using, l.name)
			}
		}
	}
	both := &scope{outer: s.outer, env: s.env, columns: append(slices.Clone(s.columns), right...)}
	on := ""
	var merged []column
	for _, name := range using {
		l, r := pick(s.columns, name, j.pos), pick(right, name, j.pos)
		lv, rv := c.use(l, j.pos), c.use(r, j.pos)
		if on != "" {
			on += " AND "
		}
		on += c.compare("=", lv, rv, j.pos).sql
		m := column{name: l.name, t: l.t, null: l.null, sql: l.sql}
		if j.kind == "right" {
			m = column{name: l.name, t: r.t, null: r.null, sql: r.sql}
		} else if j.kind == "full" {
			v := c.coalesce([]val{lv, rv}, j.pos)
			m = column{name: l.name, t: v.t, null: v.null, sql: v.sql}
		}
		merged = append(merged, m)
		l.hidden, r.hidden = true, true
	}
	if j.on != nil {
		on = c.condition(*j.on, both, "ON")
	}
	if j.kind == "left" || j.kind == "full" {
		right = nullable(right)
	}
	if j.kind == "right" || j.kind == "full" {
		s.columns = nullable(s.columns)
	}
	word := map[string]string{"inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN", "cross": "CROSS JOIN", "semi": "SEMI JOIN", "anti": "ANTI JOIN"}[j.kind]
	if on == "" {
		if j.kind == "inner" {
			word = "CROSS JOIN"
		} else if j.kind != "cross" {
			on = "TRUE"
		}
	} else if j.kind == "cross" {
		word = "JOIN"
	}
	if j.kind != "semi" && j.kind != "anti" {
		s.columns = append(append(merged, s.columns...), right...)
	} else {
		for i := range s.columns {
			if slices.ContainsFunc(merged, func(m column) bool { return m.sql == s.columns[i].sql }) {
				s.columns[i].hidden = false
			}
		}
	}
	if on != "" {
		on = " ON " + on
	}
	return left + " " + word + " " + text + on
}

func nullable(columns []column) []column {
	out := slices.Clone(columns)
	for i := range out {
		out[i].null = true
	}
	return out
}

func pick(columns []column, name string, pos int) *column {
	var found *column
	for i := range columns {
		if strings.EqualFold(columns[i].name, name) && !columns[i].hidden {
			if found != nil {
				fail(pos, "USING %s: the name stands for more than one column", name)
			}
			found = &columns[i]
		}
	}
	if found == nil {
		fail(pos, "USING %s: there is no such column", name)
	}
	return found
}

// generate wraps a FROM text into a subquery that has the columns of generators besides its own. A subquery and not a lateral
// join keeps the order of the rows.
func (c *compiler) generate(s *scope, from, where string, views []lateralView) string {
	alias := c.fresh("t")
	var items []string
	var columns []column
	for _, v := range views {
		name := v.alias
		made := c.generator(v.call, s, v.outer, v.columns, v.pos)
		for i := range s.columns {
			col := &s.columns[i]
			if col.use > 0 {
				if col.bad != nil {
					columns = append(columns, *col)
					continue
				}
				c.used[col.use-1] = true
			}
			n := "c" + strconv.Itoa(len(items))
			items = append(items, col.sql+" AS "+n)
			moved := *col
			moved.sql, moved.use = alias+"."+n, 0
			columns = append(columns, moved)
		}
		for _, m := range made {
			n := "c" + strconv.Itoa(len(items))
			items = append(items, m.v.sql+" AS "+n)
			columns = append(columns, column{qualifier: name, name: m.name, t: m.v.t, null: m.v.null, sql: alias + "." + n})
		}
	}
	s.columns = columns
	return " FROM (SELECT " + strings.Join(items, ", ") + from + where + ") AS " + alias
}

func isGenerator(name string) bool {
	switch strings.TrimSuffix(name, "_outer") {
	case "explode", "posexplode", "inline", "stack":
		return true
	}
	return false
}

// generator gives the columns of explode, posexplode and inline.
func (c *compiler) generator(call callExpr, s *scope, outer bool, names []string, pos int) (out []selected) {
	if trimmed := strings.TrimSuffix(call.name, "_outer"); trimmed != call.name {
		call.name, outer = trimmed, true
	}
	if call.name == "stack" || len(call.args) != 1 {
		fail(pos, "function %s isn't known with %d arguments", call.name, len(call.args))
	}
	v := c.expr(call.args[0], s)
	add := func(name string, t *Type, null bool, sql string) {
		out = append(out, selected{name, val{sql: sql, t: t, null: null || outer}})
	}
	filled := func(list string) string {
		if outer {
			return "unnest(CASE WHEN len(" + list + ") > 0 THEN " + list + " ELSE [NULL] END)"
		}
		return "unnest(" + list + ")"
	}
	if call.name == "posexplode" {
		size := "len(" + v.sql + ")"
		if v.t.Kind == Map {
			size = "cardinality(" + v.sql + ")"
		}
		add("pos", simple(Int), false, filled("range(CAST("+size+" AS BIGINT))"))
		out[0].v.sql = "CAST(" + out[0].v.sql + " AS INTEGER)"
	}
	switch {
	case v.t.Kind == Array && call.name == "inline":
		if v.t.elem().Kind != Struct {
			fail(pos, "inline needs an array of structs, not %s", v.t)
		}
		for i, f := range v.t.elem().Fields {
			add(f.Name, f.Type, true, fmt.Sprintf("struct_extract(%s, 'f%d')", filled(v.sql), i))
		}
	case v.t.Kind == Array && call.name != "inline":
		add("col", v.t.elem(), true, filled(v.sql))
	case v.t.Kind == Map && call.name != "inline":
		add("key", v.t.Fields[0].Type, false, filled("map_keys("+v.sql+")"))
		add("value", v.t.Fields[1].Type, true, filled("map_values("+v.sql+")"))
	default:
		fail(pos, "%s needs an array or a map, not %s", call.name, v.t)
	}
	if len(names) > 0 {
		if len(names) != len(out) {
			fail(pos, "%s gives %d columns, there are %d names", call.name, len(out), len(names))
		}
		for i := range out {
			out[i].name = names[i]
		}
	}
	return out
}
