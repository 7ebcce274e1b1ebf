package transform_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/streamer/transform"
)

// parquet reads a small file that Spark wrote, in batches of a given number of rows.
func parquet(t testing.TB, name string, rows int64) (*arrow.Schema, []arrow.RecordBatch) {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	pf, err := file.NewParquetReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	r, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{BatchSize: rows}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	rr, err := r.GetRecordReader(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rr.Release()
	var list []arrow.RecordBatch
	for rr.Next() {
		b := rr.RecordBatch()
		b.Retain()
		list = append(list, b)
	}
	return rr.Schema(), list
}

// stream gives batches as a source does: each with a reference for whoever receives it.
func stream(batches ...arrow.RecordBatch) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for _, b := range batches {
			b.Retain()
			if !yield(b, nil) {
				return
			}
		}
	}
}

// apply runs a transformer and gives the schema and rows of its result.
func apply(t testing.TB, tr transform.Transformer, in *arrow.Schema, rows iter.Seq2[arrow.RecordBatch, error]) (*arrow.Schema, [][]any, error) {
	t.Helper()
	out, result, err := tr.Apply(context.Background(), in, rows)
	if err != nil {
		return nil, nil, err
	}
	all := [][]any{}
	for batch, err := range result {
		if err != nil {
			return out, nil, err
		}
		if !batch.Schema().Equal(out) {
			t.Errorf("a batch has the schema %s, Apply said %s", batch.Schema(), out)
		}
		for i := range int(batch.NumRows()) {
			row := make([]any, batch.NumCols())
			for j := range row {
				row[j] = plain(batch.Column(j), i)
			}
			all = append(all, row)
		}
		batch.Release()
	}
	return out, all, nil
}

func must(t testing.TB, classes string, props map[string]string, o transform.Options) transform.Transformer {
	t.Helper()
	tr, err := transform.New([]string{classes}, props, o)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// plain is a value in the form that interop/sparksql/record.py gives it.
func plain(a arrow.Array, i int) any {
	if a.IsNull(i) {
		return nil
	}
	number := func(n int64) any {
		if n >= 1<<53 || n <= -1<<53 {
			return map[string]any{"int": strconv.FormatInt(n, 10)}
		}
		return float64(n)
	}
	float := func(f float64) any {
		if math.IsNaN(f) {
			return map[string]any{"float": "NaN"}
		}
		return map[string]any{"float": f}
	}
	switch a := a.(type) {
	case *array.Boolean:
		return a.Value(i)
	case *array.Int8:
		return number(int64(a.Value(i)))
	case *array.Int16:
		return number(int64(a.Value(i)))
	case *array.Int32:
		return number(int64(a.Value(i)))
	case *array.Int64:
		return number(a.Value(i))
	case *array.Uint32:
		return number(int64(a.Value(i)))
	case *array.Time32:
		return number(int64(a.Value(i)))
	case *array.Time64:
		return number(int64(a.Value(i)))
	case *array.Float32:
		return float(float64(a.Value(i)))
	case *array.Float64:
		return float(a.Value(i))
	case *array.String:
		return a.Value(i)
	case *array.Binary:
		return map[string]any{"hex": hex.EncodeToString(a.Value(i))}
	case *array.Decimal128:
		return map[string]any{"decimal": string(schema.AppendDecimal(nil, a.Value(i).BigInt(), a.DataType().(*arrow.Decimal128Type).Scale))}
	case *array.Date32:
		return map[string]any{"date": a.Value(i).ToTime().Format("2006-01-02")}
	case *array.Timestamp:
		return map[string]any{"time": a.Value(i).ToTime(a.DataType().(*arrow.TimestampType).Unit).Format("2006-01-02T15:04:05.000000")}
	case *array.Struct:
		row := []any{}
		for j := range a.NumField() {
			row = append(row, plain(a.Field(j), i))
		}
		return map[string]any{"struct": row}
	case *array.Map:
		pairs := []any{}
		from, to := a.ValueOffsets(i)
		for k := from; k < to; k++ {
			pairs = append(pairs, []any{plain(a.Keys(), int(k)), plain(a.Items(), int(k))})
		}
		return map[string]any{"map": pairs}
	case array.ListLike:
		list := []any{}
		from, to := a.ValueOffsets(i)
		for k := from; k < to; k++ {
			list = append(list, plain(a.ListValues(), int(k)))
		}
		return list
	}
	panic(fmt.Sprintf("no plain form of %T", a))
}

// text is a row or value as one line, for comparing and for messages.
func text(v any) string {
	switch x := v.(type) {
	case nil:
		return "null"
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64)
	case string:
		return strconv.Quote(x)
	case []any:
		s := "["
		for i, e := range x {
			if i > 0 {
				s += ", "
			}
			s += text(e)
		}
		return s + "]"
	case map[string]any:
		for k, e := range x {
			if k == "float" {
				if s, ok := e.(string); ok {
					f, err := strconv.ParseFloat(s, 64)
					if err != nil {
						return "?" + s
					}
					e = f
				}
				return strconv.FormatFloat(e.(float64), 'g', 15, 64) // the last digits of sums depend on their order
			}
			if d, ok := e.(string); ok && k == "decimal" && strings.Contains(d, ".") {
				e = strings.TrimRight(d, "0") // the scale is the type's; Python writes some with more digits
			}
			if pairs, ok := e.([]any); ok && k == "map" {
				list := make([]string, len(pairs)) // a map's pairs have no order
				for i, p := range pairs {
					list[i] = text(p)
				}
				return "map:[" + strings.Join(sorted(list), ", ") + "]"
			}
			return k + ":" + text(e)
		}
	}
	return fmt.Sprint(v)
}

func texts(rows [][]any) []string {
	list := make([]string, len(rows))
	for i, r := range rows {
		list[i] = text(r)
	}
	return list
}

func sorted(s []string) []string { s = slices.Clone(s); slices.Sort(s); return s }

func glob(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
