package basefile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
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
	rep      int16 // repetition level of a further element
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
	rep     int16
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
	here := func(kind stepKind, member int, level int16) []step {
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
		physical, values = parquet.Types.Boolean, &boolValues{}
	case schema.Int:
		physical, values = parquet.Types.Int32, &fixedWidth[int32]{}
		switch t.Logical {
		case schema.Date:
			as = pq.DateLogicalType{}
		case schema.TimeMillis:
			as = pq.NewTimeLogicalType(true, pq.TimeUnitMillis)
		}
	case schema.Long:
		physical, as, values = parquet.Types.Int64, longAs(t.Logical), &fixedWidth[int64]{}
	case schema.Float:
		physical, values = parquet.Types.Float, &fixedWidth[float32]{}
	case schema.Double:
		physical, values = parquet.Types.Double, &fixedWidth[float64]{}
	case schema.String, schema.Enum:
		as, values = pq.StringLogicalType{}, &textValues{}
	case schema.Bytes:
		values = &textValues{}
		if t.Logical == schema.Decimal {
			as, values = pq.NewDecimalLogicalType(int32(t.Precision), int32(t.Scale)), &decimalValues{precision: int32(t.Precision)}
		}
	case schema.Fixed:
		if t.Logical == schema.UUID {
			return nil, fmt.Errorf("%w: a fixed UUID is read, not written", ErrUnsupported)
		}
		physical, length, values = parquet.Types.FixedLenByteArray, t.Size, &fixedValues{}
		if t.Logical == schema.Decimal {
			if t.Size < schema.DecimalBytes(t.Precision) {
				return nil, fmt.Errorf("%w: a decimal of %d digits does not fit in a fixed of %d bytes", schema.ErrSchema, t.Precision, t.Size)
			}
			as, values = pq.NewDecimalLogicalType(int32(t.Precision), int32(t.Scale)), &decimalValues{precision: int32(t.Precision), size: t.Size}
		}
	default:
		return nil, fmt.Errorf("%w: %s has no Parquet form", ErrUnsupported, t.Kind)
	}
	l := &leafWriter{column: b.column, way: way, values: values}
	for _, s := range way {
		if s.nullable {
			l.maxDef++
		}
		if s.rep > 0 {
			l.maxDef++
			l.maxRep = s.rep
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

// check holds the columns of a batch against the schema: names, order and types. Names of list elements don't matter, and
// nullability is looked at in the values.
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

// write encodes runs of rows into a row group; first is the number of the first row in the file, for errors.
func (c *writeColumns) write(to file.BufferedRowGroupWriter, batches []arrow.RecordBatch, runs []rowRun, parallel int, first int64) error {
	var g errgroup.Group
	g.SetLimit(max(parallel, 1))
	for i, l := range c.leaves {
		one := func() error {
			chunk, err := to.Column(i)
			if err != nil {
				return err
			}
			arrays := make([]arrow.Array, len(batches))
			for k, b := range batches {
				arrays[k] = b.Column(l.column)
			}
			if err := l.write(chunk, arrays, runs); err != nil {
				return fmt.Errorf("column %s, in the rows from %d on: %w", c.schema.Field(l.column).Name, first, err)
			}
			return nil
		}
		if parallel <= 1 {
			if err := one(); err != nil {
				return err
			}
			continue
		}
		g.Go(one)
	}
	return g.Wait()
}

// A column is written without a dictionary when of at least sampleLeast values in the first rows, and at most sampleMost, more than
// seven in ten differ: a dictionary of such a column costs much time and is given up at its page size anyway.
const (
	sampleLeast = 1000
	sampleMost  = 8 << 10
)

// unique gives the paths of the columns that a dictionary would not serve: those of the first rows, and the record's key and
// number, whose values differ always.
func (c *writeColumns) unique(batches []arrow.RecordBatch, runs []rowRun) ([]string, error) {
	var out []string
	sample, _ := cutRuns(runs, sampleMost)
	for _, l := range c.leaves {
		name := c.schema.Field(l.column).Name
		if name == schema.CommitSeqno || name == schema.RecordKey {
			out = append(out, name)
			continue
		}
		if len(l.way) > 1 {
			continue
		}
		arrays := make([]arrow.Array, len(batches))
		for k, b := range batches {
			arrays[k] = b.Column(l.column)
		}
		if err := l.gather(arrays, sample); err != nil {
			return nil, fmt.Errorf("column %s: %w", name, err)
		}
		if all, different := l.values.distinct(); all >= sampleLeast && different*10 > all*7 {
			out = append(out, name)
		}
	}
	return out, nil
}

// leafWriter encodes one leaf of a column: levels and values of a slice of rows are gathered, then given to the Parquet library.
type leafWriter struct {
	column         int // of the batch
	way            []step
	maxDef, maxRep int16
	values         leafValues

	def, rep []int16
	arrays   []arrow.Array // one for each step of the way
}

func (l *leafWriter) write(to file.ColumnChunkWriter, arrays []arrow.Array, runs []rowRun) (err error) {
	defer recovered(&err)
	if err := l.gather(arrays, runs); err != nil {
		return err
	}
	return l.values.flush(to, l.levels(l.def, l.maxDef), l.levels(l.rep, l.maxRep))
}

func (l *leafWriter) gather(arrays []arrow.Array, runs []rowRun) (err error) {
	defer recovered(&err)
	l.def, l.rep = l.def[:0], l.rep[:0]
	l.values.reset()
	bound := -1
	for _, r := range runs {
		if r.rows == 0 {
			continue
		}
		if r.batch != bound {
			if err := l.bind(arrays[r.batch]); err != nil {
				return err
			}
			bound = r.batch
		}
		if err := l.add(int(r.row), int(r.row+r.rows)); err != nil {
			return err
		}
	}
	return nil
}

// levels are nil where the leaf has none.
func (l *leafWriter) levels(v []int16, most int16) []int16 {
	if most == 0 {
		return nil
	}
	return v
}

// bind finds the arrays along the way.
func (l *leafWriter) bind(arr arrow.Array) error {
	l.arrays = l.arrays[:0]
	for _, s := range l.way {
		l.arrays = append(l.arrays, arr)
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
	return l.values.bind(l.arrays[len(l.arrays)-1])
}

var errNull = errors.New("null where the schema allows none")

// add takes the rows [from, to) of the bound column.
func (l *leafWriter) add(from, to int) error {
	if len(l.way) > 1 {
		for i := from; i < to; i++ {
			if err := l.walk(0, i, 0, 0); err != nil {
				return err
			}
		}
		return nil
	}
	arr := l.arrays[0]
	if arr.NullN() == 0 {
		l.def = appendLevel(l.def, l.maxDef, to-from)
		l.values.addRange(from, to)
		return nil
	}
	for i := from; i < to; i++ {
		switch {
		case arr.IsValid(i):
			l.def = append(l.def, l.maxDef)
			l.values.addRange(i, i+1)
		case l.maxDef == 0:
			return errNull
		default:
			l.def = append(l.def, 0)
		}
	}
	return nil
}

func appendLevel(levels []int16, level int16, n int) []int16 {
	for range n {
		levels = append(levels, level)
	}
	return levels
}

// walk gives the levels of what lies below value i of the array at a step (Dremel's shredding).
func (l *leafWriter) walk(at, i int, rep, def int16) error {
	s, arr := &l.way[at], l.arrays[at]
	if arr.IsNull(i) {
		if !s.nullable {
			return fmt.Errorf("%s: %w", s.name, errNull)
		}
		l.emit(rep, def)
		return nil
	}
	if s.nullable {
		def++
	}
	switch s.kind {
	case stepLeaf:
		l.emit(rep, def)
		l.values.addRange(i, i+1)
		return nil
	case stepMember:
		return l.walk(at+1, i, rep, def)
	}
	start, end := arr.(array.ListLike).ValueOffsets(i)
	if start == end {
		l.emit(rep, def)
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

func (l *leafWriter) emit(rep, def int16) {
	l.rep = append(l.rep, rep)
	l.def = append(l.def, def)
}
