// Package limit is a layer that bounds how many operations run at once and how many bytes pass in a second.
//
// Reads and writes have separate bounds. A Put runs as long as its body lasts, and the body may be made from objects of the
// same store: with one bound for both, as many Puts as the bound allows would wait for ever for their own reads. For the
// same reason a List does not count while its consumer is busy, nor an object that is open but not being read.
package limit

import (
	"context"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/sluicelake/sluice/storage"
)

// Options of New; 0 is no bound.
type Options struct {
	Reads          int   // Open, ReadAt, Stat and List at once
	Writes         int   // Put, Copy and Delete at once
	BytesPerSecond int64 // read and written together, on average
}

// Store bounds the operations of the store below.
type Store struct {
	below  storage.Store
	reads  slots
	writes slots
	pace   *pace
}

// New wraps a store.
func New(below storage.Store, opts Options) *Store {
	s := &Store{below: below, reads: newSlots(opts.Reads), writes: newSlots(opts.Writes)}
	if opts.BytesPerSecond > 0 {
		s.pace = &pace{perSecond: opts.BytesPerSecond}
	}
	return s
}

// slots is a semaphore; nil has no bound.
type slots chan struct{}

func newSlots(n int) slots {
	if n <= 0 {
		return nil
	}
	return make(slots, n)
}

func (s slots) take(ctx context.Context) error {
	if s == nil {
		return nil
	}
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s slots) give() {
	if s != nil {
		<-s
	}
}

// pace lets bytes pass at an average rate: each caller waits until those before it are through. A tenth of a second's worth
// may pass at once after a pause.
type pace struct {
	perSecond int64
	mu        sync.Mutex
	free      time.Time // when all bytes admitted so far are through
}

func (p *pace) admit(ctx context.Context, n int) error {
	if p == nil || n <= 0 {
		return nil
	}
	p.mu.Lock()
	if earliest := time.Now().Add(-100 * time.Millisecond); p.free.Before(earliest) {
		p.free = earliest
	}
	p.free = p.free.Add(time.Duration(float64(n) / float64(p.perSecond) * float64(time.Second)))
	wait := time.Until(p.free)
	p.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Store) fail(op, name string, err error) error {
	return &storage.Error{Op: op, URL: s.URL(), Name: name, Err: err}
}

// during runs do in a slot.
func (s *Store) during(ctx context.Context, slots slots, op, name string, do func() error) error {
	if err := slots.take(ctx); err != nil {
		return s.fail(op, name, err)
	}
	defer slots.give()
	return do()
}

// Open counts as one read, and so does each read of the object.
func (s *Store) Open(ctx context.Context, name string) (o storage.Object, err error) {
	err = s.during(ctx, s.reads, "open", name, func() error {
		o, err = s.below.Open(ctx, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &object{Object: o, store: s, name: name}, nil
}

type object struct {
	storage.Object
	store *Store
	name  string
}

func (o *object) ReadAt(ctx context.Context, p []byte, off int64) (n int, err error) {
	err = o.store.during(ctx, o.store.reads, "read", o.name, func() error {
		n, err = o.Object.ReadAt(ctx, p, off)
		return err
	})
	if paceErr := o.store.pace.admit(ctx, n); paceErr != nil {
		return n, o.store.fail("read", o.name, paceErr)
	}
	return n, err
}

// Put counts as one write.
func (s *Store) Put(ctx context.Context, name string, body io.Reader, opts storage.PutOptions) (info storage.Info, err error) {
	if s.pace != nil && body != nil {
		body = &pacedBody{ctx: ctx, body: body, pace: s.pace}
	}
	err = s.during(ctx, s.writes, "put", name, func() error {
		info, err = s.below.Put(ctx, name, body, opts)
		return err
	})
	return info, err
}

type pacedBody struct {
	ctx  context.Context
	body io.Reader
	pace *pace
}

func (b *pacedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if paceErr := b.pace.admit(b.ctx, n); paceErr != nil {
		return n, paceErr
	}
	return n, err
}

// List counts as one read while the store below works.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		if err := s.reads.take(ctx); err != nil {
			yield(storage.Info{}, s.fail("list", prefix, err))
			return
		}
		held := true
		defer func() {
			if held {
				s.reads.give()
			}
		}()
		for info, err := range s.below.List(ctx, prefix, opts) {
			s.reads.give()
			held = false
			if !yield(info, err) || err != nil {
				return
			}
			if err := s.reads.take(ctx); err != nil {
				yield(storage.Info{}, s.fail("list", prefix, err))
				return
			}
			held = true
		}
	}
}

// Stat counts as one read.
func (s *Store) Stat(ctx context.Context, name string) (info storage.Info, err error) {
	err = s.during(ctx, s.reads, "stat", name, func() error {
		info, err = s.below.Stat(ctx, name)
		return err
	})
	return info, err
}

// Delete counts as one write.
func (s *Store) Delete(ctx context.Context, name string) error {
	return s.during(ctx, s.writes, "delete", name, func() error { return s.below.Delete(ctx, name) })
}

// Copy counts as one write. Its bytes are not paced: as a rule they don't pass through here.
func (s *Store) Copy(ctx context.Context, from, to string) error {
	return s.during(ctx, s.writes, "copy", to, func() error { return s.below.Copy(ctx, from, to) })
}

// CopyFrom counts as one write.
func (s *Store) CopyFrom(ctx context.Context, source storage.Store, from, to string) (info storage.Info, err error) {
	err = s.during(ctx, s.writes, "copy", to, func() error {
		info, err = storage.CopyFromBelow(ctx, s.below, source, from, to)
		return err
	})
	return info, err
}

// Below is for storage.Locate.
func (s *Store) Below(name string) (storage.Store, string, error) { return s.below, name, nil }

// Traits are those of the store below.
func (s *Store) Traits() storage.Traits { return s.below.Traits() }

// URL is that of the store below.
func (s *Store) URL() string { return s.below.URL() }
