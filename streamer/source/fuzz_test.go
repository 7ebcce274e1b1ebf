package source

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// FuzzJSON: every text gives a row or an error and leaves the columns equally long; what is taken as an object is one to Go's
// own reader too.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"id":"a","region":"eu","qty":"1","ts":1.5e3}`, `{"id":{"a":[1]},"ts":-0}`, `{`, `{"id":"\ud83d"}`, "", `[]`, `{"region":tru}`} {
		f.Add([]byte(s))
	}
	t := parse(f, `{"type":"record","name":"ev","fields":[{"name":"id","type":"string"},{"name":"region","type":["null","string"]},{"name":"qty","type":["null","int"],"default":null},
	 {"name":"l","type":["null",{"type":"array","items":{"type":"record","name":"x","fields":[{"name":"m","type":{"type":"map","values":"double"}}]}}]},{"name":"ts","type":"long","default":4}]}`)
	shape, err := t.Arrow()
	if err != nil {
		f.Fatal(err)
	}
	loose := engineSchema(t)
	looseShape, err := loose.Arrow()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(tt *testing.T, text []byte) {
		for _, engine := range []bool{false, true} {
			t, shape := t, shape
			if engine {
				t, shape = loose, looseShape
			}
			d, err := newJSONDecoder(t, shape, engine, memory.DefaultAllocator)
			if err != nil {
				tt.Fatal(err)
			}
			defer d.release()
			err = d.object(text)
			again := d.object([]byte(`{"id":"z","ts":1}`))
			if again != nil {
				tt.Fatal(again)
			}
			b := d.batch()
			defer b.Release()
			if b.NumRows() != 2 || b.Column(0).ValueStr(1) != "z" {
				tt.Fatalf("%d rows: %v", b.NumRows(), b)
			}
			if err == nil && !engine && !json.Valid(bytes.ToValidUTF8(text, []byte("?"))) {
				tt.Fatalf("%q was taken", text)
			}
		}
	})
}

// FuzzCSV: records end, whatever stands in the text, and a text that is cut where the splitter says gives the same records.
func FuzzCSV(f *testing.F) {
	for _, s := range []string{"a,b\n\"c\",\"d\"\"\"\n", "\"a\nb\",c\n", "\"x\\\"y\" z,\n\n,\r\n", "\"\"\"", `"a`} {
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, multi bool) {
		d := csvDialect{sep: []byte{','}, quote: '"', escape: '\\', escapeEsc: '\\', multiLine: multi}
		all := func(text []byte) (out []string) {
			r := csvReader{csvDialect: d, text: text}
			for last := -1; ; {
				_, _, ok, err := r.next()
				if !ok {
					return out
				}
				if r.pos <= last {
					t.Fatalf("no way forward at %d", r.pos)
				}
				last = r.pos
				var record []string
				for _, f := range r.fields {
					record = append(record, string(f.text))
				}
				out = append(out, fmt.Sprintf("%q %v", record, err))
			}
		}
		n, err := d.split(text, false)
		if err != nil {
			t.Fatal(err)
		}
		whole, parts := all(text), append(all(text[:n]), all(text[n:])...)
		if strings.Join(whole, "\n") != strings.Join(parts, "\n") {
			t.Fatalf("cut at %d:\n%v\n%v", n, whole, parts)
		}
	})
}

// FuzzAvroFile: damaged files give errors and no more memory than their size justifies.
func FuzzAvroFile(f *testing.F) {
	data, err := os.ReadFile("testdata/1.avro")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)-3])
	f.Fuzz(func(_ *testing.T, data []byte) {
		c, err := newContainer(bytes.NewReader(data))
		if err != nil {
			return
		}
		defer c.close()
		for {
			if _, _, err := c.next(); err != nil {
				return
			}
		}
	})
}

func benchDecode(b *testing.B, format textFormat, text []byte, count int) {
	b.SetBytes(int64(len(text)))
	_, decode, err := format.open(text)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		n := int64(0)
		err := decode(Options{}, chunk{file: "f", line: 1, first: true, text: text}, func(it item) error {
			n += it.batch.NumRows()
			it.batch.Release()
			return nil
		})
		if err != nil || n != int64(count) {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(count*b.N)/b.Elapsed().Seconds(), "rows/s")
}

const benchSchema = `{"type":"record","name":"o","fields":[{"name":"order_id","type":"long"},{"name":"qty","type":["null","int"]},{"name":"customer","type":["null","string"]},
 {"name":"price","type":["null","double"]},{"name":"updated_at","type":["null","string"]},{"name":"note","type":["null","string"]}]}`

func benchShape(b *testing.B) (shape, *arrow.Schema) {
	s, err := shapeOf(parse(b, benchSchema))
	if err != nil {
		b.Fatal(err)
	}
	return s, s.arrow
}

func BenchmarkJSON(b *testing.B) {
	var text bytes.Buffer
	const count = 10_000
	for i := range count {
		fmt.Fprintf(&text, `{"order_id":%d,"qty":%d,"customer":"customer %d","price":%d.25,"updated_at":"2020-01-20 21:11:%02d","note":"some words about it"}`+"\n", i, i%50, i%1000, i, i%60)
	}
	s, a := benchShape(b)
	benchDecode(b, &jsonFormat{avro: s.avro, shape: a}, text.Bytes(), count)
}

func BenchmarkCSV(b *testing.B) {
	var text bytes.Buffer
	const count = 10_000
	for i := range count {
		fmt.Fprintf(&text, "%d,%d,\"customer %d\",%d.25,2020-01-20 21:11:%02d,some words about it\n", i, i%50, i%1000, i, i%60)
	}
	s, _ := benchShape(b)
	o, err := ParseCSVOptions(nil)
	if err != nil {
		b.Fatal(err)
	}
	benchDecode(b, &csvFormat{CSVOptions: o, shape: s}, text.Bytes(), count)
}
