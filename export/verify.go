package export

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/sluicelake/sluice/engine"
	"github.com/sluicelake/sluice/hudi/basefile"
	"github.com/sluicelake/sluice/orc"
	"github.com/sluicelake/sluice/storage"
)

// ErrVerify: a file of the target is not what was written.
var ErrVerify = errors.New("the export does not verify")

const taskVerify = "export.verify"

// verifyFiles are the files of one task of verification.
const verifyFiles = 64

// verify reads again what was written: sizes, footers and row counts of Parquet and ORC files, every line of JSON and record
// of CSV, and for a copy the sizes of the source.
func (j *job) verify(ctx context.Context, pool engine.Engine, names map[string]wrote) error {
	all := make([]wrote, 0, len(names))
	for _, f := range names {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b wrote) int { return strings.Compare(a.Name, b.Name) })
	var tasks []engine.Task
	for pack := range slices.Chunk(all, verifyFiles) {
		spec, err := json.Marshal(pack)
		if err != nil {
			return err
		}
		tasks = append(tasks, engine.Task{ID: fmt.Sprintf("verify-%05d", len(tasks)), Kind: taskVerify, Spec: spec})
	}
	return pool.Run(ctx, tasks, func(engine.Result) error { return nil })
}

func (j *job) verifyTask(ctx context.Context, task engine.Task, _ engine.Scope) (json.RawMessage, engine.Stats, error) {
	var stats engine.Stats
	var pack []wrote
	if err := json.Unmarshal(task.Spec, &pack); err != nil {
		return nil, stats, err
	}
	for _, f := range pack {
		if err := j.verifyFile(ctx, f); err != nil {
			return nil, stats, fmt.Errorf("%w: %s: %w", ErrVerify, storage.Join(j.target.URL(), f.Name), err)
		}
		stats.Files++
	}
	return json.RawMessage("{}"), stats, nil
}

func (j *job) verifyFile(ctx context.Context, f wrote) error {
	info, err := j.target.Stat(ctx, f.Name)
	if err != nil {
		return err
	}
	if info.Size != f.Size {
		return fmt.Errorf("%d bytes, %d were written", info.Size, f.Size)
	}
	if j.cfg.Format == Hudi {
		return j.verifyCopy(ctx, f)
	}
	rows, err := j.countRows(ctx, f)
	if err == nil && rows != f.Rows {
		err = fmt.Errorf("%d rows, %d were written", rows, f.Rows)
	}
	return err
}

// verifyCopy compares with the source, and opens data files.
func (j *job) verifyCopy(ctx context.Context, f wrote) error {
	if !strings.HasPrefix(f.Name, ".hoodie/") { // the timeline may move on, data files never change
		info, err := j.source.Stat(ctx, f.Name)
		if err != nil && !errors.Is(err, storage.ErrNotExist) { // it may have been cleaned since
			return err
		}
		if err == nil && info.Size != f.Size {
			return fmt.Errorf("%d bytes, the source has %d", f.Size, info.Size)
		}
	}
	if !strings.HasSuffix(f.Name, ".parquet") || strings.HasPrefix(path.Base(f.Name), ".") {
		return nil
	}
	file, err := basefile.Open(ctx, j.target, f.Name, basefile.Options{})
	if err != nil {
		return err
	}
	return file.Close()
}

// countRows counts the rows of a file of the target.
func (j *job) countRows(ctx context.Context, f wrote) (rows int64, err error) {
	if j.cfg.Format == Parquet {
		file, err := basefile.Open(ctx, j.target, f.Name, basefile.Options{})
		if err != nil {
			return 0, err
		}
		return file.Rows(), file.Close()
	}
	obj, err := j.target.Open(ctx, f.Name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, obj.Close()) }()
	at := storage.ReaderAt(ctx, obj)
	if j.cfg.Format == ORC {
		r, err := orc.NewReader(at, obj.Size(), orc.ReaderOptions{})
		if err != nil {
			return 0, err
		}
		return r.Rows(), nil
	}
	text, err := j.plainText(io.NewSectionReader(at, 0, obj.Size()))
	if err != nil {
		return 0, err
	}
	lines, err := countLines(text, j.cfg.Format == CSV)
	if j.cfg.Format == CSV {
		lines-- // the header
	}
	return lines, err
}

func (j *job) plainText(r io.Reader) (io.Reader, error) {
	switch j.cfg.Compression {
	case "gzip":
		return gzip.NewReader(r)
	case "zstd":
		z, err := zstd.NewReader(r)
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return r, nil
}

// countLines counts line ends, those outside of double quotes alone where quotes count.
func countLines(r io.Reader, quotes bool) (lines int64, err error) {
	b := bufio.NewReaderSize(r, 256<<10)
	inside := false
	for {
		c, err := b.ReadByte()
		switch {
		case errors.Is(err, io.EOF) && inside:
			return lines, errors.New("it ends inside a quoted text")
		case errors.Is(err, io.EOF):
			return lines, nil
		case err != nil:
			return lines, err
		case c == '"' && quotes:
			inside = !inside
		case c == '\n' && !inside:
			lines++
		}
	}
}
