//go:build !linux

package supervisor

import "syscall"

// childAttributes make a child the leader of its own group. There is no
// parent-death signal here: the guard alone clears up after us.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// awaitLeader waits for the leader and reaps it: there is no portable way to
// do one without the other. The group keeps its number while it has members,
// so what follows still reaches only them.
func (g *osGroup) awaitLeader() { g.waitErr = g.cmd.Wait() }

// finishWait has nothing to do: awaitLeader reaped.
func (g *osGroup) finishWait() {}

// empty asks with signal 0; the leader itself is already reaped.
func (g *osGroup) empty() bool {
	return syscall.Kill(-g.cmd.Process.Pid, 0) == syscall.ESRCH
}
