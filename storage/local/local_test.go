package local_test

import (
	"testing"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/local"
	"github.com/sluicelake/sluice/storage/storagetest"
)

func open(t testing.TB, root string, opts local.Options) *local.Store {
	t.Helper()
	s, err := local.New(root, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Store { return open(t, t.TempDir(), local.Options{}) })
}
