package export_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/engine/local"
	"github.com/sluicelake/sluice/export"
	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/mem"
)

// lying is a store that keeps something else than it was given, and says that all is well.
type lying struct {
	storage.Store
	name func(string) bool
	bend func([]byte) []byte
}

func (s lying) Put(ctx context.Context, name string, body io.Reader, o storage.PutOptions) (storage.Info, error) {
	if !s.name(name) {
		return s.Store.Put(ctx, name, body, o)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return storage.Info{}, err
	}
	o.Size = 0
	return s.Store.Put(ctx, name, bytes.NewReader(s.bend(text)), o)
}

// Verification passes in every format, and finds what a store lost.
func TestVerify(t *testing.T) {
	dir, _ := fixture.Spark(t, "mor_basic_0.15.0")
	lines := func(b []byte) []byte { return bytes.Replace(b, []byte("\n"), []byte(" "), 1) }
	footer := func(b []byte) []byte { clear(b[len(b)-40:]); return b }
	for _, c := range []struct {
		format export.Format
		codec  string
		bend   func([]byte) []byte
	}{
		{export.JSON, "none", lines}, {export.CSV, "none", lines}, {export.JSON, "gzip", footer}, {export.JSON, "zstd", nil}, {export.CSV, "zstd", nil},
		{export.Parquet, "", footer}, {export.ORC, "", footer}, {export.Hudi, "", footer},
	} {
		world := mem.New("world")
		upload(t, dir, world, "source")
		config := export.Config{Source: "/source", Target: "/out", Format: c.format, Compression: c.codec, Rows: export.Snapshot, Open: below(world), Verify: true}
		if _, err := export.Run(t.Context(), config, local.Options{}); err != nil {
			t.Errorf("%s %s: %v", c.format, c.codec, err)
		}
		if c.bend == nil {
			continue
		}
		data := func(n string) bool {
			return strings.HasPrefix(n, "bent/") && (strings.Contains(n, "part-") || strings.HasSuffix(n, ".parquet"))
		}
		config.Target, config.Open = "/bent", below(lying{world, data, c.bend})
		_, err := export.Run(t.Context(), config, local.Options{})
		if !errors.Is(err, export.ErrVerify) {
			t.Errorf("%s %s: bent files verify: %v", c.format, c.codec, err)
		}
		if left := names(t, world, "bent"); len(left) > 0 {
			t.Errorf("%s %s: %q stays", c.format, c.codec, left)
		}
	}
}

// A file that goes missing or changes its size before _SUCCESS is noticed without --verify too.
func TestLostFilesAreNoticed(t *testing.T) {
	dir, _ := fixture.Spark(t, "cow_basic_1.2.0")
	world := mem.New("world")
	upload(t, dir, world, "source")
	shorter := func(b []byte) []byte { return b[:len(b)-1] }
	c := export.Config{Source: "/source", Target: "/out", Format: export.CSV, Open: below(lossy{world, shorter})}
	if _, err := export.Run(t.Context(), c, local.Options{}); err == nil || !strings.Contains(err.Error(), "was changed while the export ran") {
		t.Errorf("%v", err)
	}
}

// lossy stores less than it says.
type lossy struct {
	storage.Store
	bend func([]byte) []byte
}

func (s lossy) Put(ctx context.Context, name string, body io.Reader, o storage.PutOptions) (storage.Info, error) {
	text, err := io.ReadAll(body)
	if err != nil {
		return storage.Info{}, err
	}
	info, err := s.Store.Put(ctx, name, bytes.NewReader(text), storage.PutOptions{IfAbsent: o.IfAbsent})
	if err == nil && strings.Contains(name, "part-") {
		_, err = s.Store.Put(ctx, name, bytes.NewReader(s.bend(text)), storage.PutOptions{})
	}
	return info, err
}

// The manifest tells every file, with rows and bytes as they are, wherever it was asked for.
func TestManifest(t *testing.T) {
	dir, expect := fixture.Spark(t, "cow_basic_1.2.0")
	for _, format := range []export.Format{export.Parquet, export.CSV, export.Hudi} {
		for _, place := range []string{export.InTarget, "/lists/m.json"} {
			world := mem.New("world")
			upload(t, dir, world, "source")
			c := export.Config{Source: "/source", Target: "/out", Format: format, Manifest: place, Verify: true, Open: below(world)}
			if format != export.Hudi {
				c.PartitionField = "dt"
			}
			sum, err := export.Run(t.Context(), c, local.Options{})
			if err != nil {
				t.Fatal(err)
			}
			at := "lists/m.json"
			if place == export.InTarget {
				at = "out/" + export.ManifestName
			}
			text, err := storage.ReadAll(t.Context(), world, at, 0)
			if err != nil {
				t.Fatal(err)
			}
			var m export.Manifest
			if err := json.Unmarshal(text, &m); err != nil {
				t.Fatal(err)
			}
			var listed []string
			var rows, size int64
			for _, f := range m.Files {
				info, err := world.Stat(t.Context(), "out/"+f.Path)
				if err != nil || info.Size != f.Bytes {
					t.Errorf("%s: %v, %d bytes, listed with %d", f.Path, err, info.Size, f.Bytes)
				}
				listed, rows, size = append(listed, f.Path), rows+f.Rows, size+f.Bytes
			}
			slices.Sort(sum.Files)
			if !slices.Equal(listed, sum.Files) || rows != m.Rows || size != m.Bytes || m.Instant != sum.Instant || !m.Verified || m.Format != format || m.Arguments["output-format"] != string(format) {
				t.Errorf("%s: %+v", format, m)
			}
			if format != export.Hudi && m.Rows != int64(expect.Snapshot.Count) {
				t.Errorf("%s: %d rows, want %d", format, m.Rows, expect.Snapshot.Count)
			}
		}
	}
}

// A plan says what a run does, and writes nothing.
func TestPlan(t *testing.T) {
	for _, c := range []struct {
		table           string
		config          export.Config
		copied, decoded int
	}{
		{"cow_basic_1.2.0", export.Config{Format: export.Parquet, Parallelism: 64}, 3, 0},
		{"cow_basic_1.2.0", export.Config{Format: export.Parquet, Parallelism: 1}, 0, 3},
		{"cow_basic_1.2.0", export.Config{Format: export.JSON}, 0, 3},
		{"cow_basic_1.2.0", export.Config{Format: export.Parquet, PartitionField: "dt"}, 0, 3},
		{"cow_schema_evolution_1.2.0", export.Config{Format: export.Parquet, SmallRowGroup: -1, Explain: true}, 2, 1},
		{"cow_basic_1.2.0", export.Config{Format: export.Hudi}, 6, 0},
		{"mor_types_1.2.0", export.Config{Format: export.Parquet, Rows: export.Snapshot, SmallRowGroup: -1}, 0, 4},
	} {
		dir, _ := fixture.Spark(t, c.table)
		world := mem.New("world")
		upload(t, dir, world, "source")
		before := names(t, world, "source")
		c.config.Source, c.config.Target, c.config.Open = "/source", "/out", below(world)
		p, err := export.Plan(t.Context(), c.config, local.Options{})
		if err != nil {
			t.Fatal(err)
		}
		decoded := 0
		for _, a := range p.Decoded {
			decoded += a.Files
		}
		if p.Copied.Files != c.copied || decoded != c.decoded || p.Read.Files != c.copied+c.decoded || p.Read.Bytes == 0 || p.Instant == "" {
			t.Errorf("%s %s: %+v", c.table, c.config.Format, p)
		}
		if len(names(t, world, "out")) > 0 || !slices.Equal(before, names(t, world, "source")) {
			t.Errorf("%s: something was written", c.table)
		}
		sum, err := export.Run(t.Context(), c.config, local.Options{})
		if err != nil || c.config.Format == export.Parquet && (c.config.Explain || c.config.Parallelism > 0) && sum.Copied != p.Copied.Files {
			t.Errorf("%s: %v, %d copied, planned %d", c.table, err, sum.Copied, p.Copied.Files)
		}
		if _, err := export.Plan(t.Context(), c.config, local.Options{}); !errors.Is(err, export.ErrTargetExists) {
			t.Errorf("%s: the plan of a second run: %v", c.table, err)
		}
	}
	world, c := killed(t, export.Config{Format: export.JSON, Rows: export.Snapshot}, 6)
	before := contents(t, world, "out")
	p, err := export.Plan(t.Context(), c, local.Options{})
	if err != nil || !p.Resumes || p.Kept == 0 || !maps.Equal(before, contents(t, world, "out")) {
		t.Errorf("the plan of what was killed: %v, %+v", err, p)
	}
}

// A full copy has every file of the table, byte for byte, and reads the same.
func TestFullCopy(t *testing.T) {
	for _, name := range []string{"cow_basic_1.2.0", "mor_basic_1.2.0", "mor_basic_0.15.0", "mor_log_only_bucket_1.0.2"} {
		dir, expect := fixture.Spark(t, name)
		target := filepath.Join(t.TempDir(), "copy")
		c := export.Config{Source: dir, Target: target, Format: export.Hudi, WithArchive: true, WithMetadata: true, Rows: export.Snapshot, Verify: true}
		if _, err := export.Run(t.Context(), c, local.Options{}); err != nil {
			t.Fatal(err)
		}
		err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, err := filepath.Rel(dir, p)
			if err != nil {
				return err
			}
			for _, aside := range []string{".crc", ".hoodie/.aux", ".hoodie/.temp", ".hoodie/hoodie.properties.backup", ".hoodie/.heartbeat"} {
				if strings.HasSuffix(rel, aside) || strings.HasPrefix(rel, aside+"/") {
					return nil
				}
			}
			want, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			if got, err := os.ReadFile(filepath.Join(target, rel)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %s: %v, or other bytes", name, rel, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		table, err := hudi.Open(t.Context(), target, hudi.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := table.Snapshot(t.Context(), hudi.Query{})
		if n := count64(t, s, err); n != int64(expect.Snapshot.Count) {
			t.Errorf("%s: %d rows, want %d", name, n, expect.Snapshot.Count)
		}
		c.Target, c.AsOf = filepath.Join(t.TempDir(), "old"), "20200101000000"
		if _, err := export.Run(t.Context(), c, local.Options{}); err == nil {
			t.Errorf("%s: an older state with the metadata table", name)
		}
	}
}
