package hudi_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi"
)

// one is a stream of one batch.
func one(batch arrow.RecordBatch) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) { yield(batch, nil) }
}

// Make a table, write rows, change some, delete one.
func ExampleTable_Write() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "orders")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	table, err := hudi.Create(ctx, filepath.Join(dir, "orders"), hudi.Spec{
		Name: "orders", RecordKeyFields: []string{"id"}, PartitionFields: []string{"region"}, OrderingFields: []string{"ts"},
	}, hudi.Options{})
	if err != nil {
		panic(err)
	}
	columns := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "region", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "qty", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "ts", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	}, nil)
	rows := func(json string) hudi.Rows {
		batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, columns, strings.NewReader(json))
		if err != nil {
			panic(err)
		}
		return hudi.Records(columns, one(batch))
	}
	for _, w := range []struct {
		op   hudi.Operation
		rows string
	}{
		{hudi.Insert, `[{"id":1,"region":"eu","qty":10,"ts":1},{"id":2,"region":"eu","qty":20,"ts":1},{"id":3,"region":"us","qty":30,"ts":1}]`},
		{hudi.Upsert, `[{"id":2,"region":"eu","qty":25,"ts":2},{"id":4,"region":"us","qty":40,"ts":2}]`},
		{hudi.Delete, `[{"id":1,"region":"eu"}]`},
	} {
		result, err := table.Write(ctx, w.op, rows(w.rows), hudi.WriteOptions{})
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %d inserted, %d updated, %d deleted\n", w.op, result.Inserted, result.Updated, result.Deleted)
	}
	snapshot, err := table.Snapshot(ctx, hudi.Query{})
	if err != nil {
		panic(err)
	}
	for batch, err := range snapshot.Scan(ctx, hudi.Scan{Columns: []string{"id", "qty"}}) {
		if err != nil {
			panic(err)
		}
		for i := range int(batch.NumRows()) {
			fmt.Println(batch.Column(0).ValueStr(i), batch.Column(1).ValueStr(i))
		}
		batch.Release()
	}
	// Unordered output:
	// insert: 3 inserted, 0 updated, 0 deleted
	// upsert: 1 inserted, 1 updated, 0 deleted
	// delete: 0 inserted, 0 updated, 1 deleted
	// 2 25
	// 3 30
	// 4 40
}
