package folder_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/engine/enginetest"
	"github.com/sluicelake/sluice/engine/folder"
	"github.com/sluicelake/sluice/engine/worker"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/local"
	"github.com/sluicelake/sluice/storage/mem"
)

// The test's own program is the worker, when it is started as one: work FOLDER INDEX OF.
func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == "work" {
		if err := work(os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func work(dir, index, of string) error {
	store, err := local.New(dir, local.Options{})
	if err != nil {
		return err
	}
	i, err := strconv.Atoi(index)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(of)
	if err != nil {
		return err
	}
	ctx, stop := worker.UntilOrphaned(context.Background())
	defer stop()
	return folder.Work(ctx, store, i, n, 20*time.Second, enginetest.Handlers(), worker.Options{})
}

// job is what a scheduler does for an indexed job: it starts each index, and again when it fails, until the job is over.
type job struct {
	*folder.Folder
	dir string
}

func (j *job) Run(ctx context.Context, tasks []engine.Task, each func(engine.Result) error) error {
	const n = 4
	over, stop := context.WithCancel(ctx)
	defer stop()
	for i := range n {
		go func() {
			for range 6 {
				cmd := exec.CommandContext(over, os.Args[0], "work", j.dir, fmt.Sprint(i), fmt.Sprint(n))
				if cmd.Run() == nil || over.Err() != nil {
					return
				}
			}
		}()
	}
	return j.Folder.Run(ctx, tasks, each)
}

func TestConformance(t *testing.T) {
	enginetest.Run(t, enginetest.Suite{
		New: func(t *testing.T, observe engine.Observer) engine.Engine {
			dir := t.TempDir()
			store, err := local.New(dir, local.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				for info, err := range store.List(context.Background(), "", storage.ListOptions{Recursive: true}) {
					t.Errorf("%s is left, %v", info.Name, err)
				}
			})
			return &job{folder.New(store, folder.Options{Poll: 50 * time.Millisecond, Observe: observe}), dir}
		},
		Kill:   0,
		Shared: func(t *testing.T) string { return t.TempDir() },
	})
}

func TestAFolderIsForOneJob(t *testing.T) {
	store := mem.New("x")
	if _, err := store.Put(t.Context(), "tasks.jsonl", strings.NewReader(""), storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	err := folder.New(store, folder.Options{}).Run(t.Context(), []engine.Task{{ID: "a"}}, func(engine.Result) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "of another job") {
		t.Error(err)
	}
	if _, err := store.Stat(t.Context(), "tasks.jsonl"); err != nil {
		t.Errorf("the other job's list: %v", err)
	}
}
