package keygen

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/schema"
)

// The vectors were run through Apache Hudi's own classes of releases 0.9.0, 0.14.0, 0.15.0, 1.0.2, 1.1.1 and 1.2.0.
type vectorFile struct {
	Cases    []vectorCase `json:"cases"`
	AuxCases []auxCase    `json:"aux_cases"`
}

type vectorResult struct {
	RecordKey     *string      `json:"record_key"`
	PartitionPath *string      `json:"partition_path"`
	Error         *vectorError `json:"error"`
	ObjectText    bool         `json:"java_object_text"`
	Unsupported   any          `json:"unsupported"`
}

type vectorError struct {
	Class   string `json:"class"`
	Stage   Stage  `json:"stage"`
	Cause   string `json:"cause_class"`
	Message string `json:"message_contains"`
}

type vectorCase struct {
	ID        string            `json:"id"`
	Generator Type              `json:"generator"`
	Wrapped   Type              `json:"wrapped_generator"`
	Config    map[string]string `json:"config"`
	Record    ordered           `json:"record"`
	Path      string            `json:"path"`
	Env       struct {
		JvmTimezone string `json:"jvm_timezone"`
	} `json:"env"`
	RowIndex    int                                `json:"row_index"`
	Expect      *vectorResult                      `json:"expect"`
	AcceptAlso  []vectorResult                     `json:"accept_also"`
	ExpectError *vectorError                       `json:"expect_error"`
	Verified    []string                           `json:"verified"`
	Differs     map[string]vectorResult            `json:"differs"`
	OtherPaths  map[string]map[string]vectorResult `json:"other_paths"`
	Unreleased  bool                               `json:"unreleased"`
}

type auxCase struct {
	ID          string                     `json:"id"`
	Operation   string                     `json:"operation"`
	Input       json.RawMessage            `json:"input"`
	Expect      json.RawMessage            `json:"expect"`
	ExpectError *vectorError               `json:"expect_error"`
	Verified    []string                   `json:"verified"`
	Differs     map[string]json.RawMessage `json:"differs"`
	Unreleased  bool                       `json:"unreleased"`
}

// ordered is a JSON object whose order counts.
type ordered struct {
	names  []string
	values map[string]vectorValue
}

type vectorValue struct {
	Type      string          `json:"type"`
	Value     json.RawMessage `json:"value"`
	Precision int32           `json:"precision"`
	Scale     int32           `json:"scale"`
	Items     *vectorValue    `json:"items"`
	Values    *vectorValue    `json:"values"`
}

func (o *ordered) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &o.values); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		o.names = append(o.names, name.(string))
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil {
			return err
		}
	}
	return nil
}

func (v *vectorValue) isNull() bool { return len(v.Value) == 0 || string(v.Value) == "null" }

// text is a scalar, whether it stands as text or not.
func (v *vectorValue) text() string {
	var s string
	if json.Unmarshal(v.Value, &s) == nil {
		return s
	}
	return string(v.Value)
}

func readVectors(t *testing.T, name string) vectorFile {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	var v vectorFile
	if err := json.NewDecoder(r).Decode(&v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

// TestVectors holds the package against what Apache Hudi's classes gave. SLUICE_KEYGEN_VECTORS names further files of the
// same form. Each case that fails prints one line.
func TestVectors(t *testing.T) {
	// random.json.gz holds random cases, run through releases 0.15.0, 1.0.2 and 1.2.0 on all paths.
	files := []string{filepath.Join("testdata", "vectors.json.gz"), filepath.Join("testdata", "random.json.gz")}
	files = append(files, filepath.SplitList(os.Getenv("SLUICE_KEYGEN_VECTORS"))...)
	for _, name := range files {
		v := readVectors(t, name)
		runs := 0
		for i := range v.Cases {
			runs += checkCase(t, &v.Cases[i])
		}
		for i := range v.AuxCases {
			runs += checkAux(t, &v.AuxCases[i])
		}
		if runs < len(v.Cases)+len(v.AuxCases) {
			t.Errorf("%s: %d cases, but only %d results were compared", name, len(v.Cases)+len(v.AuxCases), runs)
		}
		t.Logf("%s: %d cases, %d results of releases compared", name, len(v.Cases)+len(v.AuxCases), runs)
	}
}

// findings are what is wrong with one case.
type findings []string

func (f *findings) add(format string, args ...any) {
	*f = append(*f, strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " "))
}

// report prints one line.
func (f findings) report(t *testing.T, id string) {
	t.Helper()
	switch {
	case len(f) == 1:
		t.Errorf("%s, %s", id, f[0])
	case len(f) > 1:
		t.Errorf("%s, %s (and %d more releases or paths)", id, f[0], len(f)-1)
	}
}

// checkCase runs a case as every release that it names, and gives the number of comparisons.
func checkCase(t *testing.T, c *vectorCase) (runs int) {
	path := c.Path
	if path == "" {
		path = "avro"
	}
	want := vectorResult{Error: c.ExpectError}
	if c.Expect != nil {
		want = *c.Expect
	}
	var wrong findings
	defer func() { wrong.report(t, c.ID) }()
	releases := slices.Clone(c.Verified)
	if c.Unreleased || len(releases) == 0 {
		releases = append(releases, "")
	}
	for _, r := range releases {
		runs++
		want := want
		if want.Error != nil && r != "1.2.0" && r != "" {
			want.Error = &vectorError{Class: want.Error.Class, Stage: want.Error.Stage, Cause: want.Error.Cause} // texts drift between releases
		}
		if got := runCase(t, c, r, path); !fulfills(got, want, c.AcceptAlso) {
			wrong.add("release %s, %s: want %s, got %s", r, path, show(want), show(got))
		}
	}
	for r, other := range c.Differs {
		runs++
		if got := runCase(t, c, r, path); !fulfills(got, other, nil) {
			wrong.add("release %s, %s: want %s, got %s", r, path, show(other), show(got))
		}
	}
	for r, paths := range c.OtherPaths {
		for p, other := range paths {
			if other.ObjectText || strings.HasPrefix(deref(other.PartitionPath), "Buffer(") || strings.Contains(deref(other.PartitionPath), "=Buffer(") {
				continue // the last two are identities of Java objects, made by the harness
			}
			runs++
			if got := runCase(t, c, r, p); !fulfills(got, other, nil) {
				wrong.add("release %s, %s: want %s, got %s", r, p, show(other), show(got))
			}
		}
	}
	return runs
}

func deref(s *string) string {
	if s == nil {
		return "<none>"
	}
	return *s
}

func show(r vectorResult) string {
	if r.Error != nil {
		return fmt.Sprintf("%s in %s, cause %q, %q", r.Error.Class, r.Error.Stage, r.Error.Cause, r.Error.Message)
	}
	return fmt.Sprintf("%q %q", deref(r.RecordKey), deref(r.PartitionPath))
}

func fulfills(got, want vectorResult, also []vectorResult) bool {
	if want.Error != nil {
		return got.Error != nil && got.Error.Class == want.Error.Class && (want.Error.Stage == "" || got.Error.Stage == want.Error.Stage) &&
			(want.Error.Cause == "" || got.Error.Cause == want.Error.Cause) && strings.Contains(got.Error.Message, want.Error.Message)
	}
	if got.Error != nil {
		return false
	}
	for _, w := range append(also, want) {
		if sameText(w.RecordKey, got.RecordKey) && sameText(w.PartitionPath, got.PartitionPath) {
			return true
		}
	}
	return false
}

func sameText(want, got *string) bool {
	if want == nil || got == nil {
		return want == nil
	}
	if pattern, ok := strings.CutPrefix(*want, "/^"); ok && strings.HasSuffix(pattern, "$/") {
		return regexp.MustCompile("^" + pattern[:len(pattern)-1]).MatchString(*got)
	}
	return *want == *got
}

// runCase makes the keys of a case as a release does, through the batch entry point and through the others.
func runCase(t *testing.T, c *vectorCase, release, path string) vectorResult {
	t.Helper()
	r, err := ParseRelease(release)
	if err != nil {
		t.Fatal(err)
	}
	class := c.Config[KeyClass]
	if path == "spark_avro" { // the Spark class with an Avro record
		path, class = "avro", ClassOf(c.Generator)
	}
	p, ok := ParsePath(path)
	if !ok {
		t.Fatalf("%s: path %s", c.ID, path)
	}
	typ := c.Generator
	auto := typ == AutoRecord
	if auto {
		typ = c.Wrapped
	}
	build := func() (*Keygen, error) {
		conf, e := newConfig(Options{Properties: c.Config, Release: r, Path: p, Imitate: true, Zone: c.Env.JvmTimezone, Schema: c.Record.avro(t)})
		if e != nil {
			return nil, e
		}
		k, e := conf.build(typ, class, auto)
		if e != nil {
			return nil, e
		}
		return k, nil
	}
	k, err := build()
	if err != nil {
		return failed(t, err)
	}
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	batch := c.batch(t, mem, c.RowIndex+1)
	defer batch.Release()
	result := func(key, partition string, err error) vectorResult {
		if err != nil {
			return failed(t, err)
		}
		return vectorResult{RecordKey: &key, PartitionPath: &partition}
	}
	keys, partitions, err := k.KeysWith(mem, batch)
	var got vectorResult
	if err == nil {
		got = result(keys.ValueStr(c.RowIndex), partitions.ValueStr(c.RowIndex), nil)
		keys.Release()
		partitions.Release()
	} else {
		got = failed(t, err)
	}
	if auto || typ == SparkSQLUUID {
		return got
	}
	one := result(k.Key(batch, c.RowIndex))
	if show(one) != show(got) {
		t.Errorf("%s, release %s: Key gives %s, Keys gives %s", c.ID, release, show(one), show(got))
	}
	return got
}

func failed(t *testing.T, err error) vectorResult {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("error of another kind: %v", err)
	}
	return vectorResult{Error: &vectorError{Class: e.Class, Stage: e.Stage, Cause: e.Cause, Message: e.Message + "\n" + e.CauseMessage}}
}

// avro is the schema as far as Arrow doesn't tell it: enums.
func (o ordered) avro(t *testing.T) *schema.Type {
	t.Helper()
	r := &schema.Type{Kind: schema.Record, Name: "vector_record"}
	for _, name := range o.names {
		v := o.values[name]
		f := &schema.Type{Kind: schema.String}
		switch v.Type {
		case "enum":
			f.Kind = schema.Enum
		case "record":
			f = v.members(t).avro(t)
		}
		r.Fields = append(r.Fields, schema.Field{Name: name, Type: f})
	}
	return r
}

func (c *vectorCase) batch(t *testing.T, mem memory.Allocator, rows int) arrow.RecordBatch {
	t.Helper()
	fields := make([]arrow.Field, len(c.Record.names))
	for i, name := range c.Record.names {
		v := c.Record.values[name]
		fields[i] = arrow.Field{Name: name, Type: v.arrow(t), Nullable: true}
	}
	b := array.NewRecordBuilder(mem, arrow.NewSchema(fields, nil))
	defer b.Release()
	for range rows {
		for i, name := range c.Record.names {
			v := c.Record.values[name]
			v.append(t, b.Field(i))
		}
	}
	batch := b.NewRecordBatch()
	if len(fields) == 0 {
		return array.NewRecordBatch(arrow.NewSchema(nil, nil), nil, int64(rows))
	}
	return batch
}

func (v *vectorValue) members(t *testing.T) ordered {
	t.Helper()
	var o ordered
	if !v.isNull() {
		if err := json.Unmarshal(v.Value, &o); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

func (v *vectorValue) arrow(t *testing.T) arrow.DataType {
	t.Helper()
	switch v.Type {
	case "string", "enum", "uuid":
		return arrow.BinaryTypes.String
	case "int":
		return arrow.PrimitiveTypes.Int32
	case "long":
		return arrow.PrimitiveTypes.Int64
	case "float":
		return arrow.PrimitiveTypes.Float32
	case "double":
		return arrow.PrimitiveTypes.Float64
	case "boolean":
		return arrow.FixedWidthTypes.Boolean
	case "bytes":
		return arrow.BinaryTypes.Binary
	case "fixed":
		return &arrow.FixedSizeBinaryType{ByteWidth: max(1, len(v.text())/2)}
	case "decimal":
		return &arrow.Decimal128Type{Precision: v.Precision, Scale: v.Scale}
	case "date":
		return arrow.FixedWidthTypes.Date32
	case "time-millis":
		return arrow.FixedWidthTypes.Time32ms
	case "time-micros":
		return arrow.FixedWidthTypes.Time64us
	case "timestamp-millis":
		return arrow.FixedWidthTypes.Timestamp_ms
	case "timestamp-micros":
		return arrow.FixedWidthTypes.Timestamp_us
	case "local-timestamp-millis":
		return &arrow.TimestampType{Unit: arrow.Millisecond}
	case "local-timestamp-micros":
		return &arrow.TimestampType{Unit: arrow.Microsecond}
	case "array":
		return arrow.ListOf(v.Items.arrow(t))
	case "map":
		return arrow.MapOf(arrow.BinaryTypes.String, v.Values.arrow(t))
	case "record":
		o := v.members(t)
		var fields []arrow.Field
		for _, n := range o.names {
			m := o.values[n]
			fields = append(fields, arrow.Field{Name: n, Type: m.arrow(t), Nullable: true})
		}
		return arrow.StructOf(fields...)
	}
	t.Fatalf("type %s", v.Type)
	return nil
}

func (v *vectorValue) number(t *testing.T) int64 {
	t.Helper()
	n, err := strconv.ParseInt(v.text(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (v *vectorValue) append(t *testing.T, b array.Builder) {
	t.Helper()
	if v.isNull() {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(v.text())
	case *array.Int32Builder:
		b.Append(int32(v.number(t)))
	case *array.Int64Builder:
		b.Append(v.number(t))
	case *array.Date32Builder:
		b.Append(arrow.Date32(v.number(t)))
	case *array.Time32Builder:
		b.Append(arrow.Time32(v.number(t)))
	case *array.Time64Builder:
		b.Append(arrow.Time64(v.number(t)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v.number(t)))
	case *array.Float32Builder:
		f, _ := strconv.ParseFloat(v.text(), 32)
		b.Append(float32(f))
	case *array.Float64Builder:
		f, _ := strconv.ParseFloat(v.text(), 64)
		b.Append(f)
	case *array.BooleanBuilder:
		b.Append(v.text() == "true")
	case *array.BinaryBuilder:
		b.Append(unhex(t, v.text()))
	case *array.FixedSizeBinaryBuilder:
		b.Append(unhex(t, v.text()))
	case *array.Decimal128Builder:
		b.Append(decimalOf(t, v.text(), v.Scale))
	default:
		v.appendNested(t, b)
	}
}

func (v *vectorValue) appendNested(t *testing.T, b array.Builder) {
	t.Helper()
	switch b := b.(type) {
	case *array.MapBuilder:
		b.Append(true)
		var o struct{ values map[string]json.RawMessage }
		if err := json.Unmarshal(v.Value, &o.values); err != nil {
			t.Fatal(err)
		}
		for k, raw := range o.values {
			item := *v.Values
			item.Value = raw
			b.KeyBuilder().(*array.StringBuilder).Append(k)
			item.append(t, b.ItemBuilder())
		}
	case *array.ListBuilder:
		b.Append(true)
		var items []json.RawMessage
		if err := json.Unmarshal(v.Value, &items); err != nil {
			t.Fatal(err)
		}
		for _, raw := range items {
			item := *v.Items
			item.Value = raw
			item.append(t, b.ValueBuilder())
		}
	case *array.StructBuilder:
		b.Append(true)
		o := v.members(t)
		for i, n := range o.names {
			m := o.values[n]
			m.append(t, b.FieldBuilder(i))
		}
	default:
		t.Fatalf("builder %T", b)
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b := make([]byte, len(s)/2)
	if _, err := fmt.Sscanf(s, "%x", &b); err != nil && s != "" {
		t.Fatal(err)
	}
	return b
}

func decimalOf(t *testing.T, text string, scale int32) decimal128.Num {
	t.Helper()
	whole, fraction, _ := strings.Cut(text, ".")
	for len(fraction) < int(scale) {
		fraction += "0"
	}
	v, ok := new(big.Int).SetString(whole+fraction, 10)
	if !ok {
		t.Fatalf("decimal %s", text)
	}
	return decimal128.FromBigInt(v)
}

// checkAux runs a case about one function.
func checkAux(t *testing.T, c *auxCase) (runs int) {
	var wrong findings
	defer func() { wrong.report(t, c.ID) }()
	releases := slices.Clone(c.Verified)
	if c.Unreleased || len(releases) == 0 {
		releases = append(releases, "")
	}
	compare := func(release string, want json.RawMessage, fail *vectorError) {
		runs++
		r, err := ParseRelease(release)
		if err != nil {
			t.Fatal(err)
		}
		v, err := runAux(c, r)
		if err != nil {
			var e *Error
			if fail == nil || !errors.As(err, &e) || e.Class != fail.Class || fail.Cause != "" && fail.Cause != e.Cause || !strings.Contains(e.Message, fail.Message) {
				wrong.add("release %s: want %s %v, got %v", release, want, fail, err)
			}
			return
		}
		got, _ := json.Marshal(v)
		var a, b any
		_ = json.Unmarshal(got, &a)
		if err := json.Unmarshal(want, &b); fail != nil || err != nil || fmt.Sprint(a) != fmt.Sprint(b) {
			wrong.add("release %s: want %s %v, got %s", release, want, fail, got)
		}
	}
	for _, r := range releases {
		compare(r, c.Expect, c.ExpectError)
	}
	for r, raw := range c.Differs {
		var d struct {
			Result json.RawMessage `json:"result"`
			Error  *vectorError    `json:"error"`
		}
		if err := json.Unmarshal(raw, &d); err != nil {
			t.Fatal(err)
		}
		compare(r, d.Result, d.Error)
	}
	return runs
}

func runAux(c *auxCase, r Release) (any, error) {
	var in struct {
		RecordFields    string            `json:"recordkey_fields"`
		PartitionFields string            `json:"partition_fields"`
		RecordKey       string            `json:"record_key"`
		Fields          []string          `json:"fields"`
		Text            string            `json:"text"`
		Class           string            `json:"class"`
		Path            string            `json:"path"`
		PartitionPath   string            `json:"partition_path"`
		TableFields     string            `json:"hoodie.table.partition.fields"`
		Config          map[string]string `json:"config"`
	}
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return nil, err
	}
	switch c.Operation {
	case "infer_generator":
		return Infer(in.RecordFields, in.PartitionFields, r), nil
	case "parse_record_key":
		parts, err := ParseRecordKey(in.RecordKey, in.Fields, r)
		list := make([]any, len(parts))
		for i, p := range parts {
			if !p.Null {
				list[i] = p.Text
			}
		}
		return list, err
	case "escape":
		return Escape(in.Text), nil
	case "escape_file_name":
		return EscapeFileName(in.Text), nil
	case "unescape":
		return Unescape(in.Text), nil
	case "validate_partition_path":
		return in.PartitionPath, CheckPath(in.PartitionPath)
	case "type_from_class":
		return TypeOfClass(in.Class, r)
	case "map_avro_class":
		return SparkClass(in.Class), nil
	case "split_field_list":
		return SplitFields(in.Text), nil
	case "table_partition_fields":
		return PartitionFields(in.TableFields, r), nil
	case "custom_timestamp_fields":
		if fields, known := TimestampFields(in.TableFields); known {
			return fields, nil
		}
		return nil, nil
	}
	conf, err := newConfig(Options{Properties: in.Config, Release: r, Imitate: true})
	if err != nil {
		return nil, err
	}
	if c.Operation == "complex_single_field_prefixed" {
		p, err := conf.prefixed()
		if err != nil {
			return nil, err
		}
		return p, nil
	}
	if c.Operation != "select_generator" {
		return nil, fmt.Errorf("operation %s", c.Operation)
	}
	typ, class, err := conf.generatorType()
	if in.Path == "avro" && in.Config[KeyClass] == "" && in.Config[KeyType] == "" {
		typ = Simple // the engine-neutral factory of the reference doesn't infer
	}
	if err == nil {
		_, err = conf.build(typ, class, false)
	}
	if err != nil {
		return nil, err
	}
	return typ, nil
}
