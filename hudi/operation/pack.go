package operation

import (
	"context"
	"sort"

	"github.com/sluicelake/sluice/hudi/index"
	"github.com/sluicelake/sluice/hudi/keygen"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/hudi/write"
)

// task is one file group to rewrite, or new file groups to write.
type task struct {
	slot    int32 // to rewrite; -1: new ones
	home    int32 // whose rows are added, those from..from+n; -1: none
	from, n int64
	fileID  string // of the first new file group
	cost    int64  // bytes, about
}

// pack says which file groups are written: those with updates, small ones that inserts fill up, and new ones (tools F.5).
func (r *routed) pack(ctx context.Context) ([]task, error) {
	j := r.j
	byslot := map[int32]*task{}
	var order []int32
	rewrite := func(id int32) *task {
		t := byslot[id]
		if t == nil {
			t = &task{slot: id, home: -1, cost: j.slots[id].Base.Size}
			byslot[id] = t
			order = append(order, id)
		}
		return t
	}
	for _, id := range r.updates.Targets() {
		rewrite(id)
	}
	for id := range r.gone {
		rewrite(id)
	}
	var partitions []string
	for _, h := range r.homes {
		partitions = append(partitions, j.paths.names[h.partition])
	}
	if err := j.listAll(ctx, partitions); err != nil {
		return nil, err
	}
	var fresh []task
	record := int64(0)
	for id, h := range r.homes {
		rows := r.inserts.Rows(int32(id))
		if rows == 0 {
			continue
		}
		if record == 0 {
			var err error
			if record, err = j.recordSize(ctx); err != nil {
				return nil, err
			}
		}
		if h.slot >= 0 {
			if err := r.fill(h.slot); err != nil {
				return nil, err
			}
			t := rewrite(h.slot)
			t.home, t.n = int32(id), rows
			continue
		}
		from := int64(0)
		if h.bucket == "" {
			from = r.fillSmall(int32(id), rows, record, rewrite)
		}
		fresh = append(fresh, r.split(int32(id), from, rows, record)...)
	}
	tasks := make([]task, 0, len(order)+len(fresh))
	for _, id := range order {
		tasks = append(tasks, *byslot[id])
	}
	tasks = append(tasks, fresh...)
	sort.SliceStable(tasks, func(a, b int) bool { return tasks[a].cost > tasks[b].cost })
	return tasks, nil
}

// fill refuses to add rows to a file group of a bucket that must not change. On merge-on-read tables they would go to its log.
func (r *routed) fill(id int32) error {
	if r.j.slots[id].Base == nil || len(r.j.slots[id].Logs) > 0 {
		return r.j.noLogs()
	}
	return r.changeable(id)
}

// fillSmall gives rows to small files and returns how many.
func (r *routed) fillSmall(home int32, rows, record int64, rewrite func(int32) *task) int64 {
	from := int64(0)
	ids, room := r.j.smallFiles(r.j.paths.names[r.homes[home].partition], record)
	for i, id := range ids {
		n := min(room[i], rows-from)
		if n <= 0 {
			continue
		}
		t := rewrite(id)
		t.home, t.from, t.n = home, from, n
		t.cost += n * record
		from += n
	}
	return from
}

// split cuts the rows of a home from one on in new file groups. A bucket has one file group.
func (r *routed) split(home int32, from, rows, record int64) []task {
	h := r.homes[home]
	if from >= rows {
		return nil
	}
	if h.bucket != "" {
		id := write.NewFileID(0)
		return []task{{slot: -1, home: home, from: from, n: rows - from, fileID: h.bucket + id[len(keygen.BucketText(0)):], cost: (rows - from) * record}}
	}
	each := r.j.sizes.split
	if r.j.sizes.auto {
		each = max(r.j.sizes.max/record, 1)
	}
	var out []task
	for ; from < rows; from += each {
		n := min(each, rows-from)
		out = append(out, task{slot: -1, home: home, from: from, n: n, fileID: write.NewFileID(0), cost: n * record})
	}
	return out
}

// profile is what the inflight instant tells (table format 2.3).
func (r *routed) profile(tasks []task) *timeline.CommitMetadata {
	p := &timeline.CommitMetadata{PartitionToWriteStats: map[string][]timeline.WriteStat{}, ExtraMetadata: map[string]string{}}
	inserts := map[string]int64{}
	planned := Planned{Instant: r.j.txn.Instant()}
	for _, t := range tasks {
		if t.slot < 0 {
			inserts[r.j.paths.names[r.homes[t.home].partition]] += t.n
			planned.Creates++
			planned.Inserts += t.n
			continue
		}
		s := &r.j.slots[t.slot]
		updates := r.updates.Rows(t.slot) + int64(len(r.gone[t.slot]))
		planned.Updated++
		planned.Updates += updates
		planned.Inserts += t.n
		if t.n > 0 {
			inserts[s.Partition] += t.n
		}
		p.PartitionToWriteStats[s.Partition] = append(p.PartitionToWriteStats[s.Partition], timeline.WriteStat{FileID: s.FileID, PrevCommit: s.Instant, NumUpdateWrites: updates, PartitionPath: s.Partition})
	}
	for partition, n := range inserts {
		p.PartitionToWriteStats[partition] = append([]timeline.WriteStat{{PrevCommit: "null", NumInserts: n}}, p.PartitionToWriteStats[partition]...)
	}
	r.j.tell(planned)
	return p
}

// meetsInserts: rows that fill up a file meet the rows of their keys there, unless they may be twins.
func (r *routed) meetsInserts() bool {
	return r.j.kind == Insert && !r.j.keepTwins && r.j.index.Kind != index.Bucket
}
