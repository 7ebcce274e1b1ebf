package lakemodel

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// Config is what does not change in the life of a table.
type Config struct {
	Name        string
	Keygen      string
	Keys        []string // record key columns; none where the writer makes keys
	Partitions  []string // partition columns
	Clock       Clock    // of the partition column "made"
	HiveStyle   bool
	URLEncode   bool
	BareComplex bool // a one-field complex key has no field name before it

	Payload      string
	Ordering     string // column
	OrderingType string // long, int, text, timestamp, double, decimal
	Flag         bool   // rows may carry _hoodie_is_deleted
	DeleteMarker bool   // the default payload is told that state=gone deletes

	Index      string
	Moves      bool // under a global index, a row moves to the partition that its newest version names
	Duplicates bool // inserts may bring keys that are stored

	NullElements bool // lists may hold nulls
	PlainKeys    bool // no commas, colons and slashes in keys

	// Sizes and form of files; they change no row.
	Files map[string]string
}

// Global reports whether the index finds a key in any partition.
func (c *Config) Global() bool { return strings.HasPrefix(c.Index, "GLOBAL_") }

// Options are given with every write, and when the table is created.
func (c *Config) Options() map[string]string {
	o := map[string]string{
		"hoodie.table.name":                         c.Name,
		"hoodie.datasource.write.table.type":        "COPY_ON_WRITE",
		"hoodie.datasource.write.precombine.field":  c.Ordering,
		"hoodie.datasource.write.payload.class":     "org.apache.hudi.common.model." + c.Payload,
		"hoodie.merge.allow.duplicate.on.inserts":   "true",
		"hoodie.metadata.enable":                    "false",
		"hoodie.index.type":                         c.Index,
		"hoodie.bloom.index.update.partition.path":  fmt.Sprint(c.Moves),
		"hoodie.simple.index.update.partition.path": fmt.Sprint(c.Moves),
		"hoodie.table.timeline.timezone":            "UTC",
		"hoodie.bucket.index.num.buckets":           "3",
		"hoodie.write.table.version":                "6",
	}
	if c.Index == "BUCKET" && len(c.Keys) > 0 {
		o["hoodie.bucket.index.hash.field"] = c.Keys[0]
	} else {
		delete(o, "hoodie.bucket.index.num.buckets")
	}
	if c.DeleteMarker {
		o["hoodie.payload.delete.field"], o["hoodie.payload.delete.marker"] = "state", "gone"
	}
	maps.Copy(o, c.keyOptions())
	maps.Copy(o, c.Files)
	return o
}

var payloads = []string{OverwriteWithLatest, DefaultPayload, DefaultPayload, EventTime, PartialUpdate, OverwriteNonDefaults, AWSDms}

var indexes = []string{"BLOOM", "SIMPLE", "GLOBAL_BLOOM", "GLOBAL_SIMPLE", "BUCKET"}

func randomConfig(r *rand.Rand, seed uint64) Config {
	c := Config{
		Name:         fmt.Sprintf("h%d", seed),
		Keygen:       pick(r, []string{Simple, Simple, Complex, ComplexOne, Timestamp, Custom, NonPartitioned, GlobalDelete, Keyless}),
		HiveStyle:    r.IntN(2) == 0,
		URLEncode:    r.IntN(2) == 0,
		BareComplex:  seed%2 == 0 || r.IntN(2) == 0, // Apache Hudi 0.15.0, which has the even seeds, knows no other
		Payload:      pick(r, payloads),
		Ordering:     "ts",
		OrderingType: pick(r, []string{"long", "long", "long", "int", "text", "timestamp", "double", "decimal"}),
		Index:        pick(r, indexes),
		Moves:        r.IntN(2) == 0,
		Duplicates:   r.IntN(3) == 0,
		NullElements: r.IntN(2) == 0,
	}
	c.chooseFields(r)
	c.chooseClock(r)
	c.Flag = c.Payload != AWSDms && r.IntN(2) == 0
	if c.Payload == DefaultPayload && !c.Flag {
		c.DeleteMarker = r.IntN(3) == 0
	}
	if c.Keygen == Keyless { // nothing is looked up
		c.Index, c.Duplicates = pick(r, []string{"BLOOM", "SIMPLE"}), false
	}
	if c.Global() {
		c.Duplicates = false // which of two rows of a key a global index finds is a matter of luck
	} else {
		c.Moves = false
	}
	// Releases split keys with commas and colons in different ways to find the bucket (key generation 6.4).
	c.PlainKeys = c.Index == "BUCKET"
	c.Files = randomFiles(r)
	return c
}

func (c *Config) chooseFields(r *rand.Rand) {
	c.Keys = []string{"id"}
	switch c.Keygen {
	case Simple, ComplexOne:
		c.Partitions = []string{pick(r, []string{"region", "region", "level", "day"})}
	case Complex:
		c.Keys = []string{"id", "shop"}
		c.Partitions = pick(r, [][]string{{"region"}, {"region", "level"}, {"level", "day"}})
		if r.IntN(3) == 0 {
			c.Keys = []string{"id"}
			c.Keygen, c.Partitions = ComplexOne, []string{"region", "level"}
		}
	case Timestamp:
		c.Partitions = []string{"made"}
	case Custom:
		c.Partitions = pick(r, [][]string{{"region", "made"}, {"made"}, {"level"}})
		if r.IntN(2) == 0 {
			c.Keys = []string{"id", "shop"}
		}
	case NonPartitioned:
		if r.IntN(2) == 0 {
			c.Keys = []string{"id", "shop"}
		}
	case GlobalDelete: // the one that is meant for deletes under a global index makes tables without partitions
	case Keyless:
		c.Keys = nil
		c.Partitions = pick(r, [][]string{nil, {"region"}})
	}
}

// chooseClock leaves out what Spark can't read: it takes the column from the folder and fails to make a number of 2026%2F03%2F01, or
// of any time of the custom generator.
func (c *Config) chooseClock(r *rand.Rand) {
	c.Clock = pick(r, clocks)
	switch {
	case !slices.Contains(c.Partitions, "made"):
	case c.Keygen == Custom:
		c.Clock = clocks[2]
	case c.Clock.Type == "UNIX_TIMESTAMP":
		c.URLEncode = false
	}
}

// randomFiles makes small files, and many.
func randomFiles(r *rand.Rand) map[string]string {
	return map[string]string{
		"hoodie.index.bloom.num_entries":          pick(r, []string{"100", "100", "100", "100", "1000", "1000", "1000", "60000"}),
		"hoodie.bloom.index.filter.type":          pick(r, []string{"SIMPLE", "DYNAMIC_V0"}),
		"hoodie.bloom.index.prune.by.ranges":      pick(r, []string{"true", "false"}),
		"hoodie.parquet.compression.codec":        pick(r, []string{"gzip", "snappy", "zstd", "uncompressed"}),
		"hoodie.parquet.small.file.limit":         pick(r, []string{"0", "20000", "104857600"}),
		"hoodie.parquet.max.file.size":            pick(r, []string{"25000", "40000", "125829120"}),
		"hoodie.parquet.block.size":               pick(r, []string{"4096", "65536", "125829120"}),
		"hoodie.parquet.page.size":                pick(r, []string{"512", "1048576"}),
		"hoodie.parquet.dictionary.enabled":       pick(r, []string{"true", "false"}),
		"hoodie.copyonwrite.record.size.estimate": pick(r, []string{"64", "1024", "4096"}),
		"hoodie.copyonwrite.insert.split.size":    pick(r, []string{"6", "15", "15", "500000"}),
		"hoodie.copyonwrite.insert.auto.split":    pick(r, []string{"false", "true"}),
		"hoodie.record.size.estimation.threshold": pick(r, []string{"0.0", "1.0"}),
		"hoodie.bulkinsert.shuffle.parallelism":   pick(r, []string{"1", "2", "3"}),
	}
}

// columns of the table's first rows: those of keys, partitions and ordering, and some of every kind, in random order.
func (c *Config) columns(r *rand.Rand) []Column {
	ordering := map[string]arrow.DataType{"long": long, "int": integer, "text": text, "timestamp": micros, "double": double, "decimal": decimal(14, 3)}[c.OrderingType]
	made := long
	if c.Clock.Input != "" {
		made = text
	}
	columns := []Column{{"id", text}, {"shop", integer}, {"region", text}, {"level", integer}, {"day", arrow.FixedWidthTypes.Date32}, {"made", made}, {"ts", ordering}, {"count", integer}}
	switch {
	case c.Payload == AWSDms:
		columns = append(columns, Column{"Op", text})
	case c.DeleteMarker:
		columns = append(columns, Column{"state", text})
	case c.Flag:
		columns = append(columns, Column{"_hoodie_is_deleted", boolean})
	}
	for _, d := range dataColumns() {
		if r.IntN(2) == 0 {
			columns = append(columns, d)
		}
	}
	r.Shuffle(len(columns), func(i, j int) { columns[i], columns[j] = columns[j], columns[i] })
	return columns
}

func (c *Config) String() string {
	parts := []string{c.Keygen, "key " + strings.Join(c.Keys, ","), "by " + strings.Join(c.Partitions, ","), c.Payload, c.Index, "ordering " + c.OrderingType}
	for name, on := range map[string]bool{"hive style": c.HiveStyle, "url encoded": c.URLEncode, "moves": c.Moves, "duplicates": c.Duplicates, "flag": c.Flag,
		"marker": c.DeleteMarker, "null elements": c.NullElements, "bare complex key": c.BareComplex && c.Keygen == ComplexOne} {
		if on {
			parts = append(parts, name)
		}
	}
	slices.Sort(parts[6:])
	for _, k := range slices.Sorted(maps.Keys(c.Files)) {
		parts = append(parts, strings.TrimPrefix(k, "hoodie.")+"="+c.Files[k])
	}
	return strings.Join(parts, "; ")
}
