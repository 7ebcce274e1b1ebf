// Package fault is a layer for tests that makes a store fail by plan: at the n-th operation, before or after it did its
// work, with half a body written, with a lost answer, with a list that lags, or as if the process had died.
//
// To prove that a job survives being killed between any two operations, run it once for each n until it is not hit:
//
//	for n := 1; ; n++ {
//		f := fault.New(store, fault.CrashAt(n, fault.Before))
//		err := job(ctx, f)
//		if !f.Crashed() {
//			break // err is nil: the job has fewer than n operations
//		}
//		... look at store, and run the job again on it ...
//	}
package fault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"

	"github.com/sluicelake/sluice/storage"
)

// Op is a kind of operation.
type Op string

// The kinds. Write stands for Put, Delete and Copy in a Rule, Any for all.
const (
	Any    Op = ""
	Write  Op = "write"
	Open   Op = "open"
	Read   Op = "read" // one ReadAt of an object
	Put    Op = "put"
	List   Op = "list"
	Stat   Op = "stat"
	Delete Op = "delete"
	Copy   Op = "copy"
)

// Action is what goes wrong.
type Action string

// The actions.
const (
	// Before fails the operation without doing it.
	Before Action = "before"
	// After does the operation and then fails: the answer is lost. A List yields everything and then fails.
	After Action = "after"
	// Torn does a part: a Put stores the first Rule.Keep bytes of its body as the object, which no sound store does; a
	// read brings Keep bytes; a List yields Keep entries. Then it fails. Other operations fail as with Before.
	Torn Action = "torn"
	// Lost stores a Put with IfAbsent and answers storage.ErrExist, as a client that repeats a conditional request by
	// itself would. Other Puts are left alone, other operations fail as with After.
	Lost Action = "lost"
	// Late stores a Put and answers well, but the next Rule.Keep Lists over its place don't tell the object. Other
	// operations are left alone.
	Late Action = "late"
)

// Rule says which operations fail and how.
type Rule struct {
	Op   Op
	Name string // only names that hold this text; of a Copy the target
	At   int    // the first operation that fails, counted from 1 among those that Op and Name choose; 0 is 1
	For  int    // how many fail from there; 0 is 1, below 0 all
	// Every, when above 0, begins anew with each Every-th operation after At.
	Every int
	Do    Action // default Before
	Keep  int    // for Torn and Late
	Err   error  // what it fails with; default ErrInjected
	// Crash makes every later operation fail with ErrCrashed.
	Crash bool
}

// CrashAt is the rule for a process that dies at its n-th writing operation.
func CrashAt(n int, do Action) Rule { return Rule{Op: Write, At: n, Do: do, Crash: true} }

var (
	// ErrInjected is the failure of a rule without an error of its own.
	ErrInjected = errors.New("injected failure")
	// ErrCrashed is what every operation gets after a crash.
	ErrCrashed = errors.New("injected crash: the process is dead")
)

// Record tells of one operation.
type Record struct {
	N    int // from 1, over all operations
	Op   Op
	Name string
	Done Action // what a rule did to it, or ""
}

func (r Record) String() string {
	text := fmt.Sprintf("%d %s %s", r.N, r.Op, r.Name)
	if r.Done != "" {
		text += " !" + string(r.Done)
	}
	return text
}

// Store fails the operations of the store below by plan.
type Store struct {
	below storage.Store

	mu      sync.Mutex
	rules   []Rule
	seen    []int // operations chosen by each rule so far
	records []Record
	crashed bool
	late    map[string]int // Lists that still miss the object
}

// New wraps a store. With several rules for one operation the first that is due acts.
func New(below storage.Store, rules ...Rule) *Store {
	return &Store{below: below, rules: rules, seen: make([]int, len(rules)), late: map[string]int{}}
}

// Crashed tells whether a rule with Crash has acted.
func (s *Store) Crashed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.crashed
}

// Operations returns the operations so far, in the order in which they began.
func (s *Store) Operations() []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Record(nil), s.records...)
}

// begin counts an operation and returns the rule that is due, or one without action.
func (s *Store) begin(op Op, name string) (Rule, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.crashed {
		return Rule{}, s.fail(op, name, ErrCrashed)
	}
	due := -1
	for i, r := range s.rules {
		if !r.chooses(op, name) {
			continue
		}
		s.seen[i]++
		if due < 0 && r.hits(s.seen[i]) {
			due = i
		}
	}
	record := Record{N: len(s.records) + 1, Op: op, Name: name}
	var rule Rule
	if due >= 0 {
		rule = s.rules[due].settled(op)
		record.Done = rule.Do
		s.crashed = rule.Crash
	}
	s.records = append(s.records, record)
	return rule, nil
}

func (r Rule) chooses(op Op, name string) bool {
	switch r.Op {
	case Any:
	case Write:
		if op != Put && op != Delete && op != Copy {
			return false
		}
	default:
		if r.Op != op {
			return false
		}
	}
	return strings.Contains(name, r.Name)
}

func (r Rule) hits(n int) bool {
	at := max(r.At, 1)
	if n < at || r.For < 0 {
		return n >= at
	}
	n -= at
	if r.Every > 0 {
		n %= r.Every
	}
	return n < max(r.For, 1)
}

// settled fills in defaults and gives op the action that it can have.
func (r Rule) settled(op Op) Rule {
	if r.Err == nil {
		r.Err = ErrInjected
		if r.Crash {
			r.Err = ErrCrashed
		}
	}
	switch {
	case r.Do == "", r.Do == Torn && op != Put && op != Read && op != List:
		r.Do = Before
	case r.Do == Lost && op != Put:
		r.Do = After
	case r.Do == Late && op != Put:
		r.Do = ""
	}
	return r
}

func (s *Store) fail(op Op, name string, err error) error {
	return &storage.Error{Op: string(op), URL: s.URL(), Name: name, Err: err}
}

// simple runs an operation that is done or not.
func (s *Store) simple(op Op, name string, do func() error) error {
	rule, err := s.begin(op, name)
	if err != nil {
		return err
	}
	if rule.Do == Before {
		return s.fail(op, name, rule.Err)
	}
	err = do()
	if err == nil && rule.Do == After {
		err = s.fail(op, name, rule.Err)
	}
	return err
}

// Open is an operation, and so is each read of the object.
func (s *Store) Open(ctx context.Context, name string) (o storage.Object, err error) {
	err = s.simple(Open, name, func() error {
		o, err = s.below.Open(ctx, name)
		return err
	})
	if err != nil {
		if o != nil {
			_ = o.Close()
		}
		return nil, err
	}
	return &object{Object: o, store: s, name: name}, nil
}

type object struct {
	storage.Object
	store *Store
	name  string
}

func (o *object) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	rule, err := o.store.begin(Read, o.name)
	if err != nil {
		return 0, err
	}
	switch rule.Do {
	case Before, After:
		return 0, o.store.fail(Read, o.name, rule.Err)
	case Torn:
		n, err := o.Object.ReadAt(ctx, p[:min(rule.Keep, len(p))], off)
		if err == nil || err == io.EOF {
			err = o.store.fail(Read, o.name, rule.Err)
		}
		return n, err
	}
	return o.Object.ReadAt(ctx, p, off)
}

// Put can fail in every way.
func (s *Store) Put(ctx context.Context, name string, body io.Reader, opts storage.PutOptions) (storage.Info, error) {
	rule, err := s.begin(Put, name)
	if err != nil {
		return storage.Info{}, err
	}
	switch rule.Do {
	case Before:
		return storage.Info{}, s.fail(Put, name, rule.Err)
	case Torn:
		if body != nil {
			body = io.LimitReader(body, int64(rule.Keep))
		}
		opts.Size = 0
	case Late:
		s.mu.Lock()
		s.late[name] = rule.Keep
		s.mu.Unlock()
	}
	info, err := s.below.Put(ctx, name, body, opts)
	if err == nil && rule.Do == Lost && opts.IfAbsent {
		return storage.Info{}, s.fail(Put, name, storage.ErrExist)
	}
	if err == nil && (rule.Do == Torn || rule.Do == After) {
		return storage.Info{}, s.fail(Put, name, rule.Err)
	}
	return info, err
}

// List leaves out late objects. Their folders it tells.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		rule, err := s.begin(List, prefix)
		if err == nil && rule.Do == Before {
			err = s.fail(List, prefix, rule.Err)
		}
		if err != nil {
			yield(storage.Info{}, err)
			return
		}
		hidden := s.lag(prefix)
		n := 0
		for info, err := range s.below.List(ctx, prefix, opts) {
			if err == nil && hidden[info.Name] {
				continue
			}
			if err == nil && rule.Do == Torn && n == rule.Keep {
				break
			}
			n++
			if !yield(info, err) || err != nil {
				return
			}
		}
		if rule.Do == Torn || rule.Do == After {
			yield(storage.Info{}, s.fail(List, prefix, rule.Err))
		}
	}
}

// lag returns the objects below prefix that this List misses.
func (s *Store) lag(prefix string) map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	hidden := map[string]bool{}
	for name, left := range s.late {
		if prefix != "" && !strings.HasPrefix(name, prefix+"/") {
			continue
		}
		if left <= 0 {
			delete(s.late, name)
			continue
		}
		hidden[name] = true
		s.late[name] = left - 1
	}
	return hidden
}

// Stat is done or not.
func (s *Store) Stat(ctx context.Context, name string) (info storage.Info, err error) {
	err = s.simple(Stat, name, func() error {
		info, err = s.below.Stat(ctx, name)
		return err
	})
	if err != nil {
		return storage.Info{}, err
	}
	return info, nil
}

// Delete is done or not.
func (s *Store) Delete(ctx context.Context, name string) error {
	return s.simple(Delete, name, func() error { return s.below.Delete(ctx, name) })
}

// Copy is done or not.
func (s *Store) Copy(ctx context.Context, from, to string) error {
	return s.simple(Copy, to, func() error { return s.below.Copy(ctx, from, to) })
}

// CopyFrom is done or not.
func (s *Store) CopyFrom(ctx context.Context, source storage.Store, from, to string) (info storage.Info, err error) {
	err = s.simple(Copy, to, func() error {
		info, err = storage.CopyFromBelow(ctx, s.below, source, from, to)
		return err
	})
	return info, err
}

// Below is for storage.Locate.
func (s *Store) Below(name string) (storage.Store, string, error) { return s.below, name, nil }

// Traits are those of the store below, without ConsistentList where a rule makes Lists late.
func (s *Store) Traits() storage.Traits {
	t := s.below.Traits()
	for _, r := range s.rules {
		if r.Do == Late {
			t.ConsistentList = false
		}
	}
	return t
}

// URL is that of the store below.
func (s *Store) URL() string { return s.below.URL() }
