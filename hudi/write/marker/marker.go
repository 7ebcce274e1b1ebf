// Package marker keeps the names of the data files that a write is about to make, so that a rollback finds them without
// listing the table (table format 7.2). Markers lie in .hoodie/.temp/<instant>/. Sluice writes the DIRECT kind, one empty
// file for each data file; it reads the kind of the timeline server as well, many names in a few files.
package marker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sluicelake/sluice/storage"
)

// Kind says what a write does to a data file.
type Kind string

// The kinds.
const (
	Create Kind = "CREATE" // the first file of a new file group
	Merge  Kind = "MERGE"  // a new base file of a file group
	Append Kind = "APPEND" // a log file
)

const (
	tempFolder = ".hoodie/.temp"
	infix      = ".marker."
	typeFile   = "MARKERS.type"
	listPrefix = "MARKERS"
	// maxList is the largest MARKERS<n> file that is read, in bytes.
	maxList = 256 << 20
)

// Marker is one data file that a write announced.
type Marker struct {
	Path string // of the data file, below the table
	Kind Kind
}

// Partition of the data file.
func (m Marker) Partition() string {
	dir, _ := path.Split(m.Path)
	return strings.TrimSuffix(dir, "/")
}

// File is the bare name of the data file.
func (m Marker) File() string { return path.Base(m.Path) }

// Folder holds the markers of an instant.
func Folder(instant string) string { return tempFolder + "/" + instant }

// Put announces a data file. One that was announced before is no error.
func Put(ctx context.Context, store storage.Store, instant string, m Marker) error {
	name := Folder(instant) + "/" + m.Path + infix + string(m.Kind)
	_, err := store.Put(ctx, name, bytes.NewReader(nil), storage.PutOptions{IfAbsent: true})
	if err != nil && !errors.Is(err, storage.ErrExist) {
		return fmt.Errorf("announce data file %s: %w", m.Path, err)
	}
	return nil
}

// List gives the markers of an instant in order of their paths, of either kind, and whether there are any marks of the
// instant at all: without them nobody knows what it wrote. Names that point outside the table are refused.
func List(ctx context.Context, store storage.Store, instant string) (markers []Marker, found bool, err error) {
	folder := Folder(instant)
	for info, err := range store.List(ctx, folder, storage.ListOptions{Recursive: true}) {
		if err != nil {
			return nil, false, fmt.Errorf("list markers of %s: %w", instant, err)
		}
		found = true
		rel := strings.TrimPrefix(info.Name, folder+"/")
		switch {
		case rel == typeFile:
		case strings.HasPrefix(rel, listPrefix) && digits(rel[len(listPrefix):]):
			lines, err := readList(ctx, store, info.Name)
			if err != nil {
				return nil, false, err
			}
			markers = append(markers, lines...)
		default:
			if m, ok := parse(rel); ok {
				markers = append(markers, m)
			}
		}
	}
	slices.SortFunc(markers, func(a, b Marker) int {
		return strings.Compare(a.Path+infix+string(a.Kind), b.Path+infix+string(b.Kind))
	})
	return slices.Compact(markers), found, nil
}

func readList(ctx context.Context, store storage.Store, name string) ([]Marker, error) {
	text, err := storage.ReadAll(ctx, store, name, maxList)
	if err != nil {
		return nil, fmt.Errorf("read markers: %w", err)
	}
	var out []Marker
	for line := range strings.SplitSeq(string(text), "\n") {
		line = strings.TrimRight(line, "\r")
		m, ok := parse(line)
		if !ok {
			continue // a line that was cut off: the data file is made only after its line is whole
		}
		if err := storage.CheckName(m.Path); err != nil {
			return nil, fmt.Errorf("marker in %s: %w", storage.Join(store.URL(), name), err)
		}
		out = append(out, m)
	}
	return out, nil
}

// parse cuts the kind off, behind the last ".marker.".
func parse(text string) (Marker, bool) {
	at := strings.LastIndex(text, infix)
	if at <= 0 {
		return Marker{}, false
	}
	switch kind := Kind(text[at+len(infix):]); kind {
	case Create, Merge, Append:
		return Marker{Path: text[:at], Kind: kind}, true
	}
	return Marker{}, false
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// Instants are the instants that have markers.
func Instants(ctx context.Context, store storage.Store) ([]string, error) {
	seen := map[string]bool{}
	var out []string
	for info, err := range store.List(ctx, tempFolder, storage.ListOptions{}) {
		if err != nil {
			return nil, fmt.Errorf("list markers: %w", err)
		}
		if at := path.Base(info.Name); info.Dir && digits(at) && !seen[at] {
			seen[at] = true
			out = append(out, at)
		}
	}
	return out, nil
}

// Remove deletes the markers of an instant.
func Remove(ctx context.Context, store storage.Store, instant string) error {
	if err := storage.RemoveAll(ctx, store, Folder(instant)); err != nil {
		return fmt.Errorf("remove markers of %s: %w", instant, err)
	}
	return nil
}
