package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// defaultValue compiles the filling of a column with its Avro default. In a union the default is of the first branch; Apache
// Hudi's Java also takes one of a later branch, and so do we.
func defaultValue(dt arrow.DataType, f *Field) (fillFunc, error) {
	probe := array.NewBuilder(memory.NewGoAllocator(), dt)
	defer probe.Release()
	if err := appendDefault(probe, f.Type, f.Default); err != nil {
		return nil, err
	}
	return func(mem memory.Allocator, rows int) (arrow.Array, error) {
		b := array.NewBuilder(mem, dt)
		defer b.Release()
		b.Reserve(rows)
		for range rows {
			if err := appendDefault(b, f.Type, f.Default); err != nil {
				return nil, err
			}
		}
		return b.NewArray(), nil
	}, nil
}

func appendDefault(b array.Builder, t *Type, text json.RawMessage) error {
	text = bytes.TrimSpace(text)
	if t.Kind == Union {
		return appendUnionDefault(b, t, text)
	}
	if string(text) == "null" {
		if t.Kind != Null {
			return fmt.Errorf("null is no %s", t.Kind)
		}
		b.AppendNull()
		return nil
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		var v bool
		err := json.Unmarshal(text, &v)
		b.Append(v)
		return err
	case *array.StringBuilder:
		var v string
		err := json.Unmarshal(text, &v)
		b.Append(v)
		return err
	case *array.BinaryBuilder:
		v, err := byteText(text)
		b.Append(v)
		return err
	case *array.FixedSizeBinaryBuilder:
		v, err := byteText(text)
		if err == nil && len(v) != t.Size {
			err = fmt.Errorf("%d bytes for a fixed of %d", len(v), t.Size)
		}
		if err == nil {
			b.Append(v)
		}
		return err
	case *array.Decimal128Builder:
		v, err := byteText(text)
		if err == nil && (len(v) == 0 || len(v) > 16) {
			err = fmt.Errorf("decimal of %d bytes", len(v))
		}
		if err == nil {
			b.Append(BigEndianDecimal(v))
		}
		return err
	case *array.ListBuilder:
		var items []json.RawMessage
		if err := json.Unmarshal(text, &items); err != nil || t.Kind != Array {
			return fmt.Errorf("no array: %w", err)
		}
		b.Append(true)
		for _, it := range items {
			if err := appendDefault(b.ValueBuilder(), t.Items, it); err != nil {
				return err
			}
		}
		return nil
	case *array.MapBuilder:
		return appendMapDefault(b, t, text)
	case *array.StructBuilder:
		return appendRecordDefault(b, t, text)
	}
	return appendNumberDefault(b, text)
}

func appendUnionDefault(b array.Builder, t *Type, text json.RawMessage) error {
	if inner, ok := t.Optional(); ok && string(text) != "null" {
		return appendDefault(b, inner, text)
	}
	if string(text) == "null" {
		b.AppendNull()
		return nil
	}
	return fmt.Errorf("a default that is not null for a union of %d types is not supported", len(t.Branches))
}

func appendNumberDefault(b array.Builder, text json.RawMessage) error {
	switch b := b.(type) {
	case *array.Float32Builder:
		v, err := strconv.ParseFloat(string(text), 32)
		b.Append(float32(v))
		return err
	case *array.Float64Builder:
		v, err := strconv.ParseFloat(string(text), 64)
		b.Append(v)
		return err
	}
	bits := 64
	switch b.(type) {
	case *array.Int32Builder, *array.Date32Builder, *array.Time32Builder:
		bits = 32
	}
	v, err := strconv.ParseInt(string(text), 10, bits)
	if err != nil {
		return err
	}
	switch b := b.(type) {
	case *array.Int32Builder:
		b.Append(int32(v))
	case *array.Int64Builder:
		b.Append(v)
	case *array.Date32Builder:
		b.Append(arrow.Date32(v))
	case *array.Time32Builder:
		b.Append(arrow.Time32(v))
	case *array.Time64Builder:
		b.Append(arrow.Time64(v))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v))
	default:
		return fmt.Errorf("a default of Arrow type %s is not supported", b.Type())
	}
	return nil
}

func appendMapDefault(b *array.MapBuilder, t *Type, text json.RawMessage) error {
	var items map[string]json.RawMessage
	if err := json.Unmarshal(text, &items); err != nil || t.Kind != Map {
		return fmt.Errorf("no map: %w", err)
	}
	b.Append(true)
	for k, v := range items {
		b.KeyBuilder().(*array.StringBuilder).Append(k)
		if err := appendDefault(b.ItemBuilder(), t.Items, v); err != nil {
			return err
		}
	}
	return nil
}

func appendRecordDefault(b *array.StructBuilder, t *Type, text json.RawMessage) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil || t.Kind != Record {
		return fmt.Errorf("no record: %w", err)
	}
	st := b.Type().(*arrow.StructType)
	b.Append(true)
	for i := range st.NumFields() {
		f, ok := t.Field(st.Field(i).Name)
		if !ok {
			b.FieldBuilder(i).AppendNull()
			continue
		}
		v, ok := members[f.Name]
		if !ok {
			if v = f.Default; v == nil {
				return fmt.Errorf("record without member %s", f.Name)
			}
		}
		if err := appendDefault(b.FieldBuilder(i), f.Type, v); err != nil {
			return err
		}
	}
	return nil
}

// byteText reads Avro's JSON of bytes: one character from U+0000 to U+00FF per byte.
func byteText(text json.RawMessage) ([]byte, error) {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(s))
	for _, r := range s {
		if r > 0xFF {
			return nil, fmt.Errorf("character %q in bytes", r)
		}
		out = append(out, byte(r))
	}
	return out, nil
}

// BigEndianDecimal reads the two's complement of an Avro or Parquet decimal, 1 to 16 bytes.
func BigEndianDecimal(b []byte) decimal128.Num {
	var hi, lo uint64
	if b[0]&0x80 != 0 {
		hi, lo = ^uint64(0), ^uint64(0)
	}
	for _, c := range b {
		hi = hi<<8 | lo>>56
		lo = lo<<8 | uint64(c)
	}
	return decimal128.New(int64(hi), lo)
}
