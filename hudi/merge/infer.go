package merge

import (
	"errors"
	"fmt"
)

// The merge modes (table format 6.6).
const (
	CommitTime = "COMMIT_TIME_ORDERING"
	EventTime  = "EVENT_TIME_ORDERING"
	Custom     = "CUSTOM"
)

// The merge strategy ids (table format 6.6).
const (
	StrategyEventTime  = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
	StrategyCommitTime = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
	StrategyPayload    = "00000000-0000-0000-0000-000000000000"
)

// The partial update modes (table format 1.4, version 9). IgnoreMarkers is what early 1.1 development builds called
// FillUnavailable.
const (
	IgnoreDefaults  = "IGNORE_DEFAULTS"
	FillUnavailable = "FILL_UNAVAILABLE"
	IgnoreMarkers   = "IGNORE_MARKERS"
	KeepValues      = "KEEP_VALUES"
)

// The payload classes whose rules this package has.
const (
	PayloadLatest      = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
	PayloadDefault     = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
	PayloadEventTime   = "org.apache.hudi.common.model.EventTimeAvroPayload"
	PayloadFirstValue  = "org.apache.hudi.common.model.FirstValueAvroPayload"
	PayloadReverse     = "org.apache.hudi.common.model.ReverseOrderHoodieRecordPayload"
	PayloadNonDefaults = "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload"
	PayloadPartial     = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
	PayloadAvro        = "org.apache.hudi.common.model.HoodieAvroPayload"
	PayloadEmpty       = "org.apache.hudi.common.model.EmptyHoodieRecordPayload"
	PayloadAWSDms      = "org.apache.hudi.common.model.AWSDmsAvroPayload"
	PayloadMySQL       = "org.apache.hudi.common.model.debezium.MySqlDebeziumAvroPayload"
	PayloadPostgres    = "org.apache.hudi.common.model.debezium.PostgresDebeziumAvroPayload"
)

// Property names of version 9 tables.
const (
	propPrefix      = "hoodie.record.merge.property."
	propDeleteField = "hoodie.payload.delete.field"
	propDeleteMark  = "hoodie.payload.delete.marker"
	propUnavailable = "hoodie.write.partial.update.unavailable.value"

	toast = "__debezium_unavailable_value"
)

// ErrConfig is wrapped by errors about settings that contradict each other or lack a part.
var ErrConfig = errors.New("contradictory merge settings")

// Settings are the properties of a table that say how records merge. Empty means absent.
type Settings struct {
	Mode           string // hoodie.record.merge.mode
	PayloadClass   string // hoodie.compaction.payload.class
	StrategyID     string // hoodie.record.merge.strategy.id
	OrderingFields string // hoodie.table.ordering.fields, hoodie.table.precombine.field; comma list

	// Results for version 9 only.
	LegacyPayload     string            // hoodie.table.legacy.payload.class
	PartialUpdateMode string            // hoodie.table.partial.update.mode
	Properties        map[string]string // whole keys below hoodie.record.merge.property.
}

// Infer completes merge settings the way a release of Apache Hudi does when it creates or opens a table of that version
// (table format 1.5 and 6.6; vectors merge_inference). For versions up to 8 the result has mode, payload class and strategy
// id; for version 9 the built-in payload classes are replaced by mode, partial update mode and merge properties. Release is
// "1.0.2", or empty for the newest: the releases differ about EventTimeAvroPayload alone. Contradictions are ErrConfig.
//
// Infer is for creating tables. What a stored table of version 7 or less means is decided by its payload class alone, as
// its writers did ([Compile]).
func Infer(version int, release string, given Settings) (Settings, error) {
	if version >= 9 {
		return inferNine(release, given)
	}
	mode, err := inferMode(version, release, given)
	if err != nil {
		return Settings{}, err
	}
	return complete(version, mode, given), nil
}

func modeOfPayload(class, release string) string {
	switch class {
	case "":
		return ""
	case PayloadLatest:
		return CommitTime
	case PayloadDefault:
		return EventTime
	case PayloadEventTime:
		if release != "1.0.2" {
			return EventTime
		}
	}
	return Custom
}

func modeOfStrategy(id string) string {
	switch id {
	case "":
		return ""
	case StrategyEventTime:
		return EventTime
	case StrategyCommitTime:
		return CommitTime
	}
	return Custom
}

func inferMode(version int, release string, given Settings) (string, error) {
	byPayload, byStrategy := modeOfPayload(given.PayloadClass, release), modeOfStrategy(given.StrategyID)
	if byPayload == "" && byStrategy == "" {
		switch {
		case given.Mode == Custom:
			return "", fmt.Errorf("%w: mode CUSTOM needs hoodie.compaction.payload.class or hoodie.record.merge.strategy.id", ErrConfig)
		case given.Mode != "":
			return given.Mode, nil
		case given.OrderingFields == "":
			return CommitTime, nil
		}
		return EventTime, nil
	}
	if given.StrategyID == StrategyPayload && byPayload == "" && (given.Mode == "" || given.Mode == Custom) {
		return "", fmt.Errorf("%w: strategy id %s (payload class) without hoodie.compaction.payload.class", ErrConfig, given.StrategyID)
	}
	mode := byStrategy
	switch {
	case byStrategy == "" || byPayload != "" && version < 8:
		mode = byPayload
	case byPayload != "" && byStrategy != Custom && byPayload != byStrategy:
		return "", fmt.Errorf("%w: payload class %s and strategy id %s (%s); set only one of them",
			ErrConfig, given.PayloadClass, given.StrategyID, byStrategy)
	}
	if given.Mode != "" && given.Mode != mode {
		return "", fmt.Errorf("%w: mode %s, but payload class %q and strategy id %q mean %s",
			ErrConfig, given.Mode, given.PayloadClass, given.StrategyID, mode)
	}
	return mode, nil
}

// complete derives payload class and strategy id from the mode, for versions up to 8.
func complete(version int, mode string, given Settings) Settings {
	out := Settings{Mode: mode, PayloadClass: given.PayloadClass, OrderingFields: given.OrderingFields}
	switch mode {
	case CommitTime:
		out.PayloadClass, out.StrategyID = PayloadLatest, StrategyCommitTime
	case EventTime:
		out.StrategyID = StrategyEventTime
	default:
		out.StrategyID = StrategyPayload
		if given.StrategyID != "" && (version >= 8 || given.PayloadClass == "") {
			out.StrategyID = given.StrategyID
		}
	}
	if out.PayloadClass == "" {
		out.PayloadClass = PayloadDefault
	}
	return out
}

// builtIn are the payload classes that version 9 replaces (table format 1.5).
var builtIn = [...]struct {
	class, mode, partial, ordering, deleteField, deleteMark, unavailable string
}{
	{class: PayloadDefault, mode: EventTime},
	{class: PayloadEventTime, mode: EventTime},
	{class: PayloadLatest, mode: CommitTime},
	{class: PayloadPartial, mode: EventTime, partial: IgnoreDefaults},
	{class: PayloadNonDefaults, mode: CommitTime, partial: IgnoreDefaults},
	{class: PayloadAWSDms, mode: CommitTime, deleteField: "Op", deleteMark: "D"},
	{class: PayloadMySQL, mode: EventTime, ordering: "_event_bin_file,_event_pos",
		deleteField: "_change_operation_type", deleteMark: "d"},
	{class: PayloadPostgres, mode: EventTime, partial: FillUnavailable, ordering: "_event_lsn",
		deleteField: "_change_operation_type", deleteMark: "d", unavailable: toast},
}

func isBuiltIn(class string) bool {
	for i := range builtIn {
		if builtIn[i].class == class {
			return true
		}
	}
	return false
}

func inferNine(release string, given Settings) (Settings, error) {
	known := isBuiltIn(given.PayloadClass)
	if known && given.StrategyID == "" {
		given.Mode = "" // a built-in class decides, whatever mode is configured
	}
	mode, err := inferMode(9, release, given)
	if err != nil {
		return Settings{}, err
	}
	if known && (given.StrategyID == "" || modeOfStrategy(given.StrategyID) != Custom || given.StrategyID == StrategyPayload) {
		return replaceBuiltIn(given), nil
	}
	out := Settings{Mode: mode, OrderingFields: given.OrderingFields}
	if mode == Custom {
		out.StrategyID = given.StrategyID
		if given.PayloadClass != "" && (given.StrategyID == "" || given.StrategyID == StrategyPayload) {
			out.PayloadClass, out.StrategyID = given.PayloadClass, StrategyPayload
		}
	}
	return out, nil
}

func replaceBuiltIn(given Settings) Settings {
	out := Settings{LegacyPayload: given.PayloadClass, OrderingFields: given.OrderingFields}
	for i := range builtIn {
		b := &builtIn[i]
		if b.class != given.PayloadClass {
			continue
		}
		out.Mode, out.PartialUpdateMode = b.mode, b.partial
		if b.ordering != "" {
			out.OrderingFields = b.ordering
		}
		set := func(key, value string) {
			if value == "" {
				return
			}
			if out.Properties == nil {
				out.Properties = map[string]string{}
			}
			out.Properties[propPrefix+key] = value
		}
		set(propDeleteField, b.deleteField)
		set(propDeleteMark, b.deleteMark)
		set(propUnavailable, b.unavailable)
	}
	return out
}
