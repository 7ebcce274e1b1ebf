package splice_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"

	"github.com/sluicelake/sluice/hudi/splice"
	"github.com/sluicelake/sluice/internal/fixture"
)

// order has columns before, between and behind those that are kept, flat and nested.
type order struct {
	Commit string            `parquet:"_hoodie_commit_time"`
	ID     int64             `parquet:"id,delta"`
	File   string            `parquet:"_hoodie_file_name,dict"`
	Name   *string           `parquet:"name,optional,dict"`
	Qty    *int32            `parquet:"qty,optional"`
	Price  float64           `parquet:"price"`
	Lines  []line            `parquet:"lines,list"`
	Attrs  map[string]string `parquet:"attrs"`
	Key    string            `parquet:"_hoodie_record_key"`
}

type line struct {
	SKU   string  `parquet:"sku"`
	Count *int64  `parquet:"count,optional"`
	Notes []int32 `parquet:"notes,list"`
}

const orders = 5000

// write makes a file of several row groups with many small pages, page indexes, bloom filters and checksums. The writer and
// the reader below are not those that Sluice uses.
func write(t testing.TB, from int, codec compress.Codec, version int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[order](&b, parquet.Compression(codec), parquet.DataPageVersion(version), parquet.PageBufferSize(2000),
		parquet.BloomFilters(parquet.SplitBlockFilter(10, "id"), parquet.SplitBlockFilter(10, "name"), parquet.SplitBlockFilter(10, "_hoodie_record_key")),
		parquet.SortingWriterConfig(parquet.SortingColumns(parquet.Ascending("id"), parquet.Ascending("_hoodie_record_key"), parquet.Descending("qty"))),
		parquet.MaxRowsPerRowGroup(orders/3), parquet.KeyValueMetadata("org.apache.hudi.bloomfilter", "x"))
	for i := range orders {
		n := int64(from + i)
		o := order{Commit: "20260101000000000", ID: n * 2, File: "f", Key: fmt.Sprint(n), Price: float64(n) / 4}
		if i%7 != 0 {
			name := fmt.Sprintf("name %d", n%500)
			o.Name = &name
		}
		if i%3 == 0 {
			q := int32(n % 100)
			o.Qty = &q
		}
		for j := range i % 4 {
			l := line{SKU: fmt.Sprint("sku", j)}
			if j > 0 {
				l.Count, l.Notes = &n, []int32{int32(i), int32(j)}
			}
			o.Lines = append(o.Lines, l)
		}
		if i%5 == 0 {
			o.Attrs = map[string]string{"k": fmt.Sprint(i)}
		}
		if _, err := w.Write([]order{o}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var kept = []string{"id", "name", "qty", "price", "lines", "attrs"}

// What two files become: the pages of both by their offset indexes, the bounds of both column indexes, filters that know
// every value.
func TestIndexesAndBloomFilters(t *testing.T) {
	for _, c := range []struct {
		codec   compress.Codec
		name    string
		version int
	}{
		{&parquet.Snappy, "snappy", 1}, {&parquet.Gzip, "gzip", 2}, {&parquet.Zstd, "zstd", 1}, {&parquet.Uncompressed, "none", 2},
	} {
		t.Run(fmt.Sprintf("%s, pages of version %d", c.name, c.version), func(t *testing.T) {
			one, two := write(t, 0, c.codec, c.version), write(t, orders, c.codec, c.version)
			columns := userColumns(open(t, one).Schema())
			var parts []*splice.Projection
			for _, data := range [][]byte{one, two} {
				p, why := splice.CanCopy(open(t, data), splice.Want{Columns: columns, Codec: c.name})
				if why != "" {
					t.Fatal(why)
				}
				parts = append(parts, p)
			}
			out := join(t, parts...)
			equalRows(t, "first file", one, join(t, parts[0]), columns)
			sameChunks(t, [][]byte{one, two}, out)
		})
	}
}

// sameChunks compares the kept chunks of the sources with those of the output.
func sameChunks(t *testing.T, sources [][]byte, out []byte) {
	t.Helper()
	var want []parquet.ColumnChunk
	leaves := 0
	for _, data := range sources {
		f := openPeer(t, data)
		paths := f.Schema().Columns()
		leaves = 0
		for _, g := range f.RowGroups() {
			leaves = 0
			for i, c := range g.ColumnChunks() {
				if slices.Contains(kept, paths[i][0]) {
					want = append(want, c)
					leaves++
				}
			}
		}
	}
	f := openPeer(t, out)
	var got []parquet.ColumnChunk
	for i, g := range f.RowGroups() {
		if n := len(g.ColumnChunks()); n != leaves {
			t.Fatalf("row group %d has %d chunks, want %d", i, n, leaves)
		}
		// Sorted by id, then by a column that is gone, then by qty: only the first is left.
		if s := g.SortingColumns(); len(s) != 1 || s[0].Path()[0] != "id" {
			t.Errorf("row group %d is sorted by %v", i, s)
		}
		got = append(got, g.ColumnChunks()...)
	}
	if len(got) != len(want) || len(got) == 0 {
		t.Fatalf("%d chunks, want %d", len(got), len(want))
	}
	blooms, pages := 0, 0
	for i := range got {
		pages += samePages(t, want[i], got[i])
		if filter := want[i].BloomFilter(); filter != nil {
			blooms++
			sameBloom(t, want[i], got[i].BloomFilter())
		}
	}
	if blooms == 0 || pages < 5*len(got) {
		t.Errorf("%d filters and %d pages in %d chunks: the test compares too little", blooms, pages, len(got))
	}
	if f.NumRows() != orders*int64(len(sources)) {
		t.Errorf("%d rows", f.NumRows())
	}
	if kv := f.Metadata().KeyValueMetadata; len(kv) != 0 {
		t.Errorf("key-value metadata %v", kv)
	}
}

func openPeer(t *testing.T, data []byte) *parquet.File {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// samePages reads every page of both chunks for itself, by the offset index, and compares it and its bounds.
func samePages(t *testing.T, want, got parquet.ColumnChunk) int {
	t.Helper()
	wantAt, err := want.OffsetIndex()
	if err != nil {
		t.Fatal(err)
	}
	gotAt, err := got.OffsetIndex()
	if err != nil {
		t.Fatal(err)
	}
	wantBounds, err := want.ColumnIndex()
	if err != nil {
		t.Fatal(err)
	}
	gotBounds, err := got.ColumnIndex()
	if err != nil {
		t.Fatal(err)
	}
	if wantAt.NumPages() != gotAt.NumPages() {
		t.Fatalf("%d pages, want %d", gotAt.NumPages(), wantAt.NumPages())
	}
	for i := range wantAt.NumPages() {
		if wantAt.FirstRowIndex(i) != gotAt.FirstRowIndex(i) || wantAt.CompressedPageSize(i) != gotAt.CompressedPageSize(i) {
			t.Fatalf("page %d begins with row %d", i, gotAt.FirstRowIndex(i))
		}
		if w, g := pageAt(t, want, wantAt.FirstRowIndex(i)), pageAt(t, got, gotAt.FirstRowIndex(i)); w != g {
			t.Fatalf("page %d: %s, want %s", i, g, w)
		}
		w := fmt.Sprint(wantBounds.NullPage(i), wantBounds.NullCount(i), wantBounds.MinValue(i), wantBounds.MaxValue(i))
		if g := fmt.Sprint(gotBounds.NullPage(i), gotBounds.NullCount(i), gotBounds.MinValue(i), gotBounds.MaxValue(i)); w != g {
			t.Fatalf("bounds of page %d: %s, want %s", i, g, w)
		}
	}
	return wantAt.NumPages()
}

// pageAt is the text of the page that begins with a row.
func pageAt(t *testing.T, c parquet.ColumnChunk, row int64) string {
	t.Helper()
	pages := c.Pages()
	defer func() { _ = pages.Close() }()
	if err := pages.SeekToRow(row); err != nil {
		t.Fatal(err)
	}
	p, err := pages.ReadPage()
	if err != nil {
		t.Fatal(err)
	}
	defer parquet.Release(p)
	return fmt.Sprint(valuesOf(t, p))
}

func valuesOf(t *testing.T, p parquet.Page) (out []string) {
	t.Helper()
	values := make([]parquet.Value, p.NumValues())
	n, err := p.Values().ReadValues(values)
	if err != nil && err != io.EOF || n != len(values) {
		t.Fatalf("%d of %d values: %v", n, len(values), err)
	}
	for _, v := range values {
		out = append(out, fmt.Sprintf("%v/%d/%d", v, v.RepetitionLevel(), v.DefinitionLevel()))
	}
	return out
}

// sameBloom asks the filter for every value of the chunk, and for values that are not there.
func sameBloom(t *testing.T, c parquet.ColumnChunk, filter parquet.BloomFilter) {
	t.Helper()
	if filter == nil {
		t.Fatal("no bloom filter")
	}
	pages := c.Pages()
	defer func() { _ = pages.Close() }()
	absent := 0
	for {
		p, err := pages.ReadPage()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		values := make([]parquet.Value, p.NumValues())
		_, _ = p.Values().ReadValues(values)
		for _, v := range values {
			if v.IsNull() {
				continue
			}
			if ok, err := filter.Check(v); err != nil || !ok {
				t.Fatalf("the filter does not know %v: %v", v, err)
			}
			other := parquet.ValueOf("absent " + v.String())
			if v.Kind() == parquet.Int64 {
				other = parquet.ValueOf(v.Int64() + 1)
			}
			if ok, _ := filter.Check(other); ok {
				absent++
			}
		}
		parquet.Release(p)
	}
	if absent > orders/20 {
		t.Errorf("the filter claims to know %d values that are not there", absent)
	}
}

// The page indexes of a file that Apache Hudi wrote, with several row groups.
func TestIndexesOfFixture(t *testing.T) {
	dir, _ := fixture.Spark(t, "cow_row_groups_1.2.0")
	groups := 0
	for _, file := range baseFiles(t, dir) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out, why := tryCopy(t, open(t, data), splice.Want{Columns: userColumns(open(t, data).Schema())})
		if why != "" {
			t.Fatal(why)
		}
		from, to := openPeer(t, data), openPeer(t, out)
		for g := range to.RowGroups() {
			groups++
			skip := len(from.Schema().Columns()) - len(to.Schema().Columns()) // the meta columns in front
			for i, c := range to.RowGroups()[g].ColumnChunks() {
				samePages(t, from.RowGroups()[g].ColumnChunks()[skip+i], c)
			}
		}
	}
	if groups < 2 {
		t.Errorf("%d row groups: the test compares too little", groups)
	}
}
