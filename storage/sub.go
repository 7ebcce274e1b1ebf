package storage

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"
)

// Sub is the store whose root is the folder prefix of s. Names below it can't reach the rest of s. An empty prefix is s.
func Sub(s Store, prefix string) (Store, error) {
	if prefix == "" {
		return s, nil
	}
	if err := CheckName(prefix); err != nil {
		return nil, &Error{Op: "open", URL: s.URL(), Err: err}
	}
	if outer, ok := s.(*sub); ok {
		return &sub{store: outer.store, prefix: Join(outer.prefix, prefix)}, nil
	}
	return &sub{store: s, prefix: prefix}, nil
}

type sub struct {
	store  Store
	prefix string
}

// name checks before it joins: "../x" must not become "folder/../x", nor "" the folder itself.
func (s *sub) name(op, name string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", &Error{Op: op, URL: s.URL(), Name: name, Err: err}
	}
	return Join(s.prefix, name), nil
}

// inner turns an Info of the outer store into one of this store.
func (s *sub) inner(info Info) Info {
	info.Name = strings.TrimPrefix(info.Name, s.prefix+"/")
	return info
}

func (s *sub) Open(ctx context.Context, name string) (Object, error) {
	full, err := s.name("open", name)
	if err != nil {
		return nil, err
	}
	return s.store.Open(ctx, full)
}

func (s *sub) Put(ctx context.Context, name string, body io.Reader, opts PutOptions) (Info, error) {
	full, err := s.name("put", name)
	if err != nil {
		return Info{}, err
	}
	info, err := s.store.Put(ctx, full, body, opts)
	return s.inner(info), err
}

func (s *sub) List(ctx context.Context, prefix string, opts ListOptions) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := CheckPrefix(prefix); err != nil {
			yield(Info{}, &Error{Op: "list", URL: s.URL(), Name: prefix, Err: err})
			return
		}
		for info, err := range s.store.List(ctx, Join(s.prefix, prefix), opts) {
			if !yield(s.inner(info), err) {
				return
			}
		}
	}
}

func (s *sub) Stat(ctx context.Context, name string) (Info, error) {
	full, err := s.name("stat", name)
	if err != nil {
		return Info{}, err
	}
	info, err := s.store.Stat(ctx, full)
	return s.inner(info), err
}

func (s *sub) Delete(ctx context.Context, name string) error {
	full, err := s.name("delete", name)
	if err != nil {
		return err
	}
	return s.store.Delete(ctx, full)
}

func (s *sub) Copy(ctx context.Context, from, to string) error {
	fullFrom, err := s.name("copy", from)
	if err != nil {
		return err
	}
	fullTo, err := s.name("copy", to)
	if err != nil {
		return err
	}
	return s.store.Copy(ctx, fullFrom, fullTo)
}

func (s *sub) CopyFrom(ctx context.Context, source Store, from, to string) (Info, error) {
	fullTo, err := s.name("copy", to)
	if err != nil {
		return Info{}, err
	}
	info, err := CopyFromBelow(ctx, s.store, source, from, fullTo)
	return s.inner(info), err
}

func (s *sub) Below(name string) (Store, string, error) {
	full, err := s.name("open", name)
	return s.store, full, err
}

func (s *sub) Traits() Traits { return s.store.Traits() }
func (s *sub) URL() string    { return Join(s.store.URL(), s.prefix) }

// RemoveAll deletes every object below the folder prefix and, with Traits.Dirs, the folders too; "" empties the root.
// It goes on after a failed delete and reports all failures. Objects that others put meanwhile may stay.
func RemoveAll(ctx context.Context, s Store, prefix string) error {
	if !s.Traits().Dirs {
		var names []string
		for info, err := range s.List(ctx, prefix, ListOptions{Recursive: true}) {
			if err != nil {
				return err
			}
			names = append(names, info.Name)
		}
		var failed []error
		for _, name := range names {
			if err := s.Delete(ctx, name); err != nil {
				failed = append(failed, err)
			}
			if ctx.Err() != nil {
				break
			}
		}
		return errors.Join(failed...)
	}
	if err := removeChildren(ctx, s, prefix); err != nil || prefix == "" {
		return err
	}
	return s.Delete(ctx, prefix)
}

// removeChildren empties a folder from its leaves up.
func removeChildren(ctx context.Context, s Store, folder string) error {
	var children []Info
	for info, err := range s.List(ctx, folder, ListOptions{}) {
		if err != nil {
			return err
		}
		children = append(children, info)
	}
	var failed []error
	for _, child := range children {
		if child.Dir {
			if err := removeChildren(ctx, s, child.Name); err != nil {
				failed = append(failed, err)
				continue
			}
		}
		if err := s.Delete(ctx, child.Name); err != nil {
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failed...)
}
