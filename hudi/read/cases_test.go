package read_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/read"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/mem"
)

// maker builds the small tables of public bug reports, step by step. All are of table version 6 unless said otherwise; rows
// have the columns id, v, note and ts, of which the cases look at id and note.
type maker struct {
	t     *testing.T
	store storage.Store
}

func newTable(t *testing.T, props string) *maker {
	t.Helper()
	m := &maker{t, mem.New("case")}
	m.put(".hoodie/hoodie.properties", []byte("hoodie.table.name=t\nhoodie.table.version=6\nhoodie.timeline.layout.version=1\nhoodie.table.recordkey.fields=id\n"+props))
	m.put(".hoodie_partition_metadata", []byte("commitTime=1\npartitionDepth=0\n"))
	return m
}

const mor, cow = "hoodie.table.type=MERGE_ON_READ\n", "hoodie.table.type=COPY_ON_WRITE\n"

func (m *maker) put(name string, body []byte) {
	m.t.Helper()
	if _, err := m.store.Put(m.t.Context(), name, bytes.NewReader(body), storage.PutOptions{}); err != nil {
		m.t.Fatal(err)
	}
}

// done completes an instant that wrote the given files.
func (m *maker) done(instant, action string, files ...string) {
	m.t.Helper()
	type stat struct {
		FileID string `json:"fileId"`
		Path   string `json:"path"`
	}
	stats := map[string][]stat{}
	for _, f := range files {
		dir, name := "", f
		if i := strings.LastIndexByte(f, '/'); i >= 0 {
			dir, name = f[:i], f[i+1:]
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(name, "."), "_")
		stats[dir] = append(stats[dir], stat{id, f})
	}
	body, err := json.Marshal(map[string]any{"partitionToWriteStats": stats, "operationType": "UPSERT", "extraMetadata": map[string]string{"schema": tableSchema}})
	if err != nil {
		m.t.Fatal(err)
	}
	m.put(".hoodie/"+instant+"."+action, body)
}

func pairs(instant string, in ...string) []row {
	var out []row
	for _, p := range in {
		id, note, _ := strings.Cut(p, "=")
		out = append(out, row{id: id, note: note, commit: instant})
	}
	return out
}

// base writes a base file of "id=note" rows and gives its name.
func (m *maker) base(group, instant string, in ...string) string {
	m.t.Helper()
	name := fmt.Sprintf("%s_0-1-0_%s.parquet", group, instant)
	m.put(name, parquetFile(m.t, pairs(instant, in...), 100))
	return name
}

// log writes a log file of one block on the slice of a base instant.
func (m *maker) log(group, slice string, n int, instant string, in ...string) string {
	m.t.Helper()
	dir, id := "", group
	if i := strings.LastIndexByte(group, '/'); i >= 0 {
		dir, id = group[:i+1], group[i+1:]
	}
	w := write{instant: instant}
	for _, r := range pairs(instant, in...) {
		if r.note == "" {
			w.deletes = append(w.deletes, r)
		} else {
			w.rows = append(w.rows, r)
		}
	}
	name := fmt.Sprintf("%s.%s_%s.log.%d_0-%d-0", dir, id, slice, n, n)
	m.put(name, logFile(m.t, w, layout{blocks: 1}))
	return name
}

// rows answers a query as "id=note", sorted.
func (m *maker) rows(q read.Query) ([]string, error) {
	m.t.Helper()
	src, err := read.Load(m.t.Context(), m.store, read.Options{})
	if err != nil {
		return nil, err
	}
	plan, err := src.Plan(m.t.Context(), q)
	if err != nil {
		return nil, err
	}
	r, err := plan.Reader(read.ScanOptions{Columns: []string{"id", "note"}})
	if err != nil {
		return nil, err
	}
	out := []string{}
	for batch, err := range r.All(m.t.Context()) {
		if err != nil {
			return nil, err
		}
		for i := range int(batch.NumRows()) {
			out = append(out, batch.Column(0).ValueStr(i)+"="+batch.Column(1).ValueStr(i))
		}
		batch.Release()
	}
	slices.Sort(out)
	return out, nil
}

func (m *maker) expect(q read.Query, want ...string) {
	m.t.Helper()
	got, err := m.rows(q)
	if err != nil || !slices.Equal(got, append([]string{}, want...)) {
		m.t.Errorf("%+v: got %q, %v; want %q", q, got, err, want)
	}
}

func at(n int) string { return fmt.Sprintf("2026010100000%04d", n) }

func from(begin, end string) read.Query {
	return read.Query{Range: &read.Range{Begin: begin, End: end}}
}

func TestC057FileGroupOfLogsOnly(t *testing.T) {
	m := newTable(t, mor)
	m.done(at(1), "deltacommit", m.log("F-0", at(1), 1, at(1), "1=a", "2=b"))
	m.done(at(2), "deltacommit", m.log("F-0", at(1), 2, at(2), "1=a2"))
	m.expect(read.Query{}, "1=a2", "2=b")
	m.expect(read.Query{Mode: filegroup.ReadOptimized})
	m.expect(from("earliest", ""), "1=a2", "2=b")
}

func TestC059SnapshotWhileCompactionIsPlanned(t *testing.T) {
	m := newTable(t, mor)
	m.done(at(1), "deltacommit", m.base("F-0", at(1), "1=a", "2=b", "3=c"))
	m.done(at(2), "deltacommit", m.log("F-0", at(1), 1, at(2), "1=a2"))
	m.put(".hoodie/"+at(3)+".compaction.requested", nil)
	m.done(at(4), "deltacommit", m.log("F-0", at(3), 1, at(4), "2=b2"))
	m.expect(read.Query{}, "1=a2", "2=b2", "3=c")
	m.put(".hoodie/"+at(3)+".compaction.inflight", nil)
	m.expect(read.Query{}, "1=a2", "2=b2", "3=c")
	m.base("F-0", at(3), "1=a2", "2=b", "3=c")
	m.expect(read.Query{}, "1=a2", "2=b2", "3=c") // its file is there, the compaction is not done
	m.done(at(3), "commit", fmt.Sprintf("F-0_0-1-0_%s.parquet", at(3)))
	m.expect(read.Query{}, "1=a2", "2=b2", "3=c")
}

func TestC063BlockNewerThanTheInstant(t *testing.T) {
	m := newTable(t, mor)
	m.done(at(1), "deltacommit", m.base("F-0", at(1), "1=at1"))
	m.put(".hoodie/"+at(9)+".deltacommit.inflight", nil)
	m.log("F-0", at(1), 1, at(9), "1=running")
	m.done(at(2), "deltacommit", m.log("F-0", at(1), 2, at(2), "1=at2"))
	m.expect(read.Query{}, "1=at2")
	m.done(at(3), "deltacommit", m.log("F-0", at(1), 3, at(3), "1=at3"))
	m.done(at(4), "deltacommit", m.log("F-0", at(1), 4, at(4), "1="))
	m.expect(read.Query{AsOf: at(2)}, "1=at2")
	m.expect(read.Query{AsOf: at(3)}, "1=at3")
	m.expect(read.Query{})
}

func TestC067NeverStaleWithoutAWord(t *testing.T) {
	m := newTable(t, mor)
	m.done(at(1), "deltacommit", m.base("F-0", at(1), "1=a"))
	name := m.log("F-0", at(1), 1, at(2), "1=a2")
	m.done(at(2), "deltacommit", name)
	m.expect(read.Query{}, "1=a2")
	body, err := storage.ReadAll(t.Context(), m.store, name, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	body[21] = 99 // the block's type: behind magic, size and format version
	m.put(name, body)
	if got, err := m.rows(read.Query{}); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("a block of an unknown type: %q, %v", got, err)
	}
	m.expect(read.Query{Mode: filegroup.ReadOptimized}, "1=a")
}

func TestC069StartIsExclusiveEndIsInclusive(t *testing.T) {
	m := newTable(t, cow)
	for n := 1; n <= 3; n++ {
		m.done(at(n), "commit", m.base(fmt.Sprintf("F%d-0", n), at(n), fmt.Sprintf("%d=c", n)))
	}
	m.expect(from(at(1), ""), "2=c", "3=c")
	m.expect(from(at(1), at(2)), "2=c")
	m.expect(from(at(2), at(2)))
	m.expect(from("0", ""), "1=c", "2=c", "3=c")
	m.expect(from(at(9), ""))
	if _, err := m.rows(from(at(3), at(1))); err == nil {
		t.Error("a range that begins after its end is an error")
	}
}

func TestC071FilesInTheRangeWereCleaned(t *testing.T) {
	m := newTable(t, cow)
	all := []string{"1=c1", "2=c1", "3=c1"}
	for n, change := range []string{"", "2=c2", "3=c3", "1=c4", "1=c5"} {
		var rows []row
		for i, old := range all {
			if change != "" && change[0] == old[0] {
				all[i] = change
			}
			rows = append(rows, pairs(at(int(all[i][3]-'0')), all[i])...)
		}
		name := fmt.Sprintf("F-0_0-1-0_%s.parquet", at(n+1))
		m.put(name, parquetFile(t, rows, 100))
		m.done(at(n+1), "commit", name)
	}
	for n := 1; n <= 4; n++ { // the cleaner keeps one version
		if err := m.store.Delete(t.Context(), fmt.Sprintf("F-0_0-1-0_%s.parquet", at(n))); err != nil {
			t.Fatal(err)
		}
	}
	_, err := m.rows(from(at(1), at(3)))
	var next interface{ NextStep() string }
	if !errors.Is(err, read.ErrFilesGone) || !strings.Contains(err.Error(), at(3)) || !errors.As(err, &next) ||
		!strings.Contains(next.NextStep(), "fallback.fulltablescan") {
		t.Errorf("without the fallback: %v", err)
	}
	m.expect(read.Query{Range: &read.Range{Begin: at(1), End: at(3), FullScan: read.FullScanAllowed}}, "2=c2", "3=c3")
}

func TestC073RangeWithAnUnfinishedCompaction(t *testing.T) {
	m := newTable(t, mor)
	m.done(at(1), "deltacommit", m.base("F-0", at(1), "1=a", "2=b"))
	m.done(at(2), "deltacommit", m.log("F-0", at(1), 1, at(2), "1=a2"))
	m.put(".hoodie/"+at(3)+".compaction.requested", nil)
	m.done(at(4), "deltacommit", m.log("F-0", at(3), 1, at(4), "2=b2"))
	m.expect(from(at(1), at(4)), "1=a2", "2=b2")
	m.expect(read.Query{Mode: filegroup.ReadOptimized, Range: &read.Range{Begin: at(1), End: at(4)}})
}

func TestC085CompletedCommitWithoutContent(t *testing.T) {
	m := newTable(t, cow)
	m.done(at(1), "commit", m.base("F-0", at(1), "1=a", "2=b"))
	m.base("G-0", at(2), "3=c")
	m.put(".hoodie/"+at(2)+".commit", nil)
	if _, err := m.rows(read.Query{}); err == nil || !strings.Contains(err.Error(), at(2)+".commit") {
		t.Errorf("a commit that stays empty: %v", err)
	}
	go func() {
		time.Sleep(500 * time.Millisecond)
		m.done(at(2), "commit", fmt.Sprintf("G-0_0-1-0_%s.parquet", at(2)))
	}()
	m.expect(read.Query{}, "1=a", "2=b", "3=c")
}

func TestC087InstantsOfSecondsAndMilliseconds(t *testing.T) {
	m := newTable(t, cow)
	for n, instant := range []string{"20220920044732", "20220920044733", "20220920044733123", "20220920044734000"} {
		m.done(instant, "commit", m.base(fmt.Sprintf("F%d-0", n), instant, fmt.Sprintf("%d=x", n+1)))
	}
	m.expect(read.Query{AsOf: "20220920044733"}, "1=x", "2=x")
	m.expect(read.Query{AsOf: "2022-09-20 04:47:33"}, "1=x", "2=x", "3=x")
	m.expect(read.Query{AsOf: "20220920044732"}, "1=x")
	m.expect(read.Query{AsOf: "2022-09-20"})
	if _, err := m.rows(read.Query{AsOf: "202209200447"}); err == nil {
		t.Error("an instant of 12 digits is an error")
	}
}

func TestC089ForgottenInflightCommit(t *testing.T) {
	m := newTable(t, cow)
	m.put(".hoodie/20190928011208.inflight", nil)
	m.base("D-0", "20190928011208", "666=dead")
	m.done("20191001132843", "commit", m.base("F-0", "20191001132843", "1=a"))
	m.done("20191001132911", "commit", m.base("G-0", "20191001132911", "2=b"))
	m.expect(read.Query{}, "1=a", "2=b")
}

func TestC093PartitionFolderWithoutItsMarker(t *testing.T) {
	m := newTable(t, cow+"hoodie.table.partition.fields=id\nhoodie.datasource.write.hive_style_partitioning=true\n")
	if err := m.store.Delete(t.Context(), ".hoodie_partition_metadata"); err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, day := range []string{"20230218", "20230219", "20230220"} {
		files = append(files, m.base("id="+day+"/F"+day+"-0", at(1), day+"=x"))
		if day != "20230219" {
			m.put("id="+day+"/.hoodie_partition_metadata", nil)
		}
	}
	m.put("id=other/X-0_0-1-0_"+at(1)+".parquet", parquetFile(t, pairs(at(1), "other=left behind"), 10)) // no commit names it
	m.done(at(1), "commit", files...)
	m.expect(read.Query{}, "20230218=x", "20230219=x", "20230220=x")
}
