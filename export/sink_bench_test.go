package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/mem"
)

// void takes objects and keeps nothing.
type void struct{ storage.Store }

func (void) Put(_ context.Context, name string, body io.Reader, _ storage.PutOptions) (storage.Info, error) {
	n, err := io.Copy(io.Discard, body)
	return storage.Info{Name: name, Size: n}, err
}

var benchColumns = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "ts", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "qty", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "price", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "amount", Type: &arrow.Decimal128Type{Precision: 12, Scale: 2}, Nullable: true},
	{Name: "at", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Nullable: true},
	{Name: "note", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "open", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	{Name: "shop", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
}, nil)

// benchBatch has rows like those of the benchmark's table, spread over so many shops.
func benchBatch(first, rows, shops int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, benchColumns)
	defer b.Release()
	rnd := rand.New(rand.NewPCG(1, uint64(first)))
	for i := first; i < first+rows; i++ {
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("order-%010d", i))
		b.Field(1).(*array.Int64Builder).Append(1)
		b.Field(2).(*array.Int64Builder).Append(rnd.Int64N(200000) - 100000)
		b.Field(3).(*array.Float64Builder).Append(float64(i) * 1.25)
		b.Field(4).(*array.Decimal128Builder).Append(decimal128.FromI64(int64(i % 100000)))
		b.Field(5).(*array.TimestampBuilder).Append(arrow.Timestamp(1700000000000000 + int64(i)*1000003))
		if i%7 == 0 {
			b.Field(6).AppendNull()
		} else {
			b.Field(6).(*array.StringBuilder).Append(fmt.Sprintf("note %032d", i%50000*7919))
		}
		b.Field(7).(*array.BooleanBuilder).Append(i%3 == 0)
		b.Field(8).(*array.Int32Builder).Append(int32(i % shops))
	}
	return b.NewRecordBatch()
}

// BenchmarkPartitioned writes batches of 64 Ki rows into Parquet files in folders.
func BenchmarkPartitioned(b *testing.B) {
	const rows, batches = 64 << 10, 16
	for _, shops := range []int{1, 2, 50, 1000} {
		b.Run(fmt.Sprintf("%d folders", shops), func(b *testing.B) {
			in := make([]arrow.RecordBatch, batches)
			for i := range in {
				in[i] = benchBatch(i*rows, rows, shops)
			}
			c := Config{Format: Parquet, Target: "mem:x"}
			if err := c.setDefaults(); err != nil {
				b.Fatal(err)
			}
			l := layout{columns: benchColumns, keep: names(benchColumns)}
			if err := l.takeFields([]string{"shop"}, l.keep); err != nil {
				b.Fatal(err)
			}
			j := &job{cfg: c, target: void{mem.New("x")}, layout: l, plan: &plan{Token: "t"}}
			b.ResetTimer()
			for range b.N {
				s := newSink(b.Context(), j, 0, engine.Scope{Memory: 256 << 20, TempDir: b.TempDir()})
				for _, batch := range in {
					if err := s.write(batch); err != nil {
						b.Fatal(err)
					}
				}
				if err := errors.Join(s.finish(), s.abort()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*rows*batches)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
