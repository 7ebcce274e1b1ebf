package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluicelake/sluice/hudi"
	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/hudi/read"
	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/hudi/timeline"
	"github.com/sluicelake/sluice/hudi/write"
	counting "github.com/sluicelake/sluice/storage/count"
	"github.com/sluicelake/sluice/storage/local"
	"github.com/sluicelake/sluice/storage/open"
)

// crowd is a table of many files: what planning costs, not reading. Each file group has as many files as it was written, and
// every commit writes to neighbouring partitions.
type crowd struct {
	files, partitions, instants, versions int
}

var manyFiles = crowd{files: 100_000, partitions: 2_000, instants: 1_500, versions: 2}

const crowdSchema = `{"type":"record","name":"crowd","fields":[{"name":"id","type":"long"},{"name":"p","type":["null","string"],"default":null}]}`

// make writes the table unless it is there.
func (c crowd) make(ctx context.Context, path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	fmt.Fprintf(os.Stderr, "making %s (once)\n", path)
	part := path + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	store, err := local.New(part, local.Options{})
	if err != nil {
		return err
	}
	if _, err := write.CreateTable(ctx, store, write.Spec{Name: "crowd", RecordKeyFields: []string{"id"}, PartitionFields: []string{"p"}, HiveStyle: true, Schema: crowdSchema}); err != nil {
		return err
	}
	body, err := c.baseFile(ctx)
	if err != nil {
		return err
	}
	for i := range c.instants {
		if err := c.commit(part, i, body); err != nil {
			return err
		}
	}
	return os.Rename(part, path)
}

// baseFile is the content of all files: one row.
func (c crowd) baseFile(ctx context.Context) ([]byte, error) {
	plain, err := schema.Parse([]byte(crowdSchema))
	if err != nil {
		return nil, err
	}
	full := schema.WithMeta(plain)
	columns, err := full.Arrow()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "sluice-bench-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	store, err := local.New(dir, local.Options{})
	if err != nil {
		return nil, err
	}
	w, err := basefile.Create(ctx, store, "x.parquet", basefile.WriterOptions{Schema: full})
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	b := array.NewRecordBuilder(memory.DefaultAllocator, columns)
	defer b.Release()
	for i := range 5 {
		b.Field(i).(*array.StringBuilder).Append("x")
	}
	b.Field(5).(*array.Int64Builder).Append(1)
	b.Field(6).(*array.StringBuilder).AppendNull()
	batch := b.NewRecordBatch()
	defer batch.Release()
	if err := w.Write(batch); err != nil {
		return nil, err
	}
	if _, _, err := w.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, "x.parquet"))
}

// commit writes the files and the states of the i-th instant.
func (c crowd) commit(dir string, i int, body []byte) error {
	at := timeline.FormatTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i)*time.Minute), time.UTC)
	meta := &timeline.CommitMetadata{PartitionToWriteStats: map[string][]timeline.WriteStat{}, OperationType: "UPSERT", ExtraMetadata: map[string]string{"schema": crowdSchema}}
	groups := c.files / c.versions
	for n := c.files * i / c.instants; n < c.files*(i+1)/c.instants; n++ {
		group := n % groups
		partition := fmt.Sprintf("p=%04d", group*c.partitions/groups)
		id := fmt.Sprintf("%08x-0000-4000-8000-000000000000-0", group)
		name := fmt.Sprintf("%s/%s_%d-0-0_%s.parquet", partition, id, n, at)
		folder := filepath.Join(dir, partition)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		marker := filepath.Join(folder, ".hoodie_partition_metadata")
		if _, err := os.Stat(marker); errors.Is(err, os.ErrNotExist) {
			if err := os.WriteFile(marker, []byte("#partition metadata\ncommitTime="+at+"\npartitionDepth=1\n"), 0o644); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), body, 0o644); err != nil {
			return err
		}
		meta.PartitionToWriteStats[partition] = append(meta.PartitionToWriteStats[partition], timeline.WriteStat{
			FileID: id, Path: name, PartitionPath: partition, PrevCommit: "null", NumWrites: 1, FileSizeInBytes: int64(len(body)),
		})
	}
	for suffix, text := range map[string][]byte{".commit.requested": nil, ".inflight": nil, ".commit": timeline.EncodeCommitJSON(meta)} {
		if err := os.WriteFile(filepath.Join(dir, ".hoodie", at+suffix), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// many measures what planning costs on a table of many files, and prints it beside the requests to the store.
func (b *bench) many(ctx context.Context) error {
	path := filepath.Join(b.cache, "bench", fmt.Sprintf("crowd-%d-%d-%d", manyFiles.files, manyFiles.partitions, manyFiles.instants))
	if err := manyFiles.make(ctx, path); err != nil {
		return err
	}
	fmt.Printf("\nplans of a table of %d files in %d partitions with %d instants\n", manyFiles.files, manyFiles.partitions, manyFiles.instants)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tseconds\tCPU seconds\tpeak memory\trequests\t")
	target := filepath.Join(b.out, "target")
	for _, c := range []struct {
		contender
		requests []string
	}{
		{contender{name: "table show", argv: []string{b.options.sluice, "table", "show", path, "-o", "json"}}, []string{b.self, "requests", path}},
		{contender{name: "export --dry-run, parquet", argv: b.plan(path, target, "parquet")}, b.plan(path, target, "parquet")},
		{contender{name: "export --dry-run, hudi", argv: b.plan(path, target, "hudi")}, b.plan(path, target, "hudi")},
	} {
		var best result
		for i := range b.repeat {
			if r := b.once(c.contender); i == 0 || r.err == nil && r.wall < best.wall {
				best = r
			}
		}
		if best.err != nil {
			return fmt.Errorf("%s: %w", c.name, best.err)
		}
		out, err := exec.CommandContext(ctx, c.requests[0], c.requests[1:]...).Output()
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		var said struct{ Requests int64 }
		if err := json.NewDecoder(bytes.NewReader(out)).Decode(&said); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%s\t%d\t\n", c.name, best.wall.Seconds(), best.cpu.Seconds(), size(best.peak), said.Requests)
	}
	return w.Flush()
}

func (b *bench) plan(path, target, format string) []string {
	return []string{b.options.sluice, "export", "-q", "--source-base-path", path, "--target-output-path", target, "--output-format", format, "--dry-run", "-o", "json"}
}

// requests prints how many requests it takes to know a table's newest snapshot, as "table show" does.
func requests(path string) error {
	ctx := context.Background()
	var c counting.Counter
	store, err := open.Store(ctx, path, open.Options{Count: &c})
	if err != nil {
		return err
	}
	t, err := hudi.Open(ctx, path, hudi.Options{Store: store})
	if err != nil {
		return err
	}
	if _, err := t.Source().Plan(ctx, read.Query{}); err != nil {
		return err
	}
	_, err = fmt.Println(`{"requests": ` + strconv.FormatInt(c.Stats().Requests(), 10) + `}`)
	return err
}
