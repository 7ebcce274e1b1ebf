package gather_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/internal/gather"
)

// fillRandom appends one random value of any type that tables have.
func fillRandom(rnd *rand.Rand, b array.Builder) {
	if rnd.IntN(5) == 0 {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(rnd.IntN(2) == 0)
	case *array.Int32Builder:
		b.Append(rnd.Int32())
	case *array.Int64Builder:
		b.Append(rnd.Int64())
	case *array.Float32Builder:
		b.Append(rnd.Float32())
	case *array.Float64Builder:
		b.Append(rnd.Float64())
	case *array.Date32Builder:
		b.Append(arrow.Date32(rnd.Int32N(40000)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(rnd.Int64N(1 << 50)))
	case *array.StringBuilder:
		b.Append(strings.Repeat("ä", rnd.IntN(12)))
	case *array.LargeStringBuilder:
		b.Append(strings.Repeat("b", rnd.IntN(12)))
	case *array.BinaryBuilder:
		b.Append([]byte(strings.Repeat("\x00", rnd.IntN(5))))
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte{byte(rnd.IntN(256)), 2, 3})
	case *array.Decimal128Builder:
		b.Append(decimal128.FromI64(rnd.Int64()))
	case *array.ListBuilder:
		b.Append(true)
		for range rnd.IntN(4) {
			fillRandom(rnd, b.ValueBuilder())
		}
	case *array.FixedSizeListBuilder:
		b.Append(true)
		for range 2 {
			fillRandom(rnd, b.ValueBuilder())
		}
	case *array.MapBuilder:
		b.Append(true)
		for range rnd.IntN(3) {
			b.KeyBuilder().(*array.StringBuilder).Append(fmt.Sprint(rnd.IntN(9)))
			fillRandom(rnd, b.ItemBuilder())
		}
	case *array.StructBuilder:
		b.Append(true)
		for i := range b.NumField() {
			fillRandom(rnd, b.FieldBuilder(i))
		}
	case *array.BinaryDictionaryBuilder:
		_ = b.AppendString(fmt.Sprint(rnd.IntN(3)))
	case *array.NullBuilder:
		b.AppendNull()
	default:
		panic(fmt.Sprintf("%T", b))
	}
}

// Rows gathered from sliced arrays of every type of a table, nested ones among them, are the rows that were asked for.
func TestGatherEveryType(t *testing.T) {
	st := arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		arrow.Field{Name: "l", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true})
	for _, dt := range []arrow.DataType{
		arrow.Null, arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Float32,
		arrow.PrimitiveTypes.Float64, arrow.FixedWidthTypes.Date32, &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
		arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary, &arrow.FixedSizeBinaryType{ByteWidth: 3},
		&arrow.Decimal128Type{Precision: 20, Scale: 2}, st, arrow.ListOf(st), arrow.ListOf(arrow.ListOf(arrow.FixedWidthTypes.Boolean)),
		arrow.MapOf(arrow.BinaryTypes.String, st), arrow.FixedSizeListOf(2, st), arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int32),
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String},
	} {
		t.Run(dt.String(), func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer mem.AssertSize(t, 0)
			for seed := range uint64(20) {
				gatherOnce(t, mem, dt, rand.New(rand.NewPCG(seed, 1)))
			}
		})
	}
}

func gatherOnce(t *testing.T, mem memory.Allocator, dt arrow.DataType, rnd *rand.Rand) {
	var srcs []arrow.Array
	for range 3 {
		b := array.NewBuilder(mem, dt)
		for range 20 {
			fillRandom(rnd, b)
		}
		whole := b.NewArray()
		b.Release()
		part := array.NewSlice(whole, int64(rnd.IntN(5)), int64(15+rnd.IntN(6)))
		whole.Release()
		defer part.Release()
		srcs = append(srcs, part)
	}
	var runs []gather.Run
	var want []string
	for range rnd.IntN(12) {
		src := rnd.IntN(len(srcs))
		from := rnd.IntN(srcs[src].Len())
		n := 1 + rnd.IntN(srcs[src].Len()-from)
		runs = append(runs, gather.Run{Src: int32(src), Row: int32(from), N: int32(n)})
		for i := from; i < from+n; i++ {
			want = append(want, srcs[src].ValueStr(i))
		}
	}
	got, err := gather.Array(mem, dt, srcs, runs)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Release()
	if got.Len() != len(want) || !arrow.TypeEqual(got.DataType(), dt) {
		t.Fatalf("%d rows of %s, want %d", got.Len(), got.DataType(), len(want))
	}
	nulls := 0
	for i, w := range want {
		if g := got.ValueStr(i); g != w {
			t.Fatalf("row %d: %s, want %s", i, g, w)
		}
		if got.IsNull(i) {
			nulls++
		}
	}
	if dt.ID() != arrow.NULL && nulls != got.NullN() {
		t.Fatalf("%d nulls counted, %d there", got.NullN(), nulls)
	}
}
