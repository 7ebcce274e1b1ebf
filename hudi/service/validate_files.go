package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	pqschema "github.com/apache/arrow-go/v18/parquet/schema"
	"golang.org/x/sync/errgroup"

	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/logfile"
	"github.com/sluicelake/sluice/hudi/orcfile"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/hudi/write/marker"
	"github.com/sluicelake/sluice/storage"
)

// files holds the partitions' files against the commits.
func (c *checker) files(ctx context.Context, files *filegroup.Files) error {
	sizes := map[string]int64{}
	folder := func(partition string, in []storage.Info) {
		for _, f := range in {
			sizes[f.Name] = f.Size
			c.orphan(partition, f)
		}
	}
	for _, partition := range files.Partitions() {
		folder(partition, files.In(partition))
		if err := c.marker(ctx, files.Marker(partition), partition); err != nil {
			return err
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(files.Unmarked())) {
		c.add(Error, PartitionUnmarked, dir, "put a "+".hoodie_partition_metadata"+" there, with commitTime and partitionDepth",
			"holds %d data files and no partition marker: without metadata table Apache Hudi does not see them", len(files.Unmarked()[dir]))
		folder(dir, files.Unmarked()[dir])
	}
	newest := c.newest()
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(openers)
	for _, at := range slices.Sorted(maps.Keys(c.commits)) {
		for _, stats := range c.commits[at].PartitionToWriteStats {
			for _, s := range stats {
				if s.Path == "" {
					continue
				}
				if c.stat(at, s, sizes, newest[filegroup.Group{Partition: s.PartitionPath, FileID: s.FileID}]) {
					g.Go(func() error { return c.base(gctx, s) })
				}
			}
		}
	}
	return g.Wait()
}

// openers bounds how many files are open at once.
const openers = 16

// newest gives the instant of the newest stat of each file group that a base file came from, "~" for groups that were
// replaced: of those nothing needs to be there.
func (c *checker) newest() map[filegroup.Group]string {
	out := map[filegroup.Group]string{}
	for at, m := range c.commits {
		for _, stats := range m.PartitionToWriteStats {
			for _, s := range stats {
				g := filegroup.Group{Partition: s.PartitionPath, FileID: s.FileID}
				if _, log := logfile.ParseName(path.Base(s.Path)); !log {
					out[g] = max(out[g], at)
				}
			}
		}
	}
	for _, m := range c.commits {
		for partition, ids := range m.PartitionToReplaceFileIDs {
			for _, id := range ids {
				out[filegroup.Group{Partition: partition, FileID: id}] = "~"
			}
		}
	}
	return out
}

// stat holds one file against its stat, and reports whether it is a base file to open. newest is the instant of the group's
// newest base file.
func (c *checker) stat(at string, s timeline.WriteStat, sizes map[string]int64, newest string) bool {
	size, there := sizes[s.Path]
	log, isLog := logfile.ParseName(path.Base(s.Path))
	needed := at >= newest
	if isLog && c.tl.Layout() == 1 {
		needed = log.Instant >= newest
	}
	if isLog && log.CDC {
		needed = false
	}
	switch {
	case !there && c.deleted[s.Path]:
		return false
	case !there && needed:
		c.add(Error, FileMissing, s.Path, "bring the file back from a backup, or restore the table to a savepoint", "%s wrote it and it is not there: its rows are lost, or readers fail", at)
		return false
	case !there:
		c.add(Info, FileCleaned, s.Path, "", "an older file of %s is not there, and no clean on the timeline says that it removed it: the clean may be archived", at)
		return false
	case s.FileSizeInBytes > 0 && (size < s.FileSizeInBytes || size > s.FileSizeInBytes && !isLog):
		c.add(Error, FileSize, s.Path, "bring the file back from a backup", "has %d bytes, %s wrote %d", size, at, s.FileSizeInBytes)
		return false
	}
	return !isLog
}

func formats() map[string]basefile.Format {
	return map[string]basefile.Format{orcfile.Ext: orcfile.Format{}}
}

// base opens a base file: its footer must be readable, and have the rows that the stat says.
func (c *checker) base(ctx context.Context, s timeline.WriteStat) error {
	if path.Ext(s.Path) == ".hfile" {
		return nil
	}
	f, err := basefile.Open(ctx, c.store, s.Path, basefile.Options{Alloc: c.o.Alloc, Formats: formats()})
	if err != nil {
		if ctx.Err() != nil || !errors.Is(err, basefile.ErrDamaged) {
			return err
		}
		c.add(Error, FileUnreadable, s.Path, "bring the file back from a backup", "%v", err)
		return nil
	}
	defer func() { _ = f.Close() }()
	if f.Rows() != s.NumWrites-s.TotalWriteErrors && f.Rows() != s.NumWrites {
		c.add(Error, FileRows, s.Path, "compare the file with its backup", "has %d rows, the commit says %d", f.Rows(), s.NumWrites)
	}
	if columns := legacyLists(f); len(columns) > 0 {
		c.add(Warning, LegacyLists, s.Path, "rewrite the table with Sluice, or with Apache Hudi 1.2, before 0.15 compacts, clusters or updates it",
			"lists of %s are in the layout of old Spark releases (bag.array): Apache Hudi 0.15 makes such arrays null when it rewrites the file", strings.Join(columns, ", "))
	}
	return nil
}

// legacyLists names the columns whose lists are groups "bag" with an element "array" (table format 11, end).
func legacyLists(f basefile.File) []string {
	text, ok := basefile.Footer(f)
	if !ok {
		return nil
	}
	meta, err := metadata.NewFileMetaData(text, nil)
	if err != nil {
		return nil // it was opened: its lists are not of a kind that arrow-go would refuse
	}
	var out []string
	var walk func(n pqschema.Node) bool
	walk = func(n pqschema.Node) bool {
		g, ok := n.(*pqschema.GroupNode)
		if !ok {
			return false
		}
		if g.Name() == "bag" && g.RepetitionType() == parquet.Repetitions.Repeated && g.NumFields() == 1 && strings.HasPrefix(g.Field(0).Name(), "array") {
			return true
		}
		for i := range g.NumFields() {
			if walk(g.Field(i)) {
				return true
			}
		}
		return false
	}
	root := meta.Schema.Root()
	for i := range root.NumFields() {
		if walk(root.Field(i)) {
			out = append(out, root.Field(i).Name())
		}
	}
	return out
}

// orphan looks for files that no reader will ever take: of instants that are not on the timeline, or of no form at all.
func (c *checker) orphan(partition string, f storage.Info) {
	name := path.Base(f.Name)
	if strings.HasPrefix(name, ".hoodie_partition_metadata") || strings.HasSuffix(name, ".crc") {
		if !strings.HasSuffix(name, ".crc") {
			c.add(Warning, OrphanTemporary, f.Name, "delete it", "a partition marker that was never put in its place")
		}
		return
	}
	var instant string
	log, isLog := logfile.ParseName(name)
	base, isBase := filegroup.ParseBaseName(name)
	switch {
	case isLog && (c.tl.Layout() == 2 || log.CDC):
		instant = log.Instant
	case isLog:
		return // a log of layout 1 says nothing about who wrote it
	case isBase:
		instant = base.Instant
	default:
		if strings.HasSuffix(name, ".tmp") || strings.Contains(name, "_COPYING_") || strings.HasPrefix(name, ".sluice-put-") {
			c.add(Warning, OrphanTemporary, f.Name, "delete it when nobody is writing it", "looks like a file that was never finished")
		}
		return
	}
	if c.vis.IsCommitted(instant) || c.vis.IsPending(instant) {
		if isBase && c.repeated(partition, f.Name, base) {
			c.add(Warning, OrphanFile, f.Name, "delete it", "%s wrote this file group under another name: this one was left by a task that ran twice", instant)
		}
		return
	}
	c.add(Warning, OrphanFile, f.Name, "delete it when no writer of that instant is alive", "no commit, and no pending write, of %s is on the timeline: readers skip it", instant)
}

// repeated reports whether the commit of a base file names another file of the same group.
func (c *checker) repeated(partition, name string, base filegroup.BaseName) bool {
	m := c.commits[base.Instant]
	if m == nil {
		return false
	}
	other := false
	for _, s := range m.PartitionToWriteStats[partition] {
		if s.Path == name {
			return false
		}
		other = other || s.FileID == base.FileID && path.Ext(s.Path) == base.Ext
	}
	return other
}

// marker reads the plain marker of a partition.
func (c *checker) marker(ctx context.Context, name, partition string) error {
	if path.Ext(name) != "" && name != "" && path.Base(name) != ".hoodie_partition_metadata" {
		return nil // in the base format
	}
	text, err := storage.ReadAll(ctx, c.store, name, 1<<20)
	if err != nil {
		return err
	}
	depth := 0
	if partition != "" {
		depth = strings.Count(partition, "/") + 1
	}
	props, err := config.ParseProperties(text)
	if got, _ := props0(props).Get("partitionDepth"); err != nil || got != fmt.Sprint(depth) {
		c.add(Error, PartitionMarker, name, fmt.Sprintf("write commitTime and partitionDepth=%d into it", depth), "says partitionDepth %q, the folder lies %d deep: Apache Hudi finds the table's root by it", got, depth)
	}
	return nil
}

// leftovers looks into .hoodie.
func (c *checker) leftovers(ctx context.Context) error {
	instants, err := marker.Instants(ctx, c.store)
	if err != nil {
		return err
	}
	pending := map[string]bool{}
	for _, in := range c.tl.Pending().Instants() {
		pending[in.Time] = true
	}
	for _, at := range instants {
		if markers, found, err := marker.List(ctx, c.store, at); err != nil {
			return err
		} else if found && !pending[at] {
			c.add(Warning, OrphanMarkers, marker.Folder(at), "the next writer removes them", "%d markers of a write that has ended", len(markers))
		}
	}
	if len(c.cfg.MetadataPartitions)+len(c.cfg.MetadataInflight) > 0 {
		return nil
	}
	for _, err := range c.store.List(ctx, ".hoodie/metadata", storage.ListOptions{}) {
		if err != nil {
			return err
		}
		c.add(Warning, OrphanMetadata, ".hoodie/metadata", "the next writer removes it", "a metadata table that the properties do not name")
		break
	}
	return nil
}
