package orc

import (
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// valueWriter encodes the values of one column.
type valueWriter interface {
	// write appends the slots of a that where names: those in which the parent has a value.
	write(a arrow.Array, where []span) error
	// position appends the positions of the column's streams but PRESENT, in the order of the row index.
	position(to []uint64) []uint64
	// endGroup is called where a row group ends.
	endGroup()
	// finish flushes the streams and names them, in the order of the file.
	finish() []streamBytes
	// size is about how many bytes the streams have.
	size() int64
}

// streamBytes is a finished stream.
type streamBytes struct {
	streamInfo
	out *output
}

// columnWriter is what all columns share: the PRESENT stream, the statistics and the row index.
type columnWriter struct {
	node     *node
	values   valueWriter
	encoding columnEncoding
	present  boolEncoder

	group, stripe, file collector

	// The row groups of the stripe. Positions are kept apart, because PRESENT may be left out in the end.
	presents, positions [][]uint64
	groups              [][]byte // statistics
}

func (w *Writer) output() *output { return &output{codec: w.codec, limit: w.opts.BlockSize} }

func (w *Writer) ints(signed bool) *intEncoder { return &intEncoder{out: w.output(), signed: signed} }

// columns makes the writers of a type and of all below it.
func (w *Writer) columns(n *node, dt arrow.DataType) (valueWriter, error) {
	c := &columnWriter{node: n, encoding: columnEncoding{kind: encDirectV2}}
	c.present.bytes.out = w.output()
	w.all = append(w.all, c)
	var err error
	c.values, err = w.values(n, dt, c)
	return c.values, err
}

func (w *Writer) values(n *node, dt arrow.DataType, c *columnWriter) (valueWriter, error) {
	dt = storage(dt)
	switch n.kind {
	case kindBoolean:
		c.encoding.kind = encDirect
		return &boolWriter{columnWriter: c, data: boolEncoder{bytes: byteEncoder{out: w.output()}}}, nil
	case kindByte:
		c.encoding.kind = encDirect
		return &byteWriter{columnWriter: c, data: byteEncoder{out: w.output()}}, nil
	case kindShort, kindInt, kindLong, kindDate:
		return &intWriter{columnWriter: c, data: w.ints(true)}, nil
	case kindFloat, kindDouble:
		c.encoding.kind = encDirect
		return &floatWriter{columnWriter: c, data: w.output()}, nil
	case kindString, kindBinary:
		return w.textWriter(n, c), nil
	case kindDecimal:
		return &decimalWriter{columnWriter: c, data: w.output(), scales: w.ints(true)}, nil
	case kindTimestamp, kindTimestampInstant:
		t := dt.(*arrow.TimestampType)
		tw := &timestampWriter{columnWriter: c, seconds: w.ints(true), nanos: w.ints(false), zone: w.zone, unit: t.Unit, moment: t.TimeZone != ""}
		if n.kind == kindTimestampInstant {
			tw.zone = newZone(utcZone(), false)
		}
		tw.base = tw.zone.base2015()
		if tw.moment && !w.zone.fixed {
			tw.clock = newZone(w.opts.Zone, false)
		}
		return tw, nil
	}
	return w.nested(n, dt, c)
}

func (w *Writer) nested(n *node, dt arrow.DataType, c *columnWriter) (valueWriter, error) {
	var types []arrow.DataType
	switch t := dt.(type) {
	case *arrow.MapType:
		types = []arrow.DataType{t.KeyType(), t.ItemType()}
	case *arrow.StructType:
		for _, f := range t.Fields() {
			types = append(types, f.Type)
		}
	case arrow.ListLikeType:
		types = []arrow.DataType{t.Elem()}
	}
	var children []valueWriter
	add := func() error {
		for i, child := range n.children {
			v, err := w.columns(child, types[i])
			if err != nil {
				return err
			}
			children = append(children, v)
		}
		return nil
	}
	if n.kind == kindStruct {
		c.encoding.kind = encDirect
		s := &structWriter{columnWriter: c}
		err := add()
		s.children = children
		return s, err
	}
	l := &listWriter{columnWriter: c, lengths: w.ints(false)}
	err := add()
	l.children = children
	return l, err
}

// begin starts a stripe.
func (c *columnWriter) begin() { c.mark() }

// mark notes the positions of the row group that begins.
func (c *columnWriter) mark() {
	c.presents = append(c.presents, c.present.position(nil))
	c.positions = append(c.positions, c.values.position(nil))
}

func (c *columnWriter) endGroup() {
	c.groups = append(c.groups, c.group.marshal(c.node))
	c.stripe.merge(&c.group)
	c.group.reset()
	c.values.endGroup()
	c.mark()
}

// finish flushes the column's streams.
func (c *columnWriter) finish() ([]streamBytes, error) {
	var list []streamBytes
	c.present.flush()
	if out := c.present.bytes.out; c.stripe.hasNull {
		list = append(list, streamBytes{streamInfo{kind: streamPresent}, out})
	} else {
		out.reset()
	}
	list = append(list, c.values.finish()...)
	for i := range list {
		s := &list[i]
		s.out.spill()
		if s.out.err != nil {
			return nil, s.out.err
		}
		s.column, s.length = uint32(c.node.id), int64(len(s.out.out))
	}
	return list, nil
}

// rowIndex makes the RowIndex message.
func (c *columnWriter) rowIndex() []byte {
	var m message
	var all []uint64
	for i, statistics := range c.groups {
		var e message
		all = all[:0]
		if c.stripe.hasNull {
			all = append(all, c.presents[i]...)
		}
		all = append(all, c.positions[i]...)
		e.packed(1, all)
		e.bytes(2, statistics)
		m.bytes(1, e)
	}
	return m
}

func (c *columnWriter) endStripe() {
	c.file.merge(&c.stripe)
	c.stripe.reset()
	c.presents, c.positions, c.groups = c.presents[:0], c.positions[:0], c.groups[:0]
}

func (c *columnWriter) size() int64 { return c.present.bytes.out.size() + c.values.size() }

// notNull notes n values.
func (c *columnWriter) notNull(n int) {
	c.present.ones(n)
	c.group.count += uint64(n)
}

// validity notes which slots of where are null, and calls each for the ranges of those that are not.
func (c *columnWriter) validity(a arrow.Array, where []span, each func(from, to int)) {
	if a.NullN() == 0 {
		for _, s := range where {
			c.notNull(int(s.to - s.from))
			each(int(s.from), int(s.to))
		}
		return
	}
	for _, s := range where {
		to := int(s.to)
		for i := int(s.from); i < to; {
			if a.IsNull(i) {
				c.present.write(false)
				c.group.hasNull = true
				i++
				continue
			}
			from := i
			for i++; i < to && a.IsValid(i); i++ {
			}
			c.notNull(i - from)
			each(from, i)
		}
	}
}

func wrongArray(n *node, a arrow.Array) error {
	return fmt.Errorf("%w: column %s: an array of %s", ErrUnsupported, n.path, a.DataType())
}

// unwrap looks through extension types and dictionaries, so that what comes out has the type's storage.
func unwrap(a arrow.Array) (arrow.Array, func(), error) {
	a = plainStorage(a)
	d, ok := a.(*array.Dictionary)
	if !ok {
		return a, func() {}, nil
	}
	out, err := takeDictionary(d)
	if err != nil {
		return nil, func() {}, err
	}
	return out, out.Release, nil
}

// intWriter is smallint, int, bigint and date.
type intWriter struct {
	*columnWriter
	data *intEncoder
	wide []int64
}

func (c *intWriter) write(a arrow.Array, where []span) error {
	a, done, err := unwrap(a)
	if err != nil {
		return err
	}
	defer done()
	switch a := a.(type) {
	case *array.Int16:
		writeInts(c, a, a.Int16Values(), where)
	case *array.Int32:
		writeInts(c, a, a.Int32Values(), where)
	case *array.Int64:
		writeInts(c, a, a.Int64Values(), where)
	case *array.Uint8:
		writeInts(c, a, a.Uint8Values(), where)
	case *array.Uint16:
		writeInts(c, a, a.Uint16Values(), where)
	case *array.Uint32:
		writeInts(c, a, a.Uint32Values(), where)
	case *array.Time32:
		writeInts(c, a, a.Time32Values(), where)
	case *array.Time64:
		writeInts(c, a, a.Time64Values(), where)
	case *array.Date32:
		writeInts(c, a, a.Date32Values(), where)
	case *array.Date64:
		days := make([]int64, a.Len())
		for i, ms := range a.Date64Values() {
			days[i] = floorDiv(int64(ms), 1000*day)
		}
		writeInts(c, a, days, where)
	default:
		return wrongArray(c.node, a)
	}
	return nil
}

func writeInts[T ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32](c *intWriter, a arrow.Array, vals []T, where []span) {
	c.wide = c.wide[:0]
	c.validity(a, where, func(from, to int) {
		for _, v := range vals[from:to] {
			c.wide = append(c.wide, int64(v))
		}
	})
	if len(c.wide) == 0 {
		return
	}
	c.data.writeAll(c.wide)
	c.group.integers(c.wide)
}

// integers gathers many at once.
func (c *collector) integers(vals []int64) {
	low, high := vals[0], vals[0]
	sum, carry := c.isum, false
	for _, v := range vals {
		low, high = min(low, v), max(high, v)
		s := sum + v
		carry = carry || (s < sum) != (v < 0)
		sum = s
	}
	c.isum, c.overflow = sum, c.overflow || carry
	c.bound(low)
	c.bound(high)
}

func (c *intWriter) position(to []uint64) []uint64 { return c.data.position(to) }
func (c *intWriter) endGroup()                     {}
func (c *intWriter) size() int64                   { return c.data.out.size() }
func (c *intWriter) finish() []streamBytes {
	c.data.flush()
	return []streamBytes{{streamInfo{kind: streamData}, c.data.out}}
}

// boolWriter is boolean.
type boolWriter struct {
	*columnWriter
	data boolEncoder
}

func (c *boolWriter) write(a arrow.Array, where []span) error {
	a, done, err := unwrap(a)
	if err != nil {
		return err
	}
	defer done()
	b, ok := a.(*array.Boolean)
	if !ok {
		return wrongArray(c.node, a)
	}
	c.validity(a, where, func(from, to int) {
		for i := from; i < to; i++ {
			v := b.Value(i)
			if v {
				c.group.trues++
			}
			c.data.write(v)
		}
	})
	return nil
}

func (c *boolWriter) position(to []uint64) []uint64 { return c.data.position(to) }
func (c *boolWriter) endGroup()                     {}
func (c *boolWriter) size() int64                   { return c.data.bytes.out.size() }
func (c *boolWriter) finish() []streamBytes {
	c.data.flush()
	return []streamBytes{{streamInfo{kind: streamData}, c.data.bytes.out}}
}

// byteWriter is tinyint.
type byteWriter struct {
	*columnWriter
	data byteEncoder
}

func (c *byteWriter) write(a arrow.Array, where []span) error {
	a, done, err := unwrap(a)
	if err != nil {
		return err
	}
	defer done()
	b, ok := a.(*array.Int8)
	if !ok {
		return wrongArray(c.node, a)
	}
	c.validity(a, where, func(from, to int) {
		for _, v := range b.Int8Values()[from:to] {
			c.data.write(byte(v))
			c.group.integer(int64(v))
		}
	})
	return nil
}

func (c *byteWriter) position(to []uint64) []uint64 { return c.data.position(to) }
func (c *byteWriter) endGroup()                     {}
func (c *byteWriter) size() int64                   { return c.data.out.size() }
func (c *byteWriter) finish() []streamBytes {
	c.data.flush()
	return []streamBytes{{streamInfo{kind: streamData}, c.data.out}}
}

// floatWriter is float and double.
type floatWriter struct {
	*columnWriter
	data *output
	raw  []byte
}

func (c *floatWriter) write(a arrow.Array, where []span) error {
	a, done, err := unwrap(a)
	if err != nil {
		return err
	}
	defer done()
	c.raw = c.raw[:0]
	switch a := a.(type) {
	case *array.Float32:
		bits := arrow.Uint32Traits.CastFromBytes(arrow.Float32Traits.CastToBytes(a.Float32Values()))
		c.validity(a, where, func(from, to int) {
			for i, u := range bits[from:to] {
				c.raw = binary.LittleEndian.AppendUint32(c.raw, u)
				c.group.float(float64(a.Value(from + i)))
			}
		})
	case *array.Float64:
		bits := arrow.Uint64Traits.CastFromBytes(arrow.Float64Traits.CastToBytes(a.Float64Values()))
		c.validity(a, where, func(from, to int) {
			for i, u := range bits[from:to] {
				c.raw = binary.LittleEndian.AppendUint64(c.raw, u)
				c.group.float(a.Value(from + i))
			}
		})
	default:
		return wrongArray(c.node, a)
	}
	c.data.write(c.raw)
	return nil
}

func (c *floatWriter) position(to []uint64) []uint64 { return c.data.position(to) }
func (c *floatWriter) endGroup()                     {}
func (c *floatWriter) size() int64                   { return c.data.size() }
func (c *floatWriter) finish() []streamBytes {
	return []streamBytes{{streamInfo{kind: streamData}, c.data}}
}

// decimalWriter is decimal.
type decimalWriter struct {
	*columnWriter
	data   *output
	scales *intEncoder
	raw    []byte
}

func (c *decimalWriter) write(a arrow.Array, where []span) error {
	a, done, err := unwrap(a)
	if err != nil {
		return err
	}
	defer done()
	d, ok := a.(*array.Decimal128)
	if !ok {
		return wrongArray(c.node, a)
	}
	vals := d.Values()
	c.raw = c.raw[:0]
	bad := -1
	c.validity(a, where, func(from, to int) {
		for i, v := range vals[from:to] {
			if !v.FitsInPrecision(c.node.precision) && bad < 0 {
				bad = from + i
			}
			c.raw = appendDecimal(c.raw, v)
			c.scales.write(int64(c.node.scale))
			c.group.decimal(v)
		}
	})
	if bad >= 0 {
		return fmt.Errorf("column %s, row %d of the batch: %s does not fit decimal(%d,%d)", c.node.path, bad, vals[bad].ToString(c.node.scale), c.node.precision, c.node.scale)
	}
	c.data.write(c.raw)
	return nil
}

// appendDecimal appends the unscaled value as a zigzag varint of up to 128 bits.
func appendDecimal(b []byte, v decimal128.Num) []byte {
	hi, lo := v.HighBits(), v.LowBits()
	sign := uint64(hi >> 63)
	h, l := (uint64(hi)<<1|lo>>63)^sign, lo<<1^sign
	for h != 0 {
		b = append(b, byte(l)|0x80)
		l = l>>7 | h<<57
		h >>= 7
	}
	return binary.AppendUvarint(b, l)
}

func (c *decimalWriter) position(to []uint64) []uint64 {
	return c.scales.position(c.data.position(to))
}
func (c *decimalWriter) endGroup()   {}
func (c *decimalWriter) size() int64 { return c.data.size() + c.scales.out.size() }
func (c *decimalWriter) finish() []streamBytes {
	c.scales.flush()
	return []streamBytes{{streamInfo{kind: streamData}, c.data}, {streamInfo{kind: streamSecondary}, c.scales.out}}
}

// timestampWriter is both kinds of timestamp.
type timestampWriter struct {
	*columnWriter
	seconds, nanos *intEncoder
	zone           *zone // of the wall clock that is written
	clock          *zone // for moments, the zone as it really is, where that is not UTC
	base           int64
	unit           arrow.TimeUnit
	moment         bool
	secs, ns       []int64
}

func (c *timestampWriter) write(a arrow.Array, where []span) error {
	a, done, err := unwrap(a)
	if err != nil {
		return err
	}
	defer done()
	t, ok := a.(*array.Timestamp)
	if !ok {
		return wrongArray(c.node, a)
	}
	vals := t.TimestampValues()
	c.secs, c.ns = c.secs[:0], c.ns[:0]
	per := int64(1e9) / unitNanos(c.unit)
	bad := -1
	c.validity(a, where, func(from, to int) {
		for i, v := range vals[from:to] {
			s := floorDiv(int64(v), per)
			ns := (int64(v) - s*per) * unitNanos(c.unit)
			stored, wall, ok := c.stored(s, ns)
			if !ok && bad < 0 {
				bad = from + i
			}
			c.secs = append(c.secs, stored)
			c.ns = append(c.ns, packNanos(ns))
			c.group.bound(wall*1000 + ns/1e6)
		}
	})
	if bad >= 0 {
		return fmt.Errorf("%w: column %s, row %d of the batch: %s cannot be stored: ORC has no form for the last 999 milliseconds before 1970-01-01 00:00:00 UTC, "+
			"for a clock reading that the zone %s skips, or for seconds past 64 bits of milliseconds", ErrUnsupported, c.node.path, bad, t.ValueStr(bad), c.zone.loc)
	}
	c.seconds.writeAll(c.secs)
	c.nanos.writeAll(c.ns)
	return nil
}

// maxSeconds keeps milliseconds, which readers compute with, within 64 bits.
const maxSeconds = 1 << 52

// stored gives the seconds to write for a moment or reading of s seconds and ns nanoseconds, and the reading of the clock.
func (c *timestampWriter) stored(s, ns int64) (stored, wall int64, ok bool) {
	if s > maxSeconds || s < -maxSeconds {
		return 0, 0, false
	}
	at := s
	if wall = s; !c.zone.fixed {
		if c.moment {
			wall = s + c.clock.at(s)
		}
		// The stored moment is the one at which the zone of Java's old calendar reads the same. Of two, a moment stays itself.
		if !c.moment || c.zone.at(s) != wall-s {
			at = c.zone.utc(wall)
		}
		if at+c.zone.at(at) != wall {
			return 0, 0, false
		}
	}
	// Readers take one second off where the stored moment is before 1970 and the fraction is a millisecond or more.
	if at < 0 && ns > 999_999 {
		if at++; at == 0 {
			return 0, 0, false
		}
	}
	return at - c.base, wall, true
}

func unitNanos(u arrow.TimeUnit) int64 {
	switch u {
	case arrow.Second:
		return 1e9
	case arrow.Millisecond:
		return 1e6
	case arrow.Microsecond:
		return 1e3
	}
	return 1
}

func (c *timestampWriter) position(to []uint64) []uint64 {
	return c.nanos.position(c.seconds.position(to))
}
func (c *timestampWriter) endGroup()   {}
func (c *timestampWriter) size() int64 { return c.seconds.out.size() + c.nanos.out.size() }
func (c *timestampWriter) finish() []streamBytes {
	c.seconds.flush()
	c.nanos.flush()
	return []streamBytes{{streamInfo{kind: streamData}, c.seconds.out}, {streamInfo{kind: streamSecondary}, c.nanos.out}}
}

// structWriter is struct.
type structWriter struct {
	*columnWriter
	children []valueWriter
	ranges   []span
}

func (c *structWriter) write(a arrow.Array, where []span) error {
	a, done, err := unwrap(a)
	if err != nil {
		return err
	}
	defer done()
	s, ok := a.(*array.Struct)
	if !ok {
		return wrongArray(c.node, a)
	}
	c.ranges = c.ranges[:0]
	c.validity(a, where, func(from, to int) {
		c.ranges = append(c.ranges, span{int64(from), int64(to)})
	})
	for i, child := range c.children {
		if err := child.write(s.Field(i), c.ranges); err != nil {
			return err
		}
	}
	return nil
}

func (c *structWriter) position(to []uint64) []uint64 { return to }
func (c *structWriter) endGroup()                     {}
func (c *structWriter) size() int64                   { return 0 }
func (c *structWriter) finish() []streamBytes         { return nil }

// listWriter is array and map.
type listWriter struct {
	*columnWriter
	lengths  *intEncoder
	children []valueWriter
	ranges   []span
}

func (c *listWriter) write(a arrow.Array, where []span) error {
	a, done, err := unwrap(a)
	if err != nil {
		return err
	}
	defer done()
	l, ok := a.(array.ListLike)
	if !ok {
		return wrongArray(c.node, a)
	}
	c.ranges = c.ranges[:0]
	c.validity(a, where, func(from, to int) {
		for i := from; i < to; i++ {
			start, end := l.ValueOffsets(i)
			c.lengths.write(end - start)
			switch n := len(c.ranges); {
			case start == end:
			case n > 0 && c.ranges[n-1].to == start:
				c.ranges[n-1].to = end
			default:
				c.ranges = append(c.ranges, span{start, end})
			}
		}
	})
	if len(c.children) == 1 {
		return c.children[0].write(l.ListValues(), c.ranges)
	}
	entries := l.ListValues().(*array.Struct)
	for i, child := range c.children {
		if err := child.write(entries.Field(i), c.ranges); err != nil {
			return err
		}
	}
	return nil
}

func (c *listWriter) position(to []uint64) []uint64 { return c.lengths.position(to) }
func (c *listWriter) endGroup()                     {}
func (c *listWriter) size() int64                   { return c.lengths.out.size() }
func (c *listWriter) finish() []streamBytes {
	c.lengths.flush()
	return []streamBytes{{streamInfo{kind: streamLength}, c.lengths.out}}
}
