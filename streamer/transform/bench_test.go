package transform_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/sluicelake/sluice/streamer/transform"
)

// orders makes batches as a change file gives them: two numbers, a double, a short and a longer text, a timestamp, a struct.
func orders(batches, rows int) (*arrow.Schema, []arrow.RecordBatch) {
	s := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "qty", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, {Name: "price", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "region", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "note", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "ts", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Nullable: true},
		{Name: "place", Type: arrow.StructOf(arrow.Field{Name: "city", Type: arrow.BinaryTypes.String, Nullable: true}, arrow.Field{Name: "zip", Type: arrow.PrimitiveTypes.Int32, Nullable: true}), Nullable: true},
	}, nil)
	var list []arrow.RecordBatch
	for n := range batches {
		b := array.NewRecordBuilder(memory.DefaultAllocator, s)
		place := b.Field(6).(*array.StructBuilder)
		for i := range rows {
			k := n*rows + i
			b.Field(0).(*array.Int64Builder).Append(int64(k))
			b.Field(1).(*array.Int32Builder).Append(int32(k % 100))
			b.Field(2).(*array.Float64Builder).Append(float64(k) / 8)
			b.Field(3).(*array.StringBuilder).Append([]string{"eu", "us", "apac"}[k%3])
			if k%10 == 0 {
				b.Field(4).AppendNull()
			} else {
				b.Field(4).(*array.StringBuilder).Append(fmt.Sprintf("the note of the order %d", k))
			}
			b.Field(5).(*array.TimestampBuilder).Append(arrow.Timestamp(1700000000000000 + int64(k)*1000003))
			place.AppendValues([]bool{k%5 != 0})
			place.FieldBuilder(0).(*array.StringBuilder).Append("Ulm")
			place.FieldBuilder(1).(*array.Int32Builder).Append(int32(k))
		}
		list = append(list, b.NewRecordBatch())
		b.Release()
	}
	return s, list
}

func benchmark(b *testing.B, class string, props map[string]string) {
	const batches, rows = 40, 25000
	in, list := orders(batches, rows)
	tr, err := transform.New([]string{class}, props, transform.Options{Threads: runtime.GOMAXPROCS(0)})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for b.Loop() {
		_, result, err := tr.Apply(context.Background(), in, stream(list...))
		if err != nil {
			b.Fatal(err)
		}
		n := int64(0)
		for batch, err := range result {
			if err != nil {
				b.Fatal(err)
			}
			n += batch.NumRows()
			batch.Release()
		}
		if n == 0 {
			b.Fatal("no rows")
		}
	}
	b.ReportMetric(float64(batches*rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkFlatten(b *testing.B) { benchmark(b, "flatten", nil) }
func BenchmarkAWSDms(b *testing.B)  { benchmark(b, "dms", nil) }

func BenchmarkAddColumns(b *testing.B) {
	benchmark(b, "add-columns", map[string]string{"sluice.add.columns": "total double = price * qty"})
}
