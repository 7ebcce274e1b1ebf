package timeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluicelake/sluice/storage"
)

// ErrEmptyCommit: a completed commit file has no byte. Nobody knows what it wrote, so it is neither a commit of no files nor
// to be ignored (C085).
var ErrEmptyCommit = errors.New("completed commit is empty")

// A reader may look between the creating and the writing of a file where the store is no atomic one.
const (
	emptyPatience = 2 * time.Second
	emptyPause    = 100 * time.Millisecond
)

// maxBody is the largest timeline file that is read, in bytes. A commit of a million files has about 800 MB of JSON.
const maxBody = 2 << 30

// ReadCommit reads what a commit, delta commit or replace commit says of itself; for a pending one its workload profile,
// which may be empty. JSON and Avro are told apart by their first bytes. A completed file that stays empty for two seconds
// fails with ErrEmptyCommit.
func ReadCommit(ctx context.Context, store storage.Store, i Instant) (*CommitMetadata, error) {
	c, name, err := body(ctx, store, i, i.State)
	if err != nil {
		return nil, err
	}
	if len(c.text) == 0 && c.writer == nil && i.State == Completed {
		return nil, fmt.Errorf("%w: %s; roll it back with Apache Hudi or restore the file", ErrEmptyCommit, name)
	}
	m, err := c.commit()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// DecodeCommit decodes the body of a commit, delta commit or replace commit: JSON, Avro, or nothing at all, which is an empty
// commit.
func DecodeCommit(text []byte) (*CommitMetadata, error) { return content{text: text}.commit() }

func (c content) commit() (*CommitMetadata, error) {
	m := &CommitMetadata{}
	if err := c.decode(m); err != nil {
		return nil, err
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	return m, nil
}

func decodeJSON(text []byte, into any) error {
	err := json.Unmarshal(text, into)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("%w at byte %d: %w", ErrCorrupt, syntax.Offset, err)
	case errors.As(err, &kind):
		return fmt.Errorf("%w at byte %d: %w", ErrCorrupt, kind.Offset, err)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}

// check makes sure that no path of a commit can point outside the table, and fills in maps so that callers need no nil tests.
func (m *CommitMetadata) check() error {
	safe := func(what, name string) error {
		if name == "" {
			return nil
		}
		if err := storage.CheckName(name); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
	for partition, stats := range m.PartitionToWriteStats {
		err := safe("partition", partition)
		for i := range stats {
			s := &stats[i]
			err = errors.Join(err, safe("path", s.Path), safe("partition path", s.PartitionPath), safe("base file", s.BaseFile))
			for _, log := range s.LogFiles {
				err = errors.Join(err, safe("log file", log))
			}
			for cdc := range s.CDCStats {
				err = errors.Join(err, safe("change file", cdc))
			}
		}
		if err != nil {
			return err
		}
	}
	for partition := range m.PartitionToReplaceFileIDs {
		if err := safe("replaced partition", partition); err != nil {
			return err
		}
	}
	if m.ExtraMetadata == nil {
		m.ExtraMetadata = map[string]string{}
	}
	return nil
}

// ReadCompactionPlan reads the plan of a compaction or log compaction, whatever its state.
func ReadCompactionPlan(ctx context.Context, store storage.Store, i Instant) (*CompactionPlan, error) {
	p := &CompactionPlan{Version: 1}
	return p, readPlan(ctx, store, i, Requested, p)
}

// ReadReplacePlan reads the requested body of a replace commit or clustering. Zero bytes are an empty plan.
func ReadReplacePlan(ctx context.Context, store storage.Store, i Instant) (*ReplacePlan, error) {
	p := &ReplacePlan{Version: 1}
	err := readPlan(ctx, store, i, Requested, p)
	if errors.Is(err, errNoBody) {
		return p, nil
	}
	return p, err
}

// ReadCleanerPlan reads the plan of a clean, whatever its state.
func ReadCleanerPlan(ctx context.Context, store storage.Store, i Instant) (*CleanerPlan, error) {
	p := &CleanerPlan{Version: 1}
	return p, readPlan(ctx, store, i, Requested, p)
}

// ReadClean reads what a completed clean did.
func ReadClean(ctx context.Context, store storage.Store, i Instant) (*CleanMetadata, error) {
	m := &CleanMetadata{Version: 1}
	return m, readPlan(ctx, store, i, Completed, m)
}

// ReadRollbackPlan reads the plan of a rollback, whatever its state.
func ReadRollbackPlan(ctx context.Context, store storage.Store, i Instant) (*RollbackPlan, error) {
	p := &RollbackPlan{Version: 1}
	return p, readPlan(ctx, store, i, Requested, p)
}

// ReadRollback reads what a completed rollback did.
func ReadRollback(ctx context.Context, store storage.Store, i Instant) (*RollbackMetadata, error) {
	m := &RollbackMetadata{Version: 1}
	return m, readPlan(ctx, store, i, Completed, m)
}

// ReadRestorePlan reads the plan of a restore, whatever its state.
func ReadRestorePlan(ctx context.Context, store storage.Store, i Instant) (*RestorePlan, error) {
	p := &RestorePlan{Version: 1}
	return p, readPlan(ctx, store, i, Requested, p)
}

// ReadRestore reads what a completed restore did.
func ReadRestore(ctx context.Context, store storage.Store, i Instant) (*RestoreMetadata, error) {
	m := &RestoreMetadata{Version: 1}
	return m, readPlan(ctx, store, i, Completed, m)
}

// ReadSavepoint reads which files a completed savepoint protects.
func ReadSavepoint(ctx context.Context, store storage.Store, i Instant) (*SavepointMetadata, error) {
	m := &SavepointMetadata{Version: 1}
	return m, readPlan(ctx, store, i, Completed, m)
}

// ReadIndexPlan reads the plan of an indexing action, whatever its state.
func ReadIndexPlan(ctx context.Context, store storage.Store, i Instant) (*IndexPlan, error) {
	p := &IndexPlan{Version: 1}
	return p, readPlan(ctx, store, i, Requested, p)
}

// ReadIndexCommit reads what a completed indexing action built.
func ReadIndexCommit(ctx context.Context, store storage.Store, i Instant) (*IndexCommit, error) {
	m := &IndexCommit{Version: 1}
	return m, readPlan(ctx, store, i, Completed, m)
}

var errNoBody = errors.New("the file is empty")

func readPlan(ctx context.Context, store storage.Store, i Instant, s State, into paths) error {
	c, name, err := body(ctx, store, i, s)
	if err == nil {
		err = c.plan(into)
	}
	if err != nil && name != "" {
		return fmt.Errorf("%s: %w", name, err)
	}
	return err
}

// plan decodes a body and makes its paths safe.
func (c content) plan(into paths) error {
	if len(c.text) == 0 && c.writer == nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, errNoBody)
	}
	if err := c.decode(into); err != nil {
		return err
	}
	w := &pathWalk{}
	into.walk(w)
	return w.err
}

// body reads the file of one state of an instant, or its part of an archive, and gives a name for messages. A completed file
// without a byte is tried again for a while.
func body(ctx context.Context, store storage.Store, i Instant, s State) (c content, name string, err error) {
	if i.archive != nil {
		c, name, err = i.archive.body(ctx, store, s)
		c.schemas = i.schemas
		return c, name, err
	}
	c.schemas = i.schemas
	file := i.fileOf(s)
	if file == "" {
		return c, "", fmt.Errorf("%s %s has no %s file: %w", i.Action, i.Time, s, storage.ErrNotExist)
	}
	name = storage.Join(store.URL(), file)
	deadline := time.Now().Add(emptyPatience)
	for {
		c.text, err = storage.ReadAll(ctx, store, file, maxBody)
		if err != nil || len(c.text) > 0 || s != Completed || time.Now().After(deadline) {
			return c, name, err
		}
		select {
		case <-ctx.Done():
			return c, name, ctx.Err()
		case <-time.After(emptyPause):
		}
	}
}

// fileOf finds the instant's file of a state.
func (i Instant) fileOf(s State) string {
	if s == i.State {
		return i.File
	}
	for _, name := range i.Files {
		if f, ok := ParseFileName(2, lastElement(name)); ok && f.State == s {
			return name
		}
	}
	return ""
}
