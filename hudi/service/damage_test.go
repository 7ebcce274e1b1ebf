package service_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/internal/fixture"
)

// A table of Apache Hudi without any finding, and what Validate says when one thing of it is spoilt.
func TestDamage(t *testing.T) {
	const table = "cow_no_metadata_table_0.15.0" // partitions dt=x, dt=y (two versions), dt=z
	if dir, _ := fixture.Spark(t, table); len(validate(t, dir).Findings) != 0 {
		t.Fatalf("the whole table has findings: %v", validate(t, dir).Findings)
	}
	for name, c := range map[string]struct {
		damage func(t *testing.T, dir string)
		want   []string // severity and code of each finding, sorted
	}{
		"a checksum that is wrong": {func(t *testing.T, dir string) {
			edit(t, dir, ".hoodie/hoodie.properties", func(b []byte) []byte {
				return bytes.Replace(b, []byte("checksum=7"), []byte("checksum=8"), 1)
			})
		}, []string{"error properties.checksum"}},
		"no properties": {func(t *testing.T, dir string) {
			remove(t, dir, ".hoodie/hoodie.properties")
			keep(t, dir, ".hoodie/hoodie.properties.backup", nil)
		},
			[]string{"error properties.unreadable", "warning properties.backup"}},
		"a backup": {func(t *testing.T, dir string) {
			keep(t, dir, ".hoodie/hoodie.properties.backup", read(t, filepath.Join(dir, ".hoodie/hoodie.properties")))
		}, []string{"warning properties.backup"}},
		"a missing file of the latest slice": {func(t *testing.T, dir string) { remove(t, dir, base(t, dir, "dt=x", 0)) },
			[]string{"error file.missing"}},
		"a missing file of an older slice": {func(t *testing.T, dir string) { remove(t, dir, base(t, dir, "dt=y", 0)) },
			[]string{"info file.old-missing"}},
		"a file that was cut off": {func(t *testing.T, dir string) {
			edit(t, dir, base(t, dir, "dt=x", 0), func(b []byte) []byte { return b[:len(b)-100] })
		}, []string{"error file.size", "error rows.unreadable"}},
		"a footer that is rubbish": {func(t *testing.T, dir string) {
			edit(t, dir, base(t, dir, "dt=x", 0), func(b []byte) []byte { copy(b[len(b)-4:], "PARX"); return b })
		}, []string{"error file.unreadable", "error rows.unreadable"}},
		"rows that the commit does not know": {func(t *testing.T, dir string) {
			eachCommit(t, dir, func(b []byte) []byte {
				return bytes.ReplaceAll(b, []byte(`"numWrites" : 1,`), []byte(`"numWrites" : 7,`))
			})
		}, []string{"error file.rows", "error file.rows"}}, // dt=x and dt=z have one row each
		"a commit that is no JSON": {func(t *testing.T, dir string) {
			edit(t, dir, commits(t, dir)[0], func(b []byte) []byte { return b[:len(b)/2] })
		}, []string{"error timeline.unreadable"}},
		"a partition without marker": {func(t *testing.T, dir string) { remove(t, dir, "dt=z/.hoodie_partition_metadata") },
			[]string{"error partition.no-marker"}},
		"a marker of another depth": {func(t *testing.T, dir string) {
			edit(t, dir, "dt=z/.hoodie_partition_metadata", func(b []byte) []byte { return bytes.Replace(b, []byte("Depth=1"), []byte("Depth=2"), 1) })
		}, []string{"error partition.marker"}},
		"rows in the wrong folder": {func(t *testing.T, dir string) {
			for _, f := range []string{".hoodie_partition_metadata", filepath.Base(base(t, dir, "dt=z", 0))} {
				keep(t, dir, "dt=moved/"+f, read(t, filepath.Join(dir, "dt=z", f)))
			}
			remove(t, dir, "dt=z")
			eachCommit(t, dir, func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("dt=z"), []byte("dt=moved")) })
		}, []string{"error partition.value"}},
		"a file of nobody": {func(t *testing.T, dir string) {
			b := base(t, dir, "dt=x", 0)
			keep(t, dir, b[:strings.LastIndexByte(b, '_')]+"_20990101000000000.parquet", nil)
		}, []string{"warning orphan.file"}},
		"a file of a task that ran twice": {func(t *testing.T, dir string) {
			b := base(t, dir, "dt=x", 0)
			id, rest, _ := strings.Cut(b, "_")
			keep(t, dir, id+"_9-9-9"+rest[strings.LastIndexByte(rest, '_'):], read(t, filepath.Join(dir, b)))
		}, []string{"warning orphan.file"}},
		"keys twice": {func(t *testing.T, dir string) {
			b := base(t, dir, "dt=z", 0)
			_, rest, _ := strings.Cut(b, "_")
			twin := "dt=z/00000000-0000-4000-8000-000000000000-0_" + rest
			keep(t, dir, twin, read(t, filepath.Join(dir, b)))
		}, []string{"warning key.duplicate"}},
		"leftover markers": {func(t *testing.T, dir string) {
			keep(t, dir, ".hoodie/.temp/20200101000000000/dt=x/f-0_0-0-0_20200101000000000.parquet.marker.CREATE", nil)
		}, []string{"warning orphan.markers"}},
		"a file that was never finished": {func(t *testing.T, dir string) { keep(t, dir, "dt=x/part-0.parquet.tmp", nil) },
			[]string{"warning orphan.temporary"}},
		"a metadata table that nobody names": {func(t *testing.T, dir string) { keep(t, dir, ".hoodie/metadata/.hoodie/hoodie.properties", nil) },
			[]string{"warning orphan.metadata-table"}},
		"a write that died": {func(t *testing.T, dir string) { remove(t, dir, commits(t, dir)[1]) },
			[]string{"warning timeline.pending"}},
		"an older write that died": {func(t *testing.T, dir string) {
			keep(t, dir, ".hoodie/20260101000000000.commit.requested", nil)
		}, []string{"warning timeline.hole", "warning timeline.pending"}},
		"an instant of tomorrow": {func(t *testing.T, dir string) {
			for _, f := range []string{".commit.requested", ".inflight"} {
				keep(t, dir, ".hoodie/20990101000000000"+f, nil)
			}
			keep(t, dir, ".hoodie/20990101000000000.commit", []byte(`{"partitionToWriteStats":{},"extraMetadata":{}}`))
		}, []string{"warning timeline.future"}},
		"a bloom filter of other keys": {func(t *testing.T, dir string) {
			edit(t, dir, base(t, dir, "dt=x", 0), func(b []byte) []byte { return swapFilter(t, b, read(t, filepath.Join(dir, base(t, dir, "dt=z", 0)))) })
		}, []string{"error bloom.misses-key"}},
		"a key range that is too narrow": {func(t *testing.T, dir string) {
			edit(t, dir, base(t, dir, "dt=x", 0), func(b []byte) []byte {
				for _, name := range []string{"hoodie_min_record_key", "hoodie_max_record_key"} {
					at := bytes.Index(b, []byte(name)) + len(name) + 2 // a field header and a length of one byte
					if b[at] != '1' {
						t.Fatalf("no key behind %s but %q", name, b[at])
					}
					b[at] = '7'
				}
				return b
			})
		}, []string{"error bloom.key-range"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := fixture.Spark(t, table)
			c.damage(t, dir)
			r := validate(t, dir)
			var got []string
			for _, f := range r.Findings {
				got = append(got, string(f.Severity)+" "+string(f.Code))
				if f.What == "" {
					t.Errorf("%v says nothing", f)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", r.Findings, c.want)
			}
		})
	}
}

// swapFilter puts the bloom filter of another file, whose text has the same length, into a file.
func swapFilter(t *testing.T, file, other []byte) []byte {
	t.Helper()
	name := []byte("org.apache.hudi.bloomfilter")
	a, b := bytes.Index(file, name)+len(name), bytes.Index(other, name)+len(name)
	n := 0
	for file[a+4+n] != 0 && other[b+4+n] != 0 && n < 400000 {
		file[a+4+n] = other[b+4+n]
		n++
	}
	return file
}

func edit(t *testing.T, dir, name string, change func([]byte) []byte) {
	t.Helper()
	keep(t, dir, name, change(read(t, filepath.Join(dir, name))))
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func keep(t *testing.T, dir, name string, body []byte) {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, body, 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

// base is the n-th base file of a partition, by its instant.
func base(t *testing.T, dir, partition string, n int) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, partition, "*.parquet"))
	if err != nil || len(files) <= n {
		t.Fatalf("%v, %v", files, err)
	}
	slices.SortFunc(files, func(a, b string) int {
		return strings.Compare(a[strings.LastIndexByte(a, '_'):], b[strings.LastIndexByte(b, '_'):])
	})
	rel, err := filepath.Rel(dir, files[n])
	if err != nil {
		t.Fatal(err)
	}
	return rel
}

func commits(t *testing.T, dir string) []string {
	t.Helper()
	names, err := fs.Glob(os.DirFS(dir), ".hoodie/*.commit")
	if err != nil || len(names) == 0 {
		t.Fatal(err)
	}
	return names
}

func eachCommit(t *testing.T, dir string, change func([]byte) []byte) {
	t.Helper()
	for _, name := range commits(t, dir) {
		edit(t, dir, name, change)
	}
}
