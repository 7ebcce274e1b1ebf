package merge

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sluicelake/sluice/hudi/schema"
)

// ErrUnsupported is wrapped by the refusal of a payload class or merger that this package has no rule for.
var ErrUnsupported = errors.New("unsupported merge")

// Options say how the records of one table merge. Names are those of hoodie.properties.
type Options struct {
	// TableVersion decides the rules: up to 7 those of Apache Hudi 0.15.0, 8 those of 1.0.2, 9 those of 1.2.0.
	TableVersion int
	// Release replaces the release that the table version stands for ("0.15.0", "1.0.2", "1.2.0"). Empty is right for
	// reading; payload classes differ between releases, and a writer may be asked to agree with a certain one.
	Release string

	PayloadClass      string // hoodie.compaction.payload.class
	LegacyPayload     string // hoodie.table.legacy.payload.class; information only: version 9 merges by mode
	MergeMode         string // hoodie.record.merge.mode
	StrategyID        string // hoodie.record.merge.strategy.id, before 1.0 hoodie.compaction.record.merger.strategy
	PartialUpdateMode string // hoodie.table.partial.update.mode
	// OrderingFields, first field first. A dotted name is a field of a struct column.
	OrderingFields []string
	// Props are hoodie.payload.delete.field, hoodie.payload.delete.marker and
	// hoodie.write.partial.update.unavailable.value, with or without the prefix hoodie.record.merge.property. under which
	// version 9 stores them.
	Props map[string]string

	// ForceCommitTime merges by COMMIT_TIME_ORDERING in place of a payload class or merger that has no rule here. The
	// answer may differ from that of the table's writer, so a person has to ask for it.
	ForceCommitTime bool

	// Schema is the table schema with its Avro defaults, which decide partial updates. Nil: no column has a default.
	Schema *schema.Type
	// Arrow is the schema of the batches that will be merged, usually the table's with meta columns, perhaps projected.
	// It must hold Columns(). Nil: Schema's Arrow form.
	Arrow *arrow.Schema
}

// Phase is the situation in which two versions of a record meet. Rules differ between them (table format 6.6).
type Phase uint8

// The phases.
const (
	Within Phase = iota // two records of one write batch
	Scan                // a newer log block against what older log blocks left
	Base                // what the logs left (or a write batch) against the stored record
)

func (p Phase) String() string { return [...]string{"within", "scan", "base"}[p] }

// Rule decides between versions of records. Compile it once per table; it is immutable and safe for concurrent use.
type Rule struct {
	name   string
	engine engine
	// everyTwin: a log record meets every base row of its key. Otherwise the first in file order alone (table version 6).
	everyTwin bool
	layout    *layout
	columns   []string
}

// String names the rule for people: the payload class or the modes, and the release whose rules it follows.
func (r *Rule) String() string { return r.name }

// Columns are the names of the top-level columns that the rule looks at, beside the record key: ordering fields, delete
// marks, columns of change capture. Columns that the table does not have are left out. A projected read must include them.
func (r *Rule) Columns() []string { return slices.Clone(r.columns) }

// Arrow is the schema that batches must have.
func (r *Rule) Arrow() *arrow.Schema { return r.layout.schema }

// Compile resolves options to a rule. It fails with ErrUnsupported for payload classes and mergers without a rule here, and
// with ErrConfig for settings that lack a part.
func Compile(o Options) (*Rule, error) {
	if o.Arrow == nil {
		if o.Schema == nil {
			return nil, fmt.Errorf("%w: no schema", ErrConfig)
		}
		s, err := o.Schema.Arrow()
		if err != nil {
			return nil, err
		}
		o.Arrow = s
	}
	if o.Release == "" {
		o.Release = releaseOf(o.TableVersion)
	}
	r := &Rule{everyTwin: o.TableVersion >= 8}
	b := &binder{o: &o}
	var err error
	if r.engine, r.name, err = b.engine(); err != nil {
		return nil, err
	}
	if r.layout, err = b.layout(); err != nil {
		return nil, err
	}
	r.columns = b.columns
	return r, nil
}

func releaseOf(version int) string {
	switch {
	case version <= 7:
		return "0.15.0"
	case version == 8:
		return "1.0.2"
	}
	return "1.2.0"
}

// binder turns options into an engine and the places of the columns it needs.
type binder struct {
	o       *Options
	columns []string
	fill    fillKind
	marker  string // delete marker, or the text that stands for "unavailable"
	// what counts as a delete
	flag, operation   bool
	deleteField       string
	deleteMark        string
	deleteMarkAnyCase bool
	sequence          string // _event_seq or _event_lsn
	nullIsIntZero     bool
	nullBaseIsIntZero bool
	recheck           bool
	markOnInsert      bool
	allDead           bool   // every record is a delete
	lacking           string // a column of the table that the projection lacks
}

func (b *binder) prop(key string) string {
	if v := b.o.Props[propPrefix+key]; v != "" {
		return v
	}
	return b.o.Props[key]
}

func (b *binder) engine() (engine, string, error) {
	o := b.o
	b.flag, b.operation = true, true
	if o.ForceCommitTime {
		return b.modes(CommitTime)
	}
	if o.TableVersion <= 7 {
		class := o.PayloadClass
		if class == "" {
			class = PayloadLatest // the default of every 0.x release
		}
		if s := o.StrategyID; s != "" && s != StrategyEventTime && s != StrategyCommitTime && s != StrategyPayload {
			return nil, "", b.unsupported("record merger "+s, "hoodie.compaction.record.merger.strategy")
		}
		return b.payload(class)
	}
	mode, class, err := b.resolve()
	switch {
	case err != nil:
		return nil, "", err
	case mode != Custom:
		return b.modes(mode)
	case o.StrategyID != "" && o.StrategyID != StrategyPayload:
		return nil, "", b.unsupported("record merger "+o.StrategyID, "hoodie.record.merge.strategy.id")
	case class == "":
		return nil, "", b.unsupported("custom merge mode without a payload class", "hoodie.record.merge.mode")
	}
	return b.payload(class)
}

// resolve finds mode and payload class of a table of version 8 or 9. What is stored counts, even where Infer would call it
// contradictory: upgrades store EVENT_TIME_ORDERING beside OverwriteWithLatest, and 1.0.2 stores CUSTOM beside EventTime.
func (b *binder) resolve() (mode, class string, err error) {
	o := b.o
	if o.MergeMode != "" {
		return strings.ToUpper(o.MergeMode), o.PayloadClass, nil
	}
	version := min(o.TableVersion, 8)
	s, err := Infer(version, o.Release, Settings{PayloadClass: o.PayloadClass, StrategyID: o.StrategyID,
		OrderingFields: strings.Join(o.OrderingFields, ",")})
	if err != nil {
		return "", "", err
	}
	return s.Mode, s.PayloadClass, nil
}

func (b *binder) unsupported(what, property string) error {
	return fmt.Errorf("%w: %s (property %s) has no rule in Sluice; read base files only (read_optimized), or force commit-time "+
		"merging if the newest arrival of a key is the right one", ErrUnsupported, what, property)
}

func (b *binder) modes(mode string) (engine, string, error) {
	o := b.o
	if mode != CommitTime && mode != EventTime {
		return nil, "", b.unsupported("merge mode "+mode, "hoodie.record.merge.mode")
	}
	field, mark := b.prop(propDeleteField), b.prop(propDeleteMark)
	if (field == "") != (mark == "") {
		return nil, "", fmt.Errorf("%w: %s and %s go together; set both or none", ErrConfig, propDeleteField, propDeleteMark)
	}
	b.deleteField, b.deleteMark = field, mark
	b.nullIsIntZero, b.nullBaseIsIntZero = true, true
	e := &modeEngine{event: mode == EventTime, forgetful: o.TableVersion >= 9}
	name := mode
	if o.TableVersion >= 9 && !o.ForceCommitTime {
		switch strings.ToUpper(o.PartialUpdateMode) {
		case "", "NONE", KeepValues:
		case IgnoreDefaults:
			b.fill, e.fill = fillIdentical, true
		case FillUnavailable, IgnoreMarkers:
			b.fill, e.fill, b.marker = fillMarker, true, b.prop(propUnavailable)
		default:
			return nil, "", b.unsupported("partial update mode "+o.PartialUpdateMode, "hoodie.table.partial.update.mode")
		}
		if e.fill {
			name += "+" + strings.ToUpper(o.PartialUpdateMode)
		}
	}
	return e, fmt.Sprintf("%s (as %s)", name, o.Release), nil
}

func (b *binder) payload(class string) (engine, string, error) {
	o := b.o
	e := &payloadEngine{release: o.Release}
	switch {
	case o.TableVersion >= 9:
		e.logs = scanCustom
	case o.TableVersion == 8:
		e.logs = scanUpdate
	}
	b.nullIsIntZero, b.recheck = true, true
	switch class {
	case PayloadLatest:
		e.class = classLatest
	case PayloadDefault, PayloadFirstValue, PayloadReverse:
		e.class = map[string]payloadClass{PayloadDefault: classDefault, PayloadFirstValue: classFirst, PayloadReverse: classReverse}[class]
		if field := b.prop(propDeleteField); field != "" {
			if b.deleteField, b.deleteMark = field, b.prop(propDeleteMark); b.deleteMark == "" {
				return nil, "", fmt.Errorf("%w: %s without %s", ErrConfig, propDeleteField, propDeleteMark)
			}
			b.flag = false
		}
	case PayloadEventTime:
		e.class = classEvent
		if field, mark := b.prop(propDeleteField), b.prop(propDeleteMark); field != "" && mark != "" {
			b.deleteField, b.deleteMark, b.markOnInsert = field, mark, true
		}
	case PayloadAvro:
		e.class, b.flag = classAvro, false
	case PayloadNonDefaults:
		e.class, b.fill = classNonDefaults, fillEqual
	case PayloadPartial:
		e.class, b.fill = classPartial, fillNull
	case PayloadEmpty:
		e.class, b.allDead = classEmpty, true
	case PayloadAWSDms:
		e.class, b.deleteField, b.deleteMark, b.deleteMarkAnyCase = classDms, "Op", "D", true
		if !b.has("Op") {
			return nil, "", fmt.Errorf("%w: %s needs a column Op, which tells deletes from other changes", ErrConfig, class)
		}
	case PayloadMySQL:
		e.class, b.sequence = classMySQL, "_event_seq"
		b.deleteField, b.deleteMark, b.deleteMarkAnyCase = "_change_operation_type", "d", true
	case PayloadPostgres:
		e.class, b.sequence, b.fill, b.marker = classPostgres, "_event_lsn", fillMarker, toast
		b.deleteField, b.deleteMark, b.deleteMarkAnyCase = "_change_operation_type", "d", true
	default:
		return nil, "", b.unsupported("payload class "+class, "hoodie.compaction.payload.class")
	}
	return e, fmt.Sprintf("%s (as %s)", class, o.Release), nil
}

func (b *binder) has(name string) bool {
	if b.o.Schema != nil {
		_, ok := b.o.Schema.Field(name)
		return ok
	}
	return len(b.o.Arrow.FieldIndices(name)) > 0
}
