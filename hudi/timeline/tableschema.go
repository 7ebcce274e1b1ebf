package timeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/storage"
)

// ErrNoSchema: neither a commit nor the table's properties hold a schema. The footer of the newest data file may (table format
// 2.6); asking it is the caller's part.
var ErrNoSchema = errors.New("no schema in the timeline or the table's properties")

// FromProperties is the source that TableSchema names when the schema is the one of the table's creation.
const FromProperties = "hoodie.table.create.schema"

// latestSchema is the key of commit metadata under which schema-on-read keeps the newest internal schema.
const latestSchema = "latest_schema"

// TableSchema gives the schema of the table's data columns at an instant, or of the newest when at is empty, and where it comes
// from: the time of a commit, or FromProperties. Meta columns are left out: commits of ALTER TABLE hold them, others do not.
//
// Partition columns that the table does not store in its files stand at the end, as nullable strings.
//
// It is the schema of the newest completed write at or before the instant that carries one. Compaction, clustering and
// indexing can't change a schema, and may carry an old one: they are asked last (table format 2.6).
func TableSchema(ctx context.Context, store storage.Store, cfg *config.Table, tl Timeline, at string) (t *schema.Type, source string, err error) {
	text, source, err := schemaText(ctx, store, cfg, tl, at)
	if err != nil {
		return nil, "", err
	}
	if text == "" {
		return nil, "", fmt.Errorf("%w: %s", ErrNoSchema, store.URL())
	}
	if t, err = schema.ParseString(text); err != nil {
		return nil, "", fmt.Errorf("schema of %s in %s: %w", store.URL(), source, err)
	}
	if t.Kind != schema.Record {
		return nil, "", fmt.Errorf("schema of %s in %s is a %s, not a record", store.URL(), source, t.Kind)
	}
	return withPartitionColumns(schema.WithoutMeta(t), cfg), source, nil
}

// withPartitionColumns adds the partition columns of a table that does not store them, as nullable strings at the end: that is
// what Apache Hudi reports for it, whatever type they once had.
func withPartitionColumns(t *schema.Type, cfg *config.Table) *schema.Type {
	if !cfg.DropPartitionColumns {
		return t
	}
	for _, name := range cfg.PartitionFields {
		if _, ok := t.Field(name); !ok {
			text := &schema.Type{Kind: schema.Union, Branches: []*schema.Type{{Kind: schema.Null}, {Kind: schema.String}}}
			t.Fields = append(t.Fields, schema.Field{Name: name, Type: text, Default: json.RawMessage("null")})
		}
	}
	return t
}

func schemaText(ctx context.Context, store storage.Store, cfg *config.Table, tl Timeline, at string) (text, source string, err error) {
	var rewrite, rewriteSource string
	for i, m := range newestCommits(ctx, store, tl, at, &err) {
		if m.Schema() == "" {
			continue
		}
		if canChangeSchema(m.OperationType) {
			return m.Schema(), i.Time, nil
		}
		if rewrite == "" {
			rewrite, rewriteSource = m.Schema(), i.Time
		}
	}
	if err != nil || rewrite != "" {
		return rewrite, rewriteSource, err
	}
	return cfg.CreateSchema, FromProperties, nil
}

// newestCommits yields the metadata of completed writes at or before an instant, newest first. It stops at the first error and
// leaves it in err.
func newestCommits(ctx context.Context, store storage.Store, tl Timeline, at string, err *error) func(func(Instant, *CommitMetadata) bool) {
	return func(yield func(Instant, *CommitMetadata) bool) {
		for _, i := range slices.Backward(tl.instants) {
			if i.State != Completed || !i.Action.IsWrite() || at != "" && i.Time > at {
				continue
			}
			m, readErr := ReadCommit(ctx, store, i)
			if readErr != nil {
				*err = readErr
				return
			}
			if !yield(i, m) {
				return
			}
		}
	}
}

func canChangeSchema(operation string) bool {
	switch operation {
	case "COMPACT", "LOG_COMPACT", "CLUSTER", "INDEX":
		return false
	}
	return true
}

// InternalSchema gives the schema-on-read schema that the newest commit at or before an instant names, and every version that
// the table knows, newest first. Both are nil for a table without schema-on-read.
func InternalSchema(ctx context.Context, store storage.Store, tl Timeline, at string) (*schema.Internal, schema.InternalHistory, error) {
	latest, err := latestInternal(ctx, store, tl, at)
	if latest == nil || err != nil {
		return nil, nil, err
	}
	history, err := internalHistory(ctx, store, at)
	if err != nil {
		return nil, nil, err
	}
	return latest, history.With(latest), nil
}

// latestInternal looks at the newest commit that can change the schema only: when that one carries none, schema-on-read is off
// again.
func latestInternal(ctx context.Context, store storage.Store, tl Timeline, at string) (*schema.Internal, error) {
	var err error
	for i, m := range newestCommits(ctx, store, tl, at, &err) {
		text := m.ExtraMetadata[latestSchema]
		if text == "" {
			if canChangeSchema(m.OperationType) {
				return nil, nil
			}
			continue
		}
		in, err := schema.ParseInternal([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("%s of commit %s in %s: %w", latestSchema, i.Time, store.URL(), err)
		}
		return in, nil
	}
	return nil, err
}

// internalHistory reads the newest schema commit at or before an instant, which holds all versions up to then.
func internalHistory(ctx context.Context, store storage.Store, at string) (schema.InternalHistory, error) {
	tl, err := LoadSchemaCommits(ctx, store)
	if err != nil {
		return nil, err
	}
	for _, i := range slices.Backward(tl.instants) {
		if i.State != Completed || i.Action != SchemaCommit || at != "" && i.Time > at {
			continue
		}
		c, name, err := body(ctx, store, i, Completed)
		if err != nil {
			return nil, err
		}
		h, err := schema.ParseInternalHistory(c.text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return h, nil
	}
	return nil, nil
}
