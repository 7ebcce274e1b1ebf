package merge

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/internal/gather"
)

// Meeting says that row New of a batch of incoming rows has the key of row Old of a batch of stored rows.
type Meeting struct{ Old, New int32 }

// What Meet says of a meeting, where it does not make a new row.
const (
	KeepOld int32 = -1 // the stored row stays as it is
	TakeNew int32 = -2 // the incoming row, as it came, takes its place
	Remove  int32 = -3 // the stored row goes
)

// Meet decides between stored and incoming records whose places are known, as a copy-on-write update does: by the rule of the
// phase Base. outcome has one entry for each meeting: KeepOld, TakeNew, Remove, or the number of a row of fresh, which was put
// together from both. fresh is nil where there is none; the caller releases it. Both batches have the rule's schema.
func (r *Rule) Meet(mem memory.Allocator, stored, incoming arrow.RecordBatch, met []Meeting) (outcome []int32, fresh arrow.RecordBatch, err error) {
	if mem == nil {
		mem = memory.DefaultAllocator
	}
	for _, b := range []arrow.RecordBatch{stored, incoming} {
		if err := r.layout.check(b.Schema()); err != nil {
			return nil, nil, err
		}
	}
	st := newState(r, mem, Base)
	defer st.release()
	base, in := st.l.keyless(stored), st.l.keyless(incoming)
	defer base.release()
	at := st.attach(in)
	st.setBase(base)
	defer st.setBase(nil)
	a := &assembly{}
	outcome = make([]int32, len(met))
	rows := int32(0)
	for i, m := range met {
		outcome[i] = st.decide(a, at, base, in, m)
		if outcome[i] == composed {
			outcome[i] = rows
			rows++
		}
	}
	if rows == 0 {
		return outcome, nil, nil
	}
	plain := st.plainText()
	defer plain()
	fresh, err = st.buildOne(a)
	return outcome, fresh, err
}

// composed: the row was put together and appended to the assembly.
const composed int32 = -4

func (st *state) decide(a *assembly, at int32, base, in *chunk, m Meeting) int32 {
	old, fresh := base.side(int(m.Old)), in.side(int(m.New))
	old.base, old.dead = true, false // a stored record is a record, whatever its flag column says (trap 23)
	v := st.r.engine.base(&st.merger, &old, &fresh)
	switch {
	case v == keepOld:
		return KeepOld
	case v != blendNew && v != blendOld && fresh.dead:
		return Remove
	case v != blendNew && v != blendOld:
		return TakeNew
	}
	oldAt := func(int) source { return source{0, m.Old} }
	newAt := func(int) source { return source{at, m.New} }
	if v == blendNew {
		st.blend(&fresh, &fresh, &old, st.scratch, newAt, oldAt)
	} else {
		st.blend(&fresh, &old, &fresh, st.scratch, oldAt, newAt)
	}
	a.composed(st.scratch)
	return composed
}

// Gone says which rows of a batch leave no record where nothing is stored under their key: those that are deletes. Nil: none.
func (r *Rule) Gone(batch arrow.RecordBatch) ([]bool, error) {
	gone, err := r.Deletes(batch)
	if err != nil || r.layout.insertMark < 0 {
		return gone, err
	}
	scanText(batch.Column(r.layout.insertMark), int(batch.NumRows()), func(row int, s string) {
		if s != r.layout.markText {
			return
		}
		if gone == nil {
			gone = make([]bool, batch.NumRows())
		}
		gone[row] = true
	})
	return gone, nil
}

// Blind reports that the outcome of a meeting does not depend on the stored record: an incoming row takes its place, or removes
// it when it is a delete. Then stored rows need not be read.
func (r *Rule) Blind() bool {
	switch e := r.engine.(type) {
	case *payloadEngine:
		return e.class == classLatest || e.class == classAvro || e.class == classEmpty || e.class == classDms
	case *modeEngine:
		return !e.event && !e.fill
	}
	return false
}

// plainText puts plain columns in the place of run-end encoded ones among the sources; the function takes them back.
func (st *state) plainText() func() {
	var made []arrow.Array
	for _, srcs := range st.srcs {
		for k, a := range srcs {
			if r, ok := a.(*array.RunEndEncoded); ok {
				srcs[k] = gather.Plain(st.mem, r)
				made = append(made, srcs[k])
			}
		}
	}
	return func() {
		for _, a := range made {
			a.Release()
		}
	}
}
