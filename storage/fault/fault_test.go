package fault_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/fault"
	"github.com/sluicelake/sluice/storage/mem"
	"github.com/sluicelake/sluice/storage/storagetest"
)

func TestConformanceWithoutRules(t *testing.T) {
	storagetest.Run(t, func(*testing.T) storage.Store { return fault.New(mem.New("t")) })
}

func put(t *testing.T, s storage.Store, name, content string) error {
	t.Helper()
	_, err := s.Put(t.Context(), name, strings.NewReader(content), storage.PutOptions{IfAbsent: true, Size: int64(len(content))})
	return err
}

func content(t *testing.T, s storage.Store, name string) string {
	t.Helper()
	data, err := storage.ReadAll(t.Context(), s, name, 0)
	if errors.Is(err, storage.ErrNotExist) {
		return "(none)"
	}
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// What a rule leaves in the store, and what the caller of the second put is told.
func TestPutActions(t *testing.T) {
	custom := errors.New("custom")
	for _, c := range []struct {
		rule fault.Rule
		left string
		err  error
	}{
		{fault.Rule{At: 2, Do: fault.Before}, "(none)", fault.ErrInjected},
		{fault.Rule{At: 2, Do: fault.After, Err: custom}, "content", custom},
		{fault.Rule{At: 2, Do: fault.Torn, Keep: 4}, "cont", fault.ErrInjected},
		{fault.Rule{At: 2, Do: fault.Lost}, "content", storage.ErrExist},
		{fault.Rule{At: 2, Do: fault.Late, Keep: 1}, "content", nil},
		{fault.Rule{Name: "second"}, "(none)", fault.ErrInjected},
		{fault.Rule{Op: fault.Delete, For: -1}, "content", nil},
		{fault.CrashAt(2, fault.Torn), "", fault.ErrCrashed},
	} {
		below := mem.New("t")
		s := fault.New(below, c.rule)
		if err := put(t, s, "first", "x"); err != nil {
			t.Errorf("%+v: the first put: %v", c.rule, err)
		}
		if err := put(t, s, "second", "content"); !errors.Is(err, c.err) {
			t.Errorf("%+v: %v, want %v", c.rule, err, c.err)
		}
		if got := content(t, below, "second"); got != c.left {
			t.Errorf("%+v left %q, want %q", c.rule, got, c.left)
		}
	}
}

func TestCrash(t *testing.T) {
	below := mem.New("t")
	s := fault.New(below, fault.CrashAt(2, fault.After))
	if err := put(t, s, "1", "x"); err != nil {
		t.Fatal(err)
	}
	o, err := s.Open(t.Context(), "1")
	if err != nil {
		t.Fatal(err)
	}
	if s.Crashed() {
		t.Error("crashed too early")
	}
	ctx := t.Context()
	dead := map[string]error{"the operation": put(t, s, "2", "x"), "put": put(t, s, "3", "x"), "delete": s.Delete(ctx, "1"), "copy": s.Copy(ctx, "1", "4")}
	_, dead["open"] = s.Open(ctx, "1")
	_, dead["stat"] = s.Stat(ctx, "1")
	_, dead["read"] = o.ReadAt(ctx, make([]byte, 1), 0)
	for _, err := range s.List(ctx, "", storage.ListOptions{}) {
		dead["list"] = err
	}
	for op, err := range dead {
		if !errors.Is(err, fault.ErrCrashed) {
			t.Errorf("%s after the crash: %v", op, err)
		}
	}
	if !s.Crashed() || content(t, below, "1") != "x" || content(t, below, "2") != "x" || content(t, below, "3") != "(none)" {
		t.Error("the crash came at the wrong moment")
	}
	if got, want := fmt.Sprint(s.Operations()), "[1 put 1 2 open 1 3 put 2 !after]"; got != want {
		t.Errorf("operations %v, want %v", got, want)
	}
}

func TestReadsAndLists(t *testing.T) {
	below := mem.New("t")
	for i := range 4 {
		if err := put(t, below, fmt.Sprint("d/", i), "0123456789"); err != nil {
			t.Fatal(err)
		}
	}
	s := fault.New(below,
		fault.Rule{Op: fault.Read, At: 2, Do: fault.Torn, Keep: 3},
		fault.Rule{Op: fault.List, At: 2, Do: fault.Torn, Keep: 3},
		fault.Rule{Op: fault.List, At: 3, Do: fault.After},
		fault.Rule{Op: fault.Put, Do: fault.Late, Keep: 2})
	if s.Traits().ConsistentList {
		t.Error("a store with late lists promises consistent ones")
	}
	o, err := s.Open(t.Context(), "d/0")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{10, 3, 10} {
		p := make([]byte, 10)
		n, err := o.ReadAt(t.Context(), p, 0)
		if n != want || string(p[:n]) != "0123456789"[:n] || (err != nil) != (i == 1) {
			t.Errorf("read %d: %d bytes, %v", i+1, n, err)
		}
	}
	if err := put(t, s, "d/new", "x"); err != nil {
		t.Fatal(err)
	}
	names := func(prefix string) (list string) {
		for info, err := range s.List(t.Context(), prefix, storage.ListOptions{Recursive: true}) {
			if err != nil {
				return list + "!"
			}
			list += strings.TrimPrefix(info.Name, "d/") + " "
		}
		return list
	}
	for i, want := range []string{"0 1 2 3 ", "0 1 2 !", "0 1 2 3 new !", "0 1 2 3 new "} {
		if got := names("d"); got != want {
			t.Errorf("list %d: %q, want %q", i+1, got, want)
		}
	}
}
