//go:build unix

package enginetest

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// kill ends the processes from this one's ancestor of some generation down.
func kill(generation int) error {
	line := []int{os.Getpid()}
	for range generation {
		parent, err := parentOf(line[len(line)-1])
		if err != nil {
			return err
		}
		line = append(line, parent)
	}
	for i := len(line) - 1; i >= 0; i-- { // the oldest first: it must not see its children go
		if err := syscall.Kill(line[i], syscall.SIGKILL); err != nil {
			return err
		}
	}
	select {}
}

func parentOf(pid int) (int, error) {
	if pid == os.Getpid() {
		return os.Getppid(), nil
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	var state string
	var parent int
	rest := string(text[strings.LastIndexByte(string(text), ')')+1:])
	if _, err := fmt.Sscan(rest, &state, &parent); err != nil {
		return 0, err
	}
	return parent, nil
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }
