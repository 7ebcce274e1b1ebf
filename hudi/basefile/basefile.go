// Package basefile reads the base files of a table (and the Parquet of log blocks and sources): column chunks become Arrow
// batches of the table's own types, whatever layout, physical form or older schema the file has.
//
// Memory is bounded by batches and pages, not by the size of a file or row group: a scan holds one page and one buffer per
// column beside the batch it hands out. Every error names the file; damaged files give errors that wrap [ErrDamaged], never a
// panic and never an allocation that the file's own size does not justify.
package basefile

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"
	"github.com/sluicelake/sluice/hudi/predicate"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/storage"
)

// Errors that opening and scanning report, wrapped in an [*Error].
var (
	// ErrDamaged: the bytes are no whole file of their format.
	ErrDamaged = errors.New("damaged file")
	// ErrUnsupported: a format, codec or feature that Sluice does not read.
	ErrUnsupported = errors.New("not supported")
)

// Error says where in which file something is wrong.
type Error struct {
	File   string
	Offset int64 // byte in the file, -1 where there is none
	Where  string
	Err    error
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "base file %s", e.File)
	if e.Offset >= 0 {
		fmt.Fprintf(&b, ", byte %d", e.Offset)
	}
	if e.Where != "" {
		fmt.Fprintf(&b, ", %s", e.Where)
	}
	return b.String() + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Options of [Open]. The zero value is good.
type Options struct {
	// Alloc makes every buffer; nil is memory.DefaultAllocator.
	Alloc memory.Allocator
	// FooterLimit is the largest footer that is read, in bytes; 0 is 64 MiB. (Footers of Apache Hudi hold a bloom filter of
	// about 430 KB.)
	FooterLimit int64
	// RepairMillis reads a column labelled as microseconds as milliseconds where the wanted type is milliseconds and the
	// statistics of this file say that its values can only be milliseconds: some releases wrote the wrong label (trap 21).
	// Without it the file's label is trusted.
	RepairMillis bool
	// Warn, when set, is told what a person should know about the file, once per scan.
	Warn func(text string)
	// Formats are readers of further base file formats, by extension with the dot (".orc").
	Formats map[string]Format
}

func (o *Options) alloc() memory.Allocator {
	if o.Alloc == nil {
		return memory.DefaultAllocator
	}
	return o.Alloc
}

// Format opens files of one base file format. Parquet is built in.
type Format interface {
	Open(ctx context.Context, store storage.Store, name string, o Options) (File, error)
}

// File is an open base file. It is safe for use by several goroutines. Close it when the last scan has ended.
type File interface {
	// Rows in the whole file.
	Rows() int64
	// Size in bytes.
	Size() int64
	// KeyValue is the footer's metadata: "parquet.avro.schema", "org.apache.hudi.bloomfilter", "hoodie_min_record_key", ….
	KeyValue() map[string]string
	// Schema is the file's own columns in the Arrow types of the schema package (lists of any layout as list, decimals of any
	// physical form as decimal, INT96 as timestamp[us, UTC]). Two columns may have one name; scanning that name fails.
	Schema() *arrow.Schema
	// AvroSchema is the footer's Avro schema, or what [schema.FromArrow] gives where a Spark writer left none.
	AvroSchema() (*schema.Type, error)
	// RowGroups describes the row groups (stripes) in file order.
	RowGroups() []RowGroup
	// Scan yields the rows in file order as batches of the wanted columns. Whoever receives a batch releases it.
	Scan(ctx context.Context, o ScanOptions) iter.Seq2[arrow.RecordBatch, error]
	// ScanRows is Scan with the position of each batch. It never drops rows (ScanOptions.Exact is not looked at).
	ScanRows(ctx context.Context, o ScanOptions) iter.Seq2[Batch, error]
	Close() error
}

// RowGroup describes one row group.
type RowGroup struct {
	FirstRow int64 // number of its first row in the file
	Rows     int64
	Bytes    int64 // compressed, all columns
}

// Batch is a batch of rows that stand one after the other in the file.
type Batch struct {
	arrow.RecordBatch
	// FirstRow is the number of the batch's first row in the file, from 0: the record position of log blocks (table format 6.5).
	FirstRow int64
}

// DefaultBatchRows is the largest number of rows in a batch; a batch is smaller where that many rows would be more than about
// DefaultBatchBytes.
const (
	DefaultBatchRows  = 64 << 10
	DefaultBatchBytes = 6 << 20
)

// ScanOptions say what a scan yields. The zero value is every column of the file as it is.
type ScanOptions struct {
	// Columns are the wanted columns with the table's types; nested types may name fewer members than the file has. Columns
	// that the file lacks take the default of Table, or null. nil: the file's own columns.
	Columns *arrow.Schema
	// Table is the Avro schema that defaults are taken from; may be nil.
	Table *schema.Type
	// Names maps wanted paths to the file's under schema-on-read, from [schema.FileNames]; nil: by name.
	Names map[string]string
	// SchemaOnRead allows the wider set of type changes; see [schema.ResolveOptions].
	SchemaOnRead bool
	// Filter skips row groups and pages of which no row can pass. Rows that come are not all rows that pass, unless Exact.
	Filter predicate.Expr
	// Exact drops the rows that do not pass the filter.
	Exact bool
	// Constants replace columns of Columns: partition values from the path. Types must equal.
	Constants map[string]scalar.Scalar
	// BatchRows fixes the number of rows of every batch but the last of a row group; 0: as many as make some 6 MiB, at most
	// DefaultBatchRows.
	BatchRows int
	// Parallel columns are decoded at once; 0 and 1: one after the other. Files are the better unit of parallel work.
	Parallel int
	// RowGroups limits the scan to these row groups, in the order given; nil: all.
	RowGroups []int
	// Alloc makes the buffers of the batches; nil: that of Open.
	Alloc memory.Allocator
}

// Open opens the base file name below store by its extension. ORC files need a [Format] in the options; HFile base files (of
// metadata tables) are not read here.
func Open(ctx context.Context, store storage.Store, name string, o Options) (File, error) {
	ext := strings.ToLower(path.Ext(name))
	if f, ok := o.Formats[ext]; ok {
		return f.Open(ctx, store, name, o)
	}
	switch ext {
	case ".orc", ".hfile", ".lance":
		return nil, &Error{File: name, Offset: -1, Err: fmt.Errorf("base file format %q: %w", ext, ErrUnsupported)}
	}
	obj, err := store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	f, err := openParquet(ctx, obj, name, !store.Traits().Dirs, o)
	if err != nil {
		return nil, errors.Join(err, obj.Close())
	}
	return f, nil
}

// OpenBytes opens a Parquet file that is in memory, such as the content of a log block.
func OpenBytes(ctx context.Context, name string, data []byte, o Options) (File, error) {
	return openParquet(ctx, bytesObject(data), name, false, o)
}

// OpenObject opens a Parquet file that is an open object; the File closes it, also when opening fails.
func OpenObject(ctx context.Context, name string, obj storage.Object, o Options) (File, error) {
	f, err := openParquet(ctx, obj, name, true, o)
	if err != nil {
		return nil, errors.Join(err, obj.Close())
	}
	return f, nil
}
