package operation

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/merge"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/internal/gather"
)

// move looks at rows that are stored in another partition than their own, which only a global index finds. Unless they are to be
// written where they are stored, each meets the stored row: what comes of it is deleted there and inserted in its own partition, or
// stays where it is (tools F.6).
func (r *routed) move(ctx context.Context, batch arrow.RecordBatch, places []int32, h *hits) error {
	if !r.j.index.Kind.Global() || !r.j.move {
		return nil
	}
	parts := partitionsOf(batch)
	at := map[int32]bool{} // rows that are stored in their own partition as well
	var away, stay hits
	for i, row := range h.rows {
		if r.j.slots[h.slots[i]].partition == parts[row] {
			at[row] = true
			stay.add(row, h.slots[i], h.at[i])
		} else {
			away.add(row, h.slots[i], h.at[i])
		}
	}
	if len(away.rows) == 0 {
		return nil
	}
	for _, id := range away.slots {
		if err := r.changeable(id); err != nil {
			return err
		}
	}
	if r.j.base.Blind() {
		if err := r.moveBlindly(batch, places, &away, at); err != nil {
			return err
		}
	} else if err := r.moveMerged(ctx, batch, places, &away, &stay, at); err != nil {
		return err
	}
	*h = stay.sorted()
	return nil
}

func (h *hits) order() []int {
	out := make([]int, len(h.rows))
	for i := range out {
		out[i] = i
	}
	return out
}

// sorted gives the hits by row.
func (h *hits) sorted() hits {
	order := h.order()
	slices.SortStableFunc(order, func(a, b int) int { return int(h.rows[a]) - int(h.rows[b]) })
	var out hits
	for _, i := range order {
		out.add(h.rows[i], h.slots[i], h.at[i])
	}
	return out
}

// moveBlindly: the incoming row wins whatever is stored.
func (r *routed) moveBlindly(batch arrow.RecordBatch, places []int32, away *hits, at map[int32]bool) error {
	dead, err := r.j.within.Gone(batch)
	if err != nil {
		return err
	}
	for i, row := range away.rows {
		r.gone[away.slots[i]] = append(r.gone[away.slots[i]], away.at[i])
		if !at[row] && (dead == nil || !dead[row]) {
			places[row] = fresh
		}
	}
	return nil
}

// moveMerged reads the stored rows, file group by file group, and lets the incoming ones meet them.
func (r *routed) moveMerged(ctx context.Context, batch arrow.RecordBatch, places []int32, away, stay *hits, at map[int32]bool) error {
	bySlot := map[int32][]int{}
	for i, id := range away.slots {
		bySlot[id] = append(bySlot[id], i)
	}
	ids := make([]int32, 0, len(bySlot))
	for id := range bySlot {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	wide, err := r.j.widen(batch, stamp{})
	if err != nil {
		return err
	}
	defer wide.Release()
	for _, id := range ids {
		list := bySlot[id]
		slices.SortFunc(list, func(a, b int) int { return int(away.at[a] - away.at[b]) })
		rows := make([]int64, len(list))
		met := make([]merge.Meeting, len(list))
		for k, i := range list {
			rows[k] = away.at[i]
			met[k] = merge.Meeting{Old: int32(k), New: away.rows[i]}
		}
		stored, err := r.j.storedRows(ctx, id, rows)
		if err != nil {
			return err
		}
		outcome, made, err := r.j.base.Meet(r.j.Alloc, stored, wide, met)
		stored.Release()
		if err != nil {
			return err
		}
		err = r.settle(batch, places, away, stay, at, list, outcome, made)
		if made != nil {
			made.Release()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// settle sends each row where the outcome of its meeting belongs.
func (r *routed) settle(batch arrow.RecordBatch, places []int32, away, stay *hits, at map[int32]bool, list []int, outcome []int32, made arrow.RecordBatch) error {
	var homes []int32
	if made != nil {
		var err error
		if homes, err = r.partitionsOfMade(made, outcome, list, away, batch); err != nil {
			return err
		}
	}
	targets := make([]int32, len(homes))
	for i := range targets {
		targets[i] = -1
	}
	for k, i := range list {
		row, id, place := away.rows[i], away.slots[i], away.at[i]
		switch o := outcome[k]; {
		case o == merge.KeepOld:
		case o == merge.Remove:
			r.gone[id] = append(r.gone[id], place)
		case o == merge.TakeNew:
			r.gone[id] = append(r.gone[id], place)
			if !at[row] {
				places[row] = fresh
			}
		case homes[o] == r.j.slots[id].partition: // what came of it belongs where it is stored
			stay.add(row, id, place)
		default:
			r.gone[id] = append(r.gone[id], place)
			targets[o] = r.home(home{partition: homes[o], slot: -1})
		}
	}
	if made == nil {
		return nil
	}
	slim, err := r.j.narrow(made, homes)
	if err != nil {
		return err
	}
	defer slim.Release()
	return r.insert(slim, targets)
}

// partitionsOfMade gives the partitions of rows that were put together: those that their columns say.
func (r *routed) partitionsOfMade(made arrow.RecordBatch, outcome []int32, list []int, away *hits, batch arrow.RecordBatch) ([]int32, error) {
	j := r.j
	if !j.cfg.DropPartitionColumns {
		fields := made.Schema().Fields()[len(schema.MetaColumns):]
		data := array.NewRecordBatch(arrow.NewSchema(fields, nil), made.Columns()[len(schema.MetaColumns):], made.NumRows())
		defer data.Release()
		keys, parts, err := j.keys.gen.Keys(data)
		if err != nil {
			return nil, err
		}
		defer keys.Release()
		defer parts.Release()
		ids, err := j.paths.numbers(j.Alloc, parts)
		if err != nil {
			return nil, err
		}
		defer ids.Release()
		return slices.Clone(ids.(*array.Int32).Int32Values()), nil
	}
	out := make([]int32, made.NumRows()) // the files don't have the columns: the incoming row's partition counts
	for k, i := range list {
		if o := outcome[k]; o >= 0 {
			out[o] = partitionsOf(batch)[away.rows[i]]
		}
	}
	return out, nil
}

// narrow gives the slim form of rows in the form of files.
func (j *job) narrow(rows arrow.RecordBatch, partitions []int32) (arrow.RecordBatch, error) {
	b := array.NewInt32Builder(j.Alloc)
	defer b.Release()
	b.AppendValues(partitions, nil)
	ids := b.NewArray()
	defer ids.Release()
	key := rows.Column(j.full.FieldIndices(schema.RecordKey)[0])
	return array.NewRecordBatch(j.slim, append([]arrow.Array{ids, key}, rows.Columns()[len(schema.MetaColumns):]...), rows.NumRows()), nil
}

// storedRows reads some rows of a slot, in the form of files. rows ascend.
func (j *job) storedRows(ctx context.Context, id int32, rows []int64) (arrow.RecordBatch, error) {
	f, err := basefile.Open(ctx, j.store, j.slots[id].Base.Name, basefile.Options{Alloc: j.Alloc})
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	var groups []int
	next := 0
	for g, group := range f.RowGroups() {
		if next < len(rows) && rows[next] < group.FirstRow+group.Rows {
			groups = append(groups, g)
			for next < len(rows) && rows[next] < group.FirstRow+group.Rows {
				next++
			}
		}
	}
	var parts []arrow.RecordBatch
	defer func() {
		for _, p := range parts {
			p.Release()
		}
	}()
	next = 0
	for b, err := range f.ScanRows(ctx, basefile.ScanOptions{Columns: j.full, Table: j.stored, SchemaOnRead: true, RowGroups: groups, Alloc: j.Alloc}) {
		if err != nil {
			return nil, err
		}
		var runs []gather.Run
		for next < len(rows) && rows[next] < b.FirstRow+b.NumRows() {
			runs = append(runs, gather.Run{Row: int32(rows[next] - b.FirstRow), N: 1})
			next++
		}
		if len(runs) > 0 {
			part, err := gather.Batch(j.Alloc, j.full, []arrow.RecordBatch{b.RecordBatch}, runs)
			if err != nil {
				b.Release()
				return nil, err
			}
			parts = append(parts, part)
		}
		b.Release()
	}
	if next < len(rows) {
		return nil, fmt.Errorf("%s has no row %d", j.slots[id].Base.Name, rows[next])
	}
	runs := make([]gather.Run, len(parts))
	for i, p := range parts {
		runs[i] = gather.Run{Src: int32(i), N: int32(p.NumRows())}
	}
	return gather.Batch(j.Alloc, j.full, parts, runs)
}
