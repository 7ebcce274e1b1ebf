//go:build interop

package schema_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/interop/rows"
	"github.com/sluicelake/sluice/interop/sluice"
	"github.com/sluicelake/sluice/interop/spark"
)

// changes are columns whose type is one in the first write and another in the second, with a value of each; "" is a column that
// the write does not have. Both releases take them.
var changes = []struct{ name, first, firstValue, second, secondValue string }{
	{"int_long", "int", "16777217", "bigint", "9007199254740993"},
	{"int_float", "int", "16777216", "float", "0.1"},
	{"int_double", "int", "2147483647", "double", "0.1"},
	{"int_string", "int", "-7", "string", "'x'"},
	{"long_float", "bigint", "16777216", "float", "-0.5"},
	{"long_double", "bigint", "9007199254740992", "double", "-0.5"},
	{"long_string", "bigint", "9007199254740993", "string", "'x'"},
	{"float_double", "float", "1.1", "double", "0.1"},
	{"float_string", "float", "1.1", "string", "'x'"},
	{"double_string", "double", "1e10", "string", "'x'"},
	{"decimal_wider", "decimal(10,2)", "12345678.25", "decimal(11,2)", "123456789.25"},
	{"long_int", "bigint", "9007199254740993", "int", "-7"},
	{"double_float", "double", "0.1", "float", "1.1"},
	{"string_int", "string", "'x'", "int", "-7"},
	{"string_double", "string", "'x'", "double", "0.0001"},
	{"string_date", "string", "'x'", "date", "date'1969-12-31'"},
	{"string_decimal", "string", "'x'", "decimal(10,2)", "1.50"},
	{"decimal_int", "decimal(12,2)", "1234567890.25", "int", "-7"},
	{"decimal_narrower", "decimal(12,2)", "1234567890.25", "decimal(10,2)", "-0.75"},
	{"date_string", "date", "date'1969-12-31'", "string", "'2024-02-29'"},
	{"member", "struct<x:int>", "named_struct('x', 1)", "struct<y:string,x:int>", "named_struct('y', 'z', 'x', 2)"},
	{"added", "", "", "int", "5"},
}

// TestEvolvedTables: a table that Spark has changed is read by Sluice as by Spark, from files of both shapes.
func TestEvolvedTables(t *testing.T) {
	query := func(second bool, ids ...int) string {
		var selects []string
		for _, id := range ids {
			list := []string{fmt.Sprintf("%d as id", id), fmt.Sprintf("'p%d' as p", id/9), map[bool]string{false: "0L as ts", true: "1L as ts"}[second]}
			for _, c := range changes {
				kind, value := c.first, c.firstValue
				if second {
					kind, value = c.second, c.secondValue
				}
				if kind != "" {
					list = append(list, fmt.Sprintf("cast(%s as %s) as %s", value, kind, c.name))
				}
			}
			selects = append(selects, "select "+strings.Join(list, ", "))
		}
		return strings.Join(selects, " union all ")
	}
	for _, release := range []string{spark.Hudi0, spark.Hudi1} {
		for _, kind := range []string{"COPY_ON_WRITE", "MERGE_ON_READ"} {
			t.Run(release+" "+kind, func(t *testing.T) {
				s := spark.Hudi(t, release)
				path := filepath.Join(t.TempDir(), "t")
				options := spark.Options{
					"hoodie.table.name": "t", "hoodie.datasource.write.table.type": kind, "hoodie.datasource.write.recordkey.field": "id",
					"hoodie.datasource.write.partitionpath.field": "p", "hoodie.datasource.write.precombine.field": "ts",
				}
				if err := s.Write(path, spark.Write{Query: query(false, 1, 2, 9), Options: options}); err != nil {
					t.Fatal(err)
				}
				if err := s.Write(path, spark.Write{Query: query(true, 2, 3), Options: options}); err != nil {
					t.Fatal(err)
				}
				want, err := s.Read(path, nil)
				if err != nil {
					t.Fatal(err)
				}
				got, err := sluice.Read(t, path)
				if err != nil {
					t.Fatal(err)
				}
				if diff := rows.Diff(want, got, rows.Options{}); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}
