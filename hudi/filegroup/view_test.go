package filegroup_test

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/mem"
)

// A table in a test is a list of file names, one a line, with t1 … t9 for instants, F, G for file groups and an optional
// body behind the name. "p/F@t1" is a base file, "p/F@t1.log.2" a log file; the timeline's files are written out.
var short = regexp.MustCompile(`t(\d)`)

func instant(text string) string { return short.ReplaceAllString(text, "2026010100000000$1") }

func table(t *testing.T, version int, text string) storage.Store {
	t.Helper()
	store := mem.New("table")
	put := func(name, body string) {
		if _, err := store.Put(t.Context(), name, strings.NewReader(body), storage.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	layout := 1
	if version >= 8 {
		layout = 2
	}
	put(".hoodie/hoodie.properties", fmt.Sprintf("hoodie.table.name=t\nhoodie.table.type=MERGE_ON_READ\nhoodie.table.version=%d\nhoodie.timeline.layout.version=%d\n", version, layout))
	for line := range strings.Lines(text) {
		name, body, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" {
			continue
		}
		if body == "" && strings.HasPrefix(name, ".hoodie") && strings.HasSuffix(name, "commit") {
			body = "{}"
		}
		dir, file := path.Split(name)
		if id, rest, ok := strings.Cut(file, "@"); ok {
			at, log, isLog := strings.Cut(rest, ".log.")
			file = fmt.Sprintf("%s-0_1-2-3_%s.parquet", id, at)
			if isLog {
				n, cdc, _ := strings.Cut(log, ".")
				file = fmt.Sprintf(".%s-0_%s.log.%s_1-2-%s", id, at, n, n)
				if cdc != "" {
					file += "." + cdc
				}
			}
		}
		put(dir+instant(file), instant(body))
	}
	return store
}

func slices(t *testing.T, store storage.Store, at string, mode filegroup.Mode) string {
	t.Helper()
	ctx := context.Background()
	cfg, err := config.Load(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	tl, err := timeline.Load(ctx, store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	view, err := filegroup.Open(ctx, store, cfg, tl)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filegroup.List(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	if at == "" {
		at, _ = view.Latest()
	}
	var out []string
	for _, p := range files.Partitions() {
		in, err := view.Slices(ctx, p, files.In(p), instant(at), mode)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range in {
			line := s.Partition + "/" + strings.TrimSuffix(s.FileID, "-0")
			if s.Base != nil {
				line += " base " + brief(s.Base.Instant)
			}
			for _, l := range s.Logs {
				line += fmt.Sprintf(" log %s.%d", brief(l.Instant), l.Version)
			}
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

func brief(instant string) string { return "t" + strings.TrimPrefix(instant, "2026010100000000") }

const marker = "p/.hoodie_partition_metadata\n"

func TestVisibleSlices(t *testing.T) {
	for _, c := range []struct {
		name    string
		version int
		files   string
		at      string
		mode    filegroup.Mode
		want    string
	}{
		{name: "the newest version of a group", version: 6, files: `
			.hoodie/t1.commit
			.hoodie/t2.commit
			p/F@t1
			p/F@t2`, want: "p/F base t2"},
		{name: "as of an older instant", version: 6, at: "t1", files: `
			.hoodie/t1.commit
			.hoodie/t2.commit
			p/F@t1
			p/F@t2
			p/G@t2`, want: "p/F base t1"},
		{name: "files of an inflight write are invisible", version: 6, files: `
			.hoodie/t1.commit
			.hoodie/t2.commit.requested
			.hoodie/t2.inflight
			p/F@t1
			p/F@t2`, want: "p/F base t1"},
		{name: "a file newer than the timeline's start without an instant is an orphan", version: 6, files: `
			.hoodie/t1.commit
			.hoodie/t3.commit
			p/F@t1
			p/F@t2`, want: "p/F base t1"},
		{name: "a file older than the timeline's start is of an archived commit", version: 6, files: `
			.hoodie/t3.commit
			p/F@t1
			p/G@t3`, want: "p/F base t1\np/G base t3"},
		{name: "C089: an inflight commit older than every completed one stays invisible", version: 6, files: `
			.hoodie/t1.inflight
			.hoodie/t3.commit
			.hoodie/t4.commit
			p/F@t1
			p/G@t3
			p/H@t4`, want: "p/G base t3\np/H base t4"},
		{name: "replaced groups are hidden from the replacing instant on", version: 6, files: `
			.hoodie/t1.commit
			.hoodie/t2.replacecommit {"partitionToReplaceFileIds":{"p":["F-0"]}}
			p/F@t1
			p/G@t2`, want: "p/G base t2"},
		{name: "replaced groups are there before it", version: 6, at: "t1", files: `
			.hoodie/t1.commit
			.hoodie/t2.replacecommit {"partitionToReplaceFileIds":{"p":["F-0"]}}
			p/F@t1
			p/G@t2`, want: "p/F base t1"},
		{name: "a pending replacement replaces nothing", version: 6, files: `
			.hoodie/t1.commit
			.hoodie/t2.replacecommit.requested
			.hoodie/t2.replacecommit.inflight
			p/F@t1
			p/G@t2`, want: "p/F base t1"},
		{name: "layout 1: logs belong to the slice that their name says", version: 6, files: `
			.hoodie/t1.deltacommit
			.hoodie/t2.deltacommit
			.hoodie/t3.commit
			.hoodie/t4.deltacommit
			p/F@t1
			p/F@t1.log.1
			p/F@t3
			p/F@t3.log.2
			p/F@t3.log.1`, want: "p/F base t3 log t3.1 log t3.2"},
		{name: "C059: layout 1, a planned compaction: the logs on its slice go on top of the slice before", version: 6, files: `
			.hoodie/t1.deltacommit
			.hoodie/t2.deltacommit
			.hoodie/t3.compaction.requested
			.hoodie/t4.deltacommit
			p/F@t1
			p/F@t1.log.1
			p/F@t3.log.1`, want: "p/F base t1 log t1.1 log t3.1"},
		{name: "C059: the same while the compaction runs, its base file is not looked at", version: 6, files: `
			.hoodie/t1.deltacommit
			.hoodie/t2.deltacommit
			.hoodie/t3.compaction.requested
			.hoodie/t3.compaction.inflight
			.hoodie/t4.deltacommit
			p/F@t1
			p/F@t1.log.1
			p/F@t3
			p/F@t3.log.1`, want: "p/F base t1 log t1.1 log t3.1"},
		{name: "C059: and when it has completed", version: 6, files: `
			.hoodie/t1.deltacommit
			.hoodie/t2.deltacommit
			.hoodie/t3.compaction.requested
			.hoodie/t3.commit
			.hoodie/t4.deltacommit
			p/F@t1
			p/F@t1.log.1
			p/F@t3
			p/F@t3.log.1`, want: "p/F base t3 log t3.1"},
		{name: "layout 2: a log belongs to the newest base before its completion", version: 9, files: `
			.hoodie/timeline/t1_t2.deltacommit
			.hoodie/timeline/t3_t6.deltacommit
			.hoodie/timeline/t4_t5.commit
			.hoodie/timeline/t7_t8.deltacommit
			p/F@t1
			p/F@t3.log.1
			p/F@t4
			p/F@t7.log.1`, want: "p/F base t4 log t3.1 log t7.1"},
		{name: "layout 2: a log that completed before the compaction was planned is in its base", version: 9, files: `
			.hoodie/timeline/t1_t2.deltacommit
			.hoodie/timeline/t3_t4.deltacommit
			.hoodie/timeline/t5_t6.commit
			p/F@t1
			p/F@t3.log.1
			p/F@t5`, want: "p/F base t5"},
		{name: "layout 2: log files of pending writes are dropped whole", version: 9, files: `
			.hoodie/timeline/t1_t2.deltacommit
			.hoodie/timeline/t3.deltacommit.inflight
			p/F@t1
			p/F@t3.log.1`, want: "p/F base t1"},
		{name: "layout 2: as of, the log of a later write is left out", version: 9, at: "t1", files: `
			.hoodie/timeline/t1_t2.deltacommit
			.hoodie/timeline/t3_t4.deltacommit
			p/F@t1
			p/F@t3.log.1`, want: "p/F base t1"},
		{name: "C057: a group of logs only", version: 6, files: `
			.hoodie/t1.deltacommit
			.hoodie/t2.deltacommit
			p/F@t1.log.1
			p/F@t1.log.2`, want: "p/F log t1.1 log t1.2"},
		{name: "C057: it gives nothing to the read-optimized view", version: 6, mode: filegroup.ReadOptimized, files: `
			.hoodie/t1.deltacommit
			p/F@t1.log.1`, want: ""},
		{name: "the read-optimized view is the newest base", version: 9, mode: filegroup.ReadOptimized, files: `
			.hoodie/timeline/t1_t2.deltacommit
			.hoodie/timeline/t3_t4.deltacommit
			p/F@t1
			p/F@t3.log.1`, want: "p/F base t1"},
		{name: "C065: change data beside the log is no part of the slice", version: 6, files: `
			.hoodie/t1.deltacommit
			.hoodie/t2.deltacommit
			p/F@t1
			p/F@t1.log.1
			p/F@t1.log.1.cdc
			p/G@t1.log.1.cdc`, want: "p/F base t1 log t1.1"},
		{name: "what people leave behind", version: 6, files: `
			.hoodie/t1.commit
			p/F@t1
			p/_SUCCESS
			p/.F-0_1-2-3_t1.parquet.crc
			p/F-0_1-2-3_t1.parquet.tmp
			p/notes.txt
			q/F@t1`, want: "p/F base t1"},
		{name: "a table that was copied into this one is not part of it", version: 6, files: `
			.hoodie/t1.commit
			p/F@t1
			copy/.hoodie/hoodie.properties
			copy/q/.hoodie_partition_metadata
			copy/q/F@t1`, want: "p/F base t1"},
		{name: "a folder below a partition is none", version: 6, files: `
			.hoodie/t1.commit
			p/F@t1
			p/sub/.hoodie_partition_metadata
			p/sub/G@t1`, want: "p/F base t1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := table(t, c.version, marker+c.files)
			if got := slices(t, store, c.at, c.mode); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// Two files of one group and instant: the task that wrote the first was run again. The commit says which one counts.
func TestTheCommitNamesTheSurvivor(t *testing.T) {
	store := mem.New("table")
	put := func(name, body string) {
		if _, err := store.Put(t.Context(), name, strings.NewReader(body), storage.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	put(".hoodie/hoodie.properties", "hoodie.table.name=t\nhoodie.table.type=COPY_ON_WRITE\nhoodie.table.version=6\nhoodie.timeline.layout.version=1\n")
	put(".hoodie_partition_metadata", "")
	put("F-0_0-1-1_20260101000000001.parquet", "")
	put("F-0_0-1-2_20260101000000001.parquet", "")
	put(".hoodie/20260101000000001.commit", `{"partitionToWriteStats":{"":[{"fileId":"F-0","path":"F-0_0-1-1_20260101000000001.parquet"}]}}`)
	cfg, err := config.Load(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	tl, err := timeline.Load(t.Context(), store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	view, err := filegroup.Open(t.Context(), store, cfg, tl)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filegroup.List(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	got, err := view.Slices(t.Context(), "", files.In(""), "20260101000000001", filegroup.Snapshot)
	if err != nil || len(got) != 1 || got[0].Base.Token != "0-1-1" {
		t.Fatalf("%+v, %v", got, err)
	}
}

func TestParseBaseName(t *testing.T) {
	// The names and answers are those of FSUtils of Apache Hudi 1.2.0, section file_names of the format vectors.
	for name, want := range map[string]filegroup.BaseName{
		"f-0_0-1-2_20240418173550988.parquet": {FileID: "f-0", Token: "0-1-2", Instant: "20240418173550988", Ext: ".parquet"},
		"f-0_0-1-2_20240418173550988.orc":     {FileID: "f-0", Token: "0-1-2", Instant: "20240418173550988", Ext: ".orc"},
		"f-0_0-1-2_001.parquet":               {FileID: "f-0", Token: "0-1-2", Instant: "001", Ext: ".parquet"},
		"f-0_1_20240418173550988.parquet":     {FileID: "f-0", Token: "1", Instant: "20240418173550988", Ext: ".parquet"},
		"f-0_0-1-2_20240418173550988":         {FileID: "f-0", Token: "0-1-2", Instant: "20240418173550988"},
	} {
		got, ok := filegroup.ParseBaseName(name)
		if !ok || got != want || got.String() != name {
			t.Errorf("%s: %+v %v, want %+v", name, got, ok, want)
		}
	}
	for _, name := range []string{"f-0.parquet", "", "_x_1.parquet", ".f-0_1-0-1_001.parquet", "f__001.parquet", "f_1_x.parquet", "a_b"} {
		if got, ok := filegroup.ParseBaseName(name); ok {
			t.Errorf("%q is no base file, but parses as %+v", name, got)
		}
	}
}

func FuzzParseBaseName(f *testing.F) {
	f.Add("f-0_0-1-2_20240418173550988.parquet")
	f.Add("a_b_c.d")
	f.Fuzz(func(t *testing.T, name string) {
		if n, ok := filegroup.ParseBaseName(name); ok && n.String() != name {
			t.Errorf("%q parses as %+v, which is %q", name, n, n)
		}
	})
}
