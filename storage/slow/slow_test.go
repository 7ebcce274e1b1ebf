package slow_test

import (
	"testing"
	"time"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/mem"
	"github.com/sluicelake/sluice/storage/slow"
	"github.com/sluicelake/sluice/storage/storagetest"
)

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(*testing.T) storage.Store {
		return slow.New(mem.New("t"), slow.Options{})
	})
}

func TestLatency(t *testing.T) {
	s := slow.New(mem.New("t"), slow.Options{Latency: 20 * time.Millisecond, BytesPerSecond: 1 << 20})
	start := time.Now()
	if _, err := s.Put(t.Context(), "x", nil, storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	o, err := s.Open(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = o.ReadAt(t.Context(), make([]byte, 128<<10), 0) // an eighth of a second
	if took := time.Since(start); took < 185*time.Millisecond {
		t.Errorf("three requests took %v", took)
	}
}
