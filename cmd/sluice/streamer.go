package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicelake/sluice/hudi/config"
	"github.com/sluicelake/sluice/streamer"
	"github.com/sluicelake/sluice/streamer/transform"
)

// streamerFlags are flags of the original that need more than a field of the configuration.
type streamerFlags struct {
	streamer.Config
	limit, interval, retryInterval, retries string
	orderingFields                          string
	transformers                            []string
	sync, hiveSync, bootstrap               bool
	mergeStrategy, mergeClasses             string
	strict                                  bool
	window, settle                          time.Duration
	parallel                                int
	metrics, format                         string
}

func (a *app) streamerCommand() *cobra.Command {
	var f streamerFlags
	cmd := &cobra.Command{
		Use:   "streamer",
		Short: "Apply change files, change logs or another table to a table, once or for ever",
		Long: `Read what is new in a source and write it to a table, with the place in the source in the same commit: killed at any moment, no row is
lost or written twice. The flags and properties are those of HoodieStreamer (HoodieDeltaStreamer), old names included; what follows
"spark-submit" in a script can be pasted behind the verb as it stands, and a table can go from Spark's streamer to this one and back.

Sources: ParquetDFSSource, JsonDFSSource, CsvDFSSource, AvroDFSSource, ORCDFSSource (or parquet, json, csv, avro, orc) under
hoodie.streamer.source.dfs.root, and HoodieIncrSource. Schemas: FilebasedSchemaProvider, SchemaRegistryProvider, their NullTarget forms,
table for the schema of the target, or none. Transformers: SqlQueryBasedTransformer, SqlFileBasedTransformer, FlatteningTransformer,
AWSDmsTransformer.

Several tables: --config-folder and --base-path-prefix, with hoodie.streamer.ingestion.tablesToBeIngested in --props; the exit code is 1
when one of them failed, after the others were done.

--continuous ends after the running round on the first signal, and gives the round up on the second.

` + exitHelp,
		Example: `  sluice streamer --table-type COPY_ON_WRITE --target-base-path s3://lake/orders --target-table orders \
      --source-class ParquetDFSSource --source-ordering-field updated_at --transformer-class AWSDmsTransformer \
      --payload-class org.apache.hudi.common.model.AWSDmsAvroPayload \
      --hoodie-conf hoodie.streamer.source.dfs.root=s3://dms/orders \
      --hoodie-conf hoodie.datasource.write.recordkey.field=order_id
  sluice streamer --continuous --min-sync-interval-seconds 60 --props orders.properties \
      --table-type COPY_ON_WRITE --target-base-path /data/orders --target-table orders`,
		Args:        noWords,
		Annotations: map[string]string{javaAliases: "-rc=--retry-last-pending-inline-clustering", sparkLine: "true"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return a.streamer(cmd, f) },
	}
	f.register(cmd)
	onlyOnce(cmd)
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		switch name {
		case "storage-type":
			name = "table-type"
		case "merge-mode":
			name = "record-merge-mode"
		}
		return pflag.NormalizedName(name)
	})
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageError{strangeFlag(cmd, err)} })
	return cmd
}

// sparkLine marks commands behind which a spark-submit line may be pasted.
const sparkLine = "spark-line"

func (f *streamerFlags) register(cmd *cobra.Command) {
	s := cmd.Flags()
	c := &f.Config
	s.StringVar(&c.TargetBasePath, "target-base-path", "", "path of the table; made when it is absent (required)")
	s.StringVar(&c.TargetTable, "target-table", "", "name of the table (required)")
	s.StringVar(&c.TableType, "table-type", "", "COPY_ON_WRITE or MERGE_ON_READ (required; --storage-type)")
	s.StringVar(&c.BaseFileFormat, "base-file-format", "PARQUET", "PARQUET")
	s.StringVar(&c.Props, "props", "", "properties file, with include=<file>")
	s.StringArrayVar(&c.HoodieConf, "hoodie-conf", nil, "key=value, given again for more; wins over --props")
	s.StringVar(&c.SourceClass, "source-class", "org.apache.hudi.utilities.sources.JsonDFSSource", "source: see above")
	s.StringVar(&c.OrderingField, "source-ordering-field", "", "column that says which of two rows of one key is newer; default ts")
	s.StringVar(&f.orderingFields, "source-ordering-fields", "", "the same, several with commas between")
	s.StringVar(&c.PayloadClass, "payload-class", "", "rule for two rows of one key; default OverwriteWithLatestAvroPayload")
	s.StringVar(&c.MergeMode, "record-merge-mode", "", "EVENT_TIME_ORDERING or COMMIT_TIME_ORDERING (--merge-mode)")
	s.StringVar(&c.SchemaProvider, "schemaprovider-class", "", "where schemas come from: see above")
	s.StringArrayVar(&f.transformers, "transformer-class", nil, "transformers, applied from left to right")
	s.StringVar(&f.limit, "source-limit", "9223372036854775807", "bytes of files that a round reads at most")
	s.StringVar(&c.Op, "op", "", "UPSERT (the default), INSERT, BULK_INSERT, DELETE, INSERT_OVERWRITE, INSERT_OVERWRITE_TABLE, DELETE_PARTITION")
	s.BoolVar(&c.FilterDupes, "filter-dupes", false, "leave rows out whose key is stored; not with UPSERT")
	s.StringVar(&c.Checkpoint, "checkpoint", "", "begin here, once: the same value given again goes on where the table is")
	s.StringVar(&c.IgnoreCheckpoint, "ignore-checkpoint", "", "a word; given for the first time, the stored checkpoint is forgotten")
	s.StringVar(&c.InitialCheckpointProvider, "initial-checkpoint-provider", "", "InitialCheckpointFromAnotherHoodieTimelineProvider")
	s.BoolVar(&c.AllowSameCheckpoint, "allow-commit-on-no-checkpoint-change", false, "commit even when nothing is new")
	s.BoolVar(&c.Continuous, "continuous", false, "go on for ever")
	s.StringVar(&f.interval, "min-sync-interval-seconds", "0", "least time from the start of one round to the next")
	s.StringVar(&c.Termination, "post-write-termination-strategy-class", "", "NoNewDataTerminationStrategy ends a continuous run")
	s.BoolVar(&c.DisableCompaction, "disable-compaction", false, "no compaction")
	s.BoolVar(&c.CommitOnErrors, "commit-on-errors", false, "put bad records aside (see --rejects) and commit the others")
	s.BoolVar(&c.RetryOnSourceFailures, "retry-on-source-failures", false, "try again when the source can't be reached")
	s.StringVar(&f.retryInterval, "retry-interval-seconds", "30", "pause before trying again")
	s.StringVar(&f.retries, "max-retry-count", "3", "attempts")
	s.StringVar(&c.BasePathPrefix, "base-path-prefix", "", "several tables: each lies at <prefix>/<database>/<table>")
	s.StringVar(&c.ConfigFolder, "config-folder", "", "several tables: folder of their properties files")

	s.BoolVar(&f.strict, "source-strict", false, "also find files that come late, under an old modification time")
	s.DurationVar(&f.window, "source-late-window", 24*time.Hour, "with --source-strict: how late; 0 means however late")
	settle := secondsFlag{&f.settle}
	s.Var(settle, "source-settle-seconds", "leave files alone that are younger; 5 is good for object stores")
	s.StringVar(&c.Rejects, "rejects", "", "folder for records that can't be written; default with --commit-on-errors: <target-base-path>_rejects")
	s.IntVar(&f.parallel, "parallelism", 0, "files read and written at once; 0 means one for each CPU")
	s.StringVar(&f.metrics, "metrics-address", "", "serve metrics in the form of Prometheus at this address, as :9402")
	s.StringVarP(&f.format, "output", "o", "table", "table (a line of text) or json: the summary")

	s.BoolVar(&f.sync, "enable-sync", false, "catalog sync: not there yet, refused")
	s.BoolVar(&f.hiveSync, "enable-hive-sync", false, "catalog sync: not there yet, refused")
	s.BoolVar(&f.bootstrap, "run-bootstrap", false, "refused: bootstrapped tables are read, not written")
	s.StringVar(&f.mergeStrategy, "merge-strategy-id", "", "refused: mergers of your own can't run here")
	s.StringVar(&f.mergeClasses, "merge-impl-classes", "", "refused: mergers of your own can't run here")
	ignoredFlags(s)
}

// ignoredFlags are taken so that scripts run; what they tune is not here.
func ignoredFlags(s *pflag.FlagSet) {
	const why = "accepted, of no effect"
	for _, name := range []string{"force-empty-sync", "enable-hive-support", "bootstrap-overwrite", "retry-last-pending-inline-clustering", "retry-last-pending-inline-compaction"} {
		s.Bool(name, false, why)
	}
	for _, name := range []string{"spark-master", "spark-app-name", "sync-tool-classes", "bootstrap-index-class", "checkpoint-type", "ingestion-metrics-class",
		"config-hot-update-strategy-class", "max-pending-compactions", "max-pending-clustering", "delta-sync-scheduling-weight", "compact-scheduling-weight",
		"cluster-scheduling-weight", "delta-sync-scheduling-minshare", "compact-scheduling-minshare", "cluster-scheduling-minshare"} {
		s.String(name, "", why)
	}
	s.VisitAll(func(f *pflag.Flag) { f.Hidden = f.Usage == why })
}

// secondsFlag is a number of seconds.
type secondsFlag struct{ to *time.Duration }

func (f secondsFlag) String() string {
	if f.to == nil {
		return "0"
	}
	return strconv.FormatFloat(f.to.Seconds(), 'f', -1, 64)
}
func (f secondsFlag) Type() string { return "seconds" }
func (f secondsFlag) Set(text string) error {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n < 0 || n > 1e9 {
		return fmt.Errorf("%q is no number of seconds", text)
	}
	*f.to = time.Duration(n * float64(time.Second))
	return nil
}

// strangeFlag words an unknown flag as the original does, and names the one that was probably meant.
func strangeFlag(cmd *cobra.Command, err error) error {
	name, ok := strings.CutPrefix(err.Error(), "unknown flag: ")
	if !ok {
		if _, list, short := strings.Cut(err.Error(), "unknown shorthand flag: "); short {
			if _, in, ok := strings.Cut(list, " in "); ok {
				return fmt.Errorf("Was passed main parameter '%s' but no main parameter was defined in your arg class", in) //nolint:revive,staticcheck // the original's text
			}
		}
		return err
	}
	near := ""
	if _, hint, ok := strings.Cut(nearestFlag(cmd, err).Error(), "; "); ok {
		near = "; " + hint
	}
	return fmt.Errorf("Was passed main parameter '%s' but no main parameter was defined in your arg class%s", name, near) //nolint:revive,staticcheck // the original's text
}

// number reads a whole number with the original's error.
func number(flag, text, kind string, to *int64) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || kind == "integer" && n != int64(int32(n)) {
		article := "a"
		if kind == "integer" {
			article = "an"
		}
		return usagef("\"--%s\": couldn't convert %q to %s %s", flag, text, article, kind)
	}
	*to = n
	return nil
}

// complete turns the flags into a configuration.
func (f *streamerFlags) complete(cmd *cobra.Command, a *app) error {
	c := &f.Config
	c.MultiTable = cmd.Flags().Changed("config-folder") || cmd.Flags().Changed("base-path-prefix") || multiClass(cmd.Annotations["class"])
	needed := []string{"target-base-path", "target-table", "table-type"}
	if c.MultiTable {
		needed = []string{"config-folder", "table-type"}
	}
	if err := required(cmd, needed...); err != nil {
		return err
	}
	var interval, retryInterval, retries int64
	if err := errors.Join(number("source-limit", f.limit, "long", &c.SourceLimit), number("min-sync-interval-seconds", f.interval, "integer", &interval),
		number("retry-interval-seconds", f.retryInterval, "integer", &retryInterval), number("max-retry-count", f.retries, "integer", &retries)); err != nil {
		return usageError{err}
	}
	c.MinSyncInterval, c.RetryInterval, c.MaxRetries = time.Duration(interval)*time.Second, time.Duration(retryInterval)*time.Second, int(retries)
	if f.orderingFields != "" {
		if c.OrderingField != "" && c.OrderingField != f.orderingFields {
			return usagef("--source-ordering-field %s contradicts --source-ordering-fields %s", c.OrderingField, f.orderingFields)
		}
		c.OrderingField = f.orderingFields
	}
	c.Transformers, c.Strict, c.Window, c.Settle, c.Parallel = f.transformers, f.strict, f.window, f.settle, f.parallel
	if f.format != "table" && f.format != "json" {
		return usagef("--output %q: there are table and json", f.format)
	}
	var err error
	if c.Memory, err = a.budget(); err != nil {
		return err
	}
	if c.Zone, err = a.tableZone(); err != nil {
		return err
	}
	c.TempDir = a.tempDir
	return f.refused()
}

// refused names what a pasted line may ask for and Sluice does not do, before anything is written.
func (f *streamerFlags) refused() error {
	const sync = "catalog sync is not there yet: leave the flag away, and register the table with your catalog"
	const merger = "mergers of your own can't run here; --payload-class names one of the built-in rules"
	for _, r := range []struct {
		on         bool
		flag, hint string
	}{
		{f.sync, "--enable-sync", sync}, {f.hiveSync, "--enable-hive-sync", sync},
		{f.bootstrap, "--run-bootstrap", "bootstrapped tables are read, not written; stream the files into a new table"},
		{f.mergeStrategy != "", "--merge-strategy-id", merger}, {f.mergeClasses != "", "--merge-impl-classes", merger},
	} {
		if r.on {
			return &config.UnsupportedError{Table: f.TargetBasePath, Property: r.flag, Value: "true", Hint: r.hint}
		}
	}
	return nil
}

func (a *app) streamer(cmd *cobra.Command, f streamerFlags) error {
	if err := f.complete(cmd, a); err != nil {
		return err
	}
	p := &streamProgress{a: a, multi: f.MultiTable, last: time.Now()}
	f.Event = p.observe
	ctx := cmd.Context()
	if f.metrics != "" {
		stop, err := p.serve(f.metrics)
		if err != nil {
			return err
		}
		defer stop()
	}
	var stop chan struct{}
	if f.Continuous {
		var done func()
		ctx, stop, done = gently(ctx)
		defer done()
	}
	sum, err := streamer.Run(ctx, f.Config, stop)
	if printErr := p.finish(sum, err, f.format); err == nil {
		err = printErr
	}
	switch {
	case errors.Is(err, transform.ErrNoSQL):
		return &config.UnsupportedError{Table: f.TargetBasePath, Property: "--transformer-class", Value: strings.Join(f.transformers, ","), Hint: err.Error()}
	case errors.Is(err, streamer.ErrConfig) && !f.MultiTable:
		return usageError{err}
	}
	return err
}

// gently lets a run that goes on for ever end after the running round when ctx ends, and cuts it off at the next signal.
func gently(ctx context.Context) (hard context.Context, stop chan struct{}, done func()) {
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop = make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-ctx.Done():
		case <-hard.Done():
			return
		}
		close(stop)
		for n := 1; ; n++ {
			select {
			case <-hard.Done():
				return
			case <-signals: // the first is the one that ended ctx, where a signal did
				if n == 2 {
					cancel()
				}
			}
		}
	}()
	return hard, stop, func() { signal.Stop(signals); cancel() }
}

// streamProgress shows rounds to a person, and counts for metrics.
type streamProgress struct {
	a     *app
	multi bool

	mu   sync.Mutex
	last time.Time
	rows int64

	rounds, commits                                            int64
	read, inserted, updated, deleted, rejected, files, bytesIn int64
	lastRound                                                  time.Duration
	lastCommit                                                 time.Time
	waiting, left                                              map[string]int
}

func (p *streamProgress) observe(e streamer.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := e.(type) {
	case streamer.Note:
		p.printf(e.Table, "%s", e.Text)
	case streamer.Began:
		p.rows = 0
		from := e.From
		if from == "" {
			from = "the beginning"
		}
		left := ""
		if e.Left > 0 {
			left = fmt.Sprintf(", %d files left for later", e.Left)
		}
		p.printf(e.Table, "round %d: %d files, %s, from %s%s", e.Round, e.Files, size(e.Bytes), from, left)
	case streamer.Wrote:
		p.wrote(e)
	case streamer.Round:
		p.round(e)
	}
}

func (p *streamProgress) printf(table, format string, args ...any) {
	if p.a.quiet {
		return
	}
	prefix := ""
	if p.multi && table != "" {
		prefix = table + ": "
	}
	_, _ = fmt.Fprintf(p.a.err, prefix+format+"\n", args...)
}

func (p *streamProgress) round(r streamer.Round) {
	p.rounds++
	p.lastRound = r.Took
	p.rejected += r.Rejected
	p.files += int64(r.Files)
	p.bytesIn += r.Bytes
	if p.waiting == nil {
		p.waiting, p.left = map[string]int{}, map[string]int{}
	}
	p.waiting[r.Table], p.left[r.Table] = r.Waiting, r.Left
	if r.Result == nil || r.Instant == "" {
		return
	}
	p.commits++
	p.lastCommit = time.Now()
	res := r.Result
	p.read += res.Read
	p.inserted += res.Inserted
	p.updated += res.Updated
	p.deleted += res.Deleted
	more := ""
	if r.Rejected > 0 {
		more += fmt.Sprintf(", %d rejected", r.Rejected)
	}
	if r.Late > 0 {
		more += fmt.Sprintf(", %d files came late", r.Late)
	}
	p.printf(r.Table, "round %d: commit %s: %d rows read, %d inserted, %d updated, %d deleted%s; %d files written, %s, in %s, %s; checkpoint %s",
		r.Number, r.Instant, res.Read, res.Inserted, res.Updated, res.Deleted, more, res.Files, size(res.Bytes), r.Took.Round(time.Millisecond), rate(res.Read, r.Took), r.Checkpoint)
}

// finish prints the summary.
func (p *streamProgress) finish(s streamer.Summary, err error, format string) error {
	if format == "json" {
		doc := map[string]any{"rounds": s.Rounds, "commits": s.Commits, "files": s.Files, "bytes": s.Bytes, "read": s.Read, "inserted": s.Inserted, "updated": s.Updated,
			"deleted": s.Deleted, "rejected": s.Rejected, "filesWritten": s.Rewrote, "checkpoint": s.Last, "seconds": s.Took.Seconds(), "failed": s.Failed, "stopped": s.Stopped}
		text, jsonErr := json.Marshal(doc)
		if jsonErr == nil {
			_, jsonErr = fmt.Fprintf(p.a.out, "%s\n", text)
		}
		return jsonErr
	}
	if err != nil && s.Rounds == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	why := ""
	if s.Stopped != "" {
		why = "; stopped: " + s.Stopped
	}
	if s.Commits == 0 && err == nil {
		p.printf("", "nothing new: no commit was made (%d rounds, %s%s)", s.Rounds, s.Took.Round(time.Millisecond), why)
		return nil
	}
	p.printf("", "%d rounds, %d commits: %d files, %s in; %d rows read, %d inserted, %d updated, %d deleted, %d rejected; %d files written; %s, %s%s",
		s.Rounds, s.Commits, s.Files, size(s.Bytes), s.Read, s.Inserted, s.Updated, s.Deleted, s.Rejected, s.Rewrote, s.Took.Round(time.Millisecond), rate(s.Read, s.Took), why)
	return nil
}

// serve answers GET /metrics at an address.
func (p *streamProgress) serve(address string) (stop func(), err error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, usagef("--metrics-address: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		p.writeMetrics(w)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }() // ends with Close
	p.printf("", "metrics at http://%s/metrics", l.Addr())
	return func() { _ = server.Close() }, nil
}
