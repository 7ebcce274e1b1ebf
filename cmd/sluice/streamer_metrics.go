package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/sluicelake/sluice/hudi/operation"
	"github.com/sluicelake/sluice/streamer"
)

// wrote prints a line now and then while a write runs.
func (p *streamProgress) wrote(e streamer.Wrote) {
	switch e := e.Event.(type) {
	case operation.Protocol:
		p.a.tell(e.Event)
	case operation.Progress:
		p.rows += e.Read
	}
	if time.Since(p.last) >= lineEvery {
		p.last = time.Now()
		p.printf(e.Table, "%d rows read", p.rows)
	}
}

// writeMetrics prints the counters in the text form of Prometheus.
func (p *streamProgress) writeMetrics(w io.Writer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range []struct {
		name, help string
		value      int64
	}{
		{"rounds", "Rounds that were done.", p.rounds}, {"commits", "Commits that were made.", p.commits},
		{"rows_read", "Rows that came from the source.", p.read}, {"rows_inserted", "Rows that were added.", p.inserted},
		{"rows_updated", "Rows that were replaced.", p.updated}, {"rows_deleted", "Rows that were removed.", p.deleted},
		{"rows_rejected", "Records that were put aside.", p.rejected}, {"source_files", "Files that were read.", p.files},
		{"source_bytes", "Bytes of the files that were read.", p.bytesIn},
	} {
		_, _ = fmt.Fprintf(w, "# HELP sluice_streamer_%[1]s_total %[2]s\n# TYPE sluice_streamer_%[1]s_total counter\nsluice_streamer_%[1]s_total %[3]d\n", m.name, m.help, m.value)
	}
	_, _ = fmt.Fprintf(w, "# HELP sluice_streamer_last_round_seconds Time that the last round took.\n# TYPE sluice_streamer_last_round_seconds gauge\nsluice_streamer_last_round_seconds %g\n", p.lastRound.Seconds())
	if !p.lastCommit.IsZero() {
		_, _ = fmt.Fprintf(w, "# HELP sluice_streamer_last_commit_timestamp_seconds When the last commit was made.\n# TYPE sluice_streamer_last_commit_timestamp_seconds gauge\nsluice_streamer_last_commit_timestamp_seconds %d\n", p.lastCommit.Unix())
	}
	_, _ = fmt.Fprint(w, "# HELP sluice_streamer_files_left Files that wait for a later round.\n# TYPE sluice_streamer_files_left gauge\n")
	for _, table := range slices.Sorted(maps.Keys(p.left)) {
		_, _ = fmt.Fprintf(w, "sluice_streamer_files_left{table=%q} %d\n", table, p.left[table]+p.waiting[table])
	}
}
