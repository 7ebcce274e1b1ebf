package avrocodec

import (
	"fmt"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal256"

	"github.com/sluicelake/sluice/hudi/schema"
)

// Appender decodes records into the builder that it is bound to. Not safe for concurrent use.
type Appender struct {
	c       cursor
	root    []step
	builder *array.RecordBuilder
	rows    int
	texts   []*array.BinaryBuilder // of the top columns
	sizes   []int                  // bytes of each in the last batch
}

// step reads one value and appends it to the builder it is bound to, or skips it.
type step func(c *cursor)

// Bind ties the plan to a builder made by NewBuilder (or of the same schema). The builder may give batches and be filled
// again; the binding stays valid.
func (d *Decoder) Bind(b *array.RecordBuilder) (*Appender, error) {
	if !b.Schema().Equal(d.out) {
		return nil, fmt.Errorf("avro decoder makes %s, the builder wants %s", d.out, b.Schema())
	}
	bd := binder{key: d.key, skips: map[*schema.Type]*step{}, sizes: map[*schema.Type]int{}}
	root := bd.record(d.writer, d.root, b.Field, true)
	if bd.err != nil {
		return nil, bd.err
	}
	a := &Appender{root: root, builder: b}
	for _, f := range b.Fields() {
		switch f := f.(type) {
		case *array.StringBuilder:
			a.texts = append(a.texts, f.BinaryBuilder)
		case *array.BinaryBuilder:
			a.texts = append(a.texts, f)
		}
	}
	a.sizes = make([]int, len(a.texts))
	return a, nil
}

// Reserve makes room for rows, and for as many bytes of text as the batch before had: growing step by step is what costs.
func (a *Appender) Reserve(rows int) {
	a.builder.Reserve(rows)
	for i, t := range a.texts {
		t.ReserveData(a.sizes[i])
	}
}

// Rows is the number of rows since the last batch.
func (a *Appender) Rows() int { return a.rows }

// NewBatch gives the rows since the last batch. The caller releases it.
func (a *Appender) NewBatch() arrow.RecordBatch {
	rows := int64(a.rows)
	a.rows = 0
	for i, t := range a.texts {
		a.sizes[i] = t.DataLen()
	}
	batch := a.builder.NewRecordBatch()
	if batch.NumCols() == 0 { // only the number of rows is wanted
		defer batch.Release()
		return array.NewRecordBatch(batch.Schema(), nil, rows)
	}
	return batch
}

// Append decodes one record, which must fill the bytes exactly. After an error the builder holds a part of a row: release
// it.
func (a *Appender) Append(record []byte) error { return a.AppendKeyed(nil, record) }

// AppendKeyed is Append for the value of an HFile entry: an empty Options.Key field gets the entry's key.
func (a *Appender) AppendKeyed(key, record []byte) error {
	a.c = cursor{buf: record, key: key}
	for _, s := range a.root {
		s(&a.c)
	}
	switch {
	case a.c.err != nil:
		return a.c.err
	case a.c.pos != len(record):
		return fmt.Errorf("%w: record of %d bytes ends at byte %d", ErrData, len(record), a.c.pos)
	}
	a.rows++
	return nil
}

// AppendNext decodes the record at the beginning of data and gives what follows it: in container files records stand one
// behind the other. After an error the builder holds a part of a row: release it.
func (a *Appender) AppendNext(data []byte) (rest []byte, err error) {
	a.c = cursor{buf: data}
	for _, s := range a.root {
		s(&a.c)
	}
	if a.c.err != nil {
		return nil, a.c.err
	}
	a.rows++
	return data[a.c.pos:], nil
}

type binder struct {
	key string
	// keyText is the column named key, if it is text.
	keyText *array.StringBuilder
	skips   map[*schema.Type]*step
	sizes   map[*schema.Type]int
	err     error
}

func (bd *binder) record(t *schema.Type, n *node, builder func(int) array.Builder, top bool) []step {
	steps := make([]step, 0, len(t.Fields))
	for i := range t.Fields {
		f := &t.Fields[i]
		w := n.fields[i]
		switch {
		case w == nil:
			steps = append(steps, bd.skip(f.Type))
		default:
			b := builder(w.at)
			if text, ok := b.(*array.StringBuilder); ok && top && f.Name == bd.key {
				bd.keyText = text
			}
			steps = append(steps, bd.value(f.Type, w.sub, b))
		}
	}
	return steps
}

func keyStep(b *array.StringBuilder) step {
	return func(c *cursor) {
		v := c.bytes()
		if len(v) == 0 {
			v = c.key
		}
		b.BinaryBuilder.Append(v)
	}
}

// wholeNode is the plan of a record that is decoded whole.
func wholeNode(t *schema.Type) *node {
	n := &node{fields: make([]*want, len(t.Fields))}
	for i := range n.fields {
		n.fields[i] = &want{at: i}
	}
	return n
}

// value binds one value. The builder is of the type that schema.Type.ArrowType gives, or its pruned form.
func (bd *binder) value(t *schema.Type, sh *shape, b array.Builder) step {
	switch t.Kind {
	case schema.Union:
		return bd.union(t, sh, b)
	case schema.Record:
		n := wholeNode(t)
		if sh != nil && sh.record != nil {
			n = sh.record
		}
		sb := b.(*array.StructBuilder)
		steps := bd.record(t, n, sb.FieldBuilder, false)
		return func(c *cursor) {
			sb.Append(true)
			for _, s := range steps {
				s(c)
			}
		}
	case schema.Array:
		lb := b.(*array.ListBuilder)
		item := bd.value(t.Items, sh.below(), lb.ValueBuilder())
		least := bd.minSize(t.Items)
		return func(c *cursor) {
			lb.Append(true)
			c.blocks(least, func() { item(c) })
		}
	case schema.Map:
		mb := b.(*array.MapBuilder)
		key := mb.KeyBuilder().(*array.StringBuilder)
		item := bd.value(t.Items, sh.below(), mb.ItemBuilder())
		least := 1 + bd.minSize(t.Items)
		return func(c *cursor) {
			mb.Append(true)
			c.blocks(least, func() {
				key.BinaryBuilder.Append(c.bytes())
				item(c)
			})
		}
	case schema.Enum:
		return enumStep(t, b.(*array.StringBuilder))
	case schema.Bytes, schema.Fixed:
		return bd.binary(t, b)
	}
	return bd.scalar(t, b)
}

func (sh *shape) below() *shape {
	if sh == nil {
		return nil
	}
	return sh.items
}

// scalar binds null, numbers, booleans and text.
func (bd *binder) scalar(t *schema.Type, b array.Builder) step {
	switch b := b.(type) {
	case *array.NullBuilder:
		return func(*cursor) { b.AppendNull() }
	case *array.BooleanBuilder:
		return func(c *cursor) { b.Append(c.boolean()) }
	case *array.Int32Builder:
		return func(c *cursor) { b.Append(c.int()) }
	case *array.Date32Builder:
		return func(c *cursor) { b.Append(arrow.Date32(c.int())) }
	case *array.Time32Builder:
		return func(c *cursor) { b.Append(arrow.Time32(c.int())) }
	case *array.Int64Builder:
		if t.Kind == schema.Int { // in a union with long
			return func(c *cursor) { b.Append(int64(c.int())) }
		}
		return func(c *cursor) { b.Append(c.long()) }
	case *array.Time64Builder:
		return func(c *cursor) { b.Append(arrow.Time64(c.long())) }
	case *array.TimestampBuilder:
		return func(c *cursor) { b.Append(arrow.Timestamp(c.long())) }
	case *array.Float32Builder:
		return func(c *cursor) { b.Append(c.float()) }
	case *array.Float64Builder:
		if t.Kind == schema.Float { // in a union with double
			return func(c *cursor) { b.Append(float64(c.float())) }
		}
		return func(c *cursor) { b.Append(c.double()) }
	case *array.StringBuilder:
		if b == bd.keyText {
			return keyStep(b)
		}
		return func(c *cursor) { b.BinaryBuilder.Append(c.bytes()) }
	}
	bd.err = fmt.Errorf("%s as %s can't be decoded", t.Kind, b.Type())
	return func(c *cursor) { c.fail("no plan") }
}

func enumStep(t *schema.Type, b *array.StringBuilder) step {
	symbols := make([][]byte, len(t.Symbols))
	for i, s := range t.Symbols {
		symbols[i] = []byte(s)
	}
	return func(c *cursor) {
		i := c.long()
		if i < 0 || i >= int64(len(symbols)) {
			c.fail("symbol %d of %d in enum %s", i, len(symbols), t.Name)
			return
		}
		b.BinaryBuilder.Append(symbols[i])
	}
}

// binary binds bytes and fixed: plain, decimal, UUID.
func (bd *binder) binary(t *schema.Type, b array.Builder) step {
	take := (*cursor).bytes
	if t.Kind == schema.Fixed {
		size := t.Size
		take = func(c *cursor) []byte { return c.take(size) }
	}
	switch b := b.(type) {
	case *array.Decimal128Builder:
		return func(c *cursor) {
			v := c.decimal(take(c), 16)
			if len(v) > 0 {
				b.Append(schema.BigEndianDecimal(v))
			}
		}
	case *array.Decimal256Builder:
		return func(c *cursor) {
			v := c.decimal(take(c), 32)
			if len(v) > 0 {
				b.Append(decimal256.FromBigInt(bigInt(v)))
			}
		}
	case *array.FixedSizeBinaryBuilder:
		return func(c *cursor) {
			if v := take(c); len(v) == t.Size && c.err == nil {
				b.Append(v)
			}
		}
	case *array.BinaryBuilder:
		return func(c *cursor) { b.Append(take(c)) }
	case *array.StringBuilder: // UUID
		return func(c *cursor) {
			if v := take(c); len(v) == 16 {
				b.Append(fmt.Sprintf("%x-%x-%x-%x-%x", v[:4], v[4:6], v[6:8], v[8:10], v[10:]))
			}
		}
	}
	bd.err = fmt.Errorf("%s as %s can't be decoded", t.Kind, b.Type())
	return func(c *cursor) { c.fail("no plan") }
}

// bigInt reads a two's complement.
func bigInt(b []byte) *big.Int {
	v := new(big.Int).SetBytes(b)
	if b[0] >= 0x80 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return v
}

// union binds null with one other type as a nullable column, two numbers as the wider one, anything else as a struct with a
// member for each branch that is not null (see schema.Type.Arrow).
func (bd *binder) union(t *schema.Type, sh *shape, b array.Builder) step {
	steps := make([]step, len(t.Branches))
	others := 0
	for _, br := range t.Branches {
		if br.Kind != schema.Null {
			others++
		}
	}
	sb, isStruct := b.(*array.StructBuilder)
	members := isStruct && others > 1
	at := 0
	for i, br := range t.Branches {
		switch {
		case br.Kind == schema.Null:
			steps[i] = func(*cursor) { b.AppendNull() }
		case members:
			steps[i] = bd.member(br, sb, at)
			at++
		default:
			steps[i] = bd.value(br, sh, b)
		}
	}
	if len(steps) == 2 {
		zero, one := steps[0], steps[1]
		return func(c *cursor) {
			switch c.long() {
			case 0:
				if c.err == nil {
					zero(c)
				}
			case 1:
				one(c)
			default:
				c.fail("branch beyond a union of 2")
			}
		}
	}
	return func(c *cursor) {
		i := c.long()
		if i < 0 || i >= int64(len(steps)) {
			c.fail("branch %d of a union of %d", i, len(steps))
			return
		}
		steps[i](c)
	}
}

func (bd *binder) member(t *schema.Type, sb *array.StructBuilder, at int) step {
	value := bd.value(t, nil, sb.FieldBuilder(at))
	return func(c *cursor) {
		sb.Append(true)
		for j := range sb.NumField() {
			if j == at {
				value(c)
			} else {
				sb.FieldBuilder(j).AppendNull()
			}
		}
	}
}
