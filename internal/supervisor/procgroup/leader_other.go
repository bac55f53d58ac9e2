//go:build !linux

package procgroup

import "syscall"

// Attributes make a child the leader of its own group. There is no parent-death
// signal here: the guard alone clears up after us.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// Await waits for the leader and reaps it: there is no portable way to do one without
// the other. The group keeps its number while it has members, so what follows still
// reaches only them.
func (l *Leader) Await() { l.err = l.Cmd.Wait() }

// Reap returns what exec.Cmd.Wait said to Await.
func (l *Leader) Reap() error { return l.err }
