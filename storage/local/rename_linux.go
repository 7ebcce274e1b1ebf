package local

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// renameNew renames a file within its folder unless the new name is taken.
func renameNew(root *os.Root, from, to string) error {
	dir, err := root.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	defer dir.Close()
	fd := int(dir.Fd())
	return unix.Renameat2(fd, filepath.Base(from), fd, filepath.Base(to), unix.RENAME_NOREPLACE)
}
