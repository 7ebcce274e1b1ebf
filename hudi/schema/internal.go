package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// Internal is one version of the schema that Apache Hudi keeps when schema-on-read is on
// (hoodie.schema.on.read.enable): every column, at every level, has an id that stays when the column is renamed, moved or
// widened. It is the JSON under "latest_schema" in commit metadata, and a list of versions in the completed
// .hoodie/.schema/<t>.schemacommit files.
type Internal struct {
	// Version is the instant time of the change as a number; 0 for the schema before the first change.
	Version     int64
	MaxColumnID int
	// Fields include the meta columns.
	Fields []InternalField
}

// InternalField is one column of a record, element of an array, key or value of a map.
type InternalField struct {
	ID       int
	Name     string
	Doc      string
	Optional bool
	Type     InternalType
}

// InternalType is a primitive (Name set), a record (Fields), an array (Element) or a map (Key and Value).
type InternalType struct {
	// Name of a primitive as Apache Hudi writes it: boolean, int, long, float, double, date, time, timestamp, string, binary,
	// uuid, fixed[16], decimal(10, 2), and in 1.x also timestamp-millis, local-timestamp-micros, decimal_bytes(10, 2), ….
	Name    string
	Fields  []InternalField
	Element *InternalField
	Key     *InternalField
	Value   *InternalField
}

// ErrInternal is wrapped by every error about the text of an internal schema.
var ErrInternal = errors.New("invalid schema-on-read schema")

// ParseInternal reads the JSON of one version, the value of "latest_schema" in commit metadata.
func ParseInternal(text []byte) (*Internal, error) {
	var raw rawInternal
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInternal, err)
	}
	return raw.internal()
}

// InternalHistory is every version, newest first.
type InternalHistory []*Internal

// ParseInternalHistory reads the JSON of a completed .schemacommit file, {"schemas":[…]}.
func ParseInternalHistory(text []byte) (InternalHistory, error) {
	var raw struct {
		Schemas []rawInternal `json:"schemas"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("%w: history: %w", ErrInternal, err)
	}
	h := make(InternalHistory, len(raw.Schemas))
	for i := range raw.Schemas {
		var err error
		if h[i], err = raw.Schemas[i].internal(); err != nil {
			return nil, err
		}
	}
	h.sort()
	return h, nil
}

func (h InternalHistory) sort() {
	sort.SliceStable(h, func(i, j int) bool { return h[i].Version > h[j].Version })
}

// With adds one version, replacing the one of the same number. Commits carry the newest version before any .schemacommit
// file does, so a reader joins both.
func (h InternalHistory) With(v *Internal) InternalHistory {
	out := make(InternalHistory, 0, len(h)+1)
	for _, o := range h {
		if o.Version != v.Version {
			out = append(out, o)
		}
	}
	out = append(out, v)
	out.sort()
	return out
}

// At gives the version under which a file of that instant time was written: the newest version not after it. It is nil when
// the history holds none so old (the file then matches by name).
func (h InternalHistory) At(instant string) *Internal {
	if len(instant) > 17 {
		instant = instant[:17] // longer times carry a suffix; versions have 17 digits (table format 2.1)
	}
	t, err := strconv.ParseInt(instant, 10, 64)
	if err != nil {
		return nil
	}
	if len(instant) == 14 {
		t = t*1000 + 999
	}
	for _, v := range h {
		if v.Version <= t {
			return v
		}
	}
	return nil
}

// FileNames maps the path of every column of the query schema to its path in a file of the version file; "" says that the
// file can't have the column, although a column of that name may stand there (dropped and added again: another id).
//
// A path joins names with dots; an array's element is "element", a map's are "key" and "value": "items.element.price".
func FileNames(file, query *Internal) map[string]string {
	byID := map[int]string{}
	pathsByID(file.Fields, "", byID)
	names := map[string]string{}
	var walk func(fields []InternalField, prefix string)
	walk = func(fields []InternalField, prefix string) {
		for i := range fields {
			f := &fields[i]
			path := join(prefix, f.Name)
			names[path] = byID[f.ID]
			walk(f.Type.children(), path)
		}
	}
	walk(query.Fields, "")
	return names
}

func pathsByID(fields []InternalField, prefix string, byID map[int]string) {
	for i := range fields {
		f := &fields[i]
		path := join(prefix, f.Name)
		byID[f.ID] = path
		pathsByID(f.Type.children(), path, byID)
	}
}

func join(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

func (t *InternalType) children() []InternalField {
	switch {
	case t.Element != nil:
		return []InternalField{*t.Element}
	case t.Value != nil:
		return []InternalField{*t.Key, *t.Value}
	}
	return t.Fields
}

// Record gives the Avro schema of this version under the full record name, with nested names as [FromArrow] makes them.
func (in *Internal) Record(name string) (*Type, error) {
	fields, err := internalFields(in.Fields, name, 1)
	if err != nil {
		return nil, err
	}
	return &Type{Kind: Record, Name: name, Fields: fields}, nil
}

func internalFields(fields []InternalField, space string, depth int) ([]Field, error) {
	out := make([]Field, len(fields))
	for i := range fields {
		f := &fields[i]
		t, err := f.avro(f.Name, space, depth)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
		out[i] = Field{Name: f.Name, Type: t, Doc: f.Doc}
		if f.Optional {
			out[i].Default = json.RawMessage("null")
		}
	}
	return out, nil
}

func (f *InternalField) avro(name, space string, depth int) (*Type, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: nested deeper than %d levels", ErrInternal, maxDepth)
	}
	t, err := f.Type.avro(name, space, depth)
	if err != nil || !f.Optional {
		return t, err
	}
	return nullable(t), nil
}

func (t *InternalType) avro(name, space string, depth int) (*Type, error) {
	switch {
	case t.Element != nil:
		items, err := t.Element.avro(name, space, depth+1)
		return &Type{Kind: Array, Items: items}, err
	case t.Value != nil:
		items, err := t.Value.avro(name, space, depth+1)
		return &Type{Kind: Map, Items: items}, err
	case t.Name == "":
		full := space + "." + name
		fields, err := internalFields(t.Fields, full, depth+1)
		return &Type{Kind: Record, Name: full, Fields: fields}, err
	}
	return primitiveAvro(t.Name, space+"."+name+".fixed")
}

func primitiveAvro(text, fixedName string) (*Type, error) {
	base, args := text, []int(nil)
	if i := strings.IndexAny(text, "(["); i >= 0 {
		base = text[:i]
		args = numbers(text[i:])
	}
	switch base {
	case "decimal", "decimal_fixed", "decimal_bytes":
		if len(args) < 2 || args[0] < 1 || args[0] > 76 || args[1] < 0 || args[1] > args[0] {
			return nil, fmt.Errorf("%w: type %q", ErrInternal, text)
		}
		if base == "decimal_bytes" {
			return &Type{Kind: Bytes, Logical: Decimal, Precision: args[0], Scale: args[1]}, nil
		}
		size := DecimalBytes(args[0])
		if len(args) > 2 && args[2] >= size && args[2] <= 64 {
			size = args[2]
		}
		return &Type{Kind: Fixed, Logical: Decimal, Name: fixedName, Size: size, Precision: args[0], Scale: args[1]}, nil
	case "fixed":
		if len(args) != 1 || args[0] > 1<<20 {
			return nil, fmt.Errorf("%w: type %q", ErrInternal, text)
		}
		return &Type{Kind: Fixed, Name: fixedName, Size: args[0]}, nil
	}
	if args == nil {
		switch base {
		case "boolean":
			return &Type{Kind: Boolean}, nil
		case "int":
			return &Type{Kind: Int}, nil
		case "long":
			return &Type{Kind: Long}, nil
		case "float":
			return &Type{Kind: Float}, nil
		case "double":
			return &Type{Kind: Double}, nil
		case "string":
			return &Type{Kind: String}, nil
		case "uuid":
			return &Type{Kind: String, Logical: UUID}, nil
		case "binary":
			return &Type{Kind: Bytes}, nil
		case "date":
			return &Type{Kind: Int, Logical: Date}, nil
		case "time":
			return &Type{Kind: Long, Logical: TimeMicros}, nil
		case "time-millis":
			return &Type{Kind: Int, Logical: TimeMillis}, nil
		case "timestamp":
			return &Type{Kind: Long, Logical: TimestampMicros}, nil
		case "timestamp-millis":
			return &Type{Kind: Long, Logical: TimestampMillis}, nil
		case "local-timestamp-millis":
			return &Type{Kind: Long, Logical: LocalTimestampMillis}, nil
		case "local-timestamp-micros":
			return &Type{Kind: Long, Logical: LocalTimestampMicros}, nil
		}
	}
	return nil, fmt.Errorf("%w: unknown type %q", ErrInternal, text)
}

func numbers(text string) []int {
	var out []int
	for _, s := range regexp.MustCompile(`[0-9]{1,7}`).FindAllString(text, 3) {
		n, _ := strconv.Atoi(s) // at most seven digits: always a number
		out = append(out, n)
	}
	return out
}

type rawInternal struct {
	MaxColumnID int                `json:"max_column_id"`
	VersionID   *int64             `json:"version_id"`
	Type        string             `json:"type"`
	Fields      []rawInternalField `json:"fields"`
}

type rawInternalField struct {
	ID       *int            `json:"id"`
	Name     string          `json:"name"`
	Optional bool            `json:"optional"`
	Doc      string          `json:"doc"`
	Type     json.RawMessage `json:"type"`
}

type rawInternalType struct {
	Type            string             `json:"type"`
	Fields          []rawInternalField `json:"fields"`
	ElementID       int                `json:"element_id"`
	Element         json.RawMessage    `json:"element"`
	ElementOptional bool               `json:"element_optional"`
	KeyID           int                `json:"key_id"`
	Key             json.RawMessage    `json:"key"`
	ValueID         int                `json:"value_id"`
	Value           json.RawMessage    `json:"value"`
	ValueOptional   bool               `json:"value_optional"`
}

func (raw *rawInternal) internal() (*Internal, error) {
	if raw.VersionID == nil || raw.Type != "record" {
		return nil, fmt.Errorf("%w: not a record with a version_id", ErrInternal)
	}
	in := &Internal{Version: *raw.VersionID, MaxColumnID: raw.MaxColumnID}
	var err error
	in.Fields, err = parseInternalFields(raw.Fields, 0)
	return in, err
}

func parseInternalFields(raw []rawInternalField, depth int) ([]InternalField, error) {
	out := make([]InternalField, len(raw))
	for i, r := range raw {
		if r.ID == nil || r.Name == "" {
			return nil, fmt.Errorf("%w: a column without id or name", ErrInternal)
		}
		t, err := parseInternalType(r.Type, depth+1)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", r.Name, err)
		}
		out[i] = InternalField{ID: *r.ID, Name: r.Name, Doc: r.Doc, Optional: r.Optional, Type: t}
	}
	return out, nil
}

func parseInternalType(text json.RawMessage, depth int) (t InternalType, err error) {
	if depth > maxDepth {
		return t, fmt.Errorf("%w: nested deeper than %d levels", ErrInternal, maxDepth)
	}
	if len(text) > 0 && text[0] == '"' {
		err = json.Unmarshal(text, &t.Name)
		if err == nil && t.Name == "" {
			err = fmt.Errorf("%w: empty type", ErrInternal)
		}
		return t, err
	}
	var raw rawInternalType
	if err := json.Unmarshal(text, &raw); err != nil {
		return t, fmt.Errorf("%w: type: %w", ErrInternal, err)
	}
	member := func(name string, id int, optional bool, text json.RawMessage) (*InternalField, error) {
		it, err := parseInternalType(text, depth+1)
		return &InternalField{ID: id, Name: name, Optional: optional, Type: it}, err
	}
	switch raw.Type {
	case "record":
		t.Fields, err = parseInternalFields(raw.Fields, depth)
	case "array":
		t.Element, err = member("element", raw.ElementID, raw.ElementOptional, raw.Element)
	case "map":
		if t.Key, err = member("key", raw.KeyID, false, raw.Key); err == nil {
			t.Value, err = member("value", raw.ValueID, raw.ValueOptional, raw.Value)
		}
	default:
		err = fmt.Errorf("%w: unknown type %q", ErrInternal, raw.Type)
	}
	return t, err
}
