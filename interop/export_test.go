//go:build interop

package interop_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/interop/python"
	"github.com/sluicelake/sluice/interop/rows"
	"github.com/sluicelake/sluice/interop/sluice"
	"github.com/sluicelake/sluice/interop/spark"
)

// Tables whose exports are read by the peers: both table types, all layouts, every type of value, odd partition values,
// changed schemas, log-only slices.
var exported = []string{
	"cow_basic_0.15.0", "cow_basic_1.2.0", "cow_types_1.0.2", "cow_types_0.14.0", "cow_types_row_writer_0.15.0",
	"cow_array_null_elements_1.2.0", "cow_timestamp_ntz_1.2.0", "cow_schema_evolution_1.2.0", "cow_schema_on_read_0.15.0",
	"cow_partitions_urlencoded_0.15.0", "cow_compressions_0.15.0", "cow_all_deleted_1.2.0", "old_cow_0.9.0",
	"mor_basic_0.15.0", "mor_types_1.2.0", "mor_log_only_bucket_1.0.2", "mor_partial_update_1.2.0", "mor_schema_evolution_0.15.0",
	"mor_parquet_logs_1.2.0", "mor_pending_compaction_0.15.0",
}

// What we export is what Apache Hudi reads, whoever reads the export.
func TestExportIsReadByPeers(t *testing.T) {
	for _, name := range exported {
		t.Run(name, func(t *testing.T) {
			source, expect := fixture.Spark(t, name)
			want := userColumns(t, expect.Snapshot)
			t.Run("parquet", func(t *testing.T) { parquetByPeers(t, source, want) })
			if strings.Contains(describe(want.Columns), "timestamp") { // without one, the files would be the same
				t.Run("parquet int96", func(t *testing.T) { int96ByPeers(t, source, want) })
			}
			t.Run("json", func(t *testing.T) { jsonByPeers(t, source, want) })
		})
	}
}

func parquetByPeers(t *testing.T, source string, want rows.Set) {
	target := export(t, source, "parquet")
	got, err := spark.Hudi(t, spark.Hudi1).ReadFiles("parquet", target, nil)
	check(t, "Spark", want, got, err)
	checkTypes(t, "Spark", want, got)
	got, err = python.Readers(t).DuckDB(fmt.Sprintf("from read_parquet('%s/*.parquet')", target))
	check(t, "DuckDB", want, got, err)
	got, err = python.Readers(t).PyArrow("parquet", target)
	check(t, "PyArrow", want, got, err)
}

func int96ByPeers(t *testing.T, source string, want rows.Set) {
	got, err := spark.Hudi(t, spark.Hudi1).ReadFiles("parquet", export(t, source, "parquet", "--parquet-timestamps", "int96"), nil)
	check(t, "Spark", want, got, err)
}

// Spark reads the lines with the table's types, as it would its own. JSON keeps milliseconds of timestamps only.
func jsonByPeers(t *testing.T, source string, want rows.Set) {
	got, err := spark.Hudi(t, spark.Hudi1).ReadTyped("json", export(t, source, "json"), want.Columns, nil)
	check(t, "Spark", milliseconds(want), got, err)
}

// A copy is a table: Apache Hudi reads it, and writes on it, and we read what it wrote.
func TestCopyIsWrittenOnByApacheHudi(t *testing.T) {
	for _, c := range []struct{ name, release string }{
		{"cow_basic_0.15.0", spark.Hudi0},
		{"cow_basic_1.2.0", spark.Hudi1},
		{"mor_basic_0.15.0", spark.Hudi0},
		{"mor_basic_1.2.0", spark.Hudi1},
		{"cow_clustered_1.2.0", spark.Hudi1},
		{"mor_compacted_0.15.0", spark.Hudi0},
	} {
		t.Run(c.name, func(t *testing.T) {
			source, expect := fixture.Spark(t, c.name)
			target := export(t, source, "hudi")
			s := spark.Hudi(t, c.release)
			want, err := expect.Snapshot.Set()
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Read(target, nil)
			check(t, "Apache Hudi", want, got, err)

			kind := "COPY_ON_WRITE"
			if expect.TableType == "MERGE_ON_READ" {
				kind = "MERGE_ON_READ"
			}
			err = s.Write(target, spark.Write{
				Columns: "id int, name string, price double, ts bigint, dt string",
				Rows:    [][]any{{1, "written on", 0.5, 1000, want.Rows[0]["dt"]}, {77, "new", 7.5, 1000, "new"}},
				Options: spark.Options{
					"hoodie.table.name": expect.Fixture, "hoodie.datasource.write.table.type": kind,
					"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.precombine.field": "ts",
					"hoodie.datasource.write.partitionpath.field":     "dt",
					"hoodie.datasource.write.hive_style_partitioning": "true",
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			want, err = s.Read(target, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(fmt.Sprint(want.Rows), "written on") {
				t.Error("Apache Hudi does not see its own write")
			}
			got, err = sluice.Read(t, target)
			check(t, "sluice", want, got, err)
		})
	}
}

// export runs the program and gives the target folder, which must end with its marker.
func export(t *testing.T, source, format string, args ...string) string {
	t.Helper()
	target := filepath.Join(t.TempDir(), "target")
	_, err := sluice.Run(t, append([]string{"export", "--source-base-path", source, "--target-output-path", target,
		"--output-format", format, "--query-type", "snapshot"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(target, "_SUCCESS")); err != nil {
		t.Error(err)
	}
	return target
}

// userColumns takes an answer without the five meta columns, which exports do not have.
func userColumns(t *testing.T, a fixture.Answer) rows.Set {
	t.Helper()
	set, err := a.Set()
	if err != nil {
		t.Fatal(err)
	}
	out := rows.Set{}
	for _, c := range set.Columns {
		if !isMeta(c.Name) {
			out.Columns = append(out.Columns, c)
		}
	}
	for _, r := range set.Rows {
		user := rows.Row{}
		for name, v := range r {
			if !isMeta(name) {
				user[name] = v
			}
		}
		out.Rows = append(out.Rows, user)
	}
	return out
}

func isMeta(name string) bool {
	for _, m := range metaColumns {
		if name == m {
			return true
		}
	}
	return false
}

// checkTypes compares the names and types of columns where a peer knows Spark's types.
func checkTypes(t *testing.T, who string, want, got rows.Set) {
	t.Helper()
	if w, g := describe(want.Columns), describe(got.Columns); w != g {
		t.Errorf("%s sees the columns\n  %s, want\n  %s", who, g, w)
	}
}

func describe(columns []rows.Column) string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = c.Name + " " + c.Type.String()
	}
	return strings.Join(parts, ", ")
}

// milliseconds cuts the timestamps of a set as JSON exports do.
func milliseconds(s rows.Set) rows.Set {
	out := rows.Set{Columns: s.Columns}
	for _, r := range s.Canonical().Rows {
		cut := rows.Row{}
		for name, v := range r {
			cut[name] = v
			for _, c := range s.Columns {
				if text, ok := v.(string); ok && c.Name == name && strings.HasPrefix(c.Type.Name, "timestamp") {
					cut[name] = cutFraction(text)
				}
			}
		}
		out.Rows = append(out.Rows, cut)
	}
	return out
}

func cutFraction(text string) string {
	at := strings.IndexByte(text, '.')
	if at < 0 {
		return text
	}
	rest := ""
	if strings.HasSuffix(text, "Z") {
		rest = "Z"
	}
	return text[:at+4] + "000" + rest
}

// A full copy, with the archive and the metadata table, is the table's twin: Apache Hudi writes the same on both, with the
// metadata table on, and reads the same in both, with it and without.
func TestFullCopyIsWrittenOnByApacheHudi(t *testing.T) {
	for _, c := range []struct{ name, release string }{
		{"cow_basic_1.2.0", spark.Hudi1},
		{"mor_basic_1.2.0", spark.Hudi1},
		{"cow_clustered_1.2.0", spark.Hudi1},
		{"mor_basic_0.15.0", spark.Hudi0},
	} {
		t.Run(c.name, func(t *testing.T) {
			source, expect := fixture.Spark(t, c.name)
			target := export(t, source, "hudi", "--with-archive", "--with-metadata", "--verify")
			s := spark.Hudi(t, c.release)
			set, err := expect.Snapshot.Set()
			if err != nil {
				t.Fatal(err)
			}
			write := spark.Write{
				Columns: "id int, name string, price double, ts bigint, dt string",
				Rows:    [][]any{{1, "written on", 0.5, 9000, set.Rows[0]["dt"]}, {77, "new", 7.5, 9000, "new"}},
				Options: spark.Options{
					"hoodie.table.name": expect.Fixture, "hoodie.datasource.write.table.type": expect.TableType,
					"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.precombine.field": "ts",
					"hoodie.datasource.write.partitionpath.field":     "dt",
					"hoodie.datasource.write.hive_style_partitioning": "true",
					"hoodie.metadata.enable":                          "true",
				},
			}
			for _, path := range []string{source, target} {
				if err := s.Write(path, write); err != nil {
					t.Fatalf("%s: %v", path, err)
				}
			}
			for _, metadata := range []string{"true", "false"} {
				want, err := s.Read(source, spark.Options{"hoodie.metadata.enable": metadata})
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(fmt.Sprint(want.Rows), "written on") {
					t.Error("Apache Hudi does not see its own write")
				}
				got, err := s.Read(target, spark.Options{"hoodie.metadata.enable": metadata})
				check(t, "Apache Hudi, metadata "+metadata, withoutColumns(want, isMeta), withoutColumns(got, isMeta), err)
			}
		})
	}
}

// Folders of several levels, computed ones among them, of picked rows and columns: Spark finds the values in the names, nulls and
// odd characters too.
func TestFoldersAreReadByPeers(t *testing.T) {
	s := spark.Hudi(t, spark.Hudi1)
	table := filepath.Join(t.TempDir(), "table")
	query := `select id, ts, case id % 6 when 0 then null when 1 then '' when 2 then 'a/b=c%' when 3 then 'Ünï {x}' when 4 then 'a b' else 'plain' end as v,
		if(id % 4 = 0, null, cast(id % 3 as int)) as n, timestamp_seconds(id * 86400) as at, named_struct('x', id, 'y', array(id)) as st from (select id, id as ts from range(0, 400, 1, 2))`
	options := spark.Options{"hoodie.table.name": "folders", "hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.precombine.field": "ts",
		"hoodie.datasource.write.operation": "bulk_insert"}
	if err := s.Save(table, query, "hudi", options, 2); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"parquet", "orc"} {
		target := export(t, table, format, "--output-partition-field", "v,n", "--columns", "id,st,at", "--filter", "id >= 17")
		whole, err := s.Read(table, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := folderRows(whole)
		got, err := s.ReadFiles(format, target, nil)
		check(t, "Spark, "+format, want, got, err)
	}
	target := export(t, table, "parquet", "--output-partitioner", `expr:year = at.Year(); odd = id % 2 == 1`, "--columns", "id", "--verify", "--manifest", "target")
	got, err := s.SQL(fmt.Sprintf("select count(*) as n, count(distinct id) as ids, sum(if(year(timestamp_seconds(id * 86400)) = year and odd = (id %% 2 = 1), 1, 0)) as good from parquet.`%s`", target))
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(got.Canonical().Rows); !strings.Contains(text, "good:400") || !strings.Contains(text, "ids:400") || !strings.Contains(text, "n:400") {
		t.Errorf("Spark counts %s", text)
	}
}

// folderRows are the rows of the table as the folders tell them: picked columns, the empty text as null.
func folderRows(in rows.Set) rows.Set {
	out := rows.Set{}
	order := []string{"id", "st", "at", "v", "n"}
	for _, name := range order {
		for _, c := range in.Columns {
			if c.Name == name {
				out.Columns = append(out.Columns, c)
			}
		}
	}
	for _, r := range in.Rows {
		if id, err := strconv.Atoi(fmt.Sprint(r["id"])); err != nil || id < 17 {
			continue
		}
		row := rows.Row{}
		for _, name := range order {
			row[name] = r[name]
		}
		if row["v"] == "" {
			row["v"] = nil
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}
