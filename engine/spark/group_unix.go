//go:build unix

package spark

import (
	"os/exec"
	"syscall"
)

// ownGroup puts a command and its children into a process group of their own, which is asked to end when the command's
// context does. The function that it returns kills what is left of the group once the command itself has ended.
func ownGroup(cmd *exec.Cmd) (end func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	return func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
