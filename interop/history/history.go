//go:build interop

package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/sluicelake/sluice/interop/rows"
	"github.com/sluicelake/sluice/interop/spark"
)

// Table is a table with the history that made it.
type Table struct {
	Release string
	Seed    uint64
	Path    string
	Config  Config
	Steps   []string // what was done, in order, for a person
	Refused int      // steps that Apache Hudi refused or failed

	name  string
	spark *spark.Session
	rand  *rand.Rand
	model *model
	known []rows.Row // key columns of every record that ever was
	step  int
	undo  *model // the model before the last step, when that step can be rolled back
}

// Make runs the history of a seed in the folder path, which must not exist. A step that Apache Hudi refuses is noted and
// the history goes on.
func Make(s *spark.Session, path string, seed uint64) (*Table, error) {
	r := rand.New(rand.NewPCG(seed, uint64(len(s.Release)))) // "0.15.0" and "1.2.0" take different ways
	t := &Table{Release: s.Release, Seed: seed, Path: path, spark: s, rand: r, Config: randomConfig(r, s.Release)}
	t.name = fmt.Sprintf("h%s_%d", strings.ReplaceAll(s.Release, ".", ""), seed)
	t.model = &model{rule: merges[t.Config.Merge].rule, rows: map[string]rows.Row{}}
	if err := t.insert("insert", 4+r.IntN(5)); err != nil {
		return t, fmt.Errorf("first write: %w", err)
	}
	for range 5 + r.IntN(5) {
		t.step++
		if err := t.random(); err != nil {
			t.Refused++
			t.note("  refused: %v", firstLine(err))
			t.undo = nil
		}
	}
	return t, nil
}

// Expected is what the plain model holds, and whether the model claims to know.
func (t *Table) Expected() (rows.Set, bool) {
	return t.model.set(), t.Config.plain()
}

// String tells the table's story.
func (t *Table) String() string {
	config, _ := json.Marshal(t.Config)
	return fmt.Sprintf("Apache Hudi %s, seed %d, %s\n%s", t.Release, t.Seed, config, strings.Join(t.Steps, "\n"))
}

// random takes one step of the history.
func (t *Table) random() error {
	type choice struct {
		weight int
		do     func() error
	}
	choices := []choice{
		{3, func() error { return t.insert("insert", 1+t.rand.IntN(4)) }},
		{1, func() error { return t.insert("bulk_insert", 1+t.rand.IntN(3)) }},
		{10, t.upsert},
		{3, t.delete},
		{2, t.rollback},
		{2, t.fail},
	}
	if t.Config.Index == "" || t.Config.Index == "BLOOM" {
		choices = append(choices, choice{2, t.cluster}, choice{2, t.overwrite})
	}
	if t.Config.MergeOnRead {
		choices = append(choices, choice{4, t.compact}, choice{2, t.scheduleCompaction}, choice{2, t.logCompact})
	}
	total := 0
	for _, c := range choices {
		total += c.weight
	}
	at := t.rand.IntN(total)
	for _, c := range choices {
		if at -= c.weight; at < 0 {
			return c.do()
		}
	}
	return nil
}

// insert writes new records.
func (t *Table) insert(operation string, count int) error {
	var batch []rows.Row
	for range count {
		batch = append(batch, randomRow(t.rand, t.newKey(), t.orderingValue(), nil))
	}
	return t.write(operation, batch, nil)
}

// upsert writes newer, late and new versions of records, and versions that say that they are deleted.
func (t *Table) upsert() error { return t.upsertWith(nil) }

func (t *Table) upsertWith(more spark.Options) error { return t.write("upsert", t.changes(), more) }

func (t *Table) changes() []rows.Row {
	var batch []rows.Row
	for _, id := range t.someKeys(1 + t.rand.IntN(4)) {
		var deleted any
		if t.Config.Deletes && t.rand.IntN(3) == 0 {
			deleted = true
		}
		batch = append(batch, randomRow(t.rand, id, t.orderingValue(), deleted))
	}
	if t.rand.IntN(3) == 0 {
		batch = append(batch, randomRow(t.rand, t.newKey(), t.orderingValue(), nil))
	}
	return batch
}

// delete removes records by their keys.
func (t *Table) delete() error {
	var batch []rows.Row
	for _, id := range t.someKeys(1 + t.rand.IntN(2)) {
		batch = append(batch, randomRow(t.rand, id, t.orderingValue(), nil))
	}
	return t.write("delete", batch, nil)
}

// overwrite replaces the partitions of a few new records.
func (t *Table) overwrite() error {
	return t.write("insert_overwrite", []rows.Row{randomRow(t.rand, t.newKey(), t.orderingValue(), nil)}, nil)
}

func (t *Table) compact() error {
	return t.upsertWith(spark.Options{"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"})
}

func (t *Table) scheduleCompaction() error {
	return t.upsertWith(spark.Options{"hoodie.compact.schedule.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"})
}

func (t *Table) logCompact() error {
	return t.upsertWith(spark.Options{"hoodie.log.compaction.inline": "true", "hoodie.log.compaction.enable": "true",
		"hoodie.log.compaction.blocks.threshold": "2", "hoodie.metadata.log.compaction.enable": "false",
		"hoodie.log.record.reader.use.scanV2": "true"})
}

func (t *Table) cluster() error {
	return t.upsertWith(spark.Options{"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1",
		"hoodie.clustering.plan.strategy.sort.columns": "ts"})
}

// rollback takes the newest write back, where it is the newest instant of all.
func (t *Table) rollback() error {
	last, ok := t.newest()
	if t.undo == nil || !ok {
		return t.upsert()
	}
	t.note("rollback of %s", last.Instant)
	if _, err := t.spark.SQL(fmt.Sprintf("create table if not exists %s using hudi location '%s'", t.name, t.Path)); err != nil {
		return err
	}
	if _, err := t.spark.SQL(fmt.Sprintf("call rollback_to_instant(table => '%s', instant_time => '%s')", t.name, last.Instant)); err != nil {
		return err
	}
	t.model, t.undo = t.undo, nil
	return nil
}

// fail leaves a write that died just before its commit point: its files are there, its completed instant is not.
func (t *Table) fail() error {
	before := t.model.clone()
	if err := t.upsert(); err != nil {
		return err
	}
	last, ok := t.newest()
	if !ok {
		return errors.New("no completed instant after a write")
	}
	t.note("  …which never committed: %s removed", filepath.Base(last.file))
	t.model, t.undo = before, nil
	if err := os.Remove(last.file); err != nil {
		return err
	}
	crc := filepath.Join(filepath.Dir(last.file), "."+filepath.Base(last.file)+".crc")
	if err := os.Remove(crc); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (t *Table) write(operation string, batch []rows.Row, more spark.Options) error {
	o := t.Config.options(t.name, t.Release)
	maps.Copy(o, more)
	o["hoodie.datasource.write.operation"] = operation
	t.note("%s%s", operation, describe(batch, more))
	before := t.model.clone()
	if err := t.spark.Write(t.Path, spark.Write{Columns: columns, Query: query(batch), Options: o}); err != nil {
		return err
	}
	t.apply(operation, batch)
	t.undo = nil
	if len(more) == 0 && !t.Config.Cleaning && !t.Config.Archiving {
		t.undo = before
	}
	return nil
}

func (t *Table) apply(operation string, batch []rows.Row) {
	if operation == "insert_overwrite" {
		replaced := map[string]bool{}
		for _, r := range batch {
			replaced[t.partition(r)] = true
		}
		maps.DeleteFunc(t.model.rows, func(_ string, r rows.Row) bool { return replaced[t.partition(r)] })
	}
	for _, r := range batch {
		if operation == "delete" {
			delete(t.model.rows, t.Config.keyOf(r))
			continue
		}
		t.model.upsert(t.Config.keyOf(r), r)
	}
}

func (t *Table) partition(r rows.Row) string {
	var parts []string
	for _, p := range t.Config.Partitions {
		parts = append(parts, fmt.Sprint(r[p]))
	}
	return strings.Join(parts, "/")
}

// newKey makes the key columns of a record that the table never had. The key decides the partition.
func (t *Table) newKey() rows.Row {
	n := len(t.known)
	id := rows.Row{
		"id":     fmt.Sprintf("k%03d", n),
		"shop":   json.Number(fmt.Sprint(t.rand.IntN(3))),
		"region": pick(t.rand, []string{"north", "south", "två ord"}),
		"level":  json.Number(fmt.Sprint(1 + t.rand.IntN(2))),
	}
	t.known = append(t.known, id)
	return id
}

// someKeys picks different records that are or were in the table.
func (t *Table) someKeys(count int) []rows.Row {
	var out []rows.Row
	for _, i := range t.rand.Perm(len(t.known))[:min(count, len(t.known))] {
		out = append(out, t.known[i])
	}
	return out
}

// orderingValue grows with every step, or wanders around where rows may come late.
func (t *Table) orderingValue() int64 {
	at := int64(t.step+1) * 100
	if t.Config.Late {
		return at + t.rand.Int64N(500) - 300
	}
	return at + t.rand.Int64N(50)
}

func (t *Table) note(format string, args ...any) {
	t.Steps = append(t.Steps, fmt.Sprintf(format, args...))
}

func describe(batch []rows.Row, more spark.Options) string {
	var parts []string
	for _, r := range batch {
		mark := ""
		if r["_hoodie_is_deleted"] == true {
			mark = " deleted"
		}
		parts = append(parts, fmt.Sprintf("%v@%v%s", r["id"], r["ts"], mark))
	}
	text := " " + strings.Join(parts, ", ")
	for _, key := range slices.Sorted(maps.Keys(more)) {
		text += " " + strings.TrimPrefix(key, "hoodie.") + "=" + more[key]
	}
	return text
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// Instant is a completed instant of the active timeline, as the folder's listing shows it.
type Instant struct {
	Instant    string
	Action     string
	Completion string // empty in timeline layout 1
	file       string
}

// Mark is the time by which ranges are counted: completion in layout 2, the instant in layout 1.
func (i Instant) Mark() string {
	if i.Completion != "" {
		return i.Completion
	}
	return i.Instant
}

var completed = regexp.MustCompile(`^(\d{14,17})(?:_(\d{14,17}))?\.(commit|deltacommit|replacecommit)$`)

// Writes lists the completed writes of the active timeline, in order.
func (t *Table) Writes() []Instant {
	var found []Instant
	for _, folder := range []string{".hoodie", ".hoodie/timeline"} {
		entries, err := os.ReadDir(filepath.Join(t.Path, folder))
		if err != nil {
			continue // the other layout
		}
		for _, e := range entries {
			if m := completed.FindStringSubmatch(e.Name()); m != nil {
				found = append(found, Instant{Instant: m[1], Completion: m[2], Action: m[3], file: filepath.Join(t.Path, folder, e.Name())})
			}
		}
	}
	slices.SortFunc(found, func(a, b Instant) int { return strings.Compare(a.Instant, b.Instant) })
	return found
}

func (t *Table) newest() (Instant, bool) {
	w := t.Writes()
	if len(w) == 0 {
		return Instant{}, false
	}
	return w[len(w)-1], true
}

// Query is one question that every reader of the table should answer alike.
type Query struct {
	Name  string
	Type  string // snapshot, read_optimized, incremental
	AsOf  string
	Begin string
	End   string
}

// Spark gives the query as options of Apache Hudi's data source.
func (q Query) Spark() spark.Options {
	o := spark.Options{"hoodie.datasource.query.type": q.Type}
	if q.AsOf != "" {
		o["as.of.instant"] = q.AsOf
	}
	if q.Begin != "" {
		o["hoodie.datasource.read.begin.instanttime"] = q.Begin
	}
	if q.End != "" {
		o["hoodie.datasource.read.end.instanttime"] = q.End
	}
	return o
}

// Queries asks for every view that the table has, with a few of its instants.
func (t *Table) Queries() []Query {
	queries := []Query{{Name: "snapshot", Type: "snapshot"}}
	if t.Config.MergeOnRead {
		queries = append(queries, Query{Name: "read optimized", Type: "read_optimized"})
	}
	writes := t.Writes()
	for _, i := range t.some(len(writes), 3) {
		queries = append(queries, Query{Name: "as of " + writes[i].Instant, Type: "snapshot", AsOf: writes[i].Instant})
	}
	if !t.Config.Archiving {
		// Of an archived table, releases before 1.1 return only what the active timeline wrote.
		queries = append(queries, Query{Name: "incremental from 000", Type: "incremental", Begin: "000"})
	}
	marks := make([]string, len(writes))
	for i, w := range writes {
		marks[i] = w.Mark()
	}
	slices.Sort(marks)
	for range min(2, len(marks)-1) {
		from := t.rand.IntN(len(marks) - 1)
		to := from + 1 + t.rand.IntN(len(marks)-from-1)
		queries = append(queries, Query{Name: "incremental " + marks[from] + " to " + marks[to], Type: "incremental", Begin: marks[from], End: marks[to]})
	}
	return queries
}

// some picks up to most of the numbers below n, in order.
func (t *Table) some(n, most int) []int {
	picked := t.rand.Perm(n)[:min(n, most)]
	slices.Sort(picked)
	return picked
}
