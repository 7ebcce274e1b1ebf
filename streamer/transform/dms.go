package transform

import (
	"context"
	"iter"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// OpColumn is the column that AWS DMS writes first into change files: I, U or D.
const OpColumn = "Op"

// AWSDms gives rows of a full load, which have no column Op, one with the empty text: string, not null, at the end. Rows that
// have the column pass unchanged (tools C.9, D.3). A column that differs from Op in case alone becomes Op, empty, at its place:
// Spark's names know no case, and this is what it does.
type AWSDms struct {
	// Allocator of the column. Default: Go's heap.
	Allocator memory.Allocator
}

// Apply implements [Transformer].
func (t AWSDms) Apply(ctx context.Context, in *arrow.Schema, rows iter.Seq2[arrow.RecordBatch, error]) (*arrow.Schema, iter.Seq2[arrow.RecordBatch, error], error) {
	if in.HasField(OpColumn) {
		return in, rows, nil
	}
	op := arrow.Field{Name: OpColumn, Type: arrow.BinaryTypes.String}
	replaced := map[int]bool{}
	var fields []arrow.Field
	for i, f := range in.Fields() {
		if strings.EqualFold(f.Name, OpColumn) {
			replaced[i] = true
			f = op
		}
		fields = append(fields, f)
	}
	if len(replaced) == 0 {
		fields = append(fields, op)
	}
	md := in.Metadata()
	out := arrow.NewSchema(fields, &md)
	return out, each(ctx, in, rows, func(batch arrow.RecordBatch) (arrow.RecordBatch, error) {
		empty := t.empty(int(batch.NumRows()))
		defer empty.Release()
		columns := append([]arrow.Array(nil), batch.Columns()...)
		for i := range replaced {
			columns[i] = empty
		}
		if len(replaced) == 0 {
			columns = append(columns, empty)
		}
		return array.NewRecordBatch(out, columns, batch.NumRows()), nil
	}), nil
}

// empty is a column of n empty texts: all offsets are 0.
func (t AWSDms) empty(n int) arrow.Array {
	mem := t.Allocator
	if mem == nil {
		mem = memory.DefaultAllocator
	}
	offsets := memory.NewResizableBuffer(mem)
	offsets.Resize((n + 1) * arrow.Int32SizeBytes)
	clear(offsets.Bytes())
	data := array.NewData(arrow.BinaryTypes.String, n, []*memory.Buffer{nil, offsets, nil}, nil, 0, 0)
	defer data.Release()
	offsets.Release()
	return array.NewStringData(data)
}
