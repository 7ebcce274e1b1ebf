package write

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicelake/sluice/hudi/filegroup"
	"github.com/sluicelake/sluice/hudi/keygen"
	"github.com/sluicelake/sluice/hudi/write/marker"
	"github.com/sluicelake/sluice/storage"
)

// partitionMarker is the file that makes a folder a partition (table format 3).
const partitionMarker = ".hoodie_partition_metadata"

// Files announces the data files of one instant. Tasks that run elsewhere make their own with NewFiles: two attempts of one
// task never share a name. Safe for use by several goroutines.
type Files struct {
	store   storage.Store
	instant string
	stage   uint32 // random: attempts in other processes have another
	next    atomic.Uint32

	mu   sync.Mutex
	made map[string]bool // partitions whose marker is there
}

// DataFile is the place of a data file that was announced.
type DataFile struct {
	filegroup.BaseName
	Partition string
	Path      string // below the table: where the data goes
}

// NewFiles makes the names of an instant's data files in this process.
func NewFiles(store storage.Store, instant string) *Files {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return &Files{store: store, instant: instant, stage: binary.LittleEndian.Uint32(b[:]) >> 1, made: map[string]bool{}}
}

// Instant of the files.
func (f *Files) Instant() string { return f.instant }

// New announces a base file: its marker is put, and its folder is a partition from now on. The caller puts the data at Path,
// and names the file in the stats of the commit; a file that no stat names is deleted at the commit. ext has its dot.
//
// Partition paths that would leave the table, and file ids that would not read back, are refused.
func (f *Files) New(ctx context.Context, partition, fileID, ext string, kind marker.Kind) (DataFile, error) {
	name := filegroup.BaseName{FileID: fileID, Token: fmt.Sprintf("%d-%d-0", f.next.Add(1)-1, f.stage), Instant: f.instant, Ext: ext}
	out := DataFile{BaseName: name, Partition: partition, Path: storage.Join(partition, name.String())}
	if back, ok := filegroup.ParseBaseName(name.String()); !ok || back != name {
		return out, fmt.Errorf("%q is no id of a file group", fileID)
	}
	if partition != "" {
		if err := keygen.CheckPath(partition); err != nil {
			return out, err
		}
	}
	if err := storage.CheckName(out.Path); err != nil {
		return out, err
	}
	if err := marker.Put(ctx, f.store, f.instant, marker.Marker{Path: out.Path, Kind: kind}); err != nil {
		return out, err
	}
	return out, f.markPartition(ctx, partition)
}

// markPartition makes a folder a partition where it is none.
func (f *Files) markPartition(ctx context.Context, partition string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.made[partition] {
		return nil
	}
	depth := 0
	if partition != "" {
		depth = strings.Count(partition, "/") + 1
	}
	body := fmt.Appendf(nil, "#partition metadata\n#%s\ncommitTime=%s\npartitionDepth=%d\n",
		time.Now().UTC().Format("Mon Jan 02 15:04:05 MST 2006"), f.instant, depth)
	opts := storage.PutOptions{IfAbsent: true, Size: int64(len(body))}
	_, err := f.store.Put(ctx, storage.Join(partition, partitionMarker), bytes.NewReader(body), opts)
	if err != nil && !errors.Is(err, storage.ErrExist) {
		return fmt.Errorf("make partition %q: %w", partition, err)
	}
	f.made[partition] = true
	return nil
}

// NewFileID is the id of a new file group: a random UUID and the number of the file in its task.
func NewFileID(number int) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x-%d", b[:4], b[4:6], b[6:8], b[8:10], b[10:], number)
}
