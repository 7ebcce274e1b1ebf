package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// grid is a result that is no stream of rows: a few columns for a person, and one JSON document for a program.
type grid struct {
	head []string
	rows [][]string
	doc  any // what -o json prints
}

func (g *grid) add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = strings.Map(noControls, fmt.Sprint(c))
	}
	g.rows = append(g.rows, row)
}

// noControls keeps names out of a table's own files from steering the terminal.
func noControls(r rune) rune {
	if r < ' ' || r == 0x7f {
		return '?'
	}
	return r
}

func (g *grid) print(w io.Writer, format string) error {
	switch format {
	case "json":
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(g.doc)
	case "table":
		tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
		if len(g.head) > 0 {
			if _, err := fmt.Fprintln(tw, strings.Join(g.head, "\t")); err != nil {
				return err
			}
		}
		for _, r := range g.rows {
			if _, err := fmt.Fprintln(tw, strings.Join(r, "\t")); err != nil {
				return err
			}
		}
		return tw.Flush()
	}
	return usagef("-o %s: use table or json", format)
}
