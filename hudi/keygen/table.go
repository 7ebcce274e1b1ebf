package keygen

import (
	"slices"
	"strconv"
	"strings"
)

// fromTable is the source of options that the table's properties hold.
const fromTable = "hoodie.properties"

// addTable takes the generator's options from the table and refuses write options that contradict them (key generation 12).
func (c *setup) addTable() *Error {
	t := c.Table
	if t == nil {
		return nil
	}
	var conflicts []string
	conflict := func(label, now, stored string) {
		conflicts = append(conflicts, label+":\t"+now+"\t"+stored)
	}
	c.addGenerator(conflict)
	c.addRecordFields(conflict)
	c.addPartitionFields(conflict)
	for _, key := range [3]string{KeyHiveStyle, KeyURLEncode, KeySlashDates} {
		stored := t[key]
		if now, ok := c.props[key]; ok && strings.EqualFold(now, "true") != strings.EqualFold(stored, "true") {
			conflict(key, now, strconv.FormatBool(strings.EqualFold(stored, "true")))
		}
		if stored != "" {
			c.take(key, stored)
		}
	}
	c.addTimes(conflict)
	if stored, ok := t[TableEncoding]; ok {
		c.take(TableEncoding, stored)
	}
	if len(conflicts) == 0 {
		return nil
	}
	return &Error{Class: classHoodie, Stage: StageConstruct, Row: -1, Field: KeyClass, Source: c.source(KeyClass),
		Message: "Config conflict(key\tcurrent value\texisting value):\n" + strings.Join(conflicts, "\n"),
		Hint:    "remove these options, the table's own are used; a table's generator can't change: write a new table to change it"}
}

func (c *setup) take(key, value string) {
	c.props[key] = value
	c.from[key] = fromTable
}

// storedType is the generator that the table names; empty when it names none.
func storedType(t map[string]string) (typ Type, class string) {
	if class = t[TableClass]; class != "" {
		if name, ok := classes[class]; ok {
			return baseType(name), class
		}
		return UserProvided, class
	}
	return baseType(t[TableType]), ""
}

func (c *setup) addGenerator(conflict func(label, now, stored string)) {
	stored, class := storedType(c.Table)
	nowClass, nowType := c.props[KeyClass], c.props[KeyType]
	if stored == "" {
		return
	}
	var now Type
	switch {
	case nowClass != "":
		now = UserProvided
		if name, ok := classes[nowClass]; ok {
			now = baseType(name)
		}
		if now == SparkSQL || now == SparkSQLMerge || now == SparkSQLUUID {
			now = stored // a wrapper around the table's own
		}
	case nowType != "":
		now = baseType(nowType)
	}
	if now == GlobalDelete && c.Delete {
		return // fits every table (#7290)
	}
	if now != "" && (now != stored || now == UserProvided && class != "" && nowClass != class) {
		shown := nowClass
		if shown == "" {
			shown = nowType
		}
		existing := class
		if existing == "" {
			existing = string(stored)
		}
		conflict("KeyGenerator", shown, existing)
		return
	}
	if nowClass != "" && class == "" {
		if stored == UserProvided {
			return // the table doesn't keep the class
		}
	}
	delete(c.props, KeyClass)
	delete(c.props, KeyType)
	if class != "" {
		c.take(KeyClass, class)
	} else {
		c.take(KeyType, string(stored))
	}
}

func (c *setup) addRecordFields(conflict func(label, now, stored string)) {
	stored, has := c.Table[TableRecordFields]
	now, given := c.props[KeyRecordFields]
	given = given && strings.TrimSpace(now) != ""
	switch {
	case !has && c.version > 0 && c.version < 6:
		return // older tables need not tell
	case !has && given:
		conflict("RecordKey", now, "")
	case has && given && !slices.Equal(SplitFields(now), SplitFields(stored)):
		conflict("RecordKey", now, stored)
	case has:
		c.take(KeyRecordFields, stored)
	}
}

func (c *setup) addPartitionFields(conflict func(label, now, stored string)) {
	stored := c.Table[TablePartitionFields]
	now, given := c.props[KeyPartitionFields]
	names := func(text string) []string {
		var list []string
		for _, f := range SplitFields(text) {
			name, _, _ := strings.Cut(f, ":")
			list = append(list, name)
		}
		return list
	}
	storedType, _ := storedType(c.Table)
	unpartitioned := storedType == NonPartition || storedType == GlobalDelete
	switch {
	case given && !unpartitioned && !slices.Equal(names(now), names(stored)):
		conflict("PartitionPath", now, stored)
	case given && strings.Contains(now, ":") && !strings.Contains(stored, ":"):
		// Tables below version 8 keep no types (#8372): the writer's stand.
	case given && strings.Contains(now, ":") && !slices.Equal(SplitFields(strings.ToUpper(now)), SplitFields(strings.ToUpper(stored))):
		conflict("PartitionPath", now, stored)
	default:
		c.take(KeyPartitionFields, stored)
	}
}

// addTimes compares the time options, under whichever name each stands.
func (c *setup) addTimes(conflict func(label, now, stored string)) {
	for _, o := range timeOptions {
		stored, ok := firstIn(c.Table, timePrefix+o, oldTimePrefix+o)
		if !ok {
			continue
		}
		if now, given := firstIn(c.props, timePrefix+o, oldTimePrefix+o); given && now != stored {
			conflict(timePrefix+o, now, stored)
		}
		delete(c.props, oldTimePrefix+o)
		c.take(timePrefix+o, stored)
		if !c.release.newTimeNames() {
			c.take(oldTimePrefix+o, stored)
		}
	}
}

func firstIn(m map[string]string, keys ...string) (string, bool) {
	for _, k := range keys {
		if v, ok := m[k]; ok {
			return v, true
		}
	}
	return "", false
}

// DetectEncoding tells from stored keys how a one-field complex key of the field is written; "" without keys. It fails when
// the sample holds both forms.
func DetectEncoding(field string, stored []string) (encoding string, err error) {
	encoding, fail := detectEncoding(field, stored)
	if fail != nil {
		return "", fail
	}
	return encoding, nil
}

func detectEncoding(field string, stored []string) (string, *Error) {
	prefixed := 0
	for _, key := range stored {
		if strings.HasPrefix(key, field+":") {
			prefixed++
		}
	}
	switch {
	case len(stored) == 0:
		return "", nil
	case prefixed == len(stored):
		return FieldPrefixed, nil
	case prefixed == 0:
		return ValueOnly, nil
	}
	return "", &Error{Class: classRefused, Stage: StageConstruct, Row: -1, Field: field,
		Message: "the table holds keys of both forms, " + strconv.Itoa(prefixed) + " of " + strconv.Itoa(len(stored)) + " as " + strconv.Quote(field+":value") + ", the others as the bare value",
		Hint:    "find out which rows are twins (sluice keys --check), delete them, then set the table property " + TableEncoding}
}

// NeedsStoredKeys reports whether a writer must give a sample of stored keys ([Options.StoredKeys]) before its first write
// to a table that has completed commits: a complex generator with one key field and no recorded encoding.
func NeedsStoredKeys(table map[string]string) bool {
	t, _ := storedType(table)
	if t == "" {
		t = Infer(table[TableRecordFields], table[TablePartitionFields], Current)
	}
	if t != Complex || len(SplitFields(table[TableRecordFields])) != 1 || strings.EqualFold(table["hoodie.populate.meta.fields"], "false") {
		return false
	}
	return table[TableEncoding] == ""
}

// decideEncoding holds what the configuration says against the table's stored keys (key generation 6.3).
func (c *setup) decideEncoding(field string, prefixed bool) (bool, *Error) {
	if c.Table == nil || c.release != Current || c.props[TableEncoding] != "" {
		return prefixed, nil
	}
	found, err := detectEncoding(field, c.StoredKeys)
	if err != nil {
		return false, err
	}
	if found == "" {
		if c.HasCommits && !strings.EqualFold(c.props[KeyValidation], "false") {
			return false, c.refuse(TableEncoding, "the table has commits, but none of its keys could be read, and its properties don't say how one-field complex keys are written",
				"set the table property "+TableEncoding+" to "+FieldPrefixed+" or "+ValueOnly+"; guessing would double every row")
		}
		return prefixed, nil
	}
	if _, given := c.Properties[KeyNewEncoding]; given && (found == FieldPrefixed) != prefixed {
		return false, c.refuse(KeyNewEncoding, "the options ask for keys as "+formName(field, prefixed)+", the table's keys are written as "+formName(field, !prefixed),
			"remove "+KeyNewEncoding+", the table's form is kept")
	}
	return found == FieldPrefixed, nil
}

func formName(field string, prefixed bool) string {
	if prefixed {
		return strconv.Quote(field + ":value")
	}
	return "the bare value"
}

// TableProperties are the properties that a new table of the given version keeps, so that every later writer makes the same
// keys (key generation 12).
func (k *Keygen) TableProperties(version int) map[string]string {
	c := k.config
	p := map[string]string{}
	if len(k.keys) > 0 && k.form != formAuto {
		p[TableRecordFields] = strings.Join(k.keys, ",")
	}
	if len(k.targets) > 0 {
		names := make([]string, len(k.targets))
		for i, t := range k.targets {
			names[i] = t.field
			if k.typ == Custom && version >= 8 {
				typ := "SIMPLE"
				if t.time {
					typ = "TIMESTAMP"
				}
				names[i] += ":" + typ
			}
		}
		p[TablePartitionFields] = strings.Join(names, ",")
	}
	typ := k.typ
	if typ == SparkSQL || typ == SparkSQLMerge {
		typ = c.sqlOrigin()
	}
	if version >= 8 {
		p[TableType] = string(typ)
	} else if p[TableClass] = ClassOf(typ); p[TableClass] == "" {
		p[TableClass] = k.class
	}
	p[KeyHiveStyle] = strconv.FormatBool(k.hive)
	p[KeyURLEncode] = strconv.FormatBool(k.encode)
	if k.slashOn {
		p[KeySlashDates] = "true"
	}
	if k.times != nil {
		for _, o := range timeOptions {
			if v, ok := c.timeOption(o); ok {
				p[timePrefix+o] = v
			}
		}
	}
	if k.encoding != "" && version < 9 {
		p[TableEncoding] = k.encoding
	}
	return p
}
