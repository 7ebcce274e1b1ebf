package timeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/storage"
)

// Publish puts one file of an instant on the active timeline, whole and in one step, and gives its name. Timeline files are
// written once: it fails with storage.ErrExist when the file is there (table format 2.2).
func Publish(ctx context.Context, store storage.Store, cfg *config.Table, f FileName, body []byte) (string, error) {
	name := f.String()
	if back, ok := ParseFileName(cfg.Layout, name); !ok || back != f {
		return "", fmt.Errorf("%+v has no file on a timeline of layout %d", f, cfg.Layout)
	}
	if (cfg.Layout == 2 && f.State == Completed) != (f.Completion != "") {
		return "", fmt.Errorf("%s: completed files of layout 2, and no others, carry a completion time", name)
	}
	name = storage.Join(cfg.TimelinePath, name)
	_, err := store.Put(ctx, name, bytes.NewReader(body), storage.PutOptions{IfAbsent: true, Size: int64(len(body))})
	return name, err
}

// beginAttempts is how often Begin takes a later time when others take the same ones. Each attempt moves on by at least a
// millisecond, so that even hundreds of writers that start at once find their own.
const beginAttempts = 1000

// Begin takes a new instant time from the clock and puts the requested file of an action there. When another writer has that
// time already it takes a later one and tries again (C119).
func Begin(ctx context.Context, store storage.Store, cfg *config.Table, clock *Clock, action Action, body []byte) (Instant, error) {
	for range beginAttempts {
		at, err := clock.Now()
		if err != nil {
			return Instant{}, err
		}
		f := FileName{Time: at, Action: action, State: Requested}
		name, err := Publish(ctx, store, cfg, f, body)
		if errors.Is(err, storage.ErrExist) {
			continue
		}
		if err != nil {
			return Instant{}, err
		}
		return Instant{Time: at, Action: action, State: Requested, File: name, Size: int64(len(body)), Files: []string{name}}, nil
	}
	return Instant{}, fmt.Errorf("no free instant time after %d attempts on %s: is another writer stuck in a loop?", beginAttempts, store.URL())
}
