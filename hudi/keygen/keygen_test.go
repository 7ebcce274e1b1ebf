package keygen

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// rowsOf makes a batch of JSON rows.
func rowsOf(t *testing.T, schema string, rows string) arrow.RecordBatch {
	t.Helper()
	types := map[string]arrow.DataType{"string": arrow.BinaryTypes.String, "long": arrow.PrimitiveTypes.Int64, "double": arrow.PrimitiveTypes.Float64,
		"date": arrow.FixedWidthTypes.Date32, "us": arrow.FixedWidthTypes.Timestamp_us}
	var fields []arrow.Field
	for f := range strings.SplitSeq(schema, ", ") {
		name, typ, _ := strings.Cut(f, " ")
		fields = append(fields, arrow.Field{Name: name, Type: types[typ], Nullable: true})
	}
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, arrow.NewSchema(fields, nil), strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Release)
	return b
}

// paths gives "key|partition" of every row, or the error.
func paths(t *testing.T, o Options, batch arrow.RecordBatch) []string {
	t.Helper()
	g, err := Open(o)
	if err != nil {
		return []string{err.Error()}
	}
	keys, partitions, err := g.Keys(batch)
	if err != nil {
		return []string{err.Error()}
	}
	defer keys.Release()
	defer partitions.Release()
	list := make([]string, batch.NumRows())
	for i := range list {
		list[i] = textAt(keys, i) + "|" + textAt(partitions, i)
	}
	return list
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// C009: null times go to the partition of the epoch, which depends on the unit.
func TestC009NullTimes(t *testing.T) {
	numbers := rowsOf(t, "id string, t long", `[{"id":"k","t":null}]`)
	texts := rowsOf(t, "id string, t string", `[{"id":"k","t":null}]`)
	cases := []struct {
		options string
		batch   arrow.RecordBatch
		want    string
	}{
		{"timestamp.type=EPOCHMILLISECONDS timezone=GMT output.dateformat=yyyy-MM-dd_HH", numbers, "k|1970-01-01_00"},
		{"timestamp.type=EPOCHMILLISECONDS timezone=GMT+8:00 output.dateformat=yyyy-MM-dd_HH", numbers, "k|1970-01-01_08"},
		{"timestamp.type=UNIX_TIMESTAMP timezone=GMT output.dateformat=yyyy-MM-dd_HH", numbers, "k|1970-01-01_00"},
		{"timestamp.type=SCALAR timestamp.scalar.time.unit=days timezone=GMT output.dateformat=yyyy-MM-dd_HH", numbers, "k|1970-01-02_00"},
		{"timestamp.type=DATE_STRING input.dateformat=yyyy-MM-dd timezone=GMT output.dateformat=yyyy/MM/dd", texts, "k|1970/01/01"},
	}
	for _, c := range cases {
		o := timeOptionsOf(c.options)
		expect(t, c.options, paths(t, o, c.batch), c.want)
		o.Properties[KeyHiveStyle] = "true"
		expect(t, c.options, paths(t, o, c.batch), strings.Replace(c.want, "|", "|t=", 1))
	}
	o := timeOptionsOf(cases[0].options)
	o.Nulls = NullMarker
	expect(t, "marker", paths(t, o, numbers), "k|"+NullPartition)
	o.Nulls = NullError
	if got := paths(t, o, numbers); !strings.Contains(got[0], "row 0: the time value is null") {
		t.Errorf("got %q", got)
	}
}

func timeOptionsOf(text string) Options {
	p := map[string]string{KeyRecordFields: "id", KeyPartitionFields: "t", KeyType: "TIMESTAMP"}
	for o := range strings.SplitSeq(text, " ") {
		name, value, _ := strings.Cut(o, "=")
		p[timePrefix+name] = value
	}
	return Options{Properties: p}
}

// C011: the form of one-field complex keys is that of the stored keys.
func TestC011OneFieldComplexKeys(t *testing.T) {
	batch := rowsOf(t, "id string, dt string", `[{"id":"1","dt":"x"}]`)
	table := map[string]string{TableVersion: "6", TableRecordFields: "id", TablePartitionFields: "dt", TableClass: classPackage + "ComplexKeyGenerator"}
	if !NeedsStoredKeys(table) {
		t.Error("a sample is needed")
	}
	expect(t, "fixture X", paths(t, Options{Table: table, StoredKeys: []string{"1", "2", "3"}}, batch), "1|x")
	expect(t, "fixture Y", paths(t, Options{Table: table, StoredKeys: []string{"id:1", "id:2", "id:3"}}, batch), "id:1|x")
	expect(t, "new table", paths(t, Options{Properties: map[string]string{KeyRecordFields: "id", KeyPartitionFields: "dt", KeyType: "COMPLEX"}}, batch), "id:1|x")
	for what, o := range map[string]Options{
		"both forms":    {Table: table, StoredKeys: []string{"1", "id:2"}},
		"no keys":       {Table: table, HasCommits: true},
		"contradiction": {Table: table, StoredKeys: []string{"1"}, Properties: map[string]string{KeyNewEncoding: "false"}},
	} {
		_, err := New(o)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Message, "key") || e.Hint == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
	table[TableEncoding] = ValueOnly
	if NeedsStoredKeys(table) {
		t.Error("the property decides")
	}
	expect(t, "property", paths(t, Options{Table: table, StoredKeys: []string{"id:1"}}, batch), "1|x")
}

// C013: the exact set of escaped characters; values are decoded once.
func TestC013Escaping(t *testing.T) {
	batch := rowsOf(t, "id long, g string", `[{"id":1,"g":"<http://ex.org/a b?x=1%>"},{"id":2,"g":"a%2Fb"},{"id":3,"g":"plain"},{"id":4,"g":"été"}]`)
	o := Options{Properties: map[string]string{KeyRecordFields: "id", KeyPartitionFields: "g", KeyHiveStyle: "true", KeyURLEncode: "true"}}
	want := []string{"1|g=<http%3A%2F%2Fex.org%2Fa b%3Fx%3D1%25>", "2|g=a%252Fb", "3|g=plain", "4|g=été"}
	expect(t, "paths", paths(t, o, batch), want...)
	for i, w := range want {
		_, path, _ := strings.Cut(w, "|g=")
		if got, stored := Unescape(path), batch.Column(1).(*array.String).Value(i); got != stored {
			t.Errorf("%s reads back as %s, want %s", path, got, stored)
		}
	}
}

// C015: the null marker of new and of old tables.
func TestC015NullMarkers(t *testing.T) {
	batch := rowsOf(t, "id long, dt string", `[{"id":1,"dt":null},{"id":2,"dt":""},{"id":3,"dt":"2019-10-07"}]`)
	p := map[string]string{KeyRecordFields: "id", KeyPartitionFields: "dt", KeyHiveStyle: "true"}
	expect(t, "new", paths(t, Options{Properties: p}, batch), "1|dt=__HIVE_DEFAULT_PARTITION__", "2|dt=__HIVE_DEFAULT_PARTITION__", "3|dt=2019-10-07")
	old := map[string]string{TableVersion: "4", TableRecordFields: "id", TablePartitionFields: "dt", TableClass: classPackage + "SimpleKeyGenerator", KeyHiveStyle: "true"}
	expect(t, "old", paths(t, Options{Table: old}, batch), "1|dt=default", "2|dt=default", "3|dt=2019-10-07")
}

// C017: no value makes a path outside of the table, nor one that stores fold.
func TestC017UnsafePaths(t *testing.T) {
	for _, p := range []string{"..", "../../evil", "a/../b", `..\evil`, "/abs", "a//b", "b/", "."} {
		rows, _ := json.Marshal([]map[string]string{{"id": "ok", "p": "fine"}, {"id": "k", "p": p}})
		for _, style := range []string{"SIMPLE", "COMPLEX"} {
			o := Options{Properties: map[string]string{KeyRecordFields: "id", KeyPartitionFields: "p", KeyType: style}}
			if got := paths(t, o, rowsOf(t, "id string, p string", string(rows))); len(got) != 1 || !strings.Contains(got[0], "row 1: partition path") {
				t.Errorf("%q: %q", p, got)
			}
		}
	}
	batch := rowsOf(t, "id string, p string", `[{"id":"1","p":"2024.01.01"},{"id":"2","p":"..a"},{"id":"3","p":"a..b"},{"id":"4","p":"a/b"}]`)
	expect(t, "accepted", paths(t, Options{Properties: map[string]string{KeyRecordFields: "id", KeyPartitionFields: "p"}}, batch), "1|2024.01.01", "2|..a", "3|a..b", "4|a/b")
}

// Mistakes are refused before a row is read, with the option's name, its source and a next step.
func TestMistakesAreRefused(t *testing.T) {
	table := map[string]string{TableVersion: "8", TableRecordFields: "id", TablePartitionFields: "p:SIMPLE,t:TIMESTAMP", TableType: "CUSTOM",
		timePrefix + timeType: typeMillis, timePrefix + timeOutput: "yyyy"}
	origin := func(key string) string { return "orders.properties, line 7" }
	cases := map[string]struct {
		o    Options
		want []string
	}{
		"two names":      {Options{Properties: map[string]string{KeyRecordFields: "id", timePrefix + timeOutput: "yyyy", oldTimePrefix + timeOutput: "yyyyMM"}, Origin: origin}, []string{oldTimePrefix + timeOutput, "orders.properties, line 7", "remove one"}},
		"no output":      {Options{Properties: map[string]string{KeyRecordFields: "id", KeyPartitionFields: "t", KeyType: "TIMESTAMP", timePrefix + timeType: typeMillis}}, []string{timePrefix + timeOutput, "set"}},
		"bad pattern":    {Options{Properties: map[string]string{KeyRecordFields: "id", KeyPartitionFields: "t", KeyType: "TIMESTAMP", timePrefix + timeType: typeMillis, timePrefix + timeOutput: "uuuu"}, Origin: origin}, []string{"Illegal pattern component: uuuu", "orders.properties", "correct the pattern"}},
		"no input":       {Options{Properties: map[string]string{KeyRecordFields: "id", KeyPartitionFields: "t", KeyType: "TIMESTAMP", timePrefix + timeType: typeDateString, timePrefix + timeOutput: "yyyy"}}, []string{timePrefix + timeInput}},
		"type":           {Options{Properties: map[string]string{KeyRecordFields: "id", KeyType: "FOO"}, Origin: origin}, []string{"Unsupported keyGenerator Type FOO", "orders.properties", "one of"}},
		"java class":     {Options{Properties: map[string]string{KeyRecordFields: "id", KeyClass: "com.example.Keys"}}, []string{"Could not load key generator class com.example.Keys", "register"}},
		"two key fields": {Options{Properties: map[string]string{KeyRecordFields: "a,b", KeyPartitionFields: "p", KeyType: "SIMPLE"}, Origin: origin}, []string{"Single record-key field", "orders.properties", "COMPLEX"}},
		"slash and hive": {Options{Properties: map[string]string{KeyRecordFields: "a", KeyPartitionFields: "p", KeySlashDates: "true", KeyHiveStyle: "true"}}, []string{"exclude each other"}},
		"key fields":     {Options{Table: table, Properties: map[string]string{KeyRecordFields: "id,x"}, Origin: origin}, []string{"Config conflict(key\tcurrent value\texisting value):", "RecordKey:\tid,x\tid"}},
		"generator":      {Options{Table: table, Properties: map[string]string{KeyClass: classPackage + "SimpleKeyGenerator"}}, []string{"KeyGenerator:\torg.apache.hudi.keygen.SimpleKeyGenerator\tCUSTOM", "can't change"}},
		"partition":      {Options{Table: table, Properties: map[string]string{KeyPartitionFields: "p:simple"}}, []string{"PartitionPath:\tp:simple\tp:SIMPLE,t:TIMESTAMP"}},
		"hive style":     {Options{Table: table, Properties: map[string]string{KeyHiveStyle: "true"}}, []string{KeyHiveStyle + ":\ttrue\tfalse"}},
		"time format":    {Options{Table: table, Properties: map[string]string{oldTimePrefix + timeOutput: "yyyyMM"}}, []string{timePrefix + timeOutput + ":\tyyyyMM\tyyyy"}},
		"new keys":       {Options{Table: map[string]string{TableVersion: "9", TableType: "NON_PARTITION"}, Properties: map[string]string{KeyRecordFields: "id"}}, []string{"RecordKey:\tid\t"}},
	}
	for name, c := range cases {
		_, err := New(c.o)
		if err == nil {
			t.Errorf("%s is accepted", name)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q is not in: %v", name, w, err)
			}
		}
	}
}

// What differs in writing only is no conflict (#12013, #8372, #7290), and a misspelled option is warned of.
func TestNoConflict(t *testing.T) {
	batch := rowsOf(t, "id string, p string", `[{"id":"1","p":"x"}]`)
	simple := map[string]string{TableVersion: "6", TableRecordFields: "id", TablePartitionFields: "p", TableClass: classPackage + "SimpleKeyGenerator", KeyHiveStyle: "false"}
	expect(t, "twin", paths(t, Options{Table: simple, Properties: map[string]string{KeyClass: classPackage + "SimpleAvroKeyGenerator", KeyRecordFields: " id "}}, batch), "1|x")
	expect(t, "delete", paths(t, Options{Table: simple, Delete: true, Properties: map[string]string{KeyType: "GLOBAL_DELETE"}}, batch), "id:1|")
	custom := map[string]string{TableVersion: "6", TableRecordFields: "id", TablePartitionFields: "p", TableClass: classPackage + "CustomKeyGenerator"}
	expect(t, "types", paths(t, Options{Table: custom, Properties: map[string]string{KeyPartitionFields: "p:simple"}}, batch), "1|x")
	expect(t, "from the table alone", paths(t, Options{Table: simple}, batch), "1|x")
	k, err := New(Options{Properties: map[string]string{KeyRecordFields: "id", "oodie.deltastreamer.keygen.timebased.input.dateformat": "x"}})
	if err != nil || len(k.Warnings()) == 0 || !strings.Contains(k.Warnings()[0], "is probably meant") {
		t.Errorf("%v %v", k, err)
	}
}

// A misspelled field, which the reference takes for null, is refused by name.
func TestMissingFieldIsRefused(t *testing.T) {
	batch := rowsOf(t, "id string, p string", `[{"id":"1","p":"x"}]`)
	got := paths(t, Options{Properties: map[string]string{KeyRecordFields: "id", KeyPartitionFields: "P"}}, batch)
	if !strings.Contains(got[0], "field P of "+KeyPartitionFields+" is not in the records") || !strings.Contains(got[0], "the records have id, p") {
		t.Errorf("%q", got)
	}
}

// Slices of a batch, rows with nulls and runs of equal values give what single rows give.
func TestBatchesAndRowsAgree(t *testing.T) {
	var rows []string
	for i := range 500 {
		p, ts := `"`+strings.Repeat("x", i%7)+`"`, fmt.Sprint(1700000000000+int64(i%13)*86400000*int64(i%3))
		if i%11 == 0 {
			p, ts = "null", "null"
		}
		rows = append(rows, fmt.Sprintf(`{"id":"k%d","n":%d,"p":%s,"t":%s}`, i, i, p, ts))
	}
	whole := rowsOf(t, "id string, n long, p string, t long", "["+strings.Join(rows, ",")+"]")
	batch := whole.NewSlice(37, 431)
	defer batch.Release()
	times := map[string]string{KeyRecordFields: "id", KeyPartitionFields: "t", KeyType: "TIMESTAMP", timePrefix + timeType: typeMillis, timePrefix + timeOutput: "yyyyMMddHH", timePrefix + timeZone: "America/New_York"}
	for _, p := range []map[string]string{
		{KeyRecordFields: "id", KeyPartitionFields: "p"},
		{KeyRecordFields: "n", KeyPartitionFields: "p", KeyURLEncode: "true"},
		{KeyRecordFields: "id,n", KeyPartitionFields: "p,n", KeyHiveStyle: "true"},
		{KeyRecordFields: "id", KeyPartitionFields: ""},
		times,
	} {
		k, err := New(Options{Properties: p})
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for range 4 { // a Keygen serves many at once
			group.Go(func() {
				mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
				defer mem.AssertSize(t, 0)
				keys, partitions, err := k.KeysWith(mem, batch)
				if err != nil {
					t.Error(err)
					return
				}
				defer keys.Release()
				defer partitions.Release()
				for i := range int(batch.NumRows()) {
					key, partition, err := k.Key(batch, i)
					if err != nil || key != textAt(keys, i) || partition != textAt(partitions, i) {
						t.Errorf("%v, row %d: %s|%s %v, in the batch %s|%s", p, i, key, partition, err, textAt(keys, i), textAt(partitions, i))
						return
					}
				}
			})
		}
		group.Wait()
	}
}

// A record that is no batch goes the same way.
func TestOne(t *testing.T) {
	k, err := New(Options{Properties: map[string]string{KeyRecordFields: "id,a.b", KeyPartitionFields: "p", KeyHiveStyle: "true"}})
	if err != nil {
		t.Fatal(err)
	}
	record := map[string]Datum{"id": {Kind: Long, I: 7}, "a.b": {Kind: Null}, "p": {Kind: Date, I: 18262}}
	key, partition, err := k.One(func(name string) Datum { return record[name] })
	if err != nil || key != "id:7,a.b:__null__" || partition != "p=2020-01-01" {
		t.Errorf("%s %s %v", key, partition, err)
	}
	if path, err := k.Partition(func(string) Datum { return Datum{Kind: String, S: "x"} }); err != nil || path != "p=x" {
		t.Errorf("%s %v", path, err)
	}
}

// Which output formats sort as times do (key generation 13).
func TestOrdered(t *testing.T) {
	for format, want := range map[string]bool{"yyyy/MM/dd": true, "yyyyMMdd-HH": true, "yyyy": true, "'d='yyyy-MM-dd HH:mm:ss.SSS": true,
		"yy/MM/dd": false, "MM/dd/yyyy": false, "yyyy-MM-dd hh": false, "yyyy/M/d": false, "yyyy/dd": false, "MMM": false, "yyyy-MM-dd Z": false} {
		k, err := New(timeOptionsOf("timestamp.type=EPOCHMILLISECONDS timezone=UTC output.dateformat=" + strings.ReplaceAll(format, " ", "_")))
		if err != nil {
			t.Fatal(err)
		}
		if k.Ordered() != want {
			t.Errorf("%s: %v", format, k.Ordered())
		}
	}
}

// The steady state makes nothing per row: a batch of 65536 rows costs what its columns cost.
func TestNoAllocationPerRow(t *testing.T) {
	batch := benchBatch()
	defer batch.Release()
	for _, p := range []map[string]string{
		{KeyRecordFields: "id", KeyPartitionFields: "region"},
		{KeyRecordFields: "id,customer", KeyPartitionFields: "region", KeyURLEncode: "true"},
		{KeyRecordFields: "customer", KeyPartitionFields: "ms", KeyType: "TIMESTAMP", timePrefix + timeType: typeMillis, timePrefix + timeOutput: "yyyy/MM/dd", timePrefix + timeZone: "Europe/Berlin"},
	} {
		k, err := New(Options{Properties: p})
		if err != nil {
			t.Fatal(err)
		}
		n := testing.AllocsPerRun(3, func() {
			keys, partitions, err := k.Keys(batch)
			if err != nil {
				t.Fatal(err)
			}
			keys.Release()
			partitions.Release()
		})
		if n > 200 {
			t.Errorf("%v: %v allocations for %d rows", p, n, batch.NumRows())
		}
	}
}

// What Apache Hudi's BucketIdentifier gave, releases 1.2.0 and 0.15.0.
func TestBuckets(t *testing.T) {
	text, err := os.ReadFile("testdata/bucket.json")
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		RecordKey *string        `json:"record_key"`
		Fields    string         `json:"index_key_fields"`
		BucketOf  map[string]int `json:"bucket_of"`
		Text      *int           `json:"bucket_id_text"`
		FileID    *string        `json:"bucket_of_file_id"`
		Result    any            `json:"result"`
	}
	var v struct {
		Rows    []row            `json:"rows"`
		Differs map[string][]row `json:"differs"`
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	checked := 0
	check := func(rows []row, r Release, skip map[string]bool) {
		for _, row := range rows {
			switch {
			case row.RecordKey != nil && !skip[*row.RecordKey+"/"+row.Fields]:
				for n, want := range row.BucketOf {
					var count int
					_, _ = fmt.Sscan(n, &count)
					got, err := Bucket(*row.RecordKey, strings.Split(row.Fields, ","), count, r)
					checked++
					if err != nil || got != want {
						t.Errorf("%v: %s by %s of %d: got %d %v, want %d", r, *row.RecordKey, row.Fields, count, got, err, want)
					}
				}
			case row.Text != nil && BucketText(*row.Text) != row.Result:
				t.Errorf("text of %d: %s", *row.Text, BucketText(*row.Text))
			case row.FileID != nil:
				got, err := BucketOfFileID(*row.FileID)
				if want, ok := row.Result.(float64); ok && got != int(want) || ok != (err == nil) {
					t.Errorf("bucket of %s: %d %v", *row.FileID, got, err)
				}
			}
		}
	}
	old := map[string]bool{}
	for _, row := range v.Differs["0.15.0"] {
		old[*row.RecordKey+"/"+row.Fields] = true
	}
	check(v.Rows, Release{1, 2, 0}, nil)
	check(v.Rows, Release{0, 15, 0}, old)
	check(v.Differs["0.15.0"], Release{0, 15, 0}, nil)
	if checked < 150 || FixedFileID(5) != "00000005-0000-0000-0000-000000000000-0" {
		t.Errorf("%d buckets checked, %s", checked, FixedFileID(5))
	}
}

// Keys by expressions, and generators of one's own.
func TestBringYourOwn(t *testing.T) {
	batch := rowsOf(t, "id long, region string, at us", `[{"id":1,"region":"eu/1","at":"2024-02-29T10:00:00Z"},{"id":2,"region":null,"at":"2024-02-29T10:00:00Z"}]`)
	o := Options{Properties: map[string]string{KeyExpression: `key = string(id) + ";" + date(at, "yyyyMMdd"); partition = region == nil ? nil : escape(region)`}}
	expect(t, "expression", paths(t, o, batch), "1;20240229|eu%2F1", "2;20240229|__HIVE_DEFAULT_PARTITION__")
	o.Properties[KeyExpression] = "key = region"
	if got := paths(t, o, batch); !strings.Contains(got[0], "row 1") || !strings.Contains(got[0], "the key is null or empty") {
		t.Errorf("%q", got)
	}
	o.Properties[KeyExpression] = `key = id; partition = "../x"`
	if got := paths(t, o, batch); !strings.Contains(got[0], "path-traversal") {
		t.Errorf("%q", got)
	}
	for _, bad := range []string{"partition = region", "key = (", "key = id; key = id", "nonsense"} {
		if _, err := NewExpression(bad, Options{}); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
	var r Registry
	own := func(Options) (Generator, error) {
		return New(Options{Properties: map[string]string{KeyRecordFields: "id"}})
	}
	if err := r.Register("com.example.Keys", own); err != nil {
		t.Fatal(err)
	}
	if r.Register("com.example.Keys", own) == nil || r.Register(classPackage+"SimpleKeyGenerator", own) == nil {
		t.Error("a name is taken twice")
	}
	expect(t, "own", paths(t, Options{Registry: &r, Table: map[string]string{TableClass: "com.example.Keys"}}, batch), "1|", "2|")
}

func TestExplainAndCheck(t *testing.T) {
	batch := rowsOf(t, "_hoodie_record_key string, _hoodie_partition_path string, id string, p string",
		`[{"_hoodie_record_key":"1","_hoodie_partition_path":"p=x","id":"1","p":"x"},{"_hoodie_record_key":"2","_hoodie_partition_path":"p=y","id":"2","p":"y"}]`)
	table := map[string]string{TableVersion: "9", TableRecordFields: "id", TablePartitionFields: "p", TableType: "COMPLEX", KeyHiveStyle: "true"}
	c, err := NewChecker(Options{Table: table})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Add(batch); err != nil {
		t.Fatal(err)
	}
	r := c.Report()
	if r.Rows != 2 || r.Differ != 2 || len(r.First) != 2 || r.First[0].Key != "id:1" || len(r.Agreeing) != 1 || !strings.Contains(r.Agreeing[0], ValueOnly) {
		t.Errorf("%+v", r)
	}
	list, _, err := Explain(Options{Table: table, Properties: map[string]string{keyBuckets: "7"}}, rowsOf(t, "id string, p string", `[{"id":"1","p":"x"},{"id":null,"p":"x"}]`))
	if err != nil || len(list) != 2 || list[0].Key != "id:1" || list[0].Partition != "p=x" || list[0].Bucket != "00000006" || !strings.Contains(list[1].Error, "row 1") {
		t.Errorf("%+v %v", list, err)
	}
}

// What a new table keeps makes the same keys for the next writer.
func TestTablePropertiesRoundTrip(t *testing.T) {
	batch := rowsOf(t, "id string, p string, t long", `[{"id":"1","p":"x","t":1700000000000}]`)
	o := Options{Properties: map[string]string{KeyRecordFields: "id", KeyPartitionFields: "p:simple,t:timestamp", KeyHiveStyle: "true",
		oldTimePrefix + timeType: typeMillis, oldTimePrefix + timeOutput: "yyyy-MM-dd", oldTimePrefix + timeZone: "UTC"}}
	k, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	p := k.TableProperties(8)
	p[TableVersion] = "8"
	if p[TablePartitionFields] != "p:SIMPLE,t:TIMESTAMP" || p[TableType] != "CUSTOM" || p[timePrefix+timeOutput] != "yyyy-MM-dd" {
		t.Errorf("%v", p)
	}
	expect(t, "again", paths(t, Options{Table: p}, batch), "1|p=x/t=2023-11-14")
	if p := k.TableProperties(6); p[TablePartitionFields] != "p,t" || p[TableClass] != classPackage+"CustomKeyGenerator" {
		t.Errorf("%v", p)
	}
}
