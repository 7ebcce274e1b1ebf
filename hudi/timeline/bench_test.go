package timeline

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/local"
	"github.com/sluicelake/sluice/storage/mem"
)

const benchInstants = 1500

// fill makes 1,500 completed commits, three files each, with the body that a real commit of the layout has.
func fill(b *testing.B, s storage.Store, layout int) {
	b.Helper()
	table, pattern := "cow_basic_0.15.0", ".hoodie/*.commit"
	if layout == 2 {
		table, pattern = "cow_basic_1.2.0", ".hoodie/timeline/*.commit"
	}
	dir, _ := fixture.Spark(b, table)
	files, _ := filepath.Glob(filepath.Join(dir, pattern))
	body, err := os.ReadFile(files[0])
	if err != nil {
		b.Fatal(err)
	}
	at := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for n := range benchInstants {
		f := FileName{Time: FormatTime(at.Add(time.Duration(n)*time.Minute), time.UTC), Action: Commit}
		for _, f.State = range []State{Requested, Inflight, Completed} {
			if f.State == Completed && layout == 2 {
				f.Completion = FormatTime(at.Add(time.Duration(n)*time.Minute+time.Second), time.UTC)
			}
			fuzzPut(b, s, fuzzTable(layout).TimelinePath+"/"+f.String(), body)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	for layout := 1; layout <= 2; layout++ {
		onDisk, err := local.New(b.TempDir(), local.Options{})
		if err != nil {
			b.Fatal(err)
		}
		for kind, s := range map[string]storage.Store{"mem": mem.New("b"), "disk": onDisk} {
			fill(b, s, layout)
			b.Run(fmt.Sprintf("layout=%d/%s", layout, kind), func(b *testing.B) {
				for b.Loop() {
					tl, err := Load(b.Context(), s, fuzzTable(layout))
					if err != nil || tl.Len() != benchInstants {
						b.Fatal(tl.Len(), err)
					}
				}
				b.ReportMetric(float64(benchInstants)*float64(b.N)/b.Elapsed().Seconds(), "instants/s")
			})
		}
	}
}

func BenchmarkReadCommits(b *testing.B) {
	for layout := 1; layout <= 2; layout++ {
		s := mem.New("b")
		fill(b, s, layout)
		tl, err := Load(b.Context(), s, fuzzTable(layout))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("layout=%d", layout), func(b *testing.B) {
			for b.Loop() {
				for _, i := range tl.Instants() {
					if m, err := ReadCommit(b.Context(), s, i); err != nil || len(m.PartitionToWriteStats) == 0 {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(benchInstants)*float64(b.N)/b.Elapsed().Seconds(), "commits/s")
		})
	}
}
