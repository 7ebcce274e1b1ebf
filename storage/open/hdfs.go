//go:build hdfs || interop

package open

import (
	"context"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/hdfs"
)

func openHDFS(ctx context.Context, url string) (storage.Store, error) {
	return hdfs.New(ctx, url, hdfs.Options{})
}
