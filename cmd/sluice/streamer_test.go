package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"
)

const eventSchema = `{"type":"record","name":"ev","fields":[{"name":"id","type":"string"},{"name":"region","type":"string"},{"name":"qty","type":["null","int"],"default":null},{"name":"ts","type":"long"}]}`

// stream is a folder with a source, a schema and a table.
type stream struct {
	t                    *testing.T
	dir, in, table, conf string
	files                int
}

func newStream(t *testing.T) *stream {
	s := &stream{t: t, dir: t.TempDir()}
	s.in, s.table, s.conf = filepath.Join(s.dir, "in"), filepath.Join(s.dir, "table"), filepath.Join(s.dir, "ev.avsc")
	if err := os.Mkdir(s.in, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.conf, []byte(eventSchema), 0o666); err != nil {
		t.Fatal(err)
	}
	return s
}

// put adds a file, each with a later time.
func (s *stream) put(lines ...string) {
	s.t.Helper()
	s.files++
	name := filepath.Join(s.in, fmt.Sprintf("%03d.json", s.files))
	if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o666); err != nil {
		s.t.Fatal(err)
	}
	at := time.UnixMilli(1579550000000 + int64(s.files)*1000)
	if err := os.Chtimes(name, at, at); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stream) args(more ...string) []string {
	return append([]string{"streamer", "--target-base-path", s.table, "--target-table", "t", "--table-type", "COPY_ON_WRITE", "--source-ordering-field", "ts",
		"--hoodie-conf", "hoodie.datasource.write.recordkey.field=id", "--hoodie-conf", "hoodie.datasource.write.partitionpath.field=region",
		"--hoodie-conf", "hoodie.streamer.source.dfs.root=" + s.in, "--schemaprovider-class", "FilebasedSchemaProvider",
		"--hoodie-conf", "hoodie.streamer.schemaprovider.source.schema.file=" + s.conf}, more...)
}

func (s *stream) run(want int, more ...string) string {
	s.t.Helper()
	code, out, errs := sluice(s.t, s.args(more...)...)
	if code != want {
		s.t.Fatalf("exit %d, want %d: %s", code, want, errs)
	}
	return out + errs
}

func (s *stream) rows() string {
	s.t.Helper()
	var out []string
	for _, row := range tableRows(s.t, s.table) {
		out = append(out, fmt.Sprintf("%v:%v", row["id"], row["qty"]))
	}
	sort.Strings(out)
	return strings.Join(out, " ")
}

func TestStreamerDelete(t *testing.T) {
	s := newStream(t)
	s.put(`{"id":"a","region":"eu","qty":1,"ts":1}`, `{"id":"b","region":"eu","qty":2,"ts":9}`)
	s.run(exitDone)
	s.put(`{"id":"b","region":"eu","qty":2,"ts":1}`, `{"id":"absent","region":"eu","ts":1}`)
	s.run(exitDone, "--op", "DELETE")
	if got := s.rows(); got != "a:1" {
		t.Error(got)
	}
}

func TestStreamerIgnoreCheckpoint(t *testing.T) {
	s := newStream(t)
	s.put(`{"id":"a","region":"eu","qty":1,"ts":1}`)
	s.run(exitDone)
	for i, want := range []string{"round 1: commit", "nothing new", "nothing new"} {
		if out := s.run(exitDone, "--ignore-checkpoint", "token"); !strings.Contains(out, want) {
			t.Errorf("time %d: %s", i+1, out)
		}
	}
	if out := s.run(exitDone, "--ignore-checkpoint", "another"); !strings.Contains(out, "round 1: commit") {
		t.Errorf("another token: %s", out)
	}
}

// With --commit-on-errors bad records go aside, each with its file, line and reason; the rest is committed.
func TestStreamerRejects(t *testing.T) {
	s := newStream(t)
	s.put(`{"id":"a","region":"eu","qty":1,"ts":1}`, `not json`, `{"id":"","region":"eu","qty":3,"ts":1}`, `{"id":"b","region":"eu","qty":"x","ts":1}`, `{"id":"c","region":"eu","qty":4,"ts":1}`)
	if out := s.run(exitFailed); !strings.Contains(out, "001.json:2") {
		t.Errorf("without the flag: %s", out)
	}
	out := s.run(exitDone, "--commit-on-errors", "-o", "json")
	if got := s.rows(); got != "a:1 c:4" {
		t.Errorf("%s: %s", got, out)
	}
	var sum struct{ Rejected, Read, Commits int }
	if err := json.Unmarshal([]byte(out[:strings.IndexByte(out, '\n')]), &sum); err != nil || sum.Rejected != 3 || sum.Commits != 1 {
		t.Errorf("%+v, %v: %s", sum, err, out)
	}
	files, err := filepath.Glob(s.table + "_rejects/*.json")
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`001.json:2"`, `001.json:3"`, `001.json:4"`, "not json", `For input string: \"x\"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	s.put(`nope`)
	rejects := filepath.Join(s.dir, "errors")
	s.run(exitDone, "--hoodie-conf", "hoodie.errortable.enable=true", "--hoodie-conf", "hoodie.errortable.base.path="+rejects, "--hoodie-conf", "hoodie.errortable.target.table.name=e")
	if rows := tableRows(t, rejects); len(rows) != 1 || rows[0]["payload"] != "nope" || !strings.HasSuffix(fmt.Sprint(rows[0]["source"]), "002.json:1") {
		t.Errorf("error table: %v", rows)
	}
}

// Columns that vanish upstream, and the schema of the table itself as the source's.
func TestStreamerSchemas(t *testing.T) {
	s := newStream(t)
	s.put(`{"id":"a","region":"eu","qty":1,"ts":1}`)
	s.run(exitDone)
	s.put(`{"id":"b","region":"eu","ts":1,"more":1}`)
	args := append([]string{}, s.args("--schemaprovider-class", "table")...)
	at := slices.Index(args, "--schemaprovider-class")
	args = slices.Delete(args, at, at+4) // the file-based one and its property
	if code, _, errs := sluice(t, args...); code != exitDone {
		t.Fatal(errs)
	}
	if got := s.rows(); got != "a:1 b:<nil>" {
		t.Error(got)
	}
	s.put(`{"id":"b","region":"eu","ts":"x"}`)
	if out := s.run(exitFailed); !strings.Contains(out, `003.json:1: Failed to convert schema from json to avro`) {
		t.Error(out)
	}
}

// Five lines as they stand in people's scripts, pasted behind the verb: everything from spark-submit on, or the tail alone.
func TestStreamerPasted(t *testing.T) {
	for name, line := range map[string]string{
		"EMR, DeltaStreamer of 0.5": `spark-submit --class org.apache.hudi.utilities.deltastreamer.HoodieDeltaStreamer --packages org.apache.spark:spark-avro_2.11:2.4.4 --master yarn --deploy-mode client
			/usr/lib/hudi/hudi-utilities-bundle.jar --storage-type COPY_ON_WRITE --source-ordering-field ts --source-class org.apache.hudi.utilities.sources.JsonDFSSource
			--target-base-path TABLE --target-table t --schemaprovider-class org.apache.hudi.utilities.schema.FilebasedSchemaProvider
			--hoodie-conf hoodie.datasource.write.recordkey.field=id,hoodie.datasource.write.partitionpath.field=region,hoodie.deltastreamer.source.dfs.root=IN,hoodie.deltastreamer.schemaprovider.source.schema.file=CONF
			--spark-master yarn`,
		"props file": `HADOOP_CONF_DIR=/etc/hadoop sudo -u hadoop $SPARK_HOME/bin/spark-submit --jars a.jar,b.jar --conf spark.serializer=org.apache.spark.serializer.KryoSerializer --conf=spark.executor.memory=4g --num-executors 4
			--class org.apache.hudi.utilities.streamer.HoodieStreamer local:///opt/hudi/hudi-utilities-slim-bundle_2.12-0.14.0.jar
			--props PROPS --table-type COPY_ON_WRITE --op UPSERT --target-base-path file://TABLE --target-table t --source-class org.apache.hudi.utilities.sources.JsonDFSSource
			--source-ordering-field ts --schemaprovider-class org.apache.hudi.utilities.schema.FilebasedSchemaProvider --min-sync-interval-seconds 60 --enable-hive-support
			--delta-sync-scheduling-weight 1 --max-pending-compactions 5`,
		"the tail alone": `--target-base-path TABLE --target-table t --table-type COPY_ON_WRITE --base-file-format PARQUET --props file:///dummy/path/to/properties --hoodie-conf hoodie.streamer.source.dfs.root=IN
			--hoodie-conf hoodie.datasource.write.recordkey.field=id --hoodie-conf hoodie.datasource.write.partitionpath.field=region:SIMPLE
			--hoodie-conf hoodie.datasource.write.keygenerator.class=org.apache.hudi.keygen.CustomKeyGenerator
			--hoodie-conf hoodie.streamer.schemaprovider.source.schema.file=CONF --schemaprovider-class org.apache.hudi.utilities.schema.FilebasedSchemaProvider
			--source-class org.apache.hudi.utilities.sources.JsonDFSSource --source-ordering-field ts --payload-class org.apache.hudi.common.model.DefaultHoodieRecordPayload`,
		"jar first": `s3://jars/hudi-utilities-bundle_2.12-0.15.0.jar --table-type COPY_ON_WRITE --target-base-path TABLE --target-table t --source-ordering-fields ts --record-merge-mode EVENT_TIME_ORDERING
			--hoodie-conf hoodie.streamer.source.dfs.root=IN --hoodie-conf hoodie.datasource.write.recordkey.field=id --hoodie-conf hoodie.datasource.write.partitionpath.field=region
			--hoodie-conf hoodie.streamer.schemaprovider.source.schema.file=CONF --schemaprovider-class org.apache.hudi.utilities.schema.FilebasedSchemaProvider --spark-app-name s -rc`,
		"continuous": `spark3-submit --verbose --queue default --principal x --keytab k --driver-memory 2g --class org.apache.hudi.utilities.deltastreamer.HoodieDeltaStreamer ''
			--table-type COPY_ON_WRITE --target-base-path TABLE --target-table t --source-ordering-field ts --continuous --source-limit 1000000 --filter-dupes --op INSERT
			--post-write-termination-strategy-class org.apache.hudi.utilities.deltastreamer.NoNewDataTerminationStrategy --hoodie-conf max.rounds.without.new.data.to.shutdown=1
			--hoodie-conf hoodie.deltastreamer.source.dfs.root=IN --hoodie-conf hoodie.datasource.write.recordkey.field=id --hoodie-conf hoodie.datasource.write.partitionpath.field=region
			--hoodie-conf hoodie.datasource.write.precombine.field=ts --hoodie-conf hoodie.upsert.shuffle.parallelism=2
			--hoodie-conf hoodie.deltastreamer.schemaprovider.source.schema.file=CONF --schemaprovider-class org.apache.hudi.utilities.schema.FilebasedSchemaProvider`,
	} {
		s := newStream(t)
		s.put(`{"id":"a","region":"eu","qty":1,"ts":1}`)
		props := filepath.Join(s.dir, "t.properties")
		text := "# orders\ninclude=more.properties\nhoodie.datasource.write.recordkey.field = id\n"
		more := "hoodie.datasource.write.partitionpath.field region\nhoodie.streamer.source.dfs.root=" + s.in + "\nhoodie.streamer.schemaprovider.source.schema.file=" + s.conf + "\n"
		for name, text := range map[string]string{props: text, filepath.Join(s.dir, "more.properties"): more} {
			if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		args := []string{"streamer"}
		for _, word := range strings.Fields(strings.NewReplacer("TABLE", s.table, "PROPS", props, "CONF", s.conf, "=IN", "="+s.in).Replace(line)) {
			args = append(args, strings.Trim(word, "'"))
		}
		code, _, errs := sluice(t, args...)
		if code != exitDone || s.rows() != "a:1" {
			t.Errorf("%s: exit %d: %s", name, code, errs)
		}
	}
}

func TestStreamerUsage(t *testing.T) {
	s := newStream(t)
	s.put(`{"id":"a","region":"eu","qty":1,"ts":1}`)
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"--tabel-type", "x"}, exitUsage, "Was passed main parameter '--tabel-type' but no main parameter was defined in your arg class; did you mean --table-type?"},
		{[]string{"--contineous"}, exitUsage, "did you mean --continuous?"}, //nolint:misspell // on purpose
		{[]string{"word"}, exitUsage, "Was passed main parameter 'word'"},
		{[]string{"--op", "MERGE"}, exitUsage, "No enum constant org.apache.hudi.common.model.WriteOperationType.MERGE"},
		{[]string{"--source-limit", "x"}, exitUsage, `"--source-limit": couldn't convert "x" to a long`},
		{[]string{"--max-retry-count", "x"}, exitUsage, `"--max-retry-count": couldn't convert "x" to an integer`},
		{[]string{"--hoodie-conf", "hoodie.datasource.write.operation=insert"}, exitUsage, `--op says "UPSERT" and the property hoodie.datasource.write.operation says "insert"`},
		{[]string{"--hoodie-conf", "hoodie.datasource.write.precombine.field=qty"}, exitUsage, `--source-ordering-field says "ts"`},
		{[]string{"--enable-sync"}, exitRefused, "catalog sync is not there yet"},
		{[]string{"--run-bootstrap"}, exitRefused, "--run-bootstrap"},
		{[]string{"--base-file-format", "HFILE"}, exitRefused, "Parquet base files only"},
		{[]string{"--source-class", "org.apache.hudi.utilities.sources.JsonKafkaSource"}, exitRefused, "land the messages as files"},
		{[]string{"--source-class", "nope"}, exitUsage, "Could not load source class nope"},
		{[]string{"--transformer-class", "nope"}, exitUsage, "Could not load transformer class(es) [nope]"},
		{[]string{"--table-type", "MERGE_ON_READ"}, exitUsage, "Can only specify option --table-type once."},
		{[]string{"--record-merge-mode", "CUSTOM"}, exitRefused, "EVENT_TIME_ORDERING and COMMIT_TIME_ORDERING"},
		{[]string{"--hoodie-conf", "hoodie.datasource.write.recordkey.feild=id"}, exitDone, "did you mean hoodie.datasource.write.recordkey.field?"},
	} {
		code, _, errs := sluice(t, s.args(c.args...)...)
		if code != c.code || !strings.Contains(errs, c.text) {
			t.Errorf("%v: exit %d, want %d with %q: %s", c.args, code, c.code, c.text, errs)
		}
	}
	code, _, errs := sluice(t, "streamer", "spark-submit", "--class", "org.apache.hudi.utilities.HoodieSnapshotExporter", "x.jar", "--source-base-path", "a")
	if code != exitUsage || !strings.Contains(errs, `paste it behind "sluice export"`) {
		t.Errorf("exporter: %d %s", code, errs)
	}
}

// The recorded run of the original's multi-table streamer: two tables are written, one fails. The original exits 0, Sluice 1.
func TestStreamerMultiTable(t *testing.T) {
	r := loadStreamerCase(t, "multi_table")
	if err := os.CopyFS(filepath.Join(r.dir, "in2"), os.DirFS(filepath.Join(r.from, "input"))); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(r.dir, "input")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(r.dir, "in2"), filepath.Join(r.dir, "input")); err != nil {
		t.Fatal(err)
	}
	confs, err := filepath.Glob(filepath.Join(r.from, "conf", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range confs {
		text, err := os.ReadFile(c)
		if err != nil {
			t.Fatal(err)
		}
		r.write("conf/"+filepath.Base(c), []byte(strings.ReplaceAll(string(text), "${CASE}", r.dir)), 0)
	}
	args, _ := r.args(r.c.Steps[0])
	code, _, errs := sluice(t, args...)
	if code != exitFailed || !strings.Contains(errs, "1 of 3 tables failed: db.bad: ") || !strings.Contains(errs, "Could not load schema provider class") {
		t.Errorf("exit %d: %s", code, errs)
	}
	for _, table := range []string{"t1", "t2"} {
		rows := tableRows(t, filepath.Join(r.dir, "tables", "db", table))
		if len(rows) != 1 || rows[0]["id"] != table+"a" || rows[0]["_hoodie_partition_path"] != "r" {
			t.Errorf("%s: %v", table, rows)
		}
	}
	for _, c := range []struct {
		args []string
		text string
	}{
		{nil, "The following options are required: [--config-folder], [--table-type]"},
		{[]string{"--table-type", "COPY_ON_WRITE"}, "The following option is required: [--config-folder]"},
		{[]string{"--table-type", "COPY_ON_WRITE", "--config-folder", r.dir + "/none", "--props", r.dir + "/conf/common.properties"}, "Please provide valid table config file path!"},
		{[]string{"--table-type", "COPY_ON_WRITE", "--config-folder", r.dir + "/conf", "--props", r.dir + "/none.properties"}, "Please provide valid common config file path!"},
	} {
		_, _, errs := sluice(t, append([]string{"streamer", "--class", "org.apache.hudi.utilities.streamer.HoodieMultiTableStreamer", "x.jar"}, c.args...)...)
		if !strings.Contains(errs, c.text) {
			t.Errorf("%v: %s", c.args, errs)
		}
	}
}
