package rows

import (
	"strings"
	"testing"
)

func decode(t *testing.T, text string) []Row {
	t.Helper()
	rows, err := Decode(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func columns(t *testing.T, lines ...string) []Column {
	t.Helper()
	c, err := ParseColumns(lines)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Values that are the same under another spelling are equal; values that look alike and differ are not.
func TestDiffByType(t *testing.T) {
	for _, c := range []struct {
		kind, want, got string
		same            bool
	}{
		{"float", `1.100000023841858`, `1.1`, true},
		{"double", `1.100000023841858`, `1.1`, false},
		{"double", `1`, `1.0`, true},
		{"double", `1e16`, `10000000000000000`, true},
		{"double", `0.0`, `-0.0`, false},
		{"double", `"NaN"`, `"NaN"`, true},
		{"double", `"NaN"`, `null`, false},
		{"bigint", `9223372036854775807`, `9223372036854775806`, false},
		{"decimal(10,2)", `"1.50"`, `"1.5"`, false},
		{"timestamp", `"2024-02-29T12:34:56.123000Z"`, `"2024-02-29T12:34:56.123Z"`, true},
		{"timestamp", `"2024-02-29T12:34:56.123000Z"`, `"2024-02-29T12:34:56.123000"`, false},
		{"array<float>", `[1.100000023841858,null]`, `[1.1,null]`, true},
		{"array<int>", `[1,2]`, `[2,1]`, false},
		{"map<int,string>", `{"1":"a"}`, `[{"key":1,"value":"a"}]`, true},
		{"map<string,struct<a:float>>", `{"k":{"a":1.100000023841858}}`, `{"k":{"a":1.1}}`, true},
		{"struct<a:int,b:array<map<string,int>>>", `{"a":1,"b":[{"x":1}]}`, `{"b":[{"x":1}],"a":1}`, true},
		{"string", `"1.0"`, `"1"`, false},
		{"string", `null`, `""`, false},
	} {
		want := Set{Columns: columns(t, "c "+c.kind), Rows: decode(t, `{"c":`+c.want+`}`)}
		got := Set{Rows: decode(t, `{"c":`+c.got+`}`)}
		if d := Diff(want, got, Options{}); (d == "") != c.same {
			t.Errorf("%s: %s and %s: same %v, want %v\n%s", c.kind, c.want, c.got, d == "", c.same, d)
		}
	}
}

func TestDiffCountsRowsAndNamesColumns(t *testing.T) {
	want := Set{Columns: columns(t, "id int", "odd name int"), Rows: decode(t, `{"id":1,"odd name":1} {"id":1,"odd name":1} {"id":2,"odd name":2}`)}
	got := Set{Rows: decode(t, `{"id":1,"odd name":1} {"id":2,"odd name":3} {"id":2,"odd name":2}`)}
	d := Diff(want, got, Options{Key: []string{"id"}})
	for _, part := range []string{"want 3, got 3", `missing: {"id": 1, "odd name": 1}`, `not wanted: {"id": 2, "odd name": 3}`} {
		if !strings.Contains(d, part) {
			t.Errorf("no %q in\n%s", part, d)
		}
	}
	if d := Diff(want, got, Options{Key: []string{"id"}, Ignore: []string{"odd name", "id"}}); d != "" {
		t.Errorf("only ignored columns differ:\n%s", d)
	}
	d = Diff(Set{Rows: decode(t, `{"id":1,"a":1,"b":2}`)}, Set{Rows: decode(t, `{"id":1,"a":2,"c":2}`)}, Options{Key: []string{"id"}})
	for _, part := range []string{"id=1", "a want 1, got 2", "no column b", "column c not wanted"} {
		if !strings.Contains(d, part) {
			t.Errorf("no %q in\n%s", part, d)
		}
	}
}

// The digest was made by Python's json and hashlib over the same two rows.
func TestDigest(t *testing.T) {
	s := Set{
		Columns: columns(t, "f float", "d double", "e double", "i bigint", "s string", "m map<string,int>", "z double", "h double"),
		Rows: decode(t, `{"_hoodie_record_key":null,"_hoodie_partition_path":"p","f":0.5,"d":5e-324,"e":1e-4,"i":-1,"s":"","m":{},"z":0,"h":1e22}
			{"_hoodie_record_key":"2","_hoodie_partition_path":"","f":1.1,"d":1E+16,"e":0.00001,"i":9223372036854775807,
			"s":"ü\"\\\n\u0001😀`+"\x7f"+`","m":{"b":1,"a":null},"z":-0.0,"h":123456789012345.6}`),
	}
	if got, want := s.SHA256(), "30c5b94783489f188d405a2b8953b802dfa1e716d1552d87ecaa47f7db00d440"; got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	if got, want := PythonJSON(s.Rows[1]["s"], true), `"\u00fc\"\\\n\u0001\ud83d\ude00\u007f"`; got != want {
		t.Errorf("ASCII %s, want %s", got, want)
	}
}

func TestTypeRoundTrip(t *testing.T) {
	for _, text := range []string{"int", "decimal(10,2)", "array<map<string,int>>", "struct<a:int,b:struct<c:array<decimal(3,1)>>>"} {
		if k, err := ParseType(text); err != nil || k.String() != text {
			t.Errorf("%s became %s (%v)", text, k, err)
		}
	}
}

func TestTypesThatDoNotParse(t *testing.T) {
	for _, line := range []string{"int", "a struct<b>", "a array<int"} {
		if _, err := ParseColumns([]string{line}); err == nil {
			t.Errorf("%q parsed", line)
		}
	}
}
