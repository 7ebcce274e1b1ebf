package gcs_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/gcs"
	"github.com/sluicelake/sluice/storage/gcs/gcstest"
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

func TestService(t *testing.T) {
	server := gcstest.Start(t)
	storagetest.RunService(t, storagetest.Service{
		Endpoint: server.Endpoint,
		Bucket:   func(t *testing.T) string { return "gs://" + server.Bucket(t) },
		Open: func(t *testing.T, url, endpoint string) storage.Store {
			opts := server.Options()
			opts.Endpoint = endpoint
			return open(t, url, opts)
		},
		Stored: func(r *http.Response, large bool) bool {
			method := http.MethodPost
			if large {
				method = http.MethodPut
			}
			return r.Request.Method == method && !strings.HasSuffix(r.Request.Header.Get("Content-Range"), "/*") && r.StatusCode == http.StatusOK
		},
		LargeBytes: 9 << 20,
	})
}

func open(t testing.TB, url string, opts gcs.Options) *gcs.Store {
	t.Helper()
	s, err := gcs.New(t.Context(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
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
	storagetest.Put(t, s, "p/x", "x")
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
