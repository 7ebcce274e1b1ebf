// Package s3test starts a real S3 server, the Versity gateway over a folder, inside a test process.
package s3test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/s3api"
	"github.com/versity/versitygw/s3api/middlewares"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/s3"
)

// Server is a running gateway. Its keys are for this process only.
type Server struct {
	Endpoint             string // "http://127.0.0.1:port"
	AccessKey, SecretKey string
	Region               string
	Dir                  string // Dir/BUCKET/KEY are the objects' files

	buckets int
}

// Start runs a server until the test ends. The gateway works in its folder, so the test's working directory changes: open
// files by absolute paths afterwards, don't call Start in a parallel test, and have one Server at a time. For the same
// reason an object "a" and an object "a/b" can't both be stored.
func Start(t testing.TB) *Server {
	t.Helper()
	// The gateway may still remove its own temporary files when the test ends, which t.TempDir would take for a failure.
	base, err := os.MkdirTemp("", "s3test") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	s := &Server{
		AccessKey: "test" + storage.NewToken(), SecretKey: storage.NewToken(), Region: "us-east-1",
		Dir: filepath.Join(base, "objects"),
	}
	if err := os.Mkdir(s.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(s.Dir)
	// Extended attributes travel with the file when an object is replaced; the gateway's other way, files beside the
	// objects, gives readers the new content with the old ETag for a moment.
	if err := (meta.XattrMeta{}).Test(s.Dir); err != nil {
		t.Fatalf("the S3 server needs extended attributes on the file system of %s: %v; set TMPDIR to another one", s.Dir, err)
	}
	files, err := posix.New(s.Dir, meta.XattrMeta{}, posix.PosixOpts{NewDirPerm: 0o755, CopyObjectThreshold: 5 << 30})
	if err != nil {
		t.Fatal(err)
	}
	s.serve(t, files)
	return s
}

// gateway mends one thing of the posix back end: it looks up an object's ETag by path and then opens the path, so that a
// reader could get the content of a later Put under the earlier ETag. S3 itself promises that this never happens.
type gateway struct{ *posix.Posix }

func (g gateway) GetObject(ctx context.Context, in *awss3.GetObjectInput) (*awss3.GetObjectOutput, error) {
	for {
		out, err := g.Posix.GetObject(ctx, in)
		if err != nil {
			return out, err
		}
		// The file is open now. Its ETag before and after being the same, the content is that of the ETag.
		head, err := g.HeadObject(ctx, &awss3.HeadObjectInput{Bucket: in.Bucket, Key: in.Key, VersionId: in.VersionId})
		if err == nil && aws.ToString(head.ETag) == aws.ToString(out.ETag) {
			return out, nil
		}
		if out.Body != nil {
			_ = out.Body.Close()
		}
	}
}

func (s *Server) serve(t testing.TB, files *posix.Posix) {
	t.Helper()
	addr := freePort(t)
	s.Endpoint = "http://" + addr
	ready := make(chan struct{})
	api, err := s3api.New(gateway{files}, middlewares.RootUserConfig{Access: s.AccessKey, Secret: s.SecretKey}, s.Region,
		auth.NewIAMServiceSingle(auth.Account{Access: s.AccessKey, Secret: s.SecretKey, Role: auth.RoleAdmin}),
		nil, nil, nil, nil,
		s3api.WithQuiet(), s3api.WithKeepAlive(), s3api.WithConcurrencyLimiter(1024, 512), s3api.WithMpMaxParts(10000),
		s3api.WithOnListen(func() { close(ready) }))
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- api.ServeMultiPort([]string{addr}) }()
	select {
	case <-ready:
	case err := <-stopped:
		t.Fatalf("the S3 server did not start on %s: %v", addr, err)
	case <-time.After(30 * time.Second):
		t.Fatalf("the S3 server did not start on %s within 30 s", addr)
	}
	t.Cleanup(func() {
		// Idle connections of clients would hold the shutdown up; the process ends soon anyway.
		done := make(chan struct{})
		go func() { _ = api.ShutDown(); close(done) }()
		select {
		case <-done:
		case <-time.After(time.Second):
		}
		files.Shutdown()
	})
}

// freePort asks the system for a free port. The gateway opens its own listener and does not tell its port, so there is a
// moment in which somebody else could take it.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Client is the plain SDK client, for what a Store can't do.
func (s *Server) Client() *awss3.Client {
	return awss3.New(awss3.Options{
		BaseEndpoint: &s.Endpoint, Region: s.Region, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(s.AccessKey, s.SecretKey, ""),
	})
}

// Bucket makes a new, empty bucket.
func (s *Server) Bucket(t testing.TB) string {
	t.Helper()
	s.buckets++
	name := fmt.Sprintf("bucket-%d", s.buckets)
	if _, err := s.Client().CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: aws.String(name)}); err != nil {
		t.Fatal(err)
	}
	return name
}

// Options reach the server without the environment.
func (s *Server) Options() s3.Options {
	return s3.Options{Endpoint: s.Endpoint, Region: s.Region, AccessKey: s.AccessKey, SecretKey: s.SecretKey}
}

// Setenv makes the server the one that the AWS environment names, for tests that pass only URLs.
func (s *Server) Setenv(t testing.TB) {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": s.Endpoint, "AWS_REGION": s.Region, "AWS_ACCESS_KEY_ID": s.AccessKey,
		"AWS_SECRET_ACCESS_KEY": s.SecretKey, "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "",
		"AWS_CONFIG_FILE": filepath.Join(s.Dir, "..", "none"), "AWS_SHARED_CREDENTIALS_FILE": filepath.Join(s.Dir, "..", "none"),
		"AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
}

// Store opens a folder in a new bucket.
func (s *Server) Store(t testing.TB) *s3.Store {
	t.Helper()
	store, err := s3.New(t.Context(), "s3://"+s.Bucket(t)+"/lake/table", s.Options())
	if err != nil {
		t.Fatal(err)
	}
	return store
}
