package merge

import (
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Version is one version of one record, for merging row by row where a whole Log is too much.
type Version struct {
	// Row is a batch of exactly one row with the rule's schema. Nil for an entry of a DELETE block.
	Row arrow.RecordBatch
	// Ordering is the value of an entry of a DELETE block.
	Ordering Value
	// Columns are the columns that Row has, when it is a partial update; nil: all.
	Columns []string
	// Deleted: the version is a delete. Set in results; ignored in what is passed to Combine.
	Deleted bool

	alone bool   // the stored record is hidden
	order *Value // ordering value in place of the row's columns'
	set   []bool
}

// Release gives the row back. Nil is fine.
func (v *Version) Release() {
	if v != nil && v.Row != nil {
		v.Row.Release()
	}
}

// Combine decides between an older and a newer version of one record in a phase. Older may be nil: there is none. In the
// phase Base, older is the stored record. Nil means that no record is left; in the other phases a delete is a Version that
// still has to meet what is older. The result holds its own reference to its row.
func (r *Rule) Combine(phase Phase, mem memory.Allocator, older, newer *Version) (*Version, error) {
	if newer == nil {
		return nil, errors.New("merge: no newer version")
	}
	st := newState(r, mem, phase)
	defer st.release()
	fresh, err := st.version(newer)
	if err != nil {
		return nil, err
	}
	if older != nil && phase != Base {
		old, err := st.version(older)
		if err != nil {
			fresh.release()
			return nil, err
		}
		if err := st.add(old); err != nil {
			fresh.release()
			return nil, err
		}
	}
	if err := st.add(fresh); err != nil {
		return nil, err
	}
	if phase == Base && older != nil {
		return st.overVersion(older)
	}
	if s := st.entrySide(0); phase == Base && (s.dead || st.goneOnInsert(&s)) {
		return nil, nil
	}
	return st.result(0)
}

var oneKey = []byte("k")

func (st *state) version(v *Version) (*chunk, error) {
	b := array.NewBinaryBuilder(st.mem, arrow.BinaryTypes.Binary)
	defer b.Release()
	b.Append(oneKey)
	keys := b.NewArray()
	defer keys.Release()
	c := &chunk{l: st.l, n: 1, own: keys, ord: make([]ordColumn, len(st.l.ordering)), ords: []Value{st.l.normalise(v.Ordering)}}
	if v.Row != nil {
		var err error
		if c, err = st.l.newChunk(v.Row, keys); err != nil {
			return nil, err
		}
		if v.set == nil && v.Columns != nil {
			l := Log{r: st.r, registry: st.registry}
			if c.set, err = l.presentSet(v.Columns); err != nil {
				c.release()
				return nil, err
			}
		} else if v.set != nil {
			c.set = st.setID(v.set)
		}
		if v.order != nil {
			c.has, c.ords = []bool{true}, []Value{*v.order}
		}
	} else {
		keys.Retain()
		c.keys, _ = textOf(keys) // binary, made above
	}
	c.marks = []uint8{0}
	if v.Row == nil {
		c.marks[0] |= rowBlock
	}
	if v.alone {
		c.marks[0] |= rowAlone
	}
	return c, nil
}

func (st *state) overVersion(base *Version) (*Version, error) {
	c, err := st.version(&Version{Row: base.Row})
	if err != nil {
		return nil, err
	}
	defer c.release()
	st.setBase(c)
	defer st.setBase(nil)
	a := &assembly{}
	if !st.mergeBase(c, []meeting{{0, 0}}, a) {
		base.Row.Retain()
		return &Version{Row: base.Row}, nil
	}
	if len(a.runs) == 0 {
		return nil, nil
	}
	row, err := st.buildOne(a)
	if err != nil {
		return nil, err
	}
	return &Version{Row: row}, nil
}

// result is what an entry holds, as a version.
func (st *state) result(i int32) (*Version, error) {
	e := &st.entries[i]
	s := st.entrySide(i)
	v := &Version{Deleted: e.dead, alone: e.alone, set: st.sets[e.set]}
	if e.bare {
		v.Ordering = s.order()
		return v, nil
	}
	if s.over != nil || st.reordered(e) {
		o := s.order()
		v.order = &o
	}
	a := &assembly{}
	st.emitEntry(a, e)
	var err error
	v.Row, err = st.buildOne(a)
	return v, err
}
