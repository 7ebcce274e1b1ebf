//go:build hdfs || interop

package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/colinmarc/hdfs/v2"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/remote"
)

// Stat describes a file or a folder.
func (s *Store) Stat(ctx context.Context, name string) (storage.Info, error) {
	client, err := s.begin(ctx, name)
	if err == nil && name == "" {
		err = storage.CheckName(name)
	}
	if err != nil {
		return storage.Info{}, s.fail("stat", name, err)
	}
	info, err := client.Stat(s.path(name))
	if err != nil {
		return storage.Info{}, s.fail("stat", name, err)
	}
	return describe(name, info), nil
}

// Open opens the file. A folder is no object: storage.ErrNotExist.
func (s *Store) Open(ctx context.Context, name string) (storage.Object, error) {
	info, err := s.Stat(ctx, name)
	if err == nil && info.Dir {
		err = fmt.Errorf("%w: it is a folder", storage.ErrNotExist)
	}
	if err != nil {
		var told *storage.Error
		if errors.As(err, &told) {
			err = told.Err
		}
		return nil, s.fail("open", name, err)
	}
	o := &object{store: s, info: info}
	o.Object = remote.Object{Bytes: info.Size, Tag: info.ETag, Get: o.get, Fail: func(err error) error { return s.fail("read", name, err) }}
	return o, nil
}

// object keeps the client's readers, each of which is for one goroutine at a time, for the next read.
type object struct {
	remote.Object
	store *Store
	info  storage.Info

	mu     sync.Mutex
	idle   []*hdfs.FileReader
	closed bool
}

// mostIdle is how many readers an object keeps; each holds a connection to a DataNode.
const mostIdle = 4

// Close closes the idle readers.
func (o *object) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	var failed []error
	for _, r := range o.idle {
		failed = append(failed, r.Close())
	}
	o.idle = nil
	return errors.Join(failed...)
}

// get fills p from offset off.
func (o *object) get(_ context.Context, p []byte, off int64) (int, error) {
	reader, fresh, err := o.reader()
	if err != nil {
		return 0, err
	}
	n, err := reader.ReadAt(p, off)
	if n == len(p) {
		err = nil
	}
	// A reader asks for the file's blocks, by its path, with its first read. They are those of the file that was opened
	// when the path leads to that file before and after.
	if err != nil || fresh {
		if changed := o.check(); changed != nil {
			_ = reader.Close() // it read something else
			return 0, changed
		}
	}
	if err != nil {
		_ = reader.Close() // the error of the read says more
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, fmt.Errorf("%w: %w", storage.ErrTemporary, err)
	}
	if err := o.give(reader); err != nil {
		return 0, err
	}
	return n, nil
}

// check tells whether the path still leads to the file that was opened.
func (o *object) check() error {
	client, err := o.store.connect()
	if err != nil {
		return err
	}
	info, err := client.Stat(o.store.path(o.info.Name))
	if err != nil {
		return err
	}
	if now := etag(info); now != o.info.ETag {
		return fmt.Errorf("%w: its ETag was %s, now %s", storage.ErrChanged, o.info.ETag, now)
	}
	return nil
}

func (o *object) reader() (r *hdfs.FileReader, fresh bool, err error) {
	o.mu.Lock()
	if n := len(o.idle); n > 0 {
		r, o.idle = o.idle[n-1], o.idle[:n-1]
	}
	o.mu.Unlock()
	if r != nil {
		return r, false, nil
	}
	client, err := o.store.connect()
	if err != nil {
		return nil, false, err
	}
	r, err = client.Open(o.store.path(o.info.Name))
	if err != nil {
		return nil, false, err
	}
	if now := etag(r.Stat()); now != o.info.ETag {
		return nil, false, errors.Join(fmt.Errorf("%w: its ETag was %s, now %s", storage.ErrChanged, o.info.ETag, now), r.Close())
	}
	return r, true, nil
}

func (o *object) give(r *hdfs.FileReader) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || len(o.idle) >= mostIdle {
		return r.Close()
	}
	o.idle = append(o.idle, r)
	return nil
}

// List asks for one folder after the other. Hidden files of Puts under way are left out.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		if _, err := s.list(ctx, prefix, opts.Recursive, func(i storage.Info) bool { return yield(i, nil) }); err != nil {
			yield(storage.Info{}, s.fail("list", prefix, err))
		}
	}
}

// list reports whether the consumer wants more.
func (s *Store) list(ctx context.Context, folder string, recursive bool, yield func(storage.Info) bool) (bool, error) {
	client, err := s.begin(ctx, folder)
	if err != nil {
		return false, err
	}
	infos, err := client.ReadDir(s.path(folder))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(classify(err), storage.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		if info, statErr := client.Stat(s.path(folder)); statErr == nil && !info.IsDir() {
			return true, nil // below a file there is nothing
		}
		return false, err
	}
	var children []storage.Info
	for _, info := range infos {
		name := storage.Join(folder, info.Name())
		if checkName(name) != nil || strings.HasPrefix(info.Name(), hidden) {
			continue
		}
		children = append(children, describe(name, info))
	}
	slices.SortFunc(children, func(a, b storage.Info) int {
		if recursive { // what is below a folder comes where the folder's name with its slash does
			return strings.Compare(sortKey(a), sortKey(b))
		}
		return storage.CompareInfo(a, b)
	})
	for _, child := range children {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		more := true
		if recursive && child.Dir {
			more, err = s.list(ctx, child.Name, true, yield)
		} else {
			more = yield(child)
		}
		if !more || err != nil {
			return false, err
		}
	}
	return true, nil
}

func sortKey(i storage.Info) string {
	if i.Dir {
		return i.Name + "/"
	}
	return i.Name
}
