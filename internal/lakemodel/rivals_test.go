package lakemodel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/hudi/operation"
	"github.com/sluicelake/sluice/hudi/service"
	"github.com/sluicelake/sluice/hudi/write"
	"github.com/sluicelake/sluice/hudi/write/lock"
	"github.com/sluicelake/sluice/internal/lakemodel"
	"github.com/sluicelake/sluice/interop/rows"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/open"
	"github.com/sluicelake/sluice/storage/s3"
	"github.com/sluicelake/sluice/storage/s3/s3test"
)

const rivalVariable = "SLUICE_TEST_RIVAL"

// TestMain makes this test binary a writer when it is started as one.
func TestMain(m *testing.M) {
	if task := os.Getenv(rivalVariable); task != "" {
		if err := rival(context.Background(), task); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// task of a rival, by its environment.
type task struct {
	URL     string
	S3      server
	Number  int
	Writes  int
	Patient bool
	Start   time.Time
}

// server is where an S3 server listens, and its keys, which are for this test only.
type server struct{ Endpoint, Region, AccessKey, SecretKey string }

func (s server) options() s3.Options {
	return s3.Options{Endpoint: s.Endpoint, Region: s.Region, AccessKey: s.AccessKey, SecretKey: s.SecretKey}
}

// outcome of one write of a rival, by its standard output.
type outcome struct {
	Number, Write int
	Instant       string
	Refused       bool
	Message       string
}

// rival writes to a table as a process of its own: rows of its own keys, and one that all rivals change.
func rival(ctx context.Context, text string) error {
	var job task
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		return err
	}
	store, err := open.Store(ctx, job.URL, open.Options{S3: job.S3.options()})
	if err != nil {
		return err
	}
	time.Sleep(time.Until(job.Start))
	out := json.NewEncoder(os.Stdout)
	for n := range job.Writes {
		s := rivalStep(job.Number, n)
		o := operation.Options{Conf: rivalConfig().Options()}
		if !job.Patient {
			o.Lock = &lock.Options{Wait: -1}
		}
		in := operation.Rows{Schema: lakemodel.Arrow(s.Columns), Batches: s.Batches(memory.DefaultAllocator, 10)}
		result, err := operation.Run(ctx, store, operation.Upsert, in, o)
		said := outcome{Number: job.Number, Write: n}
		switch {
		case errors.Is(err, lock.ErrHeld), errors.Is(err, write.ErrConflict):
			said.Refused, said.Message = true, err.Error()
		case err != nil:
			return fmt.Errorf("write %d: %w", n, err)
		default:
			said.Instant = result.Instant
		}
		if err := out.Encode(said); err != nil {
			return err
		}
	}
	return nil
}

func rivalConfig() *lakemodel.Config {
	return &lakemodel.Config{Name: "rivals", Keygen: lakemodel.Simple, Keys: []string{"id"}, Partitions: []string{"region"}, Payload: lakemodel.OverwriteWithLatest,
		Ordering: "ts", OrderingType: "long", Index: "BLOOM", Files: map[string]string{"hoodie.index.bloom.num_entries": "100"}}
}

func rivalStep(number, n int) lakemodel.Step {
	var text, long arrow.DataType = arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64
	s := lakemodel.Step{Operation: "upsert", Combine: true,
		Columns: []lakemodel.Column{{Name: "id", Type: text}, {Name: "region", Type: text}, {Name: "ts", Type: long}, {Name: "who", Type: text}}}
	add := func(id, region string) {
		s.Rows = append(s.Rows, rows.Row{"id": id, "region": region, "ts": json.Number("1"), "who": fmt.Sprintf("%d.%d", number, n)})
	}
	for i := range 5 {
		add(fmt.Sprintf("w%d-%d-%d", number, n, i), "eu")
		add(fmt.Sprintf("w%d-%d", number, i), "us")
	}
	add("shared", "eu")
	return s
}

// Processes that write to one table at once, on a folder and on S3. Those that wait all get their turn; those that do not
// wait are refused with a message, and leave nothing. What was reported as written is there, and nothing else.
func TestRivals(t *testing.T) {
	for _, where := range []string{"folder", "S3"} {
		t.Run(where, func(t *testing.T) {
			place := func(t *testing.T) task { return task{URL: filepath.Join(t.TempDir(), "rivals")} }
			if where == "S3" {
				gateway := s3test.Start(t)
				place = func(t *testing.T) task {
					return task{URL: "s3://" + gateway.Bucket(t) + "/rivals", S3: server{gateway.Endpoint, gateway.Region, gateway.AccessKey, gateway.SecretKey}}
				}
			}
			for _, processes := range []int{2, 6} {
				for _, patient := range []bool{true, false} {
					t.Run(fmt.Sprintf("%d, patient %v", processes, patient), func(t *testing.T) {
						job := place(t)
						job.Patient, job.Writes = patient, 3
						rivals(t, job, processes)
					})
				}
			}
		})
	}
}

func rivals(t *testing.T, job task, processes int) {
	store, err := open.Store(t.Context(), job.URL, open.Options{S3: job.S3.options()})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(job.URL, ":") {
		if err := os.Mkdir(job.URL, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	spec, err := write.SpecFromOptions(rivalConfig().Options())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := write.CreateTable(t.Context(), store, spec); err != nil {
		t.Fatal(err)
	}
	job.Start = time.Now().Add(300 * time.Millisecond)
	var said []outcome
	var all sync.WaitGroup
	var mu sync.Mutex
	for number := range processes {
		all.Go(func() {
			mine := job
			mine.Number = number
			found := start(t, mine)
			mu.Lock()
			defer mu.Unlock()
			said = append(said, found...)
		})
	}
	all.Wait()
	if len(said) != processes*job.Writes {
		t.Fatalf("%d of %d writes were told of", len(said), processes*job.Writes)
	}
	checkRivals(t, store, said, job.Patient)
}

// start runs a rival to its end.
func start(t *testing.T, job task) []outcome {
	program, err := os.Executable()
	if err != nil {
		t.Error(err)
		return nil
	}
	text, err := json.Marshal(job) //nolint:staticcheck // the options' HTTP client is not set, and so is null
	if err != nil {
		t.Error(err)
		return nil
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), rivalVariable+"="+string(text))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Errorf("writer %d: %v\n%s", job.Number, err, &errs)
		return nil
	}
	var found []outcome
	for d := json.NewDecoder(&out); d.More(); {
		var o outcome
		if err := d.Decode(&o); err != nil {
			t.Errorf("writer %d: %v", job.Number, err)
			return nil
		}
		found = append(found, o)
	}
	return found
}

func checkRivals(t *testing.T, store storage.Store, said []outcome, patient bool) {
	table := lakemodel.NewTable(rivalConfig())
	slices.SortFunc(said, func(a, b outcome) int { return strings.Compare(a.Instant, b.Instant) })
	var instants []string
	for _, o := range said {
		switch {
		case !o.Refused:
			if slices.Contains(instants, o.Instant) {
				t.Errorf("two writes have the instant %s", o.Instant)
			}
			instants = append(instants, o.Instant)
			table.Apply(rivalStep(o.Number, o.Write))
		case patient:
			t.Errorf("writer %d was refused: %s", o.Number, o.Message)
		case !strings.Contains(o.Message, "writer"):
			t.Errorf("writer %d was refused without a word of another writer: %s", o.Number, o.Message)
		}
	}
	t.Logf("%d of %d writes were committed", len(instants), len(said))
	if len(instants) == 0 {
		t.Fatal("nobody wrote")
	}
	h, err := hudi.Open(t.Context(), store.URL(), hudi.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.Snapshot(t.Context(), hudi.Query{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := lakemodel.Collect(s.Schema(), s.Scan(t.Context(), hudi.Scan{}))
	if err != nil {
		t.Fatal(err)
	}
	want, err := table.Set()
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range table.Rows {
		want.Rows[i]["_hoodie_commit_time"] = instants[r.Step]
	}
	if d := rows.Diff(want, rows.Set{Rows: got}, rows.Options{Ignore: []string{"_hoodie_commit_seqno", "_hoodie_file_name"}}); d != "" {
		t.Error(d)
	}
	report, err := service.Validate(t.Context(), store, service.ValidateOptions{Zone: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		t.Errorf("validate: %v", f)
	}
}
