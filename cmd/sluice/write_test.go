package main

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// files makes input files with the same three orders in every text format.
func inputs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".gz") {
			z := gzip.NewWriter(f)
			_, err = z.Write([]byte(text))
			if e := z.Close(); err == nil {
				err = e
			}
		} else {
			_, err = f.WriteString(text)
		}
		if e := f.Close(); err == nil {
			err = e
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("a.csv", "id,region,qty\n1,eu,10\n2,us,20\n3,eu,\n")
	write("a.csv.gz", "id,region,qty\n1,eu,10\n2,us,20\n3,eu,\n")
	write("a.json", `{"id":1,"region":"eu","qty":10}`+"\n"+`{"id":2,"region":"us","qty":20}`+"\n"+`{"id":3,"region":"eu","qty":null}`+"\n")
	write("more.json", `{"id":2,"region":"us","qty":25}`+"\n"+`{"id":4,"region":"us","qty":40}`+"\n")
	write("gone.csv", "id,region\n1,eu\n9,eu\n")
	write("bad.csv", "id,region,qty\n1,eu,10\n\"2,us\n")
	write("none.parquet", "this is no Parquet file")
	write("nokey.json", `{"region":"eu","qty":10}`+"\n")
	write("nullkey.json", `{"id":1,"region":"eu","qty":1}`+"\n"+`{"id":null,"region":"eu","qty":10}`+"\n")
	return dir
}

const written = `{"id":1,"region":"eu","qty":10}
{"id":2,"region":"us","qty":20}
{"id":3,"region":"eu","qty":null}
`

func contents(t *testing.T, table string) string {
	t.Helper()
	code, out, errs := sluice(t, "read", table, "--no-meta", "--columns", "id,region,qty", "-o", "json")
	if code != 0 {
		t.Fatalf("read: %d, %s", code, errs)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(out, "\n"), "\n")
	sorted := map[string]string{}
	for _, l := range lines {
		if l = strings.TrimSpace(l); l != "" {
			sorted[l] = l
		}
	}
	var b strings.Builder
	for _, id := range []string{"1", "2", "3", "4"} {
		for l := range sorted {
			if strings.HasPrefix(l, `{"id":`+id+",") {
				b.WriteString(l + "\n")
			}
		}
	}
	if strings.Count(out, "\n") != strings.Count(b.String(), "\n") {
		t.Errorf("rows are there twice, or others: %s", out)
	}
	return b.String()
}

// A table is made out of files of each format, changed, and reduced, with the commands of the help.
func TestWriteFormats(t *testing.T) {
	dir := inputs(t)
	for _, name := range []string{"a.csv", "a.csv.gz", "a.json"} {
		t.Run(name, func(t *testing.T) {
			table := filepath.Join(t.TempDir(), "orders")
			if code, out, errs := sluice(t, "write", table, filepath.Join(dir, name), "--key", "id", "--partition", "region", "-o", "json"); code != 0 || !strings.Contains(out, `"inserted": 3`) && !strings.Contains(out, `"inserted":3`) {
				t.Fatalf("%d: %s%s", code, out, errs)
			}
			if got := contents(t, table); got != written {
				t.Errorf("%s", got)
			}
			for _, args := range [][]string{{"more.json", "--op", "upsert"}, {"gone.csv", "--op", "delete"}} {
				if code, _, errs := sluice(t, append([]string{"write", table, filepath.Join(dir, args[0])}, args[1:]...)...); code != 0 {
					t.Fatalf("%v: %d, %s", args, code, errs)
				}
			}
			want := strings.Replace(written, `"qty":20`, `"qty":25`, 1)[len(`{"id":1,"region":"eu","qty":10}`)+1:] + `{"id":4,"region":"us","qty":40}` + "\n"
			if got := contents(t, table); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if code, _, errs := sluice(t, "write", table, "--op", "delete", "--record-keys", "4", "--in-partition", "us"); code != 0 {
				t.Errorf("by key: %d, %s", code, errs)
			}
			if code, _, errs := sluice(t, "write", table, "--op", "delete_partition", "--hoodie-conf", "hoodie.datasource.write.partitions.to.delete=u*"); code != 0 {
				t.Errorf("partition: %d, %s", code, errs)
			}
			if got := contents(t, table); got != `{"id":3,"region":"eu","qty":null}`+"\n" {
				t.Errorf("%s", got)
			}
			if code, out, errs := sluice(t, "table", "validate", table); code != 0 {
				t.Errorf("validate: %d, %s%s", code, out, errs)
			}
		})
	}
}

// Save modes are those of Spark (tools F.1).
func TestWriteModes(t *testing.T) {
	dir := inputs(t)
	table := filepath.Join(t.TempDir(), "orders")
	first := []string{"write", table, filepath.Join(dir, "a.csv"), "--key", "id"}
	if code, _, errs := sluice(t, first...); code != 0 {
		t.Fatal(errs)
	}
	for _, c := range []struct {
		args []string
		code int
		text string
		rows int
	}{
		{[]string{"--mode", "error"}, 1, "already exists.", 3},
		{[]string{"--mode", "ignore", "--op", "bulk_insert"}, 0, "nothing was written", 3},
		{[]string{"--mode", "append", "--op", "bulk_insert"}, 0, "", 6},
		{[]string{"--mode", "append", "--name", "other"}, 2, "can not append data", 6},
		{[]string{"--mode", "append", "--op", "upsert"}, 0, "", 6},
		{[]string{"--mode", "overwrite", "--op", "insert"}, 0, "", 3},
		{[]string{"--mode", "overwrite", "--op", "delete"}, 2, "Append is the only save mode", 3},
		{[]string{"--mode", "sideways"}, 2, "sideways", 3},
		{[]string{"--op", "merge"}, 2, "no operation", 3},
	} {
		code, _, errs := sluice(t, append(first[:3:3], append(c.args, "--key", "id")...)...)
		if code != c.code || !strings.Contains(errs, c.text) {
			t.Errorf("%v: %d, %s; want %d, %s", c.args, code, errs, c.code, c.text)
		}
		_, out, _ := sluice(t, "read", table, "-o", "json")
		if n := strings.Count(out, "\n"); n != c.rows {
			t.Errorf("%v: %d rows, want %d", c.args, n, c.rows)
		}
	}
}

// Bad input is named with file and what to do, and the table stays as it was.
func TestWriteBadInput(t *testing.T) {
	dir := inputs(t)
	table := filepath.Join(t.TempDir(), "orders")
	if code, _, errs := sluice(t, "write", table, filepath.Join(dir, "a.json"), "--key", "id", "--partition", "region"); code != 0 {
		t.Fatal(errs)
	}
	for _, c := range []struct {
		file string
		code int
		text string
	}{
		{"none.parquet", 1, "none.parquet"},
		{"absent.parquet", 1, "absent.parquet"},
		{"bad.csv", 1, "bad.csv"},
		{"nokey.json", 1, "id"},
		{"nullkey.json", 1, "cannot be null or empty"},
	} {
		code, _, errs := sluice(t, "write", table, filepath.Join(dir, c.file))
		if code != c.code || !strings.Contains(errs, c.text) {
			t.Errorf("%s: %d, %s", c.file, code, errs)
		}
		if got := contents(t, table); got != written {
			t.Errorf("%s: %s", c.file, got)
		}
	}
	if code, out, errs := sluice(t, "table", "validate", table); code != 0 {
		t.Errorf("validate: %d, %s%s", code, out, errs)
	}
}
