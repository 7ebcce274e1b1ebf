package streamer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/keygen"
	"github.com/sluicelake/sluice/hudi/operation"
	"github.com/sluicelake/sluice/hudi/write"
	"github.com/sluicelake/sluice/storage"
)

// The write options that have flags of their own, and others that the streamer looks at.
const (
	optKey       = "hoodie.datasource.write.recordkey.field"
	optPartition = "hoodie.datasource.write.partitionpath.field"
	optKeygen    = "hoodie.datasource.write.keygenerator.class"
	optOrdering  = "hoodie.datasource.write.precombine.field"
	optPayload   = "hoodie.datasource.write.payload.class"
	optOperation = "hoodie.datasource.write.operation"
	optType      = "hoodie.datasource.write.table.type"
	optName      = "hoodie.table.name"
	optKeepTwins = "hoodie.merge.allow.duplicate.on.inserts"
	optLease     = "hoodie.write.lock.storage.validity.timeout.secs"
	optDropDupes = "hoodie.datasource.write.insert.drop.duplicates"
	optToDelete  = "hoodie.datasource.write.partitions.to.delete"

	optNullMissing = "hoodie.write.set.null.for.missing.columns"
	optReconcile   = "hoodie.datasource.write.reconcile.schema"
	optAllowDrop   = "hoodie.datasource.write.schema.allow.auto.evolution.column.drop"

	optCombineUpsert = "hoodie.combine.before.upsert"
	optCombineInsert = "hoodie.combine.before.insert"
	optInlineCompact = "hoodie.compact.inline"
)

// defaultPayload is what the original of 0.x takes.
const defaultPayload = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"

// defaultOrdering is the ordering field that the original of 0.x takes where none is named, whether the rows have it or not.
const defaultOrdering = "ts"

// configf is an error of options.
func configf(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrConfig, fmt.Errorf(format, args...))
}

// kindOf reads --op, in upper case alone as the original has it.
func kindOf(op string) (operation.Kind, error) {
	kind, err := operation.ParseKind(op)
	if err != nil || strings.ToUpper(op) != op {
		return "", configf("No enum constant org.apache.hudi.common.model.WriteOperationType.%s; the operations are UPSERT, INSERT, BULK_INSERT, DELETE, INSERT_OVERWRITE, INSERT_OVERWRITE_TABLE, DELETE_PARTITION", op)
	}
	return kind, nil
}

func tableType(text string) (config.TableType, error) {
	t := config.TableType(text)
	if t != config.CopyOnWrite && t != config.MergeOnRead {
		return "", configf("No enum constant org.apache.hudi.common.model.HoodieTableType.%s; the types are COPY_ON_WRITE and MERGE_ON_READ", text)
	}
	return t, nil
}

// flagsAndProperties joins the dedicated flags with the properties of the same meaning. The original takes some from here and
// some from there where they differ; that is an error (tools C.2).
func (c *Config) flagsAndProperties(props Properties) error {
	for _, f := range []struct {
		flag  string
		value *string
		key   string
		same  func(a, b string) bool
	}{
		{"--target-table", &c.TargetTable, optName, sameText},
		{"--table-type", &c.TableType, optType, strings.EqualFold},
		{"--source-ordering-field", &c.OrderingField, optOrdering, sameFields},
		{"--payload-class", &c.PayloadClass, optPayload, sameClass},
		{"--op", &c.Op, optOperation, strings.EqualFold},
	} {
		v := props.text(f.key)
		switch {
		case v == "":
		case *f.value == "" && f.flag != "--op":
			*f.value = v
		case !f.same(orText(*f.value, "UPSERT"), v):
			return configf("%s says %q and the property %s says %q: say the same in both, or only one of them", f.flag, orText(*f.value, "UPSERT"), f.key, v)
		}
	}
	if c.OrderingField == "" && c.MergeMode == "" && c.Op != "DELETE" { // which is ours, and so are merge modes
		c.OrderingField = defaultOrdering
	}
	return c.mergeMode()
}

func orText(v, absent string) string {
	if v == "" {
		return absent
	}
	return v
}

func sameText(a, b string) bool   { return a == b }
func sameFields(a, b string) bool { return slices.Equal(keygen.SplitFields(a), keygen.SplitFields(b)) }

// payloadClass gives the present name of a payload: classes moved from package to package, and short names are enough.
func payloadClass(class string) string {
	name := lastPart(strings.TrimSpace(class))
	const model = "org.apache.hudi.common.model."
	switch name {
	case "OverwriteWithLatestAvroPayload", "DefaultHoodieRecordPayload", "EventTimeAvroPayload", "FirstValueAvroPayload", "OverwriteNonDefaultsWithLatestAvroPayload",
		"PartialUpdateAvroPayload", "EmptyHoodieRecordPayload", "AWSDmsAvroPayload":
		return model + name
	case "MySqlDebeziumAvroPayload", "PostgresDebeziumAvroPayload":
		return model + "debezium." + name
	}
	return class
}

// sameClass compares class names by their last part: payloads moved from package to package.
func sameClass(a, b string) bool { return lastPart(a) == lastPart(b) }

func lastPart(class string) string { return class[strings.LastIndexByte(class, '.')+1:] }

// mergeMode turns the merge modes of 1.x into the payloads that mean the same in the tables that we write (tools F.3).
func (c *Config) mergeMode() error {
	var payload string
	switch c.MergeMode {
	case "":
		return nil
	case "EVENT_TIME_ORDERING":
		payload = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
	case "COMMIT_TIME_ORDERING":
		payload = defaultPayload
	default:
		return &config.UnsupportedError{Table: c.TargetBasePath, Property: "--record-merge-mode", Value: c.MergeMode, Hint: "there are EVENT_TIME_ORDERING and COMMIT_TIME_ORDERING; classes of your own can't run here"}
	}
	if c.PayloadClass != "" && !sameClass(c.PayloadClass, payload) {
		return configf("--record-merge-mode %s contradicts --payload-class %s", c.MergeMode, c.PayloadClass)
	}
	c.PayloadClass = payload
	return nil
}

// checkForced refuses write options that the streamer sets itself (tools C.3).
func (c *Config) checkForced(props Properties, kind operation.Kind, table config.TableType) error {
	if c.FilterDupes && kind == operation.Upsert {
		return configf("'--filter-dupes' needs to be disabled when '--op' is 'UPSERT' to ensure updates are not missed.")
	}
	inline := table == config.MergeOnRead && !c.Continuous && !c.DisableCompaction
	for key, want := range map[string]bool{optCombineUpsert: true, optCombineInsert: c.FilterDupes, optInlineCompact: inline} {
		if v := props.text(key); v != "" && !strings.EqualFold(v, strconv.FormatBool(want)) {
			return configf("%s should be set to %t", key, want)
		}
	}
	return nil
}

// checkTable holds the options against a table that is there.
func (c *Config) checkTable(props Properties, cfg *config.Table, table config.TableType) error {
	if cfg.Type != table {
		return configf("Hoodie table is of type %s but passed in CLI argument is %s", cfg.Type, table)
	}
	var lines strings.Builder
	differ := func(what, given, stored string) { fmt.Fprintf(&lines, "\n%s:\t%s\t%s", what, given, stored) }
	if given := props.text(optKey); given != "" && !slices.Equal(keygen.SplitFields(given), cfg.RecordKeyFields) {
		differ("RecordKey", given, strings.Join(cfg.RecordKeyFields, ","))
	}
	stored := cfg.KeyGenerator
	if class := keygen.ClassOf(keygen.Type(stored)); class != "" {
		stored = class
	}
	if given := props.text(optKeygen); given != "" && stored != "" && !sameClass(keygen.SparkClass(given), keygen.SparkClass(stored)) {
		differ("KeyGenerator", given, stored)
	}
	if given := props.text(optPartition); given != "" && !slices.Equal(bare(keygen.SplitFields(given)), bare(cfg.PartitionFields)) {
		differ("PartitionPath", given, strings.Join(cfg.PartitionFields, ","))
	}
	if lines.Len() > 0 {
		return configf("Config conflict(key\tcurrent value\texisting value):%s", lines.String())
	}
	return nil
}

// bare leaves out the types behind partition fields ("ts:TIMESTAMP").
func bare(fields []string) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i], _, _ = strings.Cut(f, ":")
	}
	return out
}

// openTable loads the table, or makes it where there is none. A folder with something else in it is not made a table.
func (c *Config) openTable(ctx context.Context, store storage.Store, props Properties, table config.TableType) (*config.Table, error) {
	cfg, err := config.Load(ctx, store)
	if err == nil {
		return cfg, errors.Join(c.checkTable(props, cfg, table), write.CheckWritable(cfg))
	}
	if !errors.Is(err, config.ErrNotTable) {
		return nil, err
	}
	for info, err := range store.List(ctx, "", storage.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		if info.Name != ".hoodie" {
			return nil, configf("Hoodie table not found in path %s/.hoodie: the folder is not empty (%s is in it), so no table is made there", store.URL(), info.Name)
		}
	}
	spec, err := write.SpecFromOptions(c.writeConf(props))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	spec.Name, spec.Type = c.TargetTable, table
	spec.Keyless = len(spec.RecordKeyFields) == 0
	cfg, err = write.CreateTable(ctx, store, spec)
	var wrong *write.SpecError
	if errors.As(err, &wrong) {
		err = fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return cfg, err
}

// writeConf are the properties with what the flags say.
func (c *Config) writeConf(props Properties) map[string]string {
	conf := make(map[string]string, len(props)+8)
	for k, v := range props {
		conf[k] = v
	}
	conf[optName], conf[optType] = c.TargetTable, c.TableType
	conf[optPayload] = payloadClass(orText(c.PayloadClass, defaultPayload))
	if c.OrderingField != "" {
		conf[optOrdering] = c.OrderingField
	}
	if c.FilterDupes {
		conf[optDropDupes] = "true"
	}
	if _, ok := props.Get(optKeepTwins); !ok {
		conf[optKeepTwins] = "false" // the streamer of 0.14.0 merges an insert with the stored row of its key where they meet (tools F.1)
	}
	if _, ok := props.Get(optLease); !ok {
		conf[optLease] = "45" // shorter than a writer waits for the lock: a streamer that was killed keeps its successor waiting, not out
	}
	delete(conf, optOperation)
	delete(conf, optToDelete) // DELETE_PARTITION takes the partitions of the rows
	return conf
}
