package logfile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowmem "github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/mem"
)

// javaFile is what Apache Hudi's own log reader returned for one file: testdata/java/<release>.json, made by the release's own
// writer and reader.
type javaFile struct {
	File      string            `json:"file"`
	BlockEnds []int64           `json:"block_ends"`
	Blocks    []json.RawMessage `json:"blocks"`
}

type javaBlock struct {
	Type          string            `json:"type"`
	Header        map[string]string `json:"header"`
	FooterEntries int               `json:"footer_entries"`
	ContentOffset int64             `json:"content_offset"`
	ContentLength int64             `json:"content_length"`
	End           int64             `json:"block_end"`
	Records       []any             `json:"records"`
	Deletes       []struct {
		Key, Partition, Ordering string
		Class                    string `json:"ordering_class"`
	} `json:"deletes"`
}

func javaFiles(t testing.TB, release string) map[string]javaFile {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/java", release+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Files map[string]javaFile }
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all.Files
}

var releases = []string{"0.15.0", "1.0.2", "1.2.0"}

// put stores the bytes under the name in a store of their own.
func put(t testing.TB, name string, data []byte) *mem.Store {
	t.Helper()
	store := mem.New(t.Name())
	putInto(t, store, name, data)
	return store
}

// Every kind of block, whole and damaged, of three releases, as their own readers see it.
func TestSameAsJava(t *testing.T) {
	for _, release := range releases {
		for name, want := range javaFiles(t, release) {
			t.Run(release+"/"+name, func(t *testing.T) {
				data, err := os.ReadFile(filepath.Join("testdata/java", release, want.File))
				if err != nil {
					t.Fatal(err)
				}
				checkFile(t, want, data)
			})
		}
	}
}

func checkFile(t *testing.T, want javaFile, data []byte) {
	store := put(t, want.File, data)
	obj, err := store.Open(t.Context(), want.File)
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	for b, err := range Blocks(t.Context(), obj) {
		if err != nil {
			t.Fatal(err)
		}
		if i >= len(want.Blocks) {
			t.Fatalf("more than %d blocks: %s", len(want.Blocks), b)
		}
		if i < len(want.BlockEnds) && b.End != want.BlockEnds[i] {
			t.Errorf("block %d ends at %d, written to %d", i, b.End, want.BlockEnds[i])
		}
		ref := OpenBlock(store, want.File, b)
		if stopped := strings.HasPrefix(string(want.Blocks[i]), `"reader stopped`); stopped {
			if _, err := rowsOf(t, ref, RecordOptions{}); err == nil {
				t.Errorf("block %d was read; Java: %.80s", i, want.Blocks[i])
			}
			return
		}
		var w javaBlock
		if err := json.Unmarshal(want.Blocks[i], &w); err != nil {
			t.Fatal(err)
		}
		checkBlock(t, ref, w)
		i++
	}
	if i != len(want.Blocks) {
		t.Errorf("%d blocks, want %d", i, len(want.Blocks))
	}
}

func checkBlock(t *testing.T, r Ref, w javaBlock) {
	t.Helper()
	if r.Type.String()+"_BLOCK" != w.Type || r.ContentOffset != w.ContentOffset || r.ContentLength != w.ContentLength || r.End != w.End || r.FooterEntries != w.FooterEntries {
		t.Errorf("got %s, content %d+%d, end %d; want %s, content %d+%d, end %d", r.Type, r.ContentOffset, r.ContentLength, r.End, w.Type, w.ContentOffset, w.ContentLength, w.End)
	}
	h := map[string]string{}
	for i, name := range []string{"INSTANT_TIME", "TARGET_INSTANT_TIME", "SCHEMA", "COMMAND_BLOCK_TYPE", "COMPACTED_BLOCK_TIMES", "RECORD_POSITIONS", "BLOCK_IDENTIFIER", "IS_PARTIAL", "BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS"} {
		if v := *r.Header.fields()[i]; v != "" {
			h[name] = v
		}
	}
	if !reflect.DeepEqual(h, w.Header) {
		t.Errorf("header %v, want %v", h, w.Header)
	}
	rows, err := rowsOf(t, r, RecordOptions{})
	if err != nil && r.Type != Corrupt && r.Type != Command {
		t.Error(err)
	}
	if got, want := fmt.Sprint(rows), fmt.Sprint(w.Records); got != want {
		t.Errorf("rows\n%s\nwant\n%s", got, want)
	}
	n := 0
	for d, err := range r.Deletes(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		value, class := javaOrdering(d.Ordering)
		if n < len(w.Deletes) {
			if x := w.Deletes[n]; d.Key != x.Key || d.Partition != x.Partition || value != x.Ordering || class != x.Class {
				t.Errorf("delete %d: %+v, want %+v", n, d, x)
			}
		}
		n++
	}
	if n != len(w.Deletes) {
		t.Errorf("%d deletes, want %d", n, len(w.Deletes))
	}
}

func javaOrdering(o Ordering) (value, class string) {
	switch o.Kind {
	case OrderingBool:
		return fmt.Sprint(o.Int == 1), "Boolean"
	case OrderingInt:
		return fmt.Sprint(o.Int), "Integer"
	case OrderingLong:
		return fmt.Sprint(o.Int), "Long"
	case OrderingFloat:
		return fmt.Sprint(o.Float), "Float"
	case OrderingDouble:
		return fmt.Sprint(o.Float), "Double"
	case OrderingString:
		return o.Text, "String"
	case OrderingDecimal:
		return o.Decimal.ToString(DecimalScale), "BigDecimal"
	}
	return "?", "?"
}

// rowsOf reads all rows in the form of the JSON files: text, numbers, a decimal as the signed bytes of its fixed.
func rowsOf(t testing.TB, r Ref, o RecordOptions) (out []any, err error) {
	t.Helper()
	alloc := arrowmem.NewCheckedAllocator(arrowmem.NewGoAllocator())
	defer alloc.AssertSize(t, 0)
	o.Alloc = alloc
	for batch, err := range r.Records(context.Background(), o) {
		if err != nil {
			return out, err
		}
		for i := range int(batch.NumRows()) {
			row := map[string]any{}
			for c, f := range batch.Schema().Fields() {
				row[f.Name] = javaValue(t, batch.Column(c), i)
			}
			out = append(out, row)
		}
		batch.Release()
	}
	return out, nil
}

func javaValue(t testing.TB, a arrow.Array, i int) any {
	if a.IsNull(i) {
		return nil
	}
	switch a := a.(type) {
	case *array.String:
		return a.Value(i)
	case *array.Int32:
		return float64(a.Value(i))
	case *array.Int64:
		return float64(a.Value(i))
	case *array.Float64:
		return a.Value(i)
	case *array.Date32:
		return float64(a.Value(i))
	case *array.Decimal128:
		v := a.Value(i).BigInt()
		if v.Sign() < 0 {
			v.Add(v, new(big.Int).Lsh(big.NewInt(1), 40))
		}
		var list []any
		for _, b := range v.FillBytes(make([]byte, 5)) {
			list = append(list, float64(int8(b)))
		}
		return list
	case *array.List:
		list := []any{}
		from, to := a.ValueOffsets(i)
		for j := from; j < to; j++ {
			list = append(list, javaValue(t, a.ListValues(), int(j)))
		}
		return list
	case *array.Struct:
		row := map[string]any{}
		for c, f := range a.DataType().(*arrow.StructType).Fields() {
			row[f.Name] = javaValue(t, a.Field(c), i)
		}
		return row
	}
	t.Fatalf("no Java form for %s", a.DataType())
	return nil
}

func putInto(t testing.TB, store *mem.Store, name string, data []byte) {
	t.Helper()
	if _, err := store.Put(t.Context(), name, bytes.NewReader(data), storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
}

// File names and their order, as Hudi 1.2.0 and 0.15.0 parse them: vectors file_names.
func TestNames(t *testing.T) {
	type row map[string]any
	var v struct {
		Names struct {
			Rows    []row `json:"rows"`
			Differs map[string][]row
		} `json:"file_names"`
	}
	readVectors(t, &v)
	check := func(rows []row, parse func(string) (Name, bool), instantKey string) (n int) {
		for _, r := range rows {
			name, ok := r["log_file"].(string)
			if !ok {
				continue
			}
			n++
			got, ok := parse(name)
			if ok != r["is_log"].(bool) {
				t.Errorf("%s: log file %v, want %v", name, ok, r["is_log"])
			}
			if !ok {
				continue
			}
			token, _ := r["getWriteTokenFromLogPath"].(string)
			want := Name{FileID: r["log_file.getFileId"].(string), Instant: r[instantKey].(string), Version: int(r["log_file.getLogVersion"].(float64)), Token: token, CDC: r["log_file.getSuffix"] == ".cdc"}
			if got != want {
				t.Errorf("%s: %+v, want %+v", name, got, want)
			}
			if parse(name); got.String() != name && token != "" {
				t.Errorf("%s written as %s", name, got)
			}
		}
		return n
	}
	if check(v.Names.Rows, ParseName, "log_file.getDeltaCommitTime") < 8 || check(v.Names.Differs["0.15.0"], ParseLooseName, "log_file.getBaseCommitTime") < 8 {
		t.Error("vectors are missing")
	}
	for _, r := range v.Names.Rows {
		order, ok := r["log_file_order"].([]any)
		if !ok {
			continue
		}
		var names []Name
		for _, o := range order {
			n, ok := ParseName(o.(string))
			if !ok {
				t.Fatal(o)
			}
			names = append(names, n)
		}
		sorted := slices.Clone(names)
		slices.Reverse(sorted)
		slices.SortFunc(sorted, Compare)
		if !reflect.DeepEqual(sorted, names) {
			t.Errorf("order %v, want %v", sorted, names)
		}
	}
}

func readVectors(t testing.TB, into any) {
	t.Helper()
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func readJava(t testing.TB, release, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata/java", release, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
