package orc

import (
	"encoding/binary"
	"math/bits"
)

// byteDecoder reads byte run length encoding (specification, "Byte Run Length Encoding").
type byteDecoder struct {
	in      *input
	left    int  // values left of the current run or literals
	literal bool // the values follow one by one
	value   byte // otherwise the value that repeats
}

func (d *byteDecoder) header() error {
	h, err := d.in.readByte()
	if err != nil {
		return err
	}
	if d.literal = h >= 0x80; d.literal {
		d.left = 256 - int(h)
		return nil
	}
	d.left = int(h) + 3
	d.value, err = d.in.readByte()
	return err
}

func (d *byteDecoder) read(dst []byte) error {
	for len(dst) > 0 {
		if d.left == 0 {
			if err := d.header(); err != nil {
				return err
			}
		}
		n := min(d.left, len(dst))
		if d.literal {
			if err := d.in.readFull(dst[:n]); err != nil {
				return err
			}
		} else {
			for i := range dst[:n] {
				dst[i] = d.value
			}
		}
		d.left -= n
		dst = dst[n:]
	}
	return nil
}

func (d *byteDecoder) next() (b byte, err error) {
	if d.left == 0 {
		if err := d.header(); err != nil {
			return 0, err
		}
	}
	d.left--
	if d.literal {
		return d.in.readByte()
	}
	return d.value, nil
}

func (d *byteDecoder) skip(n int) error {
	for n > 0 {
		if d.left == 0 {
			if err := d.header(); err != nil {
				return err
			}
		}
		k := min(d.left, n)
		if d.literal {
			if err := d.in.skip(uint64(k)); err != nil {
				return err
			}
		}
		d.left -= k
		n -= k
	}
	return nil
}

// boolDecoder reads bits, which the format packs from the most significant one down, into bitmaps that are packed from the
// least significant one up.
type boolDecoder struct {
	bytes byteDecoder
	cur   byte // the bits that are left of the last byte, the next one lowest
	left  int
}

// read fills the first n bits of dst, whose bytes it overwrites, and counts the ones.
func (d *boolDecoder) read(dst []byte, n int) (ones int, err error) {
	if n == 0 {
		return 0, nil
	}
	size := (n + 7) / 8
	dst = dst[:size]
	fresh := (n - d.left + 7) / 8 // bytes to take from the stream
	if n <= d.left {
		fresh = 0
	}
	if err := d.bytes.read(dst[:fresh]); err != nil {
		return 0, err
	}
	carry, left := d.cur, d.left
	if left == 0 {
		for i, b := range dst[:fresh] {
			dst[i] = bits.Reverse8(b)
		}
		if rest := fresh*8 - n; rest > 0 {
			d.cur, d.left = dst[size-1]>>(8-rest), rest
		}
	} else {
		for i := range dst {
			if i < fresh {
				b := bits.Reverse8(dst[i])
				dst[i] = carry | b<<left
				carry = b >> (8 - left)
			} else {
				dst[i], carry = carry, 0
			}
		}
		// What the stream gave and dst did not take.
		have := left + fresh*8
		if d.left = have - n; d.left > 0 {
			last := n % 8
			switch {
			case last == 0 && have > size*8:
				d.cur = carry
			case last == 0:
				d.left = 0
			case have > size*8:
				d.cur = dst[size-1]>>last | carry<<(8-last)
			default:
				d.cur = dst[size-1] >> last
			}
		}
	}
	if last := n % 8; last != 0 {
		dst[size-1] &= 1<<last - 1
	}
	for _, b := range dst {
		ones += bits.OnesCount8(b)
	}
	return ones, nil
}

// skip passes n bits and counts the ones among them.
func (d *boolDecoder) skip(n int) (ones int, err error) {
	var buf [64]byte
	for n > 0 {
		k := min(n, 8*len(buf))
		c, err := d.read(buf[:], k)
		if err != nil {
			return 0, err
		}
		ones += c
		n -= k
	}
	return ones, nil
}

// maxRun is the most values that one run of either version of the integer encodings has.
const maxRun = 512

// intDecoder reads integers in run length encoding of version 1 or 2.
type intDecoder struct {
	in     *input
	signed bool
	v2     bool
	run    [maxRun]int64
	n, pos int // of run
}

// read fills dst.
func (d *intDecoder) read(dst []int64) error {
	for len(dst) > 0 {
		if d.pos == d.n {
			if len(dst) >= maxRun {
				n, err := d.decode(dst[:maxRun])
				if err != nil {
					return err
				}
				dst = dst[n:]
				continue
			}
			if err := d.fill(); err != nil {
				return err
			}
		}
		n := copy(dst, d.run[d.pos:d.n])
		dst, d.pos = dst[n:], d.pos+n
	}
	return nil
}

func (d *intDecoder) fill() (err error) {
	d.pos = 0
	d.n, err = d.decode(d.run[:])
	return err
}

func (d *intDecoder) skip(n int) error {
	for n > 0 {
		if d.pos == d.n {
			if err := d.fill(); err != nil {
				return err
			}
		}
		k := min(n, d.n-d.pos)
		d.pos += k
		n -= k
	}
	return nil
}

// decode reads one run into out, which has room for maxRun values.
func (d *intDecoder) decode(out []int64) (int, error) {
	h, err := d.in.readByte()
	if err != nil {
		return 0, err
	}
	if !d.v2 {
		return d.version1(h, out)
	}
	switch h >> 6 {
	case 0:
		return d.shortRepeat(h, out)
	case 1:
		return d.direct(h, out)
	case 2:
		return d.patched(h, out)
	}
	return d.delta(h, out)
}

func (d *intDecoder) value() (int64, error) {
	if d.signed {
		return d.in.varint()
	}
	u, err := d.in.uvarint()
	return int64(u), err
}

// version1 reads a run or literals of version 1.
func (d *intDecoder) version1(h byte, out []int64) (int, error) {
	if h >= 0x80 {
		n := 256 - int(h)
		for i := range out[:n] {
			v, err := d.value()
			if err != nil {
				return 0, err
			}
			out[i] = v
		}
		return n, nil
	}
	step, err := d.in.readByte()
	if err != nil {
		return 0, err
	}
	v, err := d.value()
	n := int(h) + 3
	for i := range out[:n] {
		out[i] = v
		v += int64(int8(step))
	}
	return n, err
}

func (d *intDecoder) shortRepeat(h byte, out []int64) (int, error) {
	width, n := int(h>>3&7)+1, int(h&7)+3
	u, err := d.bigEndian(width)
	v := int64(u)
	if d.signed {
		v = unzigzag(u)
	}
	for i := range out[:n] {
		out[i] = v
	}
	return n, err
}

// bigEndian reads a number of the given width in bytes.
func (d *intDecoder) bigEndian(width int) (u uint64, err error) {
	b, err := d.in.take(width)
	for _, c := range b {
		u = u<<8 | uint64(c)
	}
	return u, err
}

// widths gives the bit width of each code of five bits (specification, "Direct"); delta encoding reads code 0 as width 0.
var widths = [32]uint8{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 28, 30, 32, 40, 48, 56, 64}

// header2 reads the second byte of the two-byte header: the code of the width and the count of values.
func (d *intDecoder) header2(h byte) (code byte, n int, err error) {
	l, err := d.in.readByte()
	return h >> 1 & 31, int(h&1)<<8 | int(l) + 1, err
}

func (d *intDecoder) direct(h byte, out []int64) (int, error) {
	code, n, err := d.header2(h)
	if err != nil {
		return 0, err
	}
	width := int(widths[code])
	b, err := d.in.take((width*n + 7) / 8)
	if err != nil {
		return 0, err
	}
	out = out[:n]
	unpack(b, width, out)
	if d.signed {
		for i, v := range out {
			out[i] = unzigzag(uint64(v))
		}
	}
	return n, nil
}

func (d *intDecoder) delta(h byte, out []int64) (int, error) {
	code, n, err := d.header2(h)
	if err != nil {
		return 0, err
	}
	base, err := d.value()
	if err != nil {
		return 0, err
	}
	step, err := d.in.varint()
	if err != nil {
		return 0, err
	}
	out = out[:n]
	if code == 0 {
		for i := range out {
			out[i] = base
			base += step
		}
		return n, nil
	}
	out[0] = base
	if n == 1 {
		return n, nil
	}
	base += step
	out[1] = base
	rest := out[2:]
	width := int(widths[code])
	b, err := d.in.take((width*len(rest) + 7) / 8)
	if err != nil {
		return 0, err
	}
	unpack(b, width, rest)
	if step < 0 {
		for i, v := range rest {
			base -= v
			rest[i] = base
		}
		return n, nil
	}
	for i, v := range rest {
		base += v
		rest[i] = base
	}
	return n, nil
}

func (d *intDecoder) patched(h byte, out []int64) (int, error) {
	code, n, err := d.header2(h)
	if err != nil {
		return 0, err
	}
	b, err := d.in.take(2)
	if err != nil {
		return 0, err
	}
	width := int(widths[code])
	baseWidth, patchWidth := int(b[0]>>5)+1, int(widths[b[0]&31])
	gapWidth, patches := int(b[1]>>5)+1, int(b[1]&31)
	if patchWidth+gapWidth > 64 {
		return 0, d.in.damaged("a patch of %d bits", patchWidth+gapWidth)
	}
	u, err := d.bigEndian(baseWidth)
	if err != nil {
		return 0, err
	}
	base := int64(u)
	if sign := uint64(1) << (baseWidth*8 - 1); u&sign != 0 {
		base = -int64(u &^ sign)
	}
	if b, err = d.in.take((width*n + 7) / 8); err != nil {
		return 0, err
	}
	out = out[:n]
	unpack(b, width, out)
	if err := d.patch(out, patches, patchWidth, gapWidth, width); err != nil {
		return 0, err
	}
	for i := range out {
		out[i] += base
	}
	return n, nil
}

// patch puts the high bits of the values that are wider than the rest.
func (d *intDecoder) patch(out []int64, patches, patchWidth, gapWidth, width int) error {
	var list [31]int64
	entryWidth := int(closestWidth(patchWidth + gapWidth))
	b, err := d.in.take((entryWidth*patches + 7) / 8)
	if err != nil {
		return err
	}
	unpack(b, entryWidth, list[:patches])
	at := 0
	for _, e := range list[:patches] {
		at += int(uint64(e) >> patchWidth & (1<<gapWidth - 1))
		p := uint64(e) & (1<<patchWidth - 1)
		if p == 0 {
			continue // only bridges a gap that is too wide for one entry
		}
		if at >= len(out) {
			return d.in.damaged("a patch of value %d of %d", at, len(out))
		}
		out[at] |= int64(p << width)
	}
	return nil
}

// closestWidth gives the least width of the table that holds n bits.
func closestWidth(n int) uint8 {
	switch {
	case n <= 1:
		return 1
	case n <= 24:
		return uint8(n)
	}
	for _, w := range widths[24:] {
		if n <= int(w) {
			return w
		}
	}
	return 64
}

// unpack reads len(out) numbers of the given width, big endian, from b, behind which slack bytes can be read.
func unpack(b []byte, width int, out []int64) {
	n := len(out)
	switch width {
	case 8:
		for i, c := range b[:n] {
			out[i] = int64(c)
		}
	case 16:
		b = b[:2*n]
		for i := range out {
			out[i] = int64(binary.BigEndian.Uint16(b[2*i:]))
		}
	case 32:
		b = b[:4*n]
		for i := range out {
			out[i] = int64(binary.BigEndian.Uint32(b[4*i:]))
		}
	case 64:
		b = b[:8*n]
		for i := range out {
			out[i] = int64(binary.BigEndian.Uint64(b[8*i:]))
		}
	case 1, 2, 4:
		unpackSmall(b, width, out)
	default:
		b = b[:len(b)+slack]
		drop := 64 - width
		at := 0
		for i := range out {
			w := binary.BigEndian.Uint64(b[at>>3:])
			out[i] = int64(w << (at & 7) >> drop)
			at += width
		}
	}
}

// unpackSmall unpacks widths that divide a byte.
func unpackSmall(b []byte, width int, out []int64) {
	per := 8 / width
	mask := byte(1<<width - 1)
	for len(out) >= per {
		c := b[0]
		b = b[1:]
		for j := range out[:per] {
			out[j] = int64(c >> (8 - width - j*width) & mask)
		}
		out = out[per:]
	}
	for j := range out {
		out[j] = int64(b[0] >> (8 - width - j*width) & mask)
	}
}
