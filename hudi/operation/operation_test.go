package operation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/operation"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/hudi/write"
	"github.com/sluicelake/sluice/storage"
)

type step struct {
	kind operation.Kind
	rows string
	conf []string
	want string
}

const (
	latest     = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
	byOrdering = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
	partial    = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
)

// Operations one after the other on one table, and what is stored after each: tools E, F.1, F.4 and F.6.
func TestOperations(t *testing.T) {
	payload := func(class string, more ...string) []string {
		return append([]string{"hoodie.datasource.write.payload.class", class}, more...)
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"upsert replaces, adds, and keeps what it does not name", []step{
			{operation.Insert, "a x 1|b x 2|c y 3", nil, "a x 1|b x 2|c y 3"},
			{operation.Upsert, "b x 20 2|d z 4", nil, "a x 1|b x 20|c y 3|d z 4"},
			{operation.Upsert, "c x 5", nil, "a x 1|b x 20|c y 3|c x 5|d z 4"},
		}},
		{"the greater ordering value wins in the batch, the batch over what is stored", []step{
			{operation.Upsert, "a x 1 5|a x 2 9|a x 3 7", payload(latest), "a x 2"},
			{operation.Upsert, "a x 4 1", payload(latest), "a x 4"},
		}},
		{"by ordering an older row stays out", []step{
			{operation.Upsert, "a x 1 5|b x 1 5", payload(byOrdering), "a x 1|b x 1"},
			{operation.Upsert, "a x 2 4|b x 2 5", payload(byOrdering), "a x 1|b x 2"},
		}},
		{"insert keeps twins, in the batch and in the file that it fills up", []step{
			{operation.Insert, "a x 1|a x 2", nil, "a x 1|a x 2"},
			{operation.Insert, "a x 3", nil, "a x 1|a x 2|a x 3"},
			{operation.Upsert, "a x 9", nil, "a x 9|a x 9|a x 9"},
			{operation.Delete, "a x", nil, ""},
		}},
		{"insert combines where it is asked to", []step{
			{operation.Insert, "a x 1 1|a x 2 2", []string{"hoodie.combine.before.insert", "true"}, "a x 2"},
		}},
		{"an insert without twins replaces the rows of the file that it fills up", []step{
			{operation.Insert, "a x 1|b x 1", nil, "a x 1|b x 1"},
			{operation.Insert, "a x 2|c x 2", []string{"hoodie.merge.allow.duplicate.on.inserts", "false"}, "a x 2|b x 1|c x 2"},
		}},
		{"stored keys are dropped", []step{
			{operation.Upsert, "a x 1", nil, "a x 1"},
			{operation.Upsert, "a x 2|b x 2|b x 3 2", []string{"hoodie.datasource.write.insert.drop.duplicates", "true"}, "a x 1|b x 3"},
			{operation.Insert, "a x 2|c x 2", []string{"hoodie.datasource.insert.dup.policy", "drop"}, "a x 1|b x 3|c x 2"},
			{operation.BulkInsert, "a x 2|a y 2|d x 2|d x 3 2", []string{"hoodie.datasource.write.insert.drop.duplicates", "true"}, "a x 1|a y 2|b x 3|c x 2|d x 3"},
			{operation.BulkInsert, "a y 3|e x 2", []string{"hoodie.datasource.write.insert.drop.duplicates", "true", "hoodie.bulkinsert.sort.mode", "GLOBAL_SORT"}, "a x 1|a y 2|b x 3|c x 2|d x 3|e x 2"},
		}},
		{"bulk insert adds", []step{
			{operation.BulkInsert, "a x 1|b y 1", nil, "a x 1|b y 1"},
			{operation.BulkInsert, "a x 2|c x 1", []string{"hoodie.bulkinsert.sort.mode", "GLOBAL_SORT"}, "a x 1|a x 2|b y 1|c x 1"},
			{operation.BulkInsert, "d x 2|c z 1", []string{"hoodie.bulkinsert.sort.mode", "PARTITION_PATH_REPARTITION"}, "a x 1|a x 2|b y 1|c x 1|c z 1|d x 2"},
		}},
		{"delete by key leaves other partitions alone, and absent keys are nothing", []step{
			{operation.Insert, "a x 1|a y 2|b x 3", nil, "a x 1|a y 2|b x 3"},
			{operation.Delete, "a x|nobody x|b nowhere", nil, "a y 2|b x 3"},
			{operation.Delete, "b x|a y", nil, ""},
			{operation.Upsert, "b x 5", nil, "b x 5"},
		}},
		{"overwrite replaces the partitions of its rows", []step{
			{operation.Insert, "a x 1|b y 2|c y 3", nil, "a x 1|b y 2|c y 3"},
			{operation.InsertOverwrite, "d y 4|d y 5", nil, "a x 1|d y 4|d y 5"},
			{operation.InsertOverwriteTable, "e z 6", nil, "e z 6"},
			{operation.Upsert, "a x 7|e z 7", nil, "a x 7|e z 7"},
		}},
		{"partitions are deleted by name, pattern and rows", []step{
			{operation.Insert, "a x1 1|b x2 2|c y 3|d z 4", nil, "a x1 1|b x2 2|c y 3|d z 4"},
			{operation.DeletePartition, "", []string{"hoodie.datasource.write.partitions.to.delete", "y,unknown"}, "a x1 1|b x2 2|d z 4"},
			{operation.DeletePartition, "", []string{"hoodie.datasource.write.partitions.to.delete", "x%2A"}, "d z 4"},
			{operation.DeletePartition, "any z", nil, ""},
			{operation.Insert, "e z 5", nil, "e z 5"},
		}},
		{"a global index finds a key in another partition, and the row moves", []step{
			{operation.Insert, "a x 1|b x 2", nil, "a x 1|b x 2"},
			{operation.Upsert, "a y 3|b x 4", []string{"hoodie.index.type", "GLOBAL_SIMPLE"}, "a y 3|b x 4"},
			{operation.Upsert, "a z 5", []string{"hoodie.index.type", "GLOBAL_BLOOM"}, "a z 5|b x 4"},
			{operation.Delete, "b nowhere|a nowhere", []string{"hoodie.index.type", "GLOBAL_BLOOM"}, ""},
		}},
		{"or stays in its folder, where that is asked for", []step{
			{operation.Insert, "a x 1", nil, "a x 1"},
			{operation.Upsert, "a y 3", []string{"hoodie.index.type", "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path", "false"}, "x/a y 3"},
		}},
		{"an older row does not move", []step{
			{operation.Upsert, "a x 1 5|b x 1 5", payload(byOrdering), "a x 1|b x 1"},
			{operation.Upsert, "a y 2 4|b y 2 6", payload(byOrdering, "hoodie.index.type", "GLOBAL_SIMPLE"), "a x 1|b y 2"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := create(t, nil)
			for _, st := range c.steps {
				run(t, s, st.kind, short(t, st.rows), conf(st.conf...))
				expect(t, s, st.want)
			}
		})
	}
}

// Columns come, widen and are missed, and older rows follow (tools C.8).
func TestSchemaChanges(t *testing.T) {
	field := func(name string, dt arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: dt, Nullable: true}
	}
	id, p, ts := columns.Field(0), columns.Field(1), columns.Field(3)
	small := arrow.NewSchema([]arrow.Field{id, p, field("v", arrow.PrimitiveTypes.Int32), ts}, nil)
	wide := arrow.NewSchema([]arrow.Field{ts, field("more", arrow.BinaryTypes.String), field("v", arrow.PrimitiveTypes.Int64), p, id}, nil)
	s := create(t, nil)
	run(t, s, operation.Insert, rows(t, small, `{"id":"a","p":"x","v":1,"ts":1},{"id":"b","p":"x","v":2,"ts":1}`), conf())
	r := run(t, s, operation.Upsert, rows(t, wide, `{"id":"b","p":"x","v":5000000000,"ts":2,"more":"new"}`), conf())
	got := dump(t, s)
	if got[0]["v"] != 1.0 || got[0]["more"] != nil || got[1]["v"] != 5e9 || got[1]["more"] != "new" {
		t.Errorf("%v", got)
	}
	if text := r.Commit.ExtraMetadata["schema"]; strings.Index(text, `"id"`) > strings.Index(text, `"v"`) || !strings.Contains(text, `"more"`) {
		t.Errorf("the commit stores %s", text)
	}
	if _, err := operation.Run(context.Background(), s, operation.Upsert, rows(t, small, `{"id":"b","p":"x","v":7,"ts":3}`), operation.Options{Conf: conf()}); err == nil || !strings.Contains(err.Error(), "more") {
		t.Errorf("a missing column: %v", err)
	}
	run(t, s, operation.Upsert, rows(t, small, `{"id":"b","p":"x","v":7,"ts":3}`), conf("hoodie.write.set.null.for.missing.columns", "true"))
	if got := dump(t, s); got[1]["v"] != 7.0 || got[1]["more"] != nil {
		t.Errorf("%v", got)
	}
	sound(t, s)
}

// Rows that are marked as deleted (tools E): they remove stored rows in upserts alone, and are never stored.
func TestMarkedRows(t *testing.T) {
	s := create(t, nil)
	run(t, s, operation.Insert, short(t, "a x 1|b x 2|c x 3"), conf())
	run(t, s, operation.Upsert, rows(t, columns, `{"id":"a","p":"x","v":9,"ts":2,"_hoodie_is_deleted":true},{"id":"z","p":"x","v":9,"ts":2,"_hoodie_is_deleted":true},{"id":"b","p":"x","v":9,"ts":2,"_hoodie_is_deleted":false}`), conf())
	expect(t, s, "b x 9|c x 3")
	for _, kind := range []operation.Kind{operation.Insert, operation.BulkInsert} {
		r := run(t, s, kind, rows(t, columns, `{"id":"c","p":"x","v":9,"ts":2,"_hoodie_is_deleted":true}`), conf())
		if r.Dropped != 1 {
			t.Errorf("%s: %d rows left out", kind, r.Dropped)
		}
		expect(t, s, "b x 9|c x 3")
	}
	dms := conf("hoodie.datasource.write.payload.class", "org.apache.hudi.common.model.AWSDmsAvroPayload")
	run(t, s, operation.Upsert, rows(t, columns, `{"id":"b","p":"x","v":9,"ts":1,"Op":"d"},{"id":"q","p":"x","v":1,"ts":2,"Op":"D"},{"id":"c","p":"x","v":7,"ts":2,"Op":"U"}`), dms)
	expect(t, s, "c x 7")
}

// Partial updates fill their gaps from what is stored, also when a row moves.
func TestPartialUpdates(t *testing.T) {
	c := conf("hoodie.datasource.write.payload.class", partial, "hoodie.index.type", "GLOBAL_SIMPLE")
	s := create(t, nil)
	run(t, s, operation.Upsert, rows(t, columns, `{"id":"a","p":"x","v":1,"ts":1,"Op":"first"},{"id":"b","p":"x","v":1,"ts":1,"Op":"first"}`), c)
	run(t, s, operation.Upsert, rows(t, columns, `{"id":"a","p":"x","v":2,"ts":2,"Op":null},{"id":"b","p":"y","v":null,"ts":2,"Op":"second"}`), c)
	expect(t, s, "a x 2|b y 1")
	got := dump(t, s)
	if got[0]["Op"] != "first" || got[1]["Op"] != "second" || got[1]["_hoodie_partition_path"] != "y" {
		t.Errorf("%v", got)
	}
}

// Rows that an update does not name keep their commit time and number; every row has the name of its file.
func TestMetaColumns(t *testing.T) {
	s := create(t, nil)
	first := run(t, s, operation.Insert, short(t, "a x 1|b x 2"), conf())
	before := dump(t, s)
	second := run(t, s, operation.Upsert, short(t, "b x 20|c x 3"), conf())
	after := dump(t, s)
	if after[0]["_hoodie_commit_time"] != first.Instant || after[0]["_hoodie_commit_seqno"] != before[0]["_hoodie_commit_seqno"] {
		t.Errorf("the row that was not named: %v, before %v", after[0], before[0])
	}
	seen := map[any]bool{}
	for _, r := range after {
		if !strings.Contains(fmt.Sprint(r["_hoodie_file_name"]), second.Instant) {
			t.Errorf("the name of the file in %v", r)
		}
		if seen[r["_hoodie_commit_seqno"]] {
			t.Errorf("%v twice", r["_hoodie_commit_seqno"])
		}
		seen[r["_hoodie_commit_seqno"]] = true
	}
	if after[1]["_hoodie_commit_time"] != second.Instant || after[2]["_hoodie_commit_time"] != second.Instant {
		t.Errorf("the new rows: %v", after)
	}
	if groups(t, s, "x") != 1 || len(files(t, s, "x")) != 2 {
		t.Errorf("%d file groups, %d files", groups(t, s, "x"), len(files(t, s, "x")))
	}
}

// The stats of a commit, field by field, are those of Apache Hudi for the same writes (tools F, table format 2.4).
func TestStats(t *testing.T) {
	s := create(t, nil)
	first := run(t, s, operation.Insert, short(t, "a x 1|b x 2|c x 3"), conf())
	second := run(t, s, operation.Upsert, rows(t, columns, `{"id":"a","p":"x","v":10,"ts":2},{"id":"b","p":"x","v":0,"ts":2,"_hoodie_is_deleted":true},{"id":"d","p":"x","v":4,"ts":2}`), conf())
	for i, want := range []timeline.WriteStat{
		{PrevCommit: "null", NumWrites: 3, NumInserts: 3},
		{PrevCommit: first.Instant, NumWrites: 3, NumInserts: 1, NumUpdateWrites: 1, NumDeletes: 1},
	} {
		r := []*operation.Result{first, second}[i]
		got := r.Commit.PartitionToWriteStats["x"][0]
		want.FileID, want.Path, want.PartitionPath, want.RuntimeStats = got.FileID, got.Path, "x", got.RuntimeStats
		info, err := s.Stat(context.Background(), got.Path)
		if err != nil {
			t.Fatal(err)
		}
		want.FileSizeInBytes, want.TotalWriteBytes = info.Size, info.Size
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("commit %d:\n  %+v\nwant\n  %+v", i, got, want)
		}
	}
	if second.Updated != 1 || second.Deleted != 1 || second.Inserted != 1 {
		t.Errorf("%+v", second)
	}
}

// A delete of no stored key is an empty commit, as there; SkipEmpty makes none.
func TestEmptyCommit(t *testing.T) {
	s := create(t, nil)
	run(t, s, operation.Insert, short(t, "a x 1"), conf())
	r := run(t, s, operation.Delete, short(t, "b x"), conf())
	if r.Instant == "" || len(r.Commit.PartitionToWriteStats) != 0 {
		t.Errorf("%+v", r)
	}
	r, err := operation.Run(context.Background(), s, operation.Delete, short(t, "b x"), operation.Options{Conf: conf(), SkipEmpty: true})
	if err != nil || r.Instant != "" {
		t.Errorf("%+v, %v", r, err)
	}
	expect(t, s, "a x 1")
}

// Inserts fill up small files and are cut by the numbers of tools F.5.
func TestFileSizing(t *testing.T) {
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf("k%03d x %d", i, i))
	}
	c := conf("hoodie.parquet.max.file.size", "500000000", "hoodie.parquet.small.file.limit", "1000000", "hoodie.copyonwrite.record.size.estimate", "10",
		"hoodie.copyonwrite.insert.auto.split", "false", "hoodie.copyonwrite.insert.split.size", "30")
	s := create(t, nil)
	run(t, s, operation.Insert, short(t, strings.Join(many, "|")), c)
	if n := groups(t, s, "x"); n != 4 { // 30, 30, 30, 10
		t.Errorf("%d file groups of 100 rows at 30 each", n)
	}
	run(t, s, operation.Insert, short(t, "new x 1"), c)
	if n := groups(t, s, "x"); n != 4 {
		t.Errorf("%d file groups after a row was packed", n)
	}
	run(t, s, operation.Insert, short(t, "new2 x 1"), merged(c, map[string]string{"hoodie.parquet.small.file.limit": "0"}))
	if n := groups(t, s, "x"); n != 5 {
		t.Errorf("%d file groups after an insert that packs nothing", n)
	}
	// With 1000 bytes a row a file of 10 KiB more than the largest takes ten rows; the rest goes to new files of auto size.
	largest := int64(0)
	for info, err := range s.List(context.Background(), "x", storage.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, info.Size)
	}
	s2 := create(t, nil)
	run(t, s2, operation.Insert, short(t, strings.Join(many[:30], "|")), c)
	sized := merged(c, map[string]string{"hoodie.parquet.max.file.size": fmt.Sprint(largest + 10000), "hoodie.copyonwrite.record.size.estimate": "1000", "hoodie.copyonwrite.insert.auto.split": "true", "hoodie.parquet.small.file.limit": fmt.Sprint(largest + 5000)})
	r := run(t, s2, operation.Insert, short(t, strings.Join(many[30:], "|")), sized)
	packed := int64(0)
	for _, st := range r.Commit.PartitionToWriteStats["x"] {
		if st.PrevCommit != "null" {
			packed = st.NumInserts
		}
	}
	if packed < 8 || packed > 12 {
		t.Errorf("%d rows were packed, want about 10", packed)
	}
	sound(t, s2)
}

// A bucket index keeps one file group for each bucket, through every operation.
func TestBuckets(t *testing.T) {
	c := conf("hoodie.index.type", "BUCKET", "hoodie.bucket.index.num.buckets", "3")
	s := create(t, nil)
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprintf("k%d x %d", i, i))
	}
	run(t, s, operation.Upsert, short(t, strings.Join(many, "|")), c)
	run(t, s, operation.Upsert, short(t, "k1 x 100|new x 1"), c)
	run(t, s, operation.Insert, short(t, "new2 x 2"), c)
	run(t, s, operation.BulkInsert, short(t, "new3 x 3|k0 x 50"), c)
	run(t, s, operation.Delete, short(t, "k2 x|k3 x|nobody x"), c)
	want := append([]string{"new x 1", "new2 x 2", "new3 x 3", "k0 x 0", "k0 x 50", "k1 x 100"}, many[4:]...)
	expect(t, s, strings.Join(want, "|"))
	if n := groups(t, s, "x"); n != 3 {
		t.Errorf("%d file groups in 3 buckets", n)
	}
	for _, f := range files(t, s, "x") {
		if id := f.FileID[:8]; id != "00000000" && id != "00000001" && id != "00000002" {
			t.Errorf("file id %s", f.FileID)
		}
	}
	run(t, s, operation.InsertOverwrite, short(t, "k1 x 5|z x 6"), c)
	expect(t, s, "k1 x 5|z x 6")
	run(t, s, operation.Upsert, short(t, "k1 x 7|y x 8"), c)
	expect(t, s, "k1 x 7|y x 8|z x 6")
}

// What does not fit in memory goes to disk, and nothing else changes.
func TestLittleMemory(t *testing.T) {
	var first, second, want []string
	for i := range 3000 {
		first = append(first, fmt.Sprintf("k%d p%d %d", i, i%90, i))
		v := i
		if i%3 == 0 {
			second = append(second, fmt.Sprintf("k%d p%d %d", i, i%90, -i))
			v = -i
		}
		if i%5 != 0 {
			want = append(want, fmt.Sprintf("k%d p%d %d", i, i%90, v))
		}
	}
	var gone []string
	for i := 0; i < 3000; i += 5 {
		gone = append(gone, fmt.Sprintf("k%d p%d", i, i%90))
	}
	for _, kind := range []operation.Kind{operation.Insert, operation.BulkInsert} {
		s := create(t, nil)
		for _, st := range []struct {
			kind operation.Kind
			rows []string
		}{{kind, first}, {operation.Upsert, second}, {operation.Delete, gone}} {
			all := short(t, strings.Join(st.rows, "|"))
			var parts []arrow.RecordBatch
			for b := range all.Batches {
				for from := int64(0); from < b.NumRows(); from += 100 {
					parts = append(parts, b.NewSlice(from, min(from+100, b.NumRows())))
				}
			}
			all.Batches = stream(parts...)
			if _, err := operation.Run(context.Background(), s, st.kind, all, operation.Options{Conf: conf(), Memory: 20000, TempDir: t.TempDir(), Parallel: 2}); err != nil {
				t.Fatal(err)
			}
		}
		expect(t, s, strings.Join(want, "|"))
	}
}

// Sorted bulk inserts hold their keys in order, over the files of a partition too.
func TestSortedBulkInsert(t *testing.T) {
	s := create(t, nil)
	run(t, s, operation.BulkInsert, short(t, "c x 1|a y 1|b x 1|d x 1|a x 1"), conf("hoodie.bulkinsert.sort.mode", "GLOBAL_SORT"))
	if keys := inOrder(t, s); !slices.Equal(keys, []string{"x/a", "x/b", "x/c", "x/d", "y/a"}) {
		t.Errorf("%v", keys)
	}
}

// Keys may come along instead of the columns that they are made of.
func TestDeleteByStoredKey(t *testing.T) {
	keys := arrow.NewSchema([]arrow.Field{{Name: "_hoodie_record_key", Type: arrow.BinaryTypes.String}, {Name: "_hoodie_partition_path", Type: arrow.BinaryTypes.String}}, nil)
	s := create(t, nil)
	run(t, s, operation.Insert, short(t, "a x 1|a y 2"), conf())
	run(t, s, operation.Delete, rows(t, keys, `{"_hoodie_record_key":"a","_hoodie_partition_path":"x"}`), nil)
	expect(t, s, "a y 2")
	only := arrow.NewSchema(keys.Fields()[:1], nil)
	if _, err := operation.Run(context.Background(), s, operation.Delete, rows(t, only, `{"_hoodie_record_key":"a"}`), operation.Options{}); err == nil || !strings.Contains(err.Error(), "GLOBAL_SIMPLE") {
		t.Errorf("without partitions: %v", err)
	}
	run(t, s, operation.Delete, rows(t, only, `{"_hoodie_record_key":"a"}`), map[string]string{"hoodie.index.type": "GLOBAL_SIMPLE"})
	expect(t, s, "")
	run(t, s, operation.Insert, short(t, "a x 1|a y 2"), conf())
	id := arrow.NewSchema(columns.Fields()[:1], nil)
	run(t, s, operation.Delete, rows(t, id, `{"id":"a"}`), map[string]string{"hoodie.index.type": "GLOBAL_BLOOM"})
	expect(t, s, "")
}

// Bad input is refused with a message that names it, and the table stays as it was.
func TestRefusals(t *testing.T) {
	s := create(t, nil)
	run(t, s, operation.Insert, short(t, "a x 1"), conf())
	noKey := arrow.NewSchema(columns.Fields()[1:], nil)
	for _, c := range []struct {
		name string
		kind operation.Kind
		rows operation.Rows
		conf []string
		want string
	}{
		{"a missing key column", operation.Upsert, rows(t, noKey, `{"p":"x","v":1,"ts":1}`), nil, "id"},
		{"a null key", operation.Upsert, rows(t, columns, `{"id":null,"p":"x","v":1,"ts":1}`), nil, "cannot be null or empty"},
		{"another type", operation.Upsert, rows(t, arrow.NewSchema([]arrow.Field{columns.Field(0), columns.Field(1), {Name: "v", Type: arrow.FixedWidthTypes.Boolean, Nullable: true}, columns.Field(3), columns.Field(4), columns.Field(5)}, nil), `{"id":"a","p":"x","v":true,"ts":1}`), nil, "column v"},
		{"a column twice", operation.Upsert, operation.Rows{Schema: arrow.NewSchema([]arrow.Field{columns.Field(0), columns.Field(1), columns.Field(2), columns.Field(2)}, nil)}, nil, `"v"`},
		{"null ordering", operation.Upsert, rows(t, columns, `{"id":"a","p":"x","v":1,"ts":null}`), nil, "rdering value is null"},
		{"an unknown ordering column", operation.Upsert, short(t, "a x 1"), []string{"hoodie.datasource.write.precombine.field", "nots"}, "nots(Part -nots) field not found in record"},
		{"a stored key", operation.Insert, short(t, "a x 1"), []string{"hoodie.datasource.insert.dup.policy", "fail"}, "stored already: a"},
		{"an unknown index", operation.Upsert, short(t, "a x 1"), []string{"hoodie.index.type", "HBASE"}, "HBASE"},
		{"an unknown sort mode", operation.BulkInsert, short(t, "a x 1"), []string{"hoodie.bulkinsert.sort.mode", "UP"}, "GLOBAL_SORT"},
		{"a path out of the table", operation.Upsert, short(t, "a ../../y 1"), nil, ".."},
		{"another key", operation.Upsert, short(t, "a x 1"), []string{"hoodie.datasource.write.recordkey.field", "v"}, "RecordKey"},
		{"an unknown payload", operation.Upsert, short(t, "a x 1"), []string{"hoodie.datasource.write.payload.class", "com.example.Mine"}, "com.example.Mine"},
		{"a number that is none", operation.Upsert, short(t, "a x 1"), []string{"hoodie.parquet.max.file.size", "big"}, "hoodie.parquet.max.file.size"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := operation.Run(context.Background(), s, c.kind, c.rows, operation.Options{Conf: conf(c.conf...)})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			expect(t, s, "a x 1")
		})
	}
	broken := errors.New("the source broke")
	half := func(yield func(arrow.RecordBatch, error) bool) {
		if yield(batch(t, columns, `{"id":"b","p":"x","v":1,"ts":1}`), nil) {
			yield(nil, broken)
		}
	}
	for _, kind := range []operation.Kind{operation.Upsert, operation.Insert, operation.BulkInsert, operation.InsertOverwrite, operation.InsertOverwriteTable, operation.Delete} {
		if _, err := operation.Run(context.Background(), s, kind, operation.Rows{Schema: columns, Batches: half}, operation.Options{Conf: conf()}); !errors.Is(err, broken) {
			t.Errorf("%s: %v", kind, err)
		}
		expect(t, s, "a x 1")
	}
}

// Tables that need log files or change logs are refused before anything is written, but for what needs none.
func TestRefusedTables(t *testing.T) {
	onRead := create(t, func(s *write.Spec) { s.Type = config.MergeOnRead })
	run(t, onRead, operation.Insert, short(t, "a x 1|b y 2"), conf())
	run(t, onRead, operation.Upsert, short(t, "c x 3"), conf())
	for _, kind := range []operation.Kind{operation.Upsert, operation.Delete} {
		if _, err := operation.Run(context.Background(), onRead, kind, short(t, "a x 5"), operation.Options{Conf: conf()}); !errors.Is(err, config.ErrUnsupported) {
			t.Errorf("%s: %v", kind, err)
		}
		expect(t, onRead, "a x 1|b y 2|c x 3")
	}
	run(t, onRead, operation.InsertOverwrite, short(t, "d y 4"), conf())
	expect(t, onRead, "a x 1|c x 3|d y 4")
	cdc := create(t, func(s *write.Spec) { s.CDC = true })
	run(t, cdc, operation.BulkInsert, short(t, "a x 1"), conf())
	if _, err := operation.Run(context.Background(), cdc, operation.Upsert, short(t, "a x 5"), operation.Options{Conf: conf()}); !errors.Is(err, config.ErrUnsupported) {
		t.Errorf("with change logs: %v", err)
	}
	expect(t, cdc, "a x 1")
}

// Rows that can't be written may be put aside instead.
func TestReject(t *testing.T) {
	s := create(t, nil)
	var bad []int64
	o := operation.Options{Conf: conf(), Reject: func(r operation.Rejected) error {
		bad = append(bad, r.Count)
		return nil
	}}
	r, err := operation.Run(context.Background(), s, operation.Upsert, rows(t, columns, `{"id":"a","p":"x","v":1,"ts":1},{"id":null,"p":"x","v":2,"ts":1},{"id":"c","p":"x","v":3,"ts":null},{"id":"d","p":"x","v":4,"ts":1}`), o)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(bad, []int64{1, 2}) || r.Rejected != 2 || r.Inserted != 2 {
		t.Errorf("put aside %v; %+v", bad, r)
	}
	expect(t, s, "a x 1|d x 4")
}

// Tables of other shapes: no partitions, no meta columns, dropped partition columns, no keys.
func TestShapes(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*write.Spec)
		check  func(*testing.T, []map[string]any)
	}{
		{"no partitions", func(s *write.Spec) { s.PartitionFields = nil }, func(t *testing.T, r []map[string]any) {
			if r[0]["_hoodie_partition_path"] != "" {
				t.Errorf("%v", r[0])
			}
		}},
		{"hive style", func(s *write.Spec) { s.HiveStyle = true }, func(t *testing.T, r []map[string]any) {
			if r[0]["_hoodie_partition_path"] != "p=x" {
				t.Errorf("%v", r[0])
			}
		}},
		{"no meta columns", func(s *write.Spec) { s.NoMetaFields = true }, func(t *testing.T, r []map[string]any) {
			if r[0]["_hoodie_record_key"] != nil {
				t.Errorf("%v", r[0])
			}
		}},
		{"dropped partition columns", func(s *write.Spec) { s.DropPartitionColumns = true }, func(t *testing.T, r []map[string]any) {
			if r[0]["p"] != "x" {
				t.Errorf("%v", r[0])
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := create(t, c.change)
			run(t, s, operation.Insert, short(t, "a x 1|b x 2|c x 3"), nil)
			run(t, s, operation.Upsert, short(t, "b x 20|d x 4"), nil)
			run(t, s, operation.Delete, short(t, "c x"), nil)
			got := dump(t, s)
			var ids []string
			for _, r := range got {
				ids = append(ids, fmt.Sprint(r["id"], r["v"]))
			}
			slices.Sort(ids)
			if !slices.Equal(ids, []string{"a1", "b20", "d4"}) {
				t.Errorf("%v", ids)
			}
			c.check(t, got)
			sound(t, s)
		})
	}
	keyless := create(t, func(s *write.Spec) { s.RecordKeyFields, s.Keyless = nil, true })
	run(t, keyless, operation.BulkInsert, short(t, "a x 1|a x 1"), nil)
	run(t, keyless, operation.Insert, short(t, "a x 1"), nil)
	if got := dump(t, keyless); len(got) != 3 || got[0]["_hoodie_record_key"] == got[1]["_hoodie_record_key"] || got[1]["_hoodie_record_key"] == got[2]["_hoodie_record_key"] {
		t.Errorf("%v", got)
	}
}

// Rows that come partition by partition make one file for each, though several lanes write; in the order in which they came.
func TestBulkInsertOfGroupedRows(t *testing.T) {
	s := create(t, nil)
	var batches []arrow.RecordBatch
	const each = 6000
	for i := 0; i < 3*each; i += 1000 {
		b := array.NewRecordBuilder(memory.DefaultAllocator, columns)
		for row := i; row < i+1000; row++ {
			b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("k%05d", row))
			b.Field(1).(*array.StringBuilder).Append(string(rune('a' + row/each)))
			b.Field(2).(*array.Int64Builder).Append(int64(row))
			b.Field(3).(*array.Int64Builder).Append(1)
			b.Field(4).AppendNull()
			b.Field(5).AppendNull()
		}
		batches = append(batches, b.NewRecordBatch())
	}
	if r := run(t, s, operation.BulkInsert, operation.Rows{Schema: columns, Batches: stream(batches...)}, conf()); r.Inserted != 3*each || r.Files != 3 {
		t.Fatalf("%d rows in %d files", r.Inserted, r.Files)
	}
	got, err := snapshot(s)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range got {
		if want := fmt.Sprintf("k%05d %c %d", i, 'a'+i/each, i); row != want {
			t.Fatalf("row %d is %s, want %s", i, row, want)
		}
	}
	if len(got) != 3*each {
		t.Fatalf("%d rows", len(got))
	}
}
