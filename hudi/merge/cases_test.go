package merge

import (
	"errors"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Cases from public bug reports; the number is the case's, the links are issues of apache/hudi.

// merged plays log blocks (rows, or deletes by key with an ordering value) over a base file.
func merged(t *testing.T, r *Rule, base []row, steps ...any) []string {
	t.Helper()
	log := r.NewLog(LogOptions{})
	for _, s := range steps {
		var err error
		switch s := s.(type) {
		case row:
			err = log.Add(batchOf(t, r, s), AddOptions{})
		case gone:
			err = log.AddDeletes(keyArray(s.key), []Value{s.order})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return texts(t, log.Over(t.Context(), once(batchOf(t, r, base...))))
}

type gone struct {
	key   string
	order Value
}

// C035 (2977, 4880, 12984): a late delete and then a late update.
func TestC035LateDeleteAndLateUpdate(t *testing.T) {
	for _, version := range []int{8, 9} {
		for mode, want := range map[string][]string{EventTime: {kv("1", 101, "12")}, CommitTime: {kv("1", 96, "18")}} {
			r := compile(t, Options{TableVersion: version, MergeMode: mode, OrderingFields: []string{"ts"}, Schema: orders(t)})
			got := merged(t, r, []row{{"1", 101, "12"}}, gone{"1", LongOrdering(97)}, row{"1", 96, "18"})
			if !slices.Equal(got, want) {
				t.Errorf("version %d, %s: %s, want %s", version, mode, got, want)
			}
		}
	}
}

// C053 (6388, 4880): delete and insert of a key in both orders; the ordering value decides, not the arrival.
func TestC053DeleteAndReinsertInBothOrders(t *testing.T) {
	for mode, want := range map[string][]string{EventTime: {kv("1", 3, "v3")}, CommitTime: {kv("2", 1, "v1")}} {
		r := compile(t, Options{TableVersion: 9, MergeMode: mode, OrderingFields: []string{"ts"}, Schema: orders(t)})
		steps := []any{row{"1", 3, "v3"}, gone{"2", LongOrdering(3)}, gone{"1", LongOrdering(1)}, row{"2", 1, "v1"}}
		if got := merged(t, r, nil, steps...); !slices.Equal(got, want) {
			t.Errorf("%s: %s, want %s", mode, got, want)
		}
	}
	// A compaction forgets the delete: the next insert of key 2 is visible.
	r := compile(t, Options{TableVersion: 9, MergeMode: EventTime, OrderingFields: []string{"ts"}, Schema: orders(t)})
	if got, want := merged(t, r, []row{{"1", 3, "v3"}}, row{"2", 1, "v1"}), []string{kv("1", 3, "v3"), kv("2", 1, "v1")}; !slices.Equal(got, want) {
		t.Errorf("after compaction: %s, want %s", got, want)
	}
}

// changes is a table of change capture: Op, key, updated_at.
func changes(t *testing.T, version int, in ...[3]any) (rule *Rule, batch arrow.RecordBatch) {
	o := Options{TableVersion: version, PayloadClass: PayloadAWSDms, OrderingFields: []string{"ts"}, Schema: parse(t, `{"type":"record","name":"r",
		"fields":[{"name":"Op","type":["null","string"],"default":null},{"name":"_hoodie_record_key","type":"string"},{"name":"ts","type":"long"}]}`)}
	if version == 9 {
		s, err := Infer(9, "", Settings{PayloadClass: PayloadAWSDms, OrderingFields: "ts"})
		if err != nil {
			t.Fatal(err)
		}
		o.PayloadClass, o.LegacyPayload, o.MergeMode, o.Props = "", s.LegacyPayload, s.Mode, s.Properties
	}
	rule = compile(t, o)
	b := array.NewRecordBuilder(memory.DefaultAllocator, rule.Arrow())
	defer b.Release()
	for _, x := range in {
		b.Field(0).(*array.StringBuilder).Append(x[0].(string))
		b.Field(1).(*array.StringBuilder).Append(x[1].(string))
		b.Field(2).(*array.Int64Builder).Append(int64(x[2].(int)))
	}
	return rule, b.NewRecordBatch()
}

// combined gives the surviving rows of one write batch, deletes left out.
func combined(t *testing.T, r *Rule, batch arrow.RecordBatch) []string {
	log := r.NewLog(LogOptions{Batch: true})
	if err := log.Add(batch, AddOptions{}); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for b, err := range log.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			keys = append(keys, b.Column(0).ValueStr(i)+" "+b.Column(1).ValueStr(i))
		}
		b.Release()
	}
	slices.Sort(keys)
	return keys
}

// C027 (3266): insert and delete of one key with one timestamp; the later change wins. C029 (2057, 1792, 4778): insert and
// delete of a new key in one batch.
func TestC027C029InsertAndDeleteInOneBatch(t *testing.T) {
	for _, version := range []int{6, 9} {
		for name, c := range map[string]struct {
			in   [][3]any
			want []string
		}{
			"C027 insert, delete": {[][3]any{{"I", "101", 1}, {"D", "101", 1}}, nil},
			"C027 delete, insert": {[][3]any{{"D", "101", 1}, {"I", "101", 1}}, []string{"I 101"}},
			"C029":                {[][3]any{{"I", "2", 1}, {"I", "7", 2}, {"D", "7", 3}}, []string{"I 2"}},
		} {
			r, batch := changes(t, version, c.in...)
			if got := combined(t, r, batch); !slices.Equal(got, c.want) {
				t.Errorf("%s, version %d: %s, want %s", name, version, got, c.want)
			}
		}
	}
}

// A writer keeps the deletes of its batch, to turn them into entries of a DELETE block with their ordering values.
func TestBatchKeepsDeletesForTheWriter(t *testing.T) {
	r, batch := changes(t, 6, [3]any{"I", "1", 1}, [3]any{"D", "2", 5}, [3]any{"d", "3", 6})
	log := r.NewLog(LogOptions{Batch: true, KeepDeletes: true})
	if err := log.Add(batch, AddOptions{}); err != nil {
		t.Fatal(err)
	}
	for b, err := range log.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		dead, err := r.Deletes(b)
		if err != nil || !slices.Equal(dead, []bool{false, true, true}) {
			t.Errorf("deletes %v, %v", dead, err)
		}
		if v := r.Ordering(b, 1); v.Kind() != Long || v.String() != "5" {
			t.Errorf("ordering %v", v)
		}
		b.Release()
	}
}

// C049 (1482): a column _hoodie_is_deleted of another type than boolean stops the run.
func TestC049DeleteFlagMustBeBoolean(t *testing.T) {
	_, err := Compile(Options{TableVersion: 9, Schema: parse(t, `{"type":"record","name":"r","fields":[{"name":"_hoodie_record_key","type":"string"},
		{"name":"_hoodie_is_deleted","type":["null","string"],"default":null}]}`)})
	if !errors.Is(err, ErrConfig) {
		t.Errorf("got %v", err)
	}
}
