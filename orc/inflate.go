package orc

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// inflater decodes one whole deflate stream (RFC 1951) at a time into a buffer that has room for it. That the output is one
// piece, and known to be at most a chunk, makes it about twice as fast as a decoder of streams.
type inflater struct {
	// Behind each first table there is room for the most second tables that a code of its symbols can have.
	lit  [1<<litBits + 144<<(maxCodeBits-litBits)]symbol
	dist [1<<distBits + 15<<(maxCodeBits-distBits)]symbol

	src     []byte
	in      int
	bits    uint64
	n       int // bits in hand
	lengths [288 + 32]uint8
}

var errDeflate = errors.New("damaged deflate data")

// Bits that the first look at a table takes. Longer codes have a second table.
const (
	litBits     = 11
	distBits    = 8
	maxCodeBits = 15
)

// symbol is what a code stands for: in the low byte the bits of the code (low half) and those that follow it (high half), in
// the next one the kind, and above the value.
type symbol uint32

const (
	isLiteral symbol = (iota + 1) << 8
	isBase           // a length or distance, to which the bits that follow are added
	isEnd
	isTable // the second table: its size in bits is where the bits that follow are counted

	kindMask symbol = 0xff << 8
)

func (s symbol) code() int     { return int(s & 15) }
func (s symbol) extra() int    { return int(s >> 4 & 15) }
func (s symbol) value() int    { return int(s >> 16) }
func (s symbol) kind() symbol  { return s & kindMask }
func (s symbol) invalid() bool { return s == 0 }

// The bases of lengths (codes 257 on) and of distances, with their extra bits (RFC 1951, 3.2.5).
var (
	lengthBase  = [29]uint16{3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258}
	lengthExtra = [29]uint8{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0}
	distBase    = [30]uint16{1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577}
	distExtra   = [30]uint8{0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13}
	// lengthOrder is the order of the lengths of the code of code lengths (RFC 1951, 3.2.7).
	lengthOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}
)

// decode fills dst from the stream src and returns how many bytes that were.
func (f *inflater) decode(dst, src []byte) (int, error) {
	f.src, f.in, f.bits, f.n = src, 0, 0, 0
	out := 0
	for {
		f.refill()
		head, ok := f.take(3)
		if !ok {
			return out, errDeflate
		}
		var err error
		switch head >> 1 {
		case 0:
			out, err = f.stored(dst, out)
		case 1:
			f.fixed()
			out, err = f.block(dst, out)
		case 2:
			if err = f.dynamic(); err == nil {
				out, err = f.block(dst, out)
			}
		default:
			err = errDeflate
		}
		if err != nil || head&1 == 1 {
			return out, err
		}
	}
}

// refill takes bits in hand: 56 at least, or all there are.
func (f *inflater) refill() {
	if len(f.src)-f.in >= 8 {
		f.bits |= binary.LittleEndian.Uint64(f.src[f.in:]) << f.n
		f.in += (63 - f.n) >> 3
		f.n |= 56
		return
	}
	for f.n < 56 && f.in < len(f.src) {
		f.bits |= uint64(f.src[f.in]) << f.n
		f.in++
		f.n += 8
	}
}

// take consumes k bits in hand.
func (f *inflater) take(k int) (int, bool) {
	if k > f.n {
		return 0, false
	}
	v := int(f.bits & (1<<k - 1))
	f.bits >>= k
	f.n -= k
	return v, true
}

func (f *inflater) stored(dst []byte, out int) (int, error) {
	f.in -= f.n >> 3 // back to the byte after the header
	f.bits, f.n = 0, 0
	if len(f.src)-f.in < 4 {
		return out, errDeflate
	}
	n := int(binary.LittleEndian.Uint16(f.src[f.in:]))
	if n^0xffff != int(binary.LittleEndian.Uint16(f.src[f.in+2:])) {
		return out, errDeflate
	}
	f.in += 4
	if n > len(f.src)-f.in {
		return out, errDeflate
	}
	if n > len(dst)-out {
		return out, tooLong(out+n, len(dst))
	}
	copy(dst[out:], f.src[f.in:f.in+n])
	f.in += n
	return out + n, nil
}

func (f *inflater) fixed() {
	l := f.lengths[:288]
	for i := range l {
		switch {
		case i < 144, i >= 280:
			l[i] = 8
		case i < 256:
			l[i] = 9
		default:
			l[i] = 7
		}
	}
	d := f.lengths[288:320]
	for i := range d {
		d[i] = 5
	}
	// Complete codes: building cannot fail.
	_ = buildTable(f.lit[:], litBits, l, litSymbol)
	_ = buildTable(f.dist[:], distBits, d, distSymbol)
}

// dynamic reads the codes of a block.
func (f *inflater) dynamic() error {
	f.refill()
	head, ok := f.take(14)
	if !ok {
		return errDeflate
	}
	lits, dists, n := head&31+257, head>>5&31+1, head>>10+4
	if lits > 286 || dists > 30 {
		return errDeflate
	}
	var order [19]uint8
	for i := range n {
		f.refill()
		v, ok := f.take(3)
		if !ok {
			return errDeflate
		}
		order[lengthOrder[i]] = uint8(v)
	}
	if !buildTable(f.dist[:], 7, order[:], func(i int) symbol { return isLiteral | symbol(i)<<16 }) {
		return errDeflate
	}
	if err := f.codeLengths(lits + dists); err != nil {
		return err
	}
	if f.lengths[256] == 0 || !buildTable(f.lit[:], litBits, f.lengths[:lits], litSymbol) ||
		!buildTable(f.dist[:], distBits, f.lengths[lits:lits+dists], distSymbol) {
		return errDeflate
	}
	return nil
}

// codeLengths reads the lengths of both codes.
func (f *inflater) codeLengths(n int) error {
	for i := 0; i < n; {
		f.refill()
		s := f.dist[f.bits&127]
		if s.invalid() {
			return errDeflate
		}
		if _, ok := f.take(s.code()); !ok {
			return errDeflate
		}
		if s.value() < 16 {
			f.lengths[i] = uint8(s.value())
			i++
			continue
		}
		width, base, repeat := 2, 3, uint8(0)
		switch s.value() {
		case 16:
			if i == 0 {
				return errDeflate
			}
			repeat = f.lengths[i-1]
		case 17:
			width = 3
		case 18:
			width, base = 7, 11
		}
		k, ok := f.take(width)
		if k += base; !ok || k > n-i {
			return errDeflate
		}
		for range k {
			f.lengths[i] = repeat
			i++
		}
	}
	return nil
}

func litSymbol(i int) symbol {
	switch {
	case i < 256:
		return isLiteral | symbol(i)<<16
	case i == 256:
		return isEnd
	case i-257 < len(lengthBase):
		return isBase | symbol(lengthBase[i-257])<<16 | symbol(lengthExtra[i-257])<<4
	}
	return 0
}

func distSymbol(i int) symbol {
	if i >= len(distBase) {
		return 0
	}
	return isBase | symbol(distBase[i])<<16 | symbol(distExtra[i])<<4
}

// buildTable makes the table of a code from the lengths of its symbols; false where there are too many codes, or too few of
// more than one. Codes that stand for nothing have the entry 0.
func buildTable(table []symbol, first int, lengths []uint8, meaning func(int) symbol) bool {
	var count, next [maxCodeBits + 2]int
	longest, used := 0, 0
	for _, l := range lengths {
		count[l]++
		if l > 0 {
			used++
			longest = max(longest, int(l))
		}
	}
	clear(table[:1<<first]) // second tables are always filled
	if used == 0 {
		return true
	}
	count[0] = 0
	code := 0
	for l := 1; l <= maxCodeBits; l++ {
		code = (code + count[l-1]) << 1
		next[l] = code
		if code+count[l] > 1<<l {
			return false
		}
	}
	if code+count[maxCodeBits] != 1<<maxCodeBits && (used > 1 || longest > 1) {
		return false
	}
	free := 1 << first // where the next second table goes
	for i, l := range lengths {
		if l == 0 {
			continue
		}
		m := meaning(i)
		c := int(bits.Reverse16(uint16(next[l])) >> (16 - l))
		next[l]++
		if m == 0 {
			continue // a code of the fixed block that stands for nothing
		}
		if int(l) <= first {
			for at := c; at < 1<<first; at += 1 << l {
				table[at] = m | symbol(l)
			}
			continue
		}
		low := c & (1<<first - 1)
		sub := table[low]
		if sub == 0 {
			size := longest - first
			sub = isTable | symbol(free)<<16 | symbol(size)<<4 | symbol(first)
			table[low] = sub
			free += 1 << size
		}
		for at := c >> first; at < 1<<sub.extra(); at += 1 << (int(l) - first) {
			table[sub.value()+at] = m | symbol(int(l)-first)
		}
	}
	return true
}

// block decodes the symbols of one block into dst from out on.
func (f *inflater) block(dst []byte, out int) (int, error) {
	src, in, hand, n := f.src, f.in, f.bits, f.n
	for {
		if len(src)-in >= 8 {
			hand |= binary.LittleEndian.Uint64(src[in:]) << (n & 63)
			in += (63 - n) >> 3
			n |= 56
		} else {
			for n < 56 && in < len(src) {
				hand |= uint64(src[in]) << n
				in++
				n += 8
			}
		}
		s := f.lit[hand&(1<<litBits-1)]
		// Up to three literals from the bits in hand.
		for range 2 {
			if s.kind() != isLiteral || s.invalid() || s.code() > n || out >= len(dst) {
				break
			}
			dst[out] = byte(s.value())
			out++
			hand >>= s.code()
			n -= s.code()
			s = f.lit[hand&(1<<litBits-1)]
		}
		if s.kind() == isTable {
			at := s.value() + int(hand>>litBits&(1<<s.extra()-1))
			hand >>= litBits
			n -= litBits
			s = f.lit[at]
		}
		if s.invalid() || s.code() > n {
			return out, errDeflate
		}
		hand >>= s.code()
		n -= s.code()
		switch s.kind() {
		case isLiteral:
			if out >= len(dst) {
				return out, tooLong(out+1, len(dst))
			}
			dst[out] = byte(s.value())
			out++
			continue
		case isEnd:
			f.in, f.bits, f.n = in, hand, n
			return out, nil
		}
		length := s.value() + int(hand&(1<<s.extra()-1))
		hand >>= s.extra()
		n -= s.extra()
		if n < 0 {
			return out, errDeflate
		}
		if n < maxCodeBits+13 {
			if len(src)-in >= 8 {
				hand |= binary.LittleEndian.Uint64(src[in:]) << (n & 63)
				in += (63 - n) >> 3
				n |= 56
			}
			for n < maxCodeBits+13 && in < len(src) {
				hand |= uint64(src[in]) << n
				in++
				n += 8
			}
		}
		d := f.dist[hand&(1<<distBits-1)]
		if d.kind() == isTable {
			at := d.value() + int(hand>>distBits&(1<<d.extra()-1))
			hand >>= distBits
			n -= distBits
			d = f.dist[at]
		}
		if d.invalid() || d.code()+d.extra() > n {
			return out, errDeflate
		}
		hand >>= d.code()
		distance := d.value() + int(hand&(1<<d.extra()-1))
		hand >>= d.extra()
		n -= d.code() + d.extra()
		if distance > out {
			return out, errDeflate
		}
		if length > len(dst)-out {
			return out, tooLong(out+length, len(dst))
		}
		copyMatch(dst, out, distance, length)
		out += length
	}
}

// copyMatch repeats length bytes from distance before out.
func copyMatch(dst []byte, out, distance, length int) {
	from := out - distance
	switch {
	case distance >= 16 && length <= 16 && len(dst)-out >= 16:
		to, a := dst[out:out+16], dst[from:from+16]
		binary.LittleEndian.PutUint64(to, binary.LittleEndian.Uint64(a))
		binary.LittleEndian.PutUint64(to[8:], binary.LittleEndian.Uint64(a[8:]))
	case distance >= length:
		copy(dst[out:out+length], dst[from:])
	default:
		for i := range length {
			dst[out+i] = dst[from+i]
		}
	}
}
