package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// The orders walk gives, round by round, the rows of the change capture walkthrough that it retells (tools D.3).
func TestDemo(t *testing.T) {
	var out, errs bytes.Buffer
	folder := t.TempDir() + "/walk"
	if code := run(context.Background(), []string{"demo", folder, "--quiet"}, console{in: strings.NewReader(""), out: &out, err: &errs}); code != exitDone {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	rounds := strings.Split(out.String(), "$ sluice read orders --columns")
	if len(rounds) != 4 {
		t.Fatalf("%d rounds in\n%s", len(rounds)-1, out.String())
	}
	for i, want := range [][]string{
		{"2 10 peter", "1 10 victor"},
		{"2 20 peter U", "3 30 sandy I", "1 10 victor"},
		{"5 50 nathan I", "4 40 barry I", "3 30 sandy I", "1 10 victor"},
	} {
		table, _, _ := strings.Cut(rounds[i+1], "\n#")
		var got []string
		for line := range strings.Lines(table) {
			cells := strings.Split(line, "|")
			if len(cells) != 5 || strings.Contains(line, "order_id") {
				continue
			}
			got = append(got, strings.Join(strings.Fields(strings.Join(cells[:4], " ")), " "))
		}
		for _, row := range want {
			found := 0
			for _, g := range got {
				if g == row {
					found++
				}
			}
			if found != 1 || len(got) != len(want) {
				t.Errorf("round %d: %q, want %q", i+1, got, want)
			}
		}
	}
	if !strings.Contains(out.String(), `{"order_id":3,"order_qty":30,"customer_name":"sandy","Op":"I"}`) || strings.Contains(out.String(), `"order_id":1,`) {
		t.Errorf("the incremental read in\n%s", out.String())
	}
}
