package limit_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/limit"
	"github.com/sluicelake/sluice/storage/mem"
	"github.com/sluicelake/sluice/storage/storagetest"
)

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(*testing.T) storage.Store {
		return limit.New(mem.New("t"), limit.Options{Reads: 1, Writes: 1, BytesPerSecond: 4 << 30})
	})
}

// gauge notes how many operations run at once.
type gauge struct {
	storage.Store
	now, most atomic.Int64
}

func (g *gauge) in() func() {
	n := g.now.Add(1)
	for most := g.most.Load(); n > most && !g.most.CompareAndSwap(most, n); most = g.most.Load() {
	}
	time.Sleep(time.Millisecond)
	return func() { g.now.Add(-1) }
}

func (g *gauge) Stat(ctx context.Context, name string) (storage.Info, error) {
	defer g.in()()
	return g.Store.Stat(ctx, name)
}

func (g *gauge) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Info, error] {
	defer g.in()()
	return g.Store.List(ctx, prefix, opts)
}

func TestBound(t *testing.T) {
	g := &gauge{Store: mem.New("t")}
	s := limit.New(g, limit.Options{Reads: 3})
	if _, err := s.Put(t.Context(), "x", nil, storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			for range 3 {
				if _, err := s.Stat(t.Context(), "x"); err != nil {
					t.Error(err)
				}
				for _, err := range s.List(t.Context(), "", storage.ListOptions{}) {
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if most := g.most.Load(); most != 3 {
		t.Errorf("%d operations ran at once, want 3", most)
	}
}

// With one slot each, a list whose consumer reads, and a put whose body is read from the same store, must not wait for
// themselves.
func TestNoDeadlock(t *testing.T) {
	s := limit.New(mem.New("t"), limit.Options{Reads: 1, Writes: 1})
	for _, name := range []string{"a", "b", "c"} {
		if _, err := s.Put(t.Context(), name, strings.NewReader(name), storage.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	w := storage.Create(ctx, s, "all", storage.PutOptions{})
	defer w.Abort()
	for info, err := range s.List(ctx, "", storage.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		data, err := storage.ReadAll(ctx, s, info.Name, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if data, err := storage.ReadAll(ctx, s, "all", 0); string(data) != "abc" {
		t.Errorf("%q, %v", data, err)
	}
	blocked, stop := context.WithTimeout(ctx, 10*time.Millisecond)
	defer stop()
	r, hold := io.Pipe()
	go func() { _, _ = s.Put(ctx, "held", r, storage.PutOptions{}) }()
	_, _ = io.WriteString(hold, "x")
	if err := s.Delete(blocked, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second writer got %v while the only slot was taken", err)
	}
	_ = hold.Close()
}

func TestPace(t *testing.T) {
	s := limit.New(mem.New("t"), limit.Options{BytesPerSecond: 1 << 20})
	start := time.Now()
	if _, err := s.Put(t.Context(), "x", strings.NewReader(strings.Repeat("x", 256<<10)), storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := storage.ReadAll(t.Context(), s, "x", 0); err != nil {
		t.Fatal(err)
	}
	// 512 KiB at 1 MiB/s are 500 ms, 100 ms of which may pass at once.
	if took := time.Since(start); took < 380*time.Millisecond {
		t.Errorf("took %v, want about 400 ms", took)
	}
}
