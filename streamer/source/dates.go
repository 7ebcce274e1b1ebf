package source

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/sluicelake/sluice/storage"
)

// Dates limits a selector to the folders of some days (tools C.7, DatePartitionPathSelector): at Depth levels below the root
// a folder's name, or what follows "=" in it, is a date in Format, and it counts when it lies in the Lookback days before
// Today, or is Today. A folder whose name is no date is an error.
type Dates struct {
	Depth    int
	Lookback int       // days
	Today    time.Time // zero: the current day in UTC
	Format   string    // as Java writes it; "yyyy-MM-dd" when empty
}

func (d *Dates) list(ctx context.Context, store storage.Store) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		layout, err := d.layout()
		if err != nil {
			yield(storage.Info{}, err)
			return
		}
		d.below(ctx, store, "", d.Depth, layout, yield)
	}
}

// below goes down to the folders of days and lists those that count. It reports false when the consumer has stopped.
func (d *Dates) below(ctx context.Context, store storage.Store, dir string, left int, layout string, yield func(storage.Info, error) bool) bool {
	for info, err := range store.List(ctx, dir, storage.ListOptions{Recursive: left == 0}) {
		switch {
		case err != nil:
			yield(info, err)
			return false
		case left == 0:
			if !yield(info, nil) {
				return false
			}
			continue
		case !info.Dir || hidden(info.Name):
			continue // files above the folders of days do not count
		}
		if left == 1 {
			wanted, err := d.wants(info.Name, layout)
			if err != nil {
				yield(info, err)
				return false
			}
			if !wanted {
				continue
			}
		}
		if !d.below(ctx, store, info.Name, left-1, layout, yield) {
			return false
		}
	}
	return true
}

func (d *Dates) wants(name, layout string) (bool, error) {
	text := name[strings.LastIndexByte(name, '/')+1:]
	if i := strings.LastIndexByte(text, '='); i >= 0 {
		text = text[i+1:]
	}
	day, err := time.Parse(layout, text)
	if err != nil {
		return false, fmt.Errorf("folder %s: %q is no date of the form %s (hoodie.streamer.source.dfs.datepartitioned.date.format)", name, text, d.format())
	}
	today := d.Today
	if today.IsZero() {
		today = time.Now().UTC()
	}
	today = time.Date(today.Year(), today.Month(), today.Day(), 0, 0, 0, 0, time.UTC)
	return !day.Before(today.AddDate(0, 0, -d.Lookback)) && !day.After(today), nil
}

func (d *Dates) format() string {
	if d.Format == "" {
		return "yyyy-MM-dd"
	}
	return d.Format
}

func (d *Dates) layout() (string, error) {
	layout, err := goLayout(d.format())
	if err != nil {
		return "", fmt.Errorf("hoodie.streamer.source.dfs.datepartitioned.date.format: %w", err)
	}
	return layout, nil
}
