package merge

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// Values in the order that they compare in: nulls, then each family by its own rule.
func TestCompare(t *testing.T) {
	for _, ordered := range [][]Value{
		{NullOrdering(), BoolOrdering(false), BoolOrdering(true)},
		{NoOrdering(), LongOrdering(math.MinInt64), IntOrdering(-1), LongOrdering(0), DoubleOrdering(0.5), IntOrdering(1), DecimalOrdering(big.NewInt(101), 2), FloatOrdering(1.5), LongOrdering(math.MaxInt64)},
		{DoubleOrdering(math.Inf(-1)), DoubleOrdering(math.Copysign(0, -1)), DoubleOrdering(0), DoubleOrdering(math.Inf(1)), DoubleOrdering(math.NaN())},
		{TextOrdering(""), TextOrdering("10"), TextOrdering("9"), TextOrdering("\uffee"), TextOrdering("\U0001F600")}, // UTF-8 bytes, not UTF-16
		{BytesOrdering([]byte{0x80}), BytesOrdering(nil), BytesOrdering([]byte{1}), BytesOrdering([]byte{1, 0x80})},   // Java's bytes have signs
		{DecimalOrdering(big.NewInt(-5), 0), DecimalOrdering(big.NewInt(1250000000000000), 15), DecimalOrdering(big.NewInt(126), 2)},
		{TupleOrdering(NullOrdering(), IntOrdering(9)), TupleOrdering(IntOrdering(1), TextOrdering("a")), TupleOrdering(IntOrdering(1), TextOrdering("b")), TupleOrdering(IntOrdering(2), NullOrdering())},
		{LongOrdering(3), BytesOrdering(nil), TextOrdering("")}, // unrelated types: some order, never a failure
	} {
		for i, a := range ordered {
			for j, b := range ordered {
				want := 0
				switch {
				case i < j:
					want = -1
				case i > j:
					want = 1
				}
				if a.kind == Bytes && b.kind == Bytes && (len(a.s) == 0 || len(b.s) == 0) {
					continue // a prefix orders first, whatever sign follows
				}
				if got := Compare(a, b); got != want {
					t.Errorf("Compare(%v, %v) = %d, want %d", a, b, got, want)
				}
			}
		}
	}
	if Compare(NoOrdering(), NullOrdering()) != 0 {
		t.Error("none and null differ")
	}
	if Compare(BytesOrdering(nil), BytesOrdering([]byte{0x80})) >= 0 {
		t.Error("a prefix orders first")
	}
	// Not 9007199254740993 = 9007199254740992.0: numbers of whole width compare exactly.
	if Compare(LongOrdering(9007199254740993), LongOrdering(9007199254740992)) != 1 {
		t.Error("longs compare as doubles")
	}
}

// Only the Int 0, null and nothing mean "no ordering" (table format 6.2, 6.6).
func TestNone(t *testing.T) {
	for v, want := range map[*Value]bool{{}: true, {kind: Null}: true, {kind: Int}: true, {kind: Long}: false, {kind: Int, i: 1}: false, {kind: Text}: false, {kind: Double}: false} {
		if v.None() != want {
			t.Errorf("%v (kind %d): None() = %v", v, v.kind, v.None())
		}
	}
}

// A DELETE block holds raw units of the column; decimals come with scale 15, or as the column's bytes (vectors
// delete_ordering).
func TestOrderingOfDeleteInTermsOfItsColumn(t *testing.T) {
	millis := &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}
	for _, c := range []struct {
		in   Value
		dt   arrow.DataType
		want Value
	}{
		{LongOrdering(1578283932123), millis, TimestampMicrosOrdering(1578283932123000)},
		{TimestampMicrosOrdering(1578283932123000), millis, TimestampMicrosOrdering(1578283932123000)},
		{LongOrdering(7), &arrow.TimestampType{Unit: arrow.Microsecond}, TimestampMicrosOrdering(7)},
		{LongOrdering(7), arrow.PrimitiveTypes.Int64, LongOrdering(7)},
		{DateOrdering(18267), arrow.FixedWidthTypes.Date32, DateOrdering(18267)},
		{DecimalOrdering(big.NewInt(1250000000000000), 15), &arrow.Decimal128Type{Precision: 10, Scale: 2}, DecimalOrdering(big.NewInt(125), 2)},
		{BytesOrdering([]byte{0xff}), &arrow.Decimal128Type{Precision: 10, Scale: 2}, DecimalOrdering(big.NewInt(-1), 2)},
	} {
		if got := normaliseField(c.in, c.dt); Compare(got, c.want) != 0 || !sameClass(got, c.want) {
			t.Errorf("%v of column %s: %v, want %v", c.in, c.dt, got, c.want)
		}
	}
}

func FuzzReadValue(f *testing.F) {
	for _, v := range []Value{NoOrdering(), NullOrdering(), BoolOrdering(true), IntOrdering(-7), LongOrdering(math.MinInt64), FloatOrdering(1.5),
		DoubleOrdering(math.NaN()), BytesOrdering([]byte{0, 255}), TextOrdering("ä"), DateOrdering(18267), DecimalOrdering(big.NewInt(-125), 2),
		TimeMicrosOrdering(1), TimestampMicrosOrdering(2), TupleOrdering(IntOrdering(1), TupleOrdering(TextOrdering("x")))} {
		f.Add(appendValue(nil, v))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, rest, err := readValue(b, 0)
		if err != nil {
			return
		}
		again := appendValue(nil, v)
		w, left, err := readValue(again, 0)
		if err != nil || len(left) > 0 || Compare(v, w) != 0 || !slices.Equal(again, appendValue(nil, w)) {
			t.Fatalf("%x: %v became %v (%v); %d bytes rest", b, v, w, err, len(rest))
		}
	})
}
