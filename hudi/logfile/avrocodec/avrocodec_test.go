package avrocodec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/twmb/avro"

	"github.com/sluicelake/sluice/hudi/schema"
)

func mustParse(t testing.TB, text string) *schema.Type {
	t.Helper()
	s, err := schema.ParseString(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// decode runs records through a plan and gives the batch as JSON.
func decode(t testing.TB, writer *schema.Type, o Options, records ...[]byte) (string, error) {
	t.Helper()
	alloc := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer alloc.AssertSize(t, 0)
	d, err := Compile(writer, o)
	if err != nil {
		t.Fatal(err)
	}
	b := d.NewBuilder(alloc)
	defer b.Release()
	a, err := d.Bind(b)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range records {
		if err := a.AppendKeyed(fmt.Appendf(nil, "key%d", i), r); err != nil {
			return "", err
		}
	}
	batch := a.NewBatch()
	defer batch.Release()
	text, err := batch.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\n", ""), nil
}

const everything = `{"type":"record","name":"all","fields":[
 {"name":"b","type":"boolean"},{"name":"i","type":"int"},{"name":"l","type":"long"},{"name":"f","type":"float"},{"name":"d","type":"double"},
 {"name":"s","type":"string"},{"name":"y","type":"bytes"},{"name":"x","type":{"type":"fixed","name":"x3","size":3}},
 {"name":"e","type":{"type":"enum","name":"en","symbols":["P","Q"]}},
 {"name":"day","type":{"type":"int","logicalType":"date"}},{"name":"tm","type":{"type":"int","logicalType":"time-millis"}},
 {"name":"tu","type":{"type":"long","logicalType":"time-micros"}},{"name":"sm","type":{"type":"long","logicalType":"timestamp-millis"}},
 {"name":"su","type":["null",{"type":"long","logicalType":"timestamp-micros"}]},{"name":"lm","type":{"type":"long","logicalType":"local-timestamp-micros"}},
 {"name":"c1","type":{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}},
 {"name":"c2","type":{"type":"fixed","name":"d5","size":5,"logicalType":"decimal","precision":10,"scale":2}},
 {"name":"c3","type":{"type":"bytes","logicalType":"decimal","precision":60,"scale":3}},
 {"name":"u","type":{"type":"fixed","name":"uid","size":16,"logicalType":"uuid"}},
 {"name":"a","type":{"type":"array","items":["null","long"]}},{"name":"m","type":{"type":"map","values":{"type":"array","items":"string"}}},
 {"name":"r","type":["null",{"type":"record","name":"in","fields":[{"name":"p","type":["int","null"]},{"name":"q","type":"string"}]}]},
 {"name":"n","type":["int","null","long"]},{"name":"o","type":["null","string","double"]},{"name":"z","type":"null"}]}`

// A value of every type, encoded by hand after the Avro specification.
func everyValue() []byte {
	var b []byte
	long := func(v int64) { b = binary.AppendVarint(b, v) }
	text := func(s string) { long(int64(len(s))); b = append(b, s...) }
	b = append(b, 1)
	long(-7)
	long(math.MinInt64)
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(1.5))
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(-2.25))
	text("имя")
	text("\x00\xff")
	b = append(b, "abc"...)
	long(1)
	for _, v := range []int64{19831, 1000, 2000, 3000} {
		long(v)
	}
	long(1)
	long(-1)
	long(4000)
	text("\xff\x38")               // -2.00
	b = append(b, 0, 0, 0, 0, 200) // 2.00
	text("\x01" + strings.Repeat("\x00", 20))
	b = append(b, 0x12, 0x3e, 0x45, 0x67, 0xe8, 0x9b, 0x12, 0xd3, 0xa4, 0x56, 0x42, 0x66, 0x14, 0x17, 0x40, 0x00)
	long(-2) // a block with its size
	long(3)
	long(1)
	long(5)
	long(0)
	long(1) // another block
	long(0)
	long(0)
	long(1)
	text("k")
	long(1)
	text("v")
	long(0)
	long(0)
	long(1)
	long(1)
	text("q")
	long(2) // the branch of a long in a union of int and long
	long(1 << 40)
	long(2) // a member of a struct
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(0.5))
}

func TestEveryType(t *testing.T) {
	got, err := decode(t, mustParse(t, everything), Options{}, everyValue())
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"a":[5,null,null],"b":true,"c1":"-2","c2":"2","c3":"1461501637330902918203684832716283019655932542.976","d":-2.25,"day":"2024-04-18","e":"Q","f":1.5,"i":-7,` +
		`"l":-9223372036854775808,"lm":"1970-01-01T00:00:00.004","m":[{"key":"k","value":["v"]}],"n":1099511627776,"o":{"member0":null,"member1":0.5},"r":{"p":null,"q":"q"},` +
		`"s":"имя","sm":"1970-01-01T00:00:03Z","su":"1969-12-31T23:59:59.999999Z","tm":"00:00:01","tu":"00:00:00.002","u":"123e4567-e89b-12d3-a456-426614174000",` +
		`"x":"YWJj","y":"AP8=","z":null}]` // c3 is 2^160 / 1000
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Any selection of columns gives the same values as all of them: skipping passes over exactly one value.
func TestProjection(t *testing.T) {
	writer := mustParse(t, everything)
	all, err := writer.Arrow()
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range all.Fields() {
		one := arrow.NewSchema([]arrow.Field{f}, nil)
		single, err := decode(t, writer, Options{Columns: one}, everyValue())
		if err != nil {
			t.Fatal(f.Name, err)
		}
		whole, err := decode(t, writer, Options{}, everyValue())
		if err != nil {
			t.Fatal(err)
		}
		if inner := single[2 : len(single)-2]; !strings.Contains(whole, inner) {
			t.Errorf("%d: %s is not in %s", i, inner, whole)
		}
	}
	if got, err := decode(t, writer, Options{Columns: arrow.NewSchema(nil, nil)}, everyValue()); err != nil || got != "[{}]" {
		t.Errorf("no columns: %s, %v", got, err)
	}
	// Members of a nested record are skipped too.
	r := arrow.NewSchema([]arrow.Field{{Name: "r", Type: arrow.StructOf(arrow.Field{Name: "q", Type: arrow.BinaryTypes.String})}}, nil)
	if got, err := decode(t, writer, Options{Columns: r}, everyValue()); err != nil || got != `[{"r":{"q":"q"}}]` {
		t.Errorf("nested: %s, %v", got, err)
	}
}

func TestKeyOfHFile(t *testing.T) {
	writer := mustParse(t, `{"type":"record","name":"kv","fields":[{"name":"key","type":"string"},{"name":"v","type":"string"}]}`)
	got, err := decode(t, writer, Options{Key: "key"}, []byte{0, 2, 'a'}, []byte{2, 'k', 0})
	if err != nil || got != `[{"key":"key0","v":"a"},{"key":"k","v":""}]` {
		t.Errorf("%s, %v", got, err)
	}
	nullable := mustParse(t, `{"type":"record","name":"kv","fields":[{"name":"key","type":["null","string"]}]}`)
	got, err = decode(t, nullable, Options{Key: "key"}, []byte{2, 0}, []byte{0}, []byte{2, 2, 'k'})
	if err != nil || got != `[{"key":"key0"},{"key":null},{"key":"k"}]` {
		t.Errorf("%s, %v", got, err)
	}
}

// A record that is cut, too long or lies about a length is an error, whether its fields are wanted or skipped.
func TestDamagedRecords(t *testing.T) {
	writer := mustParse(t, everything)
	whole := everyValue()
	none := Options{Columns: arrow.NewSchema(nil, nil)}
	for n := range whole {
		for _, o := range []Options{{}, none} {
			if _, err := decode(t, writer, o, whole[:n]); !errors.Is(err, ErrData) {
				t.Errorf("cut to %d: %v", n, err)
			}
		}
	}
	if _, err := decode(t, writer, Options{}, append(bytes.Clone(whole), 0)); !errors.Is(err, ErrData) {
		t.Errorf("a byte too many: %v", err)
	}
	huge := binary.AppendVarint(nil, math.MaxInt64)
	least := binary.AppendVarint(nil, math.MinInt64)
	for text, bad := range map[string][]byte{
		`"string"`:                        huge,
		`"bytes"`:                         least,
		`"int"`:                           huge,
		`{"type":"array","items":"null"}`: append(huge, 0),
		`{"type":"array","items":"long"}`: append(least, 0, 0),
		`{"type":"map","values":"null"}`:  append(huge, 0),
		`["null","int"]`:                  {4},
		`["int","null","string"]`:         {1},
		`{"type":"enum","name":"e","symbols":["A"]}`:                           {2},
		`{"type":"bytes","logicalType":"decimal","precision":4,"scale":1}`:     {0},
		`{"type":"array","items":{"type":"record","name":"no","fields":[]}}`:   append(binary.AppendVarint(nil, 1<<40), 0),
		`{"type":"array","items":{"type":"fixed","name":"fx","size":1000000}}`: {4, 0, 0, 0},
		`"boolean"`: {7},
	} {
		writer := mustParse(t, `{"type":"record","name":"r","fields":[{"name":"v","type":`+text+`}]}`)
		if _, err := decode(t, writer, Options{}, bad); !errors.Is(err, ErrData) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Records that refer to themselves have no columns, but can be skipped.
func TestRecursiveSchemas(t *testing.T) {
	tree := mustParse(t, `{"type":"record","name":"top","fields":[{"name":"id","type":"int"},{"name":"tree","type":{"type":"record","name":"node","fields":[{"name":"l","type":["null","node"]},{"name":"r","type":["node","null"]}]}}]}`)
	if _, err := Compile(tree, Options{}); err == nil {
		t.Error("a recursive column was accepted")
	}
	id := Options{Columns: arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32}}, nil)}
	if got, err := decode(t, tree, id, []byte{14, 2, 0, 2, 2}); err != nil || got != `[{"id":7}]` {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := decode(t, tree, id, append([]byte{14}, bytes.Repeat([]byte{2}, 1000)...)); !errors.Is(err, ErrData) {
		t.Errorf("endless: %v", err)
	}
	// Names that are used twice at every level: 2^40 values.
	text := `"int"`
	for i := range 40 {
		text = fmt.Sprintf(`{"type":"record","name":"n%d","fields":[{"name":"a","type":%s},{"name":"b","type":%s}]}`, i, text, map[bool]string{true: `"int"`, false: fmt.Sprintf(`"n%d"`, i-1)}[i == 0])
	}
	if _, err := Compile(mustParse(t, `{"type":"record","name":"top","fields":[{"name":"v","type":`+text+`}]}`), Options{}); !errors.Is(err, schema.ErrSchema) {
		t.Errorf("a schema of 2^40 values: %v", err)
	}
}

// FuzzDecode compares with another Avro library wherever both take the bytes.
func FuzzDecode(f *testing.F) {
	f.Add(everyValue())
	f.Add(everyValue()[:60])
	writer := mustParse(f, everything)
	other := avro.MustParse(everything)
	one := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	f.Fuzz(func(t *testing.T, record []byte) {
		got, err := decode(t, writer, Options{}, record)
		skipped, skipErr := decode(t, writer, Options{Columns: one}, record)
		if err == nil && skipErr != nil {
			t.Fatalf("decoded, but not skipped: %v", skipErr)
		}
		if err != nil {
			return
		}
		if inner := skipped[2 : len(skipped)-2]; !strings.Contains(got, inner) {
			t.Fatalf("%s is not in %s", inner, got)
		}
		var v any
		rest, err := other.Decode(record, &v)
		if err != nil || len(rest) > 0 {
			t.Fatalf("only we take it: %v, %d bytes left, %x", err, len(rest), record)
		}
	})
}

const wide = `{"type":"record","name":"trip","fields":[
 {"name":"_hoodie_commit_time","type":["null","string"]},{"name":"_hoodie_commit_seqno","type":["null","string"]},{"name":"_hoodie_record_key","type":["null","string"]},
 {"name":"_hoodie_partition_path","type":["null","string"]},{"name":"_hoodie_file_name","type":["null","string"]},
 {"name":"id","type":"long"},{"name":"price","type":["null","double"]},{"name":"ts","type":["null",{"type":"long","logicalType":"timestamp-micros"}]}]}`

func BenchmarkDecode(b *testing.B) {
	writer := mustParse(b, wide)
	s := avro.MustParse(strings.ReplaceAll(wide, `{"type":"long","logicalType":"timestamp-micros"}`, `"long"`))
	record, err := s.Encode(map[string]any{"_hoodie_commit_time": "20240418173550988", "_hoodie_commit_seqno": "20240418173550988_12_345", "_hoodie_record_key": "a079bdb3-731c-4894", "_hoodie_partition_path": "region=eu",
		"_hoodie_file_name": "a079bdb3-731c-4894-b855-abfcd6921007-0_0-33-43_20240418173550988.parquet", "id": int64(123456), "price": 12.5, "ts": int64(1713461750988000)})
	if err != nil {
		b.Fatal(err)
	}
	for name, columns := range map[string]*arrow.Schema{"all": nil, "key_and_id": arrow.NewSchema([]arrow.Field{{Name: "_hoodie_record_key", Type: arrow.BinaryTypes.String}, {Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil)} {
		b.Run(name, func(b *testing.B) {
			d, err := Compile(writer, Options{Columns: columns})
			if err != nil {
				b.Fatal(err)
			}
			rb := array.NewRecordBuilder(memory.NewGoAllocator(), d.Schema())
			defer rb.Release()
			a, err := d.Bind(rb)
			if err != nil {
				b.Fatal(err)
			}
			rows := 0
			for b.Loop() {
				a.Reserve(8192)
				for range 8192 {
					if err := a.Append(record); err != nil {
						b.Fatal(err)
					}
				}
				a.NewBatch().Release()
				rows += 8192
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(rows*len(record))/b.Elapsed().Seconds()/1e6, "MB/s")
		})
	}
}
