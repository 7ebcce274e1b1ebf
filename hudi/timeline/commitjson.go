package timeline

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// isLogAppend reports whether the stat describes an append to a log file, which has five fields more.
func (s WriteStat) isLogAppend() bool {
	name := path.Base(s.Path)
	return s.LogVersion > 0 || s.LogFiles != nil || strings.HasPrefix(name, ".") && strings.Contains(name, ".log.")
}

// isNull names the fields of a stat that are null in Avro (seen in tables of 1.0.2 and 1.2.0).
func (s WriteStat) isNull(field string) bool {
	switch field {
	case "path", "partitionPath": // a workload profile has neither; a non-partitioned table has an empty partition path
		return s.Path == ""
	case "logVersion", "logOffset", "baseFile", "logFiles": // an upgrade from version 6 loses them
		return s.LogVersion == 0 && s.LogFiles == nil
	case "prevCommit":
		return s.PrevCommit == ""
	case "prevBaseFile":
		return s.PrevBaseFile == ""
	case "tempPath":
		return s.TempPath == ""
	}
	return false
}

// isNull: Java leaves the version null.
func (m CommitMetadata) isNull(field string) bool {
	return field == "version" || field == "operationType" && m.OperationType == ""
}

// EncodeCommitJSON writes a commit as Apache Hudi 0.15 does: order of fields, indentation, nulls, and the order of map
// entries of a java.util.HashMap (table format 2.4).
func EncodeCommitJSON(m *CommitMetadata) []byte {
	var w jsonWriter
	w.open('{')
	w.key("partitionToWriteStats")
	w.open('{')
	for _, partition := range javaMapOrder(slices.Collect(maps.Keys(m.PartitionToWriteStats))) {
		w.key(partition)
		w.list(len(m.PartitionToWriteStats[partition]), func(i int) { w.stat(&m.PartitionToWriteStats[partition][i]) })
	}
	w.close('}')
	w.key("compacted")
	w.raw(strconv.FormatBool(m.Compacted))
	w.key("extraMetadata")
	w.open('{')
	for _, k := range javaMapOrder(slices.Collect(maps.Keys(m.ExtraMetadata))) {
		w.key(k)
		w.text(m.ExtraMetadata[k])
	}
	w.close('}')
	w.key("operationType")
	w.textOrNull(m.OperationType)
	if m.PartitionToReplaceFileIDs != nil {
		w.key("partitionToReplaceFileIds")
		w.open('{')
		for _, partition := range javaMapOrder(slices.Collect(maps.Keys(m.PartitionToReplaceFileIDs))) {
			ids := m.PartitionToReplaceFileIDs[partition]
			w.key(partition)
			w.list(len(ids), func(i int) { w.text(ids[i]) })
		}
		w.close('}')
	}
	w.close('}')
	return w.out
}

func (w *jsonWriter) stat(s *WriteStat) {
	number := func(key string, n int64) { w.key(key); w.raw(strconv.FormatInt(n, 10)) }
	optional := func(key string, n *int64) {
		if n == nil {
			w.key(key)
			w.raw("null")
			return
		}
		number(key, *n)
	}
	w.open('{')
	w.key("fileId")
	w.text(s.FileID)
	w.key("path")
	w.textOrNull(s.Path)
	w.key("cdcStats")
	w.sizes(s.CDCStats)
	w.key("prevCommit")
	w.textOrNull(s.PrevCommit)
	number("numWrites", s.NumWrites)
	number("numDeletes", s.NumDeletes)
	number("numUpdateWrites", s.NumUpdateWrites)
	number("numInserts", s.NumInserts)
	number("totalWriteBytes", s.TotalWriteBytes)
	number("totalWriteErrors", s.TotalWriteErrors)
	w.key("tempPath")
	w.textOrNull(s.TempPath)
	w.key("partitionPath")
	if s.Path == "" { // a workload profile
		w.textOrNull(s.PartitionPath)
	} else {
		w.text(s.PartitionPath)
	}
	number("totalLogRecords", s.TotalLogRecords)
	number("totalLogFilesCompacted", s.TotalLogFilesCompacted)
	number("totalLogSizeCompacted", s.TotalLogSizeCompacted)
	number("totalUpdatedRecordsCompacted", s.TotalUpdatedRecordsCompacted)
	number("totalLogBlocks", s.TotalLogBlocks)
	number("totalCorruptLogBlock", s.TotalCorruptLogBlock)
	number("totalRollbackBlocks", s.TotalRollbackBlocks)
	number("fileSizeInBytes", s.FileSizeInBytes)
	optional("minEventTime", s.MinEventTime)
	optional("maxEventTime", s.MaxEventTime)
	w.key("runtimeStats")
	if r := s.RuntimeStats; r == nil {
		w.raw("null")
	} else {
		w.open('{')
		number("totalScanTime", r.TotalScanTime)
		number("totalUpsertTime", r.TotalUpsertTime)
		number("totalCreateTime", r.TotalCreateTime)
		w.close('}')
	}
	if s.isLogAppend() {
		number("logVersion", int64(s.LogVersion))
		number("logOffset", s.LogOffset)
		w.key("baseFile")
		w.text(s.BaseFile)
		w.key("logFiles")
		w.list(len(s.LogFiles), func(i int) { w.text(s.LogFiles[i]) })
		w.key("recordsStats")
		w.open('{')
		w.key("val")
		w.raw("null")
		w.close('}')
	}
	w.close('}')
}

func (w *jsonWriter) sizes(m map[string]int64) {
	if m == nil {
		w.raw("null")
		return
	}
	w.open('{')
	for _, k := range javaMapOrder(slices.Collect(maps.Keys(m))) {
		w.key(k)
		w.raw(strconv.FormatInt(m[k], 10))
	}
	w.close('}')
}

// jsonWriter lays JSON out as Jackson's default pretty printer does: objects one field a line, arrays on one line.
type jsonWriter struct {
	out    []byte
	indent int
	first  bool
}

func (w *jsonWriter) raw(s string) { w.out = append(w.out, s...) }

func (w *jsonWriter) open(c byte) {
	w.out = append(w.out, c)
	w.indent++
	w.first = true
}

func (w *jsonWriter) close(c byte) {
	w.indent--
	if w.first {
		w.out = append(w.out, ' ', c)
	} else {
		w.line()
		w.out = append(w.out, c)
	}
	w.first = false
}

func (w *jsonWriter) line() {
	w.out = append(w.out, '\n')
	for range w.indent {
		w.out = append(w.out, ' ', ' ')
	}
}

func (w *jsonWriter) key(k string) {
	if !w.first {
		w.out = append(w.out, ',')
	}
	w.first = false
	w.line()
	w.text(k)
	w.raw(" : ")
}

func (w *jsonWriter) list(n int, item func(int)) {
	w.raw("[ ")
	for i := range n {
		if i > 0 {
			w.raw(", ")
		}
		item(i)
	}
	if n == 0 {
		w.out = append(w.out, ']')
		return
	}
	w.raw(" ]")
}

func (w *jsonWriter) textOrNull(s string) {
	if s == "" {
		w.raw("null")
		return
	}
	w.text(s)
}

// text escapes what Jackson escapes: quotes, backslashes and control characters.
func (w *jsonWriter) text(s string) {
	const hex = "0123456789ABCDEF"
	w.out = append(w.out, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			w.out = append(w.out, '\\', c)
		case c >= 0x20:
			w.out = append(w.out, c)
		default:
			if at := strings.IndexByte("\b\t\n\f\r", c); at >= 0 {
				w.out = append(w.out, '\\', "btnfr"[at])
			} else {
				w.out = append(w.out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
		}
	}
	w.out = append(w.out, '"')
}
