package logfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/avro"

	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/mem"
)

const pairSchema = `{"type":"record","name":"pair","fields":[{"name":"id","type":"long"},{"name":"name","type":["null","string"],"default":null}]}`

// pair is a row of the cases: (1,a).
type pair struct {
	ID   int64  `avro:"id"`
	Name string `avro:"name"`
}

// data makes an Avro block of an instant.
func data(t testing.TB, instant string, rows ...pair) []byte {
	return block(t, AvroData, Header{InstantTime: instant, Schema: pairSchema}, avroContent(t, rows...))
}

func avroContent(t testing.TB, rows ...pair) []byte {
	t.Helper()
	s := avro.MustParse(pairSchema)
	var records [][]byte
	for _, r := range rows {
		b, err := s.Encode(&r)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, b)
	}
	return AppendAvroContent(nil, records)
}

func block(t testing.TB, kind Type, h Header, content []byte) []byte {
	t.Helper()
	b, err := AppendBlock(nil, kind, h, content)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func rollback(t testing.TB, instant, target string) []byte {
	return block(t, Command, Header{InstantTime: instant, TargetInstant: target, Command: "0"}, nil)
}

// slice stores log files under their names and scans them in order.
func slice(t testing.TB, o ScanOptions, files ...[]byte) ([]Ref, Stats, error) {
	store := mem.New(t.Name())
	var names []string
	for i, f := range files {
		name := fmt.Sprintf(".f-0_001.log.%d_0-1-0", i+1)
		putInto(t, store, name, f)
		names = append(names, name)
	}
	return Scan(t.Context(), store, names, o)
}

// show gives the surviving blocks as "instant:name,name instant:…".
func show(t testing.TB, refs []Ref) string {
	t.Helper()
	var out []string
	for _, r := range refs {
		var rows []string
		for batch, err := range r.Records(t.Context(), RecordOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			for i := range int(batch.NumRows()) {
				rows = append(rows, batch.Column(1).ValueStr(i))
			}
			batch.Release()
		}
		for d, err := range r.Deletes(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, "-"+d.Key)
		}
		out = append(out, r.Header.InstantTime+":"+strings.Join(rows, ","))
	}
	return strings.Join(out, " ")
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func committed(instants ...string) func(string) bool {
	return func(t string) bool { return slices.Contains(instants, t) }
}

// C061: the good block behind a damaged one is read; text that looks like a block's start does not confuse the reader.
func TestC061DamagedBlockInTheMiddle(t *testing.T) {
	b1 := data(t, "2", pair{1, "b1"}, pair{4, "x#HUDI#y"})
	b2 := data(t, "3", pair{2, "b2"}, pair{5, "#HUDI#"})
	b3 := data(t, "4", pair{3, "b3"})
	for cut := len(magic) - 1; cut < len(b2); cut++ {
		refs, stats, err := slice(t, ScanOptions{}, join(b1, b2[:cut], b3))
		if err != nil {
			t.Fatalf("cut to %d: %v", cut, err)
		}
		if got := show(t, refs); got != "2:b1,x#HUDI#y 4:b3" || stats.Corrupt < 1 || stats.Damage[0].Offset != int64(len(b1)) {
			t.Fatalf("cut to %d: %s, %+v", cut, got, stats)
		}
	}
}

// A tail that is cut anywhere leaves the blocks before it; less than a magic is no block at all.
func TestTornTail(t *testing.T) {
	b1, b2 := data(t, "2", pair{1, "b1"}), data(t, "3", pair{2, "b2"})
	for cut := range len(b2) {
		refs, stats, err := slice(t, ScanOptions{}, join(b1, b2[:cut]))
		if err != nil {
			t.Fatal(err)
		}
		if got := show(t, refs); got != "2:b1" || stats.Corrupt != min(cut/len(magic), 1) {
			t.Errorf("cut to %d: %s, %d corrupt", cut, got, stats.Corrupt)
		}
	}
}

// C063: a block that is too new or not committed is passed over, and what follows is read.
func TestC063NewerBlockDoesNotStopTheScan(t *testing.T) {
	files := [][]byte{data(t, "4", pair{1, "fromA"}), data(t, "2", pair{1, "fromB"})}
	refs, stats, err := slice(t, ScanOptions{Committed: committed("1", "2"), Latest: "5"}, files...)
	if err != nil {
		t.Fatal(err)
	}
	if got := show(t, refs); got != "2:fromB" || stats.Uncommitted != 1 {
		t.Errorf("%s, %+v", got, stats)
	}
	del := block(t, Delete, Header{InstantTime: "4"}, AppendDeleteContent(nil, []DeletedKey{{Key: "1"}}))
	refs, stats, err = slice(t, ScanOptions{Latest: "2"}, data(t, "2", pair{1, "at2"}), data(t, "3", pair{1, "at3"}), del)
	if err != nil {
		t.Fatal(err)
	}
	if got := show(t, refs); got != "2:at2" || stats.Newer != 2 {
		t.Errorf("as of 2: %s, %+v", got, stats)
	}
}

// C065: the .cdc file beside a data log belongs to change-capture reads alone.
func TestC065ChangeCaptureLog(t *testing.T) {
	store := mem.New(t.Name())
	log, cdc := ".F1_1.log.1_1-1-1", ".F1_1.log.1_1-1-1.cdc"
	putInto(t, store, log, data(t, "2", pair{1, "a2"}))
	putInto(t, store, cdc, block(t, CDCData, Header{InstantTime: "2", Schema: pairSchema}, avroContent(t, pair{1, "change"})))
	for want, o := range map[string]ScanOptions{"2:a2": {}, "2:change": {CDC: true}} {
		refs, _, err := Scan(t.Context(), store, []string{log, cdc}, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := show(t, refs); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// C067: what is unknown is refused with file and offset, never passed over.
func TestC067UnknownBlocksAreRefused(t *testing.T) {
	good := data(t, "2", pair{1, "a2"})
	alter := func(offset int, to byte) []byte {
		b := bytes.Clone(good)
		b[offset] = to
		return b
	}
	for name, bad := range map[string][]byte{
		"block type 99":      alter(21, 99),
		"log format version": alter(17, 2),
		"header key":         alter(29, 77), // of the first header entry
		"block type 2":       alter(21, 2),
	} {
		_, _, err := slice(t, ScanOptions{}, join(good, bad))
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("offset %d", len(good))) || !strings.Contains(err.Error(), ".f-0_001.log.1_0-1-0") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, bad := range map[string][]byte{
		"no instant":  block(t, AvroData, Header{Schema: pairSchema}, avroContent(t)),
		"command":     block(t, Command, Header{InstantTime: "3", Command: "1", TargetInstant: "2"}, nil),
		"no target":   block(t, Command, Header{InstantTime: "3", Command: "0"}, nil),
		"no block":    []byte("something else"),
		"bad attempt": block(t, AvroData, Header{InstantTime: "3", Schema: pairSchema, BlockID: "x"}, avroContent(t)),
	} {
		if _, _, err := slice(t, ScanOptions{}, bad); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// A block whose lengths agree but that rubbish follows would be dropped by Java. Its rows are missing there without a word.
func TestRubbishBehindAGoodBlock(t *testing.T) {
	b1, b2 := data(t, "2", pair{1, "b1"}), data(t, "3", pair{2, "b2"})
	file := join(b1, []byte("#HU"), b2) // the next append was cut inside its magic
	_, _, err := slice(t, ScanOptions{}, file)
	var condemned *CondemnedError
	if !errors.As(err, &condemned) || condemned.Instant != "2" || condemned.Offset != 0 {
		t.Fatalf("got %v", err)
	}
	for _, o := range []ScanOptions{{DropCondemned: true}, {Committed: committed("3")}} {
		refs, stats, err := slice(t, o, file)
		if err != nil {
			t.Fatal(err)
		}
		if got := show(t, refs); got != "3:b2" || stats.Corrupt != 1 {
			t.Errorf("%s, %+v", got, stats)
		}
	}
}

func TestRollback(t *testing.T) {
	refs, stats, err := slice(t, ScanOptions{},
		join(data(t, "1", pair{1, "a"}), data(t, "2", pair{1, "bad"}), data(t, "3", pair{2, "c"})),
		join(data(t, "2", pair{1, "bad too"}), rollback(t, "4", "2"), rollback(t, "4", "9")),
		data(t, "2", pair{1, "again"}))
	if err != nil {
		t.Fatal(err)
	}
	if got := show(t, refs); got != "1:a 3:c 2:again" || stats.RolledBack != 2 || stats.Rollbacks != 2 {
		t.Errorf("%s, %+v", got, stats)
	}
	// A rollback counts for queries of any time.
	refs, _, err = slice(t, ScanOptions{Latest: "3"}, join(data(t, "1", pair{1, "a"}), data(t, "2", pair{1, "bad"}), rollback(t, "4", "2")))
	if err != nil {
		t.Fatal(err)
	}
	if got := show(t, refs); got != "1:a" {
		t.Errorf("as of 3: %s", got)
	}
}

func TestRepeatedAttempts(t *testing.T) {
	attempt := func(instant, id, name string) []byte {
		return block(t, AvroData, Header{InstantTime: instant, Schema: pairSchema, BlockID: id}, avroContent(t, pair{1, name}))
	}
	refs, stats, err := slice(t, ScanOptions{}, join(
		attempt("1", "0,0", "one"),
		attempt("2", "0,0", "half"), attempt("2", "1,0", "whole"), attempt("2", "1,1", "whole"), // the first attempt died
		attempt("3", "0,0", "first"), attempt("3", "1,0", "second"), // equals: the later one
		data(t, "4", pair{1, "no id"})))
	if err != nil {
		t.Fatal(err)
	}
	if got := show(t, refs); got != "1:one 2:whole 2:whole 3:second 4:no id" || stats.Duplicate != 2 {
		t.Errorf("%s, %+v", got, stats)
	}
}

func TestLogCompaction(t *testing.T) {
	compacted := func(instant, sources, name string) []byte {
		return block(t, AvroData, Header{InstantTime: instant, Schema: pairSchema, CompactedTimes: sources}, avroContent(t, pair{1, name}))
	}
	from := func(begin string) func(string) bool { return func(t string) bool { return t > begin } }
	d := func(instant string) []byte { return data(t, instant, pair{1, "d" + instant}) }
	for name, c := range map[string]struct {
		o    ScanOptions
		file []byte
		want string
	}{
		"in the place of the newest source": {file: join(d("1"), d("2"), d("4"), compacted("3", "2,1", "c")), want: "3:c 4:d4"},
		"two levels, oldest first":          {file: join(d("1"), d("2"), compacted("3", "1,2", "c"), d("4"), compacted("5", "3,4", "cc"), d("6")), want: "5:cc 6:d6"},
		"data and deletes":                  {file: join(d("1"), compacted("2", "1", "c"), block(t, Delete, Header{InstantTime: "2", CompactedTimes: "1"}, AppendDeleteContent(nil, []DeletedKey{{Key: "k"}}))), want: "2:c 2:-k"},
		"not committed: sources stay":       {o: ScanOptions{Committed: committed("1", "2")}, file: join(d("1"), d("2"), compacted("3", "1,2", "c")), want: "1:d1 2:d2"},
		"as of before it":                   {o: ScanOptions{Latest: "2"}, file: join(d("1"), d("2"), compacted("3", "1,2", "c")), want: "1:d1 2:d2"},
		"rolled back":                       {file: join(d("1"), compacted("3", "1", "c"), rollback(t, "4", "3"), d("5")), want: "1:d1 5:d5"},
		"sources are gone":                  {file: join(compacted("3", "1,2", "c"), d("4")), want: "3:c 4:d4"},
		"range with one source":             {o: ScanOptions{InRange: from("1")}, file: join(d("1"), d("2"), compacted("3", "1,2", "c")), want: "3:c"},
		"range behind all sources":          {o: ScanOptions{InRange: from("2")}, file: join(d("1"), d("2"), compacted("3", "1,2", "c"), d("4")), want: "4:d4"},
	} {
		refs, _, err := slice(t, c.o, c.file)
		if err != nil {
			t.Fatal(name, err)
		}
		if got := show(t, refs); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if _, _, err := slice(t, ScanOptions{}, join(compacted("1", "2", "a"), compacted("2", "1", "b"))); !errors.Is(err, ErrFormat) {
		t.Errorf("a circle: %v", err)
	}
}

func TestRecordsTakeTheTablesShape(t *testing.T) {
	refs, _, err := slice(t, ScanOptions{}, data(t, "1", pair{1, "a"}, pair{2, "b"}, pair{3, "c"}))
	if err != nil {
		t.Fatal(err)
	}
	table, err := schema.ParseString(`{"type":"record","name":"pair","fields":[{"name":"added","type":"string","default":"new"},{"name":"id","type":"double"},{"name":"gone","type":["null","int"],"default":null},{"name":"name","type":["null","string"],"default":null}]}`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := rowsOf(t, refs[0], RecordOptions{Reader: table, Columns: []string{"id", "added", "gone"}, BatchRows: 2})
	if err != nil {
		t.Fatal(err)
	}
	if want := "[map[added:new gone:<nil> id:1] map[added:new gone:<nil> id:2] map[added:new gone:<nil> id:3]]"; fmt.Sprint(got) != want {
		t.Errorf("%v", got)
	}
	n := int64(0)
	for batch, err := range refs[0].Records(t.Context(), RecordOptions{Reader: table, Columns: []string{}}) {
		if err != nil {
			t.Fatal(err)
		}
		n += batch.NumRows()
		batch.Release()
	}
	if n != 3 {
		t.Errorf("%d rows without columns", n)
	}
}

// countingStore counts the requests that a remote store would see.
type countingStore struct {
	storage.Store
	reads, bytes int
}

func (s *countingStore) Open(ctx context.Context, name string) (storage.Object, error) {
	obj, err := s.Store.Open(ctx, name)
	return countingObject{obj, s}, err
}

type countingObject struct {
	storage.Object
	s *countingStore
}

func (o countingObject) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	o.s.reads++
	o.s.bytes += len(p)
	return o.Object.ReadAt(ctx, p, off)
}

// Small files cost one request with their rows; in a large one a block costs one, whatever its size.
func TestRequests(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 64<<10) // 1 MiB
	big := join(data(t, "1", pair{1, text}), data(t, "2", pair{2, text}), data(t, "3", pair{3, text}), data(t, "4", pair{4, text}), data(t, "5", pair{5, text}))
	for name, c := range map[string]struct {
		file      []byte
		scan, all int
	}{
		"small": {file: join(data(t, "1", pair{1, "a"}), data(t, "2", pair{1, "b"})), scan: 1, all: 1},
		"large": {file: big, scan: 6, all: 11},
	} {
		store := &countingStore{Store: put(t, ".f-0_1.log.1_0-1-0", c.file)}
		refs, _, err := Scan(t.Context(), store, []string{".f-0_1.log.1_0-1-0"}, ScanOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if store.reads > c.scan || store.bytes > len(c.file) {
			t.Errorf("%s: scan took %d requests for %d bytes", name, store.reads, store.bytes)
		}
		if got := show(t, refs); strings.Count(got, ":") != len(refs) {
			t.Error(got)
		}
		if store.reads > c.all {
			t.Errorf("%s: %d requests", name, store.reads)
		}
	}
}

// Positions of 0.15.0, 1.0.2 and 1.2.0: vectors record_positions.
func TestPositions(t *testing.T) {
	var v struct {
		Positions struct {
			Rows []struct {
				Positions any    `json:"positions"`
				Count     uint64 `json:"count"`
				Header    string `json:"header"`
			} `json:"rows"`
		} `json:"record_positions"`
	}
	readVectors(t, &v)
	n := 0
	for _, r := range v.Positions.Rows {
		if r.Header == "" {
			continue
		}
		b, err := ParsePositions(r.Header)
		if err != nil {
			t.Fatal(err)
		}
		if list, ok := r.Positions.([]any); ok {
			n++
			var want []uint64
			for _, p := range list {
				want = append(want, uint64(p.(float64)))
			}
			if got := b.ToArray(); !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		}
		if r.Count > 0 && b.GetCardinality() != r.Count {
			t.Errorf("%d positions, want %d", b.GetCardinality(), r.Count)
		}
		if text, err := FormatPositions(b); err != nil || text != r.Header {
			t.Errorf("written as %s, Java writes %s (%v)", text, r.Header, err)
		}
	}
	if n < 4 {
		t.Error("vectors are missing")
	}
	for _, bad := range []string{"x", "AAAA", "////////////", "AQAAAAAAAAA=", "AQAAAAAAAAAAAAAAOjAAAAEAAAAAAAAAEAAAAAAAAA=="} {
		if _, err := ParsePositions(bad); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// The bytes of an empty delete block and of delete entries as Java wrote them: fixtures empty_delete and blocks.
func TestWrittenAsJavaWrites(t *testing.T) {
	for _, release := range releases {
		for name, f := range javaFiles(t, release) {
			if name != "empty_delete" && name != "blocks" && name != "avro_positions" && name != "cdc" {
				continue
			}
			whole := readJava(t, release, f.File)
			store := put(t, f.File, whole)
			obj, err := store.Open(t.Context(), f.File)
			if err != nil {
				t.Fatal(err)
			}
			for b, err := range Blocks(t.Context(), obj) {
				if err != nil {
					t.Fatal(err)
				}
				content := whole[b.ContentOffset : b.ContentOffset+b.ContentLength]
				if b.Type == Delete {
					var deletes []DeletedKey
					for d, err := range OpenBlock(store, f.File, b).Deletes(t.Context()) {
						if err != nil {
							t.Fatal(err)
						}
						deletes = append(deletes, d)
					}
					if got := AppendDeleteContent(nil, deletes); !bytes.Equal(got, content) {
						t.Errorf("%s %s: deletes written as %x, Java wrote %x", release, name, got, content)
					}
				}
				// Java's header order is that of a hash map, so only what does not depend on it is compared.
				got := block(t, b.Type, b.Header, content)
				want := whole[b.Offset:b.End]
				if len(got) != len(want) || !bytes.Equal(got[:22], want[:22]) || !bytes.Equal(got[len(got)-len(content)-20:], want[len(want)-len(content)-20:]) {
					t.Errorf("%s %s: block written differs", release, name)
				}
			}
		}
	}
}

// Ordering values that Java wrote in no fixture, there and back; entries that straddle the buffer.
func TestDeletesThereAndBack(t *testing.T) {
	deletes := []DeletedKey{
		{Key: "b", Ordering: Ordering{Kind: OrderingBytes, Text: "\x00\xff"}},
		{Key: "d", Ordering: Ordering{Kind: OrderingDate, Int: -5}},
		{Key: "t", Ordering: Ordering{Kind: OrderingTimeMicros, Int: 86399999999}},
		{Key: "ts", Ordering: Ordering{Kind: OrderingTimestampMicros, Int: -1}},
		{Key: "two", Ordering: Ordering{Kind: OrderingArray, Items: []Ordering{{Kind: OrderingLong, Int: 1 << 40}, {Kind: OrderingString, Text: "x"}, {Kind: OrderingNone}}}},
		{Key: "long", Partition: strings.Repeat("p", 9<<20), Ordering: Ordering{Kind: OrderingInt, Int: 7}},
		{Key: "last", Ordering: Ordering{Kind: OrderingInt}},
	}
	b := block(t, Delete, Header{InstantTime: "1"}, AppendDeleteContent(nil, deletes))
	refs, _, err := slice(t, ScanOptions{}, b)
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	for d, err := range refs[0].Deletes(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(d) != fmt.Sprint(deletes[i]) {
			t.Errorf("delete %d differs: %.200v", i, d)
		}
		i++
	}
	if i != len(deletes) {
		t.Errorf("%d deletes", i)
	}
	if !deletes[6].Ordering.IsNone() || deletes[5].Ordering.IsNone() {
		t.Error("only Int 0 is no ordering")
	}
	for version := range byte(6) {
		content := AppendDeleteContent(nil, nil)
		content[3] = version
		refs, _, err := slice(t, ScanOptions{}, block(t, Delete, Header{InstantTime: "1"}, content))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range refs[0].Deletes(t.Context()) {
			err = e
		}
		var kryo *KryoDeletesError
		if (err == nil) != (version == 3) || errors.As(err, &kryo) != (version == 2) {
			t.Errorf("version %d: %v", version, err)
		}
	}
}
