package service

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// keyHash stands for a key in a partition: the hash of the key, and that of both.
type keyHash struct{ key, both uint64 }

func hashOf(key, partition string) keyHash {
	d := xxhash.New()
	_, _ = d.WriteString(key) // never fails
	h := keyHash{key: d.Sum64()}
	_, _ = d.WriteString("\x00")
	_, _ = d.WriteString(partition)
	h.both = d.Sum64()
	return h
}

// keySet finds keys that were added twice within a bound of memory: hashes of 16 bytes are collected, and above the bound
// dealt out to files by the key's hash, so that equal keys meet in one file.
type keySet struct {
	limit int // hashes in memory
	dir   string
	held  []keyHash
	parts []*keyPart
}

type keyPart struct {
	file *os.File
	w    *bufio.Writer
	n    int64
}

const (
	hashSize = 16
	keyParts = 64
)

func newKeySet(memory int64, dir string) *keySet {
	return &keySet{limit: int(max(memory/hashSize/2, 1024)), dir: dir}
}

func (s *keySet) add(key, partition string) error {
	s.held = append(s.held, hashOf(key, partition))
	if len(s.held) < s.limit {
		return nil
	}
	return s.spill()
}

func (s *keySet) spill() error {
	if s.parts == nil {
		s.parts = make([]*keyPart, keyParts)
		for i := range s.parts {
			f, err := os.CreateTemp(s.dir, "sluice-keys-")
			if err != nil {
				return fmt.Errorf("spill keys: %w", err)
			}
			s.parts[i] = &keyPart{file: f, w: bufio.NewWriterSize(f, 16<<10)}
		}
	}
	var b [hashSize]byte
	for _, h := range s.held {
		p := s.parts[h.key%keyParts]
		binary.LittleEndian.PutUint64(b[:8], h.key)
		binary.LittleEndian.PutUint64(b[8:], h.both)
		if _, err := p.w.Write(b[:]); err != nil {
			return fmt.Errorf("spill keys: %w", err)
		}
		p.n++
	}
	s.held = s.held[:0]
	return nil
}

// repeats are hashes that occur more than once; more counts those above the limit.
type repeats struct {
	hashes map[keyHash]bool
	more   int
}

// repeated gives the keys that occur twice in one partition, and counts those that occur in several partitions.
func (s *keySet) repeated(limit int) (twice repeats, across int, err error) {
	twice.hashes = map[keyHash]bool{}
	if s.parts == nil {
		return twice, count(s.held, limit, &twice), nil
	}
	if err := s.spill(); err != nil {
		return twice, 0, err
	}
	for _, p := range s.parts {
		if err := p.w.Flush(); err != nil {
			return twice, 0, fmt.Errorf("spill keys: %w", err)
		}
		if _, err := p.file.Seek(0, io.SeekStart); err != nil {
			return twice, 0, fmt.Errorf("spilled keys: %w", err)
		}
		hashes := make([]keyHash, p.n)
		r := bufio.NewReaderSize(p.file, 1<<20)
		var b [hashSize]byte
		for i := range hashes {
			if _, err := io.ReadFull(r, b[:]); err != nil {
				return twice, 0, fmt.Errorf("spilled keys: %w", err)
			}
			hashes[i] = keyHash{binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])}
		}
		across += count(hashes, limit, &twice)
	}
	return twice, across, nil
}

// count sorts hashes and walks over runs of one key.
func count(hashes []keyHash, limit int, twice *repeats) (across int) {
	slices.SortFunc(hashes, func(a, b keyHash) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.both, b.both)) })
	for i := 0; i < len(hashes); {
		end, partitions := i+1, 1
		for ; end < len(hashes) && hashes[end].key == hashes[i].key; end++ {
			h := hashes[end]
			switch {
			case h != hashes[end-1]:
				partitions++
			case twice.hashes[h]:
			case len(twice.hashes) < limit:
				twice.hashes[h] = true
			case end < 2 || hashes[end-2] != h:
				twice.more++
			}
		}
		if partitions > 1 {
			across++
		}
		i = end
	}
	return across
}

func (s *keySet) close() {
	for _, p := range s.parts {
		if p != nil {
			_ = errors.Join(p.file.Close(), os.Remove(p.file.Name()))
		}
	}
}
