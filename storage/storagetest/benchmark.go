package storagetest

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/sluicelake/sluice/storage"
)

// Benchmark measures puts and reads of small and large objects, and lists, on a store that open returns empty.
func Benchmark(b *testing.B, open func(b *testing.B) storage.Store) {
	for _, size := range []int{1 << 10, 32 << 20} {
		content := bytes.Repeat([]byte("sluice! "), size/8)
		b.Run(fmt.Sprintf("put/%dKiB", size>>10), func(b *testing.B) {
			s := open(b)
			b.SetBytes(int64(size))
			for i := 0; b.Loop(); i++ {
				benchmarkPut(b, s, fmt.Sprintf("p/%d", i%8), content)
			}
		})
		b.Run(fmt.Sprintf("read/%dKiB", size>>10), func(b *testing.B) {
			s := open(b)
			benchmarkPut(b, s, "x", content)
			b.SetBytes(int64(size))
			for b.Loop() {
				if _, err := storage.ReadAll(context.Background(), s, "x", 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("list", func(b *testing.B) {
		s := open(b)
		for i := range 2000 {
			benchmarkPut(b, s, fmt.Sprintf("dt=%d/f%d", i%20, i), nil)
		}
		n := 0
		for b.Loop() {
			for _, err := range s.List(context.Background(), "", storage.ListOptions{Recursive: true}) {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "objects/s")
	})
}

func benchmarkPut(b *testing.B, s storage.Store, name string, content []byte) {
	b.Helper()
	if _, err := s.Put(context.Background(), name, bytes.NewReader(content), storage.PutOptions{Size: int64(len(content))}); err != nil {
		b.Fatal(err)
	}
}
