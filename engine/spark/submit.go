package spark

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/sluicelake/sluice/engine"
)

// stopWithin is how long Spark has to end its executors after an interrupt before it is killed.
const stopWithin = 30 * time.Second

// submit runs spark-submit to its end, tells the progress, and explains a failure.
func (c *Cluster) submit(ctx context.Context, argv []string, cost int64) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	endGroup := ownGroup(cmd) // a Ctrl-C on the terminal is ours to handle
	cmd.WaitDelay = stopWithin
	said := &words{observe: c.opts.Observe, bytes: cost}
	cmd.Stdout, cmd.Stderr = &lines{each: said.hear}, &lines{each: said.hear}
	if err := cmd.Start(); err != nil {
		return notStarted(err)
	}
	err := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		endGroup()
		return context.Cause(ctx)
	case errors.Is(err, exec.ErrWaitDelay): // it ended well, and something that it started holds its output open
	case err != nil:
		return said.explain(err)
	}
	said.advance()
	return nil
}

// words are what spark-submit and the driver say.
type words struct {
	observe engine.Observer
	bytes   int64 // of all tasks

	mu       sync.Mutex
	told     int64 // bytes reported as done
	failed   int
	starving bool
	app      string
	err      string   // of the driver
	tail     []string // last lines of everything else
}

// tailLines are what is kept of a log for an error.
const tailLines = 40

// lines is a writer that gives each line that is written to it to a function.
type lines struct {
	each func(string)
	part []byte // of the line that has not ended
}

// maxPart bounds a line that does not end.
const maxPart = 1 << 20

func (l *lines) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			if len(l.part) < maxPart {
				l.part = append(l.part, rest...)
			}
			break
		}
		l.part = append(l.part, rest[:end]...)
		if text := strings.TrimRight(string(l.part), "\r"); text != "" {
			l.each(text)
		}
		l.part, rest = l.part[:0], rest[end+1:]
	}
	return len(p), nil
}

// spoken is a line of the driver.
type spoken struct {
	App    string `json:"app"`
	Error  string `json:"error"`
	Done   int64  `json:"done"`
	Failed int    `json:"failed"`
	Of     int64  `json:"of"`
}

func (w *words) hear(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var s spoken
	if text, ok := strings.CutPrefix(line, "sluice: "); ok && json.Unmarshal([]byte(text), &s) == nil {
		w.driver(s)
		return
	}
	if strings.Contains(line, "has not accepted any resources") && !w.starving {
		w.starving = true
		w.observe(engine.Noted{Text: "Spark has no executor for this job yet: the cluster is busy, or asks for more memory or cores than its workers have"})
	}
	if w.tail = append(w.tail, line); len(w.tail) > tailLines {
		w.tail = w.tail[1:]
	}
}

func (w *words) driver(s spoken) {
	switch {
	case s.App != "":
		w.app = s.App
		w.observe(engine.Noted{Text: "Spark application " + s.App})
	case s.Error != "":
		w.err = s.Error
	case s.Of > 0:
		if s.Failed > w.failed {
			w.failed = s.Failed
			w.observe(engine.Noted{Text: fmt.Sprintf("%d attempts were lost so far; Spark runs their tasks again", s.Failed)})
		}
		if now := int64(float64(w.bytes) * float64(s.Done) / float64(s.Of)); now > w.told {
			w.observe(engine.Advanced{Bytes: now - w.told})
			w.told = now
		}
	}
}

// advance reports what is left of all bytes at the end.
func (w *words) advance() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bytes > w.told {
		w.observe(engine.Advanced{Bytes: w.bytes - w.told})
		w.told = w.bytes
	}
}

// Error is a Spark job that failed as a whole.
type Error struct {
	App  string // application id, where it came that far
	Text string
	Next string
}

func (e *Error) Error() string {
	if e.App != "" {
		return "spark application " + e.App + ": " + e.Text
	}
	return "spark: " + e.Text
}

// NextStep for a person.
func (e *Error) NextStep() string { return e.Next }

func notStarted(err error) *Error {
	return &Error{Text: "spark-submit can't be started: " + err.Error(), Next: "install Spark, or name its spark-submit with --spark-submit or SPARK_HOME"}
}

const elsewhere = "executors can't run the program: if their processor or system is another one than this machine's, or their C library older, " +
	"build Sluice for them (GOOS, GOARCH, CGO_ENABLED=0) and name that program with --worker"

// hints are what helps when a log holds a text, the most telling first.
var hints = []struct{ sign, next string }{
	{"Exec format error", elsewhere},
	{"Permission denied", "executors may not execute files in their working folder (a noexec mount?): move spark.local.dir or the worker's --work-dir"},
	// Java gives what the system can't execute to a shell, which can't either.
	{"Subprocess exited with status 126", elsewhere},
	{"Subprocess exited with status 127", elsewhere},
	{"Subprocess exited with status 2.", elsewhere},
	{"Subprocess exited with status 137", "the system killed the worker, which is what it does when memory ends: give --memory less or spark.executor.memoryOverhead more"},
	{"Subprocess exited", "the worker's own words are in the standard error of its executor: see the executors' page of Spark, or yarn logs -applicationId"},
	{"All masters are unresponsive", "is the address of --master right, and does the master have this version of Spark?"},
	{"JAVA_HOME is not set", "Spark needs a Java on this machine: set JAVA_HOME"},
	{"Cannot run program \"python", "the driver needs Python 3 on this machine: set PYSPARK_DRIVER_PYTHON"},
	{"above the max threshold", "YARN's largest container is smaller than what was asked: give --memory or spark.executor.memoryOverhead less"},
}

func (w *words) explain(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := &Error{App: w.app, Text: w.err}
	if cut := strings.Index(e.Text, "\n\tat "); cut >= 0 { // where in Spark's code it was helps nobody
		e.Text = e.Text[:cut]
	}
	e.Text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(e.Text), "Driver stacktrace:"))
	if e.Text == "" {
		e.Text = fmt.Sprintf("spark-submit ended with %v; its last words:\n%s", err, strings.Join(telling(w.tail), "\n"))
	}
	all := e.Text + "\n" + strings.Join(w.tail, "\n")
	for _, h := range hints {
		if strings.Contains(all, h.sign) {
			e.Next = h.next
			break
		}
	}
	return e
}

// telling leaves out what Spark logs without need, unless there is nothing else.
func telling(lines []string) []string {
	var out []string
	for _, l := range lines {
		if !strings.Contains(l, " INFO ") && !strings.HasPrefix(l, "\tat ") {
			out = append(out, l)
		}
	}
	if len(out) == 0 {
		return lines
	}
	return out[max(0, len(out)-15):]
}
