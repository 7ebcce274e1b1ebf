package gcs

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"

	"github.com/sluicelake/sluice/storage"
)

// Put stores the body; see the package comment. It reads the body once.
func (s *Store) Put(ctx context.Context, name string, body io.Reader, opts storage.PutOptions) (storage.Info, error) {
	if opts.Token == "" {
		opts.Token = storage.NewToken()
	}
	info, err := s.put(ctx, name, body, opts)
	if err != nil {
		info, err = s.settle(ctx, name, opts, err)
	}
	if err != nil {
		return storage.Info{}, s.fail("put", name, err)
	}
	return info, nil
}

func (s *Store) put(ctx context.Context, name string, body io.Reader, opts storage.PutOptions) (storage.Info, error) {
	if err := storage.CheckName(name); err != nil {
		return storage.Info{}, err
	}
	body = storage.CheckedBody(ctx, body, opts.Size)
	first, last, err := s.first(body, opts.Size)
	if err != nil {
		return storage.Info{}, err
	}
	var stored *resource
	sum := crc32.Checksum(first, castagnoli)
	if last {
		stored, err = s.putWhole(ctx, name, first, sum, opts)
	} else {
		stored, sum, err = s.putChunks(ctx, name, first, body, opts)
	}
	if err != nil {
		return storage.Info{}, err
	}
	if stored.CRC32C != "" && stored.CRC32C != encodeSum(sum) {
		// Nobody may read what is not what was sent; that generation alone is removed.
		_ = s.delete(context.WithoutCancel(ctx), name, url.Values{"generation": {strconv.FormatInt(stored.Generation, 10)}})
		return storage.Info{}, fmt.Errorf("%w: the stored object's CRC32C is %s, that of the body %s", storage.ErrTemporary, stored.CRC32C, encodeSum(sum))
	}
	return stored.info(name), nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeSum writes a checksum as the API does: base64 of four bytes, the highest first.
func encodeSum(sum uint32) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

// first reads up to one chunk, in memory no larger than a short body, and tells whether that was all.
func (s *Store) first(body io.Reader, size int64) (chunk []byte, last bool, err error) {
	var held bytes.Buffer
	if size > 0 {
		held.Grow(int(min(size, s.chunk)) + bytes.MinRead)
	}
	n, err := held.ReadFrom(io.LimitReader(body, s.chunk))
	if err != nil {
		return nil, false, err
	}
	return held.Bytes(), n < s.chunk, nil
}

// attributes of the object to be.
func attributes(key string, opts storage.PutOptions) map[string]any {
	return map[string]any{
		"name": key, "contentType": "application/octet-stream", "metadata": map[string]string{tokenMetadata: opts.Token},
	}
}

func (s *Store) uploadURL(kind string, opts storage.PutOptions) string {
	query := url.Values{"uploadType": {kind}, "fields": {resourceFields}}
	if opts.IfAbsent {
		query.Set("ifGenerationMatch", "0")
	}
	return s.client.url("/upload/storage/v1/b/"+url.PathEscape(s.bucket)+"/o", query)
}

// putWhole sends attributes and content in one request.
func (s *Store) putWhole(ctx context.Context, name string, content []byte, sum uint32, opts storage.PutOptions) (*resource, error) {
	attrs := attributes(storage.Join(s.prefix, name), opts)
	attrs["crc32c"] = encodeSum(sum)
	text, err := json.Marshal(attrs)
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	body.Grow(len(content) + len(text) + 1024)
	parts := multipart.NewWriter(&body)
	for _, part := range []struct {
		kind string
		data []byte
	}{{"application/json; charset=UTF-8", text}, {"application/octet-stream", content}} {
		w, err := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {part.kind}})
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(part.data); err != nil {
			return nil, err
		}
	}
	if err := parts.Close(); err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"multipart/related; boundary=" + parts.Boundary()}}
	got, err := s.client.again(ctx, func() (*http.Response, error) { //nolint:bodyclose // decodeResource closes it
		return s.client.send(ctx, http.MethodPost, s.uploadURL("multipart", opts), header, body.Bytes(), http.StatusOK)
	})
	if err != nil {
		return nil, missingBucket(s.bucket, err)
	}
	return decodeResource(got)
}

// missingBucket: an upload can miss nothing else.
func missingBucket(bucket string, err error) error {
	if status(err) == http.StatusNotFound {
		return fmt.Errorf("there is no bucket %q: %s", bucket, err.Error())
	}
	return err
}

// putChunks sends a body longer than its first chunk. While one chunk is on its way the next one is read.
func (s *Store) putChunks(ctx context.Context, name string, first []byte, body io.Reader, opts storage.PutOptions) (*resource, uint32, error) {
	up, err := s.begin(ctx, name, opts)
	if err != nil {
		return nil, 0, err
	}
	stored, sum, err := up.run(ctx, first, body)
	if err != nil {
		up.cancel(ctx)
		return nil, 0, err
	}
	return stored, sum, nil
}

// upload is a resumable upload.
type upload struct {
	store *Store
	url   string // of the session; it is a secret
	sent  int64
}

func (s *Store) begin(ctx context.Context, name string, opts storage.PutOptions) (*upload, error) {
	text, err := json.Marshal(attributes(storage.Join(s.prefix, name), opts))
	if err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {"application/json; charset=UTF-8"}, "X-Upload-Content-Type": {"application/octet-stream"}}
	got, err := s.client.again(ctx, func() (*http.Response, error) {
		return s.client.send(ctx, http.MethodPost, s.uploadURL("resumable", opts), header, text, http.StatusOK, http.StatusCreated)
	})
	if err != nil {
		return nil, missingBucket(s.bucket, err)
	}
	_ = got.Body.Close() // it holds nothing that we need
	session := got.Header.Get("Location")
	if session == "" {
		return nil, fmt.Errorf("%w: the store named no place for the upload", storage.ErrTemporary)
	}
	return &upload{store: s, url: session}, nil
}

func (u *upload) run(ctx context.Context, chunk []byte, body io.Reader) (*resource, uint32, error) {
	sum := crc32.Checksum(chunk, castagnoli)
	var free [][]byte
	var flight chan error
	var flying []byte
	landed := func() error {
		if flight == nil {
			return nil
		}
		err := <-flight
		flight, free = nil, append(free, flying)
		return err
	}
	for {
		var next []byte
		if len(free) > 0 {
			next, free = free[0], free[1:]
		} else {
			next = make([]byte, u.store.chunk)
		}
		n, readErr := io.ReadFull(body, next[:u.store.chunk])
		if readErr == io.EOF || readErr == io.ErrUnexpectedEOF { // as it stands: an error of the body comes wrapped
			readErr = nil
		}
		if err := errors.Join(landed(), readErr); err != nil {
			return nil, 0, err
		}
		if n == 0 {
			stored, err := u.send(ctx, chunk, true)
			return stored, sum, err
		}
		sum = crc32.Update(sum, castagnoli, next[:n])
		flight, flying = make(chan error, 1), chunk
		go func(chunk []byte, done chan<- error) {
			_, err := u.send(ctx, chunk, false)
			done <- err
		}(chunk, flight)
		chunk = next[:n]
	}
}

// send sends one chunk and returns the object after the last. When the connection breaks it asks how much arrived and goes
// on from there; an upload that turns out to be complete is done.
func (u *upload) send(ctx context.Context, chunk []byte, last bool) (*resource, error) {
	start, end := u.sent, u.sent+int64(len(chunk))
	total := "*"
	if last {
		total = strconv.FormatInt(end, 10)
	}
	for failed := 0; ; {
		stored, err := u.request(ctx, u.sent, chunk[u.sent-start:], total)
		if err != nil && errors.Is(classify(err), storage.ErrTemporary) && ctx.Err() == nil && failed < 4 {
			failed++
			if err := pause(ctx, failed, err); err != nil {
				return nil, err
			}
			if stored, err = u.request(ctx, end, nil, total); err != nil && errors.Is(classify(err), storage.ErrTemporary) {
				continue
			}
		}
		switch {
		case err != nil:
			return nil, err
		case stored != nil && last:
			return stored, nil
		case stored != nil:
			return nil, errors.New("the store ended the upload before its last chunk")
		case u.sent < start || u.sent > end:
			return nil, fmt.Errorf("the store holds %d bytes of the upload, %d to %d were sent", u.sent, start, end)
		case u.sent == end && !last:
			return nil, nil
		}
		if failed++; failed > 8 {
			return nil, fmt.Errorf("%w: the upload does not get beyond %d bytes", storage.ErrTemporary, u.sent)
		}
	}
}

// request sends bytes of the upload from an offset or, with none, asks for its state. It notes how many bytes the store
// holds, and returns the object when that is complete.
func (u *upload) request(ctx context.Context, off int64, data []byte, total string) (*resource, error) {
	span := "*"
	if len(data) > 0 {
		span = fmt.Sprintf("%d-%d", off, off+int64(len(data))-1)
	}
	header := http.Header{"Content-Range": {"bytes " + span + "/" + total}}
	got, err := u.store.client.send(ctx, http.MethodPut, u.url, header, data, http.StatusOK, http.StatusCreated, http.StatusPermanentRedirect)
	if err != nil {
		return nil, err
	}
	if got.StatusCode != http.StatusPermanentRedirect {
		return decodeResource(got)
	}
	_ = got.Body.Close() // empty
	u.sent = 0
	if held := got.Header.Get("Range"); held != "" { // "bytes=0-42"; absent when nothing has arrived
		_, lastByte, _ := strings.Cut(held, "-")
		n, err := strconv.ParseInt(lastByte, 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("the store's Range %q tells no range", held)
		}
		u.sent = n + 1
	}
	return nil, nil
}

// cancel lets the store forget what it holds, also when ctx has ended. That it fails changes nothing for the caller: the
// object is not there, and the store forgets the upload after a week.
func (u *upload) cancel(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer stop()
	const clientClosed = 499 // the documented answer
	got, err := u.store.client.send(ctx, http.MethodDelete, u.url, nil, nil, clientClosed, http.StatusNoContent, http.StatusOK)
	if err == nil {
		_ = got.Body.Close()
	}
}

// settle finds out what a failed Put has really done, where the answer leaves that open.
func (s *Store) settle(ctx context.Context, name string, opts storage.PutOptions, err error) (storage.Info, error) {
	exists := opts.IfAbsent && status(err) == http.StatusPreconditionFailed
	forgotten := status(err) == http.StatusNotFound || status(err) == http.StatusGone // an upload that is over
	if !exists && !forgotten {
		return storage.Info{}, err
	}
	r, statErr := s.stat(ctx, name)
	switch {
	case statErr == nil && r.Metadata[tokenMetadata] == opts.Token:
		return r.info(name), nil
	case statErr == nil && opts.IfAbsent:
		return storage.Info{}, storage.ErrExist
	case status(statErr) == http.StatusNotFound || statErr == nil:
		// Either another object was there and was deleted since, or the upload came to nothing.
		return storage.Info{}, fmt.Errorf("%w: the object is not there: %s", storage.ErrTemporary, err.Error())
	}
	return storage.Info{}, fmt.Errorf("%w: the object may have been stored or not (%w), and it can't be asked for: %w",
		storage.ErrTemporary, err, statErr)
}

// Delete removes the object. In a bucket with versions it becomes an old version.
func (s *Store) Delete(ctx context.Context, name string) error {
	if err := s.delete(ctx, name, nil); err != nil {
		return s.fail("delete", name, err)
	}
	return nil
}

func (s *Store) delete(ctx context.Context, name string, query url.Values) error {
	if err := storage.CheckName(name); err != nil {
		return err
	}
	got, err := s.client.send(ctx, http.MethodDelete, s.objectURL(name, query), nil, nil, http.StatusOK, http.StatusNoContent)
	if err == nil {
		return got.Body.Close()
	}
	if errors.Is(classify(err), storage.ErrNotExist) {
		return nil
	}
	return err
}

// Copy lets the store copy.
func (s *Store) Copy(ctx context.Context, from, to string) error {
	_, err := s.copy(ctx, s, from, to)
	return err
}

// CopyFrom copies an object of another bucket, or another folder of this one, without its bytes passing through here. The
// credentials of this store must be allowed to read there. It answers errors.ErrUnsupported for stores of another service.
func (s *Store) CopyFrom(ctx context.Context, source storage.Store, from, to string) (storage.Info, error) {
	other, ok := source.(*Store)
	if !ok || other.client.base != s.client.base {
		return storage.Info{}, errors.ErrUnsupported
	}
	return s.copy(ctx, other, from, to)
}

func (s *Store) copy(ctx context.Context, source *Store, from, to string) (storage.Info, error) {
	if err := storage.CheckName(to); err != nil {
		return storage.Info{}, s.fail("copy", to, err)
	}
	r, err := source.stat(ctx, from)
	if err != nil {
		return storage.Info{}, source.fail("copy", from, err)
	}
	fromKey, toKey := storage.Join(source.prefix, from), storage.Join(s.prefix, to)
	if source.bucket == s.bucket && fromKey == toKey {
		return r.info(to), nil
	}
	stored, err := s.rewrite(ctx, objectPath(source.bucket, fromKey), r.Generation, objectPath(s.bucket, toKey))
	if status(err) == http.StatusNotFound {
		err = fmt.Errorf("%w: %s", storage.ErrChanged, err.Error())
	}
	if err != nil {
		return storage.Info{}, s.fail("copy", to, fmt.Errorf("from %q: %w", storage.Join(source.URL(), from), err))
	}
	return stored.info(to), nil
}

// rewrite asks until the copy is complete: the service copies large objects between places or classes in pieces.
func (s *Store) rewrite(ctx context.Context, from string, generation int64, to string) (*resource, error) {
	query := url.Values{
		"sourceGeneration": {strconv.FormatInt(generation, 10)}, "fields": {"done,rewriteToken,resource(" + resourceFields + ")"},
	}
	for {
		got, err := s.client.again(ctx, func() (*http.Response, error) {
			return s.client.send(ctx, http.MethodPost, s.client.url("/storage/v1"+from+"/rewriteTo"+to, query), nil, nil, http.StatusOK)
		})
		if err != nil {
			return nil, err
		}
		var state struct {
			Done         bool     `json:"done"`
			RewriteToken string   `json:"rewriteToken"`
			Resource     resource `json:"resource"`
		}
		if err := decode(got, &state); err != nil {
			return nil, err
		}
		if state.Done {
			return &state.Resource, nil
		}
		if state.RewriteToken == "" {
			return nil, errors.New("the store neither ended the copy nor said how to go on")
		}
		query.Set("rewriteToken", state.RewriteToken)
	}
}
