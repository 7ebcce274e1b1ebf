// Package schema knows the shapes of a table's rows: Avro schemas as Apache Hudi stores them, their Arrow form in which
// all data moves through Sluice, the meta columns, and how a file's own schema is brought to the table's.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Kind is an Avro type name.
type Kind uint8

// The Avro kinds.
const (
	Null Kind = iota
	Boolean
	Int
	Long
	Float
	Double
	Bytes
	String
	Fixed
	Enum
	Array
	Map
	Record
	Union
)

var kindNames = [...]string{"null", "boolean", "int", "long", "float", "double", "bytes", "string", "fixed", "enum", "array", "map", "record", "union"}

func (k Kind) String() string { return kindNames[k] }

// Logical is an Avro logical type. Unknown ones are dropped when a schema is parsed, as the Avro specification asks.
type Logical uint8

// The logical types.
const (
	NoLogical Logical = iota
	Decimal
	Date
	TimeMillis
	TimeMicros
	TimestampMillis
	TimestampMicros
	TimestampNanos
	LocalTimestampMillis
	LocalTimestampMicros
	LocalTimestampNanos
	UUID
)

var logicalNames = [...]string{"", "decimal", "date", "time-millis", "time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos",
	"local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos", "uuid"}

func (l Logical) String() string { return logicalNames[l] }

// Type is a parsed Avro schema. Named types that are referred to by name share one *Type. Treat it as immutable.
type Type struct {
	Kind      Kind
	Logical   Logical
	Name      string // full name of a record, enum or fixed, with namespace
	Doc       string
	Fields    []Field  // record
	Symbols   []string // enum
	Items     *Type    // element of an array, value of a map
	Branches  []*Type  // union, in schema order: the index is the branch number on the wire
	Size      int      // fixed, bytes
	Precision int      // decimal
	Scale     int      // decimal
	Aliases   []string
	JavaText  bool // "avro.java.string":"String", kept when written
}

// Field of a record.
type Field struct {
	Name    string
	Type    *Type
	Doc     string
	Aliases []string
	// Default is the JSON of the default value; nil when the field has none ("null" is a default).
	Default json.RawMessage
	Order   string
}

// ErrSchema is wrapped by every error about a schema's text.
var ErrSchema = errors.New("invalid Avro schema")

// maxDepth bounds nesting, so that a hostile schema can't exhaust the stack.
const maxDepth = 64

// Parse reads the JSON of an Avro schema.
func Parse(text []byte) (*Type, error) {
	p := parser{named: map[string]*Type{}}
	t, err := p.parse(text, "", 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSchema, err)
	}
	return t, nil
}

// ParseString is Parse for text that is at hand as a string.
func ParseString(text string) (*Type, error) { return Parse([]byte(text)) }

type parser struct{ named map[string]*Type }

type rawType struct {
	Type        json.RawMessage `json:"type"`
	LogicalType string          `json:"logicalType"`
	Name        string          `json:"name"`
	Namespace   *string         `json:"namespace"`
	Doc         string          `json:"doc"`
	Fields      []rawField      `json:"fields"`
	Symbols     []string        `json:"symbols"`
	Items       json.RawMessage `json:"items"`
	Values      json.RawMessage `json:"values"`
	Size        int             `json:"size"`
	Precision   int             `json:"precision"`
	Scale       int             `json:"scale"`
	Aliases     []string        `json:"aliases"`
	JavaString  string          `json:"avro.java.string"`
}

type rawField struct {
	Name    string          `json:"name"`
	Type    json.RawMessage `json:"type"`
	Doc     string          `json:"doc"`
	Aliases []string        `json:"aliases"`
	Default json.RawMessage `json:"default"`
	Order   string          `json:"order"`
}

func (p *parser) parse(text []byte, space string, depth int) (*Type, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return nil, errors.New("empty")
	}
	switch text[0] {
	case '"':
		var name string
		if err := json.Unmarshal(text, &name); err != nil {
			return nil, err
		}
		return p.byName(name, space)
	case '[':
		var raw []json.RawMessage
		if err := json.Unmarshal(text, &raw); err != nil {
			return nil, err
		}
		u := &Type{Kind: Union, Branches: make([]*Type, len(raw))}
		for i, r := range raw {
			b, err := p.parse(r, space, depth+1)
			if err != nil {
				return nil, err
			}
			if b.Kind == Union {
				return nil, errors.New("a union directly inside a union")
			}
			u.Branches[i] = b
		}
		return u, nil
	case '{':
		var raw rawType
		if err := json.Unmarshal(text, &raw); err != nil {
			return nil, err
		}
		return p.complex(&raw, space, depth)
	}
	return nil, fmt.Errorf("a type can't start with %q", text[0])
}

func (p *parser) byName(name, space string) (*Type, error) {
	for k := Null; k <= String; k++ {
		if kindNames[k] == name {
			return &Type{Kind: k}, nil
		}
	}
	if !strings.Contains(name, ".") && space != "" {
		if t, ok := p.named[space+"."+name]; ok {
			return t, nil
		}
	}
	if t, ok := p.named[name]; ok {
		return t, nil
	}
	return nil, fmt.Errorf("unknown type %q", name)
}

func (p *parser) complex(raw *rawType, space string, depth int) (*Type, error) {
	typeText := bytes.TrimSpace(raw.Type)
	if len(typeText) > 0 && typeText[0] != '"' { // {"type": {...}} or {"type": [...]}
		return p.parse(typeText, space, depth+1)
	}
	var kind string
	if err := json.Unmarshal(raw.Type, &kind); err != nil {
		return nil, errors.New(`object without "type"`)
	}
	t := &Type{Doc: raw.Doc, Aliases: raw.Aliases, JavaText: raw.JavaString == "String"}
	switch kind {
	case "record", "error", "enum", "fixed":
		t.Name, space = fullName(raw, space)
		if t.Name == "" {
			return nil, fmt.Errorf("%s without a name", kind)
		}
		if _, twice := p.named[t.Name]; twice {
			return nil, fmt.Errorf("%s is defined twice", t.Name)
		}
		p.named[t.Name] = t
	}
	switch kind {
	case "record", "error":
		t.Kind = Record
		t.Fields = make([]Field, len(raw.Fields))
		seen := make(map[string]bool, len(raw.Fields))
		for i, f := range raw.Fields {
			if f.Name == "" {
				return nil, fmt.Errorf("record %s: field %d has no name", t.Name, i)
			}
			if seen[f.Name] {
				return nil, fmt.Errorf("record %s: field %q stands twice", t.Name, f.Name)
			}
			seen[f.Name] = true
			ft, err := p.parse(f.Type, space, depth+1)
			if err != nil {
				return nil, fmt.Errorf("record %s, field %s: %w", t.Name, f.Name, err)
			}
			t.Fields[i] = Field{Name: f.Name, Type: ft, Doc: f.Doc, Aliases: f.Aliases, Default: f.Default, Order: f.Order}
		}
		return t, nil
	case "enum":
		t.Kind, t.Symbols = Enum, raw.Symbols
		return t, nil
	case "fixed":
		t.Kind, t.Size = Fixed, raw.Size
		if raw.Size < 0 || raw.Size > 1<<20 {
			return nil, fmt.Errorf("fixed %s of %d bytes", t.Name, raw.Size)
		}
	case "array", "map":
		items, k := raw.Items, Array
		if kind == "map" {
			items, k = raw.Values, Map
		}
		t.Kind = k
		var err error
		if t.Items, err = p.parse(items, space, depth+1); err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		return t, nil
	default:
		base, err := p.byName(kind, space)
		if err != nil {
			return nil, err
		}
		if base.Kind > String { // a reference written as {"type":"Name"}
			return base, nil
		}
		t.Kind = base.Kind
	}
	t.setLogical(raw)
	return t, nil
}

// setLogical keeps a logical type only where the Avro specification allows it on the kind.
func (t *Type) setLogical(raw *rawType) {
	for l := Decimal; l <= UUID; l++ {
		if logicalNames[l] != raw.LogicalType {
			continue
		}
		switch l {
		case Decimal:
			if (t.Kind == Bytes || t.Kind == Fixed) && raw.Precision > 0 && raw.Scale >= 0 && raw.Scale <= raw.Precision {
				t.Logical, t.Precision, t.Scale = l, raw.Precision, raw.Scale
			}
		case Date, TimeMillis:
			if t.Kind == Int {
				t.Logical = l
			}
		case UUID:
			if t.Kind == String || t.Kind == Fixed && t.Size == 16 {
				t.Logical = l
			}
		default:
			if t.Kind == Long {
				t.Logical = l
			}
		}
	}
}

func fullName(raw *rawType, space string) (name, namespace string) {
	if i := strings.LastIndexByte(raw.Name, '.'); i >= 0 {
		return raw.Name, raw.Name[:i]
	}
	if raw.Namespace != nil {
		space = *raw.Namespace
	}
	if space == "" || raw.Name == "" {
		return raw.Name, space
	}
	return space + "." + raw.Name, space
}

// Optional reports whether t is a union of null and exactly one other type, in either order, and gives that other type.
// For any other t it returns t itself and false. (Trap 18: SQL writes ["int","null"], commits ["null","int"].)
func (t *Type) Optional() (*Type, bool) {
	if t.Kind != Union || len(t.Branches) != 2 {
		return t, false
	}
	switch {
	case t.Branches[0].Kind == Null && t.Branches[1].Kind != Null:
		return t.Branches[1], true
	case t.Branches[1].Kind == Null && t.Branches[0].Kind != Null:
		return t.Branches[0], true
	}
	return t, false
}

// Field finds a record's field by exact name.
func (t *Type) Field(name string) (*Field, bool) {
	for i := range t.Fields {
		if t.Fields[i].Name == name {
			return &t.Fields[i], true
		}
	}
	return nil, false
}

// String is the schema's JSON text, parseable again and accepted by Avro's Java parser.
func (t *Type) String() string {
	var b bytes.Buffer
	t.write(&b, "", map[string]bool{})
	return b.String()
}

func (t *Type) write(b *bytes.Buffer, space string, done map[string]bool) {
	text := func(s string) {
		enc := json.NewEncoder(b)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(s) // a string always encodes
		b.Truncate(b.Len() - 1)
	}
	if t.Kind == Union {
		b.WriteByte('[')
		for i, br := range t.Branches {
			if i > 0 {
				b.WriteByte(',')
			}
			br.write(b, space, done)
		}
		b.WriteByte(']')
		return
	}
	if t.Name != "" && done[t.Name] {
		text(t.Name)
		return
	}
	if t.Kind <= String && t.Logical == NoLogical && !t.JavaText {
		text(t.Kind.String())
		return
	}
	b.WriteString(`{"type":`)
	text(t.Kind.String())
	if t.Name != "" {
		done[t.Name] = true
		name, ns := t.Name, ""
		if i := strings.LastIndexByte(t.Name, '.'); i >= 0 {
			name, ns = t.Name[i+1:], t.Name[:i]
		}
		b.WriteString(`,"name":`)
		text(name)
		if ns != space {
			b.WriteString(`,"namespace":`)
			text(ns)
			space = ns
		}
	}
	if t.Doc != "" {
		b.WriteString(`,"doc":`)
		text(t.Doc)
	}
	switch t.Kind {
	case Record:
		b.WriteString(`,"fields":[`)
		for i, f := range t.Fields {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(`{"name":`)
			text(f.Name)
			b.WriteString(`,"type":`)
			f.Type.write(b, space, done)
			if f.Doc != "" {
				b.WriteString(`,"doc":`)
				text(f.Doc)
			}
			if f.Default != nil {
				b.WriteString(`,"default":`)
				b.Write(f.Default)
			}
			if len(f.Aliases) > 0 {
				b.WriteString(`,"aliases":`)
				a, _ := json.Marshal(f.Aliases)
				b.Write(a)
			}
			b.WriteByte('}')
		}
		b.WriteByte(']')
	case Enum:
		b.WriteString(`,"symbols":`)
		s, _ := json.Marshal(t.Symbols)
		b.Write(s)
	case Fixed:
		fmt.Fprintf(b, `,"size":%d`, t.Size)
	case Array:
		b.WriteString(`,"items":`)
		t.Items.write(b, space, done)
	case Map:
		b.WriteString(`,"values":`)
		t.Items.write(b, space, done)
	}
	if t.Logical != NoLogical {
		fmt.Fprintf(b, `,"logicalType":%q`, t.Logical.String())
		if t.Logical == Decimal {
			fmt.Fprintf(b, `,"precision":%d,"scale":%d`, t.Precision, t.Scale)
		}
	}
	if t.JavaText {
		b.WriteString(`,"avro.java.string":"String"`)
	}
	b.WriteByte('}')
}
