//go:build interop

// Package engine starts Spark clusters of several processes, out of the Spark that interop/install.sh brings, and runs jobs
// on them.
package engine

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicelake/sluice/interop/peer"
)

// UseSpark points SPARK_HOME and Python at what interop/install.sh brought, for the time of a test.
func UseSpark(t testing.TB) (home string) {
	t.Helper()
	home = filepath.Dir(peer.Env(t, "SLUICE_INTEROP_SPARK_JARS"))
	t.Setenv("SPARK_HOME", home)
	t.Setenv("PYSPARK_PYTHON", peer.Env(t, "SLUICE_INTEROP_PYTHON"))
	t.Setenv("SPARK_LOCAL_IP", "127.0.0.1")
	return home
}

// Cluster is a standalone cluster: a master and workers, each a process of its own.
type Cluster struct {
	Master string // "spark://127.0.0.1:port"
	web    string
	log    string // folder
}

// startWithin is how long a cluster may take until its workers have registered, on a busy machine.
const startWithin = 2 * time.Minute

// Standalone starts a master and workers of two cores each. They end with the test. Their environment has nothing of this
// process's but what a shell needs: what executors know beyond it came through Spark.
func Standalone(t testing.TB, workers int) *Cluster {
	t.Helper()
	home := UseSpark(t)
	c := &Cluster{log: t.TempDir()}
	port, web := freePort(t), freePort(t)
	c.Master, c.web = fmt.Sprintf("spark://127.0.0.1:%d", port), fmt.Sprintf("http://127.0.0.1:%d/json/", web)
	c.start(t, home, "master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", fmt.Sprint(port), "--webui-port", fmt.Sprint(web))
	for i := range workers {
		name := fmt.Sprint("worker", i)
		c.start(t, home, name, "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "2", "--memory", "1g",
			"--webui-port", "0", "--work-dir", filepath.Join(c.log, name+"-work"), c.Master)
	}
	for deadline := time.Now().Add(startWithin); c.Workers(t) < workers; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d workers have registered\n%s", c.Workers(t), workers, c.Logs())
		}
	}
	return c
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func (c *Cluster) start(t testing.TB, home, name string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(c.log, name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the child has its own
	cmd := exec.Command(filepath.Join(home, "bin", "spark-class"), args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "JAVA_HOME=" + os.Getenv("JAVA_HOME"), "SPARK_HOME=" + home,
		"SPARK_LOCAL_IP=127.0.0.1", "LANG=C"}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // and its executors
		_ = cmd.Wait()
	})
}

// Workers is how many workers live, as the master sees it.
func (c *Cluster) Workers(t testing.TB) int {
	t.Helper()
	answer, err := http.Get(c.web)
	if err != nil {
		return 0 // it has not started yet
	}
	defer func() { _ = answer.Body.Close() }()
	var state struct {
		Alive int `json:"aliveworkers"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&state); err != nil {
		t.Fatal(err)
	}
	return state.Alive
}

// Logs are the ends of what master, workers and executors wrote.
func (c *Cluster) Logs() string {
	var out strings.Builder
	files, _ := filepath.Glob(filepath.Join(c.log, "*.log"))
	more, _ := filepath.Glob(filepath.Join(c.log, "*-work", "*", "*", "stderr"))
	for _, f := range append(files, more...) {
		text, _ := os.ReadFile(f)
		fmt.Fprintf(&out, "== %s\n%s\n", strings.TrimPrefix(f, c.log), text[max(0, len(text)-4000):])
	}
	return out.String()
}

// Said tells whether an executor wrote a text to its standard error.
func (c *Cluster) Said(text string) bool {
	files, _ := filepath.Glob(filepath.Join(c.log, "*-work", "*", "*", "stderr"))
	for _, f := range files {
		if held, err := os.ReadFile(f); err == nil && strings.Contains(string(held), text) {
			return true
		}
	}
	return false
}
