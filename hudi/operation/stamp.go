package operation

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/sluicelake/sluice/hudi/basefile"
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
	return w.rows(slim)
}

// widener puts meta columns on the rows of one file.
type widener struct {
	j *job
	stamp
}

// newStamp is what all rows of a new file get.
func (j *job) newStamp(partition, file string) *basefile.Stamp {
	if !j.cfg.PopulateMetaFields {
		return &basefile.Stamp{}
	}
	instant := j.txn.Instant()
	return &basefile.Stamp{CommitTime: instant, Partition: partition, FileName: file, SeqnoPrefix: fmt.Sprintf("%s_%d_", instant, j.stats.task())}
}

func (j *job) newWidener(partition, file string) *widener {
	return &widener{j: j, stamp: stamp{instant: j.txn.Instant(), partition: partition, file: file, task: j.stats.task()}}
}

// rows takes slim rows; further columns after the slim ones are left away. The caller releases the result.
func (w *widener) rows(slim arrow.RecordBatch) (arrow.RecordBatch, error) {
	n := int(slim.NumRows())
	metas := len(schema.MetaColumns)
	fields := w.j.full.Fields()[metas:]
	data := slim.Columns()[slimData : slimData+len(fields)]
	if w.j.cfg.PopulateMetaFields && w.instant != "" {
		rows := array.NewRecordBatch(arrow.NewSchema(fields, nil), data, int64(n))
		defer rows.Release()
		first := w.next
		w.next += int64(n)
		return basefile.WithMeta(w.j.Alloc, rows, basefile.Meta{
			CommitTime: w.instant, Partition: w.partition, FileName: w.file, SeqnoPrefix: fmt.Sprintf("%s_%d_", w.instant, w.task), FirstSeqno: first,
			Keys: slim.Column(slimKey).(*array.String),
		})
	}
	none := array.MakeArrayOfNull(w.j.Alloc, arrow.BinaryTypes.String, n)
	defer none.Release()
	columns := make([]arrow.Array, 0, metas+len(data))
	for range metas {
		columns = append(columns, none)
	}
	if w.instant == "" {
		columns[2] = slim.Column(slimKey)
	}
	return array.NewRecordBatch(w.j.full, append(columns, data...), int64(n)), nil
}
