package gcs_test

import (
	"bytes"
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
	"github.com/sluicelake/sluice/storage/gcs"
	"github.com/sluicelake/sluice/storage/gcs/gcstest"
	"github.com/sluicelake/sluice/storage/retry"
	"github.com/sluicelake/sluice/storage/storagetest"
)

func TestConformance(t *testing.T) {
	server := gcstest.Start(t)
	storagetest.Run(t, func(t *testing.T) storage.Store { return server.Store(t) })
}

func TestCopyFrom(t *testing.T) {
	server := gcstest.Start(t)
	storagetest.RunCopyFrom(t, func(t *testing.T) (storage.Store, storage.Store) { return server.Store(t), server.Store(t) })
}

func open(t testing.TB, url string, opts gcs.Options) *gcs.Store {
	t.Helper()
	s, err := gcs.New(t.Context(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t *testing.T, s storage.Store, name, content string) {
	t.Helper()
	if _, err := s.Put(t.Context(), name, strings.NewReader(content), storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
}

// proxy stands between client and server and, for requests that spoil chooses, lets the server do its work and then breaks
// the connection, so that the answer is lost.
func proxy(t *testing.T, endpoint string, spoil func(*http.Response) bool) string {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
			r.Out.Host = r.In.Host // the server names upload sessions by it
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
	return front.URL
}

// The server stores the object, its answer is lost, the request is repeated and told that the object exists or that the
// upload is over: our Put succeeded all the same. A rival with the same bytes has lost.
func TestLostAnswers(t *testing.T) {
	server := gcstest.Start(t)
	for name, c := range map[string]struct {
		size   int
		method string
	}{"one request": {100, http.MethodPost}, "in chunks": {9 << 20, http.MethodPut}} {
		for _, ifAbsent := range []bool{true, false} {
			var lost atomic.Int32
			opts := gcs.Options{Endpoint: proxy(t, server.Endpoint, func(r *http.Response) bool {
				final := r.Request.Method == c.method && !strings.HasSuffix(r.Request.Header.Get("Content-Range"), "/*")
				return final && r.StatusCode == http.StatusOK && lost.Add(1) == 1
			})}
			bucket := server.Bucket(t)
			content := strings.Repeat("x", c.size)
			info, err := open(t, "gs://"+bucket, opts).Put(t.Context(), "x", strings.NewReader(content), storage.PutOptions{IfAbsent: ifAbsent})
			if err != nil || info.Size != int64(c.size) || lost.Load() < 1 {
				t.Errorf("%s, if absent %v: %+v, %v, %d answers were lost", name, ifAbsent, info, err, lost.Load())
			}
			direct := open(t, "gs://"+bucket, server.Options())
			if _, err := direct.Put(t.Context(), "x", strings.NewReader(content), storage.PutOptions{IfAbsent: true}); !errors.Is(err, storage.ErrExist) {
				t.Errorf("%s: a rival with the same bytes: %v, want ErrExist", name, err)
			}
		}
	}
}

// A connection that breaks within a body is a temporary failure, and the retry layer goes on where it broke.
func TestBrokenDownloads(t *testing.T) {
	server := gcstest.Start(t)
	bucket := server.Bucket(t)
	content := strings.Repeat("0123456789", 20_000)
	put(t, open(t, "gs://"+bucket, server.Options()), "x", content)
	var n atomic.Int32
	opts := gcs.Options{Endpoint: proxy(t, server.Endpoint, func(r *http.Response) bool {
		if r.Request.Method == http.MethodGet && n.Add(1)%2 == 0 {
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(io.LimitReader(r.Body, 50_000), iotest.ErrReader(io.ErrUnexpectedEOF)), r.Body}
		}
		return false
	})}
	s := open(t, "gs://"+bucket, opts)
	if _, err := storage.ReadAll(t.Context(), s, "x", 0); !errors.Is(err, storage.ErrTemporary) {
		t.Errorf("a broken download: %v, want ErrTemporary", err)
	}
	n.Store(0)
	data, err := storage.ReadAll(t.Context(), retry.New(s, retry.Options{First: time.Millisecond}), "x", 0)
	if err != nil || string(data) != content {
		t.Errorf("with retries: %d bytes, %v", len(data), err)
	}
}

func TestChanged(t *testing.T) {
	s := gcstest.Start(t).Store(t)
	put(t, s, "x", strings.Repeat("a", 100_000))
	o, err := s.Open(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "x", strings.Repeat("b", 100_000))
	if _, err := o.ReadAt(t.Context(), make([]byte, 10), 90_000); !errors.Is(err, storage.ErrChanged) {
		t.Errorf("read of a replaced object: %v, want ErrChanged", err)
	}
	if err := s.Delete(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := o.ReadAt(t.Context(), make([]byte, 10), 90_000); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("read of a deleted object: %v, want ErrNotExist", err)
	}
}

// Folder markers that other tools leave are no objects.
func TestForeignKeys(t *testing.T) {
	server := gcstest.Start(t)
	bucket := server.Bucket(t)
	for _, key := range []string{"t/", "t/marker/", "t/p/"} {
		target := server.Endpoint + "/upload/storage/v1/b/" + bucket + "/o?uploadType=media&name=" + url.QueryEscape(key)
		got, err := http.Post(target, "text/plain", bytes.NewReader(nil))
		if err != nil || got.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", got, err)
		}
		_ = got.Body.Close()
	}
	s := open(t, "gs://"+bucket+"/t/", server.Options())
	put(t, s, "p/x", "x")
	for recursive, want := range map[bool]string{true: "p/x", false: "marker p"} {
		var got []string
		for info, err := range s.List(t.Context(), "", storage.ListOptions{Recursive: recursive}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, info.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("recursive %v: %q, want %q", recursive, got, want)
		}
	}
}

func TestNoBucket(t *testing.T) {
	s := open(t, "gs://no-such-bucket/t", gcstest.Start(t).Options())
	_, putErr := s.Put(t.Context(), "x", nil, storage.PutOptions{})
	var listErr error
	for _, err := range s.List(t.Context(), "", storage.ListOptions{}) {
		listErr = err
	}
	for _, err := range []error{putErr, listErr} {
		if err == nil || errors.Is(err, storage.ErrNotExist) || !strings.Contains(err.Error(), `no bucket "no-such-bucket"`) {
			t.Errorf("got %v, want that there is no bucket, which is not a missing object", err)
		}
	}
}

func TestOutOfReach(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	if _, err := open(t, "gs://bucket", gcs.Options{Endpoint: gone.URL}).Stat(t.Context(), "x"); !errors.Is(err, storage.ErrTemporary) {
		t.Errorf("got %v, want ErrTemporary", err)
	}
}

func TestURL(t *testing.T) {
	for url, want := range map[string]string{"gs://lake": "gs://lake", "GS://lake//a/b c%20/": "gs://lake/a/b c%20"} {
		if s, err := gcs.New(t.Context(), url, gcs.Options{}); err != nil || s.URL() != want {
			t.Errorf("%s: %v, want %s", url, err, want)
		}
	}
	for _, url := range []string{"gs:/lake", "gs://", "gs:///x", "gs://lake/../x", "gs://a@lake/x", "s3://lake"} {
		if s, err := gcs.New(t.Context(), url, gcs.Options{}); err == nil {
			t.Errorf("%s opened %s", url, s.URL())
		}
	}
}

func BenchmarkGCS(b *testing.B) {
	server := gcstest.Start(b)
	storagetest.Benchmark(b, func(b *testing.B) storage.Store { return server.Store(b) })
}
