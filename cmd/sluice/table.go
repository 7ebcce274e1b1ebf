package main

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/logfile"
	"github.com/sluicelake/sluice/hudi/read"
	"github.com/sluicelake/sluice/hudi/timeline"
)

func (a *app) tableCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "table",
		Short: "Make, look into, check and repair a table",
		Long:  "Make a table, look into one, check one, and undo writes.\n\n" + exitHelp,
		Example: `  sluice table show s3://lake/orders
  sluice table slices /data/orders --as-of "2026-11-29 10:00:00" -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.showCommand(), a.schemaCommand(), a.commitsCommand(), a.partitionsCommand(), a.filesCommand(),
		a.slicesCommand(), a.configCommand(), a.logCommand(), a.createCommand(), a.rollbackCommand(), a.validateCommand())
	return cmd
}

// tableVerb is a subcommand of "table" that opens a table and prints one result.
func (a *app) tableVerb(use, short, long, example string, flags func(*cobra.Command), run func(ctx context.Context, t *hudi.Table) (*grid, error)) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     use + " PATH",
		Short:   short,
		Long:    long + "\n\n" + exitHelp,
		Example: example,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			g, err := run(cmd.Context(), t)
			if err != nil {
				return err
			}
			return g.print(a.out, format)
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table or json")
	if flags != nil {
		flags(cmd)
	}
	return cmd
}

func (a *app) open(ctx context.Context, url string) (*hudi.Table, error) {
	zone, err := a.tableZone()
	if err != nil {
		return nil, err
	}
	return hudi.Open(ctx, url, hudi.Options{Zone: zone})
}

func (a *app) showCommand() *cobra.Command {
	return a.tableVerb("show", "What a table is: type, version, keys, newest instant, sizes",
		"Print what a table is and how large it is. Sizes are those of the newest snapshot.",
		"  sluice table show s3://lake/orders\n  sluice table show /data/orders -o json", nil, show)
}

// showDoc is the JSON of "table show".
type showDoc struct {
	Path           string   `json:"path"`
	Name           string   `json:"name"`
	Database       string   `json:"database,omitempty"`
	Type           string   `json:"type"`
	Version        int      `json:"version"`
	Layout         int      `json:"timelineLayout"`
	RecordKey      []string `json:"recordKeyFields"`
	Partition      []string `json:"partitionFields"`
	Ordering       []string `json:"orderingFields"`
	KeyGenerator   string   `json:"keyGenerator,omitempty"`
	MergeMode      string   `json:"mergeMode,omitempty"`
	Payload        string   `json:"payloadClass,omitempty"`
	BaseFormat     string   `json:"baseFormat"`
	MetadataTable  []string `json:"metadataPartitions"`
	Latest         string   `json:"latestInstant"`
	Instants       int      `json:"activeInstants"`
	Pending        []string `json:"pendingInstants"`
	Columns        int      `json:"columns"`
	Partitions     int      `json:"partitions"`
	FileGroups     int      `json:"fileGroups"`
	WithLogs       int      `json:"fileGroupsWithLogs"`
	LogOnly        int      `json:"fileGroupsWithoutBaseFile"`
	BaseFiles      int      `json:"baseFiles"`
	LogFiles       int      `json:"logFiles"`
	Bytes          int64    `json:"snapshotBytes"`
	FilesInFolders int      `json:"filesInFolders"`
}

func show(ctx context.Context, t *hudi.Table) (*grid, error) {
	src, cfg := t.Source(), t.Config()
	files, err := src.Files(ctx)
	if err != nil {
		return nil, err
	}
	plan, err := src.Plan(ctx, read.Query{})
	if err != nil {
		return nil, err
	}
	d := showDoc{
		Path: t.URL(), Name: cfg.Name, Database: cfg.Database, Type: string(cfg.Type), Version: cfg.Version, Layout: cfg.Layout,
		RecordKey: list(cfg.RecordKeyFields), Partition: list(cfg.PartitionFields), Ordering: list(cfg.OrderingFields),
		KeyGenerator: cfg.KeyGenerator, MergeMode: cfg.MergeMode, Payload: cmp.Or(cfg.LegacyPayload, cfg.PayloadClass), BaseFormat: cfg.BaseFormat,
		MetadataTable: list(cfg.MetadataPartitions), Latest: plan.Instant(), Instants: src.Timeline.Len(), Pending: []string{},
		Columns: len(plan.UserColumns()), Partitions: len(files.Partitions()), FileGroups: len(plan.Slices()), FilesInFolders: files.Count(),
	}
	for _, in := range src.Timeline.Pending().Instants() {
		d.Pending = append(d.Pending, fmt.Sprintf("%s %s %s", in.Time, in.Action, strings.ToLower(in.State.String())))
	}
	for _, s := range plan.Slices() {
		d.Bytes += s.Bytes()
		d.LogFiles += len(s.Logs)
		if s.Base != nil {
			d.BaseFiles++
		}
		switch {
		case len(s.Logs) > 0 && s.Base == nil:
			d.LogOnly++
		case len(s.Logs) > 0:
			d.WithLogs++
		}
	}
	return showGrid(d), nil
}

func showGrid(d showDoc) *grid {
	g := &grid{doc: d}
	name := d.Name
	if d.Database != "" {
		name = d.Database + "." + d.Name
	}
	g.add("table", name)
	g.add("path", d.Path)
	g.add("type", fmt.Sprintf("%s, version %d, timeline layout %d", d.Type, d.Version, d.Layout))
	g.add("record key", orNone(d.RecordKey))
	g.add("partition fields", orNone(d.Partition))
	g.add("ordering fields", orNone(d.Ordering))
	g.add("key generator", cmp.Or(d.KeyGenerator, "-"))
	g.add("merge", cmp.Or(strings.TrimSpace(d.MergeMode+" "+d.Payload), "-"))
	g.add("metadata table", orNone(d.MetadataTable))
	g.add("columns", d.Columns)
	g.add("latest instant", cmp.Or(d.Latest, "none"))
	g.add("active instants", d.Instants)
	g.add("pending", orNone(d.Pending))
	g.add("partitions", d.Partitions)
	g.add("file groups", fmt.Sprintf("%d (%d with logs, %d without base file)", d.FileGroups, d.WithLogs, d.LogOnly))
	g.add("snapshot", fmt.Sprintf("%d base files, %d log files, %s", d.BaseFiles, d.LogFiles, size(d.Bytes)))
	g.add("files in folders", d.FilesInFolders)
	return g
}

func list(in []string) []string {
	if in == nil {
		return []string{}
	}
	return in
}

func orNone(in []string) string {
	if len(in) == 0 {
		return "-"
	}
	return strings.Join(in, ", ")
}

func (a *app) schemaCommand() *cobra.Command {
	var asOf, format string
	cmd := &cobra.Command{
		Use:   "schema PATH",
		Short: "The table's columns at an instant",
		Long: `Print the table's schema at an instant: as a list of columns, as Avro JSON (-o avro, without the meta columns, as commits store
it) or as a JSON document of columns (-o json).

` + exitHelp,
		Example: "  sluice table schema s3://lake/orders\n  sluice table schema /data/orders --as-of 20261129100000 -o avro",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			plan, err := t.Source().Plan(cmd.Context(), read.Query{AsOf: asOf})
			if err != nil {
				return err
			}
			return a.printSchema(plan, format)
		},
	}
	cmd.Flags().StringVar(&asOf, "as-of", "", "instant or date")
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table, json or avro")
	return cmd
}

func (a *app) printSchema(plan *read.Plan, format string) error {
	if format == "avro" {
		_, err := fmt.Fprintln(a.out, plan.AvroWithoutMeta())
		return err
	}
	type columnDoc struct {
		Name     string `json:"name"`
		Type     string `json:"type"`
		Nullable bool   `json:"nullable"`
	}
	g := &grid{head: []string{"column", "type", "null"}}
	var doc []columnDoc
	for _, f := range plan.Schema().Fields() {
		doc = append(doc, columnDoc{f.Name, f.Type.String(), f.Nullable})
		null := "no"
		if f.Nullable {
			null = "yes"
		}
		g.add(f.Name, f.Type, null)
	}
	g.doc = doc
	return g.print(a.out, format)
}

// commitDoc is one line of "table commits".
type commitDoc struct {
	Instant    string `json:"instant"`
	Completion string `json:"completion,omitempty"`
	Action     string `json:"action"`
	State      string `json:"state"`
	Operation  string `json:"operation,omitempty"`
	Files      int    `json:"files"`
	Partitions int    `json:"partitions"`
	Inserts    int64  `json:"inserts"`
	Updates    int64  `json:"updates"`
	Deletes    int64  `json:"deletes"`
	Replaced   int    `json:"replacedFileGroups"`
	Bytes      int64  `json:"bytes"`
	Archived   bool   `json:"archived,omitempty"`
}

func (a *app) commitsCommand() *cobra.Command {
	var archived bool
	var limit int
	var action string
	return a.tableVerb("commits", "The table's timeline: every action, newest first",
		"Print the instants of the timeline with what they wrote, newest first.",
		"  sluice table commits s3://lake/orders --limit 20\n  sluice table commits /data/orders --archived --action clean -o json",
		func(cmd *cobra.Command) {
			cmd.Flags().BoolVar(&archived, "archived", false, "the archived instants too")
			cmd.Flags().IntVar(&limit, "limit", 0, "at most so many, the newest; 0 means all")
			cmd.Flags().StringVar(&action, "action", "", "only this action: commit, deltacommit, replacecommit, compaction, clean, rollback, savepoint, restore, …")
		},
		func(ctx context.Context, t *hudi.Table) (*grid, error) {
			return commits(ctx, t.Source(), archived, limit, timeline.Action(action))
		})
}

func commits(ctx context.Context, src *read.Source, archived bool, limit int, action timeline.Action) (*grid, error) {
	all := slices.Clone(src.Timeline.Instants())
	if archived {
		old, err := timeline.Archive(ctx, src.Store, src.Config, "", "")
		if err != nil {
			return nil, err
		}
		all = timeline.New(src.Timeline.Layout(), append(old.Instants(), all...)).Instants()
	}
	if action != "" {
		all = slices.DeleteFunc(slices.Clone(all), func(i timeline.Instant) bool { return i.Action != action })
	}
	if limit > 0 && len(all) > limit {
		all = all[len(all)-limit:]
	}
	g := &grid{head: []string{"instant", "completion", "action", "state", "operation", "files", "inserts", "updates", "deletes", "bytes"}}
	docs := []commitDoc{}
	for _, in := range slices.Backward(all) {
		d, err := describe(ctx, src, in)
		if err != nil {
			return nil, err
		}
		docs = append(docs, d)
		g.add(d.Instant, cmp.Or(d.Completion, "-"), d.Action, d.State, cmp.Or(d.Operation, "-"), d.Files, d.Inserts, d.Updates, d.Deletes, size(d.Bytes))
	}
	g.doc = docs
	return g, nil
}

func describe(ctx context.Context, src *read.Source, in timeline.Instant) (commitDoc, error) {
	d := commitDoc{Instant: in.Time, Action: string(in.Action), State: in.State.String(), Archived: in.Archived}
	if src.Timeline.Layout() == 2 {
		d.Completion = in.Completion
	}
	if in.Pending() || !in.Action.IsWrite() {
		return d, nil
	}
	meta, err := src.Commit(ctx, in)
	if err != nil {
		return d, err
	}
	d.Operation, d.Partitions = meta.OperationType, len(meta.PartitionToWriteStats)
	for _, stats := range meta.PartitionToWriteStats {
		for _, s := range stats {
			d.Files++
			d.Inserts += s.NumInserts
			d.Updates += s.NumUpdateWrites
			d.Deletes += s.NumDeletes
			d.Bytes += s.TotalWriteBytes
		}
	}
	for _, ids := range meta.PartitionToReplaceFileIDs {
		d.Replaced += len(ids)
	}
	return d, nil
}

// partitionDoc is one line of "table partitions".
type partitionDoc struct {
	Partition  string `json:"partition"`
	FileGroups int    `json:"fileGroups"`
	BaseFiles  int    `json:"baseFiles"`
	LogFiles   int    `json:"logFiles"`
	Bytes      int64  `json:"snapshotBytes"`
	Files      int    `json:"filesInFolder"`
}

func (a *app) partitionsCommand() *cobra.Command {
	return a.tableVerb("partitions", "Partitions with their file groups and sizes",
		"Print each partition with the file groups of the newest snapshot. A non-partitioned table has one partition with an empty name.",
		"  sluice table partitions s3://lake/orders\n  sluice table partitions /data/orders -o json", nil,
		func(ctx context.Context, t *hudi.Table) (*grid, error) {
			files, err := t.Source().Files(ctx)
			if err != nil {
				return nil, err
			}
			plan, err := t.Source().Plan(ctx, read.Query{})
			if err != nil {
				return nil, err
			}
			docs := make([]partitionDoc, 0, len(files.Partitions()))
			index := map[string]int{}
			for i, p := range files.Partitions() {
				index[p] = i
				docs = append(docs, partitionDoc{Partition: p, Files: len(files.In(p))})
			}
			for _, s := range plan.Slices() {
				d := &docs[index[s.Partition]]
				d.FileGroups++
				d.LogFiles += len(s.Logs)
				d.Bytes += s.Bytes()
				if s.Base != nil {
					d.BaseFiles++
				}
			}
			g := &grid{head: []string{"partition", "file groups", "base files", "log files", "bytes", "files in folder"}, doc: docs}
			for _, d := range docs {
				g.add(cmp.Or(d.Partition, "(root)"), d.FileGroups, d.BaseFiles, d.LogFiles, size(d.Bytes), d.Files)
			}
			return g, nil
		})
}

// fileDoc is one line of "table files".
type fileDoc struct {
	Path    string `json:"path"`
	Kind    string `json:"kind"` // base, log, cdc, other
	FileID  string `json:"fileId,omitempty"`
	Instant string `json:"instant,omitempty"`
	Bytes   int64  `json:"bytes"`
	InView  bool   `json:"inSnapshot"`
}

func (a *app) filesCommand() *cobra.Command {
	return a.tableVerb("files", "Every file in the table's partitions, and whether the snapshot uses it",
		"Print every file that lies in a partition, old versions and leftovers among them, and whether the newest snapshot opens it.",
		"  sluice table files s3://lake/orders\n  sluice table files /data/orders -o json", nil,
		func(ctx context.Context, t *hudi.Table) (*grid, error) {
			files, err := t.Source().Files(ctx)
			if err != nil {
				return nil, err
			}
			plan, err := t.Source().Plan(ctx, read.Query{})
			if err != nil {
				return nil, err
			}
			used := map[string]bool{}
			for _, s := range plan.Slices() {
				if s.Base != nil {
					used[s.Base.Name] = true
				}
				for _, l := range s.Logs {
					used[l.Path] = true
				}
			}
			docs := []fileDoc{}
			for _, p := range files.Partitions() {
				for _, f := range files.In(p) {
					docs = append(docs, classify(f.Name, f.Size, used[f.Name]))
				}
			}
			g := &grid{head: []string{"path", "kind", "file id", "instant", "bytes", "in snapshot"}, doc: docs}
			for _, d := range docs {
				in := "no"
				if d.InView {
					in = "yes"
				}
				g.add(d.Path, d.Kind, cmp.Or(d.FileID, "-"), cmp.Or(d.Instant, "-"), d.Bytes, in)
			}
			return g, nil
		})
}

func classify(name string, bytes int64, used bool) fileDoc {
	d := fileDoc{Path: name, Kind: "other", Bytes: bytes, InView: used}
	if l, ok := logfile.ParseName(path.Base(name)); ok {
		d.Kind, d.FileID, d.Instant = "log", l.FileID, l.Instant
		if l.CDC {
			d.Kind = "cdc"
		}
	} else if b, ok := filegroup.ParseBaseName(path.Base(name)); ok {
		d.Kind, d.FileID, d.Instant = "base", b.FileID, b.Instant
	}
	return d
}

func (a *app) configCommand() *cobra.Command {
	var format string
	var markdown bool
	cmd := &cobra.Command{
		Use:   "config [PATH]",
		Short: "The table's properties and what they mean; without a path, every hoodie.* key that Sluice knows",
		Long: `Print a table's properties with the meaning of each. Without a path, print every hoodie.* key that Sluice knows: its default, since
which release it exists, and what Sluice does with it. --markdown prints that list as the page docs/config.md.

` + exitHelp,
		Example: "  sluice table config s3://lake/orders\n  sluice table config -o json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 1:
				t, err := a.open(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return properties(t.Config()).print(a.out, format)
			case markdown:
				return config.Markdown(a.out)
			}
			return registry().print(a.out, format)
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table or json")
	cmd.Flags().BoolVar(&markdown, "markdown", false, "print the page of all keys")
	return cmd
}

func properties(cfg *config.Table) *grid {
	type keyDoc struct {
		Key   string `json:"key"`
		Value string `json:"value"`
		Known bool   `json:"known"`
		Doc   string `json:"doc,omitempty"`
	}
	g := &grid{head: []string{"key", "value", "meaning"}}
	docs := []keyDoc{}
	names := cfg.Props.Keys()
	slices.Sort(names)
	for _, name := range names {
		value, _ := cfg.Props.Get(name)
		key, known := config.Lookup(name)
		docs = append(docs, keyDoc{name, value, known, key.Doc})
		meaning := key.Doc
		if !known {
			meaning = "(unknown to Sluice; kept as it is)"
		}
		g.add(name, clip(value, 60), meaning)
	}
	g.doc = docs
	return g
}

func clip(text string, n int) string {
	r := []rune(text)
	if len(r) <= n {
		return text
	}
	return string(r[:n-1]) + "…"
}

func registry() *grid {
	g := &grid{head: []string{"key", "default", "since", "scope", "use", "meaning"}}
	type keyDoc struct {
		Name    string   `json:"name"`
		Old     []string `json:"oldNames,omitempty"`
		Kind    string   `json:"type"`
		Default string   `json:"default,omitempty"`
		Since   string   `json:"since,omitempty"`
		Scope   string   `json:"scope"`
		Use     string   `json:"use"`
		Doc     string   `json:"doc"`
	}
	docs := []keyDoc{}
	for _, k := range config.Keys() {
		docs = append(docs, keyDoc{k.Name, k.Old, string(k.Kind), k.Default, k.Since, string(k.Scope), string(k.Use), k.Doc})
		g.add(k.Name, cmp.Or(clip(k.Default, 40), "-"), cmp.Or(k.Since, "-"), k.Scope, k.Use, k.Doc)
	}
	g.doc = docs
	return g
}
