//go:build interop

// Package spark asks Spark with Apache Hudi: one session for each release of Apache Hudi, started when it is first
// wanted and shared by all tests of the process.
package spark

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/sluicelake/sluice/interop/peer"
	"github.com/sluicelake/sluice/interop/rows"
)

// The releases of Apache Hudi that tests may ask for. The first writes table version 6, the second version 9.
const (
	Hudi0 = "0.15.0"
	Hudi1 = "1.2.0"
)

// Session is a Spark session (local, two cores, UTC) with one release of Apache Hudi.
type Session struct {
	Release string
	peer    *peer.Peer
}

var shared struct {
	sync.Mutex
	sessions map[string]*Session
}

// Hudi gives the session of a release, the same one to every test. A session whose JVM died is replaced.
func Hudi(t testing.TB, release string) *Session {
	t.Helper()
	jar := peer.Env(t, map[string]string{Hudi0: "SLUICE_INTEROP_HUDI_JAR_0_15", Hudi1: "SLUICE_INTEROP_HUDI_JAR"}[release])
	python := peer.Env(t, "SLUICE_INTEROP_PYTHON")
	shared.Lock()
	defer shared.Unlock()
	if s := shared.sessions[release]; s != nil && !s.peer.Broken() {
		return s
	}
	work, err := os.MkdirTemp("", "sluice-spark-")
	if err != nil {
		t.Fatal(err)
	}
	p, err := peer.Start("spark-hudi-"+release+"-"+filepath.Base(os.Args[0]), python, script(t), "--jar", jar, "--work", work)
	if err != nil {
		t.Fatal(err)
	}
	if shared.sessions == nil {
		shared.sessions = map[string]*Session{}
	}
	s := &Session{Release: release, peer: p}
	shared.sessions[release] = s
	return s
}

// script finds session.py beside this file, which Go embeds nowhere: it imports its neighbours.
func script(t testing.TB) string {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		t.Fatal("interop/spark: the tests must not be built with -trimpath")
	}
	return filepath.Join(filepath.Dir(file), "session.py")
}

// Options are options of a Spark reader or writer, or of the session.
type Options map[string]string

// SQL runs one statement and gives its rows.
func (s *Session) SQL(text string) (rows.Set, error) {
	return s.ask("sql", map[string]any{"text": text})
}

// Read gives the rows of a Hudi table as Apache Hudi reads it, meta columns included.
func (s *Session) Read(path string, o Options) (rows.Set, error) {
	return s.ReadFiles("hudi", path, o)
}

// ReadFiles gives the rows of plain files: "parquet", "json", "csv", "orc".
func (s *Session) ReadFiles(format, path string, o Options) (rows.Set, error) {
	return s.ask("read", map[string]any{"path": path, "format": format, "options": orEmpty(o)})
}

// ReadTyped gives the rows of plain files that say little of their types, read as the given columns.
func (s *Session) ReadTyped(format, path string, columns []rows.Column, o Options) (rows.Set, error) {
	ddl := make([]string, len(columns))
	for i, c := range columns {
		ddl[i] = "`" + c.Name + "` " + c.Type.String()
	}
	return s.ask("read", map[string]any{"path": path, "format": format, "options": orEmpty(o), "schema": strings.Join(ddl, ", ")})
}

// Write is one write through Apache Hudi's data source.
type Write struct {
	Columns string  // DDL: "id int, price double"
	Rows    [][]any // one value for each column: nil, bool, integers, float64, string, lists and maps of them
	Query   string  // in place of Rows: a query whose result is written
	Options Options // hoodie.* options, the operation among them
	Mode    string  // Spark's save mode; "" is append
}

// Write writes to the table at path, which the first write creates.
func (s *Session) Write(path string, w Write) error {
	request := map[string]any{"path": path, "options": orEmpty(w.Options), "columns": w.Columns}
	if w.Mode != "" {
		request["mode"] = w.Mode
	}
	if w.Query != "" {
		request["query"] = w.Query
	} else {
		request["rows"] = w.Rows
	}
	return s.call("write", request)
}

// Save writes a query's result as plain files of a format, in so many files when files is not 0.
func (s *Session) Save(path, query, format string, o Options, files int) error {
	request := map[string]any{"path": path, "query": query, "format": format, "options": orEmpty(o)}
	if files > 0 {
		request["files"] = files
	}
	return s.call("save", request)
}

// Set sets options of the session until the test ends.
func (s *Session) Set(t testing.TB, o Options) {
	t.Helper()
	s.setFor(t, "conf", o)
}

// SetHadoop sets options of the Hadoop configuration until the test ends.
func (s *Session) SetHadoop(t testing.TB, o Options) {
	t.Helper()
	s.setFor(t, "hadoop_conf", o)
}

func (s *Session) setFor(t testing.TB, op string, o Options) {
	t.Helper()
	if err := s.call(op, map[string]any{"set": o}); err != nil {
		t.Fatal(err)
	}
	unset := map[string]any{}
	for key := range o {
		unset[key] = nil
	}
	t.Cleanup(func() {
		if err := s.call(op, map[string]any{"set": unset}); err != nil {
			t.Error(err)
		}
	})
}

func (s *Session) ask(op string, request any) (rows.Set, error) {
	set, err := s.peer.Ask(op, request)
	return set, s.checkAlive(err)
}

func (s *Session) call(op string, request any) error {
	return s.checkAlive(s.peer.Call(op, request, nil))
}

// checkAlive notices a JVM that has died under its Python driver, which goes on answering with connection errors.
func (s *Session) checkAlive(err error) error {
	var said *peer.Error
	if errors.As(err, &said) && (strings.HasPrefix(said.Text, "Py4JNetworkError") || strings.HasPrefix(said.Text, "ConnectionRefusedError")) {
		s.peer.Break(err)
	}
	return err
}

func orEmpty(o Options) Options {
	if o == nil {
		return Options{}
	}
	return o
}
