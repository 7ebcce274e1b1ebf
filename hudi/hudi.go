// Package hudi reads and writes Apache Hudi tables from Go. It is the front door of the library: who embeds Sluice needs nothing
// else.
//
//	t, err := hudi.Open(ctx, "s3://lake/orders", hudi.Options{})
//	s, err := t.Snapshot(ctx, hudi.Query{})
//	for batch, err := range s.Scan(ctx, hudi.Scan{Columns: []string{"id", "qty"}}) {
//		…
//		batch.Release()
//	}
//
//	result, err := t.Write(ctx, hudi.Upsert, hudi.Records(schema, batches), hudi.WriteOptions{})
//
// A [Table] is what its properties and timeline said when it was opened, or last written through it; open it again to see newer
// commits of others. A [Snapshot] is pinned to one instant: scanning it twice gives the same rows, whatever other writers do, until the cleaner removes its files.
//
// Rows come as Arrow record batches: the five _hoodie_ meta columns first, then the table's columns, in the types that
// schema.Type.Arrow documents. Whoever receives a batch releases it.
package hudi

import (
	"context"
	"iter"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/predicate"
	"github.com/sluicelake/sluice/hudi/read"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/open"
)

// Errors that callers compare with errors.Is.
var (
	// ErrNotTable: there is no Hudi table at the path.
	ErrNotTable = config.ErrNotTable
	// ErrUnsupported: the table has a version or property that Sluice does not know well enough to be right about.
	ErrUnsupported = config.ErrUnsupported
	// ErrCleaned: the files of the instant that was asked for were removed by the cleaner.
	ErrCleaned = read.ErrCleaned
)

// Options of Open. The zero value is good.
type Options struct {
	// Zone in which the table's instants were formatted where its properties say LOCAL (Apache Hudi does not record which
	// zone that was); nil means UTC. It matters only for as-of texts that are dates.
	Zone *time.Location
	// Store replaces the storage that the URL names: a store rooted at the table's base path.
	Store storage.Store
}

// Table is an open table. It is safe for concurrent use.
type Table struct {
	url  string
	zone *time.Location
	src  atomic.Pointer[read.Source]
}

// Open reads a table's properties and timeline. The URL is a folder or one of the schemes that package storage/open lists:
// "/data/orders", "file:///data/orders", "s3://bucket/orders". It fails with ErrNotTable where no table is, and with
// ErrUnsupported where a table is of a version that Sluice does not know.
func Open(ctx context.Context, url string, opts Options) (*Table, error) {
	store := opts.Store
	if store == nil {
		var err error
		if store, err = open.Store(ctx, url, open.Options{}); err != nil {
			return nil, err
		}
	}
	src, err := read.Load(ctx, store, read.Options{Zone: opts.Zone})
	if err != nil {
		return nil, err
	}
	t := &Table{url: store.URL(), zone: opts.Zone}
	t.src.Store(src)
	return t, nil
}

// URL of the table's base path.
func (t *Table) URL() string { return t.url }

// Config is what hoodie.properties says.
func (t *Table) Config() *config.Table { return t.src.Load().Config }

// Timeline is the active timeline.
func (t *Table) Timeline() timeline.Timeline { return t.src.Load().Timeline }

// Source gives jobs the table as the read package has it.
func (t *Table) Source() *read.Source { return t.src.Load() }

// View of a merge-on-read table.
type View = filegroup.Mode

// The views. They are the same for a copy-on-write table.
const (
	RealTime      = filegroup.Snapshot      // base files with their logs merged: every row, the default
	ReadOptimized = filegroup.ReadOptimized // base files only: fast, and as old as the last compaction
)

// Query says which state of a table is wanted.
type Query struct {
	// AsOf pins an older state: an instant (20261129100000123) or a date ("2026-11-29 10:00:00"). Empty means the newest.
	AsOf string
	View View
	// Stored gives partition columns as the files hold them. Otherwise they are what the partition path tells, as Apache
	// Hudi's readers have it.
	Stored bool
}

// Snapshot pins a state of the table. It lists the table's files and opens none of them.
func (t *Table) Snapshot(ctx context.Context, q Query) (*Snapshot, error) {
	plan, err := t.src.Load().Plan(ctx, read.Query{AsOf: q.AsOf, Mode: q.View, Stored: q.Stored})
	if err != nil {
		return nil, err
	}
	return &Snapshot{plan}, nil
}

// Range of instants for Changes: begin exclusive, end inclusive. Instants are requested times for tables below version 8,
// completion times from version 8 on.
type Range = read.Range

// Changes gives the newest state of the rows that were written in a range of instants: an incremental query. Rows that were
// deleted in the range are not in it.
func (t *Table) Changes(ctx context.Context, r Range) (*Snapshot, error) {
	plan, err := t.src.Load().Plan(ctx, read.Query{Range: &r})
	if err != nil {
		return nil, err
	}
	return &Snapshot{plan}, nil
}

// ChangeFeed gives every change of the rows that were written in a range of instants, deletes included, as ChangeSchema has
// it: operation, instant, image before, image after. The table must record changes (hoodie.table.cdc.enabled).
func (t *Table) ChangeFeed(ctx context.Context, r Range) (*read.Feed, error) {
	return t.src.Load().ChangeFeed(ctx, r)
}

// Snapshot is one state of a table, or the changes of a range. It is immutable and safe for concurrent use.
type Snapshot struct{ plan *read.Plan }

// Instant is the requested time of the newest write in it; empty when the table has none.
func (s *Snapshot) Instant() string { return s.plan.Instant() }

// Schema is what a Scan without Columns gives: meta columns first.
func (s *Snapshot) Schema() *arrow.Schema { return s.plan.Schema() }

// Avro is the table's schema at its instant, meta columns first.
func (s *Snapshot) Avro() *schema.Type { return s.plan.Avro() }

// Slices are the file slices that it is made of.
func (s *Snapshot) Slices() []filegroup.Slice { return s.plan.Slices() }

// Scan says what comes out of Snapshot.Scan. The zero value is every column of every row.
type Scan struct {
	Columns []string       // in this order; nil means all
	Filter  predicate.Expr // rows for which it is true; see Where
	Alloc   memory.Allocator
	Memory  int64 // bytes for the log records of one file group before they are spilled; 0 means read.DefaultMemory
	TempDir string
	Readers int // file groups read at once; 0 means one after the other
}

// Where parses a filter in the notation of SQL: "qty > 5 and region in ('eu', 'us')".
func Where(text string) (predicate.Expr, error) { return predicate.Parse(text) }

// Scan yields the rows. Whoever receives a batch releases it. After an error nothing more comes.
func (s *Snapshot) Scan(ctx context.Context, o Scan) iter.Seq2[arrow.RecordBatch, error] {
	r, err := s.plan.Reader(read.ScanOptions{
		Columns: o.Columns, Filter: o.Filter, Alloc: o.Alloc, Memory: o.Memory, TempDir: o.TempDir, Readers: o.Readers,
	})
	if err != nil {
		return func(yield func(arrow.RecordBatch, error) bool) { yield(nil, err) }
	}
	return r.All(ctx)
}
