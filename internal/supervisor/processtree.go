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

// waitDelay is how long descendants may keep a dead process's output open.
const waitDelay = 500 * time.Millisecond

// child is a started process with its descendants.
type child struct {
	pid int
	// exited is closed when the process has exited; descendants may still run.
	exited <-chan struct{}
	group  group
	// foreignListener reports whether another program certainly listens on a port, and its name if known. May be nil.
	foreignListener func(port int) (holder string, is bool)
	// ports returns the ports on which this run listens, in order. May be nil.
	ports func() []int
	// owns reports whether the other end of a connection belongs to this run.
	owns func(net.Conn) bool
}

// An emptier reports whether no member except the leader is alive.
type emptier interface{ empty() bool }

// group is a process with its descendants. The leader is not reaped before reap, so its number is not reused.
type group interface {
	signal(sig syscall.Signal)
	// empty must be called only after the leader exited.
	emptier
	reap() Exit
}

type host struct {
	thread procgroup.Thread
	guard  procgroup.Guard
	// cgroups is the parent for control groups; may be zero.
	cgroups cgroupFolder
	reaper  *reaper // nil unless tendril is process 1
}

func newHost() *host {
	keepInheritedFiles()
	h := &host{cgroups: findCgroups()}
	if os.Getpid() == 1 { // as in a container
		h.reaper = newReaper()
	}
	return h
}

// Go marks its own files as close-on-exec, but not inherited ones.
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

func (h *host) close() {
	h.reaper.close()
	h.thread.Close()
	h.guard.Close()
}

type osGroup struct {
	procgroup.Leader
	guard   *procgroup.Guard
	tree    *processTree
	streams []io.Closer
}

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

// processTree finds all descendants of one run through a control group or a mark in the environment. If neither
// works, it only has the process group.
type processTree struct {
	// pid is 0 before the start, and noLeader if descendants continue without the leader.
	pid atomic.Int64
	// At most one of cgroup and mark is set.
	cgroup *cgroup
	mark   string
	// killed is set after all processes got KILL.
	killed atomic.Bool

	// seen holds the living processes found last, in case they erase their environment later.
	mu   sync.Mutex
	seen map[processID]bool
}

// processID is unique, unlike a process number.
type processID struct {
	pid int
	// start is the start time in clock ticks since boot.
	start uint64
}

func newMarkedTree() *processTree {
	return &processTree{mark: rand.Text(), seen: map[processID]bool{}}
}

// noLeader is a number that no process or process group has.
const noLeader = -1

func (t *processTree) hasNoLeader() bool { return t.pid.Load() == noLeader }

func (t *processTree) born(leader int) { t.pid.Store(int64(leader)) }

func (t *processTree) environment() []string {
	if t.mark == "" {
		return nil
	}
	return []string{procgroup.MarkVariable + "=" + t.mark}
}

// marker is the guard's key to the tree: the folder of the control group, which starts with a slash, or the mark.
func (t *processTree) marker() string {
	if t.cgroup != nil {
		return t.cgroup.folder.folder
	}
	return t.mark
}
