package schema_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/schema"
)

// deduced is what HoodieSchemaUtils.deduceWriterSchema of one release answers; testdata/reconcile/make_cases.py asks it.
type deduced struct {
	Types   map[string]json.RawMessage            `json:"types"`
	Options map[string]map[string]string          `json:"options"`
	Pairs   map[string]map[string]json.RawMessage `json:"pairs"`
	Shapes  []struct {
		Name    string          `json:"name"`
		Table   json.RawMessage `json:"table"`
		Rows    json.RawMessage `json:"rows"`
		Answers []struct {
			Options []string        `json:"options"`
			Answer  json.RawMessage `json:"answer"`
		} `json:"answers"`
	} `json:"shapes"`
}

func load[T any](t *testing.T, name string) T {
	t.Helper()
	text, err := os.ReadFile("testdata/reconcile/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var v T
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func parseRecorded(t *testing.T, text json.RawMessage) *schema.Type {
	t.Helper()
	if len(text) == 0 || string(text) == "null" {
		return nil
	}
	s, err := schema.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

func options(t *testing.T, props map[string]string) schema.ReconcileOptions {
	t.Helper()
	p := config.NewProperties()
	for k, v := range props {
		p.Set(k, v)
	}
	var o schema.ReconcileOptions
	if err := o.Set(p); err != nil {
		t.Fatal(err)
	}
	return o
}

// sorted is a schema with the members of every record in the order of their names: releases before 1.0 take the order of the
// rows, which says nothing.
func sorted(s *schema.Type) *schema.Type {
	out := *s
	switch s.Kind {
	case schema.Record:
		out.Fields = slices.Clone(s.Fields)
		for i := range out.Fields {
			out.Fields[i].Type = sorted(out.Fields[i].Type)
		}
		slices.SortFunc(out.Fields, func(a, b schema.Field) int { return cmp.Compare(a.Name, b.Name) })
	case schema.Array, schema.Map:
		out.Items = sorted(s.Items)
	case schema.Union:
		out.Branches = nil
		for _, b := range s.Branches {
			out.Branches = append(out.Branches, sorted(b))
		}
	}
	return &out
}

// reconcile is Reconcile's answer in the words of the recordings: a schema, or "!".
func reconcile(t *testing.T, table, rows *schema.Type, o schema.ReconcileOptions) (*schema.Type, string) {
	t.Helper()
	got, err := schema.Reconcile(table, rows, o)
	if err != nil {
		if !errors.Is(err, schema.ErrReconcile) {
			t.Errorf("%v does not wrap ErrReconcile", err)
		}
		return nil, "!"
	}
	if again, err := schema.ParseString(got.String()); err != nil || again.String() != got.String() {
		t.Errorf("%s can't be read back: %v", got, err)
	}
	if again, err := schema.Reconcile(got, rows, o); err != nil || again.String() != got.String() {
		t.Errorf("the same rows once more make %s of %s: %v", again, got, err)
	}
	return got, got.String()
}

// brief is a schema in a few words: "?" before a nullable type, names of records where they are not those of their path.
func brief(s *schema.Type) string { return briefly(s, "hoodie.t.t_record") }

func briefly(s *schema.Type, path string) string {
	switch s.Kind {
	case schema.Record:
		fields := make([]string, len(s.Fields))
		for i, f := range s.Fields {
			fields[i] = f.Name + " " + briefly(f.Type, path+"."+f.Name)
			if f.Default != nil && string(f.Default) != "null" {
				fields[i] += "=" + string(f.Default)
			}
			if f.Doc != "" {
				fields[i] += "#" + f.Doc
			}
		}
		name := s.Name
		if name == path {
			name = ""
		}
		return name + "{" + strings.Join(fields, ", ") + "}"
	case schema.Array:
		return "[" + briefly(s.Items, path) + "]"
	case schema.Map:
		return "<" + briefly(s.Items, path) + ">"
	case schema.Union:
		if value, null := s.Optional(); null {
			return "?" + briefly(value, path)
		}
	}
	switch {
	case s.Logical == schema.Decimal && s.Kind == schema.Bytes:
		return fmt.Sprintf("bytes decimal(%d,%d)", s.Precision, s.Scale)
	case s.Logical == schema.Decimal:
		return fmt.Sprintf("decimal(%d,%d)", s.Precision, s.Scale)
	case s.Logical != schema.NoLogical:
		return s.Logical.String()
	}
	if s.Kind <= schema.String {
		return s.Kind.String()
	}
	return s.String()
}

// betterPairs are the pairs of types, by patterns of the table's and the rows', of which Sluice thinks otherwise. want is "table"
// for the table's type, or one of the recording's types, or "!" for a refusal.
var betterPairs = []struct{ table, rows, want, why string }{
	{"*", "null", "table", "a column of nothing but nulls has no type, and all releases refuse it; it fits every type"},
	{"time-millis", "time-millis", "table", "0.15.0 calls milliseconds microseconds; 1.2.0 does not"},
	{"timestamp-millis", "timestamp-millis", "table", "0.15.0 calls milliseconds microseconds (trap 21); 1.2.0 does not"},
	{"local-timestamp-*", "local-timestamp-millis", "table", "0.15.0 makes a local timestamp a number; 1.2.0 does not"},
	{"local-timestamp-micros", "local-timestamp-micros", "table", "0.15.0 makes a local timestamp a number; 1.2.0 does not"},
	{"string|enum *", "uuid", "string", "0.15.0 takes the text of a uuid for 16 bytes, and refuses it"},
	{"uuid", "uuid|string|enum *", "table", "0.15.0 takes the text of a uuid for 16 bytes; in columns it is text"},
	{"date|time*|local*", "*", "!", "0.15.0 changes the label on the numbers of old rows, or can't read them (writes: date to bigint); 1.2.0 refuses"},
	{"*", "date|time*|local*", "!", "0.15.0 changes the label on the numbers of old rows, or can't read them (writes: int to date); 1.2.0 refuses"},
	{"bytes decimal(10,2)", "decimal(11,2)", `{"type":"bytes","logicalType":"decimal","precision":11,"scale":2}`, "the table's form of decimals stays, as in 1.2.0"},
	{"bytes decimal(10,2)", "decimal(12,2)", `{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}`, "bytes have room for wider decimals, as in 1.2.0"},
	{"bytes decimal(10,2)", "decimal(12,4)", `{"type":"bytes","logicalType":"decimal","precision":12,"scale":4}`, "bytes have room for wider decimals, as in 1.2.0"},
	{"decimal*|bytes decimal*", "decimal(11,4)|decimal(12,4)", "!", "neither decimal holds the values of the other; 1.2.0 refuses"},
	{"decimal(12,4)|decimal(11,4)", "*decimal(*", "!", "neither decimal holds the values of the other; 1.2.0 refuses"},
	{"bytes decimal(10,2)", "*", "table", "the table's form of decimals stays, as in 1.2.0"},
	{"decimal(8,2)", "fixed 4", "!", "bytes are no decimal; 1.2.0 refuses"},
	{"fixed 4", "decimal(8,2)", "!", "a decimal is no bytes; 1.2.0 refuses"},
}

func matches(pattern, name string) bool {
	return slices.ContainsFunc(strings.Split(pattern, "|"), func(p string) bool {
		ok, _ := path.Match(p, name)
		return ok
	})
}

// TestReconcilePairs holds every pair of a column's types against Apache Hudi 0.15.0.
func TestReconcilePairs(t *testing.T) {
	d := load[deduced](t, "deduce_0.15.0.json")
	delete(d.Pairs, "null") // no table has such a column
	record := func(kind string) *schema.Type {
		if text, known := d.Types[kind]; known {
			kind = string(text)
		}
		if kind != `"null"` {
			kind = `["null",` + kind + `]`
		}
		return parseRecorded(t, json.RawMessage(`{"type":"record","name":"t_record","namespace":"hoodie.t","fields":[{"name":"v","type":`+kind+`,"default":null}]}`))
	}
	// A type of the recording as a new table has it.
	stored := func(kind string) string {
		s, err := schema.Reconcile(nil, record(kind), schema.ReconcileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return sorted(s).Fields[0].Type.String()
	}
	used := make([]bool, len(betterPairs))
	for table, answers := range d.Pairs {
		for rows, answer := range answers {
			got, text := reconcile(t, record(table), record(rows), schema.ReconcileOptions{})
			if got != nil {
				text = sorted(got).Fields[0].Type.String()
				resolves(t, record(table), got, schema.ResolveOptions{Table: got})
				resolves(t, record(rows), got, schema.ResolveOptions{Table: got, SchemaOnRead: true})
			}
			var want string
			switch err := json.Unmarshal(answer, &want); {
			case err != nil:
				want = sorted(parseRecorded(t, answer)).String()
			case strings.HasPrefix(want, "!"):
				want = "!"
			default:
				want = stored(want)
			}
			if text == want {
				continue
			}
			i := slices.IndexFunc(betterPairs, func(b struct{ table, rows, want, why string }) bool {
				return matches(b.table, table) && matches(b.rows, rows)
			})
			if i >= 0 {
				used[i] = true
				switch want = betterPairs[i].want; want {
				case "!":
				case "table":
					want = stored(table)
				default:
					want = stored(want)
				}
			}
			if text != want {
				t.Errorf("table %s, rows %s: %s, want %s", table, rows, text, want)
			}
		}
	}
	for i, ok := range used {
		if !ok {
			t.Errorf("no pair needs %v", betterPairs[i])
		}
	}
}

// resolves: older files of the table, or the rows, can be brought to the new schema.
func resolves(t *testing.T, from, to *schema.Type, o schema.ResolveOptions) {
	t.Helper()
	a, err := from.Arrow()
	if err != nil {
		t.Fatal(err)
	}
	b, err := to.Arrow()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := schema.Resolve(a, b, o); err != nil {
		t.Errorf("%s became %s: %v", brief(from), brief(to), err)
	}
}

// betterShapes are the schemas of which Sluice thinks otherwise than 0.15.0, under the options named.
var betterShapes = []struct{ shape, options, want, why string }{
	{"first with defaults and docs", "*", "{id int=7#key, b ?string#b's}", "0.15.0 forgets defaults, which older rows need"},
	{"added required with default", "*", "{id ?int, a ?int, b int=0}", "0.15.0 forgets defaults and then refuses the column for it, or makes it null"},
	{"added required deleted flag", "*", "{id ?int, a ?int, _hoodie_is_deleted boolean=false}", "0.15.0 forgets defaults and then refuses the column for it, or makes it null"},
	{"required in both with default", "*", "{id ?int, a int=3}", "0.15.0 forgets defaults, which older rows need"},
	{"added required", "reconcile|drop", "!", "older rows have no value, and 0.15.0 does not look"},
	{"added required", "nulls, *", "{id ?int, a ?int, b ?string}", "older rows have no value; nulls are allowed"},
	{"nested added required", "reconcile|drop", "!", "older rows have no value, and 0.15.0 does not look"},
	{"nested added required", "nulls, *", "{id ?int, v ?{a ?int, b ?string}}", "older rows have no value; nulls are allowed"},

	{"missing last", "nulls, drop", "{id ?int, a ?int, b ?string}", "filling goes before dropping"},
	{"missing middle", "nulls, drop", "{id ?int, a ?int, b ?string}", "filling goes before dropping"},
	{"missing required", "nulls*", "{id ?int, a ?int, b ?string}", "0.15.0 goes on requiring what it fills with null; 1.2.0 makes it nullable"},
	{"missing required", "reconcile", "!", "0.15.0 goes on requiring what it fills with null"},
	{"missing and added", "*", "{id ?int, a ?int, b ?string, c ?double}", "the columns that are to stay stay, though there are new ones (C077)"},
	{"missing and added last", "*", "{id ?int, a ?int, b ?string, c ?double}", "the columns that are to stay stay, though there are new ones (C077)"},
	{"missing and widened", "*", "{id ?int, a ?long, b ?string}", "0.15.0 keeps the narrower type, which does not hold the rows, or refuses"},
	{"missing and narrowed", "nulls, drop", "{id ?int, a ?long, b ?string}", "filling goes before dropping"},
	{"nested missing", "nulls, drop", "{id ?int, v ?{a ?int, b ?string}}", "filling goes before dropping"},
	{"nested missing", "validate", "!", "0.15.0 drops members when it is told to be strict"},
	{"nested missing and added", "validate", "!", "0.15.0 drops members when it is told to be strict"},
	{"nested missing and added", "*", "{id ?int, v ?{a ?int, b ?string, c ?double}}", "the members that are to stay stay, though there are new ones"},
	{"list record missing", "nulls, drop", "{id ?int, v ?[?{a ?int, b ?string}]}", "filling goes before dropping"},
	{"list record missing", "validate", "!", "0.15.0 drops members when it is told to be strict"},
	{"map record missing", "nulls, drop", "{id ?int, v ?<?{a ?int, b ?string}>}", "filling goes before dropping"},
	{"map record missing", "validate", "!", "0.15.0 drops members when it is told to be strict"},

	{"required and widened", "*", "{id ?int, a long}", "0.15.0 keeps the narrower type, which does not hold the rows, or refuses"},
	{"nested widened", "*", "{id ?int, v ?{a ?long, b ?string}}", "0.15.0 keeps the narrower type, which does not hold the rows, or refuses"},
	{"list record widened", "*", "{id ?int, v ?[?{a ?long}]}", "0.15.0 keeps the narrower type, which does not hold the rows, or refuses"},
	{"required in the table", "nulls, drop|reconcile, validate", "{id ?int, a int}", "columns that are to stay stay as they are; a null is refused when it comes"},
	{"nested required in the table", "nulls, drop|reconcile, validate", "{id ?int, v ?{a int}}", "columns that are to stay stay as they are"},
	{"record required in the table", "nulls, drop|reconcile, validate", "{id ?int, v {a ?int}}", "columns that are to stay stay as they are"},

	{"case differs", "*", "{id ?int, a ?int}", "0.15.0 refuses it, or has two columns that Spark can't tell apart or drops the one with data"},
	{"case differs with exact", "*", "!", "0.15.0 agrees here and fails when it writes (writes: case twice)"},
	{"first with meta columns", "*", "{id ?int}", "meta columns of rows are no data"},
	{"meta in rows", "*", "{id ?int, a ?int}", "meta columns of rows are no data; data source writes drop them too (writes: meta in the rows)"},
	{"docs", "nulls, drop", "{id ?int, a ?int#old}", "columns that are to stay stay as they are"},
	{"doc lost", "*", "{id ?int, a ?int#old}", "rows without documentation say nothing about the table's"},
	{"other record name", "*", "{id ?int, a ?int}", "the table keeps its names: Java readers of log blocks and unions look records up by name"},
	{"other nested name", "*", "{id ?int, v ?{x ?int}}", "the table keeps its names: Java readers of log blocks and unions look records up by name"},
	{"union of three", "*", `{id ?int, a ["null","int","string"]}`, "0.15.0 takes the first type, and loses the others"},
}

// TestReconcileShapes holds whole schemas, under every set of options, against Apache Hudi 0.15.0.
func TestReconcileShapes(t *testing.T) {
	d := load[deduced](t, "deduce_0.15.0.json")
	used := make([]bool, len(betterShapes))
	for _, s := range d.Shapes {
		for _, a := range s.Answers {
			for _, label := range a.Options {
				got, text := reconcile(t, parseRecorded(t, s.Table), parseRecorded(t, s.Rows), options(t, d.Options[label]))
				want := "!"
				if a.Answer[0] != '"' {
					want = sorted(parseRecorded(t, a.Answer)).String()
				}
				if got != nil {
					text = sorted(got).String()
				}
				if text == want {
					continue
				}
				i := slices.IndexFunc(betterShapes, func(b struct{ shape, options, want, why string }) bool {
					return b.shape == s.Name && matches(b.options, label)
				})
				if got != nil {
					text = brief(got)
				}
				if i >= 0 {
					used[i], want = true, betterShapes[i].want
				} else if want != "!" {
					want = brief(parseRecorded(t, a.Answer))
				}
				if text != want {
					t.Errorf("%s / %s: %s, want %s", s.Name, label, text, want)
				}
			}
		}
	}
	for i, ok := range used {
		if !ok {
			t.Errorf("no schema needs %v", betterShapes[i])
		}
	}
}

// TestReconcileOrder holds the order of columns and members against Apache Hudi 1.2.0, the first of our releases that keeps
// the table's.
func TestReconcileOrder(t *testing.T) {
	d := load[deduced](t, "deduce_1.2.0.json")
	compared := 0
	for _, s := range d.Shapes {
		for _, a := range s.Answers {
			for _, label := range a.Options {
				if strings.Contains(label, "reconcile") || a.Answer[0] == '"' {
					continue // 1.2.0 leaves those in the order of the rows
				}
				got, _ := reconcile(t, parseRecorded(t, s.Table), parseRecorded(t, s.Rows), options(t, d.Options[label]))
				want := parseRecorded(t, a.Answer)
				if got == nil || sorted(got).String() != sorted(want).String() {
					continue // TestReconcileShapes says why
				}
				compared++
				if got.String() != want.String() {
					t.Errorf("%s / %s: %s, want %s", s.Name, label, brief(got), brief(want))
				}
			}
		}
	}
	if compared < 150 {
		t.Errorf("%d schemas compared", compared)
	}
}

// TestReconcileErrors: what a refusal says.
func TestReconcileErrors(t *testing.T) {
	record := func(fields string) *schema.Type {
		return parseRecorded(t, json.RawMessage(`{"type":"record","name":"t_record","namespace":"hoodie.t","fields":[`+fields+`]}`))
	}
	const id = `{"name":"id","type":"string"}`
	money := `{"type":"fixed","name":"m%d","size":%d,"logicalType":"decimal","precision":%d,"scale":2}`
	for _, c := range []struct {
		table, rows string
		o           schema.ReconcileOptions
		want        string
	}{
		{id + `,{"name":"a","type":["null","long"]}`, id, schema.ReconcileOptions{},
			"the rows do not fit the table: column a (long) is in the table and missing from the rows: add it, set hoodie.write.set.null.for.missing.columns=true to fill it with null, or hoodie.datasource.write.schema.allow.auto.evolution.column.drop=true to drop it from the table"},
		{id + `,{"name":"a","type":"long"},{"name":"b","type":{"type":"array","items":"int"}}`, `{"name":"id","type":"bytes"},{"name":"c","type":"int"}`, schema.ReconcileOptions{},
			"the rows do not fit the table: columns a (long), b (array of int) are in the table and missing from the rows: add them, set hoodie.write.set.null.for.missing.columns=true to fill them with null, or hoodie.datasource.write.schema.allow.auto.evolution.column.drop=true to drop them from the table; " +
				"column c is new and required (int in the rows), but older rows of the table have no value: make it nullable, give it a default, or set hoodie.write.set.null.for.missing.columns=true"},
		{id + `,{"name":"a","type":"long"}`, id, schema.ReconcileOptions{KeepMissing: true},
			"the rows do not fit the table: column a (long in the table) is required and missing from the rows: add it to them, or set hoodie.write.set.null.for.missing.columns=true to make it nullable"},
		{id + `,{"name":"a","type":{"type":"array","items":["null","boolean"]}},{"name":"b","type":"bytes"}`, id + `,{"name":"a","type":{"type":"array","items":["null","long"]}},{"name":"b","type":"int"}`, schema.ReconcileOptions{},
			"the rows do not fit the table: column a.element is boolean in the table and long in the rows: cast it to boolean; column b is bytes in the table and int in the rows: cast it to bytes"},
		{id + `,{"name":"a","type":` + fmt.Sprintf(money, 1, 5, 10) + `}`, id + `,{"name":"a","type":` + fmt.Sprintf(money, 2, 6, 12) + `}`, schema.ReconcileOptions{},
			"the rows do not fit the table: column a is decimal(10,2) in the table and decimal(12,2) in the rows: cast it to decimal(10,2)"},
		{id + `,{"name":"a","type":` + fmt.Sprintf(money, 1, 5, 10) + `}`, id + `,{"name":"a","type":` + fmt.Sprintf(money, 2, 6, 12) + `}`, schema.ReconcileOptions{NoLogs: true}, ""},
		{id + `,{"name":"a","type":` + fmt.Sprintf(money, 1, 5, 10) + `}`, id + `,{"name":"a","type":` + strings.Replace(fmt.Sprintf(money, 2, 6, 13), `"scale":2`, `"scale":3`, 1) + `}`, schema.ReconcileOptions{NoLogs: true},
			"the rows do not fit the table: column a is decimal(10,2) in the table and decimal(13,3) in the rows: cast it to decimal(10,2)"},
		{id, id + `,{"name":"a","type":"null"},{"name":"b","type":["null",{"type":"map","values":"null"}]}`, schema.ReconcileOptions{},
			"the rows do not fit the table: column a has no type, all its values are null: cast it to one, or leave it out; column b.value has no type, all its values are null: cast it to one, or leave it out"},
		{id, id + `,{"name":"a","type":"int"}`, schema.ReconcileOptions{},
			"the rows do not fit the table: column a is new and required (int in the rows), but older rows of the table have no value: make it nullable, give it a default, or set hoodie.write.set.null.for.missing.columns=true"},
		{id, id + `,{"name":"a","type":["null","int"]},{"name":"A","type":["null","int"]}`, schema.ReconcileOptions{},
			"the rows do not fit the table: column A stands twice in the rows (the other is a): rename or drop one"},
		{id, id + `,{"name":"a-b","type":["null","int"]},{"name":"größe_2","type":["null",{"type":"record","name":"r","fields":[{"name":"2","type":"int"}]}]}`, schema.ReconcileOptions{},
			"the rows do not fit the table: column a-b has a name that Avro does not take: rename it, with letters, digits and _ alone and no digit in front; column größe_2.2 has a name that Avro does not take: rename it, with letters, digits and _ alone and no digit in front"},
		{id, `{"name":"ID","type":"string"},{"name":"n","type":["null",{"type":"record","name":"node","fields":[{"name":"next","type":["null","node"]}]}]}`, schema.ReconcileOptions{},
			"the rows do not fit the table: column n.next is a record that holds itself, or is nested deeper than 64 levels"},
		{id, `{"name":"_hoodie_commit_time","type":"string"},{"name":"a","type":["null","int"]}`, schema.ReconcileOptions{AllowDrop: true}, ""},
		{`{"name":"_hoodie_commit_time","type":"string"}`, ``, schema.ReconcileOptions{}, "the rows do not fit the table: neither the table nor the rows have a column"},
	} {
		_, err := schema.Reconcile(record(c.table), record(c.rows), c.o)
		if got := fmt.Sprint(err); got != c.want && !(err == nil && c.want == "") {
			t.Errorf("table %s, rows %s:\n got %s\nwant %s", c.table, c.rows, got, c.want)
		}
	}
	if _, err := schema.Reconcile(nil, nil, schema.ReconcileOptions{}); !errors.Is(err, schema.ErrReconcile) {
		t.Errorf("nothing at all: %v", err)
	}
}

// TestReconcileNames: two types of one name, as an Avro file may bring them beside the table's, end up with two.
func TestReconcileNames(t *testing.T) {
	money := `{"type":"fixed","name":"money","namespace":"shop","size":5,"logicalType":"decimal","precision":10,"scale":2}`
	rows := parseRecorded(t, json.RawMessage(`{"type":"record","name":"t_record","namespace":"hoodie.t","fields":[{"name":"a","type":`+money+`},{"name":"b","type":"shop.money"},
		{"name":"l","type":{"type":"array","items":["null",{"type":"record","name":"place","namespace":"shop","fields":[{"name":"c","type":"shop.money"}]}]}}]}`))
	first, err := schema.Reconcile(nil, rows, schema.ReconcileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	fixed := func(path string) string {
		return `{"type":"fixed","name":"fixed","namespace":"hoodie.t.t_record.` + path + `","size":5,"logicalType":"decimal","precision":10,"scale":2}`
	}
	fields := `{"name":"a","type":` + fixed("a") + `},{"name":"b","type":` + fixed("b") + `},{"name":"l","type":{"type":"array","items":["null",{"type":"record","name":"place","namespace":"shop","fields":[{"name":"c","type":` + fixed("l.c") + `}]}]}}`
	if want := `{"type":"record","name":"t_record","namespace":"hoodie.t","fields":[` + fields + `]}`; first.String() != want {
		t.Errorf("got  %s\nwant %s", first, want)
	}
	second := parseRecorded(t, json.RawMessage(`{"type":"record","name":"t_record","namespace":"hoodie.t","fields":[{"name":"x","type":["null",{"type":"record","name":"place","namespace":"shop","fields":[{"name":"d","type":"int"}]}],"default":null}]}`))
	got, err := schema.Reconcile(first, second, schema.ReconcileOptions{NullForMissing: true})
	if err != nil {
		t.Fatal(err)
	}
	x, _ := got.Field("x")
	if value, _ := x.Type.Optional(); value == nil || value.Name != "hoodie.t.t_record.x" {
		t.Errorf("the new record is called %v, the name of the table's other record", x.Type)
	}
	if again, err := schema.ParseString(got.String()); err != nil || again.String() != got.String() {
		t.Errorf("%s: %v", got, err)
	}
}

func TestReconcileOptionsSet(t *testing.T) {
	p := config.NewProperties()
	p.Set("hoodie.write.set.null.for.missing.columns", " True ")
	p.Set("hoodie.datasource.write.reconcile.schema", "yes")
	var o schema.ReconcileOptions
	err := o.Set(p)
	if want := (schema.ReconcileOptions{NullForMissing: true}); o != want || err == nil || !strings.Contains(err.Error(), `reconcile.schema is "yes"`) {
		t.Errorf("%+v, %v", o, err)
	}
}

// FuzzReconcile: whatever the schemas, a result can be read back, and the same rows change it no more.
func FuzzReconcile(f *testing.F) {
	f.Add(`{"type":"record","name":"t","fields":[{"name":"a","type":["int","null"],"default":1},{"name":"e","type":{"type":"enum","name":"e","symbols":["x"]}}]}`,
		`{"type":"record","name":"t","fields":[{"name":"A","type":"long"},{"name":"l","type":{"type":"array","items":["null",{"type":"fixed","name":"m","size":4}]}}]}`, true, true, false)
	f.Add(`{"type":"record","name":"t","fields":[{"name":"n","type":["null","t"]}]}`, `{"type":"record","name":"t","fields":[{"name":"n","type":["null","int","t"]}]}`, false, true, false)
	f.Add(`{"type":"record","name":"t","fields":[{"name":"a","type":"int","default":7}]}`, `{"type":"record","name":"u","fields":[{"name":"a","type":"string","default":"x"},{"name":"m","type":{"type":"map","values":"u2"}}]}`, false, false, true)
	f.Fuzz(func(t *testing.T, table, rows string, keep, nulls, drop bool) {
		a, err := schema.ParseString(table)
		if err != nil {
			a = nil
		}
		b, err := schema.ParseString(rows)
		if err != nil {
			return
		}
		reconcile(t, a, b, schema.ReconcileOptions{KeepMissing: keep, NullForMissing: nulls, AllowDrop: drop})
	})
}

func TestChanges(t *testing.T) {
	parse := func(fields string) *schema.Type {
		s, err := schema.Parse([]byte(`{"type":"record","name":"r","fields":[` + fields + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := parse(`{"name":"a","type":["null","long"]},{"name":"b","type":{"type":"array","items":{"type":"record","name":"e","fields":[{"name":"c","type":"int"}]}}},
		{"name":"m","type":{"type":"map","values":"float"}},{"name":"gone","type":"int"}`)
	after := parse(`{"name":"a","type":["null","string"]},{"name":"b","type":{"type":"array","items":{"type":"record","name":"e","fields":[{"name":"c","type":["null","long"]}]}}},
		{"name":"m","type":{"type":"map","values":"double"}},{"name":"new","type":["null","int"]}`)
	want := []string{"a is string now, it was long", "b.element.c is long now, it was int", "m.value is double now, it was float"}
	if got := schema.Changes(before, after); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := schema.Changes(before, before); got != nil {
		t.Errorf("%q of a table that stays as it is", got)
	}
}
