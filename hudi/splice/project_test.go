package splice_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/scalar"
	"github.com/parquet-go/parquet-go"

	"github.com/sluicelake/sluice/hudi/splice"
)

// forms are columns in physical forms of every kind, written by another writer.
type forms struct {
	Int      *int32     `parquet:"int,optional"`
	Byte     *int8      `parquet:"byte,optional"`
	Unsigned *uint32    `parquet:"unsigned,optional"`
	Text     *string    `parquet:"text,optional"`
	JSON     *string    `parquet:"json,optional,json"`
	Millis   *time.Time `parquet:"millis,optional,timestamp(millisecond)"`
	Micros   *time.Time `parquet:"micros,optional,timestamp(microsecond)"`
	Nanos    *time.Time `parquet:"nanos,optional,timestamp(nanosecond)"`
	Small    *int32     `parquet:"small,optional,decimal(2:9)"`
	Wide     *int64     `parquet:"wide,optional,decimal(2:18)"`
	Loose    *int64     `parquet:"loose,optional,decimal(2:9)"`
	UUID     [16]byte   `parquet:"uuid,optional,uuid"`
	Split    *float64   `parquet:"split,optional,split"`
	Needed   int32      `parquet:"needed"`
	One      string     `parquet:"one"`
	Nothing  *string    `parquet:"nothing,optional"`
}

func formsFile(t testing.TB, o ...parquet.WriterOption) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[forms](&b, append(o, parquet.Compression(&parquet.Snappy))...)
	at, n, l, s, f, i8, u := time.Date(2026, 11, 30, 1, 2, 3, 4000, time.UTC), int32(7), int64(9), "text", 1.5, int8(-3), uint32(5)
	row := forms{Int: &n, Byte: &i8, Unsigned: &u, Text: &s, JSON: &s, Millis: &at, Micros: &at, Nanos: &at, Small: &n, Wide: &l, Loose: &l, UUID: [16]byte{1}, Split: &f, One: "eu"}
	if _, err := w.Write([]forms{row, {One: "eu"}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Which forms are copied as what is promised, and which are not. "" is yes.
func TestCanCopy(t *testing.T) {
	data := formsFile(t)
	timestamp := func(u arrow.TimeUnit) arrow.DataType { return &arrow.TimestampType{Unit: u, TimeZone: "UTC"} }
	decimal := func(p int32) arrow.DataType { return &arrow.Decimal128Type{Precision: p, Scale: 2} }
	text, number := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32
	for _, c := range []struct {
		name string
		typ  arrow.DataType
		want splice.Want
		why  string
	}{
		{"int", number, splice.Want{}, ""},
		{"INT", number, splice.Want{}, ""}, // as columns are found elsewhere
		{"int", arrow.PrimitiveTypes.Int64, splice.Want{}, "column int: int32 in the file, int64 in the table"},
		{"int", number, splice.Want{Codec: "snappy"}, ""},
		{"int", number, splice.Want{Codec: "zstd"}, "row group 0, column int: compressed with snappy, not zstd"},
		{"byte", number, splice.Want{}, ""},
		{"unsigned", arrow.PrimitiveTypes.Int64, splice.Want{}, "column unsigned: INT32 in the file, int64 is promised as INT64"},
		{"text", text, splice.Want{}, ""},
		{"text", arrow.BinaryTypes.Binary, splice.Want{}, "column text: utf8 in the file, binary in the table"},
		{"json", text, splice.Want{}, ""},
		{"millis", timestamp(arrow.Millisecond), splice.Want{}, "column millis: timestamps in ms"},
		{"millis", timestamp(arrow.Microsecond), splice.Want{}, "column millis: timestamp[ms, tz=UTC] in the file, timestamp[us, tz=UTC] in the table"},
		{"micros", timestamp(arrow.Microsecond), splice.Want{}, ""},
		{"micros", timestamp(arrow.Microsecond), splice.Want{Int96: true}, "column micros: timestamps that are not INT96"},
		{"nanos", timestamp(arrow.Nanosecond), splice.Want{}, "column nanos: timestamps in ns"},
		{"small", decimal(9), splice.Want{}, ""},
		{"small", decimal(8), splice.Want{}, "column small: decimal(9, 2) in the file, decimal(8, 2) in the table"},
		{"wide", decimal(18), splice.Want{}, ""},
		{"loose", decimal(9), splice.Want{}, "column loose: decimal(9, 2) as INT64"},
		{"uuid", text, splice.Want{}, "column uuid: FIXED_LEN_BYTE_ARRAY in the file, utf8 is promised as BYTE_ARRAY"},
		{"split", arrow.PrimitiveTypes.Float64, splice.Want{}, "row group 0, column split: encoding 9"},
		{"needed", number, splice.Want{}, "column needed: it is required in the file, and the table's can be null"},
		{"absent", number, splice.Want{}, "column absent is not in the file"},
	} {
		c.want.Columns = arrow.NewSchema([]arrow.Field{{Name: c.name, Type: c.typ, Nullable: true}}, nil)
		out, why := tryCopy(t, open(t, data), c.want)
		if why != c.why {
			t.Errorf("%s as %s: %q, want %q", c.name, c.typ, why, c.why)
		}
		if why == "" {
			equalRows(t, c.name, data, out, c.want.Columns)
		}
	}
}

// Labels are those of the promise: JSON is text, a byte is an int, for readers that make types of labels.
func TestLabels(t *testing.T) {
	data := formsFile(t)
	fields := []arrow.Field{{Name: "byte", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, {Name: "json", Type: arrow.BinaryTypes.String, Nullable: true}}
	out, why := tryCopy(t, open(t, data), splice.Want{Columns: arrow.NewSchema(fields, nil)})
	if why != "" {
		t.Fatal(why)
	}
	text := openPeer(t, out).Schema().String() // it prints a plain int32 so
	if want := "message spark_schema {\n\toptional int32 byte (INT(32,true));\n\toptional binary json (STRING);\n}"; text != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
}

// A column that a reader takes from the path is copied when statistics prove that the file holds the same.
func TestConstants(t *testing.T) {
	for _, c := range []struct {
		name  string
		typ   arrow.DataType
		value scalar.Scalar
		same  bool
	}{
		{"one", arrow.BinaryTypes.String, scalar.NewStringScalar("eu"), true},
		{"one", arrow.BinaryTypes.String, scalar.NewStringScalar("us"), false},
		{"one", arrow.BinaryTypes.String, scalar.MakeNullScalar(arrow.BinaryTypes.String), false},
		{"text", arrow.BinaryTypes.String, scalar.NewStringScalar("text"), false}, // it has a null
		{"int", arrow.PrimitiveTypes.Int32, scalar.NewInt32Scalar(7), false},
		{"needed", arrow.PrimitiveTypes.Int32, scalar.NewInt32Scalar(0), true},
		{"nothing", arrow.BinaryTypes.String, scalar.MakeNullScalar(arrow.BinaryTypes.String), true},
		{"nothing", arrow.BinaryTypes.String, scalar.NewStringScalar(""), false},
	} {
		f := open(t, formsFile(t))
		nullable := f.Schema().Field(f.Schema().FieldIndices(c.name)[0]).Nullable
		columns := arrow.NewSchema([]arrow.Field{{Name: c.name, Type: c.typ, Nullable: nullable}}, nil)
		_, why := splice.CanCopy(f, splice.Want{Columns: columns, Constants: map[string]scalar.Scalar{c.name: c.value}})
		if same := why == ""; same != c.same || !same && !strings.Contains(why, "partition path") {
			t.Errorf("%s = %v: %q", c.name, c.value, why)
		}
	}
}

// Files of writers that readers treat with care are not passed on under another name.
func TestOldWriters(t *testing.T) {
	columns := arrow.NewSchema([]arrow.Field{{Name: "int", Type: arrow.PrimitiveTypes.Int32, Nullable: true}}, nil)
	for creator, old := range map[string]bool{
		"parquet-mr version 1.6.0": true, "parquet-mr version 1.8.1": false, "parquet-mr version 1.13.1": false,
		"parquet-cpp-arrow version 1.0.0": true, "parquet-cpp-arrow version 17.0.0": false, "DuckDB version v1.1.0": false,
	} {
		application, rest, _ := strings.Cut(creator, " version ")
		data := formsFile(t, parquet.CreatedBy(application, rest, "x"))
		if _, why := splice.CanCopy(open(t, data), splice.Want{Columns: columns}); (why != "") != old {
			t.Errorf("%s: %q", creator, why)
		}
	}
}

// Projections of different forms do not share a file.
func TestShape(t *testing.T) {
	data := formsFile(t)
	one := func(name string) *splice.Projection {
		typ := &arrow.Decimal128Type{Precision: map[string]int32{"small": 9, "wide": 18}[name], Scale: 2}
		p, why := splice.CanCopy(open(t, data), splice.Want{Columns: arrow.NewSchema([]arrow.Field{{Name: name, Type: typ, Nullable: true}}, nil)})
		if why != "" {
			t.Fatal(why)
		}
		return p
	}
	w := splice.NewWriter(new(bytes.Buffer), splice.WriterOptions{})
	if err := w.Append(t.Context(), one("small")); err != nil {
		t.Fatal(err)
	}
	if err := w.Append(t.Context(), one("wide")); err != splice.ErrShape {
		t.Errorf("another type: %v", err)
	}
	if err := w.Append(t.Context(), one("small")); err != nil || w.Rows() != 4 {
		t.Errorf("%d rows, %v", w.Rows(), err)
	}
}
