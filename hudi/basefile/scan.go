package basefile

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/sluicelake/sluice/hudi/schema"
	"golang.org/x/sync/errgroup"
)

// scan is one pass over a file.
type scan struct {
	f       *parquetFile
	o       ScanOptions
	mem     memory.Allocator
	src     *source
	reader  *file.Reader
	columns []*node       // the columns that are read, pruned to what is wanted
	read    *arrow.Schema // their schema
	resolve *schema.Resolution
	fixed   []scalar.Scalar // per column of out: a constant, or nil
	out     *arrow.Schema
	leaves  []*leafReader
	order   []*node // node of each leaf
	codecs  codecs
	window  int64 // bytes that a column reads at once
	pool    sync.Pool
	skip    *pruner // nil without a filter
	sizes   batchSizes
}

// ScanRows implements [File].
func (f *parquetFile) ScanRows(ctx context.Context, o ScanOptions) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		s, err := f.newScan(ctx, o)
		if err != nil {
			yield(Batch{}, f.wrap(err))
			return
		}
		defer s.release()
		groups := o.RowGroups
		if groups == nil {
			groups = make([]int, len(f.groups))
			for i := range groups {
				groups[i] = i
			}
		}
		for _, g := range groups {
			if g < 0 || g >= len(f.groups) {
				yield(Batch{}, f.wrap(fmt.Errorf("row group %d of %d", g, len(f.groups))))
				return
			}
			if !s.rowGroup(g, yield) {
				return
			}
		}
	}
}

func (f *parquetFile) newScan(ctx context.Context, o ScanOptions) (s *scan, err error) {
	defer recovered(&err)
	s = &scan{f: f, o: o, mem: o.Alloc}
	if s.mem == nil {
		s.mem = f.options.alloc()
	}
	if err := s.plan(); err != nil {
		return nil, err
	}
	s.src = &source{ctx: ctx, obj: f.obj, tail: f.tail}
	props := parquet.NewReaderProperties(s.mem)
	s.window = s.bufferSize()
	s.pool.New = func() any { return memory.NewResizableBuffer(s.mem) }
	if s.reader, err = file.NewParquetReader(s.src, file.WithReadProps(props), file.WithMetadata(f.md)); err != nil {
		return nil, err
	}
	if err := s.makeLeaves(); err != nil {
		s.release()
		return nil, err
	}
	if o.Filter != nil {
		if s.skip, err = newPruner(s); err != nil {
			s.release()
			return nil, err
		}
	}
	s.sizes.init(s)
	return s, nil
}

// bufferSize is each column's read buffer: together they stay below 16 MiB (64 MiB for remote stores, where a small request
// costs as much as a large one).
func (s *scan) bufferSize() int64 {
	n := int64(0)
	for _, c := range s.columns {
		c.leaves(func(*node) { n++ })
	}
	n = max(n, 1)
	if s.f.remote {
		return min(max(64<<20/n, 256<<10), 4<<20)
	}
	return min(max(16<<20/n, 32<<10), 512<<10)
}

// plan decides what is read and how it becomes what is wanted.
func (s *scan) plan() error {
	if s.o.Columns == nil {
		s.columns, s.read, s.out = s.f.tree, s.f.schema, s.f.schema
		s.fixed = make([]scalar.Scalar, s.out.NumFields())
		return s.checkNames()
	}
	fields := s.f.schema.Fields()
	kept := make([]*node, len(fields))
	var want []arrow.Field
	s.fixed = make([]scalar.Scalar, s.o.Columns.NumFields())
	for i, w := range s.o.Columns.Fields() {
		if c, ok := s.o.Constants[w.Name]; ok {
			if !arrow.TypeEqual(c.DataType(), w.Type) {
				return fmt.Errorf("constant of column %s has type %s, the column %s", w.Name, c.DataType(), w.Type)
			}
			s.fixed[i] = c
			continue
		}
		want = append(want, w)
		name, there := fileName(w.Name, w.Name, s.o.Names)
		if !there {
			continue
		}
		at, err := schema.FindField(fields, name)
		if err != nil {
			return fmt.Errorf("column %s: %w", w.Name, err)
		}
		if at >= 0 {
			kept[at] = s.f.tree[at].project(w.Type, w.Name, s.o.Names)
		}
	}
	var read []arrow.Field
	for _, n := range kept {
		if n != nil {
			s.columns = append(s.columns, n)
			read = append(read, n.field())
		}
	}
	s.repairMillis(want, read)
	s.read = arrow.NewSchema(read, nil)
	var err error
	s.resolve, err = schema.Resolve(s.read, arrow.NewSchema(want, nil), schema.ResolveOptions{File: s.f.name, Table: s.o.Table, Names: s.o.Names, SchemaOnRead: s.o.SchemaOnRead})
	s.out = s.o.Columns
	return err
}

// checkNames refuses a scan of everything when two columns have one name: batches find columns by name.
func (s *scan) checkNames() error {
	seen := map[string]bool{}
	for _, f := range s.f.schema.Fields() {
		if seen[f.Name] {
			return fmt.Errorf("the file has two columns named %q", f.Name)
		}
		seen[f.Name] = true
	}
	return nil
}

func (s *scan) makeLeaves() error {
	for _, c := range s.columns {
		var err error
		c.leaves(func(n *node) {
			if err != nil {
				return
			}
			d := s.f.md.Schema.Column(n.column)
			var l *leafReader
			if l, err = newLeafReader(n, s.mem, d.MaxDefinitionLevel(), d.MaxRepetitionLevel(), d.PhysicalType(), c != n); err != nil {
				err = fmt.Errorf("column %s: %w", d.Path(), err)
				return
			}
			s.leaves = append(s.leaves, l)
			s.order = append(s.order, n)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *scan) release() {
	for _, l := range s.leaves {
		l.release()
	}
	s.leaves = nil
	s.codecs.close()
}

// rowGroup yields the batches of one row group; false: stop.
func (s *scan) rowGroup(g int, yield func(Batch, error) bool) bool {
	rg := s.f.groups[g]
	fail := func(err error) bool {
		yield(Batch{}, s.f.wrap(err))
		return false
	}
	if err := s.src.ctx.Err(); err != nil {
		return fail(err)
	}
	ranges := []rowRange{{0, rg.Rows}}
	if s.skip != nil {
		var err error
		if ranges, err = s.skip.rows(g); err != nil {
			return fail(err)
		}
	}
	if len(ranges) == 0 || rg.Rows == 0 {
		return true
	}
	if err := s.openRowGroup(g, ranges); err != nil {
		return fail(s.inRowGroup(g, err))
	}
	s.sizes.start(s, g)
	for i, r := range ranges {
		if err := s.seek(g, i, r); err != nil {
			return fail(s.inRowGroup(g, err))
		}
		for at := r.from; at < r.to; {
			n := min(int64(s.sizes.rows), r.to-at)
			batch, err := s.batch(int(n))
			if err != nil {
				return fail(s.inRowGroup(g, err))
			}
			if !yield(Batch{RecordBatch: batch, FirstRow: rg.FirstRow + at}, nil) {
				return false
			}
			at += n
			if err := s.src.ctx.Err(); err != nil {
				return fail(err)
			}
		}
	}
	return true
}

func (s *scan) inRowGroup(g int, err error) error {
	if errors.Is(err, schema.ErrEvolution) {
		return err
	}
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return &Error{File: s.f.name, Offset: -1, Where: fmt.Sprintf("row group %d", g), Err: err}
}

// openRowGroup points every leaf at its column chunk.
func (s *scan) openRowGroup(g int, ranges []rowRange) (err error) {
	defer recovered(&err)
	if s.f.remote && ranges[0].from == 0 && len(ranges) == 1 {
		if err := s.src.fetch(s.chunkRanges(g)); err != nil {
			return err
		}
	}
	for i, l := range s.leaves {
		column := s.order[i].column
		l.pages = newPages(s, g, column)
		//nolint:staticcheck // the library's only way to decode pages that were read by someone else
		chunk := file.NewColumnReader(s.f.md.Schema.Column(column), l.pages, s.mem, &s.pool)
		if err := l.open(chunk); err != nil {
			return s.inColumn(g, s.order[i].column, err)
		}
	}
	return nil
}

func (s *scan) chunkRanges(g int) []byteRange {
	var out []byteRange
	for _, n := range s.order {
		start, size := s.chunkAt(g, n.column)
		out = append(out, byteRange{start, size})
	}
	return out
}

func (s *scan) chunkAt(g, column int) (start, size int64) {
	m := s.f.md.RowGroups[g].Columns[column].MetaData
	start = m.DataPageOffset
	if m.DictionaryPageOffset != nil && *m.DictionaryPageOffset > 0 && *m.DictionaryPageOffset < start {
		start = *m.DictionaryPageOffset
	}
	return start, m.TotalCompressedSize
}

// inColumn says where the column chunk lies.
func (s *scan) inColumn(g, column int, err error) error {
	start, _ := s.chunkAt(g, column)
	return &Error{File: s.f.name, Offset: start, Where: fmt.Sprintf("row group %d, column %s", g, s.f.md.Schema.Column(column).Path()), Err: err}
}

// seek brings every leaf to the first row of a range: to the page that holds it by the offset index, and then on by reading.
// (The library's own seeking inside a page loses track of repetition levels.)
func (s *scan) seek(g, index int, r rowRange) error {
	if r.from == 0 && index == 0 {
		return nil
	}
	for i, l := range s.leaves {
		column := s.order[i].column
		locations, err := s.skip.locations(g, column)
		if err == nil {
			err = l.seek(locations, r.from)
		}
		if err != nil {
			return s.inColumn(g, column, err)
		}
	}
	return nil
}

// batch reads the next n rows of the open row group.
func (s *scan) batch(n int) (arrow.RecordBatch, error) {
	read := make([]leafBatch, len(s.leaves))
	defer func() {
		for _, b := range read {
			if b.data != nil {
				b.data.Release()
			}
		}
	}()
	if err := s.readLeaves(n, read); err != nil {
		return nil, err
	}
	a := assembler{mem: s.mem, leaves: make(map[*node]leafBatch, len(read))}
	for i := range read {
		a.leaves[s.order[i]] = read[i]
	}
	cols := make([]arrow.Array, len(s.columns))
	defer func() {
		for _, c := range cols {
			if c != nil {
				c.Release()
			}
		}
	}()
	for i, c := range s.columns {
		data, err := a.build(c, n)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.name, err)
		}
		cols[i] = array.MakeFromData(data)
		data.Release()
	}
	raw := array.NewRecordBatch(s.read, cols, int64(n))
	s.sizes.measure(raw)
	if s.resolve == nil {
		return raw, nil
	}
	defer raw.Release()
	return s.resolved(raw)
}

func (s *scan) readLeaves(n int, read []leafBatch) error {
	one := func(i int) error {
		var err error
		if read[i].data, read[i].defs, read[i].reps, err = s.leaves[i].readRows(n); err != nil {
			path := s.f.md.Schema.Column(s.order[i].column).Path()
			return fmt.Errorf("column %s: %w", path, err)
		}
		return nil
	}
	if s.o.Parallel <= 1 {
		for i := range s.leaves {
			if err := one(i); err != nil {
				return err
			}
		}
		return nil
	}
	var g errgroup.Group
	g.SetLimit(s.o.Parallel)
	for i := range s.leaves {
		g.Go(func() error { return one(i) })
	}
	return g.Wait()
}

// resolved brings a batch to the wanted columns and puts the constants in.
func (s *scan) resolved(raw arrow.RecordBatch) (arrow.RecordBatch, error) {
	b := raw
	if s.resolve.Same() {
		b.Retain()
	} else {
		var err error
		if b, err = s.resolve.Batch(s.mem, raw); err != nil {
			return nil, err
		}
	}
	if len(s.o.Constants) == 0 {
		return b, nil
	}
	defer b.Release()
	cols := make([]arrow.Array, len(s.fixed))
	defer func() {
		for i, c := range cols {
			if c != nil && s.fixed[i] != nil {
				c.Release()
			}
		}
	}()
	at := 0
	for i, c := range s.fixed {
		if c == nil {
			cols[i] = b.Column(at)
			at++
			continue
		}
		var err error
		if cols[i], err = constant(s.mem, c, int(b.NumRows())); err != nil {
			return nil, fmt.Errorf("column %s: %w", s.out.Field(i).Name, err)
		}
	}
	return array.NewRecordBatch(s.out, cols, b.NumRows()), nil
}

func constant(mem memory.Allocator, c scalar.Scalar, rows int) (arrow.Array, error) {
	if !c.IsValid() {
		return array.MakeArrayOfNull(mem, c.DataType(), rows), nil
	}
	return scalar.MakeArrayFromScalar(c, rows, mem)
}

// repairMillis changes the type of columns whose label says micros although their values are millis (trap 21). The decision
// is this file's alone: every row group's statistics must say so.
func (s *scan) repairMillis(want, read []arrow.Field) {
	for i := range read {
		ts, ok := read[i].Type.(*arrow.TimestampType)
		if !ok || ts.Unit != arrow.Microsecond || s.columns[i].kind != leafNode || s.columns[i].leaf.form != asIs {
			continue
		}
		at := slices.IndexFunc(want, func(f arrow.Field) bool { return f.Name == read[i].Name })
		if at < 0 {
			continue
		}
		if w, ok := want[at].Type.(*arrow.TimestampType); !ok || w.Unit != arrow.Millisecond {
			continue
		}
		repair := s.f.options.RepairMillis && s.f.onlyMillis(s.columns[i].column)
		if s.f.options.Warn != nil {
			text := "the file's label is trusted"
			if repair {
				text = "its values are read as milliseconds"
			}
			s.f.options.Warn(fmt.Sprintf("base file %s: column %s is labelled as microseconds, the table has milliseconds: %s", s.f.name, read[i].Name, text))
		}
		if repair {
			n := *s.columns[i]
			n.typ = &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: ts.TimeZone}
			s.columns[i] = &n
			read[i].Type = n.typ
		}
	}
}

// batchSizes chooses the number of rows of a batch.
type batchSizes struct {
	rows  int
	fixed bool
}

func (z *batchSizes) init(s *scan) {
	z.fixed = s.o.BatchRows > 0
	z.rows = s.o.BatchRows
}

// start estimates from the row group's uncompressed bytes; dictionaries hide the size of texts, so a text counts at least 24
// bytes, and the first batch is small until the real size is known.
func (z *batchSizes) start(s *scan, g int) {
	if z.fixed || z.rows > 0 {
		return
	}
	perRow := int64(1)
	for _, n := range s.order {
		rg := s.f.md.RowGroups[g]
		if rg.NumRows > 0 {
			least := int64(8)
			if n.typ.ID() == arrow.STRING || n.typ.ID() == arrow.BINARY {
				least = 24
			}
			perRow += max(rg.Columns[n.column].MetaData.TotalUncompressedSize/rg.NumRows, least)
		}
	}
	z.rows = int(min(max(DefaultBatchBytes/perRow, 1), 16<<10))
}

// measure corrects the estimate by a real batch.
func (z *batchSizes) measure(b arrow.RecordBatch) {
	if z.fixed || b.NumRows() == 0 {
		return
	}
	bytes := int64(0)
	for _, c := range b.Columns() {
		bytes += dataBytes(c.Data())
	}
	perRow := max(bytes/b.NumRows(), 1)
	z.rows = int(min(max(DefaultBatchBytes/perRow, 1), DefaultBatchRows))
}

func dataBytes(d arrow.ArrayData) int64 {
	n := int64(0)
	for _, b := range d.Buffers() {
		if b != nil {
			n += int64(b.Len())
		}
	}
	for _, c := range d.Children() {
		n += dataBytes(c)
	}
	return n
}
