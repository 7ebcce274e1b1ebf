package export

import (
	"context"
	"errors"
	"fmt"
	"io"

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
}

// candidate is a base file that can be copied.
type candidate struct {
	slice filegroup.Slice
	file  *splice.File
	part  *splice.Projection
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
	var alike []*candidate // for one file
	for i, c := range found {
		switch {
		case c == nil:
			rest = append(rest, slices[i])
			continue
		case c.part.RowGroups() == 0: // without rows it gives nothing
			s.done(c, 0)
			continue
		case len(alike) > 0 && !alike[0].part.Fits(c.part):
			if err := s.write(ctx, alike); err != nil {
				return nil, err
			}
			alike = nil
		}
		alike = append(alike, c)
	}
	return rest, s.write(ctx, alike)
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
	return &candidate{slice: sl, file: f, part: part}, ""
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

// write makes one file of those that are alike.
func (s *splicing) write(ctx context.Context, alike []*candidate) error {
	if len(alike) == 0 {
		return nil
	}
	var rows int64
	name := s.sink.next(alike[0].part.Codec())
	info, err := storage.PutFunc(ctx, s.job.target, name, storage.PutOptions{}, func(body io.Writer) error {
		var passed int64 // bytes of the slice that is copied
		o := splice.WriterOptions{Checksums: s.job.cfg.Verify, Progress: func(n int64) { passed += n; s.scope.Progress(0, n) }}
		if !s.job.snap.Source().Store.Traits().Dirs {
			o.ReadAhead = remoteReads
		}
		w := splice.NewWriter(body, o)
		for _, c := range alike {
			if err := w.Append(ctx, c.part); err != nil {
				return fmt.Errorf("partition %q, file group %s: %w", c.slice.Partition, c.slice.FileID, err)
			}
			s.done(c, passed)
			passed = 0
		}
		rows = w.Rows()
		return w.Close()
	})
	if err != nil {
		return err
	}
	s.sink.done = append(s.sink.done, wrote{Name: info.Name, Size: info.Size, Rows: rows})
	return nil
}

// done counts a slice that was copied. Its meta columns and footer were not read, but there is no more to come of it.
func (s *splicing) done(c *candidate, passed int64) {
	s.copied++
	s.stats.Rows += c.part.Rows()
	s.stats.BytesRead += c.slice.Bytes()
	s.scope.Progress(c.part.Rows(), max(c.slice.Bytes()-passed, 0))
}
