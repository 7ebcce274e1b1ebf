package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/merge"
)

// The exit codes, the same for every verb.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNothing     = 3
	exitRefused     = 4
	exitInterrupted = 130
)

const exitHelp = `Exit codes:
  0    done
  1    failed; the message says what and where
  2    wrong usage
  3    nothing to do, where the flags say that this is an error
  4    refused: a table version, property or feature that Sluice does not support; nothing was written
  130  interrupted; the table is as it was before`

// usageError is a mistake in the command line.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errNothing is returned by verbs whose flags make "nothing to do" an error.
var errNothing = errors.New("nothing to do")

func exitCode(ctx context.Context, err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, errNothing):
		return exitNothing
	case errors.Is(err, config.ErrUnsupported), errors.Is(err, merge.ErrUnsupported), errors.Is(err, engine.ErrRefused):
		return exitRefused
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitFailed
}

// report prints an error for a person: what went wrong, then what to do next where the error knows.
func report(w io.Writer, verb string, err error) {
	text := strings.TrimRight(err.Error(), "\n")
	_, _ = fmt.Fprintf(w, "%s: %s\n", verb, text)
	var hinted interface{ NextStep() string }
	if errors.As(err, &hinted) && hinted.NextStep() != "" {
		_, _ = fmt.Fprintf(w, "  next: %s\n", hinted.NextStep())
	}
	var usage usageError
	if errors.As(err, &usage) {
		_, _ = fmt.Fprintf(w, "  see: %s --help\n", verb)
	}
}
