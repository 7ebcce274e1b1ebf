// Package lakemodel is a Hudi table as a plain list of rows, and random histories of such tables.
//
// The model is for tests only: it is what the writer is held against. It is slow and obvious, knows nothing of files, indexes,
// commits and Arrow, and shares no rule with the packages that do: keys, merging and operations are written down here a second
// time, from the specification, and held against Apache Hudi itself by interop/writes.
//
// A history is made from a seed: a configuration, and steps that each do one operation. [Check] performs one by package
// operation and compares the table with the model after every step.
package lakemodel

import (
	"maps"
	"slices"
	"strings"

	"github.com/sluicelake/sluice/interop/rows"
)

// Stored is one row of a table.
type Stored struct {
	Partition string
	Key       string // empty where the writer makes keys of its own
	Step      int    // that last changed it, by number from 0: its commit time
	// Kept: an update through a global index was outdone by the stored row. Apache Hudi writes that row as an update of itself, so
	// its commit time is that of Step or of an earlier step, Was.
	Kept bool
	Was  int
	Row  rows.Row
}

// Table is the model of a table.
type Table struct {
	Config  *Config
	Columns []Column // of the table, as far as the steps have taken them
	Rows    []Stored
	Steps   int // that were applied
}

// NewTable is an empty table.
func NewTable(c *Config) *Table { return &Table{Config: c} }

// Clone is a copy that later steps do not change.
func (t *Table) Clone() *Table {
	c := *t
	c.Rows = slices.Clone(t.Rows)
	return &c
}

// Set gives the rows with the table's columns and the meta columns that can be foreseen: key and partition path.
func (t *Table) Set() (rows.Set, error) {
	declared, err := Declared(t.Columns)
	if err != nil {
		return rows.Set{}, err
	}
	set := rows.Set{Columns: declared}
	for _, s := range t.Rows {
		row := rows.Row{"_hoodie_partition_path": s.Partition}
		if len(t.Config.Keys) > 0 {
			row["_hoodie_record_key"] = s.Key
		}
		for _, c := range t.Columns {
			row[c.Name] = s.Row[c.Name]
		}
		set.Rows = append(set.Rows, row)
	}
	return set, nil
}

// Partitions are the partition paths that have rows, in order.
func (t *Table) Partitions() []string {
	seen := map[string]bool{}
	for _, s := range t.Rows {
		seen[s.Partition] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// Apply does one step.
func (t *Table) Apply(s Step) {
	t.evolve(s)
	in := t.incoming(s)
	switch s.Operation {
	case "upsert":
		t.upsert(in)
	case "insert", "bulk_insert":
		t.insert(in, s.DropDuplicates)
	case "delete":
		t.delete(in)
	case "insert_overwrite":
		t.drop(partitionsOf(in))
		t.insert(in, false)
	case "insert_overwrite_table":
		t.Rows = nil
		t.insert(in, false)
	case "delete_partition":
		t.drop(t.matching(s.Partitions))
	default:
		panic("lakemodel: no operation " + s.Operation)
	}
	t.Steps++
}

// evolve takes over new columns and wider types. Rows of a delete may have keys only, and change nothing.
func (t *Table) evolve(s Step) {
	if s.Operation == "delete" || s.Operation == "delete_partition" {
		return
	}
	columns := slices.Clone(t.Columns)
	for _, c := range s.Columns {
		at := slices.IndexFunc(columns, func(old Column) bool { return old.Name == c.Name })
		if at < 0 {
			columns = append(columns, c)
		} else {
			columns[at] = c
		}
	}
	t.Columns = columns
}

// incoming gives the rows of a step their keys, and combines those of one key where the step asks for it.
func (t *Table) incoming(s Step) []Stored {
	var out []Stored
	at := map[string]int{}
	for _, r := range s.Rows {
		in := Stored{Partition: t.Config.PartitionPath(r), Key: t.Config.RecordKey(r), Step: t.Steps, Row: r}
		if s.Combine {
			id := in.Key
			if !t.Config.Global() {
				id = in.Partition + "\x00" + in.Key
			}
			if i, ok := at[id]; ok {
				t.combine(&out[i], in)
				continue
			}
			at[id] = len(out)
		}
		out = append(out, in)
	}
	return out
}

// combine merges a later row of the batch into an earlier one. The partition is that of the row that is newer.
func (t *Table) combine(earlier *Stored, later Stored) {
	if t.Config.compare(earlier.Row, later.Row) <= 0 {
		earlier.Partition = later.Partition
	}
	earlier.Row = t.Config.within(earlier.Row, later.Row)
}

// find gives the places of a key's stored rows: in its partition, or in any under a global index. There are several where
// inserts made duplicates.
func (t *Table) find(in Stored) []int {
	var places []int
	for i, s := range t.Rows {
		if s.Key == in.Key && (t.Config.Global() || s.Partition == in.Partition) {
			places = append(places, i)
		}
	}
	return places
}

func (t *Table) upsert(batch []Stored) {
	gone := map[int]bool{}
	var added []Stored
	for _, in := range batch {
		places := t.find(in)
		if len(places) == 0 && !t.Config.deletes(in.Row) {
			added = append(added, in)
		}
		for _, i := range places {
			out, v := t.merge(t.Rows[i], in)
			switch v {
			case removed:
				gone[i] = true
			default:
				t.Rows[i] = out
			}
		}
	}
	t.remove(gone)
	t.Rows = append(t.Rows, added...)
}

// merge puts an incoming row over a stored one. Where a global index found it in another partition, the row moves if the
// configuration says so, and stays in the partition of the stored row otherwise (tools F.6).
func (t *Table) merge(stored, in Stored) (Stored, verdict) {
	row, v := t.Config.over(stored.Row, in.Row)
	moves := stored.Partition != in.Partition && t.Config.Moves
	switch {
	case v == kept && moves:
		stored.Kept, stored.Was, stored.Step = true, stored.earliest(), t.Steps
		return stored, v
	case v == kept:
		return stored, v
	}
	out := Stored{Partition: stored.Partition, Key: in.Key, Step: t.Steps, Row: row}
	if moves {
		out.Partition = in.Partition
	}
	return out, v
}

func (s Stored) earliest() int {
	if s.Kept {
		return s.Was
	}
	return s.Step
}

// insert adds rows. Those that say that they are deleted are left out, and delete nothing.
func (t *Table) insert(batch []Stored, dropDuplicates bool) {
	var added []Stored
	for _, in := range batch {
		if t.Config.deletes(in.Row) || dropDuplicates && len(t.find(in)) > 0 {
			continue
		}
		added = append(added, in)
	}
	t.Rows = append(t.Rows, added...)
}

// delete removes the rows of keys, whatever their ordering values.
func (t *Table) delete(batch []Stored) {
	gone := map[int]bool{}
	for _, in := range batch {
		for _, i := range t.find(in) {
			gone[i] = true
		}
	}
	t.remove(gone)
}

func (t *Table) remove(places map[int]bool) {
	var left []Stored
	for i, s := range t.Rows {
		if !places[i] {
			left = append(left, s)
		}
	}
	t.Rows = left
}

func (t *Table) drop(partitions map[string]bool) {
	t.Rows = slices.DeleteFunc(slices.Clone(t.Rows), func(s Stored) bool { return partitions[s.Partition] })
}

// matching gives the partitions that have rows and that one of the patterns names; * stands for any text.
func (t *Table) matching(patterns []string) map[string]bool {
	found := map[string]bool{}
	for _, p := range t.Partitions() {
		for _, pattern := range patterns {
			if matches(pattern, p) {
				found[p] = true
			}
		}
	}
	return found
}

func matches(pattern, s string) bool {
	head, tail, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == s
	}
	return strings.HasPrefix(s, head) && strings.HasSuffix(s, tail) && len(s) >= len(head)+len(tail)
}

func partitionsOf(batch []Stored) map[string]bool {
	found := map[string]bool{}
	for _, s := range batch {
		found[s.Partition] = true
	}
	return found
}
