//go:build !unix

package enginetest

import "errors"

func kill(int) error { return errors.ErrUnsupported }

func alive(int) bool { return false }
