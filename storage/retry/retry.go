// Package retry is a layer that repeats what failed with storage.ErrTemporary, with waits that grow and vary, and that are
// no shorter than the store asks for: an error with a method RetryAfter() time.Duration tells.
//
// # Puts whose answer was lost
//
// A Put that failed may have stored its object. Without IfAbsent repeating it is harmless. With IfAbsent the repeated Put
// meets its own object, and must not call that somebody else's: then the caller would believe that another writer had
// committed. The layer marks each Put with a token and asks, when the store says ErrExist, whose token the object has
// (storage.Traits.Tokens). In a store that keeps no tokens it compares the bytes instead, and only after an earlier attempt
// of the same Put had failed; there two writers of equal bytes could both believe that they won, so bodies should hold
// something of their writer.
//
// # Bodies
//
// To be sent again a body must be an io.Seeker, or small: up to Options.Buffer bytes of it are held in memory. The Put of a
// longer one is not repeated; S3's multipart uploads repeat their parts by themselves.
package retry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/sluicelake/sluice/storage"
)

// Options of New. The zero value gives up after about half a minute.
type Options struct {
	Attempts int           // in all; default 8
	First    time.Duration // the longest first wait; doubled each time; default 200 ms
	Longest  time.Duration // the longest wait; default 10 s
	Buffer   int64         // bytes of a body to hold for another attempt; default 4 MiB, below 0: none

	// OnRetry, when set, is told of each repeat before its wait.
	OnRetry func(op, name string, attempt int, wait time.Duration, err error)
}

// Store repeats the operations of the store below.
type Store struct {
	below storage.Store
	opts  Options
}

// New wraps a store.
func New(below storage.Store, opts Options) *Store {
	if opts.Attempts <= 0 {
		opts.Attempts = 8
	}
	if opts.First <= 0 {
		opts.First = 200 * time.Millisecond
	}
	if opts.Longest <= 0 {
		opts.Longest = 10 * time.Second
	}
	if opts.Buffer == 0 {
		opts.Buffer = 4 << 20
	}
	return &Store{below: below, opts: opts}
}

// mostAsked is the longest wait that a store may ask for (Retry-After).
const mostAsked = time.Minute

// attempts counts the failures of one operation.
type attempts struct {
	store    *Store
	op, name string
	failed   int
}

// again waits and returns nil when the operation is worth another attempt, else the error for the caller.
func (a *attempts) again(ctx context.Context, err error) error {
	if !errors.Is(err, storage.ErrTemporary) {
		return err
	}
	if ctx.Err() != nil {
		return a.ended(ctx, err)
	}
	a.failed++
	if a.failed >= a.store.opts.Attempts {
		return fmt.Errorf("%w (%d attempts)", err, a.failed)
	}
	wait := a.store.wait(a.failed)
	var asked interface{ RetryAfter() time.Duration }
	if errors.As(err, &asked) {
		wait = max(wait, min(asked.RetryAfter(), mostAsked))
	}
	if a.store.opts.OnRetry != nil {
		a.store.opts.OnRetry(a.op, a.name, a.failed, wait, err)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return a.ended(ctx, err)
	case <-timer.C:
		return nil
	}
}

func (a *attempts) ended(ctx context.Context, err error) error {
	return &storage.Error{Op: a.op, URL: a.store.URL(), Name: a.name, Err: fmt.Errorf("%w, after: %w", ctx.Err(), err)}
}

// wait is between half and all of the longest wait of this attempt, so that many clients don't come back together.
func (s *Store) wait(failed int) time.Duration {
	longest := s.opts.Longest
	if shift := failed - 1; shift < 30 {
		longest = min(longest, s.opts.First<<shift)
	}
	return longest/2 + rand.N(longest/2+1)
}

func (s *Store) repeat(ctx context.Context, op, name string, do func() error) error {
	a := attempts{store: s, op: op, name: name}
	for {
		err := do()
		if err == nil {
			return nil
		}
		if err := a.again(ctx, err); err != nil {
			return err
		}
	}
}

// Open is repeated, and so is each read of the object.
func (s *Store) Open(ctx context.Context, name string) (o storage.Object, err error) {
	err = s.repeat(ctx, "open", name, func() error {
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

// ReadAt goes on behind the bytes that an attempt did bring.
func (o *object) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	a := attempts{store: o.store, op: "read", name: o.name}
	got := 0
	for {
		n, err := o.Object.ReadAt(ctx, p[got:], off+int64(got))
		got += n
		if err == nil || err == io.EOF {
			return got, err
		}
		if n > 0 {
			a.failed = 0
		}
		if err := a.again(ctx, err); err != nil {
			return got, err
		}
	}
}

// Put is repeated when its body can be sent again; see the package comment.
func (s *Store) Put(ctx context.Context, name string, body io.Reader, opts storage.PutOptions) (storage.Info, error) {
	if err := storage.CheckName(name); err != nil { // before the body is read
		return storage.Info{}, &storage.Error{Op: "put", URL: s.URL(), Name: name, Err: err}
	}
	if opts.Token == "" {
		opts.Token = storage.NewToken()
	}
	content, err := s.replayable(ctx, body, opts.Size)
	if err != nil {
		return storage.Info{}, &storage.Error{Op: "put", URL: s.URL(), Name: name, Err: fmt.Errorf("reading the body: %w", err)}
	}
	a := attempts{store: s, op: "put", name: name}
	for {
		info, err := s.below.Put(ctx, name, content.reader(), opts)
		if err == nil {
			return info, nil
		}
		unknown := errors.Is(err, storage.ErrTemporary)
		if opts.IfAbsent && errors.Is(err, storage.ErrExist) || unknown && !content.again() {
			own, ownErr := s.own(ctx, name, content, opts.Token, a.failed > 0)
			switch {
			case ownErr != nil:
				return storage.Info{}, fmt.Errorf("%w; whether the object is there now can't be told: %w", err, ownErr)
			case own != nil:
				return *own, nil
			}
		}
		if unknown && !content.again() {
			return storage.Info{}, fmt.Errorf("%w (the body is too long to be sent again)", err)
		}
		if err := a.again(ctx, err); err != nil {
			return storage.Info{}, err
		}
		if err := content.rewind(); err != nil {
			return storage.Info{}, &storage.Error{Op: "put", URL: s.URL(), Name: name, Err: err}
		}
	}
}

// own returns the object of this name if this Put has stored it, else nil.
func (s *Store) own(ctx context.Context, name string, content *content, token string, failedBefore bool) (*storage.Info, error) {
	info, err := s.Stat(ctx, name)
	if errors.Is(err, storage.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if s.Traits().Tokens {
		if info.Token == token {
			return &info, nil
		}
		return nil, nil
	}
	if !failedBefore || !content.again() || info.Dir {
		return nil, nil
	}
	same, err := s.holds(ctx, name, content)
	if err != nil || !same {
		return nil, err
	}
	return &info, nil
}

// holds compares the stored object with the body.
func (s *Store) holds(ctx context.Context, name string, content *content) (bool, error) {
	o, err := s.Open(ctx, name)
	if err != nil {
		return false, err
	}
	defer o.Close()
	if err := content.rewind(); err != nil {
		return false, err
	}
	return equal(storage.ReaderAt(ctx, o), content.reader())
}

func equal(a, b io.Reader) (bool, error) {
	const step = 64 << 10
	bufA, bufB := make([]byte, step), make([]byte, step)
	for {
		n, errA := io.ReadFull(a, bufA)
		m, errB := io.ReadFull(b, bufB)
		if !bytes.Equal(bufA[:n], bufB[:m]) {
			return false, nil
		}
		for _, err := range []error{errA, errB} {
			if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
				return false, err
			}
		}
		if errA != nil || errB != nil {
			return errA != nil && errB != nil, nil
		}
	}
}

// content is a body that may be read more than once.
type content struct {
	body   io.Reader
	seeker io.Seeker // nil: once only
	start  int64
}

func (c *content) again() bool { return c.seeker != nil }

// reader hides the body's other methods, so that nobody below closes or measures it.
func (c *content) reader() io.Reader { return struct{ io.Reader }{c.body} }

func (c *content) rewind() error {
	if _, err := c.seeker.Seek(c.start, io.SeekStart); err != nil {
		return fmt.Errorf("the body can't be sent again: %w", err)
	}
	return nil
}

func (s *Store) replayable(ctx context.Context, body io.Reader, size int64) (*content, error) {
	if body == nil {
		body = bytes.NewReader(nil)
	}
	if seeker, ok := body.(io.Seeker); ok {
		if start, err := seeker.Seek(0, io.SeekCurrent); err == nil {
			return &content{body: body, seeker: seeker, start: start}, nil
		}
	}
	if s.opts.Buffer <= 0 || size > s.opts.Buffer {
		return &content{body: body}, nil
	}
	var held bytes.Buffer
	n, err := held.ReadFrom(io.LimitReader(untilDone{ctx, body}, s.opts.Buffer+1))
	if err != nil {
		return nil, err
	}
	if n > s.opts.Buffer {
		return &content{body: io.MultiReader(&held, body)}, nil
	}
	whole := bytes.NewReader(held.Bytes())
	return &content{body: whole, seeker: whole}, nil
}

// untilDone stops reading a body when ctx ends.
type untilDone struct {
	ctx  context.Context
	body io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.body.Read(p)
}

// List begins anew after a failure and leaves out what was yielded before. What is put meanwhile may be missing, as in any
// List.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		a := attempts{store: s, op: "list", name: prefix}
		var last storage.Info
		begun := false
		for {
			failed := error(nil)
			for info, err := range s.below.List(ctx, prefix, opts) {
				if err != nil {
					failed = err
					break
				}
				if begun && storage.CompareInfo(info, last) <= 0 {
					continue
				}
				a.failed, last, begun = 0, info, true
				if !yield(info, nil) {
					return
				}
			}
			if failed == nil {
				return
			}
			if err := a.again(ctx, failed); err != nil {
				yield(storage.Info{}, err)
				return
			}
		}
	}
}

// Stat is repeated.
func (s *Store) Stat(ctx context.Context, name string) (info storage.Info, err error) {
	err = s.repeat(ctx, "stat", name, func() error {
		info, err = s.below.Stat(ctx, name)
		return err
	})
	return info, err
}

// Delete is repeated.
func (s *Store) Delete(ctx context.Context, name string) error {
	return s.repeat(ctx, "delete", name, func() error { return s.below.Delete(ctx, name) })
}

// Copy is repeated.
func (s *Store) Copy(ctx context.Context, from, to string) error {
	return s.repeat(ctx, "copy", to, func() error { return s.below.Copy(ctx, from, to) })
}

// CopyFrom is repeated.
func (s *Store) CopyFrom(ctx context.Context, source storage.Store, from, to string) (info storage.Info, err error) {
	err = s.repeat(ctx, "copy", to, func() error {
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
