//go:build interop

// Package streamer runs the original streamer, release 0.14.0 of Apache Hudi on Spark 3.4, as a person does with spark-submit.
package streamer

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var home struct {
	sync.Once
	path string
	err  error
}

// Home assembles the original where that was not done before, and gives its folder.
func Home(t testing.TB) string {
	t.Helper()
	home.Do(func() {
		script, err := filepath.Abs("install.sh")
		if err != nil {
			home.err = err
			return
		}
		cmd := exec.Command("bash", script)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			home.err = fmt.Errorf("%s: %w\n%s", script, err, errs.String())
			return
		}
		_, rest, _ := strings.Cut(string(out), "SLUICE_ORIGINAL_STREAMER='")
		home.path, _, _ = strings.Cut(rest, "'")
	})
	if home.err != nil {
		t.Fatal(home.err)
	}
	return home.path
}

// Submit is the spark-submit command line of the original with these arguments.
func Submit(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	at := Home(t)
	found, err := filepath.Glob(filepath.Join(at, "venv", "lib", "python*", "site-packages", "pyspark"))
	if err != nil || len(found) != 1 {
		t.Fatalf("no pyspark in %s: %v, %v", at, found, err)
	}
	jars, err := filepath.Glob(filepath.Join(at, "lib", "*.jar"))
	if err != nil {
		t.Fatal(err)
	}
	line := append([]string{"--master", "local[2]", "--driver-memory", "2g", "--conf", "spark.driver.extraClassPath=" + strings.Join(jars, ":"), "--conf", "spark.ui.enabled=false",
		"--conf", "spark.sql.session.timeZone=UTC", "--conf", "spark.driver.extraJavaOptions=-Duser.timezone=UTC",
		"--conf", "spark.serializer=org.apache.spark.serializer.KryoSerializer", "--class", "org.apache.hudi.utilities.streamer.HoodieStreamer",
		filepath.Join(at, "lib", "utilities-relocated.jar")}, args...)
	cmd := exec.Command(filepath.Join(found[0], "bin", "spark-submit"), line...)
	cmd.Env = append(os.Environ(), "SPARK_HOME="+found[0])
	return cmd
}

// Run runs the original once.
func Run(t testing.TB, args ...string) error {
	t.Helper()
	out, err := Submit(t, args...).CombinedOutput()
	if err != nil {
		text := string(out)
		if len(text) > 6000 {
			text = text[len(text)-6000:]
		}
		return fmt.Errorf("the original streamer: %w\n%s", err, text)
	}
	return nil
}
