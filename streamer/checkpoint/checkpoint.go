// Package checkpoint keeps a streamer's place in its source in the metadata of the table's commits, where Apache Hudi's own
// streamer keeps it too: a table may go from one to the other and back (tools C.5). Rows and checkpoint are one commit, so a
// streamer that is killed neither loses nor repeats a row.
package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/storage"
)

// The entries of a commit's extraMetadata.
const (
	Key      = "deltastreamer.checkpoint.key"        // where the next round goes on
	ResetKey = "deltastreamer.checkpoint.reset_key"  // --checkpoint of the round
	Ignored  = "deltastreamer.checkpoint.ignore_key" // --ignore-checkpoint of the round
	KeyV2    = "streamer.checkpoint.key.v2"          // from table version 8 on
	ResetV2  = "streamer.checkpoint.reset.key.v2"
	// Seen lists the files that a strict file source has read lately (source.Cursor). Apache Hudi does not look at it.
	Seen = "sluice.streamer.checkpoint.seen"
)

// ErrLost: a commit has entries of a streamer, but no checkpoint. The text is the original's.
var ErrLost = errors.New("Unable to find previous checkpoint. Please double check if this table was indeed built via delta streamer.") //nolint:revive,staticcheck // the original's text

// Stored is what the newest commit with entries of a streamer says.
type Stored struct {
	Instant string // of that commit; empty: there is none
	Last    string // of the newest completed commit
	Key     string
	Reset   string
	Ignored string
	Seen    string
}

// Read looks for the newest completed commit that has entries of a streamer, walking back over commits of other writers. In a
// merge-on-read table that has delta commits only those count: compactions carry nothing. Where the active timeline has none the
// archived one is asked, so that a table that others wrote for long does not begin anew.
func Read(ctx context.Context, store storage.Store, cfg *config.Table, tl timeline.Timeline) (Stored, error) {
	writes := streamed(cfg, tl)
	var s Stored
	if last, ok := writes.Last(); ok {
		s.Last = last.Time
	}
	found, err := s.walk(ctx, store, writes)
	if err != nil || found || writes.Len() == 0 {
		return s, err
	}
	archive, err := timeline.Archive(ctx, store, cfg, "", "")
	if err != nil && !errors.Is(err, timeline.ErrDamagedArchive) {
		return s, err
	}
	_, err = s.walk(ctx, store, streamed(cfg, archive))
	return s, err
}

// streamed are the completed writes that may carry a checkpoint.
func streamed(cfg *config.Table, tl timeline.Timeline) timeline.Timeline {
	writes := tl.Completed().Writes()
	if cfg.Type != config.MergeOnRead {
		return writes
	}
	delta := writes.Filter(func(i timeline.Instant) bool { return i.Action == timeline.DeltaCommit })
	if delta.Len() == 0 {
		return writes
	}
	return delta
}

func (s *Stored) walk(ctx context.Context, store storage.Store, writes timeline.Timeline) (bool, error) {
	instants := writes.Instants()
	for i := len(instants) - 1; i >= 0; i-- {
		meta, err := timeline.ReadCommit(ctx, store, instants[i])
		if err != nil {
			return false, fmt.Errorf("looking for the checkpoint: %w", err)
		}
		m := meta.ExtraMetadata
		s.Key, s.Reset = first(m, KeyV2, Key), first(m, ResetV2, ResetKey)
		if s.Key == "" && s.Reset == "" && !has(m, Key, ResetKey, KeyV2, ResetV2) {
			continue
		}
		s.Ignored, s.Seen, s.Instant = m[Ignored], m[Seen], instants[i].Time
		return true, nil
	}
	return false, nil
}

func first(m map[string]string, keys ...string) string {
	for _, k := range keys {
		if m[k] != "" {
			return m[k]
		}
	}
	return ""
}

func has(m map[string]string, keys ...string) bool {
	for _, k := range keys {
		if _, ok := m[k]; ok {
			return true
		}
	}
	return false
}

// Given is what the command line says.
type Given struct {
	Checkpoint string // --checkpoint
	Ignore     string // --ignore-checkpoint
}

// Resume is the place from which a round reads: the first rule that applies counts (tools C.5). fromStored says that it is the
// one that the table keeps, so that what else the table keeps with it counts too.
func (g Given) Resume(s Stored) (from string, fromStored bool, err error) {
	switch {
	case s.Instant == "":
		return g.Checkpoint, false, nil
	case g.Ignore != "" && g.Ignore != s.Ignored:
		return "", false, nil
	case g.Checkpoint != "" && g.Checkpoint != s.Reset:
		return g.Checkpoint, false, nil
	case s.Key != "":
		return s.Key, true, nil
	case s.Last > timeline.FullBootstrap:
		return "", false, fmt.Errorf("%w Commit %s has no checkpoint; --checkpoint says where to go on", ErrLost, s.Instant)
	}
	return "", false, nil
}

// Entries are what the commit of a round keeps. A table of version 8 and above keeps its place under other names.
func (g Given) Entries(tableVersion int, next, seen string) map[string]string {
	key, reset := Key, ResetKey
	if tableVersion >= 8 {
		key, reset = KeyV2, ResetV2
	}
	m := map[string]string{}
	for k, v := range map[string]string{key: next, reset: g.Checkpoint, Ignored: g.Ignore, Seen: seen} {
		if strings.TrimSpace(v) != "" {
			m[k] = v
		}
	}
	return m
}
