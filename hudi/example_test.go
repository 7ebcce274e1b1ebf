package hudi_test

import (
	"context"
	"fmt"
	"os"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/internal/fixture"
)

// trips unpacks the quickstart table of Apache Hudi (merge on read: eight trips inserted, three updated, one deleted and one
// overwritten in log files) and returns its folder.
func trips() string {
	dir, err := os.MkdirTemp("", "trips")
	if err != nil {
		panic(err)
	}
	if _, err := fixture.Unpack("../testdata/public/quickstart_trips_table_mor_avro_v8_trips_8i3u1d.tar.zst", dir); err != nil {
		panic(err)
	}
	return dir
}

// Open a table and read some columns of the rows that pass a filter.
func Example() {
	ctx := context.Background()
	dir := trips() // or "s3://lake/trips"
	defer func() { _ = os.RemoveAll(dir) }()

	table, err := hudi.Open(ctx, dir, hudi.Options{})
	if err != nil {
		panic(err)
	}
	snapshot, err := table.Snapshot(ctx, hudi.Query{})
	if err != nil {
		panic(err)
	}
	cheap, err := hudi.Where("fare < 30 and city = 'san_francisco'")
	if err != nil {
		panic(err)
	}
	for batch, err := range snapshot.Scan(ctx, hudi.Scan{Columns: []string{"rider", "fare"}, Filter: cheap}) {
		if err != nil {
			panic(err)
		}
		riders, fares := batch.Column(0).(*array.String), batch.Column(1).(*array.Float64)
		for i := range int(batch.NumRows()) {
			fmt.Println(riders.Value(i), fares.Value(i))
		}
		batch.Release()
	}
	// Unordered output:
	// rider-C 27.7
	// rider-A 0
}

// Time travel pins an older state, an incremental read gives what was written since.
func ExampleTable_Changes() {
	ctx := context.Background()
	dir := trips()
	defer func() { _ = os.RemoveAll(dir) }()

	table, err := hudi.Open(ctx, dir, hudi.Options{})
	if err != nil {
		panic(err)
	}
	first := table.Timeline().Completed().Writes().Instants()[0]
	count := func(s *hudi.Snapshot, err error) (n int64) {
		if err != nil {
			panic(err)
		}
		for batch, err := range s.Scan(ctx, hudi.Scan{Columns: []string{"uuid"}}) {
			if err != nil {
				panic(err)
			}
			n += batch.NumRows()
			batch.Release()
		}
		return n
	}
	fmt.Println("rows at first:", count(table.Snapshot(ctx, hudi.Query{AsOf: first.Time})))
	fmt.Println("rows now:", count(table.Snapshot(ctx, hudi.Query{})))
	fmt.Println("rows that changed since:", count(table.Changes(ctx, hudi.Range{Begin: first.Completion})))
	// Output:
	// rows at first: 8
	// rows now: 6
	// rows that changed since: 2
}
