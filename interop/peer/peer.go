//go:build interop

// Package peer talks to a program that answers lines of JSON with lines of JSON. The peers of the interop tests, which
// live in other languages, are started once and asked many times: most of what they cost is their start.
package peer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sluicelake/sluice/interop/rows"
)

// patience is how long one request may take. A peer that needs longer hangs; it is killed, so that the test says which
// request it was.
const patience = 5 * time.Minute

// Peer is a running program. Requests are answered one at a time.
type Peer struct {
	name string
	log  string

	mu      sync.Mutex
	process *os.Process
	in      io.WriteCloser
	out     *bufio.Reader
	broken  error // why it can answer no more
}

// Error is what a peer said when it could not do what it was asked.
type Error struct {
	Peer, Op string
	Text     string // class and message
}

func (e *Error) Error() string { return fmt.Sprintf("%s, %s: %s", e.Peer, e.Op, e.Text) }

// Start runs a command and waits for its first line, {"ok": true}. What the command prints to standard error goes to a
// log file in the cache folder. The command ends when the test process does: its standard input closes then.
func Start(name string, argv ...string) (*Peer, error) {
	log, err := logFile(name)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "TZ=UTC", "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr = log
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("peer %s: %w", name, err)
	}
	p := &Peer{name: name, log: log.Name(), process: cmd.Process, in: in, out: bufio.NewReader(out)}
	if err := p.receive("start", nil); err != nil {
		return nil, err
	}
	return p, nil
}

// Broken reports whether the peer can answer no more.
func (p *Peer) Broken() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken != nil
}

// Call asks for one operation. The request is a struct or map that becomes a JSON object; the answer's fields are stored
// in answer, which may be nil. A peer that says no gives an *Error.
func (p *Peer) Call(op string, request, answer any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken != nil {
		return p.broken
	}
	line, err := withOp(op, request)
	if err != nil {
		return err
	}
	if _, err := p.in.Write(line); err != nil {
		p.broken = fmt.Errorf("peer %s is gone (its log: %s): %w", p.name, p.log, err)
		return p.broken
	}
	return p.receive(op, answer)
}

// Stop ends the peer. Later calls fail.
func (p *Peer) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = fmt.Errorf("peer %s was stopped", p.name)
	p.in.Close()
}

// Break marks a peer that still answers but is of no more use, such as a driver whose JVM has died.
func (p *Peer) Break(why error) {
	p.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = why
}

func (p *Peer) receive(op string, answer any) error {
	late := time.AfterFunc(patience, func() { _ = p.process.Kill() })
	line, err := p.out.ReadBytes('\n')
	inTime := late.Stop()
	switch {
	case err != nil && !inTime:
		p.broken = fmt.Errorf("peer %s did not answer %s within %s and was killed (its log: %s)", p.name, op, patience, p.log)
		return p.broken
	case err != nil:
		p.broken = fmt.Errorf("peer %s died during %s (its log: %s): %w\n%s", p.name, op, p.log, err, tail(p.log))
		return p.broken
	}
	var head struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return fmt.Errorf("peer %s: answer to %s: %w", p.name, op, err)
	}
	if !head.OK {
		return &Error{Peer: p.name, Op: op, Text: head.Error}
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(line, answer); err != nil {
		return fmt.Errorf("peer %s: answer to %s: %w", p.name, op, err)
	}
	return nil
}

// Rows is the answer of every operation that gives rows.
type Rows struct {
	Count      int        `json:"count"`
	Columns    []string   `json:"columns"` // "name type"
	Rows       []rows.Row `json:"rows"`
	RowsSHA256 string     `json:"rowsSha256"` // in place of rows when there are more than were asked for
}

// Ask calls an operation that gives rows, and wants all of them.
func (p *Peer) Ask(op string, request any) (rows.Set, error) {
	var a Rows
	if err := p.Call(op, request, &a); err != nil {
		return rows.Set{}, err
	}
	if len(a.Rows) != a.Count {
		return rows.Set{}, fmt.Errorf("peer %s, %s: %d rows are too many to send", p.name, op, a.Count)
	}
	columns, err := rows.ParseColumns(a.Columns)
	return rows.Set{Columns: columns, Rows: a.Rows}, err
}

// Env gives a variable that `make interop` sets. A test that lacks it fails: a check that quietly skips itself is none.
func Env(t testing.TB, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Fatalf(`%s is not set; run "make interop", or first: eval "$(interop/install.sh)"`, name)
	}
	return v
}

func withOp(op string, request any) ([]byte, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(body, []byte("{")) {
		return nil, errors.New("peer: a request is an object")
	}
	head, err := json.Marshal(op)
	if err != nil {
		return nil, err
	}
	line := append([]byte(`{"op":`), head...)
	if len(body) > 2 {
		line = append(line, ',')
	}
	line = append(line, body[1:]...)
	return append(line, '\n'), nil
}

func logFile(name string) (*os.File, error) {
	dir := os.Getenv("SLUICE_CACHE")
	if dir == "" {
		dir = os.TempDir()
	}
	dir = filepath.Join(dir, "log")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return os.Create(filepath.Join(dir, name+".log"))
}

func tail(path string) string {
	const most = 3000
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(data[max(0, len(data)-most):])
}
