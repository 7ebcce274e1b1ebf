package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/internal/fixture"
)

// The keys that Apache Hudi stored in every table that its Spark writer made are those that the table's configuration gives
// here.
func TestStoredKeysOfEveryTableAgree(t *testing.T) {
	// What can't be compared, with the words of the refusal.
	refused := map[string]string{
		"bootstrap_metadata_only": "bootstrapped by metadata only",
		"cow_no_meta_fields":      "keeps no record keys",
		"mor_no_meta_fields":      "keeps no record keys",
		"keyless_table":           "",
		"empty_table":             "",
		// 0.15.0 does not keep the types and formats of these in the table's properties.
		"cow_partitions_timestamp_keygen_0.15":  "hoodie.keygen.timebased.timestamp.type is missing",
		"cow_partitions_datestring_keygen_0.15": "hoodie.keygen.timebased.timestamp.type is missing",
		"cow_partitions_custom_keygen_0.15":     "Please specify the partition field names",
		"cow_partitions_custom_keygen_1.2":      "hoodie.keygen.timebased.timestamp.type is missing",
	}
	for _, name := range fixture.SparkNames(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, _ := fixture.Spark(t, name)
			code, out, errs := sluice(t, "keys", "--check", dir)
			text, ok := refused[name[:strings.LastIndexByte(name, '_')]]
			if !ok {
				text, ok = refused[strings.TrimSuffix(name, ".0")]
			}
			if ok {
				if text != "" && (code == 0 || !strings.Contains(errs, text)) {
					t.Errorf("exit code %d: %s", code, errs)
				}
				return
			}
			if code != 0 {
				t.Errorf("exit code %d: %s%s", code, out, errs)
			}
		})
	}
}

func TestKeysOfSampleRecords(t *testing.T) {
	dir := t.TempDir()
	props := filepath.Join(dir, "orders.properties")
	text := "hoodie.datasource.write.recordkey.field=id,region\nhoodie.datasource.write.partitionpath.field=region\nhoodie.datasource.write.hive_style_partitioning=true\n"
	if err := os.WriteFile(props, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for format, records := range map[string]string{
		"json": `{"id": 1, "region": "eu west", "qty": 2.5}` + "\n" + `{"id": 2, "region": null}`,
		"csv":  "id,region,qty\n1,eu west,2.5\n2,,\n",
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), []string{"keys", "--props", props, "--input", format, "-o", "json"}, console{in: strings.NewReader(records), out: &out, err: &errs})
		if code != 0 {
			t.Fatalf("%s: exit code %d: %s", format, code, errs.String())
		}
		var got []struct{ Key, Partition string }
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if len(got) != 2 || got[0].Key != "id:1,region:eu west" || got[0].Partition != "region=eu west" ||
			got[1].Key != "id:2,region:__null__" || got[1].Partition != "region=__HIVE_DEFAULT_PARTITION__" {
			t.Errorf("%s: %+v", format, got)
		}
	}
}

func TestMistakesInKeyConfigurationsAreNamed(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--hoodie-conf", "hoodie.datasource.write.recordkey.field=nope"}, []string{"nope"}},
		{[]string{"--hoodie-conf", "garbage"}, []string{"write key=value"}},
		{[]string{"--props", "/does/not/exist"}, []string{"--props"}},
		{[]string{"--release", "0.1"}, []string{"--release"}},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"keys"}, c.args...), console{in: strings.NewReader(`{"id": 1}`), out: &out, err: &errs})
		for _, w := range c.want {
			if code == 0 && !strings.Contains(out.String(), w) || code != 0 && !strings.Contains(errs.String(), w) {
				t.Errorf("%v: exit code %d: %s%s", c.args, code, out.String(), errs.String())
			}
		}
	}
}
