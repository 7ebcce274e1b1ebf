package basefile_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/bloom"
	"github.com/sluicelake/sluice/storage/mem"
)

// The filter and the key range of a rewritten file are, bit for bit, those that its rows give when they are written from scratch,
// whether keys stay, change, go or come, and whether the filter of the old file has room, is about to grow, or is full.
func TestRewrittenFilter(t *testing.T) {
	ctx := context.Background()
	avro, _ := nestedType(t)
	all := randomBatch(t, rand.New(rand.NewPCG(1, 1)), 1000, 1500, "f")
	more := randomBatch(t, rand.New(rand.NewPCG(1, 2)), 5000, 350, "f")
	other := randomBatch(t, rand.New(rand.NewPCG(1, 3)), 1, 1, "f")
	keep := func(row int64) basefile.Change {
		return basefile.Change{Rows: []int64{row}, Batch: all.NewSlice(row, row+1)}
	}
	gone := func(row int64) basefile.Change { return basefile.Change{Rows: []int64{row}} }
	renamed := func(row int64) basefile.Change { return basefile.Change{Rows: []int64{row}, Batch: other} }
	for what, changes := range map[string][]basefile.Change{
		"no change": nil, "keys that stay": {keep(0), keep(7), keep(150)}, "a key that goes": {keep(3), gone(150), keep(151)}, "a key that changes": {keep(3), renamed(120), keep(190)}, "the first key goes": {gone(0)},
	} {
		for _, rows := range []int64{200, 300, 301, 600, 900, 1200, 1500} {
			for _, kind := range []bloom.Kind{bloom.Simple, bloom.DynamicV0} {
				for _, limit := range []int64{-1, 1} {
					o := basefile.WriterOptions{Schema: avro, Bloom: &basefile.BloomOptions{Kind: kind, Entries: 300, FPP: 1e-6, Limit: 1000}, Codec: "snappy", PageBytes: 400, RowGroupBytes: 30000}
					store := mem.New("inherit")
					put(t, store, "old", o, all.NewSlice(0, rows))
					old, err := basefile.Open(ctx, store, "old", basefile.Options{})
					if err != nil {
						t.Fatal(err)
					}
					if _, _, err := basefile.Rewrite(ctx, old, store, "new", each(changes), eachBatch([]arrow.RecordBatch{more}), basefile.RewriteOptions{WriterOptions: o, CopyBytes: limit}); err != nil {
						t.Fatal(err)
					}
					put(t, store, "scratch", o, applied(all.NewSlice(0, rows), changes, more)...)
					got, want := footerOf(t, store, "new"), footerOf(t, store, "scratch")
					for key, v := range want {
						if got[key] != v {
							t.Errorf("%s, %d rows, %s, copied from %d: footer %s is %.50s, want %.50s", what, rows, kind, limit, key, got[key], v)
						}
					}
				}
			}
		}
	}
	// A filter of other options is made anew.
	store := mem.New("inherit")
	o := basefile.WriterOptions{Schema: avro, Bloom: &basefile.BloomOptions{Kind: bloom.DynamicV0, Entries: 300, FPP: 1e-6, Limit: 1000}}
	put(t, store, "old", o, all)
	old, err := basefile.Open(ctx, store, "old", basefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o.Bloom = &basefile.BloomOptions{Kind: bloom.DynamicV0, Entries: 400, FPP: 1e-6, Limit: 1000}
	if _, _, err := basefile.Rewrite(ctx, old, store, "new", nil, nil, basefile.RewriteOptions{WriterOptions: o}); err != nil {
		t.Fatal(err)
	}
	put(t, store, "scratch", o, all)
	if footerOf(t, store, "new")[bloom.FooterFilter] != footerOf(t, store, "scratch")[bloom.FooterFilter] {
		t.Error("the filter of the old file's options")
	}
}

// applied is what a rewrite has to leave.
func applied(old arrow.RecordBatch, changes []basefile.Change, more arrow.RecordBatch) (out []arrow.RecordBatch) {
	at := int64(0)
	for _, c := range changes {
		out = append(out, old.NewSlice(at, c.Rows[0]))
		if c.Batch != nil {
			out = append(out, c.Batch)
		}
		at = c.Rows[0] + 1
	}
	return append(out, old.NewSlice(at, old.NumRows()), more)
}

func footerOf(t *testing.T, store *mem.Store, name string) map[string]string {
	t.Helper()
	f, err := basefile.Open(context.Background(), store, name, basefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	return f.KeyValue()
}

// Changes of a batch whose columns are others are refused, also while the filter of the old file is kept.
func TestRewriteRefusesOtherColumns(t *testing.T) {
	ctx := context.Background()
	avro, _ := nestedType(t)
	store := mem.New("refused")
	o := basefile.WriterOptions{Schema: avro, Bloom: basefile.DefaultBloom()}
	put(t, store, "old", o, randomBatch(t, rand.New(rand.NewPCG(1, 1)), 0, 10, "f"))
	old, err := basefile.Open(ctx, store, "old", basefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.BinaryTypes.String}}, nil))
	b.Field(0).(*array.StringBuilder).Append("x")
	_, _, err = basefile.Rewrite(ctx, old, store, "new", each([]basefile.Change{{Rows: []int64{3}, Batch: b.NewRecordBatch()}}), nil, basefile.RewriteOptions{WriterOptions: o})
	if err == nil {
		t.Fatal("taken")
	}
	if _, err := store.Stat(ctx, "new"); err == nil {
		t.Error(fmt.Errorf("a file is there"))
	}
}
