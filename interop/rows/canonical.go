package rows

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Type is a column's type in Spark's words: "int", "decimal(10,2)", "array<string>", "map<string,int>",
// "struct<a:int,b:string>". Only the types whose encoding is not unique matter here; the others are taken by name.
type Type struct {
	Name   string // "int", "array", "map", "struct", …
	Fields []Column
}

// element and value name the inner types of arrays and maps, which have no field names of their own.
const (
	element = "element"
	key     = "key"
	value   = "value"
)

// ParseType reads one type.
func ParseType(text string) (Type, error) {
	open := strings.IndexByte(text, '<')
	if open < 0 {
		return Type{Name: text}, nil
	}
	if !strings.HasSuffix(text, ">") {
		return Type{}, fmt.Errorf("type %q: no closing >", text)
	}
	t := Type{Name: text[:open]}
	parts := splitTop(text[open+1:len(text)-1], ',')
	for i, part := range parts {
		var name string
		kind := part
		switch t.Name {
		case "array":
			name = element
		case "map":
			name = []string{key, value}[min(i, 1)]
		default:
			pair := splitTop(part, ':')
			if len(pair) < 2 {
				return Type{}, fmt.Errorf("type %q: field %q has no type", text, part)
			}
			name, kind = pair[0], strings.Join(pair[1:], ":")
		}
		inner, err := ParseType(kind)
		if err != nil {
			return Type{}, err
		}
		t.Fields = append(t.Fields, Column{Name: name, Type: inner})
	}
	return t, nil
}

// String writes the type as ParseType reads it.
func (t Type) String() string {
	if len(t.Fields) == 0 {
		return t.Name
	}
	parts := make([]string, len(t.Fields))
	for i, f := range t.Fields {
		parts[i] = f.Type.String()
		if t.Name == "struct" {
			parts[i] = f.Name + ":" + parts[i]
		}
	}
	return t.Name + "<" + strings.Join(parts, ",") + ">"
}

// splitTop splits at separators that stand outside of all brackets.
func splitTop(text string, separator byte) []string {
	var parts []string
	depth, from := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '<', '(':
			depth++
		case '>', ')':
			depth--
		case separator:
			if depth == 0 {
				parts = append(parts, text[from:i])
				from = i + 1
			}
		}
	}
	return append(parts, text[from:])
}

// Canonical gives the rows in the one form that equal rows share. Columns that the set does not declare keep their
// values, with numbers brought to one spelling.
func (s Set) Canonical() Set {
	types := make(map[string]Type, len(s.Columns))
	for _, c := range s.Columns {
		types[c.Name] = c.Type
	}
	out := Set{Columns: s.Columns, Rows: make([]Row, len(s.Rows))}
	for i, row := range s.Rows {
		r := make(Row, len(row))
		for name, v := range row {
			r[name] = canonical(v, types[name])
		}
		out.Rows[i] = r
	}
	return out
}

func canonical(v any, t Type) any {
	switch v := v.(type) {
	case json.Number:
		return number(v, t)
	case string:
		return text(v, t)
	case []any:
		if t.Name == "map" {
			return mapOfPairs(v, t)
		}
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = canonical(item, t.field(element))
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, item := range v {
			if t.Name == "map" {
				out[mapKey(name, t)] = canonical(item, t.field(value))
			} else {
				out[name] = canonical(item, t.field(name))
			}
		}
		return out
	}
	return v
}

func (t Type) field(name string) Type {
	at := slices.IndexFunc(t.Fields, func(c Column) bool { return c.Name == name })
	if at < 0 {
		return Type{}
	}
	return t.Fields[at].Type
}

// number gives integers their digits and floating values the shortest form of the double they stand for.
func number(n json.Number, t Type) any {
	s := string(n)
	floating := t.Name == "float" || t.Name == "double"
	if !floating && !strings.ContainsAny(s, ".eE") {
		return n
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return n
	}
	if t.Name == "float" {
		f = float64(float32(f))
	}
	return json.Number(pythonFloat(f))
}

// text gives a timestamp its six fraction digits.
func text(s string, t Type) any {
	if t.Name != "timestamp" && t.Name != "timestamp_ntz" {
		return s
	}
	body, zone := strings.TrimSuffix(s, "Z"), strings.HasSuffix(s, "Z")
	whole, fraction, _ := strings.Cut(body, ".")
	if len(fraction) < 6 {
		fraction += strings.Repeat("0", 6-len(fraction))
	}
	if zone {
		return whole + "." + fraction + "Z"
	}
	return whole + "." + fraction
}

// mapOfPairs turns [{"key":1,"value":2}] into {"1":2}, the form that peers print whatever the type of the keys.
func mapOfPairs(pairs []any, t Type) any {
	out := make(map[string]any, len(pairs))
	for _, p := range pairs {
		pair, ok := p.(map[string]any)
		if !ok {
			return pairs
		}
		k := pair[key]
		name, ok := k.(string)
		if !ok {
			name = fmt.Sprint(k)
		}
		out[mapKey(name, t)] = canonical(pair[value], t.field(value))
	}
	return out
}

func mapKey(name string, t Type) string {
	switch t.field(key).Name {
	case "boolean":
		return strings.ToLower(name)
	case "timestamp", "timestamp_ntz":
		s, _ := text(strings.Replace(name, " ", "T", 1), t.field(key)).(string)
		return s
	}
	return name
}

// pythonFloat prints a finite double as Python's repr does: shortest digits, plain between 1e-4 and 1e16. The digests of
// long answers were taken over that form.
func pythonFloat(f float64) string {
	if f == 0 {
		if math.Signbit(f) {
			return "-0.0"
		}
		return "0.0"
	}
	if a := math.Abs(f); a >= 1e-4 && a < 1e16 {
		s := strconv.FormatFloat(f, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	return strconv.FormatFloat(f, 'e', -1, 64)
}
