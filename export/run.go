package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/engine/local"
	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/read"
	"github.com/sluicelake/sluice/orc"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/open"
)

// Summary is what an export did.
type Summary struct {
	Instant string       // that the rows are of
	Files   []string     // written, relative to the target; _SUCCESS is not among them
	Stats   engine.Stats // rows are those of the files written; a hudi copy counts none
	// WithLogs and LogOnly count the file groups whose log files a read-optimized export left out.
	WithLogs, LogOnly int
	// Copied counts the base files whose column chunks were copied into Parquet files without decoding them, Decoded the
	// others, by the reason why.
	Copied  int
	Decoded map[string]int
}

// written is what a task wrote.
type written struct {
	Files   []string       `json:"files"`
	Copied  int            `json:"copied,omitempty"`
	Decoded map[string]int `json:"decoded,omitempty"`
}

// Run exports a table. It checks in the order of the original: options, target, source, commits, partitions; then it writes,
// and puts _SUCCESS last. On an error it removes what it wrote.
func Run(ctx context.Context, c Config, opts local.Options) (sum Summary, err error) {
	start := time.Now()
	if opts.Observe == nil {
		opts.Observe = func(engine.Event) {}
	}
	defer func() {
		opts.Observe(engine.Finished{Job: "export", Stats: sum.Stats, Wall: time.Since(start), Err: err})
	}()
	asked := c
	if err := c.setDefaults(); err != nil {
		return sum, err
	}
	if c.Parallelism > 0 {
		opts.Workers = c.Parallelism
	}
	j := &job{cfg: c, observe: opts.Observe}
	j.remote = farAway(j, asked, opts)
	if err := j.checkTarget(ctx); err != nil {
		return sum, err
	}
	if err := j.plan(ctx); err != nil {
		return sum, err
	}
	inside := local.New(engine.Handlers{taskRows: j.rowsTask, taskCopy: j.copyTask}, opts)
	var pool engine.Engine = inside
	if j.remote != nil {
		pool = j.remote
	}
	tasks, err := j.tasks(ctx, inside.Workers())
	if err != nil {
		return sum, err
	}
	sum.Instant, sum.WithLogs, sum.LogOnly = j.snap.Instant(), j.withLogs, j.logOnly
	if err := j.begin(ctx); err != nil {
		return sum, err
	}
	if err := j.execute(ctx, pool, tasks, &sum); err != nil {
		return sum, errors.Join(err, j.undo())
	}
	return sum, nil
}

// The kinds of task.
const (
	taskRows = "export.rows"
	taskCopy = "export.copy"
)

// job is one export while it runs.
type job struct {
	cfg     Config
	target  storage.Store
	observe engine.Observer
	existed bool // the target held an earlier export that may be replaced

	snap    *read.Plan
	layout  layout
	columns []string
	props   []byte // changed hoodie.properties of a copy; nil: copied as they are
	late    []storage.Info
	token   string // in the names of the files of this run
	remote  *remote

	withLogs, logOnly int
}

// checkTarget is check 3: the target must not exist, empty folders included.
func (j *job) checkTarget(ctx context.Context) error {
	parent, base, err := open.Split(j.cfg.Target)
	if err != nil {
		return err
	}
	up, err := j.cfg.Open(ctx, parent)
	if err != nil {
		return err
	}
	holds := false
	switch info, err := up.Stat(ctx, base); {
	case err == nil && !info.Dir:
		return &targetError{j.cfg.Target, "it is a file; choose a folder that does not exist"}
	case err == nil:
		holds = true // be it empty
	case !errors.Is(err, storage.ErrNotExist):
		return err
	}
	if j.target, err = j.cfg.Open(ctx, j.cfg.Target); err != nil {
		return err
	}
	some, success, ours, err := j.look(ctx)
	if err != nil {
		return err
	}
	holds = holds || some
	switch {
	case !holds:
		return nil
	case !j.cfg.Overwrite && ours && !success:
		return &targetError{j.cfg.Target, "an earlier export to it did not finish; give --overwrite to start again, or remove it"}
	case !j.cfg.Overwrite:
		return &targetError{j.cfg.Target, "choose another folder, or give --overwrite to replace an earlier export"}
	case !success && !ours && !j.cfg.Copier:
		return &targetError{j.cfg.Target, "it holds no " + Successful + ", so it is no export of ours and --overwrite does not touch it; remove it by hand"}
	}
	j.existed = true
	return nil
}

// look lists the target's top folder.
func (j *job) look(ctx context.Context) (holds, success, ours bool, err error) {
	for info, err := range j.target.List(ctx, "", storage.ListOptions{}) {
		if err != nil {
			return holds, success, ours, err
		}
		holds = true
		success = success || info.Name == Successful
		ours = ours || info.Name == begun
	}
	return holds, success, ours, nil
}

// targetError is the original's refusal with a next step.
type targetError struct{ target, next string }

func (e *targetError) Error() string    { return ErrTargetExists.Error() + " (" + e.target + ")" }
func (e *targetError) Unwrap() error    { return ErrTargetExists }
func (e *targetError) NextStep() string { return e.next }

// plan opens the source, pins the instant and decides what goes where.
func (j *job) plan(ctx context.Context) error {
	store, err := j.cfg.Open(ctx, j.cfg.Source)
	if err != nil {
		return err
	}
	t, err := hudi.Open(ctx, j.cfg.Source, hudi.Options{Zone: j.cfg.TableZone, Store: j.remote.record(store)})
	if err != nil {
		return err
	}
	if _, ok := t.Source().View.Latest(); !ok {
		return ErrNoCommits
	}
	files, err := t.Source().Files(ctx)
	if err != nil {
		return err
	}
	if len(files.Partitions()) == 0 {
		return ErrNoPartitions
	}
	q := read.Query{AsOf: j.cfg.AsOf, Mode: filegroup.ReadOptimized}
	if j.cfg.Rows == Snapshot {
		q.Mode = filegroup.Snapshot
	}
	if j.cfg.Begin != "" || j.cfg.End != "" {
		if j.cfg.Format == Hudi {
			return errors.New("a range of instants can't be exported as a table: choose parquet, json or csv")
		}
		q.Range = &read.Range{Begin: j.cfg.Begin, End: j.cfg.End}
	}
	if j.snap, err = t.Source().Plan(ctx, q); err != nil {
		return err
	}
	if err := j.countLogs(ctx, t, q); err != nil {
		return err
	}
	if j.cfg.Format == Hudi {
		if j.cfg.PartitionField != "" || j.cfg.Partitioner != "" {
			j.observe(engine.Noted{Text: "format hudi copies the table's own files: the output partitioning is ignored"})
		}
		return nil
	}
	if j.layout, err = newLayout(&j.cfg, j.snap.Schema()); err != nil {
		return err
	}
	j.columns = append(append([]string{}, j.layout.keep...), j.layout.fields...)
	return nil
}

// countLogs says how many file groups a read-optimized export is incomplete for.
func (j *job) countLogs(ctx context.Context, t *hudi.Table, q read.Query) error {
	if j.cfg.Rows != ReadOptimized || t.Config().Type != "MERGE_ON_READ" || q.Range != nil {
		return nil
	}
	q.Mode = filegroup.Snapshot
	whole, err := t.Source().Plan(ctx, q)
	if err != nil {
		return err
	}
	j.withLogs, j.logOnly = logCounts(whole.Slices())
	if j.withLogs+j.logOnly > 0 {
		j.observe(engine.Noted{Text: fmt.Sprintf("WARNING: this is a read-optimized export of a merge-on-read table: %d file groups have log files that are not merged "+
			"and %d file groups that consist of log files only are left out. Give --query-type snapshot to export every row.", j.withLogs, j.logOnly)})
	}
	return nil
}

// begin marks the target as ours, after clearing what an earlier export left in it.
func (j *job) begin(ctx context.Context) error {
	j.token = uuid.NewString()
	if j.existed {
		if err := storage.RemoveAll(ctx, j.target, ""); err != nil {
			return err
		}
	}
	return putBytes(ctx, j.target, begun, []byte(j.token+"\n"))
}

func (j *job) execute(ctx context.Context, pool engine.Engine, tasks []engine.Task, sum *Summary) error {
	var bytes int64
	for _, t := range tasks {
		bytes += t.Cost
	}
	j.observe(engine.Planned{Job: "export " + j.snap.Source().Config.Name, Tasks: len(tasks), Bytes: bytes})
	collect := func(r engine.Result) error {
		var out written
		if err := json.Unmarshal(r.Out, &out); err != nil {
			return err
		}
		sum.add(out)
		sum.Stats.Add(r.Stats)
		return nil
	}
	if err := pool.Run(ctx, tasks, collect); err != nil {
		return err
	}
	if j.cfg.Explain {
		j.explain(sum)
	}
	if len(j.late) > 0 { // the timeline comes after the data that it speaks of
		late, err := j.copyTasks(j.late, "timeline")
		if err != nil {
			return err
		}
		if err := pool.Run(ctx, late, collect); err != nil {
			return err
		}
	}
	if j.props != nil {
		name := path.Join(".hoodie", "hoodie.properties")
		if err := putBytes(ctx, j.target, name, j.props); err != nil {
			return err
		}
		sum.Files = append(sum.Files, name)
	}
	if err := j.remote.settle(ctx, sum.Files); err != nil {
		return err
	}
	if err := putBytes(ctx, j.target, Successful, nil); err != nil {
		return err
	}
	return j.target.Delete(ctx, begun)
}

func (s *Summary) add(out written) {
	s.Files = append(s.Files, out.Files...)
	s.Copied += out.Copied
	for why, n := range out.Decoded {
		if s.Decoded == nil {
			s.Decoded = map[string]int{}
		}
		s.Decoded[why] += n
	}
}

// explain says which base files were copied as bytes, and why others were not.
func (j *job) explain(sum *Summary) {
	if !j.splices() {
		return
	}
	j.observe(engine.Noted{Text: fmt.Sprintf("%d base files were copied without decoding them", sum.Copied)})
	for _, why := range slices.Sorted(maps.Keys(sum.Decoded)) {
		j.observe(engine.Noted{Text: fmt.Sprintf("%d base files were decoded: %s", sum.Decoded[why], why)})
	}
}

// undo removes what a failed run wrote: the target did not exist before it, or was ours to replace.
func (j *job) undo() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := errors.Join(j.remote.withdraw(ctx), storage.RemoveAll(ctx, j.target, "")); err != nil {
		return fmt.Errorf("and what was written to %s could not be removed: %w", j.cfg.Target, err)
	}
	return nil
}

// tasks cuts the work: files to copy, or packs of slices to read.
func (j *job) tasks(ctx context.Context, workers int) ([]engine.Task, error) {
	if j.cfg.Format != Hudi {
		return j.rowTasks(workers)
	}
	data, meta, err := tableFiles(ctx, j.snap)
	if err != nil {
		return nil, err
	}
	if j.props, err = properties(j.snap.Source().Config, time.Now()); err != nil {
		return nil, err
	}
	if j.props == nil {
		meta = append(meta, storage.Info{Name: path.Join(".hoodie", "hoodie.properties")})
	}
	j.late = meta
	return j.copyTasks(data, "data")
}

// copyBytes and copyFiles bound a copy task: large enough that planning costs nothing beside the copy, small enough that
// all workers have some.
const (
	copyBytes = 64 << 20
	copyFiles = 200
)

func (j *job) copyTasks(files []storage.Info, kind string) ([]engine.Task, error) {
	var tasks []engine.Task
	var names []string
	var cost int64
	flush := func() error {
		if len(names) == 0 {
			return nil
		}
		spec, err := json.Marshal(names)
		if err != nil {
			return err
		}
		tasks = append(tasks, engine.Task{ID: fmt.Sprintf("%s-%05d", kind, len(tasks)), Kind: taskCopy, Cost: cost, Spec: spec})
		names, cost = nil, 0
		return nil
	}
	for _, f := range files {
		names = append(names, f.Name)
		cost += f.Size
		if cost >= copyBytes || len(names) >= copyFiles {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	return tasks, flush()
}

func (j *job) copyTask(ctx context.Context, task engine.Task, scope engine.Scope) (json.RawMessage, engine.Stats, error) {
	var stats engine.Stats
	var names []string
	if err := json.Unmarshal(task.Spec, &names); err != nil {
		return nil, stats, err
	}
	for _, name := range names {
		n, err := copyObject(ctx, j.snap.Source().Store, name, j.target, name)
		if err != nil {
			if errors.Is(err, storage.ErrNotExist) {
				err = fmt.Errorf("%w: it was there when the export was planned, so a cleaner or another writer removed it; run the export again", err)
			}
			return nil, stats, err
		}
		stats.BytesRead += n
		stats.BytesWritten += n
		stats.Files++
		scope.Progress(0, n)
	}
	out, err := json.Marshal(written{Files: names})
	return out, stats, err
}

// The packing of slices into tasks follows Spark's of files into splits, so that an export of many small files does not
// become many small files: up to packBytes, each file counted with openCost beside its bytes.
const (
	packBytes = 128 << 20
	openCost  = 4 << 20
)

// pack is the spec of a rows task.
type pack struct {
	Number int               `json:"number"` // of the output file
	Slices []filegroup.Slice `json:"slices"`
}

func (j *job) rowTasks(workers int) ([]engine.Task, error) {
	reader, err := j.snap.Reader(read.ScanOptions{Columns: j.columns})
	if err != nil {
		return nil, err
	}
	slices := reader.Slices()
	var total int64
	for _, s := range slices {
		total += s.Bytes() + openCost
	}
	limit := min(packBytes, max(openCost, total/int64(workers)))
	var packs []pack
	var cost int64
	for _, s := range slices {
		size := s.Bytes() + openCost
		if len(packs) == 0 || cost+size > limit {
			packs = append(packs, pack{Number: len(packs)})
			cost = 0
		}
		last := &packs[len(packs)-1]
		last.Slices = append(last.Slices, s)
		cost += size
	}
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

func (j *job) rowsTask(ctx context.Context, task engine.Task, scope engine.Scope) (json.RawMessage, engine.Stats, error) {
	var stats engine.Stats
	var p pack
	if err := json.Unmarshal(task.Spec, &p); err != nil {
		return nil, stats, err
	}
	reader, err := j.snap.Reader(read.ScanOptions{
		Columns: j.columns, Memory: scope.Memory / 2, TempDir: scope.TempDir,
		Progress: func(bytes int64) { stats.BytesRead += bytes; scope.Progress(0, bytes) },
		Warn:     func(text string) { j.observe(engine.Noted{Text: text}) },
	})
	if err != nil {
		return nil, stats, err
	}
	out, done := newSink(ctx, j, p.Number), written{}
	rest := p.Slices
	if j.splices() {
		s := splicing{job: j, sink: out, reader: reader, scope: scope, stats: &stats}
		if rest, err = s.run(ctx, p.Slices); err != nil {
			return nil, stats, err
		}
		done.Copied, done.Decoded = s.copied, s.why
	}
	files, err := out.drain(reader, rest, func(rows int64) { stats.Rows += rows; scope.Progress(rows, 0) })
	if errors.Is(err, orc.ErrUnsupported) { // a value that ORC has no form for: another try can't help
		err = fmt.Errorf("%w: %w; choose another output format", engine.ErrRefused, err)
	}
	if err != nil {
		return nil, stats, err
	}
	for _, f := range files {
		done.Files = append(done.Files, f.Name)
		stats.BytesWritten += f.Size
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
	name := fmt.Sprintf("part-%05d-%s%sc%03d%s", number, j.token, join, part, suffix(j.cfg.Format, compression))
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
