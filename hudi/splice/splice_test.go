package splice_test

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/hudi/splice"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/storage"
)

// object is a Parquet file in memory.
type object []byte

func (o object) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	return bytes.NewReader(o).ReadAt(p, off)
}
func (o object) Size() int64  { return int64(len(o)) }
func (o object) ETag() string { return "" }
func (o object) Close() error { return nil }

var _ storage.Object = object(nil)

// Every base file that Apache Hudi wrote reads the same after its user columns were spliced into a file of their own.
func TestSplicedFixtures(t *testing.T) {
	copied, refused := 0, map[string]int{}
	for _, name := range fixture.SparkNames(t, "cow_*", "mor_types_*", "mor_legacy_lists_*", "old_cow_*", "cow_timestamp_ntz_*", "bootstrap_full_record_*", "mor_compacted_*") {
		dir, _ := fixture.Spark(t, name)
		for _, file := range baseFiles(t, dir) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			in := open(t, data)
			want := splice.Want{Columns: userColumns(in.Schema())}
			out, reason := tryCopy(t, in, want)
			if reason != "" {
				refused[reason]++
				continue
			}
			copied++
			equalRows(t, name, data, out, want.Columns)
		}
	}
	t.Logf("%d files were copied", copied)
	for why, n := range refused {
		t.Logf("%d files: %s", n, why)
	}
}

func baseFiles(t testing.TB, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == ".hoodie" {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".parquet") && !strings.HasPrefix(filepath.Base(path), ".") {
			out = append(out, path)
		}
		return err
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("base files of %s: %v, %v", dir, out, err)
	}
	return out
}

func userColumns(s *arrow.Schema) *arrow.Schema {
	var keep []arrow.Field
	for _, f := range s.Fields() {
		if !schema.IsMeta(f.Name) {
			keep = append(keep, f)
		}
	}
	return arrow.NewSchema(keep, nil)
}

func open(t testing.TB, data []byte) *splice.File {
	t.Helper()
	f, err := splice.Open(t.Context(), "file.parquet", object(data), basefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// tryCopy splices one file, or says why not.
func tryCopy(t testing.TB, in *splice.File, want splice.Want) (out []byte, reason string) {
	t.Helper()
	p, reason := splice.CanCopy(in, want)
	if reason != "" {
		return nil, reason
	}
	return join(t, p), ""
}

// mover is a target that takes ranges of objects by itself, as a file system does.
type mover struct {
	bytes.Buffer
	ranges int
}

func (m *mover) RangesOf(from storage.Object) func(context.Context, storage.Range) error {
	return func(ctx context.Context, r storage.Range) error {
		m.ranges++
		n, err := m.ReadFrom(io.NewSectionReader(storage.ReaderAt(ctx, from), r.Off, r.Len))
		if err == nil && n < r.Len {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
}

// join splices projections into one file: the same whether the bytes pass through the writer or not.
func join(t testing.TB, parts ...*splice.Projection) []byte {
	t.Helper()
	var through bytes.Buffer
	var moved, checked mover
	var rows int64
	for out, o := range map[io.Writer]splice.WriterOptions{
		&through: {Block: 1000}, &moved: {}, &checked: {Block: 1000, Checksums: true}, // small blocks: page headers fall across them
	} {
		w := splice.NewWriter(out, o)
		for _, p := range parts {
			if err := w.Append(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		rows = w.Rows()
	}
	if rows > 0 && moved.ranges == 0 || checked.ranges > 0 || !bytes.Equal(through.Bytes(), moved.Bytes()) || !bytes.Equal(through.Bytes(), checked.Bytes()) {
		t.Errorf("%d bytes; %d in %d ranges; %d in %d ranges with checksums", through.Len(), moved.Len(), moved.ranges, checked.Len(), checked.ranges)
	}
	return through.Bytes()
}

// equalRows compares the columns of two files by the decoding path, names, types and values.
func equalRows(t testing.TB, what string, a, b []byte, columns *arrow.Schema) {
	t.Helper()
	want, got := rowsOf(t, a, columns), rowsOf(t, b, nil)
	defer release(want)
	defer release(got)
	if len(want) != len(got) {
		t.Fatalf("%s: %d batches, want %d", what, len(got), len(want))
	}
	for i := range want {
		if w, g := want[i].Schema(), got[i].Schema(); !w.Equal(g) {
			t.Fatalf("%s: columns\n%s\nwant\n%s", what, g, w)
		}
		if !array.RecordApproxEqual(want[i], got[i], array.WithNaNsEqual(true), array.WithAbsTolerance(0)) {
			t.Fatalf("%s, batch %d: rows\n%v\nwant\n%v", what, i, got[i], want[i])
		}
	}
}

func rowsOf(t testing.TB, data []byte, columns *arrow.Schema) (out []arrow.RecordBatch) {
	t.Helper()
	f, err := basefile.OpenObject(t.Context(), "file.parquet", object(data), basefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for batch, err := range f.Scan(t.Context(), basefile.ScanOptions{Columns: columns, BatchRows: 100, Alloc: memory.DefaultAllocator}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, batch)
	}
	return out
}

func release(batches []arrow.RecordBatch) {
	for _, b := range batches {
		b.Release()
	}
}
