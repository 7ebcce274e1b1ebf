package transform_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/sluicelake/sluice/streamer/transform"
)

// fields writes a schema as the cases of the Java streamer list it: name and type, ? for nullable.
func fields(s *arrow.Schema) string {
	var list []string
	for _, f := range s.Fields() {
		n := ""
		if f.Nullable {
			n = "?"
		}
		list = append(list, f.Name+n+":"+f.Type.String())
	}
	return strings.Join(list, " ")
}

func wantRows(t *testing.T, rows [][]any, want ...string) {
	t.Helper()
	if got := texts(rows); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The Java streamer's case transform_chain_parquet, without its SQL.
func TestFlatten(t *testing.T) {
	in, batches := parquet(t, "testdata/events.parquet", 100)
	out, rows, err := apply(t, must(t, "org.apache.hudi.utilities.transform.FlatteningTransformer", nil, transform.Options{}), in, stream(batches...))
	if err != nil {
		t.Fatal(err)
	}
	if got := names(out); got != "id region qty ts loc_city loc_geo_lat tags m" {
		t.Errorf("columns %s", got)
	}
	wantRows(t, rows,
		`["a", "eu", 1, 1, "X", 1.5, ["p", "q"], map:[["k", 1]]]`,
		`["b", "us", 2, 1, null, null, null, null]`)
}

func names(s *arrow.Schema) string {
	var list []string
	for _, f := range s.Fields() {
		list = append(list, f.Name)
	}
	return strings.Join(list, " ")
}

// A value below a null struct is null whatever stands in the child's memory, also in a slice of a batch; nothing leaks.
func TestFlattenNullStructs(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	inner := arrow.StructOf(arrow.Field{Name: "y", Type: arrow.PrimitiveTypes.Int64})
	s := arrow.NewSchema([]arrow.Field{
		{Name: "k", Type: arrow.PrimitiveTypes.Int32},
		{Name: "a", Type: arrow.StructOf(arrow.Field{Name: "x", Type: arrow.BinaryTypes.String}, arrow.Field{Name: "b", Type: inner, Nullable: true}), Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(mem, s)
	defer b.Release()
	a := b.Field(1).(*array.StructBuilder)
	for i := range 10 {
		b.Field(0).(*array.Int32Builder).Append(int32(i))
		a.AppendValues([]bool{i%3 != 0})
		a.FieldBuilder(0).(*array.StringBuilder).Append("under")
		sub := a.FieldBuilder(1).(*array.StructBuilder)
		sub.AppendValues([]bool{i%2 == 0})
		sub.FieldBuilder(0).(*array.Int64Builder).Append(int64(i))
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	cut := batch.NewSlice(2, 7)
	defer cut.Release()
	out, rows, err := apply(t, transform.Flatten{Allocator: mem}, s, stream(cut))
	if err != nil {
		t.Fatal(err)
	}
	if got := fields(out); got != "k:int32 a_x?:utf8 a_b_y?:int64" {
		t.Errorf("schema %s", got)
	}
	wantRows(t, rows, `[2, "under", 2]`, `[3, null, null]`, `[4, "under", 4]`, `[5, "under", null]`, `[6, null, null]`)
}

func TestFlattenRefusesEqualNames(t *testing.T) {
	s := arrow.NewSchema([]arrow.Field{{Name: "a_B", Type: arrow.PrimitiveTypes.Int32}, {Name: "a", Type: arrow.StructOf(arrow.Field{Name: "b", Type: arrow.PrimitiveTypes.Int32})}}, nil)
	if _, _, err := (transform.Flatten{}).Apply(context.Background(), s, nil); err == nil || !strings.Contains(err.Error(), "both a_B and a.b become the column a_b") {
		t.Errorf("got %v", err)
	}
}

// The Java streamer's case dms_cow: a full load gets Op at the end, string and not null; change files pass as they are.
func TestAWSDms(t *testing.T) {
	in, load := parquet(t, "testdata/dms-load.parquet", 1)
	tr := must(t, "AWSDmsTransformer", nil, transform.Options{})
	out, rows, err := apply(t, tr, in, stream(load...))
	if err != nil {
		t.Fatal(err)
	}
	op := out.Field(out.NumFields() - 1)
	if op.Name != "Op" || op.Nullable || op.Type.ID() != arrow.STRING {
		t.Errorf("the last column is %s", op)
	}
	if len(rows) != 2 || rows[0][len(rows[0])-1] != "" || rows[1][len(rows[1])-1] != "" {
		t.Errorf("rows %v", texts(rows))
	}
	in, change := parquet(t, "testdata/dms-change.parquet", 10)
	out, rows, err = apply(t, tr, in, stream(change...))
	if err != nil || !out.Equal(in) || len(rows) == 0 || rows[0][0] == "" {
		t.Errorf("a change file became %v %v, %v", out, texts(rows), err)
	}
}

// Spark's withColumn("Op", …) replaces a column that differs in case alone, at its place and under the new name.
func TestAWSDmsOtherCase(t *testing.T) {
	s := arrow.NewSchema([]arrow.Field{{Name: "OP", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, {Name: "k", Type: arrow.PrimitiveTypes.Int32}}, nil)
	out, _, err := transform.AWSDms{}.Apply(context.Background(), s, stream())
	if err != nil || fields(out) != "Op:utf8 k:int32" {
		t.Errorf("got %v, %v", out, err)
	}
}

// The error texts are those of the Java streamer's cases transform_unknown, transform_mixed_ids and transform_missing_sql.
func TestNewErrors(t *testing.T) {
	const pkg = "org.apache.hudi.utilities.transform."
	for _, c := range []struct {
		classes, want string
	}{
		{"com.example.Nope", "Could not load transformer class(es) [com.example.Nope]: Unable to load class: com.example.Nope"},
		{"com.example.FlatteningTransformer", "Unable to load class: com.example.FlatteningTransformer"},
		{"t1:" + pkg + "FlatteningTransformer," + pkg + "AWSDmsTransformer", "Could not load transformer class(es) [t1:" + pkg + "FlatteningTransformer, " + pkg + "AWSDmsTransformer]: Either all transformers should have identifier or none should"},
		{"a:b:flatten", "There should only be one colon in a configured transformer"},
		{":flatten", "Transformer identifier is empty for :flatten"},
		{"a:flatten,a:dms", "Duplicate identifier a found for transformer a:dms"},
		{pkg + "SqlQueryBasedTransformer", "Property hoodie.streamer.transformer.sql not found"},
		{"sql-file", "Property hoodie.streamer.transformer.sql.file not found"},
		{"add-columns", "Property sluice.add.columns not found"},
	} {
		_, err := transform.New([]string{c.classes}, nil, transform.Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, transform.ErrConfig) {
			t.Errorf("%s: got %v, want %q", c.classes, err, c.want)
		}
	}
}

func TestAddColumns(t *testing.T) {
	in, batches := parquet(t, "testdata/events.parquet", 1)
	tr := must(t, "add-columns", map[string]string{"sluice.add.columns": `
		twice long = qty * 2;
		city string = loc == nil ? nil : loc.city;
		region string = upper(region) + "; " + id;
		tagged boolean = len(tags ?? []) > 0; half double = qty / 2`}, transform.Options{})
	out, rows, err := apply(t, tr, in, stream(batches...))
	if err != nil {
		t.Fatal(err)
	}
	if got := names(out); got != "id region qty ts loc tags m twice city tagged half" {
		t.Errorf("columns %s", got)
	}
	wantRows(t, rows,
		`["a", "EU; a", 1, 1, struct:["X", struct:[1.5]], ["p", "q"], map:[["k", 1]], 2, "X", true, 0.5]`,
		`["b", "US; b", 2, 1, null, null, null, 4, null, false, 1]`)
	for text, want := range map[string]string{
		"x long = nope + 1": "uses nope, which is no column",
		"x long = id":       "row 1 of the round: it gives a (string), not a int64",
		"x = 1":             "it is not NAME TYPE = EXPRESSION",
		"x money = 1":       "type money",
		"x long = (":        "unexpected token",
	} {
		tr, err := transform.NewAddColumns(text, nil)
		if err == nil {
			_, _, err = apply(t, tr, in, stream(batches...))
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// A failing source ends the result with its error; stopping early stops the source; every batch is released once.
func TestStreams(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	s := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int32}}, nil)
	broken := errors.New("file half written")
	given := 0
	source := func(fail bool) iter.Seq2[arrow.RecordBatch, error] {
		return func(yield func(arrow.RecordBatch, error) bool) {
			for given = 0; given < 3; given++ {
				b := array.NewRecordBuilder(mem, s)
				b.Field(0).(*array.Int32Builder).Append(1)
				r := b.NewRecordBatch()
				b.Release()
				if !yield(r, nil) {
					return
				}
			}
			if fail {
				yield(nil, broken)
			}
		}
	}
	chain := must(t, "dms,flatten,identity", nil, transform.Options{Allocator: mem})
	if _, _, err := apply(t, chain, s, source(true)); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	_, result, err := chain.Apply(context.Background(), s, source(false))
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
	if given != 0 {
		t.Errorf("the source gave %d batches after the one that was taken", given)
	}
}

func textFile(text string) func(context.Context, string) (io.ReadCloser, error) {
	return func(context.Context, string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text)), nil
	}
}
