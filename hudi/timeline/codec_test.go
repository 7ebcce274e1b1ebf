package timeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/mem"
)

// The schemas that we write are those of the releases (vectors avro_records).
func TestSchemasAreThoseOfTheReleases(t *testing.T) {
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	type javaRecord struct {
		Record string
		Fields []string
	}
	var v struct {
		Records map[string][]javaRecord `json:"avro_records"`
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	ours := 0
	for line := range strings.SplitSeq(strings.TrimSpace(avroRecords), "\n") {
		name, _, _ := strings.Cut(line, ":")
		ours++
		for layout, release := range map[int]string{1: "0.15.0", 2: "1.2.0"} {
			find := func(release string) []string {
				for _, r := range v.Records[release] {
					if strings.HasSuffix(r.Record, "."+name) {
						return r.Fields
					}
				}
				return nil
			}
			want := find(release)
			if want == nil {
				want = find("1.2.0") // the same in both
			}
			_, parsed, err := avroSchema(name, layout)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range parsed.Fields {
				got = append(got, describe(f))
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s of %s:\ngot  %q\nwant %q", name, release, got, want)
			}
		}
	}
	if ours != 29 {
		t.Errorf("%d records", ours)
	}
}

// describe writes a field as the vectors do.
func describe(f schema.Field) string {
	var kind func(t *schema.Type) string
	kind = func(t *schema.Type) string {
		switch t.Kind {
		case schema.Union:
			var parts []string
			for _, b := range t.Branches {
				parts = append(parts, kind(b))
			}
			return "[" + strings.Join(parts, "|") + "]"
		case schema.Array:
			return "array<" + kind(t.Items) + ">"
		case schema.Map:
			return "map<" + kind(t.Items) + ">"
		case schema.Record:
			return t.Name[strings.LastIndexByte(t.Name, '.')+1:]
		}
		return t.Kind.String()
	}
	out := f.Name + " " + kind(f.Type)
	if f.Default != nil {
		out += "=" + strings.Trim(string(f.Default), `"`)
	}
	return out
}

// writtenAgain decodes a file and encodes it; want is nil where the release orders fields in another way than we do.
func writtenAgain(t *testing.T, path string, f FileName, text []byte) (got, want []byte) {
	t.Helper()
	if text[0] == '{' {
		m, err := DecodeCommit(text)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if bytes.Contains(text, []byte(`"totalValidLogBlocks"`)) { // tables of version 6 written by 1.x
			return nil, nil
		}
		return EncodeCommitJSON(m), text
	}
	record := recordOf(f)
	if err := decodeContainer(text, record, nil); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	theirs, want, _, _ := openContainer(text, nil)
	for layout := 1; layout <= 2; layout++ {
		again, err := Encode(record, layout, "")
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		ours, body, _, err := openContainer(again, nil)
		if err == nil && len(ours.Fields) == len(theirs.Fields) && ours.Name == theirs.Name {
			if got = body; bytes.Equal(got, want) {
				return got, want
			}
		}
	}
	if got == nil {
		return nil, nil
	}
	return got, want
}

func recordOf(f FileName) any {
	switch done := f.State == Completed; {
	case f.Action == Clean && done:
		return &CleanMetadata{}
	case f.Action == Clean:
		return &CleanerPlan{}
	case f.Action == Rollback && done:
		return &RollbackMetadata{}
	case f.Action == Rollback:
		return &RollbackPlan{}
	case f.Action == Restore && done:
		return &RestoreMetadata{}
	case f.Action == Restore:
		return &RestorePlan{}
	case f.Action == Savepoint:
		return &SavepointMetadata{}
	case f.Action == Indexing && done:
		return &IndexCommit{}
	case f.Action == Indexing:
		return &IndexPlan{}
	case f.Action == Compaction || f.Action == LogCompaction:
		return &CompactionPlan{}
	case f.Action == Clustering || f.Action == ReplaceCommit && f.State == Requested:
		return &ReplacePlan{}
	}
	return &CommitMetadata{}
}

func sameLetters(a, b []byte) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return bytes.Equal(a, b)
}

// ties reports whether a body has a map with two keys in one bucket of a Java HashMap.
func ties(text []byte) bool {
	m, err := DecodeCommit(text)
	var keys [][]string
	if err == nil {
		if len(m.PartitionToReplaceFileIDs) > 1 {
			return true // Java collects this map in more than one way
		}
		keys = append(keys, nil, nil)
		for k := range m.PartitionToWriteStats {
			keys[0] = append(keys[0], k)
		}
		for k := range m.ExtraMetadata {
			keys[1] = append(keys[1], k)
		}
	}
	p := &CleanerPlan{}
	if decodeContainer(text, p, nil) == nil && p.Files != nil {
		return len(p.Files) > 1 // Java builds this one as a copy, in an order of its own
	}
	for _, set := range keys {
		seen := map[int]bool{}
		for _, k := range set {
			b := javaBucket(k, len(set))
			if seen[b] {
				return true
			}
			seen[b] = true
		}
	}
	return false
}

// Cut off anywhere, a body is an error that names an offset; it is never a panic and never half a plan.
func TestCutOffBodies(t *testing.T) {
	dir, _ := fixture.Spark(t, "mor_compacted_1.2.0")
	files, _ := filepath.Glob(filepath.Join(dir, ".hoodie/timeline/*"))
	n := 0
	for _, path := range files {
		f, ok := ParseFileName(2, filepath.Base(path))
		text, err := os.ReadFile(path)
		if !ok || err != nil || len(text) == 0 {
			continue
		}
		n++
		for cut := 1; cut < len(text); cut += 1 + len(text)/97 {
			if err := decodeContainer(text[:cut], recordOf(f), nil); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "byte ") {
				t.Fatalf("%s cut to %d bytes: %v", path, cut, err)
			}
		}
	}
	if n < 5 {
		t.Errorf("%d files", n)
	}
	for _, text := range []string{"{", `{"partitionToWriteStats":`, `{"compacted":"no"}`, "<html>", "Obj", "Obj\x01", "\x00\x00\x00"} {
		if _, err := DecodeCommit([]byte(text)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Bodies that announce much more than they hold.
func TestHugeCountsAllocateNothing(t *testing.T) {
	var head avroWriter
	head.buf = append(head.buf, avroMagic...)
	head.long(1)
	head.text("avro.schema")
	text, _, err := avroSchema("HoodieRestorePlan", 1)
	if err != nil {
		t.Fatal(err)
	}
	head.text(text)
	head.long(0)
	head.buf = append(head.buf, make([]byte, 16)...)
	for name, body := range map[string]func(w *avroWriter){
		"items":        func(w *avroWriter) { w.long(1 << 60) },
		"block":        func(w *avroWriter) { w.long(-(1 << 60)); w.long(1 << 50) },
		"smallest":     func(w *avroWriter) { w.long(-1 << 63); w.long(0) },
		"text":         func(w *avroWriter) { w.long(1); w.long(1 << 40) },
		"negative":     func(w *avroWriter) { w.long(1); w.long(-5) },
		"long varint":  func(w *avroWriter) { w.buf = append(w.buf, bytes.Repeat([]byte{0xff}, 20)...) },
		"no items end": func(w *avroWriter) { w.long(1) },
	} {
		var b avroWriter
		body(&b)
		full := avroWriter{buf: slices.Clone(head.buf)}
		full.long(1)
		full.long(int64(len(b.buf)))
		full.buf = append(append(full.buf, b.buf...), make([]byte, 16)...)
		allocated := testing.AllocsPerRun(1, func() {
			if err := decodeContainer(full.buf, &RestorePlan{}, nil); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s: %v", name, err)
			}
		})
		if allocated > 2000 {
			t.Errorf("%s: %v allocations", name, allocated)
		}
	}
}

// A schema of one-byte records can't make a small file fill the memory.
func TestExpansionIsBounded(t *testing.T) {
	text := `{"type":"record","name":"c","fields":[{"name":"partitionToWriteStats","type":{"type":"map","values":{"type":"array","items":{"type":"record","name":"s","fields":[{"name":"compacted","type":"boolean"}]}}}}]}`
	writer, err := schema.ParseString(text)
	if err != nil {
		t.Fatal(err)
	}
	var w avroWriter
	w.long(1)
	w.text("p")
	w.long(256 << 10)
	w.buf = append(w.buf, make([]byte, 256<<10+2)...)
	if err := decodeRecord(writer, w.buf, 0, &CommitMetadata{}); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "times the size") {
		t.Error(err)
	}
}

func FuzzFileName(f *testing.F) {
	for _, s := range []string{"20240418173550988.commit.requested", "1_2.commit", "1.inflight", "1.x.y.z", "_._"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for layout := 1; layout <= 2; layout++ {
			if got, ok := ParseFileName(layout, name); ok && got.String() != name && !strings.HasSuffix(name, ".commit.inflight") {
				t.Errorf("%q became %q", name, got)
			}
		}
		_, _ = ParseTime(name, time.UTC)
		_, _ = AsOf(name, time.UTC)
	})
}

func FuzzCommit(f *testing.F) {
	addFiles(f, "mor_basic_0.15.0", ".hoodie/*.deltacommit")
	addFiles(f, "mor_basic_1.2.0", ".hoodie/timeline/*commit")
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := DecodeCommit(text)
		if err != nil {
			return
		}
		if _, err := DecodeCommit(EncodeCommitJSON(m)); err != nil {
			t.Fatalf("what we wrote does not decode: %v", err)
		}
		again, err := Encode(m, 2, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeCommit(again); err != nil {
			t.Fatalf("what we wrote does not decode: %v", err)
		}
	})
}

func FuzzPlan(f *testing.F) {
	addFiles(f, "mor_rollback_0.15.0", ".hoodie/*.rollback*")
	addFiles(f, "cow_clustered_1.2.0", ".hoodie/timeline/*.clustering.requested")
	addFiles(f, "mor_cleaned_1.2.0", ".hoodie/timeline/*.clean*")
	addFiles(f, "cow_savepoint_restore_0.15.0", ".hoodie/*.restore*")
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, into := range []paths{&CompactionPlan{}, &ReplacePlan{}, &CleanerPlan{}, &CleanMetadata{}, &RollbackPlan{}, &RollbackMetadata{}, &RestorePlan{}, &RestoreMetadata{}, &SavepointMetadata{}, &IndexPlan{}, &IndexCommit{}} {
			if err := (content{text: text}).plan(into); err != nil {
				continue
			}
			if _, err := Encode(into, 2, "s3://b/t"); err != nil {
				t.Fatalf("%T: %v", into, err)
			}
		}
	})
}

func FuzzArchiveV1(f *testing.F) {
	addFiles(f, "cow_archived_0.15.0", ".hoodie/archived/.commits_.archive.1_1-0-1")
	f.Add([]byte(logMagic))
	f.Fuzz(func(t *testing.T, text []byte) {
		s := mem.New("t")
		cfg := fuzzTable(1)
		fuzzPut(t, s, cfg.ArchiveFolder+"/.commits_.archive.1_1-0-1", text)
		tl, err := Archive(context.Background(), s, cfg, "", "")
		if err == nil {
			readBodies(s, tl)
		}
	})
}

func FuzzArchiveV2(f *testing.F) {
	addFiles(f, "cow_archived_1.2.0", ".hoodie/timeline/history/*.parquet")
	f.Fuzz(func(t *testing.T, text []byte) {
		s := mem.New("t")
		cfg := fuzzTable(2)
		fuzzPut(t, s, cfg.HistoryPath+"/_version_", []byte("1"))
		fuzzPut(t, s, cfg.HistoryPath+"/manifest_1", []byte(`{"files":[{"fileName":"1_2_0.parquet"}]}`))
		fuzzPut(t, s, cfg.HistoryPath+"/1_2_0.parquet", text)
		tl, err := Archive(context.Background(), s, cfg, "", "")
		if err == nil {
			readBodies(s, tl)
		}
	})
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"files":[{"fileName":"1_2_0.parquet","fileLen":3}]}`), []byte("1"))
	f.Add([]byte(`{"files":[{"fileName":"../../x.parquet"}]}`), []byte(" 99999999999999999999 "))
	f.Fuzz(func(t *testing.T, manifest, version []byte) {
		s := mem.New("t")
		cfg := fuzzTable(2)
		fuzzPut(t, s, cfg.HistoryPath+"/_version_", version)
		fuzzPut(t, s, cfg.HistoryPath+"/manifest_1", manifest)
		if tl, err := Archive(context.Background(), s, cfg, "", ""); err == nil && tl.Len() > 0 {
			t.Error("instants from nowhere")
		}
	})
}

func readBodies(s storage.Store, tl Timeline) {
	ctx := context.Background()
	for _, i := range tl.Instants() {
		_, _ = ReadCommit(ctx, s, i)
		_, _ = ReadClean(ctx, s, i)
		_, _ = ReadCleanerPlan(ctx, s, i)
	}
}
