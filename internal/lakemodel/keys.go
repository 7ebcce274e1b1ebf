package lakemodel

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicelake/sluice/interop/rows"
)

// NullPartition is the folder of rows whose partition value is null or empty (key generation 7.2).
const NullPartition = "__HIVE_DEFAULT_PARTITION__"

// The key generators of histories. Key and partition path are computed here from the text of the specification, for the few
// types that histories use in keys, so that they do not share a mistake with package keygen.
const (
	Simple         = "simple"
	Complex        = "complex"
	ComplexOne     = "complex of one field"
	Timestamp      = "timestamp"
	Custom         = "custom"
	NonPartitioned = "non-partitioned"
	GlobalDelete   = "global delete"
	Keyless        = "keyless"
)

// Clock says how the timestamp key generator reads the column "made" and prints it (key generation 9).
type Clock struct {
	Type   string // of hoodie.keygen.timebased.timestamp.type
	Input  string // Joda pattern; of DATE_STRING
	Output string // Joda pattern
	Zone   string
	layout string // Output as Go has it
	offset int    // seconds east of Greenwich
}

var clocks = []Clock{
	{Type: "UNIX_TIMESTAMP", Output: "yyyy/MM/dd", Zone: "UTC", layout: "2006/01/02"},
	{Type: "EPOCHMILLISECONDS", Output: "yyyy-MM-dd", Zone: "GMT+8:00", layout: "2006-01-02", offset: 8 * 3600},
	{Type: "DATE_STRING", Input: "yyyy-MM-dd HH:mm:ss", Output: "yyyyMMdd", Zone: "UTC", layout: "20060102"},
}

// path prints the value of a row. Null is the first unit after 1970 began (key generation 9.3).
func (c Clock) path(v any) string {
	at := time.UnixMilli(1)
	switch v := v.(type) {
	case json.Number:
		n := integerOf(v)
		if at = time.UnixMilli(n); c.Type == "UNIX_TIMESTAMP" {
			at = time.Unix(n, 0)
		}
	case string:
		parsed, err := time.Parse(time.DateTime, v)
		if err != nil {
			panic(fmt.Sprintf("lakemodel: %v", err))
		}
		at = parsed
	}
	return at.UTC().Add(time.Duration(c.offset) * time.Second).Format(c.layout)
}

// RecordKey is the key of a row (key generation 6); empty where the writer makes keys of its own.
func (c *Config) RecordKey(r rows.Row) string {
	named := len(c.Keys) > 1 || c.Keygen == GlobalDelete || c.Keygen == ComplexOne && !c.BareComplex
	var parts []string
	for _, k := range c.Keys {
		value, ok := keyText(r[k])
		if !named {
			return value
		}
		switch {
		case !ok:
			value = "__null__"
		case value == "":
			value = "__empty__"
		}
		parts = append(parts, k+":"+value)
	}
	return strings.Join(parts, ",")
}

// PartitionPath is the folder of a row below the table (key generation 7).
func (c *Config) PartitionPath(r rows.Row) string {
	parts := make([]string, len(c.Partitions))
	for i, name := range c.Partitions {
		value, _ := keyText(r[name])
		if name == "made" {
			value = c.Clock.path(r[name])
		}
		if value == "" {
			value = NullPartition
		}
		if c.URLEncode {
			value = escape(value)
		}
		if c.HiveStyle {
			value = name + "=" + value
		}
		parts[i] = value
	}
	return strings.Join(parts, "/")
}

// keyText is the text of a value of a key (key generation 5), and whether it is one: null has none.
func keyText(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "", false
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case json.Number:
		return string(v), true
	}
	panic(fmt.Sprintf("lakemodel: a key of type %T", v))
}

// escape is Hive's percent encoding (key generation 7.3).
func escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < 0x20 || r == 0x7f || strings.ContainsRune("\"#%'*/:=?\\{[]^", r) {
			fmt.Fprintf(&b, "%%%02X", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Classes of the key generators, where one has to be named: others are inferred from the fields (key generation 3.2).
var classes = map[string]string{
	ComplexOne:     "org.apache.hudi.keygen.ComplexKeyGenerator",
	Timestamp:      "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
	Custom:         "org.apache.hudi.keygen.CustomKeyGenerator",
	NonPartitioned: "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
	GlobalDelete:   "org.apache.hudi.keygen.GlobalDeleteKeyGenerator",
	Complex:        "org.apache.hudi.keygen.ComplexKeyGenerator",
	Simple:         "org.apache.hudi.keygen.SimpleKeyGenerator",
}

func (c *Config) keyOptions() map[string]string {
	o := map[string]string{
		"hoodie.datasource.write.hive_style_partitioning": fmt.Sprint(c.HiveStyle),
		"hoodie.datasource.write.partitionpath.urlencode": fmt.Sprint(c.URLEncode),
	}
	if len(c.Keys) > 0 {
		o["hoodie.datasource.write.recordkey.field"] = strings.Join(c.Keys, ",")
	}
	if class := classes[c.Keygen]; class != "" {
		o["hoodie.datasource.write.keygenerator.class"] = class
	}
	partitions := slices.Clone(c.Partitions)
	for i, p := range partitions {
		switch {
		case c.Keygen == Custom && p == "made":
			partitions[i] += ":TIMESTAMP"
		case c.Keygen == Custom:
			partitions[i] += ":SIMPLE"
		}
	}
	o["hoodie.datasource.write.partitionpath.field"] = strings.Join(partitions, ",")
	if slices.Contains(c.Partitions, "made") {
		o["hoodie.keygen.timebased.timestamp.type"] = c.Clock.Type
		o["hoodie.keygen.timebased.output.dateformat"] = c.Clock.Output
		o["hoodie.keygen.timebased.timezone"] = c.Clock.Zone
		if c.Clock.Input != "" {
			o["hoodie.keygen.timebased.input.dateformat"] = c.Clock.Input
		}
	}
	if c.Keygen == ComplexOne && c.BareComplex {
		o["hoodie.write.complex.keygen.new.encoding"] = "true"
	}
	return o
}

func integerOf(n json.Number) int64 {
	i, err := strconv.ParseInt(string(n), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("lakemodel: %v", err))
	}
	return i
}
