package storagetest

import (
	"errors"
	"testing"

	"github.com/sluicelake/sluice/storage"
)

// RunCopyFrom holds a store that is a storage.CopierFrom against its contract. open returns two stores, new and empty, with
// different roots at one service.
func RunCopyFrom(t *testing.T, open func(t *testing.T) (source, target storage.Store), opts ...Option) {
	t.Helper()
	var chosen options
	for _, set := range opts {
		set(&chosen)
	}
	from, to := open(t)
	source, target := &suite{T: t, Store: from, options: chosen}, &suite{T: t, Store: to, options: chosen}
	special := source.names()
	check := func(source, target *suite, name, copied, content string) {
		t.Helper()
		info, server, err := storage.CopyBetween(t.Context(), source, name, target, copied)
		if err != nil || !server {
			t.Fatalf("copy of %q to %q: by the server %v, %v", name, copied, server, err)
		}
		stat, err := target.Stat(t.Context(), copied)
		if err != nil || info.Name != copied || info.Size != int64(len(content)) || info.Size != stat.Size || info.ETag != stat.ETag {
			t.Errorf("copy of %q reported %+v, stat %+v, %v", name, info, stat, err)
		}
		target.want(copied, content)
	}
	for i, name := range special {
		source.put(name, special[len(special)-1-i])
		check(source, target, name, name, special[len(special)-1-i])
		check(source, target, name, "replaced", special[len(special)-1-i])
	}
	source.put("x", "new content")
	check(source, target, "x", special[0], "new content")
	// Through layers and from a folder of the source to a folder of the target.
	source.put("table/p/f", "below")
	check(&suite{T: t, Store: must(t, source, "table")}, &suite{T: t, Store: must(t, target, "copy")}, "p/f", "q/f", "below")
	target.want("copy/q/f", "below")
	// Within one store the two names may be the same.
	check(source, source, "x", "x", "new content")

	for _, name := range []string{"none", "table"} {
		if _, _, err := storage.CopyBetween(t.Context(), source, name, target, "none"); !errors.Is(err, storage.ErrNotExist) {
			t.Errorf("copy of %q: %v, want ErrNotExist", name, err)
		}
	}
	target.wantMissing("none")
	for _, name := range Hostile {
		if _, _, err := storage.CopyBetween(t.Context(), source, name, target, "none"); !errors.Is(err, storage.ErrName) {
			t.Errorf("copy of %.40q: %v, want ErrName", name, err)
		}
		if _, _, err := storage.CopyBetween(t.Context(), source, "x", target, name); !errors.Is(err, storage.ErrName) {
			t.Errorf("copy to %.40q: %v, want ErrName", name, err)
		}
	}
	// A store that is no back end of the service, and what is not of this service, is refused before anything is done.
	if _, err := storage.CopyFromBelow(t.Context(), target, foreign{source}, "x", "none"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("copy from a foreign store: %v, want ErrUnsupported", err)
	}
	info, server, err := storage.CopyBetween(t.Context(), foreign{source}, "x", target, "bytes")
	if err != nil || server || info.Size != int64(len("new content")) {
		t.Errorf("copy from a foreign store: %+v, by the server %v, %v", info, server, err)
	}
	target.want("bytes", "new content")
	target.wantMissing("none")
}

// foreign hides what a store is.
type foreign struct{ storage.Store }
