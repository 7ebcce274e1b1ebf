// Package sparksql runs the Spark SQL of transformers without Spark: it reads a statement, resolves names and types by Spark's
// rules (no ANSI mode, session time zone UTC) and writes the statement again for DuckDB, with every difference between the two
// spelled out: division, implicit casts, the order of nulls, what a cast of a text gives, names without case.
//
// A function that it doesn't know is an error that names it. The package needs no cgo; running what it writes is up to the caller,
// who also registers the functions of [Functions] in DuckDB.
package sparksql

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// SourceTable is the table that the written statement reads; column i of the source is called c<i> in it.
const SourceTable = "source_rows"

// Plan is a translated statement.
type Plan struct {
	// SQL is one SELECT for DuckDB. Its columns are c0, c1, … of the types that Columns give by [Type.Duck].
	SQL string
	// Columns of the result, with the names and types that Spark gives them.
	Columns []Field
	// Uses are the indexes of the source's columns that SQL reads, ascending; SourceTable needs no others.
	Uses []int
	// Functions are the names of the functions among [Functions] that SQL calls.
	Functions []string
}

// Compile translates statements of Spark SQL that run one after the other; the last one gives the rows. name is how they call
// the source. The errors are *[Error] where a statement is wrong.
func Compile(statements []string, name string, source *arrow.Schema) (*Plan, error) {
	c := &compiler{used: map[int]bool{}, functions: map[string]bool{}, library: newLibrary()}
	for _, f := range source.Fields() {
		t, err := FromArrow(f.Type)
		c.source = append(c.source, Field{f.Name, t, f.Nullable})
		c.unusable = append(c.unusable, err)
	}
	env := &names{views: map[string]*view{strings.ToLower(name): {source: true}}}
	var last *query
	var lastText string
	var definitions []string
	for _, text := range statements {
		s, err := parseStatement(text)
		if err != nil {
			return nil, err
		}
		last, lastText = s.query, text
		if s.view != "" {
			v, definition, err := c.define(s, env, text)
			if err != nil {
				return nil, err
			}
			definitions = append(definitions, definition)
			env = &names{views: map[string]*view{strings.ToLower(s.view): v}, outer: env}
			last = nil
		}
	}
	if last == nil {
		return nil, fmt.Errorf("SQL: the last statement gives no rows; it must be a SELECT")
	}
	sql, columns, err := c.top(last, env, lastText)
	if err != nil {
		return nil, err
	}
	if len(definitions) > 0 {
		sql = "WITH " + strings.Join(definitions, ", ") + " " + sql
	}
	return &Plan{SQL: sql, Columns: columns, Uses: slices.Sorted(maps.Keys(c.used)), Functions: slices.Sorted(maps.Keys(c.functions))}, nil
}

// Schema is the Arrow schema of the result. Errors name the column.
func (p *Plan) Schema() (*arrow.Schema, error) {
	fields := make([]arrow.Field, len(p.Columns))
	for i, c := range p.Columns {
		t, err := c.Type.Arrow()
		if err != nil {
			return nil, fmt.Errorf("column %s of the SQL result: %w", c.Name, err)
		}
		fields[i] = arrow.Field{Name: c.Name, Type: t, Nullable: c.Nullable}
	}
	return arrow.NewSchema(fields, nil), nil
}

// compiler holds what one Compile knows.
type compiler struct {
	source    []Field
	unusable  []error // by column of the source: why SQL can't have it
	used      map[int]bool
	functions map[string]bool
	library   *library
	serial    int
}

// view is something that FROM can name.
type view struct {
	source  bool
	sql     string // its name in DuckDB
	columns []Field
}

// names are the views in sight, inner ones first.
type names struct {
	views map[string]*view
	outer *names
}

func (n *names) find(name string) *view {
	for ; n != nil; n = n.outer {
		if v, ok := n.views[strings.ToLower(name)]; ok {
			return v
		}
	}
	return nil
}

// fresh gives a name that the statement hasn't used.
func (c *compiler) fresh(prefix string) string {
	c.serial++
	return prefix + strconv.Itoa(c.serial)
}

func (c *compiler) define(s statement, env *names, text string) (v *view, definition string, err error) {
	defer recovered(text, &err)
	sql, columns := c.query(s.query, nil, env)
	v = &view{sql: c.fresh("v"), columns: columns}
	return v, v.sql + " AS (" + sql + ")", nil
}

// top compiles the query that gives the rows, with each column cast to its declared type.
func (c *compiler) top(q *query, env *names, text string) (sql string, columns []Field, err error) {
	defer recovered(text, &err)
	sql, columns = c.query(q, nil, env)
	items := make([]string, len(columns))
	for i, f := range columns {
		items[i] = fmt.Sprintf("CAST(q.c%d AS %s) AS c%d", i, f.Type.Duck(), i)
	}
	return "SELECT " + strings.Join(items, ", ") + " FROM (" + sql + ") AS q", columns, nil
}

// column is a name that expressions can use.
type column struct {
	qualifier, name string
	t               *Type
	null            bool
	sql             string
	hidden          bool // the second one of JOIN … USING: its qualified name alone finds it
	use             int  // the source's column + 1
	bad             error
}

type scope struct {
	columns []column
	aliases []selected // of the SELECT list, for GROUP BY, HAVING, ORDER BY and later items
	first   bool       // aliases before columns
	lambda  map[string]val
	outer   *scope
	env     *names
	windows map[string]*window
}

// selected is one item of a SELECT list.
type selected struct {
	name string
	v    val
}

// query compiles a query; its columns are called c0, c1, … in DuckDB.
func (c *compiler) query(q *query, outer *scope, env *names) (sql string, columns []Field) {
	var with []string
	for _, e := range q.with {
		body, cols := c.query(e.query, outer, env)
		if e.columns != nil {
			cols = renamed(cols, e.columns, q.pos)
		}
		v := &view{sql: c.fresh("w"), columns: cols}
		with = append(with, v.sql+" AS ("+body+")")
		env = &names{views: map[string]*view{strings.ToLower(e.name): v}, outer: env}
	}
	if s, ok := q.body.(*selectBody); ok {
		sql, columns = c.selectQuery(s, q.order, outer, env)
	} else {
		sql, columns = c.body(q.body, outer, env)
		if len(q.order) > 0 {
			alias := c.fresh("t")
			s := &scope{outer: outer, env: env}
			for i, f := range columns {
				s.columns = append(s.columns, column{name: f.Name, t: f.Type, null: f.Nullable, sql: alias + ".c" + strconv.Itoa(i)})
			}
			sql = "SELECT * FROM (" + sql + ") AS " + alias + " ORDER BY " + strings.Join(c.orderBy(q.order, s, len(columns)), ", ")
		}
	}
	if q.limit != nil {
		sql += " LIMIT " + c.constantCount(*q.limit, "LIMIT")
	}
	if q.offset != nil {
		sql += " OFFSET " + c.constantCount(*q.offset, "OFFSET")
	}
	if len(with) > 0 {
		sql = "WITH " + strings.Join(with, ", ") + " " + sql
	}
	return sql, columns
}

func (c *compiler) constantCount(x node, what string) string {
	n, ok := x.expr.(numLit)
	if !ok || strings.Trim(n.s, "0123456789") != "" {
		fail(x.pos, "%s needs a number", what)
	}
	return n.s
}

func renamed(columns []Field, to []string, pos int) []Field {
	if len(to) != len(columns) {
		fail(pos, "there are %d names for %d columns", len(to), len(columns))
	}
	out := slices.Clone(columns)
	for i := range out {
		out[i].Name = to[i]
	}
	return out
}

func (c *compiler) body(b queryBody, outer *scope, env *names) (string, []Field) {
	switch b := b.(type) {
	case *query:
		sql, columns := c.query(b, outer, env)
		return "SELECT * FROM (" + sql + ") AS " + c.fresh("t"), columns
	case *selectBody:
		return c.selectQuery(b, nil, outer, env)
	case *valuesBody:
		return c.values(b, outer, env)
	case *setBody:
		return c.setQuery(b, outer, env)
	}
	panic("sparksql: a query of no known kind")
}

func (c *compiler) values(b *valuesBody, outer *scope, env *names) (string, []Field) {
	s := &scope{outer: outer, env: env}
	rows := make([][]val, len(b.rows))
	for i, row := range b.rows {
		for _, x := range row {
			rows[i] = append(rows[i], c.expr(x, s))
		}
		if len(row) != len(rows[0]) {
			fail(b.pos, "the rows of VALUES have different numbers of columns")
		}
	}
	columns := make([]Field, len(rows[0]))
	for j := range columns {
		column := make([]val, len(rows))
		for i := range rows {
			column[i] = rows[i][j]
		}
		column, t := c.alike(column, b.pos, "VALUES")
		columns[j] = Field{Name: "col" + strconv.Itoa(j+1), Type: t}
		for i := range rows {
			rows[i][j] = column[i]
			columns[j].Nullable = columns[j].Nullable || column[i].null
		}
	}
	lines := make([]string, len(rows))
	for i, row := range rows {
		lines[i] = "(" + list(row) + ")"
	}
	names := make([]string, len(columns))
	for i := range names {
		names[i] = "c" + strconv.Itoa(i)
	}
	return "SELECT * FROM (VALUES " + strings.Join(lines, ", ") + ") AS " + c.fresh("t") + "(" + strings.Join(names, ", ") + ")", columns
}

func (c *compiler) setQuery(b *setBody, outer *scope, env *names) (string, []Field) {
	left, lc := c.body(b.left, outer, env)
	right, rc := c.body(b.right, outer, env)
	if len(lc) != len(rc) {
		fail(b.pos, "%s of %d and %d columns", b.op, len(lc), len(rc))
	}
	columns := make([]Field, len(lc))
	for i := range lc {
		t := common(lc[i].Type, rc[i].Type)
		if t == nil {
			fail(b.pos, "%s: column %d is %s on one side and %s on the other", b.op, i+1, lc[i].Type, rc[i].Type)
		}
		columns[i] = Field{lc[i].Name, t, lc[i].Nullable || rc[i].Nullable}
	}
	side := func(sql string, from []Field) string {
		alias := c.fresh("t")
		items := make([]string, len(from))
		for i, f := range from {
			v := c.cast(val{sql: alias + ".c" + strconv.Itoa(i), t: f.Type, null: f.Nullable}, columns[i].Type, b.pos)
			columns[i].Nullable = columns[i].Nullable || v.null
			items[i] = fmt.Sprintf("%s AS c%d", v.sql, i)
		}
		return "SELECT " + strings.Join(items, ", ") + " FROM (" + sql + ") AS " + alias
	}
	op := b.op
	if b.all {
		op += " ALL"
	}
	return "(" + side(left, lc) + ") " + op + " (" + side(right, rc) + ")", columns
}

// orderBy writes the items of ORDER BY; numbers are positions among n columns.
func (c *compiler) orderBy(items []orderItem, s *scope, n int) (out []string) {
	for _, it := range items {
		var key string
		if num, ok := it.x.expr.(numLit); ok && s.lambda == nil && n > 0 {
			i, err := strconv.Atoi(num.s)
			if err != nil || i < 1 || i > n {
				fail(it.x.pos, "ORDER BY %s: there are %d columns", num.s, n)
			}
			key = num.s
			if i <= len(s.aliases) && nested(s.aliases[i-1].v.t) {
				key = c.orderKey(s.aliases[i-1].v, it.x.pos)
			}
		} else if i := s.aliasOf(it.x); i >= 0 && s.first && !nested(s.aliases[i].v.t) {
			key = strconv.Itoa(i + 1)
		} else if key = c.orderKey(c.expr(it.x, s), it.x.pos); n > 0 && isNumber(key) {
			continue // a constant orders nothing
		}
		out = append(out, key+direction(it))
	}
	if len(out) == 0 {
		return []string{"1"}
	}
	return out
}

func nested(t *Type) bool { return len(t.Fields) > 0 }

func isNumber(sql string) bool { return sql != "" && strings.Trim(sql, "0123456789") == "" }

func direction(it orderItem) string {
	d := " ASC"
	if it.desc {
		d = " DESC"
	}
	if it.nullsFirst {
		return d + " NULLS FIRST"
	}
	return d + " NULLS LAST"
}

// aliasOf gives the item of the SELECT list that an expression names, or -1.
func (s *scope) aliasOf(x node) int {
	ref, ok := x.expr.(nameRef)
	if !ok || len(ref.parts) != 1 {
		return -1
	}
	found := -1
	for i, a := range s.aliases {
		if strings.EqualFold(a.name, ref.parts[0]) {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}

// selectQuery compiles one SELECT with the ORDER BY that follows it.
func (c *compiler) selectQuery(b *selectBody, order []orderItem, outer *scope, env *names) (string, []Field) {
	s := &scope{outer: outer, env: env, windows: b.windows}
	from := c.from(b, s)
	where := ""
	if b.where != nil {
		where = " WHERE " + c.condition(*b.where, s, "WHERE")
	}
	items, generators := c.takeGenerators(b, s)
	if len(generators) > 0 {
		if b.group != nil {
			fail(generators[0].pos, "%s together with GROUP BY: use LATERAL VIEW", generators[0].call.name)
		}
		from = c.generate(s, from, where, generators)
		where = ""
	}
	out := c.selectItems(items, s)
	grouped := ""
	if b.group != nil {
		grouped = c.groupBy(b.group, s, out)
	}
	if b.having != nil {
		h := *s
		h.aliases = out // columns before aliases, as in Spark
		grouped += " HAVING " + c.condition(*b.having, &h, "HAVING")
	}
	columns := make([]Field, len(out))
	texts := make([]string, len(out))
	for i, it := range out {
		columns[i] = Field{it.name, it.v.t, it.v.null}
		texts[i] = it.v.sql + " AS c" + strconv.Itoa(i)
	}
	sql := "SELECT "
	if b.distinct {
		sql += "DISTINCT "
	}
	sql += strings.Join(texts, ", ") + from + where + grouped
	if len(order) > 0 {
		o := *s
		o.aliases, o.first = out, true
		sql += " ORDER BY " + strings.Join(c.orderBy(order, &o, len(out)), ", ")
	}
	return sql, columns
}

func (c *compiler) condition(x node, s *scope, what string) string {
	v := c.expr(x, s)
	if v.t.Kind != Boolean && v.t.Kind != Null {
		if v.t.Kind != String {
			fail(x.pos, "%s needs a condition, this is a %s", what, v.t)
		}
	}
	return c.cast(v, simple(Boolean), x.pos).sql
}

// takeGenerators replaces explode(…) and its kin in a SELECT list by the columns that they make.
func (c *compiler) takeGenerators(b *selectBody, s *scope) (items []selectItem, views []lateralView) {
	for _, it := range b.items {
		call, ok := it.x.expr.(callExpr)
		if !ok || !isGenerator(call.name) {
			items = append(items, it)
			continue
		}
		if len(views) > 0 {
			fail(it.x.pos, "a SELECT list can hold one generator alone")
		}
		v := lateralView{call: call, alias: c.fresh("generated "), columns: it.aliases, pos: it.x.pos}
		if it.alias != "" {
			v.columns = []string{it.alias}
		}
		if v.outer = strings.HasSuffix(call.name, "_outer"); v.outer {
			v.call.name = strings.TrimSuffix(call.name, "_outer")
		}
		views = append(views, v)
		items = append(items, selectItem{x: node{starRef{[]string{v.alias}}, it.x.pos}})
	}
	return items, views
}

func (c *compiler) selectItems(items []selectItem, s *scope) (out []selected) {
	for _, it := range items {
		if star, ok := it.x.expr.(starRef); ok {
			out = append(out, c.star(star, s, it.x.pos)...)
			s.aliases = out
			continue
		}
		if len(it.aliases) > 0 {
			fail(it.x.pos, "AS (…) names the columns of a generator such as explode")
		}
		v := c.expr(it.x, s)
		name := it.alias
		if name == "" {
			name = autoName(it.x)
		}
		out = append(out, selected{name, v})
		s.aliases = out
	}
	return out
}

func (c *compiler) star(star starRef, s *scope, pos int) (out []selected) {
	for i := range s.columns {
		col := &s.columns[i]
		if len(star.qualifier) == 0 && !col.hidden || len(star.qualifier) == 1 && strings.EqualFold(col.qualifier, star.qualifier[0]) {
			out = append(out, selected{col.name, c.use(col, pos)})
		}
	}
	if len(out) > 0 {
		return out
	}
	if len(star.qualifier) > 0 { // struct.*
		if v := c.expr(node{nameRef{star.qualifier}, pos}, s); v.t.Kind == Struct {
			for _, f := range v.t.Fields {
				out = append(out, selected{f.Name, c.member(v, f.Name, pos)})
			}
			return out
		}
	}
	fail(pos, "%s.* finds no columns", strings.Join(star.qualifier, "."))
	return nil
}

func (c *compiler) groupBy(g *grouping, s *scope, out []selected) string {
	if g.all {
		return " GROUP BY ALL"
	}
	scoped := *s
	scoped.aliases = out
	key := func(x node) string {
		if n, ok := x.expr.(numLit); ok {
			i, err := strconv.Atoi(n.s)
			if err != nil || i < 1 || i > len(out) {
				fail(x.pos, "GROUP BY %s: there are %d columns", n.s, len(out))
			}
			return out[i-1].v.sql
		}
		return c.expr(x, &scoped).sql
	}
	if g.sets == "" {
		keys := make([]string, len(g.list))
		for i, x := range g.list {
			keys[i] = key(x)
		}
		return " GROUP BY " + strings.Join(keys, ", ")
	}
	sets := make([]string, len(g.of))
	for i, set := range g.of {
		keys := make([]string, len(set))
		for j, x := range set {
			keys[j] = key(x)
		}
		sets[i] = "(" + strings.Join(keys, ", ") + ")"
	}
	for i := range out { // what a set leaves out is null
		out[i].v.null = true
	}
	return " GROUP BY " + g.sets + " (" + strings.Join(sets, ", ") + ")"
}
