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

// picked gives the rows of an answer of Apache Hudi as CSV lines of some columns, sorted.
func picked(answer fixture.Answer, keep func(row map[string]any) bool, columns ...string) []string {
	var out []string
	for _, row := range answer.Rows {
		if !keep(row) {
			continue
		}
		cells := make([]string, len(columns))
		for i, c := range columns {
			if row[c] != nil {
				cells[i] = fmt.Sprint(row[c])
			}
		}
		out = append(out, strings.Join(cells, ","))
	}
	slices.Sort(out)
	return out
}

// csvLines gives the header and the sorted rows of a CSV export, with the folders that rows are in.
func csvLines(t *testing.T, target string) (header string, rows []string) {
	t.Helper()
	err := filepath.WalkDir(target, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".csv") {
			return err
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(target, filepath.Dir(p))
		if err != nil {
			return err
		}
		lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		if header != "" && header != lines[0] {
			t.Errorf("%s begins with %q, another file with %q", p, lines[0], header)
		}
		header = lines[0]
		for _, l := range lines[1:] {
			if folder != "." {
				l = folder + " " + l
			}
			rows = append(rows, l)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(rows)
	return header, rows
}

// Columns in the order that was asked for, rows that pass, meta columns on request: as Apache Hudi reads the table.
func TestColumnsAndRows(t *testing.T) {
	all := func(map[string]any) bool { return true }
	for _, name := range []string{"cow_basic_1.2.0", "mor_basic_0.15.0"} {
		dir, expect := fixture.Spark(t, name)
		for _, c := range []struct {
			config export.Config
			header string
			keep   func(map[string]any) bool
		}{
			{export.Config{Columns: []string{"dt", "ID"}}, "dt,id", all},
			{export.Config{Columns: []string{"_hoodie_record_key", "name"}}, "_hoodie_record_key,name", all},
			{export.Config{Filter: "id >= 2 and dt <> '2024-01-02'"}, "id,name,price,ts,dt", func(r map[string]any) bool {
				return fmt.Sprint(r["id"]) >= "2" && r["dt"] != "2024-01-02"
			}},
			{export.Config{Filter: "ID = 3", Columns: []string{"name"}}, "name", func(r map[string]any) bool { return fmt.Sprint(r["id"]) == "3" }},
			{export.Config{Filter: "id < 0", Columns: []string{"name"}}, "name", func(map[string]any) bool { return false }},
			{export.Config{KeepMeta: true}, "_hoodie_commit_time,_hoodie_commit_seqno,_hoodie_record_key,_hoodie_partition_path,_hoodie_file_name,id,name,price,ts,dt", all},
		} {
			c.config.Source, c.config.Target, c.config.Format, c.config.Rows = dir, filepath.Join(t.TempDir(), "out"), export.CSV, export.Snapshot
			sum, err := export.Run(t.Context(), c.config, local.Options{})
			if err != nil {
				t.Fatal(err)
			}
			header, got := csvLines(t, c.config.Target)
			want := picked(expect.Snapshot, c.keep, strings.Split(c.header, ",")...)
			if header != c.header || !slices.Equal(got, want) || sum.Stats.Rows != int64(len(want)) {
				t.Errorf("%s %+v: %d rows\n%s\n%q, want\n%s\n%q", name, c.config, sum.Stats.Rows, header, got, c.header, want)
			}
		}
	}
}

// Partition fields are found whether or not the files keep them, and leave the files.
func TestColumnsOfPartitionedExports(t *testing.T) {
	dir, expect := fixture.Spark(t, "cow_basic_1.2.0")
	c := export.Config{Source: dir, Target: filepath.Join(t.TempDir(), "out"), Format: export.CSV, PartitionField: "dt, name", Columns: []string{"price", "dt", "id"}, Filter: "id <> 1"}
	if _, err := export.Run(t.Context(), c, local.Options{}); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, r := range expect.Snapshot.Rows {
		if fmt.Sprint(r["id"]) != "1" {
			want = append(want, fmt.Sprintf("dt=%v/name=%v %v,%v", r["dt"], r["name"], r["price"], r["id"]))
		}
	}
	slices.Sort(want)
	header, got := csvLines(t, c.Target)
	if header != "price,id" || !slices.Equal(got, want) {
		t.Errorf("%s\n%q, want\n%q", header, got, want)
	}
}

// Columns alone need no decoding: their chunks are copied, and those of the others stay behind.
func TestColumnsAreCopied(t *testing.T) {
	dir, expect := fixture.Spark(t, "cow_types_1.2.0")
	for _, c := range []struct {
		config export.Config
		copied int
	}{
		{export.Config{Columns: []string{"id", "c_ts"}}, 1},
		{export.Config{KeepMeta: true}, 1},
		{export.Config{Columns: []string{"_hoodie_record_key", "id"}}, 1},
		{export.Config{Columns: []string{"id"}, Filter: "id > 0"}, 0},
	} {
		c.config.Source = dir
		sum, rows := exported(t, c.config)
		if sum.Copied != c.copied || len(rows) == 0 || c.copied == 1 && len(rows) != expect.Snapshot.Count {
			t.Errorf("%+v: %d copied, %d rows: %v", c.config, sum.Copied, len(rows), sum.Decoded)
		}
		c.config.Compression = "zstd" // the pages are gzip: decoded
		if _, decoded := exported(t, c.config); !slices.Equal(rows, decoded) {
			t.Errorf("%+v: copied\n%q, decoded\n%q", c.config, rows, decoded)
		}
	}
}

// What can't be is refused before anything is written, and says what there is.
func TestColumnsThatAreRefused(t *testing.T) {
	dir, _ := fixture.Spark(t, "cow_basic_1.2.0")
	for _, c := range []struct {
		config export.Config
		text   string
		usage  bool
	}{
		{export.Config{Format: export.JSON, Columns: []string{"nope"}}, `"nope"; the table has _hoodie_commit_time`, false},
		{export.Config{Format: export.JSON, Filter: "id ="}, "filter", true},
		{export.Config{Format: export.JSON, Filter: "nope = 1"}, "nope", false},
		{export.Config{Format: export.Hudi, Filter: "id = 1"}, "choose parquet", true},
		{export.Config{Format: export.Hudi, Columns: []string{"id"}}, "choose parquet", true},
		{export.Config{Format: export.Hudi, KeepMeta: true}, "choose parquet", true},
		{export.Config{Format: export.JSON, PartitionField: "dt,dt"}, `"dt"`, false},
		{export.Config{Format: export.JSON, PartitionField: "dt", Columns: []string{"dt"}}, "leaves no column", false},
	} {
		c.config.Source, c.config.Target = dir, filepath.Join(t.TempDir(), "out")
		_, err := export.Run(t.Context(), c.config, local.Options{})
		var usage *export.UsageError
		if err == nil || !strings.Contains(err.Error(), c.text) || errors.As(err, &usage) != c.usage {
			t.Errorf("%+v: %v", c.config, err)
		}
		if _, err := os.Stat(c.config.Target); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%+v: something was written", c.config)
		}
	}
}
