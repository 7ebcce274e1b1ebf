package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/sluicelake/sluice/hudi/config"
)

// The options of the datasource that Reconcile honours.
const (
	keyReconcile = "hoodie.datasource.write.reconcile.schema"
	keyNulls     = "hoodie.write.set.null.for.missing.columns"
	keyDrop      = "hoodie.datasource.write.schema.allow.auto.evolution.column.drop"
)

// ReconcileOptions of [Reconcile]. Without any, rows must have every column of the table.
type ReconcileOptions struct {
	// KeepMissing is hoodie.datasource.write.reconcile.schema: columns that the rows lack stay, and are null for them.
	KeepMissing bool
	// NullForMissing is hoodie.write.set.null.for.missing.columns: the same, and a required column becomes nullable where that
	// is what it takes: one that the rows lack, and a new one.
	NullForMissing bool
	// AllowDrop is hoodie.datasource.write.schema.allow.auto.evolution.column.drop: columns that the rows lack leave the table.
	// Their values are lost wherever a file is rewritten. The two options above go before it.
	AllowDrop bool
	// NoLogs: the table has no log files, whose readers up to 1.0 can't bring a fixed to another size. A decimal in a fixed may get
	// more digits before the point then, as releases up to 0.15 let it.
	NoLogs bool
}

// Set reads the options from properties of a write. A value that is neither true nor false is an error.
func (o *ReconcileOptions) Set(props *config.Properties) error {
	var errs []error
	flag := func(key string) bool {
		text, _ := config.LookupValue(props, key)
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "true":
			return true
		case "false", "":
			return false
		}
		errs = append(errs, fmt.Errorf("%s is %q, it must be true or false", key, text))
		return false
	}
	o.KeepMissing, o.NullForMissing, o.AllowDrop = flag(keyReconcile), flag(keyNulls), flag(keyDrop)
	return errors.Join(errs...)
}

// ErrReconcile is wrapped by every refusal of rows whose schema can't become the table's.
var ErrReconcile = errors.New("the rows do not fit the table")

// Reconcile gives the schema that a table has after a write of these rows: the one that is written, that the commit stores,
// and that older files are read with from then on. table is the table's schema (nil: a table without commits), rows the
// schema of what comes in; meta columns do not count in either. [Resolve] with SchemaOnRead brings the rows and the rows of
// older files to the result.
//
// The rules are those of Apache Hudi 0.15.0 where they keep the data whole:
//
//   - Columns match by name, else by a name that differs in case only. The table's order and names stay; new columns follow
//     (releases before 1.0 take the order of the rows). So it is with members of records, at every depth.
//   - A column that the rows lack is refused, or treated as the options say. A new column must be nullable or have a
//     default, so that older rows can have it.
//   - A column is nullable when it is so in the table or in the rows; with KeepMissing or NullForMissing a required column of
//     the table stays required.
//   - A type becomes the wider one of the table's and the rows': int, long, float, double, and any of them string. Other
//     types of rows are turned into the table's where the values allow it: numbers, decimals and dates to string, numbers and
//     strings to decimal, strings to date, strings and bytes into each other, times and timestamps to a finer unit. A decimal
//     grows in digits while its number of bytes stays. All else is refused: see the table in the tests of this package.
//   - Enumerations are strings, a nullable type is ["null", X] with default null, decimals keep the table's form (bytes or
//     fixed), fixed types are named "<record>.<path>.fixed", documentation of the rows replaces the table's
//     where they have any and no option keeps the table's columns.
//
// [Changes] tells which types became other ones. An error wraps [ErrReconcile] and says of every column that does not fit which it is, both types, and what helps.
func Reconcile(table, rows *Type, o ReconcileOptions) (*Type, error) {
	r := reconciler{ReconcileOptions: o}
	var out *Type
	switch {
	case rows == nil || rows.Kind == Null || rows.Kind == Record && len(WithoutMeta(rows).Fields) == 0:
		if table == nil || len(WithoutMeta(table).Fields) == 0 {
			return nil, fmt.Errorf("%w: neither the table nor the rows have a column", ErrReconcile)
		}
		out = r.fresh(WithoutMeta(table), place{})
	case rows.Kind != Record:
		return nil, fmt.Errorf("%w: rows are records, not %s", ErrReconcile, rows.describe())
	case table == nil || table.Kind == Null || len(WithoutMeta(table).Fields) == 0:
		out = r.fresh(WithoutMeta(rows), place{})
	default:
		out = r.record(WithoutMeta(table), WithoutMeta(rows), place{})
	}
	if problems := r.all(); problems != nil {
		return nil, fmt.Errorf("%w: %s", ErrReconcile, strings.Join(problems, "; "))
	}
	return nameFixed(out), nil
}

// Changes says of each column of before, at every depth, whose type is another one after: "qty is string now, it was long".
func Changes(before, after *Type) (out []string) {
	var walk func(path string, a, b *Type)
	walk = func(path string, a, b *Type) {
		a, _ = a.value()
		b, _ = b.value()
		switch {
		case a == nil || b == nil:
		case a.Kind == Record && b.Kind == Record:
			for _, f := range a.Fields {
				if g, ok := b.Field(f.Name); ok {
					walk(strings.TrimPrefix(path+"."+f.Name, "."), f.Type, g.Type)
				}
			}
		case a.Kind == Array && b.Kind == Array:
			walk(path+".element", a.Items, b.Items)
		case a.Kind == Map && b.Kind == Map:
			walk(path+".value", a.Items, b.Items)
		case a.describe() != b.describe():
			out = append(out, fmt.Sprintf("%s is %s now, it was %s", path, b.describe(), a.describe()))
		}
	}
	if before != nil && after != nil {
		walk("", before, after)
	}
	return out
}

type reconciler struct {
	ReconcileOptions
	problems []string
	absent   []string // columns that the rows lack, with their types
}

// all are the problems, those that have one remedy as one.
func (r *reconciler) all() []string {
	if r.absent == nil {
		return r.problems
	}
	columns, is, them := "column ", " is", "it"
	if len(r.absent) > 1 {
		columns, is, them = "columns ", " are", "them"
	}
	return append([]string{fmt.Sprintf("%s%s%s in the table and missing from the rows: add %[4]s, set %[5]s=true to fill %[4]s with null, or %[6]s=true to drop %[4]s from the table",
		columns, strings.Join(r.absent, ", "), is, them, keyNulls, keyDrop)}, r.problems...)
}

// keeps: the table's columns stay as they are, whatever the rows have.
func (r *reconciler) keeps() bool { return r.KeepMissing || r.NullForMissing }

// place is where in the schema we are: the column's path for errors, and the records around it, so that a record that holds
// itself ends in an error.
type place struct {
	path    string
	records []*Type
}

func (p place) in(name string) place { return place{path: join(p.path, name), records: p.records} }

func (p place) within(t *Type) place {
	return place{path: p.path, records: append(p.records[:len(p.records):len(p.records)], t)}
}

func (r *reconciler) refuse(p place, format string, args ...any) {
	r.problems = append(r.problems, "column "+p.path+" "+fmt.Sprintf(format, args...))
}

// record joins two records: the table's columns, then the new ones.
func (r *reconciler) record(table, rows *Type, p place) *Type {
	if slices.Contains(p.records, table) || len(p.records) > maxDepth {
		r.refuse(p, "is a record that holds itself, or is nested deeper than %d levels", maxDepth)
		return table
	}
	p = p.within(table)
	out := *table
	out.Fields = nil
	source := r.match(table, rows, p)
	known := map[int]bool{}
	for i := range table.Fields {
		f := &table.Fields[i]
		if source[i] < 0 {
			if f, ok := r.missing(f, p.in(f.Name)); ok {
				out.Fields = append(out.Fields, f)
			}
			continue
		}
		known[source[i]] = true
		out.Fields = append(out.Fields, r.both(f, &rows.Fields[source[i]], p.in(f.Name)))
	}
	for i := range rows.Fields {
		if !known[i] {
			out.Fields = append(out.Fields, r.added(&rows.Fields[i], p.in(rows.Fields[i].Name)))
		}
	}
	if len(out.Fields) == 0 {
		r.refuse(p, "would have no column left")
	}
	return &out
}

// match gives the index in rows of each field of the table, or -1.
func (r *reconciler) match(table, rows *Type, p place) []int {
	r.names(rows, p)
	source := make([]int, len(table.Fields))
	for i := range table.Fields {
		source[i] = -1
		for j := range rows.Fields {
			switch {
			case rows.Fields[j].Name == table.Fields[i].Name:
				source[i] = j
			case source[i] < 0 && strings.EqualFold(rows.Fields[j].Name, table.Fields[i].Name):
				if _, own := table.Field(rows.Fields[j].Name); !own {
					source[i] = j
				}
			}
		}
	}
	return source
}

// names refuses members of rows that differ in case only, as no reader that ignores case could tell them apart, and names
// that Avro's Java parser does not take.
func (r *reconciler) names(rows *Type, p place) {
	seen := map[string]string{}
	for _, f := range rows.Fields {
		folded := strings.ToLower(f.Name)
		if other, twice := seen[folded]; twice {
			r.refuse(p.in(f.Name), "stands twice in the rows (the other is %s): rename or drop one", other)
		}
		seen[folded] = f.Name
		if !validName(f.Name) {
			r.refuse(p.in(f.Name), "has a name that Avro does not take: rename it, with letters, digits and _ alone and no digit in front")
		}
	}
}

// validName follows Java, which looks at 16-bit characters.
func validName(name string) bool {
	for i, ch := range name {
		if ch != '_' && (ch > 0xFFFF || !unicode.IsLetter(ch) && (i == 0 || !unicode.IsDigit(ch))) {
			return false
		}
	}
	return name != ""
}

// missing is a column of the table that the rows lack; false drops it.
func (r *reconciler) missing(f *Field, p place) (Field, bool) {
	out := r.freshField(f, p)
	switch {
	case !r.keeps() && r.AllowDrop:
		return out, false
	case !r.keeps():
		r.absent = append(r.absent, p.path+" ("+f.Type.describe()+")")
	case out.Type.holdsNull() || out.Default != nil:
	case r.NullForMissing:
		out.relax()
	default:
		r.refuse(p, "(%s in the table) is required and missing from the rows: add it to them, or set %s=true to make it nullable", f.Type.describe(), keyNulls)
	}
	return out, true
}

// added is a column that is new to the table.
func (r *reconciler) added(f *Field, p place) Field {
	out := r.freshField(f, p)
	switch {
	case out.Type.holdsNull() || out.Default != nil:
	case r.NullForMissing || len(p.records) == 1 && f.Name == IsDeleted: // a row without the mark is not deleted
		out.relax()
	default:
		r.refuse(p, "is new and required (%s in the rows), but older rows of the table have no value: make it nullable, give it a default, or set %s=true", f.Type.describe(), keyNulls)
	}
	return out
}

// both joins a column that the table and the rows have.
func (r *reconciler) both(table, rows *Field, p place) Field {
	out := Field{Name: table.Name, Doc: table.Doc, Aliases: table.Aliases, Order: table.Order}
	if out.Doc == "" || rows.Doc != "" && !r.keeps() {
		out.Doc = rows.Doc
	}
	out.Type = r.join(table.Type, rows.Type, p)
	switch {
	case out.Type.holdsNull():
		out.Default = json.RawMessage("null")
	case table.Default != nil && table.Type.number() && out.Type.Kind == String:
		out.Default = json.RawMessage(strconv.Quote(string(table.Default)))
	case table.Default != nil:
		out.Default = table.Default
	case out.Type.String() == rows.Type.String():
		out.Default = rows.Default
	}
	return out
}

// join is the type that holds the table's values and the rows'.
func (r *reconciler) join(table, rows *Type, p place) *Type {
	t, tableNull := table.value()
	in, rowsNull := rows.value()
	if in == nil {
		if t == nil {
			r.refuse(p, "has no type, neither in the table nor in the rows: cast it to one")
			return table
		}
		in = t // nothing but nulls
	}
	if t == nil {
		return nullable(r.fresh(in, p))
	}
	out := r.values(t, in, p)
	if tableNull || rowsNull && !r.keeps() {
		return nullable(out)
	}
	return out
}

// values joins two types without their nullability.
func (r *reconciler) values(table, rows *Type, p place) *Type {
	if table.Kind == rows.Kind {
		out := *table
		switch table.Kind {
		case Record:
			return r.record(table, rows, p)
		case Array:
			out.Items = r.join(table.Items, rows.Items, p.in("element"))
			return &out
		case Map:
			out.Items = r.join(table.Items, rows.Items, p.in("value"))
			return &out
		case Union:
			if table.String() == rows.String() {
				return r.fresh(table, p)
			}
		}
	}
	if out := widen(plain(table), plain(rows), r.NoLogs); out != nil {
		return out
	}
	r.refuse(p, "is %s in the table and %s in the rows: cast it to %s", table.describe(), rows.describe(), table.describe())
	return table
}

// fresh is a type that comes in with the rows, as Apache Hudi stores it.
func (r *reconciler) fresh(t *Type, p place) *Type {
	switch t.Kind {
	case Record:
		if slices.Contains(p.records, t) || len(p.records) > maxDepth {
			r.refuse(p, "is a record that holds itself, or is nested deeper than %d levels", maxDepth)
			return t
		}
		r.names(t, p)
		p = p.within(t)
		out := *t
		out.Fields = make([]Field, len(t.Fields))
		for i := range t.Fields {
			out.Fields[i] = r.freshField(&t.Fields[i], p.in(t.Fields[i].Name))
		}
		return &out
	case Array, Map:
		out := *t
		out.Items = r.freshItem(t.Items, p.in(map[Kind]string{Array: "element", Map: "value"}[t.Kind]))
		return &out
	case Union:
		out := *t
		out.Branches = make([]*Type, len(t.Branches))
		for i, b := range t.Branches {
			out.Branches[i] = r.fresh(b, p)
		}
		return &out
	}
	if t.Logical == Decimal && (t.Scale < 0 || t.Scale > t.Precision) {
		r.refuse(p, "is a %s, of which Avro knows none: cast it to another decimal", t.describe())
	}
	return plain(t)
}

func (r *reconciler) freshField(f *Field, p place) Field {
	out := *f
	if out.Type = r.freshItem(f.Type, p); out.Type.holdsNull() {
		out.Default = json.RawMessage("null")
	}
	return out
}

func (r *reconciler) freshItem(t *Type, p place) *Type {
	value, null := t.value()
	if value == nil {
		r.refuse(p, "has no type, all its values are null: cast it to one, or leave it out")
		return t
	}
	if value = r.fresh(value, p); null {
		return nullable(value)
	}
	return value
}

// relax makes a required field nullable.
func (f *Field) relax() {
	f.Type, f.Default = nullable(f.Type), json.RawMessage("null")
}

// value is a type without its nullability: nil where there are only nulls. A union of several types is a value as a whole.
func (t *Type) value() (*Type, bool) {
	if t.Kind == Null {
		return nil, true
	}
	if t.Kind == Union && len(t.Branches) == 1 {
		return t.Branches[0].value()
	}
	value, null := t.Optional()
	return value, null || t.holdsNull()
}

// holdsNull: is null a value of the type?
func (t *Type) holdsNull() bool {
	return t.Kind == Null || t.Kind == Union && slices.ContainsFunc(t.Branches, func(b *Type) bool { return b.Kind == Null })
}

// plain is what Apache Hudi makes of a type that it does not keep: an enumeration is a string.
func plain(t *Type) *Type {
	if t.Kind == Enum {
		return &Type{Kind: String}
	}
	return t
}

// widen gives the one of two types that holds the values of both, nil where there is none. Old files are read with it too, so
// the table's type gives way only to types that every reader can bring old values to.
func widen(table, rows *Type, noLogs bool) *Type {
	switch {
	case table.Logical == Decimal && rows.Logical == Decimal:
		return widenDecimal(table, rows, noLogs)
	case table.Logical == rows.Logical && table.Kind == rows.Kind && table.Size == rows.Size:
		return table
	case table.Logical == UUID && rows.Kind == String && table.Kind == String:
		return table // a label on text, which rows that come as columns have lost
	case becomes(rows, table):
		return table
	case rows.Logical == NoLogical && table.Logical == NoLogical && table.number() && (rows.number() || rows.Kind == String):
		return rows // not the table's, so the table's values become these
	}
	return nil
}

// number: int, long, float and double, in that order each holds the ones before.
func (t *Type) number() bool { return t.Logical == NoLogical && t.Kind >= Int && t.Kind <= Double }

// becomes says that values of rows are written as the table's other type.
func becomes(rows, table *Type) bool {
	switch {
	case rows.number() && table.number():
		return rows.Kind < table.Kind
	case table.Kind == String && table.Logical == NoLogical:
		return rows.number() || rows.Logical == Decimal || rows.Logical == Date || rows.Kind == String ||
			rows.Kind == Bytes && rows.Logical == NoLogical
	case table.Kind == Bytes && table.Logical == NoLogical:
		return rows.Kind == String && rows.Logical == NoLogical
	case table.Logical == Decimal:
		return rows.number() || rows.Kind == String && rows.Logical == NoLogical
	case table.Logical == Date:
		return rows.Kind == String && rows.Logical == NoLogical
	}
	for _, units := range [...][]Logical{
		{TimeMillis, TimeMicros},
		{TimestampMillis, TimestampMicros, TimestampNanos},
		{LocalTimestampMillis, LocalTimestampMicros, LocalTimestampNanos},
	} {
		if from := slices.Index(units, rows.Logical); from >= 0 && from < slices.Index(units, table.Logical) {
			return true
		}
	}
	return false
}

// widenDecimal: digits before and after the point must suffice. A fixed keeps its size where there may be log files: their readers
// up to 1.0 can't bring it to another. It grows for digits before the point alone: Spark takes old values for unscaled ones.
func widenDecimal(table, rows *Type, noLogs bool) *Type {
	holds := func(a, b *Type) bool { return a.Scale >= b.Scale && a.Precision-a.Scale >= b.Precision-b.Scale }
	if holds(table, rows) {
		return table
	}
	size := DecimalBytes(rows.Precision)
	if !holds(rows, table) || table.Kind == Fixed && table.Size != size && (!noLogs || rows.Scale != table.Scale) {
		return nil
	}
	out := *table
	out.Precision, out.Scale = rows.Precision, rows.Scale
	if out.Kind == Fixed {
		out.Size = size
	}
	return &out
}

// describe names a type in errors.
func (t *Type) describe() string {
	value, null := t.value()
	switch {
	case value == nil:
		return "null"
	case value.Kind == Union:
		return value.String()
	case null:
		return value.describe()
	}
	switch {
	case t.Logical == Decimal:
		return fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale)
	case t.Logical != NoLogical:
		return t.Logical.String()
	case t.Kind == Fixed:
		return fmt.Sprintf("fixed of %d bytes", t.Size)
	case t.Kind == Array:
		return "array of " + t.Items.describe()
	case t.Kind == Map:
		return "map of " + t.Items.describe()
	}
	return t.Kind.String()
}
