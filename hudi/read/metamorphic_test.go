package read_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/sluicelake/sluice/hudi/logfile"
	"github.com/sluicelake/sluice/hudi/read"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/mem"
)

// One history of writes is laid out in many ways: all in logs, compacted at this or that step, in Avro or Parquet blocks, in
// few or many of them. Read in many ways (batch sizes, budgets that spill and that do not, one and many readers) the rows
// are always the same, and they are those of a plain model.

// row is one version of a record.
type row struct {
	id     string
	v, ts  int64
	note   string
	commit string
}

// write is one step of a history: rows in order of their keys, and deletes with their ordering values.
type write struct {
	instant string
	rows    []row
	deletes []row
}

const tableSchema = `{"type":"record","name":"t_record","namespace":"hoodie.t","fields":[` +
	`{"name":"id","type":["null","string"],"default":null},{"name":"v","type":["null","long"],"default":null},` +
	`{"name":"note","type":["null","string"],"default":null},{"name":"ts","type":["null","long"],"default":null}]}`

// instantOf step n is 20260101 with n minutes; a step completes half a minute later.
func instantOf(n int) string    { return fmt.Sprintf("202601010%d%02d00000", n/60, n%60) }
func completionOf(n int) string { return fmt.Sprintf("202601010%d%02d30000", n/60, n%60) }

// history makes steps of upserts, late ones among them, and deletes. A key that was deleted is not written again: whether a
// late write brings it back depends on whether the delete was compacted, in Apache Hudi too.
func history(r *rand.Rand, steps, keys, writes int) []write {
	var out []write
	newest, gone := map[string]int64{}, map[string]bool{}
	for n := range steps {
		w := write{instant: instantOf(n + 1)}
		seen := map[string]bool{}
		for range writes {
			id := fmt.Sprintf("key-%05d", r.IntN(keys))
			if seen[id] || gone[id] {
				continue
			}
			seen[id] = true
			ts := int64(n*10 + r.IntN(12) - 4) // some are late, some tie
			if n > 0 && r.IntN(10) == 0 {
				w.deletes = append(w.deletes, row{id: id, ts: ts})
				if old, ok := newest[id]; !ok || ts >= old {
					gone[id] = true
				}
				continue
			}
			newest[id] = max(newest[id], ts)
			w.rows = append(w.rows, row{id: id, v: r.Int64N(1 << 40), ts: ts, note: strings.Repeat("x", r.IntN(40)), commit: w.instant})
		}
		slices.SortFunc(w.rows, func(a, b row) int { return strings.Compare(a.id, b.id) })
		out = append(out, w)
	}
	return out
}

// model is the state after some writes under EVENT_TIME_ORDERING: the greater ordering value wins, a tie goes to the later.
func model(writes []write) map[string]row {
	state := map[string]row{}
	for _, w := range writes {
		for _, in := range w.rows {
			if old, ok := state[in.id]; !ok || in.ts >= old.ts {
				state[in.id] = in
			}
		}
		for _, d := range w.deletes {
			if old, ok := state[d.id]; ok && d.ts >= old.ts {
				delete(state, d.id)
			}
		}
	}
	return state
}

// layout says how a history lies on disk.
type layout struct {
	name    string
	compact int  // steps that are in the base file; 0: no base file
	parquet bool // blocks
	blocks  int  // blocks that a step's rows are cut into
}

// lay writes a table of version 9 with one file group.
func lay(t *testing.T, h []write, l layout) storage.Store {
	t.Helper()
	store := mem.New(l.name)
	put := func(name string, body []byte) {
		if _, err := store.Put(t.Context(), name, bytes.NewReader(body), storage.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	put(".hoodie/hoodie.properties", []byte("hoodie.table.name=t\nhoodie.table.type=MERGE_ON_READ\nhoodie.table.version=9\nhoodie.timeline.layout.version=2\n"+
		"hoodie.table.recordkey.fields=id\nhoodie.table.ordering.fields=ts\nhoodie.record.merge.mode=EVENT_TIME_ORDERING\n"))
	put(".hoodie_partition_metadata", []byte("commitTime=1\npartitionDepth=0\n"))
	commit := fmt.Appendf(nil, `{"partitionToWriteStats":{},"extraMetadata":{"schema":%q},"operationType":"UPSERT"}`, tableSchema)
	for n, w := range h {
		put(".hoodie/timeline/"+w.instant+"_"+completionOf(n+1)+".deltacommit", commit)
		if n < l.compact {
			continue
		}
		put(fmt.Sprintf(".F-0_%s.log.1_0-%d-0", w.instant, n), logFile(t, w, l))
	}
	if l.compact > 0 {
		at := h[l.compact-1].instant
		if l.compact > 1 { // a compaction of its own, between two steps
			at = completionOf(l.compact)[:14] + "900"
			put(".hoodie/timeline/"+at+"_"+at[:14]+"950.commit", commit)
		}
		state := model(h[:l.compact])
		var rows []row
		for _, id := range slices.Sorted(maps.Keys(state)) {
			rows = append(rows, state[id])
		}
		put("F-0_0-1-1_"+at+".parquet", parquetFile(t, rows, 700))
	}
	return store
}

func logFile(t *testing.T, w write, l layout) []byte {
	t.Helper()
	full, err := schema.ParseString(tableSchema)
	if err != nil {
		t.Fatal(err)
	}
	header := logfile.Header{InstantTime: w.instant, Schema: schema.WithMeta(full).String()}
	var out []byte
	add := func(kind logfile.Type, content []byte) {
		if out, err = logfile.AppendBlock(out, kind, header, content); err != nil {
			t.Fatal(err)
		}
	}
	for part := range slices.Chunk(w.rows, max(1, (len(w.rows)+l.blocks-1)/l.blocks)) {
		if l.parquet {
			add(logfile.ParquetData, parquetFile(t, part, 100))
			continue
		}
		var records [][]byte
		for _, r := range part {
			records = append(records, avro(r))
		}
		add(logfile.AvroData, logfile.AppendAvroContent(nil, records))
	}
	if len(w.deletes) > 0 {
		var keys []logfile.DeletedKey
		for _, d := range w.deletes {
			keys = append(keys, logfile.DeletedKey{Key: d.id, Ordering: logfile.Ordering{Kind: logfile.OrderingLong, Int: d.ts}})
		}
		add(logfile.Delete, logfile.AppendDeleteContent(nil, keys))
	}
	return out
}

// avro encodes a row in the block's schema: every field is a union whose second branch is taken.
func avro(r row) []byte {
	var b []byte
	text := func(s string) {
		b = append(b, 2)
		b = binary.AppendVarint(b, int64(len(s)))
		b = append(b, s...)
	}
	long := func(v int64) {
		b = append(b, 2)
		b = binary.AppendVarint(b, v)
	}
	for _, s := range meta(r) {
		text(s)
	}
	text(r.id)
	long(r.v)
	text(r.note)
	long(r.ts)
	return b
}

func meta(r row) []string { return []string{r.commit, r.commit + "_0_" + r.id, r.id, "", "F-0"} }

func parquetFile(t *testing.T, rows []row, group int64) []byte {
	t.Helper()
	full, err := schema.ParseString(tableSchema)
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.WithMeta(full).Arrow()
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	for _, r := range rows {
		for i, m := range meta(r) {
			b.Field(i).(*array.StringBuilder).Append(m)
		}
		b.Field(5).(*array.StringBuilder).Append(r.id)
		b.Field(6).(*array.Int64Builder).Append(r.v)
		b.Field(7).(*array.StringBuilder).Append(r.note)
		b.Field(8).(*array.Int64Builder).Append(r.ts)
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	table := array.NewTableFromRecords(s, []arrow.RecordBatch{batch})
	defer table.Release()
	var out bytes.Buffer
	if err := pqarrow.WriteTable(table, struct{ io.Writer }{&out}, group, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// scan reads a table's rows as "id v note ts commit", sorted.
func scan(t *testing.T, store storage.Store, q read.Query, opts read.ScanOptions) []string {
	t.Helper()
	checked := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer checked.AssertSize(t, 0)
	opts.Alloc, opts.TempDir = checked, t.TempDir()
	opts.Columns = []string{"id", "v", "note", "ts", "_hoodie_commit_time"}
	src, err := read.Load(t.Context(), store, read.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := src.Plan(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := plan.Reader(opts)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for batch, err := range reader.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(batch.NumRows()) {
			line := make([]string, batch.NumCols())
			for c := range line {
				line[c] = batch.Column(c).ValueStr(i)
			}
			out = append(out, strings.Join(line, " "))
		}
		batch.Release()
	}
	slices.Sort(out)
	return out
}

func lines(state map[string]row) []string {
	var out []string
	for _, r := range state {
		out = append(out, fmt.Sprintf("%s %d %s %d %s", r.id, r.v, r.note, r.ts, r.commit))
	}
	slices.Sort(out)
	return out
}

func TestTheSameHistoryInAnyLayoutGivesTheSameRows(t *testing.T) {
	layouts := []layout{
		{"base and logs", 1, false, 1},
		{"logs only", 0, false, 1},
		{"logs only, parquet", 0, true, 3},
		{"compacted in the middle", 4, false, 1},
		{"compacted in the middle, parquet blocks", 4, true, 1},
		{"compacted late, many blocks", 7, false, 9},
		{"compacted whole", 8, false, 1},
	}
	ways := []read.ScanOptions{
		{},
		{BatchRows: 1},
		{BatchRows: 7, Memory: 20 << 10}, // spills
		{Memory: 16 << 20, Readers: 4},
		{Memory: 1 << 30},
	}
	for seed := range uint64(6) {
		h := history(rand.New(rand.NewPCG(seed, 1)), 8, 600, 400)
		want := lines(model(h))
		for _, l := range layouts {
			store := lay(t, h, l)
			for i, way := range ways {
				if got := scan(t, store, read.Query{}, way); !slices.Equal(got, want) {
					t.Fatalf("seed %d, %s, way %d: %s", seed, l.name, i, firstDifference(want, got))
				}
			}
			// An older instant reads the same in each layout that has not compacted it away.
			at := 6
			if l.compact <= at {
				got := scan(t, store, read.Query{AsOf: h[at-1].instant}, read.ScanOptions{})
				if want := lines(model(h[:at])); !slices.Equal(got, want) {
					t.Fatalf("seed %d, %s, as of step %d: %s", seed, l.name, at, firstDifference(want, got))
				}
			}
		}
	}
}

func firstDifference(want, got []string) string {
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			return fmt.Sprintf("%d rows, want %d; row %d is %q, want %q", len(got), len(want), i, got[i], want[i])
		}
	}
	return fmt.Sprintf("%d rows, want %d", len(got), len(want))
}
