//go:build !hdfs && !interop

package open

import (
	"context"
	"fmt"

	"github.com/sluicelake/sluice/storage"
)

func openHDFS(_ context.Context, url string) (storage.Store, error) {
	return nil, fmt.Errorf("open %q: this program was built without HDFS; build it with: go build -tags hdfs ./cmd/sluice", url)
}
