package service_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sluicelake/sluice/hudi/service"
	"github.com/sluicelake/sluice/internal/fixture"
	"github.com/sluicelake/sluice/storage/local"
)

func validate(t testing.TB, dir string) *service.Report {
	t.Helper()
	s, err := local.New(dir, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := service.Validate(context.Background(), s, service.ValidateOptions{Zone: time.UTC, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// now is after the making of every table of testdata.
func now() time.Time { return time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC) }

// Tables of every kind that Apache Hudi wrote and reads have no errors.
func TestTablesOfApacheHudiHaveNoErrors(t *testing.T) {
	for _, name := range fixture.SparkNames(t) {
		dir, expect := fixture.Spark(t, name)
		if strings.HasPrefix(name, "bootstrap_metadata_only") {
			continue // refused by every reader of ours, tested there
		}
		r := validate(t, dir)
		for _, f := range r.Findings {
			if os.Getenv("SHOW") != "" || f.Severity == service.Error {
				t.Logf("%s: %v", name, f)
			}
			if f.Severity == service.Error {
				t.Errorf("%s: %v", name, f)
			}
		}
		if expect.Snapshot.Error == "" && r.Rows != int64(expect.Snapshot.Count) {
			t.Errorf("%s: %d rows, Apache Hudi reads %d", name, r.Rows, expect.Snapshot.Count)
		}
	}
	for _, name := range fixture.PublicNames(t) {
		dir, _ := fixture.Public(t, name)
		for _, f := range validate(t, dir).Findings {
			if os.Getenv("SHOW") != "" || f.Severity == service.Error {
				t.Logf("%s: %v", name, f)
			}
			if f.Severity == service.Error {
				t.Errorf("%s: %v", name, f)
			}
		}
	}
}
