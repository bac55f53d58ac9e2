//go:build !linux

package supervisor

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"
)

// cgroup, cgroupFolder, reaper: there are none here.
type (
	cgroup       struct{ folder cgroupFolder }
	cgroupFolder struct{ folder string }
	reaper       struct{}
)

func findCgroups() cgroupFolder { return cgroupFolder{} }

func newCgroupTree(cgroupFolder) *processTree { return nil }

func newReaper() *reaper { return nil }

func (*reaper) close() {}

func (t *processTree) attach(*syscall.SysProcAttr) {}

// signal has nothing to add to the process group: there is no way here to look
// at the environment of another process that always works.
func (t *processTree) signal(syscall.Signal) {}

func (t *processTree) release() {}

// empty and leave: what has lost its leader cannot be found here.
func (t *processTree) empty() bool { return true }

func (g *osGroup) leave() bool { return false }

// foreignListenerOn is not known here.
func foreignListenerOn(int, *processTree) (string, bool) { return "", false }

// listeningPorts are not known here.
func listeningPorts(*processTree) []int { return nil }

// owns is not known here: everybody counts as ours.
func (t *processTree) owns(net.Conn) bool { return true }

// Client is not known here.
func Client(net.Conn) string { return "" }

// empty asks with signal 0; the leader itself is already reaped.
func (g *osGroup) empty() bool {
	return syscall.Kill(-g.PID(), 0) == syscall.ESRCH
}

// limitNumbers: none can be set here without a moment in which they do not hold.
func limitNumbers() map[string]int { return nil }

// setLimit is not reached: no limit has a name here.
func setLimit(int, rlimit, *identity) error { return errors.New("limits can be set on Linux only") }

// look finds nothing here: there is no way that always works.
func (m *Meter) look(_ []int, now time.Time) { m.at, m.current = now, map[int]Usage{} }

// wildcardTaken connects: where it is not Linux, 127.0.0.1 may be bound while
// somebody listens on all addresses.
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

// portHolder is known on Linux only.
func portHolder(int) string { return "" }
