package bloom

import "encoding/binary"

// Hash is the hash function of a filter; its value is the byte that a serialised filter holds.
type Hash uint8

// The hash functions of Hadoop's bloom filters. Apache Hudi makes filters with Murmur.
const (
	Jenkins Hash = 0
	Murmur  Hash = 1
)

func (h Hash) String() string {
	switch h {
	case Jenkins:
		return "jenkins"
	case Murmur:
		return "murmur"
	}
	return "unknown"
}

// Sum is the hash of key with a seed, as Hadoop's classes give it (table format 5.4).
func (h Hash) Sum(key []byte, seed uint32) int32 {
	if h == Jenkins {
		return int32(jenkins(key, seed))
	}
	var m mixed
	m.set(key)
	return int32(m.murmur(seed))
}

const murmurM = 0x5bd1e995

// mixed is a key with the part of its Murmur hash done that does not depend on the seed. A filter hashes each key thirty
// times, each time with the last hash as the seed, so this saves most of the work.
type mixed struct {
	words  []uint32
	tail   uint32 // what the last one to three bytes add
	tailed bool
	length uint32
	room   [32]uint32 // words of a key of up to 128 bytes
}

func (m *mixed) set(key []byte) {
	m.words = m.room[:0]
	m.length = uint32(len(key))
	for ; len(key) >= 4; key = key[4:] {
		k := binary.LittleEndian.Uint32(key) * murmurM
		k ^= k >> 24
		m.words = append(m.words, k*murmurM)
	}
	m.tail, m.tailed = tailOf(key), len(key) > 0
}

// tailOf reads the bytes from the last one backwards, and each as a signed number: where the canonical Murmur2 has the
// unsigned byte, a byte above 0x7f also turns over every bit above it.
func tailOf[T string | []byte](tail T) uint32 {
	t := uint32(0)
	for back := 1; back <= len(tail); back++ {
		t ^= uint32(int32(int8(tail[len(tail)-back]))) << (8 * (back - 1))
	}
	return t
}

func (m *mixed) murmur(seed uint32) uint32 {
	h := seed ^ m.length
	for _, k := range m.words {
		h = h*murmurM ^ k
	}
	if m.tailed {
		h = (h ^ m.tail) * murmurM
	}
	return finish(h)
}

// lanes is how many keys are hashed side by side.
const lanes = 4

// quad is four keys of one length, as mixed has one: word i of key k is words[i][k].
type quad struct {
	words  [32][lanes]uint32
	n      int // words of a key
	tails  [lanes]uint32
	tailed bool
	length uint32
}

// set takes four keys, if they have one length that is not too long.
func (q *quad) set(keys *[lanes]string) bool {
	size := len(keys[0])
	for _, key := range keys[1:] {
		if len(key) != size {
			return false
		}
	}
	if size >= 4*len(q.words) {
		return false
	}
	q.length, q.n, q.tailed = uint32(size), size/4, size%4 > 0
	for k, key := range keys {
		for i := range q.words[:q.n] {
			w := (uint32(key[0]) | uint32(key[1])<<8 | uint32(key[2])<<16 | uint32(key[3])<<24) * murmurM
			w ^= w >> 24
			q.words[i][k] = w * murmurM
			key = key[4:]
		}
		q.tails[k] = tailOf(key)
	}
	return true
}

// murmurs gives the places of the four keys among so many bits, one after the other.
func (q *quad) murmurs(places [][lanes]uint32, magic uint64, size uint32) {
	var a, b, c, d uint32
	words := q.words[:q.n]
	for i := range places {
		a, b, c, d = a^q.length, b^q.length, c^q.length, d^q.length
		for j := range words {
			w := &words[j]
			a = a*murmurM ^ w[0]
			b = b*murmurM ^ w[1]
			c = c*murmurM ^ w[2]
			d = d*murmurM ^ w[3]
		}
		if q.tailed {
			a = (a ^ q.tails[0]) * murmurM
			b = (b ^ q.tails[1]) * murmurM
			c = (c ^ q.tails[2]) * murmurM
			d = (d ^ q.tails[3]) * murmurM
		}
		a, b, c, d = finish(a), finish(b), finish(c), finish(d)
		places[i] = [lanes]uint32{a, b, c, d}
	}
	for i := range places {
		for k, sum := range places[i] {
			places[i][k] = position(sum, magic, size)
		}
	}
}

func finish(h uint32) uint32 {
	h ^= h >> 13
	h *= murmurM
	return h ^ h>>15
}
