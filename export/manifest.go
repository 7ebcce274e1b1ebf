package export

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/open"
)

// ManifestName is the object of a target that holds its manifest, where Config.Manifest is InTarget.
const ManifestName = "_manifest.json"

// InTarget asks for the manifest inside the target.
const InTarget = "target"

// Manifest says what an export wrote. It is there before _SUCCESS is.
type Manifest struct {
	Source    string            `json:"source"`
	Table     string            `json:"table"`
	Target    string            `json:"target"`
	Format    Format            `json:"format"`
	Instant   string            `json:"instant"` // that the rows are of
	Begin     string            `json:"begin,omitempty"`
	End       string            `json:"end,omitempty"`
	Arguments map[string]string `json:"arguments"`
	Written   time.Time         `json:"written"`
	Verified  bool              `json:"verified"` // read again after they were written
	Rows      int64             `json:"rows"`     // 0 for a copy of the table's own files, which are not counted
	Bytes     int64             `json:"bytes"`
	Files     []ManifestFile    `json:"files"` // in order of names; neither _SUCCESS nor the manifest is among them
}

// ManifestFile is a file of the target.
type ManifestFile struct {
	Path  string `json:"path"` // below the target
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
}

func (j *job) manifest(names map[string]wrote) Manifest {
	m := Manifest{
		Source: j.source.URL(), Table: j.snap.Source().Config.Name, Target: j.target.URL(), Format: j.cfg.Format, Instant: j.plan.Instant,
		Begin: j.cfg.Begin, End: j.end, Arguments: j.arguments, Written: time.Now().UTC().Truncate(time.Millisecond), Verified: j.cfg.Verify,
		Files: make([]ManifestFile, 0, len(names)),
	}
	for _, f := range names {
		m.Files = append(m.Files, ManifestFile{Path: f.Name, Rows: f.Rows, Bytes: f.Size})
		m.Rows += f.Rows
		m.Bytes += f.Size
	}
	slices.SortFunc(m.Files, func(a, b ManifestFile) int { return strings.Compare(a.Path, b.Path) })
	return m
}

// writeManifest puts the manifest where it was asked for.
func (j *job) writeManifest(ctx context.Context, names map[string]wrote) error {
	if j.cfg.Manifest == "" {
		return nil
	}
	text, err := json.MarshalIndent(j.manifest(names), "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if j.cfg.Manifest == InTarget {
		return putBytes(ctx, j.target, ManifestName, text)
	}
	folder, name, err := open.Split(j.cfg.Manifest)
	if err != nil {
		return err
	}
	var store storage.Store
	if store, err = j.cfg.Open(ctx, folder); err != nil {
		return err
	}
	return putBytes(ctx, store, name, text)
}
