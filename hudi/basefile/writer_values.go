package basefile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// leafValues turns the values of one leaf that are not null into the pages of a column chunk: as indexes of a dictionary as long as
// that serves, else PLAIN.
type leafValues interface {
	configure(pageBytes int, dictionary bool)
	// bind makes array k the one that values are taken from; use does it again.
	bind(k int, arr arrow.Array) error
	use(k int)
	// add takes values [from, to) into the open page and says how many: fewer when the page is full, but at least one.
	add(from, to int) (int, error)
	// take is add for the values that rows names.
	take(rows []int32) (int, error)
	// size of the open page, in bytes, and whether the page has to end.
	size() (bytes int, full bool)
	// page encodes the open page behind dst and begins the next.
	page(dst []byte) (out []byte, indexed bool, b bounds)
	// dictionary is the PLAIN dictionary of the pages of indexes; no values: there are none.
	dictionary() (plain []byte, values int)
	// newChunk begins a column chunk.
	newChunk()
	compare(a, b []byte) int
}

// bounds are the smallest and the largest value of a page or chunk as statistics hold them.
type bounds struct {
	min, max []byte
	known    bool // false: there is no value, or one that has no order, as NaN
}

// number is a value that Arrow and Parquet store alike, on machines that put the low byte first.
type number interface {
	int32 | int64 | float32 | float64
}

// numbers are of type T; U has its bits.
type numbers[T number, U uint32 | uint64] struct {
	openPage
	views  [][]U
	from   []U
	plain  []U
	picked []U // scratch of take
	dict   numberDictionary[U]
}

func (v *numbers[T, U]) bind(k int, arr arrow.Array) error {
	v.from = nil
	if arr.Len() > 0 {
		data := arr.Data()
		if _, ok := arr.DataType().(arrow.FixedWidthDataType); !ok || len(data.Buffers()) != 2 {
			return fmt.Errorf("an array of %s for numbers", arr.DataType())
		}
		v.from = arrow.GetData[U](data.Buffers()[1].Bytes())[data.Offset():][:arr.Len()]
	}
	v.views = setView(v.views, k, v.from)
	return nil
}

func (v *numbers[T, U]) use(k int) { v.from = v.views[k] }

func setView[V any](views []V, k int, view V) []V {
	for len(views) <= k {
		var none V
		views = append(views, none)
	}
	views[k] = view
	return views
}

func (v *numbers[T, U]) width() int {
	var zero U
	return binary.Size(zero)
}

func (v *numbers[T, U]) add(from, to int) (int, error) {
	if v.on {
		return v.addIndexed(v.from[from:to]), nil
	}
	n := v.room(to - from)
	v.plain = append(v.plain, v.from[from:from+n]...)
	return n, nil
}

// room is how many of n plain values the page takes.
func (v *numbers[T, U]) room(n int) int {
	return min(n, max(v.limit/v.width()-len(v.plain), 1))
}

func (v *numbers[T, U]) take(rows []int32) (int, error) {
	if v.on {
		v.picked = grown(v.picked[:0], len(rows))
		pickInto(v.picked, v.from, rows)
		return v.addIndexed(v.picked), nil
	}
	n, at := v.room(len(rows)), len(v.plain)
	v.plain = grown(v.plain, n)
	pickInto(v.plain[at:], v.from, rows[:n])
	return n, nil
}

// pickInto copies those of some values that rows names.
func pickInto[V any](dst, values []V, rows []int32) {
	dst = dst[:len(rows)]
	for i, row := range rows {
		dst[i] = values[row]
	}
}

func (v *numbers[T, U]) addIndexed(src []U) int {
	same := 1
	for len(v.index.rest) == 0 && same < len(src) && src[same] == src[0] {
		same++
	}
	last := v.dict.find(src[0])
	v.index.repeat(last, same)
	if same < len(src) {
		out := v.index.more(len(src) - same)
		before := src[0]
		for i, x := range src[same:] {
			if x != before {
				before, last = x, v.dict.find(x)
			}
			out[i] = last
		}
		v.index.took(len(src) - same)
	}
	v.values += len(src)
	v.raw += len(src) * v.width()
	if v.serves(len(v.dict.words), len(v.dict.words)*v.width()) {
		v.inOrder(func(i uint32, n int) {
			for range n {
				v.plain = append(v.plain, v.dict.words[i])
			}
		})
		v.index.reset()
		v.dict.reset()
		v.on = false
	}
	return len(src)
}

func (v *numbers[T, U]) size() (int, bool) {
	n := len(v.plain) * v.width()
	if v.on {
		n = v.index.size(indexWidth(len(v.dict.words)))
	}
	return n, v.on && v.full || n >= v.limit
}

func (v *numbers[T, U]) page(dst []byte) ([]byte, bool, bounds) {
	if !v.indexes(len(v.dict.words)) {
		b := numberBounds[T](arrow.GetData[T](arrow.GetBytes(v.plain)))
		dst = append(dst, arrow.GetBytes(v.plain)...)
		v.plain = v.plain[:0]
		return dst, false, b
	}
	var there []U
	v.each(len(v.dict.words), func(i uint32) { there = append(there, v.dict.words[i]) })
	b := numberBounds[T](arrow.GetData[T](arrow.GetBytes(there)))
	return v.takeIndexes(dst, len(v.dict.words)), true, b
}

// numberBounds: a NaN anywhere leaves none, since readers don't agree where it stands. Zeros are of both signs.
func numberBounds[T number](values []T) bounds {
	if len(values) == 0 {
		return bounds{}
	}
	low, high := values[0], values[0]
	for _, x := range values { // NaN wins
		low, high = min(low, x), max(high, x)
	}
	if low != low || high != high {
		return bounds{}
	}
	return bounds{min: numberBytes(low, true), max: numberBytes(high, false), known: true}
}

func numberBytes[T number](x T, lower bool) []byte {
	switch x := any(x).(type) {
	case int32:
		return binary.LittleEndian.AppendUint32(nil, uint32(x))
	case int64:
		return binary.LittleEndian.AppendUint64(nil, uint64(x))
	case float32:
		if x == 0 {
			x = float32(zero(lower))
		}
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(x))
	case float64:
		if x == 0 {
			x = zero(lower)
		}
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(x))
	}
	return nil
}

func zero(negative bool) float64 {
	if negative {
		return math.Copysign(0, -1)
	}
	return 0
}

func (v *numbers[T, U]) compare(a, b []byte) int {
	x, y := arrow.GetData[T](bytes.Clone(a))[0], arrow.GetData[T](bytes.Clone(b))[0]
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

func (v *numbers[T, U]) dictionary() ([]byte, int) {
	if !v.used {
		return nil, 0
	}
	return arrow.GetBytes(v.dict.words), len(v.dict.words)
}

func (v *numbers[T, U]) newChunk() {
	v.openPage.newChunk()
	v.dict.reset()
	v.plain = v.plain[:0]
}

// booleans are bits, the first in the lowest, in Arrow as in Parquet. They have no dictionary.
type booleans struct {
	limit int
	views []*array.Boolean
	from  *array.Boolean
	bits  []byte
	n     int
}

func (v *booleans) configure(limit int, _ bool) { v.limit = limit }

func (v *booleans) bind(k int, arr arrow.Array) error {
	if err := bindTo(&v.from, arr); err != nil {
		return err
	}
	v.views = setView(v.views, k, v.from)
	return nil
}

func (v *booleans) use(k int) { v.from = v.views[k] }

// grow makes room for n more bits.
func (v *booleans) grow(n int) {
	if need := int(bitutil.BytesForBits(int64(v.n + n))); need > len(v.bits) {
		v.bits = append(v.bits, make([]byte, need-len(v.bits))...)
	}
}

func (v *booleans) take(rows []int32) (int, error) {
	v.grow(len(rows))
	data := v.from.Data()
	src, offset := data.Buffers()[1].Bytes(), data.Offset()
	for i, row := range rows {
		from, to := offset+int(row), v.n+i
		mask := byte(1) << (to % 8)
		v.bits[to/8] = v.bits[to/8]&^mask | src[from/8]>>(from%8)<<(to%8)&mask
	}
	v.n += len(rows)
	return len(rows), nil
}

func (v *booleans) add(from, to int) (int, error) {
	n := to - from
	v.grow(n)
	data := v.from.Data()
	bitutil.CopyBitmap(data.Buffers()[1].Bytes(), data.Offset()+from, n, v.bits, v.n)
	v.n += n
	return n, nil
}

func (v *booleans) size() (int, bool) { return v.n / 8, v.n/8 >= v.limit }

func (v *booleans) page(dst []byte) ([]byte, bool, bounds) {
	b := bounds{known: v.n > 0, min: []byte{1}, max: []byte{0}}
	set := bitutil.CountSetBits(v.bits, 0, v.n)
	if set < v.n {
		b.min = []byte{0}
	}
	if set > 0 {
		b.max = []byte{1}
	}
	dst = append(dst, v.bits[:bitutil.BytesForBits(int64(v.n))]...)
	v.bits, v.n = v.bits[:0], 0
	return dst, false, b
}

func (v *booleans) compare(a, b []byte) int   { return bytes.Compare(a, b) }
func (v *booleans) dictionary() ([]byte, int) { return nil, 0 }
func (v *booleans) newChunk()                 { v.bits, v.n = v.bits[:0], 0 }

// texts are texts and bytes of any length. Signed ones are numbers of as few bytes as they need, the high byte first.
type texts struct {
	openPage
	signed bool
	views  []textView
	from   textView
	plain  []byte
	low    []byte // of the open page, when it is plain
	high   []byte
	any    bool
	dict   bytesDictionary
}

type textView struct {
	offsets []int32
	bytes   []byte
}

func newTexts(signed bool) *texts { return &texts{signed: signed, dict: bytesDictionary{prefix: 4}} }

func (v *texts) bind(k int, arr arrow.Array) error {
	v.from = textView{}
	if arr.Len() > 0 {
		switch a := arr.(type) {
		case *array.String:
			v.from.offsets = a.ValueOffsets()
		case *array.Binary:
			v.from.offsets = a.ValueOffsets()
		default:
			return fmt.Errorf("an array of %s for text or bytes", arr.DataType())
		}
		if b := arr.Data().Buffers()[2]; b != nil {
			v.from.bytes = b.Bytes()
		}
	}
	v.views = setView(v.views, k, v.from)
	return nil
}

func (v *texts) use(k int) { v.from = v.views[k] }

func (t *textView) at(i int) []byte { return t.bytes[t.offsets[i]:t.offsets[i+1]] }

func (v *texts) add(from, to int) (int, error) {
	if v.on {
		return v.addIndexed(from, to), nil
	}
	return v.addPlain(from, to), nil
}

func (v *texts) take(rows []int32) (int, error) {
	if v.on {
		return v.takeIndexed(rows), nil
	}
	return v.takePlain(rows), nil
}

// shortText bytes are copied at once: what is too much of them is overwritten by the text behind it.
const shortText = 32

// putPlain writes the text data[start:end] behind its length, and gives what is left of out: it has shortText bytes more than it needs.
func putPlain(out, data []byte, start, end int) []byte {
	size := end - start
	binary.LittleEndian.PutUint32(out, uint32(size))
	to := out[4:]
	if size > shortText || start+shortText > len(data) {
		copy(to, data[start:end])
		return to[size:]
	}
	to, from := to[:shortText:cap(to)], data[start:start+shortText] // in words, as a call to copy takes longer
	for i := 0; i < shortText; i += 8 {
		binary.LittleEndian.PutUint64(to[i:], binary.LittleEndian.Uint64(from[i:]))
	}
	return out[4+size:]
}

func (v *texts) addPlain(from, to int) int {
	offsets, data := v.from.offsets[from:to+1], v.from.bytes
	base, room := int(offsets[0]), v.limit-len(v.plain)
	n := to - from
	total := func(k int) int { return int(offsets[k]) - base + 4*k }
	if total(n) > room {
		n = min(1+sort.Search(n-1, func(k int) bool { return total(k+1) >= room }), n)
	}
	at := len(v.plain)
	v.plain = grown(v.plain, total(n)+shortText)
	out := v.plain[at:]
	start := offsets[0]
	for _, end := range offsets[1 : n+1] {
		out = putPlain(out, data, int(start), int(end))
		start = end
	}
	v.plain = v.plain[:at+total(n)]
	v.noteBounds(at)
	return n
}

func (v *texts) takePlain(rows []int32) int {
	offsets, data := v.from.offsets, v.from.bytes
	room, total, n := v.limit-len(v.plain), 0, 0
	for n < len(rows) && (n == 0 || total < room) {
		row := rows[n]
		total += int(offsets[row+1]-offsets[row]) + 4
		n++
	}
	at := len(v.plain)
	v.plain = grown(v.plain, total+shortText)
	out := v.plain[at:]
	for _, row := range rows[:n] {
		out = putPlain(out, data, int(offsets[row]), int(offsets[row+1]))
	}
	v.plain = v.plain[:at+total]
	v.noteBounds(at)
	return n
}

// noteBounds looks at the plain values of the page from byte at on.
func (v *texts) noteBounds(at int) {
	values := v.plain[at:]
	low, high := v.low, v.high
	if !v.any {
		low, _ = firstPlain(values)
		high = low
	}
	if v.signed {
		for len(values) > 0 {
			x, rest := firstPlain(values)
			values = rest
			if compareSigned(x, low) < 0 {
				low = x
			} else if compareSigned(x, high) > 0 {
				high = x
			}
		}
	} else {
		all := newSpan(low, high)
		for len(values) > 0 {
			x, rest := firstPlain(values)
			values = rest
			all.add(x, false, bytes.Compare)
		}
		low, high = all.low, all.high
	}
	v.any = true
	v.low, v.high = append(v.low[:0], low...), append(v.high[:0], high...)
}

// firstPlain takes the first value off PLAIN texts.
func firstPlain(values []byte) (x, rest []byte) {
	end := 4 + int(binary.LittleEndian.Uint32(values))
	return values[4:end:end], values[end:]
}

func (v *texts) addIndexed(from, to int) int {
	at := from
	for at < to {
		end := at + 1
		cur := v.from.at(at)
		if end < to && bytes.Equal(v.from.at(end), cur) {
			end = v.from.runEnd(at, to)
		}
		v.index.repeat(v.dict.find(cur), end-at)
		at = end
		if len(v.dict.plain) > v.limit {
			break
		}
	}
	v.added(at-from, int(v.from.offsets[at]-v.from.offsets[from]))
	return at - from
}

func (v *texts) takeIndexed(rows []int32) int {
	n, size := 0, 0
	for n < len(rows) && (n == 0 || len(v.dict.plain) <= v.limit) {
		x := v.from.at(int(rows[n]))
		v.index.repeat(v.dict.find(x), 1)
		size += len(x)
		n++
	}
	v.added(n, size)
	return n
}

// added: n values of so many bytes became indexes.
func (v *texts) added(n, size int) {
	v.values += n
	v.raw += size + 4*n
	if v.serves(len(v.dict.ends), len(v.dict.plain)) {
		v.inOrder(func(i uint32, n int) {
			for range n {
				v.plain = append(v.plain, v.dict.entry(i)...)
			}
		})
		v.each(len(v.dict.ends), func(i uint32) { v.noteOne(v.dict.value(i)) })
		v.index.reset()
		v.dict.reset()
		v.on = false
	}
}

// runEnd is where a run of equal texts ends that begins at from. A column of one value is compared with itself in one go.
func (t *textView) runEnd(from, to int) int {
	size := t.offsets[from+1] - t.offsets[from]
	end := from + 1
	for end < to && t.offsets[end+1]-t.offsets[end] == size {
		end++
	}
	data := t.bytes[t.offsets[from]:t.offsets[end]]
	if size == 0 || bytes.Equal(data[size:], data[:len(data)-int(size)]) {
		return end
	}
	for i := from + 1; i < end; i++ {
		if !bytes.Equal(t.at(i), data[:size]) {
			return i
		}
	}
	return end
}

func (v *texts) noteOne(x []byte) {
	switch {
	case !v.any:
		v.low, v.high, v.any = append(v.low[:0], x...), append(v.high[:0], x...), true
	case v.compare(x, v.low) < 0:
		v.low = append(v.low[:0], x...)
	case v.compare(x, v.high) > 0:
		v.high = append(v.high[:0], x...)
	}
}

// repeat takes value i n times: as add does, all of them only where the page has room.
func (v *texts) repeat(i, n int) (int, error) {
	if !v.on {
		for k := range n {
			if _, full := v.size(); full && k > 0 {
				return k, nil
			}
			v.addPlain(i, i+1)
		}
		return n, nil
	}
	v.index.repeat(v.dict.find(v.from.at(i)), n)
	v.values += n
	v.raw = min(v.raw+n*(4+len(v.from.at(i))), math.MaxInt32)
	if v.serves(len(v.dict.ends), len(v.dict.plain)) {
		v.full = true
	}
	return n, nil
}

func (v *texts) size() (int, bool) {
	n := len(v.plain)
	if v.on {
		n = v.index.size(indexWidth(len(v.dict.ends)))
	}
	return n, v.on && v.full || n >= v.limit
}

func (v *texts) page(dst []byte) ([]byte, bool, bounds) {
	indexed := v.indexes(len(v.dict.ends))
	if indexed {
		v.any = false
		v.each(len(v.dict.ends), func(i uint32) { v.noteOne(v.dict.value(i)) })
		dst = v.takeIndexes(dst, len(v.dict.ends))
	} else {
		dst = append(dst, v.plain...)
		if v.plain = v.plain[:0]; cap(v.plain) > maxScratch {
			v.plain = nil
		}
	}
	b := bounds{known: v.any}
	if v.any {
		b.min, b.max = append([]byte{}, v.low...), append([]byte{}, v.high...) // an empty text is not none
	}
	v.any = false
	return dst, indexed, b
}

func (v *texts) compare(a, b []byte) int {
	if v.signed {
		return compareSigned(a, b)
	}
	return bytes.Compare(a, b)
}

// compareSigned compares two's complement of as few bytes as needed, or of one width.
func compareSigned(a, b []byte) int {
	if len(a) == 0 || len(b) == 0 {
		return len(a) - len(b)
	}
	negative := a[0]&0x80 != 0
	switch {
	case negative != (b[0]&0x80 != 0):
		if negative {
			return -1
		}
		return 1
	case len(a) != len(b):
		if (len(a) < len(b)) != negative {
			return -1
		}
		return 1
	}
	return bytes.Compare(a, b)
}

func (v *texts) dictionary() ([]byte, int) {
	if !v.used {
		return nil, 0
	}
	return v.dict.plain, len(v.dict.ends)
}

func (v *texts) newChunk() {
	v.openPage.newChunk()
	v.dict.reset()
	v.plain, v.any = v.plain[:0], false
}

// fixedBytes are bytes of one width. Signed ones are numbers, the high byte first.
type fixedBytes struct {
	openPage
	width  int
	signed bool
	views  [][]byte
	from   []byte
	plain  []byte
	picked []byte // scratch of take
	dict   bytesDictionary
}

func newFixedBytes(width int, signed bool) *fixedBytes {
	return &fixedBytes{width: width, signed: signed}
}

func (v *fixedBytes) bind(k int, arr arrow.Array) error {
	a, ok := arr.(*array.FixedSizeBinary)
	if !ok || a.DataType().(*arrow.FixedSizeBinaryType).ByteWidth != v.width {
		return fmt.Errorf("an array of %s for %d bytes", arr.DataType(), v.width)
	}
	v.from = nil
	if a.Len() > 0 {
		v.from = a.Data().Buffers()[1].Bytes()[a.Data().Offset()*v.width:]
	}
	v.views = setView(v.views, k, v.from)
	return nil
}

func (v *fixedBytes) use(k int) { v.from = v.views[k] }

func (v *fixedBytes) add(from, to int) (int, error) {
	return v.addBytes(v.from[from*v.width : to*v.width]), nil
}

func (v *fixedBytes) take(rows []int32) (int, error) {
	v.picked = v.picked[:0]
	for _, row := range rows {
		v.picked = append(v.picked, v.from[int(row)*v.width:(int(row)+1)*v.width]...)
	}
	return v.addBytes(v.picked), nil
}

func (v *fixedBytes) addBytes(src []byte) int {
	n := len(src) / v.width
	if !v.on {
		n = min(n, max((v.limit-len(v.plain))/v.width, 1))
		v.plain = append(v.plain, src[:n*v.width]...)
		return n
	}
	for i := range n {
		if len(v.dict.plain) > v.limit {
			n = i
			break
		}
		v.index.repeat(v.dict.find(src[i*v.width:(i+1)*v.width]), 1)
	}
	v.values += n
	v.raw += n * v.width
	if v.serves(len(v.dict.ends), len(v.dict.plain)) {
		v.inOrder(func(i uint32, n int) {
			for range n {
				v.plain = append(v.plain, v.dict.entry(i)...)
			}
		})
		v.index.reset()
		v.dict.reset()
		v.on = false
	}
	return n
}

func (v *fixedBytes) size() (int, bool) {
	n := len(v.plain)
	if v.on {
		n = v.index.size(indexWidth(len(v.dict.ends)))
	}
	return n, v.on && v.full || n >= v.limit
}

func (v *fixedBytes) page(dst []byte) ([]byte, bool, bounds) {
	if !v.indexes(len(v.dict.ends)) {
		b := v.boundsOf(v.plain)
		dst = append(dst, v.plain...)
		v.plain = v.plain[:0]
		return dst, false, b
	}
	var there []byte
	v.each(len(v.dict.ends), func(i uint32) { there = append(there, v.dict.entry(i)...) })
	return v.takeIndexes(dst, len(v.dict.ends)), true, v.boundsOf(there)
}

func (v *fixedBytes) boundsOf(values []byte) bounds {
	w := v.width
	if len(values) == 0 {
		return bounds{}
	}
	low, high := 0, 0
	if v.signed && w <= 8 {
		low, high = shortBounds(values, w)
	} else {
		for at := w; at < len(values); at += w {
			x := values[at : at+w]
			if v.compare(x, values[low:low+w]) < 0 {
				low = at
			} else if v.compare(x, values[high:high+w]) > 0 {
				high = at
			}
		}
	}
	return bounds{min: bytes.Clone(values[low : low+w]), max: bytes.Clone(values[high : high+w]), known: true}
}

// shortBounds finds the places of the bounds among signed numbers of at most eight bytes.
func shortBounds(values []byte, w int) (low, high int) {
	shift := 64 - 8*w
	lowest, highest := int64(math.MaxInt64), int64(math.MinInt64)
	for at := 0; at < len(values); at += w {
		var x int64
		if at+8 <= len(values) {
			x = int64(binary.BigEndian.Uint64(values[at:])) >> shift << shift
		} else {
			x = int64(head(values[at : at+w]))
		}
		if x < lowest {
			lowest, low = x, at
		}
		if x > highest {
			highest, high = x, at
		}
	}
	return low, high
}

func (v *fixedBytes) compare(a, b []byte) int {
	if v.signed {
		return compareSigned(a, b)
	}
	return bytes.Compare(a, b)
}

func (v *fixedBytes) dictionary() ([]byte, int) {
	if !v.used {
		return nil, 0
	}
	return v.dict.plain, len(v.dict.ends)
}

func (v *fixedBytes) newChunk() {
	v.openPage.newChunk()
	v.dict.reset()
	v.plain = v.plain[:0]
}

// decimals become big-endian two's complement: of width bytes, or, where width is 0, as many as each needs.
type decimals struct {
	leafValues // that takes the bytes
	precision  int32
	width      int
	views      []decimalView
	from       decimalView
	space      []byte
	ends       []int32
	picked     []decimal128.Num // scratch of take
}

type decimalView struct {
	narrow *array.Decimal128
	wide   *array.Decimal256
}

func newDecimals(precision, width int) *decimals {
	d := &decimals{precision: int32(precision), width: width}
	if width > 0 {
		d.leafValues = newFixedBytes(width, true)
	} else {
		d.leafValues = newTexts(true)
	}
	return d
}

func (v *decimals) bind(k int, arr arrow.Array) error {
	v.from = decimalView{}
	switch a := arr.(type) {
	case *array.Decimal128:
		v.from.narrow = a
	case *array.Decimal256:
		v.from.wide = a
	default:
		return fmt.Errorf("an array of %s for decimals", arr.DataType())
	}
	v.views = setView(v.views, k, v.from)
	return nil
}

func (v *decimals) use(k int) { v.from = v.views[k] }

// decimalBlock are turned into bytes at once.
const decimalBlock = 1024

func (v *decimals) add(from, to int) (int, error) {
	to = min(to, from+decimalBlock)
	v.begin()
	if v.isShort() {
		if err := v.short(v.from.narrow.Values()[from:to]); err != nil {
			return 0, err
		}
		return v.addBytes(to - from)
	}
	for i := from; i < to; i++ {
		if err := v.long(i); err != nil {
			return 0, err
		}
	}
	return v.addBytes(to - from)
}

func (v *decimals) take(rows []int32) (int, error) {
	rows = rows[:min(len(rows), decimalBlock)]
	v.begin()
	if v.isShort() {
		v.picked = grown(v.picked[:0], len(rows))
		pickInto(v.picked, v.from.narrow.Values(), rows)
		if err := v.short(v.picked); err != nil {
			return 0, err
		}
		return v.addBytes(len(rows))
	}
	for _, row := range rows {
		if err := v.long(int(row)); err != nil {
			return 0, err
		}
	}
	return v.addBytes(len(rows))
}

func (v *decimals) begin() { v.space, v.ends = v.space[:0], append(v.ends[:0], 0) }

// isShort says whether the numbers fit in eight bytes.
func (v *decimals) isShort() bool {
	return v.from.narrow != nil && v.precision <= 18 && v.width > 0 && v.width <= 8
}

// addBytes adds the n numbers that were turned into bytes.
func (v *decimals) addBytes(n int) (int, error) {
	switch bytes := v.leafValues.(type) {
	case *fixedBytes:
		bytes.from = v.space
	case *texts:
		bytes.from = textView{offsets: v.ends, bytes: v.space}
	}
	return v.leafValues.add(0, n)
}

// short writes numbers that fit in eight bytes.
func (v *decimals) short(values []decimal128.Num) error {
	limit := int64(1)
	for range v.precision {
		limit *= 10
	}
	w, shift := v.width, 64-8*v.width
	v.space = slices.Grow(v.space, len(values)*w+8)[:len(values)*w+8]
	out := v.space
	for _, n := range values {
		x := int64(n.LowBits())
		if n.HighBits() != x>>63 || x >= limit || x <= -limit {
			return v.tooLong(n.ToString(0))
		}
		binary.BigEndian.PutUint64(out, uint64(x)<<shift)
		out = out[w:]
	}
	v.space = v.space[:len(values)*w]
	return nil
}

func (v *decimals) tooLong(digits string) error {
	return fmt.Errorf("the decimal with the digits %s has more than %d", digits, v.precision)
}

// long writes number i of any size.
func (v *decimals) long(i int) error {
	var digits [32]byte
	if v.from.narrow != nil {
		n := v.from.narrow.Value(i)
		if !fits(n, v.precision) {
			return v.tooLong(n.ToString(0))
		}
		putDecimal(&digits, uint64(n.HighBits()>>63), uint64(n.HighBits()>>63), uint64(n.HighBits()), n.LowBits())
	} else {
		n := v.from.wide.Value(i)
		if !n.FitsInPrecision(v.precision) {
			return v.tooLong(n.ToString(0))
		}
		a := n.Array()
		putDecimal(&digits, a[3], a[2], a[1], a[0])
	}
	v.space = append(v.space, digits[len(digits)-v.bytes(&digits):]...)
	v.ends = append(v.ends, int32(len(v.space)))
	return nil
}

// fits is false for the smallest number of all, whose absolute value has no place either.
func fits(n decimal128.Num, precision int32) bool {
	if n.HighBits() == -1<<63 && n.LowBits() == 0 {
		return false
	}
	return n.FitsInPrecision(precision)
}

func putDecimal(to *[32]byte, words ...uint64) {
	for i, w := range words {
		binary.BigEndian.PutUint64(to[8*i:], w)
	}
}

func (v *decimals) bytes(digits *[32]byte) int {
	if v.width > 0 {
		return v.width
	}
	n := len(digits)
	for n > 1 { // drop bytes that repeat the sign
		at := len(digits) - n
		if sign := byte(int8(digits[at+1]) >> 7); digits[at] != sign {
			break
		}
		n--
	}
	return n
}

func bindTo[T arrow.Array](to *T, arr arrow.Array) error {
	a, ok := arr.(T)
	if !ok {
		return fmt.Errorf("an array of %s for other values", arr.DataType())
	}
	*to = a
	return nil
}
