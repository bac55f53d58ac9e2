package supervisor

import (
	"crypto/rand"
	"encoding/hex"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tendril/procgroup"
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
	// stranger reports whether somebody else certainly listens on a port in
	// place of this run of the process, and names them where that can be seen.
	// May be nil.
	stranger func(port int) (holder string, is bool)
	// owns reports whether the other end of a connection belongs to this run.
	owns func(net.Conn) bool
	// usage is what the run takes of the machine. May be nil.
	usage func() Usage
}

// group is a process whose leader may have ended but is not reaped, so that
// its number cannot belong to a stranger, and all that it started.
type group interface {
	// signal sends sig to every member.
	signal(sig syscall.Signal)
	// empty reports whether no member but the leader is alive. It is asked only
	// after the leader has ended.
	empty() bool
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
	reaper  *reaper
	// groupsOnly has a run consist of its process group and the children of those in
	// it, which costs neither a control group nor a search of all processes.
	groupsOnly bool
}

// newHost returns a host, to be closed. adopt has it take in orphans.
func newHost(adopt bool) *host {
	keepInheritedFiles()
	return &host{cgroups: findCgroups(), reaper: newReaper(adopt)}
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
	kin     *kin
	streams []io.Closer
}

// signal reaches the process group at once, so that nothing forks away, and
// then those that left it. An error means that nothing of it is left.
func (g *osGroup) signal(sig syscall.Signal) {
	_ = syscall.Kill(-g.PID(), sig)
	g.kin.signal(sig)
}

func (g *osGroup) reap() Exit {
	g.guard.Remove(g.PID())
	err := g.Reap()
	for _, stream := range g.streams {
		_ = stream.Close()
	}
	g.kin.release()
	return exitOf(g.Cmd.ProcessState, err)
}

// kin finds all that one run of a process started, also what has left its
// process group. It is tied in one of two ways: by a control group, which
// nothing leaves by itself, or by a mark in the environment, which children
// inherit. Where neither works, the process group is all there is.
type kin struct {
	// pid is the leader of the run; 0 before it is born.
	pid atomic.Int64
	// cgroup is set for the first way, mark for the second.
	cgroup *cgroup
	mark   string
	// doomed is set once all kin got KILL.
	doomed atomic.Bool

	// seen are the living processes that were found last, by number and time of
	// start: they remain kin when they wipe their environment later.
	mu   sync.Mutex
	seen map[processID]bool
}

// processID names one process for ever: numbers are used again.
type processID struct {
	pid int
	// start is the time of the start in clock ticks since boot.
	start uint64
}

func newMarkedKin() *kin {
	return &kin{mark: randomName(), seen: map[processID]bool{}}
}

// randomName returns 32 characters that nobody can guess or choose again.
func randomName() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // It never fails.
	return hex.EncodeToString(b[:])
}

// born notes the leader.
func (k *kin) born(leader int) { k.pid.Store(int64(leader)) }

// environment is what the process needs in its environment.
func (k *kin) environment() []string {
	if k.mark == "" {
		return nil
	}
	return []string{procgroup.MarkVariable + "=" + k.mark}
}

// tie is how the guard finds the kin: the folder of the control group, which
// begins with a slash, or the mark.
func (k *kin) tie() string {
	if k.cgroup != nil {
		return k.cgroup.folder
	}
	return k.mark
}
