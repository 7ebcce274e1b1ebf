package lock

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/sluicelake/sluice/storage"
)

// LeaseFile is the lock of StorageBasedLockProvider.
const LeaseFile = ".hoodie/.locks/table_lock.json"

// maxLock is the largest lock file that is read, in bytes; Java writes stack traces into some.
const maxLock = 1 << 20

// form is how one kind of lock file is written and read.
type form struct {
	name     string
	lease    bool
	validity time.Duration // 0: does not run out
	renew    time.Duration
}

func formOf(o Options) form {
	if strings.HasSuffix(o.Provider, fileProvider) {
		return form{name: path.Join(o.Folder, "lock"), validity: o.Expire, renew: o.Expire / 3}
	}
	return form{name: LeaseFile, lease: true, validity: o.Validity, renew: o.Renew}
}

// Lease is the content of the lease file. Java knows the first three members and skips the others.
type Lease struct {
	Expired    bool   `json:"expired"`
	ValidUntil int64  `json:"validUntil"` // epoch milliseconds
	Owner      string `json:"owner"`
	Who        string `json:"who,omitempty"`
	Since      int64  `json:"since,omitempty"` // epoch milliseconds
}

// ParseLease reads a lease as Java does: all of its three members must be there (vectors "storage_lock").
func ParseLease(text []byte) (Lease, error) {
	var l struct {
		Expired    *bool   `json:"expired"`
		ValidUntil *int64  `json:"validUntil"`
		Owner      *string `json:"owner"`
		Who        string  `json:"who"`
		Since      int64   `json:"since"`
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return Lease{}, fmt.Errorf("not a lease: %w", err)
	}
	if l.Expired == nil || l.ValidUntil == nil || l.Owner == nil {
		return Lease{}, errors.New("not a lease: expired, validUntil and owner must be there")
	}
	return Lease{Expired: *l.Expired, ValidUntil: *l.ValidUntil, Owner: *l.Owner, Who: l.Who, Since: l.Since}, nil
}

// Encode writes one line, members in Java's order.
func (l Lease) Encode() []byte {
	text, err := json.Marshal(l)
	if err != nil {
		return nil // three texts and two numbers always marshal
	}
	return text
}

// fileInfo is what FileSystemBasedLockProvider writes into its file, for people.
type fileInfo struct {
	CreateTime string `json:"lockCreateTime"`
	ThreadName string `json:"lockThreadName"`
	StacksInfo string `json:"lockStacksInfo"`
}

// body is our lock and the time until which it holds.
func (f form) body(l *Lock, now time.Time) ([]byte, time.Time) {
	var until time.Time
	if f.validity > 0 {
		until = now.Add(f.validity)
	}
	if f.lease {
		return Lease{ValidUntil: until.UnixMilli(), Owner: l.owner, Who: l.o.Who, Since: l.since.UnixMilli()}.Encode(), until
	}
	text, err := json.Marshal(fileInfo{CreateTime: l.since.UTC().Format(time.RFC3339), ThreadName: l.o.Who, StacksInfo: l.owner})
	if err != nil {
		return nil, until
	}
	return text, until
}

func (f form) ours(l *Lock, raw []byte) bool { return bytes.Contains(raw, []byte(l.owner)) }

// current is a lock as it was found.
type current struct {
	raw  []byte
	id   string // of exactly this content
	held Held
	free bool // given back, though the file is there
}

func (c current) expired(now time.Time) bool {
	return c.free || !c.held.Until.IsZero() && !now.Before(c.held.Until)
}

func (l *Lock) read(ctx context.Context) (current, error) {
	info, err := l.store.Stat(ctx, l.form.name)
	if err != nil {
		return current{}, err
	}
	raw, err := storage.ReadAll(ctx, l.store, l.form.name, maxLock)
	if err != nil {
		return current{}, err
	}
	c := current{raw: raw, held: Held{File: storage.Join(l.store.URL(), l.form.name), Since: info.Modified}}
	if l.form.validity > 0 { // of a lease that can't be read, and of a lock file: from when it was written
		c.held.Until = info.Modified.Add(l.form.validity)
	}
	id := raw
	if l.form.lease {
		if lease, err := ParseLease(raw); err == nil {
			c.free = lease.Expired
			c.held.Who, c.held.Until, c.held.Since = lease.Who, time.UnixMilli(lease.ValidUntil), time.Time{}
			if c.held.Who == "" {
				c.held.Who = lease.Owner
			}
			if lease.Since > 0 {
				c.held.Since = time.UnixMilli(lease.Since)
			}
		} else {
			c.held.Who = "an unreadable lease"
			id = fmt.Appendf(id, "%d", info.Modified.UnixNano())
		}
	} else {
		var f fileInfo
		if json.Unmarshal(raw, &f) == nil {
			c.held.Who = f.ThreadName
		}
		id = fmt.Appendf(id, "%d", info.Modified.UnixNano())
	}
	sum := sha256.Sum256(id)
	c.id = hex.EncodeToString(sum[:8])
	return c, nil
}

// claimWatch remembers when each claim was first seen.
type claimWatch map[string]time.Time

func (f form) claimPrefix() string {
	return path.Join(path.Dir(f.name), "."+path.Base(f.name)+".claim-")
}

// takeOver replaces a lock that has run out. One writer at most gets the claim for exactly this lock; the claim of a writer
// that died over it is followed by one with the next number.
func (l *Lock) takeOver(ctx context.Context, cur current, seen claimWatch) (bool, error) {
	last, err := l.lastClaim(ctx, cur.id)
	if err != nil {
		return false, err
	}
	if last > 0 {
		name := l.claimName(cur.id, last)
		first, ok := seen[name]
		if !ok {
			seen[name] = time.Now()
			return false, nil
		}
		if time.Since(first) < l.o.Claim {
			return false, nil
		}
	}
	claim := l.claimName(cur.id, last+1)
	body := []byte(l.owner)
	if _, err := l.store.Put(ctx, claim, bytes.NewReader(body), storage.PutOptions{IfAbsent: true, Size: int64(len(body))}); err != nil {
		if errors.Is(err, storage.ErrExist) {
			return false, nil
		}
		return false, fmt.Errorf("claim the lock: %w", err)
	}
	again, err := l.read(ctx)
	if errors.Is(err, storage.ErrNotExist) {
		return false, l.store.Delete(ctx, claim)
	}
	if err != nil {
		return false, err
	}
	if newest, err := l.lastClaim(ctx, cur.id); err != nil || newest != last+1 || again.id != cur.id {
		return false, errors.Join(err, l.store.Delete(ctx, claim))
	}
	if err := l.store.Delete(ctx, l.form.name); err != nil {
		return false, fmt.Errorf("remove the lock that ran out: %w", err)
	}
	won, err := l.putNew(ctx)
	if !won && err == nil {
		err = l.store.Delete(ctx, claim)
	}
	return won, err
}

func (l *Lock) claimName(id string, n int) string {
	return l.form.claimPrefix() + id + "-" + strconv.Itoa(n)
}

// claims lists the claims on this lock file.
func (l *Lock) claims(ctx context.Context) ([]string, error) {
	var names []string
	for info, err := range l.store.List(ctx, path.Dir(l.form.name), storage.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		if !info.Dir && strings.HasPrefix(info.Name, l.form.claimPrefix()) {
			names = append(names, info.Name)
		}
	}
	return names, nil
}

func (l *Lock) lastClaim(ctx context.Context, id string) (int, error) {
	names, err := l.claims(ctx)
	last := 0
	for _, name := range names {
		if text, ok := strings.CutPrefix(name, l.form.claimPrefix()+id+"-"); ok {
			if n, err := strconv.Atoi(text); err == nil {
				last = max(last, n)
			}
		}
	}
	return last, err
}

// dropClaims removes the claims that led to this lock, and those of writers that died over them.
func (l *Lock) dropClaims(ctx context.Context) error {
	names, err := l.claims(ctx)
	for _, name := range names {
		err = errors.Join(err, l.store.Delete(ctx, name))
	}
	if err != nil {
		return fmt.Errorf("remove claims on the lock: %w", err)
	}
	return nil
}
