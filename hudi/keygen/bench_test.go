package keygen

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// benchBatch has 65536 orders: a key, a customer, a region, times as numbers and as text.
func benchBatch() arrow.RecordBatch {
	sc := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.BinaryTypes.String}, {Name: "customer", Type: arrow.PrimitiveTypes.Int64}, {Name: "region", Type: arrow.BinaryTypes.String},
		{Name: "ms", Type: arrow.PrimitiveTypes.Int64}, {Name: "text", Type: arrow.BinaryTypes.String},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for i := range 65536 {
		ms := int64(1700000000000) + int64(i)*7919*1000%(90*msPerDay)
		text, _ := mustPattern("yyyy-MM-dd HH:mm:ss").print(nil, ms, utcZone, &span{}, &calendar{})
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("order-%08d", i))
		b.Field(1).(*array.Int64Builder).Append(int64(i * 31 % 10007))
		b.Field(2).(*array.StringBuilder).Append([]string{"north", "south", "east", "west", "a/b"}[i*7%5])
		b.Field(3).(*array.Int64Builder).Append(ms)
		b.Field(4).(*array.StringBuilder).Append(string(text))
	}
	return b.NewRecordBatch()
}

func mustPattern(text string) *pattern {
	p, err := compilePattern(text)
	if err != nil {
		panic(err)
	}
	return p
}

func benchKeys(b *testing.B, options map[string]string) {
	b.Helper()
	k, err := New(Options{Properties: options})
	if err != nil {
		b.Fatal(err)
	}
	batch := benchBatch()
	defer batch.Release()
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		keys, partitions, err := k.Keys(batch)
		if err != nil {
			b.Fatal(err)
		}
		keys.Release()
		partitions.Release()
	}
	b.ReportMetric(float64(b.N)*float64(batch.NumRows())/b.Elapsed().Seconds(), "keys/s")
}

func BenchmarkSimple(b *testing.B) {
	benchKeys(b, map[string]string{KeyRecordFields: "id", KeyPartitionFields: "region", KeyURLEncode: "true", KeyHiveStyle: "true"})
}

func BenchmarkComplexTwoFields(b *testing.B) {
	benchKeys(b, map[string]string{KeyRecordFields: "id,customer", KeyPartitionFields: "region", KeyURLEncode: "true", KeyType: "COMPLEX"})
}

func BenchmarkTimestampMillis(b *testing.B) {
	benchKeys(b, map[string]string{KeyRecordFields: "id", KeyPartitionFields: "ms", KeyType: "TIMESTAMP",
		timePrefix + timeType: typeMillis, timePrefix + timeOutput: "yyyy/MM/dd", timePrefix + timeZone: "Europe/Berlin"})
}

func BenchmarkTimestampText(b *testing.B) {
	benchKeys(b, map[string]string{KeyRecordFields: "id", KeyPartitionFields: "text", KeyType: "TIMESTAMP",
		timePrefix + timeType: typeDateString, timePrefix + timeInput: "yyyy-MM-dd HH:mm:ss", timePrefix + timeOutput: "yyyy/MM/dd", timePrefix + timeZone: "Europe/Berlin"})
}

// BenchmarkKey is a key of a long alone, which has to be written out.
func BenchmarkLongKey(b *testing.B) {
	benchKeys(b, map[string]string{KeyRecordFields: "customer", KeyPartitionFields: "", KeyType: "NON_PARTITION"})
}
