package filegroup

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/sluicelake/sluice/hudi/logfile"
	"github.com/sluicelake/sluice/storage"
)

// metaFolder holds everything about a table that is no data.
const metaFolder = ".hoodie"

// markerName is the file that makes a folder a partition; with hoodie.partition.metafile.use.base.format it carries the
// extension of the base format (table format 3).
const markerName = ".hoodie_partition_metadata"

// Files is what lies in a table's partitions at one moment, as a listing of the store found it.
type Files struct {
	partitions []string // sorted
	byPath     map[string][]storage.Info
	markers    map[string]string // partition → name of its marker file below the table
	unmarked   map[string][]storage.Info
}

// Partitions are the relative partition paths in byte order; a non-partitioned table has the one partition "".
func (f *Files) Partitions() []string { return f.partitions }

// In lists the files of one partition, folders and the marker left out. Names are relative to the table.
func (f *Files) In(partition string) []storage.Info { return f.byPath[partition] }

// Marker is the name of the partition's marker file, relative to the table.
func (f *Files) Marker(partition string) string { return f.markers[partition] }

// Unmarked are folders without a marker, and not below a partition, that hold files named like data files. Who knows from
// commit metadata that they are partitions calls Adopt.
func (f *Files) Unmarked() map[string][]storage.Info { return f.unmarked }

// Adopt gives the listing with some unmarked folders taken for partitions.
func (f *Files) Adopt(folders []string) *Files {
	out := &Files{partitions: slices.Clone(f.partitions), byPath: maps.Clone(f.byPath), markers: f.markers}
	for _, dir := range folders {
		out.partitions = append(out.partitions, dir)
		out.byPath[dir] = f.unmarked[dir]
	}
	slices.Sort(out.partitions)
	return out
}

// Count is the number of files in all partitions.
func (f *Files) Count() int {
	n := 0
	for _, in := range f.byPath {
		n += len(in)
	}
	return n
}

// listers bounds how many folders are listed at once. A distant store takes some 20 ms for each: 2000 folders are a second's
// work then.
const listers = 64

// List finds the partitions of a table and their files. A folder is a partition iff it holds a marker file; nothing below
// a partition is looked at, and neither is .hoodie (table format 3). Every top folder is listed in one recursive sweep.
func List(ctx context.Context, store storage.Store) (*Files, error) {
	l := &lister{folders: map[string]*folder{}, tables: map[string]bool{}}
	var tops []string
	for info, err := range store.List(ctx, "", storage.ListOptions{}) {
		if err != nil {
			return nil, fmt.Errorf("list the table's folder: %w", err)
		}
		switch {
		case info.Dir && info.Name != metaFolder:
			tops = append(tops, info.Name)
		case !info.Dir:
			l.add(info)
		}
	}
	if root := l.folders[""]; root == nil || root.marker == "" {
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(listers)
		for _, top := range tops {
			g.Go(func() error { return l.sweep(gctx, store, top) })
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
	}
	return l.result(), nil
}

type folder struct {
	marker string
	files  []storage.Info
}

type lister struct {
	mu      sync.Mutex
	folders map[string]*folder
	tables  map[string]bool // folders that are tables of their own, such as a copy that was made into this one
}

func (l *lister) sweep(ctx context.Context, store storage.Store, top string) error {
	for info, err := range store.List(ctx, top, storage.ListOptions{Recursive: true}) {
		if err != nil {
			return fmt.Errorf("list partition folder %s: %w", top, err)
		}
		l.mu.Lock()
		l.add(info)
		l.mu.Unlock()
	}
	return nil
}

func (l *lister) add(info storage.Info) {
	if table, _, nested := strings.Cut(info.Name, "/"+metaFolder+"/"); nested {
		l.tables[table] = true
		return
	}
	dir, name := path.Split(info.Name)
	dir = strings.TrimSuffix(dir, "/")
	f := l.folders[dir]
	if f == nil {
		f = &folder{}
		l.folders[dir] = f
	}
	if isMarker(name) {
		if f.marker == "" || name == markerName { // the plain one is tried first
			f.marker = info.Name
		}
		return
	}
	f.files = append(f.files, info)
}

func isMarker(name string) bool {
	rest, ok := strings.CutPrefix(name, markerName)
	return ok && (rest == "" || rest == ".parquet" || rest == ".orc")
}

func (l *lister) result() *Files {
	out := &Files{byPath: map[string][]storage.Info{}, markers: map[string]string{}, unmarked: map[string][]storage.Info{}}
	for dir, f := range l.folders {
		if l.below(dir) || f.marker == "" && !slices.ContainsFunc(f.files, isData) {
			continue
		}
		if f.marker == "" {
			out.unmarked[dir] = f.files
			continue
		}
		slices.SortFunc(f.files, func(a, b storage.Info) int { return strings.Compare(a.Name, b.Name) })
		out.partitions = append(out.partitions, dir)
		out.byPath[dir] = f.files
		out.markers[dir] = f.marker
	}
	slices.Sort(out.partitions)
	return out
}

func isData(f storage.Info) bool {
	name := path.Base(f.Name)
	if b, ok := ParseBaseName(name); ok {
		return isBaseExt(b.Ext)
	}
	_, ok := logfile.ParseName(name)
	return ok
}

// below reports whether a folder lies in another table, or whether a folder above it is a partition itself.
func (l *lister) below(dir string) bool {
	for at := dir; ; {
		if l.tables[at] {
			return true
		}
		if f := l.folders[at]; at != dir && f != nil && f.marker != "" {
			return true
		}
		if at == "" {
			return false
		}
		at = strings.TrimSuffix(at[:strings.LastIndexByte(at, '/')+1], "/")
	}
}
