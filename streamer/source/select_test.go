package source

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/open"
)

// folder is a source folder of a test.
type folder struct {
	t     *testing.T
	dir   string
	store storage.Store
}

func newFolder(t *testing.T) *folder {
	t.Helper()
	f := &folder{t: t, dir: filepath.Join(t.TempDir(), "in")}
	if err := os.MkdirAll(f.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	var err error
	if f.store, err = open.Store(t.Context(), f.dir, open.Options{}); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *folder) put(name, text string, millis int64) {
	f.t.Helper()
	path := filepath.Join(f.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		f.t.Fatal(err)
	}
	at := time.UnixMilli(millis)
	if err := os.Chtimes(path, at, at); err != nil {
		f.t.Fatal(err)
	}
}

func names(s Selection) string {
	var out []string
	for _, f := range s.Files {
		out = append(out, f.Name)
	}
	return strings.Join(out, " ")
}

// The cases of the original's unit test and of tools C.7; where the original starves (a first file larger than the limit), the
// first time group is taken.
func TestSelect(t *testing.T) {
	f := newFolder(t)
	for _, name := range []string{".checkpoint/3", "_checkpoint/3", ".3", "_3", "foo/.bar/3", "foo/_bar/3"} {
		f.put(name, "hidden", 5)
	}
	f.put("zero", "", 50)
	f.put("b", "0123456789", 1000)
	f.put("a", "0123456789", 2000)
	f.put("t2", "0123456789", 3000)
	f.put("t1", "0123456789", 3000)
	f.put("t3", "0123456789", 3000)
	f.put("foo/bar/3", "0123456789", 4000)
	for _, c := range []struct {
		from  string
		limit int64
		want  string
		next  string
		left  int
	}{
		{"", NoLimit, "b a t1 t2 t3 foo/bar/3", "4000", 0},
		{"", 5, "b", "1000", 5},
		{"", 20, "b", "1000", 5},                  // two files reach the limit
		{"", 21, "b a", "2000", 4},                // and stay below it
		{"", 31, "b a t1 t2 t3", "3000", 1},       // one time is never parted
		{"2000", 5, "t1 t2 t3", "3000", 1},        //
		{"3000", NoLimit, "foo/bar/3", "4000", 0}, //
		{"4000", NoLimit, "", "4000", 0},          // nothing new: the old checkpoint
		{"3999", NoLimit, "foo/bar/3", "4000", 0}, //
		{"2000", NoLimit, "t1 t2 t3 foo/bar/3", "4000", 0},
		{"-9223372036854775808", 21, "b a", "2000", 4}, // what the original stores of an empty folder
		{"1000|b", 20, "a", "2000", 4},
	} {
		s, err := Selector{Store: f.store}.Select(t.Context(), Cursor{Checkpoint: c.from}, c.limit)
		if err != nil {
			t.Fatal(err)
		}
		if names(s) != c.want || s.Next.Checkpoint != c.next || s.Left != c.left {
			t.Errorf("after %q with limit %d: %q, next %q, left %d; want %q, %q, %d", c.from, c.limit, names(s), s.Next.Checkpoint, s.Left, c.want, c.next, c.left)
		}
	}
	if _, err := (Selector{Store: f.store}).Select(t.Context(), Cursor{Checkpoint: "abc"}, NoLimit); err == nil || !strings.Contains(err.Error(), `For input string: "abc"`) {
		t.Errorf("checkpoint abc: %v", err)
	}
	gone, err := open.Store(t.Context(), f.dir+"-gone", open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (Selector{Store: gone}).Select(t.Context(), Cursor{}, NoLimit); err == nil || !strings.Contains(err.Error(), "in-gone does not exist") {
		t.Errorf("no folder: %v", err)
	}
}

// A file that shows up later under the time of the checkpoint, or an older one, is lost to the original and found in strict
// mode, once.
func TestStrictFindsLateFiles(t *testing.T) {
	f := newFolder(t)
	f.put("a", "a", 100_000)
	f.put("b", "b", 200_000)
	strict := Selector{Store: f.store, Strict: true, Window: 150 * time.Second}
	round := func(s Selector, from Cursor, want string, late int) Cursor {
		t.Helper()
		got, err := s.Select(t.Context(), from, NoLimit)
		if err != nil {
			t.Fatal(err)
		}
		if names(got) != want || got.Late != late {
			t.Errorf("after %+v: %q with %d late, want %q with %d", from, names(got), got.Late, want, late)
		}
		return got.Next
	}
	cursor := round(strict, Cursor{}, "a b", 0)
	cursor = round(strict, cursor, "", 0)
	f.put("same", "s", 200_000)
	f.put("older", "o", 60_000)
	f.put("outside", "x", 40_000) // before the window
	round(Selector{Store: f.store}, Cursor{Checkpoint: cursor.Checkpoint}, "", 0)
	cursor = round(strict, cursor, "older same", 2)
	if cursor.Checkpoint != "200000" {
		t.Errorf("checkpoint %s", cursor.Checkpoint)
	}
	cursor = round(strict, cursor, "", 0)
	f.put("c", "c", 300_000)
	cursor = round(strict, cursor, "c", 0)
	f.put("b", "changed", 200_000) // of another size: another file
	cursor = round(strict, cursor, "b", 1)
	round(strict, cursor, "", 0)
	// The original streamer ran in between and kept the time alone: what is not newer was read.
	round(strict, Cursor{Checkpoint: "200000"}, "c", 0)
	// Without a window nothing is too late.
	round(Selector{Store: f.store, Strict: true}, round(Selector{Store: f.store, Strict: true}, Cursor{}, "outside older a b same c", 0), "", 0)
}

func TestSettle(t *testing.T) {
	f := newFolder(t)
	f.put("a", "a", 100_000)
	f.put("b", "b", 104_000)
	s, err := Selector{Store: f.store, Settle: 5 * time.Second, Now: func() time.Time { return time.UnixMilli(106_000) }}.Select(t.Context(), Cursor{}, NoLimit)
	if err != nil || names(s) != "a" || s.Waiting != 1 || s.Next.Checkpoint != "100000" {
		t.Errorf("%q, %d wait, next %q, %v", names(s), s.Waiting, s.Next.Checkpoint, err)
	}
}

func TestSelectByDate(t *testing.T) {
	f := newFolder(t)
	for i, day := range []string{"2020-01-18", "2020-01-19", "2020-01-20", "2020-01-21"} {
		f.put("eu/dt="+day+"/x/f", "x", int64(1000+i))
	}
	f.put("eu/loose", "x", 1000)
	today := time.Date(2020, 1, 20, 13, 0, 0, 0, time.UTC)
	s, err := Selector{Store: f.store, Dates: &Dates{Depth: 2, Lookback: 1, Today: today}}.Select(t.Context(), Cursor{}, NoLimit)
	if err != nil || names(s) != "eu/dt=2020-01-19/x/f eu/dt=2020-01-20/x/f" {
		t.Errorf("%q, %v", names(s), err)
	}
	_, err = Selector{Store: f.store, Dates: &Dates{Depth: 1, Today: today}}.Select(t.Context(), Cursor{}, NoLimit)
	if err == nil || !strings.Contains(err.Error(), `"eu" is no date of the form yyyy-MM-dd`) {
		t.Errorf("a folder that is no date: %v", err)
	}
}

// BenchmarkIdle is a round that finds nothing new among many old files.
func BenchmarkIdle(b *testing.B) {
	dir := b.TempDir()
	const files = 100_000
	for i := range files {
		if i < 100 {
			if err := os.Mkdir(filepath.Join(dir, fmt.Sprint(i)), 0o777); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i%100), fmt.Sprintf("f%d.json", i)), []byte("{}"), 0o666); err != nil {
			b.Fatal(err)
		}
	}
	store, err := open.Store(b.Context(), dir, open.Options{})
	if err != nil {
		b.Fatal(err)
	}
	from := Cursor{Checkpoint: fmt.Sprint(time.Now().Add(time.Hour).UnixMilli())}
	for b.Loop() {
		s, err := Selector{Store: store}.Select(b.Context(), from, NoLimit)
		if err != nil || s.Listed != files || len(s.Files) != 0 {
			b.Fatal(s.Listed, err)
		}
	}
	b.ReportMetric(float64(files*b.N)/b.Elapsed().Seconds(), "files/s")
}
