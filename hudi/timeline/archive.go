package timeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/storage"
)

// Archive reads the archived timeline of either layout: the instants with requested times from "from" to "to", both included;
// an empty bound is open. Times, actions and completion times are held, the bodies stay in the store: hand the instants to
// ReadCommit and its sisters as usual. The result is empty when nothing was archived.
//
// Where blocks of layout 1 are damaged, what could be read comes together with an error that is ErrDamagedArchive. A caller for
// whom a cut-off tail is no surprise may go on: archival that died while it wrote has left those instants active.
func Archive(ctx context.Context, store storage.Store, cfg *config.Table, from, to string) (Timeline, error) {
	r := archiveRange{from: from, to: to}
	var instants []Instant
	var err error
	if cfg.Layout == 1 {
		instants, err = archiveV1(ctx, store, cfg, r)
	} else {
		instants, err = archiveV2(ctx, store, cfg, r)
	}
	switch {
	case errors.Is(err, ErrDamagedArchive):
		return New(cfg.Layout, instants), fmt.Errorf("read the archived timeline: %w", err)
	case err != nil:
		return Timeline{}, fmt.Errorf("read the archived timeline: %w", err)
	}
	return New(cfg.Layout, instants), nil
}

// ErrDamagedArchive: a block of an archive file is cut off or spoilt.
var ErrDamagedArchive = errors.New("damaged block")

// Merge puts archived instants before an active timeline. An instant that stands in both, because archival was cut off before
// it deleted the active files, is taken from the active one.
func Merge(active, archive Timeline) Timeline {
	have := make(map[groupKey]bool, len(active.instants))
	for _, i := range active.instants {
		have[groupKey{i.Time, i.Action.Completes()}] = true
	}
	all := append([]Instant(nil), active.instants...)
	for _, i := range archive.instants {
		if !have[groupKey{i.Time, i.Action.Completes()}] {
			all = append(all, i)
		}
	}
	return New(active.layout, all)
}

type archiveRange struct{ from, to string }

func (r archiveRange) holds(at string) bool {
	return (r.from == "" || at >= r.from) && (r.to == "" || at <= r.to)
}

// content is one body with what is needed to decode it.
type content struct {
	text    []byte
	writer  *schema.Type // Avro binary of this type; nil: a body as in the active timeline
	offset  int64        // of text in its file
	schemas *schemaCache // may be nil
}

// decode understands whatever form the body has.
func (c content) decode(into any) error {
	switch {
	case c.writer != nil:
		return decodeRecord(c.writer, c.text, c.offset, into)
	case len(c.text) == 0:
		return nil
	case bytes.HasPrefix(c.text, []byte(avroMagic)):
		return decodeContainer(c.text, into, c.schemas)
	case !bytes.HasPrefix(bytes.TrimLeft(c.text, " \t\r\n"), []byte("{")):
		return fmt.Errorf("%w at byte 0: neither Avro nor JSON", ErrCorrupt)
	}
	return decodeJSON(c.text, into)
}

// archived says where the bodies of an archived instant lie.
type archived struct {
	file string
	// Layout 1: one part per state, which may lie in different files.
	parts [3]archivePart
	// Layout 2: a row of a Parquet file.
	rowGroup, row int
}

type archivePart struct {
	file   string
	offset int64
	length int
	writer *schema.Type
}

// body reads the body of one state; a state that was not archived has an empty one.
func (a *archived) body(ctx context.Context, store storage.Store, s State) (content, string, error) {
	if a.file != "" {
		text, err := readHistoryBody(ctx, store, a, s)
		return content{text: text}, storage.Join(store.URL(), a.file), err
	}
	p := a.parts[s]
	name := storage.Join(store.URL(), p.file)
	if p.writer == nil {
		return content{}, name, nil
	}
	o, err := store.Open(ctx, p.file)
	if err != nil {
		return content{}, name, err
	}
	defer o.Close()
	text, err := readRange(ctx, o, p.offset, int64(p.length))
	return content{text: text, writer: p.writer, offset: p.offset}, name, err
}

// readRange reads exactly n bytes; n is held against the size of the object first.
func readRange(ctx context.Context, o storage.Object, offset, n int64) ([]byte, error) {
	if offset < 0 || n < 0 || n > o.Size()-offset {
		return nil, fmt.Errorf("%w at byte %d: %d bytes wanted of %d", ErrCorrupt, offset, n, o.Size())
	}
	text := make([]byte, n)
	if got, err := o.ReadAt(ctx, text, offset); got < len(text) {
		return nil, fmt.Errorf("%d of %d bytes at %d: %w", got, n, offset, err)
	}
	return text, nil
}
