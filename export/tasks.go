package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/orc"
	"github.com/sluicelake/sluice/storage"
)

// copyBytes and copyFiles bound a copy task: large enough that planning costs nothing beside the copy, small enough that
// all workers have some.
const (
	copyBytes = 64 << 20
	copyFiles = 200
)

// file of the source that is copied. Size is what the plan knows of it; 0: nothing.
type file struct {
	Name string `json:"name"`
	Size int64  `json:"size,omitempty"`
}

func (j *job) copyTasks(files []storage.Info, kind string) ([]engine.Task, error) {
	limit := int64(copyBytes)
	if j.cfg.pack > 0 {
		limit = j.cfg.pack
	}
	var tasks []engine.Task
	var pack []file
	var cost int64
	flush := func() error {
		if len(pack) == 0 {
			return nil
		}
		spec, err := json.Marshal(pack)
		if err != nil {
			return err
		}
		tasks = append(tasks, engine.Task{ID: fmt.Sprintf("%s-%05d", kind, len(tasks)), Kind: taskCopy, Cost: cost, Spec: spec})
		pack, cost = nil, 0
		return nil
	}
	for _, f := range files {
		pack = append(pack, file{Name: f.Name, Size: f.Size})
		cost += f.Size
		if cost >= limit || len(pack) >= copyFiles {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	return tasks, flush()
}

func (j *job) copyTask(ctx context.Context, task engine.Task, scope engine.Scope) (json.RawMessage, engine.Stats, error) {
	var stats engine.Stats
	var pack []file
	if err := json.Unmarshal(task.Spec, &pack); err != nil {
		return nil, stats, err
	}
	var done written
	for _, f := range pack {
		n, err := copyObject(ctx, j.source, f, j.target)
		if err != nil {
			return nil, stats, err
		}
		done.Files = append(done.Files, wrote{Name: f.Name, Size: n})
		stats.BytesRead += n
		stats.BytesWritten += n
		stats.Files++
		scope.Progress(0, n)
	}
	out, err := json.Marshal(done)
	return out, stats, err
}

// The packing of slices into tasks follows Spark's of files into splits, so that an export of many small files does not
// become many small files: up to packBytes, each file counted with openCost beside its bytes.
const (
	packBytes = 128 << 20
	// packFolders is packBytes where rows go to folders: each task has a file of its own in each, so larger packs make fewer
	// files, and smaller ones make less to do again after a failure.
	packFolders = 256 << 20
	openCost    = 4 << 20
)

// pack is the spec of a rows task.
type pack struct {
	Number int               `json:"number"` // of the output file
	Slices []filegroup.Slice `json:"slices"`
}

func (j *job) rowTasks(workers int) ([]engine.Task, error) {
	reader, err := j.snap.Reader(j.scan())
	if err != nil {
		return nil, err
	}
	slices := reader.Slices()
	var total int64
	for _, s := range slices {
		total += s.Bytes() + openCost
	}
	if j.plan.Pack == 0 {
		j.plan.Pack = j.cfg.pack
	}
	if j.cfg.whole {
		j.plan.Pack = total + 1
	}
	if j.plan.Pack == 0 {
		most := int64(packBytes)
		if len(j.layout.names) > 0 {
			most = packFolders
		}
		j.plan.Pack = packSize(total, most, int64(workers))
	}
	packs := packed(slices, j.plan.Pack)
	if len(packs) == 0 { // an empty table still gives one file, which says what its columns are
		packs = append(packs, pack{})
	}
	tasks := make([]engine.Task, len(packs))
	for i, p := range packs {
		spec, err := json.Marshal(p)
		if err != nil {
			return nil, err
		}
		var bytes int64
		for _, s := range p.Slices {
			bytes += s.Bytes()
		}
		tasks[i] = engine.Task{ID: fmt.Sprintf("rows-%05d", i), Kind: taskRows, Cost: bytes, Spec: spec}
	}
	return tasks, nil
}

// packSize bounds packs so that each worker has as many as the others, and all end at about the same time.
func packSize(total, most, workers int64) int64 {
	n := (total + most - 1) / most
	n += (workers - n%workers) % workers
	return max(openCost, total/max(n, 1)+1)
}

// packed puts slices in their order into packs of about a size. The middle of a slice tells the pack, so that what one has too
// much the next one has less.
func packed(slices []filegroup.Slice, size int64) (packs []pack) {
	var before, last int64
	for _, s := range slices {
		cost := s.Bytes() + openCost
		at := (before + cost/2) / size
		if len(packs) == 0 || at > last {
			packs = append(packs, pack{Number: len(packs)})
			last = at
		}
		p := &packs[len(packs)-1]
		p.Slices = append(p.Slices, s)
		before += cost
	}
	return packs
}

func (j *job) rowsTask(ctx context.Context, task engine.Task, scope engine.Scope) (json.RawMessage, engine.Stats, error) {
	var stats engine.Stats
	var p pack
	if err := json.Unmarshal(task.Spec, &p); err != nil {
		return nil, stats, err
	}
	opts := j.scan()
	opts.Memory, opts.TempDir = scope.Memory/2, scope.TempDir
	opts.Progress = func(bytes int64) { stats.BytesRead += bytes; scope.Progress(0, bytes) }
	opts.Warn = func(text string) { j.observe(engine.Noted{Text: text}) }
	reader, err := j.snap.Reader(opts)
	if err != nil {
		return nil, stats, err
	}
	out, done := newSink(ctx, j, p.Number, scope), written{}
	rest := p.Slices
	if j.splices() {
		s := splicing{job: j, sink: out, reader: reader, scope: scope, stats: &stats}
		if rest, err = s.run(ctx, p.Slices); err != nil {
			return nil, stats, err
		}
		done.Copied, done.Decoded = s.copied, s.why
	}
	columns, batches, err := j.rows(ctx, reader, rest, scope)
	if err != nil {
		return nil, stats, err
	}
	files, err := out.drain(columns, batches, func(rows int64) { stats.Rows += rows; scope.Progress(rows, 0) })
	if errors.Is(err, orc.ErrUnsupported) { // a value that ORC has no form for: another try can't help
		err = fmt.Errorf("%w: %w; choose another output format", engine.ErrRefused, err)
	}
	if err != nil {
		return nil, stats, err
	}
	done.Files = files
	var rows int64
	for _, f := range files {
		stats.BytesWritten += f.Size
		rows += f.Rows
	}
	if rows != stats.Rows { // whatever the reason: never short
		return nil, stats, fmt.Errorf("%d rows were read and %d written: this is a fault of the program", stats.Rows, rows)
	}
	stats.Files = int64(len(files))
	raw, err := json.Marshal(done)
	return raw, stats, err
}

// fileName is the shape that Spark gives its files, for tools that read by pattern.
func (j *job) fileName(dir string, number, part int, compression string) string {
	join := "-"
	if dir != "" {
		join = "."
	}
	name := fmt.Sprintf("part-%05d-%s%sc%03d%s", number, j.plan.Token, join, part, suffix(j.cfg.Format, compression))
	return path.Join(dir, name)
}

func suffix(f Format, compression string) string {
	ext := "." + string(f)
	switch {
	case compression == "none":
		return ext
	case f == Parquet || f == ORC:
		return "." + strings.ReplaceAll(compression, "gzip", "gz") + ext
	case compression == "gzip":
		return ext + ".gz"
	case compression == "zstd":
		return ext + ".zst"
	}
	return ext
}
