package encode_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"math/big"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/encode"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/storage/local"
)

// exponent is a decimal that Java writes with an exponent where Sluice writes it plainly (the documented difference).
var exponent = regexp.MustCompile(`("dec\w*"|"\w*dec\w*"):(-?[0-9.]+)E(-?[0-9]+)`)

// The JSON of the snapshot exporter is byte for byte what Apache Hudi's exporter 0.14.0 wrote (as a set of lines), but for
// decimals with an exponent.
func TestSparkJSONLikeTheExporter(t *testing.T) {
	for _, name := range []string{"cow_nonpartitioned_types", "cow_special_values"} {
		t.Run(name, func(t *testing.T) {
			dir, answers := fixture.Exporter(t, name)
			var expect struct {
				Outputs struct {
					JSON struct {
						Lines []string `json:"lines"`
					} `json:"json"`
				} `json:"outputs"`
			}
			if err := json.Unmarshal(answers, &expect); err != nil {
				t.Fatal(err)
			}
			want := expect.Outputs.JSON.Lines
			if len(want) == 0 {
				t.Fatal("no lines expected")
			}
			for i, l := range want {
				want[i] = exponent.ReplaceAllStringFunc(l, plainDecimal)
			}
			got := exportLines(t, dir)
			slices.Sort(want)
			slices.Sort(got)
			if len(want) != len(got) {
				t.Fatalf("%d lines, want %d", len(got), len(want))
			}
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("got\n%s\nwant\n%s", got[i], want[i])
				}
			}
		})
	}
}

func plainDecimal(m string) string {
	parts := exponent.FindStringSubmatch(m)
	r, _ := new(big.Rat).SetString(parts[2] + "E" + parts[3])
	digits := 0
	if _, f, ok := strings.Cut(parts[2], "."); ok {
		digits = len(f)
	}
	e := 0
	if err := json.Unmarshal([]byte(parts[3]), &e); err != nil {
		return m
	}
	return parts[1] + ":" + r.FloatString(digits-e)
}

func exportLines(t *testing.T, dir string) []string {
	t.Helper()
	store, err := local.New(dir, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d.IsDir() && d.Name() == ".hoodie" {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".parquet") {
			rel, _ := filepath.Rel(dir, path)
			files = append(files, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	var text []byte
	for _, name := range files {
		f, err := basefile.Open(ctx, store, name, basefile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		avro, err := f.AvroSchema()
		if err != nil {
			t.Fatal(err)
		}
		s, err := schema.WithoutMeta(avro).Arrow()
		if err != nil {
			t.Fatal(err)
		}
		w, err := encode.NewJSON(s, encode.Options{Style: encode.Spark})
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range f.Scan(ctx, basefile.ScanOptions{Columns: s}) {
			if err != nil {
				t.Fatal(err)
			}
			text = w.Append(text, b)
			b.Release()
		}
		_ = f.Close()
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}
