package storage

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
)

// CheckedBody is body as a back end must read it: it fails when ctx ends, and, with a size above 0, when the body does not
// hold exactly size bytes. Every back end stores nothing when a read fails, so a cut body never becomes an object.
// A nil body is empty.
func CheckedBody(ctx context.Context, body io.Reader, size int64) io.Reader {
	if body == nil {
		body = bytes.NewReader(nil)
	}
	return &checkedBody{ctx: ctx, body: body, size: size}
}

type checkedBody struct {
	ctx  context.Context
	body io.Reader
	size int64
	read int64
}

func (b *checkedBody) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := b.body.Read(p)
	b.read += int64(n)
	switch {
	case b.size <= 0:
	case b.read > b.size:
		return n, fmt.Errorf("the body is longer than its stated %d bytes", b.size)
	case err == io.EOF && b.read < b.size:
		return n, fmt.Errorf("the body ended after %d of %d bytes: %w", b.read, b.size, io.ErrUnexpectedEOF)
	}
	if err != nil && err != io.EOF {
		err = fmt.Errorf("reading the body: %w", err)
	}
	return n, err
}

// NewToken makes a PutOptions.Token.
func NewToken() string { return rand.Text() }

// ReadAll returns the whole object. It refuses, before it reads, an object larger than maxBytes, unless maxBytes is 0 or less.
func ReadAll(ctx context.Context, s Store, name string, maxBytes int64) ([]byte, error) {
	o, err := s.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	data, err := readObject(ctx, o, maxBytes)
	if closeErr := o.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		var already *Error
		if errors.As(err, &already) {
			return nil, err
		}
		return nil, &Error{Op: "read", URL: s.URL(), Name: name, Err: err}
	}
	return data, nil
}

func readObject(ctx context.Context, o Object, maxBytes int64) ([]byte, error) {
	size := o.Size()
	if maxBytes > 0 && size > maxBytes {
		return nil, fmt.Errorf("the object has %d bytes, at most %d are read here", size, maxBytes)
	}
	if size < 0 || size > math.MaxInt {
		return nil, fmt.Errorf("impossible object size %d", size)
	}
	data := make([]byte, size)
	if size == 0 {
		return data, nil
	}
	n, err := o.ReadAt(ctx, data, 0)
	if n == len(data) {
		return data, nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return nil, fmt.Errorf("%d of %d bytes: %w", n, size, err)
}

// Create starts a Put whose body is what the caller writes. The object appears, whole, when Close returns nil. Always
// defer Abort, which does nothing after Close:
//
//	w := storage.Create(ctx, store, name, storage.PutOptions{})
//	defer w.Abort()
//	... write to w ...
//	err := w.Close()
func Create(ctx context.Context, s Store, name string, opts PutOptions) *Writer {
	r, pw := io.Pipe()
	w := &Writer{pipe: pw, done: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() { _ = pw.CloseWithError(ctx.Err()) })
	go func() {
		defer close(w.done)
		defer stop()
		w.info, w.err = s.Put(ctx, name, r, opts)
		// A writer must not hang on a Put that has given up; after a success nobody writes any more.
		err := w.err
		if err == nil {
			err = io.ErrClosedPipe
		}
		_ = r.CloseWithError(err)
	}()
	return w
}

// Writer is an object in the making; see Create. It is for one goroutine.
type Writer struct {
	pipe *io.PipeWriter
	done chan struct{}
	info Info
	err  error
	once sync.Once
}

// errAborted is what a back end reads when the caller gives up.
var errAborted = errors.New("the writer was aborted")

// Write hands p to the store. It reports the error of the store when the Put has failed.
func (w *Writer) Write(p []byte) (int, error) { return w.pipe.Write(p) }

// Close ends the body, waits until the object is stored, and reports whether it is. Further calls repeat the answer.
func (w *Writer) Close() error {
	w.once.Do(func() { _ = w.pipe.Close() })
	<-w.done
	return w.err
}

// Abort gives up: unless Close was called before, the object does not appear. It waits until the store has let go.
func (w *Writer) Abort() {
	w.once.Do(func() { _ = w.pipe.CloseWithError(errAborted) })
	<-w.done
}

// Info describes the stored object, after Close has returned nil.
func (w *Writer) Info() Info { return w.info }
