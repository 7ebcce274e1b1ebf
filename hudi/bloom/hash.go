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

func finish(h uint32) uint32 {
	h ^= h >> 13
	h *= murmurM
	return h ^ h>>15
}
