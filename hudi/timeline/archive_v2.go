package timeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/storage"
)

// The archive of layout 2 is a small log-structured tree of Parquet files: "_version_" names the newest "manifest_<n>", which
// lists the files "<min instant>_<max instant>_<layer>.parquet" (table format 7.5).

const (
	historyVersion  = "_version_"
	manifestPrefix  = "manifest_"
	maxManifest     = 64 << 20
	historyMemory   = 64 << 20 // bytes that the reading of a history file may take, and so many times its size more
	historyRowLimit = 1 << 24
)

var historyFile = regexp.MustCompile(`^(\d+)_(\d+)_\d+\.parquet$`)

// manifestAttempts is how often the archive is read anew when a file of its manifest is gone: another process has compacted the
// archive in between, and a newer manifest tells.
const manifestAttempts = 3

func archiveV2(ctx context.Context, store storage.Store, cfg *config.Table, r archiveRange) (instants []Instant, err error) {
	for range manifestAttempts {
		if instants, err = readManifest(ctx, store, cfg, r); !errors.Is(err, storage.ErrNotExist) {
			break
		}
	}
	return instants, err
}

func readManifest(ctx context.Context, store storage.Store, cfg *config.Table, r archiveRange) ([]Instant, error) {
	files, err := historyFiles(ctx, store, cfg.HistoryPath)
	if err != nil {
		return nil, err
	}
	var instants []Instant
	schemas := newSchemaCache()
	seen := map[groupKey]bool{} // layers may overlap after a compaction of the archive was cut off
	for _, name := range files {
		m := historyFile.FindStringSubmatch(name)
		if m == nil {
			return nil, fmt.Errorf("%w: the manifest names %q", ErrCorrupt, name)
		}
		if r.to != "" && m[1] > r.to || r.from != "" && m[2] < r.from {
			continue
		}
		rows, err := readHistory(ctx, store, storage.Join(cfg.HistoryPath, name))
		if err != nil {
			return nil, err
		}
		for _, i := range rows {
			key := groupKey{i.Time, i.Action}
			if !seen[key] && r.holds(i.Time) {
				seen[key] = true
				i.schemas = schemas
				instants = append(instants, i)
			}
		}
	}
	return instants, nil
}

// historyFiles are the files that the newest manifest lists.
func historyFiles(ctx context.Context, store storage.Store, folder string) ([]string, error) {
	version, err := historyManifest(ctx, store, folder)
	if version == "" || err != nil {
		return nil, err
	}
	name := storage.Join(folder, manifestPrefix+version)
	text, err := storage.ReadAll(ctx, store, name, maxManifest)
	if err != nil {
		return nil, err
	}
	files, err := parseManifest(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", storage.Join(store.URL(), name), err)
	}
	return files, nil
}

func parseManifest(text []byte) ([]string, error) {
	var manifest struct {
		Files []struct {
			Name string `json:"fileName"`
		} `json:"files"`
	}
	if len(text) == 0 {
		return nil, nil
	}
	if err := decodeJSON(text, &manifest); err != nil {
		return nil, err
	}
	names := make([]string, len(manifest.Files))
	for i, f := range manifest.Files {
		names[i] = f.Name
	}
	return names, nil
}

// historyManifest is the number of the newest manifest, from the version file or else from the manifests themselves; empty
// when there is no archive.
func historyManifest(ctx context.Context, store storage.Store, folder string) (string, error) {
	text, err := storage.ReadAll(ctx, store, storage.Join(folder, historyVersion), 1<<10)
	if err == nil {
		if v := strings.TrimSpace(string(text)); allDigits(v) {
			return v, nil
		}
	} else if !errors.Is(err, storage.ErrNotExist) {
		return "", err
	}
	newest := -1
	for info, err := range store.List(ctx, folder, storage.ListOptions{}) {
		if errors.Is(err, storage.ErrNotExist) {
			break
		}
		if err != nil {
			return "", err
		}
		if n, ok := strings.CutPrefix(lastElement(info.Name), manifestPrefix); ok {
			if v, err := strconv.Atoi(n); err == nil {
				newest = max(newest, v)
			}
		}
	}
	if newest < 0 {
		return "", nil
	}
	return strconv.Itoa(newest), nil
}

// readHistory reads times, completion times and actions of a history file; the bodies stay where they are.
func readHistory(ctx context.Context, store storage.Store, name string) (instants []Instant, err error) {
	err = withParquet(ctx, store, name, func(p *file.Reader) error {
		if p.NumRows() > historyRowLimit {
			return fmt.Errorf("%w: %d rows", ErrCorrupt, p.NumRows())
		}
		for g := range p.NumRowGroups() {
			group := p.RowGroup(g)
			var columns [3][]*[]byte
			for c, column := range []string{"instantTime", "completionTime", "action"} {
				if columns[c], err = readBinaryColumn(group, column, 0, group.NumRows()); err != nil {
					return err
				}
			}
			text := func(c, row int) string {
				if v := columns[c][row]; v != nil {
					return string(*v)
				}
				return ""
			}
			for row := range columns[0] {
				i := Instant{Time: text(0, row), Completion: text(1, row), Action: Action(text(2, row)).Completes(), State: Completed, Archived: true}
				if !allDigits(i.Time) || !i.Action.known(Completed) {
					return fmt.Errorf("%w: row %d is %q %q", ErrCorrupt, row, i.Time, i.Action)
				}
				i.archive = &archived{file: name, rowGroup: g, row: row}
				instants = append(instants, i)
			}
		}
		return nil
	})
	return instants, err
}

// readHistoryBody reads the metadata of the completed state, or the plan for the earlier ones. A null is an empty body.
func readHistoryBody(ctx context.Context, store storage.Store, a *archived, s State) (text []byte, err error) {
	column := "plan"
	if s == Completed {
		column = "metadata"
	}
	err = withParquet(ctx, store, a.file, func(p *file.Reader) error {
		if a.rowGroup >= p.NumRowGroups() {
			return fmt.Errorf("%w: row group %d is gone", ErrCorrupt, a.rowGroup)
		}
		values, err := readBinaryColumn(p.RowGroup(a.rowGroup), column, int64(a.row), 1)
		if err == nil && values[0] != nil {
			text = *values[0]
		}
		return err
	})
	return text, err
}

// readBinaryColumn reads n values of an optional or required binary column from a row on; nil is null. The values are copies.
func readBinaryColumn(group *file.RowGroupReader, column string, from, n int64) ([]*[]byte, error) {
	at := group.MetaData().Schema.ColumnIndexByName(column)
	if at < 0 {
		return nil, fmt.Errorf("%w: no column %s", ErrCorrupt, column)
	}
	chunk, err := group.Column(at)
	if err != nil {
		return nil, err
	}
	reader, ok := chunk.(*file.ByteArrayColumnChunkReader)
	if !ok || reader.Descriptor().MaxRepetitionLevel() > 0 || from+n > group.NumRows() {
		return nil, fmt.Errorf("%w: column %s has no binary values, or too few", ErrCorrupt, column)
	}
	if from > 0 {
		if skipped, err := reader.Skip(from); err != nil || skipped != from {
			return nil, fmt.Errorf("%w: column %s: %d of %d values skipped: %w", ErrCorrupt, column, skipped, from, errors.Join(err, io.ErrUnexpectedEOF))
		}
	}
	const step = 1024
	var out []*[]byte
	values, levels := make([]parquet.ByteArray, step), make([]int16, step)
	for int64(len(out)) < n {
		got, present, err := reader.ReadBatch(min(step, n-int64(len(out))), values, levels, nil)
		if err != nil || got == 0 {
			return nil, fmt.Errorf("%w: column %s ends after %d of %d values: %w", ErrCorrupt, column, len(out), n, errors.Join(err, io.ErrUnexpectedEOF))
		}
		next := 0
		for row := range got {
			if reader.Descriptor().MaxDefinitionLevel() > 0 && levels[row] < reader.Descriptor().MaxDefinitionLevel() || next >= present {
				out = append(out, nil)
				continue
			}
			v := append([]byte{}, values[next]...)
			out = append(out, &v)
			next++
		}
	}
	return out, nil
}

// withParquet opens a Parquet file for do. The library's reader may panic on hostile bytes, and may ask for much memory: both
// end as errors here.
func withParquet(ctx context.Context, store storage.Store, name string, do func(*file.Reader) error) (err error) {
	full := storage.Join(store.URL(), name)
	o, err := store.Open(ctx, name)
	if err != nil {
		return err
	}
	f := storage.ReaderAt(ctx, o)
	defer f.Close()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %w: %v", full, ErrCorrupt, p)
		}
	}()
	limit := &boundedMemory{Allocator: memory.DefaultAllocator, left: historyMemory + memoryFactor*int(min(f.Size(), 16<<30))}
	p, err := file.NewParquetReader(f, file.WithReadProps(parquet.NewReaderProperties(limit)))
	if err != nil {
		return fmt.Errorf("%s: %w: %w", full, ErrCorrupt, err)
	}
	if err := do(p); err != nil {
		return fmt.Errorf("%s: %w", full, err)
	}
	return nil
}

// boundedMemory panics when more is asked for than allowed: the interface has no error.
type boundedMemory struct {
	memory.Allocator
	left int
}

func (m *boundedMemory) spend(n int) {
	if n < 0 || n > m.left {
		panic("the file wants more memory than its size allows")
	}
	m.left -= n
}

func (m *boundedMemory) Allocate(size int) []byte {
	m.spend(size)
	return m.Allocator.Allocate(size)
}

func (m *boundedMemory) Reallocate(size int, b []byte) []byte {
	m.spend(max(0, size-len(b)))
	return m.Allocator.Reallocate(size, b)
}

func (m *boundedMemory) Free(b []byte) {
	m.left += len(b)
	m.Allocator.Free(b)
}
