package timeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/local"
	"github.com/sluicelake/sluice/storage/mem"
)

var ctx = context.Background()

// table is a real table, open for reading.
type table struct {
	name   string
	store  storage.Store
	cfg    *config.Table
	tl     Timeline
	expect fixture.Expect
}

func openDir(t testing.TB, dir, name string) table {
	t.Helper()
	store, err := local.New(dir, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return openStore(t, store, name)
}

func openStore(t testing.TB, store storage.Store, name string) table {
	t.Helper()
	cfg, err := config.Load(ctx, store)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	tl, err := Load(ctx, store, cfg)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return table{name: name, store: store, cfg: cfg, tl: tl}
}

func openSpark(t testing.TB, name string) table {
	t.Helper()
	dir, expect := fixture.Spark(t, name)
	got := openDir(t, dir, name)
	got.expect = expect
	return got
}

// metadata opens the table's metadata table, where it has one.
func (tb table) metadata(t testing.TB) (table, bool) {
	t.Helper()
	if len(tb.cfg.MetadataPartitions) == 0 {
		return table{}, false
	}
	sub, err := storage.Sub(tb.store, ".hoodie/metadata")
	if err != nil {
		t.Fatal(err)
	}
	return openStore(t, sub, tb.name+" metadata"), true
}

// every runs a test over all tables that Apache Hudi 0.9.0 to 1.2.0 wrote, bootstrapped ones left out: those are refused.
func every(t *testing.T, test func(*testing.T, table)) {
	for _, name := range fixture.SparkNames(t) {
		if !strings.HasPrefix(name, "bootstrap_") {
			t.Run(name, func(t *testing.T) { test(t, openSpark(t, name)) })
		}
	}
	for _, name := range fixture.ExporterNames(t) {
		t.Run("exporter_"+name, func(t *testing.T) {
			dir, _ := fixture.Exporter(t, name)
			test(t, openDir(t, dir, name))
		})
	}
	for _, name := range fixture.PublicNames(t) {
		t.Run(name, func(t *testing.T) {
			dir, expect := fixture.Public(t, name)
			tb := openDir(t, dir, name)
			tb.expect = expect
			test(t, tb)
		})
	}
}

// Over every table that Apache Hudi 0.9.0 to 1.2.0 wrote: the completed instants and the schema are those that Apache Hudi
// named, every body of every action decodes, and what Java wrote is written again (see writtenAgain).
func TestEveryTable(t *testing.T) {
	var r record
	every(t, func(t *testing.T, tb table) {
		sameInstants(t, tb)
		r.sameSchema(t, tb)
		r.bodies(t, tb)
		r.writtenAgain(t, tb)
		if mdt, ok := tb.metadata(t); ok {
			r.bodies(t, mdt)
			r.writtenAgain(t, mdt)
		}
	})
	r.check(t)
}

// record counts what the tables had to show, so that nothing is proved by absence.
type record struct {
	schemas  int
	bodiesOf map[string]int
	again    map[string]int
}

func (r *record) check(t *testing.T) {
	t.Log(r.schemas, "schemas", r.bodiesOf, r.again)
	if r.schemas < 200 {
		t.Errorf("only %d schemas were compared", r.schemas)
	}
	for _, key := range []string{
		"1 commit COMPLETED", "1 deltacommit COMPLETED", "1 replacecommit COMPLETED", "1 clean COMPLETED", "1 rollback COMPLETED", "1 savepoint COMPLETED", "1 restore COMPLETED",
		"1 compaction REQUESTED", "1 replacecommit REQUESTED", "1 commit INFLIGHT", "1 deltacommit INFLIGHT",
		"2 commit COMPLETED", "2 deltacommit COMPLETED", "2 replacecommit COMPLETED", "2 clean COMPLETED", "2 rollback COMPLETED", "2 savepoint COMPLETED", "2 restore COMPLETED", "2 indexing COMPLETED",
		"2 compaction REQUESTED", "2 clustering REQUESTED", "2 commit INFLIGHT", "2 deltacommit INFLIGHT",
	} {
		if r.bodiesOf[key] == 0 {
			t.Errorf("no %s among %v", key, r.bodiesOf)
		}
	}
	if r.again["same bytes"] < 2500 || r.again["same but for map order"] > r.again["same bytes"]/50 {
		t.Errorf("%v", r.again)
	}
}

func sameInstants(t *testing.T, tb table) {
	t.Helper()
	var got, want []string
	for _, i := range tb.tl.Completed().Instants() {
		line := i.Time + " " + string(i.Action)
		if tb.cfg.Layout == 2 {
			line += " " + i.Completion
		}
		got = append(got, line)
	}
	for _, i := range tb.expect.Instants {
		line := i.Instant + " " + i.Action
		if tb.cfg.Layout == 2 {
			line += " " + i.Completion
		}
		want = append(want, line)
	}
	slices.Sort(got)
	slices.Sort(want)
	if len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func (r *record) sameSchema(t *testing.T, tb table) {
	t.Helper()
	if len(tb.expect.Schema) == 0 {
		return
	}
	r.schemas++
	s, source, err := TableSchema(ctx, tb.store, tb.cfg, tb.tl, "")
	if bytes.Contains(tb.expect.Schema, []byte(`"error"`)) {
		if !errors.Is(err, ErrNoSchema) {
			t.Errorf("%v from %s, %v; Hudi: %s", s, source, err, tb.expect.Schema)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	want, err := schema.Parse(tb.expect.Schema)
	if err != nil {
		t.Fatal(err)
	}
	// Under schema-on-read Hudi shows the meta columns of the commit's schema, ours are never among the data columns.
	if want = schema.WithoutMeta(want); s.String() != want.String() {
		t.Errorf("from %s\ngot  %s\nwant %s", source, s, want)
	}
}

func (r *record) bodies(t *testing.T, tb table) {
	t.Helper()
	if r.bodiesOf == nil {
		r.bodiesOf, r.again = map[string]int{}, map[string]int{}
	}
	for _, i := range tb.tl.Instants() {
		key := fmt.Sprintf("%d %s %s", tb.cfg.Layout, i.Action, i.State)
		r.bodiesOf[key]++
		if _, err := decodeAll(tb.store, i); err != nil {
			t.Errorf("%s: %s %s: %v", tb.name, i.Time, key, err)
		}
	}
}

// writtenAgain: what Java wrote decodes and, encoded again, gives the same bytes: JSON of 0.14 and 0.15 whole, of Avro files the
// record (headers differ in documentation and sync marker). Only the order of map entries that share a bucket in a Java
// HashMap can't be known.
func (r *record) writtenAgain(t *testing.T, tb table) {
	t.Helper()
	for _, i := range tb.tl.Instants() {
		for _, name := range i.Files {
			f, _ := ParseFileName(2, lastElement(name))
			text, err := storage.ReadAll(ctx, tb.store, name, 0)
			if err != nil {
				t.Fatal(err)
			}
			if len(text) == 0 {
				continue
			}
			got, want := writtenAgain(t, name, f, text)
			switch {
			case want == nil:
				r.again["other field order"]++
			case tb.cfg.Version < 6 && text[0] == '{':
				r.again["older than 0.14"]++
			case bytes.Equal(got, want):
				r.again["same bytes"]++
			case len(got) == len(want) && sameLetters(got, want) && ties(text):
				r.again["same but for map order"]++
			default:
				t.Errorf("%s %s:\ngot  %q\nwant %q", tb.name, name, got, want)
			}
		}
	}
}

// decodeAll reads every body that an instant has.
func decodeAll(s storage.Store, i Instant) (bodies []any, err error) {
	add := func(v any, e error) {
		bodies, err = append(bodies, v), errors.Join(err, e)
	}
	if i.State == Completed {
		switch i.Action {
		case Commit, DeltaCommit, ReplaceCommit:
			add(ReadCommit(ctx, s, i))
		case Clean:
			add(ReadClean(ctx, s, i))
		case Rollback:
			add(ReadRollback(ctx, s, i))
		case Restore:
			add(ReadRestore(ctx, s, i))
		case Savepoint:
			add(ReadSavepoint(ctx, s, i))
		case Indexing:
			add(ReadIndexCommit(ctx, s, i))
		}
	}
	requested := slices.ContainsFunc(i.Files, func(f string) bool { return strings.HasSuffix(f, ".requested") })
	if !requested {
		return bodies, err
	}
	switch i.Action {
	case Clean:
		add(ReadCleanerPlan(ctx, s, i))
	case Rollback:
		add(ReadRollbackPlan(ctx, s, i))
	case Restore:
		add(ReadRestorePlan(ctx, s, i))
	case Indexing:
		add(ReadIndexPlan(ctx, s, i))
	case Compaction, LogCompaction:
		add(ReadCompactionPlan(ctx, s, i))
	case ReplaceCommit, Clustering:
		add(ReadReplacePlan(ctx, s, i))
	}
	return bodies, err
}

// What a plan says must be about the table's own files, whatever machine wrote it.
func TestPlansHoldBareNames(t *testing.T) {
	tb := openSpark(t, "cow_pending_clustering_0.15.0")
	pending, ok := tb.tl.Pending().Last()
	if !ok || pending.Action != ReplaceCommit {
		t.Fatalf("%+v", pending)
	}
	plan, err := ReadReplacePlan(ctx, tb.store, pending)
	if err != nil {
		t.Fatal(err)
	}
	slices := 0
	for _, g := range plan.Clustering.Groups {
		for _, s := range g.Slices {
			slices++
			if strings.Contains(s.BaseFile, "/") || !strings.HasPrefix(s.BaseFile, s.FileID+"_") || strings.Contains(s.Partition, "/") {
				t.Errorf("%+v", s)
			}
		}
	}
	if slices == 0 {
		t.Error("no slices")
	}
	// Written again for another place, the same plan names whole paths there.
	text, err := Encode(plan, 1, "s3://lake/t/")
	if err != nil {
		t.Fatal(err)
	}
	first := plan.Clustering.Groups[0].Slices[0]
	if want := storage.Join("s3://lake/t", storage.Join(first.Partition, first.BaseFile)); !bytes.Contains(text, []byte(want)) {
		t.Errorf("no %s in %q", want, text)
	}
	if plan.Clustering.Groups[0].Slices[0].BaseFile != first.BaseFile {
		t.Error("encoding changed the plan")
	}
}

func TestHostilePathsAreRefused(t *testing.T) {
	for name, plan := range map[string]any{
		"partition":  &RollbackPlan{Requests: []RollbackRequest{{Partition: "../../etc", Delete: []string{"a"}}}},
		"file":       &RollbackPlan{Requests: []RollbackRequest{{Partition: "p", Delete: []string{"x/.."}}}},
		"partitions": &RollbackPlan{Requests: []RollbackRequest{{Partition: "/abs", Delete: []string{"a"}}}},
	} {
		text, err := Encode(plan, 1, "")
		if err != nil {
			t.Fatal(err)
		}
		s := mem.New("t")
		put(t, s, ".hoodie/20240101000000000.rollback.requested", text)
		tl, err := Load(ctx, s, layout(1))
		if err != nil {
			t.Fatal(err)
		}
		if p, err := ReadRollbackPlan(ctx, s, tl.Instants()[0]); !errors.Is(err, storage.ErrName) {
			t.Errorf("%s: %+v %v", name, p, err)
		}
	}
	for _, commit := range []string{
		`{"partitionToWriteStats":{"p":[{"path":"../x.parquet"}]}}`, `{"partitionToWriteStats":{"..":[]}}`,
		`{"partitionToWriteStats":{"p":[{"path":"p/a","logFiles":["../../b"]}]}}`, `{"partitionToReplaceFileIds":{"a/../..":["x"]}}`,
	} {
		if _, err := DecodeCommit([]byte(commit)); !errors.Is(err, storage.ErrName) {
			t.Errorf("%s: %v", commit, err)
		}
	}
}

func layout(n int) *config.Table {
	if n == 1 {
		return &config.Table{Layout: 1, TimelinePath: ".hoodie", HistoryPath: ".hoodie/archived", ArchiveFolder: ".hoodie/archived", TimelineZone: "UTC"}
	}
	return &config.Table{Layout: 2, TimelinePath: ".hoodie/timeline", HistoryPath: ".hoodie/timeline/history", TimelineZone: "UTC"}
}

func put(t testing.TB, s storage.Store, name string, text []byte) {
	t.Helper()
	if _, err := s.Put(ctx, name, bytes.NewReader(text), storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Table format 2.2, with the names that lie about in real folders (11, traps 4 and 36).
func TestFileNames(t *testing.T) {
	const at = "20240418173550988"
	for _, c := range []struct {
		layout int
		name   string
		want   FileName
	}{
		{1, at + ".commit.requested", FileName{Time: at, Action: Commit, State: Requested}},
		{1, at + ".inflight", FileName{Time: at, Action: Commit, State: Inflight}},
		{2, at + ".inflight", FileName{Time: at, Action: Commit, State: Inflight}},
		{1, at + ".commit", FileName{Time: at, Action: Commit, State: Completed}},
		{1, "20240418173550.deltacommit", FileName{Time: "20240418173550", Action: DeltaCommit, State: Completed}},
		{1, at + "001.compaction.requested", FileName{Time: at + "001", Action: Compaction, State: Requested}},
		{2, at + "_20240418173551000.replacecommit", FileName{Time: at, Completion: "20240418173551000", Action: ReplaceCommit, State: Completed}},
		{2, at + ".clustering.inflight", FileName{Time: at, Action: Clustering, State: Inflight}},
		{2, at + ".commit", FileName{Time: at, Action: Commit, State: Completed}}, // left by an upgrade
		{1, at + ".savepoint.inflight", FileName{Time: at, Action: Savepoint, State: Inflight}},
		{1, at + ".schemacommit", FileName{Time: at, Action: SchemaCommit, State: Completed}},
	} {
		got, ok := ParseFileName(c.layout, c.name)
		if !ok || got != c.want || got.String() != c.name {
			t.Errorf("%d %s: %+v %v %s", c.layout, c.name, got, ok, got)
		}
	}
	for _, name := range []string{
		"", ".", "hoodie.properties", "." + at + ".commit.crc", "." + at + ".commit", "._" + at + ".commit", at, at + ".", at + ".commit.tmp", at + ".commit.requested.bak",
		at + ".compaction", at + ".logcompaction", at + ".clustering", at + ".unknown", at + "_.commit", "_" + at + ".commit", at + "_20240418173551000.commit.requested",
		at + "_20240418173551000.inflight", at + "x.commit", "-1.commit", strings.Repeat("1", 65) + ".commit", at + ".COMMIT", at + ".inflight.requested", "archived", "_SUCCESS", at + ".commit_$folder$",
	} {
		if got, ok := ParseFileName(2, name); ok {
			t.Errorf("%q: %+v", name, got)
		}
	}
	if got, ok := ParseFileName(1, at+"_20240418173551000.commit"); ok {
		t.Errorf("layout 1 knows no completion times: %+v", got)
	}
}

func TestStatesOfAnInstantFold(t *testing.T) {
	s := mem.New("t")
	for _, name := range []string{
		"20240101000000000.commit.requested", "20240101000000000.inflight", "20240101000000000.commit", // complete
		"20240102000000000.compaction.requested", "20240102000000000.compaction.inflight", "20240102000000000.commit", // complete, a commit now
		"20240103000000000.compaction.requested", // pending: a compaction still
		"20240104000000000.deltacommit.requested", "20240104000000000.deltacommit.inflight",
		"20240101000000000.savepoint.inflight", "20240101000000000.savepoint",
		".20240105000000000.commit.crc", "hoodie.properties", "metadata/x",
	} {
		put(t, s, ".hoodie/"+name, []byte("{}"))
	}
	tl, err := Load(ctx, s, layout(1))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range tl.Instants() {
		got = append(got, fmt.Sprintf("%s %s %s %d", i.Time[6:8], i.Action, i.State, len(i.Files)))
	}
	want := []string{"01 commit COMPLETED 3", "01 savepoint COMPLETED 2", "02 commit COMPLETED 3", "03 compaction REQUESTED 1", "04 deltacommit INFLIGHT 2"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
}

// An upgrade from 0.15 to 1.2 leaves names with the modification time of the old files; should it leave old names, their
// modification time is the completion time.
func TestLegacyFilesOfLayout2(t *testing.T) {
	s := mem.New("t")
	put(t, s, ".hoodie/timeline/20240101000000000.commit", []byte(`{"operationType":"INSERT","extraMetadata":{"schema":"x"}}`))
	tl, err := Load(ctx, s, layout(2))
	if err != nil {
		t.Fatal(err)
	}
	i := tl.Instants()[0]
	if i.State != Completed || i.Completion != FormatTime(i.Modified, time.UTC) || len(i.Completion) != 17 {
		t.Errorf("%+v", i)
	}
	if m, err := ReadCommit(ctx, s, i); err != nil || m.OperationType != "INSERT" || m.Schema() != "x" {
		t.Errorf("%+v %v", m, err)
	}
}

func TestC085EmptyCommitIsNamedAndGivenTime(t *testing.T) {
	s := mem.New("t")
	put(t, s, ".hoodie/20240101000000000.commit", nil)
	put(t, s, ".hoodie/20240102000000000.inflight", nil)
	tl, err := Load(ctx, s, layout(1))
	if err != nil {
		t.Fatal(err)
	}
	empty, pending := tl.Instants()[0], tl.Instants()[1]
	if _, err := ReadCommit(ctx, s, empty); !errors.Is(err, ErrEmptyCommit) || !strings.Contains(err.Error(), "20240101000000000.commit") {
		t.Error(err)
	}
	if m, err := ReadCommit(ctx, s, pending); err != nil || len(m.PartitionToWriteStats) != 0 {
		t.Errorf("an empty workload profile is normal: %v %v", m, err)
	}
	go func() {
		time.Sleep(300 * time.Millisecond)
		_, _ = s.Put(ctx, ".hoodie/20240101000000000.commit", strings.NewReader(`{"operationType":"UPSERT"}`), storage.PutOptions{})
	}()
	if m, err := ReadCommit(ctx, s, empty); err != nil || m.OperationType != "UPSERT" {
		t.Errorf("%+v %v", m, err)
	}
}

func TestC087SecondsAndMilliseconds(t *testing.T) {
	s := mem.New("t")
	for _, at := range []string{"20220920044732", "20220920044733", "20220920044733123", "20220920044734000"} {
		put(t, s, ".hoodie/"+at+".commit", []byte("{}"))
	}
	tl, err := Load(ctx, s, layout(1))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{
		"20220920044733": 2, "2022-09-20 04:47:33": 3, "20220920044732": 1, "2022-09-20": 0, "2022-09-20 04:47:33.123": 3, "2022-09-20 04:47:33.122": 2,
		"2022-09-20T04:47:33Z": 3, "2022-09-20T06:47:33.5+02:00": 3, "20220920044734000": 4,
	} {
		at, err := AsOf(text, time.UTC)
		if err != nil {
			t.Error(err)
			continue
		}
		seen := tl.Filter(func(i Instant) bool { return i.Time <= at }).Len()
		if seen != want {
			t.Errorf("as of %s is %s: %d instants, want %d", text, at, seen, want)
		}
	}
	for _, text := range []string{"", "2022092004473", "202209200447331", "2022-09-20 04:47", "yesterday", "2022-13-01", "2022-09-20 25:00:00", "2022/09/20"} {
		if at, err := AsOf(text, time.UTC); !errors.Is(err, ErrTime) || !strings.Contains(err.Error(), "yyyy-MM-dd") {
			t.Errorf("%q: %q %v", text, at, err)
		}
	}
}

func TestC089ForgottenInflightStaysInvisible(t *testing.T) {
	s := mem.New("t")
	for _, name := range []string{"20190928011208.inflight", "20191001132843.commit", "20191001132911.commit", "20191001132920.clean"} {
		put(t, s, ".hoodie/"+name, []byte("{}"))
	}
	tl, err := Load(ctx, s, layout(1))
	if err != nil {
		t.Fatal(err)
	}
	v := tl.Visibility()
	if v.Start() != "20191001132843" {
		t.Errorf("start %s", v.Start())
	}
	for at, want := range map[string]bool{
		"20190928011208": false, // the dead write
		"20190901000000": true,  // archived
		"20190930000000": true,  // archived although newer than the dead write
		"20191001132843": true, "20191001132911": true,
		"20191001132900": false, "20191002000000": false, // never heard of
	} {
		if v.IsCommitted(at) != want {
			t.Errorf("%s: %v", at, !want)
		}
	}
	if !v.IsPending("20190928011208") || v.IsPending("20191001132843") {
		t.Error("pending")
	}
	if v := New(1, nil).Visibility(); v.Start() != "" || v.IsCommitted("20190901000000") {
		t.Error("an empty timeline commits nothing")
	}
}

// A savepoint keeps its instant on the timeline while later ones are archived.
func TestVisibilityBesideSavepoints(t *testing.T) {
	s := mem.New("t")
	for _, name := range []string{"20240101000000000.savepoint", "20240101000000000.commit", "20240105000000000.commit"} {
		put(t, s, ".hoodie/"+name, []byte("{}"))
	}
	tl, err := Load(ctx, s, layout(1))
	if err != nil {
		t.Fatal(err)
	}
	v := tl.Visibility()
	if v.Start() != "20240105000000000" || !v.IsCommitted("20240103000000000") || !v.IsCommitted("20240101000000000") {
		t.Errorf("start %s", v.Start())
	}
}

func TestC119TimesNeverRepeatOrGoBack(t *testing.T) {
	tl := New(2, []Instant{{Time: "20990101000000000", Completion: "20991231235959998", Action: Commit, State: Completed}})
	c := NewClock(time.UTC, tl)
	first, err := c.Now()
	if err != nil || first != "20991231235959999" {
		t.Errorf("%s %v", first, err)
	}
	if second, err := c.Now(); err != nil || second != "21000101000000000" {
		t.Errorf("%s %v", second, err)
	}
	c.Observe("99991231235959999")
	if got, err := c.Now(); !errors.Is(err, ErrTime) {
		t.Errorf("%s %v", got, err)
	}
	shared, times := NewClock(time.UTC), make(chan string, 8*200)
	for range 8 {
		go func() {
			for range 200 {
				at, err := shared.Now()
				if err != nil {
					at = err.Error()
				}
				times <- at
			}
		}()
	}
	seen := map[string]bool{}
	for range 8 * 200 {
		at := <-times
		if seen[at] || len(at) != 17 {
			t.Fatal(at)
		}
		seen[at] = true
	}
}

// Vectors of org.apache.hudi.common.table.HoodieInstantTimeGenerator, run on 0.15.0, 1.0.2 and 1.2.0.
func TestInstantTimesLikeJava(t *testing.T) {
	var v struct {
		Times []struct {
			Zone, Instant string
			EpochMS       any    `json:"epoch_ms"`
			Back          string `json:"formatted_back"`
			Format        *int64 `json:"format_epoch_ms"`
			Result        string
			Fixed         string `json:"fix_compatibility"`
			Plus          string `json:"plus_1"`
		} `json:"instant_time"`
		Metadata []struct {
			Function, Instant, Result string
			Offset                    int
		} `json:"mdt_instants"`
	}
	readVectors(t, &v)
	if len(v.Times) < 60 || len(v.Metadata) != 9 {
		t.Fatalf("%d %d rows", len(v.Times), len(v.Metadata))
	}
	for _, r := range v.Times {
		zone, err := time.LoadLocation(r.Zone)
		if err != nil {
			t.Fatal(err)
		}
		if r.Format != nil {
			if got := FormatTime(time.UnixMilli(*r.Format), zone); got != r.Result {
				t.Errorf("%s %d: %s, want %s", r.Zone, *r.Format, got, r.Result)
			}
			continue
		}
		if r.Fixed != "" {
			if strings.Trim(r.Instant, "0") == "" {
				continue // no date: such an instant is never the newest
			}
			at, err := ParseTime(r.Instant, time.UTC)
			if err != nil || FormatTime(at, time.UTC) != r.Fixed {
				t.Errorf("%s: %v %v, want %s", r.Instant, at, err, r.Fixed)
			}
			c := newClock(time.UTC, func() time.Time { return time.UnixMilli(0) })
			c.Observe(r.Instant)
			if next, err := c.Now(); err != nil || next != r.Plus {
				t.Errorf("after %s: %s %v, want %s", r.Instant, next, err, r.Plus)
			}
			continue
		}
		got, err := ParseTime(r.Instant, zone)
		want, isNumber := r.EpochMS.(float64)
		if !isNumber {
			if !errors.Is(err, ErrTime) {
				t.Errorf("%s %q: %v, Java: %v", r.Zone, r.Instant, got, r.EpochMS)
			}
			continue
		}
		if err != nil || got.UnixMilli() != int64(want) || FormatTime(got, zone) != r.Back {
			t.Errorf("%s %q: %v %v, want %d %s", r.Zone, r.Instant, got, err, int64(want), r.Back)
		}
	}
	actions := map[string]Action{"createCompactionTimestamp": Compaction, "createCleanTimestamp": Clean, "createRestoreTimestamp": Restore,
		"createAsyncIndexerTimestamp": Indexing, "createLogCompactionTimestamp": LogCompaction, "createRollbackTimestamp": Rollback}
	for _, r := range v.Metadata {
		got := MetadataInit(1, r.Offset)
		if a, ok := actions[r.Function]; ok {
			got, _ = MetadataTime(r.Instant, a)
		}
		if got != r.Result {
			t.Errorf("%s %s %d: %s, want %s", r.Function, r.Instant, r.Offset, got, r.Result)
		}
	}
}

func readVectors(t *testing.T, into any) {
	t.Helper()
	text := mustRead(t, "testdata/vectors.json")
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func TestArchives(t *testing.T) {
	for _, name := range []string{"cow_archived_0.14.0", "cow_archived_0.15.0", "cow_archived_1.2.0", "cow_archived_layers_1.0.2", "cow_archived_layers_1.2.0"} {
		t.Run(name, func(t *testing.T) {
			tb := openSpark(t, name)
			archive, err := Archive(ctx, tb.store, tb.cfg, "", "")
			if err != nil {
				t.Fatal(err)
			}
			all := Merge(tb.tl, archive)
			chain(t, tb, all)
			for _, i := range archive.Instants() {
				if !i.Archived || i.State != Completed {
					t.Errorf("%+v", i)
				}
				// 0.14 wrote no transition time; later layouts tell when each instant completed.
				if tb.cfg.Layout == 2 && (len(i.Completion) != 17 || i.Completion <= i.Time) {
					t.Errorf("%s completed %q", i.Time, i.Completion)
				}
				bodies, err := decodeAll(tb.store, i)
				if err != nil || len(bodies) != 1 {
					t.Errorf("%s %s: %v", i.Time, i.Action, err)
				}
				if i.Action == Clean {
					if p, err := ReadCleanerPlan(ctx, tb.store, i); err != nil || p.Policy != "KEEP_LATEST_COMMITS" {
						t.Errorf("plan of %s: %+v %v", i.Time, p, err)
					}
				}
			}
			times := archive.Instants()
			some, err := Archive(ctx, tb.store, tb.cfg, times[3].Time, times[6].Time)
			if err != nil || some.Len() != 4 {
				t.Errorf("%d instants between the fourth and the seventh: %v", some.Len(), err)
			}
		})
	}
	tb := openSpark(t, "mor_archived_0.15.0")
	archive, err := Archive(ctx, tb.store, tb.cfg, "", "")
	if err != nil || archive.Len() == 0 {
		t.Fatal(archive.Len(), err)
	}
	none := openSpark(t, "mor_basic_1.2.0")
	if empty, err := Archive(ctx, none.store, none.cfg, "", ""); err != nil || empty.Len() != 0 {
		t.Error(empty.Len(), err)
	}
}

// chain proves that no commit is missing: the fixture upserts one file group again and again, so that each commit names the
// one before it.
func chain(t *testing.T, tb table, all Timeline) {
	t.Helper()
	previous, n := "null", 0
	for _, i := range all.Instants() {
		if i.Action != Commit {
			continue
		}
		m, err := ReadCommit(ctx, tb.store, i)
		if err != nil {
			t.Fatal(err)
		}
		for partition, stats := range m.PartitionToWriteStats {
			for _, s := range stats {
				if s.PrevCommit != previous || s.PartitionPath != partition || !strings.Contains(filepath.Base(s.Path), "_"+i.Time+".") {
					t.Errorf("%s: previous %s, want %s; %s", i.Time, s.PrevCommit, previous, s.Path)
				}
				n++
			}
		}
		previous = i.Time
	}
	if n < 12 {
		t.Errorf("only %d commits", n)
	}
}

// ALTER TABLE under schema-on-read: the history of the fixture's steps (add, widen, rename, drop; README "Seen" 4).
func TestInternalSchema(t *testing.T) {
	tb := openSpark(t, "cow_schema_on_read_0.15.0")
	latest, history, err := InternalSchema(ctx, tb.store, tb.tl, "")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range latest.Fields {
		names = append(names, fmt.Sprint(f.ID, f.Name, " ", f.Type.Name))
	}
	if got := strings.Join(names[5:], ","); got != "5id int,6qty long,7new_name string,9ts long,10added double" || latest.MaxColumnID != 10 {
		t.Errorf("latest %s", got)
	}
	if len(history) != 5 || history[0].Version != latest.Version || history[4].Version != 0 {
		t.Errorf("%d versions", len(history))
	}
	// At the second instant the column still had its old name; before the first change there is no internal schema.
	second, older, err := InternalSchema(ctx, tb.store, tb.tl, "20261129233341872")
	if err != nil || second == nil || second.Fields[7].Name != "old_name" || len(older) != 3 {
		t.Errorf("%+v %d %v", second, len(older), err)
	}
	if first, _, err := InternalSchema(ctx, tb.store, tb.tl, "20261129233337549"); err != nil || first != nil {
		t.Errorf("%+v %v", first, err)
	}
	s, _, err := TableSchema(ctx, tb.store, tb.cfg, tb.tl, "20261129233341872")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Field("_hoodie_commit_time"); ok {
		t.Error("the schema of an ALTER_SCHEMA commit keeps its meta columns")
	}
	if _, ok := s.Field("old_name"); !ok {
		t.Errorf("as of the second instant: %s", s)
	}
	if commits, err := LoadSchemaCommits(ctx, tb.store); err != nil || commits.Len() != 6 {
		t.Errorf("%d schema commits, %v", commits.Len(), err)
	}
}

func TestSchemaSources(t *testing.T) {
	const a = `{\"type\":\"record\",\"name\":\"a\",\"fields\":[]}`
	const b = `{\"type\":\"record\",\"name\":\"b\",\"fields\":[]}`
	s := mem.New("t")
	cfg := layout(1)
	load := func() Timeline {
		tl, err := Load(ctx, s, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return tl
	}
	if _, _, err := TableSchema(ctx, s, cfg, load(), ""); !errors.Is(err, ErrNoSchema) {
		t.Error(err)
	}
	cfg.CreateSchema = strings.ReplaceAll(b, `\`, "")
	put(t, s, ".hoodie/20240101000000000.commit", []byte(`{"operationType":"UPSERT","extraMetadata":{"schema":"`+a+`"}}`))
	put(t, s, ".hoodie/20240102000000000.commit", []byte(`{"operationType":"COMPACT","extraMetadata":{"schema":"`+b+`"}}`)) // must not decide
	put(t, s, ".hoodie/20240103000000000.replacecommit", []byte(`{"operationType":"DELETE_PARTITION","extraMetadata":{"schema":""}}`))
	put(t, s, ".hoodie/20240104000000000.inflight", []byte(`{"extraMetadata":{"schema":"`+b+`"}}`))
	if got, source, err := TableSchema(ctx, s, cfg, load(), ""); err != nil || got.Name != "a" || source != "20240101000000000" {
		t.Error(got, source, err)
	}
	if got, source, err := TableSchema(ctx, s, cfg, load(), "20231231000000000"); err != nil || got.Name != "b" || source != FromProperties {
		t.Error(got, source, err)
	}
}

func mustRead(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestC119WritersThatStartAtOnceFindTheirOwnTimes(t *testing.T) {
	s := mem.New("t")
	frozen := func() time.Time { return time.UnixMilli(1713461750988) }
	const writers = 8
	found := make(chan Instant, writers)
	for range writers {
		go func() {
			i, err := Begin(ctx, s, layout(2), newClock(time.UTC, frozen), Commit, nil)
			if err != nil {
				t.Error(err)
			}
			found <- i
		}()
	}
	var times []string
	for range writers {
		times = append(times, (<-found).Time)
	}
	slices.Sort(times)
	for n, at := range times {
		if want := fmt.Sprintf("20240418173550%03d", 988+n); at != want {
			t.Errorf("%s, want %s", at, want)
		}
	}
	tl, err := Load(ctx, s, layout(2))
	if err != nil || tl.Pending().Len() != writers {
		t.Error(tl.Len(), err)
	}
	// A second run with the clock an hour back: never below the newest instant.
	back := newClock(time.UTC, func() time.Time { return frozen().Add(-time.Hour) }, tl)
	if i, err := Begin(ctx, s, layout(2), back, Commit, nil); err != nil || i.Time <= times[writers-1] {
		t.Errorf("%+v %v", i, err)
	}
}

func TestPublishWritesOnceAndOnlyRealNames(t *testing.T) {
	s := mem.New("t")
	f := FileName{Time: "20240101000000000", Action: Commit, State: Completed}
	if name, err := Publish(ctx, s, layout(1), f, []byte("{}")); err != nil || name != ".hoodie/20240101000000000.commit" {
		t.Error(name, err)
	}
	if _, err := Publish(ctx, s, layout(1), f, []byte("{}")); !errors.Is(err, storage.ErrExist) {
		t.Error(err)
	}
	for _, c := range []struct {
		layout int
		f      FileName
	}{
		{2, f}, // no completion time
		{1, FileName{Time: f.Time, Completion: "20240101000000001", Action: Commit, State: Completed}},
		{2, FileName{Time: "../x", Action: Commit, State: Requested}},
		{2, FileName{Time: f.Time, Action: Compaction, State: Completed, Completion: "20240101000000001"}},
	} {
		if name, err := Publish(ctx, s, layout(c.layout), c.f, nil); err == nil {
			t.Errorf("%s was written", name)
		}
	}
}

func TestDamagedArchives(t *testing.T) {
	tb := openSpark(t, "cow_archived_0.15.0")
	first := ".hoodie/archived/.commits_.archive.1_1-0-1"
	whole, err := Archive(ctx, tb.store, tb.cfg, "", "")
	if err != nil {
		t.Fatal(err)
	}
	good, err := storage.ReadAll(ctx, tb.store, first, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"cut off": good[:len(good)-9], "rubbish behind": append(slices.Clone(good), "rubbish"...), "spoilt size": append([]byte("#HUDI#\x7f"), good[7:]...)} {
		put(t, tb.store, first, text)
		tl, err := Archive(ctx, tb.store, tb.cfg, "", "")
		if !errors.Is(err, ErrDamagedArchive) || !strings.Contains(err.Error(), "archive.1_1-0-1") || !strings.Contains(err.Error(), "byte ") {
			t.Errorf("%s: %v", name, err)
		}
		if lost := whole.Len() - tl.Len(); lost < 0 || lost > 4 || name == "rubbish behind" && lost != 0 {
			t.Errorf("%s: %d of %d instants", name, tl.Len(), whole.Len())
		}
	}
	put(t, tb.store, first, []byte("rubbish"))
	if tl, err := Archive(ctx, tb.store, tb.cfg, "", ""); !errors.Is(err, ErrCorrupt) || errors.Is(err, ErrDamagedArchive) || tl.Len() != 0 {
		t.Error(tl.Len(), err)
	}
	tb = openSpark(t, "cow_archived_1.2.0")
	for info, err := range tb.store.List(ctx, tb.cfg.HistoryPath, storage.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(info.Name, ".parquet") {
			continue
		}
		text, err := storage.ReadAll(ctx, tb.store, info.Name, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range [][]byte{nil, text[:len(text)/2], []byte("PAR1PAR1"), append(slices.Clone(text[:len(text)-8]), 0xff, 0xff, 0xff, 0x7f, 'P', 'A', 'R', '1')} {
			put(t, tb.store, info.Name, bad)
			if _, err := Archive(ctx, tb.store, tb.cfg, "", ""); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), info.Name) {
				t.Errorf("%d bytes: %v", len(bad), err)
			}
		}
		if err := tb.store.Delete(ctx, info.Name); err != nil {
			t.Fatal(err)
		}
		if _, err := Archive(ctx, tb.store, tb.cfg, "", ""); !errors.Is(err, storage.ErrNotExist) {
			t.Error(err)
		}
		return
	}
	t.Error("no history file")
}
