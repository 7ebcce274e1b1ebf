package export_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/engine/local"
	"github.com/sluicelake/sluice/export"
	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/hudi/write"
	"github.com/sluicelake/sluice/hudi/write/marker"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/internal/racing"
	"github.com/sluicelake/sluice/storage"
	disk "github.com/sluicelake/sluice/storage/local"
)

func asCSV(t *testing.T, c export.Config) (header string, rows []string) {
	t.Helper()
	c.Target, c.Format = filepath.Join(t.TempDir(), "out"), export.CSV
	if _, err := export.Run(t.Context(), c, local.Options{}); err != nil {
		t.Fatal(err)
	}
	return csvLines(t, c.Target)
}

// The partitioner in the exporter's documentation: by the table's own partition path, under the name date. As an expression it
// does what it does by name.
func TestExpressionOfTheDocumentation(t *testing.T) {
	for _, name := range []string{"cow_basic_1.2.0", "cow_nonpartitioned_0.15.0", "mor_basic_0.15.0"} {
		dir, expect := fixture.Spark(t, name)
		header, got := asCSV(t, export.Config{Source: dir, Rows: export.Snapshot, Partitioner: "expr:date=_hoodie_partition_path"})
		byName, want := asCSV(t, export.Config{Source: dir, Rows: export.Snapshot, Partitioner: "hoodie-partition-path"})
		if header != byName || !slices.Equal(got, want) || len(got) != expect.Snapshot.Count {
			t.Errorf("%s:\n%s\n%q, want\n%s\n%q", name, header, got, byName, want)
		}
		if strings.Contains(header, "_hoodie_partition_path") || !strings.HasPrefix(header, "_hoodie_commit_time,_hoodie_commit_seqno,_hoodie_record_key,_hoodie_file_name,") {
			t.Errorf("%s: columns %s", name, header)
		}
		for i, r := range picked(expect.Snapshot, func(map[string]any) bool { return true }, "_hoodie_partition_path") {
			folder := strings.NewReplacer("=", "%3D", "/", "%2F").Replace(r)
			if r == "" {
				folder = "__HIVE_DEFAULT_PARTITION__"
			}
			if !strings.HasPrefix(got[i], "date="+folder+" ") {
				t.Errorf("%s: row %q, want it in date=%s", name, got[i], folder)
			}
		}
	}
}

// Expressions over columns of all kinds, several levels, nulls.
func TestExpressions(t *testing.T) {
	dir, expect := fixture.Spark(t, "cow_basic_1.2.0")
	header, got := asCSV(t, export.Config{Source: dir, Columns: []string{"id"}, Partitioner: `expr:parity = id % 2 == 0 ? "even" : "odd"; month = split(dt, "-")[1] + ";"; none = nil; cheap = price < 2`})
	var want []string
	for _, r := range expect.Snapshot.Rows {
		id, _ := strconv.Atoi(fmt.Sprint(r["id"]))
		price, _ := strconv.ParseFloat(fmt.Sprint(r["price"]), 64)
		parity := []string{"even", "odd"}[id%2]
		want = append(want, fmt.Sprintf("parity=%s/month=%s;/none=__HIVE_DEFAULT_PARTITION__/cheap=%v %d", parity, fmt.Sprint(r["dt"])[5:7], price < 2, id))
	}
	slices.Sort(want)
	if header != "id" || !slices.Equal(got, want) {
		t.Errorf("%s\n%q, want\n%q", header, got, want)
	}

	dir, _ = fixture.Spark(t, "cow_types_1.2.0")
	_, rows := asCSV(t, export.Config{Source: dir, Columns: []string{"id"}, Partitioner: `expr:year = c_ts == nil ? nil : c_ts.Year(); month = c_ts == nil ? nil : c_ts.Format("2006-01")`})
	_, times := asCSV(t, export.Config{Source: dir, Columns: []string{"id", "c_ts"}})
	folders := map[string]string{}
	for _, r := range rows {
		folder, id, _ := strings.Cut(r, " ")
		folders[id] = folder
	}
	for _, r := range times {
		id, at, _ := strings.Cut(r, ",")
		want := "year=__HIVE_DEFAULT_PARTITION__/month=__HIVE_DEFAULT_PARTITION__"
		if at != "" {
			at = strings.Trim(at, `"`)
			want = "year=" + strings.TrimLeft(at[:4], "0") + "/month=" + at[:7]
		}
		if folders[id] != want {
			t.Errorf("row %s at %s is in %s, want %s", id, at, folders[id], want)
		}
	}
}

// Refusals name what is wrong and what there is; classes of the Java tool are answered with the expression that does the same.
func TestPartitionersThatAreRefused(t *testing.T) {
	dir, _ := fixture.Spark(t, "cow_basic_1.2.0")
	for partitioner, want := range map[string]string{
		"expr:":                       "there is no expression",
		"expr:date":                   "is not name = expression",
		"expr:date = nope":            `no such column: "nope" in the output partitioner "nope"; the table has _hoodie_commit_time`,
		"expr:date = dt +":            "unexpected token",
		"expr:a = [id]":               "which is no folder name",
		"expr:a = dt.Nope()":          "output partitioner a = dt.Nope(), row map[dt:",
		"com.example.DatePartitioner": "expr:date = _hoodie_partition_path",
		"org.apache.hudi.utilities.functional.TestHoodieSnapshotExporter$UserDefinedPartitioner": "expr:year = _hoodie_partition_path",
		"com.example.Other": "expr:<name> = <expression over columns and meta columns>",
	} {
		target := filepath.Join(t.TempDir(), "out")
		_, err := export.Run(t.Context(), export.Config{Source: dir, Target: target, Format: export.JSON, Partitioner: partitioner}, local.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", partitioner, err)
		}
		if _, err := os.Stat(target); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: something was written", partitioner)
		}
	}
}

// initial partitions by the first letter of a column.
type initial struct{ column string }

func (p initial) Partition(columns *arrow.Schema) (export.Partitioning, error) {
	if !columns.HasField(p.column) {
		return export.Partitioning{}, fmt.Errorf("no column %s", p.column)
	}
	return export.Partitioning{Names: []string{"initial"}, Read: []string{p.column}, Drop: []string{"price", "_hoodie_file_name"}, Values: func(batch arrow.RecordBatch) ([]arrow.Array, error) {
		b := array.NewStringBuilder(memory.DefaultAllocator)
		defer b.Release()
		for i := range int(batch.NumRows()) {
			b.Append(batch.Column(0).ValueStr(i)[:1])
		}
		return []arrow.Array{b.NewArray()}, nil
	}}, nil
}

// A partitioner of the program that embeds the export.
func TestRegisteredPartitioner(t *testing.T) {
	dir, expect := fixture.Spark(t, "cow_basic_1.2.0")
	header, got := asCSV(t, export.Config{Source: dir, Columns: []string{"id", "price", "dt"}, Partitioner: "com.example.Initial", Partitioners: map[string]export.Partitioner{"com.example.Initial": initial{"name"}}})
	var want []string
	for _, r := range expect.Snapshot.Rows {
		want = append(want, fmt.Sprintf("initial=%s %v,%v", fmt.Sprint(r["name"])[:1], r["id"], r["dt"]))
	}
	slices.Sort(want)
	if header != "id,dt" || !slices.Equal(got, want) {
		t.Errorf("%s\n%q, want\n%q", header, got, want)
	}
}

// madeTable writes a copy-on-write table of so many files with so many rows each: id, and a value that repeats after a while.
func madeTable(t *testing.T, dir string, files, rows, values int) {
	t.Helper()
	ctx := t.Context()
	store, err := disk.New(dir, disk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	avro := `{"type":"record","name":"r","fields":[{"name":"id","type":"long"},{"name":"v","type":["null","string"],"default":null},{"name":"text","type":["null","string"],"default":null}]}`
	if _, err := write.CreateTable(ctx, store, write.Spec{Name: "made", RecordKeyFields: []string{"id"}, Schema: avro}); err != nil {
		t.Fatal(err)
	}
	txn, err := write.Begin(ctx, store, write.Options{Action: timeline.Commit, Operation: "BULK_INSERT", Schema: avro})
	if err != nil {
		t.Fatal(err)
	}
	if err := txn.Inflight(ctx, &timeline.CommitMetadata{}); err != nil {
		t.Fatal(err)
	}
	plain, err := schema.Parse([]byte(avro))
	if err != nil {
		t.Fatal(err)
	}
	full := schema.WithMeta(plain)
	var stats []timeline.WriteStat
	for f := range files {
		d, err := txn.New(ctx, "", write.NewFileID(0), ".parquet", marker.Create)
		if err != nil {
			t.Fatal(err)
		}
		size := writeRows(ctx, t, store, d.Path, full, txn.Instant(), f*rows, rows, values)
		stats = append(stats, timeline.WriteStat{FileID: d.FileID, Path: d.Path, PrevCommit: "null", NumWrites: int64(rows), NumInserts: int64(rows), FileSizeInBytes: size, TotalWriteBytes: size})
	}
	if _, err := txn.Commit(ctx, stats, nil, nil); err != nil {
		t.Fatal(err)
	}
}

func writeRows(ctx context.Context, t *testing.T, store storage.Store, name string, full *schema.Type, instant string, first, rows, values int) int64 {
	t.Helper()
	w, err := basefile.Create(ctx, store, name, basefile.WriterOptions{Schema: full, Codec: "snappy"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	columns, err := full.Arrow()
	if err != nil {
		t.Fatal(err)
	}
	const step = 20000
	for from := first; from < first+rows; from += step {
		b := array.NewRecordBuilder(memory.DefaultAllocator, columns)
		for i := from; i < min(from+step, first+rows); i++ {
			for m, text := range []string{instant, strconv.Itoa(i), strconv.Itoa(i), "", filepath.Base(name)} {
				b.Field(m).(*array.StringBuilder).Append(text)
			}
			b.Field(5).(*array.Int64Builder).Append(int64(i))
			b.Field(6).(*array.StringBuilder).Append("value " + strconv.Itoa(i%values))
			b.Field(7).(*array.StringBuilder).Append("a text that is not all that short, of row " + strconv.Itoa(i*7919))
		}
		batch := b.NewRecordBatch()
		err := w.Write(batch)
		batch.Release()
		b.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
	info, _, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return info.Size
}

const inChild = "SLUICE_TEST_PARTITIONS_CHILD"

// Five thousand folders, each with rows in every part of the table: few open files, memory within bounds, and every row once.
func TestFiveThousandFolders(t *testing.T) {
	if dir := os.Getenv(inChild); dir != "" { // the process whose memory is looked at
		stop, seen := make(chan struct{}), make(chan int)
		go func() {
			most := 0
			for {
				select {
				case <-stop:
					seen <- most
					return
				case <-time.After(5 * time.Millisecond):
				}
				if open, err := os.ReadDir("/proc/self/fd"); err == nil {
					most = max(most, len(open))
				}
			}
		}()
		sum, err := export.Run(t.Context(), export.Config{Source: filepath.Join(dir, "table"), Target: filepath.Join(dir, "out"), Format: export.Format(os.Getenv("FORMAT")), PartitionField: "v"},
			local.Options{Memory: 32 << 20, Workers: 1, TempDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		close(stop)
		fmt.Printf("figures %d %d %d\n", sum.Stats.Rows, sum.Stats.Files, <-seen)
		return
	}
	files, rows, values, mostKiB := 3, 60000, 5000, int64(256<<10)
	if racing.On {
		files, rows, values, mostKiB = 2, 6000, 500, 1<<20
	}
	dir := t.TempDir()
	madeTable(t, filepath.Join(dir, "table"), files, rows, values)
	for _, format := range []export.Format{export.Parquet, export.CSV} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFiveThousandFolders$")
		cmd.Env = append(os.Environ(), inChild+"="+dir, "FORMAT="+string(format), "GOMEMLIMIT=128MiB")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var gotRows, gotFiles, open int
		kib := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
		if runtime.GOOS == "darwin" { // which counts bytes
			kib >>= 10
		}
		_, figures, _ := strings.Cut(string(out), "figures ")
		if _, err := fmt.Sscan(figures, &gotRows, &gotFiles, &open); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Logf("%s: %d files, %d MiB at most, %d open files at most", format, gotFiles, kib>>10, open)
		if gotRows != files*rows || gotFiles != values || kib > mostKiB || open > 70 {
			t.Errorf("%s: %d rows in %d files, %d KiB, %d open files", format, gotRows, gotFiles, kib, open)
		}
		if left, err := filepath.Glob(filepath.Join(dir, "sluice-export-*")); err != nil || len(left) > 0 {
			t.Errorf("local files stay: %v %v", left, err)
		}
		if format == export.CSV {
			checkFolders(t, filepath.Join(dir, "out"), files*rows, values)
		}
		if err := os.RemoveAll(filepath.Join(dir, "out")); err != nil {
			t.Fatal(err)
		}
	}
}

// checkFolders reads everything: each row is in the folder of its value, once, and in order.
func checkFolders(t *testing.T, target string, rows, values int) {
	t.Helper()
	seen := map[int]bool{}
	folders := map[string]bool{}
	_, lines := csvLines(t, target)
	for _, l := range lines {
		value, row, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(l, `"`), "v=value "), " ")
		id, err := strconv.Atoi(row[:strings.IndexByte(row, ',')])
		if err != nil || strconv.Itoa(id%values) != value || seen[id] || !strings.HasSuffix(row, " "+strconv.Itoa(id*7919)) {
			t.Fatalf("row %q: %v", l, err)
		}
		seen[id], folders[value] = true, true
	}
	if len(seen) != rows || len(folders) != values {
		t.Errorf("%d rows in %d folders, want %d in %d", len(seen), len(folders), rows, values)
	}
}

// Rows of many folders that went through local files are those that did not, in every format.
func TestSpilledIsNotSpilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "table")
	madeTable(t, dir, 3, 60000, 40)
	for _, format := range []export.Format{export.Parquet, export.ORC, export.JSON} {
		var want map[string]string
		for _, memory := range []int64{1 << 30, 1 << 20} {
			out, err := disk.New(t.TempDir(), disk.Options{})
			if err != nil {
				t.Fatal(err)
			}
			c := export.Config{Source: dir, Target: filepath.Join(out.URL(), "x"), Format: format, PartitionField: "v", Parallelism: 1}
			if _, err := export.Run(t.Context(), c, local.Options{Memory: memory}); err != nil {
				t.Fatal(err)
			}
			got := contents(t, out, "x")
			if want == nil {
				want = got
			}
			if len(got) != 41 || format != export.Parquet && !maps.Equal(got, want) || !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
				t.Errorf("%s, %d bytes: %d files, %d with much memory, or other content", format, memory, len(got), len(want))
			}
		}
	}
}
