package transform

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Flatten makes columns of the members of structs, at every depth: a.b.c becomes a_b_c. Arrays and maps stay as they are, also
// where they hold structs (tools C.9). A member of a null struct is null, so members of nullable structs are nullable.
type Flatten struct {
	// Allocator of validity bitmaps; values are shared with the rows. Default: Go's heap.
	Allocator memory.Allocator
}

// leaf is one column of the flat rows: where it is in the nested ones.
type leaf struct {
	path []int
	name []string
}

// Apply implements [Transformer]. Two columns that would have one name are an error: a table can't have both.
func (t Flatten) Apply(ctx context.Context, in *arrow.Schema, rows iter.Seq2[arrow.RecordBatch, error]) (*arrow.Schema, iter.Seq2[arrow.RecordBatch, error], error) {
	if t.Allocator == nil {
		t.Allocator = memory.DefaultAllocator
	}
	leaves, fields := flatLeaves(in.Fields(), leaf{}, false)
	seen := map[string]leaf{}
	for i, l := range leaves {
		key := strings.ToLower(fields[i].Name)
		if other, ok := seen[key]; ok {
			return nil, nil, fmt.Errorf("flattening: both %s and %s become the column %s; rename one of them with a SQL transformer first", strings.Join(other.name, "."), strings.Join(l.name, "."), fields[i].Name)
		}
		seen[key] = l
	}
	if len(leaves) == 0 {
		return nil, nil, fmt.Errorf("flattening: the rows have no columns")
	}
	md := in.Metadata()
	out := arrow.NewSchema(fields, &md)
	if len(fields) == in.NumFields() && !hasStruct(in) {
		return in, rows, nil
	}
	return out, each(ctx, in, rows, func(batch arrow.RecordBatch) (arrow.RecordBatch, error) {
		columns := make([]arrow.Array, 0, len(leaves))
		defer func() {
			for _, c := range columns {
				c.Release()
			}
		}()
		for _, l := range leaves {
			columns = append(columns, t.column(batch.Column(l.path[0]), l.path[1:]))
		}
		return array.NewRecordBatch(out, columns, batch.NumRows()), nil
	}), nil
}

func hasStruct(s *arrow.Schema) bool {
	for _, f := range s.Fields() {
		if f.Type.ID() == arrow.STRUCT {
			return true
		}
	}
	return false
}

func flatLeaves(fields []arrow.Field, parent leaf, nullable bool) (leaves []leaf, flat []arrow.Field) {
	for i, f := range fields {
		at := leaf{path: append(parent.path[:len(parent.path):len(parent.path)], i), name: append(parent.name[:len(parent.name):len(parent.name)], f.Name)}
		f.Nullable = f.Nullable || nullable
		if s, ok := f.Type.(*arrow.StructType); ok {
			below, columns := flatLeaves(s.Fields(), at, f.Nullable)
			leaves, flat = append(leaves, below...), append(flat, columns...)
			continue
		}
		f.Name = strings.Join(at.name, "_")
		leaves, flat = append(leaves, at), append(flat, f)
	}
	return leaves, flat
}

// column walks down to a leaf; what is null above it is null in it.
func (t Flatten) column(a arrow.Array, path []int) arrow.Array {
	a.Retain()
	for _, i := range path {
		parent := a.(*array.Struct)
		child := parent.Field(i)
		if parent.NullN() > 0 {
			a = t.mask(child, parent)
		} else {
			child.Retain()
			a = child
		}
		parent.Release()
	}
	return a
}

// mask is the child with nulls where the parent has them; the values are shared.
func (t Flatten) mask(child, parent arrow.Array) arrow.Array {
	data := child.Data()
	n, from := child.Len(), data.Offset()
	valid := memory.NewResizableBuffer(t.Allocator)
	defer valid.Release()
	valid.Resize(int(bitutil.BytesForBits(int64(from + n))))
	clear(valid.Bytes())
	nulls := 0
	for i := range n {
		if parent.IsValid(i) && child.IsValid(i) {
			bitutil.SetBit(valid.Bytes(), from+i)
		} else {
			nulls++
		}
	}
	if child.DataType().ID() == arrow.NULL {
		child.Retain()
		return child
	}
	buffers := append([]*memory.Buffer{valid}, data.Buffers()[1:]...)
	var masked *array.Data
	if d, ok := data.Dictionary().(*array.Data); ok && d != nil {
		masked = array.NewDataWithDictionary(child.DataType(), n, buffers, nulls, from, d)
	} else {
		masked = array.NewData(child.DataType(), n, buffers, data.Children(), nulls, from)
	}
	defer masked.Release()
	return array.MakeFromData(masked)
}
