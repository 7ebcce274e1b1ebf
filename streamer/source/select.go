package source

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/open"
)

// NoLimit is a source limit that no input reaches.
const NoLimit = math.MaxInt64

// ErrNoRoot: the folder of a file source is not there.
var ErrNoRoot = errors.New("no such folder")

// Cursor says up to where a source was read. Every source gives its own text; an empty one means "from the beginning".
type Cursor struct {
	// Checkpoint is the text that Apache Hudi's streamer stores and understands: for files the newest modification time that was
	// read, in milliseconds.
	Checkpoint string
	// Seen lists, in the strict mode of file sources alone, the files that were read lately. Apache Hudi does not know it.
	Seen string
}

// Selector picks the files of a round (tools C.7, DFSPathSelector): those newer than the checkpoint, oldest first, until the
// limit. Files of one modification time are never parted.
//
// The original's cursor is a time alone, so a file that shows up later under an older time is never read: object stores give
// whole seconds, and copies may keep their times. Strict and Settle are two guards against that; both keep the checkpoint
// readable for the original.
type Selector struct {
	Store storage.Store
	// File, when set, is the one object of Store that counts.
	File string
	// Dates, when set, looks only into the folders of some days (DatePartitionPathSelector).
	Dates *Dates
	// Strict also takes files whose time lies up to Window before the checkpoint (or at it), unless they were read already. Those
	// that were read are kept in Cursor.Seen, with about 11 characters each. No window: all files, however late.
	Strict bool
	Window time.Duration
	// Settle leaves files alone that are younger: one of the same time may still be on its way. Recommended on object stores: 5s.
	Settle time.Duration
	Now    func() time.Time // nil: time.Now
}

// Selection is what a round reads.
type Selection struct {
	Files   []storage.Info // by modification time, then name
	Bytes   int64
	Next    Cursor
	Listed  int // files in the folder that count
	Late    int // of Files: those that only the strict mode takes
	Waiting int // files that are too young to be read
	Left    int // files that the limit left for the next round
}

// Select lists the folder. Files of no bytes do not count, nor does what has a dot or an underscore in front of its own name
// or of a folder's on the way. A first time group is taken whole even when it is larger than the limit: otherwise nothing
// would ever be read again.
func (s Selector) Select(ctx context.Context, from Cursor, limit int64) (Selection, error) {
	after, err := parseMillis(from.Checkpoint)
	if err != nil {
		return Selection{}, err
	}
	seen, err := parseSeen(from.Seen)
	if err != nil {
		return Selection{}, err
	}
	w := window{selector: s, from: from, after: after, seen: seen, young: math.MaxInt64}
	w.begin = w.opens(after)
	w.early = max(w.begin, seen.begin)
	if s.Settle > 0 {
		w.young = s.now().Add(-s.Settle).UnixMilli()
	}
	if err := w.list(ctx); err != nil {
		return Selection{}, err
	}
	return w.cut(limit), nil
}

func (s Selector) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// window sorts what a listing gives.
type window struct {
	selector Selector
	from     Cursor
	after    int64 // milliseconds: the checkpoint
	begin    int64 // strict: the oldest time whose files are remembered
	early    int64 // strict: the oldest time whose files are taken when they are not remembered
	young    int64 // newer files wait
	seen     seenFiles

	out   Selection
	files []found // to read
	known []found // strict: read before, and still in the window
}

type found struct {
	storage.Info
	at int64 // modification time in milliseconds
}

func (w *window) list(ctx context.Context) error {
	for info, err := range w.infos(ctx) {
		if err != nil {
			return fmt.Errorf("list %s: %w", w.selector.Store.URL(), err)
		}
		if info.Dir || info.Size == 0 || hidden(info.Name) {
			continue
		}
		w.out.Listed++
		w.take(found{Info: info, at: info.Modified.UnixMilli()})
	}
	if w.out.Listed > 0 {
		return nil
	}
	return rootThere(ctx, w.selector.Store)
}

func (w *window) take(f found) {
	late := w.selector.Strict && f.at <= w.after
	switch {
	case f.at > w.young:
		w.out.Waiting++
	case f.at > w.after:
		w.files = append(w.files, f)
	case late && f.at >= w.begin && w.seen.has(f):
		w.known = append(w.known, f)
	case late && f.at >= w.early && w.seen.whole:
		w.files = append(w.files, f)
	case late && f.at >= w.begin:
		// Before the window that the checkpoint tells of, as when the original streamer wrote it: such a file was read.
		w.known = append(w.known, f)
	}
}

// cut takes files up to the limit and makes the next cursor.
func (w *window) cut(limit int64) Selection {
	slices.SortFunc(w.files, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.Name, b.Name))
	})
	taken := 0
	for i, f := range w.files {
		if i > 0 && w.out.Bytes >= limit-f.Size && f.at > w.files[i-1].at {
			break
		}
		w.out.Bytes += f.Size
		taken++
	}
	w.out.Left = len(w.files) - taken
	if taken == 0 {
		w.out.Next = w.from
		return w.out
	}
	next := w.after
	for _, f := range w.files[:taken] {
		w.out.Files = append(w.out.Files, f.Info)
		next = max(next, f.at)
		if f.at <= w.after {
			w.out.Late++
		}
	}
	w.out.Next.Checkpoint = strconv.FormatInt(next, 10)
	if w.selector.Strict {
		w.out.Next.Seen = w.remember(next, w.files[:taken])
	}
	return w.out
}

// infos lists the folder, or the days of it that are wanted.
func (w *window) infos(ctx context.Context) func(func(storage.Info, error) bool) {
	if w.selector.Dates != nil && w.selector.Dates.Depth > 0 {
		return w.selector.Dates.list(ctx, w.selector.Store)
	}
	if name := w.selector.File; name != "" {
		return func(yield func(storage.Info, error) bool) { yield(w.selector.Store.Stat(ctx, name)) }
	}
	return w.selector.Store.List(ctx, "", storage.ListOptions{Recursive: true})
}

// hidden reports whether a name, or that of a folder above it, starts with a dot or an underscore.
func hidden(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part != "" && (part[0] == '.' || part[0] == '_') {
			return true
		}
	}
	return false
}

// rootThere tells an empty folder from one that is not there, where a store has folders.
func rootThere(ctx context.Context, store storage.Store) error {
	if !store.Traits().Dirs {
		return nil
	}
	parent, base, err := open.Split(store.URL())
	if err != nil {
		return nil //nolint:nilerr // the root of a file system is there
	}
	above, err := open.Store(ctx, parent, open.Options{})
	if err != nil {
		return err
	}
	info, err := above.Stat(ctx, base)
	switch {
	case errors.Is(err, storage.ErrNotExist):
		return fmt.Errorf("%w: File %s does not exist", ErrNoRoot, store.URL())
	case err == nil && !info.Dir:
		return fmt.Errorf("%w: %s is a file; give the folder that change files come into", ErrNoRoot, store.URL())
	}
	return err
}

// parseMillis reads the checkpoint of a file source. Its error is that of the original, for those who look for it.
func parseMillis(text string) (int64, error) {
	if text == "" {
		return math.MinInt64, nil
	}
	// An earlier proposal for strict checkpoints put names behind a bar; the time in front counts.
	digits, _, _ := strings.Cut(text, "|")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("For input string: %q: the checkpoint of a file source is a modification time in milliseconds", text) //nolint:revive,staticcheck // the original's text
	}
	return n, nil
}

// seenFiles are the files of a strict cursor: "1,<begin>,<base64>", eight bytes of hash for each, those at or after begin.
type seenFiles struct {
	whole bool // false: the cursor has none
	begin int64
	set   map[uint64]bool
}

func parseSeen(text string) (seenFiles, error) {
	s := seenFiles{begin: math.MaxInt64, set: map[uint64]bool{}}
	if text == "" {
		return s, nil
	}
	parts := strings.Split(text, ",")
	if len(parts) != 3 || parts[0] != "1" {
		return s, fmt.Errorf("list of files that were read: unknown form %.20q; was it written by a newer release?", text)
	}
	begin, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return s, fmt.Errorf("list of files that were read: %q is no time", parts[1])
	}
	hashes, err := base64.RawStdEncoding.DecodeString(parts[2])
	if err != nil || len(hashes)%8 != 0 {
		return s, errors.New("list of files that were read: not whole")
	}
	for ; len(hashes) > 0; hashes = hashes[8:] {
		s.set[binary.BigEndian.Uint64(hashes)] = true
	}
	s.whole, s.begin = true, begin
	return s, nil
}

func (s seenFiles) has(f found) bool { return s.set[f.hash()] }

// hash tells a file from another, and from an older one of its name.
func (f found) hash() uint64 {
	return xxhash.Sum64String(f.Name + "\x00" + strconv.FormatInt(f.at, 10) + "\x00" + strconv.FormatInt(f.Size, 10))
}

// opens is the beginning of the window before a checkpoint.
func (w *window) opens(checkpoint int64) int64 {
	wide := w.selector.Window.Milliseconds()
	if wide <= 0 || checkpoint < math.MinInt64+wide {
		return math.MinInt64
	}
	return checkpoint - wide
}

// remember writes the files that were read and lie in the window before the next checkpoint.
func (w *window) remember(next int64, taken []found) string {
	begin := w.opens(next)
	var hashes []uint64
	for _, f := range slices.Concat(w.known, taken) {
		if f.at >= begin {
			hashes = append(hashes, f.hash())
		}
	}
	slices.Sort(hashes)
	var b []byte
	for _, h := range slices.Compact(hashes) {
		b = binary.BigEndian.AppendUint64(b, h)
	}
	return fmt.Sprintf("1,%d,%s", begin, base64.RawStdEncoding.EncodeToString(b))
}
