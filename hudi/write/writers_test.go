package write_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/hudi/write"
	"github.com/sluicelake/sluice/hudi/write/lock"
	"github.com/sluicelake/sluice/hudi/write/marker"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/local"
)

// The test's binary runs again as a writer when this variable names a table.
const asWriter = "SLUICE_TEST_WRITER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asWriter); dir != "" {
		if err := writer(dir, os.Getenv("SLUICE_TEST_NAME"), os.Getenv("SLUICE_TEST_DIE") != ""); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const commitsEach = 3

// writer puts files of its own name into a table, one in each of some commits. Or it dies in the middle of the first.
func writer(dir, name string, die bool) error {
	ctx := context.Background()
	s, err := local.New(dir, local.Options{})
	if err != nil {
		return err
	}
	for i := range commitsEach {
		o := write.Options{Action: timeline.Commit, Operation: "INSERT", Lock: &lock.Options{Wait: time.Minute, Who: name, Validity: 2 * time.Second}}
		t, err := write.Begin(ctx, s, o)
		if err != nil {
			return err
		}
		firsts, err := firstFiles(ctx, s)
		if err != nil {
			return err
		}
		d, err := t.New(ctx, "dt="+name+strconv.Itoa(i), write.NewFileID(0), ".parquet", marker.Create)
		if err != nil {
			return err
		}
		data, err := storage.ReadAll(ctx, s, firsts["dt=x"].Name, 1<<30)
		if err != nil {
			return err
		}
		if _, err := s.Put(ctx, d.Path, bytes.NewReader(data), storage.PutOptions{}); err != nil {
			return err
		}
		if die {
			p, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = p.Kill()
			}
			return errors.Join(err, errors.New("it is still alive"))
		}
		n := int64(len(data))
		stat := timeline.WriteStat{FileID: d.FileID, Path: d.Path, PartitionPath: d.Partition, PrevCommit: "null", NumWrites: 1, NumInserts: 1, TotalWriteBytes: n, FileSizeInBytes: n}
		if _, err := t.Commit(ctx, []timeline.WriteStat{stat}, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// Writers that start at once wait for each other; no write is lost. In one process, and in several, one of which is killed.
func TestWritersAtOnce(t *testing.T) {
	for name, start := range map[string]func(dir, name string) error{
		"goroutines": func(dir, name string) error { return writer(dir, name, false) },
		"processes": func(dir, name string) error {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), asWriter+"="+dir, "SLUICE_TEST_NAME="+name)
			if name == "dead" {
				cmd.Env = append(cmd.Env, "SLUICE_TEST_DIE=1")
			}
			out, err := cmd.CombinedOutput()
			if name == "dead" && err != nil && cmd.ProcessState.ExitCode() == -1 {
				return nil // by a signal, as it was to
			}
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := fixture.Spark(t, source)
			before := len(mustRows(t, open(t, dir)))
			names := []string{"anna", "ben", "carl", "dora"}
			dead := 0
			if name == "processes" {
				names, dead = append(names, "dead"), 1
			}
			var wg sync.WaitGroup
			for _, n := range names {
				wg.Go(func() {
					if err := start(dir, n); err != nil {
						t.Errorf("%s: %v", n, err)
					}
				})
			}
			wg.Wait()
			s := open(t, dir)
			txn, err := write.Begin(context.Background(), s, write.Options{Action: timeline.Commit, Operation: "INSERT"}) // removes what the dead one left
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(txn.Abort(context.Background()), tidy(s)); err != nil {
				t.Error(err)
			}
			got, want := len(mustRows(t, s)), before+commitsEach*(len(names)-dead)
			if got != want {
				t.Errorf("%d rows, want %d", got, want)
			}
			if left, err := filepath.Glob(filepath.Join(dir, "dt=dead*", "*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}
