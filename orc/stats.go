package orc

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// Statistics tell about the values of one column in a span of rows.
type Statistics struct {
	// Values counts the values that are not null.
	Values int64
	// HasNull is false only where it is sure that no value is null.
	HasNull bool
	// Min and Max enclose all values that are not null, and are nil where the file gives no bounds that can be relied on.
	// They are int64 for integers, for dates (days since 1970) and for timestamps (microseconds, of the same meaning as the
	// column's values), float64 for float and double, string for text, and decimal128.Num, in the column's scale, for
	// decimals. A column with NaN among its values has no bounds.
	Min, Max any
}

// columnStatistics is the message of that name, as far as it is used.
type columnStatistics struct {
	values   uint64
	hasNull  bool
	nullKnow bool
	min, max any
	bytes    int64 // the sum of lengths of text and binary
	nan      bool
}

func parseStatistics(b []byte, n *node, r *Reader) (st columnStatistics, err error) {
	err = each(b, func(f *fields) error {
		switch f.num {
		case 1:
			st.values = f.u
		case 10:
			st.hasNull, st.nullKnow = f.isTrue(), true
		case 2, 3, 4, 6, 7, 8, 9:
			return st.bounds(f.num, f.v, n, r)
		}
		return nil
	})
	return st, err
}

// bounds reads the part of the message that depends on the type.
func (st *columnStatistics) bounds(kind int, b []byte, n *node, r *Reader) error {
	return each(b, func(f *fields) error {
		switch {
		case kind == 8: // BinaryStatistics
			if f.num == 1 {
				st.bytes = f.sint()
			}
		case kind == 4: // StringStatistics: bounds stand where the value itself would be too long
			switch f.num {
			case 1, 4:
				st.min = f.text()
			case 2, 5:
				st.max = f.text()
			case 3:
				st.bytes = f.sint()
			}
		case kind == 3:
			st.nan = st.nan || math.IsNaN(f.double())
			st.set(f.num, f.double())
		case kind == 6:
			if f.num > 2 {
				return nil
			}
			if v, ok := parseDecimal(f.text(), n.scale); ok {
				st.set(f.num, v)
			}
		case kind == 9:
			st.timestamp(f, n, r)
		default: // IntegerStatistics, DateStatistics
			st.set(f.num, f.sint())
		}
		return nil
	})
}

func (st *columnStatistics) set(num int, v any) {
	switch num {
	case 1:
		st.min = v
	case 2:
		st.max = v
	}
}

// timestamp reads bounds in milliseconds. Only those in UTC have a meaning that does not depend on the writer's machine.
func (st *columnStatistics) timestamp(f *fields, n *node, r *Reader) {
	if n.kind == kindTimestamp && r.opts.Timestamps == Instants || f.num < 3 || f.num > 4 {
		return
	}
	ms := f.sint()
	if ms > math.MaxInt64/2000 || ms < math.MinInt64/2000 {
		return
	}
	if f.num == 3 {
		st.min = ms * 1000
	} else {
		st.max = ms*1000 + 999
	}
}

// parseDecimal reads "-12.340" as an unscaled value.
func parseDecimal(s string, scale int32) (decimal128.Num, bool) {
	whole, fraction, _ := strings.Cut(s, ".")
	for len(fraction) > int(scale) && strings.HasSuffix(fraction, "0") {
		fraction = fraction[:len(fraction)-1]
	}
	if len(fraction) > int(scale) {
		return decimal128.Num{}, false
	}
	if scale > 0 {
		whole += "." + fraction
	}
	v, err := decimal128.FromString(whole, maxPrecision, scale)
	return v, err == nil
}

// public gives the statistics as far as they can be relied on.
func (st *columnStatistics) public(n *node, r *Reader) Statistics {
	out := Statistics{Values: int64(min(st.values, math.MaxInt64)), HasNull: st.hasNull || !st.nullKnow, Min: st.min, Max: st.max}
	java := r.footer.writer == writerJava
	switch {
	case st.nan,
		(st.min == nil) != (st.max == nil),
		java && r.ps.writerVersion < 1,                               // HIVE-8732: wrong maxima
		java && r.ps.writerVersion < 7 && n.kind == kindDecimal,      // ORC-517: wrong bounds of short decimals
		n.kind == kindChar,                                           // padded or not, by writer
		n.kind == kindBinary, r.hybrid() && ancient(n.kind, out.Min): // other calendar
		out.Min, out.Max = nil, nil
	}
	return out
}

// ancient tells bounds that reach before the Gregorian calendar.
func ancient(k typeKind, low any) bool {
	v, ok := low.(int64)
	switch k {
	case kindDate:
		return ok && v < cutoverDay
	case kindTimestamp, kindTimestampInstant:
		return ok && v < cutoverDay*day*1e6
	}
	return false
}

// fileStatistics gives what the footer says of a column, or nothing.
func (r *Reader) fileStatistics(n *node) (st columnStatistics) {
	if n.id < len(r.footer.statistics) {
		st, _ = parseStatistics(r.footer.statistics[n.id], n, r) // damaged statistics are no statistics
	}
	return st
}

// find walks to a column by its path, such as "address.city", "tags.element", "props.value".
func (r *Reader) find(path string) *node {
	var found *node
	r.root.walk(func(n *node) {
		if n.path == path && found == nil && (n.id > 0 || r.root.kind != kindStruct) {
			found = n
		}
	})
	if r.root.kind != kindStruct && path == rootColumn {
		return r.root
	}
	return found
}

// Statistics gives the statistics of a column over the whole file, by its path, such as "address.city"; false where the file
// has none, or no such column.
func (r *Reader) Statistics(path string) (Statistics, bool) {
	n := r.find(path)
	if n == nil || n.id >= len(r.footer.statistics) {
		return Statistics{}, false
	}
	st, err := parseStatistics(r.footer.statistics[n.id], n, r)
	if err != nil {
		return Statistics{}, false
	}
	return st.public(n, r), true
}

// Span is a range of rows that ScanOptions.Keep decides about: a stripe, or a row group of one.
type Span struct {
	// Stripe is the stripe's position, and Row the position of the span's first row in the file.
	Stripe int
	Row    int64
	// Rows counts the rows of the span.
	Rows int64

	reader *Reader
	stats  func(id int) []byte
	bloom  func(id int) (bloomFilter, bool, bool)
}

// Statistics gives the statistics of a column over the span, by its path; false where the file has none, or no such column.
func (s *Span) Statistics(path string) (Statistics, bool) {
	n := s.reader.find(path)
	if n == nil {
		return Statistics{}, false
	}
	b := s.stats(n.id)
	if b == nil {
		return Statistics{}, false
	}
	st, err := parseStatistics(b, n, s.reader)
	if err != nil {
		return Statistics{}, false
	}
	return st.public(n, s.reader), true
}

// MayContain asks the Bloom filter of a column, where there is one: false means that no row of the span has the value.
// Values are int64 for integers and dates, float64 for float and double, string for string and varchar. It is always true for
// whole stripes, whose filters are those of their row groups.
func (s *Span) MayContain(path string, value any) bool {
	n := s.reader.find(path)
	if n == nil || s.bloom == nil {
		return true
	}
	f, utf8, ok := s.bloom(n.id)
	if !ok {
		return true
	}
	var hash uint64
	switch v := value.(type) {
	case int64:
		if n.kind != kindByte && n.kind != kindShort && n.kind != kindInt && n.kind != kindLong && n.kind != kindDate {
			return true
		}
		hash = wangHash(uint64(v))
	case float64:
		if n.kind != kindFloat && n.kind != kindDouble || v != v || v == 0 {
			return true
		}
		hash = wangHash(math.Float64bits(v))
	case string:
		if n.kind != kindString && n.kind != kindVarchar || !utf8 {
			return true
		}
		hash = murmur3([]byte(v))
	default:
		return true
	}
	return f.has(hash)
}

// has asks the filter for a hash (specification, "Bloom Filter Index").
func (f *bloomFilter) has(hash uint64) bool {
	size := int32(len(f.words) / 8 * 64)
	if size <= 0 || f.hashes == 0 || f.hashes > 64 {
		return true
	}
	h1, h2 := int32(hash), int32(hash>>32)
	for i := int32(1); i <= int32(f.hashes); i++ {
		h := h1 + i*h2
		if h < 0 {
			h = ^h
		}
		bit := h % size
		if leUint64(f.words, int(bit>>6))>>(bit&63)&1 == 0 {
			return false
		}
	}
	return true
}

// wangHash is Thomas Wang's hash of a 64-bit integer.
func wangHash(k uint64) uint64 {
	k = ^k + k<<21
	k ^= uint64(int64(k) >> 24)
	k += k<<3 + k<<8
	k ^= uint64(int64(k) >> 14)
	k += k<<2 + k<<4
	k ^= uint64(int64(k) >> 28)
	return k + k<<31
}

// murmur3 is the 64-bit form of Murmur3 that Hive uses: 64 bits of state, seed 104729.
func murmur3(b []byte) uint64 {
	const c1, c2 = 0x87c37b91114253d5, 0x4cf5ad432745937f
	h := uint64(104729)
	n := uint64(len(b))
	for ; len(b) >= 8; b = b[8:] {
		k := binary.LittleEndian.Uint64(b) * c1
		h ^= bits.RotateLeft64(k, 31) * c2
		h = bits.RotateLeft64(h, 27)*5 + 0x52dce729
	}
	if len(b) > 0 {
		k := uint64(0)
		for i, c := range b {
			k |= uint64(c) << (8 * i)
		}
		h ^= bits.RotateLeft64(k*c1, 31) * c2
	}
	h ^= n
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// keepStripe asks Keep about a stripe, with the statistics of the metadata section.
func (s *scan) keepStripe(i int, firstRow int64) bool {
	sp := &Span{Stripe: i, Row: firstRow, Rows: s.r.footer.stripes[i].rows, reader: s.r}
	var list [][]byte
	sp.stats = func(id int) []byte {
		if list == nil {
			list = s.stripeStatistics(i)
		}
		if id < len(list) {
			return list[id]
		}
		return nil
	}
	return s.opts.Keep(sp)
}

// stripeStatistics gives the statistics of a stripe's columns. A damaged section is none.
func (s *scan) stripeStatistics(i int) [][]byte {
	list := [][]byte{}
	if s.metadata == nil {
		s.loadMetadata()
	}
	if i >= len(s.metadata) {
		return list
	}
	err := each(s.metadata[i], func(f *fields) error {
		if f.num == 1 {
			list = append(list, f.v)
		}
		return nil
	})
	if err != nil || len(list) > len(s.r.footer.types) {
		return list[:0]
	}
	return list
}

// loadMetadata reads the metadata section, once. What does not fit the budget is treated as absent.
func (s *scan) loadMetadata() {
	s.metadata = [][]byte{}
	held := s.mem.used
	raw, err := s.r.section(&s.codec, &s.mem, s.r.tail, s.r.ps.metadataLength, "the metadata")
	if err == nil {
		err = each(raw, func(f *fields) error {
			if f.num == 1 {
				s.metadata = append(s.metadata, f.v)
			}
			return s.mem.grow(costOfItem, "the metadata")
		})
	}
	if err != nil || s.mem.used > s.mem.limit/4 {
		s.metadata, s.mem.used = [][]byte{}, held
	}
}

// spans asks Keep about the row groups and joins those that it keeps. There are row groups where the first column that is
// read has an index of them.
func (st *stripeScan) spans() ([]span, error) {
	whole := []span{{0, st.rows}}
	stride := int64(st.r.footer.rowIndexStride)
	if st.opts.Keep == nil || stride <= 0 || len(st.columns) == 0 {
		return whole, nil
	}
	index, err := st.rowIndex(st.columns[0].id)
	if err != nil || int64(len(index)) < (st.rows-1)/stride+1 {
		return whole, err
	}
	var out []span
	var failed error
	for from := int64(0); from < st.rows; from += stride {
		to := min(from+stride, st.rows)
		group := int(from / stride)
		sp := &Span{Stripe: st.index, Row: st.firstRow + from, Rows: to - from, reader: st.r}
		sp.stats = func(id int) []byte {
			entries, err := st.rowIndex(id)
			if failed == nil {
				failed = err
			}
			if group < len(entries) {
				return entries[group].statistics
			}
			return nil
		}
		sp.bloom = func(id int) (bloomFilter, bool, bool) {
			list, utf8, err := st.bloomIndex(id)
			if failed == nil {
				failed = err
			}
			if group < len(list) && list[group].words != nil {
				return list[group], utf8, true
			}
			return bloomFilter{}, false, false
		}
		keep := st.opts.Keep(sp)
		if failed != nil {
			return nil, failed
		}
		switch {
		case !keep:
		case len(out) > 0 && out[len(out)-1].to == from:
			out[len(out)-1].to = to
		default:
			out = append(out, span{from, to})
		}
	}
	return out, nil
}

// rowIndex reads the row index of a column, once.
func (st *stripeScan) rowIndex(id int) ([]rowIndexEntry, error) {
	if e, ok := st.indexes[id]; ok {
		return e, nil
	}
	raw, err := st.indexStream(id, streamRowIndex)
	if err != nil {
		return nil, err
	}
	entries, err := parseRowIndex(raw, &st.mem)
	if err != nil {
		return nil, fmt.Errorf("the row index of column %d: %w", id, err)
	}
	if st.indexes == nil {
		st.indexes = make(map[int][]rowIndexEntry)
	}
	st.indexes[id] = entries
	return entries, nil
}

// bloomIndex reads the Bloom filters of a column, once. Only the newer form is used: the older one hashed text in whatever
// character set the writer's machine had.
func (st *stripeScan) bloomIndex(id int) (list []bloomFilter, utf8 bool, err error) {
	if f, ok := st.blooms[id]; ok {
		return f, true, nil
	}
	raw, err := st.indexStream(id, streamBloomUTF8)
	if err != nil {
		return nil, false, err
	}
	if list, err = parseBloomIndex(raw, &st.mem); err != nil {
		return nil, false, fmt.Errorf("the Bloom filters of column %d: %w", id, err)
	}
	if st.blooms == nil {
		st.blooms = make(map[int][]bloomFilter)
	}
	st.blooms[id] = list
	return list, true, nil
}

func (st *stripeScan) indexStream(id int, kind streamKind) ([]byte, error) {
	l := st.streams[streamKey{id, kind}]
	if l == nil || l.length == 0 {
		return nil, nil
	}
	return st.r.section(&st.codec, &st.mem, l.at, l.length, fmt.Sprintf("the index of column %d", id))
}
