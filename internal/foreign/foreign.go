// Package foreign writes tables of Apache Hudi again: their own rows, which must find themselves.
package foreign

import (
	"bytes"
	"errors"
	"iter"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/hudi/encode"
	"github.com/sluicelake/sluice/hudi/service"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/interop/rows"
	"github.com/sluicelake/sluice/storage/local"
)

// Table is one of the tables of testdata.
type Table struct {
	Name string
	Open func(t testing.TB) (dir string)
}

// Tables gives all of them, by the folder that they are in and their name.
func Tables(t testing.TB) (all []Table) {
	t.Helper()
	for _, k := range []struct {
		kind  string
		names func(testing.TB, ...string) []string
		open  func(testing.TB, string) (string, fixture.Expect)
	}{{"spark", fixture.SparkNames, fixture.Spark}, {"public", fixture.PublicNames, fixture.Public}, {"history", fixture.HistoryNames, fixture.History}} {
		for _, name := range k.names(t) {
			all = append(all, Table{k.kind + "/" + name, func(t testing.TB) string {
				t.Helper()
				dir, _ := k.open(t, name)
				return dir
			}})
		}
	}
	return all
}

// writerConf is what the writers of a table were told beside its properties.
var writerConf = map[string]map[string]string{
	"spark/cow_partitions_timestamp_keygen_0.15.0": {"hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
		"hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd", "hoodie.keygen.timebased.timezone": "UTC"},
	"spark/cow_partitions_datestring_keygen_0.15.0": {"hoodie.keygen.timebased.timestamp.type": "DATE_STRING", "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd HH:mm:ss",
		"hoodie.keygen.timebased.output.dateformat": "yyyyMMdd-HH", "hoodie.keygen.timebased.input.timezone": "UTC", "hoodie.keygen.timebased.output.timezone": "UTC"},
	"spark/cow_partitions_custom_keygen_0.15.0": {"hoodie.datasource.write.partitionpath.field": "region:SIMPLE,at:TIMESTAMP", "hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
		"hoodie.keygen.timebased.output.dateformat": "yyyy-MM", "hoodie.keygen.timebased.timezone": "UTC"},
	"public/sample_table_cow_v6_timebasedkeygen_nonhivestyle": {"hoodie.keygen.timebased.timestamp.type": "DATE_STRING"},
}

// unlike are the tables whose own rows, written again, are rightly not what they were.
var unlike = map[string]string{
	"spark/keyless_table_0.15.0":          "keys are made anew for every write",
	"spark/cow_duplicates_0.15.0":         "twins become alike",
	"spark/cow_partitions_raw_0.15.0":     "a reader shows 100% where the file holds 100%25",
	"spark/cow_pending_clustering_0.15.0": "file groups under a pending clustering must not change",
}

// Options are those with which a table is written.
func Options(name string) hudi.WriteOptions {
	o := hudi.WriteOptions{Conf: map[string]string{"hoodie.metadata.enable": "false"}}
	maps.Copy(o.Conf, writerConf[name])
	return o
}

// Reached says how far Rewrite got.
type Reached string

// What can be done with a table.
const (
	Upserted    Reached = "upserted, a row deleted, overwritten"
	Overwritten Reached = "overwritten" // updates of this table are refused
	Refused     Reached = "refused"     // it can't be written now, or not by Sluice
)

// Rewrite upserts all rows of a table, deletes one, and overwrites the table with those that are left. After each step the table
// holds the rows that it should, under the same keys, in the same partitions; at the end it is valid. It gives the rows that
// are there at the end.
func Rewrite(t testing.TB, name, dir string) (reached Reached, left []rows.Row) {
	t.Helper()
	ctx := t.Context()
	table, err := hudi.Open(ctx, dir, hudi.Options{})
	if err != nil {
		return Refused, nil
	}
	if unlike[name] != "" {
		return Refused, nil
	}
	left, err = Stored(t, table)
	if errors.Is(err, hudi.ErrUnsupported) {
		return Refused, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	o := Options(name)
	res, err := Write(t, table, hudi.Upsert, o, nil)
	reached = Upserted
	switch {
	case errors.Is(err, hudi.ErrUnsupported) && table.Config().Version != 6:
		return Refused, left
	case errors.Is(err, hudi.ErrUnsupported):
		reached = Overwritten
	case err != nil:
		t.Fatal(err)
	default:
		if res.Inserted != 0 || int(res.Updated) != len(left) {
			t.Errorf("of %d rows %d were inserted and %d updated", len(left), res.Inserted, res.Updated)
		}
		same(t, "an upsert of its own rows", left, table)
		if len(left) > 0 && left[0]["_hoodie_record_key"] != nil {
			gone := left[0]["_hoodie_record_key"]
			if _, err := Write(t, table, hudi.Delete, o, gone); err != nil {
				t.Fatal(err)
			}
			left = without(left, gone)
			same(t, "a delete", left, table)
		}
	}
	if _, err := Write(t, table, hudi.InsertOverwriteTable, o, nil); err != nil {
		if errors.Is(err, hudi.ErrUnsupported) {
			return Refused, left
		}
		if strings.Contains(err.Error(), "can't be replaced before that has ended") {
			return Refused, left
		}
		t.Fatal(err)
	}
	same(t, "overwriting it", left, table)
	store, err := local.New(dir, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	report, err := service.Validate(ctx, store, service.ValidateOptions{Zone: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.Severity == service.Error {
			t.Error(f)
		}
	}
	return reached, left
}

// Stored are the rows of a table.
func Stored(t testing.TB, table *hudi.Table) ([]rows.Row, error) {
	t.Helper()
	s, err := table.Snapshot(t.Context(), hudi.Query{})
	if err != nil {
		return nil, err
	}
	w, err := encode.NewJSON(s.Schema(), encode.Options{})
	if err != nil {
		return nil, err
	}
	var text []byte
	for batch, err := range s.Scan(t.Context(), hudi.Scan{}) {
		if err != nil {
			return nil, err
		}
		text = w.Append(text, batch)
		batch.Release()
	}
	return rows.Decode(bytes.NewReader(text))
}

// Times are the columns that tell when a row was written, and where to.
var Times = []string{"_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"}

func same(t testing.TB, after string, want []rows.Row, table *hudi.Table) {
	t.Helper()
	got, err := Stored(t, table)
	if err != nil {
		t.Fatalf("after %s: %v", after, err)
	}
	if d := rows.Diff(rows.Set{Rows: want}, rows.Set{Rows: got}, rows.Options{Ignore: Times}); d != "" {
		t.Fatalf("after %s: %s", after, d)
	}
}

func without(in []rows.Row, key any) (out []rows.Row) {
	for _, r := range in {
		if r["_hoodie_record_key"] != key {
			out = append(out, r)
		}
	}
	return out
}

// Write gives a table its own rows, without their meta columns: all, or those of one record key.
func Write(t testing.TB, table *hudi.Table, op hudi.Operation, o hudi.WriteOptions, key any) (*hudi.WriteResult, error) {
	t.Helper()
	s, err := table.Snapshot(t.Context(), hudi.Query{})
	if err != nil {
		t.Fatal(err)
	}
	var fields []arrow.Field
	var at []int
	for i, f := range s.Schema().Fields() {
		if !strings.HasPrefix(f.Name, "_hoodie_") || f.Name == "_hoodie_is_deleted" {
			fields, at = append(fields, f), append(at, i)
		}
	}
	columns := arrow.NewSchema(fields, nil)
	var batches iter.Seq2[arrow.RecordBatch, error] = func(yield func(arrow.RecordBatch, error) bool) {
		for batch, err := range s.Scan(t.Context(), hudi.Scan{}) {
			if err != nil {
				yield(nil, err)
				return
			}
			own := make([]arrow.Array, len(at))
			for i, from := range at {
				own[i] = batch.Column(from)
			}
			all := array.NewRecordBatch(columns, own, batch.NumRows())
			for row := range batch.NumRows() {
				if key != nil && batch.Column(batch.Schema().FieldIndices("_hoodie_record_key")[0]).ValueStr(int(row)) != key {
					continue
				}
				if !yield(all.NewSlice(row, row+1), nil) {
					return
				}
			}
			all.Release()
			batch.Release()
		}
	}
	return table.Write(t.Context(), op, hudi.Records(columns, batches), o)
}
