//go:build cgo && !nocgo

package transform_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/sluicelake/sluice/streamer/transform"
	"github.com/sluicelake/sluice/streamer/transform/sparksql"
)

// answers are what Spark 3.5 gave for the statements of testdata/spark.sql.txt over testdata/source.parquet; see
// interop/sparksql/record.py.
type answers struct {
	Spark string
	Cases []answer
}

type answer struct {
	SQL    string
	Schema [][3]any // name, type, nullable
	Rows   [][]any
	Error  string
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

// refused are statements that Spark runs and we refuse, with a part of the error.
func refused() map[string]string {
	return map[string]string{
		"SELECT 1 AS one, 'x' AS s, NULL AS n WHERE false": "its type is void", // no table holds it
	}
}

func TestSparkAnswers(t *testing.T) {
	in, batches := parquet(t, "testdata/source.parquet", 3)
	in = asRead(in)
	for i, b := range batches {
		batches[i] = array.NewRecordBatch(in, b.Columns(), b.NumRows())
	}
	src := regexp.MustCompile(`\bsrc\b`)
	ask := func(t *testing.T, sql string) (*arrow.Schema, [][]any, error) {
		tr, err := transform.NewSQL(src.ReplaceAllString(sql, transform.Source), transform.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return apply(t, tr, in, stream(batches...))
	}
	var group []answer
	right := 0
	for _, c := range readAnswers(t).Cases {
		if _, ok := c.expression(); ok {
			// Expressions over the same rows are asked forty at a time; a database for each would take long.
			if group = append(group, c); len(group) < 40 {
				continue
			}
		} else {
			t.Run(c.SQL, func(t *testing.T) {
				out, rows, err := ask(t, c.SQL)
				c.check(t, out, rows, err)
			})
			right++
		}
		if len(group) == 40 {
			right += askGroup(t, group, ask)
			group = nil
		}
	}
	right += askGroup(t, group, ask)
	if right < 450 {
		t.Errorf("only %d answers of Spark were compared", right)
	}
}

// expression is what a case asks of every row, when it does just that.
func (c answer) expression() (string, bool) {
	text, ok := strings.CutPrefix(c.SQL, "SELECT id, ")
	if ok {
		text, ok = strings.CutSuffix(text, " AS v FROM src")
	}
	return text, ok && c.Error == "" && !strings.Contains(text, "SELECT")
}

func askGroup(t *testing.T, group []answer, ask func(*testing.T, string) (*arrow.Schema, [][]any, error)) int {
	sql := "SELECT id"
	for i, c := range group {
		e, _ := c.expression()
		sql += fmt.Sprintf(", %s AS v%d", e, i)
	}
	out, rows, err := ask(t, sql+" FROM src")
	for i, c := range group {
		t.Run(c.SQL, func(t *testing.T) {
			if err != nil { // one of them: each by itself
				out, rows, err := ask(t, c.SQL)
				c.check(t, out, rows, err)
				return
			}
			v := out.Field(i + 1)
			v.Name = "v"
			own := make([][]any, len(rows))
			for j, r := range rows {
				own[j] = []any{r[0], r[i+1]}
			}
			c.check(t, arrow.NewSchema([]arrow.Field{out.Field(0), v}, nil), own, nil)
		})
	}
	return len(group)
}

// check compares what we gave with Spark's answer.
func (c answer) check(t *testing.T, out *arrow.Schema, rows [][]any, err error) {
	t.Helper()
	if word, ok := refused()[c.SQL]; ok {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("got the error %v, want one with %q", err, word)
		}
		return
	}
	switch {
	case err != nil && c.Error == "":
		t.Fatalf("Spark gives rows, we fail: %v", err)
	case err != nil:
		return
	case c.Error != "":
		t.Fatalf("Spark fails (%s), we give %v", c.Error, texts(rows))
	}
	compareSchema(t, out, c.Schema)
	got, want := texts(rows), texts(c.Rows)
	if !strings.Contains(c.SQL, "ORDER BY") && regexp.MustCompile(`GROUP BY|DISTINCT|UNION|JOIN`).MatchString(c.SQL) {
		got, want = sorted(got), sorted(want)
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows differ\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// asRead makes every column nullable, as Spark does when it reads Parquet.
func asRead(s *arrow.Schema) *arrow.Schema {
	fields := s.Fields()
	for i := range fields {
		fields[i].Nullable = true
	}
	return arrow.NewSchema(fields, nil)
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
