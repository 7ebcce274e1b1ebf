package basefile_test

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/schema"
	"golang.org/x/sys/unix"
)

// ordersSchema is the shape of a usual table: five meta columns and eight of the user's.
func ordersSchema() *arrow.Schema {
	text := arrow.BinaryTypes.String
	var fields []arrow.Field
	for _, m := range schema.MetaColumns {
		fields = append(fields, arrow.Field{Name: m, Type: text, Nullable: true})
	}
	return arrow.NewSchema(append(fields,
		arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		arrow.Field{Name: "customer", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		arrow.Field{Name: "status", Type: text, Nullable: true},
		arrow.Field{Name: "price", Type: &arrow.Decimal128Type{Precision: 10, Scale: 2}, Nullable: true},
		arrow.Field{Name: "ratio", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		arrow.Field{Name: "at", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Nullable: true},
		arrow.Field{Name: "note", Type: text, Nullable: true},
		arrow.Field{Name: "deleted", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	), nil)
}

// ordersFile writes n rows as one row group per groupRows.
func ordersFile(tb testing.TB, n, groupRows int, codec compress.Compression) []byte {
	tb.Helper()
	s := ordersSchema()
	b := array.NewRecordBuilder(memory.NewGoAllocator(), s)
	defer b.Release()
	var out bytes.Buffer
	props := parquet.NewWriterProperties(parquet.WithCompression(codec), parquet.WithMaxRowGroupLength(int64(groupRows)), parquet.WithStats(true), parquet.WithPageIndexEnabled(true))
	w, err := pqarrow.NewFileWriter(s, &out, props, pqarrow.DefaultWriterProps())
	if err != nil {
		tb.Fatal(err)
	}
	statuses := []string{"new", "paid", "sent", "returned"}
	for at := 0; at < n; {
		for range min(groupRows, 50000, n-at) {
			i := at
			b.Field(0).(*array.StringBuilder).Append("20240418173550988")
			b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("20240418173550988_0_%d", i))
			b.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("order-%010d", i))
			b.Field(3).(*array.StringBuilder).Append("region=eu")
			b.Field(4).(*array.StringBuilder).Append("a079bdb3-731c-4894-b855-abfcd6921007-0_0-203-274_20240418173551906.parquet")
			b.Field(5).(*array.Int64Builder).Append(int64(i))
			b.Field(6).(*array.Int32Builder).Append(int32(i * 7919 % 100003))
			b.Field(7).(*array.StringBuilder).Append(statuses[i%len(statuses)])
			b.Field(8).(*array.Decimal128Builder).Append(decimal128.FromI64(int64(i % 1000000)))
			b.Field(9).(*array.Float64Builder).Append(float64(i%1000) / 8)
			b.Field(10).(*array.TimestampBuilder).Append(arrow.Timestamp(1700000000000000 + int64(i)*1000))
			if i%10 == 0 {
				b.Field(11).AppendNull()
			} else {
				b.Field(11).(*array.StringBuilder).Append(fmt.Sprintf("note %d of the order", i%5000))
			}
			b.Field(12).(*array.BooleanBuilder).Append(i%100 == 0)
			at++
		}
		rec := b.NewRecordBatch()
		if err := w.WriteBuffered(rec); err != nil {
			tb.Fatal(err)
		}
		rec.Release()
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func pick(s *arrow.Schema, names ...string) *arrow.Schema {
	var fields []arrow.Field
	for _, n := range names {
		f, _ := s.FieldsByName(n)
		fields = append(fields, f...)
	}
	return arrow.NewSchema(fields, nil)
}

func BenchmarkScan(b *testing.B) {
	const n = 500000
	s := ordersSchema()
	for _, c := range []struct {
		name  string
		codec compress.Compression
		cols  *arrow.Schema
	}{
		{"snappy/all13", compress.Codecs.Snappy, nil},
		{"snappy/user8", compress.Codecs.Snappy, pick(s, "id", "customer", "status", "price", "ratio", "at", "note", "deleted")},
		{"gzip/user8", compress.Codecs.Gzip, pick(s, "id", "customer", "status", "price", "ratio", "at", "note", "deleted")},
		{"zstd/user8", compress.Codecs.Zstd, pick(s, "id", "customer", "status", "price", "ratio", "at", "note", "deleted")},
		{"snappy/key+id", compress.Codecs.Snappy, pick(s, "_hoodie_record_key", "id")},
	} {
		b.Run(c.name, func(b *testing.B) {
			data := ordersFile(b, n, n, c.codec)
			ctx := context.Background()
			b.ResetTimer()
			cpu := cpuTime()
			for range b.N {
				f, err := basefile.OpenBytes(ctx, "orders.parquet", data, basefile.Options{})
				if err != nil {
					b.Fatal(err)
				}
				for batch, err := range f.Scan(ctx, basefile.ScanOptions{Columns: c.cols}) {
					if err != nil {
						b.Fatal(err)
					}
					batch.Release()
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(n)*float64(b.N)/(cpuTime()-cpu).Seconds(), "rows/cpu-s")
		})
	}
}

// cpuTime is what this process has used of all cores: on a busy machine the clock says little.
func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakAllocator counts what is allocated at once.
type peakAllocator struct {
	memory.Allocator
	now, peak atomic.Int64
}

func (p *peakAllocator) note(d int) {
	now := p.now.Add(int64(d))
	for {
		peak := p.peak.Load()
		if now <= peak || p.peak.CompareAndSwap(peak, now) {
			return
		}
	}
}
func (p *peakAllocator) Allocate(n int) []byte { p.note(n); return p.Allocator.Allocate(n) }
func (p *peakAllocator) Reallocate(n int, b []byte) []byte {
	p.note(n - len(b))
	return p.Allocator.Reallocate(n, b)
}
func (p *peakAllocator) Free(b []byte) { p.note(-len(b)); p.Allocator.Free(b) }

// One row group of more than 120 MB as Arrow, is read within a few batches.
func TestScanStreamsLargeRowGroups(t *testing.T) {
	data := ordersFile(t, 560000, 560000, compress.Codecs.Snappy)
	mem := &peakAllocator{Allocator: memory.NewGoAllocator()}
	ctx := context.Background()
	f, err := basefile.OpenBytes(ctx, "orders.parquet", data, basefile.Options{Alloc: mem})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.RowGroups()) != 1 {
		t.Fatalf("%d row groups", len(f.RowGroups()))
	}
	rows, arrowBytes := int64(0), int64(0)
	for b, err := range f.Scan(ctx, basefile.ScanOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		rows += b.NumRows()
		for _, c := range b.Columns() {
			for _, buf := range c.Data().Buffers() {
				if buf != nil {
					arrowBytes += int64(buf.Len())
				}
			}
		}
		b.Release()
	}
	if rows != 560000 || arrowBytes < 120<<20 {
		t.Fatalf("%d rows, %d bytes", rows, arrowBytes)
	}
	if peak := mem.peak.Load(); peak > 48<<20 {
		t.Errorf("peak of %d MiB for %d MiB of rows", peak>>20, arrowBytes>>20)
	} else {
		t.Logf("peak of %d MiB for %d MiB of rows", peak>>20, arrowBytes>>20)
	}
	if now := mem.now.Load(); now != 0 {
		t.Errorf("%d bytes are not given back", now)
	}
}
