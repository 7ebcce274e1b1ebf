package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/orc"
)

// scan is the contender that the benchmark starts as itself: the library reads every column of every row into Arrow
// batches, as the peers do, and keeps nothing.
func scan(args []string) error {
	flags := flag.NewFlagSet("scan", flag.ExitOnError)
	view := flags.String("view", "snapshot", "snapshot or read_optimized")
	readers := flags.Int("readers", runtime.NumCPU(), "file groups at once")
	memory := flags.Int64("memory", 0, "bytes for the log records of a file group; 0 is the default")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("scan: give one table")
	}
	ctx := context.Background()
	table, err := hudi.Open(ctx, flags.Arg(0), hudi.Options{})
	if err != nil {
		return err
	}
	query := hudi.Query{View: hudi.RealTime}
	if *view == "read_optimized" {
		query.View = hudi.ReadOptimized
	}
	snapshot, err := table.Snapshot(ctx, query)
	if err != nil {
		return err
	}
	var said answer
	for batch, err := range snapshot.Scan(ctx, hudi.Scan{Readers: *readers, Memory: *memory}) {
		if err != nil {
			return err
		}
		said.Rows += batch.NumRows()
		at := batch.Schema().FieldIndices("qty")
		if len(at) != 1 {
			return fmt.Errorf("scan: %d columns are named qty", len(at))
		}
		qty, ok := batch.Column(at[0]).(*array.Int64)
		if !ok {
			return fmt.Errorf("scan: qty is %s", batch.Column(at[0]).DataType())
		}
		for _, n := range qty.Int64Values() {
			said.Qty += n
		}
		batch.Release()
	}
	return json.NewEncoder(os.Stdout).Encode(said)
}

// readORC reads every row of an ORC file on one thread.
func readORC(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	r, err := orc.NewReader(f, info.Size(), orc.ReaderOptions{})
	if err != nil {
		return err
	}
	var said answer
	for batch, err := range r.Scan(context.Background(), orc.ScanOptions{}) {
		if err != nil {
			return err
		}
		said.Rows += batch.NumRows()
		for _, n := range batch.Column(batch.Schema().FieldIndices("qty")[0]).(*array.Int64).Int64Values() {
			said.Qty += n
		}
		batch.Release()
	}
	return json.NewEncoder(os.Stdout).Encode(said)
}
