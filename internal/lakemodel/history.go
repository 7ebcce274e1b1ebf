package lakemodel

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sluicelake/sluice/interop/rows"
)

// Step is one operation of a history.
type Step struct {
	Operation  string            // as hoodie.datasource.write.operation names it
	Columns    []Column          // of the rows
	Rows       []rows.Row        // in the order in which they arrive
	Partitions []string          // of delete_partition; * stands for any text
	Conf       map[string]string // beside the options of the table

	Combine        bool // rows of one key are combined before anything else
	DropDuplicates bool // rows whose key is stored are left out
	Note           string
}

// History is a table with the steps that made it.
type History struct {
	Seed   uint64
	Config Config
	Steps  []Step
}

// Options are all options of a step.
func (h *History) Options(s Step) map[string]string {
	o := h.Config.Options()
	maps.Copy(o, s.Conf)
	o["hoodie.datasource.write.operation"] = s.Operation
	if s.Operation == "delete_partition" {
		o["hoodie.datasource.write.partitions.to.delete"] = strings.Join(s.Partitions, ",")
	}
	return o
}

// String tells the story, for a person who has a failed seed before him.
func (h *History) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %s\n", h.Seed, h.Config.String())
	for i, s := range h.Steps {
		fmt.Fprintf(&b, "  %d %s\n", i, s)
	}
	return b.String()
}

func (s Step) String() string {
	parts := []string{s.Operation}
	if len(s.Rows) > 0 {
		parts = append(parts, fmt.Sprintf("%d rows of %d columns", len(s.Rows), len(s.Columns)))
	}
	if len(s.Partitions) > 0 {
		parts = append(parts, fmt.Sprintf("%q", s.Partitions))
	}
	if s.Note != "" {
		parts = append(parts, s.Note)
	}
	for _, k := range slices.Sorted(maps.Keys(s.Conf)) {
		parts = append(parts, strings.TrimPrefix(k, "hoodie.")+"="+s.Conf[k])
	}
	return strings.Join(parts, ", ")
}

// Release of Apache Hudi that takes turns on the table: 0.15.0 has the even seeds, 1.2.0 the odd ones.
func (h *History) Release() string {
	if h.Seed%2 == 0 {
		return "0.15.0"
	}
	return "1.2.0"
}

// Generate makes the history of a seed: the same one for ever, until this package changes.
func Generate(seed uint64) *History {
	h, _ := GenerateWith(seed)
	return h
}

// GenerateWith gives, with the history, a way to make more steps of the same kind on the table as it then stands.
func GenerateWith(seed uint64) (*History, *Maker) {
	r := rand.New(rand.NewPCG(seed, 6))
	h := &History{Seed: seed, Config: randomConfig(r, seed)}
	m := &Maker{rand: r, config: &h.Config, table: NewTable(&h.Config)}
	m.columns = h.Config.columns(r)
	h.Steps = append(h.Steps, m.take(m.first()))
	for range 8 + r.IntN(5) {
		h.Steps = append(h.Steps, m.take(m.random()))
	}
	return h, m
}

// Maker makes steps that make sense on the table as it stands. It keeps a model of the table for that.
type Maker struct {
	rand    *rand.Rand
	config  *Config
	table   *Table
	columns []Column // of the rows that are made now
	next    int      // number of the next new id
	clock   int64    // grows with every step
	widened bool
	added   int
}

func (m *Maker) take(s Step) Step {
	m.table.Apply(s)
	m.clock += 100
	return s
}

func (m *Maker) first() Step {
	if m.config.Keygen == Keyless || m.rand.IntN(2) == 0 {
		return m.insert(pick(m.rand, []string{"insert", "bulk_insert"}), 25+m.rand.IntN(35))
	}
	s := m.step("upsert")
	for range 25 + m.rand.IntN(35) {
		s.Rows = append(s.Rows, m.row(m.newKey()))
	}
	s.Combine = true
	return s
}

func (m *Maker) step(operation string) Step {
	return Step{Operation: operation, Columns: m.columns, Conf: map[string]string{}}
}

func (m *Maker) random() Step {
	type choice struct {
		weight int
		do     func() Step
	}
	choices := []choice{
		{3, func() Step { return m.insert("insert", 3+m.rand.IntN(20)) }},
		{2, func() Step { return m.insert("bulk_insert", 3+m.rand.IntN(20)) }},
		{2, m.overwrite},
		{1, m.overwriteTable},
		{1, m.deletePartition},
	}
	if m.config.Keygen != Keyless {
		choices = append(choices, choice{9, m.upsert}, choice{1, m.softDelete}, choice{3, m.remove})
		if m.config.Index != "BUCKET" { // which says of every key of a bucket that has a file that it is stored
			choices = append(choices, choice{2, m.dropDuplicates})
		}
	}
	if m.rand.IntN(4) == 0 {
		m.evolve()
	}
	total := 0
	for _, c := range choices {
		total += c.weight
	}
	at := m.rand.IntN(total)
	for _, c := range choices {
		if at -= c.weight; at < 0 {
			return c.do()
		}
	}
	return m.upsert()
}

// evolve changes the columns of all later rows: a new one, a wider one, another order.
func (m *Maker) evolve() {
	m.columns = slices.Clone(m.columns)
	switch m.rand.IntN(3) {
	case 0:
		m.added++
		dt := pick(m.rand, []arrow.DataType{text, long, list(integer), structure("a", integer, "b", text), decimal(18, 4), micros})
		m.columns = append(m.columns, Column{fmt.Sprintf("added%d", m.added), dt})
	case 1:
		for i, c := range m.columns {
			if c.Name == "count" {
				m.columns[i].Type = long
			}
		}
		m.widened = true
	case 2:
		m.rand.Shuffle(len(m.columns), func(i, j int) { m.columns[i], m.columns[j] = m.columns[j], m.columns[i] })
	}
}

// insert writes new keys, and keys that are stored where the configuration has duplicates.
func (m *Maker) insert(operation string, count int) Step {
	s := m.step(operation)
	for range count {
		r := m.row(m.newKey())
		if m.config.Duplicates && len(m.table.Rows) > 0 && m.rand.IntN(5) == 0 {
			r = m.row(m.storedKey())
		}
		m.mark(r, 15)
		s.Rows = append(s.Rows, r)
	}
	// Apache Hudi's bulk insert combines by the ordering value alone, which is not what a partial update does.
	combine := m.config.Keygen != Keyless && (operation == "insert" || m.config.Payload != PartialUpdate)
	if s.Combine = combine && m.rand.IntN(3) == 0; s.Combine {
		s.Conf["hoodie.combine.before.insert"] = "true"
		m.repeat(&s, 4)
		s.Note = "combined"
	}
	if operation == "bulk_insert" {
		s.Conf["hoodie.bulkinsert.sort.mode"] = pick(m.rand, []string{"NONE", "GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"})
	}
	return s
}

// dropDuplicates inserts, and leaves out what is stored.
func (m *Maker) dropDuplicates() Step {
	s := m.step("insert")
	for range 4 + m.rand.IntN(10) {
		r := m.row(m.newKey())
		if len(m.table.Rows) > 0 && m.rand.IntN(2) == 0 {
			r = m.row(m.storedKey())
		}
		s.Rows = append(s.Rows, r)
	}
	s.Combine, s.DropDuplicates, s.Note = true, true, "duplicates dropped"
	s.Conf["hoodie.datasource.write.insert.drop.duplicates"] = "true"
	return s
}

// upsert writes newer, late and equally old versions of rows, versions that say that they are deleted, and new rows; now
// and then a key comes twice.
func (m *Maker) upsert() Step {
	s := m.step("upsert")
	for range 2 + m.rand.IntN(12) {
		s.Rows = append(s.Rows, m.change())
	}
	for range m.rand.IntN(5) {
		r := m.row(m.newKey())
		m.mark(r, 6)
		s.Rows = append(s.Rows, r)
	}
	m.repeat(&s, 3)
	s.Combine = true
	return s
}

// change is a new version of a row that is stored.
func (m *Maker) change() rows.Row {
	if len(m.table.Rows) == 0 {
		return m.row(m.newKey())
	}
	key := m.storedKey()
	if m.config.Global() && m.rand.IntN(2) == 0 {
		key = m.elsewhere(key)
	}
	r := m.row(key)
	m.mark(r, 4)
	switch m.rand.IntN(4) {
	case 0:
		m.order(r, -400+m.rand.Int64N(400)) // late, perhaps
	case 1:
		for _, s := range m.table.Rows {
			if s.Row["id"] == r["id"] && s.Row["shop"] == r["shop"] {
				r["ts"] = s.Row["ts"] // a tie
			}
		}
	}
	return r
}

// elsewhere gives a key another partition. Where a partial update is late, the row would move to a partition that its columns
// do not name: the newer row's columns win, but the older row's meta columns. Such histories are not made.
func (m *Maker) elsewhere(key rows.Row) rows.Row {
	if m.config.Payload == PartialUpdate {
		return key
	}
	to := m.place()
	moved := maps.Clone(key)
	for _, p := range m.config.Partitions {
		moved[p] = to[p]
	}
	return moved
}

// repeat lets some keys of a batch come twice.
func (m *Maker) repeat(s *Step, upTo int) {
	for range m.rand.IntN(upTo) {
		first := s.Rows[m.rand.IntN(len(s.Rows))]
		r := m.row(m.keyOf(first))
		switch m.rand.IntN(3) {
		case 0:
			r["ts"] = first["ts"]
		case 1:
			m.order(r, -300)
		}
		m.mark(r, 5)
		at := m.rand.IntN(len(s.Rows) + 1)
		s.Rows = slices.Insert(s.Rows, at, r)
	}
}

// softDelete keeps the keys and sets everything else to null.
func (m *Maker) softDelete() Step {
	s := m.step("upsert")
	s.Combine, s.Note = true, "soft delete"
	for range 1 + m.rand.IntN(4) {
		if len(m.table.Rows) == 0 {
			break
		}
		r := m.row(m.storedKey())
		for name := range r {
			if !m.named(name) {
				r[name] = nil
			}
		}
		s.Rows = append(s.Rows, r)
	}
	if len(s.Rows) == 0 {
		return m.upsert()
	}
	return s
}

// remove deletes keys; some are not there. The rows have all columns, or those that name a row.
func (m *Maker) remove() Step {
	s := m.step("delete")
	s.Combine = true
	for range 1 + m.rand.IntN(8) {
		key := m.newKey()
		if len(m.table.Rows) > 0 && m.rand.IntN(5) > 0 {
			key = m.storedKey()
		}
		r := m.row(key)
		m.order(r, -500)
		s.Rows = append(s.Rows, r)
	}
	if m.rand.IntN(2) == 0 {
		s.Note = "keys only"
		s.Columns = slices.DeleteFunc(slices.Clone(s.Columns), func(c Column) bool { return !m.named(c.Name) })
		for i, r := range s.Rows {
			s.Rows[i] = maps.Clone(r)
			maps.DeleteFunc(s.Rows[i], func(name string, _ any) bool { return !m.named(name) })
		}
	}
	return s
}

// overwrite replaces the partitions of its rows, which are new, or stored there.
func (m *Maker) overwrite() Step {
	s := m.step("insert_overwrite")
	place := m.place()
	if len(m.table.Rows) > 0 {
		place = m.keyOf(pick(m.rand, m.table.Rows).Row)
	}
	partition := m.config.PartitionPath(place)
	for range 1 + m.rand.IntN(8) {
		key := m.newKey()
		for _, p := range m.config.Partitions {
			key[p] = place[p]
		}
		s.Rows = append(s.Rows, m.row(key))
	}
	for _, stored := range m.table.Rows {
		if stored.Partition == partition && m.rand.IntN(4) == 0 {
			key := m.keyOf(stored.Row)
			for _, p := range m.config.Partitions {
				key[p] = place[p] // under a global index the row may be stored elsewhere than its columns say
			}
			s.Rows = append(s.Rows, m.row(key))
		}
	}
	s.Rows = m.unique(s.Rows)
	return s
}

func (m *Maker) overwriteTable() Step {
	s := m.step("insert_overwrite_table")
	for range 20 + m.rand.IntN(20) {
		s.Rows = append(s.Rows, m.row(m.newKey()))
	}
	for range 5 {
		if len(m.table.Rows) > 0 {
			s.Rows = append(s.Rows, m.row(m.storedKey()))
		}
	}
	s.Rows = m.unique(s.Rows)
	return s
}

func (m *Maker) unique(all []rows.Row) []rows.Row {
	if m.config.Keygen == Keyless {
		return all
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(r rows.Row) bool {
		key := m.config.RecordKey(r)
		twice := seen[key]
		seen[key] = true
		return twice
	})
}

// deletePartition removes one or two partitions, or all of a pattern.
func (m *Maker) deletePartition() Step {
	partitions := m.table.Partitions()
	if len(partitions) == 0 || partitions[0] == "" {
		return m.insert("insert", 5)
	}
	s := Step{Operation: "delete_partition", Conf: map[string]string{}}
	for range 1 + m.rand.IntN(2) {
		s.Partitions = append(s.Partitions, pick(m.rand, partitions))
	}
	if first := s.Partitions[0]; m.rand.IntN(3) == 0 {
		letters := []rune(first)
		s.Partitions = []string{string(letters[:len(letters)/2+1]) + "*"}
	}
	slices.Sort(s.Partitions)
	s.Partitions = slices.Compact(s.Partitions)
	return s
}

// named reports whether a column names a row: key, partition, ordering.
func (m *Maker) named(column string) bool {
	return column == m.config.Ordering || slices.Contains(m.config.Keys, column) || slices.Contains(m.config.Partitions, column)
}

// Turn makes two more steps: changes and deletes, or inserts where rows have no keys of their own.
func (m *Maker) Turn() []Step {
	if m.config.Keygen == Keyless {
		return []Step{m.take(m.insert("insert", 5)), m.take(m.insert("insert", 5))}
	}
	return []Step{m.take(m.upsert()), m.take(m.remove())}
}

// twin: the key of a row is stored more than once.
func (m *Maker) twin(r rows.Row) bool {
	return len(m.table.find(Stored{Key: m.config.RecordKey(r), Partition: m.config.PartitionPath(r)})) > 1
}

// Foreign says why Spark can't change the table of a history; empty when it can.
func (h *History) Foreign() string {
	for _, s := range h.Steps {
		for _, c := range s.Columns {
			if c.Name == "count" && c.Type == long && h.Config.Moves && h.Release() == "0.15.0" {
				return "0.15.0 reads stored rows of a global index with the newest schema, and fails on files from before a column became wider"
			}
		}
	}
	if c := h.Config; c.OrderingType == "decimal" && h.Release() == "1.2.0" && (c.Payload == DefaultPayload || c.Payload == EventTime || c.Payload == PartialUpdate) {
		return "1.2.0 can't compare decimals: GenericData$Fixed cannot be cast to class java.math.BigDecimal, also on tables of its own"
	}
	return ""
}

// PathsForNumbers: the partition column is a number, and the partition paths are texts made of it, which 0.15.0 takes for the column's
// values and can't read.
func (h *History) PathsForNumbers() bool {
	return slices.Contains(h.Config.Partitions, "made") && h.Config.Clock.Type == "EPOCHMILLISECONDS"
}

// ForeignTurn is a Turn for another writer, without that about which releases of Apache Hudi differ: 1.2.0 keeps the last arrival
// of a batch under OverwriteWithLatest and its kin, lets an older delete lose under EventTime (table format 6.6), inserts a new row
// whose Op is d, and changes one alone of the rows that one file holds of a key. A GLOBAL_BLOOM index looks into the partitions of the
// batch alone, in all releases, when it is told to leave key ranges aside.
func (m *Maker) ForeignTurn() []Step {
	if m.config.Keygen == Keyless {
		return m.Turn()
	}
	s := m.upsert()
	seen := map[string]bool{}
	s.Rows = slices.DeleteFunc(s.Rows, func(r rows.Row) bool {
		key := m.config.RecordKey(r)
		twice := seen[key]
		seen[key] = true
		return twice || m.twin(r)
	})
	for _, r := range s.Rows {
		if m.config.Payload == EventTime && m.config.deletes(r) {
			m.order(r, 50)
		}
		if m.config.Payload == AWSDms && m.config.deletes(r) {
			r["Op"] = "D"
		}
	}
	steps := []Step{m.take(s)}
	gone := m.remove()
	gone.Rows = slices.DeleteFunc(gone.Rows, m.twin)
	steps = append(steps, m.take(gone))
	for i := range steps {
		if steps[i].Conf == nil {
			steps[i].Conf = map[string]string{}
		}
		if m.config.Index == "GLOBAL_BLOOM" {
			steps[i].Conf["hoodie.bloom.index.prune.by.ranges"] = "true"
		}
	}
	return steps
}
