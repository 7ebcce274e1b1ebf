package export

import (
	"context"
	"encoding/json"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/engine/local"
)

// Preview is what an export would do.
type Preview struct {
	Source  string `json:"source"`
	Target  string `json:"target"`
	Format  Format `json:"format"`
	Instant string `json:"instant"`
	// Resumes says that an unfinished export of the same arguments lies in the target, and Kept how many of the tasks it has done.
	Resumes bool `json:"resumes"`
	Kept    int  `json:"kept,omitempty"`
	// Replaces says that what is in the target would go.
	Replaces bool     `json:"replaces"`
	Tasks    int      `json:"tasks"`
	Read     Amount   `json:"read"` // data files of the source, log files too
	Columns  []string `json:"columns,omitempty"`
	Folders  []string `json:"folders,omitempty"` // names of the levels
	// Copied are files whose bytes go on as they are: all of a copy, or the column chunks of base files. The footers have to
	// bear that out: they are read with Config.Explain only.
	Copied Amount `json:"copied"`
	// Decoded are the others, by the reason why.
	Decoded  map[string]Amount `json:"decoded,omitempty"`
	Timeline int               `json:"timeline,omitempty"` // files of the timeline that a copy takes
	WithLogs int               `json:"withLogs,omitempty"` // as in Summary
	LogOnly  int               `json:"logOnly,omitempty"`
}

// Amount of files.
type Amount struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

func (a *Amount) add(files int, bytes int64) {
	a.Files += files
	a.Bytes += bytes
}

// Plan says what Run would do, with the same checks and refusals, and writes nothing.
func Plan(ctx context.Context, c Config, opts local.Options) (p Preview, err error) {
	if err := c.setDefaults(); err != nil {
		return p, err
	}
	if c.Parallelism > 0 {
		opts.Workers = c.Parallelism
	}
	j := &job{cfg: c, observe: opts.Observe}
	if j.observe == nil {
		j.observe = func(engine.Event) {}
	}
	if err := j.prepare(ctx, local.New(nil, opts).Workers()); err != nil {
		return p, err
	}
	p = Preview{Source: j.source.URL(), Target: j.target.URL(), Format: c.Format, Instant: j.plan.Instant, Resumes: j.resumed || j.complete, Replaces: j.replaces}
	if j.complete {
		return p, nil
	}
	p.Tasks, p.WithLogs, p.LogOnly, p.Folders, p.Columns = len(j.tasks)+len(j.late), j.withLogs, j.logOnly, j.layout.names, j.layout.keep
	if j.resumed {
		done, err := j.records(ctx)
		if err != nil {
			return p, err
		}
		p.Kept = len(done)
	}
	if c.Format == Hudi {
		return p, p.copies(j)
	}
	return p, p.rows(ctx, j)
}

// copies sums up a copy.
func (p *Preview) copies(j *job) error {
	for i, list := range [][]engine.Task{j.tasks, j.late} {
		for _, t := range list {
			var pack []file
			if err := json.Unmarshal(t.Spec, &pack); err != nil {
				return err
			}
			if i == 1 {
				p.Timeline += len(pack)
				continue
			}
			p.Read.add(len(pack), t.Cost)
			p.Copied.add(len(pack), t.Cost)
		}
	}
	return nil
}

// rows sums up an export of rows, file by file.
func (p *Preview) rows(ctx context.Context, j *job) error {
	reader, err := j.snap.Reader(j.scan())
	if err != nil {
		return err
	}
	p.Decoded = map[string]Amount{}
	for _, t := range j.tasks {
		var pack pack
		if err := json.Unmarshal(t.Spec, &pack); err != nil {
			return err
		}
		s := splicing{job: j, reader: reader}
		small := s.surelySmall(pack.Slices)
		for _, sl := range pack.Slices {
			files := len(sl.Logs)
			if sl.Base != nil {
				files++
			}
			p.Read.add(files, sl.Bytes())
			var why string
			switch {
			case len(j.cfg.Transformers) > 0:
				why = "rows are transformed"
			case len(j.layout.names) > 0:
				why = "rows go to folders"
			case j.cfg.Format != Parquet:
				why = "the format is " + string(j.cfg.Format)
			case small(sl):
				why = joined
			case j.cfg.Explain:
				var c *candidate
				if c, why = s.look(ctx, sl); c != nil {
					if err := c.file.Close(); err != nil {
						return err
					}
				}
			default:
				_, why = reader.Stored(sl)
			}
			if why == "" {
				p.Copied.add(files, sl.Bytes())
				continue
			}
			a := p.Decoded[why]
			a.add(files, sl.Bytes())
			p.Decoded[why] = a
		}
	}
	return nil
}
