package keygen

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"

	"github.com/sluicelake/sluice/internal/formula"
)

// ExpressionClass is what the table property hoodie.table.keygenerator.class says of a table whose keys are made by
// expressions. No such Java class exists, so a Spark writer refuses the table instead of writing keys of another rule.
const ExpressionClass = "sluice.keygen.Expression"

// Expression makes keys and partition paths by expressions over the columns.
type Expression struct {
	text           string
	key, partition *vm.Program
	texts          texts
}

func expressionText(o Options) string {
	if text := o.Table[KeyExpression]; text != "" {
		return text
	}
	return o.Properties[KeyExpression]
}

// NewExpression compiles "key = EXPRESSION; partition = EXPRESSION" in the language of expr-lang. Columns are variables;
// text, numbers and booleans are themselves, decimals and dates their text, timestamps a time in UTC, null is nil. A number
// that an expression gives is written as Java writes it. escape(text) escapes a partition value, date(t, layout) formats a
// time by a Joda pattern. partition may be left out.
func NewExpression(text string, o Options) (*Expression, error) {
	if stored := o.Table[KeyExpression]; stored != "" && o.Properties[KeyExpression] != "" && stored != o.Properties[KeyExpression] {
		return nil, &Error{Class: classRefused, Stage: StageConstruct, Row: -1, Field: KeyExpression, Source: "the write options",
			Message: "the option " + KeyExpression + " is " + strconv.Quote(o.Properties[KeyExpression]) + ", the table's keys are made by " + strconv.Quote(stored), Hint: "remove the option, the table's expression is used"}
	}
	if stored, class := storedType(o.Table); o.Table != nil && o.Table[KeyExpression] == "" && stored != "" && class != ExpressionClass {
		return nil, &Error{Class: classRefused, Stage: StageConstruct, Row: -1, Field: KeyExpression, Source: "the write options",
			Message: "the table's keys are made by the " + string(stored) + " generator, not by an expression", Hint: "remove " + KeyExpression + "; a table's generator can't change"}
	}
	e := &Expression{text: text, texts: texts{hexBytes: true, oldFloats: !o.ShortestFloats, zone: utcJava}}
	formulas, err := formula.Parse(text, functions()...)
	if err != nil {
		return nil, expressionError(text, err)
	}
	for _, f := range formulas {
		program := &e.key
		switch f.Head {
		case "key":
		case "partition":
			program = &e.partition
		default:
			return nil, expressionError(text, fmt.Errorf("%q is neither key nor partition", f.Head))
		}
		if *program != nil {
			return nil, expressionError(text, fmt.Errorf("%s stands twice", f.Head))
		}
		*program = f.Program
	}
	if e.key == nil {
		return nil, expressionError(text, fmt.Errorf("there is no key = …"))
	}
	return e, nil
}

func expressionError(text string, err error) error {
	return &Error{Class: classRefused, Stage: StageConstruct, Row: -1, Field: KeyExpression, Message: "expression " + strconv.Quote(text), CauseMessage: err.Error(),
		Hint: `write it as: key = region + "-" + string(id); partition = region`}
}

func functions() []expr.Option {
	return []expr.Option{
		expr.Function("escape", func(args ...any) (any, error) {
			s, ok := args[0].(string)
			if !ok {
				return nil, fmt.Errorf("escape takes a text, not %T", args[0])
			}
			return Escape(s), nil
		}, new(func(any) string)),
		expr.Function("date", func(args ...any) (any, error) {
			t, ok := args[0].(time.Time)
			layout, named := args[1].(string)
			if !ok || !named {
				return nil, fmt.Errorf("date takes a time and a pattern, not %T and %T", args[0], args[1])
			}
			p, err := compilePattern(layout)
			if err != nil {
				return nil, err
			}
			text, err := p.print(nil, t.UnixMilli(), utcZone, &span{}, &calendar{})
			return string(text), err
		}, new(func(any, any) string)),
	}
}

// TableProperties are what the table keeps.
func (e *Expression) TableProperties(version int) map[string]string {
	p := map[string]string{KeyExpression: e.text, TableClass: ExpressionClass}
	if version >= 8 {
		p[TableType] = string(UserProvided)
	}
	return p
}

// Keys implements [Generator].
func (e *Expression) Keys(batch arrow.RecordBatch) (keys, partitions arrow.Array, err error) {
	columns := make([]*column, batch.NumCols())
	env := make(map[string]any, len(columns))
	for i := range columns {
		c := &column{}
		if err := c.set(batch.Column(i), nil); err == nil {
			columns[i] = c
		}
	}
	key, path := newTextBuilder(memory.DefaultAllocator, int(batch.NumRows()), 0), newTextBuilder(memory.DefaultAllocator, int(batch.NumRows()), 0)
	var machine vm.VM
	for row := range int(batch.NumRows()) {
		for i, c := range columns {
			if c != nil {
				env[batch.ColumnName(i)] = e.value(c, row)
			}
		}
		var fail *Error
		var k, p []byte
		if k, fail = e.eval(&machine, e.key, env, StageKey); fail == nil {
			p, fail = e.eval(&machine, e.partition, env, StagePartition)
		}
		if fail == nil && (!key.append(k) || !path.append(p)) {
			fail = tooLong(row)
		}
		if fail != nil {
			key.release()
			path.release()
			return nil, nil, inRow(fail, row)
		}
	}
	return key.finish(), path.finish(), nil
}

func (e *Expression) eval(machine *vm.VM, program *vm.Program, env map[string]any, stage Stage) ([]byte, *Error) {
	if program == nil {
		return nil, nil
	}
	fail := func(message string) *Error {
		return &Error{Class: classRefused, Stage: stage, Field: KeyExpression, Message: "expression " + strconv.Quote(e.text), CauseMessage: message, Hint: "correct the expression"}
	}
	v, err := machine.Run(program, env)
	if err != nil {
		return nil, fail(err.Error())
	}
	d, ok := datumOf(v)
	if !ok {
		return nil, fail(fmt.Sprintf("it gives a %T, not a text, number or boolean", v))
	}
	var text []byte
	if !d.missing() {
		var bad *Error
		if text, bad = e.texts.append(nil, &d); bad != nil {
			return nil, bad
		}
	}
	switch {
	case stage == StageKey && len(text) == 0:
		return nil, fail("the key is null or empty")
	case stage == StageKey:
		return text, nil
	case len(text) == 0:
		return []byte(NullPartition), nil
	}
	if why := unsafePath(string(text)); why != "" {
		return nil, fail("partition path " + strconv.Quote(string(text)) + " " + why)
	}
	return text, nil
}

// value is what a column is in an expression.
func (e *Expression) value(c *column, row int) any {
	var d Datum
	c.read(row, &d)
	switch d.Kind {
	case Null, Absent, ParentNull, ParentScalar:
		return nil
	case String, Enum:
		return strings.Clone(d.S)
	case Boolean:
		return d.I != 0
	case Int, Long, TimeMillis, TimeMicros:
		return int(d.I)
	case Float, Double:
		return d.F
	case TimestampMillis, LocalMillis:
		return time.UnixMilli(d.I).UTC()
	case TimestampMicros, LocalMicros:
		return time.UnixMicro(d.I).UTC()
	case TimestampNanos, LocalNanos:
		return time.Unix(0, d.I).UTC()
	}
	text, err := e.texts.append(nil, &d)
	if err != nil {
		return nil
	}
	return string(text)
}

func datumOf(v any) (Datum, bool) {
	switch x := v.(type) {
	case nil:
		return Datum{}, true
	case string:
		return Datum{Kind: String, S: x}, true
	case bool:
		if x {
			return Datum{Kind: Boolean, I: 1}, true
		}
		return Datum{Kind: Boolean}, true
	case int:
		return Datum{Kind: Long, I: int64(x)}, true
	case int64:
		return Datum{Kind: Long, I: x}, true
	case float64:
		return Datum{Kind: Double, F: x}, true
	}
	return Datum{}, false
}

var _ Generator = (*Expression)(nil)
var _ Generator = (*Keygen)(nil)
