package lakemodel

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"strings"

	"github.com/sluicelake/sluice/interop/rows"
)

// Payload classes, by the last part of their names. Their rules are those of release 0.15.0 (tools F.4, table format 6.6).
const (
	OverwriteWithLatest  = "OverwriteWithLatestAvroPayload"
	DefaultPayload       = "DefaultHoodieRecordPayload"
	EventTime            = "EventTimeAvroPayload"
	PartialUpdate        = "PartialUpdateAvroPayload"
	OverwriteNonDefaults = "OverwriteNonDefaultsWithLatestAvroPayload"
	AWSDms               = "AWSDmsAvroPayload"
)

// verdict says what an incoming row does to a stored one.
type verdict int

const (
	replaced verdict = iota // another row takes its place
	kept                    // it stays as it is, meta columns too
	removed
)

// within combines two incoming rows of one key; b came later.
func (c *Config) within(a, b rows.Row) rows.Row {
	newer, older := b, a
	if c.compare(a, b) > 0 {
		newer, older = a, b
	}
	switch {
	case c.Payload != PartialUpdate:
		return newer
	case c.deletes(newer): // it has no value to fill the gaps of, and Apache Hudi then takes the later arrival as it is
		return b
	}
	return filled(newer, older)
}

// over merges an incoming row into the stored row of its key.
func (c *Config) over(stored, in rows.Row) (rows.Row, verdict) {
	late := stored[c.Ordering] != nil && c.compare(stored, in) > 0
	deletes := c.deletes(in)
	switch c.Payload {
	case DefaultPayload:
		if late {
			return stored, kept
		}
	case EventTime:
		if late && !deletes {
			return stored, kept
		}
	}
	switch {
	case deletes:
		return nil, removed
	case c.Payload == OverwriteNonDefaults:
		return filled(in, stored), replaced // all defaults are null
	case c.Payload == PartialUpdate && late:
		return filled(stored, in), replaced
	case c.Payload == PartialUpdate:
		return filled(in, stored), replaced
	}
	return in, replaced
}

// deletes reports whether a row says of itself that it is deleted.
func (c *Config) deletes(r rows.Row) bool {
	switch {
	case c.Payload == AWSDms:
		op, _ := r["Op"].(string)
		return strings.EqualFold(op, "D")
	case c.DeleteMarker:
		return r["state"] == "gone"
	}
	return r["_hoodie_is_deleted"] == true
}

// filled is a row whose nulls are filled from another one.
func filled(r, from rows.Row) rows.Row {
	out := maps.Clone(from)
	for name, v := range r {
		if _, there := out[name]; v != nil || !there {
			out[name] = v
		}
	}
	return out
}

// compare orders two rows by their ordering values: text by its bytes, everything else by number or time.
func (c *Config) compare(a, b rows.Row) int {
	x, y := a[c.Ordering], b[c.Ordering]
	if c.OrderingType == "decimal" {
		return fraction(x).Cmp(fraction(y))
	}
	switch x := x.(type) {
	case string: // text, and timestamps, which have a fixed width
		return strings.Compare(x, y.(string))
	case json.Number:
		return fraction(x).Cmp(fraction(y))
	}
	panic(fmt.Sprintf("lakemodel: an ordering value of type %T", x))
}

func fraction(v any) *big.Rat {
	f, ok := new(big.Rat).SetString(fmt.Sprint(v))
	if !ok {
		panic(fmt.Sprintf("lakemodel: %v is no number", v))
	}
	return f
}
