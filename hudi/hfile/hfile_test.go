package hfile

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func openFile(t testing.TB, name string) *Reader {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return openBytes(t, data)
}

func openBytes(t testing.TB, data []byte) *Reader {
	t.Helper()
	r, err := Open(t.Context(), bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What Hudi 1.2.0's own reader returned for files of both writers: testdata/expected.json.
func TestSameAsJava(t *testing.T) {
	var want struct {
		Files map[string]struct {
			Entries int64
			First   []struct {
				Key      string
				ValueHex string `json:"value_hex"`
			}
			LastKey *string           `json:"last_key"`
			CRC     uint32            `json:"crc32_of_keys_and_values"`
			Seek    map[string]string `json:"seek"`
			Info    map[string]string `json:"file_info_hex"`
		}
	}
	text, err := os.ReadFile("testdata/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	for name, w := range want.Files {
		t.Run(name, func(t *testing.T) {
			r := openFile(t, name)
			ctx := t.Context()
			sum := crc32.NewIEEE()
			var keys []string
			for e, err := range r.Scan(ctx) {
				if err != nil {
					t.Fatal(err)
				}
				if i := len(keys); i < len(w.First) && (string(e.Key) != w.First[i].Key || hex.EncodeToString(e.Value) != w.First[i].ValueHex) {
					t.Errorf("entry %d: %s = %x", i, e.Key, e.Value)
				}
				keys = append(keys, string(e.Key))
				sum.Write(e.Key)
				sum.Write(e.Value)
			}
			if int64(len(keys)) != w.Entries || r.Entries() != w.Entries || sum.Sum32() != w.CRC {
				t.Errorf("%d entries with checksum %d, want %d with %d", len(keys), sum.Sum32(), w.Entries, w.CRC)
			}
			if last, ok := r.LastKey(); ok != (w.LastKey != nil) || ok && string(last) != *w.LastKey {
				t.Errorf("last key %q", last)
			}
			if first, ok, err := r.FirstKey(ctx); err != nil || ok != (len(w.First) > 0) || ok && string(first) != w.First[0].Key {
				t.Errorf("first key %q: %v", first, err)
			}
			for k, v := range w.Info {
				if got, ok := r.Info(k); !ok || hex.EncodeToString(got) != v {
					t.Errorf("info %s = %x, want %s", k, got, v)
				}
			}
			for key, answer := range w.Seek {
				if got := javaSeek(t, r, key, keys); got != answer {
					t.Errorf("seek %s: %s, want %s", key, got, answer)
				}
			}
		})
	}
}

// javaSeek says where Seek stops in the words of expected.json: Java's cursor stands on the greatest key that is not larger.
func javaSeek(t *testing.T, r *Reader, key string, keys []string) string {
	t.Helper()
	for e, err := range r.Seek(t.Context(), []byte(key)) {
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for keys[at] != string(e.Key) {
			at++
		}
		switch {
		case string(e.Key) == key:
			return "0 at " + key
		case at == 0:
			return "-1 at " + keys[0]
		}
		return "1 at " + keys[at-1]
	}
	return "2"
}

func TestGetAndPrefix(t *testing.T) {
	for _, name := range []string{"hbase_gz_three_levels.hfile", "hbase_none_two_levels.hfile", "native_gz_many_blocks.hfile", "native_empty.hfile"} {
		t.Run(name, func(t *testing.T) {
			r := openFile(t, name)
			all := map[string]string{}
			var every [][]byte
			for e, err := range r.Scan(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				all[string(e.Key)] = string(e.Value)
				every = append(every, e.Key)
			}
			check := func(keys [][]byte) {
				t.Helper()
				got := map[string]string{}
				for e, err := range r.Get(t.Context(), keys) {
					if err != nil {
						t.Fatal(err)
					}
					got[string(e.Key)] = string(e.Value)
				}
				n := 0
				for _, k := range keys {
					v, there := all[string(k)]
					if there {
						n++
					}
					if g, ok := got[string(k)]; ok != there || g != v {
						t.Errorf("get %s: %q, %v", k, g, ok)
					}
				}
				if n != len(got) {
					t.Errorf("%d entries for %d keys that are there", len(got), n)
				}
			}
			check(every)
			var some [][]byte
			for i := 0; i < 1700; i += 7 {
				some = append(some, fmt.Appendf(nil, "key-%05d", i), fmt.Appendf(nil, "key-%05dx", i))
			}
			check(some)
			check([][]byte{[]byte(""), []byte("a"), []byte("key-00000"), []byte("zzz")})

			n := 0
			for e, err := range r.Prefix(t.Context(), []byte("key-0002")) {
				if err != nil || !strings.HasPrefix(string(e.Key), "key-0002") {
					t.Fatal(string(e.Key), err)
				}
				n++
			}
			if want := min(10, len(all)); n != want {
				t.Errorf("%d entries with the prefix, want %d", n, want)
			}
		})
	}
}

func TestGetRefusesUnsortedKeys(t *testing.T) {
	r := openFile(t, "hbase_none_two_levels.hfile")
	var last error
	for _, err := range r.Get(t.Context(), [][]byte{[]byte("key-00002"), []byte("key-00001")}) {
		last = err
	}
	if last == nil {
		t.Error("unsorted keys were accepted")
	}
}

// Files of HBase 2.4.9 from Hudi's own test resources: 20,000 entries; 200 keys that stand 21 times each, across the
// borders of blocks; none.
func TestHBaseFiles(t *testing.T) {
	r := openFile(t, "hudi_1_0_hbase_2_4_9_16KB_GZ_20000.hfile")
	n := 0
	for e, err := range r.Scan(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("hudi-key-%09d", n); string(e.Key) != want || string(e.Value) != fmt.Sprintf("hudi-value-%09d", n) {
			t.Fatalf("entry %d: %s = %s", n, e.Key, e.Value)
		}
		n++
	}
	if n != 20000 {
		t.Errorf("%d entries", n)
	}

	r = openFile(t, "hudi_1_0_hbase_2_4_9_16KB_GZ_200_20_non_unique.hfile")
	times := map[string]int{}
	var keys [][]byte
	for e, err := range r.Scan(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if times[string(e.Key)]++; times[string(e.Key)] == 1 {
			keys = append(keys, e.Key)
		}
	}
	if len(keys) != 200 {
		t.Errorf("%d keys", len(keys))
	}
	for i, k := range keys {
		n := 0
		for _, err := range r.Get(t.Context(), keys[i:i+1]) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != 21 || times[string(k)] != 21 {
			t.Errorf("%s: got %d of %d twins, want 21", k, n, times[string(k)])
		}
	}

	r = openFile(t, "hudi_1_0_hbase_2_4_9_no_entry.hfile")
	for e, err := range r.Scan(t.Context()) {
		t.Errorf("entry %s in an empty file: %v", e.Key, err)
	}
}

func TestBloomFilterBlock(t *testing.T) {
	r := openFile(t, "hbase_gz_one_block.hfile")
	text, ok, err := r.Meta(t.Context(), "bloomFilter")
	if err != nil || !ok || len(text) == 0 {
		t.Fatalf("bloom filter: %d bytes, %v, %v", len(text), ok, err)
	}
	if _, ok, err := r.Meta(t.Context(), "nothing"); ok || err != nil {
		t.Errorf("a meta block that is not there: %v, %v", ok, err)
	}
}

// Every flipped bit of a file with checksums is either outside of what matters or an error: never another answer.
func TestFlippedBitsAreFound(t *testing.T) {
	whole, err := os.ReadFile("testdata/hbase_gz_one_block.hfile")
	if err != nil {
		t.Fatal(err)
	}
	want := contents(whole)
	found := 0
	for at := range whole {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 4
		got := contents(damaged)
		if strings.HasPrefix(got, "error") {
			found++
		} else if got != want {
			t.Errorf("byte %d: another answer: %.100s", at, got)
		}
	}
	if found < 500 {
		t.Errorf("only %d damages were found", found)
	}
}

func contents(data []byte) string {
	r, err := Open(context.Background(), bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return "error " + err.Error()
	}
	var b strings.Builder
	for e, err := range r.Scan(context.Background()) {
		if err != nil {
			return "error " + err.Error()
		}
		fmt.Fprintf(&b, "%s=%x\n", e.Key, e.Value)
	}
	return b.String()
}

func TestCutFilesAreRefused(t *testing.T) {
	whole, err := os.ReadFile("testdata/native_gz_many_blocks.hfile")
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(whole); n += 97 {
		if _, err := Open(t.Context(), bytes.NewReader(whole[:n]), int64(n)); !errors.Is(err, ErrFormat) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
}

func FuzzReader(f *testing.F) {
	names, err := filepath.Glob("testdata/*.hfile")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		if data, err := os.ReadFile(name); err == nil && len(data) < 12<<10 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Open(t.Context(), bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		n := int64(0)
		for e, err := range r.Scan(t.Context()) {
			if err != nil {
				return
			}
			n++
			if len(e.Key) > len(data)*maxRatio {
				t.Fatal("a key larger than the file")
			}
		}
		if n != r.Entries() {
			t.Fatalf("%d of %d entries without an error", n, r.Entries())
		}
		for range r.Seek(t.Context(), []byte("key-00003")) {
			break
		}
		_, _, _ = r.Meta(t.Context(), "bloomFilter")
	})
}

func BenchmarkScan(b *testing.B) {
	r := openFile(b, "hudi_1_0_hbase_2_4_9_16KB_GZ_20000.hfile")
	rows := 0
	for b.Loop() {
		for _, err := range r.Scan(b.Context()) {
			if err != nil {
				b.Fatal(err)
			}
			rows++
		}
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkGet(b *testing.B) {
	r := openFile(b, "hudi_1_0_hbase_2_4_9_16KB_GZ_20000.hfile")
	key := [][]byte{[]byte("hudi-key-000012345")}
	for b.Loop() {
		for _, err := range r.Get(b.Context(), key) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
