package bloom

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The places of keys of every length that joins a group, in groups of every size and among as many bits as a filter may have, are those
// of the keys one by one.
func TestPlacesOfGroups(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 4))
	sizes := []uint32{1, 2, 3, 8, 1000, 1<<16 - 1, 1 << 16, 2588060, 1<<30 - 1, 1 << 30, 1<<30 + 1, math.MaxInt32 - 1, math.MaxInt32}
	for length := 1; length <= maxGroupKey; length++ {
		for _, size := range sizes {
			f := &Filter{kind: Simple, hash: Murmur, hashes: 1 + rnd.IntN(40), bits: size}
			h := f.hasher()
			var g group
			var keys []string
			for range 1 + rnd.IntN(lanes) {
				key := make([]byte, length)
				for i := range key {
					key[i] = byte(rnd.IntN(256))
				}
				if !g.fits(string(key)) {
					t.Fatalf("%d keys are too many", g.keys)
				}
				g.add(string(key))
				keys = append(keys, string(key))
			}
			places := g.places(f.hashes, h.magic, size)
			if len(places) != f.hashes {
				t.Fatalf("%d places, want %d", len(places), f.hashes)
			}
			for k, key := range keys {
				sum := uint32(0)
				for i := range places {
					sum = uint32(Murmur.Sum([]byte(key), sum))
					want := int64(int32(sum)) % int64(size)
					if want < 0 {
						want = -want
					}
					if got := places[i][k]; int64(got) != want {
						t.Fatalf("place %d of key %d of %d, %d bytes long, among %d bits is %d, want %d", i, k, len(keys), length, size, got, want)
					}
				}
			}
		}
	}
	var g group
	g.add("abc")
	if g.fits("abcd") {
		t.Error("a key of another length joins")
	}
}
