// Package replay lets several processes see one store as one of them saw it: a Recorder is a layer that keeps every answer to
// a List, Stat, Open or read, and Replay is a layer that gives these answers again, elsewhere and later, and asks the store
// below only for what was not asked before. Who decides the same thing twice on the same answers decides it alike, whatever
// a table's writers have done in between.
package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/sluicelake/sluice/storage"
)

// Answers are what a store said, in a form that encoding/json writes and reads. A nil Object or Stat says that there is none.
type Answers struct {
	Lists   map[string][]storage.Info `json:"lists,omitempty"`   // folder by folder, by prefix
	Sweeps  map[string][]storage.Info `json:"sweeps,omitempty"`  // recursive ones, by prefix
	Stats   map[string]*storage.Info  `json:"stats,omitempty"`   // by name
	Objects map[string]*Object        `json:"objects,omitempty"` // that were opened, by name
}

// Object is one that was opened.
type Object struct {
	Size  int64  `json:"size"`
	ETag  string `json:"etag,omitempty"`
	Parts []Part `json:"parts,omitempty"` // that were read
}

// Part is a range of an object's bytes.
type Part struct {
	From  int64  `json:"from"`
	Bytes []byte `json:"bytes"`
}

// covers gives the n bytes from off where one part holds them, up to the end of the object.
func (o *Object) covers(off int64, n int) ([]byte, bool) {
	for _, p := range o.Parts {
		if off < p.From || off > p.From+int64(len(p.Bytes)) {
			continue
		}
		rest := p.Bytes[off-p.From:]
		switch {
		case len(rest) >= n:
			return rest[:n], true
		case off+int64(len(rest)) == o.Size:
			return rest, true
		}
	}
	return nil, false
}

// Recorder is a store that keeps what the store below answers. Of several answers to one question the last is kept.
type Recorder struct {
	storage.Store

	mu      sync.Mutex
	answers Answers
	stopped bool
}

// Record wraps a store.
func Record(below storage.Store) *Recorder {
	return &Recorder{Store: below, answers: Answers{
		Lists: map[string][]storage.Info{}, Sweeps: map[string][]storage.Info{}, Stats: map[string]*storage.Info{}, Objects: map[string]*Object{},
	}}
}

// Stop gives the answers so far. The recorder keeps no more of them.
func (r *Recorder) Stop() Answers {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	return r.answers
}

func (r *Recorder) keep(f func(*Answers)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		f(&r.answers)
	}
}

// List keeps lists that come to their end.
func (r *Recorder) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		var all []storage.Info
		for info, err := range r.Store.List(ctx, prefix, opts) {
			if !yield(info, err) || err != nil {
				return
			}
			all = append(all, info)
		}
		r.keep(func(a *Answers) {
			if opts.Recursive {
				a.Sweeps[prefix] = all
			} else {
				a.Lists[prefix] = all
			}
		})
	}
}

// Stat keeps what is there and what is not.
func (r *Recorder) Stat(ctx context.Context, name string) (storage.Info, error) {
	info, err := r.Store.Stat(ctx, name)
	switch {
	case err == nil:
		r.keep(func(a *Answers) { a.Stats[name] = &info })
	case errors.Is(err, storage.ErrNotExist):
		r.keep(func(a *Answers) { a.Stats[name] = nil })
	}
	return info, err
}

// Open keeps what is read of the object.
func (r *Recorder) Open(ctx context.Context, name string) (storage.Object, error) {
	o, err := r.Store.Open(ctx, name)
	if err != nil {
		if errors.Is(err, storage.ErrNotExist) {
			r.keep(func(a *Answers) { a.Objects[name] = nil })
		}
		return nil, err
	}
	r.keep(func(a *Answers) {
		if old := a.Objects[name]; old == nil || old.Size != o.Size() || old.ETag != o.ETag() {
			a.Objects[name] = &Object{Size: o.Size(), ETag: o.ETag()}
		}
	})
	return &recorded{Object: o, name: name, to: r}, nil
}

type recorded struct {
	storage.Object
	name string
	to   *Recorder
}

func (o *recorded) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := o.Object.ReadAt(ctx, p, off)
	if err == nil || errors.Is(err, io.EOF) {
		o.to.keep(func(a *Answers) {
			kept := a.Objects[o.name]
			if kept == nil || kept.Size != o.Size() || kept.ETag != o.ETag() {
				return // replaced since
			}
			if _, ok := kept.covers(off, n); !ok {
				kept.Parts = append(kept.Parts, Part{From: off, Bytes: append([]byte(nil), p[:n]...)})
			}
		})
	}
	return n, err
}

// Replay gives recorded answers where there are some, and those of the store below elsewhere. It is for reading.
func Replay(below storage.Store, answers Answers) storage.Store {
	return &player{Store: below, answers: answers}
}

type player struct {
	storage.Store
	answers Answers
}

func (s *player) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Info, error] {
	lists := s.answers.Lists
	if opts.Recursive {
		lists = s.answers.Sweeps
	}
	all, ok := lists[prefix]
	if !ok {
		return s.Store.List(ctx, prefix, opts)
	}
	return func(yield func(storage.Info, error) bool) {
		for _, info := range all {
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (s *player) Stat(ctx context.Context, name string) (storage.Info, error) {
	info, ok := s.answers.Stats[name]
	switch {
	case !ok:
		return s.Store.Stat(ctx, name)
	case info == nil:
		return storage.Info{}, &storage.Error{Op: "stat", URL: s.URL(), Name: name, Err: storage.ErrNotExist}
	}
	return *info, nil
}

func (s *player) Open(ctx context.Context, name string) (storage.Object, error) {
	o, ok := s.answers.Objects[name]
	switch {
	case !ok:
		return s.Store.Open(ctx, name)
	case o == nil:
		return nil, &storage.Error{Op: "open", URL: s.URL(), Name: name, Err: storage.ErrNotExist}
	}
	return &played{kept: o, name: name, from: s}, nil
}

// played is an object that is opened below when something is read that was not read before.
type played struct {
	kept *Object
	name string
	from *player

	mu    sync.Mutex
	below storage.Object
}

func (o *played) Size() int64  { return o.kept.Size }
func (o *played) ETag() string { return o.kept.ETag }

func (o *played) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off >= 0 {
		if part, ok := o.kept.covers(off, len(p)); ok {
			if copy(p, part) < len(p) {
				return len(part), io.EOF
			}
			return len(p), nil
		}
	}
	below, err := o.open(ctx)
	if err != nil {
		return 0, err
	}
	return below.ReadAt(ctx, p, off)
}

func (o *played) open(ctx context.Context) (storage.Object, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.below != nil {
		return o.below, nil
	}
	below, err := o.from.Store.Open(ctx, o.name)
	if err != nil {
		return nil, err
	}
	if below.Size() != o.kept.Size || below.ETag() != o.kept.ETag {
		_ = below.Close()
		return nil, &storage.Error{Op: "open", URL: o.from.URL(), Name: o.name, Err: storage.ErrChanged}
	}
	o.below = below
	return below, nil
}

func (o *played) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.below == nil {
		return nil
	}
	err := o.below.Close()
	o.below = nil
	return err
}

// Fenced is a store for writers that may outlive the job they belong to: whatever they put appears only while a fence
// stands, an object that the job's owner deletes when it waits for nobody any more. The fence is looked for when the whole
// body has been sent and before the object appears.
func Fenced(below storage.Store, fence string) storage.Store {
	return &fenced{Store: below, fence: fence}
}

// ErrFenced is what a Put gets when the fence is gone.
var ErrFenced = errors.New("the job that this file is for has ended")

type fenced struct {
	storage.Store
	fence string
}

func (s *fenced) Put(ctx context.Context, name string, body io.Reader, opts storage.PutOptions) (storage.Info, error) {
	if body == nil {
		body = bytes.NewReader(nil)
	}
	guarded := &fencedBody{Reader: body, ctx: ctx, store: s, size: opts.Size}
	if seeker, ok := body.(io.Seeker); ok { // a body that can be sent again stays one
		return s.Store.Put(ctx, name, &fencedSeeker{fencedBody: guarded, seeker: seeker}, opts)
	}
	return s.Store.Put(ctx, name, guarded, opts)
}

func (s *fenced) stands(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	switch _, err := s.Stat(ctx, s.fence); {
	case errors.Is(err, storage.ErrNotExist):
		return fmt.Errorf("%w: %s is gone", ErrFenced, storage.Join(s.URL(), s.fence))
	case err != nil:
		return err
	}
	return nil
}

// fencedBody ends with an error when the fence is gone at its end: behind its last byte or, of a stated size, with it.
type fencedBody struct {
	io.Reader
	ctx   context.Context
	store *fenced
	size  int64 // 0: not stated
	read  int64
	asked bool
}

func (b *fencedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read += int64(n)
	if !b.asked && (err == io.EOF || b.size > 0 && b.read >= b.size) {
		b.asked = true
		if gone := b.store.stands(b.ctx); gone != nil {
			return 0, gone
		}
	}
	return n, err
}

type fencedSeeker struct {
	*fencedBody
	seeker io.Seeker
}

func (b *fencedSeeker) Seek(offset int64, whence int) (int64, error) {
	at, err := b.seeker.Seek(offset, whence)
	b.read, b.asked = at, false
	return at, err
}
