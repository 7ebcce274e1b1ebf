package bloom

import "testing"

// Without AVX2 the places are the same.
func TestPlacesOfGroupsWithoutAVX2(t *testing.T) {
	defer func(was bool) { simd = was }(simd)
	simd = false
	TestPlacesOfGroups(t)
}
