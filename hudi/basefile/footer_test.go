package basefile_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/storage/local"
)

// Key-value metadata is what the Parquet library reads, which does not decode it for us.
func TestKeyValueIsThatOfTheLibrary(t *testing.T) {
	for _, name := range []string{"cow_basic_1.2.0", "cow_types_row_writer_1.2.0", "old_cow_*"} {
		for _, name := range fixture.SparkNames(t, name) {
			dir, expect := fixture.Spark(t, name)
			store, err := local.New(dir, local.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range newest(t, dir, expect.Instants) {
				text, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				r, err := file.NewParquetReader(bytes.NewReader(text))
				if err != nil {
					t.Fatal(err)
				}
				want := map[string]string{}
				for _, kv := range r.MetaData().KeyValueMetadata() {
					want[kv.Key] = *kv.Value
				}
				f, err := basefile.Open(t.Context(), store, name, basefile.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if got := f.KeyValue(); len(want) < 3 || !maps.Equal(got, want) {
					t.Errorf("%s: %d pairs, want %d", name, len(got), len(want))
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}
