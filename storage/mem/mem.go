// Package mem keeps objects in the memory of this process: for tests, examples, and tables that live as long as a program.
package mem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluicelake/sluice/storage"
)

// Store holds objects in a map. It has no folders of its own. Readers of an object that is replaced keep the old content.
type Store struct {
	url string

	mu      sync.RWMutex
	objects map[string]object
	version uint64
}

// object is never changed after it was put, so readers need no lock.
type object struct {
	data []byte
	info storage.Info
}

// New makes an empty store. The name is for its URL only: New("orders") is "mem://orders".
func New(name string) *Store {
	return &Store{url: "mem://" + name, objects: map[string]object{}}
}

// Hub hands out stores by name, so that several parts of a program that know only a URL reach the same one. The zero
// value is ready.
type Hub struct {
	mu     sync.Mutex
	stores map[string]*Store
}

// Store returns the store of that name, and makes it when it is asked for the first time.
func (h *Hub) Store(name string) *Store {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s, ok := h.stores[name]; ok {
		return s
	}
	if h.stores == nil {
		h.stores = map[string]*Store{}
	}
	s := New(name)
	h.stores[name] = s
	return s
}

// Traits: everything is atomic and at once visible.
func (s *Store) Traits() storage.Traits {
	return storage.Traits{AtomicIfAbsent: true, ConsistentList: true, ServerCopy: true, Tokens: true}
}

// URL is "mem://" and the name.
func (s *Store) URL() string { return s.url }

func (s *Store) fail(op, name string, err error) error {
	return &storage.Error{Op: op, URL: s.url, Name: name, Err: err}
}

func (s *Store) get(ctx context.Context, op, name string) (object, error) {
	if err := storage.CheckName(name); err != nil {
		return object{}, s.fail(op, name, err)
	}
	if err := ctx.Err(); err != nil {
		return object{}, s.fail(op, name, err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	o, ok := s.objects[name]
	if !ok {
		return object{}, s.fail(op, name, storage.ErrNotExist)
	}
	return o, nil
}

// Open returns the content as it is now.
func (s *Store) Open(ctx context.Context, name string) (storage.Object, error) {
	o, err := s.get(ctx, "open", name)
	if err != nil {
		return nil, err
	}
	return &reader{store: s, object: o}, nil
}

// Put reads the whole body before it stores anything.
func (s *Store) Put(ctx context.Context, name string, body io.Reader, opts storage.PutOptions) (storage.Info, error) {
	if err := storage.CheckName(name); err != nil {
		return storage.Info{}, s.fail("put", name, err)
	}
	data, err := io.ReadAll(storage.CheckedBody(ctx, body, opts.Size))
	if err != nil {
		return storage.Info{}, s.fail("put", name, err)
	}
	info, err := s.store(ctx, name, data, opts)
	if err != nil {
		return storage.Info{}, s.fail("put", name, err)
	}
	return info, nil
}

func (s *Store) store(ctx context.Context, name string, data []byte, opts storage.PutOptions) (storage.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return storage.Info{}, err
	}
	if _, there := s.objects[name]; there && opts.IfAbsent {
		return storage.Info{}, storage.ErrExist
	}
	s.version++
	info := storage.Info{
		Name: name, Size: int64(len(data)), ETag: strconv.FormatUint(s.version, 10), Modified: time.Now(), Token: opts.Token,
	}
	s.objects[name] = object{data: data, info: info}
	return info, nil
}

// List sees the store as it is when the iteration begins.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		if err := storage.CheckPrefix(prefix); err != nil {
			yield(storage.Info{}, s.fail("list", prefix, err))
			return
		}
		for _, info := range s.below(prefix, opts.Recursive) {
			if err := ctx.Err(); err != nil {
				yield(storage.Info{}, s.fail("list", prefix, err))
				return
			}
			if !yield(info, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(storage.Info{}, s.fail("list", prefix, err))
		}
	}
}

func (s *Store) below(prefix string, recursive bool) []storage.Info {
	folder := prefix
	if folder != "" {
		folder += "/"
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []storage.Info
	dirs := map[string]bool{}
	for name, o := range s.objects {
		rest, inside := strings.CutPrefix(name, folder)
		if !inside {
			continue
		}
		if slash := strings.IndexByte(rest, '/'); slash >= 0 && !recursive {
			if dir := folder + rest[:slash]; !dirs[dir] {
				dirs[dir] = true
				out = append(out, storage.Info{Name: dir, Dir: true})
			}
			continue
		}
		info := o.info
		info.Token = ""
		out = append(out, info)
	}
	slices.SortFunc(out, storage.CompareInfo)
	return out
}

// Stat describes one object.
func (s *Store) Stat(ctx context.Context, name string) (storage.Info, error) {
	o, err := s.get(ctx, "stat", name)
	return o.info, err
}

// Delete forgets the object.
func (s *Store) Delete(ctx context.Context, name string) error {
	if err := storage.CheckName(name); err != nil {
		return s.fail("delete", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return s.fail("delete", name, err)
	}
	delete(s.objects, name)
	return nil
}

// Copy shares the bytes.
func (s *Store) Copy(ctx context.Context, from, to string) error {
	if err := storage.CheckName(to); err != nil {
		return s.fail("copy", to, err)
	}
	o, err := s.get(ctx, "copy", from)
	if err != nil {
		return err
	}
	if from == to {
		return nil
	}
	if _, err := s.store(ctx, to, o.data, storage.PutOptions{}); err != nil {
		return s.fail("copy", to, err)
	}
	return nil
}

// CopyFrom shares the bytes of another store in memory.
func (s *Store) CopyFrom(ctx context.Context, source storage.Store, from, to string) (storage.Info, error) {
	other, ok := source.(*Store)
	if !ok {
		return storage.Info{}, errors.ErrUnsupported
	}
	if err := storage.CheckName(to); err != nil {
		return storage.Info{}, s.fail("copy", to, err)
	}
	o, err := other.get(ctx, "copy", from)
	if err != nil {
		return storage.Info{}, err
	}
	info, err := s.store(ctx, to, o.data, storage.PutOptions{})
	if err != nil {
		return storage.Info{}, s.fail("copy", to, err)
	}
	return info, nil
}

type reader struct {
	store  *Store
	object object
}

func (r *reader) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, r.store.fail("read", r.object.info.Name, err)
	}
	if off < 0 {
		return 0, r.store.fail("read", r.object.info.Name, fmt.Errorf("negative offset %d", off))
	}
	if off >= int64(len(r.object.data)) {
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	n := copy(p, r.object.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (r *reader) Size() int64  { return r.object.info.Size }
func (r *reader) ETag() string { return r.object.info.ETag }
func (r *reader) Close() error { return nil }
