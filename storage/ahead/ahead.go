// Package ahead is a layer for stores that answer slowly: it splits a long read into requests that run at once, and fetches
// what a sequential reader will want next before it asks.
//
// A reader is sequential when three of its reads in a row, none begun before the last had ended, each began where the last
// one stopped. An object may have several such readers at once. For each the layer keeps up to Options.Window bytes on their
// way or ready, at first less: four times what was read in sequence. Reads at other places go straight to the store, so what
// plans its own requests (the columns of a Parquet file) is left alone.
//
// All objects of a store share Options.Memory; what does not fit is not fetched ahead. Nothing is kept once it was read.
package ahead

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/sluicelake/sluice/storage"
)

// Options of New. The zero value suits object stores.
type Options struct {
	// Part is the size of one request in bytes; longer reads are split. Default 4 MiB.
	Part int64
	// Parallel is how many requests of one long read run at once. Default 6.
	Parallel int
	// Window is how many bytes are fetched ahead of one reader. Default Part times Parallel.
	Window int64
	// Memory bounds what is fetched ahead for all readers of the store together, in bytes. Default 64 MiB; below 0 nothing
	// is fetched ahead and long reads are still split.
	Memory int64
}

const (
	readsInSequence = 3         // before the first fetch
	smallestFetch   = 256 << 10 // one request ahead brings at least this
	firstWindow     = 1 << 20
	mostReaders     = 16 // followed in one object; the least recent is forgotten
)

// Store reads ahead in the objects of the store below.
type Store struct {
	below  storage.Store
	opts   Options
	memory budget
}

// New wraps a store.
func New(below storage.Store, opts Options) *Store {
	if opts.Part <= 0 {
		opts.Part = 4 << 20
	}
	if opts.Parallel <= 0 {
		opts.Parallel = 6
	}
	if opts.Window <= 0 {
		opts.Window = opts.Part * int64(opts.Parallel)
	}
	if opts.Memory == 0 {
		opts.Memory = 64 << 20
	}
	return &Store{below: below, opts: opts, memory: budget{free: max(opts.Memory, 0)}}
}

// budget counts bytes that may still be fetched.
type budget struct {
	mu   sync.Mutex
	free int64
}

func (b *budget) take(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.free {
		return false
	}
	b.free -= n
	return true
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	b.free += n
	b.mu.Unlock()
}

// Open opens the object below. Its Close ends what is under way.
func (s *Store) Open(ctx context.Context, name string) (storage.Object, error) {
	o, err := s.below.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	// What is fetched for the next read outlives the read that asked for it.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	return &object{Object: o, store: s, name: name, life: life, end: end}, nil
}

type object struct {
	storage.Object
	store *Store
	name  string
	life  context.Context //nolint:containedctx // ended by Close
	end   context.CancelFunc

	fetches sync.WaitGroup
	mu      sync.Mutex
	readers []*reader // the least recent first
	closed  bool
}

// reader is one sequence of reads.
type reader struct {
	next  int64 // where its next read begins
	reads int   // in sequence
	bytes int64 // read in sequence
	busy  bool  // a read is under way
	ahead []*fetch
}

// fetch is a run of bytes that is on its way or here.
type fetch struct {
	off  int64
	data []byte
	done chan struct{}
	err  error
}

func (f *fetch) end() int64 { return f.off + int64(len(f.data)) }

// ReadAt takes what was fetched ahead and asks the store for the rest.
func (o *object) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	size := o.Size()
	want := int64(len(p))
	if off < 0 || want == 0 || off >= size || ctx.Err() != nil {
		return o.Object.ReadAt(ctx, p, off)
	}
	var atEnd error
	if want > size-off {
		want, atEnd = size-off, io.EOF
	}
	r, near := o.begin(off, want)
	n, err := o.read(ctx, p[:want], off, near)
	o.finish(r, off+int64(n))
	if err == nil {
		err = atEnd
	}
	return n, err
}

// begin notes a read, starts fetches behind it, and returns those that hold a part of it.
func (o *object) begin(off, want int64) (*reader, []*fetch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var near []*fetch
	for _, r := range o.readers {
		for _, f := range r.ahead {
			if f.off < off+want && off < f.end() {
				near = append(near, f)
			}
		}
	}
	r := o.follow(off)
	r.busy = true
	r.reads++
	r.bytes += want
	r.next = off + want
	if r.reads >= readsInSequence && !o.closed {
		o.extend(r)
	}
	return r, near
}

// follow finds the reader whose next read this is, or makes one.
func (o *object) follow(off int64) *reader {
	for i, r := range o.readers {
		if r.next == off && !r.busy {
			o.readers = append(append(o.readers[:i], o.readers[i+1:]...), r)
			return r
		}
	}
	if len(o.readers) == mostReaders {
		o.forget(o.readers[0])
	}
	r := &reader{}
	o.readers = append(o.readers, r)
	return r
}

func (o *object) forget(r *reader) {
	for _, f := range r.ahead {
		o.store.memory.give(int64(len(f.data)))
	}
	r.ahead = nil
	for i, other := range o.readers {
		if other == r {
			o.readers = append(o.readers[:i], o.readers[i+1:]...)
			return
		}
	}
}

// extend starts fetches until the reader's window is full or there is no memory.
func (o *object) extend(r *reader) {
	from := r.next
	if n := len(r.ahead); n > 0 {
		from = max(from, r.ahead[n-1].end())
	}
	window := min(max(4*r.bytes, firstWindow), o.store.opts.Window)
	part := min(max(window/4, smallestFetch), o.store.opts.Part)
	for limit := min(r.next+window, o.Size()); from < limit; {
		// A rest that is smaller than a request is worth waits for the next read, except at the end of the object.
		n := min(part, o.Size()-from)
		if limit-from < n || !o.store.memory.take(n) {
			return
		}
		f := &fetch{off: from, data: make([]byte, n), done: make(chan struct{})}
		r.ahead = append(r.ahead, f)
		from += n
		o.fetches.Go(func() {
			defer close(f.done)
			if got, err := o.Object.ReadAt(o.life, f.data, f.off); got < len(f.data) {
				f.err = errors.Join(err, io.ErrUnexpectedEOF)
			}
		})
	}
}

// finish notes that a read is over and drops what nobody will want again.
func (o *object) finish(r *reader, end int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r.busy = false
	if end < r.next { // a failed read: what comes next begins anew
		o.forget(r)
		return
	}
	kept := r.ahead[:0]
	for _, f := range r.ahead {
		if f.end() > end {
			kept = append(kept, f)
			continue
		}
		o.store.memory.give(int64(len(f.data)))
	}
	clear(r.ahead[len(kept):])
	r.ahead = kept
}

// read fills p from the fetches, which may overlap it anywhere, and from the store.
func (o *object) read(ctx context.Context, p []byte, off int64, near []*fetch) (int, error) {
	for at := 0; at < len(p); {
		pos := off + int64(at)
		from, stop := nearest(near, pos, off+int64(len(p)))
		if stop > pos { // nothing was fetched up to there
			n, err := o.split(ctx, p[at:at+int(stop-pos)], pos)
			if at += n; err != nil {
				return at, err
			}
			continue
		}
		select {
		case <-from.done:
		case <-ctx.Done():
			return at, &storage.Error{Op: "read", URL: o.store.URL(), Name: o.name, Err: ctx.Err()}
		}
		if from.err != nil {
			// The reader gets the store's answer to itself, as it is now.
			near = without(near, from)
			continue
		}
		at += copy(p[at:], from.data[pos-from.off:])
	}
	return len(p), nil
}

// nearest finds the fetch that holds pos, with stop at pos, or else how far there is none.
func nearest(near []*fetch, pos, end int64) (from *fetch, stop int64) {
	stop = end
	for _, f := range near {
		switch {
		case f.off <= pos && pos < f.end():
			return f, pos
		case f.off > pos:
			stop = min(stop, f.off)
		}
	}
	return nil, stop
}

func without(near []*fetch, failed *fetch) []*fetch {
	var kept []*fetch
	for _, f := range near {
		if f != failed {
			kept = append(kept, f)
		}
	}
	return kept
}

// split reads from the store, by several requests at once where p is long. n counts the bytes up to the first that is
// missing.
func (o *object) split(ctx context.Context, p []byte, off int64) (int, error) {
	part := o.store.opts.Part
	if int64(len(p)) < 2*part {
		n, err := o.Object.ReadAt(ctx, p, off)
		return n, short(n, len(p), err)
	}
	parts := (int64(len(p)) + part - 1) / part
	got := make([]int, parts)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(o.store.opts.Parallel)
	for i := range parts {
		piece := p[i*part : min((i+1)*part, int64(len(p)))]
		group.Go(func() error {
			n, err := o.Object.ReadAt(groupCtx, piece, off+i*part)
			got[i] = n
			return short(n, len(piece), err)
		})
	}
	err := group.Wait()
	whole := 0
	for i, n := range got {
		whole += n
		if int64(n) < part && int64(i) < parts-1 {
			break
		}
	}
	return whole, err
}

// short is the error of a read of want bytes inside the object that brought n.
func short(n, want int, err error) error {
	if n == want {
		return nil
	}
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Close ends what is under way, then closes the object below.
func (o *object) Close() error {
	o.mu.Lock()
	o.closed = true
	for len(o.readers) > 0 {
		o.forget(o.readers[0])
	}
	o.mu.Unlock()
	o.end()
	o.fetches.Wait()
	return o.Object.Close()
}

// Put is that of the store below, and so are all that follow.
func (s *Store) Put(ctx context.Context, name string, body io.Reader, opts storage.PutOptions) (storage.Info, error) {
	return s.below.Put(ctx, name, body, opts)
}

// List is that of the store below.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Info, error] {
	return s.below.List(ctx, prefix, opts)
}

// Stat is that of the store below.
func (s *Store) Stat(ctx context.Context, name string) (storage.Info, error) {
	return s.below.Stat(ctx, name)
}

// Delete is that of the store below.
func (s *Store) Delete(ctx context.Context, name string) error { return s.below.Delete(ctx, name) }

// Copy is that of the store below.
func (s *Store) Copy(ctx context.Context, from, to string) error { return s.below.Copy(ctx, from, to) }

// CopyFrom is that of the store below.
func (s *Store) CopyFrom(ctx context.Context, source storage.Store, from, to string) (storage.Info, error) {
	return storage.CopyFromBelow(ctx, s.below, source, from, to)
}

// Below is for storage.Locate.
func (s *Store) Below(name string) (storage.Store, string, error) { return s.below, name, nil }

// Traits are those of the store below.
func (s *Store) Traits() storage.Traits { return s.below.Traits() }

// URL is that of the store below.
func (s *Store) URL() string { return s.below.URL() }
