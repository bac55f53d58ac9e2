//go:build !linux

package procgroup

import "syscall"

// Attributes make a child the leader of its own group.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// Await waits for the leader and reaps it, because there is no portable way to wait without reaping. The group's number is not reused while it has members, so signals
// still reach only them.
func (l *Leader) Await() { l.err = l.Cmd.Wait() }

// Reap returns the error of exec.Cmd.Wait in Await.
func (l *Leader) Reap() error { return l.err }
