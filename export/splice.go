package export

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/read"
	"github.com/sluicelake/sluice/hudi/splice"
	"github.com/sluicelake/sluice/storage"
)

// remoteReads are the requests that a copy from a store that is no file system has under way.
const remoteReads = 4

// splicing copies the base files of one task that need no change, column chunk by column chunk, and leaves the others.
type splicing struct {
	job    *job
	sink   *sink // names the files and keeps what is done
	reader *read.Reader
	scope  engine.Scope
	stats  *engine.Stats

	copied int
	why    map[string]int // base files that were not copied, by reason

	writer *splice.Writer
	shape  *splice.Projection // of the file that is open
	body   *storage.Writer
	passed int64 // bytes of the slice that is copied
}

// candidate is a base file that can be copied.
type candidate struct {
	file *splice.File
	part *splice.Projection
}

// splices reports whether files of this export can be copied at all.
func (j *job) splices() bool {
	return j.cfg.Format == Parquet && len(j.layout.names) == 0 && len(j.cfg.Transformers) == 0
}

// run copies what can be copied of the slices and gives back the rest.
func (s *splicing) run(ctx context.Context, slices []filegroup.Slice) (rest []filegroup.Slice, err error) {
	found := make([]*candidate, len(slices)) // nil: decoded
	defer func() {
		for _, c := range found {
			if c != nil {
				err = errors.Join(err, c.file.Close())
			}
		}
		if err != nil && s.body != nil {
			s.body.Abort()
		}
	}()
	s.why = map[string]int{}
	skip := s.surelySmall(slices)
	for i, sl := range slices {
		c, reason := (*candidate)(nil), joined
		if !skip(sl) {
			c, reason = s.look(ctx, sl)
		}
		if reason != "" {
			s.why[reason]++
			continue
		}
		found[i] = c
	}
	if err := s.leaveSmall(found); err != nil {
		return nil, err
	}
	for i, c := range found {
		if c == nil {
			rest = append(rest, slices[i])
			continue
		}
		if err := s.copy(ctx, c); err != nil {
			return nil, fmt.Errorf("partition %q, file group %s: %w", slices[i].Partition, slices[i].FileID, err)
		}
		s.done(c, slices[i])
	}
	return rest, s.finish()
}

// joined is why files of small row groups are decoded.
const joined = "its row groups are small and are joined with others"

// surelySmall tells the files that need not be opened to know that their row groups are small, when there are several.
func (s *splicing) surelySmall(in []filegroup.Slice) func(filegroup.Slice) bool {
	small := func(sl filegroup.Slice) bool { return len(sl.Logs) == 0 && sl.Bytes() < s.job.cfg.SmallRowGroup }
	n := 0
	for _, sl := range in {
		if small(sl) {
			n++
		}
	}
	return func(sl filegroup.Slice) bool { return n > 1 && small(sl) }
}

// look opens a slice's base file, if it can be copied. A file that can't be opened is left to the decoding path, whose error
// is the better one.
func (s *splicing) look(ctx context.Context, sl filegroup.Slice) (*candidate, string) {
	stored, reason := s.reader.Stored(sl)
	if reason != "" {
		return nil, reason
	}
	obj, err := s.job.snap.Source().Store.Open(ctx, sl.Base.Name)
	if err != nil {
		return nil, "it can't be opened"
	}
	f, err := splice.Open(ctx, sl.Base.Name, obj, basefile.Options{})
	if err != nil {
		return nil, "it can't be opened"
	}
	want := splice.Want{Columns: stored.Columns, Constants: stored.Constants, Int96: s.job.cfg.Timestamps == Int96}
	if !s.job.cfg.anyCodec {
		want.Codec = s.job.cfg.Compression
	}
	part, reason := splice.CanCopy(f, want)
	if reason != "" {
		_ = f.Close() // read only: nothing to lose
		return nil, reason
	}
	return &candidate{file: f, part: part}, ""
}

// leaveSmall leaves files of small row groups to the decoding path where that makes fewer of them: there are several, or
// other files are decoded anyway.
func (s *splicing) leaveSmall(found []*candidate) error {
	groups, others := 0, false
	small := func(c *candidate) bool {
		return c.part.RowGroups() > 0 && c.part.Bytes()/int64(c.part.RowGroups()) < s.job.cfg.SmallRowGroup
	}
	for _, c := range found {
		switch {
		case c == nil:
			others = true
		case small(c):
			groups += c.part.RowGroups()
		}
	}
	if groups == 0 || groups == 1 && !others {
		return nil
	}
	for i, c := range found {
		if c == nil || !small(c) {
			continue
		}
		found[i] = nil
		s.why[joined]++
		if err := c.file.Close(); err != nil {
			return err
		}
	}
	return nil
}

// copy appends a file to the output that is open, or to the next one where that has another form. A file without rows gives
// nothing.
func (s *splicing) copy(ctx context.Context, c *candidate) error {
	if c.part.RowGroups() == 0 {
		return nil
	}
	if s.shape != nil && !s.shape.Fits(c.part) {
		if err := s.finish(); err != nil {
			return err
		}
	}
	if s.shape == nil {
		s.shape = c.part
		s.body = storage.Create(ctx, s.job.target, s.sink.next(c.part.Codec()), storage.PutOptions{})
		o := splice.WriterOptions{Progress: func(n int64) { s.passed += n; s.scope.Progress(0, n) }}
		if !s.job.snap.Source().Store.Traits().Dirs {
			o.ReadAhead = remoteReads
		}
		s.writer = splice.NewWriter(s.body, o)
	}
	return s.writer.Append(ctx, c.part)
}

// done counts a slice that was copied. Its meta columns and footer were not read, but there is no more to come of it.
func (s *splicing) done(c *candidate, sl filegroup.Slice) {
	s.copied++
	s.stats.Rows += c.part.Rows()
	s.stats.BytesRead += sl.Bytes()
	s.scope.Progress(c.part.Rows(), max(sl.Bytes()-s.passed, 0))
	s.passed = 0
}

// finish completes the output that is open.
func (s *splicing) finish() error {
	if s.shape == nil {
		return nil
	}
	s.shape = nil
	if err := s.writer.Close(); err != nil {
		return err
	}
	if err := s.body.Close(); err != nil {
		return err
	}
	s.sink.done = append(s.sink.done, wrote{Name: s.body.Info().Name, Size: s.body.Info().Size, Rows: s.writer.Rows()})
	return nil
}
