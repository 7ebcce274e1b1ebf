package s3_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/retry"
	"github.com/sluicelake/sluice/storage/s3"
	"github.com/sluicelake/sluice/storage/s3/s3test"
	"github.com/sluicelake/sluice/storage/storagetest"
)

// One server for all: the gateway is made for one instance in a process.
func TestS3(t *testing.T) {
	server := s3test.Start(t)
	t.Run("conformance", func(t *testing.T) {
		storagetest.Run(t, func(t *testing.T) storage.Store { return server.Store(t) })
	})
	t.Run("copy from", func(t *testing.T) {
		storagetest.RunCopyFrom(t, func(t *testing.T) (storage.Store, storage.Store) { return server.Store(t), server.Store(t) })
	})
	t.Run("service", func(t *testing.T) {
		storagetest.RunService(t, storagetest.Service{
			Endpoint: server.Endpoint,
			Bucket:   func(t *testing.T) string { return "s3://" + server.Bucket(t) },
			Open: func(t *testing.T, url, endpoint string) storage.Store {
				opts := server.Options()
				opts.Endpoint = endpoint
				return open(t, url, opts)
			},
			Stored: func(r *http.Response, large bool) bool {
				if large && (r.Request.Method != http.MethodPost || !r.Request.URL.Query().Has("uploadId")) || !large && r.Request.Method != http.MethodPut {
					return false
				}
				return r.StatusCode == http.StatusOK
			},
			LargeBytes: 21 << 20,
		})
	})
	for name, test := range map[string]func(*testing.T, *s3test.Server){
		"aborts":              aborts,
		"copy in parts":       copyInParts,
		"foreign keys":        foreignKeys,
		"wrong credentials":   wrongCredentials,
		"no bucket":           noBucket,
		"server out of reach": outOfReach,
	} {
		t.Run(name, func(t *testing.T) { test(t, server) })
	}
}

func open(t testing.TB, url string, opts s3.Options) *s3.Store {
	t.Helper()
	s, err := s3.New(t.Context(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Multipart uploads that fail, or lose, leave nothing that would be paid for.
func aborts(t *testing.T, server *s3test.Server) {
	bucket := server.Bucket(t)
	s := open(t, "s3://"+bucket+"/t", server.Options())
	storagetest.Put(t, s, "there", "x")
	broken := io.MultiReader(strings.NewReader(strings.Repeat("x", 30<<20)), iotest.ErrReader(io.ErrUnexpectedEOF))
	if _, err := s.Put(t.Context(), "broken", broken, storage.PutOptions{}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("put of a broken body: %v", err)
	}
	large := strings.NewReader(strings.Repeat("x", 17<<20))
	if _, err := s.Put(t.Context(), "there", large, storage.PutOptions{IfAbsent: true}); !errors.Is(err, storage.ErrExist) {
		t.Errorf("a large put if absent over an object: %v", err)
	}
	out, err := server.Client().ListMultipartUploads(t.Context(), &awss3.ListMultipartUploadsInput{Bucket: &bucket})
	if err != nil || len(out.Uploads) != 0 {
		t.Errorf("%d uploads are left, %v", len(out.Uploads), err)
	}
}

func copyInParts(t *testing.T, server *s3test.Server) {
	opts := server.Options()
	opts.CopyLimit = 5 << 20
	s := open(t, "s3://"+server.Bucket(t)+"/ü +%", opts)
	content := strings.Repeat("0123456789abcdef", 12<<20/16) + "tail"
	storagetest.Put(t, s, "from ü", content)
	if err := s.Copy(t.Context(), "from ü", "to"); err != nil {
		t.Fatal(err)
	}
	if data, err := storage.ReadAll(t.Context(), s, "to", 0); err != nil || string(data) != content {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	other := open(t, "s3://"+server.Bucket(t), opts)
	info, err := other.CopyFrom(t.Context(), s, "from ü", "to")
	if err != nil {
		t.Fatal(err)
	}
	if stat, err := other.Stat(t.Context(), "to"); err != nil || info.Size != int64(len(content)) || stat.ETag != info.ETag {
		t.Errorf("copy reported %+v, stat %+v, %v", info, stat, err)
	}
	if data, err := storage.ReadAll(t.Context(), other, "to", 0); err != nil || string(data) != content {
		t.Errorf("from another bucket: %d bytes, %v", len(data), err)
	}
}

// Folder markers that Hadoop's S3 client leaves are no objects.
func foreignKeys(t *testing.T, server *s3test.Server) {
	bucket := server.Bucket(t)
	for _, key := range []string{"t/", "t/marker/", "t/p/"} {
		if _, err := server.Client().PutObject(t.Context(), &awss3.PutObjectInput{Bucket: &bucket, Key: aws.String(key)}); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, "s3://"+bucket+"/t/", server.Options())
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

func wrongCredentials(t *testing.T, server *s3test.Server) {
	opts := server.Options()
	bucket := server.Bucket(t)
	opts.SecretKey = "wrong"
	for _, opts := range []s3.Options{opts, {Endpoint: server.Endpoint, Anonymous: true}} {
		s := open(t, "s3://"+bucket, opts)
		_, openErr := s.Open(t.Context(), "x")
		_, statErr := s.Stat(t.Context(), "x")
		_, putErr := s.Put(t.Context(), "x", nil, storage.PutOptions{IfAbsent: true})
		for _, err := range []error{openErr, statErr, putErr, s.Delete(t.Context(), "x")} {
			if !errors.Is(err, storage.ErrPermission) || strings.Contains(err.Error(), opts.AccessKey) && opts.AccessKey != "" {
				t.Errorf("got %v, want ErrPermission without keys in it", err)
			}
		}
	}
}

func noBucket(t *testing.T, server *s3test.Server) {
	s := open(t, "s3://no-such-bucket/t", server.Options())
	_, putErr := s.Put(t.Context(), "x", nil, storage.PutOptions{})
	_, openErr := s.Open(t.Context(), "x")
	var listErr error
	for _, err := range s.List(t.Context(), "", storage.ListOptions{}) {
		listErr = err
	}
	for _, err := range []error{putErr, openErr, listErr} {
		if err == nil || errors.Is(err, storage.ErrNotExist) || !strings.Contains(err.Error(), "NoSuchBucket") {
			t.Errorf("got %v, want NoSuchBucket, which is not a missing object", err)
		}
	}
}

func outOfReach(t *testing.T, server *s3test.Server) {
	opts := server.Options()
	gone := httptest.NewServer(http.NotFoundHandler())
	opts.Endpoint = gone.URL
	gone.Close()
	if _, err := open(t, "s3://bucket", opts).Stat(t.Context(), "x"); !errors.Is(err, storage.ErrTemporary) {
		t.Errorf("got %v, want ErrTemporary", err)
	}
}

// A store that asks for slower requests: the SDK's attempts are followed by the retry layer's, which wait as long as the store
// asks.
func TestSlowDown(t *testing.T) {
	busy := 0
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if busy++; busy <= 4 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>")
			return
		}
		w.Header().Set("Content-Range", "bytes 0-3/4")
		w.Header().Set("ETag", `"1"`)
		w.WriteHeader(http.StatusPartialContent)
		_, _ = io.WriteString(w, "data")
	}))
	t.Cleanup(front.Close)
	var waits []time.Duration
	s := retry.New(open(t, "s3://bucket", s3.Options{Endpoint: front.URL, Anonymous: true}), retry.Options{
		First: time.Millisecond,
		OnRetry: func(_, _ string, _ int, wait time.Duration, err error) {
			if !strings.Contains(err.Error(), "SlowDown") {
				t.Errorf("repeated because of %v", err)
			}
			waits = append(waits, wait)
		},
	})
	data, err := storage.ReadAll(t.Context(), s, "x", 0)
	if err != nil || string(data) != "data" || len(waits) != 1 || waits[0] != time.Second {
		t.Errorf("%q, %v after waits of %v, want one of 1s", data, err, waits)
	}
}

// sink answers as a store that forgets what it is sent.
type sink struct{}

func (sink) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
	}
	w := httptest.NewRecorder()
	w.Header().Set("ETag", `"1"`)
	switch query := r.URL.Query(); {
	case query.Has("uploads"):
		_, _ = io.WriteString(w, "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>")
	case query.Has("uploadId") && r.Method == http.MethodPost:
		_, _ = io.WriteString(w, "<CompleteMultipartUploadResult><ETag>1</ETag></CompleteMultipartUploadResult>")
	}
	got := w.Result()
	got.Request = r
	return got, nil
}

func TestPutMemory(t *testing.T) {
	t.Setenv("AWS_CA_BUNDLE", "") // the SDK would want a client that it may change
	opts := s3.Options{Endpoint: "http://sink", AccessKey: "a", SecretKey: "b", HTTPClient: &http.Client{Transport: sink{}}}
	storagetest.PutMemory(t, open(t, "s3://bucket", opts), 100<<20)
}

func BenchmarkS3(b *testing.B) {
	server := s3test.Start(b)
	storagetest.Benchmark(b, func(b *testing.B) storage.Store { return server.Store(b) })
}
