package retry_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/fault"
	"github.com/sluicelake/sluice/storage/local"
	"github.com/sluicelake/sluice/storage/mem"
	"github.com/sluicelake/sluice/storage/retry"
	"github.com/sluicelake/sluice/storage/storagetest"
)

var quick = retry.Options{First: time.Microsecond, Longest: 10 * time.Microsecond, Buffer: 64 << 20, Attempts: 100}

// A store that fails every few operations in every way that a sound store can must look, through the layer, like one that
// never fails.
func TestConformanceOverAFlakyStore(t *testing.T) {
	busy := storage.ErrTemporary
	for name, rules := range map[string][]fault.Rule{
		"requests lost":          {{At: 2, Every: 3, Do: fault.Before, Err: busy}},
		"answers lost":           {{At: 2, Every: 3, Do: fault.After, Err: busy}},
		"cut reads":              {{Op: fault.Read, Every: 2, Do: fault.Torn, Keep: 700, Err: busy}},
		"cut lists":              {{Op: fault.List, Every: 2, Do: fault.Torn, Keep: 1, Err: busy}},
		"lost to its own object": {{Op: fault.Put, Every: 2, Do: fault.Lost}},
		"several in a row":       {{At: 3, Every: 7, For: 4, Do: fault.After, Err: busy}},
	} {
		t.Run(name, func(t *testing.T) {
			storagetest.Run(t, func(*testing.T) storage.Store { return retry.New(fault.New(mem.New("t"), rules...), quick) })
		})
	}
}

func putIfAbsent(t *testing.T, s storage.Store, body io.Reader) error {
	t.Helper()
	_, err := s.Put(t.Context(), "x", body, storage.PutOptions{IfAbsent: true})
	return err
}

// The answer of the only writer is lost; it must learn that it won. A second writer of the same bytes must learn that it lost.
func TestOwnObjectIsNoRival(t *testing.T) {
	for name, rule := range map[string]fault.Rule{
		"error": {Op: fault.Put, Do: fault.After, Err: storage.ErrTemporary},
		"exist": {Op: fault.Put, Do: fault.Lost},
	} {
		store := mem.New("t")
		s := retry.New(fault.New(store, rule), quick)
		if err := putIfAbsent(t, s, strings.NewReader("")); err != nil {
			t.Errorf("%s: the writer whose answer was lost: %v", name, err)
		}
		rival := retry.New(fault.New(store, fault.Rule{Op: fault.Put, Do: fault.Before, Err: storage.ErrTemporary}), quick)
		if err := putIfAbsent(t, rival, strings.NewReader("")); !errors.Is(err, storage.ErrExist) {
			t.Errorf("%s: a rival with the same bytes: %v, want ErrExist", name, err)
		}
	}
}

// A store without tokens: the bytes decide, and only after a failure.
func TestOwnObjectWithoutTokens(t *testing.T) {
	store, err := local.New(t.TempDir(), local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lost := fault.Rule{Op: fault.Put, Do: fault.After, Err: storage.ErrTemporary}
	if err := putIfAbsent(t, retry.New(fault.New(store, lost), quick), strings.NewReader("mine")); err != nil {
		t.Errorf("the writer whose answer was lost: %v", err)
	}
	missed := fault.Rule{Op: fault.Put, Do: fault.Before, Err: storage.ErrTemporary}
	for _, other := range []string{"other", "mine too", "min", ""} {
		if err := putIfAbsent(t, retry.New(fault.New(store, missed), quick), strings.NewReader(other)); !errors.Is(err, storage.ErrExist) {
			t.Errorf("a rival with %q: %v, want ErrExist", other, err)
		}
	}
	if err := putIfAbsent(t, retry.New(store, quick), strings.NewReader("mine")); !errors.Is(err, storage.ErrExist) {
		t.Errorf("a rival with equal bytes that never failed: %v, want ErrExist", err)
	}
}

func TestBodies(t *testing.T) {
	fail := fault.Rule{Op: fault.Put, For: 3, Err: storage.ErrTemporary}
	opts := quick
	opts.Buffer = 10
	for name, c := range map[string]struct {
		body io.Reader
		want string // stored; "" for an error
	}{
		"seeker":            {strings.NewReader("long enough for no buffer"), "long enough for no buffer"},
		"seeker in between": {skipped("long enough for no buffer", 5), "enough for no buffer"},
		"small stream":      {iotest.OneByteReader(strings.NewReader("0123456789")), "0123456789"},
		"long stream":       {iotest.OneByteReader(strings.NewReader("0123456789a")), ""},
	} {
		s := retry.New(fault.New(mem.New("t"), fail), opts)
		_, err := s.Put(t.Context(), "x", c.body, storage.PutOptions{})
		if c.want == "" {
			if !errors.Is(err, storage.ErrTemporary) {
				t.Errorf("%s: %v, want the failure", name, err)
			}
			continue
		}
		data, readErr := storage.ReadAll(t.Context(), s, "x", 0)
		if err != nil || string(data) != c.want {
			t.Errorf("%s: stored %q, %v, %v", name, data, err, readErr)
		}
	}
	// A long stream that was stored although its answer was lost is a success.
	s := retry.New(fault.New(mem.New("t"), fault.Rule{Op: fault.Put, Do: fault.After, Err: storage.ErrTemporary}), opts)
	if err := putIfAbsent(t, s, iotest.OneByteReader(strings.NewReader("0123456789a"))); err != nil {
		t.Errorf("a long stream whose answer was lost: %v", err)
	}
}

func skipped(s string, n int64) io.Reader {
	r := strings.NewReader(s)
	_, _ = r.Seek(n, io.SeekStart)
	return r
}

func TestGivesUp(t *testing.T) {
	f := fault.New(mem.New("t"), fault.Rule{For: -1, Err: storage.ErrTemporary})
	var waits []time.Duration
	s := retry.New(f, retry.Options{Attempts: 5, First: 4 * time.Millisecond, Longest: 8 * time.Millisecond,
		OnRetry: func(_, _ string, _ int, wait time.Duration, _ error) { waits = append(waits, wait) }})
	_, err := s.Stat(t.Context(), "x")
	if !errors.Is(err, storage.ErrTemporary) || !strings.Contains(err.Error(), "5 attempts") || len(f.Operations()) != 5 {
		t.Errorf("%v after %d operations", err, len(f.Operations()))
	}
	for i, longest := range []time.Duration{4 * time.Millisecond, 8 * time.Millisecond, 8 * time.Millisecond, 8 * time.Millisecond} {
		if waits[i] < longest/2 || waits[i] > longest {
			t.Errorf("wait %d was %v, want between %v and %v", i, waits[i], longest/2, longest)
		}
	}

	f = fault.New(mem.New("t"), fault.Rule{For: -1})
	if err := retry.New(f, quick).Delete(t.Context(), "x"); !errors.Is(err, fault.ErrInjected) || len(f.Operations()) != 1 {
		t.Errorf("what is not temporary was tried %d times: %v", len(f.Operations()), err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	s = retry.New(fault.New(mem.New("t"), fault.Rule{For: -1, Err: storage.ErrTemporary}), retry.Options{First: time.Hour, Longest: time.Hour})
	if _, err := s.Open(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, storage.ErrTemporary) {
		t.Errorf("cancelled while waiting: %v", err)
	}
}
