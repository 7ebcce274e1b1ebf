package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/read"
	"github.com/sluicelake/sluice/streamer/transform"
)

// transformer makes what Config.Transformers names.
func (c *Config) transformer(o transform.Options) (transform.Transformer, error) {
	o.Open = func(context.Context, string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(c.TransformerStatements)), nil
	}
	props := map[string]string{transform.KeySQL: c.TransformerSQL}
	if c.TransformerStatements != "" {
		props[transform.KeySQLFile] = "given with the transformer"
	}
	return transform.New(c.Transformers, props, o)
}

// setTransformer checks the transformers before anything is read.
func (c *Config) setTransformer() error {
	switch {
	case len(c.Transformers) == 0 && c.TransformerSQL+c.TransformerStatements != "":
		return &UsageError{errors.New("SQL is given and no transformer that runs it: add --transformer-class SqlQueryBasedTransformer, or SqlFileBasedTransformer for a file")}
	case len(c.Transformers) == 0:
		return nil
	case c.Format == Hudi:
		return &UsageError{errors.New("format hudi copies the table's own files: rows can't be transformed; choose parquet, orc, json or csv")}
	}
	t, err := c.transformer(transform.Options{})
	if err != nil && strings.Contains(err.Error(), transform.KeySQL) {
		err = fmt.Errorf("%w; SqlQueryBasedTransformer takes its query from --transformer-sql, SqlFileBasedTransformer its file from --transformer-sql-file", err)
	}
	if err != nil {
		return &UsageError{err}
	}
	c.whole = !transform.PerRow(t)
	return nil
}

// outline gives the columns that the rows of the table have when they have been transformed.
func (c *Config) outline(ctx context.Context, columns *arrow.Schema) (*arrow.Schema, error) {
	if len(c.Transformers) == 0 {
		return columns, nil
	}
	t, err := c.transformer(transform.Options{})
	if err != nil {
		return nil, err
	}
	out, _, err := t.Apply(ctx, columns, func(func(arrow.RecordBatch, error) bool) {})
	if err != nil {
		return nil, &UsageError{err}
	}
	seen := map[string]bool{}
	for _, f := range out.Fields() {
		name := strings.ToLower(f.Name)
		if seen[name] {
			return nil, &UsageError{fmt.Errorf("the transformer gives two columns named %s: name one of them otherwise (AS)", f.Name)}
		}
		seen[name] = true
	}
	return out, nil
}

// rows gives the rows of slices, one slice after the other, as they go into files: transformed, with the columns of the layout.
func (j *job) rows(ctx context.Context, r *read.Reader, in []filegroup.Slice, scope engine.Scope) (*arrow.Schema, iter.Seq2[arrow.RecordBatch, error], error) {
	rows := func(yield func(arrow.RecordBatch, error) bool) {
		for _, s := range in {
			for batch, err := range r.Scan(ctx, s) {
				if !yield(batch, err) || err != nil {
					return
				}
			}
		}
	}
	if len(j.cfg.Transformers) == 0 {
		return r.Schema(), rows, nil
	}
	t, err := j.cfg.transformer(transform.Options{Memory: scope.Memory / 2, TempDir: scope.TempDir})
	if err != nil {
		return nil, nil, err
	}
	all, changed, err := t.Apply(ctx, r.Schema(), rows)
	if err != nil {
		return nil, nil, err
	}
	at := make([]int, len(j.columns))
	fields := make([]arrow.Field, len(j.columns))
	for i, name := range j.columns {
		found := all.FieldIndices(name)
		if len(found) != 1 {
			return nil, nil, fmt.Errorf("%w: the transformer gave %d columns named %s when it was planned one", engine.ErrRefused, len(found), name)
		}
		at[i], fields[i] = found[0], all.Field(found[0])
	}
	out := arrow.NewSchema(fields, nil)
	return out, func(yield func(arrow.RecordBatch, error) bool) {
		for batch, err := range changed {
			if err != nil {
				yield(nil, err)
				return
			}
			columns := make([]arrow.Array, len(at))
			for i, from := range at {
				columns[i] = batch.Column(from)
			}
			picked := array.NewRecordBatch(out, columns, batch.NumRows())
			batch.Release()
			if !yield(picked, nil) {
				return
			}
		}
	}, nil
}
