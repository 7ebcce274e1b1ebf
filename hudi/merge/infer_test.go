package merge

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

type inferenceRow struct {
	Version string `json:"table_version"`
	Given   struct {
		Mode, Payload, Strategy string
		Ordering                string `json:"ordering_field"`
	}
	Result json.RawMessage
}

// The rows are answers of HoodieTableConfig 1.2.0 and, where they differ, of 1.0.2.
func TestInferAgreesWithHoodieTableConfig(t *testing.T) {
	var file struct {
		Inference struct {
			Rows    []inferenceRow
			Differs map[string][]inferenceRow
		} `json:"merge_inference"`
	}
	readJSON(t, "vectors.json", &file)
	ran := 0
	check := func(release string, rows []inferenceRow) {
		for _, row := range rows {
			version := map[string]int{"SIX": 6, "EIGHT": 8, "NINE": 9}[row.Version]
			if version == 0 {
				continue // the first row is about an empty configuration
			}
			ran++
			got, err := Infer(version, release, Settings{Mode: row.Given.Mode, PayloadClass: row.Given.Payload,
				StrategyID: row.Given.Strategy, OrderingFields: row.Given.Ordering})
			var want map[string]string
			if json.Unmarshal(row.Result, &want) != nil {
				if !errors.Is(err, ErrConfig) {
					t.Errorf("%s %s %+v: got %+v, %v; want %s", release, row.Version, row.Given, got, err, row.Result)
				}
				continue
			}
			if err != nil || !maps.Equal(want, asRow(version, got, row.Given.Ordering)) {
				t.Errorf("%s %s %+v: got %v, %v; want %v", release, row.Version, row.Given, asRow(version, got, row.Given.Ordering), err, want)
			}
		}
	}
	check("1.2.0", file.Inference.Rows)
	check("1.0.2", file.Inference.Differs["1.0.2"])
	if ran < 300 {
		t.Errorf("only %d rows", ran)
	}
}

func asRow(version int, s Settings, ordering string) map[string]string {
	if version < 9 {
		return map[string]string{"mode": s.Mode, "payload": s.PayloadClass, "strategy": s.StrategyID}
	}
	out := map[string]string{"hoodie.record.merge.mode": s.Mode}
	for k, v := range map[string]string{"hoodie.compaction.payload.class": s.PayloadClass, "hoodie.record.merge.strategy.id": s.StrategyID,
		"hoodie.table.legacy.payload.class": s.LegacyPayload, "hoodie.table.partial.update.mode": s.PartialUpdateMode} {
		if v != "" {
			out[k] = v
		}
	}
	if s.OrderingFields != ordering {
		out["hoodie.table.ordering.fields"] = s.OrderingFields
	}
	for k, v := range s.Properties {
		out[k] = v
	}
	return out
}

func readJSON(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// What tables of real releases store (property sets of the fixtures that each release made), and the rule that they get.
func TestCompileReadsStoredSettings(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"0.15.0 without a class", Options{TableVersion: 6, StrategyID: StrategyEventTime}, PayloadLatest + " (as 0.15.0)"},
		{"0.15.0 names the event time merger beside every class",
			Options{TableVersion: 6, StrategyID: StrategyEventTime, PayloadClass: PayloadPartial}, PayloadPartial + " (as 0.15.0)"},
		{"1.2.0 on version 6", Options{TableVersion: 6, StrategyID: StrategyEventTime, PayloadClass: PayloadDefault}, PayloadDefault + " (as 0.15.0)"},
		{"1.0.2 with a class that has a mode", Options{TableVersion: 8, MergeMode: EventTime, StrategyID: StrategyEventTime, PayloadClass: PayloadDefault}, EventTime + " (as 1.0.2)"},
		{"1.0.2 with EventTimeAvroPayload", Options{TableVersion: 8, MergeMode: Custom, StrategyID: StrategyPayload, PayloadClass: PayloadEventTime}, PayloadEventTime + " (as 1.0.2)"},
		{"upgraded: the mode counts, not the class", Options{TableVersion: 9, MergeMode: EventTime, LegacyPayload: PayloadLatest}, EventTime + " (as 1.2.0)"},
		{"version 9 with nothing but an ordering field", Options{TableVersion: 9, OrderingFields: []string{"ts"}}, EventTime + " (as 1.2.0)"},
		{"version 9 with nothing", Options{TableVersion: 9}, CommitTime + " (as 1.2.0)"},
		{"non-defaults", Options{TableVersion: 9, MergeMode: CommitTime, PartialUpdateMode: IgnoreDefaults, LegacyPayload: PayloadNonDefaults}, CommitTime + "+IGNORE_DEFAULTS (as 1.2.0)"},
		{"forced", Options{TableVersion: 6, PayloadClass: "com.example.Payload", ForceCommitTime: true}, CommitTime + " (as 0.15.0)"},
	} {
		c.o.Schema = orders(t)
		r, err := Compile(c.o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if r.String() != c.want {
			t.Errorf("%s: %s, want %s", c.name, r, c.want)
		}
	}
}

func TestCompileRefusesWhatHasNoRule(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"payload class":          {Options{TableVersion: 6, PayloadClass: "com.example.Payload"}, "com.example.Payload (property hoodie.compaction.payload.class)"},
		"payload class, stored":  {Options{TableVersion: 9, MergeMode: Custom, StrategyID: StrategyPayload, PayloadClass: "com.example.Payload"}, "com.example.Payload"},
		"merger":                 {Options{TableVersion: 9, MergeMode: Custom, StrategyID: "11111111-1111-1111-1111-111111111111"}, "hoodie.record.merge.strategy.id"},
		"merger of 0.x":          {Options{TableVersion: 6, StrategyID: "11111111-1111-1111-1111-111111111111"}, "hoodie.compaction.record.merger.strategy"},
		"custom without a class": {Options{TableVersion: 9, MergeMode: Custom}, "hoodie.record.merge.mode"},
		"mode":                   {Options{TableVersion: 9, MergeMode: "LUCK"}, "hoodie.record.merge.mode"},
		"partial update mode":    {Options{TableVersion: 9, MergeMode: CommitTime, PartialUpdateMode: "LUCK"}, "hoodie.table.partial.update.mode"},
	} {
		c.o.Schema = orders(t)
		_, err := Compile(c.o)
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "commit-time") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A projection without the columns that mark deletes would bring deleted rows back.
func TestCompileRefusesAProjectionWithoutMarks(t *testing.T) {
	table := parse(t, `{"type":"record","name":"r","fields":[{"name":"_hoodie_record_key","type":"string"},
		{"name":"ts","type":"long"},{"name":"state","type":"string"},{"name":"_hoodie_is_deleted","type":"boolean","default":false}]}`)
	whole, err := table.Arrow()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{TableVersion: 9, MergeMode: EventTime, OrderingFields: []string{"ts"}, Schema: table,
		Props: map[string]string{propPrefix + propDeleteField: "state", propPrefix + propDeleteMark: "gone"}}
	r := compile(t, o)
	if want := []string{"ts", "_hoodie_is_deleted", "state"}; !slices.Equal(r.Columns(), want) {
		t.Errorf("columns %q, want %q", r.Columns(), want)
	}
	for _, drop := range []int{2, 3} {
		o.Arrow = arrow.NewSchema(slices.Delete(slices.Clone(whole.Fields()), drop, drop+1), nil)
		if _, err := Compile(o); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), whole.Field(drop).Name) {
			t.Errorf("without %s: %v", whole.Field(drop).Name, err)
		}
	}
}
