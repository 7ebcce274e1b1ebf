package lakemodel_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/sluicelake/sluice/internal/lakemodel"
	"github.com/sluicelake/sluice/internal/racing"
	"github.com/sluicelake/sluice/storage/mem"
)

var seeds = flag.Int("seeds", 40/racing.Step, "random histories")

// Random histories in memory. A failure names its seed:
//
//	go test ./internal/lakemodel -run 'TestHistories/seed=7$'
func TestHistories(t *testing.T) {
	for seed := range uint64(*seeds) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			lakemodel.Check(t, mem.New(fmt.Sprintf("h%d", seed)), lakemodel.Generate(seed))
		})
	}
}
