package logfile

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/storage"
)

// ScanOptions of Scan.
type ScanOptions struct {
	// Committed tells whether an instant's blocks count (table format 4.2); nil takes all.
	Committed func(instant string) bool
	// Latest leaves out blocks of later instants; empty takes all.
	Latest string
	// InRange limits an incremental query to some instants; nil takes all.
	InRange func(instant string) bool
	// CDC scans the .cdc files among files and none else; without it they are passed over.
	CDC bool
	// DropCondemned leaves out, as Apache Hudi does, a whole block of a committed instant that has rubbish behind it. Without it
	// such a block is an error, as its rows were written and would be lost without a word.
	DropCondemned bool
}

// Stats says what Scan saw and left out. All but Files and Bytes count blocks.
type Stats struct {
	Files       int   `json:"files"`
	Bytes       int64 `json:"bytes"`
	Blocks      int   `json:"blocks"`
	Data        int   `json:"data"`
	Deletes     int   `json:"deletes"`
	Rollbacks   int   `json:"rollbacks"`
	Corrupt     int   `json:"corrupt"`
	Uncommitted int   `json:"uncommitted"`
	Newer       int   `json:"newer"`
	OutOfRange  int   `json:"outOfRange"`
	RolledBack  int   `json:"rolledBack"`
	Duplicate   int   `json:"duplicate"` // of repeated task attempts
	Replaced    int   `json:"replaced"`  // by log compaction
	// Damage names the corrupt blocks, at most 100 of them.
	Damage []Damage `json:"damage,omitempty"`
}

// Damage is one corrupt block.
type Damage struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
	Reason string `json:"reason"`
}

// CondemnedError refuses a whole block with rubbish behind it; see ScanOptions.DropCondemned.
type CondemnedError struct {
	File    string
	Offset  int64
	Instant string
}

func (e *CondemnedError) Error() string {
	return fmt.Sprintf("log file %s: offset %d: the block of instant %s is whole, but rubbish follows it, for which Apache Hudi drops it", e.File, e.Offset, e.Instant)
}

// Unwrap makes errors.Is(err, ErrFormat) true.
func (e *CondemnedError) Unwrap() error { return ErrFormat }

// NextStep for a person.
func (e *CondemnedError) NextStep() string {
	return "compare the file with a backup; to read the table as Apache Hudi does, without these rows, ask for it explicitly"
}

// Ref is a data or delete block that counts.
type Ref struct {
	Block
	File string // name in the store

	store   storage.Store
	whole   []byte // the file's bytes where they were read anyway
	schemas *schemaCache
}

// keepBytes is how much of small files one Scan keeps, so that their contents cost no second request.
const keepBytes = 8 << 20

// Scan walks over the log files of one slice, given in order (see Compare), and gives the blocks that count, oldest to newest
// (table format 6.4). Contents are not read, except that small files are kept.
//
// Any block of an unknown type, format version, header key or command is an error that names file and offset: leaving it out
// could change the answer.
func Scan(ctx context.Context, store storage.Store, files []string, o ScanOptions) ([]Ref, Stats, error) {
	s := scanner{ScanOptions: o, store: store, keep: keepBytes, outside: map[string]bool{}, schemas: &schemaCache{}}
	for _, file := range files {
		if strings.HasSuffix(file, ".cdc") != o.CDC {
			continue
		}
		if err := s.file(ctx, file); err != nil {
			return nil, s.stats, fmt.Errorf("log file %s: %w", file, err)
		}
	}
	if err := s.dropAttempts(); err != nil {
		return nil, s.stats, err
	}
	if err := s.placeCompacted(); err != nil {
		return nil, s.stats, err
	}
	return s.refs, s.stats, nil
}

// OpenBlock makes a Ref of a block that Blocks gave, for readers of files that are not logs of a slice, such as the archived
// timeline of layout 1.
func OpenBlock(store storage.Store, file string, b Block) Ref {
	return Ref{Block: b, File: file, store: store, schemas: &schemaCache{}}
}

type scanner struct {
	ScanOptions
	store   storage.Store
	keep    int64
	refs    []Ref
	outside map[string]bool // instants that the range leaves out
	stats   Stats
	schemas *schemaCache
}

func (s *scanner) file(ctx context.Context, file string) error {
	obj, err := s.store.Open(ctx, file)
	if err != nil {
		return err
	}
	defer func(opened storage.Object) { _ = opened.Close() }(obj)
	s.stats.Files++
	s.stats.Bytes += obj.Size()
	var whole []byte
	if n := obj.Size(); n <= min(smallFile, s.keep) {
		whole = make([]byte, n)
		if err := readFull(ctx, obj, whole, 0); err != nil {
			return err
		}
		obj = memory{whole}
	}
	before := len(s.refs)
	for b, err := range Blocks(ctx, obj) {
		if err == nil {
			err = s.block(file, whole, b)
		}
		if err != nil {
			return err
		}
	}
	if len(s.refs) > before {
		s.keep -= int64(len(whole))
	}
	return nil
}

// block takes one block in: rollbacks act on what was seen so far, data and deletes are kept if they count.
func (s *scanner) block(file string, whole []byte, b Block) error {
	s.stats.Blocks++
	if b.Type == Corrupt {
		return s.corrupt(file, b)
	}
	if err := supported(b); err != nil {
		return err
	}
	if b.Type == Command {
		s.rollback(b.Header.TargetInstant)
		return nil
	}
	if b.Type == Delete {
		s.stats.Deletes++
	} else {
		s.stats.Data++
	}
	if s.counts(b.Header.InstantTime) {
		s.refs = append(s.refs, Ref{Block: b, File: file, store: s.store, whole: whole, schemas: s.schemas})
	}
	return nil
}

// supported refuses what could change the answer if it were passed over.
func supported(b Block) error {
	switch {
	case b.FormatVersion != 1:
		return fmt.Errorf("%w: offset %d: log format version %d, only 1 can be read; compact the table with the Apache Hudi release that wrote it", ErrUnsupported, b.Offset, b.FormatVersion)
	case b.Type < Command || b.Type > CDCData:
		return fmt.Errorf("%w: offset %d: block type %d; a newer release wrote it", ErrUnsupported, b.Offset, int32(b.Type))
	case len(b.Header.Unknown) > 0:
		return fmt.Errorf("%w: offset %d: header keys %d; a newer release wrote the block", ErrUnsupported, b.Offset, b.Header.Unknown)
	case b.Header.InstantTime == "":
		return fmt.Errorf("%w: offset %d: %s block without an instant", ErrFormat, b.Offset, b.Type)
	case b.Type == Command && b.Header.Command != "0":
		return fmt.Errorf("%w: offset %d: command %q, only rollback (0) is known", ErrUnsupported, b.Offset, b.Header.Command)
	case b.Type == Command && b.Header.TargetInstant == "":
		return fmt.Errorf("%w: offset %d: rollback without a target instant", ErrFormat, b.Offset)
	}
	return nil
}

func (s *scanner) corrupt(file string, b Block) error {
	s.stats.Corrupt++
	if len(s.stats.Damage) < 100 {
		s.stats.Damage = append(s.stats.Damage, Damage{File: file, Offset: b.Offset, Bytes: b.End - b.Offset, Reason: b.Reason})
	}
	if c := b.Condemned; c != nil && !s.DropCondemned && c.Type != Command && s.would(c.Header.InstantTime) {
		return &CondemnedError{File: file, Offset: b.Offset, Instant: c.Header.InstantTime}
	}
	return nil
}

// counts tells whether blocks of an instant are taken, and notes why not.
func (s *scanner) counts(instant string) bool {
	switch {
	case s.Latest != "" && instant > s.Latest:
		s.stats.Newer++
	case s.Committed != nil && !s.Committed(instant):
		s.stats.Uncommitted++
	case s.InRange != nil && !s.InRange(instant):
		s.stats.OutOfRange++
		s.outside[instant] = true
	default:
		return true
	}
	return false
}

func (s *scanner) would(instant string) bool {
	before := s.stats
	defer func() { s.stats = before }()
	return s.counts(instant)
}

// rollback drops the blocks of an instant that were seen so far. It acts whatever its own instant is: a rolled-back instant is
// gone for queries of any time.
func (s *scanner) rollback(target string) {
	s.stats.Rollbacks++
	n := len(s.refs)
	s.refs = slices.DeleteFunc(s.refs, func(r Ref) bool { return r.Header.InstantTime == target })
	s.stats.RolledBack += n - len(s.refs)
}

// dropAttempts keeps one attempt of each instant whose blocks name several: the one with the most blocks, the later one of
// equals.
func (s *scanner) dropAttempts() error {
	counts := map[string]map[int64]int{}
	attempts := make([]int64, len(s.refs))
	for i, r := range s.refs {
		if id := r.Header.BlockID; id != "" {
			text, _, _ := strings.Cut(id, ",")
			var err error
			if attempts[i], err = strconv.ParseInt(text, 10, 64); err != nil {
				return fmt.Errorf("log file %s: %w: offset %d: block identifier %q", r.File, ErrFormat, r.Offset, id)
			}
		}
		at := r.Header.InstantTime
		if counts[at] == nil {
			counts[at] = map[int64]int{}
		}
		counts[at][attempts[i]]++
	}
	winner := map[string]int64{}
	for at, c := range counts {
		first := true
		for attempt, n := range c {
			best := winner[at]
			if first || n > c[best] || n == c[best] && attempt > best {
				winner[at], first = attempt, false
			}
		}
	}
	i := 0
	s.refs = slices.DeleteFunc(s.refs, func(r Ref) bool {
		drop := attempts[i] != winner[r.Header.InstantTime]
		i++
		if drop {
			s.stats.Duplicate++
		}
		return drop
	})
	return nil
}

// placeCompacted puts the blocks of each log compaction in the place of the newest of their sources, which go. A compaction
// whose sources were all left out by the range goes with them; one whose sources are not in the files stays where it is.
func (s *scanner) placeCompacted() error {
	compactions := map[string]*compaction{}
	into := map[string]string{} // source instant → compaction instant
	for _, r := range s.refs {
		at := r.Header.InstantTime
		for _, source := range r.Header.Compacted() {
			if source == at {
				continue
			}
			into[source] = at
			if compactions[at] == nil {
				compactions[at] = &compaction{place: -1}
			}
			// A reader that knows the range may not even give the files of a source outside of it.
			compactions[at].outside = compactions[at].outside || s.outside[source] || s.InRange != nil && !s.InRange(source)
		}
	}
	if len(into) == 0 {
		return nil
	}
	final := make([]string, len(s.refs)) // for each block the instant that it goes into, if any
	for i, r := range s.refs {
		at := r.Header.InstantTime
		if c := compactions[at]; c != nil {
			c.blocks = append(c.blocks, r)
		}
		for steps := 0; into[at] != ""; steps++ {
			if steps > len(into) {
				return fmt.Errorf("log file %s: %w: offset %d: log compactions replace each other in a circle", r.File, ErrFormat, r.Offset)
			}
			at = into[at]
			final[i] = at
		}
		if final[i] != "" {
			compactions[at].place = i
		}
	}
	var out []Ref
	for i, r := range s.refs {
		if to := final[i]; to != "" {
			s.stats.Replaced++
			if c := compactions[to]; c.place == i {
				out = append(out, c.blocks...)
			}
			continue
		}
		if c := compactions[r.Header.InstantTime]; c == nil || c.place < 0 && !c.outside {
			out = append(out, r)
		}
	}
	s.refs = out
	return nil
}

// compaction is the blocks of one log compaction.
type compaction struct {
	blocks  []Ref
	place   int  // index of the last block of its newest source, -1 when no source is there
	outside bool // the range leaves out a source
}

// memory is an object whose bytes are at hand.
type memory struct{ data []byte }

func (m memory) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(m.data)) {
		return 0, io.EOF
	}
	n := copy(p, m.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (m memory) Size() int64  { return int64(len(m.data)) }
func (m memory) ETag() string { return "" }
func (m memory) Close() error { return nil }

// schemaCache parses each schema text once; all blocks of a slice tend to share one.
type schemaCache struct {
	mu     sync.Mutex
	parsed map[string]*schema.Type
}

func (c *schemaCache) parse(text string) (*schema.Type, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t, ok := c.parsed[text]; ok {
		return t, nil
	}
	t, err := schema.ParseString(text)
	if err != nil {
		return nil, err
	}
	if c.parsed == nil {
		c.parsed = map[string]*schema.Type{}
	}
	c.parsed[text] = t
	return t, nil
}
