package schema_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/internal/fixture"
)

func parse(t testing.TB, text string) *schema.Type {
	t.Helper()
	s, err := schema.ParseString(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Schemas that Apache Hudi wrote read and write back unchanged, and Arrow's form of them becomes the same schema again, names
// of nested records and fixed types included. (Order of JSON members aside, as Avro's Java writes another.)
func TestSchemasOfApacheHudi(t *testing.T) {
	for _, name := range fixture.SparkNames(t, "cow_types*", "mor_types*", "mor_legacy*", "cow_timestamp_ntz*", "mor_schema_evolution*", "cow_partitions_typed*") {
		t.Run(name, func(t *testing.T) {
			_, e := fixture.Spark(t, name)
			s, err := schema.Parse(e.Schema)
			if err != nil {
				t.Fatal(err)
			}
			again := parse(t, s.String())
			if again.String() != s.String() {
				t.Errorf("written\n%s\nread back\n%s", s, again)
			}
			var want, got any
			if json.Unmarshal(e.Schema, &want) != nil || json.Unmarshal([]byte(s.String()), &got) != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("written\n%s\nApache Hudi\n%s", s, e.Schema)
			}
			a, err := s.Arrow()
			if err != nil {
				t.Fatal(err)
			}
			made, err := schema.FromArrow(a, s.Name)
			if err != nil {
				t.Fatal(err)
			}
			// 0.14.0 put null last in elements of arrays and maps: ["int","null"].
			if made.String() != s.String() && e.Hudi != "0.14.0" {
				t.Errorf("from Arrow\n%s\nApache Hudi\n%s", made, s)
			}
		})
	}
}

func TestMetaColumns(t *testing.T) {
	table := parse(t, `{"type":"record","name":"r","fields":[{"name":"id","type":"int"},{"name":"_hoodie_record_key","type":"string"},{"name":"_hoodie_is_deleted","type":"boolean"}]}`)
	with := schema.WithMeta(table)
	var names []string
	for _, f := range with.Fields {
		names = append(names, f.Name)
	}
	if got := strings.Join(names, " "); got != "_hoodie_commit_time _hoodie_commit_seqno _hoodie_record_key _hoodie_partition_path _hoodie_file_name id _hoodie_is_deleted" {
		t.Error(got)
	}
	if with.Fields[2].Type.Kind != schema.String || with.Fields[0].Type.String() != `["null","string"]` || string(with.Fields[0].Default) != "null" {
		t.Error(with)
	}
	if schema.WithMeta(with).String() != with.String() {
		t.Error("not stable")
	}
	if n := len(schema.WithoutMeta(with).Fields); n != 2 || len(table.Fields) != 3 {
		t.Error(n, len(table.Fields))
	}
}

func TestParseRefuses(t *testing.T) {
	deep := strings.Repeat(`{"type":"array","items":`, 100) + `"int"` + strings.Repeat("}", 100)
	for _, text := range []string{``, `"nothing"`, `{}`, `[["null"]]`, `{"type":"record","fields":[]}`, `{"type":"record","name":"r","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}`,
		`{"type":"fixed","name":"f","size":-1}`, `{"type":"map"}`, `{"type":"record","name":"r","fields":[{"name":"a"}]}`, deep, `{"type":"enum","name":"e","symbols":"x"}`} {
		if s, err := schema.ParseString(text); !errors.Is(err, schema.ErrSchema) {
			t.Errorf("%.60s: %v %v", text, s, err)
		}
	}
	recursive := parse(t, `{"type":"record","name":"r","fields":[{"name":"next","type":["null","r"]}]}`)
	if _, err := recursive.Arrow(); !errors.Is(err, schema.ErrSchema) {
		t.Error(err)
	}
}

func TestDecimalBytes(t *testing.T) {
	for precision, want := range map[int]int{1: 1, 2: 1, 3: 2, 9: 4, 10: 5, 12: 6, 15: 7, 18: 8, 19: 9, 38: 16} {
		if got := schema.DecimalBytes(precision); got != want {
			t.Errorf("precision %d: %d bytes, want %d", precision, got, want)
		}
	}
}

func TestFromArrowOfOtherTypes(t *testing.T) {
	s := arrow.NewSchema([]arrow.Field{
		{Name: "i8", Type: arrow.PrimitiveTypes.Int8}, {Name: "u64", Type: arrow.PrimitiveTypes.Uint64, Nullable: true},
		{Name: "ns", Type: &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}}, {Name: "s", Type: &arrow.TimestampType{Unit: arrow.Second}},
		{Name: "dict", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}},
	}, nil)
	got, err := schema.FromArrow(s, "hoodie.t.t_record")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"record","name":"t_record","namespace":"hoodie.t","fields":[{"name":"i8","type":"int"},{"name":"u64","type":["null",{"type":"fixed","name":"fixed","namespace":"hoodie.t.t_record.u64","size":9,"logicalType":"decimal","precision":20,"scale":0}],"default":null},{"name":"ns","type":{"type":"long","logicalType":"timestamp-micros"}},{"name":"s","type":{"type":"long","logicalType":"local-timestamp-millis"}},{"name":"dict","type":"string"}]}`
	if got.String() != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	bad := arrow.NewSchema([]arrow.Field{{Name: "m", Type: arrow.MapOf(arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String)}}, nil)
	if _, err := schema.FromArrow(bad, "r"); !errors.Is(err, schema.ErrSchema) {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"type":"record","name":"r","namespace":"n","fields":[{"name":"a","type":["null",{"type":"fixed","name":"f","size":5,"logicalType":"decimal","precision":10,"scale":2}],"default":null},{"name":"b","type":{"type":"array","items":["null","f"]}},{"name":"m","type":{"type":"map","values":{"type":"enum","name":"e","symbols":["A"]}}}]}`))
	f.Add([]byte(`["null","int"]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := schema.Parse(text)
		if err != nil {
			if !errors.Is(err, schema.ErrSchema) {
				t.Fatal(err)
			}
			return
		}
		_, _ = s.Arrow() // may refuse, must return
		again, err := schema.Parse([]byte(s.String()))
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		if again.String() != s.String() {
			t.Fatalf("%s became %s", s, again)
		}
	})
}
