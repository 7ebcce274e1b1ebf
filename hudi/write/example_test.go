package write_test

import (
	"context"
	"fmt"

	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/hudi/write"
	"github.com/sluicelake/sluice/storage/mem"
)

// A new table, and a commit that writes nothing.
func Example() {
	ctx := context.Background()
	store := mem.New("orders")
	table, err := write.CreateTable(ctx, store, write.Spec{
		Name: "orders", RecordKeyFields: []string{"id"}, PartitionFields: []string{"region"},
		Schema: `{"type":"record","name":"orders_record","namespace":"hoodie.orders","fields":[{"name":"id","type":"long"},{"name":"region","type":"string"}]}`,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := write.Begin(ctx, store, write.Options{Action: timeline.Commit, Operation: "INSERT"})
	if err != nil {
		fmt.Println(err)
		return
	}
	commit, err := t.Commit(ctx, nil, nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(table.Name, table.Version, commit.OperationType, len(commit.PartitionToWriteStats))
	// Output: orders 6 INSERT 0
}
