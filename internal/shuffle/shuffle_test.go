package shuffle_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/internal/shuffle"
)

var columns = arrow.NewSchema([]arrow.Field{
	{Name: "n", Type: arrow.PrimitiveTypes.Int64}, {Name: "key", Type: arrow.BinaryTypes.String},
	{Name: "list", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
}, nil)

// Every row comes out of its target once, in the order of arrival or sorted, whether the store spilled or not.
func TestRowsByTarget(t *testing.T) {
	for seed := range uint64(30) {
		for _, sorted := range []bool{false, true} {
			for _, limit := range []int64{0, 2000, 1} {
				once(t, seed, sorted, limit)
			}
		}
	}
}

type row struct {
	n   int64
	key string
}

func once(t *testing.T, seed uint64, sorted bool, limit int64) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	rnd := rand.New(rand.NewPCG(seed, 7))
	o := shuffle.Options{Alloc: mem, Memory: limit, Dir: t.TempDir(), Sorted: sorted, Column: int(seed) % 2}
	s := shuffle.New(columns, o)
	defer s.Close()
	want := map[int32][]row{}
	for range rnd.IntN(9) {
		b := array.NewRecordBuilder(mem, columns)
		var targets []int32
		for range rnd.IntN(40) {
			r := row{rnd.Int64N(100), fmt.Sprint(rnd.IntN(30))}
			target := int32(rnd.IntN(6)) - 1
			targets = append(targets, target)
			b.Field(0).(*array.Int64Builder).Append(r.n)
			b.Field(1).(*array.StringBuilder).Append(r.key)
			l := b.Field(2).(*array.ListBuilder)
			l.Append(true)
			for i := range int32(r.n % 4) {
				l.ValueBuilder().(*array.Int32Builder).Append(i)
			}
			if target >= 0 {
				want[target] = append(want[target], r)
			}
		}
		batch := b.NewRecordBatch()
		b.Release()
		if err := s.Add(batch, targets); err != nil {
			t.Fatal(err)
		}
		batch.Release()
	}
	total := 0
	for _, rows := range want {
		total += len(rows)
	}
	if s.Total() != int64(total) || s.Groups() != len(want) {
		t.Fatalf("%d rows of %d targets, want %d of %d", s.Total(), s.Groups(), total, len(want))
	}
	if len(want) > 0 && (limit == 1) != s.Spilled() && limit != 2000 {
		t.Fatalf("spilled: %v with a limit of %d", s.Spilled(), limit)
	}
	for target, rows := range want {
		if sorted {
			slices.SortStableFunc(rows, func(a, b row) int {
				if o.Column == 1 {
					return strings.Compare(a.key, b.key)
				}
				return cmp.Compare(a.n, b.n)
			})
		}
		if s.Rows(target) != int64(len(rows)) {
			t.Fatalf("target %d has %d rows, want %d", target, s.Rows(target), len(rows))
		}
		from := rnd.IntN(len(rows))
		take := 1 + rnd.IntN(len(rows)-from)
		for _, part := range [][2]int{{0, -1}, {from, take}} {
			expect := rows[part[0]:]
			if part[1] >= 0 {
				expect = expect[:part[1]]
			}
			got := read(t, s, target, int64(part[0]), int64(part[1]))
			if !slices.Equal(got, expect) {
				t.Fatalf("seed %d sorted %v limit %d target %d part %v: %v, want %v", seed, sorted, limit, target, part, got, expect)
			}
			if got := readParts(t, s, target, int64(part[0]), int64(part[1])); !slices.Equal(got, expect) {
				t.Fatalf("seed %d sorted %v limit %d target %d part %v: %v picked, want %v", seed, sorted, limit, target, part, got, expect)
			}
		}
	}
}

func read(t *testing.T, s *shuffle.Store, target int32, from, n int64) (out []row) {
	t.Helper()
	for b, err := range s.Read(context.Background(), target, from, n) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			r := row{b.Column(0).(*array.Int64).Value(i), b.Column(1).(*array.String).Value(i)}
			from, to := b.Column(2).(*array.List).ValueOffsets(i)
			if to-from != r.n%4 {
				t.Fatalf("row %d has a list of %d", r.n, to-from)
			}
			out = append(out, r)
		}
		b.Release()
	}
	return out
}

func readParts(t *testing.T, s *shuffle.Store, target int32, from, n int64) (out []row) {
	t.Helper()
	for parts, err := range s.Parts(context.Background(), target, from, n) {
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range parts {
			numbers, keys := p.Batch.Column(0).(*array.Int64), p.Batch.Column(1).(*array.String)
			for i := range int(p.Len()) {
				if p.Rows != nil {
					i = int(p.Rows[i])
				}
				out = append(out, row{numbers.Value(i), keys.Value(i)})
			}
		}
	}
	return out
}

func BenchmarkStore(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 1))
	rb := array.NewRecordBuilder(memory.DefaultAllocator, columns)
	targets := make([]int32, 64<<10)
	for i := range targets {
		targets[i] = int32(rnd.IntN(16))
		rb.Field(0).(*array.Int64Builder).Append(int64(i))
		rb.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("order-%010d", i))
		rb.Field(2).AppendNull()
	}
	batch := rb.NewRecordBatch()
	for _, limit := range []int64{0, 16 << 20} {
		b.Run(fmt.Sprintf("memory=%d", limit), func(b *testing.B) {
			for range b.N {
				s := shuffle.New(columns, shuffle.Options{Memory: limit})
				for range 16 {
					if err := s.Add(batch, targets); err != nil {
						b.Fatal(err)
					}
				}
				for _, t := range s.Targets() {
					for out, err := range s.Read(context.Background(), t, 0, -1) {
						if err != nil {
							b.Fatal(err)
						}
						out.Release()
					}
				}
				s.Close()
			}
			b.ReportMetric(float64(b.N)*16*float64(batch.NumRows())/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
