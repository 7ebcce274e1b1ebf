package basefile_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/internal/gather"
	"github.com/sluicelake/sluice/storage/mem"
)

// keyed puts a column that no file has and a record key beside the columns of a batch, and cuts rows off both ends.
func keyed(r *rand.Rand, batch arrow.RecordBatch) arrow.RecordBatch {
	keys, other := array.NewStringBuilder(memory.DefaultAllocator), array.NewInt32Builder(memory.DefaultAllocator)
	for range batch.NumRows() {
		keys.Append(strings.Repeat("key", r.IntN(4)) + fmt.Sprint(r.IntN(1000000)))
		other.Append(r.Int32())
	}
	fields := append([]arrow.Field{{Name: "#other", Type: arrow.PrimitiveTypes.Int32}, {Name: schema.RecordKey, Type: arrow.BinaryTypes.String, Nullable: true}}, batch.Schema().Fields()...)
	columns := append([]arrow.Array{other.NewArray(), keys.NewArray()}, batch.Columns()...)
	all := array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, batch.NumRows())
	from := r.Int64N(10)
	return all.NewSlice(from, all.NumRows()-r.Int64N(10))
}

// randomPicks takes rows of batches: all of one, those of a target in their order, or any.
func randomPicks(r *rand.Rand, batches []arrow.RecordBatch) (picks []basefile.Picked, runs []gather.Run) {
	for range 1 + r.IntN(4) {
		src := r.IntN(len(batches))
		n := int(batches[src].NumRows())
		p := basefile.Picked{Batch: batches[src]}
		switch kind := r.IntN(4); kind {
		case 0:
			runs = append(runs, gather.Run{Src: int32(src), N: int32(n)})
			picks = append(picks, p)
			continue
		case 1:
			p.Rows = []int32{}
		case 2:
			for i := range n {
				if r.IntN(5) == 0 {
					p.Rows = append(p.Rows, int32(i))
				}
			}
		default:
			for range r.IntN(n) {
				p.Rows = append(p.Rows, r.Int32N(int32(n)))
			}
		}
		if p.Rows == nil {
			p.Rows = []int32{}
		}
		for _, row := range p.Rows {
			runs = append(runs, gather.Run{Src: int32(src), Row: row, N: 1})
		}
		picks = append(picks, p)
	}
	return picks, runs
}

// Rows of every type that are picked out of several batches make the file that the same rows make when they are put together first, with
// their meta columns, filter and key range.
func TestPickedRows(t *testing.T) {
	user, columns := allAvro(t)
	avro := schema.WithMeta(user)
	full, err := avro.Arrow()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 11))
		alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
		o := basefile.WriterOptions{Schema: avro, Codec: "snappy", PlainOnly: seed%5 == 4, Bloom: basefile.DefaultBloom(), Alloc: alloc, Parallel: int(seed % 3)}
		o.PageBytes = []int64{100, 1500, 5000, 0}[seed%4]
		o.RowGroupBytes = []int64{100000, 0}[seed%2]
		stamp := basefile.Stamp{CommitTime: "20240418173551906", Partition: "region=eu", FileName: "f_1-0-1_2.parquet", SeqnoPrefix: "20240418173551906_7_"}
		if seed%6 == 5 {
			stamp, o.Bloom = basefile.Stamp{}, nil
		}
		var batches []arrow.RecordBatch
		for range 1 + r.IntN(3) {
			batches = append(batches, keyed(r, allBatch(r, columns, 50+r.IntN(3000))))
		}
		var calls [][]basefile.Picked
		var runs []gather.Run
		for range r.IntN(4) {
			picks, more := randomPicks(r, batches)
			calls, runs = append(calls, picks), append(runs, more...)
		}
		want := putTogether(t, full, batches, runs, stamp)
		plain := o
		plain.Alloc = nil
		wanted, wantSum := writtenBy(t, plain, []arrow.RecordBatch{want})
		o.Stamp = &stamp
		data, sum := pickedBy(t, o, calls)
		if sum != wantSum {
			t.Fatalf("seed %d: %+v, want %+v", seed, sum, wantSum)
		}
		basefile.CheckLayout(t, data)
		got := together(t, opened(t, data), full)
		for i := range full.NumFields() {
			if texted(got.Column(i)) != texted(want.Column(i)) {
				t.Fatalf("seed %d: column %s %s has other values", seed, full.Field(i).Name, full.Field(i).Type)
			}
		}
		if f, w := opened(t, data).KeyValue(), opened(t, wanted).KeyValue(); !maps.Equal(f, w) {
			t.Fatalf("seed %d: another footer", seed)
		}
		checkStatistics(t, data)
		alloc.AssertSize(t, 0)
	}
}

// putTogether gives the rows of runs with their meta columns, as plain columns.
func putTogether(t *testing.T, full *arrow.Schema, batches []arrow.RecordBatch, runs []gather.Run, stamp basefile.Stamp) arrow.RecordBatch {
	t.Helper()
	rows, err := gather.Batch(memory.DefaultAllocator, batches[0].Schema(), batches, runs)
	if err != nil {
		t.Fatal(err)
	}
	var columns []arrow.Array
	for i, name := range schema.MetaColumns {
		b := array.NewStringBuilder(memory.DefaultAllocator)
		for row := range int(rows.NumRows()) {
			switch {
			case stamp == basefile.Stamp{}:
				b.AppendNull()
			case name == schema.RecordKey:
				b.Append(rows.Column(1).(*array.String).Value(row))
			default:
				b.Append([]string{stamp.CommitTime, stamp.SeqnoPrefix + fmt.Sprint(row), "", stamp.Partition, stamp.FileName}[i])
			}
		}
		columns = append(columns, b.NewArray())
	}
	return array.NewRecordBatch(full, append(columns, rows.Columns()[2:]...), rows.NumRows())
}

func pickedBy(t *testing.T, o basefile.WriterOptions, calls [][]basefile.Picked) ([]byte, basefile.Summary) {
	t.Helper()
	return filledBy(t, o, func(w *basefile.Writer) error {
		for _, picks := range calls {
			if err := w.WritePicked(picks); err != nil {
				return err
			}
		}
		return nil
	})
}

// Batches without a column of the file, with one of another type, and rows that it can't hold are refused; no file appears.
func TestPickedRefuses(t *testing.T) {
	ctx := context.Background()
	avro, err := schema.ParseString(`{"type":"record","name":"r","fields":[{"name":"n","type":"long"},{"name":"s","type":["null","string"]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	avro = schema.WithMeta(avro)
	batch := func(names []string, types []arrow.DataType, null int) basefile.Picked {
		var fields []arrow.Field
		for i, name := range names {
			fields = append(fields, arrow.Field{Name: name, Type: types[i], Nullable: true})
		}
		b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
		for row := range 3 {
			for i := range names {
				switch f := b.Field(i).(type) {
				case *array.StringBuilder:
					f.Append("x")
				case *array.Int64Builder:
					f.Append(int64(row))
				}
				if i == null && row == 1 {
					b.Field(i).(interface{ SetNull(i int) }).SetNull(row)
				}
			}
		}
		return basefile.Picked{Batch: b.NewRecordBatch(), Rows: []int32{0, 1, 2}}
	}
	text, long := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64
	names, types := []string{"n", "s", schema.RecordKey}, []arrow.DataType{long, text, text}
	stamp := &basefile.Stamp{CommitTime: "1", SeqnoPrefix: "1_0_"}
	for want, c := range map[string]struct {
		stamp *basefile.Stamp
		rows  []basefile.Picked
	}{
		"without a stamp":          {nil, []basefile.Picked{batch(names, types, -1)}},
		"0 columns s":              {stamp, []basefile.Picked{batch([]string{"n", schema.RecordKey}, []arrow.DataType{long, text}, -1)}},
		"0 columns " + "_hoodie_r": {stamp, []basefile.Picked{batch([]string{"n", "s"}, []arrow.DataType{long, text}, -1)}},
		"that of the schema int64": {stamp, []basefile.Picked{batch(names, []arrow.DataType{text, text, text}, -1)}},
		"in place 0 of one batch":  {stamp, []basefile.Picked{batch(names, types, -1), batch([]string{"s", "n", schema.RecordKey}, []arrow.DataType{text, long, text}, -1)}},
		"null where":               {stamp, []basefile.Picked{batch(names, types, 0)}},
		"without key":              {stamp, []basefile.Picked{batch(names, types, 2)}},
	} {
		store := mem.New("refused")
		w, err := basefile.Create(ctx, store, "f.parquet", basefile.WriterOptions{Schema: avro, Stamp: c.stamp, Bloom: basefile.DefaultBloom()})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WritePicked(c.rows); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		w.Abort()
		if names, err := store.Stat(ctx, "f.parquet"); err == nil {
			t.Errorf("%s: a file is there: %v", want, names)
		}
	}
}
