// Package gcs keeps objects in a bucket of Google Cloud Storage, by its JSON API.
//
// It speaks HTTP itself instead of through Google's storage client, which would make a program 30 MB larger (gRPC and
// telemetry): what a store needs are seven documented requests.
//
// # Credentials
//
// They come from where Google's tools find them ("application default credentials"): the file that
// GOOGLE_APPLICATION_CREDENTIALS names (a service account, an authorized user, workload identity federation), the file that
// "gcloud auth application-default login" leaves, the metadata server of the machine. They are looked for with the first
// request. STORAGE_EMULATOR_HOST names an emulator, to which none are sent.
//
// # What a Put does
//
// A body of up to one chunk is one multipart request, a longer one a resumable upload that is cancelled when anything
// fails. A body is never held whole: at most three chunks are in memory. IfAbsent is ifGenerationMatch=0, which the service
// checks at the moment the object appears. Each object carries a token in its metadata (sluice-put), so that a Put whose
// answer was lost can be told from somebody else's.
//
// # Versions
//
// The ETag of an Info is the object's generation. A read names the generation that Open saw: after a replacement it brings
// the old bytes, where the bucket keeps versions, or fails with storage.ErrChanged.
package gcs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/sluicelake/sluice/storage"
)

// Options of New. The zero value asks the environment for everything.
type Options struct {
	// Endpoint is "http://127.0.0.1:4443"; empty: STORAGE_EMULATOR_HOST, then Google. With an endpoint or an emulator and
	// no TokenSource no credentials are sent.
	Endpoint string
	// TokenSource replaces the credentials of the environment.
	TokenSource oauth2.TokenSource
	// Anonymous sends no credentials: for public buckets.
	Anonymous bool
	// UserProject is billed for requests to buckets whose requester pays.
	UserProject string
	// ChunkSize of resumable uploads in bytes, a multiple of 256 KiB. Default 8 MiB. A longer body takes one request for
	// each chunk, one after the other.
	ChunkSize int64
	// HTTPClient replaces the client that sends all requests, those for tokens too.
	HTTPClient *http.Client
}

const (
	endpoint      = "https://storage.googleapis.com"
	scope         = "https://www.googleapis.com/auth/devstorage.read_write"
	defaultChunk  = 8 << 20
	chunkUnit     = 256 << 10 // a chunk that is not the last is a multiple of this
	headBytes     = 32 << 10  // read by Open instead of a request for the metadata: small objects need no second one
	cancelTimeout = 30 * time.Second
	tokenMetadata = "sluice-put"
)

// Store is a bucket, or what lies below a prefix of it.
type Store struct {
	client *client
	bucket string
	prefix string // without slash at the end; may be empty
	chunk  int64
}

// New returns the store at a URL like gs://bucket/prefix. It sends no request.
func New(_ context.Context, url string, opts Options) (*Store, error) {
	bucket, prefix, err := ParseURL(url)
	if err != nil {
		return nil, err
	}
	if opts.ChunkSize == 0 {
		opts.ChunkSize = defaultChunk
	}
	if opts.ChunkSize < chunkUnit || opts.ChunkSize%chunkUnit != 0 {
		return nil, fmt.Errorf("gcs: chunk size %d is not a multiple of %d bytes", opts.ChunkSize, chunkUnit)
	}
	client, err := newClient(opts)
	if err != nil {
		return nil, &storage.Error{Op: "open", URL: "gs://" + storage.Join(bucket, prefix), Err: err}
	}
	return &Store{client: client, bucket: bucket, prefix: prefix, chunk: opts.ChunkSize}, nil
}

func newClient(opts Options) (*client, error) {
	c := &client{http: opts.HTTPClient, tokens: opts.TokenSource, project: opts.UserProject}
	c.anonymous = opts.Anonymous
	c.base = strings.TrimRight(opts.Endpoint, "/")
	if c.base == "" {
		if host := os.Getenv("STORAGE_EMULATOR_HOST"); host != "" {
			c.base = strings.TrimRight(host, "/")
			if !strings.Contains(c.base, "://") {
				c.base = "http://" + c.base
			}
		}
	}
	if c.base != "" {
		c.anonymous = c.anonymous || c.tokens == nil
		if u, err := url.Parse(c.base); err != nil || u.Host == "" {
			return nil, fmt.Errorf("the endpoint %q is no URL; write http://host:port", c.base)
		}
	} else {
		c.base = endpoint
	}
	if c.http == nil {
		c.http = &http.Client{Transport: transport()}
	}
	return c, nil
}

// transport keeps connections for as many requests at once as jobs send; the default keeps two.
func transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 64
	t.ResponseHeaderTimeout = 2 * time.Minute
	t.DisableCompression = true
	return t
}

// ParseURL takes apart gs://bucket/prefix. As in Hadoop the prefix is taken as it stands ("%20" is three characters) and
// repeated slashes are one.
func ParseURL(url string) (bucket, prefix string, err error) {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok || !strings.EqualFold(scheme, "gs") {
		return "", "", fmt.Errorf("open %q: not a Google Cloud Storage URL; write gs://bucket/folder", url)
	}
	bucket, rest, _ = strings.Cut(rest, "/")
	if strings.Contains(bucket, "@") {
		return "", "", errors.New("open gs URL: credentials don't belong into a URL; set GOOGLE_APPLICATION_CREDENTIALS")
	}
	if bucket == "" || strings.ContainsAny(bucket, "?#:%\\ \x00") {
		return "", "", fmt.Errorf("open %q: %q is no bucket name; write gs://bucket/folder", url, bucket)
	}
	segments := slices.DeleteFunc(strings.Split(rest, "/"), func(s string) bool { return s == "" })
	prefix = strings.Join(segments, "/")
	if err := storage.CheckPrefix(prefix); err != nil {
		return "", "", fmt.Errorf("open %q: %w", url, err)
	}
	return bucket, prefix, nil
}

// Traits of Cloud Storage: strongly consistent, with conditional writes.
func (s *Store) Traits() storage.Traits {
	return storage.Traits{AtomicIfAbsent: true, ConsistentList: true, ServerCopy: true, Tokens: true}
}

// URL is gs://bucket/prefix.
func (s *Store) URL() string { return "gs://" + storage.Join(s.bucket, s.prefix) }

func (s *Store) fail(op, name string, err error) error {
	return &storage.Error{Op: op, URL: s.URL(), Name: name, Err: classify(err)}
}

// objectURL is the JSON API's address of an object.
func (s *Store) objectURL(name string, query url.Values) string {
	return s.client.url("/storage/v1"+objectPath(s.bucket, storage.Join(s.prefix, name)), query)
}

func objectPath(bucket, key string) string {
	return "/b/" + url.PathEscape(bucket) + "/o/" + url.PathEscape(key)
}
