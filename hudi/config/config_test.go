package config_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/mem"
)

// The files in testdata are hoodie.properties as Apache Hudi of the release in their name left them.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".properties"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func parseFixture(t *testing.T, name string) *config.Table {
	t.Helper()
	props, err := config.ParseProperties(fixture(t, name))
	if err != nil {
		t.Fatal(err)
	}
	table, err := config.Parse(props, name)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func put(t testing.TB, s storage.Store, name string, text []byte) {
	t.Helper()
	if _, err := s.Put(context.Background(), name, bytes.NewReader(text), storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Expectations from the fixtures' own text and from the defaults of the releases (vectors table_config_defaults).
func TestTablesOfEveryRelease(t *testing.T) {
	t.Run("0.9.0", func(t *testing.T) {
		got := parseFixture(t, "old_mor_0.9.0")
		if got.Version != 2 || got.Layout != 1 || got.Type != config.MergeOnRead || got.TimelinePath != ".hoodie" || got.HistoryPath != ".hoodie/archived" {
			t.Errorf("%+v", got)
		}
		if got.Props.ValidChecksum() {
			t.Error("version 2 has no checksum")
		}
	})
	t.Run("0.15.0", func(t *testing.T) {
		got := parseFixture(t, "mor_basic_0.15.0")
		if got.Version != 6 || got.Layout != 1 || got.Database != "default" || got.KeyGenerator != "org.apache.hudi.keygen.SimpleKeyGenerator" ||
			got.MergeStrategy != "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5" || !got.PayloadStored || !got.HiveStyle || got.TimelineZone != "LOCAL" || !got.PopulateMetaFields {
			t.Errorf("%+v", got)
		}
		if !reflect.DeepEqual(got.MetadataPartitions, []string{"files"}) || got.MetadataInflight != nil || !reflect.DeepEqual(got.OrderingFields, []string{"ts"}) {
			t.Errorf("%+v", got)
		}
		if !strings.HasPrefix(got.CreateSchema, `{"type":"record","name":"mor_basic_record","namespace":"hoodie.mor_basic","fields":[{"name":"id"`) {
			t.Errorf("schema %s", got.CreateSchema)
		}
	})
	t.Run("1.0.2", func(t *testing.T) {
		got := parseFixture(t, "mor_basic_1.0.2")
		if got.Version != 8 || got.Layout != 2 || got.KeyGenerator != "SIMPLE" || got.MergeMode != "EVENT_TIME_ORDERING" || got.PayloadClass != "org.apache.hudi.common.model.DefaultHoodieRecordPayload" ||
			got.TimelinePath != ".hoodie/timeline" || got.HistoryPath != ".hoodie/timeline/history" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("1.2.0", func(t *testing.T) {
		got := parseFixture(t, "mor_basic_1.2.0")
		if got.Version != 9 || got.InitialVersion != 9 || got.PayloadClass != "" || !reflect.DeepEqual(got.OrderingFields, []string{"ts"}) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("typed partition fields", func(t *testing.T) {
		got := parseFixture(t, "cow_partitions_custom_keygen_1.2.0")
		if !reflect.DeepEqual(got.PartitionFields, []string{"region", "at"}) || !reflect.DeepEqual(got.PartitionTypes, []string{"SIMPLE", "TIMESTAMP"}) {
			t.Errorf("%q %q", got.PartitionFields, got.PartitionTypes)
		}
	})
	t.Run("merge properties", func(t *testing.T) {
		got := parseFixture(t, "delete_marker_mor_1.2.0")
		want := map[string]string{"hoodie.payload.delete.field": "state", "hoodie.payload.delete.marker": "removed"}
		if !reflect.DeepEqual(got.RecordMergeProps, want) {
			t.Errorf("%q, want %q", got.RecordMergeProps, want)
		}
	})
	t.Run("metadata table", func(t *testing.T) {
		got := parseFixture(t, "mor_basic_1.2.0_metadata")
		if got.BaseFormat != "HFILE" || got.PopulateMetaFields || got.KeyGenerator != "HOODIE_TABLE_METADATA" || got.MergeMode != "CUSTOM" || got.IsPartitioned() {
			t.Errorf("%+v", got)
		}
	})
}

func TestUnsupportedIsRefused(t *testing.T) {
	change := func(name, key, value string) error {
		props, err := config.ParseProperties(fixture(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if value == "" {
			props.Delete(key)
		} else {
			props.Set(key, value)
		}
		_, err = config.Parse(props, "/data/orders")
		return err
	}
	for _, c := range []struct{ name, key, value string }{
		{"mor_basic_1.2.0", "hoodie.table.version", "10"},
		{"mor_basic_1.2.0", "hoodie.table.version", "11"},
		{"mor_basic_0.15.0", "hoodie.table.version", "7"},
		{"mor_basic_0.15.0", "hoodie.table.version", "0"},
		{"mor_basic_0.15.0", "hoodie.table.version", "-1"},
		{"mor_basic_0.15.0", "hoodie.table.version", "six"},
		{"mor_basic_0.15.0", "hoodie.table.version", ""},
		{"mor_basic_0.15.0", "hoodie.timeline.layout.version", "2"},
		{"mor_basic_0.15.0", "hoodie.timeline.layout.version", "0"},
		{"mor_basic_1.2.0", "hoodie.timeline.layout.version", "1"},
		{"mor_basic_1.2.0", "hoodie.table.format", "iceberg"},
		{"mor_basic_1.2.0", "hoodie.table.base.file.format", "LANCE"},
		{"mor_basic_1.2.0", "hoodie.table.type", "merge"},
	} {
		err := change(c.name, c.key, c.value)
		var u *config.UnsupportedError
		if !errors.Is(err, config.ErrUnsupported) || !errors.As(err, &u) {
			t.Errorf("%s with %s=%q: %v", c.name, c.key, c.value, err)
			continue
		}
		if u.Table != "/data/orders" || u.Hint == "" || u.Property != c.key {
			t.Errorf("%s: %+v", c.key, u)
		}
	}
	for _, c := range []struct{ key, value string }{
		{"hoodie.timeline.path", "../../other"}, {"hoodie.timeline.history.path", "a/../../../b"}, {"hoodie.archivelog.folder", ".."}, {"hoodie.table.name", ""},
	} {
		if err := change("mor_basic_1.2.0", c.key, c.value); !errors.Is(err, config.ErrInvalid) {
			t.Errorf("%s=%q: %v", c.key, c.value, err)
		}
	}
	for v := range 10 { // every version that we do read
		if v == 0 || v == 7 {
			continue
		}
		base := "mor_basic_0.15.0"
		if v >= 8 {
			base = "mor_basic_1.2.0"
		}
		if err := change(base, "hoodie.table.version", string(rune('0'+v))); err != nil {
			t.Errorf("version %d: %v", v, err)
		}
	}
}

// Vectors of org.apache.hudi.common.table.HoodieTableConfig, run on 0.15.0, 1.0.2 and 1.2.0.
func TestChecksumAndDefaultsLikeJava(t *testing.T) {
	var v struct {
		Checksum []struct {
			Database *string
			Table    string
			Checksum uint32
		} `json:"table_checksum"`
		Defaults struct {
			Rows []struct{ Key, Default, Alternatives, Since string }
		} `json:"table_config_defaults"`
	}
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Checksum) != 10 || len(v.Defaults.Rows) < 40 {
		t.Fatalf("%d and %d rows", len(v.Checksum), len(v.Defaults.Rows))
	}
	for _, r := range v.Checksum {
		p := config.NewProperties()
		p.Set(config.TableName, r.Table)
		if r.Database != nil {
			p.Set(config.DatabaseName, *r.Database)
		}
		if got := p.Checksum(); got != r.Checksum {
			t.Errorf("%v.%s: %d, want %d", r.Database, r.Table, got, r.Checksum)
		}
	}
	for _, r := range v.Defaults.Rows {
		k, ok := config.Lookup(r.Key)
		if !ok || k.Name != r.Key {
			t.Errorf("%s is not in the registry", r.Key)
			continue
		}
		if strings.Contains(r.Key, ".version") { // ours are never assumed
			continue
		}
		if k.Default != r.Default {
			t.Errorf("%s: default %q, want %q", r.Key, k.Default, r.Default)
		}
		for alt := range strings.SplitSeq(strings.Trim(r.Alternatives, "[]"), ", ") {
			if got, ok := config.Lookup(alt); alt != "" && (!ok || got.Name != r.Key && got.Name != alt) {
				t.Errorf("%s: other name %s finds %q", r.Key, alt, got.Name)
			}
		}
	}
}

// Entries as java.util.Properties of Java 11 reads and stores them.
func TestPropertiesText(t *testing.T) {
	text := "# comment \\\n! another\n\n  \t a = b\\tc\\\n   d\nk\\:e\\=y\\ 1:v:=x\nblank value here\nempty\nq=\\u00e9\\uD83D\\uDE00\xe9\r\n\\#h=\\!w\rlast=1\\"
	p, err := config.ParseProperties([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := [][2]string{{"a", "b\tcd"}, {"k:e=y 1", "v:=x"}, {"blank", "value here"}, {"empty", ""}, {"q", "é😀é"}, {"#h", "!w"}, {"last", "1"}}
	if len(p.Keys()) != len(want) {
		t.Fatalf("keys %q", p.Keys())
	}
	for i, k := range p.Keys() {
		if v, _ := p.Get(k); k != want[i][0] || v != want[i][1] {
			t.Errorf("%d: %q=%q, want %q", i, k, v, want[i])
		}
	}
	out := string(p.Encode(time.Date(2026, 11, 29, 23, 59, 26, 381840042, time.UTC)))
	wantText := "#Properties saved on 2026-11-29T23:59:26.381840042Z\n#Sun Nov 29 23:59:26 UTC 2026\na=b\\tcd\nk\\:e\\=y\\ 1=v\\:\\=x\nblank=value here\nempty=\n" +
		"q=\\u00E9\\uD83D\\uDE00\\u00E9\n\\#h=\\!w\nlast=1\nhoodie.table.checksum="
	if !strings.HasPrefix(out, wantText) {
		t.Errorf("got\n%s\nwant\n%s", out, wantText)
	}
	for _, bad := range []string{`a=\u12`, `a=\uzzzz`, `a\u00=1`} {
		if _, err := config.ParseProperties([]byte(bad)); err == nil || !strings.Contains(err.Error(), "byte 0") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Writing back what Java wrote gives the same bytes but for the two comment lines.
func TestRealFilesRoundTrip(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.properties")
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		p, err := config.ParseProperties(text)
		if err != nil {
			t.Fatal(err)
		}
		body := func(b []byte) string { return string(bytes.SplitN(b, []byte("\n"), 3)[2]) }
		got, want := body(p.Encode(time.Now())), body(text)
		if strings.HasPrefix(filepath.Base(f), "old_") {
			got = got[:strings.Index(got, config.TableChecksum)] // ours adds the checksum
		}
		if got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", f, got, want)
		}
	}
	if len(files) < 9 {
		t.Fatalf("%d files", len(files))
	}
}

func TestC113LoadReadsBackupAndNeverWrites(t *testing.T) {
	good := fixture(t, "mor_basic_0.15.0")
	cut := good[:len(good)/3]
	wrong := bytes.Replace(good, []byte("checksum=4"), []byte("checksum=5"), 1)
	for name, files := range map[string]map[string][]byte{
		"main only":               {config.File: good},
		"backup only":             {config.Backup: good},
		"cut main, backup":        {config.File: cut, config.Backup: good},
		"empty main, backup":      {config.File: {}, config.Backup: good},
		"spoilt checksum, backup": {config.File: wrong, config.Backup: good},
		"main, cut backup":        {config.File: good, config.Backup: cut},
	} {
		s := mem.New("t")
		for n, text := range files {
			put(t, s, n, text)
		}
		before := names(t, s)
		table, err := config.Load(context.Background(), s)
		if err != nil || table.Name != "mor_basic" {
			t.Errorf("%s: %v %v", name, table, err)
		}
		if after := names(t, s); !reflect.DeepEqual(before, after) {
			t.Errorf("%s: %q became %q", name, before, after)
		}
	}
}

func TestLoadFailures(t *testing.T) {
	ctx := context.Background()
	good := fixture(t, "mor_basic_0.15.0")
	s := mem.New("t")
	if _, err := config.Load(ctx, s); !errors.Is(err, config.ErrNotTable) || !strings.HasPrefix(err.Error(), "Hoodie table not found in path "+s.URL()+"/.hoodie") {
		t.Error(err)
	}
	put(t, s, config.File, bytes.Replace(good, []byte("checksum=4"), []byte("checksum=5"), 1))
	if _, err := config.Load(ctx, s); !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), "443809573") || !strings.Contains(err.Error(), "543809573") {
		t.Error(err)
	}
	put(t, s, config.File, []byte(`a=\u1`))
	if _, err := config.Load(ctx, s); !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), "hoodie.properties") {
		t.Error(err)
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := config.Load(done, s); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestLoadWaitsForAnUpdateOfOthers(t *testing.T) {
	s := mem.New("t")
	put(t, s, ".hoodie/20240101000000000.commit", []byte("{}"))
	go func() {
		time.Sleep(250 * time.Millisecond)
		_, _ = s.Put(context.Background(), config.File, bytes.NewReader(fixture(t, "mor_basic_0.15.0")), storage.PutOptions{})
	}()
	if _, err := config.Load(context.Background(), s); err != nil {
		t.Error(err)
	}
}

// Killed between any two operations an update leaves the old or the new properties, and the next update repairs the rest.
func TestUpdateKilledAnywhere(t *testing.T) {
	ctx := context.Background()
	changes := config.Changes{Set: map[string]string{"hoodie.table.metadata.partitions": "", "zz.unknown": "1"}, Delete: []string{"hoodie.table.metadata.partitions.inflight"}}
	for steps := 0; ; steps++ {
		s := mem.New("t")
		put(t, s, config.File, append(fixture(t, "mor_basic_0.15.0"), "my.own=kept\n"...))
		_, err := config.Update(ctx, &dying{Store: s, left: steps}, changes)
		if err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		seen, loadErr := config.Load(ctx, s)
		if loadErr != nil {
			t.Fatalf("killed after %d steps: %v", steps, loadErr)
		}
		if n := len(seen.MetadataPartitions); n != 0 && n != 1 {
			t.Fatalf("after %d steps: %q", steps, seen.MetadataPartitions)
		}
		if _, again := config.Update(ctx, s, changes); again != nil {
			t.Fatalf("killed after %d steps, then: %v", steps, again)
		}
		end, _ := config.Load(ctx, s)
		if v, _ := end.Props.Get("my.own"); v != "kept" || len(end.MetadataPartitions) != 0 || !end.Props.ValidChecksum() {
			t.Fatalf("after %d steps: %v", steps, end.Props.Keys())
		}
		if got := names(t, s); !reflect.DeepEqual(got, []string{config.File}) {
			t.Fatalf("left over: %q", got)
		}
		if err == nil {
			if steps < 3 {
				t.Fatalf("only %d steps", steps)
			}
			return
		}
	}
}

func TestUpdateRefusesWhatWeMayNotTouch(t *testing.T) {
	s := mem.New("t")
	text := bytes.Replace(fixture(t, "mor_basic_1.2.0"), []byte("table.version=9"), []byte("table.version=10"), 1)
	put(t, s, config.File, text)
	_, err := config.Update(context.Background(), s, config.Changes{Set: map[string]string{"a": "b"}})
	if !errors.Is(err, config.ErrUnsupported) {
		t.Error(err)
	}
	if got := names(t, s); len(got) != 1 {
		t.Error(got)
	}
}

var errKilled = errors.New("killed")

// dying fails every writing operation after the first ones, as a killed process would.
type dying struct {
	storage.Store
	left int
}

func (d *dying) step() error {
	if d.left--; d.left < 0 {
		return errKilled
	}
	return nil
}

func (d *dying) Put(ctx context.Context, name string, body io.Reader, opts storage.PutOptions) (storage.Info, error) {
	if err := d.step(); err != nil {
		return storage.Info{}, err
	}
	return d.Store.Put(ctx, name, body, opts)
}

func (d *dying) Delete(ctx context.Context, name string) error {
	if err := d.step(); err != nil {
		return err
	}
	return d.Store.Delete(ctx, name)
}

func names(t *testing.T, s storage.Store) []string {
	t.Helper()
	var out []string
	for info, err := range s.List(context.Background(), "", storage.ListOptions{Recursive: true}) {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		out = append(out, info.Name)
	}
	return out
}

func TestRegistry(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range config.Keys() {
		if seen[k.Name] || k.Doc == "" || k.Use == "" || k.Kind == "" || k.Scope == "" {
			t.Errorf("%+v", k)
		}
		seen[k.Name] = true
	}
	if len(seen) < 290 {
		t.Errorf("%d keys", len(seen))
	}
	for name, want := range map[string]string{
		"hoodie.datasource.view.type":                              "hoodie.datasource.query.type",
		"hoodie.deltastreamer.source.dfs.root":                     "hoodie.streamer.source.dfs.root",
		"hoodie.deltastreamer.keygen.timebased.output.dateformat":  "hoodie.keygen.timebased.output.dateformat",
		"hoodie.table.rt.file.format":                              "hoodie.table.log.file.format",
		"hoodie.compaction.record.merger.strategy":                 "hoodie.record.merge.strategy.id",
		"hoodie.table.precombine.field":                            "hoodie.table.precombine.field",
		"hoodie.record.merge.property.hoodie.payload.delete.field": "hoodie.record.merge.property.<x>",
		"hoodie.trips.consume.mode":                                "hoodie.<table>.consume.mode",
		"hoodie.streamer.csv.header":                               "hoodie.streamer.csv.<option>",
		"hoodie.deltastreamer.csv.header":                          "hoodie.streamer.csv.<option>",
		"hoodie.streamer.ingestion.db.t1.configFile":               "hoodie.streamer.ingestion.<db.table>.configFile",
	} {
		if k, ok := config.Lookup(name); !ok || k.Name != want {
			t.Errorf("%s is %q, want %q", name, k.Name, want)
		}
	}
	for name, want := range map[string]string{
		"oodie.deltastreamer.keygen.timebased.input.dateformat": "hoodie.deltastreamer.keygen.timebased.input.dateformat", // seed of key-generation 2.2
		"hoodie.datasource.write.recordKey.field":               "hoodie.datasource.write.recordkey.field",
		"hoodie.table.vresion":                                  "hoodie.table.version",
		"table.version":                                         "hoodie.table.version",
		"hoodie.table.version":                                  "",
		"spark.executor.memory":                                 "",
	} {
		if got, _ := config.Nearest(name); got != want {
			t.Errorf("nearest of %s: %q, want %q", name, got, want)
		}
	}
}

// docs/config.md is the registry's page; `sluice table config --markdown` writes it.
func TestPageIsUpToDate(t *testing.T) {
	var b bytes.Buffer
	if err := config.Markdown(&b); err != nil {
		t.Fatal(err)
	}
	const page = "../../docs/config.md"
	if os.Getenv("SLUICE_UPDATE") != "" {
		if err := os.WriteFile(page, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, b.Bytes()) {
		t.Error("docs/config.md is stale: run the test with SLUICE_UPDATE=1")
	}
}

func FuzzProperties(f *testing.F) {
	for _, name := range []string{"mor_basic_0.15.0", "cow_partitions_custom_keygen_1.2.0", "mor_basic_1.2.0_metadata"} {
		f.Add(fixture(f, name))
	}
	f.Add([]byte("a\\\n\\\n\\\n b=c\\"))
	f.Add([]byte("\\u00e9=\\uD800\n:=:\n \\ = \n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := config.ParseProperties(text)
		if err != nil {
			return
		}
		_, _ = config.Parse(p, "fuzz")
		again, err := config.ParseProperties(p.Encode(time.Unix(0, 0)))
		if err != nil {
			t.Fatalf("what we wrote does not parse: %v", err)
		}
		for _, k := range p.Keys() {
			want, _ := p.Get(k)
			if got, _ := again.Get(k); k != config.TableChecksum && got != want {
				t.Fatalf("%q: %q became %q", k, want, got)
			}
		}
	})
}
