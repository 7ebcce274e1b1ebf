package lock_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/write/lock"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/local"
	"github.com/sluicelake/sluice/storage/mem"
)

// The rows of "storage_lock", which Apache Hudi 1.2.0 wrote and read.
func TestLeaseAsApacheHudiWritesIt(t *testing.T) {
	for _, c := range []struct {
		lease lock.Lease
		text  string
	}{
		{lock.Lease{ValidUntil: 1713461750988, Owner: "9d7e9b1c-0000-4000-8000-000000000001"}, `{"expired":false,"validUntil":1713461750988,"owner":"9d7e9b1c-0000-4000-8000-000000000001"}`},
		{lock.Lease{Expired: true, ValidUntil: 1713461750988, Owner: "9d7e9b1c-0000-4000-8000-000000000001"}, `{"expired":true,"validUntil":1713461750988,"owner":"9d7e9b1c-0000-4000-8000-000000000001"}`},
	} {
		if got := string(c.lease.Encode()); got != c.text {
			t.Errorf("%s, want %s", got, c.text)
		}
		if got, err := lock.ParseLease([]byte(c.text)); err != nil || got != c.lease {
			t.Errorf("%+v, %v", got, err)
		}
	}
	want := lock.Lease{ValidUntil: 5, Owner: "o"}
	for _, text := range []string{`{"owner":"o","validUntil":5,"expired":false}`, `{"validUntil":5,"owner":"o","expired":false,"more":1}`} {
		if got, err := lock.ParseLease([]byte(text)); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{`{"validUntil":"5","owner":"o"}`, `{}`, ``} {
		if got, err := lock.ParseLease([]byte(text)); err == nil {
			t.Errorf("%s: read as %+v, Apache Hudi fails", text, got)
		}
	}
}

func put(t *testing.T, s storage.Store, name, text string) {
	t.Helper()
	if _, err := s.Put(context.Background(), name, strings.NewReader(text), storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestHeldLockTellsWho(t *testing.T) {
	ctx := context.Background()
	s := mem.New("orders")
	first, err := lock.Acquire(ctx, s, lock.Options{Who: "anna's laptop"})
	if err != nil {
		t.Fatal(err)
	}
	var told []lock.Held
	_, err = lock.Acquire(ctx, s, lock.Options{Wait: 30 * time.Millisecond, Waiting: func(h lock.Held) { told = append(told, h) }})
	var held *lock.HeldError
	if !errors.As(err, &held) || !errors.Is(err, lock.ErrHeld) || held.Held.Who != "anna's laptop" || held.Held.Since.IsZero() || held.NextStep() == "" {
		t.Errorf("%v", err)
	}
	if len(told) != 1 || told[0].Who != "anna's laptop" {
		t.Errorf("told %v", told)
	}
	cancelled, cancel := context.WithCancel(ctx)
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := lock.Acquire(cancelled, s, lock.Options{}); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "anna") {
		t.Errorf("cancelled: %v", err)
	}
	if err := errors.Join(first.Check(ctx), first.Release(ctx)); err != nil {
		t.Fatal(err)
	}
	second, err := lock.Acquire(ctx, s, lock.Options{Wait: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Release(ctx); err != nil {
		t.Fatal(err)
	}
	for info := range s.List(ctx, "", storage.ListOptions{Recursive: true}) {
		t.Errorf("left behind: %s", info.Name)
	}
}

func TestDeadHolderKeepsNobodyOut(t *testing.T) {
	ctx := context.Background()
	dead := time.Now().Add(-time.Hour).UnixMilli()
	for name, c := range map[string]struct {
		file, text string
		o          lock.Options
	}{
		"a lease that ran out":  {lock.LeaseFile, string(lock.Lease{ValidUntil: dead, Owner: "o"}.Encode()), lock.Options{}},
		"a lease given back":    {lock.LeaseFile, string(lock.Lease{Expired: true, ValidUntil: time.Now().Add(time.Hour).UnixMilli(), Owner: "o"}.Encode()), lock.Options{}},
		"half a lease":          {lock.LeaseFile, `{"exp`, lock.Options{Now: func() time.Time { return time.Now().Add(time.Hour) }}},
		"a forgotten lock file": {".hoodie/lock", "", lock.Options{Provider: "FileSystemBasedLockProvider", Expire: time.Minute, Now: func() time.Time { return time.Now().Add(time.Hour) }}},
	} {
		s := mem.New("orders")
		put(t, s, c.file, c.text)
		c.o.Wait = -1
		l, err := lock.Acquire(ctx, s, c.o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := l.Release(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Without an expiry a lock file stays: its existence is the lock (vector "file_lock": the file is empty).
	s := mem.New("orders")
	put(t, s, ".hoodie/lock", "")
	_, err := lock.Acquire(ctx, s, lock.Options{Provider: "FileSystemBasedLockProvider", Wait: -1})
	var held *lock.HeldError
	if !errors.As(err, &held) || !strings.Contains(held.NextStep(), "mem://orders/.hoodie/lock") {
		t.Errorf("%v", err)
	}
}

func TestLostLockIsNoticed(t *testing.T) {
	ctx := context.Background()
	s := mem.New("orders")
	l, err := lock.Acquire(ctx, s, lock.Options{Validity: 60 * time.Millisecond, Renew: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // three times as long as the lease: it is renewed
	if err := l.Check(ctx); err != nil {
		t.Errorf("it was not renewed: %v", err)
	}
	theirs := lock.Lease{ValidUntil: time.Now().Add(time.Hour).UnixMilli(), Owner: "somebody else"}.Encode()
	put(t, s, lock.LeaseFile, string(theirs))
	<-l.Lost()
	if err := l.Check(ctx); !errors.Is(err, lock.ErrLost) {
		t.Errorf("%v", err)
	}
	if err := l.Release(ctx); err != nil {
		t.Error(err)
	}
	if got, err := storage.ReadAll(ctx, s, lock.LeaseFile, 1000); err != nil || !bytes.Equal(got, theirs) {
		t.Errorf("the lock of somebody else is %s, %v", got, err)
	}
}

// Many want a lock whose holder died. At every moment one has it.
func TestOneAtATime(t *testing.T) {
	ctx := context.Background()
	for _, provider := range []string{"", "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"} {
		root := t.TempDir()
		first, err := local.New(root, local.Options{})
		if err != nil {
			t.Fatal(err)
		}
		put(t, first, lock.LeaseFile, string(lock.Lease{ValidUntil: 5, Owner: "o"}.Encode()))
		var inside, entered atomic.Int32
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				s, err := local.New(root, local.Options{})
				if err != nil {
					t.Error(err)
					return
				}
				for range 5 {
					l, err := lock.Acquire(ctx, s, lock.Options{Provider: provider, Wait: time.Minute})
					if err != nil {
						t.Error(err)
						return
					}
					if n := inside.Add(1); n != 1 {
						t.Errorf("%d at once", n)
					}
					entered.Add(1)
					time.Sleep(time.Millisecond)
					inside.Add(-1)
					if err := l.Release(ctx); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if entered.Load() != 40 {
			t.Errorf("%d of 40 got the lock", entered.Load())
		}
	}
}

func TestForeignProvidersAreRefused(t *testing.T) {
	for key, value := range map[string]string{
		"hoodie.write.lock.provider":        "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
		"hoodie.write.lock.filesystem.path": "/elsewhere/locks",
	} {
		if _, err := lock.FromConf(map[string]string{key: value}, "/lake/orders"); !errors.Is(err, config.ErrUnsupported) {
			t.Errorf("%s=%s: %v", key, value, err)
		}
	}
	o, err := lock.FromConf(map[string]string{"hoodie.write.lock.filesystem.path": "/lake/orders/.locks", "hoodie.write.lock.filesystem.expire": "5"}, "/lake/orders")
	if err != nil || o.Folder != ".locks" || o.Expire != 5*time.Minute {
		t.Errorf("%+v, %v", o, err)
	}
}

// Apache Hudi 0.15 removes the lock file of others when a wait for it was in vain.
func TestRemovedLockIsTakenAgain(t *testing.T) {
	ctx := context.Background()
	for _, provider := range []string{"", "FileSystemBasedLockProvider"} {
		s := mem.New("orders")
		o := lock.Options{Provider: provider, Wait: -1}
		first, err := lock.Acquire(ctx, s, o)
		if err != nil {
			t.Fatal(err)
		}
		remove := func() {
			if err := errors.Join(s.Delete(ctx, lock.LeaseFile), s.Delete(ctx, ".hoodie/lock")); err != nil {
				t.Fatal(err)
			}
		}
		remove()
		if err := first.Regain(ctx); err != nil {
			t.Errorf("nobody has it: %v", err)
		}
		if err := first.Check(ctx); !errors.Is(err, lock.ErrLost) {
			t.Errorf("it was gone for a while: %v", err)
		}
		if _, err := lock.Acquire(ctx, s, o); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("taken twice: %v", err)
		}
		remove()
		second, err := lock.Acquire(ctx, s, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Regain(ctx); !errors.Is(err, lock.ErrLost) {
			t.Errorf("somebody else has it: %v", err)
		}
		if err := errors.Join(first.Release(ctx), second.Check(ctx), second.Release(ctx)); err != nil {
			t.Error(err)
		}
	}
}
