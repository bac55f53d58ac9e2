package supervisor

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// waitDelay is how long a dead process's output may be kept open by programs
// that it left behind before they are cut off.
const waitDelay = 500 * time.Millisecond

// child is one started process and the group that it leads.
type child struct {
	pid int
	// exited is closed when the process has ended; the group may live on.
	exited <-chan struct{}
	group  group
}

// group is a process group whose leader may have ended but is not reaped, so
// that its number cannot belong to a stranger.
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
	launcher *launcher
	guard    guard
}

func newHost() *host {
	keepInheritedFiles()
	return &host{launcher: newLauncher()}
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
	h.launcher.close()
	h.guard.close()
}

// start runs p as the leader of a new process group, with its output going to
// out, which may be nil.
func (h *host) start(p *Process, out *output) (*child, error) {
	if info, err := os.Stat(cmp.Or(p.Dir, ".")); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("its working directory %s is not a folder that can be entered", p.Dir)
	}
	path, argv, err := commandOf(p)
	if err != nil {
		return nil, err
	}
	g := &osGroup{guard: &h.guard}
	g.cmd = &exec.Cmd{
		Path:        path,
		Args:        argv,
		Dir:         p.Dir,
		Env:         append([]string{}, p.Env...),
		SysProcAttr: childAttributes(),
		WaitDelay:   waitDelay,
	}
	if out != nil {
		stdout, stderr := out.stream("stdout"), out.stream("stderr")
		g.cmd.Stdout, g.cmd.Stderr = stdout, stderr
		g.streams = []io.Closer{stdout, stderr}
	}
	h.launcher.do(func() { err = g.cmd.Start() })
	if err != nil {
		return nil, fmt.Errorf("running %s: %w", path, err)
	}
	h.guard.add(g.cmd.Process.Pid)
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		g.awaitLeader()
	}()
	return &child{pid: g.cmd.Process.Pid, exited: exited, group: g}, nil
}

// osGroup is the group of a real process.
type osGroup struct {
	cmd     *exec.Cmd
	guard   *guard
	streams []io.Closer
	// waitErr is set by awaitLeader where waiting and reaping are one.
	waitErr error
}

// signal reaches everything that the process started and that did not leave
// its group. An error means that nothing of it is left.
func (g *osGroup) signal(sig syscall.Signal) {
	_ = syscall.Kill(-g.cmd.Process.Pid, sig)
}

func (g *osGroup) reap() Exit {
	g.guard.remove(g.cmd.Process.Pid)
	g.finishWait()
	for _, stream := range g.streams {
		_ = stream.Close()
	}
	return exitOf(g.cmd.ProcessState, g.waitErr)
}
