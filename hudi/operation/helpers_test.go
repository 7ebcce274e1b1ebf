package operation_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/operation"
	"github.com/sluicelake/sluice/hudi/service"
	"github.com/sluicelake/sluice/hudi/write"
	"github.com/sluicelake/sluice/hudi/write/lock"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/mem"
)

var columns = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "p", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "v", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "ts", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "_hoodie_is_deleted", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	{Name: "Op", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

// batch makes rows of JSON objects, one a line.
func batch(tb testing.TB, s *arrow.Schema, lines string) arrow.RecordBatch {
	tb.Helper()
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, s, strings.NewReader("["+strings.Join(strings.Fields(strings.ReplaceAll(lines, "} {", "},{")), "")+"]"))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func rows(tb testing.TB, s *arrow.Schema, lines string) operation.Rows {
	b := batch(tb, s, lines)
	return operation.Rows{Schema: s, Batches: stream(b)}
}

func stream(batches ...arrow.RecordBatch) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for _, b := range batches {
			if !yield(b, nil) {
				return
			}
		}
	}
}

// short makes rows of "id p v ts" with | between them.
func short(tb testing.TB, text string) operation.Rows {
	tb.Helper()
	var lines []string
	for part := range strings.SplitSeq(text, "|") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		f := append(strings.Fields(part), "1", "1", "1")
		lines = append(lines, fmt.Sprintf(`{"id":%q,"p":%q,"v":%s,"ts":%s}`, f[0], f[1], f[2], f[3]))
	}
	return rows(tb, columns, strings.Join(lines, ","))
}

func conf(more ...string) map[string]string {
	out := map[string]string{"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "p", "hoodie.datasource.write.precombine.field": "ts"}
	for i := 0; i+1 < len(more); i += 2 {
		out[more[i]] = more[i+1]
	}
	return out
}

func create(tb testing.TB, change func(*write.Spec)) *mem.Store {
	tb.Helper()
	s := mem.New("t")
	spec := write.Spec{Name: "t", RecordKeyFields: []string{"id"}, PartitionFields: []string{"p"}, OrderingFields: []string{"ts"}}
	if change != nil {
		change(&spec)
	}
	if _, err := write.CreateTable(context.Background(), s, spec); err != nil {
		tb.Fatal(err)
	}
	return s
}

func run(tb testing.TB, s storage.Store, kind operation.Kind, r operation.Rows, c map[string]string) *operation.Result {
	tb.Helper()
	result, err := operation.Run(context.Background(), s, kind, r, operation.Options{Conf: c, Parallel: 2})
	if err != nil {
		tb.Fatalf("%s: %v", kind, err)
	}
	return result
}

// snapshot gives "id p v" of every row, with the folder in front where it is another than p, sorted; of keys that are no ids too.
func snapshot(s storage.Store) ([]string, error) {
	ctx := context.Background()
	t, err := hudi.Open(ctx, s.URL(), hudi.Options{Store: s})
	if err != nil {
		return nil, err
	}
	snap, err := t.Snapshot(ctx, hudi.Query{Stored: true})
	if err != nil {
		return nil, err
	}
	var out []string
	for b, err := range snap.Scan(ctx, hudi.Scan{}) {
		if err != nil {
			return nil, err
		}
		get := func(name string, i int) string {
			at := b.Schema().FieldIndices(name)
			if len(at) == 0 {
				return "-"
			}
			return b.Column(at[0]).ValueStr(i)
		}
		for i := range int(b.NumRows()) {
			text := get("_hoodie_record_key", i) + " " + get("p", i) + " " + get("v", i)
			if folder := get("_hoodie_partition_path", i); folder != get("p", i) {
				text = folder + "/" + text
			}
			out = append(out, text)
		}
		b.Release()
	}
	slices.Sort(out)
	return out, nil
}

func expect(tb testing.TB, s storage.Store, want string) {
	tb.Helper()
	got, err := snapshot(s)
	if err != nil {
		tb.Fatal(err)
	}
	var list []string
	for part := range strings.SplitSeq(want, "|") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	slices.Sort(list)
	if !slices.Equal(got, list) {
		tb.Errorf("rows\n  %s\nwant\n  %s", strings.Join(got, " | "), strings.Join(list, " | "))
	}
	sound(tb, s)
}

// sound holds the table against everything that table validate knows.
func sound(tb testing.TB, s storage.Store) {
	tb.Helper()
	report, err := service.Validate(context.Background(), s, service.ValidateOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.Severity != service.Info && f.Code != service.KeyDuplicate {
			tb.Errorf("%s", f)
		}
	}
}

// dump is the JSON of all columns, for tests of other shapes.
func dump(tb testing.TB, s storage.Store) []map[string]any {
	tb.Helper()
	ctx := context.Background()
	t, err := hudi.Open(ctx, s.URL(), hudi.Options{Store: s})
	if err != nil {
		tb.Fatal(err)
	}
	snap, err := t.Snapshot(ctx, hudi.Query{Stored: true})
	if err != nil {
		tb.Fatal(err)
	}
	var out []map[string]any
	for b, err := range snap.Scan(ctx, hudi.Scan{}) {
		if err != nil {
			tb.Fatal(err)
		}
		var buf bytes.Buffer
		if err := array.RecordToJSON(b, &buf); err != nil {
			tb.Fatal(err)
		}
		for line := range strings.Lines(buf.String()) {
			var row map[string]any
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				tb.Fatal(err)
			}
			out = append(out, row)
		}
		b.Release()
	}
	slices.SortFunc(out, func(a, b map[string]any) int {
		return strings.Compare(fmt.Sprint(a["_hoodie_record_key"]), fmt.Sprint(b["_hoodie_record_key"]))
	})
	return out
}

// files gives the data files of a partition.
func files(tb testing.TB, s storage.Store, partition string) []filegroup.BaseName {
	tb.Helper()
	var out []filegroup.BaseName
	for info, err := range s.List(context.Background(), partition, storage.ListOptions{}) {
		if err != nil && !errors.Is(err, storage.ErrNotExist) {
			tb.Fatal(err)
		}
		if b, ok := filegroup.ParseBaseName(path.Base(info.Name)); ok {
			out = append(out, b)
		}
	}
	return out
}

// groups counts the file groups of a partition.
func groups(tb testing.TB, s storage.Store, partition string) int {
	ids := map[string]bool{}
	for _, f := range files(tb, s, partition) {
		ids[f.FileID] = true
	}
	return len(ids)
}

func copyOf(tb testing.TB, s storage.Store) *mem.Store {
	tb.Helper()
	ctx := context.Background()
	out := mem.New(strings.TrimPrefix(s.URL(), "mem://"))
	for info, err := range s.List(ctx, "", storage.ListOptions{Recursive: true}) {
		if err != nil {
			tb.Fatal(err)
		}
		data, err := storage.ReadAll(ctx, s, info.Name, 1<<30)
		if err == nil {
			_, err = out.Put(ctx, info.Name, bytes.NewReader(data), storage.PutOptions{})
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	return out
}

func merged(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// afterwards is a clock on which every lease has run out.
func afterwards() time.Time { return time.Now().Add(time.Hour) }

func nextWriter() operation.Options {
	return operation.Options{Lock: &lock.Options{Wait: -1, Now: afterwards}, Now: afterwards}
}

// inOrder gives partition and key of the rows as they lie in the files.
func inOrder(tb testing.TB, s storage.Store) (out []string) {
	tb.Helper()
	ctx := context.Background()
	t, err := hudi.Open(ctx, s.URL(), hudi.Options{Store: s})
	if err != nil {
		tb.Fatal(err)
	}
	snap, err := t.Snapshot(ctx, hudi.Query{})
	if err != nil {
		tb.Fatal(err)
	}
	for b, err := range snap.Scan(ctx, hudi.Scan{Columns: []string{"_hoodie_partition_path", "_hoodie_record_key"}}) {
		if err != nil {
			tb.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			out = append(out, b.Column(0).ValueStr(i)+"/"+b.Column(1).ValueStr(i))
		}
		b.Release()
	}
	return out
}
