package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/internal/fixture"
)

// The program of the tests is the worker of --engine process, when it is started as one, and a streamer that can be killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "task" || os.Args[1] == "streamer") {
		main()
	}
	os.Exit(m.Run())
}

// lines are the rows of an export without the names of its files.
func lines(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "part-*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var all []string
	for _, f := range files { // by number
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, filepath.Base(f)[:10], string(text))
	}
	return strings.Join(all, "\n")
}

func TestAnExportByChildProcesses(t *testing.T) {
	source, _ := fixture.Spark(t, "mor_basic_1.2.0")
	flags := []string{"export", "--source-base-path", source, "--output-format", "csv", "--query-type", "snapshot", "--parallelism", "4"}
	here, there := filepath.Join(t.TempDir(), "here"), filepath.Join(t.TempDir(), "there")
	if code, _, errs := sluice(t, append(flags, "--target-output-path", here)...); code != exitDone {
		t.Fatal(errs)
	}
	if code, _, errs := sluice(t, append(flags, "--target-output-path", there, "--engine", "process")...); code != exitDone {
		t.Fatal(errs)
	}
	if got, want := lines(t, there), lines(t, here); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Workers that somebody else starts: each takes its share from a folder, and a copy's timeline needs no second round of them.
func TestACopyByWorkersOfAFolder(t *testing.T) {
	source, _ := fixture.Spark(t, "mor_basic_1.2.0")
	exchange, target := t.TempDir(), filepath.Join(t.TempDir(), "out")
	codes := make(chan int, 2)
	for index := range 2 {
		go func() {
			var o, e strings.Builder
			codes <- run(t.Context(), []string{"task", "--exchange", exchange, "--index", strconv.Itoa(index), "--of", "2"},
				console{in: strings.NewReader(""), out: &o, err: &e})
		}()
	}
	code, _, errs := sluice(t, "copy", "--base-path", source, "--output-path", target, "--engine", "folder", "--exchange", exchange, "--shared-files")
	if code != exitDone {
		t.Fatal(errs)
	}
	for range 2 {
		if code := <-codes; code != exitDone {
			t.Errorf("a worker ended with %d", code)
		}
	}
	_, want, _ := sluice(t, "read", source, "-o", "json", "--query-type", "read_optimized")
	if code, got, errs := sluice(t, "read", target, "-o", "json"); got != want || got == "" {
		t.Errorf("%d\n%s\nwant\n%s\n%s", code, got, want, errs)
	}
}

// What can't work is refused before anything is started or written.
func TestEnginesThatCanNotWork(t *testing.T) {
	source, _ := fixture.Spark(t, "cow_basic_0.15.0")
	t.Setenv("SPARK_HOME", t.TempDir()) // nothing is in it
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"--engine spark --master spark://h:7077", exitRefused, "is on this machine, and the executors of spark://h:7077 may be on others"},
		{"--engine spark -- --master yarn", exitRefused, "the executors of yarn may be"},
		{"--engine spark", exitRefused, "the executors of the cluster that spark-defaults.conf names"},
		{"--engine spark --master yarn --source-base-path s3://b/t", exitRefused, "TARGET is on this machine"},
		{"--engine spark --master yarn --target-output-path mem:x --shared-files --source-base-path s3://b/t", exitRefused, "mem:x is on this machine"},
		{"--engine spark --master yarn -- --deploy-mode cluster", exitUsage, "has to run here"},
		{"--engine spark --master yarn -- --master local", exitUsage, "two masters"},
		{"--engine spark --master local[2]", exitFailed, "spark-submit can't be started"},
		{"--engine spark --master spark://h:7077 --shared-files", exitFailed, "spark-submit can't be started"},
		{"--engine flink", exitUsage, "use local, process, spark or folder"},
		{"--master yarn", exitUsage, "--master is for --engine spark"},
		{"--worker x", exitUsage, "--worker is for --engine process and --engine spark"},
		{"--engine folder", exitUsage, "--engine folder needs --exchange"},
		{"--engine folder --exchange s3://b/x", exitRefused, "the workers of s3://b/x may be on others"},
		{"--engine folder --exchange /x --source-base-path s3://b/t --target-output-path s3://b/o", exitRefused, "/x is on this machine"},
		{"-- --conf a=b", exitUsage, "only --engine spark starts"},
		{"--engine spark --master yarn --worker /none", exitUsage, "/none, is no file that can be executed"},
	} {
		target := filepath.Join(t.TempDir(), "out")
		args := append([]string{"export", "--output-format", "json"}, strings.Fields(c.args)...)
		for flag, value := range map[string]string{"--source-base-path": source, "--target-output-path": target} {
			if !strings.Contains(c.args, flag) {
				args = append([]string{args[0], flag, value}, args[1:]...)
			}
		}
		code, _, errs := sluice(t, args...)
		if says := strings.ReplaceAll(c.says, "TARGET", target); code != c.code || !strings.Contains(errs, says) {
			t.Errorf("%s: exit code %d\n%s", c.args, code, errs)
		}
		if _, err := os.Stat(target); !os.IsNotExist(err) {
			t.Errorf("%s: the target is there", c.args)
		}
	}
}

// A worker gets lines and gives lines; nobody else writes to its standard output.
func TestTaskVerb(t *testing.T) {
	task := func(in string, args ...string) (int, string, string) {
		var o, e strings.Builder
		code := run(t.Context(), append([]string{"task"}, args...), console{in: strings.NewReader(in), out: &o, err: &e})
		return code, o.String(), e.String()
	}
	unknown := `{"id":"1","kind":"of tomorrow","cost":0,"spec":null}`
	if code, out, errs := task(unknown); code != exitDone || !strings.HasPrefix(out, `{"id":"1","failure":{"message":"refused: no handler`) || !strings.Contains(out, `"refused":true`) || !strings.Contains(errs, "task failed") {
		t.Errorf("%d, %s, %s", code, out, errs)
	}
	// What fails may work the next time, as far as the worker knows.
	away := `{"id":"1","kind":"export.rows","cost":0,"spec":{"target":"/nonexistent/\u0000","order":"x","spec":{}}}`
	if code, out, errs := task(away); code != exitFailed || out != "" || !strings.Contains(errs, "task 1") {
		t.Errorf("%d, %s, %s", code, out, errs)
	}
	if code, out, _ := task(away, "--failures", "report"); code != exitDone || !strings.Contains(out, `"failure"`) || strings.Contains(out, `"refused"`) {
		t.Errorf("%d, %s", code, out)
	}
	if code, out, _ := task("nonsense"); code != exitFailed || out != "" {
		t.Errorf("%d, %s", code, out)
	}
	if code, _, _ := task("", "--failures", "never"); code != exitUsage {
		t.Errorf("%d", code)
	}
}
