package basefile_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	pq "github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/encode"
	"github.com/sluicelake/sluice/hudi/predicate"
	"github.com/sluicelake/sluice/hudi/schema"
)

const (
	required = 0
	optional = 1
	repeated = 2
)

// chunk is the content of one leaf: values as they lie in the file, with their levels.
type chunk struct {
	values     any
	defs, reps []int16
}

func group(name string, rep parquet.Repetition, logical pq.LogicalType, fields ...pq.Node) pq.Node {
	if logical == nil {
		return pq.Must(pq.NewGroupNode(name, rep, fields, -1))
	}
	return pq.Must(pq.NewGroupNodeLogical(name, rep, fields, logical, -1))
}

func leaf(name string, rep parquet.Repetition, typ parquet.Type, logical pq.LogicalType, length int) pq.Node {
	if logical == nil {
		logical = pq.NoLogicalType{}
	}
	return pq.Must(pq.NewPrimitiveNodeLogical(name, rep, logical, typ, length, -1))
}

// write makes a Parquet file of one row group from the bytes of its leaves.
func write(t testing.TB, props *parquet.WriterProperties, fields []pq.Node, chunks ...chunk) []byte {
	t.Helper()
	var out bytes.Buffer
	root := pq.MustGroup(pq.NewGroupNode("table", parquet.Repetitions.Required, fields, -1))
	w := file.NewParquetWriter(&out, root, file.WithWriterProps(props))
	rg := w.AppendRowGroup() //nolint:staticcheck // it panics where the schema is wrong, which a test may
	for _, c := range chunks {
		cw, err := rg.NextColumn()
		if err != nil {
			t.Fatal(err)
		}
		switch cw := cw.(type) {
		case *file.BooleanColumnChunkWriter:
			_, err = cw.WriteBatch(c.values.([]bool), c.defs, c.reps)
		case *file.Int32ColumnChunkWriter:
			_, err = cw.WriteBatch(c.values.([]int32), c.defs, c.reps)
		case *file.Int64ColumnChunkWriter:
			_, err = cw.WriteBatch(c.values.([]int64), c.defs, c.reps)
		case *file.Int96ColumnChunkWriter:
			_, err = cw.WriteBatch(c.values.([]parquet.Int96), c.defs, c.reps)
		case *file.Float64ColumnChunkWriter:
			_, err = cw.WriteBatch(c.values.([]float64), c.defs, c.reps)
		case *file.ByteArrayColumnChunkWriter:
			_, err = cw.WriteBatch(c.values.([]parquet.ByteArray), c.defs, c.reps)
		case *file.FixedLenByteArrayColumnChunkWriter:
			_, err = cw.WriteBatch(c.values.([]parquet.FixedLenByteArray), c.defs, c.reps)
		default:
			t.Fatalf("%T", cw)
		}
		if err == nil {
			err = cw.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := rg.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func texts(s ...string) []parquet.ByteArray {
	out := make([]parquet.ByteArray, len(s))
	for i := range s {
		out[i] = parquet.ByteArray(s[i])
	}
	return out
}

// lines scans a file into JSON lines.
func lines(t testing.TB, data []byte, o basefile.ScanOptions, open basefile.Options) (string, error) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	open.Alloc = mem
	f, err := basefile.OpenBytes(context.Background(), "f.parquet", data, open)
	if err != nil {
		return "", err
	}
	var text []byte
	for b, err := range f.Scan(context.Background(), o) {
		if err != nil {
			return string(text), err
		}
		w, err := encode.NewJSON(b.Schema(), encode.Options{})
		if err != nil {
			t.Fatal(err)
		}
		text = w.Append(text, b)
		b.Release()
	}
	return strings.TrimSpace(string(text)), nil
}

func check(t *testing.T, data []byte, o basefile.ScanOptions, want string) {
	t.Helper()
	for _, rows := range []int{0, 1, 2} { // batches must not change what is read
		o.BatchRows = rows
		got, err := lines(t, data, o, basefile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if want = strings.TrimSpace(want); got != want {
			t.Fatalf("batches of %d: got\n%s\nwant\n%s", rows, got, want)
		}
	}
}

// The rules of the Parquet format for LIST groups of two and three levels, each with the rows [1,2], [], null, [3]
// (C097; trap 22). Where the element is a struct of one member, the name of the repeated group decides.
func TestListLayouts(t *testing.T) {
	list := pq.NewListLogicalType()
	i32 := parquet.Types.Int32
	twoLevel := chunk{[]int32{1, 2, 3}, []int16{2, 2, 1, 0, 2}, []int16{0, 1, 0, 0, 0}}
	threeLevel := chunk{[]int32{1, 2, 3}, []int16{3, 3, 1, 0, 3}, []int16{0, 1, 0, 0, 0}}
	withNull := chunk{[]int32{1, 3}, []int16{3, 2, 1, 0, 3}, []int16{0, 1, 0, 0, 0}}
	numbers := `{"a":[1,2]}` + "\n" + `{"a":[]}` + "\n" + `{"a":null}` + "\n" + `{"a":[3]}`
	structs := func(name string) string {
		return strings.NewReplacer("1", `{"`+name+`":1}`, "2", `{"`+name+`":2}`, "3", `{"`+name+`":3}`).Replace(numbers)
	}
	for _, c := range []struct {
		name  string
		inner pq.Node
		chunk chunk
		want  string
	}{
		{"repeated primitive", leaf("array", repeated, i32, nil, 0), twoLevel, numbers},
		{"repeated primitive of any name", leaf("element", repeated, i32, nil, 0), twoLevel, numbers},
		{"list.element", group("list", repeated, nil, leaf("element", optional, i32, nil, 0)), threeLevel, numbers},
		{"list.element with a null", group("list", repeated, nil, leaf("element", optional, i32, nil, 0)), withNull, strings.Replace(numbers, "2", "null", 1)},
		{"bag.array", group("bag", repeated, nil, leaf("array", optional, i32, nil, 0)), threeLevel, numbers},
		{"bag.array_element", group("bag", repeated, nil, leaf("array_element", optional, i32, nil, 0)), threeLevel, numbers},
		{"array of structs of one member", group("array", repeated, nil, leaf("x", optional, i32, nil, 0)), threeLevel, structs("x")},
		{"a_tuple of one member", group("a_tuple", repeated, nil, leaf("x", optional, i32, nil, 0)), threeLevel, structs("x")},
		{"b_tuple is a wrapper", group("b_tuple", repeated, nil, leaf("x", optional, i32, nil, 0)), threeLevel, numbers},
		{"struct in three levels", group("list", repeated, nil, group("element", required, nil, leaf("array", optional, i32, nil, 0))), threeLevel, structs("array")},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := write(t, parquet.NewWriterProperties(), []pq.Node{group("a", optional, list, c.inner)}, c.chunk)
			check(t, data, basefile.ScanOptions{}, c.want)
			// As the table has it: nullable elements.
			if strings.Contains(c.want, "[1,") {
				table := arrow.NewSchema([]arrow.Field{{Name: "a", Nullable: true, Type: arrow.ListOfField(arrow.Field{Name: "element", Type: arrow.PrimitiveTypes.Int64, Nullable: true})}}, nil)
				check(t, data, basefile.ScanOptions{Columns: table}, c.want)
			}
		})
	}
	t.Run("struct of two members in two levels", func(t *testing.T) {
		data := write(t, parquet.NewWriterProperties(), []pq.Node{group("a", optional, list, group("list", repeated, nil, leaf("x", optional, i32, nil, 0), leaf("y", required, i32, nil, 0)))},
			threeLevel, chunk{[]int32{7, 8, 9}, twoLevel.defs, twoLevel.reps})
		check(t, data, basefile.ScanOptions{}, `{"a":[{"x":1,"y":7},{"x":2,"y":8}]}`+"\n"+`{"a":[]}`+"\n"+`{"a":null}`+"\n"+`{"a":[{"x":3,"y":9}]}`)
	})
	t.Run("list of lists in two levels", func(t *testing.T) {
		// [[1,2],[]], null, [[3]]: the repeated group carries a LIST of its own.
		data := write(t, parquet.NewWriterProperties(), []pq.Node{group("a", optional, list, group("array", repeated, list, leaf("array", repeated, i32, nil, 0)))},
			chunk{[]int32{1, 2, 3}, []int16{3, 3, 2, 0, 3}, []int16{0, 2, 1, 0, 0}})
		check(t, data, basefile.ScanOptions{}, `{"a":[[1,2],[]]}`+"\n"+`{"a":null}`+"\n"+`{"a":[[3]]}`)
	})
	t.Run("repeated field without a list", func(t *testing.T) {
		data := write(t, parquet.NewWriterProperties(), []pq.Node{leaf("a", repeated, i32, nil, 0)}, chunk{[]int32{1, 2, 3}, []int16{1, 1, 0, 1}, []int16{0, 1, 0, 0}})
		check(t, data, basefile.ScanOptions{}, `{"a":[1,2]}`+"\n"+`{"a":[]}`+"\n"+`{"a":[3]}`)
	})
}

// Maps: inner names do not matter, the old MAP_KEY_VALUE stands on the outer or the inner group, values may be required.
func TestMapLayouts(t *testing.T) {
	str, i32 := parquet.Types.ByteArray, parquet.Types.Int32
	keys := chunk{texts("k", "l", "m"), []int16{2, 2, 1, 0, 2}, []int16{0, 1, 0, 0, 0}}
	values := chunk{[]int32{1, 3}, []int16{3, 2, 1, 0, 3}, []int16{0, 1, 0, 0, 0}}
	want := `{"m":{"k":1,"l":null}}` + "\n" + `{"m":{}}` + "\n" + `{"m":null}` + "\n" + `{"m":{"m":3}}`
	kv := func(name string, converted pq.ConvertedType, key, value string) pq.Node {
		return pq.Must(pq.NewGroupNodeConverted(name, repeated, []pq.Node{leaf(key, required, str, pq.StringLogicalType{}, -1), leaf(value, optional, i32, nil, 0)}, converted, -1))
	}
	outer := func(converted pq.ConvertedType, inner pq.Node) pq.Node {
		return pq.Must(pq.NewGroupNodeConverted("m", optional, []pq.Node{inner}, converted, -1))
	}
	for name, n := range map[string]pq.Node{
		"key_value":           outer(pq.ConvertedTypes.Map, kv("key_value", pq.ConvertedTypes.None, "key", "value")),
		"inner MAP_KEY_VALUE": outer(pq.ConvertedTypes.Map, kv("map", pq.ConvertedTypes.MapKeyValue, "key", "value")),
		"outer MAP_KEY_VALUE": outer(pq.ConvertedTypes.MapKeyValue, kv("map", pq.ConvertedTypes.None, "key", "value")),
		"other names":         outer(pq.ConvertedTypes.Map, kv("entries", pq.ConvertedTypes.None, "k", "v")),
	} {
		t.Run(name, func(t *testing.T) {
			check(t, write(t, parquet.NewWriterProperties(), []pq.Node{n}, keys, values), basefile.ScanOptions{}, want)
		})
	}
}

func bigEndian(width int, values ...int64) []parquet.FixedLenByteArray {
	out := make([]parquet.FixedLenByteArray, len(values))
	for i, v := range values {
		var b [16]byte
		for j := range b {
			b[j] = byte(v >> 63)
		}
		binary.BigEndian.PutUint64(b[8:], uint64(v))
		out[i] = b[16-width:]
	}
	return out
}

// C099: -1.25, -0.05, 0.00, 1.25 and null as decimal(5,2) in every physical form, and a filter over each.
func TestDecimalForms(t *testing.T) {
	dec := pq.NewDecimalLogicalType(5, 2)
	defs := []int16{1, 1, 1, 1, 0}
	unscaled := []int64{-125, -5, 0, 125}
	var variable []parquet.ByteArray
	for _, b := range [][]byte{{0x83}, {0xfb}, {0x00}, {0x7d}} {
		variable = append(variable, b)
	}
	want := `{"v":"-1.25"}` + "\n" + `{"v":"-0.05"}` + "\n" + `{"v":"0.00"}` + "\n" + `{"v":"1.25"}` + "\n" + `{"v":null}`
	for name, c := range map[string]struct {
		n pq.Node
		c chunk
	}{
		"int32":  {leaf("v", optional, parquet.Types.Int32, dec, 0), chunk{[]int32{-125, -5, 0, 125}, defs, nil}},
		"int64":  {leaf("v", optional, parquet.Types.Int64, dec, 0), chunk{unscaled, defs, nil}},
		"fixed":  {leaf("v", optional, parquet.Types.FixedLenByteArray, dec, 3), chunk{bigEndian(3, unscaled...), defs, nil}},
		"wide":   {leaf("v", optional, parquet.Types.FixedLenByteArray, dec, 16), chunk{bigEndian(16, unscaled...), defs, nil}},
		"binary": {leaf("v", optional, parquet.Types.ByteArray, dec, -1), chunk{variable, defs, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			data := write(t, parquet.NewWriterProperties(), []pq.Node{c.n}, c.c)
			check(t, data, basefile.ScanOptions{}, want)
			check(t, data, basefile.ScanOptions{Filter: predicate.Lt("v", 0), Exact: true}, `{"v":"-1.25"}`+"\n"+`{"v":"-0.05"}`)
			wider := arrow.NewSchema([]arrow.Field{{Name: "v", Type: &arrow.Decimal128Type{Precision: 20, Scale: 4}, Nullable: true}}, nil)
			check(t, data, basefile.ScanOptions{Columns: wider, Filter: predicate.Eq("v", "1.25"), Exact: true}, `{"v":"1.2500"}`)
		})
	}
}

func int96(julianDay int32, nanos int64) parquet.Int96 {
	var v parquet.Int96
	binary.LittleEndian.PutUint64(v[:], uint64(nanos))
	binary.LittleEndian.PutUint32(v[8:], uint32(julianDay))
	return v
}

// Julian day 2440588 is 1970-01-01; 2299161 is 1582-10-15, the first Gregorian day; 1721426 is 0001-01-01 of the proleptic
// Gregorian calendar; 2415021 is 1900-01-01. A writer may leave negative nanoseconds.
func TestInt96(t *testing.T) {
	data := write(t, parquet.NewWriterProperties(), []pq.Node{leaf("at", optional, parquet.Types.Int96, nil, 0)},
		chunk{[]parquet.Int96{int96(2440588, 0), int96(2440587, 86399999999999), int96(2415020, 43200000000000), int96(2299160, 1000), int96(1721426, 0), int96(2440589, -1000)}, []int16{1, 1, 1, 1, 1, 0, 1}, nil})
	check(t, data, basefile.ScanOptions{}, `
{"at":"1970-01-01T00:00:00.000000Z"}
{"at":"1969-12-31T23:59:59.999999Z"}
{"at":"1899-12-31T12:00:00.000000Z"}
{"at":"1582-10-14T00:00:00.000001Z"}
{"at":"0001-01-01T00:00:00.000000Z"}
{"at":null}
{"at":"1970-01-01T23:59:59.999999Z"}`)
}

// Every annotation of a leaf, as type and text.
func TestLeafTypes(t *testing.T) {
	i32, i64, str, fixed := parquet.Types.Int32, parquet.Types.Int64, parquet.Types.ByteArray, parquet.Types.FixedLenByteArray
	ts := func(utc bool, unit pq.TimeUnitType) pq.LogicalType { return pq.NewTimestampLogicalType(utc, unit) }
	for _, c := range []struct {
		name string
		node pq.Node
		v    any
		want string
	}{
		{"date", leaf("v", required, i32, pq.DateLogicalType{}, 0), []int32{-719162}, `"0001-01-01"`},
		{"int8", leaf("v", required, i32, pq.NewIntLogicalType(8, true), 0), []int32{-128}, `-128`},
		{"uint32", leaf("v", required, i32, pq.NewIntLogicalType(32, false), 0), []int32{-1}, `4294967295`},
		{"uint64", leaf("v", required, i64, pq.NewIntLogicalType(64, false), 0), []int64{-1}, `"18446744073709551615"`},
		{"time millis", leaf("v", required, i32, pq.NewTimeLogicalType(true, pq.TimeUnitMillis), 0), []int32{45296123}, `"12:34:56.123"`},
		{"time micros", leaf("v", required, i64, pq.NewTimeLogicalType(false, pq.TimeUnitMicros), 0), []int64{45296000123}, `"12:34:56.000123"`},
		{"time nanos", leaf("v", required, i64, pq.NewTimeLogicalType(false, pq.TimeUnitNanos), 0), []int64{45296000000123}, `"12:34:56.000000123"`},
		{"millis", leaf("v", required, i64, ts(true, pq.TimeUnitMillis), 0), []int64{-1}, `"1969-12-31T23:59:59.999Z"`},
		{"micros local", leaf("v", required, i64, ts(false, pq.TimeUnitMicros), 0), []int64{1709210096789012}, `"2024-02-29T12:34:56.789012"`},
		{"nanos", leaf("v", required, i64, ts(true, pq.TimeUnitNanos), 0), []int64{1}, `"1970-01-01T00:00:00.000000001Z"`},
		{"enum", leaf("v", required, str, pq.EnumLogicalType{}, -1), texts("RED"), `"RED"`},
		{"json", leaf("v", required, str, pq.JSONLogicalType{}, -1), texts(`{"a":1}`), `"{\"a\":1}"`},
		{"binary", leaf("v", required, str, nil, -1), texts("\x00\xff"), `"AP8="`},
		{"uuid", leaf("v", required, fixed, pq.UUIDLogicalType{}, 16), []parquet.FixedLenByteArray{[]byte("\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef")}, `"01234567-89ab-cdef-0123-456789abcdef"`},
		{"fixed", leaf("v", required, fixed, nil, 3), []parquet.FixedLenByteArray{[]byte("abc")}, `"YWJj"`},
		{"half", leaf("v", required, fixed, pq.Float16LogicalType{}, 2), []parquet.FixedLenByteArray{{0x00, 0x3e}}, `1.5`},
		{"bool", leaf("v", required, parquet.Types.Boolean, nil, 0), []bool{true}, `true`},
		{"decimal 76", leaf("v", required, fixed, pq.NewDecimalLogicalType(40, 2), 17), []parquet.FixedLenByteArray{append([]byte{0xff}, bigEndian(16, -5)[0]...)}, `"-0.05"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			check(t, write(t, parquet.NewWriterProperties(), []pq.Node{c.node}, chunk{values: c.v}), basefile.ScanOptions{}, `{"v":`+c.want+`}`)
		})
	}
}

// Every codec and both versions of data pages, with and without a dictionary, small pages and nulls.
func TestCodecsAndPages(t *testing.T) {
	n := 5000
	ids, defs, names := make([]int64, n), make([]int16, n), []parquet.ByteArray{}
	var want strings.Builder
	for i := range n {
		ids[i] = int64(i) * 3
		name := "null"
		if i%7 != 0 {
			defs[i] = 1
			names = append(names, parquet.ByteArray(fmt.Sprint("name ", i%50)))
			name = fmt.Sprintf("%q", fmt.Sprint("name ", i%50))
		}
		fmt.Fprintf(&want, "{\"id\":%d,\"name\":%s}\n", i*3, name)
	}
	nodes := []pq.Node{leaf("id", required, parquet.Types.Int64, nil, 0), leaf("name", optional, parquet.Types.ByteArray, pq.StringLogicalType{}, -1)}
	for name, codec := range map[string]compress.Compression{"none": compress.Codecs.Uncompressed, "snappy": compress.Codecs.Snappy, "gzip": compress.Codecs.Gzip, "zstd": compress.Codecs.Zstd, "lz4_raw": compress.Codecs.Lz4Raw, "brotli": compress.Codecs.Brotli} {
		for version, v := range map[string]parquet.DataPageVersion{"v1": parquet.DataPageV1, "v2": parquet.DataPageV2} {
			for _, dict := range []bool{true, false} {
				t.Run(fmt.Sprint(name, version, dict), func(t *testing.T) {
					props := parquet.NewWriterProperties(parquet.WithCompression(codec), parquet.WithDataPageVersion(v), parquet.WithDictionaryDefault(dict), parquet.WithDataPageSize(4000), parquet.WithBatchSize(100))
					data := write(t, props, nodes, chunk{ids, nil, nil}, chunk{names, defs, nil})
					got, err := lines(t, data, basefile.ScanOptions{Parallel: 2}, basefile.Options{})
					if err != nil {
						t.Fatal(err)
					}
					if got != strings.TrimSpace(want.String()) {
						t.Error("rows differ")
					}
				})
			}
		}
	}
}

// Projection of nested columns, other order, other case, missing columns with and without defaults (C077, C081, C083).
func TestProjectionAndEvolution(t *testing.T) {
	i32, str := parquet.Types.Int32, parquet.Types.ByteArray
	data := write(t, parquet.NewWriterProperties(), []pq.Node{
		leaf("id", required, i32, nil, 0),
		leaf("Name", optional, str, pq.StringLogicalType{}, -1),
		group("s", optional, nil, leaf("a", optional, i32, nil, 0), leaf("b", optional, str, pq.StringLogicalType{}, -1)),
		group("items", optional, pq.NewListLogicalType(), group("array", repeated, nil, leaf("x", required, i32, nil, 0))),
	}, chunk{[]int32{1, 2, 3}, nil, nil}, chunk{texts("A", "B"), []int16{1, 0, 1}, nil},
		chunk{[]int32{7}, []int16{2, 1, 0}, nil}, chunk{texts("p", "q"), []int16{2, 2, 0}, nil},
		chunk{[]int32{1, 2}, []int16{2, 2, 1, 0}, []int16{0, 1, 0, 0}})
	table, err := schema.ParseString(`{"type":"record","name":"t","fields":[
		{"name":"items","type":["null",{"type":"array","items":{"type":"record","name":"i","fields":[{"name":"y","type":["null","int"],"default":null},{"name":"x","type":"long"}]}}],"default":null},
		{"name":"name","type":["null","string"],"default":null},
		{"name":"id","type":"double"},
		{"name":"s","type":["null",{"type":"record","name":"s","fields":[{"name":"b","type":["null","string"],"default":null},{"name":"c","type":["null","int"],"default":null}]}],"default":null},
		{"name":"added","type":"int","default":5},
		{"name":"more","type":["null","string"],"default":null}]}`)
	if err != nil {
		t.Fatal(err)
	}
	want, err := table.Arrow()
	if err != nil {
		t.Fatal(err)
	}
	check(t, data, basefile.ScanOptions{Columns: want, Table: table}, `
{"items":[{"y":null,"x":1},{"y":null,"x":2}],"name":"A","id":1,"s":{"b":"p","c":null},"added":5,"more":null}
{"items":[],"name":null,"id":2,"s":{"b":"q","c":null},"added":5,"more":null}
{"items":null,"name":"B","id":3,"s":null,"added":5,"more":null}`)

	one := func(name string, dt arrow.DataType, null bool) basefile.ScanOptions {
		return basefile.ScanOptions{Columns: arrow.NewSchema([]arrow.Field{{Name: name, Type: dt, Nullable: null}}, nil)}
	}
	onlyNew := arrow.StructOf(arrow.Field{Name: "z", Type: arrow.PrimitiveTypes.Int32, Nullable: true})
	check(t, data, one("s", onlyNew, true), `{"s":{"z":null}}`+"\n"+`{"s":{"z":null}}`+"\n"+`{"s":null}`)
	for _, bad := range []basefile.ScanOptions{one("fresh", arrow.PrimitiveTypes.Int32, false), one("Name", arrow.PrimitiveTypes.Int32, true), one("id", arrow.FixedWidthTypes.Boolean, true)} {
		_, err := lines(t, data, bad, basefile.Options{})
		if !errors.Is(err, schema.ErrEvolution) || !strings.Contains(err.Error(), "f.parquet") || !strings.Contains(err.Error(), bad.Columns.Field(0).Name) {
			t.Errorf("%v: %v", bad.Columns, err)
		}
	}
}

// C095: one release labelled milliseconds as microseconds. The label is trusted unless repair is asked for, file by file.
func TestMislabelledMillis(t *testing.T) {
	ts := func(unit pq.TimeUnitType) []pq.Node {
		return []pq.Node{leaf("at", optional, parquet.Types.Int64, pq.NewTimestampLogicalType(true, unit), 0)}
	}
	col := func(v int64) chunk { return chunk{[]int64{v}, []int16{1}, nil} }
	millis := basefile.ScanOptions{Columns: arrow.NewSchema([]arrow.Field{{Name: "at", Nullable: true, Type: &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}}}, nil)}
	props := parquet.NewWriterProperties()
	good, scaled, bad := write(t, props, ts(pq.TimeUnitMillis), col(1720631224939)), write(t, props, ts(pq.TimeUnitMicros), col(1720631224939000)), write(t, props, ts(pq.TimeUnitMicros), col(1720631224939))
	const right, wrong = `{"at":"2024-07-10T17:07:04.939Z"}`, `{"at":"1970-01-20T21:57:11.224Z"}`
	for i, c := range []struct {
		data   []byte
		repair bool
		want   string
		warned int
	}{{good, false, right, 0}, {good, true, right, 0}, {scaled, false, right, 1}, {scaled, true, right, 1}, {bad, false, wrong, 1}, {bad, true, right, 1}} {
		warned := 0
		got, err := lines(t, c.data, millis, basefile.Options{RepairMillis: c.repair, Warn: func(string) { warned++ }})
		if err != nil || got != c.want || warned != c.warned {
			t.Errorf("%d: %s, %d warnings, %v; want %s, %d", i, got, warned, err, c.want, c.warned)
		}
	}
}

func newWriter(out *bytes.Buffer, root *pq.GroupNode) *file.Writer {
	return file.NewParquetWriter(out, root)
}
