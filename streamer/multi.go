package streamer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/storage/open"
)

const ingestion = "hoodie.streamer.ingestion."

// runTables streams the tables that the common properties list: one after the other, or, for ever, all at once. A table that
// fails does not keep the others from being done; unlike the original's, the error of the whole then says so (tools C.10).
func runTables(ctx context.Context, c Config, stop <-chan struct{}) (Summary, error) {
	var sum Summary
	tables, err := c.tables(ctx)
	if err != nil {
		return sum, err
	}
	var mu sync.Mutex
	var errs []error
	one := func(t tableConfig) {
		var done Summary
		err := t.err
		if err == nil {
			done, err = t.run(ctx, stop)
		}
		mu.Lock()
		defer mu.Unlock()
		sum.join(done)
		if err != nil {
			sum.Failed = append(sum.Failed, t.name)
			errs = append(errs, fmt.Errorf("%s: %w", t.name, err))
			if c.Event != nil {
				c.Event(Note{Table: t.name, Text: "failed: " + err.Error()})
			}
		}
	}
	if c.Continuous {
		var running sync.WaitGroup
		for _, t := range tables {
			running.Go(func() { one(t) })
		}
		running.Wait()
	} else {
		for _, t := range tables {
			if ctx.Err() != nil {
				return sum, ctx.Err()
			}
			one(t)
		}
	}
	if len(errs) > 0 {
		return sum, fmt.Errorf("%d of %d %w: %w", len(errs), len(tables), errTables, errors.Join(errs...))
	}
	return sum, nil
}

// tableConfig is one table of a multi-table run.
type tableConfig struct {
	name string
	Config
	props Properties
	err   error
}

func (t tableConfig) run(ctx context.Context, stop <-chan struct{}) (Summary, error) {
	s := &Streamer{Config: t.withDefaults(), props: t.props}
	if err := s.required(); err != nil {
		return Summary{}, err
	}
	if err := s.prepare(ctx); err != nil {
		return Summary{}, err
	}
	return s.run(ctx, stop)
}

// tables reads the common properties and those of each table.
func (c Config) tables(ctx context.Context) ([]tableConfig, error) {
	common, notes, err := LoadProperties(ctx, c.Props, c.HoodieConf)
	if err != nil || c.Props == "" {
		if errors.Is(err, fs.ErrNotExist) || err == nil {
			return nil, configf("Please provide valid common config file path!")
		}
		return nil, err
	}
	if !folderThere(ctx, c.ConfigFolder) {
		return nil, configf("Please provide valid table config file path!")
	}
	for _, n := range notes {
		if c.Event != nil {
			c.Event(Note{Text: n})
		}
	}
	list := common.text(ingestion + "tablesToBeIngested")
	if list == "" {
		return nil, configf("%stablesToBeIngested is missing: which tables are to be streamed?", ingestion)
	}
	var out []tableConfig
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		db, table, ok := strings.Cut(name, ".")
		if !ok {
			db, table = "default", name
		}
		t := tableConfig{name: db + "." + table, Config: c}
		t.err = t.load(ctx, common, db, table)
		out = append(out, t)
	}
	return out, nil
}

func folderThere(ctx context.Context, url string) bool {
	parent, base, err := open.Split(url)
	if err != nil {
		return url != ""
	}
	store, err := open.Store(ctx, parent, open.Options{})
	if err != nil {
		return false
	}
	if !store.Traits().Dirs {
		return true
	}
	info, err := store.Stat(ctx, base)
	return err == nil && info.Dir
}

// load fills in what is one table's own. Common properties fill the gaps of its file.
func (t *tableConfig) load(ctx context.Context, common Properties, db, table string) error {
	file := common.text(ingestion + db + "." + table + ".configFile")
	if file == "" {
		file = strings.TrimRight(t.ConfigFolder, "/") + "/" + db + "_" + table + "_config.properties"
	}
	t.props = Properties{}
	if err := t.props.load(ctx, file, nil); err != nil {
		return fmt.Errorf("%w: Cannot read properties from dfs from file %s: %w", ErrConfig, file, err)
	}
	for k, v := range common {
		if _, ok := t.props.Get(config.Canonical(k)); !ok {
			t.props[k] = v
		}
	}
	if _, ok := t.props.Get(keyRegistry); !ok {
		if base := t.props.text("hoodie.streamer.schemaprovider.registry.baseUrl"); base != "" {
			t.props[keyRegistry] = base + t.props.text("hoodie.streamer.source.kafka.topic") + t.props.text("hoodie.streamer.schemaprovider.registry.urlSuffix")
		}
	}
	t.TargetTable = t.name
	delete(t.props, optName)
	if t.TargetBasePath = t.props.text(ingestion + "targetBasePath"); t.TargetBasePath == "" {
		if t.BasePathPrefix == "" {
			return configf("neither --base-path-prefix nor %stargetBasePath says where %s is", ingestion, t.name)
		}
		t.TargetBasePath = strings.TrimRight(t.BasePathPrefix, "/") + "/" + db + "/" + table
	}
	return nil
}
