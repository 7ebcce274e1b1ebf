package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/sluicelake/sluice/hudi/encode"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/interop/rows"
)

// written are real writes by one release; testdata/reconcile/make_cases.py makes them.
type written struct {
	Values map[string][2]any `json:"values"`
	Cases  []writeCase       `json:"cases"`
}

type writeCase struct {
	Name      string          `json:"name"`
	Options   string          `json:"options"`
	Operation string          `json:"operation"`
	TableType string          `json:"table_type"`
	Table     string          `json:"table"`
	Rows      string          `json:"rows"`
	Before    json.RawMessage `json:"before"`
	After     json.RawMessage `json:"after"`
	Read      []rows.Row      `json:"read"`
	Error     string          `json:"error"`
	// Unreadable is Spark's error when it read the table afterwards.
	Unreadable string `json:"unreadable"`
}

func (c *writeCase) String() string {
	return strings.TrimSpace(c.Name + " / " + c.Options + " " + c.Operation + c.TableType)
}

// frame is a data frame: its Arrow schema, and which of the two values of a type it holds.
type frame struct {
	schema *arrow.Schema
	kinds  []rows.Column
	which  int
}

// head are the columns that every frame has first.
const head = "id int, p string, ts bigint"

func newFrame(t *testing.T, ddl string, which int) frame {
	t.Helper()
	f := frame{which: which}
	var fields []arrow.Field
	var lines []string
	required := map[int]bool{}
	for i, column := range splitColumns(head + ", " + ddl) {
		column, required[i] = strings.CutSuffix(column, " not null")
		lines = append(lines, column)
	}
	var err error
	if f.kinds, err = rows.ParseColumns(lines); err != nil {
		t.Fatal(err)
	}
	for i, k := range f.kinds {
		fields = append(fields, arrow.Field{Name: k.Name, Type: sparkType(t, k.Type), Nullable: !required[i]})
	}
	f.schema = arrow.NewSchema(fields, nil)
	return f
}

// splitColumns splits at the commas outside of brackets.
func splitColumns(ddl string) []string {
	var out []string
	depth, start := 0, 0
	for i, ch := range ddl {
		switch ch {
		case '<', '(':
			depth++
		case '>', ')':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(ddl[start:i]))
				start = i + 1
			}
		}
	}
	return append(out, strings.TrimSpace(ddl[start:]))
}

func sparkType(t *testing.T, k rows.Type) arrow.DataType {
	t.Helper()
	member := func(i int) arrow.Field {
		return arrow.Field{Name: k.Fields[i].Name, Type: sparkType(t, k.Fields[i].Type), Nullable: true}
	}
	switch k.Name {
	case "array":
		return arrow.ListOfField(arrow.Field{Name: "element", Type: member(0).Type, Nullable: true})
	case "map":
		return arrow.MapOf(member(0).Type, member(1).Type)
	case "struct":
		var fields []arrow.Field
		for i := range k.Fields {
			fields = append(fields, member(i))
		}
		return arrow.StructOf(fields...)
	}
	var p, s int32
	if n, _ := fmt.Sscanf(k.Name, "decimal(%d,%d)", &p, &s); n == 2 {
		return &arrow.Decimal128Type{Precision: p, Scale: s}
	}
	dt, ok := map[string]arrow.DataType{
		"boolean": arrow.FixedWidthTypes.Boolean, "tinyint": arrow.PrimitiveTypes.Int8, "smallint": arrow.PrimitiveTypes.Int16,
		"int": arrow.PrimitiveTypes.Int32, "bigint": arrow.PrimitiveTypes.Int64, "float": arrow.PrimitiveTypes.Float32,
		"double": arrow.PrimitiveTypes.Float64, "string": arrow.BinaryTypes.String, "binary": arrow.BinaryTypes.Binary,
		"date": arrow.FixedWidthTypes.Date32, "timestamp": arrow.FixedWidthTypes.Timestamp_us,
		"timestamp_ntz": &arrow.TimestampType{Unit: arrow.Microsecond}, "void": arrow.Null,
	}[k.Name]
	if !ok {
		t.Fatalf("type %q", k.Name)
	}
	return dt
}

// sparkWords is a type in Spark's words, as far as its values can be written in two ways.
func sparkWords(t *schema.Type) rows.Type {
	t, _ = t.Optional()
	switch {
	case t.Kind == schema.Record:
		out := rows.Type{Name: "struct"}
		for _, f := range t.Fields {
			out.Fields = append(out.Fields, rows.Column{Name: f.Name, Type: sparkWords(f.Type)})
		}
		return out
	case t.Kind == schema.Array:
		return rows.Type{Name: "array", Fields: []rows.Column{{Name: "element", Type: sparkWords(t.Items)}}}
	case t.Kind == schema.Map:
		return rows.Type{Name: "map", Fields: []rows.Column{{Name: "key", Type: rows.Type{Name: "string"}}, {Name: "value", Type: sparkWords(t.Items)}}}
	case t.Logical == schema.TimestampMicros:
		return rows.Type{Name: "timestamp"}
	}
	return rows.Type{Name: t.Kind.String()}
}

// batch gives rows of the frame's values under these ids.
func (f frame) batch(t *testing.T, mem memory.Allocator, values map[string][2]any, ids ...int) arrow.RecordBatch {
	t.Helper()
	var list []map[string]any
	for _, id := range ids {
		row := map[string]any{}
		for _, k := range f.kinds {
			switch k.Name {
			case "id":
				row["id"] = id
			case "p":
				row["p"] = map[bool]string{true: "b", false: "a"}[id == 9]
			case "ts":
				row["ts"] = f.which
			case schema.IsDeleted:
				row[k.Name] = nil
			case schema.CommitTime:
				row[k.Name] = "0"
			default:
				row[k.Name] = entries(values[k.Type.String()][f.which], k.Type)
			}
		}
		list = append(list, row)
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	batch, _, err := array.RecordFromJSON(mem, f.schema, bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return batch
}

// entries makes maps the lists of entries that Arrow reads.
func entries(v any, k rows.Type) any {
	switch v := v.(type) {
	case map[string]any:
		if k.Name != "map" {
			return v
		}
		var out []any
		for key, value := range v {
			out = append(out, map[string]any{"key": key, "value": value})
		}
		return out
	}
	return v
}

// lines brings a batch from schema to schema and gives its rows as JSON.
func lines(t *testing.T, mem memory.Allocator, batch arrow.RecordBatch, through ...*schema.Type) ([]byte, error) {
	t.Helper()
	batch.Retain()
	for _, to := range through {
		s, err := to.Arrow()
		if err != nil {
			t.Fatal(err)
		}
		r, err := schema.Resolve(batch.Schema(), s, schema.ResolveOptions{Table: to, SchemaOnRead: true})
		if err != nil {
			batch.Release()
			return nil, err
		}
		next, err := r.Batch(mem, batch)
		batch.Release()
		if err != nil {
			return nil, err
		}
		batch = next
	}
	defer batch.Release()
	w, err := encode.NewJSON(batch.Schema(), encode.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return w.Append(nil, batch), nil
}

// betterWrites are the writes of which Sluice thinks otherwise than 0.15.0, by patterns of name and options. want is "refuse",
// "accept" where Sluice takes what 0.15.0 refuses, "schema" for another schema, "values" for other values under the same schema,
// and "readable" where Spark can't read what Apache Hudi wrote.
var betterWrites = []struct{ name, options, want, why string }{
	{"int to date|int to timestamp|bigint to timestamp|date to int|date to bigint|date to double|date to timestamp|timestamp to bigint|timestamp to double|timestamp to string", "*", "refuse",
		"0.15.0 writes, and the table can't be read any more: ArrayIndexOutOfBoundsException in every query of old files"},
	{"string to binary", "*", "values", `0.15.0 stores the text "java.nio.HeapByteBuffer[pos=0 lim=1 cap=1]"`},
	{"array<int> to array<bigint>|map<string,int> to map<string,bigint>|struct<a:int> to struct<a:bigint>", "*", "readable", "Spark's vectorized reader knows no changes of members"},
	{"int to void", "*", "accept", "a column of nothing but nulls fits every type"},
	{"missing required", "nulls", "accept", "0.15.0 goes on requiring the column, and ends in a NullPointerException"},
	{"missing and added", "reconcile", "accept", "the columns that are to stay stay, though there are new ones (C077)"},
	{"missing and widened", "reconcile", "accept", "0.15.0 keeps the narrower type, and fails at the first row"},
	{"case differs", "drop", "schema", "0.15.0 drops the column with data for one that differs in case"},
	{"case differs", "*", "accept", "the names differ in case only; Spark takes them for one"},
	{"nested missing and added", "reconcile", "schema", "0.15.0 drops the member that is to stay"},
	{"nested missing and added", "drop", "values", "Spark takes a struct for null when the file has none of its members"},
}

// TestReconcileWrites holds the schema in the commit and the rows of the table afterwards against real writes of 0.15.0: rows
// of the first frame as they stood in the files, rows of the second as they came in, both brought to the new schema.
func TestReconcileWrites(t *testing.T) {
	w := load[written](t, "writes_0.15.0.json")
	labels := load[deduced](t, "deduce_0.15.0.json").Options
	used := make([]bool, len(betterWrites))
	for i := range w.Cases {
		c := &w.Cases[i]
		if c.Before == nil {
			continue // 0.15.0 can't store the first frame; TestReconcilePairs has these types
		}
		want := "same"
		if i := slices.IndexFunc(betterWrites, func(b struct{ name, options, want, why string }) bool {
			return matches(b.name, c.Name) && matches(b.options, c.Options)
		}); i >= 0 {
			used[i], want = true, betterWrites[i].want
		}
		if got, detail := compareWrite(t, c, w.Values, options(t, labels[c.Options])); got != want {
			t.Errorf("%s: %s, want %s: %s", c, got, want, detail)
		}
	}
	for i, ok := range used {
		if !ok {
			t.Errorf("no write needs %v", betterWrites[i])
		}
	}
}

// compareWrite says what differs, in the words of betterWrites, or "same".
func compareWrite(t *testing.T, c *writeCase, values map[string][2]any, o schema.ReconcileOptions) (string, string) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	before := parseRecorded(t, c.Before)
	first := newFrame(t, c.Table, 0)
	fresh, err := schema.FromArrow(first.schema, "hoodie.t.t_record")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := schema.Reconcile(nil, fresh, o); err != nil || got.String() != before.String() {
		return "first", fmt.Sprintf("%v %v, Apache Hudi %s", got, err, before)
	}
	second := newFrame(t, c.Rows, 1)
	incoming, err := schema.FromArrow(second.schema, "hoodie.t.t_record")
	if err != nil {
		t.Fatal(err)
	}
	after, err := schema.Reconcile(before, incoming, o)
	switch {
	case err != nil && c.After == nil:
		return "same", ""
	case err != nil:
		return "refuse", err.Error() + "; Apache Hudi: " + brief(parseRecorded(t, c.After)) + " " + c.Unreadable
	case c.After != nil && sorted(after).String() != sorted(parseRecorded(t, c.After)).String():
		return "schema", brief(after) + "; Apache Hudi: " + brief(parseRecorded(t, c.After))
	}
	old := []int{1, 9}
	if c.Operation == "insert" {
		old = append(old, 2)
	}
	oldBatch := first.batch(t, mem, values, old...)
	defer oldBatch.Release()
	text, err := lines(t, mem, oldBatch, before, after)
	if err != nil {
		return "late", "older rows: " + err.Error()
	}
	newBatch := second.batch(t, mem, values, 2, 3)
	defer newBatch.Release()
	more, err := lines(t, mem, newBatch, after)
	switch {
	case err != nil && c.After == nil:
		return "same", "" // both found it at the first row
	case err != nil:
		return "late", "incoming rows: " + err.Error()
	case c.After == nil:
		return "accept", brief(after) + "; Apache Hudi: " + c.Error
	}
	got, err := rows.Decode(bytes.NewReader(append(text, more...)))
	if err != nil {
		t.Fatal(err)
	}
	if c.Unreadable != "" { // all the same the rows were brought to the schema
		return "readable", c.Unreadable
	}
	if diff := rows.Diff(rows.Set{Columns: sparkWords(after).Fields, Rows: c.Read}, rows.Set{Rows: got}, rows.Options{Key: []string{"id"}}); diff != "" {
		return "values", diff
	}
	return "same", ""
}
