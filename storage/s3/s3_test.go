package s3_test

import (
	"testing"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/s3/s3test"
	"github.com/sluicelake/sluice/storage/storagetest"
)

func TestConformance(t *testing.T) {
	server := s3test.Start(t)
	storagetest.Run(t, func(t *testing.T) storage.Store { return server.Store(t) })
}
