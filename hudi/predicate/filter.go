package predicate

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/sluicelake/sluice/hudi/schema"
)

// Filter is a condition bound to a schema: every constant has the type of its column. It is safe for concurrent use.
type Filter struct {
	expr Expr
	root check
}

// Bind gives the constants of a condition the types of the columns they are compared with. Names match exactly, else without
// regard to case. It fails where a column is not there, or where a constant can't be of the column's type.
//
// Integers, decimals, dates and times compare exactly with constants of any precision (qty < 5.5). Floats compare as doubles;
// as in Spark, NaN equals NaN and is greater than every other number, and -0.0 equals 0.0. Texts compare by their bytes.
// A timestamp without zone in the text is UTC.
func Bind(e Expr, s *arrow.Schema) (*Filter, error) {
	root, err := bind(e, s, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPredicate, err)
	}
	return &Filter{expr: e, root: root}, nil
}

// Expr is what was bound.
func (f *Filter) Expr() Expr { return f.expr }

// Eval tells for each row whether the condition is true; false and unknown are both false, and no bit is null. The batch has
// the schema that the filter was bound to. The caller releases the mask.
func (f *Filter) Eval(mem memory.Allocator, b arrow.RecordBatch) *array.Boolean {
	n := int(b.NumRows())
	out := make([]truth, n)
	f.root.rows(b, out)
	bits := memory.NewResizableBuffer(mem)
	defer bits.Release()
	bits.Resize(int(bitutil.BytesForBits(int64(n))))
	raw := bits.Bytes()
	clear(raw)
	for i, t := range out {
		raw[i>>3] |= byte(t&1) << (i & 7) // yes is 1; no and unknown are even
	}
	data := array.NewData(arrow.FixedWidthTypes.Boolean, n, []*memory.Buffer{nil, bits}, nil, 0, 0)
	defer data.Release()
	return array.NewBooleanData(data)
}

// CanMatch tells whether any row of a group with these statistics can pass; when in doubt it says yes. stats gives what is
// known of a column (a path with dots where nested), false where nothing is.
func (f *Filter) CanMatch(stats func(column string) (ColumnStats, bool)) bool {
	return f.root.outcomes(stats).yes
}

// truth is a value of three-valued logic.
type truth uint8

const (
	no      truth = 0
	yes     truth = 1
	unknown truth = 2
)

// outcomes are the truths that a condition can have over a group of rows.
type outcomes struct{ yes, no bool }

// check is a bound condition.
type check interface {
	rows(b arrow.RecordBatch, out []truth)
	outcomes(stats func(string) (ColumnStats, bool)) outcomes
}

func bind(e Expr, s *arrow.Schema, depth int) (check, error) {
	if depth > maxDepth+8 {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	switch e := e.(type) {
	case *Junction:
		j := &junction{or: e.Or}
		for _, p := range e.Parts {
			c, err := bind(p, s, depth+1)
			if err != nil {
				return nil, err
			}
			j.parts = append(j.parts, c)
		}
		return j, nil
	case *Negation:
		c, err := bind(e.Inner, s, depth+1)
		return &negation{c}, err
	case *NullTest:
		col, err := findColumn(e.Column, s)
		return &nullTest{col}, err
	case *Comparison:
		col, err := findColumn(e.Column, s)
		if err != nil {
			return nil, err
		}
		t, err := compareTest(col.typ, e.Op, e.Value)
		return &columnTest{col, t}, col.explain(err)
	case *Membership:
		col, err := findColumn(e.Column, s)
		if err != nil {
			return nil, err
		}
		t, err := memberTest(col.typ, e.Values)
		return &columnTest{col, t}, col.explain(err)
	case *Prefix:
		col, err := findColumn(e.Column, s)
		if err != nil {
			return nil, err
		}
		if id := col.typ.ID(); id != arrow.STRING && id != arrow.BINARY {
			return nil, col.explain(fmt.Errorf("a prefix needs a text column"))
		}
		return &columnTest{col, prefixTest(e.Text)}, nil
	}
	return nil, fmt.Errorf("condition of type %T", e)
}

type junction struct {
	or    bool
	parts []check
}

func (j *junction) rows(b arrow.RecordBatch, out []truth) {
	start := yes
	if j.or {
		start = no
	}
	for i := range out {
		out[i] = start
	}
	part := make([]truth, len(out))
	for _, p := range j.parts {
		p.rows(b, part)
		if j.or {
			for i, t := range part {
				out[i] = orTable[out[i]][t]
			}
		} else {
			for i, t := range part {
				out[i] = andTable[out[i]][t]
			}
		}
	}
}

var (
	andTable = [3][4]truth{{no, no, no}, {no, yes, unknown}, {no, unknown, unknown}}
	orTable  = [3][4]truth{{no, yes, unknown}, {yes, yes, yes}, {unknown, yes, unknown}}
)

func (j *junction) outcomes(stats func(string) (ColumnStats, bool)) outcomes {
	all := outcomes{yes: !j.or, no: j.or}
	for _, p := range j.parts {
		o := p.outcomes(stats)
		if j.or {
			all.yes = all.yes || o.yes
			all.no = all.no && o.no
		} else {
			all.yes = all.yes && o.yes
			all.no = all.no || o.no
		}
	}
	return all
}

type negation struct{ inner check }

func (n *negation) rows(b arrow.RecordBatch, out []truth) {
	n.inner.rows(b, out)
	for i, t := range out {
		if t != unknown {
			out[i] = t ^ 1
		}
	}
}

func (n *negation) outcomes(stats func(string) (ColumnStats, bool)) outcomes {
	o := n.inner.outcomes(stats)
	return outcomes{yes: o.no, no: o.yes}
}

// columnRef is a column of a batch, or a member below one.
type columnRef struct {
	name string
	at   []int
	typ  arrow.DataType
}

func (c *columnRef) explain(err error) error {
	if err != nil {
		return fmt.Errorf("column %s of type %s: %w", c.name, c.typ, err)
	}
	return nil
}

func findColumn(path []string, s *arrow.Schema) (*columnRef, error) {
	c := &columnRef{}
	fields := s.Fields()
	var names []string
	for i, name := range path {
		at, err := schema.FindField(fields, name)
		if err != nil {
			return nil, err
		}
		if at < 0 {
			return nil, fmt.Errorf("there is no column %s (columns: %s)", strings.Join(path[:i+1], "."), namesOf(fields))
		}
		c.at = append(c.at, at)
		c.typ = fields[at].Type
		names = append(names, fields[at].Name)
		if i+1 < len(path) {
			st, ok := c.typ.(*arrow.StructType)
			if !ok {
				return nil, fmt.Errorf("column %s of type %s has no member %s", strings.Join(path[:i+1], "."), c.typ, path[i+1])
			}
			fields = st.Fields()
		}
	}
	c.name = strings.Join(names, ".")
	return c, nil
}

func namesOf(fields []arrow.Field) string {
	var names []string
	for _, f := range fields {
		if len(names) == 20 {
			names = append(names, "…")
			break
		}
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

// values gives the column's array and marks rows unknown that are null, in it or in a struct around it. The array is good
// while the batch is.
func (c *columnRef) values(b arrow.RecordBatch, mark func(arrow.Array)) arrow.Array {
	arr := b.Column(c.at[0])
	for _, i := range c.at[1:] {
		mark(arr)
		arr = arr.(*array.Struct).Field(i)
	}
	mark(arr)
	return arr
}

type nullTest struct{ col *columnRef }

func (n *nullTest) rows(b arrow.RecordBatch, out []truth) {
	clear(out)
	n.col.values(b, func(a arrow.Array) {
		if a.NullN() == 0 && a.DataType().ID() != arrow.NULL {
			return
		}
		for i := range out {
			if a.IsNull(i) || a.DataType().ID() == arrow.NULL {
				out[i] = yes
			}
		}
	})
}

func (n *nullTest) outcomes(stats func(string) (ColumnStats, bool)) outcomes {
	s, ok := stats(n.col.name)
	if !ok || s.Nulls < 0 {
		return outcomes{true, true}
	}
	return outcomes{yes: s.Nulls > 0, no: s.Rows < 0 || s.Nulls < s.Rows}
}

// columnTest applies a test to the values that are not null.
type columnTest struct {
	col  *columnRef
	test test
}

// test decides about values of one column type.
type test interface {
	// rows sets yes or no (or unknown) for every value; those of nulls do not matter.
	rows(a arrow.Array, out []truth)
	// outcomes over values that lie between the bounds.
	outcomes(s ColumnStats) outcomes
}

func (c *columnTest) rows(b arrow.RecordBatch, out []truth) {
	var masks []arrow.Array
	arr := c.col.values(b, func(a arrow.Array) {
		if a.NullN() > 0 {
			masks = append(masks, a)
		}
	})
	if arr.DataType().ID() == arrow.NULL {
		for i := range out {
			out[i] = unknown
		}
		return
	}
	c.test.rows(arr, out)
	for _, m := range masks {
		for i := range out {
			if m.IsNull(i) {
				out[i] = unknown
			}
		}
	}
}

func (c *columnTest) outcomes(stats func(string) (ColumnStats, bool)) outcomes {
	s, ok := stats(c.col.name)
	if !ok {
		s = ColumnStats{Nulls: -1, Rows: -1}
	}
	if s.Rows >= 0 && s.Nulls == s.Rows {
		return outcomes{} // nulls only, or no rows: unknown everywhere
	}
	return c.test.outcomes(s)
}
