package export_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/engine/local"
	"github.com/sluicelake/sluice/export"
	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/encode"
	"github.com/sluicelake/sluice/internal/fixture"
	stores "github.com/sluicelake/sluice/storage/local"
	"github.com/sluicelake/sluice/storage/mem"
)

// An export that copies column chunks has the rows of one that decodes every file: each kind of table that Apache Hudi wrote,
// with the default of small row groups and with all that can be copied.
func TestCopiedIsDecoded(t *testing.T) {
	copied := 0
	for _, name := range fixture.SparkNames(t, "cow_*", "mor_types_*", "mor_basic_*", "mor_compacted_*", "mor_legacy_lists_*", "old_*", "payload_default_*", "bootstrap_full_record_*") {
		source, _ := fixture.Spark(t, name)
		decoded, want := exported(t, export.Config{Source: source, Compression: "zstd", Rows: export.Snapshot})
		for _, c := range []export.Config{{Source: source, Rows: export.Snapshot}, {Source: source, Rows: export.Snapshot, SmallRowGroup: -1, Parallelism: 1}} {
			sum, got := exported(t, c)
			if !slices.Equal(want, got) {
				t.Errorf("%s (%d copied): %d rows, want %d\n%s\nwant\n%s", name, sum.Copied, len(got), len(want), strings.Join(got, ""), strings.Join(want, ""))
			}
			if sum.Stats.Rows != int64(len(got)) || decoded.Stats.BytesRead != sum.Stats.BytesRead {
				t.Errorf("%s: counted %d rows of %d, %d bytes of %d", name, sum.Stats.Rows, len(got), sum.Stats.BytesRead, decoded.Stats.BytesRead)
			}
			copied += sum.Copied
		}
	}
	if copied < 350 { // the others share a task with small ones, and are joined
		t.Errorf("only %d files were copied", copied)
	}
}

// exported runs an export to Parquet and gives its rows as sorted JSON.
func exported(t *testing.T, c export.Config) (export.Summary, []string) {
	t.Helper()
	c.Format, c.Target = export.Parquet, filepath.Join(t.TempDir(), "out")
	sum, err := export.Run(t.Context(), c, local.Options{})
	if err != nil {
		t.Fatalf("%s: %v", c.Source, err)
	}
	store, err := stores.New(c.Target, stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, name := range sum.Files {
		f, err := basefile.Open(t.Context(), store, name, basefile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := encode.NewJSON(f.Schema(), encode.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for batch, err := range f.Scan(t.Context(), basefile.ScanOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			for line := range bytes.Lines(text.Append(nil, batch)) {
				lines = append(lines, string(line))
			}
			batch.Release()
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(lines)
	return sum, lines
}

// What is copied, what is not, and why. How many small files meet in a task is told by TestSmallFilesAreJoined.
func TestReasonsForDecoding(t *testing.T) {
	for _, c := range []struct {
		table  string
		config export.Config
		copied int
		why    map[string]int
	}{
		{"cow_basic_1.2.0", export.Config{}, 3, nil},
		// The partition column takes its values from the path: the file's statistics prove that it holds the same.
		{"cow_partitions_two_levels_1.2.0", export.Config{}, 4, nil},
		{"cow_partitions_typed_1.2.0", export.Config{}, 0, map[string]int{"column m takes its values from the partition path": 2}},
		{"cow_partitions_custom_keygen_1.2.0", export.Config{}, 0, map[string]int{"column at: int64 in the file, utf8 in the table": 3}},
		{"cow_drop_partition_columns_1.2.0", export.Config{}, 0, map[string]int{"column region is not in the file": 4}},
		{"cow_schema_evolution_1.2.0", export.Config{}, 2, map[string]int{"column attrs is not in the file": 1}},
		{"cow_types_1.2.0", export.Config{}, 1, nil},
		{"cow_types_1.2.0", export.Config{Timestamps: export.Int96}, 0, map[string]int{"column c_ts: timestamps that are not INT96": 1}},
		{"cow_types_1.2.0", export.Config{Compression: "gzip"}, 1, nil},
		{"cow_types_1.2.0", export.Config{Compression: "snappy"}, 0, map[string]int{"row group 0, column id: compressed with gzip, not snappy": 1}},
		{"cow_row_groups_1.2.0", export.Config{}, 0, map[string]int{"its row groups are small and are joined with others": 1}},
		{"cow_types_1.2.0", export.Config{Begin: "000"}, 0, map[string]int{"rows of a range of instants are picked": 1}},
		{"cow_types_1.2.0", export.Config{PartitionField: "c_int"}, 0, nil},
		{"mor_types_1.2.0", export.Config{Rows: export.Snapshot}, 0, map[string]int{"log files are merged": 2}},
	} {
		source, _ := fixture.Spark(t, c.table)
		c.config.Source, c.config.Parallelism = source, 64 // each file a task of its own
		sum, _ := exported(t, c.config)
		if sum.Copied != c.copied || !maps.Equal(sum.Decoded, c.why) {
			t.Errorf("%s %+v: %d copied, %v", c.table, c.config, sum.Copied, sum.Decoded)
		}
	}
}

// Small files of one task become one row group; a task's only one is copied, as there is nothing to join it with.
func TestSmallFilesAreJoined(t *testing.T) {
	source, _ := fixture.Spark(t, "cow_basic_1.2.0")
	sum, _ := exported(t, export.Config{Source: source, Parallelism: 1})
	if sum.Copied != 0 || len(sum.Files) != 1 || sum.Decoded["its row groups are small and are joined with others"] != 3 {
		t.Errorf("one task: %+v", sum)
	}
	sum, _ = exported(t, export.Config{Source: source, Parallelism: 64})
	if sum.Copied != 3 || len(sum.Files) != 3 {
		t.Errorf("three tasks: %+v", sum)
	}
}

// Names say the codec of the pages, and files of different codecs do not share one.
func TestNamesOfCopies(t *testing.T) {
	source, _ := fixture.Spark(t, "cow_compressions_1.2.0")
	sum, _ := exported(t, export.Config{Source: source, SmallRowGroup: -1, Parallelism: 1})
	var suffixes []string
	for _, name := range sum.Files {
		suffixes = append(suffixes, name[strings.LastIndex(name, "-c")+2:])
	}
	if want := []string{"000.gz.parquet", "001.snappy.parquet", "002.parquet", "003.zstd.parquet"}; !slices.Equal(suffixes, want) {
		t.Errorf("files %v, want %v", suffixes, want)
	}
}

// Only who asks is told how files were written.
func TestExplain(t *testing.T) {
	source, _ := fixture.Spark(t, "cow_schema_evolution_1.2.0")
	for _, explain := range []bool{false, true} {
		var notes []string
		observe := func(e engine.Event) {
			if n, ok := e.(engine.Noted); ok {
				notes = append(notes, n.Text)
			}
		}
		c := export.Config{Source: source, Target: filepath.Join(t.TempDir(), "out"), Format: export.Parquet, Explain: explain, SmallRowGroup: -1}
		if _, err := export.Run(t.Context(), c, local.Options{Observe: observe}); err != nil {
			t.Fatal(err)
		}
		want := "[]"
		if explain {
			want = "[2 base files were copied without decoding them 1 base files were decoded: column attrs is not in the file]"
		}
		if got := fmt.Sprint(notes); got != want {
			t.Errorf("explain %v: %s", explain, got)
		}
	}
}

// A source that is damaged fails the export, which leaves nothing.
func TestDamagedSourceFailsTheExport(t *testing.T) {
	source, _ := fixture.Spark(t, "cow_types_row_writer_1.2.0")
	files, err := filepath.Glob(filepath.Join(source, "*.parquet"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	clear(data[1500:1540])
	if err := os.WriteFile(files[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(t.TempDir(), "out")
	_, err = export.Run(t.Context(), export.Config{Source: source, Target: target, Format: export.Parquet}, local.Options{})
	if err == nil || !strings.Contains(err.Error(), "damaged") || !strings.Contains(err.Error(), filepath.Base(files[0])) {
		t.Errorf("%v", err)
	}
	if left, _ := os.ReadDir(target); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A byte that is wrong in a page is noticed where pages pass through the program. From file to file they do so with Verify alone;
// without it the page goes on as it is, with the checksum that tells readers.
func TestDamagedPages(t *testing.T) {
	dir, _ := fixture.Spark(t, "cow_types_row_writer_1.2.0")
	var bent int
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".parquet" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text[1480] ^= 0x24 // in the values of a column
		bent++
		return os.WriteFile(path, text, 0o644)
	})
	if err != nil || bent == 0 {
		t.Fatalf("%d files, %v", bent, err)
	}
	world := mem.New("world")
	upload(t, dir, world, "source")
	for _, c := range []struct {
		name    string
		config  export.Config
		noticed bool
	}{
		{"on disk", export.Config{Source: dir, Target: filepath.Join(t.TempDir(), "out")}, false},
		{"on disk, verified", export.Config{Source: dir, Target: filepath.Join(t.TempDir(), "out"), Verify: true}, true},
		{"elsewhere", export.Config{Source: "/source", Target: "/out", Open: below(world)}, true},
	} {
		c.config.Format = export.Parquet
		sum, err := export.Run(t.Context(), c.config, local.Options{Attempts: 1})
		if noticed := errors.Is(err, basefile.ErrDamaged); noticed != c.noticed || !noticed && (err != nil || sum.Copied == 0) {
			t.Errorf("%s: %v, %d copied", c.name, err, sum.Copied)
		}
	}
}
