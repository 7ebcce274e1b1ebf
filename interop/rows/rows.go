// Package rows compares tables of rows as people and peers print them: JSON objects whose values follow one encoding,
// whoever made them. Spark, DuckDB, PyArrow, hudi-rs and Sluice each give their answer in it, and [Diff] says where two
// answers part.
//
// The encoding: integers are numbers, floats and doubles numbers or "NaN", "Infinity" and "-Infinity", decimals strings
// with their scale kept, dates "2024-02-29", timestamps "2024-02-29T12:34:56.000123Z" (without the Z when they have no
// zone), binary Base64, arrays lists, structs objects, maps objects or lists of {"key":…,"value":…}.
//
// Writers of that encoding differ in three small ways, which [Set.Canonical] takes away: a float may be printed as the
// shortest number that reads back to the float or as the double nearest to it, a timestamp may have three or six
// fraction digits, and a map may have either form.
package rows

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Row is one row: a value for each column by name. Numbers are json.Number.
type Row map[string]any

// Set is a bag of rows with the types of their columns. Order means nothing.
type Set struct {
	Columns []Column
	Rows    []Row
}

// Column is a column's name with its type.
type Column struct {
	Name string
	Type Type
}

// ParseColumns reads columns as Spark prints them: a name, a space and the type, "price double".
func ParseColumns(lines []string) ([]Column, error) {
	columns := make([]Column, 0, len(lines))
	for _, line := range lines {
		// The name may hold spaces, a simple type string never does.
		at := lastSpace(line)
		if at <= 0 {
			return nil, fmt.Errorf("rows: column %q: want a name, a space and a type", line)
		}
		t, err := ParseType(line[at+1:])
		if err != nil {
			return nil, fmt.Errorf("rows: column %q: %w", line, err)
		}
		columns = append(columns, Column{Name: line[:at], Type: t})
	}
	return columns, nil
}

// Decode reads JSON objects one after the other (JSON Lines, or any white space between them) up to the end of r.
func Decode(r io.Reader) ([]Row, error) {
	d := json.NewDecoder(r)
	d.UseNumber()
	var found []Row
	for {
		var row Row
		switch err := d.Decode(&row); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, fmt.Errorf("rows: row %d at offset %d: %w", len(found)+1, d.InputOffset(), err)
		}
		found = append(found, row)
	}
}

// UnmarshalJSON keeps numbers as they were written; a 64-bit integer must not pass through a double.
func (r *Row) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		return err
	}
	*r = m
	return nil
}

func lastSpace(s string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == ' ' {
			return i
		}
	}
	return -1
}
