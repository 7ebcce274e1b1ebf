package checkpoint

import (
	"errors"
	"fmt"
	"testing"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/hudi/write"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/open"
)

// The rules of tools C.5, with what the fixture "checkpoints" of the original (release 0.14.0) shows.
func TestResume(t *testing.T) {
	stored := Stored{Instant: "2", Last: "20200101000000000", Key: "100", Reset: "0", Ignored: "tok"}
	for _, c := range []struct {
		given  Given
		stored Stored
		from   string
		kept   bool
		err    error
	}{
		{Given{}, Stored{}, "", false, nil},
		{Given{Checkpoint: "5"}, Stored{}, "5", false, nil},
		{Given{}, stored, "100", true, nil},
		{Given{Checkpoint: "0"}, stored, "100", true, nil}, // the same again resumes
		{Given{Checkpoint: "5"}, stored, "5", false, nil},
		{Given{Ignore: "tok"}, stored, "100", true, nil},
		{Given{Ignore: "new", Checkpoint: "5"}, stored, "", false, nil},
		{Given{Checkpoint: "0"}, Stored{Instant: "2", Last: "20200101000000000", Reset: "0"}, "", false, ErrLost},
		{Given{Checkpoint: "0"}, Stored{Instant: "2", Last: "00000000000002", Reset: "0"}, "", false, nil},
	} {
		from, kept, err := c.given.Resume(c.stored)
		if from != c.from || kept != c.kept || !errors.Is(err, c.err) {
			t.Errorf("%+v over %+v: %q, %v, %v; want %q, %v, %v", c.given, c.stored, from, kept, err, c.from, c.kept, c.err)
		}
	}
	if got := fmt.Sprint((Given{Checkpoint: "0"}).Entries(6, "7", "")); got != "map[deltastreamer.checkpoint.key:7 deltastreamer.checkpoint.reset_key:0]" {
		t.Error(got)
	}
	if got := fmt.Sprint((Given{}).Entries(8, "7", "s")); got != "map[sluice.streamer.checkpoint.seen:s streamer.checkpoint.key.v2:7]" {
		t.Error(got)
	}
}

// commits makes a table whose commits have these entries, oldest first.
func commits(t *testing.T, kind config.TableType, entries ...map[string]string) (storage.Store, *config.Table) {
	t.Helper()
	ctx := t.Context()
	store, err := open.Store(ctx, t.TempDir(), open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := write.CreateTable(ctx, store, write.Spec{Name: "t", Type: kind, RecordKeyFields: []string{"id"}})
	if err != nil {
		t.Fatal(err)
	}
	for i, extra := range entries {
		action := timeline.Commit
		if kind == config.MergeOnRead && extra["compaction"] == "" {
			action = timeline.DeltaCommit
		}
		at := fmt.Sprintf("2020010100000000%d", i)
		for _, state := range []timeline.State{timeline.Requested, timeline.Inflight, timeline.Completed} {
			var body []byte
			if state == timeline.Completed {
				body = timeline.EncodeCommitJSON(&timeline.CommitMetadata{ExtraMetadata: extra, OperationType: "UPSERT"})
			}
			if _, err := timeline.Publish(ctx, store, cfg, timeline.FileName{Time: at, Action: action, State: state}, body); err != nil {
				t.Fatal(err)
			}
		}
	}
	return store, cfg
}

func TestRead(t *testing.T) {
	none := map[string]string{"schema": "s"}
	for _, c := range []struct {
		name    string
		kind    config.TableType
		commits []map[string]string
		want    Stored
	}{
		{"no commit", config.CopyOnWrite, nil, Stored{}},
		{"another writer's commits in between", config.CopyOnWrite, []map[string]string{{Key: "1"}, {Key: "2", ResetKey: "0", Seen: "s"}, none, none},
			Stored{Instant: "20200101000000001", Last: "20200101000000003", Key: "2", Reset: "0", Seen: "s"}},
		{"the reset key alone", config.CopyOnWrite, []map[string]string{{Key: "1"}, {ResetKey: "0"}}, Stored{Instant: "20200101000000001", Last: "20200101000000001", Reset: "0"}},
		{"names of version 8", config.CopyOnWrite, []map[string]string{{KeyV2: "3", ResetV2: "4"}}, Stored{Instant: "20200101000000000", Last: "20200101000000000", Key: "3", Reset: "4"}},
		{"a compaction", config.MergeOnRead, []map[string]string{{Key: "1"}, {"compaction": "yes", Key: "9"}}, Stored{Instant: "20200101000000000", Last: "20200101000000000", Key: "1"}},
		{"nobody streamed", config.CopyOnWrite, []map[string]string{none}, Stored{Last: "20200101000000000"}},
	} {
		store, cfg := commits(t, c.kind, c.commits...)
		tl, err := timeline.Load(t.Context(), store, cfg)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Read(t.Context(), store, cfg, tl)
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
}
