package shuffle_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/internal/shuffle"
)

// Several goroutines may read the batch of a part: what Arrow works out for the first who asks is there, of slices and of what
// is nested in them. The race detector watches the reading.
func TestPartsAreShared(t *testing.T) {
	fields := arrow.NewSchema([]arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "dict", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}, Nullable: true},
		{Name: "s", Type: arrow.StructOf(arrow.Field{Name: "list", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true}), Nullable: true},
		{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Float64), Nullable: true},
	}, nil)
	whole, _, err := array.RecordFromJSON(memory.DefaultAllocator, fields, strings.NewReader(`[
		{"n":null,"dict":"a","s":{"list":[1,null]},"m":[{"key":"a","value":null}]},
		{"n":1,"dict":null,"s":{"list":null},"m":null},
		{"n":null,"dict":"b","s":null,"m":[]},
		{"n":2,"dict":"a","s":{"list":[null]},"m":[{"key":"b","value":1.5}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	s := shuffle.New(fields, shuffle.Options{})
	defer s.Close()
	if err := s.Add(whole.NewSlice(1, 4), []int32{0, 1, 0}); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	counts := make([][]int, 4)
	for i := range counts {
		wait.Go(func() {
			for parts, err := range s.Parts(context.Background(), int32(i%2), 0, -1) {
				if err != nil {
					t.Error(err)
					return
				}
				for _, c := range parts[0].Batch.Columns() {
					counts[i] = append(counts[i], nulls(t, c)...)
				}
			}
		})
	}
	wait.Wait()
	// n, dict, its values, s, s.list (a null one, and one below a null struct), the elements of all lists, m, its entries, keys and values.
	want := []int{1, 1, 0, 1, 2, 2, 1, 0, 0, 1}
	for i, got := range counts {
		if !slices.Equal(got, want) {
			t.Errorf("goroutine %d: %v nulls, want %v", i, got, want)
		}
	}
}

// nulls of an array and of what is nested in it.
func nulls(t *testing.T, a arrow.Array) []int {
	if known := a.Data().NullN(); known != a.NullN() {
		t.Errorf("%s: %d nulls known, %d there", a.DataType(), known, a.NullN())
	}
	n := []int{a.NullN()}
	switch a := a.(type) {
	case *array.Dictionary:
		return append(n, nulls(t, a.Dictionary())...)
	case *array.Struct:
		for i := range a.NumField() {
			n = append(n, nulls(t, a.Field(i))...)
		}
	case array.ListLike:
		return append(n, nulls(t, a.ListValues())...)
	}
	return n
}
