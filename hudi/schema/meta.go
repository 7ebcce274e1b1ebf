package schema

import "encoding/json"

// WithMeta puts the five meta columns before the columns of a table schema, as files and log blocks hold them: Avro
// ["null","string"], doc "", default null (table format 5.1). A meta column that the record has already keeps its type and
// moves to its place in front.
func WithMeta(table *Type) *Type {
	out := *table
	out.Fields = make([]Field, 0, len(table.Fields)+len(MetaColumns))
	for _, name := range MetaColumns {
		if f, ok := table.Field(name); ok {
			out.Fields = append(out.Fields, *f)
			continue
		}
		out.Fields = append(out.Fields, Field{Name: name, Type: nullable(&Type{Kind: String}), Default: json.RawMessage("null")})
	}
	for _, f := range table.Fields {
		if !IsMeta(f.Name) {
			out.Fields = append(out.Fields, f)
		}
	}
	return &out
}

// WithoutMeta drops the five meta columns, as commit metadata keeps a schema. (Some commits of ALTER TABLE keep them, so
// readers of commit metadata call this and then WithMeta.) _hoodie_operation stays: it is optional and tells a changelog.
func WithoutMeta(file *Type) *Type {
	out := *file
	out.Fields = make([]Field, 0, len(file.Fields))
	for _, f := range file.Fields {
		if !IsMeta(f.Name) {
			out.Fields = append(out.Fields, f)
		}
	}
	return &out
}

// nullable is ["null", t], and a union with null among its types.
func nullable(t *Type) *Type {
	if t.Kind == Union {
		if t.holdsNull() {
			return t
		}
		return &Type{Kind: Union, Branches: append([]*Type{{Kind: Null}}, t.Branches...)}
	}
	return &Type{Kind: Union, Branches: []*Type{{Kind: Null}, t}}
}
