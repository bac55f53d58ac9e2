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

const waitDelay = 500 * time.Millisecond

type child struct {
	pid int
	// exited is closed once the process has exited; descendants may still run.
	exited <-chan struct{}
	group  group
	// foreignListener reports whether another program definitely listens on the port. holder may be "".
	foreignListener func(port int) (holder string, is bool)
	// ports returns the run's listening ports in ascending order.
	ports func() []int
	owns  func(net.Conn) bool
}

// emptier reports whether no process except the leader is alive.
type emptier interface{ empty() bool }

// group is a process and its descendants. On Linux, the leader stays a zombie until reap, so that its PID is not
// reused.
type group interface {
	signal(sig syscall.Signal)
	// empty must not be called before the leader has exited.
	emptier
	reap() Exit
}

type host struct {
	thread procgroup.Thread
	guard  procgroup.Guard
	// cgroups may be zero.
	cgroups cgroupFolder
	reaper  *reaper // nil unless tendril is process 1
}

func newHost() *host {
	keepInheritedFiles()
	h := &host{cgroups: findCgroups()}
	if os.Getpid() == 1 { // in a container
		h.reaper = newReaper()
	}
	return h
}

// keepInheritedFiles marks inherited files as close-on-exec; Go marks only files that it opens.
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
	if g.tree.pid.Load() != noLeader {
		g.tree.release()
	}
	return exitOf(g.Cmd.ProcessState, err)
}

// processTree finds a run's descendants by a control group or by a mark in their environment. With neither, it finds
// only the process group and processes whose parents lead to it.
type processTree struct {
	// pid is 0 before the start, and noLeader if descendants outlive the reaped leader.
	pid atomic.Int64
	// At most one of cgroup and mark is set.
	cgroup *cgroup
	mark   string
	killed atomic.Bool

	// seen contains processes that the last search found alive; they may erase their environment later.
	mu   sync.Mutex
	seen map[processID]bool
}

type processID struct {
	pid   int
	start uint64
}

func newMarkedTree() *processTree {
	return &processTree{mark: rand.Text(), seen: map[processID]bool{}}
}

const noLeader = -1

func (t *processTree) born(leader int) { t.pid.Store(int64(leader)) }

func (t *processTree) environment() []string {
	if t.mark == "" {
		return nil
	}
	return []string{procgroup.MarkVariable + "=" + t.mark}
}

// marker identifies the tree to the guard: the control group's directory, which starts with a slash, or the mark.
func (t *processTree) marker() string {
	if t.cgroup != nil {
		return t.cgroup.folder
	}
	return t.mark
}
