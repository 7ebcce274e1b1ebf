package basefile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
	pq "github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/sluicelake/sluice/hudi/schema"
	"golang.org/x/sync/errgroup"
)

// writeColumns is the compiled form of a schema: the Parquet tree, and for each leaf the way to it.
type writeColumns struct {
	message string
	text    string // of the Avro schema
	schema  *arrow.Schema
	root    *pq.GroupNode
	leaves  []*leafWriter
	keys    *leafWriter   // of the record keys, nil: there is none
	twins   []*leafWriter // that may follow it
}

// stepKind is what a step on the way to a leaf goes into.
type stepKind uint8

const (
	stepLeaf stepKind = iota
	stepMember
	stepElement
	stepKey
	stepValue
)

// step is one node on the way from a column to a leaf.
type step struct {
	kind     stepKind
	nullable bool
	member   int   // of a struct
	rep      uint8 // repetition level of a further element
	name     string
}

func newWriteColumns(t *schema.Type) (*writeColumns, error) {
	if t == nil || t.Kind != schema.Record || len(t.Fields) == 0 {
		return nil, errors.New("a base file needs the Avro record of its columns")
	}
	c := &writeColumns{message: t.Name, text: footerSchema(t)}
	var err error
	if c.schema, err = t.Arrow(); err != nil {
		return nil, err
	}
	nodes := make(pq.FieldList, len(t.Fields))
	for i, f := range t.Fields {
		b := leafBuilder{columns: c, column: i}
		if nodes[i], err = b.field(f.Name, f.Type, nil); err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
	}
	if c.root, err = pq.NewGroupNode(c.message, parquet.Repetitions.Required, nodes, -1); err != nil {
		return nil, err
	}
	c.findTwins()
	return c, nil
}

// footerSchema is the text of a schema with the empty doc that Java's meta fields have: then a footer of ours is word for word
// that of Apache Hudi.
func footerSchema(t *schema.Type) string {
	text := t.String()
	for _, name := range append(schema.MetaColumns[:], schema.Operation) {
		const head, tail = `","type":["null","string"]`, `,"default":null}`
		text = strings.Replace(text, `{"name":"`+name+head+tail, `{"name":"`+name+head+`,"doc":""`+tail, 1)
	}
	return text
}

// leafBuilder makes the Parquet node of one column and notes its leaves on the way.
type leafBuilder struct {
	columns *writeColumns
	column  int
	rep     uint8
}

// field gives the node of an Avro type under a name; way is the steps to its parent.
func (b *leafBuilder) field(name string, t *schema.Type, way []step) (pq.Node, error) {
	t, nullable, err := branch(t)
	if err != nil {
		return nil, err
	}
	rep := parquet.Repetitions.Required
	if nullable {
		rep = parquet.Repetitions.Optional
	}
	if len(way) >= maxNesting {
		return nil, fmt.Errorf("%w: columns nested more than %d deep", ErrUnsupported, maxNesting)
	}
	here := func(kind stepKind, member int, level uint8) []step {
		return append(way[:len(way):len(way)], step{kind: kind, nullable: nullable, member: member, rep: level, name: name})
	}
	switch t.Kind {
	case schema.Record:
		if len(t.Fields) == 0 {
			return nil, fmt.Errorf("%w: the record %s has no members, and Parquet no such group", ErrUnsupported, name)
		}
		members := make(pq.FieldList, len(t.Fields))
		for i, f := range t.Fields {
			if members[i], err = b.field(f.Name, f.Type, here(stepMember, i, 0)); err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
		}
		return pq.NewGroupNode(name, rep, members, -1)
	case schema.Array:
		b.rep++
		element, err := b.field("element", t.Items, here(stepElement, 0, b.rep))
		b.rep--
		if err != nil {
			return nil, err
		}
		return group(name, rep, "list", pq.ListLogicalType{}, element)
	case schema.Map:
		b.rep++
		defer func() { b.rep-- }()
		key, err := b.field("key", &schema.Type{Kind: schema.String}, here(stepKey, 0, b.rep))
		if err != nil {
			return nil, err
		}
		value, err := b.field("value", t.Items, here(stepValue, 0, b.rep))
		if err != nil {
			return nil, err
		}
		return group(name, rep, "key_value", pq.MapLogicalType{}, key, value)
	}
	return b.leaf(name, t, rep, here(stepLeaf, 0, 0))
}

// group is a list or map: a group of one repeated group.
func group(name string, rep parquet.Repetition, inner string, as pq.LogicalType, members ...pq.Node) (pq.Node, error) {
	repeated, err := pq.NewGroupNode(inner, parquet.Repetitions.Repeated, members, -1)
	if err != nil {
		return nil, err
	}
	return pq.NewGroupNodeLogical(name, rep, pq.FieldList{repeated}, as, -1)
}

// branch takes the null off a union.
func branch(t *schema.Type) (inner *schema.Type, nullable bool, err error) {
	if t.Kind != schema.Union {
		return t, false, nil
	}
	for _, b := range t.Branches {
		switch {
		case b.Kind == schema.Null:
			nullable = true
		case inner != nil:
			return nil, false, fmt.Errorf("%w: base files with the Avro union %s are read, not written", ErrUnsupported, t)
		default:
			inner = b
		}
	}
	if inner == nil {
		return nil, false, fmt.Errorf("%w: a column of nulls alone has no type; give it one", ErrUnsupported)
	}
	return inner, nullable, nil
}

// leaf maps as Java's Avro writer does (table format 5.2). Enums and texts of UUIDs are strings.
func (b *leafBuilder) leaf(name string, t *schema.Type, rep parquet.Repetition, way []step) (pq.Node, error) {
	var (
		physical = parquet.Types.ByteArray
		as       pq.LogicalType
		length   = -1
		values   leafValues
	)
	switch t.Kind {
	case schema.Boolean:
		physical, values = parquet.Types.Boolean, &booleans{}
	case schema.Int:
		physical, values = parquet.Types.Int32, &numbers[int32, uint32]{}
		switch t.Logical {
		case schema.Date:
			as = pq.DateLogicalType{}
		case schema.TimeMillis:
			as = pq.NewTimeLogicalType(true, pq.TimeUnitMillis)
		}
	case schema.Long:
		physical, as, values = parquet.Types.Int64, longAs(t.Logical), &numbers[int64, uint64]{}
	case schema.Float:
		physical, values = parquet.Types.Float, &numbers[float32, uint32]{}
	case schema.Double:
		physical, values = parquet.Types.Double, &numbers[float64, uint64]{}
	case schema.String, schema.Enum:
		as, values = pq.StringLogicalType{}, newTexts(false)
	case schema.Bytes:
		values = newTexts(false)
		if t.Logical == schema.Decimal {
			as, values = pq.NewDecimalLogicalType(int32(t.Precision), int32(t.Scale)), newDecimals(t.Precision, 0)
		}
	case schema.Fixed:
		if t.Logical == schema.UUID {
			return nil, fmt.Errorf("%w: a fixed UUID is read, not written", ErrUnsupported)
		}
		physical, length, values = parquet.Types.FixedLenByteArray, t.Size, newFixedBytes(t.Size, false)
		if t.Logical == schema.Decimal {
			if t.Size < schema.DecimalBytes(t.Precision) {
				return nil, fmt.Errorf("%w: a decimal of %d digits does not fit in a fixed of %d bytes", schema.ErrSchema, t.Precision, t.Size)
			}
			as, values = pq.NewDecimalLogicalType(int32(t.Precision), int32(t.Scale)), newDecimals(t.Precision, t.Size)
		}
	default:
		return nil, fmt.Errorf("%w: %s has no Parquet form", ErrUnsupported, t.Kind)
	}
	l := &leafWriter{column: b.column, way: way}
	l.chunk.values = values
	for _, s := range way {
		if s.nullable {
			l.chunk.maxDef++
		}
		if s.rep > 0 {
			l.chunk.maxDef++
			l.chunk.maxRep = s.rep
		}
	}
	b.columns.leaves = append(b.columns.leaves, l)
	if as == nil {
		return pq.NewPrimitiveNode(name, rep, physical, -1, int32(length))
	}
	return pq.NewPrimitiveNodeLogical(name, rep, as, physical, length, -1)
}

// longAs gives nil for a plain number.
func longAs(l schema.Logical) pq.LogicalType {
	switch l {
	case schema.TimeMicros:
		return pq.NewTimeLogicalType(true, pq.TimeUnitMicros)
	case schema.TimestampMillis:
		return pq.NewTimestampLogicalType(true, pq.TimeUnitMillis)
	case schema.TimestampMicros:
		return pq.NewTimestampLogicalType(true, pq.TimeUnitMicros)
	case schema.TimestampNanos:
		return pq.NewTimestampLogicalType(true, pq.TimeUnitNanos)
	case schema.LocalTimestampMillis:
		return pq.NewTimestampLogicalType(false, pq.TimeUnitMillis)
	case schema.LocalTimestampMicros:
		return pq.NewTimestampLogicalType(false, pq.TimeUnitMicros)
	case schema.LocalTimestampNanos:
		return pq.NewTimestampLogicalType(false, pq.TimeUnitNanos)
	}
	return nil
}

// check holds the columns of a batch against the schema: names, order and types. Names of list elements don't matter, nullability
// is looked at in the values, and texts may be run-end encoded.
func (c *writeColumns) check(got *arrow.Schema) error {
	if got == c.schema {
		return nil
	}
	if got.NumFields() != c.schema.NumFields() {
		return fmt.Errorf("a batch of %d columns for a schema of %d", got.NumFields(), c.schema.NumFields())
	}
	for i, want := range c.schema.Fields() {
		f := got.Field(i)
		if f.Name != want.Name {
			return fmt.Errorf("column %d of the batch is %s, that of the schema %s", i, f.Name, want.Name)
		}
		if runEncoded(f.Type) && want.Type.ID() == arrow.STRING && f.Name != schema.RecordKey {
			continue
		}
		if !sameShape(f.Type, want.Type) {
			return fmt.Errorf("column %s of the batch is %s, that of the schema %s", f.Name, f.Type, want.Type)
		}
	}
	return nil
}

func sameShape(a, b arrow.DataType) bool {
	if a.ID() != b.ID() {
		return false
	}
	switch a := a.(type) {
	case *arrow.MapType:
		b := b.(*arrow.MapType)
		return sameShape(a.KeyType(), b.KeyType()) && sameShape(a.ItemType(), b.ItemType())
	case *arrow.ListType:
		return sameShape(a.Elem(), b.(*arrow.ListType).Elem())
	case *arrow.StructType:
		b := b.(*arrow.StructType)
		if a.NumFields() != b.NumFields() {
			return false
		}
		for i := range a.NumFields() {
			if a.Field(i).Name != b.Field(i).Name || !sameShape(a.Field(i).Type, b.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return arrow.TypeEqual(a, b)
}

// write encodes the rows of a set; first is the number of the first row in the file, for errors.
func (c *writeColumns) write(set *rowSet, parallel int, first int64) error {
	one := func(l *leafWriter) error {
		if l.follows {
			return nil
		}
		if err := l.write(set); err != nil {
			return fmt.Errorf("column %s, in the rows from %d on: %w", c.schema.Field(l.column).Name, first, err)
		}
		return nil
	}
	c.follow(set)
	if parallel <= 1 {
		for _, l := range c.leaves {
			if err := one(l); err != nil {
				return err
			}
		}
		return nil
	}
	var g errgroup.Group
	g.SetLimit(parallel)
	for _, l := range c.leaves {
		g.Go(func() error { return one(l) })
	}
	return g.Wait()
}

// leafWriter takes the levels and values of one leaf out of slices of rows.
type leafWriter struct {
	column int // of the file
	way    []step
	chunk  chunkEncoder
	bound  []*boundBatch
	arrays []arrow.Array // one for each step of the way, in the batch that is used
	there  []int32       // scratch: rows of a pick that are not null, and their places in it
	where  []int32
	// follows: the pages of the open column chunk are those of the record keys.
	follows bool
}

// boundBatch is one of several batches whose rows are taken in turn.
type boundBatch struct {
	arrays []arrow.Array
	runs   *array.RunEndEncoded // in place of a flat array
}

func (l *leafWriter) write(set *rowSet) (err error) {
	defer recovered(&err)
	clear(l.bound) // let go of the batches before
	l.bound = grown(l.bound[:0], max(len(set.batches), 1))
	clear(l.bound)
	defer func() { clear(l.bound) }()
	place := set.place(l.column)
	if place < 0 {
		if err := l.bind(0, set.made[l.column]); err != nil {
			return err
		}
		return l.add(l.bound[0], 0, int(set.rows()))
	}
	for _, r := range set.runs {
		if r.rows == 0 {
			continue
		}
		if err := l.bind(r.batch, set.batches[r.batch].Column(place)); err != nil {
			return err
		}
		if r.pick != nil {
			err = l.pick(l.bound[r.batch], r.pick[r.row:r.row+r.rows])
		} else {
			err = l.add(l.bound[r.batch], int(r.row), int(r.row+r.rows))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bind finds the arrays along the way, once for each batch.
func (l *leafWriter) bind(k int, arr arrow.Array) error {
	if b := l.bound[k]; b != nil {
		l.arrays = b.arrays
		l.chunk.values.use(k)
		return nil
	}
	b := &boundBatch{}
	if b.runs, _ = arr.(*array.RunEndEncoded); b.runs != nil {
		arr = b.runs.Values()
	}
	for _, s := range l.way {
		b.arrays = append(b.arrays, arr)
		switch s.kind {
		case stepMember:
			arr = arr.(*array.Struct).Field(s.member)
		case stepElement:
			arr = arr.(*array.List).ListValues()
		case stepKey:
			arr = arr.(*array.Map).ListValues().(*array.Struct).Field(0)
		case stepValue:
			arr = arr.(*array.Map).ListValues().(*array.Struct).Field(1)
		}
	}
	l.bound[k], l.arrays = b, b.arrays
	return l.chunk.values.bind(k, b.arrays[len(b.arrays)-1])
}

var errNull = errors.New("null where the schema allows none")

// add takes the rows [from, to) of the batch that is used.
func (l *leafWriter) add(b *boundBatch, from, to int) error {
	if b.runs != nil {
		return l.addRuns(b.runs, from, to)
	}
	if len(l.way) > 1 {
		for i := from; i < to; i++ {
			if err := l.walk(0, i, 0, 0); err != nil {
				return err
			}
			if err := l.chunk.endFullPage(); err != nil {
				return err
			}
		}
		return nil
	}
	arr := l.arrays[0]
	if arr.NullN() == 0 {
		return l.chunk.valid(from, to)
	}
	for from < to {
		end := from + 1
		valid := arr.IsValid(from)
		for end < to && arr.IsValid(end) == valid {
			end++
		}
		var err error
		if valid {
			err = l.chunk.valid(from, end)
		} else {
			err = l.chunk.absent(end - from)
		}
		if err != nil {
			return err
		}
		from = end
	}
	return nil
}

// pick takes rows of the batch that is used.
func (l *leafWriter) pick(b *boundBatch, rows []int32) error {
	if b.runs == nil && len(l.way) == 1 {
		if l.arrays[0].NullN() == 0 {
			return l.chunk.picked(rows)
		}
		return l.pickThere(l.arrays[0], rows)
	}
	for _, i := range rows {
		if err := l.add(b, int(i), int(i)+1); err != nil {
			return err
		}
	}
	return nil
}

// pickBlock rows are parted at once into those that are null and the others.
const pickBlock = 1024

// pickThere takes rows of a flat column with nulls.
func (l *leafWriter) pickThere(arr arrow.Array, rows []int32) error {
	bitmap, offset := arr.NullBitmapBytes(), arr.Data().Offset()
	for len(rows) > 0 {
		block := rows[:min(pickBlock, len(rows))]
		l.there, l.where = grown(l.there[:0], len(block)), grown(l.where[:0], len(block))
		n := 0
		for i, row := range block {
			l.there[n], l.where[n] = row, int32(i)
			at := offset + int(row)
			n += int(bitmap[at/8] >> (at % 8) & 1)
		}
		took, err := l.chunk.pickedAmong(l.there[:n], l.where[:n], len(block))
		if err != nil {
			return err
		}
		rows = rows[took:]
	}
	return nil
}

// addRuns takes rows of a run-end encoded text.
func (l *leafWriter) addRuns(runs *array.RunEndEncoded, from, to int) error {
	v, ok := l.chunk.values.(*texts)
	if !ok {
		return fmt.Errorf("an array of %s for other values than text", runs.DataType())
	}
	offset := runs.Data().Offset()
	ends := runs.RunEndsArr()
	for at := runs.GetPhysicalIndex(from); from < to; at++ {
		end := min(int(runEnd(ends, at))-offset, to)
		var err error
		if l.arrays[0].IsNull(at) {
			err = l.chunk.absent(end - from)
		} else {
			err = l.chunk.repeated(v, at, end-from)
		}
		if err != nil {
			return err
		}
		from = end
	}
	return nil
}

func runEnd(ends arrow.Array, i int) int64 {
	switch e := ends.(type) {
	case *array.Int16:
		return int64(e.Value(i))
	case *array.Int32:
		return int64(e.Value(i))
	default:
		return ends.(*array.Int64).Value(i)
	}
}

// walk gives the levels of what lies below value i of the array at a step (Dremel's shredding).
func (l *leafWriter) walk(at, i int, rep, def uint8) error {
	s, arr := &l.way[at], l.arrays[at]
	if arr.IsNull(i) {
		if !s.nullable {
			return fmt.Errorf("%s: %w", s.name, errNull)
		}
		l.chunk.emit(rep, def)
		return nil
	}
	if s.nullable {
		def++
	}
	switch s.kind {
	case stepLeaf:
		l.chunk.emit(rep, def)
		return l.chunk.below(i, i+1)
	case stepMember:
		return l.walk(at+1, i, rep, def)
	}
	start, end := arr.(array.ListLike).ValueOffsets(i)
	if start == end {
		l.chunk.emit(rep, def)
		return nil
	}
	for k := start; k < end; k++ {
		if err := l.walk(at+1, int(k), rep, def+1); err != nil {
			return err
		}
		rep = s.rep
	}
	return nil
}
