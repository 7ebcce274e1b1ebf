package bloom_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/bloom"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/storage/local"
)

// vectors are figures of Apache Hudi's own classes: BloomFilterFactory, MurmurHash and JenkinsHash of releases 0.15.0, 1.0.2
// and 1.2.0.
type vectors struct {
	Bloom struct {
		Rows []struct {
			Type         string
			Entries      int
			ErrorRate    float64 `json:"error_rate"`
			MaxEntries   int     `json:"max_entries"`
			Keys         []string
			Serialized   string
			MightContain map[string]any `json:"might_contain"`
			Hashes, Bits int
			Length       int `json:"serialized_length"`
		}
	}
	Hash struct{ Rows []map[string]any }
}

func load(t *testing.T) (v vectors) {
	t.Helper()
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestHashesOfApacheHudi(t *testing.T) {
	rows := load(t).Hash.Rows
	if len(rows) < 10 {
		t.Fatal(len(rows))
	}
	for _, r := range rows {
		key := []byte(r["text"].(string))
		for column, want := range r {
			var h bloom.Hash
			switch {
			case strings.HasPrefix(column, "murmur"):
				h = bloom.Murmur
			case strings.HasPrefix(column, "jenkins"):
				h = bloom.Jenkins
			default:
				continue
			}
			seed := uint32(0xffffffff) // also the default
			switch {
			case strings.HasSuffix(column, "seed_0"):
				seed = 0
			case strings.HasSuffix(column, "seed_1") && !strings.HasSuffix(column, "minus_1"):
				seed = 1
			}
			if got := h.Sum(key, seed); float64(got) != want {
				t.Errorf("%s of %q: %d, want %v", column, key, got, want)
			}
		}
	}
}

func TestFiltersOfApacheHudi(t *testing.T) {
	for i, r := range load(t).Bloom.Rows {
		kind, err := bloom.ParseKind(r.Type)
		if err != nil {
			t.Fatal(err)
		}
		f, err := bloom.New(kind, r.Entries, r.ErrorRate, r.MaxEntries)
		if err != nil {
			t.Fatal(err)
		}
		if r.Serialized == "" { // a row about sizes
			if f.Bits() != r.Bits || f.Hashes() != r.Hashes || len(f.Text()) != r.Length {
				t.Errorf("%d: %d bits, %d hashes, %d characters; want %d, %d, %d", i, f.Bits(), f.Hashes(), len(f.Text()), r.Bits, r.Hashes, r.Length)
			}
			continue
		}
		one, err := bloom.New(kind, r.Entries, r.ErrorRate, r.MaxEntries)
		if err != nil {
			t.Fatal(err)
		}
		keys := column(r.Keys)
		if err := f.AddAll(keys); err != nil {
			t.Fatal(err)
		}
		for _, k := range r.Keys {
			if err := one.Add([]byte(k)); err != nil {
				t.Fatal(err)
			}
		}
		if f.Text() != r.Serialized || one.Text() != r.Serialized {
			t.Errorf("%d: %s\none by one: %s\nwant: %s", i, f.Text(), one.Text(), r.Serialized)
		}
		back, err := bloom.Parse(kind, r.Serialized)
		if err != nil {
			t.Fatal(err)
		}
		if back.Text() != r.Serialized {
			t.Errorf("%d: %s after reading, want %s", i, back.Text(), r.Serialized)
		}
		for key, want := range r.MightContain {
			got, err := back.Test([]byte(key))
			if text, fails := want.(string); fails {
				if !errors.Is(err, bloom.ErrEmptyKey) {
					t.Errorf("%d: %q: %v, want %s", i, key, err, text)
				}
				continue
			}
			if err != nil || got != want {
				t.Errorf("%d: %q: %v %v, want %v", i, key, got, err, want)
			}
		}
	}
}

func column(keys []string) *array.String {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendValues(keys, nil)
	return b.NewStringArray()
}

// The filters in the footers of tables that Apache Hudi wrote know every key of their file, and are made again, bit for bit,
// from the keys in file order, the order in which the writer adds them. (An update keeps the old rows' order.)
func TestFootersOfApacheHudi(t *testing.T) {
	made := map[string]struct { // the options that the tables were written with
		entries int
		fpp     float64
		limit   int
	}{
		"cow_bloom_simple":  {2500, 1e-4, 0},
		"cow_bloom_dynamic": {500, 1e-6, 1500},
		"cow_basic":         {bloom.DefaultEntries, bloom.DefaultFPP, bloom.DefaultMaxEntries},
		"mor_compacted":     {bloom.DefaultEntries, bloom.DefaultFPP, bloom.DefaultMaxEntries},
		"cow_types":         {bloom.DefaultEntries, bloom.DefaultFPP, bloom.DefaultMaxEntries},
	}
	ctx := context.Background()
	for _, name := range fixture.SparkNames(t, "cow_bloom_*", "cow_basic_*", "mor_compacted_*", "cow_types_*") {
		t.Run(name, func(t *testing.T) {
			dir, _ := fixture.Spark(t, name)
			store, err := local.New(dir, local.Options{})
			if err != nil {
				t.Fatal(err)
			}
			o := made[name[:strings.LastIndexByte(name, '_')]]
			if o.entries == 0 {
				o = made["cow_types"]
			}
			files := 0
			for _, file := range baseFiles(t, dir) {
				keys, footer := keysOf(ctx, t, store, file)
				f, ok, err := bloom.FromFooter(footer)
				if err != nil || !ok {
					t.Fatal(file, ok, err)
				}
				files++
				if found := f.TestAll(keys, nil); len(found) != keys.Len() {
					t.Errorf("%s: %d of %d keys are found", file, len(found), keys.Len())
				}
				again, err := bloom.New(f.Kind(), o.entries, o.fpp, o.limit)
				if err != nil {
					t.Fatal(err)
				}
				if err := again.AddAll(keys); err != nil {
					t.Fatal(err)
				}
				if again.Text() != footer[bloom.FooterFilter] {
					t.Errorf("%s: %d keys give another filter: %d bits, %d rows; the footer has %d, %d", file, keys.Len(), again.Bits(), again.Rows(), f.Bits(), f.Rows())
				}
			}
			if files == 0 {
				t.Error("no base files")
			}
		})
	}
}

func baseFiles(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == ".hoodie" {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".parquet") && !strings.HasPrefix(d.Name(), ".") {
			rel, err := filepath.Rel(dir, path)
			files = append(files, filepath.ToSlash(rel))
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func keysOf(ctx context.Context, t *testing.T, store *local.Store, name string) (*array.String, map[string]string) {
	t.Helper()
	f, err := basefile.Open(ctx, store, name, basefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	only := arrow.NewSchema([]arrow.Field{{Name: schema.RecordKey, Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	for batch, err := range f.Scan(ctx, basefile.ScanOptions{Columns: only}) {
		if err != nil {
			t.Fatal(err)
		}
		col := batch.Column(0).(*array.String)
		for i := range col.Len() {
			b.Append(col.Value(i))
		}
		batch.Release()
	}
	return b.NewStringArray(), f.KeyValue()
}

// What is damaged is refused, and never costs more memory than its text.
func TestDamage(t *testing.T) {
	f, err := bloom.New(bloom.DynamicV0, 10, 0.01, 30)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 25 {
		if err := f.Add(fmt.Appendf(nil, "k%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	data, err := base64.StdEncoding.DecodeString(f.Text())
	if err != nil {
		t.Fatal(err)
	}
	for n := range data {
		if _, err := bloom.Parse(bloom.DynamicV0, base64.StdEncoding.EncodeToString(data[:n])); !errors.Is(err, bloom.ErrFilter) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
	set := func(at int, value byte) string {
		d := append([]byte(nil), data...)
		d[at] = value
		return base64.StdEncoding.EncodeToString(d)
	}
	for name, text := range map[string]string{
		"version": set(3, 0xfe), "hashes": set(4, 0x7f), "no hashes": set(7, 0), "function": set(8, 2), "bits": set(9, 0x70), "negative bits": set(9, 0xff),
		"rows": set(21, 0x7f), "negative rows": set(21, 0x80), "other row": set(32, 3), "base64": "=" + f.Text(), "too long": f.Text()[:len(f.Text())-4] + "AAAAAAAA",
	} {
		if _, err := bloom.Parse(bloom.DynamicV0, text); !errors.Is(err, bloom.ErrFilter) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range []struct {
		entries int
		fpp     float64
	}{{0, 0.1}, {-1, 0.1}, {10, 0}, {10, 1}, {10, -1}, {1 << 31, 1e-9}} {
		if _, err := bloom.New(bloom.Simple, c.entries, c.fpp, 0); !errors.Is(err, bloom.ErrFilter) {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// The remainder without a division is the remainder, for the number of bits at its limits.
func TestPositionsOfEverySize(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, entries := range []int{1, 2, 3, 10, 1000} {
		for _, fpp := range []float64{0.9, 0.6, 0.5, 0.1, 1e-12} {
			f, err := bloom.New(bloom.Simple, entries, fpp, 0)
			if err != nil {
				t.Fatal(err)
			}
			var keys []string
			want := make([]byte, (f.Bits()+7)/8)
			for range 20 {
				key := fmt.Sprint(r.Uint64())
				keys = append(keys, key)
				sum := int32(0)
				for range f.Hashes() {
					sum = bloom.Murmur.Sum([]byte(key), uint32(sum))
					at := int64(sum) % int64(f.Bits())
					if at < 0 {
						at = -at
					}
					want[at/8] |= 1 << (at % 8)
				}
			}
			if err := f.AddAll(column(keys)); err != nil {
				t.Fatal(err)
			}
			got, err := base64.StdEncoding.DecodeString(f.Text())
			if err != nil || string(got[13:]) != string(want) {
				t.Errorf("%d entries, %v: %x, want %x", entries, fpp, got[13:], want)
			}
		}
	}
}

func TestEmptyKeysAndNulls(t *testing.T) {
	f, err := bloom.New(bloom.Simple, 10, 0.01, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewStringBuilder(memory.DefaultAllocator)
	b.Append("k")
	b.AppendNull()
	b.Append("")
	keys := b.NewStringArray()
	if err := f.AddAll(keys); !errors.Is(err, bloom.ErrEmptyKey) || !strings.Contains(err.Error(), "row 1") {
		t.Error(err)
	}
	if got := f.TestAll(keys, nil); len(got) != 1 || got[0] != 0 {
		t.Error(got)
	}
	if _, err := bloom.ParseKind("CUCKOO"); !errors.Is(err, bloom.ErrFilter) {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	for _, kind := range []bloom.Kind{bloom.Simple, bloom.DynamicV0} {
		for _, n := range []int{0, 3, 25} {
			b, err := bloom.New(kind, 10, 0.01, 20)
			if err != nil {
				f.Fatal(err)
			}
			for i := range n {
				if err := b.Add(fmt.Appendf(nil, "k%d", i)); err != nil {
					f.Fatal(err)
				}
			}
			data, err := base64.StdEncoding.DecodeString(b.Text())
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(kind), data)
		}
	}
	f.Add(uint8(0), []byte{0, 0, 0, 3, 0, 0, 0, 8, 0xff}) // without a version
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		b, err := bloom.Parse(bloom.Kind(kind%2), base64.StdEncoding.EncodeToString(data))
		if err != nil {
			if !errors.Is(err, bloom.ErrFilter) {
				t.Fatal(err)
			}
			return
		}
		again, err := bloom.Parse(b.Kind(), b.Text())
		if err != nil || again.Text() != b.Text() {
			t.Fatal("what was read is not what is written", err)
		}
		if err := b.Add([]byte("some key")); err != nil {
			t.Fatal(err)
		}
		if ok, err := b.Test([]byte("some key")); !ok || err != nil {
			t.Fatal("a key that was added is not there", err)
		}
	})
}

func BenchmarkFilter(b *testing.B) {
	const n = 50000
	keys := make([]string, n)
	others := make([]string, n)
	for i := range keys {
		keys[i], others[i] = fmt.Sprintf("order-%010d", i), fmt.Sprintf("order-%010d", i+n)
	}
	for _, kind := range []bloom.Kind{bloom.Simple, bloom.DynamicV0} {
		f, err := bloom.New(kind, bloom.DefaultEntries, bloom.DefaultFPP, bloom.DefaultMaxEntries)
		if err != nil {
			b.Fatal(err)
		}
		in, out := column(keys), column(others)
		b.Run(fmt.Sprintf("add/%v", kind), func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				g, err := bloom.New(kind, bloom.DefaultEntries, bloom.DefaultFPP, bloom.DefaultMaxEntries)
				if err != nil {
					b.Fatal(err)
				}
				if err := g.AddAll(in); err != nil {
					b.Fatal(err)
				}
				f = g
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "adds/s")
		})
		var found []int32
		for name, asked := range map[string]*array.String{"hit": in, "miss": out} {
			b.Run(fmt.Sprintf("test/%v/%s", kind, name), func(b *testing.B) {
				b.ReportAllocs()
				for range b.N {
					found = f.TestAll(asked, found[:0])
				}
				b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "tests/s")
			})
		}
	}
}

// A filter that goes on from its text takes keys as if it had never been away, at every fill: with room, about to grow, and full for
// any number of keys.
func TestContinue(t *testing.T) {
	for _, kind := range []bloom.Kind{bloom.Simple, bloom.DynamicV0} {
		for _, limit := range []int{1, 10, 25, 40} {
			for n := range 80 {
				make := func(limit int) *bloom.Filter {
					f, err := bloom.New(kind, 10, 1e-3, limit)
					if err != nil {
						t.Fatal(err)
					}
					return f
				}
				add := func(f *bloom.Filter, from, to int) {
					for i := from; i < to; i++ {
						if err := f.Add(fmt.Appendf(nil, "key %d", i)); err != nil {
							t.Fatal(err)
						}
					}
				}
				whole, part, again := make(limit), make(limit), make(limit)
				add(whole, 0, n+15)
				add(part, 0, n)
				read, err := bloom.Parse(kind, part.Text())
				if err != nil {
					t.Fatal(err)
				}
				if !again.Continue(read, int64(n)) {
					t.Fatalf("%v, limit %d: a filter of %d keys is not taken", kind, limit, n)
				}
				add(again, n, n+15)
				if again.Text() != whole.Text() {
					t.Fatalf("%v, limit %d: another filter after %d keys", kind, limit, n)
				}
				if kind == bloom.DynamicV0 {
					if make(limit).Continue(read, int64(n)+1) {
						t.Error("a filter of fewer keys is taken")
					}
					if limit == 25 && n > 30 && make(100).Continue(read, int64(n)) {
						t.Error("a filter that was full too early is taken")
					}
				}
				other, err := bloom.New(kind, 11, 1e-3, limit)
				if err != nil || other.Continue(read, int64(n)) {
					t.Error("a filter of another shape is taken", err)
				}
			}
		}
	}
}

// Rows that are picked out of a column are added as their keys are one by one: groups of one length and of several, with a row that is
// picked twice, for filters that grow.
func TestAddPicked(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	var keys []string
	for range 3000 {
		keys = append(keys, strings.Repeat("ä", rnd.IntN(3)/2*rnd.IntN(80))+fmt.Sprintf("%0*d", 1+rnd.IntN(3), rnd.IntN(10)))
	}
	in := column(keys)
	var rows []int32
	for range 5000 {
		rows = append(rows, rnd.Int32N(int32(len(keys))))
	}
	for _, kind := range []bloom.Kind{bloom.Simple, bloom.DynamicV0} {
		for _, entries := range []int{1, 1000} {
			picked, single := made(t, kind, entries), made(t, kind, entries)
			for rest := rows; len(rest) > 0; {
				n := min(1+rnd.IntN(9), len(rest))
				if err := picked.AddPicked(in, rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			for _, row := range rows {
				if err := single.Add([]byte(keys[row])); err != nil {
					t.Fatal(err)
				}
			}
			if picked.Text() != single.Text() {
				t.Errorf("%s of %d: another filter", kind, entries)
			}
		}
	}
	if err := made(t, bloom.Simple, 10).AddPicked(column([]string{"a", ""}), []int32{0, 1, 0}); !errors.Is(err, bloom.ErrEmptyKey) || !strings.Contains(err.Error(), "row 1") {
		t.Error(err)
	}
}

func made(t *testing.T, kind bloom.Kind, entries int) *bloom.Filter {
	t.Helper()
	f, err := bloom.New(kind, entries, 0.01, 3*entries)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
