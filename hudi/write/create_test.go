package write_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/write"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/local"
	"github.com/sluicelake/sluice/storage/mem"
)

const timebased = "hoodie.keygen.timebased."

// The options are those with which Spark and Apache Hudi 0.15.0 made the fixture ("steps" of its expect.json).
var created = map[string]map[string]string{
	"cow_partitions_timestamp_keygen_0.15.0": {
		"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "at", "hoodie.datasource.write.precombine.field": "ts",
		"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
		timebased + "timestamp.type":                 "EPOCHMILLISECONDS", timebased + "output.dateformat": "yyyy/MM/dd", timebased + "timezone": "UTC",
	},
	"cow_partitions_custom_keygen_0.15.0": {
		"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "region:SIMPLE,at:TIMESTAMP", "hoodie.datasource.write.precombine.field": "ts",
		"hoodie.datasource.write.keygenerator.class":      "org.apache.hudi.keygen.CustomKeyGenerator",
		"hoodie.datasource.write.hive_style_partitioning": "true",
		timebased + "timestamp.type":                      "UNIX_TIMESTAMP", timebased + "output.dateformat": "yyyy-MM", timebased + "timezone": "UTC",
	},
	"cow_no_meta_fields_0.15.0": {
		"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "dt", "hoodie.datasource.write.precombine.field": "ts",
		"hoodie.datasource.write.hive_style_partitioning": "true", "hoodie.populate.meta.fields": "false",
	},
	"cow_drop_partition_columns_0.15.0": {
		"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "region,level", "hoodie.datasource.write.precombine.field": "ts",
		"hoodie.datasource.write.hive_style_partitioning": "true", "hoodie.datasource.write.drop.partition.columns": "true",
	},
	"payload_latest_cow_0.15.0": {
		"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.precombine.field": "ts",
		"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
	},
	"payload_default_mor_0.15.0": {
		"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.precombine.field": "ts", "hoodie.datasource.write.table.type": "MERGE_ON_READ",
		"hoodie.compaction.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
	},
	// Made by SQL, which leaves out the keys that have their default, and stores the schema.
	"empty_table_0.15.0": {
		"hoodie.table.recordkey.fields": "id", "hoodie.table.partition.fields": "dt", "hoodie.table.precombine.field": "ts",
		"hoodie.datasource.write.hive_style_partitioning": "true", "hoodie.database.name": "default",
	},
}

// Beside what Apache Hudi stores, a table of ours keeps what every later writer needs to make the same keys and times.
var ours = map[string]bool{
	timebased + "timestamp.type": true, timebased + "output.dateformat": true, timebased + "timezone": true, "hoodie.table.timeline.timezone": true, "hoodie.table.complex.keygen.encoding": true,
}

func TestPropertiesAsApacheHudiWritesThem(t *testing.T) {
	ctx := context.Background()
	for name, options := range created {
		t.Run(name, func(t *testing.T) {
			dir, _ := fixture.Spark(t, name)
			theirs := properties(t, filepath.Join(dir, config.File))
			options["hoodie.table.name"], _ = theirs.Get(config.TableName)
			if s, ok := theirs.Get("hoodie.table.create.schema"); ok {
				options["hoodie.table.create.schema"] = s
			}
			spec, err := write.SpecFromOptions(options)
			if err != nil {
				t.Fatal(err)
			}
			root := t.TempDir()
			if _, err := write.CreateTable(ctx, open(t, root), spec); err != nil {
				t.Fatal(err)
			}
			got := properties(t, filepath.Join(root, config.File))
			sql := name == "empty_table_0.15.0"
			for _, key := range theirs.Keys() {
				want, _ := theirs.Get(key)
				have, ok := got.Get(key)
				if strings.HasPrefix(key, "hoodie.table.metadata.partitions") || ours[key] {
					continue
				}
				if !ok || have != want {
					t.Errorf("%s = %q (there: %v), Apache Hudi wrote %q", key, have, ok, want)
				}
			}
			for _, key := range got.Keys() {
				if _, ok := theirs.Get(key); ok || ours[key] || key == "hoodie.compaction.payload.class" { // 1.x wants it in copy-on-write tables, too
					continue
				}
				if k, known := config.Lookup(key); !sql || !known || k.Default != mustGet(got, key) {
					t.Errorf("%s = %q, which Apache Hudi did not write", key, mustGet(got, key))
				}
			}
		})
	}
}

func TestCreateRefuses(t *testing.T) {
	ctx := context.Background()
	good := write.Spec{Name: "orders", RecordKeyFields: []string{"id"}, Schema: `{"type":"record","name":"r","fields":[{"name":"id","type":"long"},{"name":"dt","type":"string"}]}`}
	for _, c := range []struct {
		name   string
		change func(*write.Spec)
		option string
	}{
		{"no name", func(s *write.Spec) { s.Name = "" }, "hoodie.table.name"},
		{"a path for a name", func(s *write.Spec) { s.Name = "a/b" }, "hoodie.table.name"},
		{"a line break in the name", func(s *write.Spec) { s.Name = "a\nb" }, "hoodie.table.name"},
		{"no key", func(s *write.Spec) { s.RecordKeyFields = nil }, "hoodie.datasource.write.recordkey.field"},
		{"a key that is no column", func(s *write.Spec) { s.RecordKeyFields = []string{"ID"} }, "hoodie.datasource.write.recordkey.field"},
		{"a key twice", func(s *write.Spec) { s.RecordKeyFields = []string{"id", "id"} }, "hoodie.datasource.write.recordkey.field"},
		{"a partition that is no column", func(s *write.Spec) { s.PartitionFields = []string{"day"} }, "hoodie.datasource.write.partitionpath.field"},
		{"an ordering that is no column", func(s *write.Spec) { s.OrderingFields = []string{"ts"} }, "hoodie.datasource.write.precombine.field"},
		{"an unknown generator", func(s *write.Spec) { s.KeyGenerator = "EASY" }, "hoodie.datasource.write.keygenerator.class"},
		{"an unknown type", func(s *write.Spec) { s.Type = "COPY" }, "hoodie.datasource.write.table.type"},
		{"a schema that is none", func(s *write.Spec) { s.Schema = "{" }, "hoodie.table.create.schema"},
	} {
		store := mem.New("orders")
		spec := good
		c.change(&spec)
		_, err := write.CreateTable(ctx, store, spec)
		var bad *write.SpecError
		if !errors.As(err, &bad) || bad.Option != c.option || bad.Next == "" {
			t.Errorf("%s: %v, want a SpecError about %s", c.name, err, c.option)
		}
		for info := range store.List(ctx, "", storage.ListOptions{Recursive: true}) {
			t.Errorf("%s: refused, and %s was written", c.name, info.Name)
		}
	}
	store := mem.New("orders")
	bad := good
	bad.Version = 8
	if _, err := write.CreateTable(ctx, store, bad); !errors.Is(err, config.ErrUnsupported) {
		t.Errorf("version 8: %v", err)
	}
	if _, err := write.CreateTable(ctx, store, good); err != nil {
		t.Fatal(err)
	}
	if _, err := write.CreateTable(ctx, store, good); !errors.Is(err, write.ErrTableExists) {
		t.Errorf("a second time: %v", err)
	}
}

// The folders are those that Apache Hudi 0.15.0 makes at creation (table format 1.1).
func TestFoldersOfANewTable(t *testing.T) {
	root := t.TempDir()
	if _, err := write.CreateTable(context.Background(), open(t, root), write.Spec{Name: "orders", RecordKeyFields: []string{"id"}}); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if rel, _ := filepath.Rel(root, p); rel != "." && err == nil {
			got = append(got, rel)
		}
		return err
	})
	want := []string{".hoodie", ".hoodie/.aux", ".hoodie/.aux/.bootstrap", ".hoodie/.aux/.bootstrap/.fileids", ".hoodie/.aux/.bootstrap/.partitions",
		".hoodie/.schema", ".hoodie/.temp", ".hoodie/archived", ".hoodie/hoodie.properties"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

func properties(t *testing.T, file string) *config.Properties {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := config.ParseProperties(text)
	if err != nil {
		t.Fatal(err)
	}
	if !p.ValidChecksum() {
		t.Errorf("%s: wrong checksum", file)
	}
	return p
}

func mustGet(p *config.Properties, key string) string {
	v, _ := p.Get(key)
	return v
}

func open(t testing.TB, root string) storage.Store {
	t.Helper()
	s, err := local.New(root, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
