package keygen

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Options of the bucket index that tell the bucket of a key.
const (
	keyBuckets     = "hoodie.bucket.index.num.buckets"
	keyBucketHash  = "hoodie.bucket.index.hash.field"
	keyIndexType   = "hoodie.index.type"
	keyInitVersion = "hoodie.table.initial.version"
)

// BucketRule is a bucket index (table format 4.6).
type BucketRule struct {
	Buckets int
	Fields  []string
	Release Release // that created the table: keys were parsed otherwise before 1.0
}

// NewBucketRule reads the rule from write options and table properties; ok is false where no bucket index is asked for.
func NewBucketRule(o Options) (r BucketRule, ok bool, err error) {
	text, ok := o.Properties[keyBuckets]
	if !ok && !strings.EqualFold(o.Properties[keyIndexType], "BUCKET") {
		return r, false, nil
	}
	r.Buckets = 256
	if ok {
		if r.Buckets, err = strconv.Atoi(text); err != nil || r.Buckets <= 0 {
			return r, false, &Error{Class: classNumber, Stage: StageConstruct, Row: -1, Field: keyBuckets, Message: keyBuckets + "=" + text + " is no number of buckets",
				Source: "the write options", Hint: "give a number above 0"}
		}
	}
	list := o.Properties[keyBucketHash]
	if list == "" {
		if list = o.Table[TableRecordFields]; list == "" {
			list = o.Properties[KeyRecordFields]
		}
	}
	r.Fields = SplitFields(list)
	for _, key := range [2]string{keyInitVersion, TableVersion} {
		if v, err := strconv.Atoi(o.Table[key]); err == nil {
			if v < 8 {
				r.Release = Release{0, 15, 0}
			}
			break
		}
	}
	return r, true, nil
}

// Of gives the bucket of a key as it stands at the beginning of its file ids.
func (r BucketRule) Of(key string) (string, error) {
	n, err := Bucket(key, r.Fields, r.Buckets, r.Release)
	return BucketText(n), err
}

// Explanation is what a configuration makes of one record.
type Explanation struct {
	Row       int    `json:"row"`
	Key       string `json:"key,omitempty"`
	Partition string `json:"partition"`
	Bucket    string `json:"bucket,omitempty"` // first eight characters of the file id
	Error     string `json:"error,omitempty"`
}

// Explain makes the keys of every row, and goes on where a row has none: its error stands in the row's explanation. Errors of
// the configuration are returned.
func Explain(o Options, batch arrow.RecordBatch) ([]Explanation, []string, error) {
	g, err := Open(o)
	if err != nil {
		return nil, nil, err
	}
	rule, bucketed, err := NewBucketRule(o)
	if err != nil {
		return nil, nil, err
	}
	var warnings []string
	if k, ok := g.(*Keygen); ok {
		warnings = k.Warnings()
	}
	made := makeAll(g, batch)
	if made.fail != nil {
		return nil, warnings, made.fail
	}
	defer made.release()
	list := make([]Explanation, batch.NumRows())
	for row := range list {
		e := &list[row]
		e.Row = row
		key, partition, err := made.at(row)
		if err == nil {
			e.Key, e.Partition = key, partition
			if bucketed {
				e.Bucket, err = rule.Of(key)
			}
		}
		if err != nil {
			e.Error = err.Error()
		}
	}
	return list, warnings, nil
}

// single makes the keys of one row with any generator.
func single(g Generator, batch arrow.RecordBatch, row int) (key, partition string, err error) {
	if k, ok := g.(*Keygen); ok {
		return k.Key(batch, row)
	}
	one := batch.NewSlice(int64(row), int64(row)+1)
	defer one.Release()
	keys, partitions, err := g.Keys(one)
	if err != nil {
		var fault *Error
		if errors.As(err, &fault) && fault.Row == 0 {
			err = inRow(fault, row)
		}
		return "", "", err
	}
	defer keys.Release()
	defer partitions.Release()
	return textAt(keys, 0), textAt(partitions, 0), nil
}

// textAt reads a utf8 or dictionary column; null is "".
func textAt(a arrow.Array, row int) string {
	if a.IsNull(row) {
		return ""
	}
	switch a := a.(type) {
	case *array.String:
		return a.Value(row)
	case *array.Dictionary:
		return textAt(a.Dictionary(), a.GetValueIndex(row))
	}
	return a.ValueStr(row)
}

// Difference is a stored row whose key or partition path isn't what the configuration gives.
type Difference struct {
	Row             int64  `json:"row"` // over all batches
	StoredKey       string `json:"stored_key"`
	Key             string `json:"key,omitempty"`
	StoredPartition string `json:"stored_partition"`
	Partition       string `json:"partition,omitempty"`
	Error           string `json:"error,omitempty"`
}

// Report is the result of a check.
type Report struct {
	Rows, Differ int64
	First        []Difference
	// Agreeing names the variations of the configuration with which every row agrees, where the configuration itself
	// doesn't.
	Agreeing []string
}

// firstDifferences is how many a report shows.
const firstDifferences = 10

// Checker compares the stored keys of a table with what its configuration gives.
type Checker struct {
	table      Generator
	variations []variation
	report     Report
}

type variation struct {
	name string
	g    Generator
	ok   bool
}

// NewChecker compiles the table's configuration and the variations that tables were seen to be written with.
func NewChecker(o Options) (*Checker, error) {
	g, err := Open(o)
	if err != nil {
		return nil, err
	}
	c := &Checker{table: g}
	for _, v := range variationsOf(o) {
		if g, err := Open(v.options); err == nil {
			c.variations = append(c.variations, variation{name: v.name, g: g, ok: true})
		}
	}
	return c, nil
}

type variedOptions struct {
	name    string
	options Options
}

func variationsOf(o Options) []variedOptions {
	with := func(name string, change func(*Options)) variedOptions {
		v := o
		v.Properties, v.Table = map[string]string{}, map[string]string{}
		for k, value := range o.Properties {
			v.Properties[k] = value
		}
		for k, value := range o.Table {
			v.Table[k] = value
		}
		v.StoredKeys, v.HasCommits = nil, false
		change(&v)
		return variedOptions{name, v}
	}
	set := func(key, value string) func(*Options) { return func(o *Options) { o.Table[key] = value } }
	list := []variedOptions{
		with("one-field complex keys as field:value ("+TableEncoding+"="+FieldPrefixed+")", set(TableEncoding, FieldPrefixed)),
		with("one-field complex keys as the bare value ("+TableEncoding+"="+ValueOnly+")", set(TableEncoding, ValueOnly)),
		with("timestamps as text ("+KeyConsistent+"=true)", func(o *Options) { o.Properties[KeyConsistent] = "true" }),
		with("timestamps as numbers ("+KeyConsistent+"=false)", func(o *Options) { o.Properties[KeyConsistent] = "false" }),
		with("the keys of Spark's bulk insert (InternalRow)", func(o *Options) { o.Path = PathInternalRow }),
		with("the keys of Spark rows", func(o *Options) { o.Path = PathRow }),
		with("partition names in the path ("+KeyHiveStyle+"=true)", set(KeyHiveStyle, "true")),
		with("no partition names in the path ("+KeyHiveStyle+"=false)", set(KeyHiveStyle, "false")),
		with("escaped partition values ("+KeyURLEncode+"=true)", set(KeyURLEncode, "true")),
		with("partition values as they are ("+KeyURLEncode+"=false)", set(KeyURLEncode, "false")),
		with("the null partition of releases before 0.12 ("+OldNullPartition+")", func(o *Options) { o.Table[TableVersion] = "4" }),
		with("floating point texts of Java 19", func(o *Options) { o.ShortestFloats = true }),
	}
	return slices.DeleteFunc(list, func(v variedOptions) bool { return o.Table == nil })
}

// Add compares the rows of a batch that was read from the table with its meta columns.
func (c *Checker) Add(batch arrow.RecordBatch) error {
	keys, err := metaColumn(batch, "_hoodie_record_key")
	if err != nil {
		return err
	}
	partitions, err := metaColumn(batch, "_hoodie_partition_path")
	if err != nil {
		return err
	}
	made := makeAll(c.table, batch)
	if made.fail != nil {
		return made.fail
	}
	for row := range int(batch.NumRows()) {
		key, partition, err := made.at(row)
		if d := (Difference{Row: c.report.Rows, StoredKey: textAt(keys, row), StoredPartition: textAt(partitions, row), Key: key, Partition: partition}); err != nil ||
			key != d.StoredKey || partition != d.StoredPartition {
			c.differ(d, err)
		}
		c.report.Rows++
	}
	made.release()
	for i := range c.variations {
		if v := &c.variations[i]; v.ok {
			v.ok = agrees(v.g, batch, keys, partitions)
		}
	}
	return nil
}

// agrees reports whether a generator makes the stored keys of all rows.
func agrees(g Generator, batch arrow.RecordBatch, keys, partitions arrow.Array) bool {
	k, p, err := g.Keys(batch)
	if err != nil {
		return false
	}
	defer k.Release()
	defer p.Release()
	for row := range int(batch.NumRows()) {
		if textAt(k, row) != textAt(keys, row) || textAt(p, row) != textAt(partitions, row) {
			return false
		}
	}
	return true
}

// madeKeys are the keys of a batch: as columns, or one by one where a row has none.
type madeKeys struct {
	g                Generator
	batch            arrow.RecordBatch
	keys, partitions arrow.Array
	fail             error // of the configuration
}

func makeAll(g Generator, batch arrow.RecordBatch) *madeKeys {
	m := &madeKeys{g: g, batch: batch}
	var err error
	var fault *Error
	if m.keys, m.partitions, err = g.Keys(batch); errors.As(err, &fault) && fault.Row < 0 {
		m.fail = err
	}
	return m
}

func (m *madeKeys) at(row int) (key, partition string, err error) {
	if m.keys == nil {
		return single(m.g, m.batch, row)
	}
	return textAt(m.keys, row), textAt(m.partitions, row), nil
}

func (m *madeKeys) release() {
	if m.keys != nil {
		m.keys.Release()
		m.partitions.Release()
	}
}

func (c *Checker) differ(d Difference, err error) {
	c.report.Differ++
	if err != nil {
		d.Error = err.Error()
	}
	if len(c.report.First) < firstDifferences {
		c.report.First = append(c.report.First, d)
	}
}

func metaColumn(batch arrow.RecordBatch, name string) (arrow.Array, error) {
	at := batch.Schema().FieldIndices(name)
	if len(at) == 0 {
		return nil, fmt.Errorf("check of keys: the rows have no column %s; read them with their meta columns", name)
	}
	column := batch.Column(at[0])
	if column.NullN() == column.Len() && column.Len() > 0 {
		return nil, fmt.Errorf("check of keys: column %s is empty: the table keeps no meta columns (hoodie.populate.meta.fields=false), so there is nothing to compare", name)
	}
	return column, nil
}

// Report of all rows so far.
func (c *Checker) Report() Report {
	r := c.report
	r.First = slices.Clone(r.First)
	if r.Differ > 0 {
		for _, v := range c.variations {
			if v.ok {
				r.Agreeing = append(r.Agreeing, v.name)
			}
		}
	}
	return r
}
