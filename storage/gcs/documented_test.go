package gcs_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/gcs"
	"github.com/sluicelake/sluice/storage/retry"
	"github.com/sluicelake/sluice/storage/storagetest"
)

// These tests hold the client against answers that Google's reference of the JSON API documents and the server of the other
// tests does not give: the state of an upload ("bytes */*", 308 with Range), copies in several calls (rewriteToken),
// throttling (429, 503, Retry-After), and credentials.

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// session is one resumable upload as the reference describes it. It takes what it is sent only in part, and throttles.
type session struct {
	t        *testing.T
	self     string
	held     []byte
	requests []string // the Content-Range of each
	token    string
}

func (s *session) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		var attrs struct{ Metadata map[string]string }
		if err := json.NewDecoder(r.Body).Decode(&attrs); err != nil || r.URL.Query().Get("ifGenerationMatch") != "0" {
			s.t.Errorf("%v, query %s", err, r.URL.RawQuery)
		}
		s.token = attrs.Metadata["sluice-put"]
		w.Header().Set("Location", s.self+"/session")
		return
	}
	asked := r.Header.Get("Content-Range")
	s.requests = append(s.requests, asked)
	data, _ := io.ReadAll(r.Body)
	var first, last int
	if _, err := fmt.Sscanf(asked, "bytes %d-%d/", &first, &last); err == nil {
		if first != len(s.held) || last-first+1 != len(data) {
			s.t.Errorf("%s with %d bytes, %d are held", asked, len(data), len(s.held))
		}
		switch len(s.requests) {
		case 1: // a part arrives before the store gives up
			s.held = append(s.held, data[:256<<10]...)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case 5: // all arrives, the answer says nothing of it
			s.held = append(s.held, data...)
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		s.held = append(s.held, data...)
	}
	if _, total, _ := strings.Cut(asked, "/"); total == fmt.Sprint(len(s.held)) {
		fmt.Fprintf(w, `{"name":"x","size":"%d","generation":"7","metadata":{"sluice-put":%q}}`, len(s.held), s.token)
		return
	}
	w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", len(s.held)-1))
	w.WriteHeader(http.StatusPermanentRedirect)
}

func TestResume(t *testing.T) {
	up := &session{t: t}
	up.self = serve(t, up.ServeHTTP)
	content := strings.Repeat("0123456789abcdef", 9<<20/16/4)
	s := open(t, "gs://lake", gcs.Options{Endpoint: up.self, ChunkSize: 1 << 20})
	info, err := s.Put(t.Context(), "x", strings.NewReader(content), storage.PutOptions{IfAbsent: true})
	if err != nil || info.Size != int64(len(content)) || info.ETag != "7" || string(up.held) != content {
		t.Errorf("%+v, %v, the store holds %d of %d bytes", info, err, len(up.held), len(content))
	}
	want := "bytes 0-1048575/*, bytes */*, bytes 262144-1048575/*, bytes 1048576-2097151/*, bytes 2097152-2359295/2359296, bytes */2359296"
	if got := strings.Join(up.requests, ", "); got != want {
		t.Errorf("the requests were\n%s, want\n%s", got, want)
	}
}

// A body that breaks ends the upload: the store is told to forget it.
func TestCancelledUpload(t *testing.T) {
	var deleted bool
	up := &session{t: t}
	up.self = serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			deleted = true
			w.WriteHeader(499)
			return
		}
		up.ServeHTTP(w, r)
	})
	broken := io.MultiReader(strings.NewReader(strings.Repeat("x", 2<<20)), brokenReader{})
	s := open(t, "gs://lake", gcs.Options{Endpoint: up.self, ChunkSize: 1 << 20})
	if _, err := s.Put(t.Context(), "x", broken, storage.PutOptions{IfAbsent: true}); !errors.Is(err, errBroken) || !deleted {
		t.Errorf("%v, cancelled: %v", err, deleted)
	}
}

var errBroken = errors.New("the source broke")

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errBroken }

func TestRewriteInSeveralCalls(t *testing.T) {
	var calls []string
	endpoint := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprint(w, `{"name":"t/from ü","size":"9000000000","generation":"42"}`)
			return
		}
		calls = append(calls, r.URL.EscapedPath()+" "+r.URL.Query().Get("sourceGeneration")+" "+r.URL.Query().Get("rewriteToken"))
		switch len(calls) {
		case 1, 2:
			fmt.Fprintf(w, `{"kind":"storage#rewriteResponse","totalBytesRewritten":"%d","done":false,"rewriteToken":"token%d"}`, len(calls), len(calls))
		default:
			fmt.Fprint(w, `{"done":true,"resource":{"name":"u/to","size":"9000000000","generation":"43"}}`)
		}
	})
	opts := gcs.Options{Endpoint: endpoint}
	from, to := open(t, "gs://lake/t", opts), open(t, "gs://pond/u", opts)
	info, err := to.CopyFrom(t.Context(), from, "from ü", "to")
	if err != nil || info.Size != 9_000_000_000 || info.ETag != "43" || info.Name != "to" {
		t.Fatalf("%+v, %v", info, err)
	}
	const path = "/storage/v1/b/lake/o/t%2Ffrom%20%C3%BC/rewriteTo/b/pond/o/u%2Fto 42 "
	if want := path + "\n" + path + "token1\n" + path + "token2"; strings.Join(calls, "\n") != want {
		t.Errorf("the calls were\n%s, want\n%s", strings.Join(calls, "\n"), want)
	}
}

// The statuses of the reference's table of errors, as the layers above know them.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		code   int
		reason string
		want   error
	}{
		{404, "notFound", storage.ErrNotExist},
		{401, "authError", storage.ErrPermission},
		{403, "forbidden", storage.ErrPermission},
		{403, "rateLimitExceeded", storage.ErrTemporary},
		{408, "uploadBrokenConnection", storage.ErrTemporary},
		{429, "rateLimitExceeded", storage.ErrTemporary},
		{500, "backendError", storage.ErrTemporary},
		{502, "backendError", storage.ErrTemporary},
		{503, "backendError", storage.ErrTemporary},
		{400, "invalid", nil},
		{501, "notImplemented", nil},
	} {
		endpoint := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.code)
			fmt.Fprintf(w, `{"error":{"code":%d,"message":"what it says","errors":[{"reason":%q,"message":"what it says"}]}}`, c.code, c.reason)
		})
		_, err := open(t, "gs://lake", gcs.Options{Endpoint: endpoint}).Stat(t.Context(), "x")
		if !strings.Contains(err.Error(), "what it says") || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%d %s: %v", c.code, c.reason, err)
		}
		for _, kind := range []error{storage.ErrNotExist, storage.ErrPermission, storage.ErrTemporary} {
			if errors.Is(err, kind) != (kind == c.want) {
				t.Errorf("%d %s: %v, want %v", c.code, c.reason, err, c.want)
			}
		}
	}
}

// The retry layer waits as long as the service asks.
func TestRetryAfter(t *testing.T) {
	n := 0
	endpoint := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if n++; n == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		fmt.Fprint(w, `{"name":"x","size":"1","generation":"1"}`)
	})
	var waited time.Duration
	s := retry.New(open(t, "gs://lake", gcs.Options{Endpoint: endpoint}), retry.Options{
		First:   time.Millisecond,
		OnRetry: func(_, _ string, _ int, wait time.Duration, _ error) { waited = wait },
	})
	if _, err := s.Stat(t.Context(), "x"); err != nil || waited != time.Second {
		t.Errorf("%v after a wait of %v, want 1s", err, waited)
	}
}

// A service account's file is found by its variable, and the token that it gives is sent.
func TestServiceAccount(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	service := &googleLike{}
	endpoint := serve(t, service.ServeHTTP)
	file := filepath.Join(t.TempDir(), "key.json")
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "job@lake.example", "private_key_id": "1", "token_uri": endpoint + "/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	service.check(t)
}

// Without a file the machine's metadata server is asked.
func TestMetadataServer(t *testing.T) {
	service := &googleLike{}
	endpoint := serve(t, service.ServeHTTP)
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(endpoint, "http://"))
	service.check(t)
}

// googleLike gives a token to who asks for one, and notes how requests to the storage are signed.
type googleLike struct{ authorization string }

func (g *googleLike) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Metadata-Flavor", "Google")
	switch {
	case strings.HasSuffix(r.URL.Path, "/token"):
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"the token","token_type":"Bearer","expires_in":3600}`)
	case strings.HasPrefix(r.URL.Path, "/storage/"):
		g.authorization = r.Header.Get("Authorization")
		fmt.Fprint(w, `{"name":"x","size":"1","generation":"1"}`)
	default:
		fmt.Fprint(w, "x")
	}
}

// check stats an object of Google's own address, which a transport leads to this server.
func (g *googleLike) check(t *testing.T) {
	t.Helper()
	t.Setenv("STORAGE_EMULATOR_HOST", "")
	client := &http.Client{Transport: redirect{g}}
	s := open(t, "gs://lake", gcs.Options{HTTPClient: client})
	if _, err := s.Stat(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if g.authorization != "Bearer the token" {
		t.Errorf("the request was signed with %q", g.authorization)
	}
}

// redirect answers requests to Google's storage in this process and lets all others pass.
type redirect struct{ to http.Handler }

func (r redirect) RoundTrip(in *http.Request) (*http.Response, error) {
	if in.URL.Host != "storage.googleapis.com" {
		return http.DefaultTransport.RoundTrip(in)
	}
	w := httptest.NewRecorder()
	r.to.ServeHTTP(w, in)
	return w.Result(), nil
}

func TestNoCredentials(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "none.json"))
	t.Setenv("STORAGE_EMULATOR_HOST", "")
	_, err := open(t, "gs://lake", gcs.Options{}).Stat(t.Context(), "x")
	if !errors.Is(err, storage.ErrPermission) || !strings.Contains(err.Error(), "gcloud auth application-default login") {
		t.Errorf("got %v, want ErrPermission and what to do", err)
	}
}

func TestEmulatorByEnvironment(t *testing.T) {
	service := &googleLike{authorization: "none yet"}
	for _, host := range []string{serve(t, service.ServeHTTP), strings.TrimPrefix(serve(t, service.ServeHTTP), "http://")} {
		t.Setenv("STORAGE_EMULATOR_HOST", host)
		s, err := gcs.New(context.Background(), "gs://lake", gcs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Stat(t.Context(), "x"); err != nil || service.authorization != "" {
			t.Errorf("%s: %v, signed with %q", host, err, service.authorization)
		}
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
	asked := r.Header.Get("Content-Range")
	span, total, _ := strings.Cut(strings.TrimPrefix(asked, "bytes "), "/")
	switch {
	case r.Method == http.MethodPost:
		w.Header().Set("Location", "http://sink/session")
	case total != "*":
		fmt.Fprintf(w, `{"name":"x","size":%q,"generation":"1"}`, total)
	default:
		_, last, _ := strings.Cut(span, "-")
		w.Header().Set("Range", "bytes=0-"+last)
		w.WriteHeader(http.StatusPermanentRedirect)
	}
	got := w.Result()
	got.Request = r
	return got, nil
}

func TestPutMemory(t *testing.T) {
	s := open(t, "gs://lake", gcs.Options{Endpoint: "http://sink", HTTPClient: &http.Client{Transport: sink{}}})
	storagetest.PutMemory(t, s, 50<<20)
}
