//go:build interop

package interop_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/interop/history"
	"github.com/sluicelake/sluice/interop/rows"
	"github.com/sluicelake/sluice/interop/sluice"
	"github.com/sluicelake/sluice/interop/spark"
)

var (
	seeds  = flag.Int("seeds", 10, "random histories for each release of Apache Hudi")
	record = flag.String("record", "", "a folder that gets each table and Apache Hudi's answers, for testdata/history")
)

var metaColumns = []string{"_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"}

// Tables with random histories, made on the spot by Apache Hudi: every view that Spark has of them, Sluice has too, row
// for row. Where the plain model of the history claims to know the snapshot, Spark must agree with it first: a history
// that went another way than we think would prove little. A failure names its seed; to make that table again:
//
//	go test -tags interop ./interop -run 'TestRandomHistories/1.2.0/seed=7$' -v
func TestRandomHistories(t *testing.T) {
	for _, release := range []string{spark.Hudi0, spark.Hudi1} {
		t.Run(release, func(t *testing.T) {
			for seed := range *seeds {
				t.Run(fmt.Sprintf("seed=%d", seed+1), func(t *testing.T) { oneHistory(t, release, uint64(seed+1)) })
			}
		})
	}
}

func oneHistory(t *testing.T, release string, seed uint64) {
	s := spark.Hudi(t, release)
	name := fmt.Sprintf("seed%02d_%s", seed, release)
	parent := *record
	if parent == "" {
		parent = t.TempDir()
	}
	table, err := history.Make(s, filepath.Join(parent, name), seed)
	t.Log(table)
	if err != nil {
		t.Fatal(err)
	}
	if done := len(table.Steps) - table.Refused; table.Refused*2 > done {
		t.Errorf("%d of %d steps were refused: the history says little", table.Refused, done)
	}
	expect := fixture.Expect{Fixture: fmt.Sprintf("seed%02d", seed), Hudi: release, Steps: table.Steps, TimeTravel: map[string]fixture.Answer{}}
	for _, q := range table.Queries() {
		t.Run(q.Name, func(t *testing.T) {
			want, err := s.Read(table.Path, q.Spark())
			note(&expect, q, want, err)
			if q.Name == "snapshot" {
				checkModel(t, table, want, err)
			}
			if *record == "" {
				checkSluice(t, table.Path, q, want, err)
			}
		})
	}
	if *record != "" {
		save(t, filepath.Join(parent, name+".json"), expect)
	}
}

func checkModel(t *testing.T, table *history.Table, want rows.Set, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	model, known := table.Expected()
	if !known {
		return
	}
	model.Columns = want.Columns
	if d := rows.Diff(model, want, rows.Options{Ignore: metaColumns, Key: []string{"id"}}); d != "" {
		t.Errorf("Spark and the model differ: %s", d)
	}
}

// checkSluice asks Sluice. Where Spark failed, Sluice may fail or not: its rows are then not known to be wrong or right.
func checkSluice(t *testing.T, path string, q history.Query, want rows.Set, failed error) {
	t.Helper()
	got, err := sluice.Read(t, path, arguments(q)...)
	var said *sluice.Error
	switch {
	case failed != nil && (err == nil || errors.As(err, &said)):
		t.Logf("Spark: %v", failed)
	case err != nil:
		t.Error(err)
	default:
		if d := rows.Diff(want, got, rows.Options{}); d != "" {
			t.Error(d)
		}
	}
}

func arguments(q history.Query) []string {
	args := []string{"--query-type", q.Type}
	if q.AsOf != "" {
		args = append(args, "--as-of", q.AsOf)
	}
	if q.Begin != "" {
		args = append(args, "--begin-instant", q.Begin)
	}
	if q.End != "" {
		args = append(args, "--end-instant", q.End)
	}
	return args
}

// note keeps an answer in the form of the fixtures.
func note(expect *fixture.Expect, q history.Query, want rows.Set, err error) {
	answer := fixture.Answer{Count: len(want.Rows), Rows: want.Rows}
	for _, c := range want.Columns {
		answer.ColumnLines = append(answer.ColumnLines, c.Name+" "+c.Type.String())
	}
	if err != nil {
		answer = fixture.Answer{Error: err.Error()}
	}
	switch {
	case q.Type == "incremental":
		expect.Incremental = append(expect.Incremental, fixture.Range{Begin: q.Begin, End: q.End, Answer: answer})
	case q.Type == "read_optimized":
		expect.ReadOptimized = &answer
	case q.AsOf != "":
		expect.TimeTravel[q.AsOf] = answer
	default:
		expect.Snapshot = answer
	}
}

func save(t *testing.T, path string, expect fixture.Expect) {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(expect); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
