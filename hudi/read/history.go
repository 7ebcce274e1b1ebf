package read

import (
	"context"

	"github.com/sluicelake/sluice/hudi/schema"
	"github.com/sluicelake/sluice/hudi/timeline"
)

// schemaHistory is what schema-on-read needs: the version of the internal schema that each file was written with, and the
// one that a query asks for. Columns keep their field ids when they are renamed, so a file's columns are found by id.
type schemaHistory struct {
	versions schema.InternalHistory
	query    *schema.Internal
}

// loadHistory gives the schema history of a table, or nil where no commit up to the instant carries an internal schema.
func loadHistory(ctx context.Context, src *Source, at string) (*schemaHistory, error) {
	query, versions, err := timeline.InternalSchema(ctx, src.Store, src.Timeline, at)
	if err != nil || query == nil {
		return nil, err
	}
	return &schemaHistory{versions: versions, query: query}, nil
}

// table gives the record of the query's version under the name of the table's record.
func (h *schemaHistory) table(fallback *schema.Type) (*schema.Type, error) {
	return h.query.Record(fallback.Name)
}

// names maps the query's column paths to those of a file that was written at an instant; nil means by name.
func (h *schemaHistory) names(instant string) map[string]string {
	if h == nil {
		return nil
	}
	file := h.versions.At(instant)
	if file == nil {
		return nil
	}
	return schema.FileNames(file, h.query)
}
