// Package export copies a table out as it is at one instant: as a Hudi table, or as Parquet, ORC, JSON or CSV files. It is the
// job of HoodieSnapshotExporter and HoodieSnapshotCopier, with their flags, checks and messages, in the shape that every
// job has: plan, tasks, commit.
package export

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/hudi/predicate"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/open"
)

// Format of the files that an export writes.
type Format string

// The formats. CSV is not one of the original's.
const (
	Hudi    Format = "hudi"
	Parquet Format = "parquet"
	JSON    Format = "json"
	ORC     Format = "orc"
	CSV     Format = "csv"
)

// ParseFormat accepts any letter case. The message is the original's, with our formats.
func ParseFormat(text string) (Format, error) {
	switch f := Format(strings.ToLower(text)); f {
	case Hudi, Parquet, JSON, CSV, ORC:
		return f, nil
	}
	return "", fmt.Errorf("%w: value:%s: supported formats:[json, parquet, orc, hudi, csv]", ErrFormat, text)
}

// The refusals of the original, in its words (exporter checks 1 to 5).
var (
	ErrFormat        = errors.New("Invalid output format")
	ErrTargetExists  = errors.New("The target output path already exists.")
	ErrNoCommits     = errors.New("No commits present. Nothing to snapshot.")
	ErrNoPartitions  = errors.New("The source dataset has 0 partition to snapshot.")
	ErrNoSuchColumn  = errors.New("no such column")
	ErrBadPartitions = errors.New("Positive number of partitions required")
)

// Rows says which rows of merge-on-read file groups an export takes.
type Rows string

const (
	// ReadOptimized takes base files only, as the original does: rows that are in log files are missing. The job says how
	// many file groups that concerns.
	ReadOptimized Rows = "read_optimized"
	// Snapshot takes every row of the instant, logs merged.
	Snapshot Rows = "snapshot"
)

// Timestamps of Parquet output.
type Timestamps string

const (
	// Int64 is TIMESTAMP(MICROS, adjusted to UTC), which every engine reads.
	Int64 Timestamps = "int64"
	// Int96 is what Spark writes by default and the original therefore wrote.
	Int96 Timestamps = "int96"
)

// Config of one export. The zero value of a field is its default.
type Config struct {
	Source string // base path of the table
	Target string // folder of this snapshot; must not exist, or see Overwrite
	Format Format

	Rows  Rows   // default ReadOptimized
	AsOf  string // an instant or a date; default the newest completed write
	Begin string // instant range (Begin, End]: rows changed in it, as an incremental query gives them
	End   string

	// Columns of the files, in this order; nil means all. Those that make folders leave the files in any case.
	Columns []string
	// Filter takes rows for which it is true only, in the SQL of the predicate package: "region = 'eu' and qty > 5".
	Filter string
	// KeepMeta keeps the _hoodie_ meta columns, in front.
	KeepMeta bool

	// Transformers change the rows that Filter leaves, meta columns among them, and which columns there are, before Columns and folders
	// are looked for; by the names that transform.New takes, from left to right. A query sees all rows at once.
	Transformers []string
	// TransformerSQL is the query of SqlQueryBasedTransformer; TransformerStatements is what is in the file of SqlFileBasedTransformer.
	TransformerSQL, TransformerStatements string

	PartitionField string // columns, comma-separated; rows go to <field>=<value>/, the columns leave the files
	Partitioner    string // "hoodie-partition-path[:column]", "fields:a,b", "expr:name = EXPRESSION; …" (see Expression), "none", or a name in Partitioners
	// Partitioners are those of the program, by the names that Partitioner may have.
	Partitioners map[string]Partitioner `json:"-"`
	Parallelism  int                    // tasks at once; 0 means one for each CPU

	// Compression of the format: see Compressions; the first of them is the default. Parquet files that are copied column chunk
	// by column chunk keep theirs, unless one is named here.
	Compression string
	anyCodec    bool           // none was named
	filter      predicate.Expr // of Filter; nil: every row
	whole       bool           // the transformers want all rows at once
	pack        int64          // bytes of a pack of inputs; 0: by the number of workers
	Timestamps  Timestamps     // Parquet; default Int64
	Zone        *time.Location `json:"-"` // in which JSON and CSV print timestamps; default UTC
	TableZone   *time.Location `json:"-"` // of the table's instants when its properties say LOCAL; default UTC

	// Overwrite replaces a target that an export finished (it holds _SUCCESS) or began. One that was begun with the same
	// arguments and would give the same files today is finished, not begun anew.
	Overwrite bool
	// Lease is how often a running export shows others that it lives; 0 means DefaultLease. Patience is how long one that
	// would take over from a dead one watches for such signs; 0 means three times Lease.
	Lease, Patience time.Duration
	// SmallRowGroup is the size in bytes below which the row groups of base files are joined into larger ones, which takes
	// decoding them, instead of being copied. 0 means DefaultSmallRowGroup, a negative size copies all.
	SmallRowGroup int64
	// Explain makes the export say, when it has ended, how many base files were copied as bytes and why others were decoded.
	Explain bool
	// Verify reads again what was written, before _SUCCESS comes, and holds pages that are copied as bytes against their
	// checksums also where a file system could copy them unseen.
	Verify bool
	// Manifest is where a Manifest is put as JSON: a path or URL, or InTarget. Empty: nowhere.
	Manifest string
	// WithArchive and WithMetadata make a copy of the table (format hudi) a full one: the archived timeline, the metadata table.
	WithArchive, WithMetadata bool
	// Copier keeps the older snapshot copier's ways: nothing to copy is no error.
	Copier bool
	// Open turns a URL into a store; nil means open.Store with the environment's settings. Workers in other processes always
	// take those of theirs.
	Open func(ctx context.Context, url string) (storage.Store, error) `json:"-"`
	// Engine runs the tasks in other processes, which know Handlers; nil means a pool in this one.
	Engine engine.Engine `json:"-"`
}

// DefaultSmallRowGroup is where readers begin to notice: with row groups of 1 MiB a full scan by DuckDB takes as long as with
// large ones and one by Arrow a fifth longer; at 300 KiB it is a tenth and a third, at 80 KiB two thirds and twice as long.
const DefaultSmallRowGroup = 1 << 20

// Successful is the empty file that comes last: who waits for it never sees half an export.
const Successful = "_SUCCESS"

// Compressions that a format can be written with, the default first.
func Compressions(f Format) []string {
	switch f {
	case Parquet:
		return []string{"snappy", "zstd", "gzip", "none"}
	case ORC:
		return []string{"snappy", "zlib", "zstd", "lz4", "none"}
	case JSON:
		return []string{"gzip", "zstd", "none"}
	case CSV:
		return []string{"none", "gzip", "zstd"}
	}
	return []string{"none"}
}

func openURL(ctx context.Context, url string) (storage.Store, error) {
	return open.Store(ctx, url, open.Options{})
}

func (c *Config) setDefaults() error {
	if c.Rows == "" {
		c.Rows = ReadOptimized
	}
	if c.Open == nil {
		c.Open = openURL
	}
	if c.Timestamps == "" {
		c.Timestamps = Int64
	}
	if c.SmallRowGroup == 0 {
		c.SmallRowGroup = DefaultSmallRowGroup
	}
	if c.Zone == nil {
		c.Zone = time.UTC
	}
	if c.Lease <= 0 {
		c.Lease = DefaultLease
	}
	if c.Patience <= 0 {
		c.Patience = patience * c.Lease
	}
	if c.Rows != ReadOptimized && c.Rows != Snapshot {
		return fmt.Errorf("query type %q: use %s or %s", c.Rows, ReadOptimized, Snapshot)
	}
	if c.Parallelism < 0 {
		return ErrBadPartitions
	}
	if c.Partitioner == "none" {
		c.Partitioner = ""
	}
	if err := errors.Join(c.setColumns(), c.setTransformer()); err != nil {
		return err
	}
	known := Compressions(c.Format)
	c.anyCodec = c.Compression == ""
	if c.Compression == "" {
		c.Compression = known[0]
	}
	for _, k := range known {
		if k == c.Compression {
			return nil
		}
	}
	return fmt.Errorf("compression %q: format %s knows %s", c.Compression, c.Format, strings.Join(known, ", "))
}

func (c *Config) setColumns() (err error) {
	if c.Format == Hudi && (c.Columns != nil || c.Filter != "" || c.KeepMeta) {
		return &UsageError{errors.New("format hudi copies the table's own files: columns and rows can't be picked; choose parquet, orc, json or csv")}
	}
	if c.Format != Hudi && (c.WithArchive || c.WithMetadata) {
		return &UsageError{errors.New("the archive and the metadata table belong to copies of a table: choose format hudi")}
	}
	if c.Columns != nil && len(c.Columns) == 0 {
		return &UsageError{errors.New("no columns are asked for")}
	}
	if c.Filter != "" {
		if c.filter, err = predicate.Parse(c.Filter); err != nil {
			return &UsageError{fmt.Errorf("filter: %w", err)}
		}
	}
	return nil
}

// UsageError is a configuration that makes no sense, whatever the table.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap gives the mistake.
func (e *UsageError) Unwrap() error { return e.Err }

// Join is the target folder of a snapshot with a prefix, as the early design had it: <target>/<prefix>.
func Join(target, prefix string) string {
	return storage.Join(target, strings.Trim(prefix, "/"))
}
