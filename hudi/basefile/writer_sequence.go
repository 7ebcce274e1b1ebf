package basefile

import "encoding/binary"

// sequence is the levels or the dictionary indexes of a page. As long as all are equal it is only a count, so a column of one
// value, or without a null, costs nothing for each row.
type sequence[T uint8 | uint32] struct {
	n    int
	same T   // each of the n, while rest is empty
	rest []T // the n, once two of them differ
}

func (s *sequence[T]) reset() { s.n, s.rest = 0, s.rest[:0] }

// repeat adds v n times.
func (s *sequence[T]) repeat(v T, n int) {
	if n == 0 {
		return
	}
	if s.n == 0 {
		s.same = v
	}
	if len(s.rest) == 0 && v == s.same {
		s.n += n
		return
	}
	s.spread()
	s.n += n
	if n == 1 {
		s.rest = append(s.rest, v)
		return
	}
	at := len(s.rest)
	s.rest = grown(s.rest, n)
	for i := at; i < len(s.rest); i++ {
		s.rest[i] = v
	}
}

// more gives room for up to n values that are about to differ: the caller writes them and says with took how many.
func (s *sequence[T]) more(n int) []T {
	s.spread()
	at := len(s.rest)
	s.rest = grown(s.rest, n)[:at]
	return s.rest[at : at+n]
}

func (s *sequence[T]) took(n int) {
	s.n += n
	s.rest = s.rest[:len(s.rest)+n]
}

func (s *sequence[T]) spread() {
	if len(s.rest) > 0 || s.n == 0 {
		return
	}
	s.rest = grown(s.rest, s.n)
	for i := range s.rest {
		s.rest[i] = s.same
	}
}

// grown is b with n more values of any content.
func grown[T any](b []T, n int) []T {
	if need := len(b) + n; need > cap(b) {
		next := make([]T, len(b), max(need, cap(b)+cap(b)/2))
		copy(next, b)
		b = next
	}
	return b[:len(b)+n]
}

// size is about how many bytes the hybrid takes.
func (s *sequence[T]) size(width int) int { return len(s.rest)*width/8 + 8 }

// appendHybrid encodes as the RLE and bit-packing hybrid of Parquet: runs of equal values, at least eight of them, and between
// them groups of eight values of width bits each.
func (s *sequence[T]) appendHybrid(dst []byte, width int) []byte {
	if s.n == 0 {
		return dst
	}
	if len(s.rest) == 0 {
		return appendEqual(dst, uint32(s.same), s.n, width)
	}
	v := s.rest
	for at := 0; at < len(v); {
		// Groups of eight up to the next one whose values are all equal.
		start := at
		for at+8 <= len(v) && !allEqual(v[at:at+8]) {
			at += 8
		}
		if at+8 > len(v) {
			return appendPacked(dst, v[start:], width)
		}
		if at > start {
			dst = appendPacked(dst, v[start:at], width)
		}
		end := at + 8
		for end < len(v) && v[end] == v[at] {
			end++
		}
		dst = appendEqual(dst, uint32(v[at]), end-at, width)
		at = end
	}
	return dst
}

func allEqual[T comparable](v []T) bool {
	first := v[0]
	for _, x := range v[1:] {
		if x != first {
			return false
		}
	}
	return true
}

func appendEqual(dst []byte, v uint32, n, width int) []byte {
	dst = binary.AppendUvarint(dst, uint64(n)<<1)
	for ; width > 0; width -= 8 {
		dst = append(dst, byte(v))
		v >>= 8
	}
	return dst
}

// appendPacked fills the last group of eight with zeros.
func appendPacked[T uint8 | uint32](dst []byte, v []T, width int) []byte {
	groups := (len(v) + 7) / 8
	dst = binary.AppendUvarint(dst, uint64(groups)<<1|1)
	for ; len(v) >= 8; v = v[8:] {
		dst = appendGroup(dst, v, width)
	}
	if len(v) > 0 {
		var last [8]T
		copy(last[:], v)
		dst = appendGroup(dst, last[:], width)
	}
	return dst
}

// appendGroup packs eight values, the first in the lowest bits.
func appendGroup[T uint8 | uint32](dst []byte, v []T, width int) []byte {
	v = v[:8]
	if width <= 8 {
		w := uint(width)
		bits := uint64(v[0]) | uint64(v[1])<<w | uint64(v[2])<<(2*w) | uint64(v[3])<<(3*w) | uint64(v[4])<<(4*w) | uint64(v[5])<<(5*w) | uint64(v[6])<<(6*w) | uint64(v[7])<<(7*w)
		var out [8]byte
		binary.LittleEndian.PutUint64(out[:], bits)
		return append(dst, out[:width]...)
	}
	bits, have := uint64(0), 0
	for _, x := range v {
		bits |= uint64(x) << have
		for have += width; have >= 8; have -= 8 {
			dst = append(dst, byte(bits))
			bits >>= 8
		}
	}
	return dst
}
