package merge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/schema"
)

// The vectors were produced by the classes of Apache Hudi 0.15.0, 1.0.2 and 1.2.0 that each case names: payload classes
// and the mergers of the merge modes. SLUICE_MERGE_VECTORS names further files of the same form.

type vectorFile struct {
	Merge *vectorFile `json:"merge"`

	Schemas map[string]json.RawMessage `json:"schemas"`
	Cases   []vectorCase               `json:"cases"`
}

type vectorCase struct {
	ID             string                     `json:"id"`
	Payload        string                     `json:"payload"`
	Mode           string                     `json:"mode"`
	PartialMode    string                     `json:"partial_update_mode"`
	Schema         json.RawMessage            `json:"schema"`
	OrderingFields []string                   `json:"ordering_fields"`
	Properties     map[string]string          `json:"properties"`
	NullAsDefault  bool                       `json:"null_ordering_as_default"`
	Base           map[string]any             `json:"base"`
	Incoming       []map[string]any           `json:"incoming"`
	Expect         *vectorResult              `json:"expect"`
	ExpectError    *struct{ Class string }    `json:"expect_error"`
	Verified       []string                   `json:"verified"`
	Differs        map[string]json.RawMessage `json:"differs"`
	table          *schema.Type
}

type vectorResult struct {
	Combined any    `json:"combined"`
	Result   any    `json:"result"`
	Error    string `json:"error"`
}

func TestVectors(t *testing.T) {
	files := []string{filepath.Join("testdata", "vectors.json"), filepath.Join("testdata", "random.json")}
	files = append(files, filepath.SplitList(os.Getenv("SLUICE_MERGE_VECTORS"))...)
	ran := 0
	for _, file := range files {
		if file == "" {
			continue
		}
		for _, c := range readVectors(t, file) {
			for _, release := range c.releases() {
				ran++
				if msg := runVector(&c, release); msg != "" {
					t.Errorf("%s %s: %s", c.ID, release, msg)
				}
			}
		}
	}
	if ran < 1500 {
		t.Errorf("only %d cases ran", ran)
	}
}

func readVectors(t *testing.T, file string) []vectorCase {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var f vectorFile
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if f.Merge != nil {
		f = *f.Merge
	}
	for i := range f.Cases {
		c := &f.Cases[i]
		text := c.Schema
		var name string
		if json.Unmarshal(text, &name) == nil {
			text = f.Schemas[name]
		}
		if c.table, err = schema.Parse(text); err != nil {
			t.Fatalf("%s %s: %v", file, c.ID, err)
		}
	}
	return f.Cases
}

func (c *vectorCase) releases() []string {
	out := append([]string(nil), c.Verified...)
	for r := range c.Differs {
		out = append(out, r)
	}
	return out
}

func (c *vectorCase) want(release string) (vectorResult, error) {
	var w vectorResult
	if text, ok := c.Differs[release]; ok {
		return w, json.Unmarshal(text, &w)
	}
	if c.ExpectError != nil {
		return vectorResult{Error: c.ExpectError.Class}, nil
	}
	return *c.Expect, nil
}

// props are the properties as a table's configuration gives them: Java reads the unavailable value below the prefix only.
func (c *vectorCase) props() map[string]string {
	out := maps.Clone(c.Properties)
	delete(out, propUnavailable)
	return out
}

func runVector(c *vectorCase, release string) string {
	want, err := c.want(release)
	if err != nil {
		return err.Error()
	}
	o := Options{TableVersion: 6, Release: release, PayloadClass: c.Payload, OrderingFields: c.OrderingFields, Props: c.props(), Schema: c.table}
	if c.Mode != "" {
		o.TableVersion, o.MergeMode, o.PartialUpdateMode = 9, c.Mode, c.PartialMode
	}
	rule, err := Compile(o)
	if refused := want.Error == "IllegalArgumentException" || want.Error == "AvroRuntimeException"; refused || err != nil {
		if refused != (err != nil) || err != nil && !errors.Is(err, ErrConfig) {
			return fmt.Sprintf("want a refusal: %v; got %v", refused, err)
		}
		return ""
	}
	if want.Error != "" {
		return checkVector(rule, c, c.careful())
	}
	if want.Result == "keep_base" {
		want.Result = c.Base
	}
	return checkVector(rule, c, want)
}

// carefulResults: what is right where Java throws. Java can't compare a null ordering value, or an Int with a Long; here a
// null orders before every value and numbers compare as numbers (table format 6.6). "base" and "incoming" name the version
// that stays.
var carefulResults = map[string]string{
	"latest-incoming-null-ordering":       "incoming", // the ordering value is not looked at
	"nondef-incoming-null-ordering":       "blend",
	"partial-incoming-null-ordering":      "any",
	"default-incoming-null-ordering":      "base",
	"event-incoming-null-ordering":        "base",
	"reverse-incoming-null-ordering":      "incoming", // the smaller value wins
	"default-null-ordering-as-zero":       "base",
	"event-null-ordering-as-zero":         "base",
	"default-batch-int-zero-against-long": "first",
	"event-batch-int-zero-against-long":   "first",
	"nondef-batch-int-zero-against-long":  "first",
	"latest-batch-int-zero-against-long":  "first", // 0.15.0 compares; later releases take the last
	"mysql-incoming-null-seq":             "base",
	"mode-ev-base-null-ordering":          "incoming",
	"mode-ev-incoming-null-ordering":      "base",
	"mode-ev-null-among-blocks":           "first",
	"mode-ev-negative-ordering":           "incoming",
	"mode-ev-int-against-long":            "base", // a delete of Int 4 over a stored Long 5
}

func (c *vectorCase) careful() vectorResult {
	switch carefulResults[c.ID] {
	case "base":
		return vectorResult{Combined: "any", Result: c.Base}
	case "incoming":
		return vectorResult{Combined: "any", Result: c.Incoming[0]}
	case "first":
		return vectorResult{Combined: c.Incoming[0], Result: c.Incoming[0]}
	case "blend": // the new values; the stored ordering value in place of the null one
		row := maps.Clone(c.Incoming[0])
		row["ts"] = c.Base["ts"]
		return vectorResult{Combined: "any", Result: row}
	}
	return vectorResult{Combined: "any", Result: "any"}
}

func checkVector(rule *Rule, c *vectorCase, want vectorResult) string {
	for _, way := range []struct {
		name string
		run  func(*Rule, *vectorCase) (combined, result any, err error)
	}{{"row by row", byRow}, {"batch", byLog(1 << 30)}, {"spilled", byLog(1)}, {"meeting", byMeeting}} {
		combined, result, err := way.run(rule, c)
		if err != nil {
			return fmt.Sprintf("%s: %v", way.name, err)
		}
		if want.Combined != nil && want.Combined != "any" && way.name == "row by row" && !sameJSON(combined, want.Combined) {
			return fmt.Sprintf("%s: combined %s, want %s", way.name, jsonText(combined), jsonText(want.Combined))
		}
		if want.Result == "any" {
			want.Result = result // the other ways must agree
		}
		if !sameJSON(result, want.Result) {
			return fmt.Sprintf("%s: result %s, want %s", way.name, jsonText(result), jsonText(want.Result))
		}
	}
	return ""
}

func byRow(rule *Rule, c *vectorCase) (combined, result any, err error) {
	phase := Within
	if c.Mode != "" {
		phase = Scan
	}
	var kept *Version
	for _, in := range c.Incoming {
		next, err := versionOf(rule, in)
		if err != nil {
			return nil, nil, err
		}
		merged, err := rule.Combine(phase, memory.DefaultAllocator, kept, next)
		if err != nil {
			return nil, nil, err
		}
		kept = merged
	}
	combined = "delete"
	if alone, err := rule.Combine(Base, memory.DefaultAllocator, nil, kept); err != nil {
		return nil, nil, err
	} else if alone != nil {
		combined = rowJSON(alone.Row, 0)
	}
	var base *Version
	if c.Base != nil {
		if base, err = versionOf(rule, c.Base); err != nil {
			return nil, nil, err
		}
	}
	final, err := rule.Combine(Base, memory.DefaultAllocator, base, kept)
	if err != nil {
		return nil, nil, err
	}
	if final == nil {
		return combined, "delete", nil
	}
	return combined, rowJSON(final.Row, 0), nil
}

// byMeeting combines row by row and lets the outcome meet the stored row as a copy-on-write update does.
func byMeeting(rule *Rule, c *vectorCase) (combined, result any, err error) {
	combined, result, err = byRow(rule, c)
	if err != nil || c.Base == nil || c.Mode != "" {
		return combined, result, err
	}
	var kept *Version
	for _, in := range c.Incoming {
		next, err := versionOf(rule, in)
		if err != nil {
			return nil, nil, err
		}
		if next.Row == nil {
			return combined, result, nil // entries of DELETE blocks have no batch
		}
		if kept, err = rule.Combine(Within, memory.DefaultAllocator, kept, next); err != nil {
			return nil, nil, err
		}
	}
	base, err := versionOf(rule, c.Base)
	if err != nil {
		return nil, nil, err
	}
	outcome, fresh, err := rule.Meet(nil, base.Row, kept.Row, []Meeting{{0, 0}})
	if err != nil {
		return nil, nil, err
	}
	if rule.Blind() && outcome[0] != TakeNew && outcome[0] != Remove {
		return nil, nil, fmt.Errorf("a blind rule says %d", outcome[0])
	}
	switch outcome[0] {
	case KeepOld:
		return combined, rowJSON(base.Row, 0), nil
	case TakeNew:
		return combined, rowJSON(kept.Row, 0), nil
	case Remove:
		return combined, "delete", nil
	}
	return combined, rowJSON(fresh, int(outcome[0])), nil
}

func byLog(budget int64) func(rule *Rule, c *vectorCase) (combined, result any, err error) {
	return func(rule *Rule, c *vectorCase) (combined, result any, err error) {
		log := rule.NewLog(LogOptions{Budget: budget, Batch: c.Mode == ""})
		defer log.Close()
		key := keyArray("k")
		for _, in := range c.Incoming {
			v, err := versionOf(rule, in)
			if err != nil {
				return nil, nil, err
			}
			if v.Row == nil {
				err = log.AddDeletes(key, []Value{v.Ordering})
			} else {
				err = log.Add(v.Row, AddOptions{Keys: key})
			}
			if err != nil {
				return nil, nil, err
			}
		}
		base := func(yield func(Keyed, error) bool) {
			if c.Base != nil {
				v, err := versionOf(rule, c.Base)
				yield(Keyed{v.Row, keyArray("k")}, err)
			}
		}
		result = "delete"
		for b, err := range log.OverKeyed(context.Background(), iter.Seq2[Keyed, error](base)) {
			if err != nil {
				return nil, nil, err
			}
			if result != "delete" || b.NumRows() != 1 {
				return nil, nil, errors.New("more than one row")
			}
			result = rowJSON(b, 0)
		}
		return nil, result, nil
	}
}

func keyArray(keys ...string) arrow.Array {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendValues(keys, nil)
	return b.NewArray()
}

func versionOf(rule *Rule, in map[string]any) (*Version, error) {
	if o, ok := in["delete_block_ordering"]; ok {
		switch o := o.(type) {
		case nil:
			return &Version{Ordering: NoOrdering()}, nil
		case string:
			return &Version{Ordering: TextOrdering(o)}, nil
		case float64:
			if in["long"] == true {
				return &Version{Ordering: LongOrdering(int64(o))}, nil
			}
			return &Version{Ordering: IntOrdering(int32(o))}, nil
		}
	}
	row, err := rowOf(rule.Arrow(), in)
	return &Version{Row: row}, err
}

// rowOf makes a batch of one row of JSON values. Bytes are text of one character a byte.
func rowOf(s *arrow.Schema, in map[string]any) (arrow.RecordBatch, error) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	for i, f := range s.Fields() {
		v, ok := in[f.Name]
		if !ok || v == nil {
			b.Field(i).AppendNull()
			continue
		}
		switch fb := b.Field(i).(type) {
		case *array.StringBuilder:
			fb.Append(v.(string))
		case *array.Int32Builder:
			fb.Append(int32(v.(float64)))
		case *array.Int64Builder:
			fb.Append(int64(v.(float64)))
		case *array.Float64Builder:
			fb.Append(v.(float64))
		case *array.Float32Builder:
			fb.Append(float32(v.(float64)))
		case *array.BooleanBuilder:
			fb.Append(v.(bool))
		case *array.BinaryBuilder:
			fb.Append(latin1(v.(string)))
		case *array.Decimal128Builder:
			fb.Append(decimal128.FromBigInt(twosComplement(latin1(v.(string)))))
		default:
			return nil, fmt.Errorf("no case for %s", f.Type)
		}
	}
	return b.NewRecordBatch(), nil
}

func latin1(s string) []byte {
	var b []byte
	for _, r := range s {
		b = append(b, byte(r))
	}
	return b
}

func rowJSON(b arrow.RecordBatch, row int) map[string]any {
	out := map[string]any{}
	for i, f := range b.Schema().Fields() {
		col := b.Column(i)
		if col.IsNull(row) {
			out[f.Name] = nil
			continue
		}
		switch a := col.(type) {
		case *array.String:
			out[f.Name] = a.Value(row)
		case *array.Int32:
			out[f.Name] = float64(a.Value(row))
		case *array.Int64:
			out[f.Name] = float64(a.Value(row))
		case *array.Float64:
			out[f.Name] = a.Value(row)
		case *array.Float32:
			out[f.Name] = float64(a.Value(row))
		case *array.Boolean:
			out[f.Name] = a.Value(row)
		case *array.Binary:
			out[f.Name] = latin1Text(a.Value(row))
		case *array.Decimal128:
			out[f.Name] = latin1Text(a.Value(row).BigInt().Bytes())
		default:
			out[f.Name] = a.ValueStr(row)
		}
	}
	return out
}

func latin1Text(b []byte) string {
	r := make([]rune, len(b))
	for i, c := range b {
		r[i] = rune(c)
	}
	return string(r)
}

func sameJSON(a, b any) bool {
	ma, oka := a.(map[string]any)
	mb, okb := b.(map[string]any)
	if !oka || !okb {
		return oka == okb && a == b
	}
	for k, v := range mb { // a decimal may have lost leading zero bytes
		if s, ok := v.(string); ok {
			if t, ok := ma[k].(string); ok && strings.TrimLeft(s, "\x00") == strings.TrimLeft(t, "\x00") {
				continue
			}
		}
		if !reflect.DeepEqual(v, ma[k]) {
			return false
		}
	}
	return len(ma) == len(mb)
}

func jsonText(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}
