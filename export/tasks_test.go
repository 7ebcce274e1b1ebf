package export_test

import (
	"slices"
	"testing"

	"github.com/sluicelake/sluice/export"
)

// Packs are about of a size, and as many for each worker.
func TestPacks(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		bytes   []int64
		workers int64
		want    []int
	}{
		{nil, 2, nil},
		{[]int64{1}, 4, []int{1}},
		{slices.Repeat([]int64{1}, 8), 2, []int{4, 4}},
		{slices.Repeat([]int64{1}, 3), 64, []int{1, 1, 1}},
		{slices.Repeat([]int64{38 * mib}, 16), 2, []int{3, 2, 3, 3, 2, 3}}, // not 3, 3, 3, 3, 3, 1
		{slices.Repeat([]int64{500 * mib}, 4), 2, []int{1, 1, 1, 1}},
		{append([]int64{1000 * mib}, slices.Repeat([]int64{1}, 8)...), 1, []int{1, 8}},
		{append(slices.Repeat([]int64{1}, 8), 1000*mib), 1, []int{8, 1}},
	} {
		if got := export.Packs(c.bytes, 128*mib, c.workers); !slices.Equal(got, c.want) {
			t.Errorf("%d of %v for %d workers: %v, want %v", len(c.bytes), c.bytes, c.workers, got, c.want)
		}
	}
}
