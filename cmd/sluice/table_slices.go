package main

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/logfile"
	"github.com/sluicelake/sluice/hudi/read"
	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/open"
)

// sliceDoc is one line of "table slices".
type sliceDoc struct {
	Partition string     `json:"partition"`
	FileID    string     `json:"fileId"`
	Instant   string     `json:"instant"`
	Base      *sliceFile `json:"base"`
	Logs      []logDoc   `json:"logs"`
	Bytes     int64      `json:"bytes"`
}

type sliceFile struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

type logDoc struct {
	sliceFile
	Instant string `json:"instant"`
	Version int    `json:"version"`
	Blocks  int    `json:"blocks"`
	Corrupt int    `json:"corruptBlocks"`
}

func (a *app) slicesCommand() *cobra.Command {
	var asOf, mode, partition string
	return a.tableVerb("slices", "The file slices that a query opens: base file, log files, sizes, block counts",
		"Print the visible slice of each file group at an instant, with the size of its base file and the blocks of its log files.",
		"  sluice table slices s3://lake/orders\n  sluice table slices /data/orders --as-of 20261129100000 --query-type read_optimized -o json",
		func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&asOf, "as-of", "", "instant or date")
			cmd.Flags().StringVar(&mode, "query-type", "snapshot", "snapshot or read_optimized")
			cmd.Flags().StringVar(&partition, "partition", "*", "only partitions that match this pattern, * for any part of a segment")
		},
		func(ctx context.Context, t *hudi.Table) (*grid, error) {
			m, err := parseMode(mode)
			if err != nil {
				return nil, err
			}
			plan, err := t.Source().Plan(ctx, read.Query{AsOf: asOf, Mode: m})
			if err != nil {
				return nil, err
			}
			return sliceGrid(ctx, t.Source().Store, plan.Slices(), partition)
		})
}

func parseMode(text string) (filegroup.Mode, error) {
	switch strings.ToLower(text) {
	case "snapshot", "realtime", "real_time":
		return filegroup.Snapshot, nil
	case "read_optimized", "read-optimized":
		return filegroup.ReadOptimized, nil
	}
	return 0, usagef("query type %q: use snapshot or read_optimized", text)
}

func sliceGrid(ctx context.Context, store storage.Store, in []filegroup.Slice, partition string) (*grid, error) {
	g := &grid{head: []string{"partition", "file id", "instant", "base bytes", "logs", "log bytes", "blocks"}}
	docs := []sliceDoc{}
	for _, s := range in {
		if ok, err := path.Match(partition, s.Partition); err != nil {
			return nil, usagef("--partition %q: %w", partition, err)
		} else if !ok && partition != "*" {
			continue
		}
		d := sliceDoc{Partition: s.Partition, FileID: s.FileID, Instant: s.Instant, Logs: []logDoc{}, Bytes: s.Bytes()}
		base := "-"
		if s.Base != nil {
			d.Base = &sliceFile{s.Base.Name, s.Base.Size}
			base = size(s.Base.Size)
		}
		var logBytes int64
		blocks := 0
		for _, l := range s.Logs {
			ld, err := countBlocks(ctx, store, l)
			if err != nil {
				return nil, err
			}
			d.Logs = append(d.Logs, ld)
			logBytes += l.Size
			blocks += ld.Blocks
		}
		docs = append(docs, d)
		g.add(cmp.Or(d.Partition, "(root)"), d.FileID, d.Instant, base, len(d.Logs), size(logBytes), blocks)
	}
	g.doc = docs
	return g, nil
}

func countBlocks(ctx context.Context, store storage.Store, l filegroup.LogFile) (logDoc, error) {
	d := logDoc{sliceFile: sliceFile{l.Path, l.Size}, Instant: l.Instant, Version: l.Version}
	obj, err := store.Open(ctx, l.Path)
	if err != nil {
		return d, err
	}
	defer func() { _ = obj.Close() }()
	for b, err := range logfile.Blocks(ctx, obj) {
		if err != nil {
			return d, fmt.Errorf("%s: %w", l.Path, err)
		}
		d.Blocks++
		if b.Type == logfile.Corrupt {
			d.Corrupt++
		}
	}
	return d, nil
}

func (a *app) logCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "log FILE",
		Short: "The blocks of one log file: types, headers, sizes",
		Long:  "Print the blocks of a log file in order: type, instant, header, offset and length of the content, and what is damaged.\n\n" + exitHelp,
		Example: `  sluice table log s3://lake/orders/eu/.5c7c4afa-0_20261129225439695.log.1_1-140-170
  sluice table log /data/orders/.x-0_20261129225439695.log.1_0-33-43 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			parent, name, err := open.Split(args[0])
			if err != nil {
				return err
			}
			store, err := open.Store(ctx, parent, open.Options{})
			if err != nil {
				return err
			}
			obj, err := store.Open(ctx, name)
			if err != nil {
				return err
			}
			defer func() { _ = obj.Close() }()
			g := &grid{head: []string{"offset", "type", "instant", "content bytes", "header"}}
			docs := []logfile.Block{}
			for b, err := range logfile.Blocks(ctx, obj) {
				if err != nil {
					return fmt.Errorf("%s: %w", args[0], err)
				}
				docs = append(docs, b)
				g.add(b.Offset, b.Type, cmp.Or(b.Header.InstantTime, "-"), b.ContentLength, headerText(b))
			}
			g.doc = docs
			return g.print(a.out, format)
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table or json")
	return cmd
}

// headerText shows the headers of a block but for its instant, long ones cut.
func headerText(b logfile.Block) string {
	var out []string
	add := func(name, value string) {
		if value != "" {
			out = append(out, name+"="+clip(value, 48))
		}
	}
	h := b.Header
	add("target", h.TargetInstant)
	add("command", h.Command)
	add("replaces", h.CompactedTimes)
	add("attempt", h.BlockID)
	add("partial", h.Partial)
	add("positions", h.Positions)
	add("positionsBase", h.PositionsBase)
	add("schema", h.Schema)
	add("damaged", b.Reason)
	return strings.Join(out, " ")
}
