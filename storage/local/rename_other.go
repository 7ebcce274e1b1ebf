//go:build !linux

package local

import (
	"errors"
	"os"
)

func renameNew(*os.Root, string, string) error { return errors.ErrUnsupported }
