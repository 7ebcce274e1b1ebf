package basefile

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/metadata"
)

// offsetIndex makes an index as the Parquet library writes it.
func offsetIndex(t testing.TB, offsets []int64) []byte {
	t.Helper()
	var b metadata.OffsetIndexBuilder
	for i, at := range offsets {
		if err := b.AddPage(at, int64(i)*1000, 77); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Finish(0); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := b.WriteTo(&out, nil); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A moved index is, byte for byte, the index that the library writes for the moved pages.
func TestMovedOffsetIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{1, 2, 14, 15, 16, 300} {
		for _, by := range []int64{0, 1, -3, 1 << 20, -1 << 40, 1 << 50} {
			from, to := make([]int64, n), make([]int64, n)
			for i := range from {
				from[i] = r.Int64N(1 << 45)
				to[i] = from[i] + by
			}
			got, err := pageIndex{offset: offsetIndex(t, from), column: []byte("as it is")}.moved(by)
			if err != nil || !bytes.Equal(got.offset, offsetIndex(t, to)) || string(got.column) != "as it is" {
				t.Errorf("%d pages moved by %d: %x, %v", n, by, got.offset, err)
			}
		}
	}
}

func FuzzMovedOffsetIndex(f *testing.F) {
	f.Add(offsetIndex(f, []int64{4, 1000}), int64(5))
	f.Add([]byte{0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x0f}, int64(1))
	f.Fuzz(func(t *testing.T, data []byte, by int64) {
		x, err := pageIndex{offset: data}.moved(by)
		if err != nil {
			return
		}
		if len(x.offset) > len(data)*10+16 {
			t.Fatalf("%d bytes of %d", len(x.offset), len(data))
		}
		if back, err := x.moved(-by); err != nil {
			t.Fatal("what was moved can't be moved back", err, back)
		}
	})
}

// fileMetadata of a written file is what its own reader takes: offsets of copied and own row groups don't overlap.
func checkLayout(t *testing.T, data []byte) {
	t.Helper()
	f, err := OpenBytes(context.Background(), "f.parquet", data, Options{})
	if err != nil {
		t.Fatal(err)
	}
	md := f.(*parquetFile).md
	at := int64(len(magic))
	for g, rg := range md.RowGroups {
		for c, chunk := range rg.Columns {
			start := chunkStart(chunk.MetaData.DataPageOffset, chunk.MetaData.DictionaryPageOffset)
			if start != at {
				t.Errorf("row group %d, column %d begins at %d, want %d", g, c, start, at)
			}
			at = start + chunk.MetaData.TotalCompressedSize
		}
		if rg.Ordinal == nil || int(*rg.Ordinal) != g {
			t.Errorf("row group %d has another number", g)
		}
	}
}
