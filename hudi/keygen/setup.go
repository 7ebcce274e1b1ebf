package keygen

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sluicelake/sluice/hudi/schema"
)

// Options say which keys are wanted. Only Properties or Table must be given.
type Options struct {
	// Properties are the write options, by their full hoodie.* names, old names included. KeyExpression, in the form
	// "key = expression; partition = expression", makes keys by expressions over the columns.
	Properties map[string]string
	// Table are the properties of the table that exists; nil for a new one. A writer needs no options besides them. Options
	// that contradict them are refused.
	Table map[string]string
	// Schema of the records, where texts depend on more than Arrow tells: an enum is text in Arrow, but no time in a
	// timestamp generator.
	Schema *schema.Type
	// Zone stands for the time zone of the Java process, on which the reference depends where an option is silent. UTC when
	// empty.
	Zone string
	// Release and Path choose whose results are wanted; the zero values are right for writing.
	Release Release
	Path    Path
	// Imitate follows the reference where it silently does harm: misspelled fields are null, unsafe paths are returned,
	// forbidden combinations work. For comparing only; never write with it.
	Imitate bool
	// StoredKeys is a sample of _hoodie_record_key of the newest commits. It decides the encoding of one-field complex keys
	// where the table's properties are silent (key generation 6.3); take at least two keys, better a few hundred.
	StoredKeys []string
	// HasCommits says that the table has completed commits, so that keys must be there.
	HasCommits bool
	// Delete says that the operation is a delete, for which the GlobalDelete generator fits every table.
	Delete bool
	// Nulls is the policy for null times.
	Nulls NullPolicy
	// Instant and Task make automatic keys: the instant of the write and the number of the task. They win over the options
	// of the same meaning.
	Instant string
	Task    string
	// Registry finds generators of one's own.
	Registry *Registry
	// Origin says where a write option was set ("--hoodie-conf", "orders.properties, line 4"), for errors.
	Origin func(key string) string
	// ShortestFloats prints floating point numbers as Java 19 and later do. Java 8 to 17, on which Spark runs, sometimes
	// print one digit more.
	ShortestFloats bool
	// Year is the current year, the base of two-digit years in input formats; 0 asks the clock.
	Year int
}

// setup is what the options come down to.
type setup struct {
	Options
	props map[string]string // write names; the table's values where the writer is silent
	from  map[string]string // source of those that came from the table

	release    Release
	path       Path
	zone       *zone    // of the process
	java       javaZone // the same, as Java's own classes see it
	hive       bool
	encode     bool
	slash      bool
	consistent bool
	nulls      NullPolicy
	year       int64
	version    int // table version; 0 unknown
	marker     string
	guard      bool // refuse what the reference does silently
	warnings   []string
}

func newConfig(o Options) (*setup, *Error) {
	c := &setup{Options: o, release: o.Release, path: o.Path, nulls: o.Nulls, guard: !o.Imitate, from: map[string]string{}}
	c.props = make(map[string]string, len(o.Properties)+len(o.Table))
	for k, v := range o.Properties {
		c.props[k] = v
	}
	c.version, _ = strconv.Atoi(o.Table[TableVersion])
	if err := c.addTable(); err != nil {
		return nil, err
	}
	zoneID := o.Zone
	if zoneID == "" {
		zoneID = "UTC"
	}
	z, known, err := resolveZone(zoneID)
	if err != nil || !known && c.guard {
		return nil, c.refuse("time zone", "the process time zone "+zoneID+" is not known", "use a region id such as Europe/Berlin")
	}
	c.zone = z
	if c.java, err = resolveJavaZone(zoneID); err != nil {
		return nil, c.refuse("time zone", err.Error(), "use a region id such as Europe/Berlin")
	}
	c.year = int64(o.Year)
	if c.year == 0 {
		c.year = currentYear(z)
	}
	c.hive = c.isTrue(KeyHiveStyle)
	c.encode = c.isTrue(KeyURLEncode)
	c.slash = c.isTrue(KeySlashDates) && c.release.slashDates()
	c.consistent = c.isTrue(KeyConsistent) && c.release.consistentTimestamps()
	c.marker = NullPartition
	if !c.release.hiveMarker() || o.Table != nil && c.version > 0 && c.version < 5 {
		c.marker = OldNullPartition
	}
	if c.guard {
		return c, c.checkNames()
	}
	return c, nil
}

// isTrue: "true" in any case is true, everything else is false (key generation 2).
func (c *setup) isTrue(key string) bool { return strings.EqualFold(c.props[key], "true") }

// fields of a list option; present is false when the option is absent.
func (c *setup) get(key string) (string, bool) {
	v, ok := c.props[key]
	return v, ok
}

func (c *setup) firstOf(keys ...string) (string, bool) {
	for _, k := range keys {
		if v, ok := c.props[k]; ok {
			return v, true
		}
	}
	return "", false
}

// timeOption looks under the new name, then under the old one.
func (c *setup) timeOption(suffix string) (string, bool) {
	if !c.release.newTimeNames() {
		return c.get(oldTimePrefix + suffix)
	}
	return c.firstOf(timePrefix+suffix, oldTimePrefix+suffix)
}

// timeName is the name under which an option stands, or should.
func (c *setup) timeName(suffix string) string {
	if _, ok := c.props[timePrefix+suffix]; !ok {
		if _, ok := c.props[oldTimePrefix+suffix]; ok || !c.release.newTimeNames() {
			return oldTimePrefix + suffix
		}
	}
	return timePrefix + suffix
}

func (c *setup) timeFault(suffix, class, message string) *Error {
	name := c.timeName(suffix)
	return &Error{Class: class, Stage: StagePartition, Row: -1, Field: name, Message: message, Source: c.source(name), Hint: "set " + name}
}

func (c *setup) timeError(suffix, text string, err error) *Error {
	e := c.timeFault(suffix, classArgument, err.Error())
	e.Hint = "correct the pattern " + strconv.Quote(text) + " of " + e.Field
	return e
}

// source says where an option comes from.
func (c *setup) source(key string) string {
	if s, ok := c.from[key]; ok {
		return s
	}
	if _, ok := c.props[key]; !ok {
		return ""
	}
	if c.Origin != nil {
		if s := c.Origin(key); s != "" {
			return s
		}
	}
	return "the write options"
}

// refuse makes an error of a configuration that the reference would take.
func (c *setup) refuse(key, message, hint string) *Error {
	return &Error{Class: classRefused, Stage: StageConstruct, Row: -1, Field: key, Message: message, Source: c.source(key), Hint: hint}
}

// missing is the reference's error for an option that must be there.
func (c *setup) missing(key string) *Error {
	return &Error{Class: classArgument, Stage: StageConstruct, Row: -1, Field: key, Message: "Property " + key + " not found", Source: "", Hint: "set " + key}
}

// checkNames refuses options that contradict each other under an old and a new name, and warns of names that are nearly
// those of an option.
func (c *setup) checkNames() *Error {
	pairs := [][2]string{{keyParserClass, keyOldParserClass}}
	for _, o := range timeOptions {
		pairs = append(pairs, [2]string{timePrefix + o, oldTimePrefix + o})
	}
	known := []string{KeyRecordFields, KeyPartitionFields, KeyClass, KeyType, KeyHiveStyle, KeyURLEncode, KeyConsistent, KeySlashDates, KeyNewEncoding}
	for _, p := range pairs {
		known = append(known, p[0], p[1])
		now, hasNew := c.props[p[0]]
		old, hasOld := c.props[p[1]]
		if hasNew && hasOld && now != old {
			return c.refuse(p[1], p[0]+"="+now+" and its old name "+p[1]+"="+old+" contradict each other", "remove one of the two; the new name would win")
		}
	}
	for key := range c.Properties {
		if slices.Contains(known, key) {
			continue
		}
		for _, k := range known {
			if nearly(key, k) {
				c.warnings = append(c.warnings, "option "+key+" is not read; "+k+" is probably meant")
			}
		}
	}
	slices.Sort(c.warnings)
	return nil
}

// nearly reports whether two names differ by letter case or by one or two characters.
func nearly(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	if d := len(a) - len(b); d > 2 || d < -2 {
		return false
	}
	pre := 0
	for pre < len(a) && pre < len(b) && a[pre] == b[pre] {
		pre++
	}
	a, b = a[pre:], b[pre:]
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) <= 2 && len(b) <= 2
}

// generatorType finds out which generator is meant (key generation 3.1). class is set for generators of the user's.
func (c *setup) generatorType() (t Type, class string, err *Error) {
	if class = c.props[KeyClass]; class != "" {
		if name, ok := classes[class]; ok {
			return baseType(name), class, nil
		}
		return UserProvided, class, nil
	}
	name, ok := c.props[KeyType]
	if !ok || name == "" {
		return Infer(c.props[KeyRecordFields], c.props[KeyPartitionFields], c.release), "", nil
	}
	switch t = baseType(name); t {
	case Simple, Complex, Timestamp, Custom, NonPartition, GlobalDelete:
		return t, "", nil
	}
	return "", "", &Error{Class: classKeyGenerator, Stage: StageConstruct, Row: -1, Field: KeyType, Message: "Unsupported keyGenerator Type " + name,
		Source: c.source(KeyType), Hint: "one of SIMPLE, COMPLEX, TIMESTAMP, CUSTOM, NON_PARTITION, GLOBAL_DELETE"}
}

// prefixed decides whether a one-field complex key carries its field's name (key generation 6.3).
func (c *setup) prefixed() (bool, *Error) {
	if c.release.bareComplex() {
		return false, nil
	}
	if !c.release.complexOptions() {
		return true, nil
	}
	version := 9
	text, given := c.props[KeyWriteVersion]
	if given {
		n, err := strconv.Atoi(text)
		if err != nil {
			return false, &Error{Class: classNumber, Stage: StageConstruct, Row: -1, Field: KeyWriteVersion, Message: "For input string: \"" + text + "\"",
				Source: c.source(KeyWriteVersion), Hint: "give the table version as a number"}
		}
		if n < 0 || n > c.release.newestTableVersion() {
			return false, &Error{Class: classHoodie, Stage: StageConstruct, Row: -1, Field: KeyWriteVersion, Message: "Unknown versionCode: " + text,
				Source: c.source(KeyWriteVersion), Hint: "a version up to " + strconv.Itoa(c.release.newestTableVersion())}
		}
		version = n
	} else if c.version > 0 {
		version = c.version
	}
	if c.release == Current {
		if stored, ok := c.props[TableEncoding]; ok {
			switch strings.ToUpper(strings.TrimSpace(stored)) {
			case FieldPrefixed:
				return true, nil
			case ValueOnly:
				return false, nil
			}
			return false, &Error{Class: classArgument, Stage: StageConstruct, Row: -1, Field: TableEncoding,
				Message: "Invalid value for " + TableEncoding + ": " + stored, Source: c.source(TableEncoding), Hint: FieldPrefixed + " or " + ValueOnly}
		}
	}
	return version > 8 || !c.isTrue(KeyNewEncoding), nil
}
