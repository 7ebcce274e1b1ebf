package operation

import (
	"context"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/index"
	"github.com/sluicelake/sluice/internal/shuffle"
)

// meeters are the rows of an insert that go into one small file, parted into those whose key is there, which take the place of
// what is stored, and the others (hoodie.merge.allow.duplicate.on.inserts=false).
type meeters struct{ sub *routed }

const (
	homeOfStrangers int32 = 0
)

func (r *routed) meeters(ctx context.Context, t task) (*meeters, error) {
	j, own := *r.j, *r.j.settings // a lookup of its own, in one file, with settings of its own: other tasks look at the job's
	j.settings = &own
	j.kind, j.duplicates = Upsert, dupNone
	j.index.Kind = index.Simple
	sub := &routed{j: &j, gone: map[int32][]int64{}, homeOf: map[home]int32{}, updates: shuffle.New(r.updates.Schema(), r.options(true)), inserts: shuffle.New(r.inserts.Schema(), r.options(false))}
	m := &meeters{sub}
	sub.home(home{partition: r.homes[t.home].partition, slot: -1})
	for batch, err := range r.inserts.Read(ctx, t.home, t.from, t.n) {
		if err != nil {
			m.close()
			return nil, err
		}
		sub.window = append(sub.window, batch)
		sub.windowRows += batch.NumRows()
	}
	err := sub.lookupIn(ctx, []int32{t.slot}, []filegroup.Slice{j.slots[t.slot].Slice})
	if err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

func (m *meeters) close() { m.sub.close() }

func (m *meeters) updates(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
	targets := m.sub.updates.Targets()
	if len(targets) == 0 {
		return func(func(arrow.RecordBatch, error) bool) {}
	}
	return m.sub.updates.Read(ctx, targets[0], 0, -1)
}

func (m *meeters) strangers(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
	return m.sub.inserts.Read(ctx, homeOfStrangers, 0, -1)
}
