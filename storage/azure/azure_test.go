package azure_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/azure"
	"github.com/sluicelake/sluice/storage/azure/azuretest"
	"github.com/sluicelake/sluice/storage/retry"
	"github.com/sluicelake/sluice/storage/storagetest"
)

// refused are the names of the suite that the service confuses with others.
var refused = storagetest.Refuses("dots...", `back\slash`)

func TestConformance(t *testing.T) {
	server := azuretest.Start(t)
	storagetest.Run(t, func(t *testing.T) storage.Store { return server.Store(t) }, refused)
}

func TestCopyFrom(t *testing.T) {
	server := azuretest.Start(t)
	storagetest.RunCopyFrom(t, func(t *testing.T) (storage.Store, storage.Store) { return server.Store(t), server.Store(t) }, refused)
}

func TestService(t *testing.T) {
	server := azuretest.Start(t)
	storagetest.RunService(t, storagetest.Service{
		Endpoint: server.Endpoint,
		Bucket:   func(t *testing.T) string { return "az://" + server.Container(t) },
		Open: func(t *testing.T, url, endpoint string) storage.Store {
			opts := server.Options()
			opts.Endpoint = endpoint
			return open(t, url, opts)
		},
		Stored: func(r *http.Response, large bool) bool {
			comp := ""
			if large {
				comp = "blocklist"
			}
			return r.Request.Method == http.MethodPut && r.Request.URL.Query().Get("comp") == comp && r.StatusCode == http.StatusCreated
		},
		LargeBytes: 21 << 20,
	})
}

func open(t testing.TB, url string, opts azure.Options) *azure.Store {
	t.Helper()
	s, err := azure.New(t.Context(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Blocks of another writer, or of a Put that failed, never get into a blob.
func TestForeignBlocks(t *testing.T) {
	server := azuretest.Start(t)
	s := open(t, "az://"+server.Container(t)+"/t", server.Options())
	broken := io.MultiReader(strings.NewReader(strings.Repeat("x", 30<<20)), iotest.ErrReader(io.ErrUnexpectedEOF))
	if _, err := s.Put(t.Context(), "f", broken, storage.PutOptions{}); !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, storage.ErrTemporary) {
		t.Errorf("put of a broken body: %v", err)
	}
	if server.Uncommitted() != 1 {
		t.Fatalf("%d blobs have staged blocks, the test wants those of the broken Put", server.Uncommitted())
	}
	content := strings.Repeat("y", 17<<20)
	storagetest.Put(t, s, "f", content)
	if data, err := storage.ReadAll(t.Context(), s, "f", 0); err != nil || string(data) != content {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if server.Uncommitted() != 0 {
		t.Errorf("%d blobs have staged blocks", server.Uncommitted())
	}
}

// What was stored packed comes back packed: sizes and ranges are those of the packed bytes.
func TestPackedBlob(t *testing.T) {
	packed := []byte("\x1f\x8b\x08 not really gzip, which nobody should notice")
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			t.Errorf("the request takes %q", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", len(packed)-1, len(packed)))
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(packed)
	}))
	t.Cleanup(front.Close)
	s := open(t, "az://c", azure.Options{Endpoint: front.URL, Account: "lake", Anonymous: true})
	if data, err := storage.ReadAll(t.Context(), s, "x", 0); err != nil || !bytes.Equal(data, packed) {
		t.Errorf("%q, %v", data, err)
	}
}

// The empty blobs that stand for folders in accounts with a hierarchical namespace are no files, and folders are those
// that have blobs below.
func TestFolderBlobs(t *testing.T) {
	server := azuretest.Start(t)
	c := server.Container(t)
	for _, folder := range []string{"t", "t/p", "t/empty"} {
		server.Put(c, folder, nil, map[string]string{"hdi_isfolder": "true"})
	}
	server.Put(c, "t/p/x", []byte("x"), nil)
	server.Put(c, "t/zero", nil, map[string]string{"owner": "somebody"})
	s := open(t, "az://"+c+"/t", server.Options())
	for recursive, want := range map[bool]string{true: "p/x zero", false: "p/ zero"} {
		var got []string
		for info, err := range s.List(t.Context(), "", storage.ListOptions{Recursive: recursive}) {
			if err != nil {
				t.Fatal(err)
			}
			if info.Dir {
				info.Name += "/"
			}
			got = append(got, info.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("recursive %v: %q, want %q", recursive, got, want)
		}
	}
	_, openErr := s.Open(t.Context(), "p")
	_, statErr := s.Stat(t.Context(), "empty")
	for _, err := range []error{openErr, statErr, s.Copy(t.Context(), "p", "q")} {
		if !errors.Is(err, storage.ErrNotExist) {
			t.Errorf("a folder: %v, want ErrNotExist", err)
		}
	}
}

func TestCopyInBlocks(t *testing.T) {
	server := azuretest.Start(t)
	opts := server.Options()
	opts.CopyLimit = 1 << 20
	s, other := open(t, "az://"+server.Container(t)+"/ü +%", opts), open(t, "az://"+server.Container(t), opts)
	content := strings.Repeat("0123456789abcdef", 5<<20/16) + "tail"
	storagetest.Put(t, s, "from ü", content)
	info, err := other.CopyFrom(t.Context(), s, "from ü", "to")
	if err != nil {
		t.Fatal(err)
	}
	if stat, err := other.Stat(t.Context(), "to"); err != nil || info.Size != int64(len(content)) || stat.ETag != info.ETag {
		t.Errorf("copy reported %+v, stat %+v, %v", info, stat, err)
	}
	if data, err := storage.ReadAll(t.Context(), other, "to", 0); err != nil || string(data) != content {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

func TestWrongCredentials(t *testing.T) {
	server := azuretest.Start(t)
	place := "az://" + server.Container(t)
	wrong := azure.Options{Endpoint: server.Endpoint, Account: server.Account, AccountKey: "d3Jvbmc="}
	for _, opts := range []azure.Options{wrong, {Endpoint: server.Endpoint, Account: server.Account, Anonymous: true}} {
		s := open(t, place, opts)
		_, openErr := s.Open(t.Context(), "x")
		_, statErr := s.Stat(t.Context(), "x")
		_, putErr := s.Put(t.Context(), "x", nil, storage.PutOptions{IfAbsent: true})
		for _, err := range []error{openErr, statErr, putErr, s.Delete(t.Context(), "x")} {
			if !errors.Is(err, storage.ErrPermission) || strings.Contains(err.Error(), "d3Jvbmc=") || len(err.Error()) > 300 {
				t.Errorf("got %v, want a short ErrPermission without keys in it", err)
			}
		}
	}
	if _, err := azure.New(t.Context(), place, azure.Options{Account: "lake", AccountKey: "not base64!"}); err == nil || strings.Contains(err.Error(), "not base64!") {
		t.Errorf("a malformed key: %v, want an error without it", err)
	}
}

func TestNoContainer(t *testing.T) {
	s := open(t, "az://none/t", azuretest.Start(t).Options())
	_, putErr := s.Put(t.Context(), "x", nil, storage.PutOptions{})
	_, openErr := s.Open(t.Context(), "x")
	var listErr error
	for _, err := range s.List(t.Context(), "", storage.ListOptions{}) {
		listErr = err
	}
	for _, err := range []error{putErr, openErr, listErr, s.Delete(t.Context(), "x")} {
		if err == nil || errors.Is(err, storage.ErrNotExist) || !strings.Contains(err.Error(), "ContainerNotFound") {
			t.Errorf("got %v, want ContainerNotFound, which is not a missing object", err)
		}
	}
}

// A busy service: the SDK's attempts are followed by the retry layer's, which wait as long as the service asks.
func TestThrottling(t *testing.T) {
	busy := 0
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if busy++; busy <= 4 {
			if busy == 3 { // the SDK's last attempt
				w.Header().Set("Retry-After", "1")
			}
			w.Header().Set("x-ms-error-code", "ServerBusy")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Length", "7")
		w.Header().Set("ETag", `"1"`)
	}))
	t.Cleanup(front.Close)
	var waits []time.Duration
	s := retry.New(open(t, "az://c", azure.Options{Endpoint: front.URL, Account: "lake", Anonymous: true}), retry.Options{
		First:   time.Millisecond,
		OnRetry: func(_, _ string, _ int, wait time.Duration, _ error) { waits = append(waits, wait) },
	})
	info, err := s.Stat(t.Context(), "x")
	if err != nil || info.Size != 7 || len(waits) != 1 || waits[0] != time.Second {
		t.Errorf("%+v, %v after waits of %v, want one of 1s", info, err, waits)
	}
}

func TestOutOfReach(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	s := open(t, "az://c", azure.Options{Endpoint: gone.URL, Account: "lake", SAS: "sv=1&sig=secret"})
	if _, err := s.Stat(t.Context(), "x"); !errors.Is(err, storage.ErrTemporary) || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v, want ErrTemporary without the signature", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := s.Stat(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v, want DeadlineExceeded without the signature", err)
	}
}

func TestPutMemory(t *testing.T) {
	sink := answers(func(r *http.Request) int {
		if r.Body != nil {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				t.Error(err)
			}
		}
		return http.StatusCreated
	})
	s := open(t, "az://c", azure.Options{Account: "lake", Anonymous: true, HTTPClient: &http.Client{Transport: sink}})
	storagetest.PutMemory(t, s, 80<<20)
}

func BenchmarkAzure(b *testing.B) {
	server := azuretest.Start(b)
	storagetest.Benchmark(b, func(b *testing.B) storage.Store { return server.Store(b) })
}
