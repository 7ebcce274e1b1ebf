package splice_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/hudi/splice"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/local"
)

// BenchmarkSplice copies the user columns of a file of some 90 MB through the stores, and beside it the whole file, as cp and
// an export in the table's own format do. Bytes are those of the source in all three.
func BenchmarkSplice(b *testing.B) {
	dir := b.TempDir()
	size := table(b, filepath.Join(dir, "in.parquet"), 1_500_000, 250_000)
	store, err := local.New(dir, local.Options{})
	if err != nil {
		b.Fatal(err)
	}
	run := func(name string, one func() error) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				if err := one(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("splice", func() error { return spliceObject(b, store, "in.parquet", "out.parquet") })
	run("copy through the store", func() error { return copyObject(b, store, "in.parquet", "out.parquet") })
	run("io.Copy", func() error { return copyFile(filepath.Join(dir, "in.parquet"), filepath.Join(dir, "out.parquet")) })
}

func spliceObject(b *testing.B, store storage.Store, from, to string) error {
	obj, err := store.Open(b.Context(), from)
	if err != nil {
		return err
	}
	f, err := splice.Open(b.Context(), from, obj, basefile.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	p, why := splice.CanCopy(f, splice.Want{Columns: userColumns(f.Schema())})
	if why != "" {
		return fmt.Errorf("refused: %s", why)
	}
	body := storage.Create(b.Context(), store, to, storage.PutOptions{})
	defer body.Abort()
	w := splice.NewWriter(body, splice.WriterOptions{})
	if err := w.Append(b.Context(), p); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return body.Close()
}

func copyObject(b *testing.B, store storage.Store, from, to string) error {
	obj, err := store.Open(b.Context(), from)
	if err != nil {
		return err
	}
	defer func() { _ = obj.Close() }()
	body := io.NewSectionReader(storage.ReaderAt(b.Context(), obj), 0, obj.Size())
	_, err = store.Put(b.Context(), to, body, storage.PutOptions{Size: obj.Size()})
	return err
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := out.Close(); err == nil {
			err = closeErr
		}
	}()
	_, err = io.Copy(out, in)
	return err
}

// table writes a base file's worth of rows: the five meta columns, and six of numbers and text.
func table(b testing.TB, path string, rows, group int) int64 {
	b.Helper()
	var fields []arrow.Field
	for _, name := range schema.MetaColumns {
		fields = append(fields, arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: true})
	}
	for _, name := range []string{"id", "qty", "ts"} {
		fields = append(fields, arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	}
	fields = append(fields, arrow.Field{Name: "price", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		arrow.Field{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true}, arrow.Field{Name: "note", Type: arrow.BinaryTypes.String, Nullable: true})
	s := arrow.NewSchema(fields, nil)
	out, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Snappy), parquet.WithMaxRowGroupLength(int64(group)), parquet.WithPageIndexEnabled(true))
	w, err := pqarrow.NewFileWriter(s, out, props, pqarrow.DefaultWriterProps())
	if err != nil {
		b.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for at := 0; at < rows; at += group {
		batch := rowsAt(s, random, at, min(group, rows-at))
		if err := w.Write(batch); err != nil {
			b.Fatal(err)
		}
		batch.Release()
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	return info.Size()
}

func rowsAt(s *arrow.Schema, random *rand.Rand, from, n int) arrow.RecordBatch {
	rb := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer rb.Release()
	for i := from; i < from+n; i++ {
		for c, text := range []string{"20260101000000000", fmt.Sprintf("20260101000000000_0_%d", i), fmt.Sprintf("id:%d", i), "region=eu", "5d2c9bd1-0_0-1-2_20260101000000000.parquet"} {
			rb.Field(c).(*array.StringBuilder).Append(text)
		}
		for c, v := range []int64{int64(i), random.Int64N(100), random.Int64N(1 << 40)} {
			rb.Field(5 + c).(*array.Int64Builder).Append(v)
		}
		rb.Field(8).(*array.Float64Builder).Append(random.Float64())
		rb.Field(9).(*array.StringBuilder).Append(fmt.Sprintf("name %d", random.IntN(1000)))
		rb.Field(10).(*array.StringBuilder).Append(fmt.Sprintf("a note of its own, %x", random.Int64()))
	}
	return rb.NewRecordBatch()
}
