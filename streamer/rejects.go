package streamer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/encode"
	"github.com/sluicelake/sluice/hudi/operation"
	"github.com/sluicelake/sluice/hudi/write"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/open"
)

// The properties of the error table (tools C.11).
const (
	keyErrorTable    = "hoodie.errortable.enable"
	keyErrorPath     = "hoodie.errortable.base.path"
	keyErrorName     = "hoodie.errortable.target.table.name"
	keyErrorClass    = "hoodie.errortable.write.class"
	keyErrorStrategy = "hoodie.errortable.write.failure.strategy"
)

// reject is a record that was put aside.
type reject struct {
	Reason  string `json:"reason"`
	Payload string `json:"payload"` // the record's text, or the row as JSON
	Source  string `json:"source"`  // file and line
}

// rejects puts records aside that can't be written: into files of JSON Lines, one for each round that has some, or into a Hudi
// table. They are stored before the round's commit, so that no record is ever in neither place; a round that is done again
// after a failure stores its rejects again.
type rejects struct {
	store   storage.Store
	table   string // name of the Hudi table; empty: files
	lenient bool   // LOG_ERROR: failing to store them is a note
	now     func() time.Time
	note    func(format string, args ...any)

	mu      sync.Mutex
	waiting []reject
	count   int64
	bytes   int
}

// flushBytes is how much is held before it is stored.
const flushBytes = 32 << 20

// newRejects says where the rejects of a table go. Nil: nowhere, the first bad record ends the round.
func (c *Config) newRejects(ctx context.Context, props Properties, note func(string, ...any)) (*rejects, error) {
	if class := props.text(keyErrorClass); class != "" {
		note("%s=%s: classes can't run here; the built-in error table is used", keyErrorClass, class)
	}
	r := &rejects{now: c.Now, note: note}
	at := c.Rejects
	switch {
	case props.flag(keyErrorTable):
		if at = props.text(keyErrorPath); at == "" {
			return nil, configf("%s is on, and %s is missing", keyErrorTable, keyErrorPath)
		}
		r.table = orText(props.text(keyErrorName), "rejects")
		r.lenient = strings.EqualFold(props.text(keyErrorStrategy), "LOG_ERROR")
	case at != "":
	case c.CommitOnErrors:
		at = strings.TrimRight(c.TargetBasePath, "/") + "_rejects"
	default:
		return nil, nil
	}
	var err error
	r.store, err = open.Store(ctx, at, open.Options{})
	return r, err
}

// add puts a record aside.
func (r *rejects) add(ctx context.Context, reason, payload, source string) error {
	r.mu.Lock()
	r.waiting = append(r.waiting, reject{strings.ToValidUTF8(reason, "\uFFFD"), strings.ToValidUTF8(payload, "\uFFFD"), source})
	r.count++
	r.bytes += len(reason) + len(payload) + len(source) + 64
	full := r.bytes >= flushBytes
	r.mu.Unlock()
	if full {
		return r.flush(ctx)
	}
	return nil
}

// taken gives the number of rejects since the last call.
func (r *rejects) taken() int64 {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.count
	r.count = 0
	return n
}

// drop forgets what is not stored: its round failed.
func (r *rejects) drop() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting, r.bytes, r.count = nil, 0, 0
}

// flush stores what waits.
func (r *rejects) flush(ctx context.Context) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		return nil
	}
	var err error
	if r.table == "" {
		err = r.file(ctx)
	} else {
		err = r.rows(ctx)
	}
	if err != nil && !r.lenient {
		return fmt.Errorf("storing %d rejected records in %s: %w", len(r.waiting), r.store.URL(), err)
	}
	if err != nil {
		r.note("storing %d rejected records in %s: %v", len(r.waiting), r.store.URL(), err)
	}
	r.waiting, r.bytes = nil, 0
	return nil
}

func (r *rejects) file(ctx context.Context) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for _, w := range r.waiting {
		if err := e.Encode(w); err != nil {
			return err
		}
	}
	name := fmt.Sprintf("rejects-%s-%s.json", r.now().UTC().Format("20060102150405.000"), storage.NewToken())
	info, err := r.store.Put(ctx, name, &b, storage.PutOptions{IfAbsent: true, Size: int64(b.Len())})
	if err == nil {
		r.note("%d records were put aside in %s", len(r.waiting), storage.Join(r.store.URL(), info.Name))
	}
	return err
}

// rows adds the rejects to a table of the columns reason, payload, source and instant (when they were put aside).
func (r *rejects) rows(ctx context.Context) error {
	if _, err := config.Load(ctx, r.store); errors.Is(err, config.ErrNotTable) {
		if _, err := write.CreateTable(ctx, r.store, write.Spec{Name: r.table, Keyless: true}); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	text := func(name string) arrow.Field {
		return arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: true}
	}
	s := arrow.NewSchema([]arrow.Field{text("reason"), text("payload"), text("source"), text("instant")}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	at := r.now().UTC().Format("20060102150405000")
	for _, w := range r.waiting {
		for i, v := range []string{w.Reason, w.Payload, w.Source, at} {
			b.Field(i).(*array.StringBuilder).Append(v)
		}
	}
	batch := b.NewRecordBatch()
	_, err := operation.Run(ctx, r.store, operation.BulkInsert, operation.Rows{Schema: s, Batches: func(yield func(arrow.RecordBatch, error) bool) { yield(batch, nil) }}, operation.Options{})
	if err == nil {
		r.note("%d records were put aside in the table %s", len(r.waiting), r.store.URL())
	}
	return err
}

// rowText is a row as JSON.
func rowText(batch arrow.RecordBatch, row int) string {
	one := batch.NewSlice(int64(row), int64(row)+1)
	defer one.Release()
	e, err := encode.NewJSON(one.Schema(), encode.Options{})
	if err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(string(e.Append(nil, one)), "\n")
}
