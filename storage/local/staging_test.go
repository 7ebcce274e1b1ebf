package local

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sluicelake/sluice/storage"
)

// A folder in which a killed process left nothing but a staging file looks empty, so it can be deleted; one with an object cannot.
func TestDeleteFolderWithStaging(t *testing.T) {
	dir := t.TempDir()
	s, err := New(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o777); err != nil {
		t.Fatal(err)
	}
	staged := filepath.Join(dir, "a", stagingPrefix+storage.NewToken())
	object := filepath.Join(dir, "a", "object")
	for _, name := range []string{staged, object} {
		if err := os.WriteFile(name, []byte("x"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Delete(t.Context(), "a"); err == nil {
		t.Error("a folder with an object was deleted")
	}
	if _, err := os.Stat(staged); err != nil {
		t.Error("a staging file beside an object is somebody's work: ", err)
	}
	if err := os.Remove(object); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); !os.IsNotExist(err) {
		t.Error("the folder is still there")
	}
}
