package operation

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"golang.org/x/sync/errgroup"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/storage"
)

// slot is a file group that is there, at its newest slice.
type slot struct {
	filegroup.Slice
	partition int32 // its number
}

// listers is how many partitions are listed at once.
const listers = 16

// list gives the slots of a partition.
func (j *job) list(ctx context.Context, partition string) ([]int32, error) {
	err := j.listAll(ctx, []string{partition})
	return j.inPartition(partition), err
}

func (j *job) take(partition string, found []filegroup.Slice) {
	id := j.paths.id(partition)
	for _, s := range found {
		j.inPart[id] = append(j.inPart[id], int32(len(j.slots)))
		j.slots = append(j.slots, slot{s, id})
	}
	j.listed[partition] = true
}

func (j *job) inPartition(partition string) []int32 { return j.inPart[j.paths.id(partition)] }

// find lists one folder.
func (j *job) find(ctx context.Context, partition string) ([]filegroup.Slice, error) {
	latest, ok := j.view.Latest()
	if !ok {
		return nil, nil
	}
	var files []storage.Info
	for info, err := range j.store.List(ctx, partition, storage.ListOptions{}) {
		if errors.Is(err, storage.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("list partition %q: %w", partition, err)
		}
		if !info.Dir {
			files = append(files, info)
		}
	}
	return j.view.Slices(ctx, partition, files, latest, filegroup.Snapshot)
}

// listAll finds the slots of some partitions, several at once.
func (j *job) listAll(ctx context.Context, partitions []string) error {
	return j.findAll(ctx, partitions, j.find)
}

// listTable finds the slots of every partition and gives the partitions' paths.
func (j *job) listTable(ctx context.Context) ([]string, error) {
	latest, ok := j.view.Latest()
	if !ok {
		return nil, nil
	}
	files, err := filegroup.List(ctx, j.store)
	if err != nil {
		return nil, err
	}
	partitions := files.Partitions()
	return partitions, j.findAll(ctx, partitions, func(ctx context.Context, p string) ([]filegroup.Slice, error) {
		return j.view.Slices(ctx, p, files.In(p), latest, filegroup.Snapshot)
	})
}

// findAll notes the slots of the partitions that are not known yet.
func (j *job) findAll(ctx context.Context, partitions []string, find func(context.Context, string) ([]filegroup.Slice, error)) error {
	var missing []string
	seen := map[string]bool{}
	for _, p := range partitions {
		if !j.listed[p] && !seen[p] {
			missing = append(missing, p)
			seen[p] = true
		}
	}
	found := make([][]filegroup.Slice, len(missing))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(listers)
	for i, p := range missing {
		g.Go(func() (err error) {
			found[i], err = find(gctx, p)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, p := range missing {
		j.take(p, found[i])
	}
	return nil
}

// readFenced finds the file groups that a pending clustering or compaction is about to rewrite, and says which.
func (j *job) readFenced(ctx context.Context) (map[filegroup.Group]string, error) {
	out := map[filegroup.Group]string{}
	for _, in := range j.txn.Timeline().Pending().Instants() {
		switch in.Action {
		case timeline.ReplaceCommit, timeline.Clustering:
			plan, err := timeline.ReadReplacePlan(ctx, j.store, in)
			if err != nil {
				return nil, err
			}
			if plan.Clustering == nil {
				continue
			}
			for _, g := range plan.Clustering.Groups {
				for _, s := range g.Slices {
					out[filegroup.Group{Partition: s.Partition, FileID: s.FileID}] = "clustering " + in.Time
				}
			}
		case timeline.Compaction, timeline.LogCompaction:
			plan, err := timeline.ReadCompactionPlan(ctx, j.store, in)
			if err != nil {
				return nil, err
			}
			for _, o := range plan.Operations {
				out[filegroup.Group{Partition: o.Partition, FileID: o.FileID}] = "compaction " + in.Time
			}
		}
	}
	return out, nil
}

// free refuses to change a file group that a pending clustering or compaction is about to rewrite: one of the two would be lost.
func (j *job) free(id int32) error {
	s := &j.slots[id]
	if by, ok := j.fenced[filegroup.Group{Partition: s.Partition, FileID: s.FileID}]; ok {
		return fmt.Errorf("file group %s in partition %q is part of the pending %s, and must not change before that has ended: finish it or roll it back with Apache Hudi, then write again", s.FileID, s.Partition, by)
	}
	return nil
}

// smallFiles gives the slots of a partition that inserts may fill up, and how many rows each takes (tools F.5).
func (j *job) smallFiles(partition string, recordSize int64) (ids []int32, room []int64) {
	if j.sizes.small <= 0 {
		return nil, nil
	}
	onRead := j.cfg.Type == config.MergeOnRead
	for _, id := range j.inPartition(partition) {
		s := &j.slots[id]
		_, busy := j.fenced[filegroup.Group{Partition: s.Partition, FileID: s.FileID}]
		if s.Base == nil || busy || s.Base.Size >= j.sizes.small || onRead && len(s.Logs) > 0 {
			continue
		}
		ids = append(ids, id)
	}
	if onRead { // the smallest first, and a few of them
		sort.SliceStable(ids, func(a, b int) bool { return j.slots[ids[a]].Base.Size < j.slots[ids[b]].Base.Size })
		ids = ids[:min(int64(len(ids)), j.sizes.smallGroups)]
	}
	for _, id := range ids {
		room = append(room, max((j.sizes.max-j.slots[id].Base.Size)/recordSize, 0))
	}
	return ids, room
}

// recordSize is the average size of a record in bytes: that of the newest commit large enough to tell (tools F.5).
func (j *job) recordSize(ctx context.Context) (int64, error) {
	enough := int64(j.sizes.threshold * float64(j.sizes.small))
	commits := j.txn.Timeline().Completed().Writes().Instants()
	for i := len(commits) - 1; i >= 0; i-- {
		if commits[i].Action != timeline.Commit {
			continue
		}
		meta, err := timeline.ReadCommit(ctx, j.store, commits[i])
		if err != nil {
			return 0, err
		}
		bytes, rows := int64(0), int64(0)
		for _, list := range meta.PartitionToWriteStats {
			for _, s := range list {
				bytes, rows = bytes+s.TotalWriteBytes, rows+s.NumWrites
			}
		}
		if bytes > enough && rows > 0 {
			return max((bytes+rows-1)/rows, 1), nil
		}
	}
	return j.sizes.record, nil
}
