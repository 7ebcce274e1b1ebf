package export

import (
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
	keep   []string // columns of the files, in order
	fields []string // columns that make the folders, in order; they are not in keep
	names  []string // the folder names of fields: the spelling that was asked for
}

// newLayout checks the partitioning that was asked for against the columns of the table (meta columns first). The texts
// of refusals name what the original names, and what can be used instead.
func newLayout(c *Config, columns *arrow.Schema) (layout, error) {
	user := make([]string, 0, columns.NumFields())
	for _, f := range columns.Fields() {
		if !schema.IsMeta(f.Name) {
			user = append(user, f.Name)
		}
	}
	kind, arg, _ := strings.Cut(c.Partitioner, ":")
	switch {
	case kind == "hoodie-partition-path":
		if arg == "" {
			arg = "date"
		}
		keep := slices.DeleteFunc(names(columns), func(n string) bool { return n == schema.PartitionPath })
		return layout{keep: keep, fields: []string{schema.PartitionPath}, names: []string{arg}}, nil
	case kind == "fields":
		return fieldsLayout(strings.Split(arg, ","), names(columns), columns)
	case c.Partitioner != "":
		return layout{}, fmt.Errorf("output partitioner %q is a class of the Java tool and can't be loaded here: use hoodie-partition-path[:<column>] "+
			"(partition by the table's own partition path), fields:<a>,<b>, or --output-partition-field <column>", c.Partitioner)
	case c.PartitionField != "":
		return fieldsLayout([]string{c.PartitionField}, user, columns)
	}
	return layout{keep: user}, nil
}

func names(s *arrow.Schema) []string {
	out := make([]string, s.NumFields())
	for i, f := range s.Fields() {
		out[i] = f.Name
	}
	return out
}

func fieldsLayout(asked, keep []string, columns *arrow.Schema) (layout, error) {
	l := layout{keep: slices.Clone(keep)}
	for _, name := range asked {
		i := slices.IndexFunc(l.keep, func(n string) bool { return n == name })
		if i < 0 {
			i = slices.IndexFunc(l.keep, func(n string) bool { return strings.EqualFold(n, name) })
		}
		if i < 0 {
			return l, fmt.Errorf("%w: output partition field %q; the columns that can be used are %s", ErrNoSuchColumn, name, strings.Join(usable(keep, columns), ", "))
		}
		f, _ := columns.FieldsByName(l.keep[i])
		if !partitionable(f[0].Type) {
			return l, fmt.Errorf("column %s is of type %s, which can't be a folder name; the columns that can be used are %s", l.keep[i], f[0].Type, strings.Join(usable(keep, columns), ", "))
		}
		l.fields = append(l.fields, l.keep[i])
		l.names = append(l.names, name)
		l.keep = slices.Delete(l.keep, i, i+1)
	}
	if len(l.keep) == 0 {
		return l, fmt.Errorf("partitioning by all columns (%s) leaves no column for the files", strings.Join(asked, ", "))
	}
	return l, nil
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
		return strings.TrimSuffix(strings.TrimRight(t.Format("2006-01-02 15:04:05.000000"), "0"), ".")
	}
	return col.ValueStr(row) // boolean, integers, times
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
