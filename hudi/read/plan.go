package read

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/hudi/timeline"
)

// Query says which rows of a table are wanted.
type Query struct {
	// Mode is filegroup.Snapshot (the default) or filegroup.ReadOptimized.
	Mode filegroup.Mode
	// AsOf pins an older state: an instant of 14 or 17 digits or a date in the forms of timeline.AsOf. Empty means the
	// newest completed write.
	AsOf string
	// Range makes the query incremental; AsOf must be empty then.
	Range *Range
	// Stored gives partition columns as the files hold them, not as the partition path tells them.
	Stored bool
}

// Plan is a query with everything decided: the instant that it is pinned to, the slices to open, the columns that come
// out. It is immutable; scanning its slices in any order and by any number of goroutines gives the same rows.
type Plan struct {
	src     *Source
	view    *filegroup.View // which instants count
	mode    filegroup.Mode
	instant string
	slices  []filegroup.Slice
	rows    *rowRange // incremental: which commit times count
	// inRange restricts log blocks to the instants of an incremental query; nil otherwise.
	inRange func(instant string) bool

	table   *schema.Type   // Avro schema of the table at the instant, meta columns first
	columns *arrow.Schema  // what comes out when all columns are wanted: meta columns first, where the table fills them
	path    *pathColumns   // columns whose values come from the partition path
	history *schemaHistory // schema-on-read; nil for other tables
}

// ErrNoInstant says that a table has no completed write at the time that was asked for.
var ErrNoInstant = errors.New("no completed write")

// Plan decides a query. It lists the table's partitions (once for all plans of a Source) and opens no data file, except
// that a table without any schema in its timeline is asked for the schema of its newest base file.
func (s *Source) Plan(ctx context.Context, q Query) (*Plan, error) {
	if q.Range != nil {
		if q.AsOf != "" {
			return nil, errors.New("a query is either as of an instant or over a range of instants, not both")
		}
		return s.planRange(ctx, q)
	}
	p := &Plan{src: s, view: s.View, mode: q.Mode}
	newest, ok := s.View.Latest()
	switch {
	case q.AsOf != "":
		at, err := timeline.AsOf(q.AsOf, s.zone)
		if err != nil {
			return nil, err
		}
		if err := s.checkRetained(at); err != nil {
			return nil, err
		}
		p.instant = at
	case ok:
		p.instant = newest
	}
	if p.instant != "" {
		slices, err := s.slices(ctx, s.View, p.instant, q.Mode)
		if err != nil {
			return nil, err
		}
		p.slices = slices
	}
	return p, p.resolveSchema(ctx, p.instant, q.Stored)
}

func (s *Source) slices(ctx context.Context, view *filegroup.View, at string, mode filegroup.Mode) ([]filegroup.Slice, error) {
	files, err := s.Files(ctx)
	if err != nil {
		return nil, err
	}
	var out []filegroup.Slice
	for _, partition := range files.Partitions() {
		in, err := view.Slices(ctx, partition, files.In(partition), at, mode)
		if err != nil {
			return nil, err
		}
		out = append(out, in...)
	}
	return out, nil
}

// resolveSchema finds the table's schema at an instant: from the newest commit that has one, the schema that the table was
// created with, or the newest data file (table format 2.6).
func (p *Plan) resolveSchema(ctx context.Context, at string, stored bool) error {
	table, _, err := timeline.TableSchema(ctx, p.src.Store, p.src.Config, p.src.Timeline, at)
	if errors.Is(err, timeline.ErrNoSchema) && at != "" { // before the first commit: no row, in the columns of today
		table, _, err = timeline.TableSchema(ctx, p.src.Store, p.src.Config, p.src.Timeline, "")
	}
	if errors.Is(err, timeline.ErrNoSchema) {
		table, err = p.schemaOfFiles(ctx)
	}
	if err != nil {
		return fmt.Errorf("schema of %s: %w", p.src.Store.URL(), err)
	}
	if p.history, err = loadHistory(ctx, p.src, at); err != nil {
		return err
	}
	if p.history != nil {
		if table, err = p.history.table(table); err != nil {
			return err
		}
	}
	p.table = schema.WithMeta(schema.WithoutMeta(table))
	columns, err := p.table.Arrow()
	if err != nil {
		return fmt.Errorf("schema of %s: %w", p.src.Store.URL(), err)
	}
	p.path = newPathColumns(p.src.Config, columns, stored || p.src.Config.Version < 8 && p.rows != nil)
	p.columns = p.path.output
	if !p.src.Config.PopulateMetaFields { // they are there, and null: Spark does not show them either
		p.columns = arrow.NewSchema(p.columns.Fields()[len(schema.MetaColumns):], nil)
	}
	return nil
}

// schemaOfFiles takes the schema of the newest base file of the plan.
func (p *Plan) schemaOfFiles(ctx context.Context) (*schema.Type, error) {
	var newest *filegroup.BaseFile
	for _, s := range p.slices {
		if s.Base != nil && (newest == nil || s.Base.Instant > newest.Instant) {
			newest = s.Base
		}
	}
	if newest == nil {
		return nil, fmt.Errorf("%w: neither a commit nor the properties name a schema, and there is no data file to ask", timeline.ErrNoSchema)
	}
	f, err := basefile.Open(ctx, p.src.Store, newest.Name, basefile.Options{Formats: formats()})
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return f.AvroSchema()
}

// Source of the plan.
func (p *Plan) Source() *Source { return p.src }

// Instant is the requested time of the instant that the plan is pinned to; empty for a table without a completed write.
func (p *Plan) Instant() string { return p.instant }

// Mode of the plan.
func (p *Plan) Mode() filegroup.Mode { return p.mode }

// Slices are the file slices to open, in order of partition and file id. Do not change them.
func (p *Plan) Slices() []filegroup.Slice { return p.slices }

// Schema is what a scan of all columns gives: the meta columns, then the table's columns.
func (p *Plan) Schema() *arrow.Schema { return p.columns }

// Avro is the table's schema at the plan's instant, meta columns first.
func (p *Plan) Avro() *schema.Type { return p.table }

// AvroWithoutMeta is the text of the table's schema as commits store it.
func (p *Plan) AvroWithoutMeta() string { return schema.WithoutMeta(p.table).String() }

// UserColumns are the names of the columns without the meta columns.
func (p *Plan) UserColumns() []string {
	var out []string
	for _, f := range p.columns.Fields() {
		if !schema.IsMeta(f.Name) {
			out = append(out, f.Name)
		}
	}
	return out
}

// column finds a column by name: exactly, else without regard to case where that is unambiguous.
func column(s *arrow.Schema, name string) (int, error) {
	if ids := s.FieldIndices(name); len(ids) > 0 {
		return ids[0], nil
	}
	found := -1
	for i, f := range s.Fields() {
		if strings.EqualFold(f.Name, name) {
			if found >= 0 {
				return 0, fmt.Errorf("column %q: both %s and %s are meant by it", name, s.Field(found).Name, f.Name)
			}
			found = i
		}
	}
	if found < 0 {
		names := make([]string, s.NumFields())
		for i, f := range s.Fields() {
			names[i] = f.Name
		}
		return 0, fmt.Errorf("no column %q; the table has %s", name, strings.Join(names, ", "))
	}
	return found, nil
}
