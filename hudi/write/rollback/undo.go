package rollback

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/logfile"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/storage"
)

// rollbackToken is the write token of rollback blocks, as Apache Hudi's contextless writers have it (table format 4.1).
const rollbackToken = "1-0-1"

// undo does what a plan says, as often as it is asked to, and puts what it did into meta.
func undo(ctx context.Context, t Table, at string, plan *timeline.RollbackPlan, meta *timeline.RollbackMetadata) error {
	for _, req := range plan.Requests {
		p := meta.Partitions[req.Partition]
		if p.Deleted == nil {
			p = timeline.RollbackPartition{
				Partition: req.Partition, Deleted: []string{}, Failed: []string{},
				RollbackLogs: map[string]int64{}, FailedLogFiles: map[string]int64{},
			}
		}
		for _, file := range req.Delete {
			name := storage.Join(req.Partition, file)
			if err := t.Store.Delete(ctx, name); err != nil {
				return fmt.Errorf("delete %s: %w", name, err)
			}
			p.Deleted = append(p.Deleted, file)
			meta.FilesDeleted++
		}
		if len(req.LogBlocks) > 0 {
			file, size, err := putBlock(ctx, t, at, plan.Instant.Time, req)
			if err != nil {
				return err
			}
			p.RollbackLogs[file] = size
			for log, n := range req.LogBlocks {
				p.FailedLogFiles[log] = n
			}
		}
		meta.Partitions[req.Partition] = p
	}
	for _, partition := range sortedKeys(meta.Partitions) {
		if err := dropEmptyPartition(ctx, t.Store, partition, plan.Instant.Time); err != nil {
			return err
		}
	}
	return nil
}

// putBlock writes a rollback block as the next log version of a slice, unless one for this write is there already, and gives
// the name and size of the file.
func putBlock(ctx context.Context, t Table, at, target string, req timeline.RollbackRequest) (string, int64, error) {
	id, base := req.FileID, req.BaseInstant
	for log := range req.LogBlocks { // the plan of another release may leave these two empty
		if n, ok := logfile.ParseName(log); ok {
			id, base = n.FileID, n.Instant
		}
	}
	highest := 0
	for info, err := range t.Store.List(ctx, req.Partition, storage.ListOptions{}) {
		if err != nil {
			return "", 0, fmt.Errorf("list partition %q: %w", req.Partition, err)
		}
		file := path.Base(info.Name)
		log, ok := logfile.ParseName(file)
		if !ok || info.Dir || log.CDC || log.FileID != id || log.Instant != base {
			continue
		}
		highest = max(highest, log.Version)
		there, err := holdsBlocks(ctx, t.Store, info.Name, func(b logfile.Block) bool {
			return b.Type == logfile.Command && b.Header.TargetInstant == target
		})
		if err != nil {
			return "", 0, err
		}
		if there {
			return file, info.Size, nil
		}
	}
	body, err := logfile.AppendBlock(nil, logfile.Command, logfile.Header{InstantTime: at, TargetInstant: target, Command: "0"}, nil)
	if err != nil {
		return "", 0, err
	}
	name := logfile.Name{FileID: id, Instant: base, Version: highest + 1, Token: rollbackToken}.String()
	opts := storage.PutOptions{IfAbsent: true, Size: int64(len(body))}
	if _, err := t.Store.Put(ctx, storage.Join(req.Partition, name), bytes.NewReader(body), opts); err != nil {
		return "", 0, fmt.Errorf("write the rollback block of %s: %w", target, err)
	}
	return name, int64(len(body)), nil
}

// dropEmptyPartition removes the marker file of a partition that the write made and that nothing else lies in.
func dropEmptyPartition(ctx context.Context, store storage.Store, partition, target string) error {
	marker := ""
	for info, err := range store.List(ctx, partition, storage.ListOptions{}) {
		if err != nil {
			return fmt.Errorf("list partition %q: %w", partition, err)
		}
		if path.Base(info.Name) != ".hoodie_partition_metadata" {
			return nil
		}
		marker = info.Name
	}
	if marker == "" || partition == "" {
		return nil
	}
	text, err := storage.ReadAll(ctx, store, marker, 1<<20)
	if errors.Is(err, storage.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	props, err := config.ParseProperties(text)
	if err != nil {
		return nil
	}
	if made, _ := props.Get("commitTime"); !strings.HasPrefix(target, made) { // a part, where it was cut off
		return nil
	}
	if err := store.Delete(ctx, marker); err != nil {
		return err
	}
	if store.Traits().Dirs {
		_ = store.Delete(ctx, partition) // an empty folder is nobody's partition; one that is not empty stays
	}
	return nil
}
