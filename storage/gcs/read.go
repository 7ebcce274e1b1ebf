package gcs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/remote"
)

// resource is what the API tells of an object.
type resource struct {
	Name       string            `json:"name"`
	Size       int64             `json:"size,string"`
	Generation int64             `json:"generation,string"`
	Updated    time.Time         `json:"updated"`
	CRC32C     string            `json:"crc32c"`
	Metadata   map[string]string `json:"metadata"`
}

const resourceFields = "name,size,generation,updated,crc32c,metadata"

func (r *resource) info(name string) storage.Info {
	return storage.Info{
		Name: name, Size: r.Size, ETag: strconv.FormatInt(r.Generation, 10), Modified: r.Updated, Token: r.Metadata[tokenMetadata],
	}
}

// decode reads a JSON answer of bounded size and closes it.
func decode(got *http.Response, into any) error {
	defer got.Body.Close()
	if err := json.NewDecoder(io.LimitReader(got.Body, 64<<20)).Decode(into); err != nil {
		return fmt.Errorf("%w: the store's answer can't be read: %w", storage.ErrTemporary, err)
	}
	return nil
}

func decodeResource(got *http.Response) (*resource, error) {
	var r resource
	if err := decode(got, &r); err != nil {
		return nil, err
	}
	return &r, nil
}

// Stat asks for the object's metadata.
func (s *Store) Stat(ctx context.Context, name string) (storage.Info, error) {
	r, err := s.stat(ctx, name)
	if err != nil {
		return storage.Info{}, s.fail("stat", name, err)
	}
	return r.info(name), nil
}

func (s *Store) stat(ctx context.Context, name string) (*resource, error) {
	if err := storage.CheckName(name); err != nil {
		return nil, err
	}
	got, err := s.client.send(ctx, http.MethodGet, s.objectURL(name, url.Values{"fields": {resourceFields}}), nil, nil, http.StatusOK) //nolint:bodyclose // decodeResource closes it
	if err != nil {
		return nil, err
	}
	return decodeResource(got)
}

// Open asks for the object's first bytes, which also tells its size and generation.
func (s *Store) Open(ctx context.Context, name string) (storage.Object, error) {
	o, err := s.open(ctx, name)
	if err != nil {
		return nil, s.fail("open", name, err)
	}
	return o, nil
}

func (s *Store) open(ctx context.Context, name string) (*remote.Object, error) {
	if err := storage.CheckName(name); err != nil {
		return nil, err
	}
	got, err := s.media(ctx, name, nil, 0, headBytes)
	if status(err) == http.StatusRequestedRangeNotSatisfiable { // an empty object has no first byte
		r, err := s.stat(ctx, name)
		if err != nil {
			return nil, err
		}
		return s.object(name, r.Size, r.Generation, nil), nil
	}
	if err != nil {
		return nil, err
	}
	defer got.Body.Close()
	size := got.ContentLength
	if got.StatusCode == http.StatusPartialContent {
		if _, size, err = contentRange(got); err != nil {
			return nil, err
		}
	}
	if size < 0 {
		return nil, errors.New("the store tells no size")
	}
	generation, err := generationOf(got)
	if err != nil {
		return nil, err
	}
	head := make([]byte, min(size, headBytes))
	if _, err := io.ReadFull(got.Body, head); err != nil {
		return nil, fmt.Errorf("the first bytes: %w", remote.CutShort(ctx, err))
	}
	return s.object(name, size, generation, head), nil
}

// media asks for n bytes of an object's content from off. The content is that which was stored: a client that takes gzip
// gets objects with "Content-Encoding: gzip" as they are.
func (s *Store) media(ctx context.Context, name string, query url.Values, off, n int64) (*http.Response, error) {
	if query == nil {
		query = url.Values{}
	}
	query.Set("alt", "media")
	header := http.Header{
		"Range":           {fmt.Sprintf("bytes=%d-%d", off, off+n-1)},
		"Accept-Encoding": {"gzip"},
	}
	return s.client.send(ctx, http.MethodGet, s.objectURL(name, query), header, nil, http.StatusOK, http.StatusPartialContent)
}

// contentRange reads the 0 and the 1234 of "bytes 0-99/1234".
func contentRange(got *http.Response) (start, size int64, err error) {
	value := got.Header.Get("Content-Range")
	span, total, _ := strings.Cut(strings.TrimPrefix(value, "bytes "), "/")
	first, _, _ := strings.Cut(span, "-")
	start, startErr := strconv.ParseInt(first, 10, 64)
	size, sizeErr := strconv.ParseInt(total, 10, 64)
	if startErr != nil || sizeErr != nil || start < 0 || size < 0 {
		return 0, 0, fmt.Errorf("the store's Content-Range %q tells no range", value)
	}
	return start, size, nil
}

func generationOf(got *http.Response) (int64, error) {
	value := got.Header.Get("X-Goog-Generation")
	generation, err := strconv.ParseInt(value, 10, 64)
	if err != nil || generation <= 0 {
		return 0, fmt.Errorf("the store's X-Goog-Generation %q tells no generation", value)
	}
	return generation, nil
}

// object reads ranges of one generation.
func (s *Store) object(name string, size, generation int64, head []byte) *remote.Object {
	return &remote.Object{
		Bytes: size, Tag: strconv.FormatInt(generation, 10), Head: head, Fail: func(err error) error { return s.fail("read", name, err) },
		Get: func(ctx context.Context, p []byte, off int64) (int, error) {
			return s.get(ctx, name, generation, p, off)
		},
	}
}

func (s *Store) get(ctx context.Context, name string, was int64, p []byte, off int64) (int, error) {
	got, err := s.media(ctx, name, url.Values{"generation": {strconv.FormatInt(was, 10)}}, off, int64(len(p)))
	if status(err) == http.StatusNotFound {
		return 0, s.gone(ctx, name, was, err)
	}
	if err != nil {
		return 0, err
	}
	defer got.Body.Close()
	if generation, err := generationOf(got); err != nil || generation != was {
		return 0, fmt.Errorf("%w: its generation was %d, now %s", storage.ErrChanged, was, got.Header.Get("X-Goog-Generation"))
	}
	// A server that minds no Range sends the whole.
	if start, _, err := contentRange(got); err != nil || start != off {
		return 0, fmt.Errorf("asked for a range, the store answered Content-Range %q", got.Header.Get("Content-Range"))
	}
	n, err := io.ReadFull(got.Body, p)
	if err != nil {
		return n, remote.CutShort(ctx, err)
	}
	return n, nil
}

// gone tells an object that was replaced from one that was deleted: either way its generation is not there any more.
func (s *Store) gone(ctx context.Context, name string, was int64, err error) error {
	now, statErr := s.stat(ctx, name)
	switch {
	case status(statErr) == http.StatusNotFound:
		return err
	case statErr != nil:
		return statErr
	}
	return fmt.Errorf("%w: its generation was %d, now %d", storage.ErrChanged, was, now.Generation)
}

// List asks for pages of 1000. Keys that no name can be ("folder/" markers, "a//b", "../x") are left out: Hadoop's readers
// see no files there either. The children of a folder are held until all are known, because the service sorts a folder by
// its name with the slash.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		if err := s.list(ctx, prefix, opts, func(i storage.Info) bool { return yield(i, nil) }); err != nil {
			yield(storage.Info{}, s.fail("list", prefix, err))
		}
	}
}

// page is one answer of a list.
type page struct {
	NextPageToken string     `json:"nextPageToken"`
	Prefixes      []string   `json:"prefixes"`
	Items         []resource `json:"items"`
}

func (s *Store) list(ctx context.Context, prefix string, opts storage.ListOptions, yield func(storage.Info) bool) error {
	if err := storage.CheckPrefix(prefix); err != nil {
		return err
	}
	query := url.Values{"maxResults": {"1000"}, "fields": {"nextPageToken,prefixes,items(name,size,generation,updated)"}}
	if full := storage.Join(s.prefix, prefix); full != "" {
		query.Set("prefix", full+"/")
	}
	if !opts.Recursive {
		query.Set("delimiter", "/")
	}
	var held []storage.Info
	for more := true; more; {
		p, err := s.page(ctx, query)
		if err != nil {
			return err
		}
		infos := s.infos(p)
		if !opts.Recursive {
			held = append(held, infos...)
			infos = nil
		}
		for _, info := range infos {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !yield(info) {
				return nil
			}
		}
		query.Set("pageToken", p.NextPageToken)
		more = p.NextPageToken != ""
	}
	slices.SortFunc(held, storage.CompareInfo)
	for i, info := range held {
		if i > 0 && storage.CompareInfo(info, held[i-1]) == 0 {
			continue // some servers tell a folder with each page
		}
		if !yield(info) {
			return nil
		}
	}
	return nil
}

func (s *Store) page(ctx context.Context, query url.Values) (*page, error) {
	got, err := s.client.send(ctx, http.MethodGet, s.client.url("/storage/v1/b/"+url.PathEscape(s.bucket)+"/o", query), nil, nil, http.StatusOK)
	if status(err) == http.StatusNotFound { // not %w of a missing object: a wrong URL
		return nil, fmt.Errorf("there is no bucket %q: %s", s.bucket, err.Error())
	}
	if err != nil {
		return nil, err
	}
	var p page
	if err := decode(got, &p); err != nil {
		return nil, err
	}
	return &p, nil
}

func (s *Store) infos(p *page) []storage.Info {
	out := make([]storage.Info, 0, len(p.Items)+len(p.Prefixes))
	for i := range p.Items {
		if name, ok := s.name(p.Items[i].Name); ok {
			out = append(out, p.Items[i].info(name))
		}
	}
	for _, folder := range p.Prefixes {
		if name, ok := s.name(strings.TrimSuffix(folder, "/")); ok {
			out = append(out, storage.Info{Name: name, Dir: true})
		}
	}
	return out
}

// name turns a listed key into a name below the root; ok is false where it can't be one.
func (s *Store) name(key string) (name string, ok bool) {
	name = key
	if s.prefix != "" {
		if name, ok = strings.CutPrefix(key, s.prefix+"/"); !ok {
			return "", false
		}
	}
	return name, storage.CheckName(name) == nil
}
