// Package source reads what a streamer takes in: change files in folders (Parquet, ORC, Avro, JSON, CSV) and the changes of
// another Hudi table.
//
// A Source gives, for a cursor, the rows that came after it and the next cursor:
//
//	in, err := src.Fetch(ctx, cursor, limit)
//	for batch, err := range in.Batches { … batch.Release() }
//	store in.Next together with the rows, in one commit
//
// Rows come in the order of the files (modification time, then name) and of the rows in each, which is the rule by which equal
// ordering values are decided (tools D.2). Several files, and several parts of one text file, are decoded at once; what is read
// ahead is bounded. A record that can't be read ends the round with an error that names the file and line, or is handed to
// Options.Reject and left out.
package source

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/schema"
)

// Source is where rows come from. It is used by one goroutine.
type Source interface {
	// Fetch gives what came after the cursor, up to about limit (bytes of files; Hudi tables have limits of their own).
	Fetch(ctx context.Context, from Cursor, limit int64) (*Input, error)
}

// Input is what a round reads.
type Input struct {
	// Schema is nil when there is nothing to read and nobody said what the columns are.
	Schema *arrow.Schema
	Avro   *schema.Type // behind Schema; nil where Schema is nil
	// Batches yields the rows, once. Whoever receives a batch releases it. After an error nothing more comes.
	Batches iter.Seq2[arrow.RecordBatch, error]
	Next    Cursor
	// Fresh reports whether there is something to read.
	Fresh bool

	Files   int
	Bytes   int64
	Waiting int // files that are too young to be read
	Left    int // files that the limit left for the next round
	Late    int // files that came under a time that was read before
	// Absent names, for each column of Schema that some file has not, one such file. Its rows are null there.
	Absent map[string]string

	places *places
}

// Place says where a row was read, counting the rows of Batches from 0: "s3://b/f.json:17", "d/f.parquet row 3". It knows those
// that were yielded.
func (in *Input) Place(row int64) string { return in.places.of(row) }

// Options that all sources share.
type Options struct {
	// Reject is told of every record that can't be read; it is left out. An error of Reject ends the round. Nil: the first one
	// ends the round.
	Reject func(*RecordError) error
	// Parallel is how many files, or parts of one, are decoded at once; 0 means one for each CPU.
	Parallel int
	Alloc    memory.Allocator
	// Note, when set, is told what a person should know.
	Note func(text string)
}

func (o Options) alloc() memory.Allocator {
	if o.Alloc != nil {
		return o.Alloc
	}
	return memory.DefaultAllocator
}

func (o Options) note(format string, args ...any) {
	if o.Note != nil {
		o.Note(fmt.Sprintf(format, args...))
	}
}

// RecordError is a record that can't be read.
type RecordError struct {
	File string
	Line int64  // from 1; 0 where the format has no lines
	Text string // of the record, cut when it is long
	What string // could not be done
	Err  error
}

func (e *RecordError) Error() string {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	if e.What != "" {
		return fmt.Sprintf("%s: %s: %s: %v", at, e.What, shorten(e.Text), e.Err)
	}
	return fmt.Sprintf("%s: %v: %s", at, e.Err, shorten(e.Text))
}

func (e *RecordError) Unwrap() error { return e.Err }

func shorten(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
