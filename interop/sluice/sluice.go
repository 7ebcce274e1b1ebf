//go:build interop

// Package sluice runs the program as a person does: built from this checkout, in a process of its own.
package sluice

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sluicelake/sluice/interop/rows"
)

var build struct {
	sync.Once
	path string
	err  error
}

// Binary builds the program once for the process and gives its path.
func Binary(t testing.TB) string {
	t.Helper()
	build.Do(func() {
		dir, err := os.MkdirTemp("", "sluice-bin-")
		if err != nil {
			build.err = err
			return
		}
		build.path = filepath.Join(dir, "sluice")
		out, err := exec.Command("go", "build", "-o", build.path, "github.com/sluicelake/sluice/cmd/sluice").CombinedOutput()
		if err != nil {
			build.err = fmt.Errorf("go build ./cmd/sluice: %w\n%s", err, out)
		}
	})
	if build.err != nil {
		t.Fatal(build.err)
	}
	return build.path
}

// Error is a run that did not end with exit code 0.
type Error struct {
	Args   []string
	Code   int
	Stderr string
}

func (e *Error) Error() string {
	return fmt.Sprintf("sluice %s: exit code %d\n%s", strings.Join(e.Args, " "), e.Code, e.Stderr)
}

// Run runs the program and gives what it wrote to standard output.
func Run(t testing.TB, args ...string) ([]byte, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), Binary(t), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return out.Bytes(), &Error{Args: args, Code: exit.ExitCode(), Stderr: errs.String()}
	}
	return out.Bytes(), err
}

// Read gives the rows of `sluice read PATH ARGS... -o json`.
func Read(t testing.TB, path string, args ...string) (rows.Set, error) {
	t.Helper()
	out, err := Run(t, append([]string{"read", path, "-o", "json"}, args...)...)
	if err != nil {
		return rows.Set{}, err
	}
	found, err := rows.Decode(bytes.NewReader(out))
	return rows.Set{Rows: found}, err
}
