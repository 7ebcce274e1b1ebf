package merge

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// meter counts the bytes that an allocator has out, and their peak.
type meter struct {
	memory.Allocator
	now, peak atomic.Int64
}

func (m *meter) add(n int) {
	now := m.now.Add(int64(n))
	for p := m.peak.Load(); now > p && !m.peak.CompareAndSwap(p, now); p = m.peak.Load() {
	}
}

func (m *meter) Allocate(n int) []byte {
	m.add(n)
	return m.Allocator.Allocate(n)
}

func (m *meter) Reallocate(n int, b []byte) []byte {
	m.add(n - len(b))
	return m.Allocator.Reallocate(n, b)
}

func (m *meter) Free(b []byte) {
	m.add(-len(b))
	m.Allocator.Free(b)
}

// A log of four times the budget whose keys are all different, over a base file that has all of them and as many others:
// Arrow memory and the live Go heap stay within the budget and 40 MiB, and no row is lost, doubled or old.
func TestLogAboveBudget(t *testing.T) {
	const budget, size = 4 << 20, 4096
	table := trips(t)
	rule := compile(t, Options{TableVersion: 9, MergeMode: EventTime, OrderingFields: []string{"ts"}, Schema: table})
	m := &meter{Allocator: memory.DefaultAllocator}
	log := rule.NewLog(LogOptions{Alloc: m, Budget: budget, SpillDir: t.TempDir()})
	defer log.Close()
	logged, bytes := 0, int64(0)
	for bytes < 4*budget {
		b := tripBatch(m, rule.Arrow(), size, 20, func(i int) int { return logged + i })
		c, err := rule.layout.newChunk(b, nil)
		if err != nil {
			t.Fatal(err)
		}
		bytes += c.bytes
		c.release()
		if err := log.Add(b, AddOptions{}); err != nil {
			t.Fatal(err)
		}
		b.Release()
		logged += size
	}
	if !log.Spilled() {
		t.Fatal("the log did not spill")
	}
	stored := 2 * logged
	base := func(yield func(arrow.RecordBatch, error) bool) {
		for from := 0; from < stored; from += size {
			if !yield(tripBatch(m, rule.Arrow(), size, 10, func(i int) int { return from + i }), nil) {
				return
			}
		}
	}
	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	seen := make([]bool, stored)
	fresh, batches, heap := 0, 0, int64(0)
	for b, err := range log.Over(t.Context(), base) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			row := rowJSON(b, i)
			k := int(row["begin_lat"].(float64))
			if seen[k] {
				t.Fatalf("row %d twice", k)
			}
			seen[k] = true
			if newer := row["ts"].(float64) == 20; newer != (k < logged) {
				t.Fatalf("row %d: %v", k, row)
			} else if newer {
				fresh++
			}
		}
		b.Release()
		if batches++; batches%64 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&during)
			heap = max(heap, int64(during.HeapAlloc)-int64(before.HeapAlloc))
		}
	}
	for k, ok := range seen {
		if !ok {
			t.Fatalf("row %d is lost", k)
		}
	}
	if fresh != logged {
		t.Errorf("%d updated rows, want %d", fresh, logged)
	}
	if limit := int64(budget + 40<<20); m.peak.Load() > limit || heap > limit {
		t.Errorf("peak %d MiB of Arrow memory, %d MiB of live heap; limit %d MiB", m.peak.Load()>>20, heap>>20, limit>>20)
	}
	t.Logf("log %d MiB, budget %d MiB: peak %d MiB of Arrow memory, %d MiB of live heap", bytes>>20, budget>>20, m.peak.Load()>>20, heap>>20)
	if m.now.Load() != 0 {
		t.Errorf("%d bytes are not released", m.now.Load())
	}
}

// Few keys with many versions never go to disk: superseded rows are dropped.
func TestHotKeysDoNotSpill(t *testing.T) {
	rule := compile(t, Options{TableVersion: 9, MergeMode: EventTime, OrderingFields: []string{"ts"}, Schema: trips(t)})
	m := &meter{Allocator: memory.DefaultAllocator}
	log := rule.NewLog(LogOptions{Alloc: m, Budget: 4 << 20})
	defer log.Close()
	for round := range 40 {
		b := tripBatch(m, rule.Arrow(), 1000, int64(round), func(i int) int { return i % 100 })
		if err := log.Add(b, AddOptions{}); err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	if log.Spilled() {
		t.Error("spilled")
	}
	rows := texts(t, log.Rows(t.Context()))
	if len(rows) != 100 || m.now.Load() != 0 {
		t.Errorf("%d rows, %d bytes left", len(rows), m.now.Load())
	}
}

// Temporary files and memory go in every case: an error of the base file, a caller that stops early, a closed log, a
// cancelled context.
func TestNothingIsLeftBehind(t *testing.T) {
	rule := compile(t, Options{TableVersion: 9, MergeMode: CommitTime, Schema: orders(t)})
	broken := errors.New("broken base file")
	for name, use := range map[string]func(*Log) error{
		"error of the base file": func(l *Log) error {
			for _, err := range l.Over(t.Context(), func(yield func(arrow.RecordBatch, error) bool) { yield(nil, broken) }) {
				if errors.Is(err, broken) {
					return nil
				}
			}
			return errors.New("the error did not come through")
		},
		"stopped early": func(l *Log) error {
			for b, err := range l.Rows(t.Context()) {
				if err != nil {
					return err
				}
				b.Release()
				break
			}
			return nil
		},
		"cancelled": func(l *Log) error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			for _, err := range l.Rows(ctx) {
				if !errors.Is(err, context.Canceled) {
					return err
				}
			}
			return nil
		},
		"closed": func(l *Log) error { l.Close(); return nil },
		"no folder to spill to": func(l *Log) error {
			l.opts.SpillDir += "/missing"
			l.Close()
			return nil
		},
	} {
		for _, budget := range []int64{1, 1 << 30} {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			dir := t.TempDir()
			log := rule.NewLog(LogOptions{Alloc: mem, Budget: budget, SpillDir: dir, BatchRows: 1})
			for range 3 {
				if err := log.Add(batchOf(t, rule, row{"a", 1, "x"}, row{"b", 2, "y"}, row{"c", 3, nil}), AddOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if err := use(log); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			log.Close()
			mem.AssertSize(t, 0)
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("%s: %v %v", name, left, err)
			}
		}
	}
}

func TestSpillNamesTheFolder(t *testing.T) {
	rule := compile(t, Options{TableVersion: 9, MergeMode: CommitTime, Schema: orders(t)})
	log := rule.NewLog(LogOptions{Budget: 1, SpillDir: t.TempDir() + "/missing"})
	defer log.Close()
	var err error
	for range 200 { // enough to be written before the end
		if err = log.Add(batchOf(t, rule, row{"a", 1, strings.Repeat("x", 1000)}), AddOptions{}); err != nil {
			break
		}
	}
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	for _, err := range log.Rows(t.Context()) { // what is left is not whole: no row may come
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after the failure: %v", err)
		}
	}
}
