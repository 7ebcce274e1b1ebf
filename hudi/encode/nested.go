package encode

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// nested compiles structs, lists and maps. Their texts are JSON in every writer.
func (c *compiler) nested(dt arrow.DataType) (binder, error) {
	in := *c
	in.bare = false
	switch dt := dt.(type) {
	case *arrow.StructType:
		return in.structure(dt)
	case *arrow.MapType:
		return in.mapping(dt)
	case arrow.ListLikeType:
		return in.list(dt)
	}
	return nil, fmt.Errorf("%w: %s", ErrType, dt)
}

// member is a column of a row or a member of a struct.
type member struct {
	name  []byte // `"name":`
	value binder
}

func (c *compiler) members(fields []arrow.Field) ([]member, error) {
	out := make([]member, len(fields))
	for i, f := range fields {
		b, err := c.compile(f.Type)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
		out[i] = member{append(appendString(nil, f.Name), ':'), b}
	}
	return out, nil
}

// object writes the members of a row or struct.
type object struct {
	members []member
	arrays  []arrow.Array
	values  []appender
	nulls   []bool // the array may hold nulls
	omit    bool   // leave nulls out
}

func (c *compiler) object(members []member, arrays []arrow.Array) *object {
	o := &object{members: members, arrays: arrays, values: make([]appender, len(members)), nulls: make([]bool, len(members)), omit: c.Style == Spark}
	for i, m := range members {
		o.values[i] = m.value(arrays[i])
		o.nulls[i] = arrays[i].NullN() > 0 || arrays[i].DataType().ID() == arrow.NULL
	}
	return o
}

func (o *object) append(dst []byte, i int) []byte {
	dst = append(dst, '{')
	first := true
	for m := range o.members {
		null := o.nulls[m] && (o.arrays[m].IsNull(i) || o.arrays[m].DataType().ID() == arrow.NULL)
		if null && o.omit {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, o.members[m].name...)
		if null {
			dst = append(dst, "null"...)
		} else {
			dst = o.values[m](dst, i)
		}
	}
	return append(dst, '}')
}

func (c *compiler) structure(dt *arrow.StructType) (binder, error) {
	members, err := c.members(dt.Fields())
	if err != nil {
		return nil, err
	}
	return func(a arrow.Array) appender {
		s := a.(*array.Struct)
		arrays := make([]arrow.Array, len(members))
		for i := range arrays {
			arrays[i] = s.Field(i)
		}
		return c.object(members, arrays).append
	}, nil
}

func (c *compiler) list(dt arrow.ListLikeType) (binder, error) {
	elem, err := c.compile(dt.Elem())
	if err != nil {
		return nil, err
	}
	return func(a arrow.Array) appender {
		l := a.(array.ListLike)
		value := nullSafe(l.ListValues(), elem)
		return func(dst []byte, i int) []byte {
			from, to := l.ValueOffsets(i)
			dst = append(dst, '[')
			for j := from; j < to; j++ {
				if j > from {
					dst = append(dst, ',')
				}
				dst = value(dst, int(j))
			}
			return append(dst, ']')
		}
	}, nil
}

func (c *compiler) mapping(dt *arrow.MapType) (binder, error) {
	item, err := c.compile(dt.ItemType())
	if err != nil {
		return nil, err
	}
	asObject := c.Style == Spark
	switch dt.KeyType().ID() {
	case arrow.STRING, arrow.LARGE_STRING:
		asObject = true
	}
	var key binder
	if asObject {
		key, err = c.key(dt.KeyType())
	} else {
		key, err = c.compile(dt.KeyType())
	}
	if err != nil {
		return nil, err
	}
	return func(a arrow.Array) appender {
		m := a.(*array.Map)
		k, v := nullSafe(m.Keys(), key), nullSafe(m.Items(), item)
		open, shut := byte('['), byte(']')
		if asObject {
			open, shut = '{', '}'
		}
		return func(dst []byte, i int) []byte {
			from, to := m.ValueOffsets(i)
			dst = append(dst, open)
			for j := int(from); j < int(to); j++ {
				if j > int(from) {
					dst = append(dst, ',')
				}
				if asObject {
					dst = append(k(dst, j), ':')
					dst = v(dst, j)
				} else {
					dst = k(append(dst, `{"key":`...), j)
					dst = v(append(dst, `,"value":`...), j)
					dst = append(dst, '}')
				}
			}
			return append(dst, shut)
		}
	}, nil
}

// key is a map key as the name of a member: Spark writes the internal value of types that are no text.
func (c *compiler) key(dt arrow.DataType) (binder, error) {
	bare := *c
	bare.bare = true
	var b binder
	var err error
	switch dt := dt.(type) {
	case *arrow.StringType, *arrow.LargeStringType:
		return c.compile(dt)
	case *arrow.Date32Type:
		b = integers[int32]()
	case *arrow.TimestampType:
		b = func(a arrow.Array) appender {
			v := a.(*array.Timestamp).TimestampValues()
			return func(dst []byte, i int) []byte { return appendInternal(dst, int64(v[i]), dt.Unit) }
		}
	default:
		b, err = bare.compile(dt)
	}
	return c.quote(b), err
}

// appendInternal writes a timestamp as microseconds.
func appendInternal(dst []byte, v int64, unit arrow.TimeUnit) []byte {
	switch unit {
	case arrow.Second:
		v *= 1000000
	case arrow.Millisecond:
		v *= 1000
	case arrow.Nanosecond:
		v = floorDiv(v, 1000)
	}
	return appendScaled(dst, v, 0)
}
