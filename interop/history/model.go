//go:build interop

package history

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicelake/sluice/interop/rows"
)

// columns of every table, in order. The values are few and odd enough to meet each other. The decimal is too wide for
// INT64 on purpose: 0.15.0 writes narrow ones as INT64 in clustering and bulk insert, and the next upsert that rewrites such
// a file stores the unscaled number as the value (-329.15 becomes -32915.00), so that its tables no longer hold what was
// written.
const columns = "id string, shop int, region string, level int, name string, qty bigint, amount decimal(20,2), ratio double, " +
	"share float, at timestamp, day date, open boolean, tags array<string>, counts map<string,bigint>, data binary, ts bigint, _hoodie_is_deleted boolean"

// names of the columns, in order.
func names() []string {
	var out []string
	for _, c := range strings.Split(strings.NewReplacer("decimal(20,2)", "decimal", "map<string,bigint>", "map").Replace(columns), ",") {
		out = append(out, strings.Fields(c)[0])
	}
	return out
}

// model is the table as a plain map: what a reader should find.
type model struct {
	rule string
	rows map[string]rows.Row // by partition and key
}

func (m *model) clone() *model { return &model{rule: m.rule, rows: maps.Clone(m.rows)} }

// upsert merges one arriving row.
func (m *model) upsert(key string, r rows.Row) {
	if old, ok := m.rows[key]; ok && m.rule == "ordering" && integer(r["ts"]) < integer(old["ts"]) {
		return
	}
	if r["_hoodie_is_deleted"] == true {
		delete(m.rows, key)
		return
	}
	m.rows[key] = r
}

func (m *model) set() rows.Set {
	set := rows.Set{}
	for _, key := range slices.Sorted(maps.Keys(m.rows)) {
		set.Rows = append(set.Rows, m.rows[key])
	}
	return set
}

func integer(v any) int64 {
	n, ok := v.(json.Number)
	if !ok {
		return 0
	}
	i, err := strconv.ParseInt(string(n), 10, 64)
	if err != nil {
		return 0
	}
	return i
}

// keyOf names a record: its partition, where the table has some, and its key.
func (c Config) keyOf(r rows.Row) string {
	parts := []string{fmt.Sprint(r["id"])}
	if c.CompositeID {
		parts = append(parts, fmt.Sprint(r["shop"]))
	}
	for _, p := range c.Partitions {
		parts = append(parts, fmt.Sprint(r[p]))
	}
	return strings.Join(parts, "\x00")
}

// randomRow makes a row with the given key columns, in the encoding of answers.
func randomRow(r *rand.Rand, id rows.Row, ts int64, deleted any) rows.Row {
	some := func(v any) any {
		if r.IntN(5) == 0 {
			return nil
		}
		return v
	}
	number := func(n int64) any { return json.Number(strconv.FormatInt(n, 10)) }
	row := rows.Row{
		"name":   some(pick(r, []string{"", "plain", "it's", "ünï 日本 😀", "tab\there", `back\slash`, "x"})),
		"qty":    some(number(pick(r, []int64{0, -1, 9223372036854775807, -9223372036854775808, r.Int64N(1000)}))),
		"amount": some(fmt.Sprintf("%d.%02d", r.IntN(2000)-1000, r.IntN(100))),
		"ratio":  some(json.Number(pick(r, []string{"0.1", "-0.0", "1e300", "2.5", strconv.FormatFloat(r.Float64(), 'g', -1, 64)}))),
		"share":  some(json.Number(pick(r, []string{"0.5", "-1.25", "1024.0"}))),
		"at":     some(fmt.Sprintf("20%02d-%02d-%02dT%02d:00:00.%06dZ", r.IntN(60), 1+r.IntN(12), 1+r.IntN(28), r.IntN(24), r.IntN(1000000))),
		"day":    some(pick(r, []string{"1969-12-31", "2024-02-29", "1900-01-01"})),
		"open":   some(r.IntN(2) == 0),
		"tags":   some([]any{"a", pick(r, []string{"", "b", "ß"})}),
		"counts": some(map[string]any{"k": number(r.Int64N(9)), "ключ": number(1)}),
		"data":   some(pick(r, []string{"AP8Q", "w6k="})),
		"ts":     number(ts),
	}
	for name, v := range id {
		row[name] = v
	}
	row["_hoodie_is_deleted"] = deleted
	return row
}

// literal writes a value of the encoding as a Spark expression that a cast brings to its column's type.
func literal(name string, v any) string {
	if v == nil {
		return "null"
	}
	switch v := v.(type) {
	case bool:
		return fmt.Sprint(v)
	case json.Number:
		return "'" + string(v) + "'"
	case string:
		if name == "data" {
			return "unbase64('" + v + "')"
		}
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(v) + "'"
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			items[i] = literal("", item)
		}
		return "array(" + strings.Join(items, ", ") + ")"
	case map[string]any:
		var items []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			items = append(items, literal("", k), literal("", v[k]))
		}
		return "map(" + strings.Join(items, ", ") + ")"
	}
	panic(fmt.Sprintf("no literal for %T", v))
}

// query is a SELECT that gives the rows with their declared types.
func query(batch []rows.Row) string {
	kinds := map[string]string{}
	depth, from := 0, 0
	for i := range len(columns) + 1 {
		switch {
		case i < len(columns) && (columns[i] == '<' || columns[i] == '('):
			depth++
		case i < len(columns) && (columns[i] == '>' || columns[i] == ')'):
			depth--
		case i == len(columns) || columns[i] == ',' && depth == 0:
			name, kind, _ := strings.Cut(strings.TrimSpace(columns[from:i]), " ")
			kinds[name] = kind
			from = i + 1
		}
	}
	selects := make([]string, len(batch))
	for i, row := range batch {
		var exprs []string
		for _, name := range names() {
			exprs = append(exprs, fmt.Sprintf("cast(%s as %s) as `%s`", literal(name, row[name]), kinds[name], name))
		}
		selects[i] = "select " + strings.Join(exprs, ", ")
	}
	return strings.Join(selects, " union all ")
}
