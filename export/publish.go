package export

import (
	"context"
	"fmt"

	"github.com/sluicelake/sluice/storage"
)

// publish makes the export visible: it looks whether all is there that was written, removes what tasks of a killed run left
// half way, and puts _SUCCESS. names is what was written.
func (j *job) publish(ctx context.Context, l *lease, names map[string]wrote) error {
	if err := l.held(ctx); err != nil {
		return err
	}
	if err := j.remote.withdraw(ctx); err != nil {
		return err
	}
	sizes, err := j.sizes(ctx)
	if err != nil {
		return err
	}
	all := written{}
	for _, f := range names {
		all.Files = append(all.Files, f)
	}
	if why := all.missing(sizes); why != "" {
		return fmt.Errorf("the target %s was changed while the export ran: %s", j.cfg.Target, why)
	}
	for name := range sizes {
		if _, ok := names[name]; !ok && j.ours(name) {
			if err := j.target.Delete(ctx, name); err != nil {
				return err
			}
		}
	}
	if j.resumed {
		if err := j.cleanStaging(ctx); err != nil {
			return err
		}
	}
	if j.cfg.Verify {
		if err := j.verify(ctx, j.here, names); err != nil {
			return err
		}
	}
	if err := j.writeManifest(ctx, names); err != nil {
		return err
	}
	if _, err := j.target.Put(ctx, Successful, nil, storage.PutOptions{}); err != nil {
		return err
	}
	return j.clearState(ctx)
}
