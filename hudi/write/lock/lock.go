// Package lock lets one writer at a time into a table. The lock is an object in the table's own storage, in one of the two
// forms that Apache Hudi has for that (table format 7.4):
//
//   - a lease, .hoodie/.locks/table_lock.json, in the form of StorageBasedLockProvider: it runs out unless its holder renews
//     it, so a dead holder keeps nobody out for longer than that. It is what a writer takes when nothing else is configured.
//   - .hoodie/lock, in the form of FileSystemBasedLockProvider: its existence is the lock, and it runs out only where
//     hoodie.write.lock.filesystem.expire says so.
//
// Stores know put-if-absent but no conditional replacement. A lease that ran out is therefore taken over in three steps: a
// claim, which one writer can win, for exactly this content; the removal of the lock; put-if-absent of the own one.
package lock

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/storage"
)

// Keys of the options that [FromConf] reads.
const (
	keyProvider    = "hoodie.write.lock.provider"
	keyWait        = "hoodie.write.lock.wait_time_ms"
	keyExpire      = "hoodie.write.lock.filesystem.expire"
	keyFolder      = "hoodie.write.lock.filesystem.path"
	keyValidity    = "hoodie.write.lock.storage.validity.timeout.secs"
	keyRenew       = "hoodie.write.lock.storage.renew.interval.secs"
	defaultFolder  = ".hoodie"
	fileProvider   = "FileSystemBasedLockProvider"
	leaseProvider  = "StorageBasedLockProvider"
	memoryProvider = "InProcessLockProvider"
)

// Defaults: those of Apache Hudi, but for DefaultClaim.
const (
	DefaultValidity = 300 * time.Second
	DefaultRenew    = 30 * time.Second
	DefaultWait     = 60 * time.Second
	DefaultClaim    = 10 * time.Second
)

var (
	// ErrHeld: another writer holds the lock, and went on holding it for as long as we were to wait.
	ErrHeld = errors.New("the table is locked by another writer")
	// ErrLost: the lock is not ours any more. What was not committed must not be.
	ErrLost = errors.New("the lock of the table was lost")
)

// Held says who holds a lock.
type Held struct {
	File  string    // URL of the lock's object
	Who   string    // as the holder named itself; may be empty
	Since time.Time // when it took it, as far as known
	Until time.Time // when it runs out unless renewed; zero: never
}

func (h Held) String() string {
	who := h.Who
	if who == "" {
		who = "a writer that did not leave its name"
	}
	text := who
	if !h.Since.IsZero() {
		text += " since " + h.Since.UTC().Format(time.RFC3339)
	}
	if h.Until.IsZero() {
		return text + fmt.Sprintf(", without end (%s)", h.File)
	}
	return text + fmt.Sprintf(", until %s unless renewed (%s)", h.Until.UTC().Format(time.RFC3339), h.File)
}

// HeldError says who keeps us out. errors.Is(err, ErrHeld) is true.
type HeldError struct {
	Held   Held
	Waited time.Duration
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%v: %s; waited %s", ErrHeld, e.Held, e.Waited.Round(time.Millisecond))
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// NextStep says what a person can do.
func (e *HeldError) NextStep() string {
	if e.Held.Until.IsZero() {
		return "wait for that writer; if it is dead for certain, delete " + e.Held.File
	}
	return "wait for that writer, or longer (" + keyWait + "); a dead one keeps the table until the time named above at most"
}

// Options of Acquire. The zero value takes the lease with Apache Hudi's times.
type Options struct {
	// Provider is the Java class of hoodie.write.lock.provider, with or without its package; empty is the lease.
	Provider string
	// Folder of the lock file of FileSystemBasedLockProvider, below the table; empty is ".hoodie".
	Folder string
	// Expire is when a lock file of FileSystemBasedLockProvider counts as forgotten; 0 is never.
	Expire time.Duration
	// Validity of a lease from its last renewal, and the time between renewals. 0: the defaults.
	Validity, Renew time.Duration
	// Wait is how long to wait for another writer; 0 is DefaultWait, below 0 not at all.
	Wait time.Duration
	// Claim is how long another waiter's claim on a lock that ran out may stand, by our own watch, until that waiter counts as
	// dead as well; 0 is DefaultClaim.
	Claim time.Duration
	// Who is our name for others; empty is user, host and process.
	Who string
	// Waiting, when set, is told who holds the lock whenever that changes while we wait.
	Waiting func(Held)
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// FromConf reads hoodie.write.lock.* options. A provider that is not spoken here is refused: a lock that only one side
// looks at guards nothing.
func FromConf(conf map[string]string, table string) (Options, error) {
	o := Options{Provider: strings.TrimSpace(conf[keyProvider])}
	short := o.Provider[strings.LastIndexByte(o.Provider, '.')+1:]
	switch short {
	case "", leaseProvider, fileProvider, memoryProvider:
	default:
		return o, &config.UnsupportedError{Table: table, Property: keyProvider, Value: o.Provider,
			Hint: "Sluice speaks StorageBasedLockProvider and FileSystemBasedLockProvider; let every writer of this table use one of them"}
	}
	var err error
	number := func(key string, unit time.Duration, into *time.Duration) {
		if text := strings.TrimSpace(conf[key]); text != "" && err == nil {
			var n int64
			if _, scan := fmt.Sscanf(text, "%d", &n); scan != nil || n < 0 {
				err = fmt.Errorf("%s: %q is no number of milliseconds, seconds or minutes", key, text)
			}
			*into = time.Duration(n) * unit
		}
	}
	number(keyWait, time.Millisecond, &o.Wait)
	number(keyExpire, time.Minute, &o.Expire)
	number(keyValidity, time.Second, &o.Validity)
	number(keyRenew, time.Second, &o.Renew)
	if err == nil && conf[keyFolder] != "" {
		o.Folder, err = folderBelow(conf[keyFolder], table)
	}
	return o, err
}

// folderBelow brings the folder of a lock file, which Java names by a whole path, below the table.
func folderBelow(folder, table string) (string, error) {
	rest, ok := strings.CutPrefix(strings.TrimRight(folder, "/"), strings.TrimRight(table, "/")+"/")
	if !ok || storage.CheckName(rest) != nil {
		return "", &config.UnsupportedError{Table: table, Property: keyFolder, Value: folder, Hint: "the lock file must lie below the table's own folder; leave the option away to have it in .hoodie"}
	}
	return rest, nil
}

// Lock is a held lock. It renews itself until it is released.
type Lock struct {
	store  storage.Store
	form   form
	o      Options
	owner  string
	since  time.Time
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	until time.Time // zero: does not run out
	gap   bool      // the lock was gone for a while
	lost  chan struct{}
}

// Acquire waits until the lock is free and takes it. It fails with a *HeldError when another writer holds it for longer than
// Options.Wait, and with the context's error when that ends.
func Acquire(ctx context.Context, store storage.Store, o Options) (*Lock, error) {
	o = o.settled()
	l := &Lock{store: store, o: o, owner: newOwner(), since: o.Now(), lost: make(chan struct{}), done: make(chan struct{})}
	l.form = formOf(o)
	if !store.Traits().AtomicIfAbsent {
		return nil, &config.UnsupportedError{Table: store.URL(), Property: keyProvider, Value: o.Provider,
			Hint: "this store can't put an object only if it is absent, so nothing can guard the table against a second writer"}
	}
	if err := l.wait(ctx); err != nil {
		return nil, err
	}
	renewal, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.cancel = cancel
	go l.renew(renewal)
	return l, nil
}

func (o Options) settled() Options {
	if o.Folder == "" {
		o.Folder = defaultFolder
	}
	if o.Validity <= 0 {
		o.Validity = DefaultValidity
	}
	if o.Renew <= 0 || o.Renew > o.Validity/3 {
		o.Renew = min(DefaultRenew, o.Validity/3)
	}
	if o.Wait == 0 {
		o.Wait = DefaultWait
	}
	if o.Claim <= 0 {
		o.Claim = DefaultClaim
	}
	if o.Who == "" {
		host, _ := os.Hostname()
		o.Who = fmt.Sprintf("sluice on %s, process %d", host, os.Getpid())
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Pauses between looks at a lock that is held.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = 2 * time.Second
)

func (l *Lock) wait(ctx context.Context) (err error) {
	start, pause := time.Now(), firstPause
	told := Held{}
	claims := claimWatch{}
	defer func() {
		if err != nil && ctx.Err() != nil && told.File != "" {
			err = fmt.Errorf("waiting for the lock, held by %s: %w", told, err)
		}
	}()
	for {
		won, err := l.putNew(ctx)
		if won || err != nil {
			return err
		}
		cur, err := l.read(ctx)
		if errors.Is(err, storage.ErrNotExist) {
			continue // released a moment ago
		}
		if err != nil {
			return err
		}
		if cur.expired(l.o.Now()) {
			if won, err := l.takeOver(ctx, cur, claims); won || err != nil {
				return err
			}
		}
		if cur.held != told {
			told = cur.held
			if l.o.Waiting != nil {
				l.o.Waiting(told)
			}
		}
		waited := time.Since(start)
		if waited >= l.o.Wait {
			return &HeldError{Held: cur.held, Waited: waited}
		}
		if err := sleep(ctx, min(pause, l.o.Wait-waited)); err != nil {
			return err
		}
		pause = min(pause*2, lastPause)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// putNew puts our lock where none is.
func (l *Lock) putNew(ctx context.Context) (bool, error) {
	now := l.o.Now()
	body, until := l.form.body(l, now)
	_, err := l.store.Put(ctx, l.form.name, bytes.NewReader(body), storage.PutOptions{IfAbsent: true, Size: int64(len(body)), Token: storage.NewToken()})
	if err != nil && !errors.Is(err, storage.ErrExist) && !errors.Is(err, storage.ErrTemporary) {
		return false, fmt.Errorf("take the lock: %w", err)
	}
	if err != nil { // an answer that was lost looks like somebody else's lock
		cur, readErr := l.read(ctx)
		if readErr != nil || !bytes.Equal(cur.raw, body) {
			if errors.Is(err, storage.ErrExist) {
				return false, nil
			}
			return false, fmt.Errorf("take the lock: %w", err)
		}
	}
	l.mu.Lock()
	l.until = until
	l.mu.Unlock()
	_ = l.dropClaims(ctx) // what stays of them harms nobody; the next holder tries again
	return true, nil
}

// newOwner is a random UUID.
func newOwner() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Check makes sure that the lock is, and has been all the time, ours: to be called right before a change that builds on what
// was read under the lock. It fails with ErrLost.
func (l *Lock) Check(ctx context.Context) error {
	err := l.check(ctx)
	if errors.Is(err, errGone) {
		l.lose()
	}
	if err == nil && l.hadGap() {
		return fmt.Errorf("%w: for a while it was not there", ErrLost)
	}
	return err
}

// Regain is Check, except that a lock that is gone, and that nobody else has, is taken again. The caller looks afterwards
// whether others changed the table in the meantime. (A FileSystemBasedLockProvider of Apache Hudi 0.15 that waited for our lock
// in vain removes it when it closes.)
func (l *Lock) Regain(ctx context.Context) error {
	err := l.check(ctx)
	if !errors.Is(err, errGone) {
		return err
	}
	won, err := l.putNew(ctx)
	if err != nil {
		return err
	}
	if !won {
		l.lose()
		return fmt.Errorf("%w: somebody removed it, and somebody took it", ErrLost)
	}
	l.mu.Lock()
	l.gap = true
	l.mu.Unlock()
	return nil
}

func (l *Lock) hadGap() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gap
}

// errGone: nobody has the lock.
var errGone = fmt.Errorf("%w: somebody removed it", ErrLost)

func (l *Lock) check(ctx context.Context) error {
	select {
	case <-l.lost:
		return fmt.Errorf("%w: it was not renewed in time, or somebody took it", ErrLost)
	default:
	}
	cur, err := l.read(ctx)
	switch {
	case errors.Is(err, storage.ErrNotExist):
		return errGone
	case err != nil:
		return err
	case !l.form.ours(l, cur.raw):
		l.lose()
		return fmt.Errorf("%w: %s is not ours any more", ErrLost, storage.Join(l.store.URL(), l.form.name))
	case !l.safe():
		l.lose()
		return fmt.Errorf("%w: it ran out", ErrLost)
	}
	return nil
}

// Lost is closed when the lock was lost. A writer that sees it stops.
func (l *Lock) Lost() <-chan struct{} { return l.lost }

func (l *Lock) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.lost:
	default:
		close(l.lost)
	}
}

// safe reports whether nobody may have taken the lock yet, with a fifth of its time to spare for slow requests and clocks.
func (l *Lock) safe() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until.IsZero() || l.o.Now().Before(l.until.Add(-l.form.validity/5))
}

func (l *Lock) renew(ctx context.Context) {
	defer close(l.done)
	if l.form.validity == 0 {
		<-ctx.Done()
		return
	}
	tick := time.NewTicker(l.form.renew)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := l.check(ctx); errors.Is(err, errGone) {
			continue // whoever removed it may have meant it; Regain decides before the commit
		} else if errors.Is(err, ErrLost) {
			return
		} else if err != nil {
			if !l.safe() {
				l.lose()
				return
			}
			continue // the store is busy; there is time for another try
		}
		body, until := l.form.body(l, l.o.Now())
		limited, cancel := context.WithTimeout(ctx, l.form.validity/5)
		_, err := l.store.Put(limited, l.form.name, bytes.NewReader(body), storage.PutOptions{Size: int64(len(body))})
		cancel()
		if err == nil {
			l.mu.Lock()
			l.until = until
			l.mu.Unlock()
		}
	}
}

// Release gives the lock back. A lock that was lost is left alone.
func (l *Lock) Release(ctx context.Context) error {
	if l.cancel == nil {
		return nil
	}
	l.cancel()
	<-l.done
	l.cancel = nil
	if err := l.check(ctx); err != nil {
		if errors.Is(err, ErrLost) {
			return nil
		}
		return fmt.Errorf("release the lock: %w", err)
	}
	if err := l.store.Delete(ctx, l.form.name); err != nil {
		return fmt.Errorf("release the lock: %w", err)
	}
	return nil
}
