package bloom

import (
	"math/bits"

	"golang.org/x/sys/cpu"
)

var simd = cpu.X86.HasAVX2

// fewKeys are hashed four at a time as fast.
const fewKeys = 8

// placesBySIMD is false, and does nothing, where the processor lacks the instructions or the keys are few.
func (g *group) placesBySIMD(places [][lanes]uint32, size uint32) bool {
	if !simd || g.keys <= fewKeys {
		return false
	}
	var tails *[lanes]uint32
	if g.length%4 > 0 {
		tails = &g.tails
	}
	// x/size for x up to 1<<31 is x*inverse >> shift, where inverse is at least 1<<shift / size by less than 1.
	shift := 31 + bits.Len32(size-1)
	inverse := (uint64(1)<<shift + uint64(size) - 1) / uint64(size)
	placesAVX2(&places[0], len(places), &g.words[0], g.length/4, tails, uint32(g.length), size, uint32(inverse), uint32(shift))
	return true
}

// placesAVX2 does what placesOfFour does, for all lanes; without a tail, tails is nil.
//
//go:noescape
func placesAVX2(places *[lanes]uint32, hashes int, words *[lanes]uint32, n int, tails *[lanes]uint32, length, size, inverse, shift uint32)
