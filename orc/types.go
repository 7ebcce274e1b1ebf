package orc

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// typeKind is the kind of an ORC type, by its number in the format.
type typeKind uint8

const (
	kindBoolean          typeKind = 0
	kindByte             typeKind = 1
	kindShort            typeKind = 2
	kindInt              typeKind = 3
	kindLong             typeKind = 4
	kindFloat            typeKind = 5
	kindDouble           typeKind = 6
	kindString           typeKind = 7
	kindBinary           typeKind = 8
	kindTimestamp        typeKind = 9
	kindList             typeKind = 10
	kindMap              typeKind = 11
	kindStruct           typeKind = 12
	kindUnion            typeKind = 13
	kindDecimal          typeKind = 14
	kindDate             typeKind = 15
	kindVarchar          typeKind = 16
	kindChar             typeKind = 17
	kindTimestampInstant typeKind = 18
)

// Names of kinds in ORC's own notation.
var kindNames = [...]string{"boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "timestamp", "array",
	"map", "struct", "uniontype", "decimal", "date", "varchar", "char", "timestamp with local time zone"}

// maxDepth is how deep types may nest: far beyond real tables, and shallow enough for recursion.
const maxDepth = 100

// The precision and scale of decimals of Hive 0.11, whose types name none (the default of Hive's decimal).
const (
	defaultPrecision = 38
	defaultScale     = 10
	maxPrecision     = 38
)

// node is one type of the tree. Column ids are the positions of types in the footer: a pre-order walk.
type node struct {
	id        int
	kind      typeKind
	children  []*node
	names     []string // of a struct's children
	maxLength uint32   // of varchar and char, in characters
	precision int32    // of decimal
	scale     int32
	wallClock bool   // of a bigint: see typeMessage
	path      string // for messages: "a.b.element"
}

// buildTree makes the tree of a footer's flat list of types.
func buildTree(types []typeMessage, m *budget) (*node, error) {
	if len(types) == 0 {
		return nil, fmt.Errorf("%w: the footer lists no types", ErrFormat)
	}
	seen := 0
	root, err := buildNode(types, 0, "", 0, &seen, m)
	if err != nil {
		return nil, err
	}
	if seen != len(types) {
		return nil, fmt.Errorf("%w: %d of %d types hang below the root", ErrFormat, seen, len(types))
	}
	return root, nil
}

func buildNode(types []typeMessage, id int, path string, depth int, seen *int, m *budget) (*node, error) {
	t := &types[id]
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: types nest deeper than %d levels at column %s", ErrFormat, maxDepth, path)
	}
	// A pre-order walk numbers types without gaps, so the next one is always this id: no cycle, no type used twice.
	if id != *seen {
		return nil, fmt.Errorf("%w: type %d of column %q is not where a walk of the tree expects it (%d)", ErrFormat, id, path, *seen)
	}
	*seen++
	if err := m.grow(int64(len(path)), "the paths of columns"); err != nil {
		return nil, err
	}
	n := &node{id: id, kind: t.kind, names: t.names, maxLength: t.maxLength, path: path, wallClock: t.wallClock}
	want := 0
	switch t.kind {
	case kindList:
		want = 1
	case kindMap:
		want = 2
	case kindStruct:
		want = len(t.names)
	case kindUnion:
		if want = len(t.subtypes); want > 256 {
			return nil, fmt.Errorf("%w: union %q has %d branches, the most are 256", ErrFormat, path, want)
		}
	case kindDecimal:
		n.precision, n.scale = int32(min(t.precision, 1000)), int32(min(t.scale, 1000))
		if t.precision == 0 {
			n.precision, n.scale = defaultPrecision, defaultScale
		}
		if n.precision > maxPrecision || n.scale > n.precision {
			return nil, fmt.Errorf("%w: column %q is decimal(%d,%d)", ErrFormat, path, t.precision, t.scale)
		}
	default:
		if int(t.kind) >= len(kindNames) {
			return nil, fmt.Errorf("%w: column %q has a type of kind %d, which this version does not know", ErrUnsupported, path, t.kind)
		}
	}
	if len(t.subtypes) != want {
		return nil, fmt.Errorf("%w: %s %q has %d subtypes, not %d", ErrFormat, kindNames[t.kind], path, len(t.subtypes), want)
	}
	for i, sub := range t.subtypes {
		if sub >= uint64(len(types)) {
			return nil, fmt.Errorf("%w: column %q refers to type %d of %d", ErrFormat, path, sub, len(types))
		}
		child, err := buildNode(types, int(sub), joinPath(path, t.childName(i)), depth+1, seen, m)
		if err != nil {
			return nil, err
		}
		n.children = append(n.children, child)
	}
	return n, nil
}

// childName names a subtype as Arrow will.
func (t *typeMessage) childName(i int) string {
	switch t.kind {
	case kindStruct:
		return t.names[i]
	case kindList:
		return elementName
	case kindMap:
		return [...]string{"key", "value"}[i]
	}
	return fmt.Sprintf("member%d", i)
}

func joinPath(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "." + name
}

// String gives the type in ORC's own notation, such as struct<a:int,b:array<varchar(10)>>.
func (n *node) String() string {
	var b strings.Builder
	n.print(&b)
	return b.String()
}

func (n *node) print(b *strings.Builder) {
	b.WriteString(kindNames[n.kind])
	switch n.kind {
	case kindVarchar, kindChar:
		fmt.Fprintf(b, "(%d)", n.maxLength)
	case kindDecimal:
		fmt.Fprintf(b, "(%d,%d)", n.precision, n.scale)
	case kindList, kindMap, kindStruct, kindUnion:
		b.WriteByte('<')
		for i, c := range n.children {
			if i > 0 {
				b.WriteByte(',')
			}
			if n.kind == kindStruct {
				b.WriteString(quoteName(n.names[i]))
				b.WriteByte(':')
			}
			c.print(b)
		}
		b.WriteByte('>')
	}
}

// quoteName puts a name that is no plain word into backquotes.
func quoteName(name string) string {
	for _, r := range name {
		if r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return "`" + strings.ReplaceAll(name, "`", "``") + "`"
		}
	}
	if name == "" {
		return "``"
	}
	return name
}

// elementName is the name of a list's field, as in every Arrow schema of this project.
const elementName = "element"

// rootColumn names the single column of a file whose root is no struct.
const rootColumn = "value"

// arrowSchema gives the schema that a reader with these options hands out.
func (n *node) arrowSchema(o *ReaderOptions) *arrow.Schema {
	if n.kind != kindStruct {
		return arrow.NewSchema([]arrow.Field{{Name: rootColumn, Type: n.arrowType(o), Nullable: true}}, nil)
	}
	return arrow.NewSchema(n.arrowFields(o), nil)
}

func (n *node) arrowFields(o *ReaderOptions) []arrow.Field {
	fields := make([]arrow.Field, len(n.children))
	for i, c := range n.children {
		name := fmt.Sprintf("member%d", i)
		if n.kind == kindStruct {
			name = n.names[i]
		}
		fields[i] = arrow.Field{Name: name, Type: c.arrowType(o), Nullable: true}
	}
	return fields
}

func (n *node) arrowType(o *ReaderOptions) arrow.DataType {
	switch n.kind {
	case kindBoolean:
		return arrow.FixedWidthTypes.Boolean
	case kindByte:
		return arrow.PrimitiveTypes.Int8
	case kindShort:
		return arrow.PrimitiveTypes.Int16
	case kindInt:
		return arrow.PrimitiveTypes.Int32
	case kindLong:
		if n.wallClock {
			return &arrow.TimestampType{Unit: arrow.Microsecond}
		}
		return arrow.PrimitiveTypes.Int64
	case kindFloat:
		return arrow.PrimitiveTypes.Float32
	case kindDouble:
		return arrow.PrimitiveTypes.Float64
	case kindString, kindVarchar, kindChar:
		return arrow.BinaryTypes.String
	case kindBinary:
		return arrow.BinaryTypes.Binary
	case kindDate:
		return arrow.FixedWidthTypes.Date32
	case kindDecimal:
		return &arrow.Decimal128Type{Precision: n.precision, Scale: n.scale}
	case kindTimestamp:
		if o.Timestamps == Instants {
			return &arrow.TimestampType{Unit: o.unit(), TimeZone: utc}
		}
		return &arrow.TimestampType{Unit: o.unit()}
	case kindTimestampInstant:
		return &arrow.TimestampType{Unit: o.unit(), TimeZone: utc}
	case kindList:
		return arrow.ListOfField(arrow.Field{Name: elementName, Type: n.children[0].arrowType(o), Nullable: true})
	case kindMap:
		return arrow.MapOf(n.children[0].arrowType(o), n.children[1].arrowType(o))
	}
	return arrow.StructOf(n.arrowFields(o)...)
}

// utc is the zone of Arrow timestamps that stand for an instant.
const utc = "UTC"
