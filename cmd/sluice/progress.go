package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/sluicelake/sluice/engine"
)

// lineEvery is the pause between progress lines where there is no terminal: often enough to see life in a job's log, rare
// enough not to fill it.
const lineEvery = 10 * time.Second

// progress shows a job's events to a person: a bar on a terminal, a line now and then elsewhere, a summary at the end.
type progress struct {
	out   io.Writer
	quiet bool

	mu          sync.Mutex
	start, last time.Time
	planned     engine.Planned
	rows, bytes int64
	bars        *mpb.Progress
	bar         *mpb.Bar
}

func newProgress(out io.Writer, quiet bool) *progress {
	return &progress{out: out, quiet: quiet, start: time.Now(), last: time.Now()}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// observe is an engine.Observer.
func (p *progress) observe(e engine.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := e.(type) {
	case engine.Planned:
		p.planned = e
		p.startBar()
	case engine.Advanced:
		p.rows += e.Rows
		p.bytes += e.Bytes
		p.step(e.Bytes)
	case engine.Retried:
		p.printf("task %s failed, trying again: %v\n", e.Task.ID, e.Err)
	case engine.Noted:
		p.printf("%s\n", e.Text)
	case engine.Finished:
		p.finish(e)
	}
}

func (p *progress) startBar() {
	if p.quiet || !isTerminal(p.out) || p.planned.Bytes == 0 {
		return
	}
	p.bars = mpb.New(mpb.WithOutput(p.out), mpb.WithWidth(48))
	p.bar = p.bars.AddBar(p.planned.Bytes,
		mpb.PrependDecorators(decor.Name(p.planned.Job+" "), decor.CountersKibiByte("% .1f of % .1f")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return rate(p.rows, time.Since(p.start)) }),
			decor.Name("  "), decor.AverageETA(decor.ET_STYLE_GO)))
}

func (p *progress) step(bytes int64) {
	switch {
	case p.bar != nil:
		p.bar.IncrInt64(bytes)
	case !p.quiet && time.Since(p.last) >= lineEvery:
		p.last = time.Now()
		share := ""
		if p.planned.Bytes > 0 {
			share = fmt.Sprintf(" (%d %%)", 100*p.bytes/p.planned.Bytes)
		}
		p.printf("%s: %d rows, %s read%s, %s\n", p.planned.Job, p.rows, size(p.bytes), share, rate(p.rows, time.Since(p.start)))
	}
}

func (p *progress) printf(format string, args ...any) {
	if !p.quiet {
		_, _ = fmt.Fprintf(p.out, format, args...)
	}
}

func (p *progress) finish(e engine.Finished) {
	if p.bar != nil {
		if e.Err == nil {
			p.bar.SetTotal(-1, true)
		} else {
			p.bar.Abort(false)
		}
		p.bars.Wait()
		p.bar = nil
	}
	if e.Err == nil {
		p.printf("%s: %d rows, %d files, %s read, %s written in %s, %s\n", e.Job, e.Stats.Rows, e.Stats.Files,
			size(e.Stats.BytesRead), size(e.Stats.BytesWritten), e.Wall.Round(time.Millisecond), rate(e.Stats.Rows, e.Wall))
	}
}

func rate(rows int64, in time.Duration) string {
	if in <= 0 {
		return "0 rows/s"
	}
	return fmt.Sprintf("%.0f rows/s", float64(rows)/in.Seconds())
}

func size(bytes int64) string {
	const unit = 1024
	switch {
	case bytes < unit:
		return fmt.Sprintf("%d B", bytes)
	case bytes < unit*unit:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/unit)
	case bytes < unit*unit*unit:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/unit/unit)
	}
	return fmt.Sprintf("%.2f GiB", float64(bytes)/unit/unit/unit)
}
