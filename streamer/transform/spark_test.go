//go:build cgo && !nocgo

package transform_test

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/sluicelake/sluice/streamer/transform"
	"github.com/sluicelake/sluice/streamer/transform/sparksql"
)

// answers are what Spark 3.5 gave for the statements of testdata/spark.sql.txt over testdata/source.parquet; see
// interop/sparksql/record.py.
type answers struct {
	Spark string
	Cases []struct {
		SQL    string
		Schema [][3]any // name, type, nullable
		Rows   [][]any
		Error  string
	}
}

func readAnswers(t testing.TB) (a answers) {
	t.Helper()
	f, err := os.Open("testdata/spark.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(&a); err != nil {
		t.Fatal(err)
	}
	return a
}

// refused are statements that Spark runs and we refuse, or the other way round, each with the word that the error must have.
var refused = map[string]string{}

func TestSparkAnswers(t *testing.T) {
	in, batches := parquet(t, "testdata/source.parquet", 3)
	right := 0
	for _, c := range readAnswers(t).Cases {
		t.Run(c.SQL, func(t *testing.T) {
			sql := strings.ReplaceAll(c.SQL, "FROM src", "FROM "+transform.Source)
			sql = strings.ReplaceAll(sql, "JOIN src", "JOIN "+transform.Source)
			tr, err := transform.NewSQL(sql, transform.Options{})
			if err != nil {
				t.Fatal(err)
			}
			out, rows, err := apply(t, tr, in, stream(batches...))
			if word, ok := refused[c.SQL]; ok {
				if err == nil || !strings.Contains(err.Error(), word) {
					t.Errorf("got the error %v, want one with %q", err, word)
				}
				return
			}
			if err != nil {
				if c.Error == "" {
					t.Errorf("Spark gives rows, we fail: %v", err)
				}
				return
			}
			if c.Error != "" {
				t.Fatalf("Spark fails (%s), we give %v", c.Error, texts(rows))
			}
			compareSchema(t, out, c.Schema)
			got, want := texts(rows), texts(c.Rows)
			if !strings.Contains(c.SQL, "ORDER BY") && (strings.Contains(c.SQL, "GROUP BY") || strings.Contains(c.SQL, "DISTINCT") || strings.Contains(c.SQL, "UNION") || strings.Contains(c.SQL, "JOIN")) {
				got, want = sorted(got), sorted(want)
			}
			if !slices.Equal(got, want) {
				t.Errorf("rows differ\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
			}
			right++
		})
	}
	t.Logf("%d answers of Spark", right)
}

func compareSchema(t *testing.T, out *arrow.Schema, want [][3]any) {
	t.Helper()
	if out.NumFields() != len(want) {
		t.Fatalf("got %d columns, want %d", out.NumFields(), len(want))
	}
	for i, w := range want {
		f := out.Field(i)
		typ, err := sparksql.FromArrow(f.Type)
		if err != nil {
			t.Fatal(err)
		}
		if typ.String() != w[1] || f.Name != w[0] {
			t.Errorf("column %d is %s %s, want %s %s", i, f.Name, typ, w[0], w[1])
		}
		// A column may be nullable where Spark knows that it holds no null, never the other way round.
		if w[2] == true && !f.Nullable {
			t.Errorf("column %s is not nullable, in Spark it is", f.Name)
		}
	}
}
