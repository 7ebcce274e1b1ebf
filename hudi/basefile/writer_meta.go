package basefile

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/sluicelake/sluice/hudi/schema"
)

// Constant is a text column of n rows with one value: a run-end encoded array of one run, which a [Writer] takes in place of n copies
// of the text. It costs nothing for a row.
func Constant(mem memory.Allocator, text string, n int) arrow.Array {
	return oneText(mem, &text, n)
}

// runEncoded is the type that a column of a batch may have in place of text.
func runEncoded(t arrow.DataType) bool {
	r, ok := t.(*arrow.RunEndEncodedType)
	return ok && r.Encoded().ID() == arrow.STRING
}

// Meta is what the meta columns say of the rows of one batch.
type Meta struct {
	// CommitTime, Partition and FileName are those of every row.
	CommitTime, Partition, FileName string
	// SeqnoPrefix with the decimal number FirstSeqno is the _hoodie_commit_seqno of the first row; the number counts on. Apache Hudi
	// numbers the rows of a task as "<instant>_<task>_<n>".
	SeqnoPrefix string
	FirstSeqno  int64
	// Keys are the record keys, one for each row.
	Keys *array.String
	// Operation is that of every row, as "I"; empty leaves the column _hoodie_operation out.
	Operation string
}

// WithMeta puts the meta columns in front of a batch of a user's columns, in the form in which a [Writer] takes them at the least cost.
// The caller keeps the batch and the keys, and releases the result.
func WithMeta(mem memory.Allocator, batch arrow.RecordBatch, m Meta) (arrow.RecordBatch, error) {
	n := int(batch.NumRows())
	if m.Keys == nil || m.Keys.Len() != n {
		return nil, errors.New("a batch needs one record key for each of its rows")
	}
	seqno, err := new(numberedTexts).make(m.SeqnoPrefix, m.FirstSeqno, n)
	if err != nil {
		return nil, err
	}
	m.Keys.Retain()
	columns := []arrow.Array{Constant(mem, m.CommitTime, n), seqno, m.Keys, Constant(mem, m.Partition, n), Constant(mem, m.FileName, n)}
	names := schema.MetaColumns[:]
	if m.Operation != "" {
		columns, names = append(columns, Constant(mem, m.Operation, n)), append(names[:len(names):len(names)], schema.Operation)
	}
	defer func() {
		for _, c := range columns[:len(names)] {
			c.Release()
		}
	}()
	fields := make([]arrow.Field, 0, len(names)+len(batch.Columns()))
	for i, name := range names {
		fields = append(fields, arrow.Field{Name: name, Type: columns[i].DataType(), Nullable: true})
	}
	fields = append(fields, batch.Schema().Fields()...)
	columns = append(columns, batch.Columns()...)
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, int64(n)), nil
}

// numberedTexts are texts of a prefix and a number that counts on.
type numberedTexts struct {
	offsets []int32
	data    []byte
}

// make makes n of them from first on, in the memory of the last ones if that has room.
func (t *numberedTexts) make(prefix string, first int64, n int) (arrow.Array, error) {
	if first < 0 || first > math.MaxInt64-int64(n) {
		return nil, fmt.Errorf("rows can't be numbered from %d on", first)
	}
	text := strconv.AppendInt([]byte(prefix), first, 10)
	most := len(prefix) + len(strconv.FormatInt(first+int64(n), 10))
	if int64(most)*int64(n) > math.MaxInt32 {
		return nil, fmt.Errorf("%d rows are too many for one batch", n)
	}
	t.offsets, t.data = grown(t.offsets[:0], n+1), grown(t.data[:0], n*most)
	at := 0
	t.offsets[0] = 0
	for i := range n {
		at += copy(t.data[at:], text)
		t.offsets[i+1] = int32(at)
		text = increment(text, len(prefix))
	}
	data := array.NewData(arrow.BinaryTypes.String, n, []*memory.Buffer{nil, memory.NewBufferBytes(arrow.GetBytes(t.offsets)), memory.NewBufferBytes(t.data[:at])}, nil, 0, 0)
	defer data.Release()
	return array.NewStringData(data), nil
}

// increment adds one to the decimal number from byte start on.
func increment(text []byte, start int) []byte {
	for i := len(text) - 1; i >= start; i-- {
		if text[i] < '9' {
			text[i]++
			return text
		}
		text[i] = '0'
	}
	text = append(text, '0')
	text[start] = '1'
	return text
}
