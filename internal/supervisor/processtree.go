package supervisor

import (
	"crypto/rand"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tendril/internal/supervisor/procgroup"
)

// waitDelay is how long a dead process's output may be kept open by programs
// that it left behind before they are cut off.
const waitDelay = 500 * time.Millisecond

// child is one started process and all that it started.
type child struct {
	pid int
	// exited is closed when the process has ended; the rest may live on.
	exited <-chan struct{}
	group  group
	// foreignListener reports whether somebody else certainly listens on a port in
	// place of this run of the process, and names them where that can be seen.
	// May be nil.
	foreignListener func(port int) (holder string, is bool)
	// ports returns the ports on which this run of the process listens, in order, as far as can be seen. May be nil.
	ports func() []int
	// owns reports whether the other end of a connection belongs to this run.
	owns func(net.Conn) bool
}

// emptier reports whether no member but the leader is alive.
type emptier interface{ empty() bool }

// group is a process whose leader may have ended but is not reaped, so that
// its number cannot belong to a foreign process, and all that it started.
type group interface {
	// signal sends sig to every member.
	signal(sig syscall.Signal)
	// empty is asked only after the leader has ended.
	emptier
	// reap says how the leader ended and lets the group go.
	reap() Exit
}

// host starts real processes.
type host struct {
	thread procgroup.Thread
	guard  procgroup.Guard
	// cgroups is where a run gets a control group of its own; the zero value
	// is nowhere.
	cgroups cgroupFolder
	reaper  *reaper // nil unless we are process 1
}

// newHost returns a host, to be closed.
func newHost() *host {
	keepInheritedFiles()
	h := &host{cgroups: findCgroups()}
	if os.Getpid() == 1 { // as in a container
		h.reaper = newReaper()
	}
	return h
}

// keepInheritedFiles keeps from our children the files that our own parent left
// open in us. Files that Go opens are marked so from the start.
func keepInheritedFiles() {
	files, err := os.ReadDir("/dev/fd")
	if err != nil {
		return
	}
	for _, file := range files {
		if fd, err := strconv.Atoi(file.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

// close ends what the host keeps; every child must be reaped.
func (h *host) close() {
	h.reaper.close()
	h.thread.Close()
	h.guard.Close()
}

// osGroup is the group of a real process.
type osGroup struct {
	procgroup.Leader
	guard   *procgroup.Guard
	tree    *processTree
	streams []io.Closer
}

// signal reaches the process group at once, so that nothing forks away, and
// then those that left it. An error means that nothing of it is left.
func (g *osGroup) signal(sig syscall.Signal) {
	_ = syscall.Kill(-g.PID(), sig)
	g.tree.signal(sig)
}

func (g *osGroup) reap() Exit {
	g.guard.Remove(g.PID(), g.tree.marker())
	err := g.Reap()
	for _, stream := range g.streams {
		_ = stream.Close()
	}
	if !g.tree.hasNoLeader() {
		g.tree.release()
	}
	return exitOf(g.Cmd.ProcessState, err)
}

// processTree finds all that one run of a process started, also what has left its
// process group. It is tied in one of two ways: by a control group, which
// nothing leaves by itself, or by a mark in the environment, which children
// inherit. Where neither works, the process group is all there is.
type processTree struct {
	// pid is the leader of the run; 0 before it is born, noLeader once it was reaped and others go on.
	pid atomic.Int64
	// cgroup is set for the first way, mark for the second.
	cgroup *cgroup
	mark   string
	// killed is set once all of it got KILL.
	killed atomic.Bool

	// seen are the living processes that were found last, by number and time of
	// start: they remain part of it when they wipe their environment later.
	mu   sync.Mutex
	seen map[processID]bool
}

// processID names one process for ever: numbers are used again.
type processID struct {
	pid int
	// start is the time of the start in clock ticks since boot.
	start uint64
}

func newMarkedTree() *processTree {
	return &processTree{mark: rand.Text(), seen: map[processID]bool{}}
}

// noLeader is a number that no process and no process group has.
const noLeader = -1

func (t *processTree) hasNoLeader() bool { return t.pid.Load() == noLeader }

// born notes the leader.
func (t *processTree) born(leader int) { t.pid.Store(int64(leader)) }

// environment is what the process needs in its environment.
func (t *processTree) environment() []string {
	if t.mark == "" {
		return nil
	}
	return []string{procgroup.MarkVariable + "=" + t.mark}
}

// marker is how the guard finds the tree: the folder of the control group, which
// begins with a slash, or the mark.
func (t *processTree) marker() string {
	if t.cgroup != nil {
		return t.cgroup.folder.folder
	}
	return t.mark
}
