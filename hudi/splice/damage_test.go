package splice_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/parquet-go/parquet-go"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/splice"
	"github.com/sluicelake/sluice/internal/fixture"
)

// A byte that is wrong anywhere in a file of Apache Hudi, whose pages have checksums, is noticed, or does not matter: the copy
// reads as the file itself. Where the target takes the bytes of pages by itself, one that is wrong in them passes, as it does
// with cp, and the checksum that tells it passes with it.
func TestDamagedSource(t *testing.T) {
	dir, _ := fixture.Spark(t, "cow_types_row_writer_1.2.0")
	data, err := os.ReadFile(baseFiles(t, dir)[0])
	if err != nil {
		t.Fatal(err)
	}
	want := splice.Want{Columns: userColumns(open(t, data).Schema())}
	noticed, unseen, harmless := 0, 0, 0
	for at := 4; at < len(data); at += 41 {
		if at > 9000 && at < len(data)-4000 { // the key filter of Apache Hudi in the footer
			continue
		}
		bad := bytes.Clone(data)
		bad[at] ^= 0x24
		var through bytes.Buffer
		var moved mover
		err := copyTo(t, &through, bad, want)
		movedErr := copyTo(t, &moved, bad, want)
		for _, err := range []error{err, movedErr} {
			if err != nil && !errors.Is(err, basefile.ErrDamaged) && !errors.Is(err, basefile.ErrUnsupported) && !errors.Is(err, errRefused) {
				t.Errorf("byte %d: %v", at, err)
			}
		}
		if movedErr == nil {
			sameAnswer(t, at, bad, moved.Bytes(), want)
		}
		switch {
		case err == nil && movedErr == nil && bytes.Equal(through.Bytes(), moved.Bytes()):
			harmless++
		case err != nil && movedErr == nil:
			if !strings.Contains(err.Error(), "checksum") {
				t.Errorf("byte %d is not seen where ranges are taken: %v", at, err)
			}
			unseen++
		case err != nil:
			noticed++
		default:
			t.Errorf("byte %d: %v where ranges are taken alone", at, movedErr)
		}
	}
	if noticed < 20 || unseen == 0 || harmless == 0 {
		t.Errorf("%d noticed, %d unseen, %d harmless", noticed, unseen, harmless)
	}
	t.Logf("%d noticed, %d unseen where ranges are taken, %d harmless", noticed, unseen, harmless)
}

var errRefused = errors.New("refused")

func copyTo(t testing.TB, to io.Writer, data []byte, want splice.Want) error {
	f, err := splice.Open(t.Context(), "file.parquet", object(data), basefile.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if want.Columns == nil {
		want.Columns = userColumns(f.Schema())
	}
	p, why := splice.CanCopy(f, want)
	if why != "" {
		return errRefused
	}
	w := splice.NewWriter(to, splice.WriterOptions{Block: 4096, ReadAhead: 3})
	if err := w.Append(t.Context(), p); err != nil {
		return err
	}
	return w.Close()
}

// sameAnswer demands that the copy of a damaged file reads as the file: the same rows, or an error of both.
func sameAnswer(t *testing.T, at int, bad, out []byte, want splice.Want) {
	t.Helper()
	a, errA := tryRows(t, bad, want)
	b, errB := tryRows(t, out, want)
	if (errA == nil) != (errB == nil) {
		t.Errorf("byte %d: the file reads with %v, its copy with %v", at, errA, errB)
	}
	if errA == nil && errB == nil && a != b {
		t.Errorf("byte %d: the copy has other rows:\n%s\n%s", at, a, b)
	}
}

func tryRows(t *testing.T, data []byte, want splice.Want) (text string, err error) {
	f, err := basefile.OpenObject(t.Context(), "file.parquet", object(data), basefile.Options{})
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	var b bytes.Buffer
	for batch, err := range f.Scan(t.Context(), basefile.ScanOptions{Columns: want.Columns}) {
		if err != nil {
			return "", err
		}
		for _, c := range batch.Columns() {
			b.WriteString(array.NewSlice(c, 0, int64(c.Len())).String())
		}
		batch.Release()
	}
	return b.String(), nil
}

// A full target and a source that ends early are errors, and the writer stays broken.
func TestBrokenTargetAndSource(t *testing.T) {
	data := write(t, 0, &parquet.Snappy, 1)
	p, why := splice.CanCopy(open(t, data), splice.Want{Columns: userColumns(open(t, data).Schema())})
	if why != "" {
		t.Fatal(why)
	}
	full := errors.New("no space")
	w := splice.NewWriter(&limited{left: 20000, err: full}, splice.WriterOptions{ReadAhead: 4, Block: 1000})
	if err := w.Append(t.Context(), p); !errors.Is(err, full) {
		t.Errorf("append to a full target: %v", err)
	}
	if err := w.Close(); !errors.Is(err, full) {
		t.Errorf("close after it: %v", err)
	}
	if err := splice.NewWriter(io.Discard, splice.WriterOptions{}).Close(); err == nil {
		t.Error("a file of nothing")
	}
}

type limited struct {
	left int
	err  error
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, l.err
	}
	return len(p), nil
}

// Whatever the bytes are: no panic, no endless work, and what comes out opens.
func FuzzSplice(f *testing.F) {
	f.Add(formsFile(f))
	f.Add(write(f, 0, &parquet.Snappy, 2)[:1000])
	f.Fuzz(func(t *testing.T, data []byte) {
		var through bytes.Buffer
		var moved mover
		err := copyTo(t, &through, data, splice.Want{})
		movedErr := copyTo(t, &moved, data, splice.Want{})
		if err == nil && (movedErr != nil || !bytes.Equal(through.Bytes(), moved.Bytes())) {
			t.Errorf("where ranges are taken: %v", movedErr)
		}
		if movedErr != nil {
			return
		}
		if _, err := splice.Open(t.Context(), "copy.parquet", object(moved.Bytes()), basefile.Options{}); err != nil {
			t.Errorf("the copy does not open: %v", err)
		}
	})
}
