package basefile

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/sluicelake/sluice/hudi/schema"
)

// Stamp is what the meta columns say of the rows of one file. The zero Stamp makes all of them null, the record key among them, as in
// tables without meta fields.
type Stamp struct {
	CommitTime, Partition, FileName string
	// SeqnoPrefix with the decimal number of the row in the file is its _hoodie_commit_seqno.
	SeqnoPrefix string
}

// stamped makes the meta columns of rows that come without them.
type stamped struct {
	places []int         // see rowSet
	seen   *arrow.Schema // of batches, that was looked at last
	made   []arrow.Array // of any number of rows, but for the numbered column
	number int           // the numbered column, -1: none
	prefix string
	texts  numberedTexts
}

// manyRows is the length of a constant column that serves every set of rows.
const manyRows = 1 << 40

func newStamped(mem memory.Allocator, columns *arrow.Schema, s Stamp) *stamped {
	st := &stamped{made: make([]arrow.Array, columns.NumFields()), number: -1, prefix: s.SeqnoPrefix}
	for i, f := range columns.Fields() {
		switch {
		case !schema.IsMeta(f.Name):
		case s == Stamp{}:
			st.made[i] = oneText(mem, nil, manyRows)
		case f.Name == schema.CommitTime:
			st.made[i] = oneText(mem, &s.CommitTime, manyRows)
		case f.Name == schema.PartitionPath:
			st.made[i] = oneText(mem, &s.Partition, manyRows)
		case f.Name == schema.FileName:
			st.made[i] = oneText(mem, &s.FileName, manyRows)
		case f.Name == schema.CommitSeqno:
			st.number = i
		}
	}
	return st
}

// check finds the columns of the file in a batch.
func (s *stamped) check(columns, got *arrow.Schema) error {
	if s.seen == got {
		return nil
	}
	places := make([]int, columns.NumFields())
	for i, want := range columns.Fields() {
		places[i] = -1
		if s.made[i] != nil || i == s.number {
			continue
		}
		at := got.FieldIndices(want.Name)
		if len(at) != 1 {
			return fmt.Errorf("a batch has %d columns %s", len(at), want.Name)
		}
		if f := got.Field(at[0]); !sameShape(f.Type, want.Type) {
			return fmt.Errorf("column %s of the batch is %s, that of the schema %s", f.Name, f.Type, want.Type)
		}
		if s.places != nil && s.places[i] != at[0] {
			return fmt.Errorf("column %s is in place %d of one batch and in %d of another", want.Name, s.places[i], at[0])
		}
		places[i] = at[0]
	}
	s.seen, s.places = got, places
	return nil
}

// columns makes those of n rows, the first of which has the number first; call done afterwards.
func (s *stamped) columns(first int64, n int) ([]arrow.Array, error) {
	if s.number < 0 {
		return s.made, nil
	}
	var err error
	s.made[s.number], err = s.texts.make(s.prefix, first, n)
	return s.made, err
}

func (s *stamped) done() {
	if s.number >= 0 && s.made[s.number] != nil {
		s.made[s.number].Release()
		s.made[s.number] = nil
	}
}

// release may be called again.
func (s *stamped) release() {
	for i, a := range s.made {
		if a != nil {
			a.Release()
			s.made[i] = nil
		}
	}
}

// oneText is a text column of n rows with one value, or of nulls.
func oneText(mem memory.Allocator, text *string, n int) arrow.Array {
	value := array.NewStringBuilder(mem)
	defer value.Release()
	ends := array.NewInt64Builder(mem)
	defer ends.Release()
	if n > 0 {
		ends.Append(int64(n))
		if text == nil {
			value.AppendNull()
		} else {
			value.Append(*text)
		}
	}
	v, e := value.NewArray(), ends.NewArray()
	defer v.Release()
	defer e.Release()
	return array.NewRunEndEncodedArray(e, v, n, 0)
}
