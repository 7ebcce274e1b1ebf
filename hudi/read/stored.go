package read

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/sluicelake/sluice/hudi/filegroup"
)

// Stored says what the base file of a slice must hold for a scan of the slice to be the file's own columns, row for row.
type Stored struct {
	// Columns of the scan, to be found in the file by name, with these types.
	Columns *arrow.Schema
	// Constants are columns whose values the scan takes from the partition path: the file must hold the same.
	Constants map[string]scalar.Scalar
}

// Stored tells for a slice whether its rows are those of its base file, untouched; where they are not, reason says why.
func (r *Reader) Stored(sl filegroup.Slice) (st Stored, reason string) {
	s := r.s
	switch {
	case sl.Base == nil || len(sl.Logs) > 0:
		return st, "log files are merged"
	case !strings.HasSuffix(sl.Base.Name, ".parquet"):
		return st, "no Parquet file"
	case s.plan.rows != nil:
		return st, "rows of a range of instants are picked"
	case s.filter != nil:
		return st, "rows are filtered"
	case s.renames(sl.Base.Instant):
		return st, "columns were renamed or made again under schema-on-read"
	}
	st.Columns = s.output
	values := s.plan.path.values(sl.Partition)
	for _, f := range s.output.Fields() {
		if v := values[f.Name]; v != nil {
			if st.Constants == nil {
				st.Constants = map[string]scalar.Scalar{}
			}
			st.Constants[f.Name] = v
		}
	}
	return st, ""
}

// renames reports whether a wanted column, or something in it, has another name in files of an instant, or is not in them.
func (s *scan) renames(instant string) bool {
	for path, name := range s.plan.history.names(instant) {
		root, _, _ := strings.Cut(path, ".")
		if name != path && len(s.output.FieldIndices(root)) > 0 {
			return true
		}
	}
	return false
}
