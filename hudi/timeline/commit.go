package timeline

// CommitMetadata is what a completed commit, delta commit or replace commit says of itself (table format 2.4). Both
// bodies, JSON of layout 1 and Avro of layout 2, decode to it.
type CommitMetadata struct {
	PartitionToWriteStats     map[string][]WriteStat `json:"partitionToWriteStats"`
	Compacted                 bool                   `json:"compacted"`
	ExtraMetadata             map[string]string      `json:"extraMetadata"`
	OperationType             string                 `json:"operationType"`
	PartitionToReplaceFileIDs map[string][]string    `json:"partitionToReplaceFileIds,omitempty"`
}

// Schema is the Avro schema of the table at this commit, without meta columns; empty when the commit carries none.
func (m *CommitMetadata) Schema() string { return m.ExtraMetadata["schema"] }

// WriteStat describes one file that a commit wrote. Paths are relative to the table's base path.
type WriteStat struct {
	FileID     string           `json:"fileId"`
	Path       string           `json:"path"`
	CDCStats   map[string]int64 `json:"cdcStats"`
	PrevCommit string           `json:"prevCommit"`

	NumWrites        int64 `json:"numWrites"`
	NumDeletes       int64 `json:"numDeletes"`
	NumUpdateWrites  int64 `json:"numUpdateWrites"`
	NumInserts       int64 `json:"numInserts"`
	TotalWriteBytes  int64 `json:"totalWriteBytes"`
	TotalWriteErrors int64 `json:"totalWriteErrors"`

	TempPath      string `json:"tempPath"`
	PartitionPath string `json:"partitionPath"`

	TotalLogRecords              int64 `json:"totalLogRecords"`
	TotalLogFilesCompacted       int64 `json:"totalLogFilesCompacted"`
	TotalLogSizeCompacted        int64 `json:"totalLogSizeCompacted"`
	TotalUpdatedRecordsCompacted int64 `json:"totalUpdatedRecordsCompacted"`
	TotalLogBlocks               int64 `json:"totalLogBlocks"`
	TotalCorruptLogBlock         int64 `json:"totalCorruptLogBlock"`
	TotalRollbackBlocks          int64 `json:"totalRollbackBlocks"`
	TotalLogReadTimeMs           int64 `json:"totalLogReadTimeMs,omitempty"` // 1.x
	NumUpdates                   int64 `json:"numUpdates,omitempty"`         // 1.x

	FileSizeInBytes int64         `json:"fileSizeInBytes"`
	MinEventTime    *int64        `json:"minEventTime"`
	MaxEventTime    *int64        `json:"maxEventTime"`
	RuntimeStats    *RuntimeStats `json:"runtimeStats"`

	// Log appends only.
	LogVersion   int      `json:"logVersion,omitempty"`
	LogOffset    int64    `json:"logOffset,omitempty"`
	BaseFile     string   `json:"baseFile,omitempty"`
	LogFiles     []string `json:"logFiles,omitempty"`
	PrevBaseFile string   `json:"prevBaseFile,omitempty"`
}

// RuntimeStats are durations in milliseconds.
type RuntimeStats struct {
	TotalScanTime   int64 `json:"totalScanTime"`
	TotalUpsertTime int64 `json:"totalUpsertTime"`
	TotalCreateTime int64 `json:"totalCreateTime"`
}
