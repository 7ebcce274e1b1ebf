//go:build !amd64

package bloom

func (g *group) placesBySIMD([][lanes]uint32, uint32) bool { return false }
