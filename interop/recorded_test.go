package interop_test

import (
	"bytes"
	"testing"

	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/hudi/encode"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/interop/rows"
)

// Random histories that were recorded once, with Apache Hudi's answers, so that no peer is needed to read them again.
// TestRandomHistories makes new ones on the spot.
func TestRecordedHistories(t *testing.T) {
	for _, name := range fixture.HistoryNames(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, expect := fixture.History(t, name)
			ask := func(label string, want fixture.Answer, open func(*hudi.Table) (*hudi.Snapshot, error)) {
				t.Run(label, func(t *testing.T) {
					got, err := read(t, dir, open)
					switch {
					case want.Error != "":
						// Apache Hudi could not read this: no rows are known to be right, and none to be wrong.
						t.Logf("%d rows, error %v; Apache Hudi: %s", len(got), err, want.Error)
					case err != nil:
						t.Error(err)
					default:
						want.Check(t, got)
					}
				})
			}
			at := func(q hudi.Query) func(*hudi.Table) (*hudi.Snapshot, error) {
				return func(table *hudi.Table) (*hudi.Snapshot, error) { return table.Snapshot(t.Context(), q) }
			}
			ask("snapshot", expect.Snapshot, at(hudi.Query{}))
			if expect.ReadOptimized != nil {
				ask("read optimized", *expect.ReadOptimized, at(hudi.Query{View: hudi.ReadOptimized}))
			}
			for instant, want := range expect.TimeTravel {
				ask("as of "+instant, want, at(hudi.Query{AsOf: instant}))
			}
			for _, r := range expect.Incremental {
				ask("from "+r.Begin+" to "+r.End, r.Answer, func(table *hudi.Table) (*hudi.Snapshot, error) {
					return table.Changes(t.Context(), hudi.Range{Begin: r.Begin, End: r.End})
				})
			}
		})
	}
}

func read(t *testing.T, dir string, open func(*hudi.Table) (*hudi.Snapshot, error)) ([]rows.Row, error) {
	t.Helper()
	table, err := hudi.Open(t.Context(), dir, hudi.Options{})
	if err != nil {
		return nil, err
	}
	s, err := open(table)
	if err != nil {
		return nil, err
	}
	w, err := encode.NewJSON(s.Schema(), encode.Options{})
	if err != nil {
		return nil, err
	}
	var lines []byte
	for batch, err := range s.Scan(t.Context(), hudi.Scan{}) {
		if err != nil {
			return nil, err
		}
		lines = w.Append(lines, batch)
		batch.Release()
	}
	return rows.Decode(bytes.NewReader(lines))
}
