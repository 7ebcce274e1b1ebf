package export

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/logfile"
	"github.com/sluicelake/sluice/hudi/read"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/storage"
)

// tableFiles names everything that a copy of a table at one instant consists of, in the order in which it is safe to
// write it: data first, the timeline and the properties last. Names are relative to the table.
//
// The set is the original's (exporter A.4): the base files of the visible slices, each partition's marker file, the
// properties, and the state files of every instant up to the snapshot's. Beyond it go the log files when the snapshot
// view was asked for, the schema history of schema-on-read, and the archived completion times that a layout 2 table's
// logs need. Left out, when log files are, are pending instants and the delta
// commits that wrote nothing else: their files are not copied.
func tableFiles(ctx context.Context, snap *read.Plan, c *Config) (data, meta []storage.Info, err error) {
	src := snap.Source()
	files, err := src.Files(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range files.Partitions() {
		if m := files.Marker(p); m != "" {
			data = append(data, storage.Info{Name: m})
		}
	}
	logs := c.WithMetadata
	if c.WithMetadata {
		if data, err = allVersions(data, files, snap.Instant()); err != nil {
			return nil, nil, err
		}
	}
	for _, s := range snap.Slices() {
		if c.WithMetadata {
			break // they are among all versions
		}
		if s.Base != nil {
			data = append(data, storage.Info{Name: s.Base.Name, Size: s.Base.Size})
		}
		for _, l := range s.Logs {
			logs = true
			data = append(data, storage.Info{Name: l.Path, Size: l.Size})
		}
	}
	for _, in := range src.Timeline.Instants() {
		if in.Time > snap.Instant() || in.Pending() && !logs && !keepsPending(in) {
			continue
		}
		if !logs {
			if behind, err := onlyLogs(ctx, src, in); err != nil || behind {
				if err != nil {
					return nil, nil, err
				}
				continue
			}
		}
		for _, name := range in.Files {
			meta = append(meta, storage.Info{Name: name})
		}
	}
	folders := []string{path.Join(".hoodie", ".schema")}
	if logs && src.Config.Layout == 2 {
		folders = append(folders, src.Config.HistoryPath)
	}
	if c.WithArchive {
		folders = append(folders, src.Config.HistoryPath, src.Config.ArchiveFolder)
	}
	if c.WithMetadata {
		folders = append(folders, metadataFolder, indexFolder)
	}
	seen := map[string]bool{}
	for _, folder := range folders {
		if seen[folder] {
			continue
		}
		seen[folder] = true
		for info, err := range src.Store.List(ctx, folder, storage.ListOptions{Recursive: true}) {
			if err != nil {
				return nil, nil, err
			}
			if !strings.HasSuffix(info.Name, ".crc") {
				meta = append(meta, info)
			}
		}
	}
	return data, meta, nil
}

const (
	metadataFolder = ".hoodie/metadata"
	indexFolder    = ".hoodie/.index_defs"
)

// allVersions adds every data file up to an instant: the metadata table lists older versions too, until they are cleaned.
func allVersions(data []storage.Info, files *filegroup.Files, at string) ([]storage.Info, error) {
	for _, p := range files.Partitions() {
		for _, f := range files.In(p) {
			if b, ok := filegroup.ParseBaseName(path.Base(f.Name)); ok && b.Instant > at {
				continue
			}
			data = append(data, storage.Info{Name: f.Name, Size: f.Size})
		}
	}
	return data, nil
}

// onlyLogs reports whether a completed write is a delta commit of log files alone: a copy without log files that lists it
// would name files that it has not.
func onlyLogs(ctx context.Context, src *read.Source, in timeline.Instant) (bool, error) {
	if in.Action != timeline.DeltaCommit || in.Pending() {
		return false, nil
	}
	meta, err := src.Commit(ctx, in)
	if err != nil {
		return false, err
	}
	found := false
	for _, stats := range meta.PartitionToWriteStats {
		for _, st := range stats {
			if _, log := logfile.ParseName(path.Base(st.Path)); !log {
				return false, nil
			}
			found = true
		}
	}
	return found, nil
}

// keepsPending reports whether a pending instant may stay in a copy without log files: the plan of a savepoint or a clean
// names no file that the copy lacks, a pending write or compaction does.
func keepsPending(in timeline.Instant) bool {
	return !in.Action.IsWrite() && in.Action != timeline.Compaction && in.Action != timeline.LogCompaction && in.Action != timeline.Clustering
}

// properties gives the text of the copy's hoodie.properties: the source's, without the metadata table that is not copied.
func properties(cfg *config.Table, now time.Time) ([]byte, error) {
	changed := false
	props := cfg.Props.Clone()
	for _, key := range []string{"hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight"} {
		if _, ok := props.Get(key); ok {
			props.Delete(key)
			changed = true
		}
	}
	if !changed {
		return nil, nil // copied byte for byte
	}
	return props.Encode(now), nil
}

// copyObject copies one object from store to store, whole or not at all, and checks its length.
func copyObject(ctx context.Context, from storage.Store, f file, to storage.Store) (int64, error) {
	info, _, err := storage.CopyBetween(ctx, from, f.Name, to, f.Name)
	if err != nil {
		return 0, err
	}
	if f.Size > 0 && info.Size != f.Size {
		return 0, fmt.Errorf("%s has %d bytes, and had %d when the export was planned: %w", storage.Join(from.URL(), f.Name), info.Size, f.Size, storage.ErrChanged)
	}
	return info.Size, nil
}

func putBytes(ctx context.Context, to storage.Store, name string, body []byte) error {
	return putObject(ctx, to, name, body, storage.PutOptions{})
}

func putObject(ctx context.Context, to storage.Store, name string, body []byte, o storage.PutOptions) error {
	o.Size = int64(len(body))
	_, err := to.Put(ctx, name, bytes.NewReader(body), o)
	return err
}

// logCounts counts the file groups whose logs a read-optimized export leaves out.
func logCounts(slices []filegroup.Slice) (withLogs, logOnly int) {
	for _, s := range slices {
		switch {
		case len(s.Logs) == 0:
		case s.Base == nil:
			logOnly++
		default:
			withLogs++
		}
	}
	return withLogs, logOnly
}
