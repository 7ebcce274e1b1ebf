package orc_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/orc"
)

func Example() {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	b.Field(0).(*array.Int64Builder).AppendValues([]int64{1, 2, 3}, nil)
	b.Field(1).(*array.StringBuilder).AppendValues([]string{"a", "", "c"}, []bool{true, false, true})
	batch := b.NewRecordBatch()
	defer batch.Release()

	var file bytes.Buffer
	w, err := orc.NewWriter(&file, schema, orc.WriterOptions{Compression: orc.Snappy, UserMetadata: map[string]string{"made.by": "example"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := w.Write(batch); err != nil {
		fmt.Println(err)
		return
	}
	if err := w.Close(); err != nil {
		fmt.Println(err)
		return
	}

	r, err := orc.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()), orc.ReaderOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Type(), r.Rows(), string(r.Metadata()["made.by"]))
	// Only where an id above 2 can be.
	above := func(s *orc.Span) bool {
		st, ok := s.Statistics("id")
		most, known := st.Max.(int64)
		return !ok || !known || most > 2
	}
	for batch, err := range r.Scan(context.Background(), orc.ScanOptions{Columns: []string{"name"}, Keep: above}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(batch.Column(0))
		batch.Release()
	}
	// Output:
	// struct<id:bigint,name:string> 3 example
	// ["a" (null) "c"]
}
