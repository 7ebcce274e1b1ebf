package export

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/sluicelake/sluice/hudi/schema"
)

// defaultPartition is the folder of rows whose partition value is null or empty.
const defaultPartition = "__HIVE_DEFAULT_PARTITION__"

// layout says into which folders the rows of an export go and which columns its files hold.
type layout struct {
	columns *arrow.Schema // of the table

	keep   []string                                       // columns of the files, in order
	names  []string                                       // of the levels of folders: the spelling that was asked for
	fields []string                                       // columns that make the folders, in order
	derive func(arrow.RecordBatch) ([]arrow.Array, error) // makes the folders' values of fields; nil: they are the values
}

// read gives the columns to read: those of the files, then those that only folders need.
func (l *layout) read() []string {
	out := slices.Clone(l.keep)
	for _, f := range l.fields {
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// newLayout checks the columns and the partitioning that were asked for against the columns of the table (meta columns
// first). The texts of refusals name what the original names, and what can be used instead.
func newLayout(c *Config, columns *arrow.Schema) (layout, error) {
	l := layout{columns: columns, keep: names(columns)}
	kind, arg, _ := strings.Cut(c.Partitioner, ":")
	registered := c.Partitioners[c.Partitioner]
	if c.Partitioner == "" && !c.KeepMeta {
		l.keep = slices.DeleteFunc(l.keep, schema.IsMeta)
	}
	from := l.keep // where fields are looked for
	if c.Columns != nil {
		if err := l.choose(c.Columns); err != nil {
			return l, err
		}
	}
	switch {
	case registered != nil:
		return l, l.plan(registered)
	case strings.HasPrefix(c.Partitioner, expressionPrefix):
		e, err := Expression(strings.TrimPrefix(c.Partitioner, expressionPrefix))
		if err != nil {
			return l, err
		}
		return l, l.plan(e)
	case kind == "hoodie-partition-path":
		if arg == "" {
			arg = "date"
		}
		l.take(schema.PartitionPath, arg)
		return l, nil
	case kind == "fields":
		return l, l.takeFields(strings.Split(arg, ","), from)
	case c.Partitioner != "":
		return layout{}, classError(c.Partitioner)
	case c.PartitionField != "":
		if find(from, c.PartitionField) != "" { // a name with a comma in it
			return l, l.takeFields([]string{c.PartitionField}, from)
		}
		return l, l.takeFields(strings.Split(c.PartitionField, ","), from)
	}
	return l, nil
}

func names(s *arrow.Schema) []string {
	out := make([]string, s.NumFields())
	for i, f := range s.Fields() {
		out[i] = f.Name
	}
	return out
}

// find gives the column of a name, in any letter case where it has no exact one; empty when there is none.
func find(in []string, name string) string {
	if slices.Contains(in, name) {
		return name
	}
	if i := slices.IndexFunc(in, func(n string) bool { return strings.EqualFold(n, name) }); i >= 0 {
		return in[i]
	}
	return ""
}

// choose makes the wanted columns those of the files.
func (l *layout) choose(wanted []string) error {
	var keep []string
	for _, name := range wanted {
		found := find(names(l.columns), strings.TrimSpace(name))
		if found == "" {
			return fmt.Errorf("%w: %q; the table has %s", ErrNoSuchColumn, name, strings.Join(names(l.columns), ", "))
		}
		if !slices.Contains(keep, found) {
			keep = append(keep, found)
		}
	}
	l.keep = keep
	return nil
}

// values gives the values of the folders of a batch, one column for each name. release lets go of what was made for it.
func (l *layout) values(batch arrow.RecordBatch) (values []arrow.Array, release func(), err error) {
	fields := make([]arrow.Field, len(l.fields))
	columns := make([]arrow.Array, len(l.fields))
	for i, f := range l.fields {
		at := batch.Schema().FieldIndices(f)
		if len(at) != 1 {
			return nil, nil, fmt.Errorf("%d columns are named %s", len(at), f)
		}
		fields[i], columns[i] = batch.Schema().Field(at[0]), batch.Column(at[0])
	}
	if l.derive == nil {
		return columns, func() {}, nil
	}
	in := array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, batch.NumRows())
	defer in.Release()
	if values, err = l.derive(in); err != nil {
		return nil, nil, err
	}
	release = func() {
		for _, v := range values {
			v.Release()
		}
	}
	for _, v := range values {
		if len(values) != len(l.names) || v.Len() != int(batch.NumRows()) || !partitionable(v.DataType()) {
			release()
			return nil, nil, fmt.Errorf("the output partitioner gave a column of %s with %d rows, %d of %d columns for a batch of %d rows", v.DataType(), v.Len(), len(values), len(l.names), batch.NumRows())
		}
	}
	return values, release, nil
}

// plan asks a partitioner.
func (l *layout) plan(p Partitioner) error {
	all, err := p.Partition(l.columns)
	if err != nil {
		return err
	}
	if len(all.Names) == 0 || all.Values == nil {
		return errors.New("the output partitioner gives no folders; leave it out")
	}
	for _, name := range slices.Concat(all.Read, all.Drop) {
		if !l.columns.HasField(name) {
			return fmt.Errorf("%w: the output partitioner asks for %q; the table has %s", ErrNoSuchColumn, name, strings.Join(names(l.columns), ", "))
		}
	}
	l.names, l.fields, l.derive = all.Names, all.Read, all.Values
	l.keep = slices.DeleteFunc(slices.Clone(l.keep), func(n string) bool { return slices.Contains(all.Drop, n) })
	if len(l.keep) == 0 {
		return errors.New("the output partitioner leaves no column for the files")
	}
	return nil
}

// take makes a column one of folders, under a name.
func (l *layout) take(column, name string) {
	l.fields = append(l.fields, column)
	l.names = append(l.names, name)
	l.keep = slices.DeleteFunc(slices.Clone(l.keep), func(n string) bool { return n == column })
}

func (l *layout) takeFields(asked, from []string) error {
	for _, name := range asked {
		name = strings.TrimSpace(name)
		found := find(from, name)
		if found == "" || slices.Contains(l.fields, found) {
			return fmt.Errorf("%w: output partition field %q; the columns that can be used are %s", ErrNoSuchColumn, name, strings.Join(usable(from, l.columns), ", "))
		}
		f, _ := l.columns.FieldsByName(found)
		if !partitionable(f[0].Type) {
			return fmt.Errorf("column %s is of type %s, which can't be a folder name; the columns that can be used are %s", found, f[0].Type, strings.Join(usable(from, l.columns), ", "))
		}
		l.take(found, name)
	}
	if len(l.keep) == 0 {
		return fmt.Errorf("partitioning by all columns (%s) leaves no column for the files", strings.Join(asked, ", "))
	}
	return nil
}

func usable(keep []string, columns *arrow.Schema) []string {
	var out []string
	for _, n := range keep {
		if f, ok := columns.FieldsByName(n); ok && partitionable(f[0].Type) && !schema.IsMeta(n) {
			out = append(out, n)
		}
	}
	return out
}

func partitionable(t arrow.DataType) bool {
	return !arrow.IsNested(t.ID()) && t.ID() != arrow.NULL
}

// folder writes one "name=value" segment for a row. Null and the empty text share a folder.
func folder(b *strings.Builder, name string, col arrow.Array, row int, zone *time.Location) {
	escape(b, name)
	b.WriteByte('=')
	value := partitionText(col, row, zone)
	if value == "" {
		value = defaultPartition
	}
	escape(b, value)
}

// partitionText is the text that Spark makes of a partition value: dates and timestamps in SQL form, decimals plain,
// doubles as Java prints them, binary as text.
func partitionText(col arrow.Array, row int, zone *time.Location) string {
	if col.IsNull(row) {
		return ""
	}
	switch c := col.(type) {
	case *array.String:
		return c.Value(row)
	case *array.Binary:
		return string(c.Value(row))
	case *array.FixedSizeBinary:
		return string(c.Value(row))
	case *array.Float32:
		return string(schema.AppendJavaFloat(nil, float64(c.Value(row)), 32))
	case *array.Float64:
		return string(schema.AppendJavaFloat(nil, c.Value(row), 64))
	case *array.Date32:
		return c.Value(row).ToTime().Format(time.DateOnly)
	case *array.Decimal128:
		return plainDecimal(c.Value(row).BigInt(), c.DataType().(*arrow.Decimal128Type).Scale)
	case *array.Decimal256:
		return plainDecimal(c.Value(row).BigInt(), c.DataType().(*arrow.Decimal256Type).Scale)
	case *array.Timestamp:
		dt := c.DataType().(*arrow.TimestampType)
		t := c.Value(row).ToTime(dt.Unit)
		if dt.TimeZone != "" {
			t = t.In(zone)
		}
		return sqlTime(t)
	}
	return col.ValueStr(row) // boolean, integers, times
}

// sqlTime is a timestamp as Spark's cast to text gives it.
func sqlTime(t time.Time) string {
	return strings.TrimSuffix(strings.TrimRight(t.Format("2006-01-02 15:04:05.000000"), "0"), ".")
}

func plainDecimal(unscaled *big.Int, scale int32) string {
	text := new(big.Int).Abs(unscaled).String()
	if scale > 0 {
		if pad := int(scale) + 1 - len(text); pad > 0 {
			text = strings.Repeat("0", pad) + text
		}
		text = text[:len(text)-int(scale)] + "." + text[len(text)-int(scale):]
	}
	if unscaled.Sign() < 0 {
		return "-" + text
	}
	return text
}

// escaped are the characters that Spark replaces by %XX in a folder name, beside those below U+0020.
const escaped = "\"#%'*/:=?\\\x7f{[]^"

func escape(b *strings.Builder, text string) {
	for i := range len(text) {
		c := text[i]
		if c < 0x20 && c != 0 || strings.IndexByte(escaped, c) >= 0 {
			fmt.Fprintf(b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
}
