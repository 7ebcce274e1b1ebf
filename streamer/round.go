package streamer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"os"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/operation"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/open"
	"github.com/sluicelake/sluice/streamer/checkpoint"
	"github.com/sluicelake/sluice/streamer/source"
	"github.com/sluicelake/sluice/streamer/transform"
)

const (
	keySkipCheckpoint = "hoodie.streamer.checkpoint.force.skip"
	keyProviderPath   = "hoodie.streamer.checkpoint.provider.path"
)

// Streamer applies one source to one table, round after round. It is for one goroutine.
type Streamer struct {
	Config
	props   Properties
	kind    operation.Kind
	store   storage.Store
	schemas schemas
	source  source.Source
	change  transform.Transformer // nil: none
	keeps   bool                  // change leaves rows where they are, one for one
	rejects *rejects
	given   checkpoint.Given
	rounds  int
}

// New checks the options, as far as they can be checked without the source, and opens the table or makes it.
func New(ctx context.Context, c Config) (*Streamer, error) {
	s := &Streamer{Config: c.withDefaults()}
	if err := s.required(); err != nil {
		return nil, err
	}
	props, notes, err := LoadProperties(ctx, c.Props, c.HoodieConf)
	if err != nil {
		return nil, err
	}
	s.props = props
	for _, n := range notes {
		s.note("%s", n)
	}
	return s, s.prepare(ctx)
}

func (s *Streamer) required() error {
	for _, option := range []struct{ flag, value string }{{"--target-base-path", s.TargetBasePath}, {"--target-table", s.TargetTable}, {"--table-type", s.TableType}} {
		if option.value == "" {
			return configf("The following option is required: [%s]", option.flag)
		}
	}
	return nil
}

func (s *Streamer) prepare(ctx context.Context) error {
	if err := s.flagsAndProperties(s.props); err != nil {
		return err
	}
	table, err := tableType(s.TableType)
	if err != nil {
		return err
	}
	if s.kind, err = kindOf(s.Op); err != nil {
		return err
	}
	if f := s.BaseFileFormat; f != "" && f != "PARQUET" {
		return &config.UnsupportedError{Table: s.TargetBasePath, Property: "--base-file-format", Value: f, Hint: "Sluice writes Parquet base files only"}
	}
	if err := s.checkForced(s.props, s.kind, table); err != nil {
		return err
	}
	if s.props.text(optToDelete) != "" {
		s.note("%s is not looked at: DELETE_PARTITION takes the partitions of the rows", optToDelete)
	}
	if s.store, err = open.Store(ctx, s.TargetBasePath, open.Options{}); err != nil {
		return err
	}
	if s.schemas, err = provide(ctx, s.SchemaProvider, s.props, s.store); err != nil {
		return err
	}
	if s.rejects, err = s.newRejects(ctx, s.props, s.note); err != nil {
		return err
	}
	if s.source, err = s.newSource(ctx, s.props, s.schemas.source, s.sourceOptions(ctx)); err != nil {
		return err
	}
	if err := s.newTransformer(); err != nil {
		return err
	}
	if err := s.checkTermination(); err != nil {
		return err
	}
	s.given = checkpoint.Given{Checkpoint: s.Checkpoint, Ignore: s.IgnoreCheckpoint}
	if err := s.initialCheckpoint(ctx); err != nil {
		return err
	}
	_, err = s.openTable(ctx, s.store, s.props, table)
	return err
}

func (s *Streamer) sourceOptions(ctx context.Context) source.Options {
	o := source.Options{Parallel: s.Parallel, Note: func(text string) { s.note("%s", text) }}
	if s.rejects != nil {
		o.Reject = func(r *source.RecordError) error {
			at := r.File
			if r.Line > 0 {
				at = fmt.Sprintf("%s:%d", r.File, r.Line)
			}
			return s.rejects.add(ctx, r.Err.Error(), r.Text, at)
		}
	}
	return o
}

func (s *Streamer) newTransformer() error {
	if len(s.Transformers) == 0 {
		return nil
	}
	var err error
	s.change, err = transform.New(s.Transformers, s.props, transform.Options{Memory: s.Memory / 2, TempDir: s.TempDir, Open: openText})
	if errors.Is(err, transform.ErrConfig) {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err != nil {
		return err
	}
	s.keeps = true
	for _, class := range s.Transformers {
		switch lastPart(class) {
		case "AWSDmsTransformer", "FlatteningTransformer", "IdentityTransformer", "AddColumnsTransformer", "dms", "aws-dms", "flatten", "identity", "add-columns":
		default:
			s.keeps = false
		}
	}
	return nil
}

// initialCheckpoint takes --checkpoint from another table where it is not given (tools C.3).
func (s *Streamer) initialCheckpoint(ctx context.Context) error {
	if s.InitialCheckpointProvider == "" || s.given.Checkpoint != "" {
		return nil
	}
	if lastPart(s.InitialCheckpointProvider) != "InitialCheckpointFromAnotherHoodieTimelineProvider" {
		return configf("--initial-checkpoint-provider %s: only InitialCheckpointFromAnotherHoodieTimelineProvider is there", s.InitialCheckpointProvider)
	}
	path := s.props.text(keyProviderPath)
	if path == "" {
		return configf("Required property %s is missing", keyProviderPath)
	}
	store, err := open.Store(ctx, path, open.Options{})
	if err != nil {
		return err
	}
	stored, _, err := storedCheckpoint(ctx, store)
	if err == nil && stored.Key == "" {
		err = configf("Unable to find the latest checkpoint in %s", path)
	}
	s.given.Checkpoint = stored.Key
	return err
}

func storedCheckpoint(ctx context.Context, store storage.Store) (checkpoint.Stored, *config.Table, error) {
	cfg, err := config.Load(ctx, store)
	if err != nil {
		return checkpoint.Stored{}, nil, err
	}
	tl, err := timeline.Load(ctx, store, cfg)
	if err != nil {
		return checkpoint.Stored{}, nil, err
	}
	stored, err := checkpoint.Read(ctx, store, cfg, tl)
	return stored, cfg, err
}

func (s *Streamer) note(format string, args ...any) {
	if s.Event != nil {
		s.Event(Note{Table: s.TargetTable, Text: fmt.Sprintf(format, args...)})
	}
}

// Round reads what is new and writes it. A round without anything new makes no commit.
func (s *Streamer) Round(ctx context.Context) (Round, error) {
	s.rounds++
	begun := s.Now()
	r := Round{Table: s.TargetTable, Number: s.rounds}
	err := s.retrying(ctx, func() error { return s.round(ctx, &r) })
	r.Took = s.Now().Sub(begun)
	if err != nil {
		s.rejects.drop()
		return r, err
	}
	r.Rejected = s.rejects.taken()
	if s.Event != nil {
		s.Event(r)
	}
	return r, nil
}

// retrying repeats a round whose source could not be reached, where that is wanted.
func (s *Streamer) retrying(ctx context.Context, round func() error) error {
	for attempt := 1; ; attempt++ {
		err := round()
		if err == nil || !s.RetryOnSourceFailures || attempt >= max(s.MaxRetries, 1) || !temporary(err) || ctx.Err() != nil {
			return err
		}
		s.rejects.drop()
		s.note("the source could not be read (%v), trying again in %s", err, s.RetryInterval)
		if err := sleep(ctx, s.RetryInterval); err != nil {
			return err
		}
	}
}

// temporary reports whether an error of a source may pass: the network, a time-out.
func temporary(err error) bool {
	var network net.Error
	return errors.Is(err, storage.ErrTemporary) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Streamer) round(ctx context.Context, r *Round) error {
	stored, cfg, err := storedCheckpoint(ctx, s.store)
	if err != nil {
		return err
	}
	from, kept, err := s.given.Resume(stored)
	if err != nil {
		return err
	}
	cursor := source.Cursor{Checkpoint: from}
	if kept {
		cursor.Seen = stored.Seen
	}
	r.From, r.Checkpoint = from, from
	in, err := s.source.Fetch(ctx, cursor, s.SourceLimit)
	if err != nil {
		return fmt.Errorf("Unable to read from source from checkpoint: %s: %w", option(from), err) //nolint:revive,staticcheck // begins with the original's text
	}
	r.Files, r.Bytes, r.Waiting, r.Left, r.Late = in.Files, in.Bytes, in.Waiting, in.Left, in.Late
	if !in.Fresh && !s.commitsEmpty(stored, from, in) {
		return nil
	}
	if s.Event != nil && in.Fresh {
		s.Event(Began{Table: s.TargetTable, Round: s.rounds, From: from, Files: in.Files, Bytes: in.Bytes, Left: in.Left})
	}
	if err := s.checkAbsent(ctx, in); err != nil {
		return err
	}
	return s.write(ctx, cfg, in, r)
}

// checkAbsent holds each file of a round to the rule for all its rows (tools C.8): a column of the table must not be missing,
// unless an option says that it is null then. That another file of the round has it is chance.
func (s *Streamer) checkAbsent(ctx context.Context, in *source.Input) error {
	if len(in.Absent) == 0 || s.change != nil && !s.keeps || s.schemas.target != nil {
		return nil
	}
	for _, key := range []string{optNullMissing, optReconcile, optAllowDrop} {
		if s.props.flag(key) {
			return nil
		}
	}
	table, err := tableSchema(ctx, s.store)
	if errors.Is(err, timeline.ErrNoSchema) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range table.Fields {
		// The full load of AWS DMS has no Op, its change files have: null means the same as I there (tools D.1, D.2).
		if file, ok := in.Absent[f.Name]; ok && f.Name != "Op" {
			return fmt.Errorf("Column dropping is not allowed: %s has no column %s, which the table has; set %s=true to fill it with null", file, f.Name, optNullMissing) //nolint:revive,staticcheck // begins with the original's text
		}
	}
	return nil
}

// commitsEmpty reports whether a round that read nothing makes a commit: where that is asked for and the table has a commit
// already. The very first round of an empty source makes none (tools G.4).
func (s *Streamer) commitsEmpty(stored checkpoint.Stored, from string, in *source.Input) bool {
	if stored.Last == "" {
		return false
	}
	return s.AllowSameCheckpoint || in.Next.Checkpoint != from
}

// option prints a checkpoint as the original does.
func option(v string) string {
	if v == "" {
		return "Optional.empty"
	}
	return "Option{val=" + v + "}"
}

// write puts the rows of a round into the table, and the checkpoint with them.
func (s *Streamer) write(ctx context.Context, cfg *config.Table, in *source.Input, r *Round) error {
	rows, err := s.rows(ctx, in)
	if err != nil {
		return err
	}
	inner := rows.Batches
	rows.Batches = func(yield func(arrow.RecordBatch, error) bool) {
		for batch, err := range inner {
			if !yield(batch, err) || err != nil {
				return
			}
		}
		if err := s.rejects.flush(ctx); err != nil { // before the commit, which moves the checkpoint over them
			yield(nil, err)
		}
	}
	o := operation.Options{
		Conf: s.writeConf(s.props), Memory: s.Memory, TempDir: s.TempDir, Parallel: s.Parallel, Zone: s.Zone, Now: s.now(),
		Event: func(e operation.Event) {
			if s.Event != nil {
				s.Event(Wrote{Table: s.TargetTable, Event: e})
			}
		},
	}
	if s.change != nil && !s.keeps { // SQL has the other half
		o.Memory /= 2
	}
	if !s.props.flag(keySkipCheckpoint) {
		o.Extra = s.given.Entries(cfg.Version, in.Next.Checkpoint, in.Next.Seen)
	}
	if s.rejects != nil {
		o.Reject = func(bad operation.Rejected) error {
			return s.rejects.add(ctx, bad.Err.Error(), rowText(bad.Batch, bad.Row), s.place(in, bad.Count))
		}
	}
	r.Result, err = operation.Run(ctx, s.store, s.kind, rows, o)
	if err != nil {
		return err
	}
	r.Instant, r.Checkpoint = r.Result.Instant, in.Next.Checkpoint
	return s.rejects.flush(ctx)
}

// now is nil where the clock is the machine's.
func (s *Streamer) now() func() time.Time { return s.Config.Now }

// place names the file of a row, where the transformers leave rows where they are.
func (s *Streamer) place(in *source.Input, row int64) string {
	if s.change != nil && !s.keeps {
		return ""
	}
	return in.Place(row)
}

// rows are what comes from the source, transformed, in the target schema where there is one (tools C.4 and C.8).
func (s *Streamer) rows(ctx context.Context, in *source.Input) (operation.Rows, error) {
	rows := operation.Rows{Schema: in.Schema, Avro: in.Avro, Batches: in.Batches}
	if rows.Schema == nil {
		return s.emptyRows(ctx)
	}
	if s.change != nil {
		out, result, err := s.change.Apply(ctx, in.Schema, in.Batches)
		if err != nil {
			return rows, err
		}
		rows = operation.Rows{Schema: out, Batches: result}
	}
	if s.schemas.target == nil {
		if s.schemas.source == nil {
			rows.Avro = nil // rows without an Avro schema of their own are named after the table
		}
		return rows, nil
	}
	want, err := s.schemas.target.Arrow()
	if err != nil {
		return rows, err
	}
	res, err := schema.Resolve(rows.Schema, want, schema.ResolveOptions{File: "the rows of the source", Table: s.schemas.target})
	if err != nil {
		return rows, err
	}
	return operation.Rows{Schema: want, Avro: s.schemas.target, Batches: resolved(res, rows.Batches)}, nil
}

func resolved(res *schema.Resolution, batches iter.Seq2[arrow.RecordBatch, error]) iter.Seq2[arrow.RecordBatch, error] {
	if res.Same() {
		return batches
	}
	return func(yield func(arrow.RecordBatch, error) bool) {
		for batch, err := range batches {
			if err != nil {
				yield(nil, err)
				return
			}
			out, err := res.Batch(memory.DefaultAllocator, batch)
			batch.Release()
			if !yield(out, err) || err != nil {
				return
			}
		}
	}
}

// emptyRows are for a commit that only stores a checkpoint: no rows, in the columns of the table.
func (s *Streamer) emptyRows(ctx context.Context) (operation.Rows, error) {
	t := s.schemas.target
	if t == nil {
		var err error
		if t, err = tableSchema(ctx, s.store); err != nil {
			return operation.Rows{}, err
		}
	}
	want, err := t.Arrow()
	return operation.Rows{Schema: want, Avro: t}, err
}
