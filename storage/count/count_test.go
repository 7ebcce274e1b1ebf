package count_test

import (
	"strings"
	"testing"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/count"
	"github.com/sluicelake/sluice/storage/fault"
	"github.com/sluicelake/sluice/storage/mem"
	"github.com/sluicelake/sluice/storage/storagetest"
)

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(*testing.T) storage.Store { return count.New(mem.New("t"), &count.Counter{}) })
}

func TestFigures(t *testing.T) {
	var c count.Counter
	s := count.New(fault.New(mem.New("t"), fault.Rule{Op: fault.Delete}), &c)
	ctx := t.Context()
	for _, name := range []string{"a/1", "a/2"} {
		if _, err := s.Put(ctx, name, strings.NewReader("hello"), storage.PutOptions{IfAbsent: true}); err != nil {
			t.Fatal(err)
		}
	}
	half := c.Stats()
	if _, err := s.Put(ctx, "a/1", nil, storage.PutOptions{IfAbsent: true}); err == nil {
		t.Fatal("put twice")
	}
	if _, err := storage.ReadAll(ctx, s, "a/1", 0); err != nil {
		t.Fatal(err)
	}
	_, _ = s.Open(ctx, "none")
	_, _ = s.Stat(ctx, "a/1")
	_ = s.Copy(ctx, "a/1", "a/3")
	_ = s.Delete(ctx, "a/1")
	for _, err := range s.List(ctx, "a", storage.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	got := c.Stats()
	if want := "open 2, read 1 (5 bytes), put 3 (10 bytes), list 1 (3 objects), stat 1, delete 1, 1 failed, copy 1"; got.String() != want {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if since := got.Since(half); since.Requests() != 8 || since[count.Put] != (count.Figures{Requests: 1}) || got.Requests() != 10 {
		t.Errorf("since the first puts: %v", since)
	}
	if text := (count.Stats{}).String(); text != "nothing" {
		t.Error(text)
	}
}
