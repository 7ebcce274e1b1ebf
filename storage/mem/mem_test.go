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

func BenchmarkMem(b *testing.B) {
	storagetest.Benchmark(b, func(*testing.B) storage.Store { return mem.New("b") })
}
