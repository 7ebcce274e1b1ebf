// Package index finds the records of a table by their keys: which file group holds a key, and in which rows of its base file.
//
// It has the indexes that need nothing but the data files (tools F.6): BLOOM and SIMPLE within the partition of a key, their GLOBAL
// forms over all partitions, and BUCKET with simple hashing. A lookup takes a whole batch of keys, hashes it once, and opens
// each file at most once; of the files it reads footers and key columns. It never holds the keys of the table.
package index

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/keygen"
	"github.com/sluicelake/sluice/storage"
)

// Kind is an index.
type Kind uint8

// The indexes.
const (
	Simple Kind = iota
	Bloom
	GlobalSimple
	GlobalBloom
	Bucket
)

var kindNames = [...]string{"SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "BUCKET"}

func (k Kind) String() string { return kindNames[k] }

// Global reports whether a key is looked for in all partitions.
func (k Kind) Global() bool { return k == GlobalSimple || k == GlobalBloom }

// ParseKind reads hoodie.index.type. Indexes of the metadata table and those outside the table are [config.ErrUnsupported].
func ParseKind(text string) (Kind, error) {
	for k, name := range kindNames {
		if strings.EqualFold(strings.TrimSpace(text), name) {
			return Kind(k), nil
		}
	}
	return 0, fmt.Errorf("hoodie.index.type=%s: %w; there are %s", text, config.ErrUnsupported, strings.Join(kindNames[:], ", "))
}

// ErrBuckets: two file groups of one partition claim the same bucket, or one claims none.
var ErrBuckets = errors.New("file groups do not fit the bucket index")

// Options of [Lookup].
type Options struct {
	Kind Kind
	// Bucket is the rule of the BUCKET index.
	Bucket keygen.BucketRule
	// NoRanges leaves the key ranges of footers aside (hoodie.bloom.index.prune.by.ranges=false).
	NoRanges bool
	// NoRows asks the BUCKET index for file groups alone, which opens no file: every row of the answer is -1.
	NoRows bool
	// Virtual makes the keys of stored rows where the table has no meta fields, from the columns of Table that it needs.
	// Nil: keys are in _hoodie_record_key.
	Virtual *keygen.Keygen
	Table   *arrow.Schema
	// Parallel is how many files are looked into at once, 0 for 4; Memory, in bytes, lowers it, 0 for 256 MiB.
	Parallel int
	Memory   int64
	// Base opens the files.
	Base basefile.Options
	// Logged gives the rows of a slice that has log files, merged with its base file, in the columns asked for. Nil: only base files
	// are looked into, as Apache Hudi does, and a key that log files alone hold is not found.
	Logged func(ctx context.Context, s filegroup.Slice, columns *arrow.Schema) iter.Seq2[arrow.RecordBatch, error]
}

// InLog is the row of a key that only log files of its file group hold.
const InLog = math.MaxInt64

// Set takes hoodie.index.type and hoodie.bloom.index.prune.by.ranges from a write configuration. The bucket rule is
// [keygen.NewBucketRule]'s.
func (o *Options) Set(props *config.Properties) error {
	o.Kind, o.NoRanges = Simple, false
	if v, ok := config.LookupValue(props, "hoodie.index.type"); ok && strings.TrimSpace(v) != "" {
		var err error
		if o.Kind, err = ParseKind(v); err != nil {
			return err
		}
	}
	if v, ok := config.LookupValue(props, "hoodie.bloom.index.prune.by.ranges"); ok {
		prune, err := strconv.ParseBool(strings.ToLower(strings.TrimSpace(v)))
		if err != nil {
			return fmt.Errorf("hoodie.bloom.index.prune.by.ranges=%s is neither true nor false", v)
		}
		o.NoRanges = !prune
	}
	return nil
}

// Tags say where keys are stored: entry i says that the key in row Key[i] of the batch is stored in the file group of slice
// Slice[i], in row Row[i] of its base file. They are sorted by key, slice and row. A key that is not in the table has no entry; one that is
// stored more than once has several, as every copy is a copy that an upsert replaces and a delete deletes.
//
// With the BUCKET index a key whose bucket has a file group has an entry in any case, with row -1 where the base file lacks it:
// that file group is where it belongs.
type Tags struct {
	Key   []int32
	Slice []int32
	Row   []int64 // or InLog
	// Stats say what the lookup cost.
	Stats Stats
}

// Stats of a lookup.
type Stats struct {
	Files    int   // base files in the partitions that were asked about
	ByRange  int   // of them, files that the key range excluded
	ByFilter int   // files that the bloom filter excluded
	Read     int   // files whose key columns were read
	Rows     int64 // keys that were read
}

// Len is the number of entries.
func (t *Tags) Len() int { return len(t.Key) }

// Location is an entry with its names.
type Location struct {
	Partition, FileID, Instant string
	Row                        int64 // in the base file, from 0; -1 is unknown or not there
}

// Location gives entry i, for the slices of the lookup.
func (t *Tags) Location(i int, slices []filegroup.Slice) Location {
	s := &slices[t.Slice[i]]
	return Location{Partition: s.Partition, FileID: s.FileID, Instant: s.Instant, Row: t.Row[i]}
}

// Lookup finds the keys of a batch whose first column is the record key (utf8) and whose second is the partition path (utf8, or a
// dictionary of it, as a key generator makes them), in the slices of a table at one instant.
//
// Like Apache Hudi's it looks into base files only, unless Options.Logged is given: keys that are stored in log files alone, as Flink and
// the BUCKET, INMEMORY and HBASE indexes leave them, are not found, except by the BUCKET index. (So hand in slices with the newest base file of a group, a pending compaction or not, as [filegroup.Snapshot] gives them.)
// Which file a key is found in is decided as there: BLOOM trusts key range and filter of the footer; a file without filter
// is read. Partitions are those of the folders.
func Lookup(ctx context.Context, store storage.Store, slices []filegroup.Slice, keys arrow.RecordBatch, o Options) (*Tags, error) {
	if keys.NumCols() < 2 {
		return nil, errors.New("index: a batch of record keys and partition paths has two columns")
	}
	text, ok := keys.Column(0).(*array.String)
	if !ok {
		return nil, fmt.Errorf("index: record keys are text, not %s", keys.Column(0).DataType())
	}
	set, err := newKeySet(text, keys.Column(1), o.Kind.Global())
	if err != nil {
		return nil, err
	}
	l := &lookup{store: store, slices: slices, o: o, set: set}
	if o.Kind == Bucket {
		return l.buckets(ctx)
	}
	return l.files(ctx)
}
