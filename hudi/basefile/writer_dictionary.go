package basefile

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
)

// A column is given up to PLAIN when of at least sampleLeast values, before the first page of indexes was written, more than seven
// in ten differ: a dictionary of such a column costs much time and would pass the size of a page anyway.
const sampleLeast = 1000

// openPage is what all kinds of values have in common: the values of the open page as indexes of the column chunk's dictionary, as
// long as that serves, and whether it does. The dictionary itself is with the kind.
type openPage struct {
	limit  int  // bytes of a page, and of the dictionary
	never  bool // no dictionary for this column
	on     bool // values become indexes
	used   bool // there are pages of indexes in this chunk
	full   bool // the dictionary is too large: the next page will have no indexes
	index  sequence[uint32]
	raw    int // bytes that the values behind the indexes of the page would have
	values int // of the chunk that became indexes
	marks  []uint32
	mark   uint32
}

func (p *openPage) configure(limit int, dictionary bool) {
	p.limit, p.never = limit, !dictionary
	p.on = dictionary
}

// newChunk begins a column chunk.
func (p *openPage) newChunk() {
	p.on, p.used, p.full, p.raw, p.values = !p.never, false, false, 0, 0
	p.index.reset()
}

// serves says what becomes of the dictionary after values were added: keep it, or give it up at once because the values of the page
// fit in a plain one. A dictionary that is too large, or whose page would not fit, ends with the page.
func (p *openPage) serves(distinct, size int) (giveUp bool) {
	unlike := !p.used && p.values >= sampleLeast && distinct*10 > p.values*7
	if size <= p.limit && !unlike {
		return false
	}
	if !p.used && p.raw <= 2*p.limit {
		return true
	}
	p.full = true
	return false
}

// indexes says whether the page has indexes. A page of nulls has none before the dictionary has entries, as it may stay without.
func (p *openPage) indexes(entries int) bool { return p.on && entries > 0 }

func indexWidth(entries int) int { return max(bits.Len(uint(max(entries-1, 0))), 1) }

// takeIndexes ends a page of indexes: a byte of their width, and the hybrid.
func (p *openPage) takeIndexes(dst []byte, entries int) []byte {
	width := indexWidth(entries)
	dst = p.index.appendHybrid(append(dst, byte(width)), width)
	p.index.reset()
	p.used, p.raw = true, 0
	if p.full {
		p.on = false
	}
	return dst
}

// each calls for every entry of the dictionary that is in the page, once.
func (p *openPage) each(entries int, do func(i uint32)) {
	if len(p.index.rest) == 0 {
		if p.index.n > 0 {
			do(p.index.same)
		}
		return
	}
	if p.mark++; p.mark == 0 {
		clear(p.marks)
		p.mark = 1
	}
	if len(p.marks) < entries {
		p.marks = append(p.marks, make([]uint32, entries-len(p.marks))...)
	}
	marks, mark := p.marks, p.mark
	for _, i := range p.index.rest {
		if marks[i] != mark {
			marks[i] = mark
			do(i)
		}
	}
}

// inOrder calls for every index of the page.
func (p *openPage) inOrder(do func(i uint32, n int)) {
	if len(p.index.rest) == 0 {
		do(p.index.same, p.index.n)
		return
	}
	for _, i := range p.index.rest {
		do(i, 1)
	}
}

// numberDictionary finds the place of a number by its bits, so that NaN equals itself and both zeros are kept.
type numberDictionary[U uint32 | uint64] struct {
	words []U
	slots []uint32 // index + 1, 0: free; a power of two of them
	shift uint
}

const firstSlots = 256

func (d *numberDictionary[U]) reset() {
	d.words = d.words[:0]
	if len(d.slots) > 64*firstSlots {
		d.slots = nil
	}
	clear(d.slots)
}

func (d *numberDictionary[U]) find(x U) uint32 {
	if len(d.slots) <= 2*len(d.words) {
		d.grow()
	}
	mask := uint(len(d.slots) - 1)
	at := uint(uint64(x)*0x9e3779b97f4a7c15>>d.shift) & mask
	for {
		slot := d.slots[at]
		if slot == 0 {
			break
		}
		if d.words[slot-1] == x {
			return slot - 1
		}
		at = (at + 1) & mask
	}
	d.words = append(d.words, x)
	d.slots[at] = uint32(len(d.words))
	return uint32(len(d.words) - 1)
}

func (d *numberDictionary[U]) grow() {
	n := max(2*len(d.slots), firstSlots)
	d.slots, d.shift = make([]uint32, n), uint(64-bits.Len(uint(n-1)))
	mask := uint(n - 1)
	for i, x := range d.words {
		at := uint(uint64(x)*0x9e3779b97f4a7c15>>d.shift) & mask
		for d.slots[at] != 0 {
			at = (at + 1) & mask
		}
		d.slots[at] = uint32(i + 1)
	}
}

// bytesDictionary holds its entries as the dictionary page does: each behind its length in prefix bytes (4, or 0 for bytes of one
// width).
type bytesDictionary struct {
	prefix int
	plain  []byte
	ends   []uint32
	slots  []uint64 // high half of the hash, index + 1
	seed   maphash.Seed
	last   uint32 // that was found last
}

func (d *bytesDictionary) reset() {
	d.plain, d.ends = d.plain[:0], d.ends[:0]
	if len(d.slots) > 64*firstSlots {
		d.slots = nil
	}
	clear(d.slots)
}

// entry with its length in front.
func (d *bytesDictionary) entry(i uint32) []byte {
	start := uint32(0)
	if i > 0 {
		start = d.ends[i-1]
	}
	return d.plain[start:d.ends[i]:d.ends[i]]
}

func (d *bytesDictionary) value(i uint32) []byte { return d.entry(i)[d.prefix:] }

func (d *bytesDictionary) find(x []byte) uint32 {
	if int(d.last) < len(d.ends) && bytes.Equal(d.value(d.last), x) {
		return d.last
	}
	if len(d.slots) <= 2*len(d.ends) {
		d.grow()
	}
	hash := maphash.Bytes(d.seed, x)
	mask := uint(len(d.slots) - 1)
	at := uint(hash) & mask
	for {
		slot := d.slots[at]
		if slot == 0 {
			break
		}
		if i := uint32(slot) - 1; slot>>32 == hash>>32 && bytes.Equal(d.value(i), x) {
			d.last = i
			return i
		}
		at = (at + 1) & mask
	}
	if d.prefix > 0 {
		d.plain = binary.LittleEndian.AppendUint32(d.plain, uint32(len(x)))
	}
	d.plain = append(d.plain, x...)
	d.ends = append(d.ends, uint32(len(d.plain)))
	d.slots[at] = hash>>32<<32 | uint64(len(d.ends))
	d.last = uint32(len(d.ends) - 1)
	return d.last
}

func (d *bytesDictionary) grow() {
	if d.slots == nil && len(d.ends) == 0 {
		d.seed = maphash.MakeSeed()
	}
	n := max(2*len(d.slots), firstSlots)
	d.slots = make([]uint64, n)
	mask := uint(n - 1)
	for i := range d.ends {
		hash := maphash.Bytes(d.seed, d.value(uint32(i)))
		at := uint(hash) & mask
		for d.slots[at] != 0 {
			at = (at + 1) & mask
		}
		d.slots[at] = hash>>32<<32 | uint64(i+1)
	}
}
