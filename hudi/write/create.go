package write

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/keygen"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/storage"
)

// ErrTableExists: there is a table already.
var ErrTableExists = errors.New("a table is there already")

// Version and layout of the tables that Sluice makes: the ones that most engines read (table format 10).
const (
	tableVersion   = 6
	timelineLayout = 1
)

// Spec says what a new table is to be. Only Name and RecordKeyFields (or Keyless) must be given.
type Spec struct {
	Name     string
	Database string
	Type     config.TableType // COPY_ON_WRITE when empty

	RecordKeyFields []string
	Keyless         bool // no key fields: the writer makes keys of its own
	PartitionFields []string
	OrderingFields  []string // hoodie.table.precombine.field; a newer row has a larger value
	// KeyGenerator is a Java class or a type such as COMPLEX; empty: what Apache Hudi infers from the fields.
	KeyGenerator string
	// Schema is the Avro schema of the data columns; empty: the first commit brings one.
	Schema string
	// PayloadClass is the merge rule; empty: the default of Apache Hudi 0.15. 0.15 stores none in copy-on-write tables; a table with
	// ordering fields has it here, as 1.x takes it for one of event time otherwise (table format 6.6).
	PayloadClass string

	HiveStyle             bool // folders field=value
	BareComplexKey        bool // a complex key of one field is its value alone, as Apache Hudi 0.14.1 to 1.0.2 have it; otherwise field:value
	URLEncode             bool // values in folder names are percent-encoded
	DropPartitionColumns  bool // partition columns are not stored in data files
	NoMetaFields          bool // the five meta columns are null
	PartitionMetafileBase bool // partition markers are Parquet files: refused for now
	CDC                   bool
	CDCMode               string // DATA_BEFORE_AFTER when empty
	// Zone in which instants are written: "UTC", also when empty, or "LOCAL", which Apache Hudi takes.
	Zone string
	// Version of the table: 6, also when 0. Others are refused.
	Version int
	// Properties are further ones to store: hoodie.keygen.timebased.* and the like.
	Properties map[string]string
}

// SpecError says which option of a new table is wrong, and what to do.
type SpecError struct {
	Option string // hoodie.* key
	What   string
	Next   string
}

func (e *SpecError) Error() string { return fmt.Sprintf("%s: %s", e.Option, e.What) }

// NextStep says what a person can do.
func (e *SpecError) NextStep() string { return e.Next }

// The options of a new table, as the Spark datasource calls them.
const (
	optName       = "hoodie.table.name"
	optKey        = "hoodie.datasource.write.recordkey.field"
	optPartition  = "hoodie.datasource.write.partitionpath.field"
	optOrdering   = "hoodie.datasource.write.precombine.field"
	optKeygen     = "hoodie.datasource.write.keygenerator.class"
	optKeygenType = "hoodie.datasource.write.keygenerator.type"
	optType       = "hoodie.datasource.write.table.type"
	optPayload    = "hoodie.datasource.write.payload.class"
	optVersion    = "hoodie.write.table.version"
	optZone       = "hoodie.table.timeline.timezone"
	optSchema     = "hoodie.table.create.schema"
	timebased     = "hoodie.keygen.timebased."
	timebasedOld  = "hoodie.deltastreamer.keygen.timebased."
)

// SpecFromOptions reads a spec from options as a Spark writer gives them, names of earlier releases and of the table's own
// properties among them. Options that are no business of a new table are left alone.
func SpecFromOptions(options map[string]string) (Spec, error) {
	get := func(keys ...string) string {
		for _, key := range keys {
			if v, ok := lookup(options, key); ok {
				return strings.TrimSpace(v)
			}
		}
		return ""
	}
	flag := func(key string) bool { return strings.EqualFold(get(key), "true") }
	s := Spec{
		Name:            get(optName, "hoodie.datasource.write.table.name"),
		Database:        get("hoodie.database.name"),
		Type:            config.TableType(strings.ToUpper(get(optType, "hoodie.table.type"))),
		RecordKeyFields: keygen.SplitFields(get(optKey, "hoodie.table.recordkey.fields")),
		PartitionFields: keygen.SplitFields(get(optPartition, "hoodie.table.partition.fields")),
		OrderingFields:  keygen.SplitFields(get(optOrdering, "hoodie.table.precombine.field")),
		KeyGenerator:    get(optKeygen, "hoodie.table.keygenerator.class", optKeygenType),
		Schema:          get(optSchema),
		PayloadClass:    get("hoodie.compaction.payload.class", optPayload),
		HiveStyle:       flag("hoodie.datasource.write.hive_style_partitioning"),
		URLEncode:       flag("hoodie.datasource.write.partitionpath.urlencode"),
		BareComplexKey:  flag(keygen.KeyNewEncoding),
		CDC:             flag("hoodie.table.cdc.enabled"),
		CDCMode:         strings.ToUpper(get("hoodie.table.cdc.supplemental.logging.mode")),
		Zone:            strings.ToUpper(get(optZone)),
		Properties:      map[string]string{},

		DropPartitionColumns:  flag("hoodie.datasource.write.drop.partition.columns"),
		NoMetaFields:          strings.EqualFold(get("hoodie.populate.meta.fields"), "false"),
		PartitionMetafileBase: flag("hoodie.partition.metafile.use.base.format"),
	}
	if text := get(optVersion); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return s, &SpecError{optVersion, fmt.Sprintf("%q is no number", text), "leave it away, or give 6"}
		}
		s.Version = n
	}
	for k, v := range options {
		if strings.HasPrefix(k, timebased) || strings.HasPrefix(k, timebasedOld) {
			s.Properties[k] = v
		}
	}
	return s, nil
}

func lookup(options map[string]string, key string) (string, bool) {
	if v, ok := options[key]; ok {
		return v, true
	}
	if k, ok := config.Lookup(key); ok {
		for _, old := range k.Old {
			if v, ok := options[old]; ok {
				return v, true
			}
		}
	}
	return "", false
}

// CreateTable makes an empty table at the root of store: hoodie.properties as Apache Hudi 0.15.0 writes it for the same
// options, and, on file systems, the folders that it makes beside it (table format 10.1). The properties are put in one step,
// so a killed process leaves a table or none. It fails with ErrTableExists where a table is, with a *SpecError where the spec
// makes no sense, and with config.ErrUnsupported for what Sluice does not write.
func CreateTable(ctx context.Context, store storage.Store, spec Spec) (*config.Table, error) {
	props, err := spec.properties(store.URL())
	if err != nil {
		return nil, fmt.Errorf("create table %s: %w", store.URL(), err)
	}
	if err := clearTheGround(ctx, store); err != nil {
		return nil, fmt.Errorf("create table %s: %w", store.URL(), err)
	}
	table, err := config.Create(ctx, store, props)
	if errors.Is(err, storage.ErrExist) {
		err = ErrTableExists
	}
	if err != nil {
		return nil, fmt.Errorf("create table %s: %w", store.URL(), err)
	}
	return table, makeFolders(ctx, store)
}

// clearTheGround refuses to make a table over another one, or where data files lie, and removes a properties file that was
// cut off while it was written, when nothing else was done in its table.
func clearTheGround(ctx context.Context, store storage.Store) error {
	text, err := storage.ReadAll(ctx, store, config.File, config.MaxPropertiesSize)
	spoilt := err == nil
	switch {
	case err == nil && isWhole(text):
		return ErrTableExists
	case err != nil && !errors.Is(err, storage.ErrNotExist):
		return err
	}
	for info, err := range store.List(ctx, ".hoodie", storage.ListOptions{}) {
		if err != nil {
			return err
		}
		name := info.Name[strings.LastIndexByte(info.Name, '/')+1:]
		_, instant := timeline.ParseFileName(timelineLayout, name)
		if instant || name == "hoodie.properties.backup" || info.Dir && (name == "timeline" || name == "metadata") {
			return fmt.Errorf("%w, but hoodie.properties is missing or damaged: %s is there; put a copy of hoodie.properties back, or delete the folder when nobody needs it", ErrTableExists, storage.Join(store.URL(), info.Name))
		}
	}
	if spoilt {
		return store.Delete(ctx, config.File)
	}
	return nil
}

// isWhole reports whether a properties file is that of a table, of any release: it has a name, and where it has a checksum
// the right one.
func isWhole(text []byte) bool {
	props, err := config.ParseProperties(text)
	if err != nil {
		return false
	}
	_, named := props.Get(config.TableName)
	_, summed := props.Get(config.TableChecksum)
	return named && (!summed || props.ValidChecksum())
}

// makeFolders makes the folders that Apache Hudi makes at creation. Where folders exist only with files in them there is
// nothing to do.
func makeFolders(ctx context.Context, store storage.Store) error {
	if !store.Traits().Dirs {
		return nil
	}
	for _, folder := range []string{"archived", ".temp", ".aux/.bootstrap/.partitions", ".aux/.bootstrap/.fileids", ".schema"} {
		name := ".hoodie/" + folder + "/.folder"
		if _, err := store.Put(ctx, name, bytes.NewReader(nil), storage.PutOptions{}); err != nil {
			return err
		}
		if err := store.Delete(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// properties are what Apache Hudi 0.15.0 stores for the same options. The name comes last and the type before it: a file that
// was cut off anywhere lacks one of them or fails the checksum, and is no table.
func (s Spec) properties(table string) (*config.Properties, error) {
	if err := s.check(table); err != nil {
		return nil, err
	}
	keys, err := s.keys()
	if err != nil {
		return nil, err
	}
	p := config.NewProperties()
	yes := strconv.FormatBool
	list := func(fields []string) string { return strings.Join(fields, ",") }
	if len(s.OrderingFields) > 0 {
		p.Set("hoodie.table.precombine.field", list(s.OrderingFields))
	}
	p.Set("hoodie.table.partition.fields", keys["hoodie.table.partition.fields"])
	p.Set("hoodie.table.cdc.enabled", yes(s.CDC))
	if s.CDC {
		p.Set("hoodie.table.cdc.supplemental.logging.mode", orElse(s.CDCMode, "DATA_BEFORE_AFTER"))
	}
	p.Set("hoodie.archivelog.folder", "archived")
	p.Set("hoodie.timeline.layout.version", strconv.Itoa(timelineLayout))
	p.Set("hoodie.datasource.write.drop.partition.columns", yes(s.DropPartitionColumns))
	p.Set(optZone, orElse(s.Zone, "UTC"))
	if len(s.RecordKeyFields) > 0 {
		p.Set("hoodie.table.recordkey.fields", list(s.RecordKeyFields))
	}
	p.Set("hoodie.partition.metafile.use.base.format", yes(s.PartitionMetafileBase))
	p.Set("hoodie.datasource.write.hive_style_partitioning", yes(s.HiveStyle))
	p.Set("hoodie.populate.meta.fields", yes(!s.NoMetaFields))
	p.Set("hoodie.table.keygenerator.class", keys["hoodie.table.keygenerator.class"])
	p.Set("hoodie.table.base.file.format", "PARQUET")
	p.Set("hoodie.datasource.write.partitionpath.urlencode", yes(s.URLEncode))
	if s.Type == config.MergeOnRead {
		p.Set("hoodie.compaction.payload.class", orElse(s.PayloadClass, "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"))
		p.Set("hoodie.compaction.record.merger.strategy", "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5")
	}
	if s.Type != config.MergeOnRead && (s.PayloadClass != "" || len(s.OrderingFields) > 0) {
		// 0.15.0 leaves it to the options of each write; 1.x takes no notice of those, and merges by the ordering field where
		// the table names no class (table format 6.6).
		p.Set("hoodie.compaction.payload.class", orElse(s.PayloadClass, "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"))
	}
	if s.Schema != "" {
		p.Set(optSchema, s.Schema)
	}
	for _, more := range []map[string]string{keys, s.Properties} {
		for _, key := range slices.Sorted(maps.Keys(more)) {
			if _, ok := p.Get(key); !ok {
				p.Set(key, more[key])
			}
		}
	}
	p.Set(config.TableVersion, strconv.Itoa(tableVersion))
	p.Set(config.DatabaseName, s.Database)
	p.Set(config.TableChecksum, strconv.FormatUint(uint64(checksum(s.Database, s.Name)), 10))
	p.Set("hoodie.table.type", orElse(string(s.Type), string(config.CopyOnWrite)))
	p.Set(config.TableName, s.Name)
	return p, nil
}

func checksum(database, name string) uint32 {
	p := config.NewProperties()
	p.Set(config.DatabaseName, database)
	p.Set(config.TableName, name)
	return p.Checksum()
}

func orElse(v, absent string) string {
	if v == "" {
		return absent
	}
	return v
}

// check refuses what makes no table.
func (s Spec) check(table string) error {
	if s.Version != 0 && s.Version != tableVersion {
		return &config.UnsupportedError{Table: table, Property: optVersion, Value: strconv.Itoa(s.Version), Hint: "Sluice makes tables of version 6, which Apache Hudi 0.14 to 1.2 read and write; leave the option away"}
	}
	if s.PartitionMetafileBase {
		return &config.UnsupportedError{Table: table, Property: "hoodie.partition.metafile.use.base.format", Value: "true", Hint: "Sluice writes plain partition markers; leave the option away"}
	}
	if s.Zone != "" && s.Zone != "UTC" && s.Zone != "LOCAL" {
		return &SpecError{optZone, fmt.Sprintf("%q: the zones are UTC and LOCAL", s.Zone), "leave it away for UTC"}
	}
	if s.Type != "" && s.Type != config.CopyOnWrite && s.Type != config.MergeOnRead {
		return &SpecError{optType, fmt.Sprintf("%q: the types are COPY_ON_WRITE and MERGE_ON_READ", s.Type), "leave it away for COPY_ON_WRITE"}
	}
	if err := checkName(s.Name); err != nil {
		return err
	}
	if len(s.RecordKeyFields) == 0 && !s.Keyless {
		return &SpecError{optKey, "is missing: without it no row can be found again for an update or a delete",
			"name the column, or the columns with commas between them, that identify a row: --hoodie-conf " + optKey + "=id"}
	}
	return s.checkColumns()
}

func checkName(name string) error {
	next := "give the table a name: --hoodie-conf " + optName + "=orders"
	switch {
	case name == "":
		return &SpecError{optName, "is missing", next}
	case len(name) > 255:
		return &SpecError{optName, fmt.Sprintf("has %d bytes, more than 255", len(name)), next}
	case strings.TrimSpace(name) != name, strings.ContainsAny(name, `/\:*?"<>|`), strings.ContainsFunc(name, unicode.IsControl):
		return &SpecError{optName, fmt.Sprintf(`%q can't be a table's name in every catalog: no / \ : * ? " < > |, control characters, or blanks around it`, name), next}
	}
	return nil
}

// checkColumns holds the fields against the schema, where one is given, and against each other.
func (s Spec) checkColumns() error {
	var columns []string
	if s.Schema != "" {
		t, err := schema.Parse([]byte(s.Schema))
		if err != nil {
			return &SpecError{optSchema, err.Error(), "give the Avro schema of the columns as JSON"}
		}
		if t.Kind != schema.Record {
			return &SpecError{optSchema, "is no record", "give the Avro schema of the columns as JSON"}
		}
		for _, f := range t.Fields {
			if slices.Contains(columns, f.Name) {
				return &SpecError{optSchema, fmt.Sprintf("has the column %q twice", f.Name), "rename one of them"}
			}
			columns = append(columns, f.Name)
		}
	}
	for _, l := range []struct {
		option string
		fields []string
	}{{optKey, s.RecordKeyFields}, {optPartition, s.PartitionFields}, {optOrdering, s.OrderingFields}} {
		for i, field := range l.fields {
			name, _, _ := strings.Cut(field, ":")
			if slices.Contains(l.fields[:i], field) {
				return &SpecError{l.option, fmt.Sprintf("names %q twice", field), "name each column once"}
			}
			top, _, _ := strings.Cut(name, ".")
			if len(columns) > 0 && !slices.Contains(columns, name) && !slices.Contains(columns, top) {
				return &SpecError{l.option, fmt.Sprintf("names the column %q, which the schema lacks: it has %s", name, strings.Join(columns, ", ")), "name a column of the table"}
			}
		}
	}
	return nil
}

// keys asks the key generator what a table must store, so that every later writer makes the same keys (key generation 12).
func (s Spec) keys() (map[string]string, error) {
	options := map[string]string{
		optKey:       strings.Join(s.RecordKeyFields, ","),
		optPartition: strings.Join(s.PartitionFields, ","),
		"hoodie.datasource.write.hive_style_partitioning": strconv.FormatBool(s.HiveStyle),
		"hoodie.datasource.write.partitionpath.urlencode": strconv.FormatBool(s.URLEncode),
		"hoodie.datasource.write.precombine.field":        strings.Join(s.OrderingFields, ","),
		"hoodie.datasource.write.drop.partition.columns":  strconv.FormatBool(s.DropPartitionColumns),
	}
	switch {
	case strings.Contains(s.KeyGenerator, "."):
		options[optKeygen] = s.KeyGenerator
	case s.KeyGenerator != "":
		class := keygen.ClassOf(keygen.Type(strings.ToUpper(s.KeyGenerator)))
		if class == "" {
			return nil, &SpecError{optKeygen, fmt.Sprintf("no key generator %q", s.KeyGenerator), "give a Java class such as org.apache.hudi.keygen.SimpleKeyGenerator"}
		}
		options[optKeygen] = class
	}
	maps.Copy(options, s.Properties)
	for _, key := range []string{optKey, optPartition, optOrdering} {
		if options[key] == "" {
			delete(options, key)
		}
	}
	if s.BareComplexKey {
		options[keygen.KeyNewEncoding], options[keygen.KeyWriteVersion] = "true", strconv.Itoa(tableVersion)
	}
	g, err := keygen.Open(keygen.Options{Properties: options, Instant: "0", Task: "0"}) // automatic keys are made of the two
	if err != nil {
		return nil, err
	}
	stored, ok := g.(interface {
		TableProperties(version int) map[string]string
	})
	if !ok {
		return map[string]string{"hoodie.table.keygenerator.class": s.KeyGenerator}, nil
	}
	return stored.TableProperties(tableVersion), nil
}

// Notes are what a person should know who lets others write to the new table.
func (s Spec) Notes() []string {
	simple := len(s.RecordKeyFields) == 1 && len(s.PartitionFields) < 2 && !strings.Contains(strings.ToUpper(s.KeyGenerator), "COMPLEX")
	if simple || len(s.RecordKeyFields) != 1 || s.BareComplexKey || len(s.PartitionFields) == 0 || s.KeyGenerator != "" && !strings.Contains(strings.ToUpper(s.KeyGenerator), "COMPLEX") {
		return nil
	}
	return []string{"record keys of this table are " + s.RecordKeyFields[0] + ":<value>; Apache Hudi 0.14.1, 0.15.0 and 1.0.0 to 1.0.2 would write the value alone and so make second rows. To share the table with them, make it with " +
		keygen.KeyNewEncoding + "=true"}
}
