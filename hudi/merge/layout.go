package merge

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/util"

	"github.com/sluicelake/sluice/hudi/schema"
)

// layout is a rule's view of one schema: where the columns are that decide.
type layout struct {
	schema   *arrow.Schema
	key      int     // _hoodie_record_key, or -1
	ordering [][]int // one path of field positions per ordering field; nil where the schema lacks the field

	flag, operation, mark int // columns, or -1: _hoodie_is_deleted, _hoodie_operation, the custom delete field
	markText              string
	markAnyCase           bool
	allDead               bool // EmptyHoodieRecordPayload: every record is a delete
	insertMark            int  // the custom delete field where it counts for inserts only, or -1
	sequence              int  // _event_seq, _event_lsn, or -1

	// nullIsIntZero: Java puts the Int 0 in place of a null ordering value, which it can compare where the column's values
	// are Ints too. Elsewhere Java fails, and a null orders before everything here.
	nullIsIntZero     bool
	nullBaseIsIntZero bool

	fill  []filler // per column: when a version's value gives way to the other version's
	metas []bool   // per column: one of the five meta columns
	// freshMetas: meta columns come from the newer record, even where the older one is stronger.
	freshMetas bool
	// recheck: a version put together from several may be a delete by its columns.
	recheck bool
}

func (b *binder) layout() (*layout, error) {
	s := b.o.Arrow
	l := &layout{schema: s, nullIsIntZero: b.nullIsIntZero, nullBaseIsIntZero: b.nullBaseIsIntZero,
		markText: b.deleteMark, markAnyCase: b.deleteMarkAnyCase, allDead: b.allDead, flag: -1, operation: -1}
	l.key = columnOf(s, schema.RecordKey)
	for _, name := range b.o.OrderingFields {
		path := pathOf(s, name)
		l.ordering = append(l.ordering, path)
		b.need(name)
	}
	if b.flag {
		l.flag = b.mark(schema.IsDeleted)
		if l.flag >= 0 && s.Field(l.flag).Type.ID() != arrow.BOOL {
			return nil, fmt.Errorf("%w: column %s is %s; it marks deletes and must be boolean", ErrConfig, schema.IsDeleted, s.Field(l.flag).Type)
		}
	}
	if b.operation {
		l.operation = b.mark(schema.Operation)
	}
	l.mark, l.insertMark, l.sequence = b.mark(b.deleteField), -1, b.mark(b.sequence)
	if b.markOnInsert {
		l.mark, l.insertMark = -1, l.mark
	}
	if b.lacking != "" {
		return nil, fmt.Errorf("%w: the projection lacks column %s, which merging looks at; include Columns()", ErrConfig, b.lacking)
	}
	l.metas = make([]bool, s.NumFields())
	for i := range l.metas {
		l.metas[i] = schema.IsMeta(s.Field(i).Name)
	}
	l.freshMetas, l.recheck = b.fill == fillNull && columnOf(s, schema.CommitTime) >= 0, b.recheck
	if b.fill != fillNever {
		l.fill = b.fillers()
	}
	return l, nil
}

// need notes a column that the rule looks at and gives its place, or -1.
func (b *binder) need(name string) int {
	top, _, _ := strings.Cut(name, ".")
	i := columnOf(b.o.Arrow, name)
	if i < 0 {
		i = columnOf(b.o.Arrow, top)
	}
	if top == "" || i < 0 && !b.has(top) {
		return -1
	}
	if i >= 0 {
		top = b.o.Arrow.Field(i).Name
	}
	if !slices.Contains(b.columns, top) {
		b.columns = append(b.columns, top)
	}
	return i
}

// mark is need for a column that marks deletes or orders changes: to merge without it would bring deleted rows back.
func (b *binder) mark(name string) int {
	i := b.need(name)
	if i < 0 && name != "" && b.has(name) && b.lacking == "" {
		b.lacking = name
	}
	return i
}

func columnOf(s *arrow.Schema, name string) int {
	if at := s.FieldIndices(name); name != "" && len(at) > 0 {
		return at[0]
	}
	return -1
}

// pathOf resolves a field name, dotted for a field inside structs. Nil when the schema lacks it.
func pathOf(s *arrow.Schema, name string) []int {
	if i := columnOf(s, name); i >= 0 {
		return []int{i}
	}
	parts := strings.Split(name, ".")
	i := columnOf(s, parts[0])
	if i < 0 {
		return nil
	}
	path, dt := []int{i}, s.Field(i).Type
	for _, p := range parts[1:] {
		st, ok := dt.(*arrow.StructType)
		if !ok {
			return nil
		}
		at, ok := st.FieldIdx(p)
		if !ok {
			return nil
		}
		path, dt = append(path, at), st.Field(at).Type
	}
	return path
}

// Marks of a row that come from elsewhere than its columns.
const (
	rowBlock uint8 = 1 << iota // an entry of a DELETE block: it has no columns
	rowAlone                   // the stored record is hidden: a delete without ordering lay between
)

// chunk is a batch of record versions. Immutable once made; it owns references to its arrays.
type chunk struct {
	l    *layout
	n    int
	cols []arrow.Array // in schema order; nil when every row is of a DELETE block
	keys text
	own  arrow.Array // what keys points into, when that is no column

	dead  []bool  // nil: no row is deleted by its own columns
	marks []uint8 // nil: none
	ords  []Value // with marks rowBlock: the entry's ordering value; otherwise a value that replaces the row's own
	has   []bool  // which ords are set; nil: rows of DELETE blocks
	set   int32   // present columns, an index of state.sets; 0 is all
	sets  []int32 // per row, instead of set

	ord   []ordColumn
	bytes int64
}

// ordColumn is one ordering field of a chunk.
type ordColumn struct {
	arr     arrow.Array
	parents []arrow.Array
	longs   []int64 // the values, when they are plain longs without nulls
}

func (o *ordColumn) value(row int) Value {
	if o.arr == nil {
		return Value{kind: Null}
	}
	for _, p := range o.parents {
		if p.IsNull(row) {
			return Value{kind: Null}
		}
	}
	return columnValue(o.arr, row)
}

// newChunk makes a chunk of a batch of data records. keys is nil when the batch has its key column.
func (l *layout) newChunk(batch arrow.RecordBatch, keys arrow.Array) (*chunk, error) {
	if err := l.check(batch.Schema()); err != nil {
		return nil, err
	}
	own := keys
	if keys == nil {
		if l.key < 0 {
			return nil, fmt.Errorf("%w: the batch has no column %s; pass the keys", ErrConfig, schema.RecordKey)
		}
		own = batch.Column(l.key)
	}
	if own.Len() != int(batch.NumRows()) {
		return nil, fmt.Errorf("merge: %d keys for %d rows", own.Len(), batch.NumRows())
	}
	read, err := textOf(own)
	if err != nil {
		return nil, err
	}
	c := l.keyless(batch)
	if keys != nil {
		c.bytes += util.TotalArraySize(keys)
	}
	own.Retain()
	c.keys, c.own = read, own
	return c, nil
}

// keyless makes a chunk of rows whose keys nobody will ask for. The batch has the rule's schema.
func (l *layout) keyless(batch arrow.RecordBatch) *chunk {
	c := &chunk{l: l, n: int(batch.NumRows()), bytes: util.TotalRecordSize(batch), cols: make([]arrow.Array, batch.NumCols())}
	for i := range c.cols {
		c.cols[i] = batch.Column(i)
		c.cols[i].Retain()
	}
	c.ord = l.ordColumns(c.cols)
	c.dead = l.deadRows(c.cols, c.n)
	return c
}

func (l *layout) check(s *arrow.Schema) error {
	if s == l.schema {
		return nil
	}
	if s.NumFields() != l.schema.NumFields() {
		return fmt.Errorf("merge: a batch of %d columns where the rule has %d", s.NumFields(), l.schema.NumFields())
	}
	for i, f := range l.schema.Fields() {
		if g := s.Field(i); g.Name != f.Name || !sameLayout(f.Type, g.Type) {
			return fmt.Errorf("merge: column %d is %s %s where the rule has %s %s; cast batches to one schema first", i, g.Name, g.Type, f.Name, f.Type)
		}
	}
	return nil
}

// sameLayout compares types but not the names and nullability of list elements, which differ between writers. Text may come run-end
// encoded, as meta columns of one value do.
func sameLayout(a, b arrow.DataType) bool {
	if r, ok := b.(*arrow.RunEndEncodedType); ok && a.ID() == arrow.STRING {
		return r.Encoded().ID() == arrow.STRING
	}
	if a.ID() != b.ID() {
		return false
	}
	switch x := a.(type) {
	case *arrow.StructType:
		y := b.(*arrow.StructType)
		if x.NumFields() != y.NumFields() {
			return false
		}
		for i := range x.NumFields() {
			if x.Field(i).Name != y.Field(i).Name || !sameLayout(x.Field(i).Type, y.Field(i).Type) {
				return false
			}
		}
		return true
	case *arrow.FixedSizeListType:
		return x.Len() == b.(*arrow.FixedSizeListType).Len() && sameLayout(x.Elem(), b.(*arrow.FixedSizeListType).Elem())
	case *arrow.MapType:
		y := b.(*arrow.MapType)
		return sameLayout(x.KeyType(), y.KeyType()) && sameLayout(x.ItemType(), y.ItemType())
	case arrow.ListLikeType:
		return sameLayout(x.Elem(), b.(arrow.ListLikeType).Elem())
	}
	return arrow.TypeEqual(a, b)
}

func (c *chunk) release() {
	for _, a := range c.cols {
		a.Release()
	}
	if c.own != nil {
		c.own.Release()
	}
	c.cols, c.own = nil, nil
}

func (l *layout) ordColumns(cols []arrow.Array) []ordColumn {
	out := make([]ordColumn, len(l.ordering))
	for i, path := range l.ordering {
		if path == nil {
			continue
		}
		o := &out[i]
		o.arr = cols[path[0]]
		for _, f := range path[1:] {
			o.parents = append(o.parents, o.arr)
			o.arr = o.arr.(*array.Struct).Field(f)
		}
		if o.arr.NullN() == 0 && len(o.parents) == 0 {
			switch a := o.arr.(type) {
			case *array.Int64:
				o.longs = a.Int64Values()
			case *array.Timestamp:
				if v := a.TimestampValues(); len(v) > 0 {
					o.longs = arrow.Int64Traits.CastFromBytes(arrow.TimestampTraits.CastToBytes(v))
				}
			}
		}
	}
	return out
}

// deadRows finds the rows that are deletes by their own columns (table format 6.6): _hoodie_is_deleted true,
// _hoodie_operation D or -U, the custom delete field equal to its marker. Nil when there are none.
func (l *layout) deadRows(cols []arrow.Array, n int) []bool {
	var dead []bool
	if l.allDead {
		dead = make([]bool, n)
		for i := range dead {
			dead[i] = true
		}
		return dead
	}
	mark := func(row int) {
		if dead == nil {
			dead = make([]bool, n)
		}
		dead[row] = true
	}
	if l.flag >= 0 {
		if a, ok := cols[l.flag].(*array.Boolean); ok && a.NullN() < n {
			for i := range n {
				if a.IsValid(i) && a.Value(i) {
					mark(i)
				}
			}
		}
	}
	if l.operation >= 0 {
		scanText(cols[l.operation], n, func(row int, s string) {
			if s == "D" || s == "-U" {
				mark(row)
			}
		})
	}
	if l.mark >= 0 {
		scanText(cols[l.mark], n, func(row int, s string) {
			if s == l.markText || l.markAnyCase && strings.EqualFold(s, l.markText) {
				mark(row)
			}
		})
	}
	return dead
}

func scanText(arr arrow.Array, n int, each func(row int, s string)) {
	if arr.NullN() == n {
		return
	}
	switch a := arr.(type) {
	case *array.String:
		for i := range n {
			if a.IsValid(i) {
				each(i, a.Value(i))
			}
		}
	default: // the marker is compared with the value's text
		for i := range n {
			if arr.IsValid(i) {
				each(i, arr.ValueStr(i))
			}
		}
	}
}

// text reads the bytes of a text or binary column without copying.
type text struct {
	arr   arrow.Array
	off32 []int32
	off64 []int64
	data  []byte
	nulls bool
}

func textOf(arr arrow.Array) (text, error) {
	t := text{arr: arr, nulls: arr.NullN() > 0}
	switch a := arr.(type) {
	case *array.String:
		t.off32, t.data = a.ValueOffsets(), valueBytes(a.Data().Buffers()[2])
	case *array.Binary:
		t.off32, t.data = a.ValueOffsets(), valueBytes(a.Data().Buffers()[2])
	case *array.LargeString:
		t.off64, t.data = a.ValueOffsets(), valueBytes(a.Data().Buffers()[2])
	case *array.LargeBinary:
		t.off64, t.data = a.ValueOffsets(), valueBytes(a.Data().Buffers()[2])
	default:
		return t, fmt.Errorf("merge: record keys are %s where text is expected", arr.DataType())
	}
	return t, nil
}

func valueBytes(b *memory.Buffer) []byte {
	if b == nil {
		return nil
	}
	return b.Bytes()
}

// at gives the bytes of a row, and false for null.
func (t *text) at(row int) ([]byte, bool) {
	if t.nulls && t.arr.IsNull(row) {
		return nil, false
	}
	if t.off32 != nil {
		return t.data[t.off32[row]:t.off32[row+1]], true
	}
	return t.data[t.off64[row]:t.off64[row+1]], true
}

// side is one version of a record while two are compared.
type side struct {
	c    *chunk
	row  int
	cols []source // where each column's value is, when the version is put together from several; else nil
	base bool     // the stored record
	dead bool     // a delete of any form
	bare bool     // a delete without columns, from a DELETE block
	set  int32    // present columns; 0 is all
	over *Value   // ordering value in place of the columns'
}

// order is the ordering value of the version.
func (s *side) order() Value {
	if s.over != nil {
		return *s.over
	}
	if s.bare {
		return s.c.ords[s.row]
	}
	if s.c.has != nil && s.c.has[s.row] {
		return s.c.ords[s.row]
	}
	l := s.c.l
	switch len(l.ordering) {
	case 0:
		return Value{}
	case 1:
		return l.nullAs(s, 0, s.c.ord[0].value(s.row))
	}
	vs := make([]Value, len(l.ordering))
	for i := range vs {
		vs[i] = l.nullAs(s, i, s.c.ord[i].value(s.row))
	}
	return TupleOrdering(vs...)
}

func (l *layout) nullAs(s *side, field int, v Value) Value {
	if v.kind != Null || !l.nullIsIntZero || s.base && !l.nullBaseIsIntZero {
		return v
	}
	if arr := s.c.ord[field].arr; arr != nil {
		switch arr.DataType().ID() {
		case arrow.INT32, arrow.INT16, arrow.INT8, arrow.DATE32:
			return IntOrdering(0)
		}
	}
	return v
}

// compareOrder compares the ordering values of two versions.
func compareOrder(a, b *side) int {
	if len(a.c.ord) == 1 && len(b.c.ord) == 1 && a.over == nil && b.over == nil && a.c.has == nil && b.c.has == nil {
		if x, y := a.c.ord[0].longs, b.c.ord[0].longs; x != nil && y != nil && !a.bare && !b.bare {
			switch v, w := x[a.row], y[b.row]; {
			case v < w:
				return -1
			case v > w:
				return 1
			}
			return 0
		}
	}
	return Compare(a.order(), b.order())
}

// plainDelete reports whether the version is a delete without ordering, which removes whatever the order.
func (s *side) plainDelete() bool { return s.dead && s.order().None() }

// value gives the array and row of one column of the version.
func (s *side) column(i int, chunks []*chunk) (arrow.Array, int) {
	if s.cols != nil {
		return chunks[s.cols[i].chunk].cols[i], int(s.cols[i].row)
	}
	return s.c.cols[i], s.row
}

// normalise brings the ordering value of a DELETE block to the terms of the table's column: a LongWrapper holds the column's
// raw units, a BytesWrapper the unscaled bytes of a decimal.
func (l *layout) normalise(v Value) Value {
	if v.None() || len(l.ordering) == 0 {
		return v
	}
	if v.kind == Tuple {
		vs := make([]Value, len(v.list))
		for i, e := range v.list {
			if vs[i] = e; i < len(l.ordering) {
				vs[i] = normaliseField(e, l.typeOf(l.ordering[i]))
			}
		}
		return TupleOrdering(vs...)
	}
	return normaliseField(v, l.typeOf(l.ordering[0]))
}

func (l *layout) typeOf(path []int) arrow.DataType {
	if path == nil {
		return arrow.Null
	}
	dt := l.schema.Field(path[0]).Type
	for _, i := range path[1:] {
		dt = dt.(*arrow.StructType).Field(i).Type
	}
	return dt
}

func normaliseField(v Value, dt arrow.DataType) Value {
	switch t := dt.(type) {
	case *arrow.TimestampType:
		switch {
		case t.Unit == arrow.Nanosecond && v.kind == TimestampMicros && v.i < math.MaxInt64/1000 && v.i > math.MinInt64/1000:
			return TimestampMicrosOrdering(v.i * 1000) // columns of nanoseconds keep their raw number
		case v.kind == Long:
			return TimestampMicrosOrdering(toMicros(v.i, t.Unit))
		}
	case *arrow.Time32Type:
		if v.kind == Int {
			return TimeMicrosOrdering(toMicros(v.i, t.Unit))
		}
	case *arrow.Decimal128Type:
		if v.kind == Bytes {
			return DecimalOrdering(twosComplement([]byte(v.s)), t.Scale)
		}
	case *arrow.Decimal256Type:
		if v.kind == Bytes {
			return DecimalOrdering(twosComplement([]byte(v.s)), t.Scale)
		}
	}
	return v
}
