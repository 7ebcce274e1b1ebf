package basefile

// span is the smallest and the largest of some texts. Most others are told apart from both ends by eight bytes, whose order is that of
// a number: those behind the eight that both ends begin with, if there are such.
type span[T string | []byte] struct {
	low, high         T
	skip              int // 0 or 8 bytes that both ends begin with
	first             uint64
	lowHead, highHead uint64 // of what follows
}

// beyondASCII are the bits that only characters beyond ASCII have, in eight bytes.
const beyondASCII = 0x8080808080808080

func newSpan[T string | []byte](low, high T) span[T] {
	s := span[T]{low: low, high: high}
	s.look()
	return s
}

func (s *span[T]) look() {
	s.skip, s.first, s.lowHead, s.highHead = 0, head(s.low), head(s.low), head(s.high)
	if s.lowHead == s.highHead && len(s.low) >= 8 && len(s.high) >= 8 {
		s.skip, s.lowHead, s.highHead = 8, head(s.low[8:]), head(s.high[8:])
	}
}

// add widens the span to hold x, in an order that is that of bytes where these are ASCII; ascii says that others have another order.
func (s *span[T]) add(x T, ascii bool, compare func(a, b T) int) {
	h := head(x)
	if s.skip == 0 || h == s.first && len(x) >= 8 {
		if s.skip > 0 {
			h = head(x[8:])
		}
		if !ascii || (h|s.lowHead|s.highHead)&beyondASCII == 0 {
			switch {
			case s.lowHead < h && h < s.highHead:
				return
			case h > s.highHead:
				s.high, s.highHead = x, h
				return
			case h < s.lowHead:
				s.low, s.lowHead = x, h
				return
			}
		}
	}
	switch {
	case compare(x, s.high) > 0:
		s.high = x
		s.look()
	case compare(x, s.low) < 0:
		s.low = x
		s.look()
	}
}

// head is the first eight bytes as a number; shorter texts are filled up with zeros.
func head[T string | []byte](x T) uint64 {
	if len(x) < 8 {
		return shortHead(x)
	}
	return uint64(x[7]) | uint64(x[6])<<8 | uint64(x[5])<<16 | uint64(x[4])<<24 | uint64(x[3])<<32 | uint64(x[2])<<40 | uint64(x[1])<<48 | uint64(x[0])<<56
}

func shortHead[T string | []byte](x T) uint64 {
	h := uint64(0)
	for i := range len(x) {
		h |= uint64(x[i]) << (56 - 8*i)
	}
	return h
}
