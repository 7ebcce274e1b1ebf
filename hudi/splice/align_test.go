package splice_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/sluicelake/sluice/hudi/splice"
)

// Row groups of a megabyte begin where they lay in a page of memory, behind zeros that readers skip; smaller ones follow each other.
func TestLargeRowGroupsAreAligned(t *testing.T) {
	for _, c := range []struct{ rows, group, padded int }{{120_000, 50_000, 2}, {3000, 1000, 0}} {
		path := filepath.Join(t.TempDir(), "in.parquet")
		table(t, path, c.rows, c.group)
		in, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f := open(t, in)
		p, why := splice.CanCopy(f, splice.Want{Columns: userColumns(f.Schema())})
		if why != "" {
			t.Fatal(why)
		}
		out := join(t, p, p)
		equalRows(t, "one copy", in, join(t, p), userColumns(f.Schema()))
		from, to := starts(t, in, 5), starts(t, out, 0)
		if len(to) != 2*len(from) {
			t.Fatalf("%d row groups, want twice %d", len(to), len(from))
		}
		padded := 0
		for i, at := range to {
			if at.bytes < 1<<20 {
				continue
			}
			padded++
			if before := from[i%len(from)].at; (at.at-before)%4096 != 0 {
				t.Errorf("row group %d of %d bytes lies at %d, it lay at %d", i, at.bytes, at.at, before)
			}
		}
		if padded != 2*c.padded {
			t.Errorf("%d row groups have a megabyte, the test wants %d", padded, 2*c.padded)
		}
	}
}

type start struct{ at, bytes int64 }

// starts says where the chunks of each row group begin, from a column on, and how long they are.
func starts(t *testing.T, data []byte, column int) (out []start) {
	t.Helper()
	f, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.NumRowGroups() {
		var s start
		for c := column; c < f.MetaData().Schema.NumColumns(); c++ {
			chunk, err := f.MetaData().RowGroup(i).ColumnChunk(c)
			if err != nil {
				t.Fatal(err)
			}
			at := chunk.DataPageOffset()
			if chunk.HasDictionaryPage() {
				at = chunk.DictionaryPageOffset()
			}
			if s.bytes == 0 {
				s.at = at
			}
			s.bytes += chunk.TotalCompressedSize()
		}
		out = append(out, s)
	}
	return out
}
