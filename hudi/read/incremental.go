package read

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/storage"
)

// Range of an incremental query: begin is exclusive, end inclusive. For tables below version 8 both are instants; from
// version 8 on they are completion times, which is what makes incremental reads miss nothing (table format 8).
type Range struct {
	Begin string // "earliest" or "000" means from the first instant
	End   string // empty means the newest
	// ClosedBegin takes the commit at exactly Begin too, as Apache Hudi 1.0.x did.
	ClosedBegin bool
	// FullScan says what happens when files of the range are gone: FullScanDefault follows the releases of the table's
	// version (an error below version 9, a full scan from 9 on).
	FullScan FullScan
	// SkipHoles reads up to the first hole: a write that is still pending below completed ones, in tables below version 8.
	// Without it a hole is an error, because its rows would be missed for ever by who reads on from End.
	SkipHoles bool
}

// normal turns the names of the beginning of time into the empty begin.
func (r Range) normal() Range {
	if strings.EqualFold(r.Begin, "earliest") || strings.Trim(r.Begin, "0") == "" {
		r.Begin, r.ClosedBegin = "", true
	}
	return r
}

// FullScan is the fallback of an incremental query whose files are gone.
type FullScan uint8

// The fallbacks.
const (
	FullScanDefault FullScan = iota
	FullScanNever
	FullScanAllowed
)

// Errors of incremental queries.
var (
	ErrNoMetaFields = errors.New("incremental queries are not supported when meta fields are disabled")
	ErrHole         = errors.New("a pending write lies below completed ones")
	ErrFilesGone    = errors.New("files of the range are gone")
)

// rangeError explains an error of this file with a next step.
type rangeError struct {
	err  error
	text string
	next string
}

func (e *rangeError) Error() string    { return e.err.Error() + ": " + e.text }
func (e *rangeError) Unwrap() error    { return e.err }
func (e *rangeError) NextStep() string { return e.next }

// rowRange are the commit times of the rows that an incremental query returns.
type rowRange struct {
	times map[string]bool // _hoodie_commit_time must be in it
	// or, when times is nil (full scan of a table below version 8), in (begin, end]
	begin, end string
}

func (r *rowRange) contains(t string) bool {
	if r.times != nil {
		return r.times[t]
	}
	return t > r.begin && t <= r.end
}

func (s *Source) planRange(ctx context.Context, q Query) (*Plan, error) {
	if !s.Config.PopulateMetaFields {
		return nil, &rangeError{ErrNoMetaFields, s.Store.URL(), "read a snapshot, or write the table with hoodie.populate.meta.fields=true"}
	}
	r := q.Range.normal()
	if r.End != "" && r.Begin > r.End {
		return nil, fmt.Errorf("the range begins at %s, after its end %s", r.Begin, r.End)
	}
	instants, err := s.instantsIn(ctx, r)
	if err != nil {
		return nil, err
	}
	p := &Plan{src: s, view: s.View, mode: q.Mode}
	newest, _ := s.View.Latest()
	p.instant = newest
	if len(instants) > 0 {
		if err := p.sliceRange(ctx, r, instants); err != nil {
			return nil, err
		}
	}
	return p, p.resolveSchema(ctx, newest, q.Stored)
}

// rangeTime is the time of an instant that a range is about.
func (s *Source) rangeTime(in timeline.Instant) string {
	if s.Config.Layout == 2 && in.Completion != "" {
		return in.Completion
	}
	return in.Time
}

// instantsIn selects the completed writes of a range in the order in which they completed; archived ones too when the
// range begins before the active timeline does.
func (s *Source) instantsIn(ctx context.Context, r Range) ([]timeline.Instant, error) {
	inRange := func(in timeline.Instant) bool {
		t := s.rangeTime(in)
		return in.State == timeline.Completed && in.Action.IsWrite() &&
			(t > r.Begin || r.ClosedBegin && t == r.Begin) && (r.End == "" || t <= r.End)
	}
	all := s.Timeline.Filter(inRange).Instants()
	if s.Config.Layout == 1 {
		var err error
		if all, err = s.checkHoles(r, all); err != nil {
			return nil, err
		}
	}
	first := ""
	if ins := s.Timeline.Completed().Instants(); len(ins) > 0 {
		first = ins[0].Time
	}
	if first == "" || r.Begin < first {
		old, err := timeline.Archive(ctx, s.Store, s.Config, "", "")
		if err != nil {
			return nil, err
		}
		seen := map[string]bool{}
		for _, in := range all {
			seen[in.Time] = true
		}
		for _, in := range old.Filter(inRange).Instants() {
			if !seen[in.Time] { // an instant may be in both while archiving goes on
				all = append(all, in)
			}
		}
	}
	slices.SortFunc(all, func(a, b timeline.Instant) int { return cmp.Compare(s.rangeTime(a), s.rangeTime(b)) })
	return all, nil
}

// checkHoles finds a write that is pending below completed ones.
func (s *Source) checkHoles(r Range, all []timeline.Instant) ([]timeline.Instant, error) {
	for _, in := range s.Timeline.Pending().Instants() {
		if !in.Action.IsWrite() || in.Time <= r.Begin {
			continue
		}
		if clustering, err := s.isClustering(in); err != nil || clustering {
			if err != nil {
				return nil, err
			}
			continue
		}
		after := slices.IndexFunc(all, func(i timeline.Instant) bool { return i.Time > in.Time })
		if after < 0 {
			break
		}
		if !r.SkipHoles {
			return nil, &rangeError{ErrHole, fmt.Sprintf("%s of %s has not completed but %s has", in.Action, in.Time, all[after].Time),
				"wait for it, roll it back if its writer died, or read up to it with end " + in.Time}
		}
		return all[:after], nil
	}
	return all, nil
}

func (s *Source) isClustering(in timeline.Instant) (bool, error) {
	if in.Action != timeline.ReplaceCommit {
		return in.Action == timeline.Clustering, nil
	}
	plan, err := timeline.ReadReplacePlan(context.Background(), s.Store, in)
	if err != nil {
		return false, err
	}
	return plan != nil && plan.Clustering != nil, nil
}

// sliceRange builds the slices of a range out of the files that its commits wrote, and of these only: an incremental query
// of a merge-on-read table merges the blocks of the range without what lies below them.
func (p *Plan) sliceRange(ctx context.Context, r Range, instants []timeline.Instant) error {
	times := map[string]bool{}
	for _, in := range instants {
		times[in.Time] = true
	}
	p.rows = &rowRange{times: times}
	written, replaced, err := p.src.writtenBy(ctx, instants)
	if err != nil {
		return err
	}
	at := ""
	for t := range times {
		at = max(at, t)
	}
	p.view = p.src.View.Only(func(instant string) bool { return times[instant] })
	partitions := make([]string, 0, len(written))
	for partition := range written {
		partitions = append(partitions, partition)
	}
	slices.Sort(partitions)
	for _, partition := range partitions {
		in, err := p.view.Slices(ctx, partition, written[partition], at, p.mode)
		if err != nil {
			return err
		}
		for _, sl := range in {
			// The view knows the replace commits of the active timeline only.
			if !replaced[filegroup.Group{Partition: partition, FileID: sl.FileID}] {
				p.slices = append(p.slices, sl)
			}
		}
	}
	p.inRange = func(instant string) bool { return times[instant] }
	gone, err := p.src.missing(ctx, p.slices)
	if err != nil || gone == nil {
		return err
	}
	return p.fullScan(ctx, r, gone)
}

// fullScan is the fallback: the newest snapshot, of which only rows of the range are kept.
func (p *Plan) fullScan(ctx context.Context, r Range, gone *filegroup.Slice) error {
	if r.FullScan == FullScanNever || r.FullScan == FullScanDefault && p.src.Config.Version < 9 {
		return &rangeError{ErrFilesGone, fmt.Sprintf("the cleaner removed what instant %s wrote to file group %s of partition %q", gone.Instant, gone.FileID, gone.Partition),
			"begin later, or allow a full scan of the newest snapshot filtered by commit time (hoodie.datasource.read.incr.fallback.fulltablescan.enable=true)"}
	}
	var err error
	p.inRange, p.view = nil, p.src.View
	p.slices, err = p.src.slices(ctx, p.src.View, p.instant, p.mode)
	return err
}

// writtenBy collects the files that commits wrote, by partition, and the file groups that they replaced. A file that several
// commits name is listed once.
func (s *Source) writtenBy(ctx context.Context, instants []timeline.Instant) (map[string][]storage.Info, map[filegroup.Group]bool, error) {
	metas := make([]*timeline.CommitMetadata, len(instants))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i, in := range instants {
		g.Go(func() (err error) {
			metas[i], err = s.Commit(gctx, in)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	out := map[string][]storage.Info{}
	replaced := map[filegroup.Group]bool{}
	for _, meta := range metas {
		for partition, ids := range meta.PartitionToReplaceFileIDs {
			for _, id := range ids {
				replaced[filegroup.Group{Partition: partition, FileID: id}] = true
			}
		}
		for partition, stats := range meta.PartitionToWriteStats {
			for _, st := range stats {
				if st.Path == "" || storage.CheckName(st.Path) != nil || seen[st.Path] {
					continue
				}
				if dir := path.Dir(st.Path); dir != partition && !(dir == "." && partition == "") {
					return nil, nil, fmt.Errorf("commit metadata: file %s is listed under partition %q", st.Path, partition)
				}
				seen[st.Path] = true
				out[partition] = append(out[partition], storage.Info{Name: st.Path, Size: st.FileSizeInBytes})
			}
		}
	}
	return out, replaced, nil
}

// missing finds a slice of which a file is gone.
func (s *Source) missing(ctx context.Context, in []filegroup.Slice) (*filegroup.Slice, error) {
	found := make([]bool, len(in))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i, sl := range in {
		g.Go(func() error {
			names := make([]string, 0, 1+len(sl.Logs))
			if sl.Base != nil {
				names = append(names, sl.Base.Name)
			}
			for _, l := range sl.Logs {
				names = append(names, l.Path)
			}
			for _, name := range names {
				_, err := s.Store.Stat(gctx, name)
				if errors.Is(err, storage.ErrNotExist) {
					found[i] = true
					return nil
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if i := slices.Index(found, true); i >= 0 {
		return &in[i], nil
	}
	return nil, nil
}
