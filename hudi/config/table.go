// Package config reads and updates a table's own settings, hoodie.properties, and holds the one registry of every hoodie.*
// key that Sluice knows.
//
// What Sluice can't be right about is refused here, before anything else is read: see [ErrUnsupported].
package config

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicelake/sluice/storage"
)

// TableType is how a table takes updates.
type TableType string

// The table types.
const (
	CopyOnWrite TableType = "COPY_ON_WRITE"
	MergeOnRead TableType = "MERGE_ON_READ"
)

// Names of the table's own properties that the code asks for by name.
const (
	TableName     = "hoodie.table.name"
	DatabaseName  = "hoodie.database.name"
	TableVersion  = "hoodie.table.version"
	TableChecksum = "hoodie.table.checksum"

	tableType           = "hoodie.table.type"
	layoutVersion       = "hoodie.timeline.layout.version"
	tableFormat         = "hoodie.table.format"
	initialVersion      = "hoodie.table.initial.version"
	recordKeyFields     = "hoodie.table.recordkey.fields"
	partitionFields     = "hoodie.table.partition.fields"
	orderingFields      = "hoodie.table.ordering.fields"
	keyGeneratorClass   = "hoodie.table.keygenerator.class"
	keyGeneratorType    = "hoodie.table.keygenerator.type"
	baseFileFormat      = "hoodie.table.base.file.format"
	logFileFormat       = "hoodie.table.log.file.format"
	manyFormats         = "hoodie.table.multiple.base.file.formats.enable"
	createSchema        = "hoodie.table.create.schema"
	timelineZone        = "hoodie.table.timeline.timezone"
	populateMetaFields  = "hoodie.populate.meta.fields"
	dropPartitionFields = "hoodie.datasource.write.drop.partition.columns"
	hiveStyle           = "hoodie.datasource.write.hive_style_partitioning"
	urlEncode           = "hoodie.datasource.write.partitionpath.urlencode"
	slashDates          = "hoodie.datasource.write.slash.separated.date.partitioning"
	metafileBaseFormat  = "hoodie.partition.metafile.use.base.format"
	payloadClass        = "hoodie.compaction.payload.class"
	legacyPayload       = "hoodie.table.legacy.payload.class"
	mergeMode           = "hoodie.record.merge.mode"
	mergeStrategy       = "hoodie.record.merge.strategy.id"
	partialUpdateMode   = "hoodie.table.partial.update.mode"
	mergePropertyPrefix = "hoodie.record.merge.property."
	cdcEnabled          = "hoodie.table.cdc.enabled"
	cdcMode             = "hoodie.table.cdc.supplemental.logging.mode"
	metadataPartitions  = "hoodie.table.metadata.partitions"
	metadataInflight    = "hoodie.table.metadata.partitions.inflight"
	timelinePath        = "hoodie.timeline.path"
	historyPath         = "hoodie.timeline.history.path"
	archiveFolder       = "hoodie.archivelog.folder"
	bootstrapBasePath   = "hoodie.bootstrap.base.path"
	indexDefsPath       = "hoodie.table.index.defs.path"
)

// Table is what hoodie.properties says, with old names resolved and defaults filled in (table format 1.4).
type Table struct {
	Props *Properties // the file as it stands, unknown keys among them
	Path  string      // URL of the base path, for messages

	Name, Database string
	Type           TableType
	Version        int // 1 to 6, 8, 9
	InitialVersion int // version at creation; 0 when the file does not say
	Layout         int // timeline layout: 1 up to version 6, 2 from version 8

	RecordKeyFields []string // empty: automatic keys, _hoodie_record_key is authoritative
	// PartitionFields are bare names. PartitionTypes stands beside it when the table stores types for a custom key generator
	// ("at:timestamp"): one upper-case type per field, "" where one has none. It is nil when no field has one, which means
	// unknown, not "no timestamps".
	PartitionFields []string
	PartitionTypes  []string
	OrderingFields  []string // precombine field of versions up to 8
	KeyGenerator    string   // Java class, or a type such as SIMPLE; empty when the table names none
	BaseFormat      string   // PARQUET, ORC or HFILE
	MultipleFormats bool     // look at each base file's extension
	LogFormat       string   // HOODIE_LOG
	CreateSchema    string   // Avro JSON of the data columns when the table was made; may be empty
	TimelineZone    string   // LOCAL or UTC

	PopulateMetaFields    bool
	DropPartitionColumns  bool
	HiveStyle             bool
	URLEncode             bool
	SlashDates            bool
	PartitionMetafileBase bool // partition markers are Parquet or ORC files

	// PayloadClass is the stored class. For versions up to 6 without one it is the default of Hudi 0.x,
	// OverwriteWithLatestAvroPayload; PayloadStored tells the two apart. From version 8 an empty class means: see MergeMode.
	PayloadClass      string
	PayloadStored     bool
	LegacyPayload     string            // class that the upgrade to version 9 put aside
	MergeMode         string            // EVENT_TIME_ORDERING, COMMIT_TIME_ORDERING, CUSTOM; empty when not stored
	MergeStrategy     string            // UUID; versions up to 6 default to eeb8d96f-...
	PartialUpdateMode string            // IGNORE_DEFAULTS, FILL_UNAVAILABLE; empty when not stored
	RecordMergeProps  map[string]string // "hoodie.payload.delete.field" and the like, without the property prefix

	CDCEnabled bool
	CDCMode    string // DATA_BEFORE_AFTER, DATA_BEFORE, OP_KEY_ONLY

	MetadataPartitions []string // partitions of the metadata table that are ready for reading
	MetadataInflight   []string // partitions being built: not to be read
	IndexDefsPath      string   // below the base path; empty when the table names none

	// Paths below the base path. TimelinePath holds the active timeline, HistoryPath the archive of the table's layout;
	// ArchiveFolder is that of layout 1, which an upgraded table may still have.
	TimelinePath, HistoryPath, ArchiveFolder string

	// BootstrapBasePath names a folder outside of the table where the rows of metadata-only bootstrapped file groups still
	// lie. Package filegroup refuses such groups; those that were bootstrapped whole, or rewritten since, are like any other.
	BootstrapBasePath string
}

// IsPartitioned reports whether rows lie in partition folders.
func (t *Table) IsPartitioned() bool { return len(t.PartitionFields) > 0 }

const (
	defaultPayload  = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
	defaultStrategy = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
	metaFolder      = ".hoodie"
)

// Parse understands the properties of the table at path (a name for messages). It refuses with an [*UnsupportedError] what
// Sluice does not know, and fails with ErrInvalid where a required key is missing or a value makes no sense.
func Parse(props *Properties, path string) (*Table, error) {
	r := reader{props: props, path: path}
	t := &Table{Props: props, Path: path}
	r.identity(t)
	r.columns(t)
	r.merging(t)
	r.places(t)
	if r.err != nil {
		return nil, r.err
	}
	return t, nil
}

// reader keeps the first error, so that the fields above read as a list.
type reader struct {
	props *Properties
	path  string
	err   error
}

func (r *reader) identity(t *Table) {
	t.Name, t.Database = r.text(TableName), r.text(DatabaseName)
	if t.Name == "" {
		r.invalid(TableName, "is missing: if a file hoodie.properties.backup lies beside it, that one may be whole")
	}
	t.Version = r.version()
	t.Type = TableType(r.text(tableType))
	switch t.Type {
	case CopyOnWrite, MergeOnRead:
	case "":
		r.invalid(tableType, "is missing: if a file hoodie.properties.backup lies beside it, that one may be whole")
	default:
		r.unsupported(tableType, string(t.Type), "the types are COPY_ON_WRITE and MERGE_ON_READ")
	}
	t.InitialVersion = r.number(initialVersion, 0)
	want := 1
	if t.Version >= 8 {
		want = 2
	}
	if t.Layout = r.number(layoutVersion, want); t.Layout != want {
		r.unsupported(layoutVersion, strconv.Itoa(t.Layout), fmt.Sprintf("a table of version %d has timeline layout %d; open it once with the Apache Hudi release that wrote it", t.Version, want))
	}
	if f := r.text(tableFormat); f != "" && !strings.EqualFold(f, "native") {
		r.unsupported(tableFormat, f, "only native Hudi tables can be read; use the other format's own tools")
	}
	t.BootstrapBasePath = r.text(bootstrapBasePath)
}

// version refuses everything but 1 to 6, 8 and 9. Version 7 was a stepping stone of an unreleased 0.16, no table of it was
// ever seen; 10 is a development line with other log files (table format 0, 12).
func (r *reader) version() int {
	stored := r.text(TableVersion)
	var hint string
	switch v, err := strconv.Atoi(stored); {
	case stored == "":
		hint = "without a version the format can't be known: releases before 0.6 wrote none, 1.2 takes it for the newest; open the table once with Apache Hudi 0.14 or 0.15, which upgrades it"
	case err != nil:
		hint = "not a number; this release knows the versions 1 to 6, 8 and 9"
	case v == 0:
		hint = "tables of releases before 0.6 need an upgrade first: open the table once with Apache Hudi 0.14 or 0.15"
	case v == 7:
		hint = "version 7 is a stepping stone that no release of Apache Hudi leaves behind; finish the upgrade to 8 with Apache Hudi 1.x"
	case v < 0 || v > 9:
		hint = "this release knows the versions 1 to 6, 8 and 9; a newer Sluice may know more"
	default:
		return v
	}
	r.unsupported(TableVersion, stored, hint)
	return 0
}

func (r *reader) columns(t *Table) {
	t.RecordKeyFields = r.list(recordKeyFields)
	t.PartitionFields = r.list(partitionFields)
	types, typed := make([]string, len(t.PartitionFields)), false
	for i, f := range t.PartitionFields {
		if name, kind, ok := strings.Cut(f, ":"); ok {
			t.PartitionFields[i], types[i], typed = strings.TrimSpace(name), strings.ToUpper(strings.TrimSpace(kind)), true
		}
	}
	if typed {
		t.PartitionTypes = types
	}
	t.OrderingFields = r.list(orderingFields)
	if t.KeyGenerator = r.text(keyGeneratorClass); t.KeyGenerator == "" {
		t.KeyGenerator = r.text(keyGeneratorType)
	}
	t.BaseFormat = r.oneOf(baseFileFormat, "PARQUET", "ORC", "HFILE")
	t.LogFormat = r.oneOf(logFileFormat, "HOODIE_LOG")
	t.MultipleFormats = r.flag(manyFormats, false)
	t.CreateSchema = r.text(createSchema)
	t.TimelineZone = r.oneOf(timelineZone, "LOCAL", "UTC")
	t.PopulateMetaFields = r.flag(populateMetaFields, true)
	t.DropPartitionColumns = r.flag(dropPartitionFields, false)
	t.HiveStyle = r.flag(hiveStyle, false)
	t.URLEncode = r.flag(urlEncode, false)
	t.SlashDates = r.flag(slashDates, false)
	t.PartitionMetafileBase = r.flag(metafileBaseFormat, false)
}

func (r *reader) merging(t *Table) {
	t.PayloadClass, t.LegacyPayload = r.text(payloadClass), r.text(legacyPayload)
	t.PayloadStored = t.PayloadClass != ""
	t.MergeMode = strings.ToUpper(r.text(mergeMode))
	t.MergeStrategy = r.text(mergeStrategy)
	if t.Version < 8 {
		if !t.PayloadStored {
			t.PayloadClass = defaultPayload
		}
		if t.MergeStrategy == "" {
			t.MergeStrategy = defaultStrategy
		}
	}
	switch t.MergeMode {
	case "", "EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING", "CUSTOM":
	default:
		r.unsupported(mergeMode, t.MergeMode, "the modes are EVENT_TIME_ORDERING, COMMIT_TIME_ORDERING and CUSTOM")
	}
	t.PartialUpdateMode = strings.ToUpper(r.text(partialUpdateMode))
	t.RecordMergeProps = map[string]string{}
	for _, k := range r.props.keys {
		if name, ok := strings.CutPrefix(k, mergePropertyPrefix); ok {
			t.RecordMergeProps[name] = r.props.values[k]
		}
	}
	t.CDCEnabled = r.flag(cdcEnabled, false)
	t.CDCMode = "DATA_BEFORE_AFTER"
	if mode := r.text(cdcMode); mode != "" {
		t.CDCMode = cdcModeName(mode)
	}
}

// cdcModeName brings the spelling of 0.12 (op_key, cdc_data_before, cdc_data_before_after) to today's.
func cdcModeName(mode string) string {
	mode = strings.TrimPrefix(strings.ToUpper(mode), "CDC_")
	if mode == "OP_KEY" {
		return "OP_KEY_ONLY"
	}
	return mode
}

func (r *reader) places(t *Table) {
	t.MetadataPartitions, t.MetadataInflight = r.list(metadataPartitions), r.list(metadataInflight)
	t.IndexDefsPath = r.indexDefs()
	t.ArchiveFolder = r.below(archiveFolder, metaFolder, "archived")
	if t.Layout == 2 {
		t.TimelinePath = r.below(timelinePath, metaFolder, "timeline")
		t.HistoryPath = r.below(historyPath, t.TimelinePath, "history")
		return
	}
	t.TimelinePath, t.HistoryPath = metaFolder, t.ArchiveFolder
}

// text is the value of a key by its present name, or by an old one, without blanks around it.
func (r *reader) text(key string) string {
	v, _ := LookupValue(r.props, key)
	return strings.TrimSpace(v)
}

// LookupValue is the value of a key in a table's properties by its present name or else by one of its old names.
func LookupValue(props *Properties, key string) (string, bool) {
	if v, ok := props.Get(key); ok {
		return v, true
	}
	k, ok := Lookup(key)
	if !ok {
		return "", false
	}
	for _, old := range k.Old {
		if v, ok := props.Get(old); ok {
			return v, true
		}
	}
	return "", false
}

func (r *reader) list(key string) []string {
	var out []string
	for item := range strings.SplitSeq(r.text(key), ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

// flag is true for "true" in any case and false for everything else, as in Java.
func (r *reader) flag(key string, absent bool) bool {
	v, ok := LookupValue(r.props, key)
	if !ok {
		return absent
	}
	return strings.EqualFold(v, "true")
}

func (r *reader) number(key string, absent int) int {
	v := r.text(key)
	if v == "" {
		return absent
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		r.invalid(key, fmt.Sprintf("is no number: %q", v))
	}
	return n
}

// oneOf takes the first value as the default.
func (r *reader) oneOf(key string, values ...string) string {
	v := strings.ToUpper(r.text(key))
	if v == "" {
		return values[0]
	}
	if !slices.Contains(values, v) {
		r.unsupported(key, v, "known values are "+strings.Join(values, ", "))
	}
	return v
}

// indexDefs is relative in tables of 1.x; of an absolute path only what lies inside .hoodie counts.
func (r *reader) indexDefs() string {
	v := r.text(indexDefsPath)
	if i := strings.LastIndex(v, "/"+metaFolder+"/"); i >= 0 {
		v = v[i+1:]
	}
	if v == "" || storage.CheckName(v) != nil {
		return ""
	}
	return v
}

// below is a folder or file that the table names, relative to parent, and checked: it must stay inside the table.
func (r *reader) below(key, parent, absent string) string {
	v := strings.Trim(r.text(key), "/")
	if v == "" {
		if v = absent; v == "" {
			return ""
		}
	}
	name := path.Join(parent, v)
	if err := storage.CheckName(storage.Join(parent, v)); err != nil {
		r.invalid(key, err.Error())
	}
	return name
}

func (r *reader) unsupported(key, value, hint string) {
	if r.err == nil {
		r.err = &UnsupportedError{Table: r.path, Property: key, Value: value, Hint: hint}
	}
}

func (r *reader) invalid(key, what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w of table %s: %s %s", ErrInvalid, r.path, key, what)
	}
}
