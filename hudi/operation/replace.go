package operation

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/index"
)

// overwrite writes the rows to new file groups, and gives the file groups that they replace.
func (j *job) overwrite(ctx context.Context) (map[string][]string, error) {
	var written []string
	var err error
	if j.index.Kind == index.Bucket {
		if err = j.change(ctx); err == nil {
			for _, s := range j.stats.list() {
				written = append(written, s.PartitionPath)
			}
		}
	} else if err = j.txn.Inflight(ctx, nil); err == nil {
		written, err = j.load(ctx)
	}
	if err != nil {
		return nil, err
	}
	if j.kind == InsertOverwriteTable {
		if written, err = j.listTable(ctx); err != nil {
			return nil, err
		}
	}
	return j.groups(ctx, written)
}

// deletePartitions gives the file groups of the partitions to delete: those that the options name, or those of the rows.
func (j *job) deletePartitions(ctx context.Context) (map[string][]string, error) {
	if err := j.txn.Inflight(ctx, nil); err != nil {
		return nil, err
	}
	there, err := j.listTable(ctx)
	if err != nil {
		return nil, err
	}
	wanted, err := j.named(there)
	if err != nil {
		return nil, err
	}
	if len(j.partitions) == 0 {
		seen := map[int32]bool{}
		err := j.keys.each(ctx, func(batch arrow.RecordBatch) error {
			for _, p := range partitionsOf(batch) {
				seen[p] = true
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		for p := range seen {
			if name := j.paths.names[p]; slices.Contains(there, name) {
				wanted = append(wanted, name)
			}
		}
	}
	return j.groups(ctx, wanted)
}

// named gives the partitions that hoodie.datasource.write.partitions.to.delete names: * stands for any text, also as %2A.
func (j *job) named(there []string) ([]string, error) {
	var out []string
	for _, pattern := range j.partitions {
		pattern = strings.NewReplacer("%2A", "*", "%2a", "*").Replace(pattern)
		parts := strings.Split(pattern, "*")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		match, err := regexp.Compile("(?s)^" + strings.Join(parts, ".*") + "$")
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", optPartitions, pattern, err)
		}
		for _, p := range there {
			if match.MatchString(p) && !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

// groups gives the file groups of partitions, and refuses those that a pending clustering or compaction is about to rewrite.
func (j *job) groups(ctx context.Context, partitions []string) (map[string][]string, error) {
	if err := j.listAll(ctx, partitions); err != nil {
		return nil, err
	}
	out := map[string][]string{}
	wanted := map[string]bool{}
	for _, p := range partitions {
		wanted[p] = true
	}
	for i := range j.slots {
		s := &j.slots[i]
		if !wanted[s.Partition] {
			continue
		}
		if by, ok := j.fenced[filegroup.Group{Partition: s.Partition, FileID: s.FileID}]; ok {
			return nil, fmt.Errorf("partition %q has file groups in the pending %s, and can't be replaced before that has ended: finish it or roll it back with Apache Hudi, then write again", s.Partition, by)
		}
		out[s.Partition] = append(out[s.Partition], s.FileID)
	}
	return out, nil
}
