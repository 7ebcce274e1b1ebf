package basefile

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/parquet/metadata"
	pq "github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/sluicelake/sluice/hudi/schema"
)

// fileEnd gathers what the end of a file tells of its row groups: those that were encoded, and copied ones between them. All offsets
// are final when they come in.
type fileEnd struct {
	schema *pq.Schema
	own    *metadata.FileMetaDataBuilder
	pages  [][]pageIndex // of each chunk of the row groups of our own
	parts  []copiedGroup
}

// endGroup writes the open row group, if there is one.
func (w *Writer) endGroup() (err error) {
	if w.groupRows == 0 {
		return nil
	}
	defer recovered(&err)
	group := w.end.own.AppendRowGroup()
	group.SetNumRows(int(w.groupRows))
	pages := make([]pageIndex, len(w.columns.leaves))
	for i, l := range w.columns.leaves {
		if pages[i], err = w.columns.encoder(l).end(w.sink, w.end.schema.Column(i), group.NextColumnChunk()); err != nil {
			return err
		}
	}
	w.columns.newChunk()
	w.end.pages = append(w.end.pages, pages)
	w.groupRows, w.groupBytes = 0, 0
	return group.Finish(0, 0) // counts itself; ordinals come with the footer
}

// writeEnd writes the page indexes and the footer, with row groups in the order in which they lie.
func (w *Writer) writeEnd() (err error) {
	defer recovered(&err)
	for _, kv := range w.keys.footer(w.columns.text) {
		if err := w.end.own.AppendKeyValueMetadata(kv[0], kv[1]); err != nil {
			return err
		}
	}
	md, err := w.end.own.Finish()
	if err != nil {
		return err
	}
	groups, all := md.RowGroups[:0:0], make([][]pageIndex, 0, len(md.RowGroups)+len(w.end.parts))
	parts := w.end.parts
	for g := 0; g <= len(md.RowGroups); g++ {
		for len(parts) > 0 && parts[0].after == g {
			groups, all = append(groups, parts[0].md.RowGroups[0]), append(all, parts[0].indexes)
			parts = parts[1:]
		}
		if g < len(md.RowGroups) {
			groups, all = append(groups, md.RowGroups[g]), append(all, w.end.pages[g])
		}
	}
	md.RowGroups, md.NumRows = groups, w.rows
	for g, rg := range groups {
		ordinal := int16(g)
		rg.Ordinal = &ordinal
	}
	if err := w.writeIndexes(md, all); err != nil {
		return err
	}
	n, err := md.WriteTo(w.sink, nil)
	if err != nil {
		return err
	}
	tail := binary.LittleEndian.AppendUint32(nil, uint32(n))
	_, err = w.sink.Write(append(tail, magic...))
	return err
}

// writeIndexes writes all column indexes and then all offset indexes, and notes where they are.
func (w *Writer) writeIndexes(md *metadata.FileMetaData, all [][]pageIndex) error {
	place := func(data []byte, at **int64, size **int32) error {
		*at, *size = nil, nil
		if data == nil {
			return nil
		}
		start, n := w.sink.at, int32(len(data))
		*at, *size = &start, &n
		_, err := w.sink.Write(data)
		return err
	}
	for g, rg := range md.RowGroups {
		for i, c := range rg.Columns {
			if err := place(all[g][i].column, &c.ColumnIndexOffset, &c.ColumnIndexLength); err != nil {
				return err
			}
		}
	}
	for g, rg := range md.RowGroups {
		for i, c := range rg.Columns {
			if err := place(all[g][i].offset, &c.OffsetIndexOffset, &c.OffsetIndexLength); err != nil {
				return err
			}
		}
	}
	return nil
}

// dictionary: the values of the key and of the number of a record differ always.
func (o *WriterOptions) dictionary(column string) bool {
	return !o.PlainOnly && column != schema.CommitSeqno && column != schema.RecordKey
}
