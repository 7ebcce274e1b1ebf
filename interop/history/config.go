//go:build interop

// Package history makes tables with random histories through Apache Hudi, and keeps a plain model of what they should
// hold. One seed gives one history, so a failure can be made again.
package history

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/sluicelake/sluice/interop/spark"
)

// Config is what does not change in the life of one table.
type Config struct {
	MergeOnRead bool
	Partitions  []string // partition columns, from none to two
	HiveStyle   bool
	CompositeID bool   // two key fields in place of one
	Merge       string // how versions of a record are merged: a name of merges
	Late        bool   // rows may arrive with older ordering values than the table holds
	Deletes     bool   // rows may carry _hoodie_is_deleted
	Index       string // "", BLOOM, BUCKET, INMEMORY
	LogFormat   string // "", avro, parquet
	SmallFiles  bool   // inserts may rewrite small base files
	Metadata    bool   // the metadata table is on
	Cleaning    bool   // old versions are cleaned early
	Archiving   bool   // the active timeline is kept short
	Positions   bool   // log blocks hold record positions
}

// merges names the ways to merge two versions, with the options that choose them. "latest" takes the later arrival and
// "ordering" the greater ordering value; the plain model knows these two. The others keep some of the older fields.
var merges = map[string]struct {
	payload, mode string
	rule          string
}{
	"latest payload":       {payload: "OverwriteWithLatestAvroPayload", rule: "latest"},
	"default payload":      {payload: "DefaultHoodieRecordPayload", rule: "ordering"},
	"event time payload":   {payload: "EventTimeAvroPayload", rule: "ordering"},
	"partial payload":      {payload: "PartialUpdateAvroPayload"},
	"non-defaults payload": {payload: "OverwriteNonDefaultsWithLatestAvroPayload"},
	"commit time":          {mode: "COMMIT_TIME_ORDERING", rule: "latest"},
	"event time":           {mode: "EVENT_TIME_ORDERING", rule: "ordering"},
	"as it comes":          {},
}

func randomConfig(r *rand.Rand, release string) Config {
	names := []string{"latest payload", "default payload", "default payload", "event time payload", "partial payload", "non-defaults payload"}
	if release != spark.Hudi0 {
		names = append(names, "commit time", "event time", "as it comes")
	}
	c := Config{
		MergeOnRead: r.IntN(10) < 7,
		HiveStyle:   r.IntN(2) == 0,
		CompositeID: r.IntN(4) == 0,
		Merge:       pick(r, names),
		Late:        r.IntN(2) == 0,
		Deletes:     r.IntN(2) == 0,
		Metadata:    r.IntN(2) == 0,
		SmallFiles:  r.IntN(3) == 0,
		Cleaning:    r.IntN(5) == 0,
		Archiving:   r.IntN(5) == 0,
		Partitions:  pick(r, [][]string{nil, {"region"}, {"region"}, {"region", "level"}}),
	}
	c.Index = pick(r, []string{"", "", "BLOOM", "BUCKET"})
	if c.MergeOnRead {
		c.Index = pick(r, []string{"", "BLOOM", "BUCKET", "INMEMORY"})
		c.LogFormat = pick(r, []string{"", "avro", "parquet"})
		c.Positions = release != spark.Hudi0 && r.IntN(2) == 0
	}
	return c
}

// plain says whether the model can foresee the table: the merge is one of the two plain rules, and nothing arrives late
// where the order in which versions are merged, which differs between releases and table types, would show.
func (c Config) plain() bool {
	rule := merges[c.Merge].rule
	return rule != "" && (!c.Late || !c.MergeOnRead)
}

// options are given with every write.
func (c Config) options(name, release string) spark.Options {
	o := spark.Options{
		"hoodie.table.name":                               name,
		"hoodie.datasource.write.table.type":              "COPY_ON_WRITE",
		"hoodie.datasource.write.recordkey.field":         "id",
		"hoodie.datasource.write.precombine.field":        "ts",
		"hoodie.datasource.write.partitionpath.field":     strings.Join(c.Partitions, ","),
		"hoodie.datasource.write.hive_style_partitioning": fmt.Sprint(c.HiveStyle),
		"hoodie.metadata.enable":                          fmt.Sprint(c.Metadata),
	}
	if c.MergeOnRead {
		o["hoodie.datasource.write.table.type"] = "MERGE_ON_READ"
	}
	if c.CompositeID {
		o["hoodie.datasource.write.recordkey.field"] = "id,shop"
	}
	if p := merges[c.Merge].payload; p != "" {
		o["hoodie.datasource.write.payload.class"] = "org.apache.hudi.common.model." + p
		o["hoodie.compaction.payload.class"] = "org.apache.hudi.common.model." + p
	}
	if m := merges[c.Merge].mode; m != "" {
		o["hoodie.record.merge.mode"] = m
		o["hoodie.write.record.merge.mode"] = m
	}
	switch c.Index {
	case "":
	case "BUCKET":
		o["hoodie.index.type"] = "BUCKET"
		o["hoodie.bucket.index.num.buckets"] = "3"
		o["hoodie.bucket.index.hash.field"] = "id"
	default:
		o["hoodie.index.type"] = c.Index
	}
	if c.LogFormat != "" {
		o["hoodie.logfile.data.block.format"] = c.LogFormat
	}
	if !c.SmallFiles {
		o["hoodie.parquet.small.file.limit"] = "0"
	}
	if c.Positions {
		o["hoodie.write.record.positions"] = "true"
	}
	retained := "30"
	if c.Cleaning {
		retained = "1"
	}
	o["hoodie.clean.commits.retained"], o["hoodie.cleaner.commits.retained"] = retained, retained
	if c.Archiving {
		o["hoodie.clean.commits.retained"], o["hoodie.cleaner.commits.retained"] = "1", "1"
		o["hoodie.keep.min.commits"], o["hoodie.keep.max.commits"] = "2", "3"
		o["hoodie.commits.archival.batch"] = "1"
	}
	return o
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }
