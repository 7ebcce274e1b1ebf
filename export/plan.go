package export

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/read"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/storage"
)

// planSource opens the source, pins the instant and decides what goes where.
func (j *job) planSource(ctx context.Context) error {
	t, err := j.readSource(ctx)
	if err != nil {
		return err
	}
	if err := j.countLogs(ctx, t); err != nil {
		return err
	}
	if j.cfg.WithMetadata {
		if last, _ := t.Source().View.Latest(); j.snap.Instant() < last {
			return &UsageError{fmt.Errorf("the metadata table knows the newest state only (instant %s): leave --as-of or --with-metadata out", last)}
		}
	}
	if j.cfg.Format == Hudi {
		if j.cfg.PartitionField != "" || j.cfg.Partitioner != "" {
			j.observe(engine.Noted{Text: "format hudi copies the table's own files: the output partitioning is ignored"})
		}
		return nil
	}
	columns, err := j.cfg.outline(ctx, j.snap.Schema())
	if err != nil {
		return err
	}
	if j.layout, err = newLayout(&j.cfg, columns); err != nil {
		return err
	}
	j.columns = j.layout.read()
	return nil
}

// scan is how the rows of the table are read: with all columns where transformers see them.
func (j *job) scan() read.ScanOptions {
	o := read.ScanOptions{Columns: j.columns, Filter: j.cfg.filter}
	if len(j.cfg.Transformers) > 0 {
		o.Columns = nil
	}
	return o
}

// readings is how often a source is read anew because a cleaner was at work while its files were listed.
const readings = 4

// readSource opens the table and pins the instant. A timeline that is older than the list of files would miss file groups
// whose files a cleaner removed in between, so the timeline is looked at again behind the list.
func (j *job) readSource(ctx context.Context) (*hudi.Table, error) {
	for range readings {
		t, err := hudi.Open(ctx, j.cfg.Source, hudi.Options{Zone: j.cfg.TableZone, Store: j.source})
		if err != nil {
			return nil, err
		}
		src := t.Source()
		if _, ok := src.View.Latest(); !ok {
			return nil, ErrNoCommits
		}
		files, err := src.Files(ctx)
		if err != nil {
			return nil, err
		}
		if len(files.Partitions()) == 0 {
			return nil, ErrNoPartitions
		}
		q, err := j.query(src)
		if err != nil {
			return nil, err
		}
		if j.snap, err = src.Plan(ctx, q); err != nil {
			return nil, err
		}
		now, err := timeline.Load(ctx, src.Store, src.Config)
		if err != nil {
			return nil, err
		}
		if slices.Equal(removals(src.Timeline), removals(now)) {
			return t, nil
		}
	}
	return nil, fmt.Errorf("%s is cleaned so often that its files can't be listed: run the export again when the cleaner has ended", j.source.URL())
}

// removals lists the actions that remove files, in their states.
func removals(tl timeline.Timeline) []string {
	var out []string
	for _, in := range tl.Instants() {
		switch in.Action {
		case timeline.Clean, timeline.Rollback, timeline.Restore:
			out = append(out, fmt.Sprint(in.Time, in.Action, in.State))
		}
	}
	return out
}

// query is the one that was asked for, pinned to what an earlier run was pinned to.
func (j *job) query(src *read.Source) (read.Query, error) {
	q := read.Query{AsOf: j.cfg.AsOf, Mode: filegroup.ReadOptimized}
	if j.cfg.Rows == Snapshot {
		q.Mode = filegroup.Snapshot
	}
	pinned := j.plan != nil && !j.cfg.Overwrite
	if j.cfg.Begin != "" || j.cfg.End != "" {
		if j.cfg.Format == Hudi {
			return q, errors.New("a range of instants can't be exported as a table: choose parquet, json or csv")
		}
		j.end = j.cfg.End
		switch {
		case pinned:
			j.end = j.plan.End
		case j.end == "":
			j.end = newest(src)
		}
		q.Range = &read.Range{Begin: j.cfg.Begin, End: j.end}
		return q, nil
	}
	if pinned && q.AsOf == "" {
		q.AsOf = j.plan.Instant
	}
	return q, nil
}

// newest is the end of an open range: the greatest time that ranges of the table are about.
func newest(src *read.Source) (end string) {
	for _, in := range src.Timeline.Completed().Writes().Instants() {
		at := in.Time
		if src.Config.Layout == 2 && in.Completion != "" {
			at = in.Completion
		}
		end = max(end, at)
	}
	return end
}

// countLogs says how many file groups a read-optimized export is incomplete for.
func (j *job) countLogs(ctx context.Context, t *hudi.Table) error {
	if j.cfg.Rows != ReadOptimized || t.Config().Type != "MERGE_ON_READ" || j.cfg.Begin != "" || j.cfg.End != "" {
		return nil
	}
	whole, err := t.Source().Plan(ctx, read.Query{AsOf: j.cfg.AsOf, Mode: filegroup.Snapshot})
	if err != nil {
		return err
	}
	j.withLogs, j.logOnly = logCounts(whole.Slices())
	if j.withLogs+j.logOnly > 0 {
		j.observe(engine.Noted{Text: fmt.Sprintf("WARNING: this is a read-optimized export of a merge-on-read table: %d file groups have log files that are not merged "+
			"and %d file groups that consist of log files only are left out. Give --query-type snapshot to export every row.", j.withLogs, j.logOnly)})
	}
	return nil
}

// makeTasks cuts the work: files to copy, or packs of slices to read.
func (j *job) makeTasks(ctx context.Context, workers int) (err error) {
	if j.cfg.Format != Hudi {
		j.tasks, err = j.rowTasks(workers)
		return err
	}
	data, meta, err := tableFiles(ctx, j.snap, &j.cfg)
	if err != nil {
		return err
	}
	if !j.cfg.WithMetadata {
		if j.props, err = properties(j.snap.Source().Config, time.Now()); err != nil {
			return err
		}
	}
	if j.props == nil {
		meta = append(meta, storage.Info{Name: path.Join(".hoodie", "hoodie.properties")})
	}
	if j.tasks, err = j.copyTasks(data, "data"); err != nil {
		return err
	}
	j.late, err = j.copyTasks(meta, "timeline")
	return err
}

// sourceGone reports whether a failure is that of a source's file that is not there any more.
func (j *job) sourceGone(err error) bool {
	var e *storage.Error
	return errors.Is(err, storage.ErrNotExist) && errors.As(err, &e) && e.Op != "put" && e.Op != "delete" && within(e.URL, j.source.URL())
}

func within(url, root string) bool {
	return url == root || strings.HasPrefix(url, strings.TrimSuffix(root, "/")+"/") || strings.HasPrefix(root, strings.TrimSuffix(url, "/")+"/")
}

// lookAgain reads the source anew after one of its files was found missing. Where the same instant still has the same data
// files the work goes on, with the timeline files that there are now; otherwise the error says what to do.
func (j *job) lookAgain(ctx context.Context, gone error, attempt int) error {
	gone = fmt.Errorf("%w: %w", engine.ErrRefused, &goneError{err: gone, instant: j.plan.Instant, asked: j.cfg.AsOf != ""})
	if attempt > 0 {
		return gone
	}
	before, late := j.plan.Digest, digest(j.late)
	overwrite := j.cfg.Overwrite
	j.cfg.Overwrite = false // the instant stays that of the plan
	defer func() { j.cfg.Overwrite = overwrite }()
	if _, err := j.readSource(ctx); err != nil {
		return errors.Join(gone, err)
	}
	if err := j.makeTasks(ctx, 0); err != nil {
		return errors.Join(gone, err)
	}
	if digest(j.tasks) != before {
		return gone
	}
	if digest(j.late) == late && j.stillGone(ctx, gone) {
		return gone
	}
	j.observe(engine.Noted{Text: fmt.Sprintf("a file of the source was gone; instant %s still has its data files, trying again", j.plan.Instant)})
	return nil
}

// stillGone looks whether the file of an error is really gone.
func (j *job) stillGone(ctx context.Context, gone error) bool {
	var e *storage.Error
	if !errors.As(gone, &e) || e.Name == "" {
		return true
	}
	name, ok := strings.CutPrefix(storage.Join(e.URL, e.Name), strings.TrimSuffix(j.source.URL(), "/")+"/")
	if !ok {
		return true
	}
	_, err := j.source.Stat(ctx, name)
	return err != nil
}

// goneError says that the table lost files of the instant while it was exported.
type goneError struct {
	err     error
	instant string
	asked   bool // for by the user
}

func (e *goneError) Error() string {
	return fmt.Sprintf("instant %s is not whole any more: %v; it was there when the export was planned, so a cleaner or another writer removed it", e.instant, e.err)
}

func (e *goneError) Unwrap() error { return e.err }

func (e *goneError) NextStep() string {
	if e.asked {
		return "choose a newer instant with --as-of, or leave --as-of out"
	}
	return "run the export again for the newest instant; where cleaning is faster than exporting, let the table keep more commits " +
		"(hoodie.cleaner.commits.retained) or set a savepoint and export it with --as-of"
}
