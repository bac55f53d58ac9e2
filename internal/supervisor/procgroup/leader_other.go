//go:build !linux

package procgroup

import "syscall"

// Attributes returns attributes for the leader of a new process group.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// Await waits until the leader has exited and reaps it, because there is no portable way to wait without reaping. The
// group's ID is not reused while it has members.
func (l *Leader) Await() { l.err = l.Cmd.Wait() }

// Reap returns the result of exec.Cmd.Wait.
func (l *Leader) Reap() error { return l.err }
