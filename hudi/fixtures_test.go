package hudi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/hudi/encode"
	"github.com/sluicelake/sluice/hudi/read"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/interop/rows"
)

// better is an answer of Sluice that differs from the recorded one, because that one loses or alters data or is an error.
// Only the number of rows is held against it here; the values are those of the fixture's other queries.
type better struct {
	rows int
	why  string
}

// betters are the answers that differ, by fixture and query; a query is "snapshot", "read_optimized", "as of *" or "from *".
var betters = map[string]better{}

func init() {
	add := func(rows int, why string, queries ...string) {
		for _, q := range queries {
			betters[q] = better{rows, why}
		}
	}
	add(13, "a range from the beginning misses archived commits in releases before 1.1", "cow_archived_0.14.0 from 000", "cow_archived_0.15.0 from 000")
	add(12, "the same", "mor_archived_0.15.0 from 000")
	const ancient = "an incremental query of 0.15.0 shifts dates before 1582 as its snapshot query does not"
	add(6, ancient, "cow_types_0.14.0 from 000", "cow_types_0.15.0 from 000", "cow_types_row_writer_0.15.0 from 000")
	const escaped = "an incremental query of 1.2.0 returns partition values as they are escaped in the path, its snapshot query the values themselves"
	add(13, escaped, "cow_partitions_urlencoded_1.2.0 from 000", "cow_partitions_urlencoded_plain_1.2.0 from 000")
	add(2, escaped, "cow_partitions_urlencoded_1.2.0 from *")
	add(6, escaped, "cow_partitions_raw_1.2.0 from 000")
	const cut = "0.15.0 returns the path of a timestamp key generator, which has lost a part of the value; 1.2.0 and Sluice return the value"
	add(4, cut, "cow_partitions_timestamp_keygen_0.15.0 snapshot", "cow_partitions_timestamp_keygen_0.15.0 as of *")
	add(3, cut, "cow_partitions_datestring_keygen_0.15.0 snapshot", "cow_partitions_datestring_keygen_0.15.0 as of *")
	add(4, cut, "sample_table_cow_v6_timebasedkeygen_nonhivestyle snapshot")
	add(3, cut, "sample_table_cow_v6_timebasedkeygen_nonhivestyle as of *")
	add(4, "Spark can't read one decimal in two physical forms", "sample_table_mor_parquet_v6_simplekeygen_nonhivestyle_overwritetable as of 20250121000656060")
	const gone = "an incremental query of 0.15.0 returns null for partition columns that are not in the files"
	add(4, gone, "cow_drop_partition_columns_0.15.0 from 000")
	add(2, gone, "cow_drop_partition_columns_0.15.0 from *")

	const path = "Spark can't cast the path of a timestamp level to the column's type; the value is in the file"
	for _, v := range []string{"0.15.0", "1.2.0"} {
		add(3, path, "cow_partitions_custom_keygen_"+v+" snapshot", "cow_partitions_custom_keygen_"+v+" as of *", "cow_partitions_custom_keygen_"+v+" from 000")
		add(1, path, "cow_partitions_custom_keygen_"+v+" from *")
	}
	const option = "payload deletes fail an incremental query in 0.x: No value present in Option"
	add(3, option, "payload_aws_dms_mor_0.14.0 from *", "payload_aws_dms_mor_0.15.0 from *")
	const nested = "Spark's vectorized reader does not read nested types that changed"
	add(2, nested, "mor_schema_evolution_nested_0.15.0 snapshot", "mor_schema_evolution_nested_0.15.0 read_optimized", "mor_schema_evolution_nested_0.15.0 from 000")
	const null = "a null ordering value is compared as the int 0 and fails; Sluice orders null first"
	add(2, null, "mor_null_ordering_1.2.0 snapshot", "mor_null_ordering_1.2.0 from 000")
	const virtual = "0.15.0 can't merge without meta fields: NullPointerException"
	add(3, virtual, "mor_no_meta_fields_0.15.0 snapshot", "mor_no_meta_fields_0.15.0 as of *")
	const zero = "1.0.2 compares the int 0 of a delete with a long and fails"
	add(4, zero, "mor_delete_and_return_1.0.2 snapshot", "mor_delete_and_return_1.0.2 from 000", "mor_delete_and_return_1.0.2 from *")
}

// exception finds what betters says of a query.
func exception(name, label string) (better, bool) {
	words := strings.Fields(label)
	query := strings.Join(words[:min(2, len(words))], " ")
	for _, q := range []string{label, query} {
		if b, ok := betters[name+" "+q]; ok {
			return b, true
		}
	}
	b, ok := betters[name+" "+strings.Join(words[:len(words)-1], " ")+" *"]
	if !ok && words[0] == "from" && words[1] != "000" {
		b, ok = betters[name+" from *"]
	}
	return b, ok
}

func query(t *testing.T, s *hudi.Snapshot, err error) ([]rows.Row, error) {
	t.Helper()
	if err != nil {
		return nil, err
	}
	w, err := encode.NewJSON(s.Schema(), encode.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for batch, err := range s.Scan(t.Context(), hudi.Scan{}) {
		if err != nil {
			return nil, err
		}
		out = w.Append(out, batch)
		batch.Release()
	}
	got, err := rows.Decode(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	return got, nil
}

func check(t *testing.T, name, label string, want fixture.Answer, got []rows.Row, err error) {
	t.Helper()
	if b, ok := exception(name, label); ok {
		if err != nil || len(got) != b.rows {
			t.Errorf("%d rows, error %v; want %d rows, although Apache Hudi says otherwise: %s", len(got), err, b.rows, b.why)
		}
		return
	}
	switch {
	case want.Error != "" && err != nil: // both refuse
	case want.Error != "":
		t.Errorf("%d rows where Apache Hudi failed with %s", len(got), want.Error)
	case err != nil:
		t.Error(err)
	default:
		want.Check(t, got)
	}
}

// Every table that Apache Hudi's Spark writer made reads as the same release's Spark reader read it: the newest snapshot,
// the read-optimized view, each recorded instant and completion time, and each recorded range.
func TestTablesOfApacheHudi(t *testing.T) {
	for _, name := range fixture.SparkNames(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, expect := fixture.Spark(t, name)
			everyView(t, name, dir, expect)
		})
	}
}

// Tables that other projects publish, with the rows that Spark with Apache Hudi reads from them.
func TestPublicTables(t *testing.T) {
	for _, name := range fixture.PublicNames(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, expect := fixture.Public(t, name)
			everyView(t, name, dir, expect)
		})
	}
}

func everyView(t *testing.T, name, dir string, expect fixture.Expect) {
	table, err := hudi.Open(t.Context(), dir, hudi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(label string, want fixture.Answer, open func() (*hudi.Snapshot, error)) {
		t.Run(label, func(t *testing.T) {
			s, err := open()
			got, err := query(t, s, err)
			if strings.HasPrefix(name, "bootstrap_metadata_only") && errors.Is(err, hudi.ErrUnsupported) {
				return // rows lie outside of the table; those of rewritten file groups are read
			}
			check(t, name, label, want, got, err)
		})
	}
	ctx := t.Context()
	ask("snapshot", expect.Snapshot, func() (*hudi.Snapshot, error) { return table.Snapshot(ctx, hudi.Query{}) })
	if expect.ReadOptimized != nil {
		ask("read_optimized", *expect.ReadOptimized, func() (*hudi.Snapshot, error) { return table.Snapshot(ctx, hudi.Query{View: hudi.ReadOptimized}) })
	}
	for at, want := range expect.TimeTravel {
		ask("as of "+at, want, func() (*hudi.Snapshot, error) { return table.Snapshot(ctx, hudi.Query{AsOf: at}) })
	}
	for at, want := range expect.TimeTravelToCompletion {
		ask("as of completion "+at, want, func() (*hudi.Snapshot, error) { return table.Snapshot(ctx, hudi.Query{AsOf: at}) })
	}
	for _, r := range expect.Incremental {
		if r.Skipped != "" {
			continue
		}
		ask("from "+r.Begin+" to "+r.End, r.Answer, func() (*hudi.Snapshot, error) {
			// Apache Hudi 1.0.x took the begin inclusively, releases before and after it do not.
			return table.Changes(ctx, hudi.Range{Begin: r.Begin, End: r.End, ClosedBegin: expect.Hudi == "1.0.2"})
		})
	}
}

// Tables that record changes give the changes that the same release's Spark reader gave. Spark's images are not uniform: those
// that it takes from whole files hold the meta columns too, and an image that is not there is null or the text "null".
func TestChangeFeedsOfApacheHudi(t *testing.T) {
	for _, name := range fixture.SparkNames(t, "cdc_*") {
		t.Run(name, func(t *testing.T) {
			dir, expect := fixture.Spark(t, name)
			table, err := hudi.Open(t.Context(), dir, hudi.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range expect.CDC {
				feed, err := table.ChangeFeed(t.Context(), hudi.Range{Begin: r.Begin, End: r.End})
				if err != nil {
					t.Fatal(err)
				}
				w, err := encode.NewJSON(read.ChangeSchema, encode.Options{})
				if err != nil {
					t.Fatal(err)
				}
				var out []byte
				for batch, err := range feed.All(t.Context(), read.ScanOptions{}) {
					if err != nil {
						t.Fatal(err)
					}
					out = w.Append(out, batch)
					batch.Release()
				}
				got, err := rows.Decode(bytes.NewReader(out))
				if err != nil {
					t.Fatal(err)
				}
				if d := rows.Diff(uniform(t, r.Rows), uniform(t, got), rows.Options{}); d != "" {
					t.Errorf("from %s to %s: %s", r.Begin, r.End, d)
				}
			}
		})
	}
}

// uniform brings images to one form: an object of the user columns as sorted JSON, or null.
func uniform(t *testing.T, in []rows.Row) rows.Set {
	t.Helper()
	out := rows.Set{}
	for _, r := range in {
		row := rows.Row{"op": r["op"], "ts_ms": r["ts_ms"]}
		for _, side := range []string{"before", "after"} {
			text, _ := r[side].(string)
			if text == "" || text == "null" {
				row[side] = nil
				continue
			}
			var image map[string]any
			if err := json.Unmarshal([]byte(text), &image); err != nil {
				t.Fatalf("image %q: %v", text, err)
			}
			for name := range image {
				if strings.HasPrefix(name, "_hoodie_") {
					delete(image, name)
				}
			}
			row[side] = rows.PythonJSON(image, false)
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}
