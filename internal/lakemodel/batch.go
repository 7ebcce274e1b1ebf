package lakemodel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/encode"
	"github.com/sluicelake/sluice/interop/rows"
)

// Batches gives the rows of a step as Arrow batches of up to so many rows. Whoever receives a batch releases it.
func (s Step) Batches(alloc memory.Allocator, size int) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for from := 0; from < len(s.Rows); from += size {
			b, err := s.batch(alloc, s.Rows[from:min(from+size, len(s.Rows))])
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

func (s Step) batch(alloc memory.Allocator, part []rows.Row) (arrow.RecordBatch, error) {
	b := array.NewRecordBuilder(alloc, Arrow(s.Columns))
	defer b.Release()
	for _, r := range part {
		line, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		if err := b.UnmarshalJSON(line); err != nil {
			return nil, fmt.Errorf("row %s: %w", line, err)
		}
	}
	return b.NewRecordBatch(), nil
}

// Collect takes batches in, as rows.
func Collect(s *arrow.Schema, batches iter.Seq2[arrow.RecordBatch, error]) ([]rows.Row, error) {
	j, err := encode.NewJSON(s, encode.Options{})
	if err != nil {
		return nil, err
	}
	var text []byte
	for b, err := range batches {
		if err != nil {
			return nil, err
		}
		text = j.Append(text, b)
		b.Release()
	}
	return rows.Decode(bytes.NewReader(text))
}
