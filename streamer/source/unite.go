package source

import (
	"encoding/json"
	"fmt"

	"github.com/sluicelake/sluice/hudi/schema"
)

// relax makes every field, element and value of a type nullable, as Spark reads files.
func relax(t *schema.Type) *schema.Type {
	inner, _ := t.Optional()
	out := *inner
	switch inner.Kind {
	case schema.Record:
		out.Fields = make([]schema.Field, len(inner.Fields))
		for i, f := range inner.Fields {
			f.Type = nullable(relax(f.Type))
			f.Default = json.RawMessage("null")
			out.Fields[i] = f
		}
	case schema.Array, schema.Map:
		out.Items = nullable(relax(inner.Items))
	case schema.Union:
		return inner
	}
	return &out
}

func nullable(t *schema.Type) *schema.Type {
	if _, is := t.Optional(); is || t.Kind == schema.Null || t.Kind == schema.Union {
		return t
	}
	return &schema.Type{Kind: schema.Union, Branches: []*schema.Type{{Kind: schema.Null}, t}}
}

// unite gives the type that holds the values of both: the fields of both records, of numbers the wider type. A field that one
// of them has not becomes nullable.
func unite(a, b *schema.Type) (*schema.Type, error) { return uniteAt(a, b, "") }

func uniteAt(a, b *schema.Type, path string) (*schema.Type, error) {
	ai, an := a.Optional()
	bi, bn := b.Optional()
	t, err := uniteInner(ai, bi, path)
	if err != nil {
		return nil, err
	}
	if an || bn || ai.Kind == schema.Null || bi.Kind == schema.Null {
		t = nullable(t)
	}
	return t, nil
}

func uniteInner(a, b *schema.Type, path string) (*schema.Type, error) {
	switch {
	case a.Kind == schema.Null:
		return b, nil
	case b.Kind == schema.Null:
		return a, nil
	case a.Kind == schema.Record && b.Kind == schema.Record:
		return uniteRecords(a, b, path)
	case a.Kind == b.Kind && (a.Kind == schema.Array || a.Kind == schema.Map):
		items, err := uniteAt(a.Items, b.Items, path+"[]")
		out := *a
		out.Items = items
		return &out, err
	case a.Logical == schema.Decimal && b.Logical == schema.Decimal:
		return uniteDecimals(a, b, path)
	case a.Kind == b.Kind && a.Logical == b.Logical && a.Size == b.Size:
		return a, nil
	case a.Logical == schema.NoLogical && b.Logical == schema.NoLogical:
		if t := wider(a, b); t != nil {
			return t, nil
		}
	case isMoment(a) && isMoment(b) && isLocal(a) == isLocal(b):
		if finer(a.Logical) {
			return a, nil
		}
		return b, nil
	}
	return nil, fmt.Errorf("column %s is %s in one and %s in another", path, describe(a), describe(b))
}

func uniteRecords(a, b *schema.Type, path string) (*schema.Type, error) {
	out := *a
	out.Fields = nil
	for _, f := range a.Fields {
		if other, ok := b.Field(f.Name); ok {
			t, err := uniteAt(f.Type, other.Type, join(path, f.Name))
			if err != nil {
				return nil, err
			}
			f.Type = t
		} else {
			f.Type = nullable(f.Type)
		}
		out.Fields = append(out.Fields, withNull(f))
	}
	for _, f := range b.Fields {
		if _, ok := a.Field(f.Name); !ok {
			f.Type = nullable(f.Type)
			out.Fields = append(out.Fields, withNull(f))
		}
	}
	return &out, nil
}

// withNull gives a field that became nullable the default that goes with it.
func withNull(f schema.Field) schema.Field {
	if _, is := f.Type.Optional(); is && f.Default == nil {
		f.Default = json.RawMessage("null")
	}
	return f
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// wider is the number type that holds both, or nil.
func wider(a, b *schema.Type) *schema.Type {
	if a.Kind >= schema.Int && a.Kind <= schema.Double && b.Kind >= schema.Int && b.Kind <= schema.Double {
		if a.Kind > b.Kind {
			return a
		}
		return b
	}
	return nil
}

func uniteDecimals(a, b *schema.Type, path string) (*schema.Type, error) {
	scale := max(a.Scale, b.Scale)
	digits := max(a.Precision-a.Scale, b.Precision-b.Scale) + scale
	if digits > 38 {
		return nil, fmt.Errorf("column %s is %s in one and %s in another, which needs more than 38 digits", path, describe(a), describe(b))
	}
	if a.Scale == scale && a.Precision == digits {
		return a, nil
	}
	if b.Scale == scale && b.Precision == digits {
		return b, nil
	}
	out := *a
	out.Precision, out.Scale = digits, scale
	if out.Kind == schema.Fixed {
		out.Size = schema.DecimalBytes(digits)
	}
	return &out, nil
}

func isMoment(t *schema.Type) bool {
	return t.Logical >= schema.TimestampMillis && t.Logical <= schema.LocalTimestampNanos
}

func isLocal(t *schema.Type) bool { return t.Logical >= schema.LocalTimestampMillis }

func finer(l schema.Logical) bool {
	return l != schema.TimestampMillis && l != schema.LocalTimestampMillis
}

func describe(t *schema.Type) string {
	switch {
	case t.Logical == schema.Decimal:
		return fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale)
	case t.Logical != schema.NoLogical:
		return t.Logical.String()
	}
	return t.Kind.String()
}
