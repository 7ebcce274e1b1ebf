package logfile

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/storage"
)

// Log files of the quickstart's trips table, as other projects publish them. The keys are those of the quickstart's own rows.
func TestPublicFiles(t *testing.T) {
	const rider = "334e26e9-8355-45cc-97c6-c31daf0df330"
	for name, want := range map[string]string{
		".0712b9f9-d2d5-4cae-bcf4-8fd7146af503-0_20250126040823628.log.2_1-0-1":     "COMMAND at 20250126040936578 for 20250126040826878",
		".6d3d1d6e-2298-4080-a0c1-494877d6f40a-0_20250618054711154.log.1_0-26-85":   "DELETE at 20250618054714114 -e96c4396-3fad-413a-a942-4cb36106d721 -9909a8b1-2d15-4d3d-8ec9-efc48c536a00 -" + rider,
		".ee2ace10-7667-40f5-9848-0a144b5ea064-0_20250113230302428.log.1_0-188-387": "PARQUET_DATA at 20250113230424191 " + rider,
		".ff32ab89-5ad0-4968-83b4-89a34c95d32f-0_20250316025816068.log.1_0-54-122":  "AVRO_DATA at 20250316025828811 " + rider,
	} {
		raw, err := os.ReadFile(filepath.Join("testdata/public", name))
		if err != nil {
			t.Fatal(err)
		}
		store := put(t, name, raw)
		obj, err := store.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for b, err := range Blocks(t.Context(), obj) {
			if err != nil {
				t.Fatal(err)
			}
			line := fmt.Sprintf("%s at %s", b.Type, b.Header.InstantTime)
			if b.Type == Command {
				got = append(got, line+" for "+b.Header.TargetInstant)
				continue
			}
			r := OpenBlock(store, name, b)
			rows, err := rowsOf(t, r, RecordOptions{Columns: []string{"_hoodie_record_key"}})
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				line += fmt.Sprint(" ", row.(map[string]any)["_hoodie_record_key"])
			}
			for d, err := range r.Deletes(t.Context()) {
				if err != nil || d.Partition != "city=san_francisco" || !d.Ordering.IsNone() {
					t.Errorf("%+v: %v", d, err)
				}
				line += " -" + d.Key
			}
			got = append(got, line)
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// largestRead notes the longest range that was asked for.
type largestRead struct {
	storage.Store
	most int
}

func (s *largestRead) Open(ctx context.Context, name string) (storage.Object, error) {
	obj, err := s.Store.Open(ctx, name)
	return largestObject{obj, s}, err
}

type largestObject struct {
	storage.Object
	s *largestRead
}

func (o largestObject) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	o.s.most = max(o.s.most, len(p))
	return o.Object.ReadAt(ctx, p, off)
}

// A block of any size passes through a buffer of 4 MiB, and batches are bounded by bytes too.
func TestLargeBlockIsStreamed(t *testing.T) {
	text := strings.Repeat("x", 300<<10)
	var rows []pair
	for i := range int64(100) {
		rows = append(rows, pair{i, text})
	}
	store := &largestRead{Store: put(t, ".f-0_1.log.1_0-1-0", data(t, "1", rows...))}
	refs, _, err := Scan(t.Context(), store, []string{".f-0_1.log.1_0-1-0"}, ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n, batches := int64(0), 0
	for batch, err := range refs[0].Records(t.Context(), RecordOptions{BatchBytes: 1 << 20}) {
		if err != nil {
			t.Fatal(err)
		}
		if batches++; batch.NumRows() > 4 {
			t.Errorf("a batch of %d rows", batch.NumRows())
		}
		n += batch.NumRows()
		batch.Release()
	}
	if n != 100 || batches != 25 || store.most > contentRead {
		t.Errorf("%d rows in %d batches, a read of %d bytes", n, batches, store.most)
	}
}

// A receiver that stops early gets no further batch and no error.
func TestStopEarly(t *testing.T) {
	refs, _, err := slice(t, ScanOptions{}, data(t, "1", pair{1, "a"}, pair{2, "b"}, pair{3, "c"}))
	if err != nil {
		t.Fatal(err)
	}
	for batch, err := range refs[0].Records(t.Context(), RecordOptions{BatchRows: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		batch.Release()
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Scan(ctx, refs[0].store, []string{refs[0].File}, ScanOptions{}); err == nil {
		t.Error("a cancelled scan went on")
	}
}

// The forms that `table log` prints.
func TestBlockForPeople(t *testing.T) {
	refs, _, err := slice(t, ScanOptions{}, block(t, AvroData, Header{InstantTime: "2", Schema: pairSchema, BlockID: "0,1"}, avroContent(t, pair{1, "a"})))
	if err != nil {
		t.Fatal(err)
	}
	b := refs[0].Block
	if got, want := b.String(), "       0  AVRO_DATA           216 bytes  instant 2  attempt 0,1"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	b.Header.Schema = ""
	text, err := json.Marshal(b)
	if want := `{"type":"AVRO_DATA","formatVersion":1,"header":{"instantTime":"2","blockIdentifier":"0,1"},"offset":0,"contentOffset":188,"contentLength":16,"end":216}`; err != nil || string(text) != want {
		t.Errorf("got  %s\nwant %s: %v", text, want, err)
	}
}

func BenchmarkRecords(b *testing.B) {
	var rows []pair
	for i := range int64(50000) {
		rows = append(rows, pair{i, "some text of usual length"})
	}
	refs, _, err := slice(b, ScanOptions{}, data(b, "1", rows...))
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for b.Loop() {
		for batch, err := range refs[0].Records(b.Context(), RecordOptions{}) {
			if err != nil {
				b.Fatal(err)
			}
			n += int(batch.NumRows())
			batch.Release()
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
}
