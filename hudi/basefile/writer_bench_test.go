package basefile_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/storage/local"
)

// Twelve columns of a user, and the five meta columns, as the writer of a table gets them.
const wideAvro = `{"type":"record","name":"w_record","namespace":"hoodie.w","fields":[
	{"name":"id","type":["null","string"],"default":null},{"name":"customer","type":["null","long"],"default":null},{"name":"status","type":["null","string"],"default":null},
	{"name":"price","type":["null",{"type":"fixed","name":"p","size":5,"logicalType":"decimal","precision":10,"scale":2}],"default":null},
	{"name":"qty","type":["null","int"],"default":null},{"name":"ratio","type":["null","double"],"default":null},
	{"name":"at","type":["null",{"type":"long","logicalType":"timestamp-micros"}],"default":null},{"name":"day","type":["null",{"type":"int","logicalType":"date"}],"default":null},
	{"name":"paid","type":["null","boolean"],"default":null},{"name":"note","type":["null","string"],"default":null},
	{"name":"region","type":["null","string"],"default":null},{"name":"ts","type":["null","long"],"default":null}]}`

func wideBatch(tb testing.TB, first, n int) (*schema.Type, arrow.RecordBatch) {
	tb.Helper()
	avro, err := schema.ParseString(wideAvro)
	if err != nil {
		tb.Fatal(err)
	}
	avro = schema.WithMeta(avro)
	s, err := avro.Arrow()
	if err != nil {
		tb.Fatal(err)
	}
	r := rand.New(rand.NewPCG(uint64(first), 3))
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	str := func(i int, v string) { b.Field(i).(*array.StringBuilder).Append(v) }
	for i := first; i < first+n; i++ {
		str(0, "20240418173551906")
		str(1, fmt.Sprintf("20240418173551906_0_%d", i))
		str(2, fmt.Sprintf("order-%010d", i))
		str(3, "region=eu")
		str(4, "a079bdb3-731c-4894-b855-abfcd6921007-0_0-203-274_20240418173551906.parquet")
		str(5, fmt.Sprintf("order-%010d", i))
		b.Field(6).(*array.Int64Builder).Append(r.Int64N(1 << 20))
		str(7, []string{"new", "paid", "sent", "returned"}[r.IntN(4)])
		if err := b.Field(8).AppendValueFromString(fmt.Sprintf("%d.%02d", r.IntN(100000), r.IntN(100))); err != nil {
			tb.Fatal(err)
		}
		b.Field(9).(*array.Int32Builder).Append(int32(r.IntN(100)))
		b.Field(10).(*array.Float64Builder).Append(r.Float64())
		b.Field(11).(*array.TimestampBuilder).Append(arrow.Timestamp(1700000000000000 + r.Int64N(1e13)))
		b.Field(12).(*array.Date32Builder).Append(arrow.Date32(19000 + r.IntN(400)))
		b.Field(13).(*array.BooleanBuilder).Append(r.IntN(2) == 0)
		if i%10 == 0 {
			b.Field(14).AppendNull()
		} else {
			str(14, fmt.Sprintf("note %d of the order", r.IntN(100000)))
		}
		str(15, "eu")
		b.Field(16).(*array.Int64Builder).Append(int64(i))
	}
	return avro, b.NewRecordBatch()
}

func BenchmarkWriter(b *testing.B) {
	const batchRows, batches = 50000, 10
	var avro *schema.Type
	var all [batches]arrow.RecordBatch
	for i := range all {
		avro, all[i] = wideBatch(b, i*batchRows, batchRows)
	}
	store, err := local.New(b.TempDir(), local.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		o    basefile.WriterOptions
	}{
		{"uncompressed", basefile.WriterOptions{Codec: "uncompressed"}},
		{"snappy", basefile.WriterOptions{Codec: "snappy"}},
		{"snappy/2", basefile.WriterOptions{Codec: "snappy", Parallel: 2}},
		{"zstd", basefile.WriterOptions{Codec: "zstd"}},
		{"gzip", basefile.WriterOptions{}},
		{"gzip5", basefile.WriterOptions{Level: 5}},
		{"snappy/nobloom", basefile.WriterOptions{Codec: "snappy"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.o.Schema, c.o.Bloom = avro, basefile.DefaultBloom()
			if c.name == "snappy/nobloom" {
				c.o.Bloom = nil
			}
			size := int64(0)
			cpu := cpuTime()
			b.ResetTimer()
			for range b.N {
				w, err := basefile.Create(context.Background(), store, "f.parquet", c.o)
				if err != nil {
					b.Fatal(err)
				}
				for _, batch := range all {
					if err := w.Write(batch); err != nil {
						b.Fatal(err)
					}
				}
				info, _, err := w.Close()
				if err != nil {
					b.Fatal(err)
				}
				size = info.Size
			}
			rows := float64(b.N) * batchRows * batches
			b.ReportMetric(rows/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(rows/(cpuTime()-cpu).Seconds(), "rows/cpu-s")
			b.ReportMetric(float64(size)*float64(b.N)/b.Elapsed().Seconds(), "bytes/s")
			b.ReportMetric(float64(size)/batchRows/batches, "bytes/row")
		})
	}
}

// An update of neighbouring rows (recent keys) copies every row group but one; one of rows all over the file decodes all. Updated
// rows keep their keys.
func BenchmarkRewrite(b *testing.B) {
	const batchRows, batches = 50000, 10
	store, err := local.New(b.TempDir(), local.Options{})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	avro, _ := wideBatch(b, 0, 1)
	o := basefile.RewriteOptions{WriterOptions: basefile.WriterOptions{Schema: avro, Bloom: basefile.DefaultBloom(), Codec: "snappy", RowGroupBytes: 4 << 20}, FileName: "new.parquet"}
	w, err := basefile.Create(ctx, store, "old.parquet", o.WriterOptions)
	if err != nil {
		b.Fatal(err)
	}
	var all []arrow.RecordBatch
	for i := range batches {
		_, batch := wideBatch(b, i*batchRows, batchRows)
		if err := w.Write(batch); err != nil {
			b.Fatal(err)
		}
		all = append(all, batch)
	}
	if _, _, err := w.Close(); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		rows  int64
		step  int64
		moved int64 // the new rows are those of so many rows before: their keys are others
	}{{"recent 1%", 5000, 1, 0}, {"uniform 1%", 5000, 100, 0}, {"uniform 10%", 50000, 10, 0}, {"uniform 10%, other keys", 50000, 10, 1}} {
		var changes []basefile.Change
		for i := range c.rows {
			row := batchRows*batches - 1 - (c.rows-1-i)*c.step
			if n := len(changes); n == 0 || changes[n-1].Rows[0]/batchRows != row/batchRows {
				changes = append(changes, basefile.Change{})
			}
			last := &changes[len(changes)-1]
			last.Rows = append(last.Rows, row)
		}
		for i := range changes { // the new rows lie one behind the other
			rows := changes[i].Rows
			parts := make([]arrow.RecordBatch, len(rows))
			for k, row := range rows {
				parts[k] = all[row/batchRows].NewSlice(max(row%batchRows-c.moved, 0), max(row%batchRows-c.moved, 0)+1)
			}
			columns := make([]arrow.Array, all[0].NumCols())
			for f := range columns {
				one := make([]arrow.Array, len(parts))
				for k := range parts {
					one[k] = parts[k].Column(f)
				}
				if columns[f], err = array.Concatenate(one, memory.DefaultAllocator); err != nil {
					b.Fatal(err)
				}
			}
			changes[i].Batch = array.NewRecordBatch(all[0].Schema(), columns, int64(len(rows)))
		}
		b.Run(c.name, func(b *testing.B) {
			copied := int64(0)
			b.ReportAllocs()
			cpu := cpuTime()
			for range b.N {
				old, err := basefile.Open(ctx, store, "old.parquet", basefile.Options{})
				if err != nil {
					b.Fatal(err)
				}
				_, sum, err := basefile.Rewrite(ctx, old, store, "new.parquet", func(yield func(basefile.Change, error) bool) {
					for _, change := range changes {
						change.Batch.Retain()
						if !yield(change, nil) {
							return
						}
					}
				}, nil, o)
				if err != nil {
					b.Fatal(err)
				}
				copied = sum.CopiedRows
				if err := old.Close(); err != nil {
					b.Fatal(err)
				}
			}
			rows := float64(b.N) * batchRows * batches
			b.ReportMetric(rows/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(rows/(cpuTime()-cpu).Seconds(), "rows/cpu-s")
			b.ReportMetric(float64(copied)/(batchRows*batches)*100, "%copied")
		})
	}
}
