//go:build interop

// Package python asks the readers that live in Python: DuckDB, PyArrow and hudi-rs, all in one process that is started
// when it is first wanted and shared by all tests.
package python

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/sluicelake/sluice/interop/peer"
	"github.com/sluicelake/sluice/interop/rows"
)

// Session is the running process.
type Session struct{ peer *peer.Peer }

var shared struct {
	sync.Mutex
	session *Session
}

// Readers gives the process, the same one to every test.
func Readers(t testing.TB) *Session {
	t.Helper()
	interpreter := peer.Env(t, "SLUICE_INTEROP_PYTHON")
	shared.Lock()
	defer shared.Unlock()
	if shared.session != nil && !shared.session.peer.Broken() {
		return shared.session
	}
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		t.Fatal("interop/python: the tests must not be built with -trimpath")
	}
	p, err := peer.Start("python-"+filepath.Base(os.Args[0]), interpreter, filepath.Join(filepath.Dir(file), "session.py"))
	if err != nil {
		t.Fatal(err)
	}
	shared.session = &Session{peer: p}
	return shared.session
}

// DuckDB gives the rows of a query, in a database of its own with the time zone UTC.
func (s *Session) DuckDB(query string) (rows.Set, error) {
	return s.peer.Ask("duckdb_rows", map[string]any{"text": query})
}

// PyArrow gives the rows of the files of a format ("parquet", "csv", "json", "orc") below path.
func (s *Session) PyArrow(format, path string) (rows.Set, error) {
	return s.peer.Ask("pyarrow_rows", map[string]any{"path": path, "format": format})
}

// ORC gives the rows of one ORC file as the C++ reader of Apache ORC reads it.
func (s *Session) ORC(file string) (rows.Set, error) {
	return s.peer.Ask("orc_rows", map[string]any{"path": file})
}

// HudiRS gives the snapshot of a Hudi table as hudi-rs reads it.
func (s *Session) HudiRS(path string, options map[string]string) (rows.Set, error) {
	return s.peer.Ask("hudi_rs", map[string]any{"path": path, "options": options})
}

// ParquetFile is what the footer of a Parquet file says.
type ParquetFile struct {
	File      string   `json:"file"` // below the folder that was asked for
	Rows      int64    `json:"rows"`
	RowGroups int      `json:"row_groups"`
	CreatedBy string   `json:"created_by"`
	Schema    string   `json:"schema"`
	Keys      []string `json:"keys"` // of the key-value metadata
}

// ParquetFiles gives the footers of all Parquet files below path, in order of their names.
func (s *Session) ParquetFiles(path string) ([]ParquetFile, error) {
	var answer struct {
		Files []ParquetFile `json:"files"`
	}
	err := s.peer.Call("parquet_files", map[string]any{"path": path}, &answer)
	return answer.Files, err
}
