//go:build hdfs || interop

package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"github.com/sluicelake/sluice/storage"
)

// hidden begins the names of files that are being written.
const hidden = "._sluice_put_"

// Put writes a hidden file and renames it; see the package comment.
func (s *Store) Put(ctx context.Context, name string, body io.Reader, opts storage.PutOptions) (storage.Info, error) {
	info, err := s.put(ctx, name, body, opts)
	if err != nil {
		return storage.Info{}, s.fail("put", name, err)
	}
	return info, nil
}

func (s *Store) put(ctx context.Context, name string, body io.Reader, opts storage.PutOptions) (storage.Info, error) {
	if err := checkName(name); err != nil {
		return storage.Info{}, err
	}
	client, err := s.begin(ctx, name)
	if err != nil {
		return storage.Info{}, err
	}
	target := s.path(name)
	if opts.IfAbsent { // before the body is read for nothing; what counts is the claim
		if _, err := client.Stat(target); err == nil {
			return storage.Info{}, storage.ErrExist
		}
	}
	if err := client.MkdirAll(path.Dir(target), 0o755); err != nil {
		return storage.Info{}, err
	}
	staged := path.Join(path.Dir(target), hidden+storage.NewToken())
	if err := write(ctx, client, staged, storage.CheckedBody(ctx, body, opts.Size)); err != nil {
		return storage.Info{}, errors.Join(err, remove(client, staged))
	}
	info, err := client.Stat(staged)
	if err == nil {
		err = publish(client, staged, target, opts.IfAbsent)
	}
	if err != nil {
		return storage.Info{}, errors.Join(err, remove(client, staged))
	}
	return describe(name, info), nil
}

func write(ctx context.Context, client *hdfs.Client, file string, body io.Reader) error {
	w, err := client.Create(file)
	if err != nil {
		return err
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{w}, body, make([]byte, 1<<20)); err != nil {
		return errors.Join(err, finish(ctx, w))
	}
	return finish(ctx, w)
}

// finish closes a file, which the NameNode refuses while too few DataNodes have told that they have its last block.
func finish(ctx context.Context, w *hdfs.FileWriter) error {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := w.Close()
		if !hdfs.IsErrReplicating(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// publish makes a full file appear under its name.
func publish(client *hdfs.Client, staged, target string, ifAbsent bool) error {
	if !ifAbsent {
		return client.Rename(staged, target)
	}
	// Create of a file that exists fails in the NameNode, whoever made it.
	claim, err := client.CreateFile(target, 1, 1<<20, 0o644)
	if err != nil {
		return err
	}
	if err := claim.Close(); err != nil {
		return errors.Join(err, remove(client, target))
	}
	if err := client.Rename(staged, target); err != nil {
		return errors.Join(err, remove(client, target))
	}
	return nil
}

func remove(client *hdfs.Client, file string) error {
	if err := client.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("a file is left behind: %w", err)
	}
	return nil
}

// Delete removes a file or an empty folder.
func (s *Store) Delete(ctx context.Context, name string) error {
	err := checkName(name)
	var client *hdfs.Client
	if err == nil {
		client, err = s.begin(ctx, name)
	}
	if err == nil {
		err = client.Remove(s.path(name))
	}
	if err == nil || errors.Is(classify(err), storage.ErrNotExist) {
		return nil
	}
	return s.fail("delete", name, err)
}

// Copy reads and writes: HDFS has no copy of its own.
func (s *Store) Copy(ctx context.Context, from, to string) error {
	if err := checkName(to); err != nil {
		return s.fail("copy", to, err)
	}
	o, err := s.Open(ctx, from)
	if err != nil {
		return err
	}
	if from == to {
		return o.Close()
	}
	_, err = s.Put(ctx, to, io.NewSectionReader(storage.ReaderAt(ctx, o), 0, o.Size()), storage.PutOptions{Size: o.Size()})
	return errors.Join(err, o.Close())
}
