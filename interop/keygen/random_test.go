//go:build interop

package keygen_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// The record of every random case. All fields can be null.
var fields = []field{
	{"s", `"string"`}, {"t", `"string"`}, {"e", `{"type":"enum","name":"en","symbols":["A","B_2","long"]}`}, {"b", `"boolean"`},
	{"i", `"int"`}, {"l", `"long"`}, {"f", `"float"`}, {"d", `"double"`},
	{"dec", `{"type":"fixed","name":"fdec","size":9,"logicalType":"decimal","precision":20,"scale":6}`},
	{"small", `{"type":"bytes","logicalType":"decimal","precision":12,"scale":10}`},
	{"raw", `"bytes"`}, {"fix", `{"type":"fixed","name":"ffix","size":3}`}, {"day", `{"type":"int","logicalType":"date"}`},
	{"tm", `{"type":"int","logicalType":"time-millis"}`}, {"tu", `{"type":"long","logicalType":"time-micros"}`},
	{"ms", `{"type":"long","logicalType":"timestamp-millis"}`}, {"us", `{"type":"long","logicalType":"timestamp-micros"}`},
	{"lms", `{"type":"long","logicalType":"local-timestamp-millis"}`}, {"lus", `{"type":"long","logicalType":"local-timestamp-micros"}`},
	{"list", `{"type":"array","items":"string"}`}, {"map", `{"type":"map","values":"long"}`},
	{"n", `{"type":"record","name":"nested","fields":[{"name":"x","type":["null","string"],"default":null},{"name":"y","type":["null","double"],"default":null}]}`},
}

type field struct{ name, avro string }

func avroSchema() string {
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = fmt.Sprintf(`{"name":%q,"type":["null",%s],"default":null}`, f.name, f.avro)
	}
	return `{"type":"record","name":"row","namespace":"interop","fields":[` + strings.Join(list, ",") + `]}`
}

// source makes random configurations and records. Equal seeds give equal cases.
type source struct{ *rand.Rand }

func (r source) pick(list ...string) string { return list[r.IntN(len(list))] }

func (r source) chance(percent int) bool { return r.IntN(100) < percent }

// config gives a generator's class, short of its package, and its options.
func (r source) config(newer bool) (class, avroClass string, options map[string]string) {
	const w = "hoodie.datasource.write."
	options = map[string]string{}
	kind := r.pick("Simple", "Complex", "Complex", "TimestampBased", "TimestampBased", "TimestampBased", "Custom", "Custom", "Nonpartitioned", "GlobalDelete")
	one := func() string {
		return r.pick("s", "s", "l", "i", "d", "f", "dec", "small", "b", "e", "day", "ms", "us", "lus", "tm", "raw", "fix", "n.x", "n.y", "list", "map", "n", "nope", "s.", "n.q")
	}
	many := func(least int) string {
		list := make([]string, least+r.IntN(3))
		for i := range list {
			list[i] = r.pick("", "", " ") + one() + r.pick("", "", " ")
		}
		return strings.Join(list, ",") + r.pick("", "", ",")
	}
	options[w+"recordkey.field"] = many(1)
	options[w+"partitionpath.field"] = many(0)
	switch kind {
	case "Simple":
		options[w+"recordkey.field"], options[w+"partitionpath.field"] = one(), one()
	case "TimestampBased":
		options[w+"recordkey.field"] = one()
	case "Custom":
		list := make([]string, r.IntN(4))
		for i := range list {
			list[i] = one() + ":" + r.pick("simple", "SIMPLE")
			if r.chance(40) {
				list[i] = r.pick("l", "i", "ms", "day", "s", "t") + ":" + r.pick("timestamp", "TIMESTAMP")
			}
		}
		options[w+"partitionpath.field"] = strings.Join(list, ",")
	}
	if kind == "TimestampBased" || kind == "Custom" {
		r.times(options, kind, newer)
	}
	for _, o := range []string{"hive_style_partitioning", "partitionpath.urlencode", "keygenerator.consistent.logical.timestamp.enabled"} {
		if r.chance(40) {
			options[w+o] = r.pick("true", "TRUE", "false")
		}
	}
	if newer && r.chance(15) {
		options[w+"slash.separated.date.partitioning"] = "true"
	}
	if r.chance(30) {
		options["hoodie.write.table.version"] = r.pick("6", "8", "9")
		options["hoodie.write.complex.keygen.new.encoding"] = r.pick("true", "false")
	}
	class, avroClass = kind+"KeyGenerator", kind+"AvroKeyGenerator"
	if kind == "GlobalDelete" {
		avroClass = "GlobalAvroDeleteKeyGenerator"
	}
	return class, avroClass, options
}

var zones = []string{"UTC", "GMT", "GMT+8", "GMT-03:30", "America/New_York", "Asia/Kolkata", "Europe/Berlin", "EST", "PST", "IST", "Australia/Lord_Howe",
	"Pacific/Apia", "America/Sao_Paulo", "Africa/Casablanca", "Nowhere/City", "UTC+8", "Etc/GMT+8", "US/Pacific", ""}

func (r source) times(options map[string]string, kind string, newer bool) {
	prefix := func() string { return r.pick("hoodie.keygen.timebased.", "hoodie.deltastreamer.keygen.timebased.") }
	types := []string{"UNIX_TIMESTAMP", "EPOCHMILLISECONDS", "SCALAR", "DATE_STRING", "DATE_STRING", "MIXED"}
	if newer {
		types = append(types, "EPOCHMICROSECONDS")
	}
	typ := r.pick(types...)
	options[prefix()+"timestamp.type"] = typ
	column := r.pick("l", "l", "i", "ms", "us", "lms", "day", "d", "f", "dec", "b", "e", "nope", "n.y", "tu")
	if typ == "DATE_STRING" || typ == "MIXED" {
		column = r.pick("t", "t", "t", "t", "l", "ms")
		formats := r.pattern(true)
		for range r.IntN(3) {
			formats += "," + r.pattern(true)
		}
		if r.chance(50) {
			formats = r.pick("yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd'T'HH:mm:ssZ,yyyy-MM-dd", "yyyyMMdd,yyyyMMddHH", "yy/MM/dd", "dd MMM yyyy hh:mm a", "yyyy-MM-dd HH:mm:ss.SSS")
		}
		options[prefix()+"input.dateformat"] = formats
	}
	if kind == "TimestampBased" {
		options["hoodie.datasource.write.partitionpath.field"] = column
	}
	if typ == "SCALAR" && r.chance(70) {
		options[prefix()+"timestamp.scalar.time.unit"] = r.pick("days", "HOURS", "Minutes", "SECONDS", "milliseconds", "MICROSECONDS", "nanoseconds")
	}
	options[prefix()+"output.dateformat"] = r.pattern(false)
	if r.chance(50) {
		options[prefix()+"output.dateformat"] = r.pick("yyyy/MM/dd", "yyyy-MM-dd HH", "yyyyMMdd", "yyyy-MM-dd hh", "yyyy-MM-dd HH:mm:ss.SSS Z")
	}
	for _, z := range []string{"timezone", "input.timezone", "output.timezone"} {
		if r.chance(35) {
			options[prefix()+z] = r.pick(zones...)
		}
	}
}

// pattern gives a random Joda pattern.
func (r source) pattern(reads bool) string {
	letters := []string{"y", "yy", "yyyy", "yyyyy", "Y", "YYYY", "x", "xxxx", "M", "MM", "MMM", "MMMM", "d", "dd", "D", "DDD", "w", "ww", "e", "E", "EEEE", "a", "H", "HH",
		"k", "kk", "K", "KK", "h", "hh", "m", "mm", "s", "ss", "S", "SSS", "SSSSSS", "Z", "ZZ", "ZZZ", "G", "C"}
	var b strings.Builder
	for range 1 + r.IntN(6) {
		b.WriteString(r.pick(letters...))
		b.WriteString(r.pick("-", "/", " ", ":", ".", "'T'", "", "", "''", "'d='", "_", "#"))
	}
	if r.chance(3) {
		b.WriteString(r.pick("u", "X", "T", "q"))
	}
	text := b.String()
	if reads {
		text = strings.ReplaceAll(text, ",", "")
	}
	return text
}

// value is one random field value: its Avro JSON, and how to append it to an Arrow column.
type value struct {
	json   string
	append func(array.Builder)
}

var nothing = value{"null", func(b array.Builder) { b.AppendNull() }}

// record gives a value for each field.
func (r source) record(slash bool) []value {
	row := make([]value, len(fields))
	for i, f := range fields {
		row[i] = nothing
		if !r.chance(12) {
			row[i] = r.value(f.name, slash)
		}
	}
	return row
}

func (r source) value(name string, slash bool) value {
	switch name {
	case "s":
		return text(r.text(slash), "string")
	case "t":
		return text(r.timeText(), "string")
	case "e":
		return text(r.pick("A", "B_2", "long"), "interop.en")
	case "b":
		v := r.chance(50)
		return value{fmt.Sprintf(`{"boolean":%v}`, v), func(b array.Builder) { b.(*array.BooleanBuilder).Append(v) }}
	case "f":
		v := float32(r.float())
		return value{fmt.Sprintf(`{"float":%s}`, strconv.FormatFloat(float64(v), 'e', -1, 32)), func(b array.Builder) { b.(*array.Float32Builder).Append(v) }}
	case "d":
		v := r.float()
		return value{fmt.Sprintf(`{"double":%s}`, strconv.FormatFloat(v, 'e', -1, 64)), func(b array.Builder) { b.(*array.Float64Builder).Append(v) }}
	case "dec":
		return r.decimal("interop.fdec", 20, 9)
	case "small":
		return r.decimal("bytes", 12, 0)
	case "raw":
		raw := r.bytes(r.IntN(5))
		return value{`{"bytes":` + latin(raw) + `}`, func(b array.Builder) { b.(*array.BinaryBuilder).Append(raw) }}
	case "fix":
		raw := r.bytes(3)
		return value{`{"interop.ffix":` + latin(raw) + `}`, func(b array.Builder) { b.(*array.FixedSizeBinaryBuilder).Append(raw) }}
	case "list", "map", "n":
		return r.nested(name)
	}
	return r.whole(name)
}

func (r source) whole(name string) value {
	n := r.integer(name)
	typ := "long"
	if name == "i" || name == "day" || name == "tm" {
		typ = "int"
	}
	return value{fmt.Sprintf(`{%q:%d}`, typ, n), func(b array.Builder) {
		switch b := b.(type) {
		case *array.Int32Builder:
			b.Append(int32(n))
		case *array.Int64Builder:
			b.Append(n)
		case *array.Date32Builder:
			b.Append(arrow.Date32(n))
		case *array.Time32Builder:
			b.Append(arrow.Time32(n))
		case *array.Time64Builder:
			b.Append(arrow.Time64(n))
		case *array.TimestampBuilder:
			b.Append(arrow.Timestamp(n))
		}
	}}
}

// integer gives numbers that fit the field; instants lie between 1900 and 2100, where the zones of Go and of Joda-Time have
// the same rules.
func (r source) integer(name string) int64 {
	seconds := int64(r.IntN(6311433600)) - 2208988800
	if r.chance(60) {
		seconds = 1.2e9 + int64(r.IntN(8e8))
	}
	switch name {
	case "i":
		return int64(int32(r.Uint32()))
	case "day":
		return seconds / 86400
	case "tm":
		return int64(r.IntN(86400000))
	case "tu":
		return int64(r.IntN(86400000000))
	case "ms", "lms":
		return seconds*1000 + int64(r.IntN(1000))
	case "us", "lus":
		return seconds*1e6 + int64(r.IntN(1e6))
	}
	switch r.IntN(6) {
	case 0:
		return int64(r.IntN(2000)) - 1000
	case 1:
		return seconds
	case 2:
		return []int64{0, -1, 1, math.MaxInt64, math.MinInt64 + 1}[r.IntN(5)]
	}
	return seconds*1000 + int64(r.IntN(1000))
}

func (r source) float() float64 {
	switch r.IntN(5) {
	case 0:
		return math.Ldexp(r.Float64()-0.5, r.IntN(200)-100)
	case 1:
		return float64(r.IntN(2000000)-1000000) / math.Pow(10, float64(r.IntN(7)))
	case 2:
		return float64(r.IntN(1 << 40))
	case 3:
		return []float64{0, math.Copysign(0, -1), 1e7, 1e-3, 0.00099, 2e23, 1e21, 1578283932}[r.IntN(8)]
	}
	return r.NormFloat64() * 1e9
}

func (r source) decimal(name string, digits, width int) value {
	n := new(big.Int).Rand(newRand(r), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(1+r.IntN(digits))), nil))
	if r.chance(40) {
		n.Neg(n)
	}
	size := width
	if size == 0 {
		size = n.BitLen()/8 + 1
	}
	two := new(big.Int).Set(n)
	if n.Sign() < 0 {
		two.Add(two, new(big.Int).Lsh(big.NewInt(1), uint(8*size)))
	}
	return value{fmt.Sprintf(`{%q:%s}`, name, latin(two.FillBytes(make([]byte, size)))), func(b array.Builder) {
		b.(*array.Decimal128Builder).Append(decimal128.FromBigInt(n))
	}}
}

func (r source) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.IntN(256))
	}
	return b
}

func (r source) nested(name string) value {
	switch name {
	case "list":
		list := make([]string, r.IntN(4))
		for i := range list {
			list[i] = r.text(true)
		}
		raw, _ := json.Marshal(list)
		return value{`{"array":` + string(raw) + `}`, func(b array.Builder) {
			b.(*array.ListBuilder).Append(true)
			for _, s := range list {
				b.(*array.ListBuilder).ValueBuilder().(*array.StringBuilder).Append(s)
			}
		}}
	case "map": // of one entry: Java's order of more is that of its hashes
		k, v := r.text(true), r.Int64()
		raw, _ := json.Marshal(k)
		return value{fmt.Sprintf(`{"map":{%s:%d}}`, raw, v), func(b array.Builder) {
			m := b.(*array.MapBuilder)
			m.Append(true)
			m.KeyBuilder().(*array.StringBuilder).Append(k)
			m.ItemBuilder().(*array.Int64Builder).Append(v)
		}}
	}
	x, y := nothing, nothing
	if r.chance(70) {
		x = text(r.text(false), "string")
	}
	if r.chance(70) {
		v := r.float()
		y = value{fmt.Sprintf(`{"double":%s}`, strconv.FormatFloat(v, 'e', -1, 64)), func(b array.Builder) { b.(*array.Float64Builder).Append(v) }}
	}
	return value{fmt.Sprintf(`{"interop.nested":{"x":%s,"y":%s}}`, x.json, y.json), func(b array.Builder) {
		s := b.(*array.StructBuilder)
		s.Append(true)
		x.append(s.FieldBuilder(0))
		y.append(s.FieldBuilder(1))
	}}
}

func text(s, typ string) value {
	raw, _ := json.Marshal(s)
	return value{fmt.Sprintf(`{%q:%s}`, typ, raw), func(b array.Builder) { b.(*array.StringBuilder).Append(s) }}
}

// latin writes bytes as Avro's JSON does.
func latin(raw []byte) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range raw {
		b.WriteString(`\u00` + hex.EncodeToString([]byte{c}))
	}
	b.WriteByte('"')
	return b.String()
}

// text gives words with the characters that matter. Tame ones have no dash: slash separated dates of 1.2.0 turn each into a
// level, however unsafe.
func (r source) text(tame bool) string {
	if r.chance(5) {
		return ""
	}
	pieces := []string{"a", "Z", "7", " ", "%", "/", ":", "=", ",", "é", "東", "😀", "\"", "'", "\\", "{", "}", "[", "]", "^", "#", "*", "?", "+", "&", ".", "\t", "\n", "\u0001",
		"\u007f", "\u0085", "\u2028", "__null__", "__empty__", "__HIVE_DEFAULT_PARTITION__", "%2F", "_", "~", "default"}
	if !tame {
		pieces = append(pieces, "-", "2020-01-05")
	}
	var b strings.Builder
	for range 1 + r.IntN(6) {
		b.WriteString(r.pick(pieces...))
	}
	return b.String()
}

// timeText gives times in several forms, right and wrong.
func (r source) timeText() string {
	n := func(limit int) int { return r.IntN(limit) }
	y, mo, d, h, mi, s := 1950+n(150), 1+n(13), 1+n(31), n(25), n(61), n(60)
	switch n(12) {
	case 0:
		return fmt.Sprintf("%04d%02d%02d", y, mo, d)
	case 1:
		return fmt.Sprintf("%04d-%02d-%02dT%02d:%02d:%02d%s", y, mo, d, h, mi, s, r.pick("Z", "+0530", "-08:00", "+05", "z", "+5", ""))
	case 2:
		return fmt.Sprintf("%02d/%02d/%02d", y%100, mo, d)
	case 3:
		return fmt.Sprintf("%d %s %d %02d:%02d %s", d, r.pick("Jan", "feb", "MAR", "September", "may", "jUn"), y, h%13, mi, r.pick("AM", "pm", "x"))
	case 4:
		return fmt.Sprintf("%d-%d-%d", y, mo, d)
	case 5:
		return fmt.Sprintf("%04d-%02d-%02d %02d:%02d:%02d.%d", y, mo, d, h, mi, s, n(2000))
	case 6:
		return fmt.Sprintf("%04d%02d%02d%02d", y, mo, d, h)
	case 7:
		return r.pick("", " ", "x", "2020", "-5", "+2020-01-01", "1583020800000", "__HIVE_DEFAULT_PARTITION__")
	}
	return fmt.Sprintf("%04d-%02d-%02d %02d:%02d:%02d", y, 1+n(12), 1+n(28), n(24), mi%60, s)
}
