package schema_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/internal/fixture"
)

// The history that Apache Hudi 0.15.0 wrote for: create, add a column, widen, rename, drop.
func TestInternalHistoryOfApacheHudi(t *testing.T) {
	dir, e := fixture.Spark(t, "cow_schema_on_read_0.15.0")
	files, err := filepath.Glob(filepath.Join(dir, ".hoodie", ".schema", "*.schemacommit"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	text, err := os.ReadFile(files[len(files)-1])
	if err != nil {
		t.Fatal(err)
	}
	h, err := schema.ParseInternalHistory(text)
	if err != nil {
		t.Fatal(err)
	}
	var versions []int64
	for _, v := range h {
		versions = append(versions, v.Version)
	}
	if want := []int64{20261129233343549, 20261129233342661, 20261129233341872, 20261129233340947, 0}; !reflect.DeepEqual(versions, want) {
		t.Fatalf("versions %v, want %v", versions, want)
	}
	for instant, want := range map[string]int64{"20261129233337549": 0, "20261129233340947": 20261129233340947, "20261129233344441": 20261129233343549, "20200101000000": 0} {
		if got := h.At(instant); got == nil || got.Version != want {
			t.Errorf("at %s: %v, want %d", instant, got, want)
		}
	}
	names := schema.FileNames(h.At("20261129233337549"), h[0])
	for path, want := range map[string]string{"id": "id", "qty": "qty", "new_name": "old_name", "added": "", "_hoodie_record_key": "_hoodie_record_key"} {
		if got, ok := names[path]; !ok || got != want {
			t.Errorf("%s is %q in the file, want %q", path, got, want)
		}
	}
	if _, there := names["doomed"]; there {
		t.Error("a dropped column has a name")
	}
	// Its Avro form is the schema that Apache Hudi gives for the table (with meta columns, as ALTER TABLE keeps them).
	want, err := schema.Parse(e.Schema)
	if err != nil {
		t.Fatal(err)
	}
	got, err := h[0].Record(want.Name)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != want.String() {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// A column that was dropped and added again under its name is another column; nested names follow ids too.
func TestInternalNames(t *testing.T) {
	in := func(text string) *schema.Internal {
		v, err := schema.ParseInternal([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	old := in(`{"max_column_id":9,"version_id":1,"type":"record","fields":[{"id":0,"name":"a","optional":true,"type":"int"},
		{"id":1,"name":"s","optional":true,"type":{"type":"record","fields":[{"id":2,"name":"x","optional":true,"type":"decimal(10, 2)"}]}},
		{"id":3,"name":"l","optional":true,"type":{"type":"array","element_id":4,"element":{"type":"record","fields":[{"id":5,"name":"p","optional":false,"type":"fixed[16]"}]},"element_optional":true}},
		{"id":6,"name":"m","optional":false,"type":{"type":"map","key_id":7,"key":"string","value_id":8,"value":"timestamp","value_optional":true}}]}`)
	now := in(`{"max_column_id":11,"version_id":2,"type":"record","fields":[{"id":10,"name":"a","optional":true,"type":"int"},
		{"id":1,"name":"st","optional":true,"type":{"type":"record","fields":[{"id":11,"name":"x","optional":true,"type":"int"},{"id":2,"name":"y","optional":true,"type":"decimal(12, 2)"}]}},
		{"id":3,"name":"l","optional":true,"type":{"type":"array","element_id":4,"element":{"type":"record","fields":[{"id":5,"name":"q","optional":false,"type":"fixed[16]"}]},"element_optional":true}},
		{"id":6,"name":"m","optional":false,"type":{"type":"map","key_id":7,"key":"string","value_id":8,"value":"timestamp","value_optional":true}}]}`)
	want := map[string]string{"a": "", "st": "s", "st.x": "", "st.y": "s.x", "l": "l", "l.element": "l.element", "l.element.q": "l.element.p", "m": "m", "m.key": "m.key", "m.value": "m.value"}
	if got := schema.FileNames(old, now); !reflect.DeepEqual(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	avro, err := old.Record("r")
	if err != nil {
		t.Fatal(err)
	}
	if got := avro.String(); got != `{"type":"record","name":"r","fields":[{"name":"a","type":["null","int"],"default":null},{"name":"s","type":["null",{"type":"record","name":"s","namespace":"r","fields":[{"name":"x","type":["null",{"type":"fixed","name":"fixed","namespace":"r.s.x","size":5,"logicalType":"decimal","precision":10,"scale":2}],"default":null}]}],"default":null},{"name":"l","type":["null",{"type":"array","items":["null",{"type":"record","name":"l","namespace":"r","fields":[{"name":"p","type":{"type":"fixed","name":"fixed","namespace":"r.l.p","size":16}}]}]}],"default":null},{"name":"m","type":{"type":"map","values":["null",{"type":"long","logicalType":"timestamp-micros"}]}}]}` {
		t.Error(got)
	}
}

func FuzzInternal(f *testing.F) {
	f.Add([]byte(`{"schemas":[{"max_column_id":1,"version_id":0,"type":"record","fields":[{"id":0,"name":"a","optional":true,"type":{"type":"array","element_id":1,"element":"decimal(3, 1)","element_optional":true}}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := schema.ParseInternalHistory(text)
		if err != nil {
			if !errors.Is(err, schema.ErrInternal) {
				t.Fatal(err)
			}
			return
		}
		for _, v := range h {
			_ = schema.FileNames(v, h[0])
			if _, err := v.Record("r"); err != nil && !errors.Is(err, schema.ErrInternal) {
				t.Fatal(err)
			}
		}
	})
}
