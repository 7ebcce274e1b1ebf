package logfile

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/twmb/avro"

	"github.com/sluicelake/sluice/hudi/hfile"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/storage/local"
)

// Every log file and HFile of the merge-on-read tables that Apache Hudi 0.9 to 1.2 made, metadata tables and archived
// timelines included, can be read; the rows of each Avro block are those that another Avro library decodes.
func TestLogsOfRealTables(t *testing.T) {
	seen := map[string]int{}
	names := fixture.SparkNames(t, "mor_types_*", "mor_log_compaction_*", "mor_partial_update_*", "mor_rollback_*", "mor_parquet_logs_*", "mor_record_positions_*",
		"mor_table_version_*", "cdc_data_before_after_cow_*", "cow_archived_0.1*", "metadata_table_compacted_*", "record_index_*", "payload_aws_dms_mor_*", "upgraded_mor_*", "old_mor_0.9.0")
	for _, name := range names {
		dir, _ := fixture.Spark(t, name)
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, err := filepath.Rel(dir, path)
			if err == nil {
				readTableFile(t, dir, filepath.ToSlash(rel), seen)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []string{"AVRO_DATA", "AVRO_DATA compacted", "AVRO_DATA partial", "AVRO_DATA positions", "AVRO_DATA attempt", "DELETE", "DELETE positions", "HFILE_DATA", "PARQUET_DATA", "CDC_DATA", "COMMAND", "archive", "hfile entries"} {
		if seen[kind] == 0 {
			t.Errorf("no %s in %d tables: the test proves nothing about it", kind, len(names))
		}
	}
}

func readTableFile(t *testing.T, dir, name string, seen map[string]int) {
	t.Helper()
	base := filepath.Base(name)
	_, isLog := ParseName(base)
	archive := strings.HasPrefix(base, ".commits_.archive") && !strings.HasSuffix(base, ".crc")
	switch {
	case strings.HasSuffix(base, ".hfile"):
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		h, err := hfile.Open(t.Context(), f, info.Size())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		for _, err := range h.Scan(t.Context()) {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			seen["hfile entries"]++
		}
	case isLog || archive:
		if archive {
			seen["archive"]++
		}
		readTableLog(t, dir, name, seen)
	}
}

func readTableLog(t *testing.T, dir, name string, seen map[string]int) {
	t.Helper()
	store, err := local.New(dir, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	obj, err := store.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = obj.Close() }()
	for b, err := range Blocks(t.Context(), obj) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		r := OpenBlock(store, name, b)
		seen[b.Type.String()]++
		for kind, has := range map[string]bool{"compacted": len(b.Header.Compacted()) > 0, "partial": b.Header.IsPartial(), "positions": b.Header.Positions != "", "attempt": b.Header.BlockID != ""} {
			if has {
				seen[b.Type.String()+" "+kind]++
			}
		}
		rows := readTableBlock(t, r, seen)
		positions, err := r.Positions()
		if err != nil || positions != nil && positions.GetCardinality() != uint64(rows) {
			t.Errorf("%s: %s: positions %v for %d rows: %v", name, b, positions, rows, err)
		}
	}
}

func readTableBlock(t *testing.T, r Ref, seen map[string]int) (rows int) {
	t.Helper()
	switch r.Type {
	case Corrupt:
		t.Errorf("%s: %s", r.File, r)
	case AvroData, CDCData:
		rows = compareWithOtherLibrary(t, r)
	case HFileData, ParquetData:
		for batch, err := range r.Records(t.Context(), RecordOptions{}) {
			if err != nil {
				t.Error(err)
				break
			}
			rows += int(batch.NumRows())
			batch.Release()
		}
	}
	for _, err := range r.Deletes(t.Context()) {
		if err != nil {
			t.Error(err)
		}
		rows++
	}
	return rows
}

// compareWithOtherLibrary decodes the block's records with twmb/avro, without logical types, and compares every value.
func compareWithOtherLibrary(t *testing.T, r Ref) int {
	t.Helper()
	writer, err := r.WriterSchema()
	if err != nil {
		t.Fatal(err)
	}
	other, err := avro.Parse(plain(writer, map[*schema.Type]*schema.Type{}).String())
	if err != nil {
		t.Fatal(err)
	}
	var want []map[string]any
	for raw, err := range r.RawRecords(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if _, err := other.Decode(raw, &v); err != nil {
			t.Fatal(err)
		}
		want = append(want, v.(map[string]any))
	}
	n := 0
	for batch, err := range r.Records(t.Context(), RecordOptions{BatchRows: 3}) {
		if err != nil {
			t.Error(err)
			return n
		}
		for i := range int(batch.NumRows()) {
			for c, f := range writer.Fields {
				if d := differ(f.Type, want[n][f.Name], batch.Column(c), i); d != "" {
					t.Errorf("%s: row %d, %s: %s", r.File, n, f.Name, d)
				}
			}
			n++
		}
		batch.Release()
	}
	if n != len(want) {
		t.Errorf("%s: %d rows, want %d", r.File, n, len(want))
	}
	return n
}

// plain copies a type without its logical types.
func plain(t *schema.Type, done map[*schema.Type]*schema.Type) *schema.Type {
	if d, ok := done[t]; ok {
		return d
	}
	c := *t
	done[t] = &c
	c.Logical, c.Precision, c.Scale = schema.NoLogical, 0, 0
	if c.Items != nil {
		c.Items = plain(c.Items, done)
	}
	c.Branches, c.Fields = nil, nil
	for _, b := range t.Branches {
		c.Branches = append(c.Branches, plain(b, done))
	}
	for _, f := range t.Fields {
		f.Type = plain(f.Type, done)
		c.Fields = append(c.Fields, f)
	}
	return &c
}

// differ says how a decoded value differs from what the other library gave, "" if it does not.
func differ(t *schema.Type, want any, a arrow.Array, i int) string {
	t, _ = t.Optional()
	if want == nil || a.IsNull(i) {
		if want != nil || !a.IsNull(i) {
			return fmt.Sprintf("got %s, want %v", a.ValueStr(i), want)
		}
		return ""
	}
	switch a := a.(type) {
	case *array.List:
		items := want.([]any)
		from, to := a.ValueOffsets(i)
		if int(to-from) != len(items) {
			return fmt.Sprintf("%d elements, want %d", to-from, len(items))
		}
		for j, item := range items {
			if d := differ(t.Items, item, a.ListValues(), int(from)+j); d != "" {
				return d
			}
		}
		return ""
	case *array.Map:
		entries := want.(map[string]any)
		from, to := a.ValueOffsets(i)
		if int(to-from) != len(entries) {
			return fmt.Sprintf("%d entries, want %d", to-from, len(entries))
		}
		for j := int(from); j < int(to); j++ {
			if d := differ(t.Items, entries[a.Keys().ValueStr(j)], a.Items(), j); d != "" {
				return d
			}
		}
		return ""
	case *array.Struct:
		for c, f := range t.Fields {
			if d := differ(f.Type, want.(map[string]any)[f.Name], a.Field(c), i); d != "" {
				return f.Name + ": " + d
			}
		}
		return ""
	}
	got := rawValue(a, i)
	if b, ok := want.([]byte); ok {
		want = string(b)
		if d, ok := a.(*array.Decimal128); ok {
			want, got = schema.BigEndianDecimal([]byte(want.(string))), d.Value(i)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Sprintf("got %v, want %v", got, want)
	}
	return ""
}

func rawValue(a arrow.Array, i int) any {
	switch a := a.(type) {
	case *array.Date32:
		return int32(a.Value(i))
	case *array.Time64:
		return int64(a.Value(i))
	case *array.Timestamp:
		return int64(a.Value(i))
	case *array.Binary:
		return string(a.Value(i))
	case *array.FixedSizeBinary:
		return string(a.Value(i))
	case *array.String:
		return a.Value(i)
	case *array.Float32:
		return a.Value(i)
	case *array.Float64:
		return a.Value(i)
	case *array.Int32:
		return a.Value(i)
	case *array.Int64:
		return a.Value(i)
	case *array.Boolean:
		return a.Value(i)
	}
	return math.NaN()
}
