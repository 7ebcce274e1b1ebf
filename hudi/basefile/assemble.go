package basefile

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// levels are the definition and repetition levels of a leaf's entries in one batch. No definition levels: everything is
// there. No repetition levels: one entry per row.
type levels struct{ defs, reps []int16 }

// assembler builds the array of a column from its leaves.
type assembler struct {
	mem    memory.Allocator
	leaves map[*node]leafBatch
}

type leafBatch struct {
	data arrow.ArrayData
	levels
}

// build gives the array of n with slots places.
func (a *assembler) build(n *node, slots int) (arrow.ArrayData, error) {
	switch n.kind {
	case leafNode:
		data := a.leaves[n].data
		if data.Len() != slots {
			return nil, fmt.Errorf("%w: %d values where the levels of the columns beside it say %d", ErrDamaged, data.Len(), slots)
		}
		data.Retain()
		return data, nil
	case structNode:
		return a.buildStruct(n, slots)
	}
	return a.buildList(n, slots)
}

func (a *assembler) buildStruct(n *node, slots int) (arrow.ArrayData, error) {
	children := make([]arrow.ArrayData, 0, len(n.children))
	defer func() {
		for _, c := range children {
			c.Release()
		}
	}()
	for _, c := range n.children {
		data, err := a.build(c, slots)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		children = append(children, data)
	}
	var valid *memory.Buffer
	nulls := 0
	if n.nullable {
		var err error
		if valid, nulls, err = a.structValidity(n, slots); err != nil {
			return nil, err
		}
	}
	if valid != nil {
		defer valid.Release()
	}
	return array.NewData(n.typ, slots, []*memory.Buffer{valid}, children, nulls, 0), nil
}

func (a *assembler) structValidity(n *node, slots int) (*memory.Buffer, int, error) {
	l := a.leaves[n.firstLeaf()].levels
	buf := memory.NewResizableBuffer(a.mem)
	buf.Resize(int(bitutil.BytesForBits(int64(slots))))
	bits := buf.Bytes()
	clear(bits)
	at, valid := 0, 0
	for i, d := range l.defs {
		if d < n.slotDef || l.reps != nil && l.reps[i] > n.rep {
			continue
		}
		if at == slots {
			buf.Release()
			return nil, 0, fmt.Errorf("%w: levels say more than %d values", ErrDamaged, slots)
		}
		if d >= n.def {
			bits[at>>3] |= 1 << (at & 7)
			valid++
		}
		at++
	}
	if at != slots {
		buf.Release()
		return nil, 0, fmt.Errorf("%w: levels say %d values, not %d", ErrDamaged, at, slots)
	}
	if valid == slots {
		buf.Release()
		return nil, 0, nil
	}
	return buf, slots - valid, nil
}

// buildList makes a list or map: offsets and validity from the levels, and the elements.
func (a *assembler) buildList(n *node, slots int) (arrow.ArrayData, error) {
	l := a.leaves[n.firstLeaf()].levels
	if l.defs == nil || l.reps == nil {
		return nil, fmt.Errorf("%w: list without levels", ErrDamaged)
	}
	valid := memory.NewResizableBuffer(a.mem)
	defer valid.Release()
	valid.Resize(int(bitutil.BytesForBits(int64(slots))))
	bits := valid.Bytes()
	clear(bits)
	offsets := memory.NewResizableBuffer(a.mem)
	defer offsets.Release()
	offsets.Resize((slots + 1) * arrow.Int32SizeBytes)
	offs := arrow.Int32Traits.CastFromBytes(offsets.Bytes())

	elemDef, elemRep := n.def+1, n.rep+1
	at, elements, nulls := 0, 0, 0
	for i, d := range l.defs {
		rep := l.reps[i]
		if rep > elemRep {
			continue // goes on inside an element
		}
		if rep <= n.rep {
			if d < n.slotDef {
				continue // what encloses the list is null or empty here
			}
			if at == slots {
				return nil, fmt.Errorf("%w: levels say more than %d lists", ErrDamaged, slots)
			}
			offs[at] = int32(elements)
			if d >= n.def {
				bits[at>>3] |= 1 << (at & 7)
			} else {
				nulls++
			}
			at++
		} else if at == 0 {
			return nil, fmt.Errorf("%w: an element before its list", ErrDamaged)
		}
		if d >= elemDef {
			elements++
		}
	}
	if at != slots || elements > math.MaxInt32 {
		return nil, fmt.Errorf("%w: levels say %d lists with %d elements, not %d lists", ErrDamaged, at, elements, slots)
	}
	offs[at] = int32(elements)

	item, err := a.items(n, elements)
	if err != nil {
		return nil, err
	}
	defer item.Release()
	buffers := []*memory.Buffer{nil, offsets}
	if nulls > 0 {
		buffers[0] = valid
	}
	return array.NewData(n.typ, slots, buffers, []arrow.ArrayData{item}, nulls, 0), nil
}

func (a *assembler) items(n *node, elements int) (arrow.ArrayData, error) {
	if n.kind == listNode {
		return a.build(n.children[0], elements)
	}
	key, err := a.build(n.children[0], elements)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	defer key.Release()
	if key.NullN() > 0 {
		return nil, fmt.Errorf("%w: a map with a null key", ErrUnsupported)
	}
	value, err := a.build(n.children[1], elements)
	if err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	defer value.Release()
	return array.NewData(n.typ.(*arrow.MapType).Elem(), elements, []*memory.Buffer{nil}, []arrow.ArrayData{key, value}, 0, 0), nil
}
