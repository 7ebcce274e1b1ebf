// Package operation changes the rows of a table: upsert, insert, bulk insert, delete, the overwrites, and the deletion of
// partitions, as Apache Hudi's write client does them (tools E and F).
//
//	result, err := operation.Run(ctx, store, operation.Upsert, operation.Rows{Schema: s, Batches: batches}, operation.Options{})
//
// Every operation has one shape. Rows come as Arrow batches; the schema of the table and theirs are reconciled, each row gets its
// record key and partition path, and, where the operation asks for it, rows of one key are combined. An index finds the file group of
// every key; what is new is packed into small files and new ones. File groups are then rewritten or written, several at once, and
// one commit makes all of it visible (package write). What does not fit in the memory that was granted goes to temporary files.
package operation

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/keygen"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/hudi/write/lock"
)

// Kind is an operation, as hoodie.datasource.write.operation names it.
type Kind string

// The operations.
const (
	Upsert               Kind = "upsert"                 // rows replace stored rows of their key, others are added
	Insert               Kind = "insert"                 // rows are added, without a look at what is stored; small files are filled up
	BulkInsert           Kind = "bulk_insert"            // rows are added in new files
	Delete               Kind = "delete"                 // the stored rows of these keys are removed
	InsertOverwrite      Kind = "insert_overwrite"       // rows replace all that is in their partitions
	InsertOverwriteTable Kind = "insert_overwrite_table" // rows replace all that is in the table
	DeletePartition      Kind = "delete_partition"       // all that is in these partitions is removed
)

var kinds = []Kind{Upsert, Insert, BulkInsert, Delete, InsertOverwrite, InsertOverwriteTable, DeletePartition}

// ParseKind reads the name of an operation, in any letter case.
func ParseKind(text string) (Kind, error) {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		if strings.EqualFold(strings.TrimSpace(text), string(k)) {
			return k, nil
		}
		names[i] = string(k)
	}
	return "", fmt.Errorf("no operation %q; there are %s", text, strings.Join(names, ", "))
}

// stored is the name that commits keep (table format 2.4).
func (k Kind) stored() string { return strings.ToUpper(string(k)) }

// replaces reports whether the operation completes as a replace commit.
func (k Kind) replaces() bool {
	return k == InsertOverwrite || k == InsertOverwriteTable || k == DeletePartition
}

// Rows are what an operation is given: batches of one schema.
type Rows struct {
	Schema *arrow.Schema
	// Avro is the schema of the rows where the source has one in Avro; nil: what schema.FromArrow gives.
	Avro *schema.Type
	// Batches are read once. Whoever yields a batch gives it away. Nil: no rows.
	Batches iter.Seq2[arrow.RecordBatch, error]
}

// Options of Run. The zero value is good for a table that exists.
type Options struct {
	// Conf are hoodie.* options as a Spark writer takes them, names of earlier releases among them.
	Conf map[string]string
	// Extra goes into the commit's extraMetadata, beside the schema.
	Extra map[string]string
	// SkipEmpty makes no commit when the write changes nothing: no rows came, or none of the keys to delete is stored.
	SkipEmpty bool
	// Reject, when set, is told of every row without key, partition path or ordering value, and of rows that do not fit the schema;
	// the row is left out. An error of Reject ends the write, which is then undone. Without Reject the first such row ends it.
	Reject func(Rejected) error
	// Registry finds key generators of one's own.
	Registry *keygen.Registry

	// Memory is about how many bytes rows may take before they go to temporary files, and what files being written may take
	// together; 0 means DefaultMemory.
	Memory  int64
	TempDir string // of temporary files; empty means the system's
	// Parallel is how many files are written at once; 0 means one for each CPU.
	Parallel int
	Alloc    memory.Allocator // nil: memory.DefaultAllocator

	// Lock, Zone and Now are those of write.Options.
	Lock *lock.Options
	Zone *time.Location
	Now  func() time.Time
	// Event, when set, is told what happens, possibly by several goroutines at once. It must be quick.
	Event func(Event)
}

// DefaultMemory of a write.
const DefaultMemory = 512 << 20

// Rejected is a row that can't be written.
type Rejected struct {
	Batch arrow.RecordBatch // as it came; valid during the call only
	Row   int               // of the batch
	Count int64             // number of the row in the whole input, from 0
	Err   error
}

// Result is what a write did.
type Result struct {
	Instant string // empty: there was nothing to do, and nothing was committed
	Commit  *timeline.CommitMetadata

	Read     int64 // rows that came
	Rejected int64
	Combined int64 // rows that gave way to others of their key
	Dropped  int64 // rows that were left out because their key is stored, or because they are marked as deleted and there is nothing to delete
	Inserted int64
	Updated  int64
	Absent   int64 // keys to delete that are not stored
	Deleted  int64 // rows that were removed; an overwrite or a deletion of partitions does not count what it removes
	Files    int   // that were written
	Bytes    int64 // of them
}
