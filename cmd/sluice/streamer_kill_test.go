package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// program starts the program in a process of its own: the test binary, which TestMain makes it.
func program(t *testing.T, out *strings.Builder, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

const killSchema = `{"type":"record","name":"ev","fields":[{"name":"id","type":"string"},{"name":"region","type":"string"},{"name":"qty","type":["null","int"],"default":null},
 {"name":"ts","type":"long"},{"name":"_hoodie_is_deleted","type":["null","boolean"],"default":null}]}`

// TestStreamerKilled kills a streamer that runs for ever, at random moments, while files arrive: inserts, updates and deletes. At the
// end the table is what the files say, row for row, and table validate finds nothing. SLUICE_KILL_ROUNDS=200 makes it the long test.
func TestStreamerKilled(t *testing.T) {
	rounds := 12
	if n, err := strconv.Atoi(os.Getenv("SLUICE_KILL_ROUNDS")); err == nil {
		rounds = n
	}
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	s := newStream(t)
	if err := os.WriteFile(s.conf, []byte(killSchema), 0o666); err != nil {
		t.Fatal(err)
	}
	const lease = "hoodie.write.lock.storage.validity.timeout.secs="
	args := s.args("--continuous", "--source-limit", "2000", "--hoodie-conf", lease+"1")
	model := map[string]string{}
	clock := 0
	arrive := func() {
		lines := make([]string, 1+random.IntN(20))
		for i := range lines {
			clock++
			id := fmt.Sprintf("k%d", random.IntN(60))
			region := "eu"
			if id[len(id)-1]%2 == 0 {
				region = "us"
			}
			gone := random.IntN(5) == 0
			lines[i] = fmt.Sprintf(`{"id":%q,"region":%q,"qty":%d,"ts":%d,"_hoodie_is_deleted":%t}`, id, region, clock, clock, gone)
			if model[id] = strconv.Itoa(clock); gone {
				delete(model, id)
			}
		}
		s.arrive(lines)
	}
	var out strings.Builder
	commits := 0
	for i := range rounds {
		arrive()
		out.Reset()
		cmd := program(t, &out, args...)
		time.Sleep(time.Duration(random.IntN(150)) * time.Millisecond)
		arrive()
		time.Sleep(time.Duration(random.IntN(600)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		err := cmd.Wait()
		if err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("seed %d, round %d: the streamer ended by itself: %v\n%s", seed, i, err, out.String())
		}
		commits += strings.Count(out.String(), ": commit ")
	}
	// The last one is asked to stop, finishes its round, and leaves with 0.
	out.Reset()
	cmd := program(t, &out, s.args("--continuous", "--source-limit", "100000", "--hoodie-conf", lease+"20", "--post-write-termination-strategy-class", "NoNewDataTerminationStrategy",
		"--hoodie-conf", "max.rounds.without.new.data.to.shutdown=1")...)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, out.String())
	}
	var want, got []string
	for id, qty := range model {
		want = append(want, id+":"+qty)
	}
	slices.Sort(want)
	got = strings.Fields(s.rows())
	if !slices.Equal(got, want) {
		t.Errorf("seed %d: %d rows, want %d\n got %v\nwant %v", seed, len(got), len(want), got, want)
	}
	if code, found, errs := sluice(t, "table", "validate", s.table); code != exitDone {
		t.Errorf("seed %d: validate exits with %d\n%s%s", seed, code, found, errs)
	}
	t.Logf("%d kills, %d commits seen, %d rows", rounds, commits, len(got))
}

// arrive puts a file in place whole, as an object store or a rename does.
func (s *stream) arrive(lines []string) {
	s.t.Helper()
	s.files++
	hidden := filepath.Join(s.in, fmt.Sprintf(".%05d.json", s.files))
	if err := os.WriteFile(hidden, []byte(strings.Join(lines, "\n")+"\n"), 0o666); err != nil {
		s.t.Fatal(err)
	}
	time.Sleep(2 * time.Millisecond) // no two files of one millisecond: times are the order of the model
	now := time.Now()
	if err := os.Chtimes(hidden, now, now); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(hidden, filepath.Join(s.in, fmt.Sprintf("%05d.json", s.files))); err != nil {
		s.t.Fatal(err)
	}
}

// A streamer that runs for ever ends after its round when it is asked to, with exit code 0.
func TestStreamerStops(t *testing.T) {
	s := newStream(t)
	s.put(`{"id":"a","region":"eu","qty":1,"ts":1}`)
	var out strings.Builder
	cmd := program(t, &out, s.args("--continuous", "--metrics-address", "127.0.0.1:0")...)
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if left, err := filepath.Glob(filepath.Join(s.table, ".hoodie", "*.commit")); err == nil && len(left) == 1 {
			break
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "stopped: asked to stop") {
		t.Errorf("%v: %s", err, out.String())
	}
	if got := s.rows(); got != "a:1" {
		t.Error(got)
	}
}
