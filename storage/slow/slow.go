// Package slow is a layer for tests and benchmarks that answers like a distant store: each request takes a while, and the
// bytes of each come at a pace, but any number of requests run at once.
package slow

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/sluicelake/sluice/storage"
)

// Options of New.
type Options struct {
	Latency        time.Duration // of each request
	BytesPerSecond int64         // of one request; 0 is no bound
	Page           int           // entries that one request of a List brings; default 1000
}

// Store delays the operations of the store below.
type Store struct {
	below storage.Store
	opts  Options
}

// New wraps a store.
func New(below storage.Store, opts Options) *Store {
	if opts.Page <= 0 {
		opts.Page = 1000
	}
	return &Store{below: below, opts: opts}
}

// wait is the time of one request that moves n bytes.
func (s *Store) wait(ctx context.Context, op, name string, n int64) error {
	d := s.opts.Latency
	if s.opts.BytesPerSecond > 0 {
		d += time.Duration(float64(n) / float64(s.opts.BytesPerSecond) * float64(time.Second))
	}
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return &storage.Error{Op: op, URL: s.URL(), Name: name, Err: ctx.Err()}
	}
}

// Open is one request.
func (s *Store) Open(ctx context.Context, name string) (storage.Object, error) {
	if err := s.wait(ctx, "open", name, 0); err != nil {
		return nil, err
	}
	o, err := s.below.Open(ctx, name)
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

func (o *object) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := o.store.wait(ctx, "read", o.name, int64(len(p))); err != nil {
		return 0, err
	}
	return o.Object.ReadAt(ctx, p, off)
}

// Put is one request.
func (s *Store) Put(ctx context.Context, name string, body io.Reader, opts storage.PutOptions) (storage.Info, error) {
	if err := s.wait(ctx, "put", name, opts.Size); err != nil {
		return storage.Info{}, err
	}
	return s.below.Put(ctx, name, body, opts)
}

// List is one request for each page.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		if err := s.wait(ctx, "list", prefix, 0); err != nil {
			yield(storage.Info{}, err)
			return
		}
		n := 0
		for info, err := range s.below.List(ctx, prefix, opts) {
			if n++; n > s.opts.Page {
				n = 1
				if err := s.wait(ctx, "list", prefix, 0); err != nil {
					yield(storage.Info{}, err)
					return
				}
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// Stat is one request.
func (s *Store) Stat(ctx context.Context, name string) (storage.Info, error) {
	if err := s.wait(ctx, "stat", name, 0); err != nil {
		return storage.Info{}, err
	}
	return s.below.Stat(ctx, name)
}

// Delete is one request.
func (s *Store) Delete(ctx context.Context, name string) error {
	if err := s.wait(ctx, "delete", name, 0); err != nil {
		return err
	}
	return s.below.Delete(ctx, name)
}

// Copy is one request.
func (s *Store) Copy(ctx context.Context, from, to string) error {
	if err := s.wait(ctx, "copy", to, 0); err != nil {
		return err
	}
	return s.below.Copy(ctx, from, to)
}

// CopyFrom is one request.
func (s *Store) CopyFrom(ctx context.Context, source storage.Store, from, to string) (storage.Info, error) {
	if err := s.wait(ctx, "copy", to, 0); err != nil {
		return storage.Info{}, err
	}
	return storage.CopyFromBelow(ctx, s.below, source, from, to)
}

// Below is for storage.Locate.
func (s *Store) Below(name string) (storage.Store, string, error) { return s.below, name, nil }

// Traits are those of the store below.
func (s *Store) Traits() storage.Traits { return s.below.Traits() }

// URL is that of the store below.
func (s *Store) URL() string { return s.below.URL() }
