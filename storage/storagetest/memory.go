package storagetest

import (
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/sluicelake/sluice/storage"
)

// PutMemory puts a body of 256 MiB and unknown length into a store whose service keeps nothing in this process, and
// fails when more than limit bytes were in memory at a time.
func PutMemory(t *testing.T, s storage.Store, limit uint64) {
	t.Helper()
	const size = 256 << 20
	used := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC()
	before := used()
	stop, peak := make(chan struct{}), make(chan uint64)
	go func() {
		most := uint64(0)
		for {
			select {
			case <-stop:
				peak <- most
				return
			case <-time.After(5 * time.Millisecond):
				runtime.GC() // what is only garbage does not count
				most = max(most, used())
			}
		}
	}()
	info, err := s.Put(t.Context(), "x", io.LimitReader(rand.NewChaCha8([32]byte{9}), size), storage.PutOptions{})
	close(stop)
	most := <-peak
	if err != nil || info.Size != size {
		t.Fatalf("%+v, %v", info, err)
	}
	t.Logf("%d MiB at most", (max(most, before)-before)>>20)
	if most > before+limit {
		t.Errorf("%d bytes were in memory, want at most %d", most-before, limit)
	}
}
