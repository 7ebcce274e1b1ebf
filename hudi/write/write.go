// Package write is the protocol by which a table is changed (table format 7.1): one writer at a time, under a lock in the
// table's own storage; an instant that is requested, in flight, and completed by one put-if-absent; markers for every data
// file before it is made; the rollback of writes that failed, our own and those of Apache Hudi.
//
//	t, err := write.Begin(ctx, store, write.Options{Action: timeline.Commit, Operation: "UPSERT"})
//	err = t.Inflight(ctx, profile)
//	f, err := t.New(ctx, partition, fileID, ".parquet", marker.Merge) // for each data file; put the data at f.Path
//	meta, err := t.Commit(ctx, stats, extra, nil)                     // or t.Abort(ctx)
//
// A process that is killed anywhere leaves the table as it was before or after the commit, and the next Begin removes what it
// left behind. What the rows are, and into which files they go, is not this package's business.
package write

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/hudi/write/lock"
	"github.com/sluicelake/sluice/hudi/write/marker"
	"github.com/sluicelake/sluice/hudi/write/rollback"
	"github.com/sluicelake/sluice/storage"
)

var (
	// ErrConflict: somebody else changed the table since the transaction began. Nothing was committed.
	ErrConflict = errors.New("the table was changed by another writer")
	// ErrUncertain: the store did not say whether it took the commit, and could not be asked. Open the table to see.
	ErrUncertain = errors.New("it is not known whether the write was committed")
	// ErrDone: the transaction was committed or given up before.
	ErrDone = errors.New("the transaction has ended")
	// ErrBusy: a writer of another kind is alive on the table, or has left work that must be finished first.
	ErrBusy = errors.New("another writer is at work on the table")
)

// Options that Begin looks at.
const (
	optMetadata    = "hoodie.metadata.enable"
	optConcurrency = "hoodie.write.concurrency.mode"
	optFailed      = "hoodie.clean.failed.writes.policy"
	optBeat        = "hoodie.client.heartbeat.interval_in_ms"
	optMisses      = "hoodie.client.heartbeat.tolerable.misses"
)

// Options of Begin. Action and Operation must be given.
type Options struct {
	// Action is Commit on copy-on-write tables, DeltaCommit on merge-on-read tables, ReplaceCommit on both.
	Action timeline.Action
	// Operation as commits store it: UPSERT, INSERT, BULK_INSERT, DELETE, INSERT_OVERWRITE, INSERT_OVERWRITE_TABLE, DELETE_PARTITION.
	Operation string
	// Schema of the data columns after this write, Avro JSON without meta columns; empty: the table's schema stays.
	Schema string
	// Reconcile, when set, gives that schema, from the table's, which is nil where the table has none yet. It is called while the
	// lock is held and before anything is published; its error ends the write.
	Reconcile func(table *schema.Type) (*schema.Type, error)
	// Conf are hoodie.* options of the write.
	Conf map[string]string
	// Lock replaces what Conf says about the lock; nil: Conf.
	Lock *lock.Options
	// Zone in which instants of tables that say LOCAL are written; nil: this machine's.
	Zone *time.Location
	// Now is the clock of leases and heartbeats; nil: time.Now.
	Now func() time.Time
	// Event, when set, is told what happens. It must be quick.
	Event func(Event)
}

// Step is what an Event tells of.
type Step string

// The steps.
const (
	Waiting         Step = "waiting for the lock"
	Locked          Step = "locked"
	RolledBack      Step = "rolled back a failed write"
	MetadataRemoved Step = "removed the metadata table"
	MarkersRemoved  Step = "removed leftover markers"
	Requested       Step = "requested"
	Started         Step = "in flight"
	Reconciled      Step = "deleted files of repeated tasks"
	Committed       Step = "committed"
	Leftover        Step = "could not clean up; the next writer will"
)

// Event tells what a transaction did.
type Event struct {
	Step    Step
	Instant string    // that the step is about; may be empty
	Count   int       // files, where the step is about files
	Held    lock.Held // of Waiting
	Err     error     // of Leftover
}

func (o *Options) event(e Event) {
	if o.Event != nil {
		o.Event(e)
	}
}

func (o *Options) now() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now()
}

func (o *Options) conf(key string) string {
	v, _ := lookup(o.Conf, key)
	return strings.TrimSpace(v)
}

// CheckWritable refuses tables that Sluice reads and does not write.
func CheckWritable(t *config.Table) error {
	refuse := func(property, value, hint string) error {
		return &config.UnsupportedError{Table: t.Path, Property: property, Value: value, Hint: hint}
	}
	switch {
	case t.Version > tableVersion:
		return refuse(config.TableVersion, strconv.Itoa(t.Version), "Sluice writes tables of version 6 and reads this one; write it with Apache Hudi 1.x")
	case t.Version < tableVersion:
		return refuse(config.TableVersion, strconv.Itoa(t.Version), "Sluice writes tables of version 6 and reads this one; Apache Hudi 0.14 and 0.15 upgrade it to 6 when they write it")
	case t.BaseFormat != "PARQUET" || t.MultipleFormats:
		return refuse("hoodie.table.base.file.format", t.BaseFormat, "Sluice writes Parquet base files only")
	case t.PartitionMetafileBase:
		return refuse("hoodie.partition.metafile.use.base.format", "true", "Sluice writes plain partition markers only")
	case t.BootstrapBasePath != "":
		return refuse("hoodie.bootstrap.base.path", t.BootstrapBasePath, "bootstrapped tables are read, not written")
	}
	return nil
}

// Begin starts a write: it takes the table's lock, finishes or undoes what earlier writers left, and publishes the requested
// instant. The caller ends the transaction with Commit or Abort.
//
// It fails with config.ErrUnsupported, before anything is written, for tables and options that Sluice does not write; with
// lock.ErrHeld when another writer keeps the lock; with ErrBusy when a writer of Apache Hudi is seen to be alive.
func Begin(ctx context.Context, store storage.Store, o Options) (*Txn, error) {
	cfg, err := config.Load(ctx, store)
	if err != nil {
		return nil, err
	}
	lockOptions, err := o.check(cfg)
	if err != nil {
		return nil, err
	}
	held, err := lock.Acquire(ctx, store, lockOptions)
	if err != nil {
		return nil, err
	}
	o.event(Event{Step: Locked})
	t, err := begin(ctx, store, o, held)
	if err != nil {
		return nil, errors.Join(err, held.Release(context.WithoutCancel(ctx)))
	}
	return t, nil
}

// check refuses what can be refused without a look at the timeline.
func (o *Options) check(cfg *config.Table) (lock.Options, error) {
	var none lock.Options
	if err := CheckWritable(cfg); err != nil {
		return none, err
	}
	if err := CheckMetadata(cfg, o.Conf); err != nil {
		return none, err
	}
	wanted := timeline.Commit
	if cfg.Type == config.MergeOnRead {
		wanted = timeline.DeltaCommit
	}
	if o.Action != wanted && o.Action != timeline.ReplaceCommit {
		return none, fmt.Errorf("a %s table takes a %s or a %s, not a %q", cfg.Type, wanted, timeline.ReplaceCommit, o.Action)
	}
	if o.Operation == "" {
		return none, errors.New("a write needs the name of its operation")
	}
	switch mode := strings.ToUpper(o.conf(optConcurrency)); mode {
	case "", "SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL":
	default:
		return none, &config.UnsupportedError{Table: cfg.Path, Property: optConcurrency, Value: mode, Hint: "the modes are SINGLE_WRITER and OPTIMISTIC_CONCURRENCY_CONTROL"}
	}
	return LockOptions(cfg.Path, o)
}

// LockOptions are what options say about the lock of a table.
func LockOptions(table string, o *Options) (lock.Options, error) {
	if o.Lock != nil {
		return *o.Lock, nil
	}
	l, err := lock.FromConf(o.Conf, table)
	l.Now = o.Now
	l.Waiting = func(h lock.Held) { o.event(Event{Step: Waiting, Held: h}) }
	return l, err
}

func begin(ctx context.Context, store storage.Store, o Options, held *lock.Lock) (*Txn, error) {
	table, tl, err := Prepare(ctx, store, &o)
	if err != nil {
		return nil, err
	}
	text, err := o.schemaOf(ctx, table, tl)
	if err != nil {
		return nil, err
	}
	var plan []byte
	if o.Action == timeline.ReplaceCommit { // the plan of an overwrite is empty (table format 2.5)
		if plan, err = timeline.Encode(&timeline.ReplacePlan{}, table.Config.Layout, ""); err != nil {
			return nil, err
		}
	}
	in, err := timeline.Begin(ctx, store, table.Config, table.Clock, o.Action, plan)
	if err != nil {
		return nil, fmt.Errorf("request an instant: %w", err)
	}
	o.event(Event{Step: Requested, Instant: in.Time})
	t := &Txn{Files: NewFiles(store, in.Time), table: table, o: o, lock: held, in: in, start: tl, schema: text}
	return t, t.startHeartbeat(ctx)
}

// schemaOf is the text that the commit is to carry. A newest commit that can't be read stops the write.
func (o *Options) schemaOf(ctx context.Context, table rollback.Table, tl timeline.Timeline) (string, error) {
	if last, ok := tl.Completed().Writes().Last(); ok {
		meta, err := timeline.ReadCommit(ctx, table.Store, last)
		if err != nil {
			return "", fmt.Errorf("the newest commit of the table is damaged, nothing can be built on it (sluice table rollback %s undoes it): %w", last.Time, err)
		}
		if meta.ExtraMetadata["latest_schema"] != "" {
			return "", &config.UnsupportedError{Table: table.Config.Path, Property: "hoodie.schema.on.read.enable", Value: "true",
				Hint: "columns of this table were renamed or dropped by ALTER TABLE; Sluice reads it, write it with Apache Hudi"}
		}
	}
	if o.Schema != "" {
		return o.Schema, nil
	}
	t, _, err := timeline.TableSchema(ctx, table.Store, table.Config, tl, "")
	if errors.Is(err, timeline.ErrNoSchema) && o.Reconcile != nil {
		t, err = nil, nil
	}
	if errors.Is(err, timeline.ErrNoSchema) {
		return "", fmt.Errorf("%w: give the schema of the rows with the write", err)
	}
	if err == nil && o.Reconcile != nil {
		t, err = o.Reconcile(t)
	}
	if err != nil {
		return "", err
	}
	return t.String(), nil
}

// Prepare brings a table, whose lock the caller holds, into the state in which a write or a service may begin: an update of
// the properties that was cut off is finished, the metadata table is gone where the options say so, rollbacks that were begun
// are finished, failed writes are rolled back, and markers of ended writes are removed. It returns the timeline after that.
func Prepare(ctx context.Context, store storage.Store, o *Options) (rollback.Table, timeline.Timeline, error) {
	var none timeline.Timeline
	if err := config.Recover(ctx, store); err != nil {
		return rollback.Table{}, none, err
	}
	cfg, err := config.Load(ctx, store)
	if err != nil {
		return rollback.Table{}, none, err
	}
	tl, err := timeline.Load(ctx, store, cfg)
	if err != nil {
		return rollback.Table{}, none, err
	}
	zone := o.Zone
	if zone == nil || cfg.TimelineZone == "UTC" {
		zone = timeline.Zone(cfg)
	}
	table := rollback.Table{Store: store, Config: cfg, Clock: timeline.NewClock(zone, tl)}
	failed, err := o.failed(ctx, table, tl)
	if err != nil {
		return table, none, err
	}
	if table.Config, err = removeMetadata(ctx, table, o); err != nil {
		return table, none, err
	}
	for _, r := range rollback.Pending(tl) {
		done, err := rollback.Resume(ctx, table, r)
		if err != nil {
			return table, none, err
		}
		if done != nil {
			o.event(Event{Step: RolledBack, Instant: done.Metadata.Commits[0], Count: done.Metadata.FilesDeleted})
		}
	}
	if len(rollback.Pending(tl)) > 0 { // some of the failed writes are gone by now
		if tl, err = timeline.Load(ctx, store, cfg); err != nil {
			return table, none, err
		}
		if failed, err = o.failed(ctx, table, tl); err != nil {
			return table, none, err
		}
	}
	for _, in := range failed {
		done, err := rollback.Run(ctx, table, in)
		if err != nil {
			return table, none, err
		}
		o.event(Event{Step: RolledBack, Instant: in.Time, Count: done.Metadata.FilesDeleted})
		if err := dropStaging(ctx, store, done.Metadata.Partitions); err != nil {
			return table, none, err
		}
	}
	if tl, err = timeline.Load(ctx, store, cfg); err != nil {
		return table, none, err
	}
	return table, tl, dropMarkers(ctx, store, tl, o)
}

// stagingAge is longer than any file takes to be written by somebody who is alive.
const stagingAge = time.Hour

// dropStaging removes what the killed writer left of files that it had begun, where the store keeps such: a file system. In a
// partition nobody else writes while we hold the lock; the folder of a table without partitions is also that of the lock.
func dropStaging(ctx context.Context, store storage.Store, partitions map[string]timeline.RollbackPartition) error {
	for p := range partitions {
		below, name, err := storage.Locate(store, storage.Join(p, partitionMarker))
		if err != nil {
			return err
		}
		s, ok := below.(interface {
			CleanStaging(ctx context.Context, prefix string, age time.Duration) (int, error)
		})
		if !ok {
			return nil
		}
		age := time.Duration(0)
		if p == "" {
			age = stagingAge
		}
		if _, err := s.CleanStaging(ctx, strings.TrimSuffix(strings.TrimSuffix(name, partitionMarker), "/"), age); err != nil {
			return err
		}
	}
	return nil
}

// failed are the writes to roll back. Where writers of Apache Hudi show that they are alive their writes are left alone under
// the lazy policy, and otherwise nothing may begin.
func (o *Options) failed(ctx context.Context, table rollback.Table, tl timeline.Timeline) ([]timeline.Instant, error) {
	for _, in := range tl.Pending().Instants() {
		if in.Action == timeline.Restore {
			return nil, fmt.Errorf("%w: restore %s was begun and not finished: finish it with Apache Hudi (restore to its savepoint again)", ErrBusy, in.Time)
		}
	}
	all, err := rollback.Failed(ctx, table.Store, tl)
	if err != nil {
		return nil, err
	}
	var out []timeline.Instant
	for _, in := range all {
		alive, age, err := o.alive(ctx, table.Store, in.Time)
		switch {
		case err != nil:
			return nil, err
		case !alive:
			out = append(out, in)
		case !o.lazy():
			return nil, fmt.Errorf("%w: the heartbeat of %s %s is %s old; wait until it has ended", ErrBusy, in.Action, in.Time, age.Round(time.Second))
		}
	}
	return out, nil
}

func (o *Options) lazy() bool {
	return strings.EqualFold(o.conf(optFailed), "LAZY") || strings.EqualFold(o.conf(optConcurrency), "OPTIMISTIC_CONCURRENCY_CONTROL")
}

// alive looks at the heartbeat of a pending write (table format 7.3).
func (o *Options) alive(ctx context.Context, store storage.Store, instant string) (bool, time.Duration, error) {
	info, err := store.Stat(ctx, rollback.Heartbeat(instant))
	if errors.Is(err, storage.ErrNotExist) {
		return false, 0, nil
	}
	if err != nil {
		return false, 0, err
	}
	interval, misses := o.beat()
	age := o.now().Sub(info.Modified)
	return age <= interval*time.Duration(misses), age, nil
}

func (o *Options) beat() (time.Duration, int) {
	interval, misses := time.Minute, 2
	if n, err := strconv.Atoi(o.conf(optBeat)); err == nil && n > 0 {
		interval = time.Duration(n) * time.Millisecond
	}
	if n, err := strconv.Atoi(o.conf(optMisses)); err == nil && n > 0 {
		misses = n
	}
	return interval, misses
}

// dropMarkers removes the markers of writes that have ended: their writer died between the end and the tidying up.
func dropMarkers(ctx context.Context, store storage.Store, tl timeline.Timeline, o *Options) error {
	instants, err := marker.Instants(ctx, store)
	if err != nil {
		return err
	}
	pending := map[string]bool{}
	for _, in := range tl.Pending().Instants() {
		pending[in.Time] = true
	}
	for _, at := range instants {
		if pending[at] {
			continue
		}
		if err := marker.Remove(ctx, store, at); err != nil {
			return err
		}
		o.event(Event{Step: MarkersRemoved, Instant: at})
	}
	return nil
}
