package basefile

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	pq "github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/sluicelake/sluice/hudi/schema"
)

// node is one Arrow field of the file: a leaf with a column chunk, a struct, a list or a map. Levels are those of Dremel:
// an entry of a leaf below the node stands for a value of the node when its definition level is at least slotDef and its
// repetition level at most rep; the value is there (not null) when the definition level is at least def.
type node struct {
	kind     nodeKind
	name     string
	nullable bool
	def      int16 // definition level from which the node is not null
	slotDef  int16 // definition level from which there is a place for it: that of the innermost list's elements, else 0
	rep      int16 // number of lists and maps around it
	typ      arrow.DataType
	leaf     leafType // leaf
	column   int      // leaf: number of its column chunk
	children []*node  // struct: members; list: the element; map: key and value
}

type nodeKind uint8

const (
	leafNode nodeKind = iota
	structNode
	listNode
	mapNode
)

// maxNesting bounds the depth of a file's schema.
const maxNesting = 64

// fileTree reads the Parquet schema: LIST and MAP groups of every layout (rules of the Parquet format for lists of two and
// three levels, Spark's bag.array, maps of any inner names), repeated fields without a LIST around them, and all leaf types.
func fileTree(s *pq.Schema) ([]*node, error) {
	root := s.Root()
	t := treeBuilder{schema: s}
	out := make([]*node, root.NumFields())
	for i := range out {
		var err error
		if out[i], err = t.field(root.Field(i), level{}, 0); err != nil {
			return nil, fmt.Errorf("column %s: %w", root.Field(i).Name(), err)
		}
	}
	return out, nil
}

func (n *node) field() arrow.Field {
	return arrow.Field{Name: n.name, Type: n.typ, Nullable: n.nullable}
}

// level is the place in the tree: what encloses the node that is read next.
type level struct{ def, slotDef, rep int16 }

type treeBuilder struct{ schema *pq.Schema }

func (t *treeBuilder) field(p pq.Node, at level, depth int) (*node, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("%w: nested deeper than %d levels", ErrUnsupported, maxNesting)
	}
	if p.RepetitionType() == parquet.Repetitions.Repeated {
		// A repeated field outside a LIST is a list of required elements.
		return t.list(p.Name(), false, at, func(in level) (*node, error) { return t.single(p, in, false, depth+1) })
	}
	return t.single(p, at, p.RepetitionType() == parquet.Repetitions.Optional, depth)
}

// single reads a field as one value, whatever its repetition: the caller has dealt with that.
func (t *treeBuilder) single(p pq.Node, at level, optional bool, depth int) (*node, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("%w: nested deeper than %d levels", ErrUnsupported, maxNesting)
	}
	in := at
	if optional {
		in.def++
	}
	group, ok := p.(*pq.GroupNode)
	if !ok {
		return t.leafNode(p.(*pq.PrimitiveNode), in, at, optional)
	}
	var n *node
	var err error
	switch {
	case isList(group):
		n, err = t.listGroup(group, optional, in, depth)
	case isMap(group):
		n, err = t.mapGroup(group, optional, in, depth)
	default:
		n, err = t.structGroup(group, in, depth)
	}
	if err != nil {
		return nil, err
	}
	n.name, n.nullable, n.def, n.slotDef, n.rep = p.Name(), optional, in.def, at.slotDef, at.rep
	return n, nil
}

func (t *treeBuilder) leafNode(p *pq.PrimitiveNode, in, at level, optional bool) (*node, error) {
	lt, err := typeOfLeaf(p)
	if err != nil {
		return nil, err
	}
	column := t.schema.ColumnIndexByNode(p)
	if column < 0 {
		return nil, fmt.Errorf("%w: a leaf without a column", ErrDamaged)
	}
	return &node{kind: leafNode, name: p.Name(), nullable: optional || lt.arrow.ID() == arrow.NULL, def: in.def, slotDef: at.slotDef, rep: at.rep, typ: lt.arrow, leaf: lt, column: column}, nil
}

func (t *treeBuilder) structGroup(g *pq.GroupNode, in level, depth int) (*node, error) {
	if g.NumFields() == 0 {
		return nil, fmt.Errorf("%w: group %s without members", ErrUnsupported, g.Name())
	}
	n := &node{kind: structNode, children: make([]*node, g.NumFields())}
	fields := make([]arrow.Field, g.NumFields())
	for i := range n.children {
		c, err := t.field(g.Field(i), in, depth+1)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", g.Field(i).Name(), err)
		}
		n.children[i], fields[i] = c, c.field()
	}
	n.typ = arrow.StructOf(fields...)
	return n, nil
}

// list makes the node of a list whose elements are read by element at the level inside.
func (t *treeBuilder) list(name string, nullable bool, in level, element func(level) (*node, error)) (*node, error) {
	inside := level{def: in.def + 1, slotDef: in.def + 1, rep: in.rep + 1}
	e, err := element(inside)
	if err != nil {
		return nil, err
	}
	e.name = "element"
	return &node{kind: listNode, name: name, nullable: nullable, def: in.def, slotDef: in.slotDef, rep: in.rep, typ: arrow.ListOfField(e.field()), children: []*node{e}}, nil
}

// listGroup applies the Parquet format's rules for LIST groups.
func (t *treeBuilder) listGroup(g *pq.GroupNode, optional bool, in level, depth int) (*node, error) {
	repeated := g.Field(0)
	element := func(inside level) (*node, error) { return t.single(repeated, inside, false, depth+1) }
	if !twoLevels(g, repeated) {
		inner := repeated.(*pq.GroupNode).Field(0)
		element = func(inside level) (*node, error) { return t.field(inner, inside, depth+1) }
	}
	return t.list(g.Name(), optional, in, element)
}

// twoLevels: the repeated field is the element itself, not a wrapper around it.
func twoLevels(list *pq.GroupNode, repeated pq.Node) bool {
	g, ok := repeated.(*pq.GroupNode)
	return !ok || // a repeated primitive
		isList(g) || isMap(g) || // a list of lists or maps: the annotation is the element's
		g.NumFields() != 1 || // a struct of several members
		g.Field(0).RepetitionType() == parquet.Repetitions.Repeated ||
		g.Name() == "array" || g.Name() == list.Name()+"_tuple" // how Avro, Thrift and Hive name an element
}

func isList(g *pq.GroupNode) bool {
	_, ok := g.LogicalType().(pq.ListLogicalType)
	if !ok && g.ConvertedType() != pq.ConvertedTypes.List {
		return false
	}
	return g.NumFields() == 1 && g.Field(0).RepetitionType() == parquet.Repetitions.Repeated
}

// isMap knows the outer group of a map by MAP or the old MAP_KEY_VALUE. The latter also stands on the inner, repeated group,
// which has key and value and no repeated member.
func isMap(g *pq.GroupNode) bool {
	_, ok := g.LogicalType().(pq.MapLogicalType)
	if !ok && g.ConvertedType() != pq.ConvertedTypes.Map && g.ConvertedType() != pq.ConvertedTypes.MapKeyValue {
		return false
	}
	if g.NumFields() != 1 || g.Field(0).RepetitionType() != parquet.Repetitions.Repeated {
		return false
	}
	kv, ok := g.Field(0).(*pq.GroupNode)
	return ok && (kv.NumFields() == 1 || kv.NumFields() == 2)
}

func (t *treeBuilder) mapGroup(g *pq.GroupNode, optional bool, in level, depth int) (*node, error) {
	kv := g.Field(0).(*pq.GroupNode)
	if kv.NumFields() == 1 { // a set: keys without values
		return t.list(g.Name(), optional, in, func(inside level) (*node, error) { return t.field(kv.Field(0), inside, depth+1) })
	}
	inside := level{def: in.def + 1, slotDef: in.def + 1, rep: in.rep + 1}
	key, err := t.field(kv.Field(0), inside, depth+1)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	value, err := t.field(kv.Field(1), inside, depth+1)
	if err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	key.name, value.name = "key", "value"
	typ := arrow.MapOf(key.typ, value.typ)
	typ.SetItemNullable(value.nullable)
	return &node{kind: mapNode, children: []*node{key, value}, typ: typ}, nil
}

// firstLeaf is a leaf below the node whose levels tell the node's own shape; the one with the fewest lists, as it has the
// fewest entries.
func (n *node) firstLeaf() *node {
	if n.kind == leafNode {
		return n
	}
	var best *node
	var bestRep int16
	for _, c := range n.children {
		l := c.firstLeaf()
		if rep := l.rep; best == nil || rep < bestRep {
			best, bestRep = l, rep
		}
	}
	return best
}

func (n *node) leaves(visit func(*node)) {
	if n.kind == leafNode {
		visit(n)
		return
	}
	for _, c := range n.children {
		c.leaves(visit)
	}
}

// project gives the part of the node that the wanted type needs. path and names are those of schema-on-read.
func (n *node) project(want arrow.DataType, path string, names map[string]string) *node {
	switch n.kind {
	case structNode:
		if want, ok := want.(*arrow.StructType); ok {
			return n.projectStruct(want, path, names)
		}
	case listNode:
		if want, ok := want.(*arrow.ListType); ok {
			out := *n
			out.children = []*node{n.children[0].project(want.Elem(), dotted(path, "element"), names)}
			out.typ = arrow.ListOfField(out.children[0].field())
			return &out
		}
	case mapNode:
		if want, ok := want.(*arrow.MapType); ok {
			out := *n
			value := n.children[1].project(want.ItemType(), dotted(path, "value"), names)
			out.children = []*node{n.children[0], value}
			typ := arrow.MapOf(out.children[0].typ, value.typ)
			typ.SetItemNullable(value.nullable)
			out.typ = typ
			return &out
		}
	}
	return n
}

func (n *node) projectStruct(want *arrow.StructType, path string, names map[string]string) *node {
	fields := make([]arrow.Field, len(n.children))
	for i, c := range n.children {
		fields[i] = c.field()
	}
	kept := make([]*node, len(n.children)) // in the file's order, each once
	for _, f := range want.Fields() {
		child := dotted(path, f.Name)
		name, there := fileName(f.Name, child, names)
		if !there {
			continue
		}
		if at, err := schema.FindField(fields, name); err == nil && at >= 0 {
			kept[at] = n.children[at].project(f.Type, child, names)
		} else if err != nil {
			return n // the resolution reports it
		}
	}
	out := *n
	out.children = nil
	for _, c := range kept {
		if c != nil {
			out.children = append(out.children, c)
		}
	}
	if len(out.children) == 0 { // nothing in common: one leaf tells which structs are null
		out.children = []*node{n.narrowest()}
	}
	members := make([]arrow.Field, len(out.children))
	for i, c := range out.children {
		members[i] = c.field()
	}
	out.typ = arrow.StructOf(members...)
	return &out
}

// narrowest is the member of a struct with the least to read.
func (n *node) narrowest() *node {
	for _, c := range n.children {
		if c.kind == leafNode {
			return c
		}
	}
	return n.children[0]
}

func dotted(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

// fileName is the name of a wanted member in the file; there is false where schema-on-read says that the file has none.
func fileName(name, path string, names map[string]string) (string, bool) {
	filePath, ok := names[path]
	if !ok {
		return name, true
	}
	if filePath == "" {
		return "", false
	}
	for i := len(filePath) - 1; i >= 0; i-- {
		if filePath[i] == '.' {
			return filePath[i+1:], true
		}
	}
	return filePath, true
}
