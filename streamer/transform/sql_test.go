//go:build cgo && !nocgo

package transform_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/sluicelake/sluice/streamer/transform"
)

const sqlClass = "org.apache.hudi.utilities.transform.SqlQueryBasedTransformer"

// The Java streamer's cases transform_sql_parquet, transform_ids_parquet and transform_chain_parquet: command line, columns
// with their types, and rows.
func TestStreamerCases(t *testing.T) {
	for _, c := range []struct {
		name, classes string
		props         map[string]string
		columns       string
		rows          []string
	}{
		{
			"transform_sql_parquet", sqlClass,
			map[string]string{"hoodie.streamer.transformer.sql": "SELECT id, region, qty * 2 AS qty2, ts FROM <SRC> a WHERE a.qty >= 1"},
			"id?:utf8 region?:utf8 qty2?:int32 ts?:int64", []string{`["a", "eu", 2, 1]`, `["b", "us", 4, 1]`},
		}, {
			"old name of the property", "sql",
			map[string]string{"hoodie.deltastreamer.transformer.sql": "SELECT id FROM <SRC> WHERE <SRC>.qty > 1"},
			"id?:utf8", []string{`["b"]`},
		}, {
			"transform_ids_parquet", "t1:" + sqlClass + ",t2:" + sqlClass,
			map[string]string{
				"hoodie.streamer.transformer.sql.t1": "SELECT id, region, qty + 1 AS qty, ts FROM <SRC>",
				"hoodie.streamer.transformer.sql.t2": "SELECT *, qty * 10 AS q10 FROM <SRC>",
			},
			"id?:utf8 region?:utf8 qty?:int32 ts?:int64 q10?:int32", []string{`["a", "eu", 2, 1, 20]`, `["b", "us", 3, 1, 30]`},
		}, {
			"transform_chain_parquet", "org.apache.hudi.utilities.transform.FlatteningTransformer," + sqlClass,
			map[string]string{"hoodie.streamer.transformer.sql": "SELECT *, concat(region, '-', loc_city) AS rc FROM <SRC>"},
			"id?:utf8 region?:utf8 qty?:int32 ts?:int64 loc_city?:utf8 loc_geo_lat?:float64 tags?:list<element: utf8, nullable> m?:map<utf8, int32, items_nullable> rc?:utf8",
			[]string{`["a", "eu", 1, 1, "X", 1.5, ["p", "q"], map:[["k", 1]], "eu-X"]`, `["b", "us", 2, 1, null, null, null, null, null]`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, batches := parquet(t, "testdata/events.parquet", 1)
			out, rows, err := apply(t, must(t, c.classes, c.props, transform.Options{}), in, stream(batches...))
			if err != nil {
				t.Fatal(err)
			}
			if got := fields(out); got != c.columns {
				t.Errorf("columns\n got %s\nwant %s", got, c.columns)
			}
			wantRows(t, rows, c.rows...)
		})
	}
}

// The last statement that is not empty gives the rows; the ones before it make views; ; in quotes and comments splits nothing.
func TestSQLFile(t *testing.T) {
	in, batches := parquet(t, "testdata/events.parquet", 1)
	open := textFile(`-- first; a view
		CREATE OR REPLACE TEMPORARY VIEW big AS SELECT id, qty FROM <SRC> WHERE qty > 1;
		/* then ; */ SET spark.sql.shuffle.partitions=4;
		SELECT id || ';' AS a, b.qty FROM big b;
		-- nothing
		;`)
	_, rows, err := apply(t, must(t, "sql-file", map[string]string{"hoodie.streamer.transformer.sql.file": "q.sql"}, transform.Options{Open: open}), in, stream(batches...))
	if err != nil {
		t.Fatal(err)
	}
	wantRows(t, rows, `["b;", 2]`)
}

// Errors of a statement show in Apply, before a row is read.
func TestSQLErrors(t *testing.T) {
	in, _ := parquet(t, "testdata/events.parquet", 1)
	for sql, want := range map[string]string{
		"SELECT nope FROM <SRC>":                             "line 1, column 8: A column, variable, or function parameter with name `nope` cannot be resolved",
		"SELECT frobnicate(id) FROM <SRC>":                   "function frobnicate isn't known",
		"SELECT id,\n  concat(id FROM <SRC>":                 "line 2, column 13: ) is expected, not FROM",
		"SELECT id FROM elsewhere":                           "table elsewhere is not known",
		"SELECT * FROM read_csv('/etc/passwd')":              "function read_csv isn't known",
		"DELETE FROM <SRC>":                                  "a transformer runs SELECT",
		"SELECT a.id FROM <SRC> a JOIN <SRC> b ON id = b.id": "is ambiguous",
		"SELECT NULL AS n FROM <SRC>":                        "column n of the SQL result: its type is void",
		"SELECT id RLIKE '(?=x)' AS n FROM <SRC>":            "look-around",
		"SELECT date_format(ts, 'YYYY') FROM <SRC>":          "YYYY isn't known",
		"SELECT loc.nope FROM <SRC>":                         "No such struct field nope",
		"SELECT id + tags FROM <SRC>":                        "+ of string and array<string>",
		"COPY x TO 'y'":                                      "a transformer runs SELECT",
		"SELECT " + strings.Repeat("(", 500) + "1":           "nested more than",
		"SELECT 'open":                                       "a string is not closed",
		"SELECT id FROM <SRC> WHERE":                         "an expression is expected, not the end of the statement",
	} {
		tr, err := transform.NewSQL(sql, transform.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = tr.Apply(context.Background(), in, func(func(arrow.RecordBatch, error) bool) { t.Error("rows were read") })
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, transform.ErrConfig) {
			t.Errorf("%.60s\n got %v\nwant %s", sql, err, want)
		}
	}
}

// everyType is a batch with a column of every type that tables and sources have, n rows of them, every k-th null.
func everyType(mem memory.Allocator, n int) arrow.RecordBatch {
	st := arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, arrow.Field{Name: "X y", Type: arrow.BinaryTypes.String, Nullable: true})
	types := []arrow.DataType{
		arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
		arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary, &arrow.FixedSizeBinaryType{ByteWidth: 14},
		arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64us,
		&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}, &arrow.TimestampType{Unit: arrow.Microsecond}, &arrow.TimestampType{Unit: arrow.Nanosecond},
		&arrow.Decimal128Type{Precision: 4, Scale: 2}, &arrow.Decimal128Type{Precision: 9, Scale: 0}, &arrow.Decimal128Type{Precision: 18, Scale: 6}, &arrow.Decimal128Type{Precision: 38, Scale: 10}, &arrow.Decimal128Type{Precision: 5, Scale: -3},
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String},
		arrow.ListOf(arrow.PrimitiveTypes.Int64), arrow.ListOf(arrow.BinaryTypes.String), arrow.ListOf(st), arrow.ListOf(arrow.ListOf(arrow.FixedWidthTypes.Boolean)),
		arrow.MapOf(arrow.BinaryTypes.String, &arrow.Decimal128Type{Precision: 20, Scale: 1}), arrow.MapOf(arrow.BinaryTypes.String, arrow.ListOf(st)), st,
		arrow.StructOf(arrow.Field{Name: "in", Type: st, Nullable: true}, arrow.Field{Name: "l", Type: arrow.ListOf(arrow.BinaryTypes.Binary), Nullable: true}),
	}
	var fields []arrow.Field
	for i, dt := range types {
		fields = append(fields, arrow.Field{Name: fmt.Sprintf("c %d %s", i, dt.Name()), Type: dt, Nullable: true})
	}
	b := array.NewRecordBuilder(mem, arrow.NewSchema(fields, nil))
	defer b.Release()
	for i := range types {
		for row := range n {
			fillValue(b.Field(i), row+i, 7)
		}
	}
	return b.NewRecordBatch()
}

// fillValue appends the value of a number; every k-th is null.
func fillValue(b array.Builder, n, k int) {
	if n%k == 0 {
		b.AppendNull()
		return
	}
	sign := int64(n)
	if n%2 == 0 {
		sign = -sign
	}
	str := strings.Repeat("é", n%11) + fmt.Sprint(n) // up to and beyond 12 bytes
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(n%3 == 0)
	case *array.Int8Builder:
		b.Append(int8(sign))
	case *array.Int16Builder:
		b.Append(int16(sign))
	case *array.Int32Builder:
		b.Append(int32(sign))
	case *array.Int64Builder:
		b.Append(sign << 40)
	case *array.Uint8Builder:
		b.Append(uint8(255 - n%100))
	case *array.Uint16Builder:
		b.Append(uint16(65535 - n%100))
	case *array.Uint32Builder:
		b.Append(uint32(1<<32 - n%100 - 1))
	case *array.Uint64Builder:
		b.Append(^uint64(n))
	case *array.Float32Builder:
		b.Append(float32(sign) / 4)
	case *array.Float64Builder:
		b.Append(float64(sign) / 3)
	case *array.StringBuilder:
		b.Append(str)
	case *array.LargeStringBuilder:
		b.Append(str)
	case *array.BinaryBuilder:
		b.Append([]byte{0, 0xff, byte(n)})
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte("fourteen bytes"))
	case *array.Date32Builder:
		b.Append(arrow.Date32(sign))
	case *array.Time32Builder:
		b.Append(arrow.Time32(n))
	case *array.Time64Builder:
		b.Append(arrow.Time64(n))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(sign * 86400000123))
	case *array.Decimal128Builder:
		x := sign
		if b.Type().(*arrow.Decimal128Type).Precision < 9 {
			x %= 10000
		}
		if b.Type().(*arrow.Decimal128Type).Precision == 38 {
			big := decimal128.FromI64(x).IncreaseScaleBy(25)
			b.Append(big)
			return
		}
		b.Append(decimal128.FromI64(x))
	case *array.BinaryDictionaryBuilder:
		if err := b.AppendString(fmt.Sprintf("region-%d-of-many", n%3)); err != nil {
			panic(err)
		}
	case *array.ListBuilder:
		b.Append(true)
		for i := range n % 4 {
			fillValue(b.ValueBuilder(), n+i+1, 5)
		}
	case *array.MapBuilder:
		b.Append(true)
		for i := range n % 3 {
			b.KeyBuilder().(*array.StringBuilder).Append(fmt.Sprint("key ", i))
			fillValue(b.ItemBuilder(), n+i, 5)
		}
	case *array.StructBuilder:
		b.AppendValues([]bool{true})
		for i := range b.NumField() {
			fillValue(b.FieldBuilder(i), n+i, 4)
		}
	default:
		panic(fmt.Sprintf("%T", b))
	}
}

// Every type crosses into DuckDB and back as it was, over many batches and chunks, with nulls, nested, before 1970; slices of
// batches too. Nothing leaks.
func TestEveryType(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	tr, err := transform.NewSQL("SELECT * FROM <SRC>", transform.Options{Allocator: mem})
	if err != nil {
		t.Fatal(err)
	}
	var batches []arrow.RecordBatch
	var want []string
	for _, n := range []int{0, 1, 5000, 2048, 3} {
		b := everyType(mem, n)
		defer b.Release()
		cut := b
		if n > 3000 {
			cut = b.NewSlice(100, int64(n)-50)
			defer cut.Release()
		}
		batches = append(batches, cut)
		columns := make([]arrow.Array, cut.NumCols())
		for j := range columns {
			columns[j] = asSpark(cut.Column(j))
		}
		for i := range int(cut.NumRows()) {
			row := make([]any, cut.NumCols())
			for j := range row {
				row[j] = plain(columns[j], i)
			}
			want = append(want, text(row))
		}
	}
	in := batches[0].Schema()
	out, rows, err := apply(t, tr, in, stream(batches...))
	if err != nil {
		t.Fatal(err)
	}
	got := texts(rows)
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	bad := 0
	for i := range got {
		if got[i] != want[i] && bad < 3 {
			bad++
			t.Errorf("row %d\n got %s\nwant %s", i, got[i], want[i])
		}
	}
	for i, f := range out.Fields() {
		if f.Name != in.Field(i).Name || !f.Nullable {
			t.Errorf("column %d is %s", i, f)
		}
	}
}

// asSpark is a column in the type that Spark reads it with.
func asSpark(a arrow.Array) arrow.Array {
	switch a := a.(type) {
	case *array.Uint8:
		b := array.NewInt16Builder(memory.DefaultAllocator)
		for i := range a.Len() {
			if a.IsNull(i) {
				b.AppendNull()
			} else {
				b.Append(int16(a.Value(i)))
			}
		}
		return b.NewArray()
	case *array.Uint16:
		b := array.NewInt32Builder(memory.DefaultAllocator)
		for i := range a.Len() {
			if a.IsNull(i) {
				b.AppendNull()
			} else {
				b.Append(int32(a.Value(i)))
			}
		}
		return b.NewArray()
	case *array.Uint64:
		b := array.NewDecimal128Builder(memory.DefaultAllocator, &arrow.Decimal128Type{Precision: 20})
		for i := range a.Len() {
			if a.IsNull(i) {
				b.AppendNull()
			} else {
				b.Append(decimal128.FromU64(a.Value(i)))
			}
		}
		return b.NewArray()
	case *array.Decimal128:
		if a.DataType().(*arrow.Decimal128Type).Scale >= 0 {
			return a
		}
		b := array.NewDecimal128Builder(memory.DefaultAllocator, &arrow.Decimal128Type{Precision: 8})
		for i := range a.Len() {
			if a.IsNull(i) {
				b.AppendNull()
			} else {
				b.Append(a.Value(i).IncreaseScaleBy(3))
			}
		}
		return b.NewArray()
	case *array.LargeString:
		b := array.NewStringBuilder(memory.DefaultAllocator)
		for i := range a.Len() {
			if a.IsNull(i) {
				b.AppendNull()
			} else {
				b.Append(a.Value(i))
			}
		}
		return b.NewArray()
	case *array.FixedSizeBinary:
		b := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
		for i := range a.Len() {
			if a.IsNull(i) {
				b.AppendNull()
			} else {
				b.Append(a.Value(i))
			}
		}
		return b.NewArray()
	case *array.Dictionary:
		b := array.NewStringBuilder(memory.DefaultAllocator)
		for i := range a.Len() {
			if a.IsNull(i) {
				b.AppendNull()
			} else {
				b.Append(a.Dictionary().(*array.String).Value(a.GetValueIndex(i)))
			}
		}
		return b.NewArray()
	case *array.Timestamp:
		unit := a.DataType().(*arrow.TimestampType).Unit
		if unit == arrow.Microsecond {
			return a
		}
		b := array.NewTimestampBuilder(memory.DefaultAllocator, &arrow.TimestampType{Unit: arrow.Microsecond})
		for i := range a.Len() {
			if a.IsNull(i) {
				b.AppendNull()
			} else {
				b.Append(arrow.Timestamp(a.Value(i).ToTime(unit).UnixMicro()))
			}
		}
		return b.NewArray()
	}
	return a
}

// numbers makes batches of k and a text until the limit, counting them.
func numbers(mem memory.Allocator, batches, rows int, given *int) (*arrow.Schema, iter.Seq2[arrow.RecordBatch, error]) {
	s := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}, {Name: "v", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	return s, func(yield func(arrow.RecordBatch, error) bool) {
		for *given = 0; *given < batches; *given++ {
			b := array.NewRecordBuilder(mem, s)
			for i := range rows {
				k := int64(*given*rows + i)
				b.Field(0).(*array.Int64Builder).Append(k)
				b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("a text of more than a hundred characters %0100d", k*7919%int64(batches*rows)))
			}
			r := b.NewRecordBatch()
			b.Release()
			if !yield(r, nil) {
				return
			}
		}
	}
}

// More rows than memory: they are sorted within 64 MiB, spilling; the folder is gone afterwards. The order of equal keys and of
// unsorted rows is the source's.
func TestSpill(t *testing.T) {
	dir := t.TempDir()
	given := 0
	in, rows := numbers(memory.DefaultAllocator, 60, 10000, &given) // about 90 MB of text
	tr, err := transform.NewSQL("SELECT k, v FROM <SRC> ORDER BY v DESC", transform.Options{Memory: 64 << 20, TempDir: dir, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	_, result, err := tr.Apply(t.Context(), in, rows)
	if err != nil {
		t.Fatal(err)
	}
	n, last := 0, "~"
	for batch, err := range result {
		if err != nil {
			t.Fatal(err)
		}
		v := batch.Column(1).(*array.String)
		for i := range v.Len() {
			if v.Value(i) > last {
				t.Fatalf("%s comes after %s", v.Value(i), last)
			}
			last = strings.Clone(v.Value(i))
		}
		n += v.Len()
		batch.Release()
	}
	if n != 600000 || given != 60 {
		t.Errorf("%d rows of %d batches", n, given)
	}
	if left := glob(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestOrderIsKept(t *testing.T) {
	given := 0
	in, rows := numbers(memory.DefaultAllocator, 30, 10000, &given)
	tr, err := transform.NewSQL("SELECT k FROM <SRC> WHERE k % 3 = 0", transform.Options{Threads: 4})
	if err != nil {
		t.Fatal(err)
	}
	_, result, err := tr.Apply(t.Context(), in, rows)
	if err != nil {
		t.Fatal(err)
	}
	next := int64(0)
	for batch, err := range result {
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range batch.Column(0).(*array.Int64).Int64Values() {
			if k != next {
				t.Fatalf("row %d where %d is due", k, next)
			}
			next += 3
		}
		batch.Release()
	}
	if next != 300000 {
		t.Errorf("%d rows", next/3)
	}
}

// Stopping early, a failing source and a cancelled context leave nothing behind, in memory or on disk.
func TestSQLStops(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	dir := t.TempDir()
	tr, err := transform.NewSQL("SELECT a.k FROM <SRC> a JOIN <SRC> b ON a.k < b.k", transform.Options{Allocator: mem, TempDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	given := 0
	in, rows := numbers(mem, 3, 10000, &given)
	_, result, err := tr.Apply(t.Context(), in, rows)
	if err != nil {
		t.Fatal(err)
	}
	for batch, err := range result {
		if err != nil {
			t.Fatal(err)
		}
		batch.Release()
		break
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, result, err = tr.Apply(ctx, in, rows)
	if err != nil {
		t.Fatal(err)
	}
	for batch, err := range result {
		if err != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			break
		}
		batch.Release()
	}
	if ctx.Err() == nil {
		t.Error("the query ended before its time")
	}
	broken := errors.New("file half written")
	_, _, err = apply(t, tr, in, func(yield func(arrow.RecordBatch, error) bool) { yield(nil, broken) })
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if left := glob(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
