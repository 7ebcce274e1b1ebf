package schema

import (
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// ErrEvolution is wrapped by every error about a file's columns that can't be brought to the table's.
var ErrEvolution = errors.New("schema can't be resolved")

// ResolveOptions of [Resolve].
type ResolveOptions struct {
	// File is named in errors.
	File string
	// Table is the Avro schema behind the wanted Arrow schema. It gives the defaults of columns that the file has not; without
	// it a missing column is null.
	Table *Type
	// Names maps a wanted column's path to its path in the file, from [FileNames]. A path that is not in the map keeps its name.
	Names map[string]string
	// SchemaOnRead allows the changes that Apache Hudi has for older files only with hoodie.schema.on.read.enable, and for rows
	// that come in always: decimals and dates to text, numbers and text to decimal, text to date.
	SchemaOnRead bool
	// NullForRequired makes a required column that the file has not, and that has no default, null and nullable, instead of
	// an error.
	NullForRequired bool
}

// Resolution brings batches of one shape to another. It is compiled once by [Resolve] and safe for concurrent use.
type Resolution struct {
	to      *arrow.Schema
	columns []column
	same    bool
	file    string
}

// column says where one wanted column comes from: from a column of the source (from >= 0) through cast (nil: as it is), or
// from fill.
type column struct {
	from int
	cast castFunc
	fill fillFunc
	// required: the table allows no null although the file does; path names the column then.
	required bool
	path     string
}

type castFunc func(mem memory.Allocator, in arrow.Array) (arrow.Array, error)
type fillFunc func(mem memory.Allocator, rows int) (arrow.Array, error)

// Resolve compiles the change from a file's columns to the wanted ones by Avro's rules of resolution (table format 6.6,
// trap 28): columns match by name at every level (without regard to case where no exact name is there, as Spark does), their
// order is free, a missing one takes its default or null, int→long→float→double→string, string↔bytes, a decimal takes a wider
// precision and scale, timestamps and times change their unit. A float becomes the double of the same shortest decimal text
// (1.1 stays 1.1), as Apache Hudi's writers and readers do it, not the double nearest to the float's bits.
//
// An error wraps [ErrEvolution] and names the column, both types and the file.
func Resolve(from, to *arrow.Schema, o ResolveOptions) (*Resolution, error) {
	r := &Resolution{file: o.File}
	c := compiler{ResolveOptions: o}
	fields := append([]arrow.Field(nil), to.Fields()...)
	var err error
	if r.columns, r.same, err = c.fields(from.Fields(), fields, o.Table, "", ""); err != nil {
		return nil, c.wrap(err)
	}
	meta := to.Metadata()
	r.to = arrow.NewSchema(fields, &meta)
	return r, nil
}

// Schema is the wanted schema; it differs from what was asked for only under NullForRequired.
func (r *Resolution) Schema() *arrow.Schema { return r.to }

// Same reports that batches pass unchanged, so Batch need not be called.
func (r *Resolution) Same() bool { return r.same }

// Batch gives a new batch of the wanted columns; columns that need no change are shared. The caller releases it, and in.
func (r *Resolution) Batch(mem memory.Allocator, in arrow.RecordBatch) (arrow.RecordBatch, error) {
	rows := int(in.NumRows())
	cols, err := applyColumns(mem, r.columns, rows, in.Columns(), nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %s%w", ErrEvolution, fileNote(r.file), err)
	}
	out := array.NewRecordBatch(r.to, cols, int64(rows))
	releaseAll(cols)
	return out, nil
}

func fileNote(file string) string {
	if file == "" {
		return ""
	}
	return "file " + file + ": "
}

func releaseAll(arrays []arrow.Array) {
	for _, a := range arrays {
		if a != nil {
			a.Release()
		}
	}
}

// applyColumns makes the wanted columns of a record from the source's. parent is the struct they belong to, nil at the top.
func applyColumns(mem memory.Allocator, columns []column, rows int, source []arrow.Array, parent arrow.ArrayData) (_ []arrow.Array, err error) {
	out := make([]arrow.Array, len(columns))
	defer func() {
		if err != nil {
			releaseAll(out)
		}
	}()
	for i, c := range columns {
		if c.fill != nil {
			if out[i], err = c.fill(mem, rows); err != nil {
				return nil, err
			}
			continue
		}
		in := source[c.from]
		if c.required && in.NullN() > 0 && missesValue(in, parent) {
			return nil, fmt.Errorf("column %s is required by the table schema, but the file holds a null", c.path)
		}
		if c.cast == nil {
			in.Retain()
			out[i] = in
		} else if out[i], err = c.cast(mem, in); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// missesValue: is there a null where the parent is not null itself?
func missesValue(in arrow.Array, parent arrow.ArrayData) bool {
	if parent == nil || parent.NullN() == 0 || parent.Buffers()[0] == nil {
		return true
	}
	valid := parent.Buffers()[0].Bytes()
	for i := parent.Offset(); i < parent.Offset()+parent.Len(); i++ {
		if bitutil.BitIsSet(valid, i) && in.IsNull(i) {
			return true
		}
	}
	return false
}

type compiler struct {
	ResolveOptions
}

func (c *compiler) wrap(err error) error {
	return fmt.Errorf("%w: %s%w", ErrEvolution, fileNote(c.File), err)
}

// fields matches the members of one record. It may make members of to nullable (NullForRequired). same: nothing changes.
func (c *compiler) fields(from, to []arrow.Field, table *Type, toPath, fromPath string) (columns []column, same bool, err error) {
	same = len(from) == len(to)
	columns = make([]column, len(to))
	for i := range to {
		f := &to[i]
		path := join(toPath, f.Name)
		at, filePath, err := c.find(from, f.Name, path, fromPath)
		if err != nil {
			return nil, false, err
		}
		var avro *Type
		var def *Field
		if table != nil {
			if def, _ = table.Field(f.Name); def != nil {
				avro = def.Type
			}
		}
		if at < 0 {
			same = false
			columns[i].from = -1
			if columns[i].fill, err = c.missing(f, def, path); err != nil {
				return nil, false, err
			}
			continue
		}
		columns[i].from = at
		if columns[i].cast, f.Type, err = c.cast(from[at].Type, f.Type, avro, path, filePath); err != nil {
			return nil, false, err
		}
		if !f.Nullable && from[at].Nullable {
			columns[i].required, columns[i].path = true, path
			same = false
		}
		same = same && at == i && columns[i].cast == nil && from[at].Nullable == f.Nullable && from[at].Name == f.Name
	}
	return columns, same, nil
}

// find gives the index of the source of a wanted member, or -1, and the source's path.
func (c *compiler) find(from []arrow.Field, name, path, fromPath string) (int, string, error) {
	if c.Names != nil {
		if filePath, ok := c.Names[path]; ok {
			if filePath == "" {
				return -1, "", nil
			}
			name = filePath[strings.LastIndexByte(filePath, '.')+1:]
		}
	}
	at, err := FindField(from, name)
	if err != nil {
		return -1, "", fmt.Errorf("column %s: %w", path, err)
	}
	return at, join(fromPath, name), nil
}

// FindField gives the index of the member of that name, or of the only one that differs in case alone, or -1. Two members of
// the name are an error.
func FindField(fields []arrow.Field, name string) (int, error) {
	exact, folded, nFolded := -1, -1, 0
	for i := range fields {
		switch {
		case fields[i].Name == name:
			if exact >= 0 {
				return -1, fmt.Errorf("the file has two columns named %q", name)
			}
			exact = i
		case len(fields[i].Name) == len(name) && strings.EqualFold(fields[i].Name, name):
			folded = i
			nFolded++
		}
	}
	switch {
	case exact >= 0:
		return exact, nil
	case nFolded > 1:
		return -1, fmt.Errorf("the file has several columns that differ from %q in case only", name)
	}
	return folded, nil
}

func (c *compiler) missing(f *arrow.Field, def *Field, path string) (fillFunc, error) {
	if def != nil && def.Default != nil && string(def.Default) != "null" {
		dt := f.Type
		one, err := defaultValue(dt, def)
		if err != nil {
			return nil, fmt.Errorf("column %s: default %s: %w", path, def.Default, err)
		}
		return one, nil
	}
	if !f.Nullable {
		if !c.NullForRequired {
			return nil, fmt.Errorf("column %s of type %s is required, has no default, and the file does not have it", path, f.Type)
		}
		f.Nullable = true
	}
	dt := f.Type
	return func(mem memory.Allocator, rows int) (arrow.Array, error) {
		return array.MakeArrayOfNull(mem, dt, rows), nil
	}, nil
}

// requireValues refuses nulls among elements or map values that the table schema calls required although the file does not.
func requireValues(cast castFunc, path string) castFunc {
	return func(mem memory.Allocator, in arrow.Array) (arrow.Array, error) {
		if n := in.NullN(); n > 0 {
			return nil, fmt.Errorf("column %s is required by the table schema, but the file holds %d nulls in a batch of %d rows", path, n, in.Len())
		}
		if cast != nil {
			return cast(mem, in)
		}
		in.Retain()
		return in, nil
	}
}

// cast compiles the change of one type, nil where there is none, and gives the type that comes out.
func (c *compiler) cast(from, to arrow.DataType, table *Type, path, filePath string) (castFunc, arrow.DataType, error) {
	if arrow.TypeEqual(from, to) && len(c.Names) == 0 {
		return nil, to, nil
	}
	if table != nil {
		table, _ = table.Optional()
	}
	switch to := to.(type) {
	case *arrow.StructType:
		if from, ok := from.(*arrow.StructType); ok {
			return c.structCast(from, to, table, path, filePath)
		}
	case *arrow.MapType:
		if from, ok := from.(*arrow.MapType); ok {
			return c.mapCast(from, to, table, path, filePath)
		}
	case *arrow.ListType:
		if from, ok := from.(arrow.ListLikeType); ok && from.ID() != arrow.MAP {
			return c.listCast(from, to, table, path, filePath)
		}
	default:
		cast, err := c.primitive(from, to)
		if err != nil {
			return nil, nil, fmt.Errorf("column %s: %w", path, err)
		}
		if cast == nil {
			return nil, to, nil
		}
		return func(mem memory.Allocator, in arrow.Array) (arrow.Array, error) {
			out, err := cast(mem, in)
			if err != nil {
				return nil, fmt.Errorf("column %s (%s in the file, %s in the table): %w", path, from, to, err)
			}
			return out, nil
		}, to, nil
	}
	if from.ID() == arrow.NULL {
		return func(mem memory.Allocator, in arrow.Array) (arrow.Array, error) {
			return array.MakeArrayOfNull(mem, to, in.Len()), nil
		}, to, nil
	}
	return nil, nil, fmt.Errorf("column %s: %w", path, incompatible(from, to))
}

func incompatible(from, to arrow.DataType) error {
	return fmt.Errorf("type %s in the file can't become %s", from, to)
}

func (c *compiler) structCast(from, to *arrow.StructType, table *Type, path, filePath string) (castFunc, arrow.DataType, error) {
	if table != nil && table.Kind != Record {
		table = nil // a union of several types reads as a struct of members
	}
	fields := append([]arrow.Field(nil), to.Fields()...)
	columns, same, err := c.fields(from.Fields(), fields, table, path, filePath)
	if err != nil {
		return nil, nil, err
	}
	if same {
		return nil, to, nil
	}
	out := arrow.StructOf(fields...)
	return func(mem memory.Allocator, in arrow.Array) (arrow.Array, error) {
		data := in.Data()
		// Children are taken whole and the offset is kept: a struct's validity and children share one offset. They may reach
		// beyond a slice, so values there that can't be cast would fail it; slices of damaged data are not worth a copy.
		children := data.Children()
		rows := data.Offset() + data.Len()
		kids := arraysOf(children)
		defer releaseAll(kids)
		made, err := applyColumns(mem, columns, rows, kids, data)
		if err != nil {
			return nil, err
		}
		defer releaseAll(made)
		return rebuild(out, data, data.Buffers()[:1], made), nil
	}, out, nil
}

func (c *compiler) listCast(from arrow.ListLikeType, to *arrow.ListType, table *Type, path, filePath string) (castFunc, arrow.DataType, error) {
	if table != nil {
		table = table.Items
	}
	elem := to.ElemField()
	path, filePath = join(path, "element"), join(filePath, "element")
	cast, dt, err := c.cast(from.Elem(), elem.Type, table, path, filePath)
	if err != nil {
		return nil, nil, err
	}
	if from.ElemField().Nullable && !elem.Nullable {
		cast = requireValues(cast, path)
	}
	if cast == nil && from.ID() == arrow.LIST && from.ElemField().Nullable == elem.Nullable {
		return nil, to, nil
	}
	elem.Type = dt
	out := arrow.ListOfField(elem)
	return func(mem memory.Allocator, in arrow.Array) (arrow.Array, error) {
		offsets, release, err := listOffsets(mem, in)
		if err != nil {
			return nil, err
		}
		defer release()
		return castItems(mem, out, in, offsets, cast)
	}, out, nil
}

func (c *compiler) mapCast(from, to *arrow.MapType, table *Type, path, filePath string) (castFunc, arrow.DataType, error) {
	if table != nil {
		table = table.Items
	}
	key, _, err := c.cast(from.KeyType(), to.KeyType(), nil, join(path, "key"), join(filePath, "key"))
	if err != nil {
		return nil, nil, err
	}
	item, dt, err := c.cast(from.ItemType(), to.ItemType(), table, join(path, "value"), join(filePath, "value"))
	if err != nil {
		return nil, nil, err
	}
	nullableItem := to.ItemField().Nullable
	if from.ItemField().Nullable && !nullableItem {
		item = requireValues(item, join(path, "value"))
	}
	if key == nil && item == nil && from.ItemField().Nullable == nullableItem && from.KeysSorted == to.KeysSorted {
		return nil, to, nil
	}
	out := arrow.MapOf(to.KeyType(), dt)
	out.SetItemNullable(nullableItem)
	out.KeysSorted = to.KeysSorted
	entries := out.Elem().(*arrow.StructType)
	columns := []column{{from: 0, cast: key}, {from: 1, cast: item}}
	return func(mem memory.Allocator, in arrow.Array) (arrow.Array, error) {
		return castItems(mem, out, in, in.Data().Buffers()[1], func(mem memory.Allocator, kv arrow.Array) (arrow.Array, error) {
			data := kv.Data()
			children := data.Children()
			kids := arraysOf(children)
			defer releaseAll(kids)
			made, err := applyColumns(mem, columns, data.Offset()+data.Len(), kids, nil)
			if err != nil {
				return nil, err
			}
			defer releaseAll(made)
			return rebuild(entries, data, data.Buffers()[:1], made), nil
		})
	}, out, nil
}

func arraysOf(children []arrow.ArrayData) []arrow.Array {
	out := make([]arrow.Array, len(children))
	for i, c := range children {
		out[i] = array.MakeFromData(c)
	}
	return out
}

// castItems gives a list (or map) with the same validity and these offsets over changed items.
func castItems(mem memory.Allocator, out arrow.DataType, in arrow.Array, offsets *memory.Buffer, cast castFunc) (arrow.Array, error) {
	data := in.Data()
	items := array.MakeFromData(data.Children()[0])
	defer items.Release()
	made := items
	if cast != nil {
		var err error
		if made, err = cast(mem, items); err != nil {
			return nil, err
		}
		defer made.Release()
	}
	return rebuild(out, data, []*memory.Buffer{data.Buffers()[0], offsets}, []arrow.Array{made}), nil
}

func rebuild(dt arrow.DataType, old arrow.ArrayData, buffers []*memory.Buffer, children []arrow.Array) arrow.Array {
	kids := make([]arrow.ArrayData, len(children))
	for i, c := range children {
		kids[i] = c.Data()
	}
	data := array.NewData(dt, old.Len(), buffers, kids, old.NullN(), old.Offset())
	defer data.Release()
	return array.MakeFromData(data)
}
