package local_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/local"
	"github.com/sluicelake/sluice/storage/mem"
	"github.com/sluicelake/sluice/storage/storagetest"
)

func open(t testing.TB, root string, opts local.Options) *local.Store {
	t.Helper()
	s, err := local.New(root, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Store { return open(t, t.TempDir(), local.Options{}) })
}

func TestConformanceSynced(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Store {
		return open(t, "file:"+filepath.Join(t.TempDir(), "not", "there", "yet"), local.Options{Sync: true})
	})
}

func TestCopyFrom(t *testing.T) {
	storagetest.RunCopyFrom(t, func(t *testing.T) (storage.Store, storage.Store) {
		return open(t, t.TempDir(), local.Options{}), open(t, t.TempDir(), local.Options{})
	})
}

// Ranges of files go from folder to folder; those of other objects do not.
func TestRanges(t *testing.T) {
	source, target := open(t, t.TempDir(), local.Options{}), open(t, t.TempDir(), local.Options{})
	content := strings.Repeat("0123456789", 30000)
	put(t, source, "x", content)
	o, err := source.Open(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = o.Close() }()
	other := mem.New("other")
	if _, err := other.Put(t.Context(), "x", strings.NewReader(content), storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	foreign, err := other.Open(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	ranges := []storage.Range{{Off: 5, Len: 200001}, {Off: 0, Len: 3}, {Off: 77, Len: 0}, {Off: int64(len(content)) - 9, Len: 9}}
	var want string
	for _, size := range []int64{0, 200001 + 3 + 9 + 4 + 4*4} {
		want = "head"
		info, err := storage.PutFunc(t.Context(), target, "y", storage.PutOptions{Size: size}, func(w io.Writer) error {
			if storage.RangesOf(w, foreign) != nil {
				t.Error("takes ranges of memory")
			}
			_, err := io.WriteString(w, "head")
			move := storage.RangesOf(w, o)
			for _, r := range ranges {
				_, err2 := io.WriteString(w, "then")
				err = errors.Join(err, move(t.Context(), r), err2)
				want += "then" + content[r.Off:r.Off+r.Len]
			}
			return err
		})
		if err != nil || info.Size != int64(len(want)) {
			t.Errorf("%+v, %v", info, err)
		}
		if got, err := storage.ReadAll(t.Context(), target, "y", 0); err != nil || string(got) != want {
			t.Errorf("%d bytes where %d were written, %v", len(got), len(want), err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		r    storage.Range
		size int64
		want error
	}{
		{t.Context(), storage.Range{Off: 10, Len: int64(len(content))}, 0, io.ErrUnexpectedEOF},
		{t.Context(), storage.Range{Off: 10, Len: 100}, 101, io.ErrUnexpectedEOF},
		{t.Context(), storage.Range{Off: 10, Len: 100}, 99, nil},
		{ctx, storage.Range{Off: 10, Len: 100}, 0, context.Canceled},
	} {
		_, err := storage.PutFunc(t.Context(), target, "z", storage.PutOptions{Size: c.size}, func(w io.Writer) error {
			return storage.RangesOf(w, o)(c.ctx, c.r)
		})
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%+v of %d: %v, want %v", c.r, c.size, err, c.want)
		}
	}
	if got := names(t, target, true); !slices.Equal(got, []string{"y"}) {
		t.Errorf("there is %q", got)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, s storage.Store, recursive bool) (list []string) {
	t.Helper()
	for info, err := range s.List(t.Context(), "", storage.ListOptions{Recursive: recursive}) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, info.Name)
	}
	return list
}

func put(t *testing.T, s storage.Store, name, content string) {
	t.Helper()
	if _, err := s.Put(t.Context(), name, strings.NewReader(content), storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Table format 11.4: replacing or deleting a file that Hadoop wrote takes its checksum sidecar along, and lists don't show it.
func TestSidecars(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, local.Options{})
	sidecar := func(name string) string { return filepath.Join(dir, "p", "."+name+".crc") }
	for _, name := range []string{"replaced", "deleted", "copied over", "kept", ".log"} {
		write(t, filepath.Join(dir, "p", name), "old")
		write(t, sidecar(name), "crc of old")
	}
	write(t, sidecar("orphan"), "crc of a file that somebody removed")
	want := []string{"p/.log", "p/.orphan.crc", "p/copied over", "p/deleted", "p/kept", "p/replaced"}
	if got := names(t, s, true); !slices.Equal(got, want) {
		t.Errorf("list %q, want %q", got, want)
	}
	put(t, s, "p/replaced", "new")
	if err := s.Delete(t.Context(), "p/deleted"); err != nil {
		t.Fatal(err)
	}
	if err := s.Copy(t.Context(), "p/kept", "p/copied over"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "p/kept", nil, storage.PutOptions{IfAbsent: true}); !errors.Is(err, storage.ErrExist) {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "p/orphan", nil, storage.PutOptions{IfAbsent: true}); err != nil {
		t.Fatal(err)
	}
	for name, there := range map[string]bool{"replaced": false, "deleted": false, "copied over": false, "orphan": false, "kept": true, ".log": true} {
		if _, err := os.Lstat(sidecar(name)); (err == nil) != there {
			t.Errorf("the sidecar of %s: %v, want it there: %v", name, err, there)
		}
	}
	if err := storage.RemoveAll(t.Context(), s, "p"); err != nil {
		t.Error(err)
	}
}

// No link may lead a name out of the root, and none inside may hang a list.
func TestLinks(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "secret"), "secret")
	write(t, filepath.Join(dir, "in", "file"), "inside")
	for link, target := range map[string]string{
		"out": outside, "up": "../" + filepath.Base(outside), "secret": filepath.Join(outside, "secret"),
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir, local.Options{})
		name := link
		if link != "secret" {
			name += "/secret"
			if _, err := s.Put(t.Context(), link+"/new", strings.NewReader("x"), storage.PutOptions{}); !errors.Is(err, storage.ErrName) {
				t.Errorf("put through %s: %v, want ErrName", link, err)
			}
			if err := s.Delete(t.Context(), name); !errors.Is(err, storage.ErrName) {
				t.Errorf("delete through %s: %v, want ErrName", link, err)
			}
		}
		if _, err := s.Open(t.Context(), name); !errors.Is(err, storage.ErrName) {
			t.Errorf("open through %s: %v, want ErrName", link, err)
		}
		if _, err := s.Stat(t.Context(), name); !errors.Is(err, storage.ErrName) {
			t.Errorf("stat through %s: %v, want ErrName", link, err)
		}
		var listErr error
		for _, err := range s.List(t.Context(), "", storage.ListOptions{Recursive: true}) {
			listErr = err
		}
		if !errors.Is(listErr, storage.ErrName) {
			t.Errorf("list with %s: %v, want ErrName", link, listErr)
		}
		// Replacing the link itself is no way out.
		put(t, s, link, "x")
		if err := s.Delete(t.Context(), link); err != nil {
			t.Error(err)
		}
	}
	if data, err := os.ReadFile(filepath.Join(outside, "secret")); string(data) != "secret" {
		t.Errorf("the file outside: %q, %v", data, err)
	}

	s := open(t, dir, local.Options{})
	for link, target := range map[string]string{"alias": "in", "dangling": "none", "in/hard": "file"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := names(t, s, true), []string{"alias/file", "alias/hard", "in/file", "in/hard"}; !slices.Equal(got, want) {
		t.Errorf("list %q, want %q", got, want)
	}
	if err := os.Symlink(".", filepath.Join(dir, "in", "loop")); err != nil {
		t.Fatal(err)
	}
	var loop error
	for _, err := range s.List(t.Context(), "", storage.ListOptions{Recursive: true}) {
		loop = err
	}
	if !errors.Is(loop, storage.ErrName) {
		t.Errorf("list with a loop: %v, want ErrName", loop)
	}
}

// What a killed process leaves is no object, and can be cleaned.
func TestStaging(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, local.Options{})
	put(t, s, "p/x", "x")
	left := ".sluice-put-" + storage.NewToken()
	write(t, filepath.Join(dir, "p", left), "half")
	write(t, filepath.Join(dir, "p", ".sluice-put-of-somebody"), "whole")
	if got, want := names(t, s, true), []string{"p/.sluice-put-of-somebody", "p/x"}; !slices.Equal(got, want) {
		t.Errorf("list %q, want %q", got, want)
	}
	if _, err := s.Put(t.Context(), "p/"+left, nil, storage.PutOptions{}); !errors.Is(err, storage.ErrName) {
		t.Errorf("put of a staging name: %v, want ErrName", err)
	}
	if n, err := s.CleanStaging(t.Context(), "", time.Hour); n != 0 || err != nil {
		t.Errorf("cleaned %d young files: %v", n, err)
	}
	if n, err := s.CleanStaging(t.Context(), "", 0); n != 1 || err != nil {
		t.Errorf("cleaned %d files, want 1: %v", n, err)
	}
}

func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "x"), "x")
	s := open(t, dir, local.Options{ReadOnly: true})
	_, err := s.Put(t.Context(), "y", nil, storage.PutOptions{})
	_, cleanErr := s.CleanStaging(t.Context(), "", 0)
	for _, err := range []error{err, cleanErr, s.Delete(t.Context(), "x"), s.Copy(t.Context(), "x", "y")} {
		if !errors.Is(err, storage.ErrPermission) || !strings.Contains(err.Error(), "read-only") {
			t.Errorf("%v, want ErrPermission", err)
		}
	}
	if data, err := storage.ReadAll(t.Context(), s, "x", 0); string(data) != "x" {
		t.Errorf("%q, %v", data, err)
	}
}

// Files where folders should be, and the other way round.
func TestWrongKinds(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, local.Options{})
	put(t, s, "folder/file", "x")
	_, onFolder := s.Put(t.Context(), "folder", nil, storage.PutOptions{})
	_, belowFile := s.Put(t.Context(), "folder/file/x", nil, storage.PutOptions{})
	for _, err := range []error{onFolder, belowFile} {
		if err == nil || errors.Is(err, storage.ErrNotExist) || !strings.Contains(err.Error(), "folder") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := s.Put(t.Context(), "folder", nil, storage.PutOptions{IfAbsent: true}); !errors.Is(err, storage.ErrExist) {
		t.Errorf("put if absent over a folder: %v", err)
	}
	if _, err := local.New(filepath.Join(dir, "folder", "file"), local.Options{}); err == nil {
		t.Error("opened a store in a file")
	}
	long := strings.Repeat("n", 300)
	if _, err := s.Put(t.Context(), long, nil, storage.PutOptions{}); !errors.Is(err, storage.ErrName) {
		t.Errorf("a name too long for the file system: %v", err)
	}
	if got, want := names(t, s, true), []string{"folder/file"}; !slices.Equal(got, want) {
		t.Errorf("list %q, want %q", got, want)
	}
}

func BenchmarkLocal(b *testing.B) {
	storagetest.Benchmark(b, func(b *testing.B) storage.Store { return open(b, b.TempDir(), local.Options{}) })
}
