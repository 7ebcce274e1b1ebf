// Package storagetest is the suite that every back end and every layer of package storage passes. It asks for what the
// comments of storage.Store promise and, where Traits differ, for what the traits say.
package storagetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/sluicelake/sluice/storage"
)

// Run holds the stores that open returns, each new and empty, against the contract. A store must be usable until the end
// of the test that asked for it.
func Run(t *testing.T, open func(t *testing.T) storage.Store, opts ...Option) {
	var chosen options
	for _, set := range opts {
		set(&chosen)
	}
	for _, c := range []struct {
		name string
		test func(*testing.T, *suite)
	}{
		{"round trip", roundTrip},
		{"special names", specialNames},
		{"hostile names", hostileNames},
		{"missing objects", missingObjects},
		{"if absent", ifAbsent},
		{"if absent race", ifAbsentRace},
		{"failed bodies leave nothing", failedBodies},
		{"readers never see a part", readersDuringPut},
		{"list", list},
		{"list order", listOrder},
		{"range reads", rangeReads},
		{"large object", largeObject},
		{"delete", deletes},
		{"copy", copies},
		{"token", tokens},
		{"cancelled context", cancelled},
		{"sub store", subStore},
		{"remove all", removeAll},
		{"writer", writer},
		{"put of a function", putFunc},
		{"errors name the object", errorsNameTheObject},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := ours()
			c.test(t, &suite{T: t, Store: open(t), options: chosen})
			checkLeaks(t, before)
		})
	}
}

// Option of Run.
type Option func(*options)

type options struct{ refused []string }

// Refuses says which of the names that storage.CheckName lets pass the store does not take, because its service would
// confuse them with others. The suite asks that it refuses them with storage.ErrName instead.
func Refuses(names ...string) Option {
	return func(o *options) { o.refused = append(o.refused, names...) }
}

// suite is a store with the calls that must succeed.
type suite struct {
	*testing.T
	storage.Store
	options options
}

// Below lets storage.Locate look through the suite.
func (s *suite) Below(name string) (storage.Store, string, error) { return s.Store, name, nil }

// CopyFrom lets storage.CopyBetween copy into the suite's store.
func (s *suite) CopyFrom(ctx context.Context, source storage.Store, from, to string) (storage.Info, error) {
	return storage.CopyFromBelow(ctx, s.Store, source, from, to)
}

func (s *suite) put(name, content string) storage.Info {
	s.Helper()
	info, err := s.Put(s.Context(), name, strings.NewReader(content), storage.PutOptions{})
	if err != nil {
		s.Fatalf("put %q: %v", name, err)
	}
	if info.Name != name || info.Size != int64(len(content)) || info.Dir {
		s.Errorf("put %q of %d bytes reported %+v", name, len(content), info)
	}
	return info
}

func (s *suite) get(name string) string {
	s.Helper()
	data, err := storage.ReadAll(s.Context(), s, name, 0)
	if err != nil {
		s.Fatalf("get %q: %v", name, err)
	}
	return string(data)
}

func (s *suite) want(name, content string) {
	s.Helper()
	if got := s.get(name); got != content {
		s.Errorf("%q holds %.60q, want %.60q", name, got, content)
	}
}

func (s *suite) wantMissing(name string) {
	s.Helper()
	if _, err := s.Open(s.Context(), name); !errors.Is(err, storage.ErrNotExist) {
		s.Errorf("open %q: %v, want ErrNotExist", name, err)
	}
	if info, err := s.Stat(s.Context(), name); !errors.Is(err, storage.ErrNotExist) {
		s.Errorf("stat %q: %+v, %v, want ErrNotExist", name, info, err)
	}
}

// list returns names, those of folders with a slash at the end.
func (s *suite) list(prefix string, recursive bool) []string {
	s.Helper()
	names := []string{}
	for info, err := range s.List(s.Context(), prefix, storage.ListOptions{Recursive: recursive}) {
		if err != nil {
			s.Fatalf("list %q: %v", prefix, err)
		}
		if info.Dir {
			info.Name += "/"
		}
		names = append(names, info.Name)
	}
	return names
}

func (s *suite) wantList(prefix string, recursive bool, want ...string) {
	s.Helper()
	if got := s.list(prefix, recursive); !slices.Equal(got, want) {
		s.Errorf("list %q, recursive %v:\n got %q\nwant %q", prefix, recursive, got, want)
	}
}

func roundTrip(t *testing.T, s *suite) {
	for _, content := range []string{"", "x", "hello, lake", strings.Repeat("0123456789", 10_000)} {
		info := s.put("dir/object", content)
		s.want("dir/object", content)
		stat, err := s.Stat(t.Context(), "dir/object")
		if err != nil {
			t.Fatal(err)
		}
		if stat.Name != "dir/object" || stat.Size != int64(len(content)) || stat.Dir || stat.ETag != info.ETag {
			t.Errorf("stat reported %+v after put reported %+v", stat, info)
		}
		if age := time.Since(stat.Modified); age < -time.Hour || age > time.Hour {
			t.Errorf("stat reported the time %v", stat.Modified)
		}
		o, err := s.Open(t.Context(), "dir/object")
		if err != nil {
			t.Fatal(err)
		}
		if o.Size() != stat.Size || o.ETag() != stat.ETag {
			t.Errorf("the object has %d bytes and ETag %q, stat %d and %q", o.Size(), o.ETag(), stat.Size, stat.ETag)
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Put(t.Context(), "nil", nil, storage.PutOptions{}); err != nil {
		t.Errorf("put of a nil body: %v", err)
	}
	s.want("nil", "")
	if _, err := storage.ReadAll(t.Context(), s, "dir/object", 10); err == nil {
		t.Error("ReadAll read more than its limit")
	}
}

// The names that partitions and files of real tables have, and the traps between a name, a URL and an XML answer.
var special = []string{
	".hoodie/hoodie.properties",
	".hoodie_partition_metadata",
	".f1-0_20240101000000000.log.1_0-1-1",
	"a b/c d.parquet",
	"city=são paulo/f",
	"city=%E4%B8%AD/f",
	"a%2Fb",
	"percent%",
	"plus+plus",
	"q?x=1&y=2#z",
	"quote'\"<>&;",
	"ü/中文/𝛑",
	"dt=2024-01-01 10:00:00/f",
	"~tilde!$()*,@[]{}|^`",
	"trailing ",
	"dots...",
	"..dots",
	`back\slash`,
}

// names are the special ones that the store takes.
func (s *suite) names() []string {
	return slices.DeleteFunc(slices.Clone(special), func(name string) bool { return slices.Contains(s.options.refused, name) })
}

func specialNames(t *testing.T, s *suite) {
	for _, name := range s.options.refused {
		if _, err := s.Put(t.Context(), name, nil, storage.PutOptions{}); !errors.Is(err, storage.ErrName) {
			t.Errorf("put %q: %v, want ErrName", name, err)
		}
	}
	special := s.names()
	for i, name := range special {
		s.put(name, fmt.Sprint(i))
	}
	for i, name := range special {
		s.want(name, fmt.Sprint(i))
		if info, err := s.Stat(t.Context(), name); err != nil || info.Name != name {
			t.Errorf("stat %q: %+v, %v", name, info, err)
		}
	}
	sorted := slices.Clone(special)
	slices.Sort(sorted)
	s.wantList("", true, sorted...)
	s.wantList("city=%E4%B8%AD", true, "city=%E4%B8%AD/f")
	for _, name := range special {
		if err := s.Copy(t.Context(), name, "copied"); err != nil {
			t.Fatalf("copy %q: %v", name, err)
		}
		s.want("copied", s.get(name))
		if err := s.Delete(t.Context(), name); err != nil {
			t.Fatalf("delete %q: %v", name, err)
		}
		s.wantMissing(name)
	}
	s.wantList("", true, "copied")
}

// Hostile are names that no store may take: from a partition value, a file name in a timeline, or a clean plan.
var Hostile = []string{
	"", "/", "/etc/passwd", "..", "../x", "a/../../x", "a/..", "./x", "a/./x", "a//b", "a/", "//a", "a\x00b",
	`..\x`, `a\..\..\x`, "\xff\xfe", strings.Repeat("n", 5000),
}

func hostileNames(t *testing.T, s *suite) {
	ctx := t.Context()
	s.put("kept", "x")
	for _, name := range Hostile {
		check := func(op string, err error) {
			t.Helper()
			if !errors.Is(err, storage.ErrName) {
				t.Errorf("%s %.40q: %v, want ErrName", op, name, err)
			}
		}
		_, err := s.Open(ctx, name)
		check("open", err)
		_, err = s.Put(ctx, name, strings.NewReader("x"), storage.PutOptions{})
		check("put", err)
		_, err = s.Put(ctx, name, strings.NewReader("x"), storage.PutOptions{IfAbsent: true})
		check("put if absent", err)
		_, err = s.Stat(ctx, name)
		check("stat", err)
		check("delete", s.Delete(ctx, name))
		check("copy from", s.Copy(ctx, name, "copied"))
		check("copy to", s.Copy(ctx, "kept", name))
		if name == "" {
			continue // the root is a fine prefix
		}
		err = nil
		for _, e := range s.List(ctx, name, storage.ListOptions{}) {
			err = e
		}
		check("list", err)
	}
	s.wantList("", true, "kept")
}

func missingObjects(t *testing.T, s *suite) {
	s.wantMissing("no/such/object")
	s.put("folder/object", "x")
	s.wantMissing("folder/none")
	s.wantMissing("folder/object/below")
	s.wantMissing("fold")
	if _, err := s.Open(t.Context(), "folder"); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("open of a folder: %v, want ErrNotExist", err)
	}
	info, err := s.Stat(t.Context(), "folder")
	if s.Traits().Dirs {
		if err != nil || !info.Dir || info.Size != 0 || info.Name != "folder" {
			t.Errorf("stat of a folder: %+v, %v", info, err)
		}
	} else if !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("stat of a folder: %+v, %v, want ErrNotExist", info, err)
	}
	s.wantList("no/such", true)
	s.wantList("no/such", false)
	s.wantList("folder/object", true)
	if err := s.Copy(t.Context(), "none", "copied"); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("copy of nothing: %v, want ErrNotExist", err)
	}
}

func ifAbsent(t *testing.T, s *suite) {
	opts := storage.PutOptions{IfAbsent: true}
	if _, err := s.Put(t.Context(), "dir/once", strings.NewReader("first"), opts); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"second", "first", ""} {
		if _, err := s.Put(t.Context(), "dir/once", strings.NewReader(content), opts); !errors.Is(err, storage.ErrExist) {
			t.Errorf("put if absent of %q over an object: %v, want ErrExist", content, err)
		}
	}
	s.want("dir/once", "first")
	if err := s.Delete(t.Context(), "dir/once"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "dir/once", strings.NewReader("again"), opts); err != nil {
		t.Errorf("put if absent after delete: %v", err)
	}
	s.want("dir/once", "again")
	s.wantList("", true, "dir/once")
}

// 32 writers put the same name at once, half of them the same bytes: exactly one wins, and its bytes are there.
func ifAbsentRace(t *testing.T, s *suite) {
	if !s.Traits().AtomicIfAbsent {
		t.Log("the store does not promise one winner")
		return
	}
	const writers = 32
	for round := range 3 {
		name := fmt.Sprintf(".hoodie/%d.commit", round)
		var winners []string
		var mu sync.Mutex
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i := range writers {
			wg.Go(func() {
				content := strings.Repeat(fmt.Sprintf("writer %02d;", i/2), 500*(round+1))
				<-start
				_, err := s.Put(t.Context(), name, strings.NewReader(content), storage.PutOptions{IfAbsent: true})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					winners = append(winners, content)
				case !errors.Is(err, storage.ErrExist) && !errors.Is(err, storage.ErrTemporary):
					t.Errorf("a loser got %v, want ErrExist", err)
				}
			})
		}
		close(start)
		wg.Wait()
		if len(winners) != 1 {
			t.Fatalf("round %d: %d writers won", round, len(winners))
		}
		s.want(name, winners[0])
	}
	s.wantList(".hoodie", true, ".hoodie/0.commit", ".hoodie/1.commit", ".hoodie/2.commit")
}

var errBody = errors.New("the source broke")

func failedBodies(t *testing.T, s *suite) {
	s.put("old", "old content")
	bodies := map[string]struct {
		body io.Reader
		opts storage.PutOptions
	}{
		"error at once":     {iotest.ErrReader(errBody), storage.PutOptions{}},
		"error in the body": {io.MultiReader(strings.NewReader("half"), iotest.ErrReader(errBody)), storage.PutOptions{}},
		"error late":        {io.MultiReader(bytes.NewReader(make([]byte, 21<<20)), iotest.ErrReader(errBody)), storage.PutOptions{}},
		"too short":         {strings.NewReader("half"), storage.PutOptions{Size: 8}},
		"too long":          {strings.NewReader("twice over"), storage.PutOptions{Size: 5}},
	}
	for name, b := range bodies {
		for _, target := range []string{"new", "old"} {
			body, again := b.body, b.body
			if seeker, ok := b.body.(io.Seeker); ok {
				_, _ = seeker.Seek(0, io.SeekStart)
			} else {
				body, again = rebuilt(name)
			}
			_, err := s.Put(t.Context(), target, body, b.opts)
			if err == nil {
				t.Errorf("%s: put over %q succeeded", name, target)
			}
			if strings.HasPrefix(name, "error") && !errors.Is(err, errBody) {
				t.Errorf("%s: %v, want the error of the body", name, err)
			}
			if target == "new" {
				b.opts.IfAbsent = true
				if seeker, ok := again.(io.Seeker); ok {
					_, _ = seeker.Seek(0, io.SeekStart)
				}
				if _, err := s.Put(t.Context(), target, again, b.opts); err == nil || errors.Is(err, storage.ErrExist) {
					t.Errorf("%s: put if absent: %v", name, err)
				}
				b.opts.IfAbsent = false
				s.wantMissing("new")
			}
		}
		s.want("old", "old content")
	}
	s.wantList("", true, "old")
}

// rebuilt makes a body that fails twice over, since one that was read is spent.
func rebuilt(name string) (io.Reader, io.Reader) {
	build := func() io.Reader {
		switch name {
		case "error in the body":
			return io.MultiReader(strings.NewReader("half"), iotest.ErrReader(errBody))
		case "error late":
			return io.MultiReader(bytes.NewReader(make([]byte, 21<<20)), iotest.ErrReader(errBody))
		}
		return iotest.ErrReader(errBody)
	}
	return build(), build()
}

// While an object is replaced again and again, every reader sees one of its contents, whole.
func readersDuringPut(t *testing.T, s *suite) {
	contents := map[string]bool{}
	var versions []string
	for i := range 8 {
		v := strings.Repeat(fmt.Sprintf("version %d|", i), 20_000+1000*i)
		versions = append(versions, v)
		contents[v] = true
	}
	s.put("hot", versions[0])
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				data, err := storage.ReadAll(t.Context(), s, "hot", 0)
				switch {
				case errors.Is(err, storage.ErrChanged): // replaced between Open and ReadAt: a clean answer
				case err != nil:
					t.Errorf("reader: %v", err)
					return
				case !contents[string(data)]:
					t.Errorf("a reader saw %d bytes that nobody put", len(data))
					return
				}
			}
		})
	}
	func() {
		defer wg.Wait()
		defer close(stop)
		for i := range 24 {
			s.put("hot", versions[i%len(versions)])
		}
	}()
	s.wantList("", true, "hot")
}

func list(t *testing.T, s *suite) {
	names := []string{"a/1", "a/2", "a/b/3", "a/b/c/4", "ab/5", "abc", "z"}
	for _, n := range names {
		s.put(n, n)
	}
	s.wantList("", true, names...)
	s.wantList("", false, "a/", "ab/", "abc", "z")
	s.wantList("a", true, "a/1", "a/2", "a/b/3", "a/b/c/4")
	s.wantList("a", false, "a/1", "a/2", "a/b/")
	s.wantList("a/b", false, "a/b/3", "a/b/c/")
	s.wantList("ab", true, "ab/5")
	s.wantList("abc", true)
	s.wantList("a/b/c", true, "a/b/c/4")
	for info, err := range s.List(t.Context(), "a", storage.ListOptions{}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case info.Dir && (info.Size != 0 || info.Name != "a/b"), !info.Dir && info.Size != int64(len(info.Name)):
			t.Errorf("list reported %+v", info)
		case !info.Dir:
			stat, err := s.Stat(t.Context(), info.Name)
			if err != nil || stat.ETag != info.ETag || stat.Modified.Sub(info.Modified).Abs() > 2*time.Second {
				t.Errorf("list reported %+v, stat %+v, %v", info, stat, err)
			}
		}
	}
	n := 0
	for _, err := range s.List(t.Context(), "", storage.ListOptions{Recursive: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("stopped after %d of 2", n)
	}
	// A List may be run while the store changes.
	for info, err := range s.List(t.Context(), "", storage.ListOptions{Recursive: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), info.Name); err != nil {
			t.Fatal(err)
		}
	}
	s.wantList("", true)
}

// Names whose order differs when a folder counts with or without its slash, and more than one page of a thousand.
func listOrder(_ *testing.T, s *suite) {
	names := []string{"p/a!", "p/a-b/x", "p/a.txt", "p/a/x", "p/a/y", "p/a0", "p/aa", "p/ü", "p/中", "p/\U0001d6d1"}
	for _, n := range names {
		s.put(n, "")
	}
	s.wantList("p", true, names...)
	s.wantList("p", false, "p/a/", "p/a!", "p/a-b/", "p/a.txt", "p/a0", "p/aa", "p/ü", "p/中", "p/\U0001d6d1")
	many := make([]string, 1203)
	for i := range many {
		many[i] = fmt.Sprintf("many/%02d/%04d", i%7, i)
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := w; i < len(many); i += 8 {
				if _, err := s.Put(s.Context(), many[i], nil, storage.PutOptions{}); err != nil {
					s.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	slices.Sort(many)
	s.wantList("many", true, many...)
	s.wantList("many", false, "many/00/", "many/01/", "many/02/", "many/03/", "many/04/", "many/05/", "many/06/")
}

func rangeReads(t *testing.T, s *suite) {
	content := make([]byte, 100_000)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(content)
	s.put("ranges", string(content))
	s.put("empty", "")
	o, err := s.Open(t.Context(), "ranges")
	if err != nil {
		t.Fatal(err)
	}
	size := len(content)
	for _, r := range []struct{ off, n int }{
		{0, 0}, {0, 1}, {0, size}, {1, size - 1}, {size - 1, 1}, {size - 8, 8}, {32<<10 - 1, 2}, {32 << 10, 1}, {size, 0},
		{50_000, 12_345}, {0, size + 1}, {size - 1, 2}, {size, 1}, {size + 1000, 5},
	} {
		p := make([]byte, r.n)
		n, err := o.ReadAt(t.Context(), p, int64(r.off))
		want := content[min(r.off, size):min(r.off+r.n, size)]
		if n != len(want) || !bytes.Equal(p[:n], want) {
			t.Errorf("ReadAt(%d bytes at %d) gave %d bytes", r.n, r.off, n)
		}
		if n < r.n && err != io.EOF || n == r.n && err != nil && err != io.EOF {
			t.Errorf("ReadAt(%d bytes at %d): %v", r.n, r.off, err)
		}
	}
	if _, err := o.ReadAt(t.Context(), make([]byte, 1), -1); err == nil || err == io.EOF {
		t.Errorf("ReadAt(-1): %v", err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			p := make([]byte, 5000)
			if _, err := o.ReadAt(t.Context(), p, int64(i*11_000)); err != nil || !bytes.Equal(p, content[i*11_000:i*11_000+5000]) {
				t.Errorf("parallel read %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	short := s.put("short", string(content[:2000]))
	small, err := s.Open(t.Context(), short.Name)
	if err != nil {
		t.Fatal(err)
	}
	file := storage.ReaderAt(t.Context(), small)
	if err := iotest.TestReader(file, content[:2000]); err != nil {
		t.Error(err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	pre, err := storage.Prefetch(t.Context(), o, []storage.Range{{Off: 90_000, Len: 20_000}, {Off: 10, Len: 5}, {Off: 40_000, Len: 10}},
		storage.PrefetchOptions{Gap: 1000, Max: 4000})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range [][2]int{{10, 5}, {11, 4}, {40_000, 10}, {39_999, 11}, {90_000, 10_000}, {99_999, 1}, {0, 20}} {
		p := make([]byte, r[1])
		if _, err := pre.ReadAt(t.Context(), p, int64(r[0])); err != nil || !bytes.Equal(p, content[r[0]:r[0]+r[1]]) {
			t.Errorf("prefetched read %v: %v", r, err)
		}
	}
	if err := pre.Close(); err != nil {
		t.Error(err)
	}
	empty, err := s.Open(t.Context(), "empty")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := empty.ReadAt(t.Context(), make([]byte, 1), 0); n != 0 || err != io.EOF {
		t.Errorf("read of an empty object: %d, %v, want 0 and EOF", n, err)
	}
	if err := empty.Close(); err != nil {
		t.Error(err)
	}
	// An open object whose content is replaced gives its old bytes or says that it changed; never the new ones.
	if o, err = s.Open(t.Context(), "ranges"); err != nil {
		t.Fatal(err)
	}
	s.put("ranges", strings.Repeat("x", size))
	p := make([]byte, 1000)
	if _, err := o.ReadAt(t.Context(), p, 60_000); err == nil && !bytes.Equal(p, content[60_000:61_000]) || err != nil && !errors.Is(err, storage.ErrChanged) {
		t.Errorf("read of a replaced object: %v; the old bytes: %v", err, bytes.Equal(p, content[60_000:61_000]))
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

// A body of unknown length that an object store takes in parts, and a known one; also if absent.
func largeObject(t *testing.T, s *suite) {
	const size = 21<<20 + 13
	body := func() io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{1}), size) }
	want := sha256.New()
	_, _ = io.Copy(want, body())
	for i, opts := range []storage.PutOptions{{}, {Size: size}, {IfAbsent: true}} {
		name := fmt.Sprintf("large/%d.parquet", i)
		info, err := s.Put(t.Context(), name, body(), opts)
		if err != nil {
			t.Fatal(err)
		}
		stat, err := s.Stat(t.Context(), name)
		if err != nil || info.Size != size || stat.Size != size || info.ETag != stat.ETag {
			t.Errorf("put reported %+v, stat %+v, %v", info, stat, err)
		}
		o, err := s.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		got := sha256.New()
		if _, err := io.Copy(got, storage.ReaderAt(t.Context(), o)); err != nil {
			t.Error(err)
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
			t.Errorf("%s came back different", name)
		}
	}
	if _, err := s.Put(t.Context(), "large/0.parquet", body(), storage.PutOptions{IfAbsent: true}); !errors.Is(err, storage.ErrExist) {
		t.Errorf("a large put if absent over an object: %v, want ErrExist", err)
	}
	s.wantList("", true, "large/0.parquet", "large/1.parquet", "large/2.parquet")
}

func deletes(t *testing.T, s *suite) {
	s.put("d/1", "x")
	s.put("d/2", "x")
	for range 2 {
		if err := s.Delete(t.Context(), "d/1"); err != nil {
			t.Errorf("delete: %v", err)
		}
	}
	for _, never := range []string{"never", "never/there", "d/2/below"} {
		if err := s.Delete(t.Context(), never); err != nil {
			t.Errorf("delete of %q, which is not there: %v", never, err)
		}
	}
	s.wantMissing("d/1")
	s.wantList("", true, "d/2")
	err := s.Delete(t.Context(), "d")
	if s.Traits().Dirs && err == nil {
		t.Error("deleted a folder that is not empty")
	}
	s.want("d/2", "x")
}

func copies(t *testing.T, s *suite) {
	s.put("from", "content")
	s.put("to", "old")
	for _, to := range []string{"to", "new/deep/object", "from"} {
		if err := s.Copy(t.Context(), "from", to); err != nil {
			t.Fatalf("copy to %q: %v", to, err)
		}
		s.want(to, "content")
	}
	s.put("from", "changed")
	s.want("to", "content")
	s.wantList("", true, "from", "new/deep/object", "to")
}

func tokens(t *testing.T, s *suite) {
	token := storage.NewToken()
	if _, err := s.Put(t.Context(), "x", strings.NewReader("x"), storage.PutOptions{Token: token}); err != nil {
		t.Fatal(err)
	}
	info, err := s.Stat(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if s.Traits().Tokens && info.Token != token || !s.Traits().Tokens && info.Token != "" {
		t.Errorf("token %q was stored, stat tells %q", token, info.Token)
	}
	s.put("x", "y")
	if info, err = s.Stat(t.Context(), "x"); err != nil || info.Token == token {
		t.Errorf("after another put stat tells the old token: %v", err)
	}
}

func cancelled(t *testing.T, s *suite) {
	s.put("x", "content")
	o, err := s.Open(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check := func(op string, err error) {
		t.Helper()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", op, err)
		}
	}
	_, err = s.Open(ctx, "x")
	check("open", err)
	_, err = o.ReadAt(ctx, make([]byte, 3), 0)
	check("read", err)
	_, err = s.Put(ctx, "y", strings.NewReader("y"), storage.PutOptions{})
	check("put", err)
	_, err = s.Stat(ctx, "x")
	check("stat", err)
	check("delete", s.Delete(ctx, "x"))
	check("copy", s.Copy(ctx, "x", "y"))
	err = nil
	for _, e := range s.List(ctx, "", storage.ListOptions{}) {
		err = e
	}
	check("list", err)
	if err := o.Close(); err != nil {
		t.Error(err)
	}

	ctx, cancel = context.WithCancel(t.Context())
	body := io.MultiReader(strings.NewReader("half"), readerFunc(func([]byte) (int, error) { cancel(); return 0, nil }))
	_, err = s.Put(ctx, "y", body, storage.PutOptions{})
	check("put, cancelled midway", err)
	s.wantList("", true, "x")
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func subStore(t *testing.T, s *suite) {
	s.put("outside", "secret")
	s.put("table2/x", "other table")
	inner, err := storage.Sub(s, "table")
	if err != nil {
		t.Fatal(err)
	}
	in := &suite{T: t, Store: inner}
	in.put("p/1", "one")
	in.wantList("", true, "p/1")
	in.wantList("p", false, "p/1")
	in.wantMissing("outside")
	if err := in.Copy(t.Context(), "p/1", "p/2"); err != nil {
		t.Error(err)
	}
	if stat, err := in.Stat(t.Context(), "p/2"); err != nil || stat.Name != "p/2" {
		t.Errorf("stat: %+v, %v", stat, err)
	}
	hostileNames(t, &suite{T: t, Store: must(t, inner, "deeper")})
	if err := in.Delete(t.Context(), "p/2"); err != nil {
		t.Error(err)
	}
	s.wantList("", true, "outside", "table/deeper/kept", "table/p/1", "table2/x")
	for _, name := range Hostile {
		if _, err := storage.Sub(s, name); name != "" && !errors.Is(err, storage.ErrName) {
			t.Errorf("a store below %.40q: %v, want ErrName", name, err)
		}
	}
}

func must(t *testing.T, s storage.Store, prefix string) storage.Store {
	t.Helper()
	inner, err := storage.Sub(s, prefix)
	if err != nil {
		t.Fatal(err)
	}
	return inner
}

func removeAll(t *testing.T, s *suite) {
	for _, n := range []string{"t/1", "t/a/2", "t/a/b/3", "t2/4"} {
		s.put(n, n)
	}
	for range 2 {
		if err := storage.RemoveAll(t.Context(), s, "t"); err != nil {
			t.Fatal(err)
		}
	}
	s.wantList("", false, "t2/")
	s.wantList("", true, "t2/4")
	s.wantMissing("t")
	if err := storage.RemoveAll(t.Context(), s, ""); err != nil {
		t.Fatal(err)
	}
	s.wantList("", false)
	s.put("t/again", "x")
}

func writer(t *testing.T, s *suite) {
	w := storage.Create(t.Context(), s, "w/1", storage.PutOptions{IfAbsent: true})
	for i := range 1000 {
		if _, err := fmt.Fprintf(w, "line %d\n", i); err != nil {
			t.Fatal(err)
		}
	}
	s.wantMissing("w/1")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	if got := s.get("w/1"); !strings.HasSuffix(got, "line 999\n") || w.Info().Size != int64(len(got)) {
		t.Errorf("%d bytes were stored, Info tells %+v", len(got), w.Info())
	}
	w = storage.Create(t.Context(), s, "w/2", storage.PutOptions{})
	_, _ = io.WriteString(w, "half")
	w.Abort()
	if err := w.Close(); err == nil {
		t.Error("close after abort succeeded")
	}
	s.wantMissing("w/2")
	w = storage.Create(t.Context(), s, "w/1", storage.PutOptions{IfAbsent: true})
	_, _ = io.WriteString(w, "loser")
	if err := w.Close(); !errors.Is(err, storage.ErrExist) {
		t.Errorf("a second writer: %v, want ErrExist", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w = storage.Create(ctx, s, "w/3", storage.PutOptions{})
	_, _ = io.WriteString(w, "half")
	cancel()
	w.Abort()
	if err := w.Close(); !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "aborted") {
		t.Errorf("close after cancel: %v", err)
	}
	s.wantList("", true, "w/1")
}

func putFunc(t *testing.T, s *suite) {
	write := func(pieces ...string) func(io.Writer) error {
		return func(w io.Writer) error {
			for _, p := range pieces {
				if _, err := io.WriteString(w, p); err != nil {
					return err
				}
			}
			return nil
		}
	}
	long := strings.Repeat("some of a long piece. ", 10000)
	info, err := storage.PutFunc(t.Context(), s, "f/1", storage.PutOptions{IfAbsent: true}, write("one, ", long, "", "end"))
	if content := "one, " + long + "end"; err != nil || info.Name != "f/1" || info.Size != int64(len(content)) {
		t.Errorf("%+v, %v", info, err)
	} else {
		s.want("f/1", content)
	}
	if _, err := storage.PutFunc(t.Context(), s, "f/2", storage.PutOptions{}, write()); err != nil {
		t.Error(err)
	}
	s.want("f/2", "")
	if _, err := storage.PutFunc(t.Context(), s, "f/1", storage.PutOptions{IfAbsent: true}, write("loser")); !errors.Is(err, storage.ErrExist) {
		t.Errorf("a second one: %v, want ErrExist", err)
	}
	own := errors.New("own")
	_, err = storage.PutFunc(t.Context(), s, "f/3", storage.PutOptions{}, func(w io.Writer) error { return errors.Join(write("half")(w), own) })
	if err == nil || err.Error() != own.Error() {
		t.Errorf("%v, want the error of the function as it is", err)
	}
	for _, size := range []int64{7, 9} {
		if _, err := storage.PutFunc(t.Context(), s, "f/3", storage.PutOptions{Size: size}, write("8 ", "bytes.")); err == nil {
			t.Errorf("8 bytes stored as %d", size)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = storage.PutFunc(ctx, s, "f/3", storage.PutOptions{}, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		cancel()
		return write("other half")(w)
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled while it was written: %v", err)
	}
	if _, err := storage.PutFunc(ctx, s, "f/3", storage.PutOptions{}, write()); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	s.wantList("", true, "f/1", "f/2")
}

func errorsNameTheObject(t *testing.T, s *suite) {
	_, err := s.Open(t.Context(), "some/object")
	var e *storage.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v (%T) is no *storage.Error", err, err)
	}
	if e.Op != "open" || storage.Join(e.URL, e.Name) != storage.Join(s.URL(), "some/object") || !strings.Contains(err.Error(), "some/object") {
		t.Errorf("the error is %+v", e)
	}
}

// ours counts goroutines that run code of the storage packages, tests and servers left out.
func ours() int {
	buf := make([]byte, 1<<20)
	n := 0
	for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if (strings.Contains(g, "sluice/storage") || strings.Contains(g, "transfermanager")) && !strings.Contains(g, "testing.tRunner") &&
			!strings.Contains(g, "s3test.") && !strings.Contains(g, "testing.(*M)") && !strings.Contains(g, "testing.RunTests") {
			n++
		}
	}
	return n
}

func checkLeaks(t *testing.T, before int) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Second); ours() > before; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Errorf("%d goroutines were left running:\n%s", ours()-before, buf[:runtime.Stack(buf, true)])
			return
		}
	}
}
