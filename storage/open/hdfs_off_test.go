//go:build !hdfs && !interop

package open_test

import (
	"strings"
	"testing"

	"github.com/sluicelake/sluice/storage/open"
)

func TestHDFSIsNotBuilt(t *testing.T) {
	_, err := open.Store(t.Context(), "hdfs://name/x", open.Options{})
	if err == nil || !strings.Contains(err.Error(), "go build -tags hdfs") {
		t.Errorf("got %v, want how to build with it", err)
	}
}
