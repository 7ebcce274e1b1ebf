package sparksql

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

func fuzzSchema() *arrow.Schema {
	st := arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32}, arrow.Field{Name: "B", Type: arrow.BinaryTypes.String})
	return arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int32}, {Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "d", Type: arrow.PrimitiveTypes.Float64},
		{Name: "x", Type: &arrow.Decimal128Type{Precision: 10, Scale: 2}}, {Name: "ts", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
		{Name: "arr", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32)}, {Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32)}, {Name: "st", Type: st, Nullable: true},
	}, nil)
}

// Any text is either a statement or an error of ours with a place in it.
func FuzzCompile(f *testing.F) {
	lines, err := os.ReadFile("../testdata/spark.sql.txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(lines)) {
		f.Add(strings.TrimSpace(line))
	}
	schema := fuzzSchema()
	f.Fuzz(func(t *testing.T, text string) {
		for _, sql := range []string{text, "SELECT " + text + " FROM src"} {
			plan, err := Compile([]string{sql}, "src", schema)
			var e *Error
			if err != nil && errors.As(err, &e) && (e.Offset < 0 || e.Offset > len(sql)) {
				t.Errorf("%q: offset %d", sql, e.Offset)
			}
			if err != nil && strings.Contains(err.Error(), "internal error") {
				t.Errorf("%q: %v", sql, err)
			}
			if err == nil && (plan.SQL == "" || len(plan.Columns) == 0) {
				t.Errorf("%q: an empty plan", sql)
			}
		}
	})
}

// A date pattern reads what it wrote, as long as it writes every field.
func FuzzPattern(f *testing.F) {
	f.Add("yyyy-MM-dd HH:mm:ss.SSSSSS", int64(1700000000123456))
	f.Add("d MMM yyyy h:mm a[ss]", int64(-1))
	f.Add("''yyyy'T'D", int64(0))
	f.Fuzz(func(t *testing.T, text string, micros int64) {
		micros %= 200000000000000000 // years to 8300
		p, err := compilePattern(text)
		if err != nil {
			return
		}
		s := p.format(micros)
		if _, ok := p.parse(s); ok && len(s) > 1<<20 {
			t.Errorf("%q makes %d bytes", text, len(s))
		}
		if text == "yyyy-MM-dd HH:mm:ss.SSSSSS" && micros > -62135596800000000 {
			if back, ok := p.parse(s); !ok || back != micros {
				t.Errorf("%d is written %s and read %d", micros, s, back)
			}
		}
	})
}
