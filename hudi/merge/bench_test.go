package merge

import (
	"fmt"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/schema"
)

// trips is the shape of the quickstart tables: five meta columns and eight of data.
func trips(t testing.TB) *schema.Type {
	return parse(t, `{"type":"record","name":"r","fields":[
		{"name":"_hoodie_commit_time","type":["null","string"],"default":null},{"name":"_hoodie_commit_seqno","type":["null","string"],"default":null},
		{"name":"_hoodie_record_key","type":["null","string"],"default":null},{"name":"_hoodie_partition_path","type":["null","string"],"default":null},
		{"name":"_hoodie_file_name","type":["null","string"],"default":null},
		{"name":"ts","type":"long"},{"name":"rider","type":["null","string"],"default":null},{"name":"driver","type":["null","string"],"default":null},
		{"name":"begin_lat","type":"double"},{"name":"begin_lon","type":"double"},{"name":"fare","type":["null","double"],"default":null},
		{"name":"seats","type":"int"},{"name":"paid","type":"boolean"}]}`)
}

// tripBatch has the rows whose numbers number gives.
func tripBatch(mem memory.Allocator, s *arrow.Schema, n int, ts int64, number func(i int) int) arrow.RecordBatch {
	b := array.NewRecordBuilder(mem, s)
	defer b.Release()
	b.Reserve(n)
	for i := range n {
		k := number(i)
		b.Field(0).(*array.StringBuilder).Append("20261130091500123")
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("20261130091500123_0_%d", k))
		b.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("trip-%016d", k))
		b.Field(3).(*array.StringBuilder).Append("2026-11-30")
		b.Field(4).(*array.StringBuilder).Append("f1a0c0de-0000-4000-8000-000000000000-0_0-1-0_20261130091500123.parquet")
		b.Field(5).(*array.Int64Builder).Append(ts)
		b.Field(6).(*array.StringBuilder).Append(fmt.Sprintf("rider-%d", k%1000))
		b.Field(7).(*array.StringBuilder).Append(fmt.Sprintf("driver-%d", k%777))
		b.Field(8).(*array.Float64Builder).Append(float64(k))
		b.Field(9).(*array.Float64Builder).Append(float64(-k))
		b.Field(10).(*array.Float64Builder).Append(float64(k) / 3)
		b.Field(11).(*array.Int32Builder).Append(int32(k))
		b.Field(12).(*array.BooleanBuilder).Append(k%2 == 0)
	}
	return b.NewRecordBatch()
}

// BenchmarkOver merges a log that updates every tenth base row, spread evenly, and reports base rows per second: the merge
// alone, without decoding.
func BenchmarkOver(b *testing.B) {
	const rows, size = 1 << 20, 8192
	for _, c := range []struct {
		name string
		o    Options
	}{
		{"event-time", Options{TableVersion: 9, MergeMode: EventTime}},
		{"commit-time", Options{TableVersion: 9, MergeMode: CommitTime}},
		{"payload-default", Options{TableVersion: 6, PayloadClass: PayloadDefault}},
		{"ignore-defaults", Options{TableVersion: 9, MergeMode: EventTime, PartialUpdateMode: IgnoreDefaults}},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.o.Schema, c.o.OrderingFields = trips(b), []string{"ts"}
			rule := compile(b, c.o)
			var base, logs []arrow.RecordBatch
			for from := 0; from < rows; from += size {
				base = append(base, tripBatch(memory.DefaultAllocator, rule.Arrow(), size, 10, func(i int) int { return from + i }))
			}
			for from := 0; from < rows/10; from += size {
				logs = append(logs, tripBatch(memory.DefaultAllocator, rule.Arrow(), size, 20, func(i int) int { return (from + i) * 10 }))
			}
			var over, cpu time.Duration
			b.ResetTimer()
			for range b.N {
				log := rule.NewLog(LogOptions{Budget: 1 << 40})
				for _, batch := range logs {
					if err := log.Add(batch, AddOptions{}); err != nil {
						b.Fatal(err)
					}
				}
				began, beganCPU := time.Now(), cpuTime()
				n := int64(0)
				for batch, err := range log.Over(b.Context(), retained(base)) {
					if err != nil {
						b.Fatal(err)
					}
					n += batch.NumRows()
					batch.Release()
				}
				over += time.Since(began)
				cpu += cpuTime() - beganCPU
				if n < rows {
					b.Fatal(n)
				}
			}
			b.ReportMetric(float64(rows)*float64(b.N)/over.Seconds(), "rows/s")
			if cpu > 0 {
				b.ReportMetric(float64(rows)*float64(b.N)/cpu.Seconds(), "rows/cpu-s")
			}
		})
	}
}

func retained(bs []arrow.RecordBatch) func(func(arrow.RecordBatch, error) bool) {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for _, b := range bs {
			b.Retain()
			if !yield(b, nil) {
				return
			}
		}
	}
}
