package lakemodel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/hudi/operation"
	"github.com/sluicelake/sluice/hudi/service"
	"github.com/sluicelake/sluice/hudi/write"
	"github.com/sluicelake/sluice/interop/rows"
	"github.com/sluicelake/sluice/storage"
)

// Check performs a history on an empty store, and compares the table with the model after every step: its rows with their
// keys, partition paths and commit times, its columns, older states, ranges of changes, and what service.Validate says of it.
func Check(t testing.TB, store storage.Store, h *History) {
	t.Helper()
	alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
	w, err := Start(t.Context(), store, h)
	if err != nil {
		t.Fatalf("%v\n%s", err, h)
	}
	w.Alloc = alloc
	for n, s := range h.Steps {
		if err = w.Do(t.Context(), s); err == nil {
			err = w.Verify(t.Context())
		}
		if err != nil {
			t.Errorf("seed %d, step %d: %v\n%s", h.Seed, n, err, h)
			return
		}
	}
	alloc.AssertSize(t, 0)
}

// Writer performs a history by package operation, and keeps the model beside the table.
type Writer struct {
	Store   storage.Store
	History *History
	Table   *Table           // the model as it stands
	Alloc   memory.Allocator // nil: memory.DefaultAllocator
	// Foreign: another writer has been at the table, so that its commit times and older states are not known.
	Foreign bool

	instants []string // of the steps
	states   []*Table // after the steps
	rand     *rand.Rand
}

// Start makes the table of a history, without rows.
func Start(ctx context.Context, store storage.Store, h *History) (*Writer, error) {
	spec, err := write.SpecFromOptions(h.Config.Options())
	if err != nil {
		return nil, err
	}
	spec.Keyless = len(h.Config.Keys) == 0
	if _, err := write.CreateTable(ctx, store, spec); err != nil {
		return nil, err
	}
	return &Writer{Store: store, History: h, Table: NewTable(&h.Config), rand: rand.New(rand.NewPCG(h.Seed, 7))}, nil
}

// Follow is a Writer for a table that somebody else made, and that should hold what the model has.
func Follow(store storage.Store, h *History, table *Table) *Writer {
	return &Writer{Store: store, History: h, Table: table, Foreign: true, rand: rand.New(rand.NewPCG(h.Seed, 7))}
}

// Do does one step, on the table and on the model.
func (w *Writer) Do(ctx context.Context, s Step) error {
	result, err := w.Run(ctx, s)
	if err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	if result.Read != int64(len(s.Rows)) || result.Instant == "" {
		return fmt.Errorf("%s: read %d of %d rows, instant %q", s, result.Read, len(s.Rows), result.Instant)
	}
	w.Table.Apply(s)
	w.instants = append(w.instants, result.Instant)
	w.states = append(w.states, w.Table.Clone())
	return nil
}

// Run does one step on the table alone. How memory, batches and parallel work are dealt out changes no row.
func (w *Writer) Run(ctx context.Context, s Step) (*operation.Result, error) {
	in := operation.Rows{}
	alloc := w.alloc()
	if s.Columns != nil {
		in = operation.Rows{Schema: Arrow(s.Columns), Batches: s.Batches(alloc, 1+w.rand.IntN(40))}
	}
	return operation.Run(ctx, w.Store, operation.Kind(s.Operation), in, operation.Options{
		Conf: w.History.Options(s), Alloc: alloc, Parallel: 1 + w.rand.IntN(3), Memory: pick(w.rand, []int64{0, 1 << 16, 1 << 20}),
	})
}

func (w *Writer) alloc() memory.Allocator {
	if w.Alloc == nil {
		return memory.DefaultAllocator
	}
	return w.Alloc
}

// Verify compares the table with the model.
func (w *Writer) Verify(ctx context.Context) error {
	table, err := hudi.Open(ctx, w.Store.URL(), hudi.Options{Store: w.Store})
	if err != nil {
		return err
	}
	if err := w.snapshot(ctx, table); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	if err := w.past(ctx, table); err != nil {
		return err
	}
	if w.Foreign || len(w.instants) == len(w.History.Steps) || w.rand.IntN(3) == 0 {
		return w.validate(ctx)
	}
	return nil
}

// past compares an older state, or a range of changes: one for each step is enough over a history.
func (w *Writer) past(ctx context.Context, table *hudi.Table) error {
	to := w.rand.IntN(max(len(w.states), 1))
	if w.Foreign || to == 0 {
		return nil
	}
	if w.rand.IntN(2) == 0 {
		if err := w.asOf(ctx, table, to); err != nil {
			return fmt.Errorf("as of step %d, %s: %w", to, w.instants[to], err)
		}
		return nil
	}
	from := w.rand.IntN(to)
	if err := w.incremental(ctx, table, from, to); err != nil {
		return fmt.Errorf("changes after step %d to %d: %w", from, to, err)
	}
	return nil
}

// snapshot compares the newest rows, and settles the commit times that the model left open.
func (w *Writer) snapshot(ctx context.Context, table *hudi.Table) error {
	s, err := table.Snapshot(ctx, hudi.Query{Stored: true})
	if err != nil {
		return err
	}
	got, err := w.scan(ctx, s)
	if err != nil {
		return err
	}
	if err := w.columns(s); err != nil {
		return err
	}
	if w.Foreign { // Apache Hudi's sequence numbers may be there twice
		return w.diff(w.Table, nil, got)
	}
	if err := distinct(got); err != nil {
		return err
	}
	w.settle(got)
	return w.diff(w.Table, func(Stored) bool { return true }, got)
}

// settle takes over the commit time of rows of which Apache Hudi makes updates of themselves.
func (w *Writer) settle(got []rows.Row) {
	for i, s := range w.Table.Rows {
		if !s.Kept {
			continue
		}
		s.Kept = false
		for _, r := range got {
			if r["_hoodie_record_key"] == s.Key && r["_hoodie_commit_time"] != w.instants[s.Step] {
				s.Step = s.Was
			}
		}
		w.Table.Rows[i] = s
	}
	w.states[len(w.states)-1] = w.Table.Clone()
}

func (w *Writer) columns(s *hudi.Snapshot) error {
	have := map[string]string{}
	for _, f := range s.Schema().Fields() {
		name, err := sparkType(f.Type)
		if err != nil {
			return err
		}
		have[f.Name] = name
	}
	for _, c := range w.Table.Columns {
		want, err := sparkType(c.Type)
		if err != nil {
			return err
		}
		if have[c.Name] != want {
			return fmt.Errorf("column %s is %q, want %q", c.Name, have[c.Name], want)
		}
	}
	return nil
}

// distinct holds what must be true of meta columns whatever the rows are.
func distinct(got []rows.Row) error {
	seen := map[any]bool{}
	keys := map[any]bool{}
	for _, r := range got {
		if n := r["_hoodie_commit_seqno"]; n == nil || seen[n] {
			return fmt.Errorf("_hoodie_commit_seqno %v is there twice, or none", n)
		}
		seen[r["_hoodie_commit_seqno"]] = true
		name, _ := r["_hoodie_file_name"].(string)
		if !strings.HasSuffix(name, ".parquet") {
			return fmt.Errorf("_hoodie_file_name is %q", name)
		}
		keys[r["_hoodie_record_key"]] = true
	}
	if keys[nil] || keys[""] {
		return errors.New("a row without _hoodie_record_key")
	}
	return nil
}

func (w *Writer) asOf(ctx context.Context, table *hudi.Table, n int) error {
	s, err := table.Snapshot(ctx, hudi.Query{AsOf: w.instants[n], Stored: true})
	if err != nil {
		return err
	}
	got, err := w.scan(ctx, s)
	if err != nil {
		return err
	}
	return w.diff(w.states[n], func(Stored) bool { return true }, got)
}

// incremental asks for the rows that changed in a range of steps and are still there at its end.
func (w *Writer) incremental(ctx context.Context, table *hudi.Table, from, to int) error {
	s, err := table.Changes(ctx, hudi.Range{Begin: w.instants[from], End: w.instants[to]})
	if err != nil {
		return err
	}
	got, err := w.scan(ctx, s)
	if err != nil {
		return err
	}
	state := w.states[to]
	return w.diff(state, func(r Stored) bool { return r.Step > from }, got, w.History.Config.PathColumns()...)
}

func (w *Writer) scan(ctx context.Context, s *hudi.Snapshot) ([]rows.Row, error) {
	return Collect(s.Schema(), s.Scan(ctx, hudi.Scan{Alloc: w.alloc()}))
}

// diff compares rows with those of the model that are wanted. Without wanted, all are, and commit times are left alone.
func (w *Writer) diff(table *Table, wanted func(Stored) bool, got []rows.Row, ignore ...string) error {
	part := table.Clone()
	if wanted != nil {
		part.Rows = slices.DeleteFunc(part.Rows, func(s Stored) bool { return !wanted(s) })
	}
	want, err := part.Set()
	if err != nil {
		return err
	}
	ignore = append(ignore, "_hoodie_commit_seqno", "_hoodie_file_name")
	if wanted == nil {
		ignore = append(ignore, "_hoodie_commit_time")
	} else {
		for i, s := range part.Rows {
			want.Rows[i]["_hoodie_commit_time"] = w.instants[s.Step]
		}
	}
	if len(table.Config.Keys) == 0 {
		ignore = append(ignore, "_hoodie_record_key")
	}
	known := map[string]bool{}
	for _, c := range want.Columns {
		known[c.Name] = true
	}
	for i, r := range got { // an older state is read with the columns of today
		got[i] = maps.Clone(r)
		maps.DeleteFunc(got[i], func(name string, v any) bool { return v == nil && !known[name] })
	}
	if d := rows.Diff(want, rows.Set{Rows: got}, rows.Options{Ignore: ignore, Key: []string{"_hoodie_partition_path", "id", "shop"}}); d != "" {
		return errors.New(d)
	}
	return nil
}

// PathColumns are the partition columns that a reader that takes them from the folder gives another value than the row has: time
// formats, and folders in which a global index keeps a row that names another.
func (c *Config) PathColumns() []string {
	if c.Global() && !c.Moves || slices.Contains(c.Partitions, "made") {
		return c.Partitions
	}
	return nil
}

// validate wants no finding, but those that the history itself makes true.
func (w *Writer) validate(ctx context.Context) error {
	report, err := service.Validate(ctx, w.Store, service.ValidateOptions{Alloc: w.alloc(), Zone: time.UTC, Limit: -1})
	if err != nil {
		return err
	}
	if report.Rows != int64(len(w.Table.Rows)) {
		return fmt.Errorf("validate counts %d rows, want %d", report.Rows, len(w.Table.Rows))
	}
	c := w.Table.Config
	for _, f := range report.Findings {
		switch {
		case f.Code == service.KeyDuplicate && c.Duplicates,
			f.Code == service.KeyInPartitions && !c.Global(),
			f.Code == service.PartitionValue && c.Global() && !c.Moves,
			f.Code == service.PartitionUnchecked:
			continue
		}
		return fmt.Errorf("validate: %v", f)
	}
	return nil
}
