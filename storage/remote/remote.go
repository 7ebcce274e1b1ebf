// Package remote is what the stores of object services share: an object whose ranges are requests of their own, and an error that
// is an answer of the service.
package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluicelake/sluice/storage"
)

// Object reads ranges, each by a request of its own that holds only for the version that was opened.
type Object struct {
	Bytes int64  // of the whole
	Tag   string // of the version
	Head  []byte // the first bytes, which came with the answer that told the rest
	// Get fills p from offset off. Both lie within the object.
	Get func(ctx context.Context, p []byte, off int64) (int, error)
	// Fail says of an error what was being read.
	Fail func(err error) error
}

// Size in bytes.
func (o *Object) Size() int64 { return o.Bytes }

// ETag of the version.
func (o *Object) ETag() string { return o.Tag }

// Close has nothing to give back.
func (o *Object) Close() error { return nil }

// ReadAt reads like io.ReaderAt.
func (o *Object) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := o.readAt(ctx, p, off)
	if err != nil && err != io.EOF {
		err = o.Fail(fmt.Errorf("%d bytes at offset %d: %w", len(p), off, err))
	}
	return n, err
}

func (o *Object) readAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	var atEnd error
	switch {
	case off < 0:
		return 0, errors.New("negative offset")
	case len(p) == 0:
		return 0, nil
	case off >= o.Bytes:
		return 0, io.EOF
	case int64(len(p)) > o.Bytes-off:
		p, atEnd = p[:o.Bytes-off], io.EOF
	}
	if end := off + int64(len(p)); end <= int64(len(o.Head)) {
		return copy(p, o.Head[off:end]), atEnd
	}
	n, err := o.Get(ctx, p, off)
	if err == nil {
		err = atEnd
	}
	return n, err
}

// TotalSize reads the 1234 of "bytes 0-99/1234".
func TotalSize(contentRange string) (int64, error) {
	_, total, _ := strings.Cut(contentRange, "/")
	size, err := strconv.ParseInt(total, 10, 64)
	if err != nil || size < 0 {
		return 0, fmt.Errorf("the store's Content-Range %q tells no size", contentRange)
	}
	return size, nil
}

// First reads the answer to a request for the first bytes of an object, at most so many: the size of the whole, which a Content-Range
// tells where there is one, and the bytes.
func First(ctx context.Context, body io.Reader, length int64, contentRange *string, most int64) (size int64, head []byte, err error) {
	size = length
	if contentRange != nil {
		if size, err = TotalSize(*contentRange); err != nil {
			return 0, nil, err
		}
	}
	if size < 0 {
		return 0, nil, errors.New("the store tells no size")
	}
	head = make([]byte, min(size, most))
	if _, err := io.ReadFull(body, head); err != nil {
		return 0, nil, fmt.Errorf("the first bytes: %w", CutShort(ctx, err))
	}
	return size, head, nil
}

// CutShort marks a body that ended early: the connection broke, and a new request may do better.
func CutShort(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: %w", storage.ErrTemporary, err)
}

// Answer is an error of a service in few words, with the kind that callers ask for. The client's own error, whose text may be a
// page, stays reachable by errors.As.
type Answer struct {
	Text  string
	Kind  error // nil when it is none of ours
	Cause error
	Wait  time.Duration // that the service asks for; see Wait
}

func (a *Answer) Error() string {
	if a.Kind == nil {
		return a.Text
	}
	return a.Kind.Error() + ": " + a.Text
}

// Unwrap gives the kind and the cause.
func (a *Answer) Unwrap() []error {
	if a.Kind == nil {
		return []error{a.Cause}
	}
	return []error{a.Kind, a.Cause}
}

// RetryAfter is how long the service asks to wait, or 0.
func (a *Answer) RetryAfter() time.Duration { return a.Wait }

// longestWait bounds what a service can ask for.
const longestWait = 3600

// Wait reads the header Retry-After, which counts seconds; nil is no answer.
func Wait(r *http.Response) time.Duration {
	if r == nil {
		return 0
	}
	seconds, err := strconv.Atoi(r.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, longestWait)) * time.Second
}
