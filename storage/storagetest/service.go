package storagetest

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/retry"
)

// Service is a server of an object service, before which RunService stands and breaks answers.
type Service struct {
	Endpoint string
	// Bucket makes an empty one and gives its URL.
	Bucket func(t *testing.T) string
	// Open opens a bucket through an endpoint.
	Open func(t *testing.T, url, endpoint string) storage.Store
	// Stored tells the answer that ends a put: of an object that goes in one request, and of one of LargeBytes, which goes in several.
	Stored     func(r *http.Response, large bool) bool
	LargeBytes int
}

// RunService tests what all object services must do when the network fails them.
func RunService(t *testing.T, s Service) {
	t.Run("lost answers", s.lostAnswers)
	t.Run("broken downloads", s.brokenDownloads)
	t.Run("changed", s.changed)
}

// The server stores the object, its answer is lost, the request is repeated and told that the object exists or that the
// upload is over: our Put succeeded all the same. A rival with the same bytes has lost.
func (s *Service) lostAnswers(t *testing.T) {
	for name, size := range map[string]int{"one request": 100, "several": s.LargeBytes} {
		for _, ifAbsent := range []bool{true, false} {
			var lost atomic.Int32
			endpoint := Proxy(t, s.Endpoint, func(r *http.Response) bool {
				return s.Stored(r, size == s.LargeBytes) && lost.Add(1) == 1
			})
			place := s.Bucket(t)
			content := strings.Repeat("x", size)
			info, err := s.Open(t, place, endpoint).Put(t.Context(), "x", strings.NewReader(content), storage.PutOptions{IfAbsent: ifAbsent})
			if err != nil || info.Size != int64(size) || lost.Load() < 1 {
				t.Errorf("%s, if absent %v: %+v, %v, %d answers were lost", name, ifAbsent, info, err, lost.Load())
			}
			direct := s.Open(t, place, s.Endpoint)
			if _, err := direct.Put(t.Context(), "x", strings.NewReader(content), storage.PutOptions{IfAbsent: true}); !errors.Is(err, storage.ErrExist) {
				t.Errorf("%s: a rival with the same bytes: %v, want ErrExist", name, err)
			}
		}
	}
}

// A connection that breaks within a body is a temporary failure, and the retry layer goes on where it broke.
func (s *Service) brokenDownloads(t *testing.T) {
	place := s.Bucket(t)
	content := strings.Repeat("0123456789", 20_000)
	Put(t, s.Open(t, place, s.Endpoint), "x", content)
	var n atomic.Int32
	broken := s.Open(t, place, Proxy(t, s.Endpoint, func(r *http.Response) bool {
		if r.Request.Method == http.MethodGet && n.Add(1)%2 == 0 {
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(io.LimitReader(r.Body, 50_000), iotest.ErrReader(io.ErrUnexpectedEOF)), r.Body}
		}
		return false
	}))
	if _, err := storage.ReadAll(t.Context(), broken, "x", 0); !errors.Is(err, storage.ErrTemporary) {
		t.Errorf("a broken download: %v, want ErrTemporary", err)
	}
	n.Store(0)
	data, err := storage.ReadAll(t.Context(), retry.New(broken, retry.Options{First: time.Millisecond}), "x", 0)
	if err != nil || string(data) != content {
		t.Errorf("with retries: %d bytes, %v", len(data), err)
	}
}

// An open object is one version: what replaces it is not mixed into it.
func (s *Service) changed(t *testing.T) {
	store := s.Open(t, s.Bucket(t), s.Endpoint)
	Put(t, store, "x", strings.Repeat("a", 100_000))
	o, err := store.Open(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{strings.Repeat("b", 100_000), "short"} {
		Put(t, store, "x", content)
		if _, err := o.ReadAt(t.Context(), make([]byte, 10), 90_000); !errors.Is(err, storage.ErrChanged) {
			t.Errorf("read of an object that %d bytes have replaced: %v, want ErrChanged", len(content), err)
		}
	}
	if err := store.Delete(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := o.ReadAt(t.Context(), make([]byte, 10), 90_000); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("read of a deleted object: %v, want ErrNotExist", err)
	}
}

// Put stores a text, or ends the test.
func Put(t testing.TB, s storage.Store, name, content string) {
	t.Helper()
	if _, err := s.Put(t.Context(), name, strings.NewReader(content), storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Proxy stands between client and server and, for answers that spoil chooses, lets the server do its work and then breaks the
// connection, so that the answer is lost. It keeps the Host header, which may be signed, or name where an upload goes on. It
// gives the endpoint for clients.
func Proxy(t testing.TB, endpoint string, spoil func(*http.Response) bool) string {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
			r.Out.Host = r.In.Host
		},
		ModifyResponse: func(r *http.Response) error {
			if spoil(r) {
				return errors.New("spoilt")
			}
			return nil
		},
		ErrorLog: log.New(io.Discard, "", 0), // the broken bodies are on purpose
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = conn.Close()
			}
		},
	})
	t.Cleanup(front.Close)
	return front.URL + target.Path
}
