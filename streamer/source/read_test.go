package source

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/sluicelake/sluice/hudi/encode"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/orc"
)

func parse(t testing.TB, text string) *schema.Type {
	t.Helper()
	s, err := schema.ParseString(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rows reads everything as JSON Lines.
func rows(t testing.TB, in *Input) (string, error) {
	t.Helper()
	var out []byte
	var e *encode.JSON
	for batch, err := range in.Batches {
		if err != nil {
			return string(out), err
		}
		if e == nil {
			if e, err = encode.NewJSON(in.Schema, encode.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		out = e.Append(out, batch)
		batch.Release()
	}
	return string(out), nil
}

func fetch(t testing.TB, f *Files) (string, *Input, error) {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	f.Alloc = mem
	in, err := f.Fetch(t.Context(), Cursor{}, NoLimit)
	if err != nil {
		return "", nil, err
	}
	text, err := rows(t, in)
	return text, in, err
}

const eventSchema = `{"type":"record","name":"ev","fields":[
 {"name":"id","type":"string"},{"name":"region","type":"string"},{"name":"qty","type":["null","int"],"default":null},
 {"name":"ts","type":"long"},{"name":"_hoodie_is_deleted","type":["null","boolean"],"default":null}]}`

// The first three are what the original streamer of release 0.14.0 stored for these lines (its fixtures json_coercions); the
// others follow its converter's rules.
func TestJSONCoercions(t *testing.T) {
	wide := parse(t, `{"type":"record","name":"ev","fields":[
	 {"name":"id","type":"string"},{"name":"region","type":"string"},{"name":"qty","type":["null","int"],"default":null},{"name":"ts","type":"long"},
	 {"name":"f","type":["null","float"],"default":null},{"name":"d","type":["double","null"],"default":7},
	 {"name":"dec","type":["null",{"type":"bytes","logicalType":"decimal","precision":6,"scale":2}],"default":null},
	 {"name":"day","type":["null",{"type":"int","logicalType":"date"}],"default":null},
	 {"name":"at","type":["null",{"type":"long","logicalType":"timestamp-micros"}],"default":null},
	 {"name":"tags","type":["null",{"type":"array","items":"int"}],"default":null},
	 {"name":"m","type":["null",{"type":"map","values":"string"}],"default":null},
	 {"name":"r","type":["null",{"type":"record","name":"r","fields":[{"name":"a","type":"int","default":5},{"name":"b","type":["null","string"]}]}],"default":null},
	 {"name":"fix","type":["null",{"type":"fixed","name":"fx","size":3}],"default":null},
	 {"name":"e","type":["null",{"type":"enum","name":"en","symbols":["A","B"]}],"default":null}]}`)
	const tail = `"f":null,"d":null,"dec":null,"day":null,"at":null,"tags":null,"m":null,"r":null,"fix":null,"e":null}`
	f := newFolder(t)
	lines := []struct{ in, want string }{
		{`{"id":"h1","region":"us","qty":"12","ts":1}`, `{"id":"h1","region":"us","qty":12,"ts":1,` + tail},
		{`{"id":"h2","region":"us","qty":1,"ts":1.9}`, `{"id":"h2","region":"us","qty":1,"ts":1,` + tail},
		{`{"id":7,"region":"us","qty":1,"ts":1}`, `{"id":"7","region":"us","qty":1,"ts":1,` + tail},
		{` { "ts" : -1.9e0, "more":{"x":[1,{"y":"}"}]}, "id":1.0E10,"region":true,"id":"last" } `, `{"id":"last","region":"true","qty":null,"ts":-1,` + tail},
		{`{"id":{"a":1,"b":["x",null,2.50]},"region":"\u00e9\ud83d\ude00\n","ts":"5"}`, `{"id":"{a=1, b=[x, null, 2.5]}","region":"é😀\n","qty":null,"ts":5,` + tail},
		{`{"id":"x","region":"r","ts":1,"f":"1.5f","d":"NaN","dec":"12.30","day":"2020-02-29","at":"2020-01-20T21:11:24.5Z","tags":[1,"2",3.7],"m":{"k":1,"j":"v"},"r":{"a":5,"b":2},"fix":[1,-1,255],"e":"B"}`,
			`{"id":"x","region":"r","qty":null,"ts":1,"f":1.5,"d":"NaN","dec":"12.30","day":"2020-02-29","at":"2020-01-20T21:11:24.500000Z","tags":[1,2,3],"m":{"k":"1","j":"v"},"r":{"a":5,"b":"2"},"fix":"Af//","e":"B"}`},
		{`{"id":"y","region":"r","ts":1,"f":16777217,"d":1,"dec":-3,"day":18321,"at":1579554684500000,"tags":[],"m":{},"r":null,"fix":null,"e":null}`,
			`{"id":"y","region":"r","qty":null,"ts":1,"f":16777216,"d":1,"dec":"-3.00","day":"2020-02-29","at":"2020-01-20T21:11:24.500000Z","tags":[],"m":{},"r":null,"fix":null,"e":null}`},
	}
	var text, want string
	for _, l := range lines {
		text += l.in + "\n"
		want += l.want + "\n"
	}
	f.put("a.json", text, 1000)
	got, _, err := fetch(t, &Files{Format: JSON, Selector: Selector{Store: f.store}, Schema: wide})
	if err != nil || got != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
}

// What the original refuses, by name of file and line; and what it stores as another value, which we refuse.
func TestJSONBadLines(t *testing.T) {
	for bad, want := range map[string]string{
		`{"id":"h4","region":"us","qty":"x","ts":1}`: `field ev.qty: For input string: "x"`,
		`not json`: `unrecognized token "not"`,
		``:         `blank line`,
		`{"id":null,"region":"us","qty":1,"ts":1}`:         `null value for (non-nullable) string at ev.id`,
		`{"id":"k","region":null,"qty":1,"ts":1}`:          `null value for (non-nullable) string at ev.region`,
		`{"id":"a","region":"us","ts":1`:                   `the text ends in the middle`,
		`{"id":"a","region":"us","qty":3000000000,"ts":1}`: `outside of a number of 32 bits`,
		`{"id":"a","region":"us","qty":true,"ts":1}`:       `a number was expected`,
		`{"id":"a","region":"us","ts":1} {}`:               `follows the object`,
		`[1]`:                                              `an object was expected`,
		`{"id":"a` + "\x01" + `","region":"us","ts":1}`:    `a control character`,
		`{"id":"a","region":"us","ts":01}`:                 `not a number`,
	} {
		f := newFolder(t)
		f.put("d/bad.json", `{"id":"a","region":"eu","ts":1}`+"\n"+bad+"\n"+`{"id":"b","region":"eu","ts":1}`+"\n", 1000)
		src := &Files{Format: JSON, Selector: Selector{Store: f.store}, Schema: parse(t, eventSchema)}
		_, _, err := fetch(t, src)
		var record *RecordError
		if !errors.As(err, &record) || record.Line != 2 || !strings.HasSuffix(record.File, "d/bad.json") || record.Text != bad || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want line 2 and %q", bad, err, want)
		}
		var rejected []string
		src.Reject = func(r *RecordError) error { rejected = append(rejected, fmt.Sprint(r.Line)); return nil }
		got, in, err := fetch(t, src)
		if err != nil || strings.Count(got, "\n") != 2 || strings.Join(rejected, " ") != "2" || !strings.HasSuffix(in.Place(1), "d/bad.json:3") {
			t.Errorf("%s put aside: %v, rejected %v, row 1 at %s, got %s", bad, err, rejected, in.Place(1), got)
		}
	}
}

// Several files, some larger than a chunk, come in order of their times whatever is decoded first; arrays are cut between their
// elements; compressed files read as the others.
func TestJSONOrderAndForms(t *testing.T) {
	f := newFolder(t)
	s := parse(t, `{"type":"record","name":"r","fields":[{"name":"n","type":"long"},{"name":"pad","type":"string"}]}`)
	const each = 30_000
	make := func(from int, array bool) []byte {
		var b bytes.Buffer
		if array {
			b.WriteString(" [\n")
		}
		for i := range each {
			if array && i > 0 {
				b.WriteString(",\n")
			}
			fmt.Fprintf(&b, `{"n":%d,"pad":"],}{[ \" %0100d"}`, from+i, i)
			if !array {
				b.WriteByte('\n')
			}
		}
		if array {
			b.WriteString("\n]\n")
		}
		return b.Bytes()
	}
	gz := func(in []byte) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := w.Write(in)
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	hadoop := func(in []byte) []byte {
		body := snappy.Encode(nil, in)
		out := binary.BigEndian.AppendUint32(nil, uint32(len(in)))
		return append(binary.BigEndian.AppendUint32(out, uint32(len(body))), body...)
	}
	f.put("z.json", string(make(0, false)), 1000)
	f.put("y.json", string(make(each, true)), 2000)
	f.put("x.json.gz", string(gz(make(2*each, false))), 3000)
	f.put("w.json.zst", string(enc.EncodeAll(make(3*each, true), nil)), 4000)
	f.put("v.json.snappy", string(hadoop(make(4*each, false))), 5000)
	src := &Files{Format: JSON, Selector: Selector{Store: f.store}, Schema: s, Options: Options{Parallel: 4}}
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	src.Alloc = mem
	in, err := src.Fetch(t.Context(), Cursor{}, NoLimit)
	if err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	for batch, err := range in.Batches {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(batch.NumRows()) {
			if got := batch.Column(0).ValueStr(i); got != fmt.Sprint(n) {
				t.Fatalf("row %d is %s", n, got)
			}
			n++
		}
		batch.Release()
	}
	if n != 5*each {
		t.Errorf("%d rows", n)
	}
	if at := in.Place(each + 10); !strings.HasSuffix(at, "y.json:12") {
		t.Errorf("row of the array is at %s", at)
	}
	if at := in.Place(4*each + 17); !strings.HasSuffix(at, "v.json.snappy:18") {
		t.Errorf("row of the last file is at %s", at)
	}
	// A reader that stops early leaves nothing behind.
	if in, err = src.Fetch(t.Context(), Cursor{}, NoLimit); err != nil {
		t.Fatal(err)
	}
	for batch := range in.Batches {
		batch.Release()
		break
	}
	// A context that ends is an error, never a short input.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if in, err = src.Fetch(ctx, Cursor{}, NoLimit); err != nil {
		t.Fatal(err)
	}
	var last error
	for batch, err := range in.Batches {
		if last = err; err == nil {
			batch.Release()
		}
		cancel()
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("cancelled: %v", last)
	}
}

func TestTruncatedTexts(t *testing.T) {
	whole := `[{"n":1,"pad":"a"},{"n":2,"pad":"b"}]`
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	if _, err := w.Write([]byte(strings.Repeat(`{"n":1,"pad":"aöldkfjaölskdjf"}`+"\n", 1000))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s := parse(t, `{"type":"record","name":"r","fields":[{"name":"n","type":"long"},{"name":"pad","type":"string"}]}`)
	for name, text := range map[string]string{"cut.json": whole[:len(whole)-1], "cut2.json": whole[:25], "cut.json.gz": gz.String()[:gz.Len()-20], "no.json.gz": "hello"} {
		f := newFolder(t)
		f.put(name, text, 1000)
		if _, _, err := fetch(t, &Files{Format: JSON, Selector: Selector{Store: f.store}, Schema: s}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func csvRows(t *testing.T, text string, s *schema.Type, options map[string]string, reject func(*RecordError) error) (string, *Input, error) {
	t.Helper()
	o, err := ParseCSVOptions(options)
	if err != nil {
		return "", nil, err
	}
	f := newFolder(t)
	f.put("a.csv", text, 1000)
	return fetch(t, &Files{Format: CSV, Selector: Selector{Store: f.store}, Schema: s, CSV: o, Options: Options{Reject: reject}})
}

func TestCSV(t *testing.T) {
	const qty = `{"type":"record","name":"ev","fields":[{"name":"id","type":"string"},{"name":"region","type":"string"},{"name":"qty","type":["null","int"],"default":null},{"name":"ts","type":"long"}]}`
	const strs = `{"type":"record","name":"s","fields":[{"name":"a","type":["null","string"]},{"name":"b","type":["null","string"]}]}`
	const types = `{"type":"record","name":"s","fields":[{"name":"d","type":["null","double"]},{"name":"m","type":["null",{"type":"bytes","logicalType":"decimal","precision":5,"scale":2}]},
	 {"name":"b","type":["null","boolean"]},{"name":"day","type":["null",{"type":"int","logicalType":"date"}]},{"name":"at","type":["null",{"type":"long","logicalType":"timestamp-millis"}]}]}`
	for _, c := range []struct {
		name, schema, text string
		options            map[string]string
		want               string
	}{
		// The first three are the fixtures csv_inferred, csv_no_header and csv_schema of the original, release 0.14.0.
		{"inferred", "", "id,region,qty,price,ts,note\na,eu,1,1.5,10,\"x, \"\"q\"\"\"\nb,us,,2,11,\n", map[string]string{"header": "true"},
			`{"id":"a","region":"eu","qty":1,"price":1.5,"ts":10,"note":"\"x, \"\"q\"\"\""}` + "\n" + `{"id":"b","region":"us","qty":null,"price":2,"ts":11,"note":null}` + "\n"},
		{"no header", "", "a,eu,1\n", nil, `{"_c0":"a","_c1":"eu","_c2":1}` + "\n"},
		{"schema", qty, "a;eu;1;10\nb;us;;11\nc;eu;notanumber;12\n", map[string]string{"sep": ";"},
			`{"id":"a","region":"eu","qty":1,"ts":10}` + "\n" + `{"id":"b","region":"us","qty":null,"ts":11}` + "\n" + `{"id":"c","region":"eu","qty":null,"ts":12}` + "\n"},
		{"quotes and escapes", strs, `"a\"b","c\\d"` + "\r\n" + `"x,y" , z` + "\n\n" + `"",''` + "\n", nil,
			`{"a":"a\"b","b":"c\\d"}` + "\n" + `{"a":"x,y","b":" z"}` + "\n" + `{"a":null,"b":"''"}` + "\n"},
		{"escape is the quote", strs, `"a""b","c"` + "\n", map[string]string{"escape": `"`}, `{"a":"a\"b","b":"c"}` + "\n"},
		{"blanks", strs, "  a b  ,\t c \n", map[string]string{"ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"}, `{"a":"a b","b":"c"}` + "\n"},
		{"null and empty", strs, "NULL,\"\"\n,x\n", map[string]string{"nullValue": "NULL"}, `{"a":null,"b":""}` + "\n" + `{"a":null,"b":"x"}` + "\n"},
		{"comment and other separator", strs, "#no\na||b\n", map[string]string{"comment": "#", "sep": "||"}, `{"a":"a","b":"b"}` + "\n"},
		{"lines in values", strs, "\"a\nb\",c\n\"d\",\"e\r\nf\"\n", map[string]string{"multiLine": "true"}, `{"a":"a\nb","b":"c"}` + "\n" + `{"a":"d","b":"e\r\nf"}` + "\n"},
		{"lines in values, of a file of Windows", strs, "\"a\r\nb\",c\r\n\"d\",\"e\nf\"\r\n", map[string]string{"multiLine": "true"}, `{"a":"a\nb","b":"c"}` + "\n" + `{"a":"d","b":"e\nf"}` + "\n"},
		{"short and long records", strs, "a\nb,c,d\n", nil, `{"a":"a","b":null}` + "\n" + `{"a":"b","b":"c"}` + "\n"},
		{"dropped", qty, "a,b,1,2\na,b,x,3\na,b\n", map[string]string{"mode": "dropmalformed"}, `{"id":"a","region":"b","qty":1,"ts":2}` + "\n"},
		{"types", types, "NaN,12.345,TRUE,2020-02-29,2020-02-29 10:11:12.5\n-Inf,-1.005,false,2020-2-9,2020-02-29\n1e3,1000,maybe,x,y\n", nil,
			`{"d":"NaN","m":"12.35","b":true,"day":"2020-02-29","at":"2020-02-29T10:11:12.500Z"}` + "\n" +
				`{"d":"-Infinity","m":"-1.01","b":false,"day":"2020-02-09","at":"2020-02-29T00:00:00.000Z"}` + "\n" +
				`{"d":1000,"m":null,"b":null,"day":null,"at":null}` + "\n"},
		{"formats", types, "1,1,true,29/02/2020,29.02.2020 1:02 +0100\n", map[string]string{"dateFormat": "dd/MM/yyyy", "timestampFormat": "dd.MM.yyyy H:mm[:ss] Z"},
			`{"d":1,"m":"1.00","b":true,"day":"2020-02-29","at":"2020-02-29T00:02:00.000Z"}` + "\n"},
		{"header in another order", strs, "b,A\n1,2\n", map[string]string{"header": "true"}, `{"a":"2","b":"1"}` + "\n"},
		{"more and fewer columns, in their places", strs, "A,c,d\n1,2,3\n", map[string]string{"header": "true"}, `{"a":"1","b":"2"}` + "\n"},
		{"more columns, in other places", strs, "b,x,A\n1,2,3\n", map[string]string{"header": "true"}, `{"a":"3","b":"1"}` + "\n"},
		{"quotes at the end", strs, `"""",x` + "\n" + `"x""","y"` + "\n", nil, `{"a":"\"\"","b":"x"}` + "\n" + `{"a":"x\"\"","b":"y"}` + "\n"},
		{"a quote left open", strs, "a,\"x,1\nb,\"y\nz\",2\n", nil, `{"a":"a","b":"x,1"}` + "\n" + `{"a":"b","b":"y"}` + "\n" + `{"a":"z\"","b":"2"}` + "\n"},
		{"the same by position", strs, "b,A\n1,2\n", map[string]string{"header": "true", "enforceSchema": "true"}, `{"a":"1","b":"2"}` + "\n"},
		{"corrupt records", `{"type":"record","name":"s","fields":[{"name":"n","type":["null","int"]},{"name":"_corrupt_record","type":["null","string"]}]}`, "1\nx\n", nil,
			`{"n":1,"_corrupt_record":null}` + "\n" + `{"n":null,"_corrupt_record":"x"}` + "\n"},
		{"inference", "", "1,3000000000,99999999999999999999,1.5,2020-01-01,2020-01-01 10:00:00,true,x,1,\n2,1,1,2,2020-01-02,2020-01-02,FALSE,1,a,\n", nil,
			`{"_c0":1,"_c1":3000000000,"_c2":"99999999999999999999","_c3":1.5,"_c4":"2020-01-01","_c5":"2020-01-01T10:00:00.000000Z","_c6":true,"_c7":"x","_c8":"1","_c9":null}` + "\n" +
				`{"_c0":2,"_c1":1,"_c2":"1","_c3":2,"_c4":"2020-01-02","_c5":"2020-01-02T00:00:00.000000Z","_c6":false,"_c7":"1","_c8":"a","_c9":null}` + "\n"},
		{"Latin-1", strs, "\xe9,b\n", map[string]string{"encoding": "ISO-8859-1"}, `{"a":"é","b":"b"}` + "\n"},
	} {
		var s *schema.Type
		if c.schema != "" {
			s = parse(t, c.schema)
		}
		got, _, err := csvRows(t, c.text, s, c.options, nil)
		if err != nil || got != c.want {
			t.Errorf("%s: %v\n got %s\nwant %s", c.name, err, got, c.want)
		}
	}
}

func TestCSVRefusals(t *testing.T) {
	const need = `{"type":"record","name":"ev","fields":[{"name":"id","type":"string"},{"name":"n","type":["null","int"]}]}`
	for _, c := range []struct {
		text    string
		options map[string]string
		want    string
	}{
		{"a,1\nb,x\n", map[string]string{"mode": "FAILFAST"}, `a.csv:2: column n: For input string: "x"`},
		{"a,1\nb\n", map[string]string{"mode": "FAILFAST"}, `a.csv:2: 1 values for 2 columns`},
		{"# c\n\na,1\n,2\n", map[string]string{"comment": "#"}, `a.csv:4: null value for (non-nullable) column id`},
		{"a,1\n\"b\nc,2\n", map[string]string{"multiLine": "true"}, `a.csv:2: a quote is left open`},
		{"id,m\na,1\n", map[string]string{"header": "true"}, ``},
		{"n,m\n1,2\n", map[string]string{"header": "true"}, `the header n,m does not match the columns id,n`},
		{"n,id\n1,a\n", map[string]string{"header": "true", "enforceSchema": "false"}, `CSV header does not conform to the schema. Header: n, id Schema: id, n Expected: id but found: n`},
		{"id\na\n", map[string]string{"header": "true", "enforceSchema": "false"}, `Number of column in CSV header is not equal to number of fields in the schema`},
		{"", map[string]string{"sepp": ";"}, `not an option that the CSV reader gets`},
		{"", map[string]string{"mode": "LAX"}, `the modes are`},
		{"", map[string]string{"dateFormat": "QQ"}, `"QQ" is not known`},
	} {
		_, _, err := csvRows(t, c.text+" ", parse(t, need), c.options, nil)
		if c.want == "" && err == nil {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; want %s", c.text, err, c.want)
		}
	}
	var lines []int64
	got, _, err := csvRows(t, "a,1\n,2\nb,3\n", parse(t, need), nil, func(r *RecordError) error { lines = append(lines, r.Line); return nil })
	if err != nil || got != `{"id":"a","n":1}`+"\n"+`{"id":"b","n":3}`+"\n" || fmt.Sprint(lines) != "[2]" {
		t.Errorf("put aside: %v, %v\n%s", err, lines, got)
	}
}

func copyFixture(t *testing.T, f *folder, from, to string, millis int64) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", from))
	if err != nil {
		t.Fatal(err)
	}
	f.put(to, string(data), millis)
}

// The Avro files of the original's fixture avro_files.
func TestAvroFiles(t *testing.T) {
	f := newFolder(t)
	copyFixture(t, f, "1.avro", "1.avro", 1000)
	copyFixture(t, f, "2.avro", "2.avro", 2000)
	got, in, err := fetch(t, &Files{Format: Avro, Selector: Selector{Store: f.store}})
	if err != nil || strings.Count(got, "\n") != 4 || !strings.HasSuffix(in.Place(0), "1.avro row 1") {
		t.Errorf("%v\n%s", err, got)
	}
	wide := parse(t, `{"type":"record","name":"ev","fields":[{"name":"ts","type":"double"},{"name":"id","type":"string"},{"name":"more","type":"string","default":"d"}]}`)
	got, _, err = fetch(t, &Files{Format: Avro, Selector: Selector{Store: f.store}, Schema: wide})
	if err != nil || !strings.HasPrefix(got, `{"ts":10,"id":"a","more":"d"}`) {
		t.Errorf("%v\n%s", err, got)
	}
	data, err := os.ReadFile("testdata/1.avro")
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{0, 3, 10, 200, len(data) - 1, len(data) - 17} {
		f := newFolder(t)
		f.put("cut.avro", string(data[:cut]), 1000)
		_, _, err := fetch(t, &Files{Format: Avro, Selector: Selector{Store: f.store}})
		if cut > 0 && (err == nil || !strings.Contains(err.Error(), "cut.avro")) {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
}

// Parquet files with different columns: all of them come, with nulls where a file has not got one.
func TestParquetFiles(t *testing.T) {
	f := newFolder(t)
	copyFixture(t, f, "1.parquet", "1.parquet", 1000)
	copyFixture(t, f, "2.parquet", "2.parquet", 2000)
	got, in, err := fetch(t, &Files{Format: Parquet, Selector: Selector{Store: f.store}})
	want := `{"id":"a","region":"eu","qty":1,"ts":1,"note":null}` + "\n" + `{"id":"b","region":"eu","qty":1,"ts":1,"note":"n"}` + "\n"
	if err != nil || got != want || in.Place(1) == in.Place(0) {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
	data, err := os.ReadFile("testdata/1.parquet")
	if err != nil {
		t.Fatal(err)
	}
	f.put("3.parquet", string(data[:len(data)/2]), 3000)
	if _, _, err := fetch(t, &Files{Format: Parquet, Selector: Selector{Store: f.store}}); err == nil || !strings.Contains(err.Error(), "3.parquet") {
		t.Errorf("a cut file: %v", err)
	}
}

// ORC files, and a column that only one of two files has.
func TestORCFiles(t *testing.T) {
	f := newFolder(t)
	for i, name := range []string{"a.orc", "b.orc"} {
		fields := []arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}
		if i == 1 {
			fields = append(fields, arrow.Field{Name: "note", Type: arrow.BinaryTypes.String, Nullable: true})
		}
		s := arrow.NewSchema(fields, nil)
		b := array.NewRecordBuilder(memory.DefaultAllocator, s)
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		if i == 1 {
			b.Field(1).(*array.StringBuilder).Append("n")
		}
		var out bytes.Buffer
		w, err := orc.NewWriter(&out, s, orc.WriterOptions{Compression: orc.ZSTD})
		if err != nil {
			t.Fatal(err)
		}
		batch := b.NewRecordBatch()
		if err := errors.Join(w.Write(batch), w.Close()); err != nil {
			t.Fatal(err)
		}
		batch.Release()
		b.Release()
		f.put(name, out.String(), int64(1000+i))
	}
	got, in, err := fetch(t, &Files{Format: ORC, Selector: Selector{Store: f.store}})
	if want := `{"id":0,"note":null}` + "\n" + `{"id":1,"note":"n"}` + "\n"; err != nil || got != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
	if len(in.Absent) != 1 || !strings.HasSuffix(in.Absent["note"], "a.orc") {
		t.Errorf("absent: %v", in.Absent)
	}
}
