package merge

import (
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/schema"
)

func parse(t testing.TB, text string) *schema.Type {
	t.Helper()
	s, err := schema.ParseString(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func orders(t testing.TB) *schema.Type {
	return parse(t, `{"type":"record","name":"r","fields":[{"name":"_hoodie_record_key","type":"string"},
		{"name":"ts","type":["null","long"],"default":null},{"name":"v","type":["null","string"],"default":null}]}`)
}

func compile(t testing.TB, o Options) *Rule {
	t.Helper()
	r, err := Compile(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// row is a record of orders: key, ordering value, text. A nil value is null.
type row struct {
	key string
	ts  any
	v   any
}

func batchOf(t testing.TB, r *Rule, rows ...row) arrow.RecordBatch {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, r.Arrow())
	defer b.Release()
	for _, x := range rows {
		b.Field(0).(*array.StringBuilder).Append(x.key)
		if ts, ok := x.ts.(int); ok {
			b.Field(1).(*array.Int64Builder).Append(int64(ts))
		} else {
			b.Field(1).AppendNull()
		}
		if v, ok := x.v.(string); ok {
			b.Field(2).(*array.StringBuilder).Append(v)
		} else {
			b.Field(2).AppendNull()
		}
	}
	return b.NewRecordBatch()
}

func once(bs ...arrow.RecordBatch) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for _, b := range bs {
			if !yield(b, nil) {
				return
			}
		}
	}
}

// texts renders every row of a stream as JSON, sorted.
func texts(t testing.TB, rows iter.Seq2[arrow.RecordBatch, error]) []string {
	t.Helper()
	var out []string
	for b, err := range rows {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			out = append(out, jsonText(rowJSON(b, i)))
		}
		b.Release()
	}
	slices.Sort(out)
	return out
}

// Spark SQL on a merge-on-read table, one statement per commit, no compaction: what Spark 3.5 with Apache Hudi 0.15.0
// (version 6) and 1.2.0 (version 9) read. Where Spark fails, the careful rows.
func TestEndToEnd(t *testing.T) {
	var file struct {
		Cases struct {
			Rows []struct {
				ID         string
				Statements []string
				Old        json.RawMessage `json:"0.15.0"`
				New        json.RawMessage `json:"1.2.0"`
			}
		} `json:"merge_end_to_end"`
	}
	readJSON(t, "vectors.json", &file)
	careful := map[string]string{ // version 9: null orders first; version 6 overwrites whatever the ordering
		"base_null 9": `[["a",1,"new"]]`, "incoming_null 9": `[["a",5,"base"]]`, "update_null 9": `[["a",5,"base"]]`,
		"base_null 6": `[["a",1,"new"]]`, "incoming_null 6": `[["a",null,"new"]]`, "both_null 6": `[["a",null,"new"]]`,
		"update_null 6": `[["a",null,"upd"]]`,
	}
	if len(file.Cases.Rows) != 8 {
		t.Fatalf("%d cases", len(file.Cases.Rows))
	}
	for _, c := range file.Cases.Rows {
		for version, want := range map[int]json.RawMessage{6: c.Old, 9: c.New} {
			if want[0] == '{' {
				want = json.RawMessage(careful[fmt.Sprintf("%s %d", c.ID, version)])
			}
			rule := compile(t, Options{TableVersion: version, OrderingFields: []string{"ts"}, Schema: orders(t)})
			if version == 9 && rule.String() != EventTime+" (as 1.2.0)" {
				t.Fatal(rule)
			}
			var rows [][]any
			if err := json.Unmarshal(want, &rows); err != nil {
				t.Fatal(err)
			}
			var expect []string
			for _, r := range rows {
				expect = append(expect, jsonText(map[string]any{"_hoodie_record_key": r[0], "ts": r[1], "v": r[2]}))
			}
			if got := texts(t, statements(t, rule, c.Statements)); !slices.Equal(got, expect) {
				t.Errorf("%s, version %d: %s, want %s", c.ID, version, got, expect)
			}
		}
	}
}

// statements plays SQL statements: the first insert is the base file, everything else a log block.
func statements(t *testing.T, rule *Rule, list []string) iter.Seq2[arrow.RecordBatch, error] {
	log := rule.NewLog(LogOptions{})
	insert := func(text string) arrow.RecordBatch {
		var rows []row
		for _, tuple := range strings.Split(strings.Trim(strings.SplitAfterN(text, "values ", 2)[1], "()"), "),(") {
			f := strings.Split(tuple, ",")
			r := row{key: strings.Trim(f[0], "'"), v: strings.Trim(f[2], "'")}
			if n := 0; f[1] != "null" {
				_, _ = fmt.Sscan(f[1], &n)
				r.ts = n
			}
			rows = append(rows, r)
		}
		return batchOf(t, rule, rows...)
	}
	for _, s := range list[1:] {
		var err error
		switch {
		case strings.HasPrefix(s, "insert"):
			err = log.Add(insert(s), AddOptions{})
		case s == "delete from T where id='a'":
			err = log.AddDeletes(keyArray("a"), []Value{IntOrdering(0)})
		case s == "update T set ts=cast(null as bigint), v='upd' where id='a'":
			err = log.Add(batchOf(t, rule, row{"a", nil, "upd"}), AddOptions{})
		default:
			t.Fatalf("unknown statement %s", s)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return log.Over(t.Context(), once(insert(list[0])))
}

// Fixture mor_duplicates: two base rows of one key, an upsert and a delete in the log. Spark with 0.15.0 applies each to the
// first twin in file order, 1.0.2 and 1.2.0 to every twin.
func TestTwins(t *testing.T) {
	for version, want := range map[int]string{6: "[a a3,twin b b twin]", 8: "[a a3 a3]", 9: "[a a3 a3]"} {
		mode := Options{TableVersion: version, OrderingFields: []string{"ts"}, Schema: orders(t)}
		if version == 8 {
			mode.MergeMode = EventTime
		}
		rule := compile(t, mode)
		for _, budget := range []int64{0, 1} {
			log := rule.NewLog(LogOptions{Budget: budget})
			if err := log.Add(batchOf(t, rule, row{"1", 30, "a3"}), AddOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := log.AddDeletes(keyArray("2"), nil); err != nil {
				t.Fatal(err)
			}
			base := batchOf(t, rule, row{"1", 10, "a"}, row{"1", 11, "a twin"}, row{"2", 10, "b"}, row{"2", 10, "b twin"}, row{"3", 1, "c"})
			got := texts(t, log.Over(t.Context(), once(base)))
			expect := map[int][]string{
				6: {kv("1", 11, "a twin"), kv("1", 30, "a3"), kv("2", 10, "b twin"), kv("3", 1, "c")},
				8: {kv("1", 30, "a3"), kv("1", 30, "a3"), kv("3", 1, "c")},
				9: {kv("1", 30, "a3"), kv("1", 30, "a3"), kv("3", 1, "c")},
			}[version]
			if !slices.Equal(got, expect) {
				t.Errorf("version %d, budget %d: %s, want %s (%s)", version, budget, got, expect, want)
			}
		}
	}
}

func kv(key string, ts int, v string) string {
	return jsonText(map[string]any{"_hoodie_record_key": key, "ts": ts, "v": v})
}

// history is a random sequence of log blocks over a random base.
type history struct {
	base   []row
	blocks []block
}

type block struct {
	rows    []row
	columns []string // partial
	deletes []string
	orders  []Value
}

func randomHistory(rnd *rand.Rand, partial bool) history {
	var h history
	keys := 1 + rnd.IntN(60)
	key := func() string { return fmt.Sprintf("k%03d", rnd.IntN(keys)) }
	text := func() any {
		if rnd.IntN(4) == 0 {
			return nil
		}
		return []string{"x", "D", "__debezium_unavailable_value", strings.Repeat("y", rnd.IntN(40))}[rnd.IntN(4)]
	}
	ts := func() any {
		if rnd.IntN(12) == 0 {
			return nil
		}
		return rnd.IntN(6) - 1
	}
	for range rnd.IntN(120) {
		h.base = append(h.base, row{key(), ts(), text()})
	}
	for range rnd.IntN(12) {
		var b block
		if rnd.IntN(3) == 0 {
			for range 1 + rnd.IntN(10) {
				b.deletes = append(b.deletes, key())
				b.orders = append(b.orders, []Value{NoOrdering(), IntOrdering(0), LongOrdering(int64(rnd.IntN(6) - 1)), IntOrdering(3)}[rnd.IntN(4)])
			}
		} else {
			for range 1 + rnd.IntN(40) {
				b.rows = append(b.rows, row{key(), ts(), text()})
			}
			if partial && rnd.IntN(2) == 0 {
				if b.columns = []string{"ts"}; rnd.IntN(2) == 0 {
					b.columns = []string{"ts", "v"}
				}
				if len(b.columns) == 1 {
					for i := range b.rows {
						b.rows[i].v = nil
					}
				}
			}
		}
		h.blocks = append(h.blocks, b)
	}
	return h
}

// model merges row by row with the same rule: no index, no runs, no chunks, no files.
func (h history) model(t *testing.T, r *Rule) []string {
	entries, order := map[string]*Version{}, []string{}
	meet := func(key string, v *Version) {
		old, ok := entries[key]
		if !ok {
			order = append(order, key)
		}
		merged, err := r.Combine(Scan, memory.DefaultAllocator, old, v)
		if err != nil {
			t.Fatal(err)
		}
		entries[key] = merged
	}
	for _, b := range h.blocks {
		for _, x := range b.rows {
			meet(x.key, &Version{Row: batchOf(t, r, x), Columns: b.columns})
		}
		for i, k := range b.deletes {
			meet(k, &Version{Ordering: b.orders[i]})
		}
	}
	var out []string
	matched := map[string]bool{}
	keep := func(older, newer *Version) {
		v, err := r.Combine(Base, memory.DefaultAllocator, older, newer)
		if err != nil {
			t.Fatal(err)
		}
		if v != nil {
			out = append(out, jsonText(rowJSON(v.Row, 0)))
		}
	}
	for _, x := range h.base {
		v, ok := entries[x.key]
		if !ok || matched[x.key] && !r.everyTwin {
			out = append(out, jsonText(rowJSON(batchOf(t, r, x), 0)))
			continue
		}
		matched[x.key] = true
		keep(&Version{Row: batchOf(t, r, x)}, v)
	}
	for _, k := range order {
		if !matched[k] {
			keep(nil, entries[k])
		}
	}
	slices.Sort(out)
	return out
}

// run merges the history through a Log. Chunks cuts blocks and base in batches of at most that many rows.
func (h history) run(t *testing.T, r *Rule, o LogOptions, chunks int) []string {
	log := r.NewLog(o)
	defer log.Close()
	cut := func(rows []row) (out []arrow.RecordBatch) {
		for len(rows) > 0 {
			n := min(chunks, len(rows))
			out = append(out, batchOf(t, r, rows[:n]...))
			rows = rows[n:]
		}
		return out
	}
	for _, b := range h.blocks {
		for _, batch := range cut(b.rows) {
			if err := log.Add(batch, AddOptions{Columns: b.columns}); err != nil {
				t.Fatal(err)
			}
			batch.Release()
		}
		if len(b.deletes) > 0 {
			if err := log.AddDeletes(keyArray(b.deletes...), b.orders); err != nil {
				t.Fatal(err)
			}
		}
	}
	return texts(t, log.Over(t.Context(), once(cut(h.base)...)))
}

// Any budget, any cut in batches, and the row-by-row model give the same rows, for every family of rules.
func TestHistoriesMergeTheSameEveryWay(t *testing.T) {
	table := orders(t)
	rules := map[string]Options{
		"6 latest":         {TableVersion: 6, PayloadClass: PayloadLatest},
		"6 default":        {TableVersion: 6, PayloadClass: PayloadDefault},
		"6 marker":         {TableVersion: 6, PayloadClass: PayloadDefault, Props: map[string]string{propDeleteField: "v", propDeleteMark: "D"}},
		"6 partial":        {TableVersion: 6, PayloadClass: PayloadPartial},
		"6 non-defaults":   {TableVersion: 6, PayloadClass: PayloadNonDefaults},
		"8 event":          {TableVersion: 8, MergeMode: EventTime},
		"8 partial":        {TableVersion: 8, MergeMode: Custom, PayloadClass: PayloadPartial},
		"9 event":          {TableVersion: 9, MergeMode: EventTime},
		"9 commit":         {TableVersion: 9, MergeMode: CommitTime},
		"9 no ordering":    {TableVersion: 9, MergeMode: EventTime},
		"9 ignore":         {TableVersion: 9, MergeMode: EventTime, PartialUpdateMode: IgnoreDefaults},
		"9 unavailable":    {TableVersion: 9, MergeMode: CommitTime, PartialUpdateMode: FillUnavailable, Props: map[string]string{propPrefix + propUnavailable: toast}},
		"9 marker":         {TableVersion: 9, MergeMode: EventTime, Props: map[string]string{propDeleteField: "v", propDeleteMark: "D"}},
		"9 custom reverse": {TableVersion: 9, MergeMode: Custom, PayloadClass: PayloadReverse},
	}
	dir := t.TempDir()
	spilled := 0
	for name, o := range rules {
		o.Schema = table
		if name != "9 no ordering" {
			o.OrderingFields = []string{"ts"}
		}
		r := compile(t, o)
		_, modes := r.engine.(*modeEngine)
		for seed := range uint64(6) {
			rnd := rand.New(rand.NewPCG(seed, 7))
			h := randomHistory(rnd, modes && seed%2 == 1)
			want := h.model(t, r)
			for _, way := range []struct {
				budget int64
				chunks int
				rows   int
			}{{1 << 30, 1000, 0}, {1 << 30, 3, 2}, {1, 1000, 5}, {40_000, 7, 1}, {90_000, 50, 0}} {
				mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
				got := h.run(t, r, LogOptions{Alloc: mem, Budget: way.budget, SpillDir: dir, BatchRows: way.rows}, way.chunks)
				mem.AssertSize(t, 0)
				if !slices.Equal(got, want) {
					t.Fatalf("%s, seed %d, budget %d, chunks of %d:\n got %s\nwant %s", name, seed, way.budget, way.chunks, got, want)
				}
				spilled++
			}
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

// Keys whose 64-bit hashes are equal stay apart: every entry is found by its own key, and no other key finds one.
func TestEqualHashesStayApart(t *testing.T) {
	r := compile(t, Options{TableVersion: 9, MergeMode: CommitTime, Schema: orders(t)})
	st := newState(r, memory.DefaultAllocator, Scan)
	defer st.release()
	c, err := r.layout.newChunk(batchOf(t, r, row{"a", 1, "x"}, row{"b", 2, "y"}, row{"c", 3, "z"}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.add(c); err != nil {
		t.Fatal(err)
	}
	const same = 42
	for i := range st.entries {
		st.entries[i].hash = same
	}
	st.grow(len(st.slots))
	for i, key := range []string{"a", "b", "c"} {
		if got := st.find(same, []byte(key)); int(got) != i {
			t.Errorf("key %s is entry %d", key, got)
		}
	}
	if got := st.find(same, []byte("d")); got != -1 {
		t.Errorf("a key that is not there is entry %d", got)
	}
	base, err := r.layout.newChunk(batchOf(t, r, row{"d", 1, "stays"}), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer base.release()
	f := newFilter(8)
	hash := base.keys.hash(nil, 1)[0]
	f.add(hash)
	st.entries[1].hash = hash // as if d and b had one hash
	st.grow(len(st.slots))
	if met := st.meetings(base, f); len(met) != 0 {
		t.Errorf("key d met %v", met)
	}
}
