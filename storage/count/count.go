// Package count is a layer that counts operations and bytes, for the figures at the end of a job.
//
// An operation is a call of the store. On S3 that is one request, but for a List (one for each 1000 objects), a large Put
// or Copy (one for each part and two more) and what the SDK repeats. Below a retry layer each attempt counts.
package count

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync/atomic"

	"github.com/sluicelake/sluice/storage"
)

// Op is a kind of operation.
type Op int

// The kinds, in the order of Stats.
const (
	Open Op = iota
	Read
	Put
	List
	Stat
	Delete
	Copy
	ops
)

func (o Op) String() string {
	if o < 0 || o >= ops {
		return fmt.Sprintf("Op(%d)", int(o))
	}
	return [...]string{"open", "read", "put", "list", "stat", "delete", "copy"}[o]
}

// Counter collects the figures of any number of stores. The zero value is ready, and it is safe for concurrent use.
type Counter struct {
	requests, failed, bytes [ops]atomic.Int64
}

// Figures of one kind of operation.
type Figures struct {
	Requests int64
	Failed   int64 // those that failed; that an object is missing, or was there already, is an answer and no failure
	Bytes    int64 // read or put; objects listed for List
}

// Stats are the figures by Op.
type Stats [ops]Figures

// Stats returns the figures so far.
func (c *Counter) Stats() Stats {
	var s Stats
	for op := range ops {
		s[op] = Figures{Requests: c.requests[op].Load(), Failed: c.failed[op].Load(), Bytes: c.bytes[op].Load()}
	}
	return s
}

// Requests is the number of all operations.
func (s Stats) Requests() int64 {
	var n int64
	for _, f := range s {
		n += f.Requests
	}
	return n
}

// Since returns what came to s after the earlier figures.
func (s Stats) Since(earlier Stats) Stats {
	for op := range s {
		s[op].Requests -= earlier[op].Requests
		s[op].Failed -= earlier[op].Failed
		s[op].Bytes -= earlier[op].Bytes
	}
	return s
}

// String lists what happened: "open 3, read 7 (1048576 bytes), put 1 (17 bytes), list 1 (4 objects)".
func (s Stats) String() string {
	var parts []string
	for op, f := range s {
		if f.Requests == 0 {
			continue
		}
		part := fmt.Sprintf("%v %d", Op(op), f.Requests)
		switch Op(op) {
		case Read, Put:
			part += fmt.Sprintf(" (%d bytes)", f.Bytes)
		case List:
			part += fmt.Sprintf(" (%d objects)", f.Bytes)
		}
		if f.Failed > 0 {
			part += fmt.Sprintf(", %d failed", f.Failed)
		}
		parts = append(parts, part)
	}
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

func (c *Counter) done(op Op, bytes int64, err error) {
	c.requests[op].Add(1)
	c.bytes[op].Add(bytes)
	if err != nil && err != io.EOF && !errors.Is(err, storage.ErrNotExist) && !errors.Is(err, storage.ErrExist) {
		c.failed[op].Add(1)
	}
}

// Store counts the operations of the store below.
type Store struct {
	below storage.Store
	count *Counter
}

// New wraps a store.
func New(below storage.Store, counter *Counter) *Store { return &Store{below: below, count: counter} }

// Open counts, and so does each read of the object.
func (s *Store) Open(ctx context.Context, name string) (storage.Object, error) {
	o, err := s.below.Open(ctx, name)
	s.count.done(Open, 0, err)
	if err != nil {
		return nil, err
	}
	return &object{Object: o, count: s.count}, nil
}

type object struct {
	storage.Object
	count *Counter
}

func (o *object) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := o.Object.ReadAt(ctx, p, off)
	o.count.done(Read, int64(n), err)
	return n, err
}

// Put counts the bytes of objects that were stored.
func (s *Store) Put(ctx context.Context, name string, body io.Reader, opts storage.PutOptions) (storage.Info, error) {
	info, err := s.below.Put(ctx, name, body, opts)
	s.count.done(Put, info.Size, err)
	return info, err
}

// List counts when it ends.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		var n int64
		var failed error
		defer func() { s.count.done(List, n, failed) }()
		for info, err := range s.below.List(ctx, prefix, opts) {
			if err != nil {
				failed = err
			} else {
				n++
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// Stat counts.
func (s *Store) Stat(ctx context.Context, name string) (storage.Info, error) {
	info, err := s.below.Stat(ctx, name)
	s.count.done(Stat, 0, err)
	return info, err
}

// Delete counts.
func (s *Store) Delete(ctx context.Context, name string) error {
	err := s.below.Delete(ctx, name)
	s.count.done(Delete, 0, err)
	return err
}

// Copy counts.
func (s *Store) Copy(ctx context.Context, from, to string) error {
	err := s.below.Copy(ctx, from, to)
	s.count.done(Copy, 0, err)
	return err
}

// CopyFrom counts as a Copy, unless the store below can't.
func (s *Store) CopyFrom(ctx context.Context, source storage.Store, from, to string) (storage.Info, error) {
	info, err := storage.CopyFromBelow(ctx, s.below, source, from, to)
	if !errors.Is(err, errors.ErrUnsupported) {
		s.count.done(Copy, 0, err)
	}
	return info, err
}

// Below is for storage.Locate.
func (s *Store) Below(name string) (storage.Store, string, error) { return s.below, name, nil }

// Traits are those of the store below.
func (s *Store) Traits() storage.Traits { return s.below.Traits() }

// URL is that of the store below.
func (s *Store) URL() string { return s.below.URL() }
