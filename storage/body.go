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
// A nil body is empty. The body of PutFunc stays an io.WriterTo.
func CheckedBody(ctx context.Context, body io.Reader, size int64) io.Reader {
	if body == nil {
		body = bytes.NewReader(nil)
	}
	checked := &checkedBody{ctx: ctx, body: body, size: size}
	if written, ok := body.(*writtenBody); ok { // others would not look at ctx between their reads
		return &checkedWriterTo{checked, written}
	}
	return checked
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
	if wrong := b.check(err == io.EOF); wrong != nil {
		return n, wrong
	}
	if err != nil && err != io.EOF {
		err = fmt.Errorf("reading the body: %w", err)
	}
	return n, err
}

// check compares what was read, at the end or before it, with the stated size.
func (b *checkedBody) check(end bool) error {
	switch {
	case b.size <= 0:
	case b.read > b.size:
		return fmt.Errorf("the body is longer than its stated %d bytes", b.size)
	case end && b.read < b.size:
		return fmt.Errorf("the body ended after %d of %d bytes: %w", b.read, b.size, io.ErrUnexpectedEOF)
	}
	return nil
}

// checkedWriterTo is a checkedBody of PutFunc.
type checkedWriterTo struct {
	*checkedBody
	body *writtenBody
}

func (b *checkedWriterTo) WriteTo(w io.Writer) (int64, error) {
	before := b.read
	_, err := b.body.WriteTo(checkedWriter{b.checkedBody, w})
	if err == nil {
		err = b.ctx.Err() // an empty body writes nothing
	}
	if err == nil {
		err = b.check(true)
	}
	return b.read - before, err
}

type checkedWriter struct {
	*checkedBody
	w io.Writer
}

func (c checkedWriter) Write(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.w.Write(p)
	if c.read += int64(n); err == nil {
		err = c.check(false)
	}
	return n, err
}

func (c checkedWriter) RangesOf(from Object) func(context.Context, Range) error {
	move := RangesOf(c.w, from)
	if move == nil {
		return nil
	}
	return func(ctx context.Context, r Range) error {
		if err := move(ctx, r); err != nil {
			return err
		}
		c.read += r.Len
		return c.check(false)
	}
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

// PutFunc stores what write writes. It is for a caller that can write the whole object at once: a back end that lets a body
// write itself, as a file system does, gets the bytes as they are written, where those of Create pass through a pipe and a
// buffer. write is called once at most and has ended when PutFunc returns; it must end when ctx does. Where it fails nothing is
// stored, and its error is returned as it is, unless the store was what failed. The writer may be able to take ranges of other
// objects; see RangesOf.
func PutFunc(ctx context.Context, s Store, name string, opts PutOptions, write func(io.Writer) error) (Info, error) {
	b := &writtenBody{write: write}
	info, err := s.Put(ctx, name, b, opts)
	b.stop()
	switch {
	case b.err != nil && (err == nil || !b.refused):
		return Info{}, b.err
	case err == nil && !b.begun:
		return Info{}, &Error{Op: "put", URL: s.URL(), Name: name, Err: io.ErrShortWrite}
	}
	return info, err
}

// writtenBody is a body that a function writes: straight to whom asks it to (io.WriterTo), else through a pipe.
type writtenBody struct {
	write   func(io.Writer) error
	begun   bool
	refused bool  // a write of the function failed
	err     error // of the function
	pipe    *io.PipeReader
	done    chan struct{} // of the pipe
}

func (b *writtenBody) WriteTo(w io.Writer) (int64, error) {
	if b.begun {
		return io.Copy(w, struct{ io.Reader }{b}) // what is left
	}
	b.begun = true
	to := &bodyWriter{w: w}
	b.err = b.write(to)
	b.refused = to.refused
	return to.n, b.err
}

func (b *writtenBody) Read(p []byte) (int, error) {
	if !b.begun {
		b.done = make(chan struct{})
		r, w := io.Pipe()
		b.pipe, b.begun = r, true
		go func() {
			defer close(b.done)
			to := &bodyWriter{w: w}
			b.err = b.write(to)
			b.refused = to.refused
			_ = w.CloseWithError(b.err)
		}()
	}
	if b.pipe == nil {
		return 0, io.EOF // it wrote itself
	}
	return b.pipe.Read(p)
}

// stop ends the function if it is still under way, and waits for it.
func (b *writtenBody) stop() {
	if b.pipe != nil {
		_ = b.pipe.CloseWithError(io.ErrClosedPipe)
		<-b.done
	}
}

// bodyWriter knows how much was written, and whether that failed.
type bodyWriter struct {
	w       io.Writer
	n       int64
	refused bool
}

func (w *bodyWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	w.n += int64(n)
	w.refused = w.refused || err != nil
	return n, err
}

func (w *bodyWriter) RangesOf(from Object) func(context.Context, Range) error {
	move := RangesOf(w.w, from)
	if move == nil {
		return nil
	}
	return func(ctx context.Context, r Range) error {
		err := move(ctx, r)
		if err == nil {
			w.n += r.Len
		}
		w.refused = w.refused || err != nil
		return err
	}
}
