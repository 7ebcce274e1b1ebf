package ahead_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/ahead"
	"github.com/sluicelake/sluice/storage/fault"
	"github.com/sluicelake/sluice/storage/mem"
	"github.com/sluicelake/sluice/storage/slow"
	"github.com/sluicelake/sluice/storage/storagetest"
)

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(*testing.T) storage.Store { return ahead.New(mem.New("t"), ahead.Options{Part: 64 << 10}) })
}

func TestCopyFrom(t *testing.T) {
	storagetest.RunCopyFrom(t, func(*testing.T) (storage.Store, storage.Store) {
		return ahead.New(mem.New("a"), ahead.Options{}), ahead.New(mem.New("b"), ahead.Options{})
	})
}

func random(n int, seed byte) []byte {
	p := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(p)
	return p
}

func holding(t testing.TB, content []byte) storage.Store {
	t.Helper()
	s := mem.New("t")
	if _, err := s.Put(t.Context(), "x", bytes.NewReader(content), storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// gauge notes reads: how many, how many bytes, and how many at once.
type gauge struct {
	storage.Store
	reads, bytes, now, most atomic.Int64
}

func (g *gauge) Open(ctx context.Context, name string) (storage.Object, error) {
	o, err := g.Store.Open(ctx, name)
	return gauged{o, g}, err
}

type gauged struct {
	storage.Object
	g *gauge
}

func (o gauged) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	o.g.reads.Add(1)
	o.g.bytes.Add(int64(len(p)))
	now := o.g.now.Add(1)
	defer o.g.now.Add(-1)
	for most := o.g.most.Load(); now > most && !o.g.most.CompareAndSwap(most, now); most = o.g.most.Load() {
	}
	return o.Object.ReadAt(ctx, p, off)
}

// Readers of every kind at once, sequential ones with steps of all sizes and random ones, see the object's bytes.
func TestBytes(t *testing.T) {
	content := random(3<<20+17, 1)
	s := ahead.New(holding(t, content), ahead.Options{Part: 32 << 10, Parallel: 3, Memory: 1 << 20})
	o, err := s.Open(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for seed := range 12 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			off := r.IntN(len(content))
			for range 300 {
				n := 1 + r.IntN(1<<(r.IntN(12)+6))
				p := make([]byte, n)
				got, err := o.ReadAt(t.Context(), p, int64(off))
				want := content[min(off, len(content)):min(off+n, len(content))]
				if !bytes.Equal(p[:got], want) || got < n && err != io.EOF || got == n && err != nil && err != io.EOF {
					t.Errorf("ReadAt(%d at %d): %d bytes, %v", n, off, got, err)
					return
				}
				switch off += n; {
				case r.IntN(40) == 0 || off >= len(content):
					off = r.IntN(len(content))
				case r.IntN(40) == 0:
					off += r.IntN(1000)
				}
			}
		})
	}
	wg.Wait()
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

// A sequential scan in small steps over a distant store runs many requests at once, brings each byte once, and gives its
// memory back.
func TestSequential(t *testing.T) {
	content := random(24<<20, 2)
	g := &gauge{Store: slow.New(holding(t, content), slow.Options{Latency: 5 * time.Millisecond})}
	s := ahead.New(g, ahead.Options{Part: 1 << 20, Parallel: 8, Memory: 8 << 20})
	for range 3 { // the third would have no memory left if the first two had kept any
		g.reads.Store(0)
		g.bytes.Store(0)
		g.most.Store(0)
		o, err := s.Open(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(io.NewSectionReader(storage.ReaderAt(t.Context(), o), 0, o.Size()))
		if err != nil || !bytes.Equal(got, content) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		if g.most.Load() < 3 || g.bytes.Load() != int64(len(content)) || g.reads.Load() > 60 {
			t.Errorf("%d reads, up to %d at once, of %d bytes", g.reads.Load(), g.most.Load(), g.bytes.Load())
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Reads that are planned elsewhere, as the columns of a Parquet file are, bring no byte that nobody asked for: several at
// once that touch, and one after the other with gaps.
func TestPlannedReads(t *testing.T) {
	content := random(16<<20, 3)
	g := &gauge{Store: slow.New(holding(t, content), slow.Options{Latency: time.Millisecond})}
	o, err := ahead.New(g, ahead.Options{Part: 1 << 20}).Open(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	var wg sync.WaitGroup
	for i := range int64(8) {
		wg.Go(func() {
			if _, err := o.ReadAt(t.Context(), make([]byte, 512<<10), i*512<<10); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range int64(8) {
		for j := range int64(2) { // the end of one column is the start of the next
			if _, err := o.ReadAt(t.Context(), make([]byte, 100<<10), i<<20+(5<<20)+j*100<<10); err != nil {
				t.Error(err)
			}
		}
	}
	if want := int64(8*512<<10 + 16*100<<10); g.bytes.Load() != want {
		t.Errorf("%d bytes were read, want the %d that were asked for", g.bytes.Load(), want)
	}
}

func TestLongRead(t *testing.T) {
	content := random(10<<20+5, 4)
	g := &gauge{Store: slow.New(holding(t, content), slow.Options{Latency: 5 * time.Millisecond})}
	data, err := storage.ReadAll(t.Context(), ahead.New(g, ahead.Options{Part: 1 << 20, Parallel: 4}), "x", 0)
	if err != nil || !bytes.Equal(data, content) || g.most.Load() != 4 || g.reads.Load() != 11 {
		t.Errorf("%d bytes, %v, %d reads, up to %d at once", len(data), err, g.reads.Load(), g.most.Load())
	}
}

// A fetch that failed is no failure of the reader, who asks again; a failure of the store is.
func TestFailures(t *testing.T) {
	content := random(8<<20, 5)
	for every, want := range map[int]error{7: nil, 1: fault.ErrInjected} {
		broken := fault.New(holding(t, content), fault.Rule{Op: fault.Read, At: 6, Every: every})
		o, err := ahead.New(broken, ahead.Options{Part: 512 << 10}).Open(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		for len(got) < len(content) {
			p := make([]byte, 64<<10)
			n, readErr := o.ReadAt(t.Context(), p, int64(len(got)))
			got = append(got, p[:n]...)
			if readErr != nil && readErr != io.EOF {
				if err = readErr; want != nil {
					break
				}
			}
		}
		if !bytes.Equal(got, content[:len(got)]) || want == nil && len(got) < len(content) || want != nil && !errors.Is(err, want) {
			t.Errorf("every %d: %d bytes, %v", every, len(got), err)
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A sequential scan of 64 MiB in steps of 64 KiB, at 20 ms a request and 50 MB/s each.
func BenchmarkScan(b *testing.B) {
	content := random(64<<20, 6)
	distant := slow.New(holding(b, content), slow.Options{Latency: 20 * time.Millisecond, BytesPerSecond: 50_000_000})
	for _, step := range []int{64 << 10, 8 << 20, 64 << 20} {
		for name, s := range map[string]storage.Store{"direct": distant, "ahead": ahead.New(distant, ahead.Options{})} {
			b.Run(fmt.Sprintf("%dKiB/%s", step>>10, name), func(b *testing.B) {
				b.SetBytes(int64(len(content)))
				p := make([]byte, step)
				for b.Loop() {
					o, err := s.Open(b.Context(), "x")
					if err != nil {
						b.Fatal(err)
					}
					if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{storage.ReaderAt(b.Context(), o)}, p); err != nil {
						b.Fatal(err)
					}
					if err := o.Close(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
