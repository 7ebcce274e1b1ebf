//go:build interop

// Package protocol_test lets Spark with Apache Hudi and Sluice write one table in turns, and die over it in turns.
package protocol_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/service"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/hudi/write"
	"github.com/sluicelake/sluice/hudi/write/lock"
	"github.com/sluicelake/sluice/hudi/write/marker"
	"github.com/sluicelake/sluice/interop/rows"
	"github.com/sluicelake/sluice/interop/spark"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/fault"
	"github.com/sluicelake/sluice/storage/local"
)

const columns = "id int, name string, price double, ts bigint, dt string"

// base are the options of every write of Spark's.
func base(name string, tableType config.TableType) spark.Options {
	return spark.Options{
		"hoodie.table.name": name, "hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "dt",
		"hoodie.datasource.write.precombine.field": "ts", "hoodie.datasource.write.hive_style_partitioning": "true",
		"hoodie.datasource.write.table.type": string(tableType), "hoodie.metadata.enable": "false", "hoodie.datasource.write.operation": "upsert",
		"hoodie.parquet.small.file.limit": "0", "hoodie.compact.inline": "false",
	}
}

func create(t *testing.T, dir string, options spark.Options) storage.Store {
	t.Helper()
	s, err := local.New(dir, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	spec, err := write.SpecFromOptions(options)
	if err == nil {
		_, err = write.CreateTable(context.Background(), s, spec)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func upsert(t *testing.T, s *spark.Session, dir string, o spark.Options, data ...[]any) {
	t.Helper()
	if err := s.Write(dir, spark.Write{Columns: columns, Rows: data, Options: o}); err != nil {
		t.Fatal(err)
	}
}

// ids reads a table by every release, with and without metadata table, and gives "dt/id name" of the rows.
func ids(t *testing.T, dir string) []string {
	t.Helper()
	var first []string
	for _, release := range []string{spark.Hudi0, spark.Hudi1} {
		for _, metadata := range []string{"false", "true"} {
			set, err := spark.Hudi(t, release).Read(dir, spark.Options{"hoodie.metadata.enable": metadata})
			if err != nil {
				t.Fatalf("%s: %v", release, err)
			}
			got := lines(set)
			if first == nil {
				first = got
			}
			if !slices.Equal(first, got) {
				t.Fatalf("%s, metadata table %s: %v, before %v", release, metadata, got, first)
			}
		}
	}
	return first
}

func lines(set rows.Set) []string {
	out := []string{}
	for _, r := range set.Rows {
		out = append(out, fmt.Sprintf("%v/%v %v", r["dt"], r["id"], r["name"]))
	}
	slices.Sort(out)
	return out
}

func later() time.Time { return time.Now().Add(10 * time.Minute) }

func begin(t *testing.T, s storage.Store, action timeline.Action) *write.Txn {
	t.Helper()
	txn, err := write.Begin(context.Background(), s, write.Options{Action: action, Operation: "INSERT", Lock: &lock.Options{Now: later}, Now: later})
	if err != nil {
		t.Fatal(err)
	}
	return txn
}

// put copies the base file of partition dt=x into a new file group of the partition.
func put(t *testing.T, s storage.Store, txn *write.Txn, partition string) timeline.WriteStat {
	t.Helper()
	ctx := context.Background()
	var from string
	for info, err := range s.List(ctx, "dt=x", storage.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := filegroup.ParseBaseName(path.Base(info.Name)); ok && from == "" {
			from = info.Name
		}
	}
	data, err := storage.ReadAll(ctx, s, from, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	d, err := txn.New(ctx, partition, write.NewFileID(0), ".parquet", marker.Create)
	if err == nil {
		_, err = s.Put(ctx, d.Path, bytes.NewReader(data), storage.PutOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	n := int64(len(data))
	return timeline.WriteStat{FileID: d.FileID, Path: d.Path, PartitionPath: partition, PrevCommit: "null", NumWrites: 1, NumInserts: 1, TotalWriteBytes: n, FileSizeInBytes: n}
}

func findings(t *testing.T, s storage.Store) {
	t.Helper()
	r, err := service.Validate(context.Background(), s, service.ValidateOptions{Zone: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		// The copied file says dt=x in the folder dt=w, and its key is there twice: that is the test's doing.
		if f.Severity != service.Info && f.Code != service.PartitionValue && f.Code != service.KeyDuplicate {
			t.Errorf("%v", f)
		}
	}
}

// The table is made by us, filled by Spark, committed to by us, and both die over it: Spark rolls our half-done write back at
// its next upsert, and we roll Spark's back.
func TestTurns(t *testing.T) {
	for _, release := range []string{spark.Hudi0, spark.Hudi1} {
		t.Run(release, func(t *testing.T) {
			ctx := context.Background()
			dir := filepath.Join(t.TempDir(), "turns")
			o := base("turns", config.CopyOnWrite)
			if release == spark.Hudi1 {
				o["hoodie.write.table.version"], o["hoodie.write.auto.upgrade"] = "6", "false"
			}
			store := create(t, dir, o)
			s := spark.Hudi(t, release)
			upsert(t, s, dir, o, []any{1, "a", 1.0, 10, "x"}, []any{2, "b", 1.0, 10, "y"})
			want := []string{"x/1 a", "y/2 b"}
			check := func(when string) {
				t.Helper()
				if got := ids(t, dir); !slices.Equal(got, want) {
					t.Fatalf("%s: %v, want %v", when, got, want)
				}
			}
			check("after Spark's first write into our table")

			txn := begin(t, store, timeline.Commit)
			ours := put(t, store, txn, "dt=w")
			if _, err := txn.Commit(ctx, []timeline.WriteStat{ours}, nil, nil); err != nil {
				t.Fatal(err)
			}
			want = []string{"w/1 a", "x/1 a", "y/2 b"} // Spark takes dt from the folder
			check("after our commit")

			half := begin(t, store, timeline.Commit)
			if err := half.Inflight(ctx, nil); err != nil {
				t.Fatal(err)
			}
			lost := put(t, store, half, "dt=lost")
			if err := os.Remove(filepath.Join(dir, lock.LeaseFile)); err != nil { // it would run out if we were dead
				t.Fatal(err)
			}
			check("with our half-done write")
			upsert(t, s, dir, o, []any{2, "b2", 2.0, 20, "y"})
			want = []string{"w/1 a", "x/1 a", "y/2 b2"}
			check("after Spark rolled our write back")
			if _, err := store.Stat(ctx, lost.Path); !errors.Is(err, storage.ErrNotExist) {
				t.Errorf("Spark left %s: %v", lost.Path, err)
			}
			if left, err := filepath.Glob(filepath.Join(dir, ".hoodie", half.Instant()+"*")); err != nil || len(left) > 0 {
				t.Errorf("Spark left %v, %v", left, err)
			}

			upsert(t, s, dir, o, []any{1, "lost", 3.0, 30, "x"}, []any{3, "lost", 3.0, 30, "z"})
			unpublish(t, dir, ".commit")
			if err := begin(t, store, timeline.Commit).Abort(ctx); err != nil {
				t.Fatal(err)
			}
			check("after we rolled Spark's write back")
			findings(t, store)
			upsert(t, s, dir, o, []any{4, "d", 4.0, 40, "z"})
			want = append(want, "z/4 d")
			check("after Spark's last write")

			newest := instants(t, dir, ".commit")
			undone, err := service.Rollback(ctx, store, service.RollbackOptions{Instant: newest[len(newest)-1], Now: later})
			if err != nil || len(undone) != 1 {
				t.Fatalf("%v, %v", undone, err)
			}
			want = want[:len(want)-1]
			check("after the rollback of Spark's completed write")
			findings(t, store)

			replace := begin(t, store, timeline.ReplaceCommit)
			if _, err := replace.Commit(ctx, nil, nil, map[string][]string{"dt=w": {ours.FileID}}); err != nil {
				t.Fatal(err)
			}
			want = want[1:] // w/1
			check("after our replace commit")
			upsert(t, s, dir, o, []any{5, "e", 5.0, 50, "w"})
			want = append([]string{"w/5 e"}, want...)
			check("after Spark wrote into the partition that we replaced")
			findings(t, store)
		})
	}
}

// The log blocks of a delta commit of Spark's that failed: our rollback blocks hide them from every reader and from compaction.
func TestRollbackOfDeltaCommits(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "deltas")
	o := base("deltas", config.MergeOnRead)
	store := create(t, dir, o)
	s := spark.Hudi(t, spark.Hudi0)
	upsert(t, s, dir, o, []any{1, "a", 1.0, 10, "x"}, []any{2, "b", 1.0, 10, "y"})
	upsert(t, s, dir, o, []any{2, "b2", 2.0, 20, "y"})
	upsert(t, s, dir, o, []any{1, "lost", 3.0, 30, "x"}, []any{2, "lost", 3.0, 30, "y"}, []any{3, "lost", 3.0, 30, "z"})
	unpublish(t, dir, ".deltacommit")
	want := []string{"x/1 a", "y/2 b2"}
	undone, err := service.Rollback(ctx, store, service.RollbackOptions{Now: later})
	if err != nil || len(undone) != 1 {
		t.Fatalf("%v, %v", undone, err)
	}
	if got := ids(t, dir); !slices.Equal(got, want) {
		t.Fatalf("after our rollback: %v, want %v", got, want)
	}
	findings(t, store)
	o["hoodie.compact.inline"], o["hoodie.compact.inline.max.delta.commits"] = "true", "1"
	upsert(t, s, dir, o, []any{4, "d", 4.0, 40, "x"})
	want = []string{"x/1 a", "x/4 d", "y/2 b2"}
	if got := ids(t, dir); !slices.Equal(got, want) {
		t.Fatalf("after Spark's compaction: %v, want %v", got, want)
	}
	findings(t, store)
}

// unpublish takes the newest write's completed file away, as if its writer had died before it.
func unpublish(t *testing.T, dir, suffix string) {
	t.Helper()
	all := instants(t, dir, suffix)
	if err := os.Remove(filepath.Join(dir, ".hoodie", all[len(all)-1]+suffix)); err != nil {
		t.Fatal(err)
	}
}

func instants(t *testing.T, dir, suffix string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, ".hoodie", "*"+suffix))
	if err != nil || len(found) == 0 {
		t.Fatalf("%v, %v", found, err)
	}
	for i, f := range found {
		found[i] = strings.TrimSuffix(filepath.Base(f), suffix)
	}
	slices.Sort(found)
	return found
}

// Both sides take the lock file of FileSystemBasedLockProvider: Spark does not commit while we hold it, and we do not begin
// while Spark's is there.
func TestOneLockFile(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "locked")
	o := base("locked", config.CopyOnWrite)
	store := create(t, dir, o)
	s := spark.Hudi(t, spark.Hudi0)
	for k, v := range map[string]string{
		"hoodie.write.concurrency.mode": "optimistic_concurrency_control", "hoodie.cleaner.policy.failed.writes": "LAZY",
		"hoodie.write.lock.provider":           "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
		"hoodie.write.lock.wait_time_ms":       "200",
		"hoodie.write.lock.num_retries":        "1",
		"hoodie.write.lock.client.num_retries": "1", "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
	} {
		o[k] = v
	}
	upsert(t, s, dir, o, []any{1, "a", 1.0, 10, "x"})
	w := write.Options{Action: timeline.Commit, Operation: "INSERT", Conf: o}
	txn, err := write.Begin(ctx, store, w)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(dir, spark.Write{Columns: columns, Rows: [][]any{{2, "b", 2.0, 20, "y"}}, Options: o}); err == nil || !strings.Contains(err.Error(), "lock") {
		t.Errorf("Spark wrote while we held the lock: %v", err)
	}
	if _, err := txn.Commit(ctx, []timeline.WriteStat{put(t, store, txn, "dt=w")}, nil, nil); err != nil {
		t.Fatal(err)
	}
	upsert(t, s, dir, o, []any{2, "b", 2.0, 20, "y"})
	want := []string{"w/1 a", "x/1 a", "y/2 b"}
	if got := ids(t, dir); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if err := os.WriteFile(filepath.Join(dir, ".hoodie", "lock"), nil, 0o600); err != nil { // as Spark's lock looks on a local disk
		t.Fatal(err)
	}
	if _, err := write.Begin(ctx, store, w); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("we began beside Spark's lock: %v", err)
	}
}

// A table with a metadata table: we remove it and commit; Spark reads what we wrote with and without metadata table, builds it
// again, and reads the same.
func TestMetadataTableIsRemoved(t *testing.T) {
	ctx := context.Background()
	for _, release := range []string{spark.Hudi0, spark.Hudi1} {
		t.Run(release, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "listed")
			o := base("listed", config.CopyOnWrite)
			o["hoodie.metadata.enable"] = "true"
			if release == spark.Hudi1 {
				o["hoodie.write.table.version"], o["hoodie.write.auto.upgrade"] = "6", "false"
			}
			s := spark.Hudi(t, release)
			upsert(t, s, dir, o, []any{1, "a", 1.0, 10, "x"}, []any{2, "b", 1.0, 10, "y"})
			if _, err := os.Stat(filepath.Join(dir, ".hoodie/metadata")); err != nil {
				t.Fatal(err)
			}
			store, err := local.New(dir, local.Options{})
			if err != nil {
				t.Fatal(err)
			}
			w := write.Options{Action: timeline.Commit, Operation: "INSERT"}
			if _, err := write.Begin(ctx, store, w); !errors.Is(err, config.ErrUnsupported) {
				t.Fatalf("with a metadata table: %v", err)
			}
			w.Conf = map[string]string{"hoodie.metadata.enable": "false"}
			txn, err := write.Begin(ctx, store, w)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := txn.Commit(ctx, []timeline.WriteStat{put(t, store, txn, "dt=w")}, nil, nil); err != nil {
				t.Fatal(err)
			}
			want := []string{"w/1 a", "x/1 a", "y/2 b"}
			if got := ids(t, dir); !slices.Equal(got, want) {
				t.Errorf("after our commit: %v, want %v", got, want)
			}
			findings(t, store)
			upsert(t, s, dir, o, []any{3, "c", 1.0, 10, "z"})
			if _, err := os.Stat(filepath.Join(dir, ".hoodie/metadata")); err != nil {
				t.Error(err)
			}
			if got := ids(t, dir); !slices.Equal(got, append(want, "z/3 c")) {
				t.Errorf("after Spark built the metadata table again: %v, want %v", got, append(want, "z/3 c"))
			}
			findings(t, store)
		})
	}
}

// We die in the middle of a rollback, whose plan Spark finds and finishes.
func TestSparkFinishesOurRollback(t *testing.T) {
	ctx := context.Background()
	for _, release := range []string{spark.Hudi0, spark.Hudi1} {
		t.Run(release, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "half")
			o := base("half", config.CopyOnWrite)
			if release == spark.Hudi1 {
				o["hoodie.write.table.version"], o["hoodie.write.auto.upgrade"] = "6", "false"
			}
			store := create(t, dir, o)
			s := spark.Hudi(t, release)
			upsert(t, s, dir, o, []any{1, "a", 1.0, 10, "x"}, []any{2, "b", 1.0, 10, "y"})
			half := begin(t, store, timeline.Commit)
			first, second := put(t, store, half, "dt=lost"), put(t, store, half, "dt=x")
			if err := half.Inflight(ctx, nil); err != nil {
				t.Fatal(err)
			}
			removeLease := func() {
				if err := os.Remove(filepath.Join(dir, lock.LeaseFile)); err != nil {
					t.Fatal(err)
				}
			}
			removeLease()
			dying := fault.New(store, fault.Rule{Op: fault.Delete, Name: ".parquet", At: 1, Do: fault.After, Crash: true})
			if _, err := write.Begin(ctx, dying, write.Options{Action: timeline.Commit, Operation: "INSERT"}); !errors.Is(err, fault.ErrCrashed) {
				t.Fatal(err)
			}
			removeLease()
			if left := instants(t, dir, ".rollback.inflight"); len(left) != 1 {
				t.Fatalf("we were to die over the rollback: %v", left)
			}
			upsert(t, s, dir, o, []any{2, "b2", 2.0, 20, "y"})
			want := []string{"x/1 a", "y/2 b2"}
			if got := ids(t, dir); !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
			if a, b := instants(t, dir, ".rollback.inflight"), instants(t, dir, ".rollback"); !slices.Equal(a, b) {
				t.Errorf("rollbacks begun %v, finished %v", a, b)
			}
			for _, stat := range []timeline.WriteStat{first, second} {
				if _, err := store.Stat(ctx, stat.Path); !errors.Is(err, storage.ErrNotExist) {
					t.Errorf("Spark left %s: %v", stat.Path, err)
				}
			}
			findings(t, store)
		})
	}
}
