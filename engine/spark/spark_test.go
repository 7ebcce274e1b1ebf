package spark

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/engine/worker"
)

func TestTheMasterIsFoundAmongTheFlagsOfSparkSubmit(t *testing.T) {
	for _, c := range []struct{ given, args, master, rest, fails string }{
		{"yarn", "--queue q --conf spark.executor.cores=2", "yarn", "--queue q --conf spark.executor.cores=2", ""},
		{"", "--queue q --master yarn --num-executors 3", "yarn", "--queue q --num-executors 3", ""},
		{"", "--master=k8s://https://h:6443 --conf a=b", "k8s://https://h:6443", "--conf a=b", ""},
		{"", "", "", "", ""},
		{"yarn", "--deploy-mode client", "yarn", "--deploy-mode client", ""},
		{"yarn", "--verbose --supervise --conf a=b", "yarn", "--verbose --supervise --conf a=b", ""},
		{"yarn", "--master local", "", "", "two masters, yarn and local"},
		{"yarn", "--deploy-mode cluster", "", "", "has to run here"},
		{"yarn", "--deploy-mode=cluster", "", "", "has to run here"},
		{"yarn", "--conf spark.submit.deployMode=cluster", "", "", "has to run here"},
		{"yarn", "job.py", "", "", `"job.py" is no flag`},
		{"yarn", "--conf=a=b job.py", "", "", `"job.py" is no flag`},
	} {
		got, rest, err := master(c.given, strings.Fields(c.args))
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s, %s: %v", c.given, c.args, err)
			}
			continue
		}
		if got != c.master || strings.Join(rest, " ") != c.rest || err != nil {
			t.Errorf("%s, %s: %q, %q, %v", c.given, c.args, got, rest, err)
		}
	}
}

func TestWhichMastersAreThisMachine(t *testing.T) {
	for master, want := range map[string]bool{"local": true, "local[2]": true, "local[*]": true, "local-cluster[2,1,1024]": true,
		"": false, "yarn": false, "spark://localhost:7077": false, "k8s://https://localhost:6443": false, "localhost": false} {
		if Local(master) != want {
			t.Errorf("%q: %v", master, !want)
		}
	}
}

// In one process Spark would give up with the first worker that is lost.
func TestAttemptsInOneProcess(t *testing.T) {
	for master, want := range map[string]string{"local": "local[1,4]", "local[2]": "local[2,4]", "local[*]": "local[*,4]", "local[2,1]": "local[2,1]",
		"local-cluster[2,1,1024]": "local-cluster[2,1,1024]", "yarn": "yarn"} {
		if got := patient(master); got != want {
			t.Errorf("%s: %s", master, got)
		}
	}
}

// Secrets reach executors by name only: neither the command line nor the settings file holds a value.
func TestSecretsAreOnNoCommandLine(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "verysecret")
	home := t.TempDir()
	t.Setenv("SPARK_HOME", home)
	submit := filepath.Join(home, "bin", "spark-submit")
	if err := errors.Join(os.Mkdir(filepath.Dir(submit), 0o777), os.WriteFile(submit, nil, 0o777)); err != nil {
		t.Fatal(err)
	}
	names := Passed(append(os.Environ(), "AZURE_STORAGE_KEY=k=v==", "HOME=/root", "PATH=/bin", "AWSOME=1", "STORAGE_EMULATOR_HOST=h:1", "https_proxy=p", "SLUICE_X=1", "PGPASSWORD=x"))
	for _, name := range []string{"AWS_SECRET_ACCESS_KEY", "AZURE_STORAGE_KEY", "STORAGE_EMULATOR_HOST", "https_proxy", "SLUICE_X"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not passed", name)
		}
	}
	for _, name := range []string{"HOME", "PATH", "AWSOME", "PGPASSWORD", "SPARK_HOME"} {
		if slices.Contains(names, name) {
			t.Errorf("%s is passed", name)
		}
	}
	c, err := New(Options{Master: "yarn", Args: []string{"--queue", "q"}})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(c.command("driver.py", "settings.json"), " ")
	if want := submit + " --queue q --master yarn --deploy-mode client driver.py settings.json"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Spark cuts a list of n into runs that begin at i*n/parts; each run gets expensive and cheap tasks.
func TestTasksAreDealtOutLikeCards(t *testing.T) {
	for _, c := range []struct {
		n, parts int
		want     string
	}{{7, 3, "0 3 | 1 4 | 2 5 6"}, {6, 6, "0 | 1 | 2 | 3 | 4 | 5"}, {5, 2, "0 2 | 1 3 4"}, {4, 1, "0 1 2 3"}} {
		tasks := make([]engine.Task, c.n)
		for i := range tasks {
			tasks[i].ID = fmt.Sprint(i)
		}
		out := spread(tasks, c.parts)
		var runs []string
		for i := range c.parts {
			var ids []string
			for _, t := range out[i*c.n/c.parts : (i+1)*c.n/c.parts] {
				ids = append(ids, t.ID)
			}
			runs = append(runs, strings.Join(ids, " "))
		}
		if got := strings.Join(runs, " | "); got != c.want || len(out) != c.n {
			t.Errorf("%d in %d: %s", c.n, c.parts, got)
		}
	}
	for n := range 40 { // none is lost or doubled
		for parts := 1; parts <= n; parts++ {
			tasks, seen := make([]engine.Task, n), map[string]bool{}
			for i := range tasks {
				tasks[i].ID = fmt.Sprint(i)
			}
			for _, task := range spread(tasks, parts) {
				seen[task.ID] = true
			}
			if len(seen) != n {
				t.Fatalf("%d of %d tasks in %d", len(seen), n, parts)
			}
		}
	}
}

func TestEveryTaskHasOneResult(t *testing.T) {
	tasks := []engine.Task{{ID: "a"}, {ID: "b"}}
	read := func(text string) ([]engine.Result, error) {
		path := filepath.Join(t.TempDir(), "results")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return readResults(path, tasks)
	}
	got, err := read("{\"id\":\"b\",\"out\":2}\n\n{\"id\":\"a\",\"out\":1}\n{\"id\":\"b\",\"out\":3}")
	if err != nil || string(got[0].Out) != "1" || string(got[1].Out) != "2" {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]string{
		`{"id":"a"}`:               "1 of 2 tasks have no result, b is the first",
		`{"id":"c"}`:               `a result for task "c"`,
		"{\"id\":\"a\"}\n{\"id\":": "line 2",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := readResults(filepath.Join(t.TempDir(), "none"), tasks); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestProgressAndErrorsOfTheDriver(t *testing.T) {
	var told []string
	w := &words{bytes: 1000, observe: func(e engine.Event) { told = append(told, fmt.Sprintf("%+v", e)) }}
	out := &lines{each: w.hear}
	for _, part := range []string{
		"sluice: {\"app\": \"app-1\"}\r\n24/01/01 WARN Scheduler: Initial job has not accepted any resources; check\n",
		"24/01/01 WARN Scheduler: Initial job has not accepted any resources; check\nsluice: {\"done\": 1, \"fai", "led\": 0, \"of\": 4}\n",
		"sluice: {\"done\": 3, \"failed\": 2, \"of\": 4}\nsluice: no JSON\n24/01/01 INFO Executor: nothing to see\n",
	} {
		if _, err := out.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	w.advance()
	want := []string{"{Text:Spark application app-1}", "{Text:Spark has no executor for this job yet: the cluster is busy, or asks for more memory or cores than its workers have}",
		"{Rows:0 Bytes:250}", "{Text:2 attempts were lost so far; Spark runs their tasks again}", "{Rows:0 Bytes:500}", "{Rows:0 Bytes:250}"}
	if !slices.Equal(told, want) {
		t.Errorf("got  %q\nwant %q", told, want)
	}

	err := w.explain(errors.New("exit status 1"))
	if text := err.Error(); !strings.Contains(text, "app-1") || !strings.Contains(text, "no JSON") || strings.Contains(text, "nothing to see") {
		t.Error(text)
	}
	w.hear(`sluice: {"error": "Job aborted: Cannot run program \"./sluice-worker\": error=8, Exec format error\n\nDriver stacktrace:\n\tat x"}`)
	err = w.explain(errors.New("exit status 1"))
	var e *Error
	if !errors.As(err, &e) || !strings.Contains(e.Next, "--worker") || strings.Contains(e.Text, "stacktrace") {
		t.Errorf("%v, %q", err, e.Next)
	}
}

func TestASparkThatIsNotThere(t *testing.T) {
	c, err := New(Options{Submit: filepath.Join(t.TempDir(), "spark-submit"), Master: "local"})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{c.Ready(), c.Run(t.Context(), []engine.Task{{ID: "a"}}, func(engine.Result) error { return nil })} {
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Next, "SPARK_HOME") {
			t.Error(err)
		}
	}
	if _, err := New(Options{Worker: filepath.Join(t.TempDir(), "none")}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// What the JVM's character set does not have crosses it as escapes.
func TestTasksAreASCII(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks")
	want := engine.Task{ID: "région 北 𝄞 \u2028", Kind: "k", Spec: []byte(`"a\nb"`)}
	if err := writeTasks(path, []engine.Task{want}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range text {
		if b >= 0x80 || b < 0x20 && i != len(text)-1 {
			t.Fatalf("byte %d is %#x", i, b)
		}
	}
	var got engine.Task
	if err := worker.NewLines(strings.NewReader(string(text))).Next(&got); err != nil || got.ID != want.ID || string(got.Spec) != string(want.Spec) {
		t.Errorf("%+v, %v", got, err)
	}
}
