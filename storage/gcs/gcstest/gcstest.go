// Package gcstest starts a server of Google Cloud Storage's JSON API, fake-gcs-server, inside a test process.
//
// That server checks ifGenerationMatch at the moment an object appears, in single requests and at the end of resumable
// uploads, and serves the generation that a read names. It copies in one request, takes a question for the state of an
// upload for its end, and has no throttling: storage/gcs tests those against the documented answers.
package gcstest

import (
	"fmt"
	"testing"

	"github.com/fsouza/fake-gcs-server/fakestorage"

	"github.com/sluicelake/sluice/storage/gcs"
)

// Server is a running server.
type Server struct {
	Endpoint string // "http://127.0.0.1:port"

	server  *fakestorage.Server
	buckets int
}

// Start runs a server until the test ends. Its objects are in memory.
func Start(t testing.TB) *Server {
	t.Helper()
	server, err := fakestorage.NewServerWithOptions(fakestorage.Options{Scheme: "http"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return &Server{Endpoint: server.URL(), server: server}
}

// Bucket makes a new, empty bucket.
func (s *Server) Bucket(t testing.TB) string {
	t.Helper()
	s.buckets++
	name := fmt.Sprintf("bucket-%d", s.buckets)
	s.server.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: name})
	return name
}

// Options reach the server without the environment.
func (s *Server) Options() gcs.Options { return gcs.Options{Endpoint: s.Endpoint} }

// Store opens a folder in a new bucket.
func (s *Server) Store(t testing.TB) *gcs.Store {
	t.Helper()
	store, err := gcs.New(t.Context(), "gs://"+s.Bucket(t)+"/lake/table", s.Options())
	if err != nil {
		t.Fatal(err)
	}
	return store
}
