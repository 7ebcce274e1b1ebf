package bloom

// lanes is how many keys are hashed side by side. The hashes of one key wait for one another; those of several keys take little longer
// than those of one.
const lanes = 32

// maxGroupKey is the longest key that joins a group.
const maxGroupKey = 127

// group is up to lanes keys of one length, each as mixed has it: word i of key k is words[i][k].
type group struct {
	words  [maxGroupKey / 4][lanes]uint32
	tails  [lanes]uint32
	length int
	keys   int
	sums   [][lanes]uint32 // scratch of places
}

// fits says whether the key can join.
func (g *group) fits(key string) bool {
	return g.keys == 0 || g.keys < lanes && g.length == len(key)
}

func (g *group) add(key string) {
	k := g.keys
	g.length, g.keys = len(key), k+1
	for i := range g.words[:len(key)/4] {
		w := (uint32(key[0]) | uint32(key[1])<<8 | uint32(key[2])<<16 | uint32(key[3])<<24) * murmurM
		w ^= w >> 24
		g.words[i][k] = w * murmurM
		key = key[4:]
	}
	g.tails[k] = tailOf(key)
}

// places gives the places of the keys among size bits: the first of each key, the second of each, and so on.
func (g *group) places(hashes int, magic uint64, size uint32) [][lanes]uint32 {
	if len(g.sums) < hashes {
		g.sums = make([][lanes]uint32, hashes)
	}
	places := g.sums[:hashes]
	if !g.placesBySIMD(places, size) {
		for from := 0; from < g.keys; from += 4 {
			g.placesOfFour(places, from, magic, size)
		}
	}
	return places
}

func (g *group) placesOfFour(places [][lanes]uint32, from int, magic uint64, size uint32) {
	var a, b, c, d uint32
	words, length, tails := g.words[:g.length/4], uint32(g.length), (*[4]uint32)(g.tails[from:])
	for i := range places {
		a, b, c, d = a^length, b^length, c^length, d^length
		for j := range words {
			w := (*[4]uint32)(words[j][from:])
			a = a*murmurM ^ w[0]
			b = b*murmurM ^ w[1]
			c = c*murmurM ^ w[2]
			d = d*murmurM ^ w[3]
		}
		if length%4 > 0 {
			a = (a ^ tails[0]) * murmurM
			b = (b ^ tails[1]) * murmurM
			c = (c ^ tails[2]) * murmurM
			d = (d ^ tails[3]) * murmurM
		}
		a, b, c, d = finish(a), finish(b), finish(c), finish(d)
		out := (*[4]uint32)(places[i][from:])
		out[0], out[1], out[2], out[3] = position(a, magic, size), position(b, magic, size), position(c, magic, size), position(d, magic, size)
	}
}
