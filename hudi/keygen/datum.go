package keygen

import (
	"math/big"
)

// Kind is what a field's value is, in the terms of the Avro schema. Keys depend on it: an enum and a string, a time and
// a number, bytes and fixed are treated differently.
type Kind uint8

// The kinds.
const (
	Null         Kind = iota
	Absent            // the schema has no such field
	ParentNull        // a record on the way to the field is null
	ParentScalar      // something on the way to the field is no record
	Boolean
	Int
	Long
	Float
	Double
	Decimal
	String
	Enum
	Bytes
	Fixed
	Date
	TimeMillis
	TimeMicros
	TimestampMillis
	TimestampMicros
	TimestampNanos
	LocalMillis
	LocalMicros
	LocalNanos
	Array
	Map
	Record
)

// Datum is one value. Which members count depends on Kind: I for booleans (0, 1), integers, dates (days), times and
// timestamps (in their unit) and decimals of up to 18 digits (unscaled); F for float and double; Big for larger decimals;
// S for text; B for bytes; Items for arrays, map values and record fields, with Names as map keys or field names.
type Datum struct {
	Kind  Kind
	Scale int32 // decimal
	I     int64
	F     float64
	Big   *big.Int
	S     string
	B     []byte
	Items []Datum
	Names []string
}

// missing reports whether there is no value at all.
func (d *Datum) missing() bool { return d.Kind <= ParentScalar }
