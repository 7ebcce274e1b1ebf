package hudi_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/internal/foreign"
)

// Tables that Apache Hudi wrote hold, after an upsert of all their rows, those very rows: each found its stored self, under the same key,
// in the same partition, and no value changed on its way. A delete takes one row and no other; an overwrite keeps what it is given. The
// rows that are expected are those of TestTablesOfApacheHudi; interop/writes lets Apache Hudi read the tables then.
func TestRowsOfApacheHudiFindThemselves(t *testing.T) {
	reached := map[foreign.Reached]int{}
	for _, f := range foreign.Tables(t) {
		t.Run(f.Name, func(t *testing.T) {
			how, _ := foreign.Rewrite(t, f.Name, f.Open(t))
			reached[how]++
		})
	}
	t.Log(reached)
	if reached[foreign.Upserted] < 65 || reached[foreign.Overwritten] < 55 {
		t.Errorf("%v: fewer than there were", reached)
	}
}

// Keys that log files alone hold are seen: a row with such a key is an update, not a second row of that key (Apache Hudi's indexes of
// base files miss them).
func TestKeysInLogFilesAreFound(t *testing.T) {
	dir, expect := fixture.Spark(t, "mor_log_only_inmemory_0.15.0")
	table, err := hudi.Open(t.Context(), dir, hudi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"} {
		o := hudi.WriteOptions{Conf: map[string]string{"hoodie.metadata.enable": "false", "hoodie.index.type": kind}}
		if _, err := foreign.Write(t, table, hudi.Upsert, o, nil); !errors.Is(err, hudi.ErrUnsupported) || !strings.Contains(err.Error(), "log files") {
			t.Errorf("%s: an upsert of keys in log files: %v", kind, err)
		}
		o.Conf["hoodie.datasource.insert.dup.policy"] = "drop"
		if res, err := foreign.Write(t, table, hudi.Insert, o, nil); err != nil || res.Inserted != 0 {
			t.Errorf("%s: an insert that drops duplicates: %+v, %v", kind, res, err)
		}
	}
	got, err := foreign.Stored(t, table)
	if err != nil {
		t.Fatal(err)
	}
	expect.Snapshot.Check(t, got, foreign.Times...)
}
