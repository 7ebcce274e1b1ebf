package merge

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"
)

// verdict is what a rule says about two versions of a record.
type verdict uint8

const (
	keepOld   verdict = iota // the older version as it is
	takeNew                  // the newer one as it is; if it is a delete, the record is gone
	takeAlone                // the newer one, and it hides what is stored below the older one
	blendNew                 // the newer one, its gaps filled from the older one
	blendOld                 // the older one, its gaps filled from the newer one
)

// engine is a family of rules. old and new are never nil.
type engine interface {
	within(m *merger, old, new *side) verdict
	scan(m *merger, old, new *side) verdict
	base(m *merger, old, new *side) verdict
}

// merger is what an engine may look at beside the two sides.
type merger struct {
	l      *layout
	chunks []*chunk // sources of values put together from several versions
	*registry
}

// registry numbers the sets of columns that partial blocks have. Set 0 is all columns.
type registry struct {
	sets [][]bool
	ids  map[string]int32
}

func newRegistry() *registry { return &registry{sets: [][]bool{nil}, ids: map[string]int32{}} }

// partial reports whether a version lacks columns.
func (m *merger) partial(s *side) bool { return s.set != 0 }

// modeEngine is the merge modes of versions 8 and 9 (table format 6.6).
type modeEngine struct {
	event bool // EVENT_TIME_ORDERING; otherwise COMMIT_TIME_ORDERING
	fill  bool // a partial update mode is set
	// forgetful: a delete without ordering that is followed by an upsert in the logs is forgotten, so the upsert meets
	// the stored record by ordering. That is how 1.2.0 reads version 9. For version 8 the delete is remembered, because
	// 1.0.2 fails there: the stored record stays hidden and the upsert stands by itself.
	forgetful bool
}

func (e *modeEngine) within(m *merger, old, new *side) verdict { return e.logs(m, old, new, false) }
func (e *modeEngine) scan(m *merger, old, new *side) verdict   { return e.logs(m, old, new, true) }

func (e *modeEngine) logs(m *merger, old, new *side, scan bool) verdict {
	switch {
	case !e.event:
		return e.win(m, old, new)
	case new.bare:
		return e.deleteEntry(old, new)
	case new.plainDelete():
		return takeNew
	case old.plainDelete():
		if scan && !e.forgetful {
			return takeAlone
		}
		return e.win(m, old, new)
	case compareOrder(new, old) >= 0:
		return e.win(m, old, new)
	}
	return e.lose(m, old, new)
}

// deleteEntry is an entry of a DELETE block over what older blocks left.
func (e *modeEngine) deleteEntry(old, new *side) verdict {
	del := new.order()
	switch {
	case old.plainDelete():
		return keepOld
	case del.None():
		return takeNew
	}
	if was := old.order(); sameClass(was, del) && Compare(was, del) > 0 {
		return keepOld
	}
	return takeNew
}

func (e *modeEngine) base(m *merger, old, new *side) verdict {
	switch {
	case !e.event:
		return e.win(m, old, new)
	case new.plainDelete(), old.plainDelete(), compareOrder(new, old) >= 0:
		return e.win(m, old, new)
	}
	return e.lose(m, old, new)
}

// win and lose fill gaps unless one of the two is a delete, which has no meaningful columns.
func (e *modeEngine) win(m *merger, old, new *side) verdict {
	if !old.dead && !new.dead && (e.fill || m.partial(new)) {
		return blendNew
	}
	return takeNew
}

func (e *modeEngine) lose(m *merger, old, new *side) verdict {
	if !old.dead && !new.dead && (e.fill || m.partial(old)) {
		return blendOld
	}
	return keepOld
}

// payloadClass names the payload classes with a rule.
type payloadClass uint8

const (
	classLatest payloadClass = iota
	classDefault
	classEvent
	classFirst
	classReverse
	classNonDefaults
	classPartial
	classAvro
	classEmpty
	classDms
	classMySQL
	classPostgres
)

// scanKind is how the records of log blocks meet each other.
type scanKind uint8

const (
	scanPreCombine scanKind = iota // version 6: preCombine, as within a batch
	scanUpdate                     // version 8: combineAndGetUpdateValue, as over a stored record
	scanCustom                     // version 9: the same; a DELETE block always removes
)

// payloadEngine is the payload classes (tools F.4, table format 6.6).
type payloadEngine struct {
	class   payloadClass
	release string
	logs    scanKind
}

func (e *payloadEngine) old() bool    { return e.release == "0.15.0" } // rules of 0.x
func (e *payloadEngine) newest() bool { return e.release == "1.2.0" }  // rules of 1.1 and later

// within is preCombine: two records of one batch, deletes by flag among them.
func (e *payloadEngine) within(m *merger, old, new *side) verdict {
	if old.bare || new.bare {
		return takeNew
	}
	switch e.class {
	case classLatest:
		if e.old() && compareOrder(old, new) > 0 {
			return keepOld
		}
		return takeNew
	case classAvro, classEmpty:
		return takeNew
	case classFirst:
		if compareOrder(old, new) >= 0 {
			return keepOld
		}
		return takeNew
	case classReverse:
		if compareOrder(old, new) < 0 {
			return keepOld
		}
		return takeNew
	case classPartial:
		return e.withinPartial(m, old, new)
	case classMySQL:
		if e.newest() {
			if compareSequence(old.order(), new.order()) > 0 {
				return keepOld
			}
			return takeNew
		}
	}
	if compareOrder(old, new) > 0 {
		return keepOld
	}
	return takeNew
}

func (e *payloadEngine) withinPartial(m *merger, old, new *side) verdict {
	stronger := compareOrder(old, new) > 0
	switch {
	case stronger && old.dead && !m.l.freshMetas, !stronger && new.dead: // Java fills no gaps of a delete and returns the later arrival
		return takeNew
	case stronger:
		return blendOld
	}
	return blendNew
}

func (e *payloadEngine) scan(m *merger, old, new *side) verdict {
	switch {
	case e.logs == scanPreCombine:
		return e.scanSix(m, old, new)
	case e.logs == scanCustom && (old.dead || new.bare):
		return takeNew
	case new.bare:
		return (&modeEngine{event: true}).deleteEntry(old, new)
	case old.dead && old.plainDelete():
		return takeAlone
	case old.dead:
		if compareOrder(new, old) >= 0 {
			return takeNew
		}
		return keepOld
	}
	return e.update(m, old, new)
}

// scanSix is the log scanner of 0.x: an entry of a DELETE block loses to a logged record of greater ordering value and of
// the same class, and any record that follows a delete replaces it, whatever the ordering.
func (e *payloadEngine) scanSix(m *merger, old, new *side) verdict {
	if new.bare {
		del := new.order()
		if old.bare || del.None() {
			return takeNew
		}
		if was := old.order(); sameClass(was, del) && Compare(was, del) > 0 {
			return keepOld
		}
		return takeNew
	}
	return e.within(m, old, new)
}

func (e *payloadEngine) base(m *merger, old, new *side) verdict {
	if new.bare {
		if e.logs == scanUpdate && !new.plainDelete() && compareOrder(old, new) > 0 {
			return keepOld
		}
		return takeNew // version 6: an entry of a DELETE block removes whatever the ordering
	}
	return e.update(m, old, new)
}

// update is combineAndGetUpdateValue: a record over the stored one.
func (e *payloadEngine) update(m *merger, old, new *side) verdict {
	switch e.class {
	case classDefault, classFirst, classReverse:
		return e.byOrder(old, new)
	case classEvent:
		if new.dead && (!e.newest() || new.order().None()) {
			return takeNew
		}
		return e.byOrder(old, new)
	case classNonDefaults:
		if new.dead {
			return takeNew
		}
		return blendNew
	case classPartial:
		switch {
		case new.dead:
			return takeNew
		case !isNullOrder(old) && sameClass(old.order(), new.order()) && compareOrder(old, new) > 0:
			return blendOld
		}
		return blendNew
	case classMySQL:
		c := compareSequence(m.sequence(old), m.sequence(new))
		if c > 0 || c == 0 && !e.newest() {
			return keepOld
		}
	case classPostgres:
		if Compare(m.sequence(old), m.sequence(new)) > 0 {
			return keepOld
		}
		if !new.dead {
			return blendNew
		}
	}
	return takeNew
}

func isNullOrder(s *side) bool { return s.order().kind <= Null }

func (e *payloadEngine) byOrder(old, new *side) verdict {
	if isNullOrder(old) {
		return takeNew
	}
	c := compareOrder(old, new)
	switch {
	case e.class == classFirst && c >= 0, e.class == classReverse && c < 0, e.class != classReverse && c > 0:
		return keepOld
	}
	return takeNew
}

// sequence reads _event_seq or _event_lsn of a version.
func (m *merger) sequence(s *side) Value {
	if m.l.sequence < 0 || s.bare {
		return Value{}
	}
	arr, row := s.column(m.l.sequence, m.chunks)
	return columnValue(arr, row)
}

// compareSequence compares two texts <file number>.<position> as two numbers. What is no such text orders first.
func compareSequence(a, b Value) int {
	fa, pa, oka := splitSequence(a)
	fb, pb, okb := splitSequence(b)
	if !oka || !okb {
		return boolToInt(oka) - boolToInt(okb)
	}
	return cmp.Or(cmp.Compare(fa, fb), cmp.Compare(pa, pb))
}

func splitSequence(v Value) (file, position int64, ok bool) {
	if v.kind != Text {
		return 0, 0, false
	}
	f, p, found := strings.Cut(v.s, ".")
	if !found {
		return 0, 0, false
	}
	p, _, _ = strings.Cut(p, ".")
	file, errF := strconv.ParseInt(f, 10, 64)
	position, errP := strconv.ParseInt(p, 10, 64)
	return file, position, errF == nil && errP == nil
}

// blend says for every column which version gives the value: the strong one, or the weak one where the strong one has a
// gap. newIsStrong tells meta columns of PartialUpdateAvroPayload, which come from the newer record always.
func (m *merger) blend(fresh, strong, weak *side, out []source, strongAt, weakAt func(i int) source) {
	bySets := strong.set != 0 || weak.set != 0
	for i := range out {
		first, second := strong, weak
		firstAt, secondAt := strongAt, weakAt
		if m.l.metas[i] && fresh != strong && m.metasFollowFresh() {
			first, second, firstAt, secondAt = weak, strong, weakAt, strongAt
		}
		out[i] = firstAt(i)
		if bySets {
			if !m.present(first, i) && m.present(second, i) {
				out[i] = secondAt(i)
			}
			continue
		}
		if m.l.fill == nil || m.l.fill[i] == nil {
			continue
		}
		if arr, row := first.column(i, m.chunks); m.l.fill[i](arr, row) {
			out[i] = secondAt(i)
		}
	}
}

func (m *merger) present(s *side, column int) bool {
	return s.set == 0 || m.sets[s.set][column]
}

// metasFollowFresh: the table has meta columns, and the rule is one that moves them.
func (m *merger) metasFollowFresh() bool { return m.l.freshMetas }

// goneOnInsert: EventTimeAvroPayload knows the custom delete marker only where no record is stored.
func (m *merger) goneOnInsert(s *side) bool {
	if m.l.insertMark < 0 || s.bare {
		return false
	}
	arr, row := s.column(m.l.insertMark, m.chunks)
	return arr.IsValid(row) && arr.ValueStr(row) == m.l.markText
}

// deadColumns reports whether a version put together from several is a delete by its columns.
func (m *merger) deadColumns(s *side) bool {
	l := m.l
	if l.allDead {
		return true
	}
	if l.flag >= 0 {
		arr, row := s.column(l.flag, m.chunks)
		if a, ok := arr.(*array.Boolean); ok && a.IsValid(row) && a.Value(row) {
			return true
		}
	}
	if l.operation >= 0 {
		if arr, row := s.column(l.operation, m.chunks); arr.IsValid(row) {
			if v := arr.ValueStr(row); v == "D" || v == "-U" {
				return true
			}
		}
	}
	if l.mark >= 0 {
		if arr, row := s.column(l.mark, m.chunks); arr.IsValid(row) {
			v := arr.ValueStr(row)
			return v == l.markText || l.markAnyCase && strings.EqualFold(v, l.markText)
		}
	}
	return false
}
