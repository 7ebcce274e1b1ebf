package write_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/hudi/write"
	"github.com/sluicelake/sluice/hudi/write/lock"
	"github.com/sluicelake/sluice/hudi/write/marker"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/mem"
	"github.com/sluicelake/sluice/storage/s3/s3test"
)

// load puts a table of testdata/spark into memory.
func load(t testing.TB, name string) *mem.Store {
	t.Helper()
	dir, _ := fixture.Spark(t, name)
	s := mem.New(name)
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err == nil {
			_, err = s.Put(context.Background(), filepath.ToSlash(rel), bytes.NewReader(data), storage.PutOptions{})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func clone(t testing.TB, s storage.Store) *mem.Store {
	t.Helper()
	ctx := context.Background()
	out := mem.New(strings.TrimPrefix(s.URL(), "mem://"))
	for _, name := range names(t, s) {
		data, err := storage.ReadAll(ctx, s, name, 1<<30)
		if err == nil {
			_, err = out.Put(ctx, name, bytes.NewReader(data), storage.PutOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func names(t testing.TB, s storage.Store) (out []string) {
	t.Helper()
	for info, err := range s.List(context.Background(), "", storage.ListOptions{Recursive: true}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, info.Name)
	}
	return out
}

// rows reads a table through the library's front door: "partition key name" of each row, sorted.
func rows(s storage.Store) ([]string, error) {
	ctx := context.Background()
	t, err := hudi.Open(ctx, s.URL(), hudi.Options{Store: s})
	if err != nil {
		return nil, err
	}
	snap, err := t.Snapshot(ctx, hudi.Query{})
	if err != nil {
		return nil, err
	}
	var out []string
	for batch, err := range snap.Scan(ctx, hudi.Scan{}) {
		if err != nil {
			return nil, err
		}
		column := func(name string) *array.String {
			at := batch.Schema().FieldIndices(name)
			return batch.Column(at[0]).(*array.String)
		}
		partition, key, value := column("_hoodie_partition_path"), column("_hoodie_record_key"), column("name")
		for i := range int(batch.NumRows()) {
			out = append(out, partition.Value(i)+" "+key.Value(i)+" "+value.Value(i))
		}
		batch.Release()
	}
	slices.Sort(out)
	return out, nil
}

func mustRows(t testing.TB, s storage.Store) []string {
	t.Helper()
	r, err := rows(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const source = "cow_no_metadata_table_0.15.0"

// later is a clock on which every lease of now has run out.
func later() time.Time { return time.Now().Add(10 * time.Minute) }

func options() write.Options {
	return write.Options{Action: timeline.Commit, Operation: "UPSERT", Lock: &lock.Options{Wait: -1, Now: later}, Now: later}
}

// change is a write of two files: it takes the file group of partition dt=y back to its first base file, and copies the file
// of dt=x into a new partition. The bytes are those of Apache Hudi.
func change(ctx context.Context, s storage.Store, o write.Options) (*timeline.CommitMetadata, error) {
	t, err := write.Begin(ctx, s, o)
	if err != nil {
		return nil, err
	}
	meta, err := fill(ctx, s, t)
	if err != nil && !errors.Is(err, write.ErrUncertain) {
		err = errors.Join(err, t.Abort(ctx))
	}
	return meta, err
}

func fill(ctx context.Context, s storage.Store, t *write.Txn) (*timeline.CommitMetadata, error) {
	firsts, err := firstFiles(ctx, s)
	if err != nil {
		return nil, err
	}
	y, x := firsts["dt=y"], firsts["dt=x"]
	profile := &timeline.CommitMetadata{PartitionToWriteStats: map[string][]timeline.WriteStat{
		"dt=y": {{FileID: y.FileID, PrevCommit: y.Instant, NumUpdateWrites: 1}}, "dt=w": {{PrevCommit: "null", NumInserts: 1}},
	}}
	if err := t.Inflight(ctx, profile); err != nil {
		return nil, err
	}
	var stats []timeline.WriteStat
	for _, f := range []struct {
		from          filegroup.BaseFile
		partition, id string
		kind          marker.Kind
	}{{y, "dt=y", y.FileID, marker.Merge}, {x, "dt=w", write.NewFileID(0), marker.Create}} {
		d, err := t.New(ctx, f.partition, f.id, ".parquet", f.kind)
		if err != nil {
			return nil, err
		}
		data, err := storage.ReadAll(ctx, s, f.from.Name, 1<<30)
		if err != nil {
			return nil, err
		}
		info, err := s.Put(ctx, d.Path, bytes.NewReader(data), storage.PutOptions{Size: int64(len(data))})
		if err != nil {
			return nil, err
		}
		stats = append(stats, timeline.WriteStat{FileID: f.id, Path: d.Path, PartitionPath: f.partition, PrevCommit: f.from.Instant,
			NumWrites: 1, NumUpdateWrites: 1, TotalWriteBytes: info.Size, FileSizeInBytes: info.Size})
	}
	stats[1].PrevCommit, stats[1].NumUpdateWrites, stats[1].NumInserts = "null", 0, 1
	return t.Commit(ctx, stats, nil, nil)
}

// firstFiles are the oldest base files by partition.
func firstFiles(ctx context.Context, s storage.Store) (map[string]filegroup.BaseFile, error) {
	out := map[string]filegroup.BaseFile{}
	for _, dir := range []string{"dt=x", "dt=y"} {
		for info, err := range s.List(ctx, dir, storage.ListOptions{}) {
			if err != nil {
				return nil, err
			}
			if b, ok := filegroup.ParseBaseName(path.Base(info.Name)); ok {
				if old, ok := out[dir]; !ok || b.Instant < old.Instant {
					out[dir] = filegroup.BaseFile{BaseName: b, Name: info.Name, Size: info.Size}
				}
			}
		}
	}
	return out, nil
}

// tidy reports what a table should not hold when no write is under way.
func tidy(s storage.Store) error {
	ctx := context.Background()
	cfg, err := config.Load(ctx, s)
	if err != nil {
		return err
	}
	tl, err := timeline.Load(ctx, s, cfg)
	if err != nil {
		return err
	}
	for _, in := range tl.Pending().Instants() {
		err = errors.Join(err, fmt.Errorf("%s %s is %s", in.Action, in.Time, in.State))
	}
	vis := tl.Visibility()
	partitions := map[string]int{}
	for info, listErr := range s.List(ctx, "", storage.ListOptions{Recursive: true}) {
		if listErr != nil {
			return listErr
		}
		for _, folder := range []string{".hoodie/.temp/", ".hoodie/.locks/", ".hoodie/.heartbeat/"} {
			if strings.HasPrefix(info.Name, folder) {
				err = errors.Join(err, fmt.Errorf("left behind: %s", info.Name))
			}
		}
		if b, ok := filegroup.ParseBaseName(path.Base(info.Name)); ok && !strings.HasPrefix(info.Name, ".hoodie/") {
			partitions[path.Dir(info.Name)]++
			if !vis.IsCommitted(b.Instant) {
				err = errors.Join(err, fmt.Errorf("left behind: %s", info.Name))
			}
		}
		if path.Base(info.Name) == ".hoodie_partition_metadata" {
			partitions[path.Dir(info.Name)] += 0
		}
	}
	for p, n := range partitions {
		if n == 0 {
			err = errors.Join(err, fmt.Errorf("left behind: the marker of the empty partition %s", p))
		}
	}
	return err
}

func TestCommit(t *testing.T) {
	ctx := context.Background()
	s := load(t, source)
	before := mustRows(t, s)
	var steps []write.Step
	o := options()
	o.Event = func(e write.Event) { steps = append(steps, e.Step) }
	meta, err := change(ctx, s, o)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"dt=x 1 a", "dt=x 1 a", "dt=y 2 b", "dt=y 3 c", "dt=z 4 d"} // the copy in dt=w still says dt=x
	if got := mustRows(t, s); !slices.Equal(got, want) || slices.Equal(got, before) {
		t.Errorf("rows %v, want %v, before %v", got, want, before)
	}
	if err := tidy(s); err != nil {
		t.Error(err)
	}
	if want := []write.Step{write.Locked, write.Requested, write.Started, write.Committed}; !slices.Equal(steps, want) {
		t.Errorf("steps %v, want %v", steps, want)
	}
	// The schema is the one of the commit before, and everything else reads back.
	cfg, _ := config.Load(ctx, s)
	tl, _ := timeline.Load(ctx, s, cfg)
	last, _ := tl.Last()
	back, err := timeline.ReadCommit(ctx, s, last)
	if err != nil || back.OperationType != "UPSERT" || len(back.PartitionToWriteStats) != 2 || back.Schema() != meta.Schema() || !strings.Contains(back.Schema(), `"price"`) {
		t.Errorf("%+v, %v", back, err)
	}
	if text, err := storage.ReadAll(ctx, s, "dt=w/.hoodie_partition_metadata", 1000); err != nil || !strings.Contains(string(text), "commitTime="+last.Time+"\npartitionDepth=1\n") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestAbort(t *testing.T) {
	ctx := context.Background()
	s := load(t, source)
	before, files := mustRows(t, s), names(t, s)
	txn, err := write.Begin(ctx, s, options())
	if err != nil {
		t.Fatal(err)
	}
	d, err := txn.New(ctx, "dt=new", write.NewFileID(0), ".parquet", marker.Create)
	if err == nil {
		_, err = s.Put(ctx, d.Path, strings.NewReader("half"), storage.PutOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := txn.Abort(ctx); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tidy(s), same(before, mustRows(t, s))); err != nil {
		t.Error(err)
	}
	if left := len(names(t, s)) - len(files); left != 3 { // the rollback
		t.Errorf("%d files more than before", left)
	}
	if err := txn.Abort(ctx); !errors.Is(err, write.ErrDone) {
		t.Error(err)
	}
}

func same(want, got []string) error {
	if !slices.Equal(want, got) {
		return fmt.Errorf("rows %v, want %v", got, want)
	}
	return nil
}

// A task that ran twice left a file that no stat names.
func TestCommitDeletesFilesOfRepeatedTasks(t *testing.T) {
	ctx := context.Background()
	s := load(t, source)
	txn, err := write.Begin(ctx, s, options())
	if err != nil {
		t.Fatal(err)
	}
	lost, err := txn.New(ctx, "dt=x", write.NewFileID(0), ".parquet", marker.Create)
	if err != nil {
		t.Fatal(err)
	}
	again, err := write.NewFiles(s, txn.Instant()).New(ctx, "dt=x", lost.FileID, ".parquet", marker.Create) // in another process
	if err != nil || again.Path == lost.Path {
		t.Fatalf("%v: two attempts have the name %s", err, lost.Path)
	}
	if _, err := s.Put(ctx, lost.Path, strings.NewReader("once"), storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := fill(ctx, s, txn); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stat(ctx, lost.Path); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("%s is still there: %v", lost.Path, err)
	}
}

func TestCommitRefusesStatsOfMissingFiles(t *testing.T) {
	ctx := context.Background()
	s := load(t, source)
	before := mustRows(t, s)
	txn, err := write.Begin(ctx, s, options())
	if err != nil {
		t.Fatal(err)
	}
	_, err = txn.Commit(ctx, []timeline.WriteStat{{FileID: "f-0", Path: "dt=x/f-0_0-0-0_" + txn.Instant() + ".parquet", PartitionPath: "dt=x", FileSizeInBytes: 1}}, nil, nil)
	if !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if err := errors.Join(txn.Abort(ctx), tidy(s), same(before, mustRows(t, s))); err != nil {
		t.Error(err)
	}
}

// A writer that does not look at our lock commits while we write: our write must not bury its rows.
func TestCommitSeesOtherWriters(t *testing.T) {
	ctx := context.Background()
	s := load(t, source)
	txn, err := write.Begin(ctx, s, options())
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string) {
		if _, err := s.Put(ctx, ".hoodie/"+name, strings.NewReader(`{"partitionToWriteStats":{},"extraMetadata":{}}`), storage.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	put("20990101000000000.commit.requested")
	put("20990101000000000.inflight")
	put("20990101000000000.commit")
	if _, err := fill(ctx, s, txn); !errors.Is(err, write.ErrConflict) {
		t.Fatalf("%v", err)
	}
	if err := errors.Join(txn.Abort(ctx), tidy(s)); err != nil {
		t.Error(err)
	}
}

// Apache Hudi's writers show by a heartbeat that they are alive: their pending writes are not ours to roll back.
func TestBeginLeavesLivingWritersAlone(t *testing.T) {
	ctx := context.Background()
	s := load(t, "failed_write_cow_0.15.0")
	o := options()
	o.Now = nil
	o.Conf = map[string]string{"hoodie.metadata.enable": "false"}
	if _, err := s.Put(ctx, ".hoodie/.heartbeat/20261129233906482", strings.NewReader(""), storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	files := names(t, s)
	if _, err := write.Begin(ctx, s, o); !errors.Is(err, write.ErrBusy) {
		t.Errorf("%v", err)
	}
	if got := names(t, s); !slices.Equal(got, files) {
		t.Errorf("refused, and the table holds %v", got)
	}
	o.Now = later
	txn, err := write.Begin(ctx, s, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(txn.Abort(ctx), tidy(s)); err != nil {
		t.Error(err)
	}
}

func TestBeginRefuses(t *testing.T) {
	ctx := context.Background()
	for name, change := range map[string]func(*write.Options){
		"cow_basic_1.2.0":                       func(*write.Options) {}, // version 9
		"cow_table_version_8_1.2.0":             func(*write.Options) {},
		"old_cow_0.9.0":                         func(*write.Options) {}, // version 2
		"cow_basic_0.15.0":                      func(*write.Options) {}, // a metadata table
		"cow_partition_metafile_parquet_0.15.0": func(o *write.Options) { o.Conf = map[string]string{"hoodie.metadata.enable": "false"} },
		source: func(o *write.Options) {
			o.Lock, o.Conf = nil, map[string]string{"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"}
		},
	} {
		s := load(t, name)
		files := names(t, s)
		o := options()
		change(&o)
		_, err := write.Begin(ctx, s, o)
		var refused *config.UnsupportedError
		if !errors.As(err, &refused) || refused.Hint == "" {
			t.Errorf("%s: %v, want it refused", name, err)
		}
		if got := names(t, s); !slices.Equal(got, files) {
			t.Errorf("%s: refused, and something was written", name)
		}
	}
}

// A replace commit puts file groups out of sight; its plan is an empty one, as that of an overwrite of Apache Hudi.
func TestReplaceCommit(t *testing.T) {
	ctx := context.Background()
	s := load(t, source)
	o := options()
	o.Action, o.Operation = timeline.ReplaceCommit, "DELETE_PARTITION"
	txn, err := write.Begin(ctx, s, o)
	if err != nil {
		t.Fatal(err)
	}
	firsts, err := firstFiles(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := txn.Commit(ctx, nil, nil, nil); err == nil {
		t.Error("a replace commit that does not say what it replaces was taken")
	}
	if _, err := txn.Commit(ctx, nil, nil, map[string][]string{"dt=y": {firsts["dt=y"].FileID}}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tidy(s), same([]string{"dt=x 1 a", "dt=z 4 d"}, mustRows(t, s))); err != nil {
		t.Error(err)
	}
}

// The same write on an S3 server: no folders, conditional requests, lists that are one flat key space.
func TestCommitOnS3(t *testing.T) {
	ctx := context.Background()
	from := load(t, source)
	s := s3test.Start(t).Store(t)
	for _, name := range names(t, from) {
		data, err := storage.ReadAll(ctx, from, name, 1<<30)
		if err == nil {
			_, err = s.Put(ctx, name, bytes.NewReader(data), storage.PutOptions{Size: int64(len(data))})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	failed, err := write.Begin(ctx, s, soundOptions())
	if err == nil {
		_, err = failed.New(ctx, "dt=lost", write.NewFileID(0), ".parquet", marker.Create)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := write.Begin(ctx, s, soundOptions()); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("two writers at once: %v", err)
	}
	if _, err := change(ctx, s, options()); err != nil { // later: the first one's lease has run out
		t.Fatal(err)
	}
	if err := errors.Join(tidy(s), same([]string{"dt=x 1 a", "dt=x 1 a", "dt=y 2 b", "dt=y 3 c", "dt=z 4 d"}, mustRows(t, s))); err != nil {
		t.Error(err)
	}
	if _, err := failed.Commit(ctx, nil, nil, nil); !errors.Is(err, write.ErrConflict) {
		t.Errorf("the first writer, whose instant is gone, commits: %v", err)
	}
	if err := errors.Join(failed.Abort(ctx), tidy(s)); err != nil {
		t.Error(err)
	}
}

// A writer whose instant was rolled back meanwhile, and nothing else, does not commit either.
func TestCommitOfAWriteThatWasRolledBack(t *testing.T) {
	ctx := context.Background()
	s := load(t, source)
	before := mustRows(t, s)
	slow, err := write.Begin(ctx, s, soundOptions())
	if err != nil {
		t.Fatal(err)
	}
	next, err := write.Begin(ctx, s, options())
	if err == nil {
		err = next.Abort(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fill(ctx, s, slow); !errors.Is(err, write.ErrConflict) {
		t.Errorf("%v", err)
	}
	if err := errors.Join(slow.Abort(ctx), tidy(s), same(before, mustRows(t, s))); err != nil {
		t.Error(err)
	}
}
