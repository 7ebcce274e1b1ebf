// Package avrocodec decodes Avro binary straight into Arrow column builders.
//
// [Compile] turns a writer schema into a plan once; an [Appender] then runs it over records without maps, reflection or an
// allocation per value. Columns keep the types that the writer gave them (schema.Type.Arrow); bringing them to the table's
// columns is the one rule in schema.Resolve, which works on whole batches. Fields that nobody wants are skipped undecoded.
//
// Input is never trusted: lengths, counts and branch numbers are checked against what remains of the record, and depth is
// bounded, so that a damaged record costs an error and no memory.
package avrocodec

import (
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/schema"
)

// ErrData is wrapped by every error about bytes that are no record of the schema.
var ErrData = errors.New("invalid Avro data")

// Options of Compile.
type Options struct {
	// Columns are the wanted ones, matched as schema.Resolve matches them; nil wants all. Members of nested records that
	// Columns does not have are skipped too. The types need not be the writer's.
	Columns *arrow.Schema
	// Names maps a wanted column's path to its path in the records (schema.FileNames).
	Names map[string]string
	// Key names the text field that an HFile value leaves empty because the HFile's key holds it (table format 9.4). It gets
	// the key that AppendKeyed was given.
	Key string
}

// Decoder is a compiled plan. Immutable, safe for concurrent use.
type Decoder struct {
	writer *schema.Type
	root   *node
	out    *arrow.Schema
	key    string
}

// node is the plan of one record: for each of the writer's fields a wanted column, or nil to skip it.
type node struct {
	fields []*want
	arrow  []arrow.Field
}

// want says that a writer's field becomes column at of its record; children is set below nested records that are pruned.
type want struct {
	at  int
	sub *shape
}

// shape is the plan of a value: nil means decode everything as it is.
type shape struct {
	record *node  // of a record
	items  *shape // of array elements and map values
}

// Compile plans the decoding of records of the writer schema.
func Compile(writer *schema.Type, o Options) (*Decoder, error) {
	if writer == nil || writer.Kind != schema.Record {
		return nil, fmt.Errorf("%w: records need a record schema", schema.ErrSchema)
	}
	var columns []arrow.Field
	if o.Columns != nil {
		columns = o.Columns.Fields()
		if columns == nil {
			columns = []arrow.Field{}
		}
	}
	root, err := planRecord(writer, columns, o.Names, 0)
	if err != nil {
		return nil, fmt.Errorf("record %s: %w", writer.Name, err)
	}
	return &Decoder{writer: writer, root: root, out: arrow.NewSchema(root.arrow, nil), key: o.Key}, nil
}

// Schema is the shape of the decoded columns: the wanted fields in the writer's order, with the writer's types.
func (d *Decoder) Schema() *arrow.Schema { return d.out }

// NewBuilder gives a builder of the decoded columns.
func (d *Decoder) NewBuilder(mem memory.Allocator) *array.RecordBuilder {
	return array.NewRecordBuilder(mem, d.out)
}

// planRecord picks the wanted fields. columns nil wants all.
func planRecord(t *schema.Type, columns []arrow.Field, names map[string]string, depth int) (*node, error) {
	n := &node{fields: make([]*want, len(t.Fields))}
	subs := make([]arrow.DataType, len(t.Fields))
	if columns != nil {
		own := make([]arrow.Field, len(t.Fields))
		for i := range t.Fields {
			own[i].Name = t.Fields[i].Name
		}
		for _, c := range columns {
			i, err := findField(own, c.Name, names)
			if err != nil {
				return nil, err
			}
			if i >= 0 {
				n.fields[i], subs[i] = &want{}, c.Type
			}
		}
		if len(names) > 0 {
			clear(subs) // below a renamed column nothing is pruned
		}
	}
	for i := range t.Fields {
		f := &t.Fields[i]
		if columns == nil {
			n.fields[i] = &want{}
		}
		w := n.fields[i]
		if w == nil {
			continue
		}
		if expand(f.Type, maxValues) == 0 {
			return nil, fmt.Errorf("field %s: %w: recursive, or more than %d values", f.Name, schema.ErrSchema, maxValues)
		}
		sub, dt, nullable, err := planValue(f.Type, subs[i], depth+1)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
		w.sub, w.at = sub, len(n.arrow)
		n.arrow = append(n.arrow, arrow.Field{Name: f.Name, Type: dt, Nullable: nullable})
	}
	return n, nil
}

// expand counts a type down from a budget and gives what is left: 0 when it expands to more.
func expand(t *schema.Type, left int) int {
	if left--; left <= 0 {
		return 0
	}
	if t.Items != nil {
		left = expand(t.Items, left)
	}
	for _, b := range t.Branches {
		left = expand(b, left)
	}
	for i := range t.Fields {
		left = expand(t.Fields[i].Type, left)
	}
	return left
}

func findField(own []arrow.Field, name string, names map[string]string) (int, error) {
	if path, ok := names[name]; ok {
		if path == "" {
			return -1, nil
		}
		name = path[strings.LastIndexByte(path, '.')+1:]
	}
	return schema.FindField(own, name)
}

// planValue prunes nested records where the wanted type is a struct too.
func planValue(t *schema.Type, wanted arrow.DataType, depth int) (*shape, arrow.DataType, bool, error) {
	inner, optional := t.Optional()
	switch wanted := wanted.(type) {
	case *arrow.StructType:
		if inner.Kind != schema.Record {
			break
		}
		n, err := planRecord(inner, wanted.Fields(), nil, depth+1)
		if err != nil {
			return nil, nil, false, err
		}
		if len(n.arrow) == 0 {
			break // a struct without members would lose its nulls' meaning: keep it whole
		}
		return &shape{record: n}, arrow.StructOf(n.arrow...), optional, nil
	case *arrow.MapType:
		if inner.Kind != schema.Map {
			break
		}
		sub, dt, null, err := planValue(inner.Items, wanted.ItemType(), depth+1)
		if err != nil {
			return nil, nil, false, err
		}
		m := arrow.MapOf(arrow.BinaryTypes.String, dt)
		m.SetItemNullable(null)
		return &shape{items: sub}, m, optional, nil
	case arrow.ListLikeType:
		if inner.Kind != schema.Array {
			break
		}
		sub, dt, null, err := planValue(inner.Items, wanted.Elem(), depth+1)
		if err != nil {
			return nil, nil, false, err
		}
		return &shape{items: sub}, arrow.ListOfField(arrow.Field{Name: "element", Type: dt, Nullable: null}), optional, nil
	}
	dt, nullable, err := t.ArrowType(depth)
	return nil, dt, nullable, err
}
