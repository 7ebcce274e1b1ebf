// Command sluice reads, exports and keeps Apache Hudi tables without a JVM. This package knows flags, terminals and exit
// codes; what a verb does lives in the packages below.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/sluicelake/sluice/internal/quicksnappy"
)

func main() {
	if err := quicksnappy.Use(); err != nil {
		report(os.Stderr, "sluice", err)
		os.Exit(exitFailed)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], console{in: os.Stdin, out: os.Stdout, err: os.Stderr})
	stop()
	os.Exit(code)
}

// console is what a command talks to. Data goes to out, everything else to err.
type console struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}
