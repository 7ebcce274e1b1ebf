package basefile_test

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	pq "github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/predicate"
	"github.com/sluicelake/sluice/storage/mem"
)

// smallFile has nested and flat columns, nulls, a dictionary, and a page index.
func smallFile(t testing.TB) []byte {
	props := parquet.NewWriterProperties(parquet.WithPageIndexEnabled(true), parquet.WithCompression(compress.Codecs.Snappy))
	return write(t, props, []pq.Node{
		leaf("id", required, parquet.Types.Int32, nil, 0),
		leaf("name", optional, parquet.Types.ByteArray, pq.StringLogicalType{}, -1),
		group("l", optional, pq.NewListLogicalType(), group("list", repeated, nil, leaf("element", optional, parquet.Types.Int64, nil, 0))),
		leaf("d", optional, parquet.Types.FixedLenByteArray, pq.NewDecimalLogicalType(5, 2), 3),
	}, chunk{[]int32{1, 2, 3}, nil, nil}, chunk{texts("A", "A"), []int16{1, 0, 1}, nil}, chunk{[]int64{1, 2}, []int16{3, 3, 1, 0}, []int16{0, 1, 0, 0}},
		chunk{bigEndian(3, 5, -5), []int16{1, 1, 0}, nil})
}

// drain opens and scans everything, with and without a filter, and gives the first error.
func drain(data []byte) error {
	ctx := context.Background()
	f, err := basefile.OpenBytes(ctx, "damaged.parquet", data, basefile.Options{})
	if err != nil {
		return err
	}
	if _, err := f.AvroSchema(); err != nil && !strings.Contains(err.Error(), "damaged.parquet") {
		return errors.New("schema error without a file: " + err.Error())
	}
	var first error
	for _, o := range []basefile.ScanOptions{{}, {Filter: predicate.Gt("id", 1)}} {
		for b, err := range f.Scan(ctx, o) {
			if err != nil {
				if !strings.Contains(err.Error(), "damaged.parquet") && !errors.Is(err, predicate.ErrPredicate) {
					return errors.New("error without a file: " + err.Error())
				}
				first = err
				break
			}
			b.Release()
		}
	}
	return first
}

// A file that was cut anywhere is an error that says so; so are files of other formats, empty ones and wild lengths.
func TestDamagedFiles(t *testing.T) {
	data := smallFile(t)
	if err := drain(data); err != nil {
		t.Fatal(err)
	}
	for cut := range len(data) {
		if err := drain(data[:cut]); !errors.Is(err, basefile.ErrDamaged) || !strings.Contains(err.Error(), "damaged.parquet") {
			t.Fatalf("cut at %d: %v", cut, err)
		}
	}
	footer := func(length uint32) []byte {
		b := append([]byte("PAR1"), make([]byte, 100)...)
		return append(binary.LittleEndian.AppendUint32(b, length), "PAR1"...)
	}
	for name, bad := range map[string][]byte{"empty footer": footer(0), "long footer": footer(1 << 31), "zeros": footer(100), "orc": []byte("ORC and some more bytes"), "csv": []byte(strings.Repeat("a,b,c\n", 20))} {
		if err := drain(bad); !errors.Is(err, basefile.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := drain(append(footer(10)[:108], "PARE"...)); !errors.Is(err, basefile.ErrUnsupported) {
		t.Errorf("encrypted: %v", err)
	}
}

// Any byte of a file may be wrong: it reads, or gives an error that names the file, without a panic or a large allocation.
func TestFlippedBytes(t *testing.T) {
	data := smallFile(t)
	var before, after runtime.MemStats
	for i := range data {
		for _, x := range []byte{0xff, 0x01} {
			bad := append([]byte(nil), data...)
			bad[i] ^= x
			runtime.ReadMemStats(&before)
			err := drain(bad)
			runtime.ReadMemStats(&after)
			if err != nil && strings.HasPrefix(err.Error(), "error without") {
				t.Fatalf("byte %d: %v", i, err)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
				t.Fatalf("byte %d ^ %02x: %d MiB were allocated (%v)", i, x, used>>20, err)
			}
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(smallFile(f))
	f.Add(ordersFile(f, 20, 10, compress.Codecs.Gzip))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<20 {
			return
		}
		if err := drain(data); err != nil && strings.HasPrefix(err.Error(), "error without") {
			t.Fatal(err)
		}
	})
}

// Formats that are not Parquet are refused by a typed error, before anything is read; they can be plugged in.
func TestOtherFormats(t *testing.T) {
	store := mem.New("t")
	for _, name := range []string{"f.orc", "f.hfile"} {
		if _, err := basefile.Open(context.Background(), store, name, basefile.Options{}); !errors.Is(err, basefile.ErrUnsupported) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := basefile.Open(context.Background(), store, "none.parquet", basefile.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// What was allocated is given back when a scan is left early or fails.
func TestScanGivesMemoryBack(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer alloc.AssertSize(t, 0)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	data := ordersFile(t, 1000, 400, compress.Codecs.Snappy)
	f, err := basefile.OpenBytes(ctx, "f.parquet", data, basefile.Options{Alloc: alloc})
	if err != nil {
		t.Fatal(err)
	}
	for b, err := range f.Scan(ctx, basefile.ScanOptions{BatchRows: 10}) {
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
		break
	}
	var last error
	n := 0
	for b, err := range f.Scan(ctx, basefile.ScanOptions{BatchRows: 10}) {
		if last = err; err != nil {
			break
		}
		n++
		b.Release()
		cancel()
	}
	if !errors.Is(last, context.Canceled) || n != 1 {
		t.Errorf("%d batches, then %v", n, last)
	}
}
