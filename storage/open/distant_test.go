package open_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/open"
	"github.com/sluicelake/sluice/storage/s3/s3test"
)

// distant stands before a server and lets each request take 20 ms longer, and any number of them run at once.
func distant(b *testing.B, endpoint string) string {
	b.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		b.Fatal(err)
	}
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
		r.Out.Host = r.In.Host // which is signed
	}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(20 * time.Millisecond)
		pass.ServeHTTP(w, r)
	}))
	b.Cleanup(front.Close)
	return front.URL
}

// A store 20 ms away, by the real protocol: a sequential scan of 64 MiB, one long read, and the lists of 2000 partitions, as
// a program sees them that opens a URL, and without what this package puts around the store.
func BenchmarkDistantS3(b *testing.B) {
	server := s3test.Start(b)
	bucket := server.Bucket(b)
	near, err := open.Store(b.Context(), "s3://"+bucket, open.Options{S3: server.Options()})
	if err != nil {
		b.Fatal(err)
	}
	content := bytes.Repeat([]byte("sluice! "), 8<<20)
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(8)
	put := func(name string, data []byte) {
		group.Go(func() error {
			_, err := near.Put(ctx, name, bytes.NewReader(data), storage.PutOptions{Size: int64(len(data))})
			return err
		})
	}
	put("large", content)
	for i := range 2000 {
		put(fmt.Sprintf("t/dt=%04d/f.parquet", i), []byte("x"))
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	opts := open.Options{S3: server.Options()}
	opts.S3.Endpoint = distant(b, server.Endpoint)
	for _, direct := range []bool{true, false} {
		opts.NoAhead = direct
		s, err := open.Store(b.Context(), "s3://"+bucket, opts)
		if err != nil {
			b.Fatal(err)
		}
		name := map[bool]string{true: "direct", false: "ahead"}[direct]
		for _, step := range []int64{256 << 10, 8 << 20, 64 << 20} {
			b.Run(fmt.Sprintf("read/%dKiB/%s", step>>10, name), func(b *testing.B) {
				b.SetBytes(int64(len(content)))
				for b.Loop() {
					scan(b, s, "large", step)
				}
			})
		}
		for _, parallel := range []int{1, 16, 64} {
			if direct {
				b.Run(fmt.Sprintf("list/%d", parallel), func(b *testing.B) {
					for b.Loop() {
						listPartitions(b, s, parallel)
					}
					b.ReportMetric(2000*float64(b.N)/b.Elapsed().Seconds(), "partitions/s")
				})
			}
		}
	}
}

func scan(b *testing.B, s storage.Store, name string, step int64) {
	b.Helper()
	o, err := s.Open(b.Context(), name)
	if err != nil {
		b.Fatal(err)
	}
	p := make([]byte, step)
	for off := int64(0); off < o.Size(); off += step {
		if n, err := o.ReadAt(b.Context(), p, off); n < len(p) && err != nil && err != io.EOF {
			b.Fatal(err)
		}
	}
	if err := o.Close(); err != nil {
		b.Fatal(err)
	}
}

func listPartitions(b *testing.B, s storage.Store, parallel int) {
	b.Helper()
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(parallel)
	files := make(chan int, 2000)
	for folder, err := range s.List(b.Context(), "t", storage.ListOptions{}) {
		if err != nil {
			b.Fatal(err)
		}
		group.Go(func() error {
			n, err := countFiles(ctx, s, folder.Name)
			files <- n
			return err
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	close(files)
	total := 0
	for n := range files {
		total += n
	}
	if total != 2000 {
		b.Fatalf("%d files", total)
	}
}

func countFiles(ctx context.Context, s storage.Store, folder string) (n int, err error) {
	for _, err := range s.List(ctx, folder, storage.ListOptions{Recursive: true}) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}
