//go:build interop

// Package keygen_test gives random configurations and records to Apache Hudi's own key generators and to ours, and wants
// the same keys, partition paths and errors.
package keygen_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	randv2 "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/keygen"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/interop/peer"
)

const (
	configurations = 400 // of each release
	records        = 6   // of each configuration
)

func newRand(r source) *rand.Rand { return rand.New(rand.NewSource(int64(r.Uint64()))) }

// request is one line of the Java program's input.
type request struct {
	Class  string            `json:"class"`
	Config map[string]string `json:"config"`
	Schema string            `json:"schema"`
	Record string            `json:"record"`
	Zone   string            `json:"zone"`

	row []value
}

type answer struct {
	Key       string `json:"key"`
	Partition string `json:"partition"`
	Error     *struct {
		Class   string `json:"class"`
		Cause   string `json:"cause"`
		Stage   string `json:"stage"`
		Message string `json:"message"`
	} `json:"error"`
}

func (a answer) String() string {
	if a.Error != nil {
		return fmt.Sprintf("%s in %s, cause %q", a.Error.Class, a.Error.Stage, a.Error.Cause)
	}
	return fmt.Sprintf("%q %q", a.Key, a.Partition)
}

func TestRandomConfigurations(t *testing.T) {
	for _, variable := range []string{"SLUICE_INTEROP_HUDI_JAR", "SLUICE_INTEROP_HUDI_JAR_0_15"} {
		jar := peer.Env(t, variable)
		version := regexp.MustCompile(`-(\d+\.\d+\.\d+)\.jar$`).FindStringSubmatch(jar)
		if version == nil {
			t.Fatalf("%s=%s: the name doesn't end in a release", variable, jar)
		}
		t.Run(version[1], func(t *testing.T) { compare(t, jar, version[1]) })
	}
}

func compare(t *testing.T, jar, version string) {
	release, err := keygen.ParseRelease(version)
	if err != nil {
		t.Fatal(err)
	}
	seed := seedOf(t)
	requests := makeRequests(source{randv2.New(randv2.NewPCG(seed, 1))}, version)
	answers := askJava(t, jar, requests)
	avro, err := schema.ParseString(avroSchema())
	if err != nil {
		t.Fatal(err)
	}
	columns, err := avro.Arrow()
	if err != nil {
		t.Fatal(err)
	}
	bad, failed := 0, 0
	for i, r := range requests {
		want := answers[i]
		if want.Error != nil {
			failed++
		}
		if got := ours(t, r, release, avro, columns); got.String() != want.String() {
			if bad++; bad <= 25 {
				t.Errorf("seed %d, case %d, %s %v, zone %s\n  record %s\n  Apache Hudi %s: %s\n  ours: %s\n  %s", seed, i, r.Class, r.Config, r.Zone, r.Record, version, want, got, messages(want, got))
			}
		}
	}
	t.Logf("%d records, %d of them without keys, %d differ", len(requests), failed, bad)
	if failed > len(requests)*3/4 {
		t.Errorf("%d of %d records give no keys: the cases are too wild to prove much", failed, len(requests))
	}
}

func messages(list ...answer) string {
	var b strings.Builder
	for _, a := range list {
		if a.Error != nil {
			fmt.Fprintf(&b, "(%s) ", a.Error.Message)
		}
	}
	return b.String()
}

func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("SLUICE_INTEROP_SEED")
	if text == "" {
		return 20261130
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("SLUICE_INTEROP_SEED: %v", err)
	}
	return seed
}

func makeRequests(r source, version string) []request {
	var list []request
	for range configurations {
		class, avroClass, options := r.config(version != "0.15.0")
		if r.chance(70) || strings.Contains(options["hoodie.datasource.write.partitionpath.field"], ",") && strings.HasPrefix(class, "Timestamp") {
			class = avroClass // else the Spark class with Avro records
		}
		zone := r.pick("UTC", "UTC", "America/New_York", "Asia/Tokyo", "Europe/Berlin")
		slash := options["hoodie.datasource.write.slash.separated.date.partitioning"] != ""
		for range records {
			row := r.record(slash)
			parts := make([]string, len(row))
			for i, v := range row {
				parts[i] = fmt.Sprintf("%q:%s", fields[i].name, v.json)
			}
			list = append(list, request{Class: "org.apache.hudi.keygen." + class, Config: options, Schema: avroSchema(), Record: "{" + strings.Join(parts, ",") + "}", Zone: zone, row: row})
		}
	}
	return list
}

// askJava compiles the Java program and gives it all requests.
func askJava(t *testing.T, jar string, requests []request) []answer {
	t.Helper()
	classes := t.TempDir()
	path := jar + ":" + filepath.Join(peer.Env(t, "SLUICE_INTEROP_SPARK_JARS"), "*")
	tool := func(name string) string {
		if home := os.Getenv("JAVA_HOME"); home != "" {
			return filepath.Join(home, "bin", name)
		}
		return name
	}
	if out, err := exec.Command(tool("javac"), "-nowarn", "-d", classes, "-cp", path, "Keys.java").CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	var in, errors bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, r := range requests {
		if err := enc.Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(tool("java"), "-Xmx1g", "-Duser.language=en", "-Duser.country=US", "-cp", classes+":"+path, "Keys")
	cmd.Stdin, cmd.Stderr = &in, &errors
	out, err := cmd.Output()
	if err != nil {
		text := errors.String()
		t.Fatalf("java: %v\n%s", err, text[max(0, len(text)-3000):])
	}
	var answers []answer
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var a answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		answers = append(answers, a)
	}
	if len(answers) != len(requests) {
		t.Fatalf("%d answers to %d requests", len(answers), len(requests))
	}
	return answers
}

// ours makes the keys of a request as the release does.
func ours(t *testing.T, r request, release keygen.Release, avro *schema.Type, columns *arrow.Schema) answer {
	t.Helper()
	config := map[string]string{keygen.KeyClass: r.Class}
	for k, v := range r.Config {
		config[k] = v
	}
	k, err := keygen.New(keygen.Options{Properties: config, Imitate: true, Release: release, Zone: r.Zone, Schema: avro})
	if err != nil {
		return noKeys(t, err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, columns)
	defer b.Release()
	for i, v := range r.row {
		v.append(b.Field(i))
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	key, partition, err := k.Key(batch, 0)
	if err != nil {
		return noKeys(t, err)
	}
	return answer{Key: key, Partition: partition}
}

func noKeys(t *testing.T, err error) answer {
	t.Helper()
	var e *keygen.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	var a answer
	text, _ := json.Marshal(map[string]any{"error": map[string]string{"class": e.Class, "cause": e.Cause, "stage": string(e.Stage), "message": e.Error()}})
	if err := json.Unmarshal(text, &a); err != nil {
		t.Fatal(err)
	}
	return a
}
