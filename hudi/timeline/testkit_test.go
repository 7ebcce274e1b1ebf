package timeline

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/storage"
)

// addFiles seeds a fuzz test with files of a real table.
func addFiles(f *testing.F, table, pattern string) {
	f.Helper()
	dir, _ := fixture.Spark(f, table)
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) == 0 {
		f.Fatalf("%s: no %s", table, pattern)
	}
	for _, name := range files[:min(2, len(files))] {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
}

func fuzzTable(layout int) *config.Table {
	return &config.Table{Layout: layout, TimelinePath: ".hoodie/timeline", HistoryPath: ".hoodie/timeline/history", ArchiveFolder: ".hoodie/archived", TimelineZone: "UTC"}
}

func fuzzPut(t testing.TB, s storage.Store, name string, text []byte) {
	t.Helper()
	if _, err := s.Put(context.Background(), name, bytes.NewReader(text), storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
}
