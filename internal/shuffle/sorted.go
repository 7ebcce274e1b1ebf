package shuffle

import (
	"context"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/sluicelake/sluice/internal/gather"
)

// cursor walks one sorted section.
type cursor struct {
	pull  func() (arrow.RecordBatch, error, bool)
	stop  func()
	batch arrow.RecordBatch
	texts *array.String
	longs []int64
	row   int
}

// next moves on within the batch, and reports whether there was a further row in it.
func (c *cursor) next() bool {
	c.row++
	return c.row < int(c.batch.NumRows())
}

func (s *Store) before(a, b *cursor) bool {
	if a.texts == nil {
		return a.longs[a.row] < b.longs[b.row]
	}
	return s.o.Compare(a.texts.Value(a.row), b.texts.Value(b.row)) < 0
}

func (s *Store) fill(c *cursor) (bool, error) {
	for {
		if c.batch != nil {
			c.batch.Release()
			c.batch = nil
		}
		b, err, ok := c.pull()
		if err != nil || !ok {
			return false, err
		}
		c.batch, c.row = b, 0
		if longs, ok := b.Column(s.o.Column).(*array.Int64); ok {
			c.longs = longs.Int64Values()
		} else {
			c.texts = b.Column(s.o.Column).(*array.String)
		}
		if b.NumRows() > 0 {
			return true, nil
		}
	}
}

// merged yields the rows of a target whose sections are sorted each, sorted as a whole. Sections are few: one for each time that
// the memory was full.
func (s *Store) merged(ctx context.Context, target int32) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		var cursors []*cursor
		defer func() {
			for _, c := range cursors {
				c.stop()
				if c.batch != nil {
					c.batch.Release()
				}
			}
		}()
		var live []int // cursors that have a row, in the order of the sections
		for _, seq := range s.sections(target) {
			c := &cursor{}
			c.pull, c.stop = iter.Pull2(seq)
			cursors = append(cursors, c)
			ok, err := s.fill(c)
			if err != nil {
				yield(nil, err)
				return
			}
			if ok {
				live = append(live, len(cursors)-1)
			}
		}
		if err := s.mergeCursors(ctx, cursors, live, yield); err != nil {
			yield(nil, err)
		}
	}
}

func (s *Store) sections(target int32) []iter.Seq2[arrow.RecordBatch, error] {
	var out []iter.Seq2[arrow.RecordBatch, error]
	for _, sec := range s.disk[target] {
		out = append(out, s.onDisk(sec))
	}
	return append(out, s.sorted(target))
}

func (s *Store) mergeCursors(ctx context.Context, cursors []*cursor, live []int, yield func(arrow.RecordBatch, error) bool) error {
	var runs []gather.Run
	rows, step := 0, s.step()
	stopped := false
	flush := func() error {
		if rows == 0 || stopped {
			return nil
		}
		batch, err := s.fromCursors(cursors, runs)
		if err != nil {
			return err
		}
		runs, rows = runs[:0], 0
		stopped = !yield(batch, nil)
		return nil
	}
	for len(live) > 0 && !stopped {
		if err := ctx.Err(); err != nil {
			return err
		}
		least := 0
		for i := 1; i < len(live); i++ {
			if s.before(cursors[live[i]], cursors[live[least]]) {
				least = i
			}
		}
		at := live[least]
		c := cursors[at]
		if n := len(runs); n > 0 && runs[n-1].Src == int32(at) && runs[n-1].Row+runs[n-1].N == int32(c.row) {
			runs[n-1].N++
		} else {
			runs = append(runs, gather.Run{Src: int32(at), Row: int32(c.row), N: 1})
		}
		rows++
		more := c.next()
		if rows >= step || !more {
			if err := flush(); err != nil {
				return err
			}
		}
		if !more {
			ok, err := s.fill(c)
			if err != nil {
				return err
			}
			if !ok {
				live = append(live[:least], live[least+1:]...)
			}
		}
	}
	return flush()
}

// fromCursors gathers rows of the cursors' batches; those that have ended are named by no run.
func (s *Store) fromCursors(cursors []*cursor, runs []gather.Run) (arrow.RecordBatch, error) {
	var srcs []arrow.RecordBatch
	index := make([]int32, len(cursors))
	for i, c := range cursors {
		index[i] = int32(len(srcs))
		if c.batch != nil {
			srcs = append(srcs, c.batch)
		}
	}
	moved := make([]gather.Run, len(runs))
	for i, r := range runs {
		moved[i] = gather.Run{Src: index[r.Src], Row: r.Row, N: r.N}
	}
	return gather.Batch(s.o.Alloc, s.schema, srcs, moved)
}
