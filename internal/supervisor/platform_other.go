//go:build !linux

package supervisor

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"
)

type (
	cgroup       struct{ cgroupFolder }
	cgroupFolder struct{ folder string }
	reaper       struct{}
)

func findCgroups() cgroupFolder { return cgroupFolder{} }

func newCgroupTree(cgroupFolder) *processTree { return nil }

func newReaper() *reaper { return nil }

func (*reaper) close() {}

func (t *processTree) attach(*syscall.SysProcAttr) {}

// signal does nothing, because there is no portable way to read another process's environment.
func (t *processTree) signal(syscall.Signal) {}

func (t *processTree) release() {}

// empty returns true, because processes outside the group cannot be found.
func (t *processTree) empty() bool { return true }

func (g *osGroup) leave() bool { return false }

func foreignListenerOn(int, *processTree) (string, bool) { return "", false }

func listeningPorts(*processTree) []int { return nil }

// owns returns true, because the owner of a connection cannot be determined.
func (t *processTree) owns(net.Conn) bool { return true }

// Client returns "": clients can only be identified on Linux.
func Client(net.Conn) string { return "" }

func (g *osGroup) empty() bool {
	return syscall.Kill(-g.PID(), 0) == syscall.ESRCH
}

func limitNumbers() map[string]int { return nil }

func setLimit(int, rlimit, *identity) error { return errors.New("limits are only supported on Linux") }

func (m *Meter) refresh(_ []int, now time.Time) { m.at, m.current = now, map[int]Usage{} }

// wildcardTaken connects to the port, because some systems let a program bind 127.0.0.1 while another listens on all
// addresses.
func wildcardTaken(port int) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := Check{Port: port}.dial(ctx)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

func portHolder(int) string { return "" }
