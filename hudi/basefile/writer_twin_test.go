package basefile_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/internal/gather"
)

// Columns whose arrays are those of the record keys share their pages. Whenever that ends within a column chunk, and whether it begins
// again, every column has its values, statistics and page indexes; and a file of such arrays alone has chunks of the same bytes.
func TestColumnsThatAreTheKeys(t *testing.T) {
	avro, err := schema.ParseString(`{"type":"record","name":"r","fields":[{"name":"id","type":["null","string"]},{"name":"other","type":["null","string"]},
		{"name":"must","type":"string"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	avro = schema.WithMeta(avro)
	full, err := avro.Arrow()
	if err != nil {
		t.Fatal(err)
	}
	columns := arrow.NewSchema([]arrow.Field{{Name: "#other", Type: arrow.PrimitiveTypes.Int32}, {Name: schema.RecordKey, Type: arrow.BinaryTypes.String, Nullable: true}, full.Field(5), full.Field(6), full.Field(7)}, nil)
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		always := seed%8 == 0
		batch := func() arrow.RecordBatch {
			n := 1 + r.IntN(400)
			numbers, keys := array.NewInt32Builder(memory.DefaultAllocator), array.NewStringBuilder(memory.DefaultAllocator)
			for range n {
				numbers.Append(0)
				keys.Append(fmt.Sprintf("order-%06d", r.IntN(1_000_000>>(4*r.IntN(5)))))
			}
			key := keys.NewArray()
			column := func(null bool) arrow.Array {
				if always || r.IntN(3) > 0 {
					return key
				}
				b := array.NewStringBuilder(memory.DefaultAllocator)
				for i := range n {
					switch {
					case null && r.IntN(9) == 0:
						b.AppendNull()
					case r.IntN(4) == 0:
						b.Append("else")
					default:
						b.Append(key.(*array.String).Value(i))
					}
				}
				return b.NewArray()
			}
			return array.NewRecordBatch(columns, []arrow.Array{numbers.NewArray(), key, column(true), column(true), column(false)}, int64(n))
		}
		var batches []arrow.RecordBatch
		var calls [][]basefile.Picked
		var runs []gather.Run
		for range 1 + r.IntN(8) {
			batches = append(batches, batch())
			last := len(batches) - 1
			picks := []basefile.Picked{{Batch: batches[last]}}
			runs = append(runs, gather.Run{Src: int32(last), N: int32(batches[last].NumRows())})
			if last > 0 && r.IntN(2) == 0 {
				src := r.IntN(last)
				row := r.Int32N(int32(batches[src].NumRows()))
				picks, runs = append(picks, basefile.Picked{Batch: batches[src], Rows: []int32{row}}), append(runs, gather.Run{Src: int32(src), Row: row, N: 1})
			}
			calls = append(calls, picks)
		}
		stamp := basefile.Stamp{CommitTime: "20240418173551906", Partition: "p", FileName: "f.parquet", SeqnoPrefix: "20240418173551906_0_"}
		alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
		data, _ := pickedBy(t, basefile.WriterOptions{Schema: avro, Codec: "snappy", Bloom: basefile.DefaultBloom(), Alloc: alloc, Stamp: &stamp, Parallel: int(seed % 3),
			PageBytes: []int64{200, 3000, 0}[seed%3], RowGroupBytes: []int64{8000, 0}[seed%2]}, calls)
		alloc.AssertSize(t, 0)
		basefile.CheckLayout(t, data)
		checkStatistics(t, data)
		want, got := putTogether(t, full, batches, runs, stamp), together(t, opened(t, data), full)
		for i, f := range full.Fields() {
			if texted(got.Column(i)) != texted(want.Column(i)) {
				t.Fatalf("seed %d: column %s has other values", seed, f.Name)
			}
		}
		f, err := file.NewParquetReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		for g := range f.NumRowGroups() {
			chunk := func(i int) []byte {
				md, err := f.MetaData().RowGroup(g).ColumnChunk(i)
				if err != nil {
					t.Fatal(err)
				}
				return data[md.DataPageOffset():][:md.TotalCompressedSize()]
			}
			if always && (!bytes.Equal(chunk(2), chunk(5)) || !bytes.Equal(chunk(2), chunk(6))) {
				t.Errorf("seed %d, row group %d: the pages of the keys and of the columns that are the keys differ", seed, g)
			}
		}
	}
}
