package logfile

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluicelake/sluice/storage"
)

// FuzzFile runs everything over bytes that claim to be a log file: nothing may panic, hang or take memory that the file does
// not justify, and frames must follow one another to the end.
func FuzzFile(f *testing.F) {
	files, err := filepath.Glob("testdata/java/1.2.0/.*")
	if err != nil || len(files) < 10 {
		f.Fatal(files, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add(join(data(f, "1", pair{1, "a"}), []byte("#HUDI"), data(f, "2", pair{2, "b"})))
	f.Fuzz(func(t *testing.T, data []byte) {
		const name = ".f-0_1.log.1_0-1-0"
		store := put(t, name, data)
		fuzzFrames(t, store, name, data)
		for _, o := range []ScanOptions{{}, {DropCondemned: true, Latest: "20240418173551906"}} {
			refs, _, err := Scan(t.Context(), store, []string{name}, o)
			if err != nil {
				continue
			}
			for _, r := range refs {
				fuzzRef(t.Context(), r)
			}
		}
	})
}

// TestFlippedBits runs the same checks over files with one damaged byte each.
func TestFlippedBits(t *testing.T) {
	for name, f := range javaFiles(t, "1.2.0") {
		switch name {
		case "blocks", "avro_positions", "hfile", "cdc", "partial", "compacted":
		default:
			continue
		}
		whole := readJava(t, "1.2.0", f.File)
		for at := 0; at < len(whole); at += 3 {
			damaged := bytes.Clone(whole)
			damaged[at] ^= 1 << (at % 8)
			store := put(t, f.File, damaged)
			fuzzFrames(t, store, f.File, damaged)
			if refs, _, err := Scan(t.Context(), store, []string{f.File}, ScanOptions{}); err == nil {
				for _, r := range refs {
					fuzzRef(t.Context(), r)
				}
			}
		}
	}
}

func fuzzFrames(t testing.TB, store storage.Store, name string, data []byte) {
	obj, err := store.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	end := int64(0)
	for b, err := range Blocks(t.Context(), obj) {
		if err != nil {
			return
		}
		if b.Offset != end || b.End <= b.Offset || b.End > int64(len(data)) || !bytes.HasPrefix(data[b.Offset:], []byte(magic)) {
			t.Fatalf("%s follows offset %d", b, end)
		}
		if b.Type != Corrupt && b.ContentOffset+b.ContentLength > b.End {
			t.Fatalf("content of %s leaves the block", b)
		}
		end = b.End
		fuzzRef(t.Context(), OpenBlock(store, name, b))
	}
	if int64(len(data))-end >= int64(len(magic)) {
		t.Fatalf("ended at %d of %d without an error", end, len(data))
	}
}

func fuzzRef(ctx context.Context, r Ref) {
	for batch, err := range r.Records(ctx, RecordOptions{}) {
		if err == nil {
			batch.Release()
		}
	}
	for range r.Deletes(ctx) {
		continue
	}
	_, _ = r.Positions()
	_, _, _ = r.PartialColumns()
}

// FuzzDeletes: entries are decoded alike whether the content is at hand or comes through the buffer in pieces.
func FuzzDeletes(f *testing.F) {
	f.Add(AppendDeleteContent(nil, nil))
	f.Add(AppendDeleteContent(nil, []DeletedKey{{Key: "k", Partition: "p", Ordering: Ordering{Kind: OrderingArray, Items: []Ordering{{Kind: OrderingDouble, Float: 1}}}}, {Key: "x", Ordering: Ordering{Kind: OrderingString, Text: "t"}}}))
	f.Fuzz(func(t *testing.T, content []byte) {
		const name = "f"
		file := block(t, Delete, Header{InstantTime: "1"}, content)
		store := put(t, name, file)
		obj, err := store.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range Blocks(t.Context(), obj) {
			if err != nil {
				t.Fatal(err)
			}
			r := OpenBlock(store, name, b)
			streamed, err1 := deletesOf(t.Context(), r)
			r.whole = file
			atHand, err2 := deletesOf(t.Context(), r)
			if (err1 == nil) != (err2 == nil) || len(streamed) != len(atHand) {
				t.Fatalf("%d deletes, %v; at once %d, %v", len(streamed), err1, len(atHand), err2)
			}
			if err1 == nil && len(content) > 4 {
				if again := AppendDeleteContent(nil, streamed); len(streamed) == 0 && len(again) != 9 {
					t.Fatalf("written as %x", again)
				}
			}
		}
	})
}

func deletesOf(ctx context.Context, r Ref) (out []DeletedKey, err error) {
	for d, err := range r.Deletes(ctx) {
		if err != nil {
			return out, err
		}
		out = append(out, d)
	}
	return out, nil
}

func FuzzPositions(f *testing.F) {
	f.Add("AQAAAAAAAAAAAAAAOjAAAAEAAAAAAAMAEAAAAAEAAgADAOgD")
	f.Add("AgAAAAAAAAAAAAAAOjAAAAEAAAAAAAAAEAAAAAUAAQAAADowAAABAAAAAAABABAAAAAAAAEA")
	f.Add("AQAAAAAAAAAAAAAAOzAAAAEAALcLAQBkALcL")
	f.Fuzz(func(t *testing.T, text string) {
		b, err := ParsePositions(text)
		if err != nil {
			return
		}
		again, err := FormatPositions(b.Clone())
		if err != nil {
			t.Fatal(err)
		}
		c, err := ParsePositions(again)
		if err != nil || !c.Equals(b) {
			t.Fatalf("%s became %s: %v", text, again, err)
		}
	})
}
