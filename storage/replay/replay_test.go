package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/count"
	"github.com/sluicelake/sluice/storage/mem"
	"github.com/sluicelake/sluice/storage/replay"
	"github.com/sluicelake/sluice/storage/s3/s3test"
	"github.com/sluicelake/sluice/storage/storagetest"
)

func TestARecorderIsAStore(t *testing.T) {
	storagetest.Run(t, func(*testing.T) storage.Store { return replay.Record(mem.New("t")) })
}

func TestAStoreWithItsFenceIsAStore(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Store {
		below := mem.New("t")
		put(t, below, "fence", "")
		inner, err := storage.Sub(replay.Fenced(below, "fence"), "inner")
		if err != nil {
			t.Fatal(err)
		}
		return inner
	})
}

func put(t *testing.T, s storage.Store, name, text string) {
	t.Helper()
	if _, err := s.Put(t.Context(), name, strings.NewReader(text), storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
}

// view is everything that a reader of the table "t" asks.
func view(t *testing.T, s storage.Store) []any {
	t.Helper()
	var out []any
	for _, recursive := range []bool{false, true} {
		for info, err := range s.List(t.Context(), "t", storage.ListOptions{Recursive: recursive}) {
			if err != nil {
				t.Fatal(err)
			}
			info.Modified = info.Modified.UTC()
			out = append(out, info)
		}
	}
	for _, name := range []string{"t/a", "t/new"} {
		text, err := storage.ReadAll(t.Context(), s, name, 0)
		_, statErr := s.Stat(t.Context(), name)
		out = append(out, string(text), errors.Is(err, storage.ErrNotExist), errors.Is(statErr, storage.ErrNotExist))
	}
	return out
}

// What was seen once is seen again, in another process, although everything has changed meanwhile; and it costs no request.
func TestReplayedAnswersAreTheOldOnes(t *testing.T) {
	below := mem.New("w")
	put(t, below, "t/a", "first")
	put(t, below, "t/p/b", "second")
	recorder := replay.Record(below)
	want := view(t, recorder)
	text, err := json.Marshal(recorder.Stop())
	if err != nil {
		t.Fatal(err)
	}

	put(t, below, "t/a", "changed!")
	put(t, below, "t/new", "late")
	if err := below.Delete(t.Context(), "t/p/b"); err != nil {
		t.Fatal(err)
	}
	if reflect.DeepEqual(view(t, below), want) {
		t.Fatal("the view does not see the change")
	}
	var answers replay.Answers
	if err := json.Unmarshal(text, &answers); err != nil {
		t.Fatal(err)
	}
	var requests count.Counter
	if got := view(t, replay.Replay(count.New(below, &requests), answers)); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if n := requests.Stats().Requests(); n != 0 {
		t.Errorf("%v were asked below", requests.Stats())
	}
}

// What was not read before comes from the object itself, if it still is the same.
func TestUnreadPartsOfAReplayedObject(t *testing.T) {
	below := mem.New("w")
	put(t, below, "a", "0123456789")
	recorder := replay.Record(below)
	read := func(s storage.Store, off int64, n int) (string, error) {
		o, err := s.Open(t.Context(), "a")
		if err != nil {
			return "", err
		}
		defer func() { _ = o.Close() }()
		p := make([]byte, n)
		n, err = o.ReadAt(t.Context(), p, off)
		return string(p[:n]), err
	}
	if got, err := read(recorder, 2, 3); got != "234" || err != nil {
		t.Fatal(got, err)
	}
	played := replay.Replay(below, recorder.Stop())
	for _, c := range []struct {
		off  int64
		n    int
		want string
		err  error
	}{{2, 3, "234", nil}, {3, 1, "3", nil}, {2, 4, "2345", nil}, {8, 5, "89", io.EOF}, {10, 1, "", io.EOF}} {
		if got, err := read(played, c.off, c.n); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%d bytes from %d: %q, %v", c.n, c.off, got, err)
		}
	}
	put(t, below, "a", "another one")
	if got, err := read(played, 2, 3); got != "234" || err != nil {
		t.Errorf("after the change: %q, %v", got, err)
	}
	if got, err := read(played, 0, 5); !errors.Is(err, storage.ErrChanged) {
		t.Errorf("an unread part after the change: %q, %v", got, err)
	}
}

// A writer that is late puts nothing, whatever the size of its body and however it is sent.
func TestNothingAppearsBehindTheFence(t *testing.T) {
	s3 := s3test.Start(t).Store(t)
	for name, below := range map[string]storage.Store{"mem": mem.New("w"), "S3": s3} {
		put(t, below, "fence", "")
		fenced := replay.Fenced(below, "fence")
		big := bytes.Repeat([]byte("x"), 20<<20) // several parts
		bodies := map[string]func() (io.Reader, int64){
			"stream":       func() (io.Reader, int64) { return io.MultiReader(bytes.NewReader(big)), 0 },
			"sized":        func() (io.Reader, int64) { return bytes.NewReader(big), int64(len(big)) },
			"small":        func() (io.Reader, int64) { return strings.NewReader("x"), 1 },
			"small stream": func() (io.Reader, int64) { return io.MultiReader(strings.NewReader("x")), 0 },
			"empty":        func() (io.Reader, int64) { return nil, 0 },
		}
		for kind, body := range bodies {
			r, size := body()
			if _, err := fenced.Put(t.Context(), "before "+kind, r, storage.PutOptions{Size: size}); err != nil {
				t.Errorf("%s, %s: %v", name, kind, err)
			}
		}
		if err := below.Delete(t.Context(), "fence"); err != nil {
			t.Fatal(err)
		}
		for kind, body := range bodies {
			r, size := body()
			_, err := fenced.Put(t.Context(), "after "+kind, r, storage.PutOptions{Size: size})
			if _, statErr := below.Stat(context.WithoutCancel(t.Context()), "after "+kind); !errors.Is(err, replay.ErrFenced) || !errors.Is(statErr, storage.ErrNotExist) {
				t.Errorf("%s, %s: %v, and then %v", name, kind, err, statErr)
			}
		}
	}
}
