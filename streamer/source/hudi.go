package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/hudi/timeline"
)

// The strategies for a first pull without a checkpoint.
const (
	ReadLatest           = "READ_LATEST"
	ReadUpToLatestCommit = "READ_UPTO_LATEST_COMMIT"
)

// Changes pulls the changes of another Hudi table (tools C.7, HoodieIncrSource): the rows that were written after the checkpoint,
// in their newest state. Rows that were deleted do not come. The checkpoint is an instant: requested times for tables below version
// 8, completion times from version 8 on.
type Changes struct {
	URL  string
	Open hudi.Options
	// Instants is the most that a pull takes; 0 means 5. A pull without a checkpoint is not bound by it, as in the original.
	Instants int
	// Missing says what a pull without a checkpoint reads: ReadLatest the newest write, ReadUpToLatestCommit everything. Empty:
	// it is an error.
	Missing string
	// DropMeta also leaves out _hoodie_partition_path; the other four meta columns never come.
	DropMeta bool
	Options
}

// Fetch is Source.Fetch. The limit does not count.
func (c *Changes) Fetch(ctx context.Context, from Cursor, _ int64) (*Input, error) {
	t, err := hudi.Open(ctx, c.URL, c.Open)
	if err != nil {
		return nil, err
	}
	writes := writeTimes(t.Timeline())
	begin, end, err := c.between(from.Checkpoint, writes)
	if err != nil {
		return nil, err
	}
	in := &Input{Next: Cursor{Checkpoint: end}, Batches: nothing}
	if end == "" || end == begin {
		in.Next = from
		if begin != "" {
			in.Next.Checkpoint = begin
		}
		return in, nil
	}
	s, err := t.Changes(ctx, hudi.Range{Begin: begin, End: end})
	if err != nil {
		return nil, err
	}
	in.Fresh = true
	if in.Avro, in.Schema, err = c.columns(s); err != nil {
		return nil, err
	}
	in.Batches = ordered(ctx, Options{Alloc: c.Alloc, Parallel: 1}, in, func(_ context.Context, start func(work) error) error {
		return start(func(ctx context.Context, send func(item) error) error {
			return c.scan(ctx, s, in.Schema, send)
		})
	})
	return in, nil
}

// writeTimes are the times of the completed writes, in order of the checkpoints.
func writeTimes(tl timeline.Timeline) []string {
	var times []string
	for _, i := range tl.Completed().Writes().Instants() {
		at := i.Time
		if tl.Layout() >= 2 {
			at = i.Completion
		}
		times = append(times, at)
	}
	slices.Sort(times)
	return times
}

// between gives the range of a pull: begin excluded, end included.
func (c *Changes) between(checkpoint string, writes []string) (begin, end string, err error) {
	if len(writes) == 0 {
		return checkpoint, checkpoint, nil
	}
	last := len(writes) - 1
	if checkpoint != "" {
		for _, prefix := range []string{"resumeFromInstantRequestTime:", "resumeFromInstantCompletionTime:"} {
			checkpoint = strings.TrimPrefix(checkpoint, prefix)
		}
		n := c.Instants
		if n <= 0 {
			n = 5
		}
		from, _ := slices.BinarySearch(writes, checkpoint+"\x00")
		if from > last {
			return checkpoint, checkpoint, nil
		}
		return checkpoint, writes[min(from+n-1, last)], nil
	}
	switch c.Missing {
	case ReadLatest:
		if last == 0 {
			return timeline.BeforeEverything, writes[0], nil
		}
		return writes[last-1], writes[last], nil
	case ReadUpToLatestCommit:
		return timeline.BeforeEverything, writes[last], nil
	case "":
		return "", "", errors.New("Missing begin instant for incremental pull. For reading from latest committed instant set " + //nolint:revive,staticcheck // the original's text
			"hoodie.streamer.source.hoodieincr.missing.checkpoint.strategy to a valid value")
	}
	return "", "", fmt.Errorf("hoodie.streamer.source.hoodieincr.missing.checkpoint.strategy=%s: there are %s and %s", c.Missing, ReadLatest, ReadUpToLatestCommit)
}

// columns are those of the table without its meta columns, but for the partition path where it is wanted.
func (c *Changes) columns(s *hudi.Snapshot) (*schema.Type, *arrow.Schema, error) {
	t := *s.Avro()
	t.Fields = slices.DeleteFunc(slices.Clone(t.Fields), func(f schema.Field) bool {
		return schema.IsMeta(f.Name) && (c.DropMeta || f.Name != schema.PartitionPath)
	})
	shape, err := t.Arrow()
	return &t, shape, err
}

func (c *Changes) scan(ctx context.Context, s *hudi.Snapshot, want *arrow.Schema, send func(item) error) error {
	var res *schema.Resolution
	for batch, err := range s.Scan(ctx, hudi.Scan{Columns: fieldNames(want), Alloc: c.Alloc}) {
		if err != nil {
			return err
		}
		if res == nil {
			if res, err = schema.Resolve(batch.Schema(), want, schema.ResolveOptions{File: c.URL}); err != nil {
				batch.Release()
				return err
			}
		}
		out, err := res.Batch(c.alloc(), batch)
		batch.Release()
		if err != nil {
			return err
		}
		if err := send(item{batch: out, at: []mark{{file: c.URL}}}); err != nil {
			return err
		}
	}
	return nil
}
