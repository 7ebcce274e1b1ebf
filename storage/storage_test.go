package storage_test

import (
	"context"
	"errors"
	"io"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/mem"
	"github.com/sluicelake/sluice/storage/storagetest"
)

// A name that passes stays below its root however a back end joins it, and is the same name after cleaning.
func FuzzCheckName(f *testing.F) {
	for _, name := range storagetest.Hostile {
		f.Add(name)
	}
	for _, name := range []string{"a/b", ".hoodie/x", "a b%2F+ü中", `a\b`, "a/...", "a\nb"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		err := storage.CheckName(name)
		if err != nil {
			if !errors.Is(err, storage.ErrName) {
				t.Errorf("%q: %v is no ErrName", name, err)
			}
			return
		}
		if path.Clean(name) != name || path.IsAbs(name) || !filepath.IsLocal(filepath.FromSlash(name)) {
			t.Errorf("%q passed", name)
		}
		slashes := strings.ReplaceAll(name, `\`, "/")
		if joined := path.Join("/root/table", slashes); !strings.HasPrefix(joined, "/root/table/") {
			t.Errorf("%q leads to %q", name, joined)
		}
	})
}

func TestJoin(t *testing.T) {
	for _, c := range [][3]string{{"", "x", "x"}, {"x", "", "x"}, {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "", ""}, {"s3://b", "x/y", "s3://b/x/y"}} {
		if got := storage.Join(c[0], c[1]); got != c[2] {
			t.Errorf("Join(%q, %q) is %q", c[0], c[1], got)
		}
	}
}

func TestErrorText(t *testing.T) {
	_, err := mem.New("lake").Open(t.Context(), "a/b")
	if want := "open mem://lake/a/b: file does not exist"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

// requests notes the reads that reach an object.
type requests struct {
	storage.Object
	reads chan storage.Range
}

func (r requests) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	r.reads <- storage.Range{Off: off, Len: int64(len(p))}
	return r.Object.ReadAt(ctx, p, off)
}

// Near ranges become one request, long ones several, and reads inside them none.
func TestPrefetchRequests(t *testing.T) {
	s := mem.New("t")
	content := strings.Repeat("0123456789", 100)
	if _, err := s.Put(t.Context(), "x", strings.NewReader(content), storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	o, err := s.Open(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	r := requests{o, make(chan storage.Range, 100)}
	ranges := []storage.Range{{Off: 600, Len: 250}, {Off: 0, Len: 10}, {Off: 15, Len: 5}, {Off: 5, Len: 3}, {Off: 990, Len: 50}, {Off: -1, Len: 5}, {Off: 3, Len: 0}, {Off: 2000, Len: 1}}
	pre, err := storage.Prefetch(t.Context(), r, ranges, storage.PrefetchOptions{Gap: 5, Max: 100})
	if err != nil {
		t.Fatal(err)
	}
	want := map[storage.Range]bool{{Off: 0, Len: 20}: true, {Off: 600, Len: 100}: true, {Off: 700, Len: 100}: true, {Off: 800, Len: 50}: true, {Off: 990, Len: 10}: true}
	if len(r.reads) != len(want) {
		t.Errorf("%d requests, want %d", len(r.reads), len(want))
	}
	for range len(r.reads) {
		if got := <-r.reads; !want[got] {
			t.Errorf("unexpected request %+v", got)
		}
	}
	for _, c := range []struct{ off, n, requests int }{{0, 20, 0}, {12, 3, 0}, {650, 200, 0}, {995, 5, 0}, {10, 20, 1}, {599, 2, 1}, {995, 6, 1}, {300, 5, 1}} {
		p := make([]byte, c.n)
		n, err := pre.ReadAt(t.Context(), p, int64(c.off))
		if string(p[:n]) != content[c.off:min(c.off+c.n, 1000)] || err != nil && err != io.EOF || len(r.reads) != c.requests {
			t.Errorf("read of %d bytes at %d: %d bytes, %v, %d requests", c.n, c.off, n, err, len(r.reads))
		}
		for range len(r.reads) {
			<-r.reads
		}
	}
}

func TestCheckedBody(t *testing.T) {
	for _, c := range []struct {
		body string
		size int64
		ok   bool
	}{{"12345", 5, true}, {"12345", 0, true}, {"1234", 5, false}, {"123456", 5, false}, {"", 0, true}, {"", 1, false}} {
		for _, body := range []io.Reader{strings.NewReader(c.body), iotest.DataErrReader(strings.NewReader(c.body)), iotest.OneByteReader(strings.NewReader(c.body))} {
			if _, err := io.ReadAll(storage.CheckedBody(t.Context(), body, c.size)); (err == nil) != c.ok {
				t.Errorf("%d bytes, said to be %d: %v", len(c.body), c.size, err)
			}
		}
	}
}
