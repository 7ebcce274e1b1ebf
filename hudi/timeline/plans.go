package timeline

import (
	"fmt"
	"strings"

	"github.com/sluicelake/sluice/storage"
)

// The records below carry the names of table format 2.5 in their json tags, for Avro as for JSON. Java puts absolute paths of
// the writer's machine into many of them. When they are read, every path to a file is cut to its last element, and every
// partition path is checked: nothing that a plan says can point outside the table (table format 11, trap 10). The encoders
// put the base path in front again.

// CompactionPlan lists what a compaction or log compaction is to do.
type CompactionPlan struct {
	Operations                 []CompactionOperation `json:"operations"`
	ExtraMetadata              map[string]string     `json:"extraMetadata"`
	Version                    int                   `json:"version"` // 2: file names are bare
	Strategy                   *Strategy             `json:"strategy"`
	PreserveMetadata           bool                  `json:"preserveHoodieMetadata"`
	MissingScheduledPartitions []string              `json:"missingSchedulePartitions"`
}

// CompactionOperation is one file slice to compact. File names are bare.
type CompactionOperation struct {
	BaseInstant   string             `json:"baseInstantTime"`
	LogFiles      []string           `json:"deltaFilePaths"`
	BaseFile      string             `json:"dataFilePath" null:"empty"` // empty for a slice of log files only
	FileID        string             `json:"fileId"`
	Partition     string             `json:"partitionPath"`
	Metrics       map[string]float64 `json:"metrics"`
	BootstrapFile string             `json:"bootstrapFilePath" null:"empty"`
}

// Strategy names the Java class that made a plan, and its parameters.
type Strategy struct {
	CompactorClass string            `json:"compactorClassName" null:"empty"`
	Class          string            `json:"strategyClassName" null:"empty"` // clustering
	Params         map[string]string `json:"strategyParams"`
	Version        int               `json:"version"`
}

// ReplacePlan is the requested body of a replace commit or clustering. For an insert overwrite everything is empty.
type ReplacePlan struct {
	OperationType string            `json:"operationType" null:"empty"`
	Clustering    *ClusteringPlan   `json:"clusteringPlan"`
	ExtraMetadata map[string]string `json:"extraMetadata"`
	Version       int               `json:"version"`
}

// ClusteringPlan lists the groups of file slices that are to be rewritten together.
type ClusteringPlan struct {
	Groups                     []ClusteringGroup `json:"inputGroups"`
	Strategy                   *Strategy         `json:"strategy"`
	ExtraMetadata              map[string]string `json:"extraMetadata"`
	Version                    int               `json:"version"`
	PreserveMetadata           *bool             `json:"preserveHoodieMetadata"`
	MissingScheduledPartitions []string          `json:"missingSchedulePartitions"`
}

// ClusteringGroup is rewritten into OutputGroups new file groups.
type ClusteringGroup struct {
	Slices        []SliceInfo        `json:"slices"`
	Metrics       map[string]float64 `json:"metrics"`
	OutputGroups  int                `json:"numOutputFileGroups"`
	ExtraMetadata map[string]string  `json:"extraMetadata"`
	Version       int                `json:"version"`
}

// SliceInfo is one file slice of a clustering group. File names are bare.
type SliceInfo struct {
	BaseFile      string   `json:"dataFilePath" null:"empty"`
	LogFiles      []string `json:"deltaFilePaths"`
	FileID        string   `json:"fileId"`
	Partition     string   `json:"partitionPath"`
	BootstrapFile string   `json:"bootstrapFilePath"`
	Version       int      `json:"version"`
}

// CleanerPlan lists files to delete, by partition. File names are bare.
type CleanerPlan struct {
	EarliestToRetain   *ActionInstant             `json:"earliestInstantToRetain"`
	LastCompleted      string                     `json:"lastCompletedCommitTimestamp"`
	Policy             string                     `json:"policy"`
	OldFiles           map[string][]string        `json:"filesToBeDeletedPerPartition"` // version 1
	Version            int                        `json:"version"`
	Files              map[string][]CleanFileInfo `json:"filePathsToBeDeletedPerPartition"`
	PartitionsToDelete []string                   `json:"partitionsToBeDeleted"`
	ExtraMetadata      map[string]string          `json:"extraMetadata"`
}

// ActionInstant names an instant by time, action and state.
type ActionInstant struct {
	Time   string `json:"timestamp"`
	Action string `json:"action"`
	State  string `json:"state"`
}

// CleanFileInfo is one file to delete.
type CleanFileInfo struct {
	File          string `json:"filePath"`
	BootstrapBase bool   `json:"isBootstrapBaseFile"`
}

// CleanMetadata says what a clean deleted.
type CleanMetadata struct {
	StartTime        string                    `json:"startCleanTime"`
	Millis           int64                     `json:"timeTakenInMillis"`
	FilesDeleted     int                       `json:"totalFilesDeleted"`
	EarliestToRetain string                    `json:"earliestCommitToRetain"`
	LastCompleted    string                    `json:"lastCompletedCommitTimestamp"`
	Partitions       map[string]CleanPartition `json:"partitionMetadata"`
	Version          int                       `json:"version"`
	Bootstrap        map[string]CleanPartition `json:"bootstrapPartitionMetadata"`
	ExtraMetadata    map[string]string         `json:"extraMetadata"`
}

// CleanPartition says what a clean deleted in one partition. File names are bare.
type CleanPartition struct {
	Partition string   `json:"partitionPath"`
	Policy    string   `json:"policy"`
	Patterns  []string `json:"deletePathPatterns"`
	Deleted   []string `json:"successDeleteFiles"`
	Failed    []string `json:"failedDeleteFiles"`
	Gone      *bool    `json:"isPartitionDeleted"`
}

// RollbackPlan lists what a rollback is to undo. File names are bare.
type RollbackPlan struct {
	Instant  *InstantInfo      `json:"instantToRollback"`
	Requests []RollbackRequest `json:"RollbackRequests"`
	Version  int               `json:"version"`
}

// InstantInfo names an instant by time and action.
type InstantInfo struct {
	Time   string `json:"commitTime"`
	Action string `json:"action"`
}

// RollbackRequest is one file group to roll back.
type RollbackRequest struct {
	Partition   string           `json:"partitionPath"`
	FileID      string           `json:"fileId"`
	BaseInstant string           `json:"latestBaseInstant"`
	Delete      []string         `json:"filesToBeDeleted"`
	LogBlocks   map[string]int64 `json:"logBlocksToBeDeleted"` // log file to its size; versions up to 6
}

// RollbackMetadata says what a rollback did.
type RollbackMetadata struct {
	StartTime    string                       `json:"startRollbackTime"`
	Millis       int64                        `json:"timeTakenInMillis"`
	FilesDeleted int                          `json:"totalFilesDeleted"`
	Commits      []string                     `json:"commitsRollback"`
	Partitions   map[string]RollbackPartition `json:"partitionMetadata"`
	Version      int                          `json:"version"`
	Instants     []InstantInfo                `json:"instantsRollback"`
}

// RollbackPartition says what a rollback did in one partition. File names are bare.
type RollbackPartition struct {
	Partition      string           `json:"partitionPath"`
	Deleted        []string         `json:"successDeleteFiles"`
	Failed         []string         `json:"failedDeleteFiles"`
	RollbackLogs   map[string]int64 `json:"rollbackLogFiles"` // file to its size
	FailedLogFiles map[string]int64 `json:"logFilesFromFailedCommit"`
}

// RestorePlan lists the instants that a restore is to roll back, newest first.
type RestorePlan struct {
	Instants  []InstantInfo `json:"instantsToRollback"`
	Version   int           `json:"version"`
	Savepoint string        `json:"savepointToRestoreTimestamp" null:"empty"`
}

// RestoreMetadata says what a restore did: the rollbacks by instant time.
type RestoreMetadata struct {
	StartTime string                        `json:"startRestoreTime"`
	Millis    int64                         `json:"timeTakenInMillis"`
	Instants  []string                      `json:"instantsToRollback"`
	Rollbacks map[string][]RollbackMetadata `json:"hoodieRestoreMetadata"`
	Version   int                           `json:"version"`
	Infos     []InstantInfo                 `json:"restoreInstantInfo"`
}

// SavepointMetadata names the files that a savepoint protects.
type SavepointMetadata struct {
	By         string                        `json:"savepointedBy"`
	At         int64                         `json:"savepointedAt"` // epoch milliseconds
	Comments   string                        `json:"comments"`
	Partitions map[string]SavepointPartition `json:"partitionMetadata"`
	Version    int                           `json:"version"`
}

// SavepointPartition names files of one partition, bare.
type SavepointPartition struct {
	Partition string   `json:"partitionPath"`
	Files     []string `json:"savepointDataFile"`
}

// IndexPlan is the requested body of an indexing action; IndexCommit, the completed one, adds the operation.
type IndexPlan struct {
	Version    int              `json:"version"`
	Partitions []IndexPartition `json:"indexPartitionInfos"`
}

// IndexCommit is the completed body of an indexing action.
type IndexCommit struct {
	Version       int              `json:"version"`
	OperationType string           `json:"operationType" null:"empty"`
	Partitions    []IndexPartition `json:"indexPartitionInfos"`
}

// IndexPartition is one partition of the metadata table and the instant up to which it was built.
type IndexPartition struct {
	Version       int               `json:"version"`
	Partition     string            `json:"metadataPartitionPath"`
	UpTo          string            `json:"indexUptoInstant"`
	ExtraMetadata map[string]string `json:"extraMetadata"`
}

// lastElement cuts a path or URL of another machine to its last element.
func lastElement(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// paths walks the file names and partition paths of a record, so that one place per record lists them: reading cuts and
// checks them, writing puts the base path in front.
type paths interface {
	// partition is called for a partition path; file for a file of the partition last given.
	walk(w *pathWalk)
}

type pathWalk struct {
	err  error
	base string // of the writer: files become base/partition/file; empty: files become bare names
}

func (w *pathWalk) partition(p string) {
	if p == "" || w.err != nil {
		return
	}
	if err := storage.CheckName(p); err != nil {
		w.err = fmt.Errorf("partition path: %w", err)
	}
}

func (w *pathWalk) file(partition string, name *string) {
	if *name == "" || w.err != nil {
		return
	}
	bare := lastElement(*name)
	if err := storage.CheckName(bare); err != nil {
		w.err = fmt.Errorf("file of partition %q: %w", partition, err)
		return
	}
	if *name = bare; w.base != "" {
		*name = storage.Join(storage.Join(w.base, partition), bare)
	}
}

func (w *pathWalk) files(partition string, names []string) {
	for i := range names {
		w.file(partition, &names[i])
	}
}

func (w *pathWalk) sizes(partition string, m map[string]int64) map[string]int64 {
	if m == nil {
		return nil
	}
	out := make(map[string]int64, len(m))
	for name, size := range m {
		w.file(partition, &name)
		out[name] = size
	}
	return out
}

func (p *CompactionPlan) walk(w *pathWalk) {
	for i := range p.Operations {
		o := &p.Operations[i]
		w.partition(o.Partition)
		w.file(o.Partition, &o.BaseFile)
		w.files(o.Partition, o.LogFiles)
	}
}

func (p *ReplacePlan) walk(w *pathWalk) {
	if p.Clustering == nil {
		return
	}
	for g := range p.Clustering.Groups {
		for i := range p.Clustering.Groups[g].Slices {
			s := &p.Clustering.Groups[g].Slices[i]
			w.partition(s.Partition)
			w.file(s.Partition, &s.BaseFile)
			w.files(s.Partition, s.LogFiles)
		}
	}
}

func (p *CleanerPlan) walk(w *pathWalk) {
	for partition, names := range p.OldFiles {
		w.partition(partition)
		w.files(partition, names)
	}
	for partition, files := range p.Files {
		w.partition(partition)
		for i := range files {
			w.file(partition, &files[i].File)
		}
	}
	for _, partition := range p.PartitionsToDelete {
		w.partition(partition)
	}
}

func (m *CleanMetadata) walk(w *pathWalk) {
	for _, parts := range []map[string]CleanPartition{m.Partitions, m.Bootstrap} {
		for partition, p := range parts {
			w.partition(partition)
			w.partition(p.Partition)
			w.files(partition, p.Patterns)
			w.files(partition, p.Deleted)
			w.files(partition, p.Failed)
		}
	}
}

func (p *RollbackPlan) walk(w *pathWalk) {
	for i := range p.Requests {
		r := &p.Requests[i]
		w.partition(r.Partition)
		w.files(r.Partition, r.Delete)
		r.LogBlocks = w.sizes(r.Partition, r.LogBlocks)
	}
}

func (m *RollbackMetadata) walk(w *pathWalk) {
	for partition, p := range m.Partitions {
		w.partition(partition)
		w.partition(p.Partition)
		w.files(partition, p.Deleted)
		w.files(partition, p.Failed)
		p.RollbackLogs = w.sizes(partition, p.RollbackLogs)
		p.FailedLogFiles = w.sizes(partition, p.FailedLogFiles)
		m.Partitions[partition] = p
	}
}

func (m *RestoreMetadata) walk(w *pathWalk) {
	for _, rollbacks := range m.Rollbacks {
		for i := range rollbacks {
			rollbacks[i].walk(w)
		}
	}
}

func (m *SavepointMetadata) walk(w *pathWalk) {
	for partition, p := range m.Partitions {
		w.partition(partition)
		w.partition(p.Partition)
		w.files(partition, p.Files)
	}
}

func (p *IndexPlan) walk(w *pathWalk) {
	for _, i := range p.Partitions {
		w.partition(i.Partition)
	}
}

func (p *IndexCommit) walk(w *pathWalk) {
	for _, i := range p.Partitions {
		w.partition(i.Partition)
	}
}

func (p *RestorePlan) walk(*pathWalk) {}
