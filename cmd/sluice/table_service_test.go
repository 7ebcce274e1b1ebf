package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicelake/sluice/hudi/service"
	"github.com/sluicelake/sluice/internal/fixture"
)

func TestCreateRollbackAndValidate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "orders")
	if code, _, errs := sluice(t, "table", "create", dir, "--name", "orders"); code != exitUsage || !strings.Contains(errs, "hoodie.datasource.write.recordkey.field") || !strings.Contains(errs, "next:") {
		t.Errorf("without a key: exit code %d: %s", code, errs)
	}
	if code, _, errs := sluice(t, "table", "create", dir, "--name", "orders", "--key", "id", "--hoodie-conf", "hoodie.write.table.version=8"); code != exitRefused {
		t.Errorf("version 8: exit code %d: %s", code, errs)
	}
	code, out, errs := sluice(t, "table", "create", dir, "--name", "orders", "--key", "id", "--partition", "region", "-o", "json")
	var made map[string]any
	if err := json.Unmarshal([]byte(out), &made); code != exitDone || err != nil || made["name"] != "orders" || made["version"] != 6.0 {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	if code, _, errs := sluice(t, "table", "create", dir, "--name", "orders", "--key", "id"); code != exitFailed || !strings.Contains(errs, "is there already") {
		t.Errorf("again: exit code %d: %s", code, errs)
	}
	if code, out, errs := sluice(t, "table", "validate", dir, "--strict"); code != exitDone {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}

	failed, _ := fixture.Spark(t, "failed_write_cow_0.15.0")
	if code, out, _ := sluice(t, "table", "validate", failed, "--strict"); code != exitFailed || !strings.Contains(out, "timeline.pending") {
		t.Errorf("a failed write: exit code %d: %s", code, out)
	}
	if code, _, errs := sluice(t, "table", "rollback", failed); code != exitRefused || !strings.Contains(errs, "hoodie.metadata.enable=false") {
		t.Errorf("with a metadata table: exit code %d: %s", code, errs)
	}
	code, out, errs = sluice(t, "table", "rollback", failed, "--hoodie-conf", "hoodie.metadata.enable=false", "-o", "json")
	var undone []service.Undone
	if err := json.Unmarshal([]byte(out), &undone); code != exitDone || err != nil || len(undone) != 1 || undone[0].Files != 2 {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	if code, out, errs := sluice(t, "table", "validate", failed, "--strict"); code != exitDone {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	files, err := filepath.Glob(filepath.Join(failed, "dt=x", "*.parquet"))
	if err != nil || os.Truncate(files[0], 10) != nil {
		t.Fatal(err)
	}
	code, out, _ = sluice(t, "table", "validate", failed, "-o", "json")
	var report service.Report
	if err := json.Unmarshal([]byte(out), &report); code != exitFailed || err != nil || report.Findings[0].Code != service.FileSize {
		t.Errorf("a file that was cut off: exit code %d: %s", code, out)
	}
}
