package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/read"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/storage"
)

// Severity of a finding.
type Severity string

// The severities.
const (
	// Error: rows are wrong, missing or out of reach for some reader.
	Error Severity = "error"
	// Warning: every reader has the right rows today, but something waits to go wrong, or takes space for nothing.
	Warning Severity = "warning"
	// Info: worth knowing, nothing to do.
	Info Severity = "info"
)

// Code names what was found; it does not change between releases.
type Code string

// The codes.
const (
	PropertiesUnreadable Code = "properties.unreadable"
	PropertiesChecksum   Code = "properties.checksum"
	PropertiesBackup     Code = "properties.backup"
	TimelineUnreadable   Code = "timeline.unreadable"
	TimelineEmpty        Code = "timeline.empty-commit"
	TimelineOrder        Code = "timeline.order"
	TimelineFuture       Code = "timeline.future"
	TimelinePending      Code = "timeline.pending"
	TimelineHole         Code = "timeline.hole"
	FileMissing          Code = "file.missing"
	FileCleaned          Code = "file.old-missing"
	FileSize             Code = "file.size"
	FileUnreadable       Code = "file.unreadable"
	FileRows             Code = "file.rows"
	LegacyLists          Code = "file.legacy-lists"
	BloomUnreadable      Code = "bloom.unreadable"
	BloomMissesKey       Code = "bloom.misses-key"
	KeyRange             Code = "bloom.key-range"
	KeyMissing           Code = "key.missing"
	KeyDuplicate         Code = "key.duplicate"
	KeyInPartitions      Code = "key.in-partitions"
	PartitionUnmarked    Code = "partition.no-marker"
	PartitionMarker      Code = "partition.marker"
	PartitionValue       Code = "partition.value"
	PartitionUnchecked   Code = "partition.unchecked"
	OrphanFile           Code = "orphan.file"
	OrphanMarkers        Code = "orphan.markers"
	OrphanTemporary      Code = "orphan.temporary"
	OrphanMetadata       Code = "orphan.metadata-table"
	RowsUnreadable       Code = "rows.unreadable"
)

// Finding is one thing that is not as it should be.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     Code     `json:"code"`
	Where    string   `json:"where"` // file, folder, instant or property, below the table
	What     string   `json:"what"`
	Do       string   `json:"do,omitempty"` // what a person can do
}

func (f Finding) String() string {
	text := fmt.Sprintf("%s %s %s: %s", f.Severity, f.Code, f.Where, f.What)
	if f.Do != "" {
		text += " (" + f.Do + ")"
	}
	return text
}

// ValidateOptions of Validate. The zero value checks everything.
type ValidateOptions struct {
	// FilesOnly leaves the rows alone: no duplicate keys, bloom filters and partition values.
	FilesOnly bool
	// Memory bounds what the check for duplicate keys holds, in bytes; above it is spilled to TempDir. 0 is 256 MiB.
	Memory  int64
	TempDir string
	Alloc   memory.Allocator
	Zone    *time.Location
	// Now is the clock for ages; nil is time.Now.
	Now func() time.Time
	// Limit bounds the findings of one code; the last one says how many more there are. 0 is 20, below 0 no bound.
	Limit int
}

// Report is the result of Validate.
type Report struct {
	Table    string    `json:"table"`
	Version  int       `json:"version"`
	Instants int       `json:"instants"`
	Files    int       `json:"files"` // in partitions
	Slices   int       `json:"slices"`
	Rows     int64     `json:"rows"` // of the latest snapshot; 0 with FilesOnly
	Findings []Finding `json:"findings"`
}

// Worst is the severity of the worst finding; empty when there is none.
func (r *Report) Worst() Severity {
	worst := Severity("")
	for _, f := range r.Findings {
		if rank(f.Severity) > rank(worst) {
			worst = f.Severity
		}
	}
	return worst
}

func rank(s Severity) int {
	return map[Severity]int{Info: 1, Warning: 2, Error: 3}[s]
}

// Validate checks a table from end to end, whoever wrote it, and changes nothing: properties, timeline, every file that a
// commit names, footers and row counts, keys and bloom filters, partition values against folders, and what lies there for
// nothing. What is wrong with the table is in the report; the error is about the check itself: the store, the context, a
// table version that Sluice does not know.
func Validate(ctx context.Context, store storage.Store, o ValidateOptions) (*Report, error) {
	if o.Memory <= 0 {
		o.Memory = read.DefaultMemory
	}
	if o.Alloc == nil {
		o.Alloc = memory.DefaultAllocator
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Limit == 0 {
		o.Limit = 20
	}
	c := &checker{store: store, o: o, report: &Report{Table: store.URL(), Findings: []Finding{}}, counts: map[Code]int{}}
	err := c.run(ctx)
	c.finish()
	return c.report, err
}

type checker struct {
	store  storage.Store
	o      ValidateOptions
	report *Report

	mu     sync.Mutex // of the findings
	counts map[Code]int

	cfg *config.Table
	tl  timeline.Timeline
	vis timeline.Visibility

	commits map[string]*timeline.CommitMetadata // completed writes that can be read
	deleted map[string]bool                     // files that cleans, rollbacks and restores say they deleted
}

func (c *checker) add(s Severity, code Code, where, do, what string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[code]++
	if n := c.counts[code]; c.o.Limit < 0 || n <= c.o.Limit {
		c.report.Findings = append(c.report.Findings, Finding{s, code, where, fmt.Sprintf(what, args...), do})
	}
}

// finish tells of findings that were left out, and puts the worst first.
func (c *checker) finish() {
	for code, n := range c.counts {
		if c.o.Limit > 0 && n > c.o.Limit {
			s := Info
			for _, f := range c.report.Findings {
				if f.Code == code {
					s = f.Severity
				}
			}
			c.report.Findings = append(c.report.Findings, Finding{s, code, "", fmt.Sprintf("and %d more", n-c.o.Limit), ""})
		}
	}
	slices.SortStableFunc(c.report.Findings, func(a, b Finding) int {
		return cmp.Or(rank(b.Severity)-rank(a.Severity), strings.Compare(string(a.Code), string(b.Code)), strings.Compare(b.Where, "")-strings.Compare(a.Where, ""), strings.Compare(a.Where, b.Where))
	})
}

func (c *checker) run(ctx context.Context) error {
	ok, err := c.properties(ctx)
	if !ok || err != nil {
		return err
	}
	if c.tl, err = timeline.Load(ctx, c.store, c.cfg); err != nil {
		return err
	}
	c.vis = c.tl.Visibility()
	c.report.Instants = c.tl.Len()
	if err := c.timeline(ctx); err != nil {
		return err
	}
	files, err := filegroup.List(ctx, c.store)
	if err != nil {
		return err
	}
	c.report.Files = files.Count()
	if err := c.files(ctx, files); err != nil {
		return err
	}
	if err := c.leftovers(ctx); err != nil {
		return err
	}
	return c.rows(ctx)
}

// properties reports false when nothing more can be said about the table.
func (c *checker) properties(ctx context.Context) (bool, error) {
	text, err := storage.ReadAll(ctx, c.store, config.File, config.MaxPropertiesSize)
	const restore = "put a whole copy in its place; hoodie.properties.backup may be one"
	switch {
	case errors.Is(err, storage.ErrNotExist):
		c.add(Error, PropertiesUnreadable, config.File, restore, "is missing")
	case err != nil:
		return false, err
	default:
		props, err := config.ParseProperties(text)
		switch _, summed := props0(props).Get(config.TableChecksum); {
		case err != nil:
			c.add(Error, PropertiesUnreadable, config.File, restore, "%v", err)
		case summed && !props.ValidChecksum():
			c.add(Error, PropertiesChecksum, config.File, restore, "%s does not fit database and table name: the file was cut off, or edited", config.TableChecksum)
		case !summed:
			c.add(Info, PropertiesChecksum, config.File, "", "has no %s: it was written by a release before 0.11", config.TableChecksum)
		}
	}
	if _, err := c.store.Stat(ctx, config.Backup); err == nil {
		c.add(Warning, PropertiesBackup, config.Backup, "the next writer tidies up", "an update of the properties was cut off")
	} else if !errors.Is(err, storage.ErrNotExist) {
		return false, err
	}
	c.cfg, err = config.Load(ctx, c.store)
	if err == nil {
		c.report.Version = c.cfg.Version
		return true, nil
	}
	if errors.Is(err, config.ErrInvalid) && len(c.report.Findings) > 0 {
		return false, nil
	}
	if errors.Is(err, config.ErrInvalid) {
		c.add(Error, PropertiesUnreadable, config.File, restore, "%v", err)
		return false, nil
	}
	return false, err
}

func props0(p *config.Properties) *config.Properties {
	if p == nil {
		return config.NewProperties()
	}
	return p
}

// timeline reads every completed instant and looks at the order and the age of all.
func (c *checker) timeline(ctx context.Context) error {
	c.commits, c.deleted = map[string]*timeline.CommitMetadata{}, map[string]bool{}
	now := timeline.FormatTime(c.o.Now().Add(24*time.Hour), c.zone())
	newest := ""
	for _, in := range c.tl.Completed().Writes().Instants() {
		newest = max(newest, in.Time)
	}
	var last timeline.Instant
	for _, in := range c.tl.Instants() {
		if in.Time == last.Time && in.Action.Completes().IsWrite() && last.Action.Completes().IsWrite() {
			c.add(Error, TimelineOrder, in.File, "keep the one whose files are there", "has the same time as %s", last.File)
		}
		if in.Action.Completes().IsWrite() {
			last = in
		}
		if in.Time > now && in.Action.Completes().IsWrite() {
			c.add(Warning, TimelineFuture, in.File, "let every writer use one time zone and a clock that is right", "lies more than a day ahead of this machine's clock")
		}
		if in.Pending() {
			c.pending(ctx, in, newest)
			continue
		}
		if c.tl.Layout() == 2 && in.Completion != "" && in.Completion < in.Time {
			c.add(Error, TimelineOrder, in.File, "let every writer use one time zone and a clock that is right", "completed before it was requested: incremental queries miss it")
		}
		if err := c.body(ctx, in); err != nil {
			if ctx.Err() != nil || errors.Is(err, storage.ErrTemporary) || errors.Is(err, storage.ErrPermission) {
				return err
			}
			c.unreadable(in, err)
		}
	}
	return nil
}

func (c *checker) zone() *time.Location {
	if c.o.Zone != nil && c.cfg.TimelineZone != "UTC" {
		return c.o.Zone
	}
	return timeline.Zone(c.cfg)
}

func (c *checker) unreadable(in timeline.Instant, err error) {
	severity := Warning
	if in.Action.IsWrite() {
		severity = Error
	}
	if errors.Is(err, timeline.ErrEmptyCommit) {
		c.add(severity, TimelineEmpty, in.File, "sluice table rollback "+in.Time, "is empty: nobody knows what it wrote")
		return
	}
	c.add(severity, TimelineUnreadable, in.File, "restore the file, or roll the instant back", "%v", err)
}

// pending says how old a pending instant is, and whether completed writes stand behind it.
func (c *checker) pending(ctx context.Context, in timeline.Instant, newest string) {
	age := "of unknown age"
	if at, err := timeline.ParseTime(in.Time, c.zone()); err == nil {
		age = fmt.Sprintf("since %s (%s)", at.UTC().Format(time.RFC3339), c.o.Now().Sub(at).Round(time.Minute))
	}
	severity, do := Warning, "if its writer is dead: sluice table rollback, or let the next write do it"
	write := in.Action.IsWrite()
	if in.Action == timeline.ReplaceCommit { // the plan of a clustering, maybe
		plan, err := timeline.ReadReplacePlan(ctx, c.store, in)
		write = err != nil || plan.Clustering == nil
	}
	if !write {
		severity, do = Info, ""
	}
	if in.Action == timeline.Rollback || in.Action == timeline.Restore || in.Action == timeline.Clean {
		severity, do = Warning, "the next writer finishes it"
	}
	c.add(severity, TimelinePending, in.File, do, "%s is %s %s", in.Action, strings.ToLower(in.State.String()), age)
	if write && in.Time < newest {
		c.add(Warning, TimelineHole, in.File, do, "completed writes stand behind it: incremental readers wait or fail")
	}
}

// body reads what a completed instant says.
func (c *checker) body(ctx context.Context, in timeline.Instant) error {
	switch in.Action {
	case timeline.Commit, timeline.DeltaCommit, timeline.ReplaceCommit:
		m, err := timeline.ReadCommit(ctx, c.store, in)
		if err != nil {
			return err
		}
		c.commits[in.Time] = m
	case timeline.Clean:
		m, err := timeline.ReadClean(ctx, c.store, in)
		if err != nil {
			return err
		}
		for partition, p := range m.Partitions {
			for _, f := range p.Deleted {
				c.deleted[storage.Join(partition, f)] = true
			}
		}
	case timeline.Rollback:
		m, err := timeline.ReadRollback(ctx, c.store, in)
		if err != nil {
			return err
		}
		c.rolledBack(m)
	case timeline.Restore:
		m, err := timeline.ReadRestore(ctx, c.store, in)
		if err != nil {
			return err
		}
		for _, list := range m.Rollbacks {
			for i := range list {
				c.rolledBack(&list[i])
			}
		}
	case timeline.Savepoint:
		_, err := timeline.ReadSavepoint(ctx, c.store, in)
		return err
	}
	return nil
}

func (c *checker) rolledBack(m *timeline.RollbackMetadata) {
	for partition, p := range m.Partitions {
		for _, f := range p.Deleted {
			c.deleted[storage.Join(partition, f)] = true
		}
	}
}
