package splice

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/sluicelake/sluice/hudi/schema"
)

// Want says what the columns of the output are.
type Want struct {
	// Columns of the output in their order. A type is the promise: strings as STRING, timestamps as INT64 microseconds, lists of
	// three levels, and so on, as Spark writes them.
	Columns *arrow.Schema
	// Int96 promises timestamps as INT96, as Spark's default is.
	Int96 bool
	// Codec that the pages must have: "snappy", "gzip", "zstd" or "none". Empty: any of these.
	Codec string
	// Constants are columns that must hold one value in every row, or null in every row, as the partition path says. The
	// statistics of the file have to prove it.
	Constants map[string]scalar.Scalar
}

// codecName names the codecs that every engine reads, by their number in the format.
func codecName(number int64) (string, bool) {
	switch number {
	case 0:
		return "none", true
	case 1:
		return "snappy", true
	case 2:
		return "gzip", true
	case 6:
		return "zstd", true
	}
	return "", false
}

// Projection is the part of a file that a copy takes: which column chunks, and under which schema.
type Projection struct {
	file   *File
	schema []fields // SchemaElements of the output, the root first
	leaves []int    // source column of each leaf of the output
	paths  [][]string
	codec  string
	bytes  int64
	key    string // the schema and codec encoded: projections of one key go into one file
}

// Codec of all pages: "snappy", "gzip", "zstd" or "none".
func (p *Projection) Codec() string { return p.codec }

// Bytes that the copy takes, without the footer.
func (p *Projection) Bytes() int64 { return p.bytes }

// Rows that the copy takes.
func (p *Projection) Rows() int64 { return p.file.Rows() }

// RowGroups that the copy takes; those without rows are left out.
func (p *Projection) RowGroups() int {
	n := 0
	for _, g := range p.file.groups {
		if g.rows > 0 {
			n++
		}
	}
	return n
}

// Fits reports whether both can stand in one output: the same columns in the same physical form and codec.
func (p *Projection) Fits(other *Projection) bool { return p.key == other.key }

// CanCopy decides whether the wanted columns can be copied as bytes. Where they can't, the projection is nil and the reason
// says why: "column price: DOUBLE can't be read as decimal(10, 2) without decoding".
func CanCopy(f *File, w Want) (p *Projection, reason string) {
	if name, old := oldWriter(f.creator); old {
		return nil, "written by " + name + ", whose footers can't be trusted"
	}
	m := matcher{want: w, out: &Projection{file: f}}
	m.root(w.Columns.NumFields())
	top := f.base.Schema().Fields()
	for _, c := range w.Columns.Fields() {
		at, err := schema.FindField(top, c.Name)
		switch {
		case err != nil:
			return nil, err.Error()
		case at < 0:
			return nil, fmt.Sprintf("column %s is not in the file", c.Name)
		}
		if why := m.column(c, top[at].Type, f.tree[at]); why != "" {
			return nil, fmt.Sprintf("column %s: %s", c.Name, why)
		}
		if v := w.Constants[c.Name]; v != nil && !f.holds(f.tree[at], v) {
			return nil, fmt.Sprintf("column %s takes its values from the partition path", c.Name)
		}
	}
	if len(m.out.leaves) == 0 {
		return nil, "no columns"
	}
	if why := m.chunks(); why != "" {
		return nil, why
	}
	m.out.key = m.out.codec
	for _, e := range m.out.schema {
		m.out.key += string(e.append(nil))
	}
	return m.out, ""
}

// matcher walks wanted types, the file's types and the file's Parquet schema at once, and writes the output's schema.
type matcher struct {
	want Want
	out  *Projection
	path []string
}

func (m *matcher) root(children int) {
	m.add(fields{}.setText(elementName, "spark_schema").setI32(elementChildren, int64(children)))
}

func (m *matcher) add(e fields) { m.out.schema = append(m.out.schema, e) }

// column matches a top-level column. A required column of the file may stand for one that the table has as required: both say
// that there are no nulls.
func (m *matcher) column(w arrow.Field, have arrow.DataType, e *element) string {
	if e.repetition == required && w.Nullable {
		return "it is required in the file, and the table's can be null"
	}
	return m.value(w.Name, w.Type, have, e, e.repetition)
}

// member matches a field inside another: it must be as nullable as is promised, or files of one output would differ in type.
func (m *matcher) member(name string, w arrow.Field, have arrow.DataType, e *element) string {
	if want := repetitionOf(w.Nullable); e.repetition != want {
		return fmt.Sprintf("%s can be null in one of file and table only", name)
	}
	return m.value(name, w.Type, have, e, e.repetition)
}

// item matches the elements of a list. They may be required where the table's can be null, as they always are in lists of two
// levels: readers bring lists of both kinds together.
func (m *matcher) item(w arrow.Field, have arrow.DataType, e *element, repetition int64) string {
	if repetition == optional && !w.Nullable {
		return "elements can be null in the file only"
	}
	return m.value("element", w.Type, have, e, repetition)
}

func repetitionOf(nullable bool) int64 {
	if nullable {
		return optional
	}
	return required
}

// value matches a type. name is the output's.
func (m *matcher) value(name string, want, have arrow.DataType, e *element, repetition int64) string {
	m.path = append(m.path, name)
	defer func() { m.path = m.path[:len(m.path)-1] }()
	head := fields{}.setI32(elementRepetition, repetition).setText(elementName, name)
	if repetition == repeated {
		return "a repeated field without a list around it"
	}
	switch want := want.(type) {
	case *arrow.StructType:
		return m.structure(head, want, have, e)
	case *arrow.ListType:
		return m.list(head, want, have, e)
	case *arrow.MapType:
		return m.mapping(head, want, have, e)
	}
	if e.physical < 0 || !arrow.TypeEqual(want, have) {
		return fmt.Sprintf("%s in the file, %s in the table", have, want)
	}
	leaf, why := m.leaf(head, want, e)
	if why != "" {
		return why
	}
	m.add(leaf)
	m.out.leaves = append(m.out.leaves, e.column)
	m.out.paths = append(m.out.paths, append([]string{}, m.path...))
	return ""
}

// structure matches members by name. Members of the file that nobody wants are left behind, like columns.
func (m *matcher) structure(head fields, want *arrow.StructType, have arrow.DataType, e *element) string {
	in, ok := have.(*arrow.StructType)
	if !ok || len(e.children) != in.NumFields() {
		return fmt.Sprintf("%s in the file, a struct in the table", have)
	}
	if want.NumFields() == 0 {
		return "a struct without members"
	}
	m.add(head.setI32(elementChildren, int64(want.NumFields())))
	for _, w := range want.Fields() {
		at, err := schema.FindField(in.Fields(), w.Name)
		switch {
		case err != nil:
			return err.Error()
		case at < 0:
			return fmt.Sprintf("member %s is not in the file", w.Name)
		}
		if why := m.member(w.Name, w, in.Field(at).Type, e.children[at]); why != "" {
			return why
		}
	}
	return ""
}

// list matches lists of two and of three levels, whatever their inner names are: a repeated field has the same levels as a
// repeated group with a required field in it, and levels do not depend on names. The output has three.
func (m *matcher) list(head fields, want *arrow.ListType, have arrow.DataType, e *element) string {
	in, ok := have.(*arrow.ListType)
	if !ok {
		return fmt.Sprintf("%s in the file, a list in the table", have)
	}
	if !e.list || len(e.children) != 1 || e.children[0].repetition != repeated {
		return "a list of another layout"
	}
	m.add(annotate(head.setI32(elementChildren, 1), convertedList, logicalList, nil))
	m.add(fields{}.setI32(elementRepetition, repeated).setText(elementName, "list").setI32(elementChildren, 1))
	m.path = append(m.path, "list")
	defer func() { m.path = m.path[:len(m.path)-1] }()
	inner := e.children[0]
	if inner.isElementOf(e) {
		return m.item(want.ElemField(), in.Elem(), inner, required)
	}
	return m.item(want.ElemField(), in.Elem(), inner.children[0], inner.children[0].repetition)
}

// isElementOf tells the repeated field of a list of two levels, which is the element itself, from a group around the element,
// by the rules of the Parquet format.
func (e *element) isElementOf(list *element) bool {
	return e.list || e.mapping || len(e.children) != 1 || e.children[0].repetition == repeated || e.name == "array" || e.name == list.name+"_tuple"
}

func (m *matcher) mapping(head fields, want *arrow.MapType, have arrow.DataType, e *element) string {
	in, ok := have.(*arrow.MapType)
	if !ok {
		return fmt.Sprintf("%s in the file, a map in the table", have)
	}
	if !e.mapping || len(e.children) != 1 || e.children[0].repetition != repeated || len(e.children[0].children) != 2 {
		return "a map of another layout"
	}
	m.add(annotate(head.setI32(elementChildren, 1), convertedMap, logicalMap, nil))
	m.add(fields{}.setI32(elementRepetition, repeated).setText(elementName, "key_value").setI32(elementChildren, 2))
	m.path = append(m.path, "key_value")
	defer func() { m.path = m.path[:len(m.path)-1] }()
	kv := e.children[0].children
	if why := m.member("key", arrow.Field{Type: want.KeyType()}, in.KeyType(), kv[0]); why != "" {
		return why
	}
	return m.member("value", arrow.Field{Type: want.ItemType(), Nullable: want.ItemField().Nullable}, in.ItemType(), kv[1])
}

func annotate(e fields, converted int64, logical int16, arg fields) fields {
	if converted >= 0 {
		e = e.setI32(elementConverted, converted)
	}
	return e.setStruct(elementLogical, fields{}.setStruct(logical, arg))
}

// leaf writes the element of a leaf as it is promised for a type, if the file's values have that physical form.
func (m *matcher) leaf(head fields, want arrow.DataType, e *element) (fields, string) {
	physical := func(p int64) (fields, string) {
		if e.physical != p {
			return nil, fmt.Sprintf("%s in the file, %s is promised as %s", physicalName(e.physical), want, physicalName(p))
		}
		return head.setI32(elementType, p), ""
	}
	annotated := func(p, converted int64, logical int16, arg fields) (fields, string) {
		out, why := physical(p)
		if why != "" {
			return nil, why
		}
		return annotate(out, converted, logical, arg), ""
	}
	switch want := want.(type) {
	case *arrow.BooleanType:
		return physical(boolean)
	case *arrow.Int32Type:
		return physical(int32Type)
	case *arrow.Int64Type:
		return physical(int64Type)
	case *arrow.Float32Type:
		return physical(float)
	case *arrow.Float64Type:
		return physical(double)
	case *arrow.StringType:
		return annotated(byteArray, convertedUTF8, logicalString, nil)
	case *arrow.BinaryType:
		return physical(byteArray)
	case *arrow.FixedSizeBinaryType:
		out, why := physical(fixedLen)
		return out.setI32(elementLength, int64(want.ByteWidth)), why
	case *arrow.Date32Type:
		return annotated(int32Type, convertedDate, logicalDate, nil)
	case *arrow.Time32Type:
		return annotated(int32Type, convertedTimeMilli, logicalTime, clock(true, 1))
	case *arrow.Time64Type:
		if want.Unit == arrow.Microsecond {
			return annotated(int64Type, convertedTimeMicro, logicalTime, clock(true, 2))
		}
	case *arrow.TimestampType:
		return m.timestamp(head, want, e, annotated)
	case *arrow.Decimal128Type:
		return decimal(head, want, e)
	}
	return nil, fmt.Sprintf("%s is not copied", want)
}

func physicalName(p int64) string {
	names := [...]string{"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}
	if p < 0 || p >= int64(len(names)) {
		return "group"
	}
	return names[p]
}

// clock is the argument of TIME and TIMESTAMP; unit is 1 for milliseconds, 2 for microseconds.
func clock(utc bool, unit int16) fields {
	return fields{}.setBool(1, utc).setStruct(2, fields{}.setStruct(unit, nil))
}

func (m *matcher) timestamp(head fields, want *arrow.TimestampType, e *element, annotated func(p, converted int64, logical int16, arg fields) (fields, string)) (fields, string) {
	switch {
	case want.Unit != arrow.Microsecond:
		return nil, fmt.Sprintf("timestamps in %s", want.Unit)
	case m.want.Int96 && want.TimeZone != "" && e.physical == int96:
		return head.setI32(elementType, int96), ""
	case m.want.Int96:
		return nil, "timestamps that are not INT96"
	case e.physical == int96:
		return nil, "timestamps as INT96"
	case want.TimeZone == "":
		return annotated(int64Type, -1, logicalTimestamp, clock(false, 2))
	}
	return annotated(int64Type, convertedMicros, logicalTimestamp, clock(true, 2))
}

// decimal takes the forms that Spark reads: INT32 and INT64 for the precisions that Spark gives them to, and fixed bytes, as
// Avro writers make them, for any.
func decimal(head fields, want *arrow.Decimal128Type, e *element) (fields, string) {
	p := want.Precision
	switch {
	case e.physical == int32Type && p <= 9:
	case e.physical == int64Type && p > 9 && p <= 18:
	case e.physical == fixedLen && e.length >= decimalBytes(p) && e.length <= 16:
		head = head.setI32(elementLength, e.length)
	default:
		return nil, fmt.Sprintf("%s as %s", want, physicalName(e.physical))
	}
	head = head.setI32(elementType, e.physical).setI32(elementScale, int64(want.Scale)).setI32(elementPrecision, int64(p))
	return annotate(head, convertedDecimal, logicalDecimal, fields{}.setI32(1, int64(want.Scale)).setI32(2, int64(p))), ""
}

// decimalBytes is how many bytes a decimal of so many digits needs.
func decimalBytes(precision int32) int64 {
	return int64(math.Ceil((float64(precision)*math.Log2(10) + 1) / 8))
}

// encodings that every engine reads. BIT_PACKED (4) stands in footers for levels that are not there.
func commonEncoding(e int64) bool {
	switch e {
	case 0, 2, 3, 4, 5, 6, 7, 8: // PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED, DELTA_*, RLE_DICTIONARY
		return true
	}
	return false
}

// chunks looks at the wanted chunks of every row group that has rows.
func (m *matcher) chunks() string {
	for g, rg := range m.out.file.groups {
		if rg.rows == 0 {
			continue
		}
		for i, column := range m.out.leaves {
			if why := m.chunk(&rg.columns[column]); why != "" {
				return fmt.Sprintf("row group %d, column %s: %s", g, strings.Join(m.out.paths[i], "."), why)
			}
		}
	}
	return ""
}

func (m *matcher) chunk(c *chunk) string {
	number := c.meta.number(metaCodec, -1)
	codec, known := codecName(number)
	switch {
	case c.head.has(chunkCrypto):
		return "encrypted"
	case !known:
		return fmt.Sprintf("codec %d", number)
	case m.want.Codec != "" && codec != m.want.Codec:
		return fmt.Sprintf("compressed with %s, not %s", codec, m.want.Codec)
	case m.out.codec != "" && m.out.codec != codec:
		return fmt.Sprintf("compressed with %s, others with %s", codec, m.out.codec)
	}
	m.out.codec = codec
	m.out.bytes += c.size
	encodings, err := c.meta.list(metaEncodings)
	if err != nil {
		return "a footer without encodings"
	}
	for _, raw := range encodings {
		if e := (fields{{1, kindI32, raw}}).number(1, -1); !commonEncoding(e) {
			return fmt.Sprintf("encoding %d", e)
		}
	}
	if dict := c.meta.number(metaDictionary, 0); dict > c.meta.number(metaDataPage, 0) {
		return "a dictionary behind its pages"
	}
	return ""
}

// holds reports whether statistics prove that every row of a column has one value.
func (f *File) holds(e *element, v scalar.Scalar) bool {
	if e.physical < 0 {
		return false
	}
	var want []byte
	if v.IsValid() {
		var ok bool
		if want, ok = plain(v, e.physical); !ok || !e.ordered {
			return false
		}
	}
	for _, g := range f.groups {
		if g.rows == 0 {
			continue
		}
		s := g.columns[e.column].stats
		nulls := s.number(statsNulls, -1)
		if !v.IsValid() && nulls == g.rows {
			continue
		}
		lo, hi := s.binary(statsMinValue), s.binary(statsMaxValue)
		noNulls := nulls == 0 || e.repetition == required
		if !v.IsValid() || !noNulls || lo == nil || hi == nil || !bytes.Equal(lo, want) || !bytes.Equal(hi, want) {
			return false
		}
	}
	return true
}

// plain encodes a value as statistics do. Types whose equal values have several encodings are left out.
func plain(v scalar.Scalar, physical int64) ([]byte, bool) {
	le := func(n uint64, size int) []byte {
		out := make([]byte, size)
		for i := range out {
			out[i] = byte(n >> (8 * i))
		}
		return out
	}
	switch v := v.(type) {
	case *scalar.String:
		return append([]byte{}, v.Data()...), physical == byteArray
	case *scalar.Int32:
		return le(uint64(v.Value), 4), physical == int32Type
	case *scalar.Date32:
		return le(uint64(v.Value), 4), physical == int32Type
	case *scalar.Int64:
		return le(uint64(v.Value), 8), physical == int64Type
	case *scalar.Boolean:
		if v.Value {
			return []byte{1}, physical == boolean
		}
		return []byte{0}, physical == boolean
	}
	return nil, false
}
