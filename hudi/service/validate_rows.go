package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/bloom"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/keygen"
	"github.com/sluicelake/sluice/hudi/read"
	"github.com/sluicelake/sluice/hudi/timeline"
)

const (
	keyColumn       = "_hoodie_record_key"
	partitionColumn = "_hoodie_partition_path"
	minKey          = "hoodie_min_record_key"
	maxKey          = "hoodie_max_record_key"
)

// rows reads the latest snapshot, and the keys of its base files.
func (c *checker) rows(ctx context.Context) error {
	src, err := read.Load(ctx, c.store, read.Options{Zone: c.o.Zone})
	var plan *read.Plan
	if err == nil {
		plan, err = src.Plan(ctx, read.Query{})
	}
	if errors.Is(err, timeline.ErrNoSchema) && c.tl.Len() == 0 {
		return nil // a new table: the first write brings the schema
	}
	if err != nil {
		return c.rowsFailed(ctx, "", err)
	}
	c.report.Slices = len(plan.Slices())
	if c.o.FilesOnly {
		return nil
	}
	generator, columns := c.keygen(plan)
	reader, err := plan.Reader(read.ScanOptions{Columns: columns, Alloc: c.o.Alloc, Memory: c.o.Memory, TempDir: c.o.TempDir})
	if err != nil {
		return c.rowsFailed(ctx, "", err)
	}
	seen := newKeySet(c.o.Memory, c.o.TempDir)
	defer seen.close()
	for _, slice := range reader.Slices() {
		v := visitor{c: c, slice: slice, generator: generator, seen: seen}
		for batch, err := range reader.Scan(ctx, slice) {
			if err == nil {
				err = v.batch(batch)
				batch.Release()
			}
			if err != nil {
				if err := c.rowsFailed(ctx, sliceName(slice), err); err != nil {
					return err
				}
				break
			}
		}
		if slice.Base != nil {
			if err := c.bloom(ctx, slice.Base.Name); err != nil {
				return err
			}
		}
	}
	if !c.cfg.PopulateMetaFields && generator == nil {
		return nil
	}
	return c.duplicates(ctx, reader, generator, seen)
}

func sliceName(s filegroup.Slice) string {
	if s.Base != nil {
		return s.Base.Name
	}
	if len(s.Logs) > 0 {
		return s.Logs[0].Path
	}
	return s.Partition
}

// rowsFailed makes a finding of what a reader of the table would fail with too.
func (c *checker) rowsFailed(ctx context.Context, where string, err error) error {
	if ctx.Err() != nil {
		return err
	}
	c.add(Error, RowsUnreadable, where, "see the other findings", "%v", err)
	return nil
}

// keygen compiles the table's key generator, and gives the columns that it and we read. Rows of tables whose generator is a
// Java class of somebody's own are not held against their folders.
func (c *checker) keygen(plan *read.Plan) (*keygen.Keygen, []string) {
	var columns []string
	if c.cfg.PopulateMetaFields {
		columns = []string{keyColumn, partitionColumn}
	}
	if c.cfg.DropPartitionColumns {
		return nil, columns // the values come from the folders
	}
	o := keygen.Options{Table: keygen.PropertiesOf(c.cfg), Schema: plan.Avro()}
	k, err := keygen.New(o)
	if err != nil && keygen.NeedsStoredKeys(o.Table) {
		o.StoredKeys = []string{"a", "b"} // only the partition is asked for
		k, err = keygen.New(o)
	}
	if err != nil {
		c.unchecked(err)
		return nil, columns
	}
	record, partition := k.Fields()
	for _, f := range append(record, partition...) {
		top, _, _ := strings.Cut(f, ".")
		if !slices.Contains(plan.UserColumns(), f) {
			f = top
		}
		if slices.Contains(plan.UserColumns(), f) && !slices.Contains(columns, f) {
			columns = append(columns, f)
		}
	}
	return k, columns
}

func (c *checker) unchecked(err error) {
	c.add(Info, PartitionUnchecked, "hoodie.table.keygenerator.class", "", "partition values were not held against the folders: %v", err)
}

// visitor looks at the rows of one slice.
type visitor struct {
	c         *checker
	slice     filegroup.Slice
	generator *keygen.Keygen
	seen      *keySet
	told      bool // of a partition value
}

func (v *visitor) batch(batch arrow.RecordBatch) error {
	c := v.c
	c.report.Rows += batch.NumRows()
	var keys, made, folders *array.String
	if c.cfg.PopulateMetaFields {
		var err error
		if keys, err = text(batch, keyColumn); err != nil {
			return err
		}
	}
	if v.generator != nil {
		k, p, err := v.generator.KeysWith(c.o.Alloc, batch)
		if err != nil { // options that only the writer knew
			if c.counts[PartitionUnchecked] == 0 {
				c.unchecked(err)
			}
			v.generator = nil
		} else {
			defer k.Release()
			defer p.Release()
			made, _ = k.(*array.String)
			folders, _ = p.(*array.String)
		}
	}
	if !c.cfg.PopulateMetaFields {
		keys = made
	}
	for i := range int(batch.NumRows()) {
		if keys != nil {
			if keys.IsNull(i) || keys.Value(i) == "" {
				c.add(Error, KeyMissing, sliceName(v.slice), "", "row without %s", keyColumn)
			} else if err := v.seen.add(keys.Value(i), v.slice.Partition); err != nil {
				return err
			}
		}
		if folders != nil && !v.told && folders.Value(i) != v.slice.Partition {
			v.told = true
			c.add(Error, PartitionValue, sliceName(v.slice), "rows are found by a partition filter only where their folder fits: write them again",
				"the row with the key %q belongs into the partition %q by its values", key(keys, i), folders.Value(i))
		}
	}
	if c.cfg.PopulateMetaFields && !v.told {
		stored, err := text(batch, partitionColumn)
		if err != nil {
			return err
		}
		for i := range stored.Len() {
			if stored.Value(i) != v.slice.Partition {
				v.told = true
				c.add(Error, PartitionValue, sliceName(v.slice), "write the rows again", "%s says %q in a file of the partition %q", partitionColumn, stored.Value(i), v.slice.Partition)
				break
			}
		}
	}
	return nil
}

func key(keys *array.String, i int) string {
	if keys == nil {
		return ""
	}
	return keys.Value(i)
}

func text(batch arrow.RecordBatch, name string) (*array.String, error) {
	at := batch.Schema().FieldIndices(name)
	if len(at) == 1 {
		if col, ok := batch.Column(at[0]).(*array.String); ok {
			return col, nil
		}
	}
	return nil, fmt.Errorf("no column %s of text", name)
}

// bloom asks the filter of a base file for every key of the file, and holds the key range against them.
func (c *checker) bloom(ctx context.Context, name string) error {
	f, err := basefile.Open(ctx, c.store, name, basefile.Options{Alloc: c.o.Alloc, Formats: formats()})
	if err != nil {
		if errors.Is(err, basefile.ErrDamaged) {
			return nil // it was told before
		}
		return err
	}
	defer func() { _ = f.Close() }()
	footer := f.KeyValue()
	filter, ok, err := bloom.FromFooter(footer)
	const rewrite = "the index does not find the rows of this file and inserts them again: rewrite the file (any update of its file group does)"
	if err != nil {
		c.add(Error, BloomUnreadable, name, rewrite, "%v", err)
		return nil
	}
	least, hasLeast := footer[minKey]
	most, hasMost := footer[maxKey]
	if !ok && !hasLeast || !c.cfg.PopulateMetaFields {
		return nil
	}
	keyRange := keyRange{}
	wanted := arrow.NewSchema([]arrow.Field{{Name: keyColumn, Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	for batch, err := range f.Scan(ctx, basefile.ScanOptions{Columns: wanted}) {
		if err != nil {
			return c.rowsFailed(ctx, name, err)
		}
		keys, err := text(batch, keyColumn)
		if err != nil {
			batch.Release()
			return c.rowsFailed(ctx, name, err)
		}
		var found []int32
		if ok {
			found = filter.TestAll(keys, nil)
		}
		for i, at := 0, 0; i < keys.Len(); i++ {
			if ok && at < len(found) && int(found[at]) == i {
				at++
			} else if ok && !keys.IsNull(i) {
				c.add(Error, BloomMissesKey, name, rewrite, "the bloom filter does not know the key %q", keys.Value(i))
			}
			keyRange.add(keys.Value(i))
		}
		batch.Release()
	}
	if first, last, ok := keyRange.within(least, most); hasLeast && hasMost && !ok {
		c.add(Error, KeyRange, name, rewrite, "the footer says keys from %q to %q, there are keys from %q to %q", least, most, first, last)
	}
	return nil
}

// keyRange is the least and the greatest key of a file, in the two orders that footers have: Java strings compare by UTF-16 units
// in the Avro writer, by bytes in the row writer.
type keyRange struct {
	any         bool
	first, last [2]string
}

var keyOrders = [2]func(a, b string) int{basefile.CompareKeys, strings.Compare}

func (r *keyRange) add(key string) {
	for i, compare := range keyOrders {
		if !r.any || compare(key, r.first[i]) < 0 {
			r.first[i] = strings.Clone(key)
		}
		if !r.any || compare(key, r.last[i]) > 0 {
			r.last[i] = strings.Clone(key)
		}
	}
	r.any = true
}

// within reports whether a footer's range holds all keys in one of the orders, and gives the range of the keys.
func (r *keyRange) within(least, most string) (first, last string, ok bool) {
	for i, compare := range keyOrders {
		if !r.any || compare(least, r.first[i]) <= 0 && compare(r.last[i], most) <= 0 {
			return "", "", true
		}
	}
	return r.first[0], r.last[0], false
}

// eachKey visits the keys of a batch: the stored ones, or those that the generator makes where a table stores none.
func (c *checker) eachKey(batch arrow.RecordBatch, generator *keygen.Keygen, visit func(key string)) error {
	var keys *array.String
	var err error
	if c.cfg.PopulateMetaFields {
		keys, err = text(batch, keyColumn)
	} else {
		var made, folders arrow.Array
		if made, folders, err = generator.KeysWith(c.o.Alloc, batch); err == nil {
			defer made.Release()
			defer folders.Release()
			keys, _ = made.(*array.String)
		}
	}
	if err != nil || keys == nil {
		return err
	}
	for i := range keys.Len() {
		if !keys.IsNull(i) {
			visit(keys.Value(i))
		}
	}
	return nil
}

// duplicates tells which keys occur twice: it asks the set of all hashes, and reads the keys again to name some.
func (c *checker) duplicates(ctx context.Context, reader *read.Reader, generator *keygen.Keygen, seen *keySet) error {
	twice, across, err := seen.repeated(1000)
	if err != nil {
		return err
	}
	if across > 0 {
		c.add(Info, KeyInPartitions, "", "", "%d keys occur in more than one partition: right for every index that is not global", across)
	}
	if len(twice.hashes) == 0 {
		return nil
	}
	type place struct{ partition, key string }
	where := map[place][]string{}
	for _, slice := range reader.Slices() {
		for batch, err := range reader.Scan(ctx, slice) {
			if err != nil {
				return c.rowsFailed(ctx, sliceName(slice), err)
			}
			err = c.eachKey(batch, generator, func(k string) {
				if twice.hashes[hashOf(k, slice.Partition)] {
					p := place{slice.Partition, strings.Clone(k)}
					where[p] = append(where[p], sliceName(slice))
				}
			})
			batch.Release()
			if err != nil {
				return c.rowsFailed(ctx, sliceName(slice), err)
			}
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(where), func(a, b place) int {
		return strings.Compare(a.partition+"\x00"+a.key, b.partition+"\x00"+b.key)
	}) {
		if files := where[p]; len(files) > 1 {
			c.add(Warning, KeyDuplicate, files[0], "right for tables that take plain inserts; otherwise delete the key and write it once",
				"the key %q occurs %d times in partition %q, in %s", p.key, len(files), p.partition, strings.Join(slices.Compact(slices.Sorted(slices.Values(files))), ", "))
		}
	}
	if twice.more > 0 {
		c.add(Warning, KeyDuplicate, "", "", "%d further keys occur more than once", twice.more)
	}
	return nil
}
