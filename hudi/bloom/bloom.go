// Package bloom makes and reads the bloom filters that base files carry in their footers, bit for bit as Apache Hudi's
// classes do (table format 5.4): SIMPLE, one row of bits, and DYNAMIC_V0, rows of bits that are added as the file grows.
package bloom

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow/array"
)

// Kind is how a filter grows.
type Kind uint8

// The kinds, as the footer key hoodie_bloom_filter_type_code names them.
const (
	Simple Kind = iota
	DynamicV0
)

func (k Kind) String() string {
	if k == DynamicV0 {
		return "DYNAMIC_V0"
	}
	return "SIMPLE"
}

// ParseKind reads a type code. The empty text is Simple: writers of simple filters leave the footer key out.
func ParseKind(code string) (Kind, error) {
	switch code {
	case "", "SIMPLE":
		return Simple, nil
	case "DYNAMIC_V0":
		return DynamicV0, nil
	}
	return 0, fmt.Errorf("%w: type code %q; SIMPLE and DYNAMIC_V0 are known", ErrFilter, code)
}

// Errors of this package.
var (
	// ErrFilter: no filter that Sluice can read or make.
	ErrFilter = errors.New("bloom filter")
	// ErrEmptyKey: the empty text can be neither added nor asked for.
	ErrEmptyKey = errors.New("bloom filter: the key is empty")
)

// The defaults of Apache Hudi: hoodie.index.bloom.num_entries, .fpp and hoodie.bloom.index.filter.dynamic.max.entries.
const (
	DefaultEntries    = 60000
	DefaultFPP        = 1e-9
	DefaultMaxEntries = 100000
)

// Limits of what is read and made. Filters of Apache Hudi have some 320 KB for each row of bits and 30 hashes.
const (
	maxHashes = 2048
	maxBits   = math.MaxInt32
)

// Filter is a bloom filter. Asking is safe for several goroutines as long as nobody adds.
type Filter struct {
	kind   Kind
	hash   Hash
	hashes int
	bits   uint32   // of one row
	rows   [][]byte // bit i of a row is in byte i/8 at 1<<(i%8)

	// Of a dynamic filter: keys that fit in one row, keys added to the newest row (it goes on counting when the filter is
	// full), keys after which no row is added, and the row that takes the next key of a full filter, -1 before it is full.
	perRow, inRow, limit int64
	next                 int

	group *group // scratch of adding
}

// New makes an empty filter for so many entries, of which a share of fpp may be false positives. A dynamic filter adds a
// row of bits of that size after every entries keys until rows × entries reaches limit; simple filters don't look at it.
func New(kind Kind, entries int, fpp float64, limit int) (*Filter, error) {
	if entries <= 0 || !(fpp > 0 && fpp < 1) {
		return nil, fmt.Errorf("%w: %d entries with a rate of false positives of %v; entries are above 0, the rate is between 0 and 1", ErrFilter, entries, fpp)
	}
	size := math.Ceil(float64(entries) * (-math.Log(fpp) / (math.Log(2) * math.Log(2))))
	if size > maxBits {
		return nil, fmt.Errorf("%w: %d entries with a rate of %v need more than %d bits", ErrFilter, entries, fpp, maxBits)
	}
	f := &Filter{kind: kind, hash: Murmur, bits: uint32(size), perRow: int64(entries), limit: int64(limit), next: -1}
	f.hashes = int(math.Ceil(math.Log(2) * size / float64(entries)))
	if f.hashes > maxHashes {
		return nil, fmt.Errorf("%w: a rate of false positives of %v is too small", ErrFilter, fpp)
	}
	f.addRow()
	return f, nil
}

func (f *Filter) addRow() { f.rows = append(f.rows, make([]byte, (int(f.bits)+7)/8)) }

// Kind of the filter.
func (f *Filter) Kind() Kind { return f.kind }

// Bits of one row.
func (f *Filter) Bits() int { return int(f.bits) }

// Hashes of a key.
func (f *Filter) Hashes() int { return f.hashes }

// Rows of bits: one, unless a dynamic filter has grown.
func (f *Filter) Rows() int { return len(f.rows) }

// Add adds the UTF-8 bytes of a record key. Adding a key twice counts twice.
func (f *Filter) Add(key []byte) error {
	if len(key) == 0 {
		return ErrEmptyKey
	}
	h := f.hasher()
	h.set(key)
	h.add(f.take())
	return nil
}

// Test reports whether the key may have been added; false is certain.
func (f *Filter) Test(key []byte) (bool, error) {
	if len(key) == 0 {
		return false, ErrEmptyKey
	}
	h := f.hasher()
	h.set(key)
	return h.test(f.rows), nil
}

// Continue makes an empty filter go on where another ended, which was read and holds so many keys: bit for bit as if the same keys had
// been added in their order. It is false, and nothing happens, when the other has another shape or limit, or did not count as many keys.
func (f *Filter) Continue(other *Filter, keys int64) bool {
	if other.kind != f.kind || other.hash != f.hash || other.hashes != f.hashes || other.bits != f.bits {
		return false
	}
	next := -1
	if f.kind == DynamicV0 {
		before := int64(len(other.rows)-1) * f.perRow // keys in the other rows, before the filter was full
		beyond := other.inRow - f.perRow              // keys that found it full
		if other.perRow != f.perRow || before+other.inRow != keys || before > 0 && before >= f.limit || beyond > 0 && before+f.perRow < f.limit {
			return false
		}
		if beyond > 0 {
			next = int((beyond - 1) % int64(len(other.rows)))
		}
	}
	f.rows = f.rows[:0]
	for _, row := range other.rows {
		f.rows = append(f.rows, append([]byte(nil), row...))
	}
	f.inRow, f.next = other.inRow, next
	return true
}

// AddAll adds every key of a column, in order. Nulls are an error, as records without a key are.
func (f *Filter) AddAll(keys *array.String) error { return f.AddRows(keys, 0, keys.Len()) }

// AddRows is AddAll for the rows [from, to) of a column.
func (f *Filter) AddRows(keys *array.String, from, to int) error {
	return f.addKeys(keys, to-from, func(i int) int { return from + i })
}

// AddPicked is AddAll for those rows of a column that rows names, in their order.
func (f *Filter) AddPicked(keys *array.String, rows []int32) error {
	return f.addKeys(keys, len(rows), func(i int) int { return int(rows[i]) })
}

// addKeys adds n keys; row says where they are in the column.
func (f *Filter) addKeys(keys *array.String, n int, row func(i int) int) error {
	nulls := keys.NullN() > 0
	single := f.hasher()
	if f.group == nil {
		f.group = &group{}
	}
	defer f.addGroup(single.magic)
	for i := range n {
		k := row(i)
		key := keys.Value(k)
		if key == "" || nulls && keys.IsNull(k) {
			return fmt.Errorf("row %d: %w", k, ErrEmptyKey)
		}
		if f.hash != Murmur || len(key) > maxGroupKey {
			f.addGroup(single.magic)
			single.setString(key)
			single.add(f.take())
			continue
		}
		if !f.group.fits(key) {
			f.addGroup(single.magic)
		}
		f.group.add(key)
	}
	return nil
}

// addGroup adds the keys of the group, if there are any. Bits are set when all places are known, so that no hash waits for memory.
func (f *Filter) addGroup(magic uint64) {
	g := f.group
	if g.keys == 0 {
		return
	}
	places := g.places(f.hashes, magic, f.bits)
	for k := range g.keys {
		row := f.take()
		for i := range places {
			set(row, places[i][k])
		}
	}
	g.keys = 0
}

func set(row []byte, at uint32) { row[at/8] |= 1 << (at % 8) }

// TestAll appends to found the row numbers of those keys of a column that may have been added. Nulls and empty keys never
// were.
func (f *Filter) TestAll(keys *array.String, found []int32) []int32 {
	h := f.hasher()
	for i := range keys.Len() {
		key := keys.Value(i)
		if key == "" || keys.IsNull(i) {
			continue
		}
		h.setString(key)
		if h.test(f.rows) {
			found = append(found, int32(i))
		}
	}
	return found
}

// take gives the row for the next key and counts it. The key that finds a dynamic filter full goes to row 0, and all later
// ones to rows 0, 1, 2, … in turn.
func (f *Filter) take() []byte {
	if f.kind == Simple {
		return f.rows[0]
	}
	row := len(f.rows) - 1
	switch {
	case f.next >= 0:
		row = f.next
		f.next = (f.next + 1) % len(f.rows)
	case f.inRow < f.perRow:
	case int64(len(f.rows))*f.perRow >= f.limit:
		row, f.next = 0, 0
	default:
		f.addRow()
		f.inRow, row = 0, len(f.rows)-1
	}
	f.inRow++
	return f.rows[row]
}

// hasher gives the bit positions of one key after the other.
type hasher struct {
	f     *Filter
	magic uint64 // for the remainder by the number of bits without a division
	key   mixed
	raw   []byte // the key itself, for Jenkins
}

func (f *Filter) hasher() *hasher {
	return &hasher{f: f, magic: math.MaxUint64/uint64(f.bits) + 1}
}

func (h *hasher) set(key []byte) {
	if h.raw = key; h.f.hash == Murmur {
		h.key.set(key)
	}
}

func (h *hasher) sum(seed uint32) uint32 {
	if h.f.hash == Murmur {
		return h.key.murmur(seed)
	}
	return jenkins(h.raw, seed)
}

// position is |hash % size|, where the remainder takes the sign of the hash. The magic number of one bit is 0, and so is its only place.
func position(sum uint32, magic uint64, size uint32) uint32 {
	if int32(sum) < 0 {
		sum = -sum
	}
	high, _ := bits.Mul64(magic*uint64(sum), uint64(size))
	return uint32(high)
}

func (h *hasher) position(sum uint32) uint32 { return position(sum, h.magic, h.f.bits) }

func (h *hasher) add(row []byte) {
	sum := uint32(0)
	for range h.f.hashes {
		sum = h.sum(sum)
		set(row, h.position(sum))
	}
}

func (h *hasher) test(rows [][]byte) bool {
	for _, row := range rows {
		if h.testRow(row) {
			return true
		}
	}
	return false
}

func (h *hasher) testRow(row []byte) bool {
	sum := uint32(0)
	for range h.f.hashes {
		sum = h.sum(sum)
		at := h.position(sum)
		if row[at/8]&(1<<(at%8)) == 0 {
			return false
		}
	}
	return true
}

// TestRows is TestAll for some rows of a column.
func (f *Filter) TestRows(keys *array.String, rows, found []int32) []int32 {
	h := f.hasher()
	for _, i := range rows {
		key := keys.Value(int(i))
		if key == "" || keys.IsNull(int(i)) {
			continue
		}
		h.setString(key)
		if h.test(f.rows) {
			found = append(found, i)
		}
	}
	return found
}
