package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/sluicelake/sluice/storage"
)

// A full disk and a forbidden folder can't be made by every user that runs tests; the mapping of their errors can be held.
func TestClassify(t *testing.T) {
	for errno, want := range map[syscall.Errno]error{
		syscall.ENOSPC: storage.ErrNoSpace, syscall.EDQUOT: storage.ErrNoSpace,
		syscall.EACCES: storage.ErrPermission, syscall.EPERM: storage.ErrPermission, syscall.EROFS: storage.ErrPermission,
		syscall.ENOENT: storage.ErrNotExist, syscall.EEXIST: storage.ErrExist,
		syscall.ESTALE: storage.ErrTemporary, syscall.EMFILE: storage.ErrTemporary,
	} {
		for _, err := range []error{errno, &fs.PathError{Op: "write", Path: "x", Err: errno}, &os.LinkError{Op: "rename", Old: "x", New: "y", Err: errno}} {
			if got := classify("put", err); !errors.Is(got, want) {
				t.Errorf("%v became %v, want %v", err, got, want)
			}
		}
	}
}

// The way for file systems without hard links.
func TestRenameNew(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("only Linux has rename without replace here")
		return
	}
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := renameNew(root, "a", "b"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("rename over a file: %v, want ErrExist", err)
	}
	if err := renameNew(root, "a", "c"); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "c")); string(data) != "a" {
		t.Errorf("%q, %v", data, err)
	}
}
