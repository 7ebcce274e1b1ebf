package orc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// orders is a table of eight mixed columns, in batches of 8192 rows.
func orders(rows int) (*arrow.Schema, []arrow.RecordBatch) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "quantity", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "price", Type: arrow.PrimitiveTypes.Float64}, {Name: "amount", Type: &arrow.Decimal128Type{Precision: 12, Scale: 2}},
		{Name: "region", Type: arrow.BinaryTypes.String}, {Name: "customer", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "day", Type: arrow.FixedWidthTypes.Date32}, {Name: "at", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: utc}},
	}, nil)
	r := rand.New(rand.NewPCG(1, 1))
	regions := []string{"europe", "america", "asia", "africa", "oceania"}
	var batches []arrow.RecordBatch
	for from := 0; from < rows; from += DefaultBatchRows {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for i := from; i < min(from+DefaultBatchRows, rows); i++ {
			b.Field(0).(*array.Int64Builder).Append(int64(i))
			if i%20 == 7 {
				b.Field(1).AppendNull()
			} else {
				b.Field(1).(*array.Int32Builder).Append(r.Int32N(1000))
			}
			b.Field(2).(*array.Float64Builder).Append(float64(r.IntN(100_000)) / 100)
			b.Field(3).(*array.Decimal128Builder).Append(decimal128.FromI64(r.Int64N(10_000_000)))
			b.Field(4).(*array.StringBuilder).Append(regions[r.IntN(len(regions))])
			if i%50 == 3 {
				b.Field(5).AppendNull()
			} else {
				b.Field(5).(*array.StringBuilder).Append(fmt.Sprintf("customer-%08d", r.IntN(50_000_000)))
			}
			b.Field(6).(*array.Date32Builder).Append(arrow.Date32(19_000 + i/5000))
			b.Field(7).(*array.TimestampBuilder).Append(arrow.Timestamp(1_700_000_000_000_000 + int64(i)*1_234_567))
		}
		batches = append(batches, b.NewRecordBatch())
		b.Release()
	}
	return schema, batches
}

const benchRows = 400_000

func BenchmarkWrite(b *testing.B) {
	schema, batches := orders(benchRows)
	for _, c := range codecs {
		b.Run(c.String(), func(b *testing.B) {
			b.ReportAllocs()
			size := int64(0)
			for b.Loop() {
				w, err := NewWriter(io.Discard, schema, WriterOptions{Compression: c})
				if err != nil {
					b.Fatal(err)
				}
				for _, batch := range batches {
					if err := w.Write(batch); err != nil {
						b.Fatal(err)
					}
				}
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
				size = w.at
			}
			b.ReportMetric(float64(benchRows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(size)/benchRows, "bytes/row")
		})
	}
}

func BenchmarkRead(b *testing.B) {
	schema, batches := orders(benchRows)
	for _, c := range codecs {
		var buf bytes.Buffer
		w, err := NewWriter(&buf, schema, WriterOptions{Compression: c})
		if err != nil {
			b.Fatal(err)
		}
		for _, batch := range batches {
			if err := w.Write(batch); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
		b.Run(c.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(buf.Len()))
			for b.Loop() {
				r, err := NewReader(bytes.NewReader(buf.Bytes()), int64(buf.Len()), ReaderOptions{})
				if err != nil {
					b.Fatal(err)
				}
				rows := int64(0)
				for batch, err := range r.Scan(context.Background(), ScanOptions{}) {
					if err != nil {
						b.Fatal(err)
					}
					rows += batch.NumRows()
					batch.Release()
				}
				if rows != benchRows {
					b.Fatalf("%d rows", rows)
				}
			}
			b.ReportMetric(float64(benchRows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
