package config

import (
	"errors"
	"fmt"
)

var (
	// ErrUnsupported is what a table that Sluice must not touch fails with: a table version, layout, format or property that
	// it does not know well enough to be right about. The command line exits with 4.
	ErrUnsupported = errors.New("unsupported table")
	// ErrNotTable: there is no Hudi table at the path.
	ErrNotTable = errors.New("not a Hudi table")
	// ErrInvalid: hoodie.properties is there and can't be used.
	ErrInvalid = errors.New("invalid hoodie.properties")
)

// UnsupportedError says which property of which table is refused, and what to do.
type UnsupportedError struct {
	Table    string // the table's base path
	Property string // a hoodie.* key
	Value    string // empty when the key is absent
	Hint     string // what a person can do
}

func (e *UnsupportedError) Error() string {
	value := e.Value
	if value == "" {
		value = "(absent)"
	}
	if e.Table == "" {
		return fmt.Sprintf("unsupported option: %s = %s: %s", e.Property, value, e.Hint)
	}
	return fmt.Sprintf("unsupported table %s: %s = %s: %s", e.Table, e.Property, value, e.Hint)
}

// Is makes errors.Is(err, ErrUnsupported) true.
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }

// NotTableError says that a path holds no table.
type NotTableError struct {
	Path string
	Hint string
}

func (e *NotTableError) Error() string {
	return fmt.Sprintf("Hoodie table not found in path %s: %s", e.Path, e.Hint)
}

// Is makes errors.Is(err, ErrNotTable) true.
func (e *NotTableError) Is(target error) bool { return target == ErrNotTable }
