package keygen

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
)

// Generator makes the keys of a batch: one key for each row, and one partition path, "" where the table has no partitions.
// Keys are utf8, partition paths are dictionary<int32, utf8> or utf8. The caller releases both. A Generator is safe for
// concurrent use.
type Generator interface {
	Keys(batch arrow.RecordBatch) (keys, partitions arrow.Array, err error)
}

// keyForm is how a record key is written.
type keyForm uint8

const (
	formSingle keyForm = iota // the value (key generation 6.1)
	formNamed                 // field:value,field:value (6.2)
	formAuto                  // instant_task_row (11.1)
	formRandom                // UUID (11.2)
	formEmpty                 // rows without a key field on Spark's NonPartitioned class
	formBroken                // fails with every record
)

// target is one partition field.
type target struct {
	field string
	name  string // in front of the value with Hive style
	time  bool
	slash bool
}

// Keygen is a compiled configuration. It is safe for concurrent use, but automatic keys count the rows in the order of the
// calls: one Keygen for each task.
type Keygen struct {
	typ      Type
	class    string
	form     keyForm
	keyFail  *Error // formBroken, or what the first record brings
	keys     []string
	targets  []target
	partFail *Error // the reference's error of the first record's partition path

	marker     string
	hive       bool
	encode     bool
	strictKeys bool
	lenient    bool
	guard      bool
	path       Path
	keyPath    Path // of record keys: Custom turns an InternalRow into an Avro record for them
	guardSlash bool
	guardPath  bool
	wholeKeys  bool // NonPartitioned on rows: no part of a key may be null or empty
	slashOn    bool
	texts      texts
	keyTexts   texts
	times      *timeRule
	sql        []string // column types of the Spark SQL wrapper
	sqlNames   []string

	autoPrefix string
	rows       atomic.Int64

	config   *setup
	encoding string // of one-field complex keys, for the table property
	states   sync.Pool
}

// New compiles a configuration. What the reference would only notice with the first record is refused here.
func New(o Options) (*Keygen, error) {
	c, err := newConfig(o)
	if err != nil {
		return nil, err
	}
	t, class, err := c.generatorType()
	if err != nil {
		return nil, err
	}
	auto := strings.TrimSpace(c.props[KeyRecordFields]) == "" && c.release.autoKeys()
	k, err := c.build(t, class, auto)
	if err != nil {
		return nil, err
	}
	if !o.Imitate {
		if err := k.checkReady(); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// checkReady refuses what would fail with the first record.
func (k *Keygen) checkReady() *Error {
	for _, e := range []*Error{k.keyFail, k.partFail} {
		if e != nil {
			copied := *e
			copied.Stage, copied.Row = StageConstruct, -1
			return &copied
		}
	}
	if r := k.times; r != nil {
		for _, e := range []*Error{r.inputErr, r.outputErr, r.nullErr} {
			if e != nil {
				copied := *e
				copied.Stage, copied.Row = StageConstruct, -1
				return &copied
			}
		}
	}
	return nil
}

// build makes the generator of one type. auto wraps it for automatic keys.
func (c *setup) build(t Type, class string, auto bool) (*Keygen, *Error) {
	outer := t
	if t == SparkSQL || t == SparkSQLMerge {
		t = c.sqlOrigin()
	}
	switch t {
	case UserProvided, MetadataType:
		return nil, c.foreign(t, class)
	}
	k := &Keygen{typ: outer, class: class, marker: c.marker, hive: c.hive, encode: c.encode, guard: c.guard, path: c.path, config: c,
		strictKeys: c.release.strictKeys(), lenient: c.release.lenientLookup(), guardSlash: c.release.guarded(), guardPath: c.release.guarded() || c.guard,
		slashOn: c.slash}
	k.texts = texts{path: c.path, consistent: c.consistent, hexBytes: c.release.hexBytes(), oldFloats: !c.ShortestFloats, zone: c.java}
	k.keyPath, k.keyTexts = k.path, k.texts
	if t == Custom && c.path == PathInternalRow {
		k.keyPath = PathAvro
		k.keyTexts.path, k.keyTexts.micros = PathAvro, true
	}
	k.states.New = func() any { return newState(k) }
	if err := k.readKeys(c, t, auto); err != nil {
		return nil, err
	}
	if err := k.readTargets(c, t); err != nil {
		return nil, err
	}
	if outer == SparkSQL || outer == SparkSQLMerge || outer == SparkSQLUUID {
		k.readSQLSchema(c)
	}
	if c.guard {
		return k, k.checkTargets(c)
	}
	return k, nil
}

// foreign refuses generators that only a JVM can run (key generation 11.4).
func (c *setup) foreign(t Type, class string) *Error {
	if t == MetadataType {
		return c.refuse(KeyType, "the generator of the metadata table makes no keys of rows", "open the data table instead")
	}
	return &Error{Class: classIO, Stage: StageConstruct, Row: -1, Field: KeyClass, Message: "Could not load key generator class " + class, Source: c.source(KeyClass),
		Hint: "register a Go generator under this name, or give its rule as " + KeyExpression + "; reading needs neither"}
}

// readKeys decides about the record key.
func (k *Keygen) readKeys(c *setup, t Type, auto bool) *Error {
	text, given := c.get(KeyRecordFields)
	if !given && !c.release.autoKeys() {
		return c.missing(KeyRecordFields)
	}
	if t == SparkSQLUUID {
		k.form = formRandom
		return nil
	}
	if auto {
		return k.readAuto(c)
	}
	k.keys = SplitFields(text)
	switch t {
	case Simple, Timestamp:
		return k.readOneKey(c, text, given)
	case GlobalDelete:
		k.form = formNamed
		if !c.release.autoKeys() {
			k.keys = strings.Split(text, ",") // 0.9 doesn't trim here
		}
		if c.path != PathAvro && len(k.keys) == 1 && c.release.bareComplex() {
			k.form = formSingle // the regression of one-field complex keys reached rows here, too
		}
	case Complex:
		k.form = formNamed
		if len(k.keys) == 1 {
			prefixed, err := c.prefixed()
			if err != nil {
				return err
			}
			if prefixed, err = c.decideEncoding(k.keys[0], prefixed); err != nil {
				return err
			}
			if k.encoding = FieldPrefixed; !prefixed {
				k.form, k.encoding = formSingle, ValueOnly
			}
		} else if _, err := c.prefixed(); err != nil {
			return err
		}
	case Custom, NonPartition:
		if t == Custom && len(k.keys) == 1 {
			return k.readOneKey(c, text, given) // it has a Simple generator do it
		}
		k.form = formNamed
		if len(k.keys) == 1 {
			k.form = formSingle
		}
		k.wholeKeys = t == NonPartition && c.path != PathAvro
	}
	if len(k.keys) == 0 {
		k.noKeys(c, t)
	}
	return nil
}

// readOneKey: Simple and Timestamp, and Custom with one field, take the option as one name. The reference doesn't trim it,
// so that a blank or a comma around it makes it the name of no field; the guards take that for what is meant.
func (k *Keygen) readOneKey(c *setup, text string, given bool) *Error {
	k.form = formSingle
	if len(k.keys) > 1 && c.guard || !c.guard && c.sparkClass(k.class) && strings.Contains(text, ",") {
		return &Error{Class: classArgument, Stage: StageConstruct, Row: -1, Field: KeyRecordFields, Source: c.source(KeyRecordFields),
			Message: "Single record-key field is expected; provided (" + text + ")", Hint: "use the COMPLEX generator for several key fields"}
	}
	if !given || text == "" {
		k.form = formBroken
		class, message := "IndexOutOfBoundsException", "Index 0 out of bounds for length 0"
		if c.path != PathAvro {
			class = "ArrayIndexOutOfBoundsException"
		}
		k.keyFail = &Error{Class: class, Stage: StageKey, Message: message, Field: KeyRecordFields, Hint: "set " + KeyRecordFields}
		return nil
	}
	if !c.guard || len(k.keys) == 0 {
		k.keys = []string{text}
	}
	return nil
}

// sparkClass reports whether it is the Spark twin of a generator that is imitated; it checks lists of fields, the
// engine-neutral one doesn't.
func (c *setup) sparkClass(class string) bool {
	return c.release.lenientLookup() && (c.path != PathAvro || class != "" && !strings.HasSuffix(classes[class], "_AVRO"))
}

// noKeys: what the generators do with an empty list of key fields, each in its own way.
func (k *Keygen) noKeys(c *setup, t Type) {
	k.form = formBroken
	e := &Error{Class: classKey, Stage: StageKey, Field: KeyRecordFields, Hint: "set " + KeyRecordFields,
		Message: "recordKey values: \"\" for fields: [] cannot be entirely null or empty."}
	switch {
	case t == Custom:
		e.Message = "Unable to find field names for record key in cfg"
	case t == NonPartition && c.path != PathAvro:
		k.form = formEmpty
		return
	case c.release == Release{0, 14, 0}:
		e.Class, e.Message = "StringIndexOutOfBoundsException", "index -1, length 0"
	}
	k.keyFail = e
}

// readAuto: keys are counted (11.1).
func (k *Keygen) readAuto(c *setup) *Error {
	k.form = formAuto
	instant, task := c.Instant, c.Task
	if instant == "" {
		instant = c.props[KeyAutoInstant]
	}
	if task == "" {
		task = c.props[KeyAutoTask]
	}
	for _, m := range [2][2]string{{KeyAutoInstant, instant}, {KeyAutoTask, task}} {
		if m[1] == "" {
			e := &Error{Class: classArgument, Stage: StageKey, Row: -1, Field: m[0], Message: "Property " + m[0] + " not found", Source: c.source(KeyRecordFields),
				Hint: "set " + KeyRecordFields + ", or give the writer's instant and task, of which automatic keys are made"}
			if c.release == (Release{0, 14, 0}) {
				e.Stage = StageConstruct
				return e
			}
			k.keyFail = e
			return nil
		}
	}
	k.autoPrefix = instant + "_" + task + "_"
	return nil
}

// readTargets decides about the partition path.
func (k *Keygen) readTargets(c *setup, t Type) *Error {
	text, given := c.get(KeyPartitionFields)
	switch t {
	case NonPartition, GlobalDelete:
		return nil
	case SparkSQLUUID:
		t = Simple
		if len(SplitFields(text)) != 1 {
			t = Complex
		}
	}
	if !given {
		return c.missing(KeyPartitionFields)
	}
	switch t {
	case Simple:
		if c.guard {
			list := SplitFields(text)
			if len(list) != 1 {
				return c.oneTarget(list)
			}
			text = list[0]
		}
		k.targets = []target{{field: text, name: text, slash: c.slash}}
	case Timestamp:
		list := SplitFields(text)
		if c.guard && len(list) != 1 || len(list) > 1 && c.sparkClass(k.class) {
			return c.oneTarget(list)
		}
		if c.guard {
			text = list[0]
		}
		k.targets = []target{{field: text, name: text, time: true}}
		var err *Error
		k.times, err = newTimeRule(c)
		return err
	case Complex:
		list := SplitFields(text)
		for _, f := range list {
			k.targets = append(k.targets, target{field: f, name: f, slash: c.slash && (len(list) == 1 || c.path != PathAvro)})
		}
	case Custom:
		return k.readCustom(c, text)
	}
	return nil
}

func (c *setup) oneTarget(list []string) *Error {
	return &Error{Class: classArgument, Stage: StageConstruct, Row: -1, Field: KeyPartitionFields, Source: c.source(KeyPartitionFields),
		Message: "Single partition-path field is expected; provided (" + strings.Join(list, ", ") + ")",
		Hint:    "use COMPLEX for several partition fields, CUSTOM for several with times, NON_PARTITION for none"}
}

// readCustom reads field:type entries (key generation 10).
func (k *Keygen) readCustom(c *setup, text string) *Error {
	if text == "" {
		return nil
	}
	fail := func(e *Error) *Error {
		e.Field, e.Source = KeyPartitionFields, c.source(KeyPartitionFields)
		e.Hint = "write " + KeyPartitionFields + " as field:SIMPLE or field:TIMESTAMP entries, separated by commas"
		if !c.release.earlyCustom() {
			e.Stage = StagePartition
			k.partFail = e
			return nil
		}
		e.Stage, e.Row = StageConstruct, -1
		return e
	}
	for _, entry := range SplitFields(text) {
		parts := javaSplitColon(entry)
		if len(parts) != 2 {
			class := classKey
			if c.release.since(1, 0, 0) {
				class = classKeyGenerator
			}
			return fail(&Error{Class: class, Message: "Unable to find field names for partition path in proper format. Please specify the partition field names in format `field1:type1,field2:type2`. Example: `country:simple,ts:timestamp`, but found " + strconv.Quote(entry)})
		}
		tg := target{field: parts[0], name: parts[0], slash: c.slash}
		switch typ := strings.ToUpper(parts[1]); typ {
		case "SIMPLE":
		case "TIMESTAMP":
			tg.time, tg.slash = true, false
			if k.times == nil {
				if err := k.readCustomTimes(c); err != nil {
					return err
				}
			}
		default:
			return fail(&Error{Class: classArgument, Message: "No enum constant org.apache.hudi.keygen.CustomAvroKeyGenerator.PartitionKeyType." + typ})
		}
		k.targets = append(k.targets, tg)
	}
	return nil
}

func (k *Keygen) readCustomTimes(c *setup) *Error {
	var err *Error
	if k.times, err = newTimeRule(c); err == nil {
		return nil
	}
	wrapped := *err
	if err.Class == classIO {
		wrapped.Class, wrapped.Cause = classKeyGenerator, classIO
		wrapped.Message = "Unable to initialise TimestampBasedKeyGenerator class: " + err.Message
	}
	if c.release.earlyCustom() {
		return &wrapped
	}
	wrapped.Stage = StagePartition
	k.partFail = &wrapped
	return nil
}

// javaSplitColon is String.split(":").
func javaSplitColon(text string) []string {
	list := strings.Split(text, ":")
	for len(list) > 0 && list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return list
}

// checkTargets refuses combinations that the reference documents as impossible but takes (key generation 7.4).
func (k *Keygen) checkTargets(c *setup) *Error {
	if !c.slash {
		return nil
	}
	switch {
	case k.hive:
		return c.refuse(KeySlashDates, KeySlashDates+" and "+KeyHiveStyle+" exclude each other: Apache Hudi's own write paths disagree about the result", "switch one of them off")
	case len(k.targets) > 1:
		return c.refuse(KeySlashDates, KeySlashDates+" needs exactly one partition field", "name one partition field")
	}
	return nil
}

// Type of the generator.
func (k *Keygen) Type() Type { return k.typ }

// Encoding of one-field complex keys, [FieldPrefixed] or [ValueOnly]; empty for all other keys. A writer records it in the
// table property hoodie.table.complex.keygen.encoding under the table lock.
func (k *Keygen) Encoding() string { return k.encoding }

// Fields are the columns that keys and partition paths are made of.
func (k *Keygen) Fields() (record, partition []string) {
	for _, t := range k.targets {
		partition = append(partition, t.field)
	}
	return slices.Clone(k.keys), partition
}

// Warnings name what is legal but harmful, or not understood.
func (k *Keygen) Warnings() []string {
	w := slices.Clone(k.config.warnings)
	if k.times != nil {
		w = append(w, k.times.warnings...)
	}
	return w
}
