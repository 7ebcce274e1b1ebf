//go:build !cgo || nocgo

package transform

import (
	"context"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/sluicelake/sluice/streamer/transform/sparksql"
)

// haveSQL tells whether this program was built with DuckDB.
const haveSQL = false

func run(context.Context, *sparksql.Plan, *arrow.Schema, *arrow.Schema, iter.Seq2[arrow.RecordBatch, error], Options) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) { yield(nil, ErrNoSQL) }
}
