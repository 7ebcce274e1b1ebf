package index

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/cespare/xxhash/v2"
)

// keySet is the batch of keys that a lookup asks for, hashed once. It is not changed any more when files are read, so they share it.
// The keys themselves stay in the batch; the set takes some 24 bytes a key.
type keySet struct {
	keys *array.String
	// home is the partition of a row: an index into names. All rows have home 0 where a key is looked for in all partitions.
	home   []int32
	homes  map[string]int32
	global bool

	slots []uint64 // open addressing: 32 bits of hash, then the row of a key's first occurrence + 1; 0 is empty
	next  []int32  // row of the same key and home that follows, -1 at the end
	heads [][]int32
	high  bool // a key has a byte from 0xee on: Java's order differs from that of bytes
}

func newKeySet(keys *array.String, partitions arrow.Array, global bool) (*keySet, error) {
	n := keys.Len()
	if n >= math.MaxInt32/4 {
		return nil, fmt.Errorf("index: %d keys in one lookup; take smaller batches", n)
	}
	s := &keySet{keys: keys, global: global, homes: map[string]int32{}}
	if err := s.readHomes(partitions); err != nil {
		return nil, err
	}
	size := 16
	for size < 2*n {
		size *= 2
	}
	s.slots, s.next = make([]uint64, size), make([]int32, n)
	for i := n - 1; i >= 0; i-- { // from behind, so that chains ascend
		key := keys.Value(i)
		if keys.IsNull(i) || key == "" {
			return nil, fmt.Errorf("index: row %d has no record key", i)
		}
		s.put(int32(i), key)
		s.high = s.high || hasHigh(key)
	}
	s.heads = make([][]int32, max(len(s.homes), 1))
	for _, slot := range s.slots {
		if slot != 0 {
			row := int32(slot) - 1
			s.heads[s.home[row]] = append(s.heads[s.home[row]], row)
		}
	}
	return s, nil
}

func (s *keySet) readHomes(partitions arrow.Array) error {
	s.home = make([]int32, s.keys.Len())
	if s.global {
		return nil
	}
	if partitions.Len() != len(s.home) || partitions.NullN() > 0 {
		return fmt.Errorf("index: %d partition paths, %d of them null, for %d keys", partitions.Len(), partitions.NullN(), len(s.home))
	}
	number := func(path string) int32 {
		id, ok := s.homes[path]
		if !ok {
			id = int32(len(s.homes))
			s.homes[strings.Clone(path)] = id
		}
		return id
	}
	switch p := partitions.(type) {
	case *array.String:
		for i := range s.home {
			if i > 0 && p.Value(i) == p.Value(i-1) {
				s.home[i] = s.home[i-1]
				continue
			}
			s.home[i] = number(p.Value(i))
		}
		return nil
	case *array.Dictionary:
		paths, ok := p.Dictionary().(*array.String)
		if !ok {
			break
		}
		of := make([]int32, paths.Len())
		for i := range of {
			of[i] = -1
		}
		for i := range s.home {
			at := p.GetValueIndex(i)
			if of[at] < 0 {
				of[at] = number(paths.Value(at))
			}
			s.home[i] = of[at]
		}
		return nil
	}
	return fmt.Errorf("index: partition paths are text, not %s", partitions.DataType())
}

// homeOf gives the number of a partition, if a key is looked for there.
func (s *keySet) homeOf(partition string) (int32, bool) {
	if s.global {
		return 0, true
	}
	id, ok := s.homes[partition]
	return id, ok
}

func hashOf(key string, home int32) uint64 {
	return (xxhash.Sum64String(key) ^ uint64(home)) * 0x9e3779b97f4a7c15
}

func (s *keySet) put(row int32, key string) {
	h := hashOf(key, s.home[row])
	at, mask := h>>32&uint64(len(s.slots)-1), uint64(len(s.slots)-1)
	s.next[row] = -1
	for ; s.slots[at] != 0; at = (at + 1) & mask {
		if head := int32(s.slots[at]) - 1; s.slots[at]>>32 == h&math.MaxUint32 && s.home[head] == s.home[row] && s.keys.Value(int(head)) == key {
			s.next[row] = head
			break
		}
	}
	s.slots[at] = h<<32 | uint64(row+1)
}

// find gives the first row with a key, -1 where there is none.
func (s *keySet) find(key string, home int32) int32 {
	h := hashOf(key, home)
	at, mask := h>>32&uint64(len(s.slots)-1), uint64(len(s.slots)-1)
	for ; s.slots[at] != 0; at = (at + 1) & mask {
		if head := int32(s.slots[at]) - 1; s.slots[at]>>32 == h&math.MaxUint32 && s.home[head] == home && s.keys.Value(int(head)) == key {
			return head
		}
	}
	return -1
}

// hasHigh: Java orders strings by UTF-16 units, which differs from the order of bytes only between characters whose first byte is 0xee or more.
func hasHigh(s string) bool {
	for i := range len(s) {
		if s[i] >= 0xee {
			return true
		}
	}
	return false
}

// sortHeads sorts the different keys of every partition by their bytes.
func (s *keySet) sortHeads() {
	type entry struct {
		start uint64 // eight bytes behind what all keys begin with
		row   int32
	}
	for home, rows := range s.heads {
		if len(rows) == 0 {
			continue
		}
		common := s.keys.Value(int(rows[0]))
		for _, r := range rows {
			common = common[:commonLength(common, s.keys.Value(int(r)))]
		}
		entries := make([]entry, len(rows))
		for i, r := range rows {
			var b [8]byte
			copy(b[:], s.keys.Value(int(r))[len(common):])
			entries[i] = entry{start: binary.BigEndian.Uint64(b[:]), row: r}
		}
		slices.SortFunc(entries, func(a, b entry) int {
			switch {
			case a.start < b.start:
				return -1
			case a.start > b.start:
				return 1
			}
			return strings.Compare(s.keys.Value(int(a.row)), s.keys.Value(int(b.row)))
		})
		for i, e := range entries {
			s.heads[home][i] = e.row
		}
	}
}

func commonLength(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// within gives those of sorted rows whose keys are from low to high, both included.
func (s *keySet) within(rows []int32, low, high string) []int32 {
	order := func(row int32, key string) int { return strings.Compare(s.keys.Value(int(row)), key) }
	from, _ := slices.BinarySearchFunc(rows, low, order)
	to, found := slices.BinarySearchFunc(rows, high, order)
	if found {
		to++
	}
	if from >= to {
		return nil
	}
	return rows[from:to]
}
