//go:build interop

// Package orc_test compares our ORC with that of the Apache libraries, on random tables: PyArrow and PyOrc (Apache ORC for
// C++), and Spark (Apache ORC for Java). SLUICE_INTEROP_SEED repeats a run.
package orc_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/sluicelake/sluice/interop/peer"
	"github.com/sluicelake/sluice/orc"
)

const tables = 6

func seed(t *testing.T) uint64 {
	t.Helper()
	n := uint64(time.Now().UnixNano()) % 1_000_000
	if text := os.Getenv("SLUICE_INTEROP_SEED"); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("SLUICE_INTEROP_SEED: %v", err)
		}
	}
	t.Logf("SLUICE_INTEROP_SEED=%d", n)
	return n
}

// peers runs peers.py; what it prints is what differs.
func peers(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(peer.Env(t, "SLUICE_INTEROP_PYTHON"), append([]string{"peers.py"}, args...)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s: %v\n%s%s", strings.Join(args, " "), err, out, tail(errs.String()))
	}
}

func tail(s string) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

func TestPeersReadOurFiles(t *testing.T) {
	dir, n := t.TempDir(), seed(t)
	peers(t, "tables", dir, fmt.Sprint(n), fmt.Sprint(tables))
	r := rand.New(rand.NewPCG(n, 1))
	for i := range tables {
		for _, c := range []orc.Compression{orc.None, orc.Zlib, orc.Snappy, orc.LZ4, orc.ZSTD}[i%5:][:1+i/5] {
			write(t, fmt.Sprintf("%s/%d", dir, i), orc.WriterOptions{
				Compression: c, StripeBytes: []int64{1 << 14, 1 << 18, 1 << 26}[r.IntN(3)], RowIndexStride: []int{-1, 1000, 10_000}[r.IntN(3)],
				BlockSize: []int{1 << 10, 1 << 16, 1 << 18}[r.IntN(3)], DictionaryShare: []float64{-1, 0.5, 1}[r.IntN(3)],
			})
		}
	}
	t.Run("C++", func(t *testing.T) { peers(t, "read", dir) })
	t.Run("Spark", func(t *testing.T) { peers(t, "spark", dir) })
}

// write turns NAME.arrow into NAME.CODEC.orc.
func write(t *testing.T, name string, o orc.WriterOptions) {
	t.Helper()
	in, err := os.Open(name + ".arrow")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r, err := ipc.NewFileReader(in)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out, err := os.Create(fmt.Sprintf("%s.%s.orc", name, o.Compression))
	if err != nil {
		t.Fatal(err)
	}
	w, err := orc.NewWriter(out, r.Schema(), o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.NumRecords() {
		b, err := r.RecordBatch(i)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestWeReadPeersFiles(t *testing.T) {
	dir := t.TempDir()
	peers(t, "write", dir, fmt.Sprint(seed(t)), fmt.Sprint(3*tables))
	files, err := filepath.Glob(dir + "/*.orc")
	if err != nil || len(files) != 3*tables {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		read(t, file, strings.TrimSuffix(file, "orc")+"got.arrow")
	}
	peers(t, "compare", dir)
}

// read turns an ORC file into an Arrow file.
func read(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		t.Fatal(err)
	}
	r, err := orc.NewReader(in, info.Size(), orc.ReaderOptions{Nanoseconds: true})
	if err != nil {
		t.Fatalf("%s: %v", from, err)
	}
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	w, err := ipc.NewFileWriter(out, ipc.WithSchema(r.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	for b, err := range r.Scan(context.Background(), orc.ScanOptions{}) {
		if err != nil {
			t.Fatalf("%s: %v", from, err)
		}
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
