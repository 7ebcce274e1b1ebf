package basefile

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sort"

	"github.com/sluicelake/sluice/storage"
	"golang.org/x/sync/errgroup"
)

// bytesObject is an object in memory.
type bytesObject []byte

func (b bytesObject) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	return bytes.NewReader(b).ReadAt(p, off)
}
func (b bytesObject) Size() int64  { return int64(len(b)) }
func (b bytesObject) ETag() string { return "" }
func (b bytesObject) Close() error { return nil }

// segment is a run of bytes of the file in memory.
type segment struct {
	off  int64
	data []byte
}

// source is what one scan reads the file through: the tail that opening fetched, what was fetched ahead, and else the object.
type source struct {
	ctx  context.Context //nolint:containedctx // the Parquet reader knows no contexts; a source lives for one scan
	obj  storage.Object
	tail segment
	near []segment // sorted by offset
	pos  int64
}

func (s *source) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errors.New("read before the start of the file")
	}
	if n, ok := s.tail.read(p, off); ok {
		return n, nil
	}
	i := sort.Search(len(s.near), func(i int) bool { return s.near[i].off > off }) - 1
	if i >= 0 {
		if n, ok := s.near[i].read(p, off); ok {
			return n, nil
		}
	}
	if off >= s.obj.Size() {
		return 0, io.EOF
	}
	n, err := s.obj.ReadAt(s.ctx, p, off)
	if n == len(p) {
		err = nil
	}
	return n, err
}

// resident gives bytes that are in memory already, without a copy.
func (s *source) resident(off, n int64) ([]byte, bool) {
	i := sort.Search(len(s.near), func(i int) bool { return s.near[i].off > off }) - 1
	for _, g := range [2]*segment{&s.tail, s.nearAt(i)} {
		if g != nil && off >= g.off && off+n <= g.off+int64(len(g.data)) {
			return g.data[off-g.off : off-g.off+n : off-g.off+n], true
		}
	}
	if b, ok := s.obj.(bytesObject); ok && off >= 0 && off+n <= int64(len(b)) {
		return b[off : off+n : off+n], true
	}
	return nil, false
}

func (s *source) nearAt(i int) *segment {
	if i < 0 {
		return nil
	}
	return &s.near[i]
}

func (g *segment) read(p []byte, off int64) (int, bool) {
	if off < g.off || off+int64(len(p)) > g.off+int64(len(g.data)) {
		return 0, false
	}
	return copy(p, g.data[off-g.off:]), true
}

func (s *source) Seek(off int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		off += s.pos
	case io.SeekEnd:
		off += s.obj.Size()
	}
	if off < 0 {
		return 0, errors.New("seek before the start of the file")
	}
	s.pos = off
	return off, nil
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.ReadAt(p, s.pos)
	s.pos += int64(n)
	return n, err
}

const (
	// fetchGap joins two ranges that lie closer: a request costs a remote store about as much as this many bytes.
	fetchGap = 1 << 20
	// fetchPart is the largest single request.
	fetchPart = 8 << 20
	// fetchLimit is the most that is fetched ahead; beyond it columns stream through their own buffers.
	fetchLimit = 64 << 20
	// fetchers run at once.
	fetchers = 6
)

type byteRange struct{ off, size int64 }

// fetch brings the ranges into memory, joined where they lie close, unless they are too many bytes. It replaces what was
// fetched before.
func (s *source) fetch(ranges []byteRange) error {
	s.near = nil
	joined := joinRanges(ranges)
	total := int64(0)
	for _, r := range joined {
		total += r.size
	}
	if total > fetchLimit {
		return nil
	}
	near := make([]segment, len(joined))
	g, ctx := errgroup.WithContext(s.ctx)
	g.SetLimit(fetchers)
	for i, r := range joined {
		near[i] = segment{off: r.off, data: make([]byte, r.size)}
		for at := int64(0); at < r.size; at += fetchPart {
			part := near[i].data[at:min(at+fetchPart, r.size)]
			g.Go(func() error {
				n, err := s.obj.ReadAt(ctx, part, r.off+at)
				if n == len(part) {
					return nil
				}
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	s.near = near
	return nil
}

func joinRanges(ranges []byteRange) []byteRange {
	sort.Slice(ranges, func(i, j int) bool { return ranges[i].off < ranges[j].off })
	var out []byteRange
	for _, r := range ranges {
		if n := len(out); n > 0 && r.off <= out[n-1].off+out[n-1].size+fetchGap {
			out[n-1].size = max(out[n-1].size, r.off+r.size-out[n-1].off)
			continue
		}
		out = append(out, r)
	}
	return out
}
