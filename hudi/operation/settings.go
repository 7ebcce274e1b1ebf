package operation

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/index"
	"github.com/sluicelake/sluice/hudi/schema"
)

// The options that operations look at, beside those of the packages below.
const (
	optCombineUpsert  = "hoodie.combine.before.upsert"
	optCombineInsert  = "hoodie.combine.before.insert"
	optCombineDelete  = "hoodie.combine.before.delete"
	optDropDuplicates = "hoodie.datasource.write.insert.drop.duplicates"
	optDupPolicy      = "hoodie.datasource.insert.dup.policy"
	optKeepTwins      = "hoodie.merge.allow.duplicate.on.inserts"
	optOrdering       = "hoodie.datasource.write.precombine.field"
	optPayload        = "hoodie.datasource.write.payload.class"
	optPayloadTable   = "hoodie.compaction.payload.class"
	optPartitions     = "hoodie.datasource.write.partitions.to.delete"
	optMetaPrefix     = "hoodie.datasource.write.commitmeta.key.prefix"
	optSortMode       = "hoodie.bulkinsert.sort.mode"
	optMaxFile        = "hoodie.parquet.max.file.size"
	optSmallFile      = "hoodie.parquet.small.file.limit"
	optSplitSize      = "hoodie.copyonwrite.insert.split.size"
	optAutoSplit      = "hoodie.copyonwrite.insert.auto.split"
	optRecordSize     = "hoodie.copyonwrite.record.size.estimate"
	optSizeThreshold  = "hoodie.record.size.estimation.threshold"
	optSmallGroups    = "hoodie.merge.small.file.group.candidates.limit"
	optSchema         = "hoodie.write.schema"
	optPayloadOrder   = "hoodie.payload.ordering.field"
	optChangelog      = "hoodie.allow.operation.metadata.field"
	optMergers        = "hoodie.write.record.merge.custom.implementation.classes"
	optMoveBloom      = "hoodie.bloom.index.update.partition.path"
	optMoveSimple     = "hoodie.simple.index.update.partition.path"
)

// settings are the options of one write, read and checked.
type settings struct {
	Options
	kind  Kind
	props *config.Properties // Conf

	combine    bool
	duplicates dupPolicy
	keepTwins  bool // inserts that are packed into a file don't meet the rows of their keys there
	index      index.Options
	move       bool // a row found in another partition moves to the one of its own
	ordering   []string
	orderGiven bool
	payload    string
	mergeProps map[string]string
	sort       sortMode
	sizes      sizes
	writer     basefile.WriterOptions
	reconcile  schema.ReconcileOptions
	given      *schema.Type // takes the place of what the rows say of themselves
	partitions []string     // to delete
}

// dupPolicy says what becomes of rows to insert whose key is stored.
type dupPolicy uint8

const (
	dupNone dupPolicy = iota
	dupDrop
	dupFail
)

// sortMode of a bulk insert.
type sortMode uint8

const (
	sortNone       sortMode = iota
	sortGlobal              // by partition and key, over all rows
	sortPartition           // by partition and key
	sortGroup               // by partition alone
	sortGroupByKey          // by partition, then key
)

var sortModes = map[string]sortMode{
	"NONE": sortNone, "GLOBAL_SORT": sortGlobal, "PARTITION_SORT": sortPartition,
	"PARTITION_PATH_REPARTITION": sortGroup, "PARTITION_PATH_REPARTITION_AND_SORT": sortGroupByKey,
}

// sizes are the numbers of file sizing (tools F.5).
type sizes struct {
	max, small  int64 // bytes
	split       int64 // rows in a new file; with auto it is computed
	auto        bool
	record      int64 // bytes of a record, where no commit tells
	threshold   float64
	smallGroups int64
}

func newSettings(kind Kind, o Options) (*settings, error) {
	s := &settings{Options: o, kind: kind, props: config.NewProperties()}
	for _, k := range slices.Sorted(maps.Keys(o.Conf)) {
		s.props.Set(k, o.Conf[k])
	}
	if s.Memory <= 0 {
		s.Memory = DefaultMemory
	}
	if s.Parallel <= 0 {
		s.Parallel = runtime.GOMAXPROCS(0)
	}
	if s.Alloc == nil {
		s.Alloc = memory.DefaultAllocator
	}
	r := reader{props: s.props}
	s.rules(&r)
	s.sizing(&r)
	if err := errors.Join(r.err, s.index.Set(s.props), s.writer.Set(s.props), s.reconcile.Set(s.props)); err != nil {
		return nil, err
	}
	s.move = true
	switch s.index.Kind {
	case index.GlobalBloom:
		s.move = r.flag(optMoveBloom, true)
	case index.GlobalSimple:
		s.move = r.flag(optMoveSimple, true)
	}
	s.index.Memory, s.index.Parallel = s.Memory/4, s.Parallel
	s.writer.Alloc = s.Alloc
	return s, r.err
}

// rules reads which rows meet, and how.
func (s *settings) rules(r *reader) {
	drop := r.flag(optDropDuplicates, false)
	switch policy := strings.ToLower(r.text(optDupPolicy)); policy {
	case "", "none":
	case "drop":
		s.duplicates = dupDrop
	case "fail":
		s.duplicates = dupFail
	default:
		r.fail(optDupPolicy, "there are none, drop and fail, not %q", policy)
	}
	if drop {
		s.duplicates = dupDrop
	}
	if s.duplicates != dupNone && s.kind == Upsert { // as there
		s.kind = Insert
	}
	if s.kind != Insert && s.kind != BulkInsert { // what replaces what is stored would lose the rows that it leaves out
		s.duplicates = dupNone
	}
	switch s.kind {
	case Upsert:
		s.combine = r.flag(optCombineUpsert, true)
	case Delete:
		s.combine = r.flag(optCombineDelete, true)
	default:
		s.combine = r.flag(optCombineInsert, false) || s.duplicates != dupNone
	}
	s.keepTwins = r.flag(optKeepTwins, true)
	for _, key := range []string{optOrdering, optPayloadOrder} {
		for f := range strings.SplitSeq(r.text(key), ",") {
			if f = strings.TrimSpace(f); f != "" {
				s.ordering = append(s.ordering, f)
			}
		}
		if s.orderGiven = len(s.ordering) > 0; s.orderGiven {
			break
		}
	}
	if text := r.text(optSchema); text != "" {
		var err error
		if s.given, err = schema.ParseString(text); err != nil {
			r.fail(optSchema, "%w", err)
		}
	}
	if r.flag(optChangelog, false) {
		r.refuse(optChangelog, "true", "Sluice writes no change log tables; leave the option away")
	}
	if v := r.text(optMergers); v != "" {
		r.refuse(optMergers, v, "Java mergers can't run here; choose a payload class that Sluice knows")
	}
	s.payload = r.text(optPayload)
	if s.payload == "" {
		s.payload = r.text(optPayloadTable)
	}
	s.mergeProps = map[string]string{}
	for _, k := range s.props.Keys() {
		if strings.HasPrefix(k, "hoodie.payload.") || strings.HasPrefix(k, "hoodie.record.merge.property.") || k == "hoodie.write.partial.update.unavailable.value" {
			s.mergeProps[k], _ = s.props.Get(k)
		}
	}
	for p := range strings.SplitSeq(r.text(optPartitions), ",") {
		if p = strings.TrimSpace(p); p != "" {
			s.partitions = append(s.partitions, p)
		}
	}
	mode := strings.ToUpper(r.text(optSortMode))
	if mode == "" {
		mode = "NONE"
	}
	var known bool
	if s.sort, known = sortModes[mode]; !known {
		r.fail(optSortMode, "there are %s, not %s", strings.Join(slices.Sorted(maps.Keys(sortModes)), ", "), mode)
	}
}

func (s *settings) sizing(r *reader) {
	s.sizes = sizes{
		max:         r.integer(optMaxFile, 125829120, 1),
		small:       r.integer(optSmallFile, 104857600, 0),
		split:       r.integer(optSplitSize, 500000, 1),
		auto:        r.flag(optAutoSplit, true),
		record:      r.integer(optRecordSize, 1024, 1),
		threshold:   r.number(optSizeThreshold, 1),
		smallGroups: r.integer(optSmallGroups, 1, 0),
	}
}

// extra is what options add to the commit's metadata: those whose names begin with hoodie.datasource.write.commitmeta.key.prefix.
func (s *settings) extra() map[string]string {
	out := map[string]string{}
	r := reader{props: s.props}
	prefix := r.text(optMetaPrefix)
	if prefix == "" {
		prefix = "_"
	}
	for k, v := range s.Conf {
		if strings.HasPrefix(k, prefix) {
			out[k] = v
		}
	}
	maps.Copy(out, s.Extra)
	return out
}

// reader reads options by type and keeps all errors.
type reader struct {
	props *config.Properties
	err   error
}

func (r *reader) fail(key, format string, args ...any) {
	r.err = errors.Join(r.err, fmt.Errorf("%s: "+format, append([]any{key}, args...)...))
}

func (r *reader) refuse(key, value, hint string) {
	r.err = errors.Join(r.err, &config.UnsupportedError{Property: key, Value: value, Hint: hint})
}

func (r *reader) text(key string) string {
	v, _ := config.LookupValue(r.props, key)
	return strings.TrimSpace(v)
}

func (r *reader) flag(key string, absent bool) bool {
	switch v := strings.ToLower(r.text(key)); v {
	case "":
		return absent
	case "true":
		return true
	case "false":
		return false
	default:
		r.fail(key, "%q is neither true nor false", v)
		return absent
	}
}

func (r *reader) integer(key string, absent, least int64) int64 {
	v := r.text(key)
	if v == "" {
		return absent
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < least {
		r.fail(key, "%q is no whole number from %d on", v, least)
		return absent
	}
	return n
}

func (r *reader) number(key string, absent float64) float64 {
	v := r.text(key)
	if v == "" {
		return absent
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsNaN(n) || n < 0 {
		r.fail(key, "%q is no number", v)
		return absent
	}
	return n
}
