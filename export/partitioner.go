package export

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/expr-lang/expr/vm"

	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/internal/formula"
)

// Partitioner decides into which folders rows go: the place of a partitioner class of the Java tool. Config.Partitioners
// holds those of a program by name.
type Partitioner interface {
	// Partition is asked once, with the columns of the table, meta columns first.
	Partition(columns *arrow.Schema) (Partitioning, error)
}

// Partitioning is what a Partitioner decides.
type Partitioning struct {
	// Names of the levels of folders: <name>=<value>/….
	Names []string
	// Read are the columns that Values wants to see.
	Read []string
	// Drop are columns that leave the files. The others stay, the meta columns too.
	Drop []string
	// Values gives, for a batch of the columns in Read, one array for each of Names: null and the empty text go to
	// __HIVE_DEFAULT_PARTITION__, everything else is written as Spark writes it, escaped. Who calls it releases the arrays. It is
	// called by several goroutines at once.
	Values func(batch arrow.RecordBatch) ([]arrow.Array, error)
}

// expressionPrefix begins a partitioner that is written as expressions.
const expressionPrefix = "expr:"

// Expression is the partitioner of "name = EXPRESSION; name = EXPRESSION" in the language of expr-lang: each gives a level of
// folders. Columns, meta columns among them, are variables; text, numbers and booleans are themselves, decimals and dates
// their text, timestamps a time in UTC, null is nil. A column that stands alone as an expression is renamed: it leaves the files.
// So "date = _hoodie_partition_path" partitions by the table's own partition paths under the name date.
func Expression(text string) (Partitioner, error) {
	formulas, err := formula.Parse(text)
	if err == nil && len(formulas) == 0 {
		err = errors.New("there is no expression")
	}
	if err != nil {
		return nil, expressionError(text, err)
	}
	return expression(formulas), nil
}

func expressionError(text string, err error) error {
	return &UsageError{fmt.Errorf("output partitioner %q: %w; write it like expr:date = _hoodie_partition_path, or expr:year = at.Year(); shop = shop %% 10", expressionPrefix+text, err)}
}

// expression has one formula for each level of folders.
type expression []formula.Formula

// Partition implements Partitioner.
func (e expression) Partition(columns *arrow.Schema) (p Partitioning, err error) {
	for _, l := range e {
		p.Names = append(p.Names, l.Head)
		if l.Alone != "" {
			p.Drop = append(p.Drop, l.Alone)
		}
		if l.UsesAll {
			p.Read = names(columns)
		}
		for _, name := range l.Uses {
			if !columns.HasField(name) {
				return p, fmt.Errorf("%w: %q in the output partitioner %q; the table has %s", ErrNoSuchColumn, name, l.Text, strings.Join(names(columns), ", "))
			}
			if !slices.Contains(p.Read, name) {
				p.Read = append(p.Read, name)
			}
		}
	}
	p.Values = e.values
	return p, nil
}

func (e expression) values(batch arrow.RecordBatch) (out []arrow.Array, err error) {
	defer func() {
		if err != nil {
			for _, a := range out {
				a.Release()
			}
			out = nil
		}
	}()
	for i := range e {
		l := &e[i]
		var a arrow.Array
		if at := batch.Schema().FieldIndices(l.Alone); l.Alone != "" && len(at) == 1 {
			a = batch.Column(at[0])
			a.Retain()
		} else if a, err = evaluate(l, batch); err != nil {
			return out, err
		}
		out = append(out, a)
	}
	return out, nil
}

// evaluate runs an expression for every row. Rows that have the same values as the row before share its result.
func evaluate(f *formula.Formula, batch arrow.RecordBatch) (arrow.Array, error) {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	env := map[string]any{}
	var machine vm.VM
	var text string
	for row := range int(batch.NumRows()) {
		changed := row == 0
		for i, c := range batch.Columns() {
			v := valueOf(c, row)
			if name := batch.ColumnName(i); changed || env[name] != v {
				env[name], changed = v, true
			}
		}
		if changed {
			result, err := machine.Run(f.Program, env)
			if err == nil {
				text, err = resultText(result)
			}
			if err != nil {
				return nil, fmt.Errorf("output partitioner %s = %s, row %v: %w", f.Head, f.Text, env, err)
			}
		}
		b.Append(text) // the empty text is what null is
	}
	return b.NewArray(), nil
}

// valueOf is a value as expressions see it. All kinds can be compared.
func valueOf(col arrow.Array, row int) any {
	if col.IsNull(row) {
		return nil
	}
	switch c := col.(type) {
	case *array.Boolean:
		return c.Value(row)
	case *array.Int32:
		return int(c.Value(row))
	case *array.Int64:
		return int(c.Value(row))
	case *array.Float32:
		return float64(c.Value(row))
	case *array.Float64:
		return c.Value(row)
	case *array.Timestamp:
		return c.Value(row).ToTime(c.DataType().(*arrow.TimestampType).Unit).UTC()
	}
	if arrow.IsNested(col.DataType().ID()) {
		return col.ValueStr(row)
	}
	return partitionText(col, row, time.UTC)
}

// resultText is the text of what an expression gives, as Spark would write such a value.
func resultText(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case bool, int, int32, int64, uint8, uint16, uint32, uint64, int8, int16, uint:
		return fmt.Sprint(v), nil
	case float64:
		return string(schema.AppendJavaFloat(nil, v, 64)), nil
	case float32:
		return string(schema.AppendJavaFloat(nil, float64(v), 32)), nil
	case time.Time:
		return sqlTime(v), nil
	case fmt.Stringer: // months, weekdays, durations
		return v.String(), nil
	}
	return "", fmt.Errorf("it gives a value of type %T, which is no folder name", v)
}

var (
	sampleClass = regexp.MustCompile(`(?i)date|day|daily`)
	yearClass   = regexp.MustCompile(`(?i)TestHoodieSnapshotExporter.*UserDefinedPartitioner|year`)
)

// classError refuses a class of the Java tool, with what does the same where its name tells what it does.
func classError(class string) error {
	same := "expr:<name> = <expression over columns and meta columns>"
	switch {
	case yearClass.MatchString(class):
		same = "expr:year = _hoodie_partition_path"
	case sampleClass.MatchString(class):
		same = "expr:date = _hoodie_partition_path, which is what the partitioner in the exporter's documentation does"
	}
	return fmt.Errorf("output partitioner %q is a class of the Java tool and can't be loaded here: use %s; hoodie-partition-path[:<column>] "+
		"(partition by the table's own partition path), fields:<a>,<b>, or --output-partition-field <column>", class, same)
}
