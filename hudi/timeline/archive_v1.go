package timeline

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/storage"
)

// The archive of layout 1 are log files ".commits_.archive.<n>_<token>" with AVRO_DATA blocks. Each record is one state of one
// instant (table format 7.5, 6.1). Blocks carry the SCHEMA header only.

var archiveFile = regexp.MustCompile(`^\.commits_\.archive\.\d+(_[^/]*)?$`)

func archiveV1(ctx context.Context, store storage.Store, cfg *config.Table, r archiveRange) ([]Instant, error) {
	c := v1Collector{accept: r, index: map[groupKey]int{}, schemas: newSchemaCache()}
	for info, err := range store.List(ctx, cfg.ArchiveFolder, storage.ListOptions{}) {
		if errors.Is(err, storage.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		if info.Dir || !archiveFile.MatchString(info.Name[strings.LastIndexByte(info.Name, '/')+1:]) {
			continue
		}
		if err := c.file(ctx, store, info.Name); err != nil {
			return nil, fmt.Errorf("%s: %w", storage.Join(store.URL(), info.Name), err)
		}
	}
	return c.instants, errors.Join(c.damage...)
}

type v1Collector struct {
	accept   archiveRange
	instants []Instant
	index    map[groupKey]int
	schemas  *schemaCache
	damage   []error // ErrDamagedArchive each
}

func (c *v1Collector) file(ctx context.Context, store storage.Store, name string) error {
	o, err := store.Open(ctx, name)
	if err != nil {
		return err
	}
	defer o.Close()
	damaged := func(err error) {
		c.damage = append(c.damage, fmt.Errorf("%s: %w", storage.Join(store.URL(), name), err))
	}
	return eachLogBlock(ctx, o, func(b logBlock) error { return c.block(name, b) }, damaged)
}

const (
	blockAvroData = 3
	headerSchema  = 2
)

type logBlock struct {
	kind    int
	schema  string
	content []byte
	offset  int64 // of content in the file
}

const logMagic = "#HUDI#"

// eachLogBlock walks the blocks of a log file (table format 6.1). A block that is cut off or damaged is reported and skipped up
// to the next magic (6.3); a file that does not begin with the magic is an error.
func eachLogBlock(ctx context.Context, o storage.Object, each func(logBlock) error, damaged func(error)) error {
	for at := int64(0); at < o.Size(); {
		b, next, err := readLogBlock(ctx, o, at)
		if errors.Is(err, ErrCorrupt) && at > 0 && !errors.Is(err, ErrDamagedArchive) {
			err = fmt.Errorf("%w: %w", ErrDamagedArchive, err)
		}
		if errors.Is(err, ErrDamagedArchive) {
			damaged(err)
			if next, err = nextMagic(ctx, o, at+int64(len(logMagic))); err != nil {
				return err
			}
			at = next
			continue
		}
		if err != nil {
			return err
		}
		if err := each(b); err != nil {
			return err
		}
		at = next
	}
	return nil
}

// readLogBlock reads the block at a place and gives the place behind it.
func readLogBlock(ctx context.Context, o storage.Object, at int64) (b logBlock, next int64, err error) {
	head, err := readRange(ctx, o, at, min(14, o.Size()-at))
	if err != nil {
		return b, 0, err
	}
	if n := min(len(head), len(logMagic)); string(head[:n]) != logMagic[:n] {
		return b, 0, fmt.Errorf("%w at byte %d: no log block", ErrCorrupt, at)
	}
	if len(head) < 14 {
		return b, 0, fmt.Errorf("%w: %w at byte %d: cut off", ErrDamagedArchive, ErrCorrupt, at)
	}
	size := int64(binary.BigEndian.Uint64(head[6:]))
	if size < 20 || size > o.Size()-at-14 {
		return b, 0, fmt.Errorf("%w at byte %d: a size of %d", ErrDamagedArchive, at, size)
	}
	text, err := readRange(ctx, o, at+14, size)
	if err != nil {
		return b, 0, err
	}
	if trailer := binary.BigEndian.Uint64(text[size-8:]); int64(trailer) != size+6 {
		return b, 0, fmt.Errorf("%w at byte %d: sizes %d and %d", ErrDamagedArchive, at, size, trailer)
	}
	b, err = parseLogBlock(text[:size-8], at+14)
	return b, at + 14 + size, err
}

func parseLogBlock(text []byte, base int64) (b logBlock, err error) {
	r := bigEndian{text: text, base: base}
	version := r.int32()
	b.kind = int(r.int32())
	for range r.count(8) {
		key := r.int32()
		value := r.take(int64(r.int32()))
		if key == headerSchema {
			b.schema = string(value)
		}
	}
	length := r.int64()
	b.offset = base + int64(r.pos)
	b.content = r.take(length)
	if r.err == nil && version != 1 {
		r.fail("log format version %d", version)
	}
	if r.err != nil {
		return b, fmt.Errorf("%w: %w", ErrDamagedArchive, r.err)
	}
	return b, nil
}

// bigEndian reads numbers and keeps the first error.
type bigEndian struct {
	text []byte
	pos  int
	base int64
	err  error
}

func (r *bigEndian) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w at byte %d: %s", ErrCorrupt, r.base+int64(r.pos), fmt.Sprintf(format, args...))
	}
}

func (r *bigEndian) take(n int64) []byte {
	if r.err == nil && (n < 0 || n > int64(len(r.text)-r.pos)) {
		r.fail("%d bytes wanted, %d are left", n, len(r.text)-r.pos)
	}
	if r.err != nil {
		return nil
	}
	b := r.text[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return b
}

func (r *bigEndian) int32() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *bigEndian) int64() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// count reads a number of items of at least size bytes each.
func (r *bigEndian) count(size int) int {
	n := int(r.int32())
	if r.err == nil && (n < 0 || n > (len(r.text)-r.pos)/size) {
		r.fail("%d items, %d bytes are left", n, len(r.text)-r.pos)
	}
	if r.err != nil {
		return 0
	}
	return n
}

// nextMagic finds the next block behind a damaged one, or the end of the file.
func nextMagic(ctx context.Context, o storage.Object, from int64) (int64, error) {
	const window = 1 << 20
	for at := from; at < o.Size(); at += window {
		text, err := readRange(ctx, o, at, min(window+int64(len(logMagic))-1, o.Size()-at))
		if err != nil {
			return 0, err
		}
		if i := bytes.Index(text, []byte(logMagic)); i >= 0 {
			return at + int64(i), nil
		}
	}
	return o.Size(), nil
}

// block takes the records of one AVRO_DATA block: block version, count, then length and Avro binary of each.
func (c *v1Collector) block(file string, b logBlock) error {
	if b.kind != blockAvroData {
		return nil
	}
	t, err := c.schemas.parse(b.schema)
	if err != nil {
		return fmt.Errorf("%w: block at byte %d: %w", ErrCorrupt, b.offset, err)
	}
	if t.Kind != schema.Record {
		return fmt.Errorf("%w: block at byte %d holds no records", ErrCorrupt, b.offset)
	}
	r := bigEndian{text: b.content, base: b.offset}
	r.int32() // versions 0 to 3 have one shape
	for range r.count(4) {
		n := int64(r.int32())
		at := b.offset + int64(r.pos)
		record := r.take(n)
		if r.err != nil {
			break
		}
		e, err := scanEntry(t, record, at)
		if err != nil {
			return err
		}
		c.add(file, e)
	}
	return r.err
}

// v1Entry is a HoodieArchivedMetaEntry without its bodies, of which one is there.
type v1Entry struct {
	Time       string `json:"commitTime"`
	Action     string `json:"actionType"`
	State      string `json:"actionState"`
	Completion string `json:"stateTransitionTime"`

	body archivePart
}

// scanEntry walks the record once: it decodes the small fields and notes where the body lies.
func scanEntry(t *schema.Type, record []byte, offset int64) (v1Entry, error) {
	var e v1Entry
	r := newAvroReader(record, offset)
	v := reflect.ValueOf(&e).Elem()
	for i := range t.Fields {
		f := &t.Fields[i]
		ft := f.Type
		if at := fieldByTag(v.Type(), f.Name); at >= 0 {
			if err := r.into(ft, v.Field(at)); err != nil {
				return e, err
			}
			continue
		}
		if ft.Kind == schema.Union {
			n, err := r.long()
			if err != nil {
				return e, err
			}
			if n < 0 || n >= int64(len(ft.Branches)) {
				return e, r.fail("branch %d of a union of %d", n, len(ft.Branches))
			}
			ft = ft.Branches[n]
		}
		start := r.pos
		if err := r.into(ft, reflect.Value{}); err != nil {
			return e, err
		}
		if ft.Kind == schema.Record {
			e.body = archivePart{offset: offset + int64(start), length: r.pos - start, writer: ft}
		}
	}
	return e, nil
}

func (c *v1Collector) add(file string, e v1Entry) {
	state, ok := map[string]State{"REQUESTED": Requested, "INFLIGHT": Inflight, "COMPLETED": Completed, "": Completed}[e.State]
	action := Action(e.Action)
	if !ok || !allDigits(e.Time) || !action.known(Requested) || !c.accept.holds(e.Time) {
		return
	}
	if state == Completed {
		action = action.Completes()
	}
	key := groupKey{e.Time, action.Completes()}
	at, found := c.index[key]
	if !found {
		at = len(c.instants)
		c.index[key] = at
		c.instants = append(c.instants, Instant{Time: e.Time, Action: action, State: state, Archived: true, archive: &archived{}})
	}
	i := &c.instants[at]
	e.body.file = file
	if i.archive.parts[state].writer == nil {
		i.archive.parts[state] = e.body // a second copy, of an archival that was run again, is the same
	}
	if state >= i.State {
		i.Action, i.State = action, state
		if state == Completed && allDigits(e.Completion) {
			i.Completion = e.Completion
		}
	}
}
