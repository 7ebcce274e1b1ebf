package basefile

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/sluicelake/sluice/hudi/bloom"
	"github.com/sluicelake/sluice/hudi/schema"
)

// Footer keys of a base file (table format 5.2); those of the filter are in package bloom.
const (
	FooterAvro   = "parquet.avro.schema"
	FooterModel  = "writer.model.name"
	FooterMinKey = "hoodie_min_record_key"
	FooterMaxKey = "hoodie_max_record_key"
)

// CompareKeys orders record keys as Java orders strings, by UTF-16 units: the order of the key range in a footer. It differs
// from the order of bytes for characters beyond U+FFFF, which come before those from U+E000 on.
func CompareKeys(a, b string) int {
	n, i := min(len(a), len(b)), 0
	for i+8 <= n && a[i:i+8] == b[i:i+8] {
		i += 8
	}
	for ; i < n; i++ {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		// Two different bytes from 0xee on are first bytes of characters; 0xee and 0xef begin those from U+E000 to U+FFFF.
		if x >= 0xee && y >= 0xee && (x >= 0xf0) != (y >= 0xf0) {
			x, y = y, x
		}
		if x < y {
			return -1
		}
		return 1
	}
	return len(a) - len(b)
}

// keyNotes is what the footer tells of the record keys.
type keyNotes struct {
	column   int
	filter   *bloom.Filter // nil: keys are not looked at
	any      bool
	min, max string

	options *BloomOptions
	// inherited: the filter is that of an old file whose keys stay as they are. Rows that are written have their keys in it.
	inherited bool
}

func (k *keyNotes) init(columns *arrow.Schema, o *BloomOptions) error {
	if o == nil {
		return nil
	}
	at := columns.FieldIndices(schema.RecordKey)
	if len(at) != 1 || columns.Field(at[0]).Type.ID() != arrow.STRING {
		return fmt.Errorf("a bloom filter needs the text column %s", schema.RecordKey)
	}
	k.column, k.options = at[0], o
	return k.restart()
}

// restart forgets all keys.
func (k *keyNotes) restart() (err error) {
	k.any, k.min, k.max, k.inherited = false, "", "", false
	k.filter, err = bloom.New(k.options.Kind, k.options.Entries, k.options.FPP, k.options.Limit)
	return err
}

// inherit takes the filter and the key range of a file, if the same keys would give the same.
func (k *keyNotes) inherit(old File) {
	if k.filter == nil || old.Rows() == 0 {
		return
	}
	footer := old.KeyValue()
	low, ok := footer[FooterMinKey]
	high, too := footer[FooterMaxKey]
	filter, there, err := bloom.FromFooter(footer)
	if !ok || !too || !there || err != nil || CompareKeys(low, high) > 0 || !k.filter.Continue(filter, old.Rows()) {
		return
	}
	k.any, k.min, k.max, k.inherited = true, low, high, true
}

// add notes the keys of runs of rows; first is the number of the first row in the file.
func (k *keyNotes) add(set *rowSet, first int64) error {
	if k.filter == nil || k.inherited {
		return nil
	}
	for i := range set.runs {
		r := &set.runs[i]
		keys, ok := set.batches[r.batch].Column(set.place(k.column)).(*array.String)
		if !ok {
			return fmt.Errorf("%s is not text", schema.RecordKey)
		}
		if err := k.addRun(keys, r, first); err != nil {
			return err
		}
		first += r.rows
	}
	return nil
}

// addOld notes the keys of an old file, before its row end; first is the number that its first one gets.
func (k *keyNotes) addOld(ctx context.Context, old File, o ScanOptions, first, end int64) error {
	o.Columns = arrow.NewSchema([]arrow.Field{{Name: schema.RecordKey, Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	for batch, err := range old.ScanRows(ctx, o) {
		if err != nil {
			return err
		}
		n := min(batch.NumRows(), end-batch.FirstRow)
		if n > 0 {
			err = k.addRun(batch.Column(0).(*array.String), &rowRun{rows: n}, first)
		}
		batch.Release()
		if err != nil || n < 0 || batch.FirstRow+n == end {
			return err
		}
		first += n
	}
	return nil
}

func (k *keyNotes) addRun(keys *array.String, r *rowRun, first int64) (err error) {
	if r.rows == 0 {
		return nil
	}
	if r.pick != nil {
		err = k.filter.AddPicked(keys, r.pick[r.row:r.row+r.rows])
	} else {
		err = k.filter.AddRows(keys, int(r.row), int(r.row+r.rows))
	}
	if err != nil {
		if errors.Is(err, bloom.ErrEmptyKey) {
			return fmt.Errorf("in the rows from %d on, a record without key (%s is null or empty): %w", first, schema.RecordKey, err)
		}
		return err
	}
	low, high := k.min, k.max
	if !k.any {
		low = keys.Value(r.at(0))
		high = low
	}
	all := newSpan(low, high)
	for i := range int(r.rows) {
		all.add(keys.Value(r.at(i)), true, CompareKeys)
	}
	if !k.any || all.low != k.min {
		k.min = strings.Clone(all.low)
	}
	if !k.any || all.high != k.max {
		k.max = strings.Clone(all.high)
	}
	k.any = true
	return nil
}

// footer are the footer's entries as Apache Hudi 0.15.0 and 1.2.0 write them: a SIMPLE filter is not named, and a file without
// rows has a filter but no range.
func (k *keyNotes) footer(avro string) [][2]string {
	out := [][2]string{{FooterAvro, avro}, {FooterModel, "avro"}}
	if k.filter == nil {
		return out
	}
	out = append(out, [2]string{bloom.FooterFilter, k.filter.Text()})
	if k.filter.Kind() != bloom.Simple {
		out = append(out, [2]string{bloom.FooterKind, k.filter.Kind().String()})
	}
	if k.any {
		out = append(out, [2]string{FooterMinKey, k.min}, [2]string{FooterMaxKey, k.max})
	}
	return out
}
