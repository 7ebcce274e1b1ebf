package write

import (
	"context"
	"fmt"
	"strings"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/write/rollback"
	"github.com/sluicelake/sluice/storage"
)

// Places and properties of the metadata table.
const (
	metadataFolder   = ".hoodie/metadata"
	metadataReady    = "hoodie.table.metadata.partitions"
	metadataInflight = "hoodie.table.metadata.partitions.inflight"
)

// CheckMetadata refuses a table with a metadata table, unless hoodie.metadata.enable=false was given: then it is removed
// before the first change. A metadata table that a writer does not maintain hides that writer's files from every reader that
// believes it (table format 9.1).
func CheckMetadata(cfg *config.Table, conf map[string]string) error {
	if len(cfg.MetadataPartitions) == 0 && len(cfg.MetadataInflight) == 0 {
		return nil
	}
	if v, ok := lookup(conf, optMetadata); ok && strings.EqualFold(strings.TrimSpace(v), "false") {
		return nil
	}
	ready := strings.Join(append(append([]string(nil), cfg.MetadataPartitions...), cfg.MetadataInflight...), ",")
	return &config.UnsupportedError{Table: cfg.Path, Property: metadataReady, Value: ready,
		Hint: "Sluice does not maintain metadata tables yet; give " + optMetadata + "=false to remove it (Apache Hudi builds it again when it wants one)"}
}

// removeMetadata removes the metadata table as Apache Hudi does when its writer is told to work without: first the properties,
// so that nobody believes it any more, then the folder. A folder that the properties do not name was left by a writer that
// died in between.
func removeMetadata(ctx context.Context, table rollback.Table, o *Options) (*config.Table, error) {
	cfg := table.Config
	if err := CheckMetadata(cfg, o.Conf); err != nil {
		return cfg, err
	}
	_, ready := cfg.Props.Get(metadataReady)
	_, inflight := cfg.Props.Get(metadataInflight)
	if ready || inflight {
		next, err := config.Update(ctx, table.Store, config.Changes{Delete: []string{metadataReady, metadataInflight}})
		if err != nil {
			return cfg, fmt.Errorf("take the metadata table out of hoodie.properties: %w", err)
		}
		cfg = next
	}
	there := false
	for _, err := range table.Store.List(ctx, metadataFolder, storage.ListOptions{}) {
		if err != nil {
			return cfg, err
		}
		there = true
		break
	}
	if !there {
		return cfg, nil
	}
	if err := storage.RemoveAll(ctx, table.Store, metadataFolder); err != nil {
		return cfg, fmt.Errorf("remove the metadata table: %w", err)
	}
	o.event(Event{Step: MetadataRemoved})
	return cfg, nil
}
