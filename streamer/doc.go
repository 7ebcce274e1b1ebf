// Package streamer applies change files, or the changes of another Hudi table, to a Hudi table: once, or for ever. It is the job
// that Apache Hudi calls HoodieStreamer, earlier HoodieDeltaStreamer, and takes the same options and properties (tools C).
//
//	summary, err := streamer.Run(ctx, streamer.Config{
//		TargetBasePath: "s3://lake/orders", TargetTable: "orders", TableType: "COPY_ON_WRITE",
//		SourceClass: "ParquetDFSSource", OrderingField: "updated_at",
//		HoodieConf: []string{"hoodie.streamer.source.dfs.root=s3://dms/orders", "hoodie.datasource.write.recordkey.field=order_id"},
//	}, nil)
//
// A round reads what is new in the source (package source), transforms it (package transform), and writes it with the checkpoint
// of the next round in one commit (package operation): whatever dies when, no row is lost and none is written twice.
package streamer

import (
	"errors"
	"io"
	"math"
	"time"
)

// ErrConfig is wrapped by every error about options and properties: nothing was written.
var ErrConfig = errors.New("streamer options")

// Config is what the command line of the original says, and a few options of our own. Zero values are the original's defaults.
type Config struct {
	TargetBasePath string
	TargetTable    string
	TableType      string // COPY_ON_WRITE or MERGE_ON_READ
	BaseFileFormat string // PARQUET

	Props      string   // properties file
	HoodieConf []string // key=value

	SourceClass    string // JsonDFSSource
	OrderingField  string // ts
	PayloadClass   string
	MergeMode      string
	SchemaProvider string
	Transformers   []string
	SourceLimit    int64  // 0: none
	Op             string // UPSERT
	FilterDupes    bool

	Checkpoint                string
	IgnoreCheckpoint          string
	InitialCheckpointProvider string
	AllowSameCheckpoint       bool // --allow-commit-on-no-checkpoint-change

	Continuous        bool
	MinSyncInterval   time.Duration
	Termination       string // --post-write-termination-strategy-class
	DisableCompaction bool
	CommitOnErrors    bool

	RetryOnSourceFailures bool
	RetryInterval         time.Duration // 30 s
	MaxRetries            int           // 3

	// MultiTable: the tables that Props lists are streamed, each with a properties file of its own (tools C.10).
	MultiTable     bool
	BasePathPrefix string
	ConfigFolder   string

	// The options of our own.
	Strict  bool          // find files that come late under an old time
	Window  time.Duration // how late; 0: however late
	Settle  time.Duration // leave younger files alone
	Rejects string        // folder for records that can't be written; it makes CommitOnErrors safe

	Memory   int64
	TempDir  string
	Parallel int
	Zone     *time.Location
	Now      func() time.Time // nil: time.Now
	// Event, when set, is told what happens. With MultiTable and Continuous several goroutines call it.
	Event func(Event)
	// Log gets a line for a person now and then; nil: nobody reads it.
	Log io.Writer
}

func (c Config) withDefaults() Config {
	if c.SourceClass == "" {
		c.SourceClass = "org.apache.hudi.utilities.sources.JsonDFSSource"
	}
	if c.Op == "" {
		c.Op = "UPSERT"
	}
	if c.SourceLimit <= 0 {
		c.SourceLimit = math.MaxInt64
	}
	if c.RetryInterval <= 0 {
		c.RetryInterval = 30 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}
