package orc

import (
	"encoding/binary"
	"math/bits"
)

// output collects the bytes of one stream of the stripe that is being written.
type output struct {
	codec *compressor
	limit int    // bytes of a chunk
	block []byte // of the chunk that is being filled; unused without compression
	out   []byte // finished chunks, or all bytes without compression
	err   error  // the first failure of the codec, reported when the stripe ends
}

func (o *output) write(b []byte) {
	if o.codec.kind == None {
		o.out = append(o.out, b...)
		return
	}
	for len(b) > 0 {
		n := min(len(b), o.limit-len(o.block))
		o.block = append(o.block, b[:n]...)
		b = b[n:]
		if len(o.block) == o.limit {
			o.spill()
		}
	}
}

func (o *output) writeByte(b byte) {
	if o.codec.kind == None {
		o.out = append(o.out, b)
		return
	}
	if o.block = append(o.block, b); len(o.block) == o.limit {
		o.spill()
	}
}

// spill compresses the chunk.
func (o *output) spill() {
	if len(o.block) == 0 || o.err != nil {
		return
	}
	o.out, o.err = o.codec.appendChunk(o.out, o.block)
	o.block = o.block[:0]
}

// position appends where the next byte goes, in the form of the row index.
func (o *output) position(to []uint64) []uint64 {
	if o.codec.kind == None {
		return append(to, uint64(len(o.out)))
	}
	return append(to, uint64(len(o.out)), uint64(len(o.block)))
}

// size is about how many bytes the stream will have.
func (o *output) size() int64 { return int64(len(o.out) + len(o.block)) }

func (o *output) reset() { o.out, o.block = o.out[:0], o.block[:0] }

// byteEncoder writes byte run length encoding.
type byteEncoder struct {
	out *output
	buf [1024]byte // values that are not encoded yet
	n   int
}

func (e *byteEncoder) write(b byte) {
	if e.n == len(e.buf) {
		e.flush()
	}
	e.buf[e.n] = b
	e.n++
}

func (e *byteEncoder) position(to []uint64) []uint64 {
	return append(e.out.position(to), uint64(e.n))
}

// Limits of the groups of byte run length encoding.
const (
	minByteRun   = 3
	maxByteRun   = 130
	maxByteGroup = 128
)

// flush encodes the values: runs of three or more of the same, and what lies between.
func (e *byteEncoder) flush() {
	b := e.buf[:e.n]
	e.n = 0
	start := 0 // of the literals that wait
	for i := 0; i < len(b); {
		run := 1
		for run < maxByteRun && i+run < len(b) && b[i+run] == b[i] {
			run++
		}
		if run < minByteRun {
			i += run
			continue
		}
		e.literals(b[start:i])
		e.out.writeByte(byte(run - minByteRun))
		e.out.writeByte(b[i])
		i += run
		start = i
	}
	e.literals(b[start:])
}

func (e *byteEncoder) literals(b []byte) {
	for len(b) > 0 {
		n := min(len(b), maxByteGroup)
		e.out.writeByte(byte(-n))
		e.out.write(b[:n])
		b = b[n:]
	}
}

// boolEncoder packs bits from the most significant one down.
type boolEncoder struct {
	bytes byteEncoder
	cur   byte
	n     int // bits in cur
}

func (e *boolEncoder) write(bit bool) {
	e.cur <<= 1
	if bit {
		e.cur |= 1
	}
	if e.n++; e.n == 8 {
		e.bytes.write(e.cur)
		e.cur, e.n = 0, 0
	}
}

// ones writes n ones.
func (e *boolEncoder) ones(n int) {
	for ; n > 0 && e.n != 0; n-- {
		e.write(true)
	}
	for ; n >= 8; n -= 8 {
		e.bytes.write(0xff)
	}
	for ; n > 0; n-- {
		e.write(true)
	}
}

func (e *boolEncoder) position(to []uint64) []uint64 {
	return append(e.bytes.position(to), uint64(e.n))
}

func (e *boolEncoder) flush() {
	if e.n > 0 {
		e.bytes.write(e.cur << (8 - e.n))
		e.cur, e.n = 0, 0
	}
	e.bytes.flush()
}

// intEncoder writes run length encoding of version 2.
type intEncoder struct {
	out     *output
	signed  bool
	buf     [maxRun]int64 // values that are not encoded yet
	n       int
	scratch []byte
	packed  [maxRun]uint64
}

func (e *intEncoder) write(v int64) {
	if e.n == maxRun {
		e.flush()
	}
	e.buf[e.n] = v
	e.n++
}

func (e *intEncoder) writeAll(vals []int64) {
	for len(vals) > 0 {
		if e.n == maxRun {
			e.flush()
		}
		n := copy(e.buf[e.n:], vals)
		e.n += n
		vals = vals[n:]
	}
}

func (e *intEncoder) position(to []uint64) []uint64 {
	return append(e.out.position(to), uint64(e.n))
}

func (e *intEncoder) flush() {
	v := e.buf[:e.n]
	e.n = 0
	if len(v) > 0 {
		e.block(v)
	}
}

const (
	minRepeat   = 3  // of the same values for a short repeat
	maxRepeat   = 10 // more are a delta of nothing
	repeatWorth = 8  // from how many on a repetition is looked at as a run of its own
)

// shape is what one pass over values tells about the ways to encode them.
type shape struct {
	min, max int64
	all      uint64 // the values as they are stored, or'ed
	rising   bool   // no value is below the one before
	falling  bool
	fixed    bool   // all steps are the same
	steps    uint64 // the steps after the first, without sign, or'ed
	repeated int    // values that are in repetitions of repeatWorth or more
	overflow bool   // a step, or the range, is beyond 63 bits
}

func (e *intEncoder) look(v []int64) shape {
	s := shape{min: v[0], max: v[0], rising: true, falling: true, fixed: true}
	s.all = e.stored(v[0])
	run := 1
	first := int64(0)
	if len(v) > 1 {
		first = v[1] - v[0]
	}
	for i := 1; i < len(v); i++ {
		a, b := v[i-1], v[i]
		s.min, s.max = min(s.min, b), max(s.max, b)
		s.all |= e.stored(b)
		step := b - a
		if (step < 0) != (b < a) {
			s.overflow = true
		}
		if step == 0 {
			run++
		} else {
			if run >= repeatWorth {
				s.repeated += run
			}
			run = 1
			s.rising = s.rising && step > 0
			s.falling = s.falling && step < 0
		}
		if step != first {
			s.fixed = false
		}
		if i > 1 {
			s.steps |= uint64(abs(step))
		}
	}
	if run >= repeatWorth {
		s.repeated += run
	}
	if s.max-s.min < 0 {
		s.overflow = true
	}
	return s
}

func (e *intEncoder) stored(v int64) uint64 {
	if e.signed {
		return zigzag(v)
	}
	return uint64(v)
}

// block encodes 1 to maxRun values in the way that takes the fewest bytes.
func (e *intEncoder) block(v []int64) {
	s := e.look(v)
	switch {
	case s.min == s.max && len(v) >= minRepeat:
		e.repeat(v[0], len(v))
		return
	case s.fixed && !s.overflow && len(v) >= minRepeat:
		e.delta(v, 0)
		return
	}
	width := alignedWidth(bits.Len64(s.all))
	direct := 2 + (width*len(v)+7)/8
	if s.repeated >= len(v)/4 && s.repeated > 0 && e.split(v, width) {
		return
	}
	best := direct
	stepWidth := max(alignedWidth(bits.Len64(s.steps)), 2)
	monotone := (s.rising || s.falling) && !s.overflow && len(v) > 2 && v[0] != v[1]
	if monotone {
		if cost := 2 + e.varintSize(v[0]) + varintLen(zigzag(v[1]-v[0])) + (stepWidth*(len(v)-2)+7)/8; cost < best {
			best = cost
		} else {
			monotone = false
		}
	}
	if !s.overflow && len(v) >= 20 && width > 2 {
		if p, ok := planPatches(v, s, best); ok {
			e.patched(v, s.min, p)
			return
		}
	}
	if monotone {
		e.delta(v, stepWidth)
		return
	}
	e.direct(v, width)
}

func (e *intEncoder) varintSize(v int64) int { return varintLen(e.stored(v)) }

func varintLen(u uint64) int { return (bits.Len64(u|1) + 6) / 7 }

// split encodes long repetitions by themselves and what lies between as blocks of their own, where that saves bytes.
func (e *intEncoder) split(v []int64, width int) bool {
	saved, headers := 0, 0
	each := func(use func(literal []int64, run []int64)) {
		start := 0
		for i := 0; i < len(v); {
			n := 1
			for i+n < len(v) && v[i+n] == v[i] {
				n++
			}
			if n >= repeatWorth {
				use(v[start:i], v[i:i+n])
				start = i + n
			}
			i += n
		}
		use(v[start:], nil)
	}
	each(func(literal, run []int64) {
		saved += width * len(run) / 8
		if len(run) > 0 {
			headers += 3 + e.varintSize(run[0])
		}
		if len(literal) > 0 {
			headers += 2
		}
	})
	if saved <= headers {
		return false
	}
	each(func(literal, run []int64) {
		if len(literal) > 0 {
			e.block(literal) // has no repetition of that length, so it is not split again
		}
		if len(run) > 0 {
			e.repeat(run[0], len(run))
		}
	})
	return true
}

// repeat writes n ≥ minRepeat times the same value.
func (e *intEncoder) repeat(v int64, n int) {
	if n > maxRepeat {
		e.header(3, 0, n)
		e.varint(e.stored(v))
		e.varint(0)
		return
	}
	u := e.stored(v)
	width := max((bits.Len64(u)+7)/8, 1)
	e.out.writeByte(byte(width-1)<<3 | byte(n-minRepeat))
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], u)
	e.out.write(b[8-width:])
}

// header writes the two bytes that three of the four encodings begin with.
func (e *intEncoder) header(kind, code, n int) {
	e.out.writeByte(byte(kind<<6 | code<<1 | (n-1)>>8))
	e.out.writeByte(byte(n - 1))
}

func (e *intEncoder) varint(u uint64) {
	var b [binary.MaxVarintLen64]byte
	e.out.write(b[:binary.PutUvarint(b[:], u)])
}

func (e *intEncoder) direct(v []int64, width int) {
	e.header(1, codeOf(width), len(v))
	packed := e.packed[:len(v)]
	if e.signed {
		for i, x := range v {
			packed[i] = zigzag(x)
		}
	} else {
		for i, x := range v {
			packed[i] = uint64(x)
		}
	}
	e.pack(packed, width)
}

// delta writes a first value, the first step, and the other steps without sign; with a width of 0 all steps are the first.
func (e *intEncoder) delta(v []int64, width int) {
	code := 0
	if width > 0 {
		code = codeOf(width)
	}
	e.header(3, code, len(v))
	e.varint(e.stored(v[0]))
	e.varint(zigzag(v[1] - v[0]))
	if width == 0 {
		return
	}
	packed := e.packed[:len(v)-2]
	for i := range packed {
		packed[i] = uint64(abs(v[i+2] - v[i+1]))
	}
	e.pack(packed, width)
}

// patchPlan is how a block is written with patches.
type patchPlan struct {
	width      int // of the values
	patchWidth int // of what the patches add above
	gapWidth   int
	entries    [31]uint64 // gap and patch
	n          int
	baseWidth  int // bytes
}

// maxPatchBase keeps the base's magnitude within 55 bits: beyond, readers have differed.
const maxPatchBase = 1 << 55

// planPatches looks for a width that all but a few values fit, and that takes less than best bytes with its patches.
func planPatches(v []int64, s shape, best int) (p patchPlan, ok bool) {
	if s.min <= -maxPatchBase || s.min >= maxPatchBase {
		return p, false
	}
	var lengths [65]int
	for _, x := range v {
		lengths[bits.Len64(uint64(x-s.min))]++
	}
	full := bits.Len64(uint64(s.max - s.min))
	p.baseWidth = (bits.Len64(uint64(abs(s.min))) + 1 + 7) / 8
	beyond, wide := 0, -1
	for w := full - 1; w >= 1; w-- {
		if beyond += lengths[w+1]; beyond > 31 {
			break
		}
		if alignedWidth(w) != w {
			continue
		}
		// A gap takes 8 bits at most; the exact cost comes with the list.
		if 4+p.baseWidth+(w*len(v)+7)/8+((full-w)*beyond+7)/8 < best {
			wide, best = w, 4+p.baseWidth+(w*len(v)+7)/8+((full-w)*beyond+7)/8
		}
	}
	if wide < 0 {
		return p, false
	}
	p.width = wide
	p.patchWidth = int(closestWidth(full - wide))
	return p, p.list(v, s.min)
}

// list makes the list of patches; false where it has no place.
func (p *patchPlan) list(v []int64, base int64) bool {
	var gaps [31]int
	var values [31]uint64
	last, most := 0, 1
	for i, x := range v {
		u := uint64(x - base)
		if u>>p.width == 0 {
			continue
		}
		gap := i - last
		for ; gap > 255; gap -= 255 {
			if p.n == len(gaps) {
				return false
			}
			gaps[p.n], values[p.n] = 255, 0
			most = 255
			p.n++
		}
		if p.n == len(gaps) {
			return false
		}
		gaps[p.n], values[p.n] = gap, u>>p.width
		most = max(most, gap)
		p.n++
		last = i
	}
	p.gapWidth = bits.Len(uint(most))
	if p.patchWidth+p.gapWidth > 64 {
		return false
	}
	for i := range p.n {
		p.entries[i] = uint64(gaps[i])<<p.patchWidth | values[i]
	}
	return true
}

func (e *intEncoder) patched(v []int64, base int64, p patchPlan) {
	e.header(2, codeOf(p.width), len(v))
	e.out.writeByte(byte(p.baseWidth-1)<<5 | byte(codeOf(p.patchWidth)))
	e.out.writeByte(byte(p.gapWidth-1)<<5 | byte(p.n))
	u := uint64(abs(base))
	if base < 0 {
		u |= 1 << (8*p.baseWidth - 1)
	}
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], u)
	e.out.write(b[8-p.baseWidth:])
	packed := e.packed[:len(v)]
	mask := uint64(1)<<p.width - 1
	for i, x := range v {
		packed[i] = uint64(x-base) & mask
	}
	e.pack(packed, p.width)
	e.pack(p.entries[:p.n], int(closestWidth(p.patchWidth+p.gapWidth)))
}

// alignedWidth gives the least width that n bits fit among those that unpack fast and are not deprecated.
func alignedWidth(n int) int {
	switch {
	case n <= 1:
		return 1
	case n <= 2:
		return 2
	case n <= 4:
		return 4
	}
	return (n + 7) &^ 7
}

// codeOf gives the five-bit code of a width of the table.
func codeOf(width int) int {
	if width <= 24 {
		return width - 1
	}
	for i := 24; i < len(widths); i++ {
		if int(widths[i]) == width {
			return i
		}
	}
	return len(widths) - 1
}

// pack writes numbers of the given width, big endian, padded to a whole byte.
func (e *intEncoder) pack(v []uint64, width int) {
	size := (len(v)*width + 7) / 8
	if cap(e.scratch) < size+8 {
		e.scratch = make([]byte, maxRun*8+8)
	}
	b := e.scratch[:size]
	switch width {
	case 8:
		for i, u := range v {
			b[i] = byte(u)
		}
	case 16:
		for i, u := range v {
			binary.BigEndian.PutUint16(b[2*i:], uint16(u))
		}
	case 32:
		for i, u := range v {
			binary.BigEndian.PutUint32(b[4*i:], uint32(u))
		}
	case 64:
		for i, u := range v {
			binary.BigEndian.PutUint64(b[8*i:], u)
		}
	case 24, 40, 48, 56:
		wide := e.scratch[:size+8]
		step := width / 8
		for i, u := range v {
			binary.BigEndian.PutUint64(wide[i*step:], u<<(64-width))
		}
	default:
		packBits(b, v, width)
	}
	e.out.write(b)
}

// packBits packs any width below 64.
func packBits(b []byte, v []uint64, width int) {
	acc, have, at := uint64(0), 0, 0 // have bits, fewer than 8, at the low end of acc
	for _, u := range v {
		for left := width; left > 0; {
			n := min(left, 56)
			left -= n
			acc = acc<<n | u>>left&(1<<n-1)
			for have += n; have >= 8; at++ {
				have -= 8
				b[at] = byte(acc >> have)
			}
		}
	}
	if have > 0 {
		b[at] = byte(acc << (8 - have))
	}
}

// packNanos packs nanoseconds of a second: trailing zeros, from two on, are cut off and counted.
func packNanos(ns int64) int64 {
	if ns == 0 || ns%100 != 0 {
		return ns << 3
	}
	zeros := int64(1)
	for ns /= 100; ns%10 == 0 && zeros < 7; zeros++ {
		ns /= 10
	}
	return ns<<3 | zeros
}
