package source

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"sort"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
)

// item is what a piece of work gives: a batch with the place of its rows, a record that can't be read, or an error.
type item struct {
	batch arrow.RecordBatch
	at    []mark // where the rows of the batch stand, the first mark at row 0
	bad   *RecordError
	err   error
}

// mark says that from a row of a batch on, rows stand one after the other from a line of a file.
type mark struct {
	row   int64
	file  string
	line  int64
	lines bool // lines of a text; otherwise rows
}

// work decodes one piece and sends what it finds. send fails when nobody wants more.
type work func(ctx context.Context, send func(item) error) error

// errStopped: the consumer has stopped.
var errStopped = errors.New("stopped")

// ordered runs pieces of work at once and yields what they give in the order in which they were started. feed starts the
// pieces; start waits while more than parallel pieces are not yet consumed, so that what is read ahead is bounded.
func ordered(ctx context.Context, o Options, in *Input, feed func(ctx context.Context, start func(work) error) error) iter.Seq2[arrow.RecordBatch, error] {
	parallel := o.Parallel
	if parallel <= 0 {
		parallel = runtime.GOMAXPROCS(0)
	}
	in.places = &places{}
	return func(yield func(arrow.RecordBatch, error) bool) {
		outer := ctx
		ctx, cancel := context.WithCancel(outer)
		q := queue{pieces: make(chan chan item, parallel+1), tokens: make(chan struct{}, parallel+1)}
		q.running.Go(func() { q.feed(ctx, feed) })
		var piece chan item
		defer func() {
			cancel()
			if piece != nil {
				discard(piece)
			}
			q.drain()
		}()
		for piece = range q.pieces {
			for it := range piece {
				if !deliver(o, in, it, yield) {
					return
				}
			}
			<-q.tokens
			if outer.Err() != nil {
				break
			}
		}
		if err := context.Cause(outer); err != nil { // pieces end early then: what came is not all
			yield(nil, err)
		}
	}
}

// deliver hands one item on; false ends the sequence.
func deliver(o Options, in *Input, it item, yield func(arrow.RecordBatch, error) bool) bool {
	if it.bad != nil {
		if o.Reject == nil {
			it.err = it.bad
		} else {
			it.err = o.Reject(it.bad)
		}
	}
	switch {
	case it.err != nil:
		yield(nil, it.err)
		return false
	case it.batch == nil:
		return true
	}
	in.places.add(it.batch.NumRows(), it.at)
	return yield(it.batch, nil)
}

type queue struct {
	pieces  chan chan item
	tokens  chan struct{}
	running sync.WaitGroup
}

func (q *queue) feed(ctx context.Context, feed func(context.Context, func(work) error) error) {
	defer close(q.pieces)
	start := func(w work) error {
		select {
		case q.tokens <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		piece := make(chan item, 1)
		select {
		case q.pieces <- piece:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		q.running.Go(func() { run(ctx, w, piece) })
		return nil
	}
	if err := feed(ctx, start); err != nil && !errors.Is(err, errStopped) {
		piece := make(chan item, 1)
		piece <- item{err: err}
		close(piece)
		select {
		case q.pieces <- piece:
		case <-ctx.Done():
		}
	}
}

func run(ctx context.Context, w work, piece chan item) {
	defer close(piece)
	send := func(it item) error {
		select {
		case piece <- it:
			return nil
		case <-ctx.Done():
			if it.batch != nil {
				it.batch.Release()
			}
			return errStopped
		}
	}
	err := w(ctx, send)
	if err != nil && !errors.Is(err, errStopped) {
		_ = send(item{err: err}) //nolint:errcheck // nobody wants it
	}
}

// drain lets go of what nobody wants any more and waits for the goroutines.
func (q *queue) drain() {
	go func() {
		for range q.tokens {
		}
	}()
	for piece := range q.pieces {
		discard(piece)
	}
	q.running.Wait()
	close(q.tokens)
}

func discard(piece chan item) {
	for it := range piece {
		if it.batch != nil {
			it.batch.Release()
		}
	}
}

// places remembers where rows stand: one entry for each run of rows that follow each other in a file.
type places struct {
	rows  int64
	marks []mark
}

func (p *places) add(rows int64, at []mark) {
	for _, m := range at {
		m.row += p.rows
		if last := len(p.marks) - 1; last >= 0 {
			l := p.marks[last]
			if l.file == m.file && m.line-l.line == m.row-l.row {
				continue
			}
		}
		p.marks = append(p.marks, m)
	}
	p.rows += rows
}

func (p *places) of(row int64) string {
	if p == nil {
		return ""
	}
	i := sort.Search(len(p.marks), func(i int) bool { return p.marks[i].row > row }) - 1
	if i < 0 || row >= p.rows {
		return ""
	}
	m := p.marks[i]
	n := m.line + row - m.row
	if m.lines {
		return fmt.Sprintf("%s:%d", m.file, n)
	}
	return fmt.Sprintf("%s row %d", m.file, n)
}
