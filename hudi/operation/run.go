package operation

import (
	"context"
	"errors"

	"github.com/sluicelake/sluice/storage"
)

// Run does one operation on the table at the root of store, whole or not at all.
func Run(ctx context.Context, store storage.Store, kind Kind, rows Rows, o Options) (*Result, error) {
	return nil, errors.New("not there yet")
}
