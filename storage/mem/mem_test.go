package mem_test

import (
	"testing"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/mem"
	"github.com/sluicelake/sluice/storage/storagetest"
)

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(*testing.T) storage.Store { return mem.New("t") })
}

func TestCopyFrom(t *testing.T) {
	storagetest.RunCopyFrom(t, func(*testing.T) (storage.Store, storage.Store) { return mem.New("a"), mem.New("b") })
}

func BenchmarkMem(b *testing.B) {
	storagetest.Benchmark(b, func(*testing.B) storage.Store { return mem.New("b") })
}
