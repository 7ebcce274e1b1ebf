//go:build interop

package protocol_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/operation"
	"github.com/sluicelake/sluice/hudi/write/lock"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/fault"
	"github.com/sluicelake/sluice/storage/local"
)

var crashColumns = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, {Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "price", Type: arrow.PrimitiveTypes.Float64, Nullable: true}, {Name: "ts", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "dt", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

// crashRows makes rows of "id name dt".
func crashRows(t *testing.T, text ...string) operation.Rows {
	t.Helper()
	var objects []string
	for _, r := range text {
		f := strings.Fields(r)
		objects = append(objects, fmt.Sprintf(`{"id":%s,"name":%q,"price":1.5,"ts":10,"dt":%q}`, f[0], f[1], f[2]))
	}
	batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, crashColumns, strings.NewReader("["+strings.Join(objects, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	var one iter.Seq2[arrow.RecordBatch, error] = func(yield func(arrow.RecordBatch, error) bool) { yield(batch, nil) }
	return operation.Rows{Schema: crashColumns, Batches: one}
}

// A sample of tables over which Sluice died in the middle of an operation: both releases of Apache Hudi read each as it was or
// as it was to be, and after Sluice's next write as that one says. (Every point of every operation is in the tests of package
// operation; here it is about other readers.)
func TestCrashedOperations(t *testing.T) {
	ctx := context.Background()
	before := []string{"x/1 a", "x/2 b", "y/3 c"}
	for _, c := range []struct {
		kind  operation.Kind
		rows  []string
		conf  confs
		after []string
	}{
		{operation.Upsert, []string{"1 a2 x", "4 d z"}, nil, []string{"x/1 a2", "x/2 b", "y/3 c", "z/4 d"}},
		{operation.BulkInsert, []string{"5 e x", "6 f w"}, nil, []string{"w/6 f", "x/1 a", "x/2 b", "x/5 e", "y/3 c"}},
		{operation.Delete, []string{"2 b x"}, nil, []string{"x/1 a", "y/3 c"}},
		{operation.InsertOverwrite, []string{"7 g x"}, nil, []string{"x/7 g", "y/3 c"}},
		{operation.DeletePartition, nil, confs{"hoodie.datasource.write.partitions.to.delete": "dt=x"}, []string{"y/3 c"}},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			options := base("crashed", config.CopyOnWrite)
			for k, v := range c.conf {
				options[k] = v
			}
			run := func(s storage.Store, kind operation.Kind, rows operation.Rows) error {
				_, err := operation.Run(ctx, s, kind, rows, operation.Options{Conf: options, Parallel: 1, Lock: &lock.Options{Now: later}, Now: later})
				return err
			}
			fresh := func(t *testing.T) (string, storage.Store) {
				dir := filepath.Join(t.TempDir(), "crashed")
				s := create(t, dir, options)
				if err := run(s, operation.Insert, crashRows(t, "1 a x", "2 b x", "3 c y")); err != nil {
					t.Fatal(err)
				}
				return dir, s
			}
			_, s := fresh(t)
			counted := fault.New(s)
			if err := run(counted, c.kind, crashRows(t, c.rows...)); err != nil {
				t.Fatal(err)
			}
			writes := 0
			for _, r := range counted.Operations() {
				if r.Op == fault.Put || r.Op == fault.Delete || r.Op == fault.Copy {
					writes++
				}
			}
			for _, share := range []int{2, 3, 4} { // of four parts of the way: data written, about to commit, tidying up
				dir, s := fresh(t)
				f := fault.New(s, fault.CrashAt(max(writes*share/4, 1), fault.After))
				err := run(f, c.kind, crashRows(t, c.rows...))
				if !f.Crashed() {
					t.Fatalf("point %d of %d did not kill it: %v", writes*share/4, writes, err)
				}
				if err := os.Remove(filepath.Join(dir, lock.LeaseFile)); err != nil && !errors.Is(err, os.ErrNotExist) { // it would run out if we were dead
					t.Fatal(err)
				}
				got := ids(t, dir)
				if !slices.Equal(got, before) && !slices.Equal(got, c.after) {
					t.Fatalf("killed at %d of %d writes: %v", writes*share/4, writes, got)
				}
				disk, err := local.New(dir, local.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if err := run(disk, operation.Upsert, crashRows(t, "9 next v")); err != nil {
					t.Fatal(err)
				}
				want := append(slices.Clone(got), "v/9 next")
				slices.Sort(want)
				if got := ids(t, dir); !slices.Equal(got, want) {
					t.Fatalf("after the next write: %v, want %v", got, want)
				}
			}
		})
	}
}

type confs = map[string]string
