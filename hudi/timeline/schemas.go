package timeline

import (
	"fmt"
	"strings"

	"github.com/sluicelake/sluice/hudi/schema"
)

// avroRecords are the records of table format 2.5 in the order of their fields. "?T" is a union with null first and null as
// default, "!T" the same without a default, "v" an int or null with 1 as default (v2: with 2). A field behind "+" is of 1.x
// only. A schema is complete when it is written: records stand inside the fields that use them first.
const avroRecords = `
HoodieCommitMetadata: partitionToWriteStats ?map<array<HoodieWriteStat>>; +compacted ?boolean; extraMetadata ?map<string>; version v; operationType ?string
HoodieReplaceCommitMetadata: partitionToWriteStats ?map<array<HoodieWriteStat>>; +compacted ?boolean; extraMetadata ?map<string>; version v; operationType ?string; partitionToReplaceFileIds ?map<array<string>>
HoodieWriteStat: fileId ?string; path ?string; prevCommit ?string; numWrites ?long; numDeletes ?long; numUpdateWrites ?long; totalWriteBytes ?long; totalWriteErrors ?long; partitionPath ?string; totalLogRecords ?long; totalLogFiles ?long; totalUpdatedRecordsCompacted ?long; numInserts ?long; totalLogBlocks ?long; totalCorruptLogBlock ?long; totalRollbackBlocks ?long; fileSizeInBytes ?long; +logVersion ?int; +logOffset ?long; +baseFile ?string; +logFiles ?array<string>; +cdcStats ?map<long>; +prevBaseFile ?string; +minEventTime ?long; +maxEventTime ?long; +runtimeStats ?HoodieRuntimeStats; +totalLogFilesCompacted ?long; +totalLogReadTimeMs ?long; +totalLogSizeCompacted ?long; +tempPath ?string; +numUpdates ?long
HoodieRuntimeStats: totalScanTime ?long; totalCreateTime ?long; totalUpsertTime ?long
HoodieCompactionPlan: operations ?array<HoodieCompactionOperation>; extraMetadata ?map<string>; version v; strategy ?HoodieCompactionStrategy; preserveHoodieMetadata boolean?=false; +missingSchedulePartitions ?array<string>
HoodieCompactionOperation: baseInstantTime !string; deltaFilePaths ?array<string>; dataFilePath ?string; fileId !string; partitionPath ?string; metrics ?map<double>; bootstrapFilePath ?string
HoodieCompactionStrategy: compactorClassName ?string; strategyParams ?map<string>; version v
HoodieRequestedReplaceMetadata: operationType ?string; clusteringPlan ?HoodieClusteringPlan; extraMetadata ?map<string>; version v
HoodieClusteringPlan: inputGroups ?array<HoodieClusteringGroup>; strategy ?HoodieClusteringStrategy; extraMetadata ?map<string>; version v; preserveHoodieMetadata ?boolean; +missingSchedulePartitions ?array<string>
HoodieClusteringGroup: slices ?array<HoodieSliceInfo>; metrics ?map<double>; numOutputFileGroups v; extraMetadata ?map<string>; version v
HoodieSliceInfo: dataFilePath ?string; deltaFilePaths ?array<string>; fileId !string; partitionPath ?string; bootstrapFilePath ?string; version v
HoodieClusteringStrategy: strategyClassName ?string; strategyParams ?map<string>; version v
HoodieCleanerPlan: earliestInstantToRetain ?HoodieActionInstant; lastCompletedCommitTimestamp string=""; policy string; filesToBeDeletedPerPartition ?map<array<string>>; version v; filePathsToBeDeletedPerPartition ?map<array<HoodieCleanFileInfo>>; partitionsToBeDeleted ?array<string>; extraMetadata ?map<string>
HoodieActionInstant: timestamp string; action string; state string
HoodieCleanFileInfo: filePath ?string; isBootstrapBaseFile ?boolean
HoodieCleanMetadata: startCleanTime string; timeTakenInMillis long; totalFilesDeleted int; earliestCommitToRetain string; lastCompletedCommitTimestamp string=""; partitionMetadata map<HoodieCleanPartitionMetadata>; version v; bootstrapPartitionMetadata ?map<HoodieCleanPartitionMetadata>; extraMetadata ?map<string>
HoodieCleanPartitionMetadata: partitionPath string; policy string; deletePathPatterns array<string>; successDeleteFiles array<string>; failedDeleteFiles array<string>; isPartitionDeleted ?boolean
HoodieRollbackPlan: instantToRollback ?HoodieInstantInfo; RollbackRequests ?array<HoodieRollbackRequest>; version v
HoodieInstantInfo: commitTime string; action string
HoodieRollbackRequest: partitionPath string; fileId ?string; latestBaseInstant ?string; filesToBeDeleted array<string>=[]; logBlocksToBeDeleted ?map<long>
HoodieRollbackMetadata: startRollbackTime string; timeTakenInMillis long; totalFilesDeleted int; commitsRollback array<string>; partitionMetadata map<HoodieRollbackPartitionMetadata>; version v; instantsRollback array<HoodieInstantInfo>=[]
HoodieRollbackPartitionMetadata: partitionPath string; successDeleteFiles array<string>; failedDeleteFiles array<string>; rollbackLogFiles ?map<long>; logFilesFromFailedCommit ?map<long>
HoodieSavepointMetadata: savepointedBy string; savepointedAt long; comments string; partitionMetadata map<HoodieSavepointPartitionMetadata>; version v
HoodieSavepointPartitionMetadata: partitionPath string; savepointDataFile array<string>
HoodieRestorePlan: instantsToRollback array<HoodieInstantInfo>=[]; version v2; savepointToRestoreTimestamp ?string
HoodieRestoreMetadata: startRestoreTime string; timeTakenInMillis long; instantsToRollback array<string>; hoodieRestoreMetadata map<array<|HoodieRollbackMetadata>>; version v; restoreInstantInfo array<HoodieInstantInfo>=[]
HoodieIndexPlan: version v; indexPartitionInfos ?array<HoodieIndexPartitionInfo>
HoodieIndexCommitMetadata: version v; operationType ?string; indexPartitionInfos ?array<HoodieIndexPartitionInfo>
HoodieIndexPartitionInfo: version v; metadataPartitionPath ?string; indexUptoInstant ?string; +extraMetadata ?map<string>
`

const javaText = `{"type":"string","avro.java.string":"String"}`

// avroSchema is the JSON of a record's schema as Java writes it into the header of a file, and the schema parsed.
func avroSchema(name string, layout int) (string, *schema.Type, error) {
	w := schemaWriter{layout: layout, done: map[string]bool{}}
	w.record(name, true)
	if w.err != nil {
		return "", nil, w.err
	}
	t, err := schema.ParseString(w.out.String())
	return w.out.String(), t, err
}

type schemaWriter struct {
	layout int
	out    strings.Builder
	done   map[string]bool
	err    error
}

func (w *schemaWriter) record(name string, outermost bool) {
	if w.done[name] {
		w.out.WriteString(`"` + name + `"`)
		return
	}
	w.done[name] = true
	_, rest, ok := strings.Cut(avroRecords, "\n"+name+": ")
	if !ok {
		w.err = fmt.Errorf("no record %s", name)
		return
	}
	line, _, _ := strings.Cut(rest, "\n")
	w.out.WriteString(`{"type":"record","name":"` + name + `",`)
	if outermost {
		w.out.WriteString(`"namespace":"org.apache.hudi.avro.model",`)
	}
	w.out.WriteString(`"fields":[`)
	first := true
	for field := range strings.SplitSeq(line, "; ") {
		field, newer := strings.CutPrefix(field, "+")
		if newer && w.layout == 1 {
			continue
		}
		if !first {
			w.out.WriteByte(',')
		}
		first = false
		fieldName, kind, _ := strings.Cut(field, " ")
		w.out.WriteString(`{"name":"` + fieldName + `","type":`)
		w.field(kind)
		w.out.WriteByte('}')
	}
	w.out.WriteString(`]}`)
}

// field writes a type and its default.
func (w *schemaWriter) field(kind string) {
	kind, fallback, hasDefault := strings.Cut(kind, "=")
	switch {
	case kind == "v":
		w.out.WriteString(`["int","null"],"default":1`)
	case kind == "v2":
		w.out.WriteString(`["int","null"],"default":2`)
	case kind == "boolean?":
		w.out.WriteString(`["boolean","null"],"default":` + fallback)
	case kind[0] == '?':
		w.nullable(kind[1:])
		w.out.WriteString(`,"default":null`)
	case kind[0] == '!':
		w.nullable(kind[1:])
	default:
		w.kind(kind)
		if hasDefault {
			w.out.WriteString(`,"default":` + fallback)
		}
	}
}

func (w *schemaWriter) nullable(kind string) {
	w.out.WriteString(`["null",`)
	w.kind(kind)
	w.out.WriteByte(']')
}

func (w *schemaWriter) kind(kind string) {
	inner := func(of string) string { return kind[len(of) : len(kind)-1] }
	switch {
	case kind == "string":
		w.out.WriteString(javaText)
	case kind == "int" || kind == "long" || kind == "boolean" || kind == "double":
		w.out.WriteString(`"` + kind + `"`)
	case kind[0] == '|':
		w.nullable(kind[1:])
	case strings.HasPrefix(kind, "array<"):
		w.out.WriteString(`{"type":"array","items":`)
		w.kind(inner("array<"))
		w.out.WriteByte('}')
	case strings.HasPrefix(kind, "map<"):
		w.out.WriteString(`{"type":"map","values":`)
		w.kind(inner("map<"))
		w.out.WriteString(`,"avro.java.string":"String"}`)
	default:
		w.record(kind, false)
	}
}
