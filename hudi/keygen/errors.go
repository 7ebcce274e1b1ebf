package keygen

import (
	"strconv"
	"strings"
)

// Stage says when an error arose.
type Stage string

// The stages: building the generator, or one of the two results of a record.
const (
	StageConstruct Stage = "construct"
	StageKey       Stage = "record_key"
	StagePartition Stage = "partition_path"
)

// Simple names of the Java classes that the reference raises.
const (
	classKey          = "HoodieKeyException"
	classKeyGenerator = "HoodieKeyGeneratorException"
	classHoodie       = "HoodieException"
	classNotSupported = "HoodieNotSupportedException"
	classArgument     = "IllegalArgumentException"
	classFieldValue   = "IllegalFieldValueException"
	classInstant      = "IllegalInstantException"
	classNumber       = "NumberFormatException"
	classIO           = "IOException"
	classRuntime      = "RuntimeException"
	classAvro         = "AvroRuntimeException"
	classNoElement    = "NoSuchElementException"
	classNull         = "NullPointerException"
	classCast         = "ClassCastException"
	// classRefused marks what only Sluice refuses.
	classRefused = ""
)

// Error is a configuration or a record that gives no key.
type Error struct {
	// Class is the simple name of the Java exception that Apache Hudi raises here; empty where only Sluice refuses.
	Class string
	// Cause is the simple name of that exception's direct cause, empty when it has none.
	Cause string
	Stage Stage
	// Row is the row of the batch, counted from 0; -1 for errors of the configuration.
	Row int
	// Field is the column or option concerned.
	Field string
	// Source says where the option stands: the write options, the table's properties, …
	Source string
	// Message is the reference's text; CauseMessage the text of the cause.
	Message, CauseMessage string
	// Hint is the next step.
	Hint string
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("key generation")
	if e.Row >= 0 {
		b.WriteString(", row ")
		b.WriteString(strconv.Itoa(e.Row))
	}
	b.WriteString(": ")
	b.WriteString(e.Message)
	if e.CauseMessage != "" {
		b.WriteString(": ")
		b.WriteString(e.CauseMessage)
	}
	if e.Source != "" {
		b.WriteString(" (from ")
		b.WriteString(e.Source)
		b.WriteByte(')')
	}
	if e.Hint != "" {
		b.WriteString("; ")
		b.WriteString(e.Hint)
	}
	return b.String()
}
