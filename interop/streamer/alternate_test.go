//go:build interop

package streamer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/interop/sluice"
	"github.com/sluicelake/sluice/storage/open"
	"github.com/sluicelake/sluice/streamer/checkpoint"
)

const eventSchema = `{"type":"record","name":"ev","fields":[{"name":"id","type":"string"},{"name":"region","type":"string"},{"name":"qty","type":["null","int"],"default":null},
 {"name":"ts","type":"long"},{"name":"_hoodie_is_deleted","type":["null","boolean"],"default":null}]}`

// Rounds of the original and of ours take turns on one table: each goes on at the other's checkpoint, no row is lost, doubled or
// written again, and a round without news makes no commit, whoever runs it.
func TestRoundsAlternate(t *testing.T) {
	dir := t.TempDir()
	in, table, conf := filepath.Join(dir, "in"), filepath.Join(dir, "table"), filepath.Join(dir, "ev.avsc")
	if err := os.Mkdir(in, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(conf, []byte(eventSchema), 0o666); err != nil {
		t.Fatal(err)
	}
	args := []string{"--target-base-path", table, "--target-table", "t", "--table-type", "COPY_ON_WRITE", "--source-ordering-field", "ts",
		"--source-class", "org.apache.hudi.utilities.sources.JsonDFSSource", "--schemaprovider-class", "org.apache.hudi.utilities.schema.FilebasedSchemaProvider",
		"--hoodie-conf", "hoodie.datasource.write.recordkey.field=id", "--hoodie-conf", "hoodie.datasource.write.partitionpath.field=region",
		"--hoodie-conf", "hoodie.streamer.source.dfs.root=" + in, "--hoodie-conf", "hoodie.streamer.schemaprovider.source.schema.file=" + conf,
		"--hoodie-conf", "hoodie.metadata.enable=false", "--hoodie-conf", "hoodie.embed.timeline.server=false",
		"--hoodie-conf", "hoodie.upsert.shuffle.parallelism=2", "--hoodie-conf", "hoodie.insert.shuffle.parallelism=2"}
	ours := func() error {
		_, err := sluice.Run(t, append([]string{"streamer"}, args...)...)
		return err
	}
	original := func() error { return Run(t, args...) }
	random := rand.New(rand.NewPCG(7, 7))
	model, clock := map[string]string{}, 0
	for round, turn := range []struct {
		who  string
		run  func() error
		news bool
	}{{"original", original, true}, {"ours", ours, true}, {"ours", ours, false}, {"original", original, true}, {"original", original, false}, {"ours", ours, true}, {"original", original, true}, {"ours", ours, false}} {
		millis := int64(1579550000000 + round*1000)
		if turn.news {
			var lines []string
			for range 40 {
				clock++
				id := fmt.Sprintf("k%d", random.IntN(50))
				region := []string{"eu", "us"}[int(id[len(id)-1])%2]
				gone := random.IntN(4) == 0
				lines = append(lines, fmt.Sprintf(`{"id":%q,"region":%q,"qty":%d,"ts":%d,"_hoodie_is_deleted":%t}`, id, region, clock, clock, gone))
				if model[id] = fmt.Sprint(clock); gone {
					delete(model, id)
				}
			}
			name := filepath.Join(in, fmt.Sprintf("%d.json", round))
			if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o666); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(name, time.UnixMilli(millis), time.UnixMilli(millis)); err != nil {
				t.Fatal(err)
			}
		}
		before := commits(t, table)
		if err := turn.run(); err != nil {
			t.Fatalf("round %d (%s): %v", round, turn.who, err)
		}
		after := commits(t, table)
		if made := len(after) - len(before); turn.news != (made == 1) {
			t.Fatalf("round %d (%s): %d commits, news %v", round, turn.who, made, turn.news)
		}
		if turn.news {
			if got := storedKey(t, table, after[len(after)-1]); got != fmt.Sprint(millis) {
				t.Errorf("round %d (%s): checkpoint %s, want %d", round, turn.who, got, millis)
			}
		}
		var want []string
		for id, qty := range model {
			want = append(want, id+":"+qty)
		}
		slices.Sort(want)
		if got := tableRows(t, table); !slices.Equal(got, want) {
			t.Fatalf("round %d (%s):\n got %v\nwant %v", round, turn.who, got, want)
		}
	}
	if _, err := sluice.Run(t, "table", "validate", table); err != nil {
		t.Error(err)
	}
}

func commits(t *testing.T, table string) []timeline.Instant {
	t.Helper()
	h, err := hudi.Open(context.Background(), table, hudi.Options{})
	if err != nil {
		return nil
	}
	return h.Timeline().Completed().Writes().Instants()
}

func storedKey(t *testing.T, table string, i timeline.Instant) string {
	t.Helper()
	store, err := open.Store(context.Background(), table, open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	meta, err := timeline.ReadCommit(context.Background(), store, i)
	if err != nil {
		t.Fatal(err)
	}
	return meta.ExtraMetadata[checkpoint.Key]
}

func tableRows(t *testing.T, table string) []string {
	t.Helper()
	h, err := hudi.Open(context.Background(), table, hudi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.Snapshot(context.Background(), hudi.Query{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for batch, err := range s.Scan(context.Background(), hudi.Scan{Columns: []string{"id", "qty"}}) {
		if err != nil {
			t.Fatal(err)
		}
		ids, quantities := batch.Column(0).(*array.String), batch.Column(1).(*array.Int32)
		for i := range int(batch.NumRows()) {
			out = append(out, fmt.Sprintf("%s:%d", ids.Value(i), quantities.Value(i)))
		}
		batch.Release()
	}
	slices.Sort(out)
	return out
}
