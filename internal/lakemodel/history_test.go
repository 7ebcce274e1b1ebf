package lakemodel

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/interop/rows"
)

// features names what a history is an example of.
func features(h *History) []string {
	c := h.Config
	found := []string{"keys: " + c.Keygen, "payload: " + c.Payload, "index: " + c.Index, "ordering: " + c.OrderingType,
		fmt.Sprintf("hive style: %v", c.HiveStyle), fmt.Sprintf("url encoding: %v", c.URLEncode), fmt.Sprintf("partitions: %d", len(c.Partitions)),
		fmt.Sprintf("global %v, moves %v", c.Global(), c.Moves), fmt.Sprintf("duplicates: %v", c.Duplicates), fmt.Sprintf("flag: %v, marker: %v", c.Flag, c.DeleteMarker),
		fmt.Sprintf("null elements: %v", c.NullElements)}
	if slices.Contains(c.Partitions, "made") {
		found = append(found, "clock: "+c.Clock.Type)
	}
	for k, v := range c.Files {
		found = append(found, k+"="+v)
	}
	table := NewTable(&c)
	for _, s := range h.Steps {
		before := table.Clone()
		table.Apply(s)
		found = append(found, "operation: "+s.Operation)
		if s.Note != "" {
			found = append(found, s.Operation+": "+s.Note)
		}
		if mode := s.Conf["hoodie.bulkinsert.sort.mode"]; mode != "" {
			found = append(found, "sort mode: "+mode)
		}
		if strings.Contains(strings.Join(s.Partitions, ","), "*") {
			found = append(found, "partition pattern")
		}
		for _, col := range s.Columns {
			found = append(found, "type: "+col.Type.String())
			if col.Name == "count" {
				found = append(found, "count is "+col.Type.String())
			}
			if strings.HasPrefix(col.Name, "added") {
				found = append(found, "added column")
			}
		}
		found = append(found, changes(before, table, s)...)
	}
	return found
}

// changes names what became of rows in a step.
func changes(before, after *Table, s Step) []string {
	var found []string
	if s.Operation != "upsert" {
		return nil
	}
	for _, r := range after.Rows {
		switch {
		case r.Kept:
			found = append(found, "a late row did not move")
		case r.Step == before.Steps && len(before.find(r)) > 0:
			found = append(found, "a row was replaced")
		}
	}
	for _, in := range before.incoming(s) {
		for _, i := range before.find(in) {
			old := before.Rows[i]
			if len(after.find(old)) == 0 {
				found = append(found, "a row was deleted by its mark")
			}
			if _, v := before.Config.over(old.Row, in.Row); v == kept {
				found = append(found, "a late row lost")
			}
			if before.Config.Moves && old.Partition != in.Partition {
				found = append(found, "a row moved")
			}
		}
	}
	return found
}

// Over 200 seeds everything that histories promise occurs, and more than once by luck.
func TestCoverage(t *testing.T) {
	count := map[string]int{}
	for seed := range uint64(200) {
		seen := map[string]bool{}
		for _, f := range features(Generate(seed)) {
			seen[f] = true
		}
		for f := range seen {
			count[f]++
		}
	}
	want := []string{"a late row did not move", "a late row lost", "a row moved", "a row was replaced", "a row was deleted by its mark", "partition pattern",
		"added column", "count is int64", "delete: keys only", "upsert: soft delete", "insert: combined", "bulk_insert: combined", "insert: duplicates dropped",
		"duplicates: true", "null elements: true", "global true, moves true", "global true, moves false", "flag: true, marker: false", "flag: false, marker: true"}
	for _, k := range []string{Simple, Complex, ComplexOne, Timestamp, Custom, NonPartitioned, GlobalDelete, Keyless} {
		want = append(want, "keys: "+k)
	}
	for _, p := range payloads {
		want = append(want, "payload: "+p)
	}
	for _, i := range indexes {
		want = append(want, "index: "+i)
	}
	for _, c := range clocks {
		want = append(want, "clock: "+c.Type)
	}
	for _, o := range []string{"upsert", "insert", "bulk_insert", "delete", "insert_overwrite", "insert_overwrite_table", "delete_partition"} {
		want = append(want, "operation: "+o)
	}
	for _, m := range []string{"NONE", "GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"} {
		want = append(want, "sort mode: "+m)
	}
	for _, c := range dataColumns() {
		want = append(want, "type: "+c.Type.String())
	}
	for _, codec := range []string{"gzip", "snappy", "zstd", "uncompressed"} {
		want = append(want, "hoodie.parquet.compression.codec="+codec)
	}
	for _, w := range want {
		if count[w] < 3 {
			t.Errorf("%s: %d of 200 histories", w, count[w])
		}
	}
	for _, f := range slices.Sorted(maps.Keys(count)) {
		t.Logf("%4d %s", count[f], f)
	}
}

// A seed is one history, and its rows pass through Arrow unharmed.
func TestSameSeed(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer alloc.AssertSize(t, 0)
	for seed := range uint64(30) {
		h := Generate(seed)
		if again := Generate(seed); !reflect.DeepEqual(h, again) {
			t.Fatalf("seed %d gives two histories:\n%s%s", seed, h, again)
		}
		if len(h.Steps) < 9 {
			t.Errorf("seed %d has %d steps", seed, len(h.Steps))
		}
		for n, s := range h.Steps {
			declared, err := Declared(s.Columns)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Collect(Arrow(s.Columns), s.Batches(alloc, 7))
			if err != nil {
				t.Fatal(err)
			}
			if d := rows.Diff(rows.Set{Columns: declared, Rows: s.Rows}, rows.Set{Rows: got}, rows.Options{Key: []string{"id"}}); d != "" {
				t.Errorf("seed %d, step %d: %s", seed, n, d)
			}
		}
	}
}

// Each payload class by an example that the specification gives (tools F.4, table format 6.6).
func TestPayloads(t *testing.T) {
	r := func(ts int64, name, price any) rows.Row {
		return rows.Row{"ts": number(ts), "name": name, "price": price}
	}
	gone := func(ts int64) rows.Row { return rows.Row{"ts": number(ts), "_hoodie_is_deleted": true} }
	for _, c := range []struct {
		payload    string
		stored, in rows.Row
		want       rows.Row
		verdict    verdict
	}{
		{OverwriteWithLatest, r(10, "a", 1), r(5, "b", nil), r(5, "b", nil), replaced},
		{OverwriteWithLatest, r(10, "a", 1), gone(5), nil, removed},
		{DefaultPayload, r(10, "a", 1), r(5, "b", nil), r(10, "a", 1), kept},
		{DefaultPayload, r(10, "a", 1), r(10, "b", nil), r(10, "b", nil), replaced},
		{DefaultPayload, r(10, "a", 1), gone(5), r(10, "a", 1), kept},
		{DefaultPayload, r(10, "a", 1), gone(10), nil, removed},
		{EventTime, r(10, "a", 1), r(5, "b", nil), r(10, "a", 1), kept},
		{EventTime, r(10, "a", 1), gone(5), nil, removed},
		{PartialUpdate, r(1, "name_1", nil), r(2, nil, 2), r(2, "name_1", 2), replaced},
		{PartialUpdate, r(2, "name_1", nil), r(1, "name_0", 1), r(2, "name_1", 1), replaced},
		{PartialUpdate, r(10, "a", 1), gone(5), nil, removed},
		{OverwriteNonDefaults, r(10, "a", 1), r(5, nil, 2), r(5, "a", 2), replaced},
		{AWSDms, r(10, "a", 1), rows.Row{"ts": number(1), "Op": "d"}, nil, removed},
	} {
		config := Config{Payload: c.payload, Ordering: "ts"}
		got, v := config.over(c.stored, c.in)
		if v != c.verdict || v != removed && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v over %v is %v (%v), want %v (%v)", c.payload, c.in, c.stored, got, v, c.want, c.verdict)
		}
	}
	partial := Config{Payload: PartialUpdate, Ordering: "ts"}
	if got := partial.within(r(1, "name_1", 1), r(2, nil, 2)); !reflect.DeepEqual(got, r(2, "name_1", 2)) {
		t.Errorf("partial update in a batch: %v", got)
	}
}
