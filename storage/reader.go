package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"
)

// ReaderAt gives o the shapes of the standard library: io.ReaderAt, io.Reader, io.Seeker and io.Closer, all reading with
// ctx. It is what Arrow's Parquet reader wants. The File owns o: Close closes it.
func ReaderAt(ctx context.Context, o Object) *File { return &File{ctx: ctx, object: o} }

// File is an Object with one context and one position. ReadAt may be called by several goroutines, Read and Seek by one.
type File struct {
	ctx    context.Context
	object Object
	pos    int64
}

// ReadAt is io.ReaderAt.
func (f *File) ReadAt(p []byte, off int64) (int, error) { return f.object.ReadAt(f.ctx, p, off) }

// Read is io.Reader.
func (f *File) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if left := f.object.Size() - f.pos; left <= 0 {
		return 0, io.EOF
	} else if int64(len(p)) > left {
		p = p[:left]
	}
	n, err := f.object.ReadAt(f.ctx, p, f.pos)
	f.pos += int64(n)
	if n == len(p) {
		err = nil
	}
	return n, err
}

// Seek is io.Seeker. A position behind the end is allowed; a Read there gives io.EOF.
func (f *File) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += f.pos
	case io.SeekEnd:
		offset += f.object.Size()
	default:
		return 0, fmt.Errorf("seek: unknown whence %d", whence)
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek: position %d is before the start", offset)
	}
	f.pos = offset
	return offset, nil
}

// Size is the object's size in bytes.
func (f *File) Size() int64 { return f.object.Size() }

// Close closes the object.
func (f *File) Close() error { return f.object.Close() }

// Range is a run of bytes of an object.
type Range struct{ Off, Len int64 }

// PrefetchOptions of Prefetch. The zero value is good for object stores.
type PrefetchOptions struct {
	// Gap joins ranges that lie at most this many bytes apart: on a remote store a request costs more than the bytes
	// between. Default 256 KiB.
	Gap int64
	// Max is the largest single request in bytes; longer runs are cut. Default 8 MiB.
	Max int64
	// Parallel is how many requests run at once. Default 4.
	Parallel int
}

// Prefetch reads ranges of o now, near ones joined into one request and several requests at once, and returns an object
// that answers reads inside them from memory and passes all others to o. It holds the joined ranges in memory until it is
// closed, which closes o. Ranges are clipped to the object. After an error o is still open.
//
// It suits the column chunks of one Parquet row group, whose places the footer tells.
func Prefetch(ctx context.Context, o Object, ranges []Range, opts PrefetchOptions) (Object, error) {
	if opts.Gap <= 0 {
		opts.Gap = 256 << 10
	}
	if opts.Max <= 0 {
		opts.Max = 8 << 20
	}
	if opts.Parallel <= 0 {
		opts.Parallel = 4
	}
	runs := joinRanges(ranges, o.Size(), opts.Gap)
	held := make([]heldRange, len(runs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(opts.Parallel)
	for i, run := range runs {
		held[i] = heldRange{off: run.Off, data: make([]byte, run.Len)}
		for at := int64(0); at < run.Len; at += opts.Max {
			part := held[i].data[at:min(at+opts.Max, run.Len)]
			group.Go(func() error {
				n, err := o.ReadAt(ctx, part, run.Off+at)
				if n == len(part) {
					return nil
				}
				if err == nil || errors.Is(err, io.EOF) {
					err = io.ErrUnexpectedEOF
				}
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return &prefetched{Object: o, held: held}, nil
}

// joinRanges sorts and clips ranges and joins those that overlap or lie within gap bytes of each other.
func joinRanges(ranges []Range, size, gap int64) []Range {
	var in []Range
	for _, r := range ranges {
		if r.Off < 0 || r.Off >= size || r.Len <= 0 {
			continue
		}
		in = append(in, Range{r.Off, min(r.Len, size-r.Off)})
	}
	slices.SortFunc(in, func(a, b Range) int {
		switch {
		case a.Off < b.Off:
			return -1
		case a.Off > b.Off:
			return 1
		}
		return 0
	})
	var out []Range
	for _, r := range in {
		if len(out) > 0 {
			last := &out[len(out)-1]
			if end := last.Off + last.Len; r.Off-end <= gap {
				last.Len = max(end, r.Off+r.Len) - last.Off
				continue
			}
		}
		out = append(out, r)
	}
	return out
}

type heldRange struct {
	off  int64
	data []byte
}

type prefetched struct {
	Object
	held []heldRange
}

func (p *prefetched) ReadAt(ctx context.Context, b []byte, off int64) (int, error) {
	// The last run that starts at or before off is the only one that can hold it: runs do not touch.
	i, found := slices.BinarySearchFunc(p.held, off, func(h heldRange, off int64) int {
		switch {
		case h.off < off:
			return -1
		case h.off > off:
			return 1
		}
		return 0
	})
	if !found {
		i--
	}
	if i >= 0 && len(b) > 0 {
		h := p.held[i]
		if at := off - h.off; at < int64(len(h.data)) && int64(len(b)) <= int64(len(h.data))-at {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			return copy(b, h.data[at:]), nil
		}
	}
	return p.Object.ReadAt(ctx, b, off)
}

func (p *prefetched) Close() error {
	p.held = nil
	return p.Object.Close()
}
