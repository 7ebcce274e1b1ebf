package schema

// nameFixed gives every fixed type the name that Apache Hudi's writers give it, "<record>.<path>.fixed", and a record that
// shares its name with another one the name of its path. Avro knows a type by its name, so two that differ must not share
// one; decimals of several columns do when they come from an Avro file that defines one fixed type for all.
func nameFixed(record *Type) *Type {
	n := namer{taken: map[string]string{}}
	return n.named(record, record.Name)
}

type namer struct{ taken map[string]string }

// named copies a type under the names of a path.
func (n *namer) named(t *Type, path string) *Type {
	out := *t
	switch t.Kind {
	case Fixed:
		out.Name = path + ".fixed"
	case Record:
		text := t.String()
		if other, ok := n.taken[t.Name]; ok && other != text {
			out.Name = path
		}
		n.taken[out.Name] = text
		out.Fields = make([]Field, len(t.Fields))
		for i, f := range t.Fields {
			f.Type = n.named(f.Type, path+"."+f.Name)
			out.Fields[i] = f
		}
	case Array, Map:
		out.Items = n.named(t.Items, path)
	case Union:
		out.Branches = make([]*Type, len(t.Branches))
		for i, b := range t.Branches {
			out.Branches[i] = n.named(b, path)
		}
	default:
		return t
	}
	return &out
}
