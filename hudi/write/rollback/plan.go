package rollback

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/logfile"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/hudi/write/marker"
	"github.com/sluicelake/sluice/storage"
)

// planOf lists what a write left: by its markers, or, where it has none, by a listing of the whole table. Base files of the
// write are deleted. Of log files those are deleted that nobody but the write can have put there; where the write added blocks
// to the slice of an older base file, a rollback block is to be written (table format 7.3, versions up to 6).
func planOf(ctx context.Context, t Table, target timeline.Instant) (*timeline.RollbackPlan, error) {
	plan := &timeline.RollbackPlan{
		Instant: &timeline.InstantInfo{Time: target.Time, Action: string(target.Action)}, Version: 1,
		Requests: []timeline.RollbackRequest{},
	}
	p := planner{t: t, at: target.Time, delta: target.Action == timeline.DeltaCommit, plan: plan}
	markers, found, err := marker.List(ctx, t.Store, target.Time)
	if err != nil {
		return nil, err
	}
	if found && target.Pending() {
		return plan, p.byMarkers(ctx, markers)
	}
	return plan, p.byListing(ctx)
}

type planner struct {
	t     Table
	at    string
	delta bool // the write may have put blocks into logs of older slices
	plan  *timeline.RollbackPlan
}

func (p *planner) remove(partition, file string) {
	p.plan.Requests = append(p.plan.Requests, timeline.RollbackRequest{
		Partition: partition, Delete: []string{file}, LogBlocks: map[string]int64{},
	})
}

func (p *planner) block(partition string, log logfile.Name, file string, size int64) {
	for i := range p.plan.Requests {
		r := &p.plan.Requests[i]
		if r.Partition == partition && r.FileID == log.FileID && r.BaseInstant == log.Instant {
			r.LogBlocks[file] = size
			return
		}
	}
	p.plan.Requests = append(p.plan.Requests, timeline.RollbackRequest{
		Partition: partition, FileID: log.FileID, BaseInstant: log.Instant,
		Delete: []string{}, LogBlocks: map[string]int64{file: size},
	})
}

// byMarkers asks the logs of the groups that the write appended to: a marker names the log file, or in releases before 0.14
// an imaginary base file, and the writer may have died before it wrote anything.
func (p *planner) byMarkers(ctx context.Context, markers []marker.Marker) error {
	groups := map[string]map[string]bool{} // partition → file ids
	for i, m := range markers {
		if i > 0 && markers[i-1].Path == m.Path {
			continue // the same file under two kinds (trap 26)
		}
		partition, file := m.Partition(), m.File()
		log, isLog := logfile.ParseName(file)
		base, isBase := filegroup.ParseBaseName(file)
		switch {
		case isLog && p.own(log), isBase && m.Kind != marker.Append && base.Instant == p.at:
			p.remove(partition, file)
			continue
		case isLog && !log.CDC:
		case isBase && m.Kind == marker.Append:
			log.FileID = base.FileID
		default:
			return fmt.Errorf("marker %s of %s names a file that the write can't have made", m.Path, p.at)
		}
		if groups[partition] == nil {
			groups[partition] = map[string]bool{}
		}
		groups[partition][log.FileID] = true
	}
	for _, partition := range sortedKeys(groups) {
		for info, err := range p.t.Store.List(ctx, partition, storage.ListOptions{}) {
			if err != nil {
				return fmt.Errorf("list partition %q: %w", partition, err)
			}
			if log, ok := logfile.ParseName(path.Base(info.Name)); ok && !info.Dir && groups[partition][log.FileID] && !p.own(log) {
				if err := p.ask(ctx, partition, log, info); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// own reports whether nobody but the write can have made the log file: change logs, and the logs of a slice that the write
// itself opened. Logs on a compaction's instant are of later writes.
func (p *planner) own(log logfile.Name) bool {
	return log.Instant == p.at && (log.CDC || p.delta)
}

func (p *planner) byListing(ctx context.Context) error {
	files, err := filegroup.List(ctx, p.t.Store)
	if err != nil {
		return err
	}
	folders := map[string][]storage.Info{}
	for _, partition := range files.Partitions() {
		folders[partition] = files.In(partition)
	}
	for folder, in := range files.Unmarked() {
		folders[folder] = in
	}
	for _, partition := range sortedKeys(folders) {
		for _, info := range folders[partition] {
			file := path.Base(info.Name)
			if log, ok := logfile.ParseName(file); ok {
				switch {
				case p.own(log):
					p.remove(partition, file)
				case p.delta && !log.CDC && log.Instant < p.at:
					if err := p.ask(ctx, partition, log, info); err != nil {
						return err
					}
				}
			} else if base, ok := filegroup.ParseBaseName(file); ok && base.Instant == p.at && base.Ext != "" {
				p.remove(partition, file)
			}
		}
	}
	return nil
}

// ask plans a rollback block where a log holds, or may hold, blocks of the write.
func (p *planner) ask(ctx context.Context, partition string, log logfile.Name, info storage.Info) error {
	holds, err := holdsBlocks(ctx, p.t.Store, info.Name, func(b logfile.Block) bool {
		return b.Type == logfile.Corrupt || b.Type != logfile.Command && b.Header.InstantTime == p.at
	})
	if err != nil {
		return err
	}
	if holds {
		p.block(partition, log, path.Base(info.Name), info.Size)
	}
	return nil
}

// holdsBlocks reports whether a block of a log file passes. It reads no contents.
func holdsBlocks(ctx context.Context, store storage.Store, name string, pass func(logfile.Block) bool) (bool, error) {
	obj, err := store.Open(ctx, name)
	if err != nil {
		return false, err
	}
	defer func() { _ = obj.Close() }()
	for b, err := range logfile.Blocks(ctx, obj) {
		if err != nil {
			return false, fmt.Errorf("read the blocks of %s: %w", name, err)
		}
		if pass(b) {
			return true, nil
		}
	}
	return false, nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, strings.Compare)
	return keys
}
