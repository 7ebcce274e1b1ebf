package operation

import (
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/schema"
)

// stamp is what all rows of one file get: a zero stamp leaves the meta columns null but the key.
type stamp struct {
	instant   string
	partition string
	file      string // _hoodie_file_name
	task      int64  // number of the file in this write
	next      int64  // number of the next row in it
}

// widen gives rows in the form of files: the five meta columns in front.
func (j *job) widen(slim arrow.RecordBatch, s stamp) (arrow.RecordBatch, error) {
	w := widener{j: j, stamp: s}
	defer w.close()
	return w.rows(slim), nil
}

// widener puts meta columns on the rows of one file. Columns of one value are made once.
type widener struct {
	j *job
	stamp
	same map[string]arrow.Array
}

func (j *job) newWidener(partition, file string) *widener {
	return &widener{j: j, stamp: stamp{instant: j.txn.Instant(), partition: partition, file: file, task: j.stats.task()}}
}

func (w *widener) close() {
	for _, a := range w.same {
		a.Release()
	}
	w.same = nil
}

// constantRows is how long a column of one value is made at first.
const constantRows = 8 << 10

// constant is a column of one text, nulls for the empty one.
func (w *widener) constant(text string, n int) arrow.Array {
	a := w.same[text]
	if a == nil || a.Len() < n {
		if a != nil {
			a.Release()
		}
		if w.same == nil {
			w.same = map[string]arrow.Array{}
		}
		if size := max(n, constantRows); text == "" {
			a = array.MakeArrayOfNull(w.j.Alloc, arrow.BinaryTypes.String, size)
		} else {
			a = constants(w.j.Alloc, text, size)
		}
		w.same[text] = a
	}
	return array.NewSlice(a, 0, int64(n))
}

// rows takes slim rows; further columns after the slim ones are left away. The caller releases the result.
func (w *widener) rows(slim arrow.RecordBatch) arrow.RecordBatch {
	n := int(slim.NumRows())
	columns := make([]arrow.Array, 0, w.j.full.NumFields())
	var own []arrow.Array
	add := func(a arrow.Array) {
		own = append(own, a)
		columns = append(columns, a)
	}
	switch {
	case w.j.cfg.PopulateMetaFields && w.instant != "":
		add(w.constant(w.instant, n))
		add(w.numbers(n))
		columns = append(columns, slim.Column(slimKey))
		if w.partition == "" { // a table without partitions stores the empty text
			add(constants(w.j.Alloc, "", n))
		} else {
			add(w.constant(w.partition, n))
		}
		add(w.constant(w.file, n))
	case w.instant == "":
		add(w.constant("", n))
		add(w.constant("", n))
		columns = append(columns, slim.Column(slimKey))
		add(w.constant("", n))
		add(w.constant("", n))
	default:
		for range schema.MetaColumns {
			add(w.constant("", n))
		}
	}
	data := w.j.full.NumFields() - len(schema.MetaColumns)
	columns = append(columns, slim.Columns()[slimData:slimData+data]...)
	out := array.NewRecordBatch(w.j.full, columns, int64(n))
	for _, a := range own {
		a.Release()
	}
	return out
}

// numbers are the sequence numbers of the next rows: <instant>_<task>_<n>.
func (w *widener) numbers(n int) arrow.Array {
	head := strconv.AppendInt([]byte(w.instant+"_"), w.task, 10)
	head = append(head, '_')
	offsets := memory.NewResizableBuffer(w.j.Alloc)
	offsets.Resize((n + 1) * 4)
	at := arrow.Int32Traits.CastFromBytes(offsets.Bytes())
	buf := make([]byte, 0, n*(len(head)+8))
	at[0] = 0
	for i := range n {
		buf = append(buf, head...)
		buf = strconv.AppendInt(buf, w.next+int64(i), 10)
		at[i+1] = int32(len(buf))
	}
	w.next += int64(n)
	data := memory.NewBufferBytes(buf)
	d := array.NewData(arrow.BinaryTypes.String, n, []*memory.Buffer{nil, offsets, data}, nil, 0, 0)
	offsets.Release()
	data.Release()
	out := array.NewStringData(d)
	d.Release()
	return out
}
