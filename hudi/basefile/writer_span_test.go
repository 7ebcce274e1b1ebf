package basefile

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"unicode/utf16"
)

// The ends of a span are those of its texts in order: texts that begin alike in many ways, in the order of bytes and in that of Java.
func TestSpan(t *testing.T) {
	heads := []string{"", "order-0", "order-00", "order-000", "order-01/", "\x00", "order-00\x00", "kläre-00", "ｏrder", "\U0001F600der-0"}
	tails := []string{"", "1", "12", "9", "é", "\U0001F600", "\uE000", "\x00", "123456789", "123456788"}
	rnd := rand.New(rand.NewPCG(1, 2))
	javaOrder := func(a, b string) int { return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b))) }
	for range 20000 {
		some := heads[rnd.IntN(len(heads)):]
		some = some[:1+rnd.IntN(min(3, len(some)))]
		texts := make([]string, 1+rnd.IntN(6))
		for i := range texts {
			texts[i] = some[rnd.IntN(len(some))] + tails[rnd.IntN(len(tails))] + tails[rnd.IntN(len(tails))]
		}
		asBytes, asKeys := newSpan([]byte(texts[0]), []byte(texts[0])), newSpan(texts[0], texts[0])
		for _, x := range texts {
			asBytes.add([]byte(x), false, bytes.Compare)
			asKeys.add(x, true, CompareKeys)
		}
		if low, high := slices.Min(texts), slices.Max(texts); string(asBytes.low) != low || string(asBytes.high) != high {
			t.Fatalf("%q: from %q to %q, want %q to %q", texts, asBytes.low, asBytes.high, low, high)
		}
		if low, high := slices.MinFunc(texts, javaOrder), slices.MaxFunc(texts, javaOrder); asKeys.low != low || asKeys.high != high {
			t.Fatalf("%q: keys from %q to %q, want %q to %q", texts, asKeys.low, asKeys.high, low, high)
		}
	}
}
