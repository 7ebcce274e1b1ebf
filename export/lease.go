package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/sluicelake/sluice/storage"
)

// ErrBusy: another export works in the target.
var ErrBusy = errors.New("another export is at work in the target")

// errTaken ends an export whose target another one took over, because this one seemed to be dead.
var errTaken = errors.New("another export took the target over, as this one showed no life; nothing more was written")

// DefaultLease is how often a running export shows that it lives: seldom enough to cost nothing, often enough that a
// person who starts a killed export again on another machine waits for a short while only.
const DefaultLease = 5 * time.Second

// patience is how many of these times another export watches before it takes over.
const patience = 3

// lease says who works in a target. Leases are numbered; who puts the next number, which can succeed once only, owns the
// target. The owner rewrites its lease while it lives.
//
// A lease is a courtesy, not what correctness hangs on: names and contents of files are the same for every run of one
// plan, and a run with another plan has other names.
type lease struct {
	store  storage.Store
	name   string
	number int
	every  time.Duration
	stop   func()

	who tenant
}

// tenant is the content of a lease.
type tenant struct {
	Run  string `json:"run"`
	Host string `json:"host"`
	// Space names the processes among which PID is one: boot and process namespace. Empty where it is not known.
	Space string `json:"space,omitempty"`
	PID   int    `json:"pid"`
	Born  string `json:"born,omitempty"` // start of the process, in ticks since boot
	Beat  int    `json:"beat"`
}

const leasePrefix = "lease-"

func self(run string) tenant {
	host, _ := os.Hostname() // for people: none is fine
	t := tenant{Run: run, Host: host, PID: os.Getpid(), Space: processSpace()}
	t.Born = born(t.PID)
	return t
}

// processSpace names the set of processes that this one can see; empty where the system does not say.
func processSpace() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + space
}

// born is when a process of this machine began; empty when there is none.
func born(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// The name of the program, in parentheses, may hold spaces; the start is the 20th field behind it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" {
		return ""
	}
	return fields[19]
}

// life is what can be said of a tenant without waiting.
type life int

const (
	unknown life = iota
	alive
	dead
)

func (t tenant) life() life {
	switch {
	case runtime.GOOS != "linux" || t.Space == "" || t.Space != processSpace() || t.PID <= 0:
		return unknown
	case t.PID == os.Getpid() && t.Born == born(t.PID):
		return unknown // another run of this process, or one that failed
	case t.Born == "" || t.Born != born(t.PID):
		return dead
	}
	return alive
}

// acquire makes this run the owner of the target, unless another one is and lives.
func acquire(ctx context.Context, store storage.Store, run string, every, wait time.Duration) (*lease, error) {
	last, err := lastLease(ctx, store)
	if err != nil {
		return nil, err
	}
	if last > 0 {
		if err := outlive(ctx, store, last, wait); err != nil {
			return nil, err
		}
	}
	l := &lease{store: store, number: last + 1, name: leaseName(last + 1), every: every, who: self(run)}
	err = l.put(ctx, storage.PutOptions{IfAbsent: true, Token: run})
	if errors.Is(err, storage.ErrExist) {
		return nil, ErrBusy
	}
	if err != nil {
		return nil, err
	}
	for n := last; n > 0 && n > last-2; n-- { // those of dead runs; a takeover that died itself may have left one more
		if err := store.Delete(ctx, leaseName(n)); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func leaseName(n int) string { return path.Join(state, fmt.Sprintf("%s%06d", leasePrefix, n)) }

func lastLease(ctx context.Context, store storage.Store) (last int, err error) {
	for info, err := range store.List(ctx, state, storage.ListOptions{}) {
		if err != nil {
			return 0, err
		}
		if n, ok := strings.CutPrefix(path.Base(info.Name), leasePrefix); ok {
			if number, err := strconv.Atoi(n); err == nil {
				last = max(last, number)
			}
		}
	}
	return last, nil
}

// outlive returns when the tenant of a lease is dead, as far as can be told.
func outlive(ctx context.Context, store storage.Store, number int, wait time.Duration) error {
	first, err := readTenant(ctx, store, number)
	if err != nil {
		return err
	}
	switch first.life() {
	case alive:
		return fmt.Errorf("%w: process %d of this machine", ErrBusy, first.PID)
	case dead:
		return nil
	case unknown:
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
	}
	then, err := readTenant(ctx, store, number)
	if err != nil {
		return err
	}
	last, err := lastLease(ctx, store)
	if err != nil {
		return err
	}
	if last > number || then != first {
		return fmt.Errorf("%w: process %d on %s", ErrBusy, then.PID, then.Host)
	}
	return nil
}

// maxLease bounds what is read of a lease.
const maxLease = 64 << 10

// readTenant reads a lease. One that is gone or no lease tells nothing: its writer let go, or died over it.
func readTenant(ctx context.Context, store storage.Store, number int) (t tenant, err error) {
	raw, err := storage.ReadAll(ctx, store, leaseName(number), maxLease)
	if errors.Is(err, storage.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return t, err
	}
	if json.Unmarshal(raw, &t) != nil {
		return tenant{}, nil //nolint:nilerr // half of a note is no tenant
	}
	return t, nil
}

func (l *lease) put(ctx context.Context, o storage.PutOptions) error {
	raw, err := json.Marshal(l.who)
	if err != nil {
		return err
	}
	return putObject(ctx, l.store, l.name, raw, o)
}

// keep shows life until release, and ends the context when another run took over.
func (l *lease) keep(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(l.every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if errors.Is(l.held(ctx), errTaken) {
				cancel(errTaken)
				return
			}
			l.who.Beat++
			_ = l.put(ctx, storage.PutOptions{}) // a store that is out of order shows in the work itself
		}
	}()
	l.stop = func() { cancel(nil); <-done }
	return ctx
}

// held fails when another run has taken over: it has the next number, and removed ours.
func (l *lease) held(ctx context.Context) error {
	_, err := l.store.Stat(ctx, l.name)
	if errors.Is(err, storage.ErrNotExist) {
		return errTaken
	}
	if err != nil {
		return err
	}
	switch _, err := l.store.Stat(ctx, leaseName(l.number+1)); {
	case err == nil:
		return errTaken
	case !errors.Is(err, storage.ErrNotExist):
		return err
	}
	return nil
}

// release lets another run begin at once.
func (l *lease) release(ctx context.Context) error {
	if l.stop != nil {
		l.stop()
	}
	return l.store.Delete(ctx, l.name)
}
