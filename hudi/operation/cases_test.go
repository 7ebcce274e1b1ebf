package operation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sluicelake/sluice/hudi/operation"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/hudi/service"
	"github.com/sluicelake/sluice/hudi/write"
	"github.com/sluicelake/sluice/storage/mem"
)

// The tests of this file are public bug reports; the numbers are those of the collection of cases.

const dms = "org.apache.hudi.common.model.AWSDmsAvroPayload"

func fields(list ...arrow.Field) *arrow.Schema {
	for i := range list {
		list[i].Nullable = true
	}
	return arrow.NewSchema(list, nil)
}

func ids(tb testing.TB, s *mem.Store) (out []string) {
	for _, r := range dump(tb, s) {
		out = append(out, fmt.Sprint(r["id"]))
	}
	slices.Sort(out)
	return out
}

// A key that is inserted and deleted in one batch is in no file (apache/hudi#2057, #1792, #4778).
func TestC029InsertAndDeleteInOneBatch(t *testing.T) {
	for name, batch := range map[string]string{
		"Op":   `{"id":"2","p":"x","ts":1,"Op":"I"},{"id":"7","p":"x","ts":1,"Op":"I"},{"id":"7","p":"x","ts":2,"Op":"D"}`,
		"flag": `{"id":"2","p":"x","ts":1,"_hoodie_is_deleted":false},{"id":"7","p":"x","ts":1,"_hoodie_is_deleted":false},{"id":"7","p":"x","ts":2,"_hoodie_is_deleted":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := create(t, nil)
			c := conf("hoodie.datasource.write.payload.class", dms)
			run(t, s, operation.Upsert, rows(t, columns, `{"id":"1","p":"x","ts":1,"Op":""}`), c)
			r := run(t, s, operation.Upsert, rows(t, columns, batch), c)
			if got := ids(t, s); !slices.Equal(got, []string{"1", "2"}) || r.Inserted != 1 {
				t.Errorf("%v; %+v", got, r)
			}
		})
	}
}

// An insert and a delete of one key with one ordering value: the later row wins, however many workers there are (apache/hudi#3266).
func TestC027SameOrderingValue(t *testing.T) {
	insert, remove := `{"id":"101","p":"x","ts":5,"Op":"I"}`, `{"id":"101","p":"x","ts":5,"Op":"D"}`
	for _, parallel := range []int{1, 4, 16} {
		for _, c := range []struct {
			batch string
			want  int
		}{{insert + "," + remove, 0}, {remove + "," + insert, 1}} {
			s := create(t, nil)
			_, err := operation.Run(context.Background(), s, operation.Upsert, rows(t, columns, c.batch), operation.Options{Conf: conf("hoodie.datasource.write.payload.class", dms), Parallel: parallel})
			if err != nil {
				t.Fatal(err)
			}
			if got := ids(t, s); len(got) != c.want {
				t.Errorf("%s: %v", c.batch, got)
			}
		}
	}
}

// The delete flag comes to a table that did not have it (apache/hudi#1482).
func TestC049DeleteFlagAdded(t *testing.T) {
	id, p, ts := columns.Field(0), columns.Field(1), columns.Field(3)
	s := create(t, nil)
	run(t, s, operation.Insert, rows(t, fields(id, p, ts), `{"id":"1","p":"x","ts":1},{"id":"2","p":"x","ts":1},{"id":"3","p":"x","ts":1}`), conf())
	required := arrow.NewSchema([]arrow.Field{id, p, ts, {Name: schema.IsDeleted, Type: arrow.FixedWidthTypes.Boolean}}, nil)
	run(t, s, operation.Upsert, rows(t, required, `{"id":"2","p":"x","ts":2,"_hoodie_is_deleted":true},{"id":"4","p":"x","ts":2,"_hoodie_is_deleted":false}`), conf())
	if got := ids(t, s); !slices.Equal(got, []string{"1", "3", "4"}) {
		t.Errorf("%v", got)
	}
	text := fields(id, p, ts, arrow.Field{Name: schema.IsDeleted, Type: arrow.BinaryTypes.String})
	for _, target := range []*mem.Store{s, create(t, nil)} {
		if _, err := operation.Run(context.Background(), target, operation.Upsert, rows(t, text, `{"id":"1","p":"x","ts":3,"_hoodie_is_deleted":"true"}`), operation.Options{Conf: conf()}); err == nil || !strings.Contains(err.Error(), schema.IsDeleted) {
			t.Errorf("a flag of text: %v", err)
		}
	}
}

// A delete by record key alone, with a global index (apache/hudi#1194, #7290, #1793).
func TestC051DeleteByKeyAlone(t *testing.T) {
	s := create(t, nil)
	run(t, s, operation.Insert, short(t, "1 p1|2 p1|3 p1|4 p2|5 p2|6 p2"), conf())
	keys := fields(arrow.Field{Name: schema.RecordKey, Type: arrow.BinaryTypes.String})
	r := run(t, s, operation.Delete, rows(t, keys, `{"_hoodie_record_key":"2"},{"_hoodie_record_key":"5"},{"_hoodie_record_key":"99"}`), map[string]string{"hoodie.index.type": "GLOBAL_BLOOM"})
	if r.Deleted != 2 || r.Absent != 1 {
		t.Errorf("%+v", r)
	}
	run(t, s, operation.Upsert, short(t, "7 p1"), nil)
	expect(t, s, "1 p1 1|3 p1 1|4 p2 1|6 p2 1|7 p1 1")
	if _, err := operation.Run(context.Background(), s, operation.Delete, rows(t, keys, `{"_hoodie_record_key":"1"}`), operation.Options{}); err == nil || !strings.Contains(err.Error(), "GLOBAL_SIMPLE") {
		t.Errorf("without a global index: %v", err)
	}
}

// A changed partition value makes a second row under an index of partitions, of which the writer warns and validation tells; under a
// global index there is one (apache/hudi#4501, #2184, #10335).
func TestC055ChangedPartition(t *testing.T) {
	for _, kind := range []string{"SIMPLE", "GLOBAL_SIMPLE"} {
		s := create(t, nil)
		run(t, s, operation.Upsert, short(t, "1 false 1"), conf())
		var warned []string
		o := operation.Options{Conf: conf("hoodie.index.type", kind), Event: func(e operation.Event) {
			if w, ok := e.(operation.Warned); ok {
				warned = append(warned, w.Text)
			}
		}}
		if _, err := operation.Run(context.Background(), s, operation.Upsert, short(t, "1 true 2"), o); err != nil {
			t.Fatal(err)
		}
		report, err := service.Validate(context.Background(), s, service.ValidateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		found := slices.ContainsFunc(report.Findings, func(f service.Finding) bool { return f.Code == service.KeyInPartitions })
		rows := must(t, s)
		if global := kind != "SIMPLE"; global && (len(rows) != 1 || len(warned) != 0 || found) || !global && (len(rows) != 2 || len(warned) != 1 || !found) {
			t.Errorf("%s: %v, warned %q, found %v", kind, rows, warned, found)
		}
	}
}

// A batch lacks a column and has another one (apache/hudi#5452, #5873, #6017).
func TestC077ColumnMissingAnotherAdded(t *testing.T) {
	text := func(name string) arrow.Field { return arrow.Field{Name: name, Type: arrow.BinaryTypes.String} }
	c := conf("hoodie.datasource.write.recordkey.field", "id", "hoodie.datasource.write.reconcile.schema", "true", "hoodie.datasource.write.precombine.field", "")
	s := create(t, func(s *write.Spec) { s.OrderingFields = nil })
	run(t, s, operation.Upsert, rows(t, fields(text("id"), text("p"), text("c2")), `{"id":"k0","p":"x","c2":"0"}`), c)
	run(t, s, operation.Upsert, rows(t, fields(text("id"), text("ca"), text("p"), text("c2")), `{"id":"k1","ca":"A","p":"y","c2":"1"}`), c)
	run(t, s, operation.Upsert, rows(t, fields(text("id"), text("p"), text("c2"), text("cb")), `{"id":"k2","p":"x","c2":"2","cb":"B"},{"id":"k0","p":"x","c2":"00","cb":"B0"}`), c)
	got := dump(t, s)
	for i, want := range []map[string]any{{"ca": nil, "cb": "B0", "c2": "00"}, {"ca": "A", "cb": nil, "c2": "1"}, {"ca": nil, "cb": "B", "c2": "2"}} {
		for k, v := range want {
			if got[i][k] != v {
				t.Errorf("row %d: %v, want %s %v", i, got[i], k, v)
			}
		}
	}
	sound(t, s)
}

// A column is widened in a part of the partitions (apache/hudi#3558, #2063, #11599, #7444).
func TestC079WidenedInPart(t *testing.T) {
	at := func(dt arrow.DataType) *arrow.Schema {
		return fields(columns.Field(0), columns.Field(1), arrow.Field{Name: "v", Type: dt}, columns.Field(3))
	}
	s := create(t, func(s *write.Spec) { s.HiveStyle = true })
	run(t, s, operation.Upsert, rows(t, at(arrow.PrimitiveTypes.Int32), `{"id":"a","p":"part_0","v":1,"ts":1},{"id":"b","p":"part_3","v":30,"ts":1},{"id":"c","p":"part_3","v":31,"ts":1}`), conf())
	run(t, s, operation.Upsert, rows(t, at(arrow.PrimitiveTypes.Float64), `{"id":"a","p":"part_0","v":1.5,"ts":2},{"id":"d","p":"part_9","v":9.25,"ts":2}`), conf())
	var values []any
	for _, r := range dump(t, s) {
		values = append(values, r["v"])
	}
	if fmt.Sprint(values) != "[1.5 30 31 9.25]" {
		t.Errorf("%v", values)
	}
	run(t, s, operation.Upsert, rows(t, at(arrow.PrimitiveTypes.Int32), `{"id":"d","p":"part_9","v":7,"ts":3}`), conf()) // the rows are widened
	if got := dump(t, s)[3]["v"]; got != 7.0 {
		t.Errorf("%v", got)
	}
	sound(t, s)
}

// Columns come in another order, members of records too (apache/hudi#9881, #5717).
func TestC081ColumnsInAnotherOrder(t *testing.T) {
	text := func(name string) arrow.Field {
		return arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: true}
	}
	st := func(a, b string) arrow.Field {
		return arrow.Field{Name: "st", Type: arrow.StructOf(text(a), text(b))}
	}
	c := conf("hoodie.datasource.write.precombine.field", "")
	s := create(t, func(s *write.Spec) { s.OrderingFields = nil })
	run(t, s, operation.Insert, rows(t, fields(text("id"), text("p"), text("a"), text("b"), st("m", "n")), `{"id":"1","p":"p1","a":"A","b":"B","st":{"m":"M","n":"N"}},{"id":"9","p":"p2","a":"A9","b":"B9","st":{"m":"M9","n":"N9"}}`), c)
	run(t, s, operation.Upsert, rows(t, fields(text("b"), text("new"), st("n", "m"), text("p"), text("id"), text("a")), `{"b":"B1","new":"n","st":{"n":"N1","m":"M1"},"p":"p1","id":"1","a":"A1"},{"b":"B2","new":null,"st":null,"p":"p1","id":"2","a":"A2"}`), c)
	got := dump(t, s)
	for i, want := range []string{"A1 B1 n map[m:M1 n:N1]", "A2 B2 <nil> <nil>", "A9 B9 <nil> map[m:M9 n:N9]"} {
		if text := fmt.Sprint(got[i]["a"], " ", got[i]["b"], " ", got[i]["new"], " ", got[i]["st"]); text != want {
			t.Errorf("row %d: %s, want %s", i, text, want)
		}
	}
	sound(t, s)
}

// A new required column is refused by name; a new member in a list of structs leaves old rows whole through a rewrite
// (apache/hudi#5717, #6017, #1482).
func TestC083RequiredColumnAndNestedMember(t *testing.T) {
	member := func(name string) arrow.Field {
		return arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int32, Nullable: true}
	}
	items := func(members ...arrow.Field) arrow.Field {
		return arrow.Field{Name: "items", Type: arrow.ListOf(arrow.StructOf(members...)), Nullable: true}
	}
	id, p, ts := columns.Field(0), columns.Field(1), columns.Field(3)
	s := create(t, nil)
	run(t, s, operation.Insert, rows(t, fields(id, p, ts, items(member("x"))), `{"id":"1","p":"q","ts":1,"items":[{"x":1}]},{"id":"3","p":"q","ts":1,"items":null},{"id":"4","p":"q","ts":1,"items":[]},{"id":"5","p":"q","ts":1,"items":[null]}`), conf())
	run(t, s, operation.Upsert, rows(t, fields(id, p, ts, items(member("x"), member("y"))), `{"id":"2","p":"q","ts":1,"items":[{"x":2,"y":5}]}`), conf())
	var values []string
	for _, r := range dump(t, s) {
		values = append(values, fmt.Sprint(r["items"]))
	}
	if want := []string{"[map[x:1 y:<nil>]]", "[map[x:2 y:5]]", "<nil>", "[]", "[<nil>]"}; !slices.Equal(values, want) {
		t.Errorf("%v, want %v", values, want)
	}
	sound(t, s)
	needed := arrow.NewSchema([]arrow.Field{id, p, ts, items(member("x"), member("y")), {Name: "needed", Type: arrow.PrimitiveTypes.Int32}}, nil)
	if _, err := operation.Run(context.Background(), s, operation.Upsert, rows(t, needed, `{"id":"2","p":"q","ts":2,"items":[],"needed":1}`), operation.Options{Conf: conf()}); !errors.Is(err, schema.ErrReconcile) || !strings.Contains(err.Error(), "needed") {
		t.Errorf("%v", err)
	}
}

// 101 commits, each with a row that fills up the same small file: 101 rows, whoever counts (apache/hudi#2297, #3795).
func TestC131ManySmallCommits(t *testing.T) {
	s := create(t, nil)
	c := conf("hoodie.index.bloom.num_entries", "100", "hoodie.bloom.index.filter.dynamic.max.entries", "100")
	for i := range 101 {
		run(t, s, operation.Upsert, short(t, fmt.Sprintf("k%d x %d", i, i)), c)
	}
	if got := must(t, s); len(got) != 101 || groups(t, s, "x") != 1 || len(files(t, s, "x")) != 101 {
		t.Errorf("%d rows in %d file groups, %d files", len(got), groups(t, s, "x"), len(files(t, s, "x")))
	}
}
