package hudi

import (
	"context"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sluicelake/sluice/hudi/operation"
	"github.com/sluicelake/sluice/hudi/read"
	"github.com/sluicelake/sluice/hudi/write"
	"github.com/sluicelake/sluice/storage/open"
)

// Operation is what a write does with its rows.
type Operation = operation.Kind

// The operations; package operation says what each does.
const (
	Upsert               = operation.Upsert
	Insert               = operation.Insert
	BulkInsert           = operation.BulkInsert
	Delete               = operation.Delete
	InsertOverwrite      = operation.InsertOverwrite
	InsertOverwriteTable = operation.InsertOverwriteTable
	DeletePartition      = operation.DeletePartition
)

// Types of a write.
type (
	// Rows are what a write is given; see Records.
	Rows = operation.Rows
	// WriteOptions of Write; the zero value is good. Conf takes hoodie.* options as Spark writers do.
	WriteOptions = operation.Options
	// WriteResult is what a write did: its instant, its commit in the commit's own words, and counts.
	WriteResult = operation.Result
	// Spec says what a new table is to be.
	Spec = write.Spec
)

// ErrTableExists: there is a table already.
var ErrTableExists = write.ErrTableExists

// Create makes an empty copy-on-write or merge-on-read table of version 6, which Apache Hudi 0.14 to 1.2 read and write. The spec
// needs a name and the columns of the record key.
func Create(ctx context.Context, url string, spec Spec, opts Options) (*Table, error) {
	store := opts.Store
	if store == nil {
		var err error
		if store, err = open.Store(ctx, url, open.Options{}); err != nil {
			return nil, err
		}
	}
	if _, err := write.CreateTable(ctx, store, spec); err != nil {
		return nil, err
	}
	opts.Store = store
	return Open(ctx, url, opts)
}

// Records makes rows for Write of batches of one schema. The write reads them once and releases them.
func Records(schema *arrow.Schema, batches iter.Seq2[arrow.RecordBatch, error]) Rows {
	return Rows{Schema: schema, Batches: batches}
}

// Write does one operation, whole or not at all, and brings t up to date with it: what is opened or scanned later sees it, also
// through this Table.
//
// Columns of the rows that the table lacks are added to it; the record key, the partition path and the five meta columns are made
// by the table's rules. It fails with ErrUnsupported, and writes nothing, for tables and options that Sluice does not write.
func (t *Table) Write(ctx context.Context, op Operation, rows Rows, o WriteOptions) (*WriteResult, error) {
	src := t.src.Load()
	if o.Zone == nil {
		o.Zone = t.zone
	}
	result, err := operation.Run(ctx, src.Store, op, rows, o)
	if err != nil {
		return nil, err
	}
	fresh, err := read.Load(ctx, src.Store, read.Options{Zone: t.zone})
	if err != nil {
		return result, err
	}
	t.src.Store(fresh)
	return result, nil
}
