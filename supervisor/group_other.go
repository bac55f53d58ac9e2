//go:build !linux

package supervisor

import "syscall"

// empty asks with signal 0; the leader itself is already reaped.
func (g *osGroup) empty() bool {
	return syscall.Kill(-g.PID(), 0) == syscall.ESRCH
}
