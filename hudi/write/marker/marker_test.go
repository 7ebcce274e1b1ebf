package marker_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/hudi/write/marker"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/local"
	"github.com/sluicelake/sluice/storage/mem"
)

func put(t testing.TB, s storage.Store, name, text string) {
	t.Helper()
	if _, err := s.Put(context.Background(), name, strings.NewReader(text), storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Markers that Apache Hudi 0.9.0 left behind.
func TestMarkersOfApacheHudi(t *testing.T) {
	ctx := context.Background()
	dir, _ := fixture.Spark(t, "old_mor_compacted_0.9.0")
	s, err := local.New(dir, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	instants, err := marker.Instants(ctx, s)
	if err != nil || !slices.Equal(instants, []string{"20261130003628", "20261130003637"}) {
		t.Fatalf("%v, %v", instants, err)
	}
	for _, at := range instants {
		markers, found, err := marker.List(ctx, s, at)
		if err != nil || !found || len(markers) == 0 {
			t.Errorf("%s: %v, %v, %v", at, markers, found, err)
		}
		for _, m := range markers {
			if strings.Contains(m.Path, ".marker") || !strings.Contains(m.File(), at) && m.Kind != marker.Append {
				t.Errorf("%s: %+v", at, m)
			}
		}
		if err := marker.Remove(ctx, s, at); err != nil {
			t.Error(err)
		}
	}
	if left, err := marker.Instants(ctx, s); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// Both kinds are read: one file each, and the lists of the timeline server (table format 7.2).
func TestBothKinds(t *testing.T) {
	ctx := context.Background()
	s := mem.New("t")
	const at = "20260101000000000"
	want := []marker.Marker{{Path: "a.marker.x/f_0-0-0_1.parquet", Kind: marker.Create}, {Path: "f_0-0-0_1.parquet", Kind: marker.Merge}, {Path: "p/.f_1.log.1_0-0-0", Kind: marker.Append}}
	if err := marker.Put(ctx, s, at, want[0]); err != nil {
		t.Fatal(err)
	}
	if err := marker.Put(ctx, s, at, want[0]); err != nil {
		t.Errorf("a second time: %v", err)
	}
	put(t, s, marker.Folder(at)+"/MARKERS.type", "TIMELINE_SERVER_BASED\n")
	put(t, s, marker.Folder(at)+"/MARKERS0", "f_0-0-0_1.parquet.marker.MERGE\np/.f_1.log.1_0-0-0.marker.APPEND\n")
	put(t, s, marker.Folder(at)+"/MARKERS1", "p/.f_1.log.1_0-0-0.marker.APPEND\r\np/half_0-0-0_1.parq")
	got, found, err := marker.List(ctx, s, at)
	if err != nil || !found || !slices.Equal(got, want) {
		t.Errorf("%v, %v, %v; want %v", got, found, err, want)
	}
	if want[0].Partition() != "a.marker.x" || want[1].Partition() != "" || want[2].File() != ".f_1.log.1_0-0-0" {
		t.Error("partitions and files")
	}
	if got, found, err := marker.List(ctx, s, "20260101000000001"); err != nil || found || len(got) > 0 {
		t.Errorf("an instant without markers: %v, %v, %v", got, found, err)
	}
	put(t, s, marker.Folder(at)+"/MARKERS2", "../../elsewhere/f_0-0-0_1.parquet.marker.CREATE\n")
	if _, _, err := marker.List(ctx, s, at); !errors.Is(err, storage.ErrName) {
		t.Errorf("a marker outside of the table: %v", err)
	}
}

func FuzzList(f *testing.F) {
	f.Add("p/f_0-0-0_1.parquet.marker.CREATE\n")
	f.Add("p/../f.marker.MERGE\r\n\n.marker.APPEND")
	f.Fuzz(func(t *testing.T, text string) {
		s := mem.New("t")
		put(t, s, marker.Folder("1")+"/MARKERS0", text)
		markers, _, err := marker.List(context.Background(), s, "1")
		for _, m := range markers {
			if name := storage.CheckName(m.Path); name != nil || err != nil {
				t.Errorf("%q: %v, %v", m.Path, name, err)
			}
		}
	})
}
