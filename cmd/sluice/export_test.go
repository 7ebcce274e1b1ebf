package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/internal/fixture"
)

// The flags of an export that picks rows and columns, computes folders, verifies and leaves a manifest.
func TestExportFlags(t *testing.T) {
	source, _ := fixture.Spark(t, "cow_basic_1.2.0")
	target := filepath.Join(t.TempDir(), "out")
	args := []string{"export", "--source-base-path", source, "--target-output-path", target, "--output-format", "csv", "--columns", "id,name",
		"--filter", "id > 1", "--output-partitioner", "expr:date = _hoodie_partition_path", "--verify", "--manifest", "target"}

	code, out, errs := sluice(t, append(args, "--dry-run", "-o", "json")...)
	var plan struct {
		Instant  string   `json:"instant"`
		Folders  []string `json:"folders"`
		Columns  []string `json:"columns"`
		Requests int      `json:"requests"`
		Read     struct{ Files int }
	}
	if err := json.Unmarshal([]byte(out), &plan); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, errs)
	}
	if plan.Instant == "" || strings.Join(plan.Folders, ",") != "date" || strings.Join(plan.Columns, ",") != "id,name" || plan.Requests == 0 || plan.Read.Files == 0 {
		t.Errorf("%s", out)
	}
	if code, out, _ := sluice(t, append(args, "--dry-run")...); code != 0 || !strings.Contains(out, "storage requests") || !strings.Contains(out, "date=…") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if _, err := os.Stat(target); !os.IsNotExist(err) {
		t.Error("a dry run wrote something")
	}

	if code, _, errs := sluice(t, args...); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var manifest struct {
		Instant  string
		Rows     int
		Verified bool
	}
	text, err := os.ReadFile(filepath.Join(target, "_manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &manifest); err != nil || manifest.Instant != plan.Instant || manifest.Rows == 0 || !manifest.Verified {
		t.Errorf("%v: %s", err, text)
	}
}

// Mistakes in the command line exit with the code for them, and say what is meant.
func TestExportUsage(t *testing.T) {
	source, _ := fixture.Spark(t, "cow_basic_1.2.0")
	for _, c := range []struct{ args, text string }{
		{"--output-format json --filter id=", "filter"},
		{"--output-format hudi --columns id", "choose parquet"},
		{"--output-format json --with-metadata", "choose format hudi"},
		{"--output-format json --dry-run -o xml", "use table or json"},
		{"--output-format json --output-partitioner expr:x", "expr:date = _hoodie_partition_path"},
	} {
		args := append([]string{"export", "--source-base-path", source, "--target-output-path", filepath.Join(t.TempDir(), "out")}, strings.Fields(c.args)...)
		if code, _, errs := sluice(t, args...); code != exitUsage || !strings.Contains(errs, c.text) {
			t.Errorf("%s: exit code %d: %s", c.args, code, errs)
		}
	}
}
