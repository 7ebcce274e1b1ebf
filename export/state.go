package export

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/storage"
)

// state is the folder of the target that tells what an export does and what is done, so that one that was killed can be
// finished. It goes when _SUCCESS has come. Engines take a name with this beginning for no data.
//
//	_sluice_export/lease-000001       who works here
//	_sluice_export/plan               what is to be done
//	_sluice_export/cleared            what was there before is gone
//	_sluice_export/done/rows-00007    what a task has written
const state = "_sluice_export"

var (
	planName    = path.Join(state, "plan")
	clearedName = path.Join(state, "cleared")
	doneDir     = path.Join(state, "done")
)

// maxState bounds what is read of one object of the state.
const maxState = 256 << 20

// plan is what an export does, as far as another run must do the same to finish it.
type plan struct {
	Version int `json:"version"`
	// Arguments are those of the command line that say what comes out, by flag.
	Arguments map[string]string `json:"arguments"`
	Instant   string            `json:"instant"`
	// End of a range of instants.
	End string `json:"end,omitempty"`
	// Pack is the size to which small inputs are packed into tasks: it came from the number of workers of the first run.
	Pack int64 `json:"pack"`
	// Token in the names of files.
	Token string `json:"token"`
	// Digest of the tasks: the same instant of the same table gives the same tasks as long as their files are there.
	Digest string `json:"digest"`
	// Replaces what is in the target: it has to go first.
	Replaces bool `json:"replaces,omitempty"`
}

// planVersion changes with the meaning of tasks and names: what another version began is not finished but begun anew.
const planVersion = 2

// arguments are what makes two exports different ones, by the names of flags.
func (c *Config) arguments(source string) map[string]string {
	all := map[string]string{
		"source-base-path": source, "output-format": string(c.Format), "query-type": string(c.Rows), "as-of": c.AsOf,
		"begin-instant": c.Begin, "end-instant": c.End, "output-partition-field": c.PartitionField, "output-partitioner": c.Partitioner,
		"compression": c.Compression, "parquet-timestamps": string(c.Timestamps), "timezone": c.Zone.String(),
	}
	if c.anyCodec {
		delete(all, "compression")
	}
	if c.KeepMeta {
		all["keep-meta"] = "true"
	}
	if c.WithArchive {
		all["with-archive"] = "true"
	}
	if c.WithMetadata {
		all["with-metadata"] = "true"
	}
	all["columns"], all["filter"] = strings.Join(c.Columns, ","), c.Filter
	all["transformer-class"], all["transformer-sql"], all["transformer-sql-file"] = strings.Join(c.Transformers, ","), c.TransformerSQL, c.TransformerStatements
	if c.SmallRowGroup != DefaultSmallRowGroup {
		all["small-row-group"] = strconv.FormatInt(c.SmallRowGroup, 10)
	}
	maps.DeleteFunc(all, func(_, v string) bool { return v == "" })
	return all
}

// differences says for a person in which arguments two exports differ; empty when in none.
func differences(begun, now map[string]string) string {
	var out []string
	all := maps.Clone(begun)
	maps.Copy(all, now)
	for _, flag := range slices.Sorted(maps.Keys(all)) {
		if begun[flag] != now[flag] {
			out = append(out, fmt.Sprintf("--%s was %q, is %q", flag, begun[flag], now[flag]))
		}
	}
	return strings.Join(out, "; ")
}

// digest of tasks.
func digest(lists ...[]engine.Task) string {
	h := sha256.New()
	for _, tasks := range lists {
		for _, t := range tasks {
			fmt.Fprintf(h, "%q %q %d %s\n", t.ID, t.Kind, t.Cost, t.Spec)
		}
		fmt.Fprintln(h)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// readPlan gives the plan in a target; nil where there is none, or one whose writer died over it: then nothing was done.
func readPlan(ctx context.Context, store storage.Store) (*plan, error) {
	raw, err := storage.ReadAll(ctx, store, planName, maxState)
	if errors.Is(err, storage.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p := &plan{}
	if json.Unmarshal(raw, p) != nil || p.Token == "" {
		return nil, nil //nolint:nilerr // half of a plan is none
	}
	return p, nil
}

func (p *plan) write(ctx context.Context, store storage.Store) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return putBytes(ctx, store, planName, raw)
}

// record says that a task is done.
type record struct {
	Task string  `json:"task"`
	Spec string  `json:"spec"` // digest of the task
	Out  written `json:"out"`
	// Stats of the task, so that a run that finishes another one knows the sums.
	Stats engine.Stats `json:"stats"`

	fresh bool // counted by this run
}

func (j *job) recordDone(ctx context.Context, task engine.Task, out written, stats engine.Stats) error {
	raw, err := json.Marshal(record{Task: task.ID, Spec: digest([]engine.Task{task}), Out: out, Stats: stats})
	if err != nil {
		return err
	}
	return putBytes(ctx, j.target, path.Join(doneDir, task.ID), raw)
}

// records gives what earlier runs have done, by task: only what all files of are there, in the size in which they were
// written.
func (j *job) records(ctx context.Context) (map[string]record, error) {
	names := map[string]bool{}
	for info, err := range j.target.List(ctx, doneDir, storage.ListOptions{Recursive: true}) {
		if err != nil {
			return nil, err
		}
		names[info.Name] = true
	}
	done := map[string]record{}
	if len(names) == 0 {
		return done, nil
	}
	sizes, err := j.sizes(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		raw, err := storage.ReadAll(ctx, j.target, name, maxState)
		if err != nil {
			return nil, err
		}
		var r record
		if json.Unmarshal(raw, &r) != nil || path.Join(doneDir, r.Task) != name || r.Out.missing(sizes) != "" {
			continue // its writer died over it, or over a file: it is done again
		}
		done[r.Task] = r
	}
	return done, nil
}

// sizes lists the target without the state.
func (j *job) sizes(ctx context.Context) (map[string]int64, error) {
	out := map[string]int64{}
	for info, err := range j.target.List(ctx, "", storage.ListOptions{Recursive: true}) {
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(info.Name, state+"/") {
			out[info.Name] = info.Size
		}
	}
	return out, nil
}

// missing says which file of a task is not there as it was written; empty when all are.
func (w written) missing(sizes map[string]int64) string {
	for _, f := range w.Files {
		size, ok := sizes[f.Name]
		switch {
		case !ok:
			return f.Name + " is not there"
		case size != f.Size:
			return fmt.Sprintf("%s has %d bytes, %d were written", f.Name, size, f.Size)
		}
	}
	return ""
}
