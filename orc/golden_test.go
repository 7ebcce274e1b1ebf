package orc

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// The files of testdata were written by the Apache writers; make_golden.py there says how, and what form the rows have.

func TestGoldenFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.orc")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d golden files: %v", len(files), err)
	}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".orc")
		t.Run(name, func(t *testing.T) {
			data := readFile(t, path)
			want, every, count := readRows(t, strings.TrimSuffix(path, ".orc")+".json.gz")
			ns := !strings.HasPrefix(name, "spark") // whose rows reach further than nanoseconds do
			for _, o := range []ReaderOptions{{Nanoseconds: ns}, {Nanoseconds: ns, BatchRows: 7, MaxMemory: 8 << 20}} {
				got := scanRows(t, data, o, ScanOptions{})
				if every == 1 {
					count = len(want)
				}
				if len(got) != count {
					t.Fatalf("%d rows, want %d", len(got), count)
				}
				for i, w := range want {
					if g := got[i*every]; g != w {
						t.Fatalf("row %d:\n got %s\nwant %s", i*every, g, w)
					}
				}
				if every == 1 && len(want) > 0 { // the row index of other writers leads to the right places too
					for seed := range uint64(5) {
						keepsParts(t, rand.New(rand.NewPCG(seed, 3)), data, want, o)
					}
				}
			}
		})
	}
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// readRows reads the rows of a golden file, in canonical JSON. Only each every-th of count rows is there where every is not 1.
func readRows(t *testing.T, path string) (rows []string, every, count int) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(readFile(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(z)
	every = 1
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return rows, every, count
		}
		if err != nil {
			t.Fatal(err)
		}
		if line[0] == '{' {
			var head struct{ Every, Rows int }
			if err := json.Unmarshal(line, &head); err != nil {
				t.Fatal(err)
			}
			every, count = head.Every, head.Rows
			continue
		}
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, canonical(v))
	}
}

// canonical renders what JSON decoding or jsonValue made: numbers in one form, whatever the form they came in.
func canonical(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case []any:
		parts := make([]string, len(v))
		for i, x := range v {
			parts[i] = canonical(x)
		}
		return "[" + strings.Join(parts, ",") + "]"
	case json.Number:
		if n, ok := new(big.Int).SetString(v.String(), 10); ok && v.String() != "-0" {
			return n.String()
		}
		f, _ := v.Float64()
		return canonical(f)
	case float64:
		switch {
		case math.IsNaN(v):
			return `"NaN"`
		case math.IsInf(v, 0):
			return strconv.Quote(strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(v, 'g', -1, 64)), "+"))
		case v == math.Trunc(v) && math.Abs(v) < 1e15 && !(v == 0 && math.Signbit(v)):
			return strconv.FormatInt(int64(v), 10)
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		return strconv.Quote(v)
	}
	return fmt.Sprint(v)
}

// jsonValue gives slot i of an array in the form of the golden rows.
func jsonValue(a arrow.Array, i int) any {
	if a.IsNull(i) {
		return nil
	}
	switch a := a.(type) {
	case *array.Boolean:
		return a.Value(i)
	case *array.Int8:
		return a.Value(i)
	case *array.Int16:
		return a.Value(i)
	case *array.Int32:
		return a.Value(i)
	case *array.Int64:
		return a.Value(i)
	case *array.Float32:
		return float64(a.Value(i))
	case *array.Float64:
		return a.Value(i)
	case *array.String:
		return a.Value(i)
	case *array.Binary:
		return hex.EncodeToString(a.Value(i))
	case *array.Date32:
		return int32(a.Value(i))
	case *array.Timestamp:
		if a.DataType().(*arrow.TimestampType).Unit == arrow.Microsecond {
			return json.Number(new(big.Int).Mul(big.NewInt(int64(a.Value(i))), big.NewInt(1000)).String())
		}
		return int64(a.Value(i))
	case *array.Decimal128:
		return a.Value(i).BigInt().String()
	case *array.Map:
		from, to := a.ValueOffsets(i)
		out := []any{}
		for j := int(from); j < int(to); j++ {
			out = append(out, []any{jsonValue(a.Keys(), j), jsonValue(a.Items(), j)})
		}
		return out
	case *array.List:
		from, to := a.ValueOffsets(i)
		out := []any{}
		for j := int(from); j < int(to); j++ {
			out = append(out, jsonValue(a.ListValues(), j))
		}
		return out
	case *array.Struct:
		out := make([]any, a.NumField())
		for j := range out {
			out[j] = jsonValue(a.Field(j), i)
		}
		return out
	}
	panic(fmt.Sprintf("no JSON form of %s", a.DataType()))
}

// batchRows renders the rows of a batch.
func batchRows(b arrow.RecordBatch) []string {
	rows := make([]string, b.NumRows())
	for i := range rows {
		row := make([]any, b.NumCols())
		for j := range row {
			row[j] = jsonValue(b.Column(j), i)
		}
		rows[i] = canonical(row)
	}
	return rows
}

// scanRows reads a file and renders its rows, and checks that nothing of Arrow's memory leaks.
func scanRows(t *testing.T, data []byte, ro ReaderOptions, so ScanOptions) []string {
	t.Helper()
	rows, err := tryScan(t, data, ro, so)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func tryScan(t *testing.T, data []byte, ro ReaderOptions, so ScanOptions) (rows []string, err error) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	ro.Alloc = mem
	r, err := NewReader(bytes.NewReader(data), int64(len(data)), ro)
	if err != nil {
		return nil, err
	}
	for b, err := range r.Scan(context.Background(), so) {
		if err != nil {
			return rows, err
		}
		for _, c := range b.Columns() {
			if v, ok := c.(interface{ Validate() error }); ok {
				if err := v.Validate(); err != nil {
					t.Fatalf("an invalid array: %v", err)
				}
			}
		}
		rows = append(rows, batchRows(b)...)
		b.Release()
	}
	return rows, nil
}
