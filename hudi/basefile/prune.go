package basefile

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	pq "github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/sluicelake/sluice/hudi/predicate"
	"github.com/sluicelake/sluice/hudi/schema"
)

// rowRange are rows of a row group, from included, to not.
type rowRange struct{ from, to int64 }

// pruner finds the rows of a row group that a filter can't rule out, by the statistics of column chunks and pages.
type pruner struct {
	s       *scan
	filter  *predicate.Filter
	columns map[string]*statColumn // by the filter's name of a column
}

// statColumn is where the statistics of one column of the filter come from.
type statColumn struct {
	leaf    *node              // nil: the file lacks the column
	toTable *schema.Resolution // from the file's type to the filter's; nil: bounds can't be used
	fixed   *predicate.ColumnStats
}

func newPruner(s *scan) (*pruner, error) {
	want := s.filterSchema()
	f, err := predicate.Bind(s.o.Filter, want)
	if err != nil {
		return nil, err
	}
	p := &pruner{s: s, filter: f, columns: map[string]*statColumn{}}
	for _, name := range predicate.Columns(s.o.Filter) {
		c, bound := p.column(name, want)
		if c != nil {
			p.columns[bound] = c
		}
	}
	return p, nil
}

// filterSchema is what the filter is bound to: the wanted columns, and the file's for those that are not wanted.
func (s *scan) filterSchema() *arrow.Schema {
	if s.o.Columns == nil {
		return s.f.schema
	}
	fields := append([]arrow.Field(nil), s.o.Columns.Fields()...)
	for _, f := range s.f.schema.Fields() {
		if at, err := schema.FindField(fields, f.Name); err == nil && at < 0 {
			fields = append(fields, f)
		}
	}
	return arrow.NewSchema(fields, nil)
}

// column finds the source of a column's statistics, nil where nothing is known. bound is the name under which the filter
// asks for it.
func (p *pruner) column(name string, want *arrow.Schema) (c *statColumn, bound string) {
	fields, nodes := want.Fields(), p.s.f.tree
	var wantPath, dt = "", arrow.DataType(nil)
	var leaf *node
	for i, part := range strings.Split(name, ".") {
		at, err := schema.FindField(fields, part)
		if err != nil || at < 0 {
			return nil, ""
		}
		f := fields[at]
		if c, ok := p.s.o.Constants[f.Name]; ok && i == 0 {
			return constantStats(c.DataType(), p.s, f.Name), f.Name
		}
		wantPath, dt = dotted(wantPath, f.Name), f.Type
		inFile, there := fileName(f.Name, wantPath, p.s.o.Names)
		var kids []arrow.Field
		for _, n := range nodes {
			kids = append(kids, n.field())
		}
		if leaf, nodes = nil, slices.Clone(nodes); there {
			if at, err := schema.FindField(kids, inFile); err == nil && at >= 0 {
				leaf = nodes[at]
			}
		}
		nodes, fields = nil, nil
		if leaf != nil && leaf.kind == structNode {
			nodes = leaf.children
		}
		if st, ok := dt.(*arrow.StructType); ok {
			fields = st.Fields()
		}
	}
	if leaf == nil || leaf.kind != leafNode || leaf.rep > 0 {
		return nil, ""
	}
	return &statColumn{leaf: leaf, toTable: p.conversion(leaf, dt)}, wantPath
}

// conversion of bounds to the filter's type; nil where it does not keep their order.
func (p *pruner) conversion(leaf *node, dt arrow.DataType) *schema.Resolution {
	textual := func(t arrow.DataType) bool {
		switch t.ID() {
		case arrow.STRING, arrow.BINARY, arrow.FIXED_SIZE_BINARY:
			return true
		}
		return false
	}
	if textual(leaf.typ) != textual(dt) {
		return nil
	}
	one := func(t arrow.DataType) *arrow.Schema {
		return arrow.NewSchema([]arrow.Field{{Name: "v", Type: t, Nullable: true}}, nil)
	}
	typ := leaf.typ
	for _, n := range p.s.order { // a repaired label
		if n.column == leaf.column {
			typ = n.typ
		}
	}
	r, err := schema.Resolve(one(typ), one(dt), schema.ResolveOptions{SchemaOnRead: p.s.o.SchemaOnRead})
	if err != nil {
		return nil
	}
	return r
}

func constantStats(dt arrow.DataType, s *scan, name string) *statColumn {
	arr, err := constant(memory.NewGoAllocator(), s.o.Constants[name], 1)
	if err != nil {
		return nil
	}
	defer arr.Release()
	st := &predicate.ColumnStats{Rows: 1}
	if arr.NullN() == 1 || dt.ID() == arrow.NULL {
		st.Nulls = 1
	} else {
		st.Min = predicate.ValueAt(arr, 0)
		st.Max = st.Min
	}
	return &statColumn{fixed: st}
}

// rows gives the ranges of a row group that must be read.
func (p *pruner) rows(g int) (ranges []rowRange, err error) {
	defer recovered(&err)
	rows := p.s.f.groups[g].Rows
	all := []rowRange{{0, rows}}
	if !p.filter.CanMatch(func(name string) (predicate.ColumnStats, bool) { return p.chunkStats(g, name) }) {
		return nil, nil
	}
	pages, cuts := p.pages(g)
	if len(pages) == 0 {
		return all, nil
	}
	ranges = nil
	for i, from := range cuts {
		to := rows
		if i+1 < len(cuts) {
			to = cuts[i+1]
		}
		can := p.filter.CanMatch(func(name string) (predicate.ColumnStats, bool) {
			if pg, ok := pages[name]; ok {
				return pg.at(from), true
			}
			return p.chunkStats(g, name)
		})
		if !can {
			continue
		}
		if n := len(ranges); n > 0 && from-ranges[n-1].to < seekGap {
			ranges[n-1].to = to
		} else {
			ranges = append(ranges, rowRange{from, to})
		}
	}
	return ranges, nil
}

// seekGap is the number of rows that are rather read than jumped over.
const seekGap = 512

func (p *pruner) chunkStats(g int, name string) (predicate.ColumnStats, bool) {
	c, ok := p.columns[name]
	if !ok {
		return predicate.ColumnStats{}, false
	}
	if c.fixed != nil {
		return *c.fixed, true
	}
	rows := p.s.f.groups[g].Rows
	st := predicate.ColumnStats{Nulls: -1, Rows: rows}
	m := p.s.f.md.RowGroups[g].Columns[c.leaf.column].MetaData.Statistics
	if m == nil {
		return st, true
	}
	if m.NullCount != nil && *m.NullCount >= 0 && *m.NullCount <= rows {
		st.Nulls = *m.NullCount
	}
	lo, hi := p.s.f.trusted(c.leaf, m.MinValue, m.MaxValue, m.Min, m.Max)
	st.Min, st.Max = c.bounds(p.s.f, lo, hi)
	return st, true
}

// trusted picks the bounds that the Parquet format lets a reader use: min_value and max_value where the footer declares the
// order of the type, the deprecated min and max only for types whose order is the signed one of the physical type.
func (f *parquetFile) trusted(leaf *node, minValue, maxValue, oldMin, oldMax []byte) (lo, hi []byte) {
	if c := leaf.column; c < len(f.md.ColumnOrders) && f.md.ColumnOrders[c] != nil && f.md.ColumnOrders[c].IsSetTYPE_ORDER() {
		if minValue != nil || maxValue != nil {
			return minValue, maxValue
		}
	}
	switch f.md.Schema.Column(leaf.column).PhysicalType() {
	case parquet.Types.Boolean, parquet.Types.Int32, parquet.Types.Int64, parquet.Types.Float, parquet.Types.Double:
		if leaf.leaf.form != asUint32 && leaf.leaf.form != asUint64 && !unsigned(f.md.Schema.Column(leaf.column)) {
			return oldMin, oldMax
		}
	}
	return nil, nil
}

func unsigned(c *pq.Column) bool {
	l, ok := c.LogicalType().(pq.IntLogicalType)
	return ok && !l.IsSigned()
}

// bounds turns encoded bounds into values of the filter's type.
func (c *statColumn) bounds(f *parquetFile, lo, hi []byte) (minimum, maximum predicate.Value) {
	if c.toTable == nil || lo == nil && hi == nil {
		return
	}
	mem := memory.NewGoAllocator()
	one := func(raw []byte) predicate.Value {
		if raw == nil {
			return predicate.Value{}
		}
		arr := decodeBound(mem, c.leaf, f.md.Schema.Column(c.leaf.column).PhysicalType(), raw)
		if arr == nil {
			return predicate.Value{}
		}
		defer arr.Release()
		from := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arr.DataType(), Nullable: true}}, nil)
		batch := array.NewRecordBatch(from, []arrow.Array{arr}, 1)
		defer batch.Release()
		out, err := c.toTable.Batch(mem, batch)
		if err != nil {
			return predicate.Value{} // it does not fit: no bound
		}
		defer out.Release()
		return predicate.ValueAt(out.Column(0), 0)
	}
	return one(lo), one(hi)
}

// decodeBound reads one PLAIN encoded value (bytes without their length) as an array of one, nil where it is none.
func decodeBound(mem memory.Allocator, leaf *node, physical parquet.Type, raw []byte) arrow.Array {
	size := map[parquet.Type]int{parquet.Types.Boolean: 1, parquet.Types.Int32: 4, parquet.Types.Float: 4, parquet.Types.Int64: 8, parquet.Types.Double: 8}[physical]
	if size > 0 && len(raw) != size {
		return nil
	}
	b := array.NewBuilder(mem, leaf.typ)
	defer b.Release()
	var i64 int64
	switch size {
	case 4:
		i64 = int64(int32(binary.LittleEndian.Uint32(raw)))
	case 8:
		i64 = int64(binary.LittleEndian.Uint64(raw))
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(raw[0] != 0)
	case *array.Int32Builder:
		b.Append(int32(i64))
	case *array.Date32Builder:
		b.Append(arrow.Date32(i64))
	case *array.Time32Builder:
		b.Append(arrow.Time32(i64))
	case *array.Int64Builder:
		if leaf.leaf.form == asUint32 {
			i64 = int64(uint32(i64))
		}
		b.Append(i64)
	case *array.Time64Builder:
		b.Append(arrow.Time64(i64))
	case *array.TimestampBuilder:
		if leaf.leaf.form == asInt96 {
			return nil // the order of INT96 is not defined
		}
		b.Append(arrow.Timestamp(i64))
	case *array.Float32Builder:
		if leaf.leaf.form == asHalf {
			return nil
		}
		b.Append(math.Float32frombits(uint32(i64)))
	case *array.Float64Builder:
		b.Append(math.Float64frombits(uint64(i64)))
	case *array.StringBuilder:
		if leaf.leaf.form == asUUID {
			raw = appendUUID(nil, raw)
		}
		b.BinaryBuilder.Append(raw)
	case *array.BinaryBuilder:
		b.Append(raw)
	case *array.FixedSizeBinaryBuilder:
		if len(raw) != leaf.leaf.length {
			return nil
		}
		b.Append(raw)
	case *array.Decimal128Builder:
		if size == 0 {
			if len(raw) == 0 || len(raw) > 16 {
				return nil
			}
			b.Append(schema.BigEndianDecimal(raw))
		} else if leaf.leaf.form == asUint64 {
			return nil
		} else {
			b.Append(decimal128.FromI64(i64))
		}
	default:
		return nil
	}
	return b.NewArray()
}

// pageStats are the statistics of one column's pages.
type pageStats struct {
	first []int64 // first row of each page
	stats []predicate.ColumnStats
}

func (p *pageStats) at(row int64) predicate.ColumnStats {
	return p.stats[sort.Search(len(p.first), func(i int) bool { return p.first[i] > row })-1]
}

// pages reads the page index of the filter's columns. cuts are the rows where a page of one of them begins. Nothing comes
// back where an index is missing or makes no sense: the index only ever saves work.
func (p *pruner) pages(g int) (map[string]*pageStats, []int64) {
	if !p.seekable(g) {
		return nil, nil
	}
	rg, err := p.s.reader.GetPageIndexReader().RowGroup(g)
	if err != nil || rg == nil {
		return nil, nil
	}
	rows := p.s.f.groups[g].Rows
	pages := map[string]*pageStats{}
	cuts := []int64{0}
	for name, c := range p.columns {
		if c.fixed != nil || !p.sane(g, c.leaf.column) {
			continue
		}
		first := firstRows(rg, c.leaf.column, rows)
		if len(first) < 2 {
			continue
		}
		st := c.pageStats(p.s.f, rg, first, rows)
		if st == nil {
			continue
		}
		pages[name] = &pageStats{first: first, stats: st}
		cuts = append(cuts, first...)
	}
	if len(pages) == 0 {
		return nil, nil
	}
	slices.Sort(cuts)
	return pages, slices.Compact(cuts)
}

// seekable: every column that is read can be entered at a page.
func (p *pruner) seekable(g int) bool {
	rg, err := p.s.reader.GetPageIndexReader().RowGroup(g)
	if err != nil || rg == nil {
		return false
	}
	for _, n := range p.s.order {
		if !p.sane(g, n.column) || firstRows(rg, n.column, p.s.f.groups[g].Rows) == nil {
			return false
		}
	}
	return len(p.s.order) > 0
}

// locations gives the places of a column's pages.
func (p *pruner) locations(g, column int) (out []pageLocation, err error) {
	defer recovered(&err)
	rg, err := p.s.reader.GetPageIndexReader().RowGroup(g)
	if err != nil {
		return nil, err
	}
	idx, err := rg.GetOffsetIndex(column)
	if err != nil || idx == nil { // seekable saw one
		return nil, fmt.Errorf("%w: no offset index", ErrDamaged)
	}
	for _, l := range idx.GetPageLocations() {
		out = append(out, pageLocation{l.GetOffset(), l.FirstRowIndex})
	}
	return out, nil
}

// sane checks the place and the lengths inside a column's two indexes before the library decodes them.
func (p *pruner) sane(g, column int) bool {
	for i := range p.s.f.md.RowGroups[g].Columns { // the library reads the indexes of all columns at once
		c := p.s.f.md.RowGroups[g].Columns[i]
		if c.OffsetIndexOffset != nil && !p.within(*c.OffsetIndexOffset, c.OffsetIndexLength) ||
			c.ColumnIndexOffset != nil && !p.within(*c.ColumnIndexOffset, c.ColumnIndexLength) {
			return false
		}
	}
	c := p.s.f.md.RowGroups[g].Columns[column]
	check := func(off *int64, size *int32) bool {
		if off == nil || size == nil {
			return true
		}
		text := make([]byte, *size)
		if n, err := p.s.src.ReadAt(text, *off); n != len(text) || err != nil {
			return false
		}
		_, err := skimThrift(text)
		return err == nil
	}
	return check(c.OffsetIndexOffset, c.OffsetIndexLength) && check(c.ColumnIndexOffset, c.ColumnIndexLength)
}

func (p *pruner) within(off int64, size *int32) bool {
	return size != nil && *size > 0 && *size < 64<<20 && off >= 0 && off <= p.s.f.Size()-int64(*size)
}

// firstRows gives the first row of every page, nil where the offset index is missing or not in order.
func firstRows(rg *metadata.RowGroupPageIndexReader, column int, rows int64) []int64 {
	idx, err := rg.GetOffsetIndex(column)
	if err != nil || idx == nil {
		return nil
	}
	var first []int64
	for i, loc := range idx.GetPageLocations() {
		if i == 0 && loc.FirstRowIndex != 0 || i > 0 && loc.FirstRowIndex <= first[i-1] || loc.FirstRowIndex >= rows {
			return nil
		}
		first = append(first, loc.FirstRowIndex)
	}
	return first
}

func (c *statColumn) pageStats(f *parquetFile, rg *metadata.RowGroupPageIndexReader, first []int64, rows int64) []predicate.ColumnStats {
	idx, err := rg.GetColumnIndex(c.leaf.column)
	if err != nil || idx == nil {
		return nil
	}
	nullPages, lows, highs := idx.GetNullPages(), idx.GetMinValues(), idx.GetMaxValues()
	if len(nullPages) != len(first) || len(lows) != len(first) || len(highs) != len(first) {
		return nil
	}
	var counts []int64
	if idx.IsSetNullCounts() && len(idx.GetNullCounts()) == len(first) {
		counts = idx.GetNullCounts()
	}
	out := make([]predicate.ColumnStats, len(first))
	for i := range out {
		end := rows
		if i+1 < len(first) {
			end = first[i+1]
		}
		n := end - first[i]
		out[i] = predicate.ColumnStats{Nulls: -1, Rows: n}
		if nullPages[i] {
			out[i].Nulls = n
			continue
		}
		if counts != nil && counts[i] >= 0 && counts[i] <= n {
			out[i].Nulls = counts[i]
		}
		lo, hi := f.trusted(c.leaf, lows[i], highs[i], nil, nil)
		out[i].Min, out[i].Max = c.bounds(f, lo, hi)
	}
	return out
}

// onlyMillis: the statistics of every row group say that the column's numbers, read as microseconds, all lie in the first
// years of the epoch, where as milliseconds they are the usual times of today.
func (f *parquetFile) onlyMillis(column int) bool {
	const from, to = 1e11, 1e14 // as millis 1973 to 5138, as micros the second day of 1970 to 1973
	seen := false
	for _, rg := range f.md.RowGroups {
		m := rg.Columns[column].MetaData.Statistics
		if m == nil {
			return false
		}
		if m.NullCount != nil && *m.NullCount == rg.NumRows {
			continue
		}
		lo, hi := m.MinValue, m.MaxValue
		if lo == nil || hi == nil {
			lo, hi = m.Min, m.Max
		}
		if len(lo) != 8 || len(hi) != 8 {
			return false
		}
		if int64(binary.LittleEndian.Uint64(lo)) < 0 || int64(binary.LittleEndian.Uint64(hi)) >= to {
			return false
		}
		seen = seen || int64(binary.LittleEndian.Uint64(hi)) >= from
	}
	return seen
}
