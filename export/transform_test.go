package export_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/engine/local"
	"github.com/sluicelake/sluice/export"
	"github.com/sluicelake/sluice/internal/fixture"
)

// A transformer that looks at rows one by one needs them not all at once: the meta columns go as ever, the others keep their values.
func TestTransformedRowByRow(t *testing.T) {
	dir, expect := fixture.Spark(t, "cow_basic_1.2.0")
	c := export.Config{Source: dir, Target: filepath.Join(t.TempDir(), "out"), Format: export.CSV, Rows: export.Snapshot, Filter: "id <> 1",
		Transformers: []string{"FlatteningTransformer", "AWSDmsTransformer"}, PartitionField: "Op"}
	if _, err := export.Run(t.Context(), c, local.Options{Workers: 3}); err != nil {
		t.Fatal(err)
	}
	columns := []string{"id", "name", "price", "ts", "dt"}
	want := picked(expect.Snapshot, func(r map[string]any) bool { return fmt.Sprint(r["id"]) != "1" }, columns...)
	for i := range want { // AWSDmsTransformer adds an empty Op to rows that have none (tools C.9)
		want[i] = "Op=__HIVE_DEFAULT_PARTITION__ " + want[i]
	}
	if header, got := csvLines(t, c.Target); header != strings.Join(columns, ",") || !slices.Equal(got, want) {
		t.Errorf("%s\n%q, want\n%q", header, got, want)
	}
}

func TestTransformersThatAreRefused(t *testing.T) {
	refused(t, []refusal{
		{export.Config{Format: export.JSON, Transformers: []string{"SqlQueryBasedTransformer"}}, "--transformer-sql"},
		{export.Config{Format: export.JSON, Transformers: []string{"SqlFileBasedTransformer"}, TransformerSQL: "select 1"}, "--transformer-sql-file"},
		{export.Config{Format: export.JSON, TransformerSQL: "select 1"}, "--transformer-class SqlQueryBasedTransformer"},
		{export.Config{Format: export.Hudi, Transformers: []string{"dms"}}, "choose parquet"},
		{export.Config{Format: export.JSON, Transformers: []string{"com.example.Own"}}, "Unable to load class: com.example.Own"},
	})
}

// refusal is a configuration, and what its error says.
type refusal struct {
	config export.Config
	text   string
}

// refused checks that nothing is written.
func refused(t *testing.T, all []refusal) {
	t.Helper()
	dir, _ := fixture.Spark(t, "cow_basic_1.2.0")
	for _, c := range all {
		c.config.Source, c.config.Target = dir, filepath.Join(t.TempDir(), "out")
		_, err := export.Run(t.Context(), c.config, local.Options{})
		if err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v: %v", c.config, err)
		}
		if _, err := os.Stat(c.config.Target); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%+v: something was written", c.config)
		}
	}
}
